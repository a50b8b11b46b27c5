/*
 * op.c - what op records share: shape rules, split rules, ways to divide a kernel's work.
 */
#include "op/op.h"

// ---- shape rules -----------------------------------------------------------------------------

bool tti_is_float(tt_dtype t)
{
    return (unsigned)t < TT_N_DTYPES && (TT_TYPES_FLOAT >> t & 1u) != 0;
}

bool tti_is_half(tt_dtype t)
{
    return t == TT_BF16 || t == TT_F16;
}

tt_status tti_infer_same(tt_infer *q)
{
    q->shape[0] = q->in[0]->shape;
    q->dtype[0] = q->in[0]->dtype;
    return TT_OK;
}

tt_status tti_infer_same_float(tt_infer *q)
{
    if (!tti_is_float(q->in[0]->dtype))
        return TT_FAIL(q->ctx, TT_EDTYPE, "%s: x is %s, not a float", q->name,
                       tt_dtype_name(q->in[0]->dtype));
    return tti_infer_same(q);
}

tt_status tti_axis(tt_ctx *ctx, const char *op, int axis, const tt_shape *shape, int *out)
{
    char text[TT_SHAPE_TEXT];
    int a = axis == TT_FIRST ? 0 : axis < 0 ? axis + shape->rank : axis;
    if (a < 0 || a >= shape->rank)
        return TT_FAIL(ctx, TT_ESHAPE, "%s: there is no axis %d in %s", op,
                       axis == TT_FIRST ? 0 : axis, tt_shape_text(shape, text));
    *out = a;
    return TT_OK;
}

tt_status tti_broadcast_shape(tt_ctx *ctx, const char *op, const tt_shape *a, const tt_shape *b,
                              tt_shape *out)
{
    tt_shape y = {.rank = TTI_MAX(a->rank, b->rank)};
    for (int i = 0; i < y.rank; i++) { // from the last axis on
        int64_t da = i < a->rank ? a->dim[a->rank - 1 - i] : 1;
        int64_t db = i < b->rank ? b->dim[b->rank - 1 - i] : 1;
        if (da != db && da != 1 && db != 1)
            goto misfit;
        y.dim[y.rank - 1 - i] = da == 1 ? db : da;
    }
    int open = 0;
    for (int i = 0; i < y.rank; i++)
        open += y.dim[i] < 0;
    if (open > 1)
        goto misfit;
    *out = y;
    return TT_OK;

misfit:;
    char ta[TT_SHAPE_TEXT], tb[TT_SHAPE_TEXT];
    return TT_FAIL(ctx, TT_ESHAPE, "%s: a is %s but b is %s", op, tt_shape_text(a, ta),
                   tt_shape_text(b, tb));
}

// ---- split rules -----------------------------------------------------------------------------

static bool any_split(const tt_split_query *q)
{
    for (int i = 0; i < q->node->n_in; i++)
        if (q->axis[i] >= 0)
            return true;
    return false;
}

static void all_outputs(const tt_split_query *q, tt_split_kind kind)
{
    for (int i = 0; i < q->node->n_out; i++)
        q->out[i] = (tt_split){kind, -1};
}

/*
 * Where a split of broadcast inputs is in an output of this rank, counted from the last axis; -1:
 * one input has all of what another has a part of.
 */
static int broadcast_axis(const tt_split_query *q, int rank)
{
    int at = -1;
    for (int i = 0; i < q->node->n_in; i++) {
        int axis = q->axis[i] < 0 ? -1 : q->axis[i] + rank - q->node->in[i]->shape.rank;
        if (axis >= 0 && at >= 0 && axis != at)
            return -1;
        at = axis >= 0 ? axis : at;
    }
    for (int i = 0; i < q->node->n_in; i++) {
        const tt_shape *x = &q->node->in[i]->shape;
        int axis = at - (rank - x->rank);
        if (q->axis[i] < 0 && axis >= 0 && x->dim[axis] != 1)
            return -1;
    }
    return at;
}

tt_status tti_split_pointwise(const tt_split_query *q)
{
    for (int i = 0; i < q->node->n_out; i++) {
        int axis = broadcast_axis(q, q->node->outs[i]->shape.rank);
        q->out[i] = axis >= 0      ? (tt_split){TT_SPLIT_AXIS, axis}
                    : any_split(q) ? (tt_split){TT_SPLIT_MIXES, -1}
                                   : (tt_split){TT_SPLIT_WHOLE, -1};
    }
    return TT_OK;
}

tt_status tti_split_rows(const tt_split_query *q)
{
    for (int i = 0; i < q->node->n_in; i++)
        if (q->axis[i] >= 0 && q->axis[i] == q->node->in[i]->shape.rank - 1) {
            all_outputs(q, TT_SPLIT_MIXES);
            return TT_OK;
        }
    return tti_split_pointwise(q);
}

bool tti_split_is_of_lanes(const tt_split_query *q)
{
    for (int i = 0; i < q->node->n_in; i++)
        if (q->axis[i] >= 0 && q->node->in[i]->shape.dim[q->axis[i]] >= 0)
            return false;
    return true;
}

tt_status tti_split_first(const tt_split_query *q)
{
    const tt_shape *x = &q->node->in[0]->shape;
    bool good = q->axis[0] == 0;
    for (int i = 1; good && i < q->node->n_in; i++) // what else is split has the same rows
        good = q->axis[i] < 0 || (q->axis[i] == 0 && q->node->in[i]->shape.dim[0] == x->dim[0]);
    for (int i = 0; good && i < q->node->n_out; i++)
        good = q->node->outs[i]->shape.rank > 0 && q->node->outs[i]->shape.dim[0] == x->dim[0];
    if (!good) {
        all_outputs(q, any_split(q) ? TT_SPLIT_MIXES : TT_SPLIT_WHOLE);
        return TT_OK;
    }
    for (int i = 0; i < q->node->n_out; i++)
        q->out[i] = (tt_split){TT_SPLIT_AXIS, 0};
    return TT_OK;
}

tt_status tti_split_whole(const tt_split_query *q)
{
    all_outputs(q, any_split(q) ? TT_SPLIT_MIXES : TT_SPLIT_WHOLE);
    return TT_OK;
}

// ---- dividing the work -----------------------------------------------------------------------

// Streaming costs about 0.1 ns a byte on one thread; a kernel that computes more says so itself.
static double stream_ns(const tt_prep *p)
{
    double bytes = 0;
    for (int i = 0; i < p->n_in; i++)
        bytes += (double)p->in[i].count * (double)tt_dtype_bytes(p->in[i].dtype);
    for (int i = 0; i < p->n_out; i++)
        bytes += (double)p->out_args[i].count * (double)tt_dtype_bytes(p->out_args[i].dtype);
    return 50 + 0.1 * bytes;
}

tt_status tti_prep_elements(tt_prep *p)
{
    p->n_phases = 1;
    p->units[0] = p->out_args[0].count;
    p->grain[0] = 4096;
    p->ns = stream_ns(p);
    return TT_OK;
}

tt_status tti_prep_rows(tt_prep *p)
{
    int64_t cols = TTI_MAX(p->out_args[0].cols, 1);
    p->n_phases = 1;
    p->units[0] = p->out_args[0].rows;
    p->grain[0] = TTI_MAX(4096 / cols, 1);
    p->ns = 3 * stream_ns(p);
    return TT_OK;
}

tt_status tti_prep_one(tt_prep *p)
{
    p->n_phases = 1;
    p->units[0] = 1;
    p->grain[0] = 1;
    p->ns = stream_ns(p);
    return TT_OK;
}

// ---- constants in the shape of a tensor ------------------------------------------------------

static tt_tensor *fill_like(tt_graph *g, tt_tensor *x, double value)
{
    if (g == NULL || x == NULL)
        return NULL;
    return tt_broadcast(g, tt_fill(g, x->dtype, TT_SCALAR, value), x);
}

tt_tensor *tti_zeros_like(tt_graph *g, tt_tensor *x)
{
    return fill_like(g, x, 0);
}

tt_tensor *tti_ones_like(tt_graph *g, tt_tensor *x)
{
    return fill_like(g, x, 1);
}
