/*
 * elementwise.c - unary and binary ops, broadcasting, casts against plain C in double.
 */
#include "op_test.h"
#include <math.h>
#include <string.h>

// ---- unary: x of p[0] columns, in f[0] to f[1] -----------------------------------------------

static tt_tensor *unary_x(op_test *t)
{
    const op_case *c = op_case_of(t);
    return op_input(t, TT_SHAPE(c->rows > 0 ? TT_BATCH : 3, c->p[0]), c->f[0], c->f[1]);
}

#define UNARY_AS(label_, call_, expr_)                       \
    static tt_tensor *label_##_build(op_test *t)             \
    {                                                        \
        tt_graph *g = op_graph(t);                           \
        tt_tensor *v = unary_x(t);                           \
        return call_;                                        \
    }                                                        \
    static void label_##_oracle(const op_test *t, double *y) \
    {                                                        \
        for (int64_t i = 0; i < op_count(t); i++) {          \
            double x = op_value(t, 0)[i];                    \
            y[i] = (expr_);                                  \
        }                                                    \
    }
#define UNARY(name_, expr_) UNARY_AS(name_, tt_##name_(g, v), expr_)
#define CASE(name_, cols_, low_, high_)                                                \
    {                                                                                  \
        .label = #name_, .build = name_##_build, .oracle = name_##_oracle, .rows = 11, \
        .p = {cols_}, .f = {                                                           \
            low_,                                                                      \
            high_                                                                      \
        }                                                                              \
    }

UNARY(neg, -x)
UNARY(abs, fabs(x))
UNARY(sqrt, sqrt(x))
UNARY(rsqrt, 1 / sqrt(x))
UNARY(exp, exp(x))
UNARY(log, log(x))
UNARY(sin, sin(x))
UNARY(cos, cos(x))
UNARY(tanh, tanh(x))
UNARY(sigmoid, 1 / (1 + exp(-x)))
UNARY(relu, x > 0 ? x : 0)
UNARY(gelu, 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))))
UNARY(gelu_erf, 0.5 * x * (1 + erf(x / sqrt(2))))
UNARY(silu, x / (1 + exp(-x)))
UNARY(softplus, log1p(exp(x)))
#define SELU_SCALE 1.0507009873554805
UNARY(selu, SELU_SCALE *(x > 0 ? x : 1.6732632423543772 * expm1(x)))
UNARY(relu6, fmin(6, fmax(0, x)))
UNARY(mish, x *tanh(log1p(exp(x))))
UNARY(hard_sigmoid, fmin(6, fmax(0, x + 3)) / 6)
UNARY(hard_swish, x *fmin(6, fmax(0, x + 3)) / 6)
UNARY(softsign, x / (1 + fabs(x)))
UNARY(square, x *x)
UNARY(erf, erf(x))
UNARY(sign, (x > 0) - (x < 0))
UNARY(identity, x)
UNARY_AS(leaky_relu, tt_leaky_relu(g, v, 0.2), x > 0 ? x : 0.2 * x)
UNARY_AS(elu, tt_elu(g, v, 1.5), x > 0 ? x : 1.5 * expm1(x))
UNARY_AS(clip, tt_clip(g, v, -0.5, 1), x<-0.5 ? -0.5 : x> 1 ? 1 : x)
UNARY_AS(scale, tt_scale(g, v, 1.75, -0.5), 1.75 * x - 0.5)
UNARY_AS(chain, tt_exp(g, tt_neg(g, tt_square(g, tt_scale(g, v, 0.5, 0.25)))),
         exp(-(0.5 * x + 0.25) * (0.5 * x + 0.25)))
// Only one of the two ways to x passes a gradient on; sum(y w) still moves by both, so no check.
UNARY_AS(stop_gradient, tt_mul(g, v, tt_stop_gradient(g, v)), x *x)

static tt_tensor *activation_build(op_test *t)
{
    return tt_activation(op_graph(t), unary_x(t), (tt_act)op_case_of(t)->p[1]);
}
static void activation_oracle(const op_test *t, double *y)
{
    for (int64_t i = 0; i < op_count(t); i++) {
        double x = op_value(t, 0)[i];
        const double all[] = {
            [TT_LINEAR] = x,
            [TT_RELU] = fmax(x, 0),
            [TT_GELU] = 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))),
            [TT_GELU_ERF] = 0.5 * x * (1 + erf(x / sqrt(2))),
            [TT_SIGMOID] = 1 / (1 + exp(-x)),
            [TT_TANH] = tanh(x),
            [TT_SILU] = x / (1 + exp(-x)),
            [TT_ELU] = x > 0 ? x : expm1(x),
            [TT_LEAKY_RELU] = x > 0 ? x : 0.01 * x,
            [TT_SOFTPLUS] = log1p(exp(x)),
            [TT_SELU] = SELU_SCALE * (x > 0 ? x : 1.6732632423543772 * expm1(x)),
            [TT_RELU6] = fmin(6, fmax(0, x)),
            [TT_MISH] = x * tanh(log1p(exp(x))),
            [TT_HARD_SIGMOID] = fmin(6, fmax(0, x + 3)) / 6,
            [TT_HARD_SWISH] = x * fmin(6, fmax(0, x + 3)) / 6,
            [TT_SOFTSIGN] = x / (1 + fabs(x)),
        };
        y[i] = all[op_case_of(t)->p[1]];
    }
}
#define ACT(act_)                                                                             \
    {                                                                                         \
        .label = "activation " #act_, .build = activation_build, .oracle = activation_oracle, \
        .rows = 5, .p = {21, act_}, .f = {                                                    \
            -3,                                                                               \
            3                                                                                 \
        }                                                                                     \
    }

OP_CASES(unary, CASE(neg, 7, -2, 2), CASE(abs, 13, -2, 2), CASE(sqrt, 16, 0.1, 4),
         CASE(rsqrt, 17, 0.1, 4), CASE(exp, 33, -3, 3), CASE(log, 31, 0.1, 9), CASE(sin, 5, -9, 9),
         CASE(cos, 7, -9, 9), CASE(tanh, 41, -4, 4), CASE(sigmoid, 40, -6, 6), CASE(relu, 3, -1, 1),
         CASE(gelu, 37, -4, 4), CASE(gelu_erf, 29, -4, 4), CASE(silu, 11, -5, 5),
         CASE(softplus, 19, -8, 8), CASE(selu, 21, -3, 3), CASE(relu6, 18, -3, 9),
         CASE(mish, 35, -6, 6), CASE(hard_sigmoid, 14, -5, 5), CASE(hard_swish, 26, -5, 5),
         CASE(softsign, 12, -9, 9), CASE(square, 23, -3, 3), CASE(erf, 47, -3, 3),
         CASE(identity, 9, -1, 1), CASE(leaky_relu, 6, -2, 2), CASE(elu, 25, -3, 3),
         CASE(clip, 15, -2, 2), CASE(scale, 1, -2, 2), CASE(chain, 700, -2, 2),
         {.label = "sign",
          .build = sign_build,
          .oracle = sign_oracle,
          .rows = 4,
          .p = {9},
          .f = {-1, 1},
          .skip = OP_NO_GRAD},
         {.label = "stop_gradient",
          .build = stop_gradient_build,
          .oracle = stop_gradient_oracle,
          .p = {20},
          .f = {-1, 1},
          .skip = OP_NO_GRAD},
         {.label = "large", .build = gelu_build, .oracle = gelu_oracle, .p = {9001}, .f = {-4, 4}},
         {.label = "none", .build = exp_build, .oracle = exp_oracle, .p = {0}, .f = {-1, 1}},
         ACT(TT_LINEAR), ACT(TT_RELU), ACT(TT_GELU), ACT(TT_GELU_ERF), ACT(TT_SIGMOID),
         ACT(TT_TANH), ACT(TT_SILU), ACT(TT_ELU), ACT(TT_LEAKY_RELU), ACT(TT_SOFTPLUS),
         ACT(TT_SELU), ACT(TT_RELU6), ACT(TT_MISH), ACT(TT_HARD_SIGMOID), ACT(TT_HARD_SWISH),
         ACT(TT_SOFTSIGN))

// ---- binary: a pair of shapes by p[0]; a in f[0] to f[1], b in f[2] to f[3] ------------------

#define B TT_BATCH
static const struct {
    tt_shape a, b;
} pairs[] = {
    {{2, {B, 33}}, {2, {B, 33}}},     // 0: same
    {{2, {B, 10}}, {1, {10}}},        // 1: rows and a short vector
    {{2, {B, 300}}, {1, {300}}},      // 2: rows and a long vector
    {{2, {B, 7}}, {2, {B, 1}}},       // 3: rows and a column
    {{2, {B, 100}}, {0, {0}}},        // 4: a number
    {{0, {0}}, {1, {B}}},             // 5: on the left
    {{3, {B, 4, 1}}, {3, {1, 1, 5}}}, // 6: both
    {{4, {2, 1, 3, 1}}, {3, {5, 1, 7}}},
    {{2, {13, 1}}, {2, {1, 17}}},
    {{2, {700, 4}}, {1, {4}}}, // 9: repeated in tiles
    {{2, {0, 5}}, {1, {5}}},   // 10: nothing
    {{1, {1}}, {0, {0}}},
    {{3, {B, 3, 70}}, {3, {B, 1, 70}}}, // 12: long runs inside
    {{2, {90, 1}}, {2, {90, 80}}},
};
#undef B

static const double *pair_at(const op_test *t, int k, int64_t i, double *v)
{
    tt_shape y = op_out_shape(t), s = op_shape(t, k);
    int64_t at = 0, size = 1;
    for (int a = 0; a < y.rank; a++) {
        int64_t j = i % y.dim[y.rank - 1 - a];
        i /= y.dim[y.rank - 1 - a];
        if (a < s.rank) {
            at += s.dim[s.rank - 1 - a] == 1 ? 0 : j * size;
            size *= s.dim[s.rank - 1 - a];
        }
    }
    *v = op_value(t, k)[at];
    return v;
}

#define BINARY_AS(name_, call_, expr_)                                  \
    static tt_tensor *name_##_build(op_test *t)                         \
    {                                                                   \
        const op_case *c = op_case_of(t);                               \
        tt_graph *g = op_graph(t);                                      \
        tt_tensor *u = op_input(t, pairs[c->p[0]].a, c->f[0], c->f[1]); \
        tt_tensor *v = op_input(t, pairs[c->p[0]].b, c->f[2], c->f[3]); \
        return call_;                                                   \
    }                                                                   \
    static void name_##_oracle(const op_test *t, double *y)             \
    {                                                                   \
        for (int64_t i = 0; i < op_count(t); i++) {                     \
            double a, b;                                                \
            pair_at(t, 0, i, &a);                                       \
            pair_at(t, 1, i, &b);                                       \
            y[i] = (expr_);                                             \
        }                                                               \
    }
#define BINARY(name_, expr_) BINARY_AS(name_, tt_##name_(g, u, v), expr_)
BINARY(add, a + b)
BINARY(sub, a - b)
BINARY(mul, a *b)
BINARY(div, a / b)
BINARY(pow, pow(a, b))
BINARY(minimum, fmin(a, b))
BINARY(maximum, fmax(a, b))
BINARY(equal, a == b)
BINARY(not_equal, a != b)
BINARY(less, a < b)
BINARY(less_equal, a <= b)
BINARY(greater, a > b)
BINARY(greater_equal, a >= b)
BINARY_AS(logic,
          tt_logical_or(g, tt_logical_and(g, tt_less(g, u, v), tt_greater(g, u, tt_neg(g, v))),
                        tt_logical_not(g, tt_less(g, v, tt_square(g, v)))),
          (a < b && a > -b) || !(b < b * b))
BINARY_AS(where, tt_where(g, tt_less(g, u, v), u, tt_mul(g, v, v)), a < b ? a : b * b)
BINARY_AS(broadcast, tt_broadcast(g, v, u), b + 0 * a)

#define PAIR(name_, pair_) \
    .label = #name_ " " #pair_, .build = name_##_build, .oracle = name_##_oracle, .p = {pair_}
#define OPEN(name_, pair_)                                          \
    {                                                               \
        PAIR(name_, pair_), .rows = 13, .f = { 0.5, 2, -1.5, 1.25 } \
    }
#define FIXED(name_, pair_)                             \
    {                                                   \
        PAIR(name_, pair_), .f = { 0.5, 2, -1.5, 1.25 } \
    }
#define TEST_OF(name_, pair_)                                                  \
    {                                                                          \
        PAIR(name_, pair_), .rows = 9, .f = {-1, 1, -1, 1}, .skip = OP_NO_GRAD \
    }
#define QUOTIENT(name_, pair_)                                  \
    {                                                           \
        PAIR(name_, pair_), .rows = 12, .f = { 0.5, 2, 0.5, 2 } \
    }
OP_CASES(binary, OPEN(add, 0), OPEN(add, 1), OPEN(add, 2), OPEN(add, 3), OPEN(add, 4), OPEN(add, 5),
         OPEN(add, 6), FIXED(add, 7), FIXED(add, 8), FIXED(add, 9), FIXED(add, 10), FIXED(add, 11),
         OPEN(add, 12), FIXED(add, 13), OPEN(sub, 1), OPEN(sub, 5), FIXED(sub, 7), OPEN(mul, 0),
         OPEN(mul, 1), OPEN(mul, 3), OPEN(mul, 4), OPEN(mul, 6), FIXED(mul, 9), OPEN(mul, 12),
         QUOTIENT(div, 0), QUOTIENT(div, 1), QUOTIENT(div, 3), QUOTIENT(div, 4), OPEN(pow, 0),
         OPEN(pow, 1), OPEN(pow, 4), FIXED(pow, 8), OPEN(minimum, 0), OPEN(minimum, 2),
         OPEN(maximum, 0), OPEN(maximum, 4), FIXED(maximum, 7), TEST_OF(equal, 1),
         TEST_OF(not_equal, 0), TEST_OF(less, 2), TEST_OF(less_equal, 3), TEST_OF(greater, 4),
         TEST_OF(greater_equal, 5), TEST_OF(logic, 6), OPEN(where, 0), OPEN(where, 1),
         OPEN(where, 3), FIXED(where, 7), OPEN(broadcast, 1), OPEN(broadcast, 3),
         OPEN(broadcast, 4), OPEN(broadcast, 12))

// ---- integers, casts, limits -----------------------------------------------------------------

#define EVAL(T, n_, expr_)                \
    T y[n_];                              \
    CHECK_OK(tt_eval(g, (expr_), y, n_)); \
    (void)y

TEST_BOTH(binary_integers_wrap)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    int32_t a[] = {INT32_MAX, INT32_MIN, -7}, b[] = {1, -1, 3};
    tt_tensor *x = tt_const(g, TT_I32, TT_SHAPE(3), a), *z = tt_const(g, TT_I32, TT_SHAPE(3), b);
    {
        EVAL(int32_t, 3, tt_add(g, x, z));
        CHECK(y[0] == INT32_MIN && y[1] == INT32_MAX && y[2] == -4);
    }
    {
        EVAL(int32_t, 3, tt_mul(g, x, z));
        CHECK(y[0] == INT32_MAX && y[1] == INT32_MIN && y[2] == -21);
    }
    {
        EVAL(int32_t, 3, tt_maximum(g, x, z));
        CHECK(y[0] == INT32_MAX && y[1] == -1 && y[2] == 3);
    }
    {
        EVAL(int32_t, 3, tt_abs(g, tt_neg(g, x)));
        CHECK(y[0] == INT32_MAX && y[1] == INT32_MIN && y[2] == 7);
    }
    {
        EVAL(int32_t, 3, tt_sign(g, x));
        CHECK(y[0] == 1 && y[1] == -1 && y[2] == -1);
    }
    {
        EVAL(uint8_t, 3, tt_less(g, x, z));
        CHECK(!y[0] && y[1] && y[2]);
    }
    {
        EVAL(int32_t, 3, tt_where(g, tt_less(g, x, z), x, z));
        CHECK(y[0] == 1 && y[1] == INT32_MIN && y[2] == -7);
    }
    int64_t c[] = {INT64_MAX, -5};
    {
        EVAL(int64_t, 2, tt_square(g, tt_const(g, TT_I64, TT_SHAPE(2), c)));
        CHECK(y[0] == 1 && y[1] == 25);
    }
    uint8_t d[] = {250, 3}, e[] = {10, 5};
    tt_tensor *u = tt_const(g, TT_U8, TT_SHAPE(2), d), *v = tt_const(g, TT_U8, TT_SHAPE(2), e);
    {
        EVAL(uint8_t, 2, tt_add(g, u, v));
        CHECK(y[0] == 4 && y[1] == 8);
    }
    {
        EVAL(uint8_t, 2, tt_sub(g, v, u));
        CHECK(y[0] == 16 && y[1] == 2);
    }
    CHECK_OK(tt_close(ctx));
}

TEST_BOTH(cast_saturates_and_cuts)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    float a[] = {1.9f, -1.9f, NAN, INFINITY, -INFINITY, 300.5f, 3e9f, 1e20f};
    tt_tensor *x = tt_const(g, TT_F32, TT_SHAPE(8), a);
    {
        EVAL(int32_t, 8, tt_cast(g, x, TT_I32));
        const int32_t want[] = {1, -1, 0, INT32_MAX, INT32_MIN, 300, INT32_MAX, INT32_MAX};
        CHECK(memcmp(y, want, sizeof(want)) == 0);
    }
    {
        EVAL(int64_t, 8, tt_cast(g, x, TT_I64));
        const int64_t want[] = {1, -1, 0, INT64_MAX, INT64_MIN, 300, 3000000000, INT64_MAX};
        CHECK(memcmp(y, want, sizeof(want)) == 0);
    }
    {
        EVAL(uint8_t, 8, tt_cast(g, x, TT_U8));
        const uint8_t want[] = {1, 0, 0, 255, 0, 255, 255, 255};
        CHECK(memcmp(y, want, sizeof(want)) == 0);
    }
    {
        EVAL(uint8_t, 8, tt_cast(g, x, TT_BOOL));
        for (int i = 0; i < 8; i++)
            CHECK(y[i] == 1);
    }
    CHECK_OK(tt_close(ctx));
}

/*
 * Every pair of integer types at the bounds of both: what does not fit becomes the nearest that
 * does. Numbers enter and leave as i64, which holds them all.
 */
TEST_BOTH(cast_integers_saturate)
{
    static const tt_dtype types[] = {TT_U8, TT_I32, TT_I64};
    static const int64_t low[] = {0, INT32_MIN, INT64_MIN}, high[] = {255, INT32_MAX, INT64_MAX};
    static const int64_t all[] = {0,         1,         -1,          127,        128,
                                  255,       256,       -128,        -256,       INT32_MAX,
                                  INT32_MIN, 0x1p31,    -0x1p31 - 1, 0xffffffff, 0x100000000,
                                  INT64_MAX, INT64_MIN, 1000};
    enum {
        N = sizeof(all) / sizeof(all[0])
    };
    for (int from = 0; from < 3; from++)
        for (int to = 0; to < 4; to++) {
            tt_ctx *ctx = test_ctx();
            tt_graph *g = tt_graph_new(ctx);
            int64_t wide[N], y[N];
            int32_t middle[N];
            uint8_t narrow[N];
            for (int i = 0; i < N; i++) { // within the type it is cast from
                int64_t v = all[i] < low[from]    ? low[from]
                            : all[i] > high[from] ? high[from]
                                                  : all[i];
                wide[i] = v;
                middle[i] = (int32_t)v;
                narrow[i] = (uint8_t)v;
            }
            const void *data[] = {narrow, middle, wide};
            tt_tensor *x = tt_const(g, types[from], TT_SHAPE(N), data[from]);
            tt_dtype type = to < 3 ? types[to] : TT_BOOL;
            CHECK_OK(tt_eval(g, tt_cast(g, tt_cast(g, x, type), TT_I64), y, N));
            for (int i = 0; i < N; i++) {
                int64_t v = wide[i];
                int64_t want = to == 3        ? v != 0
                               : v < low[to]  ? low[to]
                               : v > high[to] ? high[to]
                                              : v;
                ck_assert_msg(y[i] == want, "%s %lld to %s gives %lld, not %lld",
                              tt_dtype_name(types[from]), (long long)v, tt_dtype_name(type),
                              (long long)y[i], (long long)want);
            }
            CHECK_OK(tt_close(ctx));
        }
}

// Small whole numbers survive every pair of types.
TEST(cast_every_pair)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    float a[37], y[37];
    for (int i = 0; i < 37; i++)
        a[i] = (float)(i * 3);
    tt_tensor *x = tt_const(g, TT_F32, TT_SHAPE(37), a);
    for (int from = 0; from < TT_N_DTYPES; from++)
        for (int to = 0; to < TT_N_DTYPES; to++) {
            tt_tensor *z = tt_cast(g, tt_cast(g, x, (tt_dtype)from), (tt_dtype)to);
            CHECK_OK(tt_eval(g, tt_cast(g, z, TT_F32), y, 37));
            bool bit = from == TT_BOOL || to == TT_BOOL;
            for (int i = 0; i < 37; i++)
                ck_assert_msg(y[i] == (bit ? (float)(a[i] != 0) : a[i]), "%s to %s: %g gives %g",
                              tt_dtype_name((tt_dtype)from), tt_dtype_name((tt_dtype)to),
                              (double)a[i], (double)y[i]);
        }
    CHECK_OK(tt_close(ctx));
}

static tt_tensor *cast_build(op_test *t)
{
    const op_case *c = op_case_of(t);
    tt_tensor *x = op_input(t, TT_SHAPE(TT_BATCH, 19), -4, 4);
    return tt_cast(op_graph(t), tt_cast(op_graph(t), x, (tt_dtype)c->p[0]), op_dtype(t));
}
static void cast_oracle(const op_test *t, double *y)
{
    memcpy(y, op_value(t, 0), sizeof(double) * (size_t)op_count(t));
}
OP_CASES(cast,
         {.label = "f64",
          .build = cast_build,
          .oracle = cast_oracle,
          .rows = 9,
          .p = {TT_F64},
          .skip = OP_NO_GPU},
         {.label = "bf16",
          .build = cast_build,
          .oracle = cast_oracle,
          .rows = 9,
          .p = {TT_BF16},
          .tol = 0.01,
          .skip = OP_NO_GRAD},
         {.label = "f16",
          .build = cast_build,
          .oracle = cast_oracle,
          .rows = 9,
          .p = {TT_F16},
          .tol = 0.001,
          .skip = OP_NO_GRAD})

// ---- errors ----------------------------------------------------------------------------------

TEST(binary_refuses_shapes)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    CHECK(tt_add(g, test_uniform(g, 1, TT_SHAPE(2, 3)), test_uniform(g, 2, TT_SHAPE(4))) == NULL);
    CHECK_MESSAGE(ctx, "[2, 3]");
    CHECK_MESSAGE(ctx, "[4]");
    CHECK(tt_close(ctx) == TT_ESHAPE);
}

TEST(binary_refuses_mixed_types)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    CHECK(tt_mul(g, test_uniform(g, 1, TT_SHAPE(4)), test_iota_i32(g, 4)) == NULL);
    CHECK_MESSAGE(ctx, "f32");
    CHECK_MESSAGE(ctx, "i32");
    CHECK(tt_close(ctx) == TT_EDTYPE);
}

TEST(unary_refuses_types)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *(*const builders[])(tt_graph *, tt_tensor *) = {tt_exp, tt_relu, tt_logical_not};
    for (int i = 0; i < 3; i++) {
        CHECK(builders[i](g, test_iota_i32(g, 4)) == NULL);
        CHECK(tt_status_of(ctx) == TT_EDTYPE);
        tt_clear_error(ctx);
    }
    tt_tensor *x = test_uniform(g, 1, TT_SHAPE(3));
    CHECK(tt_neg(g, tt_cast(g, x, TT_BOOL)) == NULL);
    CHECK(tt_status_of(ctx) == TT_EDTYPE);
    tt_clear_error(ctx);
    CHECK(tt_div(g, test_iota_i32(g, 3), test_iota_i32(g, 3)) == NULL);
    CHECK(tt_status_of(ctx) == TT_EDTYPE);
    tt_clear_error(ctx);
    CHECK(tt_where(g, x, x, x) == NULL);
    CHECK_MESSAGE(ctx, "not bool");
    CHECK(tt_close(ctx) == TT_EDTYPE);
}

TEST(unary_refuses_values)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = test_uniform(g, 1, TT_SHAPE(3));
    CHECK(tt_clip(g, x, 2, 1) == NULL);
    CHECK_MESSAGE(ctx, "low is 2 but high is 1");
    tt_clear_error(ctx);
    CHECK(tt_elu(g, x, -1) == NULL);
    tt_clear_error(ctx);
    CHECK(tt_leaky_relu(g, x, -1) == NULL);
    tt_clear_error(ctx);
    CHECK(tt_activation(g, x, (tt_act)99) == NULL);
    tt_clear_error(ctx);
    CHECK(tt_cast(g, x, (tt_dtype)77) == NULL);
    CHECK(tt_close(ctx) == TT_EDTYPE);
}

TEST(broadcast_refuses_shapes)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = test_uniform(g, 1, TT_SHAPE(2, 3)), *like = test_uniform(g, 1, TT_SHAPE(3));
    CHECK(tt_broadcast(g, x, like) == NULL);
    CHECK_MESSAGE(ctx, "x is [2, 3] but like is [3]");
    tt_clear_error(ctx);
    CHECK(tt_sum_like(g, like, x) == NULL);
    CHECK(tt_close(ctx) == TT_ESHAPE);
}

// A NaN stays one through relu and clip, a tie of maximum gives its gradient to b.
TEST_BOTH(unary_relu_keeps_nan)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    float a[] = {NAN, -0.0f, 2};
    tt_tensor *x = tt_const(g, TT_F32, TT_SHAPE(3), a);
    EVAL(float, 3, tt_clip(g, tt_relu(g, x), 0, 1));
    CHECK(isnan(y[0]) && y[1] == 0 && !signbit(y[1]) && y[2] == 1);
    CHECK_OK(tt_close(ctx));
}

TEST_BOTH(maximum_tie_gradient)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *a = tt_scalar(g, 3), *b = tt_scalar(g, 3), *xs[] = {a, b}, *dx[2];
    CHECK_OK(tt_grad(g, tt_maximum(g, a, b), NULL, 2, xs, dx));
    float da, db;
    CHECK_OK(tt_eval(g, dx[0], &da, 1));
    CHECK_OK(tt_eval(g, dx[1], &db, 1));
    CHECK(da == 0 && db == 1);
    CHECK_OK(tt_close(ctx));
}
