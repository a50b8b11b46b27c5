/*
 * layer_conv_more.c - transposed and separable convolutions of images [batch, height, width,
 * channels].
 */
#include "model/layer.h"

// "bias" of n, NULL if there is none; false: recorded.
static bool bias_of(tt_build *b, tt_tensor *x, bool no_bias, int64_t n, tt_tensor **bias)
{
    *bias = no_bias ? NULL : tti_weight_for(b, x, "bias", TT_SHAPE(n), (tt_init){0});
    return no_bias || *bias != NULL;
}

// ---- transposed ------------------------------------------------------------------------------

#define OPTS tt_layer_conv2d_transpose_opts
static const tt_option transpose_options[] = {
    TTI_FILTERS_ROW(OPTS),
    TTI_PAIR_ROW(OPTS, kernel, "3", 1, "height and width of the window: 3 or [3, 5]"),
    TTI_PAIR_ROW(OPTS, stride, "1", 1, "factor by which the output is larger"),
    {"padding", TT_OPT_ENUM, "valid", "same: the output is exactly stride times as large",
     offsetof(OPTS, padding), 0, 0, tti_padding_words},
    TTI_PAIR_ROW(OPTS, pad, "0", 0, "rows and columns removed on each side of the output"),
    TTI_PAIR_ROW(OPTS, extra, "0", 0,
                 "rows and columns added at the end of the output; below stride"),
    TTI_ACT_ROW(OPTS, "linear"),
    TTI_NO_BIAS_ROW(OPTS),
    TTI_INIT_ROWS(OPTS, "glorot_uniform"),
    TT_OPTION_END,
};

static tt_tensor *transpose_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    const OPTS *o = opts;
    tt_tensor *bias, *x = in[0];
    if (!tti_layer_image_check(b, x) || !tti_layer_pad_check(b, o->padding, o->pad))
        return NULL;
    tt_shape shape = TT_SHAPE(o->kernel[0], o->kernel[1], o->filters, x->shape.dim[3]);
    tt_tensor *w = tti_weight_for(b, x, "weight", shape, o->init);
    if (w == NULL || !bias_of(b, x, o->no_bias, o->filters, &bias))
        return NULL;
    tt_tensor *y = tt_conv2d_transpose(b->graph, x, w, .stride = {o->stride[0], o->stride[1]},
                                       .padding = tti_layer_pad_rule(o->padding, o->pad),
                                       .pad = {o->pad[0], o->pad[0], o->pad[1], o->pad[1]},
                                       .extra = {o->extra[0], o->extra[1]}, .bias = bias,
                                       .act = tti_act_inside(o->act));
    return y == NULL ? NULL : tti_act_after(b->graph, y, o->act);
}
#undef OPTS

const tti_layer_def tti_kind_conv2d_transpose = {
    .name = "conv2d_transpose",
    .help = "transposed 2-D convolution: enlarges images",
    .options = transpose_options,
    .size = sizeof(tt_layer_conv2d_transpose_opts),
    .common = offsetof(tt_layer_conv2d_transpose_opts, name),
    .main = "filters",
    .build = transpose_build,
    .torch = TTI_TORCH_KERNEL,
};

tt_tensor *tt_layer_conv2d_transpose_with(tt_model *m, const tt_layer_conv2d_transpose_opts *opts)
{
    return tti_layer_call(m, &tti_kind_conv2d_transpose, opts);
}

// ---- separable -------------------------------------------------------------------------------

#define OPTS tt_layer_separable_conv2d_opts
static const tt_option separable_options[] = {
    TTI_FILTERS_ROW(OPTS),
    TTI_PAIR_ROW(OPTS, kernel, "3", 1, "height and width of the window: 3 or [3, 5]"),
    TTI_PAIR_ROW(OPTS, stride, "1", 1, "step of the window in rows and columns"),
    TTI_PADDING_ROW(OPTS),
    TTI_PAIR_ROW(OPTS, pad, "0", 0,
                 "explicit zero padding on each side, in rows and columns; instead of padding"),
    TTI_INT_ROW(OPTS, multiplier, "1", 1, "filters per channel of the depthwise part"),
    TTI_ACT_ROW(OPTS, "linear"),
    TTI_NO_BIAS_ROW(OPTS),
    TTI_INIT_ROWS(OPTS, "glorot_uniform"),
    TT_OPTION_END,
};

static tt_tensor *separable_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    const OPTS *o = opts;
    tt_tensor *bias, *x = in[0];
    if (!tti_layer_image_check(b, x) || !tti_layer_pad_check(b, o->padding, o->pad))
        return NULL;
    int64_t c = x->shape.dim[3];
    double window = (double)o->kernel[0] * o->kernel[1];
    tt_init init = tti_init_with_fans(o->init, window, window * o->multiplier);
    tt_tensor *depth = tti_weight_for(b, x, "depth.weight",
                                      TT_SHAPE(o->kernel[0], o->kernel[1], c, o->multiplier), init);
    tt_tensor *point = depth == NULL
                           ? NULL
                           : tti_weight_for(b, x, "point.weight",
                                            TT_SHAPE(1, 1, c * o->multiplier, o->filters), o->init);
    if (point == NULL || !bias_of(b, x, o->no_bias, o->filters, &bias))
        return NULL;
    tt_tensor *y = tt_depthwise_conv2d(b->graph, x, depth, .stride = {o->stride[0], o->stride[1]},
                                       .padding = tti_layer_pad_rule(o->padding, o->pad),
                                       .pad = {o->pad[0], o->pad[0], o->pad[1], o->pad[1]});
    if (y == NULL)
        return NULL;
    y = tt_conv2d(b->graph, y, point, .bias = bias, .act = tti_act_inside(o->act));
    return y == NULL ? NULL : tti_act_after(b->graph, y, o->act);
}

TTI_LAYER(separable_conv2d, OPTS, separable_options, "filters", separable_build,
          "depthwise 2-D convolution followed by a 1 x 1 convolution")
