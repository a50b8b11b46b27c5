/*
 * variables.c - values of variables in and out of a store, beside runs.
 */
#include "net/world.h"
#include "run/store.h"
#include <string.h>
#include <time.h>

tt_status tti_variable_await(tti_variable *v, tt_ctx *ctx, int64_t deadline)
{
    if (tti_now_ns() > deadline)
        return TT_FAIL(ctx, TT_ETIMEOUT,
                       "variable '%s' lies on a device of another context, which has not used the "
                       "store or closed for %lld ms: only its own thread can copy it from there",
                       v->name, (long long)ctx->deadline_ms);
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return TT_OK;
}

// A hold under which ctx can read all of the value.
static tt_status hold_readable(tti_variable *v, tt_ctx *ctx, tti_hold *h)
{
    int64_t deadline = tti_deadline(ctx->deadline_ms);
    for (;;) {
        TT_TRY(tti_store_hold(v->store, ctx, false, h));
        if (v->ctx != NULL || tti_variable_covers(v, ctx, false))
            return TT_OK;
        tti_store_let_go(v->store, h);
        TT_TRY(tti_variable_await(v, ctx, deadline));
    }
}

static bool is_own(const tti_variable *v, const tti_shard *s, const tt_ctx *ctx)
{
    return v->ctx == NULL || s->task == TTI_EVERY_TASK || s->task == ctx->top.task;
}

// To every shard that this thread can reach; kernels of GPUs flush what they read, others not.
static tt_status write_all(tti_variable *v, tt_ctx *ctx, const void *data)
{
    size_t item = TTI_MAX(tt_dtype_bytes(v->dtype), (size_t)1);
    for (tti_shard *s = v->shards; s != NULL; s = s->next) {
        bool reached = s->dev == NULL || s->dev->ctx == ctx;
        if (!reached || s->in != s || !is_own(v, s, ctx))
            continue;
        const char *from = (const char *)data + s->begin;
        if (s->data != from)
            TT_TRY(tti_device_copy(s->dev, s->data, NULL, from, s->bytes));
        if (s->dev == NULL)
            tti_flush(v->dtype, s->data, (int64_t)(s->bytes / item));
    }
    int64_t version = atomic_load(&v->version) + 1;
    for (tti_shard *s = v->shards; s != NULL; s = s->next)
        s->version = s->dev == NULL || s->dev->ctx == ctx ? version : s->version;
    atomic_store(&v->version, version);
    return TT_OK;
}

// What another context's device has of it cannot be written: the host's memory has it then.
static tt_status have_host(tti_variable *v, tt_ctx *ctx)
{
    tti_shard like = {.bytes = v->bytes, .device = "cpu:0"};
    for (const tti_shard *s = v->shards; s != NULL; s = s->next)
        if (s->in == s && tti_shard_is_whole(v, s) && (s->dev == NULL || s->dev->ctx == ctx))
            return TT_OK;
    bool all = true;
    for (const tti_shard *s = v->shards; s != NULL; s = s->next)
        all &= s->dev == NULL || s->dev->ctx == ctx;
    if (all || v->ctx != NULL)
        return TT_OK; // they cover it
    tti_shard *host = tti_shard_add(v, &like);
    tt_status st = host == NULL ? TT_FAIL(ctx, TT_ENOMEM, "variable '%s': out of memory", v->name)
                                : tti_shard_alloc(ctx, v, host);
    if (st != TT_OK && host != NULL)
        tti_shard_remove(v, host);
    return st;
}

tt_status tti_variable_write(tti_variable *v, tt_ctx *ctx, const void *data)
{
    tti_hold h;
    TT_TRY(tti_store_hold(v->store, ctx, true, &h));
    bool bound = false;
    for (const tti_shard *s = v->shards; s != NULL; s = s->next)
        bound |= s->is_bound;
    tt_status st = have_host(v, ctx);
    if (st == TT_OK && v->ctx != NULL && bound) // others may be in a run that reads this process's
        st = tti_world_exchange(ctx->world, "a variable is set", NULL, 0, NULL, 0);
    if (st == TT_OK)
        st = write_all(v, ctx, data);
    tti_store_let_go(v->store, &h);
    return st == TT_OK ? tti_store_publish(v->store, ctx) : st;
}

tt_status tti_variable_read(tti_variable *v, tt_ctx *ctx, void *out)
{
    tti_hold h;
    TT_TRY(tti_store_publish(v->store, ctx));
    TT_TRY(hold_readable(v, ctx, &h));
    tt_status st = tti_variable_fetch(v, ctx, out);
    tti_store_let_go(v->store, &h);
    return st;
}

// A whole and fresh shard in the host's memory of a process; NULL: it has none.
static const tti_shard *whole_of(const tti_variable *v, int task)
{
    for (const tti_shard *s = v->shards; s != NULL; s = s->next)
        if (s->dev == NULL && (s->task == task || s->task == TTI_EVERY_TASK) &&
            tti_shard_is_whole(v, s) && tti_shard_is_fresh(v, s))
            return s;
    return NULL;
}

const void *tti_variable_here(tti_variable *v)
{
    const tt_ctx *job = v->ctx;
    const tti_shard *own = whole_of(v, job == NULL ? 0 : job->top.task);
    for (int t = 0; job != NULL && own != NULL && t < job->top.n_tasks; t++)
        own = whole_of(v, t) == NULL ? NULL : own;
    return own == NULL ? NULL : own->data;
}

tt_status tti_variable_look(tt_ctx *ctx, tti_variable *v, const void **out, void **room)
{
    *room = NULL;
    *out = tti_variable_here(v);
    if (*out != NULL)
        return TT_OK;
    *room = tti_alloc(ctx, v->bytes + 1);
    if (*room == NULL)
        return TT_ENOMEM;
    *out = *room;
    tt_status st = tti_variable_read(v, ctx, *room);
    if (st != TT_OK) {
        tti_free(ctx, *room);
        *room = NULL;
    }
    return st;
}
