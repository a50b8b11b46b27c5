/*
 * chain.c - a node and those that read it become one node, done by one kernel.
 *
 * Most kernels of devices with streams wait for memory, and what one writes the next one reads
 * again. A backend has kernels for some such chains (add, then layer_norm), each giving the bits
 * that its members give one by one, rounded each to its own type; here a plan is looked through for
 * them. Which chains there are, only the backend knows.
 *
 * A reader can be joined to a chain if it needs nothing that itself needs the chain (advance.c).
 */
#include "plan/fuse/fusion_order.h"
#include <string.h>

#define MEMO 256

typedef struct memo {
    const tt_op *first, *second;
    bool is_chain;
} memo;

typedef struct chains {
    tti_plan *p;
    tti_fusion_order of;
    int *n_uses; // by value
    memo memos[MEMO];
    int n_memos;
} chains;

// ---- what can be joined ----------------------------------------------------------------------

static bool is_usable(const tti_plan *p, int i)
{
    const tti_pnode *pn = &p->nodes[i];
    const unsigned never = TT_OP_UPDATE | TT_OP_RANDOM | TT_OP_EFFECT | TT_OP_VIEW | TT_OP_SOURCE;
    if (pn->kind != TTI_OP || pn->is_dropped || pn->n_in == 0 || pn->n_out == 0 ||
        pn->n_in > TTI_CHAIN_IN || !tti_has_streams(p->top->devices[pn->device]))
        return false;
    const tt_op *op = pn->node->op;
    bool usable = (op->flags & never) == 0 && op->shape_only == 0 &&
                  op->kernel[p->top->devices[pn->device]->backend->id].fn[0] == NULL;
    for (int k = 0; k < pn->n_out; k++) {
        const tti_value *v = &p->values[pn->out + k];
        usable = usable && v->sparse_rows == 0 && v->memory == TTI_ARENA && v->root == pn->out + k;
    }
    return usable;
}

static bool is_near(const tti_pnode *a, const tti_pnode *b)
{
    return a->device == b->device && a->lanes == b->lanes && a->micro == b->micro &&
           a->stage == b->stage && a->is_recomputed == b->is_recomputed;
}

static const tt_kernel *kernel_of(const tti_plan *p, int device, tti_kernel_key key)
{
    const tti_device *d = p->top->devices[device];
    const tt_kernel *k = d->backend->kernel(d, key);
    return k == NULL || k->fn[0] == NULL ? NULL : k;
}

tti_kernel_key tti_chain_key(const tti_chain *c)
{
    tti_kernel_key key = tti_kernel_of_form(TTI_KERNEL_CHAIN);
    for (int m = 0; m < c->n; m++)
        key.op[m] = c->members[m].node->op->name;
    return key;
}

// Does some chain begin with these two?
static bool can_begin(chains *c, int device, const tt_op *first, const tt_op *second)
{
    for (int i = 0; i < c->n_memos; i++)
        if (c->memos[i].first == first && c->memos[i].second == second)
            return c->memos[i].is_chain;
    tti_kernel_key key = {TTI_KERNEL_CHAIN, {first->name, second->name, NULL}};
    bool is_chain = kernel_of(c->p, device, key) != NULL;
    if (c->n_memos < MEMO)
        c->memos[c->n_memos++] = (memo){first, second, is_chain};
    return is_chain;
}

// Does anything in the plan look like a chain?
static bool has_candidates(chains *c)
{
    tti_plan *p = c->p;
    for (int64_t i = 0; i < p->n_nodes; i++) {
        if (!is_usable(p, (int)i))
            continue;
        for (int k = 0; k < p->nodes[i].n_in; k++) {
            int maker = p->values[p->nodes[i].in[k]].node;
            if (is_usable(p, maker) && is_near(&p->nodes[i], &p->nodes[maker]) &&
                can_begin(c, p->nodes[i].device, p->nodes[maker].node->op, p->nodes[i].node->op))
                return true;
        }
    }
    return false;
}

// ---- a chain as kernels see it ---------------------------------------------------------------

// Inputs and outputs of the members, as values of the plan.
typedef struct draft {
    tti_chain chain;
    int n_in, n_out;
    int in[TTI_CHAIN_MAX * TTI_CHAIN_IN], out[TTI_CHAIN_MAX * TTI_CHAIN_IN];
} draft;

static int find(const int *list, int n, int value)
{
    for (int i = 0; i < n; i++)
        if (list[i] == value)
            return i;
    return -1;
}

// False: it would be too large.
static bool add_member(const tti_plan *p, draft *d, int node)
{
    const tti_pnode *pn = &p->nodes[node];
    tti_chain_member *m = &d->chain.members[d->chain.n];
    if (d->chain.n == TTI_CHAIN_MAX || d->n_out + pn->n_out > TTI_CHAIN_MAX * TTI_CHAIN_IN)
        return false;
    *m =
        (tti_chain_member){.node = pn->node, .n_in = pn->n_in, .n_out = pn->n_out, .out = d->n_out};
    for (int k = 0; k < pn->n_in; k++) {
        int made = find(d->out, d->n_out, pn->in[k]), known = find(d->in, d->n_in, pn->in[k]);
        if (made < 0 && known < 0) {
            known = d->n_in;
            d->in[d->n_in++] = pn->in[k];
        }
        m->in[k] = made >= 0 ? TTI_FUSE_OF + made : known;
    }
    for (int k = 0; k < pn->n_out; k++)
        d->out[d->n_out++] = pn->out + k;
    d->chain.n++;
    return true;
}

// Outputs that somebody else reads, or wants.
static void mark_kept(const chains *c, draft *d)
{
    const tti_plan *p = c->p;
    int inside[TTI_CHAIN_MAX * TTI_CHAIN_IN] = {0};
    for (int m = 0; m < d->chain.n; m++)
        for (int k = 0; k < d->chain.members[m].n_in; k++)
            if (d->chain.members[m].in[k] >= TTI_FUSE_OF)
                inside[d->chain.members[m].in[k] - TTI_FUSE_OF]++;
    for (int o = 0; o < d->n_out; o++) {
        const tti_value *v = &p->values[d->out[o]];
        // What no member reads is written whether or not somebody does: a kernel has done so alone.
        if (inside[o] == 0 || c->n_uses[d->out[o]] > inside[o] || v->keep || v->is_sent)
            d->chain.kept |= 1u << o;
    }
}

// Has the backend a kernel for it that takes these shapes?
static bool is_taken(const tti_plan *p, const draft *d, int node)
{
    const tti_pnode *pn = &p->nodes[node];
    const tt_kernel *k = kernel_of(p, pn->device, tti_chain_key(&d->chain));
    tt_arg in[TTI_CHAIN_MAX * TTI_CHAIN_IN], out[TTI_CHAIN_MAX * TTI_CHAIN_IN];
    tt_prep prep;
    if (k == NULL)
        return false;
    for (int i = 0; i < d->n_in; i++)
        tti_arg_fill(&in[i], &p->values[d->in[i]]);
    for (int i = 0; i < d->n_out; i++)
        tti_arg_fill(&out[i], &p->values[d->out[i]]);
    return tti_prepare_chain(p, pn, &d->chain, k, in, d->n_in, out, d->n_out, &prep) == TT_OK &&
           prep.n_phases > 0;
}

// ---- joining ---------------------------------------------------------------------------------

// The node that follows the chain of lead, whose last member is last; -1: none.
static int find_next(chains *c, const draft *d, int lead, int last)
{
    tti_plan *p = c->p;
    for (int k = c->of.first_out[last]; k < c->of.first_out[last + 1]; k++) {
        int i = c->of.out[k];
        bool reads = false;
        for (int n = 0; n < p->nodes[i].n_in; n++)
            reads |= p->values[p->nodes[i].in[n]].node == last;
        if (!reads || c->of.lead[i] != i || c->of.next[i] >= 0 || !is_usable(p, i) ||
            !is_near(&p->nodes[i], &p->nodes[lead]) ||
            (lead == last &&
             !can_begin(c, p->nodes[i].device, p->nodes[lead].node->op, p->nodes[i].node->op)))
            continue;
        draft longer = *d;
        if (!add_member(p, &longer, i))
            continue;
        longer.chain.kept = 0;
        mark_kept(c, &longer);
        if (is_taken(p, &longer, lead) && tti_can_move(&c->of, i, lead))
            return i;
    }
    return -1;
}

// Will fuse.c join this pointwise node with the maker of an input? That saves as much, or more.
static bool is_in_tiles(const chains *c, int i)
{
    const tti_plan *p = c->p;
    const tti_pnode *pn = &p->nodes[i];
    const unsigned never = TT_OP_RANDOM | TT_OP_EFFECT | TT_OP_UPDATE;
    bool is = false;
    for (int k = 0; k < pn->n_in && (pn->node->op->flags & TT_OP_POINTWISE) != 0; k++) {
        const tti_value *v = &p->values[pn->in[k]];
        const tti_pnode *maker = &p->nodes[v->node];
        is |= c->n_uses[pn->in[k]] == 1 && v->count == p->values[pn->out].count &&
              maker->kind == TTI_OP && is_near(pn, maker) &&
              (maker->node->op->flags & TT_OP_POINTWISE) != 0 &&
              (maker->node->op->flags & never) == 0;
    }
    return is;
}

static void grow_chain(chains *c, int lead)
{
    tti_plan *p = c->p;
    draft d = {.n_in = 0};
    int last = lead, i;
    if (c->of.lead[lead] != lead || !is_usable(p, lead) || is_in_tiles(c, lead) ||
        !add_member(p, &d, lead))
        return;
    while ((i = find_next(c, &d, lead, last)) >= 0 && add_member(p, &d, i)) {
        tti_move_to(&c->of, i, lead, last);
        last = i;
    }
}

// Makes one node of the chain of lead; map gets the new numbers of its outputs.
static tt_status make_node(chains *c, int lead, int *map)
{
    tti_plan *p = c->p;
    draft d = {.n_in = 0};
    int n_after = 0, n = 0;
    for (int i = lead; i >= 0; i = c->of.next[i]) {
        (void)add_member(p, &d, i); // as before: there is room
        n_after += p->nodes[i].n_after;
    }
    mark_kept(c, &d);
    int *in = tti_plan_alloc(p, sizeof(int) * (size_t)d.n_in);
    int *after = tti_plan_alloc(p, sizeof(int) * (size_t)(n_after + 1));
    int *members = tti_plan_alloc(p, sizeof(int) * TTI_CHAIN_MAX);
    tti_chain *chain = tti_plan_alloc(p, sizeof(*chain));
    if (in == NULL || after == NULL || members == NULL || chain == NULL)
        return TT_ENOMEM;
    n_after = 0;
    for (int i = lead; i >= 0; i = c->of.next[i]) {
        for (int k = 0; k < p->nodes[i].n_after; k++)
            if (c->of.lead[p->nodes[i].after[k]] != lead)
                after[n_after++] = p->nodes[i].after[k];
        p->nodes[i].is_dropped = i != lead;
        members[n++] = i;
    }
    memcpy(in, d.in, sizeof(int) * (size_t)d.n_in);
    *chain = d.chain;
    int first = (int)p->n_values;
    for (int o = 0; o < d.n_out; o++) {
        tti_value v = p->values[d.out[o]];
        v.node = lead;
        v.root = -1;
        if ((d.chain.kept >> o & 1u) == 0)
            v.count = 0, v.bytes = 0;
        map[d.out[o]] = tti_plan_value(p, v);
        if (map[d.out[o]] < 0)
            return TT_ENOMEM;
    }
    tti_pnode *pn = &p->nodes[lead];
    for (int m = 0; m < n; m++) // so late, what its inputs end with ends before
        pn->key = tti_key_later(pn->key, p->nodes[members[m]].key);
    pn->kind = TTI_CHAINED;
    pn->in = in;
    pn->n_in = d.n_in;
    pn->out = first;
    pn->n_out = d.n_out;
    pn->after = after;
    pn->n_after = n_after;
    pn->members = members;
    pn->n_members = n;
    pn->chain = chain;
    return TT_OK;
}

// The outputs of joined nodes have other numbers; control edges to a member lead to its chain.
static void renumber(chains *c, const int *map, int64_t n_old)
{
    tti_plan *p = c->p;
    for (int64_t i = 0; i < p->n_nodes; i++) {
        for (int k = 0; k < p->nodes[i].n_in; k++)
            if (p->nodes[i].in[k] < n_old)
                p->nodes[i].in[k] = map[p->nodes[i].in[k]];
        for (int k = 0; k < p->nodes[i].n_after; k++)
            if (p->nodes[p->nodes[i].after[k]].is_dropped)
                p->nodes[i].after[k] = c->of.lead[p->nodes[i].after[k]];
    }
    for (int64_t i = 0; i < n_old; i++)
        if (p->values[i].root < n_old)
            p->values[i].root = map[p->values[i].root];
    for (int i = 0; i < p->n_targets; i++)
        p->targets[i] = map[p->targets[i]];
}

// ---- the stage -------------------------------------------------------------------------------

static bool count_uses(chains *c)
{
    tti_plan *p = c->p;
    c->n_uses = tti_calloc(p->ctx, (size_t)p->n_values + 1, sizeof(int));
    if (c->n_uses == NULL)
        return false;
    for (int64_t i = 0; i < p->n_nodes; i++)
        for (int k = 0; k < p->nodes[i].n_in && !p->nodes[i].is_dropped; k++)
            c->n_uses[p->nodes[i].in[k]]++;
    for (int i = 0; i < p->n_targets; i++)
        c->n_uses[p->targets[i]]++;
    return true;
}

static tt_status make_nodes(chains *c)
{
    tti_plan *p = c->p;
    int64_t n_old = p->n_values;
    int *map = tti_alloc(p->ctx, sizeof(int) * (size_t)(n_old + 1));
    tt_status st = map == NULL ? TT_ENOMEM : TT_OK;
    for (int64_t i = 0; st == TT_OK && i < n_old; i++)
        map[i] = (int)i;
    for (int i = 0; st == TT_OK && i < (int)p->n_nodes; i++)
        if (p->nodes[i].kind == TTI_OP && c->of.lead[i] == i && c->of.next[i] >= 0)
            st = make_node(c, i, map);
    if (st == TT_OK)
        renumber(c, map, n_old);
    tti_free(p->ctx, map);
    return st;
}

// An order of the nodes, which has changed some keys: they get back those they had.
static tt_status sort(tti_plan *p, tti_edges *out)
{
    tti_order_key *keys = tti_alloc(p->ctx, sizeof(*keys) * (size_t)(p->n_nodes + 1));
    if (keys == NULL)
        return TT_ENOMEM;
    for (int64_t i = 0; i < p->n_nodes; i++)
        keys[i] = p->nodes[i].key;
    tt_status st = tti_plan_sort(p, out);
    for (int64_t i = 0; i < p->n_nodes; i++)
        p->nodes[i].key = keys[i];
    tti_free(p->ctx, keys);
    return st;
}

static tt_status chain_nodes(chains *c)
{
    tti_plan *p = c->p;
    tti_edges edges = {NULL, NULL, 0};
    tt_status st = count_uses(c) ? sort(p, &edges) : TT_ENOMEM;
    if (st == TT_OK)
        st = tti_fusion_order_init(p, &edges, &c->of);
    tti_edges_free(p, &edges);
    for (int k = 0; st == TT_OK && k < p->n_order; k++)
        grow_chain(c, p->order[k]);
    return st == TT_OK ? make_nodes(c) : st;
}

tt_status tti_plan_chain(tti_plan *p)
{
    bool any = false;
    for (int i = 0; i < p->top->n_devices; i++)
        any |= tti_has_streams(p->top->devices[i]);
    chains *c = any ? tti_calloc(p->ctx, 1, sizeof(*c)) : NULL;
    if (c == NULL)
        return any ? TT_ENOMEM : TT_OK;
    c->p = p;
    tt_status st = has_candidates(c) ? chain_nodes(c) : TT_OK;
    tti_fusion_order_deinit(p, &c->of);
    tti_free(p->ctx, c->n_uses);
    tti_free(p->ctx, c);
    return st;
}
