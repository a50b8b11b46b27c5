/*
 * simd.h - the vector that CPU kernels are written in: sixteen numbers, whatever the machine.
 *
 * A kernel source (NAME_cpu.c) is compiled once per instruction set. The 16-wide vector v16 is one
 * zmm register, two ymm registers or sixteen plain numbers; each function here gives the same bits
 * in every set, so a kernel written with them does too. In the set "f64" a number (real) is a
 * double: the same source then serves gradient checks.
 *
 *   TTI_SET_PLAIN  TTI_SET_FMA  TTI_SET_AVX2  TTI_SET_AVX512  TTI_SET_F64   exactly one is defined
 *   TTI_ISA(name)  the function's name in this set
 *
 * Rules (docs/arithmetic.md): a fused multiply-add is written v16_fma or r_fma, never a * b + c by
 * chance of the compiler; maximum is a > b ? a : b, and a NaN where either is one (v16_max_nan; the
 * plain v16_max gives b then); a sum of products ends with + 0.
 */
#ifndef TUTTI_OP_SIMD_H
#define TUTTI_OP_SIMD_H

#include <float.h>
#include <stdint.h>
#include <string.h>

#define TTI_PASTE2(a, b) a##_##b
#define TTI_PASTE(a, b)  TTI_PASTE2(a, b)
#if defined(TTI_SET_AVX512)
#include <immintrin.h>
#define TTI_SET avx512
#elif defined(TTI_SET_AVX2)
#include <immintrin.h>
#define TTI_SET avx2
#elif defined(TTI_SET_FMA)
#define TTI_SET fma
#elif defined(TTI_SET_F64)
#define TTI_SET f64
#else
#define TTI_SET plain
#endif
#define TTI_ISA(name) TTI_PASTE(name, TTI_SET)

// The loop that follows may be vectorised: its iterations do not touch each other's elements.
#if defined(__clang__)
#define TTI_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define TTI_IVDEP _Pragma("GCC ivdep")
#endif

#if FLT_EVAL_METHOD != 0
#error "Tutti's arithmetic needs FLT_EVAL_METHOD 0"
#endif

#if defined(TTI_SET_F64)
typedef double real;
typedef int64_t rbits;
#else
typedef float real;
typedef int32_t rbits;
#endif

// One number: fused multiply-add, maximum and minimum as the vector forms have them.
static inline real r_fma(real a, real b, real c)
{
#if defined(TTI_SET_F64)
    return __builtin_fma(a, b, c);
#else
    return __builtin_fmaf(a, b, c);
#endif
}
static inline real r_max(real a, real b)
{
    return a > b ? a : b;
}
static inline real r_min(real a, real b)
{
    return a < b ? a : b;
}
// The same, but that a NaN of either operand stays one: what reductions and pooling take.
static inline real r_max_nan(real a, real b)
{
    return a > b || a != a ? a : b;
}
static inline real r_min_nan(real a, real b)
{
    return a < b || a != a ? a : b;
}
static inline real r_sqrt(real a)
{
#if defined(TTI_SET_AVX512) || defined(TTI_SET_AVX2)
    return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(a)));
#elif defined(TTI_SET_F64)
    return __builtin_sqrt(a);
#else
    return __builtin_sqrtf(a);
#endif
}

#if defined(TTI_SET_AVX512)
#include "op/cpu/simd_avx512.h"
#elif defined(TTI_SET_AVX2)
#include "op/cpu/simd_avx2.h"
#else
#include "op/cpu/simd_plain.h"
#endif

static inline v16 v16_zero(void)
{
    return v16_set1(0);
}
static inline m16 v16_gt(v16 a, v16 b)
{
    return v16_lt(b, a);
}
static inline m16 v16_ge(v16 a, v16 b)
{
    return v16_le(b, a);
}

/*
 * As v16_max and v16_min, but that a NaN of either operand stays one. A chain has its result so far
 * in b, which then waits for one instruction, or two.
 */
#if defined(TTI_SET_AVX512)
#define V16_ORDER_NAN(op, a, b) ((v16){_mm512_mask_##op##_ps(a.v, v16_eq(a, a).m, a.v, b.v)})
#elif defined(TTI_SET_AVX2) // all bits make a NaN
#define V16_ORDER_NAN(op, a, b)                                                                 \
    ((v16){_mm256_or_ps(_mm256_##op##_ps(a.lo, b.lo), _mm256_cmp_ps(a.lo, a.lo, _CMP_UNORD_Q)), \
           _mm256_or_ps(_mm256_##op##_ps(a.hi, b.hi), _mm256_cmp_ps(a.hi, a.hi, _CMP_UNORD_Q))})
#endif
static inline v16 v16_max_nan(v16 a, v16 b)
{
#if defined(V16_ORDER_NAN)
    return V16_ORDER_NAN(max, a, b);
#else
    V16_EACH(v16, r_max_nan(a.v[i], b.v[i]));
#endif
}
static inline v16 v16_min_nan(v16 a, v16 b)
{
#if defined(V16_ORDER_NAN)
    return V16_ORDER_NAN(min, a, b);
#else
    V16_EACH(v16, r_min_nan(a.v[i], b.v[i]));
#endif
}

/*
 * The end of a chain, tree, max or min: + 0, so that none yields -0 and skipping a zero term, an
 * empty lane or a padded tap equals adding it. (FTZ turns a tiny negative sum into -0.)
 */
#ifdef TUTTI_BREAK_ZERO
#define r_end(a)   (a)
#define v16_end(a) (a)
#else
#define r_end(a)   ((a) + 0)
#define v16_end(a) v16_add((a), v16_zero())
#endif

/*
 * The sum of the sixteen numbers in the written order: 8 apart, 4, 2, 1, then r_end. With partial
 * j mod 16 in place j this is the sum along a row that docs/arithmetic.md defines.
 */
#if (defined(TTI_SET_AVX512) || defined(TTI_SET_AVX2)) && !defined(TUTTI_BREAK_ORDER)
#if defined(TTI_SET_AVX512)
#define V16_HALF(op, a) op(_mm512_castps512_ps256((a).v), _mm512_extractf32x8_ps((a).v, 1))
#else
#define V16_HALF(op, a) op((a).lo, (a).hi)
#endif
static inline real v16_sum(v16 a)
{
    __m256 h = V16_HALF(_mm256_add_ps, a);
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return r_end(_mm_cvtss_f32(_mm_add_ss(q, _mm_shuffle_ps(q, q, 1))));
}
static inline real v16_max_of(v16 a)
{
    __m256 h = V16_HALF(_mm256_max_ps, a);
    __m128 q = _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_max_ps(q, _mm_movehl_ps(q, q));
    return r_end(_mm_cvtss_f32(_mm_max_ss(q, _mm_shuffle_ps(q, q, 1))));
}
#else
static inline real v16_sum(v16 a)
{
    real t[16];
    v16_store(t, a);
#if defined(TUTTI_BREAK_ORDER) && !defined(TTI_SET_PLAIN) // as a machine would choose by timing
    for (int i = 1; i < 16; i++)
        t[0] = t[0] + t[i];
    return r_end(t[0]);
#endif
    for (int d = 8; d > 0; d /= 2)
        for (int i = 0; i < d; i++)
            t[i] = t[i] + t[i + d];
    return r_end(t[0]);
}
static inline real v16_max_of(v16 a)
{
    real t[16];
    v16_store(t, a);
    for (int d = 8; d > 0; d /= 2)
        for (int i = 0; i < d; i++)
            t[i] = r_max(t[i], t[i + d]);
    return r_end(t[0]);
}
#endif

#endif
