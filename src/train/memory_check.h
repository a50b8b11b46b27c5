/*
 * memory_check.h - steps as they might be, and what they would need.
 */
#ifndef TUTTI_TRAIN_MEMORY_CHECK_H
#define TUTTI_TRAIN_MEMORY_CHECK_H

#include "run/run.h"
#include "train/compile.h"

// A step as it might be.
typedef struct tti_variant {
    int64_t batch, accumulate;
    const char *recompute;
    const tti_topology *top;
} tti_variant;

// The step as it is, on a topology.
tti_variant tti_variant_now(const tt_model *m, const tti_load *l, const tti_topology *top);
/*
 * What each device needs for the step and for validation, which finds the weights where the step
 * has them. Without validation it needs nothing. Free with tti_needs_free().
 */
typedef struct tti_needs {
    tti_need *step, *validation; // by device of the variant's topology; in one block
} tti_needs;
tt_status tti_variant_try(tt_model *m, const tti_variant *v, const tti_load *l,
                          tti_needs *out) TTI_CHECKED;
void tti_needs_free(tt_ctx *ctx, tti_needs *n);
// All of a device while validation runs.
size_t tti_need_of(const tti_need *step, const tti_need *validation);
// A CPU of this process without a limit: all of them share what the machine has.
bool tti_is_host(const tt_ctx *ctx, int d);
/*
 * advice.c: fails with TT_ELIMIT, the message and what would fit. is_full: the limit is all of a
 * card or machine, where more devices do not help.
 */
tt_status tti_refuse(tt_model *m, const tti_load *l, const tti_topology *top, bool is_full,
                     const char *message) TTI_CHECKED;

#endif
