/*
 * blas_own.h - inside blas.cu and blas_algorithm.cu: the library's functions, a plan and its parts.
 */
#ifndef TUTTI_CUDA_BLAS_OWN_H
#define TUTTI_CUDA_BLAS_OWN_H

#include "cuda/blas.h"

#if !defined(TTI_EMU) && defined(__has_include)
#if __has_include(<cublasLt.h>)
#define TTI_HAS_BLAS 1
#include <cublasLt.h>

#define TTI_BLAS_FUNCTIONS(X)                \
    X(cublasLtCreate)                        \
    X(cublasLtDestroy)                       \
    X(cublasLtGetVersion)                    \
    X(cublasLtGetStatusString)               \
    X(cublasLtMatrixLayoutInit_internal)     \
    X(cublasLtMatrixLayoutSetAttribute)      \
    X(cublasLtMatmulDescInit_internal)       \
    X(cublasLtMatmulDescSetAttribute)        \
    X(cublasLtMatmulPreferenceInit_internal) \
    X(cublasLtMatmulPreferenceSetAttribute)  \
    X(cublasLtMatmulAlgoGetHeuristic)        \
    X(cublasLtMatmulAlgoCheck)               \
    X(cublasLtMatmulAlgoConfigGetAttribute)  \
    X(cublasLtMatmul)

struct tti_blas_functions {
#define X(name) decltype(&name) name##_;
    TTI_BLAS_FUNCTIONS(X)
#undef X
    const char *why; // NULL: all were found
};
const tti_blas_functions *tti_blas_library(void);

// Of a device: the handle, and what trials of calls need.
struct tti_blas_state {
    cublasLtHandle_t handle;
    cudaStream_t stream; // work is recorded on it, never run
    char *memory;        // stands for matrices in trials
    bool has_trials;
};

struct tti_blas_plan {
    bool is_good;
    int end;
    int align_a, align_b, align_c; // bytes, 16 at most
    const tti_blas_state *state;
    cublasLtMatmulDescOpaque_t desc;
    cublasLtMatrixLayoutOpaque_t a, b, c; // of our a, b and c
    cublasLtMatmulAlgo_t algo;
    size_t workspace;
};

// Descriptors, layouts and alignments of a product; the algorithm is still to be set.
bool tti_blas_describe(tti_blas_plan *t, const tti_blas_product *p);

struct tti_blas_addresses {
    const void *a, *b, *bias;
    void *c, *aux, *workspace;
};
cublasStatus_t tti_blas_enqueue(const tti_blas_plan *t, const tti_blas_addresses *at,
                                cudaStream_t stream);

// Sets the algorithm and the workspace; false: there is none.
bool tti_blas_choose(tti_cuda_device *d, tti_blas_plan *t, const tti_blas_product *p);

// Finds out whether trials can be believed: a plain product must pass.
bool tti_blas_trials_work(tti_cuda_device *d, tti_blas_state *s);

#endif
#endif
#endif
