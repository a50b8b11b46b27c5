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

double op_round(tt_dtype dtype, double x);
void *op_encode(tt_dtype dtype, const double *x, int64_t n); // freed by the caller
double op_decode(tt_dtype dtype, const void *data, int64_t i);

#endif
