/*
 * op_trial.h - what op_test.c (trials) and op_ways.c (the ways a case is tried) share.
 */
#ifndef TUTTI_OP_TRIAL_H
#define TUTTI_OP_TRIAL_H

#include "op_test.h"
#include <stdarg.h>

#define OP_MAX_INPUTS 16

// How closed inputs enter the graph; open ones are always fed.
typedef enum op_form {
    OP_AS_FEEDS,
    OP_AS_VARIABLES,
    OP_AS_CONSTANTS,
} op_form;

typedef struct op_how {
    tt_dtype dtype;  // of float inputs
    tt_dtype values; // inputs hold numbers of this type; f64: as they come
    op_form form;
    const char *isa;
    int threads, lanes;
    bool gradient, no_fuse;
    const double *times; // what inputs and dy are multiplied with; NULL: one and one
    const char *device;  // default "cpu:0"
} op_how;

typedef struct op_in {
    tt_tensor *tensor;
    tt_dtype dtype;
    tt_shape shape, bound;
    int64_t count;
    double *value;
    bool indices, is_fed;
} op_in;

struct op_test {
    const char *family, *way;
    const op_case *c;
    op_how how;
    tt_ctx *ctx;
    tt_graph *g;
    tt_session *s;
    op_in in[OP_MAX_INPUTS], w;
    int n_in;
    tt_tensor *y, *dx[OP_MAX_INPUTS];
};

// Some rows of the batch: whole lanes.
typedef struct op_rows {
    int64_t first, rows;
    int lanes;   // of the whole batch
    int n_parts; // sums over rows come as so many; 0: do not fetch them
} op_rows;

typedef struct op_out {
    tt_tensor *tensor; // NULL: not fetched
    tt_dtype dtype;
    tt_shape shape;
    int64_t count; // of one part
    int n_parts;
    void *data;
} op_out;

typedef struct op_result {
    int n;
    op_out out[OP_MAX_INPUTS + 1]; // y, then the gradient by each input
} op_result;

void op_open(op_test *t, const char *family, const op_case *c, const char *way, op_how how);
void op_run(op_test *t, const op_rows *part, op_result *r); // part NULL: all rows
void op_result_free(op_result *r);
void op_close(op_test *t);
void op_fail(const op_test *t, const char *fmt, ...) TT_PRINTF(2, 3);

bool op_is_lane_sum(const tt_tensor *x);
bool op_wanted(const tt_tensor *x, const op_rows *part); // when only some rows are run

bool op_is_near(double a, double b, double tol); // |a - b| <= tol (1 + |b|)
bool op_is_float(tt_dtype t);
bool op_has_gradient(const op_case *c);
const char *op_out_name(int i); // "y" or "gradient of input 2"; static
// Element i of a and j of b have the same bits; a NaN is only a NaN.
bool op_same_bits(const op_out *a, int64_t i, const op_out *b, int64_t j);
void op_fail_bits(const op_test *t, int out, const op_out *a, int64_t i, const op_out *b,
                  int64_t j);
void op_check_same(const op_test *t, const op_result *r, const op_result *want);

// The ways that need an open batch; nothing where the case has none.
void op_try_rows(const char *family, const op_case *c, const char *way, op_how how);
void op_try_parts(const char *family, const op_case *c, const char *way, op_how how);
// On a GPU (op_gpu.c); ends the test as skipped where there is none.
void op_try_gpu(const char *family, const op_case *c);

double op_round(tt_dtype dtype, double x);
void *op_encode(tt_dtype dtype, const double *x, int64_t n); // freed by the caller
double op_decode(tt_dtype dtype, const void *data, int64_t i);

#endif
