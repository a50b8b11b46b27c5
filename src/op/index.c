/*
 * index.c - lookups by integer ids (i32 or i64), and their gradients. Kernels: index_cpu.c,
 * index.cu.
 *   embedding    y[..., :] = table[ids[...], :]            dtable = embedding_grad(dy, ids)
 *   gather       the same along any axis of x              dx = scatter_add(dy, ids)
 *   scatter_add  zeros plus pieces of x at ids             dx = gather(dy, ids)
 *   one_hot      y[..., k] = ids[...] == k                 no gradient
 *
 * The sum of a place runs, per lane of ids, over positions in order, then over lanes by the tree.
 * Only rows that occur are summed; the others are zeroed. An id out of range fails the run and is
 * named.
 */
#include "op/index.h"
#include "op/op.h"
#include "op/sparse_rows.h"
#include <string.h>

static tt_status check_ids(const tt_infer *q, const tt_tensor *ids)
{
    if (ids->dtype == TT_I32 || ids->dtype == TT_I64)
        return TT_OK;
    return TT_FAIL(q->ctx, TT_EDTYPE, "%s: ids are %s, not i32 or i64", q->name,
                   tt_dtype_name(ids->dtype));
}

static tt_status check_axis(const tt_infer *q, int64_t axis)
{
    char text[TT_SHAPE_TEXT];
    const tt_shape *x = &q->in[0]->shape;
    if (axis >= 0 && axis < x->rank)
        return TT_OK;
    return TT_FAIL(q->ctx, TT_EINVAL, "%s: axis %lld is not one of %s", q->name, (long long)axis,
                   tt_shape_text(x, text));
}

// ---- gather and embedding --------------------------------------------------------------------

static tt_status gather_infer(tt_infer *q)
{
    int64_t axis = ((const tti_gather_attr *)q->attr)->axis;
    const tt_shape *x = &q->in[0]->shape, *ids = &q->in[1]->shape;
    char a[TT_SHAPE_TEXT], b[TT_SHAPE_TEXT];
    TT_TRY(check_ids(q, q->in[1]));
    TT_TRY(check_axis(q, axis));
    if (x->rank + ids->rank - 1 > TT_MAX_RANK)
        return TT_FAIL(q->ctx, TT_ESHAPE, "%s: x %s by ids %s has more than %d axes", q->name,
                       tt_shape_text(x, a), tt_shape_text(ids, b), TT_MAX_RANK);
    tt_shape *y = &q->shape[0];
    for (int i = 0; i < x->rank; i++) {
        if (i != axis)
            y->dim[y->rank++] = x->dim[i];
        for (int k = 0; i == axis && k < ids->rank; k++)
            y->dim[y->rank++] = ids->dim[k];
    }
    int open = 0;
    for (int i = 0; i < y->rank; i++)
        open += y->dim[i] < 0;
    if (open > 1)
        return TT_FAIL(q->ctx, TT_ESHAPE, "%s: x %s by ids %s would have two open dimensions",
                       q->name, tt_shape_text(x, a), tt_shape_text(ids, b));
    q->dtype[0] = q->in[0]->dtype;
    return TT_OK;
}

static tt_status gather_split(const tt_split_query *q)
{
    int64_t axis = ((const tti_gather_attr *)q->node->attr)->axis;
    int x = q->axis[0], ids = q->axis[1], rank = q->node->in[1]->shape.rank;
    if (x < 0 && ids < 0)
        q->out[0] = (tt_split){TT_SPLIT_WHOLE, -1};
    else if (x < 0)
        q->out[0] = (tt_split){TT_SPLIT_AXIS, (int)axis + ids};
    else if (ids < 0 && x != axis)
        q->out[0] = (tt_split){TT_SPLIT_AXIS, x < axis ? x : x + rank - 1};
    else
        q->out[0] = (tt_split){TT_SPLIT_MIXES, -1};
    return TT_OK;
}

static tt_status gather_prep(tt_prep *p)
{
    int64_t axis = ((const tti_gather_attr *)p->attr)->axis, inner = 1;
    for (int i = (int)axis + 1; i < p->in[0].shape.rank; i++)
        inner *= p->in[0].shape.dim[i];
    const tt_arg *y = &p->out_args[0];
    p->units[0] = inner == 0 ? 0 : y->count / inner;
    p->grain[0] = TTI_MAX(1, 8192 / TTI_MAX(inner, 1));
    p->ns = (double)y->count * (double)tt_dtype_bytes(y->dtype) * 0.2 + 4.0 * (double)p->units[0];
    return TT_OK;
}

static tt_tensor *scatter(tt_graph *g, const tt_op *op, tt_tensor *x, tt_tensor *ids, int64_t axis,
                          int64_t n)
{
    tti_scatter_attr a = {axis, n};
    return tt_node_out(g, op, 2, (tt_tensor *[]){x, ids}, &a);
}

const tt_op tti_op_embedding_grad, tti_op_scatter_add;

static void gather_grad(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    int64_t axis = ((const tti_gather_attr *)n->attr)->axis;
    dx[0] = scatter(g, &tti_op_scatter_add, dy[0], n->in[1], axis, n->in[0]->shape.dim[axis]);
}

static void embedding_grad(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    dx[0] = scatter(g, &tti_op_embedding_grad, dy[0], n->in[1], 0, n->in[0]->shape.dim[0]);
}

static tt_status embedding_infer(tt_infer *q)
{
    char text[TT_SHAPE_TEXT];
    if (q->in[0]->shape.rank != 2)
        return TT_FAIL(q->ctx, TT_ESHAPE, "embedding: the table is %s, not [n, c]",
                       tt_shape_text(&q->in[0]->shape, text));
    return gather_infer(q);
}

static const tt_option gather_attrs[] = {
    {"axis", TT_OPT_INT, "0", "", offsetof(tti_gather_attr, axis), 0, 0, NULL},
    TT_OPTION_END,
};

const tt_op tti_op_embedding = {
    .name = "embedding",
    .help = "looks up rows of a table by id",
    .inputs = 2,
    .flags = TT_OP_BITS | TT_OP_ROW_FREE,
    .types = TT_TYPES_ALL,
    TTI_ATTRS(gather_attrs, tti_gather_attr),
    .infer = embedding_infer,
    .split = gather_split,
    .grad = embedding_grad,
    .kernel = {[TT_CPU] = TTI_CPU(gather, gather_prep)},
};

const tt_op tti_op_gather = {
    .name = "gather",
    .help = "picks positions of one axis by id",
    .inputs = 2,
    .flags = TT_OP_BITS | TT_OP_ROW_FREE,
    .types = TT_TYPES_ALL,
    TTI_ATTRS(gather_attrs, tti_gather_attr),
    .infer = gather_infer,
    .split = gather_split,
    .grad = gather_grad,
    .kernel = {[TT_CPU] = TTI_CPU(gather, gather_prep)},
};

tt_tensor *tt_embedding(tt_graph *g, tt_tensor *table, tt_tensor *ids)
{
    tti_gather_attr a = {0};
    return tt_node_out(g, &tti_op_embedding, 2, (tt_tensor *[]){table, ids}, &a);
}

static tt_tensor *gather(tt_graph *g, tt_tensor *x, tt_tensor *ids, int64_t axis)
{
    tti_gather_attr a = {axis};
    return tt_node_out(g, &tti_op_gather, 2, (tt_tensor *[]){x, ids}, &a);
}

tt_tensor *tt_gather(tt_graph *g, tt_tensor *x, tt_tensor *ids, int axis)
{
    if (g != NULL && x != NULL &&
        tti_axis(tt_graph_get_ctx(g), "gather", axis, &x->shape, &axis) != TT_OK)
        return NULL;
    return gather(g, x, ids, axis);
}

// ---- scatter_add -----------------------------------------------------------------------------

// x is [outer..., ids..., inner...]; y is [outer..., n, inner...].
static tt_status scatter_infer(tt_infer *q)
{
    const tti_scatter_attr *a = q->attr;
    const tt_shape *x = &q->in[0]->shape, *ids = &q->in[1]->shape;
    char tx[TT_SHAPE_TEXT], ti[TT_SHAPE_TEXT];
    TT_TRY(check_ids(q, q->in[1]));
    bool ok =
        a->axis >= 0 && a->axis + ids->rank <= x->rank && x->rank - ids->rank + 1 <= TT_MAX_RANK;
    for (int i = 0; ok && i < ids->rank; i++)
        ok = ids->dim[i] == x->dim[a->axis + i];
    if (!ok)
        return TT_FAIL(q->ctx, TT_ESHAPE, "%s: x is %s but ids are %s, to be found at axis %lld",
                       q->name, tt_shape_text(x, tx), tt_shape_text(ids, ti), (long long)a->axis);
    if (!tti_is_float(q->in[0]->dtype))
        return TT_FAIL(q->ctx, TT_EDTYPE, "%s: x is %s, not a float", q->name,
                       tt_dtype_name(q->in[0]->dtype));
    tt_shape *y = &q->shape[0];
    for (int i = 0; i <= x->rank; i++) {
        if (i == a->axis)
            y->dim[y->rank++] = a->n;
        if (i < x->rank && (i < a->axis || i >= a->axis + ids->rank))
            y->dim[y->rank++] = x->dim[i];
    }
    q->dtype[0] = q->in[0]->dtype;
    return TT_OK;
}

static tt_status scatter_split(const tt_split_query *q)
{
    const tti_scatter_attr *a = q->node->attr;
    int x = q->axis[0], ids = q->axis[1], rank = q->node->in[1]->shape.rank;
    if (a->n < 0)
        q->out[0] = (tt_split){TT_SPLIT_MIXES, -1};
    else if (x < 0 && ids < 0)
        q->out[0] = (tt_split){TT_SPLIT_WHOLE, -1};
    else if (ids >= 0)
        q->out[0] = (tt_split){TT_SPLIT_LANE_SUM, -1};
    else
        q->out[0] = (tt_split){TT_SPLIT_AXIS, x < a->axis ? x : x - rank + 1};
    return TT_OK;
}

static tt_status scatter_prep(tt_prep *p)
{
    const tt_arg *ids = &p->in[1];
    tti_scatter_plan t;
    TT_TRY(tti_scatter_start(p, &t));
    p->n_phases = 2;
    p->units[0] = 1;
    p->units[1] = t.outer * t.n * t.blocks;
    p->grain[1] = TTI_MAX(1, 16384 / TTI_MAX(TTI_MIN(t.inner, TTI_SCATTER_BLOCK), 1));
    p->scratch_bytes = sizeof(int32_t) * (size_t)(t.n + 1 + ids->count);
    p->ns = (double)p->in[0].count * 0.4 + (double)p->out_args[0].count * 0.3 + (double)t.n * 0.5 +
            (double)ids->count * 4;
    return TT_OK;
}

static void scatter_grad(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    dx[0] = gather(g, dy[0], n->in[1], ((const tti_scatter_attr *)n->attr)->axis);
}

static const tt_option scatter_attrs[] = {
    {"axis", TT_OPT_INT, "0", "axis of x at which the ids' axes begin",
     offsetof(tti_scatter_attr, axis), 0, 0, NULL},
    {"n", TT_OPT_INT, NULL, "places", offsetof(tti_scatter_attr, n), 0, 0, NULL},
    TT_OPTION_END,
};

const tt_op tti_op_scatter_add = {
    .name = "scatter_add",
    .help = "a tensor of zeros with parts of x added at the ids",
    .inputs = 2,
    TTI_ATTRS(scatter_attrs, tti_scatter_attr),
    .infer = scatter_infer,
    .split = scatter_split,
    .grad = scatter_grad,
    .kernel = {[TT_CPU] = TTI_CPU(scatter_add, scatter_prep)},
};

const tt_op tti_op_embedding_grad = {
    .name = "embedding_grad",
    .help = "gradient of embedding with respect to the table",
    .inputs = 2,
    TTI_ATTRS(scatter_attrs, tti_scatter_attr),
    .infer = scatter_infer,
    .split = scatter_split,
    .grad = scatter_grad,
    .kernel = {[TT_CPU] = TTI_CPU(scatter_add, scatter_prep)},
};

static tt_status touched_prep(tt_prep *p)
{
    TT_TRY(scatter_prep(p));
    tti_scatter_plan t;
    memcpy(&t, p->tune, sizeof(t));
    p->units[1] = p->in[1].count;
    p->grain[1] = TTI_MAX(1, 16384 / TTI_MAX(t.inner, 1));
    p->scratch_bytes += sizeof(int32_t) * (size_t)(p->in[1].count + 1);
    return TT_OK;
}

const tt_kernel *tti_sparse_rows_kernel(const tt_node *n, tt_backend_id backend)
{
    static const tt_kernel kernels[TT_N_BACKENDS] = {
        [TT_CPU] = TTI_CPU(touched_rows, touched_prep),
    };
    if (n->op != &tti_op_scatter_add && n->op != &tti_op_embedding_grad)
        return NULL;
    const tti_scatter_attr *a = n->attr;
    return a->axis != 0 || a->n < 1 || kernels[backend].prepare == NULL ? NULL : &kernels[backend];
}

tt_tensor *tt_scatter_add(tt_graph *g, tt_tensor *x, tt_tensor *ids, int64_t n)
{
    if (g != NULL && n < 0) {
        (void)TT_FAIL(tt_graph_get_ctx(g), TT_EINVAL, "scatter_add: n is %lld", (long long)n);
        return NULL;
    }
    return scatter(g, &tti_op_scatter_add, x, ids, 0, n);
}

// ---- one_hot ---------------------------------------------------------------------------------

static tt_status one_hot_infer(tt_infer *q)
{
    const tti_one_hot_attr *a = q->attr;
    const tt_shape *ids = &q->in[0]->shape;
    TT_TRY(check_ids(q, q->in[0]));
    if (a->depth < 1 || ids->rank == TT_MAX_RANK)
        return TT_FAIL(q->ctx, TT_EINVAL, "one_hot: depth %lld for ids of rank %d",
                       (long long)a->depth, ids->rank);
    if ((unsigned)a->dtype >= TT_N_DTYPES)
        return TT_FAIL(q->ctx, TT_EDTYPE, "one_hot: element type %d is unknown", (int)a->dtype);
    q->shape[0] = *ids;
    q->shape[0].dim[q->shape[0].rank++] = a->depth;
    q->dtype[0] = a->dtype;
    return TT_OK;
}

static tt_status one_hot_split(const tt_split_query *q)
{
    q->out[0] = (tt_split){q->axis[0] < 0 ? TT_SPLIT_WHOLE : TT_SPLIT_AXIS, q->axis[0]};
    return TT_OK;
}

static const tt_option one_hot_attrs[] = {
    {"depth", TT_OPT_INT, NULL, "size of the new last axis", offsetof(tti_one_hot_attr, depth), 1,
     0x1p40, NULL},
    {"dtype", TT_OPT_DTYPE, "f32", "element type of y", offsetof(tti_one_hot_attr, dtype), 0, 0,
     NULL},
    TT_OPTION_END,
};

const tt_op tti_op_one_hot = {
    .name = "one_hot",
    .help = "one-hot encoding: 1 at each id, 0 elsewhere",
    .inputs = 1,
    .flags = TT_OP_ANY_TYPE | TT_OP_ROW_FREE | TT_OP_NO_GRAD,
    .types = TT_TYPES_ALL,
    TTI_ATTRS(one_hot_attrs, tti_one_hot_attr),
    .infer = one_hot_infer,
    .split = one_hot_split,
    .kernel = {[TT_CPU] = TTI_CPU(one_hot, tti_prep_rows)},
};

tt_tensor *tt_one_hot(tt_graph *g, tt_tensor *ids, int64_t depth, tt_dtype dtype)
{
    tti_one_hot_attr a;
    memset(&a, 0, sizeof(a));
    a.depth = depth;
    a.dtype = dtype;
    return tt_node_out(g, &tti_op_one_hot, 1, &ids, &a);
}
