/*
 * layers_more.c - layers of layers.h that golden_layers.c has not: joins, pixel_shuffle, random
 * layers; and what their messages say.
 */
#include "layer.h"
#include <math.h>

// ---- joins -----------------------------------------------------------------------------------

static const float *values[2];

// Two inputs of 6 numbers; the join must be what fn says of each pair.
static void check_join(const char *kind, double (*fn)(double a, double b))
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_model_new(ctx);
    tt_tensor *a = tt_input(m, .shape = {6}), *b = tt_input(m, .shape = {6});
    const tti_layer_def *def = tti_layer_find(kind);
    tt_plain_opts o = {.opts_size = sizeof(o), .from = {a, b}};
    CHECK(tti_layer_call(m, def, &o) != NULL);
    const void *x[] = {values[0], values[1]};
    double *y = test_run_all(m, x, ROWS);
    for (int i = 0; i < 6 * ROWS; i++)
        CHECK_NEAR(y[i], fn((double)values[0][i], (double)values[1][i]), 1e-6);
    CHECK_OK(tt_close(ctx));
}

static double product(double a, double b)
{
    return a * b;
}
static double difference(double a, double b)
{
    return a - b;
}
static double mean(double a, double b)
{
    return (a + b) / 2;
}

TEST(joins_of_two_inputs)
{
    float *x = test_input(12 * ROWS);
    values[0] = x;
    values[1] = x + 6 * ROWS;
    check_join("multiply", product);
    check_join("subtract", difference);
    check_join("average", mean);
    check_join("maximum", fmax);
    check_join("minimum", fmin);
}

TEST(joins_of_three_inputs_and_of_one)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {4});
    tt_tensor *x = tt_layer_activation(m, .act = TT_RELU),
              *y = tt_layer_activation(m, .act = TT_TANH);
    tt_layer_average(m, .from = {x, y, x});
    tt_layer_multiply(m, .from = {y}); // the last layer and it
    float *in = test_input(4 * ROWS);
    double *out = test_run(m, in);
    for (int i = 0; i < 4 * ROWS; i++) {
        double r = fmax((double)in[i], 0), t = tanh(r);
        CHECK_NEAR(out[i], (2 * r + t) / 3 * t, 1e-6);
    }
    CHECK(tt_layer_subtract(m, .from = {x, y, x}) == NULL);
    CHECK_MESSAGE(ctx, "subtract_1: ");
    CHECK(tt_close(ctx) != TT_OK);
}

TEST(dot_products_and_cosines)
{
    for (int cosine = 0; cosine < 2; cosine++) {
        tt_ctx *ctx = test_ctx();
        tt_model *m = tt_model_new(ctx);
        tt_tensor *a = tt_input(m, .shape = {2, 5}), *b = tt_input(m, .shape = {3, 5});
        tt_tensor *y = tt_layer_dot(m, .from = {a, b}, .normalise = cosine);
        test_shape(y, TT_SHAPE(TT_BATCH, 2, 3));
        float *p = test_input(25 * ROWS), *q = p + 10 * ROWS;
        const void *x[] = {p, q};
        double *got = test_run_all(m, x, ROWS);
        for (int i = 0; i < 6 * ROWS; i++) {
            const float *u = p + (i / 6 * 2 + i / 3 % 2) * 5, *v = q + (i / 6 * 3 + i % 3) * 5;
            double dot = 0, uu = 0, vv = 0;
            for (int k = 0; k < 5; k++) {
                dot += (double)u[k] * v[k];
                uu += (double)u[k] * u[k];
                vv += (double)v[k] * v[k];
            }
            CHECK_NEAR(got[i], cosine ? dot / sqrt(uu * vv) : dot, 1e-5);
        }
        test_shape(tt_layer_dot(m, .from = {tt_layer_flatten(m, .from = {a}),
                                            tt_layer_flatten(m, .from = {a})}),
                   TT_SHAPE(TT_BATCH, 1));
        CHECK(tt_layer_dot(m, .from = {a, tt_layer_flatten(m, .from = {b})}) == NULL);
        CHECK_MESSAGE(ctx, "its inputs are [b, 2, 5] and [b, 15]; they must be [batch, n] both");
        CHECK(tt_close(ctx) == TT_ESHAPE);
    }
}

// ---- pixels ----------------------------------------------------------------------------------

TEST(pixel_shuffle_moves_channels_as_pytorch_does)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {2, 3, 8});
    test_shape(tt_layer_pixel_shuffle(m), TT_SHAPE(TT_BATCH, 4, 6, 2));
    float *x = test_input(48 * ROWS);
    double *y = test_run(m, x);
    for (int i = 0; i < 48 * ROWS; i++) { // [b, r, q, c]
        int c = i % 2, q = i / 2 % 6, r = i / 12 % 4, b = i / 48;
        CHECK(y[i] == (double)x[((b * 2 + r / 2) * 3 + q / 2) * 8 + c * 4 + r % 2 * 2 + q % 2]);
    }
    tt_layer_pixel_unshuffle(m);
    test_near(test_run(m, x), test_doubles(x, 48 * ROWS), 48 * ROWS, 0);
    CHECK_OK(tt_close(ctx));
}

// ---- random layers ---------------------------------------------------------------------------

// What a layer of this kind does to ones in training, 3 records [4, 5, 16].
static void train_ones(const char *kind, double value, float *y)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {4, 5, 16});
    const tti_layer_def *def = tti_layer_find(kind);
    tt_layer_dropout_opts o = {.opts_size = sizeof(o), .rate = value};
    tt_tensor *out = tti_layer_call(m, def, &o);
    CHECK(out != NULL);
    double *same = test_run(m, test_input(320 * ROWS));
    test_near(same, test_doubles(test_input(320 * ROWS), 320 * ROWS), 320 * ROWS, 0); // inference
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor **updates;
    int n;
    CHECK_OK(tti_model_build_training(m, g, &updates, &n));
    static float ones[320 * ROWS];
    for (int i = 0; i < 320 * ROWS; i++)
        ones[i] = 1;
    tt_feed_value feed = {m->inputs[0]->train_out, ones, TT_SHAPE(ROWS, 4, 5, 16), TT_F32};
    tt_fetch fetch = {m->layers[1]->train_out, y, sizeof(ones)};
    tt_session *s = tt_session_new(g);
    CHECK_OK(tt_run(s, .feeds = &feed, .n_feeds = 1, .fetches = &fetch, .n_fetches = 1));
    tt_session_free(s);
    tt_graph_free(g);
    CHECK_OK(tt_close(ctx));
}

TEST(spatial_dropout_drops_whole_channels)
{
    static float y[320 * ROWS];
    int dropped = 0;
    train_ones("spatial_dropout", 0.5, y);
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < 16; c++) {
            float first = y[r * 320 + c];
            CHECK(first == 0 || first == 2);
            dropped += first == 0;
            for (int i = 0; i < 20; i++)
                CHECK(y[r * 320 + i * 16 + c] == first);
        }
    CHECK(dropped > 8 && dropped < 40); // of 48
}

TEST(gaussian_layers_have_their_moments)
{
    static float y[320 * ROWS];
    static const struct {
        const char *kind;
        double value, deviation;
    } rows[] = {{"gaussian_dropout", 0.2, 0.5}, {"gaussian_noise", 0.3, 0.3}};
    for (int k = 0; k < 2; k++) {
        double sum = 0, squares = 0, n = 320 * ROWS;
        train_ones(rows[k].kind, rows[k].value, y);
        for (int i = 0; i < 320 * ROWS; i++) {
            sum += (double)y[i];
            squares += ((double)y[i] - 1) * ((double)y[i] - 1);
        }
        CHECK_NEAR(sum / n, 1, 5 * rows[k].deviation / sqrt(n));
        CHECK_NEAR(sqrt(squares / n), rows[k].deviation, 0.1 * rows[k].deviation);
    }
}

// ---- messages --------------------------------------------------------------------------------

#define REFUSED(shape_, call_, message_)                                 \
    do {                                                                 \
        tt_ctx *ctx = test_ctx();                                        \
        tt_model *m = tt_sequential(ctx, .input = {TEST_UNPACK shape_}); \
        CHECK(m != NULL && (call_) == NULL);                             \
        CHECK_MESSAGE(ctx, message_);                                    \
        CHECK(tt_close(ctx) != TT_OK);                                   \
    } while (0)
#define TEST_UNPACK(...) __VA_ARGS__

TEST(layers_name_shapes_that_do_not_fit)
{
    REFUSED((5), tt_layer_conv1d(m, .filters = 2),
            "conv1d_1: x is [b, 5], which has no channels; make the input {5, 1}");
    REFUSED((4, 4, 2), tt_layer_conv1d(m, .filters = 2), "it must be [batch, time, channels]");
    REFUSED((9, 2), tt_layer_conv1d(m, .filters = 2, .causal = true, .pad = 1),
            "pad is 1 and causal is true; give one of them");
    REFUSED((9, 2), tt_layer_conv1d(m, .filters = 3, .groups = 2),
            "groups is 2; it must divide the 2 channels of x and the 3 filters");
    REFUSED((9, 9, 3), tt_layer_conv2d(m, .filters = 3, .groups = 2),
            "conv2d_1: groups is 2; it must divide the 3 channels");
    REFUSED((2, 2), tt_layer_conv1d(m, .filters = 1, .dilation = 2), "does not fit");
    REFUSED((7), tt_layer_glu(m), "glu_1: glu: x is [b, 7]; its last axis must have an even");
    REFUSED((8), tt_layer_glu(m, .act = TT_SOFTMAX), "use sigmoid");
    REFUSED((8), tt_layer_swiglu(m), "swiglu_1: hidden must be given");
    REFUSED((4, 4, 6), tt_layer_group_norm(m, .groups = 4),
            "group_norm_1: groups is 4; it must divide the 6 channels");
    REFUSED((6), tt_layer_instance_norm(m), "it must be [batch, time, channels]");
    REFUSED((6), tt_layer_zero_pad(m, .pad = {1, {1}}), "axes between batch and channels");
    REFUSED((6, 6, 1), tt_layer_zero_pad(m, .pad = {3, {1, 2, 3}}),
            "pad has 3 numbers; x is [b, 6, 6, 1], which takes 1 for all sides, 2 by axis, or 4");
    REFUSED((6, 6, 1), tt_layer_crop(m, .pad = {1, {3}}), "3 and 3 cannot be cut off");
    REFUSED((6, 6, 6), tt_layer_pixel_shuffle(m),
            "x has 6 channels; a factor of 2 needs a multiple of 4");
    REFUSED((6, 5, 6), tt_layer_pixel_unshuffle(m), "a factor of 2 must divide both");
    REFUSED((6, 5, 6), tt_layer_adaptive_avg_pool2d(m), "size must be given");
    REFUSED((6, 5, 6), tt_layer_upsample2d(m, .factor = {-1}), "factor");
    REFUSED((6), tt_layer_spatial_dropout(m, .rate = 0.5), "it must be [batch, time, channels]");
    REFUSED((6), tt_layer_gaussian_noise(m, .deviation = -1), "deviation");
    REFUSED((6, 5, 6), tt_layer_conv2d_transpose(m, .filters = 2, .stride = {2}, .extra = {2}),
            "extra is 2; it must be at least 0 and below the stride, 2");
}
