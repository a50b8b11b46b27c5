/*
 * collective.h - a collective: what the members of a group do together. A call of tt_comm is one
 * (comm/), so are a plan's sums over replicas and the pieces that it puts together (plan/), and so
 * is what a library is asked for (cuda/). comm/collectives.c has a record per kind: its name and
 * its piece map. Plain structs, read by modules of backends.
 */
#ifndef TUTTI_DEVICE_COLLECTIVE_H
#define TUTTI_DEVICE_COLLECTIVE_H

#include <tutti/comm.h>
#include <tutti/extend.h>

typedef enum tti_collective_kind {
    TTI_ALL_REDUCE = 0,     // the result, to every member
    TTI_REDUCE_SCATTER = 1, // the result, of which each member gets its piece
    TTI_ALL_GATHER = 2,     // each member has its piece and gets the others'
    TTI_BROADCAST = 3,
    TTI_ALL_TO_ALL = 4,
    TTI_BARRIER = 5,
    TTI_SUM_LANES = 6,
    TTI_REDUCE_TO = 7, // the result, to the root
    TTI_GATHER_TO = 8,
    TTI_SCATTER_FROM = 9,
    TTI_BROADCAST_BYTES = 10,
    TTI_GATHER_BYTES = 11,
    TTI_N_COLLECTIVE_KINDS = 12,
} tti_collective_kind;

typedef struct tti_collective {
    tti_collective_kind kind;
    tt_dtype dtype;
    tt_combine combine; // of reductions
    bool is_fast;       // in any order; else exact: along the lane tree
    int n;              // members of the group
    int root;
    const int64_t *begin; // n + 1: member r's piece is [begin[r], begin[r + 1]); NULL: even shares
} tti_collective;

// One that a library carries out, in place over the devices of a communicator.
typedef struct tti_library_call {
    tti_collective what;
    void **data;         // by device: the first of all elements; of a scatter the rest is undefined
    const tt_node *node; // whose value it is, for messages; NULL: nobody's
} tti_library_call;

#endif
