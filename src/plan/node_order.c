/*
 * node_order.c - one global order of the plan nodes.
 *
 * Edges are data, control, and those that keep readers of a variable before its next update. Among
 * the nodes that are ready the one with the smallest key goes first: the order of creation, but
 * updates right after the gradient they need (which frees it), single numbers right after what they
 * come from, receives right before their first reader. Every device's list is a part of this order,
 * so a wait always looks back in it: no set of lists can deadlock.
 */
#include "device/device.h"
#include "plan/plan.h"
#include "plan/verify/verify.h"
#include <string.h>

typedef struct edges {
    tti_plan *p;
    int *from, *to;
    int64_t n, cap_from, cap_to;
    int *first; // by node: index of its first edge in next[]
    int *next;
    int *missing;       // by node: edges into it not yet satisfied
    tti_order_key *key; // by node: the node's, side by side
    int *heap;
    int n_heap;
    int *waited; // by collective: its nodes that are not ready
} edges;

static tt_status add_edge(edges *e, int from, int to)
{
    if (from == to)
        return TT_OK;
    if (e->n == TTI_MIN(e->cap_from, e->cap_to) && // else there is room
        (!tti_grow(e->p->ctx, &e->from, &e->cap_from, e->n + 1, sizeof(int)) ||
         !tti_grow(e->p->ctx, &e->to, &e->cap_to, e->n + 1, sizeof(int))))
        return TT_ENOMEM;
    e->from[e->n] = from;
    e->to[e->n++] = to;
    return TT_OK;
}

// ---- variables: readers before the next update -----------------------------------------------

// The update whose result a value is, through views; -1: the value from before the run.
int tti_version_of(const tti_plan *p, int value)
{
    for (;;) {
        const tti_pnode *maker = &p->nodes[p->values[value].node];
        bool collects = maker->kind == TTI_COLLECT || maker->kind == TTI_LIBRARY_COLLECTIVE;
        if (collects && p->values[value].memory == TTI_VARIABLE)
            return p->values[value].node;
        if (maker->kind != TTI_OP)
            return -1;
        if ((maker->node->op->flags & TT_OP_UPDATE) != 0)
            return p->values[value].node;
        if ((maker->node->op->flags & TT_OP_VIEW) == 0)
            return -1;
        value = maker->in[0];
    }
}

typedef struct write {
    int node;
    int next; // of the same variable; -1: this is the last
} write;

// The first write from w[at] on after the one by node version (-1: the first of all); -1: none.
static int next_write(const write *w, int at, int version)
{
    while (at >= 0 && w[at].node <= version)
        at = w[at].next;
    return at < 0 ? -1 : w[at].node;
}

static tt_status variable_edges(edges *e)
{
    tti_plan *p = e->p;
    int n = 0, max = 0;
    for (int64_t i = 0; i < p->n_nodes; i++)
        for (int k = 0; k < p->nodes[i].n_in && !p->nodes[i].is_dropped; k++)
            max += tti_writes_input(p, &p->nodes[i], k);
    if (max == 0)
        return TT_OK;
    write *writes = tti_alloc(p->ctx, sizeof(*writes) * (size_t)max);
    // By root: its first and last write so far, + 1.
    int *first = tti_calloc(p->ctx, 2 * (size_t)p->n_values, sizeof(int));
    int *last = first + p->n_values;
    tt_status st = writes == NULL || first == NULL ? TT_ENOMEM : TT_OK;
    for (int64_t i = 0; st == TT_OK && i < p->n_nodes; i++) {
        for (int k = 0; k < p->nodes[i].n_in && !p->nodes[i].is_dropped; k++) {
            if (!tti_writes_input(p, &p->nodes[i], k))
                continue;
            int root = tti_root(p, p->nodes[i].in[k]);
            writes[n] = (write){(int)i, -1};
            if (first[root] == 0)
                first[root] = n + 1;
            else
                writes[last[root] - 1].next = n;
            last[root] = ++n;
        }
    }
    for (int64_t i = 0; st == TT_OK && i < p->n_nodes; i++) {
        for (int k = 0; st == TT_OK && k < p->nodes[i].n_in && !p->nodes[i].is_dropped; k++) {
            int root = tti_root(p, p->nodes[i].in[k]);
            if (p->values[root].memory != TTI_VARIABLE || first[root] == 0 ||
                !tti_reads(&p->nodes[i], k))
                continue;
            int at = first[root] - 1;
            if (p->nodes[i].kind == TTI_COLLECT && k > 0)
                continue;                               // pieces that no other replica writes
            if (tti_writes_input(p, &p->nodes[i], k)) { // updates of one variable keep their order
                int after = next_write(writes, at, (int)i);
                if (after >= 0)
                    st = add_edge(e, (int)i, after);
                continue;
            }
            int w = next_write(writes, at, tti_version_of(p, p->nodes[i].in[k]));
            if (w >= 0)
                st = add_edge(e, (int)i, w);
        }
    }
    tti_free(p->ctx, writes);
    tti_free(p->ctx, first);
    return st;
}

// ---- keys ------------------------------------------------------------------------------------

// Single numbers from single numbers, made as soon as they can be: updates may wait for them.
static bool is_scalar(const tti_plan *p, const tti_pnode *pn)
{
    bool scalar = pn->kind == TTI_OP && pn->n_in > 0;
    for (int k = 0; scalar && k < pn->n_in + pn->n_out; k++)
        scalar = p->values[k < pn->n_in ? pn->in[k] : pn->out + k - pn->n_in].count == 1;
    return scalar;
}

// Gradients are looked at while a core's cache has them; on a GPU all at once, by one launch.
static bool looks_at_parts(const tti_plan *p, const tti_pnode *pn)
{
    return pn->kind == TTI_OP && (pn->node->op->flags & TT_OP_PARTS) != 0 && pn->device >= 0 &&
           !tti_has_streams(p->top->devices[pn->device]);
}

// Where what a node makes is looked for: library collectives has time until then.
static tti_order_key ready_key(const tti_pnode *pn)
{
    return pn->kind == TTI_LIBRARY_COLLECTIVE ? pn->ready : pn->key;
}

// Readers of library collectives stand where it is ready; pieces are put together after their
// updates.
static void wait_for_joint(tti_plan *p, tti_pnode *pn)
{
    for (int k = 0; k < pn->n_in; k++) {
        const tti_pnode *maker = &p->nodes[p->values[pn->in[k]].node];
        if (maker->kind == TTI_LIBRARY_COLLECTIVE)
            pn->key = tti_key_later(pn->key, maker->ready);
    }
    if (pn->kind == TTI_LIBRARY_COLLECTIVE && pn->what->kind == TTI_ALL_GATHER)
        pn->key = pn->ready =
            tti_key_shift(p->nodes[p->values[pn->in[0]].node].key, TTI_SHIFT_ASSEMBLE);
}

static void set_keys(tti_plan *p)
{
    for (int64_t i = 0; i < p->n_nodes; i++) {
        tti_pnode *pn = &p->nodes[i];
        wait_for_joint(p, pn);
        bool ready = pn->kind == TTI_OP && (pn->node->op->flags & TT_OP_SOURCE) != 0;
        if (ready && pn->node->op != &tti_op_feed)
            pn->key = TTI_KEY_START; // variables and constants are there from the start
        bool update = pn->kind == TTI_OP && (pn->node->op->flags & TT_OP_UPDATE) != 0;
        if (!update && !is_scalar(p, pn) && !looks_at_parts(p, pn))
            continue;
        tti_order_key key = {0};
        for (int k = 0; k < pn->n_in; k++)
            key = tti_key_later(key, ready_key(&p->nodes[p->values[pn->in[k]].node]));
        pn->key = tti_key_shift(key, update ? TTI_SHIFT_UPDATE : TTI_SHIFT_SCALAR);
    }
    for (int64_t i = 0; i < p->n_nodes; i++) { // receives: before their first reader
        tti_pnode *pn = &p->nodes[i];
        if (pn->kind == TTI_RECV && pn->n_out > 0)
            pn->key = TTI_KEY_UNKNOWN;
        if (pn->kind == TTI_SEND && pn->n_in > 0) // as soon as it is there
            pn->key = tti_key_shift(p->nodes[p->values[pn->in[0]].node].key, TTI_SHIFT_SEND);
    }
    for (int64_t i = 0; i < p->n_nodes; i++) {
        for (int k = 0; k < p->nodes[i].n_in && !p->nodes[i].is_dropped; k++) {
            tti_pnode *maker = &p->nodes[p->values[p->nodes[i].in[k]].node];
            if (maker->kind == TTI_RECV)
                maker->key =
                    tti_key_earlier(maker->key, tti_key_shift(p->nodes[i].key, -TTI_SHIFT_RECEIVE));
        }
    }
    for (int64_t i = 0; i < p->n_nodes && p->n_collectives > 0; i++)
        if (p->nodes[i].kind == TTI_RECV)
            wait_for_joint(p, &p->nodes[i]);
}

// ---- the heap of ready nodes -----------------------------------------------------------------

static bool before(const edges *e, int a, int b)
{
    int keys = tti_key_compare(e->key[a], e->key[b]);
    return keys != 0 ? keys < 0 : a < b;
}

static void heap_push(edges *e, int node)
{
    int i = e->n_heap++;
    for (; i > 0 && before(e, node, e->heap[(i - 1) / 2]); i = (i - 1) / 2)
        e->heap[i] = e->heap[(i - 1) / 2];
    e->heap[i] = node;
}

static int heap_pop(edges *e)
{
    int top = e->heap[0], last = e->heap[--e->n_heap], i = 0;
    for (;;) {
        int child = 2 * i + 1;
        if (child >= e->n_heap)
            break;
        if (child + 1 < e->n_heap && before(e, e->heap[child + 1], e->heap[child]))
            child++;
        if (!before(e, e->heap[child], last))
            break;
        e->heap[i] = e->heap[child];
        i = child;
    }
    e->heap[i] = last;
    return top;
}

// A node whose edges are all satisfied: library collectives wait for those of the other devices.
static void become_ready(edges *e, int node)
{
    const tti_pnode *pn = &e->p->nodes[node];
    if (!tti_is_of_collective(pn))
        heap_push(e, node);
    else if (--e->waited[pn->collective] == 0)
        heap_push(e, e->p->collectives[pn->collective].first);
}

// The node gets its place, and those that waited for it are told.
static void place_next(edges *e, int i)
{
    tti_plan *p = e->p;
    p->nodes[i].position = p->n_order;
    p->order[p->n_order++] = i;
    for (int k = i == 0 ? 0 : e->first[i - 1]; k < e->first[i]; k++)
        if (--e->missing[e->next[k]] == 0)
            become_ready(e, e->next[k]);
}

static tt_status collect_edges(edges *e)
{
    tti_plan *p = e->p;
    for (int64_t i = 0; i < p->n_nodes; i++) {
        if (p->nodes[i].is_dropped)
            continue;
        for (int k = 0; k < p->nodes[i].n_in; k++) {
            int maker = p->values[p->nodes[i].in[k]].node;
            if (!p->nodes[maker].is_dropped && tti_reads(&p->nodes[i], k))
                TT_TRY(add_edge(e, maker, (int)i));
        }
        for (int k = 0; k < p->nodes[i].n_after; k++)
            TT_TRY(add_edge(e, p->nodes[i].after[k], (int)i));
    }
    return variable_edges(e);
}

static tt_status report_cycle(edges *e)
{
    tti_plan *p = e->p;
    for (int64_t i = 0; i < p->n_nodes; i++) {
        const tti_pnode *pn = &p->nodes[i];
        if (e->missing[i] == 0 || pn->is_dropped || (pn->node->op->flags & TT_OP_UPDATE) == 0)
            continue;
        return TT_FAIL(
            p->ctx, TT_EINVAL,
            "%s '%s': the value from before this update is read by a node that depends on "
            "the update",
            pn->node->op->name, pn->node->name);
    }
    return TT_FAIL(p->ctx, TT_EINVAL, "the graph has a cycle");
}

static tt_status sort_nodes(edges *e)
{
    tti_plan *p = e->p;
    size_t n = (size_t)p->n_nodes + 1;
    e->first = tti_calloc(p->ctx, n + 1, sizeof(int));
    e->next = tti_calloc(p->ctx, (size_t)e->n + 1, sizeof(int));
    e->missing = tti_calloc(p->ctx, n, sizeof(int));
    e->heap = tti_calloc(p->ctx, n, sizeof(int));
    e->key = tti_alloc(p->ctx, n * sizeof(*e->key));
    e->waited = tti_calloc(p->ctx, (size_t)p->n_collectives + 1, sizeof(int));
    p->order = tti_plan_alloc(p, sizeof(int) * n);
    if (e->first == NULL || e->next == NULL || e->missing == NULL || e->heap == NULL ||
        e->waited == NULL || p->order == NULL || e->key == NULL)
        return TT_ENOMEM;
    for (int64_t i = 0; i < p->n_nodes; i++)
        e->key[i] = p->nodes[i].key;
    for (int64_t u = 0; u < p->n_collectives; u++)
        e->waited[u] = p->collectives[u].n;
    for (int64_t i = 0; i < e->n; i++) {
        e->first[e->from[i] + 1]++;
        e->missing[e->to[i]]++;
    }
    for (size_t i = 0; i + 1 < n; i++)
        e->first[i + 1] += e->first[i];
    for (int64_t i = 0; i < e->n; i++)
        e->next[e->first[e->from[i]]++] = e->to[i];
    int live = 0;
    for (int64_t i = 0; i < p->n_nodes; i++) {
        if (p->nodes[i].is_dropped)
            continue;
        live++;
        if (e->missing[i] == 0)
            become_ready(e, (int)i);
    }
    while (e->n_heap > 0) {
        int i = heap_pop(e);
        bool is_one = !tti_is_of_collective(&p->nodes[i]);
        int many = is_one ? 1 : p->collectives[p->nodes[i].collective].n;
        for (int k = 0; k < many; k++)
            place_next(e, i + k);
    }
    return p->n_order == live ? TT_OK : report_cycle(e);
}

// Edges between devices, and to readers of library collectives, become waits later.
static tt_status keep_cross(tti_plan *p, const tti_edges *e)
{
    p->cross = tti_plan_alloc(p, sizeof(*p->cross) * (size_t)(e->n + 1));
    if (p->cross == NULL)
        return TT_ENOMEM;
    for (int64_t i = 0; i < e->n; i++)
        if (p->nodes[e->from[i]].device != p->nodes[e->to[i]].device ||
            (p->n_collectives > 0 && tti_is_on_collective(p, e->from[i])))
            p->cross[p->n_cross++] = (struct tti_cross){e->from[i], e->to[i]};
    return TT_OK;
}

tt_status tti_plan_sort(tti_plan *p, tti_edges *out)
{
    edges e = {.p = p};
    p->n_order = 0;
    set_keys(p);
    tt_status st = collect_edges(&e);
    if (st == TT_OK)
        st = sort_nodes(&e);
    tti_free(p->ctx, e.first);
    tti_free(p->ctx, e.next);
    tti_free(p->ctx, e.missing);
    tti_free(p->ctx, e.heap);
    tti_free(p->ctx, e.key);
    tti_free(p->ctx, e.waited);
    *out = (tti_edges){e.from, e.to, e.n};
    return st;
}

void tti_edges_free(tti_plan *p, tti_edges *e)
{
    tti_free(p->ctx, e->from);
    tti_free(p->ctx, e->to);
}

tt_status tti_plan_order(tti_plan *p)
{
    tti_edges e;
    tt_status st = tti_plan_sort(p, &e);
    if (st == TT_OK && p->top->n_devices > 1)
        st = keep_cross(p, &e);
    tti_edges_free(p, &e);
    return st;
}
