/*
 * topology.h - what a plan is made for: devices, the processes that have them, and how the work is
 * spread over them.
 *
 * A topology is a value. tt_open() makes that of the context; "what would happen on other devices,
 * or with another strategy" is a plan for another one. The planner and the strategies read nothing
 * else of the machine, and a plan has a copy of what it was made for.
 */
#ifndef TUTTI_BASE_TOPOLOGY_H
#define TUTTI_BASE_TOPOLOGY_H

#include "base/base.h"

#define TTI_MAX_DEVICES 64

typedef struct tti_topology {
    tti_device *devices[TTI_MAX_DEVICES];
    int n_devices;
    int n_tasks, task; // how many processes plans span, 0 being one; which of them this is
    size_t limit[TTI_MAX_DEVICES]; // bytes that a plan may use of a device; 0: no limit
    double speed[TTI_MAX_DEVICES]; // of the devices, for share: auto; [0] is 0: not measured
    size_t host_memory;            // bytes that CPUs without a limit may use together; 0: not known
    bool is_host_group;            // a control group says so
    int isa;                       // instruction set of the CPUs
    tti_device *made; // devices that were made up for it (device/topology.c); NULL: none

    // How the work is spread.
    const struct tti_strategy *strategy; // strategy/; never NULL once open
    tt_spread spread;
    tt_soft soft;
    int lanes;
} tti_topology;

#endif
