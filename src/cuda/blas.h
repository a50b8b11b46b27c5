/*
 * blas.h - products of matrices by cuBLASLt, opened at run time.
 *
 * Matrices are row-major here, as everywhere in Tutti. Nothing splits k, and the algorithm is the
 * heuristics' first for the product with all rows of the whole batch, so that a row's bits do not
 * depend on how many rows a call has. Without cuBLASLt's header, in the emulation, and where the
 * library is not found there are no plans: callers have kernels of their own.
 */
#ifndef TUTTI_CUDA_BLAS_H
#define TUTTI_CUDA_BLAS_H

#include "cuda/cuda.h"

// What is done with a product before it is rounded and stored; a sum of these.
enum {
    TTI_BLAS_BIAS = 1, // a number for each column is added
    TTI_BLAS_RELU = 2,
    TTI_BLAS_GELU = 4, // the form with tanh
    TTI_BLAS_AUX = 8,  // with TTI_BLAS_GELU: what it is taken of is stored, too
};

/*
 * c = a b, or a batch of products that lie step elements apart. a is [m, k], stored as [k, m] if
 * trans_a; b likewise. A key of recipes: all bytes count, so it starts as zeros.
 */
typedef struct tti_blas_product {
    int64_t m, n, k;
    int64_t lda, ldb, ldc; // elements from one stored row to the next
    int64_t batch, step_a, step_b, step_c;
    int64_t full_m, full_n, full_batch; // with all rows of the whole batch
    int32_t in, out;                    // types: f32, bf16, f16; out is in's or f32
    int32_t end;                        // TTI_BLAS_...
    int32_t align;                      // of all addresses, bytes: 16 or less
    int32_t trans_a, trans_b;
} tti_blas_product;

typedef struct tti_blas_plan tti_blas_plan;

// 130100 is 13.1.0; 0 with the reason in *why, if why is given: no cuBLASLt.
int tti_blas_version(const char **why);

// NULL: cuBLASLt is not there or has no way to do it. Lives as long as the device.
const tti_blas_plan *tti_blas_find(tti_cuda_device *d, const tti_blas_product *p);
size_t tti_blas_workspace(const tti_blas_plan *plan);

// bias and aux are looked at if end has them; aux has the shape and type of c.
tt_status tti_blas_run(const tti_blas_plan *plan, const tt_launch *l, const void *a, const void *b,
                       void *c, const void *bias, void *aux, void *workspace);

#endif
