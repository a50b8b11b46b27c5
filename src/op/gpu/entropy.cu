/*
 * entropy.cu - cross_entropy, then cross_entropy_grad: the loss of a row and its gradient, which
 * may lie where the logits do. The arithmetic is that of softmax.cu.
 *
 * A block keeps a long row in shared memory between the two walks, so that logits are read once.
 * Each thread has the packs that are its own in both, and while it writes the gradient the same
 * packs of the block's next row come in their place. Short rows, and those of no whole packs, are
 * walked twice where they are; then they are in a cache.
 */
#include "cuda/async.cuh"
#include "op/gpu/softmax.cuh"
#include "plan/program.h"

#define THREADS TTI_ROW_THREADS // the order of sums along a row is theirs
#define GROUP   4               // packs of a thread that are waited for together
#define AHEAD   6               // groups on their way

template <class T> struct both_args {
    const T *x;
    labels t;
    const float *dloss;
    T *dx;
    entropy_out out;
    int64_t rows, n;
};

// All threads of a group have read what others of it will write.
template <int G> __device__ static inline void group_barrier(void)
{
    if (G == 32)
        __syncwarp();
    else
        __syncthreads();
}

template <class T, int G>
__global__ static void __launch_bounds__(THREADS) both_rows(const both_args<T> p)
{
    for (int64_t r = tti_row_first<G>(); r < p.rows; r += tti_row_step<G>()) {
        const T *xr = p.x + r * p.n;
        float max, sum;
        int64_t k = label_of(p.t, r, p.n, (int)threadIdx.x % G == 0);
        entropy_row<T, G>(xr, p.t, r, k, p.n, p.out, &max, &sum);
        group_barrier<G>();
        entropy_slope_row<T, G>(xr, entropy_slope(p.t, k, max, sum, p.dloss[r]), p.n,
                                p.dx + r * p.n);
    }
}

// ---- rows kept in shared memory --------------------------------------------------------------

// Calls one(i) for the thread's packs from group g of GROUP on.
#define EACH_OF_GROUP(g, packs, i, ...)                        \
    _Pragma("unroll") for (int k_ = 0; k_ < GROUP; k_++)       \
    {                                                          \
        int i = ((g)*GROUP + k_) * THREADS + (int)threadIdx.x; \
        if (i < (packs)) {                                     \
            __VA_ARGS__                                        \
        }                                                      \
    }

template <class T>
__device__ static inline void start_group(tti_pack<T> *row, const T *x, int packs, int g)
{
    EACH_OF_GROUP(g, packs, i, { tti_async_copy(&row[i], x + (int64_t)i * tti_pack<T>::n, true); })
    tti_async_group();
}

// The maximum and the sum of a row that is on its way: its first AHEAD groups have been started.
template <class T>
__device__ static inline void walk_coming(tti_pack<T> *row, const T *x, int packs, int groups,
                                          soft_sum<T> &s)
{
    for (int g = 0; g < groups; g++) {
        tti_async_wait<AHEAD - 1>();
        EACH_OF_GROUP(g, packs, i, {
            float v[tti_pack<T>::n];
            tti_unpack(row[i], v);
            s.add(v, tti_pack<T>::n);
        })
        start_group(row, x, packs, g + AHEAD); // past the row's end an empty one
    }
    s.template end<THREADS>();
}

template <class T> __global__ static void __launch_bounds__(THREADS) both_kept(const both_args<T> p)
{
    const int V = tti_pack<T>::n;
    TTI_SHARED(tti_pack<T>, row);
    int packs = (int)(p.n / V), groups = (packs + GROUP * THREADS - 1) / (GROUP * THREADS);
    for (int g = 0; g < AHEAD; g++)
        start_group(row, p.x + blockIdx.x * p.n, packs, g);
    for (int64_t r = blockIdx.x; r < p.rows; r += gridDim.x) {
        const T *xr = p.x + r * p.n;
        int64_t next = r + gridDim.x < p.rows ? r + gridDim.x : r;
        int64_t k = label_of(p.t, r, p.n, threadIdx.x == 0);
        float at = k < 0 ? 0 : tti_get(xr[k]), dloss = p.dloss[r], more = 0;
        soft_sum<T> s;
        walk_coming(row, xr, packs, groups, s); // has barriers: all have read x at the label
        float ls = logf(s.sum), max = s.max;
        if (p.t.even > 0) {
            for (int g = 0; g < groups; g++)
                EACH_OF_GROUP(g, packs, i, {
                    float v[V];
                    tti_unpack(row[i], v);
                    for (int e = 0; e < V; e++)
                        more = more + ((max - v[e]) + ls);
                })
            more = tti_group_sum<THREADS>(more);
        }
        put_loss<THREADS>(p.t, p.out, r, k, max, s.sum, k < 0 ? 0 : (max - at) + ls, more);
        entropy_slope slope(p.t, k, max, s.sum, dloss);
        for (int g = 0; g < groups; g++) {
            EACH_OF_GROUP(g, packs, i, {
                float v[V];
                tti_unpack(row[i], v);
                slope.apply(v, (int64_t)i * V, V);
                tti_row_put(p.dx + r * p.n + (int64_t)i * V, V, v);
            })
            if (g < AHEAD)
                start_group(row, p.x + next * p.n, next == r ? 0 : packs, g);
        }
        for (int g = groups; g < AHEAD; g++) // as many groups as the next walk counts on
            tti_async_group();
    }
}

// ---- calls -----------------------------------------------------------------------------------

// What prepare() leaves behind the chain.
struct both_tune {
    const tti_chain *chain;
    int per_sm; // blocks that keep a row each; 0: rows are not kept
};

static size_t bytes_of(tt_dtype t)
{
    return t == TT_F32 ? 4 : 2;
}

// The gradient is of the same logits and labels, by the maximum and the sum that the loss leaves.
static bool is_ours(const tti_chain *c)
{
    static const int want[5] = {0, 1, TTI_FUSE_OF + 1, TTI_FUSE_OF + 2, 2};
    const tti_cross_entropy_attr *a = (const tti_cross_entropy_attr *)c->members[0].node->attr;
    const tti_cross_entropy_attr *b = (const tti_cross_entropy_attr *)c->members[1].node->attr;
    return memcmp(c->members[1].in, want, sizeof(want)) == 0 && a->smoothing == b->smoothing &&
           a->has_ignore == b->has_ignore && a->ignore == b->ignore;
}

static tt_status prepare(tt_prep *p)
{
    both_tune tune;
    memcpy(&tune, p->tune, sizeof(tune));
    const tt_arg *x = &p->in[0];
    size_t row = (size_t)x->cols * bytes_of(x->dtype),
           most = ((tti_cuda_device *)p->device)->shared;
    p->units[0] = x->rows;
    tune.per_sm = 0;
    if (x->cols > TTI_ROW_WARP && row % 16 == 0 && row < most)
        tune.per_sm = (int)tti_min64((int64_t)((most + 1024) / (row + 1024)), 2048 / THREADS);
    if (tune.per_sm < 2) // one would wait too often
        tune.per_sm = 0;
    memcpy(p->tune, &tune, sizeof(tune));
    bool f32 = p->n_in == 3 && p->in[2].dtype == TT_F32 && p->out_args[0].dtype == TT_F32;
    if (!f32 || is_dense(&p->in[1]) || x->dtype == TT_F64 || !is_ours(tune.chain))
        p->n_phases = 0;
    return TT_OK;
}

template <class T> static tt_status launch_both(const tt_launch *l, const both_tune *tune)
{
    const tt_arg *x = &l->in[0];
    float *out[3] = {};
    for (int i = 0; i < 3; i++)
        if (tune->chain->kept >> i & 1u)
            out[i] = (float *)l->out[i].data;
    both_args<T> p = {(const T *)x->data,
                      labels_of(l, x, &l->in[1]),
                      (const float *)l->in[2].data,
                      (T *)l->out[3].data,
                      {out[0], out[1], out[2]},
                      x->rows,
                      x->cols};
    size_t row = (size_t)x->cols * sizeof(T);
    int64_t blocks = (int64_t)tti_device_of(l)->sms * tune->per_sm;
    if (tune->per_sm > 0 && tti_is_aligned(p.x) && tti_is_aligned(p.dx)) {
        TTI_CUDA(tti_device_of(l), l->node,
                 cudaFuncSetAttribute(both_kept<T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      (int)row));
        TTI_LAUNCH(l, (unsigned)tti_min64(blocks, p.rows), THREADS, row, both_kept<T>, p);
    } else {
        TTI_ROW_LAUNCH_OF(l, both_rows, T, x->rows, x->cols, p);
    }
    return tti_cuda_launched(l);
}

static tt_status both(const tt_launch *l)
{
    tt_status st = TT_OK;
    if (l->in[0].count > 0)
        TTI_FLOATS(l->in[0].dtype, T, st = launch_both<T>(l, (const both_tune *)l->tune);)
    return st;
}

extern "C" const tti_cuda_row tti_cuda_entropy[] = {
    TTI_ROW_CHAIN("cross_entropy", "cross_entropy_grad", prepare, both),
    TTI_ROWS_END,
};
