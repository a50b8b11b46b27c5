/*
 * batch_norm_lane.c - batch norm over: lane against plain loops in double: statistics of each lane
 * by itself, their sums over lanes, the running statistics.
 */
#include "op_test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LANES 8 // of a context that names none

enum {
    CHANNELS,
    MIDDLE,
    LEAD, // above 0: there is no open axis
    TIME, // above 0: the shape is [batch, TIME, channels], turned to [TIME, batch, channels]
    RESIDUAL,
    ACT,
    OUT // which output: y; 3 the means, 4 the unbiased variances, 5 the lanes
};      // p[]

static tt_shape shape_of(const op_case *c)
{
    int64_t lead = c->rows > 0 ? TT_BATCH : c->p[LEAD];
    if (c->p[TIME] > 0)
        return TT_SHAPE(lead, c->p[TIME], c->p[CHANNELS]);
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
    if (c->p[TIME] > 0)
        x = tt_transpose(op_graph(t), x, TT_AXES(1, 0, 2));
    tt_tensor *y = tt_batch_norm(op_graph(t), x, vars, .over = TT_OVER_LANE, .residual = residual,
                                 .act = (tt_act)c->p[ACT]);
    if (c->p[TIME] > 0)
        return tt_transpose(op_graph(t), y, TT_AXES(1, 0, 2));
    return y == NULL ? NULL : y->node->outs[c->p[OUT]];
}

// The lane of flat row r of x.
static int lane_of(const op_case *c, int64_t r)
{
    int64_t inner = c->p[MIDDLE] > 0 ? 2 * c->p[MIDDLE] : 1;
    int64_t row = r / (c->p[TIME] > 0 ? c->p[TIME] : inner);
    int lane = 0;
    while (c->rows > 0 && row >= (lane + 1) * c->rows / LANES)
        lane++;
    return lane;
}

typedef struct moments {
    double n, mean, m2;
} moments;

static void moments_of(const op_test *t, int64_t j, moments m[LANES])
{
    const op_case *c = op_case_of(t);
    tt_shape s = op_shape(t, 0);
    const double *x = op_value(t, 0);
    int64_t n = c->p[CHANNELS], rows = tt_shape_count(&s) / n;
    memset(m, 0, LANES * sizeof(*m));
    for (int64_t r = 0; r < rows; r++) {
        m[lane_of(c, r)].n++;
        m[lane_of(c, r)].mean += x[r * n + j];
    }
    for (int l = 0; l < LANES; l++)
        m[l].mean /= fmax(m[l].n, 1);
    for (int64_t r = 0; r < rows; r++) {
        moments *lane = &m[lane_of(c, r)];
        lane->m2 += (x[r * n + j] - lane->mean) * (x[r * n + j] - lane->mean);
    }
}

static void oracle(const op_test *t, double *y)
{
    const op_case *c = op_case_of(t);
    const double *x = op_value(t, 0), *gamma = op_value(t, 1), *beta = op_value(t, 2);
    const double *residual = c->p[RESIDUAL] ? op_value(t, 3) : NULL;
    int64_t n = c->p[CHANNELS], rows = op_count(t) / n;
    moments m[LANES];
    for (int64_t j = 0; j < n; j++) {
        moments_of(t, j, m);
        for (int64_t r = 0; r < rows; r++) {
            const moments *lane = &m[lane_of(c, r)];
            double rstd = 1 / sqrt(lane->m2 / lane->n + 1e-5);
            double z = (x[r * n + j] - lane->mean) * rstd * gamma[j] + beta[j];
            z += residual != NULL ? residual[r * n + j] : 0;
            y[r * n + j] = test_act((tt_act)c->p[ACT], z);
        }
    }
}

static void sums_oracle(const op_test *t, double *y)
{
    moments m[LANES];
    int64_t count = op_count(t), out = op_case_of(t)->p[OUT];
    for (int64_t j = 0; j < count; j++) {
        moments_of(t, j, m);
        for (int l = 0; l < LANES; l++)
            y[j] += out == 3 ? m[l].mean : out == 4 ? m[l].m2 / fmax(m[l].n - 1, 1) : m[l].n > 0;
    }
}

#define NORM .build = build, .oracle = oracle, .skip = OP_BY_LANE
#define GRAD .grad_tol = 3e-5
#define SUMS .build = build, .oracle = sums_oracle, .skip = OP_NO_GRAD | OP_BY_LANE
OP_CASES(
    batch_norm_lane, {.label = "open", NORM, GRAD, .rows = 37, .p = {[CHANNELS] = 20}},
    {.label = "images", NORM, GRAD, .rows = 11, .p = {[CHANNELS] = 5, [MIDDLE] = 3}},
    {.label = "lanes without rows", NORM, GRAD, .rows = 3, .p = {[CHANNELS] = 70, [MIDDLE] = 4}},
    {.label = "lanes of one entry", NORM, GRAD, .rows = 13, .p = {[CHANNELS] = 6}},
    {.label = "no open axis", NORM, GRAD, .p = {[CHANNELS] = 130, [LEAD] = 17}},
    {.label = "batch behind time", NORM, GRAD, .rows = 13, .p = {[CHANNELS] = 18, [TIME] = 3}},
    {.label = "relu and residual",
     NORM,
     GRAD,
     .rows = 21,
     .p = {[CHANNELS] = 16, [RESIDUAL] = 1, [ACT] = TT_RELU}},
    {.label = "silu and residual",
     NORM,
     GRAD,
     .rows = 9,
     .p = {[CHANNELS] = 6, [MIDDLE] = 2, [RESIDUAL] = 1, [ACT] = TT_SILU}},
    {.label = "tanh", NORM, GRAD, .rows = 19, .p = {[CHANNELS] = 6, [ACT] = TT_TANH}},
    {.label = "many rows",
     .build = build,
     .oracle = oracle,
     .rows = 701,
     .p = {[CHANNELS] = 3, [MIDDLE] = 1},
     .tol = 2e-5,
     .skip = OP_BY_LANE | OP_NO_GRAD},
    {.label = "means", SUMS, .rows = 13, .p = {[CHANNELS] = 70, [MIDDLE] = 2, [OUT] = 3}},
    {.label = "unbiased variances", SUMS, .rows = 13, .p = {[CHANNELS] = 5, [OUT] = 4}},
    {.label = "unbiased variances of images",
     SUMS,
     .rows = 9,
     .p = {[CHANNELS] = 17, [MIDDLE] = 2, [OUT] = 4}},
    {.label = "lanes with rows", SUMS, .rows = 5, .p = {[CHANNELS] = 1, [MIDDLE] = 2, [OUT] = 5}},
    {.label = "means of one lane", SUMS, .p = {[CHANNELS] = 4, [LEAD] = 6, [OUT] = 3}})

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

// Lanes of 1 and 2 entries: the mean of their statistics over lanes that have rows.
TEST_BOTH(batch_norm_lane_running_statistics)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 2));
    tt_batch_norm_vars v = variables(g, 2);
    tt_tensor *targets[2];
    tt_tensor *y = tt_batch_norm(g, x, v, .momentum = 0.75, .new_mean = &targets[0],
                                 .new_var = &targets[1], .over = TT_OVER_LANE);
    CHECK(y != NULL);
    tt_session *s = tt_session_new(g);
    float data[] = {1, 10, 3, 20, 5, 60}, mean[2], var[2];
    tt_feed_value feed = {x, data, TT_SHAPE(3, 2), TT_F32};
    // Two lanes: row 0, and rows 1 and 2.
    CHECK_OK(tt_run(s, .feeds = &feed, .n_feeds = 1, .targets = targets, .n_targets = 2,
                    .batch = {.lanes = 2}));
    CHECK_OK(tt_get_variable(s, v.mean, mean, sizeof(mean)));
    CHECK_OK(tt_get_variable(s, v.var, var, sizeof(var)));
    CHECK_NEAR(mean[0], 0.25 * (1 + 4) / 2, 1e-6);
    CHECK_NEAR(mean[1], 0.25 * (10 + 40) / 2, 1e-5);
    CHECK_NEAR(var[0], 0.75 + 0.25 * (0 + 2) / 2, 1e-6);
    CHECK_NEAR(var[1], 0.75 + 0.25 * (0 + 800) / 2, 1e-3);
    // Eight lanes, five of them without rows: the means of three rows.
    CHECK_OK(tt_run(s, .feeds = &feed, .n_feeds = 1, .targets = targets, .n_targets = 2));
    CHECK_OK(tt_get_variable(s, v.mean, mean, sizeof(mean)));
    CHECK_NEAR(mean[0], 0.75 * 0.625 + 0.25 * 3, 1e-6);
    CHECK_OK(tt_close(ctx));
}

// A part of the lanes has the rows of the whole, where over: batch is refused.
TEST_BOTH(batch_norm_lane_runs_on_a_part_of_the_batch)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 3));
    tt_tensor *y = tt_batch_norm(g, x, variables(g, 3), .over = TT_OVER_LANE);
    tt_session *s = tt_session_new(g);
    float data[24 * 3], all[24 * 3], part[15 * 3];
    test_fill(data, 24 * 3, 5, -1, 1);
    tt_feed_value feed = {x, data, TT_SHAPE(24, 3), TT_F32};
    tt_fetch fetch = {y, all, sizeof(all)};
    CHECK_OK(tt_run(s, .feeds = &feed, .n_feeds = 1, .fetches = &fetch, .n_fetches = 1));
    feed = (tt_feed_value){x, data + 9 * 3, TT_SHAPE(15, 3), TT_F32};
    fetch = (tt_fetch){y, part, sizeof(part)};
    CHECK_OK(tt_run(s, .feeds = &feed, .n_feeds = 1, .fetches = &fetch, .n_fetches = 1,
                    .batch = {.first_row = 9, .global_rows = 24, .lanes = 8}));
    CHECK(memcmp(part, all + 9 * 3, sizeof(part)) == 0);
    CHECK_OK(tt_close(ctx));
}

TEST(batch_norm_lane_refuses_what_does_not_fit)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = test_uniform(g, 1, TT_SHAPE(4, 5)), *other = test_uniform(g, 1, TT_SHAPE(4, 6));
    CHECK(tt_batch_norm(g, x, variables(g, 4), .over = TT_OVER_LANE) == NULL);
    CHECK_MESSAGE(ctx, "batch_norm_lane: x is [4, 5] but gamma is [4], not [5]");
    tt_clear_error(ctx);
    CHECK(tt_batch_norm(g, x, variables(g, 5), .over = TT_OVER_LANE, .residual = other) == NULL);
    CHECK_MESSAGE(ctx, "residual is f32 [4, 6]");
    tt_clear_error(ctx);
    CHECK(tt_batch_norm(g, x, variables(g, 5), .over = (tt_over)7) == NULL);
    CHECK_MESSAGE(ctx, "batch_norm: over is 7, neither TT_OVER_BATCH nor TT_OVER_LANE");
    CHECK(tt_close(ctx) == TT_EINVAL);
}

// Rows of no entries: nothing to normalise, and statistics that are numbers.
TEST_BOTH(batch_norm_lane_of_no_entries)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 0, 3));
    tt_tensor *y = tt_batch_norm(g, x, variables(g, 3), .over = TT_OVER_LANE);
    CHECK(y != NULL);
    tt_session *s = tt_session_new(g);
    float mean[2 * 3], rstd[2 * 3], lanes = 7;
    tt_feed_value feed = {x, "", TT_SHAPE(2, 0, 3), TT_F32};
    tt_fetch fetches[] = {{y->node->outs[1], mean, sizeof(mean)},
                          {y->node->outs[2], rstd, sizeof(rstd)},
                          {y->node->outs[5], &lanes, sizeof(lanes)}};
    CHECK_OK(tt_run(s, .feeds = &feed, .n_feeds = 1, .fetches = fetches, .n_fetches = 3));
    for (int i = 0; i < 6; i++) {
        CHECK(mean[i] == 0);
        CHECK_NEAR(rstd[i], 1 / sqrt(1e-5), 1e-3);
    }
    CHECK(lanes == 0);
    CHECK_OK(tt_close(ctx));
}
