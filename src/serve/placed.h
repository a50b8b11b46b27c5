/*
 * placed.h - what placed.c (which task computes what) and placed_run.c (runs, variables) share.
 */
#ifndef TUTTI_SERVE_PLACED_H
#define TUTTI_SERVE_PLACED_H

#include "serve/partition.h"
#include "serve/serve.h"

#define TTI_MAX_DEFS 256 // runs that are remembered by their number

// A run that is remembered: what it feeds, fetches and computes.
typedef struct tti_run_def {
    tt_tensor **feeds, **fetches, **targets; // in one block
    int n_feeds, n_fetches, n_targets;
    bool is_made;        // the parts, or there need be none
    tti_partition parts; // of a graph over several tasks
} tti_run_def;

typedef struct tti_placed {
    tti_client *client;
    tt_ctx *ctx;
    tt_graph *g;
    tt_session *session; // NULL: several tasks
    int *task;           // by node
    tt_session **homes;  // by task: the variables there; made when asked for
    tt_graph **home_graphs;
    tti_run_def *defs[TTI_MAX_DEFS];
    char container[TTI_CONTAINER_MAX]; // on other tasks
    // Room of a run.
    tt_feed_value *feeds;
    tt_fetch *results;
    size_t *rooms;
    int64_t cap_feeds, cap_results, cap_rooms;
    uint8_t *zeros; // what tells the rows
    int64_t cap_zeros;
} tti_placed;

// The run of this number: read, if the request defines it, and made ready.
tt_status tti_placed_def(tti_placed *p, tti_reader *r, tti_run_def **out) TTI_CHECKED;
void tti_run_def_drop_parts(tti_run_def *d); // after a failure: the next run makes them anew
// A session for a graph on a task: here, or there.
tt_session *tti_placed_session(tti_placed *p, tt_graph *g, int task);

#endif
