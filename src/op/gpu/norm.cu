/*
 * norm.cu - the ops of norm.c on a GPU. One source for both norms: RMS norm has no mean.
 *
 * Rows of up to TTI_ROW_WARP columns whose packs are aligned are norm_warp.cuh's, all others
 * norm_rows.cuh's.
 */
#include "op/gpu/norm_rows.cuh"
#include "op/norm.h"

// ---- forward ---------------------------------------------------------------------------------

norm_args tti_norm_args(const tt_launch *l, bool rms)
{
    const tti_norm_attr *a = (const tti_norm_attr *)l->attr;
    const tt_arg *gamma = &l->in[1], *beta = &l->in[1 + a->has_gamma];
    norm_args p = {};
    p.x = l->in[0].data;
    p.y = l->out[0].data;
    if (a->has_gamma)
        p.gamma = {gamma->data, gamma->dtype};
    if (a->has_beta)
        p.beta = {beta->data, beta->dtype};
    p.mean = rms ? NULL : (float *)l->out[1].data;
    p.rstd = (float *)l->out[rms ? 1 : 2].data;
    p.eps = (float)a->eps;
    p.rows = l->in[0].rows;
    p.n = l->in[0].cols;
    return p;
}

static void short_norm(const tt_launch *l, tt_dtype t, const norm_args &p)
{
    TTI_NORM_SHORT(t, p.n, T, K, {
        const int R = K <= 4 ? 2 : 1, per = TTI_NORM_WARPS * R;
        TTI_LAUNCH(l, (unsigned)((p.rows + per - 1) / per), TTI_NORM_THREADS, 0,
                   (norm_warps<T, K, R, false>), p);
    });
}

tt_status tti_norm_run(const tt_launch *l, const norm_args &p, const tti_norm_short &f)
{
    tt_dtype t = l->out[0].dtype;
    bool aligned = tti_is_aligned(p.x) && tti_is_aligned(p.y) && tti_is_aligned(p.gamma.at) &&
                   tti_is_aligned(p.beta.at) && tti_is_aligned(p.add) && tti_is_aligned(p.sum);
    if (p.rows > 0 && aligned && tti_norm_is_short(t, p.n))
        f.norm(l, t, p);
    else if (p.rows > 0)
        TTI_ROW_LAUNCH(l, norm_rows, t, p.rows, p.n, p);
    return tti_cuda_launched(l);
}

// ---- backward --------------------------------------------------------------------------------

// How the rows of x lie in lanes: runs of per rows for a row of the batch.
struct lane_rows {
    int64_t runs, per, step;
};
static lane_rows lane_rows_of(const tt_arg *x)
{
    lane_rows r = {1, 1, x->rows};
    if (x->open < 0)
        return r;
    int64_t inner = 1;
    for (int i = 0; i < x->open; i++)
        r.runs *= x->shape.dim[i];
    for (int i = x->open + 1; i < x->shape.rank - 1; i++)
        inner *= x->shape.dim[i];
    r.per = x->per * inner;
    r.step = x->shape.dim[x->open] * inner;
    return r;
}

static tti_chunking chunking_of(const lane_rows *r, const tt_lanes *ln)
{
    tti_chunking c = {r->runs * r->per, TTI_NORM_CHUNK, 0};
    c.most = tti_most_chunks(c, ln);
    return c;
}

size_t tti_norm_grad_scratch(const tt_arg *x, const tt_lanes *lanes, int n_sums)
{
    lane_rows r = lane_rows_of(x);
    int64_t bound[2];
    tt_lanes one = tti_one_lane(x->rows, bound);
    const tt_lanes *ln = x->open < 0 ? &one : lanes;
    return tti_chunk_scratch(chunking_of(&r, ln).most, ln, n_sums * x->cols);
}

grad_args tti_norm_grad_args(const tt_launch *l, bool rms)
{
    const tti_norm_attr *a = (const tti_norm_attr *)l->attr;
    int n_stats = rms ? 1 : 2;
    lane_rows r = lane_rows_of(&l->in[0]);
    grad_args p = {};
    p.x = l->in[0].data;
    p.dy = l->in[1].data;
    p.dx = l->out[0].data;
    p.mean = rms ? NULL : (const float *)l->in[2].data;
    p.rstd = (const float *)l->in[1 + n_stats].data;
    if (a->has_gamma)
        p.gamma = {l->in[2 + n_stats].data, l->in[2 + n_stats].dtype};
    p.has_dgamma = a->has_gamma;
    p.has_dbeta = a->has_beta;
    p.sums = (float *)l->scratch;
    p.n = l->in[0].cols;
    p.per = r.per;
    p.step = r.step;
    return p;
}

static void short_grad(const tt_launch *l, tt_dtype t, const grad_args &p, const tti_lane_group &g,
                       int64_t runs)
{
    TTI_NORM_SHORT(t, p.n, T, K, {
        const bool ahead = K <= 4;
        const int blocks = tti_pack<T>::n * K <= 24 ? 4 : 3;
        TTI_LAUNCH(l, dim3((unsigned)p.most, (unsigned)g.n), TTI_NORM_THREADS, 0,
                   (grad_warps<T, K, ahead, blocks, false>), p, g, runs);
    });
}

static void any_grad(const tt_launch *l, tt_dtype t, const grad_args &p, const tti_lane_group &g,
                     int64_t runs, int n_sums)
{
    size_t shared = p.n <= TTI_NORM_IN_BLOCK ? sizeof(float) * (size_t)n_sums * (size_t)p.n : 0;
    dim3 grid((unsigned)p.most, (unsigned)g.n);
    TTI_FLOATS(t, T, {
        if (p.n <= TTI_ROW_WARP)
            TTI_LAUNCH(l, grid, TTI_NORM_THREADS, 0, (grad_chunks<T, 32>), p, g, runs);
        else
            TTI_LAUNCH(l, grid, TTI_ROW_THREADS, shared, (grad_chunks<T, TTI_ROW_THREADS>), p, g,
                       runs);
    });
}

tt_status tti_norm_grad_run(const tt_launch *l, const grad_args &args, const tti_norm_short &f)
{
    const tt_arg *x = &l->in[0];
    lane_rows r = lane_rows_of(x);
    int64_t bound[2];
    tt_lanes one = tti_one_lane(x->rows, bound);
    const tt_lanes *ln = x->open < 0 ? &one : l->lanes;
    tti_chunking chunking = chunking_of(&r, ln);
    grad_args p = args;
    int n_sums = l->n_out - 1;
    p.most = chunking.most;
    bool aligned = tti_is_aligned(p.x) && tti_is_aligned(p.dy) && tti_is_aligned(p.dx) &&
                   tti_is_aligned(p.gamma.at) && tti_is_aligned(p.add) && tti_is_aligned(p.sum);
    for (int first = 0; first < ln->n; first += TTI_LANE_GROUP) {
        tti_lane_group g = tti_lane_group_at(ln, first);
        if (aligned && tti_norm_is_short(x->dtype, p.n))
            f.grad(l, x->dtype, p, g, r.runs);
        else
            any_grad(l, x->dtype, p, g, r.runs, n_sums);
    }
    if (n_sums > 0) {
        tti_sums out = {{l->out[1].data, l->out[n_sums].data}, l->out[1].dtype, p.n};
        tti_chunk_finish(l, ln, chunking, n_sums * p.n, TTI_FOLD_SUM, out);
    }
    return tti_cuda_launched(l);
}

// ---- calls -----------------------------------------------------------------------------------

static const tti_norm_short alone = {short_norm, short_grad};

static tt_status layer_norm(const tt_launch *l)
{
    return tti_norm_run(l, tti_norm_args(l, false), alone);
}
static tt_status rms_norm(const tt_launch *l)
{
    return tti_norm_run(l, tti_norm_args(l, true), alone);
}
static tt_status layer_norm_grad(const tt_launch *l)
{
    return tti_norm_grad_run(l, tti_norm_grad_args(l, false), alone);
}
static tt_status rms_norm_grad(const tt_launch *l)
{
    return tti_norm_grad_run(l, tti_norm_grad_args(l, true), alone);
}

static tt_status prepare(tt_prep *p)
{
    p->units[0] = p->in[0].rows;
    return TT_OK;
}

static tt_status prepare_grad(tt_prep *p)
{
    p->units[0] = p->in[0].rows;
    p->scratch_bytes = tti_norm_grad_scratch(&p->in[0], p->lanes, p->n_out - 1);
    return TT_OK;
}

extern "C" const tti_cuda_row tti_cuda_norm[] = {
    TTI_ROW("layer_norm", prepare, layer_norm),
    TTI_ROW("layer_norm_grad", prepare_grad, layer_norm_grad),
    TTI_ROW("rms_norm", prepare, rms_norm),
    TTI_ROW("rms_norm_grad", prepare_grad, rms_norm_grad),
    TTI_ROWS_END,
};
