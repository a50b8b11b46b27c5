/*
 * constraints.c - what a program says about where and when nodes run: device scopes, pins,
 * colocation, the placement function, control edges.
 */
#include "base/ctx.h"
#include "graph/graph.h"

// ---- device scopes, pins, colocation ---------------------------------------------------------

tt_status tt_device_push(tt_graph *g, const char *device)
{
    if (g == NULL)
        return TT_EINVAL;
    if (tti_is_stuck(g->ctx))
        return tt_status_of(g->ctx);
    if (g->n_pins == TTI_SCOPE_DEPTH)
        return TT_FAIL(g->ctx, TT_EINVAL, "device scope '%s' is nested deeper than %d", device,
                       TTI_SCOPE_DEPTH);
    tt_device_name name;
    bool has = device != NULL && device[0] != 0;
    if (has) {
        TT_TRY(tt_device_parse(g->ctx, device, &name));
        if (g->n_pins > 0 && g->has_pin[g->n_pins - 1])
            tt_device_merge(&name, &g->pins[g->n_pins - 1]);
        g->pins[g->n_pins] = name;
    }
    g->has_pin[g->n_pins++] = has;
    return TT_OK;
}

tt_status tt_device_pop(tt_graph *g)
{
    if (g == NULL || g->n_pins == 0)
        return TT_FAIL(g == NULL ? NULL : g->ctx, TT_EINVAL, "there is no open device scope");
    g->n_pins--;
    return TT_OK;
}

tt_status tt_pin(tt_tensor *t, const char *device)
{
    if (t == NULL)
        return TT_EINVAL;
    tt_ctx *ctx = t->graph->ctx;
    if (tti_is_stuck(ctx))
        return tt_status_of(ctx);
    tt_device_name name;
    TT_TRY(tt_device_parse(ctx, device, &name));
    t->node->pin = name;
    t->node->has_pin = true;
    return TT_OK;
}

tt_status tt_colocate(tt_tensor *a, tt_tensor *b)
{
    if (a == NULL || b == NULL || a->graph != b->graph)
        return TT_FAIL(tti_tensor_ctx(a != NULL ? a : b), TT_EINVAL,
                       "colocate: both tensors must belong to one graph");
    tt_graph *g = a->graph;
    int ga = a->node->colocation, gb = b->node->colocation;
    if (ga < 0 && gb < 0)
        a->node->colocation = b->node->colocation = g->n_colocations++;
    else if (ga < 0)
        a->node->colocation = gb;
    else if (gb < 0)
        b->node->colocation = ga;
    else if (ga != gb)
        for (int64_t i = 0; i < g->n_nodes; i++)
            if (g->nodes[i]->colocation == gb)
                g->nodes[i]->colocation = ga;
    return TT_OK;
}

void tt_set_placement(tt_graph *g, tt_place_fn fn, void *user)
{
    if (g == NULL)
        return;
    g->place = fn;
    g->place_user = user;
}

// ---- control edges ---------------------------------------------------------------------------

// Does the node at from come, through inputs and control edges, after the node to?
static bool depends_on(tt_graph *g, const tt_node *from, const tt_node *to, uint8_t *seen)
{
    // Edges only lead to smaller ids or along control edges; mark backwards until nothing changes.
    seen[from->id] = 1;
    bool changed = true;
    while (changed) {
        changed = false;
        for (int64_t i = g->n_nodes - 1; i >= 0; i--) {
            if (seen[i] != 1)
                continue;
            const tt_node *n = g->nodes[i];
            seen[i] = 2;
            changed = true;
            for (int k = 0; k < n->n_in; k++)
                if (seen[n->in[k]->node->id] == 0)
                    seen[n->in[k]->node->id] = 1;
            for (int k = 0; k < n->n_after; k++)
                if (seen[n->after[k]->id] == 0)
                    seen[n->after[k]->id] = 1;
        }
    }
    return seen[to->id] != 0;
}

static bool reaches(tt_graph *g, const tt_node *from, const tt_node *to, bool *out)
{
    if (from->id < to->id && from->n_after == 0) { // quick: only control edges lead to higher ids
        bool any = false;
        for (int64_t i = 0; i <= from->id && !any; i++)
            any = g->nodes[i]->n_after > 0;
        if (!any) {
            *out = false;
            return true;
        }
    }
    uint8_t *seen = tti_calloc(g->ctx, (size_t)g->n_nodes, 1);
    if (seen == NULL)
        return false;
    *out = depends_on(g, from, to, seen);
    tti_free(g->ctx, seen);
    return true;
}

tt_status tt_after(tt_tensor *t, tt_tensor *const *deps, int n)
{
    if (t == NULL)
        return TT_FAIL(tti_tensor_ctx(n > 0 && deps != NULL ? deps[0] : NULL), TT_EINVAL,
                       "after: the tensor is NULL");
    if (n > 0 && deps == NULL)
        return TT_FAIL(t->graph->ctx, TT_EINVAL, "after: the list of tensors is NULL");
    tt_graph *g = t->graph;
    if (tti_is_stuck(g->ctx))
        return tt_status_of(g->ctx);
    for (int i = 0; i < n; i++) {
        if (deps[i] == NULL || deps[i]->graph != g)
            return TT_FAIL(g->ctx, TT_EINVAL,
                           "after: dependency %d of '%s' does not belong to its graph", i,
                           t->node->name);
        bool cycle;
        if (!reaches(g, deps[i]->node, t->node, &cycle))
            return TT_ENOMEM;
        if (cycle)
            return TT_FAIL(g->ctx, TT_EINVAL,
                           "after: '%s' cannot run after '%s': that would be a cycle",
                           t->node->name, deps[i]->node->name);
    }
    tt_node *node = t->node;
    tt_node **after = tti_graph_alloc(g, sizeof(*after) * (size_t)(node->n_after + n));
    if (after == NULL)
        return TT_ENOMEM;
    for (int i = 0; i < node->n_after; i++)
        after[i] = node->after[i];
    for (int i = 0; i < n; i++)
        after[node->n_after + i] = deps[i]->node;
    node->after = after;
    node->n_after += n;
    return TT_OK;
}
