/*
 * reduce.cu - kernels of reduce.c on a GPU.
 *
 * The elements of an output, in the order of reduce.c, are cut into chunks of a fixed size, from
 * the start of each lane; chunks.cuh has what follows. With a tail a warp or a block has a chunk of
 * one output; without one it has a chunk of rows, and 32 columns, or packs of them, side by side.
 */
#include "op/gpu/columns.cuh"
#include "op/gpu/rows.cuh"

// ---- folds with a tail -----------------------------------------------------------------------

template <int G> __device__ static inline float group_fold(int fold, float x)
{
    __shared__ float part[TTI_ROW_THREADS / 32];
    for (int k = 16; k > 0; k >>= 1)
        x = tti_fold_one(fold, x, __shfl_xor_sync(0xffffffffu, x, k));
    if (G == 32)
        return x;
    __syncthreads(); // part may still be read by the fold before
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = x;
    __syncthreads();
    x = part[0];
    for (int i = 1; i < G / 32; i++)
        x = tti_fold_one(fold, x, part[i]);
    return x;
}

// Elements [begin, end) of an output whose row 0 is at x.
template <class T, int G>
__device__ static inline float fold_elements(const tti_reduction &r, const lane_part &p, const T *x,
                                             int64_t begin, int64_t end, int fold)
{
    float a = tti_fold_start(fold);
    if (p.n < 4 * G) {
        each_element<G>(r, p, begin, end,
                        [&](int64_t at, int64_t) { a = tti_fold_one(fold, a, tti_get(x[at])); });
        return a;
    }
    for (int64_t e = begin; e < end;) { // long rows, by packs
        int64_t i = e / p.n, j = e % p.n, n = tti_min64(p.n - j, end - e);
        tti_row_walk<T, G>(x + row_offset(r, p, i) + p.from + j, n, 0,
                           [&](const float *v, int64_t, int here) {
#pragma unroll
                               for (int k = 0; k < tti_pack<T>::n; k++)
                                   if (k < here)
                                       a = tti_fold_one(fold, a, v[k]);
                           });
        e += n;
    }
    return a;
}

// A group has chunk c of output i: job c outer + i. Lanes are blockIdx.y.
template <class T, int G>
__global__ static void __launch_bounds__(TTI_ROW_THREADS)
    fold_tails(const T *x, const tti_reduction r, const tti_lane_group ln, int64_t per,
               int64_t most, int fold, const tti_sums out)
{
    int lane = (int)blockIdx.y;
    lane_part p = part_of(r, ln.bound[lane], ln.bound[lane + 1]);
    for (int64_t job = tti_row_first<G>(); job < r.outer * most; job += tti_row_step<G>()) {
        int64_t c = job / r.outer, i = job % r.outer;
        int64_t begin = c * per, end = tti_min64(begin + per, p.n * p.n_rows);
        const T *from = x + kept_offset(r.keep, i);
        float a = tti_fold_start(fold);
        if (begin < end)
            a = fold_elements<T, G>(r, p, from, begin, end, fold);
        a = group_fold<G>(fold, a);
        if ((int)threadIdx.x % G == 0)
            tti_sums_put(out, (ln.first + lane) * most + c, i, a + 0.0f);
    }
}

// ---- folds without ---------------------------------------------------------------------------

template <class T, int V>
__global__ static void __launch_bounds__(WIDE *HIGH)
    fold_columns(const T *x, const tti_reduction r, const tti_lane_group ln, int64_t most,
                 unsigned tiles, int fold, const tti_sums out)
{
    fold_chunk<V>(rows_of<T, V>{x}, r, ln, most, tiles, fold, out);
}

// ---- calls of folds --------------------------------------------------------------------------

static tt_status prepare_fold(tt_prep *p, bool may_lanes)
{
    reduce_plan plan;
    const tt_lanes *ln = plan_of(&plan, p->attr, &p->in[0], p->lanes, may_lanes);
    p->units[0] = p->in[0].count;
    p->scratch_bytes =
        is_direct(&plan, ln) ? 0 : tti_chunk_scratch(plan.chunking.most, ln, plan.r.count);
    return TT_OK;
}
static tt_status prepare_sum(tt_prep *p)
{
    return prepare_fold(p, true);
}
static tt_status prepare_max(tt_prep *p)
{
    return prepare_fold(p, false);
}

template <class T>
static tt_status launch_tails(const tt_launch *l, const reduce_plan *plan, const tti_lane_group &g,
                              int fold, const tti_sums &to)
{
    const tti_chunking *c = &plan->chunking;
    int64_t jobs = plan->r.outer * c->most;
    const T *x = (const T *)l->in[0].data;
    if (plan->by_warp)
        TTI_LAUNCH(l, dim3(tti_row_blocks(jobs, 32), (unsigned)g.n), TTI_ROW_THREADS, 0,
                   (fold_tails<T, 32>), x, plan->r, g, c->per, c->most, fold, to);
    else
        TTI_LAUNCH(l, dim3(tti_row_blocks(jobs, TTI_ROW_THREADS), (unsigned)g.n), TTI_ROW_THREADS,
                   0, (fold_tails<T, TTI_ROW_THREADS>), x, plan->r, g, c->per, c->most, fold, to);
    return TT_OK;
}

template <class T>
static tt_status launch_columns(const tt_launch *l, const reduce_plan *plan,
                                const tti_lane_group &g, int fold, const tti_sums &to)
{
    const int V = tti_pack<T>::n;
    const T *x = (const T *)l->in[0].data;
    bool packed = tti_is_aligned(x) && plan->r.cols % V == 0;
    unsigned tiles;
    dim3 grid;
    if (!columns_grid(plan, packed ? V : 1, g, &tiles, &grid))
        return TT_FAIL(l->ctx, TT_EUNSUPPORTED, "%s: too many sums for one GPU kernel",
                       l->node->name);
    if (packed)
        TTI_LAUNCH(l, grid, WIDE * HIGH, 0, (fold_columns<T, tti_pack<T>::n>), x, plan->r, g,
                   plan->chunking.most, tiles, fold, to);
    else
        TTI_LAUNCH(l, grid, WIDE * HIGH, 0, (fold_columns<T, 1>), x, plan->r, g,
                   plan->chunking.most, tiles, fold, to);
    return TT_OK;
}

static tt_status fold_call(const tt_launch *l, int fold, bool may_lanes)
{
    reduce_plan plan;
    const tt_lanes *ln = plan_of(&plan, l->attr, &l->in[0], l->lanes, may_lanes);
    int64_t count = plan.r.count;
    tti_sums out = {{l->out[0].data, l->out[0].data}, l->out[0].dtype, count};
    tti_sums to = {{l->scratch, l->scratch}, TT_F32, count};
    if (is_direct(&plan, ln))
        to = out;
    for (int first = 0; count > 0 && first < ln->n; first += TTI_LANE_GROUP) {
        tti_lane_group g = tti_lane_group_at(ln, first);
        tt_status st = TT_OK;
        TTI_FLOATS(l->in[0].dtype, T, {
            st = plan.r.has_tail ? launch_tails<T>(l, &plan, g, fold, to)
                                 : launch_columns<T>(l, &plan, g, fold, to);
        });
        TT_TRY(st);
    }
    if (!is_direct(&plan, ln))
        tti_chunk_finish(l, ln, plan.chunking, count, fold, out);
    return tti_cuda_launched(l);
}
static tt_status reduce_sum(const tt_launch *l)
{
    return fold_call(l, TTI_FOLD_SUM, true);
}
static tt_status reduce_max(const tt_launch *l)
{
    return fold_call(l, TTI_FOLD_MAX, false);
}
static tt_status reduce_min(const tt_launch *l)
{
    return fold_call(l, TTI_FOLD_MIN, false);
}

// ---- which element it was --------------------------------------------------------------------

// The best element so far: the first NaN, or the greatest, of equals the first. Below all: -inf, at
// 0.
struct place {
    float value;
    int64_t at;
};

// Whether a value comes before the best, wherever they are.
__device__ static inline bool is_above(float value, float best)
{
    return best == best && !(value <= best);
}
__device__ static inline void take(place &best, float value, int64_t at)
{
    bool is_equal = value == best.value || (value != value && best.value != best.value);
    if (is_above(value, best.value) || (is_equal && at < best.at)) {
        best.value = value;
        best.at = at;
    }
}

template <int G> __device__ static inline place group_place(place best)
{
    __shared__ float value[TTI_ROW_THREADS / 32];
    __shared__ int64_t at[TTI_ROW_THREADS / 32];
    for (int k = 16; k > 0; k >>= 1) {
        float v = __shfl_xor_sync(0xffffffffu, best.value, k);
        take(best, v, (int64_t)__shfl_xor_sync(0xffffffffu, (long long)best.at, k));
    }
    if (G == 32)
        return best;
    __syncthreads(); // they may still be read for the output before
    if (threadIdx.x % 32 == 0) {
        value[threadIdx.x / 32] = best.value;
        at[threadIdx.x / 32] = best.at;
    }
    __syncthreads();
    for (int i = 0; i < G / 32; i++)
        take(best, value[i], at[i]);
    return best;
}

// Either y is asked for, the place of the greatest; or dx, which is dy where x first equals max, a
// NaN being equal to a NaN.
template <class T> struct locate_args {
    const T *x, *max, *dy;
    T *dx;
    int32_t *y;
};

template <class T>
__device__ static inline float score(const locate_args<T> &a, int64_t at, float max)
{
    float v = tti_get(a.x[at]);
    bool is_it = v == max || (v != v && max != max);
    return a.max == NULL ? v : is_it ? 1.0f : tti_float(0xff800000u);
}

// Output i has its element `best`, whose offset in x is `at`.
template <class T>
__device__ static inline void put_place(const locate_args<T> &a, int64_t i, place best, int64_t at)
{
    if (a.max == NULL)
        a.y[i] = (int32_t)best.at;
    else if (best.value == 1.0f)
        a.dx[at] = a.dy[i];
}

template <class T>
__global__ static void __launch_bounds__(TTI_ROW_THREADS)
    locate_tails(const locate_args<T> a, const tti_reduction r)
{
    const int G = TTI_ROW_THREADS;
    lane_part p = part_of(r, 0, 0);
    for (int64_t i = blockIdx.x; i < r.outer; i += gridDim.x) {
        int64_t from = kept_offset(r.keep, i);
        float max = a.max != NULL ? tti_get(a.max[i]) : 0;
        place best = {tti_float(0xff800000u), 0};
        each_element<G>(r, p, 0, p.n * p.n_rows, [&](int64_t at, int64_t e) {
            float s = score(a, from + at, max);
            if (is_above(s, best.value)) { // a thread's own elements ascend
                best.value = s;
                best.at = e;
            }
        });
        best = group_place<G>(best);
        if (threadIdx.x == 0)
            put_place(a, i, best, from + row_offset(r, p, best.at / p.n) + best.at % p.n);
    }
}

// A thread has an output.
template <class T>
__global__ static void __launch_bounds__(256)
    locate_columns(const locate_args<T> a, const tti_reduction r)
{
    lane_part p = part_of(r, 0, 0);
    for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < r.count;
         i += (int64_t)gridDim.x * 256) {
        int64_t from = kept_offset(r.keep, i / r.cols) + i % r.cols;
        float max = a.max != NULL ? tti_get(a.max[i]) : 0;
        place best = {tti_float(0xff800000u), 0};
        for (int64_t k = 0; k < p.n_rows; k++) {
            float s = score(a, from + row_offset(r, p, k), max);
            if (is_above(s, best.value)) {
                best.value = s;
                best.at = k;
            }
        }
        put_place(a, i, best, from + row_offset(r, p, best.at));
    }
}

static tt_status locate(const tt_launch *l, bool is_grad)
{
    tti_reduction r = tti_reduction_of((const tti_reduce_attr *)l->attr, &l->in[0]);
    r.lane_tail = false;
    r.lane_sum = -1;
    if (is_grad)
        TT_TRY(tti_cuda_zero(l, l->out[0].data,
                             (size_t)l->out[0].count * (l->out[0].dtype == TT_F32 ? 4 : 2)));
    if (l->in[0].count == 0)
        return is_grad ? TT_OK : tti_cuda_zero(l, l->out[0].data, (size_t)r.count * 4);
    TTI_FLOATS(l->in[0].dtype, T, {
        locate_args<T> a = {(const T *)l->in[0].data, NULL, NULL, NULL, NULL};
        if (is_grad) {
            a.max = (const T *)l->in[1].data;
            a.dy = (const T *)l->in[2].data;
            a.dx = (T *)l->out[0].data;
        } else {
            a.y = (int32_t *)l->out[0].data;
        }
        if (r.has_tail)
            TTI_LAUNCH(l, tti_blocks(l, r.outer, 1), TTI_ROW_THREADS, 0, (locate_tails<T>), a, r);
        else
            TTI_LAUNCH(l, tti_blocks(l, r.count, 256), 256, 0, (locate_columns<T>), a, r);
    });
    return tti_cuda_launched(l);
}
static tt_status reduce_max_grad(const tt_launch *l)
{
    return locate(l, true);
}
static tt_status reduce_argmax(const tt_launch *l)
{
    return locate(l, false);
}

static tt_status prepare_locate(tt_prep *p)
{
    if (p->in[0].dtype == TT_F64)
        return TT_FAIL(p->ctx, TT_EUNSUPPORTED, "%s: %s of f64 is not available on a GPU",
                       p->node->name, p->node->op->name);
    p->units[0] = p->in[0].count;
    return TT_OK;
}

// ---- count -----------------------------------------------------------------------------------

__global__ static void put_number(void *y, bool is_f64, double n)
{
    if (is_f64)
        *(double *)y = n;
    else
        *(float *)y = (float)n;
}

static tt_status prepare_count(tt_prep *p)
{
    p->units[0] = 1;
    return TT_OK;
}

static tt_status reduce_count(const tt_launch *l)
{
    const tti_count_attr *a = (const tti_count_attr *)l->attr;
    const tt_arg *x = &l->in[0];
    double n = 1;
    for (int i = 0; i < x->shape.rank; i++)
        if (tti_is_reduced(&a->reduce, i))
            n *= (double)(i == x->open ? l->lanes->global_rows * x->per : x->shape.dim[i]);
    TTI_LAUNCH(l, 1, 1, 0, put_number, l->out[0].data, l->out[0].dtype == TT_F64, n);
    return tti_cuda_launched(l);
}

extern "C" const tti_cuda_row tti_cuda_reduce[] = {
    TTI_ROW("sum", prepare_sum, reduce_sum),
    TTI_ROW("max", prepare_max, reduce_max),
    TTI_ROW("min", prepare_max, reduce_min),
    TTI_ROW("max_grad", prepare_locate, reduce_max_grad),
    TTI_ROW("argmax", prepare_locate, reduce_argmax),
    TTI_ROW_TYPES("count", prepare_count, reduce_count, 1u << TT_F32 | 1u << TT_F64),
    TTI_ROWS_END,
};
