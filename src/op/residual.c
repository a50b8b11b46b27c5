/*
 * residual.c - what rounding took from a gradient on its way to other replicas, kept for the next
 * step.
 *
 * The variable has a row for each replica, padded to whole blocks. The node only says which
 * gradient it belongs to: where gradients are sent in a narrower type, the plan
 * (plan/spread/combine.c) adds each replica's row to its sum, rounds, and leaves the rest in the
 * row. Elsewhere nothing happens.
 */
#include "op/residual.h"
#include "graph/graph.h"
#include "op/op.h"

TT_CPU_DECLARE(residual);

static tt_status residual_infer(tt_infer *q)
{
    if (!tti_is_variable(q->in[0]) || q->in[0]->dtype != TT_F32 || q->in[1]->dtype != TT_F32)
        return TT_FAIL(q->ctx, TT_EINVAL, "residual: takes a variable and a gradient, both f32");
    q->shape[0] = q->in[0]->shape;
    q->dtype[0] = TT_F32;
    return TT_OK;
}

static tt_status residual_prep(tt_prep *p)
{
    p->units[0] = 0;
    return TT_OK;
}

const tt_op tti_op_residual = {
    .name = "residual",
    .help = "error feedback: keeps the rounding error of a gradient sent in a narrower type",
    .inputs = 2,
    .flags = TT_OP_UPDATE | TT_OP_NO_GRAD | TT_OP_RESIDUAL,
    .types = 1u << TT_F32,
    .infer = residual_infer,
    .split = tti_split_whole,
    .kernel = {[TT_CPU] = TTI_CPU(residual, residual_prep)},
    .writes = 1,
};

tt_tensor *tti_residual(tt_graph *g, tt_tensor *grad, int replicas, const char *name)
{
    int64_t block = TTI_RESIDUAL_BLOCK, n = tt_shape_count(&grad->shape);
    size_t scope = tti_scope_root(g);
    tt_tensor *var = tt_variable(g, .shape = TT_SHAPE(replicas, (n + block - 1) / block * block),
                                 .init = {TT_INIT_ZEROS}, .no_train = true, .name = name);
    tti_scope_back(g, scope);
    tt_tensor *in[2] = {var, grad};
    return tt_node_out(g, &tti_op_residual, 2, in, NULL);
}
