/*
 * strategy.h - strategies are records: a name, a line of help, and the mesh they make of the
 * context's devices for a graph. They have no code in the step.
 */
#ifndef TUTTI_STRATEGY_STRATEGY_H
#define TUTTI_STRATEGY_STRATEGY_H

#include "plan/mesh.h"

typedef struct tti_strategy {
    const char *name, *help;
    // The mesh for this graph. Fails when devices, lanes, pins or options do not go together.
    tt_status (*mesh)(const tt_graph *g, tti_mesh *out);
} tti_strategy;

const tti_strategy *tti_strategy_at(int i);              // NULL past the end
const tti_strategy *tti_strategy_find(const char *name); // NULL if unknown

// Sets the context's strategy and its options; the devices are open.
tt_status tti_strategy_open(tt_ctx *ctx, const char *name, const tt_spread *spread) TTI_CHECKED;
// One more than the highest k of a pin "local:k" in the graph; 0: there is none.
int tti_local_pins(const tt_graph *g);

#endif
