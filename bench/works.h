/*
 * works.h - models that training is timed on, and batches for them, made up.
 */
#ifndef TUTTI_BENCH_WORKS_H
#define TUTTI_BENCH_WORKS_H

#include "batches.h"
#include <string.h>

#define MAX_BATCHES 8

typedef struct work {
    const char *name;
    void (*build)(tt_model *m, const struct work *w);
    int64_t rows;
    int side, channels;                       // of images
    tt_ints units;                            // mlp
    int layers, heads, width, context, vocab; // gpt
    int batches;                              // default MAX_BATCHES
    bool is_long;
} work;

// ---- the works -------------------------------------------------------------------------------

static void build_mlp(tt_model *m, const work *w)
{
    tt_layer_flatten(m);
    tt_layer_mlp(m, .units = w->units);
}

static void build_cnn(tt_model *m, const work *w)
{
    (void)w;
    tt_layer_conv2d(m, .filters = 32, .act = TT_RELU);
    tt_layer_conv2d(m, .filters = 64, .act = TT_RELU);
    tt_layer_max_pool2d(m);
    tt_layer_flatten(m);
    tt_layer_dense(m, .units = 128, .act = TT_RELU);
    tt_layer_dense(m, .units = 10);
}

static void build_resnet18(tt_model *m, const work *w)
{
    (void)w;
    tt_layer_resnet(m, .depth = 18, .small = true);
}

static void build_gpt(tt_model *m, const work *w)
{
    tt_layer_gpt(m, .layers = w->layers, .heads = w->heads, .width = w->width, .vocab = w->vocab);
}

static const work works[] = {
    {"mlp-b32", build_mlp, 32, .side = 28, .channels = 1, .units = {2, {128, 10}}},
    {"mlp-b256", build_mlp, 256, .side = 28, .channels = 1, .units = {2, {128, 10}}},
    {"cnn-b32", build_cnn, 32, .side = 28, .channels = 1},
    {"cnn-b256", build_cnn, 256, .side = 28, .channels = 1},
    {"wide-mlp-b256", build_mlp, 256, .side = 28, .channels = 1, .units = {3, {4096, 4096, 10}}},
    {"chargpt-b12", build_gpt, 12, .layers = 4, .heads = 4, .width = 128, .context = 64,
     .vocab = 65},
    {"resnet18-b32", build_resnet18, 32, .side = 32, .channels = 3, .batches = 2},
    {"gpt-6x384-b16", build_gpt, 16, .layers = 6, .heads = 6, .width = 384, .context = 128,
     .vocab = 65, .is_long = true},
    {"gpt2-124m-b4", build_gpt, 4, .layers = 12, .heads = 12, .width = 768, .context = 64,
     .vocab = 50304, .is_long = true},
    {"gpt-12x128-b8", build_gpt, 8, .layers = 12, .heads = 4, .width = 128, .context = 64,
     .vocab = 65, .is_long = true},
};
#define N_WORKS (int)(sizeof(works) / sizeof(works[0]))

// ---- batches ---------------------------------------------------------------------------------

static int make_batches(const work *w, tt_batch_data *out)
{
    uint64_t state = 1;
    int n = w->batches > 0 ? w->batches : MAX_BATCHES;
    for (int i = 0; i < n; i++) {
        int64_t rows = w->rows;
        out[i] = (tt_batch_data){.rows = rows};
        if (w->vocab > 0) {
            out[i].fields[0] = batch_integers(rows * w->context, w->vocab, &state);
            out[i].fields[1] = batch_integers(rows * w->context, w->vocab, &state);
        } else {
            out[i].fields[0] = batch_numbers(rows * w->side * w->side * w->channels, &state);
            out[i].fields[1] = batch_integers(rows, 10, &state);
        }
    }
    return n;
}

// The work's model in ctx; compile it next.
static tt_model *make_model(tt_ctx *ctx, const work *w)
{
    tt_model *m = w->vocab > 0 ? tt_sequential(ctx, .input = {w->context}, .dtype = TT_I32)
                               : tt_sequential(ctx, .input = {w->side, w->side, w->channels});
    w->build(m, w);
    return m;
}

static tt_optimizer make_optimizer(const work *w)
{
    return w->vocab > 0 ? *tt_adamw(.lr = 1e-3) : *tt_adam(.lr = 1e-3);
}

static inline const work *find_work(const char *name)
{
    for (int i = 0; i < N_WORKS; i++)
        if (strcmp(works[i].name, name) == 0)
            return &works[i];
    return NULL;
}

#endif
