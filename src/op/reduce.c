/*
 * reduce.c - sum, mean, max, min, argmax, logsumexp over any axes. Kernels: reduce_cpu.c.
 *
 * The order of additions. Axes of one entry do not count, unless open. The reduced axes at the
 * end of the shape, but not beyond the open axis, are the tail: its elements, in order, are a row.
 * It is cut into blocks of 1,024 from its start; in a block element j goes to partial j mod 16,
 * then partials 8, 4, 2, 1 apart; blocks are added by the binary tree over their numbers. Without a
 * tail each element is a row by itself. Rows, over the other reduced axes in row-major order, are
 * cut into blocks of 64; in a block they are added in one chain, blocks by the tree over their
 * numbers. A reduced open axis is cut into lanes: each has its own sum, with blocks that count from
 * its first row, and these are combined by the tree over lanes.
 *
 *   max, min     ties: the gradient goes to the first in that order     argmax  ties: the lowest
 *                a NaN is above and below all; of several the first counts
 *   mean         sum / count, count over the global batch
 *   logsumexp    m + log(sum(e^(x - m))), m the maximum, or 0 where that is infinite
 */
#include "op/reduce.h"
#include "op/op.h"
#include "op/shape.h"

// ---- attributes and shapes -------------------------------------------------------------------

#define REDUCE_ROWS(off_)                                                                   \
    {"axes", TT_OPT_INTS, NULL, "axes to reduce", (off_) + offsetof(tti_reduce_attr, axes), \
     0,      0,           NULL},                                                            \
        {"keep_dims",                                                                       \
         TT_OPT_BOOL,                                                                       \
         "false",                                                                           \
         "keep the reduced axes with size 1",                                               \
         (off_) + offsetof(tti_reduce_attr, keep_dims),                                     \
         0,                                                                                 \
         0,                                                                                 \
         NULL},                                                                             \
        {"lead",                                                                            \
         TT_OPT_INT,                                                                        \
         "0",                                                                               \
         "number of leading axes to drop in spite of keep_dims",                            \
         (off_) + offsetof(tti_reduce_attr, lead),                                          \
         0,                                                                                 \
         TT_MAX_RANK,                                                                       \
         NULL},                                                                             \
    {                                                                                       \
        "wide", TT_OPT_BOOL, "false", "compute y as f32 for any type of x",                 \
            (off_) + offsetof(tti_reduce_attr, wide), 0, 0, NULL                            \
    }

static const tt_option reduce_attrs[] = {REDUCE_ROWS(0), TT_OPTION_END};
static const tt_option count_attrs[] = {
    REDUCE_ROWS(offsetof(tti_count_attr, reduce)),
    {"dtype", TT_OPT_DTYPE, "f32", "element type of y", offsetof(tti_count_attr, dtype), 0, 0,
     NULL},
    TT_OPTION_END,
};

// The axes that the options name, ascending.
static tt_status read_axes(tt_ctx *ctx, const char *op, const tt_shape *x,
                           const tt_reduce_opts *opts, tti_reduce_attr *out)
{
    bool on[TT_MAX_RANK] = {false};
    tt_axes axes = opts->axis != 0 ? TT_AXES(opts->axis) : opts->axes;
    if (axes.n < 0 || axes.n > TT_MAX_RANK)
        return TT_FAIL(ctx, TT_EINVAL, "%s: %d axes", op, axes.n);
    for (int i = 0; i < axes.n; i++) {
        int a = 0;
        TT_TRY(tti_axis(ctx, op, axes.axis[i], x, &a));
        if (on[a])
            return TT_FAIL(ctx, TT_EINVAL, "%s: axis %d is given twice", op, a);
        on[a] = true;
    }
    *out = (tti_reduce_attr){.keep_dims = opts->keep_dims};
    for (int a = 0; a < x->rank; a++)
        if (axes.n == 0 || on[a])
            out->axes.v[out->axes.n++] = a;
    return TT_OK;
}

static tt_status reduce_infer(tt_infer *q)
{
    const tti_reduce_attr *a = q->attr;
    const tt_tensor *x = q->in[0];
    char text[TT_SHAPE_TEXT];
    TT_TRY(tti_infer_same_float(q));
    for (int i = 0; i < a->axes.n; i++)
        if (a->axes.v[i] < 0 || a->axes.v[i] >= x->shape.rank ||
            (i > 0 && a->axes.v[i] <= a->axes.v[i - 1]))
            return TT_FAIL(q->ctx, TT_ESHAPE, "%s: axis %lld does not fit %s", q->name,
                           (long long)a->axes.v[i], tt_shape_text(&x->shape, text));
    q->shape[0] = (tt_shape){0};
    for (int i = 0; i < x->shape.rank; i++) {
        bool reduced = tti_is_reduced(a, i);
        if (!reduced || (a->keep_dims && i >= a->lead))
            q->shape[0].dim[q->shape[0].rank++] = reduced ? 1 : x->shape.dim[i];
    }
    if (a->wide)
        q->dtype[0] = TT_F32;
    return TT_OK;
}

// Split as x is, axes that are left counted; if that axis is reduced, as asked for.
static tt_status split_or(const tt_split_query *q, tt_split_kind reduced)
{
    const tti_reduce_attr *a = q->node->attr;
    int axis = 0;
    q->out[0] = (tt_split){TT_SPLIT_WHOLE, -1};
    if (q->axis[0] < 0)
        return TT_OK;
    for (int i = 0; i < q->axis[0]; i++)
        axis += !tti_is_reduced(a, i) || (a->keep_dims && i >= a->lead);
    q->out[0] =
        tti_is_reduced(a, q->axis[0]) ? (tt_split){reduced, -1} : (tt_split){TT_SPLIT_AXIS, axis};
    return TT_OK;
}

static tt_status sum_split(const tt_split_query *q)
{
    return split_or(q, TT_SPLIT_LANE_SUM);
}

static tt_status max_split(const tt_split_query *q)
{
    return split_or(q, TT_SPLIT_MIXES);
}

// x, y, dy -> dx, which is split as x is; y and dy as the maximum of x is.
static tt_status max_grad_split(const tt_split_query *q)
{
    TT_TRY(max_split(q));
    bool good = q->out[0].kind == TT_SPLIT_AXIS && q->axis[1] == q->out[0].axis &&
                q->axis[2] == q->out[0].axis;
    bool none = q->axis[0] < 0 && q->axis[1] < 0 && q->axis[2] < 0;
    q->out[0] = (tt_split){good   ? TT_SPLIT_AXIS
                           : none ? TT_SPLIT_WHOLE
                                  : TT_SPLIT_MIXES,
                           q->axis[0]};
    return TT_OK;
}

// ---- dividing the work -----------------------------------------------------------------------

static tt_status prepare_units(tt_prep *p, int64_t units, int64_t n_lanes)
{
    int64_t count = TTI_MAX(p->in[0].count, 1);
    p->n_phases = 1;
    p->units[0] = units * n_lanes;
    p->grain[0] = TTI_MIN(TTI_MAX(p->units[0] * 4096 / count, 1), TTI_MAX(p->units[0], 1));
    p->ns = 100 + 0.4 * (double)count + 10 * (double)p->units[0];
    return TT_OK;
}

// Room for the sums of columns that wait in the tree, but the first; few columns are in registers.
static size_t sum_room(const tti_reduction *r)
{
    int64_t rows = 1, wide = r->cols > TTI_SUM_LONG ? TTI_SUM_COLUMNS : r->cols;
    int levels = 0;
    for (int i = 0; i < r->sum.n; i++)
        rows *= r->sum.dim[i];
    for (int64_t last = (rows - 1) / TTI_SUM_ROWS; last > 0; last /= 2)
        levels++;
    return r->has_tail ? 0 : (size_t)levels * (size_t)(wide + 15) * sizeof(double);
}

static tt_status prepare_sum(tt_prep *p)
{
    tti_reduction r = tti_reduction_of(p->attr, &p->in[0]);
    bool lanes = tti_by_lanes(&r);
    TT_TRY(prepare_units(p, tti_reduce_units(&r), lanes ? p->lanes->n : 1));
    p->local_bytes = sum_room(&r);
    if (!lanes || p->lanes->n == 1)
        return TT_OK;
    p->n_phases = 2;
    p->units[1] = r.count;
    p->grain[1] = 1024;
    p->scratch_bytes = (size_t)p->lanes->n * (size_t)r.count * sizeof(double);
    return TT_OK;
}

static tt_status prepare_max(tt_prep *p)
{
    tti_reduction r = tti_reduction_of(p->attr, &p->in[0]);
    return prepare_units(p, tti_reduce_units(&r), 1);
}

// ---- gradients -------------------------------------------------------------------------------

// dy with the reduced axes back in place, so that it broadcasts over x.
static tt_tensor *with_axes(tt_graph *g, const tti_reduce_attr *a, tt_tensor *dy)
{
    for (int i = 0; !a->keep_dims && i < a->axes.n; i++)
        dy = tt_expand_dims(g, dy, a->axes.v[i] == 0 ? TT_FIRST : (int)a->axes.v[i]);
    return dy;
}

static void sum_dx(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    tt_tensor *x = n->in[0];
    dx[0] = tt_broadcast(g, with_axes(g, n->attr, tt_cast(g, dy[0], x->dtype)), x);
}

extern const tt_op tti_op_max_grad;
static void max_dx(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    dx[0] =
        tt_node_out(g, &tti_op_max_grad, 3, (tt_tensor *const[]){n->in[0], n->out, dy[0]}, n->attr);
}

// ---- records ---------------------------------------------------------------------------------

#define REDUCE(name_, help_, split_, grad_, prepare_)                 \
    const tt_op tti_op_##name_ = {                                    \
        .name = #name_,                                               \
        .help = help_,                                                \
        .inputs = 1,                                                  \
        .flags = TT_OP_ROW_FREE,                                      \
        .attrs = reduce_attrs,                                        \
        .attr_size = sizeof(tti_reduce_attr),                         \
        .infer = reduce_infer,                                        \
        .split = split_,                                              \
        .grad = grad_,                                                \
        .kernel = {[TT_CPU] = TTI_CPU(tti_reduce_##name_, prepare_)}, \
    }
REDUCE(sum, "sum over axes", sum_split, sum_dx, prepare_sum);
REDUCE(max, "maximum over axes", max_split, max_dx, prepare_max);
REDUCE(min, "minimum over axes", max_split, max_dx, prepare_max);

static tt_status max_grad_infer(tt_infer *q)
{
    const tt_tensor *y = q->in[1], *dy = q->in[2];
    char a[TT_SHAPE_TEXT], b[TT_SHAPE_TEXT];
    if (!tti_shape_equal(&y->shape, &dy->shape) || y->dtype != dy->dtype)
        return TT_FAIL(q->ctx, TT_ESHAPE, "%s: y is %s %s but dy is %s %s", q->name,
                       tt_dtype_name(y->dtype), tt_shape_text(&y->shape, a),
                       tt_dtype_name(dy->dtype), tt_shape_text(&dy->shape, b));
    TT_TRY(reduce_infer(q));
    if (!tti_shape_equal(&q->shape[0], &y->shape) || q->dtype[0] != y->dtype)
        return TT_FAIL(q->ctx, TT_ESHAPE, "%s: y is %s but x gives %s", q->name,
                       tt_shape_text(&y->shape, a), tt_shape_text(&q->shape[0], b));
    return tti_infer_same_float(q);
}

const tt_op tti_op_max_grad = {
    .name = "max_grad",
    .help = "gradient of max or min, from x, y and dy: dy goes to the first x that equals y",
    .inputs = 3,
    .flags = TT_OP_ROW_FREE,
    TTI_ATTRS(reduce_attrs, tti_reduce_attr),
    .infer = max_grad_infer,
    .split = max_grad_split,
    .kernel = {[TT_CPU] = TTI_CPU(tti_reduce_max_grad, prepare_max)},
};

static tt_status argmax_infer(tt_infer *q)
{
    const tti_reduce_attr *a = q->attr;
    if (a->axes.n != 1)
        return TT_FAIL(q->ctx, TT_EINVAL, "argmax: %d axes, not one", a->axes.n);
    TT_TRY(reduce_infer(q));
    q->dtype[0] = TT_I32;
    return TT_OK;
}

const tt_op tti_op_argmax = {
    .name = "argmax",
    .help = "index of the maximum along an axis; the lowest index among equals",
    .inputs = 1,
    .flags = TT_OP_ROW_FREE | TT_OP_NO_GRAD,
    .types = 1u << TT_I32,
    TTI_ATTRS(reduce_attrs, tti_reduce_attr),
    .infer = argmax_infer,
    .split = max_split,
    .kernel = {[TT_CPU] = TTI_CPU(tti_reduce_argmax, prepare_max)},
};

static tt_status count_infer(tt_infer *q)
{
    const tti_count_attr *a = q->attr;
    if (a->dtype != TT_F32 && a->dtype != TT_F64)
        return TT_FAIL(q->ctx, TT_EDTYPE, "count: y is %s, not f32 or f64",
                       tt_dtype_name(a->dtype));
    q->shape[0] = TT_SCALAR;
    q->dtype[0] = a->dtype;
    return TT_OK;
}

// Of lanes it knows how many rows there are in all.
static tt_status count_split(const tt_split_query *q)
{
    bool mixes = !tti_split_is_of_lanes(q) && tti_is_reduced(q->node->attr, q->axis[0]);
    q->out[0] = (tt_split){mixes ? TT_SPLIT_MIXES : TT_SPLIT_WHOLE, -1};
    return TT_OK;
}

// Only the shape of x is used.
const tt_op tti_op_count = {
    .name = "count",
    .help = "number of entries that a reduction over these axes covers, over the global batch",
    .inputs = 1,
    .flags = TT_OP_ANY_TYPE | TT_OP_NO_GRAD,
    .types = 1u << TT_F32 | 1u << TT_F64,
    .shape_only = 1u << 0,
    TTI_ATTRS(count_attrs, tti_count_attr),
    .infer = count_infer,
    .split = count_split,
    .kernel = {[TT_CPU] = TTI_CPU(tti_reduce_count, tti_prep_one)},
};

// ---- builders --------------------------------------------------------------------------------

/*
 * Sums of bf16 and f16 over the open axis leave the node as f32, so that parts of a batch can be
 * combined before anything is rounded.
 */
static tt_tensor *sum_node(tt_graph *g, tt_tensor *x, tti_reduce_attr a)
{
    int open = tt_open_axis(&x->shape);
    a.wide = tti_is_half(x->dtype) && open >= 0 && tti_is_reduced(&a, open);
    tt_tensor *y = tt_node_out(g, &tti_op_sum, 1, &x, &a);
    return y == NULL ? NULL : tt_cast(g, y, x->dtype);
}

static bool ready(tt_graph *g, const char *op, tt_tensor *x, const tt_reduce_opts *opts,
                  tti_reduce_attr *a)
{
    return tti_given(g, op, x) && !tti_is_stuck(tt_graph_get_ctx(g)) &&
           read_axes(tt_graph_get_ctx(g), op, &x->shape, opts, a) == TT_OK;
}

tt_tensor *tt_sum_with(tt_graph *g, tt_tensor *x, const tt_reduce_opts *opts)
{
    if (!tti_has_graph(g, x, "sum"))
        return NULL;
    TTI_OPTS_OWN(tt_graph_get_ctx(g), "sum", tt_reduce_opts, opts);
    if (opts == NULL)
        return NULL;
    tti_reduce_attr a;
    return ready(g, "sum", x, opts, &a) ? sum_node(g, x, a) : NULL;
}

tt_tensor *tt_max_with(tt_graph *g, tt_tensor *x, const tt_reduce_opts *opts)
{
    if (!tti_has_graph(g, x, "max"))
        return NULL;
    TTI_OPTS_OWN(tt_graph_get_ctx(g), "max", tt_reduce_opts, opts);
    if (opts == NULL)
        return NULL;
    tti_reduce_attr a;
    return ready(g, "max", x, opts, &a) ? tt_node_out(g, &tti_op_max, 1, &x, &a) : NULL;
}

tt_tensor *tt_min_with(tt_graph *g, tt_tensor *x, const tt_reduce_opts *opts)
{
    if (!tti_has_graph(g, x, "min"))
        return NULL;
    TTI_OPTS_OWN(tt_graph_get_ctx(g), "min", tt_reduce_opts, opts);
    if (opts == NULL)
        return NULL;
    tti_reduce_attr a;
    return ready(g, "min", x, opts, &a) ? tt_node_out(g, &tti_op_min, 1, &x, &a) : NULL;
}

tt_tensor *tt_argmax(tt_graph *g, tt_tensor *x, int axis)
{
    tti_reduce_attr a;
    tt_reduce_opts opts = {.axes = TT_AXES(axis)};
    return ready(g, "argmax", x, &opts, &a) ? tt_node_out(g, &tti_op_argmax, 1, &x, &a) : NULL;
}

static tt_tensor *count_node(tt_graph *g, tt_tensor *x, const tti_reduce_attr *a, tt_dtype dtype)
{
    int open = tt_open_axis(&x->shape);
    if (open >= 0 && tti_is_reduced(a, open))
        return tt_node_out(g, &tti_op_count, 1, &x, &(tti_count_attr){*a, dtype});
    double n = 1;
    for (int i = 0; i < a->axes.n; i++)
        n *= (double)x->shape.dim[a->axes.v[i]];
    return tt_fill(g, dtype, TT_SCALAR, n);
}

tt_tensor *tt_count(tt_graph *g, tt_tensor *x, const tt_reduce_opts *opts)
{
    tti_reduce_attr a;
    tt_reduce_opts own = {0};
    if (!tti_has_graph(g, x, "count"))
        return NULL;
    if (opts != NULL && TTI_OPTS_COPY(tt_graph_get_ctx(g), "count", opts, &own) != TT_OK)
        return NULL;
    return ready(g, "count", x, &own, &a) ? count_node(g, x, &a, TT_F32) : NULL;
}

// bf16 and f16 are computed as f32 and rounded once, at the end.
tt_tensor *tt_mean_with(tt_graph *g, tt_tensor *x, const tt_reduce_opts *opts)
{
    if (!tti_has_graph(g, x, "mean"))
        return NULL;
    TTI_OPTS_OWN(tt_graph_get_ctx(g), "mean", tt_reduce_opts, opts);
    if (opts == NULL)
        return NULL;
    tti_reduce_attr a;
    if (!ready(g, "mean", x, opts, &a))
        return NULL;
    tt_dtype t = x->dtype;
    if (tti_is_half(t))
        x = tt_cast(g, x, TT_F32);
    tt_tensor *sum = x == NULL ? NULL : sum_node(g, x, a);
    tt_tensor *y = sum == NULL ? NULL : tt_div(g, sum, count_node(g, x, &a, x->dtype));
    return y == NULL ? NULL : tt_cast(g, y, t);
}

// x where it is finite, else 0: x - x is 0 there, else NaN.
static tt_tensor *finite_or_zero(tt_graph *g, tt_tensor *x)
{
    if (x == NULL)
        return NULL;
    tt_tensor *zero = tt_fill(g, x->dtype, TT_SCALAR, 0);
    return tt_where(g, tt_equal(g, tt_sub(g, x, x), zero), x, zero);
}

tt_tensor *tt_logsumexp_with(tt_graph *g, tt_tensor *x, const tt_reduce_opts *opts)
{
    if (!tti_has_graph(g, x, "logsumexp"))
        return NULL;
    TTI_OPTS_OWN(tt_graph_get_ctx(g), "logsumexp", tt_reduce_opts, opts);
    if (opts == NULL)
        return NULL;
    tti_reduce_attr a;
    if (!ready(g, "logsumexp", x, opts, &a))
        return NULL;
    tt_dtype t = x->dtype;
    bool keep = a.keep_dims;
    a.keep_dims = true;
    if (tti_is_half(t))
        x = tt_cast(g, x, TT_F32);
    tt_tensor *m = tt_stop_gradient(g, finite_or_zero(g, tt_node_out(g, &tti_op_max, 1, &x, &a)));
    tt_tensor *e = tt_exp(g, tt_sub(g, x, m));
    tt_tensor *y = e == NULL ? NULL : tt_add(g, tt_log(g, sum_node(g, e, a)), m);
    for (int i = a.axes.n - 1; !keep && i >= 0; i--)
        y = tt_squeeze(g, y, a.axes.v[i] == 0 ? TT_FIRST : (int)a.axes.v[i]);
    return y == NULL ? NULL : tt_cast(g, y, t);
}

tt_tensor *tt_sum_like(tt_graph *g, tt_tensor *x, tt_tensor *like)
{
    if (!tti_given(g, "sum_like", x) || !tti_given(g, "sum_like", like))
        return NULL;
    const tt_shape *to = &like->shape;
    int lead = x->shape.rank - to->rank;
    tti_reduce_attr a = {.keep_dims = true, .lead = lead};
    bool fits = lead >= 0;
    for (int i = 0; fits && i < x->shape.rank; i++) {
        bool reduced = i < lead || (to->dim[i - lead] == 1 && x->shape.dim[i] != 1);
        fits = reduced || x->shape.dim[i] == to->dim[i - lead];
        if (reduced)
            a.axes.v[a.axes.n++] = i;
    }
    char s[TT_SHAPE_TEXT], t[TT_SHAPE_TEXT];
    if (!fits) {
        (void)TT_FAIL(tt_graph_get_ctx(g), TT_ESHAPE, "sum_like: x is %s but like is %s",
                      tt_shape_text(&x->shape, s), tt_shape_text(to, t));
        return NULL;
    }
    return a.axes.n == 0 ? x : sum_node(g, x, a);
}
