/*
 * models.c - whole models on several devices, with micro-batches and as a pipeline have the bits of
 * one device.
 */
#include "test.h"
#include <tutti/models.h>

#define N    29
#define TIME 8
#define SIDE 8

static int32_t tokens[N * TIME], next[N * TIME], segments[N * TIME], lengths[N], labels[N];
static float images[N * SIDE * SIDE * 2];

typedef struct way {
    const char *strategy, *devices;
    int accumulate;
} way;

static tt_tensor *language(tt_model *m)
{
    tt_tensor *x = tt_input(m, .shape = {TIME}, .dtype = TT_I32, .name = "tokens");
    tt_tensor *n = tt_input(m, .shape = {1}, .dtype = TT_I32, .name = "lengths");
    tt_tensor *s = tt_input(m, .shape = {TIME}, .dtype = TT_I32, .name = "segments");
    tt_tensor *a = tt_layer_llama(m, .layers = 1, .heads = 4, .kv_heads = 2, .width = 16,
                                  .vocab = 11, .window = 5, .from = {x});
    tt_tensor *b = tt_layer_bert(m, .layers = 1, .heads = 2, .width = 8, .vocab = 11,
                                 .dropout = 0.1, .from = {x, n, s});
    tt_tensor *c = tt_layer_lstm_lm(m, .layers = 1, .width = 6, .units = 6, .vocab = 11,
                                    .tied = true, .from = {x});
    tt_tensor *d = tt_layer_add(m, .from = {a, b, c});
    tt_layer_multi_head_attention(m, .heads = 1, .alibi = true, .units = 8, .from = {d, b, n});
    return tt_layer_dense(m, .units = 11);
}

static tt_tensor *vision(tt_model *m)
{
    tt_tensor *x = tt_input(m, .shape = {SIDE, SIDE, 2}, .name = "images");
    tt_tensor *a =
        tt_layer_vit(m, .patch = 4, .layers = 1, .heads = 2, .width = 8, .name = "a", .from = {x});
    tt_layer_unet(m, .classes = 2, .width = 2, .depth = 1, .over = TT_OVER_LANE, .name = "b",
                  .from = {x});
    tt_tensor *b =
        tt_layer_mobilenet_v2(m, .width = 0.05, .small = true, .over = TT_OVER_LANE, .name = "c");
    tt_tensor *s = tt_layer_autoencoder(m, .units = {2, {9, 5}}, .name = "d", .from = {x});
    tt_layer_flatten(m, .from = {s});
    tt_layer_dense(m, .units = 4, .act = TT_HARD_SIGMOID); // below 2: categories 0 and 1
    tt_tensor *c = tt_layer_tabular(m, .categories = {2, {2, 2}}, .units = {1, {6}}, .classes = 10,
                                    .over = TT_OVER_LANE, .name = "e");
    return tt_layer_add(m, .from = {a, b, c});
}

static tt_data *data_of(tt_ctx *ctx, bool text, int batch)
{
    if (text)
        return tt_memory(
            ctx, .count = N, .batch = batch,
            .fields = {
                tt_array(.name = "tokens", .data = tokens, .dtype = TT_I32,
                         .shape = TT_SHAPE(TIME)),
                tt_array(.name = "lengths", .data = lengths, .dtype = TT_I32, .shape = TT_SHAPE(1)),
                tt_array(.name = "segments", .data = segments, .dtype = TT_I32,
                         .shape = TT_SHAPE(TIME)),
                tt_array(.name = "next", .data = next, .dtype = TT_I32, .shape = TT_SHAPE(TIME))});
    return tt_memory(
        ctx, .count = N, .batch = batch,
        .fields = {tt_array(.name = "images", .data = images, .shape = TT_SHAPE(SIDE, SIDE, 2)),
                   tt_array(.name = "labels", .data = labels, .dtype = TT_I32)});
}

static tt_hash train(tt_tensor *(*build)(tt_model *m), const way *w, int threads)
{
    tt_ctx *ctx = tt_open(.devices = w->devices, .threads = threads, .lanes = 8,
                          .strategy = w->strategy, .on_event = test_ignore_event);
    tt_model *m = tt_model_new(ctx);
    ck_assert_msg(build(m) != NULL, "%s", tt_last_error(ctx).message);
    CHECK_OK(tt_compile(m, .loss = TT_CROSS_ENTROPY, .optimizer = tt_adam(.lr = 0.01)));
    tt_data *d = data_of(ctx, build == language, 24 / w->accumulate);
    tt_fit_report r;
    ck_assert_msg(tt_fit(m, d, .epochs = 1, .accumulate = w->accumulate) == TT_OK, "%s",
                  tt_last_error(ctx).message);
    CHECK_OK(tt_fit_report_get(m, &r));
    CHECK_OK(tt_close(ctx));
    return r.weights;
}

static void same_bits(tt_tensor *(*build)(tt_model *m))
{
    static const way ways[] = {
        {"mirrored", "cpu:0*3", 1},
        {"mirrored", "cpu:0*2", 2},
        {"pipeline", "cpu:0*2", 4},
    };
    static const way one = {"mirrored", "cpu:0", 1};
    for (int i = 0; i < N * TIME; i++) {
        tokens[i] = i * 7 % 11;
        next[i] = i * 5 % 11;
        segments[i] = i % TIME > 4;
        lengths[i % N] = 1 + i % TIME;
        labels[i % N] = i % 10;
    }
    test_fill(images, N * SIDE * SIDE * 2, 3, -1, 1);
    tt_hash want = train(build, &one, 1);
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        tt_hash got = train(build, &ways[i], 2);
        ck_assert_msg(got.low == want.low && got.high == want.high, "%s on %s has other bits",
                      ways[i].strategy, ways[i].devices);
    }
}

TEST(language_models_have_the_bits_of_one_device)
{
    same_bits(language);
}

TEST(vision_models_have_the_bits_of_one_device)
{
    same_bits(vision);
}
