/*
 * layer.h - for tests of layers: run a model, fill its weights, and plain loops in double to hold
 * the result against. What they allocate goes with the test's process.
 */
#ifndef TUTTI_TEST_LAYER_H
#define TUTTI_TEST_LAYER_H

#include "model/model.h"
#include "test.h"

#define ROWS 3

// Zeroed memory until the test ends.
void *test_zeros(size_t n, size_t bytes);
// The model's first output for rows records of each input, as doubles.
double *test_run_all(tt_model *m, const void *const *x, int64_t rows);
double *test_run(tt_model *m, const void *x); // one input, ROWS records
tti_weight *test_weight_find(tt_model *m, const char *name);
// Fills a weight with numbers in [-0.9, 1.1), so that biases and norms are not trivial.
double *test_weight(tt_model *m, const char *name);
void test_near(const double *a, const double *b, int64_t n, double tol);
float *test_input(int64_t n);
void test_shape(const tt_tensor *t, tt_shape want);
double *test_doubles(const float *x, int64_t n);
// y[r][o] = sum_i x[r][i] w[i][o] + b[o]; bias may be NULL.
double *test_linear(const double *x, int64_t rows, int64_t in, const double *w, int64_t out,
                    const double *bias);
// Layer norm or RMS norm of rows of c numbers; beta may be NULL.
double *test_norm(const double *x, int64_t rows, int64_t c, const double *gamma, const double *beta,
                  bool rms);

#endif
