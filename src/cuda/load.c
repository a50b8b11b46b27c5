/*
 * load.c - finds libtutti-cuda.so: where $TUTTI_CUDA_MODULE says and nowhere else if it is set;
 * else beside the library or the program, in the lib/ next to that, and where the system looks.
 */
#include "cuda/load.h"
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FILE_NAME "libtutti-cuda.so"

// ---- what the module calls -------------------------------------------------------------------

static void host_log(tt_ctx *ctx, tt_level level, const char *text)
{
    TT_LOG(ctx, level, "%s", text);
}
static void *host_alloc(tt_ctx *ctx, size_t bytes)
{
    return tti_calloc(ctx, 1, bytes);
}
static const tti_cuda_host host = {
    .headers = TTI_CUDA_HEADERS,
    .vfail = tti_vfail,
    .log = host_log,
    .alloc = host_alloc,
    .free = tti_free,
    .flag_set = tti_flag_set,
    .env = tti_env,
};

// ---- finding it ------------------------------------------------------------------------------

// One module per process: it has one CUDA runtime.
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(const tti_cuda_module *) loaded; // written under mu
tti_streams tti_cuda_streams;                   // likewise, before a device is open

// Tries folder/relative/FILE_NAME; a file that is there but does not load is told in why.
static void *open_beside(const char *file, const char *relative, char *why, size_t n)
{
    char path[PATH_MAX];
    const char *slash = file == NULL ? NULL : strrchr(file, '/');
    int folder = slash == NULL ? 0 : (int)(slash - file);
    if (slash == NULL || snprintf(path, sizeof(path), "%.*s/%s%s", folder, file, relative,
                                  FILE_NAME) >= (int)sizeof(path))
        return NULL;
    if (access(path, F_OK) != 0)
        return NULL;
    void *h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (h == NULL)
        snprintf(why, n, "%s", dlerror());
    return h;
}

static void *open_file(char *why, size_t n)
{
    const char *given = tti_env("TUTTI_CUDA_MODULE");
    if (given != NULL && given[0] != '\0') {
        void *h = dlopen(given, RTLD_NOW | RTLD_LOCAL);
        if (h == NULL)
            snprintf(why, n, "TUTTI_CUDA_MODULE: %s", dlerror());
        return h;
    }
    static const char *const relatives[] = {"", "../lib/", "../"};
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    program[length < 0 ? 0 : length] = '\0';
    Dl_info library = {0};
    (void)dladdr(&host, &library);
    why[0] = '\0';
    void *h = NULL;
    for (int i = 0; i < TTI_COUNT(relatives) && h == NULL; i++) {
        h = open_beside(library.dli_fname, relatives[i], why, n);
        if (h == NULL)
            h = open_beside(program, relatives[i], why, n);
    }
    if (h == NULL && why[0] == '\0')
        h = dlopen(FILE_NAME, RTLD_NOW | RTLD_LOCAL);
    if (h == NULL && why[0] == '\0')
        snprintf(why, n, "this build has no CUDA module: make CUDA=1");
    return h;
}

static const tti_cuda_module *open_module(char *why, size_t n)
{
    void *h = open_file(why, n);
    if (h == NULL)
        return NULL;
    tti_cuda_open_fn open_fn;
    void *symbol = dlsym(h, TTI_CUDA_OPEN);
    memcpy(&open_fn, &symbol, sizeof(open_fn)); // C has no cast from a pointer to a function
    const tti_cuda_module *m = open_fn == NULL ? NULL : open_fn(&host);
    if (m != NULL && memcmp(m->headers, host.headers, sizeof(m->headers)) == 0)
        return m;
    struct link_map *file = NULL;
    const char *path = dlinfo(h, RTLD_DI_LINKMAP, &file) == 0 ? file->l_name : FILE_NAME;
    if (m == NULL)
        snprintf(why, n, "%s is not a Tutti module", path);
    else
        snprintf(why, n, "%s has another version than this library; build both with make", path);
    dlclose(h);
    return NULL;
}

const tti_cuda_module *tti_cuda_load(char *why, size_t n)
{
    const tti_cuda_module *m = atomic_load_explicit(&loaded, memory_order_acquire);
    if (m != NULL)
        return m;
    pthread_mutex_lock(&mu);
    m = atomic_load(&loaded);
    if (m == NULL) {
        m = open_module(why, n);
        if (m != NULL)
            tti_cuda_streams = m->streams;
        atomic_store(&loaded, m);
    }
    pthread_mutex_unlock(&mu);
    return m;
}

void tti_cuda_describe(char *out, size_t n)
{
    char why[256];
    const tti_cuda_module *m = tti_cuda_load(why, sizeof(why));
    if (m != NULL)
        m->versions(out, n);
    else
        snprintf(out, n, "no (%s)", why);
}
