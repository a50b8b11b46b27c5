/*
 * half.h - bf16 and f16 to and from the numbers kernels compute with.
 *
 * Widened at load, rounded to nearest even at store. bf16 subnormals are flushed to zero both ways,
 * like f32's; f16 subnormals, which are normal numbers in f32, are kept both ways. A NaN stays a
 * NaN. Too large for f16 is inf. Written with integers, so that FTZ and DAZ do not touch it.
 */
#ifndef TUTTI_OP_HALF_H
#define TUTTI_OP_HALF_H

#include "op/cpu/simd.h"

static inline uint32_t tti_float_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof(u));
    return u;
}
static inline float tti_float_from_bits(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof(x));
    return x;
}

static inline float r_from_bf16(uint16_t h)
{
    uint32_t u = (uint32_t)h << 16;
    return tti_float_from_bits(u & 0x7f800000u ? u : u & 0x80000000u);
}
static inline uint16_t r_to_bf16(float x)
{
    uint32_t u = tti_float_bits(x);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(u >> 16 | 0x40);
    if ((u & 0x7f800000u) == 0)
        return (uint16_t)(u >> 16 & 0x8000u);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
}
static inline float r_from_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, e = h >> 10 & 31, m = h & 0x3ffu;
    if (e == 31)
        return tti_float_from_bits(sign | 0x7f800000u | m << 13 | (m ? 0x400000u : 0));
    if (e != 0)
        return tti_float_from_bits(sign | (e + 112) << 23 | m << 13);
    float y = (float)(int)m * 0x1p-24f;
    return sign ? -y : y;
}
static inline uint16_t r_to_f16(float x)
{
    uint32_t u = tti_float_bits(x), sign = u >> 16 & 0x8000u;
    u &= 0x7fffffffu;
    if (u > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | (u >> 13 & 0x3ffu));
    if (u >= 0x477ff000u) // 65520 and up round to inf
        return (uint16_t)(sign | 0x7c00u);
    if (u < 0x38800000u) { // below 2^-14: adding 0.5 rounds to a multiple of 2^-24
        float r = tti_float_from_bits(u) + 0.5f;
        return (uint16_t)(sign | (tti_float_bits(r) - 0x3f000000u));
    }
    return (uint16_t)(sign | (u + 0xfffu + (u >> 13 & 1) - 0x38000000u) >> 13);
}

/*
 * n values to and from real. In the set "f64" a store rounds to float first, as a cast from f64 by
 * way of f32 would.
 */
static inline void tti_widen_bf16(const uint16_t *x, real *y, int64_t n)
{
    int64_t i = 0;
#if !defined(TTI_SET_F64)
    for (; i + 16 <= n; i += 16) {
        i16 u = i16_shl(i16_load_u16(x + i), 16);
        m16 tiny = i16_eq(i16_and(u, i16_set1(0x7f800000)), i16_set1(0));
        v16 zero = v16_from_bits(i16_and(u, i16_set1(INT32_MIN)));
        v16_store(y + i, v16_if(tiny, zero, v16_from_bits(u)));
    }
#endif
    for (; i < n; i++)
        y[i] = r_from_bf16(x[i]);
}
static inline void tti_round_bf16(const real *x, uint16_t *y, int64_t n)
{
    int64_t i = 0;
#if !defined(TTI_SET_F64)
    for (; i + 16 <= n; i += 16) {
        v16 a = v16_load(x + i);
        i16 u = v16_bits(a), top = i16_and(i16_shr(u, 16), i16_set1(0xffff));
        i16 r = i16_add(i16_add(u, i16_set1(0x7fff)), i16_and(top, i16_set1(1)));
        m16 tiny = i16_eq(i16_and(u, i16_set1(0x7f800000)), i16_set1(0));
        v16 y16 = v16_from_bits(i16_and(i16_shr(r, 16), i16_set1(0xffff)));
        y16 = v16_if(tiny, v16_from_bits(i16_and(top, i16_set1(0x8000))), y16);
        y16 = v16_if(v16_eq(a, a), y16, v16_from_bits(i16_or(top, i16_set1(0x40))));
        i16_store_u16(y + i, v16_bits(y16));
    }
#endif
    for (; i < n; i++)
        y[i] = r_to_bf16((float)x[i]);
}
static inline void tti_widen_f16(const uint16_t *x, real *y, int64_t n)
{
    int64_t i = 0;
#if defined(TTI_SET_AVX512)
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(y + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(x + i))));
#elif defined(TTI_SET_AVX2)
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(x + i))));
#endif
    for (; i < n; i++)
        y[i] = r_from_f16(x[i]);
}
static inline void tti_round_f16(const real *x, uint16_t *y, int64_t n)
{
    int64_t i = 0;
#if defined(TTI_SET_AVX512)
    for (; i + 16 <= n; i += 16)
        _mm256_storeu_si256((__m256i *)(y + i),
                            _mm512_cvtps_ph(_mm512_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#elif defined(TTI_SET_AVX2)
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(y + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i < n; i++)
        y[i] = r_to_f16((float)x[i]);
}

#endif
