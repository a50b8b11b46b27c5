/*
 * simd_avx512.h - the 16-wide vector as one zmm register. Included by simd.h alone.
 */
#ifndef TUTTI_OP_SIMD_AVX512_H
#define TUTTI_OP_SIMD_AVX512_H

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
// Not a <= b, not a < b: true where either is a NaN, too.
static inline m16 v16_nle(v16 a, v16 b)
{
    return (m16){_mm512_cmp_ps_mask(a.v, b.v, _CMP_NLE_UQ)};
}
static inline m16 v16_nlt(v16 a, v16 b)
{
    return (m16){_mm512_cmp_ps_mask(a.v, b.v, _CMP_NLT_UQ)};
}
// Where either is a NaN.
static inline m16 v16_unordered(v16 a, v16 b)
{
    return (m16){_mm512_cmp_ps_mask(a.v, b.v, _CMP_UNORD_Q)};
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

#endif
