/*
 * layer_gate.c - gates and trained activations: glu, swiglu, geglu, prelu.
 */
#include "model/layer.h"

// ---- glu -------------------------------------------------------------------------------------

static const tt_option glu_options[] = {
    TTI_ACT_ROW(tt_layer_glu_opts, "sigmoid"),
    TT_OPTION_END,
};

static tt_tensor *glu_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    const tt_layer_glu_opts *o = opts;
    if (!tti_x_check(b, in[0], 2, "[batch, ..., features]"))
        return NULL;
    if (o->act == TT_SOFTMAX) {
        (void)TT_FAIL(b->model->ctx, TT_EINVAL,
                      "act is softmax; a gate takes each number by itself: use sigmoid");
        return NULL;
    }
    return tt_glu(b->graph, in[0], o->act);
}

TTI_LAYER(glu, tt_layer_glu_opts, glu_options, "act", glu_build,
          "gated linear unit: the first half of the last axis times act of the second")

// ---- swiglu, geglu ---------------------------------------------------------------------------

static const tt_option swiglu_options[] = {
    {"hidden", TT_OPT_INT32, NULL, "hidden units", offsetof(tt_layer_swiglu_opts, hidden), 1,
     TTI_MAX_WIDTH, NULL},
    {"units", TT_OPT_INT32, "0", "number of outputs; 0: as many as inputs",
     offsetof(tt_layer_swiglu_opts, units), 0, TTI_MAX_WIDTH, NULL},
    TTI_NO_BIAS_ROW(tt_layer_swiglu_opts),
    TTI_INIT_ROWS(tt_layer_swiglu_opts, "glorot_uniform"),
    TT_OPTION_END,
};

// act(x W + b) with the weights "<name>.weight" and "<name>.bias".
static tt_tensor *product(tt_build *b, const tt_layer_swiglu_opts *o, tt_tensor *x,
                          const char *name, int64_t units, tt_act act)
{
    char weight[TTI_NAME_MAX], bias[TTI_NAME_MAX];
    if (x == NULL)
        return NULL;
    tti_weight_names(name, weight, bias);
    tt_shape shape = TT_SHAPE(x->shape.dim[x->shape.rank - 1], units);
    tt_tensor *w = tti_weight_for(b, x, weight, shape, o->init), *add = NULL;
    if (w != NULL && !o->no_bias)
        add = tti_weight_for(b, x, bias, TT_SHAPE(units), (tt_init){0});
    if (w == NULL || (add == NULL && !o->no_bias))
        return NULL;
    return tt_matmul(b->graph, x, w, .bias = add, .act = act);
}

static tt_tensor *gated(tt_build *b, const tt_layer_swiglu_opts *o, tt_tensor *x, tt_act act)
{
    if (!tti_x_check(b, x, 2, "[batch, ..., features]"))
        return NULL;
    int64_t units = o->units == 0 ? x->shape.dim[x->shape.rank - 1] : o->units;
    tt_tensor *gate = product(b, o, x, "gate", o->hidden, act);
    tt_tensor *up = product(b, o, x, "up", o->hidden, TT_LINEAR);
    if (gate == NULL || up == NULL)
        return NULL;
    return product(b, o, tt_mul(b->graph, gate, up), "down", units, TT_LINEAR);
}

static tt_tensor *swiglu_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    return gated(b, opts, in[0], TT_SILU);
}

static tt_tensor *geglu_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    return gated(b, opts, in[0], TT_GELU_ERF);
}

#define GATED_KIND(name_, help_)                                                      \
    const tti_layer_def tti_kind_##name_ = {                                          \
        .name = #name_,                                                               \
        .help = help_,                                                                \
        .options = swiglu_options,                                                    \
        .size = sizeof(tt_layer_swiglu_opts),                                         \
        .common = offsetof(tt_layer_swiglu_opts, name),                               \
        .main = "hidden",                                                             \
        .build = name_##_build,                                                       \
        .torch = TTI_TORCH_MATRIX,                                                    \
    };                                                                                \
    tt_tensor *tt_layer_##name_##_with(tt_model *m, const tt_layer_swiglu_opts *opts) \
    {                                                                                 \
        return tti_layer_call(m, &tti_kind_##name_, opts);                            \
    }
GATED_KIND(swiglu, "gated feed-forward layer: (silu(x gate) * (x up)) down on the last axis")
GATED_KIND(geglu, "gated feed-forward layer: (gelu_erf(x gate) * (x up)) down on the last axis")

// ---- prelu -----------------------------------------------------------------------------------

static const tt_option prelu_options[] = {
    {"slope", TT_OPT_FLOAT, "0.25", "initial slope for negative x",
     offsetof(tt_layer_prelu_opts, slope), -100, 100, NULL},
    {"shared", TT_OPT_BOOL, "false", "one slope for all channels instead of one each",
     offsetof(tt_layer_prelu_opts, shared), 0, 0, NULL},
    TT_OPTION_END,
};

static tt_tensor *prelu_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    const tt_layer_prelu_opts *o = opts;
    if (!tti_x_check(b, in[0], 2, "[batch, ..., channels]"))
        return NULL;
    tt_shape c = TT_SHAPE(o->shared ? 1 : in[0]->shape.dim[in[0]->shape.rank - 1]);
    tt_init init = {TT_INIT_CONSTANT, o->slope, 0};
    tt_tensor *slope = tti_weight_for(b, in[0], "weight", c, init);
    return slope == NULL ? NULL : tt_prelu(b->graph, in[0], slope);
}

const tti_layer_def tti_kind_prelu = {
    .name = "prelu",
    .help = "x for x > 0, else a trained slope times x",
    .options = prelu_options,
    .size = sizeof(tt_layer_prelu_opts),
    .common = offsetof(tt_layer_prelu_opts, name),
    .main = "slope",
    .build = prelu_build,
    .torch = TTI_TORCH_FEATURES,
};

tt_tensor *tt_layer_prelu_with(tt_model *m, const tt_layer_prelu_opts *opts)
{
    return tti_layer_call(m, &tti_kind_prelu, opts);
}
