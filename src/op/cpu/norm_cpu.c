/*
 * norm_cpu.c - kernels of norm.c; compiled once per instruction set. One source for both norms: rms
 * is a constant at every call and folds away, and so does the absence of gamma and beta.
 */
#include "op/cpu/lanes.h"
#include "op/cpu/stream.h"
#include "op/norm.h"
#include "op/rows.h"

// Columns j up to 16 more of a row; past the end zero.
TTI_INLINE v16 get(const real *p, int64_t j, int w)
{
    return w == 16 ? v16_load(p + j) : v16_load_n(p + j, w);
}
TTI_INLINE void put(real *p, int64_t j, int w, v16 a, int stream)
{
    if (stream)
        v16_stream(p + j, a);
    else if (w == 16)
        v16_store(p + j, a);
    else
        v16_store_n(p + j, a, w);
}
TTI_INLINE int width(int64_t n, int64_t j)
{
    return n - j < 16 ? (int)(n - j) : 16;
}

// ---- forward ---------------------------------------------------------------------------------

typedef struct norm_in {
    const real *gamma, *beta; // NULL: none
    real eps;
    int64_t n;
} norm_in;

// What the last step makes of xh.
TTI_INLINE v16 end_norm(const norm_in *p, v16 h, int64_t j, int w)
{
    if (p->gamma != NULL && p->beta != NULL)
        return v16_fma(h, get(p->gamma, j, w), get(p->beta, j, w));
    if (p->gamma != NULL)
        return v16_mul(h, get(p->gamma, j, w));
    return p->beta != NULL ? v16_add(h, get(p->beta, j, w)) : h;
}

#if defined(TTI_SET_F64)
#define FAR   0x1p-600
#define BACK  0x1p+600
#define LEAST DBL_MIN
#else
#define FAR   0x1p-100f
#define BACK  0x1p+100f
#define LEAST FLT_MIN
#endif

/*
 * A row whose squares overflow is normed as FAR times itself, a power of two, beside whose variance
 * eps is nothing. Rare, so it stands apart.
 */
static __attribute__((noinline, cold)) void norm_row_far(const norm_in *p, const real *x, real *y,
                                                         real *mean_out, real *rstd_out)
{
    int64_t n = p->n;
    v16 far = v16_set1(FAR), m = v16_zero(), acc = v16_zero();
    if (mean_out != NULL) {
        for (int64_t j = 0; j < n; j += 16)
            acc = v16_add(acc, v16_mul(get(x, j, width(n, j)), far));
        real mean = v16_sum(acc) / (real)n;
        *mean_out = mean * BACK;
        m = v16_set1(mean);
    }
    acc = v16_zero();
    for (int64_t j = 0; j < n; j += 16) {
        v16 d = v16_sub(v16_mul(get(x, j, width(n, j)), far), m);
        d = v16_if(m16_first(width(n, j)), d, v16_zero());
        acc = v16_fma(d, d, acc);
    }
    // LEAST: if all entries are alike y is beta
    real rstd = 1 / r_sqrt(v16_sum(acc) / (real)n + LEAST);
    *rstd_out = rstd * FAR;
    v16 s = v16_set1(rstd);
    for (int64_t j = 0; j < n; j += 16) {
        int w = width(n, j);
        v16 h = v16_mul(v16_sub(v16_mul(get(x, j, w), far), m), s);
        put(y, j, w, end_norm(p, h, j, w), 0);
    }
}

TTI_INLINE void norm_row(const norm_in *p, const real *x, real *y, real *mean_out, real *rstd_out,
                         int rms, int stream)
{
    int64_t n = p->n, whole = n - n % 16;
    int tail = (int)(n - whole);
    real mean = 0;
    v16 acc = v16_zero();
    if (!rms) {
        for (int64_t j = 0; j < whole; j += 16)
            acc = v16_add(acc, v16_load(x + j));
        mean = v16_sum(v16_add(acc, v16_load_n(x + whole, tail))) / (real)n;
        *mean_out = mean;
    }
    v16 m = v16_set1(mean), last = v16_load_n(x + whole, tail);
    if (!rms)
        last = v16_if(m16_first(tail), v16_sub(last, m), v16_zero());
    acc = v16_zero();
    for (int64_t j = 0; j < whole; j += 16) {
        v16 d = rms ? v16_load(x + j) : v16_sub(v16_load(x + j), m);
        acc = v16_fma(d, d, acc);
    }
    real squares = v16_sum(v16_fma(last, last, acc));
    if (!(squares < (real)__builtin_inf())) {
        norm_row_far(p, x, y, rms ? NULL : mean_out, rstd_out);
        return;
    }
    real rstd = 1 / r_sqrt(squares / (real)n + p->eps);
    *rstd_out = rstd;
    v16 s = v16_set1(rstd);
    for (int64_t j = 0; j < n; j += 16) {
        int w = width(n, j);
        tti_ahead(x + n + j); // the next row comes while this one is worked on
        v16 h = get(x, j, w);
        h = v16_mul(rms ? h : v16_sub(h, m), s);
        put(y, j, w, end_norm(p, h, j, w), stream);
    }
}

TTI_INLINE tt_status norm_rows(const tt_launch *l, int rms)
{
    const tti_norm_attr *a = l->attr;
    norm_in p = {.gamma = a->has_gamma ? l->in[1].data : NULL,
                 .beta = a->has_beta ? l->in[1 + a->has_gamma].data : NULL,
                 .eps = (real)a->eps,
                 .n = l->in[0].cols};
    real *mean = rms ? NULL : l->out[1].data, *rstd = l->out[rms ? 1 : 2].data;
    int stream = tti_is_stream(&l->out[0], &l->in[0]);
    for (int64_t r = l->begin; r < l->end; r++) {
        const real *x = (const real *)l->in[0].data + r * p.n;
        real *y = (real *)l->out[0].data + r * p.n;
        if (stream)
            norm_row(&p, x, y, rms ? NULL : mean + r, rstd + r, rms, 1);
        else
            norm_row(&p, x, y, rms ? NULL : mean + r, rstd + r, rms, 0);
    }
    if (stream)
        tti_stream_end();
    return TT_OK;
}

tt_status TTI_ISA(layer_norm)(const tt_launch *l)
{
    return norm_rows(l, 0);
}

tt_status TTI_ISA(rms_norm)(const tt_launch *l)
{
    return norm_rows(l, 1);
}

// ---- backward --------------------------------------------------------------------------------

typedef struct grad_in {
    const real *x, *dy, *mean, *rstd, *gamma;
    real *dx;
    real *dgamma, *dbeta; // of the lane; NULL: not asked for
    int64_t n;
    int stream; // write dx past the cache
} grad_in;

// Past the end zero, however large mean and rstd are.
TTI_INLINE v16 unit_x(const real *x, int64_t j, int w, v16 m, v16 s, int rms)
{
    v16 h = get(x, j, w);
    h = v16_mul(rms ? h : v16_sub(h, m), s);
    return rms || w == 16 ? h : v16_if(m16_first(w), h, v16_zero());
}

// dx of row r; with sums, the row is also added to dgamma and dbeta.
TTI_INLINE void grad_row(const grad_in *p, int64_t r, int rms, int sums)
{
    int64_t n = p->n;
    const real *x = p->x + r * n, *dy = p->dy + r * n;
    v16 m = v16_set1(rms ? 0 : p->mean[r]), s = v16_set1(p->rstd[r]);
    v16 sum_g = v16_zero(), sum_gh = v16_zero();
    for (int64_t j = 0; j < n; j += 16) {
        int w = width(n, j);
        v16 h = unit_x(x, j, w, m, s, rms), d = get(dy, j, w), g = d;
        if (sums && p->dgamma != NULL)
            put(p->dgamma, j, w, v16_fma(d, h, get(p->dgamma, j, w)), 0);
        if (sums && p->dbeta != NULL)
            put(p->dbeta, j, w, v16_add(get(p->dbeta, j, w), d), 0);
        if (p->gamma != NULL)
            g = v16_mul(d, get(p->gamma, j, w));
        if (!rms)
            sum_g = v16_add(sum_g, g);
        sum_gh = v16_fma(g, h, sum_gh); // past the end both are zero
    }
    v16 a = v16_set1(rms ? 0 : v16_sum(sum_g) / (real)n), b = v16_set1(v16_sum(sum_gh) / (real)n);
    for (int64_t j = 0; j < n; j += 16) {
        int w = width(n, j);
        tti_ahead(x + n + j);
        tti_ahead(dy + n + j);
        v16 h = unit_x(x, j, w, m, s, rms), g = get(dy, j, w);
        if (p->gamma != NULL)
            g = v16_mul(g, get(p->gamma, j, w));
        if (!rms)
            g = v16_sub(g, a);
        put(p->dx + r * n, j, w, v16_mul(v16_fma(v16_neg(h), b, g), s), p->stream);
    }
}

// Adds one row to the sums of columns [begin, end).
TTI_INLINE void sum_row(const grad_in *p, int64_t r, int64_t begin, int64_t end, int rms)
{
    const real *x = p->x + r * p->n, *dy = p->dy + r * p->n;
    v16 m = v16_set1(rms ? 0 : p->mean[r]), s = v16_set1(p->rstd[r]);
    for (int64_t j = begin; j < end; j += 16) {
        int w = width(end, j);
        v16 h = unit_x(x, j, w, m, s, rms), d = get(dy, j, w);
        if (p->dgamma != NULL)
            put(p->dgamma, j, w, v16_fma(d, h, get(p->dgamma, j, w)), 0);
        if (p->dbeta != NULL)
            put(p->dbeta, j, w, v16_add(get(p->dbeta, j, w), d), 0);
    }
}

// + 0 at the end of a lane's chains.
static void end_sums(real *p, int64_t begin, int64_t end)
{
    for (int64_t j = begin; j < end; j++)
        p[j] = r_end(p[j]);
}

static void clear(real *p, int64_t begin, int64_t end)
{
    memset(p + begin, 0, sizeof(real) * (size_t)(end - begin));
}

// A lane's rows for columns [begin, end); with_dx: all columns, and dx too.
TTI_INLINE void grad_lane(const tt_launch *l, grad_in *p, int lane, int64_t begin, int64_t end,
                          int rms, int with_dx)
{
    int n_sums = l->n_out - 1;
    const tti_norm_attr *a = l->attr;
    real *sums = (real *)l->scratch + (int64_t)lane * n_sums * p->n;
    p->dgamma = a->has_gamma ? sums : NULL;
    p->dbeta = a->has_beta ? sums + (n_sums - 1) * p->n : NULL;
    for (int i = 0; i < n_sums; i++)
        clear(sums + i * p->n, begin, end);
    tti_runs runs = tti_lane_runs(&l->in[0], l->lanes, lane);
    for (int64_t k = 0; k < runs.n; k++) {
        int64_t first = runs.first + k * runs.step;
        for (int64_t r = first; r < first + runs.len; r++) {
            if (with_dx)
                grad_row(p, r, rms, 1);
            else
                sum_row(p, r, begin, end, rms);
        }
    }
    for (int i = 0; i < n_sums; i++)
        end_sums(sums + i * p->n, begin, end);
}

// The tree over lanes, for blocks [begin, end) of columns.
static void grad_tree(const tt_launch *l, int64_t n)
{
    int n_sums = l->n_out - 1;
    static const uint8_t no_merge = 0;
    const tt_lanes one = {.n = 1, .n_parts = 1, .merges = &no_merge};
    const tt_lanes *ln = l->in[0].open < 0 ? &one : l->lanes;
    int64_t begin = l->begin * TTI_NORM_COLS, end = l->end * TTI_NORM_COLS;
    for (int i = 0; i < n_sums; i++)
        tti_lane_tree(ln, (const real *)l->scratch + i * n, n_sums * n, l->out[1 + i].data, n,
                      begin, end < n ? end : n);
}

TTI_INLINE tt_status norm_grad(const tt_launch *l, int rms)
{
    const tti_norm_attr *a = l->attr;
    const tti_norm_tune *tune = l->tune;
    int n_stats = rms ? 1 : 2;
    grad_in p = {.x = l->in[0].data,
                 .dy = l->in[1].data,
                 .mean = rms ? NULL : l->in[2].data,
                 .rstd = l->in[1 + n_stats].data,
                 .gamma = a->has_gamma ? l->in[2 + n_stats].data : NULL,
                 .dx = l->out[0].data,
                 .n = l->in[0].cols,
                 .stream =
                     tti_is_stream(&l->out[0], &l->in[0]) && tti_is_stream(&l->out[0], &l->in[1])};
    int64_t blocks = (p.n + TTI_NORM_COLS - 1) / TTI_NORM_COLS;
    if (l->n_out == 1 || (!tune->by_lane && l->phase == 2)) {
        for (int64_t r = l->begin; r < l->end; r++)
            grad_row(&p, r, rms, 0);
    } else if (l->phase == 1) {
        grad_tree(l, p.n);
    } else if (tune->by_lane) {
        for (int64_t u = l->begin; u < l->end; u++)
            grad_lane(l, &p, (int)u, 0, p.n, rms, 1);
    } else {
        for (int64_t u = l->begin; u < l->end; u++) {
            int64_t begin = u % blocks * TTI_NORM_COLS, end = begin + TTI_NORM_COLS;
            grad_lane(l, &p, (int)(u / blocks), begin, end < p.n ? end : p.n, rms, 0);
        }
    }
    if (p.stream)
        tti_stream_end();
    return TT_OK;
}

tt_status TTI_ISA(layer_norm_grad)(const tt_launch *l)
{
    return norm_grad(l, 0);
}

tt_status TTI_ISA(rms_norm_grad)(const tt_launch *l)
{
    return norm_grad(l, 1);
}
