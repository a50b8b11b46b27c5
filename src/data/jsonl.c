/*
 * jsonl.c - JSON lines as a source. Opening reads every line once: each must be an object that has
 * all keys, with as many numbers as in the first record. After that a line is read where it lies.
 */
#include "data/csv_own.h"
#include "data/shards.h"
#include <jansson.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_LINE (16 << 20)
#define MOST_KEYS 65536

typedef struct key {
    char *name;    // "a.b"
    int64_t width; // numbers
    bool is_list;
} key;

typedef struct keys {
    key *key;
    int64_t n, cap, wide;
} keys;

typedef struct jsonl {
    tti_files files;
    keys x, y;
    int64_t count, cap, cap_bytes;
    int64_t *start; // of lines, in all files
    uint32_t *bytes;
    bool has_classes, has_numbers, fixed_words;
    tti_words words;
    tti_room_pool pool;
} jsonl;

static const char *path_of(const jsonl *s, int64_t i)
{
    return s->files.file[tti_files_find(&s->files, s->start[i])].path;
}

// ---- values ----------------------------------------------------------------------------------

// The value of "a.b"; a key that has the point in its name goes first.
static json_t *value_of(json_t *o, const char *name)
{
    json_t *v = json_object_get(o, name);
    const char *dot = strchr(name, '.');
    char first[TTI_CELL_MAX];
    if (v != NULL || dot == NULL || (size_t)(dot - name) >= sizeof(first))
        return v;
    memcpy(first, name, (size_t)(dot - name));
    first[dot - name] = '\0';
    return value_of(json_object_get(o, first), dot + 1);
}

static bool number_of(const json_t *v, float *out)
{
    if (json_is_boolean(v))
        *out = json_is_true(v) ? 1 : 0;
    else if (json_is_number(v))
        *out = (float)json_number_value(v);
    else
        return false;
    return isfinite(*out);
}

// Numbers of a value, as the first record had them; out may be NULL.
static bool numbers_of(const json_t *v, const key *k, float *out)
{
    float f;
    if (!k->is_list) {
        bool ok = number_of(v, &f);
        if (ok && out != NULL)
            *out = f;
        return ok;
    }
    if (!json_is_array(v) || (int64_t)json_array_size(v) != k->width)
        return false;
    for (int64_t i = 0; i < k->width; i++) {
        if (!number_of(json_array_get(v, (size_t)i), &f))
            return false;
        if (out != NULL)
            out[i] = f;
    }
    return true;
}

static tt_status bad_value(tt_ctx *ctx, const jsonl *s, int64_t i, const key *k, const json_t *v)
{
    char *text = v != NULL ? json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    tt_status st =
        v == NULL
            ? TT_FAIL(ctx, TT_EIO, "%s: record %lld has no key '%s'; every record needs it",
                      path_of(s, i), (long long)i, k->name)
            : TT_FAIL(
                  ctx, TT_EIO,
                  "%s: record %lld: '%s' is %.40s; it must be %s%lld%s that f32 can hold, as in "
                  "the first record",
                  path_of(s, i), (long long)i, k->name, text != NULL ? text : "?",
                  k->is_list ? "a list of " : "", (long long)k->width,
                  k->is_list ? " numbers" : " number");
    free(text);
    return st;
}

static tt_status put_keys(tt_ctx *ctx, const jsonl *s, int64_t i, const keys *k, json_t *o,
                          float *out)
{
    for (int64_t n = 0; n < k->n; n++) {
        json_t *v = value_of(o, k->key[n].name);
        if (v == NULL || !numbers_of(v, &k->key[n], out))
            return bad_value(ctx, s, i, &k->key[n], v);
        if (out != NULL)
            out += k->key[n].width;
    }
    return TT_OK;
}

// The text of a class: a word, or a number from 0.
static bool class_text(const json_t *v, char out[TTI_CELL_MAX])
{
    if (json_is_integer(v))
        return snprintf(out, TTI_CELL_MAX, "%lld", (long long)json_integer_value(v)) > 0;
    if (json_is_boolean(v))
        return snprintf(out, TTI_CELL_MAX, "%d", json_is_true(v)) > 0;
    const char *text = json_string_value(v);
    return text != NULL && snprintf(out, TTI_CELL_MAX, "%s", text) < TTI_CELL_MAX;
}

static tt_status put_class(tt_ctx *ctx, const jsonl *s, int64_t i, json_t *o, int32_t *out)
{
    char text[TTI_CELL_MAX];
    const char *name = s->y.key[0].name;
    json_t *v = value_of(o, name);
    if (v == NULL || !class_text(v, text))
        return TT_FAIL(ctx, TT_EIO, "%s: record %lld: '%s' is not a class: a word, or a number",
                       path_of(s, i), (long long)i, name);
    *out = s->has_numbers ? tti_words_number(text) : tti_words_find(&s->words, text);
    if (*out < 0)
        return TT_FAIL(ctx, TT_EIO, "%s: record %lld: '%s' is '%.40s', which is not a known class",
                       path_of(s, i), (long long)i, name, text);
    return TT_OK;
}

// ---- one record ------------------------------------------------------------------------------

static tt_status load(tt_ctx *ctx, const jsonl *s, int64_t i, tti_decode_room *r, json_t **out)
{
    json_error_t e;
    size_t n = s->bytes[i];
    char *p = (char *)tti_room_get(ctx, r, 0, n + 1);
    if (p == NULL)
        return TT_ENOMEM;
    TT_TRY(tti_files_read(ctx, &s->files, s->start[i], n, p));
    *out = json_loadb(p, n, JSON_REJECT_DUPLICATES, &e);
    if (*out == NULL)
        return TT_FAIL(ctx, TT_EIO, "%s: record %lld: %s (column %d)", path_of(s, i), (long long)i,
                       e.text, e.column);
    if (json_is_object(*out))
        return TT_OK;
    json_decref(*out);
    return TT_FAIL(ctx, TT_EIO, "%s: record %lld is not an object {...}", path_of(s, i),
                   (long long)i);
}

static tt_status jsonl_read(tt_ctx *ctx, void *self, int64_t i, void *const *out)
{
    jsonl *s = self;
    json_t *o = NULL;
    tti_decode_room *r = tti_pool_borrow(ctx, &s->pool);
    if (r == NULL)
        return TT_ENOMEM;
    tt_status st = load(ctx, s, i, r, &o);
    tti_pool_return(&s->pool, r);
    TT_TRY(st);
    st = put_keys(ctx, s, i, &s->x, o, out[0]);
    if (st == TT_OK && s->has_classes)
        st = put_class(ctx, s, i, o, out[1]);
    else if (st == TT_OK && s->y.n > 0)
        st = put_keys(ctx, s, i, &s->y, o, out[1]);
    json_decref(o);
    return st;
}

// ---- opening ---------------------------------------------------------------------------------

static void free_keys(tt_ctx *ctx, keys *k)
{
    for (int64_t i = 0; i < k->n; i++)
        tti_free(ctx, k->key[i].name);
    tti_free(ctx, k->key);
}

static void jsonl_close(tt_ctx *ctx, void *self)
{
    jsonl *s = self;
    tti_files_close(ctx, &s->files);
    free_keys(ctx, &s->x);
    free_keys(ctx, &s->y);
    tti_free(ctx, s->start);
    tti_free(ctx, s->bytes);
    tti_words_free(ctx, &s->words);
    tti_pool_deinit(&s->pool);
    tti_free(ctx, s);
}

// Lines that are not empty.
static tt_status index_file(tt_ctx *ctx, jsonl *s, int64_t k)
{
    tti_scan scan;
    tti_scan_begin(&scan, &s->files.file[k], 0, s->files.file[k].n);
    int64_t start = 0;
    for (bool blank = true;;) {
        int byte = tti_scan_byte(ctx, &scan);
        if (byte == TTI_SCAN_ERROR)
            return tt_status_of(ctx);
        if (byte != '\n' && byte != TTI_SCAN_END) {
            blank &= byte == ' ' || byte == '\t' || byte == '\r';
            continue;
        }
        int64_t end = byte == '\n' ? tti_scan_at(&scan) - 1 : s->files.file[k].n;
        if (end - start > MOST_LINE)
            return TT_FAIL(ctx, TT_EIO, "%s: record %lld has more than %d MiB",
                           s->files.file[k].path, (long long)s->count, MOST_LINE >> 20);
        if (!blank) {
            if (!tti_grow(ctx, &s->start, &s->cap, s->count + 1, sizeof(*s->start)) ||
                !tti_grow(ctx, &s->bytes, &s->cap_bytes, s->count + 1, sizeof(*s->bytes)))
                return TT_ENOMEM;
            s->start[s->count] = s->files.start[k] + start;
            s->bytes[s->count++] = (uint32_t)(end - start);
        }
        if (byte == TTI_SCAN_END)
            return TT_OK;
        start = end + 1;
        blank = true;
    }
}

static tt_status add_key(tt_ctx *ctx, const jsonl *s, keys *k, const char *name, const json_t *v,
                         bool is_class)
{
    key one = {.width = 1, .is_list = json_is_array(v)};
    if (one.is_list)
        one.width = (int64_t)json_array_size(v);
    if (k->n == MOST_KEYS || one.width < 1)
        return TT_FAIL(ctx, TT_EINVAL, "%s: key '%s' of record 0 has no numbers", path_of(s, 0),
                       name);
    if (!is_class && !numbers_of(v, &one, NULL)) {
        one.name = (char *)(uintptr_t)name;
        return bad_value(ctx, s, 0, &one, v);
    }
    one.name = tti_strdup(ctx, name);
    if (one.name == NULL || !tti_grow(ctx, &k->key, &k->cap, k->n + 1, sizeof(*k->key))) {
        tti_free(ctx, one.name);
        return TT_ENOMEM;
    }
    k->key[k->n++] = one;
    k->wide += one.width;
    return TT_OK;
}

static tt_status list_keys(tt_ctx *ctx, jsonl *s, keys *k, const char *list, json_t *o,
                           bool is_class)
{
    char name[TTI_CELL_MAX];
    for (bool more;;) {
        TT_TRY(tti_csv_next_name(ctx, &list, name, &more));
        if (!more)
            return TT_OK;
        json_t *v = value_of(o, name);
        if (v == NULL)
            return TT_FAIL(ctx, TT_EINVAL, "%s: record 0 has no key '%s'", path_of(s, 0), name);
        TT_TRY(add_key(ctx, s, k, name, v, is_class));
    }
}

static bool has_key(const keys *k, const char *name)
{
    for (int64_t i = 0; i < k->n; i++)
        if (strcmp(k->key[i].name, name) == 0)
            return true;
    return false;
}

static tt_status choose_keys(tt_ctx *ctx, jsonl *s, const tt_jsonl_opts *o, json_t *first)
{
    const char *name;
    json_t *v;
    s->has_classes = o->classes || o->words[0] != '\0';
    if (strcmp(o->y, "-") != 0)
        TT_TRY(list_keys(ctx, s, &s->y, o->y, first, s->has_classes));
    else
        s->has_classes = false;
    if (s->has_classes && s->y.n != 1)
        return TT_FAIL(ctx, TT_EINVAL, "jsonl: classes need one target key, not %lld",
                       (long long)s->y.n);
    if (o->x[0] != '\0')
        return list_keys(ctx, s, &s->x, o->x, first, false);
    json_object_foreach(first, name, v) if (!has_key(&s->y, name))
        TT_TRY(add_key(ctx, s, &s->x, name, v, false));
    if (s->x.n == 0)
        return TT_FAIL(ctx, TT_EINVAL, "%s: no key is left for x", path_of(s, 0));
    return TT_OK;
}

static tt_status learn(tt_ctx *ctx, jsonl *s, int64_t i, json_t *o)
{
    char text[TTI_CELL_MAX];
    json_t *v = value_of(o, s->y.key[0].name);
    int32_t none;
    if (v == NULL || !class_text(v, text) || s->fixed_words)
        return put_class(ctx, s, i, o, &none);
    s->has_numbers &= tti_words_number(text) >= 0;
    if (tti_words_add(ctx, &s->words, text) != TT_OK)
        return TT_FAIL(ctx, TT_EIO, "%s: '%s' has more than %d different words", path_of(s, i),
                       s->y.key[0].name, TTI_WORDS_MAX);
    return TT_OK;
}

static tt_status check_record(tt_ctx *ctx, jsonl *s, const tt_jsonl_opts *o, int64_t i,
                              tti_decode_room *r)
{
    json_t *one = NULL;
    TT_TRY(load(ctx, s, i, r, &one));
    tt_status st = i == 0 ? choose_keys(ctx, s, o, one) : TT_OK;
    if (st == TT_OK)
        st = put_keys(ctx, s, i, &s->x, one, NULL);
    if (st == TT_OK && s->has_classes)
        st = learn(ctx, s, i, one);
    else if (st == TT_OK)
        st = put_keys(ctx, s, i, &s->y, one, NULL);
    json_decref(one);
    return st;
}

static tt_status jsonl_init(tt_ctx *ctx, jsonl *s, const tt_jsonl_opts *o, tti_decode_room *r)
{
    char word[TTI_CELL_MAX];
    const char *words = o->words;
    for (bool more = true; more;) {
        TT_TRY(tti_csv_next_name(ctx, &words, word, &more));
        s->fixed_words |= more;
        if (more && tti_words_add(ctx, &s->words, word) != TT_OK)
            return TT_FAIL(ctx, TT_EINVAL, "jsonl: words has more than %d entries", TTI_WORDS_MAX);
    }
    s->has_numbers = !s->fixed_words;
    for (int64_t k = 0; k < s->files.n; k++)
        TT_TRY(index_file(ctx, s, k));
    if (s->count == 0)
        return TT_FAIL(ctx, TT_EIO, "%s: has no records", s->files.file[0].path);
    for (int64_t i = 0; i < s->count; i++)
        TT_TRY(check_record(ctx, s, o, i, r));
    return TT_OK;
}

static int64_t count_classes(const jsonl *s)
{
    int32_t most = 0;
    for (int64_t i = 0; s->has_numbers && i < s->words.n; i++)
        most = TTI_MAX(most, tti_words_number(s->words.words[i]));
    return s->has_numbers ? (int64_t)most + 1 : s->words.n;
}

static tt_status open_files(tt_ctx *ctx, tti_files *files, const tt_jsonl_opts *o, tt_source *out)
{
    jsonl *s = tti_calloc(ctx, 1, sizeof(*s));
    if (s == NULL) {
        tti_files_close(ctx, files);
        return TT_ENOMEM;
    }
    s->files = *files;
    tti_pool_init(&s->pool);
    tti_decode_room *r = tti_pool_borrow(ctx, &s->pool);
    tt_status st = r != NULL ? jsonl_init(ctx, s, o, r) : TT_ENOMEM;
    if (r != NULL)
        tti_pool_return(&s->pool, r);
    if (st != TT_OK) {
        jsonl_close(ctx, s);
        return st;
    }
    *out = (tt_source){.count = s->count,
                       .n_fields = s->y.n > 0 ? 2 : 1,
                       .self = s,
                       .read = jsonl_read,
                       .close = jsonl_close};
    out->fields[0] = (tt_field){.name = "x", .shape = TT_SHAPE(s->x.wide)};
    out->fields[1] = (tt_field){.name = "y", .shape = TT_SHAPE(s->y.wide)};
    if (s->has_classes)
        out->fields[1] = (tt_field){.name = "y", .dtype = TT_I32, .classes = count_classes(s)};
    return TT_OK;
}

tt_status tti_jsonl_source(tt_ctx *ctx, tti_bytes *b, const tt_jsonl_opts *o, tt_source *out)
{
    tti_files files;
    TT_TRY(tti_files_of(ctx, b, &files));
    return open_files(ctx, &files, o, out);
}

static tt_status jsonl_open(tt_ctx *ctx, const void *options, tt_source *out)
{
    const tt_jsonl_opts *o = options;
    tti_files files;
    TT_TRY(tti_files_open(ctx, "jsonl", o->file, &files));
    return open_files(ctx, &files, o, out);
}

// ---- what a model keeps ----------------------------------------------------------------------

char *const *tti_jsonl_words(const tt_data *d, int64_t *n)
{
    const jsonl *s = d != NULL && d->source.close == jsonl_close ? d->source.self : NULL;
    bool has = s != NULL && s->has_classes && !s->has_numbers;
    *n = has ? s->words.n : 0;
    return has ? s->words.words : NULL;
}

static void put_names(tti_text *t, const keys *k)
{
    tti_text list = {.ctx = t->ctx};
    for (int64_t i = 0; i < k->n; i++)
        tti_csv_list(&list, k->key[i].name);
    tti_text_json(t, list.s != NULL ? list.s : "-");
    tti_text_free(&list);
}

void tti_jsonl_describe(const tt_data *d, tti_text *t)
{
    const jsonl *s = d->source.close == jsonl_close ? d->source.self : NULL;
    if (s == NULL)
        return;
    tti_text_add(t, ", \"keys\": {\"x\": ");
    put_names(t, &s->x);
    tti_text_add(t, ", \"y\": ");
    put_names(t, &s->y);
    tti_text_add(t, "}");
}

// clang-format off
static const tt_option jsonl_options[] = {
    {"file", TT_OPT_TEXT, NULL, "files of JSON lines: names or patterns; may be compressed (.gz)",
     offsetof(tt_jsonl_opts, file), 0, 0, NULL},
    {"y", TT_OPT_TEXT, NULL, "target keys: \"price\" or \"a, b.c\"; -: no target",
     offsetof(tt_jsonl_opts, y), 0, 0, NULL},
    {"x", TT_OPT_TEXT, "", "input keys; default: all keys of the first record but the targets",
     offsetof(tt_jsonl_opts, x), 0, 0, NULL},
    {"classes", TT_OPT_BOOL, "false", "y is a class label, a number or a word, instead of a value",
     offsetof(tt_jsonl_opts, classes), 0, 0, NULL},
    {"words", TT_OPT_TEXT, "",
     "class names in order: \"cat, dog\"; default: in order of appearance",
     offsetof(tt_jsonl_opts, words), 0, 0, NULL},
    TT_OPTION_END,
};
// clang-format on

const tt_source_def tti_source_jsonl = {
    .name = "jsonl",
    .help = "JSON lines",
    .options = jsonl_options,
    .options_size = sizeof(tt_jsonl_opts),
    .main = "file",
    .open = jsonl_open,
};
