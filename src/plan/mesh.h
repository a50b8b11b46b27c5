/*
 * mesh.h - how a plan lies on devices: some replicas of the model, each on some devices of its own.
 *
 * Replicas have the topology's devices in order, n_local each, of which a pin "local:1" names one.
 * Lanes are assigned to replicas; a replica takes its lanes all at once or, in turn, as
 * micro-batches. A strategy only says which mesh; everything else is the plan's. A mesh borrows
 * from its topology.
 */
#ifndef TUTTI_PLAN_MESH_H
#define TUTTI_PLAN_MESH_H

#include "base/ctx.h"
#include "graph/graph.h"

typedef struct tti_mesh {
    int n_replicas, n_local;
    const double *speed; // of the topology: by device, what shares of lanes go by; NULL: not that
    const char *share;   // of the topology: numbers by replica, "2,1"; NULL: equal, or by speed
    bool is_free;        // one replica, its nodes placed one by one: pins, inputs
    bool is_central;     // what is no row's stays on the first device
    bool is_apart;       // which then takes no lanes: the other replicas have the work
    bool is_staged;      // pipeline: a local device is a stage (or several: chunks)
    int n_chunks;        // stages of a local device
    int n_micro;         // micro-batches of a replica, at most; 0: as many as it has lanes
} tti_mesh;

// The topology's device that is local device l of replica r.
static inline int tti_mesh_device(const tti_mesh *m, int r, int l)
{
    return r * m->n_local + l;
}

// assign_lanes.c: what replica r's lanes are to those of others; only the ratios mean something.
double tti_mesh_share(const tti_mesh *m, int r);

/*
 * assign_lanes.c: the lanes up to which each replica takes, by shares, at least one each (n_lanes
 * is no less than the replicas); one that is apart takes none. Of the assignments that make no
 * replica's part more than 5 % larger than need be the one with the fewest sub-trees.
 */
void tti_assign_lanes(const tti_mesh *m, int n_lanes, int *end);

#endif
