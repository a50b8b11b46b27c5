/*
 * device.cu - open devices: errors, streams, memory.
 *
 * A device is a part of a card's primary context, which all devices of the card and all libraries
 * share. Memory is plain cudaMalloc of exactly the bytes asked for.
 */
#include "cuda/nccl.h"
#include "cuda/trouble.h"
#include <stdio.h>
#include <string.h>

tti_cards tti_cuda_cards = {PTHREAD_MUTEX_INITIALIZER, {}};

// ---- errors ----------------------------------------------------------------------------------

// After these the context is of no use any more: every later call gives the same error.
static bool loses_card(cudaError_t e)
{
    switch (e) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorUnknown:
        return true;
    default:
        return false;
    }
}

#define LOST "%s: its GPU failed and cannot be used until this process is restarted: %s"

// Keeps the first cause. True with that in cause if the card was lost before.
static bool note_lost(int physical, const char *text, char cause[TTI_CAUSE])
{
    tti_card *c = &tti_cuda_cards.card[physical];
    pthread_mutex_lock(&tti_cuda_cards.mu);
    bool was_lost = c->lost[0] != '\0';
    if (was_lost)
        memcpy(cause, c->lost, TTI_CAUSE);
    else if (text != NULL)
        snprintf(c->lost, sizeof(c->lost), "%s", text);
    pthread_mutex_unlock(&tti_cuda_cards.mu);
    return was_lost;
}

tt_status tti_cuda_fail(const tti_cuda_device *d, const tt_node *node, cudaError_t e,
                        const char *what, const char *file, int line)
{
    char text[TTI_CAUSE], cause[TTI_CAUSE];
    (void)cudaGetLastError();
    snprintf(text, sizeof(text), "%s: %s%s%s%s%s: %s (%s)", d->name,
             node != NULL ? node->op->name : "", node != NULL ? " '" : "",
             node != NULL ? node->name : "", node != NULL ? "': " : "", what, cudaGetErrorString(e),
             cudaGetErrorName(e));
    if (note_lost(d->physical, loses_card(e) ? text : NULL, cause))
        return tt_fail(d->ctx, TT_EDEVICE, file, line, LOST, d->name, cause);
    return tt_fail(d->ctx, e == cudaErrorMemoryAllocation ? TT_ENOMEM : TT_EDEVICE, file, line,
                   "%s", text);
}

tt_status tti_cuda_enter(const tti_cuda_device *d)
{
    char cause[TTI_CAUSE];
    if (note_lost(d->physical, NULL, cause))
        return TT_FAIL(d->ctx, TT_EDEVICE, LOST, d->name, cause);
    TTI_CUDA(d, NULL, cudaSetDevice(d->physical));
    return TT_OK;
}

bool tti_cuda_enter_quietly(const tti_cuda_device *d)
{
    char cause[TTI_CAUSE];
    return !note_lost(d->physical, NULL, cause) && cudaSetDevice(d->physical) == cudaSuccess;
}

tt_status tti_cuda_launched(const tt_launch *l)
{
    const tti_cuda_device *d = (const tti_cuda_device *)l->device;
    TTI_CUDA(d, l->node, cudaGetLastError());
    if (d->parts->checks && !d->parts->is_capturing)
        TTI_CUDA(d, l->node, cudaStreamSynchronize(d->stream));
    return TT_OK;
}

tt_status tti_cuda_zero(const tt_launch *l, void *at, size_t bytes)
{
    const tti_cuda_device *d = (const tti_cuda_device *)l->device;
    if (bytes > 0)
        TTI_CUDA(d, l->node, cudaMemsetAsync(at, 0, bytes, (cudaStream_t)l->stream));
    return TT_OK;
}

// ---- open and close --------------------------------------------------------------------------

static size_t used_on_card(int physical)
{
    char bus[32];
    size_t free_bytes = 0, total = 0;
    bool known = cudaDeviceGetPCIBusId(bus, (int)sizeof(bus), physical) == cudaSuccess &&
                 tti_cuda_nvml_memory(bus, &free_bytes, &total);
    return known ? total - free_bytes : 0;
}

static tt_status describe(tti_cuda_device *d)
{
    int shared = 0;
    TTI_CUDA(d, NULL, cudaDeviceGetAttribute(&d->sms, cudaDevAttrMultiProcessorCount, d->physical));
    TTI_CUDA(d, NULL,
             cudaDeviceGetAttribute(&d->major, cudaDevAttrComputeCapabilityMajor, d->physical));
    TTI_CUDA(d, NULL,
             cudaDeviceGetAttribute(&d->minor, cudaDevAttrComputeCapabilityMinor, d->physical));
    TTI_CUDA(d, NULL,
             cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, d->physical));
    d->shared = (size_t)shared;
    TTI_CUDA(d, NULL, cudaStreamCreateWithFlags(&d->stream, cudaStreamNonBlocking));
    TTI_CUDA(d, NULL, cudaEventCreateWithFlags(&d->parts->fork, cudaEventDisableTiming));
    d->trouble = (tti_trouble *)tti_cuda_pinned_on(d, sizeof(*d->trouble));
    if (d->trouble == NULL)
        return TT_FAIL(d->ctx, TT_ENOMEM, "%s: no pinned memory of the host", d->name);
    memset(d->trouble, 0, sizeof(*d->trouble));
    return TT_OK;
}

static void close_state(tti_cuda_device *d);
static void free_block(tti_cuda_device *d, void *p);

tt_status tti_cuda_open_device(tt_ctx *ctx, const char *name, int i, void **out)
{
    int ordinal = tti_cuda_ordinal(i);
    if (ordinal < 0)
        return TT_FAIL(ctx, TT_EDEVICE, "%s: there is no GPU %d", name, i);
    size_t bytes = sizeof(tti_cuda_device) + sizeof(struct tti_parts);
    tti_cuda_device *d = (tti_cuda_device *)tti_cuda_host_api->alloc(ctx, bytes);
    if (d == NULL)
        return TT_ENOMEM;
    d->parts = (struct tti_parts *)(d + 1);
    d->ctx = ctx;
    d->physical = ordinal;
    snprintf(d->name, sizeof(d->name), "%s", name);
    const char *checks = tti_cuda_host_api->env("TUTTI_CUDA_CHECK");
    d->parts->checks = checks != NULL && strcmp(checks, "0") != 0;

    size_t before = used_on_card(ordinal); // a context comes with the next call
    tt_status st = tti_cuda_enter(d);
    if (st == TT_OK) {
        pthread_mutex_lock(&tti_cuda_cards.mu);
        tti_card *c = &tti_cuda_cards.card[ordinal];
        c->before = c->n_open == 0 ? before : c->before;
        c->n_open++;
        pthread_mutex_unlock(&tti_cuda_cards.mu);
        st = describe(d);
        if (st != TT_OK)
            close_state(d);
    } else {
        tti_cuda_host_api->free(ctx, d);
    }
    if (st == TT_OK)
        *out = d;
    return st;
}

// The streams beside the device's own, and all events.
static void drop_streams(struct tti_parts *p, bool works)
{
    cudaStream_t streams[] = {p->copies, p->out, p->joint};
    cudaEvent_t events[] = {p->fork, p->is_in[0], p->is_in[1], p->is_out, p->forked};
    for (size_t i = 0; works && i < sizeof(streams) / sizeof(streams[0]); i++)
        if (streams[i] != NULL)
            (void)cudaStreamDestroy(streams[i]);
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
        if (events[i] != NULL)
            (void)cudaEventDestroy(events[i]);
}

static void close_state(tti_cuda_device *d)
{
    struct tti_parts *p = d->parts;
    bool works = tti_cuda_enter_quietly(d);
    if (works && d->stream != NULL)
        (void)cudaStreamSynchronize(d->stream); // notes are in use until then
    tti_cuda_settle_on(d);
    tti_gangs_drop(d);
    drop_streams(p, works);
    tti_recipes_drop(d);
    while (p->blocks != NULL)
        free_block(d, p->blocks->at);
    while (p->notes != NULL) {
        tti_note *n = p->notes;
        p->notes = n->next;
        tti_cuda_host_api->free(d->ctx, n);
    }
    tti_cuda_unpin_on(d, p->bounce);
    tti_cuda_unpin_on(d, d->trouble);
    if (d->stream != NULL)
        (void)cudaStreamDestroy(d->stream);
    (void)cudaGetLastError();
    pthread_mutex_lock(&tti_cuda_cards.mu);
    tti_cuda_cards.card[d->physical].n_open--;
    pthread_mutex_unlock(&tti_cuda_cards.mu);
    tti_cuda_host_api->free(d->ctx, d);
}

void tti_cuda_close_device(struct tti_device *of)
{
    close_state(tti_cuda_of(of));
}

// ---- memory ----------------------------------------------------------------------------------

static size_t add_held(int physical, size_t plus, size_t minus)
{
    pthread_mutex_lock(&tti_cuda_cards.mu);
    tti_card *c = &tti_cuda_cards.card[physical];
    c->held += plus;
    c->held -= minus;
    size_t held = c->held;
    pthread_mutex_unlock(&tti_cuda_cards.mu);
    return held;
}

typedef struct size_text {
    char s[32];
} size_text;

static size_text text_of(size_t bytes)
{
    size_text t;
    if (bytes < (size_t)1 << 20)
        snprintf(t.s, sizeof(t.s), "%zu bytes", bytes);
    else if (bytes < (size_t)1 << 30)
        snprintf(t.s, sizeof(t.s), "%.1f MiB", (double)bytes / (1 << 20));
    else
        snprintf(t.s, sizeof(t.s), "%.2f GiB", (double)bytes / (1 << 30));
    return t;
}

// What others hold is known from when the first device of the card was opened; what is held since
// then and was not allocated here is CUDA's and its libraries', or theirs.
static tt_status no_memory(tti_cuda_device *d, size_t bytes)
{
    size_t free_bytes = 0, total = 0, held = add_held(d->physical, 0, 0);
    (void)cudaGetLastError();
    if (cudaMemGetInfo(&free_bytes, &total) != cudaSuccess)
        (void)cudaGetLastError();
    pthread_mutex_lock(&tti_cuda_cards.mu);
    size_t before = tti_cuda_cards.card[d->physical].before, used = total - free_bytes;
    pthread_mutex_unlock(&tti_cuda_cards.mu);
    size_t since = used > held + before ? used - held - before : 0;
    return TT_FAIL(
        d->ctx, TT_ENOMEM,
        "%s: cannot allocate %s: %s of the card's %s are free; this process's tensors use %s, "
        "other processes used %s when it started, and CUDA or others have taken %s since",
        d->name, text_of(bytes).s, text_of(free_bytes).s, text_of(total).s, text_of(held).s,
        text_of(before).s, text_of(since).s);
}

static cudaError_t new_block(tti_cuda_device *d, tti_block *b, size_t bytes)
{
    cudaError_t e = cudaMalloc(&b->at, bytes > 0 ? bytes : 1);
    if (e != cudaSuccess) {
        tti_cuda_host_api->free(d->ctx, b);
        return e;
    }
    b->bytes = bytes;
    b->next = d->parts->blocks;
    d->parts->blocks = b;
    (void)add_held(d->physical, bytes, 0);
    return cudaSuccess;
}

tt_status tti_cuda_alloc(struct tti_device *of, size_t bytes, void **out)
{
    tti_cuda_device *d = tti_cuda_of(of);
    TT_TRY(tti_cuda_enter(d));
    tti_block *b = (tti_block *)tti_cuda_host_api->alloc(d->ctx, sizeof(*b));
    if (b == NULL)
        return TT_ENOMEM;
    cudaError_t e = new_block(d, b, bytes);
    if (e == cudaErrorMemoryAllocation)
        return no_memory(d, bytes);
    if (e != cudaSuccess)
        return tti_cuda_fail(d, NULL, e, "cudaMalloc", __FILE__, __LINE__);
    *out = d->parts->blocks->at;
    return TT_OK;
}

bool tti_cuda_try_alloc(struct tti_device *of, size_t bytes, void **out)
{
    tti_cuda_device *d = tti_cuda_of(of);
    tti_block *b = NULL;
    if (tti_cuda_enter_quietly(d))
        b = (tti_block *)tti_cuda_host_api->alloc(d->ctx, sizeof(*b));
    if (b == NULL)
        return false;
    if (new_block(d, b, bytes) != cudaSuccess) {
        (void)cudaGetLastError();
        return false;
    }
    *out = d->parts->blocks->at;
    return true;
}

static void free_block(tti_cuda_device *d, void *p)
{
    tti_block **at = &d->parts->blocks;
    while (*at != NULL && (*at)->at != p)
        at = &(*at)->next;
    tti_block *b = *at;
    if (b == NULL)
        return;
    *at = b->next;
    if (tti_cuda_enter_quietly(d) && cudaFree(p) != cudaSuccess)
        (void)cudaGetLastError();
    (void)add_held(d->physical, 0, b->bytes);
    tti_cuda_host_api->free(d->ctx, b);
}

void tti_cuda_free(struct tti_device *of, void *p)
{
    free_block(tti_cuda_of(of), p);
}

size_t tti_cuda_overhead(struct tti_device *of)
{
    const tti_cuda_device *d = tti_cuda_of(of);
    size_t free_bytes = 0, total = 0;
    if (!tti_cuda_enter_quietly(d) || cudaMemGetInfo(&free_bytes, &total) != cudaSuccess)
        return 0;
    pthread_mutex_lock(&tti_cuda_cards.mu);
    const tti_card *c = &tti_cuda_cards.card[d->physical];
    size_t other = c->before + c->held, used = total - free_bytes;
    pthread_mutex_unlock(&tti_cuda_cards.mu);
    return used > other ? used - other : 0;
}

void *tti_cuda_pinned_on(const tti_cuda_device *d, size_t bytes)
{
    void *p = NULL;
    if (!tti_cuda_enter_quietly(d) ||
        cudaHostAlloc(&p, bytes > 0 ? bytes : 1, cudaHostAllocPortable | cudaHostAllocMapped) !=
            cudaSuccess) {
        (void)cudaGetLastError();
        return NULL;
    }
    return p;
}

void *tti_cuda_pinned(struct tti_device *of, size_t bytes)
{
    return tti_cuda_pinned_on(tti_cuda_of(of), bytes);
}

void tti_cuda_unpin_on(const tti_cuda_device *d, void *p)
{
    if (p != NULL && tti_cuda_enter_quietly(d) && cudaFreeHost(p) != cudaSuccess)
        (void)cudaGetLastError();
}

void tti_cuda_unpin(struct tti_device *of, void *p)
{
    tti_cuda_unpin_on(tti_cuda_of(of), p);
}
