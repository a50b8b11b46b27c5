/*
 * update_scale.c - the factor by which updates multiply gradients. Kernel: update_scale_cpu.c.
 *
 * Gradients come as sums of which each term was divided by p, a power of two: exact. What is left,
 * p / count with the true count of terms, is applied once, by the update:
 *   s     = p / count; 0 if count is 0
 *   norm  = sqrt(tree sum of the squares, in the order of the inputs) s; 0 without squares
 *   scale = s, or s (clip / norm) where norm is above clip; NaN with guard, where the loss or the
 *           norm is not finite, or the largest magnitude of all gradients, or what the update would
 *           make of that one (update_scale.h)
 *   go    = 1, or NaN where scale is NaN
 * All in f64; each output is rounded once, to f32. Loss and count are sums over all rows: a run of
 * some lanes cannot have them and is refused.
 */
#include "op/update_scale.h"
#include "op/op.h"
#include "op/square_sum.h"

static const tt_option scale_attrs[] = {
    {"clip", TT_OPT_FLOAT, "0", "global norm to clip to; 0: off",
     offsetof(tti_update_scale_attr, clip), 0, 0, NULL},
    {"guard", TT_OPT_INT, "0", "output NaN if the loss or the norm is not finite",
     offsetof(tti_update_scale_attr, guard), 0, 1, NULL},
    {"n_largest", TT_OPT_INT, "0", "so many last inputs are magnitudes of gradients",
     offsetof(tti_update_scale_attr, n_largest), 0, 1 << 20, NULL},
    {"square", TT_OPT_FLOAT, "0", "the update keeps squares times this; 0: none",
     offsetof(tti_update_scale_attr, square), 0, 0, NULL},
    {"step", TT_OPT_FLOAT, "0", "the update adds gradients times the learning rate times this",
     offsetof(tti_update_scale_attr, step), 0, 0, NULL},
    TT_OPTION_END,
};

static tt_status check_largest(tt_infer *q, int from)
{
    char text[TT_SHAPE_TEXT];
    for (int i = from; i < q->n_in; i++) {
        const tt_tensor *x = q->in[i];
        if (x->shape.rank > 1 || x->dtype != TT_F32)
            return TT_FAIL(q->ctx, TT_ESHAPE,
                           "update_scale: magnitudes '%s' are %s %s, not what max_abs gives",
                           x->node->name, tt_dtype_name(x->dtype), tt_shape_text(&x->shape, text));
    }
    return TT_OK;
}

static tt_status scale_infer(tt_infer *q)
{
    static const char *const names[] = {"loss_sum", "count", "p", "square sum"};
    const tti_update_scale_attr *a = q->attr;
    char text[TT_SHAPE_TEXT];
    if (!(a->clip >= 0))
        return TT_FAIL(q->ctx, TT_EINVAL, "update_scale: clip %g is below 0", a->clip);
    int n = q->n_in - (int)a->n_largest;
    if (n < 3)
        return TT_FAIL(q->ctx, TT_EINVAL, "update_scale: %d inputs, but %lld are magnitudes",
                       q->n_in, (long long)a->n_largest);
    TT_TRY(check_largest(q, n));
    for (int i = 0; i < n; i++) {
        const tt_tensor *x = q->in[i];
        if (x->shape.rank != 0 || (x->dtype != TT_F64 && (x->dtype != TT_F32 || i >= 3)))
            return TT_FAIL(q->ctx, TT_ESHAPE, "update_scale: %s '%s' is %s %s, not an %s scalar",
                           names[TTI_MIN(i, 3)], x->node->name, tt_dtype_name(x->dtype),
                           tt_shape_text(&x->shape, text), i < 3 ? "f32 or f64" : "f64");
    }
    for (int i = 0; i < 3; i++) {
        q->shape[i] = TT_SCALAR;
        q->dtype[i] = TT_F32;
    }
    return TT_OK;
}

static tt_status scale_prep(tt_prep *p)
{
    TT_TRY(tti_prep_one(p));
    p->scratch_bytes = (size_t)p->n_in * sizeof(double);
    return TT_OK;
}

const tt_op tti_op_update_scale = {
    .name = "update_scale",
    .help = "the factor on the gradients, from loss, count, p and square sums; the norm; whether "
            "to apply the step",
    .inputs = 3,
    .max_inputs = -1,
    .outputs = 3,
    .flags = TT_OP_NO_GRAD | TT_OP_ANY_TYPE,
    .types = 1u << TT_F32,
    TTI_ATTRS(scale_attrs, tti_update_scale_attr),
    .infer = scale_infer,
    .split = tti_split_whole,
    .kernel = {[TT_CPU] = TTI_CPU(update_scale, scale_prep)},
};

tt_tensor *tt_update_scale_with(tt_graph *g, tt_tensor *loss_sum, tt_tensor *count, tt_tensor *p,
                                const tt_update_scale_opts *opts)
{
    if (!tti_has_graph(g, loss_sum, "update_scale"))
        return NULL;
    TTI_OPTS_OWN(tt_graph_get_ctx(g), "update_scale", tt_update_scale_opts, opts);
    if (opts == NULL)
        return NULL;
    tt_ctx *ctx = tt_graph_get_ctx(g);
    int n = opts->n_squares, most = opts->n_largest;
    if (n < 0 || (n > 0 && opts->squares == NULL) || most < 0 ||
        (most > 0 && opts->largest == NULL)) {
        (void)TT_FAIL(ctx, TT_EINVAL, "update_scale: %d square sums, %d magnitudes", n, most);
        return NULL;
    }
    tt_tensor **in = tti_calloc(ctx, (size_t)n + (size_t)most + 3, sizeof(tt_tensor *));
    if (in == NULL)
        return NULL;
    in[0] = loss_sum;
    in[1] = count;
    in[2] = p;
    for (int i = 0; i < n; i++)
        in[3 + i] = opts->squares[i];
    for (int i = 0; i < most; i++)
        in[3 + n + i] = opts->largest[i];
    tti_update_scale_attr a = {opts->clip, opts->guard, most, opts->square, opts->step};
    tt_node *node = tt_node_new(g, &tti_op_update_scale, n + most + 3, in, &a, NULL);
    tti_free(ctx, in);
    if (node == NULL)
        return NULL;
    if (opts->norm != NULL)
        *opts->norm = node->outs[1];
    if (opts->go != NULL)
        *opts->go = node->outs[2];
    return node->out;
}
