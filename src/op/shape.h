/*
 * shape.h - what shape.c, concat.c and their kernels share: attributes, the plan of a transpose.
 *
 * On the open axis a position can be meant in two ways: in entries, or in whole batches (rows = 1):
 * then 2 means 2 entries per row of the batch times the number of rows.
 */
#ifndef TUTTI_OP_SHAPE_H
#define TUTTI_OP_SHAPE_H

#include <string.h>
#include <tutti/extend.h>

#define TTI_MOVES      (TT_OP_BITS | TT_OP_ROW_FREE)
#define TTI_MOVE_GRAIN 16384 // elements worth a call

// True if a builder has both; otherwise the error is recorded.
bool tti_given(tt_graph *g, const char *op, const tt_tensor *x);
tt_status tti_prep_move(tt_prep *p); // units are elements of output 0
// A reshape to exactly this shape: 0 is an empty dimension.
tt_tensor *tti_reshape_to(tt_graph *g, tt_tensor *x, const tt_shape *shape);

typedef struct tti_reshape_attr {
    tt_shape shape; // no dimension left to copy
} tti_reshape_attr;
typedef struct tti_transpose_attr {
    tt_ints order; // axis of x that becomes axis i of y
} tti_transpose_attr;
typedef struct tti_axis_attr {
    int64_t axis, n; // concat: n unused; split: parts; tile: times
} tti_axis_attr;
typedef struct tti_slice_attr {
    int64_t axis, begin, end, rows;
} tti_slice_attr;
typedef struct tti_pad_attr {
    int64_t axis, before, after, rows;
} tti_pad_attr;

TT_CPU_DECLARE(reshape);
TT_CPU_DECLARE(transpose);
TT_CPU_DECLARE(concat);
TT_CPU_DECLARE(split);
TT_CPU_DECLARE(slice);
TT_CPU_DECLARE(pad);
TT_CPU_DECLARE(tile);

/*
 * A transpose after axes of size 1 are dropped and axes that stay together are merged: y is
 * d[0] x ... x d[rank - 1]; s[i] is the distance in x of neighbours along axis i of y. If the last
 * axis is contiguous in x too, whole runs are copied. Otherwise axis j is the contiguous one, and
 * tiles of tile x tile elements of axes j and last are transposed.
 */
typedef struct tti_transpose_plan {
    int rank, j, tile;
    int64_t d[TT_MAX_RANK], s[TT_MAX_RANK];
    int64_t j_tiles, l_tiles;
} tti_transpose_plan;

// d, s and rank of the plan; the rest stays zero. Elements of x are given back.
static inline int64_t tti_transpose_merge(tti_transpose_plan *t, const tt_shape *x,
                                          const tt_ints *order)
{
    int64_t stride[TT_MAX_RANK], n = 1;
    for (int i = x->rank - 1; i >= 0; n *= x->dim[i--])
        stride[i] = n;
    memset(t, 0, sizeof(*t));
    for (int i = 0; i < order->n; i++) {
        int64_t d = x->dim[order->v[i]], s = stride[order->v[i]];
        if (d == 1)
            continue;
        if (t->rank > 0 && t->s[t->rank - 1] == d * s) {
            t->d[t->rank - 1] *= d;
            t->s[t->rank - 1] = s;
        } else {
            t->d[t->rank] = d;
            t->s[t->rank++] = s;
        }
    }
    if (t->rank == 0) {
        t->rank = 1;
        t->d[0] = t->s[0] = 1;
    }
    return n;
}

// memcpy(); the smallest copies are not worth a call.
static inline void tti_move(char *y, const char *x, size_t bytes)
{
    if (bytes == 4)
        memcpy(y, x, 4);
    else if (bytes == 8)
        memcpy(y, x, 8);
    else
        memcpy(y, x, bytes);
}

#endif
