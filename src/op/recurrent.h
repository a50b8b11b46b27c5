/*
 * recurrent.h - what recurrent.c and its kernels share.
 */
#ifndef TUTTI_OP_RECURRENT_H
#define TUTTI_OP_RECURRENT_H

#include <tutti/extend.h>
#include <tutti/recurrent.h>

typedef struct tti_recurrent_attr {
    int kind; // tt_recurrent_kind
    bool reverse;
} tti_recurrent_attr;

TT_CPU_DECLARE(tti_recurrent);
TT_CPU_DECLARE(tti_recurrent_grad);

// b rows, t steps, h units; gates: blocks of h columns of z and w; kept: of the second output.
typedef struct tti_recurrent_dims {
    int64_t b, t, h, gates, kept;
} tti_recurrent_dims;

static inline int64_t tti_recurrent_gates(int kind)
{
    return kind == TT_RNN ? 1 : kind == TT_GRU ? 3 : 4;
}
// rnn: nothing; gru: r, u, n, q of n; lstm: i, f, g, o, c.
static inline int64_t tti_recurrent_kept(int kind)
{
    return kind == TT_RNN ? 0 : kind == TT_GRU ? 4 : 5;
}
static inline tti_recurrent_dims tti_recurrent_dims_of(int kind, const tt_shape *y)
{
    tti_recurrent_dims d = {y->dim[0], y->dim[1], y->dim[2], tti_recurrent_gates(kind),
                            tti_recurrent_kept(kind)};
    return d;
}

#endif
