/*
 * index.cu - CUDA: gather, scatter_add, one_hot; see index.c.
 *
 * scatter_add sorts the positions of ids by id, within an id by lane and position. Whoever owns a
 * place of the output then adds its positions lane by lane and the lanes by their tree, in
 * registers and on a small stack: no partial sums in memory, whatever the number of lanes. Places
 * with many positions get a block each, all others a team of threads. The positions of a place in
 * a lane are added in chains of CHAIN, from the first on, and those in order: the warps of a block
 * take chains.
 */
#include "cuda/move.cuh"
#include "cuda/trouble.h"
#include "op/index.h"
#include "op/index_sort.cuh"

// Ids of either type.
struct ids_of {
    const void *data;
    int is_wide;
    int64_t n;
    tti_trouble *trouble;
    const tt_node *node;
};
static ids_of ids_by_value(const tt_launch *l, const tt_arg *a)
{
    return {a->data, a->dtype == TT_I64, a->count, tti_device_of(l)->trouble, l->node};
}

// Id at i; limit if it is not in [0, limit), which is told.
__device__ static inline int64_t id_at(const ids_of &ids, int64_t i, int64_t limit, bool is_first)
{
    int64_t id = ids.is_wide ? ((const int64_t *)ids.data)[i] : ((const int32_t *)ids.data)[i];
    if (id >= 0 && id < limit)
        return id;
    if (is_first)
        tti_bad_id(ids.trouble, ids.node, id, i, limit);
    return limit;
}

// ---- gather and embedding --------------------------------------------------------------------

// Rows are [outer, ids]; a bad id gives zeros.
template <class T>
__global__ static void gather_rows(T *__restrict__ y, const T *__restrict__ x, ids_of ids,
                                   int64_t rows, int64_t width, int64_t n)
{
    int64_t r = (int64_t)blockIdx.y * blockDim.y + threadIdx.y;
    int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (; r < rows; r += (int64_t)gridDim.y * blockDim.y) {
        int64_t outer = 0, at = r;
        if (rows != ids.n) {
            outer = rows <= UINT32_MAX ? (uint32_t)r / (uint32_t)ids.n : r / ids.n;
            at = r - outer * ids.n;
        }
        int64_t id = id_at(ids, at, n, first == 0 && outer == 0);
        const T *from = x + (outer * n + id) * width;
#pragma unroll 4
        for (int64_t c = first; c < width; c += (int64_t)gridDim.x * blockDim.x)
            y[r * width + c] = id < n ? from[c] : T();
    }
}

static tt_status gather_cuda(const tt_launch *l)
{
    const tt_arg *x = &l->in[0], *y = &l->out[0];
    int axis = (int)((const tti_gather_attr *)l->attr)->axis;
    int64_t bytes = tti_item(x->dtype);
    for (int i = axis + 1; i < x->shape.rank; i++)
        bytes *= x->shape.dim[i];
    if (y->count == 0)
        return TT_OK;
    int64_t rows = y->count * tti_item(y->dtype) / bytes;
    int unit =
        tti_unit((uint64_t)(uintptr_t)x->data | (uint64_t)(uintptr_t)y->data | (uint64_t)bytes);
    tti_grid g = tti_grid_for(l, rows, bytes / unit);
    TTI_UNITS(unit, T, {
        TTI_LAUNCH(l, g.grid, g.block, 0, (gather_rows<T>), (T *)y->data, (const T *)x->data,
                   ids_by_value(l, &l->in[1]), rows, bytes / unit, x->shape.dim[axis]);
    })
    return tti_cuda_launched(l);
}

// ---- scatter_add: sorting --------------------------------------------------------------------

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

// ---- scatter_add: sums -----------------------------------------------------------------------

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

template <class T, int V> static void launch_sums(const tt_launch *l, sums q)
{
    int64_t units = q.inner / V;
    q.team = 1;
    while (q.team < 32 && q.team < units)
        q.team *= 2;
    q.blocks = (int)((units + q.team - 1) / q.team);
    int64_t per = 256 / q.team, y = q.outer * q.blocks, most = q.count / MANY + 1;
    unsigned gy = (unsigned)(y < 65535 ? y : 65535);
    TTI_LAUNCH(l, dim3((unsigned)((q.n + per - 1) / per), gy, 1), 256, 0, (scatter_few<T, V>), q);
    if (q.count > MANY)
        TTI_LAUNCH(l, tti_blocks(l, (most < q.n ? most : q.n) * y, 1), 256, 0, (scatter_many<T, V>),
                   q);
}

// Where the positions of ids lie: returns the lanes by which they are summed.
static tt_lanes scatter_layout(const tt_launch *l, const tti_scatter_plan *t, layout *y,
                               int64_t one[2])
{
    static const uint8_t no_merge[1] = {0};
    const tt_arg *ids = &l->in[1];
    if (t->lanes) {
        *y = {1, ids->per};
        for (int i = ids->open; i < ids->shape.rank; i++)
            y->whole *= ids->shape.dim[i];
        for (int i = ids->open + 1; i < ids->shape.rank; i++)
            y->row *= ids->shape.dim[i];
        return *l->lanes;
    }
    *y = {ids->count, 1};
    one[0] = 0;
    one[1] = ids->count;
    tt_lanes ln = {};
    ln.n = ln.n_parts = 1;
    ln.bound = one;
    ln.merges = no_merge;
    return ln;
}

static tt_status scatter_cuda(const tt_launch *l)
{
    const tti_scatter_plan *t = (const tti_scatter_plan *)l->tune;
    const tt_arg *x = &l->in[0], *out = &l->out[0];
    int64_t count = l->in[1].count, one[2], chunk = sort_chunk(count);
    if (out->count == 0 || count == 0)
        return tti_cuda_zero(l, out->data, (size_t)(out->count * tti_item(out->dtype)));
    layout y;
    tt_lanes lanes = scatter_layout(l, t, &y, one);
    scratch s;
    scratch_fill(&s, l->scratch, count, t->n, lanes.n);
    TTI_LANES(&lanes, N, {
        TTI_LAUNCH(l, tti_blocks(l, count, 256), 256, 0, (scatter_start<N>),
                   ids_by_value(l, &l->in[1]), y, t->n, tti_lanes_by_value<N>(&lanes), s);
    });
    int passes = sort_passes(t->n), chunks = (int)sort_chunks(count);
    for (int p = 0; p < passes; p++) {
        int from = p % 2, to = 1 - from;
        TTI_LAUNCH(l, chunks, SORT_THREADS, 0, sort_count, s.keys[from], count, chunk, 8 * p,
                   s.table);
        TTI_LAUNCH(l, 1, 1024, 0, sort_scan, s.table, SORT_BINS * chunks);
        TTI_LAUNCH(l, chunks, SORT_THREADS, 0, sort_place, s.keys[from], s.at[from], count, chunk,
                   8 * p, s.table, s.keys[to], s.at[to]);
    }
    TTI_LAUNCH(l, tti_blocks(l, t->n + 1, 256), 256, 0, scatter_bounds, s.keys[passes % 2],
               (int32_t)count, (int32_t)t->n, s);

    sums q = {x->data, out->data, out->dtype,    t->outer, t->n, t->inner,         count,
              y.whole, lanes.n,   lanes.n_parts, 0,        0,    s.at[passes % 2], s};
    bool is_wide = t->inner % 4 == 0 && tti_is_aligned(x->data) && tti_is_aligned(out->data);
    TTI_FLOATS(x->dtype, T, {
        if (is_wide)
            launch_sums<T, 4>(l, q);
        else
            launch_sums<T, 1>(l, q);
    })
    return tti_cuda_launched(l);
}

static tt_status scatter_prepare(tt_prep *p)
{
    tti_scatter_plan t;
    scratch s;
    TT_TRY(tti_scatter_start(p, &t));
    p->scratch_bytes = scratch_fill(&s, NULL, p->in[1].count, t.n, t.lanes ? p->lanes->n : 1);
    return TT_OK;
}

// ---- one_hot ---------------------------------------------------------------------------------

template <class T>
__global__ static void one_hot_ones(T *y, ids_of ids, int64_t depth, uint64_t one)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i < ids.n; i += (int64_t)gridDim.x * blockDim.x) {
        int64_t id = id_at(ids, i, depth, true);
        if (id < depth)
            y[i * depth + id] = (T)one;
    }
}

static tt_status one_hot_cuda(const tt_launch *l)
{
    const tt_arg *y = &l->out[0];
    int64_t depth = ((const tti_one_hot_attr *)l->attr)->depth;
    uint64_t one = y->dtype == TT_F32    ? 0x3f800000
                   : y->dtype == TT_BF16 ? 0x3f80
                   : y->dtype == TT_F16  ? 0x3c00
                                         : 1;
    int item = tti_item(y->dtype);
    if (y->count == 0)
        return TT_OK;
    TT_TRY(tti_cuda_zero(l, y->data, (size_t)(y->count * item)));
    unsigned grid = tti_blocks(l, l->in[0].count, 256);
    ids_of ids = ids_by_value(l, &l->in[0]);
    if (item == 1)
        TTI_LAUNCH(l, grid, 256, 0, (one_hot_ones<uint8_t>), (uint8_t *)y->data, ids, depth, one);
    else if (item == 2)
        TTI_LAUNCH(l, grid, 256, 0, (one_hot_ones<uint16_t>), (uint16_t *)y->data, ids, depth, one);
    else if (item == 4)
        TTI_LAUNCH(l, grid, 256, 0, (one_hot_ones<uint32_t>), (uint32_t *)y->data, ids, depth, one);
    else
        TTI_LAUNCH(l, grid, 256, 0, (one_hot_ones<uint64_t>), (uint64_t *)y->data, ids, depth, one);
    return tti_cuda_launched(l);
}

extern "C" const tti_cuda_row tti_cuda_index[] = {
    TTI_ROW("embedding", NULL, gather_cuda),
    TTI_ROW("gather", NULL, gather_cuda),
    TTI_ROW("embedding_grad", scatter_prepare, scatter_cuda),
    TTI_ROW("scatter_add", scatter_prepare, scatter_cuda),
    TTI_ROW("one_hot", NULL, one_hot_cuda),
    TTI_ROWS_END,
};
