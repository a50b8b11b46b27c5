/*
 * many.h - calls of one kernel as one: what a kernel of the form TTI_KERNEL_BATCHED finds in
 * launch.tune, on devices with streams. All else in launch is as in the first call.
 */
#ifndef TUTTI_OP_MANY_H
#define TUTTI_OP_MANY_H

#include <tutti/extend.h>

/*
 * The calls follow each other, have as many inputs as the first, and none writes what another reads
 * or writes.
 */
typedef struct tti_many {
    int n;
    const tt_launch *const *list;
} tti_many;

#endif
