/*
 * plan.c - stages of the planner: what may be joined, merged, folded; bounds; memory of shapes.
 */
#include "../test.h"
#include <math.h>
#include <string.h>

// ---- fusion ----------------------------------------------------------------------------------

TEST(joining_keeps_a_control_edge)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = test_uniform(g, 1, TT_SHAPE(64));
    tt_tensor *m = tt_exp(g, x), *n = tt_softmax(g, x);
    float y[64], a[64], b[64];
    CHECK_OK(tt_after(n, &m, 1));
    CHECK_OK(tt_eval(g, tt_add(g, m, n), y, 64));
    CHECK_OK(tt_eval(g, m, a, 64));
    CHECK_OK(tt_eval(g, n, b, 64));
    for (int i = 0; i < 64; i++)
        CHECK(y[i] == a[i] + b[i]);
    CHECK_OK(tt_close(ctx));
}

TEST(joining_reads_a_variable_before_its_update)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *w = tt_variable(g, .shape = TT_SHAPE(32), .init = {TT_INIT_CONSTANT, 3, 0});
    tt_tensor *v = tt_fill(g, TT_F32, TT_SHAPE(32), 10);
    tt_tensor *y = tt_add(g, tt_assign(g, w, v), tt_neg(g, w));
    float out[32];
    CHECK_OK(tt_eval(g, y, out, 32));
    CHECK(out[0] == 7 && out[31] == 7); // 10, and minus 3 from before the update
    CHECK_OK(tt_close(ctx));
}

TEST(joined_chains_have_the_bits_of_single_nodes)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_variable(g, .shape = TT_SHAPE(5003), .init = {TT_INIT_NORMAL, 0, 2});
    tt_tensor *y = x;
    for (int i = 0; i < 23; i++) // longer than one joined node may be
        y = i % 3 == 0   ? tt_tanh(g, y)
            : i % 3 == 1 ? tt_add(g, tt_mul(g, y, x), tt_exp(g, y))
                         : tt_scale(g, y, 0.3, 0.1);
    static float one[5003], many[5003];
    tt_fetch f = {y, one, sizeof(one)};
    CHECK_OK(tt_run(tt_session_new(g), .fetches = &f, .n_fetches = 1));
    f.data = many;
    CHECK_OK(
        tt_run(tt_session_new(g, .no_fuse = true, .no_fold = true), .fetches = &f, .n_fetches = 1));
    CHECK(memcmp(one, many, sizeof(one)) == 0);
    CHECK_OK(tt_close(ctx));
}

// ---- bounds ----------------------------------------------------------------------------------

TEST(rows_times_a_dimension_may_not_wrap)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 0), .name = "x");
    tt_tensor *w = tt_variable(g, .shape = TT_SHAPE(0, 1 << 20));
    tt_tensor *y = tt_matmul(g, x, w);
    float room;
    tt_feed_value f = {x, NULL, TT_SHAPE((int64_t)1 << 42, 0), TT_F32};
    CHECK(tt_run(tt_session_new(g), .feeds = &f, .n_feeds = 1,
                 .fetches = &(tt_fetch){y, &room, sizeof(room)}, .n_fetches = 1) == TT_ESHAPE);
    CHECK_MESSAGE(ctx, "too large");
    CHECK(tt_close(ctx) == TT_ESHAPE);
}

TEST(a_feed_is_given_once)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(2), .name = "x");
    float v[2] = {1, 2}, y[2];
    tt_feed_value f[] = {{x, v, TT_SHAPE(2), TT_F32}, {x, v, TT_SHAPE(2), TT_F32}};
    CHECK(tt_run(tt_session_new(g), .feeds = f, .n_feeds = 2,
                 .fetches = &(tt_fetch){tt_neg(g, x), y, sizeof(y)}, .n_fetches = 1) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "feed 'x' is given twice");
    CHECK(tt_close(ctx) == TT_EINVAL);
}

// ---- memory ----------------------------------------------------------------------------------

TEST(a_shape_alone_keeps_no_memory)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_variable(g, .shape = TT_SHAPE(1000), .init = {TT_INIT_NORMAL, 0, 1});
    tt_tensor *big = tt_matmul(g, tt_reshape(g, x, TT_SHAPE(1000, 1)),
                               tt_reshape(g, x, TT_SHAPE(1, 1000))); // 4 MB
    tt_tensor *sum = tt_sum(g, big);
    tt_tensor *like = tt_broadcast(g, sum, big); // 4 MB again: big must be gone by then
    tt_tensor *y = tt_sum(g, like);
    tt_session *s = tt_session_new(g);
    float out;
    tt_plan_memory m;
    CHECK_OK(tt_run(s, .fetches = &(tt_fetch){y, &out, 4}, .n_fetches = 1));
    CHECK_OK(tt_plan_memory_get(s, 0, &m));
    CHECK(m.activations < 5000000);
    CHECK_OK(tt_close(ctx));
}

// ---- not a number ----------------------------------------------------------------------------

TEST(a_nan_reaches_the_loss)
{
    for (int i = 0; test_isa(i) != NULL; i++) {
        tt_ctx *c = test_ctx_on("cpu:0", test_isa(i), 1);
        tt_graph *g = tt_graph_new(c);
        float x[20] = {1, NAN, 2, 3}, y[20], loss[1];
        int32_t label = 2;
        tt_tensor *t = tt_const(g, TT_F32, TT_SHAPE(1, 20), x);
        CHECK_OK(tt_eval(g, tt_softmax(g, t), y, 20));
        CHECK(isnan(y[0]) && isnan(y[1]) && isnan(y[19]));
        tt_tensor *l = tt_cross_entropy(g, t, tt_const(g, TT_I32, TT_SHAPE(1), &label));
        CHECK_OK(tt_eval(g, l, loss, 1));
        CHECK(isnan(loss[0]));
        tt_tensor *qkv = tt_reshape(g, t, TT_SHAPE(1, 5, 4)),
                  *ones = tt_fill(g, TT_F32, TT_SHAPE(1, 5, 4), 1);
        CHECK_OK(tt_eval(g, tt_attention(g, qkv, ones, ones, .heads = 1), y, 20));
        CHECK(isnan(y[0]) && !isnan(y[4]));
        CHECK_OK(tt_close(c));
    }
}

// ---- halves in parts -------------------------------------------------------------------------

TEST(half_sums_of_parts_round_after_the_tree)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_feed(g, .dtype = TT_BF16, .shape = TT_SHAPE(TT_BATCH, 37));
    tt_tensor *d = tt_feed(g, .dtype = TT_BF16, .shape = TT_SHAPE(TT_BATCH, 3));
    tt_tensor *dw = tt_matmul(g, x, d, .transpose_a = true);
    static uint16_t xs[16 * 37], ds[16 * 3], whole[37 * 3];
    static float part[2][37 * 3];
    for (int i = 0; i < 16 * 37; i++)
        xs[i] = (uint16_t)(0x3f80 + i * 37 % 128); // 1 to 2
    for (int i = 0; i < 16 * 3; i++)
        ds[i] = (uint16_t)(0x3f80 + i * 29 % 128);
    tt_session *s = tt_session_new(g);
    tt_feed_value f[] = {{x, xs, TT_SHAPE(16, 37), TT_BF16}, {d, ds, TT_SHAPE(16, 3), TT_BF16}};
    CHECK_OK(tt_run(s, .feeds = f, .n_feeds = 2, .fetches = &(tt_fetch){dw, whole, sizeof(whole)},
                    .n_fetches = 1));
    for (int i = 0; i < 2; i++) {
        tt_feed_value half[] = {{x, xs + i * 8 * 37, TT_SHAPE(8, 37), TT_BF16},
                                {d, ds + i * 8 * 3, TT_SHAPE(8, 3), TT_BF16}};
        CHECK_OK(tt_run(s, .feeds = half, .n_feeds = 2, .n_fetches = 1,
                        .fetches = &(tt_fetch){dw, part[i], sizeof(part[i])},
                        .batch = {.first_row = i * 8, .global_rows = 16}));
    }
    for (int i = 0; i < 37 * 3; i++) {
        float sum = part[0][i] + part[1][i];
        uint32_t u;
        memcpy(&u, &sum, 4);
        CHECK_INT((u + 0x7fff + (u >> 16 & 1)) >> 16, whole[i]);
    }
    CHECK_OK(tt_close(ctx));
}
