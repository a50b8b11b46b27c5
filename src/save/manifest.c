/*
 * manifest.c - prints and reads manifest.json. The numbers of the state are rows of a table.
 *
 * Doubles are printed with 17 digits, which come back to the same bits; those that JSON has no
 * number for are the texts "nan", "inf" and "-inf".
 */
#include "save/manifest.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEAL_HEAD "  \"xxh3_128\": \""
#define SEAL_TAIL "\"\n}\n"
#define SEAL      (sizeof(SEAL_HEAD) - 1 + 32 + sizeof(SEAL_TAIL) - 1)

const char *const tti_checkpoint_files[TTI_N_FILES] = {"weights.safetensors",
                                                       "optimizer.safetensors"};

typedef enum kind {
    COUNT,  // int64_t, not below 0
    SMALL,  // int, not below 0
    BITS,   // uint64_t, as text: JSON's numbers are not sure to hold it
    NUMBER, // double
} kind;

static const struct {
    const char *name;
    kind kind;
    size_t offset;
} rows[] = {
    {"arithmetic", SMALL, offsetof(tti_train_state, arithmetic)},
    {"step", COUNT, offsetof(tti_train_state, step)},
    {"cursor", COUNT, offsetof(tti_train_state, cursor)},
    {"count", COUNT, offsetof(tti_train_state, count)},
    {"lanes", SMALL, offsetof(tti_train_state, lanes)},
    {"batch", COUNT, offsetof(tti_train_state, batch)},
    {"accumulate", COUNT, offsetof(tti_train_state, accumulate)},
    {"seed", BITS, offsetof(tti_train_state, seed)},
    {"lr_factor", NUMBER, offsetof(tti_train_state, lr_factor)},
    {"skipped", COUNT, offsetof(tti_train_state, skipped)},
};

static const struct {
    const char *name;
    size_t offset;
} watches[] = {
    {"early_stop", offsetof(tti_train_state, early)},
    {"plateau", offsetof(tti_train_state, plateau)},
    {"best", offsetof(tti_train_state, best)},
};

// Besides the rows: format, version, tutti, watches, sums, files, job, xxh3_128; and gpu and
// unapplied, if there is such.
#define N_KEYS (TTI_COUNT(rows) + 8)

const char *tti_hash_text(tt_hash h, char out[TTI_HASH_TEXT])
{
    snprintf(out, TTI_HASH_TEXT, "%016llx%016llx", (unsigned long long)h.high,
             (unsigned long long)h.low);
    return out;
}

// ---- printing --------------------------------------------------------------------------------

static void add_double(tti_text *t, double v)
{
    char s[40];
    if (!isfinite(v)) {
        tti_text_add(t, "%s", isnan(v) ? "\"nan\"" : v > 0 ? "\"inf\"" : "\"-inf\"");
        return;
    }
    snprintf(s, sizeof(s), "%.17g", v);
    for (char *c = s; *c != '\0'; c++)
        if (strchr("+-0123456789e", *c) == NULL)
            *c = '.'; // whatever the locale's point is
    tti_text_add(t, "%s%s", s, strpbrk(s, ".e") == NULL ? ".0" : "");
}

static void add_row(tti_text *t, int i, const void *at)
{
    tti_text_add(t, "  \"%s\": ", rows[i].name);
    switch (rows[i].kind) {
    case COUNT:
        tti_text_add(t, "%lld", (long long)*(const int64_t *)at);
        break;
    case SMALL:
        tti_text_add(t, "%d", *(const int *)at);
        break;
    case BITS:
        tti_text_add(t, "\"%llu\"", (unsigned long long)*(const uint64_t *)at);
        break;
    case NUMBER:
        add_double(t, *(const double *)at);
        break;
    }
    tti_text_add(t, ",\n");
}

static void add_watches(tti_text *t, const tti_train_state *s)
{
    tti_text_add(t, "  \"watches\": {");
    for (int i = 0; i < TTI_COUNT(watches); i++) {
        const tti_watch_state *w = (const void *)((const char *)s + watches[i].offset);
        tti_text_add(t, "%s\n    \"%s\": {\"best\": ", i > 0 ? "," : "", watches[i].name);
        if (w->has_best)
            add_double(t, w->best);
        else
            tti_text_add(t, "null");
        tti_text_add(t, ", \"bad\": %lld}", (long long)w->bad);
    }
    tti_text_add(t, "\n  },\n");
}

char *tti_manifest_print(tt_ctx *ctx, const tti_manifest *m)
{
    const tti_train_state *s = &m->state;
    tti_text t = {.ctx = ctx};
    char hash[TTI_HASH_TEXT];
    tti_text_add(&t, "{\n  \"format\": \"%s\",\n  \"version\": %d,\n  \"tutti\": \"%s\",\n",
                 TTI_MANIFEST_FORMAT, TTI_MANIFEST_VERSION, TT_VERSION);
    for (int i = 0; i < TTI_COUNT(rows); i++)
        add_row(&t, i, (const char *)s + rows[i].offset);
    if (s->gpu[0] != '\0') {
        tti_text_add(&t, "  \"gpu\": ");
        tti_text_json(&t, s->gpu);
        tti_text_add(&t, ",\n");
    }
    if (s->unapplied != 0)
        tti_text_add(&t, "  \"unapplied\": %lld,\n", (long long)s->unapplied);
    add_watches(&t, s);
    tti_text_add(&t, "  \"sums\": [");
    for (int i = 0; i < s->n_sums; i++) {
        tti_text_add(&t, "%s", i > 0 ? ", " : "");
        add_double(&t, s->sums[i]);
    }
    tti_text_add(&t, "],\n  \"files\": {");
    for (int i = 0; i < TTI_N_FILES; i++)
        tti_text_add(&t, "%s\n    \"%s\": {\"bytes\": %llu, \"xxh3_128\": \"%s\"}",
                     i > 0 ? "," : "", tti_checkpoint_files[i],
                     (unsigned long long)m->files[i].bytes, tti_hash_text(m->files[i].hash, hash));
    tti_text_add(&t, "\n  },\n  \"job\": ");
    if (s->job != NULL)
        tti_text_json(&t, s->job);
    else
        tti_text_add(&t, "null");
    tti_text_add(&t, ",\n");
    if (!t.failed)
        tti_text_add(&t, SEAL_HEAD "%s" SEAL_TAIL,
                     tti_hash_text(tti_hash128(t.s, (size_t)t.n), hash));
    return tti_text_take(&t);
}

// ---- reading ---------------------------------------------------------------------------------

typedef struct reader {
    tt_ctx *ctx;
    const char *path;
} reader;

static tt_status bad(const reader *r, const char *key, const char *what)
{
    return TT_FAIL(r->ctx, TT_EPARSE, "%s: '%s' %s", r->path, key, what);
}

// Member key of an object; NULL, recorded, if it is not there or not of that type.
static json_t *get(const reader *r, const json_t *o, const char *key, json_type type)
{
    json_t *v = json_object_get(o, key);
    if (v == NULL || json_typeof(v) != type) {
        (void)bad(r, key, v == NULL ? "is missing" : "has the wrong type");
        return NULL;
    }
    return v;
}

static tt_status get_count(const reader *r, const json_t *o, const char *key, int64_t max,
                           int64_t *out)
{
    const json_t *v = get(r, o, key, JSON_INTEGER);
    if (v == NULL)
        return TT_EPARSE;
    *out = json_integer_value(v);
    return *out >= 0 && *out <= max ? TT_OK : bad(r, key, "is out of range");
}

static tt_status double_of(const reader *r, const char *key, const json_t *v, double *out)
{
    const char *s = json_string_value(v);
    if (json_is_real(v))
        *out = json_real_value(v);
    else if (s != NULL && strcmp(s, "nan") == 0)
        *out = NAN;
    else if (s != NULL && strcmp(s, "inf") == 0)
        *out = INFINITY;
    else if (s != NULL && strcmp(s, "-inf") == 0)
        *out = -INFINITY;
    else
        return bad(r, key, "is not a number");
    return TT_OK;
}

static tt_status get_bits(const reader *r, const json_t *o, const char *key, uint64_t *out)
{
    const json_t *v = get(r, o, key, JSON_STRING);
    if (v == NULL)
        return TT_EPARSE;
    uint64_t n = 0;
    const char *s = json_string_value(v);
    bool ok = *s != '\0';
    for (; ok && *s != '\0'; s++)
        ok = *s >= '0' && *s <= '9' && !__builtin_mul_overflow(n, 10u, &n) &&
             !__builtin_add_overflow(n, (uint64_t)(*s - '0'), &n);
    *out = n;
    return ok ? TT_OK : bad(r, key, "is not a number below 2^64");
}

static tt_status get_row(const reader *r, const json_t *o, int i, void *at)
{
    int64_t v = 0;
    switch (rows[i].kind) {
    case COUNT:
        return get_count(r, o, rows[i].name, INT64_MAX, at);
    case SMALL:
        TT_TRY(get_count(r, o, rows[i].name, INT32_MAX, &v));
        *(int *)at = (int)v;
        return TT_OK;
    case BITS:
        return get_bits(r, o, rows[i].name, at);
    case NUMBER:
        return double_of(r, rows[i].name, json_object_get(o, rows[i].name), at);
    }
    return TT_EPARSE;
}

static tt_status get_watches(const reader *r, const json_t *root, tti_train_state *s)
{
    const json_t *all = get(r, root, "watches", JSON_OBJECT);
    if (all == NULL)
        return TT_EPARSE;
    if (json_object_size(all) != TTI_COUNT(watches))
        return bad(r, "watches", "has other members than it should");
    for (int i = 0; i < TTI_COUNT(watches); i++) {
        tti_watch_state *w = (void *)((char *)s + watches[i].offset);
        const json_t *o = get(r, all, watches[i].name, JSON_OBJECT);
        const json_t *best = o == NULL ? NULL : json_object_get(o, "best");
        if (o == NULL)
            return TT_EPARSE;
        if (json_object_size(o) != 2)
            return bad(r, watches[i].name, "has other members than it should");
        TT_TRY(get_count(r, o, "bad", INT64_MAX, &w->bad));
        w->has_best = !json_is_null(best);
        if (w->has_best)
            TT_TRY(double_of(r, watches[i].name, best, &w->best));
    }
    return TT_OK;
}

static tt_status get_sums(const reader *r, const json_t *root, tti_train_state *s)
{
    const json_t *list = get(r, root, "sums", JSON_ARRAY);
    if (list == NULL)
        return TT_EPARSE;
    if (json_array_size(list) > TTI_MAX_SUMS)
        return bad(r, "sums", "has too many members");
    s->n_sums = (int)json_array_size(list);
    for (int i = 0; i < s->n_sums; i++)
        TT_TRY(double_of(r, "sums", json_array_get(list, (size_t)i), &s->sums[i]));
    return TT_OK;
}

// 32 digits, high half first; they must be the text that the hash has.
static bool hash_of(const char *s, tt_hash *out)
{
    char half[17] = "", same[TTI_HASH_TEXT];
    if (s == NULL || strlen(s) != 32)
        return false;
    memcpy(half, s, 16);
    *out = (tt_hash){.low = strtoull(s + 16, NULL, 16), .high = strtoull(half, NULL, 16)};
    return strcmp(tti_hash_text(*out, same), s) == 0;
}

static tt_status get_files(const reader *r, const json_t *root, tti_manifest *m)
{
    const json_t *all = get(r, root, "files", JSON_OBJECT);
    if (all == NULL)
        return TT_EPARSE;
    if (json_object_size(all) != TTI_N_FILES)
        return bad(r, "files", "has other members than it should");
    for (int i = 0; i < TTI_N_FILES; i++) {
        int64_t bytes;
        const char *name = tti_checkpoint_files[i];
        const json_t *o = get(r, all, name, JSON_OBJECT);
        if (o == NULL)
            return TT_EPARSE;
        TT_TRY(get_count(r, o, "bytes", INT64_MAX, &bytes));
        m->files[i].bytes = (uint64_t)bytes;
        if (json_object_size(o) != 2 ||
            !hash_of(json_string_value(json_object_get(o, "xxh3_128")), &m->files[i].hash))
            return bad(r, name, "has no valid checksum");
    }
    return TT_OK;
}

static tt_status other_version(tt_ctx *ctx, const char *path, int64_t version)
{
    return TT_FAIL(ctx, TT_EUNSUPPORTED,
                   "%s: checkpoint format %lld; this version of Tutti reads format %d", path,
                   (long long)version, TTI_MANIFEST_VERSION);
}

tt_status tti_manifest_version(tt_ctx *ctx, const char *path, const char *text, size_t bytes)
{
    static const char format[] = "\"" TTI_MANIFEST_FORMAT "\"", key[] = "\"version\":";
    const char *at = memmem(text, bytes, format, sizeof(format) - 1);
    at = at == NULL ? NULL : memmem(at, bytes - (size_t)(at - text), key, sizeof(key) - 1);
    if (at == NULL)
        return TT_OK;
    int64_t version = 0;
    int digits = 0;
    for (at += sizeof(key) - 1; at < text + bytes && *at == ' '; at++)
        ;
    for (; at < text + bytes && *at >= '0' && *at <= '9' && digits < 9; at++, digits++)
        version = 10 * version + *at - '0';
    if (digits == 0 || version <= TTI_MANIFEST_VERSION)
        return TT_OK; // there never was an older one
    return other_version(ctx, path, version);
}

static tt_status get_format(const reader *r, const json_t *root, tti_manifest *m)
{
    int64_t version;
    const char *format = json_string_value(json_object_get(root, "format"));
    if (format == NULL || strcmp(format, TTI_MANIFEST_FORMAT) != 0)
        return TT_FAIL(r->ctx, TT_EPARSE, "%s is not the manifest of a Tutti checkpoint", r->path);
    TT_TRY(get_count(r, root, "version", INT32_MAX, &version));
    if (version != TTI_MANIFEST_VERSION)
        return other_version(r->ctx, r->path, version);
    const char *tutti = json_string_value(json_object_get(root, "tutti"));
    if (tutti == NULL || strlen(tutti) >= sizeof(m->tutti))
        return bad(r, "tutti", "is not a version");
    memcpy(m->tutti, tutti, strlen(tutti) + 1);
    return TT_OK;
}

static tt_status get_gpu(const reader *r, const json_t *root, tti_train_state *s)
{
    const json_t *gpu = json_object_get(root, "gpu");
    const char *text = json_string_value(gpu);
    if (gpu == NULL)
        return TT_OK;
    if (text == NULL || text[0] == '\0' || strlen(text) >= sizeof(s->gpu))
        return bad(r, "gpu", "is not a string of the right length");
    memcpy(s->gpu, text, strlen(text) + 1);
    return TT_OK;
}

static tt_status get_all(const reader *r, const json_t *root, tti_manifest *m)
{
    TT_TRY(get_format(r, root, m));
    for (int i = 0; i < TTI_COUNT(rows); i++)
        TT_TRY(get_row(r, root, i, (char *)&m->state + rows[i].offset));
    TT_TRY(get_gpu(r, root, &m->state));
    bool has_unapplied = json_object_get(root, "unapplied") != NULL;
    if (has_unapplied)
        TT_TRY(get_count(r, root, "unapplied", m->state.step, &m->state.unapplied));
    TT_TRY(get_watches(r, root, &m->state));
    TT_TRY(get_sums(r, root, &m->state));
    TT_TRY(get_files(r, root, m));
    if (get(r, root, "xxh3_128", JSON_STRING) == NULL)
        return TT_EPARSE;
    const json_t *job = json_object_get(root, "job");
    if (!json_is_null(job) && !json_is_string(job))
        return bad(r, "job", "is not a string");
    if (json_object_size(root) != (size_t)N_KEYS + (m->state.gpu[0] != '\0') + has_unapplied)
        return TT_FAIL(r->ctx, TT_EPARSE, "%s has other members than it should", r->path);
    if (json_is_string(job) && (m->state.job = tti_strdup(r->ctx, json_string_value(job))) == NULL)
        return TT_ENOMEM;
    return TT_OK;
}

tt_status tti_manifest_parse(tt_ctx *ctx, const char *path, const char *text, size_t bytes,
                             tti_manifest *out)
{
    reader r = {ctx, path};
    json_error_t error;
    if (bytes > TTI_MANIFEST_MAX)
        return TT_FAIL(ctx, TT_EPARSE, "%s has %zu bytes; a manifest has at most %zu", path, bytes,
                       TTI_MANIFEST_MAX);
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL)
        return TT_FAIL(ctx, TT_EPARSE, "%s: line %d: %s", path, error.line, error.text);
    *out = (tti_manifest){0};
    tt_status st = get_all(&r, root, out);
    json_decref(root);
    return st;
}

bool tti_manifest_is_sealed(const char *text, size_t bytes)
{
    char seal[SEAL + 1], hash[TTI_HASH_TEXT];
    if (bytes <= SEAL)
        return false;
    snprintf(seal, sizeof(seal), SEAL_HEAD "%s" SEAL_TAIL,
             tti_hash_text(tti_hash128(text, bytes - SEAL), hash));
    return memcmp(seal, text + bytes - SEAL, SEAL) == 0;
}

tt_status tti_manifest_read(tt_ctx *ctx, const char *path, const char *text, size_t bytes,
                            tti_manifest *out)
{
    if (tti_manifest_is_sealed(text, bytes))
        return tti_manifest_parse(ctx, path, text, bytes, out);
    TT_TRY(tti_manifest_version(ctx, path, text, bytes));
    return TT_FAIL(ctx, TT_EIO, "%s: its checksum is wrong: it is cut short or damaged", path);
}
