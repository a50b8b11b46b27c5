/*
 * label_rank.cu - kernel of label_rank.c on a GPU: a warp or a block has a row.
 */
#include "op/gpu/rows.cuh"

__device__ static inline int64_t label_at(const void *t, int dtype, int64_t r)
{
    if (dtype == TT_I64)
        return ((const int64_t *)t)[r];
    return dtype == TT_I32 ? ((const int32_t *)t)[r] : ((const uint8_t *)t)[r];
}

template <int G> __device__ static inline int group_count(int x)
{
    __shared__ int part[32];
    for (int k = 16; k > 0; k >>= 1)
        x += __shfl_xor_sync(0xffffffffu, x, k);
    if (G == 32)
        return x;
    __syncthreads(); // part may still be read by the count before
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = x;
    __syncthreads();
    int sum = 0;
    for (int i = 0; i < G / 32; i++)
        sum += part[i];
    return sum;
}

template <class T, int G>
__global__ static void __launch_bounds__(TTI_ROW_THREADS)
    rank_rows(const T *x, const void *t, int dtype, int32_t *y, int64_t rows, int64_t n)
{
    for (int64_t r = tti_row_first<G>(); r < rows; r += tti_row_step<G>()) {
        int64_t k = label_at(t, dtype, r);
        bool is_class = k >= 0 && k < n;
        float limit = is_class ? tti_get(x[r * n + k]) : 0;
        int before = 0;
        tti_row_walk<T, G>(x + r * n, n, 0, [&](const float *v, int64_t j, int here) {
            for (int i = 0; i < here; i++) {
                bool after = j + i < k ? v[i] < limit : v[i] <= limit; // no NaN is after
                before += !after && j + i != k;
            }
        });
        before = group_count<G>(before);
        if ((int)threadIdx.x % G == 0)
            y[r] = is_class ? before : (int32_t)tti_min64(n, INT32_MAX);
    }
}

static tt_status prepare(tt_prep *p)
{
    p->units[0] = p->in[0].rows;
    if (p->in[0].dtype == TT_F64)
        return TT_FAIL(p->ctx, TT_EUNSUPPORTED, "%s: label_rank of f64 is not available on a GPU",
                       p->node->name);
    return TT_OK;
}

static tt_status label_rank(const tt_launch *l)
{
    const tt_arg *x = &l->in[0];
    if (x->rows > 0)
        TTI_ROW_LAUNCH(l, rank_rows, x->dtype, x->rows, x->cols, (const T *)x->data, l->in[1].data,
                       (int)l->in[1].dtype, (int32_t *)l->out[0].data, x->rows, x->cols);
    return tti_cuda_launched(l);
}

extern "C" const tti_cuda_row tti_cuda_label_rank[] = {
    TTI_ROW("label_rank", prepare, label_rank),
    TTI_ROWS_END,
};
