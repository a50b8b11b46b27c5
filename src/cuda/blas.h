/*
 * blas.h - products of matrices by cuBLASLt, opened at run time.
 *
 * Matrices are row-major here, as everywhere in Tutti. A row's bits must not depend on how many
 * rows a call has, nor a lane's on how many lanes: so nothing splits k, and the algorithm is chosen
 * for a fixed number of rows or lanes (blas_algorithm.cu) and serves them all. Without cuBLASLt's
 * header, in the emulation, and where the library is not found there are no plans: callers have
 * kernels of their own.
 */
#ifndef TUTTI_CUDA_BLAS_H
#define TUTTI_CUDA_BLAS_H

#include "cuda/cuda.h"

// What is done with a product before it is rounded and stored; a sum of these. The library's relu
// makes zeros of NaN, so there is none.
enum {
    TTI_BLAS_BIAS = 1, // a number for each column is added
    TTI_BLAS_GELU = 4, // the form with tanh
    TTI_BLAS_AUX = 8,  // with TTI_BLAS_GELU: what it is taken of is stored, too
};

// What the rows of a batch decide, and so may not decide the algorithm.
enum {
    TTI_BLAS_FIXED = 0, // nothing
    TTI_BLAS_ROWS = 1,  // m; a is not transposed, there is one product
    TTI_BLAS_LANES = 2, // k, and the batch is of lanes; a is transposed, b is not
    TTI_BLAS_MANY = 3,  // the batch
};

/*
 * c = a b, or a batch of products that lie step elements apart. a is [m, k], stored as [k, m] if
 * trans_a; b likewise. A key of recipes: all bytes count, so it starts as zeros.
 */
typedef struct tti_blas_product {
    int64_t m, n, k;
    int64_t lda, ldb, ldc; // elements from one stored row to the next
    int64_t batch, step_a, step_b, step_c;
    int32_t in, out; // types: f32, bf16, f16; out is in's or f32
    int32_t end;     // TTI_BLAS_BIAS ...
    int32_t open;    // TTI_BLAS_ROWS ...
    int32_t trans_a, trans_b;
} tti_blas_product;

typedef struct tti_blas_plan tti_blas_plan;

// 130100 is 13.1.0; 0 with the reason in *why, if why is given: no cuBLASLt.
int tti_blas_version(const char **why);

// Whether products of f32 may round their inputs to 11 bits: TUTTI_TF32=1.
bool tti_blas_tf32(void);

// NULL: cuBLASLt is not there or has no way to do it. Lives as long as the device.
const tti_blas_plan *tti_blas_find(tti_cuda_device *d, const tti_blas_product *p);
size_t tti_blas_workspace(const tti_blas_plan *plan);

// Whether addresses are as aligned as rows of these widths can be; if not, the plan cannot run.
bool tti_blas_takes(const tti_blas_plan *plan, const void *a, const void *b, const void *c,
                    const void *bias, const void *aux);

// bias and aux are looked at if end has them; aux has the shape and type of c.
tt_status tti_blas_run(const tti_blas_plan *plan, const tt_launch *l, const void *a, const void *b,
                       void *c, const void *bias, void *aux, void *workspace);

#endif
