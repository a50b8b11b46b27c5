/*
 * cpu.c - the CPU backend: memory, copies, instruction sets.
 */
#include "base/ctx.h"
#include "device/device.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define LARGE ((size_t)2 << 20)

/*
 * Aligned host memory. A pointer to the block lies in front of it; large blocks ask for huge pages,
 * which spare the matmul kernels most of their address translations.
 */
void *tti_host_alloc(tt_ctx *ctx, size_t bytes)
{
    size_t align = bytes >= LARGE ? LARGE : 64;
    char *block = tti_alloc(ctx, bytes + align + sizeof(void *));
    if (block == NULL)
        return NULL;
    uintptr_t at = ((uintptr_t)block + sizeof(void *) + align - 1) & ~(uintptr_t)(align - 1);
    memcpy((char *)at - sizeof(void *), &block, sizeof(void *));
    if (bytes >= LARGE)
        (void)madvise((void *)at, bytes & ~(size_t)(LARGE - 1), MADV_HUGEPAGE); // a wish only
    return (void *)at;
}

void tti_host_free(tt_ctx *ctx, void *p)
{
    if (p == NULL)
        return;
    void *block;
    memcpy(&block, (char *)p - sizeof(void *), sizeof(void *));
    tti_free(ctx, block);
}

int tti_cores(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

static const char *const isa_names[] = {"plain", "fma", "avx2", "avx512"};

int tti_best_isa(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    bool fma = __builtin_cpu_supports("fma");
    if (fma && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return TT_ISA_AVX512;
    if (fma && __builtin_cpu_supports("avx2"))
        return TT_ISA_AVX2;
#endif
    return TT_ISA_PLAIN;
}

const char *tti_isa_name(int isa)
{
    return isa >= 0 && isa < TTI_COUNT(isa_names) ? isa_names[isa] : "f64";
}

tt_status tti_find_isa(tt_ctx *ctx, const char *name, int *out)
{
    int best = tti_best_isa();
    for (int i = 0; i < TTI_COUNT(isa_names); i++) {
        if (strcmp(name, isa_names[i]) != 0)
            continue;
        if (i > best)
            return TT_FAIL(
                ctx, TT_EUNSUPPORTED,
                "instruction set '%s' is not supported by this machine; its best is '%s'", name,
                isa_names[best]);
        *out = i;
        return TT_OK;
    }
    return TT_FAIL(ctx, TT_EINVAL, "instruction set '%s' is not one of plain, fma, avx2, avx512",
                   name);
}

static int cpu_count(char *why, size_t n)
{
    (void)why;
    (void)n;
    return 1;
}

static void cpu_facts(int physical, tti_facts *out)
{
    (void)physical;
    long free_pages = sysconf(_SC_AVPHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    bool is_group;
    size_t all = tti_machine_memory(&is_group);
    size_t left = free_pages > 0 ? (size_t)free_pages * (size_t)bytes : 0;
    *out = (tti_facts){.memory = all, .memory_free = all > 0 ? TTI_MIN(left, all) : left};
    snprintf(out->model, sizeof(out->model), "CPU");
#if defined(__x86_64__)
    unsigned r[12];
    for (unsigned i = 0; i < 3; i++)
        if (!__get_cpuid(0x80000002u + i, &r[i * 4], &r[i * 4 + 1], &r[i * 4 + 2], &r[i * 4 + 3]))
            return;
    char name[49];
    memcpy(name, r, 48);
    name[48] = 0;
    const char *s = name;
    while (*s == ' ')
        s++;
    snprintf(out->model, sizeof(out->model), "%s", s);
#endif
}

static tt_status cpu_alloc(tti_device *d, size_t bytes, void **out)
{
    void *p = tti_host_alloc(d->ctx, bytes);
    if (p == NULL)
        return TT_ENOMEM;
    *out = p;
    return TT_OK;
}

static void cpu_free(tti_device *d, void *p, size_t bytes)
{
    (void)bytes;
    tti_host_free(d->ctx, p);
}

static tt_status cpu_copy(tti_device *to, void *dst, tti_device *from, const void *src,
                          size_t bytes)
{
    (void)to;
    (void)from;
    memcpy(dst, src, bytes);
    return TT_OK;
}

const tti_backend tti_backend_cpu = {
    .name = "cpu",
    .id = TT_CPU,
    .host_memory = true,
    .count = cpu_count,
    .facts = cpu_facts,
    .open = tti_worker_open,
    .close = tti_worker_close,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .copy = cpu_copy,
    .submit = tti_worker_submit,
};
