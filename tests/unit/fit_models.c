/*
 * fit_models.c - builds the models and data of fit_models.h.
 */
#include "fit_models.h"
#include <stdlib.h>

const char *fit_name(fit_kind kind)
{
    static const char *const names[] = {"mlp", "cnn", "gpt"};
    return names[kind];
}

static tt_model *mlp(tt_ctx *ctx, tt_precision precision)
{
    tt_model *m = tt_sequential(ctx, .input = {28, 28, 1});
    tt_layer_flatten(m);
    tt_layer_dense(m, .units = 37, .act = TT_RELU);
    tt_layer_dropout(m, .rate = 0.2);
    tt_layer_dense(m, .units = 10, .act = TT_SOFTMAX);
    tt_compile(m, .loss = TT_CROSS_ENTROPY, .optimizer = tt_adam(.lr = 1e-3),
               .metrics = TT_ACCURACY, .precision = precision);
    return m;
}

static tt_model *cnn(tt_ctx *ctx, tt_precision precision)
{
    tt_model *m = tt_sequential(ctx, .input = {28, 28, 1});
    tt_layer_conv2d(m, .filters = 6, .kernel = {3, 3}, .stride = {2, 2}, .act = TT_RELU);
    tt_layer_conv2d(m, .filters = 9, .kernel = {3, 3}, .act = TT_RELU);
    tt_layer_max_pool2d(m);
    tt_layer_flatten(m);
    tt_layer_dense(m, .units = 10);
    tt_compile(m, .losses = {tt_loss(.kind = TT_CROSS_ENTROPY, .smoothing = 0.1)},
               .optimizer = tt_sgd(.lr = 0.05, .momentum = 0.9, .clip_global = 1.0),
               .metrics = TT_ACCURACY | TT_TOP_K, .top_k = 3, .precision = precision);
    return m;
}

static tt_model *gpt(tt_ctx *ctx, tt_precision precision)
{
    tt_model *m = tt_sequential(ctx, .input = {12}, .dtype = TT_I32);
    tt_layer_gpt(m, .layers = 2, .heads = 2, .width = 24, .vocab = 29, .dropout = 0.1);
    tt_compile(m, .loss = TT_CROSS_ENTROPY,
               .optimizer = tt_adamw(.lr = 3e-3, .weight_decay = 0.1, .no_decay = "*.bias, *norm*",
                                     .ema = 0.9, .schedule = tt_cosine(.warmup = 3)),
               .metrics = TT_PERPLEXITY, .precision = precision);
    return m;
}

tt_model *fit_model(tt_ctx *ctx, fit_kind kind)
{
    return fit_model_in(ctx, kind, TT_PRECISION_F32);
}

tt_model *fit_model_in(tt_ctx *ctx, fit_kind kind, tt_precision p)
{
    tt_model *m = kind == FIT_MLP ? mlp(ctx, p) : kind == FIT_CNN ? cnn(ctx, p) : gpt(ctx, p);
    return tt_status_of(ctx) == TT_OK ? m : NULL;
}

// Record i of the GPT's data: a walk over the vocabulary that depends on the symbol before.
typedef struct walk {
    int64_t count;
} walk;

static tt_status read_walk(tt_ctx *ctx, void *self, int64_t i, void *const *out)
{
    (void)ctx;
    (void)self;
    int32_t *x = out[0], *y = out[1];
    int32_t at = (int32_t)(i * 7 % 29);
    for (int t = 0; t < 12; t++) {
        x[t] = at;
        at = (at * 5 + 3 + (int32_t)((i >> t) & 1)) % 29;
        y[t] = at;
    }
    return TT_OK;
}

tt_data *fit_data(tt_ctx *ctx, fit_kind kind, int64_t count)
{
    if (kind != FIT_GPT)
        return tt_digits(ctx, .count = count, .batch = 24);
    tt_source s = {.count = count, .n_fields = 2, .read = read_walk};
    for (int i = 0; i < 2; i++) {
        s.fields[i] = (tt_field){.dtype = TT_I32, .shape = TT_SHAPE(12), .classes = 29};
        strcpy(s.fields[i].name, i == 0 ? "x" : "y");
    }
    return tt_data_new(ctx, &s, .batch = 24);
}

tt_model *fit_line(tt_ctx *ctx)
{
    tt_model *m = tt_sequential(ctx, .input = {2});
    tt_layer_dense(m, .units = 1);
    tt_compile(m, .loss = TT_MSE, .optimizer = tt_sgd(.lr = 0.01), .metrics = TT_METRIC_MAE);
    return m;
}

tt_data *fit_points(tt_ctx *ctx)
{
    static float x[16], y[8];
    test_fill(x, 16, 1, -1, 1);
    test_fill(y, 8, 2, -1, 1);
    return tt_memory(ctx, .x = x, .y = y, .x_shape = TT_SHAPE(2), .y_shape = TT_SHAPE(1),
                     .count = 8, .batch = 4);
}
