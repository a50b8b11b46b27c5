/*
 * batch_norm_cpu.c - kernels of batch_norm.c; compiled once per instruction set. Vectors run over
 * channels; sums over rows are kept in memory and taken up eight rows at a time, which cuts each
 * chain without changing its order.
 */
#include "op/act.h"
#include "op/batch_norm.h"
#include "op/lanes.h"
#include "op/rows.h"
#include "op/stream.h"

#define ROWS 8

TTI_INLINE v16 get(const real *p, int w)
{
    return w == 16 ? v16_load(p) : v16_load_n(p, w);
}
TTI_INLINE void put(real *p, int w, v16 a)
{
    if (w == 16)
        v16_store(p, a);
    else
        v16_store_n(p, a, w);
}
TTI_INLINE void put_far(real *p, int w, v16 a, int stream)
{
    if (stream)
        v16_stream(p, a);
    else
        put(p, w, a);
}
TTI_INLINE int width(int64_t end, int64_t j)
{
    return end - j < 16 ? (int)(end - j) : 16;
}
TTI_INLINE v16 rstd_of(v16 var, v16 eps)
{
    return v16_div(v16_set1(1), v16_sqrt(v16_add(var, eps)));
}

static const uint8_t no_merge = 0;
static const tt_lanes one_lane = {.n = 1, .n_parts = 1, .merges = &no_merge};

// The channels of unit u of a lane phase, and its lane.
TTI_INLINE int lane_unit(const tt_launch *l, int64_t u, int64_t *begin, int64_t *end)
{
    const tti_batch_norm_tune *tune = l->tune;
    int64_t c = l->in[0].cols, b = u % tune->blocks;
    *begin = tune->blocks == 1 ? 0 : b * TTI_BATCH_NORM_COLS;
    *end = tune->blocks == 1 || *begin + TTI_BATCH_NORM_COLS > c ? c : *begin + TTI_BATCH_NORM_COLS;
    return (int)(u / tune->blocks);
}

static void clear(real *p, int64_t begin, int64_t end)
{
    memset(p + begin, 0, sizeof(real) * (size_t)(end - begin));
}

// ---- statistics ------------------------------------------------------------------------------

TTI_INLINE void add_rows(const real *x, int64_t c, int rows, real *sum, int64_t begin, int64_t end)
{
    for (int64_t j = begin; j < end; j += 16) {
        int w = width(end, j);
        v16 s = get(sum + j, w);
        for (int r = 0; r < rows; r++)
            s = v16_add(s, get(x + r * c + j, w));
        put(sum + j, w, s);
    }
}

TTI_INLINE void add_squares(const real *x, int64_t c, int rows, const real *mean, real *m2,
                            int64_t begin, int64_t end)
{
    for (int64_t j = begin; j < end; j += 16) {
        int w = width(end, j);
        v16 s = get(m2 + j, w), m = get(mean + j, w);
        for (int r = 0; r < rows; r++) {
            v16 d = v16_sub(get(x + r * c + j, w), m);
            s = v16_fma(d, d, s);
        }
        put(m2 + j, w, s);
    }
}

// mean and M2 of a lane, for channels [begin, end).
static void lane_stats(const tt_launch *l, int lane, int64_t begin, int64_t end)
{
    const real *x = l->in[0].data;
    int64_t c = l->in[0].cols;
    real *mean = (real *)l->scratch + 2 * c * lane, *m2 = mean + c;
    tti_runs runs = tti_lane_runs(&l->in[0], l->lanes, lane);
    clear(mean, begin, end);
    clear(m2, begin, end);
    if (runs.n * runs.len == 0)
        return;
    for (int walk = 0; walk < 2; walk++) {
        for (int64_t k = 0; k < runs.n; k++) {
            int64_t r = runs.first + k * runs.step, last = r + runs.len;
            for (; r < last; r += ROWS) {
                int rows = last - r < ROWS ? (int)(last - r) : ROWS;
                if (walk == 0)
                    add_rows(x + r * c, c, rows, mean, begin, end);
                else
                    add_squares(x + r * c, c, rows, mean, m2, begin, end);
            }
        }
        for (int64_t j = begin; j < end; j++) {
            if (walk == 0)
                mean[j] = r_end(mean[j]) / (real)(runs.n * runs.len);
            else
                m2[j] = r_end(m2[j]);
        }
    }
}

typedef struct moments {
    int64_t n;
    v16 mean, m2;
} moments;

TTI_INLINE moments merge(moments a, moments b)
{
    if (b.n == 0)
        return a;
    if (a.n == 0)
        return b;
    real w = (real)b.n / (real)(a.n + b.n);
    v16 d = v16_sub(b.mean, a.mean);
    return (moments){a.n + b.n, v16_fma(d, v16_set1(w), a.mean),
                     v16_fma(v16_mul(d, d), v16_set1((real)a.n * w), v16_add(a.m2, b.m2))};
}

// The tree over lanes for channels [begin, end): mean, var, unbiased.
static void merge_stats(const tt_launch *l, int64_t begin, int64_t end)
{
    int64_t c = l->in[0].cols;
    const tt_lanes *ln = l->in[0].open < 0 ? &one_lane : l->lanes;
    for (int64_t j = begin; j < end; j += 16) {
        int w = width(end, j), depth = 0;
        moments stack[TTI_LANE_DEPTH];
        for (int i = 0; i < ln->n; i++) {
            const real *p = (const real *)l->scratch + 2 * c * i + j;
            tti_runs runs = tti_lane_runs(&l->in[0], l->lanes, i);
            stack[depth++] = (moments){runs.n * runs.len, get(p, w), get(p + c, w)};
            for (int m = 0; m < ln->merges[i]; m++, depth--)
                stack[depth - 2] = merge(stack[depth - 2], stack[depth - 1]);
        }
        if (ln->n != ln->total && l->in[0].open >= 0) { // parts: raw, to be merged
            for (int k = 0; k < depth; k++) {
                put((real *)l->out[0].data + k * c + j, w, stack[k].mean);
                put((real *)l->out[1].data + k * c + j, w, stack[k].m2);
                put((real *)l->out[2].data + k * c + j, w, stack[k].m2);
            }
            continue;
        }
        moments all = stack[0];
        real n = (real)(all.n > 0 ? all.n : 1), less = (real)(all.n > 1 ? all.n - 1 : 1);
        put((real *)l->out[0].data + j, w, v16_end(all.mean));
        put((real *)l->out[1].data + j, w, v16_end(v16_div(all.m2, v16_set1(n))));
        put((real *)l->out[2].data + j, w, v16_end(v16_div(all.m2, v16_set1(less))));
    }
}

// Channels of the units of a tree phase.
TTI_INLINE int64_t tree_end(const tt_launch *l)
{
    int64_t end = l->end * TTI_BATCH_NORM_COLS;
    return end < l->in[0].cols ? end : l->in[0].cols;
}

tt_status TTI_ISA(batch_norm_stats)(const tt_launch *l)
{
    if (l->phase == 1) {
        merge_stats(l, l->begin * TTI_BATCH_NORM_COLS, tree_end(l));
        return TT_OK;
    }
    for (int64_t u = l->begin; u < l->end; u++) {
        int64_t begin, end;
        int lane = lane_unit(l, u, &begin, &end);
        lane_stats(l, lane, begin, end);
    }
    return TT_OK;
}

// ---- apply -----------------------------------------------------------------------------------

typedef struct apply_in {
    const real *x, *residual, *mean, *scale, *beta; // residual NULL: none
    real *y;
    int64_t c;
} apply_in;

TTI_INLINE void apply_rows(const apply_in *p, int64_t begin, int64_t end, int act, int stream)
{
    for (int64_t r = begin; r < end; r++) {
        int64_t at = r * p->c;
        for (int64_t j = 0; j < p->c; j += 16) {
            int w = width(p->c, j);
            v16 z = v16_fma(v16_sub(get(p->x + at + j, w), get(p->mean + j, w)),
                            get(p->scale + j, w), get(p->beta + j, w));
            if (p->residual != NULL)
                z = v16_add(z, get(p->residual + at + j, w));
            put_far(p->y + at + j, w, v16_act(act, z), stream);
        }
    }
}

// scale = gamma rstd of every channel, into the thread's own memory.
static real *make_scale(const tt_launch *l, const real *var, const real *gamma)
{
    const tti_batch_norm_attr *a = l->attr;
    int64_t c = l->in[0].cols;
    real *scale = (real *)l->local;
    for (int64_t j = 0; j < c; j += 16) {
        int w = width(c, j);
        put(scale + j, w,
            v16_mul(get(gamma + j, w), rstd_of(get(var + j, w), v16_set1((real)a->eps))));
    }
    return scale;
}

tt_status TTI_ISA(batch_norm_apply)(const tt_launch *l)
{
    const tti_batch_norm_attr *a = l->attr;
    apply_in p = {.x = l->in[0].data,
                  .residual = a->has_residual ? l->in[5].data : NULL,
                  .mean = l->in[1].data,
                  .scale = make_scale(l, l->in[2].data, l->in[3].data),
                  .beta = l->in[4].data,
                  .y = l->out[0].data,
                  .c = l->in[0].cols};
    int stream = tti_is_stream(&l->out[0], &l->in[0]) && p.y != p.residual;
    if (a->act == TT_LINEAR)
        apply_rows(&p, l->begin, l->end, TT_LINEAR, stream);
    else if (a->act == TT_RELU)
        apply_rows(&p, l->begin, l->end, TT_RELU, stream);
    else
        apply_rows(&p, l->begin, l->end, a->act, stream);
    if (stream)
        tti_stream_end();
    return TT_OK;
}

// ---- gradients -------------------------------------------------------------------------------

// dgamma and dbeta of a lane, for channels [begin, end).
static void lane_sums(const tt_launch *l, int lane, int64_t begin, int64_t end)
{
    const tti_batch_norm_attr *a = l->attr;
    const real *x = l->in[0].data, *dz = l->in[1].data, *mean = l->in[2].data;
    const real *var = l->in[3].data;
    int64_t c = l->in[0].cols;
    real *dgamma = (real *)l->scratch + 2 * c * lane, *dbeta = dgamma + c;
    tti_runs runs = tti_lane_runs(&l->in[0], l->lanes, lane);
    clear(dgamma, begin, end);
    clear(dbeta, begin, end);
    for (int64_t k = 0; k < runs.n; k++) {
        int64_t first = runs.first + k * runs.step, last = first + runs.len;
        for (int64_t r = first; r < last; r += ROWS) {
            int rows = last - r < ROWS ? (int)(last - r) : ROWS;
            for (int64_t j = begin; j < end; j += 16) {
                int w = width(end, j);
                v16 m = get(mean + j, w), g = get(dgamma + j, w), b = get(dbeta + j, w);
                v16 s = rstd_of(get(var + j, w), v16_set1((real)a->eps));
                for (int i = 0; i < rows; i++) {
                    v16 d = get(dz + (r + i) * c + j, w);
                    g = v16_fma(d, v16_mul(v16_sub(get(x + (r + i) * c + j, w), m), s), g);
                    b = v16_add(b, d);
                }
                put(dgamma + j, w, g);
                put(dbeta + j, w, b);
            }
        }
    }
    for (int64_t j = begin; j < end; j++) {
        dgamma[j] = r_end(dgamma[j]);
        dbeta[j] = r_end(dbeta[j]);
    }
}

tt_status TTI_ISA(batch_norm_sums)(const tt_launch *l)
{
    int64_t c = l->in[0].cols;
    if (l->phase == 1) {
        const tt_lanes *ln = l->in[0].open < 0 ? &one_lane : l->lanes;
        for (int i = 0; i < 2; i++)
            tti_lane_tree(ln, (const real *)l->scratch + i * c, 2 * c, l->out[i].data, c,
                          l->begin * TTI_BATCH_NORM_COLS, tree_end(l));
        return TT_OK;
    }
    for (int64_t u = l->begin; u < l->end; u++) {
        int64_t begin, end;
        int lane = lane_unit(l, u, &begin, &end);
        lane_sums(l, lane, begin, end);
    }
    return TT_OK;
}

tt_status TTI_ISA(batch_norm_dx)(const tt_launch *l)
{
    const tti_batch_norm_attr *a = l->attr;
    int64_t c = l->in[0].cols;
    const real *x = l->in[0].data, *dz = l->in[1].data, *mean = l->in[2].data;
    const real *var = l->in[3].data;
    const real *scale = make_scale(l, var, l->in[4].data);
    real *dx = l->out[0].data, *by_mean = (real *)l->local + c + 16, *by_x = by_mean + c;
    v16 n = v16_set1((real)tti_global_rows(&l->in[0], l->lanes));
    int stream = tti_is_stream(&l->out[0], &l->in[0]) && dx != dz;
    for (int64_t j = 0; !a->fixed && j < c; j += 16) {
        int w = width(c, j);
        v16 s = rstd_of(get(var + j, w), v16_set1((real)a->eps));
        put(by_mean + j, w, v16_div(get((const real *)l->in[6].data + j, w), n));
        put(by_x + j, w, v16_mul(v16_div(get((const real *)l->in[5].data + j, w), n), s));
    }
    for (int64_t r = l->begin; r < l->end; r++) {
        for (int64_t j = 0; j < c; j += 16) {
            int w = width(c, j);
            v16 t = get(dz + r * c + j, w);
            if (!a->fixed) {
                v16 d = v16_sub(get(mean + j, w), get(x + r * c + j, w));
                t = v16_fma(d, get(by_x + j, w), v16_sub(t, get(by_mean + j, w)));
            }
            put_far(dx + r * c + j, w, v16_mul(t, get(scale + j, w)), stream);
        }
    }
    if (stream)
        tti_stream_end();
    return TT_OK;
}

tt_status TTI_ISA(batch_norm_running)(const tt_launch *l)
{
    const tti_batch_norm_attr *a = l->attr;
    const real *old = l->in[0].data, *now = l->in[1].data;
    real *y = l->out[0].data, keep = (real)a->momentum, rest = (real)(1 - a->momentum);
    const float *go = l->n_in == 3 ? l->in[2].data : NULL;
    if (go != NULL && *go != *go)
        return TT_OK; // the step is not applied
    for (int64_t j = l->begin; j < l->end; j++)
        y[j] = r_fma(keep, old[j], rest * now[j]);
    return TT_OK;
}
