/*
 * unary_cpu.c - kernels of unary.c: y[i] from x[i], sixteen at a time. The tail is computed by the
 * same functions with zeros in the places beyond, so where a range is cut shows in no bit.
 */
#include "op/cpu/act.h"
#include "op/cpu/half.h"
#include "op/unary.h"

// Stores expr, a v16 in terms of x (and e from input 1), for the launch's elements.
#define EACH_16(load_more_, more_, expr_) \
    const real *px = l->in[0].data;       \
    real *py = l->out[0].data;            \
    int64_t i = l->begin;                 \
    for (; i + 16 <= l->end; i += 16) {   \
        v16 x = v16_load(px + i);         \
        load_more_;                       \
        v16_store(py + i, (expr_));       \
    }                                     \
    if (i < l->end) {                     \
        int n = (int)(l->end - i);        \
        v16 x = v16_load_n(px + i, n);    \
        more_;                            \
        v16_store_n(py + i, (expr_), n);  \
    }                                     \
    return TT_OK

#define UNARY(name_, expr_)                                  \
    tt_status TTI_ISA(tti_unary_##name_)(const tt_launch *l) \
    {                                                        \
        EACH_16((void)0, (void)0, expr_);                    \
    }
// The same with the attributes a and b.
#define UNARY_AB(name_, expr_)                                  \
    tt_status TTI_ISA(tti_unary_##name_)(const tt_launch *l)    \
    {                                                           \
        const tti_unary_attr *t = l->attr;                      \
        v16 a = v16_set1((real)t->a), b = v16_set1((real)t->b); \
        (void)b;                                                \
        EACH_16((void)0, (void)0, expr_);                       \
    }
// dx from x and e, which is dy.
#define BACKWARD(name_, expr_)                                                   \
    tt_status TTI_ISA(tti_unary_##name_)(const tt_launch *l)                     \
    {                                                                            \
        const real *pe = l->in[1].data;                                          \
        EACH_16(v16 e = v16_load(pe + i), v16 e = v16_load_n(pe + i, n), expr_); \
    }
#define BACKWARD_AB(name_, expr_)                                                \
    tt_status TTI_ISA(tti_unary_##name_)(const tt_launch *l)                     \
    {                                                                            \
        const tti_unary_attr *t = l->attr;                                       \
        const real *pe = l->in[1].data;                                          \
        v16 a = v16_set1((real)t->a), b = v16_set1((real)t->b);                  \
        (void)b;                                                                 \
        EACH_16(v16 e = v16_load(pe + i), v16 e = v16_load_n(pe + i, n), expr_); \
    }

#define ONE  v16_set1(1)
#define ZERO v16_zero()

UNARY(sqrt, v16_sqrt(x))
UNARY(rsqrt, v16_div(ONE, v16_sqrt(x)))
UNARY(exp, v16_exp(x))
UNARY(log, v16_log(x))
UNARY(sin, v16_sin(x))
UNARY(cos, v16_cos(x))
UNARY(tanh, v16_tanh(x))
UNARY(erf, v16_erf(x))
UNARY(sigmoid, v16_sigmoid(x))
UNARY(softplus, v16_softplus(x))
UNARY(relu, v16_relu(x))
UNARY(gelu, v16_gelu(x))
UNARY(gelu_erf, v16_gelu_erf(x))
UNARY(silu, v16_silu(x))
UNARY_AB(leaky_relu, v16_leaky_relu(x, a))
UNARY_AB(elu, v16_elu(x, a))
UNARY_AB(clip, v16_end(v16_min(b, v16_max(a, x))))
UNARY_AB(scale, v16_fma(x, a, b))

#define SELU_SCALE (real)1.0507009873554805
#define SELU_LOW   (real)1.7580993408473766 // its limit for x towards -inf, times -1
UNARY(selu, v16_if(v16_gt(x, ZERO), v16_mul(x, v16_set1(SELU_SCALE)),
                   v16_mul(v16_set1(SELU_LOW), v16_expm1_low(x))))
UNARY(relu6, v16_end(v16_min(v16_set1(6), v16_max(ZERO, x))))
UNARY(softsign, v16_div(x, v16_add(ONE, v16_abs(x))))

static inline v16 hard_sigmoid(v16 x)
{
    v16 line = v16_fma(x, v16_set1((real)(1.0 / 6)), v16_set1((real)0.5));
    return v16_end(v16_min(ONE, v16_max(ZERO, line)));
}
UNARY(hard_sigmoid, hard_sigmoid(x))
UNARY(hard_swish, v16_mul(x, hard_sigmoid(x)))

// e^x, and n = e^x (e^x + 2): tanh(softplus(x)) is n / (n + 2). From 20 on that is 1.
static inline v16 mish_n(v16 x, v16 *e)
{
    *e = v16_exp(v16_min(v16_set1(20), x));
    return v16_mul(*e, v16_add(*e, v16_set1(2)));
}
static inline v16 mish(v16 x)
{
    v16 e, n = mish_n(x, &e);
    return v16_mul(x, v16_div(n, v16_add(n, v16_set1(2))));
}
UNARY(mish, mish(x))

// n / m + x 4 e (1 + e) / m^2, m = n + 2
static inline v16 mish_slope(v16 x)
{
    v16 e, n = mish_n(x, &e), m = v16_add(n, v16_set1(2));
    v16 rise = v16_div(v16_mul(v16_mul(v16_set1(4), e), v16_add(ONE, e)), v16_mul(m, m));
    return v16_if(v16_gt(x, v16_set1(20)), ONE, v16_fma(x, rise, v16_div(n, m)));
}
static inline v16 hard_swish_slope(v16 x)
{
    v16 line = v16_fma(x, v16_set1((real)(1.0 / 3)), v16_set1((real)0.5));
    line = v16_if(v16_nlt(v16_set1(-3), x), ZERO, line);
    return v16_if(v16_nlt(x, v16_set1(3)), v16_if(v16_eq(x, x), ONE, x), line);
}
static inline v16 softsign_slope(v16 x)
{
    v16 r = v16_div(ONE, v16_add(ONE, v16_abs(x)));
    return v16_mul(r, r);
}

static inline v16 sigmoid_slope(v16 y) // from its value
{
    return v16_mul(y, v16_sub(ONE, y));
}
// s (1 + x (1 - s)), s the sigmoid
static inline v16 silu_slope(v16 x)
{
    v16 s = v16_sigmoid(x);
    return v16_mul(s, v16_fma(x, v16_sub(ONE, s), ONE));
}
// (1 + t) / 2 + x / 2 (1 - t^2) u', t = tanh u, u' = A (1 + 3 B x^2)
static inline v16 gelu_slope(v16 x)
{
    x = v16_min(v16_set1(100), v16_max(v16_set1(-100), x)); // 0 or 1 there, and u' is finite
    v16 t = v16_gelu_tanh(x), half = v16_set1((real)0.5);
    v16 du = v16_fma(v16_mul(x, x), v16_set1((real)(3 * TTI_GELU_A * TTI_GELU_B)),
                     v16_set1((real)TTI_GELU_A));
    v16 rise = v16_mul(v16_mul(v16_mul(half, x), v16_fma(v16_neg(t), t, ONE)), du);
    return v16_add(v16_fma(half, t, half), rise);
}
// (1 + erf(x / sqrt 2)) / 2 + x e^(-x^2 / 2) / sqrt(2 pi)
static inline v16 gelu_erf_slope(v16 x)
{
    v16 half = v16_set1((real)0.5);
    v16 bell = v16_exp(v16_mul(v16_mul(x, x), v16_neg(half)));
    v16 s = v16_fma(half, v16_erf(v16_mul(x, v16_set1((real)TTI_SQRT_HALF))), half);
    return v16_fma(v16_mul(x, v16_set1((real)0.3989422804014327)), bell, s);
}
static inline m16 not_outside(v16 x, v16 low, v16 high)
{
    return m16_and(v16_nlt(x, low), v16_nlt(high, x));
}

// x is what the record says: y for relu, sigmoid, tanh, elu, leaky_relu.
// A NaN there passes dy on, as what was chosen does (docs/arithmetic.md).
BACKWARD(relu_grad, v16_if(v16_nle(x, ZERO), e, ZERO))
BACKWARD(sigmoid_grad, v16_mul(e, sigmoid_slope(x)))
BACKWARD(tanh_grad, v16_mul(e, v16_fma(v16_neg(x), x, ONE)))
BACKWARD(softplus_grad, v16_mul(e, v16_sigmoid(x)))
BACKWARD(silu_grad, v16_mul(e, silu_slope(x)))
BACKWARD(gelu_grad, v16_mul(e, gelu_slope(x)))
BACKWARD(gelu_erf_grad, v16_mul(e, gelu_erf_slope(x)))
BACKWARD_AB(elu_grad, v16_if(v16_gt(x, ZERO), e, v16_mul(e, v16_add(x, a))))
BACKWARD_AB(leaky_relu_grad, v16_if(v16_nle(x, ZERO), e, v16_mul(e, a)))
BACKWARD_AB(clip_grad, v16_if(not_outside(x, a, b), e, ZERO))
BACKWARD(selu_grad, v16_if(v16_gt(x, ZERO), v16_mul(e, v16_set1(SELU_SCALE)),
                           v16_mul(e, v16_add(x, v16_set1(SELU_LOW)))))
BACKWARD(relu6_grad, v16_if(m16_and(v16_nle(x, ZERO), v16_nle(v16_set1(6), x)), e, ZERO))
BACKWARD(mish_grad, v16_mul(e, mish_slope(x)))
BACKWARD(hard_sigmoid_grad, v16_if(m16_and(v16_nle(x, v16_set1(-3)), v16_nle(v16_set1(3), x)),
                                   v16_mul(e, v16_set1((real)(1.0 / 6))), ZERO))
BACKWARD(hard_swish_grad, v16_mul(e, hard_swish_slope(x)))
BACKWARD(softsign_grad, v16_mul(e, softsign_slope(x)))

// ---- any type: plain loops that compilers turn into vectors; integers wrap -------------------

#define TILE 512

#define TYPED(name_, T, expr_)                       \
    static void name_(const T *px, T *py, int64_t n) \
    {                                                \
        TTI_IVDEP for (int64_t i = 0; i < n; i++)    \
        {                                            \
            T x = px[i];                             \
            py[i] = (T)(expr_);                      \
        }                                            \
    }

static tt_status half_tiles(const tt_launch *l, void (*loop)(const real *, real *, int64_t))
{
    real t[TILE];
    const uint16_t *x = l->in[0].data;
    uint16_t *y = l->out[0].data;
    for (int64_t i = l->begin; i < l->end; i += TILE) {
        int64_t n = l->end - i < TILE ? l->end - i : TILE;
        if (l->in[0].dtype == TT_BF16) {
            tti_widen_bf16(x + i, t, n);
            loop(t, t, n);
            tti_round_bf16(t, y + i, n);
        } else {
            tti_widen_f16(x + i, t, n);
            loop(t, t, n);
            tti_round_f16(t, y + i, n);
        }
    }
    return TT_OK;
}

#if defined(TTI_SET_F64)
#define REAL_LOOP(name_) name_##_loop_f64
#else
#define REAL_LOOP(name_) name_##_loop_f32
#endif
#define CASE(type_, name_, T)                                                      \
    case type_:                                                                    \
        name_((const T *)l->in[0].data + l->begin, (T *)l->out[0].data + l->begin, \
              l->end - l->begin);                                                  \
        return TT_OK
#define UNARY_ANY(name_, float_, int_, unsigned_)            \
    TYPED(name_##_loop_f32, float, float_)                   \
    TYPED(name_##_loop_f64, double, float_)                  \
    TYPED(name_##_loop_i32, uint32_t, int_)                  \
    TYPED(name_##_loop_i64, uint64_t, int_)                  \
    TYPED(name_##_loop_u8, uint8_t, unsigned_)               \
    tt_status TTI_ISA(tti_unary_##name_)(const tt_launch *l) \
    {                                                        \
        switch (l->in[0].dtype) {                            \
            CASE(TT_F32, name_##_loop_f32, float);           \
            CASE(TT_F64, name_##_loop_f64, double);          \
            CASE(TT_I32, name_##_loop_i32, uint32_t);        \
            CASE(TT_I64, name_##_loop_i64, uint64_t);        \
            CASE(TT_U8, name_##_loop_u8, uint8_t);           \
        default:                                             \
            return half_tiles(l, REAL_LOOP(name_));          \
        }                                                    \
    }

// Integers go as unsigned numbers of their size; BELOW tells the sign of what they stand for.
#define BELOW(x) ((x) >> (sizeof(x) * 8 - 1) != 0)
UNARY_ANY(neg, -x, 0 - x, 0 - x)
UNARY_ANY(abs, __builtin_fabs(x), BELOW(x) ? 0 - x : x, x)
UNARY_ANY(sign, (float)((x > 0) - (x < 0)) + (x == x ? 0 : x),
          (x != 0) | (0 - (x >> (sizeof(x) * 8 - 1))), x != 0)
UNARY_ANY(square, x *x, x *x, x *x)

tt_status TTI_ISA(tti_unary_logical_not)(const tt_launch *l)
{
    const uint8_t *x = l->in[0].data;
    uint8_t *y = l->out[0].data;
    for (int64_t i = l->begin; i < l->end; i++)
        y[i] = !x[i];
    return TT_OK;
}
