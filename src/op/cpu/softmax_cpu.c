/*
 * softmax_cpu.c - kernels of softmax.c; compiled once per instruction set. A unit is a row. Each
 * row is walked from its start as vectors of sixteen, so element j falls to partial j mod 16;
 * places past the end of the row are left out of sums and maxima.
 */
#include "op/cpu/softexp.h"
#include "op/cpu/stream.h"
#include "op/rows.h"
#include "op/softmax.h"

#if defined(TTI_SET_F64)
#define LOWEST (-DBL_MAX)
#else
#define LOWEST (-FLT_MAX)
#endif

typedef const real *in_row;

static inline real *row_of(const tt_arg *a, int64_t r)
{
    return (real *)a->data + r * a->cols;
}

static inline real number_of(const tt_arg *a, int64_t r)
{
    return ((const real *)a->data)[r];
}

// A maximum may be taken in any order: + 0 at its end removes the sign of a zero.
static inline real row_max(in_row x, int64_t n)
{
    v16 low = v16_set1(LOWEST), m0 = low, m1 = low, m2 = low, m3 = low;
    int64_t j = 0;
    for (; j + 64 <= n; j += 64) {
        m0 = v16_max(m0, v16_load(x + j));
        m1 = v16_max(m1, v16_load(x + j + 16));
        m2 = v16_max(m2, v16_load(x + j + 32));
        m3 = v16_max(m3, v16_load(x + j + 48));
    }
    for (; j + 16 <= n; j += 16)
        m0 = v16_max(m0, v16_load(x + j));
    if (j < n)
        m1 = v16_max(m1, v16_if(m16_first((int)(n - j)), v16_load_n(x + j, (int)(n - j)), low));
    return v16_max_of(v16_max(v16_max(m0, m1), v16_max(m2, m3)));
}

// sum exp(x - max)
static inline real row_exp_sum(in_row x, int64_t n, real max)
{
    v16 m = v16_set1(max), sum = v16_zero();
    int64_t j = 0;
    for (; j + 16 <= n; j += 16) {
        tti_ahead(x + n + j); // the next row comes while this one is worked on
        sum = v16_add(sum, v16_softexp(v16_sub(v16_load(x + j), m)));
    }
    if (j < n) {
        v16 e = v16_softexp(v16_sub(v16_load_n(x + j, (int)(n - j)), m));
        sum = v16_add(sum, v16_if(m16_first((int)(n - j)), e, v16_zero()));
    }
    return v16_sum(sum);
}

tt_status TTI_ISA(softmax)(const tt_launch *l)
{
    int64_t n = l->in[0].cols;
    for (int64_t r = l->begin; r < l->end; r++) {
        in_row x = row_of(&l->in[0], r);
        real *y = row_of(&l->out[0], r);
        v16 m = v16_set1(row_max(x, n)), sum = v16_zero();
        int64_t j = 0;
        for (; j + 16 <= n; j += 16) {
            tti_ahead(x + n + j);
            v16 e = v16_softexp(v16_sub(v16_load(x + j), m));
            sum = v16_add(sum, e);
            v16_store(y + j, e);
        }
        int tail = (int)(n - j);
        v16 last = v16_softexp(v16_sub(v16_load_n(x + j, tail), m));
        last = v16_if(m16_first(tail), last, v16_zero());
        v16 inv = v16_set1(1 / v16_sum(v16_add(sum, last)));
        for (j = 0; j + 16 <= n; j += 16)
            v16_store(y + j, v16_mul(v16_load(y + j), inv));
        v16_store_n(y + j, v16_mul(last, inv), tail);
    }
    return TT_OK;
}

// dx = y (dy - sum(y dy)); the sum by fused multiply-adds into sixteen partials.
tt_status TTI_ISA(softmax_grad)(const tt_launch *l)
{
    int64_t n = l->in[0].cols;
    bool stream = tti_is_stream(&l->out[0], &l->in[0]) && l->out[0].data != l->in[1].data;
    for (int64_t r = l->begin; r < l->end; r++) {
        in_row y = row_of(&l->in[0], r), dy = row_of(&l->in[1], r);
        real *dx = row_of(&l->out[0], r);
        v16 sum = v16_zero();
        int64_t j = 0;
        for (; j + 16 <= n; j += 16)
            sum = v16_fma(v16_load(y + j), v16_load(dy + j), sum);
        int tail = (int)(n - j);
        v16 last_y = v16_load_n(y + j, tail), last_dy = v16_load_n(dy + j, tail);
        v16 dot = v16_set1(v16_sum(v16_fma(last_y, last_dy, sum)));
        for (j = 0; j + 16 <= n; j += 16) {
            tti_ahead(y + n + j);
            tti_ahead(dy + n + j);
            v16 d = v16_mul(v16_load(y + j), v16_sub(v16_load(dy + j), dot));
            if (stream)
                v16_stream(dx + j, d);
            else
                v16_store(dx + j, d);
        }
        v16_store_n(dx + j, v16_mul(last_y, v16_sub(last_dy, dot)), tail);
    }
    if (stream)
        tti_stream_end();
    return TT_OK;
}

tt_status TTI_ISA(log_softmax)(const tt_launch *l)
{
    int64_t n = l->in[0].cols;
    for (int64_t r = l->begin; r < l->end; r++) {
        in_row x = row_of(&l->in[0], r);
        real *y = row_of(&l->out[0], r);
        real max = row_max(x, n);
        v16 m = v16_set1(max), ls = v16_set1(r_log(row_exp_sum(x, n, max)));
        int64_t j = 0;
        for (; j + 16 <= n; j += 16)
            v16_store(y + j, v16_sub(v16_sub(v16_load(x + j), m), ls));
        int tail = (int)(n - j);
        v16_store_n(y + j, v16_sub(v16_sub(v16_load_n(x + j, tail), m), ls), tail);
    }
    return TT_OK;
}

// dx = fma(-exp(y), sum(dy), dy)
tt_status TTI_ISA(log_softmax_grad)(const tt_launch *l)
{
    int64_t n = l->in[0].cols;
    for (int64_t r = l->begin; r < l->end; r++) {
        in_row y = row_of(&l->in[0], r), dy = row_of(&l->in[1], r);
        real *dx = row_of(&l->out[0], r);
        v16 sum = v16_zero();
        int64_t j = 0;
        for (; j + 16 <= n; j += 16)
            sum = v16_add(sum, v16_load(dy + j));
        int tail = (int)(n - j);
        v16 last = v16_load_n(dy + j, tail);
        v16 minus = v16_neg(v16_set1(v16_sum(v16_add(sum, last))));
        for (j = 0; j + 16 <= n; j += 16)
            v16_store(dx + j, v16_fma(v16_softexp(v16_load(y + j)), minus, v16_load(dy + j)));
        v16_store_n(dx + j, v16_fma(v16_softexp(v16_load_n(y + j, tail)), minus, last), tail);
    }
    return TT_OK;
}

// ---- cross entropy ---------------------------------------------------------------------------

static inline int is_dense(const tt_arg *t)
{
    return t->dtype == TT_F32 || t->dtype == TT_F64;
}

// The label of row r; *ignored tells that the row gives nothing.
static inline tt_status read_label(const tt_launch *l, int64_t r, int64_t *label, bool *ignored)
{
    const tti_cross_entropy_attr *a = l->attr;
    const tt_arg *t = &l->in[1];
    if (t->dtype == TT_I64)
        *label = ((const int64_t *)t->data)[r];
    else if (t->dtype == TT_I32)
        *label = ((const int32_t *)t->data)[r];
    else
        *label = ((const uint8_t *)t->data)[r];
    *ignored = a->has_ignore && *label == a->ignore;
    if (*ignored)
        *label = 0; // it may be no class
    if (!*ignored && (*label < 0 || *label >= l->in[0].cols))
        return TT_FAIL(l->ctx, TT_EINVAL,
                       "%s: the label of row %lld is %lld, which is not in [0, %lld)",
                       l->node->name, (long long)r, (long long)*label, (long long)l->in[0].cols);
    return TT_OK;
}

// sum_j ((max - x_j) + ls), for smoothing.
static inline real row_nll_sum(in_row x, int64_t n, real max, real ls)
{
    v16 m = v16_set1(max), s = v16_set1(ls), sum = v16_zero();
    int64_t j = 0;
    for (; j + 16 <= n; j += 16)
        sum = v16_add(sum, v16_add(v16_sub(m, v16_load(x + j)), s));
    v16 last = v16_add(v16_sub(m, v16_load_n(x + j, (int)(n - j))), s);
    return v16_sum(v16_add(sum, v16_if(m16_first((int)(n - j)), last, v16_zero())));
}

// sum_j t'_j ((max - x_j) + ls), t' = fma(keep, t, even)
static inline real row_dense_loss(in_row x, in_row t, int64_t n, real max, real ls, real keep,
                                  real even)
{
    v16 m = v16_set1(max), s = v16_set1(ls), k = v16_set1(keep), e = v16_set1(even);
    v16 sum = v16_zero();
    for (int64_t j = 0; j < n; j += 16) {
        int w = n - j < 16 ? (int)(n - j) : 16;
        v16 target = v16_fma(k, v16_load_n(t + j, w), e);
        target = v16_if(m16_first(w), target, v16_zero());
        sum = v16_fma(target, v16_add(v16_sub(m, v16_load_n(x + j, w)), s), sum);
    }
    return v16_sum(sum);
}

tt_status TTI_ISA(cross_entropy)(const tt_launch *l)
{
    const tti_cross_entropy_attr *a = l->attr;
    int64_t n = l->in[0].cols;
    real keep = (real)(1 - a->smoothing), even = (real)(a->smoothing / (double)n);
    int dense = is_dense(&l->in[1]);
    for (int64_t r = l->begin; r < l->end; r++) {
        in_row x = row_of(&l->in[0], r);
        int64_t k = 0;
        bool ignored = false;
        if (!dense)
            TT_TRY(read_label(l, r, &k, &ignored));
        real max = row_max(x, n), sum = row_exp_sum(x, n, max), ls = r_log(sum), loss;
        if (dense)
            loss = row_dense_loss(x, row_of(&l->in[1], r), n, max, ls, keep, even);
        else if (a->smoothing > 0)
            loss = r_fma(keep, (max - x[k]) + ls, even * row_nll_sum(x, n, max, ls));
        else
            loss = (max - x[k]) + ls;
        ((real *)l->out[0].data)[r] = ignored ? 0 : loss;
        ((real *)l->out[1].data)[r] = max;
        ((real *)l->out[2].data)[r] = sum;
    }
    return TT_OK;
}

// dx_j = fma(exp(x_j - max), dloss / sum, -(even dloss)), then - keep dloss at the label.
static inline void row_label_grad(in_row x, real *dx, int64_t n, real max, real scale, real minus,
                                  bool stream)
{
    v16 m = v16_set1(max), g = v16_set1(scale), b = v16_set1(minus);
    int64_t j = 0;
    for (; stream && j < n; j += 16)
        v16_stream(dx + j, v16_fma(v16_softexp(v16_sub(v16_load(x + j), m)), g, b));
    for (; j + 16 <= n; j += 16)
        v16_store(dx + j, v16_fma(v16_softexp(v16_sub(v16_load(x + j), m)), g, b));
    int tail = (int)(n - j);
    v16_store_n(dx + j, v16_fma(v16_softexp(v16_sub(v16_load_n(x + j, tail), m)), g, b), tail);
}

// dx_j = fma(exp(x_j - max), (T dloss) / sum, -(t'_j dloss)), T = sum t'
static inline void row_dense_grad(in_row x, in_row t, real *dx, int64_t n, real max, real sum,
                                  real dloss, real keep, real even)
{
    v16 k = v16_set1(keep), e = v16_set1(even), total = v16_zero();
    for (int64_t j = 0; j < n; j += 16) {
        int w = n - j < 16 ? (int)(n - j) : 16;
        v16 target = v16_fma(k, v16_load_n(t + j, w), e);
        total = v16_add(total, v16_if(m16_first(w), target, v16_zero()));
    }
    v16 m = v16_set1(max), g = v16_set1(v16_sum(total) * dloss / sum), minus = v16_set1(-dloss);
    for (int64_t j = 0; j < n; j += 16) {
        int w = n - j < 16 ? (int)(n - j) : 16;
        v16 target = v16_fma(k, v16_load_n(t + j, w), e);
        v16 p = v16_softexp(v16_sub(v16_load_n(x + j, w), m));
        v16_store_n(dx + j, v16_fma(p, g, v16_mul(target, minus)), w);
    }
}

tt_status TTI_ISA(cross_entropy_grad)(const tt_launch *l)
{
    const tti_cross_entropy_attr *a = l->attr;
    int64_t n = l->in[0].cols;
    real keep = (real)(1 - a->smoothing), even = (real)(a->smoothing / (double)n);
    int dense = is_dense(&l->in[1]);
    bool stream = tti_is_stream(&l->out[0], &l->in[0]);
    for (int64_t r = l->begin; r < l->end; r++) {
        in_row x = row_of(&l->in[0], r);
        real *dx = row_of(&l->out[0], r);
        real max = number_of(&l->in[2], r), sum = number_of(&l->in[3], r);
        real dloss = number_of(&l->in[4], r);
        int64_t k = 0;
        bool ignored = false;
        if (dense) {
            row_dense_grad(x, row_of(&l->in[1], r), dx, n, max, sum, dloss, keep, even);
            continue;
        }
        TT_TRY(read_label(l, r, &k, &ignored));
        if (ignored) {
            memset(dx, 0, sizeof(real) * (size_t)n);
            continue;
        }
        row_label_grad(x, dx, n, max, dloss / sum, -(even * dloss), stream);
        dx[k] = r_fma(-keep, dloss, dx[k]);
    }
    if (stream)
        tti_stream_end();
    return TT_OK;
}
