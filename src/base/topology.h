/*
 * topology.h - what a plan is made for: devices, the processes that have them, and how the work is
 * spread over them.
 *
 * A topology is a value. tt_open() makes that of the context; "what would happen on other devices,
 * or with another strategy" is a plan for another one, made by copying one and changing the copy
 * before it is used. The planner and the strategies read nothing else of the machine, and a plan
 * has a copy of what it was made for.
 */
#ifndef TUTTI_BASE_TOPOLOGY_H
#define TUTTI_BASE_TOPOLOGY_H

#include "base/base.h"

typedef struct tti_topology {
    int n_devices;
    tti_device **devices; // these three: by device, n_devices of them
    size_t *limit;        // bytes that a plan may use of it; 0: no limit
    double *speed;        // for share: auto; [0] is 0: not measured
    int n_tasks, task;    // how many processes plans span, 0 being one; which of them this is
    size_t host_memory;   // bytes that CPUs without a limit may use together; 0: not known
    bool is_host_group;   // a control group says so
    int isa;              // instruction set of the CPUs
    double same_host;     // bytes per second that a device receives from its own host, and from
    double cross_host;    // another; 0: not known
    void *made;           // devices that were made up for it (device/made_topology.c); NULL: none

    // How the work is spread.
    const struct tti_strategy *strategy; // strategy/; never NULL once open
    tt_spread spread;
    tt_soft soft;
    int lanes;
} tti_topology;

// Bytes of the three arrays for n devices; and the arrays laid into such memory, which is zeroed.
size_t tti_topology_bytes(int n);
void tti_topology_lay(tti_topology *top, void *memory);
// Room for n devices; what a copy has of its own is free to change until it is used. Free both with
// tti_topology_free(), which keeps devices that were made up as long as they are the copy's own.
tt_status tti_topology_room(tt_ctx *ctx, tti_topology *top, int n) TTI_CHECKED;
tt_status tti_topology_copy(tt_ctx *ctx, const tti_topology *from, tti_topology *out) TTI_CHECKED;
// The same in memory of tti_topology_bytes(from->n_devices), which somebody else frees.
void tti_topology_copy_to(const tti_topology *from, tti_topology *out, void *memory);
void tti_topology_free(tt_ctx *ctx, tti_topology *top);

#endif
