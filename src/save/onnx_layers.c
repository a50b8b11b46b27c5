/*
 * onnx_layers.c - products, convolutions, pooling and norms as ONNX nodes.
 */
#include "base/ctx.h"
#include "op/batch_norm.h"
#include "op/conv.h"
#include "op/gemm.h"
#include "op/norm.h"
#include "op/pool.h"
#include "save/onnx.h"
#include <string.h>

static const int64_t to_nchw[4] = {0, 3, 1, 2}, to_nhwc[4] = {0, 2, 3, 1};

// Sets output 0 to the activation of z, and output 1, which only gradients read, to z.
static void set_act(tti_onnx *o, const tt_node *n, int act, const char *z)
{
    tti_onnx_set(o, n->out, tti_onnx_act(o, act, n->out->dtype, z));
    if (n->n_out > 1)
        tti_onnx_set(o, n->outs[1], z);
}

// ---- matmul ----------------------------------------------------------------------------------

static const char *operand(tti_onnx *o, const tt_tensor *t, bool transposed)
{
    int64_t order[TT_MAX_RANK];
    int rank = t->shape.rank;
    if (!transposed)
        return tti_onnx_value(o, t);
    for (int i = 0; i < rank; i++)
        order[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
    return tti_onnx_permuted(o, t, order, NULL);
}

static tt_status write_matmul(tti_onnx *o, const tt_node *n)
{
    const tti_matmul_attr *a = n->attr;
    const char *x = operand(o, n->in[0], a->transpose_a), *w = operand(o, n->in[1], a->transpose_b);
    const char *bias = n->n_in > 2 ? tti_onnx_value(o, n->in[2]) : NULL;
    const char *z = tti_onnx_2(o, "MatMul", x, w);
    if (bias != NULL)
        z = tti_onnx_2(o, "Add", z, bias);
    if (n->out->dtype != n->in[0]->dtype)
        z = tti_onnx_cast(o, z, n->out->dtype);
    set_act(o, n, a->act, z);
    return TT_OK;
}

// ---- windows over images ---------------------------------------------------------------------

// Ours: top, bottom, left, right; ONNX's: top, left, bottom, right.
static void window(tti_onnx *o, const int64_t *kernel, const tt_ints *stride, const tt_ints *pad)
{
    int64_t pads[4] = {pad->v[0], pad->v[2], pad->v[1], pad->v[3]};
    tti_onnx_attr_ints(o, "kernel_shape", kernel, 2);
    tti_onnx_attr_ints(o, "strides", stride->v, 2);
    tti_onnx_attr_ints(o, "pads", pads, 4);
}

static const char *channels_first(tti_onnx *o, const tt_tensor *x)
{
    return tti_onnx_transpose(o, tti_onnx_value(o, x), to_nchw, 4);
}

static tt_status write_conv(tti_onnx *o, const tt_node *n)
{
    const tti_conv_attr *a = n->attr;
    const tt_shape *w = &n->in[1]->shape;
    bool depthwise = strcmp(n->op->name, "conv2d") != 0;
    static const int64_t plain[4] = {3, 2, 0, 1}, by_channel[4] = {2, 3, 0, 1};
    tt_shape view = TT_SHAPE(w->dim[2] * w->dim[3], 1, w->dim[0], w->dim[1]);
    const char *x = channels_first(o, n->in[0]);
    const char *kernel = depthwise ? tti_onnx_permuted(o, n->in[1], by_channel, &view)
                                   : tti_onnx_permuted(o, n->in[1], plain, NULL);
    const char *bias = n->n_in > 2 ? tti_onnx_value(o, n->in[2]) : NULL;
    tti_onnx_begin(o, "Conv");
    tti_onnx_in(o, x);
    tti_onnx_in(o, kernel);
    if (bias != NULL)
        tti_onnx_in(o, bias);
    window(o, w->dim, &a->stride, &a->pad);
    tti_onnx_attr_int(o, "group", depthwise ? w->dim[2] : 1);
    set_act(o, n, a->act, tti_onnx_transpose(o, tti_onnx_end(o), to_nhwc, 4));
    return TT_OK;
}

// The gradient by the input is a transposed convolution: ConvTranspose.
static tt_status write_conv_dx(tti_onnx *o, const tt_node *n)
{
    const tti_conv_attr *a = n->attr;
    const tt_shape *w = &n->in[1]->shape, *x = &n->in[0]->shape;
    static const int64_t order[4] = {3, 2, 0, 1};
    int64_t more[2] = {0, 0};
    tt_ints pad = a->pad;
    for (int i = 0; i < 2; i++) {
        int64_t all = (x->dim[1 + i] - 1) * a->stride.v[i] + w->dim[i];
        int64_t end = all - a->pad.v[2 * i] - a->size.v[i];
        pad.v[2 * i + 1] = end > 0 ? end : 0;
        more[i] = end < 0 ? -end : 0;
    }
    const char *first = channels_first(o, n->in[0]);
    const char *kernel = tti_onnx_permuted(o, n->in[1], order, NULL);
    tti_onnx_begin(o, "ConvTranspose");
    tti_onnx_in(o, first);
    tti_onnx_in(o, kernel);
    window(o, w->dim, &a->stride, &pad);
    tti_onnx_attr_ints(o, "output_padding", more, 2);
    tti_onnx_set(o, n->out, tti_onnx_transpose(o, tti_onnx_end(o), to_nhwc, 4));
    return TT_OK;
}

static tt_status write_pool(tti_onnx *o, const tt_node *n)
{
    const tti_pool_attr *a = n->attr;
    bool is_max = strcmp(n->op->name, "max_pool2d") == 0;
    const char *x = channels_first(o, n->in[0]);
    tti_onnx_begin(o, is_max ? "MaxPool" : "AveragePool");
    tti_onnx_in(o, x);
    window(o, a->size.v, &a->stride, &a->pad);
    tti_onnx_set(o, n->out, tti_onnx_transpose(o, tti_onnx_end(o), to_nhwc, 4));
    return TT_OK;
}

// ---- norms -----------------------------------------------------------------------------------

// A vector of c entries, all the same.
static const char *vector(tti_onnx *o, tt_dtype dtype, int64_t c, double v)
{
    char *data = tti_calloc(o->ctx, (size_t)c, tt_dtype_bytes(dtype));
    if (data == NULL) {
        o->failed = true;
        return "";
    }
    for (int64_t i = 0; i < c; i++)
        tti_put_number(dtype, data, i, v);
    const char *name = tti_onnx_const(o, dtype, TT_SHAPE(c), data);
    tti_free(o->ctx, data);
    return name;
}

static tt_status write_layer_norm(tti_onnx *o, const tt_node *n)
{
    const tti_norm_attr *a = n->attr;
    const tt_shape *s = &n->out->shape;
    const char *x = tti_onnx_value(o, n->in[0]);
    const char *gamma = a->has_gamma ? tti_onnx_value(o, n->in[1])
                                     : vector(o, n->out->dtype, s->dim[s->rank - 1], 1);
    const char *beta = a->has_beta ? tti_onnx_value(o, n->in[1 + a->has_gamma]) : NULL;
    tti_onnx_begin(o, "LayerNormalization");
    tti_onnx_in(o, x);
    tti_onnx_in(o, gamma);
    if (beta != NULL)
        tti_onnx_in(o, beta);
    tti_onnx_attr_int(o, "axis", -1);
    tti_onnx_attr_float(o, "epsilon", a->eps);
    tti_onnx_set(o, n->out, tti_onnx_end(o));
    return TT_OK;
}

static tt_status write_rms_norm(tti_onnx *o, const tt_node *n)
{
    const tti_norm_attr *a = n->attr;
    const char *x = tti_onnx_value(o, n->in[0]), *square = tti_onnx_2(o, "Mul", x, x);
    int64_t last = -1;
    tti_onnx_begin(o, "ReduceMean");
    tti_onnx_in(o, square);
    tti_onnx_attr_ints(o, "axes", &last, 1);
    tti_onnx_attr_int(o, "keepdims", 1);
    const char *sum =
        tti_onnx_2(o, "Add", tti_onnx_end(o), tti_onnx_scalar(o, n->out->dtype, a->eps));
    const char *y = tti_onnx_2(o, "Div", x, tti_onnx_1(o, "Sqrt", sum));
    if (a->has_gamma)
        y = tti_onnx_2(o, "Mul", y, tti_onnx_value(o, n->in[1]));
    tti_onnx_set(o, n->out, y);
    return TT_OK;
}

// ONNX has the channels second.
static tt_status write_batch_norm(tti_onnx *o, const tt_node *n)
{
    const tti_batch_norm_attr *a = n->attr;
    int rank = n->out->shape.rank;
    int64_t there[TT_MAX_RANK], back[TT_MAX_RANK];
    const char *in[5], *residual = a->has_residual ? tti_onnx_value(o, n->in[5]) : NULL;
    static const int order[4] = {3, 4, 1, 2}; // gamma, beta, mean, variance
    for (int i = 0; i < rank; i++) {
        there[i] = i == 0 ? 0 : i == 1 ? rank - 1 : i - 1;
        back[i] = i == 0 ? 0 : i == rank - 1 ? 1 : i + 1;
    }
    in[0] = tti_onnx_value(o, n->in[0]);
    if (rank > 2)
        in[0] = tti_onnx_transpose(o, in[0], there, rank);
    for (int i = 0; i < 4; i++)
        in[1 + i] = tti_onnx_value(o, n->in[order[i]]);
    tti_onnx_begin(o, "BatchNormalization");
    for (int i = 0; i < 5; i++)
        tti_onnx_in(o, in[i]);
    tti_onnx_attr_float(o, "epsilon", a->eps);
    const char *z = tti_onnx_end(o);
    if (rank > 2)
        z = tti_onnx_transpose(o, z, back, rank);
    if (residual != NULL)
        z = tti_onnx_2(o, "Add", z, residual);
    set_act(o, n, a->act, z);
    return TT_OK;
}

const tti_onnx_op tti_onnx_layers[] = {
    {"matmul", write_matmul},
    {"conv2d", write_conv},
    {"depthwise_conv2d", write_conv},
    {"conv2d_dx", write_conv_dx},
    {"max_pool2d", write_pool},
    {"avg_pool2d", write_pool},
    {"layer_norm", write_layer_norm},
    {"rms_norm", write_rms_norm},
    {"batch_norm_apply", write_batch_norm},
    {NULL, NULL},
};
