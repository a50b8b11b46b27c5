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
    int act;           // apply: tt_act; sums, dx: relu: what they take is dy, not dz
    bool has_residual; // apply
    bool fixed;        // dx: mean and var do not depend on x, there are no sums
} tti_batch_norm_attr;

// Units are lanes, or lanes times blocks of TTI_BATCH_NORM_COLS channels when threads are many.
typedef struct tti_batch_norm_tune {
    int64_t blocks;
    bool
        by_lane; // over: lane: a unit is all the work of its lane, else rows have a phase of theirs
} tti_batch_norm_tune;
#define TTI_BATCH_NORM_COLS 64

// What the records of both batch norms share: the attributes eps, act, residual; checks of shapes.
extern const tt_option tti_batch_norm_attrs[];
tt_status tti_batch_norm_check(tt_infer *q); // x is a float [batch, ..., channels]
// Inputs first to first + n - 1 are [channels]; names are those of messages.
tt_status tti_batch_norm_check_vectors(tt_infer *q, int first, int n, const char *const *names);
tt_status tti_batch_norm_check_like_x(tt_infer *q, const char *what, const tt_tensor *t);

/*
 * y of over: lane, and what the running statistics follow: the means over lanes of their means and
 * of their unbiased variances. a has eps, act and has_residual; in is x, gamma, beta, residual.
 */
tt_tensor *tti_batch_norm_lane(tt_graph *g, tt_tensor *const *in, const tti_batch_norm_attr *a,
                               tt_tensor **mean, tt_tensor **unbiased);

TT_CPU_DECLARE(batch_norm_stats);
TT_CPU_DECLARE(batch_norm_apply);
TT_CPU_DECLARE(batch_norm_sums);
TT_CPU_DECLARE(batch_norm_dx);
TT_CPU_DECLARE(batch_norm_running);
TT_CPU_DECLARE(batch_norm_lane);
TT_CPU_DECLARE(batch_norm_lane_grad);

#endif
