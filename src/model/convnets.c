/*
 * convnets.c - mobilenet_v2, named as torchvision does, and unet, named as the usual PyTorch U-Net
 * does: "inc", "down1", "up1", "outc". Convolutions before a batch norm have no bias.
 */
#include "model/layer.h"
#include <stdio.h>
#include <tutti/models.h>

// A convolution, or a depthwise one (filters 0), and its batch norm.
typedef struct unit {
    const char *conv, *norm;
    int filters, kernel, stride;
    tt_act act;
    tt_over over;
    tt_tensor *from, *shortcut;
} unit;

static tt_tensor *unit_add(tt_model *m, const unit *u)
{
    tt_init init = {TT_INIT_HE_NORMAL, 0, 0};
    int pad = u->kernel / 2;
    tt_tensor *y = u->filters == 0
                       ? tt_layer_depthwise_conv2d(m, .kernel = {u->kernel}, .stride = {u->stride},
                                                   .pad = {pad}, .no_bias = true, .init = init,
                                                   .name = u->conv, .from = {u->from})
                       : tt_layer_conv2d(m, .filters = u->filters, .kernel = {u->kernel},
                                         .stride = {u->stride}, .pad = {pad}, .no_bias = true,
                                         .init = init, .name = u->conv, .from = {u->from});
    return tt_layer_batch_norm(m, .act = u->act, .over = u->over, .name = u->norm,
                               .from = {y, u->shortcut});
}

// ---- mobilenet_v2 ----------------------------------------------------------------------------

#define OPTS tt_layer_mobilenet_v2_opts
static const tt_option mobilenet_options[] = {
    {"classes", TT_OPT_INT32, "10", "number of classes", offsetof(OPTS, classes), 1, TTI_MAX_WIDTH,
     NULL},
    {"width", TT_OPT_FLOAT, "1", "factor on the number of channels, which stay multiples of 8",
     offsetof(OPTS, width), 0.01, 100, NULL},
    {"small", TT_OPT_BOOL, "false", "variant for 32 x 32 images: the first two strides are 1",
     offsetof(OPTS, small), 0, 0, NULL},
    {"dropout", TT_OPT_FLOAT, "0.2", "dropout rate before the last layer", offsetof(OPTS, dropout),
     0, 1, NULL},
    TTI_OVER_ROW(OPTS),
    TT_OPTION_END,
};

// The multiple of 8 nearest to n, not below 0.9 n.
static int channels(double n)
{
    int c = (int)(n + 4) / 8 * 8;
    c = c < 8 ? 8 : c;
    return c < 0.9 * n ? c + 8 : c;
}

typedef struct block {
    int at, expand, filters, stride;
} block;

// An inverted residual: wide, depthwise, narrow.
static tt_tensor *block_add(tt_model *m, const OPTS *o, tt_tensor *x, const block *k)
{
    char name[4][2][48];
    int in = (int)x->shape.dim[3], n = 0;
    bool wide = k->expand != 1;
    for (int i = 0; i < 2 + wide; i++) {
        bool last = i == 1 + wide; // "conv.2" and "conv.3", the others "conv.0.0" and "conv.0.1"
        for (int j = 0; j < 2; j++)
            snprintf(name[i][j], sizeof(name[i][j]),
                     last ? "features.%d.conv.%d" : "features.%d.conv.%d.%d", k->at,
                     last ? i + j : i, j);
    }
    if (wide) {
        unit_add(m,
                 &(unit){name[n][0], name[n][1], in * k->expand, 1, 1, TT_RELU6, o->over, x, NULL});
        n++;
    }
    unit_add(m, &(unit){name[n][0], name[n][1], 0, 3, k->stride, TT_RELU6, o->over, wide ? NULL : x,
                        NULL});
    n++;
    tt_tensor *shortcut = k->stride == 1 && in == k->filters ? x : NULL;
    return unit_add(
        m, &(unit){name[n][0], name[n][1], k->filters, 1, 1, TT_LINEAR, o->over, NULL, shortcut});
}

static tt_tensor *mobilenet_expand(tt_model *m, const void *opts, const char *name)
{
    (void)name;
    static const int rows[][4] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                                  {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    const OPTS *o = opts;
    tt_tensor *x = unit_add(m, &(unit){"features.0.0", "features.0.1", channels(32 * o->width), 3,
                                       o->small ? 1 : 2, TT_RELU6, o->over, o->from[0], NULL});
    int at = 1;
    for (int i = 0; i < TTI_COUNT(rows); i++) {
        for (int j = 0; j < rows[i][2] && x != NULL; j++) {
            int stride = j > 0 || (o->small && i == 1) ? 1 : rows[i][3];
            x = block_add(m, o, x,
                          &(block){at++, rows[i][0], channels(rows[i][1] * o->width), stride});
        }
    }
    if (x == NULL)
        return NULL;
    unit_add(m, &(unit){"features.18.0", "features.18.1",
                        channels(1280 * (o->width < 1 ? 1 : o->width)), 1, 1, TT_RELU6, o->over,
                        NULL, NULL});
    tt_layer_global_avg_pool2d(m, .name = "pool");
    if (o->dropout != 0)
        tt_layer_dropout(m, .rate = o->dropout, .name = "classifier.0");
    return tt_layer_dense(m, .units = o->classes, .init = {TT_INIT_NORMAL, 0, 0.01},
                          .name = "classifier.1");
}

const tti_layer_def tti_kind_mobilenet_v2 = {
    .name = "mobilenet_v2",
    .help = "MobileNet V2: images to classes",
    .options = mobilenet_options,
    .size = sizeof(OPTS),
    .common = offsetof(OPTS, name),
    .main = "classes",
    .expand = mobilenet_expand,
};

tt_tensor *tt_layer_mobilenet_v2_with(tt_model *m, const OPTS *opts)
{
    return tti_layer_call(m, &tti_kind_mobilenet_v2, opts);
}

// ---- unet ------------------------------------------------------------------------------------

static const tt_option unet_options[] = {
    {"classes", TT_OPT_INT32, "2", "number of classes, the channels of the output",
     offsetof(tt_layer_unet_opts, classes), 1, TTI_MAX_WIDTH, NULL},
    {"width", TT_OPT_INT32, "64", "number of channels of the first level, doubled at each next",
     offsetof(tt_layer_unet_opts, width), 1, 1 << 20, NULL},
    {"depth", TT_OPT_INT32, "4", "how often the size is halved",
     offsetof(tt_layer_unet_opts, depth), 1, 10, NULL},
    TTI_OVER_ROW(tt_layer_unet_opts),
    TT_OPTION_END,
};

#define MAX_DEPTH 10

static tt_tensor *double_conv(tt_model *m, const tt_layer_unet_opts *o, const char *path,
                              int filters, tt_tensor *from)
{
    char name[4][64];
    static const int numbers[] = {0, 1, 3, 4};
    for (int i = 0; i < 4; i++)
        snprintf(name[i], sizeof(name[i]), "%s.double_conv.%d", path, numbers[i]);
    unit_add(m, &(unit){name[0], name[1], filters, 3, 1, TT_RELU, o->over, from, NULL});
    return unit_add(m, &(unit){name[2], name[3], filters, 3, 1, TT_RELU, o->over, NULL, NULL});
}

// Twice the size, zeros around it up to that of skip, then both side by side through two layers.
static tt_tensor *up_add(tt_model *m, const tt_layer_unet_opts *o, int i, int filters,
                         tt_tensor *skip)
{
    char name[64];
    snprintf(name, sizeof(name), "up%d.up", i);
    tt_tensor *x = tt_layer_conv2d_transpose(m, .filters = filters, .kernel = {2}, .stride = {2},
                                             .init = {TT_INIT_HE_NORMAL, 0, 0}, .name = name);
    if (x == NULL)
        return NULL;
    int64_t dy = skip->shape.dim[1] - x->shape.dim[1], dx = skip->shape.dim[2] - x->shape.dim[2];
    snprintf(name, sizeof(name), "up%d.pad", i);
    if (dy != 0 || dx != 0)
        x = tt_layer_zero_pad(m, .pad = {4, {dy / 2, dy - dy / 2, dx / 2, dx - dx / 2}},
                              .name = name);
    snprintf(name, sizeof(name), "up%d.concat", i);
    x = x == NULL ? NULL : tt_layer_concat(m, .name = name, .from = {skip, x});
    snprintf(name, sizeof(name), "up%d.conv", i);
    return x == NULL ? NULL : double_conv(m, o, name, filters, x);
}

static tt_tensor *unet_expand(tt_model *m, const void *opts, const char *name)
{
    (void)name;
    const tt_layer_unet_opts *o = opts;
    tt_tensor *level[MAX_DEPTH + 1];
    char path[64];
    level[0] = double_conv(m, o, "inc", o->width, o->from[0]);
    for (int i = 1; i <= o->depth && level[i - 1] != NULL; i++) {
        const tt_shape *s = &level[i - 1]->shape;
        if (s->dim[1] < 2 || s->dim[2] < 2) {
            (void)TT_FAIL(m->ctx, TT_ESHAPE,
                          "unet: after %d halvings the image is %lld x %lld; set depth to %d",
                          i - 1, (long long)s->dim[1], (long long)s->dim[2], i - 1);
            return NULL;
        }
        snprintf(path, sizeof(path), "down%d.maxpool_conv.0", i);
        tt_layer_max_pool2d(m, .name = path);
        snprintf(path, sizeof(path), "down%d.maxpool_conv.1", i);
        level[i] = double_conv(m, o, path, o->width << i, NULL);
        if (i == o->depth && level[i] == NULL)
            return NULL;
    }
    tt_tensor *x = level[0];
    for (int i = 1; i <= o->depth && x != NULL; i++)
        x = up_add(m, o, i, o->width << (o->depth - i), level[o->depth - i]);
    if (x == NULL)
        return NULL;
    return tt_layer_conv2d(m, .filters = o->classes, .kernel = {1}, .name = "outc.conv");
}

const tti_layer_def tti_kind_unet = {
    .name = "unet",
    .help = "U-Net: images to a class for each pixel",
    .options = unet_options,
    .size = sizeof(tt_layer_unet_opts),
    .common = offsetof(tt_layer_unet_opts, name),
    .main = "classes",
    .expand = unet_expand,
};

tt_tensor *tt_layer_unet_with(tt_model *m, const tt_layer_unet_opts *opts)
{
    return tti_layer_call(m, &tti_kind_unet, opts);
}
