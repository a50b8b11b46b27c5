/*
 * shape.c - reshape and transpose: elements move, or only their shape does. Kernels: shape_cpu.c,
 * shape.cu.
 *   reshape    y is x's memory in another shape; flatten, squeeze and expand_dims are reshapes
 *   transpose  axis order[k] of x becomes axis k of y
 *
 * The open dimension is followed through. A reshape keeps a row's elements together if as many
 * entries lie before the open axis as did; otherwise it mixes rows.
 */
#include "op/shape.h"
#include "op/op.h"
#include <string.h>

bool tti_given(tt_graph *g, const char *op, const tt_tensor *x)
{
    if (!tti_has_graph(g, x, op))
        return false;
    if (x == NULL)
        (void)TT_FAIL(tt_graph_get_ctx(g), TT_EINVAL, "%s: an input is NULL", op);
    return x != NULL;
}

static tt_ctx *ctx_of(const tt_tensor *x)
{
    return tt_graph_get_ctx(x->graph);
}

// ---- reshape ---------------------------------------------------------------------------------

// Units are elements of output 0.
tt_status tti_prep_move(tt_prep *p)
{
    const tt_arg *y = &p->out_args[0];
    p->units[0] = y->count;
    p->grain[0] = TTI_MOVE_GRAIN;
    p->ns = (double)y->count * (double)tt_dtype_bytes(y->dtype) * 0.2;
    return TT_OK;
}

static tt_status reshape_infer(tt_infer *q)
{
    const tti_reshape_attr *a = q->attr;
    const tt_shape *x = &q->in[0]->shape;
    char tx[TT_SHAPE_TEXT], ty[TT_SHAPE_TEXT];
    q->shape[0].rank = a->shape.rank;
    if (a->shape.rank < 0 || a->shape.rank > TT_MAX_RANK)
        return TT_FAIL(q->ctx, TT_ESHAPE, "reshape: rank %d is not between 0 and %d", a->shape.rank,
                       TT_MAX_RANK);

    int64_t count = 1;
    int open = 0;
    for (int i = 0; i < a->shape.rank; i++) {
        q->shape[0].dim[i] = a->shape.dim[i];
        open += a->shape.dim[i] < 0;
        if (!tti_mul_i64(count, a->shape.dim[i], &count))
            return TT_FAIL(q->ctx, TT_ESHAPE, "reshape: %s is too large",
                           tt_shape_text(&a->shape, ty));
    }
    int x_open = tt_open_axis(x) >= 0;
    if (open > 1 || open != x_open)
        return TT_FAIL(
            q->ctx, TT_ESHAPE,
            "reshape: x is %s with %s open dimension but the shape %s has %d (a dimension below "
            "zero is open, not computed)",
            tt_shape_text(x, tx), x_open ? "one" : "no", tt_shape_text(&a->shape, ty), open);
    if (count != tt_shape_count(x))
        return TT_FAIL(q->ctx, TT_ESHAPE, "reshape: x is %s but the shape is %s",
                       tt_shape_text(x, tx), tt_shape_text(&a->shape, ty));
    q->dtype[0] = q->in[0]->dtype;
    return TT_OK;
}

// Elements before the axis, of closed dimensions.
static int64_t outer_of(const tt_shape *s, int axis)
{
    int64_t n = 1;
    for (int i = 0; i < axis; i++)
        n *= s->dim[i];
    return n;
}

static tt_status reshape_split(const tt_split_query *q)
{
    const tt_shape *x = &q->node->in[0]->shape, *y = &q->node->out->shape;
    int from = q->axis[0], to = tt_open_axis(y);
    if (from >= 0 && x->dim[from] >= 0) // of the same elements before it; a 1 is no place to split
        for (to = 0; to < y->rank && (y->dim[to] <= 1 || outer_of(x, from) != outer_of(y, to));)
            to++;
    if (to >= y->rank)
        to = -1;
    if (from < 0)
        q->out[0] = (tt_split){TT_SPLIT_WHOLE, -1};
    else if (to >= 0 && outer_of(x, from) == outer_of(y, to))
        q->out[0] = (tt_split){TT_SPLIT_AXIS, to};
    else
        q->out[0] = (tt_split){TT_SPLIT_MIXES, -1};
    return TT_OK;
}

static void reshape_grad(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    dx[0] = tti_reshape_to(g, dy[0], &n->in[0]->shape);
}

static const tt_option reshape_attrs[] = {
    {"shape", TT_OPT_SHAPE, NULL, "shape of y", offsetof(tti_reshape_attr, shape), 0, 0, NULL},
    TT_OPTION_END,
};

const tt_op tti_op_reshape = {
    .name = "reshape",
    .help = "changes the shape",
    .inputs = 1,
    .flags = TT_OP_VIEW | TTI_MOVES,
    .types = TT_TYPES_ALL,
    .in_place = 1,
    TTI_ATTRS(reshape_attrs, tti_reshape_attr),
    .infer = reshape_infer,
    .split = reshape_split,
    .grad = reshape_grad,
    .kernel = {[TT_CPU] = TTI_CPU(reshape, tti_prep_move)},
};

tt_tensor *tti_reshape_to(tt_graph *g, tt_tensor *x, const tt_shape *shape)
{
    tti_reshape_attr a;
    memset(&a, 0, sizeof(a));
    a.shape.rank = shape->rank;
    for (int i = 0; i < shape->rank && i < TT_MAX_RANK; i++)
        a.shape.dim[i] = shape->dim[i];
    return tt_node_out(g, &tti_op_reshape, 1, &x, &a);
}

tt_tensor *tt_reshape(tt_graph *g, tt_tensor *x, tt_shape shape)
{
    if (!tti_given(g, "reshape", x))
        return NULL;
    for (int i = 0; i < shape.rank && i < TT_MAX_RANK; i++) {
        if (shape.dim[i] != 0)
            continue;
        if (i >= x->shape.rank) {
            char text[TT_SHAPE_TEXT];
            (void)TT_FAIL(ctx_of(x), TT_ESHAPE, "reshape: x is %s and has no dimension %d to copy",
                          tt_shape_text(&x->shape, text), i);
            return NULL;
        }
        shape.dim[i] = x->shape.dim[i];
    }
    return tti_reshape_to(g, x, &shape);
}

tt_tensor *tt_flatten(tt_graph *g, tt_tensor *x)
{
    if (!tti_given(g, "flatten", x))
        return NULL;
    if (x->shape.rank == 0) {
        (void)TT_FAIL(ctx_of(x), TT_ESHAPE, "flatten: x is a scalar and has no batch axis");
        return NULL;
    }
    tt_shape y = {2, {x->shape.dim[0], 1}};
    for (int i = 1; i < x->shape.rank; i++)
        y.dim[1] *= x->shape.dim[i];
    return tti_reshape_to(g, x, &y);
}

tt_tensor *tt_squeeze(tt_graph *g, tt_tensor *x, int axis)
{
    if (!tti_given(g, "squeeze", x) ||
        tti_axis(ctx_of(x), "squeeze", axis, &x->shape, &axis) != TT_OK)
        return NULL;
    if (x->shape.dim[axis] != 1) {
        char text[TT_SHAPE_TEXT];
        (void)TT_FAIL(ctx_of(x), TT_ESHAPE, "squeeze: axis %d of %s is not 1", axis,
                      tt_shape_text(&x->shape, text));
        return NULL;
    }
    tt_shape y = {0};
    for (int i = 0; i < x->shape.rank; i++)
        if (i != axis)
            y.dim[y.rank++] = x->shape.dim[i];
    return tti_reshape_to(g, x, &y);
}

tt_tensor *tt_expand_dims(tt_graph *g, tt_tensor *x, int axis)
{
    if (!tti_given(g, "expand_dims", x))
        return NULL;
    int rank = x->shape.rank, at = axis == TT_FIRST ? 0 : axis < 0 ? axis + rank + 1 : axis;
    if (at < 0 || at > rank || rank == TT_MAX_RANK) {
        char text[TT_SHAPE_TEXT];
        (void)TT_FAIL(ctx_of(x), TT_EINVAL, "expand_dims: %s cannot have a new axis %d",
                      tt_shape_text(&x->shape, text), axis);
        return NULL;
    }
    tt_shape y = {rank + 1, {0}};
    for (int i = 0; i <= rank; i++)
        y.dim[i] = i == at ? 1 : x->shape.dim[i - (i > at)];
    return tti_reshape_to(g, x, &y);
}

// ---- transpose -------------------------------------------------------------------------------

static tt_status transpose_infer(tt_infer *q)
{
    const tti_transpose_attr *a = q->attr;
    const tt_shape *x = &q->in[0]->shape;
    char text[TT_SHAPE_TEXT];
    unsigned seen = 0;
    bool ok = a->order.n == x->rank;
    for (int i = 0; ok && i < x->rank; i++) {
        int64_t k = a->order.v[i];
        ok = k >= 0 && k < x->rank && (seen & 1u << k) == 0;
        if (ok)
            seen |= 1u << k;
    }
    if (!ok)
        return TT_FAIL(q->ctx, TT_EINVAL,
                       "transpose: the order must name each axis of %s once, and has %d axes",
                       tt_shape_text(x, text), a->order.n);
    q->shape[0].rank = x->rank;
    for (int i = 0; i < x->rank; i++)
        q->shape[0].dim[i] = x->dim[a->order.v[i]];
    q->dtype[0] = q->in[0]->dtype;
    return TT_OK;
}

static tt_status transpose_split(const tt_split_query *q)
{
    const tti_transpose_attr *a = q->node->attr;
    q->out[0] = (tt_split){TT_SPLIT_WHOLE, -1};
    for (int i = 0; i < a->order.n; i++)
        if (q->axis[0] >= 0 && a->order.v[i] == q->axis[0])
            q->out[0] = (tt_split){TT_SPLIT_AXIS, i};
    return TT_OK;
}

static void transpose_grad(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    const tti_transpose_attr *a = n->attr;
    tt_axes back = {a->order.n, {0}};
    for (int i = 0; i < a->order.n; i++)
        back.axis[a->order.v[i]] = i;
    dx[0] = a->order.n == 0 ? dy[0] : tt_transpose(g, dy[0], back);
}

static tt_status transpose_prep(tt_prep *p)
{
    const tti_transpose_attr *a = p->attr;
    tti_transpose_plan t;
    int64_t n = tti_transpose_merge(&t, &p->in[0].shape, &a->order);
    int last = t.rank - 1;
    size_t bytes = tt_dtype_bytes(p->in[0].dtype);
    p->ns = (double)n * (double)bytes * 0.3;
    if (n == 0) {
        p->units[0] = 0;
    } else if (t.s[last] == 1) {
        t.j = last;
        p->units[0] = n / t.d[last];
        p->grain[0] = TTI_MAX(1, TTI_MOVE_GRAIN / t.d[last]);
    } else {
        while (t.s[t.j] != 1)
            t.j++;
        t.tile = bytes <= 2 ? 64 : bytes == 4 ? 32 : 16;
        t.j_tiles = (t.d[t.j] + t.tile - 1) / t.tile;
        t.l_tiles = (t.d[last] + t.tile - 1) / t.tile;
        p->units[0] = n / t.d[t.j] / t.d[last] * t.j_tiles * t.l_tiles;
        p->grain[0] = 8;
    }
    _Static_assert(sizeof(t) <= TT_TUNE_BYTES, "a transpose's plan fits");
    memcpy(p->tune, &t, sizeof(t));
    return TT_OK;
}

static const tt_option transpose_attrs[] = {
    {"order", TT_OPT_INTS, NULL, "the axis of x that becomes each axis of y",
     offsetof(tti_transpose_attr, order), 0, 0, NULL},
    TT_OPTION_END,
};

const tt_op tti_op_transpose = {
    .name = "transpose",
    .help = "permutes the axes",
    .inputs = 1,
    .flags = TTI_MOVES,
    .types = TT_TYPES_ALL,
    TTI_ATTRS(transpose_attrs, tti_transpose_attr),
    .infer = transpose_infer,
    .split = transpose_split,
    .grad = transpose_grad,
    .kernel = {[TT_CPU] = TTI_CPU(transpose, transpose_prep)},
};

tt_tensor *tt_transpose(tt_graph *g, tt_tensor *x, tt_axes order)
{
    if (!tti_given(g, "transpose", x))
        return NULL;
    tti_transpose_attr a;
    memset(&a, 0, sizeof(a));
    a.order.n = order.n == 0 ? x->shape.rank : order.n;
    for (int i = 0; i < a.order.n && i < TT_MAX_RANK; i++) {
        int k = order.n == 0 ? x->shape.rank - 1 - i : order.axis[i];
        a.order.v[i] = k == TT_FIRST ? 0 : k < 0 ? k + x->shape.rank : k;
    }
    return tt_node_out(g, &tti_op_transpose, 1, &x, &a);
}
