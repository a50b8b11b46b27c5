/*
 * use.c - a model that was saved is whole: it loads without the program that built it, and gives
 * the same numbers.
 */
#include "../test.h"
#include "base/file.h"
#include "save/card.h"
#include <math.h>
#include <stdio.h>

static char *path_of(const char *name)
{
    static char path[4][400];
    static int next;
    char *p = path[next++ % 4];
    snprintf(p, sizeof(path[0]), "%s/%s", test_folder(), name);
    return p;
}

// ---- every kind of layer ---------------------------------------------------------------------

static tt_model *pictures(tt_ctx *ctx)
{
    tt_model *m = tt_sequential(ctx, .input = {12, 12, 3}, .name = "picture");
    tt_tensor *a =
        tt_layer_conv2d(m, .filters = 4, .kernel = {3, 5}, .stride = {1, 2}, .pad = {1, 2});
    tt_tensor *b = tt_layer_batch_norm(m, .momentum = 0.5, .act = TT_RELU, .name = "bn");
    tt_layer_depthwise_conv2d(m, .filters = 2, .padding = TT_SAME);
    tt_layer_concat(m, .from = {a, b});
    tt_layer_max_pool2d(m, .size = {2, 1});
    tt_layer_avg_pool2d(m);
    tt_layer_permute(m, .order = {3, {1, 0, 2}});
    tt_layer_flatten(m);
    tt_layer_dropout(m, .rate = 0.25);
    tt_tensor *left = tt_layer_dense(m, .units = 8, .act = TT_GELU_ERF, .name = "left");
    tt_tensor *right =
        tt_layer_dense(m, .units = 8, .share = NULL, .from = {left}, .no_bias = true);
    tt_layer_add(m, .from = {left, right});
    tt_layer_activation(m, .act = TT_LEAKY_RELU);
    tt_layer_reshape(m, .shape = TT_SHAPE(2, 4));
    tt_layer_rms_norm(m);
    tt_layer_layer_norm(m, .eps = 1e-3);
    tt_layer_positional(m, .fixed = true);
    tt_layer_attention(m, .heads = 2);
    tt_layer_transformer_block(m, .heads = 2, .hidden = 12, .rms = true, .no_causal = true);
    tt_layer_flatten(m);
    tt_tensor *scores = tt_layer_dense(m, .units = 5, .name = "scores");
    tt_tensor *area = tt_layer_dense(m, .units = 1, .from = {left}, .name = "area");
    CHECK_OK(tt_output(m, scores, "kind"));
    CHECK_OK(tt_output(m, area, "size"));
    return m;
}

static tt_model *tokens(tt_ctx *ctx)
{
    tt_model *m = tt_sequential(ctx, .input = {6}, .dtype = TT_I32);
    tt_layer_gpt(m, .layers = 2, .heads = 2, .width = 8, .vocab = 11, .dropout = 0.1);
    return m;
}

static tt_model *network(tt_ctx *ctx)
{
    tt_model *m = tt_sequential(ctx, .input = {8, 8, 3});
    tt_layer_resnet(m, .width = 4, .small = true);
    return m;
}

static void predict(tt_model *m, int64_t width, float *y[2])
{
    static float x[3 * 12 * 12 * 3];
    static int32_t ids[3 * 12 * 12 * 3];
    tt_port port;
    CHECK_OK(tt_model_input(m, 0, &port));
    for (int i = 0; i < (int)(sizeof(x) / sizeof(x[0])); i++) {
        x[i] = (float)sin(i);
        ids[i] = i % 11;
    }
    CHECK_OK(tt_predict(m, port.dtype == TT_I32 ? (void *)ids : (void *)x, 3, NULL, .batch = 2,
                        .outputs = {y[0], y[1]}));
    (void)width;
}

static void comes_back(tt_model *(*build)(tt_ctx *ctx), int n_outputs, bool as_file)
{
    static float before[2][4000], after[2][4000];
    tt_ctx *ctx = test_ctx();
    tt_model *m = build(ctx);
    ck_assert_msg(m != NULL && tt_status_of(ctx) == TT_OK, "%s", tt_last_error(ctx).message);
    CHECK_INT(tt_model_output_count(m), n_outputs);
    predict(m, 0, (float *[2]){before[0], n_outputs > 1 ? before[1] : NULL});
    CHECK_OK(as_file ? tt_export(m, path_of("m")) : tt_save(m, path_of("m")));
    char *want = tti_card_print(m);
    tt_ctx *other = test_ctx();
    tt_model *back = tt_model_load(other, path_of("m"));
    ck_assert_msg(back != NULL, "%s", tt_last_error(other).message);
    char *got = tti_card_print(back);
    CHECK_STR(got, want);
    tti_free(ctx, want);
    tti_free(other, got);
    predict(back, 0, (float *[2]){after[0], n_outputs > 1 ? after[1] : NULL});
    CHECK(memcmp(before, after, sizeof(before)) == 0);
    tt_hash a, b;
    CHECK_OK(tt_model_hash(m, &a));
    CHECK_OK(tt_model_hash(back, &b));
    CHECK(a.low == b.low && a.high == b.high);
    CHECK_OK(tt_close(other));
    CHECK_OK(tt_close(ctx));
}

TEST(models_of_every_layer_come_back)
{
    comes_back(pictures, 2, false);
    comes_back(tokens, 1, false);
    comes_back(network, 1, false);
}

TEST(models_come_back_from_one_file)
{
    comes_back(pictures, 2, true);
    comes_back(tokens, 1, true);
}

// ---- preprocessing ---------------------------------------------------------------------------

#define N 40

TEST(values_come_in_the_targets_units)
{
    static float x[N * 2], y[N];
    float plain[N], raw[N];
    for (int i = 0; i < N; i++) {
        x[2 * i] = (float)(100 + i);
        x[2 * i + 1] = (float)(i % 5);
        y[i] = 3000 + 10 * x[2 * i] - 100 * x[2 * i + 1];
    }
    tt_ctx *ctx = test_ctx();
    tt_data *d = tt_memory(ctx, .x = x, .y = y, .x_shape = TT_SHAPE(2), .y_shape = TT_SHAPE(1),
                           .count = N, .batch = 8);
    CHECK_OK(tt_transform(d, "normalise", .means = "120, 2", .scales = "12, 1.5"));
    CHECK_OK(tt_transform(d, "normalise", .field = "y", .mean = 4000, .scale = 150));
    tt_model *m = tt_sequential(ctx, .input = {2});
    tt_layer_dense(m, .units = 1);
    CHECK_OK(tt_compile(m, .loss = TT_MSE, .optimizer = tt_adam(.lr = 0.05)));
    CHECK_OK(tt_fit(m, d, .epochs = 100));
    tt_evaluation before, after;
    CHECK_OK(tt_evaluate(m, d, &before));
    CHECK_OK(tt_export(m, path_of("m.tutti")));
    CHECK_OK(tt_close(ctx));

    ctx = test_ctx();
    m = tt_model_load(ctx, path_of("m.tutti"));
    CHECK_OK(tt_predict(m, x, N, raw, .raw = true, .batch = 7));
    for (int i = 0; i < N; i++)
        CHECK_NEAR(raw[i], y[i], 30); // it has learned it, and says it in y's units
    float normal[N * 2];
    for (int i = 0; i < N; i++) {
        normal[2 * i] = (x[2 * i] - 120.0f) / 12.0f;
        normal[2 * i + 1] = (x[2 * i + 1] - 2.0f) / 1.5f;
    }
    CHECK_OK(tt_predict(m, normal, N, plain));
    for (int i = 0; i < N; i++)
        CHECK_NEAR(plain[i] * 150 + 4000, raw[i], 1e-2);
    tt_data *e = tt_memory(ctx, .x = x, .y = y, .x_shape = TT_SHAPE(2), .y_shape = TT_SHAPE(1),
                           .count = N, .batch = 8);
    CHECK_OK(tt_model_prepare(m, e));
    CHECK_OK(tt_model_compile(m));
    CHECK_OK(tt_evaluate(m, e, &after));
    CHECK(after.loss == before.loss);
    CHECK_OK(tt_close(ctx));
}

// ---- what is no model ------------------------------------------------------------------------

TEST(files_that_are_no_models)
{
    tt_hash hash;
    float v = 1;
    tti_named t = {"w", TT_F32, {0}, &v, sizeof(v)};
    const char *cards[] = {
        "{",
        "{}",
        "{\"version\": 2, \"tutti\": \"9.9\"}",
        "{\"version\": 1}",
        "{\"version\": 1, \"inputs\": [{\"name\": \"x\", \"type\": \"f32\", \"shape\": [2]}], "
        "\"layers\": [{\"kind\": \"mine\", \"name\": \"a\", \"from\": [\"x\"], \"options\": {}}], "
        "\"outputs\": []}",
        "{\"version\": 1, \"inputs\": [{\"name\": \"x\", \"type\": \"f32\", \"shape\": [-2]}]}",
        "{\"version\": 1, \"inputs\": [{\"name\": \"x\", \"type\": \"f32\", \"shape\": [2]}], "
        "\"layers\": [{\"kind\": \"dense\", \"name\": \"a\", \"from\": [\"y\"], \"options\": "
        "{\"units\": \"2\"}}], \"outputs\": []}",
        "{\"version\": 1, \"inputs\": [{\"name\": \"x\", \"type\": \"f32\", \"shape\": [2]}], "
        "\"layers\": [{\"kind\": \"dense\", \"name\": \"a\", \"from\": [\"x\"], \"options\": "
        "{\"units\": \"-2\"}}], \"outputs\": []}",
    };
    const char *words[] = {
        "description of the model",  "version 0",   "version 2, written by tutti 9.9",
        "no valid inputs",           "type 'mine'", "no valid inputs",
        "no valid inputs of layers", "units"};
    for (int i = 0; i < (int)(sizeof(cards) / sizeof(cards[0])); i++) {
        const char *const metadata[] = {"format", "tutti", TTI_CARD, cards[i], NULL};
        tt_ctx *ctx = test_ctx();
        CHECK_OK(tti_safetensors_write(ctx, path_of("f"), &t, 1, metadata, &hash));
        CHECK(tt_model_load(ctx, path_of("f")) == NULL);
        CHECK_MESSAGE(ctx, words[i]);
        tt_clear_error(ctx);
        CHECK_OK(tt_close(ctx));
    }
    tt_ctx *ctx = test_ctx();
    CHECK_OK(tti_safetensors_write(ctx, path_of("f"), &t, 1, NULL, &hash));
    CHECK(tt_model_load(ctx, path_of("f")) == NULL);
    CHECK_MESSAGE(ctx, "holds only weights, not a model");
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
}
