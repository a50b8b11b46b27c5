/*
 * layer_conv.c - convolutions and pooling of images [batch, height, width, channels].
 */
#include "model/layer.h"

// An image of floats; the message says what to do about one without channels.
bool tti_layer_image_check(tt_build *b, const tt_tensor *x)
{
    char text[TT_SHAPE_TEXT];
    const tt_shape *s = &x->shape;
    if (s->rank == 3 && s->dim[2] > 0) {
        (void)TT_FAIL(b->model->ctx, TT_ESHAPE,
                      "x is %s, which has no channels; make the input {%lld, %lld, 1} or add a "
                      "reshape to [%lld, %lld, 1] before it",
                      tt_shape_text(s, text), (long long)s->dim[1], (long long)s->dim[2],
                      (long long)s->dim[1], (long long)s->dim[2]);
        return false;
    }
    if (s->rank > 4) {
        (void)TT_FAIL(b->model->ctx, TT_ESHAPE,
                      "x is %s; it must be [batch, height, width, "
                      "channels]",
                      tt_shape_text(s, text));
        return false;
    }
    return tti_x_check(b, x, 4, "[batch, height, width, channels]");
}

bool tti_layer_sequence_check(tt_build *b, const tt_tensor *x)
{
    char text[TT_SHAPE_TEXT];
    const tt_shape *s = &x->shape;
    if (s->rank == 2 && s->dim[1] > 0) {
        (void)TT_FAIL(
            b->model->ctx, TT_ESHAPE,
            "x is %s, which has no channels; make the input {%lld, 1} or add a reshape to "
            "[%lld, 1] before it",
            tt_shape_text(s, text), (long long)s->dim[1], (long long)s->dim[1]);
        return false;
    }
    if (s->rank > 3) {
        (void)TT_FAIL(b->model->ctx, TT_ESHAPE, "x is %s; it must be [batch, time, channels]",
                      tt_shape_text(s, text));
        return false;
    }
    return tti_x_check(b, x, 3, "[batch, time, channels]");
}

// Rows and columns on each side, instead of a rule.
bool tti_layer_pad_check(tt_build *b, tt_padding padding, const int pad[2])
{
    if (padding == TT_VALID || (pad[0] == 0 && pad[1] == 0))
        return true;
    (void)TT_FAIL(b->model->ctx, TT_EINVAL, "pad is [%d, %d] and padding is same; give one of them",
                  pad[0], pad[1]);
    return false;
}

tt_padding tti_layer_pad_rule(tt_padding padding, const int pad[2])
{
    return pad[0] != 0 || pad[1] != 0 ? TT_EXPLICIT : padding;
}

// ---- convolutions ----------------------------------------------------------------------------

#define CONV_ROWS                                                                           \
    {"kernel",                                                                              \
     TT_OPT_PAIR,                                                                           \
     "3",                                                                                   \
     "height and width of the window: 3 or [3, 5]",                                         \
     offsetof(tt_layer_conv2d_opts, kernel),                                                \
     1,                                                                                     \
     TTI_MAX_SIDE,                                                                          \
     NULL},                                                                                 \
        {"stride",                                                                          \
         TT_OPT_PAIR,                                                                       \
         "1",                                                                               \
         "step of the window in rows and columns",                                          \
         offsetof(tt_layer_conv2d_opts, stride),                                            \
         1,                                                                                 \
         TTI_MAX_SIDE,                                                                      \
         NULL},                                                                             \
        {"padding",                                                                         \
         TT_OPT_ENUM,                                                                       \
         "valid",                                                                           \
         "padding of the borders; same keeps the image size at stride 1",                   \
         offsetof(tt_layer_conv2d_opts, padding),                                           \
         0,                                                                                 \
         0,                                                                                 \
         tti_padding_words},                                                                \
        {"pad",                                                                             \
         TT_OPT_PAIR,                                                                       \
         "0",                                                                               \
         "explicit zero padding on each side, in rows and columns; instead of padding",     \
         offsetof(tt_layer_conv2d_opts, pad),                                               \
         0,                                                                                 \
         TTI_MAX_SIDE,                                                                      \
         NULL},                                                                             \
        TTI_ACT_ROW(tt_layer_conv2d_opts, "linear"), TTI_NO_BIAS_ROW(tt_layer_conv2d_opts), \
        TTI_INIT_ROWS(tt_layer_conv2d_opts, "glorot_uniform")

static const tt_option conv_options[] = {
    {"filters", TT_OPT_INT32, NULL, "number of output channels",
     offsetof(tt_layer_conv2d_opts, filters), 1, TTI_MAX_WIDTH, NULL},
    CONV_ROWS,
    {"dilation", TT_OPT_PAIR, "1", "distance of neighbouring taps in rows and columns",
     offsetof(tt_layer_conv2d_opts, dilation), 1, TTI_MAX_SIDE, NULL},
    {"groups", TT_OPT_INT32, "1", "groups of channels, each convolved separately",
     offsetof(tt_layer_conv2d_opts, groups), 1, TTI_MAX_WIDTH, NULL},
    TT_OPTION_END,
};

static const tt_option depthwise_options[] = {
    {"filters", TT_OPT_INT32, "1", "number of filters per input channel",
     offsetof(tt_layer_conv2d_opts, filters), 1, TTI_MAX_WIDTH, NULL},
    CONV_ROWS,
    TT_OPTION_END,
};

bool tti_layer_groups_check(tt_build *b, int groups, int64_t channels, int64_t filters)
{
    if (groups > 0 && channels % groups == 0 && filters % groups == 0)
        return true;
    (void)TT_FAIL(b->model->ctx, TT_EINVAL,
                  "groups is %d; it must divide the %lld channels of x and the %lld filters",
                  groups, (long long)channels, (long long)filters);
    return false;
}

static tt_tensor *conv(tt_build *b, const tt_layer_conv2d_opts *o, tt_tensor *x, bool depthwise)
{
    if (!tti_layer_image_check(b, x) || !tti_layer_pad_check(b, o->padding, o->pad))
        return NULL;
    int64_t channels = x->shape.dim[3], out = o->filters * (depthwise ? channels : 1);
    int groups = depthwise ? 1 : o->groups;
    if (!tti_layer_groups_check(b, groups, channels, o->filters))
        return NULL;
    tt_shape shape = TT_SHAPE(o->kernel[0], o->kernel[1], channels / groups, o->filters);
    double window = (double)o->kernel[0] * o->kernel[1];
    tt_init init = depthwise ? tti_init_with_fans(o->init, window, window * o->filters) : o->init;
    tt_tensor *w = tti_weight_for(b, x, "weight", shape, init), *bias = NULL;
    if (w != NULL && !o->no_bias)
        bias = tti_weight_for(b, x, "bias", TT_SHAPE(out), (tt_init){0});
    if (w == NULL || (bias == NULL && !o->no_bias))
        return NULL;
    tt_conv2d_opts c = {.opts_size = sizeof(c),
                        .stride = {o->stride[0], o->stride[1]},
                        .padding = tti_layer_pad_rule(o->padding, o->pad),
                        .pad = {o->pad[0], o->pad[0], o->pad[1], o->pad[1]},
                        .bias = bias,
                        .act = tti_act_inside(o->act),
                        .dilation = {o->dilation[0], o->dilation[1]},
                        .groups = groups};
    tt_tensor *y = depthwise ? tt_depthwise_conv2d_with(b->graph, x, w, &c)
                             : tt_conv2d_with(b->graph, x, w, &c);
    return tti_act_after(b->graph, y, o->act);
}

static tt_tensor *conv_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    return conv(b, opts, in[0], false);
}

static tt_tensor *depthwise_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    return conv(b, opts, in[0], true);
}

const tti_layer_def tti_kind_conv2d = {
    .name = "conv2d",
    .help = "2-D convolution",
    .options = conv_options,
    .size = sizeof(tt_layer_conv2d_opts),
    .common = offsetof(tt_layer_conv2d_opts, name),
    .main = "filters",
    .build = conv_build,
    .torch = TTI_TORCH_KERNEL,
};

const tti_layer_def tti_kind_depthwise_conv2d = {
    .name = "depthwise_conv2d",
    .help = "depthwise 2-D convolution: each channel is convolved separately",
    .options = depthwise_options,
    .size = sizeof(tt_layer_conv2d_opts),
    .common = offsetof(tt_layer_conv2d_opts, name),
    .main = "kernel",
    .build = depthwise_build,
    .torch = TTI_TORCH_DEPTHWISE,
};

tt_tensor *tt_layer_conv2d_with(tt_model *m, const tt_layer_conv2d_opts *opts)
{
    return tti_layer_call(m, &tti_kind_conv2d, opts);
}

tt_tensor *tt_layer_depthwise_conv2d_with(tt_model *m, const tt_layer_conv2d_opts *opts)
{
    return tti_layer_call(m, &tti_kind_depthwise_conv2d, opts);
}

// ---- pooling ---------------------------------------------------------------------------------

static const tt_option pool_options[] = {
    {"size", TT_OPT_PAIR, "2", "height and width of the window: 3 or [3, 5]",
     offsetof(tt_layer_max_pool2d_opts, size), 1, TTI_MAX_SIDE, NULL},
    {"stride", TT_OPT_PAIR, "0", "step of the window in rows and columns; 0: the window's size",
     offsetof(tt_layer_max_pool2d_opts, stride), 0, TTI_MAX_SIDE, NULL},
    {"padding", TT_OPT_ENUM, "valid",
     "padding of the borders; same keeps the image size at stride 1",
     offsetof(tt_layer_max_pool2d_opts, padding), 0, 0, tti_padding_words},
    {"pad", TT_OPT_PAIR, "0",
     "explicit padding on each side, in rows and columns; padded entries are ignored",
     offsetof(tt_layer_max_pool2d_opts, pad), 0, TTI_MAX_SIDE, NULL},
    TT_OPTION_END,
};

static tt_tensor *pool(tt_build *b, const tt_layer_max_pool2d_opts *o, tt_tensor *x, bool max)
{
    if (!tti_layer_image_check(b, x) || !tti_layer_pad_check(b, o->padding, o->pad))
        return NULL;
    tt_pool_opts p = {.opts_size = sizeof(p),
                      .size = {o->size[0], o->size[1]},
                      .stride = {o->stride[0] == 0 ? o->size[0] : o->stride[0],
                                 o->stride[1] == 0 ? o->size[1] : o->stride[1]},
                      .padding = tti_layer_pad_rule(o->padding, o->pad),
                      .pad = {o->pad[0], o->pad[0], o->pad[1], o->pad[1]}};
    return max ? tt_max_pool2d_with(b->graph, x, &p) : tt_avg_pool2d_with(b->graph, x, &p);
}

static tt_tensor *max_pool_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    return pool(b, opts, in[0], true);
}

static tt_tensor *avg_pool_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    return pool(b, opts, in[0], false);
}

static tt_tensor *global_avg_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)opts, (void)n_in;
    return tti_layer_image_check(b, in[0]) ? tt_global_avg_pool2d(b->graph, in[0]) : NULL;
}

static tt_tensor *global_max_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)opts, (void)n_in;
    return tti_layer_image_check(b, in[0]) ? tt_global_max_pool2d(b->graph, in[0]) : NULL;
}

#define POOL_KIND(name_, help_, build_)                     \
    const tti_layer_def tti_kind_##name_ = {                \
        .name = #name_,                                     \
        .help = help_,                                      \
        .options = pool_options,                            \
        .size = sizeof(tt_layer_max_pool2d_opts),           \
        .common = offsetof(tt_layer_max_pool2d_opts, name), \
        .main = "size",                                     \
        .build = build_,                                    \
    };
POOL_KIND(max_pool2d, "2-D max pooling", max_pool_build)
POOL_KIND(avg_pool2d, "2-D average pooling", avg_pool_build)

#define GLOBAL_KIND(name_, help_, build_)        \
    const tti_layer_def tti_kind_##name_ = {     \
        .name = #name_,                          \
        .help = help_,                           \
        .size = sizeof(tt_plain_opts),           \
        .common = offsetof(tt_plain_opts, name), \
        .build = build_,                         \
    };
GLOBAL_KIND(global_avg_pool2d, "global average pooling; the output is [batch, channels]",
            global_avg_build)
GLOBAL_KIND(global_max_pool2d, "global max pooling; the output is [batch, channels]",
            global_max_build)

tt_tensor *tt_layer_max_pool2d_with(tt_model *m, const tt_layer_max_pool2d_opts *opts)
{
    return tti_layer_call(m, &tti_kind_max_pool2d, opts);
}

tt_tensor *tt_layer_avg_pool2d_with(tt_model *m, const tt_layer_max_pool2d_opts *opts)
{
    return tti_layer_call(m, &tti_kind_avg_pool2d, opts);
}

tt_tensor *tt_layer_global_avg_pool2d_with(tt_model *m, const tt_plain_opts *opts)
{
    return tti_layer_call(m, &tti_kind_global_avg_pool2d, opts);
}

tt_tensor *tt_layer_global_max_pool2d_with(tt_model *m, const tt_plain_opts *opts)
{
    return tti_layer_call(m, &tti_kind_global_max_pool2d, opts);
}
