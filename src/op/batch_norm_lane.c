/*
 * batch_norm_lane.c - batch norm over: lane: the statistics of each lane by itself, so that any
 * part of the lanes can run alone. Kernels: batch_norm_lane_cpu.c.
 *
 *   batch_norm_lane       x, gamma, beta, residual ->
 *       y                 act(fma(x - mean, gamma rstd, beta) + residual), split as x is
 *       mean, rstd        the lane's, a copy for each row of the batch [b, c]: split, so that the
 *                         gradient of some lanes finds theirs
 *       means, unbiased   lane sums [c] of mean and of M2 / (n - 1), which is 0 where n is 1
 *       lanes             lane sum [1] of 1 for each lane that has rows
 *   batch_norm_lane_grad  x, dz, mean, rstd, gamma -> dx, split; dgamma, dbeta, lane sums
 *
 * Per channel, a lane of n entries gives mean and M2 as in batch_norm.c; var = M2 / n. Its sums of
 * dz xh and of dz are its part of dgamma and dbeta, and make its dx. A lane without rows gives
 * zeros. Running statistics follow means / lanes and unbiased / lanes.
 *
 * Rows depend on the rows of their lane alone: the ops are not row-free, but any whole lanes will
 * do.
 */
#include "op/batch_norm.h"
#include "op/op.h"
#include "op/rows.h"
#include <string.h>

extern const tt_op tti_op_batch_norm_lane, tti_op_batch_norm_lane_grad;

enum {
    Y,
    MEAN,
    RSTD,
    MEANS,
    UNBIASED,
    LANES
}; // outputs

// ---- shape and split rules -------------------------------------------------------------------

// A vector of channels for each row of the batch; for a closed x there is one lane.
static tt_shape stats_shape(const tt_shape *x)
{
    int64_t c = x->dim[x->rank - 1];
    return tt_open_axis(x) >= 0 ? TT_SHAPE(TT_BATCH, c) : TT_SHAPE(1, c);
}

static tt_status infer_lane(tt_infer *q)
{
    static const char *const names[] = {"gamma", "beta"};
    const tti_batch_norm_attr *a = q->attr;
    const tt_tensor *x = q->in[0];
    TT_TRY(tti_batch_norm_check(q));
    if (q->n_in != 3 + a->has_residual)
        return TT_FAIL(q->ctx, TT_EINVAL, "%s: has %d inputs, not %d", q->name, q->n_in,
                       3 + a->has_residual);
    TT_TRY(tti_batch_norm_check_vectors(q, 1, 2, names));
    if (a->has_residual)
        TT_TRY(tti_batch_norm_check_like_x(q, "residual", q->in[3]));
    q->shape[Y] = x->shape;
    q->shape[MEAN] = q->shape[RSTD] = stats_shape(&x->shape);
    q->shape[MEANS] = q->shape[UNBIASED] = TT_SHAPE(x->shape.dim[x->shape.rank - 1]);
    q->shape[LANES] = TT_SHAPE(1);
    q->dtype[Y] = x->dtype;
    for (int i = MEAN; i <= LANES; i++)
        q->dtype[i] = tti_stat_dtype(x->dtype);
    return TT_OK;
}

static tt_status infer_lane_grad(tt_infer *q)
{
    static const char *const names[] = {"gamma"};
    const tt_tensor *x = q->in[0];
    char a[TT_SHAPE_TEXT], b[TT_SHAPE_TEXT];
    TT_TRY(tti_batch_norm_check(q));
    TT_TRY(tti_batch_norm_check_like_x(q, "dz", q->in[1]));
    tt_shape stats = stats_shape(&x->shape);
    for (int i = 2; i < 4; i++)
        if (!tti_shape_equal(&stats, &q->in[i]->shape) ||
            q->in[i]->dtype != tti_stat_dtype(x->dtype))
            return TT_FAIL(q->ctx, TT_ESHAPE, "%s: x is %s but its statistics are %s %s", q->name,
                           tt_shape_text(&x->shape, a), tt_dtype_name(q->in[i]->dtype),
                           tt_shape_text(&q->in[i]->shape, b));
    TT_TRY(tti_batch_norm_check_vectors(q, 4, 1, names));
    q->shape[0] = x->shape;
    q->dtype[0] = x->dtype;
    for (int i = 1; i < 3; i++) {
        q->shape[i] = TT_SHAPE(x->shape.dim[x->shape.rank - 1]);
        q->dtype[i] = tti_stat_dtype(x->dtype);
    }
    return TT_OK;
}

// Closed outputs are lane sums; statistics per row are open in front.
static tt_status split_lane(const tt_split_query *q)
{
    bool mixes = q->axis[0] < 0 || !tti_split_is_of_lanes(q); // an open vector; channels
    for (int i = 0; i < q->node->n_out; i++) {
        int axis = tt_open_axis(&q->node->outs[i]->shape);
        q->out[i] = (tt_split){mixes      ? TT_SPLIT_MIXES
                               : axis < 0 ? TT_SPLIT_LANE_SUM
                                          : TT_SPLIT_AXIS,
                               axis};
    }
    return TT_OK;
}

// ---- work ------------------------------------------------------------------------------------

/*
 * With a lane for each thread, a unit does all of its lane while its rows are in the cache.
 * Otherwise sums and rows are phases of their own. vectors is how many [c] a lane keeps.
 */
static tt_status prep(tt_prep *p, int vectors, double ns)
{
    const tt_arg *x = &p->in[0];
    int lanes = tti_lanes_of(x, p->lanes);
    int64_t blocks = (x->cols + TTI_BATCH_NORM_COLS - 1) / TTI_BATCH_NORM_COLS;
    bool by_lane = lanes >= p->n_threads;
    tti_batch_norm_tune tune = {.blocks = by_lane ? 1 : blocks, .by_lane = by_lane};
    size_t real = x->dtype == TT_F64 ? sizeof(double) : sizeof(float);
    TT_TRY(tti_prep_row_units(p, x->rows, x->cols, ns));
    int64_t rows_grain = p->grain[0];
    memcpy(p->tune, &tune, sizeof(tune));
    p->n_phases = by_lane ? 2 : 3;
    p->units[0] = lanes * tune.blocks;
    p->grain[0] = 1;
    p->units[1] = blocks;
    p->grain[1] = 16;
    p->units[2] = x->rows;
    p->grain[2] = rows_grain;
    p->scratch_bytes = real * (size_t)lanes * ((size_t)vectors * (size_t)x->cols + 1);
    return TT_OK;
}

static tt_status prep_lane(tt_prep *p)
{
    return prep(p, 3, 0.7); // mean, unbiased, scale
}

static tt_status prep_lane_grad(tt_prep *p)
{
    return prep(p, 5, 0.7); // dgamma, dbeta, and three factors of dx
}

// ---- gradient --------------------------------------------------------------------------------

static void lane_backward(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    const tti_batch_norm_attr *a = n->attr;
    tt_tensor *dz = dy[Y], *z = n->out;
    if (dz == NULL)
        return;
    if (a->act != TT_LINEAR && tti_act_needs_input((tt_act)a->act)) {
        tti_batch_norm_attr linear = *a;
        linear.act = TT_LINEAR;
        z = tt_node_out(g, n->op, n->n_in, n->in, &linear);
    }
    if (a->act != TT_LINEAR)
        dz = tti_act_grad(g, (tt_act)a->act, dz, z);
    tt_tensor *in[] = {n->in[0], dz, n->outs[MEAN], n->outs[RSTD], n->in[1]};
    tt_node *made =
        dz == NULL ? NULL : tt_node_new(g, &tti_op_batch_norm_lane_grad, 5, in, NULL, NULL);
    if (made == NULL)
        return;
    dx[0] = made->outs[0];
    dx[1] = tt_cast(g, made->outs[1], n->in[1]->dtype);
    dx[2] = tt_cast(g, made->outs[2], n->in[2]->dtype);
    if (a->has_residual)
        dx[3] = dz;
}

// ---- records ---------------------------------------------------------------------------------

const tt_op tti_op_batch_norm_lane = {
    .name = "batch_norm_lane",
    .help = "batch norm with statistics per lane: act((x - mean) gamma / sqrt(var + eps) + beta + "
            "residual)",
    .inputs = 3,
    .max_inputs = 4,
    .outputs = 6,
    .in_place = 1 | 1 << 3,
    TTI_ATTRS(tti_batch_norm_attrs, tti_batch_norm_attr),
    .infer = infer_lane,
    .split = split_lane,
    .grad = lane_backward,
    .kernel = {[TT_CPU] = TTI_CPU(batch_norm_lane, prep_lane)},
};

const tt_op tti_op_batch_norm_lane_grad = {
    .name = "batch_norm_lane_grad",
    .help = "gradients with respect to x, gamma and beta, from x, dz, mean, rstd, gamma",
    .inputs = 5,
    .outputs = 3,
    .in_place = 3,
    .infer = infer_lane_grad,
    .split = split_lane,
    .kernel = {[TT_CPU] = TTI_CPU(batch_norm_lane_grad, prep_lane_grad)},
};

tt_tensor *tti_batch_norm_lane(tt_graph *g, tt_tensor *const *in, const tti_batch_norm_attr *a,
                               tt_tensor **mean, tt_tensor **unbiased)
{
    tt_node *n = tt_node_new(g, &tti_op_batch_norm_lane, 3 + a->has_residual, in, a, NULL);
    if (n == NULL)
        return NULL;
    *mean = tt_div(g, n->outs[MEANS], n->outs[LANES]);
    *unbiased = tt_div(g, n->outs[UNBIASED], n->outs[LANES]);
    return *mean == NULL || *unbiased == NULL ? NULL : n->out;
}
