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

static void times_of(const tti_fit *f, int device, tt_device_times *t, double *waiting_for)
{
    const tt_ctx *ctx = f->model->ctx;
    tti_spent spent = tti_clock_read(f->step->session, device, f->times->compute);
    *t = (tt_device_times){.seconds = seconds(f->times->compute + f->times->data),
                           .compute = seconds(spent.compute),
                           .communication = seconds(spent.communication),
                           .data = seconds(f->times->data),
                           .idle = seconds(spent.idle),
                           .waiting_for = waiting_for};
    for (int d = 0; d < ctx->top.n_devices; d++) {
        waiting_for[d] = spent.waiting == NULL ? 0 : seconds(spent.waiting[d]);
        t->waiting += waiting_for[d];
    }
    snprintf(t->name, sizeof(t->name), "%s", ctx->top.devices[device]->name);
}

// Times of a device and whom it waited for, as a process sends them: a row of PARTS + n doubles.
#define PARTS 6

static void put_row(const tt_device_times *t, double *row, int n)
{
    const double parts[PARTS] = {t->seconds, t->compute, t->communication,
                                 t->waiting, t->data,    t->idle};
    memcpy(row, parts, sizeof(parts));
    memcpy(row + PARTS, t->waiting_for, (size_t)n * sizeof(*row));
}

static void take_row(tt_device_times *t, double *waiting_for, const double *row, int n)
{
    t->seconds = row[0];
    t->compute = row[1];
    t->communication = row[2];
    t->waiting = row[3];
    t->data = row[4];
    t->idle = row[5];
    memcpy(waiting_for, row + PARTS, (size_t)n * sizeof(*row));
}

// Of the devices of one process: how many come before d in the order of all.
static int number_within(const tt_ctx *ctx, int d)
{
    int n = 0;
    while (d > n && ctx->top.devices[d - n - 1]->task == ctx->top.devices[d]->task)
        n++;
    return n;
}

// Every process has measured its own devices; all get those of all.
static tt_status gather(tt_ctx *ctx, tt_device_times *times, double *waiting_for)
{
    int n = ctx->top.n_devices, most = 0;
    if (ctx->top.n_tasks < 2)
        return TT_OK;
    for (int d = 0; d < n; d++)
        most = TTI_MAX(most, number_within(ctx, d) + 1);
    size_t row = (size_t)(PARTS + n), rows = (size_t)most;
    double *all = tti_calloc(ctx, rows * (size_t)(ctx->top.n_tasks + 1), row * sizeof(*all));
    if (all == NULL)
        return TT_ENOMEM;
    double *mine = all + rows * (size_t)ctx->top.n_tasks * row;
    for (int d = 0; d < n; d++)
        if (!ctx->top.devices[d]->is_away)
            put_row(&times[d], mine + (size_t)number_within(ctx, d) * row, n);
    tt_status st = tti_world_exchange(ctx->world, "times of devices", mine,
                                      rows * row * sizeof(*mine), all, 0);
    for (int d = 0; st == TT_OK && d < n; d++) {
        size_t at = (size_t)ctx->top.devices[d]->task * rows + (size_t)number_within(ctx, d);
        take_row(&times[d], waiting_for + (size_t)d * (size_t)n, all + at * row, n);
    }
    tti_free(ctx, all);
    return st;
}

tt_status tti_fit_tell_devices(tti_fit *f)
{
    tt_ctx *ctx = f->model->ctx;
    tti_step *s = f->step;
    size_t n = (size_t)ctx->top.n_devices;
    tti_free(ctx, s->device_times);
    s->device_times = tti_calloc(ctx, n, sizeof(*s->device_times) + n * sizeof(double));
    if (s->device_times == NULL)
        return TT_ENOMEM;
    double *waiting_for = (double *)(void *)(s->device_times + n);
    double most = -1;
    for (int d = 0; d < ctx->top.n_devices; d++)
        times_of(f, d, &s->device_times[d], waiting_for + (size_t)d * n);
    TT_TRY(gather(ctx, s->device_times, waiting_for));
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
