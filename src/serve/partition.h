/*
 * partition.h - one run of a graph over several tasks.
 *
 * A segment is what one task computes at one level. The level of a node is the largest number of
 * changes between tasks on any way that leads to it, so values go from lower levels to higher ones
 * only, and running the segments level by level is running the graph. Every value has the bits that
 * one process would give it: ops see whole tensors, and their bits do not depend on where they run.
 *
 * Readers of a variable see it as it was before the run's updates: those at a higher level than an
 * update get the value that was read at level 0.
 */
#ifndef TUTTI_SERVE_PARTITION_H
#define TUTTI_SERVE_PARTITION_H

#include "run/run.h"

// A tensor that goes between segments, or between the client and them.
typedef struct tti_cut {
    tt_tensor *tensor; // of the whole graph
    const void *data;  // in the run under way
    tt_shape shape;
    size_t bytes;
    void *own; // memory for it
    int64_t cap;
} tti_cut;

typedef struct tti_segment {
    int task, level;
    tt_graph *graph;
    tt_session *session;
    // Feeds and fetches: numbers of cuts, and tensors of the segment's graph.
    int *feeds, *fetches;
    tt_tensor **feed_tensors, **fetch_tensors, **targets;
    int64_t n_feeds, n_fetches, n_targets, cap_feeds, cap_feed_tensors, cap_fetches,
        cap_fetch_tensors, cap_targets;
    tt_tensor *rows; // tells the number of rows where nothing else does; NULL: not needed
    // Room of a run.
    tt_feed_value *values;
    tt_fetch *results;
} tti_segment;

typedef struct tti_partition {
    tt_ctx *ctx;
    tti_segment *segments; // by level
    int64_t n, cap;
    tti_cut *cuts;
    int64_t n_cuts, cap_cuts;
} tti_partition;

typedef struct tti_partition_request {
    tt_graph *graph;
    const int *task; // by node; sources that go anywhere: -1
    int self;        // where what is nobody's is computed
    tt_tensor *const *fetches, *const *targets;
    int n_fetches, n_targets;
} tti_partition_request;

// Segments with their graphs, without sessions; *out is freed also after a failure.
tt_status tti_partition_make(const tti_partition_request *r, tti_partition *out) TTI_CHECKED;
void tti_partition_free(tti_partition *p);
// The device of a pin, without its task.
void tti_copy_pin(tt_node *c, const tt_node *n);
int tti_partition_cut(const tti_partition *p, const tt_tensor *t); // -1: it is none

#endif
