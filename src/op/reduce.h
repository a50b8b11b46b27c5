/*
 * reduce.h - how a reduction over some axes of a dense tensor is walked; for reduce.c's prepare and
 * reduce_cpu.c alike. The order it fixes is stated at the top of reduce.c.
 */
#ifndef TUTTI_OP_REDUCE_H
#define TUTTI_OP_REDUCE_H

#include <stdbool.h>
#include <string.h>
#include <tutti/extend.h>

typedef struct tti_reduce_attr {
    tt_ints axes;   // reduced, ascending
    bool keep_dims; // as dimensions of 1
    int64_t lead;   // with keep_dims: this many leading axes vanish all the same
    bool wide;      // y is f32 though x is bf16 or f16
} tti_reduce_attr;

typedef struct tti_count_attr {
    tti_reduce_attr reduce;
    tt_dtype dtype;
} tti_count_attr;

// The order of a sum (reduce.c): blocks of a row and of rows, whose sums are added by a tree.
#define TTI_SUM_ROW    1024 // elements
#define TTI_SUM_ROWS   64   // rows
#define TTI_SUM_LEVELS 64   // sums that may wait in the tree
// How columns are walked on CPUs.
#define TTI_SUM_LONG    2048 // longer rows are not read from end to end
#define TTI_SUM_COLUMNS 512  // but so many columns of several rows in a pass

typedef struct tti_axis_list {
    int n; // outer axes come last
    int64_t dim[TT_MAX_RANK], stride[TT_MAX_RANK];
} tti_axis_list;

typedef struct tti_reduction {
    int64_t tail;       // elements of the reduced axes at the end, one contiguous row; 1: none
    bool has_tail;      //
    int64_t cols;       // without tail: elements of the kept axes at the end; else 1
    tti_axis_list keep; // the other kept axes
    tti_axis_list sum;  // the other reduced axes
    int64_t outer;      // product of keep
    int64_t count;      // outputs: outer * cols
    bool lane_tail;     // the tail's first axis is the open one
    int lane_sum;       // index in sum of the open axis; -1: it is not there
    int64_t lane_step;  // elements of the tail, or entries on that axis, per row of the batch
} tti_reduction;

static inline bool tti_is_reduced(const tti_reduce_attr *a, int axis)
{
    for (int i = 0; i < a->axes.n; i++)
        if (a->axes.v[i] == axis)
            return true;
    return false;
}

static inline void tti_axis_push(tti_axis_list *l, bool join, int64_t dim, int64_t stride)
{
    if (join) {
        l->dim[l->n - 1] *= dim;
        return;
    }
    l->dim[l->n] = dim;
    l->stride[l->n++] = stride;
}

static inline tti_reduction tti_reduction_of(const tti_reduce_attr *a, const tt_arg *x)
{
    tti_reduction r; // C++ reads this file too
    memset(&r, 0, sizeof(r));
    r.tail = r.cols = r.outer = 1;
    r.lane_sum = -1;
    int64_t stride = 1;
    // What the axis before (further in) was: nothing yet, tail, columns, kept, reduced, open.
    enum {
        NONE,
        TAIL,
        COLS,
        KEEP,
        SUM,
        OPEN
    } last = NONE;
    for (int i = x->shape.rank - 1; i >= 0; i--) {
        int64_t dim = x->shape.dim[i];
        bool open = i == x->open;
        if (dim == 1 && !open)
            continue; // never an open one: the order may not depend on the rows of a call
        if (!tti_is_reduced(a, i)) {
            if (last == NONE || last == COLS) {
                r.cols *= dim;
                last = COLS;
            } else {
                tti_axis_push(&r.keep, last == KEEP, dim, stride);
                last = KEEP;
            }
        } else if (last == NONE || last == TAIL) {
            r.lane_tail = open;
            r.lane_step = r.tail * x->per;
            r.tail *= dim;
            r.has_tail = true;
            last = open ? OPEN : TAIL;
        } else {
            tti_axis_push(&r.sum, last == SUM && !open, dim, stride);
            if (open) {
                r.lane_sum = r.sum.n - 1;
                r.lane_step = x->per;
            }
            last = open ? OPEN : SUM;
        }
        stride *= dim;
    }
    for (int i = 0; i < r.keep.n; i++)
        r.outer *= r.keep.dim[i];
    r.count = r.outer * r.cols;
    return r;
}

// Whether lanes are summed one by one.
static inline bool tti_by_lanes(const tti_reduction *r)
{
    return r->lane_tail || r->lane_sum >= 0;
}

// Units of a lane: outputs one by one, or groups of 16 columns.
static inline int64_t tti_reduce_units(const tti_reduction *r)
{
    return r->has_tail ? r->outer : r->outer * ((r->cols + 15) / 16);
}

#define TTI_REDUCE_DECLARE(n) TT_CPU_DECLARE(tti_reduce_##n);
TTI_REDUCE_DECLARE(sum)
TTI_REDUCE_DECLARE(max)
TTI_REDUCE_DECLARE(min)
TTI_REDUCE_DECLARE(max_grad)
TTI_REDUCE_DECLARE(argmax)
TTI_REDUCE_DECLARE(count)

#endif
