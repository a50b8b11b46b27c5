/*
 * pointwise.h - pointwise ops as programs for one kernel.
 *
 * An op alone is a program of one step, a fused node one of many: so a value has the
 * same bits whichever way it is made. A thread takes a few neighbouring elements, walks the steps,
 * and keeps what is between them in registers, as a stack: every such value is used once. Each step
 * rounds to its own output's type.
 */
#ifndef TUTTI_OP_POINTWISE_H
#define TUTTI_OP_POINTWISE_H

#include <tutti/extend.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * X(name, value): the ops, by the kind of their operands. Values are in terms of operands x and y
 * and attributes a and b.
 */
// clang-format off
#define TTI_PW_FLOAT_1(X)                                                                         \
    X(neg, -x) X(abs, x < 0 ? -x : x + 0.0f) X(sign, tti_sign(x)) X(square, x * x)                 \
    X(sqrt, sqrtf(x)) X(rsqrt, 1.0f / sqrtf(x)) X(exp, expf(x)) X(log, tti_log(x))                \
    X(sin, tti_sin(x)) X(cos, tti_cos(x)) X(tanh, tanhf(x)) X(erf, erff(x))                       \
    X(sigmoid, tti_logistic(x)) X(relu, (0 > x ? 0 : x) + 0.0f) X(gelu, tti_gelu(x))              \
    X(gelu_erf, tti_gelu_erf(x)) X(silu, x * tti_logistic(x)) X(softplus, tti_softplus(x))        \
    X(leaky_relu, x > 0 ? x : x * a) X(elu, tti_elu(x, a)) X(scale, fmaf(x, a, b))                \
    X(clip, tti_clip(x, a, b)) X(selu, tti_selu(x)) X(relu6, tti_clip(x, 0.0f, 6.0f))             \
    X(mish, tti_mish(x)) X(hard_sigmoid, tti_hard_sigmoid(x))                                     \
    X(hard_swish, x * tti_hard_sigmoid(x)) X(softsign, x / (1.0f + fabsf(x)))
#define TTI_PW_FLOAT_2(X)                                                                         \
    X(relu_grad, x <= 0 ? 0.0f : y) X(sigmoid_grad, y * (x * (1.0f - x)))                         \
    X(tanh_grad, y * fmaf(-x, x, 1.0f)) X(softplus_grad, y * tti_logistic(x))                     \
    X(silu_grad, y * tti_silu_slope(x)) X(gelu_grad, y * tti_gelu_slope(x))                       \
    X(gelu_erf_grad, y * tti_gelu_erf_slope(x)) X(elu_grad, x > 0 ? y : y * (x + a))              \
    X(leaky_relu_grad, x <= 0 ? y * a : y) X(clip_grad, x < a || x > b ? 0.0f : y)                \
    X(selu_grad, x > 0 ? y * TTI_SELU_SCALE : y * (x + TTI_SELU_LOW))                             \
    X(relu6_grad, x <= 0 || x >= 6 ? 0.0f : y) X(mish_grad, y * tti_mish_slope(x))                \
    X(hard_sigmoid_grad, x <= -3 || x >= 3 ? 0.0f : y * 0.16666667f)                              \
    X(hard_swish_grad, y * tti_hard_swish_slope(x)) X(softsign_grad, y * tti_softsign_slope(x))   \
    X(add, x + y) X(sub, x - y) X(mul, x * y) X(div, x / y) X(pow, tti_pow(x, y))                 \
    X(minimum, x < y || x != x ? x : y) X(maximum, x > y || x != x ? x : y)
// Integers wrap: x and y are unsigned, sx and sy the same as signed numbers.
#define TTI_PW_INT_1(X)                                                                           \
    X(neg, 0 - x) X(abs, sx < 0 ? 0 - x : x) X(sign, (sx > 0) - (sx < 0)) X(square, x * x)        \
    X(logical_not, x == 0)
#define TTI_PW_INT_2(X)                                                                           \
    X(add, x + y) X(sub, x - y) X(mul, x * y) X(minimum, sx < sy ? x : y)                         \
    X(maximum, sx > sy ? x : y) X(logical_and, x & y) X(logical_or, x | y)
// The result is bool.
#define TTI_PW_COMPARE(X)                                                                         \
    X(equal, ==) X(not_equal, !=) X(less, <) X(less_equal, <=) X(greater, >) X(greater_equal, >=)

enum tti_pw_op {
#define TTI_PW_ENUM(name, value) TTI_PW_F_##name,
    TTI_PW_FLOAT_1(TTI_PW_ENUM)
    TTI_PW_FLOAT_2(TTI_PW_ENUM)
    TTI_PW_COMPARE(TTI_PW_ENUM)
#undef TTI_PW_ENUM
#define TTI_PW_ENUM(name, value) TTI_PW_I_##name,
    TTI_PW_INT_1(TTI_PW_ENUM)
    TTI_PW_INT_2(TTI_PW_ENUM)
    TTI_PW_COMPARE(TTI_PW_ENUM)
#undef TTI_PW_ENUM
    TTI_PW_where,  // x, if not 0, picks y, else z
    TTI_PW_keep,   // between types that registers hold alike
    TTI_PW_F_to_I, // the fraction cut off; what does not fit becomes the nearest, NaN 0
    TTI_PW_I_to_F,
    TTI_PW_F_to_bool,
    TTI_PW_I_to_bool,
    TTI_PW_I_to_u8, // the nearest that fits
    TTI_PW_I_to_i32,
};
#define TTI_PW_INTS TTI_PW_I_neg // from here on operations on integers, moves and casts
// clang-format on

#define TTI_PW_STEPS  32
#define TTI_PW_IN     40
#define TTI_PW_WALKS  3
#define TTI_PW_STACK  0x80        // src: TTI_PW_STACK + p is the p-th result from the top
#define TTI_PW_DEPTH  6           // results that can wait at once
#define TTI_PW_PACK   8           // elements that a thread takes where it can
#define TTI_PW_BITS16 TT_N_DTYPES // a type: two bytes that are only moved

enum tti_pw_mode {
    TTI_PW_FLAT = 0, // as many elements as the output
    TTI_PW_ONE = 1,  // one element for all
    TTI_PW_WALK = 2, // broadcast: axes of the program's walk
};
typedef struct tti_pw_input {
    const void *data;
    uint8_t type, mode, bytes;
    uint8_t walk;  // its strides
    uint8_t steps; // walk: it moves along the innermost axis
} tti_pw_input;
typedef struct tti_pw_step {
    uint8_t op, type; // type of the result
    uint8_t n_in;
    int8_t grows; // by how many results the stack does
    uint8_t src[3];
    float a, b;
} tti_pw_step;

// An axis of the output. Numbers below 2^31 are divided by dim with a factor and a shift.
typedef struct tti_pw_axis {
    int64_t dim;
    int64_t stride[TTI_PW_WALKS];
    uint32_t factor, shift;
} tti_pw_axis;

typedef struct tti_pw_program {
    int64_t begin, end; // elements
    void *out;
    uint8_t type, bytes; // of out
    uint8_t in_packs;    // TTI_PW_PACK elements can be moved at once
    uint8_t is_big;      // end is 2^31 or more
    uint8_t depth;       // results that wait at once
    uint8_t n_in, n_flat, n_steps, rank;
    tti_pw_input in[TTI_PW_IN]; // those that are flat first
    tti_pw_step steps[TTI_PW_STEPS];
    tti_pw_axis axis[TT_MAX_RANK]; // innermost first
} tti_pw_program;

/*
 * To make a program (pointwise_program.cu), zeroed before: inputs are added, then steps in the
 * order of the stack. src names the operands, of which x, or y of a where, has type `from`.
 */
tt_status tti_pw_input_add(const tt_launch *l, tti_pw_program *p, const tt_arg *x, uint8_t *src);
tt_status tti_pw_step_add(const tt_launch *l, tti_pw_program *p, const tt_node *node, tt_dtype from,
                          tt_dtype to, int n_in, const uint8_t *src);
// Enqueues it: l's output 0 is what the last step gives.
tt_status tti_pw_run(const tt_launch *l, tti_pw_program *p);
// Enqueues its elements up to p->end, whole packs, if it has a kernel of its own.
bool tti_pw_straight(const tt_launch *l, const tti_pw_program *p);

// For tables: an op that stands alone, and its prepare, which refuses f64.
tt_status tti_pw_prepare(tt_prep *p);
tt_status tti_pw_alone(const tt_launch *l);

static inline size_t tti_pw_bytes(int type)
{
    return type == TT_I64 || type == TT_F64                                  ? 8
           : type == TT_F32 || type == TT_I32                                ? 4
           : type == TT_BF16 || type == TT_F16 || type == (int)TTI_PW_BITS16 ? 2
                                                                             : 1;
}

#ifdef __cplusplus
}
#endif
#endif
