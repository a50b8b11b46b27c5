/*
 * limit.c - devices with a limit: a plan that does not fit is refused before anything is computed,
 * naming what holds most; one that fits still runs.
 */
#include "test.h"

typedef struct model {
    tt_ctx *ctx;
    tt_session *s;
    tt_tensor *x, *y, *w;
} model;

static model model_of(const char *devices)
{
    model m = {.ctx = tt_open(.devices = devices, .on_event = test_ignore_event)};
    tt_graph *g = tt_graph_new(m.ctx);
    m.x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 8), .name = "x");
    m.w = tt_variable(g, .shape = TT_SHAPE(8, 64), .name = "w");
    m.y = tt_sum(g, tt_matmul(g, m.x, m.w));
    m.s = tt_session_new(g);
    return m;
}

static tt_status run_rows(const model *m, int64_t rows)
{
    static const float data[1024 * 8];
    float y;
    tt_feed_value feed = {m->x, data, TT_SHAPE(rows, 8), TT_F32};
    return tt_run(m->s, .feeds = &feed, .n_feeds = 1, .n_fetches = 1,
                  .fetches = &(tt_fetch){m->y, &y, sizeof(y)});
}

TEST(limit_too_small_names_the_largest)
{
    model m = model_of("cpu:0@1KiB");
    ck_assert_int_eq(run_rows(&m, 3), TT_ELIMIT);
    CHECK_MESSAGE(m.ctx, "cpu:0: this plan needs");
    CHECK_MESSAGE(m.ctx, "more than its limit of 1.0 KiB (1024 bytes)");
    CHECK_MESSAGE(m.ctx, "2048  w f32 [8, 64] variable");
    CHECK_MESSAGE(m.ctx, "768  matmul f32 [3, 64]");
    CHECK_MESSAGE(m.ctx, "matmul scratch");
    ck_assert_int_eq(tt_close(m.ctx), TT_ELIMIT);
}

TEST(limit_depends_on_rows)
{
    model m = model_of("cpu:0@128KiB");
    CHECK_OK(run_rows(&m, 3));
    ck_assert_int_eq(run_rows(&m, 1024), TT_ELIMIT);
    CHECK_MESSAGE(m.ctx, "262144  matmul f32 [1024, 64]");
    tt_clear_error(m.ctx);
    CHECK_OK(run_rows(&m, 3)); // the session is as it was
    CHECK_OK(tt_close(m.ctx));
}
