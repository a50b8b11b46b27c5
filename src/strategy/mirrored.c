/*
 * mirrored.c - a copy of the model on every device, each with some of the lanes; gradients are
 * summed, and all copies get the same update. With pins "local:k" a copy is on several devices.
 */
#include "strategy/strategy.h"
#include <stdio.h>

static tt_status mirrored_mesh(const tti_topology *top, const tt_graph *g, tti_mesh *out)
{
    int pins = tti_local_pins(g, NULL);
    char why[64] = "no pins local:1";
    if (pins > 1)
        snprintf(why, sizeof(why), "pins up to local:%d", pins - 1);
    tti_assignment ask = {.replicas = top->spread.replicas, .n_pipe = TTI_MAX(pins, 1), .why = why};
    return tti_assign_devices(top, g, &ask, out);
}

static const char *const mirrored_uses[] = {"replicas", "share",  "reduce", "wire",
                                            "bucket",   "update", NULL};

const tti_strategy tti_strategy_mirrored = {
    .name = "mirrored",
    .help = "synchronous data parallelism: a copy of the model on every device",
    .uses = mirrored_uses,
    .mesh = mirrored_mesh,
};
