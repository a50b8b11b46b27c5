/*
 * label_rank.c - how many classes a row ranks above its label. Kernel: label_rank_cpu.c.
 *
 * Class j comes before label t where x_j > x_t, or x_j = x_t and j < t: of equals the lowest index
 * is first, as in argmax. Where either is a NaN, j comes before: a NaN is never right. A label that
 * is no class has the rank c. So rank 0 is a hit, and a rank below k a hit among the first k.
 */
#include "op/op.h"
#include "op/rows.h"

TT_CPU_DECLARE(label_rank);

static tt_status label_rank_infer(tt_infer *q)
{
    const tt_tensor *x = q->in[0], *t = q->in[1];
    char a[TT_SHAPE_TEXT], b[TT_SHAPE_TEXT];
    tt_shape rows = x->shape;
    if (!tti_is_float(x->dtype) || x->shape.rank < 1)
        return TT_FAIL(q->ctx, TT_EDTYPE,
                       "label_rank: x is %s %s; it must be floats [..., classes]",
                       tt_dtype_name(x->dtype), tt_shape_text(&x->shape, a));
    if (t->dtype != TT_I32 && t->dtype != TT_I64 && t->dtype != TT_U8)
        return TT_FAIL(q->ctx, TT_EDTYPE, "label_rank: labels are %s, not i32, i64 or u8",
                       tt_dtype_name(t->dtype));
    rows.dim[--rows.rank] = 0;
    if (!tti_shape_equal(&rows, &t->shape))
        return TT_FAIL(q->ctx, TT_ESHAPE, "label_rank: x is %s but labels are %s",
                       tt_shape_text(&x->shape, a), tt_shape_text(&t->shape, b));
    q->shape[0] = rows;
    q->dtype[0] = TT_I32;
    return TT_OK;
}

static tt_status label_rank_split(const tt_split_query *q)
{
    bool mixes = q->axis[0] < 0 || q->axis[0] == q->node->in[0]->shape.rank - 1;
    q->out[0] = (tt_split){mixes ? TT_SPLIT_MIXES : TT_SPLIT_AXIS, q->axis[0]};
    return TT_OK;
}

static tt_status label_rank_prep(tt_prep *p)
{
    return tti_prep_row_units(p, p->in[0].rows, p->in[0].cols, 0.1);
}

const tt_op tti_op_label_rank = {
    .name = "label_rank",
    .help = "number of classes with a higher score than the label",
    .inputs = 2,
    .flags = TT_OP_ROW_FREE | TT_OP_NO_GRAD,
    .types = 1u << TT_I32,
    .infer = label_rank_infer,
    .split = label_rank_split,
    .kernel = {[TT_CPU] = TTI_CPU(label_rank, label_rank_prep)},
};

tt_tensor *tt_label_rank(tt_graph *g, tt_tensor *x, tt_tensor *labels)
{
    return tt_node_out(g, &tti_op_label_rank, 2, (tt_tensor *[]){x, labels}, NULL);
}
