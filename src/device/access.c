/*
 * access.c - what the rest of the library asks of any device: its kernels, and memory that may not be
 * the host's.
 */
#include "base/ctx.h"
#include "device/device.h"
#include <string.h>

const tt_kernel *tti_device_kernel(const tti_device *d, const tt_op *op)
{
    const tt_kernel *own = &op->kernel[d->backend->id];
    if (d->backend->kernel == NULL || own->fn[0] != NULL)
        return own;
    return d->backend->kernel(d, op->name);
}

tt_status tti_device_copy(tti_device *to, void *dst, tti_device *from, const void *src,
                          size_t bytes)
{
    tti_device *by = to != NULL && tti_has_streams(to) ? to : from;
    if (bytes == 0)
        return TT_OK;
    if (by != NULL && tti_has_streams(by))
        return by->backend->copy(to, dst, from, src, bytes);
    memcpy(dst, src, bytes);
    return TT_OK;
}

bool tti_device_can_read(const tti_device *d, const tti_device *other)
{
    if (d == other || (d->backend->host_memory && other->backend->host_memory))
        return true;
    return d->backend->can_read != NULL && d->backend == other->backend &&
           d->backend->can_read(d, other);
}
