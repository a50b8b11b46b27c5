/*
 * softmax.cuh - what the kernels of softmax.cu and entropy.cu share: the maximum and the sum of exp
 * of a row from one walk, labels, and cross entropy from them.
 */
#ifndef TUTTI_OP_SOFTMAX_CUH
#define TUTTI_OP_SOFTMAX_CUH

#include "cuda/trouble.h"
#include "op/gpu/rows.cuh"
#include "op/softmax.h"

#define LOG2E  1.4426950408889634f
#define LOWEST (-3.402823466e+38f)

// e^x for x not above zero but for rounding. 1 at zero.
__device__ static inline float soft_exp(float x)
{
#ifdef __CUDA_ARCH__
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * LOG2E));
    return y;
#else
    return exp2f(x * LOG2E);
#endif
}

/*
 * The maximum seen so far and the sum of exp for it, which is corrected when that grows. Packs come
 * in the order of sums along a row; elements past the row's end are LOWEST.
 */
template <class T> struct soft_sum {
    float max = LOWEST, sum = 0;

    __device__ void add(const float *v, int here)
    {
        const int V = tti_pack<T>::n;
        float top = v[0];
        for (int i = 1; i < V; i++)
            top = fmaxf(top, v[i]);
        if (top > max) {
            sum = sum * soft_exp(max - top);
            max = top;
        }
        float more = 0;
        for (int i = 0; i < V; i++)
            more = more + (i < here ? soft_exp(v[i] - max) : 0);
        sum = sum + more;
    }
    // Of the whole row, for every thread of the group.
    template <int G> __device__ void end(void)
    {
        float all = tti_group_max<G>(max);
        sum = tti_group_sum<G>(sum * soft_exp(max - all));
        max = all + 0.0f;
    }
};

// max x and sum exp(x - max x) of a row; every thread of the group gets them.
template <class T, int G>
__device__ static inline void max_and_sum(const T *x, int64_t n, float *max, float *sum)
{
    soft_sum<T> s;
    tti_row_walk<T, G>(x, n, LOWEST, [&](const float *v, int64_t, int here) { s.add(v, here); });
    s.template end<G>();
    *max = s.max;
    *sum = s.sum;
}

// ---- cross entropy ---------------------------------------------------------------------------

struct labels {
    tti_trouble *trouble;
    const tt_node *node;
    const void *at;
    int dtype;
    bool has_ignore;
    int64_t ignore;
    float keep, even; // 1 - smoothing, smoothing / classes
};

// Of row r: the class, or -1: ignored, or -2: no class, which one thread tells of.
__device__ static inline int64_t label_of(const labels &t, int64_t r, int64_t n, bool tells)
{
    int64_t k = t.dtype == TT_I64   ? ((const int64_t *)t.at)[r]
                : t.dtype == TT_I32 ? ((const int32_t *)t.at)[r]
                                    : ((const uint8_t *)t.at)[r];
    if (t.has_ignore && k == t.ignore)
        return -1;
    if (k >= 0 && k < n)
        return k;
    if (tells)
        tti_bad_id(t.trouble, t.node, k, r, n);
    return -2;
}

__device__ static inline float not_a_number(void)
{
    return tti_float(0x7fc00000u);
}

// Where a row's loss, maximum and sum go. NULL: nowhere.
struct entropy_out {
    float *loss, *max, *sum;
};

/*
 * The row's loss from its maximum, its sum and x at the label k; thread 0 of the group writes. even
 * is what smoothing adds: the sum of all (max - x_j) + ls, ls = log(sum).
 */
template <int G>
__device__ static inline void put_loss(const labels &t, const entropy_out &out, int64_t r,
                                       int64_t k, float max, float sum, float at_label, float even)
{
    float loss = at_label;
    if (t.even > 0)
        loss = fmaf(t.keep, at_label, t.even * even);
    if ((int)threadIdx.x % G == 0) {
        out.loss[r] = k == -1 ? 0 : k < 0 ? not_a_number() : loss;
        if (out.max != NULL)
            out.max[r] = max;
        if (out.sum != NULL)
            out.sum[r] = sum;
    }
}

// dx_j = fma(exp(x_j - max), dloss / sum, -(even dloss)), then - keep dloss at the label.
struct entropy_slope {
    int64_t k;
    float max, scale, minus, hit;

    __device__ entropy_slope(const labels &t, int64_t label, float m, float sum, float dloss)
    {
        k = label;
        max = m;
        dloss = k == -2 ? not_a_number() : dloss;
        scale = dloss / sum;
        minus = -(t.even * dloss);
        hit = -(t.keep * dloss);
    }
    // v, the row's m elements from j on, become theirs.
    __device__ void apply(float *v, int64_t j, int m) const
    {
        if (k == -1) {
            for (int i = 0; i < m; i++)
                v[i] = 0;
            return;
        }
        for (int i = 0; i < m; i++)
            v[i] = fmaf(soft_exp(v[i] - max), scale, minus);
        if (k >= j && k < j + m)
            for (int i = 0; i < m; i++)
                v[i] = j + i == k ? v[i] + hit : v[i];
    }
};

// ---- rows of which all is in memory ----------------------------------------------------------

// The loss of row r, whose label is k; its maximum and sum.
template <class T, int G>
__device__ static inline void entropy_row(const T *xr, const labels &t, int64_t r, int64_t k,
                                          int64_t n, const entropy_out &out, float *max_out,
                                          float *sum_out)
{
    float max, sum, more = 0;
    max_and_sum<T, G>(xr, n, &max, &sum);
    float ls = logf(sum), at_label = k < 0 ? 0 : (max - tti_get(xr[k])) + ls;
    if (t.even > 0) { // sum_j ((max - x_j) + ls)
        tti_row_walk<T, G>(xr, n, 0, [&](const float *v, int64_t, int here) {
            for (int i = 0; i < here; i++)
                more = more + ((max - v[i]) + ls);
        });
        more = tti_group_sum<G>(more);
    }
    put_loss<G>(t, out, r, k, max, sum, at_label, more);
    *max_out = max;
    *sum_out = sum;
}

template <class T, int G>
__device__ static inline void entropy_slope_row(const T *xr, const entropy_slope &s, int64_t n,
                                                T *dxr)
{
    tti_row_map<T, G>(xr, dxr, n, [=](float *v, int64_t j, int m) { s.apply(v, j, m); });
}

static inline labels labels_of(const tt_launch *l, const tt_arg *x, const tt_arg *t)
{
    const tti_cross_entropy_attr *a = (const tti_cross_entropy_attr *)l->attr;
    labels y = {tti_device_of(l)->trouble,
                l->node,
                t->data,
                t->dtype,
                a->has_ignore,
                a->ignore,
                (float)(1 - a->smoothing),
                (float)(a->smoothing / (double)x->cols)};
    return y;
}

static inline bool is_dense(const tt_arg *t)
{
    return t->dtype == TT_F32 || t->dtype == TT_BF16 || t->dtype == TT_F16;
}

#endif
