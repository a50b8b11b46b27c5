/*
 * update_scale.c - sums of squares, the factor of updates, the loss scale.
 */
#include "op_test.h"
#include <math.h>
#include <stdlib.h>

// ---- square_sum ------------------------------------------------------------------------------

static tt_tensor *build_squares(op_test *t)
{
    const op_case *c = op_case_of(t);
    return tt_square_sum(op_graph(t), op_input(t, TT_SHAPE(c->p[0], c->p[1]), -2, 3));
}

// The written order: 16 partials in a block of 1,024, then the tree over blocks; so bits are equal.
static double tree(const double *x, int64_t n)
{
    int64_t half = 1;
    if (n <= 1)
        return n == 1 ? x[0] : 0;
    while (2 * half < n)
        half *= 2;
    return tree(x, half) + tree(x + half, n - half);
}

static void oracle_squares(const op_test *t, double *y)
{
    const double *x = op_value(t, 0);
    tt_shape s = op_shape(t, 0);
    int64_t n = tt_shape_count(&s), n_blocks = (n + 1023) / 1024;
    double *blocks = calloc((size_t)n_blocks + 1, sizeof(double));
    for (int64_t b = 0; b < n_blocks; b++) {
        double part[16] = {0};
        for (int64_t j = b * 1024; j < n && j < (b + 1) * 1024; j++)
            part[j % 16] += x[j] * x[j];
        for (int d = 8; d > 0; d /= 2)
            for (int i = 0; i < d; i++)
                part[i] += part[i + d];
        blocks[b] = part[0];
    }
    y[0] = tree(blocks, n_blocks);
    free(blocks);
}

#define SQUARES(label_, rows_, cols_)                                                           \
    {                                                                                           \
        .label = label_, .build = build_squares, .oracle = oracle_squares, .p = {rows_, cols_}, \
        .tol = 1e-300, .skip = OP_NO_GRAD | OP_NO_HALF                                          \
    }
OP_CASES(square_sum, SQUARES("none", 0, 3), SQUARES("one", 1, 1), SQUARES("odd", 3, 7),
         SQUARES("block", 1, 1024), SQUARES("block_and_one", 1, 1025), SQUARES("blocks", 7, 1023),
         SQUARES("group", 64, 1024), SQUARES("groups", 389, 1031))

TEST_BOTH(square_sum_takes_large_and_small_and_nan)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    float big[2] = {3e38f, 2e-38f}, none[1] = {NAN};
    double d[3] = {1e150, 0.5, -2}, y;
    CHECK_OK(tt_eval(g, tt_square_sum(g, tt_const(g, TT_F32, TT_SHAPE(2), big)), &y, 1));
    CHECK(y == (double)big[0] * (double)big[0] + (double)big[1] * (double)big[1]);
    CHECK_OK(tt_eval(g, tt_square_sum(g, tt_const(g, TT_F64, TT_SHAPE(3), d)), &y, 1));
    CHECK(y == 1e150 * 1e150 + 0.25 + 4);
    CHECK_OK(tt_eval(g, tt_square_sum(g, tt_const(g, TT_F32, TT_SHAPE(1), none)), &y, 1));
    CHECK(isnan(y));
    CHECK(tt_square_sum(g, test_iota_i32(g, 3)) == NULL);
    CHECK_MESSAGE(ctx, "x is i32, not f32 or f64");
    CHECK(tt_close(ctx) == TT_EDTYPE);
}

// ---- update_scale ----------------------------------------------------------------------------

// p: number of square sums, guard; f: clip.
static tt_tensor *build_scale(op_test *t)
{
    const op_case *c = op_case_of(t);
    tt_graph *g = op_graph(t);
    tt_tensor *loss = op_input(t, TT_SCALAR, 1, 9), *count = op_input(t, TT_SCALAR, 3, 60);
    tt_tensor *p = op_input(t, TT_SCALAR, 64, 65), *squares[8];
    for (int i = 0; i < c->p[0]; i++)
        squares[i] = tt_square_sum(g, op_input(t, TT_SHAPE(5 + i), -1, 1));
    tt_tensor *norm, *go;
    tt_tensor *y =
        tt_update_scale(g, loss, count, p, .squares = squares, .n_squares = (int)c->p[0],
                        .clip = c->f[0], .guard = c->p[1] != 0, .norm = &norm, .go = &go);
    return tt_stack(g, (tt_tensor *[]){y, norm, go}, 3, TT_FIRST);
}

static void oracle_scale(const op_test *t, double *y)
{
    const op_case *c = op_case_of(t);
    double squares[8] = {0}, s = *op_value(t, 2) / *op_value(t, 1);
    for (int i = 0; i < c->p[0]; i++)
        for (int j = 0; j < 5 + i; j++)
            squares[i] += op_value(t, 3 + i)[j] * op_value(t, 3 + i)[j];
    double norm = sqrt(tree(squares, c->p[0])) * s;
    y[0] = c->f[0] > 0 && norm > c->f[0] ? s * c->f[0] / norm : s;
    y[1] = norm;
    y[2] = 1;
}

#define SCALE(label_, n_, guard_, clip_)                                                  \
    {                                                                                     \
        .label = label_, .build = build_scale, .oracle = oracle_scale, .p = {n_, guard_}, \
        .f = {clip_}, .tol = 1e-7, .skip = OP_NO_GRAD | OP_NO_HALF                        \
    }
OP_CASES(update_scale, SCALE("plain", 0, 0, 0), SCALE("guarded", 0, 1, 0), SCALE("norm", 1, 1, 0),
         SCALE("clipped", 5, 1, 0.5), SCALE("below_clip", 5, 0, 1e6), SCALE("eight", 8, 0, 1))

static void scale_of(double loss, double count, double p, double square, double clip, bool guard,
                     float y[3])
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *in[] = {tt_scalar(g, loss), tt_scalar(g, count), tt_scalar(g, p),
                       tt_fill(g, TT_F64, TT_SCALAR, square)};
    tt_tensor *out[3];
    out[0] = tt_update_scale(g, in[0], in[1], in[2], .squares = &in[3], .n_squares = 1,
                             .clip = clip, .guard = guard, .norm = &out[1], .go = &out[2]);
    for (int i = 0; i < 3; i++)
        CHECK_OK(tt_eval(g, out[i], &y[i], 1));
    CHECK_OK(tt_close(ctx));
}

TEST_BOTH(update_scale_at_its_edges)
{
    float y[3];
    scale_of(1, 3, 4, 9, 0, true, y);
    CHECK(y[0] == (float)(4.0 / 3) && y[1] == 4 && y[2] == 1);
    scale_of(1, 4, 4, 9, 3, true, y); // the norm is the clip: nothing is clipped
    CHECK(y[0] == 1 && y[1] == 3 && y[2] == 1);
    scale_of(1, 4, 4, 36, 3, true, y);
    CHECK(y[0] == 0.5f && y[1] == 6 && y[2] == 1);
    scale_of(0, 0, 4, 0, 3, true, y); // no terms
    CHECK(y[0] == 0 && y[1] == 0 && y[2] == 1);
    scale_of(NAN, 4, 4, 9, 1, true, y);
    CHECK(isnan(y[0]) && y[1] == 3 && isnan(y[2]));
    scale_of(INFINITY, 4, 4, 9, 1, true, y);
    CHECK(isnan(y[0]) && isnan(y[2]));
    scale_of(1, 4, 4, INFINITY, 1, true, y);
    CHECK(isnan(y[0]) && isinf(y[1]) && isnan(y[2]));
    scale_of(1, 4, 4, NAN, 1, true, y);
    CHECK(isnan(y[0]) && isnan(y[1]) && isnan(y[2]));
    scale_of(NAN, 4, 4, NAN, 1, false, y); // as if nothing had happened
    CHECK(y[0] == 1 && isnan(y[1]) && y[2] == 1);
}

// Sums over all rows are not there in a run of some lanes.
TEST(update_scale_refuses_a_part_of_the_lanes)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    float x[8] = {0};
    tt_tensor *rows = tt_feed(g, .shape = TT_SHAPE(TT_BATCH)), *sum = tt_sum(g, rows);
    tt_tensor *y = tt_update_scale(g, sum, tt_scalar(g, 8), tt_scalar(g, 8));
    tt_session *s = tt_session_new(g);
    tt_feed_value feed = {rows, x, TT_SHAPE(8), TT_F32};
    CHECK_OK(tt_run(s, .feeds = &feed, .n_feeds = 1, .targets = &y, .n_targets = 1));
    feed.shape.dim[0] = 4;
    CHECK(tt_run(s, .feeds = &feed, .n_feeds = 1, .targets = &y, .n_targets = 1,
                 .batch = {.first_row = 0, .global_rows = 8}) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "a sum over all rows, but the run has lanes 0 to 3 of 8");
    tt_clear_error(ctx);
    y = tt_square_sum(g, rows);
    CHECK(tt_run(s, .feeds = &feed, .n_feeds = 1, .targets = &y, .n_targets = 1,
                 .batch = {.first_row = 0, .global_rows = 8}) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "mixes rows");
    CHECK(tt_close(ctx) == TT_EINVAL);
}

TEST(update_scale_refuses_what_does_not_fit)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *one = tt_scalar(g, 1), *two = tt_fill(g, TT_F32, TT_SHAPE(2), 1);
    CHECK(tt_update_scale(g, one, two, one) == NULL);
    CHECK_MESSAGE(ctx, "count 'const_1' is f32 [2], not an f32 or f64 scalar");
    tt_clear_error(ctx);
    CHECK(tt_update_scale(g, one, one, one, .squares = &one, .n_squares = 1) == NULL);
    CHECK_MESSAGE(ctx, "not an f64 scalar");
    tt_clear_error(ctx);
    CHECK(tt_update_scale(g, one, one, one, .clip = -1) == NULL);
    CHECK_MESSAGE(ctx, "clip -1 is below 0");
    tt_clear_error(ctx);
    CHECK(tt_update_scale(g, one, one, one, .n_squares = 1) == NULL);
    CHECK(tt_close(ctx) == TT_EINVAL);
}

// ---- update_loss_scale -----------------------------------------------------------------------

OP_TESTED(update_scale, "update_loss_scale")

// What steps that were applied ('+') or not ('-') leave of scale and good, beginning with scale.
static void steps_leave(const char *steps, double scale, double want, double want_good)
{
    for (int isa = 0; test_isa(isa) != NULL; isa++) {
        tt_ctx *ctx = tt_open(.isa = test_isa(isa), .on_event = test_ignore_event);
        tt_graph *g = tt_graph_new(ctx);
        tt_tensor *vars[] = {
            tt_variable(g, .shape = TT_SCALAR, .init = {TT_INIT_CONSTANT, scale, 0}),
            tt_variable(g, .shape = TT_SCALAR)};
        tt_tensor *go = tt_feed(g, .shape = TT_SCALAR), *used;
        tt_tensor *y =
            tt_update_loss_scale(g, vars[0], vars[1], go, .every = 3, .most = 64, .used = &used);
        tt_tensor *doubled = tt_add(g, vars[0], vars[0]); // reads the scale before it is moved
        tt_session *s = tt_session_new(g);
        float before = (float)scale, out[3], good = -1;
        for (const char *p = steps; *p != 0; p++) {
            float value = *p == '+' ? 1 : NAN;
            tt_feed_value feed = {go, &value, TT_SCALAR, TT_F32};
            tt_fetch f[] = {{y, &out[0], 4}, {used, &out[1], 4}, {doubled, &out[2], 4}};
            CHECK_OK(tt_run(s, .feeds = &feed, .n_feeds = 1, .fetches = f, .n_fetches = 3));
            CHECK(out[1] == before && out[2] == 2 * before);
            before = out[0];
        }
        CHECK_OK(tt_get_variable(s, vars[1], &good, sizeof(good)));
        ck_assert_msg(before == want && good == want_good, "%s from %g: %g, %g good", steps, scale,
                      before, good);
        CHECK_OK(tt_close(ctx));
    }
}

TEST_BOTH(a_loss_scale_halves_at_once_and_doubles_after_good_steps)
{
    steps_leave("+", 8, 8, 1);
    steps_leave("++", 8, 8, 2);
    steps_leave("+++", 8, 16, 0);
    steps_leave("++-", 8, 4, 0);
    steps_leave("++-++", 8, 4, 2);
    steps_leave("++-+++", 8, 8, 0);
    steps_leave("----", 8, 1, 0); // not below 1
    steps_leave("----+++", 8, 2, 0);
    steps_leave("+++++++++", 32, 64, 0); // not above the most
    steps_leave("-", 0x1p40, 0x1p39, 0); // set by hand
    steps_leave("+++", 0x1p40, 64, 0);
}

TEST(update_loss_scale_refuses_what_does_not_fit)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *var = tt_variable(g, .shape = TT_SCALAR), *one = tt_scalar(g, 1);
    CHECK(tt_update_loss_scale(g, var, one, one) == NULL);
    CHECK_MESSAGE(ctx, "good 'const' is not a variable");
    tt_clear_error(ctx);
    CHECK(tt_update_loss_scale(g, one, var, one) == NULL);
    tt_clear_error(ctx);
    CHECK(tt_update_loss_scale(g, var, tt_variable(g, .shape = TT_SHAPE(2)), one) == NULL);
    CHECK_MESSAGE(ctx, "f32 [2], not an f32 scalar");
    tt_clear_error(ctx);
    CHECK(tt_update_loss_scale(g, var, var, one, .most = 0.5) == NULL);
    CHECK_MESSAGE(ctx, "most 0.5 is too small");
    CHECK(tt_close(ctx) == TT_EINVAL);
}
