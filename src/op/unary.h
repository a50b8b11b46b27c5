/*
 * unary.h - the kernels of unary.c, by list. Attributes are up to two numbers.
 */
#ifndef TUTTI_OP_UNARY_H
#define TUTTI_OP_UNARY_H

#include <tutti/extend.h>

typedef struct tti_unary_attr {
    double a, b;
} tti_unary_attr;

// clang-format off
// y from x; y has the type of x. The first row looks at types itself.
#define TTI_UNARY_KERNELS(X)                                                                      \
    X(neg) X(abs) X(sign) X(square)                                                               \
    X(sqrt) X(rsqrt) X(exp) X(log) X(sin) X(cos) X(tanh) X(sigmoid) X(relu) X(gelu) X(gelu_erf)   \
    X(silu) X(softplus) X(erf) X(leaky_relu) X(elu) X(clip) X(scale) X(selu) X(relu6) X(mish)       \
    X(hard_sigmoid) X(hard_swish) X(softsign)
// dx from x or y (input 0) and dy (input 1).
#define TTI_BACKWARD_KERNELS(X)                                                                   \
    X(relu_grad) X(gelu_grad) X(gelu_erf_grad) X(silu_grad) X(sigmoid_grad) X(tanh_grad)          \
    X(softplus_grad) X(elu_grad) X(leaky_relu_grad) X(clip_grad) X(selu_grad) X(relu6_grad)         \
    X(mish_grad) X(hard_sigmoid_grad) X(hard_swish_grad) X(softsign_grad)
// clang-format on

#define TTI_UNARY_DECLARE(n) TT_CPU_DECLARE(tti_unary_##n);
TTI_UNARY_KERNELS(TTI_UNARY_DECLARE)
TTI_BACKWARD_KERNELS(TTI_UNARY_DECLARE)
TTI_UNARY_DECLARE(logical_not)

#endif
