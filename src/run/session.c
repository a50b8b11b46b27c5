/*
 * session.c - sessions: their life, variables in and out, runs: feeds in, fetches out.
 */
#include "net/world.h"
#include "run/run.h"
#include <string.h>

// ---- life ------------------------------------------------------------------------------------

static void session_release(tt_session *s)
{
    tti_remote_close(s->remote);
    tti_session_forget(s);
    tti_meeting_free(s);
    bool has_arenas = s->arenas != NULL && s->arena_bytes != NULL;
    for (int d = 0; has_arenas && d < s->ctx->top.n_devices; d++) {
        tti_device *dev = s->ctx->top.devices[d];
        tti_device_free(dev, s->arenas[d], s->arena_bytes[d]);
        atomic_fetch_sub(&dev->arena, s->arena_bytes[d]);
    }
    if (s->landing != NULL)
        s->landing_of->backend->streams->unpin(s->landing_of, s->landing);
    tti_free(s->ctx, s->spans);
    tti_free(s->ctx, s->rows);
    tti_free(s->ctx, s->dumped);
    tti_free(s->ctx, s->arenas);
    tti_free(s->ctx, s->arena_bytes);
    tti_topology_free(s->ctx, &s->own_top);
    tti_free(s->ctx, s->clocks);
    tti_free(s->ctx, s->waits);
    tti_free(s->ctx, s->tasks);
    tti_free(s->ctx, s->streaming);
    tti_free(s->ctx, s->submitted);
    tti_free(s->ctx, s->targets);
    tti_free(s->ctx, s->recompute);
    tt_comm_free(s->hook.comm);
    pthread_mutex_destroy(&s->rows_mu);
    tt_store_release(s->store);
    tti_host_free(s->ctx, s);
}

// From here on the context has it open, until it closes. A failure is recorded.
static void join_store(tt_ctx *ctx, tt_store *store)
{
    bool has = store == ctx->store;
    for (int64_t i = 0; i < ctx->n_stores; i++)
        has |= ctx->stores[i] == store;
    if (has ||
        !tti_grow(ctx, &ctx->stores, &ctx->cap_stores, ctx->n_stores + 1, sizeof(*ctx->stores)))
        return;
    tti_store_join(store);
    ctx->stores[ctx->n_stores++] = store;
}

static void free_sessions(tt_graph *g)
{
    while (g->sessions != NULL)
        tt_session_free(g->sessions);
}

tt_session *tt_session_new_with(tt_graph *g, const tt_session_opts *opts)
{
    return tti_session_new_by(g, opts, NULL);
}

tti_remote *tti_session_remote(const tt_session *s)
{
    return s->remote;
}

// What only runs here; a server's options without a server are a mistake.
static tt_status check_target(tt_ctx *ctx, const tt_session_opts *o)
{
    if (o->target == NULL && (o->key != NULL || o->container != NULL || o->isolate))
        return TT_FAIL(ctx, TT_EINVAL, "session: key, container and isolate need a target");
    if (o->target != NULL && (o->hashes || o->dump != NULL || o->trace || o->store != NULL ||
                              o->bucket_hook != NULL || o->recompute != NULL))
        return TT_FAIL(ctx, TT_EUNSUPPORTED,
                       "session at %s: hashes, dump, trace, store, recompute and bucket_hook are "
                       "for sessions without a target",
                       o->target);
    return TT_OK;
}

tt_session *tti_session_new_by(tt_graph *g, const tt_session_opts *opts, const tti_remote_way *way)
{
    if (g == NULL || tti_is_stuck(g->ctx))
        return NULL;
    TTI_OPTS_OWN(tt_graph_get_ctx(g), "session", tt_session_opts, opts);
    if (opts == NULL)
        return NULL;
    tt_ctx *ctx = g->ctx;
    if (check_target(ctx, opts) != TT_OK)
        return NULL;
    if (tti_recompute_check(g, opts->recompute) != TT_OK ||
        (opts->bucket_hook != NULL && tti_hook_check(ctx) != TT_OK))
        return NULL;
    tt_session *s = tti_host_alloc(ctx, sizeof(*s));
    if (s == NULL)
        return NULL;
    memset(s, 0, sizeof(*s));
    s->ctx = ctx;
    s->graph = g;
    s->top = &ctx->top;
    s->store = opts->store != NULL ? opts->store : g->store != NULL ? g->store : ctx->store;
    atomic_fetch_add(&s->store->refs, 1);
    s->hashes = opts->hashes || opts->dump != NULL;
    s->trace = opts->trace;
    s->hook = (tti_hook){.fn = opts->bucket_hook, .user = opts->bucket_user};
    s->no_fuse = opts->no_fuse || s->hashes; // a hash per node needs every node's value
    s->no_fold = opts->no_fold || s->hashes;
    pthread_mutex_init(&s->rows_mu, NULL);
    if (opts->dump != NULL)
        strncpy(s->dump, opts->dump, sizeof(s->dump) - 1);
    s->arenas = tti_calloc(ctx, 2 * (size_t)ctx->top.n_devices, sizeof(*s->arenas));
    s->arena_bytes = tti_calloc(ctx, 2 * (size_t)ctx->top.n_devices, sizeof(*s->arena_bytes));
    s->tasks = tti_calloc(ctx, (size_t)ctx->top.n_devices, sizeof(*s->tasks));
    s->streaming = tti_calloc(ctx, (size_t)ctx->top.n_devices, sizeof(*s->streaming));
    s->submitted = tti_calloc(ctx, (size_t)ctx->top.n_devices, sizeof(*s->submitted));
    tti_clocks_new(s);
    if (s->trace)
        s->spans = tti_calloc(ctx, TTI_SPANS, sizeof(*s->spans));
    if (!tti_recompute_is_none(opts->recompute))
        s->recompute = tti_strdup(ctx, opts->recompute);
    if (s->store != g->store) // a model's goes with the model
        join_store(ctx, s->store);
    if (opts->target != NULL && tt_status_of(ctx) == TT_OK)
        s->remote = tti_remote_open(g, opts, way);
    if (tt_status_of(ctx) != TT_OK) {
        session_release(s);
        return NULL;
    }
    s->next = g->sessions;
    s->link = &g->sessions;
    if (s->next != NULL)
        s->next->link = &s->next;
    g->sessions = s;
    g->free_sessions = free_sessions;
    return s;
}

void tt_session_free(tt_session *s)
{
    if (s == NULL)
        return;
    *s->link = s->next;
    if (s->next != NULL)
        s->next->link = s->link;
    if (s->graph->eval == s)
        s->graph->eval = NULL;
    session_release(s);
}

// ---- variables -------------------------------------------------------------------------------

tt_status tti_session_variable(tt_session *s, const tt_node *var, tti_variable **out)
{
    tti_device *pin = var->has_pin ? tti_device_match(&s->ctx->top, &var->pin) : NULL;
    return tti_store_get(s->store, var, pin != NULL ? pin : s->ctx->top.devices[0], out);
}

static tt_status check_variable(tt_session *s, tt_tensor *var, size_t bytes, tti_variable **out)
{
    if (s == NULL)
        return TT_FAIL(tti_tensor_ctx(var), TT_EINVAL, "variable: the session is NULL");
    if (tti_is_stuck(s->ctx))
        return tt_status_of(s->ctx);
    if (!tti_is_variable(var) || var->graph != s->graph)
        return TT_FAIL(s->ctx, TT_EINVAL, "'%s' is not a variable of this session's graph",
                       tt_tensor_name(var));
    size_t own = (size_t)tt_shape_count(&var->shape) * tt_dtype_bytes(var->dtype);
    if (s->remote != NULL && own != bytes)
        return TT_FAIL(s->ctx, TT_ESHAPE, "variable '%s' has %zu bytes, not %zu", var->node->name,
                       own, bytes);
    if (s->remote != NULL)
        return TT_OK;
    TT_TRY(tti_session_variable(s, var->node, out));
    if ((*out)->bytes != bytes)
        return TT_FAIL(s->ctx, TT_ESHAPE, "variable '%s' has %zu bytes, not %zu", var->node->name,
                       (*out)->bytes, bytes);
    return TT_OK;
}

tt_status tt_get_variable(tt_session *s, tt_tensor *var, void *out, size_t bytes)
{
    tti_variable *v;
    TT_TRY(check_variable(s, var, bytes, &v));
    if (bytes > 0 && out == NULL)
        return TT_FAIL(s->ctx, TT_EINVAL, "variable '%s': the room for it is NULL",
                       var->node->name);
    if (s->remote != NULL)
        return tti_remote_get(s->remote, var->node, out, bytes);
    return bytes > 0 ? tti_variable_read(v, s->ctx, out) : TT_OK;
}

tt_status tt_set_variable(tt_session *s, tt_tensor *var, const void *data, size_t bytes)
{
    tti_variable *v;
    TT_TRY(check_variable(s, var, bytes, &v));
    if (bytes > 0 && data == NULL)
        return TT_FAIL(s->ctx, TT_EINVAL, "variable '%s': its value is NULL", var->node->name);
    return s->remote != NULL ? tti_remote_set(s->remote, var->node, data, bytes)
                             : tti_variable_write(v, s->ctx, data);
}

// ---- runs ------------------------------------------------------------------------------------

// The arena of each device is the largest that any plan of the session needs.
static tt_status grow_arenas(tt_session *s, const tti_plan *p)
{
    if (s->ctx->top.n_tasks > 1)
        return tti_join_arenas(s, p);
    for (int d = 0; d < s->ctx->top.n_devices; d++) {
        size_t need = p->devices[d].arena_bytes;
        if (need <= s->arena_bytes[d])
            continue;
        tti_device *dev = s->ctx->top.devices[d];
        tti_device_free(dev, s->arenas[d], s->arena_bytes[d]);
        atomic_fetch_sub(&dev->arena, s->arena_bytes[d]);
        s->arenas[d] = NULL;
        s->arena_bytes[d] = 0;
        void *arena;
        TT_TRY(tti_device_alloc(dev, need, &arena));
        s->arenas[d] = arena;
        s->arena_bytes[d] = need;
        atomic_fetch_add(&dev->arena, need);
    }
    return TT_OK;
}

static tt_status check_feed(tt_session *s, const tt_feed_value *f, int64_t *rows)
{
    tt_ctx *ctx = s->ctx;
    if (f->tensor == NULL || f->tensor->graph != s->graph || f->tensor->node->op != &tti_op_feed)
        return TT_FAIL(ctx, TT_EINVAL, "run: '%s' is not a feed of this session's graph",
                       tt_tensor_name(f->tensor));
    const tt_shape *want = &f->tensor->shape;
    char a[TT_SHAPE_TEXT], b[TT_SHAPE_TEXT];
    if (f->dtype != f->tensor->dtype)
        return TT_FAIL(ctx, TT_EDTYPE, "feed '%s' is %s but was given %s", f->tensor->node->name,
                       tt_dtype_name(f->tensor->dtype), tt_dtype_name(f->dtype));
    bool fits = f->shape.rank == want->rank;
    for (int i = 0; fits && i < want->rank; i++) {
        if (want->dim[i] >= 0) {
            fits = f->shape.dim[i] == want->dim[i];
            continue;
        }
        int64_t per = -want->dim[i];
        fits = f->shape.dim[i] >= 0 && f->shape.dim[i] % per == 0;
        int64_t n = f->shape.dim[i] / per;
        if (fits && *rows >= 0 && *rows != n)
            return TT_FAIL(ctx, TT_ESHAPE, "feed '%s' has %lld rows but another has %lld",
                           f->tensor->node->name, (long long)n, (long long)*rows);
        *rows = n;
    }
    if (!fits)
        return TT_FAIL(ctx, TT_ESHAPE, "feed '%s' is %s but was given %s", f->tensor->node->name,
                       tt_shape_text(want, a), tt_shape_text(&f->shape, b));
    if (f->data == NULL && tt_shape_count(&f->shape) != 0)
        return TT_FAIL(ctx, TT_EINVAL, "feed '%s': data is NULL", f->tensor->node->name);
    return TT_OK;
}

static tt_status bind_feeds(tt_session *s, tti_plan *p, const tt_run_opts *o)
{
    for (int i = 0; i < p->n_feeds; i++) {
        const tti_value *v = &p->values[p->feeds[i]];
        const tt_feed_value *given = NULL;
        for (int k = 0; k < o->n_feeds && given == NULL; k++)
            given = o->feeds[k].tensor == v->tensor ? &o->feeds[k] : NULL;
        if (given == NULL)
            return TT_FAIL(s->ctx, TT_EINVAL, "run: feed '%s' is missing", v->tensor->node->name);
        const tti_pnode *pn = &p->nodes[v->node];
        int64_t rows = pn->lanes->bound[pn->lanes->n];
        size_t row = rows > 0 ? v->bytes / (size_t)rows : 0;
        ((tt_arg *)p->exe.feed_calls[i]->launch.in)->data =
            (char *)given->data + (size_t)pn->first_row * row;
    }
    return TT_OK;
}

const void *tti_value_data(const tt_session *s, const tti_plan *p, int value)
{
    const tti_value *root = &p->values[tti_root(p, value)];
    size_t skip = p->values[value].skip;
    if (root->memory == TTI_ARENA)
        return s->arenas[tti_arena_of(p, root)] + root->offset + skip;
    if (root->memory == TTI_STAGED)
        return p->exe.staging[root->device].data + root->offset + skip;
    return (const char *)root->fixed + skip;
}

static tt_status check_fetches(tt_session *s, const tti_plan *p, const tt_run_opts *o)
{
    for (int i = 0; i < o->n_fetches; i++) {
        const tti_value *v = &p->values[p->targets[i]];
        char a[TT_SHAPE_TEXT];
        if (o->fetches[i].bytes < v->bytes || (v->bytes > 0 && o->fetches[i].data == NULL))
            return TT_FAIL(s->ctx, TT_ESHAPE,
                           "fetch of '%s': %s %s needs %zu bytes, but there is room for %zu",
                           v->tensor->node->name, tt_dtype_name(v->dtype),
                           tt_shape_text(&v->shape, a), v->bytes,
                           o->fetches[i].data == NULL ? (size_t)0 : o->fetches[i].bytes);
    }
    return TT_OK;
}

static tt_status fetch(tt_session *s, tti_plan *p, const tt_run_opts *o)
{
    for (int i = 0; i < o->n_fetches; i++) {
        const tti_value *v = &p->values[p->targets[i]];
        tti_device *from = s->ctx->top.devices[p->values[tti_root(p, p->targets[i])].device];
        size_t at = p->exe.n_submissions > 0 ? tti_landing_at(s, p, i) : SIZE_MAX;
        if (at != SIZE_MAX) {
            if (v->bytes > 0)
                memcpy(o->fetches[i].data, s->landing + at, v->bytes);
            continue;
        }
        bool host = p->values[tti_root(p, p->targets[i])].memory == TTI_CONSTANT;
        TT_TRY(tti_device_copy(NULL, o->fetches[i].data, host ? NULL : from,
                               tti_value_data(s, p, p->targets[i]), v->bytes));
    }
    return TT_OK;
}

/*
 * A plan that cannot be fails in all processes alike. What one alone can lack is told to the
 * others, which wait for it.
 */
static tt_status fail_alone(tt_session *s, tt_status st)
{
    bool alone = st == TT_ENOMEM || st == TT_EPEER || st == TT_ETIMEOUT || st == TT_EIO;
    if (s->ctx->top.n_tasks > 1 && alone)
        tti_world_fail_with(s->ctx, st);
    return st;
}

static tt_status run(tt_session *s, const tt_run_opts *o, tt_tensor **targets)
{
    int64_t rows = -1;
    for (int i = 0; i < o->n_feeds; i++) {
        TT_TRY(check_feed(s, &o->feeds[i], &rows));
        for (int k = 0; k < i; k++)
            if (o->feeds[k].tensor == o->feeds[i].tensor)
                return TT_FAIL(s->ctx, TT_EINVAL, "run: feed '%s' is given twice",
                               o->feeds[i].tensor->node->name);
    }
    if (rows == 0 && o->batch.global_rows == 0)
        return TT_FAIL(s->ctx, TT_EINVAL, "run: the batch has no rows");
    if (s->remote != NULL) {
        TT_TRY(tti_remote_start(s->remote, o));
        return tti_remote_finish(s->remote, o);
    }
    for (int i = 0; i < o->n_fetches; i++)
        targets[i] = o->fetches[i].tensor;
    for (int i = 0; i < o->n_targets; i++)
        targets[o->n_fetches + i] = o->targets[i];
    tti_plan_request r = {.targets = targets,
                          .n_targets = o->n_fetches + o->n_targets,
                          .n_fetched = o->n_fetches,
                          .rows = rows < 0 ? 1 : rows,
                          .batch = o->batch,
                          .micro = o->micro,
                          .recompute = s->recompute};
    tti_plan *p;
    tt_status st = tti_find_plan(s, &r, &p);
    st = st == TT_OK ? grow_arenas(s, p) : st;
    if (st != TT_OK)
        return fail_alone(s, st);
    TT_TRY(check_fetches(s, p, o));
    TT_TRY(bind_feeds(s, p, o));
    tti_plan_bind(p, s->arenas);
    *p->step = (tt_step){.step = o->step,
                         .seed = s->ctx->seed,
                         .lr = o->lr,
                         .grad_scale = (float)tti_or_default(o->grad_scale, 1),
                         .unapplied = o->unapplied};
    s->to_come = o->next;
    s->n_to_come = o->n_next;
    tti_hold h;
    TT_TRY(tti_store_ready(s->store, s->ctx, p, &h));
    st = tti_execute(s, p);
    if (st == TT_OK)
        st = tti_store_written(s->store, s->ctx, p);
    if (st == TT_OK)
        st = fetch(s, p, o); // perhaps a variable's memory
    tti_store_let_go(s->store, &h);
    return st;
}

#define FEW 64

tt_status tt_run_with(tt_session *s, const tt_run_opts *opts)
{
    if (s == NULL)
        return TT_EINVAL;
    if (opts != NULL && tti_is_stuck(s->ctx))
        return tt_status_of(s->ctx);
    tt_run_opts o;
    TT_TRY(TTI_OPTS_COPY(s->ctx, "run", opts, &o));
    if (o.n_feeds < 0 || o.n_fetches < 0 || o.n_targets < 0 || (o.n_feeds > 0 && o.feeds == NULL) ||
        (o.n_fetches > 0 && o.fetches == NULL) || (o.n_targets > 0 && o.targets == NULL) ||
        o.n_next < 0 || (o.n_next > 0 && o.next == NULL))
        return TT_FAIL(s->ctx, TT_EINVAL, "run: feeds, fetches or targets are missing");
    int n = o.n_fetches + o.n_targets;
    tt_tensor *few[FEW];
    if (n <= FEW)
        return run(s, &o, few);
    tt_tensor **many = s->targets;
    if (!tti_grow(s->ctx, &many, &s->cap_targets, n, sizeof(*many)))
        return TT_ENOMEM;
    s->targets = many;
    return run(s, &o, many);
}

tt_status tt_eval(tt_graph *g, tt_tensor *t, void *out, int64_t n)
{
    if (g == NULL)
        return TT_FAIL(tti_tensor_ctx(t), TT_EINVAL, "eval: the graph is NULL");
    if (tti_is_stuck(g->ctx))
        return tt_status_of(g->ctx);
    if (t == NULL || out == NULL || t->graph != g)
        return TT_FAIL(g->ctx, TT_EINVAL, "eval: the tensor does not belong to this graph");
    if (tt_open_axis(&t->shape) >= 0 || tt_shape_count(&t->shape) != n) {
        char a[TT_SHAPE_TEXT];
        return TT_FAIL(g->ctx, TT_ESHAPE, "eval: '%s' is %s, but there is room for %lld elements",
                       t->node->name, tt_shape_text(&t->shape, a), (long long)n);
    }
    if (g->eval == NULL)
        g->eval = tt_session_new(g);
    if (g->eval == NULL)
        return tt_status_of(g->ctx);
    tt_fetch fetch = {t, out, (size_t)n * tt_dtype_bytes(t->dtype)};
    return tt_run(g->eval, .fetches = &fetch, .n_fetches = 1);
}
