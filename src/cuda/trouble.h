/*
 * trouble.h - what a kernel found wrong in values, such as an id out of range, told after the step.
 *
 * A kernel cannot fail. It notes the first trouble of its device in memory of the host that the
 * device can write, and goes on with harmless values; whoever waits for the device then looks
 * (tti_trouble_check) and fails the run, naming the node and the value.
 */
#ifndef TUTTI_CUDA_TROUBLE_H
#define TUTTI_CUDA_TROUBLE_H

#include "cuda/cuda.h"

// Zeroed; mapped memory of the host.
struct tti_trouble {
    int is_set;
    const tt_node *node; // an address of the host
    long long value, at, limit;
};

// After all work of the device is done. An error that was there is gone afterwards.
static inline tt_status tti_trouble_check(tti_cuda_device *d)
{
    tti_trouble *t = d->trouble;
    if (t == NULL || !t->is_set)
        return TT_OK;
    tti_trouble was = *t;
    t->is_set = 0;
    return TT_FAIL(d->ctx, TT_EINVAL, "%s '%s' on %s: id %lld at position %lld is %s %lld",
                   was.node->op->name, was.node->name, d->name, was.value, was.at,
                   was.value < 0 ? "below" : "not below", was.value < 0 ? 0ll : was.limit);
}

#ifdef __cplusplus
// id, at position at, is not in [0, limit). t may be NULL: then nobody is told.
__device__ static inline void tti_bad_id(tti_trouble *t, const tt_node *node, int64_t id,
                                         int64_t at, int64_t limit)
{
    if (t == NULL || atomicCAS(&t->is_set, 0, 1) != 0)
        return;
    t->node = node;
    t->value = id;
    t->at = at;
    t->limit = limit;
}
#endif

#endif
