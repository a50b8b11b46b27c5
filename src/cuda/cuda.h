/*
 * cuda.h - inside libtutti-cuda.so: an open device, errors, the libraries found at run time.
 */
#ifndef TUTTI_CUDA_CUDA_H
#define TUTTI_CUDA_CUDA_H

#include "cuda/module.h"
#include <cuda_runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

extern const tti_cuda_host *tti_cuda_host_api; // set once, when the module is opened

typedef struct tti_recipe tti_recipe;
typedef struct tti_trouble tti_trouble;

// One logical device: a part of a card with streams of its own.
typedef struct tti_cuda_device {
    tt_ctx *ctx;
    char name[32];
    int physical;     // CUDA's number of the card
    int sms;          // multiprocessors
    int major, minor; // compute capability
    size_t shared;    // most bytes of shared memory a block can ask for
    cudaStream_t stream;
    void *blas; // cublasLtHandle_t, made when first asked for
    void *dnn;  // cudnnHandle_t, likewise
    // What was found out about a call of a library (descriptors, the chosen algorithm), by what it
    // is; kept as long as the device. Guarded by nothing: one thread prepares.
    tti_recipe *recipes;
    tti_trouble *trouble;    // what kernels found wrong in values (cuda/trouble.h)
    struct tti_parts *parts; // streams' and memory's own state
} tti_cuda_device;

/*
 * A recipe is found by a key of bytes (all that decides it: op, shapes, types, attributes) or made
 * once: size bytes, zeroed, *is_new telling so; drop, if not NULL, is called with them when the
 * device closes. NULL: out of memory, recorded.
 */
void *tti_recipe_get(tti_cuda_device *d, const void *key, size_t key_bytes, size_t size,
                     void (*drop)(void *recipe), bool *is_new);

// ---- errors ----------------------------------------------------------------------------------

// Records a CUDA error, naming what was tried, the op if node is given, and the device.
tt_status tti_cuda_fail(const tti_cuda_device *d, const tt_node *node, cudaError_t e,
                        const char *what, const char *file, int line);
#define TTI_CUDA(d, node, call)                                                       \
    do {                                                                              \
        cudaError_t tti_cuda_e = (call);                                              \
        if (tti_cuda_e != cudaSuccess)                                                \
            return tti_cuda_fail((d), (node), tti_cuda_e, #call, __FILE__, __LINE__); \
    } while (0)
// After kernel launches of a call: an error of them, if any. With TUTTI_CUDA_CHECK=1 it also waits
// for them, where no capture is on, so that an error names its op.
tt_status tti_cuda_launched(const tt_launch *l);

// ---- libraries found at run time -------------------------------------------------------------

// A library by its names, tried with the folders of CUDA's toolkit and of Python packages; NULL,
// with the reason in why. Opened once per process.
void *tti_cuda_library(const char *const *names, const char **why);
void *tti_cuda_symbol(void *library, const char *name);

// All bytes on the device become zero, in the stream's order.
tt_status tti_cuda_zero(const tt_launch *l, void *at, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
