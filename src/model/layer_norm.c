/*
 * layer_norm.c - batch norm, layer norm, RMS norm. Scale and shift are "weight" and "bias".
 *
 * Batch norm takes the statistics of the whole batch in training, or of each lane, and moves the
 * running ones, which are states "mean" and "var", by updates that every step runs; inference uses
 * the running ones.
 * Weights and statistics are f32 where x is half-precision: only x and y are rounded.
 */
#include "model/layer.h"

// ---- batch norm ------------------------------------------------------------------------------

const char *const tti_over_words[] = {"batch", "lane", NULL};

static const tt_option batch_norm_options[] = {
    {"eps", TT_OPT_FLOAT, "1e-5", "small constant added to the variance",
     offsetof(tt_layer_batch_norm_opts, eps), 0, 1, NULL},
    {"momentum", TT_OPT_FLOAT, "0.9", "fraction of the old running statistics kept at each step",
     offsetof(tt_layer_batch_norm_opts, momentum), 0, 1, NULL},
    TTI_ACT_ROW(tt_layer_batch_norm_opts, "linear"),
    {"zero_scale", TT_OPT_BOOL, "false", "initialise the scale to 0 instead of 1",
     offsetof(tt_layer_batch_norm_opts, zero_scale), 0, 0, NULL},
    TTI_OVER_ROW(tt_layer_batch_norm_opts),
    TT_OPTION_END,
};

static tt_tensor *batch_norm_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    const tt_layer_batch_norm_opts *o = opts;
    if (!tti_x_check(b, in[0], 2, "[batch, ..., channels]"))
        return NULL;
    if (b->layer->share != b->layer) {
        (void)TT_FAIL(
            b->model->ctx, TT_EINVAL,
            "cannot share weights with '%s': every batch_norm has its own running statistics",
            b->layer->share->name);
        return NULL;
    }
    tt_shape c = TT_SHAPE(in[0]->shape.dim[in[0]->shape.rank - 1]);
    tt_batch_norm_vars v = {
        .gamma = tti_layer_weight(b, "weight", c, o->zero_scale ? (tt_init){0} : TTI_ONES),
        .beta = tti_layer_weight(b, "bias", c, (tt_init){0}),
        .mean = tti_layer_state(b, "mean", c, (tt_init){0}),
        .var = tti_layer_state(b, "var", c, TTI_ONES),
    };
    if (v.gamma == NULL || v.beta == NULL || v.mean == NULL || v.var == NULL)
        return NULL;
    tt_tensor *mean = NULL, *var = NULL;
    tt_tensor *y = tt_batch_norm(b->graph, in[0], v, .eps = o->eps, .momentum = o->momentum,
                                 .infer = !b->training, .act = tti_act_inside(o->act),
                                 .residual = n_in > 1 ? in[1] : NULL, .new_mean = &mean,
                                 .new_var = &var, .over = o->over);
    if (b->training &&
        (y == NULL || tti_build_update(b, mean) != TT_OK || tti_build_update(b, var) != TT_OK))
        return NULL;
    return tti_act_after(b->graph, y, o->act);
}

// One value per channel has no variance: the output is the bias, whatever x is.
static int64_t batch_norm_few_rows(const tti_layer *l, int lanes)
{
    const tt_layer_batch_norm_opts *o = l->opts;
    const tt_shape *x = &l->in[0]->shape;
    for (int i = 0; i + 1 < x->rank; i++)
        if (x->dim[i] > 1 || x->dim[i] < TT_BATCH)
            return 0;
    return o->over == TT_OVER_LANE ? 2 * (int64_t)lanes - 1 : 1;
}

const tti_layer_def tti_kind_batch_norm = {
    .name = "batch_norm",
    .help =
        "batch normalisation per channel; an optional second input is added before the activation",
    .options = batch_norm_options,
    .size = sizeof(tt_layer_batch_norm_opts),
    .common = offsetof(tt_layer_batch_norm_opts, name),
    .min_in = 1,
    .max_in = 2,
    .build = batch_norm_build,
    .torch = TTI_TORCH_FEATURES,
    .few_rows = batch_norm_few_rows,
};

tt_tensor *tt_layer_batch_norm_with(tt_model *m, const tt_layer_batch_norm_opts *opts)
{
    return tti_layer_call(m, &tti_kind_batch_norm, opts);
}

// ---- norms over the last axis ----------------------------------------------------------------

#define EPS_ROW                                                              \
    {                                                                        \
        "eps", TT_OPT_FLOAT, "1e-5", "small constant added to the variance", \
            offsetof(tt_layer_layer_norm_opts, eps), 0, 1, NULL              \
    }
static const tt_option layer_norm_options[] = {
    EPS_ROW,
    TTI_NO_BIAS_ROW(tt_layer_layer_norm_opts),
    TT_OPTION_END,
};
static const tt_option rms_norm_options[] = {EPS_ROW, TT_OPTION_END};

tt_tensor *tti_norm_in(tt_build *b, tt_tensor *x, const char *name, const tti_norm *o)
{
    char weight[TTI_NAME_MAX], bias[TTI_NAME_MAX];
    tti_weight_names(name, weight, bias);
    if (!tti_x_check(b, x, 2, "[batch, ..., features]"))
        return NULL;
    tt_shape c = TT_SHAPE(x->shape.dim[x->shape.rank - 1]);
    tt_tensor *gamma = tti_layer_weight(b, weight, c, TTI_ONES), *beta = NULL;
    if (gamma == NULL)
        return NULL;
    if (o->rms)
        return tt_rms_norm(b->graph, x, gamma, .eps = o->eps);
    if (!o->no_bias) {
        beta = tti_layer_weight(b, bias, c, (tt_init){0});
        if (beta == NULL)
            return NULL;
    }
    return tt_layer_norm(b->graph, x, gamma, beta, .eps = o->eps);
}

static tt_tensor *layer_norm_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    const tt_layer_layer_norm_opts *o = opts;
    return tti_norm_in(b, in[0], "", &(tti_norm){.eps = o->eps, .no_bias = o->no_bias});
}

static tt_tensor *rms_norm_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    const tt_layer_layer_norm_opts *o = opts;
    return tti_norm_in(b, in[0], "", &(tti_norm){.eps = o->eps, .rms = true});
}

#define NORM_KIND(name_, help_)                             \
    const tti_layer_def tti_kind_##name_ = {                \
        .name = #name_,                                     \
        .help = help_,                                      \
        .options = name_##_options,                         \
        .size = sizeof(tt_layer_layer_norm_opts),           \
        .common = offsetof(tt_layer_layer_norm_opts, name), \
        .build = name_##_build,                             \
        .torch = TTI_TORCH_FEATURES,                        \
    };
NORM_KIND(layer_norm, "layer normalisation over the last axis, with scale and shift")
NORM_KIND(rms_norm, "RMS normalisation over the last axis, with scale")

tt_tensor *tt_layer_layer_norm_with(tt_model *m, const tt_layer_layer_norm_opts *opts)
{
    return tti_layer_call(m, &tti_kind_layer_norm, opts);
}

tt_tensor *tt_layer_rms_norm_with(tt_model *m, const tt_layer_layer_norm_opts *opts)
{
    return tti_layer_call(m, &tti_kind_rms_norm, opts);
}
