/*
 * bundle_messages.c - messages between hosts that have several replicas: those of one bucket of
 * gradients, from one device to another, become one.
 *
 * The send reads all values of the bundle; the receive has one value, of which those that were
 * received one by one are parts. Sums go when all of the bucket have been made, variables when all
 * updates of it have been.
 */
#include "plan/plan.h"
#include <stdlib.h>
#include <string.h>

typedef struct item {
    int from, to; // devices
    tt_dtype dtype;
    bool is_sum;
    tti_order_key bucket;
    int send, receive; // plan nodes
} item;

static int compare(const item *x, const item *y)
{
    if (x->from != y->from || x->to != y->to)
        return x->from != y->from ? x->from - y->from : x->to - y->to;
    if (x->dtype != y->dtype || x->is_sum != y->is_sum)
        return x->dtype != y->dtype ? (int)x->dtype - (int)y->dtype : x->is_sum - y->is_sum;
    return tti_key_compare(x->bucket, y->bucket);
}

static int by_bundle(const void *a, const void *b)
{
    const item *x = a, *y = b;
    int order = compare(x, y);
    return order != 0 ? order : x->send - y->send;
}

static bool is_host_sum(const tti_plan *p, const tti_pnode *pn)
{
    return pn->kind == TTI_TREE && pn->what != NULL && pn->lanes != &p->lanes;
}

// The bucket of gradients that a node's inputs come from: the place of the trees over them.
static bool find_bucket(const tti_plan *p, int node, int depth, tti_order_key *out)
{
    const tti_pnode *pn = &p->nodes[node];
    if (pn->kind == TTI_TREE && pn->what != NULL) {
        *out = pn->key;
        return true;
    }
    for (int k = 0; depth > 0 && pn->kind == TTI_OP && k < pn->n_in; k++)
        if (find_bucket(p, p->values[pn->in[k]].node, depth - 1, out))
            return true;
    return false;
}

// A send of all of a value that a bundle can take, of the receive; false: it stays alone.
static bool find_item(const tti_plan *p, int receive, item *out)
{
    const tti_pnode *to = &p->nodes[receive];
    if (to->kind != TTI_RECV || to->transfer == NULL || to->is_dropped || to->n_out != 1 ||
        to->n_after != 1)
        return false;
    const tti_pnode *from = &p->nodes[to->after[0]];
    if (from->kind != TTI_SEND || from->n_in != 1 || from->transfer->n != 1)
        return false;
    const tti_value *v = &p->values[from->in[0]];
    const tti_pnode *maker = &p->nodes[v->node];
    bool updates = maker->kind == TTI_OP && (maker->node->op->flags & TT_OP_UPDATE) != 0;
    *out = (item){.from = from->device,
                  .to = to->device,
                  .dtype = v->dtype,
                  .is_sum = is_host_sum(p, maker),
                  .send = to->after[0],
                  .receive = receive};
    return from->transfer->bytes == v->bytes && (out->is_sum || updates) &&
           find_bucket(p, v->node, 6, &out->bucket);
}

static int add_send(tti_plan *p, const item *items, int n, size_t bytes)
{
    int *in = tti_plan_alloc(p, sizeof(int) * (size_t)n);
    tti_transfer *t = tti_plan_alloc(p, sizeof(*t));
    struct iovec *parts = tti_plan_alloc(p, sizeof(*parts) * (size_t)n);
    if (in == NULL || t == NULL || parts == NULL)
        return -1;
    for (int i = 0; i < n; i++)
        in[i] = p->nodes[items[i].send].in[0];
    tti_pnode pn = p->nodes[items[n - 1].send];
    *t = (tti_transfer){
        .peer = pn.transfer->peer, .edge = p->n_messages++, .n = 1, .bytes = bytes, .parts = parts};
    pn.n_in = n;
    pn.in = in;
    pn.out = in[0];
    pn.transfer = t;
    return tti_plan_node(p, pn);
}

static tt_status make_bundle(tti_plan *p, const item *items, int n)
{
    size_t bytes = 0;
    int64_t count = 0;
    bool is_sent = false;
    for (int i = 0; i < n; i++) {
        const tti_value *v = &p->values[p->nodes[items[i].receive].out];
        bytes += v->bytes;
        count += v->count;
        is_sent |= v->is_sent;
    }
    int send = add_send(p, items, n, bytes);
    int *after = tti_plan_alloc(p, sizeof(int));
    tti_transfer *t = tti_plan_alloc(p, sizeof(*t));
    if (send < 0 || after == NULL || t == NULL)
        return TT_ENOMEM;
    tti_pnode pn = p->nodes[items[0].receive];
    tti_value all = p->values[pn.out];
    *t = *p->nodes[send].transfer;
    t->peer = pn.transfer->peer;
    after[0] = send;
    pn.after = pn.in = after;
    pn.transfer = t;
    pn.out = (int)p->n_values;
    all.node = tti_plan_node(p, pn);
    all.root = -1;
    all.skip = 0;
    all.is_piece = all.is_range = false;
    all.is_sent = is_sent;
    all.count = count;
    all.bytes = bytes;
    all.shape = (tt_shape){1, {count}};
    int buffer = all.node < 0 ? -1 : tti_plan_value(p, all);
    if (buffer < 0)
        return TT_ENOMEM;
    size_t at = 0;
    for (int i = 0; i < n; i++) {
        tti_value *v = &p->values[p->nodes[items[i].receive].out];
        v->root = buffer;
        v->skip = at;
        v->node = all.node;
        at += v->bytes;
        p->nodes[items[i].send].is_dropped = p->nodes[items[i].receive].is_dropped = true;
    }
    return TT_OK;
}

tt_status tti_bundle_messages(tti_plan *p)
{
    bool any = false;
    for (int64_t i = 0; i < p->n_nodes; i++)
        any |= is_host_sum(p, &p->nodes[i]);
    if (!any)
        return TT_OK;
    item *items = tti_alloc(p->ctx, sizeof(*items) * (size_t)(p->n_nodes + 1));
    if (items == NULL)
        return TT_ENOMEM;
    int n = 0;
    for (int64_t i = 0; i < p->n_nodes; i++)
        n += find_item(p, (int)i, &items[n]);
    qsort(items, (size_t)n, sizeof(*items), by_bundle);
    tt_status st = TT_OK;
    for (int i = 0, end; st == TT_OK && i < n; i = end) {
        for (end = i + 1; end < n && compare(&items[end], &items[i]) == 0;)
            end++;
        if (end - i > 1)
            st = make_bundle(p, &items[i], end - i);
    }
    tti_free(p->ctx, items);
    return st;
}
