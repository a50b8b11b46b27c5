/*
 * simd_avx2.h - the 16-wide vector as two ymm registers. Included by simd.h alone.
 */
#ifndef TUTTI_OP_SIMD_AVX2_H
#define TUTTI_OP_SIMD_AVX2_H

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
static inline m16 v16_nle(v16 a, v16 b)
{
    return V16_CMP(a, b, _CMP_NLE_UQ);
}
static inline m16 v16_nlt(v16 a, v16 b)
{
    return V16_CMP(a, b, _CMP_NLT_UQ);
}
static inline m16 v16_unordered(v16 a, v16 b)
{
    return V16_CMP(a, b, _CMP_UNORD_Q);
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

#endif
