/*
 * cuda_runtime.h - an emulation of CUDA's runtime for tests: found before the real header when the
 * module's sources are compiled by a C++ compiler (make emu).
 *
 * Device memory is the host's, tracked by address. Kernels run on the calling thread, block after
 * block, a block's threads as fibers (threads.cpp). Streams run as late as they may (streams.cpp),
 * so that a missing wait shows. Environment: TUTTI_EMU_CARDS (1), TUTTI_EMU_MEMORY (bytes of a
 * card), TUTTI_EMU_TAKEN (of them, by another process), TUTTI_EMU_DRIVER (13000; 0: none),
 * TUTTI_EMU_CAPABILITY ("9.0"; "7.0,9.0" by card), TUTTI_EMU_PEERS (1), TUTTI_EMU_NOW=1 (streams
 * run at once), TUTTI_EMU_LOSE=n (the n-th kernel loses the card); for NCCL those of nccl.cpp.
 */
#ifndef TUTTI_EMU_CUDA_RUNTIME_H
#define TUTTI_EMU_CUDA_RUNTIME_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- errors: those that our sources name -----------------------------------------------------

#define EMU_ERRORS(X)                                                             \
    X(cudaSuccess, 0, "no error")                                                 \
    X(cudaErrorInvalidValue, 1, "invalid argument")                               \
    X(cudaErrorMemoryAllocation, 2, "out of memory")                              \
    X(cudaErrorInvalidConfiguration, 9, "invalid configuration argument")         \
    X(cudaErrorInvalidMemcpyDirection, 21, "invalid copy direction")              \
    X(cudaErrorInsufficientDriver, 35, "the driver is older than the runtime")    \
    X(cudaErrorInvalidDevice, 101, "invalid device ordinal")                      \
    X(cudaErrorNoDevice, 100, "no CUDA-capable device is detected")               \
    X(cudaErrorECCUncorrectable, 214, "uncorrectable ECC error")                  \
    X(cudaErrorNvlinkUncorrectable, 220, "uncorrectable NVLink error")            \
    X(cudaErrorInvalidResourceHandle, 400, "invalid resource handle")             \
    X(cudaErrorNotReady, 600, "device not ready")                                 \
    X(cudaErrorIllegalAddress, 700, "an illegal memory access was encountered")   \
    X(cudaErrorLaunchTimeout, 702, "the launch timed out")                        \
    X(cudaErrorPeerAccessAlreadyEnabled, 704, "peer access is already enabled")   \
    X(cudaErrorPeerAccessUnsupported, 217, "peer access is not supported")        \
    X(cudaErrorAssert, 710, "device-side assert triggered")                       \
    X(cudaErrorHardwareStackError, 714, "hardware stack error")                   \
    X(cudaErrorIllegalInstruction, 715, "an illegal instruction was encountered") \
    X(cudaErrorMisalignedAddress, 716, "misaligned address")                      \
    X(cudaErrorInvalidAddressSpace, 717, "invalid address space")                 \
    X(cudaErrorInvalidPc, 718, "invalid program counter")                         \
    X(cudaErrorLaunchFailure, 719, "unspecified launch failure")                  \
    X(cudaErrorNotSupported, 801, "operation not supported")                      \
    X(cudaErrorStreamCaptureUnsupported, 900, "not permitted during a capture")   \
    X(cudaErrorStreamCaptureInvalidated, 901, "the capture was invalidated")      \
    X(cudaErrorStreamCaptureUnjoined, 904, "the capture has unjoined work")       \
    X(cudaErrorCapturedEvent, 907, "the event was last recorded in a capture")    \
    X(cudaErrorUnknown, 999, "unknown error")

typedef enum cudaError {
#define X(name, value, text) name = value,
    EMU_ERRORS(X)
#undef X
} cudaError_t;

const char *cudaGetErrorString(cudaError_t e);
const char *cudaGetErrorName(cudaError_t e);
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);

// ---- cards -----------------------------------------------------------------------------------

typedef struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem;
    size_t sharedMemPerBlock, sharedMemPerBlockOptin;
    int major, minor;
    int multiProcessorCount;
    int l2CacheSize;
} cudaDeviceProp;
typedef enum cudaDeviceAttr {
    cudaDevAttrMaxThreadsPerBlock = 1,
    cudaDevAttrMaxSharedMemoryPerBlock = 8,
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrL2CacheSize = 38,
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76,
    cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
} cudaDeviceAttr;

cudaError_t cudaRuntimeGetVersion(int *out);
cudaError_t cudaDriverGetVersion(int *out);
cudaError_t cudaGetDeviceCount(int *out);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int card);
cudaError_t cudaDeviceGetAttribute(int *out, cudaDeviceAttr what, int card);
cudaError_t cudaDeviceGetPCIBusId(char *out, int n, int card);
cudaError_t cudaSetDevice(int card);
cudaError_t cudaGetDevice(int *out);
cudaError_t cudaDeviceCanAccessPeer(int *out, int card, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);

// ---- memory ----------------------------------------------------------------------------------

typedef enum cudaMemcpyKind {
    cudaMemcpyHostToHost = 0,
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3,
    cudaMemcpyDefault = 4,
} cudaMemcpyKind;
typedef enum cudaMemoryType {
    cudaMemoryTypeUnregistered = 0,
    cudaMemoryTypeHost = 1,
    cudaMemoryTypeDevice = 2,
} cudaMemoryType;
typedef struct cudaPointerAttributes {
    cudaMemoryType type;
    int device;
} cudaPointerAttributes;
#define cudaHostAllocDefault  0u
#define cudaHostAllocPortable 1u
#define cudaHostAllocMapped   2u

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total);
bool emu_card_memory(const char *bus, size_t *free_bytes, size_t *total); // as cuda/nvml.cu has it
cudaError_t cudaMalloc(void **out, size_t bytes);
cudaError_t cudaFree(void *p);
cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags);
cudaError_t cudaMallocHost(void **out, size_t bytes);
cudaError_t cudaFreeHost(void *p);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *out, const void *p);
cudaError_t cudaMemcpy(void *dst, const void *src, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t s);
cudaError_t cudaMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t s);
cudaError_t cudaMemset(void *p, int value, size_t bytes);
cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t s);

// ---- streams, events, graphs -----------------------------------------------------------------

#define cudaStreamDefault      0u
#define cudaStreamNonBlocking  1u
#define cudaEventDefault       0u
#define cudaEventDisableTiming 2u
#define CUDART_CB
typedef void (*cudaHostFn_t)(void *arg);
typedef enum cudaStreamCaptureMode {
    cudaStreamCaptureModeGlobal = 0,
    cudaStreamCaptureModeThreadLocal = 1,
    cudaStreamCaptureModeRelaxed = 2,
} cudaStreamCaptureMode;
typedef enum cudaStreamCaptureStatus {
    cudaStreamCaptureStatusNone = 0,
    cudaStreamCaptureStatusActive = 1,
    cudaStreamCaptureStatusInvalidated = 2,
} cudaStreamCaptureStatus;

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority);
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest);
cudaError_t cudaStreamDestroy(cudaStream_t s);
cudaError_t cudaStreamSynchronize(cudaStream_t s);
cudaError_t cudaStreamQuery(cudaStream_t s);
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaEventCreate(cudaEvent_t *out);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t e);
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s);
cudaError_t cudaEventSynchronize(cudaEvent_t e);
cudaError_t cudaEventQuery(cudaEvent_t e);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t first, cudaEvent_t last);
cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t fn, void *arg);
cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *out);
cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus *out);
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t g, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t x, cudaStream_t s);
cudaError_t cudaGraphDestroy(cudaGraph_t g);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t x);

// ---- libraries: in place of dlopen and dlsym -------------------------------------------------

void *emu_library(const char *const *names);
void *emu_symbol(void *library, const char *name);

typedef enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout = 9,
} cudaFuncAttribute;

#ifdef __cplusplus
}
#include "device.h"
#endif
#endif
