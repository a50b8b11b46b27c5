/*
 * mesh.h - how a plan lies on devices: some replicas of the model, each on some devices of its own.
 *
 * Replica r has device[r * n_local + l] as its local device l, which a pin "local:1" names. Lanes
 * are assigned to replicas; a replica takes its lanes all at once or, in turn, as micro-batches. A
 * strategy only says which mesh; everything else is the plan's.
 */
#ifndef TUTTI_PLAN_MESH_H
#define TUTTI_PLAN_MESH_H

#include "base/ctx.h"
#include "graph/graph.h"

typedef struct tti_mesh {
    int n_replicas, n_local;
    int device[TTI_MAX_DEVICES];   // of the context
    double share[TTI_MAX_DEVICES]; // of the lanes, by replica
    bool is_free;                  // one replica, its nodes placed one by one: pins, inputs
    bool is_central;               // what is no row's stays on the first device
    bool is_apart;                 // which then takes no lanes: the other replicas have the work
    bool is_staged;                // pipeline: a local device is a stage (or several: chunks)
    int n_chunks;                  // stages of a local device
    int n_micro; // micro-batches of a replica, at most; 0: as many as it has lanes
} tti_mesh;

/*
 * assign_lanes.c: the lanes up to which each replica takes, by shares, at least one each (n_lanes
 * is no less than the replicas); one that is apart takes none. Of the assignments that make no
 * replica's part more than 5 % larger than need be the one with the fewest sub-trees.
 */
void tti_assign_lanes(const tti_mesh *m, int n_lanes, int *end);

#endif
