/*
 * bert.c - BERT: token, position and segment embeddings, blocks with the norm after each branch,
 * and a head for tokens or for classes. Names are those of Hugging Face's BertForMaskedLM and
 * BertForSequenceClassification; a block is one layer, "bert.encoder.layer.<i>".
 */
#include "model/attend.h"
#include <stdio.h>
#include <tutti/models.h>

#define DEVIATION 0.02 // of first weights
#define EPS       1e-12

// ---- block -----------------------------------------------------------------------------------

typedef struct block_opts {
    size_t opts_size;
    int heads, hidden;
    double dropout;
    TT_LAYER_OPTIONS;
} block_opts;

static const tt_option block_options[] = {
    {"heads", TT_OPT_INT32, "1", "number of attention heads", offsetof(block_opts, heads), 1, 65536,
     NULL},
    {"hidden", TT_OPT_INT32, "1", "hidden units of the feed-forward layer",
     offsetof(block_opts, hidden), 1, TTI_MAX_WIDTH, NULL},
    TTI_RATE_ROW(block_opts, dropout, "dropout rate in both branches"),
    TT_OPTION_END,
};

// The feed-forward layer of BERT and of ViT.
static tt_tensor *feed_forward(tt_build *b, tt_tensor *x, const block_opts *o)
{
    tt_init init = {TT_INIT_NORMAL, 0, DEVIATION};
    if (x == NULL)
        return NULL;
    tti_linear up = {
        .name = "intermediate.dense", .units = o->hidden, .act = TT_GELU_ERF, .init = init};
    tti_linear down = {.name = "output.dense", .units = x->shape.dim[2], .init = init};
    tt_tensor *y = tti_linear_in(b, tti_linear_in(b, x, &up), &down);
    return y == NULL ? NULL : tti_dropout_in(b, y, o->dropout);
}

static tt_tensor *attend(tt_build *b, tt_tensor *x, tt_tensor *mask, const block_opts *o,
                         const char *const *names)
{
    tt_init init = {TT_INIT_NORMAL, 0, DEVIATION};
    tti_attend a = {
        .names = names, .heads = o->heads, .kv_heads = o->heads, .init = init, .last = init};
    tt_tensor *y = tti_attend_in(b, x, x, mask, &a);
    return y == NULL ? NULL : tti_dropout_in(b, y, o->dropout);
}

static bool block_check(tt_build *b, const tt_tensor *x, const block_opts *o)
{
    return tti_layer_sequence_check(b, x) && tti_rate_check(b, "dropout", o->dropout);
}

static tt_tensor *block_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    static const char *const names[] = {"attention.self.query", "attention.self.key",
                                        "attention.self.value", "attention.output.dense"};
    tti_norm norm = {.eps = EPS};
    if (!block_check(b, in[0], opts))
        return NULL;
    tt_tensor *x = in[0], *y = attend(b, x, n_in > 1 ? in[1] : NULL, opts, names);
    if (y == NULL)
        return NULL;
    x = tti_norm_in(b, tt_add(b->graph, x, y), "attention.output.LayerNorm", &norm);
    y = feed_forward(b, x, opts);
    return y == NULL ? NULL : tti_norm_in(b, tt_add(b->graph, x, y), "output.LayerNorm", &norm);
}

const tti_layer_def tti_kind_bert_block = {
    .name = "bert_block",
    .help = "block of BERT: norm(x + attention(x)), then norm(x + mlp(x))",
    .options = block_options,
    .size = sizeof(block_opts),
    .common = offsetof(block_opts, name),
    .min_in = 1,
    .max_in = 2,
    .build = block_build,
    .torch = TTI_TORCH_MATRIX,
};

static tt_tensor *vit_block_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    static const char *const names[] = {"attention.attention.query", "attention.attention.key",
                                        "attention.attention.value", "attention.output.dense"};
    tti_norm norm = {.eps = EPS};
    if (!block_check(b, in[0], opts))
        return NULL;
    tt_tensor *x = in[0];
    tt_tensor *y = attend(b, tti_norm_in(b, x, "layernorm_before", &norm), NULL, opts, names);
    x = y == NULL ? NULL : tt_add(b->graph, x, y);
    y = x == NULL ? NULL : feed_forward(b, tti_norm_in(b, x, "layernorm_after", &norm), opts);
    return y == NULL ? NULL : tt_add(b->graph, x, y);
}

const tti_layer_def tti_kind_vit_block = {
    .name = "vit_block",
    .help = "block of ViT: x + attention(norm(x)), then x + mlp(norm(x))",
    .options = block_options,
    .size = sizeof(block_opts),
    .common = offsetof(block_opts, name),
    .build = vit_block_build,
    .torch = TTI_TORCH_MATRIX,
};

static tt_tensor *block_add(tt_model *m, const tti_layer_def *kind, const char *path, int i,
                            block_opts o)
{
    char name[64];
    snprintf(name, sizeof(name), "%s.%d", path, i);
    o.opts_size = sizeof(o);
    o.name = name;
    return tti_layer_add(m, kind, &o);
}

// ---- parts of BERT ---------------------------------------------------------------------------

typedef struct types_opts {
    size_t opts_size;
    int types;
    TT_LAYER_OPTIONS;
} types_opts;

static const tt_option types_options[] = {
    {"types", TT_OPT_INT32, "2", "kinds of segments", offsetof(types_opts, types), 1, TTI_MAX_WIDTH,
     NULL},
    TT_OPTION_END,
};

// x plus the embedding of its second input, or of segment 0.
static tt_tensor *types_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    const types_opts *o = opts;
    tt_tensor *x = in[0];
    tt_init init = {TT_INIT_NORMAL, 0, DEVIATION};
    tt_tensor *w = tti_weight_for(b, x, "weight", TT_SHAPE(o->types, x->shape.dim[2]), init);
    tt_tensor *y = w == NULL   ? NULL
                   : n_in == 1 ? tt_slice(b->graph, w, 0, 0, 1)
                               : tt_embedding(b->graph, w, in[1]);
    return y == NULL ? NULL : tt_add(b->graph, x, y);
}

const tti_layer_def tti_kind_bert_types = {
    .name = "bert_types",
    .help = "add the embedding of a token's segment",
    .options = types_options,
    .size = sizeof(types_opts),
    .common = offsetof(types_opts, name),
    .min_in = 1,
    .max_in = 2,
    .build = types_build,
};

static tt_tensor *bias_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)opts, (void)n_in;
    const tt_shape *s = &in[0]->shape;
    tt_tensor *w = tti_weight_for(b, in[0], "bias", TT_SHAPE(s->dim[s->rank - 1]), (tt_init){0});
    return w == NULL ? NULL : tt_add(b->graph, in[0], w);
}

static const tt_option no_options[] = {TT_OPTION_END};
const tti_layer_def tti_kind_add_bias = {
    .name = "add_bias",
    .help = "add a bias along the last axis",
    .options = no_options,
    .size = sizeof(tt_plain_opts),
    .common = offsetof(tt_plain_opts, name),
    .build = bias_build,
};

// ---- BERT ------------------------------------------------------------------------------------

#define TRANSFORMER_ROWS(type, layers_, heads_, width_)                                           \
    {"layers", TT_OPT_INT32, layers_, "number of blocks", offsetof(type, layers), 1, 4096, NULL}, \
        {"heads", TT_OPT_INT32, heads_, "number of attention heads", offsetof(type, heads),       \
         1,       65536,        NULL},                                                            \
        {"width", TT_OPT_INT32,  width_, "number of channels", offsetof(type, width),             \
         1,       TTI_MAX_WIDTH, NULL},                                                           \
    {                                                                                             \
        "hidden", TT_OPT_INT32, "0",                                                              \
            "hidden units of the feed-forward layers; 0: 4 times the width",                      \
            offsetof(type, hidden), 0, TTI_MAX_WIDTH, NULL                                        \
    }

static const tt_option bert_options[] = {
    TRANSFORMER_ROWS(tt_layer_bert_opts, "4", "4", "128"),
    {"vocab", TT_OPT_INT, NULL, "vocabulary size", offsetof(tt_layer_bert_opts, vocab), 1,
     TTI_MAX_WIDTH, NULL},
    {"types", TT_OPT_INT32, "2", "kinds of segments", offsetof(tt_layer_bert_opts, types), 1,
     TTI_MAX_WIDTH, NULL},
    {"classes", TT_OPT_INT32, "0", "number of classes of the text; 0: logits of every token",
     offsetof(tt_layer_bert_opts, classes), 0, TTI_MAX_WIDTH, NULL},
    TTI_RATE_ROW(tt_layer_bert_opts, dropout, "dropout rate of the embeddings and in all branches"),
    TT_OPTION_END,
};

// What the first token of x [batch, time, channels] says of all: [batch, channels].
static tt_tensor *first_token(tt_model *m, tt_tensor *x, const char *crop, const char *flat)
{
    int64_t rest = x->shape.dim[1] - 1;
    if (rest > 0)
        tt_layer_crop(m, .pad = {2, {0, rest}}, .name = crop);
    return tt_layer_flatten(m, .name = flat);
}

static tt_tensor *bert_head(tt_model *m, const tt_layer_bert_opts *o, tt_tensor *x,
                            tt_tensor *embed)
{
    tt_init init = {TT_INIT_NORMAL, 0, DEVIATION};
    if (o->classes > 0) {
        first_token(m, x, "bert.first", "bert.flat");
        tt_layer_dense(m, .units = o->width, .act = TT_TANH, .init = init,
                       .name = "bert.pooler.dense");
        if (o->dropout != 0)
            tt_layer_dropout(m, .rate = o->dropout, .name = "dropout");
        return tt_layer_dense(m, .units = o->classes, .init = init, .name = "classifier");
    }
    tt_layer_dense(m, .units = o->width, .act = TT_GELU_ERF, .init = init,
                   .name = "cls.predictions.transform.dense");
    tt_layer_layer_norm(m, .eps = EPS, .name = "cls.predictions.transform.LayerNorm");
    tt_layer_embedding_opts tied = {
        .vocab = o->vocab, .width = o->width, .name = "cls.predictions.decoder", .share = embed};
    if (tti_layer_add(m, &tti_kind_tied_dense, &tied) == NULL)
        return NULL;
    return tti_layer_add(m, &tti_kind_add_bias, &(tt_plain_opts){.name = "cls.predictions"});
}

static tt_tensor *bert_expand(tt_model *m, const void *opts, const char *name)
{
    (void)name;
    const tt_layer_bert_opts *o = opts;
    tt_init init = {TT_INIT_NORMAL, 0, DEVIATION};
    tt_tensor *embed =
        tt_layer_embedding(m, .vocab = o->vocab, .width = o->width, .init = init,
                           .name = "bert.embeddings.word_embeddings", .from = {o->from[0]});
    tt_tensor *x =
        tt_layer_positional(m, .init = init, .name = "bert.embeddings.position_embeddings");
    types_opts types = {.types = o->types,
                        .name = "bert.embeddings.token_type_embeddings",
                        .from = {x, o->from[0] == NULL || o->from[1] == NULL ? NULL : o->from[2]}};
    if (x == NULL || tti_layer_add(m, &tti_kind_bert_types, &types) == NULL)
        return NULL;
    x = tt_layer_layer_norm(m, .eps = EPS, .name = "bert.embeddings.LayerNorm");
    if (o->dropout != 0)
        x = tt_layer_dropout(m, .rate = o->dropout, .name = "bert.embeddings.dropout");
    for (int i = 0; i < o->layers && x != NULL; i++)
        x = block_add(m, &tti_kind_bert_block, "bert.encoder.layer", i,
                      (block_opts){.heads = o->heads,
                                   .hidden = o->hidden == 0 ? 4 * o->width : o->hidden,
                                   .dropout = o->dropout,
                                   .from = {x, o->from[0] == NULL ? NULL : o->from[1]}});
    return x == NULL ? NULL : bert_head(m, o, x, embed);
}

const tti_layer_def tti_kind_bert = {
    .name = "bert",
    .help = "BERT: tokens [time] to logits [time, vocab] or to classes; a second input is a mask, "
            "a third the segments",
    .options = bert_options,
    .size = sizeof(tt_layer_bert_opts),
    .common = offsetof(tt_layer_bert_opts, name),
    .expand = bert_expand,
};

tt_tensor *tt_layer_bert_with(tt_model *m, const tt_layer_bert_opts *opts)
{
    return tti_layer_call(m, &tti_kind_bert, opts);
}

// ---- ViT -------------------------------------------------------------------------------------

// A trained token in front of x [batch, n, channels], and positions added.
static tt_tensor *tokens_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)opts, (void)n_in;
    tt_tensor *x = in[0];
    int64_t n = x->shape.dim[1], c = x->shape.dim[2];
    tt_init init = {TT_INIT_NORMAL, 0, DEVIATION};
    tt_tensor *first = tti_weight_for(b, x, "cls_token", TT_SHAPE(1, 1, c), init);
    tt_tensor *at = tti_weight_for(b, x, "position_embeddings", TT_SHAPE(1, n + 1, c), init);
    if (first == NULL || at == NULL)
        return NULL;
    tt_tensor *both[] = {tt_broadcast(b->graph, first, tt_slice(b->graph, x, 1, 0, 1)), x};
    if (both[0] == NULL)
        return NULL;
    return tt_add(b->graph, tt_concat(b->graph, both, 2, 1), at);
}

const tti_layer_def tti_kind_vit_tokens = {
    .name = "vit_tokens",
    .help = "put a trained token in front of a sequence and add positions",
    .options = no_options,
    .size = sizeof(tt_plain_opts),
    .common = offsetof(tt_plain_opts, name),
    .build = tokens_build,
};

static const tt_option vit_options[] = {
    {"patch", TT_OPT_INT32, "16", "side of a patch, in pixels; must divide the image",
     offsetof(tt_layer_vit_opts, patch), 1, TTI_MAX_SIDE, NULL},
    TRANSFORMER_ROWS(tt_layer_vit_opts, "12", "12", "768"),
    {"classes", TT_OPT_INT32, "10", "number of classes", offsetof(tt_layer_vit_opts, classes), 1,
     TTI_MAX_WIDTH, NULL},
    TTI_RATE_ROW(tt_layer_vit_opts, dropout, "dropout rate of the patches and in all branches"),
    TT_OPTION_END,
};

static tt_tensor *vit_expand(tt_model *m, const void *opts, const char *name)
{
    (void)name;
    const tt_layer_vit_opts *o = opts;
    tt_init init = {TT_INIT_NORMAL, 0, DEVIATION};
    tt_tensor *x = tt_layer_conv2d(
        m, .filters = o->width, .kernel = {o->patch}, .stride = {o->patch}, .init = init,
        .name = "vit.embeddings.patch_embeddings.projection", .from = {o->from[0]});
    if (x == NULL)
        return NULL;
    const tt_tensor *image = tti_layer_of(m, x)->in[0];
    for (int i = 1; i < 3; i++) {
        if (image->shape.dim[i] % o->patch == 0)
            continue;
        (void)TT_FAIL(m->ctx, TT_ESHAPE,
                      "vit: images of %lld x %lld pixels are not a whole number of patches of %d",
                      (long long)image->shape.dim[1], (long long)image->shape.dim[2], o->patch);
        return NULL;
    }
    tt_layer_reshape(m, .shape = TT_SHAPE(x->shape.dim[1] * x->shape.dim[2], o->width),
                     .name = "vit.embeddings.patch_embeddings");
    x = tti_layer_add(m, &tti_kind_vit_tokens, &(tt_plain_opts){.name = "vit.embeddings"});
    if (o->dropout != 0 && x != NULL)
        x = tt_layer_dropout(m, .rate = o->dropout, .name = "vit.embeddings.dropout");
    for (int i = 0; i < o->layers && x != NULL; i++)
        x = block_add(m, &tti_kind_vit_block, "vit.encoder.layer", i,
                      (block_opts){.heads = o->heads,
                                   .hidden = o->hidden == 0 ? 4 * o->width : o->hidden,
                                   .dropout = o->dropout});
    x = x == NULL ? NULL : tt_layer_layer_norm(m, .eps = EPS, .name = "vit.layernorm");
    if (x == NULL)
        return NULL;
    first_token(m, x, "vit.first", "vit.flat");
    return tt_layer_dense(m, .units = o->classes, .init = init, .name = "classifier");
}

const tti_layer_def tti_kind_vit = {
    .name = "vit",
    .help = "vision transformer: images to classes",
    .options = vit_options,
    .size = sizeof(tt_layer_vit_opts),
    .common = offsetof(tt_layer_vit_opts, name),
    .expand = vit_expand,
};

tt_tensor *tt_layer_vit_with(tt_model *m, const tt_layer_vit_opts *opts)
{
    return tti_layer_call(m, &tti_kind_vit, opts);
}
