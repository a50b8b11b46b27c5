/*
 * layer_group_norm.c - group norm and instance norm: a layer norm of each group of channels of a
 * record, over all places. The groups are brought side by side, [batch, groups, places channels],
 * and back; scale and shift are "weight" and "bias", one number for each channel.
 */
#include "model/layer.h"

#define EPS_ROW                                                              \
    {                                                                        \
        "eps", TT_OPT_FLOAT, "1e-5", "small constant added to the variance", \
            offsetof(tt_layer_group_norm_opts, eps), 0, 1, NULL              \
    }
static const tt_option group_norm_options[] = {
    {"groups", TT_OPT_INT32, "32", "groups of channels", offsetof(tt_layer_group_norm_opts, groups),
     1, TTI_MAX_WIDTH, NULL},
    EPS_ROW,
    TT_OPTION_END,
};
static const tt_option instance_norm_options[] = {EPS_ROW, TT_OPTION_END};

static tt_tensor *normalise(tt_build *b, tt_tensor *x, int64_t groups, double eps)
{
    tt_graph *g = b->graph;
    const tt_shape shape = x->shape;
    int64_t batch = shape.dim[0], c = shape.dim[shape.rank - 1], places = 1;
    for (int i = 1; i < shape.rank - 1; i++)
        places *= shape.dim[i];
    int64_t each = c / groups;
    bool moves = places > 1 && groups > 1;
    if (moves) {
        x = tt_reshape(g, x, TT_SHAPE(batch, places, groups, each));
        x = x == NULL ? NULL : tt_transpose(g, x, TT_AXES(0, 2, 1, 3));
    }
    x = x == NULL ? NULL : tt_reshape(g, x, TT_SHAPE(batch, groups, places * each));
    x = x == NULL ? NULL : tt_layer_norm(g, x, NULL, NULL, .eps = eps == 0 ? TT_ZERO : eps);
    if (x != NULL && moves) {
        x = tt_reshape(g, x, TT_SHAPE(batch, groups, places, each));
        x = x == NULL ? NULL : tt_transpose(g, x, TT_AXES(0, 2, 1, 3));
    }
    return x == NULL ? NULL : tt_reshape(g, x, shape);
}

static tt_tensor *norm(tt_build *b, const tt_layer_group_norm_opts *o, tt_tensor *x, int64_t groups)
{
    tt_shape c = TT_SHAPE(x->shape.dim[x->shape.rank - 1]);
    tt_tensor *gamma = tti_weight_for(b, x, "weight", c, TTI_ONES);
    tt_tensor *beta = gamma == NULL ? NULL : tti_weight_for(b, x, "bias", c, (tt_init){0});
    tt_tensor *y = beta == NULL ? NULL : normalise(b, x, groups, o->eps);
    return y == NULL ? NULL : tt_add(b->graph, tt_mul(b->graph, y, gamma), beta);
}

static tt_tensor *group_norm_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    const tt_layer_group_norm_opts *o = opts;
    if (!tti_x_check(b, in[0], 2, "[batch, ..., channels]"))
        return NULL;
    int64_t c = in[0]->shape.dim[in[0]->shape.rank - 1];
    if (c % o->groups != 0) {
        (void)TT_FAIL(b->model->ctx, TT_EINVAL,
                      "groups is %d; it must divide the %lld channels of x", o->groups,
                      (long long)c);
        return NULL;
    }
    return norm(b, o, in[0], o->groups);
}

static tt_tensor *instance_norm_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    if (!tti_x_check(b, in[0], 3, "[batch, time, channels] or [batch, height, width, channels]"))
        return NULL;
    return norm(b, opts, in[0], in[0]->shape.dim[in[0]->shape.rank - 1]);
}

#define NORM_KIND(name_, main_, help_)                                                    \
    const tti_layer_def tti_kind_##name_ = {                                              \
        .name = #name_,                                                                   \
        .help = help_,                                                                    \
        .options = name_##_options,                                                       \
        .size = sizeof(tt_layer_group_norm_opts),                                         \
        .common = offsetof(tt_layer_group_norm_opts, name),                               \
        .main = main_,                                                                    \
        .build = name_##_build,                                                           \
    };                                                                                    \
    tt_tensor *tt_layer_##name_##_with(tt_model *m, const tt_layer_group_norm_opts *opts) \
    {                                                                                     \
        return tti_layer_call(m, &tti_kind_##name_, opts);                                \
    }
NORM_KIND(group_norm, "groups",
          "normalise each group of channels of a record, with scale and shift")
NORM_KIND(instance_norm, NULL, "normalise each channel of a record, with scale and shift")
