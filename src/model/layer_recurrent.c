/*
 * layer_recurrent.c - lstm, gru, rnn over sequences [batch, time, channels]: one product for the
 * inputs of all steps, then the recurrent op. Weights have PyTorch's names, gates in its order.
 */
#include "model/layer.h"
#include <stdio.h>
#include <tutti/recurrent.h>

#define OPTS tt_layer_lstm_opts
static const tt_option options[] = {
    {"units", TT_OPT_INT32, NULL, "number of outputs of a step", offsetof(OPTS, units), 1,
     TTI_MAX_WIDTH, NULL},
    {"layers", TT_OPT_INT32, "1", "layers, each on the outputs of the one before",
     offsetof(OPTS, layers), 1, 1000, NULL},
    {"bidirectional", TT_OPT_BOOL, "false",
     "also from the last step to the first, the outputs side by side",
     offsetof(OPTS, bidirectional), 0, 0, NULL},
    {"last", TT_OPT_BOOL, "false", "only the output of the last step", offsetof(OPTS, last), 0, 0,
     NULL},
    TTI_RATE_ROW(OPTS, dropout, "dropout rate between layers"),
    TTI_NO_BIAS_ROW(OPTS),
    TTI_INIT_ROWS(OPTS, "glorot_uniform"),
    TT_OPTION_END,
};

typedef struct direction {
    tt_recurrent_kind kind;
    int64_t gates;
    int layer;
    bool reverse;
} direction;

static tt_tensor *weight(tt_build *b, const OPTS *o, tt_tensor *x, const direction *d,
                         const char *what, tt_shape shape)
{
    char name[64];
    snprintf(name, sizeof(name), "%s_l%d%s", what, d->layer, d->reverse ? "_reverse" : "");
    return tti_weight_for(b, x, name, shape, shape.rank > 1 ? o->init : (tt_init){0});
}

// All steps of one direction of one layer.
static tt_tensor *run(tt_build *b, const OPTS *o, tt_tensor *x, const direction *d)
{
    int64_t in = x->shape.dim[2], wide = d->gates * o->units;
    tt_tensor *bi = NULL, *bh = NULL;
    tt_tensor *wi = weight(b, o, x, d, "weight_ih", TT_SHAPE(in, wide));
    tt_tensor *wh = wi == NULL ? NULL : weight(b, o, x, d, "weight_hh", TT_SHAPE(o->units, wide));
    if (wh == NULL)
        return NULL;
    if (!o->no_bias) {
        bi = weight(b, o, x, d, "bias_ih", TT_SHAPE(wide));
        bh = bi == NULL ? NULL : weight(b, o, x, d, "bias_hh", TT_SHAPE(wide));
        if (bh == NULL)
            return NULL;
    }
    tt_tensor *z = tt_matmul(b->graph, x, wi, .bias = bi);
    return tt_recurrent(b->graph, z, wh, .kind = d->kind, .bias = bh, .reverse = d->reverse);
}

// The last step that a direction has seen: [batch, units].
static tt_tensor *end_of(tt_build *b, tt_tensor *y, bool reverse)
{
    if (y == NULL)
        return NULL;
    int64_t t = y->shape.dim[1];
    y = tt_slice(b->graph, y, 1, reverse ? 0 : t - 1, reverse ? 1 : t);
    return y == NULL ? NULL : tt_squeeze(b->graph, y, 1);
}

static tt_tensor *build(tt_build *b, const OPTS *o, tt_tensor *x, tt_recurrent_kind kind)
{
    if (!tti_layer_sequence_check(b, x) || !tti_rate_check(b, "dropout", o->dropout))
        return NULL;
    direction d = {kind, kind == TT_RNN ? 1 : kind == TT_GRU ? 3 : 4, 0, false};
    for (; d.layer < o->layers && x != NULL; d.layer++) {
        bool ends = o->last && d.layer + 1 == o->layers;
        tt_tensor *side[2] = {NULL, NULL};
        if (d.layer > 0)
            x = tti_dropout_in(b, x, o->dropout);
        for (int i = 0; i <= o->bidirectional && x != NULL; i++) {
            d.reverse = i > 0;
            side[i] = run(b, o, x, &d);
            if (ends)
                side[i] = end_of(b, side[i], d.reverse);
            if (side[i] == NULL)
                return NULL;
        }
        x = o->bidirectional ? tt_concat(b->graph, side, 2, ends ? 1 : 2) : side[0];
    }
    return x;
}

#define KIND(name_, kind_, help_)                                                               \
    static tt_tensor *name_##_build(tt_build *b, const void *opts, tt_tensor *const *in, int n) \
    {                                                                                           \
        (void)n;                                                                                \
        return build(b, opts, in[0], kind_);                                                    \
    }                                                                                           \
    const tti_layer_def tti_kind_##name_ = {                                                    \
        .name = #name_,                                                                         \
        .help = help_,                                                                          \
        .options = options,                                                                     \
        .size = sizeof(OPTS),                                                                   \
        .common = offsetof(OPTS, name),                                                         \
        .main = "units",                                                                        \
        .build = name_##_build,                                                                 \
        .torch = TTI_TORCH_MATRIX,                                                              \
    };                                                                                          \
    tt_tensor *tt_layer_##name_##_with(tt_model *m, const OPTS *opts)                           \
    {                                                                                           \
        return tti_layer_call(m, &tti_kind_##name_, opts);                                      \
    }
KIND(lstm, TT_LSTM, "long short-term memory over the steps of a sequence")
KIND(gru, TT_GRU, "gated recurrent unit over the steps of a sequence")
KIND(rnn, TT_RNN, "recurrent layer with tanh over the steps of a sequence")
