/*
 * arena_gaps.h - blocks that have their place in an arena: where is the smallest gap for another
 * that shares time with some of them?
 */
#ifndef TUTTI_PLAN_MEMORY_ARENA_GAPS_H
#define TUTTI_PLAN_MEMORY_ARENA_GAPS_H

#include "base/base.h"

typedef struct tti_arena_block {
    int value;
    int first, last; // when it is alive, both included
    size_t bytes, offset;
} tti_arena_block;

#define TTI_GAP_LEVELS 8 // of slices and groups of them: more than the most slices make

typedef struct tti_gaps {
    tt_ctx *ctx;
    size_t align;
    int width; // of a slice of time
    int n_levels, n[TTI_GAP_LEVELS];
    struct tti_slice *level[TTI_GAP_LEVELS]; // n of each: slices, groups of them, ... up to one
    struct tti_search *search;               // room for one
    size_t total;                            // end of the last block
} tti_gaps;

// arena_offsets.c: most bytes of n blocks alive at once, and the first position where they are. The
// blocks are sorted; ends is room for as many.
size_t tti_most_alive(tti_arena_block *blocks, tti_arena_block *ends, int n, int *position);

// For about n blocks, the last of which are alive at time last.
tt_status tti_gaps_open(tt_ctx *ctx, int n, int last, size_t align, tti_gaps *out) TTI_CHECKED;
void tti_gaps_close(tti_gaps *g);
// Gives the block its offset, which is at the smallest gap that holds it, the lowest of equal ones,
// or else behind all that it shares time with.
tt_status tti_gaps_put(tti_gaps *g, tti_arena_block *b) TTI_CHECKED;

#endif
