/*
 * layer_dense.c - dense, activation, dropout, and layers of the caller's own.
 */
#include "model/layer.h"

// ---- dense -----------------------------------------------------------------------------------

static const tt_option dense_options[] = {
    {"units", TT_OPT_INT32, NULL, "number of outputs", offsetof(tt_layer_dense_opts, units), 1,
     TTI_MAX_WIDTH, NULL},
    TTI_ACT_ROW(tt_layer_dense_opts, "linear"),
    TTI_NO_BIAS_ROW(tt_layer_dense_opts),
    TTI_INIT_ROWS(tt_layer_dense_opts, "glorot_uniform"),
    TT_OPTION_END,
};

static tt_tensor *dense_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    const tt_layer_dense_opts *o = opts;
    tt_tensor *x = in[0], *bias = NULL;
    if (!tti_x_check(b, x, 2, "[batch, ..., features]"))
        return NULL;
    int64_t width = x->shape.dim[x->shape.rank - 1];
    tt_tensor *w = tti_weight_for(b, x, "weight", TT_SHAPE(width, o->units), o->init);
    if (w != NULL && !o->no_bias)
        bias = tti_weight_for(b, x, "bias", TT_SHAPE(o->units), (tt_init){0});
    if (w == NULL || (bias == NULL && !o->no_bias))
        return NULL;
    tt_tensor *y = tt_matmul(b->graph, x, w, .bias = bias, .act = tti_act_inside(o->act));
    return tti_act_after(b->graph, y, o->act);
}

const tti_layer_def tti_kind_dense = {
    .name = "dense",
    .help = "fully connected layer: act(x W + b) on the last axis",
    .options = dense_options,
    .size = sizeof(tt_layer_dense_opts),
    .common = offsetof(tt_layer_dense_opts, name),
    .main = "units",
    .build = dense_build,
    .torch = TTI_TORCH_MATRIX,
};

tt_tensor *tt_layer_dense_with(tt_model *m, const tt_layer_dense_opts *opts)
{
    return tti_layer_call(m, &tti_kind_dense, opts);
}

// ---- activation ------------------------------------------------------------------------------

static const tt_option activation_options[] = {
    TTI_ACT_ROW(tt_layer_activation_opts, NULL),
    TT_OPTION_END,
};

static tt_tensor *activation_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    const tt_layer_activation_opts *o = opts;
    if (!tti_x_check(b, in[0], 2, "[batch, ..., features]"))
        return NULL;
    tt_tensor *y = tt_activation(b->graph, in[0], tti_act_inside(o->act));
    return tti_act_after(b->graph, y, o->act);
}

const tti_layer_def tti_kind_activation = {
    .name = "activation",
    .help = "an activation function as a layer",
    .options = activation_options,
    .size = sizeof(tt_layer_activation_opts),
    .common = offsetof(tt_layer_activation_opts, name),
    .main = "act",
    .build = activation_build,
};

tt_tensor *tt_layer_activation_with(tt_model *m, const tt_layer_activation_opts *opts)
{
    return tti_layer_call(m, &tti_kind_activation, opts);
}

// ---- dropout ---------------------------------------------------------------------------------

static const tt_option dropout_options[] = {
    TTI_RATE_ROW(tt_layer_dropout_opts, rate, "fraction of elements to set to zero in training"),
    TT_OPTION_END,
};

static tt_tensor *dropout_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    const tt_layer_dropout_opts *o = opts;
    if (!tti_rate_check(b, "rate", o->rate) || !tti_x_check(b, in[0], 1, "[batch, ...]"))
        return NULL;
    return tti_dropout_in(b, in[0], o->rate);
}

const tti_layer_def tti_kind_dropout = {
    .name = "dropout",
    .help = "dropout: zeroes random elements in training and scales the others; does nothing in "
            "inference",
    .options = dropout_options,
    .size = sizeof(tt_layer_dropout_opts),
    .common = offsetof(tt_layer_dropout_opts, name),
    .main = "rate",
    .build = dropout_build,
};

tt_tensor *tt_layer_dropout_with(tt_model *m, const tt_layer_dropout_opts *opts)
{
    return tti_layer_call(m, &tti_kind_dropout, opts);
}

// ---- the caller's own ------------------------------------------------------------------------

static tt_tensor *custom_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    const tt_layer_custom_opts *o = opts;
    if (o->fn == NULL) {
        (void)TT_FAIL(b->model->ctx, TT_EINVAL, "fn must be given");
        return NULL;
    }
    return o->fn(o->user, b, in, n_in);
}

static const tti_layer_def custom_kind = {
    // not in layers.def: no job file can say fn
    .name = "custom",
    .help = "a layer built by a C function of the program",
    .size = sizeof(tt_layer_custom_opts),
    .common = offsetof(tt_layer_custom_opts, name),
    .min_in = 1,
    .max_in = TT_MAX_FROM,
    .build = custom_build,
};

tt_tensor *tt_layer_custom_with(tt_model *m, const tt_layer_custom_opts *opts)
{
    return tti_layer_call(m, &custom_kind, opts);
}
