/*
 * speed.c - how fast each device is, for share: auto. All devices work at once, as they will in
 * training, on a loop that stays in registers: what differs is cores, their clocks and who else
 * uses them. Shares of lanes change no bit, so neither does what is measured here.
 */
#include "net/world.h"
#include "run/run.h"

#define WINDOW_NS 10000000 // of the measurement, after as much to wake up and warm up
#define UNITS     64       // of a round, so that a team shares it evenly
#define LOOPS     500      // of a unit: some microseconds

typedef struct probe {
    tti_device *device;
    tt_status status;
    double rounds; // a nanosecond
} probe;

static tt_status work(const tt_launch *l)
{
    double x[4] = {1, 2, 3, 4};
    for (int64_t u = l->begin; u < l->end; u++)
        for (int i = 0; i < LOOPS; i++)
            for (int k = 0; k < 4; k++)
                x[k] = x[k] * 0.999 + 0.001;
    volatile double sink = x[0] + x[1] + x[2] + x[3]; // the loop must not vanish
    (void)sink;
    return TT_OK;
}

static void probe_task(void *arg)
{
    probe *p = arg;
    tt_launch launch = {.ctx = p->device->ctx};
    int64_t begin = tti_now_ns(), from = begin + WINDOW_NS, now = begin;
    double rounds = 0;
    while (now - from < WINDOW_NS && p->status == TT_OK) {
        p->status = tti_team_run(p->device->team, work, &launch, 0, UNITS, 1, 0);
        now = tti_now_ns();
        if (now < from)
            begin = now; // of the last round that does not count
        else
            rounds++;
    }
    p->rounds = rounds / (double)TTI_MAX(now - begin, 1);
}

tt_status tti_by_device(tt_ctx *ctx, double *values)
{
    int n = ctx->top.n_devices;
    if (ctx->top.n_tasks < 2)
        return TT_OK;
    double *all = tti_calloc(ctx, (size_t)ctx->top.n_tasks * (size_t)n, sizeof(*all));
    if (all == NULL)
        return TT_ENOMEM;
    tt_status st =
        tti_world_exchange(ctx->world, "times", values, sizeof(*values) * (size_t)n, all, 0);
    for (int d = 0; st == TT_OK && d < n; d++)
        values[d] = all[ctx->top.devices[d]->task * n + d];
    tti_free(ctx, all);
    return st;
}

// probes has room for one per device.
static tt_status probe_all(tt_ctx *ctx, probe *probes, double *speed)
{
    int n = 0; // of the context's devices have been looked at
    tt_status st = TT_OK;
    for (; n < ctx->top.n_devices && st == TT_OK; n++) {
        tti_device *d = ctx->top.devices[n];
        probes[n] = (probe){.device = d};
        if (!d->is_away)
            st = d->backend->submit(d, (tti_task){probe_task, &probes[n]});
    }
    for (int i = 0; i < n; i++) { // the device's own flag: a worker still looks at it after
        tti_device *d = ctx->top.devices[i];
        while (!d->is_away && tti_flag_wait(&d->n_done, d->n_submitted, 0, TTI_FOREVER) != TT_OK)
            ;
    }
    for (int d = 0; d < n && st == TT_OK; d++) {
        st = probes[d].status;
        speed[d] = TTI_MAX(probes[d].rounds, 1e-12);
    }
    return st == TT_OK ? tti_by_device(ctx, speed) : st;
}

tt_status tti_measure_speeds(tt_ctx *ctx, double *speed)
{
    probe *probes = tti_calloc(ctx, (size_t)ctx->top.n_devices, sizeof(*probes));
    if (probes == NULL)
        return TT_ENOMEM;
    tt_status st = probe_all(ctx, probes, speed);
    tti_free(ctx, probes);
    return st;
}
