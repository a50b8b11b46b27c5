/*
 * vmath.c - the vector functions of op/vmath.h against libm in double, at their limits, and equal
 * in every instruction set; the conversions of op/half.h over all 16-bit patterns. This file is
 * compiled as the plain set; the other sets are reached through ops.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#pragma GCC optimize("no-inline") // as the Makefile has it: minutes to compile otherwise
#endif
#include "op/cpu/act.h"
#include "op/cpu/half.h"
#include "test.h"
#include <math.h>
#include <stdlib.h>

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}
static double softplus(double x)
{
    return x > 40 ? x : log1p(exp(x));
}

static const struct row {
    const char *name;
    v16 (*fn)(v16 x);
    real (*one)(real x);
    double (*libm)(double x);
    double low, high, ulp;
} rows[] = {
    {"exp", v16_exp, r_exp, exp, -87.33, 88.72, 1.1},
    {"expm1", v16_expm1, r_expm1, expm1, -30, 88.72, 1.6},
    {"expm1 near 0", v16_expm1, r_expm1, expm1, -1e-3, 1e-3, 1.6},
    {"expm1 small", v16_expm1, r_expm1, expm1, 1.2e-38, 1, 1.6},
    {"log", v16_log, r_log, log, 1.2e-38, 3e38, 1.0},
    {"log near 1", v16_log, r_log, log, 0.5, 2, 1.0},
    {"log1p", v16_log1p, r_log1p, log1p, -0.999, 1e6, 1.6},
    {"log1p near 0", v16_log1p, r_log1p, log1p, -1e-3, 1e-3, 1.6},
    {"tanh", v16_tanh, r_tanh, tanh, -10, 10, 1.7},
    {"tanh near 0", v16_tanh, r_tanh, tanh, -1e-3, 1e-3, 1.7},
    {"erf", v16_erf, r_erf, erf, -5, 5, 1.2},
    {"sin", v16_sin, r_sin, sin, -100, 100, 1.7},
    {"sin far", v16_sin, r_sin, sin, -1e5, 1e5, 1.7},
    {"sin of any size", v16_sin, r_sin, sin, 1e-6, 3.4e38, 1.7},
    {"cos", v16_cos, r_cos, cos, -100, 100, 1.7},
    {"cos far", v16_cos, r_cos, cos, -1e5, 1e5, 1.7},
    {"cos of any size", v16_cos, r_cos, cos, 1e-6, 3.4e38, 1.7},
    {"sigmoid", v16_sigmoid, r_sigmoid, sigmoid, -87, 30, 2.5},
    {"softplus", v16_softplus, r_softplus, softplus, -80, 60, 2.1},
};
#define N_ROWS ((int)(sizeof(rows) / sizeof(rows[0])))

// The distance in units of the last place of want.
static double ulps(float got, double want)
{
    int e;
    frexp(want, &e);
    return fabs((double)got - want) / ldexp(1, (e < -125 ? -125 : e) - 24);
}

TEST(vmath_is_accurate)
{
    enum {
        N = 1 << 16
    };
    static float x[N];
    for (int k = 0; k < N_ROWS; k++) {
        const struct row *r = &rows[k];
        test_fill(x, N, (uint64_t)k, r->low, r->high);
        if (r->low > 0 && r->high / r->low > 1e6) { // over magnitudes
            test_fill(x, N, (uint64_t)k, log(r->low), log(r->high));
            for (int i = 0; i < N; i++)
                x[i] = (float)exp(x[i]);
        }
        for (int i = 0; i < N; i += 16) {
            float y[16];
            v16_store(y, r->fn(v16_load(x + i)));
            for (int j = 0; j < 16; j++) {
                double want = r->libm(x[i + j]);
                ck_assert_msg(ulps(y[j], want) <= r->ulp, "%s(%a) is %a, not %a: %.2f ulp", r->name,
                              (double)x[i + j], (double)y[j], want, ulps(y[j], want));
            }
            CHECK(r->one(x[i + 5]) == y[5]);
        }
    }
}

TEST(vmath_pow_is_accurate)
{
    enum {
        N = 1 << 16
    };
    static float a[N], b[N];
    test_fill(a, N, 1, -80, 80);
    test_fill(b, N, 2, -80, 80);
    for (int i = 0; i < N; i++) {
        double t = b[i];
        float l = a[i];
        a[i] = (float)exp(l);
        b[i] = (float)(t / (fabs((double)l) > 1e-3 ? (double)l : 1));
        double want = pow(a[i], b[i]);
        if (want < 1e-37 || want > 1e38)
            continue;
        float y = r_pow(a[i], b[i]);
        ck_assert_msg(ulps(y, want) <= 0.75, "pow(%a, %a) is %a, not %a", (double)a[i],
                      (double)b[i], (double)y, want);
    }
    for (int i = -20; i <= 20; i++)
        for (int j = -9; j <= 9; j++) {
            double want = pow(i, j);
            CHECK(isinf(want) || ulps(r_pow((float)i, (float)j), want) <= 0.75);
        }
}

TEST(vmath_limits)
{
    float inf = INFINITY;
    CHECK(r_exp(89) == inf && r_exp(inf) == inf && r_exp(-88) == 0 && r_exp(-inf) == 0);
    CHECK(r_exp(0) == 1 && isnan(r_exp(NAN)) && r_exp(88.72283f) < inf);
    CHECK(r_expm1(-inf) == -1 && r_expm1(-100) == -1 && r_expm1(inf) == inf && r_expm1(89) == inf);
    CHECK(signbit(r_expm1(-0.0f)) && r_expm1(-1e-8f) == -1e-8f && isnan(r_expm1(NAN)));
    CHECK(r_expm1(88.72283f) < inf && r_expm1(1.2e-38f) == 1.2e-38f);
    CHECK(r_log(0) == -inf && r_log(-0.0f) == -inf && r_log(1) == 0 && r_log(inf) == inf);
    CHECK(isnan(r_log(-1)) && isnan(r_log(NAN)) && isnan(r_log(-inf)));
    CHECK(r_log1p(0) == 0 && r_log1p(-1) == -inf && r_log1p(inf) == inf && isnan(r_log1p(-2)));
    CHECK(r_log1p(1e-20f) == 1e-20f);
    CHECK(r_tanh(20) == 1 && r_tanh(-inf) == -1 && r_tanh(0) == 0 && isnan(r_tanh(NAN)));
    CHECK(r_tanh(1e-20f) == 1e-20f);
    CHECK(r_erf(5) == 1 && r_erf(-inf) == -1 && r_erf(0) == 0 && isnan(r_erf(NAN)));
    CHECK(r_sin(0) == 0 && r_cos(0) == 1 && isnan(r_sin(inf)) && isnan(r_cos(NAN)));
    CHECK(signbit(r_sin(-0.0f)) && signbit(r_tanh(-0.0f)) && signbit(r_erf(-0.0f)));
    CHECK(r_sigmoid(-200) == 0 && r_sigmoid(200) == 1 && r_sigmoid(0) == 0.5f);
    CHECK(r_softplus(-200) == 0 && r_softplus(200) == 200);
    CHECK(r_pow(0, 0) == 1 && r_pow(0, 2) == 0 && r_pow(0, -2) == inf && r_pow(1, NAN) == 1);
    CHECK(r_pow(-2, 3) == -8 && r_pow(-2, 2) == 4 && isnan(r_pow(-2, 0.5f)) &&
          r_pow(2, 200) == inf);
    CHECK(r_pow(inf, -1) == 0 && r_pow(inf, 0.5f) == inf && r_pow(-1, 1e9f) == 1);
    CHECK(isnan(r_pow(NAN, 2)) && r_pow(NAN, 0) == 1 && r_pow(0.5f, 200) == 0);
}

TEST(vmath_is_the_same_in_every_set)
{
    enum {
        N = 1 << 14
    };
    static float x[N], want[12][N], y[N];
    tt_tensor *(*const ops[])(tt_graph *, tt_tensor *) = {
        tt_exp, tt_log,      tt_tanh,     tt_sigmoid, tt_erf,  tt_sin,
        tt_cos, tt_softplus, tt_gelu_erf, tt_silu,    tt_gelu, tt_rsqrt};
    test_fill(x, N, 3, -100, 100);
    for (int i = 0; i < N; i += 2)
        x[i] *= 0.01f;
    for (int set = 0; test_isa(set) != NULL; set++) {
        tt_ctx *ctx = test_ctx_on("cpu:0", test_isa(set), 1);
        tt_graph *g = tt_graph_new(ctx);
        tt_tensor *t = tt_const(g, TT_F32, TT_SHAPE(N), x);
        for (int k = 0; k < 12; k++) {
            CHECK_OK(tt_eval(g, ops[k](g, t), set == 0 ? want[k] : y, N));
            for (int i = 0; set > 0 && i < N; i++)
                ck_assert_msg(memcmp(&y[i], &want[k][i], 4) == 0 ||
                                  (isnan(y[i]) && isnan(want[k][i])),
                              "%s, op %d of %a: %a, not %a", test_isa(set), k, (double)x[i],
                              (double)y[i], (double)want[k][i]);
        }
        CHECK_OK(tt_close(ctx));
    }
}

// An activation at the end of a product has the bits of the op of its own.
TEST(act_has_the_bits_of_the_op)
{
    enum {
        N = 1000
    };
    float x[N], y[N], a[N];
    tt_ctx *ctx = test_ctx_on("cpu:0", "plain", 1);
    tt_graph *g = tt_graph_new(ctx);
    test_fill(x, N, 4, -6, 6);
    tt_tensor *t = tt_const(g, TT_F32, TT_SHAPE(N), x);
    for (int act = TT_RELU; act <= TT_SOFTPLUS; act++) {
        CHECK_OK(tt_eval(g, tt_activation(g, t, (tt_act)act), y, N));
        v16_act_all(act, x, a, N);
        CHECK(memcmp(a, y, sizeof(y)) == 0);
        CHECK(r_act(act, x[7]) == a[7]);
    }
    CHECK_OK(tt_close(ctx));
}

TEST(half_round_trips)
{
    static uint16_t h[65536], back[65536];
    static float x[65536];
    volatile int64_t all = 65536; // or gcc warns of a loop it has unrolled wrongly
    int64_t n = all;
    for (int i = 0; i < 65536; i++)
        h[i] = (uint16_t)i;
    tti_widen_bf16(h, x, n);
    tti_round_bf16(x, back, n);
    for (int i = 0; i < 65536; i++) { // subnormals are flushed
        int want = (i & 0x7f80) == 0 ? i & 0x8000 : i;
        CHECK(isnan(x[i]) ? isnan(r_from_bf16(back[i])) : back[i] == want);
    }
    tti_widen_f16(h, x, n);
    tti_round_f16(x, back, n);
    for (int i = 0; i < 65536; i++) {
        CHECK(isnan(x[i]) ? isnan(r_from_f16(back[i])) : back[i] == i);
        if ((i & 0x7c00) != 0x7c00)
            CHECK(fabs((double)x[i]) == ldexp((i & 0x7c00 ? 1024 : 0) + (i & 0x3ff),
                                              ((i & 0x7c00) ? (i >> 10 & 31) : 1) - 25));
    }
}

// Half-way cases go to the even neighbour, in every set.
TEST(half_rounds_to_even)
{
    CHECK(r_to_bf16(1 + 0x1p-8f) == 0x3f80 && r_to_bf16(1 + 0x3p-8f) == 0x3f82);
    CHECK(r_to_f16(1 + 0x1p-11f) == 0x3c00 && r_to_f16(1 + 0x3p-11f) == 0x3c02);
    CHECK(r_to_f16(65519) == 0x7bff && r_to_f16(65520) == 0x7c00 && r_to_f16(0x1p-25f) == 0);
    CHECK(r_to_f16(0x1.8p-25f) == 1 && r_to_f16(-0x1p-24f) == 0x8001);
    enum {
        N = 4096
    };
    static float x[N];
    static uint16_t want[2][N], y[N];
    for (int i = 0; i < N; i++) // all kinds of tails, exponents in and out of f16's range
        x[i] = ldexpf(1 + (float)(i % 64) * 0x1p-12f + (float)(i % 3) * 0x1p-20f, i / 64 - 40);
    for (int set = 0; test_isa(set) != NULL; set++) {
        tt_ctx *ctx = test_ctx_on("cpu:0", test_isa(set), 1);
        tt_graph *g = tt_graph_new(ctx);
        tt_tensor *t = tt_const(g, TT_F32, TT_SHAPE(N), x);
        for (int k = 0; k < 2; k++) {
            tt_tensor *h = tt_cast(g, t, k == 0 ? TT_BF16 : TT_F16);
            CHECK_OK(tt_eval(g, h, set == 0 ? want[k] : y, N));
            CHECK(set == 0 || memcmp(y, want[k], sizeof(y)) == 0);
        }
        CHECK_OK(tt_close(ctx));
    }
    for (int i = 0; i < N; i++)
        CHECK(want[0][i] == r_to_bf16(x[i]) && want[1][i] == r_to_f16(x[i]));
}
