/*
 * norm.c - layer norm and RMS norm against plain loops in double.
 */
#include "op_test.h"
#include <math.h>
#include <string.h>

enum {
    COLS,
    MIDDLE,
    LEAD,
    GAMMA,
    BETA,
    RMS,
    LAST
}; // p[]

static tt_shape shape_of(const op_case *c)
{
    int64_t lead = c->rows > 0 ? TT_BATCH : c->p[LEAD];
    return c->p[MIDDLE] > 0 ? TT_SHAPE(lead, c->p[MIDDLE], c->p[COLS]) : TT_SHAPE(lead, c->p[COLS]);
}

static tt_tensor *build(op_test *t)
{
    const op_case *c = op_case_of(t);
    tt_graph *g = op_graph(t);
    tt_tensor *x = op_input(t, shape_of(c), -1, 3);
    tt_tensor *gamma = c->p[GAMMA] ? op_input(t, TT_SHAPE(c->p[COLS]), 0.5, 1.5) : NULL;
    tt_tensor *beta = c->p[BETA] ? op_input(t, TT_SHAPE(c->p[COLS]), -1, 1) : NULL;
    if (c->p[LAST]) // the batch is the second axis
        x = tt_transpose(g, x, TT_AXES(1, 0, 2));
    return c->p[RMS] ? tt_rms_norm(g, x, gamma, .eps = c->f[0])
                     : tt_layer_norm(g, x, gamma, beta, .eps = c->f[0]);
}

static void oracle(const op_test *t, double *y)
{
    const op_case *c = op_case_of(t);
    int64_t n = c->p[COLS], rows = op_count(t) / n;
    const double *gamma = c->p[GAMMA] ? op_value(t, 1) : NULL;
    const double *beta = c->p[BETA] ? op_value(t, 1 + (int)c->p[GAMMA]) : NULL;
    for (int64_t r = 0; r < rows; r++) {
        int64_t from = c->p[LAST] ? r % c->rows * c->p[MIDDLE] + r / c->rows : r;
        const double *x = op_value(t, 0) + from * n;
        double mean = 0, var = 0;
        for (int64_t j = 0; j < n && !c->p[RMS]; j++)
            mean += x[j] / (double)n;
        for (int64_t j = 0; j < n; j++)
            var += (x[j] - mean) * (x[j] - mean) / (double)n;
        for (int64_t j = 0; j < n; j++) {
            double h = (x[j] - mean) / sqrt(var + (c->f[0] > 0 ? c->f[0] : 1e-5));
            y[r * n + j] = h * (gamma != NULL ? gamma[j] : 1) + (beta != NULL ? beta[j] : 0);
        }
    }
}

#define NORM .build = build, .oracle = oracle
OP_CASES(layer_norm,
         {.label = "open", NORM, .rows = 13, .p = {[COLS] = 40, [GAMMA] = 1, [BETA] = 1}},
         {.label = "rank 3",
          NORM,
          .rows = 11,
          .p = {[COLS] = 33, [MIDDLE] = 5, [GAMMA] = 1, [BETA] = 1}},
         {.label = "wide", NORM, .rows = 19, .p = {[COLS] = 515, [GAMMA] = 1, [BETA] = 1}},
         {.label = "one lane", NORM, .p = {[COLS] = 130, [LEAD] = 21, [GAMMA] = 1, [BETA] = 1}},
         {.label = "gamma", NORM, .rows = 7, .p = {[COLS] = 16, [GAMMA] = 1}},
         {.label = "beta", NORM, .rows = 7, .p = {[COLS] = 17, [BETA] = 1}, .f = {0.1}},
         {.label = "plain", NORM, .rows = 3, .p = {[COLS] = 100}},
         {.label = "batch second",
          NORM,
          .rows = 13,
          .p = {[COLS] = 20, [MIDDLE] = 3, [GAMMA] = 1, [BETA] = 1, [LAST] = 1}},
         {.label = "no rows", NORM, .p = {[COLS] = 9, [LEAD] = 0, [GAMMA] = 1, [BETA] = 1}},
         {.label = "many rows", NORM, .rows = 601, .p = {[COLS] = 5, [GAMMA] = 1, [BETA] = 1}})
OP_CASES(
    rms_norm, {.label = "open", NORM, .rows = 13, .p = {[COLS] = 40, [RMS] = 1, [GAMMA] = 1}},
    {.label = "rank 3", NORM, .rows = 5, .p = {[COLS] = 130, [MIDDLE] = 3, [RMS] = 1, [GAMMA] = 1}},
    {.label = "plain", NORM, .p = {[COLS] = 15, [LEAD] = 4, [RMS] = 1}, .f = {1e-3}},
    {.label = "one lane", NORM, .p = {[COLS] = 300, [LEAD] = 9, [RMS] = 1, [GAMMA] = 1}})

TEST_BOTH(layer_norm_of_equal_numbers_is_beta)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    float y[6], b[] = {1, 2, 3};
    tt_tensor *x = tt_fill(g, TT_F32, TT_SHAPE(2, 3), 7);
    tt_tensor *beta = tt_const(g, TT_F32, TT_SHAPE(3), b);
    CHECK_OK(tt_eval(g, tt_layer_norm(g, x, NULL, beta), y, 6));
    for (int i = 0; i < 6; i++)
        CHECK(y[i] == b[i % 3]);
    CHECK_OK(tt_close(ctx));
}

TEST(norm_refuses_what_does_not_fit)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = test_uniform(g, 1, TT_SHAPE(4, 5)), *v = test_uniform(g, 1, TT_SHAPE(4));
    CHECK(tt_layer_norm(g, x, v, NULL) == NULL);
    CHECK_MESSAGE(ctx, "layer_norm: x is [4, 5] but gamma is [4], not [5]");
    tt_clear_error(ctx);
    CHECK(tt_layer_norm(g, x, NULL, v) == NULL);
    CHECK_MESSAGE(ctx, "beta is [4]");
    tt_clear_error(ctx);
    CHECK(tt_rms_norm(g, tt_scalar(g, 1), NULL) == NULL);
    CHECK_MESSAGE(ctx, "rms_norm: x is []");
    tt_clear_error(ctx);
    CHECK(tt_rms_norm(g, x, test_iota_i32(g, 5)) == NULL);
    CHECK_MESSAGE(ctx, "gamma is i32");
    CHECK(tt_close(ctx) == TT_EDTYPE);
}
