/*
 * batch_norm_map.cuh - what batch norms of a GPU do row by row: apply and dx. A thread keeps to its
 * channels, so that factors stay in registers; blocks are as many as run at once, each with as many
 * rows as the others.
 */
#ifndef TUTTI_OP_BATCH_NORM_MAP_CUH
#define TUTTI_OP_BATCH_NORM_MAP_CUH

#include "op/gpu/batch_norm.cuh"

/*
 * What apply and dx read. The statistics of lane i begin stride i, or bound[i] c with by_row, past
 * their pointers.
 */
struct tti_bn_map {
    const void *x, *other; // other: the residual (NULL: none), or dz
    void *y;
    tti_bn_vec mean, var, gamma, beta; // beta: apply, and dx with relu
    tti_bn_vec dgamma, dbeta;          // dx: p NULL: the statistics are fixed
    bool var_is_rstd, by_row;
    int64_t stride, sum_stride; // of mean and var; of dgamma and dbeta
    float n;                    // dx: entries; 0: the lane's
    float eps;
    int act; // dx: relu: other is dy, to be taken but where z <= 0
};

// Which of the kernels; a simple activation is linear or relu, so that registers are few.
enum tti_bn_kind {
    TTI_BN_APPLY,
    TTI_BN_APPLY_ANY,
    TTI_BN_DX,
    TTI_BN_DX_RELU,
};

// y = fma(x - mean, scale, beta); dx = fma(mean - x, by_x, dz - by_mean) scale.
enum {
    TTI_BN_MEAN,
    TTI_BN_SCALE,
    TTI_BN_BETA,
    TTI_BN_BY_MEAN,
    TTI_BN_BY_X,
    TTI_BN_FACTORS,
};

template <int KIND>
__device__ static inline void tti_bn_factors_at(const tti_bn_map &q, int64_t stat, int64_t sum,
                                                int64_t ch, float n, float *to)
{
    float s = tti_bn_at(q.var, stat + ch);
    s = q.var_is_rstd ? s : 1.0f / sqrtf(s + q.eps);
    to[TTI_BN_MEAN] = tti_bn_at(q.mean, stat + ch);
    to[TTI_BN_SCALE] = tti_bn_at(q.gamma, ch) * s;
    if (KIND != TTI_BN_DX)
        to[TTI_BN_BETA] = tti_bn_at(q.beta, ch);
    if (KIND >= TTI_BN_DX && q.dgamma.p != NULL) {
        to[TTI_BN_BY_MEAN] = tti_bn_at(q.dbeta, sum + ch) / n;
        to[TTI_BN_BY_X] = tti_bn_at(q.dgamma, sum + ch) / n * s;
    }
}

// A row's V channels, in place; d is the residual's or dz's.
template <class T, int V, int KIND>
__device__ static inline void tti_bn_map_one(const tti_bn_factors<V, TTI_BN_FACTORS> &by,
                                             tti_regs<T, V> &p, const tti_regs<T, V> &d, bool two,
                                             int act)
{
    float y[V];
#pragma unroll
    for (int i = 0; i < V; i++) {
        float away = p.get(i) - by.f[TTI_BN_MEAN][i], scale = by.f[TTI_BN_SCALE][i];
        float z = KIND == TTI_BN_DX ? 0.0f : fmaf(away, scale, by.f[TTI_BN_BETA][i]);
        if (KIND >= TTI_BN_DX) {
            float t = d.get(i);
            t = KIND != TTI_BN_DX && z <= 0.0f ? 0.0f : t;
            y[i] = fmaf(-away, by.f[TTI_BN_BY_X][i], t - by.f[TTI_BN_BY_MEAN][i]) * scale;
            continue;
        }
        z = two ? z + d.get(i) : z;
        y[i] = KIND == TTI_BN_APPLY_ANY ? tti_act(act, z) : act == TT_RELU ? tti_relu(z) : z;
    }
    p.put_all(y);
}

// Rows of lane blockIdx.z; blocks of a lane by groups of channels.
template <class T, int V, int KIND>
static __global__ void __launch_bounds__(TTI_BN_THREADS, KIND == TTI_BN_APPLY_ANY ? 2 : 3)
    tti_bn_map_kernel(tti_bn_rows g, tti_bn_cols cols, tti_bn_map q, int first_lane)
{
    typedef tti_regs<T, V> pack;
    const int at_once = KIND >= TTI_BN_DX ? 2 : 4; // loads in flight, in rows
    __shared__ __align__(16) float room[TTI_BN_FACTORS * 32 * V];
    const int lane = (int)blockIdx.z, tx = (int)threadIdx.x & (cols.wx - 1);
    const int ty = (int)threadIdx.x >> cols.shift, ry = TTI_BN_THREADS >> cols.shift;
    const int64_t c = cols.c, first = (int64_t)blockIdx.y * cols.wx * V, ch = first + tx * V;
    const int64_t entries = tti_bn_entries(g, lane), step = (int64_t)gridDim.x * ry;
    const int64_t stat = q.by_row ? g.bound[lane] * c : (first_lane + lane) * q.stride;
    const int64_t sum = (first_lane + lane) * q.sum_stride, end = ch < c ? entries : 0;
    const float n = q.n > 0.0f ? q.n : (float)entries;
    const T *x = (const T *)q.x + ch, *other = (const T *)q.other + ch;
    T *y = (T *)q.y + ch;
    const bool two = KIND >= TTI_BN_DX || q.other != NULL;
    if (entries == 0) // of the whole block
        return;
    pack p[at_once], d[at_once];
    int64_t at[at_once], r = (int64_t)blockIdx.x * ry + ty;
    int64_t next = tti_bn_row<V>(g, lane, r) * c; // of packs: where row r is
    const auto load = [&](void) {
#pragma unroll
        for (int u = 0; u < at_once; u++, next += step * c) {
            if (r + u * step >= end)
                continue;
            at[u] = V > 1 ? next : tti_bn_row<V>(g, lane, r + u * step) * c;
            p[u] = *(const pack *)(x + at[u]);
            if (two)
                d[u] = *(const pack *)(other + at[u]);
        }
    };
    tti_bn_factors<V, TTI_BN_FACTORS> by;
    load();
    by.make(room, cols, first, tx, [&](int64_t channel, float *to) {
        tti_bn_factors_at<KIND>(q, stat, sum, channel, n, to);
    });
    while (r < end) {
#pragma unroll
        for (int u = 0; u < at_once; u++) {
            if (r + u * step >= end)
                continue;
            tti_bn_map_one<T, V, KIND>(by, p[u], d[u], two, q.act);
            p[u].store(y + at[u]);
        }
        r += at_once * step;
        load();
    }
}

template <class T, int V, int KIND>
static inline void tti_bn_launch_map(const tt_launch *l, const tti_bn_rows &g, int64_t most_rows,
                                     int first_lane, const tti_bn_map &q)
{
    const int at_once = KIND >= TTI_BN_DX ? 2 : 4;
    const tti_bn_cols cols = tti_bn_cols_of(l->in[0].cols, V, 32);
    const int64_t groups = (cols.c + cols.wx * V - 1) / (cols.wx * V);
    const int64_t rows = (TTI_BN_THREADS >> cols.shift) * at_once; // of a block at once
    const int64_t steps = (most_rows + rows - 1) / rows;
    int64_t most = (int64_t)tti_device_of(l)->sms * 3 / (groups * g.n);
    most = most < 1 ? 1 : most;
    int64_t each = (steps + most - 1) / most; // steps of a block
    dim3 grid((unsigned)((steps + each - 1) / each), (unsigned)groups, (unsigned)g.n);
    TTI_LAUNCH(l, grid, TTI_BN_THREADS, 0, (tti_bn_map_kernel<T, V, KIND>), g, cols, q, first_lane);
}

// Rows of the lanes of g, of which the first has the number first_lane and none more than
// most_rows.
template <bool DX>
static inline void tti_bn_map_rows(const tt_launch *l, const tti_bn_rows &g, int64_t most_rows,
                                   int first_lane, const tti_bn_map &q)
{
    const tt_arg *x = &l->in[0];
    const bool packs = tti_bn_in_packs(x) && g.runs == 1 && tti_is_aligned(q.x) &&
                       tti_is_aligned(q.other) && tti_is_aligned(q.y);
    const bool relu = q.act == TT_RELU;
    if (x->count == 0)
        return;
    TTI_FLOATS(x->dtype, T, {
        const int wide = tti_pack<T>::n;
        const int simple = DX ? TTI_BN_DX : TTI_BN_APPLY;
        const int other = DX ? TTI_BN_DX_RELU : TTI_BN_APPLY_ANY;
        const bool is_simple = DX ? !relu : q.act <= TT_RELU;
        if (packs && is_simple)
            tti_bn_launch_map<T, wide, simple>(l, g, most_rows, first_lane, q);
        else if (packs)
            tti_bn_launch_map<T, wide, other>(l, g, most_rows, first_lane, q);
        else if (is_simple)
            tti_bn_launch_map<T, 1, simple>(l, g, most_rows, first_lane, q);
        else
            tti_bn_launch_map<T, 1, other>(l, g, most_rows, first_lane, q);
    })
}

#endif
