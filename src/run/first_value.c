/*
 * first_value.c - the value that a new variable starts with: drawn where it will be if its device
 * can, else in the host's memory.
 */
#include "comm/comm.h"
#include "op/init.h"
#include "op/random.h"
#include "run/store.h"
#include <string.h>

// Made where they will be, if the device can.
static tt_status draw_there(tti_variable *v, const tt_node *var, tti_device *dev,
                            const tt_kernel *kernel, const tti_init_attr *attr, void *data)
{
    int64_t count = tt_shape_count(&v->shape);
    tt_arg out = {.data = data,
                  .dtype = v->dtype,
                  .shape = v->shape,
                  .count = count,
                  .rows = 1,
                  .cols = count,
                  .open = -1};
    tt_launch l = {.ctx = dev->ctx,
                   .node = var,
                   .attr = attr,
                   .out = &out,
                   .n_out = 1,
                   .end = count,
                   .n_threads = 1,
                   .device = dev->state,
                   .stream = dev->backend->streams->stream(dev)};
    TT_TRY(count > 0 ? kernel->fn[0](&l) : TT_OK);
    return dev->backend->streams->sync(dev, tti_deadline(dev->ctx->deadline_ms));
}

#define DRAW_CHUNK 65536 // elements that a thread takes at once, whole groups of the generator

typedef struct drawing {
    const tti_init_attr *attr;
    tt_dtype dtype;
    tti_init_fn *fill;
    char *out;
} drawing;

static void draw_elements(const void *arg, int64_t begin, int64_t end)
{
    const drawing *d = arg;
    const tti_init_attr *a = d->attr;
    d->fill(&a->init, &a->shape, d->dtype, a->seed, a->key, begin, end,
            d->out + (size_t)begin * tt_dtype_bytes(d->dtype));
}

// In the host's memory, by the threads of all devices: elements do not depend on each other.
static tt_status draw_here(tt_ctx *ctx, const tti_variable *v, const tti_init_attr *attr, void *out)
{
    drawing d = {attr, v->dtype, tti_init_kernel(ctx->top.isa), out};
    int64_t count = tt_shape_count(&v->shape);
    bool all = true;
    TT_TRY(tti_init_check(ctx, &attr->init, v->dtype));
    for (int i = 0; i < ctx->top.n_devices; i++)
        all &= ctx->top.devices[i]->is_away || !tti_has_streams(ctx->top.devices[i]);
    if (!all) { // threads of GPUs submit work, others' are few
        unsigned saved = tti_fp_enter();
        draw_elements(&d, 0, count);
        tti_fp_leave(saved);
        return TT_OK;
    }
    return tti_comm_spread(ctx, &(tti_work){.name = v->name,
                                            .fn = draw_elements,
                                            .arg = &d,
                                            .units = count,
                                            .chunk = DRAW_CHUNK,
                                            .bytes = (int64_t)v->bytes,
                                            .deadline_ms = 10 * ctx->deadline_ms});
}

tt_status tti_variable_first(tti_variable *v, const tt_node *var, tti_device *dev)
{
    const tti_variable_attr *a = var->attr;
    tt_ctx *ctx = dev->ctx;
    if (dev->is_away && tti_has_streams(dev))
        dev = tti_first_gpu(ctx);
    const tt_kernel *kernel = tti_has_streams(dev)
                                  ? dev->backend->kernel(dev, tti_kernel_of_form(TTI_KERNEL_INIT))
                                  : NULL;
    bool there = kernel != NULL && (kernel->types >> v->dtype & 1u) != 0;
    bool job = ctx->top.n_tasks > 1;
    tti_shard like = {
        .bytes = v->bytes, .task = job ? TTI_EVERY_TASK : 0, .dev = there ? dev : NULL};
    memcpy(like.device, dev->name, sizeof(dev->name));
    tti_shard *s = tti_shard_add(v, &like);
    if (s == NULL)
        return TT_FAIL(ctx, TT_ENOMEM, "variable '%s': out of memory", v->name);
    TT_TRY(tti_shard_alloc(ctx, v, s));
    s->version = atomic_load(&v->version);
    tti_init_attr attr = {.init = {(tt_init_kind)a->init, a->a, a->b},
                          .shape = a->shape,
                          .seed = ctx->seed,
                          .key = var->key};
    TT_TRY(there ? draw_there(v, var, dev, kernel, &attr, s->data)
                 : draw_here(ctx, v, &attr, s->data));
    if (!job) // else once plans say whose it is
        tti_count_variable(ctx, dev->name, (int64_t)v->bytes);
    return TT_OK;
}
