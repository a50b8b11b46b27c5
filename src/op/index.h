/*
 * index.h - what index.c, index_cpu.c and index.cu share.
 *
 * Everything here is one picture: x is [outer, n, inner], ids name places on the middle axis, and
 * y is [outer, ids, inner]. gather copies x to y, scatter_add adds y back into x.
 */
#ifndef TUTTI_OP_INDEX_H
#define TUTTI_OP_INDEX_H

#include <string.h>
#include <tutti/extend.h>

typedef struct tti_gather_attr {
    int64_t axis;
} tti_gather_attr;
typedef struct tti_scatter_attr {
    int64_t axis, n; // n places; below zero: open, so many per row of the batch
} tti_scatter_attr;
typedef struct tti_one_hot_attr {
    int64_t depth;
    tt_dtype dtype;
} tti_one_hot_attr;

TT_CPU_DECLARE(gather);
TT_CPU_DECLARE(scatter_add);
TT_CPU_DECLARE(one_hot);
TT_CPU_DECLARE(touched_rows); // scatter_add into sparse_rows.h's form

/*
 * scatter_add: phase 0 sorts the positions of ids by id; phase 1 makes the rows of the output, in
 * blocks of columns. Scratch is n + 1 ends, then one number per position, all int32_t. touched_rows
 * does the same with one more number per position: where a touched row's positions begin.
 */
#define TTI_SCATTER_BLOCK 128
typedef struct tti_scatter_plan {
    int64_t outer, n, inner, blocks;
    int lanes; // 1: one sum per lane of ids; 0: one sum
} tti_scatter_plan;

// The plan, also left in p->tune.
static inline tt_status tti_scatter_start(tt_prep *p, tti_scatter_plan *t)
{
    const tti_scatter_attr *a = (const tti_scatter_attr *)p->attr;
    const tt_shape *x = &p->in[0].shape;
    const tt_arg *ids = &p->in[1];
    memset(t, 0, sizeof(*t));
    t->outer = t->inner = 1;
    for (int i = 0; i < x->rank; i++) {
        t->outer *= i < a->axis ? x->dim[i] : 1;
        t->inner *= i >= a->axis + ids->shape.rank ? x->dim[i] : 1;
    }
    // Open places: rows mix, and the whole batch is here.
    t->n = a->n < 0 ? p->out_args[0].shape.dim[a->axis] : a->n;
    t->lanes = a->n >= 0 && ids->open >= 0;
    t->blocks = (t->inner + TTI_SCATTER_BLOCK - 1) / TTI_SCATTER_BLOCK;
    if (ids->count > INT32_MAX || t->n > INT32_MAX - 1)
        return TT_FAIL(p->ctx, TT_EUNSUPPORTED, "%s '%s': %lld ids into %lld places",
                       p->node->op->name, p->node->name, (long long)ids->count, (long long)t->n);
    memcpy(p->tune, t, sizeof(*t));
    return TT_OK;
}

#endif
