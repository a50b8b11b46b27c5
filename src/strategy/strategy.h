/*
 * strategy.h - strategies are records: a name, a line of help, the options they use, and the mesh
 * they make of a topology's devices for a graph. They have no code in the step.
 */
#ifndef TUTTI_STRATEGY_STRATEGY_H
#define TUTTI_STRATEGY_STRATEGY_H

#include "plan/mesh.h"

typedef struct tti_strategy {
    const char *name, *help;
    const char *const *uses; // names of tti_spread_rows, NULL at the end; others are refused
    // The mesh for this graph. Fails when devices, lanes, pins or options do not go together.
    tt_status (*mesh)(const tti_topology *top, const tt_graph *g, tti_mesh *out);
} tti_strategy;

#define TTI_STRATEGY(name) extern const tti_strategy tti_strategy_##name;
#include "strategy/strategies.def"
#undef TTI_STRATEGY

extern const tt_option tti_spread_rows[]; // of tt_spread

const tti_strategy *tti_strategy_at(int i);              // NULL past the end
const tti_strategy *tti_strategy_find(const char *name); // NULL if unknown

// Fills in the strategy and its options, as far as they can be judged without devices; text of the
// options is borrowed.
tt_status tti_strategy_choose(tt_ctx *ctx, const char *name, const tt_spread *spread,
                              tti_topology *out) TTI_CHECKED;
// Is this row of tti_spread_rows an option of the strategy?
bool tti_strategy_uses(const tti_strategy *s, const char *name);
// Does the strategy have this option, or does the option ask for nothing?
bool tti_spread_takes(const tti_strategy *s, const tt_option *row, const tt_spread *spread);
// Options by themselves: bounds, words, and that the strategy uses them.
tt_status tti_spread_check(tt_ctx *ctx, const tti_strategy *s, const tt_spread *spread) TTI_CHECKED;
// One more than the highest k of a pin "local:k" in the graph; 0: there is none. *who, if not NULL,
// is the node with that pin.
int tti_local_pins(const tt_graph *g, const tt_node **who);

// ---- assign_devices.c: devices and lanes to replicas -----------------------------------------

// What a strategy with replicas asks for.
typedef struct tti_assignment {
    int replicas;        // that take lanes; 0: as many as there are devices for
    int n_pipe;          // devices of a replica
    const char *why;     // where n_pipe comes from: "pins up to local:1"
    int n_without_lanes; // replicas, of one device, before those that take lanes
} tti_assignment;
// The mesh {data, pipe} of the topology's devices, in order, with shares of lanes.
tt_status tti_assign_devices(const tti_topology *top, const tt_graph *g, const tti_assignment *ask,
                             tti_mesh *out) TTI_CHECKED;
// Sets what the mesh's shares go by, from text: "equal", "auto", "2,1"; without axes it only looks
// at the text.
tt_status tti_assign_shares(const tti_topology *top, tt_ctx *ctx, const tti_strategy *s,
                            const char *text, tti_mesh *mesh) TTI_CHECKED;
// "up to 8 replicas (lanes: 8)": how far the lanes let a graph be spread.
#define TTI_MOST_TEXT 96
const char *tti_most_text(const tti_topology *top, const tt_graph *g, char out[TTI_MOST_TEXT]);

#endif
