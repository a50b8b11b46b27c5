/*
 * header.c - reads the header of a safetensors file.
 *
 * The header is JSON of one form only, read in one pass without a tree (json_scan.h). Texts go into
 * one block; entries keep places in it until it no longer moves.
 */
#include "save/json_scan.h"
#include "save/safetensors.h"
#include <stdlib.h>
#include <string.h>

#define MAX_AXES 64

// All types of the format, with the bits of an element and ours, if we have it.
static const struct {
    const char *name;
    int bits;
    tt_dtype dtype;
} types[] = {
    {"F32", 32, TT_F32},
    {"F64", 64, TT_F64},
    {"BF16", 16, TT_BF16},
    {"F16", 16, TT_F16},
    {"I32", 32, TT_I32},
    {"I64", 64, TT_I64},
    {"U8", 8, TT_U8},
    {"BOOL", 8, TT_BOOL},
    {"I8", 8, TT_N_DTYPES},
    {"I16", 16, TT_N_DTYPES},
    {"U16", 16, TT_N_DTYPES},
    {"U32", 32, TT_N_DTYPES},
    {"U64", 64, TT_N_DTYPES},
    {"C64", 64, TT_N_DTYPES},
    {"F8_E4M3", 8, TT_N_DTYPES},
    {"F8_E5M2", 8, TT_N_DTYPES},
    {"F8_E8M0", 8, TT_N_DTYPES},
    {"F8_E4M3FNUZ", 8, TT_N_DTYPES},
    {"F8_E5M2FNUZ", 8, TT_N_DTYPES},
    {"F6_E2M3", 6, TT_N_DTYPES},
    {"F6_E3M2", 6, TT_N_DTYPES},
    {"F4", 4, TT_N_DTYPES},
};

typedef struct entry {
    int64_t name;      // place in the texts
    int64_t first_dim; // place in the dimensions
    uint64_t begin, end;
    int rank, type;
    const char *text; // the name, once the texts stay where they are
} entry;

typedef struct pair {
    int64_t name, value;
    const char *text; // as above
} pair;

typedef struct reader {
    tti_json_scan in;
    entry *entries;
    int64_t n, cap;
    int64_t *dims;
    int64_t n_dims, cap_dims;
    pair *pairs;
    int64_t n_pairs, cap_pairs;
    bool has_metadata;
} reader;

const char *tti_safetensors_type(tt_dtype t)
{
    for (int i = 0; i < TTI_COUNT(types); i++)
        if (types[i].dtype == t && t < TT_N_DTYPES)
            return types[i].name;
    return "?";
}

// ---- the form of the header ------------------------------------------------------------------

static tt_status dimensions(reader *r, entry *e)
{
    bool again = true;
    TT_TRY(tti_json_expect(&r->in, '['));
    e->first_dim = r->n_dims;
    e->rank = 0;
    if (tti_json_peek(&r->in) == ']') {
        r->in.at++;
        return TT_OK;
    }
    while (again) {
        if (e->rank == MAX_AXES)
            return tti_json_fail(&r->in, "a shape of more than 64 axes");
        if (!tti_grow(r->in.ctx, &r->dims, &r->cap_dims, r->n_dims + 1, sizeof(*r->dims)))
            return TT_ENOMEM;
        TT_TRY(tti_json_number(&r->in, &r->dims[r->n_dims]));
        r->n_dims++;
        e->rank++;
        TT_TRY(tti_json_more(&r->in, ']', &again));
    }
    return TT_OK;
}

static tt_status offsets(reader *r, entry *e)
{
    int64_t begin, end;
    TT_TRY(tti_json_expect(&r->in, '['));
    TT_TRY(tti_json_number(&r->in, &begin));
    TT_TRY(tti_json_expect(&r->in, ','));
    TT_TRY(tti_json_number(&r->in, &end));
    TT_TRY(tti_json_expect(&r->in, ']'));
    e->begin = (uint64_t)begin;
    e->end = (uint64_t)end;
    return TT_OK;
}

static tt_status type(reader *r, entry *e)
{
    int64_t place;
    TT_TRY(tti_json_text(&r->in, &place));
    const char *word = r->in.texts.s + place;
    for (int i = 0; i < TTI_COUNT(types); i++) {
        if (strcmp(types[i].name, word) == 0) {
            e->type = i;
            r->in.texts.n = place; // not needed any more
            return TT_OK;
        }
    }
    return TT_FAIL(r->in.ctx, TT_EPARSE, "%s: '%.200s': '%.40s' is not an element type", r->in.path,
                   r->in.texts.s + e->name, word);
}

static tt_status tensor(reader *r, int64_t name)
{
    static tt_status (*const readers[])(reader *, entry *) = {type, dimensions, offsets};
    static const char *const keys[] = {"dtype", "shape", "data_offsets"};
    entry e = {.name = name};
    unsigned seen = 0;
    bool again = true;
    TT_TRY(tti_json_expect(&r->in, '{'));
    while (again) {
        int64_t place;
        int k = 0;
        TT_TRY(tti_json_text(&r->in, &place));
        while (k < 3 && strcmp(r->in.texts.s + place, keys[k]) != 0)
            k++;
        if (k == 3 || (seen & 1u << k) != 0)
            return TT_FAIL(r->in.ctx, TT_EPARSE, "%s: '%.200s': %s key '%.40s'", r->in.path,
                           r->in.texts.s + name, k == 3 ? "unknown" : "repeated",
                           r->in.texts.s + place);
        r->in.texts.n = place;
        seen |= 1u << k;
        TT_TRY(tti_json_expect(&r->in, ':'));
        TT_TRY(readers[k](r, &e));
        TT_TRY(tti_json_more(&r->in, '}', &again));
    }
    if (seen != 7)
        return TT_FAIL(r->in.ctx, TT_EPARSE,
                       "%s: '%.200s': dtype, shape or data_offsets is missing", r->in.path,
                       r->in.texts.s + name);
    if (!tti_grow(r->in.ctx, &r->entries, &r->cap, r->n + 1, sizeof(e)))
        return TT_ENOMEM;
    r->entries[r->n++] = e;
    return TT_OK;
}

static tt_status metadata(reader *r)
{
    bool again = true;
    if (r->has_metadata)
        return tti_json_fail(&r->in, "a second __metadata__");
    r->has_metadata = true;
    TT_TRY(tti_json_expect(&r->in, '{'));
    if (tti_json_peek(&r->in) == '}') {
        r->in.at++;
        return TT_OK;
    }
    while (again) {
        pair p = {0};
        TT_TRY(tti_json_text(&r->in, &p.name));
        TT_TRY(tti_json_expect(&r->in, ':'));
        TT_TRY(tti_json_text(&r->in, &p.value));
        if (!tti_grow(r->in.ctx, &r->pairs, &r->cap_pairs, r->n_pairs + 1, sizeof(p)))
            return TT_ENOMEM;
        r->pairs[r->n_pairs++] = p;
        TT_TRY(tti_json_more(&r->in, '}', &again));
    }
    return TT_OK;
}

static tt_status header(reader *r)
{
    bool again = true;
    if (r->in.at == r->in.end || *r->in.at != '{')
        return tti_json_fail(&r->in, "a header must begin with '{'");
    r->in.at++;
    if (tti_json_peek(&r->in) == '}') {
        r->in.at++;
        again = false;
    }
    while (again) {
        int64_t name;
        TT_TRY(tti_json_text(&r->in, &name));
        TT_TRY(tti_json_expect(&r->in, ':'));
        if (strcmp(r->in.texts.s + name, "__metadata__") == 0)
            TT_TRY(metadata(r));
        else
            TT_TRY(tensor(r, name));
        TT_TRY(tti_json_more(&r->in, '}', &again));
    }
    while (r->in.at < r->in.end && *r->in.at == ' ')
        r->in.at++;
    return r->in.at == r->in.end ? TT_OK
                                 : tti_json_fail(&r->in, "only spaces may follow the header's end");
}

// ---- what the header says --------------------------------------------------------------------

static int by_place(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const entry *)a)->text, ((const entry *)b)->text);
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const pair *)a)->text, ((const pair *)b)->text);
}

static tt_status check_size(const reader *r, const entry *e)
{
    uint64_t bits = (uint64_t)types[e->type].bits;
    for (int k = 0; k < e->rank; k++)
        if (__builtin_mul_overflow(bits, (uint64_t)r->dims[e->first_dim + k], &bits))
            return TT_FAIL(r->in.ctx, TT_EPARSE, "%s: '%.200s': its shape is too large", r->in.path,
                           e->text);
    if (e->begin > e->end || bits % 8 != 0 || bits / 8 != e->end - e->begin)
        return TT_FAIL(r->in.ctx, TT_EPARSE,
                       "%s: '%.200s': offsets %llu to %llu do not hold its %llu bits", r->in.path,
                       e->text, (unsigned long long)e->begin, (unsigned long long)e->end,
                       (unsigned long long)bits);
    return TT_OK;
}

// Each tensor has the size of its shape, and together they cover the data: no hole, no overlap.
static tt_status check_places(reader *r, uint64_t data_bytes)
{
    uint64_t at = 0;
    if (r->n > 1)
        qsort(r->entries, (size_t)r->n, sizeof(entry), by_place);
    for (int64_t i = 0; i < r->n; i++) {
        const entry *e = &r->entries[i];
        TT_TRY(check_size(r, e));
        if (e->begin != at)
            return TT_FAIL(r->in.ctx, TT_EPARSE,
                           "%s: '%.200s' begins at byte %llu of the data, not at %llu", r->in.path,
                           e->text, (unsigned long long)e->begin, (unsigned long long)at);
        at = e->end;
    }
    if (at != data_bytes)
        return TT_FAIL(r->in.ctx, TT_EPARSE, "%s: the file has %llu bytes of data, its header %llu",
                       r->in.path, (unsigned long long)data_bytes, (unsigned long long)at);
    return TT_OK;
}

static tt_status check_names(reader *r)
{
    if (r->n > 1)
        qsort(r->entries, (size_t)r->n, sizeof(entry), by_name);
    if (r->n_pairs > 1)
        qsort(r->pairs, (size_t)r->n_pairs, sizeof(pair), by_key);
    for (int64_t i = 1; i < r->n; i++)
        if (strcmp(r->entries[i - 1].text, r->entries[i].text) == 0)
            return TT_FAIL(r->in.ctx, TT_EPARSE, "%s: two tensors have the name '%.200s'",
                           r->in.path, r->entries[i].text);
    for (int64_t i = 1; i < r->n_pairs; i++)
        if (strcmp(r->pairs[i - 1].text, r->pairs[i].text) == 0)
            return TT_FAIL(r->in.ctx, TT_EPARSE, "%s: metadata '%.200s' is given twice", r->in.path,
                           r->pairs[i].text);
    return TT_OK;
}

// ---- the result ------------------------------------------------------------------------------

static void fill_tensor(const reader *r, const entry *e, tti_named *t)
{
    *t = (tti_named){
        .name = e->text, .dtype = types[e->type].dtype, .bytes = (size_t)(e->end - e->begin)};
    if (e->rank > TT_MAX_RANK)
        t->dtype = (tt_dtype)TT_N_DTYPES;
    if ((int)t->dtype == TT_N_DTYPES)
        return;
    t->shape.rank = e->rank;
    for (int k = 0; k < e->rank; k++)
        t->shape.dim[k] = r->dims[e->first_dim + k];
}

static tt_status fill(reader *r, uint64_t data_begin, tti_safetensors *f)
{
    size_t n = (size_t)r->n;
    f->tensors = tti_calloc(r->in.ctx, n + 1, sizeof(*f->tensors));
    f->offsets = tti_calloc(r->in.ctx, n + 1, sizeof(*f->offsets));
    f->types = tti_calloc(r->in.ctx, n + 1, sizeof(*f->types));
    f->first_dim = tti_calloc(r->in.ctx, n + 1, sizeof(*f->first_dim));
    f->dims = tti_calloc(r->in.ctx, (size_t)r->n_dims + 1, sizeof(*f->dims));
    f->metadata = tti_calloc(r->in.ctx, (size_t)r->n_pairs * 2 + 1, sizeof(*f->metadata));
    if (f->tensors == NULL || f->offsets == NULL || f->types == NULL || f->first_dim == NULL ||
        f->dims == NULL || f->metadata == NULL)
        return TT_ENOMEM;
    int64_t d = 0;
    for (int64_t i = 0; i < r->n; i++) {
        const entry *e = &r->entries[i];
        fill_tensor(r, e, &f->tensors[i]);
        f->offsets[i] = data_begin + e->begin;
        f->types[i] = types[e->type].name;
        f->first_dim[i] = d;
        for (int k = 0; k < e->rank; k++)
            f->dims[d++] = r->dims[e->first_dim + k];
    }
    f->first_dim[n] = d;
    for (int64_t i = 0; i < r->n_pairs; i++) {
        f->metadata[2 * i] = r->in.texts.s + r->pairs[i].name;
        f->metadata[2 * i + 1] = r->in.texts.s + r->pairs[i].value;
    }
    f->n = r->n;
    f->names = r->in.texts.s;
    r->in.texts.s = NULL;
    return TT_OK;
}

static tt_status read_header(reader *r, uint64_t file_bytes, tti_safetensors *f)
{
    uint64_t data_begin = 8 + (uint64_t)(r->in.end - r->in.start);
    TT_TRY(header(r));
    for (int64_t i = 0; i < r->n; i++)
        r->entries[i].text = r->in.texts.s + r->entries[i].name;
    for (int64_t i = 0; i < r->n_pairs; i++)
        r->pairs[i].text = r->in.texts.s + r->pairs[i].name;
    TT_TRY(check_places(r, file_bytes - data_begin));
    TT_TRY(check_names(r));
    return fill(r, data_begin, f);
}

tt_status tti_safetensors_parse(tt_ctx *ctx, const char *path, const char *data, size_t bytes,
                                uint64_t file_bytes, tti_safetensors *out)
{
    uint64_t n = 0;
    tti_safetensors f = {.ctx = ctx, .fd = -1, .file_bytes = file_bytes};
    if (bytes < 8)
        return TT_FAIL(ctx, TT_EPARSE, "%s: is not a safetensors file: it has only %zu bytes", path,
                       bytes);
    for (int i = 8; i-- > 0;)
        n = n << 8 | (unsigned char)data[i];
    if (n > TTI_HEADER_MAX)
        return TT_FAIL(
            ctx, TT_EPARSE,
            "%s: is not a safetensors file: the size of its header would be %llu bytes; weights "
            "are read from safetensors files and from .pt files of torch.save()",
            path, (unsigned long long)n);
    if (n > file_bytes - 8 || n > bytes - 8)
        return TT_FAIL(ctx, TT_EPARSE, "%s: the header has %llu bytes, but the file is shorter",
                       path, (unsigned long long)n);
    reader r = {.in = {.ctx = ctx,
                       .path = path,
                       .start = data + 8,
                       .at = data + 8,
                       .end = data + 8 + n,
                       .texts = {.ctx = ctx}}};
    f.path = tti_strdup(ctx, path);
    tt_status st = f.path == NULL ? TT_ENOMEM : read_header(&r, file_bytes, &f);
    tti_text_free(&r.in.texts);
    tti_free(ctx, r.entries);
    tti_free(ctx, r.dims);
    tti_free(ctx, r.pairs);
    if (st == TT_OK)
        *out = f;
    else
        tti_safetensors_close(&f);
    return st;
}
