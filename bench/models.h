/*
 * models.h - training steps of known models as graphs: GPT-2 and ResNet-50.
 */
#ifndef TUTTI_BENCH_MODELS_H
#define TUTTI_BENCH_MODELS_H

#include <stdlib.h>
#include <tutti/tutti.h>

#define MODEL_MAX_WEIGHTS 512

typedef struct model {
    tt_graph *g;
    tt_tensor *loss;
    tt_tensor *weights[MODEL_MAX_WEIGHTS];
    int n;
    tt_tensor *targets[2 * MODEL_MAX_WEIGHTS]; // the loss, then every update
    int n_targets;
} model;

static inline tt_tensor *model_weight(model *m, double deviation, tt_shape shape)
{
    tt_init init = {TT_INIT_NORMAL, 0, deviation};
    tt_tensor *w = tt_variable(m->g, .shape = shape, .init = init);
    if (m->n < MODEL_MAX_WEIGHTS)
        m->weights[m->n++] = w;
    return w;
}

// Adds gradients and updates; targets are then what a step computes.
static inline void model_train(model *m, bool adam)
{
    tt_tensor *grads[MODEL_MAX_WEIGHTS];
    m->targets[m->n_targets++] = m->loss;
    if (tt_grad(m->g, m->loss, NULL, m->n, m->weights, grads) != TT_OK)
        return;
    for (int i = 0; i < m->n; i++)
        m->targets[m->n_targets++] =
            adam ? tt_update_adamw(m->g, m->weights[i], grads[i], .weight_decay = 0.1)
                 : tt_update_sgd(m->g, m->weights[i], grads[i], .momentum = 0.9);
}

typedef struct gpt_size {
    int layers, heads, channels, vocabulary, tokens;
} gpt_size;

// B batch, T tokens, C channels: x is [B, T, C].
static inline tt_tensor *gpt_norm(model *m, tt_tensor *x, int c)
{
    tt_tensor *gamma = model_weight(m, 0.02, TT_SHAPE(c));
    return tt_layer_norm(m->g, x, gamma, model_weight(m, 0.02, TT_SHAPE(c)));
}

static inline tt_tensor *gpt_dense(model *m, tt_tensor *x, int in, int out, tt_act act)
{
    tt_tensor *w = model_weight(m, 0.02, TT_SHAPE(in, out));
    return tt_matmul(m->g, x, w, .bias = model_weight(m, 0, TT_SHAPE(out)), .act = act);
}

static inline void gpt_build(model *m, tt_ctx *ctx, gpt_size z)
{
    tt_graph *g = tt_graph_new(ctx);
    *m = (model){.g = g};
    int c = z.channels;
    tt_tensor *ids = tt_feed(g, .dtype = TT_I32, .shape = TT_SHAPE(TT_BATCH, z.tokens));
    tt_tensor *next = tt_feed(g, .dtype = TT_I32, .shape = TT_SHAPE(TT_BATCH, z.tokens));
    tt_tensor *table = model_weight(m, 0.02, TT_SHAPE(z.vocabulary, c));
    tt_tensor *places = model_weight(m, 0.02, TT_SHAPE(z.tokens, c));
    tt_tensor *x = tt_add(g, tt_embedding(g, table, ids), places);
    for (int i = 0; i < z.layers; i++) {
        tt_tensor *qkv = gpt_dense(m, gpt_norm(m, x, c), c, 3 * c, TT_LINEAR);
        tt_tensor *a = tt_attention(g, qkv, NULL, NULL, .heads = z.heads, .causal = true);
        x = tt_add(g, x, gpt_dense(m, a, c, c, TT_LINEAR));
        tt_tensor *h = gpt_dense(m, gpt_norm(m, x, c), c, 4 * c, TT_GELU);
        x = tt_add(g, x, gpt_dense(m, h, 4 * c, c, TT_LINEAR));
    }
    tt_tensor *logits = tt_matmul(g, gpt_norm(m, x, c), table, .transpose_b = true);
    m->loss = tt_mean(g, tt_cross_entropy(g, logits, next));
    model_train(m, true);
}

static inline tt_tensor *resnet_conv(model *m, tt_tensor *x, int size, int in, int out, int stride,
                                     tt_act act, tt_tensor *residual)
{
    tt_graph *g = m->g;
    tt_tensor *w = model_weight(m, 0.05, TT_SHAPE(size, size, in, out));
    tt_tensor *y = tt_conv2d(g, x, w, .stride = {stride, stride}, .padding = TT_SAME);
    tt_batch_norm_vars v = {
        .gamma = model_weight(m, 0.1, TT_SHAPE(out)),
        .beta = model_weight(m, 0, TT_SHAPE(out)),
        .mean = tt_variable(g, .shape = TT_SHAPE(out), .no_train = true),
        .var = tt_variable(g, .shape = TT_SHAPE(out), .no_train = true),
    };
    tt_tensor *mean = NULL, *var = NULL;
    y = tt_batch_norm(g, y, v, .act = act, .residual = residual, .new_mean = &mean,
                      .new_var = &var);
    m->targets[m->n_targets++] = mean;
    m->targets[m->n_targets++] = var;
    return y;
}

static inline void resnet50_build(model *m, tt_ctx *ctx)
{
    static const int blocks[] = {3, 4, 6, 3};
    tt_graph *g = tt_graph_new(ctx);
    *m = (model){.g = g};
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 224, 224, 3));
    tt_tensor *labels = tt_feed(g, .dtype = TT_I32, .shape = TT_SHAPE(TT_BATCH));
    x = resnet_conv(m, x, 7, 3, 64, 2, TT_RELU, NULL);
    x = tt_max_pool2d(g, x, .size = {3, 3}, .stride = {2, 2}, .padding = TT_SAME);
    int in = 64;
    for (int s = 0; s < 4; s++)
        for (int b = 0; b < blocks[s]; b++) {
            int mid = 64 << s, out = 4 * mid, stride = s > 0 && b == 0 ? 2 : 1;
            tt_tensor *y = resnet_conv(m, x, 1, in, mid, 1, TT_RELU, NULL);
            y = resnet_conv(m, y, 3, mid, mid, stride, TT_RELU, NULL);
            if (b == 0)
                x = resnet_conv(m, x, 1, in, out, stride, TT_LINEAR, NULL);
            x = resnet_conv(m, y, 1, mid, out, 1, TT_RELU, x);
            in = out;
        }
    x = tt_global_avg_pool2d(g, x);
    tt_tensor *w = model_weight(m, 0.02, TT_SHAPE(in, 1000));
    tt_tensor *logits = tt_matmul(g, x, w, .bias = model_weight(m, 0, TT_SHAPE(1000)));
    m->loss = tt_mean(g, tt_cross_entropy(g, logits, labels));
    model_train(m, false);
}

#endif
