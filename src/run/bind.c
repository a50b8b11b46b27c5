/*
 * bind.c - plans want memory for variables: shards of the store that are there, or new ones.
 *
 * In a job of several processes each has memory for its own shards, in segments that processes of
 * one host map, so that plans read them where they are.
 */
#include "net/world.h"
#include "run/store.h"
#include <string.h>

#define ALIGN 64

// What a plan adds: shards without memory yet, at offsets in a segment of their process.
typedef struct addition {
    tti_variable *v;
    tti_shard *shard;
    size_t offset;
} addition;

typedef struct binder {
    tt_store *store;
    tt_ctx *ctx;
    bool is_job;
    addition *added;
    int64_t n, cap;
    size_t *bytes;         // by task: of its segment
    tti_segment *segments; // by task
} binder;

// ---- which shards ----------------------------------------------------------------------------

static tti_device *memory_of(tti_device *d)
{
    return tti_has_streams(d) ? d : NULL;
}

size_t tti_variable_needs(tti_variable *v, tt_ctx *ctx, const tti_want *w)
{
    tti_hold h;
    if (tti_store_hold(v->store, ctx, false, &h) != TT_OK)
        return 0;
    tti_want whole = {.dev = w->dev, .bytes = v->bytes};
    bool is_view = w->is_piece && memory_of(w->dev) == NULL;
    bool there = tti_shard_find(v, w) != NULL || (is_view && tti_shard_find(v, &whole) != NULL);
    tti_store_let_go(v->store, &h);
    return there ? 0 : w->bytes;
}

static void rename_to(tt_ctx *ctx, tti_shard *s, const tti_device *dev)
{
    tti_count_variable(ctx, s->device, -(int64_t)s->bytes);
    memcpy(s->device, dev->name, sizeof(dev->name));
    tti_count_variable(ctx, s->device, (int64_t)s->bytes);
}

/*
 * Memory of the host in which a piece can lie: of a shard of the same process that has all of it.
 * One that no plan uses yet becomes the device's.
 */
static tti_shard *memory_for(const binder *b, tti_variable *v, const tti_want *w)
{
    for (tti_shard *s = v->shards; s != NULL; s = s->next) {
        if (s->in != s || s->dev != NULL || s->task == TTI_EVERY_TASK || s->begin > w->begin ||
            s->begin + s->bytes < w->begin + w->bytes || (b->is_job && s->task != w->dev->task))
            continue;
        if (!s->is_bound)
            rename_to(b->ctx, s, w->dev);
        s->is_bound = true;
        return s;
    }
    return NULL;
}

// A shard that no plan uses, made when a value was set or loaded, becomes the device's by name.
static tti_shard *take_unbound(const binder *b, tti_variable *v, const tti_want *w)
{
    for (tti_shard *s = v->shards; s != NULL && !b->is_job; s = s->next) {
        if (s->is_bound || s->in != s || s->dev != memory_of(w->dev) || s->begin != w->begin ||
            s->bytes != w->bytes)
            continue;
        rename_to(b->ctx, s, w->dev);
        return s;
    }
    return NULL;
}

static tti_shard *add(binder *b, tti_variable *v, const tti_want *w)
{
    int task = b->is_job ? w->dev->task : 0;
    tti_shard like = {.begin = w->begin, .bytes = w->bytes, .task = task, .dev = memory_of(w->dev)};
    memcpy(like.device, w->dev->name, sizeof(w->dev->name));
    if (w->is_piece && like.dev == NULL)
        like.in = memory_for(b, v, w);
    if (!tti_grow(b->ctx, &b->added, &b->cap, b->n + 1, sizeof(*b->added)))
        return NULL;
    tti_shard *s = tti_shard_add(v, &like);
    if (s == NULL) {
        (void)TT_FAIL(b->ctx, TT_ENOMEM, "variable '%s': out of memory", v->name);
        return NULL;
    }
    b->added[b->n++] = (addition){v, s, b->is_job ? b->bytes[task] : 0};
    if (s->in != s)
        tti_count_variable(b->ctx, s->in->device, -(int64_t)s->bytes);
    else if (b->is_job && s->dev == NULL)
        b->bytes[task] += (s->bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    tti_count_variable(b->ctx, s->device, (int64_t)s->bytes);
    return s;
}

static tt_status list_want(binder *b, const tti_want *w)
{
    tti_variable *v;
    TT_TRY(tti_store_get(b->store, w->var, w->dev, &v));
    tti_shard *s = tti_shard_find(v, w);
    if (s == NULL && !w->is_piece)
        s = take_unbound(b, v, w);
    if (s == NULL)
        s = add(b, v, w);
    if (s == NULL)
        return TT_ENOMEM;
    s->is_bound = true;
    return TT_OK;
}

// ---- their memory ----------------------------------------------------------------------------

static tt_status alloc_own(binder *b, tti_segment_name *name)
{
    tti_segment *own = b->is_job ? &b->segments[b->ctx->top.task] : NULL;
    if (b->is_job && b->bytes[b->ctx->top.task] > 0) {
        TT_TRY(tti_segment_new(b->ctx, b->bytes[b->ctx->top.task], own));
        *name = tti_segment_name_of(own);
    }
    for (int64_t i = 0; i < b->n; i++) {
        tti_shard *s = b->added[i].shard;
        s->is_mapped = b->is_job && s->dev == NULL;
        if (s->in != s) {
            s->data = s->in->data == NULL ? NULL : (char *)s->in->data + (s->begin - s->in->begin);
            continue;
        }
        if (!b->is_job || (s->dev != NULL && !s->dev->is_away))
            TT_TRY(tti_shard_alloc(b->ctx, b->added[i].v, s));
        else if (s->dev == NULL && s->task == b->ctx->top.task)
            s->data = (char *)own->at + b->added[i].offset;
    }
    return TT_OK;
}

// The segments of the others on this host, for plans that read their shards.
static tt_status map_others(binder *b, const tti_segment_name *name)
{
    tt_ctx *ctx = b->ctx;
    int n = ctx->top.n_tasks;
    tti_segment_name *names = tti_calloc(ctx, (size_t)n, sizeof(*names));
    if (names == NULL)
        return TT_ENOMEM;
    tt_status st = tti_world_exchange(ctx->world, "variables", name, sizeof(*name), names, 0);
    for (int r = 0; r < n && st == TT_OK; r++)
        if (r != ctx->top.task && b->bytes[r] > 0 && tti_world_rank(ctx->world, r)->shares_memory)
            st = tti_segment_map(ctx, &names[r], &b->segments[r]);
    if (st == TT_OK)
        st = tti_world_exchange(ctx->world, "variables are there", NULL, 0, NULL, 0);
    tti_segment_seal(&b->segments[ctx->top.task]);
    for (int64_t i = 0; i < b->n && st == TT_OK; i++) {
        tti_shard *s = b->added[i].shard;
        char *at = b->segments[s->task].at;
        if (s->dev != NULL)
            continue; // of a GPU: its own process has it
        if (s->in == s)
            s->data = at == NULL ? NULL : at + b->added[i].offset;
        else
            s->data = s->in->data == NULL ? NULL : (char *)s->in->data + (s->begin - s->in->begin);
    }
    tti_free(ctx, names);
    return st;
}

// Shards that no plan uses go, once others have the value.
static void drop_spare(binder *b, tti_variable *v)
{
    if (!b->is_job && atomic_load(&b->store->n_contexts) > 1)
        return; // another context may have nothing else
    for (tti_shard *s = v->shards, *next; s != NULL; s = next) {
        next = s->next;
        if (s->is_bound)
            continue;
        int64_t version = s->version;
        s->version = -1;
        if (!tti_variable_covers(v, b->ctx, false)) {
            s->version = version;
            continue;
        }
        if (s->task != TTI_EVERY_TASK)
            tti_count_variable(b->ctx, s->device, -(int64_t)s->bytes);
        tti_shard_remove(v, s);
    }
}

static tt_status make_memory(binder *b)
{
    tti_segment_name name = {0};
    TT_TRY(alloc_own(b, &name));
    for (int64_t i = 0; i < b->n; i++)
        TT_TRY(tti_shards_fill(b->added[i].v, b->ctx, &b->added[i].shard, 1));
    return b->is_job && b->n > 0 ? map_others(b, &name) : TT_OK;
}

// The store keeps the segments, whatever became of the plan.
static tt_status keep_segments(binder *b)
{
    tt_store *s = b->store;
    for (int r = 0; b->is_job && r < b->ctx->top.n_tasks; r++) {
        if (b->segments[r].at == NULL)
            continue;
        tti_segment *grown = s->segments;
        if (!tti_grow(NULL, &grown, &s->cap_segments, s->n_segments + 1, sizeof(*grown)))
            return TT_FAIL(b->ctx, TT_ENOMEM, "store: out of memory");
        s->segments = grown;
        s->segments[s->n_segments++] = b->segments[r];
    }
    return TT_OK;
}

static void take_back(binder *b)
{
    for (int64_t i = b->n - 1; i >= 0; i--) {
        tti_shard *s = b->added[i].shard;
        tti_count_variable(b->ctx, s->device, -(int64_t)s->bytes);
        if (s->in != s)
            tti_count_variable(b->ctx, s->in->device, (int64_t)s->bytes);
        tti_shard_remove(b->added[i].v, s);
    }
}

static tt_status bind_all(binder *b, const tti_want *w, int n, void **out)
{
    tt_status st = TT_OK;
    for (int i = 0; st == TT_OK && i < n; i++)
        st = list_want(b, &w[i]);
    if (st == TT_OK)
        st = make_memory(b);
    tt_status kept = keep_segments(b);
    st = st == TT_OK ? kept : st;
    if (st != TT_OK) {
        take_back(b);
        return st;
    }
    for (int i = 0; i < n; i++) {
        tti_variable *v = tti_store_find(b->store, w[i].var->name);
        out[i] = tti_shard_find(v, &w[i])->data;
        drop_spare(b, v);
    }
    return TT_OK;
}

// The first that ctx cannot read yet, since it is on a device of another context; NULL: none is.
static tti_variable *unreadable(tt_store *s, tt_ctx *ctx, const tti_want *w, int n)
{
    for (int i = 0; atomic_load(&s->n_contexts) > 1 && i < n; i++) {
        tti_variable *v = tti_store_find(s, w[i].var->name);
        if (v != NULL && v->ctx == NULL && !tti_variable_covers(v, ctx, false))
            return v;
    }
    return NULL;
}

static tt_status hold_readable(tt_store *s, tt_ctx *ctx, const tti_want *w, int n, tti_hold *h)
{
    int64_t deadline = tti_deadline(ctx->deadline_ms);
    for (;;) {
        TT_TRY(tti_store_hold(s, ctx, true, h));
        tti_variable *v = unreadable(s, ctx, w, n);
        if (v == NULL)
            return TT_OK;
        tti_store_let_go(s, h);
        TT_TRY(tti_variable_await(v, ctx, deadline));
    }
}

tt_status tti_store_bind(tt_store *s, tt_ctx *ctx, const tti_want *w, int n, void **out)
{
    binder b = {.store = s, .ctx = ctx, .is_job = ctx->top.n_tasks > 1};
    tti_hold h;
    if (b.is_job) {
        b.bytes = tti_calloc(ctx, (size_t)ctx->top.n_tasks, sizeof(*b.bytes));
        b.segments = tti_calloc(ctx, (size_t)ctx->top.n_tasks, sizeof(*b.segments));
    }
    tt_status st = b.is_job && (b.bytes == NULL || b.segments == NULL) ? TT_ENOMEM : TT_OK;
    if (st == TT_OK)
        st = hold_readable(s, ctx, w, n, &h);
    if (st == TT_OK) {
        st = bind_all(&b, w, n, out);
        tti_store_let_go(s, &h);
    }
    tti_free(ctx, b.added);
    tti_free(ctx, b.bytes);
    tti_free(ctx, b.segments);
    return st;
}
