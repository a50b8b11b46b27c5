/*
 * pt.c - reads files of torch.save(): a zip archive with a pickle, data.pkl, that names tensors and
 * an entry, data/KEY, with the bytes of each storage. Elements are copied into their own order.
 */
#include "save/pt.h"
#include "data/npy.h"
#include "save/pickle.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PICKLE_MAX ((int64_t)256 << 20)

static const struct {
    const char *storage, *type; // in PyTorch, in safetensors
    tt_dtype dtype;
    size_t bytes;
} types[] = {
    {"FloatStorage", "F32", TT_F32, 4},      {"DoubleStorage", "F64", TT_F64, 8},
    {"HalfStorage", "F16", TT_F16, 2},       {"BFloat16Storage", "BF16", TT_BF16, 2},
    {"LongStorage", "I64", TT_I64, 8},       {"IntStorage", "I32", TT_I32, 4},
    {"ByteStorage", "U8", TT_U8, 1},         {"BoolStorage", "BOOL", TT_BOOL, 1},
    {"ShortStorage", "I16", TT_N_DTYPES, 2}, {"CharStorage", "I8", TT_N_DTYPES, 1},
};

typedef struct reader {
    tt_ctx *ctx;
    const char *path;
    tti_bytes zip;
    char folder[256]; // of the archive's entries: "model/"
    tti_pickle pickle;
    tti_safetensors *out;
    char *data;
    size_t bytes;
} reader;

bool tti_is_pt(const void *head, size_t bytes)
{
    return bytes >= 4 &&
           (memcmp(head, "PK\x03\x04", 4) == 0 || memcmp(head, "\x80\x02\x8a\x0a", 4) == 0);
}

static int type_of(const tti_pickled *t)
{
    for (int i = 0; i < TTI_COUNT(types); i++)
        if (strcmp(types[i].storage, t->type) == 0)
            return i;
    return -1;
}

// ---- the archive -----------------------------------------------------------------------------

static tt_status read_entry(reader *r, const char *name, int64_t max, char **out, int64_t *n)
{
    char whole[512];
    tti_bytes b = {.fd = -1};
    snprintf(whole, sizeof(whole), "%s%.200s", r->folder, name);
    TT_TRY(tti_npz_find(r->ctx, &r->zip, whole, &b));
    tt_status st = TT_OK;
    *out = NULL;
    *n = b.n;
    if (b.n > max)
        st = TT_FAIL(r->ctx, TT_ELIMIT, "%s: '%s' has %lld bytes; at most %lld", r->path, whole,
                     (long long)b.n, (long long)max);
    else if ((*out = tti_alloc(r->ctx, (size_t)b.n + 1)) == NULL)
        st = TT_ENOMEM;
    else
        st = tti_bytes_read(r->ctx, &b, 0, (size_t)b.n, *out);
    tti_bytes_close(r->ctx, &b);
    if (st != TT_OK) {
        tti_free(r->ctx, *out);
        *out = NULL;
    }
    return st;
}

// Versions that do not say the order of bytes wrote little-endian numbers.
static tt_status check_order(reader *r)
{
    char name[280], *text = NULL;
    int64_t n = 0;
    bool has = false;
    snprintf(name, sizeof(name), "%sbyteorder", r->folder);
    TT_TRY(tti_npz_has(r->ctx, &r->zip, name, &has));
    if (!has)
        return TT_OK;
    TT_TRY(read_entry(r, "byteorder", 64, &text, &n));
    bool little = n >= 6 && memcmp(text, "little", 6) == 0;
    tti_free(r->ctx, text);
    return little
               ? TT_OK
               : TT_FAIL(r->ctx, TT_EUNSUPPORTED, "%s: its numbers are not little-endian", r->path);
}

static tt_status read_pickle(reader *r)
{
    char name[256], *text = NULL;
    int64_t n;
    bool found;
    TT_TRY(tti_npz_ending(r->ctx, &r->zip, "data.pkl", &found, name));
    if (!found)
        return TT_FAIL(r->ctx, TT_EUNSUPPORTED,
                       "%s: is a zip archive, but not from torch.save(): it has no data.pkl",
                       r->path);
    memcpy(r->folder, name, strlen(name) - 8);
    r->folder[strlen(name) - 8] = '\0';
    TT_TRY(check_order(r));
    TT_TRY(read_entry(r, "data.pkl", PICKLE_MAX, &text, &n));
    tt_status st = tti_pickle_read(r->ctx, r->path, text, (size_t)n, &r->pickle);
    tti_free(r->ctx, text);
    return st;
}

// ---- tensors ---------------------------------------------------------------------------------

// Elements of a tensor; -1 (recorded) if its shape, strides and storage do not go together.
static int64_t count_of(reader *r, const tti_pickled *t)
{
    int64_t n = 1, far = t->offset;
    bool ok = t->rank <= TT_MAX_RANK && t->offset >= 0 && t->offset <= t->numel;
    for (int i = 0; ok && i < t->rank; i++) {
        int64_t step;
        ok = t->shape[i] >= 0 && t->stride[i] >= 0 && tti_mul_i64(n, t->shape[i], &n) &&
             tti_mul_i64(t->stride[i], TTI_MAX(t->shape[i] - 1, 0), &step) &&
             !__builtin_add_overflow(far, step, &far);
    }
    if (ok && n <= t->numel && (n == 0 || far < t->numel))
        return n;
    (void)TT_FAIL(r->ctx, TT_ESHAPE, "%s: '%.200s' does not fit its storage of %lld elements",
                  r->path, t->name, (long long)t->numel);
    return -1;
}

static void copy(const tti_pickled *t, size_t size, const char *storage, char *to, int64_t n)
{
    int64_t at[TT_MAX_RANK] = {0}, place = t->offset;
    for (int64_t i = 0; i < n; i++) {
        memcpy(to + (size_t)i * size, storage + (size_t)place * size, size);
        for (int k = t->rank - 1; k >= 0; k--) {
            place += t->stride[k];
            if (++at[k] < t->shape[k])
                break;
            place -= t->stride[k] * t->shape[k];
            at[k] = 0;
        }
    }
}

static tt_status read_tensor(reader *r, const tti_pickled *t, tti_named *out, char *to)
{
    char name[280], *storage = NULL;
    int64_t n, count = count_of(r, t);
    int type = type_of(t);
    size_t size = types[type].bytes;
    snprintf(name, sizeof(name), "data/%.200s", t->key);
    TT_TRY(count < 0 ? tt_status_of(r->ctx) : TT_OK);
    TT_TRY(read_entry(r, name, INT64_MAX / 4, &storage, &n));
    if ((uint64_t)n / size < (uint64_t)t->numel) {
        tti_free(r->ctx, storage);
        return TT_FAIL(r->ctx, TT_EIO, "%s: the storage of '%.200s' has %lld bytes instead of %lld",
                       r->path, t->name, (long long)n, (long long)t->numel * (long long)size);
    }
    copy(t, size, storage, to, count);
    tti_free(r->ctx, storage);
    *out = (tti_named){.name = t->name, .dtype = types[type].dtype, .data = to};
    out->bytes = (size_t)count * size;
    out->shape.rank = t->rank;
    memcpy(out->shape.dim, t->shape, sizeof(t->shape));
    return TT_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const tti_pickled *)a)->name, ((const tti_pickled *)b)->name);
}

// Room for all elements, and the table's parts.
static tt_status make_room(reader *r)
{
    tti_safetensors *o = r->out;
    size_t n = (size_t)r->pickle.n, names = 0;
    qsort(r->pickle.tensors, n, sizeof(*r->pickle.tensors), by_name);
    for (size_t i = 0; i < n; i++) {
        int64_t count = count_of(r, &r->pickle.tensors[i]);
        if (count < 0)
            return tt_status_of(r->ctx);
        if (i > 0 && strcmp(r->pickle.tensors[i - 1].name, r->pickle.tensors[i].name) == 0)
            return TT_FAIL(r->ctx, TT_EPARSE, "%s: has '%.200s' twice", r->path,
                           r->pickle.tensors[i].name);
        r->bytes += ((size_t)count * types[type_of(&r->pickle.tensors[i])].bytes + 63) / 64 * 64;
        names += strlen(r->pickle.tensors[i].name) + 1;
    }
    o->path = tti_strdup(r->ctx, r->path);
    o->tensors = tti_calloc(r->ctx, n + 1, sizeof(*o->tensors));
    o->offsets = tti_calloc(r->ctx, n + 1, sizeof(*o->offsets));
    o->types = tti_calloc(r->ctx, n + 1, sizeof(*o->types));
    o->first_dim = tti_calloc(r->ctx, n + 2, sizeof(*o->first_dim));
    o->dims = tti_calloc(r->ctx, n * TT_MAX_RANK + 1, sizeof(*o->dims));
    o->metadata = tti_calloc(r->ctx, 3, sizeof(*o->metadata));
    o->names = tti_alloc(r->ctx, names + 16);
    r->data = tti_alloc(r->ctx, r->bytes + 64);
    bool ok = o->path != NULL && o->tensors != NULL && o->offsets != NULL && o->types != NULL &&
              o->first_dim != NULL && o->dims != NULL && o->metadata != NULL && o->names != NULL &&
              r->data != NULL;
    return ok ? TT_OK : TT_ENOMEM;
}

static tt_status fill_table(reader *r)
{
    tti_safetensors *o = r->out;
    size_t at = 0;
    memcpy(o->names, "format\0pt", 10);
    o->metadata[0] = o->names;
    o->metadata[1] = o->names + 7;
    char *name = o->names + 10;
    for (int64_t i = 0; i < r->pickle.n; i++) {
        const tti_pickled *t = &r->pickle.tensors[i];
        TT_TRY(read_tensor(r, t, &o->tensors[i], r->data + at));
        o->offsets[i] = at;
        at += (o->tensors[i].bytes + 63) / 64 * 64;
        o->types[i] = types[type_of(t)].type;
        memcpy(o->dims + o->first_dim[i], t->shape, sizeof(*o->dims) * (size_t)t->rank);
        o->first_dim[i + 1] = o->first_dim[i] + t->rank;
        o->tensors[i].name = strcpy(name, t->name);
        name += strlen(name) + 1;
        o->n = i + 1;
    }
    o->file_bytes = (uint64_t)r->zip.n;
    return TT_OK;
}

static tt_status read_all(reader *r)
{
    unsigned char head[4] = {0};
    TT_TRY(tti_bytes_open(r->ctx, r->path, 0, &r->zip));
    TT_TRY(tti_bytes_read(r->ctx, &r->zip, 0, (size_t)TTI_MIN(r->zip.n, 4), head));
    if (memcmp(head, "PK\x03\x04", 4) != 0)
        return TT_FAIL(r->ctx, TT_EUNSUPPORTED,
                       "%s: was written by torch.save() in the format before version 1.6; load and "
                       "save it again, preferably as safetensors",
                       r->path);
    TT_TRY(read_pickle(r));
    TT_TRY(make_room(r));
    return fill_table(r);
}

tt_status tti_pt_read(tt_ctx *ctx, const char *path, tti_safetensors *out, char **data)
{
    *out = (tti_safetensors){.ctx = ctx, .fd = -1};
    reader r = {.ctx = ctx, .path = path, .zip = {.fd = -1}, .out = out};
    tt_status st = read_all(&r);
    tti_pickle_free(ctx, &r.pickle);
    tti_bytes_close(ctx, &r.zip);
    if (st == TT_OK) {
        *data = r.data;
        return TT_OK;
    }
    tti_free(ctx, r.data);
    tti_safetensors_close(out);
    return st;
}
