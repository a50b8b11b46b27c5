/*
 * mirrored.c - the mirrored strategy: rows spread over devices by lanes, one sum, the same bits.
 */
#include "model.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static tt_ctx *open_mirrored(const char *devices, int threads, int lanes)
{
    return tt_open(.devices = devices, .threads = threads, .lanes = lanes, .strategy = "mirrored",
                   .on_event = test_ignore_event);
}

static tt_hash train(const char *devices, int threads, int lanes, double *loss)
{
    tt_ctx *ctx = open_mirrored(devices, threads, lanes);
    test_model m;
    tt_hash hash = {0, 0};
    ck_assert_msg(test_model_build(&m, ctx, NULL, NULL, NULL), "%s", tt_last_error(ctx).message);
    tt_session *s = tt_session_new(m.g);
    static const int64_t rows[] = {17, 64, 1, 17, 5, 3};
    for (int step = 0; step < 6; step++) {
        *loss = test_model_step(&m, s, step, rows[step]);
        ck_assert_msg(!isnan(*loss), "%s: %s", devices, tt_last_error(ctx).message);
    }
    CHECK_OK(tt_weight_hash(s, &hash));
    CHECK_OK(tt_close(ctx));
    return hash;
}

TEST(mirrored_devices_have_the_bits_of_one)
{
    static const char *const spreads[] = {"cpu:0*2", "cpu:0*3", "cpu:0*4", "cpu:0*7", "cpu:0*8"};
    static const int lanes[] = {8, 1, 3, 6, 16};
    for (size_t l = 0; l < sizeof(lanes) / sizeof(lanes[0]); l++) {
        double want_loss, loss;
        tt_hash want = train("cpu:0", 1, lanes[l], &want_loss);
        for (size_t i = 0; i < sizeof(spreads) / sizeof(spreads[0]); i++) {
            if (atoi(spreads[i] + 6) > lanes[l])
                continue; // refused: below
            tt_hash got = train(spreads[i], 2, lanes[l], &loss);
            ck_assert_msg(got.low == want.low && got.high == want.high && loss == want_loss,
                          "%s with %d lanes: loss %a, on one device %a", spreads[i], lanes[l], loss,
                          want_loss);
        }
    }
}

// Rows are put together again, and a part of the batch gives the partial sums of one device.
TEST(mirrored_rows_and_parts_come_back_whole)
{
    float x[11 * 6], y[2][11 * 6], part[2][8 * 6];
    int n_parts = 3; // lanes 0 to 6 of 8: sub-trees of 4, 2 and 1
    test_fill(x, 11 * 6, 5, -1, 1);
    for (int i = 0; i < 2; i++) {
        tt_ctx *ctx = open_mirrored(i == 0 ? "cpu:0" : "cpu:0*3", 3, 8);
        tt_graph *g = tt_graph_new(ctx);
        tt_tensor *feed = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 6), .name = "x");
        tt_tensor *t = tt_transpose(g, tt_exp(g, feed), TT_AXES(1, 0)); // rows are not outermost
        tt_tensor *sum = tt_sum(g, tt_square(g, feed), .axis = TT_FIRST);
        tt_session *s = tt_session_new(g);
        tt_feed_value in = {feed, x, TT_SHAPE(11, 6), TT_F32};
        tt_fetch out = {t, y[i], sizeof(y[i])};
        CHECK_OK(tt_run(s, .feeds = &in, .n_feeds = 1, .fetches = &out, .n_fetches = 1));
        in.shape.dim[0] = 9; // lane 7 has rows 9 and 10
        tt_fetch sums = {sum, part[i], (size_t)n_parts * 6 * sizeof(float)};
        CHECK_OK(tt_run(s, .feeds = &in, .n_feeds = 1, .fetches = &sums, .n_fetches = 1,
                        .batch = {0, 11, 8}));
        CHECK_OK(tt_close(ctx));
    }
    CHECK(memcmp(y[0], y[1], sizeof(y[0])) == 0);
    CHECK(memcmp(part[0], part[1], (size_t)n_parts * 6 * sizeof(float)) == 0);
    CHECK_NEAR(y[0][1], exp(x[6]), 1e-5);
}

// Statistics over the whole batch, whoever has which rows of it; the running ones too.
static tt_hash train_batch_norm(const char *devices, int64_t rows, double *loss)
{
    tt_ctx *ctx = open_mirrored(devices, 2, 8);
    tt_model *m = tt_sequential(ctx, .input = {28, 28, 1});
    tt_layer_conv2d(m, .filters = 7, .kernel = {3, 3}, .stride = {2, 2}, .no_bias = true);
    tt_layer_batch_norm(m, .act = TT_RELU);
    tt_layer_conv2d(m, .filters = 19, .kernel = {3, 3}, .stride = {2, 2});
    tt_layer_batch_norm(m, .act = TT_GELU);
    tt_layer_flatten(m);
    tt_layer_dense(m, .units = 10);
    tt_compile(m, .loss = TT_CROSS_ENTROPY, .optimizer = tt_sgd(.lr = 0.05, .momentum = 0.9));
    tt_data *d = tt_digits(ctx, .count = 2 * rows + 1, .batch = (int)rows);
    tt_fit_report r;
    ck_assert_msg(tt_fit(m, d, .epochs = 2) == TT_OK, "%s", tt_last_error(ctx).message);
    CHECK_OK(tt_fit_report_get(m, &r));
    *loss = r.last->loss;
    CHECK_OK(tt_close(ctx));
    return r.weights;
}

TEST(mirrored_batch_norm_has_the_bits_of_one_device)
{
    static const char *const spreads[] = {"cpu:0*2", "cpu:0*3", "cpu:0*5", "cpu:0*8"};
    static const int64_t rows[] = {37, 8, 3};
    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
        double want_loss, loss;
        tt_hash want = train_batch_norm("cpu:0", rows[k], &want_loss);
        for (size_t i = 0; i < sizeof(spreads) / sizeof(spreads[0]); i++) {
            tt_hash got = train_batch_norm(spreads[i], rows[k], &loss);
            ck_assert_msg(got.low == want.low && got.high == want.high && loss == want_loss,
                          "%s with %d rows: loss %a, on one device %a", spreads[i], (int)rows[k],
                          loss, want_loss);
        }
    }
}

// Hashes per node and lane are those of one device, whoever computed them.
TEST(mirrored_hashes_equal_those_of_one_device)
{
    char path[2][512];
    for (int i = 0; i < 2; i++) {
        tt_ctx *ctx = open_mirrored(i == 0 ? "cpu:0" : "cpu:0*3", 3, 8);
        test_model m;
        CHECK(test_model_build(&m, ctx, NULL, NULL, NULL));
        tt_session *s = tt_session_new(m.g, .hashes = true);
        for (int step = 0; step < 2; step++)
            CHECK(!isnan(test_model_step(&m, s, step, 13)));
        snprintf(path[i], sizeof(path[i]), "%s/%d.hashes", test_folder(), i);
        CHECK_OK(tt_hashes_write(s, path[i]));
        CHECK_OK(tt_close(ctx));
    }
    tt_ctx *ctx = test_ctx();
    bool same;
    char *report;
    CHECK_OK(tt_hashes_diff(ctx, path[0], path[1], &same, &report));
    ck_assert_msg(same, "%s", report);
    tt_string_free(ctx, report);
    CHECK_OK(tt_close(ctx));
}

static void keep_warning(void *user, const tt_event *ev)
{
    if (strcmp(ev->kind, "log") == 0 && ev->level == TT_WARN)
        snprintf(user, 256, "%s", ev->text);
}

TEST(devices_without_work_are_told_of)
{
    char text[256] = "";
    tt_ctx *ctx = open_mirrored("cpu:0*5", 2, 3);
    test_model tm;
    CHECK(test_model_build(&tm, ctx, NULL, NULL, NULL));
    CHECK(isnan(test_model_step(&tm, tt_session_new(tm.g), 0, 17)));
    CHECK_MESSAGE(ctx, "5 replicas, but 3 lanes");
    CHECK_MESSAGE(ctx, "use lanes: 5");
    CHECK(tt_close(ctx) == TT_EINVAL);
    ctx = tt_open(.devices = "cpu:0*2", .on_event = keep_warning, .user = text);
    tt_model *m = tt_sequential(ctx, .input = {28, 28, 1});
    tt_layer_flatten(m);
    tt_layer_dense(m, .units = 10);
    tt_compile(m, .loss = TT_CROSS_ENTROPY);
    CHECK_OK(tt_fit(m, tt_digits(ctx, .count = 8)));
    CHECK(strstr(text, "2 devices, but strategy is single and there are no pins") != NULL);
    CHECK_OK(tt_close(ctx));
}

TEST(mirrored_refuses_what_mixes_rows_and_pins)
{
    tt_ctx *ctx = open_mirrored("cpu:0*2", 2, 8);
    tt_graph *g = tt_graph_new(ctx);
    float x[8] = {0}, y[8];
    tt_tensor *feed = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 2), .name = "x");
    tt_tensor *t = tt_relu(g, feed);
    tt_pin(t, "cpu:1");
    tt_session *s = tt_session_new(g);
    tt_feed_value in = {feed, x, TT_SHAPE(4, 2), TT_F32};
    tt_fetch out = {t, y, sizeof(y)};
    CHECK(tt_run(s, .feeds = &in, .n_feeds = 1, .fetches = &out, .n_fetches = 1) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "pins relative to the replica");
    CHECK(tt_close(ctx) == TT_EINVAL);
}
