/*
 * module.cu - the one symbol of libtutti-cuda.so, and what can be asked before a device is open.
 */
#include "cuda/blas.h"
#include "cuda/dnn.h"
#include "cuda/nccl.h"
#include <stdio.h>
#include <string.h>

const tti_cuda_host *tti_cuda_host_api;

// Kernels report errors as all code does; the message goes to the library.
extern "C" tt_status tt_fail(tt_ctx *ctx, tt_status st, const char *file, int line, const char *fmt,
                             ...)
{
    va_list args;
    va_start(args, fmt);
    st = tti_cuda_host_api->vfail(ctx, st, file, line, fmt, args);
    va_end(args);
    return st;
}

// ---- cards -----------------------------------------------------------------------------------

#define NEED_MAJOR 8 // bf16 in hardware; the oldest architecture that is compiled for

static const char *version_text(int v, char out[16])
{
    snprintf(out, 16, "%d.%d", v / 1000, v % 1000 / 10);
    return out;
}

// All cards of the driver, used or not; 0 with the reason.
static int all_cards(char *why, size_t n)
{
    int driver = 0, runtime = 0, cards = 0;
    char a[16], b[16];
    const char *visible = tti_cuda_host_api->env("CUDA_VISIBLE_DEVICES");
    (void)cudaRuntimeGetVersion(&runtime);
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
        (void)cudaGetLastError();
        snprintf(why, n, "no NVIDIA driver is installed (libcuda.so.1 was not found)");
        return 0;
    }
    cudaError_t e = cudaGetDeviceCount(&cards);
    if (e == cudaSuccess && cards > 0)
        return cards < TTI_MAX_CARDS ? cards : TTI_MAX_CARDS;
    (void)cudaGetLastError();
    if (e == cudaErrorInsufficientDriver)
        snprintf(why, n,
                 "the NVIDIA driver supports CUDA %s, but this build needs CUDA %s; install a "
                 "newer driver, or build with an older CUDA",
                 version_text(driver, a), version_text(runtime, b));
    else if (e == cudaErrorNoDevice || e == cudaSuccess)
        snprintf(why, n, "the NVIDIA driver (CUDA %s) sees no GPU%s%s%s", version_text(driver, a),
                 visible == NULL ? "" : " (CUDA_VISIBLE_DEVICES is '",
                 visible == NULL ? "" : visible, visible == NULL ? "" : "')");
    else
        snprintf(why, n, "the NVIDIA driver (CUDA %s) fails: %s", version_text(driver, a),
                 cudaGetErrorString(e));
    return 0;
}

static bool is_usable(int ordinal, int *major, int *minor)
{
    *major = *minor = 0;
    if (cudaDeviceGetAttribute(major, cudaDevAttrComputeCapabilityMajor, ordinal) != cudaSuccess ||
        cudaDeviceGetAttribute(minor, cudaDevAttrComputeCapabilityMinor, ordinal) != cudaSuccess) {
        (void)cudaGetLastError();
        return false;
    }
    return *major >= NEED_MAJOR;
}

int tti_cuda_ordinal(int i)
{
    char why[256];
    int major, minor, n = all_cards(why, sizeof(why));
    for (int o = 0; o < n; o++)
        if (is_usable(o, &major, &minor) && i-- == 0)
            return o;
    return -1;
}

// Adds a card that cannot be used to why.
static void leave_out(int ordinal, int major, int minor, char *why, size_t size)
{
    cudaDeviceProp p;
    size_t at = strlen(why);
    bool known = cudaGetDeviceProperties(&p, ordinal) == cudaSuccess;
    (void)cudaGetLastError();
    snprintf(why + at, size - at, "%s%s has compute capability %d.%d; %d.0 or newer is needed",
             at > 0 ? ", " : "", known ? p.name : "a GPU", major, minor, NEED_MAJOR);
}

int tti_cuda_count(char *why, size_t size)
{
    why[0] = '\0';
    int major, minor, usable = 0, n = all_cards(why, size);
    for (int o = 0; o < n; o++) {
        if (is_usable(o, &major, &minor))
            usable++;
        else
            leave_out(o, major, minor, why, size);
    }
    return usable;
}

tt_status tti_cuda_card_get(int i, tti_cuda_card *out)
{
    int ordinal = tti_cuda_ordinal(i);
    cudaDeviceProp p;
    if (ordinal < 0 || cudaGetDeviceProperties(&p, ordinal) != cudaSuccess) {
        (void)cudaGetLastError();
        return TT_EDEVICE;
    }
    memset(out, 0, sizeof(*out));
    snprintf(out->model, sizeof(out->model), "%.63s", p.name);
    out->major = p.major;
    out->minor = p.minor;
    out->sms = p.multiProcessorCount;
    out->memory = p.totalGlobalMem;
    if (cudaDeviceGetPCIBusId(out->bus, (int)sizeof(out->bus), ordinal) != cudaSuccess)
        (void)cudaGetLastError();
    size_t total;
    if (!tti_cuda_nvml_memory(out->bus, &out->memory_free, &total))
        out->memory_free = 0;
    return TT_OK;
}

// ---- versions --------------------------------------------------------------------------------

// How a library tells its version, as one number: 10000 major + 100 minor + patch.
typedef struct known {
    const char *name;
    const char *const *files;
    const char *symbol;
    bool by_pointer; // ncclGetVersion(int *); the others give it back
} known;

static void add_library(const known *k, char *out, size_t n)
{
    size_t at = strlen(out);
    const char *why = NULL;
    void *lib = tti_cuda_library(k->files, &why);
    void *fn = lib == NULL ? NULL : tti_cuda_symbol(lib, k->symbol);
    if (fn == NULL) {
        snprintf(out + at, n - at, ", no %s (%s)", k->name, lib == NULL ? why : "no version");
        return;
    }
    int v = 0;
    if (k->by_pointer)
        (void)((int (*)(int *))fn)(&v);
    else
        v = (int)((size_t(*)(void))fn)();
    snprintf(out + at, n - at, ", %s %d.%d.%d", k->name, v / 10000, v / 100 % 100, v % 100);
}

void tti_cuda_versions(char *out, size_t n)
{
    static const char *const blas[] = {"libcublasLt.so.13", "libcublasLt.so.12", NULL};
    static const char *const dnn[] = {"libcudnn.so.9", NULL};
    static const char *const nccl[] = {"libnccl.so.2", NULL};
    static const known libraries[] = {{"cuBLASLt", blas, "cublasLtGetVersion", false},
                                      {"cuDNN", dnn, "cudnnGetVersion", false},
                                      {"NCCL", nccl, "ncclGetVersion", true}};
    int driver = 0, runtime = 0;
    char a[16], b[16];
    (void)cudaRuntimeGetVersion(&runtime);
    if (cudaDriverGetVersion(&driver) != cudaSuccess)
        (void)cudaGetLastError();
    if (driver > 0)
        snprintf(out, n, "CUDA %s, driver %s", version_text(runtime, a), version_text(driver, b));
    else
        snprintf(out, n, "CUDA %s, no driver", version_text(runtime, a));
    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
        add_library(&libraries[i], out, n);
}

static void add_version(const char *name, int v, char *out, size_t n)
{
    size_t at = strlen(out);
    if (v == 0)
        snprintf(out + at, n - at, ", no %s", name);
    else
        snprintf(out + at, n - at, ", %s %d.%d.%d", name, v / 10000, v / 100 % 100, v % 100);
}

// The driver has no say in it.
void tti_cuda_bits(int i, char *out, size_t n)
{
    int runtime = 0;
    char version[16];
    tti_cuda_card c;
    (void)cudaRuntimeGetVersion(&runtime);
    snprintf(out, n, "%s, CUDA %s", tti_cuda_card_get(i, &c) == TT_OK ? c.model : "a GPU",
             version_text(runtime, version));
    add_version("cuBLASLt", tti_blas_version(NULL), out, n);
    add_version("cuDNN", tti_dnn_version(NULL), out, n);
    size_t at = strlen(out);
    if (tti_blas_tf32())
        snprintf(out + at, n - at, ", TF32");
}

// ---- kernels ---------------------------------------------------------------------------------

// Tables are weak: an op whose file is not there yet has no kernel.
extern "C" {
#define X(name) extern const tti_cuda_row tti_cuda_##name[] __attribute__((weak));
#include "cuda/tables.def"
#undef X
}

static const tti_cuda_row *const tables[] = {
#define X(name) tti_cuda_##name,
#include "cuda/tables.def"
#undef X
};

static const tti_cuda_row *find_row(tti_kernel_key key)
{
    for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++)
        for (const tti_cuda_row *r = tables[t]; r != NULL && r->kernel.fn[0] != NULL; r++)
            if (tti_kernel_key_equal(&r->key, &key))
                return r;
    return NULL;
}

static const tt_kernel *find_kernel(tti_kernel_key key)
{
    const tti_cuda_row *r = find_row(key);
    return r != NULL ? &r->kernel : NULL;
}

static unsigned find_libraries(tti_kernel_key key)
{
    const tti_cuda_row *r = find_row(key);
    unsigned by = r != NULL ? r->libraries : 0;
    if ((by & TTI_BY_BLAS) != 0 && tti_blas_version(NULL) == 0)
        by &= ~(unsigned)TTI_BY_BLAS;
    if ((by & TTI_BY_DNN) != 0 && tti_dnn_version(NULL) == 0)
        by &= ~(unsigned)TTI_BY_DNN;
    return by;
}

// ---- the module ------------------------------------------------------------------------------

// By name: C++17 has no other way that survives a new field.
static tti_cuda_module make_module(void)
{
    tti_cuda_module m = {};
    snprintf(m.headers, sizeof(m.headers), "%s", TTI_CUDA_HEADERS);
    m.count = tti_cuda_count;
    m.card = tti_cuda_card_get;
    m.reaches = tti_cuda_reaches;
    m.versions = tti_cuda_versions;
    m.bits = tti_cuda_bits;
    m.kernel = find_kernel;
    m.libraries = find_libraries;
    m.open = tti_cuda_open_device;
    m.close = tti_cuda_close_device;
    m.alloc = tti_cuda_alloc;
    m.free = tti_cuda_free;
    m.copy_now = tti_cuda_copy_now;
    m.can_read = tti_cuda_can_read;
    m.streams.stream = tti_cuda_stream;
    m.streams.copy = tti_cuda_copy;
    m.streams.record = tti_cuda_record;
    m.streams.wait = tti_cuda_wait;
    m.streams.ahead = tti_cuda_ahead;
    m.streams.settle = tti_cuda_settle;
    m.streams.try_alloc = tti_cuda_try_alloc;
    m.streams.drop_event = tti_cuda_drop_event;
    m.streams.notify = tti_cuda_notify;
    m.streams.sync = tti_cuda_sync;
    m.streams.capture_begin = tti_cuda_capture_begin;
    m.streams.capture_end = tti_cuda_capture_end;
    m.streams.launch = tti_cuda_launch;
    m.streams.drop_exec = tti_cuda_drop_exec;
    m.streams.elapsed = tti_cuda_elapsed;
    m.streams.pinned = tti_cuda_pinned;
    m.streams.unpin = tti_cuda_unpin;
    m.streams.joins = tti_nccl_joins;
    m.streams.gang = tti_nccl_gang;
    m.streams.together = tti_nccl_together;
    m.streams.mark = tti_nccl_mark;
    m.overhead = tti_cuda_overhead;
    return m;
}

extern "C" __attribute__((visibility("default"))) const tti_cuda_module *
tti_cuda_open(const tti_cuda_host *host)
{
    static tti_cuda_module module; // the caller loads it once, under a lock
    module = make_module();
    if (memcmp(module.headers, host->headers, sizeof(module.headers)) == 0)
        tti_cuda_host_api = host;
    return &module; // the caller compares them, too
}
