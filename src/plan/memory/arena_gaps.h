/*
 * arena_gaps.h - blocks that have their place in an arena, by offset: where is the smallest gap for
 * another that shares time with some of them?
 */
#ifndef TUTTI_PLAN_MEMORY_ARENA_GAPS_H
#define TUTTI_PLAN_MEMORY_ARENA_GAPS_H

#include "base/base.h"

typedef struct tti_arena_block {
    int value;
    int first, last; // when it is alive, both included
    size_t bytes, offset;
} tti_arena_block;

typedef struct tti_gaps {
    tt_ctx *ctx;
    size_t align;
    struct tti_shelf *shelves; // room for all there can be
    int *order;                // numbers of shelves, by offset
    int n, n_most;
    size_t total; // end of the last block
} tti_gaps;

// arena_offsets.c: most bytes of n blocks alive at once, and the first position where they are. The
// blocks are sorted; ends is room for as many.
size_t tti_most_alive(tti_arena_block *blocks, tti_arena_block *ends, int n, int *position);

// For at most n blocks.
tt_status tti_gaps_open(tt_ctx *ctx, int n, size_t align, tti_gaps *out) TTI_CHECKED;
void tti_gaps_clear(tti_gaps *g);
void tti_gaps_close(tti_gaps *g);
// Gives the block its offset, which is at the smallest gap that holds it, the lowest of equal ones,
// or else behind all that it shares time with.
void tti_gaps_put(tti_gaps *g, tti_arena_block *b);

#endif
