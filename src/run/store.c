/*
 * store.c - variables by name, shared between sessions and contexts, with a life of their own; and
 * the holds with which contexts exclude each other.
 *
 * The memory of a value is not the context's: a store may outlive the context that made it. Bytes
 * are counted on the device, so that limits and reports see them.
 */
#include "run/store.h"
#include "net/world.h"
#include "op/random.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <tutti/run.h>

tt_store *tt_store_new(void)
{
    tt_store *s = tti_calloc(NULL, 1, sizeof(*s));
    if (s == NULL)
        return NULL;
    atomic_store(&s->refs, 1);
    pthread_mutex_init(&s->mu, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->changed, &attr);
    pthread_condattr_destroy(&attr);
    return s;
}

tt_store *tt_store_of(tt_ctx *ctx)
{
    if (ctx == NULL || ctx->store == NULL)
        return NULL;
    atomic_fetch_add(&ctx->store->refs, 1);
    return ctx->store;
}

static void variable_free(tti_variable *v)
{
    tti_variable_drop(v);
    tti_free(NULL, v->name);
    tti_free(NULL, v);
}

void tt_store_release(tt_store *s)
{
    if (s == NULL || atomic_fetch_sub(&s->refs, 1) > 1)
        return;
    for (int64_t i = 0; i < s->cap; i++) {
        for (tti_variable *v = s->table[i], *next; v != NULL; v = next) {
            next = v->next;
            variable_free(v);
        }
    }
    for (int64_t i = 0; i < s->n_segments; i++)
        tti_segment_free(&s->segments[i]);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->mu);
    tti_free(NULL, s->segments);
    tti_free(NULL, s->table);
    tti_free(NULL, s);
}

// ---- holds -----------------------------------------------------------------------------------

// May ctx have a hold now? *is_own: it has one already.
static bool is_free(const tt_store *s, const tt_ctx *ctx, bool alone, bool *is_own)
{
    bool others = false, others_alone = false;
    *is_own = false;
    for (const tti_hold *h = s->holds; h != NULL; h = h->next) {
        *is_own |= h->ctx == ctx;
        others |= h->ctx != ctx;
        others_alone |= h->ctx != ctx && h->is_alone;
    }
    if (alone)
        return !others;
    return !others_alone && (*is_own || s->n_waiting == 0);
}

// Stops at whoever asked for it; a moment at a time, since that may be a signal's handler.
static tt_status wait_free(tt_store *s, tt_ctx *ctx, bool alone)
{
    bool is_own, grows = false;
    tt_status st = TT_OK;
    while (st == TT_OK && !is_free(s, ctx, alone, &is_own)) {
        if (is_own && !grows && s->is_growing) { // two of these would wait for each other
            st = TT_FAIL(ctx, TT_EINVAL,
                         "store: a variable cannot be set from an event of a run while another "
                         "context that runs does the same");
            break;
        }
        s->is_growing |= is_own;
        grows |= is_own;
        s->n_waiting += alone;
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += 20 * 1000 * 1000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&s->changed, &s->mu, &until);
        s->n_waiting -= alone;
        if (atomic_load(&ctx->stop) != 0)
            st = TT_FAIL(ctx, TT_ESTOP, "stopped on request, waiting for another context's run");
    }
    if (grows)
        s->is_growing = false;
    return st;
}

tt_status tti_store_hold(tt_store *s, tt_ctx *ctx, bool alone, tti_hold *h)
{
    *h = (tti_hold){.ctx = ctx, .is_alone = alone};
    pthread_mutex_lock(&s->mu);
    tt_status st = wait_free(s, ctx, alone);
    if (st == TT_OK) {
        h->next = s->holds;
        s->holds = h;
    } else {
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->mu);
    return st;
}

void tti_store_share(tt_store *s, tti_hold *h)
{
    pthread_mutex_lock(&s->mu);
    h->is_alone = false;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->mu);
}

void tti_store_let_go(tt_store *s, tti_hold *h)
{
    pthread_mutex_lock(&s->mu);
    tti_hold **at = &s->holds;
    while (*at != h)
        at = &(*at)->next;
    *at = h->next;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->mu);
}

// ---- names -----------------------------------------------------------------------------------

static tti_variable **slot_of(tt_store *s, const char *name)
{
    return &s->table[tti_hash64(name, strlen(name), 0) & (uint64_t)(s->cap - 1)];
}

tti_variable *tti_store_find(tt_store *s, const char *name)
{
    pthread_mutex_lock(&s->mu);
    tti_variable *v = s->cap == 0 ? NULL : *slot_of(s, name);
    while (v != NULL && strcmp(v->name, name) != 0)
        v = v->next;
    pthread_mutex_unlock(&s->mu);
    return v;
}

int64_t tt_store_version(tt_store *s, const char *name)
{
    tti_variable *v = s == NULL || name == NULL ? NULL : tti_store_find(s, name);
    return v == NULL ? -1 : atomic_load(&v->version);
}

static bool grow(tt_store *s)
{
    if (s->n < s->cap)
        return true;
    int64_t cap = s->cap, more = cap == 0 ? 64 : cap * 4;
    tti_variable **old = s->table, **table = tti_calloc(NULL, (size_t)more, sizeof(*table));
    if (table == NULL)
        return false;
    s->table = table;
    s->cap = more;
    for (int64_t i = 0; i < cap; i++) {
        for (tti_variable *v = old[i], *next; v != NULL; v = next) {
            next = v->next;
            tti_variable **at = slot_of(s, v->name);
            v->next = *at;
            *at = v;
        }
    }
    tti_free(NULL, old);
    return true;
}

static tt_status insert(tt_ctx *ctx, tt_store *s, tti_variable *v)
{
    pthread_mutex_lock(&s->mu);
    bool room = grow(s);
    if (room) {
        tti_variable **at = slot_of(s, v->name);
        v->next = *at;
        *at = v;
        s->n++;
    }
    pthread_mutex_unlock(&s->mu);
    return room ? TT_OK : TT_FAIL(ctx, TT_ENOMEM, "store: out of memory");
}

static tt_status make(tt_store *s, tt_ctx *ctx, const tt_node *var, tti_device *dev,
                      tti_variable **out)
{
    const tti_variable_attr *a = var->attr;
    void *probe = tti_alloc(ctx, 1); // lets tests fail this allocation too
    if (probe == NULL)
        return TT_ENOMEM;
    tti_free(ctx, probe);
    tti_variable *v = tti_calloc(NULL, 1, sizeof(*v));
    char *name = v == NULL ? NULL : tti_strdup(NULL, var->name);
    if (name == NULL) {
        tti_free(NULL, v);
        return TT_FAIL(ctx, TT_ENOMEM, "variable '%s': out of memory", var->name);
    }
    *v = (tti_variable){.name = name,
                        .dtype = a->dtype,
                        .shape = a->shape,
                        .bytes = (size_t)tt_shape_count(&a->shape) * tt_dtype_bytes(a->dtype),
                        .store = s,
                        .ctx = ctx->top.n_tasks > 1 ? ctx : NULL};
    tt_status st = tti_variable_first(v, var, dev);
    if (st == TT_OK)
        st = insert(ctx, s, v);
    if (st == TT_OK)
        *out = v;
    else
        variable_free(v);
    return st;
}

/*
 * A value that this process has alone becomes one of the job's processes, which each have the same:
 * nothing else of it is used any more, since no other context has the store.
 */
static tt_status adopt(tti_variable *v, tt_ctx *ctx)
{
    tti_shard like = {.bytes = v->bytes, .task = TTI_EVERY_TASK, .device = "cpu:0"};
    tti_shard *own = tti_shard_add(v, &like);
    tt_status st = own == NULL ? TT_FAIL(ctx, TT_ENOMEM, "variable '%s': out of memory", v->name)
                               : tti_shard_alloc(ctx, v, own);
    if (st == TT_OK)
        st = tti_shards_fill(v, ctx, &own, 1);
    if (st != TT_OK) {
        if (own != NULL)
            tti_shard_remove(v, own);
        return st;
    }
    while (v->shards != own)
        tti_shard_remove(v, v->shards);
    v->ctx = ctx;
    return TT_OK;
}

// May ctx use it? The processes of a job have a variable together, and nobody else meanwhile.
static tt_status check_owner(tti_variable *v, tt_ctx *ctx)
{
    tt_ctx *job = ctx->top.n_tasks > 1 ? ctx : NULL;
    if (v->ctx == job)
        return TT_OK;
    if (v->ctx != NULL)
        return TT_FAIL(ctx, TT_EINVAL,
                       "variable '%s' belongs to a job of %d processes; another context can use it "
                       "once that job's context is closed",
                       v->name, v->ctx->top.n_tasks);
    if (atomic_load(&v->store->n_contexts) > 1)
        return TT_FAIL(ctx, TT_EINVAL,
                       "variable '%s' is used by another context of this process; close that one "
                       "before a job of %d processes uses it",
                       v->name, job->top.n_tasks);
    return adopt(v, ctx);
}

static tt_status check_type(const tti_variable *v, tt_ctx *ctx, const tt_node *var)
{
    const tti_variable_attr *a = var->attr;
    char want[TT_SHAPE_TEXT], has[TT_SHAPE_TEXT];
    if (v->dtype == a->dtype && tti_shape_equal(&v->shape, &a->shape))
        return TT_OK;
    return TT_FAIL(ctx, TT_ESHAPE, "variable '%s' is %s %s but the store has it as %s %s",
                   var->name, tt_dtype_name(a->dtype), tt_shape_text(&a->shape, want),
                   tt_dtype_name(v->dtype), tt_shape_text(&v->shape, has));
}

tt_status tti_store_get(tt_store *s, const tt_node *var, tti_device *dev, tti_variable **out)
{
    tt_ctx *ctx = var->graph->ctx, *job = ctx->top.n_tasks > 1 ? ctx : NULL;
    tti_variable *v = tti_store_find(s, var->name);
    if (v == NULL || v->ctx != job) { // else nobody changes whose it is while ctx is open
        tti_hold h;
        TT_TRY(tti_store_hold(s, ctx, true, &h));
        v = tti_store_find(s, var->name); // another context may have been faster
        tt_status st = v != NULL ? check_owner(v, ctx) : make(s, ctx, var, dev, &v);
        tti_store_let_go(s, &h);
        TT_TRY(st);
    }
    TT_TRY(check_type(v, ctx, var));
    *out = v;
    return TT_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(tti_variable *const *)a)->name, (*(tti_variable *const *)b)->name);
}

tt_status tti_store_list(tt_store *s, tt_ctx *ctx, tti_variable ***out, int64_t *n)
{
    pthread_mutex_lock(&s->mu);
    tti_variable **list = tti_calloc(ctx, (size_t)s->n + 1, sizeof(*list));
    int64_t at = 0;
    for (int64_t i = 0; list != NULL && i < s->cap; i++)
        for (tti_variable *v = s->table[i]; v != NULL; v = v->next)
            list[at++] = v;
    pthread_mutex_unlock(&s->mu);
    if (list == NULL)
        return TT_ENOMEM;
    qsort(list, (size_t)at, sizeof(*list), by_name); // the same order in all processes
    *out = list;
    *n = at;
    return TT_OK;
}

static tt_status publish_all(tt_store *s, tt_ctx *ctx)
{
    for (int64_t i = 0; i < s->cap; i++)
        for (tti_variable *v = s->table[i]; v != NULL; v = v->next)
            if (tti_variable_is_hidden(v, ctx))
                TT_TRY(tti_variable_publish(v, ctx));
    return TT_OK;
}

tt_status tti_store_publish(tt_store *s, tt_ctx *ctx)
{
    bool streams = false, any = false;
    for (int d = 0; d < ctx->top.n_devices; d++)
        streams |= tti_has_streams(ctx->top.devices[d]);
    if (!streams || atomic_load(&s->n_contexts) < 2)
        return TT_OK;
    tti_hold h;
    TT_TRY(tti_store_hold(s, ctx, false, &h));
    for (int64_t i = 0; i < s->cap && !any; i++) // holds guard the table from growing
        for (tti_variable *v = s->table[i]; v != NULL && !any; v = v->next)
            any = tti_variable_is_hidden(v, ctx);
    tti_store_let_go(s, &h);
    if (!any)
        return TT_OK;
    TT_TRY(tti_store_hold(s, ctx, true, &h));
    tt_status st = publish_all(s, ctx);
    tti_store_let_go(s, &h);
    return st;
}

// ---- contexts come and go --------------------------------------------------------------------

void tti_store_join(tt_store *s)
{
    atomic_fetch_add(&s->refs, 1);
    atomic_fetch_add(&s->n_contexts, 1);
}

// Does the shard go with ctx: with its devices, or with the memory that its processes share?
static bool goes_with(const tti_variable *v, const tti_shard *s, const tt_ctx *ctx)
{
    return v->ctx == ctx || (s->dev != NULL && s->dev->ctx == ctx);
}

/*
 * What stays is a shard of the host; one that cannot be filled any more is zero, and the context
 * has said why.
 */
static void leave(tti_variable *v, tt_ctx *ctx, bool is_wanted)
{
    bool any = false;
    for (const tti_shard *s = v->shards; s != NULL; s = s->next)
        any |= goes_with(v, s, ctx);
    if (!any)
        return;
    tti_shard like = {.bytes = v->bytes, .device = "cpu:0"}, *kept = NULL;
    bool is_job = v->ctx == ctx;
    if (is_wanted && (is_job || !tti_variable_covers(v, ctx, true)))
        kept = tti_shard_add(v, &like);
    if (kept != NULL)
        kept->data = tti_host_alloc(NULL, v->bytes);
    bool read = kept != NULL && kept->data != NULL && tt_status_of(ctx) == TT_OK &&
                tti_variable_fetch(v, ctx, kept->data) == TT_OK;
    if (kept != NULL && kept->data != NULL && !read)
        memset(kept->data, 0, v->bytes);
    for (tti_shard *s = v->shards, *next; s != NULL; s = next) {
        next = s->next;
        if (s == kept || !goes_with(v, s, ctx))
            continue;
        if (s->dev != NULL)
            tti_count_variable(ctx, s->device, -(int64_t)s->bytes);
        tti_shard_remove(v, s);
    }
    v->ctx = is_job ? NULL : v->ctx;
    if (kept != NULL)
        kept->version = atomic_load(&v->version);
}

void tti_store_leave(tt_store *s, tt_ctx *ctx)
{
    bool is_wanted = atomic_load(&s->refs) > 1, is_job = ctx->top.n_tasks > 1;
    tti_variable **list = NULL;
    int64_t n = 0;
    tti_hold h = {.ctx = ctx, .is_alone = true};
    pthread_mutex_lock(&s->mu);
    bool own;
    while (!is_free(s, ctx, true, &own)) // runs of others end by their own deadlines
        pthread_cond_wait(&s->changed, &s->mu);
    h.next = s->holds;
    s->holds = &h;
    pthread_mutex_unlock(&s->mu);
    if ((is_wanted || !is_job) && tti_store_list(s, NULL, &list, &n) == TT_OK)
        for (int64_t i = 0; i < n; i++)
            leave(list[i], ctx, is_wanted);
    tti_free(NULL, list);
    for (int64_t i = 0; list != NULL && is_job && i < s->n_segments; i++)
        tti_segment_free(&s->segments[i]);
    s->n_segments = list != NULL && is_job ? 0 : s->n_segments;
    atomic_fetch_sub(&s->n_contexts, 1);
    tti_store_let_go(s, &h);
}
