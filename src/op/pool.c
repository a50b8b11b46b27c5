/*
 * pool.c - pooling over windows of images [batch, h, w, c]. Kernels: pool_cpu.c.
 *
 *   max: the largest of the window's entries inside x, or NaN if one is; its gradient goes to the
 *        lowest index (kh, kw) that has it, found again from x, as that costs less than keeping
 *        indices
 *   avg: the sum over (kh, kw) ascending, divided by the number of entries inside x
 *   dx:  contributions of windows are added in the order (oh, ow)
 *
 * Pooling over the whole image is a window of its size.
 */
#include "op/pool.h"
#include "op/shape.h"
#include <string.h>

_Static_assert(sizeof(tti_pool_tune) <= TT_TUNE_BYTES, "tune is too large");

extern const tt_op tti_op_max_pool2d, tti_op_max_pool2d_grad, tti_op_avg_pool2d,
    tti_op_avg_pool2d_grad;

#define WINDOW_ROWS                                                                              \
    {"size", TT_OPT_INTS, NULL, "height and width of the window", offsetof(tti_pool_attr, size), \
     0,      0,           NULL},                                                                 \
        {"stride",                                                                               \
         TT_OPT_INTS,                                                                            \
         NULL,                                                                                   \
         "vertical and horizontal stride",                                                       \
         offsetof(tti_pool_attr, stride),                                                        \
         0,                                                                                      \
         0,                                                                                      \
         NULL},                                                                                  \
    {                                                                                            \
        "pad", TT_OPT_INTS, "[0, 0, 0, 0]", "padding at the top, bottom, left and right",        \
            offsetof(tti_pool_attr, pad), 0, 0, NULL                                             \
    }
static const tt_option pool_options[] = {WINDOW_ROWS, TT_OPTION_END};
static const tt_option avg_grad_options[] = {
    WINDOW_ROWS,
    {"image", TT_OPT_INTS, NULL, "height and width of x", offsetof(tti_pool_attr, image), 0, 0,
     NULL},
    TT_OPTION_END,
};

// ---- builders --------------------------------------------------------------------------------

static tt_tensor *build(tt_graph *g, const tt_op *op, tt_tensor *x, const tt_pool_opts *o)
{
    if (!tti_given(g, op->name, x))
        return NULL;
    tt_ctx *ctx = tt_graph_get_ctx(g);
    static const tt_pool_opts none;
    tt_pool_opts own;
    if (o != NULL && TTI_OPTS_COPY(ctx, op->name, o, &own) != TT_OK)
        return NULL;
    o = o != NULL ? &own : &none;
    tti_pool_attr a = {.size = {.n = 2, .v = {o->size[0], o->size[1]}}};
    if (o->size[0] < 1 || o->size[1] < 1) {
        (void)TT_FAIL(ctx, TT_EINVAL, "%s: the window is %d x %d", op->name, o->size[0],
                      o->size[1]);
        return NULL;
    }
    if (tti_window_fill(ctx, op->name, x, a.size.v, o->stride, a.size.v, o->padding, o->pad,
                        &a.stride, &a.pad) != TT_OK)
        return NULL;
    return tt_node_out(g, op, 1, &x, &a);
}

tt_tensor *tt_max_pool2d_with(tt_graph *g, tt_tensor *x, const tt_pool_opts *opts)
{
    return build(g, &tti_op_max_pool2d, x, opts);
}

tt_tensor *tt_avg_pool2d_with(tt_graph *g, tt_tensor *x, const tt_pool_opts *opts)
{
    return build(g, &tti_op_avg_pool2d, x, opts);
}

static tt_tensor *whole_image(tt_graph *g, const tt_op *op, const char *name, tt_tensor *x)
{
    if (!tti_given(g, name, x) || tti_image_check(tt_graph_get_ctx(g), name, "x", x) != TT_OK)
        return NULL;
    const int64_t *dim = x->shape.dim;
    tti_pool_attr a = {
        .size = {.n = 2, .v = {dim[1], dim[2]}},
        .stride = {.n = 2, .v = {1, 1}},
        .pad = {.n = 4},
    };
    tt_tensor *y = tt_node_out(g, op, 1, &x, &a);
    return y == NULL ? NULL : tt_reshape(g, y, TT_SHAPE(dim[0], dim[3]));
}

tt_tensor *tt_global_avg_pool2d(tt_graph *g, tt_tensor *x)
{
    return whole_image(g, &tti_op_avg_pool2d, "global_avg_pool2d", x);
}

tt_tensor *tt_global_max_pool2d(tt_graph *g, tt_tensor *x)
{
    return whole_image(g, &tti_op_max_pool2d, "global_max_pool2d", x);
}

// ---- shapes ----------------------------------------------------------------------------------

// The shape of the output for an image x. Padding is narrower than the window: none is all padding.
static tt_status window_shape(tt_infer *q, const tt_shape *x, tt_shape *y)
{
    const tti_pool_attr *a = q->attr;
    char text[TT_SHAPE_TEXT];
    TT_TRY(tti_window_check(q->ctx, q->name, &a->stride, &a->pad));
    *y = *x;
    for (int i = 0; i < 2; i++) {
        int64_t k = a->size.n == 2 ? a->size.v[i] : 0;
        if (k < 1)
            return TT_FAIL(q->ctx, TT_EINVAL,
                           "%s: a window needs a height and a width of 1 or more", q->name);
        if (a->pad.v[2 * i] >= k || a->pad.v[2 * i + 1] >= k)
            return TT_FAIL(
                q->ctx, TT_EINVAL, "%s: padding %lld, %lld is not below the window's %lld", q->name,
                (long long)a->pad.v[2 * i], (long long)a->pad.v[2 * i + 1], (long long)k);
        y->dim[1 + i] = tti_window_out(&a->stride, &a->pad, i, x->dim[1 + i], k);
        if (y->dim[1 + i] < 1)
            return TT_FAIL(q->ctx, TT_ESHAPE, "%s: a window of %lld x %lld does not fit into x %s",
                           q->name, (long long)a->size.v[0], (long long)a->size.v[1],
                           tt_shape_text(x, text));
    }
    return TT_OK;
}

static tt_status infer(tt_infer *q)
{
    TT_TRY(tti_image_check(q->ctx, q->name, "x", q->in[0]));
    q->dtype[0] = q->in[0]->dtype;
    return window_shape(q, &q->in[0]->shape, &q->shape[0]);
}

// That dy is the output's gradient for x.
static tt_status check_dy(tt_infer *q, const tt_tensor *dy, const tt_shape *x)
{
    tt_shape y;
    char tx[TT_SHAPE_TEXT], ty[TT_SHAPE_TEXT];
    TT_TRY(tti_image_check(q->ctx, q->name, "dy", dy));
    TT_TRY(window_shape(q, x, &y));
    if (!tti_shape_equal(&y, &dy->shape))
        return TT_FAIL(q->ctx, TT_ESHAPE, "%s: x is %s but dy is %s", q->name, tt_shape_text(x, tx),
                       tt_shape_text(&dy->shape, ty));
    q->shape[0] = *x;
    q->dtype[0] = dy->dtype;
    return TT_OK;
}

static tt_status infer_max_grad(tt_infer *q)
{
    TT_TRY(tti_image_check(q->ctx, q->name, "x", q->in[0]));
    if (q->in[0]->dtype != q->in[1]->dtype)
        return TT_FAIL(q->ctx, TT_EDTYPE, "%s: x is %s but dy is %s", q->name,
                       tt_dtype_name(q->in[0]->dtype), tt_dtype_name(q->in[1]->dtype));
    return check_dy(q, q->in[1], &q->in[0]->shape);
}

static tt_status infer_avg_grad(tt_infer *q)
{
    const tti_pool_attr *a = q->attr;
    TT_TRY(tti_image_check(q->ctx, q->name, "dy", q->in[0]));
    tt_shape x = q->in[0]->shape;
    for (int i = 0; i < 2; i++) {
        x.dim[1 + i] = a->image.n == 2 ? a->image.v[i] : 0;
        if (x.dim[1 + i] < 1 || x.dim[1 + i] > INT32_MAX)
            return TT_FAIL(q->ctx, TT_EINVAL, "%s: image must be a height and a width", q->name);
    }
    return check_dy(q, q->in[0], &x);
}

// ---- gradients -------------------------------------------------------------------------------

static void max_pool_grad(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    if (dy[0] != NULL)
        dx[0] =
            tt_node_out(g, &tti_op_max_pool2d_grad, 2, (tt_tensor *[]){n->in[0], dy[0]}, n->attr);
}

static void avg_pool_grad(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    if (dy[0] == NULL)
        return;
    tti_pool_attr a = *(const tti_pool_attr *)n->attr;
    a.image = (tt_ints){.n = 2, .v = {n->in[0]->shape.dim[1], n->in[0]->shape.dim[2]}};
    dx[0] = tt_node_out(g, &tti_op_avg_pool2d_grad, 1, (tt_tensor *[]){dy[0]}, &a);
}

static void avg_pool_grad_grad(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    if (dy[0] == NULL)
        return;
    tti_pool_attr a = *(const tti_pool_attr *)n->attr;
    a.image = (tt_ints){0};
    dx[0] = tt_node_out(g, &tti_op_avg_pool2d, 1, (tt_tensor *[]){dy[0]}, &a);
}

// ---- how the kernels run ---------------------------------------------------------------------

static void plan(tt_prep *p, const tt_shape *x, const tt_shape *y, tti_pool_tune *t)
{
    const tti_pool_attr *a = p->attr;
    *t = (tti_pool_tune){
        .batch = x->dim[0],
        .h = x->dim[1],
        .w = x->dim[2],
        .c = x->dim[3],
        .oh = y->dim[1],
        .ow = y->dim[2],
        .kh = a->size.v[0],
        .kw = a->size.v[1],
        .sh = a->stride.v[0],
        .sw = a->stride.v[1],
        .pt = a->pad.v[0],
        .pl = a->pad.v[2],
        .by_image = a->size.v[0] > a->stride.v[0],
    };
    double taps = (double)(t->batch * t->oh * t->ow) * (double)(t->kh * t->kw);
    p->ns = 200 + taps * (double)t->c * 0.15;
}

static tt_status prepare(tt_prep *p) // units: rows of the output
{
    tti_pool_tune t;
    plan(p, &p->in[0].shape, &p->out_args[0].shape, &t);
    p->units[0] = t.batch * t.oh;
    memcpy(p->tune, &t, sizeof(t));
    return TT_OK;
}

static tt_status prepare_max_grad(tt_prep *p) // units: rows of windows, or images
{
    tti_pool_tune t;
    plan(p, &p->in[0].shape, &p->in[1].shape, &t);
    p->ns *= 2;
    p->units[0] = t.by_image ? t.batch : t.batch * t.oh;
    memcpy(p->tune, &t, sizeof(t));
    return TT_OK;
}

static tt_status prepare_avg_grad(tt_prep *p) // units: rows of dx
{
    tti_pool_tune t;
    plan(p, &p->out_args[0].shape, &p->in[0].shape, &t);
    p->ns *= 2;
    p->units[0] = t.batch * t.h;
    memcpy(p->tune, &t, sizeof(t));
    return TT_OK;
}

// ---- records ---------------------------------------------------------------------------------

TTI_IMAGE_OP(max_pool2d, 1, 0, pool_options, tti_pool_attr, infer, max_pool_grad, tti_max_pool,
             prepare, "2-D max pooling");

TTI_IMAGE_OP(max_pool2d_grad, 2, 0, pool_options, tti_pool_attr, infer_max_grad, NULL,
             tti_max_pool_grad, prepare_max_grad, "gradient of max_pool2d, from x and dy");

TTI_IMAGE_OP(avg_pool2d, 1, 0, pool_options, tti_pool_attr, infer, avg_pool_grad, tti_avg_pool,
             prepare, "2-D average pooling; padded entries do not count");

TTI_IMAGE_OP(avg_pool2d_grad, 1, 0, avg_grad_options, tti_pool_attr, infer_avg_grad,
             avg_pool_grad_grad, tti_avg_pool_grad, prepare_avg_grad,
             "gradient of avg_pool2d, from dy");
