/*
 * columns.cuh - sums over rows, column by column: reduce.cu's own, and those of kernels that make
 * the rows as they go (act_sum.cu). A block has a chunk of rows and some columns side by side.
 *
 * Rows come from a source, V elements at a time: raw is what it reads ahead, load(at) the elements
 * from offset `at` on, get(raw, at, x) their values as floats; last_first: it had better be asked
 * for the last rows first.
 */
#ifndef TUTTI_OP_COLUMNS_CUH
#define TUTTI_OP_COLUMNS_CUH

#include "cuda/chunks.cuh"
#include "op/gpu/reduce.cuh"

// Constants of the arithmetic: another number means other bits.
#define CHUNK      32768 // elements of an output
#define CHUNK_ROWS 128   // without tail
#define WARP_MOST  4096  // an output of so few elements is a warp's
#define WIDE       32    // threads side by side over columns
#define HIGH       8     // and over rows

// Rows that lie in memory. V is 1 where packs are not aligned.
template <class T, int V> struct rows_of {
    static const int in_flight = 8; // rows that are read before they are added
    // Norms' gradients, which are summed most, end with the first rows: those are in the cache.
    static const bool last_first = false;
    typedef tti_pack<T> raw;
    const T *x;

    __device__ raw load(int64_t at) const
    {
        raw r;
        if (V > 1)
            r = *(const tti_pack<T> *)(x + at);
        else
            r.v[0] = x[at];
        return r;
    }
    __device__ void get(const raw &r, int64_t, float (&v)[V]) const
    {
        if (V > 1) {
            float all[tti_pack<T>::n];
            tti_unpack(r, all);
#pragma unroll
            for (int k = 0; k < V; k++)
                v[k] = all[k];
        } else {
            v[0] = tti_get(r.v[0]);
        }
    }
};

// Sums of rows i, i + HIGH, ..., which lie at even distances, from column offset `from` on, in a[];
// returns the row it has come to.
template <int V, class S>
__device__ static inline int64_t add_rows(const S &src, int64_t from, const lane_part &p, int64_t i,
                                          int64_t end, float (&a)[V])
{
    const int N = S::in_flight;
    int64_t at = from + p.first + i * p.step, by = HIGH * p.step;
    for (; i + (N - 1) * HIGH < end; i += N * HIGH, at += N * by) {
        typename S::raw r[N];
#pragma unroll
        for (int k = 0; k < N; k++)
            r[k] = src.load(at + k * by);
#pragma unroll
        for (int k = 0; k < N; k++) {
            float x[V];
            src.get(r[k], at + k * by, x);
#pragma unroll
            for (int e = 0; e < V; e++)
                a[e] = a[e] + x[e];
        }
    }
    return i;
}

/*
 * A block has chunk c of rows of WIDE packs of V columns of outer index o: block (c outer + o)
 * tiles + tile. Thread row y takes rows y, y + HIGH, ...; those are folded in order.
 */
template <int V, class S>
__device__ static inline void fold_chunk(const S &src, const tti_reduction &r,
                                         const tti_lane_group &ln, int64_t most, unsigned tiles,
                                         int fold, const tti_sums &out)
{
    alignas(16) __shared__ float part[HIGH][WIDE * V];
    unsigned block = S::last_first ? gridDim.x - 1 - blockIdx.x : blockIdx.x; // below 2^31
    unsigned row = block / tiles, outer = (unsigned)r.outer;
    int lane = (int)(S::last_first ? gridDim.y - 1 - blockIdx.y : blockIdx.y);
    int tx = (int)threadIdx.x % WIDE, ty = (int)threadIdx.x / WIDE;
    lane_part p = part_of(r, ln.bound[lane], ln.bound[lane + 1]);
    int64_t tile = block % tiles, o = row % outer;
    int64_t c = row / outer, first = tile * WIDE * V, j = first + tx * V;
    int64_t end = tti_min64((c + 1) * CHUNK_ROWS, p.n_rows);
    float a[V];
    for (int k = 0; k < V; k++)
        a[k] = tti_fold_start(fold);
    if (j < r.cols) {
        int64_t from = kept_offset(r.keep, o) + j, i = c * CHUNK_ROWS + ty;
        if (V > 1 && fold == TTI_FOLD_SUM && p.is_simple)
            i = add_rows<V>(src, from, p, i, end, a);
#pragma unroll 4
        for (; i < end; i += HIGH) {
            int64_t at = from + row_offset(r, p, i);
            float v[V];
            src.get(src.load(at), at, v);
#pragma unroll
            for (int k = 0; k < V; k++)
                a[k] = tti_fold_one(fold, a[k], v[k]);
        }
    }
    if (V > 1) {
#pragma unroll
        for (int k = 0; k < V; k += 4) {
            tti_pack<float> four;
            for (int e = 0; e < 4; e++)
                four.v[e] = a[(k + e) % V];
            *(tti_pack<float> *)&part[ty][tx * V + k] = four;
        }
    } else {
        part[ty][tx] = a[0];
    }
    __syncthreads();
    for (int k = (int)threadIdx.x; k < WIDE * V && first + k < r.cols; k += WIDE * HIGH) {
        float y = part[0][k];
        for (int i = 1; i < HIGH; i++)
            y = tti_fold_one(fold, y, part[i][k]);
        tti_sums_put(out, (ln.first + lane) * most + c, o * r.cols + first + k, y + 0.0f);
    }
}

// ---- on the host -----------------------------------------------------------------------------

typedef struct reduce_plan {
    tti_reduction r;
    bool by_lanes, by_warp;
    tti_chunking chunking;
    int64_t bound[2];
    tt_lanes one;
} reduce_plan;

// lanes: whether sums of lanes are asked for. The lanes are then p's own, else plan->one.
static inline const tt_lanes *plan_of(reduce_plan *plan, const void *attr, const tt_arg *x,
                                      const tt_lanes *lanes, bool may_lanes)
{
    plan->r = tti_reduction_of((const tti_reduce_attr *)attr, x);
    plan->by_lanes = may_lanes && tti_by_lanes(&plan->r);
    if (!plan->by_lanes) {
        plan->r.lane_tail = false;
        plan->r.lane_sum = -1;
    }
    plan->one = tti_one_lane(1, plan->bound);
    const tt_lanes *ln = plan->by_lanes ? lanes : &plan->one;
    lane_part p = part_of(plan->r, 0, 1); // of one row of the batch
    plan->by_warp = !plan->by_lanes && p.n * p.n_rows <= WARP_MOST;
    if (plan->r.has_tail)
        plan->chunking = {p.n * p.n_rows, CHUNK, 0};
    else
        plan->chunking = {p.n_rows, CHUNK_ROWS, 0};
    plan->chunking.most = tti_most_chunks(plan->chunking, ln);
    return ln;
}

// One chunk of one lane is the result.
static inline bool is_direct(const reduce_plan *plan, const tt_lanes *ln)
{
    return plan->chunking.most == 1 && ln->n == 1;
}

// Tiles of columns, V at a time, and the grid of one group of lanes; false: there are too many.
static inline bool columns_grid(const reduce_plan *plan, int V, const tti_lane_group &g,
                                unsigned *tiles, dim3 *grid)
{
    int64_t wide = (int64_t)WIDE * V, n = (plan->r.cols + wide - 1) / wide;
    int64_t blocks = n * plan->r.outer * plan->chunking.most;
    *tiles = (unsigned)n;
    *grid = dim3((unsigned)blocks, (unsigned)g.n);
    return blocks <= INT32_MAX;
}

#endif
