/*
 * batch_norm.cu - batch norm over the whole batch on a GPU: the ops of batch_norm.c. The walks over
 * rows are in batch_norm_sums.cuh and batch_norm_map.cuh.
 */
#include "op/batched_calls.h"
#include "op/gpu/batch_norm_map.cuh"
#include "op/gpu/batch_norm_sums.cuh"
#include "op/rows.h"

// Scratch: slices [lanes, slices, 2, c].
static tt_status prep_lanes(tt_prep *p)
{
    tti_bn_lanes b;
    tti_bn_strands_of(&p->in[0], p->lanes, &b);
    p->scratch_bytes =
        sizeof(float) * 2 * (size_t)b.ln.n * (size_t)p->in[0].cols * (size_t)tti_bn_most_slices(&b);
    return TT_OK;
}

static tt_status prep_none(tt_prep *p)
{
    p->scratch_bytes = 0;
    return TT_OK;
}

// ---- statistics ------------------------------------------------------------------------------

struct stats_out {
    float *mean, *var, *unbiased;
    bool is_part; // of some lanes: mean, M2 and M2
};

// Slices to lanes, lanes by the tree to mean, var and unbiased.
template <int N>
static __global__ void __launch_bounds__(TTI_BN_MERGERS)
    finish_stats(tti_bn_parts<N> parts, stats_out out)
{
    __shared__ tti_bn_tree tree;
    const int64_t c = parts.c, ch = tti_bn_channel();
    const int i = (int)threadIdx.x;
    int depth = 0;
    tti_bn_merge_slices<N, true>(parts, [&](int lane, float mean, float m2) {
        depth = tree.add<true>(depth, mean, m2, (float)tti_bn_rows_in(parts, lane),
                               parts.ln.merges[lane]);
    });
    if (i >= TTI_BN_COLUMNS || ch >= c)
        return;
    for (int k = 0; out.is_part && k < depth; k++) {
        out.mean[k * c + ch] = tree.a[k][i];
        out.var[k * c + ch] = out.unbiased[k * c + ch] = tree.b[k][i];
    }
    if (out.is_part)
        return;
    const int64_t n = (parts.ln.bound[parts.ln.n] - parts.ln.bound[0]) * parts.per_row;
    out.mean[ch] = tree.a[0][i] + 0.0f;
    out.var[ch] = tree.b[0][i] / (float)(n > 0 ? n : 1);
    out.unbiased[ch] = tree.b[0][i] / (float)(n > 1 ? n - 1 : 1);
}

static tt_status batch_norm_stats(const tt_launch *l)
{
    tti_bn_lanes b;
    tti_bn_strands_of(&l->in[0], l->lanes, &b);
    const int64_t c = l->in[0].cols;
    tti_bn_reduce q = {};
    q.x = l->in[0].data;
    q.part = (float *)l->scratch;
    q.slices = tti_bn_most_slices(&b);
    tti_bn_reduce_slices<TTI_BN_MOMENTS>(l, &b, q);
    stats_out out = {(float *)l->out[0].data, (float *)l->out[1].data, (float *)l->out[2].data,
                     b.is_part};
    TTI_LANES(&b.ln, N, {
        TTI_LAUNCH(l, tti_bn_merge_grid(c), TTI_BN_MERGERS, 0, (finish_stats<N>),
                   tti_bn_parts_of<N>(&b, q, c), out);
    });
    return tti_cuda_launched(l);
}

// ---- sums ------------------------------------------------------------------------------------

// Slices to lanes, lanes by the tree: dgamma, which still lacks rstd, and dbeta.
template <int N>
static __global__ void __launch_bounds__(TTI_BN_MERGERS)
    finish_sums(tti_bn_parts<N> parts, tti_bn_vec var, float eps, float *dgamma, float *dbeta)
{
    __shared__ tti_bn_tree tree;
    const int64_t c = parts.c, ch = tti_bn_channel();
    const int i = (int)threadIdx.x;
    const bool mine = i < TTI_BN_COLUMNS && ch < c;
    const float rstd = mine ? 1.0f / sqrtf(tti_bn_at(var, ch) + eps) : 0.0f;
    int depth = 0;
    tti_bn_merge_slices<N, false>(parts, [&](int lane, float a, float b) {
        depth = tree.add<false>(depth, a * rstd, b, 0.0f, parts.ln.merges[lane]);
    });
    for (int k = 0; mine && k < depth; k++) {
        dgamma[k * c + ch] = tree.a[k][i] + 0.0f;
        dbeta[k * c + ch] = tree.b[k][i] + 0.0f;
    }
}

static tt_status batch_norm_sums(const tt_launch *l)
{
    const tti_batch_norm_attr *a = (const tti_batch_norm_attr *)l->attr;
    tti_bn_lanes b;
    tti_bn_strands_of(&l->in[0], l->lanes, &b);
    const int64_t c = l->in[0].cols;
    tti_bn_reduce q = {};
    q.x = l->in[0].data;
    q.dz = l->in[1].data;
    q.mean = tti_bn_vec_of(&l->in[2]);
    q.var = tti_bn_vec_of(&l->in[3]);
    q.eps = (float)a->eps;
    q.part = (float *)l->scratch;
    q.slices = tti_bn_most_slices(&b);
    if (a->act == TT_RELU) {
        q.gamma = tti_bn_vec_of(&l->in[4]);
        q.beta = tti_bn_vec_of(&l->in[5]);
        tti_bn_reduce_slices<TTI_BN_SUMS_RELU>(l, &b, q);
    } else {
        tti_bn_reduce_slices<TTI_BN_SUMS>(l, &b, q);
    }
    TTI_LANES(&b.ln, N, {
        TTI_LAUNCH(l, tti_bn_merge_grid(c), TTI_BN_MERGERS, 0, (finish_sums<N>),
                   tti_bn_parts_of<N>(&b, q, c), q.var, q.eps, (float *)l->out[0].data,
                   (float *)l->out[1].data);
    });
    return tti_cuda_launched(l);
}

// ---- row by row ------------------------------------------------------------------------------

static tt_status batch_norm_apply(const tt_launch *l)
{
    const tti_batch_norm_attr *a = (const tti_batch_norm_attr *)l->attr;
    tti_bn_map q = {};
    q.x = l->in[0].data;
    q.other = a->has_residual ? l->in[5].data : NULL;
    q.y = l->out[0].data;
    q.mean = tti_bn_vec_of(&l->in[1]);
    q.var = tti_bn_vec_of(&l->in[2]);
    q.gamma = tti_bn_vec_of(&l->in[3]);
    q.beta = tti_bn_vec_of(&l->in[4]);
    q.eps = (float)a->eps;
    q.act = a->act;
    tti_bn_map_rows<false>(l, tti_bn_all_rows(&l->in[0]), l->in[0].rows, 0, q);
    return tti_cuda_launched(l);
}

static tt_status batch_norm_dx(const tt_launch *l)
{
    const tti_batch_norm_attr *a = (const tti_batch_norm_attr *)l->attr;
    tti_bn_map q = {};
    q.x = l->in[0].data;
    q.other = l->in[1].data;
    q.y = l->out[0].data;
    q.mean = tti_bn_vec_of(&l->in[2]);
    q.var = tti_bn_vec_of(&l->in[3]);
    q.gamma = tti_bn_vec_of(&l->in[4]);
    if (!a->fixed) {
        q.dgamma = tti_bn_vec_of(&l->in[5]);
        q.dbeta = tti_bn_vec_of(&l->in[6]);
    }
    if (a->act == TT_RELU)
        q.beta = tti_bn_vec_of(&l->in[a->fixed ? 5 : 7]);
    q.n = (float)tti_global_rows(&l->in[0], l->lanes);
    q.eps = (float)a->eps;
    q.act = a->act;
    tti_bn_map_rows<true>(l, tti_bn_all_rows(&l->in[0]), l->in[0].rows, 0, q);
    return tti_cuda_launched(l);
}

// ---- running statistics ----------------------------------------------------------------------

#define LIST 96 // statistics of one launch

struct running_item {
    void *y;
    const void *old, *now;
    int64_t n;
    float keep, rest;
    uint8_t type, now_type; // of y and old; of now
};
struct running_list {
    running_item item[LIST];
    const float *go; // NULL: always
    int n;
};

static __global__ void running(running_list list)
{
    const running_item &q = list.item[blockIdx.y];
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= q.n || (list.go != NULL && *list.go != *list.go)) // NaN: the step is not applied
        return;
    float now = q.rest * tti_at(q.now, q.now_type, i);
    tti_set(q.y, q.type, i, fmaf(q.keep, tti_at(q.old, q.type, i), now));
}

// Launches what is in the list, and empties it.
static void launch_running(const tt_launch *l, running_list *list)
{
    int64_t most = 0;
    for (int i = 0; i < list->n; i++)
        most = list->item[i].n > most ? list->item[i].n : most;
    if (most > 0)
        TTI_LAUNCH(l, dim3((unsigned)((most + 255) / 256), (unsigned)list->n), 256, 0, running,
                   *list);
    list->n = 0;
}

static void add_running(const tt_launch *l, running_list *list)
{
    const tti_batch_norm_attr *a = (const tti_batch_norm_attr *)l->attr;
    const float *go = l->n_in == 3 ? (const float *)l->in[2].data : NULL;
    if (list->n == LIST || (list->n > 0 && list->go != go))
        launch_running(l, list);
    list->go = go;
    list->item[list->n++] = {
        l->out[0].data,           l->in[0].data,          l->in[1].data,
        l->out[0].count,          (float)a->momentum,     (float)(1 - a->momentum),
        (uint8_t)l->out[0].dtype, (uint8_t)l->in[1].dtype};
}

static tt_status batch_norm_running(const tt_launch *l)
{
    running_list list;
    list.n = 0;
    add_running(l, &list);
    launch_running(l, &list);
    return tti_cuda_launched(l);
}

static tt_status batch_norm_running_many(const tt_launch *l)
{
    const tti_batched_calls *calls = (const tti_batched_calls *)l->tune;
    running_list list;
    list.n = 0;
    for (int i = 0; i < calls->n; i++)
        add_running(calls->list[i], &list);
    launch_running(l, &list);
    return tti_cuda_launched(l);
}

extern "C" const tti_cuda_row tti_cuda_batch_norm[] = {
    TTI_ROW("batch_norm_stats", prep_lanes, batch_norm_stats),
    TTI_ROW("batch_norm_apply", prep_none, batch_norm_apply),
    TTI_ROW("batch_norm_sums", prep_lanes, batch_norm_sums),
    TTI_ROW("batch_norm_dx", prep_none, batch_norm_dx),
    TTI_ROW("batch_norm_running", prep_none, batch_norm_running),
    TTI_ROW_BATCHED("batch_norm_running", batch_norm_running_many),
    TTI_ROWS_END,
};
