/*
 * bad_input.c - what wrong graphs, pins, feeds and fetches get: a status, a message that names the
 * culprit, and objects as they were. (Graph texts: text.c; limits: limit.c.)
 */
#include "test.h"

typedef struct trial {
    tt_ctx *ctx;
    tt_graph *g;
    tt_tensor *x; // [b, 4]
} trial;

static trial trial_on(const char *devices, tt_soft soft)
{
    trial t = {.ctx = tt_open(.devices = devices, .soft = soft, .on_event = test_ignore_event)};
    t.g = tt_graph_new(t.ctx);
    t.x = tt_feed(t.g, .shape = TT_SHAPE(TT_BATCH, 4), .name = "x");
    return t;
}

// The context has this error, whose message has these words; clears it.
static void check_error(tt_ctx *ctx, tt_status st, const char *words)
{
    ck_assert_msg(tt_status_of(ctx) == st, "%s: '%s', not %s", tt_status_name(tt_status_of(ctx)),
                  tt_last_error(ctx).message, tt_status_name(st));
    CHECK_MESSAGE(ctx, words);
    tt_clear_error(ctx);
}

static const float rows[64];

// Runs y on feed; the room is for bytes.
static tt_status run_one(tt_session *s, const tt_feed_value *feed, tt_tensor *y, size_t bytes)
{
    float out[64];
    return tt_run(s, .feeds = feed, .n_feeds = feed == NULL ? 0 : 1, .n_fetches = 1,
                  .fetches = &(tt_fetch){y, out, bytes});
}

TEST(shapes_and_types_that_do_not_fit)
{
    trial t = trial_on("cpu:0", TT_SOFT_WARN);
    tt_tensor *w = tt_variable(t.g, .shape = TT_SHAPE(5, 3), .name = "w");
    tt_tensor *ids = tt_feed(t.g, .shape = TT_SHAPE(TT_BATCH), .dtype = TT_I32, .name = "ids");
    CHECK(tt_matmul(t.g, t.x, w) == NULL);
    check_error(t.ctx, TT_ESHAPE, "matmul: a is [b, 4] but b is [5, 3]");
    CHECK(tt_add(t.g, t.x, ids) == NULL);
    check_error(t.ctx, TT_EDTYPE, "add: a is f32 but b is i32");
    CHECK(tt_exp(t.g, ids) == NULL);
    check_error(t.ctx, TT_EDTYPE, "exp: x is i32");
    CHECK(tt_reshape(t.g, w, TT_SHAPE(4, 4)) == NULL);
    check_error(t.ctx, TT_ESHAPE, "reshape: x is [5, 3] but the shape is [4, 4]");
    CHECK(tt_variable(t.g, .shape = TT_SHAPE(TT_BATCH, 2)) == NULL);
    check_error(t.ctx, TT_ESHAPE, "variable: [b, 2] has an open dimension");
    CHECK(tt_feed(t.g, .shape = TT_SHAPE(TT_BATCH, TT_BATCH)) == NULL);
    check_error(t.ctx, TT_ESHAPE, "more than one open dimension");
    CHECK(tt_feed(t.g, .shape = TT_SHAPE(INT64_C(1) << 40, INT64_C(1) << 40)) == NULL);
    check_error(t.ctx, TT_ESHAPE, "is too large");
    tt_graph *other = tt_graph_new(t.ctx);
    CHECK(tt_add(t.g, t.x, tt_fill(other, TT_F32, TT_SHAPE(4), 1)) == NULL);
    check_error(t.ctx, TT_EINVAL, "add: input 1 ('const') belongs to another graph");
    CHECK_OK(tt_close(t.ctx));
}

TEST(gradients_and_updates_that_cannot_be)
{
    trial t = trial_on("cpu:0", TT_SOFT_WARN);
    tt_tensor *w = tt_variable(t.g, .shape = TT_SHAPE(4), .name = "w");
    tt_tensor *y = tt_sum(t.g, t.x, .axis = -1), *dx = NULL;
    CHECK(tt_grad(t.g, y, NULL, 1, &t.x, &dx) == TT_ESHAPE);
    check_error(t.ctx, TT_ESHAPE, "'sum' is [b]; without a seed it must be a scalar");
    tt_tensor *loss = tt_sum(t.g, y);
    CHECK(tt_grad(t.g, loss, t.x, 1, &t.x, &dx) == TT_ESHAPE);
    check_error(t.ctx, TT_ESHAPE, "the seed is [b, 4] but 'sum_1' is []");
    CHECK_OK(tt_grad(t.g, loss, NULL, 1, &w, &dx));
    CHECK(dx == NULL); // loss does not depend on w
    CHECK(tt_update_adam(t.g, w, dx) == NULL);
    check_error(t.ctx, TT_EINVAL, "update_adam: grad is NULL");
    CHECK(tt_update_sgd(t.g, t.x, t.x) == NULL);
    check_error(t.ctx, TT_EINVAL, "'x' is not a variable");
    tt_tensor *half = tt_variable(t.g, .shape = TT_SHAPE(4), .dtype = TT_BF16, .name = "half");
    CHECK(tt_update_sgd(t.g, half, half) == NULL);
    check_error(t.ctx, TT_EDTYPE, "variable 'half' is bf16, not f32 or f64");
    CHECK_OK(tt_close(t.ctx));
}

TEST(feeds_and_fetches_that_do_not_fit)
{
    trial t = trial_on("cpu:0", TT_SOFT_WARN);
    tt_tensor *y = tt_sum(t.g, t.x, .axis = -1);
    tt_tensor *z = tt_feed(t.g, .shape = TT_SHAPE(TT_BATCH), .name = "z");
    tt_session *s = tt_session_new(t.g);
    tt_feed_value feed = {t.x, rows, TT_SHAPE(3, 5), TT_F32};
    CHECK(run_one(s, &feed, y, 12) == TT_ESHAPE);
    check_error(t.ctx, TT_ESHAPE, "feed 'x' is [b, 4] but was given [3, 5]");
    feed.shape = TT_SHAPE(3, 4);
    feed.dtype = TT_F64;
    CHECK(run_one(s, &feed, y, 12) == TT_EDTYPE);
    check_error(t.ctx, TT_EDTYPE, "feed 'x' is f32 but was given f64");
    feed.dtype = TT_F32;
    CHECK(run_one(s, NULL, y, 12) == TT_EINVAL);
    check_error(t.ctx, TT_EINVAL, "feed 'x' is missing");
    CHECK(run_one(s, &feed, y, 8) == TT_ESHAPE);
    check_error(t.ctx, TT_ESHAPE,
                "fetch of 'sum': f32 [3] needs 12 bytes, but there is room for 8");
    tt_feed_value two[] = {feed, {z, rows, TT_SHAPE(4), TT_F32}};
    CHECK(tt_run(s, .feeds = two, .n_feeds = 2, .targets = &y, .n_targets = 1) == TT_ESHAPE);
    check_error(t.ctx, TT_ESHAPE, "feed 'z' has 4 rows but another has 3");
    feed.shape = TT_SHAPE(0, 4);
    CHECK(run_one(s, &feed, y, 12) == TT_EINVAL);
    check_error(t.ctx, TT_EINVAL, "the batch has no rows");
    feed.shape = TT_SHAPE(3, 4);
    CHECK(tt_run(s, .feeds = &feed, .n_feeds = 1, .targets = &y, .n_targets = 1,
                 .batch = {.first_row = 1, .global_rows = 20}) == TT_EINVAL);
    check_error(t.ctx, TT_EINVAL, "rows 1 to 4 of 20 are not a whole number of the 8 lanes");
    CHECK(tt_eval(t.g, y, two, 3) == TT_ESHAPE);
    check_error(t.ctx, TT_ESHAPE, "eval: 'sum' is [b]");
    CHECK_OK(run_one(s, &feed, y, 12));
    CHECK_OK(tt_close(t.ctx));
}

TEST(devices_that_are_not_there)
{
    const struct {
        const char *devices;
        tt_status st;
        const char *words;
    } rows_of[] = {
        {"tpu:0", TT_EUNSUPPORTED, "there are no 'tpu' devices"},
        {"cpu:0@101%", TT_EPARSE, "'@101%' must be above 0"},
        {"cpu:0@x%", TT_EPARSE, "'@x%' must be above 0"},
        {"cpu:9", TT_EINVAL, "cpu:9 does not exist"},
        {"cpu:0*0", TT_EPARSE, "'*0' is not a number"},
        {"cpu:0,cpu:0", TT_EINVAL, "cpu:0 is given twice"},
        {"cpu:0@12xB", TT_EPARSE, "'12xB' is not a size"},
        {"cpu:x", TT_EPARSE, "the index must be a number"},
    };
    for (size_t i = 0; i < sizeof(rows_of) / sizeof(rows_of[0]); i++) {
        tt_ctx *ctx = tt_open(.devices = rows_of[i].devices, .on_event = test_ignore_event);
        check_error(ctx, rows_of[i].st, rows_of[i].words);
        CHECK_OK(tt_close(ctx));
    }
}

TEST(pins_that_cannot_be_met)
{
    trial t = trial_on("cpu:0*2", TT_SOFT_OFF);
    tt_tensor *a = tt_neg(t.g, t.x), *b = tt_exp(t.g, a), *far = tt_neg(t.g, b);
    CHECK_OK(tt_pin(a, "cpu:0"));
    CHECK_OK(tt_pin(b, "cpu:1"));
    tt_session *s = tt_session_new(t.g);
    tt_feed_value feed = {t.x, rows, TT_SHAPE(2, 4), TT_F32};
    CHECK_OK(run_one(s, &feed, b, 32));
    CHECK(tt_pin(b, "cpu:x") == TT_EPARSE);
    check_error(t.ctx, TT_EPARSE, "device 'cpu:x'");
    CHECK_OK(tt_pin(far, "gpu:0"));
    CHECK(run_one(s, &feed, far, 32) == TT_EINVAL);
    check_error(t.ctx, TT_EINVAL, "is pinned to /device:GPU:0");
    tt_tensor *c = tt_exp(t.g, t.x), *d = tt_sin(t.g, t.x);
    CHECK_OK(tt_pin(c, "cpu:0"));
    CHECK_OK(tt_pin(d, "cpu:1"));
    CHECK_OK(tt_colocate(c, d));
    CHECK(run_one(s, &feed, tt_add(t.g, c, d), 32) == TT_EINVAL);
    check_error(t.ctx, TT_EINVAL, "'sin' is pinned to cpu:1 but colocated with 'exp_1'");
    CHECK_OK(tt_close(t.ctx));
}

TEST(control_edges_that_close_a_cycle)
{
    trial t = trial_on("cpu:0", TT_SOFT_WARN);
    tt_tensor *a = tt_neg(t.g, t.x), *b = tt_exp(t.g, a), *c = tt_sin(t.g, t.x);
    CHECK(tt_after(a, &b, 1) == TT_EINVAL);
    check_error(t.ctx, TT_EINVAL, "'neg' cannot run after 'exp': that would be a cycle");
    CHECK(tt_after(a, &a, 1) == TT_EINVAL);
    check_error(t.ctx, TT_EINVAL, "'neg' cannot run after 'neg': that would be a cycle");
    CHECK_OK(tt_after(a, &c, 1)); // a after c, so c after b closes one over both kinds of edge
    CHECK(tt_after(c, &b, 1) == TT_EINVAL);
    check_error(t.ctx, TT_EINVAL, "'sin' cannot run after 'exp': that would be a cycle");
    tt_session *s = tt_session_new(t.g);
    tt_feed_value feed = {t.x, rows, TT_SHAPE(2, 4), TT_F32};
    CHECK_OK(run_one(s, &feed, b, 32));
    CHECK_OK(tt_close(t.ctx));
}
