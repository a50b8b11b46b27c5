/*
 * ready.c - whole models as composites: each appends layers to a model. The layers have fixed names
 * ("conv1", "block.0"), with the composite's name and a point in front if it was given one.
 */
#include "model/layer.h"
#include <stdio.h>

// ---- mlp -------------------------------------------------------------------------------------

static const tt_option mlp_options[] = {
    {"units", TT_OPT_INTS, NULL,
     "number of outputs of each layer; the last one is the model's output",
     offsetof(tt_layer_mlp_opts, units), 1, TTI_MAX_WIDTH, NULL},
    TTI_ACT_ROW(tt_layer_mlp_opts, "relu"),
    TTI_RATE_ROW(tt_layer_mlp_opts, dropout, "dropout rate after each layer but the last"),
    TT_OPTION_END,
};

static tt_tensor *mlp_expand(tt_model *m, const void *opts, const char *name)
{
    (void)name;
    const tt_layer_mlp_opts *o = opts;
    tt_tensor *x = o->from[0];
    if (o->units.n > TTI_COUNT(o->units.v)) {
        (void)TT_FAIL(m->ctx, TT_EINVAL, "mlp: %d layers; at most %d are allowed", o->units.n,
                      TTI_COUNT(o->units.v));
        return NULL;
    }
    for (int i = 0; i < o->units.n; i++) {
        bool last = i == o->units.n - 1;
        x = tt_layer_dense(m, .units = (int)o->units.v[i], .act = last ? TT_LINEAR : o->act,
                           .from = {x});
        if (x != NULL && !last && o->dropout != 0)
            x = tt_layer_dropout(m, .rate = o->dropout);
        if (x == NULL)
            return NULL;
    }
    return x;
}

const tti_layer_def tti_kind_mlp = {
    .name = "mlp",
    .help = "multi-layer perceptron: dense layers in sequence",
    .options = mlp_options,
    .size = sizeof(tt_layer_mlp_opts),
    .common = offsetof(tt_layer_mlp_opts, name),
    .main = "units",
    .expand = mlp_expand,
};

tt_tensor *tt_layer_mlp_with(tt_model *m, const tt_layer_mlp_opts *opts)
{
    return tti_layer_call(m, &tti_kind_mlp, opts);
}

// ---- lenet -----------------------------------------------------------------------------------

static const tt_option lenet_options[] = {
    {"classes", TT_OPT_INT32, "10", "number of classes", offsetof(tt_layer_lenet_opts, classes), 1,
     TTI_MAX_WIDTH, NULL},
    TT_OPTION_END,
};

static tt_tensor *lenet_expand(tt_model *m, const void *opts, const char *name)
{
    (void)name;
    const tt_layer_lenet_opts *o = opts;
    tt_layer_conv2d(m, .filters = 6, .kernel = {5}, .padding = TT_SAME, .act = TT_RELU,
                    .name = "conv1", .from = {o->from[0]});
    tt_layer_max_pool2d(m, .name = "pool1");
    tt_layer_conv2d(m, .filters = 16, .kernel = {5}, .act = TT_RELU, .name = "conv2");
    tt_layer_max_pool2d(m, .name = "pool2");
    tt_layer_flatten(m, .name = "flatten");
    tt_layer_dense(m, .units = 120, .act = TT_RELU, .name = "fc1");
    tt_layer_dense(m, .units = 84, .act = TT_RELU, .name = "fc2");
    return tt_layer_dense(m, .units = o->classes, .name = "fc3");
}

const tti_layer_def tti_kind_lenet = {
    .name = "lenet",
    .help = "LeNet-5 for small images, with ReLU and max pooling",
    .options = lenet_options,
    .size = sizeof(tt_layer_lenet_opts),
    .common = offsetof(tt_layer_lenet_opts, name),
    .main = "classes",
    .expand = lenet_expand,
};

tt_tensor *tt_layer_lenet_with(tt_model *m, const tt_layer_lenet_opts *opts)
{
    return tti_layer_call(m, &tti_kind_lenet, opts);
}

// ---- gpt -------------------------------------------------------------------------------------

static const tt_option gpt_options[] = {
    {"layers", TT_OPT_INT32, "4", "number of transformer blocks",
     offsetof(tt_layer_gpt_opts, layers), 1, 4096, NULL},
    {"heads", TT_OPT_INT32, "4", "number of attention heads", offsetof(tt_layer_gpt_opts, heads), 1,
     65536, NULL},
    {"width", TT_OPT_INT32, "128", "number of channels", offsetof(tt_layer_gpt_opts, width), 1,
     TTI_MAX_WIDTH, NULL},
    {"vocab", TT_OPT_INT, NULL, "vocabulary size", offsetof(tt_layer_gpt_opts, vocab), 1,
     TTI_MAX_WIDTH, NULL},
    TTI_RATE_ROW(tt_layer_gpt_opts, dropout,
                 "dropout rate after the embedding and in every branch"),
    TTI_NO_BIAS_ROW(tt_layer_gpt_opts),
    {"untied", TT_OPT_BOOL, "false", "do not share the output weights with the embedding",
     offsetof(tt_layer_gpt_opts, untied), 0, 0, NULL},
    TT_OPTION_END,
};

// The output whose weights are the embedding's: x E^T. No layer of its own elsewhere.
static tt_tensor *tied_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    const tt_layer_embedding_opts *o = opts;
    tt_tensor *w = tti_weight_for(b, in[0], "weight", TT_SHAPE(o->vocab, o->width), (tt_init){0});
    return w == NULL ? NULL : tt_matmul(b->graph, in[0], w, .transpose_b = true);
}

static const tt_option tied_options[] = {
    {"vocab", TT_OPT_INT, NULL, "vocabulary size", offsetof(tt_layer_embedding_opts, vocab), 1,
     TTI_MAX_WIDTH, NULL},
    {"width", TT_OPT_INT32, NULL, "channels", offsetof(tt_layer_embedding_opts, width), 1,
     TTI_MAX_WIDTH, NULL},
    TT_OPTION_END,
};

const tti_layer_def tti_kind_tied_dense = {
    .name = "tied_dense",
    .help = "output layer that shares the weights of an embedding: x W^T",
    .options = tied_options,
    .size = sizeof(tt_layer_embedding_opts),
    .common = offsetof(tt_layer_embedding_opts, name),
    .build = tied_build,
};

static tt_tensor *gpt_expand(tt_model *m, const void *opts, const char *name)
{
    (void)name;
    const tt_layer_gpt_opts *o = opts;
    tt_tensor *embed = tt_layer_embedding(m, .vocab = o->vocab, .width = o->width, .name = "embed",
                                          .from = {o->from[0]});
    tt_layer_positional(m, .name = "pos");
    if (o->dropout != 0)
        tt_layer_dropout(m, .rate = o->dropout, .name = "drop");
    for (int i = 0; i < o->layers; i++) {
        char block[32];
        snprintf(block, sizeof(block), "block.%d", i);
        if (tt_layer_transformer_block(m, .heads = o->heads, .no_bias = o->no_bias,
                                       .dropout = o->dropout, .depth = o->layers,
                                       .name = block) == NULL)
            return NULL;
    }
    tt_layer_layer_norm(m, .no_bias = o->no_bias, .name = "norm");
    if (o->untied)
        return tt_layer_dense(m, .units = (int)o->vocab, .no_bias = true, .name = "head",
                              .init = {TT_INIT_NORMAL, 0, 0.02});
    tt_layer_embedding_opts head = {
        .vocab = o->vocab, .width = o->width, .name = "head", .share = embed};
    return tti_layer_add(m, &tti_kind_tied_dense, &head);
}

const tti_layer_def tti_kind_gpt = {
    .name = "gpt",
    .help = "GPT-2 language model: tokens [time] to logits [time, vocab]",
    .options = gpt_options,
    .size = sizeof(tt_layer_gpt_opts),
    .common = offsetof(tt_layer_gpt_opts, name),
    .expand = gpt_expand,
};

tt_tensor *tt_layer_gpt_with(tt_model *m, const tt_layer_gpt_opts *opts)
{
    return tti_layer_call(m, &tti_kind_gpt, opts);
}
