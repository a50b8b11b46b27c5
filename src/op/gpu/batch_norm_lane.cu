/*
 * batch_norm_lane.cu - batch norm over: lane on a GPU: the ops of batch_norm_lane.c. The walks over
 * rows are in batch_norm_sums.cuh and batch_norm_map.cuh. What a lane's rows need of its statistics
 * they read from the outputs mean and rstd, which have a copy for each row of the batch.
 */
#include "op/gpu/batch_norm_map.cuh"
#include "op/gpu/batch_norm_sums.cuh"

// Scratch: slices [lanes, slices, 2, c], then lanes [lanes, 2, c].
static tt_status prepare(tt_prep *p)
{
    tti_bn_lanes b;
    tti_bn_lanes_of(&p->in[0], p->lanes, &b);
    p->scratch_bytes = sizeof(float) * 2 * (size_t)b.ln.n * (size_t)p->in[0].cols *
                       (size_t)(tti_bn_most_slices(&b) + 1);
    return TT_OK;
}

// The rows of each lane, for apply or dx.
template <bool DX>
static void map_lanes(const tt_launch *l, const tti_bn_lanes *b, const tti_bn_map &q)
{
    for (int first = 0; first < b->ln.n; first += TTI_BN_LANES) {
        tti_bn_rows g = tti_bn_rows_of(b, first);
        int64_t most = 0;
        for (int i = 0; i < g.n; i++) {
            int64_t n = g.runs * (g.bound[i + 1] - g.bound[i]) * g.per;
            most = n > most ? n : most;
        }
        tti_bn_map_rows<DX>(l, g, most, first, q);
    }
}

// ---- forward ---------------------------------------------------------------------------------

struct forward_out {
    float *mean, *rstd;              // [rows of the batch, c]
    float *means, *unbiased, *lanes; // lane sums
    float eps;
    bool is_open;
};

// Slices to lanes, [lanes, 2, c], of which all threads of the block may read their channel's.
template <int N, bool MOMENTS>
__device__ static inline void make_lanes(const tti_bn_parts<N> &parts, float *lanes)
{
    const int64_t c = parts.c, ch = tti_bn_channel();
    tti_bn_merge_slices<N, MOMENTS>(parts, [&](int lane, float a, float b) {
        lanes[(int64_t)lane * 2 * c + ch] = a;
        lanes[((int64_t)lane * 2 + 1) * c + ch] = b;
    });
    __syncthreads();
}

// Slices to lanes; each lane's statistics for its rows; the lane sums.
template <int N>
static __global__ void __launch_bounds__(TTI_BN_MERGERS)
    finish_forward(tti_bn_parts<N> parts, float *lanes, forward_out q)
{
    make_lanes<N, true>(parts, lanes);
    const tti_lanes_of<N> &ln = parts.ln;
    const int64_t c = parts.c, ch = tti_bn_channel();
    const int worker = (int)threadIdx.x / TTI_BN_COLUMNS;
    if (ch >= c)
        return;
    for (int i = 0; i < ln.n; i++) {
        int64_t n = tti_bn_rows_in(parts, i);
        float m = lanes[(int64_t)i * 2 * c + ch] + 0.0f;
        float var = lanes[((int64_t)i * 2 + 1) * c + ch] / (float)(n > 0 ? n : 1);
        float rstd = 1.0f / sqrtf(var + q.eps);
        int64_t end = q.is_open ? ln.bound[i + 1] : 1;
        for (int64_t r = ln.bound[i] + worker; r < end; r += TTI_BN_MERGERS / TTI_BN_COLUMNS) {
            q.mean[r * c + ch] = m;
            q.rstd[r * c + ch] = rstd;
        }
    }
    if (worker == 0)
        tti_lane_tree<N>(
            ln, [&](int i) { return lanes[(int64_t)i * 2 * c + ch]; },
            [&](int p, float x) { q.means[p * c + ch] = x; });
    else if (worker == 1)
        tti_lane_tree<N>(
            ln,
            [&](int i) {
                int64_t n = tti_bn_rows_in(parts, i);
                return lanes[((int64_t)i * 2 + 1) * c + ch] / (float)(n > 1 ? n - 1 : 1);
            },
            [&](int p, float x) { q.unbiased[p * c + ch] = x; });
    else if (worker == 2 && ch == 0)
        tti_lane_tree<N>(
            ln, [&](int i) { return tti_bn_rows_in(parts, i) > 0 ? 1.0f : 0.0f; },
            [&](int p, float x) { q.lanes[p] = x; });
}

static tt_status batch_norm_lane(const tt_launch *l)
{
    const tti_batch_norm_attr *a = (const tti_batch_norm_attr *)l->attr;
    const int64_t c = l->in[0].cols;
    tti_bn_lanes b;
    tti_bn_lanes_of(&l->in[0], l->lanes, &b);
    tti_bn_reduce s = {};
    s.x = l->in[0].data;
    s.part = (float *)l->scratch;
    s.slices = tti_bn_most_slices(&b);
    tti_bn_reduce_slices<TTI_BN_MOMENTS>(l, &b, s);
    float *lanes = s.part + 2 * (int64_t)b.ln.n * c * s.slices;
    forward_out o = {(float *)l->out[1].data,
                     (float *)l->out[2].data,
                     (float *)l->out[3].data,
                     (float *)l->out[4].data,
                     (float *)l->out[5].data,
                     (float)a->eps,
                     b.is_open};
    TTI_LANES(&b.ln, N, {
        TTI_LAUNCH(l, tti_bn_merge_grid(c), TTI_BN_MERGERS, 0, (finish_forward<N>),
                   tti_bn_parts_of<N>(&b, s, c), lanes, o);
    });
    tti_bn_map q = {};
    q.x = l->in[0].data;
    q.other = a->has_residual ? l->in[3].data : NULL;
    q.y = l->out[0].data;
    q.mean = tti_bn_vec_of(&l->out[1]);
    q.var = tti_bn_vec_of(&l->out[2]);
    q.var_is_rstd = q.by_row = true;
    q.gamma = tti_bn_vec_of(&l->in[1]);
    q.beta = tti_bn_vec_of(&l->in[2]);
    q.act = a->act;
    map_lanes<false>(l, &b, q);
    return tti_cuda_launched(l);
}

// ---- backward --------------------------------------------------------------------------------

// Slices to lanes, which dx reads, and lane sums; dgamma takes rstd here.
template <int N>
static __global__ void __launch_bounds__(TTI_BN_MERGERS)
    finish_backward(tti_bn_parts<N> parts, float *lanes, const float *rstd, float *dgamma,
                    float *dbeta)
{
    make_lanes<N, false>(parts, lanes);
    const tti_lanes_of<N> &ln = parts.ln;
    const int64_t c = parts.c, ch = tti_bn_channel();
    const int which = (int)threadIdx.x / TTI_BN_COLUMNS;
    if (which > 1 || ch >= c)
        return;
    float *out = which == 0 ? dgamma : dbeta;
    for (int i = 0; which == 0 && i < ln.n; i++)
        if (tti_bn_rows_in(parts, i) > 0)
            lanes[(int64_t)i * 2 * c + ch] *= rstd[ln.bound[i] * c + ch];
    tti_lane_tree<N>(
        ln, [&](int i) { return lanes[((int64_t)i * 2 + which) * c + ch]; },
        [&](int p, float x) { out[p * c + ch] = x; });
}

static tt_status batch_norm_lane_grad(const tt_launch *l)
{
    const int64_t c = l->in[0].cols;
    tti_bn_lanes b;
    tti_bn_lanes_of(&l->in[0], l->lanes, &b);
    tti_bn_reduce s = {};
    s.x = l->in[0].data;
    s.dz = l->in[1].data;
    s.mean = tti_bn_vec_of(&l->in[2]);
    s.by_row = true;
    s.part = (float *)l->scratch;
    s.slices = tti_bn_most_slices(&b);
    tti_bn_reduce_slices<TTI_BN_SUMS>(l, &b, s);
    float *lanes = s.part + 2 * (int64_t)b.ln.n * c * s.slices;
    TTI_LANES(&b.ln, N, {
        TTI_LAUNCH(l, tti_bn_merge_grid(c), TTI_BN_MERGERS, 0, (finish_backward<N>),
                   tti_bn_parts_of<N>(&b, s, c), lanes, (const float *)l->in[3].data,
                   (float *)l->out[1].data, (float *)l->out[2].data);
    });
    tti_bn_map q = {};
    q.x = l->in[0].data;
    q.other = l->in[1].data;
    q.y = l->out[0].data;
    q.mean = s.mean;
    q.var = tti_bn_vec_of(&l->in[3]);
    q.var_is_rstd = q.by_row = true;
    q.gamma = tti_bn_vec_of(&l->in[4]);
    q.dgamma.p = lanes;
    q.dbeta.p = lanes + c;
    q.dgamma.dtype = q.dbeta.dtype = TT_F32;
    q.sum_stride = 2 * c;
    map_lanes<true>(l, &b, q);
    return tti_cuda_launched(l);
}

extern "C" const tti_cuda_row tti_cuda_batch_norm_lane[] = {
    TTI_ROW("batch_norm_lane", prepare, batch_norm_lane),
    TTI_ROW("batch_norm_lane_grad", prepare, batch_norm_lane_grad),
    TTI_ROWS_END,
};
