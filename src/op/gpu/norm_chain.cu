/*
 * norm_chain.cu - norms with the sums around them, as chains of plan/program.h: what a block adds
 * to its input is normed as it is made, and the gradient of a norm is added to what came past it.
 *
 *   add + norm       s = round(x + r), y = norm(s)
 *   norm_grad + add  dx = round(gradient), s = round(dx + r)
 *
 * All else is norm.cu's: the order of sums, the chunks of lanes, the kernels of long rows.
 */
#include "cuda/chain.cuh"
#include "op/gpu/norm_warp.cuh"
#include "op/norm.h"

static void short_norm(const tt_launch *l, tt_dtype t, const norm_args &p)
{
    TTI_NORM_SHORT(t, p.n, T, K, {
        const int R = K <= 3 ? 2 : 1, per = TTI_NORM_WARPS * R;
        TTI_LAUNCH(l, (unsigned)((p.rows + per - 1) / per), TTI_NORM_THREADS, 0,
                   (norm_warps<T, K, R, true>), p);
    });
}

static void short_grad(const tt_launch *l, tt_dtype t, const grad_args &p, const tti_lane_group &g,
                       int64_t runs)
{
    TTI_NORM_SHORT(t, p.n, T, K, {
        const bool ahead = K <= 4;
        const int blocks = sizeof(T) == 2 && K <= 2 ? 4 : 3;
        TTI_LAUNCH(l, dim3((unsigned)p.most, (unsigned)g.n), TTI_NORM_THREADS, 0,
                   (grad_warps<T, K, ahead, blocks, true>), p, g, runs);
    });
}

static const tti_norm_short joined = {short_norm, short_grad};

// ---- add, then a norm of the sum -------------------------------------------------------------

static tt_status prepare_norm(tt_prep *p)
{
    const tti_chain *c = tti_chain_of(p->tune);
    p->units[0] = p->in[0].rows;
    // The norm's input is the sum and nothing else of it; x + x has one input.
    if (tti_chain_link(c, 1) != 0 || c->members[0].in[0] != 0 || c->members[0].in[1] != 1 ||
        !tti_chain_same(&p->in[0], &p->in[1]) || p->in[0].shape.rank == 0)
        p->n_phases = 0;
    return TT_OK;
}

static tt_status add_norm(const tt_launch *l, bool rms)
{
    tti_chain_part add, norm;
    tti_chain_take(l, 0, &add);
    tti_chain_take(l, 1, &norm);
    norm_args p = tti_norm_args(&norm.l, rms);
    p.x = add.in[0].data;
    p.add = add.in[1].data;
    p.sum = add.out[0].data;
    return tti_norm_run(&norm.l, p, joined);
}
static tt_status add_layer_norm(const tt_launch *l)
{
    return add_norm(l, false);
}
static tt_status add_rms_norm(const tt_launch *l)
{
    return add_norm(l, true);
}

// ---- a norm's gradient, then add -------------------------------------------------------------

static tt_status prepare_grad(tt_prep *p)
{
    const tti_chain *c = tti_chain_of(p->tune);
    int link = tti_chain_link(c, 1), other = link < 0 ? -1 : c->members[1].in[1 - link];
    p->units[0] = p->in[0].rows;
    p->scratch_bytes = tti_norm_grad_scratch(&p->in[0], p->lanes, c->members[0].n_out - 1);
    if (link < 0 || !tti_chain_same(&p->in[0], &p->in[other]))
        p->n_phases = 0;
    return TT_OK;
}

static tt_status norm_grad_add(const tt_launch *l, bool rms)
{
    tti_chain_part norm, add;
    tti_chain_take(l, 0, &norm);
    tti_chain_take(l, 1, &add);
    grad_args p = tti_norm_grad_args(&norm.l, rms);
    p.add = add.in[1 - tti_chain_link(tti_chain_of(l->tune), 1)].data;
    p.sum = add.out[0].data;
    return tti_norm_grad_run(&norm.l, p, joined);
}
static tt_status layer_norm_grad_add(const tt_launch *l)
{
    return norm_grad_add(l, false);
}
static tt_status rms_norm_grad_add(const tt_launch *l)
{
    return norm_grad_add(l, true);
}

extern "C" const tti_cuda_row tti_cuda_norm_chain[] = {
    TTI_ROW_CHAIN("add", "layer_norm", prepare_norm, add_layer_norm),
    TTI_ROW_CHAIN("add", "rms_norm", prepare_norm, add_rms_norm),
    TTI_ROW_CHAIN("layer_norm_grad", "add", prepare_grad, layer_norm_grad_add),
    TTI_ROW_CHAIN("rms_norm_grad", "add", prepare_grad, rms_norm_grad_add),
    TTI_ROWS_END,
};
