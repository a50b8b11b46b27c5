/*
 * many.h - calls of one kernel as one: what "@many:" and an op's name, a kernel of devices with
 * streams, finds in launch.tune. All else in launch is as in the first call.
 */
#ifndef TUTTI_OP_MANY_H
#define TUTTI_OP_MANY_H

#include <tutti/extend.h>

/*
 * The calls follow each other, have as many inputs as the first, and none writes what another reads
 * or writes.
 */
#define TTI_MANY "@many:"
typedef struct tti_many {
    int n;
    const tt_launch *const *list;
} tti_many;

#endif
