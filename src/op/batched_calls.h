/*
 * batched_calls.h - calls of one kernel as one: what a kernel of the form TTI_KERNEL_BATCHED finds
 * in launch.tune, on devices with streams. All else in launch is as in the first call.
 */
#ifndef TUTTI_OP_BATCHED_CALLS_H
#define TUTTI_OP_BATCHED_CALLS_H

#include <tutti/extend.h>

/*
 * The calls follow each other, have as many inputs as the first, and none writes what another reads
 * or writes.
 */
typedef struct tti_batched_calls {
    int n;
    const tt_launch *const *list;
} tti_batched_calls;

#endif
