/*
 * recompute.h - what the stage that computes activations again shares between its files.
 *
 * A candidate is a forward node whose rows may be computed again: no source, update or effect, no
 * sum over rows. Candidates are numbered in the order of the plan; what a candidate makes, through
 * whatever views it is read, counts as the candidate's.
 */
#ifndef TUTTI_PLAN_RECOMPUTE_H
#define TUTTI_PLAN_RECOMPUTE_H

#include "plan/plan.h"

typedef struct tti_candidate {
    int node;           // of the plan
    size_t bytes;       // of all it makes
    size_t saved;       // of what the backward part reads
    double ns;          // of computing it, estimated
    int last;           // the last candidate that reads it; its own number: none
    bool is_recomputed; // is not kept
} tti_candidate;

typedef struct tti_chooser {
    tti_plan *p;
    int64_t n_nodes;        // as built
    uint8_t *backward;      // by node: depends on a gradient
    uint8_t *is_recomputed; // by node
    int *number;            // by node: of the candidate; -1
    tti_candidate *list;
    int n;
    int *copy; // by node: the node that computes it again; -1
} tti_chooser;

// A forward node of rows that makes the same whenever it runs.
bool tti_is_repeatable(const tti_chooser *c, int node);
// The candidate whose memory a value is; NULL: it is kept in any case.
tti_candidate *tti_candidate_of(const tti_chooser *c, int value);
static inline bool tti_is_view(const tti_pnode *pn)
{
    return pn->kind == TTI_OP && (pn->node->op->flags & TT_OP_VIEW) != 0;
}
// Adds the copies that the backward part needs of what is chosen, and has it read them.
tt_status tti_recompute_copy(tti_chooser *c) TTI_CHECKED;

/*
 * Cuts the chain of candidates into segments. What crosses a cut is kept; inside, all is computed
 * again when the backward part comes to the segment, but for the last one. Sets .is_recomputed so
 * that the most bytes held at a time, borders so far and one segment's inside, are the fewest.
 */
tt_status tti_segments_choose(tt_ctx *ctx, tti_candidate *c, int n) TTI_CHECKED;

#endif
