/*
 * act.h - the activations of dense and convolution nodes, for the ends of kernels. The standalone
 * ops (elementwise_cpu.c) call the same functions, so a fused activation has the same bits.
 */
#ifndef TUTTI_OP_ACT_H
#define TUTTI_OP_ACT_H

#include "op/cpu/vmath.h"
#include <tutti/ops.h>

// In this order a NaN stays one.
static inline v16 v16_relu(v16 x)
{
    return v16_end(v16_max(v16_zero(), x));
}
static inline v16 v16_leaky_relu(v16 x, v16 slope)
{
    return v16_if(v16_gt(x, v16_zero()), x, v16_mul(x, slope));
}
static inline v16 v16_elu(v16 x, v16 alpha)
{
    return v16_if(v16_gt(x, v16_zero()), x, v16_mul(alpha, v16_expm1_low(x)));
}
static inline v16 v16_silu(v16 x)
{
    return v16_mul(x, v16_sigmoid(x));
}
// The tanh form: x / 2 (1 + tanh u), u = sqrt(2 / pi) (x + 0.044715 x^3).
#define TTI_GELU_A 0.7978845608028654
#define TTI_GELU_B 0.044715
static inline v16 v16_gelu_tanh(v16 x)
{
    v16 u = v16_fma(v16_mul(v16_mul(x, x), v16_set1((real)TTI_GELU_B)), x, x);
    return v16_tanh_of(v16_mul(v16_set1((real)TTI_GELU_A), u), 0); // gelu(-0) is -0
}
static inline v16 v16_gelu(v16 x)
{
    v16 half = v16_mul(v16_set1((real)0.5), x);
    return v16_fma(half, v16_gelu_tanh(x), half);
}
// x / 2 (1 + erf(x / sqrt 2))
#define TTI_SQRT_HALF 0.7071067811865476
static inline v16 v16_gelu_erf(v16 x)
{
    v16 half = v16_mul(v16_set1((real)0.5), x);
    return v16_fma(half, v16_erf(v16_mul(x, v16_set1((real)TTI_SQRT_HALF))), half);
}

// act(z); act is the same for a whole kernel, so hoist the call out of loops where it counts.
static inline v16 v16_act(int act, v16 z)
{
    switch (act) {
    case TT_RELU:
        return v16_relu(z);
    case TT_GELU:
        return v16_gelu(z);
    case TT_GELU_ERF:
        return v16_gelu_erf(z);
    case TT_SIGMOID:
        return v16_sigmoid(z);
    case TT_TANH:
        return v16_tanh(z);
    case TT_SILU:
        return v16_silu(z);
    case TT_ELU:
        return v16_elu(z, v16_set1(1));
    case TT_LEAKY_RELU:
        return v16_leaky_relu(z, v16_set1((real)0.01));
    case TT_SOFTPLUS:
        return v16_softplus(z);
    default:
        return z;
    }
}
static inline real r_act(int act, real z)
{
    return v16_lane0(v16_act(act, v16_set1(z)));
}

// y = act(x) over n numbers; y may be x.
static inline void v16_act_all(int act, const real *x, real *y, int64_t n)
{
    if (act == TT_LINEAR && x == y)
        return;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        v16_store(y + i, v16_act(act, v16_load(x + i)));
    if (i < n)
        v16_store_n(y + i, v16_act(act, v16_load_n(x + i, (int)(n - i))), (int)(n - i));
}

#endif
