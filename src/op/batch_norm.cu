/*
 * batch_norm.cu - batch norm over the whole batch on a GPU: the ops of batch_norm.c. The walks over
 * rows are in batch_norm.cuh.
 */
#include "op/batch_norm.cuh"
#include "op/rows.h"

// Scratch: slices [lanes, slices, 2, c], then lanes [lanes, 2, c].
static tt_status prep_lanes(tt_prep *p)
{
    tti_bn_lanes b;
    tti_bn_strands_of(&p->in[0], p->lanes, &b);
    p->scratch_bytes = sizeof(float) * 2 * (size_t)b.ln.n * (size_t)p->in[0].cols *
                       (size_t)(tti_bn_most_slices(&b) + 1);
    return TT_OK;
}

static tt_status prep_none(tt_prep *p)
{
    p->scratch_bytes = 0;
    return TT_OK;
}

// ---- statistics ------------------------------------------------------------------------------

// Slices to lanes, lanes by the tree to mean, var and unbiased; of some lanes: mean, M2 and M2.
template <int N>
static __global__ void __launch_bounds__(1024)
    finish_stats(tti_lanes_of<N> ln, tti_bn_parts parts, bool is_part, int64_t c, float *lanes,
                 float *mean, float *var, float *unbiased)
{
    tti_bn_merge_slices<N, true>(ln, parts, c, lanes);
    const int64_t ch = (int64_t)blockIdx.x * 32 + threadIdx.x;
    if (threadIdx.y > 0 || threadIdx.z > 0 || ch >= c)
        return;
    float m[TTI_CUDA_DEPTH], s[TTI_CUDA_DEPTH];
    int64_t n[TTI_CUDA_DEPTH];
    int depth = 0;
    for (int i = 0; i < ln.n; i++) {
        n[depth] = (ln.bound[i + 1] - ln.bound[i]) * parts.per_row;
        m[depth] = lanes[(int64_t)i * 2 * c + ch];
        s[depth++] = lanes[((int64_t)i * 2 + 1) * c + ch];
        for (int k = 0; k < ln.merges[i]; k++) {
            int a = depth - 2, b = --depth;
            if (n[a] == 0) {
                m[a] = m[b];
                s[a] = s[b];
            } else if (n[b] > 0) {
                tti_bn_merge(m[a], s[a], m[b], s[b], (float)n[a], tti_bn_weight(n[a], n[b]));
            }
            n[a] += n[b];
        }
    }
    if (is_part) {
        for (int k = 0; k < depth; k++) {
            mean[k * c + ch] = m[k];
            var[k * c + ch] = unbiased[k * c + ch] = s[k];
        }
        return;
    }
    mean[ch] = m[0] + 0.0f;
    var[ch] = s[0] / (float)(n[0] > 0 ? n[0] : 1);
    unbiased[ch] = s[0] / (float)(n[0] > 1 ? n[0] - 1 : 1);
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
    tti_bn_reduce_slices<true>(l, &b, q);
    float *lanes = q.part + 2 * (int64_t)b.ln.n * c * q.slices;
    TTI_LANES(&b.ln, N, {
        TTI_LAUNCH(l, tti_bn_merge_grid(c), tti_bn_merge_block(), 0, (finish_stats<N>),
                   tti_lanes_by_value<N>(&b.ln), tti_bn_parts_of(&b, q), b.is_part, c, lanes,
                   (float *)l->out[0].data, (float *)l->out[1].data, (float *)l->out[2].data);
    });
    return tti_cuda_launched(l);
}

// ---- sums ------------------------------------------------------------------------------------

// Slices to lanes, lanes by the tree: dgamma, which still lacks rstd, and dbeta.
template <int N>
static __global__ void __launch_bounds__(1024)
    finish_sums(tti_lanes_of<N> ln, tti_bn_parts parts, int64_t c, float *lanes, tti_bn_vec var,
                float eps, float *dgamma, float *dbeta)
{
    tti_bn_merge_slices<N, false>(ln, parts, c, lanes);
    const int64_t ch = (int64_t)blockIdx.x * 32 + threadIdx.x;
    if (threadIdx.y > 1 || threadIdx.z > 0 || ch >= c)
        return;
    const int which = (int)threadIdx.y;
    float *out = which == 0 ? dgamma : dbeta;
    float by = which == 0 ? 1.0f / sqrtf(tti_bn_at(var, ch) + eps) : 1.0f;
    tti_lane_tree<N>(
        ln, [&](int i) { return lanes[((int64_t)i * 2 + which) * c + ch] * by; },
        [&](int p, float x) { out[p * c + ch] = x; });
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
    q.part = (float *)l->scratch;
    q.slices = tti_bn_most_slices(&b);
    tti_bn_reduce_slices<false>(l, &b, q);
    float *lanes = q.part + 2 * (int64_t)b.ln.n * c * q.slices;
    TTI_LANES(&b.ln, N, {
        TTI_LAUNCH(l, tti_bn_merge_grid(c), tti_bn_merge_block(), 0, (finish_sums<N>),
                   tti_lanes_by_value<N>(&b.ln), tti_bn_parts_of(&b, q), c, lanes,
                   tti_bn_vec_of(&l->in[3]), (float)a->eps, (float *)l->out[0].data,
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
    q.n = (float)tti_global_rows(&l->in[0], l->lanes);
    q.eps = (float)a->eps;
    tti_bn_map_rows<true>(l, tti_bn_all_rows(&l->in[0]), l->in[0].rows, 0, q);
    return tti_cuda_launched(l);
}

// ---- running statistics ----------------------------------------------------------------------

template <class T>
static __global__ void running(T *y, const T *old, tti_bn_vec now, const float *go, int64_t n,
                               float keep, float rest)
{
    if (go != NULL && *go != *go)
        return; // the step is not applied
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        tti_put(y[i], fmaf(keep, tti_get(old[i]), rest * tti_bn_at(now, i)));
}

static tt_status batch_norm_running(const tt_launch *l)
{
    const tti_batch_norm_attr *a = (const tti_batch_norm_attr *)l->attr;
    const int64_t n = l->out[0].count;
    const float *go = l->n_in == 3 ? (const float *)l->in[2].data : NULL;
    if (n == 0)
        return TT_OK;
    TTI_FLOATS(l->out[0].dtype, T, {
        TTI_LAUNCH(l, (unsigned)((n + 255) / 256), 256, 0, (running<T>), (T *)l->out[0].data,
                   (const T *)l->in[0].data, tti_bn_vec_of(&l->in[1]), go, n, (float)a->momentum,
                   (float)(1 - a->momentum));
    })
    return tti_cuda_launched(l);
}

extern "C" const tti_cuda_row tti_cuda_batch_norm[] = {
    TTI_ROW("batch_norm_stats", prep_lanes, batch_norm_stats),
    TTI_ROW("batch_norm_apply", prep_none, batch_norm_apply),
    TTI_ROW("batch_norm_sums", prep_lanes, batch_norm_sums),
    TTI_ROW("batch_norm_dx", prep_none, batch_norm_dx),
    TTI_ROW("batch_norm_running", prep_none, batch_norm_running),
    TTI_ROWS_END,
};
