/*
 * topology.c - the memory of topologies: three arrays by device, in one block.
 */
#include "base/topology.h"
#include "base/ctx.h"
#include <string.h>

size_t tti_topology_bytes(int n)
{
    return (size_t)n * (sizeof(tti_device *) + sizeof(size_t) + sizeof(double));
}

void tti_topology_lay(tti_topology *top, void *memory)
{
    size_t n = (size_t)top->n_devices;
    top->devices = memory;
    top->limit = (size_t *)(void *)(top->devices + n);
    top->speed = (double *)(void *)(top->limit + n);
}

tt_status tti_topology_room(tt_ctx *ctx, tti_topology *top, int n)
{
    void *memory = tti_calloc(ctx, 1, tti_topology_bytes(n) + 1);
    if (memory == NULL)
        return TT_ENOMEM;
    top->n_devices = n;
    tti_topology_lay(top, memory);
    return TT_OK;
}

void tti_topology_copy_to(const tti_topology *from, tti_topology *out, void *memory)
{
    *out = *from;
    out->made = NULL; // stay the other's
    if (from->n_devices > 0)
        memcpy(memory, from->devices, tti_topology_bytes(from->n_devices));
    tti_topology_lay(out, memory);
}

tt_status tti_topology_copy(tt_ctx *ctx, const tti_topology *from, tti_topology *out)
{
    void *memory = tti_alloc(ctx, tti_topology_bytes(from->n_devices) + 1);
    if (memory == NULL)
        return TT_ENOMEM;
    tti_topology_copy_to(from, out, memory);
    return TT_OK;
}

void tti_topology_free(tt_ctx *ctx, tti_topology *top)
{
    tti_free(ctx, top->devices);
    tti_free(ctx, top->made);
    *top = (tti_topology){0};
}
