/*
 * loss_scale.c - the factor by which the gradients of an f16 step are kept away from zero. Kernel:
 * loss_scale_cpu.c.
 *
 * The backward pass of a step is seeded with the scale, and update_scale divides by it, so it is a
 * power of two: exact. Afterwards, by what update_scale said of the step:
 *   applied      good = good + 1; where it reaches every: scale = min(2 scale, most), good = 0
 *   not applied  scale = max(scale / 2, 1), good = 0
 * scale and good are variables, so a checkpoint has them. Output 1 is the scale that the step used.
 */
#include "op/loss_scale.h"
#include "graph/graph.h"
#include "op/op.h"

static const tt_option loss_scale_attrs[] = {
    {"every", TT_OPT_INT, "2000",
     "number of consecutive good steps after which the scale is doubled",
     offsetof(tti_loss_scale_attr, every), 1, 1 << 24, NULL},
    {"most", TT_OPT_FLOAT, "16777216", "largest scale", offsetof(tti_loss_scale_attr, most), 1,
     0x1p126, NULL},
    TT_OPTION_END,
};

static tt_status loss_scale_infer(tt_infer *q)
{
    static const char *const names[] = {"scale", "good", "go"};
    const tti_loss_scale_attr *a = q->attr;
    char text[TT_SHAPE_TEXT];
    if (a->every < 1 || a->every > 1 << 24 || !(a->most >= 1 && a->most <= 0x1p126))
        return TT_FAIL(q->ctx, TT_EINVAL,
                       "update_loss_scale: every %lld or most %g is too small "
                       "or too large",
                       (long long)a->every, a->most);
    for (int i = 0; i < q->n_in; i++) {
        const tt_tensor *x = q->in[i];
        if (x->shape.rank != 0 || x->dtype != TT_F32)
            return TT_FAIL(q->ctx, TT_ESHAPE,
                           "update_loss_scale: %s '%s' is %s %s, not an f32 scalar", names[i],
                           x->node->name, tt_dtype_name(x->dtype), tt_shape_text(&x->shape, text));
    }
    if (!tti_is_variable(q->in[1]))
        return TT_FAIL(q->ctx, TT_EINVAL, "update_loss_scale: good '%s' is not a variable",
                       q->in[1]->node->name);
    for (int i = 0; i < 2; i++) {
        q->shape[i] = TT_SCALAR;
        q->dtype[i] = TT_F32;
    }
    return TT_OK;
}

const tt_op tti_op_update_loss_scale = {
    .name = "update_loss_scale",
    .help = "halves the loss scale after a skipped step, doubles it after many good steps",
    .inputs = 3,
    .outputs = 2,
    .flags = TT_OP_UPDATE | TT_OP_NO_GRAD,
    .types = 1u << TT_F32,
    TTI_ATTRS(loss_scale_attrs, tti_loss_scale_attr),
    .infer = loss_scale_infer,
    .split = tti_split_whole,
    .kernel = {[TT_CPU] = TTI_CPU(update_loss_scale, tti_prep_one)},
    .writes = 3,
};

tt_tensor *tt_update_loss_scale_with(tt_graph *g, tt_tensor *scale, tt_tensor *good, tt_tensor *go,
                                     const tt_update_loss_scale_opts *opts)
{
    if (!tti_has_graph(g, scale, "update_loss_scale"))
        return NULL;
    TTI_OPTS_OWN(tt_graph_get_ctx(g), "update_loss_scale", tt_update_loss_scale_opts, opts);
    if (opts == NULL)
        return NULL;
    tti_loss_scale_attr a = {opts->every == 0 ? 2000 : opts->every,
                             opts->most == 0 ? 0x1p24 : opts->most};
    tt_node *n =
        tt_node_new(g, &tti_op_update_loss_scale, 3, (tt_tensor *[]){scale, good, go}, &a, NULL);
    if (n == NULL)
        return NULL;
    if (opts->used != NULL)
        *opts->used = n->outs[1];
    return n->out;
}
