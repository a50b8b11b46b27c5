/*
 * fit_devices.c - what a fit knows of its devices: how each one spent its time.
 */
#include "base/ctx.h"
#include "device/device.h"
#include "net/world.h"
#include "run/run.h"
#include "train/fit.h"
#include <stdio.h>
#include <string.h>

static double seconds(int64_t ns)
{
    return (double)ns * 1e-9;
}

static tt_device_times times_of(const tti_fit *f, int device)
{
    const tt_ctx *ctx = f->model->ctx;
    tti_spent spent = tti_clock_read(f->step->session, device, f->times->compute);
    tt_device_times t = {.seconds = seconds(f->times->compute + f->times->data),
                         .compute = seconds(spent.compute),
                         .communication = seconds(spent.communication),
                         .data = seconds(f->times->data),
                         .idle = seconds(spent.idle)};
    for (int d = 0; d < ctx->top.n_devices; d++) {
        t.waiting_for[d] = seconds(spent.waiting[d]);
        t.waiting += t.waiting_for[d];
    }
    snprintf(t.name, sizeof(t.name), "%s", ctx->top.devices[device]->name);
    return t;
}

// Every process has measured its own devices; all get those of all.
static tt_status gather(tt_ctx *ctx, tt_device_times *times)
{
    if (ctx->top.n_tasks < 2)
        return TT_OK;
    size_t n = (size_t)ctx->top.n_devices;
    tt_device_times *all = tti_calloc(ctx, n * (size_t)ctx->top.n_tasks, sizeof(*all));
    if (all == NULL)
        return TT_ENOMEM;
    tt_status st =
        tti_world_exchange(ctx->world, "times of devices", times, n * sizeof(*times), all, 0);
    for (size_t d = 0; st == TT_OK && d < n; d++) {
        times[d] = all[(size_t)ctx->top.devices[d]->task * n + d];
        memcpy(times[d].name, ctx->top.devices[d]->name, sizeof(ctx->top.devices[d]->name));
    }
    tti_free(ctx, all);
    return st;
}

tt_status tti_fit_tell_devices(tti_fit *f)
{
    tt_ctx *ctx = f->model->ctx;
    tti_step *s = f->step;
    tti_free(ctx, s->device_times);
    s->device_times = tti_calloc(ctx, (size_t)ctx->top.n_devices, sizeof(*s->device_times));
    if (s->device_times == NULL)
        return TT_ENOMEM;
    double most = -1;
    for (int d = 0; d < ctx->top.n_devices; d++)
        s->device_times[d] = times_of(f, d);
    TT_TRY(gather(ctx, s->device_times));
    for (int d = 0; d < ctx->top.n_devices; d++) {
        const tt_device_times *t = &s->device_times[d];
        if (t->compute + t->communication > most) {
            most = t->compute + t->communication;
            s->report.slowest = d;
        }
    }
    if (ctx->top.n_devices == 1)
        s->report.slowest = -1;
    for (int d = 0; d < ctx->top.n_devices && ctx->top.n_devices > 1; d++) {
        const tt_device_times *t = &s->device_times[d];
        int longest = 0;
        for (int k = 1; k < ctx->top.n_devices; k++)
            longest = t->waiting_for[k] > t->waiting_for[longest] ? k : longest;
        tt_pair pairs[] = {
            {"name", 0, t->name},
            {"seconds", t->seconds, NULL},
            {"compute_seconds", t->compute, NULL},
            {"communication_seconds", t->communication, NULL},
            {"waiting_seconds", t->waiting, NULL},
            {"data_seconds", t->data, NULL},
            {"idle_seconds", t->idle, NULL},
            {"slowest", d == s->report.slowest, NULL},
            {"waits_for", 0, ctx->top.devices[longest]->name},
        };
        tti_emit_pairs(ctx, "device", pairs, TTI_COUNT(pairs) - (t->waiting <= 0));
    }
    return TT_OK;
}

tt_status tt_fit_device_times_sized(tt_model *m, int device, tt_device_times *out, size_t size)
{
    if (m == NULL)
        return TT_EINVAL;
    if (out == NULL)
        return TT_FAIL(m->ctx, TT_EINVAL, "device times: the room for them is NULL");
    if (m->step == NULL || m->step->device_times == NULL)
        return TT_FAIL(m->ctx, TT_EINVAL, "device times: the model has not been fitted");
    if (device < 0 || device >= m->ctx->top.n_devices)
        return TT_FAIL(m->ctx, TT_EINVAL, "device times: device %d is not between 0 and %d", device,
                       m->ctx->top.n_devices - 1);
    tti_out_copy(out, size, &m->step->device_times[device], sizeof(*out));
    return TT_OK;
}
