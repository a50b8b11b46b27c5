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
    int node;     // of the plan
    size_t bytes; // of all it makes
    size_t saved; // of what the backward part reads
    double ns;    // of computing it, estimated
    int last;     // the last candidate that reads it; its own number: none
    bool again;   // is not kept
} tti_candidate;

/*
 * Cuts the chain of candidates into segments. What crosses a cut is kept; inside, all is computed
 * again when the backward part comes to the segment, but for the last one. Sets .again so that the
 * most bytes held at a time, borders so far and one segment's inside, are the fewest.
 */
tt_status tti_segments_choose(tt_ctx *ctx, tti_candidate *c, int n) TTI_CHECKED;

#endif
