/*
 * batch_norm.c - batch norm against plain loops in double: statistics of the whole batch, the
 * residual, activations, running statistics.
 */
#include "op_test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHANNELS,
    MIDDLE,
    LEAD,
    INFER,
    RESIDUAL,
    ACT
}; // p[]

static tt_shape shape_of(const op_case *c)
{
    int64_t lead = c->rows > 0 ? TT_BATCH : c->p[LEAD];
    return c->p[MIDDLE] > 0 ? TT_SHAPE(lead, c->p[MIDDLE], 2, c->p[CHANNELS])
                            : TT_SHAPE(lead, c->p[CHANNELS]);
}

static tt_tensor *build(op_test *t)
{
    const op_case *c = op_case_of(t);
    tt_shape shape = shape_of(c), v = TT_SHAPE(c->p[CHANNELS]);
    tt_tensor *x = op_input(t, shape, -1, 4);
    tt_batch_norm_vars vars = {.gamma = op_input(t, v, 0.5, 1.5), .beta = op_input(t, v, -1, 1)};
    tt_tensor *residual = c->p[RESIDUAL] ? op_input(t, shape, -1, 1) : NULL;
    if (c->p[INFER]) {
        vars.mean = op_input(t, v, 1, 2);
        vars.var = op_input(t, v, 0.5, 2);
    }
    return tt_batch_norm(op_graph(t), x, vars, .infer = c->p[INFER] != 0, .residual = residual,
                         .act = (tt_act)c->p[ACT]);
}

static void oracle(const op_test *t, double *y)
{
    const op_case *c = op_case_of(t);
    int64_t n = c->p[CHANNELS], rows = op_count(t) / n;
    int next = 3;
    const double *x = op_value(t, 0), *gamma = op_value(t, 1), *beta = op_value(t, 2);
    const double *residual = c->p[RESIDUAL] ? op_value(t, next++) : NULL;
    for (int64_t j = 0; j < n; j++) {
        double mean = 0, var = 0;
        for (int64_t r = 0; r < rows; r++)
            mean += x[r * n + j] / (double)rows;
        for (int64_t r = 0; r < rows; r++)
            var += (x[r * n + j] - mean) * (x[r * n + j] - mean) / (double)rows;
        if (c->p[INFER]) {
            mean = op_value(t, next)[j];
            var = op_value(t, next + 1)[j];
        }
        for (int64_t r = 0; r < rows; r++) {
            double z = (x[r * n + j] - mean) / sqrt(var + 1e-5) * gamma[j] + beta[j];
            z += residual != NULL ? residual[r * n + j] : 0;
            y[r * n + j] = test_act((tt_act)c->p[ACT], z);
        }
    }
}

#define NORM .build = build, .oracle = oracle
#define GRAD .grad_tol = 3e-5
OP_CASES(
    batch_norm, {.label = "open", NORM, GRAD, .rows = 13, .p = {[CHANNELS] = 20}},
    {.label = "images", NORM, GRAD, .rows = 11, .p = {[CHANNELS] = 5, [MIDDLE] = 3}},
    {.label = "fewer rows than lanes", NORM, GRAD, .rows = 3, .p = {[CHANNELS] = 70, [MIDDLE] = 4}},
    {.label = "one lane", NORM, GRAD, .p = {[CHANNELS] = 130, [LEAD] = 17}},
    {.label = "relu and residual",
     NORM,
     GRAD,
     .rows = 7,
     .p = {[CHANNELS] = 16, [RESIDUAL] = 1, [ACT] = TT_RELU}},
    {.label = "silu",
     NORM,
     GRAD,
     .rows = 9,
     .p = {[CHANNELS] = 6, [RESIDUAL] = 1, [ACT] = TT_SILU}},
    {.label = "tanh", NORM, GRAD, .rows = 5, .p = {[CHANNELS] = 6, [ACT] = TT_TANH}},
    {.label = "many rows",
     NORM,
     .rows = 701,
     .p = {[CHANNELS] = 3},
     .tol = 2e-5,
     .skip = OP_NO_GRAD},
    {.label = "infer", NORM, GRAD, .rows = 13, .p = {[CHANNELS] = 33, [INFER] = 1}},
    {.label = "infer, residual",
     NORM,
     GRAD,
     .rows = 11,
     .p = {[CHANNELS] = 7, [MIDDLE] = 2, [INFER] = 1, [RESIDUAL] = 1, [ACT] = TT_SILU}},
    {.label = "infer, one lane", NORM, GRAD, .p = {[CHANNELS] = 70, [LEAD] = 6, [INFER] = 1}})

static tt_batch_norm_vars variables(tt_graph *g, int64_t c)
{
    tt_batch_norm_vars v;
    tt_init one = {TT_INIT_CONSTANT, 1, 0};
    v.gamma = tt_variable(g, .shape = TT_SHAPE(c), .init = one, .name = "gamma");
    v.beta = tt_variable(g, .shape = TT_SHAPE(c), .name = "beta");
    v.mean = tt_variable(g, .shape = TT_SHAPE(c), .no_train = true, .name = "mean");
    v.var = tt_variable(g, .shape = TT_SHAPE(c), .init = one, .no_train = true, .name = "var");
    return v;
}

OP_TESTED(batch_norm, "batch_norm_running")

TEST_BOTH(batch_norm_running_statistics)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 2));
    tt_batch_norm_vars v = variables(g, 2);
    tt_tensor *targets[2];
    tt_tensor *y =
        tt_batch_norm(g, x, v, .momentum = 0.75, .new_mean = &targets[0], .new_var = &targets[1]);
    CHECK(y != NULL);
    tt_session *s = tt_session_new(g);
    float data[] = {1, 10, 3, 20, 5, 60}, mean[2], var[2];
    tt_feed_value feed = {x, data, TT_SHAPE(3, 2), TT_F32};
    CHECK_OK(tt_run(s, .feeds = &feed, .n_feeds = 1, .targets = targets, .n_targets = 2));
    CHECK_OK(tt_get_variable(s, v.mean, mean, sizeof(mean)));
    CHECK_OK(tt_get_variable(s, v.var, var, sizeof(var)));
    CHECK_NEAR(mean[0], 0.25 * 3, 1e-6);
    CHECK_NEAR(mean[1], 0.25 * 30, 1e-5);
    CHECK_NEAR(var[0], 0.75 + 0.25 * 4, 1e-6); // 8 / (3 - 1)
    CHECK_NEAR(var[1], 0.75 + 0.25 * 700, 1e-3);
    CHECK_OK(tt_close(ctx));
}

TEST_BOTH(batch_norm_of_one_row_is_beta)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    float y[3];
    tt_tensor *x = test_uniform(g, 5, TT_SHAPE(1, 3));
    CHECK_OK(tt_eval(g, tt_batch_norm(g, x, variables(g, 3)), y, 3));
    for (int i = 0; i < 3; i++)
        CHECK(y[i] == 0);
    CHECK_OK(tt_close(ctx));
}

TEST(batch_norm_needs_the_whole_batch)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 2));
    tt_tensor *y = tt_batch_norm(g, x, variables(g, 2));
    tt_session *s = tt_session_new(g);
    float data[8] = {0}, out[8];
    tt_feed_value feed = {x, data, TT_SHAPE(4, 2), TT_F32};
    tt_fetch fetch = {y, out, sizeof(out)};
    CHECK(tt_run(s, .feeds = &feed, .n_feeds = 1, .fetches = &fetch, .n_fetches = 1,
                 .batch = {.first_row = 0, .global_rows = 8, .lanes = 8}) != TT_OK);
    CHECK_MESSAGE(ctx, "batch_norm");
    CHECK(tt_close(ctx) != TT_OK);
}

TEST(batch_norm_refuses_what_does_not_fit)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = test_uniform(g, 1, TT_SHAPE(4, 5)), *other = test_uniform(g, 1, TT_SHAPE(4, 6));
    CHECK(tt_batch_norm(g, x, variables(g, 4)) == NULL);
    CHECK_MESSAGE(ctx, "batch_norm_apply: x is [4, 5] but gamma is [4], not [5]");
    tt_clear_error(ctx);
    CHECK(tt_batch_norm(g, x, variables(g, 5), .residual = other) == NULL);
    CHECK_MESSAGE(ctx, "residual is f32 [4, 6]");
    tt_clear_error(ctx);
    CHECK(tt_batch_norm(g, test_iota_i32(g, 5), variables(g, 5)) == NULL);
    CHECK(tt_close(ctx) == TT_EDTYPE);
}
