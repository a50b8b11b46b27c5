/*
 * host_sums.h - between combine.c and host_sums.c: the inputs of a sum's trees where replicas are
 * on several hosts.
 */
#ifndef TUTTI_PLAN_SPREAD_HOST_SUMS_H
#define TUTTI_PLAN_SPREAD_HOST_SUMS_H

#include "plan/spread/spread.h"

// Replicas [first, end) of one host, and their values of all.
typedef struct tti_host_group {
    int first, end;
    int values, n_values;
} tti_host_group;

typedef struct tti_host_sums {
    tti_spreader *s;
    int old;
    const tti_collective *what;
    const int *all; // partial sums in the order of lanes
    int n_all;
    bool is_used; // several hosts, and one has several replicas
    tti_host_group *groups;
    int n_groups;
    int *sums; // by source and, of pieces, destination: the value; -1: not made yet
    int *in;
} tti_host_sums;

tt_status tti_host_sums_begin(tti_host_sums *h, tti_spreader *s, int old,
                              const tti_collective *what, const int *values, int n) TTI_CHECKED;
// What replica r's tree adds up, in the order of lanes; how many. -1: recorded.
int tti_host_sums_inputs(tti_host_sums *h, int r, const int **in);
void tti_host_sums_end(tti_host_sums *h);

#endif
