/*
 * single.c - one copy of the model. Its nodes are on the first device, or where pins say; "local:1"
 * is the context's second device.
 */
#include "device/device.h"
#include "strategy/strategy.h"

static tt_status single_mesh(const tti_topology *top, const tt_graph *g, tti_mesh *out)
{
    tt_ctx *ctx = g->ctx;
    const tt_node *who = NULL;
    char list[TTI_DEVICE_LIST];
    int n = tti_local_pins(g, &who);
    if (n > top->n_devices)
        return TT_FAIL(ctx, TT_EINVAL, "%s '%s' is pinned to local:%d, but there is only %s",
                       who->op->name, who->name, n - 1, tti_device_list(top, list));
    *out = (tti_mesh){.n_micro = 1}; // no axes: nodes are placed one by one
    return TT_OK;
}

// One replica has nothing to reduce; these are taken so that a job can be tried on one device.
static const char *const single_uses[] = {"reduce", "wire", "bucket", "update", NULL};

const tti_strategy tti_strategy_single = {
    .name = "single",
    .help = "one device; layers may be pinned to others",
    .uses = single_uses,
    .mesh = single_mesh,
};
