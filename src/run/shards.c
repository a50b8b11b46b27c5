/*
 * shards.c - the shards of one variable: which are fresh, and how the others get the value.
 *
 * A piece may lie in the memory of a larger shard of the same address space (in): what is written
 * to it is written there. So the bytes at a place of some memory are fresh if any fresh shard in
 * that memory has the place in its range.
 */
#include "net/world.h"
#include "run/store.h"
#include <string.h>

void tti_count_variable(tt_ctx *ctx, const char *device, int64_t bytes)
{
    for (int i = 0; ctx != NULL && i < ctx->top.n_devices; i++) {
        if (strcmp(ctx->top.devices[i]->name, device) != 0)
            continue;
        atomic_fetch_add(&ctx->top.devices[i]->variables, (size_t)bytes);
        atomic_fetch_add(&ctx->top.devices[i]->used, (size_t)bytes);
    }
}

// ---- the list --------------------------------------------------------------------------------

tti_shard *tti_shard_add(tti_variable *v, const tti_shard *like)
{
    tti_shard *s = tti_calloc(NULL, 1, sizeof(*s));
    if (s == NULL)
        return NULL;
    *s = *like;
    s->in = like->in != NULL ? like->in : s;
    s->version = -1;
    s->next = NULL;
    tti_shard **end = &v->shards;
    while (*end != NULL)
        end = &(*end)->next;
    *end = s;
    return s;
}

void tti_shard_remove(tti_variable *v, tti_shard *s)
{
    tti_shard **at = &v->shards;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    if (s->in == s && !s->is_mapped && s->data != NULL) {
        if (s->dev != NULL)
            s->dev->backend->free(s->dev, s->data, s->bytes);
        else
            tti_host_free(NULL, s->data);
    }
    tti_free(NULL, s);
}

void tti_variable_drop(tti_variable *v)
{
    while (v->shards != NULL)
        tti_shard_remove(v, v->shards);
}

tt_status tti_shard_alloc(tt_ctx *ctx, const tti_variable *v, tti_shard *s)
{
    if (s->dev != NULL)
        return s->dev->backend->alloc(s->dev, s->bytes, &s->data);
    s->data = tti_host_alloc(NULL, s->bytes);
    if (s->data == NULL)
        return TT_FAIL(ctx, TT_ENOMEM, "variable '%s': out of memory for %zu bytes on %s", v->name,
                       s->bytes, s->device);
    return TT_OK;
}

bool tti_shard_is_whole(const tti_variable *v, const tti_shard *s)
{
    return s->begin == 0 && s->bytes == v->bytes;
}

tti_shard *tti_shard_find(const tti_variable *v, const tti_want *w)
{
    const tti_device *dev = tti_has_streams(w->dev) ? w->dev : NULL;
    for (tti_shard *s = v->shards; s != NULL; s = s->next)
        if (s->begin == w->begin && s->bytes == w->bytes && s->dev == dev &&
            s->task != TTI_EVERY_TASK && strcmp(s->device, w->dev->name) == 0)
            return s;
    return NULL;
}

// ---- what is fresh ---------------------------------------------------------------------------

static bool has(const tti_shard *s, size_t at)
{
    return s->begin <= at && at < s->begin + s->bytes;
}

/*
 * Up to where the bytes from at on are fresh in the memory of a shard; 0: they are not. What is
 * only just being filled counts if asked for.
 */
static size_t fresh_until(const tti_variable *v, const tti_shard *memory, size_t at, bool filled)
{
    size_t until = 0;
    int64_t version = atomic_load(&v->version);
    for (const tti_shard *s = v->shards; s != NULL; s = s->next)
        if (s->in == memory && s->version == version && has(s, at) && (filled || !s->is_filled))
            until = TTI_MAX(until, s->begin + s->bytes);
    return until;
}

bool tti_shard_is_fresh(const tti_variable *v, const tti_shard *s)
{
    if (s->version == atomic_load(&v->version))
        return true;
    size_t at = s->begin, end = s->begin + s->bytes;
    while (at < end) {
        at = fresh_until(v, s->in, at, true);
        if (at == 0)
            return false;
    }
    return true;
}

// Can a thread of ctx reach this memory? That of another context's device is its own thread's.
static bool is_usable(const tti_shard *s, const tt_ctx *ctx)
{
    return s->dev == NULL || s->dev->ctx == ctx;
}

bool tti_variable_covers(const tti_variable *v, const tt_ctx *ctx, bool in_host)
{
    size_t at = 0;
    while (at < v->bytes) {
        size_t until = 0;
        for (const tti_shard *m = v->shards; m != NULL; m = m->next)
            if (m->in == m && has(m, at) && (in_host ? m->dev == NULL : is_usable(m, ctx)))
                until = TTI_MAX(until, fresh_until(v, m, at, true));
        if (until == 0)
            return false;
        at = until;
    }
    return true;
}

// ---- filling ---------------------------------------------------------------------------------

/*
 * Where bytes go: a shard, or memory of the caller. Of several processes all walk through all
 * ranges twice: first they send theirs, then they receive and copy, so that nobody waits for a
 * sender that waits itself.
 */
typedef struct filling {
    tti_variable *v;
    tt_ctx *ctx;
    int self; // this process
    bool sends, copies;
    tti_message message;
} filling;

// The memory from which task gets the bytes at a place: its own if that is fresh.
static const tti_shard *source_of(const filling *f, const tti_shard *to, size_t at, size_t *until)
{
    const tti_shard *best = NULL;
    int best_rank = 0;
    for (const tti_shard *m = f->v->shards; m != NULL; m = m->next) {
        if (m->in != m || m == to || !has(m, at) || !is_usable(m, f->ctx))
            continue;
        bool same_task = m->task == to->task || m->task == TTI_EVERY_TASK;
        int rank = !same_task ? 1 : m->dev != to->dev ? 2 : 3;
        size_t end = rank > best_rank ? fresh_until(f->v, m, at, same_task) : 0;
        if (end > 0) {
            best = m;
            best_rank = rank;
            *until = end;
        }
    }
    return best;
}

static tt_status failed(const filling *f, tt_status st, int rank)
{
    if (st != TT_ETIMEOUT)
        return st;
    return tti_world_stuck(f->ctx->world, rank, f->v->name, f->ctx->deadline_ms);
}

// Memory of GPUs goes between processes by way of the host's.
static tt_status send_bytes(filling *f, const tti_shard *from, const tti_shard *to, const char *src)
{
    size_t n = f->message.bytes;
    char *room = from->dev == NULL ? NULL : tti_alloc(f->ctx, n + 1);
    if (from->dev != NULL && room == NULL)
        return TT_ENOMEM;
    tt_status st = room == NULL ? TT_OK : tti_device_copy(NULL, room, from->dev, src, n);
    if (st == TT_OK)
        st = tti_world_send(f->ctx->world, to->task, &f->message, room != NULL ? room : src,
                            f->ctx->deadline_ms);
    tti_free(f->ctx, room);
    return failed(f, st, to->task);
}

static tt_status receive_bytes(filling *f, const tti_shard *from, const tti_shard *to, char *dst)
{
    size_t n = f->message.bytes;
    char *room = to->dev == NULL ? NULL : tti_alloc(f->ctx, n + 1);
    if (to->dev != NULL && room == NULL)
        return TT_ENOMEM;
    tt_status st = tti_world_receive(f->ctx->world, from->task, &f->message,
                                     room != NULL ? room : dst, f->ctx->deadline_ms);
    if (st == TT_OK && room != NULL)
        st = tti_device_copy(to->dev, dst, NULL, room, n);
    tti_free(f->ctx, room);
    return failed(f, st, from->task);
}

static tt_status move(filling *f, const tti_shard *from, const tti_shard *to, size_t at, size_t n)
{
    char *dst = to->data == NULL ? NULL : (char *)to->data + (at - to->begin);
    const char *src = from->data == NULL ? NULL : (const char *)from->data + (at - from->begin);
    bool is_mine = to->task == f->self || to->task == TTI_EVERY_TASK;
    if (from->task == to->task || from->task == TTI_EVERY_TASK || to->task == TTI_EVERY_TASK)
        return f->copies && is_mine && dst != src ? tti_device_copy(to->dev, dst, from->dev, src, n)
                                                  : TT_OK;
    f->message.edge++;
    f->message.bytes = n;
    if (f->sends && from->task == f->self)
        return send_bytes(f, from, to, src);
    return f->copies && is_mine ? receive_bytes(f, from, to, dst) : TT_OK;
}

static tt_status fill_one(filling *f, const tti_shard *to)
{
    for (size_t at = to->begin, end = to->begin + to->bytes; at < end;) {
        size_t until = to->in == NULL ? 0 : fresh_until(f->v, to->in, at, true);
        if (until > 0) { // it is there already
            at = until;
            continue;
        }
        const tti_shard *from = source_of(f, to, at, &until);
        if (from == NULL)
            return TT_FAIL(f->ctx, TT_EINVAL,
                           "variable '%s' has no value at byte %zu: this is a bug in the store",
                           f->v->name, at);
        size_t n = TTI_MIN(until, end) - at;
        TT_TRY(move(f, from, to, at, n));
        at += n;
    }
    return TT_OK;
}

static filling begin(tti_variable *v, tt_ctx *ctx)
{
    bool job = v->ctx != NULL;
    filling f = {.v = v, .ctx = ctx, .self = job ? ctx->top.task : 0, .sends = job, .copies = !job};
    f.message =
        (tti_message){.plan = tti_hash64(v->name, strlen(v->name), 7) >> 1, .run = v->n_fills};
    if (job) {
        v->n_fills++;
        tti_world_doing(ctx->world, "read", v->name);
    }
    return f;
}

// After what goes out, what comes in; false: that was it.
static bool next_pass(filling *f)
{
    bool more = f->sends;
    f->copies = more;
    f->sends = false;
    f->message.edge = 0;
    if (!more && f->v->ctx != NULL)
        tti_world_doing(f->ctx->world, NULL, NULL);
    return more;
}

tt_status tti_shards_fill(tti_variable *v, tt_ctx *ctx, tti_shard *const *s, int n)
{
    filling f = begin(v, ctx);
    int64_t version = atomic_load(&v->version);
    tt_status st = TT_OK;
    do {
        int done = 0;
        for (; done < n && st == TT_OK; done++) {
            if (s[done]->version == version || s[done]->bytes == 0)
                continue;
            st = fill_one(&f, s[done]);
            s[done]->is_filled = st == TT_OK; // of its own task it can be read from here on
            s[done]->version = st == TT_OK ? version : -1;
        }
        for (int i = 0; i < done; i++) {
            if (s[i]->is_filled && (!f.copies || st != TT_OK))
                s[i]->version = -1;
            s[i]->is_filled = false;
        }
    } while (next_pass(&f) && st == TT_OK);
    return st;
}

tt_status tti_variable_fetch(tti_variable *v, tt_ctx *ctx, void *out)
{
    filling f = begin(v, ctx);
    int n = v->ctx != NULL ? ctx->top.n_tasks : 1;
    tt_status st = TT_OK;
    do {
        for (int t = 0; t < n && st == TT_OK; t++) {
            tti_shard to = {.bytes = v->bytes, .task = t, .data = t == f.self ? out : NULL};
            st = fill_one(&f, &to);
        }
    } while (next_pass(&f) && st == TT_OK);
    return st;
}

bool tti_variable_is_hidden(const tti_variable *v, const tt_ctx *ctx)
{
    return v->ctx == NULL && !tti_variable_covers(v, ctx, true) &&
           tti_variable_covers(v, ctx, false);
}

tt_status tti_variable_publish(tti_variable *v, tt_ctx *ctx)
{
    tti_shard *host = NULL, like = {.bytes = v->bytes, .device = "cpu:0"};
    for (tti_shard *s = v->shards; s != NULL && host == NULL; s = s->next)
        host = s->dev == NULL && s->in == s && tti_shard_is_whole(v, s) ? s : NULL;
    if (host == NULL) {
        host = tti_shard_add(v, &like);
        if (host == NULL)
            return TT_FAIL(ctx, TT_ENOMEM, "variable '%s': out of memory", v->name);
        tt_status st = tti_shard_alloc(ctx, v, host);
        if (st != TT_OK) {
            tti_shard_remove(v, host);
            return st;
        }
    }
    return tti_shards_fill(v, ctx, &host, 1);
}
