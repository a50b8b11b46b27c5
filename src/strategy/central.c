/*
 * central.c - variables and updates on the first device, the work mirrored on all.
 */
#include "strategy/strategy.h"

static tt_status central_mesh(const tt_graph *g, tti_mesh *out)
{
    TT_TRY(tti_strategy_mirrored.mesh(g, out));
    out->is_central = true;
    return TT_OK;
}

static const char *const central_uses[] = {"replicas", "share", "reduce", "wire", "bucket", NULL};

const tti_strategy tti_strategy_central = {
    .name = "central",
    .help = "variables on the first device, the work on all",
    .uses = central_uses,
    .mesh = central_mesh,
};
