/*
 * layers.c - one model of many kinds of layers: several devices, micro-batches and a pipeline have
 * the bits of one device.
 */
#include "test.h"

// An image and a sequence, joined; every layer of layers.h in one of the branches.
static tt_model *build(tt_ctx *ctx)
{
    tt_model *m = tt_sequential(ctx, .input = {28, 28, 1});
    tt_layer_zero_pad(m, .pad = {4, {0, 1, 1, 0}});
    tt_layer_crop(m, .pad = {4, {0, 1, 1, 0}});
    tt_layer_pixel_unshuffle(m, .factor = 4); // [7, 7, 16]
    tt_layer_conv2d(m, .filters = 8, .dilation = {2}, .pad = {2}, .act = TT_MISH);
    tt_layer_group_norm(m, .groups = 4);
    tt_tensor *a =
        tt_layer_conv2d(m, .filters = 8, .groups = 4, .padding = TT_SAME, .act = TT_HARD_SWISH);
    tt_tensor *b = tt_layer_separable_conv2d(m, .filters = 8, .padding = TT_SAME, .act = TT_RELU6);
    tt_tensor *c = tt_layer_prelu(m, .from = {a});
    tt_layer_average(m, .from = {a, b, c});
    tt_layer_maximum(m, .from = {c});
    tt_layer_spatial_dropout(m, .rate = 0.25);
    tt_layer_instance_norm(m);
    tt_layer_adaptive_avg_pool2d(m, .size = {3, 4});
    tt_layer_upsample2d(m, .mode = TT_BILINEAR);                              // [6, 8, 8]
    tt_layer_pixel_shuffle(m);                                                // [12, 16, 2]
    tt_layer_conv2d_transpose(m, .filters = 4, .kernel = {2}, .stride = {2}); // [24, 32, 4]
    tt_layer_adaptive_max_pool2d(m, .size = {5, 4});
    tt_layer_upsample2d(m, .factor = {1, 2});
    tt_tensor *s = tt_layer_reshape(m, .shape = TT_SHAPE(40, 4));
    tt_layer_conv1d(m, .filters = 6, .dilation = 2, .causal = true, .act = TT_SELU);
    tt_layer_max_pool1d(m);
    tt_layer_lstm(m, .units = 3, .bidirectional = true);
    tt_layer_gru(m, .units = 5);
    tt_layer_rnn(m, .units = 6, .layers = 2, .dropout = 0.1);
    tt_layer_conv1d_transpose(m, .filters = 6, .stride = 2, .kernel = 2, .act = TT_SOFTSIGN);
    tt_layer_avg_pool1d(m, .size = 4);
    tt_layer_upsample1d(m);
    tt_layer_gaussian_noise(m);
    tt_tensor *t = tt_layer_glu(m);
    tt_layer_gaussian_dropout(m, .rate = 0.1);
    tt_layer_swiglu(m, .hidden = 5, .units = 4);
    tt_tensor *u = tt_layer_global_avg_pool1d(m);
    tt_tensor *v = tt_layer_global_max_pool1d(m, .from = {s});
    tt_layer_multiply(m, .from = {u, v});
    tt_layer_subtract(m, .from = {v});
    tt_tensor *p = tt_layer_minimum(m, .from = {u});
    tt_tensor *q = tt_layer_geglu(m, .hidden = 4);
    tt_tensor *d = tt_layer_dot(m, .from = {p, q}, .normalise = true);
    tt_layer_repeat(m, .times = 3, .from = {q});
    tt_tensor *r = tt_layer_flatten(m);
    tt_tensor *e = tt_layer_flatten(m, .from = {t});
    tt_layer_concat(m, .from = {d, r, e});
    tt_layer_dense(m, .units = 10, .act = TT_HARD_SIGMOID);
    tt_layer_dense(m, .units = 10);
    return m;
}

static tt_hash train(const char *strategy, const char *devices, int threads, int accumulate,
                     double *loss)
{
    tt_ctx *ctx = tt_open(.devices = devices, .threads = threads, .lanes = 8, .strategy = strategy,
                          .on_event = test_ignore_event);
    tt_model *m = build(ctx);
    tt_compile(m, .loss = TT_CROSS_ENTROPY, .optimizer = tt_adam(.lr = 0.01));
    tt_data *d = tt_digits(ctx, .count = 29, .batch = 16 / accumulate);
    tt_fit_report r;
    ck_assert_msg(tt_fit(m, d, .epochs = 1, .accumulate = accumulate) == TT_OK, "%s",
                  tt_last_error(ctx).message);
    CHECK_OK(tt_fit_report_get(m, &r));
    *loss = r.last->loss;
    CHECK_OK(tt_close(ctx));
    return r.weights;
}

TEST(many_layers_have_the_bits_of_one_device)
{
    static const struct {
        const char *strategy, *devices;
        int accumulate;
    } ways[] = {
        {"mirrored", "cpu:0*3", 1},
        {"mirrored", "cpu:0*2", 2},
        {"pipeline", "cpu:0*2", 4},
    };
    double want_loss, loss;
    tt_hash want = train("mirrored", "cpu:0", 1, 1, &want_loss);
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        tt_hash got = train(ways[i].strategy, ways[i].devices, 2, ways[i].accumulate, &loss);
        ck_assert_msg(got.low == want.low && got.high == want.high && loss == want_loss,
                      "%s on %s: loss %a, on one device %a", ways[i].strategy, ways[i].devices,
                      loss, want_loss);
    }
}
