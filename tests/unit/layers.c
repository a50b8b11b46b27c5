/*
 * layers.c - what layers of vectors and images compute, against plain loops in double over the
 * model's own weights.
 */
#include "layer.h"
#include "model/layer.h"
#include <math.h>
#include <stdlib.h>

// ---- dense, activations ----------------------------------------------------------------------

TEST(dense_layer)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {7});
    test_shape(tt_layer_dense(m, .units = 5, .act = TT_RELU), TT_SHAPE(TT_BATCH, 5));
    float *x = test_input(ROWS * 7);
    double *w = test_weight(m, "dense_1.weight"), *b = test_weight(m, "dense_1.bias");
    double *want = test_linear(test_doubles(x, ROWS * 7), ROWS, 7, w, 5, b);
    for (int i = 0; i < ROWS * 5; i++)
        want[i] = fmax(want[i], 0);
    test_near(test_run(m, x), want, ROWS * 5, 1e-5);
    CHECK_OK(tt_close(ctx));
}

TEST(dense_on_the_last_axis_without_bias)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {2, 3, 4});
    tt_tensor *y = tt_layer_dense(m, .units = 6, .no_bias = true, .act = TT_SOFTMAX);
    test_shape(y, TT_SHAPE(TT_BATCH, 2, 3, 6));
    CHECK_STR(y->node->op->name, "softmax");
    CHECK_INT(tt_model_parameters(m), 24);
    float *x = test_input(ROWS * 24);
    double *want = test_linear(test_doubles(x, ROWS * 24), ROWS * 6, 4,
                               test_weight(m, "dense_1.weight"), 6, NULL);
    for (int r = 0; r < ROWS * 6; r++) {
        double sum = 0;
        for (int i = 0; i < 6; i++)
            sum += want[6 * r + i] = exp(want[6 * r + i]);
        for (int i = 0; i < 6; i++)
            want[6 * r + i] /= sum;
    }
    test_near(test_run(m, x), want, ROWS * 36, 1e-6);
    CHECK_OK(tt_close(ctx));
}

// Every activation as a layer is the op; in a dense layer it is part of the node.
TEST(activation_layers)
{
    for (int act = TT_RELU; act <= TT_SOFTSIGN; act++) {
        tt_ctx *ctx = test_ctx();
        tt_model *m = tt_sequential(ctx, .input = {9});
        tt_tensor *y = tt_layer_activation(m, .act = (tt_act)act);
        test_shape(y, TT_SHAPE(TT_BATCH, 9));
        CHECK(strstr(tt_tensor_name(y), "activation_1/") != NULL);
        float *x = test_input(ROWS * 9), want[ROWS * 9];
        tt_graph *g = tt_graph_new(ctx);
        tt_tensor *c = tt_const(g, TT_F32, TT_SHAPE(ROWS, 9), x);
        c = act == TT_SOFTMAX ? tt_softmax(g, c) : tt_activation(g, c, (tt_act)act);
        CHECK_OK(tt_eval(g, c, want, ROWS * 9));
        test_near(test_run(m, x), test_doubles(want, ROWS * 9), ROWS * 9, 0);
        y = tt_layer_dense(m, .units = 2, .act = (tt_act)act);
        CHECK_STR(y->node->op->name, act < TT_SOFTMAX ? "matmul" : tti_act_words[act]);
        CHECK_OK(tt_close(ctx));
    }
}

// Weights of bf16 inputs are kept in f32 and cast; of f64 inputs they are f64.
TEST(weights_follow_the_type_of_the_input)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {4}, .dtype = TT_BF16);
    tt_tensor *y = tt_layer_layer_norm(m);
    CHECK(y != NULL && tt_tensor_dtype(y) == TT_BF16);
    y = tt_layer_dense(m, .units = 3);
    CHECK(y != NULL && tt_tensor_dtype(y) == TT_BF16);
    for (int64_t i = 0; i < m->n_weights; i++)
        CHECK_INT(m->weights[i].var->dtype, TT_F32);
    m = tt_sequential(ctx, .input = {4}, .dtype = TT_F64);
    y = tt_layer_dense(m, .units = 3);
    CHECK(y != NULL && tt_tensor_dtype(y) == TT_F64);
    CHECK_INT(m->weights[0].var->dtype, TT_F64);
    CHECK_OK(tt_close(ctx));
}

// ---- images ----------------------------------------------------------------------------------

typedef struct window {
    int h, w, kh, kw, sh, sw, top, left, oh, ow;
} window;

// For each output and tap inside the image: calls fn(out pixel, in pixel, tap).
static void walk(const window *v, int64_t image, void (*fn)(void *, int64_t, int64_t, int),
                 void *user)
{
    for (int y = 0; y < v->oh; y++)
        for (int x = 0; x < v->ow; x++)
            for (int k = 0; k < v->kh * v->kw; k++) {
                int iy = y * v->sh - v->top + k / v->kw, ix = x * v->sw - v->left + k % v->kw;
                if (iy >= 0 && iy < v->h && ix >= 0 && ix < v->w)
                    fn(user, (image * v->oh + y) * v->ow + x, (image * v->h + iy) * v->w + ix, k);
            }
}

typedef struct taps {
    const float *x;
    const double *w;
    double *y, *n;
    int cin, cout, mult; // mult above 0: depthwise
} taps;

static void conv_tap(void *user, int64_t out, int64_t in, int k)
{
    taps *t = user;
    for (int o = 0; o < t->cout; o++)
        for (int i = 0; i < t->cin; i++) {
            if (t->mult > 0 && o / t->mult != i)
                continue;
            int at = t->mult > 0 ? (k * t->cin + i) * t->mult + o % t->mult
                                 : (k * t->cin + i) * t->cout + o;
            t->y[out * t->cout + o] += (double)t->x[in * t->cin + i] * t->w[at];
        }
}

static void check_conv(tt_model *m, const char *name, const window *v, int cin, int cout, int mult)
{
    char path[64];
    float *x = test_input((int64_t)ROWS * v->h * v->w * cin);
    int64_t n = (int64_t)ROWS * v->oh * v->ow * cout;
    taps t = {
        .x = x, .y = test_zeros((size_t)n, sizeof(double)), .cin = cin, .cout = cout, .mult = mult};
    strcpy(path, name);
    t.w = test_weight(m, strcat(path, ".weight"));
    strcpy(path, name);
    double *b = test_weight(m, strcat(path, ".bias"));
    for (int64_t i = 0; i < n; i++)
        t.y[i] = b[i % cout];
    for (int r = 0; r < ROWS; r++)
        walk(v, r, conv_tap, &t);
    test_near(test_run(m, x), t.y, n, 1e-5);
}

TEST(conv2d_layer)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {7, 6, 2});
    test_shape(tt_layer_conv2d(m, .filters = 3),
               TT_SHAPE(TT_BATCH, 5, 4, 3)); // 3x3, stride 1, valid
    check_conv(m, "conv2d_1", &(window){7, 6, 3, 3, 1, 1, 0, 0, 5, 4}, 2, 3, 0);
    m = tt_sequential(ctx, .input = {7, 6, 2});
    test_shape(tt_layer_conv2d(m, .filters = 4, .kernel = {3, 2}, .stride = {2}, .padding = TT_SAME,
                               .name = "a"),
               TT_SHAPE(TT_BATCH, 4, 3, 4));
    check_conv(m, "a", &(window){7, 6, 3, 2, 2, 2, 1, 0, 4, 3}, 2, 4, 0);
    m = tt_sequential(ctx, .input = {7, 6, 2});
    test_shape(tt_layer_conv2d(m, .filters = 1, .kernel = {3}, .stride = {2, 1}, .pad = {1, 2},
                               .name = "b"),
               TT_SHAPE(TT_BATCH, 4, 8, 1));
    check_conv(m, "b", &(window){7, 6, 3, 3, 2, 1, 1, 2, 4, 8}, 2, 1, 0);
    CHECK_OK(tt_close(ctx));
}

TEST(depthwise_conv2d_layer)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {5, 5, 3});
    test_shape(tt_layer_depthwise_conv2d(m, .padding = TT_SAME), TT_SHAPE(TT_BATCH, 5, 5, 3));
    check_conv(m, "depthwise_conv2d_1", &(window){5, 5, 3, 3, 1, 1, 1, 1, 5, 5}, 3, 3, 1);
    m = tt_sequential(ctx, .input = {5, 5, 3});
    test_shape(tt_layer_depthwise_conv2d(m, .filters = 2, .name = "d"),
               TT_SHAPE(TT_BATCH, 3, 3, 6));
    check_conv(m, "d", &(window){5, 5, 3, 3, 1, 1, 0, 0, 3, 3}, 3, 6, 2);
    CHECK_OK(tt_close(ctx));
}

static void max_tap(void *user, int64_t out, int64_t in, int k)
{
    (void)k;
    taps *t = user;
    for (int i = 0; i < t->cin; i++)
        t->y[out * t->cin + i] = fmax(t->y[out * t->cin + i], (double)t->x[in * t->cin + i]);
}

static void sum_tap(void *user, int64_t out, int64_t in, int k)
{
    (void)k;
    taps *t = user;
    t->n[out]++;
    for (int i = 0; i < t->cin; i++)
        t->y[out * t->cin + i] += (double)t->x[in * t->cin + i];
}

static void check_pool(tt_model *m, const window *v, bool max)
{
    float *x = test_input((int64_t)ROWS * v->h * v->w * 2);
    int64_t pixels = (int64_t)ROWS * v->oh * v->ow;
    taps t = {.x = x,
              .cin = 2,
              .y = test_zeros((size_t)(2 * pixels), sizeof(double)),
              .n = test_zeros((size_t)pixels, sizeof(double))};
    for (int64_t i = 0; max && i < 2 * pixels; i++)
        t.y[i] = -2;
    for (int r = 0; r < ROWS; r++)
        walk(v, r, max ? max_tap : sum_tap, &t);
    for (int64_t i = 0; !max && i < 2 * pixels; i++)
        t.y[i] /= t.n[i / 2];
    test_near(test_run(m, x), t.y, 2 * pixels, max ? 0 : 1e-6);
}

TEST(pool_layers)
{
    tt_ctx *ctx = test_ctx();
    const window plain = {7, 6, 2, 2, 2, 2, 0, 0, 3, 3}, padded = {7, 6, 3, 3, 2, 2, 1, 1, 4, 3};
    tt_model *m = tt_sequential(ctx, .input = {7, 6, 2});
    test_shape(tt_layer_max_pool2d(m), TT_SHAPE(TT_BATCH, 3, 3, 2));
    check_pool(m, &plain, true);
    m = tt_sequential(ctx, .input = {7, 6, 2});
    test_shape(tt_layer_avg_pool2d(m, .size = {2}), TT_SHAPE(TT_BATCH, 3, 3, 2));
    check_pool(m, &plain, false);
    m = tt_sequential(ctx, .input = {7, 6, 2});
    test_shape(tt_layer_max_pool2d(m, .size = {3}, .stride = {2}, .pad = {1}),
               TT_SHAPE(TT_BATCH, 4, 3, 2));
    check_pool(m, &padded, true);
    m = tt_sequential(ctx, .input = {7, 6, 2});
    CHECK(tt_layer_avg_pool2d(m, .size = {3}, .stride = {2}, .pad = {1}) != NULL);
    check_pool(m, &padded, false);
    m = tt_sequential(ctx, .input = {7, 6, 2});
    test_shape(tt_layer_global_avg_pool2d(m), TT_SHAPE(TT_BATCH, 2));
    check_pool(m, &(window){7, 6, 7, 6, 1, 1, 0, 0, 1, 1}, false);
    m = tt_sequential(ctx, .input = {7, 6, 2});
    test_shape(tt_layer_global_max_pool2d(m), TT_SHAPE(TT_BATCH, 2));
    check_pool(m, &(window){7, 6, 7, 6, 1, 1, 0, 0, 1, 1}, true);
    CHECK_OK(tt_close(ctx));
}

// ---- shapes and joins ------------------------------------------------------------------------

TEST(shape_layers)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {2, 3, 4});
    test_shape(tt_layer_flatten(m), TT_SHAPE(TT_BATCH, 24));
    test_shape(tt_layer_reshape(m, .shape = TT_SHAPE(4, -1, 2)), TT_SHAPE(TT_BATCH, 4, 3, 2));
    test_shape(tt_layer_reshape(m, .shape = TT_SHAPE(3, 8)), TT_SHAPE(TT_BATCH, 3, 8));
    test_shape(tt_layer_permute(m, .order = {2, {1, 0}}), TT_SHAPE(TT_BATCH, 8, 3));
    float *x = test_input(ROWS * 24);
    double *y = test_run(m, x);
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < 24; i++)
            CHECK(y[24 * r + i] == (double)x[24 * r + i % 3 * 8 + i / 3]);
    tt_model *scalar = tt_model_new(ctx);
    tt_input(scalar);
    test_shape(tt_layer_flatten(scalar), TT_SHAPE(TT_BATCH, 1));
    CHECK_OK(tt_close(ctx));
}

TEST(joins)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_model_new(ctx);
    tt_tensor *a = tt_input(m, .shape = {2, 3}), *b = tt_input(m, .shape = {2, 3});
    CHECK_STR(tt_tensor_name(b), "x_1");
    float *x[] = {test_input(ROWS * 6), test_zeros(ROWS * 6, sizeof(float))};
    const void *const *in = (const void *const *)x;
    for (int i = 0; i < ROWS * 6; i++)
        x[1][i] = (float)i;

    CHECK(tt_layer_add(m, .from = {a, b, a}) != NULL);
    test_shape(tt_layer_add(m, .from = {a}), TT_SHAPE(TT_BATCH, 2, 3)); // and the last: 3 a + b
    double *y = test_run_all(m, in, ROWS);
    for (int i = 0; i < ROWS * 6; i++)
        CHECK_NEAR(y[i], 3 * (double)x[0][i] + (double)x[1][i], 1e-5);

    test_shape(tt_layer_concat(m, .from = {b, a}, .axis = 1), TT_SHAPE(TT_BATCH, 4, 3));
    y = test_run_all(m, in, ROWS);
    for (int i = 0; i < ROWS * 12; i++)
        CHECK(y[i] == (double)x[i % 12 < 6][i / 12 * 6 + i % 6]);

    tt_layer_add(m, .from = {b, b}); // the last, in front of what is given
    test_shape(tt_layer_concat(m, .from = {a}), TT_SHAPE(TT_BATCH, 2, 6));
    y = test_run_all(m, in, ROWS);
    for (int i = 0; i < ROWS * 12; i++) {
        int k = i / 6 * 3 + i % 3;
        CHECK(y[i] == (i % 6 < 3 ? 2 * (double)x[1][k] : (double)x[0][k]));
    }
    CHECK_OK(tt_close(ctx));
}

// ---- norms -----------------------------------------------------------------------------------

TEST(norm_layers)
{
    tt_ctx *ctx = test_ctx();
    float *x = test_input(ROWS * 14);
    double *d = test_doubles(x, ROWS * 14);
    tt_model *m = tt_sequential(ctx, .input = {2, 7});
    test_shape(tt_layer_layer_norm(m, .name = "n"), TT_SHAPE(TT_BATCH, 2, 7));
    double *gamma = test_weight(m, "n.weight"), *beta = test_weight(m, "n.bias");
    test_near(test_run(m, x), test_norm(d, ROWS * 2, 7, gamma, beta, false), ROWS * 14, 1e-5);
    m = tt_sequential(ctx, .input = {2, 7});
    tt_layer_layer_norm(m, .name = "p", .no_bias = true);
    CHECK_INT(tt_model_parameters(m), 7);
    test_near(test_run(m, x), test_norm(d, ROWS * 2, 7, test_weight(m, "p.weight"), NULL, false),
              ROWS * 14, 1e-5);
    m = tt_sequential(ctx, .input = {2, 7});
    test_shape(tt_layer_rms_norm(m), TT_SHAPE(TT_BATCH, 2, 7));
    CHECK_INT(tt_model_parameters(m), 7);
    test_near(test_run(m, x),
              test_norm(d, ROWS * 2, 7, test_weight(m, "rms_norm_1.weight"), NULL, true), ROWS * 14,
              1e-5);
    CHECK_OK(tt_close(ctx));
}

TEST(batch_norm_in_inference)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_model_new(ctx);
    tt_tensor *a = tt_input(m, .shape = {2, 2, 3}), *b = tt_input(m, .shape = {2, 2, 3});
    test_shape(tt_layer_batch_norm(m, .act = TT_RELU, .from = {a, b}), TT_SHAPE(TT_BATCH, 2, 2, 3));
    CHECK(test_weight_find(m, "batch_norm_1.weight")->trains &&
          test_weight_find(m, "batch_norm_1.bias")->trains);
    CHECK(!test_weight_find(m, "batch_norm_1.mean")->trains &&
          !test_weight_find(m, "batch_norm_1.var")->trains);
    float *x[] = {test_input(ROWS * 12), test_zeros(ROWS * 12, sizeof(float))};
    test_fill(x[1], ROWS * 12, 5, -1, 1);
    double *gamma = test_weight(m, "batch_norm_1.weight"),
           *beta = test_weight(m, "batch_norm_1.bias");
    double *mean = test_weight(m, "batch_norm_1.mean"), *var = test_weight(m, "batch_norm_1.var");
    double *y = test_run_all(m, (const void *const *)x, ROWS), want[ROWS * 12];
    for (int i = 0; i < ROWS * 12; i++) {
        int c = i % 3;
        double z = ((double)x[0][i] - mean[c]) / sqrt(var[c] + 1e-5) * gamma[c] + beta[c];
        want[i] = fmax(0, z + (double)x[1][i]);
    }
    test_near(y, want, ROWS * 12, 1e-5);
    CHECK_OK(tt_close(ctx));
}

// In training the batch's own statistics count, and the running ones move.
TEST(batch_norm_in_training)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {3});
    CHECK(tt_layer_batch_norm(m, .momentum = 0.75) != NULL);
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor **updates;
    int n_updates;
    CHECK_OK(tti_model_build_training(m, g, &updates, &n_updates));
    CHECK_INT(n_updates, 2);
    tt_session *s = tt_session_new(g);
    float *x = test_input(10 * 3), y[30], mean[3], var[3];
    tt_feed_value feed = {m->layers[0]->train_out, x, TT_SHAPE(10, 3), TT_F32};
    CHECK_OK(tt_run(s, .feeds = &feed, .n_feeds = 1, .targets = updates, .n_targets = 2,
                    .n_fetches = 1, .fetches = &(tt_fetch){m->layers[1]->train_out, y, sizeof(y)}));
    // The store has one variable for both graphs.
    tt_session *infer = tti_model_session(m);
    CHECK_OK(
        tt_get_variable(infer, test_weight_find(m, "batch_norm_1.mean")->var, mean, sizeof(mean)));
    CHECK_OK(
        tt_get_variable(infer, test_weight_find(m, "batch_norm_1.var")->var, var, sizeof(var)));
    for (int c = 0; c < 3; c++) {
        double mu = 0, m2 = 0;
        for (int i = 0; i < 10; i++)
            mu += (double)x[3 * i + c] / 10;
        for (int i = 0; i < 10; i++)
            m2 += ((double)x[3 * i + c] - mu) * ((double)x[3 * i + c] - mu);
        CHECK_NEAR((double)mean[c], 0.25 * mu, 1e-6);
        CHECK_NEAR((double)var[c], 0.75 + 0.25 * m2 / 9, 1e-6); // began at 1; unbiased
        for (int i = 0; i < 10; i++)
            CHECK_NEAR((double)y[3 * i + c], ((double)x[3 * i + c] - mu) / sqrt(m2 / 10 + 1e-5),
                       1e-5);
    }
    tt_graph_free(g);
    CHECK_OK(tt_close(ctx));
}

TEST(dropout_in_training_only)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {500});
    CHECK(tt_layer_dropout(m, .rate = 0.25) != NULL);
    CHECK(tt_layer_dropout(m) != NULL); // rate 0: nothing
    float *x = test_input(ROWS * 500), y[ROWS * 500];
    test_near(test_run(m, x), test_doubles(x, ROWS * 500), ROWS * 500, 0);
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor **updates;
    int n_updates, zeros = 0;
    CHECK_OK(tti_model_build_training(m, g, &updates, &n_updates));
    tt_feed_value feed = {m->layers[0]->train_out, x, TT_SHAPE(ROWS, 500), TT_F32};
    CHECK_OK(tt_run(tt_session_new(g), .feeds = &feed, .n_feeds = 1, .n_fetches = 1,
                    .fetches = &(tt_fetch){m->layers[2]->train_out, y, sizeof(y)}));
    for (int i = 0; i < ROWS * 500; i++) {
        zeros += y[i] == 0;
        CHECK(y[i] == 0 || fabsf(y[i] - x[i] / 0.75f) < 1e-6f);
    }
    CHECK(zeros > 300 && zeros < 450); // 375 expected, deviation 17
    tt_graph_free(g);
    CHECK_OK(tt_close(ctx));
}

// ---- the caller's own ------------------------------------------------------------------------

// y = x w + (7 in training), w [c]
static tt_tensor *scale_fn(void *user, tt_build *b, tt_tensor *const *in, int n_in)
{
    (*(int *)user)++;
    CHECK_INT(n_in, 1);
    tt_graph *g = tt_build_graph(b);
    tt_shape s = tt_tensor_shape(in[0]);
    tt_tensor *w = tt_layer_weight(b, "w", TT_SHAPE(s.dim[1]), (tt_init){TT_INIT_CONSTANT, 2, 0});
    tt_tensor *y = tt_mul(g, in[0], w);
    return tt_build_is_training(b) ? tt_scale(g, y, 1, 7) : y;
}

TEST(custom_layer)
{
    tt_ctx *ctx = test_ctx();
    int calls = 0;
    tt_model *m = tt_sequential(ctx, .input = {3});
    tt_tensor *y = tt_layer_custom(m, .fn = scale_fn, .user = &calls);
    test_shape(y, TT_SHAPE(TT_BATCH, 3));
    CHECK(tt_layer_custom(m, .fn = scale_fn, .user = &calls, .share = y) != NULL);
    CHECK_INT(m->n_weights, 1);
    CHECK_STR(m->weights[0].name, "custom_1.w");
    float *x = test_input(ROWS * 3), z[ROWS * 3];
    double *out = test_run(m, x);
    for (int i = 0; i < ROWS * 3; i++)
        CHECK_NEAR(out[i], 4 * (double)x[i], 1e-6);
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor **updates;
    int n_updates;
    CHECK_OK(tti_model_build_training(m, g, &updates, &n_updates));
    CHECK_INT(calls, 4);
    tt_feed_value feed = {m->layers[0]->train_out, x, TT_SHAPE(ROWS, 3), TT_F32};
    CHECK_OK(tt_run(tt_session_new(g), .feeds = &feed, .n_feeds = 1, .n_fetches = 1,
                    .fetches = &(tt_fetch){m->layers[2]->train_out, z, sizeof(z)}));
    for (int i = 0; i < ROWS * 3; i++)
        CHECK_NEAR((double)z[i], 2 * (2 * (double)x[i] + 7) + 7, 1e-5);
    tt_graph_free(g);
    CHECK_OK(tt_close(ctx));
}
