/*
 * yaml.c - a job's tree from YAML, by libyaml's events. A file is data: tags are refused, depth,
 * size and number of items are bounded, aliases are copies that count as items.
 */
#include "job/tree.h"
#include <string.h>

#ifdef TUTTI_HAVE_YAML
#include <yaml.h>

#define MAX_ANCHORS 64

typedef struct reader {
    tti_tree *tree;
    const char *file, *text;
    size_t bytes;
    yaml_parser_t parser;
    int depth, n_anchors;
    struct {
        const char *name;
        tti_item *item;
    } anchors[MAX_ANCHORS];
} reader;

static tti_place place_of(const reader *r, yaml_mark_t mark)
{
    return (tti_place){r->file, (int)mark.line + 1, (int)mark.column + 1};
}

static tt_status refuse(reader *r, yaml_mark_t mark, const char *why)
{
    return tti_fail_at(r->tree->ctx, TT_EPARSE, place_of(r, mark), "", "%s", why);
}

// The reader of characters knows a byte's number only.
static yaml_mark_t mark_of_byte(const reader *r, size_t byte)
{
    yaml_mark_t m = {0};
    for (size_t i = 0; i < byte && i < r->bytes; i++) {
        m.column++;
        if (r->text[i] == '\n') {
            m.line++;
            m.column = 0;
        }
    }
    return m;
}

static tt_status next(reader *r, yaml_event_t *ev)
{
    if (yaml_parser_parse(&r->parser, ev))
        return TT_OK;
    const char *problem = r->parser.problem != NULL ? r->parser.problem : "is not valid YAML";
    switch (r->parser.error) {
    case YAML_MEMORY_ERROR:
        return TT_FAIL(r->tree->ctx, TT_ENOMEM, "%.256s: out of memory", r->file);
    case YAML_READER_ERROR:
        return refuse(r, mark_of_byte(r, r->parser.problem_offset), problem);
    default:
        return refuse(r, r->parser.problem_mark, problem);
    }
}

static tt_status check_text(reader *r, const yaml_event_t *ev)
{
    if (ev->data.scalar.tag != NULL)
        return refuse(r, ev->start_mark, "tags are not allowed in a job");
    if (memchr(ev->data.scalar.value, '\0', ev->data.scalar.length) != NULL)
        return refuse(r, ev->start_mark, "a text contains a zero byte");
    return TT_OK;
}

static tt_status read_scalar(reader *r, const yaml_event_t *ev, tti_item **out)
{
    TT_TRY(check_text(r, ev));
    bool plain = ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    *out = tti_scalar_new(r->tree, (const char *)ev->data.scalar.value, plain,
                          place_of(r, ev->start_mark));
    return *out == NULL ? tt_status_of(r->tree->ctx) : TT_OK;
}

static int height(const tti_item *item)
{
    int most = 0;
    for (const tti_item *c = item->first; c != NULL; c = c->next) {
        int below = height(c);
        most = TTI_MAX(most, below);
    }
    return most + 1;
}

static tt_status read_alias(reader *r, const yaml_event_t *ev, tti_item **out)
{
    for (int i = r->n_anchors - 1; i >= 0; i--) { // the last of a name counts
        if (strcmp(r->anchors[i].name, (const char *)ev->data.alias.anchor) != 0)
            continue;
        if (r->depth + height(r->anchors[i].item) > TTI_MAX_DEPTH)
            return refuse(r, ev->start_mark, "lists and maps are nested too deep");
        *out = tti_item_copy(r->tree, r->anchors[i].item);
        return *out == NULL ? tt_status_of(r->tree->ctx) : TT_OK;
    }
    return tti_fail_at(r->tree->ctx, TT_EPARSE, place_of(r, ev->start_mark), "",
                       "there is no anchor '%.64s' before this alias",
                       (const char *)ev->data.alias.anchor);
}

static tt_status read_value(reader *r, yaml_event_t *ev, tti_item **out);

static tt_status read_list(reader *r, tti_item *list)
{
    for (;;) {
        yaml_event_t ev;
        tti_item *item;
        TT_TRY(next(r, &ev));
        if (ev.type == YAML_SEQUENCE_END_EVENT) {
            yaml_event_delete(&ev);
            return TT_OK;
        }
        TT_TRY(read_value(r, &ev, &item));
        tti_item_add(list, NULL, item->at, item);
    }
}

// Takes the event of a key and gives its text.
static tt_status read_key(reader *r, yaml_event_t *ev, const tti_item *map, const char **out)
{
    tt_status st = TT_OK;
    const char *text = (const char *)ev->data.scalar.value;
    if (ev->type != YAML_SCALAR_EVENT)
        st = refuse(r, ev->start_mark, "a key must be a word");
    else
        st = check_text(r, ev);
    if (st == TT_OK && text[0] == '\0')
        st = refuse(r, ev->start_mark, "a key is empty");
    if (st == TT_OK && strcmp(text, "<<") == 0)
        st = refuse(r, ev->start_mark, "merge keys (<<) are not allowed; write the keys out");
    if (st == TT_OK && map->n >= TTI_MAX_KEYS)
        st = refuse(r, ev->start_mark, "a map has too many keys");
    const tti_item *twin = st == TT_OK ? tti_item_get(map, text) : NULL;
    if (twin != NULL)
        st = tti_fail_at(r->tree->ctx, TT_EPARSE, place_of(r, ev->start_mark), "",
                         "key '%.64s' was given before, at line %d, column %d", text,
                         twin->key_at.line, twin->key_at.column);
    if (st == TT_OK) {
        *out = tti_tree_text(r->tree, text, strlen(text));
        st = *out == NULL ? TT_ENOMEM : TT_OK;
    }
    yaml_event_delete(ev);
    return st;
}

static tt_status read_map(reader *r, tti_item *map)
{
    for (;;) {
        yaml_event_t ev;
        const char *key = NULL;
        tti_item *item;
        TT_TRY(next(r, &ev));
        if (ev.type == YAML_MAPPING_END_EVENT) {
            yaml_event_delete(&ev);
            return TT_OK;
        }
        tti_place at = place_of(r, ev.start_mark);
        TT_TRY(read_key(r, &ev, map, &key));
        TT_TRY(next(r, &ev));
        TT_TRY(read_value(r, &ev, &item));
        tti_item_add(map, key, at, item);
    }
}

static tt_status read_group(reader *r, const yaml_event_t *ev, tti_item **out)
{
    bool list = ev->type == YAML_SEQUENCE_START_EVENT;
    if ((list ? ev->data.sequence_start.tag : ev->data.mapping_start.tag) != NULL)
        return refuse(r, ev->start_mark, "tags are not allowed in a job");
    if (r->depth >= TTI_MAX_DEPTH)
        return refuse(r, ev->start_mark, "lists and maps are nested too deep");
    *out = tti_item_new(r->tree, list ? TTI_LIST : TTI_MAP, place_of(r, ev->start_mark));
    if (*out == NULL)
        return tt_status_of(r->tree->ctx);
    r->depth++;
    tt_status st = list ? read_list(r, *out) : read_map(r, *out);
    r->depth--;
    return st;
}

// What an alias may name from here on: only what is whole, so that nothing contains itself.
static tt_status keep_anchor(reader *r, const yaml_event_t *ev, const unsigned char *anchor,
                             tti_item *item)
{
    if (anchor == NULL)
        return TT_OK;
    if (r->n_anchors == MAX_ANCHORS)
        return refuse(r, ev->start_mark, "too many anchors");
    const char *name = tti_tree_text(r->tree, (const char *)anchor, strlen((const char *)anchor));
    if (name == NULL)
        return TT_ENOMEM;
    r->anchors[r->n_anchors].name = name;
    r->anchors[r->n_anchors++].item = item;
    return TT_OK;
}

// Takes the event and all that belong to the item it begins.
static tt_status read_value(reader *r, yaml_event_t *ev, tti_item **out)
{
    tt_status st = TT_OK;
    const unsigned char *anchor = NULL;
    switch (ev->type) {
    case YAML_SCALAR_EVENT:
        st = read_scalar(r, ev, out);
        anchor = ev->data.scalar.anchor;
        break;
    case YAML_SEQUENCE_START_EVENT:
        st = read_group(r, ev, out);
        anchor = ev->data.sequence_start.anchor;
        break;
    case YAML_MAPPING_START_EVENT:
        st = read_group(r, ev, out);
        anchor = ev->data.mapping_start.anchor;
        break;
    case YAML_ALIAS_EVENT:
        st = read_alias(r, ev, out);
        break;
    default:
        st = refuse(r, ev->start_mark, "a value is missing");
    }
    if (st == TT_OK)
        st = keep_anchor(r, ev, anchor, *out);
    yaml_event_delete(ev);
    return st;
}

// The one document of the stream; nothing may follow it.
static tt_status read_stream(reader *r, tti_item **out)
{
    tti_item *root = NULL;
    for (;;) {
        yaml_event_t ev;
        TT_TRY(next(r, &ev));
        yaml_event_type_t type = ev.type;
        yaml_mark_t mark = ev.start_mark;
        yaml_event_delete(&ev);
        if (type == YAML_STREAM_END_EVENT)
            break;
        if (type != YAML_DOCUMENT_START_EVENT)
            continue;
        if (root != NULL)
            return refuse(r, mark, "a second document begins here; a job file has only one");
        TT_TRY(next(r, &ev));
        TT_TRY(read_value(r, &ev, &root));
    }
    if (root == NULL)
        return refuse(r, (yaml_mark_t){0}, "is empty");
    *out = root;
    return TT_OK;
}

tt_status tti_yaml_read(tti_tree *t, const char *file, const char *text, size_t bytes,
                        tti_item **out)
{
    if (bytes > TTI_MAX_JOB_BYTES)
        return TT_FAIL(t->ctx, TT_EPARSE, "%.256s: has %zu bytes; a job file has at most %d", file,
                       bytes, TTI_MAX_JOB_BYTES);
    const char *name = tti_tree_text(t, file, strlen(file));
    if (name == NULL)
        return TT_ENOMEM;
    reader r = {.tree = t, .file = name, .text = text, .bytes = bytes};
    if (!yaml_parser_initialize(&r.parser))
        return TT_FAIL(t->ctx, TT_ENOMEM, "%.256s: out of memory", file);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, bytes);
    tt_status st = read_stream(&r, out);
    yaml_parser_delete(&r.parser);
    return st;
}

#else

tt_status tti_yaml_read(tti_tree *t, const char *file, const char *text, size_t bytes,
                        tti_item **out)
{
    (void)text, (void)bytes, (void)out;
    return TT_FAIL(t->ctx, TT_EUNSUPPORTED,
                   "%.256s: this build cannot read YAML: install libyaml-dev and build again",
                   file);
}

#endif
