/*
 * chunks.cuh - sums over the rows of lanes: sums of chunks of rows, added in a fixed order.
 *
 * A lane's rows are cut into chunks of a fixed size from the lane's first row on, and a block of
 * threads makes a chunk's sums. They lie as [lane][chunk][count], with room for `most` chunks in
 * each lane. A second kernel adds the chunks of each lane and goes up the tree over lanes; where
 * there are many lanes the tree is a third one's.
 */
#ifndef TUTTI_CUDA_CHUNKS_CUH
#define TUTTI_CUDA_CHUNKS_CUH

#include "cuda/kernel.cuh"

typedef enum tti_fold {
    TTI_FOLD_SUM,
    TTI_FOLD_MAX, // a NaN stays
    TTI_FOLD_MIN,
} tti_fold;

__device__ static inline float tti_fold_start(int f)
{
    return f == TTI_FOLD_SUM ? 0.0f : tti_float(f == TTI_FOLD_MAX ? 0xff800000u : 0x7f800000u);
}
__device__ static inline float tti_fold_one(int f, float a, float x)
{
    if (f == TTI_FOLD_SUM)
        return a + x;
    bool takes = f == TTI_FOLD_MAX ? x > a : x < a;
    return takes || x != x ? x : a;
}

// Some lanes of a call, by value: a kernel is launched once for every TTI_LANE_GROUP of them.
#define TTI_LANE_GROUP 64
struct tti_lane_group {
    int first, n;
    int64_t bound[TTI_LANE_GROUP + 1]; // rows of the batch
};
static inline tti_lane_group tti_lane_group_at(const tt_lanes *ln, int first)
{
    tti_lane_group g = {};
    g.first = first;
    g.n = ln->n - first < TTI_LANE_GROUP ? ln->n - first : TTI_LANE_GROUP;
    memcpy(g.bound, ln->bound + first, sizeof(int64_t) * (size_t)(g.n + 1));
    return g;
}

// Where sums go: element i of `count`, in arrays of `each`, one after the other or two.
struct tti_sums {
    void *at[2];
    int dtype;
    int64_t each;
};
__device__ static inline void tti_sums_put(const tti_sums &s, int64_t part, int64_t i, float x)
{
    bool second = i >= s.each;
    tti_set(s.at[second], s.dtype, part * s.each + (second ? i - s.each : i), x);
}

// How many chunks a lane has: rows of the batch * units in a row, cut into chunks of `per` units.
struct tti_chunking {
    int64_t units, per, most;
};
__host__ __device__ static inline int64_t tti_chunks_of(const tti_chunking &c, int64_t rows)
{
    return (rows * c.units + c.per - 1) / c.per;
}

/*
 * 32 columns of a block, one in each place of its 32 warps: warp w adds chunks w, w + 32, ... of
 * lane blockIdx.y, then warps are added in order.
 */
__global__ static void __launch_bounds__(1024)
    tti_chunk_fold(const float *from, const tti_lane_group ln, const tti_chunking chunking,
                   int64_t count, int fold, const tti_sums out)
{
    __shared__ float part[32][33];
    int lane = (int)blockIdx.y, x = (int)threadIdx.x % 32, w = (int)threadIdx.x / 32;
    int64_t n = tti_chunks_of(chunking, ln.bound[lane + 1] - ln.bound[lane]);
    int64_t i = (int64_t)blockIdx.x * 32 + x;
    float a = tti_fold_start(fold);
    if (i < count) {
        const float *p = from + (ln.first + lane) * chunking.most * count + i;
#pragma unroll 8
        for (int64_t c = w; c < n; c += 32)
            a = tti_fold_one(fold, a, p[c * count]);
    }
    part[w][x] = a;
    __syncthreads();
    if (w > 0 || i >= count)
        return;
    for (int k = 1; k < 32; k++)
        a = tti_fold_one(fold, a, part[k][x]);
    tti_sums_put(out, ln.first + lane, i, a + 0.0f);
}

#define TTI_FEW_LANES 16 // whose sums are folded and added by one kernel
#define TTI_FEW_GROUP 8  // so many lanes at a time

struct tti_few_lanes {
    tti_lanes_of<TTI_FEW_LANES> ln;
    int chunks[TTI_FEW_LANES];
};

/*
 * The same sums for 32 columns of all lanes, some lanes at a time, so that what they read is on its
 * way together; then the tree over lanes.
 */
__global__ static void __launch_bounds__(1024)
    tti_chunk_sum_tree(const float *from, const tti_few_lanes few, int most, int64_t count,
                       const tti_sums out)
{
    const int G = TTI_FEW_GROUP;
    __shared__ float part[G][32][33], sum[TTI_FEW_LANES][32];
    int x = (int)threadIdx.x % 32, w = (int)threadIdx.x / 32;
    int64_t i = (int64_t)blockIdx.x * 32 + x;
    for (int lane = 0; lane < few.ln.n; lane += G) {
        float a[G] = {};
        for (int c = w; c < most && i < count; c += 32) {
            float v[G];
#pragma unroll
            for (int k = 0; k < G; k++)
                if (lane + k < few.ln.n && c < few.chunks[lane + k])
                    v[k] = from[((int64_t)(lane + k) * most + c) * count + i];
#pragma unroll
            for (int k = 0; k < G; k++)
                if (lane + k < few.ln.n && c < few.chunks[lane + k])
                    a[k] = a[k] + v[k];
        }
#pragma unroll
        for (int k = 0; k < G; k++)
            part[k][w][x] = a[k];
        __syncthreads();
        if (w < G && lane + w < few.ln.n) {
            float y = part[w][0][x];
#pragma unroll
            for (int k = 1; k < 32; k++)
                y = y + part[w][k][x];
            sum[lane + w][x] = y + 0.0f;
        }
        __syncthreads();
    }
    if (w == 0 && i < count)
        tti_lane_tree(
            few.ln, [&](int k) { return sum[k][x]; },
            [&](int p, float y) { tti_sums_put(out, p, i, y); });
}

template <int N>
__global__ static void __launch_bounds__(256)
    tti_chunk_tree(const float *from, const tti_lanes_of<N> ln, int64_t count, const tti_sums out)
{
    int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;
    if (i < count)
        tti_lane_tree(
            ln, [=](int k) { return from[k * count + i]; },
            [=](int p, float y) { tti_sums_put(out, p, i, y); });
}

// The most chunks of a lane, at least one.
static inline int64_t tti_most_chunks(const tti_chunking &c, const tt_lanes *ln)
{
    int64_t most = 1;
    for (int i = 0; i < ln->n; i++) {
        int64_t n = tti_chunks_of(c, ln->bound[i + 1] - ln->bound[i]);
        most = n > most ? n : most;
    }
    return most;
}

// Numbers of scratch: the chunks' sums, then those of lanes.
static inline size_t tti_chunk_scratch(int64_t most, const tt_lanes *ln, int64_t count)
{
    return sizeof(float) * (size_t)count * (size_t)ln->n * (size_t)(most + (most > 1));
}

// From the chunks' sums in scratch to out; fold is of chunks, lanes are added.
static inline void tti_chunk_finish(const tt_launch *l, const tt_lanes *ln,
                                    const tti_chunking &chunking, int64_t count, int fold,
                                    const tti_sums &out)
{
    float *chunks = (float *)l->scratch, *lanes = chunks;
    if (count == 0)
        return;
    if (fold == TTI_FOLD_SUM && chunking.most > 1 && ln->n > 1 && ln->n <= TTI_FEW_LANES &&
        chunking.most < INT32_MAX) {
        tti_few_lanes few = {tti_lanes_by_value<TTI_FEW_LANES>(ln), {}};
        for (int i = 0; i < ln->n; i++)
            few.chunks[i] = (int)tti_chunks_of(chunking, ln->bound[i + 1] - ln->bound[i]);
        TTI_LAUNCH(l, (unsigned)((count + 31) / 32), 1024, 0, tti_chunk_sum_tree, chunks, few,
                   (int)chunking.most, count, out);
        return;
    }
    if (chunking.most > 1) {
        lanes = chunks + (int64_t)ln->n * chunking.most * count;
        tti_sums to = {{lanes, lanes}, TT_F32, count};
        for (int first = 0; first < ln->n; first += TTI_LANE_GROUP) {
            tti_lane_group g = tti_lane_group_at(ln, first);
            TTI_LAUNCH(l, dim3((unsigned)((count + 31) / 32), (unsigned)g.n), 1024, 0,
                       tti_chunk_fold, chunks, g, chunking, count, fold, ln->n == 1 ? out : to);
        }
        if (ln->n == 1)
            return;
    }
    TTI_LANES(ln, N, {
        TTI_LAUNCH(l, (unsigned)((count + 255) / 256), 256, 0, (tti_chunk_tree<N>), lanes,
                   tti_lanes_by_value<N>(ln), count, out);
    });
}

#endif
