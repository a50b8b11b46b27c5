/*
 * update_scale.cu - kernel of update_scale.c on a GPU: a few numbers, in f64. Square sums lie here
 * and there, so they are first put side by side, by kernels that have their addresses as arguments.
 */
#include "op/gpu/max_abs.cuh"
#include "op/gpu/square_sum.cuh"
#include "op/update_scale.h"

#define AT_ONCE 256

struct addresses {
    const double *at[AT_ONCE];
};

__global__ static void collect(const addresses from, int n, double *to)
{
    if ((int)threadIdx.x < n)
        to[threadIdx.x] = *from.at[threadIdx.x];
}

struct number {
    const void *at;
    int is_f64;
};

__device__ static inline double value(number x)
{
    return x.is_f64 ? *(const double *)x.at : (double)*(const float *)x.at;
}

__device__ static inline bool is_finite(double x)
{
    return x - x == 0;
}

struct scale_args {
    number loss, count, p;
    const double *squares;
    int n;
    tti_update_scale_attr attr;
    const float *largest; // NULL: not known
    const tt_step *step;
    float *scale, *norm, *go;
};

__global__ static void __launch_bounds__(TTI_TREE_THREADS) scale_of(const scale_args a)
{
    double sum = tti_tree_block(a.squares, a.n);
    if (threadIdx.x != 0)
        return;
    double count = value(a.count), s = count == 0 ? 0 : value(a.p) / count;
    double norm = sqrt(sum) * s;
    bool guard = a.attr.guard != 0;
    bool stop = guard && !(is_finite(value(a.loss)) && is_finite(norm));
    double scale = a.attr.clip > 0 && norm > a.attr.clip ? s * (a.attr.clip / norm) : s;
    stop |= guard && a.largest != NULL &&
            tti_update_overflows(&a.attr, *a.largest, a.step->grad_scale, (float)scale, a.step->lr);
    float y = stop ? tti_float(0x7fc00000u) : (float)scale;
    *a.scale = y;
    *a.norm = (float)norm;
    *a.go = y == y ? 1.0f : y;
}

static number number_of(const tt_arg *x)
{
    number n = {x->data, x->dtype == TT_F64};
    return n;
}

static tt_status prepare(tt_prep *p)
{
    p->units[0] = 1;
    p->scratch_bytes = (size_t)p->n_in * sizeof(double);
    return TT_OK;
}

static tt_status update_scale(const tt_launch *l)
{
    const tti_update_scale_attr *attr = (const tti_update_scale_attr *)l->attr;
    double *squares = (double *)l->scratch;
    int most = (int)attr->n_largest, n = l->n_in - 3 - most;
    float *largest = (float *)(squares + n);
    for (int i = 0; i < n; i += AT_ONCE) {
        addresses from = {};
        int m = n - i < AT_ONCE ? n - i : AT_ONCE;
        for (int k = 0; k < m; k++)
            from.at[k] = (const double *)l->in[3 + i + k].data;
        TTI_LAUNCH(l, 1, AT_ONCE, 0, collect, from, m, squares + i);
    }
    if (most > 0)
        tti_max_abs_launch(l, l->in + 3 + n, most, largest);
    scale_args a = {number_of(&l->in[0]),
                    number_of(&l->in[1]),
                    number_of(&l->in[2]),
                    squares,
                    n,
                    *attr,
                    most > 0 ? largest : NULL,
                    l->step,
                    (float *)l->out[0].data,
                    (float *)l->out[1].data,
                    (float *)l->out[2].data};
    TTI_LAUNCH(l, 1, TTI_TREE_THREADS, 0, scale_of, a);
    return tti_cuda_launched(l);
}

extern "C" const tti_cuda_row tti_cuda_update_scale[] = {
    TTI_ROW_TYPES("update_scale", prepare, update_scale, 1u << TT_F32 | 1u << TT_F64),
    TTI_ROWS_END,
};
