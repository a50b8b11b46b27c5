/*
 * batch_norm_lane_cpu.c - kernels of batch_norm_lane.c; compiled once per instruction set. The
 * walks over rows are in batch_norm_rows.h. Scratch has the vectors of every lane, then a number
 * for each.
 */
#include "op/cpu/batch_norm_rows.h"

// Entries of a lane per channel.
TTI_INLINE int64_t lane_entries(const tt_launch *l, int lane)
{
    tti_runs runs = tti_lane_runs(&l->in[0], l->lanes, lane);
    return runs.n * runs.len;
}

// Rows [begin, end) of a lane's statistics, which have one for each row of the batch.
TTI_INLINE void stat_rows(const tt_launch *l, int lane, int64_t *begin, int64_t *end)
{
    bool open = l->in[0].open >= 0;
    *begin = open ? l->lanes->bound[lane] : 0;
    *end = open ? l->lanes->bound[lane + 1] : 1;
}

// The rows of a lane's run k that are among [begin, end).
TTI_INLINE void rows_within(tti_runs runs, int64_t k, int64_t *begin, int64_t *end)
{
    int64_t first = runs.first + k * runs.step, last = first + runs.len;
    *begin = *begin > first ? *begin : first;
    *end = *end < last ? *end : last;
}

// ---- forward ---------------------------------------------------------------------------------

// Statistics of a lane for channels [begin, end): for its rows, for the sums, and gamma rstd.
static void forward_stats(const tt_launch *l, int lane, int64_t begin, int64_t end)
{
    const tti_batch_norm_attr *a = l->attr;
    const real *gamma = l->in[1].data;
    int64_t c = l->in[0].cols, entries = lane_entries(l, lane), first, last;
    real *mean = (real *)l->scratch + 3 * c * lane, *m2 = mean + c, *scale = m2 + c;
    lane_stats(l, lane, mean, m2, begin, end);
    v16 n = v16_set1((real)(entries > 0 ? entries : 1)); // rows can be there without entries
    v16 less = v16_set1((real)(entries > 1 ? entries - 1 : 1));
    stat_rows(l, lane, &first, &last);
    for (int64_t j = begin; j < end; j += 16) {
        int w = width(end, j);
        v16 s = get(m2 + j, w), m = v16_end(get(mean + j, w));
        v16 rstd = rstd_of(v16_div(s, n), v16_set1((real)a->eps));
        put(mean + j, w, m);
        put(m2 + j, w, v16_end(v16_div(s, less)));
        put(scale + j, w, v16_mul(get(gamma + j, w), rstd));
        for (int64_t r = first; r < last; r++) {
            put((real *)l->out[1].data + r * c + j, w, m);
            put((real *)l->out[2].data + r * c + j, w, rstd);
        }
    }
}

// y of the rows of a lane that are among [begin, end).
TTI_INLINE void forward_rows(const tt_launch *l, apply_in *p, int lane, int64_t begin, int64_t end)
{
    tti_runs runs = tti_lane_runs(&l->in[0], l->lanes, lane);
    p->mean = (const real *)l->scratch + 3 * p->c * lane;
    p->scale = p->mean + 2 * p->c;
    for (int64_t k = 0; k < runs.n; k++) {
        int64_t first = begin, last = end;
        rows_within(runs, k, &first, &last);
        apply_rows(p, first, last);
    }
}

// Sums over lanes, for the channels of this call's units; the first unit counts the lanes.
static void forward_tree(const tt_launch *l)
{
    int64_t c = l->in[0].cols, begin = l->begin * TTI_BATCH_NORM_COLS;
    const tt_lanes *ln = tree_of(l);
    const real *stats = (const real *)l->scratch;
    for (int i = 0; i < 2; i++)
        tti_lane_tree(ln, stats + i * c, 3 * c, l->out[3 + i].data, c, begin, tree_end(l));
    if (l->begin > 0)
        return;
    real *ones = (real *)l->scratch + 3 * c * ln->n;
    for (int i = 0; i < ln->n; i++)
        ones[i] = lane_entries(l, i) > 0 ? 1 : 0;
    tti_lane_tree(ln, ones, 1, l->out[5].data, 1, 0, 1);
}

tt_status TTI_ISA(batch_norm_lane)(const tt_launch *l)
{
    const tti_batch_norm_attr *a = l->attr;
    const tti_batch_norm_tune *tune = l->tune;
    apply_in p = {.x = l->in[0].data,
                  .residual = a->has_residual ? l->in[3].data : NULL,
                  .beta = l->in[2].data,
                  .y = l->out[0].data,
                  .c = l->in[0].cols,
                  .act = a->act};
    p.stream = tti_is_stream(&l->out[0], &l->in[0]) && p.y != p.residual;
    if (l->phase == 1) {
        forward_tree(l);
        return TT_OK;
    }
    for (int64_t u = l->begin; l->phase == 0 && u < l->end; u++) {
        int64_t begin, end;
        int lane = lane_unit(l, u, &begin, &end);
        forward_stats(l, lane, begin, end);
        if (tune->by_lane)
            forward_rows(l, &p, lane, 0, l->in[0].rows);
    }
    for (int lane = 0; l->phase == 2 && lane < tti_lanes_of(&l->in[0], l->lanes); lane++)
        forward_rows(l, &p, lane, l->begin, l->end);
    if (p.stream)
        tti_stream_end();
    return TT_OK;
}

// ---- backward --------------------------------------------------------------------------------

// A lane's dgamma and dbeta for channels [begin, end), and the factors of its dx.
static void backward_sums(const tt_launch *l, int lane, int64_t begin, int64_t end)
{
    const real *gamma = l->in[4].data;
    int64_t c = l->in[0].cols, entries = lane_entries(l, lane), first, last;
    real *dgamma = (real *)l->scratch + 5 * c * lane, *dbeta = dgamma + c;
    real *by_x = dbeta + c, *by_mean = by_x + c, *scale = by_mean + c;
    if (entries == 0) {
        clear(dgamma, begin, end);
        clear(dbeta, begin, end);
        return;
    }
    stat_rows(l, lane, &first, &last);
    const real *mean = (const real *)l->in[2].data + first * c;
    const real *rstd = (const real *)l->in[3].data + first * c;
    lane_sums(l, lane, mean, rstd, (mask_in){NULL, NULL}, dgamma, dbeta, begin, end);
    v16 n = v16_set1((real)entries);
    for (int64_t j = begin; j < end; j += 16) {
        int w = width(end, j);
        v16 s = get(rstd + j, w);
        put(by_x + j, w, v16_mul(v16_div(get(dgamma + j, w), n), s));
        put(by_mean + j, w, v16_div(get(dbeta + j, w), n));
        put(scale + j, w, v16_mul(get(gamma + j, w), s));
    }
}

// dx of the rows of a lane that are among [begin, end).
TTI_INLINE void backward_rows(const tt_launch *l, dx_in *p, int lane, int64_t begin, int64_t end)
{
    tti_runs runs = tti_lane_runs(&l->in[0], l->lanes, lane);
    int64_t stat, past;
    stat_rows(l, lane, &stat, &past);
    p->mean = (const real *)l->in[2].data + stat * p->c;
    p->by_x = (const real *)l->scratch + (5 * lane + 2) * p->c;
    p->by_mean = p->by_x + p->c;
    p->scale = p->by_mean + p->c;
    for (int64_t k = 0; k < runs.n; k++) {
        int64_t first = begin, last = end;
        rows_within(runs, k, &first, &last);
        dx_rows(p, first, last);
    }
}

tt_status TTI_ISA(batch_norm_lane_grad)(const tt_launch *l)
{
    const tti_batch_norm_tune *tune = l->tune;
    int64_t c = l->in[0].cols;
    dx_in p = {.x = l->in[0].data, .dz = l->in[1].data, .dx = l->out[0].data, .c = c};
    p.stream = tti_is_stream(&l->out[0], &l->in[0]) && p.dx != p.dz;
    if (l->phase == 1) {
        for (int i = 0; i < 2; i++)
            tti_lane_tree(tree_of(l), (const real *)l->scratch + i * c, 5 * c, l->out[1 + i].data,
                          c, l->begin * TTI_BATCH_NORM_COLS, tree_end(l));
        return TT_OK;
    }
    for (int64_t u = l->begin; l->phase == 0 && u < l->end; u++) {
        int64_t begin, end;
        int lane = lane_unit(l, u, &begin, &end);
        backward_sums(l, lane, begin, end);
        if (tune->by_lane)
            backward_rows(l, &p, lane, 0, l->in[0].rows);
    }
    for (int lane = 0; l->phase == 2 && lane < tti_lanes_of(&l->in[0], l->lanes); lane++)
        backward_rows(l, &p, lane, l->begin, l->end);
    if (p.stream)
        tti_stream_end();
    return TT_OK;
}
