/*
 * softexp.h - exp of x - max, as softmaxes take it: x is not above zero but for rounding.
 *
 *   t = x log2(e);  n = round(t);  f = t - n, exact;  e^x = 2^n (1 + f q(f)): six fmas
 *
 * Two thirds of the work of v16_exp, which also serves large numbers. t is rounded once, so the
 * relative error grows with -x, to (1 - x) 2^-23; the absolute error, which is what a sum of these
 * sees, stays below 2^-23. 1 at zero exactly; zero below -87. In the set "f64" it is libm's.
 */
#ifndef TUTTI_OP_SOFTEXP_H
#define TUTTI_OP_SOFTEXP_H

#include "op/cpu/vmath.h"

#if defined(TTI_SET_F64)
#define v16_softexp v16_exp
#define r_softexp   r_exp
#else

static inline v16 v16_softexp(v16 x)
{
    v16 t = v16_mul(x, v16_set1(V16_LOG2E));
    v16 n = v16_round(t), f = v16_sub(t, n);
    v16 y = V16_POLY(f, 1.0f, 6.9314724207e-1f, 2.4022652209e-1f, 5.5503103882e-2f,
                     9.6176927909e-3f, 1.3406643411e-3f, 1.5594677825e-4f);
    m16 inside = m16_not(v16_lt(x, v16_set1(-87.0f)));        // NaN is inside, and stays NaN
#if defined(TTI_SET_AVX512)
    return (v16){_mm512_maskz_scalef_ps(inside.m, y.v, n.v)}; // 2^n y, exact
#else
    y = v16_from_bits(i16_add(v16_bits(y), i16_shl(v16_to_int(n), 23)));
    return v16_if(inside, y, v16_zero());
#endif
}
static inline real r_softexp(real x)
{
    return v16_lane0(v16_softexp(v16_set1(x)));
}
#endif

#endif
