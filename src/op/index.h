/*
 * index.h - what index.c and index_cpu.c share.
 *
 * Everything here is one picture: x is [outer, n, inner], ids name places on the middle axis, and
 * y is [outer, ids, inner]. gather copies x to y, scatter_add adds y back into x.
 */
#ifndef TUTTI_OP_INDEX_H
#define TUTTI_OP_INDEX_H

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
TT_CPU_DECLARE(touched_rows); // scatter_add into touched.h's form

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

#endif
