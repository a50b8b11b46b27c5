/*
 * square_sum.cu - kernel of square_sum.c on a GPU, in its very order: bits are those of the CPU.
 *
 * Four threads have a block of TTI_SQUARE_BLOCK elements, each of them four of its sixteen
 * partials. Threads, warps and blocks of the grid have whole sub-trees of the tree over blocks.
 */
#include "op/square_sum.cuh"
#include "op/square_sum.h"

#define THREADS  64
#define PARTIALS 16
#define ELEMENTS (THREADS / 4 * TTI_SQUARE_BLOCK) // of a block of threads

__device__ static inline void add_square(double &sum, float x)
{
    sum = sum + (double)x * (double)x;
}

// Partials 4 q to 4 q + 3 of the n elements at x.
__device__ static inline void four_partials(const float *x, int n, int q, bool packed,
                                            double sum[4])
{
    if (packed && n == TTI_SQUARE_BLOCK) {
        const tti_pack<float> *p = (const tti_pack<float> *)x + q;
#pragma unroll 16
        for (int j = 0; j < TTI_SQUARE_BLOCK / PARTIALS; j++) {
            tti_pack<float> v = p[j * 4];
            for (int k = 0; k < 4; k++)
                add_square(sum[k], v.v[k]);
        }
        return;
    }
    for (int j = 0; j < n; j += PARTIALS)
        for (int k = 0; k < 4; k++)
            if (j + 4 * q + k < n)
                add_square(sum[k], x[j + 4 * q + k]);
}

__global__ static void __launch_bounds__(THREADS)
    square_blocks(const float *x, int64_t n, bool packed, double *to)
{
    __shared__ double part[THREADS / 32];
    int t = (int)threadIdx.x, q = t % 4;
    int64_t at = (int64_t)blockIdx.x * ELEMENTS + t / 4 * TTI_SQUARE_BLOCK;
    double sum[4] = {0, 0, 0, 0};
    if (at < n)
        four_partials(x + at, (int)tti_min64(n - at, TTI_SQUARE_BLOCK), q, packed, sum);
    for (int k = 0; k < 4; k++) // partials 8, then 4 apart
        sum[k] = tti_tree_shuffle(tti_tree_shuffle(sum[k], 2), 1);
    double y = (sum[0] + sum[2]) + (sum[1] + sum[3]);
    for (int d = 4; d < 32; d *= 2) // blocks; what is missing is zero
        y = tti_tree_shuffle(y, d);
    if (t % 32 == 0)
        part[t / 32] = y;
    __syncthreads();
    if (t == 0)
        to[blockIdx.x] = tti_tree_serial(part, 0, THREADS / 32);
}

__global__ static void __launch_bounds__(TTI_TREE_THREADS)
    square_tree(const double *x, int64_t n, double *y)
{
    double sum = tti_tree_block(x, n);
    if (threadIdx.x == 0)
        *y = sum;
}

static tt_status prepare(tt_prep *p)
{
    if (p->in[0].dtype != TT_F32)
        return TT_FAIL(p->ctx, TT_EUNSUPPORTED, "%s: square_sum of f64 is not available on a GPU",
                       p->node->name);
    p->units[0] = p->in[0].count;
    p->scratch_bytes = (size_t)(p->in[0].count / ELEMENTS + 1) * sizeof(double);
    return TT_OK;
}

static tt_status square_sum(const tt_launch *l)
{
    const tt_arg *x = &l->in[0];
    int64_t blocks = (x->count + ELEMENTS - 1) / ELEMENTS;
    double *y = (double *)l->out[0].data, *sums = (double *)l->scratch;
    if (blocks == 0)
        return tti_cuda_zero(l, y, sizeof(*y));
    TTI_LAUNCH(l, (unsigned)blocks, THREADS, 0, square_blocks, (const float *)x->data, x->count,
               tti_is_aligned(x->data), blocks == 1 ? y : sums);
    if (blocks > 1)
        TTI_LAUNCH(l, 1, TTI_TREE_THREADS, 0, square_tree, sums, blocks, y);
    return tti_cuda_launched(l);
}

extern "C" const tti_cuda_row tti_cuda_square_sum[] = {
    TTI_ROW_TYPES("square_sum", prepare, square_sum, 1u << TT_F64),
    TTI_ROWS_END,
};
