/*
 * batch_norm_cpu.c - kernels of batch_norm.c; compiled once per instruction set. The walks over
 * rows are in batch_norm_rows.h.
 */
#include "op/cpu/batch_norm_rows.h"
#include "op/cpu/moments.h"

// ---- statistics ------------------------------------------------------------------------------

// The tree over lanes for channels [begin, end): mean, var, unbiased.
static void merge_stats(const tt_launch *l, int64_t begin, int64_t end)
{
    int64_t c = l->in[0].cols;
    const tt_lanes *ln = tree_of(l);
    for (int64_t j = begin; j < end; j += 16) {
        int w = width(end, j), depth = 0;
        tti_moments stack[TTI_LANE_DEPTH];
        for (int i = 0; i < ln->n; i++) {
            const real *p = (const real *)l->scratch + 2 * c * i + j;
            tti_runs runs = tti_lane_runs(&l->in[0], l->lanes, i);
            stack[depth++] = (tti_moments){runs.n * runs.len, get(p, w), get(p + c, w)};
            for (int m = 0; m < ln->merges[i]; m++, depth--)
                stack[depth - 2] = tti_moments_merge(stack[depth - 2], stack[depth - 1]);
        }
        if (ln->n != ln->total && l->in[0].open >= 0) { // parts: raw, to be merged
            for (int k = 0; k < depth; k++) {
                put((real *)l->out[0].data + k * c + j, w, stack[k].mean);
                put((real *)l->out[1].data + k * c + j, w, stack[k].m2);
                put((real *)l->out[2].data + k * c + j, w, stack[k].m2);
            }
            continue;
        }
        tti_moments_end(l, j, w, stack[0]);
    }
}

tt_status TTI_ISA(batch_norm_stats)(const tt_launch *l)
{
    if (l->phase == 1) {
        merge_stats(l, l->begin * TTI_BATCH_NORM_COLS, tree_end(l));
        return TT_OK;
    }
    for (int64_t u = l->begin; u < l->end; u++) {
        int64_t begin, end, c = l->in[0].cols;
        int lane = lane_unit(l, u, &begin, &end);
        real *mean = (real *)l->scratch + 2 * c * lane;
        lane_stats(l, lane, mean, mean + c, begin, end);
    }
    return TT_OK;
}

// ---- apply -----------------------------------------------------------------------------------

// rstd, or gamma rstd where gamma is given, of channels [begin, end), into scale.
static real *make_scale(const tt_launch *l, const real *var, const real *gamma, int64_t begin,
                        int64_t end, real *scale)
{
    const tti_batch_norm_attr *a = l->attr;
    for (int64_t j = begin; j < end; j += 16) {
        int w = width(end, j);
        v16 s = rstd_of(get(var + j, w), v16_set1((real)a->eps));
        put(scale + j, w, gamma == NULL ? s : v16_mul(get(gamma + j, w), s));
    }
    return scale;
}

tt_status TTI_ISA(batch_norm_apply)(const tt_launch *l)
{
    const tti_batch_norm_attr *a = l->attr;
    int64_t c = l->in[0].cols;
    apply_in p = {.x = l->in[0].data,
                  .residual = a->has_residual ? l->in[5].data : NULL,
                  .mean = l->in[1].data,
                  .scale = make_scale(l, l->in[2].data, l->in[3].data, 0, c, (real *)l->local),
                  .beta = l->in[4].data,
                  .y = l->out[0].data,
                  .c = c,
                  .act = a->act};
    p.stream = tti_is_stream(&l->out[0], &l->in[0]) && p.y != p.residual;
    apply_rows(&p, l->begin, l->end);
    if (p.stream)
        tti_stream_end();
    return TT_OK;
}

// ---- gradients -------------------------------------------------------------------------------

tt_status TTI_ISA(batch_norm_sums)(const tt_launch *l)
{
    const tti_batch_norm_attr *a = l->attr;
    int64_t c = l->in[0].cols;
    if (l->phase == 1) {
        for (int i = 0; i < 2; i++)
            tti_lane_tree(tree_of(l), (const real *)l->scratch + i * c, 2 * c, l->out[i].data, c,
                          l->begin * TTI_BATCH_NORM_COLS, tree_end(l));
        return TT_OK;
    }
    for (int64_t u = l->begin; u < l->end; u++) {
        int64_t begin, end;
        int lane = lane_unit(l, u, &begin, &end);
        const real *var = l->in[3].data,
                   *rstd = make_scale(l, var, NULL, begin, end, (real *)l->local);
        real *dgamma = (real *)l->scratch + 2 * c * lane;
        mask_in by = {NULL, NULL};
        if (a->act == TT_RELU) {
            real *scale = (real *)l->local + c + 16;
            by = (mask_in){make_scale(l, var, l->in[4].data, begin, end, scale), l->in[5].data};
        }
        lane_sums(l, lane, l->in[2].data, rstd, by, dgamma, dgamma + c, begin, end);
    }
    return TT_OK;
}

tt_status TTI_ISA(batch_norm_dx)(const tt_launch *l)
{
    const tti_batch_norm_attr *a = l->attr;
    int64_t c = l->in[0].cols;
    const real *var = l->in[3].data;
    real *by_mean = (real *)l->local + c + 16, *by_x = by_mean + c;
    v16 n = v16_set1((real)tti_global_rows(&l->in[0], l->lanes));
    for (int64_t j = 0; !a->fixed && j < c; j += 16) {
        int w = width(c, j);
        v16 s = rstd_of(get(var + j, w), v16_set1((real)a->eps));
        put(by_mean + j, w, v16_div(get((const real *)l->in[6].data + j, w), n));
        put(by_x + j, w, v16_mul(v16_div(get((const real *)l->in[5].data + j, w), n), s));
    }
    dx_in p = {.x = l->in[0].data,
               .dz = l->in[1].data,
               .mean = l->in[2].data,
               .scale = make_scale(l, var, l->in[4].data, 0, c, (real *)l->local),
               .by_x = a->fixed ? NULL : by_x,
               .by_mean = by_mean,
               .beta = a->act == TT_RELU ? l->in[a->fixed ? 5 : 7].data : NULL,
               .dx = l->out[0].data,
               .c = c};
    p.stream = tti_is_stream(&l->out[0], &l->in[0]) && p.dx != p.dz;
    dx_rows(&p, l->begin, l->end);
    if (p.stream)
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
