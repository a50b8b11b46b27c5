/*
 * reduce.cuh - where the elements of a reduction lie, for kernels.
 */
#ifndef TUTTI_OP_REDUCE_CUH
#define TUTTI_OP_REDUCE_CUH

#include "cuda/kernel.cuh"
#include "op/reduce.h"

// The part of a reduction that is one lane's: n_rows rows of n elements each.
struct lane_part {
    int64_t low, high; // on the open axis, where that is one of r.sum
    int64_t from, n;   // of the tail
    int64_t n_rows;
    bool is_simple; // rows lie at even distances: the first, and how far the others are
    int64_t first, step;
};

__host__ __device__ static inline lane_part part_of(const tti_reduction &r, int64_t low,
                                                    int64_t high)
{
    lane_part p = {low * r.lane_step, high * r.lane_step, 0, r.tail, 1, true, 0, 0};
    if (r.lane_tail) {
        p.from = p.low;
        p.n = p.high - p.low;
    }
    for (int k = 0; k < r.sum.n; k++) {
        p.n_rows *= k == r.lane_sum ? p.high - p.low : r.sum.dim[k];
        p.is_simple =
            p.is_simple && (k == 0 || (k - 1 != r.lane_sum &&
                                       r.sum.stride[k] == r.sum.dim[k - 1] * r.sum.stride[k - 1]));
    }
    if (p.is_simple && r.sum.n > 0) {
        p.step = r.sum.stride[0];
        p.first = r.lane_sum >= 0 ? p.low * r.sum.stride[r.lane_sum] : 0;
    }
    return p;
}

// Offset in x of row i of the reduced axes but the tail.
__device__ static inline int64_t row_offset(const tti_reduction &r, const lane_part &p, int64_t i)
{
    if (p.is_simple)
        return p.first + i * p.step;
    int64_t at = 0;
    for (int k = 0; k < r.sum.n; k++) {
        bool is_open = k == r.lane_sum;
        int64_t dim = is_open ? p.high - p.low : r.sum.dim[k];
        int64_t here = k == r.sum.n - 1 ? i : i % dim;
        at += (here + (is_open ? p.low : 0)) * r.sum.stride[k];
        i = k == r.sum.n - 1 ? 0 : i / dim;
    }
    return at;
}

// Offset in x of output (or first column) number i of the kept axes.
__device__ static inline int64_t kept_offset(const tti_axis_list &l, int64_t i)
{
    int64_t at = 0;
    for (int k = 0; k < l.n; k++) {
        at += i % l.dim[k] * l.stride[k];
        i /= l.dim[k];
    }
    return at;
}

// Calls one(offset, e) for elements [begin, end) of an output, thread by thread of a group.
template <int G, class F>
__device__ static inline void each_element(const tti_reduction &r, const lane_part &p,
                                           int64_t begin, int64_t end, F one)
{
    int64_t e = begin + (int)threadIdx.x % G;
    if (e >= end)
        return;
    int64_t i = e / p.n, j = e % p.n, down = G / p.n, on = G % p.n;
#pragma unroll 4
    for (; e < end; e += G) {
        one(row_offset(r, p, i) + p.from + j, e);
        i += down;
        j += on;
        if (j >= p.n) {
            j -= p.n;
            i++;
        }
    }
}

#endif
