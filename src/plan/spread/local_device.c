/*
 * local_device.c - which local device of a replica, or which stage of a pipeline, does each node.
 *
 * A pin "local:1" says it; the backward part of a node goes with the node, an update with its
 * variable, a variable with its first reader, everything else with its inputs; what comes before
 * all pins is on local:0. A pipeline without
 * pins is cut into stages of about equal cost, at places where one value is handed on; where
 * variables already live in the store, stages follow them, so that evaluation moves nothing.
 */
#include "plan/spread/spread.h"
#include <string.h>

#define UNKNOWN (-1000) // other stages below zero: -1 - device, by a full pin

static bool is_source(const tti_pnode *pn)
{
    return pn->kind == TTI_OP && (pn->node->op->flags & TT_OP_SOURCE) != 0;
}

static bool is_update(const tti_pnode *pn)
{
    return pn->kind == TTI_OP && (pn->node->op->flags & TT_OP_UPDATE) != 0;
}

static bool is_variable(const tti_pnode *pn)
{
    return pn->kind == TTI_OP && pn->node->op == &tti_op_variable;
}

static bool is_forward(const tti_spreader *s, int64_t i)
{
    const tti_pnode *pn = &s->nodes[i];
    return s->mode[i] == TTI_MODE_ROWS && pn->node->origin == NULL && !pn->is_recomputed &&
           !is_source(pn);
}

static int n_stages(const tti_spreader *s)
{
    return s->mesh->n_stages > 0 ? s->mesh->n_stages : s->n_pipe;
}

int tti_spread_device(const tti_spreader *s, int node, int replica)
{
    if (s->mesh->n_axes == 0)
        return -1;
    int stage = s->stage[node];
    if (stage < 0)
        return -1 - stage;
    return tti_mesh_device(s->mesh, replica, stage % s->n_pipe);
}

tti_layout_entry tti_spread_pipe(const tti_spreader *s, int node)
{
    if (s->mesh->n_axes == 0 || s->n_pipe < 2 || s->stage[node] < 0)
        return (tti_layout_entry){.dim = TTI_DIM_FLAT};
    return (tti_layout_entry){TT_LAYOUT_ONE, TTI_DIM_FLAT, (int16_t)(s->stage[node] % s->n_pipe)};
}

// ---- pins ------------------------------------------------------------------------------------

static tt_status follow_pin(tti_spreader *s, int i)
{
    tt_ctx *ctx = s->p->ctx;
    const tt_node *n = s->nodes[i].node;
    if (strcmp(n->pin.type, "local") == 0) {
        if (n->pin.index < 0 || n->pin.index >= n_stages(s))
            return TT_FAIL(ctx, TT_EINVAL, "%s '%s' is pinned to local:%d, but a replica has %d %s",
                           n->op->name, n->name, n->pin.index, n_stages(s),
                           s->mesh->n_stages > 0 ? "stages" : "devices");
        s->stage[i] = n->pin.index;
        return TT_OK;
    }
    tti_device *d = tti_device_match(s->p->top, &n->pin);
    char wish[TT_DEVICE_NAME_MAX], list[TTI_DEVICE_LIST];
    tt_device_print(&n->pin, wish);
    if (s->n_replicas > 1 && s->mode[i] == TTI_MODE_ROWS)
        return TT_FAIL(ctx, TT_EINVAL,
                       "%s '%s' is pinned to %s, but there are %d replicas of it; use pins "
                       "relative to the replica, local:0 to local:%d",
                       n->op->name, n->name, wish, s->n_replicas, s->n_pipe - 1);
    if (d == NULL)
        return TT_FAIL(ctx, TT_EINVAL, "%s '%s' is pinned to %s, but there is only %s", n->op->name,
                       n->name, wish, tti_device_list(s->p->top, list));
    s->stage[i] = -1 - d->index;
    for (int l = 0; s->n_replicas == 1 && l < s->n_pipe; l++)
        if (tti_mesh_device(s->mesh, 0, l) == d->index)
            s->stage[i] = l;
    if (s->n_replicas > 1)
        s->mode[i] = TTI_MODE_ONE;
    return TT_OK;
}

// ---- balance ---------------------------------------------------------------------------------

// Nanoseconds of one node, as its kernel estimates them.
static double node_cost(tti_spreader *s, const tti_pnode *pn)
{
    tti_plan *p = s->p;
    tt_arg *args = tti_calloc(p->ctx, (size_t)(pn->n_in + pn->n_out + 1), sizeof(*args));
    tt_prep *prep = tti_calloc(p->ctx, 1, sizeof(*prep));
    double ns = 0;
    bool computes = (pn->node->op->flags & (TT_OP_SOURCE | TT_OP_VIEW)) == 0 &&
                    tti_has_kernel(p->top, pn->node, p->top->devices[0]);
    if (args != NULL && prep != NULL && computes) {
        for (int k = 0; k < pn->n_in + pn->n_out; k++)
            tti_arg_fill(&args[k], &s->values[k < pn->n_in ? pn->in[k] : pn->out + k - pn->n_in]);
        if (tti_prepare(p, pn->node, 0, &p->lanes, args, args + pn->n_in, prep) == TT_OK)
            ns = prep->ns;
    }
    tti_free(p->ctx, args);
    tti_free(p->ctx, prep);
    return ns;
}

void tti_spread_costs(tti_spreader *s, double *forward, double *backward)
{
    for (int64_t i = 0; i < s->n_nodes; i++) {
        const tti_pnode *pn = &s->nodes[i];
        if (s->mode[i] != TTI_MODE_ROWS || s->stage[i] < 0)
            continue;
        bool back = pn->node->origin != NULL || pn->is_recomputed;
        (back ? backward : forward)[s->stage[i]] += node_cost(s, pn);
    }
}

// The chain that is cut: forward nodes on rows, in order.
static int list_chain(const tti_spreader *s, int *chain)
{
    int n = 0;
    for (int64_t i = 0; i < s->n_nodes; i++)
        if (is_forward(s, i))
            chain[n++] = (int)i;
    return n;
}

/*
 * A cut before element i of the chain is allowed where one value is handed on: made before it and
 * read from there on. Sums over rows may be handed on besides.
 */
static void find_cuts(const tti_spreader *s, const int *chain, int n, int *last, uint8_t *can_cut)
{
    int *place = last + s->n_values; // by old node: its place in the chain + 1
    memset(last, 0, sizeof(int) * (size_t)(s->n_values + s->n_nodes));
    for (int i = 0; i < n; i++)
        place[chain[i]] = i + 1;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < s->nodes[chain[i]].n_in; k++)
            last[s->nodes[chain[i]].in[k]] = i;
    int *open = last + s->n_values + s->n_nodes; // values handed on at each place: differences
    memset(open, 0, sizeof(int) * (size_t)(n + 2));
    for (int i = 0; i < n; i++) {
        const tti_pnode *pn = &s->nodes[chain[i]];
        for (int k = 0; k < pn->n_out; k++) {
            int v = pn->out + k;
            if (!tti_is_split(&s->values[v]) || last[v] <= i)
                continue;
            open[i + 1]++;
            open[last[v] + 1]--;
        }
    }
    int now = 0;
    for (int i = 0; i < n; i++) {
        now += open[i];
        can_cut[i] = now <= 1;
    }
}

static tt_status balance(tti_spreader *s, const int *of_node)
{
    tt_ctx *ctx = s->p->ctx;
    size_t n_nodes = (size_t)s->n_nodes + 1;
    int *chain = tti_calloc(ctx, 3 * n_nodes, sizeof(int)), *stage = chain + n_nodes;
    int *place = stage + n_nodes;
    int *last = tti_calloc(ctx, (size_t)s->n_values + 2 * n_nodes + 4, sizeof(int));
    double *cost = tti_calloc(ctx, n_nodes, sizeof(*cost));
    uint8_t *can_cut = tti_calloc(ctx, n_nodes, 1);
    tt_status st = TT_ENOMEM;
    if (chain == NULL || last == NULL || cost == NULL || can_cut == NULL)
        goto done;
    int n = list_chain(s, chain);
    for (int i = 0; i < n; i++)
        place[chain[i]] = i + 1;
    for (int64_t i = 0; i < s->n_nodes; i++) { // of a node and its backward part
        const tt_node *node = s->nodes[i].node;
        int of = node->origin == NULL ? (int)i : of_node[node->origin->id] - 1;
        if (s->mode[i] == TTI_MODE_ROWS && of >= 0 && place[of] > 0)
            cost[place[of] - 1] += node_cost(s, &s->nodes[i]);
    }
    find_cuts(s, chain, n, last, can_cut);
    st = tt_status_of(ctx);
    if (st == TT_OK && !tti_balance(n, cost, can_cut, n_stages(s), stage)) {
        int cuts = 0;
        for (int i = 1; i < n; i++)
            cuts += can_cut[i];
        st = TT_FAIL(
            ctx, TT_EINVAL,
            "pipeline: %d stages, but the model can be split into at most %d (where a single value "
            "is passed on); use fewer stages, or pin layers to local:0, local:1",
            n_stages(s), cuts + 1);
    }
    for (int i = 0; st == TT_OK && i < n; i++)
        s->stage[chain[i]] = stage[i];
done:
    tti_free(ctx, chain);
    tti_free(ctx, last);
    tti_free(ctx, cost);
    tti_free(ctx, can_cut);
    return st;
}

// ---- following -------------------------------------------------------------------------------

// The local device where the store has a variable in use; UNKNOWN: nowhere.
static int home_of(const tti_spreader *s, const tti_plan_request *req, const tti_pnode *pn)
{
    tti_device *home = req->variable_home == NULL || !is_variable(pn)
                           ? NULL
                           : req->variable_home(req->user, pn->node);
    return home != NULL && home->index < s->n_replicas * s->n_pipe
               ? tti_mesh_coordinate(s->mesh, home->index, TTI_AXIS_PIPE)
               : UNKNOWN;
}

static int stage_of_inputs(const tti_spreader *s, const tti_pnode *pn)
{
    int stage = UNKNOWN;
    for (int k = 0; k < pn->n_in; k++) {
        int maker = s->values[pn->in[k]].node, found = s->stage[maker];
        if (found == UNKNOWN || found < 0 || s->nodes[maker].is_dropped)
            continue;
        if (s->mesh->n_stages == 0)
            return found;
        stage = TTI_MAX(stage, found);
    }
    return stage;
}

// Gradients that one stage makes are added there, so that one value is sent back, not several.
static int stage_of_sum(const tti_spreader *s, const tti_pnode *pn)
{
    int stage = UNKNOWN;
    if (s->mesh->n_stages == 0 || pn->kind != TTI_OP || pn->n_in < 2 || pn->node->origin == NULL ||
        (pn->node->op->flags & TT_OP_POINTWISE) == 0)
        return UNKNOWN;
    for (int k = 0; k < pn->n_in; k++) {
        int maker = s->values[pn->in[k]].node;
        if (s->nodes[maker].node->origin == NULL || s->stage[maker] < 0 ||
            (k > 0 && s->stage[maker] != stage))
            return UNKNOWN;
        stage = s->stage[maker];
    }
    return stage;
}

// The stage of the first variable an update writes that has one.
static int stage_of_written(const tti_spreader *s, const tti_pnode *pn)
{
    for (int k = 0; k < pn->n_in; k++) {
        int stage = s->stage[s->values[pn->in[k]].node];
        if (tti_writes(pn->node, k) && stage >= 0)
            return stage;
    }
    return UNKNOWN;
}

static void from_inputs(tti_spreader *s, const int *of_node, bool pins, bool updates)
{
    for (int64_t i = 0; i < s->n_nodes; i++) {
        const tti_pnode *pn = &s->nodes[i];
        bool waits =
            is_update(pn) || (s->mode[i] != TTI_MODE_ROWS && s->is_late[i]); // for variables
        if (s->stage[i] != UNKNOWN || is_source(pn) || (waits && !updates))
            continue;
        const tt_node *origin = pn->is_recomputed ? pn->node : pn->node->origin;
        int of = origin == NULL ? -1 : of_node[origin->id] - 1;
        if (is_update(pn) && stage_of_written(s, pn) >= 0)
            s->stage[i] = stage_of_written(s, pn);
        else if (stage_of_sum(s, pn) != UNKNOWN)
            s->stage[i] = stage_of_sum(s, pn);
        else if (of >= 0 && s->stage[of] != UNKNOWN)
            s->stage[i] = s->stage[of];
        else
            s->stage[i] = stage_of_inputs(s, pn);
        if (s->stage[i] == UNKNOWN && pins && is_forward(s, i))
            s->stage[i] = 0;
        for (int k = 0; is_update(pn) && k < pn->n_in; k++) { // what it writes goes with it
            int maker = s->values[pn->in[k]].node;
            bool written = is_variable(&s->nodes[maker]) && tti_writes(pn->node, k);
            if (s->stage[maker] == UNKNOWN || written)
                s->stage[maker] = s->stage[i];
        }
    }
}

// What has no stage of its own goes to its first reader.
static void from_readers(tti_spreader *s)
{
    for (int64_t i = s->n_nodes - 1; i >= 0; i--) {
        const tti_pnode *pn = &s->nodes[i];
        if (s->stage[i] == UNKNOWN || is_update(pn))
            continue;
        for (int k = 0; k < pn->n_in; k++) {
            int maker = s->values[pn->in[k]].node;
            bool fixed = s->nodes[maker].node->has_pin && s->nodes[maker].kind == TTI_OP;
            if (!fixed && (s->stage[maker] == UNKNOWN || is_source(&s->nodes[maker])))
                s->stage[maker] = s->stage[i];
        }
    }
}

static tt_status check_stages(const tti_spreader *s)
{
    int n = n_stages(s);
    for (int k = 0; s->mesh->n_stages > 0 && k < n; k++) {
        bool any = false;
        for (int64_t i = 0; i < s->n_nodes && !any; i++)
            any = s->mode[i] == TTI_MODE_ROWS && s->stage[i] == k;
        if (!any)
            return TT_FAIL(
                s->p->ctx, TT_EINVAL,
                "pipeline: stage %d of %d has no node; pin a layer to local:%d, or use %d stages",
                k, n, k, n - 1);
    }
    return TT_OK;
}

static tt_status find_stages(tti_spreader *s, const tti_plan_request *req, const int *of_node)
{
    bool pins = false, homes = false;
    for (int64_t i = 0; i < s->n_nodes; i++) {
        s->stage[i] = UNKNOWN;
        if (s->nodes[i].kind == TTI_OP && s->nodes[i].node->has_pin && !s->nodes[i].is_dropped) {
            TT_TRY(follow_pin(s, (int)i));
            pins |= s->mode[i] == TTI_MODE_ROWS;
        }
    }
    // A home says the device, which is the stage unless a device has several: those are cut anew.
    bool follow = !pins && s->mesh->n_stages == s->n_pipe;
    for (int64_t i = 0; follow && i < s->n_nodes; i++) {
        int home = home_of(s, req, &s->nodes[i]);
        homes |= home != UNKNOWN;
        if (s->stage[i] == UNKNOWN)
            s->stage[i] = home;
    }
    if (s->mesh->n_stages > 0 && !pins && !homes)
        TT_TRY(balance(s, of_node));
    from_inputs(s, of_node, pins, false);
    from_readers(s);
    from_inputs(s, of_node, pins, true);
    for (int64_t i = 0; i < s->n_nodes; i++)
        if (s->stage[i] == UNKNOWN)
            s->stage[i] = 0;
    return pins ? check_stages(s) : TT_OK;
}

tt_status tti_spread_stages(tti_spreader *s, const tti_plan_request *req)
{
    tt_ctx *ctx = s->p->ctx;
    if (s->mesh->n_axes == 0)
        return TT_OK;
    int *of_node = tti_calloc(ctx, (size_t)s->p->graph->n_nodes + 1, sizeof(int));
    if (of_node == NULL)
        return TT_ENOMEM;
    for (int64_t i = s->n_nodes - 1; i >= 0; i--) // the first: clones of recomputation follow
        if (s->nodes[i].kind == TTI_OP)
            of_node[s->nodes[i].node->id] = (int)i + 1;
    tt_status st = find_stages(s, req, of_node);
    tti_free(ctx, of_node);
    return st;
}
