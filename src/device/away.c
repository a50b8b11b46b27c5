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

// Two processes read each other's memory where both see it so.
static void see_near(tti_device *d, const tti_roll *rolls, int r, int n_tasks)
{
    d->near = (tti_set){d->near_words, n_tasks};
    for (int o = 0; o < n_tasks; o++) {
        const tti_set mine = {(uint64_t *)rolls[r].near, n_tasks};
        const tti_set its = {(uint64_t *)rolls[o].near, n_tasks};
        if (tti_set_has(&mine, o) && tti_set_has(&its, r))
            tti_set_add(&d->near, o);
    }
}

// Who the processes are, and how many devices they have together.
static tt_status read_rolls(tt_ctx *ctx, const tti_roll *rolls, tt_device_name *names,
                            bool *has_jobs, int *total)
{
    for (int r = 0; r < ctx->top.n_tasks; r++) {
        TT_TRY(check_roll(ctx, &rolls[r]));
        TT_TRY(tt_device_parse(ctx, rolls[r].name, &names[r]));
        *has_jobs |= strcmp(names[r].job, names[0].job) != 0;
        *total += rolls[r].n;
        if (rolls[r].isa < ctx->top.isa)
            ctx->top.isa = rolls[r].isa; // kernels are prepared alike everywhere
    }
    if (*total > TTI_MAX_DEVICES)
        return TT_FAIL(ctx, TT_EINVAL,
                       "the job's %d processes have %d devices; at most %d are allowed",
                       ctx->top.n_tasks, *total, TTI_MAX_DEVICES);
    return TT_OK;
}

// The devices of all into joined, which has room; those of others are made.
static tt_status list_all(tt_ctx *ctx, const tti_roll *rolls, const tt_device_name *names,
                          bool has_jobs, tti_topology *joined)
{
    int n = 0;
    for (int r = 0; r < ctx->top.n_tasks; r++) {
        for (int i = 0; i < rolls[r].n; i++) {
            tti_device *d =
                r == ctx->top.task ? ctx->top.devices[i] : make_away(ctx, &rolls[r].devices[i]);
            if (d == NULL) {
                for (int k = 0; k < n; k++)
                    if (joined->devices[k]->is_away)
                        tti_free(ctx, joined->devices[k]);
                return TT_ENOMEM;
            }
            d->index = n;
            d->task = r;
            see_near(d, rolls, r, ctx->top.n_tasks);
            d->full = names[r];
            d->full.replica = 0;
            d->full.index = rolls[r].devices[i].index;
            snprintf(d->full.type, sizeof(d->full.type), "cpu");
            name_device(d, has_jobs);
            joined->devices[n++] = d;
        }
    }
    return TT_OK;
}

tt_status tti_devices_join(tt_ctx *ctx, const tti_roll *rolls)
{
    tt_device_name names[TT_MAX_TASKS];
    bool has_jobs = false;
    int total = 0;
    TTI_ASSERT(ctx->top.n_devices == rolls[ctx->top.task].n);
    TT_TRY(read_rolls(ctx, rolls, names, &has_jobs, &total));
    tti_topology joined = ctx->top;
    TT_TRY(tti_topology_room(ctx, &joined, total));
    tt_status st = list_all(ctx, rolls, names, has_jobs, &joined);
    tti_free(ctx, st == TT_OK ? ctx->top.devices : joined.devices);
    if (st == TT_OK)
        ctx->top = joined;
    return st;
}
