/*
 * noise.c - gaussian_noise: the numbers of Box-Muller from the words of the scalar generator.
 */
#include "op_test.h"

#include "base/base.h"
#include "op/cpu/philox.h"
#include <math.h>

static uint64_t key; // of the node built last; the same in every trial

static tt_tensor *build(op_test *t)
{
    const op_case *c = op_case_of(t);
    tt_shape s = {(int)c->p[0], {c->p[1], c->p[2], c->p[3]}};
    tt_tensor *y = tt_gaussian_noise(op_graph(t), op_input(t, s, 0.5, 1), c->f[0]);
    if (y != NULL)
        key = tt_tensor_get_node(y)->key;
    return y;
}

// Number z of element e of a row; cases run with seed 7, step 3.
static double normal(uint64_t row, int64_t e)
{
    uint64_t number = (uint64_t)(e / 64 * 16 + e % 16);
    uint64_t low = (number & 0xffffffffu) | row << 32, high = 3 | number >> 32 << 32;
    tti_philox w = tti_philox4(tti_random_key(7, key), low, high);
    int k = (int)(e % 64 / 16);
    double u = ((double)(w.v[k / 2 * 2] >> 8) + 1) * 0x1p-24;
    double angle = (double)(w.v[k / 2 * 2 + 1] >> 8) * 0x1p-24 * 2 * M_PI;
    return sqrt(-2 * log(u)) * (k % 2 == 0 ? cos(angle) : sin(angle));
}

static void oracle(const op_test *t, double *y)
{
    const op_case *c = op_case_of(t);
    int64_t rows = c->rows > 0 ? c->rows : 1, per = op_count(t) / rows;
    for (int64_t i = 0; i < op_count(t); i++)
        y[i] = op_value(t, 0)[i] + c->f[0] * normal((uint64_t)(i / per), i % per);
}

#define CASE .build = build, .oracle = oracle
OP_CASES(gaussian_noise, {"rows", CASE, .rows = 13, .f = {0.25}, .p = {2, TT_BATCH, 97}},
         {"one_per_row", CASE, .rows = 13, .f = {0.5}, .p = {1, TT_BATCH}},
         {"tokens", CASE, .rows = 9, .f = {0.1}, .p = {2, -5, 31}},
         {"closed", CASE, .f = {2}, .p = {3, 3, 7, 11}}, {"empty", CASE, .f = {2}, .p = {2, 0, 11}})

static tt_tensor *build_moved(op_test *t)
{
    tt_tensor *x = op_input(t, TT_SHAPE(TT_BATCH, 3, 23), 0.5, 1);
    return tt_gaussian_noise(op_graph(t), tt_transpose(op_graph(t), x, TT_AXES(1, 0, 2)), 0.3);
}
OP_CASES(gaussian_noise_moved,
         {.label = "second_axis", .build = build_moved, .rows = 13, .skip = OP_NO_ORACLE})

TEST(gaussian_noise_has_its_moments_and_checks)
{
    enum {
        N = 50000
    };
    static float y[N];
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_fill(g, TT_F32, TT_SHAPE(N), 1);
    double sum = 0, squares = 0;
    CHECK_OK(tt_eval(g, tt_gaussian_noise(g, x, 2), y, N));
    for (int i = 0; i < N; i++) {
        sum += y[i] - 1;
        squares += (y[i] - 1) * (y[i] - 1);
    }
    CHECK_NEAR(sum / N, 0, 0.045); // five deviations
    CHECK_NEAR(squares / N, 4, 0.13);
    CHECK(tt_gaussian_noise(g, x, 0) == x);
    CHECK(tt_gaussian_noise(g, x, -1) == NULL);
    CHECK_MESSAGE(ctx, "the deviation is -1; it must be at least 0");
    CHECK(tt_close(ctx) == TT_EINVAL);
}
