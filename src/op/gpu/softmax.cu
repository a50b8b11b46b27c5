/*
 * softmax.cu - kernels of softmax.c on a GPU: a warp or a block has a row.
 *
 * The maximum and the sum of exp come from one walk: a thread keeps the sum for the maximum it has
 * seen so far, and corrects it when that grows. The second walk, of ops that have one, finds the
 * row in a cache.
 */
#include "op/gpu/softmax.cuh"

// ---- softmax ---------------------------------------------------------------------------------

template <class T, int G>
__global__ static void __launch_bounds__(TTI_ROW_THREADS)
    softmax_rows(const T *x, T *y, int64_t rows, int64_t n, bool is_log)
{
    for (int64_t r = tti_row_first<G>(); r < rows; r += tti_row_step<G>()) {
        float max, sum;
        max_and_sum<T, G>(x + r * n, n, &max, &sum);
        float factor = is_log ? logf(sum) : 1 / sum;
        if (is_log)
            tti_row_map<T, G>(x + r * n, y + r * n, n, [=](float *v, int64_t, int m) {
                for (int i = 0; i < m; i++)
                    v[i] = (v[i] - max) - factor;
            });
        else
            tti_row_map<T, G>(x + r * n, y + r * n, n, [=](float *v, int64_t, int m) {
                for (int i = 0; i < m; i++)
                    v[i] = soft_exp(v[i] - max) * factor;
            });
    }
}

// softmax: dx = y (dy - sum(y dy)); log: dx = dy - exp(y) sum(dy). dx may be y or dy.
template <class T, int G>
__global__ static void __launch_bounds__(TTI_ROW_THREADS)
    softmax_grad_rows(const T *y, const T *dy, T *dx, int64_t rows, int64_t n, bool is_log)
{
    const int V = tti_pack<T>::n;
    for (int64_t r = tti_row_first<G>(); r < rows; r += tti_row_step<G>()) {
        const T *yr = y + r * n, *dyr = dy + r * n;
        float sum = 0;
        tti_row_walk<T, G>(dyr, n, 0, [&](const float *d, int64_t j, int here) {
            float v[V];
            if (!is_log)
                tti_row_pack(yr + j, here, 0, v);
            for (int i = 0; i < V; i++)
                sum = is_log ? sum + d[i] : fmaf(v[i], d[i], sum);
        });
        sum = tti_group_sum<G>(sum);
        for (int64_t j = (int64_t)((int)threadIdx.x % G) * V; j < n; j += G * V) {
            float v[V], d[V];
            int here = (int)tti_min64(n - j, V);
            tti_row_pack(yr + j, here, 0, v);
            tti_row_pack(dyr + j, here, 0, d);
            for (int i = 0; i < V; i++)
                v[i] = is_log ? fmaf(soft_exp(v[i]), -sum, d[i]) : v[i] * (d[i] - sum);
            tti_row_put(dx + r * n + j, here, v);
        }
    }
}

// ---- cross entropy ---------------------------------------------------------------------------

template <class T, int G>
__global__ static void __launch_bounds__(TTI_ROW_THREADS)
    cross_entropy_rows(const T *x, const labels t, int64_t rows, int64_t n, const entropy_out out)
{
    for (int64_t r = tti_row_first<G>(); r < rows; r += tti_row_step<G>()) {
        float max, sum;
        int64_t k = label_of(t, r, n, (int)threadIdx.x % G == 0);
        entropy_row<T, G>(x + r * n, t, r, k, n, out, &max, &sum);
    }
}

// sum_j t'_j ((max - x_j) + ls), t' = fma(keep, t, even)
template <class T, int G>
__global__ static void __launch_bounds__(TTI_ROW_THREADS)
    dense_entropy_rows(const T *x, const labels t, int64_t rows, int64_t n, const entropy_out out)
{
    const int V = tti_pack<T>::n;
    for (int64_t r = tti_row_first<G>(); r < rows; r += tti_row_step<G>()) {
        const T *xr = x + r * n, *tr = (const T *)t.at + r * n;
        float max, sum, loss = 0;
        max_and_sum<T, G>(xr, n, &max, &sum);
        float ls = logf(sum);
        tti_row_walk<T, G>(xr, n, 0, [&](const float *v, int64_t j, int here) {
            float w[V];
            tti_row_pack(tr + j, here, 0, w);
            for (int i = 0; i < here; i++)
                loss = fmaf(fmaf(t.keep, w[i], t.even), (max - v[i]) + ls, loss);
        });
        loss = tti_group_sum<G>(loss);
        if ((int)threadIdx.x % G == 0) {
            out.loss[r] = loss;
            out.max[r] = max;
            out.sum[r] = sum;
        }
    }
}

template <class T, int G>
__global__ static void __launch_bounds__(TTI_ROW_THREADS)
    cross_entropy_grad_rows(const T *x, const labels t, const float *max, const float *sum,
                            const float *dloss, T *dx, int64_t rows, int64_t n)
{
    for (int64_t r = tti_row_first<G>(); r < rows; r += tti_row_step<G>()) {
        int64_t k = label_of(t, r, n, (int)threadIdx.x % G == 0);
        entropy_slope_row<T, G>(x + r * n, entropy_slope(t, k, max[r], sum[r], dloss[r]), n,
                                dx + r * n);
    }
}

// dx_j = fma(exp(x_j - max), (S dloss) / sum, -(t'_j dloss)), S = sum t'
template <class T, int G>
__global__ static void __launch_bounds__(TTI_ROW_THREADS)
    dense_entropy_grad_rows(const T *x, const labels t, const float *max_in, const float *sum_in,
                            const float *dloss_in, T *dx, int64_t rows, int64_t n)
{
    for (int64_t r = tti_row_first<G>(); r < rows; r += tti_row_step<G>()) {
        const T *tr = (const T *)t.at + r * n;
        float total = 0, dloss = dloss_in[r], max = max_in[r];
        tti_row_walk<T, G>(tr, n, 0, [&](const float *w, int64_t, int here) {
            for (int i = 0; i < here; i++)
                total = total + fmaf(t.keep, w[i], t.even);
        });
        float scale = tti_group_sum<G>(total) * dloss / sum_in[r];
        tti_row_map<T, G>(x + r * n, dx + r * n, n, [=](float *v, int64_t j, int m) {
            for (int i = 0; i < m; i++) {
                float target = fmaf(t.keep, tti_get(tr[j + i]), t.even);
                v[i] = fmaf(soft_exp(v[i] - max), scale, target * -dloss);
            }
        });
    }
}

// ---- calls -----------------------------------------------------------------------------------

static tt_status softmax_call(const tt_launch *l, bool is_log)
{
    const tt_arg *x = &l->in[0];
    if (x->count > 0)
        TTI_ROW_LAUNCH(l, softmax_rows, x->dtype, x->rows, x->cols, (const T *)x->data,
                       (T *)l->out[0].data, x->rows, x->cols, is_log);
    return tti_cuda_launched(l);
}
static tt_status softmax(const tt_launch *l)
{
    return softmax_call(l, false);
}
static tt_status log_softmax(const tt_launch *l)
{
    return softmax_call(l, true);
}

static tt_status grad_call(const tt_launch *l, bool is_log)
{
    const tt_arg *y = &l->in[0];
    if (y->count > 0)
        TTI_ROW_LAUNCH(l, softmax_grad_rows, y->dtype, y->rows, y->cols, (const T *)y->data,
                       (const T *)l->in[1].data, (T *)l->out[0].data, y->rows, y->cols, is_log);
    return tti_cuda_launched(l);
}
static tt_status softmax_grad(const tt_launch *l)
{
    return grad_call(l, false);
}
static tt_status log_softmax_grad(const tt_launch *l)
{
    return grad_call(l, true);
}

static tt_status cross_entropy(const tt_launch *l)
{
    const tt_arg *x = &l->in[0];
    labels t = labels_of(l, x, &l->in[1]);
    entropy_out out = {(float *)l->out[0].data, (float *)l->out[1].data, (float *)l->out[2].data};
    if (x->count == 0)
        return TT_OK;
    if (is_dense(&l->in[1]))
        TTI_ROW_LAUNCH(l, dense_entropy_rows, x->dtype, x->rows, x->cols, (const T *)x->data, t,
                       x->rows, x->cols, out);
    else
        TTI_ROW_LAUNCH(l, cross_entropy_rows, x->dtype, x->rows, x->cols, (const T *)x->data, t,
                       x->rows, x->cols, out);
    return tti_cuda_launched(l);
}

static tt_status cross_entropy_grad(const tt_launch *l)
{
    const tt_arg *x = &l->in[0];
    labels t = labels_of(l, x, &l->in[1]);
    const float *max = (const float *)l->in[2].data, *sum = (const float *)l->in[3].data;
    const float *dloss = (const float *)l->in[4].data;
    if (x->count == 0)
        return TT_OK;
    if (is_dense(&l->in[1]))
        TTI_ROW_LAUNCH(l, dense_entropy_grad_rows, x->dtype, x->rows, x->cols, (const T *)x->data,
                       t, max, sum, dloss, (T *)l->out[0].data, x->rows, x->cols);
    else
        TTI_ROW_LAUNCH(l, cross_entropy_grad_rows, x->dtype, x->rows, x->cols, (const T *)x->data,
                       t, max, sum, dloss, (T *)l->out[0].data, x->rows, x->cols);
    return tti_cuda_launched(l);
}

// Rows are f32 but for the logits and dense labels.
static tt_status prepare(tt_prep *p)
{
    p->units[0] = p->in[0].rows;
    for (int i = 2; i < p->n_in; i++)
        if (p->in[i].dtype != TT_F32)
            return TT_FAIL(p->ctx, TT_EUNSUPPORTED,
                           "%s: input %d is %s; on a GPU the numbers of a row are f32",
                           p->node->name, i, p->in[i].dtype == TT_F64 ? "f64" : "half-precision");
    return TT_OK;
}

extern "C" const tti_cuda_row tti_cuda_softmax[] = {
    TTI_ROW("softmax", prepare, softmax),
    TTI_ROW("softmax_grad", prepare, softmax_grad),
    TTI_ROW("log_softmax", prepare, log_softmax),
    TTI_ROW("log_softmax_grad", prepare, log_softmax_grad),
    TTI_ROW("cross_entropy", prepare, cross_entropy),
    TTI_ROW("cross_entropy_grad", prepare, cross_entropy_grad),
    TTI_ROWS_END,
};
