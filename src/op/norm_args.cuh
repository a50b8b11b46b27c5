/*
 * norm_args.cuh - what the GPU kernels of norms are given, and where their rows lie.
 */
#ifndef TUTTI_OP_NORM_ARGS_CUH
#define TUTTI_OP_NORM_ARGS_CUH

#include "cuda/chunks.cuh"

#define TTI_NORM_CHUNK 64 // rows of a chunk of a lane

// A vector of [c], of a type of its own; at NULL: absent.
struct vector {
    const void *at;
    int dtype;
};

struct norm_args {
    const void *x;
    void *y;
    vector gamma, beta;
    float *mean, *rstd; // mean NULL: RMS norm
    float eps;
    int64_t rows, n;
};

struct grad_args {
    const void *x, *dy;
    void *dx;
    vector gamma;
    const float *mean, *rstd; // mean NULL: RMS norm
    bool has_dgamma, has_dbeta;
    float *sums; // of chunks: dgamma, dbeta, [n] each, those that are asked for
    int64_t n, most;
    // Rows of a lane: runs of len = (rows of the batch) * per, at first + k step (op/rows.h).
    int64_t per, step;
};

// Row i of a lane that begins at `first` and has runs of len rows.
__device__ static inline int64_t lane_row(const grad_args &p, int64_t first, int64_t len, int64_t i)
{
    return i < len ? first + i : first + i / len * p.step + i % len;
}

// A block's chunk and lane of a group: the last rows first, which the maker of dy has left in the
// cache.
__device__ static inline int64_t chunk_of_block(void)
{
    return gridDim.x - 1 - blockIdx.x;
}
__device__ static inline int lane_of_block(void)
{
    return (int)(gridDim.y - 1 - blockIdx.y);
}

// The sums of the block's chunk of a lane: where they go.
__device__ static inline float *chunk_sums(const grad_args &p, int lane)
{
    return p.sums + (lane * p.most + chunk_of_block()) * (p.has_dgamma + p.has_dbeta) * p.n;
}

#endif
