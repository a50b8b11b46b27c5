/*
 * cuda_floats.h - floats for kernels of the CUDA module called alone, rounded to the types that
 * they compute in, and compared with sums in double.
 */
#ifndef TUTTI_TEST_CUDA_FLOATS_H
#define TUTTI_TEST_CUDA_FLOATS_H

#include "cuda_module.h"

extern const tt_dtype test_float_types[3]; // f32, bf16, f16

// n zeros; like all that the functions here give, until test_floats_clear().
float *test_floats(int64_t n);
void test_floats_clear(void); // what test_device_clear() does, too

// On the device, skip elements into its memory; x, rounded to the type, is what is there. NULL:
// anything.
tt_arg test_floats_put(tt_dtype t, tt_shape s, float *x, int skip);
// Numbers between -1 and 1, also in *x.
tt_arg test_floats_random(tt_dtype t, tt_shape s, uint64_t seed, float **x, int skip);
float *test_floats_get(const tt_arg *a);

// lanes NULL: the op sums over none.
void test_floats_run(const char *name, const void *attr, const tt_arg *in, int n_in,
                     const tt_arg *out, int n_out, const tt_lanes *lanes);
// got, computed in the type, against want, whose numbers are of about unit size.
void test_floats_near(const char *what, tt_dtype t, const float *got, const double *want,
                      int64_t n);

#endif
