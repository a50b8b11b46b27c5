/*
 * build_program.c - the first stage: live graph nodes become plan nodes.
 *
 * Nodes are taken in order of creation, inputs before users. On the way duplicates (same op,
 * attributes and inputs) are merged and nodes whose inputs are all constants are computed at once,
 * by the same kernels and under the same flush mode as in a run. Random nodes, updates and those
 * with an effect are neither merged nor folded.
 */
#include "plan/plan.h"
#include <string.h>

#define FOLD_BYTES ((size_t)4 << 20) // larger constants are computed in each run

typedef struct program_builder {
    tti_plan *p;
    const tti_plan_request *req;
    uint8_t *live; // by node id
    int *first;    // by node id: plan value of output 0; -1
    int *pnode;    // by node id
    int *table;    // duplicates: plan node + 1, open hash
    uint64_t mask;
} program_builder;

// ---- live nodes ------------------------------------------------------------------------------

static tt_status mark_live(program_builder *b)
{
    tt_graph *g = b->p->graph;
    int *stack = tti_alloc(b->p->ctx, sizeof(int) * (size_t)(g->n_nodes + 1));
    if (stack == NULL)
        return TT_ENOMEM;
    int n = 0;
    for (int i = 0; i < b->req->n_targets; i++) {
        int id = b->req->targets[i]->node->id;
        if (!b->live[id])
            stack[n++] = id;
        b->live[id] = 1;
    }
    while (n > 0) {
        const tt_node *node = g->nodes[stack[--n]];
        for (int k = 0; k < node->n_in + node->n_after; k++) {
            int id = k < node->n_in ? node->in[k]->node->id : node->after[k - node->n_in]->id;
            if (!b->live[id])
                stack[n++] = id;
            b->live[id] = 1;
        }
    }
    tti_free(b->p->ctx, stack);
    return TT_OK;
}

// ---- values ----------------------------------------------------------------------------------

bool tti_is_partial(const tt_tensor *t)
{
    return t->layout.kind == TT_LAYOUT_PARTIAL || t->layout.kind == TT_LAYOUT_MOMENTS;
}

tt_status tti_bind_shape(const tti_plan *p, const tt_tensor *t, int64_t rows, const tt_lanes *lanes,
                         tti_value *v)
{
    tt_shape *out = &v->shape;
    *out = t->shape;
    v->dtype = t->dtype;
    for (int i = 0; i < out->rank; i++)
        if (out->dim[i] < 0 && !tti_mul_i64(-out->dim[i], rows, &out->dim[i]))
            out->dim[i] = INT64_MAX; // refused below
    if (tti_is_partial(t) && lanes->n != lanes->total) {
        if (out->rank == TT_MAX_RANK)
            return TT_FAIL(p->ctx, TT_ESHAPE,
                           "'%s': its rank is too high to add an axis for partial sums",
                           t->node->name);
        memmove(out->dim + 1, out->dim, sizeof(out->dim[0]) * (size_t)out->rank);
        out->dim[0] = lanes->n_parts;
        out->rank++;
        v->dtype = t->dtype == TT_BF16 || t->dtype == TT_F16 ? TT_F32 : t->dtype;
    }
    TT_TRY(tti_shape_check(p->ctx, t->node->name, out, false));
    v->count = tt_shape_count(out);
    v->bytes = (size_t)v->count * tt_dtype_bytes(v->dtype);
    return TT_OK;
}

static int add_value(tti_plan *p, const tt_tensor *t, int pnode)
{
    tti_value v = {.tensor = t, .node = pnode, .root = -1, .device = -1};
    if (tti_bind_shape(p, t, p->rows, &p->lanes, &v) != TT_OK)
        return -1;
    if (t->node->op == &tti_op_variable)
        v.memory = TTI_VARIABLE;
    if (t->node->op == &tti_op_const) {
        v.memory = TTI_CONSTANT;
        v.fixed = (void *)t->node->data;
    }
    return tti_plan_value(p, v);
}

// ---- duplicates ------------------------------------------------------------------------------

static bool can_merge(const tt_node *n)
{
    unsigned never = TT_OP_RANDOM | TT_OP_EFFECT | TT_OP_UPDATE;
    if ((n->op->flags & never) != 0 || n->n_after > 0 || n->colocation >= 0)
        return false;
    return n->op != &tti_op_feed && n->op != &tti_op_variable;
}

static uint64_t merge_hash(const program_builder *b, const tt_node *n)
{
    uint64_t h = tti_hash64(n->attr == NULL ? "" : n->attr, n->op->attr_size, (uintptr_t)n->op);
    h = tti_hash64(n->data == NULL ? "" : n->data, n->data_bytes, h);
    for (int i = 0; i < n->n_in; i++) {
        int v = b->first[n->in[i]->node->id] + n->in[i]->index;
        h = tti_hash64(&v, sizeof(v), h);
    }
    return h;
}

static bool merge_equal(const program_builder *b, const tt_node *n, const tti_pnode *other)
{
    const tt_node *o = other->node;
    if (o->op != n->op || o->n_in != n->n_in || o->data_bytes != n->data_bytes ||
        o->has_pin != n->has_pin || (n->has_pin && memcmp(&o->pin, &n->pin, sizeof(n->pin)) != 0))
        return false;
    if (n->op->attr_size > 0 && memcmp(o->attr, n->attr, n->op->attr_size) != 0)
        return false;
    if (n->data_bytes > 0 && memcmp(o->data, n->data, n->data_bytes) != 0)
        return false;
    for (int i = 0; i < n->n_in; i++)
        if (other->in[i] != b->first[n->in[i]->node->id] + n->in[i]->index)
            return false;
    return true;
}

// The plan node that computes the same; -1 and *slot, where to put this one, if there is none.
static int find_duplicate(const program_builder *b, const tt_node *n, uint64_t *slot)
{
    uint64_t i = merge_hash(b, n) & b->mask;
    for (; b->table[i] != 0; i = (i + 1) & b->mask)
        if (merge_equal(b, n, &b->p->nodes[b->table[i] - 1]))
            return b->table[i] - 1;
    *slot = i;
    return -1;
}

// ---- constant folding ------------------------------------------------------------------------

static bool can_fold(const tti_plan *p, const tti_pnode *pn)
{
    const tt_node *n = pn->node;
    unsigned never = TT_OP_RANDOM | TT_OP_EFFECT | TT_OP_UPDATE | TT_OP_SOURCE;
    if ((n->op->flags & never) != 0 || n->n_in == 0 || n->n_after > 0 || tti_needs_widening(n))
        return false;
    for (int i = 0; i < n->n_in; i++)
        if (p->values[pn->in[i]].memory != TTI_CONSTANT)
            return false;
    for (int i = 0; i < n->n_out; i++)
        if (p->values[pn->out + i].bytes > FOLD_BYTES || tt_open_axis(&n->outs[i]->shape) >= 0)
            return false;
    return n->op->kernel[TT_CPU].fn[tti_isa_for(p->top, n)] != NULL;
}

// Computes a node now; its outputs become constants of the plan.
static tt_status fold(tti_plan *p, tti_pnode *pn)
{
    const tt_node *n = pn->node;
    tt_arg *args = tti_calloc(p->ctx, (size_t)(n->n_in + n->n_out), sizeof(*args));
    tt_prep *prep = tti_calloc(p->ctx, 1, sizeof(*prep));
    char *scratch = NULL, *local = NULL;
    tt_status st = args == NULL || prep == NULL ? TT_ENOMEM : TT_OK;
    for (int i = 0; st == TT_OK && i < n->n_in + n->n_out; i++) {
        tti_value *v = &p->values[i < n->n_in ? pn->in[i] : pn->out + i - n->n_in];
        tti_arg_fill(&args[i], v);
        if (i >= n->n_in) {
            v->fixed = tti_plan_alloc(p, v->bytes + 1);
            v->memory = TTI_CONSTANT;
            st = v->fixed == NULL ? TT_ENOMEM : TT_OK;
        }
        args[i].data = v->fixed;
    }
    if (st == TT_OK && (n->op->flags & TT_OP_VIEW) != 0) {
        memcpy(args[n->n_in].data, args[0].data, p->values[pn->out].bytes);
        goto done;
    }
    if (st == TT_OK)
        st = tti_prepare(p, n, -1, &p->lanes, args, args + n->n_in, prep);
    if (st == TT_OK) {
        scratch = tti_host_alloc(p->ctx, prep->scratch_bytes + 64);
        local = tti_host_alloc(p->ctx, prep->local_bytes + 64);
        st = scratch == NULL || local == NULL ? TT_ENOMEM : TT_OK;
    }
    if (st == TT_OK) {
        tt_launch l = {p->ctx,  n,        n->attr, args,      args + n->n_in,
                       n->n_in, n->n_out, p->step, &p->lanes, prep->tune,
                       scratch, local,    0,       0,         0,
                       0,       1,        NULL,    NULL};
        unsigned saved = tti_fp_enter();
        for (l.phase = 0; st == TT_OK && l.phase < prep->n_phases; l.phase++) {
            l.end = prep->units[l.phase];
            st = l.end > 0 ? n->op->kernel[TT_CPU].fn[tti_isa_for(p->top, n)](&l) : TT_OK;
        }
        tti_fp_leave(saved);
    }
done:
    tti_host_free(p->ctx, scratch);
    tti_host_free(p->ctx, local);
    tti_free(p->ctx, prep);
    tti_free(p->ctx, args);
    return st;
}

// ---- nodes -----------------------------------------------------------------------------------

static tt_status check_parts(const tti_plan *p, const tt_node *n)
{
    bool part = p->lanes.n != p->lanes.total;
    if (part && n->mixes_rows)
        return TT_FAIL(p->ctx, TT_EINVAL,
                       "%s '%s' mixes rows of the batch: it cannot run on a part", n->op->name,
                       n->name);
    for (int i = 0; part && i < n->n_in; i++)
        if (tti_is_partial(n->in[i]))
            return TT_FAIL(
                p->ctx, TT_EINVAL,
                "%s '%s' needs '%s', a sum over all rows, but the run has lanes %d to %d of "
                "%d; fetch the sum and combine the parts",
                n->op->name, n->name, n->in[i]->node->name, p->lanes.first,
                p->lanes.first + p->lanes.n - 1, p->lanes.total);
    return TT_OK;
}

static tt_status add_node(program_builder *b, const tt_node *n)
{
    tti_plan *p = b->p;
    TT_TRY(check_parts(p, n));
    uint64_t slot = 0;
    bool merge = !b->req->no_fold && can_merge(n);
    int twin = merge ? find_duplicate(b, n, &slot) : -1;
    if (twin >= 0) {
        b->pnode[n->id] = twin;
        b->first[n->id] = p->nodes[twin].out;
        return TT_OK;
    }
    int *in = tti_plan_alloc(p, sizeof(int) * (size_t)(n->n_in + 1));
    if (in == NULL)
        return TT_ENOMEM;
    for (int i = 0; i < n->n_in; i++)
        in[i] = b->first[n->in[i]->node->id] + n->in[i]->index;
    tti_pnode pn = {.kind = TTI_OP,
                    .node = n,
                    .n_in = n->n_in,
                    .n_out = n->n_out,
                    .in = in,
                    .out = (int)p->n_values,
                    .device = -1,
                    .key = {.rank = n->id}};
    int id = tti_plan_node(p, pn);
    if (id < 0)
        return TT_ENOMEM;
    for (int i = 0; i < n->n_out; i++)
        if (add_value(p, n->outs[i], id) < 0)
            return tt_status_of(p->ctx);
    b->pnode[n->id] = id;
    b->first[n->id] = pn.out;
    if (merge)
        b->table[slot] = id + 1;
    if (!b->req->no_fold && can_fold(p, &p->nodes[id])) {
        TT_TRY(fold(p, &p->nodes[id]));
        p->nodes[id].is_dropped = true;
        return TT_OK;
    }
    tti_value *v = &p->values[pn.out];
    if ((n->op->flags & (TT_OP_VIEW | TT_OP_UPDATE)) != 0) {
        v->root = in[0];
        v->memory = p->values[in[0]].memory;
        v->fixed = p->values[in[0]].fixed;
    }
    return TT_OK;
}

// Control edges, once every node has its place.
static tt_status add_control(program_builder *b)
{
    tti_plan *p = b->p;
    for (int64_t i = 0; i < p->n_nodes; i++) {
        tti_pnode *pn = &p->nodes[i];
        const tt_node *n = pn->node;
        if (n->n_after == 0 || pn->is_dropped)
            continue;
        pn->after = tti_plan_alloc(p, sizeof(int) * (size_t)n->n_after);
        if (pn->after == NULL)
            return TT_ENOMEM;
        for (int k = 0; k < n->n_after; k++)
            if (!p->nodes[b->pnode[n->after[k]->id]].is_dropped)
                pn->after[pn->n_after++] = b->pnode[n->after[k]->id];
    }
    return TT_OK;
}

// A plan node that copies a value on its device, for a fetch that must not see the update.
static int add_copy(tti_plan *p, int value)
{
    int *in = tti_plan_alloc(p, sizeof(int));
    if (in == NULL)
        return -1;
    in[0] = value;
    tti_value v = p->values[value];
    tti_pnode pn = {.kind = TTI_COPY,
                    .node = v.tensor->node,
                    .n_in = 1,
                    .n_out = 1,
                    .in = in,
                    .out = (int)p->n_values,
                    .device = -1,
                    .key = {.rank = v.tensor->node->id}};
    int id = tti_plan_node(p, pn);
    if (id < 0)
        return -1;
    v.node = id;
    v.root = -1;
    v.memory = TTI_ARENA;
    v.fixed = NULL;
    return tti_plan_value(p, v);
}

static bool is_updated(const tti_plan *p, int root)
{
    for (int64_t i = 0; i < p->n_nodes; i++) {
        const tti_pnode *pn = &p->nodes[i];
        for (int k = 0; pn->kind == TTI_OP && k < pn->n_in; k++)
            if (tti_writes(pn->node, k) && tti_root(p, pn->in[k]) == root)
                return true;
    }
    return false;
}

static tt_status add_targets(program_builder *b)
{
    tti_plan *p = b->p;
    p->n_targets = b->req->n_targets;
    p->n_fetched = b->req->n_fetched;
    p->targets = tti_plan_alloc(p, sizeof(int) * (size_t)(p->n_targets + 1));
    if (p->targets == NULL)
        return TT_ENOMEM;
    for (int i = 0; i < p->n_targets; i++) {
        const tt_tensor *t = b->req->targets[i];
        int v = b->first[t->node->id] + t->index;
        bool old = p->values[v].memory == TTI_VARIABLE && (t->node->op->flags & TT_OP_UPDATE) == 0;
        if (i < b->req->n_fetched && old && is_updated(p, tti_root(p, v))) {
            v = add_copy(p, v);
            if (v < 0)
                return TT_ENOMEM;
        }
        p->targets[i] = v;
        if (i < b->req->n_fetched)
            p->values[tti_root(p, v)].keep = true;
    }
    return TT_OK;
}

static tt_status add_feeds(program_builder *b)
{
    tti_plan *p = b->p;
    p->feeds = tti_plan_alloc(p, sizeof(int) * (size_t)(p->n_nodes + 1));
    if (p->feeds == NULL)
        return TT_ENOMEM;
    for (int64_t i = 0; i < p->n_nodes; i++)
        if (p->nodes[i].kind == TTI_OP && p->nodes[i].node->op == &tti_op_feed)
            p->feeds[p->n_feeds++] = p->nodes[i].out;
    return TT_OK;
}

tt_status tti_plan_build(tti_plan *p, const tti_plan_request *req)
{
    tt_graph *g = p->graph;
    program_builder b = {.p = p, .req = req};
    size_t n = (size_t)g->n_nodes + 1, cap = 64;
    while (cap < 2 * n)
        cap *= 2;
    b.mask = cap - 1;
    b.live = tti_calloc(p->ctx, n, 1);
    b.first = tti_calloc(p->ctx, n, sizeof(int));
    b.pnode = tti_calloc(p->ctx, n, sizeof(int));
    b.table = tti_calloc(p->ctx, cap, sizeof(int));
    tt_status st = TT_ENOMEM;
    if (b.live != NULL && b.first != NULL && b.pnode != NULL && b.table != NULL)
        st = mark_live(&b);
    for (int64_t i = 0; st == TT_OK && i < g->n_nodes; i++)
        if (b.live[i])
            st = add_node(&b, g->nodes[i]);
    if (st == TT_OK)
        st = add_control(&b);
    if (st == TT_OK)
        st = add_targets(&b);
    if (st == TT_OK)
        st = add_feeds(&b);
    tti_free(p->ctx, b.live);
    tti_free(p->ctx, b.first);
    tti_free(p->ctx, b.pnode);
    tti_free(p->ctx, b.table);
    return st;
}
