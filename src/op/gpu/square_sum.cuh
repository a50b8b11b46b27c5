/*
 * square_sum.cuh - the binary tree of square_sum.h by one block of threads.
 */
#ifndef TUTTI_OP_SQUARE_SUM_CUH
#define TUTTI_OP_SQUARE_SUM_CUH

#include "cuda/kernel.cuh"

#define TTI_TREE_THREADS 256

__device__ static inline double tti_tree_shuffle(double x, int distance)
{
    return x + __shfl_xor_sync(0xffffffffu, x, distance);
}

// The sum of the tree over x[begin, end), begin being a multiple of a power of two not below
// end - begin: what is pending, one sum per level, is a binary counter.
__device__ static inline double tti_tree_serial(const double *x, int64_t begin, int64_t end)
{
    double stack[48];
    int depth = 0;
    for (int64_t i = begin; i < end; i++) {
        stack[depth++] = x[i];
        for (int64_t k = i - begin + 1; k % 2 == 0; k /= 2, depth--)
            stack[depth - 2] += stack[depth - 1];
    }
    for (; depth > 1; depth--)
        stack[depth - 2] += stack[depth - 1];
    return depth == 0 ? 0.0 : stack[0];
}

// x[0..n) by TTI_TREE_THREADS threads, each a sub-tree of its own; thread 0 gets the sum.
__device__ static inline double tti_tree_block(const double *x, int64_t n)
{
    __shared__ double part[TTI_TREE_THREADS / 32];
    int64_t each = 1;
    while (each * TTI_TREE_THREADS < n)
        each *= 2;
    int64_t begin = (int64_t)threadIdx.x * each;
    double y = tti_tree_serial(x, begin, tti_min64(begin + each, n));
    for (int d = 1; d < 32; d *= 2)
        y = tti_tree_shuffle(y, d);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = y;
    __syncthreads();
    return threadIdx.x == 0 ? tti_tree_serial(part, 0, TTI_TREE_THREADS / 32) : 0.0;
}

#endif
