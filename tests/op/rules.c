/*
 * rules.c - one test per rule of arithmetic. For each there is a build that breaks the rule on
 * purpose (make test-break), and which must fail the test of that name:
 *   contract  the compiler may fuse a * b + c      zero   sums do not end with + 0
 *   lanes     lanes follow the number of devices   order  a sum's order depends on the machine
 */
#include "model.h"
#include <math.h>
#include <stdio.h>

static tt_tensor *uniform(tt_graph *g, uint64_t seed, tt_shape shape)
{
    return test_uniform(g, seed, shape);
}

// Evaluates on every instruction set and thread count; the bits must be those of the first.
static void check_everywhere(tt_tensor *(*build)(tt_graph *g), int64_t n)
{
    static float want[1 << 16], got[1 << 16];
    bool is_first = true;
    for (int set = 0; test_isa(set) != NULL; set++)
        for (int threads = 1; threads <= 3; threads++) {
            tt_ctx *ctx = test_ctx_on("cpu:0", test_isa(set), threads);
            tt_graph *g = tt_graph_new(ctx);
            CHECK_OK(tt_eval(g, build(g), is_first ? want : got, n));
            CHECK_OK(tt_close(ctx));
            for (int64_t i = 0; !is_first && i < n; i++)
                ck_assert_msg(memcmp(&got[i], &want[i], sizeof(float)) == 0,
                              "%s, %d threads: element %lld is %a, not %a", test_isa(set), threads,
                              (long long)i, (double)got[i], (double)want[i]);
            is_first = false;
        }
}

// Where products are added without being fused: gradients of norm and gelu, pow.
static tt_tensor *unfused(tt_graph *g)
{
    tt_tensor *x = uniform(g, 1, TT_SHAPE(37, 131)), *dx = NULL;
    tt_tensor *y =
        tt_layer_norm(g, tt_gelu(g, x), uniform(g, 2, TT_SHAPE(131)), uniform(g, 3, TT_SHAPE(131)));
    tt_grad(g, y, uniform(g, 4, TT_SHAPE(37, 131)), 1, &x, &dx);
    return tt_add(g, dx, tt_pow(g, tt_exp(g, x), uniform(g, 5, TT_SHAPE(37, 131))));
}

TEST(rule_contract)
{
    check_everywhere(unfused, 37 * 131);
}

static tt_tensor *products(tt_graph *g)
{
    return tt_matmul(g, uniform(g, 1, TT_SHAPE(19, 777)), uniform(g, 2, TT_SHAPE(777, 43)));
}

static tt_tensor *row_sums(tt_graph *g)
{
    return tt_sum(g, uniform(g, 5, TT_SHAPE(61, 1003)), .axis = -1);
}

TEST(rule_order)
{
    check_everywhere(products, 19 * 43);
    check_everywhere(row_sums, 61);
    // Products: one chain of fused multiply-adds over k ascending, from zero.
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    float a[19 * 777], b[777 * 43], y[19 * 43];
    test_fill(a, 19 * 777, 1, -1, 1);
    test_fill(b, 777 * 43, 2, -1, 1);
    CHECK_OK(tt_eval(g, products(g), y, 19 * 43));
    for (int i = 0; i < 19; i++)
        for (int j = 0; j < 43; j++) {
            float sum = 0;
            for (int k = 0; k < 777; k++)
                sum = fmaf(a[i * 777 + k], b[k * 43 + j], sum);
            ck_assert_msg(y[i * 43 + j] == sum, "product %d, %d: %a, the chain gives %a", i, j,
                          (double)y[i * 43 + j], (double)sum);
        }
    // Sums along a row: element j to partial j mod 16, then partials 8, 4, 2, 1 apart.
    float x[61 * 1003], s[61];
    test_fill(x, 61 * 1003, 5, -1, 1);
    CHECK_OK(tt_eval(g, row_sums(g), s, 61));
    for (int i = 0; i < 61; i++) {
        float p[16] = {0};
        for (int j = 0; j < 1003; j++)
            p[j % 16] += x[i * 1003 + j];
        for (int d = 8; d > 0; d /= 2)
            for (int j = 0; j < d; j++)
                p[j] += p[j + d];
        ck_assert_msg(s[i] == p[0], "row %d: %a, the order gives %a", i, (double)s[i],
                      (double)p[0]);
    }
    CHECK_OK(tt_close(ctx));
}

// No sum, product, maximum or minimum is -0.
TEST(rule_zero)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    float minus[6 * 16], y[256];
    for (int i = 0; i < 6 * 16; i++)
        minus[i] = -0.0f;
    tt_tensor *x = tt_const(g, TT_F32, TT_SHAPE(6, 16), minus);
    tt_tensor *tiny = tt_fill(g, TT_F32, TT_SHAPE(6, 16), 1e-30);
    tt_tensor *less = tt_fill(g, TT_F32, TT_SHAPE(16, 6), -1e-30);
    struct {
        tt_tensor *t;
        int64_t n;
    } sums[] = {
        {tt_sum(g, x, .axis = -1), 6},  {tt_sum(g, x, .axis = TT_FIRST), 16},
        {tt_max(g, x, .axis = -1), 6},  {tt_min(g, x, .axis = -1), 6},
        {tt_matmul(g, tiny, less), 36}, // the products vanish with the sign of minus
    };
    for (size_t k = 0; k < sizeof(sums) / sizeof(sums[0]); k++) {
        CHECK_OK(tt_eval(g, sums[k].t, y, sums[k].n));
        for (int64_t i = 0; i < sums[k].n; i++)
            ck_assert_msg(y[i] == 0 && !signbit(y[i]), "sum %zu, element %lld is %g", k,
                          (long long)i, (double)y[i]);
    }
    CHECK_OK(tt_close(ctx));
}

// The lanes are those of the job, whatever the devices.
TEST(rule_lanes)
{
    static const char *const spreads[] = {"cpu:0", "cpu:0*2", "cpu:0*3"};
    tt_hash want = {0, 0}, got;
    for (int i = 0; i < 3; i++) {
        tt_ctx *ctx = test_ctx_on(spreads[i], NULL, 2);
        test_model m;
        CHECK(test_model_build(&m, ctx, "cpu:0", i > 0 ? "cpu:1" : NULL, NULL));
        tt_session *s = tt_session_new(m.g);
        for (int step = 0; step < 3; step++)
            CHECK(!isnan(test_model_step(&m, s, step, 37)));
        CHECK_OK(tt_weight_hash(s, &got));
        if (i == 0)
            want = got;
        ck_assert_msg(got.low == want.low && got.high == want.high, "%s has other weights than %s",
                      spreads[i], spreads[0]);
        CHECK_OK(tt_close(ctx));
    }
}
