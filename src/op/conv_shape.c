/*
 * conv_shape.c - windows over images [batch, h, w, c]: strides, paddings, shape rules of the
 * convolutions. A node holds its padding as numbers; the rules "valid" and "same" are resolved
 * when it is built. Same, as TensorFlow has it: ceil(n / stride) outputs, the padding that takes
 * divided by two, and the odd one at the end.
 */
#include "op/conv.h"

tt_status tti_image_check(tt_ctx *ctx, const char *name, const char *what, const tt_tensor *x)
{
    char text[TT_SHAPE_TEXT];
    if (!tti_is_float(x->dtype))
        return TT_FAIL(ctx, TT_EDTYPE, "%s: %s is %s, not a float", name, what,
                       tt_dtype_name(x->dtype));
    if (x->shape.rank != 4)
        return TT_FAIL(ctx, TT_ESHAPE, "%s: %s is %s, not [batch, height, width, channels]", name,
                       what, tt_shape_text(&x->shape, text));
    for (int i = 1; i < 4; i++)
        if (x->shape.dim[i] < 1)
            return TT_FAIL(ctx, TT_ESHAPE, "%s: %s is %s; only the batch may be open or empty",
                           name, what, tt_shape_text(&x->shape, text));
    return TT_OK;
}

int64_t tti_window_out(const tt_ints *stride, const tt_ints *pad, int axis, int64_t n, int64_t k)
{
    int64_t room = n + pad->v[2 * axis] + pad->v[2 * axis + 1] - k;
    return room < 0 ? 0 : room / stride->v[axis] + 1;
}

tt_status tti_window_check(tt_ctx *ctx, const char *name, const tt_ints *stride, const tt_ints *pad)
{
    if (stride->n != 2 || pad->n != 4)
        return TT_FAIL(ctx, TT_EINVAL, "%s: takes 2 strides and 4 paddings, got %d and %d", name,
                       stride->n, pad->n);
    for (int i = 0; i < 2; i++)
        if (stride->v[i] < 1 || stride->v[i] > TTI_WINDOW_MAX)
            return TT_FAIL(ctx, TT_EINVAL, "%s: stride %lld is not in 1 to %d", name,
                           (long long)stride->v[i], TTI_WINDOW_MAX);
    for (int i = 0; i < 4; i++)
        if (pad->v[i] < 0 || pad->v[i] > TTI_WINDOW_MAX)
            return TT_FAIL(ctx, TT_EINVAL, "%s: padding %lld is not in 0 to %d", name,
                           (long long)pad->v[i], TTI_WINDOW_MAX);
    return TT_OK;
}

tt_status tti_window_fill(tt_ctx *ctx, const char *name, tt_tensor *x, const int64_t k[2],
                          const int stride[2], const int64_t otherwise[2], tt_padding rule,
                          const int pad[4], tt_ints *out_stride, tt_ints *out_pad)
{
    TT_TRY(tti_image_check(ctx, name, "x", x));
    *out_stride = (tt_ints){.n = 2};
    *out_pad = (tt_ints){.n = 4};
    for (int i = 0; i < 2; i++) {
        out_stride->v[i] = stride[i] == 0 ? otherwise[i] : stride[i];
        int64_t s = TTI_MAX(out_stride->v[i], 1), n = x->shape.dim[1 + i];
        if (rule == TT_SAME) {
            int64_t all = TTI_MAX(((n + s - 1) / s - 1) * s + k[i] - n, 0);
            out_pad->v[2 * i] = all / 2;
            out_pad->v[2 * i + 1] = all - all / 2;
        } else if (rule == TT_EXPLICIT) {
            out_pad->v[2 * i] = pad[2 * i];
            out_pad->v[2 * i + 1] = pad[2 * i + 1];
        } else if (rule != TT_VALID) {
            return TT_FAIL(ctx, TT_EINVAL, "%s: there is no padding rule %d", name, (int)rule);
        }
    }
    return tti_window_check(ctx, name, out_stride, out_pad);
}

// ---- shape rules of the convolutions ---------------------------------------------------------

tti_conv_dims tti_conv_dims_of(const tti_conv_attr *a, const tt_shape *x, const tt_shape *w,
                               const tt_shape *y)
{
    return (tti_conv_dims){
        .batch = x->dim[0],
        .h = x->dim[1],
        .w = x->dim[2],
        .c_in = x->dim[3],
        .oh = y->dim[1],
        .ow = y->dim[2],
        .c_out = y->dim[3],
        .kh = w->dim[0],
        .kw = w->dim[1],
        .sh = a->stride.v[0],
        .sw = a->stride.v[1],
        .pt = a->pad.v[0],
        .pl = a->pad.v[2],
    };
}

static tt_status check_w(tt_infer *q, const tt_tensor *x, const tt_tensor *w)
{
    char text[TT_SHAPE_TEXT];
    if (w->dtype != x->dtype)
        return TT_FAIL(q->ctx, TT_EDTYPE, "%s: x is %s but w is %s", q->name,
                       tt_dtype_name(x->dtype), tt_dtype_name(w->dtype));
    bool fits = w->shape.rank == 4;
    for (int i = 0; fits && i < 4; i++)
        fits = w->shape.dim[i] >= 1 && (i > 1 || w->shape.dim[i] <= TTI_WINDOW_MAX);
    if (!fits)
        return TT_FAIL(q->ctx, TT_ESHAPE, "%s: w is %s, not [height, width, in, out]", q->name,
                       tt_shape_text(&w->shape, text));
    return TT_OK;
}

static tt_status check_bias(tt_infer *q, const tt_tensor *b, int64_t c)
{
    char text[TT_SHAPE_TEXT];
    if (b->dtype != q->in[0]->dtype)
        return TT_FAIL(q->ctx, TT_EDTYPE, "%s: x is %s but the bias is %s", q->name,
                       tt_dtype_name(q->in[0]->dtype), tt_dtype_name(b->dtype));
    if (b->shape.rank != 1 || b->shape.dim[0] != c)
        return TT_FAIL(q->ctx, TT_ESHAPE, "%s: the bias is %s but there are %lld channels", q->name,
                       tt_shape_text(&b->shape, text), (long long)c);
    return TT_OK;
}

// Output positions of the attribute's window over x; fails when the window does not fit.
static tt_status window_out(tt_infer *q, const tt_shape *x, int64_t kh, int64_t kw, int64_t out[2])
{
    const tti_conv_attr *a = q->attr;
    char text[TT_SHAPE_TEXT];
    TT_TRY(tti_window_check(q->ctx, q->name, &a->stride, &a->pad));
    out[0] = tti_window_out(&a->stride, &a->pad, 0, x->dim[1], kh);
    out[1] = tti_window_out(&a->stride, &a->pad, 1, x->dim[2], kw);
    if (out[0] < 1 || out[1] < 1)
        return TT_FAIL(q->ctx, TT_ESHAPE,
                       "%s: a kernel of %lld x %lld does not fit into x %s padded by %lld, %lld, "
                       "%lld, %lld",
                       q->name, (long long)kh, (long long)kw, tt_shape_text(x, text),
                       (long long)a->pad.v[0], (long long)a->pad.v[1], (long long)a->pad.v[2],
                       (long long)a->pad.v[3]);
    return TT_OK;
}

tt_status tti_conv_infer(tt_infer *q, bool depthwise)
{
    const tti_conv_attr *a = q->attr;
    const tt_tensor *x = q->in[0], *w = q->in[1];
    char tx[TT_SHAPE_TEXT], tw[TT_SHAPE_TEXT];
    int64_t out[2];
    TT_TRY(tti_image_check(q->ctx, q->name, "x", x));
    TT_TRY(check_w(q, x, w));
    if (w->shape.dim[2] != x->shape.dim[3])
        return TT_FAIL(q->ctx, TT_ESHAPE, "%s: x is %s but w is %s", q->name,
                       tt_shape_text(&x->shape, tx), tt_shape_text(&w->shape, tw));
    TT_TRY(window_out(q, &x->shape, w->shape.dim[0], w->shape.dim[1], out));
    int64_t c = w->shape.dim[3] * (depthwise ? w->shape.dim[2] : 1);
    if (q->n_in > 2)
        TT_TRY(check_bias(q, q->in[2], c));
    if (a->act < TT_LINEAR || a->act > TT_SOFTPLUS)
        return TT_FAIL(q->ctx, TT_EINVAL, "%s: there is no activation %d", q->name, a->act);
    q->n_out = tti_act_needs_input(a->act) ? 2 : 1; // y, and z where the gradient takes it
    for (int i = 0; i < q->n_out; i++) {
        q->shape[i] = TT_SHAPE(x->shape.dim[0], out[0], out[1], c);
        q->dtype[i] = x->dtype;
    }
    return TT_OK;
}

// That dy is what x [.., h, w, ..] gives.
static tt_status check_dy(tt_infer *q, const tt_tensor *dy, const tt_shape *x, int64_t kh,
                          int64_t kw)
{
    char text[TT_SHAPE_TEXT];
    int64_t out[2];
    TT_TRY(window_out(q, x, kh, kw, out));
    if (dy->shape.dim[1] != out[0] || dy->shape.dim[2] != out[1])
        return TT_FAIL(q->ctx, TT_ESHAPE, "%s: dy is %s but the output is %lld x %lld", q->name,
                       tt_shape_text(&dy->shape, text), (long long)out[0], (long long)out[1]);
    return TT_OK;
}

static tt_status check_size(tt_infer *q, int64_t limit)
{
    const tti_conv_attr *a = q->attr;
    if (a->size.n != 2 || a->size.v[0] < 1 || a->size.v[1] < 1 || a->size.v[0] > limit ||
        a->size.v[1] > limit)
        return TT_FAIL(q->ctx, TT_EINVAL, "%s: size must be a height and a width", q->name);
    return TT_OK;
}

tt_status tti_conv_infer_dx(tt_infer *q, bool depthwise)
{
    const tti_conv_attr *a = q->attr;
    const tt_tensor *dy = q->in[0], *w = q->in[1];
    char ty[TT_SHAPE_TEXT], tw[TT_SHAPE_TEXT];
    TT_TRY(tti_image_check(q->ctx, q->name, "dy", dy));
    TT_TRY(check_w(q, dy, w));
    TT_TRY(check_size(q, INT32_MAX));
    if (dy->shape.dim[3] != w->shape.dim[3] * (depthwise ? w->shape.dim[2] : 1))
        return TT_FAIL(q->ctx, TT_ESHAPE, "%s: dy is %s but w is %s", q->name,
                       tt_shape_text(&dy->shape, ty), tt_shape_text(&w->shape, tw));
    q->shape[0] = TT_SHAPE(dy->shape.dim[0], a->size.v[0], a->size.v[1], w->shape.dim[2]);
    q->dtype[0] = dy->dtype;
    return check_dy(q, dy, &q->shape[0], w->shape.dim[0], w->shape.dim[1]);
}

tt_status tti_conv_infer_dw(tt_infer *q, bool depthwise)
{
    const tti_conv_attr *a = q->attr;
    const tt_tensor *x = q->in[0], *dy = q->in[1];
    char tx[TT_SHAPE_TEXT], ty[TT_SHAPE_TEXT];
    TT_TRY(tti_image_check(q->ctx, q->name, "x", x));
    TT_TRY(tti_image_check(q->ctx, q->name, "dy", dy));
    TT_TRY(check_size(q, TTI_WINDOW_MAX));
    int64_t c = x->shape.dim[3], n = dy->shape.dim[3];
    if (x->dtype != dy->dtype)
        return TT_FAIL(q->ctx, TT_EDTYPE, "%s: x is %s but dy is %s", q->name,
                       tt_dtype_name(x->dtype), tt_dtype_name(dy->dtype));
    if (x->shape.dim[0] != dy->shape.dim[0] || (depthwise && n % c != 0))
        return TT_FAIL(q->ctx, TT_ESHAPE, "%s: x is %s but dy is %s", q->name,
                       tt_shape_text(&x->shape, tx), tt_shape_text(&dy->shape, ty));
    q->shape[0] = TT_SHAPE(a->size.v[0], a->size.v[1], c, depthwise ? n / c : n);
    q->dtype[0] = a->wide ? TT_F32 : x->dtype;
    return check_dy(q, dy, &x->shape, a->size.v[0], a->size.v[1]);
}
