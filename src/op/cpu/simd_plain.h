/*
 * simd_plain.h - the 16-wide vector as sixteen plain numbers: the definition of its bits.
 * Included by simd.h alone.
 */
#ifndef TUTTI_OP_SIMD_PLAIN_H
#define TUTTI_OP_SIMD_PLAIN_H

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
static inline m16 v16_nle(v16 a, v16 b)
{
    V16_EACH(m16, !(a.v[i] <= b.v[i]));
}
static inline m16 v16_nlt(v16 a, v16 b)
{
    V16_EACH(m16, !(a.v[i] < b.v[i]));
}
static inline m16 v16_unordered(v16 a, v16 b)
{
    V16_EACH(m16, a.v[i] != a.v[i] || b.v[i] != b.v[i]);
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
