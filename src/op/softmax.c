/*
 * softmax.c - softmax, log-softmax and cross entropy over the last axis. Kernels: softmax_cpu.c.
 *
 *   softmax      e_j = exp(x_j - max x);  y_j = e_j (1 / sum e)      dx = y (dy - sum(y dy))
 *   log_softmax  y_j = (x_j - max x) - log(sum e)                    dx = dy - exp(y) sum(dy)
 *   cross_entropy, with -log p_j = (max x - x_j) + log(sum e):
 *     label k    loss = -log p_k;  smoothed: (1 - s) (-log p_k) + s / c sum_j(-log p_j)
 *     dense t    loss = sum_j t'_j (-log p_j),  t' = (1 - s) t + s / c
 *     dx_j = e_j (T dloss / sum e) - t'_j dloss,  T = sum t' (1 for a label)
 * The forward keeps max x and sum e per row, so the backward reads logits once and probabilities
 * are never stored; all three are f32 where logits are half-precision. Sums go by sixteen partials
 * (docs/arithmetic.md).
 */
#include "op/softmax.h"
#include "op/op.h"
#include "op/rows.h"

extern const tt_op tti_op_softmax, tti_op_softmax_grad, tti_op_log_softmax, tti_op_log_softmax_grad,
    tti_op_cross_entropy, tti_op_cross_entropy_grad;

// A float tensor with something on its last axis, which is not split.
static tt_status check_rows(tt_infer *q, const char *what, const tt_tensor *x)
{
    char text[TT_SHAPE_TEXT];
    if (!tti_is_float(x->dtype))
        return TT_FAIL(q->ctx, TT_EDTYPE, "%s: %s is %s, not a float", q->name, what,
                       tt_dtype_name(x->dtype));
    if (x->shape.rank < 1 || x->shape.dim[x->shape.rank - 1] == 0)
        return TT_FAIL(q->ctx, TT_ESHAPE, "%s: %s is %s, so its last axis has no entries", q->name,
                       what, tt_shape_text(&x->shape, text));
    return TT_OK;
}

static tt_status infer_rows(tt_infer *q)
{
    TT_TRY(check_rows(q, "x", q->in[0]));
    return tti_infer_same_float(q);
}

static tt_status infer_grad(tt_infer *q)
{
    char a[TT_SHAPE_TEXT], b[TT_SHAPE_TEXT];
    if (!tti_shape_equal(&q->in[0]->shape, &q->in[1]->shape))
        return TT_FAIL(q->ctx, TT_ESHAPE, "%s: y is %s but dy is %s", q->name,
                       tt_shape_text(&q->in[0]->shape, a), tt_shape_text(&q->in[1]->shape, b));
    return infer_rows(q);
}

static tt_status prep_rows(tt_prep *p)
{
    return tti_prep_row_units(p, p->in[0].rows, p->in[0].cols, 0.6);
}

static void softmax_backward(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    tt_tensor *in[] = {n->out, dy[0]};
    dx[0] = tt_node_out(g, &tti_op_softmax_grad, 2, in, NULL);
}

static void log_softmax_backward(tt_graph *g, const tt_node *n, tt_tensor *const *dy,
                                 tt_tensor **dx)
{
    tt_tensor *in[] = {n->out, dy[0]};
    dx[0] = tt_node_out(g, &tti_op_log_softmax_grad, 2, in, NULL);
}

const tt_op tti_op_softmax = {
    .name = "softmax",
    .help = "exp(x) / sum(exp(x)) over the last axis",
    .inputs = 1,
    .flags = TT_OP_ROW_FREE,
    .in_place = 1,
    .infer = infer_rows,
    .split = tti_split_rows,
    .grad = softmax_backward,
    .kernel = {[TT_CPU] = TTI_CPU(softmax, prep_rows)},
};

const tt_op tti_op_log_softmax = {
    .name = "log_softmax",
    .help = "x - log(sum(exp(x))) over the last axis",
    .inputs = 1,
    .flags = TT_OP_ROW_FREE,
    .in_place = 1,
    .infer = infer_rows,
    .split = tti_split_rows,
    .grad = log_softmax_backward,
    .kernel = {[TT_CPU] = TTI_CPU(log_softmax, prep_rows)},
};

#define GRAD_OF(op)                                           \
    const tt_op tti_op_##op##_grad = {                        \
        .name = #op "_grad",                                  \
        .help = "gradient of " #op " from its output and dy", \
        .inputs = 2,                                          \
        .flags = TT_OP_ROW_FREE,                              \
        .in_place = 3,                                        \
        .infer = infer_grad,                                  \
        .split = tti_split_rows,                              \
        .kernel = {[TT_CPU] = TTI_CPU(op##_grad, prep_rows)}, \
    }
GRAD_OF(softmax);
GRAD_OF(log_softmax);

tt_tensor *tt_softmax(tt_graph *g, tt_tensor *x)
{
    return tt_node_out(g, &tti_op_softmax, 1, &x, NULL);
}

tt_tensor *tt_log_softmax(tt_graph *g, tt_tensor *x)
{
    return tt_node_out(g, &tti_op_log_softmax, 1, &x, NULL);
}

// ---- cross entropy ---------------------------------------------------------------------------

static const tt_option cross_entropy_attrs[] = {
    {"smoothing", TT_OPT_FLOAT, "0",
     "label smoothing: fraction of the target spread evenly over all classes",
     offsetof(tti_cross_entropy_attr, smoothing), 0, 1, NULL},
    {"has_ignore", TT_OPT_BOOL, "false", "rows with the label ignore have loss 0 and no gradient",
     offsetof(tti_cross_entropy_attr, has_ignore), 0, 0, NULL},
    {"ignore", TT_OPT_INT, "0", "the label to ignore", offsetof(tti_cross_entropy_attr, ignore), 0,
     0, NULL},
    TT_OPTION_END,
};

static bool is_label_type(tt_dtype t)
{
    return t == TT_I32 || t == TT_I64 || t == TT_U8;
}

static tt_status check_labels(tt_infer *q, const tt_tensor *x, const tt_tensor *t)
{
    const tti_cross_entropy_attr *a = q->attr;
    tt_shape rows = x->shape;
    char sx[TT_SHAPE_TEXT], st[TT_SHAPE_TEXT];
    rows.dim[--rows.rank] = 0;
    bool dense = tti_is_float(t->dtype);
    if (!dense && !is_label_type(t->dtype))
        return TT_FAIL(q->ctx, TT_EDTYPE, "%s: labels are %s, not i32, i64, u8 or a float", q->name,
                       tt_dtype_name(t->dtype));
    if (dense && t->dtype != x->dtype)
        return TT_FAIL(q->ctx, TT_EDTYPE, "%s: logits are %s but dense labels are %s", q->name,
                       tt_dtype_name(x->dtype), tt_dtype_name(t->dtype));
    if (!tti_shape_equal(dense ? &x->shape : &rows, &t->shape))
        return TT_FAIL(q->ctx, TT_ESHAPE, "%s: logits are %s but %s labels are %s", q->name,
                       tt_shape_text(&x->shape, sx), dense ? "dense" : "integer",
                       tt_shape_text(&t->shape, st));
    if (dense && a->has_ignore)
        return TT_FAIL(q->ctx, TT_EINVAL, "%s: ignore wants integer labels, not %s", q->name,
                       tt_dtype_name(t->dtype));
    return TT_OK;
}

static tt_status infer_cross_entropy(tt_infer *q)
{
    const tti_cross_entropy_attr *a = q->attr;
    TT_TRY(check_rows(q, "logits", q->in[0]));
    if (!(a->smoothing >= 0 && a->smoothing <= 1))
        return TT_FAIL(q->ctx, TT_EINVAL, "%s: smoothing is %g, not in [0, 1]", q->name,
                       a->smoothing);
    TT_TRY(check_labels(q, q->in[0], q->in[1]));
    for (int i = 0; i < 3; i++) {
        q->shape[i] = q->in[0]->shape;
        q->shape[i].dim[--q->shape[i].rank] = 0;
        q->dtype[i] = tti_stat_dtype(q->in[0]->dtype);
    }
    return TT_OK;
}

static tt_status infer_cross_entropy_grad(tt_infer *q)
{
    char a[TT_SHAPE_TEXT], b[TT_SHAPE_TEXT];
    const tt_tensor *x = q->in[0];
    TT_TRY(check_rows(q, "logits", x));
    TT_TRY(check_labels(q, x, q->in[1]));
    tt_shape rows = x->shape;
    rows.dim[--rows.rank] = 0;
    for (int i = 2; i < 5; i++)
        if (!tti_shape_equal(&rows, &q->in[i]->shape) || !tti_is_float(q->in[i]->dtype))
            return TT_FAIL(q->ctx, TT_ESHAPE, "%s: logits are %s but input %d is %s %s", q->name,
                           tt_shape_text(&x->shape, a), i, tt_dtype_name(q->in[i]->dtype),
                           tt_shape_text(&q->in[i]->shape, b));
    q->shape[0] = x->shape;
    q->dtype[0] = x->dtype;
    return TT_OK;
}

// Rows are free: every output is split as the logits are, unless that is along the classes.
static tt_status split_cross_entropy(const tt_split_query *q)
{
    int axis = q->axis[0];
    bool mixes = axis < 0 || axis == q->node->in[0]->shape.rank - 1;
    for (int i = 0; i < q->node->n_out; i++)
        q->out[i] = (tt_split){mixes ? TT_SPLIT_MIXES : TT_SPLIT_AXIS, axis};
    return TT_OK;
}

static void cross_entropy_backward(tt_graph *g, const tt_node *n, tt_tensor *const *dy,
                                   tt_tensor **dx)
{
    if (dy[0] == NULL)
        return;
    const tti_cross_entropy_attr *a = n->attr;
    tt_tensor *in[] = {n->in[0], n->in[1], n->outs[1], n->outs[2], dy[0]};
    dx[0] = tt_node_out(g, &tti_op_cross_entropy_grad, 5, in, a);
    if (!tti_is_float(n->in[1]->dtype))
        return;
    // dloss (1 - s) (-log p)
    tt_tensor *w = tt_expand_dims(g, tt_cast(g, dy[0], n->in[1]->dtype), -1);
    dx[1] = tt_scale(g, tt_mul(g, tt_log_softmax(g, n->in[0]), w), a->smoothing - 1, 0);
}

const tt_op tti_op_cross_entropy = {
    .name = "cross_entropy",
    .help = "cross entropy per row from logits and labels; also outputs the row's maximum and sum "
            "of exp",
    .inputs = 2,
    .outputs = 3,
    .flags = TT_OP_ROW_FREE,
    TTI_ATTRS(cross_entropy_attrs, tti_cross_entropy_attr),
    .infer = infer_cross_entropy,
    .split = split_cross_entropy,
    .grad = cross_entropy_backward,
    .kernel = {[TT_CPU] = TTI_CPU(cross_entropy, prep_rows)},
};

const tt_op tti_op_cross_entropy_grad = {
    .name = "cross_entropy_grad",
    .help = "gradient of cross_entropy with respect to the logits, from logits, labels, maximum, "
            "sum of exp and dloss",
    .inputs = 5,
    .flags = TT_OP_ROW_FREE,
    .in_place = 1,
    TTI_ATTRS(cross_entropy_attrs, tti_cross_entropy_attr),
    .infer = infer_cross_entropy_grad,
    .split = split_cross_entropy,
    .kernel = {[TT_CPU] = TTI_CPU(cross_entropy_grad, prep_rows)},
};

tt_tensor *tt_cross_entropy_with(tt_graph *g, tt_tensor *logits, tt_tensor *labels,
                                 const tt_cross_entropy_opts *opts)
{
    if (!tti_has_graph(g, logits, "cross_entropy"))
        return NULL;
    TTI_OPTS_OWN(tt_graph_get_ctx(g), "cross_entropy", tt_cross_entropy_opts, opts);
    if (opts == NULL)
        return NULL;
    tti_cross_entropy_attr a = {opts->smoothing, opts->has_ignore, opts->ignore};
    tt_tensor *in[] = {logits, labels};
    return tt_node_out(g, &tti_op_cross_entropy, 2, in, &a);
}
