/*
 * vmath.h - exp, expm1, log, tanh, erf, sin, cos and pow of sixteen numbers, and of one.
 *
 * Written only with the functions of simd.h, so every instruction set gives the same bits; r_f is
 * v16_f in place 0, so a tail or a scalar has the bits of the body. In the set "f64" these are
 * libm's. Arguments are reduced with fused multiply-adds by constants split in two or three, then
 * a short polynomial. A subnormal argument counts as zero and no result is subnormal.
 *
 * Largest error found against double over every 41st float, in units of the last place:
 *   exp 1.0   expm1 1.5   log 0.8   log1p 1.4   tanh 1.5   sigmoid 2.4   softplus 1.9   erf 1.0
 *   sin, cos 1.6   pow 0.7, and exact where a float is the result
 * Special values (infinities, NaN, zeros and their signs) are those of C99's annex F:
 * docs/arithmetic.md has the table.
 */
#ifndef TUTTI_OP_VMATH_H
#define TUTTI_OP_VMATH_H

#include "op/angle.h"
#include "op/cpu/simd.h"

static inline real v16_lane0(v16 a)
{
#if defined(TTI_SET_AVX512)
    return _mm512_cvtss_f32(a.v);
#elif defined(TTI_SET_AVX2)
    return _mm256_cvtss_f32(a.lo);
#else
    return a.v[0];
#endif
}

#if defined(TTI_SET_F64)

#include <math.h>

static inline v16 v16_exp(v16 x)
{
    V16_EACH(v16, exp(x.v[i]));
}
static inline v16 v16_expm1(v16 x)
{
    V16_EACH(v16, expm1(x.v[i]));
}
#define v16_expm1_low v16_expm1
static inline v16 v16_log(v16 x)
{
    V16_EACH(v16, log(x.v[i]));
}
static inline v16 v16_log1p(v16 x)
{
    V16_EACH(v16, log1p(x.v[i]));
}
static inline v16 v16_tanh(v16 x)
{
    V16_EACH(v16, tanh(x.v[i]));
}
#define v16_tanh_of(x, signed_zero) v16_tanh(x)
static inline v16 v16_erf(v16 x)
{
    V16_EACH(v16, erf(x.v[i]));
}
static inline v16 v16_sin(v16 x)
{
    V16_EACH(v16, sin(x.v[i]));
}
static inline v16 v16_cos(v16 x)
{
    V16_EACH(v16, cos(x.v[i]));
}
static inline v16 v16_pow(v16 a, v16 b)
{
    V16_EACH(v16, pow(a.v[i], b.v[i]));
}

#else

// c[0] + c[1] x + ... + c[n - 1] x^(n - 1), by Horner's rule; unrolled, n being constant.
static inline __attribute__((always_inline)) v16 v16_poly(v16 x, const float *c, int n)
{
    v16 y = v16_set1(c[n - 1]);
#pragma GCC unroll 16
    for (int i = n - 2; i >= 0; i--)
        y = v16_fma(y, x, v16_set1(c[i]));
    return y;
}
#define V16_POLY(x, ...) \
    v16_poly((x), (const float[]){__VA_ARGS__}, sizeof((float[]){__VA_ARGS__}) / sizeof(float))

// The sign of s on the magnitude a (a is not negative).
static inline v16 v16_with_sign(v16 a, v16 s)
{
    return v16_from_bits(i16_or(v16_bits(a), i16_and(v16_bits(s), i16_set1(INT32_MIN))));
}

#define V16_LOG2E  1.44269504f
#define V16_LN2_HI 0.693359375f // 10 bits: times an exponent exact
#define V16_LN2_LO (-2.12194440e-4f)

// x = n ln 2 + r, |r| <= 0.35: returns r and n; then e^r - 1 = r + r^2 q(r).
static inline v16 v16_exp_reduce(v16 x, v16 *n)
{
    *n = v16_round(v16_mul(x, v16_set1(V16_LOG2E)));
    return v16_fma(*n, v16_set1(-V16_LN2_LO), v16_fma(*n, v16_set1(-V16_LN2_HI), x));
}
static inline v16 v16_expm1_core(v16 r)
{
    v16 q = V16_POLY(r, 0.5f, 1.6666665459e-1f, 4.1665795894e-2f, 8.3334519073e-3f,
                     1.3981999507e-3f, 1.9875691500e-4f);
    return v16_fma(v16_mul(r, r), q, r);
}

// Above 88.7228 inf, below -87.3365 (the least normal number) zero.
static inline v16 v16_exp(v16 x)
{
    v16 n;
    v16 r = v16_exp_reduce(x, &n);
    v16 p = v16_add(v16_expm1_core(r), v16_set1(1.0f));
    v16 y = v16_from_bits(i16_add(v16_bits(p), i16_shl(v16_to_int(n), 23)));
    y = v16_if(v16_lt(x, v16_set1(-87.33654f)), v16_zero(), y);
    return v16_if(v16_gt(x, v16_set1(88.722832f)), v16_set1(__builtin_inff()), y);
}

// 2 (2^(n - 1) (1 + p) - 1/2), p = e^r - 1: one rounding after that of p. x itself where it is
// tiny. For x up to 88.7.
static inline v16 v16_expm1_low(v16 x)
{
    v16 n;
    v16 p = v16_expm1_core(v16_exp_reduce(v16_max(v16_set1(-18.0f), x), &n)); // a NaN stays one
    v16 scale = v16_from_bits(i16_shl(i16_add(v16_to_int(n), i16_set1(126)), 23));
    v16 y = v16_fma(p, scale, v16_sub(scale, v16_set1(0.5f)));
    return v16_if(v16_lt(v16_abs(x), v16_set1(0x1p-25f)), x, v16_add(y, y));
}
static inline v16 v16_expm1(v16 x)
{
    v16 inf = v16_set1(__builtin_inff());
    return v16_if(v16_gt(x, v16_set1(88.722832f)), inf, v16_expm1_low(x));
}

// x = 2^e m with m from sqrt(1/2) up to sqrt(2); x is normal.
static inline v16 v16_log_reduce(v16 x, v16 *e)
{
    i16 base = i16_set1(0x3f3504f3); // sqrt(1/2)
    i16 k = i16_shr(i16_sub(v16_bits(x), base), 23);
    *e = v16_from_int(k);
    return v16_from_bits(i16_sub(v16_bits(x), i16_shl(k, 23)));
}

// log of a positive, normal and finite number.
static inline v16 v16_log_normal(v16 x)
{
    v16 e;
    v16 f = v16_sub(v16_log_reduce(x, &e), v16_set1(1.0f));
    v16 q = V16_POLY(f, 3.3333331174e-1f, -2.4999993993e-1f, 2.0000714765e-1f, -1.6668057665e-1f,
                     1.4249322787e-1f, -1.2420140846e-1f, 1.1676998740e-1f, -1.1514610310e-1f,
                     7.0376836292e-2f);
    v16 f2 = v16_mul(f, f);
    v16 t = v16_fma(v16_mul(f, f2), q, v16_mul(e, v16_set1(V16_LN2_LO)));
    t = v16_fma(v16_set1(-0.5f), f2, t);
    return v16_fma(e, v16_set1(V16_LN2_HI), v16_add(f, t));
}

// log 0 = -inf, of a negative number NaN.
static inline v16 v16_log(v16 x)
{
    v16 y = v16_log_normal(x);
    y = v16_if(v16_lt(x, v16_set1(FLT_MIN)), v16_set1(-__builtin_inff()), y);
    y = v16_if(m16_or(v16_le(x, v16_set1(-FLT_MIN)), m16_not(v16_eq(x, x))),
               v16_set1(__builtin_nanf("")), y);
    return v16_if(v16_eq(x, v16_set1(__builtin_inff())), x, y);
}

// log(1 + x): the part of x that 1 + x loses is put back to first order.
static inline v16 v16_log1p(v16 x)
{
    v16 one = v16_set1(1.0f);
    v16 w = v16_add(one, x);
    v16 lost = v16_sub(x, v16_sub(w, one));
    v16 y = v16_log(w);
    v16 inside = v16_add(y, v16_div(lost, w));
    m16 ok = m16_and(v16_gt(w, v16_zero()), v16_lt(w, v16_set1(__builtin_inff())));
    return v16_if(v16_eq(w, one), x, v16_if(ok, inside, y));
}

// |x| above 0.625: t / (t + 2), t = e^(2 |x|) - 1; below: x + x^3 p(x^2). 1 from |x| = 9.1 on. With
// signed_zero -0 of -0, else 0.
static inline __attribute__((always_inline)) v16 v16_tanh_of(v16 x, int signed_zero)
{
    v16 n;
    v16 a = v16_min(v16_abs(x), v16_set1(9.1f));
    v16 p = v16_expm1_core(v16_exp_reduce(v16_add(a, a), &n));
    v16 scale = v16_from_bits(i16_shl(i16_add(v16_to_int(n), i16_set1(127)), 23));
    v16 t = v16_fma(p, scale, v16_sub(scale, v16_set1(1.0f)));
    v16 far = v16_div(t, v16_add(t, v16_set1(2.0f)));
    v16 s = v16_mul(x, x);
    v16 q = V16_POLY(s, -3.33332819422e-1f, 1.33314422036e-1f, -5.37397155531e-2f,
                     2.06390887954e-2f, -5.70498872745e-3f);
    v16 near = v16_fma(v16_mul(q, s), x, x);
    m16 is_far = v16_ge(v16_abs(x), v16_set1(0.625f));
    if (signed_zero)
        return v16_with_sign(v16_if(is_far, far, near), x);
    return v16_if(is_far, v16_with_sign(far, x), near);
}
static inline v16 v16_tanh(v16 x)
{
    return v16_tanh_of(x, 1);
}

// |x| above 0.93: 1 - e^p(|x|); below: x + x p(x^2). 1 from |x| = 4 on.
static inline v16 v16_erf(v16 x)
{
    v16 a = v16_min(v16_abs(x), v16_set1(4.0f));
    v16 s = v16_mul(a, a);
    v16 r = V16_POLY(a, -1.28717512e-1f, -6.34846687e-1f, -1.06777877e-1f, 2.42546219e-2f,
                     -3.88396438e-3f, 3.83197126e-4f, -1.72853470e-5f);
    r = v16_fma(r, a, v16_neg(a));
    v16 far = v16_with_sign(v16_sub(v16_set1(1.0f), v16_exp(r)), x);
    v16 q = V16_POLY(s, 1.28379166e-1f, -3.76125336e-1f, 1.12819925e-1f, -2.67681349e-2f,
                     4.99119423e-3f, -5.96761703e-4f);
    v16 near = v16_fma(q, x, x);
    v16 y = v16_if(v16_gt(a, v16_set1(0.927734375f)), far, near);
    return v16_if(v16_eq(x, x), y, x);
}

// r and q of the numbers x that are too large for v16_angle_near's three parts.
static __attribute__((noinline, cold, unused)) void v16_angles_far(const v16 *x, v16 *r, i16 *q)
{
    real xs[16], rs[16];
    rbits qs[16];
    v16_store(xs, *x);
    v16_store(rs, *r);
    i16_store(qs, *q);
    for (int i = 0; i < 16; i++)
        if (xs[i] >= TTI_ANGLE_FAR && xs[i] < __builtin_inff()) {
            uint32_t bits, at;
            memcpy(&bits, &xs[i], sizeof(bits));
            rs[i] = tti_angle_far(bits, &at);
            qs[i] = (rbits)at;
        }
    *r = v16_load(rs);
    *q = i16_load(qs);
}

// x = q pi/2 + r, pi/2 in three parts; x from 0 up to TTI_ANGLE_FAR.
static inline v16 v16_angle_near(v16 x, i16 *q)
{
    v16 j = v16_round(v16_mul(x, v16_set1(0.636619772f)));
    v16 r = v16_fma(j, v16_set1(-0x1.921fb6p+0f), x);
    r = v16_fma(j, v16_set1(0x1.777a5cp-25f), r);
    *q = v16_to_int(j);
    return v16_fma(j, v16_set1(0x1.ee59dap-50f), r);
}

// sin r and cos r, |r| up to pi/4.
static inline void v16_sin_cos_core(v16 r, v16 *sin, v16 *cos)
{
    v16 r2 = v16_mul(r, r);
    v16 s = V16_POLY(r2, -1.6666654611e-1f, 8.3321608736e-3f, -1.9515295891e-4f);
    *sin = v16_fma(v16_mul(r2, r), s, r);
    v16 c = V16_POLY(r2, 4.166664568298827e-2f, -1.388731625493765e-3f, 2.443315711809948e-5f);
    *cos = v16_fma(v16_mul(r2, r2), c, v16_fma(r2, v16_set1(-0.5f), v16_set1(1.0f)));
}

// sin(r + q pi/2) of sin r and cos r.
static inline v16 v16_in_quadrant(v16 s, v16 c, i16 q)
{
    v16 y = v16_if(i16_eq(i16_and(q, i16_set1(1)), i16_set1(0)), s, c);
    return v16_from_bits(i16_xor(v16_bits(y), i16_shl(i16_and(q, i16_set1(2)), 30)));
}

// sin(x + shift pi/2), x not negative, by the parts of pi/2 or by angle.h. Of inf r is inf - inf.
static inline v16 v16_sin_quadrant(v16 x, rbits shift)
{
    i16 q;
    v16 s, c, r = v16_angle_near(x, &q);
    if (m16_any(v16_ge(x, v16_set1(TTI_ANGLE_FAR))))
        v16_angles_far(&x, &r, &q);
    v16_sin_cos_core(r, &s, &c);
    return v16_in_quadrant(s, c, i16_add(q, i16_set1(shift)));
}
static inline v16 v16_sin(v16 x)
{
    i16 sign = i16_and(v16_bits(x), i16_set1(INT32_MIN));
    return v16_from_bits(i16_xor(v16_bits(v16_sin_quadrant(v16_abs(x), 0)), sign));
}
static inline v16 v16_cos(v16 x)
{
    return v16_sin_quadrant(v16_abs(x), 1);
}
// v16_sin and v16_cos of x from 0 up to TTI_ANGLE_FAR, for little more than one of them.
static inline void v16_sin_cos_near(v16 x, v16 *sin, v16 *cos)
{
    i16 q;
    v16 s, c, r = v16_angle_near(x, &q);
    v16_sin_cos_core(r, &s, &c);
    *sin = v16_in_quadrant(s, c, q);
    *cos = v16_in_quadrant(s, c, i16_add(q, i16_set1(1)));
}

// log a = h + *l to about 2^-33 of it: 2 s + 2/3 s^3 + ..., s = (m - 1) / (m + 1). s and the cube
// are in two parts.
static inline v16 v16_log_two(v16 a, v16 *l)
{
    v16 e, one = v16_set1(1.0f), c3 = v16_set1(0x1.555556p-1f);
    v16 m = v16_log_reduce(a, &e);
    v16 f = v16_sub(m, one), g = v16_add(m, one);
    v16 g_lo = v16_sub(m, v16_sub(g, one)), by = v16_div(one, g);
    v16 s = v16_mul(f, by);
    v16 s_lo = v16_mul(v16_fma(v16_neg(s), g_lo, v16_fma(v16_neg(s), g, f)), by);
    v16 s2 = v16_mul(s, s), s2_lo = v16_fma(s, s, v16_neg(s2));
    s2_lo = v16_fma(v16_add(s, s), s_lo, s2_lo);
    v16 s3 = v16_mul(s2, s), s3_lo = v16_fma(s2, s, v16_neg(s3));
    s3_lo = v16_fma(s2, s_lo, v16_fma(s2_lo, s, s3_lo));
    v16 cube = v16_mul(c3, s3), cube_lo = v16_fma(c3, s3, v16_neg(cube));
    cube_lo = v16_fma(c3, s3_lo, v16_fma(v16_set1(-0x1.555556p-26f), s3, cube_lo));
    v16 q = V16_POLY(s2, 2.0f / 5, 2.0f / 7, 2.0f / 9, 2.0f / 11, 2.0f / 13);
    v16 low = v16_fma(v16_mul(s2, s3), q, v16_add(cube_lo, v16_add(s_lo, s_lo)));
    low = v16_fma(e, v16_set1(V16_LN2_LO), low);
    // e ln 2 + 2 s + cube, largest first, what each sum loses going to low
    v16 top = v16_mul(e, v16_set1(V16_LN2_HI)), two_s = v16_add(s, s);
    v16 near = v16_add(two_s, cube);
    low = v16_add(v16_sub(cube, v16_sub(near, two_s)), low);
    v16 h = v16_add(top, near);
    low = v16_add(v16_sub(near, v16_sub(h, top)), low);
    v16 y = v16_add(h, low);
    *l = v16_sub(low, v16_sub(y, h));
    return y;
}

// e^(t + low), low being what t lost. 1 + r is kept in two parts, so that the last sum, of which
// the second part is small, is nearly the only rounding.
static inline v16 v16_exp_two(v16 t, v16 low)
{
    v16 one = v16_set1(1.0f), most = v16_set1(120.0f); // e^120 is inf, e^-120 zero
    low = v16_if(v16_lt(v16_abs(t), most), low, v16_zero());
    t = v16_max(v16_neg(most), v16_min(most, t));
    v16 n = v16_round(v16_mul(t, v16_set1(V16_LOG2E))), minus = v16_set1(-V16_LN2_LO);
    v16 high = v16_fma(n, v16_set1(-V16_LN2_HI), t), r = v16_fma(n, minus, high);
    low = v16_add(low, v16_fma(n, minus, v16_sub(high, r)));
    v16 x = v16_add(r, low);
    low = v16_sub(low, v16_sub(x, r));
    v16 q = V16_POLY(x, 0.5f, 1.6666665459e-1f, 4.1665795894e-2f, 8.3334519073e-3f,
                     1.3981999507e-3f, 1.9875691500e-4f);
    v16 top = v16_add(one, x);
    low = v16_fma(low, top, v16_sub(x, v16_sub(top, one)));
    v16 y = v16_add(top, v16_fma(v16_mul(x, x), q, low));
#if defined(TTI_SET_AVX512)
    y = (v16){_mm512_scalef_ps(y.v, n.v)}; // 2^n y, as below
#else
    // 2^n in two factors: either alone is finite
    i16 k = v16_to_int(n), half = i16_shr(k, 1), bias = i16_set1(127);
    y = v16_mul(y, v16_from_bits(i16_shl(i16_add(half, bias), 23)));
    y = v16_mul(y, v16_from_bits(i16_shl(i16_add(i16_sub(k, half), bias), 23)));
#endif
    return v16_if(v16_lt(y, v16_set1(FLT_MIN)), v16_zero(), y);
}

// As C's pow, subnormal numbers being zeros.
static inline v16 v16_pow(v16 a, v16 b)
{
    v16 zero = v16_zero(), one = v16_set1(1.0f), inf = v16_set1(__builtin_inff());
    v16 m = v16_abs(a), l;
    v16 h = v16_log_two(m, &l);
    v16 t = v16_mul(b, h);
    v16 y = v16_exp_two(t, v16_fma(b, l, v16_fma(b, h, v16_neg(t))));
    // |a| zero or infinite: by the sign of b; 1: whatever b is
    m16 up = v16_gt(b, zero), none = v16_lt(m, v16_set1(FLT_MIN)), all = v16_eq(m, inf);
    y = v16_if(none, v16_if(up, zero, inf), y);
    y = v16_if(all, v16_if(up, inf, zero), y);
    y = v16_if(v16_eq(m, one), one, y);
    // a negative base: its sign goes with an odd exponent, and there is no root of it
    v16 half = v16_mul(b, v16_set1(0.5f));
    m16 whole = v16_eq(v16_round(b), b);
    m16 odd = m16_and(whole, m16_not(v16_eq(v16_round(half), half)));
    y = v16_if(m16_and(odd, i16_lt(v16_bits(a), i16_set1(0))), v16_neg(y), y);
    m16 root = m16_and(v16_lt(a, zero), m16_not(m16_or(whole, m16_or(none, all))));
    y = v16_if(root, v16_set1(__builtin_nanf("")), y);
    y = v16_if(m16_and(v16_eq(a, a), v16_eq(b, b)), y, v16_add(a, b));
    return v16_if(m16_or(v16_eq(b, zero), v16_eq(a, one)), one, y);
}

#endif

static inline v16 v16_sigmoid(v16 x)
{
    v16 one = v16_set1(1);
    return v16_div(one, v16_add(one, v16_exp(v16_neg(x))));
}
// log(1 + e^x) = max(x, 0) + log1p(e^-|x|)
static inline v16 v16_softplus(v16 x)
{
    return v16_add(v16_max(x, v16_zero()), v16_log1p(v16_exp(v16_neg(v16_abs(x)))));
}

#define V16_ONE(f)                              \
    static inline real r_##f(real x)            \
    {                                           \
        return v16_lane0(v16_##f(v16_set1(x))); \
    }
V16_ONE(exp)
V16_ONE(expm1)
V16_ONE(log)
V16_ONE(log1p)
V16_ONE(tanh)
V16_ONE(erf)
V16_ONE(sin)
V16_ONE(cos)
V16_ONE(sigmoid)
V16_ONE(softplus)
static inline real r_pow(real a, real b)
{
    return v16_lane0(v16_pow(v16_set1(a), v16_set1(b)));
}

#endif
