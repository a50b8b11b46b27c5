/*
 * norm_far.cuh - norms of a row whose squares overflow, by its group of threads: it is normed as
 * TTI_NORM_FAR times itself, a power of two, beside whose variance eps is nothing. Such rows are
 * rare: the function is kept apart, so that it costs the kernels no registers.
 */
#ifndef TUTTI_OP_NORM_FAR_CUH
#define TUTTI_OP_NORM_FAR_CUH

#include "op/norm_args.cuh"
#include "op/rows.cuh"
#include <float.h>

#if defined(__CUDACC__)
#define TTI_NORM_APART __device__ __noinline__ static
#else
#define TTI_NORM_APART static
#endif
#define TTI_NORM_FAR  0x1p-100f
#define TTI_NORM_BACK 0x1p+100f

// A pack of what is normed, scaled: x, or x + add, rounded, where there is an add.
template <class T>
__device__ static inline void get_far(const T *x, const T *add, int64_t j, int m, float *v)
{
    const int V = tti_pack<T>::n;
    tti_row_pack(x + j, m, 0, v);
    if (add != NULL) {
        float w[V];
        tti_pack<T> sum;
        tti_row_pack(add + j, m, 0, w);
        for (int i = 0; i < V; i++)
            v[i] = v[i] + w[i];
        tti_repack(sum, v);
        tti_unpack(sum, v);
    }
    for (int i = 0; i < V; i++)
        v[i] = v[i] * TTI_NORM_FAR;
}
// m elements of a vector, of type f32 or T.
template <class T>
__device__ static inline void get_factors(const vector &p, int64_t j, int m, float other, float *v)
{
    for (int i = 0; i < m; i++)
        v[i] = p.at == NULL        ? other
               : p.dtype == TT_F32 ? ((const float *)p.at)[j + i]
                                   : tti_get(((const T *)p.at)[j + i]);
}

// Row r, which lies at x (and add). y may be either: a thread writes what it alone has read.
template <class T, int G>
TTI_NORM_APART void norm_row_far(norm_args p, const T *x, const T *add, int64_t r)
{
    const int V = tti_pack<T>::n;
    const int64_t first = (int64_t)((int)threadIdx.x % G) * V;
    float mean = 0, sum = 0, v[V], g[V], b[V];
    if (p.mean != NULL) {
        for (int64_t j = first; j < p.n; j += G * V) {
            get_far(x, add, j, (int)tti_min64(p.n - j, V), v);
            for (int i = 0; i < V; i++)
                sum = sum + v[i];
        }
        mean = tti_group_sum<G>(sum) / (float)p.n;
    }
    sum = 0;
    for (int64_t j = first; j < p.n; j += G * V) {
        get_far(x, add, j, (int)tti_min64(p.n - j, V), v);
        for (int i = 0; i < V; i++) {
            float d = j + i < p.n ? v[i] - mean : 0;
            sum = fmaf(d, d, sum);
        }
    }
    sum = tti_group_sum<G>(sum) / (float)p.n;
    float rstd = 1 / sqrtf(sum < FLT_MIN ? FLT_MIN : sum); // all alike: y is beta
    for (int64_t j = first; j < p.n; j += G * V) {
        int m = (int)tti_min64(p.n - j, V);
        get_far(x, add, j, m, v);
        get_factors<T>(p.gamma, j, m, 1, g);
        get_factors<T>(p.beta, j, m, 0, b);
        for (int i = 0; i < m; i++)
            v[i] = fmaf((v[i] - mean) * rstd, g[i], b[i]);
        tti_row_put((T *)p.y + r * p.n + j, m, v);
    }
    if ((int)threadIdx.x % G == 0) {
        p.rstd[r] = rstd * TTI_NORM_FAR;
        if (p.mean != NULL)
            p.mean[r] = mean * TTI_NORM_BACK;
    }
}

#endif
