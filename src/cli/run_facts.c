/*
 * run_facts.c - the facts of a run: job.yaml as dotted keys, the last metrics of events.jsonl, and
 * tags.json. The files of the folder are the only truth; an index is made of them.
 */
#include "cli/run_facts.h"
#include "base/file.h"
#include "job/tree.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BYTES (1 << 20)
#define KEY_MAX    512

static tt_status add(cli_facts *f, cli_fact_kind kind, const char *key, const char *value)
{
    if (!tti_grow(f->ctx, &f->v, &f->cap, f->n + 1, sizeof(*f->v)))
        return TT_ENOMEM;
    char *end;
    double number = strtod(value, &end);
    cli_fact *one = &f->v[f->n];
    *one = (cli_fact){.kind = kind,
                      .key = tti_strdup(f->ctx, key),
                      .value = tti_strdup(f->ctx, value),
                      .number = end != value && *end == '\0' ? number : NAN};
    f->n++; // freed with the others, whatever is missing
    return one->key != NULL && one->value != NULL ? TT_OK : TT_ENOMEM;
}

static tt_status add_number(cli_facts *f, cli_fact_kind kind, const char *key, double v)
{
    char text[64];
    snprintf(text, sizeof(text), "%.9g", v);
    return add(f, kind, key, text);
}

void cli_facts_free(cli_facts *f)
{
    for (int64_t i = 0; i < f->n; i++) {
        tti_free(f->ctx, f->v[i].key);
        tti_free(f->ctx, f->v[i].value);
    }
    tti_free(f->ctx, f->v);
    *f = (cli_facts){.ctx = f->ctx};
}

const cli_fact *cli_fact_find(const cli_facts *f, const char *key)
{
    for (int64_t i = 0; i < f->n; i++)
        if (strcmp(f->v[i].key, key) == 0)
            return &f->v[i];
    return NULL;
}

// ---- the job ---------------------------------------------------------------------------------

static tt_status add_items(cli_facts *f, const tti_item *item, const char *path)
{
    if (item->kind == TTI_SCALAR)
        return item->text[0] == '\0' ? TT_OK : add(f, CLI_FACT_JOB, path, item->text);
    int i = 0;
    for (const tti_item *c = item->first; c != NULL; c = c->next, i++) {
        char below[KEY_MAX], number[16];
        snprintf(number, sizeof(number), "%d", i);
        const char *key = item->kind == TTI_MAP ? c->key : number;
        snprintf(below, sizeof(below), "%s%s%s", path, path[0] != '\0' ? "." : "", key);
        TT_TRY(add_items(f, c, below));
    }
    return TT_OK;
}

// Read in a context of its own, so that a damaged file is no error of the caller's.
static tt_status add_job(cli_facts *f, const char *folder)
{
    char path[TTI_PATH_MAX], *text = NULL;
    size_t bytes = 0;
    tti_tree tree = {.ctx = f->ctx};
    tti_item *root = NULL;
    TT_TRY(tti_file_join(f->ctx, path, folder, "job.yaml"));
    if (!tti_file_is_regular(path))
        return TT_OK;
    if (tti_file_read(f->ctx, path, MOST_BYTES, &text, &bytes) != TT_OK ||
        tti_yaml_read(&tree, path, text, bytes, &root) != TT_OK)
        tt_clear_error(f->ctx);
    tt_status st = root != NULL ? add_items(f, root, "") : TT_OK;
    tti_tree_free(&tree);
    tti_free(f->ctx, text);
    return st;
}

// ---- events ----------------------------------------------------------------------------------

static bool is_metric(const char *key)
{
    static const char *const others[] = {
        "time",    "lr",      "step",       "steps",         "epoch",
        "epochs",  "rows",    "epoch_rows", "best",          "step_loss",
        "skipped", "seconds", "stopped",    "gradient_norm", "loss_scale"};
    for (int i = 0; i < TTI_COUNT(others); i++)
        if (strcmp(key, others[i]) == 0)
            return false;
    return strstr(key, "_seconds") == NULL && strncmp(key, "step_", 5) != 0;
}

static tt_status add_metrics(cli_facts *f, const json_t *last)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)last, key, value) if (json_is_number(value) && is_metric(key))
        TT_TRY(add_number(f, CLI_FACT_METRIC, key, json_number_value(value)));
    return TT_OK;
}

static tt_status add_place(cli_facts *f, const json_t *begin)
{
    static const char *const keys[] = {"devices", "lanes", "parameters", "processes", "strategy"};
    for (int i = 0; begin != NULL && i < TTI_COUNT(keys); i++) {
        const json_t *v = json_object_get(begin, keys[i]);
        if (json_is_string(v))
            TT_TRY(add(f, CLI_FACT_PLACE, keys[i], json_string_value(v)));
        else if (json_is_number(v))
            TT_TRY(add_number(f, CLI_FACT_PLACE, keys[i], json_number_value(v)));
    }
    return TT_OK;
}

// Calls fn for every event but those of steps, which are many.
static void each_event(const char *folder, tt_ctx *ctx, void (*fn)(void *to, const json_t *ev),
                       void *to)
{
    char path[TTI_PATH_MAX], *line = NULL;
    size_t room = 0;
    if (tti_file_join(ctx, path, folder, "events.jsonl") != TT_OK || !tti_file_is_regular(path))
        return;
    FILE *file = fopen(path, "re");
    for (ssize_t n; file != NULL && (n = getline(&line, &room, file)) > 0;) {
        if (memmem(line, TTI_MIN((size_t)n, (size_t)80), "\"event\": \"step\"", 15) != NULL)
            continue;
        json_t *ev = json_loadb(line, (size_t)n, 0, NULL);
        if (json_is_object(ev))
            fn(to, ev);
        json_decref(ev);
    }
    free(line); // getline()'s
    if (file != NULL)
        fclose(file);
}

// What the start recorded of itself: versions, git state, data, environment, hardware.
static tt_status add_record(cli_facts *f, const json_t *record)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)record, key,
                        value) if (json_is_string(value) && strcmp(key, "event") != 0)
        TT_TRY(add(f, CLI_FACT_PLACE, key, json_string_value(value)));
    return TT_OK;
}

typedef struct last_events {
    json_t *begin, *metrics, *record;
} last_events;

static void keep_last(void *to, const json_t *ev)
{
    last_events *l = to;
    const char *kind = json_string_value(json_object_get(ev, "event"));
    if (kind == NULL)
        return;
    if (strcmp(kind, "begin") == 0) {
        json_decref(l->begin);
        l->begin = json_incref((json_t *)ev);
    } else if (strcmp(kind, "record") == 0) {
        json_decref(l->record);
        l->record = json_incref((json_t *)ev);
    } else if (strcmp(kind, "epoch") == 0 || strcmp(kind, "validation") == 0 ||
               strcmp(kind, "end") == 0) {
        if (l->metrics == NULL)
            l->metrics = json_object();
        json_object_update(l->metrics, (json_t *)ev);
    }
}

static tt_status add_events(cli_facts *f, const char *folder)
{
    last_events l = {NULL, NULL, NULL};
    each_event(folder, f->ctx, keep_last, &l);
    tt_status st = add_metrics(f, l.metrics);
    if (st == TT_OK)
        st = add_place(f, l.begin);
    if (st == TT_OK)
        st = add_record(f, l.record);
    json_decref(l.record);
    json_decref(l.begin);
    json_decref(l.metrics);
    return st;
}

typedef struct curve {
    tt_ctx *ctx;
    const char *name;
    double *v;
    int64_t n, cap;
    bool failed;
} curve;

static void keep_point(void *to, const json_t *ev)
{
    curve *c = to;
    const char *kind = json_string_value(json_object_get(ev, "event"));
    const json_t *v = json_object_get(ev, c->name);
    if (kind == NULL || strcmp(kind, "epoch") != 0 || !json_is_number(v))
        return;
    c->failed |= !tti_grow(c->ctx, &c->v, &c->cap, c->n + 1, sizeof(*c->v));
    if (!c->failed)
        c->v[c->n++] = json_number_value(v);
}

tt_status cli_curve_read(tt_ctx *ctx, const char *folder, const char *name, double **out,
                         int64_t *n)
{
    curve c = {.ctx = ctx, .name = name};
    each_event(folder, ctx, keep_point, &c);
    *out = c.v;
    *n = c.n;
    return c.failed ? TT_ENOMEM : TT_OK;
}

// ---- tags ------------------------------------------------------------------------------------

// An object with "tags" and "note"; a file that is damaged counts as empty.
static json_t *read_tags(const char *folder, char path[TTI_PATH_MAX], tt_ctx *ctx)
{
    json_t *o =
        tti_file_join(ctx, path, folder, CLI_TAGS) == TT_OK ? json_load_file(path, 0, NULL) : NULL;
    if (!json_is_object(o)) {
        json_decref(o);
        o = json_object();
    }
    if (!json_is_array(json_object_get(o, "tags")))
        json_object_set_new(o, "tags", json_array());
    return o;
}

static tt_status write_tags(tt_ctx *ctx, const char *path, json_t *o)
{
    char *text = json_dumps(o, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
    json_decref(o);
    if (text == NULL)
        return TT_FAIL(ctx, TT_ENOMEM, "out of memory");
    tt_status st = tti_file_replace(ctx, path, text, strlen(text));
    free(text); // jansson's
    return st;
}

tt_status cli_tag_change(tt_ctx *ctx, const char *folder, const char *tag, bool add_it)
{
    char path[TTI_PATH_MAX];
    if (tag[0] == '\0' || strchr(tag, ',') != NULL)
        return TT_FAIL(ctx, TT_EINVAL, "'%.64s' is not a tag: tags are not empty and have no comma",
                       tag);
    json_t *o = read_tags(folder, path, ctx), *tags = json_object_get(o, "tags");
    size_t at = json_array_size(tags);
    for (size_t i = 0; i < json_array_size(tags); i++) {
        const char *s = json_string_value(json_array_get(tags, i));
        if (s != NULL && strcmp(s, tag) == 0)
            at = i;
    }
    bool is_there = at < json_array_size(tags);
    if (add_it && !is_there)
        json_array_append_new(tags, json_string(tag));
    if (!add_it && is_there)
        json_array_remove(tags, at);
    return write_tags(ctx, path, o);
}

tt_status cli_note_set(tt_ctx *ctx, const char *folder, const char *note)
{
    char path[TTI_PATH_MAX];
    json_t *o = read_tags(folder, path, ctx);
    json_object_set_new(o, "note", json_string(note));
    return write_tags(ctx, path, o);
}

static tt_status add_tags(cli_facts *f, const char *folder)
{
    char path[TTI_PATH_MAX];
    json_t *o = read_tags(folder, path, f->ctx), *tags = json_object_get(o, "tags");
    const char *note = json_string_value(json_object_get(o, "note"));
    tt_status st = TT_OK;
    for (size_t i = 0; i < json_array_size(tags) && st == TT_OK; i++) {
        const char *s = json_string_value(json_array_get(tags, i));
        if (s != NULL)
            st = add(f, CLI_FACT_NOTE, "tag", s);
    }
    if (st == TT_OK && note != NULL && note[0] != '\0')
        st = add(f, CLI_FACT_NOTE, "note", note);
    json_decref(o);
    return st;
}

// ---- all -------------------------------------------------------------------------------------

static tt_status add_run(cli_facts *f, const char *folder)
{
    const tti_run_info *r = &f->info;
    const char *slash = strrchr(folder, '/');
    TT_TRY(add(f, CLI_FACT_RUN, "run", slash != NULL ? slash + 1 : folder));
    TT_TRY(add(f, CLI_FACT_RUN, "state", tti_run_state_name(r->state)));
    TT_TRY(add_number(f, CLI_FACT_RUN, "time", r->time));
    TT_TRY(add_number(f, CLI_FACT_RUN, "starts", r->n_starts));
    TT_TRY(add_number(f, CLI_FACT_RUN, "step", (double)r->step));
    TT_TRY(add_number(f, CLI_FACT_RUN, "steps", (double)r->steps));
    if (r->best_name[0] != '\0')
        TT_TRY(add_number(f, CLI_FACT_RUN, "best", r->best));
    return r->hash[0] != '\0' ? add(f, CLI_FACT_RUN, "hash", r->hash) : TT_OK;
}

tt_status cli_facts_read(tt_ctx *ctx, const char *folder, cli_facts *out)
{
    *out = (cli_facts){.ctx = ctx};
    tt_status st = tti_run_info_read(ctx, folder, &out->info);
    if (st == TT_OK)
        st = add_run(out, folder);
    if (st == TT_OK)
        st = add_events(out, folder);
    if (st == TT_OK)
        st = add_job(out, folder);
    if (st == TT_OK)
        st = add_tags(out, folder);
    if (st != TT_OK)
        cli_facts_free(out);
    return st;
}
