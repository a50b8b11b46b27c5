/*
 * library.cu - cuBLASLt, cuDNN and NCCL by dlopen, wherever they are: the system's folders, those
 * of $TUTTI_CUDA_LIBRARIES (separated by colons), the toolkit, the packages of the python3 on PATH.
 */
#include "cuda/parts.h"
#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Libraries know nothing of an emulated device; what there is of them is the emulation's.
#ifdef TTI_EMU
#define SEARCH emu_library
#define SYMBOL emu_symbol
#else
#define SEARCH search
#define SYMBOL dlsym
#endif

// Each library that was looked for, found or not: a second search would find the same.
#define MAX_LIBRARIES 16
typedef struct library {
    const char *name; // the first of its names
    void *handle;
    char why[160];
} library;
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static library libraries[MAX_LIBRARIES]; // guarded by mu
static int n_libraries;                  // guarded by mu

static void *open_in(const char *folder, const char *const *names)
{
    char path[PATH_MAX];
    for (int i = 0; names[i] != NULL; i++) {
        int n = snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        if (n < (int)sizeof(path) && access(path, R_OK) == 0) {
            void *h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
            if (h != NULL)
                return h;
        }
    }
    return NULL;
}

static void *open_in_list(const char *list, const char *const *names)
{
    char folder[PATH_MAX];
    void *h = NULL;
    for (const char *s = list, *end; s != NULL && h == NULL; s = end == NULL ? NULL : end + 1) {
        end = strchr(s, ':');
        size_t n = end == NULL ? strlen(s) : (size_t)(end - s);
        if (n == 0 || n >= sizeof(folder))
            continue;
        memcpy(folder, s, n);
        folder[n] = '\0';
        h = open_in(folder, names);
    }
    return h;
}

static void *open_in_glob(const char *prefix, const char *pattern, const char *const *names)
{
    char full[PATH_MAX];
    glob_t found;
    void *h = NULL;
    if (snprintf(full, sizeof(full), "%s%s", prefix, pattern) >= (int)sizeof(full) ||
        glob(full, 0, NULL, &found) != 0)
        return NULL;
    for (size_t i = 0; i < found.gl_pathc && h == NULL; i++)
        h = open_in(found.gl_pathv[i], names);
    globfree(&found);
    return h;
}

// The packages of a Python whose executable is bin/python3: prefix is what bin is in.
static void *open_in_prefix(char *executable, const char *const *names)
{
    static const char *const patterns[] = {"/lib/python3*/site-packages/nvidia/*/lib",
                                           "/local/lib/python3*/dist-packages/nvidia/*/lib",
                                           "/lib/python3/dist-packages/nvidia/*/lib"};
    void *h = NULL;
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(executable, '/');
        if (slash == NULL)
            return NULL;
        *slash = '\0';
    }
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]) && h == NULL; i++)
        h = open_in_glob(executable, patterns[i], names);
    return h;
}

// The first python3 on PATH, as named (a virtual environment) and as it is behind its links.
static void *open_in_python(const char *const *names)
{
    const char *path = tti_cuda_host_api->env("PATH");
    char at[PATH_MAX], real[PATH_MAX];
    for (const char *s = path, *end; s != NULL; s = end == NULL ? NULL : end + 1) {
        end = strchr(s, ':');
        int n = end == NULL ? (int)strlen(s) : (int)(end - s);
        if (snprintf(at, sizeof(at), "%.*s/python3", n, s) >= (int)sizeof(at) ||
            access(at, X_OK) != 0)
            continue;
        char *is_real = realpath(at, real);
        void *h = open_in_prefix(at, names);
        return h != NULL || is_real == NULL ? h : open_in_prefix(real, names);
    }
    return NULL;
}

static void *search(const char *const *names)
{
    void *h = NULL;
    for (int i = 0; names[i] != NULL && h == NULL; i++)
        h = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (h == NULL)
        h = open_in_list(tti_cuda_host_api->env("TUTTI_CUDA_LIBRARIES"), names);
    if (h == NULL)
        h = open_in("/usr/local/cuda/lib64", names);
    return h != NULL ? h : open_in_python(names);
}

void *tti_cuda_library(const char *const *names, const char **why)
{
    pthread_mutex_lock(&mu);
    library *l = NULL;
    for (int i = 0; i < n_libraries; i++)
        if (strcmp(libraries[i].name, names[0]) == 0)
            l = &libraries[i];
    if (l == NULL && n_libraries < MAX_LIBRARIES) {
        l = &libraries[n_libraries++];
        l->name = names[0];
        l->handle = SEARCH(names);
        if (l->handle == NULL)
            snprintf(l->why, sizeof(l->why), "%s: not found", names[0]);
    }
    pthread_mutex_unlock(&mu);
    if (why != NULL)
        *why = l == NULL ? "too many libraries" : l->why;
    return l == NULL ? NULL : l->handle;
}

void *tti_cuda_symbol(void *lib, const char *name)
{
    return lib == NULL ? NULL : SYMBOL(lib, name);
}
