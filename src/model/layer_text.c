/*
 * layer_text.c - layers of sequences [batch, time, channels]: embedding, positions, attention, the
 * transformer block.
 */
#include "model/attend.h"
#include <math.h>

#define DEVIATION 0.02 // of first weights, as GPT-2 has it

static bool sequence_check(tt_build *b, const tt_tensor *x)
{
    char text[TT_SHAPE_TEXT];
    if (x->shape.rank == 3)
        return tti_x_check(b, x, 3, "[batch, time, channels]");
    (void)TT_FAIL(b->model->ctx, TT_ESHAPE, "x is %s; it must be [batch, time, channels]",
                  tt_shape_text(&x->shape, text));
    return false;
}

// ---- embedding -------------------------------------------------------------------------------

static const tt_option embedding_options[] = {
    {"vocab", TT_OPT_INT, NULL, "vocabulary size; every id must be below it",
     offsetof(tt_layer_embedding_opts, vocab), 1, TTI_MAX_WIDTH, NULL},
    {"width", TT_OPT_INT32, NULL, "size of the embedding vectors",
     offsetof(tt_layer_embedding_opts, width), 1, TTI_MAX_WIDTH, NULL},
    TTI_INIT_ROWS(tt_layer_embedding_opts, "normal"),
    TT_OPTION_END,
};

static tt_tensor *embedding_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    const tt_layer_embedding_opts *o = opts;
    if (in[0]->dtype != TT_I32 && in[0]->dtype != TT_I64) {
        (void)TT_FAIL(b->model->ctx, TT_EDTYPE,
                      "x is %s; an embedding takes ids: give the input .dtype = TT_I32",
                      tt_dtype_name(in[0]->dtype));
        return NULL;
    }
    tt_tensor *table = tti_layer_weight(b, "weight", TT_SHAPE(o->vocab, o->width), o->init);
    tt_tensor *y = table == NULL ? NULL : tt_embedding(b->graph, table, in[0]);
    return y == NULL ? NULL : tti_compute(b, y); // rows that are looked up, not the whole table
}

const tti_layer_def tti_kind_embedding = {
    .name = "embedding",
    .help = "embedding: look up a vector for each id",
    .options = embedding_options,
    .size = sizeof(tt_layer_embedding_opts),
    .common = offsetof(tt_layer_embedding_opts, name),
    .build = embedding_build,
};

tt_tensor *tt_layer_embedding_with(tt_model *m, const tt_layer_embedding_opts *opts)
{
    return tti_layer_call(m, &tti_kind_embedding, opts);
}

// ---- positions -------------------------------------------------------------------------------

static const tt_option positional_options[] = {
    {"fixed", TT_OPT_BOOL, "false", "use fixed sines and cosines instead of trained weights",
     offsetof(tt_layer_positional_opts, fixed), 0, 0, NULL},
    TTI_INIT_ROWS(tt_layer_positional_opts, "normal"),
    TT_OPTION_END,
};

/*
 * Row t: sin(t f(0)), cos(t f(0)), sin(t f(1)), ... with f(i) = 10000^(-2 i / channels). By nodes
 * on constants, so that the bits are those of the library's exp, sin and cos everywhere.
 */
static tt_tensor *waves(tt_build *b, int64_t time, int64_t channels)
{
    tt_ctx *ctx = b->model->ctx;
    tt_graph *g = b->graph;
    int64_t half = (channels + 1) / 2;
    float *values = tti_calloc(ctx, (size_t)(time + half), sizeof(*values));
    if (values == NULL)
        return NULL;
    for (int64_t i = 0; i < time; i++)
        values[i] = (float)i;
    for (int64_t i = 0; i < half; i++)
        values[time + i] = (float)(-9.210340371976184 * (double)(2 * i) / (double)channels);
    tt_tensor *at = tt_const(g, TT_F32, TT_SHAPE(time, 1), values);
    tt_tensor *power = tt_const(g, TT_F32, TT_SHAPE(1, half), values + time);
    tti_free(ctx, values);
    tt_tensor *angle = tt_mul(g, at, tt_exp(g, power));
    tt_tensor *pair[] = {tt_sin(g, angle), tt_cos(g, angle)};
    if (pair[0] == NULL || pair[1] == NULL)
        return NULL;
    tt_tensor *all = tt_reshape(g, tt_stack(g, pair, 2, 2), TT_SHAPE(time, 2 * half));
    return channels == 2 * half ? all : tt_slice(g, all, 1, 0, channels);
}

static tt_tensor *positional_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    const tt_layer_positional_opts *o = opts;
    tt_tensor *x = in[0];
    if (!sequence_check(b, x))
        return NULL;
    int64_t time = x->shape.dim[1], channels = x->shape.dim[2];
    tt_tensor *rows = o->fixed ? tt_cast(b->graph, waves(b, time, channels), x->dtype)
                               : tti_weight_for(b, x, "weight", TT_SHAPE(time, channels), o->init);
    return rows == NULL ? NULL : tt_add(b->graph, x, rows);
}

const tti_layer_def tti_kind_positional = {
    .name = "positional",
    .help = "add a position embedding",
    .options = positional_options,
    .size = sizeof(tt_layer_positional_opts),
    .common = offsetof(tt_layer_positional_opts, name),
    .build = positional_build,
};

tt_tensor *tt_layer_positional_with(tt_model *m, const tt_layer_positional_opts *opts)
{
    return tti_layer_call(m, &tti_kind_positional, opts);
}

// ---- attention -------------------------------------------------------------------------------

#define HEADS_ROWS(type)                                                                       \
    {"heads",                                                                                  \
     TT_OPT_INT32,                                                                             \
     NULL,                                                                                     \
     "number of attention heads; must divide the channels",                                    \
     offsetof(type, heads),                                                                    \
     1,                                                                                        \
     65536,                                                                                    \
     NULL},                                                                                    \
    {                                                                                          \
        "kv_heads", TT_OPT_INT32, "0",                                                         \
            "number of heads for keys and values (grouped-query attention); 0: same as heads", \
            offsetof(type, kv_heads), 0, 65536, NULL                                           \
    }

static const tt_option attention_options[] = {
    HEADS_ROWS(tt_layer_attention_opts),
    {"causal", TT_OPT_BOOL, "false",
     "causal mask: a position attends only to itself and to earlier positions",
     offsetof(tt_layer_attention_opts, causal), 0, 0, NULL},
    TTI_NO_BIAS_ROW(tt_layer_attention_opts),
    TTI_RATE_ROW(tt_layer_attention_opts, dropout, "dropout rate of the output"),
    TT_OPTION_END,
};

static bool heads_check(tt_build *b, const tt_tensor *x, const tt_layer_attention_opts *o)
{
    int64_t channels = x->shape.dim[2];
    int kv = o->kv_heads == 0 ? o->heads : o->kv_heads;
    if (channels % o->heads == 0 && o->heads % kv == 0)
        return tti_rate_check(b, "dropout", o->dropout);
    if (channels % o->heads != 0)
        (void)TT_FAIL(b->model->ctx, TT_ESHAPE, "%lld channels do not divide into %d heads",
                      (long long)channels, o->heads);
    else
        (void)TT_FAIL(b->model->ctx, TT_EINVAL, "%d heads cannot share %d kv_heads", o->heads, kv);
    return false;
}

// The products qkv and proj around attention; names are the weights' and theirs the inits.
static tt_tensor *attend(tt_build *b, tt_tensor *x, const tt_layer_attention_opts *o,
                         const char *const names[2], const tt_init inits[2])
{
    if (x == NULL || !heads_check(b, x, o))
        return NULL;
    int64_t channels = x->shape.dim[2];
    int kv = o->kv_heads == 0 ? o->heads : o->kv_heads;
    int64_t packed = (o->heads + 2 * (int64_t)kv) * (channels / o->heads);
    tt_tensor *qkv =
        tti_linear_in(b, x, &(tti_linear){names[0], packed, TT_LINEAR, o->no_bias, inits[0]});
    if (qkv == NULL)
        return NULL;
    tt_tensor *y = tt_attention(b->graph, qkv, NULL, NULL, .heads = o->heads, .kv_heads = kv,
                                .causal = o->causal);
    y = tti_linear_in(b, y, &(tti_linear){names[1], channels, TT_LINEAR, o->no_bias, inits[1]});
    return y == NULL ? NULL : tti_dropout_in(b, y, o->dropout);
}

static tt_tensor *attention_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    static const char *const names[] = {"qkv", "proj"};
    static const tt_init inits[] = {{TT_INIT_GLOROT_UNIFORM, 0, 0}, {TT_INIT_GLOROT_UNIFORM, 0, 0}};
    return sequence_check(b, in[0]) ? attend(b, in[0], opts, names, inits) : NULL;
}

const tti_layer_def tti_kind_attention = {
    .name = "attention",
    .help = "multi-head self-attention",
    .options = attention_options,
    .size = sizeof(tt_layer_attention_opts),
    .common = offsetof(tt_layer_attention_opts, name),
    .main = "heads",
    .build = attention_build,
    .torch = TTI_TORCH_MATRIX,
};

tt_tensor *tt_layer_attention_with(tt_model *m, const tt_layer_attention_opts *opts)
{
    return tti_layer_call(m, &tti_kind_attention, opts);
}

// ---- transformer block -----------------------------------------------------------------------

static const tt_option block_options[] = {
    HEADS_ROWS(tt_layer_transformer_block_opts),
    {"hidden", TT_OPT_INT32, "0", "hidden units of the MLP; 0: 4 times the width",
     offsetof(tt_layer_transformer_block_opts, hidden), 0, TTI_MAX_WIDTH, NULL},
    {"no_causal", TT_OPT_BOOL, "false", "no causal mask: attend to all positions",
     offsetof(tt_layer_transformer_block_opts, no_causal), 0, 0, NULL},
    TTI_NO_BIAS_ROW(tt_layer_transformer_block_opts),
    {"rms", TT_OPT_BOOL, "false", "use RMS norm instead of layer norm",
     offsetof(tt_layer_transformer_block_opts, rms), 0, 0, NULL},
    TTI_ACT_ROW(tt_layer_transformer_block_opts, "gelu"),
    TTI_RATE_ROW(tt_layer_transformer_block_opts, dropout, "dropout rate in both branches"),
    {"depth", TT_OPT_FLOAT, "1",
     "number of blocks in the model; scales down the initial weights of the output projections",
     offsetof(tt_layer_transformer_block_opts, depth), 1, 1e6, NULL},
    TT_OPTION_END,
};

static tt_tensor *block_mlp(tt_build *b, tt_tensor *x, const tt_layer_transformer_block_opts *o,
                            tt_init last)
{
    if (x == NULL)
        return NULL;
    int64_t channels = x->shape.dim[2], hidden = o->hidden == 0 ? 4 * channels : o->hidden;
    tt_init first = {TT_INIT_NORMAL, 0, DEVIATION};
    tt_tensor *y = tti_linear_in(b, x, &(tti_linear){"mlp.fc", hidden, o->act, o->no_bias, first});
    y = tti_linear_in(b, y, &(tti_linear){"mlp.proj", channels, TT_LINEAR, o->no_bias, last});
    return y == NULL ? NULL : tti_dropout_in(b, y, o->dropout);
}

static tt_tensor *block_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    static const char *const names[] = {"attn.qkv", "attn.proj"};
    const tt_layer_transformer_block_opts *o = opts;
    tt_graph *g = b->graph;
    tt_tensor *x = in[0];
    if (!sequence_check(b, x))
        return NULL;
    tti_norm norm = {.eps = 1e-5, .no_bias = o->no_bias, .rms = o->rms};
    tt_init last = {TT_INIT_NORMAL, 0, DEVIATION / sqrt(2 * o->depth)};
    tt_init inits[] = {{TT_INIT_NORMAL, 0, DEVIATION}, last};
    tt_layer_attention_opts a = {.heads = o->heads,
                                 .kv_heads = o->kv_heads,
                                 .causal = !o->no_causal,
                                 .no_bias = o->no_bias,
                                 .dropout = o->dropout};
    if (tt_name_push(g, "attn") != TT_OK)
        return NULL;
    tt_tensor *y = attend(b, tti_norm_in(b, x, "norm1", &norm), &a, names, inits);
    x = y == NULL ? NULL : tt_add(g, x, y);
    (void)tt_name_pop(g);
    if (x == NULL || tt_name_push(g, "mlp") != TT_OK)
        return NULL;
    y = block_mlp(b, tti_norm_in(b, x, "norm2", &norm), o, last);
    return y == NULL ? NULL : tt_add(g, x, y); // the scope ends with the layer
}

const tti_layer_def tti_kind_transformer_block = {
    .name = "transformer_block",
    .help = "transformer block: x + attention(norm(x)), then x + mlp(norm(x))",
    .options = block_options,
    .size = sizeof(tt_layer_transformer_block_opts),
    .common = offsetof(tt_layer_transformer_block_opts, name),
    .main = "heads",
    .build = block_build,
    .torch = TTI_TORCH_MATRIX,
};

tt_tensor *tt_layer_transformer_block_with(tt_model *m, const tt_layer_transformer_block_opts *opts)
{
    return tti_layer_call(m, &tti_kind_transformer_block, opts);
}
