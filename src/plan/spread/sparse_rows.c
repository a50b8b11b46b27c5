/*
 * sparse_rows.c - sums that touch few rows of a table, between micro-batches (op/sparse_rows.h):
 * which they are.
 *
 * Where ids are far fewer than places, a micro-batch keeps its partial sum of an embedding's
 * gradient as the rows it touched; sparse_tree.c adds such sums.
 */
#include "op/sparse_rows.h"
#include "plan/spread/spread.h"
#include <stdio.h>
#include <string.h>

static size_t wide_item(tt_dtype t)
{
    return t == TT_F64 ? 8 : 4;
}

static int64_t ids_of(const tt_node *n, int64_t rows)
{
    return -tt_shape_count(&n->in[1]->shape) * rows;
}

// Bytes of what the replicas would hold of the whole sum: one for each sub-tree of their lanes.
static double dense_bytes(const tti_spreader *s, const tti_value *sum)
{
    tti_part parts[TTI_MAX_PARTS];
    int n = 0;
    for (int h = 0, from = 0; h < s->n_batches; h++) {
        const tt_lanes *a = s->batches[from].lanes, *b = s->batches[h].lanes;
        if (h + 1 < s->n_batches && s->batches[h + 1].replica == s->batches[h].replica)
            continue;
        n += tti_lane_range_parts(a->first, b->first + b->n, a->total, parts);
        from = h + 1;
    }
    return (double)n * (double)tt_shape_count(&sum->tensor->shape) * (double)wide_item(sum->dtype);
}

static bool is_worth(const tti_spreader *s, const tti_pnode *pn)
{
    const tti_plan *p = s->p;
    const tti_value *sum = &s->values[pn->out];
    const tt_node *n = pn->node;
    for (int d = 0; d < p->top->n_devices; d++)
        if (tti_sparse_rows_kernel(n, p->top->devices[d]->backend->id) == NULL)
            return false;
    int64_t width = tt_shape_count(&sum->tensor->shape) / sum->tensor->shape.dim[0];
    double bytes = 0;
    for (int h = 0; h < s->n_batches; h++) {
        int64_t most = ids_of(n, s->batches[h].rows);
        if (most < 1 || most > INT32_MAX)
            return false;
        bytes += (double)tti_sparse_rows_bytes(most, width, wide_item(sum->dtype));
    }
    return 2 * bytes <= dense_bytes(s, sum);
}

void tti_spread_sparse_rows(tti_spreader *s)
{
    for (int64_t i = 0; i < s->n_nodes && s->n_batches > 1; i++) {
        const tti_pnode *pn = &s->nodes[i];
        if (s->mode[i] != TTI_MODE_ROWS || pn->n_out != 1 || s->residual[pn->out] >= 0 ||
            s->values[pn->out].tensor->layout.kind != TT_LAYOUT_PARTIAL)
            continue;
        s->is_sparse[pn->out] = is_worth(s, pn);
    }
}

tt_status tti_make_sparse_rows(tti_spreader *s, int value, const tti_micro_batch *sh)
{
    tti_plan *p = s->p;
    tti_value *v = &p->values[value];
    tti_pnode *pn = &p->nodes[v->node];
    const tt_shape *table = &v->tensor->shape;
    size_t item = tt_dtype_bytes(v->dtype);
    v->sparse_rows = ids_of(pn->node, sh->rows);
    v->bytes = tti_sparse_rows_bytes(v->sparse_rows, tt_shape_count(table) / table->dim[0], item);
    v->count = (int64_t)(v->bytes / item);
    v->shape = (tt_shape){1, {v->count}};
    char text[96];
    int n = snprintf(text, sizeof(text), "%s: sparse rows", sh->reason);
    char *reason = tti_plan_alloc(p, (size_t)n + 1);
    if (reason == NULL)
        return TT_ENOMEM;
    memcpy(reason, text, (size_t)n + 1);
    pn->reason = reason;
    return TT_OK;
}
