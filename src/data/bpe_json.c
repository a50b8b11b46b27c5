/*
 * bpe_json.c - tokenizer.json of Hugging Face's tokenizers: those of byte-level BPE, as GPT-2 has
 * it. What the file asks for besides is refused by name, so that tokens are never wrong silently.
 */
#include "base/ctx.h"
#include "base/file.h"
#include "data/bpe.h"
#include "data/text.h"
#include <jansson.h>
#include <string.h>

#define FILE_MAX ((size_t)256 << 20)

typedef struct reader {
    tt_ctx *ctx;
    const char *path;
    const json_t *vocab;
    tti_bpe *t;
} reader;

static const char *text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s != NULL ? s : "";
}

static tt_status bad(const reader *r, const char *what)
{
    return TT_FAIL(r->ctx, TT_EPARSE, "%s: it has no valid %s", r->path, what);
}

static tt_status refuse(const reader *r, const char *what, const char *value)
{
    return TT_FAIL(r->ctx, TT_EUNSUPPORTED,
                   "%s: %s is '%.64s'; only byte-level BPE with the word rule of GPT-2 is known",
                   r->path, what, value);
}

static bool is_set(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    const char *s = json_string_value(v);
    return v != NULL && !json_is_null(v) && !json_is_false(v) && !(s != NULL && s[0] == '\0');
}

static tt_status check_parts(const reader *r, const json_t *root, const json_t *model)
{
    static const char *const unknown[] = {"dropout",
                                          "continuing_subword_prefix",
                                          "end_of_word_suffix",
                                          "fuse_unk",
                                          "byte_fallback",
                                          "ignore_merges"};
    const json_t *pre = json_object_get(root, "pre_tokenizer");
    const char *type = text_of(model, "type");
    if (strcmp(type, "BPE") != 0 && type[0] != '\0')
        return refuse(r, "model.type", type);
    for (int i = 0; i < TTI_COUNT(unknown); i++)
        if (is_set(model, unknown[i]))
            return refuse(r, unknown[i], "set");
    if (is_set(root, "normalizer"))
        return refuse(r, "normalizer.type", text_of(json_object_get(root, "normalizer"), "type"));
    if (strcmp(text_of(pre, "type"), "ByteLevel") != 0)
        return refuse(r, "pre_tokenizer.type", text_of(pre, "type"));
    if (json_is_false(json_object_get(pre, "use_regex")))
        return refuse(r, "pre_tokenizer.use_regex", "false");
    r->t->space_first = json_is_true(json_object_get(pre, "add_prefix_space"));
    return TT_OK;
}

// The bytes of a token; those that no byte stands for stay as they are: added tokens.
static void put_bytes(tti_text *t, const char *s)
{
    size_t n = strlen(s);
    tti_text bytes = {.ctx = t->ctx};
    for (size_t at = 0; at < n;) {
        uint32_t point;
        int length = tti_utf8_get((const unsigned char *)s + at, n - at, &point);
        int byte = length > 0 ? tti_bpe_byte(point) : -1;
        if (byte < 0) {
            tti_text_free(&bytes);
            tti_text_put(t, s, n);
            return;
        }
        tti_text_put(&bytes, (const char[]){(char)byte}, 1);
        at += (size_t)length;
    }
    t->failed |= bytes.failed;
    if (bytes.n > 0)
        tti_text_put(t, bytes.s, (size_t)bytes.n);
    tti_text_free(&bytes);
}

static tt_status read_vocab(const reader *r, const json_t *added)
{
    tti_bpe *t = r->t;
    const char *name;
    json_t *id;
    size_t i;
    t->n = (int64_t)json_object_size(r->vocab);
    json_array_foreach(added, i, id)
    {
        int64_t k = json_integer_value(json_object_get(id, "id"));
        t->n = TTI_MAX(t->n, TTI_MIN(k, TTI_BPE_MAX) + 1);
    }
    if (t->n < 1 || t->n > TTI_BPE_MAX)
        return bad(r, "vocabulary");
    const char **names = tti_calloc(r->ctx, (size_t)t->n, sizeof(*names));
    t->at = tti_calloc(r->ctx, (size_t)t->n + 1, sizeof(*t->at));
    if (names == NULL || t->at == NULL) {
        tti_free(r->ctx, names);
        return TT_ENOMEM;
    }
    bool ok = true;
    json_object_foreach((json_t *)r->vocab, name, id)
    {
        int64_t k = json_is_integer(id) ? json_integer_value(id) : -1;
        ok &= k >= 0 && k < t->n && names[k] == NULL;
        if (ok)
            names[k] = name;
    }
    json_array_foreach(added, i, id)
    {
        int64_t k = json_integer_value(json_object_get(id, "id"));
        ok &= k >= 0 && text_of(id, "content")[0] != '\0';
        if (ok)
            names[k] = text_of(id, "content");
    }
    tti_text pool = {.ctx = r->ctx};
    for (int64_t k = 0; ok && k < t->n; k++) {
        t->at[k] = pool.n;
        put_bytes(&pool, names[k] != NULL ? names[k] : "");
        t->at[k + 1] = pool.n;
    }
    tti_text_put(&pool, "", 0);
    tti_free(r->ctx, names);
    t->pool = pool.s;
    return pool.failed ? TT_ENOMEM : ok ? TT_OK : bad(r, "vocabulary");
}

static int32_t id_of(const reader *r, const char *s)
{
    const json_t *id = json_object_get(r->vocab, s);
    return json_is_integer(id) ? (int32_t)json_integer_value(id) : -1;
}

static tt_status read_bytes(const reader *r)
{
    for (int i = 0; i < 256; i++) {
        char name[8] = "";
        name[tti_utf8_put(tti_bpe_char(i), name)] = '\0';
        r->t->byte[i] = id_of(r, name);
        if (r->t->byte[i] < 0)
            return TT_FAIL(r->ctx, TT_EUNSUPPORTED,
                           "%s: the vocabulary has no token for byte %d, '%s'", r->path, i, name);
    }
    return TT_OK;
}

// "a b", or ["a", "b"].
static tt_status read_merge(const reader *r, const json_t *one, int64_t i)
{
    char text[4096] = "";
    tti_bpe *t = r->t;
    const char *whole = json_string_value(one), *a = json_string_value(json_array_get(one, 0)),
               *b = json_string_value(json_array_get(one, 1));
    if (whole != NULL) {
        const char *space = strchr(whole, ' ');
        if (space == NULL || strlen(whole) >= sizeof(text))
            return bad(r, "merges");
        strcpy(text, whole);
        text[space - whole] = '\0';
        a = text;
        b = text + (space - whole) + 1;
    }
    if (a == NULL || b == NULL || strlen(a) + strlen(b) >= sizeof(text) / 2)
        return bad(r, "merges");
    t->merges[i] = (tti_bpe_merge){id_of(r, a), id_of(r, b)};
    memmove(text + sizeof(text) / 2, b, strlen(b) + 1);
    memmove(text, a, strlen(a) + 1);
    memmove(text + strlen(text), text + sizeof(text) / 2, strlen(text + sizeof(text) / 2) + 1);
    t->made[i] = id_of(r, text);
    if (t->merges[i].a < 0 || t->merges[i].b < 0 || t->made[i] < 0)
        return TT_FAIL(r->ctx, TT_EPARSE,
                       "%s: merge %lld makes '%.100s', which the vocabulary "
                       "lacks, or its parts",
                       r->path, (long long)i, text);
    return TT_OK;
}

static tt_status read_merges(const reader *r, const json_t *list)
{
    tti_bpe *t = r->t;
    t->n_merges = (int64_t)json_array_size(list);
    if (!json_is_array(list) || t->n_merges > TTI_BPE_MAX)
        return bad(r, "merges");
    t->merges = tti_calloc(r->ctx, (size_t)t->n_merges + 1, sizeof(*t->merges));
    t->made = tti_calloc(r->ctx, (size_t)t->n_merges + 1, sizeof(*t->made));
    if (t->merges == NULL || t->made == NULL)
        return TT_ENOMEM;
    for (int64_t i = 0; i < t->n_merges; i++)
        TT_TRY(read_merge(r, json_array_get(list, (size_t)i), i));
    return tti_bpe_index(t);
}

static tt_status read_specials(const reader *r, const json_t *added)
{
    tti_bpe *t = r->t;
    size_t n = json_array_size(added);
    t->specials = tti_calloc(r->ctx, n + 1, sizeof(*t->specials));
    if (t->specials == NULL)
        return TT_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const json_t *o = json_array_get(added, i);
        static const char *const unknown[] = {"single_word", "lstrip", "rstrip"};
        for (int k = 0; k < TTI_COUNT(unknown); k++)
            if (json_is_true(json_object_get(o, unknown[k])))
                return refuse(r, unknown[k], "true");
        char *text = tti_strdup(r->ctx, text_of(o, "content"));
        if (text == NULL)
            return TT_ENOMEM;
        t->specials[t->n_specials++] = (tti_bpe_special){
            text, strlen(text), (int32_t)json_integer_value(json_object_get(o, "id"))};
    }
    return TT_OK;
}

static tt_status read_root(const reader *r, const json_t *root)
{
    const json_t *model = json_object_get(root, "model"),
                 *added = json_object_get(root, "added_tokens");
    reader own = *r;
    own.vocab = json_object_get(model, "vocab");
    if (!json_is_object(model) || !json_is_object(own.vocab))
        return bad(r, "model");
    TT_TRY(check_parts(&own, root, model));
    TT_TRY(read_vocab(&own, added));
    TT_TRY(read_bytes(&own));
    TT_TRY(read_merges(&own, json_object_get(model, "merges")));
    return read_specials(&own, added);
}

tt_status tti_bpe_parse(tt_ctx *ctx, const char *path, const char *text, size_t bytes, tti_bpe *out)
{
    json_error_t e;
    *out = (tti_bpe){.ctx = ctx};
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &e);
    if (root == NULL)
        return TT_FAIL(ctx, TT_EPARSE, "%s: line %d: %s", path, e.line, e.text);
    tt_status st = read_root(&(reader){.ctx = ctx, .path = path, .t = out}, root);
    json_decref(root);
    if (st != TT_OK)
        tti_bpe_free(out);
    return st;
}

tt_status tti_bpe_read(tt_ctx *ctx, const char *path, tti_bpe *out)
{
    char *text;
    size_t bytes;
    *out = (tti_bpe){.ctx = ctx};
    TT_TRY(tti_file_read(ctx, path, FILE_MAX, &text, &bytes));
    tt_status st = tti_bpe_parse(ctx, path, text, bytes, out);
    tti_free(ctx, text);
    return st;
}

// ---- out -------------------------------------------------------------------------------------

static void put_token(const tti_bpe *t, int64_t id, tti_text *out)
{
    tti_text s = {.ctx = t->ctx};
    for (int64_t i = t->at[id]; i < t->at[id + 1]; i++) {
        char c[4];
        int n = tti_utf8_put(tti_bpe_char((unsigned char)t->pool[i]), c);
        tti_text_put(&s, c, (size_t)n);
    }
    tti_text_put(&s, "", 0);
    char *text = tti_text_take(&s);
    tti_text_json(out, text != NULL ? text : "");
    out->failed |= text == NULL;
    tti_free(t->ctx, text);
}

tt_status tti_bpe_write(const tti_bpe *t, const char *path)
{
    static const char part[] = "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, "
                               "\"trim_offsets\": true, \"use_regex\": true}";
    tti_text s = {.ctx = t->ctx};
    tti_text_add(&s,
                 "{\"version\": \"1.0\", \"truncation\": null, \"padding\": null,\n\"added_tokens\""
                 ": [], \"normalizer\": null,\n\"pre_tokenizer\": %s,\n\"post_processor\": null, "
                 "\"decoder\": %s,\n\"model\": {\"type\": \"BPE\", \"dropout\": null, "
                 "\"unk_token\": null, \"continuing_subword_prefix\": null, "
                 "\"end_of_word_suffix\": null, \"fuse_unk\": false, \"byte_fallback\": false, "
                 "\"ignore_merges\": false,\n\"vocab\": {",
                 part, part);
    for (int64_t i = 0; i < t->n; i++) {
        tti_text_add(&s, "%s", i > 0 ? ",\n" : "\n");
        put_token(t, i, &s);
        tti_text_add(&s, ": %lld", (long long)i);
    }
    tti_text_add(&s, "},\n\"merges\": [");
    for (int64_t i = 0; i < t->n_merges; i++) {
        tti_text_add(&s, "%s[", i > 0 ? ",\n" : "\n");
        put_token(t, t->merges[i].a, &s);
        tti_text_add(&s, ", ");
        put_token(t, t->merges[i].b, &s);
        tti_text_add(&s, "]");
    }
    tti_text_add(&s, "]}}\n");
    int64_t n = s.n;
    char *text = tti_text_take(&s);
    if (text == NULL)
        return TT_ENOMEM;
    tt_status st = tti_file_replace(t->ctx, path, text, (size_t)n);
    tti_free(t->ctx, text);
    return st;
}
