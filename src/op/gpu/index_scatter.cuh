/*
 * index_scatter.cuh - kernels of scatter_add.
 *
 * scatter_add sorts the positions of ids by id, within an id by lane and position. Whoever owns a
 * place of the output then adds its positions lane by lane and the lanes by their tree, in
 * registers and on a small stack: no partial sums in memory, whatever the number of lanes. Places
 * with many positions get a block each, all others a team of threads. The positions of a place in
 * a lane are added in chains of CHAIN, from the first on, and those in order: the warps of a block
 * take chains.
 */
#ifndef TUTTI_OP_INDEX_SCATTER_CUH
#define TUTTI_OP_INDEX_SCATTER_CUH

#include "op/gpu/index_ids.cuh"
#include "op/gpu/index_sort.cuh"

// ---- sorting ---------------------------------------------------------------------------------

#define MANY  32 // positions of a place that are worth a block
#define CHAIN 64 // a constant of the arithmetic; not below MANY

// What the scratch memory holds, all int32_t.
struct scratch {
    int32_t *keys[2], *at[2], *table; // sorting
    int32_t *first;                   // [n + 1] where the positions of a place begin
    int32_t *many, *n_many;           // places with more than MANY positions
    int32_t *lane_end, *merges; // by lane: end within a piece of positions; additions after it
};
static size_t scratch_fill(scratch *s, char *base, int64_t count, int64_t n, int lanes)
{
    int64_t sizes[] = {
        count, count, count, count, SORT_BINS * sort_chunks(count), n + 1, count / MANY + 1,
        1,     lanes, lanes};
    int32_t **to[] = {&s->keys[0], &s->keys[1], &s->at[0],  &s->at[1],    &s->table,
                      &s->first,   &s->many,    &s->n_many, &s->lane_end, &s->merges};
    int64_t done = 0;
    for (int i = 0; i < (int)(sizeof(sizes) / sizeof(*sizes)); i++) {
        *to[i] = (int32_t *)base + done;
        done += sizes[i];
    }
    return sizeof(int32_t) * (size_t)done;
}

// How ids lie: pieces of whole positions, in each of which a lane has row positions for each of its
// rows of the batch.
struct layout {
    int64_t whole, row;
};

// Keys and positions in the order of lanes; what later kernels need to know of lanes.
template <int N>
__global__ static void scatter_start(ids_of ids, layout y, int64_t n, tti_lanes_of<N> ln, scratch s)
{
    int64_t pieces = y.whole > 0 ? ids.n / y.whole : 1;
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0)
        *s.n_many = 0;
    for (int64_t k = i; k < ln.n; k += (int64_t)gridDim.x * blockDim.x) {
        s.lane_end[k] = (int32_t)(ln.bound[k + 1] * y.row);
        s.merges[k] = ln.merges[k];
    }
    for (; i < ids.n; i += (int64_t)gridDim.x * blockDim.x) {
        int64_t at = i;
        if (pieces > 1) { // i counts lane by lane, within a lane piece by piece
            int low = 0, high = ln.n - 1;
            while (low < high) {
                int mid = (low + high) / 2;
                if (ln.bound[mid + 1] * y.row * pieces > i)
                    high = mid;
                else
                    low = mid + 1;
            }
            int64_t from = ln.bound[low] * y.row, len = ln.bound[low + 1] * y.row - from;
            int64_t piece = (i - from * pieces) / len;
            at = piece * y.whole + from + (i - from * pieces) - piece * len;
        }
        s.keys[0][i] = (int32_t)id_at(ids, at, n, true);
        s.at[0][i] = (int32_t)at;
    }
}

__device__ static inline int32_t lower_bound(const int32_t *keys, int32_t n, int32_t key)
{
    int32_t low = 0, high = n;
    while (low < high) {
        int32_t mid = low + (high - low) / 2;
        if (keys[mid] < key)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

// Bad ids are sorted behind all places.
__global__ static void scatter_bounds(const int32_t *keys, int32_t count, int32_t n, scratch s)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i <= n; i += (int64_t)gridDim.x * blockDim.x) {
        int32_t from = lower_bound(keys, count, (int32_t)i);
        s.first[i] = from;
        // The position MANY after the first is of the same place: then it has more than MANY.
        if (i < n && count - from > MANY && keys[from + MANY] == i)
            s.many[atomicAdd(s.n_many, 1)] = (int32_t)i;
    }
}

// ---- sums ------------------------------------------------------------------------------------

struct sums {
    const void *x;
    void *y;
    tt_dtype to;
    int64_t outer, n, inner, count, whole;
    int lanes, parts, team; // team: threads of a place, a power of two up to 32
    int blocks;             // of team * V columns each
    const int32_t *at;      // sorted positions
    scratch s;
};

#define DEPTH 26 // sums pending at once: TTI_MAX_PARTS of comm/lanes.h and room

template <class T, int V> struct alignas(sizeof(T) * V) some {
    T v[V];
};

// The stack of the tree over lanes, for V columns. A sum that nothing went into is not there.
template <int V> struct pile {
    float v[DEPTH][V];
    uint32_t has;
    int depth;

    __device__ void push(const float *sum, bool is_there)
    {
        has = (has & ~(1u << depth)) | (uint32_t)is_there << depth;
        for (int k = 0; is_there && k < V; k++)
            v[depth][k] = sum[k];
        depth++;
    }
    __device__ void merge(int times)
    {
        for (; times > 0; times--) {
            depth--;
            bool low = has >> (depth - 1) & 1, high = has >> depth & 1;
            for (int k = 0; high && k < V; k++)
                v[depth - 1][k] = low ? v[depth - 1][k] + v[depth][k] : v[depth][k];
            has |= (uint32_t)high << (depth - 1);
        }
    }
};

template <int V> __device__ static inline void put(const sums &q, int64_t to, const float *sum)
{
    if (q.to == TT_F32) {
        some<float, V> out;
        for (int k = 0; k < V; k++)
            out.v[k] = sum[k] + 0.0f;
        *(some<float, V> *)((float *)q.y + to) = out;
    } else if (q.to == TT_BF16) {
        some<tti_bf16, V> out;
        for (int k = 0; k < V; k++)
            tti_put(out.v[k], sum[k] + 0.0f);
        *(some<tti_bf16, V> *)((tti_bf16 *)q.y + to) = out;
    } else {
        some<tti_f16, V> out;
        for (int k = 0; k < V; k++)
            tti_put(out.v[k], sum[k] + 0.0f);
        *(some<tti_f16, V> *)((tti_f16 *)q.y + to) = out;
    }
}

// The results of one place, n_parts of them.
template <int V>
__device__ static inline void put_parts(const sums &q, int64_t to, const pile<V> &stack)
{
    for (int p = 0; p < q.parts; p++) {
        float out[V];
        for (int k = 0; k < V; k++)
            out[k] = stack.has >> p & 1 ? stack.v[p][k] : 0.0f;
        put<V>(q, to + p * q.outer * q.n * q.inner, out);
    }
}

// Positions [k, end) in order; eight loads are on their way at once.
template <class T, int V>
__device__ static inline void add_positions(const sums &q, const T *x, int32_t k, int32_t end,
                                            float *sum)
{
    for (int c = 0; c < V; c++)
        sum[c] = 0.0f;
    for (; k + 8 <= end; k += 8) {
        some<T, V> in[8];
#pragma unroll
        for (int u = 0; u < 8; u++)
            in[u] = *(const some<T, V> *)(x + q.at[k + u] * q.inner);
#pragma unroll
        for (int u = 0; u < 8; u++)
            for (int c = 0; c < V; c++)
                sum[c] = sum[c] + tti_get(in[u].v[c]);
    }
    for (; k < end; k++) {
        some<T, V> in = *(const some<T, V> *)(x + q.at[k] * q.inner);
        for (int c = 0; c < V; c++)
            sum[c] = sum[c] + tti_get(in.v[c]);
    }
    for (int c = 0; c < V; c++)
        sum[c] = sum[c] + 0.0f;
}

// Where within its piece the k-th sorted position lies.
__device__ static inline int32_t within(const sums &q, int32_t k)
{
    int32_t at = q.at[k];
    return at < q.whole ? at : (int32_t)(at % q.whole);
}

// A team of threads for each place; blockIdx.y goes over blocks of columns of [outer].
template <class T, int V> __global__ static void scatter_few(sums q)
{
    int per = (int)blockDim.x / q.team, lane = (int)threadIdx.x % q.team;
    for (int64_t u = blockIdx.y; u < q.outer * q.blocks; u += gridDim.y) {
        int64_t outer = u / q.blocks, col = (u - outer * q.blocks) * q.team * V + lane * V;
        const T *x = (const T *)q.x + outer * q.count * q.inner + col;
        int64_t id = (int64_t)blockIdx.x * per + (int)threadIdx.x / q.team;
        for (; id < q.n && col < q.inner; id += (int64_t)gridDim.x * per) {
            int32_t k = q.s.first[id], end = q.s.first[id + 1];
            int64_t to = (outer * q.n + id) * q.inner + col;
            if (end - k > MANY)
                continue;
            float sum[V];
            if (end - k <= 1 && q.parts == 1) { // most rows of a large table
                add_positions<T, V>(q, x, k, end, sum);
                put<V>(q, to, sum);
                continue;
            }
            pile<V> stack;
            stack.has = 0;
            stack.depth = 0;
            for (int i = 0; i < q.lanes; i++) {
                int32_t from = k, lane_end = q.s.lane_end[i];
                while (k < end && within(q, k) < lane_end)
                    k++;
                if (k > from)
                    add_positions<T, V>(q, x, from, k, sum);
                stack.push(sum, k > from);
                stack.merge(q.s.merges[i]);
            }
            put_parts<V>(q, to, stack);
        }
    }
}

// First of the sorted positions [k, end) of a place that lies at or after a lane's end.
__device__ static inline int32_t lane_from(const sums &q, int32_t k, int32_t end, int32_t lane_end)
{
    while (k < end) {
        int32_t mid = k + (end - k) / 2;
        if (within(q, mid) < lane_end)
            k = mid + 1;
        else
            end = mid;
    }
    return k;
}

// Eight lanes of a place with many positions: where those begin and end, and their chains.
struct few_lanes {
    int32_t from[8], to[8];
    int chains[8], all;
};

// Lanes i0 on; each warp finds one. All threads of the block see the result.
__device__ static inline void find_lanes(const sums &q, int i0, int32_t first, int32_t end,
                                         few_lanes *f)
{
    int warp = (int)threadIdx.x / 32, i = i0 + warp;
    int32_t k = 0, to = 0;
    if (i < q.lanes) {
        k = i == 0 ? first : lane_from(q, first, end, q.s.lane_end[i - 1]);
        to = lane_from(q, k, end, q.s.lane_end[i]);
    }
    if (threadIdx.x % 32 == 0) {
        f->from[warp] = k;
        f->to[warp] = to;
        f->chains[warp] = (to - k + CHAIN - 1) / CHAIN;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        f->all = 0;
        for (int w = 0; w < 8; w++)
            f->all += f->chains[w];
    }
    __syncthreads();
}

// The sum of chain number j of eight lanes, for the warp's columns.
template <class T, int V>
__device__ static inline void add_chain(const sums &q, const few_lanes &f, const T *x, int j,
                                        float *sum)
{
    int w = 0;
    for (; j >= f.chains[w]; w++)
        j -= f.chains[w];
    int32_t from = f.from[w] + j * CHAIN;
    add_positions<T, V>(q, x, from, (int32_t)tti_min64(from + CHAIN, f.to[w]), sum);
}

// The tree as the first warp has it: which of eight lanes is next, and its sum so far.
template <int V> struct climber {
    pile<V> stack;
    float sum[V];
    int lane, done; // of the eight; chains of it

    // Ends lanes that have all their chains, up to one that has not or the last of n.
    __device__ void climb(const sums &q, const few_lanes &f, int i0, int n, bool is_mine)
    {
        for (; lane < n && done == f.chains[lane]; lane++, done = 0) {
            stack.push(sum, done > 0 && is_mine);
            stack.merge(q.s.merges[i0 + lane]);
        }
    }
    __device__ void take(const float *chain)
    {
        for (int c = 0; c < V; c++)
            sum[c] = done == 0 ? chain[c] : sum[c] + chain[c];
        done++;
    }
};

// A block of eight warps for each place with many positions and each block of columns. Warps take
// chains, eight at a time; the first warp adds them up.
template <class T, int V> __global__ static void scatter_many(sums q)
{
    __shared__ float part[8][32 * V];
    __shared__ few_lanes f;
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    int64_t each = q.outer * q.blocks;
    for (int64_t u = blockIdx.x; u < *q.s.n_many * each; u += gridDim.x) {
        int64_t id = q.s.many[u / each], outer = u % each / q.blocks;
        int64_t col = u % q.blocks * q.team * V + lane * V;
        bool is_mine = lane < q.team && col < q.inner;
        const T *x = (const T *)q.x + outer * q.count * q.inner + (is_mine ? col : 0);
        climber<V> top;
        top.stack.has = 0;
        top.stack.depth = 0;
        for (int i0 = 0; i0 < q.lanes; i0 += 8) {
            int n = q.lanes - i0 < 8 ? q.lanes - i0 : 8;
            find_lanes(q, i0, q.s.first[id], q.s.first[id + 1], &f);
            top.lane = top.done = 0;
            for (int j0 = 0; j0 < f.all; j0 += 8) {
                float sum[V];
                if (is_mine && j0 + warp < f.all) {
                    add_chain<T, V>(q, f, x, j0 + warp, sum);
                    for (int c = 0; c < V; c++)
                        part[warp][lane * V + c] = sum[c];
                }
                __syncthreads();
                for (int j = 0; warp == 0 && j < 8 && j0 + j < f.all; j++) {
                    top.climb(q, f, i0, n, is_mine);
                    top.take(&part[j][lane * V]);
                }
                __syncthreads();
            }
            if (warp == 0)
                top.climb(q, f, i0, n, is_mine);
            __syncthreads(); // f is read
        }
        if (warp == 0 && is_mine)
            put_parts<V>(q, (outer * q.n + id) * q.inner + col, top.stack);
    }
}

#endif
