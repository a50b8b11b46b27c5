/*
 * batch_norm_sums.cuh - sums over rows of both batch norms of a GPU: mean and M2, or what gamma and
 * beta have as gradients.
 *
 * The rows of a lane, or over the batch of a strand of it (strands.cuh), which is then all that
 * lanes are here, are cut into slices by a rule that knows their number and the channels alone; a
 * block takes one slice of a few channels. A thread walks every ry-th row of the slice; the block's
 * threads are merged eight rows of them at a time, then these groups. The slices of a lane are
 * merged by sixteen chains, four of which make one, and those four the lane. So a lane's bits
 * depend on its own rows alone, never on the grid.
 *
 * Moments need one walk: a thread sums x - k and its square, where k is the first entry it met.
 * As k is one of the thread's n entries, its own distance from the mean is in M2, so that M2 = S2
 * - S1^2 / n loses at most a factor n of precision, n being 256 at most in lanes of up to two
 * million rows. From there on means and M2 are merged by Chan's formula as batch_norm.c has it.
 */
#ifndef TUTTI_OP_BATCH_NORM_SUMS_CUH
#define TUTTI_OP_BATCH_NORM_SUMS_CUH

#include "op/gpu/batch_norm.cuh"

#define TTI_BN_GROUP   8    // rows of threads that are merged one after the other
#define TTI_BN_MERGERS 1024 // threads that merge slices: channels by chains by lanes
#define TTI_BN_COLUMNS 8    // channels of such a block
#define TTI_BN_CHAINS  16
#define TTI_BN_AT_ONCE 8 // lanes

// ---- merging ---------------------------------------------------------------------------------

// Adds sums a2, b2 to a, b; or merges the moments of more entries, if any, with those of n.
template <bool MOMENTS>
__device__ static inline void tti_bn_join(float &a, float &b, float a2, float b2, float n,
                                          float more)
{
    if (!MOMENTS) {
        a = a + a2;
        b = b + b2;
    } else if (n == 0.0f) {
        a = a2;
        b = b2;
    } else if (more > 0.0f) {
        float d = a2 - a, w = more / (n + more);
        a = fmaf(d, w, a);
        b = fmaf(d * d, n * w, b + b2);
    }
}

/*
 * The results of a block's threads, V channels each, of a slice of len rows: thread (tx, ty) has
 * rows ty, ty + ry, ... to[0] and to[c] on get those of the block's first channel on, `channels` of
 * them. room: 2 V numbers for each thread.
 */
static_assert(TTI_BN_THREADS == 1 << 8, "rows of threads are counted by shifts");
template <int V, bool MOMENTS>
__device__ static inline void tti_bn_merge_block(const float *a, const float *b, int len,
                                                 const tti_bn_cols &g, float *room, float *to,
                                                 int channels)
{
    const int n = g.wx * V, ry = TTI_BN_THREADS >> g.shift, groups = ry / TTI_BN_GROUP;
    const int tx = (int)threadIdx.x & (g.wx - 1), ty = (int)threadIdx.x >> g.shift;
    for (int i = 0; i < V; i++) {
        room[2 * ty * n + tx * V + i] = a[i];
        room[(2 * ty + 1) * n + tx * V + i] = b[i];
    }
    // Channel ch: merges count times what `apart` rows of threads have, from `first` on.
    const auto merge = [&](int ch, int first, int count, int apart) {
        float *at = room + 2 * first * n + ch, x = at[0], y = at[n], have = 0.0f;
        for (int k = 0; k < count; k++, first += apart) {
            int rest = (len & (ry - 1)) - first; // threads that have one row more
            rest = rest < 0 ? 0 : rest < apart ? rest : apart;
            float rows = (float)((len >> (8 - g.shift)) * apart + rest);
            if (k > 0)
                tti_bn_join<MOMENTS>(x, y, at[2 * k * apart * n], at[(2 * k * apart + 1) * n], have,
                                     rows);
            have += rows;
        }
        at[0] = x;
        at[n] = y;
    };
    __syncthreads();
    for (int i = (int)threadIdx.x; i < n * groups; i += TTI_BN_THREADS)
        merge(i % n, i / n * TTI_BN_GROUP, TTI_BN_GROUP, 1);
    __syncthreads();
    for (int i = (int)threadIdx.x; i < channels; i += TTI_BN_THREADS) {
        merge(i, 0, groups, TTI_BN_GROUP);
        to[i] = room[i];
        to[g.c + i] = room[n + i];
    }
}

// What merges slices, [lanes, slices, 2, c], of lanes with per_row entries for a row of the batch.
template <int N> struct tti_bn_parts {
    tti_lanes_of<N> ln;
    const float *part;
    int64_t per_row, c;
    int slices;           // room for so many in every lane
    int count[N], len[N]; // of a lane: slices, rows in one
};

__device__ static inline int64_t tti_bn_channel(void) // of a thread that merges
{
    return (int64_t)blockIdx.x * TTI_BN_COLUMNS + threadIdx.x % TTI_BN_COLUMNS;
}
template <int N> __device__ static inline int64_t tti_bn_rows_in(const tti_bn_parts<N> &q, int lane)
{
    return (q.ln.bound[lane + 1] - q.ln.bound[lane]) * q.per_row;
}

/*
 * Chain k of a lane's slices at channel ch; n is how many entries it has. All that a chain reads at
 * once is on its way together.
 */
template <int N, bool MOMENTS>
__device__ static inline void tti_bn_chain(const tti_bn_parts<N> &q, int lane, int k, int64_t ch,
                                           float &a, float &b, float &n)
{
    const int at_once = 8;
    const int have = lane < q.ln.n ? q.count[lane] : 0, len = have > 0 ? q.len[lane] : 0;
    const float *p = q.part + (int64_t)lane * q.slices * 2 * q.c + ch;
    a = b = n = 0.0f;
    for (int s = k; s < have && ch < q.c; s += TTI_BN_CHAINS * at_once) {
        float a2[at_once], b2[at_once];
#pragma unroll
        for (int u = 0; u < at_once; u++) {
            int at = s + u * TTI_BN_CHAINS;
            a2[u] = at < have ? p[(int64_t)at * 2 * q.c] : 0.0f;
            b2[u] = at < have ? p[((int64_t)at * 2 + 1) * q.c] : 0.0f;
        }
#pragma unroll
        for (int u = 0; u < at_once; u++) {
            int at = s + u * TTI_BN_CHAINS;
            if (at >= have)
                continue;
            float more = (float)(at + 1 < have ? len : tti_bn_rows_in(q, lane) - (int64_t)at * len);
            tti_bn_join<MOMENTS>(a, b, a2[u], b2[u], n, more);
            n += more;
        }
    }
}

/*
 * Slices of every lane to results of lanes: one(lane, a, b) is called for each, in order, by the
 * block's first TTI_BN_COLUMNS threads, which have a channel each.
 */
template <int N, bool MOMENTS, class F>
__device__ static inline void tti_bn_merge_slices(const tti_bn_parts<N> &q, F one)
{
    const int fours = TTI_BN_CHAINS / 4;
    __shared__ float sh[TTI_BN_AT_ONCE][fours][3][TTI_BN_COLUMNS];
    __shared__ float result[TTI_BN_AT_ONCE][2][TTI_BN_COLUMNS];
    const int t = (int)threadIdx.x, x = t % TTI_BN_COLUMNS, k = t / TTI_BN_COLUMNS % TTI_BN_CHAINS;
    const int z = t / (TTI_BN_COLUMNS * TTI_BN_CHAINS);
    const int64_t ch = tti_bn_channel();
    for (int first = 0; first < q.ln.n; first += TTI_BN_AT_ONCE) {
        float a, b, n;
        tti_bn_chain<N, MOMENTS>(q, first + z, k, ch, a, b, n);
#pragma unroll
        for (int by = TTI_BN_COLUMNS; by < 32; by *= 2) { // chains k + 1, then k + 2
            float a2 = __shfl_down_sync(0xffffffffu, a, by);
            float b2 = __shfl_down_sync(0xffffffffu, b, by);
            float more = __shfl_down_sync(0xffffffffu, n, by);
            tti_bn_join<MOMENTS>(a, b, a2, b2, n, more);
            n += more;
        }
        if (k % 4 == 0) {
            sh[z][k / 4][0][x] = a;
            sh[z][k / 4][1][x] = b;
            sh[z][k / 4][2][x] = n;
        }
        __syncthreads();
        if (t < TTI_BN_AT_ONCE * TTI_BN_COLUMNS) {
            const int lane = t / TTI_BN_COLUMNS;
            a = sh[lane][0][0][x];
            b = sh[lane][0][1][x];
            n = sh[lane][0][2][x];
            for (int i = 1; i < fours; i++) {
                float more = sh[lane][i][2][x];
                tti_bn_join<MOMENTS>(a, b, sh[lane][i][0][x], sh[lane][i][1][x], n, more);
                n += more;
            }
            result[lane][0][x] = a;
            result[lane][1][x] = b;
        }
        __syncthreads();
        for (int i = 0; t < TTI_BN_COLUMNS && ch < q.c && i < TTI_BN_AT_ONCE; i++)
            if (first + i < q.ln.n)
                one(first + i, result[i][0][x], result[i][1][x]);
    }
}

// The tree over lanes of two numbers for each channel of a block; sums or moments pending.
struct tti_bn_tree {
    float a[TTI_CUDA_DEPTH][TTI_BN_COLUMNS], b[TTI_CUDA_DEPTH][TTI_BN_COLUMNS];
    float n[TTI_CUDA_DEPTH][TTI_BN_COLUMNS];

    // Takes a lane's, of n entries, at depth; the new depth.
    template <bool MOMENTS>
    __device__ int add(int depth, float x, float y, float entries, int merges)
    {
        const int i = (int)threadIdx.x;
        a[depth][i] = x;
        b[depth][i] = y;
        n[depth][i] = entries;
        for (int k = 0; k < merges; k++, depth--) {
            float &to = a[depth - 1][i], &to2 = b[depth - 1][i];
            tti_bn_join<MOMENTS>(to, to2, a[depth][i], b[depth][i], n[depth - 1][i], n[depth][i]);
            n[depth - 1][i] += n[depth][i];
        }
        return depth + 1;
    }
};

// ---- slices ----------------------------------------------------------------------------------

enum tti_bn_sum {
    TTI_BN_MOMENTS,
    TTI_BN_SUMS,      // of dz (x - mean), and of dz
    TTI_BN_SUMS_RELU, // the same from dy: dz = z <= 0 ? 0 : dy
};

// Of a slice: part [lanes, slices, 2, c]. first_lane is the number of the launch's first one.
struct tti_bn_reduce {
    const void *x, *dz;                // dz: sums alone
    tti_bn_vec mean, var, gamma, beta; // mean: sums; the others: with relu
    bool by_row;                       // mean: of each row of the batch
    float eps;
    float *part;
    int slices, first_lane;
};

// Adds a row's V channels. by: mean, or what is taken from x; scale and beta of z.
template <class T, int V, int SUM>
__device__ static inline void tti_bn_add(const tti_bn_factors<V, 3> &by, const tti_regs<T, V> &p,
                                         const tti_regs<T, V> &d, float *a, float *b)
{
#pragma unroll
    for (int i = 0; i < V; i++) {
        float away = p.get(i) - by.f[0][i];
        if (SUM == TTI_BN_MOMENTS) {
            a[i] = a[i] + away;
            b[i] = fmaf(away, away, b[i]);
            continue;
        }
        float dz = d.get(i);
        if (SUM == TTI_BN_SUMS_RELU)
            dz = fmaf(away, by.f[1][i], by.f[2][i]) <= 0.0f ? 0.0f : dz;
        a[i] = fmaf(dz, away, a[i]);
        b[i] = b[i] + dz;
    }
}

/*
 * A walk over slices. Blocks are groups of channels by slices by lanes. The last rows come first:
 * they are what the maker of x or dz has left in the cache, and the first ones what apply and dx
 * then find there.
 */
template <class T, int V, int SUM>
static __global__ void __launch_bounds__(TTI_BN_THREADS, 3)
    tti_bn_slice_kernel(tti_bn_rows g, tti_bn_cols cols, tti_bn_reduce q)
{
    typedef tti_regs<T, V> pack;
    const bool moments = SUM == TTI_BN_MOMENTS;
    const int at_once = moments ? 8 : SUM == TTI_BN_SUMS ? 4 : 2; // loads in flight, in rows
    __shared__ __align__(16) float room[2 * V * TTI_BN_THREADS];
    const int lane = (int)(gridDim.z - 1 - blockIdx.z), slice = (int)(gridDim.y - 1 - blockIdx.y);
    const int tx = (int)threadIdx.x & (cols.wx - 1), ty = (int)threadIdx.x >> cols.shift;
    const int ry = TTI_BN_THREADS >> cols.shift;
    const int64_t c = cols.c, first = (int64_t)blockIdx.x * cols.wx * V, ch = first + tx * V;
    const int64_t begin = (int64_t)slice * g.slice[lane], entries = tti_bn_entries(g, lane);
    if (begin >= entries) // of the whole block
        return;
    const int len = (int)tti_min64(g.slice[lane], entries - begin);
    const int rows = ch < c && ty < len ? (len - ty + ry - 1) / ry : 0; // of this thread
    const T *x = (const T *)q.x + ch, *dz = (const T *)q.dz + ch;
    pack p[at_once], d[at_once];
    int r = 0;
    int64_t next = tti_bn_row<V>(g, lane, begin + ty) * c; // of packs: where row r is
    const int64_t step = ry * c;
    const auto load = [&](void) {
        int64_t at = next;
#pragma unroll
        for (int u = 0; u < at_once; u++, at += step) {
            if (r + u >= rows)
                continue;
            if (V == 1)
                at = tti_bn_row<V>(g, lane, begin + ty + (r + u) * ry) * c;
            p[u] = *(const pack *)(x + at);
            if (!moments)
                d[u] = *(const pack *)(dz + at);
        }
        next += at_once * step;
    };
    float a[V] = {}, b[V] = {};
    tti_bn_factors<V, 3> by = {};
    load();
    if (!moments)
        by.make(room, cols, first, tx, [&](int64_t channel, float *to) {
            to[0] = tti_bn_at(q.mean, (q.by_row ? g.bound[lane] * c : 0) + channel);
            if (SUM != TTI_BN_SUMS_RELU)
                return;
            to[1] = tti_bn_at(q.gamma, channel) * (1.0f / sqrtf(tti_bn_at(q.var, channel) + q.eps));
            to[2] = tti_bn_at(q.beta, channel);
        });
    for (int i = 0; moments && rows > 0 && i < V; i++)
        by.f[0][i] = p[0].get(i);
    while (r < rows) {
#pragma unroll
        for (int u = 0; u < at_once; u++)
            if (r + u < rows)
                tti_bn_add<T, V, SUM>(by, p[u], d[u], a, b);
        r += at_once;
        load();
    }
    const float part = 1.0f / (float)(rows > 0 ? rows : 1);
    for (int i = 0; moments && rows > 0 && i < V; i++) {
        float away = a[i] * part, m2 = fmaf(-away, a[i], b[i]);
        a[i] = by.f[0][i] + away;
        b[i] = m2 < 0.0f ? 0.0f : m2;
    }
    __syncthreads(); // factors have been read
    float *to = q.part + (((int64_t)(q.first_lane + lane) * q.slices + slice) * 2) * c + first;
    tti_bn_merge_block<V, moments>(a, b, len, cols, room, to,
                                   (int)tti_min64(cols.wx * V, c - first));
}

/*
 * All slices of all lanes of x. Where addresses or several runs forbid packs, a thread takes one
 * channel, with as many rows of threads as before: the order is the same.
 */
template <int SUM>
static inline void tti_bn_reduce_slices(const tt_launch *l, const tti_bn_lanes *b, tti_bn_reduce q)
{
    const tt_arg *x = &l->in[0];
    int v;
    const tti_bn_cols cols = tti_bn_cols_of_walk(x, &v);
    const bool packs = v > 1 && b->runs == 1 && tti_is_aligned(q.x) && tti_is_aligned(q.dz);
    const int64_t per = (int64_t)cols.wx * (packs ? v : 1);
    for (int first = 0; first < b->ln.n && x->count > 0; first += TTI_BN_LANES) {
        tti_bn_rows g = tti_bn_rows_of(b, first);
        q.first_lane = first;
        TTI_FLOATS(x->dtype, T, {
            const int wide = tti_pack<T>::n;
            dim3 grid((unsigned)((x->cols + per - 1) / per), (unsigned)q.slices, (unsigned)g.n);
            if (packs)
                TTI_LAUNCH(l, grid, TTI_BN_THREADS, 0, (tti_bn_slice_kernel<T, wide, SUM>), g, cols,
                           q);
            else
                TTI_LAUNCH(l, grid, TTI_BN_THREADS, 0, (tti_bn_slice_kernel<T, 1, SUM>), g, cols,
                           q);
        })
    }
}

template <int N>
static inline tti_bn_parts<N> tti_bn_parts_of(const tti_bn_lanes *b, const tti_bn_reduce &q,
                                              int64_t c)
{
    tti_bn_parts<N> p = {};
    p.ln = tti_lanes_by_value<N>(&b->ln);
    p.part = q.part;
    p.per_row = b->runs * b->per;
    p.c = c;
    p.slices = q.slices;
    for (int i = 0; i < b->ln.n; i++) {
        int64_t rows = tti_bn_lane_rows(b, i);
        p.count[i] = tti_bn_slices(rows, b->want);
        p.len[i] = tti_bn_slice(rows, b->want);
    }
    return p;
}
static inline unsigned tti_bn_merge_grid(int64_t c)
{
    return (unsigned)((c + TTI_BN_COLUMNS - 1) / TTI_BN_COLUMNS);
}

#endif
