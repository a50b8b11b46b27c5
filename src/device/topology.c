/*
 * topology.c - topologies of devices that are not there: to ask what a plan would need on them.
 */
#include "base/ctx.h"
#include "device/device.h"
#include <stdio.h>
#include <string.h>

// Device i of n, with the threads that it would have. Kernels of GPUs prepare with its state.
static void make_up(const tti_device *like, int i, int n, tti_device *out)
{
    int threads = like->ctx->n_threads;
    out->ctx = like->ctx;
    out->backend = like->backend;
    out->index = i;
    out->full = like->full;
    out->full.index = i;
    out->n_threads = TTI_MAX(1, (i + 1) * threads / n - i * threads / n);
    out->limit = like->limit;
    out->state = like->state;
    snprintf(out->name, sizeof(out->name), "%s:%d", like->backend->name, i);
    snprintf(out->physical, sizeof(out->physical), "%s", like->physical);
}

tt_status tti_topology_grow(tt_ctx *ctx, const tti_topology *from, int n, tti_topology *out)
{
    if (n < 1 || n > TTI_MAX_DEVICES)
        return TT_FAIL(ctx, TT_EINVAL, "%d devices; 1 to %d are allowed", n, TTI_MAX_DEVICES);
    tti_device *made = tti_calloc(ctx, (size_t)n, sizeof(*made));
    if (made == NULL)
        return TT_ENOMEM;
    *out = *from;
    out->made = made;
    out->n_devices = n;
    for (int d = 0; d < n; d++) {
        make_up(from->devices[0], d, n, &made[d]);
        out->devices[d] = &made[d];
        out->speed[d] = from->speed[0];
        out->limit[d] = from->limit[0];
    }
    return TT_OK;
}

void tti_topology_free(tt_ctx *ctx, tti_topology *top)
{
    tti_free(ctx, top->made);
    *top = (tti_topology){0};
}
