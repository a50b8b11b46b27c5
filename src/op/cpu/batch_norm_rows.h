/*
 * batch_norm_rows.h - walks over rows that both batch norms make: over: batch (batch_norm_cpu.c)
 * and over: lane (batch_norm_lane_cpu.c). Vectors run over channels; sums over rows are kept in
 * memory and taken up eight rows at a time, which cuts each chain without changing its order.
 */
#ifndef TUTTI_OP_BATCH_NORM_ROWS_H
#define TUTTI_OP_BATCH_NORM_ROWS_H

#include "op/batch_norm.h"
#include "op/cpu/act.h"
#include "op/cpu/lanes.h"
#include "op/cpu/stream.h"
#include "op/rows.h"

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

// The program of the tree: of a tensor without an open axis, that of one lane.
static const uint8_t no_merge = 0;
static const tt_lanes one_lane = {.n = 1, .n_parts = 1, .merges = &no_merge};
TTI_INLINE const tt_lanes *tree_of(const tt_launch *l)
{
    return l->in[0].open < 0 ? &one_lane : l->lanes;
}

// The channels of unit u of a lane phase, and its lane.
TTI_INLINE int lane_unit(const tt_launch *l, int64_t u, int64_t *begin, int64_t *end)
{
    const tti_batch_norm_tune *tune = l->tune;
    int64_t c = l->in[0].cols, b = u % tune->blocks;
    *begin = tune->blocks == 1 ? 0 : b * TTI_BATCH_NORM_COLS;
    *end = tune->blocks == 1 || *begin + TTI_BATCH_NORM_COLS > c ? c : *begin + TTI_BATCH_NORM_COLS;
    return (int)(u / tune->blocks);
}

// Channels of the units of a tree phase.
TTI_INLINE int64_t tree_end(const tt_launch *l)
{
    int64_t end = l->end * TTI_BATCH_NORM_COLS;
    return end < l->in[0].cols ? end : l->in[0].cols;
}

// ---- statistics ------------------------------------------------------------------------------

TTI_INLINE void clear(real *p, int64_t begin, int64_t end)
{
    memset(p + begin, 0, sizeof(real) * (size_t)(end - begin));
}

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

// mean and M2 of a lane, for channels [begin, end); zeros where it has no rows.
TTI_INLINE void lane_stats(const tt_launch *l, int lane, real *mean, real *m2, int64_t begin,
                           int64_t end)
{
    const real *x = l->in[0].data;
    int64_t c = l->in[0].cols;
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

// ---- apply -----------------------------------------------------------------------------------

typedef struct apply_in {
    const real *x, *residual, *mean, *scale, *beta; // residual NULL: none
    real *y;
    int64_t c;
    int act, stream;
} apply_in;

TTI_INLINE void apply_as(const apply_in *p, int64_t begin, int64_t end, int act, int stream)
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

// y = act(fma(x - mean, scale, beta) + residual) of rows [begin, end).
TTI_INLINE void apply_rows(const apply_in *p, int64_t begin, int64_t end)
{
    if (p->act == TT_LINEAR)
        apply_as(p, begin, end, TT_LINEAR, p->stream);
    else if (p->act == TT_RELU)
        apply_as(p, begin, end, TT_RELU, p->stream);
    else
        apply_as(p, begin, end, p->act, p->stream);
}

// ---- gradients -------------------------------------------------------------------------------

// What makes dz of dy: dz = z <= 0 ? 0 : dy, z = fma(x - mean, scale, beta). NULL: dz is given.
typedef struct mask_in {
    const real *scale, *beta;
} mask_in;

TTI_INLINE v16 mask(v16 dy, v16 away, v16 scale, v16 beta)
{
    return v16_if(v16_nle(v16_fma(away, scale, beta), v16_zero()), dy, v16_zero());
}

// Adds rows [r, r + rows) to dgamma and dbeta.
TTI_INLINE void add_sums(const tt_launch *l, int64_t r, int rows, const real *mean,
                         const real *rstd, mask_in by, real *dgamma, real *dbeta, int64_t begin,
                         int64_t end)
{
    int64_t c = l->in[0].cols;
    const real *x = (const real *)l->in[0].data + r * c, *dz = (const real *)l->in[1].data + r * c;
    for (int64_t j = begin; j < end; j += 16) {
        int w = width(end, j);
        v16 m = get(mean + j, w), g = get(dgamma + j, w), b = get(dbeta + j, w);
        v16 s = get(rstd + j, w), scale = s, beta = s;
        if (by.scale != NULL) {
            scale = get(by.scale + j, w);
            beta = get(by.beta + j, w);
        }
        for (int i = 0; i < rows; i++) {
            v16 d = get(dz + i * c + j, w), away = v16_sub(get(x + i * c + j, w), m);
            if (by.scale != NULL)
                d = mask(d, away, scale, beta);
            g = v16_fma(d, v16_mul(away, s), g);
            b = v16_add(b, d);
        }
        put(dgamma + j, w, g);
        put(dbeta + j, w, b);
    }
}

// dgamma and dbeta of a lane, for channels [begin, end).
TTI_INLINE void lane_sums(const tt_launch *l, int lane, const real *mean, const real *rstd,
                          mask_in by, real *dgamma, real *dbeta, int64_t begin, int64_t end)
{
    tti_runs runs = tti_lane_runs(&l->in[0], l->lanes, lane);
    clear(dgamma, begin, end);
    clear(dbeta, begin, end);
    for (int64_t k = 0; k < runs.n; k++) {
        int64_t first = runs.first + k * runs.step, last = first + runs.len;
        for (int64_t r = first; r < last; r += ROWS) {
            int rows = last - r < ROWS ? (int)(last - r) : ROWS;
            add_sums(l, r, rows, mean, rstd, by, dgamma, dbeta, begin, end);
        }
    }
    for (int64_t j = begin; j < end; j++) {
        dgamma[j] = r_end(dgamma[j]);
        dbeta[j] = r_end(dbeta[j]);
    }
}

typedef struct dx_in {
    const real *x, *dz, *mean, *scale;
    const real *by_x, *by_mean; // dgamma / n rstd, dbeta / n; NULL: the statistics are fixed
    const real *beta;           // of a mask; NULL: dz is given
    real *dx;
    int64_t c;
    int stream;
} dx_in;

// dx = fma(mean - x, by_x, dz - by_mean) scale of rows [begin, end).
TTI_INLINE void dx_rows(const dx_in *p, int64_t begin, int64_t end)
{
    for (int64_t r = begin; r < end; r++) {
        int64_t at = r * p->c;
        for (int64_t j = 0; j < p->c; j += 16) {
            int w = width(p->c, j);
            v16 t = get(p->dz + at + j, w), scale = get(p->scale + j, w), away = t;
            if (p->by_x != NULL || p->beta != NULL)
                away = v16_sub(get(p->mean + j, w), get(p->x + at + j, w));
            if (p->beta != NULL)
                t = mask(t, v16_neg(away), scale, get(p->beta + j, w));
            if (p->by_x != NULL)
                t = v16_fma(away, get(p->by_x + j, w), v16_sub(t, get(p->by_mean + j, w)));
            put_far(p->dx + at + j, w, v16_mul(t, scale), p->stream);
        }
    }
}

#endif
