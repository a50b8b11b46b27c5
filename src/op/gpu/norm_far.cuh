/*
 * norm_far.cuh - norms of a row whose squares overflow, by its group of threads: it is normed as
 * TTI_NORM_FAR times itself, a power of two, beside whose variance eps is nothing. Such rows are
 * rare: they are read again, element by element, so that kernels need no more registers for them.
 */
#ifndef TUTTI_OP_NORM_FAR_CUH
#define TUTTI_OP_NORM_FAR_CUH

#include "op/gpu/norm_args.cuh"
#include "op/gpu/rows.cuh"
#include <float.h>

#define TTI_NORM_FAR 0x1p-100f

// Element j of what is normed, scaled: of x, or of x + add, rounded, where there is an add.
template <class T> __device__ static inline float get_far(const T *x, const T *add, int64_t j)
{
    float v = tti_get(x[j]);
    if (add != NULL) {
        T sum;
        tti_put(sum, v + tti_get(add[j]));
        v = tti_get(sum);
    }
    return v * TTI_NORM_FAR;
}
template <class T>
__device__ static inline float get_factor(const vector &p, int64_t j, float other)
{
    if (p.at == NULL)
        return other;
    return p.dtype == TT_F32 ? ((const float *)p.at)[j] : tti_get(((const T *)p.at)[j]);
}

// Row r, which lies at x (and add). y may be either: a thread writes what it alone reads then.
template <class T, int G>
__device__ static inline void norm_row_far(const norm_args &p, const T *x, const T *add, int64_t r)
{
    const int t = (int)threadIdx.x % G, n = (int)p.n;
    float mean = 0, sum = 0;
    if (G == 32) // others of the group may have written what is read here
        __syncwarp();
    else
        __syncthreads();
    if (p.mean != NULL) {
#pragma unroll 1
        for (int j = t; j < n; j += G)
            sum = sum + get_far(x, add, j);
        mean = tti_group_sum<G>(sum) / (float)n;
    }
    sum = 0;
#pragma unroll 1
    for (int j = t; j < n; j += G) {
        float d = get_far(x, add, j) - mean;
        sum = fmaf(d, d, sum);
    }
    // FLT_MIN: if all entries are alike y is beta
    float rstd = 1 / sqrtf(tti_group_sum<G>(sum) / (float)n + FLT_MIN);
#pragma unroll 1
    for (int j = t; j < n; j += G)
        tti_put(((T *)p.y + r * n)[j],
                fmaf((get_far(x, add, j) - mean) * rstd, get_factor<T>(p.gamma, j, 1),
                     get_factor<T>(p.beta, j, 0)));
    if (t == 0) {
        p.rstd[r] = rstd * TTI_NORM_FAR;
        if (p.mean != NULL)
            p.mean[r] = mean / TTI_NORM_FAR;
    }
}

#endif
