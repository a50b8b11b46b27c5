/*
 * session.c - sessions: plans made on demand and kept, feeds in, fetches out.
 */
#include "run/run.h"
#include "strategy/strategy.h"
#include <string.h>

#define MAX_PLANS 64 // kept per session

// ---- life ------------------------------------------------------------------------------------

static void session_release(tt_session *s)
{
    tti_session_forget(s);
    for (int d = 0; d < s->ctx->n_devices; d++) {
        tti_device *dev = s->ctx->devices[d];
        tti_device_free(dev, s->arenas[d], s->arena_bytes[d]);
        atomic_fetch_sub(&dev->arena, s->arena_bytes[d]);
    }
    tti_free(s->ctx, s->spans);
    tti_free(s->ctx, s->rows);
    tti_free(s->ctx, s->dumped);
    tti_free(s->ctx, s->clocks);
    tti_free(s->ctx, s->targets);
    tti_free(s->ctx, s->recompute);
    pthread_mutex_destroy(&s->rows_mu);
    tti_host_free(s->ctx, s);
}

static void free_sessions(tt_graph *g)
{
    while (g->sessions != NULL)
        tt_session_free(g->sessions);
}

tt_session *tt_session_new_with(tt_graph *g, const tt_session_opts *opts)
{
    if (g == NULL || opts == NULL || tti_is_stuck(g->ctx))
        return NULL;
    tt_ctx *ctx = g->ctx;
    const char *recompute = opts->opts_size >= sizeof(*opts) ? opts->recompute : NULL;
    if (tti_recompute_check(g, recompute) != TT_OK)
        return NULL;
    tt_session *s = tti_host_alloc(ctx, sizeof(*s));
    if (s == NULL)
        return NULL;
    memset(s, 0, sizeof(*s));
    s->ctx = ctx;
    s->graph = g;
    s->store = opts->store != NULL ? opts->store : g->store != NULL ? g->store : ctx->store;
    s->hashes = opts->hashes || opts->dump != NULL;
    s->trace = opts->trace;
    s->no_fuse = opts->no_fuse || s->hashes; // a hash per node needs every node's value
    s->no_fold = opts->no_fold || s->hashes;
    pthread_mutex_init(&s->rows_mu, NULL);
    if (opts->dump != NULL)
        strncpy(s->dump, opts->dump, sizeof(s->dump) - 1);
    s->clocks = tti_calloc(ctx, (size_t)ctx->n_devices, sizeof(*s->clocks));
    if (s->trace)
        s->spans = tti_calloc(ctx, TTI_SPANS, sizeof(*s->spans));
    if (!tti_recompute_is_none(recompute))
        s->recompute = tti_strdup(ctx, recompute);
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

static tt_status variable_address(void *user, const tti_want *w, void **address)
{
    tt_session *s = user;
    tti_variable *v;
    TT_TRY(tti_store_get(s->store, w->var, w->dev, &v));
    return tti_store_bind(s->store, s->ctx, v, w, address);
}

// Where plans use a variable; by name, since another context may have made it.
static tti_device *variable_home(void *user, const tt_node *var)
{
    tt_session *s = user;
    tti_variable *v = tti_store_find(s->store, var->name);
    if (v == NULL || !v->copy[0].is_bound)
        return NULL;
    for (int i = 0; i < s->ctx->n_devices; i++)
        if (strcmp(s->ctx->devices[i]->name, v->copy[0].device) == 0)
            return s->ctx->devices[i];
    return s->ctx->devices[0];
}

size_t tti_session_needs(tt_session *s, const tti_want *w)
{
    const tti_variable *v = tti_store_find(s->store, w->var->name);
    return v == NULL ? w->bytes : tti_variable_needs(v, w);
}

static size_t variable_needs(void *user, const tti_want *w)
{
    return tti_session_needs(user, w);
}

tt_status tti_session_variable(tt_session *s, const tt_node *var, tti_variable **out)
{
    tti_device *pin = var->has_pin ? tti_device_match(s->ctx, &var->pin) : NULL;
    return tti_store_get(s->store, var, pin != NULL ? pin : s->ctx->devices[0], out);
}

static tt_status check_variable(tt_session *s, tt_tensor *var, size_t bytes, tti_variable **out)
{
    if (s == NULL)
        return TT_EINVAL;
    if (tti_is_stuck(s->ctx))
        return tt_status_of(s->ctx);
    if (!tti_is_variable(var) || var->graph != s->graph)
        return TT_FAIL(s->ctx, TT_EINVAL, "'%s' is not a variable of this session's graph",
                       tt_tensor_name(var));
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
    if (bytes > 0)
        memcpy(out, v->copy[0].data, bytes);
    return TT_OK;
}

tt_status tt_set_variable(tt_session *s, tt_tensor *var, const void *data, size_t bytes)
{
    tti_variable *v;
    TT_TRY(check_variable(s, var, bytes, &v));
    if (bytes > 0)
        memcpy(v->copy[0].data, data, bytes);
    tti_flush(v->dtype, v->copy[0].data, tt_shape_count(&v->shape));
    tti_variable_write(v, v->copy[0].data);
    atomic_fetch_add(&v->version, 1);
    return TT_OK;
}

// ---- plans -----------------------------------------------------------------------------------

static tt_status note_updates(tt_session *s, tti_plan *p)
{
    p->updated = tti_plan_alloc(p, sizeof(*p->updated) * (size_t)(p->n_nodes + 1));
    if (p->updated == NULL)
        return TT_ENOMEM;
    for (int64_t i = 0; i < p->n_nodes; i++) {
        const tti_pnode *pn = &p->nodes[i];
        for (int k = 0; pn->kind == TTI_OP && !pn->is_dropped && k < pn->n_in; k++) {
            if (!tti_writes(pn->node, k))
                continue;
            const tti_value *root = &p->values[tti_root(p, pn->in[k])];
            tti_variable *v = tti_store_find(s->store, root->tensor->node->name);
            int at = 0;
            while (at < p->n_updated && p->updated[at].variable != v)
                at++;
            if (v == NULL)
                continue; // a plan to look at
            if (at == p->n_updated)
                p->updated[p->n_updated++] = (tti_updated){.variable = v};
            p->updated[at].devices |= (uint64_t)1 << root->device;
        }
    }
    return TT_OK;
}

// The arena of each device is the largest that any plan of the session needs.
static tt_status grow_arenas(tt_session *s, const tti_plan *p)
{
    for (int d = 0; d < s->ctx->n_devices; d++) {
        size_t need = p->devices[d].arena_bytes;
        if (need <= s->arena_bytes[d])
            continue;
        tti_device *dev = s->ctx->devices[d];
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

static uint64_t plan_key(const tti_plan_request *r)
{
    uint64_t h = tti_hash64(r->targets, sizeof(*r->targets) * (size_t)r->n_targets, 0);
    int64_t more[] = {r->n_fetched,         r->rows,        r->batch.first_row,
                      r->batch.global_rows, r->batch.lanes, TTI_MAX(r->micro, 1)};
    h = tti_hash64(more, sizeof(more), h);
    return r->recompute == NULL ? h : tti_hash64(r->recompute, strlen(r->recompute), h);
}

// Plans are kept by last use, a bounded number of them; a trace still points into its plans.
static void forget_plans(tt_session *s)
{
    tti_plan **at = &s->plans;
    for (int i = 0; i < MAX_PLANS && *at != NULL; i++)
        at = &(*at)->next;
    while (*at != NULL && !s->trace) {
        tti_plan *old = *at;
        *at = old->next;
        tti_plan_free(old);
    }
}

void tti_session_forget(tt_session *s)
{
    for (tti_plan *p = s->plans, *next; p != NULL; p = next) {
        next = p->next;
        tti_plan_free(p);
    }
    s->plans = NULL;
}

// What every plan of the session has in common.
static void fill_request(tt_session *s, tti_plan_request *r)
{
    r->no_fuse = s->no_fuse;
    r->no_fold = s->no_fold;
    r->variable = variable_address;
    r->variable_home = variable_home;
    r->variable_needs = variable_needs;
    r->no_pieces = s->hashes;
    r->user = s;
}

static tt_status make_plan(tt_session *s, tti_plan_request *r, tti_plan **out)
{
    for (int i = 0; i < r->n_targets; i++)
        if (r->targets[i] == NULL || r->targets[i]->graph != s->graph)
            return TT_FAIL(s->ctx, TT_EINVAL, "output %d is not a tensor of this session's graph",
                           i);
    fill_request(s, r);
    tti_mesh mesh;
    TT_TRY(s->ctx->strategy->mesh(s->graph, &mesh));
    r->mesh = &mesh;
    tti_plan *p;
    TT_TRY(tti_plan_new(s->graph, r, &p));
    tt_status st = note_updates(s, p);
    if (st != TT_OK) {
        tti_plan_free(p);
        return st;
    }
    p->key = plan_key(r);
    p->next = s->plans;
    s->plans = p;
    forget_plans(s);
    *out = p;
    return TT_OK;
}

// The kept plan for this request, or a new one. The key is a hash of pointers and numbers: 64 bits.
static tt_status find_plan(tt_session *s, tti_plan_request *r, tti_plan **out)
{
    uint64_t key = plan_key(r);
    for (tti_plan **at = &s->plans; *at != NULL; at = &(*at)->next) {
        tti_plan *p = *at;
        if (p->key != key)
            continue;
        if (p->is_to_look && !r->to_look) { // now it is wanted for a run
            *at = p->next;
            tti_plan_free(p);
            break;
        }
        *at = p->next; // to the front
        p->next = s->plans;
        s->plans = *out = p;
        return TT_OK;
    }
    return make_plan(s, r, out);
}

// ---- runs ------------------------------------------------------------------------------------

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
        ((tt_arg *)p->feed_calls[i]->launch.in)->data =
            (char *)given->data + (size_t)pn->first_row * row;
    }
    return TT_OK;
}

const void *tti_value_data(const tt_session *s, const tti_plan *p, int value)
{
    const tti_value *root = &p->values[tti_root(p, value)];
    size_t skip = p->values[value].skip;
    if (root->memory == TTI_ARENA)
        return s->arenas[root->device] + root->offset + skip;
    return (const char *)root->fixed + skip;
}

static tt_status check_fetches(tt_session *s, const tti_plan *p, const tt_run_opts *o)
{
    for (int i = 0; i < o->n_fetches; i++) {
        const tti_value *v = &p->values[p->targets[i]];
        char a[TT_SHAPE_TEXT];
        if (o->fetches[i].bytes < v->bytes || (v->bytes > 0 && o->fetches[i].data == NULL))
            return TT_FAIL(
                s->ctx, TT_ESHAPE, "fetch of '%s': %s %s needs %zu bytes, room is for %zu",
                v->tensor->node->name, tt_dtype_name(v->dtype), tt_shape_text(&v->shape, a),
                v->bytes, o->fetches[i].data == NULL ? (size_t)0 : o->fetches[i].bytes);
    }
    return TT_OK;
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
    TT_TRY(find_plan(s, &r, &p));
    TT_TRY(grow_arenas(s, p));
    TT_TRY(check_fetches(s, p, o));
    TT_TRY(bind_feeds(s, p, o));
    tti_plan_bind(p, s->arenas);
    *p->step = (tt_step){.step = o->step,
                         .seed = s->ctx->seed,
                         .lr = o->lr,
                         .grad_scale = o->grad_scale == 0 ? 1.0f : o->grad_scale};
    TT_TRY(tti_execute(s, p));
    for (int i = 0; i < p->n_updated; i++) {
        tti_variable *v = p->updated[i].variable;
        atomic_fetch_add(&v->version, 1);
        if (v->n_copies > 1)
            tti_variable_refresh(v, s->ctx, p->updated[i].devices);
    }
    for (int i = 0; i < o->n_fetches; i++)
        if (p->values[p->targets[i]].bytes > 0)
            memcpy(o->fetches[i].data, tti_value_data(s, p, p->targets[i]),
                   p->values[p->targets[i]].bytes);
    return TT_OK;
}

#define FEW 64

tt_status tt_run_with(tt_session *s, const tt_run_opts *opts)
{
    if (s == NULL || opts == NULL)
        return TT_EINVAL;
    if (tti_is_stuck(s->ctx))
        return tt_status_of(s->ctx);
    tt_run_opts o = {0};
    memcpy(&o, opts, opts->opts_size < sizeof(o) ? opts->opts_size : sizeof(o));
    if (o.n_feeds < 0 || o.n_fetches < 0 || o.n_targets < 0 || (o.n_feeds > 0 && o.feeds == NULL) ||
        (o.n_fetches > 0 && o.fetches == NULL) || (o.n_targets > 0 && o.targets == NULL))
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
        return TT_EINVAL;
    if (tti_is_stuck(g->ctx))
        return tt_status_of(g->ctx);
    if (t == NULL || out == NULL || t->graph != g)
        return TT_FAIL(g->ctx, TT_EINVAL, "eval: the tensor is not of this graph");
    if (tt_open_axis(&t->shape) >= 0 || tt_shape_count(&t->shape) != n) {
        char a[TT_SHAPE_TEXT];
        return TT_FAIL(g->ctx, TT_ESHAPE, "eval: '%s' is %s, but room is for %lld elements",
                       t->node->name, tt_shape_text(&t->shape, a), (long long)n);
    }
    if (g->eval == NULL)
        g->eval = tt_session_new(g);
    if (g->eval == NULL)
        return tt_status_of(g->ctx);
    tt_fetch fetch = {t, out, (size_t)n * tt_dtype_bytes(t->dtype)};
    return tt_run(g->eval, .fetches = &fetch, .n_fetches = 1);
}

// ---- plans to look at ------------------------------------------------------------------------

// Without targets: every tensor that nobody reads, and every update.
static tt_status default_targets(tt_session *s, tt_tensor ***out, int *n)
{
    tt_graph *g = s->graph;
    uint8_t *read = tti_calloc(s->ctx, (size_t)g->n_nodes + 1, 1);
    tt_tensor **list = tti_calloc(s->ctx, (size_t)g->n_nodes + 1, sizeof(*list));
    if (read == NULL || list == NULL) {
        tti_free(s->ctx, read);
        tti_free(s->ctx, list);
        return TT_ENOMEM;
    }
    for (int64_t i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i]->n_in; k++)
            read[g->nodes[i]->in[k]->node->id] = 1;
    *n = 0;
    for (int64_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i]->n_out > 0 && (!read[i] || (g->nodes[i]->op->flags & TT_OP_UPDATE) != 0))
            list[(*n)++] = g->nodes[i]->out;
    tti_free(s->ctx, read);
    *out = list;
    return TT_OK;
}

char *tt_plan_print_with(tt_session *s, const tt_plan_opts *opts)
{
    if (s == NULL || opts == NULL || tti_is_stuck(s->ctx))
        return NULL;
    tt_tensor **made = NULL;
    tti_plan_request r = {.targets = opts->targets,
                          .n_targets = opts->n_targets,
                          .rows = opts->rows == 0 ? 1 : opts->rows,
                          .recompute = s->recompute,
                          .to_look = true};
    if (opts->n_targets == 0) {
        if (default_targets(s, &made, &r.n_targets) != TT_OK)
            return NULL;
        r.targets = made;
    }
    r.n_fetched = r.n_targets;
    if (opts->opts_size >= sizeof(*opts))
        r.micro = opts->micro;
    if (opts->opts_size >= sizeof(*opts) && opts->n_fetched > 0 && opts->n_targets > 0)
        r.n_fetched = TTI_MIN(opts->n_fetched, r.n_targets);
    tti_plan *p;
    char *text = NULL;
    bool found = find_plan(s, &r, &p) == TT_OK;
    fill_request(s, &r);
    if (found && tti_plan_compare(p, &r) == TT_OK)
        text = tti_plan_text(p, opts->form);
    tti_free(s->ctx, made);
    return text;
}

tt_status tti_session_plan(tt_session *s, tt_tensor *const *targets, int n_targets, int n_fetched,
                           int64_t rows, int micro)
{
    tti_plan *p;
    tti_plan_request r = {.targets = targets,
                          .n_targets = n_targets,
                          .n_fetched = n_fetched,
                          .rows = rows,
                          .micro = micro,
                          .recompute = s->recompute};
    return find_plan(s, &r, &p);
}

tt_status tt_plan_memory_get(tt_session *s, int device, tt_plan_memory *out)
{
    if (s == NULL || out == NULL)
        return TT_EINVAL;
    if (device < 0 || device >= s->ctx->n_devices || s->plans == NULL)
        return TT_FAIL(s->ctx, TT_EINVAL, "plan memory: no device %d, or no plan yet", device);
    const tti_device_plan *dp = &s->plans->devices[device];
    size_t touched = 0;
    for (size_t i = s->arena_bytes[device]; s->is_painted && i > 0 && touched == 0; i--)
        if ((uint8_t)s->arenas[device][i - 1] != s->paint)
            touched = i;
    *out = (tt_plan_memory){.variables = dp->variable_bytes,
                            .activations = dp->arena_bytes,
                            .lower_bound = dp->lower_bound,
                            .touched = touched,
                            .weights = dp->usage.weights,
                            .gradients = dp->usage.gradients,
                            .optimizer = dp->usage.optimizer,
                            .kept = dp->usage.activations,
                            .workspace = dp->usage.workspace,
                            .total = dp->variable_bytes + dp->arena_bytes,
                            .limit = s->ctx->devices[device]->limit};
    return TT_OK;
}

tt_status tt_session_paint(tt_session *s, uint8_t byte)
{
    if (s == NULL)
        return TT_EINVAL;
    for (int d = 0; d < s->ctx->n_devices; d++)
        if (s->arenas[d] != NULL)
            memset(s->arenas[d], byte, s->arena_bytes[d]);
    s->paint = byte;
    s->is_painted = true;
    return TT_OK;
}
