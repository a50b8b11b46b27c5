/*
 * index_sort.cuh - positions of ids sorted by id, in a fixed order: radix sort, least digit first.
 *
 * Each pass sorts by 8 bits of the id and keeps the order of equals: chunks count their digits, the
 * counts are summed up in the order (digit, chunk), and each chunk then knows where its elements of
 * a digit go. Within a chunk, ranks come from ballots, never from the order atomics happen to take.
 */
#ifndef TUTTI_OP_INDEX_SORT_CUH
#define TUTTI_OP_INDEX_SORT_CUH

#include "cuda/kernel.cuh"

#define SORT_THREADS 256
#define SORT_WARPS   (SORT_THREADS / 32)
#define SORT_BINS    256
#define SORT_CHUNKS  512 // at most

// Elements of a chunk and the number of chunks.
static inline int64_t sort_chunk(int64_t n)
{
    int64_t each = (n + SORT_CHUNKS - 1) / SORT_CHUNKS;
    return each <= 1024 ? 1024 : (each + 1023) / 1024 * 1024;
}
static inline int64_t sort_chunks(int64_t n)
{
    return (n + sort_chunk(n) - 1) / sort_chunk(n);
}
// Passes for keys in [0, limit].
static inline int sort_passes(int64_t limit)
{
    int passes = 1;
    while (limit >> (8 * passes) > 0)
        passes++;
    return passes;
}

// table[digit * chunks + chunk].
__global__ static void sort_count(const int32_t *keys, int64_t n, int64_t chunk, int shift,
                                  int32_t *table)
{
    __shared__ int bins[SORT_BINS];
    bins[threadIdx.x] = 0;
    __syncthreads();
    int64_t from = blockIdx.x * chunk, to = from + chunk < n ? from + chunk : n;
    for (int64_t i = from + threadIdx.x; i < to; i += SORT_THREADS)
        atomicAdd(&bins[keys[i] >> shift & (SORT_BINS - 1)], 1);
    __syncthreads();
    table[(int64_t)threadIdx.x * gridDim.x + blockIdx.x] = bins[threadIdx.x];
}

// Inclusive, over the threads of a warp.
__device__ static inline int32_t sort_warp_scan(int32_t x)
{
    for (int k = 1; k < 32; k *= 2) {
        int32_t y = __shfl_up_sync(0xffffffffu, x, k);
        x += (int)threadIdx.x % 32 >= k ? y : 0;
    }
    return x;
}

// Each becomes the sum of all before it: one block of 1024 threads, each with a stretch of its own.
__global__ static void sort_scan(int32_t *table, int n)
{
    __shared__ int32_t warps[32];
    int t = (int)threadIdx.x, per = (n + 1023) / 1024;
    int from = t * per < n ? t * per : n, to = from + per < n ? from + per : n;
    int32_t own = 0;
#pragma unroll 8
    for (int i = from; i < to; i++)
        own += table[i];
    int32_t sum = sort_warp_scan(own);
    if (t % 32 == 31)
        warps[t / 32] = sum;
    __syncthreads();
    if (t < 32)
        warps[t] = sort_warp_scan(warps[t]);
    __syncthreads();
    sum += (t < 32 ? 0 : warps[t / 32 - 1]) - own;
    for (int i = from; i < to; i++) {
        int32_t x = table[i];
        table[i] = sum;
        sum += x;
    }
}

__global__ static void sort_place(const int32_t *keys, const int32_t *values, int64_t n,
                                  int64_t chunk, int shift, const int32_t *table, int32_t *keys_out,
                                  int32_t *values_out)
{
    __shared__ int32_t next[SORT_BINS];               // where the next of a digit goes
    __shared__ int32_t counts[SORT_WARPS][SORT_BINS]; // then: where those of a warp begin
    int t = (int)threadIdx.x, lane = t % 32, warp = t / 32;
    next[t] = table[(int64_t)t * gridDim.x + blockIdx.x];
    int64_t from = blockIdx.x * chunk, to = from + chunk < n ? from + chunk : n;
    for (int64_t at = from; at < to; at += SORT_THREADS) {
        for (int w = 0; w < SORT_WARPS; w++)
            counts[w][t] = 0;
        __syncthreads();
        bool has = at + t < to;
        int32_t key = has ? keys[at + t] : 0;
        int digit = key >> shift & (SORT_BINS - 1);
        unsigned same = __ballot_sync(0xffffffffu, has);
        for (int b = 0; b < 8; b++) {
            unsigned set = __ballot_sync(0xffffffffu, digit >> b & 1);
            same &= digit >> b & 1 ? set : ~set;
        }
        int rank = __popc(same & ((1u << lane) - 1));
        if (has && rank == 0)
            counts[warp][digit] = __popc(same);
        __syncthreads();
        int32_t sum = next[t];
        for (int w = 0; w < SORT_WARPS; w++) {
            int32_t c = counts[w][t];
            counts[w][t] = sum;
            sum += c;
        }
        next[t] = sum;
        __syncthreads();
        if (has) {
            int32_t to_at = counts[warp][digit] + rank;
            keys_out[to_at] = key;
            values_out[to_at] = values[at + t];
        }
        __syncthreads();
    }
}

#endif
