/*
 * placed.c - a client's graph on the server: which task computes each node, and runs.
 *
 * A node is computed by the task of its pin, or of what it is colocated with; an update by the task
 * of its variable; all else by the server that the client talks to. If all is its own, a run is a
 * run of a session; else the run is cut into segments (partition.h, placed_run.c).
 */
#include "serve/placed.h"
#include "base/ctx.h"
#include <stdio.h>
#include <string.h>

#define MAX_VALUES 65536 // feeds, fetches or targets of a run

// ---- tasks of nodes --------------------------------------------------------------------------

static tt_status check_device(tti_placed *p, const tt_node *n)
{
    char device[TT_DEVICE_NAME_MAX], list[TTI_DEVICE_LIST];
    tt_device_name pin = n->pin;
    pin.job[0] = '\0';
    pin.replica = pin.task = -1;
    if (pin.type[0] == '\0' || tti_device_match(&p->ctx->top, &pin) != NULL)
        return TT_OK;
    tt_device_print(&n->pin, device);
    return TT_FAIL(p->ctx, TT_EINVAL, "'%s' is pinned to %s, but %s has %s", n->name, device,
                   p->client->host->task, tti_device_list(&p->ctx->top, list));
}

static tt_status two_tasks(tti_placed *p, const tt_node *a, int ta, const tt_node *b, int tb,
                           const char *why)
{
    const tti_spec_task *x = &p->client->host->spec.tasks[ta],
                        *y = &p->client->host->spec.tasks[tb];
    return TT_FAIL(p->ctx, TT_EINVAL,
                   "'%s' is pinned to /job:%s/task:%d, but '%s', which it %s, is on "
                   "/job:%s/task:%d",
                   a->name, x->job, x->index, b->name, why, y->job, y->index);
}

static tt_status place_pins(tti_placed *p, bool *all_own)
{
    tti_host *h = p->client->host;
    tt_graph *g = p->g;
    const tt_node **leader = tti_calloc(p->ctx, (size_t)g->n_colocations + 1,
                                        sizeof(*leader)); // by group: who has a pin
    tt_status st = leader == NULL ? TT_ENOMEM : TT_OK;
    for (int64_t i = 0; i < g->n_nodes && st == TT_OK; i++) {
        const tt_node *n = g->nodes[i];
        p->task[i] = h->self;
        if (n->has_pin)
            st = tti_spec_place(p->ctx, &h->spec, h->self, &n->pin, n->name, &p->task[i]);
        if (st == TT_OK && n->has_pin && p->task[i] == h->self)
            st = check_device(p, n);
        if (st != TT_OK || n->colocation < 0 || !n->has_pin || n->pin.job[0] == '\0')
            continue;
        const tt_node *first = leader[n->colocation];
        if (first != NULL && p->task[first->id] != p->task[i])
            st = two_tasks(p, n, p->task[i], first, p->task[first->id], "is colocated with");
        leader[n->colocation] = n;
    }
    for (int64_t i = 0; i < g->n_nodes && st == TT_OK; i++) {
        const tt_node *n = g->nodes[i];
        const tt_node *first = n->colocation >= 0 ? leader[n->colocation] : NULL;
        if (first != NULL)
            p->task[i] = p->task[first->id];
    }
    for (int64_t i = 0; i < g->n_nodes && st == TT_OK; i++) {
        const tt_node *n = g->nodes[i];
        for (int k = 0; k < n->n_in && st == TT_OK; k++) {
            const tt_node *var = n->in[k]->node;
            if (!tti_writes(n, k))
                continue;
            bool pinned = n->has_pin && n->pin.job[0] != '\0';
            if (pinned && p->task[i] != p->task[var->id])
                st = two_tasks(p, n, p->task[i], var, p->task[var->id], "writes");
            p->task[i] = p->task[var->id];
        }
        *all_own &= p->task[i] == h->self || n->op == &tti_op_const || n->op == &tti_op_feed;
    }
    tti_free(p->ctx, leader);
    return st;
}

// What this task would hold more for the graph is within its limit.
static tt_status check_variables(tti_placed *p)
{
    uint64_t more = 0;
    for (int64_t i = 0; i < p->g->n_nodes; i++) {
        const tt_node *n = p->g->nodes[i];
        if (n->op != &tti_op_variable || p->task[i] != p->client->host->self ||
            tti_store_find(p->client->container->store, n->name) != NULL)
            continue;
        uint64_t bytes = (uint64_t)tt_shape_count(&n->out->shape) * tt_dtype_bytes(n->out->dtype);
        if (__builtin_add_overflow(more, bytes, &more))
            more = UINT64_MAX;
    }
    return more == 0 ? TT_OK : tti_state_room(p->client, more, "the graph's variables");
}

// Sources that hold no state go wherever they are needed.
static void free_sources(tti_placed *p)
{
    for (int64_t i = 0; i < p->g->n_nodes; i++)
        if (p->g->nodes[i]->op == &tti_op_const || p->g->nodes[i]->op == &tti_op_feed)
            p->task[i] = -1;
}

tt_status tti_placed_new(tti_client *c, tt_graph *g, tti_placed **out)
{
    tti_placed *p = tti_calloc(c->ctx, 1, sizeof(*p));
    if (p == NULL)
        return TT_ENOMEM;
    *out = p;
    *p = (tti_placed){.client = c, .ctx = c->ctx, .g = g};
    size_t n_tasks = (size_t)c->host->spec.n;
    p->task = tti_calloc(c->ctx, (size_t)g->n_nodes + 1, sizeof(*p->task));
    p->homes = tti_calloc(c->ctx, n_tasks + 1, sizeof(*p->homes));
    p->home_graphs = tti_calloc(c->ctx, n_tasks + 1, sizeof(*p->home_graphs));
    bool all_own = true;
    tt_status st = p->task == NULL || p->homes == NULL || p->home_graphs == NULL
                       ? TT_ENOMEM
                       : place_pins(p, &all_own);
    st = st == TT_OK ? check_variables(p) : st;
    if (st == TT_OK && all_own) {
        for (int64_t i = 0; i < g->n_nodes; i++) {
            tt_node *n = g->nodes[i];
            tti_copy_pin(n, n);
        }
        p->session = tt_session_new(g);
        st = p->session == NULL ? tt_status_of(p->ctx) : TT_OK;
    }
    free_sources(p);
    if (c->is_isolated) // a name that nobody else has
        snprintf(p->container, sizeof(p->container), "_own-%.16s-%d-%llx", c->host->task + 5,
                 c->host->self,
                 (unsigned long long)(uintptr_t)p ^ (unsigned long long)tti_now_ns());
    else
        snprintf(p->container, sizeof(p->container), "%s", c->container->name);
    if (st != TT_OK) {
        tti_placed_free(p);
        *out = NULL;
    }
    return st;
}

static void def_free(tti_placed *p, tti_run_def *d)
{
    if (d == NULL)
        return;
    tti_partition_free(&d->parts);
    tti_free(p->ctx, d->feeds);
    tti_free(p->ctx, d);
}

void tti_placed_free(tti_placed *p)
{
    if (p == NULL)
        return;
    for (int i = 0; i < TTI_MAX_DEFS; i++)
        def_free(p, p->defs[i]);
    for (int64_t i = 0; p->home_graphs != NULL && i < p->client->host->spec.n; i++)
        tt_graph_free(p->home_graphs[i]);
    tti_free(p->ctx, p->homes);
    tti_free(p->ctx, p->home_graphs);
    tti_free(p->ctx, p->task);
    tti_free(p->ctx, p->feeds);
    tti_free(p->ctx, p->results);
    tti_free(p->ctx, p->rooms);
    tti_free(p->ctx, p->zeros);
    tti_free(p->ctx, p);
}

tt_session *tti_placed_session(tti_placed *p, tt_graph *g, int task)
{
    tti_host *h = p->client->host;
    if (task == h->self)
        return tt_session_new(g);
    char target[TTI_ADDRESS + 16];
    snprintf(target, sizeof(target), "tutti://%s", h->spec.tasks[task].address);
    tti_remote_way way = {.secret = h->key.is_given ? h->key.secret : NULL,
                          .isolate = p->client->is_isolated ? 2 : 0};
    return tti_session_new_by(
        g, TT_OPTS(tt_session_opts, .target = target, .container = p->container), &way);
}

// ---- what is run -----------------------------------------------------------------------------

static tt_status read_names(tti_placed *p, tti_reader *r, tt_tensor **out, int n, const char *what)
{
    for (int i = 0; i < n; i++) {
        char name[TTI_NAME_MAX + 16];
        tti_get_text(r, name, sizeof(name));
        if (r->failed)
            return tti_bad_message(p->client, "run");
        out[i] = tt_graph_find(p->g, name);
        if (out[i] == NULL)
            return TT_FAIL(p->ctx, TT_EINVAL, "run: the graph has no tensor '%s' to %s", name,
                           what);
    }
    return TT_OK;
}

static tt_status read_def(tti_placed *p, tti_reader *r, uint32_t number)
{
    uint32_t n[3];
    for (int i = 0; i < 3; i++)
        n[i] = tti_get_u32(r);
    if (r->failed || n[0] > MAX_VALUES || n[1] > MAX_VALUES || n[2] > MAX_VALUES)
        return tti_bad_message(p->client, "run");
    tti_run_def *d = tti_calloc(p->ctx, 1, sizeof(*d));
    if (d == NULL)
        return TT_ENOMEM;
    d->parts.ctx = p->ctx;
    d->feeds = tti_calloc(p->ctx, (size_t)n[0] + n[1] + n[2] + 1, sizeof(*d->feeds));
    tt_status st = d->feeds == NULL ? TT_ENOMEM : TT_OK;
    d->fetches = d->feeds + n[0];
    d->targets = d->fetches + n[1];
    d->n_feeds = (int)n[0];
    d->n_fetches = (int)n[1];
    d->n_targets = (int)n[2];
    st = st == TT_OK ? read_names(p, r, d->feeds, d->n_feeds, "feed") : st;
    st = st == TT_OK ? read_names(p, r, d->fetches, d->n_fetches, "fetch") : st;
    st = st == TT_OK ? read_names(p, r, d->targets, d->n_targets, "compute") : st;
    if (st != TT_OK) {
        def_free(p, d);
        return st;
    }
    def_free(p, p->defs[number]);
    p->defs[number] = d;
    return TT_OK;
}

static tt_status make_parts(tti_placed *p, tti_run_def *d)
{
    tti_partition_request q = {.graph = p->g,
                               .task = p->task,
                               .self = p->client->host->self,
                               .fetches = d->fetches,
                               .n_fetches = d->n_fetches,
                               .targets = d->targets,
                               .n_targets = d->n_targets};
    TT_TRY(tti_partition_make(&q, &d->parts));
    for (int64_t i = 0; i < d->parts.n; i++) {
        tti_segment *s = &d->parts.segments[i];
        if (s->n_fetches + s->n_targets == 0)
            continue;
        s->session = tti_placed_session(p, s->graph, s->task);
        if (s->session == NULL)
            return tt_status_of(p->ctx);
    }
    return TT_OK;
}

void tti_run_def_drop_parts(tti_run_def *d)
{
    tti_partition_free(&d->parts);
    d->is_made = false;
}

tt_status tti_placed_def(tti_placed *p, tti_reader *r, tti_run_def **out)
{
    uint32_t number = tti_get_u32(r), is_new = tti_get_u32(r);
    if (r->failed || number >= TTI_MAX_DEFS || is_new > 1)
        return tti_bad_message(p->client, "run");
    if (is_new)
        TT_TRY(read_def(p, r, number));
    tti_run_def *d = p->defs[number];
    if (d == NULL)
        return TT_FAIL(p->ctx, TT_EINVAL, "run: there is no run %u", number);
    if (!d->is_made && p->session == NULL) {
        tt_status st = make_parts(p, d);
        if (st != TT_OK) {
            tti_run_def_drop_parts(d);
            return st;
        }
    }
    d->is_made = true;
    *out = d;
    return TT_OK;
}
