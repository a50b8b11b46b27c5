/*
 * conv_with.c - convolutions as users ask for them: the nodes of conv.c, and what is made of them.
 *
 *   groups     a convolution for each group of channels, joined; as many groups as channels are a
 *              depthwise convolution
 *   dilation   with stride 1 the pixels of one phase, every d-th row and column, are an image of
 *              their own: d d images of the batch, and taps that are neighbours in each. With a
 *              larger stride the kernel is filled up with zeros between its taps
 *   transpose  the gradient of a convolution with respect to its input
 *
 * Bias and activation are added at the end where they are not part of a single node.
 */
#include "op/conv.h"
#include "op/shape.h"

// ---- one group -------------------------------------------------------------------------------

static tt_tensor *conv(tt_graph *g, const tti_conv_attr *a, tt_tensor *x, tt_tensor *w)
{
    return tt_node_out(g, &tti_op_conv2d, 2, (tt_tensor *[]){x, w}, a);
}

// The taps of w d apart, zeros between them.
static tt_tensor *fill_up(tt_graph *g, tt_tensor *w, const int64_t d[2])
{
    const int64_t *k = w->shape.dim;
    tt_tensor *y = tt_reshape(g, w, TT_SHAPE(k[0], 1, k[1], 1, k[2], k[3]));
    y = tt_pad(g, y, 1, 0, d[0] - 1);
    y = tt_pad(g, y, 3, 0, d[1] - 1);
    y = tt_reshape(g, y, TT_SHAPE(k[0] * d[0], k[1] * d[1], k[2], k[3]));
    y = tt_slice(g, y, 0, 0, (k[0] - 1) * d[0] + 1);
    return tt_slice(g, y, 1, 0, (k[1] - 1) * d[1] + 1);
}

// Stride 1: phases are images. size: what the output has.
static tt_tensor *by_phases(tt_graph *g, const tti_conv_attr *a, tt_tensor *x, tt_tensor *w,
                            const int64_t d[2], const int64_t size[2])
{
    const int64_t *k = w->shape.dim, b = x->shape.dim[0], c = x->shape.dim[3];
    int64_t n[2], m[2];
    for (int i = 0; i < 2; i++) {
        const int64_t *pad = a->pad.v + 2 * i;
        int64_t all = x->shape.dim[1 + i] + pad[0] + pad[1], more = (d[i] - all % d[i]) % d[i];
        n[i] = (all + more) / d[i];
        m[i] = n[i] - k[i] + 1;
        x = tt_pad(g, x, 1 + i, pad[0], pad[1] + more);
        if (x == NULL)
            return NULL;
    }
    x = tt_reshape(g, x, TT_SHAPE(b, n[0], d[0], n[1], d[1], c));
    x = tt_transpose(g, x, TT_AXES(0, 2, 4, 1, 3, 5));
    x = tt_reshape(g, x, TT_SHAPE(b * d[0] * d[1], n[0], n[1], c));
    tti_conv_attr plain = {.stride = {2, {1, 1}}, .pad = {.n = 4}};
    tt_tensor *y = conv(g, &plain, x, w);
    y = tt_reshape(g, y, TT_SHAPE(b, d[0], d[1], m[0], m[1], k[3]));
    y = tt_transpose(g, y, TT_AXES(0, 3, 1, 4, 2, 5));
    y = tt_reshape(g, y, TT_SHAPE(b, m[0] * d[0], m[1] * d[1], k[3]));
    y = tt_slice(g, y, 1, 0, size[0]);
    return tt_slice(g, y, 2, 0, size[1]);
}

static tt_tensor *one_group(tt_graph *g, const tti_conv_attr *a, tt_tensor *x, tt_tensor *w,
                            const int64_t d[2], const int64_t size[2])
{
    if (x == NULL || w == NULL)
        return NULL;
    if (d[0] == 1 && d[1] == 1)
        return conv(g, a, x, w);
    if (a->stride.v[0] == 1 && a->stride.v[1] == 1)
        return by_phases(g, a, x, w, d, size);
    return conv(g, a, x, fill_up(g, w, d));
}

// ---- conv2d ----------------------------------------------------------------------------------

static tt_status groups_check(tt_ctx *ctx, const tt_tensor *x, const tt_tensor *w, int64_t n)
{
    char tx[TT_SHAPE_TEXT], tw[TT_SHAPE_TEXT];
    TT_TRY(tti_image_check(ctx, "conv2d", "x", x));
    if (w->shape.rank != 4)
        return TT_FAIL(ctx, TT_ESHAPE, "conv2d: w is %s, not [height, width, in, out]",
                       tt_shape_text(&w->shape, tw));
    int64_t in = x->shape.dim[3], out = w->shape.dim[3];
    if (n < 1 || in % n != 0 || out % n != 0)
        return TT_FAIL(ctx, TT_EINVAL,
                       "conv2d: %lld groups do not divide %lld input and %lld output channels",
                       (long long)n, (long long)in, (long long)out);
    if (w->shape.dim[2] != in / n)
        return TT_FAIL(ctx, TT_ESHAPE,
                       "conv2d: x is %s and w is %s; with %lld groups w must be [height, width, "
                       "%lld, out]",
                       tt_shape_text(&x->shape, tx), tt_shape_text(&w->shape, tw), (long long)n,
                       (long long)(in / n));
    return TT_OK;
}

// Each group's convolution, joined along the channels.
static tt_tensor *by_groups(tt_graph *g, const tti_conv_attr *a, tt_tensor *x, tt_tensor *w,
                            int64_t n, const int64_t d[2], const int64_t size[2])
{
    int64_t in = x->shape.dim[3] / n, out = w->shape.dim[3] / n;
    if (n == 1)
        return one_group(g, a, x, w, d, size);
    if (in == 1 && d[0] == 1 && d[1] == 1) {
        w = tt_reshape(g, w, TT_SHAPE(w->shape.dim[0], w->shape.dim[1], n, out));
        return tt_depthwise_conv2d(
            g, x, w, .stride = {(int)a->stride.v[0], (int)a->stride.v[1]}, .padding = TT_EXPLICIT,
            .pad = {(int)a->pad.v[0], (int)a->pad.v[1], (int)a->pad.v[2], (int)a->pad.v[3]});
    }
    tt_tensor *all = NULL;
    tt_tensor *parts[32];
    for (int64_t i = 0; i < n;) { // concat takes a short list at a time
        int m = 0;
        if (all != NULL)
            parts[m++] = all;
        for (; i < n && m < TTI_COUNT(parts); i++, m++) {
            parts[m] = one_group(g, a, tt_slice(g, x, 3, i * in, (i + 1) * in),
                                 tt_slice(g, w, 3, i * out, (i + 1) * out), d, size);
            if (parts[m] == NULL)
                return NULL;
        }
        all = tt_concat(g, parts, m, 3);
        if (all == NULL)
            return NULL;
    }
    return all;
}

static tt_tensor *composed(tt_graph *g, tt_tensor *x, tt_tensor *w, const tt_conv2d_opts *o)
{
    static const int64_t one[2] = {1, 1};
    tt_ctx *ctx = tt_graph_get_ctx(g);
    tti_conv_attr a = {0};
    int64_t n = o->groups == 0 ? 1 : o->groups, d[2], k[2], size[2];
    char text[TT_SHAPE_TEXT];
    if (groups_check(ctx, x, w, n) != TT_OK)
        return NULL;
    for (int i = 0; i < 2; i++) {
        d[i] = o->dilation[i] == 0 ? 1 : o->dilation[i];
        if (d[i] < 1 || d[i] > TTI_WINDOW_MAX) {
            (void)TT_FAIL(ctx, TT_EINVAL, "conv2d: dilation %d is not in 1 to %d", o->dilation[i],
                          TTI_WINDOW_MAX);
            return NULL;
        }
        k[i] = (w->shape.dim[i] - 1) * d[i] + 1;
    }
    if (tti_window_fill(ctx, "conv2d", x, k, o->stride, one, o->padding, o->pad, &a.stride,
                        &a.pad) != TT_OK)
        return NULL;
    for (int i = 0; i < 2; i++)
        size[i] = tti_window_out(&a.stride, &a.pad, i, x->shape.dim[1 + i], k[i]);
    if (size[0] < 1 || size[1] < 1) {
        (void)TT_FAIL(ctx, TT_ESHAPE,
                      "conv2d: a kernel of %lld x %lld, with its dilation, does not fit into x %s "
                      "padded by %lld, %lld, %lld, %lld",
                      (long long)k[0], (long long)k[1], tt_shape_text(&x->shape, text),
                      (long long)a.pad.v[0], (long long)a.pad.v[1], (long long)a.pad.v[2],
                      (long long)a.pad.v[3]);
        return NULL;
    }
    tt_tensor *y = by_groups(g, &a, x, w, n, d, size);
    if (y != NULL && o->bias != NULL)
        y = tt_add(g, y, o->bias);
    return y == NULL || o->act == TT_LINEAR ? y : tt_activation(g, y, o->act);
}

tt_tensor *tt_conv2d_with(tt_graph *g, tt_tensor *x, tt_tensor *w, const tt_conv2d_opts *opts)
{
    tt_conv2d_opts o = {0};
    tti_conv_attr a;
    if (!tti_given(g, "conv2d", x) || !tti_given(g, "conv2d", w))
        return NULL;
    if (opts != NULL && TTI_OPTS_COPY(g->ctx, "conv2d", opts, &o) != TT_OK)
        return NULL;
    if ((o.groups != 0 && o.groups != 1) || (o.dilation[0] != 0 && o.dilation[0] != 1) ||
        (o.dilation[1] != 0 && o.dilation[1] != 1))
        return composed(g, x, w, &o);
    if (tti_conv_fill(tt_graph_get_ctx(g), "conv2d", x, w, &o, &a) != TT_OK)
        return NULL;
    a.act = (int)tti_act_fused(o.act);
    tt_tensor *y =
        tt_node_out(g, &tti_op_conv2d, o.bias != NULL ? 3 : 2, (tt_tensor *[]){x, w, o.bias}, &a);
    return tti_act_apart(g, y, o.act);
}

// ---- transposed ------------------------------------------------------------------------------

// Padding and output size, of rows (i 0) or columns.
static tt_status reversed(tt_ctx *ctx, const tt_conv2d_transpose_opts *o, int i, int64_t n,
                          int64_t k, tti_conv_attr *a)
{
    int64_t s = a->stride.v[i] = o->stride[i] == 0 ? 1 : o->stride[i], *pad = a->pad.v + 2 * i;
    if (s < 1 || s > TTI_WINDOW_MAX)
        return TT_FAIL(ctx, TT_EINVAL, "conv2d_transpose: stride %d is not in 1 to %d",
                       o->stride[i], TTI_WINDOW_MAX);
    if (o->extra[i] < 0 || o->extra[i] >= s)
        return TT_FAIL(ctx, TT_EINVAL,
                       "conv2d_transpose: extra is %d; it must be at least 0 and below the stride, "
                       "%lld",
                       o->extra[i], (long long)s);
    if (o->padding == TT_SAME) {
        int64_t all = TTI_MAX(k - s, 0);
        pad[0] = all / 2;
        pad[1] = all - all / 2;
        a->size.v[i] = n * s;
        if (o->extra[i] > 0)
            return TT_FAIL(ctx, TT_EINVAL,
                           "conv2d_transpose: extra is %d and padding is same, which has an output "
                           "of %lld already; give one of them",
                           o->extra[i], (long long)(n * s));
        return TT_OK;
    }
    if (o->padding == TT_EXPLICIT) {
        pad[0] = o->pad[2 * i];
        pad[1] = o->pad[2 * i + 1];
    } else if (o->padding != TT_VALID) {
        return TT_FAIL(ctx, TT_EINVAL, "conv2d_transpose: there is no padding rule %d",
                       (int)o->padding);
    }
    a->size.v[i] = (n - 1) * s + k - pad[0] - pad[1] + o->extra[i];
    if (pad[0] < 0 || pad[1] < 0 || a->size.v[i] < 1)
        return TT_FAIL(ctx, TT_ESHAPE,
                       "conv2d_transpose: an output of %lld %s less padding of %lld and %lld has "
                       "nothing left",
                       (long long)((n - 1) * s + k), i == 0 ? "rows" : "columns", (long long)pad[0],
                       (long long)pad[1]);
    return TT_OK;
}

tt_tensor *tt_conv2d_transpose_with(tt_graph *g, tt_tensor *x, tt_tensor *w,
                                    const tt_conv2d_transpose_opts *opts)
{
    tt_conv2d_transpose_opts o = {0};
    char tx[TT_SHAPE_TEXT], tw[TT_SHAPE_TEXT];
    if (!tti_given(g, "conv2d_transpose", x) || !tti_given(g, "conv2d_transpose", w))
        return NULL;
    tt_ctx *ctx = tt_graph_get_ctx(g);
    if (opts != NULL && TTI_OPTS_COPY(ctx, "conv2d_transpose", opts, &o) != TT_OK)
        return NULL;
    if (tti_image_check(ctx, "conv2d_transpose", "x", x) != TT_OK)
        return NULL;
    if (w->shape.rank != 4 || w->shape.dim[3] != x->shape.dim[3]) {
        (void)TT_FAIL(
            ctx, TT_ESHAPE, "conv2d_transpose: x is %s but w is %s, not [height, width, out, %lld]",
            tt_shape_text(&x->shape, tx), tt_shape_text(&w->shape, tw), (long long)x->shape.dim[3]);
        return NULL;
    }
    tti_conv_attr a = {.stride = {.n = 2}, .pad = {.n = 4}, .size = {.n = 2}};
    for (int i = 0; i < 2; i++)
        if (reversed(ctx, &o, i, x->shape.dim[1 + i], w->shape.dim[i], &a) != TT_OK)
            return NULL;
    tt_tensor *y = tt_node_out(g, &tti_op_conv2d_dx, 2, (tt_tensor *[]){x, w}, &a);
    if (y != NULL && o.bias != NULL)
        y = tt_add(g, y, o.bias);
    return y == NULL || o.act == TT_LINEAR ? y : tt_activation(g, y, o.act);
}
