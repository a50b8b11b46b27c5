/*
 * plans.c - a session's plans: made on demand, kept by last use, and looked at.
 */
#include "run/run.h"
#include "run/testing.h"
#include "strategy/strategy.h"
#include <string.h>

#define MAX_PLANS 64 // kept per session

// ---- variables, as plans ask for them --------------------------------------------------------

static tt_status variable_addresses(void *user, const tti_want *w, int n, void **addresses)
{
    tt_session *s = user;
    return tti_store_bind(s->store, s->ctx, w, n, addresses);
}

// Where plans use a variable; by name, since another context may have made it.
static tti_device *variable_home(void *user, const tt_node *var)
{
    tt_session *s = user;
    tti_variable *v = tti_store_find(s->store, var->name);
    char name[32];
    if (v == NULL || !tti_variable_home(v, s->ctx, name))
        return NULL;
    for (int i = 0; i < s->ctx->top.n_devices; i++)
        if (strcmp(s->ctx->top.devices[i]->name, name) == 0)
            return s->ctx->top.devices[i];
    return s->ctx->top.devices[0];
}

size_t tti_session_needs(tt_session *s, const tti_want *w)
{
    tti_variable *v = tti_store_find(s->store, w->var->name);
    return v == NULL ? w->bytes : tti_variable_needs(v, s->ctx, w);
}

static size_t variable_needs(void *user, const tti_want *w)
{
    return tti_session_needs(user, w);
}

// ---- making and keeping ----------------------------------------------------------------------

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
    r->top = r->top != NULL ? r->top : s->top;
    r->hook = s->hook.fn != NULL ? &s->hook : NULL;
    r->no_fuse = s->no_fuse;
    r->no_fold = s->no_fold;
    r->variables = variable_addresses;
    r->variable_home = variable_home;
    r->variable_needs = variable_needs;
    r->no_pieces = s->hashes;
    r->user = s;
}

// A plan that the session does not keep yet.
static tt_status new_plan(tt_session *s, tti_plan_request *r, tti_plan **out)
{
    for (int i = 0; i < r->n_targets; i++)
        if (r->targets[i] == NULL || r->targets[i]->graph != s->graph)
            return TT_FAIL(s->ctx, TT_EINVAL, "output %d does not belong to this session's graph",
                           i);
    fill_request(s, r);
    tti_mesh mesh;
    TT_TRY(r->top->strategy->mesh(r->top, s->graph, &mesh));
    r->mesh = &mesh;
    tti_plan *p;
    TT_TRY(tti_plan_new(s->graph, r, &p));
    tt_status st = tti_store_note_uses(s->store, s->ctx, p);
    if (st == TT_OK && !r->dry_run)
        st = tti_hook_open(s, p);
    if (st != TT_OK) {
        tti_plan_free(p);
        return st;
    }
    *out = p;
    return TT_OK;
}

static tt_status make_plan(tt_session *s, tti_plan_request *r, tti_plan **out)
{
    tti_plan *p;
    TT_TRY(new_plan(s, r, &p));
    p->key = plan_key(r);
    p->next = s->plans;
    s->plans = p;
    forget_plans(s);
    *out = p;
    return TT_OK;
}

// The kept plan for this request, or a new one. The key is a hash of pointers and numbers: 64 bits.
tt_status tti_find_plan(tt_session *s, tti_plan_request *r, tti_plan **out)
{
    uint64_t key = plan_key(r);
    for (tti_plan **at = &s->plans; *at != NULL; at = &(*at)->next) {
        tti_plan *p = *at;
        if (p->key != key)
            continue;
        if (p->is_dry_run && !r->dry_run) { // now it is wanted for a run
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

// The request of a plan to look at; *made, to be freed, has its targets where opts names none.
static tt_status look_request(tt_session *s, const tt_plan_opts *opts, tti_plan_request *r,
                              tt_tensor ***made)
{
    *made = NULL;
    *r = (tti_plan_request){.targets = opts->targets,
                            .n_targets = opts->n_targets,
                            .rows = opts->rows == 0 ? 1 : opts->rows,
                            .micro = opts->micro,
                            .recompute = s->recompute,
                            .dry_run = true};
    if (opts->n_targets == 0) {
        TT_TRY(default_targets(s, made, &r->n_targets));
        r->targets = *made;
    }
    r->n_fetched = r->n_targets;
    if (opts->n_fetched > 0 && opts->n_targets > 0)
        r->n_fetched = TTI_MIN(opts->n_fetched, r->n_targets);
    return TT_OK;
}

char *tt_plan_print_with(tt_session *s, const tt_plan_opts *opts)
{
    if (s == NULL || tti_is_stuck(s->ctx))
        return NULL;
    TTI_OPTS_OWN(s->ctx, "plan", tt_plan_opts, opts);
    if (opts == NULL)
        return NULL;
    tt_tensor **made;
    tti_plan_request r;
    if (look_request(s, opts, &r, &made) != TT_OK)
        return NULL;
    tti_plan *p;
    char *text = NULL;
    bool found = tti_find_plan(s, &r, &p) == TT_OK;
    fill_request(s, &r);
    if (found && tti_plan_compare(p, &r) == TT_OK)
        text = tti_plan_text(p, opts->form);
    tti_free(s->ctx, made);
    return text;
}

tt_status tti_session_look(tt_session *s, const tt_plan_opts *opts, const tti_topology *top,
                           struct tti_stage_watch *watch, tti_plan **out)
{
    tt_tensor **made;
    tti_plan_request r;
    TT_TRY(look_request(s, opts, &r, &made));
    r.top = top;
    r.watch = watch;
    tti_plan *p;
    tt_status st = new_plan(s, &r, &p);
    if (st == TT_OK) {
        r.watch = NULL; // saw it
        st = tti_plan_compare(p, &r);
        if (st == TT_OK)
            *out = p;
        else
            tti_plan_free(p);
    }
    tti_free(s->ctx, made);
    return st;
}

tt_status tti_session_set_speeds(tt_session *s, const double *speed)
{
    tti_topology top;
    TT_TRY(tti_topology_copy(s->ctx, s->top, &top));
    memcpy(top.speed, speed, sizeof(*speed) * (size_t)top.n_devices);
    tti_session_forget(s);
    tti_topology_free(s->ctx, &s->own_top);
    s->own_top = top;
    s->top = &s->own_top;
    return TT_OK;
}

tt_status tti_session_plan(tt_session *s, const tti_topology *top, tt_tensor *const *targets,
                           int n_targets, int n_fetched, int64_t rows, int micro, bool dry_run)
{
    tti_plan *p;
    tti_plan_request r = {.targets = targets,
                          .n_targets = n_targets,
                          .n_fetched = n_fetched,
                          .rows = rows,
                          .micro = micro,
                          .top = top,
                          .recompute = s->recompute,
                          .dry_run = dry_run};
    return tti_find_plan(s, &r, &p);
}

tt_status tt_plan_memory_get_sized(tt_session *s, int device, tt_plan_memory *out, size_t size)
{
    if (s == NULL)
        return TT_EINVAL;
    if (out == NULL)
        return TT_FAIL(s->ctx, TT_EINVAL, "plan memory: the room for it is NULL");
    if (device < 0 || device >= s->ctx->top.n_devices || s->plans == NULL)
        return TT_FAIL(s->ctx, TT_EINVAL, "plan memory: no device %d, or no plan yet", device);
    const tti_device_plan *dp = &s->plans->devices[device];
    tt_plan_memory m = {.variables = dp->variable_bytes,
                        .activations = dp->arena_bytes + dp->fixed_bytes,
                        .lower_bound = dp->lower_bound,
                        .weights = dp->usage.weights,
                        .gradients = dp->usage.gradients,
                        .optimizer = dp->usage.optimizer,
                        .kept = dp->usage.activations,
                        .workspace = dp->usage.workspace,
                        .total = tti_plan_bytes(dp),
                        .limit = s->ctx->top.devices[device]->limit};
    tti_out_copy(out, size, &m, sizeof(m));
    return TT_OK;
}

size_t tti_session_touched(tt_session *s, int device)
{
    bool seen = s->is_painted && !tti_has_streams(s->ctx->top.devices[device]);
    for (size_t i = s->arena_bytes[device]; seen && i > 0; i--)
        if ((uint8_t)s->arenas[device][i - 1] != s->paint)
            return i;
    return 0;
}

void tti_session_paint(tt_session *s, uint8_t byte)
{
    for (int d = 0; d < s->ctx->top.n_devices; d++)
        if (s->arenas[d] != NULL && !tti_has_streams(s->ctx->top.devices[d]) &&
            !s->ctx->top.devices[d]->is_away)
            memset(s->arenas[d], byte, s->arena_bytes[d]);
    s->paint = byte;
    s->is_painted = true;
}
