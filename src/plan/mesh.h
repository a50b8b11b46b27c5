/*
 * mesh.h - the devices of a plan as a grid with named axes.
 *
 *   data    replicas of the model: the lanes of the batch are assigned along it
 *   pipe    parts of the model: stages of a pipeline, or the devices that pins "local:k" name
 *   tensor  parts of one layer's matrices
 *   shard   parts of the weights, gathered where they are used
 *   expert  experts of a layer
 *
 * No strategy makes the last three yet: a plan refuses them, but layouts (layout.h) and the split
 * rules of ops know them. The topology's devices lie on the grid in order, the last axis running
 * fastest. A mesh without axes leaves every node to be placed by itself (strategy single).
 *
 * A strategy only says which mesh; everything else is the plan's. A mesh borrows from its topology.
 */
#ifndef TUTTI_PLAN_MESH_H
#define TUTTI_PLAN_MESH_H

#include "base/ctx.h"
#include "graph/graph.h"

typedef enum tti_mesh_axis {
    TTI_AXIS_DATA = 0,
    TTI_AXIS_PIPE = 1,
    TTI_AXIS_TENSOR = 2,
    TTI_AXIS_SHARD = 3,
    TTI_AXIS_EXPERT = 4,
    TTI_N_AXES,
} tti_mesh_axis;

typedef struct tti_mesh {
    int n_axes; // 0: every node is placed by itself, by pins and inputs
    struct {
        tti_mesh_axis name;
        int size;
    } axis[TTI_N_AXES]; // outermost first, no name twice

    // data: which lanes the replicas take, and how they hold what does not depend on rows.
    const double *speed;  // of the topology: by device, what shares of lanes go by; NULL: not that
    const char *share;    // of the topology: numbers by replica, "2,1"; NULL: equal, or by speed
    int n_without_lanes;  // replicas, the first, that take no lanes: they hold variables for others
    tt_layout_kind state; // of variables and updates: TT_LAYOUT_REPLICATED, or TT_LAYOUT_ONE: with
                          // the first replica

    // pipe: whether it is a pipeline, whose parts take micro-batches in turn.
    int n_stages; // a multiple of the axis's size; 0: no pipeline
    int n_micro;  // micro-batches of a replica, at most; 0: as many as it has lanes
} tti_mesh;

const char *tti_mesh_axis_name(tti_mesh_axis axis); // "data"
// The mesh {data: replicas, pipe: n_pipe}.
tti_mesh tti_mesh_make(int replicas, int n_pipe);
int tti_mesh_size(const tti_mesh *m, tti_mesh_axis axis); // 1: it has no such axis
int tti_mesh_n_devices(const tti_mesh *m);
// The topology's device at these coordinates, by axis; and a device's coordinate along an axis.
int tti_mesh_at(const tti_mesh *m, const int coordinate[TTI_N_AXES]);
int tti_mesh_coordinate(const tti_mesh *m, int device, tti_mesh_axis axis);
// The device of part l of replica r.
int tti_mesh_device(const tti_mesh *m, int r, int l);
// Axes with sizes, each once, of no more devices than the topology has; and none that no stage
// spreads work along. TT_EINVAL, TT_EUNSUPPORTED.
tt_status tti_mesh_check(tt_ctx *ctx, const tti_mesh *m, int n_devices) TTI_CHECKED;
// "data 4 x pipe 2"; "" without axes.
#define TTI_MESH_TEXT 96
const char *tti_mesh_text(const tti_mesh *m, char out[TTI_MESH_TEXT]);

// What replica r's lanes are to those of others; only the ratios mean something.
double tti_mesh_share(const tti_mesh *m, int r);

/*
 * assign_lanes.c: the lanes up to which each replica takes, by shares, at least one each (n_lanes
 * is no less than the replicas that take any). Of the assignments that make no replica's part more
 * than 5 % larger than need be the one with the fewest sub-trees.
 */
void tti_assign_lanes(const tti_mesh *m, int n_lanes, int *end);

#endif
