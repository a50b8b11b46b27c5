/*
 * module.h - between the library and libtutti-cuda.so, which is loaded when a GPU is asked for.
 *
 * The module is compiled apart (src/cuda/ and the .cu files of src/op/) and imports nothing of the
 * library: what it needs comes in tti_cuda_host, what it offers goes out in tti_cuda_module. Both
 * begin with a hash of the headers that they were compiled with, and each side refuses another's.
 */
#ifndef TUTTI_CUDA_MODULE_H
#define TUTTI_CUDA_MODULE_H

#include "device/kernel_key.h"
#include "device/streams.h"
#include <stdarg.h>

#ifdef __cplusplus
extern "C" {
#endif

// Of all headers that both sides may know, by the Makefile.
#ifndef TTI_CUDA_HEADERS
#define TTI_CUDA_HEADERS "unknown"
#endif
#define TTI_CUDA_HASH 24

// Libraries of NVIDIA's that kernels call.
enum {
    TTI_BY_BLAS = 1, // cuBLASLt
    TTI_BY_DNN = 2,  // cuDNN
};

// What the module calls.
typedef struct tti_cuda_host {
    char headers[TTI_CUDA_HASH]; // TTI_CUDA_HEADERS; first, whatever else changes
    tt_status (*vfail)(tt_ctx *ctx, tt_status st, const char *file, int line, const char *fmt,
                       va_list args);
    void (*log)(tt_ctx *ctx, tt_level level, const char *text);
    void *(*alloc)(tt_ctx *ctx, size_t bytes); // zeroed; NULL, recorded, if there is none left
    void (*free)(tt_ctx *ctx, void *p);
    void (*flag_set)(struct tti_flag *flag, uint32_t value);
    const char *(*env)(const char *name); // NULL: not set
} tti_cuda_host;

// A physical GPU, for lists.
typedef struct tti_cuda_card {
    char model[64];
    int major, minor; // compute capability
    int sms;
    size_t memory, memory_free;
    char bus[32]; // "0000:1b:00.0"
} tti_cuda_card;

/*
 * What the module offers. A device's state (open's *out, tt_launch.device) is the module's, and all
 * that it knows of a device (streams.h). What is called with an open device fails with a recorded
 * error that names it.
 */
typedef struct tti_cuda_module {
    char headers[TTI_CUDA_HASH]; // as above
    // GPUs that can be used; why has the reason if there is none (no driver, too old a one), and
    // cards that are too old. They are not counted.
    int (*count)(char *why, size_t n);
    tt_status (*card)(int physical, tti_cuda_card *out);
    bool (*reaches)(int physical, int other); // the other card's memory, directly
    // "CUDA 13.0, driver 13.0, cuBLASLt 13.0.0, cuDNN 9.19.0, no NCCL (libnccl.so.2: not found)".
    void (*versions)(char *out, size_t n);
    // What decides the bits of a card: "NVIDIA H200, CUDA 13.0, cuBLASLt 13.1.0, cuDNN 9.14.0".
    void (*bits)(int physical, char *out, size_t n);
    const tt_kernel *(*kernel)(tti_kernel_key key); // NULL: it has none
    // TTI_BY_...: the libraries that a kernel calls where they can do its work and are there; 0:
    // our code alone.
    unsigned (*libraries)(tti_kernel_key key);

    // name is "gpu:1" for messages; nothing is allocated on the GPU but what CUDA itself takes.
    tt_status (*open)(tt_ctx *ctx, const char *name, int physical, void **out);
    void (*close)(struct tti_device *d);
    tt_status (*alloc)(struct tti_device *d, size_t bytes, void **out);
    void (*free)(struct tti_device *d, void *p);
    // Both ends may be of any device (NULL: the host). Blocks until done.
    tt_status (*copy_now)(struct tti_device *to, void *dst, struct tti_device *from,
                          const void *src, size_t bytes);
    // Kernels of d read other's memory; makes it so.
    bool (*can_read)(const struct tti_device *d, const struct tti_device *other);
    // stream() also makes d's card current on the calling thread, as every call here does: needed
    // before a kernel's function runs.
    tti_streams streams;
    // Bytes of the GPU's memory in use by this process beside what alloc gave: context, libraries.
    size_t (*overhead)(struct tti_device *d);
} tti_cuda_module;

// The one symbol of the module.
typedef const tti_cuda_module *(*tti_cuda_open_fn)(const tti_cuda_host *host);
#define TTI_CUDA_OPEN "tti_cuda_open"

// One row of a file's table of kernels; one without a function ends it.
typedef struct tti_cuda_row {
    tti_kernel_key key;
    tt_kernel kernel;
    unsigned libraries; // TTI_BY_...: that may do its work
} tti_cuda_row;

#ifdef __cplusplus
}
#endif
#endif
