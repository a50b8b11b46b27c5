/*
 * cuda_module.h - kernels of the CUDA module called alone, as a plan calls them. The module is the
 * one that TUTTI_CUDA_MODULE names, for a GPU or its emulation; without one the test is skipped.
 */
#ifndef TUTTI_TEST_CUDA_MODULE_H
#define TUTTI_TEST_CUDA_MODULE_H

#include "device/kernel_key.h"
#include "test.h"

void test_device_open(void);
void test_device_close(void);
// Gives back all memory and lanes that the functions below have given.
void test_device_clear(void);

// An argument of a shape, without data.
tt_arg test_arg(tt_dtype t, tt_shape shape);
// Lanes first to last of total that share rows as those of a job do.
const tt_lanes *test_lanes(int first, int last, int total, int64_t rows);
// Memory of the device with a copy of data unless that is NULL; skip bytes in, so that it can be
// made badly aligned.
void *test_device_room(const void *data, size_t bytes, size_t skip);
// A vector of count elements there, skip elements in.
tt_arg test_device_arg(tt_dtype t, int64_t count, const void *data, size_t skip);
void test_device_get(void *to, const tt_arg *a);

// Prepares, if the kernel has something to prepare, and runs it; l has all but what belongs to the
// device, and a node if the kernel needs more of it than the name. The message of a failure is
// test_device_reason().
tt_status test_device_run(const char *op, tt_launch l);
tt_status test_device_run_key(tti_kernel_key key, tt_launch l);
const char *test_device_reason(void);

#endif
