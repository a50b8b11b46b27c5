/*
 * op_test.h - one case of an op, tried in every way the contract names.
 *
 * A case builds a graph from inputs that op_input() makes. The same case is then run as
 *   values     f32 against the case's own oracle (plain loops in double, written in the test)
 *   types      bf16 and f16: against the f32 result, and equal to widening, f32 op, rounding
 *   gradient   f64, sum(y * fixed numbers) by every float input, against finite differences
 *   bits       f32 values and gradients equal with 1, 2, 3 threads and in every instruction set
 *   rows       with an open batch: each row's bits equal with 1, 3, 8 or all rows in the call
 *   parts      with an open batch: lane sums of parts of the batch, combined by the tree, equal the
 *              sums of the whole
 *   gpu        on gpu:0, as a test of its own, "gpu/family/label": see op_gpu.c
 */
#ifndef TUTTI_OP_TEST_H
#define TUTTI_OP_TEST_H

#include "../test.h"

typedef struct op_test op_test;

enum op_skip {
    OP_NO_GRAD = 1 << 0, // no gradient, or not differentiable at these values
    OP_NO_HALF = 1 << 1, // bf16 and f16 do not apply
    OP_NO_ROWS = 1 << 2, // mixes rows
    OP_NO_ORACLE = 1 << 3,
    OP_NO_GPU = 1 << 5,  // gives f64, which is for CPUs alone
    OP_BY_LANE = 1 << 4, // a row's bits depend on the rows of its lane: rows are tried one a lane
};

typedef struct op_case {
    const char *label;
    tt_tensor *(*build)(op_test *t);             // the output whose values are checked
    void (*oracle)(const op_test *t, double *y); // y has op_count(t) elements
    int64_t rows;  // above 0: op_input() shapes that begin with TT_BATCH get this many rows
    int64_t p[12]; // the case's own numbers, read by build and oracle
    double f[4];
    double tol;      // f32 against oracle: |a - b| <= tol (1 + |b|); default 1e-5
    double grad_tol; // default 1e-5
    unsigned skip;
} op_case;

// Called by build: an input of the type under test, uniform in [low, high). Gradients are checked.
tt_tensor *op_input(op_test *t, tt_shape shape, double low, double high);
// An input of integers in [0, limit), of this type; no gradient. Limit 2 and TT_BOOL give a mask.
tt_tensor *op_indices(op_test *t, tt_dtype dtype, tt_shape shape, int64_t limit);
tt_graph *op_graph(op_test *t);
tt_dtype op_dtype(const op_test *t);
const op_case *op_case_of(const op_test *t);

// Called by oracle: input i in double, its bound shape, and the bound shape of the output.
const double *op_value(const op_test *t, int i);
tt_shape op_shape(const op_test *t, int i);
tt_shape op_out_shape(const op_test *t);
int64_t op_count(const op_test *t);

// Runs one case in every way above; fails the test with family, label, way and first difference.
void op_run_case(const char *family, const op_case *c);
// Calls seen() with the name of every op in the case's graph, its gradients included.
void op_case_ops(const op_case *c, void (*seen)(const char *op));
// The same with the nodes, in an order that the case alone decides.
void op_case_nodes(const op_case *c, void (*seen)(const tt_node *n, void *user), void *user);
// The case behind a registered test, its own or on a GPU; NULL if the test is not one of OP_CASES.
const op_case *op_case_of_entry(const test_entry *e);

void op_register(const char *file, const char *family, const op_case *cases, test_entry *entries,
                 size_t n);

// OP_CASES(...); may end with a semicolon or not.
#pragma GCC diagnostic ignored "-Wpedantic"

// Declares the cases of a family; each becomes a test "family/label" of its own.
#define OP_CASES(family, ...)                                                               \
    static const op_case family##_cases[] = {__VA_ARGS__};                                  \
    static test_entry family##_entries[sizeof(family##_cases) / sizeof(family##_cases[0])]; \
    __attribute__((constructor)) static void family##_cases_register(void)                  \
    {                                                                                       \
        op_register(__FILE__, #family, family##_cases, family##_entries,                    \
                    sizeof(family##_cases) / sizeof(family##_cases[0]));                    \
    }

// Names ops that TESTs of this file try by hand, so that they count as having cases.
void op_tested(const char *const *names, size_t n);
#define OP_TESTED(family, ...)                                     \
    __attribute__((constructor)) static void family##_tested(void) \
    {                                                              \
        static const char *const names[] = {__VA_ARGS__};          \
        op_tested(names, sizeof(names) / sizeof(names[0]));        \
    }
bool op_is_tested(const char *name);

#endif
