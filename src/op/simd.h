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
 * chance of the compiler; maximum is a > b ? a : b; a sum of products ends with + 0.
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

typedef struct {
    __m512 v;
} v16;
typedef struct {
    __m512i v;
} i16;
typedef struct {
    __mmask16 m;
} m16;

static inline __mmask16 v16_tail(int n)
{
    return (__mmask16)((1u << n) - 1u);
}
static inline v16 v16_set1(real a)
{
    return (v16){_mm512_set1_ps(a)};
}
static inline v16 v16_load(const real *p)
{
    return (v16){_mm512_loadu_ps(p)};
}
static inline void v16_store(real *p, v16 a)
{
    _mm512_storeu_ps(p, a.v);
}
// The first n (0 to 16) numbers; the rest of the vector is zero.
static inline v16 v16_load_n(const real *p, int n)
{
    return (v16){_mm512_maskz_loadu_ps(v16_tail(n), p)};
}
static inline void v16_store_n(real *p, v16 a, int n)
{
    _mm512_mask_storeu_ps(p, v16_tail(n), a.v);
}
static inline v16 v16_add(v16 a, v16 b)
{
    return (v16){_mm512_add_ps(a.v, b.v)};
}
static inline v16 v16_sub(v16 a, v16 b)
{
    return (v16){_mm512_sub_ps(a.v, b.v)};
}
static inline v16 v16_mul(v16 a, v16 b)
{
    return (v16){_mm512_mul_ps(a.v, b.v)};
}
static inline v16 v16_div(v16 a, v16 b)
{
    return (v16){_mm512_div_ps(a.v, b.v)};
}
static inline v16 v16_fma(v16 a, v16 b, v16 c)
{
    return (v16){_mm512_fmadd_ps(a.v, b.v, c.v)};
}
static inline v16 v16_max(v16 a, v16 b)
{
    return (v16){_mm512_max_ps(a.v, b.v)};
}
static inline v16 v16_min(v16 a, v16 b)
{
    return (v16){_mm512_min_ps(a.v, b.v)};
}
static inline v16 v16_sqrt(v16 a)
{
    return (v16){_mm512_sqrt_ps(a.v)};
}
static inline v16 v16_abs(v16 a)
{
    return (v16){_mm512_abs_ps(a.v)};
}
static inline v16 v16_neg(v16 a)
{
    return (v16){_mm512_xor_ps(a.v, _mm512_set1_ps(-0.0f))};
}
static inline v16 v16_round(v16 a)
{
    return (v16){_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
static inline m16 v16_lt(v16 a, v16 b)
{
    return (m16){_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)};
}
static inline m16 v16_le(v16 a, v16 b)
{
    return (m16){_mm512_cmp_ps_mask(a.v, b.v, _CMP_LE_OQ)};
}
static inline m16 v16_eq(v16 a, v16 b)
{
    return (m16){_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)};
}
static inline v16 v16_if(m16 m, v16 a, v16 b)
{
    return (v16){_mm512_mask_blend_ps(m.m, b.v, a.v)};
}
static inline m16 m16_and(m16 a, m16 b)
{
    return (m16){(__mmask16)(a.m & b.m)};
}
static inline m16 m16_or(m16 a, m16 b)
{
    return (m16){(__mmask16)(a.m | b.m)};
}
static inline m16 m16_not(m16 a)
{
    return (m16){(__mmask16)~a.m};
}
static inline int m16_any(m16 a)
{
    return a.m != 0;
}
static inline unsigned m16_bits(m16 a)
{
    return a.m;
}
static inline m16 m16_first(int n)
{
    return (m16){v16_tail(n)};
}
static inline i16 i16_set1(rbits a)
{
    return (i16){_mm512_set1_epi32(a)};
}
static inline i16 i16_load(const rbits *p)
{
    return (i16){_mm512_loadu_si512(p)};
}
static inline void i16_store(rbits *p, i16 a)
{
    _mm512_storeu_si512(p, a.v);
}
static inline i16 i16_add(i16 a, i16 b)
{
    return (i16){_mm512_add_epi32(a.v, b.v)};
}
static inline i16 i16_sub(i16 a, i16 b)
{
    return (i16){_mm512_sub_epi32(a.v, b.v)};
}
static inline i16 i16_and(i16 a, i16 b)
{
    return (i16){_mm512_and_si512(a.v, b.v)};
}
static inline i16 i16_or(i16 a, i16 b)
{
    return (i16){_mm512_or_si512(a.v, b.v)};
}
static inline i16 i16_xor(i16 a, i16 b)
{
    return (i16){_mm512_xor_si512(a.v, b.v)};
}
static inline m16 i16_eq(i16 a, i16 b)
{
    return (m16){_mm512_cmpeq_epi32_mask(a.v, b.v)};
}
static inline m16 i16_lt(i16 a, i16 b)
{
    return (m16){_mm512_cmplt_epi32_mask(a.v, b.v)};
}
#define i16_shl(a, n) ((i16){_mm512_slli_epi32((a).v, (n))})
#define i16_shr(a, n) ((i16){_mm512_srai_epi32((a).v, (n))}) // keeps the sign
static inline i16 v16_bits(v16 a)
{
    return (i16){_mm512_castps_si512(a.v)};
}
static inline v16 v16_from_bits(i16 a)
{
    return (v16){_mm512_castsi512_ps(a.v)};
}
static inline i16 v16_to_int(v16 a)
{
    return (i16){_mm512_cvtps_epi32(a.v)};
} // nearest even
static inline v16 v16_from_int(i16 a)
{
    return (v16){_mm512_cvtepi32_ps(a.v)};
}
// 16 values of 16 bits each, widened to the low half of i16 lanes, and back.
static inline i16 i16_load_u16(const uint16_t *p)
{
    return (i16){_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p))};
}
static inline void i16_store_u16(uint16_t *p, i16 a)
{
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16(a.v));
}

#elif defined(TTI_SET_AVX2)

typedef struct {
    __m256 lo, hi;
} v16;
typedef struct {
    __m256i lo, hi;
} i16;
typedef struct {
    __m256 lo, hi;
} m16;

#define V16_2(op, a, b) ((v16){op((a).lo, (b).lo), op((a).hi, (b).hi)})
#define I16_2(op, a, b) ((i16){op((a).lo, (b).lo), op((a).hi, (b).hi)})
static inline __m256i v16_tail8(int n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
static inline v16 v16_set1(real a)
{
    return (v16){_mm256_set1_ps(a), _mm256_set1_ps(a)};
}
static inline v16 v16_load(const real *p)
{
    return (v16){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
static inline void v16_store(real *p, v16 a)
{
    _mm256_storeu_ps(p, a.lo);
    _mm256_storeu_ps(p + 8, a.hi);
}
static inline v16 v16_load_n(const real *p, int n)
{
    return (v16){_mm256_maskload_ps(p, v16_tail8(n)),
                 n > 8 ? _mm256_maskload_ps(p + 8, v16_tail8(n - 8)) : _mm256_setzero_ps()};
}
static inline void v16_store_n(real *p, v16 a, int n)
{
    _mm256_maskstore_ps(p, v16_tail8(n), a.lo);
    if (n > 8)
        _mm256_maskstore_ps(p + 8, v16_tail8(n - 8), a.hi);
}
static inline v16 v16_add(v16 a, v16 b)
{
    return V16_2(_mm256_add_ps, a, b);
}
static inline v16 v16_sub(v16 a, v16 b)
{
    return V16_2(_mm256_sub_ps, a, b);
}
static inline v16 v16_mul(v16 a, v16 b)
{
    return V16_2(_mm256_mul_ps, a, b);
}
static inline v16 v16_div(v16 a, v16 b)
{
    return V16_2(_mm256_div_ps, a, b);
}
static inline v16 v16_fma(v16 a, v16 b, v16 c)
{
    return (v16){_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
static inline v16 v16_max(v16 a, v16 b)
{
    return V16_2(_mm256_max_ps, a, b);
}
static inline v16 v16_min(v16 a, v16 b)
{
    return V16_2(_mm256_min_ps, a, b);
}
static inline v16 v16_sqrt(v16 a)
{
    return (v16){_mm256_sqrt_ps(a.lo), _mm256_sqrt_ps(a.hi)};
}
static inline v16 v16_abs(v16 a)
{
    __m256 s = _mm256_set1_ps(-0.0f);
    return (v16){_mm256_andnot_ps(s, a.lo), _mm256_andnot_ps(s, a.hi)};
}
static inline v16 v16_neg(v16 a)
{
    __m256 s = _mm256_set1_ps(-0.0f);
    return (v16){_mm256_xor_ps(s, a.lo), _mm256_xor_ps(s, a.hi)};
}
static inline v16 v16_round(v16 a)
{
    return (v16){_mm256_round_ps(a.lo, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
                 _mm256_round_ps(a.hi, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
#define V16_CMP(a, b, how) \
    ((m16){_mm256_cmp_ps((a).lo, (b).lo, how), _mm256_cmp_ps((a).hi, (b).hi, how)})
static inline m16 v16_lt(v16 a, v16 b)
{
    return V16_CMP(a, b, _CMP_LT_OQ);
}
static inline m16 v16_le(v16 a, v16 b)
{
    return V16_CMP(a, b, _CMP_LE_OQ);
}
static inline m16 v16_eq(v16 a, v16 b)
{
    return V16_CMP(a, b, _CMP_EQ_OQ);
}
static inline v16 v16_if(m16 m, v16 a, v16 b)
{
    return (v16){_mm256_blendv_ps(b.lo, a.lo, m.lo), _mm256_blendv_ps(b.hi, a.hi, m.hi)};
}
static inline m16 m16_and(m16 a, m16 b)
{
    return (m16){_mm256_and_ps(a.lo, b.lo), _mm256_and_ps(a.hi, b.hi)};
}
static inline m16 m16_or(m16 a, m16 b)
{
    return (m16){_mm256_or_ps(a.lo, b.lo), _mm256_or_ps(a.hi, b.hi)};
}
static inline m16 m16_not(m16 a)
{
    __m256 ones = _mm256_castsi256_ps(_mm256_set1_epi32(-1));
    return (m16){_mm256_xor_ps(a.lo, ones), _mm256_xor_ps(a.hi, ones)};
}
static inline unsigned m16_bits(m16 a)
{
    return (unsigned)_mm256_movemask_ps(a.lo) | (unsigned)_mm256_movemask_ps(a.hi) << 8;
}
static inline int m16_any(m16 a)
{
    return m16_bits(a) != 0;
}
static inline m16 m16_first(int n)
{
    return (m16){_mm256_castsi256_ps(v16_tail8(n)), _mm256_castsi256_ps(v16_tail8(n - 8))};
}
static inline i16 i16_set1(rbits a)
{
    return (i16){_mm256_set1_epi32(a), _mm256_set1_epi32(a)};
}
static inline i16 i16_load(const rbits *p)
{
    return (i16){_mm256_loadu_si256((const __m256i *)p),
                 _mm256_loadu_si256((const __m256i *)(p + 8))};
}
static inline void i16_store(rbits *p, i16 a)
{
    _mm256_storeu_si256((__m256i *)p, a.lo);
    _mm256_storeu_si256((__m256i *)(p + 8), a.hi);
}
static inline i16 i16_add(i16 a, i16 b)
{
    return I16_2(_mm256_add_epi32, a, b);
}
static inline i16 i16_sub(i16 a, i16 b)
{
    return I16_2(_mm256_sub_epi32, a, b);
}
static inline i16 i16_and(i16 a, i16 b)
{
    return I16_2(_mm256_and_si256, a, b);
}
static inline i16 i16_or(i16 a, i16 b)
{
    return I16_2(_mm256_or_si256, a, b);
}
static inline i16 i16_xor(i16 a, i16 b)
{
    return I16_2(_mm256_xor_si256, a, b);
}
static inline m16 i16_eq(i16 a, i16 b)
{
    return (m16){_mm256_castsi256_ps(_mm256_cmpeq_epi32(a.lo, b.lo)),
                 _mm256_castsi256_ps(_mm256_cmpeq_epi32(a.hi, b.hi))};
}
static inline m16 i16_lt(i16 a, i16 b)
{
    return (m16){_mm256_castsi256_ps(_mm256_cmpgt_epi32(b.lo, a.lo)),
                 _mm256_castsi256_ps(_mm256_cmpgt_epi32(b.hi, a.hi))};
}
#define i16_shl(a, n) ((i16){_mm256_slli_epi32((a).lo, (n)), _mm256_slli_epi32((a).hi, (n))})
#define i16_shr(a, n) ((i16){_mm256_srai_epi32((a).lo, (n)), _mm256_srai_epi32((a).hi, (n))})
static inline i16 v16_bits(v16 a)
{
    return (i16){_mm256_castps_si256(a.lo), _mm256_castps_si256(a.hi)};
}
static inline v16 v16_from_bits(i16 a)
{
    return (v16){_mm256_castsi256_ps(a.lo), _mm256_castsi256_ps(a.hi)};
}
static inline i16 v16_to_int(v16 a)
{
    return (i16){_mm256_cvtps_epi32(a.lo), _mm256_cvtps_epi32(a.hi)};
}
static inline v16 v16_from_int(i16 a)
{
    return (v16){_mm256_cvtepi32_ps(a.lo), _mm256_cvtepi32_ps(a.hi)};
}
static inline i16 i16_load_u16(const uint16_t *p)
{
    __m256i w = _mm256_loadu_si256((const __m256i *)p);
    return (i16){_mm256_cvtepu16_epi32(_mm256_castsi256_si128(w)),
                 _mm256_cvtepu16_epi32(_mm256_extracti128_si256(w, 1))};
}
static inline void i16_store_u16(uint16_t *p, i16 a)
{
    __m256i mask = _mm256_set1_epi32(0xffff);
    __m256i w = _mm256_packus_epi32(_mm256_and_si256(a.lo, mask), _mm256_and_si256(a.hi, mask));
    _mm256_storeu_si256((__m256i *)p, _mm256_permute4x64_epi64(w, 0xd8));
}

#else // plain numbers: the definition

typedef struct {
    real v[16];
} v16;
typedef struct {
    rbits v[16];
} i16;
typedef struct {
    uint8_t v[16]; // 0 or 1
} m16;

#define V16_EACH(type, expr)     \
    type y_;                     \
    for (int i = 0; i < 16; i++) \
        y_.v[i] = (expr);        \
    return y_
static inline v16 v16_set1(real a)
{
    V16_EACH(v16, a);
}
static inline v16 v16_load(const real *p)
{
    V16_EACH(v16, p[i]);
}
static inline void v16_store(real *p, v16 a)
{
    memcpy(p, a.v, sizeof(a.v));
}
static inline v16 v16_load_n(const real *p, int n)
{
    V16_EACH(v16, i < n ? p[i] : 0);
}
static inline void v16_store_n(real *p, v16 a, int n)
{
    for (int i = 0; i < n; i++)
        p[i] = a.v[i];
}
static inline v16 v16_add(v16 a, v16 b)
{
    V16_EACH(v16, a.v[i] + b.v[i]);
}
static inline v16 v16_sub(v16 a, v16 b)
{
    V16_EACH(v16, a.v[i] - b.v[i]);
}
static inline v16 v16_mul(v16 a, v16 b)
{
    V16_EACH(v16, a.v[i] * b.v[i]);
}
static inline v16 v16_div(v16 a, v16 b)
{
    V16_EACH(v16, a.v[i] / b.v[i]);
}
static inline v16 v16_fma(v16 a, v16 b, v16 c)
{
    V16_EACH(v16, r_fma(a.v[i], b.v[i], c.v[i]));
}
static inline v16 v16_max(v16 a, v16 b)
{
    V16_EACH(v16, a.v[i] > b.v[i] ? a.v[i] : b.v[i]);
}
static inline v16 v16_min(v16 a, v16 b)
{
    V16_EACH(v16, a.v[i] < b.v[i] ? a.v[i] : b.v[i]);
}
static inline v16 v16_sqrt(v16 a)
{
    V16_EACH(v16, r_sqrt(a.v[i]));
}
static inline i16 v16_bits(v16 a)
{
    i16 y;
    memcpy(&y, &a, sizeof(y));
    return y;
}
static inline v16 v16_from_bits(i16 a)
{
    v16 y;
    memcpy(&y, &a, sizeof(y));
    return y;
}
#if defined(TTI_SET_F64)
#define TTI_SIGN_BIT    INT64_MIN
#define TTI_ROUND_MAGIC 6755399441055744.0 // 1.5 * 2^52
#define TTI_ROUND_LIMIT 4503599627370496.0
#else
#define TTI_SIGN_BIT    INT32_MIN
#define TTI_ROUND_MAGIC 12582912.0f // 1.5 * 2^23: adding it rounds to an integer, nearest even
#define TTI_ROUND_LIMIT 8388608.0f
#endif
static inline i16 i16_set1(rbits a)
{
    V16_EACH(i16, a);
}
static inline i16 i16_load(const rbits *p)
{
    V16_EACH(i16, p[i]);
}
static inline void i16_store(rbits *p, i16 a)
{
    memcpy(p, a.v, sizeof(a.v));
}
static inline i16 i16_add(i16 a, i16 b)
{
    V16_EACH(i16, (rbits)((uint64_t)a.v[i] + (uint64_t)b.v[i]));
}
static inline i16 i16_sub(i16 a, i16 b)
{
    V16_EACH(i16, (rbits)((uint64_t)a.v[i] - (uint64_t)b.v[i]));
}
static inline i16 i16_and(i16 a, i16 b)
{
    V16_EACH(i16, a.v[i] & b.v[i]);
}
static inline i16 i16_or(i16 a, i16 b)
{
    V16_EACH(i16, a.v[i] | b.v[i]);
}
static inline i16 i16_xor(i16 a, i16 b)
{
    V16_EACH(i16, a.v[i] ^ b.v[i]);
}
static inline m16 i16_eq(i16 a, i16 b)
{
    V16_EACH(m16, a.v[i] == b.v[i]);
}
static inline m16 i16_lt(i16 a, i16 b)
{
    V16_EACH(m16, a.v[i] < b.v[i]);
}
static inline i16 i16_shl(i16 a, int n)
{
    V16_EACH(i16, (rbits)((uint64_t)a.v[i] << n));
}
static inline i16 i16_shr(i16 a, int n)
{
    V16_EACH(i16, a.v[i] >> n);
}
static inline v16 v16_abs(v16 a)
{
    return v16_from_bits(i16_and(v16_bits(a), i16_set1(~TTI_SIGN_BIT)));
}
static inline v16 v16_neg(v16 a)
{
    return v16_from_bits(i16_xor(v16_bits(a), i16_set1(TTI_SIGN_BIT)));
}
// The sign of a zero result is that of a, as the instruction has it.
static inline real r_round(real a)
{
    real m = a < 0 ? -a : a;
    if (!(m < TTI_ROUND_LIMIT))
        return a;
    real r = m + TTI_ROUND_LIMIT;
    r = r - TTI_ROUND_LIMIT;
    return __builtin_signbit(a) ? -r : r;
}
static inline v16 v16_round(v16 a)
{
    V16_EACH(v16, r_round(a.v[i]));
}
static inline m16 v16_lt(v16 a, v16 b)
{
    V16_EACH(m16, a.v[i] < b.v[i]);
}
static inline m16 v16_le(v16 a, v16 b)
{
    V16_EACH(m16, a.v[i] <= b.v[i]);
}
static inline m16 v16_eq(v16 a, v16 b)
{
    V16_EACH(m16, a.v[i] == b.v[i]);
}
static inline v16 v16_if(m16 m, v16 a, v16 b)
{
    V16_EACH(v16, m.v[i] ? a.v[i] : b.v[i]);
}
static inline m16 m16_and(m16 a, m16 b)
{
    V16_EACH(m16, a.v[i] & b.v[i]);
}
static inline m16 m16_or(m16 a, m16 b)
{
    V16_EACH(m16, a.v[i] | b.v[i]);
}
static inline m16 m16_not(m16 a)
{
    V16_EACH(m16, !a.v[i]);
}
static inline unsigned m16_bits(m16 a)
{
    unsigned y = 0;
    for (int i = 0; i < 16; i++)
        y |= (unsigned)a.v[i] << i;
    return y;
}
static inline int m16_any(m16 a)
{
    return m16_bits(a) != 0;
}
static inline m16 m16_first(int n)
{
    V16_EACH(m16, i < n);
}
// Out of range gives the most negative integer, as the instruction does.
static inline rbits r_to_int(real a)
{
    real r = r_round(a);
    real edge = -(real)TTI_SIGN_BIT;
    return r >= -edge && r < edge ? (rbits)r : TTI_SIGN_BIT;
}
static inline i16 v16_to_int(v16 a)
{
    V16_EACH(i16, r_to_int(a.v[i]));
}
static inline v16 v16_from_int(i16 a)
{
    V16_EACH(v16, (real)a.v[i]);
}
static inline i16 i16_load_u16(const uint16_t *p)
{
    V16_EACH(i16, p[i]);
}
static inline void i16_store_u16(uint16_t *p, i16 a)
{
    for (int i = 0; i < 16; i++)
        p[i] = (uint16_t)a.v[i];
}
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
