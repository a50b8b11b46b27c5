/*
 * number.c - single elements of any type: reading, writing, rounding to bf16 and f16, and flushing
 * subnormals of values that enter (f16 keeps its own).
 */
#include "graph/graph.h"
#include <string.h>

static uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

static float float_of(uint32_t u)
{
    float f;
    memcpy(&f, &u, 4);
    return f;
}

uint16_t tti_to_bf16(float f)
{
    uint32_t u = bits_of(f);
    if ((u & 0x7fffffff) > 0x7f800000)
        return (uint16_t)((u >> 16) | 0x40);
    return (uint16_t)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

float tti_from_bf16(uint16_t h)
{
    return float_of((uint32_t)h << 16);
}

uint16_t tti_to_f16(float f)
{
    uint32_t u = bits_of(f), sign = (u >> 16) & 0x8000, m = u & 0x7fffffff;
    if (m > 0x7f800000)
        return (uint16_t)(sign | 0x7e00);
    if (m >= 0x477ff000) // rounds to 65536 or more
        return (uint16_t)(sign | 0x7c00);
    if (m < 0x33000001) // at most half of the smallest subnormal: zero, ties to even
        return (uint16_t)sign;
    int e = (int)(m >> 23) - 127;
    uint32_t frac = (m & 0x7fffff) | 0x800000;
    int shift = e < -14 ? -1 - e : 13; // bits to drop
    uint32_t half = 1u << (shift - 1), rest = frac & ((half << 1) - 1);
    uint32_t q = frac >> shift;
    q += rest > half || (rest == half && (q & 1));
    return (uint16_t)(sign | (e < -14 ? q : q + ((uint32_t)(e + 14) << 10)));
}

float tti_from_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = (h >> 10) & 31, f = h & 0x3ff;
    if (e == 31)
        return float_of(sign | 0x7f800000 | f << 13);
    if (e != 0)
        return float_of(sign | (e + 112) << 23 | f << 13);
    // A subnormal is f * 2^-24, which f32 holds exactly and as a normal number.
    float v = (float)f * 5.9604644775390625e-8f;
    return sign != 0 ? -v : v;
}

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
        ((uint16_t *)data)[i] = tti_to_bf16((float)v);
        break;
    case TT_F16:
        ((uint16_t *)data)[i] = tti_to_f16((float)v);
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
