/*
 * launches.cpp - what is put into streams: kernels, copies, fills; each is checked when it is made.
 */
#include "emu.h"
#include <stdio.h>

static size_t most_shared = EMU_SHARED_DEFAULT; // that a kernel has asked to be allowed
static long n_kernels;

cudaError_t emu_allow_shared(cudaFuncAttribute what, int value)
{
    EMU_LOCK;
    if (what != cudaFuncAttributeMaxDynamicSharedMemorySize)
        return cudaSuccess;
    if (value > EMU_SHARED_MAX)
        return emu_error(cudaErrorInvalidValue);
    most_shared = value > (int)most_shared ? (size_t)value : most_shared;
    return cudaSuccess;
}

void emu_launch_body(dim3 grid, dim3 block, size_t shared, cudaStream_t s,
                     std::function<void()> body)
{
    EMU_LOCK;
    uint64_t threads = (uint64_t)block.x * block.y * block.z;
    if (emu_card_of(s) != emu_current_card()) {
        (void)emu_error(cudaErrorInvalidResourceHandle);
    } else if (threads < 1 || threads > 1024 || block.z > 64 || grid.x < 1 || grid.y < 1 ||
               grid.z < 1 || grid.x > 2147483647u || grid.y > 65535 || grid.z > 65535) {
        (void)emu_error(cudaErrorInvalidConfiguration);
    } else if (shared > most_shared) {
        (void)emu_error(cudaErrorInvalidValue);
    } else {
        int card = emu_card_of(s);
        (void)emu_submit(s, [=]() {
            if (++n_kernels == emu_number("TUTTI_EMU_LOSE", 0)) {
                emu_lose(cudaErrorIllegalAddress);
                return;
            }
            emu_fence(card, true);
            (void)emu_run_grid(grid, block, shared, body);
            emu_fence(card, false);
        });
    }
}

static bool is_copy(const void *dst, const void *src, size_t bytes, cudaMemcpyKind kind)
{
    bool any = kind == cudaMemcpyDefault;
    bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool good = emu_is_range(dst, bytes, any || !to_device, any || to_device) &&
                emu_is_range(src, bytes, any || !from_device, any || from_device);
    if (!good)
        fprintf(stderr, "emulation: copy of %zu bytes to %p from %p is not of kind %d\n", bytes,
                dst, src, (int)kind);
    return good;
}

// Between the host and a card only by a stream of a card that reaches it: we rely on no more.
static bool is_near(const void *dst, const void *src, cudaStream_t s)
{
    int card = emu_card_of(s), to = emu_card_at(dst), from = emu_card_at(src);
    bool good =
        card < 0 || (to >= 0 && from >= 0) || (emu_reaches(card, to) && emu_reaches(card, from));
    if (!good)
        fprintf(stderr, "emulation: a stream of card %d copies memory of card %d\n", card,
                to < 0 ? from : to);
    return good;
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t s)
{
    EMU_LOCK;
    if (!is_copy(dst, src, bytes, kind) || !is_near(dst, src, s))
        return emu_error(cudaErrorInvalidValue);
    return emu_submit(s, [=]() { memmove(dst, src, bytes); });
}

cudaError_t cudaMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t s)
{
    EMU_LOCK;
    if (width == 0 || height == 0)
        return cudaSuccess;
    if (width > dst_pitch || width > src_pitch)
        return emu_error(cudaErrorInvalidValue);
    for (size_t i = 0; i < height; i++)
        if (!is_copy((char *)dst + i * dst_pitch, (const char *)src + i * src_pitch, width, kind))
            return emu_error(cudaErrorInvalidValue);
    return emu_submit(s, [=]() {
        for (size_t i = 0; i < height; i++)
            memmove((char *)dst + i * dst_pitch, (const char *)src + i * src_pitch, width);
    });
}

cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t s)
{
    EMU_LOCK;
    if (!emu_is_range(p, bytes, false, true))
        return emu_error(cudaErrorInvalidValue);
    return emu_submit(s, [=]() { memset(p, value, bytes); });
}

// On the default stream, which waits for no other.
cudaError_t cudaMemcpy(void *dst, const void *src, size_t bytes, cudaMemcpyKind kind)
{
    EMU_LOCK;
    cudaError_t e = emu_may_wait();
    if (e == cudaSuccess)
        e = emu_lost();
    if (e != cudaSuccess)
        return e;
    if (!is_copy(dst, src, bytes, kind))
        return emu_error(cudaErrorInvalidValue);
    memmove(dst, src, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemset(void *p, int value, size_t bytes)
{
    EMU_LOCK;
    if (!emu_is_range(p, bytes, false, true))
        return emu_error(cudaErrorInvalidValue);
    memset(p, value, bytes);
    return emu_lost();
}
