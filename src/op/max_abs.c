/*
 * max_abs.c - the largest magnitude of tensors, by which a guarded step finds gradients that are
 * not finite. Kernels: max_abs_cpu.c, max_abs.cu.
 *
 * Of one tensor y has a number for every TTI_MAX_ABS_BLOCK elements, which saves a second pass; of
 * several tensors it has one number. A NaN is larger than anything, so a single element that is not
 * finite shows. The order of a maximum is not seen, so replicas that have parts of a tensor each
 * look at their own, and whoever reads the whole gets what all of them found, side by side.
 */
#include "op/max_abs.h"
#include "op/op.h"

static tt_status max_abs_infer(tt_infer *q)
{
    for (int i = 0; i < q->n_in; i++) {
        const tt_tensor *x = q->in[i];
        if (x->dtype != TT_F32 && x->dtype != TT_F64)
            return TT_FAIL(q->ctx, TT_EDTYPE, "max_abs: '%s' is %s, not f32 or f64", x->node->name,
                           tt_dtype_name(x->dtype));
    }
    int64_t count = q->n_in > 1 ? 1 : tt_shape_count(&q->in[0]->shape);
    q->shape[0] = TT_SHAPE(count < 0 ? 1 : tti_max_abs_count(count)); // rows are refused: split
    q->dtype[0] = TT_F32;
    return TT_OK;
}

// A unit is a number of y.
static tt_status max_abs_prep(tt_prep *p)
{
    int64_t count = 0;
    for (int i = 0; i < p->n_in; i++)
        count += p->in[i].count;
    p->units[0] = p->n_in > 1 ? 1 : tti_max_abs_count(count);
    p->grain[0] = 1;
    p->ns = 30 + 0.05 * (double)count;
    return TT_OK;
}

const tt_op tti_op_max_abs = {
    .name = "max_abs",
    .help = "the largest magnitude of 65,536 elements each, or of several tensors; a NaN wins",
    .inputs = 1,
    .max_inputs = -1,
    .flags = TT_OP_NO_GRAD | TT_OP_ANY_TYPE | TT_OP_PARTS,
    .types = 1u << TT_F32,
    .infer = max_abs_infer,
    .split = tti_split_whole,
    .kernel = {[TT_CPU] = TTI_CPU(max_abs, max_abs_prep)},
};

tt_tensor *tt_max_abs(tt_graph *g, tt_tensor *const *xs, int n)
{
    if (!tti_has_graph(g, xs != NULL && n > 0 ? xs[0] : NULL, "max_abs"))
        return NULL;
    if (n < 1 || xs == NULL) {
        (void)TT_FAIL(tt_graph_get_ctx(g), TT_EINVAL, "max_abs: of %d tensors", n);
        return NULL;
    }
    return tt_node_out(g, &tti_op_max_abs, n, xs, NULL);
}
