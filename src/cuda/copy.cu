/*
 * copy.cu - copies between the host and cards, and between cards.
 *
 * Two devices of one card share its memory. Cards that reach each other copy directly; between
 * others bytes go through pinned memory of the host, piece by piece in the order of the streams.
 */
#include "cuda/parts.h"
#include <string.h>

#define BOUNCE ((size_t)4 << 20)

// What is known of two cards: 0 nothing yet, 1 they reach each other, 2 they do not. Guarded by
// tti_cuda_cards.mu.
static unsigned char reach[TTI_MAX_CARDS][TTI_MAX_CARDS];

static bool can_read(const tti_cuda_device *d, const tti_cuda_device *other)
{
    if (other == NULL)
        return false;
    if (d->physical == other->physical)
        return true;
    pthread_mutex_lock(&tti_cuda_cards.mu);
    unsigned char known = reach[d->physical][other->physical];
    pthread_mutex_unlock(&tti_cuda_cards.mu);
    if (known != 0 || !tti_cuda_enter_quietly(d))
        return known == 1;
    int can = 0;
    cudaError_t e = cudaDeviceCanAccessPeer(&can, d->physical, other->physical);
    if (e == cudaSuccess && can)
        e = cudaDeviceEnablePeerAccess(other->physical, 0);
    if (e != cudaSuccess)
        (void)cudaGetLastError();
    known = can && (e == cudaSuccess || e == cudaErrorPeerAccessAlreadyEnabled) ? 1 : 2;
    pthread_mutex_lock(&tti_cuda_cards.mu);
    reach[d->physical][other->physical] = known;
    pthread_mutex_unlock(&tti_cuda_cards.mu);
    return known == 1;
}

bool tti_cuda_can_read(const struct tti_device *of, const struct tti_device *other)
{
    return can_read(tti_cuda_of(of), tti_cuda_of(other));
}

bool tti_cuda_reaches(int i, int other)
{
    int can = 0, a = tti_cuda_ordinal(i), b = tti_cuda_ordinal(other);
    if (a < 0 || b < 0 || cudaDeviceCanAccessPeer(&can, a, b) != cudaSuccess)
        (void)cudaGetLastError();
    return can != 0;
}

static tt_status new_event(tti_cuda_device *d, cudaEvent_t *e)
{
    if (*e == NULL)
        TTI_CUDA(d, NULL, cudaEventCreateWithFlags(e, cudaEventDisableTiming));
    return TT_OK;
}

static tt_status make_far(tti_cuda_device *d, tti_cuda_device *from)
{
    struct tti_parts *p = d->parts, *f = from->parts;
    TT_TRY(tti_cuda_enter(from));
    if (f->out == NULL)
        TTI_CUDA(from, NULL, cudaStreamCreateWithFlags(&f->out, cudaStreamNonBlocking));
    TT_TRY(new_event(from, &f->is_out));
    TT_TRY(tti_cuda_enter(d));
    for (int i = 0; i < 2; i++)
        TT_TRY(new_event(d, &p->is_in[i]));
    if (p->bounce == NULL)
        p->bounce = (char *)tti_cuda_pinned_on(d, 2 * BOUNCE);
    if (p->bounce == NULL)
        return TT_FAIL(d->ctx, TT_ENOMEM, "%s: no %zu bytes of pinned memory for copies", d->name,
                       2 * BOUNCE);
    return TT_OK;
}

// What it needs may be asked for first while a capture is on, which forbids what could wait.
static tt_status prepare_far(tti_cuda_device *d, tti_cuda_device *from)
{
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    TTI_CUDA(d, NULL, cudaThreadExchangeStreamCaptureMode(&mode));
    tt_status st = make_far(d, from);
    TTI_CUDA(d, NULL, cudaThreadExchangeStreamCaptureMode(&mode));
    return st;
}

/*
 * Each card touches its own memory alone: a stream of the source's card writes a piece to the host,
 * d's own reads it from there, while the next piece goes out to the other half of the buffer.
 */
static tt_status copy_far(tti_cuda_device *d, tti_cuda_device *from, char *dst, const char *src,
                          size_t bytes)
{
    TT_TRY(prepare_far(d, from));
    struct tti_parts *p = d->parts, *f = from->parts;
    for (int i = 0; i < 2; i++)
        TTI_CUDA(d, NULL, cudaEventRecord(p->is_in[i], d->stream));
    size_t n;
    for (int half = 0; bytes > 0; bytes -= n, dst += n, src += n, half = !half) {
        char *at = p->bounce + (half ? BOUNCE : 0);
        n = bytes < BOUNCE ? bytes : BOUNCE;
        TT_TRY(tti_cuda_enter(from));
        TTI_CUDA(from, NULL, cudaStreamWaitEvent(f->out, p->is_in[half], 0));
        TTI_CUDA(from, NULL, cudaMemcpyAsync(at, src, n, cudaMemcpyDeviceToHost, f->out));
        TTI_CUDA(from, NULL, cudaEventRecord(f->is_out, f->out));
        TT_TRY(tti_cuda_enter(d));
        TTI_CUDA(d, NULL, cudaStreamWaitEvent(d->stream, f->is_out, 0));
        TTI_CUDA(d, NULL, cudaMemcpyAsync(dst, at, n, cudaMemcpyHostToDevice, d->stream));
        TTI_CUDA(d, NULL, cudaEventRecord(p->is_in[half], d->stream));
    }
    return TT_OK;
}

static bool is_device_memory(const void *p)
{
    cudaPointerAttributes a;
    if (cudaPointerGetAttributes(&a, p) == cudaSuccess)
        return a.type == cudaMemoryTypeDevice;
    (void)cudaGetLastError();
    return false;
}

// Which end is the host's follows from the addresses.
static tt_status copy_on(tti_cuda_device *d, void *dst, tti_cuda_device *from, const void *src,
                         size_t bytes)
{
    TT_TRY(tti_cuda_enter(d));
    if (bytes == 0)
        return TT_OK;
    if (from != NULL && from->physical != d->physical && !can_read(d, from) &&
        is_device_memory(dst))
        return copy_far(d, from, (char *)dst, (const char *)src, bytes);
    TTI_CUDA(d, NULL, cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, d->stream));
    return TT_OK;
}

tt_status tti_cuda_copy(struct tti_device *of, void *dst, const struct tti_device *from,
                        const void *src, size_t bytes)
{
    return copy_on(tti_cuda_of(of), dst, tti_cuda_of(from), src, bytes);
}

tt_status tti_cuda_copy_now(struct tti_device *dst_of, void *dst, struct tti_device *src_of,
                            const void *src, size_t bytes)
{
    tti_cuda_device *to = tti_cuda_of(dst_of), *from = tti_cuda_of(src_of);
    if (to == NULL && from == NULL) {
        memcpy(dst, src, bytes);
        return TT_OK;
    }
    if (to != NULL && from != NULL && to != from)
        TT_TRY(tti_cuda_sync_on(from, INT64_MAX)); // what wrote src has ended
    tti_cuda_device *d = to != NULL ? to : from;
    TT_TRY(copy_on(d, dst, from, src, bytes));
    return tti_cuda_sync_on(d, INT64_MAX);
}
