/*
 * gpu_profile.h - GPUs that are not here, to plan for: a backend that only answers what the planner
 * asks.
 */
#ifndef TUTTI_DEVICE_GPU_PROFILE_H
#define TUTTI_DEVICE_GPU_PROFILE_H

#include "device/device.h"

// A kind of GPU, as it was recorded.
typedef struct tti_gpu_profile {
    const char *name;   // as topologies name it
    const char *model;  // as its driver does
    size_t memory;      // bytes
    size_t workspace;   // bytes that a matrix library may take for one call
    const char *source; // what was recorded, and where it comes from
} tti_gpu_profile;

const tti_gpu_profile *tti_gpu_profile_at(int i);              // NULL past the end
const tti_gpu_profile *tti_gpu_profile_find(const char *name); // NULL: the first; NULL if unknown

// Its kernels compute nothing. tti_device.state is the profile.
extern const tti_backend tti_backend_gpu_profile;

#endif
