/*
 * resnet.c - residual networks of 18, 34 and 50 layers, built and named as torchvision does.
 *
 * Convolutions have no bias and start by He's rule; the last batch norm of a block starts at scale
 * zero, so a block begins as the identity, adds the shortcut and carries the activation. In a
 * bottleneck the 3x3 convolution has the stride.
 */
#include "model/layer.h"
#include <stdio.h>

static const tt_option resnet_options[] = {
    {"depth", TT_OPT_INT32, "18", "number of layers: 18, 34 or 50",
     offsetof(tt_layer_resnet_opts, depth), 0, 0, NULL},
    {"classes", TT_OPT_INT32, "10", "number of classes", offsetof(tt_layer_resnet_opts, classes), 1,
     TTI_MAX_WIDTH, NULL},
    {"width", TT_OPT_INT32, "64", "number of channels of the first stage",
     offsetof(tt_layer_resnet_opts, width), 1, 1 << 20, NULL},
    {"small", TT_OPT_BOOL, "false", "variant for 32 x 32 images: a 3x3 stem without pooling",
     offsetof(tt_layer_resnet_opts, small), 0, 0, NULL},
    TTI_OVER_ROW(tt_layer_resnet_opts),
    TT_OPTION_END,
};

// A convolution that keeps the size but for its stride, then batch norm: "<path>conv1", "bn1".
typedef struct unit {
    const char *path;
    const char *conv, *norm;
    int filters, kernel, stride;
    tt_act act;
    tt_tensor *from;     // NULL: the last layer
    tt_tensor *shortcut; // added before the activation; the scale then starts at zero
} unit;

static tt_tensor *unit_add(tt_model *m, const tt_layer_resnet_opts *o, const unit *u)
{
    char conv[64], norm[64];
    snprintf(conv, sizeof(conv), "%s%s", u->path, u->conv);
    snprintf(norm, sizeof(norm), "%s%s", u->path, u->norm);
    tt_tensor *y =
        tt_layer_conv2d(m, .filters = u->filters, .kernel = {u->kernel}, .stride = {u->stride},
                        .pad = {u->kernel / 2}, .no_bias = true, .init = {TT_INIT_HE_NORMAL, 0, 0},
                        .name = conv, .from = {u->from});
    return tt_layer_batch_norm(m, .act = u->act, .zero_scale = u->shortcut != NULL, .over = o->over,
                               .name = norm, .from = {y, u->shortcut});
}

// One block of a stage; filters are those inside.
static tt_tensor *block_add(tt_model *m, const tt_layer_resnet_opts *o, const char *path,
                            tt_tensor *x, int filters, int stride)
{
    bool bottleneck = o->depth == 50;
    int out = filters * (bottleneck ? 4 : 1);
    if (x == NULL)
        return NULL;
    tt_tensor *shortcut = x;
    if (stride != 1 || x->shape.dim[3] != out)
        shortcut = unit_add(
            m, o,
            &(unit){path, "downsample.0", "downsample.1", out, 1, stride, TT_LINEAR, x, NULL});
    if (!bottleneck) {
        unit_add(m, o, &(unit){path, "conv1", "bn1", filters, 3, stride, TT_RELU, x, NULL});
        return unit_add(m, o,
                        &(unit){path, "conv2", "bn2", filters, 3, 1, TT_RELU, NULL, shortcut});
    }
    unit_add(m, o, &(unit){path, "conv1", "bn1", filters, 1, 1, TT_RELU, x, NULL});
    unit_add(m, o, &(unit){path, "conv2", "bn2", filters, 3, stride, TT_RELU, NULL, NULL});
    return unit_add(m, o, &(unit){path, "conv3", "bn3", out, 1, 1, TT_RELU, NULL, shortcut});
}

static tt_tensor *stem_add(tt_model *m, const tt_layer_resnet_opts *o)
{
    unit stem = {"",      "conv1",    "bn1", o->width, o->small ? 3 : 7, o->small ? 1 : 2,
                 TT_RELU, o->from[0], NULL};
    tt_tensor *x = unit_add(m, o, &stem);
    if (o->small)
        return x;
    return tt_layer_max_pool2d(m, .size = {3}, .stride = {2}, .pad = {1}, .name = "maxpool");
}

static tt_tensor *resnet_expand(tt_model *m, const void *opts, const char *name)
{
    (void)name;
    static const int blocks[][5] = {{18, 2, 2, 2, 2}, {34, 3, 4, 6, 3}, {50, 3, 4, 6, 3}};
    const tt_layer_resnet_opts *o = opts;
    const int *row = NULL;
    for (int i = 0; i < TTI_COUNT(blocks); i++)
        if (blocks[i][0] == o->depth)
            row = blocks[i];
    if (row == NULL) {
        (void)TT_FAIL(m->ctx, TT_EINVAL, "resnet: depth %d is not 18, 34 or 50", o->depth);
        return NULL;
    }
    tt_tensor *x = stem_add(m, o);
    for (int stage = 0; stage < 4; stage++) {
        for (int i = 0; i < row[stage + 1]; i++) {
            char path[32];
            snprintf(path, sizeof(path), "layer%d.%d.", stage + 1, i);
            x = block_add(m, o, path, x, o->width << stage, i == 0 && stage > 0 ? 2 : 1);
        }
    }
    tt_layer_global_avg_pool2d(m, .name = "avgpool");
    return tt_layer_dense(m, .units = o->classes, .name = "fc");
}

const tti_layer_def tti_kind_resnet = {
    .name = "resnet",
    .help = "ResNet-18, ResNet-34 or ResNet-50",
    .options = resnet_options,
    .size = sizeof(tt_layer_resnet_opts),
    .common = offsetof(tt_layer_resnet_opts, name),
    .main = "depth",
    .expand = resnet_expand,
};

tt_tensor *tt_layer_resnet_with(tt_model *m, const tt_layer_resnet_opts *opts)
{
    return tti_layer_call(m, &tti_kind_resnet, opts);
}
