/*
 * op.h - what op records share: shape rules, split rules, ways to divide a kernel's work.
 */
#ifndef TUTTI_OP_OP_H
#define TUTTI_OP_OP_H

#include "graph/graph.h"
#include <tutti/extend.h>
#include <tutti/ops.h>

// ---- shape rules -----------------------------------------------------------------------------

bool tti_is_float(tt_dtype t);
bool tti_is_half(tt_dtype t); // bf16 or f16
// y has the shape and type of x; integers are refused.
tt_status tti_infer_same_float(tt_infer *q);
tt_status tti_infer_same(tt_infer *q); // any type
// An axis below zero counts from the end; TT_FIRST is 0. Fails naming op, axis and shape.
tt_status tti_axis(tt_ctx *ctx, const char *op, int axis, const tt_shape *shape, int *out);
// NumPy's broadcast of two shapes, open dimensions included; fails naming both.
tt_status tti_broadcast_shape(tt_ctx *ctx, const char *op, const tt_shape *a, const tt_shape *b,
                              tt_shape *out);

// ---- split rules: axes of inputs that are split -> outputs -----------------------------------

tt_status tti_split_pointwise(const tt_split_query *q); // broadcasting: as the inputs are
tt_status tti_split_rows(const tt_split_query *q);      // row-free on any axis but the last
tt_status tti_split_first(const tt_split_query *q);     // row-free on axis 0 of input 0, else mixes
tt_status tti_split_whole(const tt_split_query *q);     // refuses any split input
// Is what is split rows of the batch? A rule that only knows lanes asks.
bool tti_split_is_of_lanes(const tt_split_query *q);

// ---- dividing the work -----------------------------------------------------------------------

tt_status tti_prep_elements(tt_prep *p); // units are elements of output 0
tt_status tti_prep_rows(tt_prep *p);     // units are rows (all but the last axis) of output 0
tt_status tti_prep_one(tt_prep *p);      // one unit: the whole op on one thread

// ---- the record of a kernel ------------------------------------------------------------------

#define TTI_CPU(fn_, prepare_)                       \
    {                                                \
        .prepare = (prepare_), .fn = TT_CPU_FNS(fn_) \
    }

// The attributes of an op: its rows, and the struct that they describe.
#define TTI_ATTRS(rows, type) .attrs = (rows), .attr_size = sizeof(type)

// Builders of records that other folders know by name.
extern const tt_op tti_op_const, tti_op_feed, tti_op_variable, tti_op_softmax, tti_op_sigmoid,
    tti_op_embedding;
tt_tensor *tti_zeros_like(tt_graph *g, tt_tensor *x);
tt_tensor *tti_ones_like(tt_graph *g, tt_tensor *x);
// dz of y = act(z): from z, or from y where that is enough (relu, sigmoid, tanh, ...).
bool tti_act_needs_input(tt_act act);
tt_tensor *tti_act_grad(tt_graph *g, tt_act act, tt_tensor *dy, tt_tensor *y_or_z);
// Activations after TT_SOFTMAX are nodes of their own: what the node before has, and the rest.
tt_act tti_act_fused(tt_act act);
tt_tensor *tti_act_apart(tt_graph *g, tt_tensor *y, tt_act act);
// The same update of a running statistic, left out when go is NaN; others come back as given.
tt_tensor *tti_batch_norm_guard(tt_graph *g, tt_tensor *update, tt_tensor *go);

#endif
