/*
 * host_sums.h - between combine.c, cut.c and host_sums.c: the hosts of replicas, and the inputs of
 * a sum's trees where there are several.
 */
#ifndef TUTTI_PLAN_SPREAD_HOST_SUMS_H
#define TUTTI_PLAN_SPREAD_HOST_SUMS_H

#include "comm/collective_schedule.h"
#include "plan/spread/spread.h"

// The sum of one host for another: who makes it, of which pieces (comm/collective_schedule.h), and
// its value once it is made.
typedef struct tti_host_sum {
    int by, first, end;
    int value; // -1: not made yet
} tti_host_sum;

typedef struct tti_host_sums {
    tti_spreader *s;
    int old;
    const tti_collective *what;
    const int *all; // partial sums in the order of lanes
    int n_all;
    bool is_used;       // several hosts, and one has several replicas
    tti_host_map hosts; // of the replicas
    int *values;        // by host, and the end of all: where in all its values begin
    tti_host_sum *sums; // by source and destination; one that goes to all is the first of its row
    int *in;
} tti_host_sums;

// The hosts of the replicas' devices for a part of the model, along pipe: replicas in a row that
// read each other's memory are one. Free with tti_host_map_free().
tt_status tti_replica_hosts(const tti_plan *p, int part, tti_host_map *out) TTI_CHECKED;

tt_status tti_host_sums_begin(tti_host_sums *h, tti_spreader *s, int old,
                              const tti_collective *what, const int *values, int n) TTI_CHECKED;
// What replica r's tree adds up, in the order of lanes; how many. -1: recorded.
int tti_host_sums_inputs(tti_host_sums *h, int r, const int **in);
void tti_host_sums_end(tti_host_sums *h);

#endif
