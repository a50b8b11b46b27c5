/*
 * sparse_tree.c - the tree over partial sums that are rows of a table (op/sparse_rows.h).
 *
 * The tree over micro-batches zeroes its range of the gradient and goes through all lists at once,
 * in the order of ids; what is on several of them is added in the order of the lane tree. What is
 * on none is zero there, and adding that would change no bit.
 */
#include "comm/reduction.h"
#include "op/sparse_rows.h"
#include "plan/emit/reduce_tree.h"
#include "plan/spread/spread.h"
#include <string.h>

typedef struct sparse_program {
    const tti_tree_program *tree;
    int64_t width;
    const int64_t *most; // by input
} sparse_program;

// Where the lists are: micro-batches, and so inputs, are no more than lanes.
typedef struct cursors {
    int32_t at[TT_MAX_LANES], n[TT_MAX_LANES];
    int32_t id[TT_MAX_LANES]; // at `at`; INT32_MAX: at the end
    const tti_sparse_row *list[TT_MAX_LANES];
} cursors;

static void look(cursors *c, int k)
{
    c->id[k] = c->at[k] < c->n[k] ? c->list[k][c->at[k]].id : INT32_MAX;
}

// Every list at the first id that is not below id.
static void seek(const tt_launch *l, cursors *c, int64_t id)
{
    const sparse_program *prog = l->tune;
    size_t item = tt_dtype_bytes(l->in[0].dtype);
    for (int k = 0; k < l->n_in; k++) {
        const void *data = l->in[k].data;
        c->list[k] = tti_sparse_rows_list(data, prog->most[k], prog->width, item);
        c->n[k] = *tti_sparse_rows_n(data, prog->most[k], prog->width, item);
        int32_t from = 0, to = c->n[k];
        while (from < to) {
            int32_t mid = from + (to - from) / 2;
            if (c->list[k][mid].id < id)
                from = mid + 1;
            else
                to = mid;
        }
        c->at[k] = from;
        look(c, k);
    }
}

// The rows of an id, by push; NULL: zero. The lists go on to the next id. Gives how many there are.
static int take(const tt_launch *l, cursors *c, int32_t id, const char **row)
{
    const sparse_program *prog = l->tune;
    size_t bytes = (size_t)prog->width * tt_dtype_bytes(l->in[0].dtype);
    int n = 0;
    for (int i = 0; i < prog->tree->n; i++) {
        int k = prog->tree->push[i].input;
        row[i] = NULL;
        if (c->id[k] != id || c->list[k][c->at[k]].part != prog->tree->push[i].part)
            continue;
        row[i] = (const char *)l->in[k].data + (size_t)c->at[k]++ * bytes;
        look(c, k);
        n++;
    }
    return n;
}

// Numbers [col, col + n) of a row, along the tree; out is where they go in the first result.
static void add_along(const tt_launch *l, const char *const *row, int64_t col, int64_t n,
                      int64_t out)
{
    const tti_tree_program *tree = ((const sparse_program *)l->tune)->tree;
    tt_dtype type = l->in[0].dtype;
    size_t item = tt_dtype_bytes(type), bytes = (size_t)n * item;
    double stack[TTI_MAX_PARTS + 2][TTI_TREE_BLOCK];
    bool has[TTI_MAX_PARTS + 2];
    int depth = 0;
    for (int i = 0; i < tree->n; i++) {
        has[depth] = row[i] != NULL;
        if (has[depth])
            memcpy(stack[depth], row[i] + (size_t)col * item, bytes);
        depth++;
        for (int m = tree->push[i].merges; m > 0; m--) {
            depth--;
            if (has[depth] && has[depth - 1])
                tti_add_pair(l->ctx->top.isa, type, stack[depth - 1], stack[depth - 1],
                             stack[depth], n);
            else if (has[depth])
                memcpy(stack[depth - 1], stack[depth], bytes);
            has[depth - 1] |= has[depth];
        }
    }
    for (int k = 0; k < tree->n_out; k++)
        if (has[k])
            tti_tree_store(l->out, k * (l->out->count / tree->n_out) + out, type, stack[k], n);
}

// Units are elements of one partial; a range of them may begin and end inside a row.
static tt_status sparse_kernel(const tt_launch *l)
{
    const sparse_program *prog = l->tune;
    const tti_tree_program *tree = prog->tree;
    size_t item = tt_dtype_bytes(l->out->dtype), from_item = tt_dtype_bytes(l->in[0].dtype);
    for (int k = 0; k < tree->n_out; k++)
        memset((char *)l->out->data + (size_t)(k * (l->out->count / tree->n_out) + l->begin) * item,
               0, (size_t)(l->end - l->begin) * item);
    int64_t begin = tree->begin + l->begin, end = tree->begin + l->end, width = prog->width;
    cursors c;
    const char *row[TT_MAX_LANES];
    seek(l, &c, begin / width);
    for (;;) {
        int32_t id = INT32_MAX;
        for (int k = 0; k < l->n_in; k++)
            id = TTI_MIN(id, c.id[k]);
        int64_t first = id * width, col = TTI_MAX(begin - first, 0);
        if (id == INT32_MAX || first >= end)
            return TT_OK;
        int64_t last = TTI_MIN(end - first, width), out = first - tree->begin;
        int n = take(l, &c, id, row), only = 0;
        if (n == 1 && tree->n_out == 1) { // most rows of a large table
            while (row[only] == NULL)
                only++;
            tti_tree_store(l->out, out + col, l->in[0].dtype, row[only] + (size_t)col * from_item,
                           last - col);
            continue;
        }
        for (; col < last; col += TTI_TREE_BLOCK)
            add_along(l, row, col, TTI_MIN(last - col, TTI_TREE_BLOCK), out + col);
    }
}

tt_status tti_draft_sparse_tree(tti_emitter *e, int pnode)
{
    tti_plan *p = e->p;
    const tti_pnode *pn = &p->nodes[pnode];
    const tti_value *out = &p->values[pn->out];
    const tt_shape *table = &out->tensor->shape;
    sparse_program *prog = tti_plan_alloc(p, sizeof(*prog));
    int64_t *most = tti_plan_alloc(p, sizeof(*most) * (size_t)pn->n_in);
    tti_tree_program *tree = tti_tree_make(p, pn, 1);
    tti_call *c = prog == NULL || most == NULL || tree == NULL || !tti_start_draft(e, pnode, 1)
                      ? NULL
                      : tti_new_call(e, pnode, sparse_kernel, pn->n_in, 1);
    if (c == NULL)
        return TT_ENOMEM;
    double read = 0;
    for (int i = 0; i <= pn->n_in; i++)
        tti_arg_fill((tt_arg *)&c->launch.in[i], &p->values[i < pn->n_in ? pn->in[i] : pn->out]);
    for (int i = 0; i < pn->n_in; i++) {
        most[i] = p->values[pn->in[i]].sparse_rows;
        read += (double)p->values[pn->in[i]].bytes;
    }
    int64_t end;
    tree->count = tt_shape_count(table);
    if (pn->piece >= 0)
        tti_piece_of(pn, &tree->begin, &end);
    *prog = (sparse_program){tree, tree->count / table->dim[0], most};
    c->launch.tune = prog;
    c->units[0] = out->count / tree->n_out;
    c->chunk[0] = 4096;
    tti_set_threads(c, p->top->devices[pn->device]->n_threads,
                    (double)out->bytes * 0.03 + read * 0.3);
    return TT_OK;
}
