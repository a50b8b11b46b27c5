/*
 * pool_cpu.c - pooling kernels. Vectors run along channels, four at a time so that their chains
 * overlap. Gradients add to dx in the order of windows (oh, ow); a unit owns the rows of dx that
 * it writes.
 */
#include "op/cpu/upto.h"
#include "op/pool.h"

// The part of a window that lies inside x: rows [r0, r1), columns [c0, c1).
typedef struct window {
    int64_t r0, r1, c0, c1;
} window;

static window window_at(const tti_pool_tune *t, int64_t i, int64_t j)
{
    int64_t r = i * t->sh - t->pt, c = j * t->sw - t->pl;
    return (window){TTI_MAX(r, 0), TTI_MIN(r + t->kh, t->h), TTI_MAX(c, 0),
                    TTI_MIN(c + t->kw, t->w)};
}

static int64_t window_count(window w)
{
    return (w.r1 - w.r0) * (w.c1 - w.c0);
}

/*
 * nv vectors of channels of one window, reduced into acc; the last vector has tail channels. A
 * later entry replaces the maximum only when it is larger, or the first NaN.
 */
static inline __attribute__((always_inline)) void reduce(const bool is_max, const int nv,
                                                         const tti_pool_tune *t, const real *x,
                                                         window w, int tail, v16 *acc)
{
    const real *first = x + (w.r0 * t->w + w.c0) * t->c;
#pragma GCC unroll 4
    for (int j = 0; j < nv; j++)
        acc[j] = is_max ? v16_load_upto(first + 16 * j, j == nv - 1 ? tail : 16) : v16_zero();
    for (int64_t r = w.r0; r < w.r1; r++) {
        const real *p = x + (r * t->w + w.c0) * t->c;
        for (int64_t q = w.c0; q < w.c1; q++, p += t->c)
#pragma GCC unroll 4
            for (int j = 0; j < nv; j++) {
                v16 v = v16_load_upto(p + 16 * j, j == nv - 1 ? tail : 16);
                acc[j] = is_max ? v16_max_nan(v, acc[j]) : v16_add(acc[j], v);
            }
    }
}

static inline __attribute__((always_inline)) void pool_vectors(const bool is_max, const int nv,
                                                               const tti_pool_tune *t,
                                                               const real *x, window w, int tail,
                                                               real *y)
{
    v16 acc[4], n = v16_set1((real)window_count(w));
    reduce(is_max, nv, t, x, w, tail, acc);
#pragma GCC unroll 4
    for (int j = 0; j < nv; j++) {
        v16 v = v16_end(acc[j]);
        v16_store_upto(y + 16 * j, is_max ? v : v16_div(v, n), j == nv - 1 ? tail : 16);
    }
}

static inline __attribute__((always_inline)) void pool_rows(const bool is_max, const tt_launch *l)
{
    const tti_pool_tune *t = l->tune;
    for (int64_t unit = l->begin; unit < l->end; unit++) {
        const real *x = (const real *)l->in[0].data + unit / t->oh * t->h * t->w * t->c;
        real *y = (real *)l->out[0].data + unit * t->ow * t->c;
        for (int64_t j = 0; j < t->ow; j++, y += t->c) {
            window w = window_at(t, unit % t->oh, j);
            int64_t k = 0;
            for (; k + 64 <= t->c; k += 64)
                pool_vectors(is_max, 4, t, x + k, w, 16, y + k);
            for (; k < t->c; k += 16)
                pool_vectors(is_max, 1, t, x + k, w, (int)TTI_MIN(t->c - k, 16), y + k);
        }
    }
}

tt_status TTI_ISA(tti_max_pool)(const tt_launch *l)
{
    pool_rows(true, l);
    return TT_OK;
}

tt_status TTI_ISA(tti_avg_pool)(const tt_launch *l)
{
    pool_rows(false, l);
    return TT_OK;
}

// Adds dy to dx at the first entry of the window that is the maximum, or the first NaN; one vector
// of n channels.
static void scatter_max(const tti_pool_tune *t, const real *x, window w, v16 dy, int n, real *dx)
{
    v16 max;
    reduce(true, 1, t, x, w, n, &max);
    m16 open = m16_first(16);
    bool is_nan = m16_any(v16_unordered(max, max));
    for (int64_t r = w.r0; r < w.r1; r++)
        for (int64_t q = w.c0; q < w.c1; q++) {
            int64_t at = (r * t->w + q) * t->c;
            v16 x_at = v16_load_upto(x + at, n);
            m16 here = v16_eq(x_at, max);
            if (is_nan)
                here = m16_or(here, v16_unordered(x_at, x_at));
            here = m16_and(open, here);
            open = m16_and(open, m16_not(here));
            v16 v = v16_add(v16_load_upto(dx + at, n), v16_if(here, dy, v16_zero()));
            v16_store_upto(dx + at, v16_end(v), n);
        }
}

tt_status TTI_ISA(tti_max_pool_grad)(const tt_launch *l)
{
    const tti_pool_tune *t = l->tune;
    for (int64_t unit = l->begin; unit < l->end; unit++) {
        int64_t image = t->by_image ? unit : unit / t->oh;
        int64_t i0 = t->by_image ? 0 : unit % t->oh, i1 = t->by_image ? t->oh : i0 + 1;
        const real *x = (const real *)l->in[0].data + image * t->h * t->w * t->c;
        real *dx = (real *)l->out[0].data + image * t->h * t->w * t->c;
        // the rows of dx up to the next unit's first one
        int64_t top = i0 == 0 ? 0 : TTI_MIN(i0 * t->sh - t->pt, t->h);
        int64_t bottom = i1 == t->oh ? t->h : TTI_MIN(i1 * t->sh - t->pt, t->h);
        memset(dx + top * t->w * t->c, 0, (size_t)((bottom - top) * t->w * t->c) * sizeof(real));
        for (int64_t i = i0; i < i1; i++)
            for (int64_t j = 0; j < t->ow; j++) {
                const real *dy = l->in[1].data;
                dy += ((image * t->oh + i) * t->ow + j) * t->c;
                window w = window_at(t, i, j);
                for (int64_t k = 0; k < t->c; k += 16) {
                    int n = (int)TTI_MIN(t->c - k, 16);
                    scatter_max(t, x + k, w, v16_load_upto(dy + k, n), n, dx + k);
                }
            }
    }
    return TT_OK;
}

tt_status TTI_ISA(tti_avg_pool_grad)(const tt_launch *l)
{
    const tti_pool_tune *t = l->tune;
    for (int64_t unit = l->begin; unit < l->end; unit++) {
        int64_t image = unit / t->h, r = unit % t->h + t->pt;
        real *dx = (real *)l->out[0].data + unit * t->w * t->c;
        memset(dx, 0, (size_t)(t->w * t->c) * sizeof(real));
        int64_t first = r < t->kh ? 0 : (r - t->kh) / t->sh + 1; // windows that hold this row
        int64_t last = TTI_MIN(r / t->sh, t->oh - 1);
        for (int64_t i = first; i <= last; i++)
            for (int64_t j = 0; j < t->ow; j++) {
                window w = window_at(t, i, j);
                const real *dy = l->in[0].data;
                dy += ((image * t->oh + i) * t->ow + j) * t->c;
                v16 count = v16_set1((real)window_count(w));
                for (int64_t k = 0; k < t->c; k += 16) {
                    int n = (int)TTI_MIN(t->c - k, 16);
                    v16 v = v16_div(v16_load_upto(dy + k, n), count);
                    for (int64_t q = w.c0; q < w.c1; q++) {
                        real *p = dx + q * t->c + k;
                        v16_store_upto(p, v16_end(v16_add(v16_load_upto(p, n), v)), n);
                    }
                }
            }
    }
    return TT_OK;
}
