/*
 * streams.cu - the order of work: events, flags of the host, waiting.
 */
#include "cuda/nccl.h"
#include "cuda/trouble.h"
#include <sched.h>
#include <stdio.h>
#include <time.h>

void *tti_cuda_stream(struct tti_device *of)
{
    const tti_cuda_device *d = tti_cuda_of(of);
    (void)tti_cuda_enter_quietly(d); // kernels are launched on the current card
    return d->stream;
}

// ---- events ----------------------------------------------------------------------------------

tt_status tti_cuda_record_on(tti_cuda_device *d, cudaStream_t s, void **event)
{
    TT_TRY(tti_cuda_enter(d));
    if (*event == NULL) {
        cudaEvent_t e;
        TTI_CUDA(d, NULL, cudaEventCreate(&e));
        *event = e;
    }
    TTI_CUDA(d, NULL, cudaEventRecord((cudaEvent_t)*event, s));
    return TT_OK;
}

tt_status tti_cuda_record(struct tti_device *of, void **event)
{
    tti_cuda_device *d = tti_cuda_of(of);
    return tti_cuda_record_on(d, d->stream, event);
}

tt_status tti_cuda_wait(struct tti_device *of, void *event)
{
    tti_cuda_device *d = tti_cuda_of(of);
    TT_TRY(tti_cuda_enter(d));
    TTI_CUDA(d, NULL, cudaStreamWaitEvent(d->stream, (cudaEvent_t)event, 0));
    return TT_OK;
}

void tti_cuda_drop_event(struct tti_device *of, void *event)
{
    const tti_cuda_device *d = tti_cuda_of(of);
    if (event == NULL)
        return;
    (void)tti_cuda_enter_quietly(d);
    if (cudaEventDestroy((cudaEvent_t)event) != cudaSuccess)
        (void)cudaGetLastError();
}

double tti_cuda_elapsed(struct tti_device *of, void *first, void *last)
{
    const tti_cuda_device *d = tti_cuda_of(of);
    float ms = 0;
    if (tti_cuda_enter_quietly(d) &&
        cudaEventElapsedTime(&ms, (cudaEvent_t)first, (cudaEvent_t)last) == cudaSuccess)
        return ms * 1e-3;
    (void)cudaGetLastError();
    return 0;
}

// ---- copies ahead ----------------------------------------------------------------------------

tt_status tti_cuda_ahead(struct tti_device *of, void *dst, const void *src, size_t bytes,
                         void *after, void **arrived)
{
    tti_cuda_device *d = tti_cuda_of(of);
    TT_TRY(tti_cuda_enter(d));
    if (d->parts->copies == NULL)
        TTI_CUDA(d, NULL, cudaStreamCreateWithFlags(&d->parts->copies, cudaStreamNonBlocking));
    cudaStream_t copies = d->parts->copies;
    if (*arrived == NULL) {
        cudaEvent_t e;
        TTI_CUDA(d, NULL, cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
        *arrived = e;
    }
    if (after != NULL)
        TTI_CUDA(d, NULL, cudaStreamWaitEvent(copies, (cudaEvent_t)after, 0));
    TTI_CUDA(d, NULL, cudaMemcpyAsync(dst, src, bytes, cudaMemcpyHostToDevice, copies));
    TTI_CUDA(d, NULL, cudaEventRecord((cudaEvent_t)*arrived, copies));
    return TT_OK;
}

void tti_cuda_settle_on(const tti_cuda_device *d)
{
    if (d->parts->copies != NULL && tti_cuda_enter_quietly(d) &&
        cudaStreamSynchronize(d->parts->copies) != cudaSuccess)
        (void)cudaGetLastError();
}

void tti_cuda_settle(struct tti_device *of)
{
    tti_cuda_settle_on(tti_cuda_of(of));
}

// ---- flags -----------------------------------------------------------------------------------

static void CUDART_CB set_flag(void *arg)
{
    tti_note *n = (tti_note *)arg;
    bool again = n->is_captured;
    tti_cuda_host_api->flag_set(n->flag, n->value);
    if (!again)
        __atomic_store_n(&n->is_busy, 0, __ATOMIC_RELEASE);
}

tt_status tti_cuda_notify(struct tti_device *of, struct tti_flag *flag, uint32_t value)
{
    tti_cuda_device *d = tti_cuda_of(of);
    TT_TRY(tti_cuda_enter(d));
    tti_note *n = d->parts->notes;
    while (n != NULL && __atomic_load_n(&n->is_busy, __ATOMIC_ACQUIRE))
        n = n->next;
    if (n == NULL) {
        n = (tti_note *)tti_cuda_host_api->alloc(d->ctx, sizeof(*n));
        if (n == NULL)
            return TT_ENOMEM;
        n->next = d->parts->notes;
        d->parts->notes = n;
    }
    n->flag = flag;
    n->value = value;
    n->is_captured = d->parts->is_capturing;
    n->exec = NULL;
    __atomic_store_n(&n->is_busy, 1, __ATOMIC_RELEASE);
    TTI_CUDA(d, NULL, cudaLaunchHostFunc(d->stream, set_flag, n));
    return TT_OK;
}

// ---- waiting ---------------------------------------------------------------------------------

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

// Of the device's own stream, and of that for joint work, if there is one.
static cudaError_t query(const tti_cuda_device *d)
{
    cudaError_t e = cudaStreamQuery(d->stream);
    return e == cudaSuccess && d->parts->joint != NULL ? cudaStreamQuery(d->parts->joint) : e;
}

static void nap(int64_t waited)
{
    struct timespec t = {0, waited < 100000000 ? 20000 : 200000};
    if (waited < 2000000)
        (void)sched_yield();
    else
        (void)nanosleep(&t, NULL);
}

// Joint work can wait for a device that never comes: it is let go.
static tt_status too_late(tti_cuda_device *d, int64_t waited)
{
    char text[TTI_CAUSE];
    snprintf(text, sizeof(text), "%s: its work has not finished after %.1f s", d->name,
             (double)waited * 1e-9);
    tti_gangs_end(d, text);
    return TT_FAIL(d->ctx, TT_ETIMEOUT, "%s", text);
}

#define LET_GO_NS 2000000000 // for joint work to end that was let go

// Looks often at first, for steps are short, then sleeps between looks.
tt_status tti_cuda_sync_on(tti_cuda_device *d, int64_t deadline_ns)
{
    TT_TRY(tti_cuda_enter(d));
    int64_t start = now_ns(), until = deadline_ns == INT64_MAX ? INT64_MAX : deadline_ns - start;
    until = until < 0 ? 0 : until;
    tt_status st = TT_OK;
    for (;;) {
        cudaError_t e = query(d);
        if (e != cudaSuccess && e != cudaErrorNotReady)
            return tti_cuda_fail(d, NULL, e,
                                 d->parts->checks
                                     ? "work of its stream"
                                     : "work of its stream (TUTTI_CUDA_CHECK=1 names the op)",
                                 __FILE__, __LINE__);
        int64_t waited = now_ns() - start;
        bool was_well = st == TT_OK, late = e == cudaErrorNotReady && waited >= until;
        if (was_well)
            st = tti_gangs_check(d);
        if (st == TT_OK && late)
            st = too_late(d, waited);
        if (e == cudaSuccess)
            return st == TT_OK ? tti_trouble_check(d) : st;
        if (st != TT_OK && was_well)
            until = waited + (d->parts->gangs != NULL ? LET_GO_NS : 0);
        if (st != TT_OK && waited >= until)
            return st;
        nap(waited);
    }
}

tt_status tti_cuda_sync(struct tti_device *of, int64_t deadline_ns)
{
    return tti_cuda_sync_on(tti_cuda_of(of), deadline_ns);
}
