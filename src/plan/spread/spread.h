/*
 * spread.h - between spread.c, combine.c, sparse_rows.c and local_device.c: a plan being laid on a
 * mesh.
 *
 * Nodes as built are "old", those on the mesh "new". A micro-batch is some lanes in a row that one
 * replica takes at a time. A value split over rows has one new value per micro-batch. Any other, a
 * "whole" one, has one per replica, or pieces: replica r has range r of its elements. Of a large
 * gradient only pieces are made, and the update works on pieces of the variables too.
 */
#ifndef TUTTI_PLAN_SPREAD_H
#define TUTTI_PLAN_SPREAD_H

#include "plan/plan.h"
#include "plan/spread/pipe_schedule.h"

typedef enum tti_mode {
    TTI_MODE_ROWS,       // a copy per micro-batch
    TTI_MODE_REPLICATED, // a copy per replica
    TTI_MODE_ONE,        // one copy, with its owner: the first replica but for expensive ones
    TTI_MODE_PIECES,     // a copy per replica, each on its range of the elements
    TTI_MODE_STATISTICS, // a copy per replica, each on its range of its inputs; all make something
    TTI_MODE_ALIAS,      // only says something of its inputs
} tti_mode;

typedef struct tti_micro_batch {
    int replica, micro;
    tt_lanes *lanes;
    int64_t rows;
    const char *reason; // "lanes 0 to 3"
} tti_micro_batch;

typedef struct tti_spreader {
    tti_plan *p;
    const tti_mesh *mesh;
    bool no_pieces;
    int n_replicas, n_pipe;   // sizes of the axes data and pipe
    tti_micro_batch *batches; // ascending lanes
    int n_batches;
    int *micros; // by replica

    tti_value *values; // old
    tti_pnode *nodes;
    int64_t n_values, n_nodes;
    uint8_t *mode;       // by old node: tti_mode
    uint8_t *in_pieces;  // by old value: 1 made as pieces, 2 by every replica a number of its own
    uint8_t *is_sparse;  // by old value: micro-batches keep the rows of it that they touch
    uint8_t *is_sharded; // by old node: a variable that is only used in pieces, and exists once
    uint8_t *is_late;    // by old node: needs a sum over all rows
    int *owner;          // by old node: of TTI_MODE_ONE, the replica that has it
    int *residual; // by old value: the variable of what narrowing takes; -1: it is not narrowed
    tti_order_key *tree_key; // by old value: where its tree would like to stand
    tti_order_key *made_key; // by old value: where the bucket that it is in has been made
    uint8_t *urgent;         // by old value: rows wait for it
    int *stage;              // by old node
    int *copies;             // by old value and micro-batch
    int *whole;              // by old value and replica; -1
    int *piece;              // by old value and replica; -1
    int *first, *n_copies;   // by old node: its new ones, which follow each other

    const tt_node **weight;    // by old value: whose gradient it is; NULL: there is no hook
    struct tti_hooked *hooked; // sums that the hook makes, in order
    int64_t n_hooked, cap_hooked;

    tti_schedule *schedules; // by replica; pipelines only
    int late;                // slot of what comes after all micro-batches
} tti_spreader;

// ---- micro_batches.c -------------------------------------------------------------------------

// Fills batches: every replica's lanes in at most micro parts, 0: a part per lane.
tt_status tti_spread_batches(tti_spreader *s, int micro) TTI_CHECKED;

// ---- local_device.c --------------------------------------------------------------------------

// Fills stage: which local device (pipelines: which stage) of a replica does each old node.
tt_status tti_spread_stages(tti_spreader *s, const tti_plan_request *req) TTI_CHECKED;
// Adds the estimated nanoseconds of each stage's nodes on rows.
void tti_spread_costs(tti_spreader *s, double *forward, double *backward);
// The context's device of an old node's copy with replica r; -1: placed later.
int tti_spread_device(const tti_spreader *s, int node, int replica);

// ---- layouts: set where values are made ------------------------------------------------------

// Part, or coordinate, `part` along data.
static inline void tti_set_data(tti_plan *p, int value, tt_layout_kind kind, int dim, int part)
{
    p->values[value].layout.on[TTI_AXIS_DATA] =
        (tti_layout_entry){(uint8_t)kind, (int8_t)dim, (int16_t)part};
}
// Along pipe, what an old node's copies make is with the part of the model that the node is in.
tti_layout_entry tti_spread_pipe(const tti_spreader *s, int node);

// ---- targets.c -------------------------------------------------------------------------------

// Once all nodes are copied: control edges, targets and feeds of the new ones.
tt_status tti_spread_ends(tti_spreader *s) TTI_CHECKED;

/*
 * Does one replica make a sum that all read, rather than every replica for itself or a piece of it?
 * That one is the first where the variables are there; with many replicas, whose sums would take a
 * transfer for each two of them, they take turns.
 */
#define TTI_MANY_REPLICAS 64
static inline bool tti_is_made_once(const tti_spreader *s)
{
    return s->mesh->state == TT_LAYOUT_ONE ||
           (s->n_replicas > TTI_MANY_REPLICAS && s->p->top->spread.update != TT_UPDATE_SHARD);
}

// ---- modes.c ---------------------------------------------------------------------------------

// Decides mode, in_pieces, is_shared and is_late, and where trees stand.
void tti_spread_modes(tti_spreader *s);

// ---- combine.c -------------------------------------------------------------------------------

bool tti_is_split(const tti_value *v);
bool tti_is_sum(const tti_value *v); // over rows
// Elements [begin, end) of count that replica r of n has; cut at blocks of 1,024.
void tti_piece_range(int64_t count, int r, int n, int64_t *begin, int64_t *end);
// What the replicas do together with a value of count elements, in such pieces; NULL: recorded.
const tti_collective *tti_spread_collective(tti_spreader *s, tti_collective_kind kind, int root,
                                            tt_dtype dtype, int64_t count);
// Makes a new value the range [begin, end) of its elements.
void tti_make_piece(tti_plan *p, int value, int64_t begin, int64_t end);
// Makes a new value, a sum in so many parts, that range of every part.
void tti_make_range(tti_plan *p, int value, int64_t parts, int64_t begin, int64_t end);
// The new value of an old whole one for replica r; made if there are only pieces; -1: failed.
int tti_spread_whole(tti_spreader *s, int old, int r);
int tti_spread_piece(tti_spreader *s, int old, int r);
// Puts the micro-batches' partial sums, or statistics, of an old node together.
tt_status tti_spread_combine(tti_spreader *s, int node) TTI_CHECKED;
/*
 * A node with replica r that puts values together into an old one's; of statistics, into three that
 * follow each other. Gives the first new value; -1.
 */
int tti_add_combining(tti_spreader *s, int old, int r, const int *values, int n_in,
                      tti_node_kind kind);
// After an update in pieces: every copy of the variable gets the others' pieces.
tt_status tti_spread_collect(tti_spreader *s, int old) TTI_CHECKED;
// Rows of all micro-batches put together, for a fetch; -1: failed.
int tti_spread_gather(tti_spreader *s, int old);

// ---- library_collective.c --------------------------------------------------------------------

// Does a library carry what the old node's copies with all replicas make? A sum of that type?
bool tti_is_by_library(tti_spreader *s, int node);
bool tti_is_library_sum(tti_spreader *s, int old, tt_dtype partial);
// The sum, whole or in pieces, of the replicas' n partial sums.
tt_status tti_spread_library_sum(tti_spreader *s, int old, const int *values, int n) TTI_CHECKED;
// Of n values in the order of replicas those of replica r, from *at on, as one sum; -1.
int tti_sum_of_replica(tti_spreader *s, int old, int r, const int *values, int n, int *at);
// As tti_spread_collect().
tt_status tti_spread_library_collect(tti_spreader *s, int old) TTI_CHECKED;

// ---- bucket_hook.c ---------------------------------------------------------------------------

// A sum that the user's hook makes: by replica, the node behind which its readers stand.
typedef struct tti_hooked {
    int old;
    int *nodes;
} tti_hooked;
// Before the nodes are copied: which values are gradients. After it: a call per bucket and process.
tt_status tti_spread_hook_begin(tti_spreader *s, const tti_plan_request *req) TTI_CHECKED;
tt_status tti_spread_hook_end(tti_spreader *s) TTI_CHECKED;
bool tti_spread_hooks_sum(const tti_spreader *s, int old, tt_dtype partial);
tt_status tti_spread_hook_sum(tti_spreader *s, int old, const int *values, int n) TTI_CHECKED;

// ---- sparse_rows.c ---------------------------------------------------------------------------

// Decides is_sparse: by bytes, where there are several micro-batches.
void tti_spread_sparse_rows(tti_spreader *s);
// Makes a micro-batch's partial sum, just bound, the rows it touches.
tt_status tti_make_sparse_rows(tti_spreader *s, int value, const tti_micro_batch *sh) TTI_CHECKED;

#endif
