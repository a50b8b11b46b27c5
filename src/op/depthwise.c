/*
 * depthwise.c - depthwise 2-D convolution: every channel of x [batch, h, w, c] has its own
 * filters w [kh, kw, c, m]; output channel c m + j is channel c by filter j. Kernels:
 * depthwise_cpu.c. Geometry, attributes and shape rules are those of conv2d (conv.h).
 *
 *   z[.., c m + j] = sum over (kh, kw) of x[.., c] w[kh, kw, c, j];  y = act(z + bias)
 *   dx[.., c]      = sum over (kh, kw, j) of dz[.., c m + j] w[kh, kw, c, j]
 *   dw             = per lane, sum over (n, i, j) of x dz; then the lane tree
 *
 * Each sum is one chain of fused multiply-adds in the order written, ended by + 0; taps outside
 * are left out.
 */
#include "op/depthwise.h"
#include "op/shape.h"
#include <string.h>

_Static_assert(sizeof(tti_depthwise_tune) <= TT_TUNE_BYTES, "tune is too large");

extern const tt_op tti_op_depthwise_conv2d, tti_op_depthwise_conv2d_dx, tti_op_depthwise_conv2d_dw;

tt_tensor *tt_depthwise_conv2d_with(tt_graph *g, tt_tensor *x, tt_tensor *w,
                                    const tt_conv2d_opts *opts)
{
    tt_conv2d_opts o = {0};
    tti_conv_attr a;
    if (!tti_given(g, "depthwise_conv2d", x) || !tti_given(g, "depthwise_conv2d", w))
        return NULL;
    if (opts != NULL && TTI_OPTS_COPY(g->ctx, "depthwise_conv2d", opts, &o) != TT_OK)
        return NULL;
    if (tti_conv_fill(tt_graph_get_ctx(g), "depthwise_conv2d", x, w, &o, &a) != TT_OK)
        return NULL;
    if (o.groups > 1 || o.dilation[0] > 1 || o.dilation[1] > 1) {
        (void)TT_FAIL(g->ctx, TT_EINVAL,
                      "depthwise_conv2d: it has neither groups (%d) nor dilation (%d, %d); conv2d "
                      "with groups = channels does the same with both",
                      o.groups, o.dilation[0], o.dilation[1]);
        return NULL;
    }
    a.act = (int)tti_act_fused(o.act);
    tt_tensor *y = tt_node_out(g, &tti_op_depthwise_conv2d, o.bias != NULL ? 3 : 2,
                               (tt_tensor *[]){x, w, o.bias}, &a);
    return tti_act_apart(g, y, o.act);
}

// ---- gradients -------------------------------------------------------------------------------

static tt_tensor *grad_node(tt_graph *g, const tt_op *op, const tti_conv_attr *of, tt_tensor *a,
                            tt_tensor *b, const int64_t size[2])
{
    tti_conv_attr attr = {.stride = of->stride, .pad = of->pad};
    if (size != NULL)
        attr.size = (tt_ints){.n = 2, .v = {size[0], size[1]}};
    return tt_node_out(g, op, 2, (tt_tensor *[]){a, b}, &attr);
}

static void depthwise_grad(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    const tti_conv_attr *a = n->attr;
    tt_tensor *dz = tti_conv_dz(g, n, a->act, dy);
    if (dz == NULL)
        return;
    dx[0] = grad_node(g, &tti_op_depthwise_conv2d_dx, a, dz, n->in[1], n->in[0]->shape.dim + 1);
    dx[1] = grad_node(g, &tti_op_depthwise_conv2d_dw, a, n->in[0], dz, n->in[1]->shape.dim);
    if (n->n_in > 2)
        dx[2] = tt_sum(g, dz, .axes = TT_AXES(0, 1, 2));
}

static void depthwise_dx_grad(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    if (dy[0] == NULL)
        return;
    dx[0] = grad_node(g, &tti_op_depthwise_conv2d, n->attr, dy[0], n->in[1], NULL);
    dx[1] =
        grad_node(g, &tti_op_depthwise_conv2d_dw, n->attr, dy[0], n->in[0], n->in[1]->shape.dim);
}

static void depthwise_dw_grad(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    if (dy[0] == NULL)
        return;
    tt_tensor *dw = tt_cast(g, dy[0], n->in[0]->dtype);
    dx[0] =
        grad_node(g, &tti_op_depthwise_conv2d_dx, n->attr, n->in[1], dw, n->in[0]->shape.dim + 1);
    dx[1] = grad_node(g, &tti_op_depthwise_conv2d, n->attr, n->in[0], dw, NULL);
}

// ---- how the kernels run ---------------------------------------------------------------------

static void plan(tt_prep *p, tti_depthwise_tune *t)
{
    const tti_conv_dims *d = &t->d;
    t->mult = d->c_out / d->c_in;
    double n = (double)d->batch * (double)(d->oh * d->ow) * (double)(d->kh * d->kw);
    p->ns = 200 + 4 * n * (double)d->c_out / tti_conv_flops_per_ns(p->isa);
}

// Units are output rows; channels that feed several outputs are spread out in local first.
static tt_status prepare(tt_prep *p)
{
    tti_depthwise_tune t = {0};
    t.d = tti_conv_dims_of(p->attr, &p->in[0].shape, &p->in[1].shape, &p->out_args[0].shape);
    plan(p, &t);
    if (t.mult > 1)
        p->local_bytes = (size_t)(t.d.kh * t.d.w * t.d.c_out) * tti_real_bytes(p->isa);
    p->units[0] = t.d.batch * t.d.oh;
    memcpy(p->tune, &t, sizeof(t));
    return TT_OK;
}

// Units are rows of dx. With several filters a channel, w and dy are turned to [.., m, c] first.
static tt_status prepare_dx(tt_prep *p)
{
    tti_depthwise_tune t = {0};
    t.d = tti_conv_dims_of(p->attr, &p->out_args[0].shape, &p->in[1].shape, &p->in[0].shape);
    plan(p, &t);
    int compute = t.mult > 1 ? 1 : 0;
    if (t.mult > 1) {
        int64_t hit = (t.d.kh + t.d.sh - 1) / t.d.sh; // rows of dy that one row of dx gathers
        p->units[0] = t.d.kh * t.d.kw;
        p->scratch_bytes = (size_t)(t.d.kh * t.d.kw * t.d.c_out) * tti_real_bytes(p->isa);
        p->local_bytes = (size_t)(hit * t.d.ow * t.d.c_out) * tti_real_bytes(p->isa);
    }
    p->n_phases = compute + 1;
    p->units[compute] = t.d.batch * t.d.h;
    memcpy(p->tune, &t, sizeof(t));
    return TT_OK;
}

// Phase 0: a unit is a lane by a block of channels. Phase 1: the lane tree, by vectors.
static tt_status prepare_dw(tt_prep *p)
{
    tti_depthwise_tune t = {0};
    const tti_conv_attr *a = p->attr;
    const tt_shape w = TT_SHAPE(a->size.v[0], a->size.v[1], 0, 0);
    t.d = tti_conv_dims_of(a, &p->in[0].shape, &w, &p->in[1].shape);
    plan(p, &t);
    int64_t count = t.d.kh * t.d.kw * t.d.c_out;
    t.lanes = p->in[0].open >= 0 ? p->lanes->n : 1;
    t.blocks = (t.d.c_out + TTI_DEPTHWISE_BLOCK - 1) / TTI_DEPTHWISE_BLOCK;
    p->scratch_bytes = (size_t)(t.lanes * count) * tti_real_bytes(p->isa);
    if (t.mult > 1)
        p->local_bytes = (size_t)(t.d.w * TTI_DEPTHWISE_BLOCK) * tti_real_bytes(p->isa);
    p->n_phases = 2;
    p->units[0] = t.lanes * t.blocks;
    p->units[1] = (count + 15) / 16;
    p->grain[1] = 64;
    memcpy(p->tune, &t, sizeof(t));
    return TT_OK;
}

// ---- records ---------------------------------------------------------------------------------

static tt_status infer(tt_infer *q)
{
    return tti_conv_infer(q, true);
}

static tt_status infer_dx(tt_infer *q)
{
    return tti_conv_infer_dx(q, true);
}

static tt_status infer_dw(tt_infer *q)
{
    return tti_conv_infer_dw(q, true);
}

TTI_IMAGE_OP(depthwise_conv2d, 2, 3, tti_conv_options, tti_conv_attr, infer, depthwise_grad,
             tti_depthwise, prepare,
             "depthwise 2-D convolution of x with w [kh, kw, c, m], with optional bias and act");

TTI_IMAGE_OP(depthwise_conv2d_dx, 2, 0, tti_conv_dx_options, tti_conv_attr, infer_dx,
             depthwise_dx_grad, tti_depthwise_dx, prepare_dx,
             "gradient of depthwise_conv2d with respect to x, from dy and w");

const tt_op tti_op_depthwise_conv2d_dw = {
    .name = "depthwise_conv2d_dw",
    .help = "gradient of depthwise_conv2d with respect to w, from x and dy: a sum over the batch",
    .inputs = 2,
    TTI_ATTRS(tti_conv_dw_options, tti_conv_attr),
    .infer = infer_dw,
    .split = tti_conv_split_dw,
    .grad = depthwise_dw_grad,
    .kernel = {[TT_CPU] = TTI_CPU(tti_depthwise_dw, prepare_dw)},
};
