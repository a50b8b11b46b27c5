/*
 * onnx_cases.h - models for the tests of ONNX files: every kind of layer and ready-made model.
 */
#ifndef TUTTI_TEST_ONNX_CASES_H
#define TUTTI_TEST_ONNX_CASES_H

#include "layer.h"

enum {
    ONNX_JOINS = 1,  // reads two layers
    ONNX_TOKENS = 2, // the input is ids below 11, and no layer is before it
    ONNX_ALONE = 4,  // no layer is before it
};

typedef struct onnx_case {
    const char *text; // kind key=value ...
    int64_t input[4]; // of a record
    int flags;
} onnx_case;
extern const onnx_case onnx_cases[];
extern const int onnx_n_cases;

// The model, with weights that matter.
tt_model *onnx_case_build(tt_ctx *ctx, const onnx_case *c);
void onnx_fill(tt_model *m, uint64_t seed);
void *onnx_case_input(tt_model *m, int64_t rows, size_t *bytes);
float *onnx_case_run(tt_model *m, const void *x, int64_t rows, int64_t *n); // n numbers

#endif
