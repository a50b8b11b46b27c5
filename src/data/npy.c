/*
 * npy.c - NumPy's arrays as a source. f4 and f8 become f32, integers i32. u1 stays u8 and b1 bool
 * as an input; as a target they are classes, i32.
 */
#include "data/npy.h"
#include "data/data.h"
#include <stddef.h>
#include <string.h>

#define CHUNK 4096

typedef struct arrays {
    tti_bytes zip; // in which they lie; path NULL: in none
    int n;
    tti_npy array[TT_MAX_FIELDS];
    tt_dtype dtype[TT_MAX_FIELDS];
} arrays;

// ---- elements --------------------------------------------------------------------------------

static int64_t integer_at(const unsigned char *p, tti_npy_type type)
{
    uint64_t v = 0;
    int bytes = type == TTI_NPY_I8 ? 8 : type == TTI_NPY_I4 ? 4 : type == TTI_NPY_U2 ? 2 : 1;
    for (int i = bytes - 1; i >= 0; i--)
        v = v << 8 | p[i];
    return type == TTI_NPY_I4 ? (int32_t)(uint32_t)v : (int64_t)v;
}

static float float_at(const unsigned char *p, tti_npy_type type)
{
    uint64_t v = 0;
    for (int i = type == TTI_NPY_F4 ? 3 : 7; i >= 0; i--)
        v = v << 8 | p[i];
    if (type == TTI_NPY_F4) {
        uint32_t u = (uint32_t)v;
        float f;
        memcpy(&f, &u, sizeof(f));
        return f;
    }
    double d;
    memcpy(&d, &v, sizeof(d));
    return (float)d;
}

// n elements of raw to place at of out.
static tt_status convert(tt_ctx *ctx, const tti_npy *f, tt_dtype dtype, int64_t record,
                         const unsigned char *raw, int64_t n, int64_t at, void *out)
{
    for (int64_t k = 0; k < n; k++, raw += f->element) {
        if (dtype == TT_F32) {
            ((float *)out)[at + k] = float_at(raw, f->type);
            continue;
        }
        int64_t v = integer_at(raw, f->type);
        if (v < INT32_MIN || v > INT32_MAX)
            return TT_FAIL(ctx, TT_EPARSE,
                           "%s: record %lld: the value %lld does not fit into 32 bits",
                           f->bytes.path, (long long)record, (long long)v);
        if (dtype == TT_I32)
            ((int32_t *)out)[at + k] = (int32_t)v;
        else
            ((uint8_t *)out)[at + k] = dtype == TT_BOOL ? v != 0 : (uint8_t)v;
    }
    return TT_OK;
}

static tt_status read_array(tt_ctx *ctx, const tti_npy *f, tt_dtype dtype, int64_t i, void *out)
{
    unsigned char raw[CHUNK];
    int64_t at = f->header + i * f->n * f->element, per = CHUNK / f->element;
    for (int64_t done = 0; done < f->n; done += per) {
        int64_t n = TTI_MIN(f->n - done, per);
        TT_TRY(
            tti_bytes_read(ctx, &f->bytes, at + done * f->element, (size_t)(n * f->element), raw));
        TT_TRY(convert(ctx, f, dtype, i, raw, n, done, out));
    }
    return TT_OK;
}

static tt_status npy_read(tt_ctx *ctx, void *self, int64_t i, void *const *out)
{
    const arrays *a = self;
    for (int f = 0; f < a->n; f++)
        TT_TRY(read_array(ctx, &a->array[f], a->dtype[f], i, out[f]));
    return TT_OK;
}

// ---- opening ---------------------------------------------------------------------------------

// One more than the largest of the numbers that say a class; 0 if some are negative.
static tt_status count_classes(tt_ctx *ctx, const tti_npy *f, int64_t *out)
{
    unsigned char raw[CHUNK];
    int32_t v[CHUNK], most = -1;
    int64_t per = CHUNK / f->element;
    bool has_negative = false;
    for (int64_t i = 0; i < f->count; i += per) {
        int64_t n = TTI_MIN(f->count - i, per);
        TT_TRY(tti_bytes_read(ctx, &f->bytes, f->header + i * f->element, (size_t)(n * f->element),
                              raw));
        for (int64_t k = 0; k < n; k++) {
            TT_TRY(convert(ctx, f, TT_I32, i + k, raw + k * f->element, 1, k, v));
            has_negative |= v[k] < 0;
            most = TTI_MAX(most, v[k]);
        }
    }
    *out = has_negative || most == INT32_MAX ? 0 : (int64_t)most + 1;
    return TT_OK;
}

static tt_dtype dtype_of(const tti_npy *f, bool is_target)
{
    if (f->type == TTI_NPY_F4 || f->type == TTI_NPY_F8)
        return TT_F32;
    if (is_target || (f->type != TTI_NPY_U1 && f->type != TTI_NPY_B1))
        return TT_I32;
    return f->type == TTI_NPY_U1 ? TT_U8 : TT_BOOL;
}

static tt_status add_array(tt_ctx *ctx, arrays *a, const char *name, bool is_target, tti_bytes *b,
                           tt_source *s)
{
    int i = a->n;
    tti_npy *f = &a->array[i];
    TT_TRY(tti_npy_parse(ctx, b, f));
    a->n++;
    a->dtype[i] = dtype_of(f, is_target);
    s->fields[i] = (tt_field){.dtype = a->dtype[i], .shape = f->shape};
    strncpy(s->fields[i].name, name, sizeof(s->fields[i].name) - 1);
    if (i > 0 && f->count != a->array[0].count)
        return TT_FAIL(ctx, TT_EIO, "%s: has %lld records, but '%s' has %lld", f->bytes.path,
                       (long long)f->count, a->array[0].bytes.path, (long long)a->array[0].count);
    if (is_target && a->dtype[i] == TT_I32 && f->shape.rank == 0)
        TT_TRY(count_classes(ctx, f, &s->fields[i].classes));
    return TT_OK;
}

static void npy_close(tt_ctx *ctx, void *self)
{
    arrays *a = self;
    for (int i = 0; i < a->n; i++)
        tti_bytes_close(ctx, &a->array[i].bytes);
    tti_bytes_close(ctx, &a->zip);
    tti_free(ctx, a);
}

tt_status tti_npy_source(tt_ctx *ctx, tti_bytes *x, tti_bytes *y, tti_bytes *zip, tt_source *out)
{
    tt_source s = {.n_fields = y != NULL ? 2 : 1, .read = npy_read, .close = npy_close};
    arrays *a = tti_calloc(ctx, 1, sizeof(*a));
    tt_status st = a == NULL ? TT_ENOMEM : add_array(ctx, a, "x", false, x, &s);
    if (st == TT_OK && y != NULL)
        st = add_array(ctx, a, "y", true, y, &s);
    if (a != NULL && zip != NULL) {
        a->zip = *zip;
        *zip = (tti_bytes){.fd = -1};
    }
    if (st != TT_OK) {
        if (a != NULL)
            npy_close(ctx, a);
        tti_bytes_close(ctx, x);
        if (y != NULL)
            tti_bytes_close(ctx, y);
        if (zip != NULL)
            tti_bytes_close(ctx, zip);
        return st;
    }
    s.count = a->array[0].count;
    s.self = a;
    *out = s;
    return TT_OK;
}

tt_status tti_npz_source(tt_ctx *ctx, tti_bytes *zip, const char *x, const char *y, tt_source *out)
{
    tti_bytes bx = {.fd = -1}, by = {.fd = -1};
    bool has_y = y[0] != '\0';
    tt_status st = TT_OK;
    if (!has_y)
        st = tti_npz_has(ctx, zip, y = "y", &has_y);
    if (st == TT_OK)
        st = tti_npz_find(ctx, zip, x[0] != '\0' ? x : "x", &bx);
    if (st == TT_OK && has_y)
        st = tti_npz_find(ctx, zip, y, &by);
    if (st != TT_OK) {
        tti_bytes_close(ctx, &bx);
        tti_bytes_close(ctx, zip);
        return st;
    }
    return tti_npy_source(ctx, &bx, has_y ? &by : NULL, zip, out);
}

tt_status tti_npz_fields(tt_ctx *ctx, const char *path, const char *const *names, int n_inputs,
                         int n, tt_source *out)
{
    tt_source s = {.n_fields = n, .read = npy_read, .close = npy_close};
    arrays *a = tti_calloc(ctx, 1, sizeof(*a));
    if (a == NULL)
        return TT_ENOMEM;
    a->zip = (tti_bytes){.fd = -1};
    tt_status st = tti_bytes_open(ctx, path, 0, &a->zip);
    for (int i = 0; i < n && st == TT_OK; i++) {
        tti_bytes b = {.fd = -1};
        st = tti_npz_find(ctx, &a->zip, names[i], &b);
        if (st == TT_OK)
            st = add_array(ctx, a, names[i], i >= n_inputs, &b, &s);
        if (st != TT_OK)
            tti_bytes_close(ctx, &b);
    }
    if (st != TT_OK) {
        npy_close(ctx, a);
        return st;
    }
    s.count = a->array[0].count;
    s.self = a;
    *out = s;
    return TT_OK;
}

static tt_status npy_open(tt_ctx *ctx, const void *options, tt_source *out)
{
    const tt_npy_opts *o = options;
    tti_bytes x = {.fd = -1}, y = {.fd = -1};
    if (o->file[0] != '\0') {
        TT_TRY(tti_bytes_open_as(ctx, o->file, 0, tti_npy_promise, &x));
        return tti_npz_source(ctx, &x, o->x, o->y, out);
    }
    if (o->x[0] == '\0')
        return TT_FAIL(ctx, TT_EINVAL, "npy: x or file must be given");
    TT_TRY(tti_bytes_open_as(ctx, o->x, 0, tti_npy_promise, &x));
    tt_status st = o->y[0] != '\0' ? tti_bytes_open_as(ctx, o->y, 0, tti_npy_promise, &y) : TT_OK;
    if (st != TT_OK) {
        tti_bytes_close(ctx, &x);
        return st;
    }
    return tti_npy_source(ctx, &x, o->y[0] != '\0' ? &y : NULL, NULL, out);
}

static const tt_option npy_options[] = {
    {"x", TT_OPT_TEXT, "",
     ".npy file with the records; with file: name of the array in the archive, default x",
     offsetof(tt_npy_opts, x), 0, 0, NULL},
    {"y", TT_OPT_TEXT, "",
     ".npy file with the targets; with file: name of the array in the archive, default y if it "
     "exists",
     offsetof(tt_npy_opts, y), 0, 0, NULL},
    {"file", TT_OPT_TEXT, "", "an .npz archive", offsetof(tt_npy_opts, file), 0, 0, NULL},
    TT_OPTION_END,
};

const tt_source_def tti_source_npy = {
    .name = "npy",
    .help = "NumPy arrays: .npy files or an .npz archive",
    .options = npy_options,
    .options_size = sizeof(tt_npy_opts),
    .main = "x",
    .open = npy_open,
};
