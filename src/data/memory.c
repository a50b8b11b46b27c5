/*
 * memory.c - arrays of the program as a source.
 */
#include "data/data.h"
#include <stddef.h>
#include <string.h>

typedef struct memory {
    const char *array[TT_MAX_FIELDS];
    size_t bytes[TT_MAX_FIELDS]; // of a record
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

static tt_status memory_field(tt_ctx *ctx, const tt_array *a, int64_t count, tt_field *out)
{
    const tt_shape *shape = &a->shape;
    *out = (tt_field){.dtype = a->dtype, .shape = *shape};
    if (a->name[0] == '\0' || strlen(a->name) >= sizeof(out->name))
        return TT_FAIL(ctx, TT_EINVAL, "memory: a field cannot be called '%s'; use 1 to %d bytes",
                       a->name, (int)sizeof(out->name) - 1);
    memcpy(out->name, a->name, strlen(a->name) + 1);
    int64_t n = (int64_t)tt_dtype_bytes(a->dtype);
    bool ok = shape->rank >= 0 && shape->rank < TT_MAX_RANK && n > 0;
    for (int i = 0; ok && i < shape->rank; i++)
        ok = shape->dim[i] > 0 && tti_mul_i64(n, shape->dim[i], &n);
    char text[TT_SHAPE_TEXT];
    if (!ok || !tti_mul_i64(n, count, &n))
        return TT_FAIL(ctx, TT_ESHAPE,
                       "memory: %s: cannot use %lld records of shape %s and type %s", a->name,
                       (long long)count, tt_shape_text(shape, text), tt_dtype_name(a->dtype));
    out->classes = count_classes(a->dtype, shape, a->data, count);
    return TT_OK;
}

// The arrays, given as x and y or as fields; returns how many, -1: recorded.
static int memory_arrays(tt_ctx *ctx, const tt_memory_opts *o, tt_array out[TT_MAX_FIELDS])
{
    const tt_array *given[TT_MAX_FIELDS];
    int n;
    memcpy(given, o->fields, sizeof(given));
    tt_status st = TTI_OPTS_LIST(ctx, "memory: field", given, out, &n);
    if (st == TT_OK && n == 0 && o->x == NULL)
        st = TT_FAIL(ctx, TT_EINVAL, "memory: x must be given, or fields: arrays of the program");
    else if (st == TT_OK && n > 0 && (o->x != NULL || o->y != NULL))
        st = TT_FAIL(ctx, TT_EINVAL, "memory: give either x and y, or fields, not both");
    if (st != TT_OK)
        return -1;
    if (n == 0) {
        out[0] = *tt_array("x", o->x, o->x_dtype, o->x_shape);
        out[1] = *tt_array("y", o->y, o->y_dtype, o->y_shape);
        return o->y != NULL ? 2 : 1;
    }
    for (int i = 0; i < n; i++) {
        if (out[i].name != NULL && out[i].data != NULL)
            continue;
        (void)TT_FAIL(ctx, TT_EINVAL, "memory: field %d, '%s', has no %s", i,
                      out[i].name != NULL ? out[i].name : "",
                      out[i].name == NULL ? "name" : "data");
        return -1;
    }
    return n;
}

static tt_status memory_open(tt_ctx *ctx, const void *options, tt_source *out)
{
    const tt_memory_opts *o = options;
    tt_array arrays[TT_MAX_FIELDS];
    int n = memory_arrays(ctx, o, arrays);
    if (n < 0)
        return tt_status_of(ctx);
    if (o->count < 1)
        return TT_FAIL(ctx, TT_EINVAL, "memory: count is %lld; it must be at least 1",
                       (long long)o->count);
    tt_source s = {.count = o->count, .read = memory_read, .close = memory_close, .n_fields = n};
    for (int f = 0; f < n; f++)
        TT_TRY(memory_field(ctx, &arrays[f], o->count, &s.fields[f]));
    memory *m = tti_calloc(ctx, 1, sizeof(*m));
    if (m == NULL)
        return TT_ENOMEM;
    m->n = n;
    for (int f = 0; f < n; f++) {
        m->array[f] = arrays[f].data;
        m->bytes[f] = tti_field_bytes(&s.fields[f]);
    }
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
