/*
 * reduce_walk.h - how kernels of CPUs walk over what is reduced.
 */
#ifndef TUTTI_OP_REDUCE_WALK_H
#define TUTTI_OP_REDUCE_WALK_H

#include "op/reduce.h"

// The reduced axes but the tail, in row-major order; one of them from low up to high only.
typedef struct odometer {
    const tti_axis_list *l;
    int64_t i[TT_MAX_RANK], low[TT_MAX_RANK], high[TT_MAX_RANK];
    int64_t at; // offset of the row in x
    bool done;
} odometer;

static void odometer_start(odometer *o, const tti_axis_list *l, int special, int64_t low,
                           int64_t high)
{
    o->l = l;
    o->at = 0;
    o->done = false;
    for (int k = 0; k < l->n; k++) {
        o->low[k] = k == special ? low : 0;
        o->high[k] = k == special ? high : l->dim[k];
        o->i[k] = o->low[k];
        o->at += o->low[k] * l->stride[k];
        o->done |= o->low[k] >= o->high[k];
    }
}

static inline void odometer_skip(odometer *o, int64_t run)
{
    for (int k = 0; k < o->l->n; k++, run = 1) {
        o->at += run * o->l->stride[k];
        o->i[k] += run;
        if (o->i[k] < o->high[k])
            return;
        o->at -= (o->high[k] - o->low[k]) * o->l->stride[k];
        o->i[k] = o->low[k];
    }
    o->done = true;
}

static inline void odometer_next(odometer *o)
{
    odometer_skip(o, 1);
}

// Rows from here on, at most `most`, that lie one stride apart; 0 when it is done.
static inline int64_t odometer_run(const odometer *o, int64_t most, int64_t *stride)
{
    if (o->done || o->l->n == 0) {
        *stride = 0;
        return o->done ? 0 : 1;
    }
    *stride = o->l->stride[0];
    return o->high[0] - o->i[0] < most ? o->high[0] - o->i[0] : most;
}

// Offset in x of output (or first column) number i of the kept axes.
static inline int64_t kept_offset(const tti_axis_list *l, int64_t i)
{
    int64_t at = 0;
    for (int k = 0; k < l->n; k++) {
        at += i % l->dim[k] * l->stride[k];
        i /= l->dim[k];
    }
    return at;
}

#endif
