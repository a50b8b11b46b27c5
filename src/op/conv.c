/*
 * conv.c - 2-D convolution of images [batch, h, w, c_in] with w [kh, kw, c_in, c_out]. Shape rules:
 * conv_shape.c; builders: conv_with.c; how kernels run: conv_plan.c; kernels: conv_cpu.c,
 * conv_dw_cpu.c.
 *
 *   z[n, i, j, o]  = sum over (kh, kw, c) of x[n, i sh - pt + kh, j sw - pl + kw, c] w[..., c, o]
 *   y              = act(z + bias)
 *   dx[n, p, q, c] = sum over (kh, kw, o) of dz[n, (p + pt - kh) / sh, (q + pl - kw) / sw, o] w
 *   dw             = per lane, sum over (n, i, j) of x dz; then the lane tree
 *
 * Each sum is one chain of fused multiply-adds in the order written, ended by + 0; taps that fall
 * into padding, or between strides in dx, are left out. Convolution, bias and activation are one
 * node; a second output z exists only where the activation's gradient needs it.
 */
#include "op/conv.h"
#include "op/shape.h"

static const char *const act_names[] = {"linear",     "relu",     "gelu", "gelu_erf",
                                        "sigmoid",    "tanh",     "silu", "elu",
                                        "leaky_relu", "softplus", NULL};
#define STRIDE_ROW                                                         \
    {                                                                      \
        "stride", TT_OPT_INTS, "[1, 1]", "vertical and horizontal stride", \
            offsetof(tti_conv_attr, stride), 0, 0, NULL                    \
    }
#define PAD_ROW                                                                                \
    {                                                                                          \
        "pad", TT_OPT_INTS, "[0, 0, 0, 0]", "zero padding at the top, bottom, left and right", \
            offsetof(tti_conv_attr, pad), 0, 0, NULL                                           \
    }
const tt_option tti_conv_options[] = {
    STRIDE_ROW,
    PAD_ROW,
    {"act", TT_OPT_ENUM, "linear", "activation", offsetof(tti_conv_attr, act), 0, 0, act_names},
    TT_OPTION_END,
};
#define SIZE_ROW(help_)                                                             \
    {                                                                               \
        "size", TT_OPT_INTS, NULL, help_, offsetof(tti_conv_attr, size), 0, 0, NULL \
    }
const tt_option tti_conv_dx_options[] = {
    STRIDE_ROW,
    PAD_ROW,
    SIZE_ROW("height and width of x"),
    TT_OPTION_END,
};
const tt_option tti_conv_dw_options[] = {
    STRIDE_ROW,
    PAD_ROW,
    SIZE_ROW("height and width of the kernel"),
    {"wide", TT_OPT_BOOL, "false", "compute y as f32 for any types of x and dy",
     offsetof(tti_conv_attr, wide), 0, 0, NULL},
    TT_OPTION_END,
};

tt_status tti_conv_fill(tt_ctx *ctx, const char *name, tt_tensor *x, tt_tensor *w,
                        const tt_conv2d_opts *o, tti_conv_attr *out)
{
    static const int64_t one[2] = {1, 1};
    char text[TT_SHAPE_TEXT];
    *out = (tti_conv_attr){.act = (int)o->act};
    if (w->shape.rank != 4)
        return TT_FAIL(ctx, TT_ESHAPE, "%s: w is %s, not [height, width, in, out]", name,
                       tt_shape_text(&w->shape, text));
    return tti_window_fill(ctx, name, x, w->shape.dim, o->stride, one, o->padding, o->pad,
                           &out->stride, &out->pad);
}

// ---- gradients -------------------------------------------------------------------------------

tt_tensor *tti_conv_dz(tt_graph *g, const tt_node *n, int act, tt_tensor *const *dy)
{
    tt_tensor *dz = dy[0];
    if (dz != NULL && act != TT_LINEAR)
        dz = tti_act_grad(g, act, dz, n->outs[n->n_out - 1]);
    if (n->n_out > 1 && dy[1] != NULL) // z is used by the gradient's own gradient
        dz = dz == NULL ? dy[1] : tt_add(g, dz, dy[1]);
    return dz;
}

static tt_tensor *conv_dx(tt_graph *g, const tti_conv_attr *of, tt_tensor *dy, tt_tensor *w,
                          const tt_shape *x)
{
    tti_conv_attr a = {.stride = of->stride, .pad = of->pad};
    a.size = (tt_ints){.n = 2, .v = {x->dim[1], x->dim[2]}};
    return tt_node_out(g, &tti_op_conv2d_dx, 2, (tt_tensor *[]){dy, w}, &a);
}

static tt_tensor *conv_dw(tt_graph *g, const tti_conv_attr *of, tt_tensor *x, tt_tensor *dy,
                          const tt_shape *w)
{
    tti_conv_attr a = {.stride = of->stride, .pad = of->pad};
    a.size = (tt_ints){.n = 2, .v = {w->dim[0], w->dim[1]}};
    return tt_node_out(g, &tti_op_conv2d_dw, 2, (tt_tensor *[]){x, dy}, &a);
}

static tt_tensor *conv(tt_graph *g, const tti_conv_attr *of, tt_tensor *x, tt_tensor *w)
{
    tti_conv_attr a = {.stride = of->stride, .pad = of->pad};
    return tt_node_out(g, &tti_op_conv2d, 2, (tt_tensor *[]){x, w}, &a);
}

static void conv2d_grad(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    const tti_conv_attr *a = n->attr;
    tt_tensor *dz = tti_conv_dz(g, n, a->act, dy);
    if (dz == NULL)
        return;
    dx[0] = conv_dx(g, a, dz, n->in[1], &n->in[0]->shape);
    dx[1] = conv_dw(g, a, n->in[0], dz, &n->in[1]->shape);
    if (n->n_in > 2)
        dx[2] = tt_sum(g, dz, .axes = TT_AXES(0, 1, 2));
}

// Both are linear in each input, so their gradients are the other two.
static void conv2d_dx_grad(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    if (dy[0] == NULL)
        return;
    dx[0] = conv(g, n->attr, dy[0], n->in[1]);
    dx[1] = conv_dw(g, n->attr, dy[0], n->in[0], &n->in[1]->shape);
}

static void conv2d_dw_grad(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    if (dy[0] == NULL)
        return;
    tt_tensor *dw = tt_cast(g, dy[0], n->in[0]->dtype);
    dx[0] = conv_dx(g, n->attr, n->in[1], dw, &n->in[0]->shape);
    dx[1] = conv(g, n->attr, n->in[0], dw);
}

// ---- records ---------------------------------------------------------------------------------

tt_status tti_conv_split_dw(const tt_split_query *q)
{
    tt_split_kind kind = TT_SPLIT_MIXES;
    if (q->axis[0] == 0 && q->axis[1] == 0)
        kind = TT_SPLIT_LANE_SUM;
    else if (q->axis[0] < 0 && q->axis[1] < 0)
        kind = TT_SPLIT_WHOLE;
    q->out[0] = (tt_split){kind, -1};
    return TT_OK;
}

static tt_status infer(tt_infer *q)
{
    return tti_conv_infer(q, false);
}

static tt_status infer_dx(tt_infer *q)
{
    return tti_conv_infer_dx(q, false);
}

static tt_status infer_dw(tt_infer *q)
{
    return tti_conv_infer_dw(q, false);
}

TTI_IMAGE_OP(conv2d, 2, 3, tti_conv_options, tti_conv_attr, infer, conv2d_grad, tti_conv2d,
             tti_conv_prepare,
             "2-D convolution of x [batch, h, w, cin] with w [kh, kw, cin, cout], with optional "
             "bias and act");

TTI_IMAGE_OP(conv2d_dx, 2, 0, tti_conv_dx_options, tti_conv_attr, infer_dx, conv2d_dx_grad,
             tti_conv2d, tti_conv_dx_prepare,
             "gradient of conv2d with respect to x, from dy and w");

const tt_op tti_op_conv2d_dw = {
    .name = "conv2d_dw",
    .help = "gradient of conv2d with respect to w, from x and dy: a sum over the batch",
    .inputs = 2,
    TTI_ATTRS(tti_conv_dw_options, tti_conv_attr),
    .infer = infer_dw,
    .split = tti_conv_split_dw,
    .grad = conv2d_dw_grad,
    .kernel = {[TT_CPU] = TTI_CPU(tti_conv2d_dw, tti_conv_dw_prepare)},
};
