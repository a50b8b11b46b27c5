/*
 * concat.c - ops that copy whole pieces along one axis. Kernels: concat_cpu.c, concat.cu.
 *   concat  inputs one after the other; stack is concat of inputs with a new axis
 *   split   n equal parts
 *   slice   positions [begin, end); pad: zeros before and after; each is the other's gradient
 *   tile    x several times; its gradient is the sum over the copies
 *
 * Every tensor is seen as outer x width: what lies before the axis, and the axis with what follows
 * it. Along another axis y is split as x is. Along the open axis rows mix; the result must have
 * one open dimension or none, so b + b is 2b there, but b + 3 is refused.
 */
#include "op/op.h"
#include "op/shape.h"
#include <string.h>

// ---- shared rules ----------------------------------------------------------------------------

// All attributes here begin with the axis. Presets y as x.
static tt_status start(tt_infer *q, int *axis)
{
    int64_t a = *(const int64_t *)q->attr;
    const tt_shape *x = &q->in[0]->shape;
    char text[TT_SHAPE_TEXT];
    if (a < 0 || a >= x->rank)
        return TT_FAIL(q->ctx, TT_EINVAL, "%s: axis %lld is not one of %s", q->name, (long long)a,
                       tt_shape_text(x, text));
    *axis = (int)a;
    q->shape[0] = *x;
    q->dtype[0] = q->in[0]->dtype;
    return TT_OK;
}

// Outputs are split as the inputs are, unless that is the axis the op works along.
static tt_status split_along(const tt_split_query *q)
{
    int open = -1;
    bool same = true;
    for (int i = 0; i < q->node->n_in; i++)
        open = q->axis[i] >= 0 ? q->axis[i] : open;
    for (int i = 0; i < q->node->n_in; i++)
        same &= q->axis[i] == open;
    tt_split s = {TT_SPLIT_WHOLE, -1};
    if (open >= 0 && (!same || open == *(const int64_t *)q->node->attr))
        s.kind = TT_SPLIT_MIXES;
    else if (open >= 0)
        s = (tt_split){TT_SPLIT_AXIS, open};
    for (int i = 0; i < q->node->n_out; i++)
        q->out[i] = s;
    return TT_OK;
}

// The record of an op that moves elements along an axis. type_ is the struct of the attributes.
#define MOVE_OP(name_, inputs_, max_inputs_, attrs_, type_, infer_, grad_, kernel_, prep_, help_) \
    const tt_op tti_op_##name_ = {                                                                \
        .name = #name_,                                                                           \
        .help = help_,                                                                            \
        .inputs = inputs_,                                                                        \
        .max_inputs = max_inputs_,                                                                \
        .flags = TTI_MOVES,                                                                       \
        .types = TT_TYPES_ALL,                                                                    \
        .attrs = attrs_,                                                                          \
        .attr_size = sizeof(type_),                                                               \
        .infer = infer_,                                                                          \
        .split = split_along,                                                                     \
        .grad = grad_,                                                                            \
        .kernel = {[TT_CPU] = TTI_CPU(kernel_, prep_)},                                           \
    }

static bool resolve(const char *op, tt_graph *g, const tt_tensor *x, int *axis)
{
    return tti_given(g, op, x) &&
           tti_axis(tt_graph_get_ctx(g), op, *axis, &x->shape, axis) == TT_OK;
}

// slice and pad where d is the axis's dimension: in whole batches if it is open.
static tt_tensor *slice_of(tt_graph *g, tt_tensor *x, int64_t axis, int64_t begin, int64_t end,
                           int64_t rows);
static tt_tensor *pad_of(tt_graph *g, tt_tensor *x, int64_t axis, int64_t before, int64_t after,
                         int64_t rows);

// ---- concat ----------------------------------------------------------------------------------

static tt_status concat_infer(tt_infer *q)
{
    int axis;
    char a[TT_SHAPE_TEXT], b[TT_SHAPE_TEXT];
    TT_TRY(start(q, &axis));
    const tt_shape *x = &q->in[0]->shape;
    for (int i = 1; i < q->n_in; i++) {
        const tt_shape *s = &q->in[i]->shape;
        if (q->in[i]->dtype != q->dtype[0])
            return TT_FAIL(q->ctx, TT_EDTYPE, "concat: input 0 is %s but input %d is %s",
                           tt_dtype_name(q->dtype[0]), i, tt_dtype_name(q->in[i]->dtype));
        bool ok = s->rank == x->rank;
        for (int d = 0; ok && d < x->rank; d++)
            ok = d == axis ? (s->dim[d] < 0) == (x->dim[d] < 0) : s->dim[d] == x->dim[d];
        if (!ok ||
            __builtin_add_overflow(q->shape[0].dim[axis], s->dim[axis], &q->shape[0].dim[axis]))
            return TT_FAIL(q->ctx, TT_ESHAPE,
                           "concat: input 0 is %s but input %d is %s; only axis %d may differ, and "
                           "must be open in all or none",
                           tt_shape_text(x, a), i, tt_shape_text(s, b), axis);
    }
    return TT_OK;
}

static void concat_grad(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    const tti_axis_attr *a = n->attr;
    int64_t at = 0;
    for (int i = 0; i < n->n_in; i++) {
        int64_t d = n->in[i]->shape.dim[a->axis], size = d < 0 ? -d : d;
        dx[i] = slice_of(g, dy[0], a->axis, at, at + size, d < 0);
        at += size;
    }
}

static const tt_option concat_attrs[] = {
    {"axis", TT_OPT_INT, "0", "", offsetof(tti_axis_attr, axis), 0, 0, NULL},
    TT_OPTION_END,
};

MOVE_OP(concat, 1, -1, concat_attrs, tti_axis_attr, concat_infer, concat_grad, concat,
        tti_prep_move, "concatenates the inputs along an axis");

tt_tensor *tt_concat(tt_graph *g, tt_tensor *const *xs, int n, int axis)
{
    if (!tti_has_graph(g, xs != NULL && n > 0 ? xs[0] : NULL, "concat"))
        return NULL;
    if (xs == NULL || n < 1) {
        (void)TT_FAIL(tt_graph_get_ctx(g), TT_EINVAL, "concat: there are no inputs");
        return NULL;
    }
    if (!resolve("concat", g, xs[0], &axis))
        return NULL;
    tti_axis_attr a = {.axis = axis};
    return tt_node_out(g, &tti_op_concat, n, xs, &a);
}

tt_tensor *tt_stack(tt_graph *g, tt_tensor *const *xs, int n, int axis)
{
    if (!tti_has_graph(g, xs != NULL && n > 0 ? xs[0] : NULL, "stack"))
        return NULL;
    tt_ctx *ctx = tt_graph_get_ctx(g);
    if (xs == NULL || n < 1) {
        (void)TT_FAIL(ctx, TT_EINVAL, "stack: there are no inputs");
        return NULL;
    }
    tt_tensor **wide = tti_calloc(ctx, (size_t)n, sizeof(*wide));
    tt_tensor *y = NULL;
    if (wide == NULL)
        return NULL;
    for (int i = 0; i < n; i++)
        wide[i] = tt_expand_dims(g, xs[i], axis);
    if (wide[0] != NULL) // expand_dims and concat count an axis from the end alike
        y = tt_concat(g, wide, n, axis);
    tti_free(ctx, wide);
    return y;
}

// ---- split -----------------------------------------------------------------------------------

static tt_status split_infer(tt_infer *q)
{
    const tti_axis_attr *a = q->attr;
    int axis;
    char text[TT_SHAPE_TEXT];
    TT_TRY(start(q, &axis));
    int max = TTI_COUNT(q->shape);
    if (a->n < 1 || a->n > max)
        return TT_FAIL(q->ctx, TT_EINVAL, "split: %lld parts; 1 to %d are allowed", (long long)a->n,
                       max);
    const tt_shape *x = &q->in[0]->shape;
    if (x->dim[axis] % a->n != 0)
        return TT_FAIL(q->ctx, TT_ESHAPE, "split: axis %d of %s is not a multiple of %lld", axis,
                       tt_shape_text(x, text), (long long)a->n);
    q->n_out = (int)a->n;
    for (int i = 0; i < q->n_out; i++) {
        q->shape[i] = *x;
        q->shape[i].dim[axis] /= a->n;
        q->dtype[i] = q->in[0]->dtype;
    }
    return TT_OK;
}

static void split_grad(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    const tti_axis_attr *a = n->attr;
    tt_tensor *parts[64];
    for (int i = 0; i < n->n_out; i++)
        parts[i] = dy[i] != NULL ? dy[i] : tti_zeros_like(g, n->outs[i]);
    dx[0] = tt_concat(g, parts, n->n_out, (int)a->axis);
}

static tt_status split_prep(tt_prep *p)
{
    TT_TRY(tti_prep_move(p));
    p->units[0] = p->in[0].count;
    p->ns *= p->n_out;
    return TT_OK;
}

static const tt_option split_attrs[] = {
    {"axis", TT_OPT_INT, "0", "", offsetof(tti_axis_attr, axis), 0, 0, NULL},
    {"n", TT_OPT_INT, NULL, "number of parts", offsetof(tti_axis_attr, n), 1, 64, NULL},
    TT_OPTION_END,
};

MOVE_OP(split, 1, 0, split_attrs, tti_axis_attr, split_infer, split_grad, split, split_prep,
        "splits x into equal parts along an axis");

tt_status tt_split_at(tt_graph *g, tt_tensor *x, int axis, int n, tt_tensor **out)
{
    if (!tti_has_graph(g, x, "split"))
        return TT_EINVAL;
    tt_ctx *ctx = tt_graph_get_ctx(g);
    if (out == NULL)
        return TT_FAIL(ctx, TT_EINVAL, "split: out is NULL");
    if (!resolve("split", g, x, &axis))
        return tt_status_of(ctx);
    tti_axis_attr a = {axis, n};
    tt_node *node = tt_node_new(g, &tti_op_split, 1, &x, &a, NULL);
    if (node == NULL)
        return tt_status_of(ctx);
    for (int i = 0; i < n; i++)
        out[i] = node->outs[i];
    return TT_OK;
}

// ---- slice -----------------------------------------------------------------------------------

static tt_status slice_infer(tt_infer *q)
{
    const tti_slice_attr *a = q->attr;
    int axis;
    char text[TT_SHAPE_TEXT];
    TT_TRY(start(q, &axis));
    int64_t d = q->in[0]->shape.dim[axis], limit = d;
    if (d < 0) // open: so many entries per row, or unknown until the run
        limit = a->rows ? -d : INT64_MAX;
    if (a->begin < 0 || a->end < a->begin || a->end > limit ||
        (a->rows && (d >= 0 || a->begin == a->end)))
        return TT_FAIL(q->ctx, TT_ESHAPE, "slice: [%lld, %lld) is not within axis %d of %s",
                       (long long)a->begin, (long long)a->end, axis,
                       tt_shape_text(&q->in[0]->shape, text));
    q->shape[0].dim[axis] = a->rows ? a->begin - a->end : a->end - a->begin;
    return TT_OK;
}

const tt_op tti_op_slice_grad;

static void slice_grad(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    const tti_slice_attr *a = n->attr;
    int64_t d = n->in[0]->shape.dim[a->axis];
    if (d >= 0 || a->rows) {
        dx[0] = pad_of(g, dy[0], a->axis, a->begin, (d < 0 ? -d : d) - a->end, a->rows);
    } else { // how much to append is known at the run only
        tti_pad_attr back = {.axis = a->axis, .before = a->begin};
        dx[0] = tt_node_out(g, &tti_op_slice_grad, 2, (tt_tensor *[]){dy[0], n->in[0]}, &back);
    }
}

static const tt_option slice_attrs[] = {
    {"axis", TT_OPT_INT, "0", "", offsetof(tti_slice_attr, axis), 0, 0, NULL},
    {"begin", TT_OPT_INT, "0", "first position", offsetof(tti_slice_attr, begin), 0, 0, NULL},
    {"end", TT_OPT_INT, NULL, "end position (exclusive)", offsetof(tti_slice_attr, end), 0, 0,
     NULL},
    {"rows", TT_OPT_INT, "0", "1: positions count whole batches", offsetof(tti_slice_attr, rows), 0,
     1, NULL},
    TT_OPTION_END,
};

MOVE_OP(slice, 1, 0, slice_attrs, tti_slice_attr, slice_infer, slice_grad, slice, tti_prep_move,
        "a range of positions of one axis");

static tt_tensor *slice_of(tt_graph *g, tt_tensor *x, int64_t axis, int64_t begin, int64_t end,
                           int64_t rows)
{
    tti_slice_attr a = {axis, begin, end, rows};
    return tt_node_out(g, &tti_op_slice, 1, &x, &a);
}

tt_tensor *tt_slice(tt_graph *g, tt_tensor *x, int axis, int64_t begin, int64_t end)
{
    return resolve("slice", g, x, &axis) ? slice_of(g, x, axis, begin, end, 0) : NULL;
}

// ---- pad -------------------------------------------------------------------------------------

static tt_status pad_infer(tt_infer *q)
{
    const tti_pad_attr *a = q->attr;
    int axis;
    char text[TT_SHAPE_TEXT];
    TT_TRY(start(q, &axis));
    int64_t d = q->in[0]->shape.dim[axis], sum = d < 0 ? -d : d;
    if (d < 0 && !a->rows && (a->before != 0 || a->after != 0))
        return TT_FAIL(q->ctx, TT_ESHAPE, "pad: axis %d of %s is open and cannot grow by %lld",
                       axis, tt_shape_text(&q->in[0]->shape, text),
                       (long long)(a->before + a->after));
    if (a->before < 0 || a->after < 0 || (a->rows && d >= 0) ||
        __builtin_add_overflow(sum, a->before, &sum) || __builtin_add_overflow(sum, a->after, &sum))
        return TT_FAIL(q->ctx, TT_EINVAL, "pad: %lld before and %lld after axis %d of %s",
                       (long long)a->before, (long long)a->after, axis,
                       tt_shape_text(&q->in[0]->shape, text));
    q->shape[0].dim[axis] = d < 0 ? -sum : sum;
    return TT_OK;
}

static void pad_grad(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    const tti_pad_attr *a = n->attr;
    int64_t d = n->in[0]->shape.dim[a->axis];
    dx[0] = d < 0 && !a->rows
                ? dy[0] // nothing was added
                : slice_of(g, dy[0], a->axis, a->before, a->before + (d < 0 ? -d : d), a->rows);
}

static const tt_option pad_attrs[] = {
    {"axis", TT_OPT_INT, "0", "", offsetof(tti_pad_attr, axis), 0, 0, NULL},
    {"before", TT_OPT_INT, "0", "number of zeros before", offsetof(tti_pad_attr, before), 0, 0,
     NULL},
    {"after", TT_OPT_INT, "0", "number of zeros after", offsetof(tti_pad_attr, after), 0, 0, NULL},
    {"rows", TT_OPT_INT, "0", "1: numbers count whole batches", offsetof(tti_pad_attr, rows), 0, 1,
     NULL},
    TT_OPTION_END,
};

MOVE_OP(pad, 1, 0, pad_attrs, tti_pad_attr, pad_infer, pad_grad, pad, tti_prep_move,
        "pads an axis with zeros before and after");

static tt_tensor *pad_of(tt_graph *g, tt_tensor *x, int64_t axis, int64_t before, int64_t after,
                         int64_t rows)
{
    tti_pad_attr a = {axis, before, after, rows};
    return tt_node_out(g, &tti_op_pad, 1, &x, &a);
}

tt_tensor *tt_pad(tt_graph *g, tt_tensor *x, int axis, int64_t before, int64_t after)
{
    return resolve("pad", g, x, &axis) ? pad_of(g, x, axis, before, after, 0) : NULL;
}

// The gradient of a slice by entries of the open axis: dy in zeros of the shape of x.
static tt_status slice_grad_infer(tt_infer *q)
{
    int axis;
    TT_TRY(start(q, &axis));
    if (q->in[1]->shape.rank != q->in[0]->shape.rank || ((const tti_pad_attr *)q->attr)->before < 0)
        return TT_FAIL(q->ctx, TT_ESHAPE, "slice_grad: dy and x differ in rank");
    for (int d = 0; d < q->shape[0].rank; d++)
        if (d != axis && q->in[1]->shape.dim[d] != q->shape[0].dim[d])
            return TT_FAIL(q->ctx, TT_ESHAPE, "slice_grad: dy and x differ in axis %d", d);
    q->shape[0] = q->in[1]->shape;
    return TT_OK;
}

static void slice_grad_grad(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    const tti_pad_attr *a = n->attr;
    int64_t d = n->in[0]->shape.dim[a->axis];
    dx[0] = slice_of(g, dy[0], a->axis, a->before, a->before + d, 0);
}

MOVE_OP(slice_grad, 2, 0, pad_attrs, tti_pad_attr, slice_grad_infer, slice_grad_grad, pad,
        tti_prep_move, "gradient of slice along the batch axis");

// ---- tile ------------------------------------------------------------------------------------

static tt_status tile_infer(tt_infer *q)
{
    const tti_axis_attr *a = q->attr;
    int axis;
    TT_TRY(start(q, &axis));
    if (a->n < 1 || !tti_mul_i64(q->shape[0].dim[axis], a->n, &q->shape[0].dim[axis]))
        return TT_FAIL(q->ctx, TT_EINVAL, "tile: %lld times", (long long)a->n);
    return TT_OK;
}

static void tile_grad(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    const tti_axis_attr *a = n->attr;
    const tt_shape *x = &n->in[0]->shape;
    tt_shape copies = {4, {1, a->n, x->dim[a->axis], 1}}; // outer, copies, axis, inner
    for (int i = 0; i < x->rank; i++)
        if (i != a->axis)
            copies.dim[i < a->axis ? 0 : 3] *= x->dim[i];
    tt_tensor *sum = tt_sum(g, tti_reshape_to(g, dy[0], &copies), .axis = 1);
    dx[0] = tti_reshape_to(g, sum, x);
}

static const tt_option tile_attrs[] = {
    {"axis", TT_OPT_INT, "0", "", offsetof(tti_axis_attr, axis), 0, 0, NULL},
    {"n", TT_OPT_INT, NULL, "times", offsetof(tti_axis_attr, n), 0, 0, NULL},
    TT_OPTION_END,
};

MOVE_OP(tile, 1, 0, tile_attrs, tti_axis_attr, tile_infer, tile_grad, tile, tti_prep_move,
        "repeats x along an axis");

tt_tensor *tt_tile(tt_graph *g, tt_tensor *x, int axis, int64_t times)
{
    if (!resolve("tile", g, x, &axis))
        return NULL;
    tti_axis_attr a = {axis, times};
    return tt_node_out(g, &tti_op_tile, 1, &x, &a);
}
