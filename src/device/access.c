/*
 * access.c - what the rest of the library asks of any device: its kernels, and memory that may not
 * be the host's.
 */
#include "base/ctx.h"
#include "device/device.h"
#include <stdio.h>
#include <string.h>

const tt_kernel *tti_device_kernel(const tti_device *d, const tt_op *op)
{
    const tt_kernel *own = &op->kernel[d->backend->id];
    if (d->backend->kernel == NULL || own->fn[0] != NULL)
        return own;
    return d->backend->kernel(d, tti_kernel_of_op(op->name));
}

void tti_kernel_key_text(const tti_kernel_key *k, char out[TTI_KERNEL_TEXT])
{
    static const char *const forms[] = {[TTI_KERNEL_OP] = "",
                                        [TTI_KERNEL_BATCHED] = "batched ",
                                        [TTI_KERNEL_CHAIN] = "chain ",
                                        [TTI_KERNEL_INIT] = "init",
                                        [TTI_KERNEL_FUSED] = "fused",
                                        [TTI_KERNEL_TREE] = "tree",
                                        [TTI_KERNEL_WIDEN] = "widen",
                                        [TTI_KERNEL_NARROW] = "narrow",
                                        [TTI_KERNEL_GATHER] = "gather",
                                        [TTI_KERNEL_MOMENTS] = "moments",
                                        [TTI_KERNEL_COLLECT] = "collect"};
    size_t at = (size_t)snprintf(out, TTI_KERNEL_TEXT, "%s", forms[k->form]);
    for (int i = 0; i < TTI_KERNEL_OPS && k->op[i] != NULL && at < TTI_KERNEL_TEXT; i++)
        at += (size_t)snprintf(out + at, TTI_KERNEL_TEXT - at, "%s%s", i == 0 ? "" : "+", k->op[i]);
}

unsigned tti_stream_types(const tt_op *op, const tt_kernel *k)
{
    unsigned f64 = 1u << TT_F64, types = k->types != 0 ? k->types : op->types & ~f64;
    return types != 0 ? types : TT_TYPES_FLOAT & ~f64;
}

tt_status tti_device_copy(tti_device *to, void *dst, tti_device *from, const void *src,
                          size_t bytes)
{
    tti_device *by = to != NULL && tti_has_streams(to) ? to : from;
    if (bytes == 0)
        return TT_OK;
    if (by != NULL && tti_has_streams(by))
        return by->backend->copy(to, dst, from, src, bytes);
    memcpy(dst, src, bytes);
    return TT_OK;
}

bool tti_device_can_read(const tti_device *d, const tti_device *other)
{
    bool is_host = d->backend->host_memory && other->backend->host_memory;
    if (d->task != other->task && !(is_host && tti_set_has(&d->near, other->task)))
        return false; // memory of GPUs is that of their process
    if (d == other || is_host)
        return true;
    return d->backend->can_read != NULL && d->backend == other->backend &&
           d->backend->can_read(d, other);
}

tti_device *tti_first_gpu(const tt_ctx *ctx)
{
    for (int i = 0; i < ctx->top.n_devices; i++)
        if (tti_has_streams(ctx->top.devices[i]) && !ctx->top.devices[i]->is_away)
            return ctx->top.devices[i];
    return NULL;
}

int tti_arithmetic_of(const tt_ctx *ctx)
{
    int gpus = 0;
    for (int i = 0; i < ctx->top.n_devices; i++)
        gpus += ctx->top.devices[i]->backend->id == TT_CUDA;
    return TT_ARITHMETIC + (gpus == 0 ? 0 : gpus == ctx->top.n_devices ? 1000 : 2000);
}

const char *tti_arithmetic_note(int number)
{
    return number >= 2000 ? " (CPU and GPUs)" : number >= 1000 ? " (GPUs)" : "";
}

void tti_bits_of(const tt_ctx *ctx, char out[TTI_BITS_TEXT])
{
    out[0] = '\0';
    for (int i = 0; i < ctx->top.n_devices; i++) {
        const tti_device *d = ctx->top.devices[i];
        char text[TTI_BITS_TEXT];
        if (d->backend->bits == NULL || d->is_away)
            continue;
        d->backend->bits(d->card, text, sizeof(text));
        size_t n = strlen(out);
        if (strstr(out, text) == NULL)
            snprintf(out + n, TTI_BITS_TEXT - n, "%s%s", n > 0 ? "; " : "", text);
    }
}

// ---- memory of the host that devices copy from -----------------------------------------------

#define HEAD 64 // in front of a block: who pinned it

void *tti_staging_alloc(tt_ctx *ctx, size_t bytes)
{
    tti_device *by = tti_first_gpu(ctx);
    char *block = by == NULL ? NULL : by->backend->streams->pinned(by, bytes + HEAD);
    if (block == NULL) {
        by = NULL;
        block = tti_alloc(ctx, bytes + HEAD);
    }
    if (block == NULL)
        return NULL;
    memcpy(block, &by, sizeof(by));
    return block + HEAD;
}

void tti_staging_free(tt_ctx *ctx, void *p)
{
    if (p == NULL)
        return;
    tti_device *by;
    char *block = (char *)p - HEAD;
    memcpy(&by, block, sizeof(by));
    if (by != NULL)
        by->backend->streams->unpin(by, block);
    else
        tti_free(ctx, block);
}
