/*
 * batch_norm.h - what batch_norm.c and its kernels share.
 */
#ifndef TUTTI_OP_BATCH_NORM_H
#define TUTTI_OP_BATCH_NORM_H

#include <tutti/extend.h>

// Of all batch_norm ops; each reads its own part.
typedef struct tti_batch_norm_attr {
    double eps;
    double momentum;   // running
    int act;           // apply: tt_act
    bool has_residual; // apply
    bool fixed;        // dx: mean and var do not depend on x, there are no sums
} tti_batch_norm_attr;

// Units are lanes, or lanes times blocks of TTI_BATCH_NORM_COLS channels when threads are many.
typedef struct tti_batch_norm_tune {
    int64_t blocks;
} tti_batch_norm_tune;
#define TTI_BATCH_NORM_COLS 64

TT_CPU_DECLARE(batch_norm_stats);
TT_CPU_DECLARE(batch_norm_apply);
TT_CPU_DECLARE(batch_norm_sums);
TT_CPU_DECLARE(batch_norm_dx);
TT_CPU_DECLARE(batch_norm_running);

#endif
