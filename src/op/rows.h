/*
 * rows.h - rows (all axes but the last) and lanes: which rows of a tensor a lane has, and how
 * kernels that walk rows tell the planner of their work.
 */
#ifndef TUTTI_OP_ROWS_H
#define TUTTI_OP_ROWS_H

#include <tutti/extend.h>

// Of parts of a kernel whose arguments are constants to be folded. Plain numbers gain nothing by
// it.
#if defined(TTI_SET_AVX512) || defined(TTI_SET_AVX2)
#define TTI_INLINE static inline __attribute__((always_inline))
#else
#define TTI_INLINE static inline
#endif

/*
 * The rows of one lane, in ascending order: n runs of len rows, the first at first, each step rows
 * after the one before. With the open axis in front it is one run; otherwise there is one for each
 * index of the axes before it. A tensor without an open axis is one lane with all rows.
 */
typedef struct tti_runs {
    int64_t n, first, step, len;
} tti_runs;

#ifndef __cplusplus // kernel.cuh has another
static inline int tti_lanes_of(const tt_arg *x, const tt_lanes *ln)
{
    return x->open < 0 ? 1 : ln->n;
}
#endif

static inline tti_runs tti_lane_runs(const tt_arg *x, const tt_lanes *ln, int lane)
{
    if (x->open < 0)
        return (tti_runs){1, 0, x->rows, x->rows};
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < x->open; i++)
        outer *= x->shape.dim[i];
    for (int i = x->open + 1; i < x->shape.rank - 1; i++)
        inner *= x->shape.dim[i];
    int64_t per = x->per * inner;
    return (tti_runs){outer, ln->bound[lane] * per, x->shape.dim[x->open] * inner,
                      (ln->bound[lane + 1] - ln->bound[lane]) * per};
}

// Rows of x over the whole batch, of which this call may have a part.
static inline int64_t tti_global_rows(const tt_arg *x, const tt_lanes *ln)
{
    if (x->open < 0)
        return x->rows;
    int64_t rows = x->per * ln->global_rows;
    for (int i = 0; i < x->shape.rank - 1; i++)
        rows *= i == x->open ? 1 : x->shape.dim[i];
    return rows;
}

// One phase, a unit per row of cols numbers, each number taking ns.
static inline tt_status tti_prep_row_units(tt_prep *p, int64_t rows, int64_t cols, double ns)
{
    p->n_phases = 1;
    p->units[0] = rows;
    p->grain[0] = cols >= 8192 ? 1 : 8192 / (cols + 1) + 1;
    p->ns = ns * (double)rows * (double)cols + 20.0 * (double)rows;
    return TT_OK;
}

// Statistics of half-precision tensors are kept in f32.
static inline tt_dtype tti_stat_dtype(tt_dtype t)
{
    return t == TT_F64 ? TT_F64 : TT_F32;
}

#endif
