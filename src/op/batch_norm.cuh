/*
 * batch_norm.cuh - kernels that both batch norms of a GPU use: over the batch (batch_norm.cu) and
 * over a lane (batch_norm_lane.cu).
 *
 * Reductions. The rows of a lane, or over the batch of a strand of it (strands.cuh), which is then
 * all that lanes are here, are cut into slices by a rule that knows their number and the channels
 * alone; a block takes one slice of a few channels. A thread walks every ry-th row of
 * the slice, the block's threads are merged by halves, and the slices of a lane by eight chains,
 * which are then merged by halves too. So a lane's bits depend on its own rows alone, never on
 * the grid.
 *
 * Moments need one walk: a thread sums x - k and its square, where k is the first entry it met.
 * As k is one of the thread's n entries, its own distance from the mean is in M2, so that M2 = S2
 * - S1^2 / n loses at most a factor n of precision, n being 256 at most in lanes of up to two
 * million rows. From there on means and M2 are merged by Chan's formula as batch_norm.c has it.
 *
 * Row by row (apply, dx), a thread keeps to its channels, so that factors stay in registers.
 */
#ifndef TUTTI_OP_BATCH_NORM_CUH
#define TUTTI_OP_BATCH_NORM_CUH

#include "cuda/strands.cuh"
#include "op/act.cuh"
#include "op/batch_norm.h"
#include "op/pack.cuh"

#define TTI_BN_THREADS 256
#define TTI_BN_LANES   64 // of a launch; more lanes take more launches
#define TTI_BN_CHAINS  8  // of slices
#define TTI_BN_AT_ONCE 4  // lanes that a block merges side by side
#define TTI_BN_ROWS    32 // of the batch, of a strand: a constant of the arithmetic

// ---- rows and channels -----------------------------------------------------------------------

// The rows of some lanes: each has runs runs, step rows apart, of per (bound[i + 1] - bound[i]).
struct tti_bn_rows {
    int n;
    int64_t runs, step, per;
    int64_t bound[TTI_BN_LANES + 1];
};

__device__ static inline int64_t tti_bn_entries(const tti_bn_rows &g, int lane)
{
    return g.runs * (g.bound[lane + 1] - g.bound[lane]) * g.per;
}
// The tensor's row of entry i of a lane.
__device__ static inline int64_t tti_bn_row(const tti_bn_rows &g, int lane, int64_t i)
{
    int64_t first = g.bound[lane] * g.per, len = (g.bound[lane + 1] - g.bound[lane]) * g.per;
    return g.runs == 1 ? first + i : first + i / len * g.step + i % len;
}

// Channels: packs of v, walked by wx threads side by side. By the shape alone: they decide bits.
struct tti_bn_cols {
    int64_t c;
    int wx, shift; // wx = 1 << shift
};
static inline tti_bn_cols tti_bn_cols_of(int64_t c, int v, int most)
{
    tti_bn_cols g = {c, 1, 0};
    for (; g.wx < most && (int64_t)g.wx * v < c; g.wx *= 2)
        g.shift++;
    return g;
}
static inline bool tti_bn_in_packs(const tt_arg *x)
{
    return x->cols % (x->dtype == TT_F32 ? 4 : 8) == 0;
}

// Channels of a walk over slices; v: of a thread, where addresses allow.
static inline tti_bn_cols tti_bn_cols_of_walk(const tt_arg *x, int *v)
{
    *v = !tti_bn_in_packs(x) ? 1 : x->dtype == TT_F32 ? 4 : 8;
    return tti_bn_cols_of(x->cols, *v, *v > 1 ? 8 : 32);
}
// Slices of a lane so that its blocks keep a card busy; more would only have to be merged.
static inline int tti_bn_want(const tt_arg *x)
{
    int v;
    tti_bn_cols g = tti_bn_cols_of_walk(x, &v);
    int64_t groups = (x->cols + g.wx * v - 1) / (g.wx * v);
    return groups < 1 ? 128 : groups > 128 ? 1 : (int)(128 / groups);
}

// The lanes of a tensor: those of the call, or one with all rows where no axis is open.
struct tti_bn_lanes {
    tt_lanes ln;
    bool is_open, is_part;
    int want; // slices of a lane that is long enough, by the channels
    int64_t runs, step, per;
    int64_t whole[2];
    tti_strands strands;
};
// Not to be copied: ln points into it.
static inline void tti_bn_lanes_of(const tt_arg *x, const tt_lanes *ln, tti_bn_lanes *out)
{
    int64_t inner = 1;
    out->want = tti_bn_want(x);
    out->is_open = x->open >= 0;
    out->is_part = out->is_open && ln->n != ln->total;
    out->runs = out->per = 1;
    out->step = 0;
    out->ln = out->is_open ? *ln : tti_one_lane(x->rows, out->whole);
    if (!out->is_open)
        return;
    for (int i = 0; i < x->open; i++)
        out->runs *= x->shape.dim[i];
    for (int i = x->open + 1; i < x->shape.rank - 1; i++)
        inner *= x->shape.dim[i];
    out->per = x->per * inner;
    out->step = x->shape.dim[x->open] * inner;
}
// The same with strands for lanes, where it does not matter which rows are a lane's.
static inline void tti_bn_strands_of(const tt_arg *x, const tt_lanes *ln, tti_bn_lanes *out)
{
    tti_bn_lanes_of(x, ln, out);
    tt_lanes lanes = out->ln;
    tti_strands_cut(&out->strands, &lanes, 1, {out->runs * out->per, TTI_BN_ROWS, x->cols});
    out->ln = out->strands.ln;
}
// Lanes from first on, as many as one launch takes; 0 of them past the end.
static inline tti_bn_rows tti_bn_rows_of(const tti_bn_lanes *b, int first)
{
    tti_bn_rows g = {};
    g.runs = b->runs;
    g.step = b->step;
    g.per = b->per;
    g.n = b->ln.n - first < TTI_BN_LANES ? b->ln.n - first : TTI_BN_LANES;
    if (g.n > 0)
        memcpy(g.bound, b->ln.bound + first, sizeof(int64_t) * (size_t)(g.n + 1));
    return g;
}
// All rows as one lane, for what is the same for every lane.
static inline tti_bn_rows tti_bn_all_rows(const tt_arg *x)
{
    tti_bn_rows g = {};
    g.n = 1;
    g.runs = g.per = 1;
    g.bound[1] = x->rows;
    return g;
}

// Rows in a slice of a lane of n.
__host__ __device__ static inline int64_t tti_bn_slice(int64_t n, int want)
{
    int64_t len = (n + want - 1) / want, least = (n + 1023) / 1024;
    len = len < 256 ? 256 : len < 2048 ? len : 2048;
    return ((len > least ? len : least) + 31) / 32 * 32;
}
__host__ __device__ static inline int64_t tti_bn_slices(int64_t n, int want)
{
    int64_t slice = tti_bn_slice(n, want);
    return (n + slice - 1) / slice;
}
// The most slices any lane has.
static inline int64_t tti_bn_most_slices(const tti_bn_lanes *b)
{
    int64_t most = 1;
    for (int i = 0; i < b->ln.n; i++) {
        int64_t n = b->runs * (b->ln.bound[i + 1] - b->ln.bound[i]) * b->per;
        n = tti_bn_slices(n, b->want);
        most = n > most ? n : most;
    }
    return most;
}

// A vector of channels, of either type that is allowed.
struct tti_bn_vec {
    const void *p;
    int dtype;
};
static inline tti_bn_vec tti_bn_vec_of(const tt_arg *a)
{
    tti_bn_vec v = {a->data, (int)a->dtype};
    return v;
}
__device__ static inline float tti_bn_at(const tti_bn_vec &v, int64_t i)
{
    if (v.dtype == TT_F32)
        return ((const float *)v.p)[i];
    return v.dtype == TT_BF16 ? tti_get(((const tti_bf16 *)v.p)[i])
                              : tti_get(((const tti_f16 *)v.p)[i]);
}

// ---- merging ---------------------------------------------------------------------------------

// w = n_b / (n_a + n_b) of a merge of moments, which is the same for all channels.
__device__ static inline float tti_bn_weight(int64_t a, int64_t b)
{
    return (float)b / (float)(a + b);
}
__device__ static inline void tti_bn_merge(float &mean, float &m2, float mean_b, float m2_b,
                                           float n_a, float w)
{
    float d = mean_b - mean;
    mean = fmaf(d, w, mean);
    m2 = fmaf(d * d, n_a * w, m2 + m2_b);
}

// Adds the sums of more entries, or merges their moments, to those of n.
template <bool MOMENTS>
__device__ static inline void tti_bn_join(float &a, float &b, float a2, float b2, int64_t n,
                                          int64_t more)
{
    if (!MOMENTS) {
        a = a + a2;
        b = b + b2;
    } else if (n == 0) {
        a = a2;
        b = b2;
    } else {
        tti_bn_merge(a, b, a2, b2, (float)n, tti_bn_weight(n, more));
    }
}

/*
 * Threads (tx, ty) with ty above 0 are merged into ty = 0, by halves; n is each thread's entries
 * (of moments). Shared memory: 2 V + 1 numbers for half of the threads.
 */
template <int V, bool MOMENTS>
__device__ static inline void tti_bn_block(float *a, float *b, int n, const tti_bn_cols &g)
{
    __shared__ float part[(2 * V + 1) * TTI_BN_THREADS / 2];
    const int half_threads = TTI_BN_THREADS / 2, ty = (int)threadIdx.x >> g.shift;
    for (int half = (TTI_BN_THREADS >> g.shift) / 2; half > 0; half >>= 1) {
        int at = (int)threadIdx.x - (half << g.shift); // of the one that takes
        __syncthreads();
        if (ty >= half && ty < 2 * half) {
            for (int i = 0; i < V; i++) {
                part[i * half_threads + at] = a[i];
                part[(V + i) * half_threads + at] = b[i];
            }
            part[2 * V * half_threads + at] = (float)n;
        }
        __syncthreads();
        if (ty >= half)
            continue;
        at = (int)threadIdx.x;
        int more = (int)part[2 * V * half_threads + at];
        float w = MOMENTS && more > 0 ? tti_bn_weight(n, more) : 0.0f;
        for (int i = 0; i < V; i++) {
            float a2 = part[i * half_threads + at], b2 = part[(V + i) * half_threads + at];
            if (!MOMENTS) {
                a[i] = a[i] + a2;
                b[i] = b[i] + b2;
            } else if (more > 0) { // n is not below more: rows are dealt from the first thread on
                tti_bn_merge(a[i], b[i], a2, b2, (float)n, w);
            }
        }
        n += more;
    }
}

// The sums of slices, [lanes, slices, 2, c], of lanes with per_row entries for a row of the batch.
struct tti_bn_parts {
    const float *part;
    int64_t slices, per_row;
    int want;
};

/*
 * Slices of every lane to lane results: out is [lanes, 2, c]. A block
 * has 32 channels by TTI_BN_CHAINS chains by TTI_BN_AT_ONCE lanes. Ends with a barrier, after which
 * the block's threads see its results.
 */
template <int N, bool MOMENTS>
__device__ static inline void tti_bn_merge_slices(const tti_lanes_of<N> &ln, const tti_bn_parts &q,
                                                  int64_t c, float *out)
{
    const int at_once = 8; // loads in flight
    __shared__ float sh[TTI_BN_AT_ONCE][TTI_BN_CHAINS][2][32];
    __shared__ int64_t count[TTI_BN_AT_ONCE][TTI_BN_CHAINS];
    const int k = (int)threadIdx.y, z = (int)threadIdx.z, x = (int)threadIdx.x;
    const int64_t ch = (int64_t)blockIdx.x * 32 + x;
    for (int first = 0; first < ln.n; first += TTI_BN_AT_ONCE) {
        const int lane = first + z;
        int64_t n = 0, rows = lane < ln.n ? (ln.bound[lane + 1] - ln.bound[lane]) * q.per_row : 0;
        int64_t slice = tti_bn_slice(rows, q.want), have = tti_bn_slices(rows, q.want);
        const float *p = q.part + (int64_t)lane * q.slices * 2 * c + ch;
        float a = 0.0f, b = 0.0f;
        for (int64_t s = k; s < have; s += TTI_BN_CHAINS * at_once) {
            float a2[at_once], b2[at_once];
#pragma unroll
            for (int u = 0; u < at_once; u++) {
                int64_t at = s + u * TTI_BN_CHAINS;
                bool in = ch < c && at < have;
                a2[u] = in ? p[at * 2 * c] : 0.0f;
                b2[u] = in ? p[(at * 2 + 1) * c] : 0.0f;
            }
#pragma unroll
            for (int u = 0; u < at_once; u++) {
                int64_t at = s + u * TTI_BN_CHAINS;
                int64_t more = at * slice + slice <= rows ? slice : rows - at * slice;
                if (at >= have)
                    continue;
                tti_bn_join<MOMENTS>(a, b, a2[u], b2[u], n, more);
                n += more;
            }
        }
        for (int half = TTI_BN_CHAINS / 2; half > 0; half >>= 1) {
            __syncthreads();
            sh[z][k][0][x] = a;
            sh[z][k][1][x] = b;
            if (x == 0)
                count[z][k] = n;
            __syncthreads();
            if (k >= half)
                continue;
            int64_t more = count[z][k + half];
            float a2 = sh[z][k + half][0][x], b2 = sh[z][k + half][1][x];
            if (!MOMENTS || more > 0) // chains fill from the first on
                tti_bn_join<MOMENTS>(a, b, a2, b2, n, more);
            n += more;
        }
        if (k == 0 && lane < ln.n && ch < c) {
            out[(int64_t)lane * 2 * c + ch] = a;
            out[((int64_t)lane * 2 + 1) * c + ch] = b;
        }
        __syncthreads();
    }
}
static inline dim3 tti_bn_merge_block(void)
{
    return dim3(32, TTI_BN_CHAINS, TTI_BN_AT_ONCE);
}
static inline unsigned tti_bn_merge_grid(int64_t c)
{
    return (unsigned)((c + 31) / 32);
}

// ---- slices ----------------------------------------------------------------------------------

// Of a slice: part [lanes, slices, 2, c]. first_lane is the number of the launch's first one.
struct tti_bn_reduce {
    const void *x, *dz; // dz: sums alone
    tti_bn_vec mean;    // sums: of the batch, or with by_row for each row of the batch
    bool by_row;
    float *part;
    int64_t slices;
    int want, first_lane;
};

/*
 * A walk over slices: mean and M2 of x, or the sums of dz (x - mean) and of dz. Blocks are groups
 * of channels by slices by lanes.
 */
template <class T, int V, bool MOMENTS>
static __global__ void __launch_bounds__(TTI_BN_THREADS, 2)
    tti_bn_slice_kernel(tti_bn_rows g, tti_bn_cols cols, tti_bn_reduce q)
{
    typedef tti_regs<T, V> pack;
    const int at_once = MOMENTS ? 8 : 4; // loads in flight, in rows
    const int lane = (int)blockIdx.z, tx = (int)threadIdx.x & (cols.wx - 1);
    const int ty = (int)threadIdx.x >> cols.shift, ry = TTI_BN_THREADS >> cols.shift;
    const int64_t ch = ((int64_t)blockIdx.x * cols.wx + tx) * V, c = cols.c;
    const int64_t entries = tti_bn_entries(g, lane), slice = tti_bn_slice(entries, q.want);
    const int64_t begin = (int64_t)blockIdx.y * slice;
    if (begin >= entries) // of the whole block
        return;
    const int64_t end = begin + slice < entries ? begin + slice : entries;
    const bool mine = ch < c;
    const T *x = (const T *)q.x + ch, *dz = (const T *)q.dz + ch;
    float a[V], b[V], k[V];
    for (int i = 0; i < V; i++)
        a[i] = b[i] = k[i] = 0.0f;
    if (mine && !MOMENTS) {
        int64_t row = q.by_row ? g.bound[lane] * c : 0;
        for (int i = 0; i < V; i++)
            k[i] = tti_bn_at(q.mean, row + ch + i);
    }
    for (int64_t r = begin + ty; mine && r < end; r += at_once * ry) {
        pack p[at_once], d[at_once];
#pragma unroll
        for (int u = 0; u < at_once; u++) {
            if (r + u * ry >= end)
                continue;
            int64_t at = tti_bn_row(g, lane, r + u * ry) * c;
            p[u] = *(const pack *)(x + at);
            if (!MOMENTS)
                d[u] = *(const pack *)(dz + at);
        }
        for (int i = 0; MOMENTS && r == begin + ty && i < V; i++)
            k[i] = p[0].get(i);
#pragma unroll
        for (int u = 0; u < at_once; u++) {
            if (r + u * ry >= end)
                continue;
            for (int i = 0; i < V; i++) {
                float away = p[u].get(i) - k[i];
                if (MOMENTS) {
                    a[i] = a[i] + away;
                    b[i] = fmaf(away, away, b[i]);
                } else {
                    a[i] = fmaf(d[u].get(i), away, a[i]);
                    b[i] = b[i] + d[u].get(i);
                }
            }
        }
    }
    int n = begin + ty < end ? (int)((end - begin - ty + ry - 1) / ry) : 0;
    for (int i = 0; MOMENTS && n > 0 && i < V; i++) {
        float away = a[i] / (float)n, m2 = fmaf(-away, a[i], b[i]);
        a[i] = k[i] + away;
        b[i] = m2 < 0.0f ? 0.0f : m2;
    }
    tti_bn_block<V, MOMENTS>(a, b, n, cols);
    float *to = q.part + (((int64_t)(q.first_lane + lane) * q.slices + blockIdx.y) * 2) * c + ch;
    for (int i = 0; ty == 0 && mine && i < V; i++) {
        to[i] = a[i];
        to[c + i] = b[i];
    }
}

/*
 * All slices of all lanes of x. Where addresses forbid packs, a thread takes one channel, with as
 * many rows of threads as before: the order is the same.
 */
template <bool MOMENTS>
static inline void tti_bn_reduce_slices(const tt_launch *l, const tti_bn_lanes *b, tti_bn_reduce q)
{
    const tt_arg *x = &l->in[0];
    int v;
    const tti_bn_cols cols = tti_bn_cols_of_walk(x, &v);
    const bool packs = v > 1 && tti_is_aligned(q.x) && tti_is_aligned(q.dz);
    const int64_t per = (int64_t)cols.wx * (packs ? v : 1);
    q.want = b->want;
    for (int first = 0; first < b->ln.n && x->count > 0; first += TTI_BN_LANES) {
        tti_bn_rows g = tti_bn_rows_of(b, first);
        q.first_lane = first;
        TTI_FLOATS(x->dtype, T, {
            const int wide = tti_pack<T>::n;
            dim3 grid((unsigned)((x->cols + per - 1) / per), (unsigned)q.slices, (unsigned)g.n);
            if (packs)
                TTI_LAUNCH(l, grid, TTI_BN_THREADS, 0, (tti_bn_slice_kernel<T, wide, MOMENTS>), g,
                           cols, q);
            else
                TTI_LAUNCH(l, grid, TTI_BN_THREADS, 0, (tti_bn_slice_kernel<T, 1, MOMENTS>), g,
                           cols, q);
        })
    }
}

static inline tti_bn_parts tti_bn_parts_of(const tti_bn_lanes *b, const tti_bn_reduce &q)
{
    tti_bn_parts p = {q.part, q.slices, b->runs * b->per, b->want};
    return p;
}

// ---- row by row ------------------------------------------------------------------------------

/*
 * What apply and dx read. The statistics of lane i begin stride i, or bound[i] c with by_row, past
 * their pointers.
 */
struct tti_bn_map {
    const void *x, *other; // other: the residual (NULL: none), or dz
    void *y;
    tti_bn_vec mean, var, gamma, beta; // beta: apply
    tti_bn_vec dgamma, dbeta;          // dx: p NULL: the statistics are fixed
    bool var_is_rstd, by_row;
    int64_t stride, sum_stride; // of mean and var; of dgamma and dbeta
    float n;                    // dx: entries; 0: the lane's
    float eps;
    int act;
};

// Factors of V channels: y = fma(x - mean, scale, beta); dx = fma(mean - x, by_x, dz - beta) scale.
template <int V> struct tti_bn_factors {
    float mean[V], scale[V], beta[V], by_x[V];
};
template <int V, bool DX>
__device__ static inline void tti_bn_get_factors(const tti_bn_map &q, int64_t stat, int64_t sum,
                                                 int64_t ch, float n, tti_bn_factors<V> *f)
{
    for (int i = 0; i < V; i++) {
        float s = tti_bn_at(q.var, stat + ch + i);
        s = q.var_is_rstd ? s : 1.0f / sqrtf(s + q.eps);
        f->mean[i] = tti_bn_at(q.mean, stat + ch + i);
        f->scale[i] = tti_bn_at(q.gamma, ch + i) * s;
        f->beta[i] = f->by_x[i] = 0.0f;
        if (!DX) {
            f->beta[i] = tti_bn_at(q.beta, ch + i);
        } else if (q.dgamma.p != NULL) {
            f->beta[i] = tti_bn_at(q.dbeta, sum + ch + i) / n;
            f->by_x[i] = tti_bn_at(q.dgamma, sum + ch + i) / n * s;
        }
    }
}

// FAST: the activation is linear or relu, so that registers are few.
template <class T, int V, bool DX, bool FAST>
static __global__ void __launch_bounds__(TTI_BN_THREADS, FAST ? 3 : 1)
    tti_bn_map_kernel(tti_bn_rows g, tti_bn_cols cols, tti_bn_map q, int first_lane)
{
    typedef tti_regs<T, V> pack;
    const int at_once = 2; // loads in flight, in rows
    const int lane = (int)blockIdx.z, tx = (int)threadIdx.x & (cols.wx - 1);
    const int ty = (int)threadIdx.x >> cols.shift, ry = TTI_BN_THREADS >> cols.shift;
    const int64_t c = cols.c, ch = ((int64_t)blockIdx.y * cols.wx + tx) * V;
    const int64_t entries = tti_bn_entries(g, lane), step = (int64_t)gridDim.x * ry;
    if (ch >= c || entries == 0)
        return;
    tti_bn_factors<V> f;
    int64_t stat = q.by_row ? g.bound[lane] * c : (first_lane + lane) * q.stride;
    tti_bn_get_factors<V, DX>(q, stat, (first_lane + lane) * q.sum_stride, ch,
                              q.n > 0.0f ? q.n : (float)entries, &f);
    const T *x = (const T *)q.x + ch, *other = (const T *)q.other + ch;
    T *y = (T *)q.y + ch;
    const bool two = DX || q.other != NULL, relu = q.act == TT_RELU;
    for (int64_t r = (int64_t)blockIdx.x * ry + ty; r < entries; r += at_once * step) {
        pack p[at_once], d[at_once];
        int64_t at[at_once];
#pragma unroll
        for (int u = 0; u < at_once; u++) {
            if (r + u * step >= entries)
                continue;
            at[u] = tti_bn_row(g, lane, r + u * step) * c;
            p[u] = *(const pack *)(x + at[u]);
            if (two)
                d[u] = *(const pack *)(other + at[u]);
        }
#pragma unroll
        for (int u = 0; u < at_once; u++) {
            if (r + u * step >= entries)
                continue;
            for (int i = 0; i < V; i++) {
                float v = p[u].get(i);
                if (DX) {
                    float t = d[u].get(i) - f.beta[i];
                    v = fmaf(f.mean[i] - v, f.by_x[i], t) * f.scale[i];
                } else {
                    v = fmaf(v - f.mean[i], f.scale[i], f.beta[i]);
                    if (two)
                        v = v + d[u].get(i);
                    v = FAST ? (relu ? tti_relu(v) : v) : tti_act(q.act, v);
                }
                p[u].put(i, v);
            }
            *(pack *)(y + at[u]) = p[u];
        }
    }
}

// Rows of the lanes of g, of which the first has the number first_lane.
template <bool DX>
static inline void tti_bn_map_rows(const tt_launch *l, const tti_bn_rows &g, int64_t most_rows,
                                   int first_lane, const tti_bn_map &q)
{
    const tt_arg *x = &l->in[0];
    const bool packs =
        tti_bn_in_packs(x) && tti_is_aligned(q.x) && tti_is_aligned(q.other) && tti_is_aligned(q.y);
    const bool fast = DX || q.act <= TT_RELU;
    if (x->count == 0)
        return;
    TTI_FLOATS(x->dtype, T, {
        const int wide = tti_pack<T>::n;
        const int v = packs ? wide : 1;
        tti_bn_cols cols = tti_bn_cols_of(x->cols, v, TTI_BN_THREADS);
        int64_t groups = (x->cols + cols.wx * v - 1) / (cols.wx * v);
        int64_t ry = TTI_BN_THREADS / cols.wx, most = (int64_t)tti_device_of(l)->sms * 8;
        int64_t want = (most_rows + ry * 2 - 1) / (ry * 2);
        most = most / (groups * g.n) + 1;
        dim3 grid((unsigned)(want < most ? (want < 1 ? 1 : want) : most), (unsigned)groups,
                  (unsigned)g.n);
        if (packs && fast)
            TTI_LAUNCH(l, grid, TTI_BN_THREADS, 0, (tti_bn_map_kernel<T, wide, DX, true>), g, cols,
                       q, first_lane);
        else if (packs)
            TTI_LAUNCH(l, grid, TTI_BN_THREADS, 0, (tti_bn_map_kernel<T, wide, DX, DX>), g, cols, q,
                       first_lane);
        else
            TTI_LAUNCH(l, grid, TTI_BN_THREADS, 0, (tti_bn_map_kernel<T, 1, DX, DX>), g, cols, q,
                       first_lane);
    })
}

#endif
