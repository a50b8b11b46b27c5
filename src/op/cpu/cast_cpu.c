/*
 * cast_cpu.c - every pair of element types. Floats go by way of double and integers by way of
 * int64_t, in tiles, both exactly; pairs that training uses have loops of their own.
 */
#include "op/cpu/half.h"
#include <stdbool.h>
#include <tutti/extend.h>

TT_CPU_DECLARE(tti_cast);
TT_CPU_DECLARE(tti_copy);

#define TILE 512

static bool is_float(tt_dtype t)
{
    return (TT_TYPES_FLOAT >> t & 1u) != 0;
}

#define EACH(y_, i_, expr_)            \
    for (int64_t i_ = 0; i_ < n; i_++) \
        (y_)[i_] = (expr_);            \
    return

static void load_float(tt_dtype t, const void *p, double *y, int64_t n)
{
    const uint16_t *h = p;
    switch (t) {
    case TT_F32:
        EACH(y, i, ((const float *)p)[i]);
    case TT_F64:
        EACH(y, i, ((const double *)p)[i]);
    case TT_BF16:
        EACH(y, i, r_from_bf16(h[i]));
    default:
        EACH(y, i, r_from_f16(h[i]));
    }
}

static void load_int(tt_dtype t, const void *p, int64_t *y, int64_t n)
{
    switch (t) {
    case TT_I32:
        EACH(y, i, ((const int32_t *)p)[i]);
    case TT_I64:
        EACH(y, i, ((const int64_t *)p)[i]);
    default:
        EACH(y, i, ((const uint8_t *)p)[i]);
    }
}

// Fraction cut off; the nearest that fits; NaN is 0.
static int64_t cut(double x, double low, double high)
{
    if (!(x == x))
        return 0;
    if (x <= low)
        return (int64_t)low;
    if (x >= high) // high + 1 for 64 bits, which double cannot tell from the largest
        return high >= 0x1p63 ? INT64_MAX : (int64_t)high;
    return (int64_t)x;
}

static void store_from_double(tt_dtype t, const double *x, void *p, int64_t n)
{
    switch (t) {
    case TT_F32:
        EACH((float *)p, i, (float)x[i]);
    case TT_F64:
        EACH((double *)p, i, x[i]);
    case TT_BF16:
        EACH((uint16_t *)p, i, r_to_bf16((float)x[i]));
    case TT_F16:
        EACH((uint16_t *)p, i, r_to_f16((float)x[i]));
    case TT_I32:
        EACH((int32_t *)p, i, (int32_t)cut(x[i], INT32_MIN, INT32_MAX));
    case TT_I64:
        EACH((int64_t *)p, i, cut(x[i], (double)INT64_MIN, 0x1p63));
    case TT_U8:
        EACH((uint8_t *)p, i, (uint8_t)cut(x[i], 0, 255));
    default:
        EACH((uint8_t *)p, i, x[i] != 0);
    }
}

// The nearest that fits.
static int64_t fit(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

static void store_from_int(tt_dtype t, const int64_t *x, void *p, int64_t n)
{
    switch (t) {
    case TT_F32:
        EACH((float *)p, i, (float)x[i]);
    case TT_F64:
        EACH((double *)p, i, (double)x[i]);
    case TT_BF16:
        EACH((uint16_t *)p, i, r_to_bf16((float)x[i]));
    case TT_F16:
        EACH((uint16_t *)p, i, r_to_f16((float)x[i]));
    case TT_I32:
        EACH((int32_t *)p, i, (int32_t)fit(x[i], INT32_MIN, INT32_MAX));
    case TT_I64:
        EACH((int64_t *)p, i, x[i]);
    case TT_U8:
        EACH((uint8_t *)p, i, (uint8_t)fit(x[i], 0, 255));
    default:
        EACH((uint8_t *)p, i, x[i] != 0);
    }
}

// The loops of their own; false: none for this pair.
static bool cast_fast(tt_dtype from, tt_dtype to, const void *x, void *y, int64_t n)
{
#if !defined(TTI_SET_F64)
    if (from == TT_BF16 && to == TT_F32)
        return tti_widen_bf16(x, y, n), true;
    if (from == TT_F16 && to == TT_F32)
        return tti_widen_f16(x, y, n), true;
    if (from == TT_F32 && to == TT_BF16)
        return tti_round_bf16(x, y, n), true;
    if (from == TT_F32 && to == TT_F16)
        return tti_round_f16(x, y, n), true;
    if ((from == TT_U8 || from == TT_BOOL) && to == TT_F32) {
        const uint8_t *u = x;
        float *f = y;
        for (int64_t i = 0; i < n; i++)
            f[i] = u[i];
        return true;
    }
    if (from == TT_I32 && to == TT_F32) {
        const int32_t *u = x;
        float *f = y;
        for (int64_t i = 0; i < n; i++)
            f[i] = (float)u[i];
        return true;
    }
#endif
    (void)from, (void)to, (void)x, (void)y, (void)n;
    return false;
}

tt_status TTI_ISA(tti_cast)(const tt_launch *l)
{
    tt_dtype from = l->in[0].dtype, to = l->out[0].dtype;
    int64_t from_bytes = (int64_t)tt_dtype_bytes(from), to_bytes = (int64_t)tt_dtype_bytes(to);
    const char *x = (const char *)l->in[0].data + l->begin * from_bytes;
    char *y = (char *)l->out[0].data + l->begin * to_bytes;
    int64_t n = l->end - l->begin;
    if (cast_fast(from, to, x, y, n))
        return TT_OK;
    for (int64_t i = 0; i < n; i += TILE) {
        int64_t m = n - i < TILE ? n - i : TILE;
        if (is_float(from)) {
            double t[TILE];
            load_float(from, x + i * from_bytes, t, m);
            store_from_double(to, t, y + i * to_bytes, m);
        } else {
            int64_t t[TILE];
            load_int(from, x + i * from_bytes, t, m);
            store_from_int(to, t, y + i * to_bytes, m);
        }
    }
    return TT_OK;
}

tt_status TTI_ISA(tti_copy)(const tt_launch *l)
{
    size_t bytes = tt_dtype_bytes(l->out[0].dtype);
    const char *x = (const char *)l->in[0].data + (size_t)l->begin * bytes;
    char *y = (char *)l->out[0].data + (size_t)l->begin * bytes;
    if (x != y)
        memcpy(y, x, (size_t)(l->end - l->begin) * bytes);
    return TT_OK;
}
