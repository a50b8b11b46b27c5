/*
 * safetensors.c - opens, reads and writes safetensors files. header.c reads the table.
 *
 * Elements are read by offset into memory of our own: a file that another program changes meanwhile
 * can give wrong numbers, never a crash.
 */
#include "save/safetensors.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ---- reading ---------------------------------------------------------------------------------

static tt_status open_table(tt_ctx *ctx, const char *path, int fd, uint64_t bytes,
                            tti_safetensors *out)
{
    unsigned char head[8] = {0};
    uint64_t n = 0;
    TT_TRY(tti_file_pread(ctx, path, fd, head, (size_t)TTI_MIN(bytes, 8), 0));
    for (int i = 8; i-- > 0;)
        n = n << 8 | head[i];
    // A length that cannot be is left to the parser, which says so.
    size_t want = (size_t)TTI_MIN(bytes, 8 + TTI_MIN(n, TTI_HEADER_MAX));
    char *data = tti_alloc(ctx, want);
    if (data == NULL)
        return TT_ENOMEM;
    tt_status st = tti_file_pread(ctx, path, fd, data, want, 0);
    if (st == TT_OK)
        st = tti_safetensors_parse(ctx, path, data, want, bytes, out);
    tti_free(ctx, data);
    return st;
}

tt_status tti_safetensors_open(tt_ctx *ctx, const char *path, tti_safetensors *out)
{
    int fd;
    uint64_t bytes;
    TT_TRY(tti_file_open(ctx, path, &fd, &bytes));
    tt_status st = open_table(ctx, path, fd, bytes, out);
    if (st == TT_OK)
        out->fd = fd;
    else
        close(fd);
    return st;
}

void tti_safetensors_close(tti_safetensors *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
    tti_free(f->ctx, f->path);
    tti_free(f->ctx, f->tensors);
    tti_free(f->ctx, f->offsets);
    tti_free(f->ctx, f->types);
    tti_free(f->ctx, f->dims);
    tti_free(f->ctx, f->first_dim);
    tti_free(f->ctx, f->metadata);
    tti_free(f->ctx, f->names);
    *f = (tti_safetensors){.ctx = f->ctx, .fd = -1};
}

int64_t tti_safetensors_find(const tti_safetensors *f, const char *name)
{
    int64_t low = 0, high = f->n;
    while (low < high) {
        int64_t mid = low + (high - low) / 2;
        int c = strcmp(f->tensors[mid].name, name);
        if (c == 0)
            return mid;
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return -1;
}

tt_status tti_safetensors_usable(const tti_safetensors *f, int64_t i)
{
    const tti_named *t = &f->tensors[i];
    if ((int)t->dtype != TT_N_DTYPES)
        return TT_OK;
    int64_t rank = f->first_dim[i + 1] - f->first_dim[i];
    if (rank > TT_MAX_RANK)
        return TT_FAIL(f->ctx, TT_ESHAPE, "%s: '%.200s' has %lld axes; Tutti supports up to %d",
                       f->path, t->name, (long long)rank, TT_MAX_RANK);
    return TT_FAIL(f->ctx, TT_EDTYPE, "%s: '%.200s' has type %s, which Tutti does not support",
                   f->path, t->name, f->types[i]);
}

tt_status tti_safetensors_read(tti_safetensors *f, int64_t i, void *out)
{
    TT_TRY(tti_safetensors_usable(f, i));
    return tti_file_pread(f->ctx, f->path, f->fd, out, f->tensors[i].bytes, f->offsets[i]);
}

// ---- writing ---------------------------------------------------------------------------------

static int by_name(const void *a, const void *b)
{
    const tti_named *x = *(const tti_named *const *)a, *y = *(const tti_named *const *)b;
    return strcmp(x->name, y->name);
}

static tt_status check_one(tt_ctx *ctx, const char *path, const tti_named *t)
{
    size_t bytes = tt_dtype_bytes(t->dtype);
    for (const char *s = t->name; *s != '\0';) {
        int n = tti_utf8_length(s, 4);
        if (n == 0)
            return TT_FAIL(ctx, TT_EINVAL, "%s: the name '%.200s' is not UTF-8", path, t->name);
        s += n;
    }
    if (strcmp(t->name, "__metadata__") == 0)
        return TT_FAIL(ctx, TT_EINVAL, "%s: a tensor cannot have the name '%s'", path, t->name);
    for (int k = 0; k < t->shape.rank; k++)
        if (t->shape.dim[k] < 0 || !tti_mul_size(bytes, (size_t)t->shape.dim[k], &bytes))
            return TT_FAIL(ctx, TT_ESHAPE, "%s: '%.200s' has no size", path, t->name);
    if (bytes != t->bytes)
        return TT_FAIL(ctx, TT_ESHAPE, "%s: '%.200s' has %zu bytes, its shape %zu", path, t->name,
                       t->bytes, bytes);
    return TT_OK;
}

static tt_status sort_tensors(tt_ctx *ctx, const char *path, const tti_named *tensors, int64_t n,
                              const tti_named **sorted)
{
    for (int64_t i = 0; i < n; i++) {
        TT_TRY(check_one(ctx, path, &tensors[i]));
        sorted[i] = &tensors[i];
    }
    if (n > 1)
        qsort(sorted, (size_t)n, sizeof(*sorted), by_name);
    for (int64_t i = 1; i < n; i++)
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
            return TT_FAIL(ctx, TT_EINVAL, "%s: two tensors have the name '%.200s'", path,
                           sorted[i]->name);
    return TT_OK;
}

// Where elements of size bytes begin: behind those of larger elements.
static bool begin_of(const tti_named *const *sorted, int64_t n, size_t bytes, uint64_t *begin)
{
    *begin = 0;
    for (int64_t i = 0; i < n; i++)
        if (tt_dtype_bytes(sorted[i]->dtype) > bytes &&
            __builtin_add_overflow(*begin, (uint64_t)sorted[i]->bytes, begin))
            return false;
    return true;
}

static void add_entry(tti_text *t, const tti_named *x, uint64_t begin)
{
    tti_text_json(t, x->name);
    tti_text_add(t, ":{\"dtype\":\"%s\",\"shape\":[", tti_safetensors_type(x->dtype));
    for (int k = 0; k < x->shape.rank; k++)
        tti_text_add(t, "%s%lld", k > 0 ? "," : "", (long long)x->shape.dim[k]);
    tti_text_add(t, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)begin,
                 (unsigned long long)(begin + x->bytes));
}

static tt_status build_header(tti_writer *w, const tti_named *const *sorted, int64_t n,
                              const char *const *metadata, tti_text *t)
{
    uint64_t begin[9]; // by bytes of an element: 1, 2, 4, 8
    const char *comma = "";
    for (size_t bytes = 1; bytes <= 8; bytes *= 2)
        if (!begin_of(sorted, n, bytes, &begin[bytes]))
            return TT_FAIL(w->ctx, TT_EINVAL, "%s: more than 2^64 bytes", w->path);
    tti_text_put(t, "{", 1);
    if (metadata != NULL && metadata[0] != NULL) {
        for (const char *const *m = metadata; *m != NULL; m += 2) {
            tti_text_add(t, "%s", m == metadata ? "\"__metadata__\":{" : ",");
            tti_text_json(t, m[0]);
            tti_text_put(t, ":", 1);
            tti_text_json(t, m[1]);
        }
        tti_text_put(t, "}", 1);
        comma = ",";
    }
    for (int64_t i = 0; i < n; i++, comma = ",") {
        uint64_t *at = &begin[tt_dtype_bytes(sorted[i]->dtype)];
        tti_text_add(t, "%s", comma);
        add_entry(t, sorted[i], *at);
        *at += sorted[i]->bytes;
    }
    tti_text_put(t, "}", 1);
    while (!t->failed && t->n % 8 != 0)
        tti_text_put(t, " ", 1);
    if (t->failed)
        return TT_ENOMEM;
    if (t->n > TTI_HEADER_MAX)
        return TT_FAIL(w->ctx, TT_EINVAL,
                       "%s: a header of %lld bytes is larger than the format allows", w->path,
                       (long long)t->n);
    return TT_OK;
}

static tt_status put_sorted(tti_writer *w, const tti_named *const *sorted, int64_t n,
                            const char *const *metadata)
{
    unsigned char head[8];
    tti_text t = {.ctx = w->ctx};
    tt_status st = build_header(w, sorted, n, metadata, &t);
    for (int i = 0; i < 8; i++)
        head[i] = (unsigned char)((uint64_t)t.n >> 8 * i);
    if (st == TT_OK)
        st = tti_writer_add(w, head, sizeof(head));
    if (st == TT_OK)
        st = tti_writer_add(w, t.s, (size_t)t.n);
    tti_text_free(&t);
    for (size_t bytes = 8; bytes >= 1; bytes /= 2)
        for (int64_t i = 0; i < n && st == TT_OK; i++)
            if (tt_dtype_bytes(sorted[i]->dtype) == bytes)
                st = tti_writer_add(w, sorted[i]->data, sorted[i]->bytes);
    return st;
}

tt_status tti_safetensors_put(tti_writer *w, const tti_named *tensors, int64_t n,
                              const char *const *metadata)
{
    const tti_named **sorted = tti_calloc(w->ctx, (size_t)n + 1, sizeof(*sorted));
    if (sorted == NULL)
        return TT_ENOMEM;
    tt_status st = sort_tensors(w->ctx, w->path, tensors, n, sorted);
    if (st == TT_OK)
        st = put_sorted(w, sorted, n, metadata);
    tti_free(w->ctx, sorted);
    return st;
}

tt_status tti_safetensors_write(tt_ctx *ctx, const char *path, const tti_named *tensors, int64_t n,
                                const char *const *metadata, tt_hash *hash)
{
    tti_writer w;
    TT_TRY(tti_writer_open(ctx, path, true, &w));
    tt_status st = tti_safetensors_put(&w, tensors, n, metadata);
    if (st != TT_OK) {
        tti_writer_drop(&w);
        return st;
    }
    return tti_writer_close(&w, hash);
}
