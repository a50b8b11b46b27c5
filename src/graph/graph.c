/*
 * graph.c - building graphs: memory, names, scopes, nodes.
 */
#include "graph/graph.h"
#include "base/ctx.h"
#include <stdio.h>
#include <string.h>

#define POOL_BLOCK 65536

struct tti_block {
    tti_block *next;
    size_t used, size;
    _Alignas(16) char data[];
};

void *tti_graph_alloc(tt_graph *g, size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    tti_block *b = g->pool;
    if (b == NULL || b->size - b->used < bytes) {
        size_t size = TTI_MAX(bytes, (size_t)POOL_BLOCK);
        b = tti_calloc(g->ctx, 1, sizeof(*b) + size);
        if (b == NULL)
            return NULL;
        b->size = size;
        b->next = g->pool;
        g->pool = b;
    }
    void *p = b->data + b->used;
    b->used += bytes;
    return p;
}

static void graph_free(void *p)
{
    tt_graph *g = p;
    if (g->free_sessions != NULL)
        g->free_sessions(g);
    for (tti_block *b = g->pool, *next; b != NULL; b = next) {
        next = b->next;
        tti_free(g->ctx, b);
    }
    tti_free(g->ctx, g->nodes);
    tti_free(g->ctx, g->names);
    tti_free(g->ctx, g);
}

tt_graph *tt_graph_new(tt_ctx *ctx)
{
    if (tti_is_stuck(ctx))
        return NULL;
    tt_graph *g = tti_calloc(ctx, 1, sizeof(*g));
    if (g == NULL)
        return NULL;
    g->ctx = ctx;
    tti_own(ctx, &g->owned, g, graph_free);
    return g;
}

void tt_graph_free(tt_graph *g)
{
    if (g == NULL)
        return;
    tti_disown(g->ctx, &g->owned);
    graph_free(g);
}

tt_ctx *tt_graph_get_ctx(const tt_graph *g)
{
    return g == NULL ? NULL : g->ctx;
}

tt_ctx *tti_tensor_ctx(const tt_tensor *t)
{
    return t == NULL ? NULL : t->graph->ctx;
}

bool tti_has_graph(const tt_graph *g, const tt_tensor *x, const char *who)
{
    if (g == NULL)
        (void)TT_FAIL(tti_tensor_ctx(x), TT_EINVAL, "%s: the graph is NULL", who);
    return g != NULL;
}

// ---- names -----------------------------------------------------------------------------------

static uint64_t name_hash(const char *name)
{
    return tti_hash64(name, strlen(name), 0);
}

tt_node *tti_node_find(const tt_graph *g, const char *name)
{
    if (g == NULL || name == NULL || g->cap_names == 0)
        return NULL;
    uint64_t mask = (uint64_t)g->cap_names - 1;
    for (uint64_t i = name_hash(name) & mask; g->names[i] != 0; i = (i + 1) & mask) {
        tt_node *n = g->nodes[g->names[i] - 1];
        if (strcmp(n->name, name) == 0)
            return n;
    }
    return NULL;
}

static void name_put(tt_graph *g, int id)
{
    uint64_t mask = (uint64_t)g->cap_names - 1;
    uint64_t i = name_hash(g->nodes[id]->name) & mask;
    while (g->names[i] != 0)
        i = (i + 1) & mask;
    g->names[i] = id + 1;
}

// Room for one more name, at most half full.
static bool names_grow(tt_graph *g)
{
    if (g->cap_names > 2 * (g->n_nodes + 1))
        return true;
    int64_t cap = g->cap_names == 0 ? 256 : g->cap_names * 2;
    int32_t *names = tti_calloc(g->ctx, (size_t)cap, sizeof(*names));
    if (names == NULL)
        return false;
    tti_free(g->ctx, g->names);
    g->names = names;
    g->cap_names = cap;
    for (int64_t i = 0; i < g->n_nodes; i++)
        name_put(g, (int)i);
    return true;
}

void tti_graph_truncate(tt_graph *g, int64_t n)
{
    g->n_nodes = TTI_MIN(n, g->n_nodes);
    if (g->cap_names > 0)
        memset(g->names, 0, sizeof(*g->names) * (size_t)g->cap_names);
    memset(g->hints, 0, sizeof(g->hints)); // names that were taken are free again
    for (int64_t i = 0; i < g->n_nodes; i++)
        name_put(g, (int)i);
}

// The scopes that new names get.
static const char *scope_of(const tt_graph *g)
{
    return g->scope + TTI_MIN(g->scope_from, strlen(g->scope));
}

size_t tti_scope_root(tt_graph *g)
{
    size_t from = g->scope_from;
    g->scope_from = strlen(g->scope);
    return from;
}

void tti_scope_back(tt_graph *g, size_t from)
{
    g->scope_from = from;
}

// Writes "scope/base", made unique by "_1", "_2", ...
static tt_status name_make(tt_graph *g, const tt_op *op, const char *name, char out[TTI_NAME_MAX])
{
    const char *base = name != NULL && name[0] != 0 ? name : op->name;
    size_t scope = strlen(scope_of(g)), len = scope + strlen(base);
    if (len >= TTI_NAME_MAX)
        return TT_FAIL(g->ctx, TT_EINVAL, "name '%s%.40s...' is longer than %d characters",
                       scope_of(g), base, TTI_NAME_MAX - 1);
    memcpy(out, scope_of(g), scope);
    memcpy(out + scope, base, len - scope + 1);
    uint64_t hash = name_hash(out);
    struct tti_name_hint *hint = &g->hints[hash % TTI_COUNT(g->hints)];
    if (hint->hash != hash)
        *hint = (struct tti_name_hint){hash, 0};
    while (hint->next > 0 || tti_node_find(g, out) != NULL) {
        if (len + 12 > TTI_NAME_MAX)
            return TT_FAIL(g->ctx, TT_EINVAL,
                           "name '%.40s...' is taken, and too long to append a number", out);
        snprintf(out + len, 12, "_%d", TTI_MAX(hint->next, 1));
        hint->next = TTI_MAX(hint->next, 1) + 1;
        if (tti_node_find(g, out) == NULL)
            break;
    }
    return TT_OK;
}

tt_status tt_name_push(tt_graph *g, const char *scope)
{
    if (g == NULL || scope == NULL || scope[0] == 0)
        return TT_FAIL(g == NULL ? NULL : g->ctx, TT_EINVAL, "name scope is empty");
    size_t at = strlen(g->scope);
    if (g->n_scopes == TTI_SCOPE_DEPTH || at + strlen(scope) + 2 > TTI_NAME_MAX / 2)
        return TT_FAIL(g->ctx, TT_EINVAL, "name scope '%s%s' is too deep", g->scope, scope);
    g->scope_len[g->n_scopes++] = (int)at;
    snprintf(g->scope + at, TTI_NAME_MAX - at, "%s/", scope);
    return TT_OK;
}

tt_status tt_name_pop(tt_graph *g)
{
    if (g == NULL || g->n_scopes == 0)
        return TT_FAIL(g == NULL ? NULL : g->ctx, TT_EINVAL, "there is no open name scope");
    g->scope[g->scope_len[--g->n_scopes]] = 0;
    return TT_OK;
}

// ---- nodes -----------------------------------------------------------------------------------

// Writes the layouts of the outputs by the op's split rule.
static tt_status apply_split(tt_graph *g, tt_node *n)
{
    int *axis = tti_alloc(g->ctx, sizeof(int) * (size_t)TTI_MAX(n->n_in, 1));
    tt_split *out = tti_calloc(g->ctx, (size_t)TTI_MAX(n->n_out, 1), sizeof(*out));
    tt_status st = axis == NULL || out == NULL ? TT_ENOMEM : TT_OK;
    bool any = false;
    for (int i = 0; st == TT_OK && i < n->n_in; i++) {
        axis[i] = tt_open_axis(&n->in[i]->shape);
        any |= axis[i] >= 0;
    }
    for (int i = 0; n->n_in > 0 && i < n->n_out; i++) // rows from none: it mixes
        any |= tt_open_axis(&n->outs[i]->shape) >= 0;
    if (st == TT_OK && any && n->op->split != NULL) {
        tt_split_query q = {n, axis, out};
        st = n->op->split(&q);
    } else if (st == TT_OK && any) {
        for (int i = 0; i < n->n_out; i++)
            out[i].kind = TT_SPLIT_MIXES;
    }
    for (int i = 0; st == TT_OK && i < n->n_out; i++) {
        tt_tensor *t = n->outs[i];
        t->layout.dim = -1;
        if (out[i].kind == TT_SPLIT_MIXES)
            n->mixes_rows = true;
        else if (out[i].kind == TT_SPLIT_LANE_SUM)
            t->layout.kind = TT_LAYOUT_PARTIAL;
        else if (out[i].kind == TT_SPLIT_LANE_MOMENTS)
            t->layout.kind = TT_LAYOUT_MOMENTS;
        else if (out[i].kind == TT_SPLIT_AXIS)
            t->layout = (tt_layout){TT_LAYOUT_SPLIT, out[i].axis};
        TTI_ASSERT(out[i].kind != TT_SPLIT_AXIS || tt_open_axis(&t->shape) == out[i].axis);
    }
    tti_free(g->ctx, axis);
    tti_free(g->ctx, out);
    return st;
}

static tt_status check_inputs(tt_graph *g, const tt_op *op, int n_in, tt_tensor *const *in)
{
    bool few = n_in < op->inputs;
    bool many =
        op->max_inputs == 0 ? n_in > op->inputs : op->max_inputs > 0 && n_in > op->max_inputs;
    if (few || many)
        return TT_FAIL(g->ctx, TT_EINVAL, "%s: takes %s%d inputs, got %d", op->name,
                       op->max_inputs == 0 ? "" : (few ? "at least " : "at most "),
                       few || op->max_inputs == 0 ? op->inputs : op->max_inputs, n_in);
    for (int i = 0; i < n_in; i++) {
        if (in[i]->graph != g)
            return TT_FAIL(g->ctx, TT_EINVAL, "%s: input %d ('%s') belongs to another graph",
                           op->name, i, in[i]->node->name);
    }
    if ((op->flags & TT_OP_UPDATE) != 0 && !tti_is_variable(in[0]))
        return TT_FAIL(g->ctx, TT_EINVAL, "%s: '%s' is not a variable", op->name,
                       in[0]->node->name);
    return TT_OK;
}

static tt_status infer(tt_graph *g, const tt_op *op, tt_infer *q)
{
    q->ctx = g->ctx;
    q->name = op->name;
    q->n_out = op->outputs == 0 ? 1 : op->outputs;
    if (op->infer != NULL)
        TT_TRY(op->infer(q));
    for (int i = 0; i < q->n_out; i++) {
        TT_TRY(tti_shape_check(g->ctx, op->name, &q->shape[i], true));
        for (int k = q->shape[i].rank; k < TT_MAX_RANK; k++)
            q->shape[i].dim[k] = 0; // so that equal shapes are equal bytes
    }
    unsigned types = op->types == 0 ? TT_TYPES_FLOAT : op->types;
    if (q->n_out > 0 && (types & 1u << q->dtype[0]) == 0)
        return TT_FAIL(g->ctx, TT_EDTYPE, "%s: has no kernels for %s", op->name,
                       tt_dtype_name(q->dtype[0]));
    return TT_OK;
}

bool tti_shape_equal(const tt_shape *a, const tt_shape *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return true;
}

tt_node *tt_node_new(tt_graph *g, const tt_op *op, int n_in, tt_tensor *const *in, const void *attr,
                     const char *name)
{
    const tt_tensor *first = NULL;
    for (int i = 0; g == NULL && in != NULL && first == NULL && i < n_in; i++)
        first = in[i];
    if (!tti_has_graph(g, first, op == NULL ? "node" : op->name) || tti_is_stuck(g->ctx))
        return NULL;
    tt_ctx *ctx = g->ctx;
    if (op == NULL || (op->attr_size > 0 && attr == NULL) || n_in < 0) {
        (void)TT_FAIL(ctx, TT_EINVAL, "node: op or attributes are missing");
        return NULL;
    }
    for (int i = 0; i < n_in; i++) {
        if (in == NULL || in[i] == NULL) {
            (void)TT_FAIL(ctx, TT_EINVAL, "%s: input %d is NULL", op->name, i);
            return NULL;
        }
    }
    if (check_inputs(g, op, n_in, in) != TT_OK)
        return NULL;
    if (g->n_nodes >= TTI_MAX_NODES) {
        (void)TT_FAIL(ctx, TT_EINVAL, "graph has more than %d nodes", TTI_MAX_NODES);
        return NULL;
    }
    tt_infer *q = tti_calloc(ctx, 1, sizeof(*q));
    if (q == NULL)
        return NULL;
    q->n_in = n_in;
    q->in = in;
    q->attr = attr;
    char path[TTI_NAME_MAX];
    tt_node *n = NULL;
    if (infer(g, op, q) != TT_OK || name_make(g, op, name, path) != TT_OK)
        goto done;

    // From here on only memory can fail; the node joins the graph last.
    tt_node *made = tti_graph_alloc(g, sizeof(*made));
    char *text = tti_graph_alloc(g, strlen(path) + 1);
    void *attrs = tti_graph_alloc(g, op->attr_size + 1);
    tt_tensor **ins = tti_graph_alloc(g, sizeof(*ins) * (size_t)(n_in + 1));
    tt_tensor **outs = tti_graph_alloc(g, sizeof(*outs) * (size_t)(q->n_out + 1));
    tt_tensor *tensors = tti_graph_alloc(g, sizeof(*tensors) * (size_t)(q->n_out + 1));
    if (made == NULL || text == NULL || attrs == NULL || ins == NULL || outs == NULL ||
        tensors == NULL || !names_grow(g) ||
        !tti_grow(ctx, &g->nodes, &g->cap_nodes, g->n_nodes + 1, sizeof(*g->nodes)))
        goto done;
    strcpy(text, path);
    if (op->attr_size > 0 &&
        op->attrs != NULL) // padding stays zero: plans hash and compare the bytes
        tti_options_copy(op->attrs, attrs, attr);
    else if (op->attr_size > 0)
        memcpy(attrs, attr, op->attr_size);
    *made = (tt_node){.graph = g,
                      .op = op,
                      .name = text,
                      .id = (int)g->n_nodes,
                      .n_in = n_in,
                      .n_out = q->n_out,
                      .in = ins,
                      .outs = outs,
                      .attr = op->attr_size > 0 ? attrs : NULL,
                      .key = name_hash(path),
                      .colocation = -1};
    for (int i = 0; i < n_in; i++)
        ins[i] = in[i];
    for (int i = 0; i < q->n_out; i++) {
        tensors[i] = (tt_tensor){g, made, i, q->dtype[i], q->shape[i], {0, -1}};
        outs[i] = &tensors[i];
    }
    made->out = q->n_out > 0 ? outs[0] : NULL;
    if (apply_split(g, made) != TT_OK)
        goto done;
    if (g->n_pins > 0 && g->has_pin[g->n_pins - 1]) {
        made->has_pin = true;
        made->pin = g->pins[g->n_pins - 1];
    }
    g->nodes[g->n_nodes++] = made;
    name_put(g, made->id);
    n = made;
done:
    tti_free(ctx, q);
    return n;
}

tt_tensor *tt_node_out(tt_graph *g, const tt_op *op, int n_in, tt_tensor *const *in,
                       const void *attr)
{
    tt_node *n = tt_node_new(g, op, n_in, in, attr, NULL);
    return n == NULL ? NULL : n->out;
}
