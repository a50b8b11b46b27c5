/*
 * layout.h - how a value lies along each axis of the mesh.
 *
 * Of a value that is the same everywhere, a plan has a copy with every coordinate that needs one;
 * of one that is split or partial, a value for each part. The stage spread sets layouts, from the
 * split rules of ops and from what it lets each replica do; later stages pass them on (a receive
 * has the layout of what it copies), and the verifier checks them. On data, a part is what one
 * replica has; where it takes its lanes as micro-batches, each of them has a value of that part.
 */
#ifndef TUTTI_PLAN_LAYOUT_H
#define TUTTI_PLAN_LAYOUT_H

#include "plan/mesh.h"

#define TTI_DIM_FLAT (-1) // split over all elements: each part is a piece (tti_piece_range())

typedef struct tti_layout_entry {
    uint8_t kind; // tt_layout_kind
    int8_t dim;   // SPLIT: the dimension, or TTI_DIM_FLAT
    int16_t part; // SPLIT, PARTIAL, MOMENTS: which part this is; ONE: the coordinate that has it
} tti_layout_entry;

typedef struct tti_layout {
    tti_layout_entry on[TTI_N_AXES]; // zeroed: replicated on all
} tti_layout;

static inline bool tti_is_partial_on(const tti_layout *l, tti_mesh_axis axis)
{
    return l->on[axis].kind == TT_LAYOUT_PARTIAL || l->on[axis].kind == TT_LAYOUT_MOMENTS;
}

/*
 * What a node makes along an axis of inputs that lie so, by its op's split rule: in and out by
 * input and output of the node, part as the inputs'. false: it cannot work on parts (it mixes them,
 * or an input is partial, or inputs are different parts).
 */
bool tti_layout_infer(tt_ctx *ctx, const tt_node *n, const tti_layout_entry *in,
                      tti_layout_entry *out) TTI_CHECKED;

// "split(0)@2" part 2 of a split along dimension 0, "split(flat)@2", "partial@2", "moments@2",
// "one@0"; "replicated".
#define TTI_LAYOUT_TEXT 32
const char *tti_layout_entry_text(tti_layout_entry e, char out[TTI_LAYOUT_TEXT]);
// "data split(0)@2, pipe one@1": axes on which it is not replicated; "replicated".
#define TTI_LAYOUTS_TEXT (TTI_N_AXES * (TTI_LAYOUT_TEXT + 10))
const char *tti_layout_text(const tti_layout *l, char out[TTI_LAYOUTS_TEXT]);

#endif
