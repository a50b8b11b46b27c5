/*
 * philox.h - random words for kernels: Philox-4x32-10 (base/philox.c), sixteen counters at a time.
 *
 * Random elements are made in groups of 64. Element e of a stream is word (e % 64) / 16 of the
 * counter number e / 64 * 16 + e % 16: so the four words of sixteen neighbouring counters are the
 * group's elements in order, no shuffling, and any element can be made alone. A counter is
 *   word 0  the number, low half       word 1  row
 *   word 2  step or draw               word 3  the number, high half
 * and the key is tti_random_key(seed, hash of the name): dropout counts (row in the global batch,
 * step), an initializer (0, draw). Rows and steps are taken modulo 2^32.
 */
#ifndef TUTTI_OP_PHILOX_H
#define TUTTI_OP_PHILOX_H

#include "op/cpu/simd.h"

#define TTI_RANDOM_GROUP 64

// The key of a stream. Scrambled, so that seeds 1, 2, 3 do not give keys that differ by little.
static inline uint64_t tti_random_key(uint64_t seed, uint64_t name)
{
    uint64_t x = seed + 0x9E3779B97F4A7C15ull;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ x >> 27) * 0x94D049BB133111EBull;
    return (x ^ x >> 31) ^ name;
}

// Sixteen words of 32 bits.
#if defined(TTI_SET_AVX512)
typedef struct {
    __m512i v;
} u16x;
static inline u16x u16x_set1(uint32_t a)
{
    return (u16x){_mm512_set1_epi32((int)a)};
}
static inline u16x u16x_count(uint32_t from) // from, from + 1, ...
{
    return (u16x){
        _mm512_add_epi32(_mm512_set1_epi32((int)from),
                         _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))};
}
static inline u16x u16x_xor3(u16x a, u16x b, u16x c)
{
    return (u16x){_mm512_ternarylogic_epi32(a.v, b.v, c.v, 0x96)};
}
static inline void u16x_mul(u16x a, uint32_t m, u16x *high, u16x *low)
{
    __m512i k = _mm512_set1_epi32((int)m);
    __m512i even = _mm512_mul_epu32(a.v, k);
    __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(a.v, 32), k);
    high->v = _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
    low->v = _mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
}
static inline m16 u16x_ge(u16x a, uint32_t b)
{
    return (m16){_mm512_cmpge_epu32_mask(a.v, _mm512_set1_epi32((int)b))};
}
static inline v16 u16x_to_24(u16x a) // the top 24 bits as a number: exact
{
    return (v16){_mm512_cvtepi32_ps(_mm512_srli_epi32(a.v, 8))};
}
#elif defined(TTI_SET_AVX2)
typedef struct {
    __m256i lo, hi;
} u16x;
static inline u16x u16x_set1(uint32_t a)
{
    return (u16x){_mm256_set1_epi32((int)a), _mm256_set1_epi32((int)a)};
}
static inline u16x u16x_count(uint32_t from)
{
    __m256i f = _mm256_set1_epi32((int)from);
    return (u16x){_mm256_add_epi32(f, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)),
                  _mm256_add_epi32(f, _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15))};
}
static inline u16x u16x_xor3(u16x a, u16x b, u16x c)
{
    return (u16x){_mm256_xor_si256(_mm256_xor_si256(a.lo, b.lo), c.lo),
                  _mm256_xor_si256(_mm256_xor_si256(a.hi, b.hi), c.hi)};
}
static inline void u8x_mul(__m256i a, __m256i k, __m256i *high, __m256i *low)
{
    __m256i even = _mm256_mul_epu32(a, k);
    __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), k);
    *high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
    *low = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
}
static inline void u16x_mul(u16x a, uint32_t m, u16x *high, u16x *low)
{
    __m256i k = _mm256_set1_epi32((int)m);
    u8x_mul(a.lo, k, &high->lo, &low->lo);
    u8x_mul(a.hi, k, &high->hi, &low->hi);
}
static inline m16 u16x_ge(u16x a, uint32_t b)
{
    __m256i k = _mm256_set1_epi32((int)b);
    return (m16){_mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_max_epu32(a.lo, k), a.lo)),
                 _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_max_epu32(a.hi, k), a.hi))};
}
static inline v16 u16x_to_24(u16x a)
{
    return (v16){_mm256_cvtepi32_ps(_mm256_srli_epi32(a.lo, 8)),
                 _mm256_cvtepi32_ps(_mm256_srli_epi32(a.hi, 8))};
}
#else
typedef struct {
    uint32_t v[16];
} u16x;
static inline u16x u16x_set1(uint32_t a)
{
    V16_EACH(u16x, a);
}
static inline u16x u16x_count(uint32_t from)
{
    V16_EACH(u16x, from + (uint32_t)i);
}
static inline u16x u16x_xor3(u16x a, u16x b, u16x c)
{
    V16_EACH(u16x, a.v[i] ^ b.v[i] ^ c.v[i]);
}
static inline void u16x_mul(u16x a, uint32_t m, u16x *high, u16x *low)
{
    for (int i = 0; i < 16; i++) {
        uint64_t p = (uint64_t)m * a.v[i];
        high->v[i] = (uint32_t)(p >> 32);
        low->v[i] = (uint32_t)p;
    }
}
static inline m16 u16x_ge(u16x a, uint32_t b)
{
    V16_EACH(m16, a.v[i] >= b);
}
static inline v16 u16x_to_24(u16x a)
{
    V16_EACH(v16, (real)(int32_t)(a.v[i] >> 8));
}
#endif

// The words of one group of 64 elements, in order: w[0] is elements 0 to 15.
typedef struct {
    u16x w[4];
} tti_random_words;
static inline tti_random_words tti_random_group(uint64_t key, int64_t group, uint64_t row,
                                                uint64_t step)
{
    uint64_t number = (uint64_t)group * 16; // sixteen neighbours share the high half
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    u16x c0 = u16x_count((uint32_t)number), c1 = u16x_set1((uint32_t)row);
    u16x c2 = u16x_set1((uint32_t)step), c3 = u16x_set1((uint32_t)(number >> 32));
    for (int round = 0; round < 10; round++) {
        u16x ah, al, bh, bl;
        u16x_mul(c0, 0xD2511F53u, &ah, &al);
        u16x_mul(c2, 0xCD9E8D57u, &bh, &bl);
        c0 = u16x_xor3(bh, c1, u16x_set1(k0));
        c1 = bl;
        c2 = u16x_xor3(ah, c3, u16x_set1(k1));
        c3 = al;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return (tti_random_words){{c0, c1, c2, c3}};
}

#endif
