/*
 * open.c - opening and closing a context.
 */
#include "net/world.h"
#include "run/run.h"
#include "run/testing.h"
#include "strategy/strategy.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEADLINE_MS 60000
#define LEARN_MS    20000 // the shortest that is learned: a disk or a network may pause for long
#define MOST_MS     (INT64_C(366) * 86400 * 1000)

static tt_status read_deadline(tt_ctx *ctx, int64_t ms)
{
    const char *given = tti_env("TUTTI_DEADLINE_MS");
    ctx->deadline_ms = ms != 0 ? ms : DEADLINE_MS;
    ctx->learn_ms = ms != 0 ? 0 : LEARN_MS;
    if (ms == 0 && given != NULL && given[0] != '\0') {
        char *end;
        ctx->learn_ms = 0;
        errno = 0;
        ctx->deadline_ms = strtoll(given, &end, 10);
        if (*end != '\0' || errno != 0 || ctx->deadline_ms < 1 || ctx->deadline_ms > MOST_MS)
            return TT_FAIL(
                ctx, TT_EINVAL,
                "TUTTI_DEADLINE_MS is '%.64s'; it must be a number of milliseconds from 1 to %lld",
                given, (long long)MOST_MS);
    }
    if (ctx->deadline_ms < 1 || ctx->deadline_ms > MOST_MS)
        return TT_FAIL(ctx, TT_EINVAL, "deadline_ms is %lld; 1 to %lld are allowed", (long long)ms,
                       (long long)MOST_MS);
    return TT_OK;
}

// The caller's text may go after the call.
static tt_status keep_share(tt_ctx *ctx)
{
    const char *share = ctx->top.spread.share;
    if (share == NULL)
        return TT_OK;
    if (strlen(share) >= sizeof(ctx->share))
        return TT_FAIL(ctx, TT_EINVAL, "strategy %s: share '%.40s...' is too long",
                       ctx->top.strategy->name, share);
    strcpy(ctx->share, share);
    ctx->top.spread.share = ctx->share;
    return TT_OK;
}

static tt_status open_settings(tt_ctx *ctx, const tt_open_opts *o)
{
    ctx->seed = o->seed;
    ctx->top.soft = o->soft;
    ctx->top.lanes = o->lanes == 0 ? 8 : o->lanes;
    ctx->n_threads = o->threads == 0 ? tti_cores() : o->threads;
    if (ctx->top.lanes < 1 || ctx->top.lanes > TT_MAX_LANES)
        return TT_FAIL(ctx, TT_EINVAL, "lanes is %d; 1 to %d are allowed", o->lanes, TT_MAX_LANES);
    TT_TRY(read_deadline(ctx, o->deadline_ms));
    if (ctx->n_threads < 1 || ctx->n_threads > 4096)
        return TT_FAIL(ctx, TT_EINVAL, "threads is %d; 1 to 4096 are allowed", o->threads);
    tt_spread spread;
    TT_TRY(TTI_OPTS_PART(ctx, "open: spread", o->spread, &spread));
    TT_TRY(tti_strategy_choose(ctx, o->strategy, &spread, &ctx->top));
    TT_TRY(keep_share(ctx));
    const char *isa = o->isa != NULL ? o->isa : tti_env("TUTTI_ISA");
    ctx->top.isa = tti_best_isa();
    if (isa != NULL && isa[0] != 0)
        TT_TRY(tti_find_isa(ctx, isa, &ctx->top.isa));
    const char *capture = tti_env("TUTTI_CAPTURE"), *check = tti_env("TUTTI_CUDA_CHECK");
    ctx->no_capture = (capture != NULL && strcmp(capture, "off") == 0) ||
                      (check != NULL && strcmp(check, "0") != 0); // looks after every kernel
    ctx->store = o->store != NULL ? o->store : tt_store_new();
    if (ctx->store == NULL)
        return TT_FAIL(ctx, TT_ENOMEM, "store: out of memory");
    tti_store_join(ctx->store);
    if (o->store == NULL)
        tt_store_release(ctx->store); // the context alone has it
    TT_TRY(tti_fault_open(ctx));
    ctx->top.host_memory = tti_machine_memory(&ctx->top.is_host_group);
    if (o->tasks == NULL) {
        TT_TRY(tti_devices_open(ctx, o->devices));
    } else {
        tt_tasks tasks;
        TT_TRY(TTI_OPTS_PART(ctx, "open: tasks", o->tasks, &tasks));
        TT_TRY(tti_world_open(ctx, &tasks, o->devices, &ctx->world));
        TT_TRY(tti_open_tasks(ctx, o));
    }
    for (int d = 0; d < ctx->top.n_devices; d++)
        ctx->top.limit[d] = ctx->top.devices[d]->limit;
    const char *share = ctx->top.spread.share;
    bool is_measured = share != NULL && strcmp(share, "auto") == 0 && ctx->top.n_devices > 1;
    return is_measured ? tti_measure_speeds(ctx, ctx->top.speed) : TT_OK;
}

tt_ctx *tt_open_with(const tt_open_opts *opts)
{
    return tti_open_failing(opts, 0);
}

tt_ctx *tti_open_failing(const tt_open_opts *opts, int64_t n)
{
    if (opts == NULL)
        return NULL;
    tt_ctx *ctx = calloc(1, sizeof(*ctx));
    if (ctx == NULL)
        return NULL;
    tti_ctx_init(ctx);
    tti_fork_watch(ctx);
    tt_open_opts o;
    if (TTI_OPTS_COPY(ctx, "open", opts, &o) != TT_OK)
        return ctx;
    ctx->on_event = o.on_event;
    ctx->user = o.user;
    ctx->level = o.level == TT_LOG_DEFAULT ? TT_WARN : o.level;
    tti_fail_alloc_at(ctx, n);
    (void)open_settings(ctx, &o);
    return ctx;
}

// What runs left on devices with streams.
static void drop_streams(tt_ctx *ctx)
{
    for (int i = 0; i < ctx->top.n_devices; i++) {
        tti_device *d = ctx->top.devices[i];
        if (!tti_has_streams(d))
            continue;
        void *events[] = {d->border, d->origin, d->joined};
        for (int k = 0; k < TTI_COUNT(events); k++)
            if (events[k] != NULL)
                d->backend->streams->drop_event(d, events[k]);
        d->border = d->origin = d->joined = NULL;
    }
}

tt_status tt_close(tt_ctx *ctx)
{
    if (ctx == NULL)
        return TT_EINVAL;
    if (tti_is_forked(ctx)) // it is the parent's to close, with its threads and connections
        return TT_EINVAL;
    while (ctx->owned != NULL) { // graphs, and with them sessions and plans
        struct tti_hooks *h = ctx->owned;
        ctx->owned = h->next;
        h->free_fn(h->owner);
    }
    if (ctx->store != NULL)
        tti_store_leave(ctx->store, ctx);
    for (int64_t i = 0; i < ctx->n_stores; i++)
        tti_store_leave(ctx->stores[i], ctx);
    tti_world_close(ctx->world);
    drop_streams(ctx);
    tti_devices_close(ctx);
    tt_store_release(ctx->store);
    for (int64_t i = 0; i < ctx->n_stores; i++)
        tt_store_release(ctx->stores[i]);
    tti_free(ctx, ctx->stores);
    tti_free(ctx, ctx->fault);
    tti_free(ctx, (void *)ctx->user_ops.at);
    tti_free(ctx, (void *)ctx->user_sources.at);
    int64_t blocks = atomic_load(&ctx->alloc_blocks);
    if (blocks != 0)
        (void)TT_FAIL(ctx, TT_ENOMEM, "close: %lld blocks of %lld bytes were not freed",
                      (long long)blocks, (long long)atomic_load(&ctx->alloc_bytes));
    tt_status st = tt_status_of(ctx);
    tti_fork_unwatch(ctx);
    tti_ctx_deinit(ctx);
    free(ctx);
    return st;
}

void tt_request_stop(tt_ctx *ctx)
{
    if (ctx != NULL)
        atomic_store(&ctx->stop, 1);
}
