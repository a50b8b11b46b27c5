/*
 * backend.c - NVIDIA's GPUs as a backend: opening, memory and kernels by calls of the module, whose
 * state of a device is the device's state here. The record of streams is the module's own.
 */
#include "cuda/load.h"
#include <stdio.h>

// Asked only of open devices, which have it.
static const tti_cuda_module *module(void)
{
    char why[256];
    return tti_cuda_load(why, sizeof(why));
}

// ---- devices ---------------------------------------------------------------------------------

static int cuda_count(char *why, size_t n)
{
    const tti_cuda_module *m = tti_cuda_load(why, n);
    return m == NULL ? 0 : m->count(why, n);
}

static void cuda_facts(int physical, tti_facts *out)
{
    const tti_cuda_module *m = module();
    tti_cuda_card c;
    *out = (tti_facts){.model = "GPU"};
    if (m == NULL || m->card(physical, &c) != TT_OK)
        return;
    out->memory = c.memory;
    out->memory_free = c.memory_free;
    out->major = c.major;
    out->minor = c.minor;
    snprintf(out->model, sizeof(out->model), "%s", c.model);
    snprintf(out->bus, sizeof(out->bus), "%s", c.bus);
}

static void cuda_bits(int physical, char *out, size_t n)
{
    module()->bits(physical, out, n);
}

static bool cuda_reaches(int physical, int other)
{
    return module() != NULL && module()->reaches(physical, other);
}

static tt_status cuda_open(tti_device *d)
{
    TT_TRY(module()->open(d->ctx, d->name, d->card, &d->state));
    tt_status st = tti_worker_open(d);
    if (st != TT_OK)
        module()->close(d);
    return st;
}

static void cuda_close(tti_device *d)
{
    tti_worker_close(d);
    module()->close(d);
}

static tt_status cuda_alloc(tti_device *d, size_t bytes, void **out)
{
    return module()->alloc(d, bytes, out);
}

static void cuda_free(tti_device *d, void *p, size_t bytes)
{
    (void)bytes;
    module()->free(d, p);
}

static tt_status cuda_copy_now(tti_device *to, void *dst, tti_device *from, const void *src,
                               size_t bytes)
{
    return module()->copy_now(to, dst, from, src, bytes);
}

static const tt_kernel *cuda_kernel(const tti_device *d, tti_kernel_key key)
{
    (void)d;
    return module()->kernel(key);
}

static bool cuda_can_read(const tti_device *d, const tti_device *other)
{
    return module()->can_read(d, other);
}

static size_t cuda_overhead(tti_device *d)
{
    return module()->overhead(d);
}

const tti_backend tti_backend_cuda = {
    .name = "gpu",
    .id = TT_CUDA,
    .count = cuda_count,
    .facts = cuda_facts,
    .reaches = cuda_reaches,
    .bits = cuda_bits,
    .open = cuda_open,
    .close = cuda_close,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .copy = cuda_copy_now,
    .submit = tti_worker_submit,
    .kernel = cuda_kernel,
    .streams = &tti_cuda_streams,
    .can_read = cuda_can_read,
    .overhead = cuda_overhead,
};
