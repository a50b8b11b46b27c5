/*
 * memory.c - arrays of the program as a source.
 */
#include "data/data.h"
#include <stddef.h>
#include <string.h>

typedef struct memory {
    const char *array[2];
    size_t bytes[2]; // of a record
    int n;
} memory;

static tt_status memory_read(tt_ctx *ctx, void *self, int64_t i, void *const *out)
{
    const memory *m = self;
    (void)ctx;
    for (int f = 0; f < m->n; f++)
        memcpy(out[f], m->array[f] + (size_t)i * m->bytes[f], m->bytes[f]);
    return TT_OK;
}

static void memory_close(tt_ctx *ctx, void *self)
{
    tti_free(ctx, self);
}

static int64_t element(tt_dtype t, const void *array, int64_t i)
{
    if (t == TT_I32)
        return ((const int32_t *)array)[i];
    return t == TT_I64 ? ((const int64_t *)array)[i] : ((const uint8_t *)array)[i];
}

// One more than the largest of integers that say a class; 0 if some are negative, or no integers.
static int64_t count_classes(tt_dtype t, const tt_shape *shape, const void *array, int64_t count)
{
    int64_t most = -1;
    if (shape->rank != 0 || (t != TT_I32 && t != TT_I64 && t != TT_U8))
        return 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t v = element(t, array, i);
        if (v < 0 || v >= INT32_MAX)
            return 0;
        most = TTI_MAX(most, v);
    }
    return most + 1;
}

static tt_status memory_field(tt_ctx *ctx, const char *name, tt_dtype dtype, const tt_shape *shape,
                              const void *array, int64_t count, tt_field *out)
{
    *out = (tt_field){.dtype = dtype, .shape = *shape};
    memcpy(out->name, name, strlen(name) + 1);
    int64_t n = (int64_t)tt_dtype_bytes(dtype);
    bool ok = shape->rank >= 0 && shape->rank < TT_MAX_RANK && n > 0;
    for (int i = 0; ok && i < shape->rank; i++)
        ok = shape->dim[i] > 0 && tti_mul_i64(n, shape->dim[i], &n);
    char text[TT_SHAPE_TEXT];
    if (!ok || !tti_mul_i64(n, count, &n))
        return TT_FAIL(ctx, TT_ESHAPE,
                       "memory: %s: cannot use %lld records of shape %s and type %s", name,
                       (long long)count, tt_shape_text(shape, text), tt_dtype_name(dtype));
    out->classes = count_classes(dtype, shape, array, count);
    return TT_OK;
}

static tt_status memory_open(tt_ctx *ctx, const void *options, tt_source *out)
{
    const tt_memory_opts *o = options;
    if (o->x == NULL)
        return TT_FAIL(ctx, TT_EINVAL, "memory: x must be given: an array of the program");
    if (o->count < 1)
        return TT_FAIL(ctx, TT_EINVAL, "memory: count is %lld; it must be at least 1",
                       (long long)o->count);
    tt_source s = {.count = o->count, .read = memory_read, .close = memory_close, .n_fields = 1};
    TT_TRY(memory_field(ctx, "x", o->x_dtype, &o->x_shape, o->x, o->count, &s.fields[0]));
    if (o->y != NULL) {
        TT_TRY(memory_field(ctx, "y", o->y_dtype, &o->y_shape, o->y, o->count, &s.fields[1]));
        s.n_fields = 2;
    }
    memory *m = tti_calloc(ctx, 1, sizeof(*m));
    if (m == NULL)
        return TT_ENOMEM;
    *m = (memory){.array = {o->x, o->y}, .n = s.n_fields};
    for (int f = 0; f < m->n; f++)
        m->bytes[f] = tti_field_bytes(&s.fields[f]);
    s.self = m;
    *out = s;
    return TT_OK;
}

// The arrays themselves have no rows: no text can name them.
static const tt_option memory_options[] = {
    {"count", TT_OPT_INT, NULL, "number of records", offsetof(tt_memory_opts, count), 0, 0, NULL},
    TT_OPTION_END,
};

const tt_source_def tti_source_memory = {
    .name = "memory",
    .help = "arrays in the memory of a C program; not for job files",
    .options = memory_options,
    .options_size = sizeof(tt_memory_opts),
    .open = memory_open,
};
