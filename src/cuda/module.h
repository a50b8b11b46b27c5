/*
 * module.h - between the library and libtutti-cuda.so, which is loaded when a GPU is asked for.
 *
 * The module is compiled apart (src/cuda/ and the .cu files of src/op/) and imports nothing of the
 * library: what it needs comes in tti_cuda_host, what it offers goes out in tti_cuda_module. Both
 * sides check TTI_CUDA_MODULE, which changes with any struct they share, and the sizes of those.
 */
#ifndef TUTTI_CUDA_MODULE_H
#define TUTTI_CUDA_MODULE_H

#include "device/collective.h"
#include "device/kernel_key.h"
#include <stdarg.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TTI_CUDA_MODULE 7

struct tti_device;

// Libraries of NVIDIA's that kernels call.
enum {
    TTI_BY_BLAS = 1, // cuBLASLt
    TTI_BY_DNN = 2,  // cuDNN
};

// What the module calls.
typedef struct tti_cuda_host {
    int version;  // TTI_CUDA_MODULE
    size_t bytes; // TTI_CUDA_BYTES
    tt_status (*vfail)(tt_ctx *ctx, tt_status st, const char *file, int line, const char *fmt,
                       va_list args);
    void (*log)(tt_ctx *ctx, tt_level level, const char *text);
    void *(*alloc)(tt_ctx *ctx, size_t bytes); // zeroed; NULL, recorded, if there is none left
    void (*free)(tt_ctx *ctx, void *p);
    void (*flag_set)(void *flag, uint32_t value); // a tti_flag
    const char *(*env)(const char *name);         // NULL: not set
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
 * What the module offers. A device's state (open's *out, tt_launch.device) is the module's. All but
 * the first six are called with the state of an open device; each fails with a recorded error that
 * names the device.
 */
typedef struct tti_cuda_module {
    int version;  // TTI_CUDA_MODULE
    size_t bytes; // TTI_CUDA_BYTES
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
    void (*close)(void *d);
    tt_status (*alloc)(void *d, size_t bytes, void **out);
    void (*free)(void *d, void *p);
    // Both ends may be of any device (NULL: the host). Blocks until done.
    tt_status (*copy_now)(void *to, void *dst, void *from, const void *src, size_t bytes);
    bool (*can_read)(void *d, void *other); // kernels of d read other's memory; makes it so
    // For tt_launch.stream. Also makes d's card current on the calling thread, as every call here
    // does: needed before a kernel's function runs.
    void *(*stream)(void *d);

    // As in tti_streams.
    tt_status (*copy)(void *d, void *dst, void *from, const void *src, size_t bytes);
    tt_status (*record)(void *d, void **event);
    tt_status (*wait)(void *d, void *event);
    void (*drop_event)(void *d, void *event);
    tt_status (*notify)(void *d, void *flag, uint32_t value);
    tt_status (*sync)(void *d, int64_t deadline_ms);
    tt_status (*capture_begin)(void *const *d, int n);
    tt_status (*capture_end)(void *const *d, int n, bool keep, void **exec);
    tt_status (*launch)(void *d, void *exec);
    void (*drop_exec)(void *d, void *exec);
    double (*elapsed)(void *d, void *first, void *last);
    void *(*pinned)(void *d, size_t bytes);
    void (*unpin)(void *d, void *p);
    tt_status (*ahead)(void *d, void *dst, const void *src, size_t bytes, void *after,
                       void **arrived);
    void (*settle)(void *d);
    bool (*try_alloc)(void *d, size_t bytes, void **out);
    bool (*joins)(void *const *d, int n, char *words, size_t size);
    tt_status (*gang)(void *const *d, int n, void **out);
    tt_status (*together)(void *gang, const tti_library_call *list, int n);
    tt_status (*mark)(void *d, void **event);
    // Bytes of the GPU's memory in use by this process beside what alloc gave: context, libraries.
    size_t (*overhead)(void *d);
} tti_cuda_module;

// Of what both sides know, so that a module of another day is refused though nobody changed the
// version.
#define TTI_CUDA_BYTES                                                                             \
    (sizeof(tti_cuda_host) + sizeof(tti_cuda_module) + sizeof(tti_cuda_card) + sizeof(tt_launch) + \
     sizeof(tt_prep) + sizeof(tt_arg) + sizeof(tt_step) + sizeof(tt_kernel) + sizeof(tt_node) +    \
     sizeof(tti_kernel_key))

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
