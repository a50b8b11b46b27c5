/*
 * backend.c - NVIDIA's GPUs as a backend: every call goes on to the module, whose state of a device
 * is the device's state here. Devices with memory of the host are NULL to it.
 */
#include "cuda/load.h"
#include <stdio.h>

// Asked only of open devices, which have it.
static const tti_cuda_module *module(void)
{
    char why[256];
    return tti_cuda_load(why, sizeof(why));
}

static void *state_of(const tti_device *d)
{
    return d == NULL || d->backend != &tti_backend_cuda ? NULL : d->state;
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
        module()->close(d->state);
    return st;
}

static void cuda_close(tti_device *d)
{
    tti_worker_close(d);
    module()->close(d->state);
}

static tt_status cuda_alloc(tti_device *d, size_t bytes, void **out)
{
    return module()->alloc(d->state, bytes, out);
}

static void cuda_free(tti_device *d, void *p, size_t bytes)
{
    (void)bytes;
    module()->free(d->state, p);
}

static tt_status cuda_copy_now(tti_device *to, void *dst, tti_device *from, const void *src,
                               size_t bytes)
{
    return module()->copy_now(state_of(to), dst, state_of(from), src, bytes);
}

static const tt_kernel *cuda_kernel(const tti_device *d, tti_kernel_key key)
{
    (void)d;
    return module()->kernel(key);
}

static bool cuda_can_read(const tti_device *d, const tti_device *other)
{
    return module()->can_read(d->state, state_of(other));
}

// ---- streams ---------------------------------------------------------------------------------

static void *cuda_stream(tti_device *d)
{
    return module()->stream(d->state);
}

static tt_status cuda_copy(tti_device *d, void *dst, const tti_device *from, const void *src,
                           size_t bytes)
{
    return module()->copy(d->state, dst, state_of(from), src, bytes);
}

static tt_status cuda_record(tti_device *d, void **event)
{
    return module()->record(d->state, event);
}

static tt_status cuda_wait(tti_device *d, void *event)
{
    return module()->wait(d->state, event);
}

static void cuda_drop_event(tti_device *d, void *event)
{
    module()->drop_event(d->state, event);
}

static tt_status cuda_notify(tti_device *d, tti_flag *flag, uint32_t value)
{
    return module()->notify(d->state, flag, value);
}

static tt_status cuda_sync(tti_device *d, int64_t deadline_ns)
{
    int64_t left = deadline_ns == TTI_FOREVER ? -1 : (deadline_ns - tti_now_ns()) / 1000000;
    return module()->sync(d->state, deadline_ns == TTI_FOREVER ? -1 : TTI_MAX(left, 0));
}

static void states_of(tti_device *const *d, int n, void **out)
{
    for (int i = 0; i < n; i++)
        out[i] = d[i]->state;
}

#define MAX_GROUP 64 // devices of a context

static tt_status cuda_capture_begin(tti_device *const *d, int n)
{
    void *states[MAX_GROUP];
    states_of(d, n, states);
    return module()->capture_begin(states, n);
}

static tt_status cuda_capture_end(tti_device *const *d, int n, bool keep, void **exec)
{
    void *states[MAX_GROUP];
    states_of(d, n, states);
    return module()->capture_end(states, n, keep, exec);
}

static tt_status cuda_launch(tti_device *d, void *exec)
{
    return module()->launch(d->state, exec);
}

static void cuda_drop_exec(tti_device *d, void *exec)
{
    module()->drop_exec(d->state, exec);
}

static double cuda_elapsed(tti_device *d, void *first, void *last)
{
    return module()->elapsed(d->state, first, last);
}

static void *cuda_pinned(tti_device *d, size_t bytes)
{
    return module()->pinned(d->state, bytes);
}

static void cuda_unpin(tti_device *d, void *p)
{
    module()->unpin(d->state, p);
}

static tt_status cuda_ahead(tti_device *d, void *dst, const void *src, size_t bytes, void *after,
                            void **arrived)
{
    return module()->ahead(d->state, dst, src, bytes, after, arrived);
}

static void cuda_settle(tti_device *d)
{
    module()->settle(d->state);
}

static bool cuda_try_alloc(tti_device *d, size_t bytes, void **out)
{
    return module()->try_alloc(d->state, bytes, out);
}

static bool cuda_joins(tti_device *const *d, int n, char *words, size_t size)
{
    void *states[MAX_GROUP];
    for (int i = 0; i < n; i++) {
        if (d[i]->backend == &tti_backend_cuda && !d[i]->is_away)
            continue;
        snprintf(words, size, "%s is not a GPU of this process", d[i]->name);
        return false;
    }
    states_of(d, n, states);
    return module()->joins(states, n, words, size);
}

static tt_status cuda_gang(tti_device *const *d, int n, void **out)
{
    void *states[MAX_GROUP];
    states_of(d, n, states);
    return module()->gang(states, n, out);
}

static tt_status cuda_together(void *gang, const tti_library_call *list, int n)
{
    return module()->together(gang, list, n);
}

static tt_status cuda_mark(tti_device *d, void **event)
{
    return module()->mark(d->state, event);
}

static const tti_streams streams = {
    .stream = cuda_stream,
    .copy = cuda_copy,
    .record = cuda_record,
    .wait = cuda_wait,
    .drop_event = cuda_drop_event,
    .notify = cuda_notify,
    .sync = cuda_sync,
    .capture_begin = cuda_capture_begin,
    .capture_end = cuda_capture_end,
    .launch = cuda_launch,
    .drop_exec = cuda_drop_exec,
    .elapsed = cuda_elapsed,
    .pinned = cuda_pinned,
    .unpin = cuda_unpin,
    .ahead = cuda_ahead,
    .settle = cuda_settle,
    .try_alloc = cuda_try_alloc,
    .joins = cuda_joins,
    .gang = cuda_gang,
    .together = cuda_together,
    .mark = cuda_mark,
};

static size_t cuda_overhead(tti_device *d)
{
    return module()->overhead(d->state);
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
    .streams = &streams,
    .can_read = cuda_can_read,
    .overhead = cuda_overhead,
};
