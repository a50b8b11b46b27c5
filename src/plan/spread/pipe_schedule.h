/*
 * pipe_schedule.h - pipeline schedules as tables: in which order each device takes the
 * micro-batches of its stages, forward and backward.
 *
 * A table is made for a number of devices, stages and micro-batches, then run on paper with the
 * stages' costs: that proves that it cannot deadlock, and gives one order of all slots by the time
 * they begin, the share of time the devices stand idle, and how many micro-batches each stage has
 * in flight at most. The plan's order follows the slots.
 */
#ifndef TUTTI_PLAN_PIPE_SCHEDULE_H
#define TUTTI_PLAN_PIPE_SCHEDULE_H

#include "base/ctx.h"

#define TTI_MAX_CHUNKS 8 // stages of a device

typedef struct tti_pipe_slot {
    int stage, micro;
    bool backward;
} tti_pipe_slot;

typedef struct tti_schedule_query {
    tt_pipe kind;
    int n_devices;                    // stage s runs on device s % n_devices
    int n_stages;                     // a multiple of n_devices; gpipe and 1f1b: equal to it
    int n_micro;                      // interleaved: idles least with a multiple of n_devices
    bool forward_only;                // no backward slots: evaluation
    const double *forward, *backward; // cost of a micro-batch by stage; NULL: 1 and 2
} tti_schedule_query;

typedef struct tti_schedule {
    int n;                // slots
    tti_pipe_slot *slots; // in order of their beginning; each device's are in its own order
    int *at;              // [(stage * n_micro + micro) * 2 + backward]: index of the slot; -1
    double bubble;        // idle share of the devices' time, 0 to 1
    // By stage: micro-batches whose backward is still to come, at most; 1 in a forward-only table.
    int *most;
} tti_schedule;

// Fails with TT_EINVAL where the numbers do not go together, then saying which would. Free with
// tti_schedule_free().
tt_status tti_schedule_make(tt_ctx *ctx, const tti_schedule_query *q,
                            tti_schedule *out) TTI_CHECKED;
void tti_schedule_free(tt_ctx *ctx, tti_schedule *s);

/*
 * balance_stages.c: cuts a chain into n_stages parts so that the costliest is as cheap as can be,
 * and the others are alike where that leaves a choice. cost[i] is of element i (below zero counts
 * as zero); can_cut[i]: a cut before element i is allowed (i > 0). stage[i] comes out ascending.
 * False: there are fewer places to cut than needed.
 */
bool tti_balance(int n, const double *cost, const uint8_t *can_cut, int n_stages, int *stage);

#endif
