/*
 * replicate.c - the mirrored strategy's stage: nodes that work on rows of the batch are copied to
 * every device, each copy with some of the lanes; nodes that do not stay as they are.
 *
 * A sum over rows then has one partial per maximal sub-tree of lanes on each device. A tree node
 * adds them in the order of the lane tree, so the sum is the one that a single device makes. A row
 * tensor that is fetched is put together by a gather node. Where lanes run changes nothing else.
 */
#include "plan/plan.h"
#include <stdio.h>
#include <string.h>

typedef struct replica {
    int device;
    tt_lanes *lanes;
    int64_t rows;
} replica;

typedef struct copier {
    tti_plan *p;
    replica replicas[TTI_MAX_DEVICES];
    int n;             // replicas
    tti_value *values; // as built
    tti_pnode *nodes;
    int64_t n_values, n_nodes;
    int *whole;  // by old value: its new one; -1
    int *copies; // by old value times n: its new ones
    int *first;  // by old node: first new node; they follow each other
    int *many;   // by old node: how many
} copier;

// ---- dealing lanes ---------------------------------------------------------------------------

static tt_status deal(copier *c)
{
    tti_plan *p = c->p;
    const tt_lanes *all = &p->lanes;
    int devices = p->ctx->n_devices;
    int64_t row = 0;
    for (int d = 0; d < devices; d++) {
        int end = (int)((int64_t)(d + 1) * all->n / devices);
        int64_t rows = all->bound[end] - row;
        if (rows == 0)
            continue; // its lanes are empty: they go with the next, or the last
        replica *r = &c->replicas[c->n++];
        tt_batch b = {all->first_row + row, all->global_rows, all->total};
        tti_plan_request req = {.rows = rows, .batch = b};
        r->device = d;
        r->rows = rows;
        r->lanes = tti_plan_alloc(p, sizeof(*r->lanes));
        if (r->lanes == NULL)
            return TT_ENOMEM;
        TT_TRY(tti_lanes_make(p, &req, r->lanes));
        row += rows;
    }
    return TT_OK;
}

// ---- values ----------------------------------------------------------------------------------

static bool is_split(const tti_value *v)
{
    return v->memory != TTI_CONSTANT && v->tensor->layout.kind == TT_LAYOUT_SPLIT;
}

static bool is_partial(const tti_value *v)
{
    return v->memory != TTI_CONSTANT && v->tensor->layout.kind == TT_LAYOUT_PARTIAL;
}

// Does the node work on rows? Its inputs or outputs are split, or it sums over split ones.
static bool is_spread(const copier *c, const tti_pnode *pn)
{
    if (pn->is_dropped || pn->kind != TTI_OP)
        return false;
    for (int i = 0; i < pn->n_in; i++)
        if (is_split(&c->values[pn->in[i]]))
            return true;
    for (int i = 0; i < pn->n_out; i++)
        if (is_split(&c->values[pn->out + i]))
            return true;
    return false;
}

static int map_input(const copier *c, int old, int r)
{
    return is_split(&c->values[old]) ? c->copies[(int64_t)old * c->n + r] : c->whole[old];
}

// The root of a new output: itself, or for views and updates the first input's.
static int new_root(const tti_pnode *pn, const int *in, int k)
{
    bool shares =
        k == 0 && pn->kind == TTI_OP && (pn->node->op->flags & (TT_OP_VIEW | TT_OP_UPDATE)) != 0;
    return shares ? in[0] : -1;
}

static int add_output(copier *c, const tti_pnode *old, int k, int node, const int *in,
                      const replica *r)
{
    tti_plan *p = c->p;
    tti_value v = c->values[old->out + k];
    v.node = node;
    v.root = new_root(old, in, k);
    v.keep = false;
    if (r != NULL && tti_bind_shape(p, v.tensor, r->rows, r->lanes, &v) != TT_OK)
        return -1;
    if (v.root >= 0) {
        v.memory = p->values[v.root].memory;
        v.fixed = p->values[v.root].fixed;
    }
    return tti_plan_value(p, v);
}

// ---- nodes -----------------------------------------------------------------------------------

static int add_copy(copier *c, const tti_pnode *old, int r)
{
    tti_plan *p = c->p;
    const replica *rep = r < 0 ? NULL : &c->replicas[r];
    int *in = tti_plan_alloc(p, sizeof(int) * (size_t)(old->n_in + 1));
    if (in == NULL)
        return -1;
    for (int i = 0; i < old->n_in; i++)
        in[i] = map_input(c, old->in[i], TTI_MAX(r, 0));
    tti_pnode pn = *old;
    pn.in = in;
    pn.out = (int)p->n_values;
    pn.n_after = 0;
    if (rep != NULL) {
        char text[64];
        int n = snprintf(text, sizeof(text), "lanes %d to %d", rep->lanes->first,
                         rep->lanes->first + rep->lanes->n - 1);
        char *reason = tti_plan_alloc(p, (size_t)n + 1);
        if (reason == NULL)
            return -1;
        memcpy(reason, text, (size_t)n + 1);
        pn.device = rep->device;
        pn.reason = reason;
        pn.lanes = rep->lanes;
        pn.first_row = rep->lanes->first_row - p->lanes.first_row;
    }
    int id = tti_plan_node(p, pn);
    for (int k = 0; id >= 0 && k < old->n_out; k++)
        if (add_output(c, old, k, id, in, rep) < 0)
            return -1;
    return id;
}

static const char *joining_reason(tti_node_kind kind)
{
    return kind == TTI_TREE     ? "sums of all devices"
           : kind == TTI_GATHER ? "rows of all devices"
                                : "statistics of all devices";
}

/*
 * A node on the first device that puts the replicas' values of an old value together; of
 * statistics, of three old values that follow each other. Gives the first new value; -1.
 */
static int add_joining(copier *c, int old, const int *values, int n_in, tti_node_kind kind)
{
    tti_plan *p = c->p;
    const tti_value *v = &c->values[old];
    int n_out = kind == TTI_MOMENTS ? 3 : 1;
    int *in = tti_plan_alloc(p, sizeof(int) * (size_t)n_in);
    if (in == NULL)
        return -1;
    memcpy(in, values, sizeof(int) * (size_t)n_in);
    tti_pnode pn = {.kind = kind,
                    .node = v->tensor->node,
                    .n_in = n_in,
                    .n_out = n_out,
                    .in = in,
                    .out = (int)p->n_values,
                    .device = c->replicas[0].device,
                    .reason = joining_reason(kind),
                    .lanes = &p->lanes,
                    .key = c->nodes[v->node].key + 0.3};
    int id = tti_plan_node(p, pn), first = -1;
    for (int k = 0; id >= 0 && k < n_out; k++) {
        tti_value joined = c->values[old + k];
        joined.node = id;
        joined.root = -1;
        joined.memory = TTI_ARENA;
        joined.fixed = NULL;
        joined.keep = false;
        int made = tti_plan_value(p, joined);
        first = k == 0 ? made : first;
        if (made < 0)
            return -1;
    }
    return first;
}

// Statistics: means and M2 of every replica are merged.
static tt_status join_moments(copier *c, const tti_pnode *old)
{
    tti_plan *p = c->p;
    int values[2 * TTI_MAX_DEVICES];
    if (p->lanes.n != p->lanes.total)
        return TT_FAIL(
            p->ctx, TT_EUNSUPPORTED,
            "%s '%s' needs statistics of the whole batch, but the run has %d of %d lanes",
            old->node->op->name, old->node->name, p->lanes.n, p->lanes.total);
    for (int r = 0; r < c->n; r++) {
        values[2 * r] = c->copies[(int64_t)old->out * c->n + r];
        values[2 * r + 1] = c->copies[(int64_t)(old->out + 1) * c->n + r];
    }
    int made = add_joining(c, old->out, values, 2 * c->n, TTI_MOMENTS);
    if (made < 0)
        return tt_status_of(p->ctx);
    for (int k = 0; k < 3; k++)
        c->whole[old->out + k] = made + k;
    return TT_OK;
}

static tt_status spread_node(copier *c, int i)
{
    tti_plan *p = c->p;
    const tti_pnode *old = &c->nodes[i];
    if (old->node->mixes_rows)
        return TT_FAIL(p->ctx, TT_EUNSUPPORTED,
                       "%s '%s' mixes rows of the batch: it cannot be spread over devices yet; use "
                       "strategy single",
                       old->node->op->name, old->node->name);
    if (old->node->has_pin)
        return TT_FAIL(p->ctx, TT_EINVAL,
                       "%s '%s' is pinned, but strategy mirrored puts it on every device",
                       old->node->op->name, old->node->name);
    int values[TTI_MAX_DEVICES];
    c->first[i] = (int)p->n_nodes;
    for (int r = 0; r < c->n; r++) {
        int id = add_copy(c, old, r);
        if (id < 0)
            return tt_status_of(p->ctx);
        for (int k = 0; k < old->n_out; k++)
            c->copies[(int64_t)(old->out + k) * c->n + r] = p->nodes[id].out + k;
    }
    c->many[i] = c->n;
    if (old->node->out->layout.kind == TT_LAYOUT_MOMENTS)
        return join_moments(c, old);
    for (int k = 0; k < old->n_out; k++) {
        int v = old->out + k;
        if (is_split(&c->values[v]))
            continue;
        c->whole[v] = c->copies[(int64_t)v * c->n];
        if (!is_partial(&c->values[v]))
            continue;
        memcpy(values, &c->copies[(int64_t)v * c->n], sizeof(int) * (size_t)c->n);
        c->whole[v] = add_joining(c, v, values, c->n, TTI_TREE);
        if (c->whole[v] < 0)
            return tt_status_of(p->ctx);
    }
    return TT_OK;
}

static tt_status keep_node(copier *c, int i)
{
    tti_plan *p = c->p;
    const tti_pnode *old = &c->nodes[i];
    c->first[i] = (int)p->n_nodes;
    c->many[i] = 1;
    int id = add_copy(c, old, -1);
    if (id < 0)
        return tt_status_of(p->ctx);
    bool source = old->kind == TTI_OP && (old->node->op->flags & TT_OP_SOURCE) != 0;
    if (!source && !old->is_dropped && !old->node->has_pin && old->node->colocation < 0) {
        p->nodes[id].device = c->replicas[0].device;
        p->nodes[id].reason = "not split: the first device";
    }
    for (int k = 0; k < old->n_out; k++)
        c->whole[old->out + k] = p->nodes[id].out + k;
    return TT_OK;
}

static tt_status map_control(copier *c)
{
    tti_plan *p = c->p;
    for (int64_t i = 0; i < c->n_nodes; i++) {
        const tti_pnode *old = &c->nodes[i];
        if (old->n_after == 0)
            continue;
        int n = 0;
        for (int k = 0; k < old->n_after; k++)
            n += c->many[old->after[k]];
        int *after = tti_plan_alloc(p, sizeof(int) * (size_t)n);
        if (after == NULL)
            return TT_ENOMEM;
        n = 0;
        for (int k = 0; k < old->n_after; k++)
            for (int r = 0; r < c->many[old->after[k]]; r++)
                after[n++] = c->first[old->after[k]] + r;
        for (int r = 0; r < c->many[i]; r++) {
            p->nodes[c->first[i] + r].after = after;
            p->nodes[c->first[i] + r].n_after = n;
        }
    }
    return TT_OK;
}

static tt_status map_targets(copier *c)
{
    tti_plan *p = c->p;
    for (int i = 0; i < p->n_targets; i++) {
        int old = p->targets[i];
        if (!is_split(&c->values[old])) {
            p->targets[i] = c->whole[old];
        } else if (i >= p->n_fetched) {
            p->targets[i] = c->copies[(int64_t)old * c->n];
        } else {
            p->targets[i] = add_joining(c, old, &c->copies[(int64_t)old * c->n], c->n, TTI_GATHER);
            if (p->targets[i] < 0)
                return TT_ENOMEM;
        }
        if (i < p->n_fetched)
            p->values[tti_root(p, p->targets[i])].keep = true;
    }
    p->feeds = tti_plan_alloc(p, sizeof(int) * (size_t)(p->n_nodes + 1));
    if (p->feeds == NULL)
        return TT_ENOMEM;
    p->n_feeds = 0;
    for (int64_t i = 0; i < p->n_nodes; i++)
        if (p->nodes[i].kind == TTI_OP && p->nodes[i].node->op == &tti_op_feed)
            p->feeds[p->n_feeds++] = p->nodes[i].out;
    return TT_OK;
}

static tt_status copy_all(copier *c)
{
    tti_plan *p = c->p;
    size_t n = (size_t)c->n_values + 1;
    c->whole = tti_alloc(p->ctx, sizeof(int) * n);
    c->copies = tti_alloc(p->ctx, sizeof(int) * n * (size_t)c->n);
    c->first = tti_calloc(p->ctx, (size_t)c->n_nodes + 1, sizeof(int));
    c->many = tti_calloc(p->ctx, (size_t)c->n_nodes + 1, sizeof(int));
    if (c->whole == NULL || c->copies == NULL || c->first == NULL || c->many == NULL)
        return TT_ENOMEM;
    memset(c->whole, -1, sizeof(int) * n);
    memset(c->copies, -1, sizeof(int) * n * (size_t)c->n);
    for (int64_t i = 0; i < c->n_nodes; i++)
        TT_TRY(is_spread(c, &c->nodes[i]) ? spread_node(c, (int)i) : keep_node(c, (int)i));
    TT_TRY(map_control(c));
    return map_targets(c);
}

tt_status tti_plan_replicate(tti_plan *p)
{
    if (p->mesh.n_replicas < 2)
        return TT_OK;
    copier c = {.p = p};
    TT_TRY(deal(&c));
    if (c.n < 2)
        return TT_OK;
    c.values = p->values;
    c.nodes = p->nodes;
    c.n_values = p->n_values;
    c.n_nodes = p->n_nodes;
    p->values = NULL;
    p->nodes = NULL;
    p->n_values = p->n_nodes = p->cap_values = p->cap_nodes = 0;
    tt_status st = copy_all(&c);
    tti_free(p->ctx, c.values);
    tti_free(p->ctx, c.nodes);
    tti_free(p->ctx, c.whole);
    tti_free(p->ctx, c.copies);
    tti_free(p->ctx, c.first);
    tti_free(p->ctx, c.many);
    return st;
}
