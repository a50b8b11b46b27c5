/*
 * autodiff.c - reverse-mode gradients, as nodes added to the graph.
 *
 * Each tensor collects the gradients that its users send it. Users are visited from the last node
 * to the first, but their contributions are added in ascending order of the users' ids: the order
 * is part of the arithmetic, and does not depend on what else is asked for. A tensor's
 * contributions are summed when its own node is reached, which is after all its users.
 */
#include "graph/graph.h"
#include <string.h>

typedef struct contribution {
    tt_tensor *value;
    struct contribution *next; // of a user with a higher id
} contribution;

typedef struct grads {
    tt_graph *g;
    int64_t n_nodes;      // of the graph before gradients were added
    contribution **first; // per output: slot[node id] + output index
    int64_t *slot;
    uint8_t *needed; // nodes on a way from some x to y
    contribution *made;
    int64_t n_made, cap_made;
} grads;

static bool is_float(tt_dtype t)
{
    return t == TT_F32 || t == TT_F64 || t == TT_BF16 || t == TT_F16;
}

static int64_t slot_of(const grads *gr, const tt_tensor *t)
{
    return gr->slot[t->node->id] + t->index;
}

// Marks nodes that depend on some x, then keeps those y depends on.
static void mark_needed(grads *gr, const tt_tensor *y, int n, tt_tensor *const *xs)
{
    uint8_t *mark = gr->needed; // 1: depends on an x, 2: y depends on it, 3: both
    for (int i = 0; i < n; i++)
        if (xs[i]->node->id < gr->n_nodes)
            mark[xs[i]->node->id] |= 1;
    for (int64_t i = 0; i < gr->n_nodes; i++)
        for (int k = 0; k < gr->g->nodes[i]->n_in; k++)
            mark[i] |= mark[gr->g->nodes[i]->in[k]->node->id] & 1;
    mark[y->node->id] |= 2;
    for (int64_t i = gr->n_nodes - 1; i >= 0; i--)
        for (int k = 0; (mark[i] & 2) != 0 && k < gr->g->nodes[i]->n_in; k++)
            mark[gr->g->nodes[i]->in[k]->node->id] |= 2;
}

// Puts a contribution before the earlier made ones: users come in descending order.
static bool contribute(grads *gr, const tt_tensor *to, tt_tensor *value)
{
    contribution *c = tti_graph_alloc(gr->g, sizeof(*c));
    if (c == NULL)
        return false;
    contribution **at = &gr->first[slot_of(gr, to)];
    *c = (contribution){value, *at};
    *at = c;
    return true;
}

static tt_tensor *total(grads *gr, const tt_tensor *t)
{
    contribution *c = gr->first[slot_of(gr, t)];
    if (c == NULL)
        return NULL;
    tt_tensor *sum = c->value;
    for (c = c->next; c != NULL && sum != NULL; c = c->next)
        sum = tt_add(gr->g, sum, c->value);
    if (sum != NULL) { // summed once
        contribution *first = gr->first[slot_of(gr, t)];
        first->value = sum;
        first->next = NULL;
    }
    return sum;
}

static tt_status check_gradient(const tt_node *n, int i, const tt_tensor *dx)
{
    const tt_tensor *x = n->in[i];
    bool same = dx->shape.rank == x->shape.rank && dx->dtype == x->dtype;
    for (int d = 0; same && d < x->shape.rank; d++)
        same = dx->shape.dim[d] == x->shape.dim[d];
    if (same)
        return TT_OK;
    char a[TT_SHAPE_TEXT], b[TT_SHAPE_TEXT];
    return TT_FAIL(n->graph->ctx, TT_ESHAPE,
                   "the gradient of %s '%s' with respect to input %d is %s %s, not %s %s",
                   n->op->name, n->name, i, tt_dtype_name(dx->dtype), tt_shape_text(&dx->shape, a),
                   tt_dtype_name(x->dtype), tt_shape_text(&x->shape, b));
}

// The backward of a pinned node runs where the node does.
static void follow_forward(tt_graph *g, int64_t first, const tt_node *n)
{
    for (int64_t i = first; i < g->n_nodes; i++) {
        g->nodes[i]->origin = n;
        if (!n->has_pin)
            continue;
        g->nodes[i]->has_pin = true;
        g->nodes[i]->pin = n->pin;
    }
}

// Sends the gradients of node n to its inputs.
static tt_status backward(grads *gr, const tt_node *n)
{
    tt_ctx *ctx = gr->g->ctx;
    if (n->n_in == 0)
        return TT_OK;
    tt_status st = TT_ENOMEM;
    int64_t before = gr->g->n_nodes;
    tt_tensor **dy = tti_calloc(ctx, (size_t)n->n_out, sizeof(*dy));
    tt_tensor **dx = tti_calloc(ctx, (size_t)n->n_in, sizeof(*dx));
    if (dy == NULL || dx == NULL)
        goto done;
    bool any = false, wanted = false;
    for (int i = 0; i < n->n_out; i++) {
        dy[i] = total(gr, n->outs[i]);
        any |= dy[i] != NULL;
    }
    for (int i = 0; i < n->n_in; i++)
        wanted |= (gr->needed[n->in[i]->node->id] & 1) != 0 && is_float(n->in[i]->dtype);
    st = tt_status_of(ctx);
    if (!any || !wanted || st != TT_OK)
        goto done;
    if (n->op->grad == NULL) {
        if ((n->op->flags & TT_OP_NO_GRAD) == 0)
            st = TT_FAIL(ctx, TT_EUNSUPPORTED, "gradient: op %s ('%s') has no gradient",
                         n->op->name, n->name);
        goto done;
    }
    n->op->grad(gr->g, n, dy, dx);
    st = tt_status_of(ctx);
    for (int i = 0; st == TT_OK && i < n->n_in; i++) {
        if (dx[i] == NULL || (gr->needed[n->in[i]->node->id] & 1) == 0)
            continue;
        st = check_gradient(n, i, dx[i]);
        if (st == TT_OK && !contribute(gr, n->in[i], dx[i]))
            st = TT_ENOMEM;
    }
done:
    follow_forward(gr->g, before, n);
    tti_free(ctx, dy);
    tti_free(ctx, dx);
    return st;
}

static tt_status check_arguments(tt_graph *g, tt_tensor *y, tt_tensor *seed, int n,
                                 tt_tensor *const *xs)
{
    char a[TT_SHAPE_TEXT], b[TT_SHAPE_TEXT];
    for (int i = 0; i < n; i++)
        if (xs[i] == NULL || xs[i]->graph != g)
            return TT_FAIL(g->ctx, TT_EINVAL, "gradient: x %d does not belong to this graph", i);
    if (y->graph != g || (seed != NULL && seed->graph != g))
        return TT_FAIL(g->ctx, TT_EINVAL, "gradient: y and seed must belong to this graph");
    if (!is_float(y->dtype))
        return TT_FAIL(g->ctx, TT_EDTYPE, "gradient: '%s' is %s, not a float", y->node->name,
                       tt_dtype_name(y->dtype));
    if (seed == NULL && tt_shape_count(&y->shape) != 1)
        return TT_FAIL(g->ctx, TT_ESHAPE,
                       "gradient: '%s' is %s; without a seed it must be a scalar", y->node->name,
                       tt_shape_text(&y->shape, a));
    if (seed != NULL && (seed->dtype != y->dtype || !tti_shape_equal(&seed->shape, &y->shape)))
        return TT_FAIL(g->ctx, TT_ESHAPE, "gradient: the seed is %s but '%s' is %s",
                       tt_shape_text(&seed->shape, a), y->node->name, tt_shape_text(&y->shape, b));
    return TT_OK;
}

tt_status tt_grad(tt_graph *g, tt_tensor *y, tt_tensor *seed, int n, tt_tensor *const *xs,
                  tt_tensor **out)
{
    if (g == NULL)
        return TT_FAIL(tti_tensor_ctx(y), TT_EINVAL, "gradient: the graph is NULL");
    if (tti_is_stuck(g->ctx))
        return tt_status_of(g->ctx);
    if (y == NULL || n < 0 || (n > 0 && (xs == NULL || out == NULL)))
        return TT_FAIL(g->ctx, TT_EINVAL, "gradient: y, xs or out is NULL");
    TT_TRY(check_arguments(g, y, seed, n, xs));
    grads gr = {.g = g, .n_nodes = g->n_nodes};
    tt_status st = TT_ENOMEM;
    int64_t slots = 0;
    gr.slot = tti_calloc(g->ctx, (size_t)gr.n_nodes + 1, sizeof(*gr.slot));
    gr.needed = tti_calloc(g->ctx, (size_t)gr.n_nodes + 1, 1);
    if (gr.slot == NULL || gr.needed == NULL)
        goto done;
    for (int64_t i = 0; i < gr.n_nodes; i++) {
        gr.slot[i] = slots;
        slots += g->nodes[i]->n_out;
    }
    gr.first = tti_calloc(g->ctx, (size_t)slots + 1, sizeof(*gr.first));
    if (gr.first == NULL)
        goto done;
    mark_needed(&gr, y, n, xs);
    int64_t before = g->n_nodes;
    if (seed == NULL)
        seed = tt_fill(g, y->dtype, y->shape, 1.0);
    follow_forward(g, before, y->node);
    if (seed == NULL || !contribute(&gr, y, seed)) {
        st = tt_status_of(g->ctx);
        goto done;
    }
    st = TT_OK;
    for (int64_t i = y->node->id; st == TT_OK && i >= 0; i--)
        if (gr.needed[i] == 3)
            st = backward(&gr, g->nodes[i]);
    for (int i = 0; st == TT_OK && i < n; i++) {
        before = g->n_nodes;
        out[i] = total(&gr, xs[i]);
        follow_forward(g, before, xs[i]->node);
        st = tt_status_of(g->ctx);
    }
done:
    if (st != TT_OK)
        tti_graph_truncate(g, gr.n_nodes);
    tti_free(g->ctx, gr.first);
    tti_free(g->ctx, gr.needed);
    tti_free(g->ctx, gr.slot);
    return st;
}
