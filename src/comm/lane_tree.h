/*
 * lane_tree.h - the tree over lane numbers: who holds which sub-trees, and when two of them are
 * added.
 *
 * The tree is the binary one over lane numbers, as if there were a power of two of them and the
 * missing ones were empty. Whoever holds lanes [first, last) holds one sum per maximal sub-tree of
 * them. Such parts, taken in the order of their lanes, go on a stack whose two topmost are added
 * while they are siblings: the additions are those of one device with all lanes.
 */
#ifndef TUTTI_COMM_LANE_TREE_H
#define TUTTI_COMM_LANE_TREE_H

#include "base/base.h"
#include <tutti/run.h>

#define TTI_MAX_PARTS 24 // of one range of lanes: two for each level of TT_MAX_LANES, and room
typedef struct tti_part {
    int first, size; // lanes [first, first + size), size a power of two but for a whole tree
} tti_part;

// The maximal sub-trees of lanes [first, last) of total, lowest first; one if those are all lanes.
int tti_lane_range_parts(int first, int last, int total, tti_part out[TTI_MAX_PARTS]);

// First row of lane l when lanes share n rows.
int64_t tti_lane_row(int64_t l, int64_t n, int64_t lanes);
// The lanes [*first, *last) of a run's rows, if those are whole lanes; b->global_rows is known.
void tti_lanes_of_rows(const tt_batch *b, int64_t rows, int total, int *first, int *last);
// The sub-trees that a run of rows rows makes partial sums of; b is valid.
int tti_lane_parts(const tt_batch *b, int64_t rows, int total, tti_part out[TTI_MAX_PARTS]);

// All zero is an empty stack. Parts without gaps between them never exceed it.
typedef struct tti_lane_stack {
    tti_part part[TTI_MAX_PARTS + 2];
    int depth;
} tti_lane_stack;
// Puts a part on the stack; returns how often the two topmost are then added.
int tti_lane_push(tti_lane_stack *s, tti_part part);
// After the last lane of all: what is left is one tree, since the missing lanes are empty. The
// additions that takes.
int tti_lane_finish(tti_lane_stack *s);

#endif
