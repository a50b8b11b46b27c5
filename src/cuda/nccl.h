/*
 * nccl.h - what the module's other files need of nccl.cu: a device's gangs, asked and let go.
 */
#ifndef TUTTI_CUDA_NCCL_H
#define TUTTI_CUDA_NCCL_H

#include "cuda/parts.h"

typedef struct tti_gang_link {
    struct tti_gang *gang;
    struct tti_gang_link *next; // of the device's list
} tti_gang_link;

// As in tti_streams.
bool tti_nccl_joins(struct tti_device *const *d, int n, char *words, size_t size);
tt_status tti_nccl_gang(struct tti_device *const *d, int n, void **out);
tt_status tti_nccl_together(void *gang, const tti_library_call *list, int n);
tt_status tti_nccl_mark(struct tti_device *d, void **event);

// Fails if one of d's gangs has failed since it was last asked.
tt_status tti_gangs_check(const tti_cuda_device *d);
// Lets go what waits on the cards of d's gangs: they are lost, for this reason.
void tti_gangs_end(const tti_cuda_device *d, const char *why);
void tti_gangs_drop(tti_cuda_device *d);

#endif
