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
    // Chains: what is normed is x + add, rounded, which is left in sum. sum NULL: it is not kept.
    const void *add;
    void *sum;
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
    // Chains: sum is dx, rounded, + add. dx NULL: it is not kept.
    const void *add;
    void *sum;
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

/*
 * norm.cu: the ops with arguments as given, l being the op's own call. Short rows of aligned packs
 * are left to a function, a group of lanes at a time: norm.cu's own or that of norm_chain.cu.
 */
struct tti_norm_short {
    void (*norm)(const tt_launch *l, tt_dtype t, const norm_args &p);
    void (*grad)(const tt_launch *l, tt_dtype t, const grad_args &p, const tti_lane_group &g,
                 int64_t runs);
};
norm_args tti_norm_args(const tt_launch *l, bool rms);
tt_status tti_norm_run(const tt_launch *l, const norm_args &p, const tti_norm_short &f);
grad_args tti_norm_grad_args(const tt_launch *l, bool rms);
tt_status tti_norm_grad_run(const tt_launch *l, const grad_args &args, const tti_norm_short &f);
size_t tti_norm_grad_scratch(const tt_arg *x, const tt_lanes *lanes, int n_sums);

#endif
