/*
 * batch_norm_lane.c - the layer batch_norm with over: lane: in training the statistics of each
 * lane, in inference the running ones; one hash on any devices and when the batch comes in parts.
 */
#include "layer.h"
#include "model.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// Rows 0 to 4 and 5 to 9 are two lanes of a batch of ten.
TEST(batch_norm_lane_in_training_and_inference)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {3});
    CHECK(tt_layer_batch_norm(m, .momentum = 0.75, .over = TT_OVER_LANE) != NULL);
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor **updates;
    int n_updates;
    CHECK_OK(tti_model_build_training(m, g, &updates, &n_updates));
    CHECK_INT(n_updates, 2);
    tt_session *s = tt_session_new(g);
    float *x = test_input(10 * 3), y[30];
    tt_feed_value feed = {m->layers[0]->train_out, x, TT_SHAPE(10, 3), TT_F32};
    CHECK_OK(tt_run(s, .feeds = &feed, .n_feeds = 1, .targets = updates, .n_targets = 2,
                    .n_fetches = 1, .fetches = &(tt_fetch){m->layers[1]->train_out, y, sizeof(y)},
                    .batch = {.lanes = 2}));
    tt_session *infer = tti_model_session(m);
    float mean[3], var[3];
    const tti_weight *w = test_weight_find(m, "batch_norm_1.mean");
    CHECK_OK(tt_get_variable(infer, w->var, mean, sizeof(mean)));
    w = test_weight_find(m, "batch_norm_1.var");
    CHECK_OK(tt_get_variable(infer, w->var, var, sizeof(var)));
    for (int c = 0; c < 3; c++) {
        double mu[2] = {0}, m2[2] = {0};
        for (int i = 0; i < 10; i++)
            mu[i / 5] += (double)x[3 * i + c] / 5;
        for (int i = 0; i < 10; i++)
            m2[i / 5] += ((double)x[3 * i + c] - mu[i / 5]) * ((double)x[3 * i + c] - mu[i / 5]);
        CHECK_NEAR((double)mean[c], 0.25 * (mu[0] + mu[1]) / 2, 1e-6);
        CHECK_NEAR((double)var[c], 0.75 + 0.25 * (m2[0] + m2[1]) / 4 / 2, 1e-6);
        for (int i = 0; i < 10; i++)
            CHECK_NEAR((double)y[3 * i + c],
                       ((double)x[3 * i + c] - mu[i / 5]) / sqrt(m2[i / 5] / 5 + 1e-5), 1e-5);
    }
    tt_fetch out = {m->layers[1]->out, y, sizeof(y)};
    feed = (tt_feed_value){m->layers[0]->out, x, TT_SHAPE(10, 3), TT_F32};
    CHECK_OK(tt_run(infer, .feeds = &feed, .n_feeds = 1, .fetches = &out, .n_fetches = 1));
    for (int i = 0; i < 30; i++)
        CHECK_NEAR((double)y[i], ((double)x[i] - (double)mean[i % 3]) / sqrt(var[i % 3] + 1e-5),
                   1e-5);
    tt_graph_free(g);
    CHECK_OK(tt_close(ctx));
}

// ---- spreads ---------------------------------------------------------------------------------

typedef struct way {
    const char *devices, *strategy; // devices without a strategy: mirrored
    const char *isa, *recompute;
    int threads, accumulate;
    tt_over over;
    const tt_spread *spread;
} way;

// Two epochs of a CNN with two batch norms; the last update of each has one row.
static tt_status train(way w, int64_t rows, tt_hash *hash, double *loss, char message[256])
{
    tt_ctx *ctx =
        tt_open(.devices = w.devices, .threads = w.threads, .isa = w.isa, .lanes = 8,
                .strategy = w.devices == NULL || w.strategy != NULL ? w.strategy : "mirrored",
                .spread = w.spread, .on_event = test_ignore_event);
    tt_model *m = tt_sequential(ctx, .input = {28, 28, 1});
    tt_layer_conv2d(m, .filters = 7, .kernel = {3, 3}, .stride = {2, 2}, .no_bias = true);
    tt_layer_batch_norm(m, .act = TT_RELU, .over = w.over);
    tt_layer_conv2d(m, .filters = 19, .kernel = {3, 3}, .stride = {2, 2});
    tt_layer_batch_norm(m, .act = TT_GELU, .over = w.over);
    tt_layer_flatten(m);
    tt_layer_dense(m, .units = 10);
    tt_layer_batch_norm(m, .over = w.over);
    tt_compile(m, .loss = TT_CROSS_ENTROPY, .metrics = TT_ACCURACY, .recompute = w.recompute,
               .optimizer = tt_sgd(.lr = 0.05, .momentum = 0.9));
    tt_data *d = tt_digits(ctx, .count = 2 * rows + 1);
    tt_fit_report r;
    int k = w.accumulate > 1 ? w.accumulate : 1;
    tt_status st = tt_fit(m, d, .epochs = 2, .batch = (int)rows / k, .accumulate = k);
    snprintf(message, 256, "%s", tt_last_error(ctx).message);
    if (st == TT_OK) {
        CHECK_OK(tt_fit_report_get(m, &r));
        tt_evaluation e;
        CHECK_OK(tt_evaluate(m, d, &e, .batch = 10));
        *hash = r.weights;
        *loss = r.last->loss + e.loss;
    }
    (void)tt_close(ctx);
    return st;
}

static void check_ways(const way *ways, size_t n, int64_t rows)
{
    double want_loss, loss;
    tt_hash want, got;
    char message[256];
    ck_assert_msg(
        train((way){.threads = 1, .over = TT_OVER_LANE}, rows, &want, &want_loss, message) == TT_OK,
        "%s", message);
    for (size_t i = 0; i < n; i++) {
        way w = ways[i];
        w.over = TT_OVER_LANE;
        ck_assert_msg(train(w, rows, &got, &loss, message) == TT_OK, "%s", message);
        ck_assert_msg(got.low == want.low && got.high == want.high && loss == want_loss,
                      "%s, accumulate %d, %d rows: losses %a, on one device %a",
                      w.devices == NULL ? "one device" : w.devices, w.accumulate, (int)rows, loss,
                      want_loss);
    }
}

TEST(batch_norm_lane_has_one_hash_on_any_devices)
{
    static const way ways[] = {
        {.devices = "cpu:0*2", .threads = 2}, {.devices = "cpu:0*3", .threads = 3},
        {.devices = "cpu:0*8", .threads = 8}, {.devices = "cpu:0", .threads = 3},
        {.isa = "plain", .threads = 2},       {.recompute = "all", .threads = 2},
    };
    check_ways(ways, sizeof(ways) / sizeof(ways[0]), 37);
    check_ways(ways, 3, 5); // lanes without rows
}

TEST(batch_norm_lane_accumulated_equals_the_big_batch)
{
    static const way ways[] = {
        {.threads = 2, .accumulate = 2},
        {.threads = 2, .accumulate = 4},
        {.devices = "cpu:0*2", .threads = 2, .accumulate = 4},
    };
    check_ways(ways, sizeof(ways) / sizeof(ways[0]), 36);
}

TEST(batch_norm_lane_in_a_pipeline_has_the_hash_of_one_device)
{
    const way ways[] = {
        {.devices = "cpu:0*2", .strategy = "pipeline", .threads = 2},
        {.devices = "cpu:0*3",
         .strategy = "pipeline",
         .threads = 3,
         .spread = tt_spread(.schedule = TT_PIPE_GPIPE)},
        {.devices = "cpu:0*4",
         .strategy = "pipeline",
         .threads = 2,
         .spread = tt_spread(.replicas = 2)},
    };
    check_ways(ways, sizeof(ways) / sizeof(ways[0]), 36);
}

TEST(batch_norm_over_the_batch_is_refused_where_the_batch_comes_in_parts)
{
    tt_hash hash;
    double loss;
    char message[256];
    CHECK(train((way){.threads = 1, .accumulate = 2}, 36, &hash, &loss, message) != TT_OK);
    ck_assert_msg(strstr(message, "over: lane") != NULL, "%s", message);
    way pipeline = {.devices = "cpu:0*2", .strategy = "pipeline", .threads = 2};
    CHECK(train(pipeline, 36, &hash, &loss, message) != TT_OK);
    ck_assert_msg(strstr(message, "over: lane") != NULL, "%s", message);
}

TEST(resnet_passes_over_on)
{
    tt_ctx *ctx = test_ctx();
    for (int over = 0; over < 2; over++) {
        tt_model *m = tt_sequential(ctx, .input = {8, 8, 3});
        CHECK(tt_layer_resnet(m, .width = 4, .small = true, .over = (tt_over)over) != NULL);
        tt_graph *g = tt_graph_new(ctx);
        tt_tensor **updates;
        int n_updates;
        CHECK_OK(tti_model_build_training(m, g, &updates, &n_updates));
        char *text = tt_graph_print(g);
        CHECK((strstr(text, "batch_norm_lane") != NULL) == (over == 1));
        CHECK((strstr(text, "batch_norm_stats") != NULL) == (over == 0));
        tt_string_free(ctx, text);
        tt_graph_free(g);
    }
    CHECK_OK(tt_close(ctx));
}

TEST(job_names_what_batch_norm_is_over)
{
    test_need_yaml();
    static const char text[] = "data: {train: {digits: {count: 20}}}\n"
                               "model: [flatten, {batch_norm: {over: lane}}, {dense: 10}]\n"
                               "train: {loss: cross_entropy, epochs: 1, batch: 10}\n";
    tt_ctx *reader = test_ctx(), *ctx = test_ctx();
    tt_job *j = tt_job_parse(reader, text, strlen(text), "j.yaml");
    tt_job_parts parts;
    CHECK(j != NULL);
    CHECK_OK(tt_job_build(j, ctx, &parts));
    tt_hash got, want;
    CHECK_OK(tt_fit_with(parts.model, parts.train, parts.fit));
    CHECK_OK(tt_model_hash(parts.model, &got));
    CHECK_OK(tt_close(ctx));
    CHECK_OK(tt_close(reader));

    ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {28, 28, 1});
    tt_layer_flatten(m);
    tt_layer_batch_norm(m, .over = TT_OVER_LANE);
    tt_layer_dense(m, .units = 10);
    tt_compile(m, .loss = TT_CROSS_ENTROPY);
    CHECK_OK(tt_fit(m, tt_digits(ctx, .count = 20), .epochs = 1, .batch = 10));
    CHECK_OK(tt_model_hash(m, &want));
    CHECK(got.low == want.low && got.high == want.high);
    CHECK_OK(tt_close(ctx));
}
