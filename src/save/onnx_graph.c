/*
 * onnx_graph.c - a graph's nodes, those that outputs need, in order, each by the row of its op.
 */
#include "base/ctx.h"
#include "save/onnx.h"
#include <string.h>

static const tti_onnx_op *find(const char *op)
{
    static const tti_onnx_op *const lists[] = {tti_onnx_simple, tti_onnx_moves, tti_onnx_layers,
                                               tti_onnx_sequences};
    for (int i = 0; i < TTI_COUNT(lists); i++)
        for (const tti_onnx_op *r = lists[i]; r->name != NULL; r++)
            if (strcmp(r->name, op) == 0)
                return r;
    return NULL;
}

static bool is_source(const tt_node *n)
{
    return (n->op->flags & TT_OP_SOURCE) != 0;
}

// Marks what node needs: of a recurrence the inputs of the product before it, which goes into it.
static void mark(const tti_onnx *o, const tt_node *n, bool *needed)
{
    const tt_node *product = tti_onnx_recurrent_product(o, n);
    for (int i = 0; i < n->n_in; i++)
        if (product == NULL || i > 0)
            needed[n->in[i]->node->id] = true;
    for (int i = 0; product != NULL && i < product->n_in; i++)
        needed[product->in[i]->node->id] = true;
}

static tt_status write_nodes(tti_onnx *o, const bool *needed)
{
    const tt_graph *g = o->graph;
    for (int64_t i = 0; i < g->n_nodes && !o->failed; i++) {
        const tt_node *n = g->nodes[i];
        if (!needed[i] || is_source(n))
            continue;
        const tti_onnx_op *row = find(n->op->name);
        if (row == NULL)
            return TT_FAIL(o->ctx, TT_EUNSUPPORTED,
                           "onnx: the op %s (%s) has no counterpart in ONNX opset %d; write .tutti "
                           "or .safetensors",
                           n->op->name, n->name, TTI_ONNX_OPSET);
        o->at = n->name;
        TT_TRY(row->write(o, n));
    }
    if (!o->failed)
        return TT_OK;
    return tt_status_of(o->ctx) != TT_OK ? tt_status_of(o->ctx) : TT_ENOMEM;
}

tt_status tti_onnx_graph(tti_onnx *o, tt_tensor *const *targets, int n)
{
    const tt_graph *g = o->graph;
    bool *needed = tti_calloc(o->ctx, (size_t)g->n_nodes + 1, sizeof(*needed));
    if (needed == NULL)
        return TT_ENOMEM;
    for (int i = 0; i < n; i++)
        needed[targets[i]->node->id] = true;
    for (int64_t i = g->n_nodes - 1; i >= 0; i--)
        if (needed[i])
            mark(o, g->nodes[i], needed);
    tt_status st = write_nodes(o, needed);
    tti_free(o->ctx, needed);
    return st;
}
