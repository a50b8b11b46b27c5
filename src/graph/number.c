/*
 * number.c - single elements of any type: reading, writing, and flushing subnormals of values that
 * enter (f16 keeps its own).
 */
#include "graph/graph.h"
#include <string.h>

double tti_get_number(tt_dtype t, const void *data, int64_t i)
{
    switch (t) {
    case TT_F32:
        return ((const float *)data)[i];
    case TT_F64:
        return ((const double *)data)[i];
    case TT_BF16:
        return tti_from_bf16(((const uint16_t *)data)[i]);
    case TT_F16:
        return tti_from_f16(((const uint16_t *)data)[i]);
    case TT_I32:
        return ((const int32_t *)data)[i];
    case TT_I64:
        return (double)((const int64_t *)data)[i];
    default:
        return ((const uint8_t *)data)[i];
    }
}

static double within(double v, double low, double high)
{
    return v != v ? 0 : v < low ? low : v > high ? high : v;
}

/*
 * v as f32; where that is not exact, the neighbour whose last bit is 1. A half of it is then that
 * of v, rounded once.
 */
static float to_odd(double v)
{
    float f = (float)v;
    uint32_t bits;
    if (v != v || (double)f == v)
        return f;
    memcpy(&bits, &f, sizeof(bits));
    bits -= ((double)f > v) != (v < 0); // rounded away from zero: take the one before
    bits |= 1;
    memcpy(&f, &bits, sizeof(f));
    return f;
}

void tti_put_number(tt_dtype t, void *data, int64_t i, double v)
{
    switch (t) {
    case TT_F32:
        ((float *)data)[i] = (float)v;
        break;
    case TT_F64:
        ((double *)data)[i] = v;
        break;
    case TT_BF16:
        ((uint16_t *)data)[i] = tti_to_bf16(to_odd(v));
        break;
    case TT_F16:
        ((uint16_t *)data)[i] = tti_to_f16(to_odd(v));
        break;
    case TT_I32:
        ((int32_t *)data)[i] = (int32_t)within(v, -2147483648.0, 2147483647.0);
        break;
    case TT_I64:
        ((int64_t *)data)[i] = (int64_t)within(v, -9223372036854775808.0, 9223372036854774784.0);
        break;
    case TT_U8:
        ((uint8_t *)data)[i] = (uint8_t)within(v, 0, 255);
        break;
    default:
        ((uint8_t *)data)[i] = v != 0;
    }
}

void tti_flush(tt_dtype t, void *data, int64_t n)
{
    if (t == TT_F32) {
        uint32_t *u = data;
        for (int64_t i = 0; i < n; i++)
            u[i] &= (u[i] & 0x7f800000) == 0 ? 0x80000000u : 0xffffffffu;
    } else if (t == TT_BF16) {
        uint16_t *u = data;
        for (int64_t i = 0; i < n; i++)
            u[i] = (u[i] & 0x7f80) == 0 ? u[i] & 0x8000 : u[i];
    }
}
