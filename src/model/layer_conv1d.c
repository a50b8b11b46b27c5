/*
 * layer_conv1d.c - convolutions and pooling of sequences [batch, time, channels]: those of images
 * that are one pixel high. Weights are [kernel, in, out], of a transposed convolution [kernel, out,
 * in].
 */
#include "model/layer.h"

static tt_tensor *as_image(tt_build *b, tt_tensor *x)
{
    const int64_t *d = x->shape.dim;
    return tt_reshape(b->graph, x, TT_SHAPE(d[0], 1, d[1], d[2]));
}

static tt_tensor *as_sequence(tt_build *b, tt_tensor *y)
{
    if (y == NULL)
        return NULL;
    const int64_t *d = y->shape.dim;
    return tt_reshape(b->graph, y, TT_SHAPE(d[0], d[2], d[3]));
}

static bool pad_check(tt_build *b, tt_padding padding, int pad, bool causal)
{
    if ((padding != TT_VALID) + (pad != 0) + causal <= 1)
        return true;
    (void)TT_FAIL(b->model->ctx, TT_EINVAL,
                  "padding is %s, pad is %d and causal is %s; give one of them",
                  tti_padding_words[padding], pad, causal ? "true" : "false");
    return false;
}

// "weight", as that of an image, and "bias" (NULL: none); false: recorded.
static bool weights(tt_build *b, tt_tensor *x, tt_shape shape, tt_init init, int64_t n_bias,
                    tt_tensor **w, tt_tensor **bias)
{
    *bias = NULL;
    *w = tti_weight_for(b, x, "weight", shape, init);
    if (*w != NULL)
        *w = tt_reshape(b->graph, *w, TT_SHAPE(1, shape.dim[0], shape.dim[1], shape.dim[2]));
    if (*w != NULL && n_bias > 0)
        *bias = tti_weight_for(b, x, "bias", TT_SHAPE(n_bias), (tt_init){0});
    return *w != NULL && (*bias != NULL || n_bias == 0);
}

// ---- conv1d ----------------------------------------------------------------------------------

#define OPTS tt_layer_conv1d_opts
static const tt_option conv_options[] = {
    TTI_FILTERS_ROW(OPTS),
    TTI_INT_ROW(OPTS, kernel, "3", 1, "width of the window"),
    TTI_INT_ROW(OPTS, stride, "1", 1, "step of the window"),
    TTI_PADDING_ROW(OPTS),
    TTI_INT_ROW(OPTS, pad, "0", 0, "explicit zero padding on both sides; instead of padding"),
    {"causal", TT_OPT_BOOL, "false", "pad on the left only: a step depends on none after it",
     offsetof(OPTS, causal), 0, 0, NULL},
    TTI_INT_ROW(OPTS, dilation, "1", 1, "distance of neighbouring taps"),
    {"groups", TT_OPT_INT32, "1", "groups of channels, each convolved separately",
     offsetof(OPTS, groups), 1, TTI_MAX_WIDTH, NULL},
    TTI_ACT_ROW(OPTS, "linear"),
    TTI_NO_BIAS_ROW(OPTS),
    TTI_INIT_ROWS(OPTS, "glorot_uniform"),
    TT_OPTION_END,
};

static tt_tensor *conv_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    const OPTS *o = opts;
    tt_tensor *w, *bias;
    if (!tti_layer_sequence_check(b, in[0]) || !pad_check(b, o->padding, o->pad, o->causal))
        return NULL;
    int64_t c = in[0]->shape.dim[2];
    if (!tti_layer_groups_check(b, o->groups, c, o->filters) ||
        !weights(b, in[0], TT_SHAPE(o->kernel, c / o->groups, o->filters), o->init,
                 o->no_bias ? 0 : o->filters, &w, &bias))
        return NULL;
    int before = o->causal ? (o->kernel - 1) * o->dilation : o->pad;
    tt_padding rule = before > 0 ? TT_EXPLICIT : o->padding;
    tt_tensor *x = as_image(b, in[0]);
    if (x == NULL)
        return NULL;
    tt_tensor *y =
        tt_conv2d(b->graph, x, w, .stride = {1, o->stride}, .padding = rule,
                  .pad = {0, 0, before, o->causal ? 0 : o->pad}, .bias = bias,
                  .act = tti_act_inside(o->act), .dilation = {1, o->dilation}, .groups = o->groups);
    y = as_sequence(b, y);
    return y == NULL ? NULL : tti_act_after(b->graph, y, o->act);
}
#undef OPTS

// ---- transposed ------------------------------------------------------------------------------

#define OPTS tt_layer_conv1d_transpose_opts
static const tt_option transpose_options[] = {
    TTI_FILTERS_ROW(OPTS),
    TTI_INT_ROW(OPTS, kernel, "3", 1, "width of the window"),
    TTI_INT_ROW(OPTS, stride, "1", 1, "factor by which the output is longer"),
    TTI_PADDING_ROW(OPTS),
    TTI_INT_ROW(OPTS, pad, "0", 0, "entries removed on both sides of the output"),
    TTI_INT_ROW(OPTS, extra, "0", 0, "entries added at the end of the output; below stride"),
    TTI_ACT_ROW(OPTS, "linear"),
    TTI_NO_BIAS_ROW(OPTS),
    TTI_INIT_ROWS(OPTS, "glorot_uniform"),
    TT_OPTION_END,
};

static tt_tensor *transpose_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    const OPTS *o = opts;
    tt_tensor *w, *bias;
    if (!tti_layer_sequence_check(b, in[0]) || !pad_check(b, o->padding, o->pad, false) ||
        !weights(b, in[0], TT_SHAPE(o->kernel, o->filters, in[0]->shape.dim[2]), o->init,
                 o->no_bias ? 0 : o->filters, &w, &bias))
        return NULL;
    tt_tensor *x = as_image(b, in[0]);
    if (x == NULL)
        return NULL;
    tt_tensor *y = tt_conv2d_transpose(b->graph, x, w, .stride = {1, o->stride},
                                       .padding = o->pad > 0 ? TT_EXPLICIT : o->padding,
                                       .pad = {0, 0, o->pad, o->pad}, .extra = {0, o->extra},
                                       .bias = bias, .act = tti_act_inside(o->act));
    y = as_sequence(b, y);
    return y == NULL ? NULL : tti_act_after(b->graph, y, o->act);
}
#undef OPTS

#define CONV_KIND(name_, options_, build_, help_)                                        \
    const tti_layer_def tti_kind_##name_ = {                                             \
        .name = #name_,                                                                  \
        .help = help_,                                                                   \
        .options = options_,                                                             \
        .size = sizeof(tt_layer_##name_##_opts),                                         \
        .common = offsetof(tt_layer_##name_##_opts, name),                               \
        .main = "filters",                                                               \
        .build = build_,                                                                 \
        .torch = TTI_TORCH_KERNEL,                                                       \
    };                                                                                   \
    tt_tensor *tt_layer_##name_##_with(tt_model *m, const tt_layer_##name_##_opts *opts) \
    {                                                                                    \
        return tti_layer_call(m, &tti_kind_##name_, opts);                               \
    }
CONV_KIND(conv1d, conv_options, conv_build, "1-D convolution of sequences")
CONV_KIND(conv1d_transpose, transpose_options, transpose_build,
          "transposed 1-D convolution: lengthens sequences")

// ---- pooling ---------------------------------------------------------------------------------

#define OPTS tt_layer_max_pool1d_opts
static const tt_option pool_options[] = {
    TTI_INT_ROW(OPTS, size, "2", 1, "width of the window"),
    TTI_INT_ROW(OPTS, stride, "0", 0, "step of the window; 0: its width"),
    TTI_PADDING_ROW(OPTS),
    TTI_INT_ROW(OPTS, pad, "0", 0, "explicit padding on both sides; padded entries are ignored"),
    TT_OPTION_END,
};

static tt_tensor *pool(tt_build *b, const OPTS *o, tt_tensor *x, bool max)
{
    if (!tti_layer_sequence_check(b, x) || !pad_check(b, o->padding, o->pad, false))
        return NULL;
    x = as_image(b, x);
    if (x == NULL)
        return NULL;
    tt_pool_opts p = {.opts_size = sizeof(p),
                      .size = {1, o->size},
                      .stride = {1, o->stride == 0 ? o->size : o->stride},
                      .padding = o->pad > 0 ? TT_EXPLICIT : o->padding,
                      .pad = {0, 0, o->pad, o->pad}};
    return as_sequence(b, max ? tt_max_pool2d_with(b->graph, x, &p)
                              : tt_avg_pool2d_with(b->graph, x, &p));
}

static tt_tensor *max_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    return pool(b, opts, in[0], true);
}

static tt_tensor *avg_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    return pool(b, opts, in[0], false);
}

static tt_tensor *global_avg_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)opts, (void)n_in;
    return tti_layer_sequence_check(b, in[0]) ? tt_mean(b->graph, in[0], .axis = 1) : NULL;
}

static tt_tensor *global_max_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)opts, (void)n_in;
    return tti_layer_sequence_check(b, in[0]) ? tt_max(b->graph, in[0], .axis = 1) : NULL;
}

TTI_LAYER(max_pool1d, OPTS, pool_options, "size", max_build, "1-D max pooling")
TTI_LAYER(avg_pool1d, OPTS, pool_options, "size", avg_build, "1-D average pooling")
TTI_LAYER(global_avg_pool1d, tt_plain_opts, NULL, NULL, global_avg_build,
          "average over time; the output is [batch, channels]")
TTI_LAYER(global_max_pool1d, tt_plain_opts, NULL, NULL, global_max_build,
          "maximum over time; the output is [batch, channels]")
