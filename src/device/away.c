/*
 * away.c - devices of the job's other processes. They stand in the context's list, in the order of
 * the ranks, so that all processes make the same plans; only their own process runs anything there.
 */
#include "device/device.h"
#include <stdio.h>
#include <string.h>

void tti_devices_tell(const tt_ctx *ctx, tti_roll *out)
{
    out->isa = ctx->top.isa;
    out->n = ctx->top.n_devices;
    for (int i = 0; i < ctx->top.n_devices; i++) {
        const tti_device *d = ctx->top.devices[i];
        tti_told *t = &out->devices[i];
        *t = (tti_told){.index = d->full.index,
                        .card = d->card,
                        .n_threads = d->n_threads,
                        .is_crowded = d->is_crowded,
                        .limit = d->limit};
        memcpy(t->type, d->full.type, sizeof(d->full.type));
        memcpy(t->physical, d->physical, sizeof(d->physical));
    }
}

// "task:1/cpu:0"; where jobs have several names, "chief:0/cpu:0".
static void name_device(tti_device *d, bool has_jobs)
{
    int n = has_jobs ? snprintf(d->name, sizeof(d->name), "%.10s:%d/", d->full.job, d->full.task)
                     : snprintf(d->name, sizeof(d->name), "task:%d/", d->full.task);
    snprintf(d->name + n, sizeof(d->name) - (size_t)n, "%.4s:%d", d->full.type, d->full.index);
}

static tti_device *make_away(tt_ctx *ctx, const tti_told *t)
{
    tti_device *d = tti_calloc(ctx, 1, sizeof(*d));
    if (d == NULL)
        return NULL;
    *d = (tti_device){.ctx = ctx,
                      .backend = &tti_backend_cpu,
                      .is_away = true,
                      .card = t->card,
                      .n_threads = t->n_threads,
                      .is_crowded = t->is_crowded,
                      .limit = (size_t)t->limit};
    snprintf(d->physical, sizeof(d->physical), "%.31s", t->physical);
    return d;
}

static tt_status check_roll(tt_ctx *ctx, const tti_roll *r)
{
    if (r->n < 1 || r->n > TTI_MAX_DEVICES)
        return TT_FAIL(ctx, TT_EPEER, "%s reports %d devices", r->name, r->n);
    for (int i = 0; i < r->n; i++)
        if (strncmp(r->devices[i].type, "cpu", sizeof(r->devices[i].type)) != 0)
            return TT_FAIL(ctx, TT_EUNSUPPORTED,
                           "%s has %.15s:%d: a job with several processes can use CPUs only, so "
                           "far; one process can use several GPUs",
                           r->name, r->devices[i].type, r->devices[i].index);
    return TT_OK;
}

tt_status tti_devices_join(tt_ctx *ctx, const tti_roll *rolls)
{
    tti_device *own[TTI_MAX_DEVICES], *all[TTI_MAX_DEVICES];
    tt_device_name names[TTI_MAX_DEVICES];
    int n = 0, total = 0, n_own = ctx->top.n_devices;
    bool has_jobs = false;
    for (int r = 0; r < ctx->top.n_tasks; r++) {
        TT_TRY(check_roll(ctx, &rolls[r]));
        TT_TRY(tt_device_parse(ctx, rolls[r].name, &names[r]));
        has_jobs |= strcmp(names[r].job, names[0].job) != 0;
        total += rolls[r].n;
        if (rolls[r].isa < ctx->top.isa)
            ctx->top.isa = rolls[r].isa; // kernels are prepared alike everywhere
    }
    if (total > TTI_MAX_DEVICES)
        return TT_FAIL(ctx, TT_EINVAL,
                       "the job's %d processes have %d devices; at most %d are allowed",
                       ctx->top.n_tasks, total, TTI_MAX_DEVICES);
    memcpy(own, ctx->top.devices, sizeof(own));
    for (int r = 0; r < ctx->top.n_tasks; r++) {
        for (int i = 0; i < rolls[r].n; i++) {
            tti_device *d = r == ctx->top.task ? own[i] : make_away(ctx, &rolls[r].devices[i]);
            if (d == NULL) {
                for (int k = 0; k < n; k++)
                    if (all[k]->is_away)
                        tti_free(ctx, all[k]);
                return TT_ENOMEM;
            }
            d->index = n;
            d->task = r;
            for (int o = 0; o < ctx->top.n_tasks; o++) // both must see it so
                d->near |= (rolls[r].near >> o & rolls[o].near >> r & 1u) << o;
            d->full = names[r];
            d->full.replica = 0;
            d->full.index = rolls[r].devices[i].index;
            snprintf(d->full.type, sizeof(d->full.type), "cpu");
            name_device(d, has_jobs);
            all[n++] = d;
        }
    }
    TTI_ASSERT(n_own == rolls[ctx->top.task].n);
    (void)n_own;
    memcpy(ctx->top.devices, all, sizeof(*all) * (size_t)n);
    ctx->top.n_devices = n;
    return TT_OK;
}
