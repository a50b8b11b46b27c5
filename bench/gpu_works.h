/*
 * gpu_works.h - the works of bench/gpu.c: models as users of GPUs train them, and batches for them,
 * made up. Their sizes are the peers' too (bench/peers/torch_gpu.py).
 */
#ifndef TUTTI_BENCH_GPU_WORKS_H
#define TUTTI_BENCH_GPU_WORKS_H

#include "batches.h"
#include <string.h>

typedef struct gpu_work {
    const char *name, *unit; // what is counted in a second
    int64_t rows, per_row;   // units of a step are rows * per_row
    int layers, heads, width, context, vocab;
    int side, classes; // of images
    tt_precision precision;
    int steps, rounds;     // of a round that is timed
    double goal;           // times the peer's rate
    double graph_goal;     // times the rate of the peer's step captured by hand as a CUDA graph
    double lanes_cost;     // most that eight lanes may cost over fast sums, as a fraction
    const char *kind;      // gpt2, resnet50, mlp (layers hidden ones of width), cnn
    const char *peer_mode; // "compile" or "eager"
} gpu_work;

#define GPT .kind = "gpt2", .unit = "tokens", .precision = TT_PRECISION_BF16, .peer_mode = "compile"
#define IMAGE \
    .kind = "resnet50", .unit = "images", .precision = TT_PRECISION_BF16, .peer_mode = "compile"
#define SMALL(kind_) .kind = kind_, .unit = "steps", .per_row = 1, .peer_mode = "eager"
#define DIGITS       .side = 28, .classes = 10

static const gpu_work gpu_works[] = {
    {"gpt2", .rows = 64, .per_row = 1024, .layers = 12, .heads = 12, .width = 768, .context = 1024,
     .vocab = 50304, .steps = 10, .rounds = 5, .goal = 0.9, .lanes_cost = 0.03, GPT},
    {"resnet50", .rows = 256, .per_row = 1, .side = 224, .width = 64, .classes = 1000, .steps = 15,
     .rounds = 5, .goal = 0.8, .lanes_cost = 0.06, IMAGE},
    {"mlp", .rows = 32, .layers = 1, .width = 128, DIGITS, .steps = 1000, .rounds = 5, .goal = 8,
     SMALL("mlp")},
    {"wide", .rows = 256, .layers = 2, .width = 4096, DIGITS, .steps = 100, .rounds = 5, .goal = 2,
     .graph_goal = 1.5, SMALL("mlp")},
    {"cnn", .rows = 32, DIGITS, .steps = 200, .rounds = 5, .goal = 8, .graph_goal = 2.5,
     SMALL("cnn")},
    {"cnn256", .rows = 256, DIGITS, .steps = 100, .rounds = 5, .goal = 5, .graph_goal = 2,
     SMALL("cnn")},
    {"chargpt", .rows = 12, .layers = 4, .heads = 4, .width = 128, .context = 64, .vocab = 65,
     .steps = 100, .rounds = 5, .goal = 10, .graph_goal = 2, SMALL("gpt2")},
};
// The same for the emulation: to see that all of it works.
static const gpu_work gpu_tiny_works[] = {
    {"gpt2", .rows = 8, .per_row = 16, .layers = 2, .heads = 2, .width = 32, .context = 16,
     .vocab = 64, .steps = 1, .rounds = 3, GPT},
    {"resnet50", .rows = 8, .per_row = 1, .side = 32, .width = 4, .classes = 10, .steps = 1,
     .rounds = 3, IMAGE},
    {"mlp", .rows = 32, .layers = 1, .width = 128, DIGITS, .steps = 2, .rounds = 3, SMALL("mlp")},
    {"wide", .rows = 8, .layers = 2, .width = 64, DIGITS, .steps = 2, .rounds = 3, SMALL("mlp")},
    {"cnn", .rows = 4, .side = 8, .classes = 10, .steps = 1, .rounds = 3, SMALL("cnn")},
    {"cnn256", .rows = 8, .side = 8, .classes = 10, .steps = 1, .rounds = 3, SMALL("cnn")},
    {"chargpt", .rows = 4, .layers = 1, .heads = 2, .width = 16, .context = 8, .vocab = 65,
     .steps = 1, .rounds = 3, SMALL("gpt2")},
};
#define GPU_N_WORKS (int)(sizeof(gpu_works) / sizeof(gpu_works[0]))

static inline bool gpu_is_text(const gpu_work *w)
{
    return w->vocab > 0;
}

static inline bool gpu_is_mlp(const gpu_work *w)
{
    return strcmp(w->kind, "mlp") == 0;
}

static inline bool gpu_is_cnn(const gpu_work *w)
{
    return strcmp(w->kind, "cnn") == 0;
}

// Floating point operations of a step, both ways: 6 for a weight and a token; 0: not known.
static inline double gpu_flops(const gpu_work *w, int64_t parameters)
{
    double units = (double)w->rows * (double)w->per_row;
    if (gpu_is_text(w))
        return units * (6.0 * (double)parameters + 6.0 * w->layers * w->width * w->context);
    return w->side == 224 ? units * 24.6e9 : 0;
}

// ---- models ----------------------------------------------------------------------------------

// Images lie on the device, as the peer's do: a record is the number of one.
static inline tt_model *gpu_model(tt_ctx *ctx, const gpu_work *w)
{
    if (gpu_is_text(w)) {
        tt_model *m = tt_sequential(ctx, .input = {w->context}, .dtype = TT_I32);
        tt_layer_gpt(m, .layers = w->layers, .heads = w->heads, .width = w->width,
                     .vocab = w->vocab);
        return m;
    }
    if (gpu_is_mlp(w)) {
        tt_model *m = tt_sequential(ctx, .input = {w->side, w->side, 1});
        tt_layer_flatten(m);
        for (int i = 0; i < w->layers; i++)
            tt_layer_dense(m, .units = w->width, .act = TT_RELU);
        tt_layer_dense(m, .units = w->classes);
        return m;
    }
    if (gpu_is_cnn(w)) { // no padding, as the peer's
        tt_model *m = tt_sequential(ctx, .input = {w->side, w->side, 1});
        tt_layer_conv2d(m, .filters = 32, .act = TT_RELU);
        tt_layer_conv2d(m, .filters = 64, .act = TT_RELU);
        tt_layer_max_pool2d(m);
        tt_layer_flatten(m);
        tt_layer_dense(m, .units = 128, .act = TT_RELU);
        tt_layer_dense(m, .units = w->classes);
        return m;
    }
    tt_model *m = tt_sequential(ctx, .input = {1}, .dtype = TT_I32);
    tt_layer_embedding(m, .vocab = w->rows, .width = w->side * w->side * 3, .name = "images",
                       .init = {TT_INIT_NORMAL, 0, 1});
    tt_layer_reshape(m, .shape = TT_SHAPE(w->side, w->side, 3));
    tt_layer_resnet(m, .depth = 50, .classes = w->classes, .width = w->width);
    return m;
}

static inline tt_optimizer gpu_optimizer(const gpu_work *w)
{
    if (gpu_is_text(w) && w->precision == TT_PRECISION_BF16)
        return *tt_adamw(.lr = 3e-4, .beta1 = 0.9, .beta2 = 0.95, .weight_decay = 0.1,
                         .clip_global = 1.0);
    if (gpu_is_text(w) || gpu_is_mlp(w) || gpu_is_cnn(w))
        return *tt_adam(.lr = 1e-3);
    return *tt_sgd(.lr = 0.1, .momentum = 0.9, .weight_decay = 1e-4);
}

static inline tt_status gpu_compile(tt_model *m, const gpu_work *w)
{
    return tt_compile(
        m, .loss = TT_CROSS_ENTROPY, .optimizer = &(tt_optimizer[]){gpu_optimizer(w)}[0],
        .precision = w->precision, .freeze = strcmp(w->kind, "resnet50") == 0 ? "images*" : NULL);
}

// ---- batches ---------------------------------------------------------------------------------

#define GPU_BATCHES 8
static inline void gpu_make_batches(const gpu_work *w, tt_batch_data out[GPU_BATCHES])
{
    uint64_t state = 1;
    for (int i = 0; i < GPU_BATCHES; i++) {
        out[i] = (tt_batch_data){.rows = w->rows};
        if (gpu_is_text(w)) {
            out[i].fields[0] = batch_integers(w->rows * w->context, w->vocab, &state);
            out[i].fields[1] = batch_integers(w->rows * w->context, w->vocab, &state);
            continue;
        }
        if (gpu_is_mlp(w) || gpu_is_cnn(w))
            out[i].fields[0] = batch_numbers(w->rows * w->side * w->side, &state);
        else
            out[i].fields[0] = batch_integers(w->rows, (int)w->rows, &state);
        out[i].fields[1] = batch_integers(w->rows, w->classes, &state);
    }
}

#endif
