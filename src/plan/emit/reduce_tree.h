/*
 * reduce_tree.h - between reduce_tree.c and sparse_tree.c: the tree over partial sums as a program
 * for a stack.
 */
#ifndef TUTTI_PLAN_REDUCE_TREE_H
#define TUTTI_PLAN_REDUCE_TREE_H

#include "plan/emit/draft.h"
#include "plan/program.h"

#define TTI_TREE_BLOCK 256 // elements a step of the tree works on

// Of a node each replica of which has stride inputs, one after another; a push names the first.
tti_tree_program *tti_tree_make(tti_plan *p, const tti_pnode *pn, int stride);
// n sums to elements from `at` on; f32 sums of a half type are rounded once, here.
void tti_tree_store(const tt_arg *out, int64_t at, tt_dtype from, const void *sum, int64_t n);
// reduce_tree_cpu.c: merges statistics.
TT_CPU_DECLARE(tti_merge_moments);

// sparse_tree.c: a tree whose inputs are lists of sparse rows.
tt_status tti_draft_sparse_tree(tti_emitter *e, int pnode) TTI_CHECKED;

#endif
