/*
 * place.c - a device for every plan node, and why.
 *
 * In this order: the node's pin; its colocation group (whose first pinned member decides); the
 * placement callback; the device of the variable it updates; the device of its first input that is
 * somewhere; the first device that has the kernel. Sources without a pin go where they are first
 * read; a variable that the store already has stays where it lives. With soft placement a pin that
 * cannot be met falls back, is counted and, unless silenced, told once; so does a node whose device
 * a strategy chose but which has no kernel there. What follows a node that is elsewhere for want of
 * a kernel goes where the node would be.
 */
#include "plan/plan.h"
#include <stdio.h>
#include <string.h>

typedef struct node_placer {
    tti_plan *p;
    const tti_plan_request *req;
    int *group;            // device of each colocation group; -1
    const tt_node **chief; // the node that decided it
    int *wish;             // by plan node: the device that has no kernel for it; -1
    bool told;
} node_placer;

static const char *say(tti_plan *p, const char *fmt, const char *a, const char *b)
{
    char text[256];
    int n = snprintf(text, sizeof(text), fmt, a, b);
    n = TTI_MIN(n, (int)sizeof(text) - 1);
    char *s = tti_plan_alloc(p, (size_t)n + 1);
    if (s == NULL)
        return "";
    memcpy(s, text, (size_t)n + 1);
    return s;
}

static bool has_kernel(const tti_topology *top, const tti_pnode *pn, const tti_device *d)
{
    const tt_op *op = pn->node->op;
    if (pn->kind != TTI_OP || (op->flags & (TT_OP_SOURCE | TT_OP_VIEW)) != 0)
        return true;
    return tti_has_kernel(top, pn->node, d);
}

static int *wish_of(node_placer *pl, const tti_pnode *pn)
{
    return &pl->wish[pn - pl->p->nodes];
}

// The type that a missing kernel is missing for.
static const char *type_of(const tti_pnode *pn)
{
    const tt_node *n = pn->node;
    return tt_dtype_name(n->n_out > 0 ? n->outs[0]->dtype : n->in[0]->dtype);
}

static tt_status no_kernel(node_placer *pl, const tti_pnode *pn)
{
    const tti_topology *top = pl->p->top;
    char list[TTI_DEVICE_LIST];
    bool has_cpu = false;
    for (int d = 0; d < top->n_devices; d++)
        has_cpu |= top->devices[d]->backend == &tti_backend_cpu;
    return TT_FAIL(pl->p->ctx, TT_EUNSUPPORTED, "%s '%s': there is no kernel for %s on %s%s",
                   pn->node->op->name, pn->node->name, type_of(pn), tti_device_list(top, list),
                   has_cpu ? "" : "; add cpu:0 to the devices to run it there");
}

// bound is how the node came to its wish: "is pinned to", "belongs to".
static tt_status fall_back(node_placer *pl, tti_pnode *pn, const char *bound, const char *wish,
                           const char *why)
{
    tti_plan *p = pl->p;
    if (p->top->soft == TT_SOFT_OFF)
        return TT_FAIL(p->ctx, TT_EINVAL, "%s '%s' %s %s, %s, and soft placement is off",
                       pn->node->op->name, pn->node->name, bound, wish, why);
    p->fallbacks++;
    if (p->top->soft == TT_SOFT_WARN && !pl->told)
        TT_LOG(p->ctx, TT_WARN, "%s '%s' %s %s, %s; placed elsewhere (reported once)",
               pn->node->op->name, pn->node->name, bound, wish, why);
    pl->told = true;
    pn->reason = say(p, "soft: %s, %s", wish, why);
    return TT_OK;
}

// Tries to follow a pin; pn->device stays -1 when soft placement has to decide.
static tt_status follow(node_placer *pl, tti_pnode *pn, const tt_device_name *pin,
                        const char *reason)
{
    char wish[TT_DEVICE_NAME_MAX];
    tt_device_print(pin, wish);
    tti_device *d = tti_device_match(pl->p->top, pin);
    if (d == NULL)
        return fall_back(pl, pn, "is pinned to", wish, "which is not among the context's devices");
    if (!has_kernel(pl->p->top, pn, d)) {
        *wish_of(pl, pn) = d->index;
        return fall_back(pl, pn, "is pinned to", wish,
                         say(pl->p, "which has no kernel for %s%s", type_of(pn), ""));
    }
    pn->device = d->index;
    pn->reason = reason;
    return TT_OK;
}

// Colocation groups: the pins of their members must agree.
static tt_status place_groups(node_placer *pl)
{
    tti_plan *p = pl->p;
    for (int64_t i = 0; i < p->n_nodes; i++) {
        tti_pnode *pn = &p->nodes[i];
        int g = pn->node->colocation;
        if (pn->kind != TTI_OP || g < 0 || !pn->node->has_pin)
            continue;
        tti_device *d = tti_device_match(p->top, &pn->node->pin);
        if (d == NULL || !has_kernel(p->top, pn, d))
            continue; // soft placement is told when the node's turn comes
        if (pl->chief[g] != NULL && pl->group[g] != d->index)
            return TT_FAIL(p->ctx, TT_EINVAL,
                           "'%s' is pinned to %s but colocated with '%s', which is pinned to %s",
                           pn->node->name, d->name, pl->chief[g]->name,
                           p->top->devices[pl->group[g]]->name);
        pl->group[g] = d->index;
        pl->chief[g] = pn->node;
    }
    return TT_OK;
}

static int device_of_inputs(const node_placer *pl, const tti_pnode *pn, const char **from)
{
    const tti_plan *p = pl->p;
    for (int i = 0; i < pn->n_in; i++) {
        const tti_value *v = &p->values[pn->in[i]];
        const tti_pnode *maker = &p->nodes[v->node];
        if (v->memory == TTI_CONSTANT || maker->device < 0)
            continue;
        *from = maker->node->name;
        return pl->wish[v->node] >= 0 ? pl->wish[v->node] : maker->device;
    }
    return -1;
}

static tt_status place_node(node_placer *pl, tti_pnode *pn)
{
    tti_plan *p = pl->p;
    tt_ctx *ctx = p->ctx;
    const tt_node *n = pn->node;
    if (n->has_pin && pn->kind == TTI_OP)
        TT_TRY(follow(pl, pn, &n->pin, "pin"));
    const char *kept = pn->reason;
    if (pn->device < 0 && n->colocation >= 0 && pl->chief[n->colocation] != NULL) {
        pn->device = pl->group[n->colocation];
        pn->reason = say(p, "colocated with %s%s", pl->chief[n->colocation]->name, "");
    }
    if (pn->device < 0 && !n->has_pin && p->graph->place != NULL && pn->kind == TTI_OP) {
        const char *text = p->graph->place(p->graph->place_user, n);
        tt_device_name pin;
        if (text != NULL) {
            TT_TRY(tt_device_parse(ctx, text, &pin));
            TT_TRY(follow(pl, pn, &pin, "placement callback"));
        }
    }
    if (pn->device < 0 && (n->op->flags & TT_OP_SOURCE) != 0 && pn->kind == TTI_OP)
        return TT_OK; // placed by its readers
    if (pn->device < 0) {
        const char *from = NULL;
        int d = device_of_inputs(pl, pn, &from);
        if (d >= 0 && has_kernel(p->top, pn, p->top->devices[d])) {
            pn->device = d;
            pn->reason = say(p, "input %s%s", from, "");
        } else if (d >= 0) {
            *wish_of(pl, pn) = d;
            pn->reason = kept =
                say(p, "%s has no kernel for %s", p->top->devices[d]->name, type_of(pn));
        }
    }
    for (int d = 0; pn->device < 0 && d < p->top->n_devices; d++) {
        if (has_kernel(p->top, pn, p->top->devices[d])) {
            pn->device = d;
            pn->reason = "first device with the kernel";
        }
    }
    if (pn->device < 0)
        return no_kernel(pl, pn);
    if (kept != NULL)
        pn->reason = kept;
    if (n->colocation >= 0 && pl->chief[n->colocation] == NULL) {
        pl->chief[n->colocation] = n;
        pl->group[n->colocation] = pn->device;
    }
    return TT_OK;
}

// Sources go to their first reader, updates (which must be with their variable) first of all.
static void place_sources(node_placer *pl)
{
    tti_plan *p = pl->p;
    for (int64_t i = 0; i < p->n_nodes; i++) {
        tti_pnode *pn = &p->nodes[i];
        for (int k = 0; k < pn->n_in && !pn->is_dropped; k++) {
            tti_pnode *maker = &p->nodes[p->values[pn->in[k]].node];
            if (maker->device >= 0)
                continue;
            maker->device = TTI_MAX(pn->device, 0);
            if (maker->reason == NULL)
                maker->reason = say(p, "read by %s%s", pn->node->name, "");
        }
    }
    for (int64_t i = 0; i < p->n_nodes; i++) {
        tti_pnode *pn = &p->nodes[i];
        if (pn->device < 0) {
            pn->device = 0;
            pn->reason = "first device";
        }
    }
}

// Variables that the store has stay there; a pin elsewhere cannot be met.
static tt_status place_homes(node_placer *pl)
{
    tti_plan *p = pl->p;
    for (int64_t i = 0; i < p->n_nodes; i++) {
        tti_pnode *pn = &p->nodes[i];
        if (pn->kind != TTI_OP || pn->node->op != &tti_op_variable || pn->device >= 0 ||
            pl->req->variable_home == NULL)
            continue;
        tti_device *home = pl->req->variable_home(pl->req->user, pn->node);
        if (home == NULL)
            continue;
        tti_device *pin = pn->node->has_pin ? tti_device_match(p->top, &pn->node->pin) : NULL;
        if (pin != NULL && pin != home)
            TT_TRY(fall_back(pl, pn, "is pinned to", pin->name,
                             "but its value already lives elsewhere"));
        pn->device = home->index;
        pn->reason = pin == home ? "pin" : "the device of its value in the store";
    }
    return TT_OK;
}

// A node that a strategy gave a device, which has no kernel for it: any other that has.
static tt_status place_elsewhere(node_placer *pl, tti_pnode *pn)
{
    const tti_topology *top = pl->p->top;
    const tti_device *d = top->devices[pn->device];
    int to = -1;
    if (d->is_away || has_kernel(top, pn, d))
        return TT_OK;
    for (int i = 0; to < 0 && i < top->n_devices; i++)
        if (top->devices[i]->task == d->task && has_kernel(top, pn, top->devices[i]))
            to = i;
    if (to < 0)
        return no_kernel(pl, pn);
    pn->device = to;
    return fall_back(pl, pn, "belongs to", d->name,
                     say(pl->p, "which has no kernel for %s%s", type_of(pn), ""));
}

// An update runs where its variable is.
static void follow_variables(node_placer *pl)
{
    tti_plan *p = pl->p;
    for (int64_t i = 0; i < p->n_nodes && !p->is_on_mesh; i++) {
        tti_pnode *pn = &p->nodes[i];
        if (pn->kind != TTI_OP || (pn->node->op->flags & TT_OP_UPDATE) == 0)
            continue;
        pn->device = p->nodes[p->values[tti_root(p, pn->in[0])].node].device;
        pn->reason =
            say(p, "variable %s%s", p->values[tti_root(p, pn->in[0])].tensor->node->name, "");
        for (int k = 1; k < pn->n_in; k++) // its state variables too, unless they live elsewhere
            if (tti_writes(pn->node, k))
                p->nodes[p->values[tti_root(p, pn->in[k])].node].device = pn->device;
    }
}

tt_status tti_plan_place(tti_plan *p, const tti_plan_request *req)
{
    int groups = p->graph->n_colocations + 1;
    node_placer pl = {.p = p, .req = req};
    pl.group = tti_plan_alloc(p, sizeof(int) * (size_t)groups);
    pl.chief = tti_plan_alloc(p, sizeof(*pl.chief) * (size_t)groups);
    pl.wish = tti_plan_alloc(p, sizeof(int) * (size_t)(p->n_nodes + 1));
    if (pl.group == NULL || pl.chief == NULL || pl.wish == NULL)
        return TT_ENOMEM;
    memset(pl.wish, -1, sizeof(int) * (size_t)(p->n_nodes + 1));
    for (int64_t i = 0; i < p->n_nodes; i++)
        if (!p->nodes[i].is_dropped && p->nodes[i].device >= 0)
            TT_TRY(place_elsewhere(&pl, &p->nodes[i]));
    TT_TRY(place_groups(&pl));
    TT_TRY(place_homes(&pl));
    for (int64_t i = 0; i < p->n_nodes; i++)
        if (!p->nodes[i].is_dropped && p->nodes[i].device < 0)
            TT_TRY(place_node(&pl, &p->nodes[i]));
    place_sources(&pl);
    follow_variables(&pl);
    for (int64_t i = 0; i < p->n_values; i++)
        if (!p->values[i].is_piece)
            p->values[i].device = p->nodes[p->values[i].node].device;
    return tt_status_of(p->ctx);
}
