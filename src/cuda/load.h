/*
 * load.h - the module for GPUs as the library sees it.
 */
#ifndef TUTTI_CUDA_LOAD_H
#define TUTTI_CUDA_LOAD_H

#include "cuda/module.h"
#include "device/device.h"

/*
 * The module, loaded when first asked for and kept for the life of the process; NULL, with the
 * reason in why, if it is not there.
 */
const tti_cuda_module *tti_cuda_load(char *why, size_t n);

// What a device with streams does, once the module is loaded: its own record.
extern tti_streams tti_cuda_streams;

// "CUDA 13.0, driver 13.0, cuBLASLt 13.0.0, ...", or "no (...)".
void tti_cuda_describe(char *out, size_t n);

#endif
