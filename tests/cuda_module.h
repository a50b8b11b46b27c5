/*
 * cuda_module.h - kernels of the CUDA module called alone, as a plan calls them. The module is the
 * one that TUTTI_CUDA_MODULE names, for a GPU or its emulation; without one the test is skipped.
 */
#ifndef TUTTI_TEST_CUDA_MODULE_H
#define TUTTI_TEST_CUDA_MODULE_H

#include "cuda/module.h"
#include "test.h"

void test_device_open(void);
void test_device_close(void);
// For tests that call more of the module than the functions below.
const tti_cuda_module *test_device_module(void);
void *test_device_state(void);
// Gives back the memory of all arguments so far.
void test_device_clear(void);

// A vector of count elements in the device's memory, a copy of data unless that is NULL; skip
// elements in, so that it can be made badly aligned.
tt_arg test_device_arg(tt_dtype t, int64_t count, const void *data, size_t skip);
void test_device_get(void *to, const tt_arg *a);

// Prepares, if the kernel has something to prepare, and runs it; l has all but what belongs to the
// device. The message of a failure is test_device_reason().
tt_status test_device_run(const char *name, tt_launch l);
const char *test_device_reason(void);

#endif
