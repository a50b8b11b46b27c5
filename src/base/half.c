/*
 * half.c - bf16 and f16, one number at a time; rounding is to nearest even. Kernels have their own
 * in op/half.h, with the same bits.
 */
#include "base/base.h"
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
