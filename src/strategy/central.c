/*
 * central.c - variables and updates on the first device, the work mirrored on all. A CPU before
 * GPUs only keeps and updates: they would wait for its share of the rows.
 */
#include "device/device.h"
#include "strategy/strategy.h"

static bool is_cpu_before_gpus(const tti_topology *top)
{
    bool found = top->n_devices > 1;
    for (int d = 0; d < top->n_devices; d++)
        found &= tti_has_streams(top->devices[d]) == (d > 0);
    return found;
}

static tt_status central_mesh(const tti_topology *top, const tt_graph *g, tti_mesh *out)
{
    if (tti_local_pins(g, NULL) < 2 && is_cpu_before_gpus(top)) {
        tti_assignment ask = {.replicas = top->spread.replicas,
                              .n_pipe = 1,
                              .why = "no pins local:1",
                              .n_without_lanes = 1};
        TT_TRY(tti_assign_devices(top, g, &ask, out));
    } else {
        TT_TRY(tti_strategy_mirrored.mesh(top, g, out));
    }
    out->state = TT_LAYOUT_ONE;
    return TT_OK;
}

static const char *const central_uses[] = {"replicas", "share", "reduce", "wire", "bucket", NULL};

const tti_strategy tti_strategy_central = {
    .name = "central",
    .help = "data parallelism with the weights on the first device; if that is a CPU and there are "
            "GPUs, the GPUs compute",
    .uses = central_uses,
    .mesh = central_mesh,
};
