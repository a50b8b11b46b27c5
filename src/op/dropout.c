/*
 * dropout.c - dropout, counter-based. Kernel: dropout_cpu.c.
 *   y  = x / (1 - rate) where the random word of the element is at least rate 2^32, else 0
 *   dx = the same of dy, with the key of the forward node
 *
 * The word depends on seed, step, the node's name, the row in the global batch and the element
 * within the row (philox.h), so any spread of the batch drops the same elements.
 */
#include "op/dropout.h"
#include "op/op.h"
#include <string.h>

static tt_status dropout_infer(tt_infer *q)
{
    const tti_dropout_attr *a = q->attr;
    if (!(a->rate >= 0 && a->rate < 1))
        return TT_FAIL(q->ctx, TT_EINVAL, "dropout: rate is %g; it must be at least 0 and below 1",
                       a->rate);
    return tti_infer_same_float(q);
}

static tt_status dropout_split(const tt_split_query *q)
{
    q->out[0] = (tt_split){q->axis[0] < 0 ? TT_SPLIT_WHOLE : TT_SPLIT_AXIS, q->axis[0]};
    return TT_OK;
}

static void dropout_grad(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    tti_dropout_attr a = *(const tti_dropout_attr *)n->attr;
    a.key = a.key != 0 ? a.key : (int64_t)n->key;
    dx[0] = tt_node_out(g, n->op, 1, &dy[0], &a);
}

tt_status tti_dropout_prep(tt_prep *p)
{
    const tt_arg *x = &p->in[0];
    tti_dropout_plan t = {1, x->count, 0};
    int64_t outer = 1;
    if (x->open >= 0 && x->per > 0 && x->count > 0) {
        for (int i = 0; i < x->open; i++)
            outer *= x->shape.dim[i];
        t.rows = x->shape.dim[x->open] / x->per;
        t.run = x->count / outer / t.rows;
    }
    t.groups = (t.run + 63) / 64 + (outer > 1); // a run after the first can begin anywhere
    memcpy(p->tune, &t, sizeof(t));
    p->units[0] = x->count == 0 ? 0 : outer * t.rows * t.groups;
    p->grain[0] = TTI_MAX(1, 8192 / TTI_MIN(TTI_MAX(t.run, 1), 64));
    p->ns = 64.0 * (double)p->units[0];
    return TT_OK;
}

static const tt_option dropout_attrs[] = {
    {"rate", TT_OPT_FLOAT, NULL, "probability that an element is set to zero",
     offsetof(tti_dropout_attr, rate), 0, 1, NULL},
    {"key", TT_OPT_INT, "0", "id of the node whose mask is used; 0: this node",
     offsetof(tti_dropout_attr, key), 0, 0, NULL},
    TT_OPTION_END,
};

const tt_op tti_op_dropout = {
    .name = "dropout",
    .help = "dropout: zeroes random elements and scales the others",
    .inputs = 1,
    .flags = TT_OP_RANDOM | TT_OP_ROW_FREE,
    .in_place = 1,
    TTI_ATTRS(dropout_attrs, tti_dropout_attr),
    .infer = dropout_infer,
    .split = dropout_split,
    .grad = dropout_grad,
    .kernel = {[TT_CPU] = TTI_CPU(dropout, tti_dropout_prep)},
};

tt_tensor *tt_dropout(tt_graph *g, tt_tensor *x, double rate)
{
    tti_dropout_attr a = {rate, 0};
    return rate == 0 ? x : tt_node_out(g, &tti_op_dropout, 1, &x, &a);
}
