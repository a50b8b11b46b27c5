/*
 * square_sum.c - the sum of all squares of a tensor, in f64. Kernel: square_sum_cpu.c.
 *
 * From its start the tensor is cut into blocks of 1,024 elements. In a block element j goes to
 * partial j mod 16, squared and added in f64 (the square of an f32 is exact there), then partials
 * 8, 4, 2, 1 apart. Blocks are added by the binary tree over their numbers. So the sum of a piece
 * that cuts no block is a part of that tree.
 */
#include "op/square_sum.h"
#include "op/op.h"

static tt_status square_sum_infer(tt_infer *q)
{
    tt_dtype t = q->in[0]->dtype;
    if (t != TT_F32 && t != TT_F64)
        return TT_FAIL(q->ctx, TT_EDTYPE, "square_sum: x is %s, not f32 or f64", tt_dtype_name(t));
    q->shape[0] = TT_SCALAR;
    q->dtype[0] = TT_F64;
    return TT_OK;
}

// A unit is a group of blocks; the second phase adds the groups.
static tt_status square_sum_prep(tt_prep *p)
{
    int64_t count = p->in[0].count, per = (int64_t)TTI_SQUARE_BLOCK * TTI_SQUARE_GROUP;
    p->n_phases = 2;
    p->units[0] = (count + per - 1) / per;
    p->grain[0] = 1;
    p->units[1] = 1;
    p->grain[1] = 1;
    p->ns = 100 + 0.25 * (double)count;
    p->scratch_bytes = (size_t)(p->units[0] + 1) * sizeof(double);
    return TT_OK;
}

const tt_op tti_op_square_sum = {
    .name = "square_sum",
    .help = "the sum of the squares of all elements, f64",
    .inputs = 1,
    .flags = TT_OP_NO_GRAD,
    .types = 1u << TT_F64,
    .infer = square_sum_infer,
    .split = tti_split_whole,
    .kernel = {[TT_CPU] = TTI_CPU(square_sum, square_sum_prep)},
};

tt_tensor *tt_square_sum(tt_graph *g, tt_tensor *x)
{
    return tt_node_out(g, &tti_op_square_sum, 1, &x, NULL);
}
