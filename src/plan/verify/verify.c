/*
 * verify.c - the rules on values, nodes, messages, lanes and the order; verify.h names them.
 */
#include "plan/verify/verify.h"
#include "device/device.h"
#include "plan/spread/spread.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

tt_status tti_broken(const tti_plan *p, const char *rule, int pnode, const char *format, ...)
{
    char text[512], who[192] = "";
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (pnode >= 0 && pnode < p->n_nodes) {
        const tti_pnode *pn = &p->nodes[pnode];
        bool placed = pn->device >= 0 && pn->device < p->top->n_devices;
        snprintf(who, sizeof(who), "node %d (%s '%.80s'%s%s) ", pnode, tti_pnode_kind_name(pn),
                 pn->node != NULL ? pn->node->name : "", placed ? " on " : "",
                 placed ? p->top->devices[pn->device]->name : "");
    }
    return TT_FAIL(p->ctx, TT_EASSERT, "wrong plan: %s: %s%s", rule, who, text);
}

static bool is_value(const tti_plan *p, int v)
{
    return v >= 0 && v < p->n_values;
}

static bool is_node(const tti_plan *p, int i)
{
    return i >= 0 && i < p->n_nodes;
}

static bool is_constant(const tti_plan *p, int v)
{
    return p->values[tti_root(p, v)].memory == TTI_CONSTANT;
}

// ---- values and nodes ------------------------------------------------------------------------

static tt_status check_value(const tti_plan *p, int v)
{
    const tti_value *value = &p->values[v];
    if (!is_node(p, value->node))
        return tti_broken(p, "makes", -1, "value %d is of node %d of %lld", v, value->node,
                          (long long)p->n_nodes);
    int root = v; // a chain that does not end is no root
    for (int64_t n = 0; p->values[root].root != root; n++) {
        root = p->values[root].root;
        if (!is_value(p, root) || n > p->n_values)
            return tti_broken(p, "makes", value->node,
                              "value %d has no memory of its own and "
                              "none of another's",
                              v);
    }
    return TT_OK;
}

static tt_status check_size(const tti_plan *p, int node, int v)
{
    const tti_value *value = &p->values[v];
    int64_t count = tt_shape_count(&value->shape);
    bool unkept = value->count == 0; // of a chain: nobody reads it
    if (value->sparse_rows > 0 || unkept)
        return TT_OK;
    if (value->count != count)
        return tti_broken(p, "size", node, "value %d has %lld elements, but its shape %lld", v,
                          (long long)value->count, (long long)count);
    if (value->bytes != (size_t)value->count * tt_dtype_bytes(value->dtype))
        return tti_broken(p, "size", node, "value %d of %lld %s has %zu bytes", v,
                          (long long)value->count, tt_dtype_name(value->dtype), value->bytes);
    return TT_OK;
}

static tt_status check_inputs(const tti_plan *p, int i)
{
    const tti_pnode *pn = &p->nodes[i];
    for (int k = 0; k < pn->n_in; k++) {
        int v = pn->in[k];
        if (!is_value(p, v))
            return tti_broken(p, "reads", i, "reads value %d of %lld", v, (long long)p->n_values);
        int maker = p->values[v].node;
        if (!tti_reads(pn, k) || is_constant(p, v))
            continue;
        if (p->nodes[maker].is_dropped)
            return tti_broken(p, "reads", i, "reads value %d, whose node %d was dropped", v, maker);
        const tti_pnode *m = &p->nodes[maker];
        bool own = v >= m->out && v < m->out + m->n_out;
        if (!own && p->values[v].root == v)
            return tti_broken(p, "reads", i, "reads value %d, which node %d does not make", v,
                              maker);
        TT_TRY(check_size(p, maker, v));
    }
    for (int k = 0; k < pn->n_after; k++)
        if (!is_node(p, pn->after[k]))
            return tti_broken(p, "reads", i, "comes after node %d of %lld", pn->after[k],
                              (long long)p->n_nodes);
    return TT_OK;
}

static tt_status check_outputs(const tti_plan *p, int i, int *maker)
{
    const tti_pnode *pn = &p->nodes[i];
    for (int o = 0; o < pn->n_out; o++) {
        int v = pn->out + o;
        if (!is_value(p, v) || p->values[v].node != i)
            return tti_broken(p, "makes", i, "makes value %d, which is of node %d", v,
                              is_value(p, v) ? p->values[v].node : -1);
        if (maker[v] >= 0)
            return tti_broken(p, "makes", i, "makes value %d, as node %d does", v, maker[v]);
        maker[v] = i;
        TT_TRY(check_size(p, i, v));
    }
    return TT_OK;
}

static tt_status check_nodes(const tti_plan *p)
{
    int *maker = tti_alloc(p->ctx, sizeof(*maker) * (size_t)(p->n_values + 1));
    tt_status st = maker == NULL ? TT_ENOMEM : TT_OK;
    for (int64_t v = 0; st == TT_OK && v < p->n_values; v++) {
        maker[v] = -1;
        st = check_value(p, (int)v);
    }
    for (int i = 0; st == TT_OK && i < p->n_nodes; i++) {
        if (p->nodes[i].is_dropped)
            continue;
        st = check_inputs(p, i);
        if (st == TT_OK &&
            p->nodes[i].transfer == NULL) // a message of nothing names another's value
            st = check_outputs(p, i, maker);
    }
    for (int i = 0; st == TT_OK && i < p->n_targets; i++)
        if (!is_value(p, p->targets[i]))
            st = tti_broken(p, "reads", -1, "target %d is value %d of %lld", i, p->targets[i],
                            (long long)p->n_values);
    tti_free(p->ctx, maker);
    return st;
}

// ---- devices ---------------------------------------------------------------------------------

static tt_status check_devices(const tti_plan *p, bool is_cut)
{
    for (int i = 0; i < p->n_nodes; i++) {
        const tti_pnode *pn = &p->nodes[i];
        if (pn->is_dropped)
            continue;
        if (pn->device < 0 || pn->device >= p->top->n_devices)
            return tti_broken(p, "device", i, "is on device %d of %d", pn->device,
                              p->top->n_devices);
        for (int k = 0; k < pn->n_in && is_cut; k++) {
            int at = p->values[pn->in[k]].device;
            if (at == pn->device || !tti_reads(pn, k) || is_constant(p, pn->in[k]))
                continue;
            bool copies = pn->kind == TTI_RECV && pn->transfer == NULL && pn->from == at;
            if (at < 0 || at >= p->top->n_devices || (!tti_kind_of(pn)->combines && !copies) ||
                tti_is_cross_host(p, pn->device, at))
                return tti_broken(p, "device", i, "reads value %d on device %d", pn->in[k], at);
        }
        if (is_cut && pn->kind == TTI_RECV && pn->transfer == NULL &&
            p->values[pn->out].bytes != p->values[pn->in[0]].bytes)
            return tti_broken(p, "size", i, "copies %zu bytes of %zu", p->values[pn->out].bytes,
                              p->values[pn->in[0]].bytes);
    }
    return TT_OK;
}

// ---- messages --------------------------------------------------------------------------------

static tt_status check_pair(const tti_plan *p, int send, int receive)
{
    const tti_transfer *a = p->nodes[send].transfer, *b = p->nodes[receive].transfer;
    if (a->n != b->n || a->bytes != b->bytes || a->begin != b->begin || a->stride != b->stride)
        return tti_broken(p, "messages", send,
                          "sends %d messages of %zu bytes; node %d receives %d of %zu", a->n,
                          a->bytes, receive, b->n, b->bytes);
    int from = p->top->devices[p->nodes[send].device]->task;
    int to = p->top->devices[p->nodes[receive].device]->task;
    if (a->peer != to || b->peer != from || from == to)
        return tti_broken(p, "messages", send,
                          "goes from process %d to %d, but names %d, and node %d names %d", from,
                          to, a->peer, receive, b->peer);
    return TT_OK;
}

// Every message has one sender and one receiver.
static tt_status check_messages(const tti_plan *p)
{
    size_t n = (size_t)p->n_messages + 1;
    int *sender = tti_calloc(p->ctx, n, sizeof(int)),
        *receiver = tti_calloc(p->ctx, n, sizeof(int));
    tt_status st = sender == NULL || receiver == NULL ? TT_ENOMEM : TT_OK;
    for (int i = 0; st == TT_OK && i < p->n_nodes; i++) {
        const tti_pnode *pn = &p->nodes[i];
        if (pn->is_dropped || pn->transfer == NULL)
            continue;
        int *side = pn->kind == TTI_SEND ? sender : receiver;
        const tti_transfer *m = pn->transfer;
        if (m->edge < 0 || m->n < 1 || m->edge > p->n_messages - m->n)
            st = tti_broken(p, "messages", i, "has messages %d to %d of %d", m->edge,
                            m->edge + m->n - 1, p->n_messages);
        for (int k = 0; st == TT_OK && k < m->n; k++) {
            if (side[m->edge + k] != 0)
                st = tti_broken(p, "messages", i, "has message %d, as node %d has", m->edge + k,
                                side[m->edge + k] - 1);
            side[m->edge + k] = i + 1;
        }
    }
    for (int e = 0; st == TT_OK && e < p->n_messages; e++) {
        if (sender[e] == 0 && receiver[e] == 0)
            continue; // of a node that was not kept
        if (sender[e] == 0 || receiver[e] == 0)
            st = tti_broken(p, "messages", TTI_MAX(sender[e], receiver[e]) - 1,
                            "has message %d, which nobody %s", e,
                            sender[e] == 0 ? "sends" : "receives");
        else
            st = check_pair(p, sender[e] - 1, receiver[e] - 1);
    }
    tti_free(p->ctx, sender);
    tti_free(p->ctx, receiver);
    return st;
}

// ---- lanes -----------------------------------------------------------------------------------

// What puts rows or sums together has all lanes of its own, in their order, once.
static tt_status check_combine(const tti_plan *p, int i)
{
    const tti_pnode *pn = &p->nodes[i];
    int stride = pn->kind == TTI_MOMENTS ? 2 : 1;
    int next = pn->lanes->first;
    for (int k = 0; k < pn->n_in; k += stride) {
        const tti_pnode *maker = tti_maker(p, pn->in[k]);
        const tt_lanes *ln = maker->lanes;
        if (ln->first != next)
            return tti_broken(p, "lanes", i, "has lanes from %d on as input %d; wanted: from %d",
                              ln->first, k, next);
        next = ln->first + ln->n;
    }
    if (next != pn->lanes->first + pn->lanes->n)
        return tti_broken(p, "lanes", i, "ends at lane %d of %d", next,
                          pn->lanes->first + pn->lanes->n);
    return TT_OK;
}

typedef struct span {
    const tt_node *node;
    bool is_recomputed;
    int first, n, pnode;
} span;

static int by_node(const void *a, const void *b)
{
    const span *x = a, *y = b;
    if (x->node->id != y->node->id)
        return x->node->id < y->node->id ? -1 : 1;
    if (x->is_recomputed != y->is_recomputed)
        return x->is_recomputed - y->is_recomputed;
    return x->first != y->first ? x->first - y->first : x->pnode - y->pnode;
}

// Copies of a node on some lanes each have, together, all of the plan's, once.
static tt_status check_spans(const tti_plan *p, const span *s, int n)
{
    for (int i = 0; i < n;) {
        int next = p->lanes.first, from = i;
        for (; i < n && s[i].node == s[from].node && s[i].is_recomputed == s[from].is_recomputed;
             i++) {
            if (s[i].first != next)
                return tti_broken(p, "lanes", s[i].pnode, "has lanes from %d on; wanted: from %d",
                                  s[i].first, next);
            next = s[i].first + s[i].n;
        }
        if (next != p->lanes.first + p->lanes.n)
            return tti_broken(p, "lanes", s[i - 1].pnode, "and its copies end at lane %d of %d",
                              next, p->lanes.first + p->lanes.n);
    }
    return TT_OK;
}

static tt_status check_lanes(const tti_plan *p, bool with_copies)
{
    int n = 0;
    span *spans = tti_alloc(p->ctx, sizeof(*spans) * (size_t)(p->n_nodes + 1));
    tt_status st = spans == NULL ? TT_ENOMEM : TT_OK;
    for (int i = 0; st == TT_OK && i < p->n_nodes; i++) {
        const tti_pnode *pn = &p->nodes[i];
        if (pn->is_dropped)
            continue;
        if (tti_kind_of(pn)->combines_lanes && !pn->is_chain &&
            tti_maker(p, pn->in[0])->kind != TTI_NARROW)
            st = check_combine(p, i);
        // What is the same on every lane, as a count of rows, is made only where it is read.
        bool has_rows = pn->kind == TTI_OP && (pn->node->out == NULL ||
                                               pn->node->out->layout.kind != TT_LAYOUT_REPLICATED);
        if (with_copies && has_rows && pn->lanes->n < p->lanes.n)
            spans[n++] = (span){pn->node, pn->is_recomputed, pn->lanes->first, pn->lanes->n, i};
    }
    if (st == TT_OK) {
        qsort(spans, (size_t)n, sizeof(*spans), by_node);
        st = check_spans(p, spans, n);
    }
    tti_free(p->ctx, spans);
    return st;
}

// ---- order -----------------------------------------------------------------------------------

static tt_status check_before(const tti_plan *p, int first, int then, const char *why)
{
    const tti_pnode *a = &p->nodes[first], *b = &p->nodes[then];
    if (a->is_dropped || first == then || a->position < b->position)
        return TT_OK;
    return tti_broken(p, "order", then, "stands at %d, before node %d at %d, %s", b->position,
                      first, a->position, why);
}

static tt_status check_order(const tti_plan *p)
{
    int live = 0;
    for (int i = 0; i < p->n_nodes; i++)
        live += !p->nodes[i].is_dropped;
    if (p->n_order != live)
        return tti_broken(p, "order", -1, "%d nodes are in the order, of %d", p->n_order, live);
    for (int pos = 0; pos < p->n_order; pos++) {
        int i = p->order[pos];
        if (!is_node(p, i) || p->nodes[i].is_dropped || p->nodes[i].position != pos)
            return tti_broken(p, "order", i, "is at %d in the order; it believes it is at %d", pos,
                              is_node(p, i) ? p->nodes[i].position : -1);
        const tti_pnode *pn = &p->nodes[i];
        for (int k = 0; k < pn->n_in; k++)
            if (tti_reads(pn, k))
                TT_TRY(check_before(p, p->values[pn->in[k]].node, i, "which makes its input"));
        for (int k = 0; k < pn->n_after; k++)
            TT_TRY(check_before(p, pn->after[k], i, "which it must come after"));
    }
    return TT_OK;
}

typedef struct access {
    int root, position, node, version; // version: the update that made what is read
    bool writes;
} access;

static int by_root(const void *a, const void *b)
{
    const access *x = a, *y = b;
    return x->root != y->root ? x->root - y->root : x->position - y->position;
}

// A reader stands after the update whose result it wants and before the next.
static tt_status check_updates(const tti_plan *p)
{
    int64_t n = 0, max = 1;
    for (int64_t i = 0; i < p->n_nodes; i++)
        max += p->nodes[i].is_dropped ? 0 : p->nodes[i].n_in;
    access *list = tti_alloc(p->ctx, sizeof(*list) * (size_t)max);
    tt_status st = list == NULL ? TT_ENOMEM : TT_OK;
    for (int i = 0; st == TT_OK && i < p->n_nodes; i++) {
        const tti_pnode *pn = &p->nodes[i];
        for (int k = 0; k < pn->n_in && !pn->is_dropped; k++) {
            int root = tti_root(p, pn->in[k]);
            bool others = pn->kind == TTI_COLLECT && k > 0; // pieces that nobody else writes
            if (p->values[root].memory == TTI_VARIABLE && tti_reads(pn, k) && !others)
                list[n++] = (access){root, pn->position, i, tti_version_of(p, pn->in[k]),
                                     tti_writes_input(p, pn, k)};
        }
    }
    if (st == TT_OK)
        qsort(list, (size_t)n, sizeof(*list), by_root);
    int last = -1; // the update that was seen last
    for (int64_t i = 0; st == TT_OK && i < n; i++) {
        if (i == 0 || list[i].root != list[i - 1].root)
            last = -1;
        bool again = i > 0 && list[i].root == list[i - 1].root && list[i].node == list[i - 1].node;
        if (!list[i].writes && !again && list[i].version != last)
            st = tti_broken(p, "update", list[i].node,
                            "reads a variable as update %d leaves it, but update %d was the last",
                            list[i].version, last);
        if (list[i].writes)
            last = list[i].node;
    }
    tti_free(p->ctx, list);
    return st;
}

tt_status tti_plan_verify(const tti_plan *p, tti_stage stage)
{
    TT_TRY(check_nodes(p));
    if (stage >= TTI_STAGE_SPREAD) {
        TT_TRY(check_lanes(p, stage < TTI_STAGE_CHAIN)); // then joined ones stand for several
        TT_TRY(tti_verify_collectives(p));
    }
    if (stage >= TTI_STAGE_PLACE)
        TT_TRY(check_devices(p, stage >= TTI_STAGE_CUT));
    if (stage >= TTI_STAGE_CUT)
        TT_TRY(check_messages(p));
    if (stage >= TTI_STAGE_ORDER) {
        TT_TRY(check_order(p));
        TT_TRY(check_updates(p));
    }
    if (stage >= TTI_STAGE_SPREAD)
        TT_TRY(tti_verify_layouts(p));
    return stage >= TTI_STAGE_EMIT ? tti_verify_lists(p) : TT_OK;
}
