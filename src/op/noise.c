/*
 * noise.c - normal random numbers added to x, counter-based. Kernel: noise_cpu.c.
 *   y  = fma(z, deviation, x), z by Box-Muller from the words of the element's counter
 *   dx = dy
 *
 * The words are those that dropout would take (dropout.c): they depend on seed, step, the node's
 * name, the row in the global batch and the element, so any spread adds the same numbers.
 */
#include "op/noise.h"
#include "op/op.h"

static tt_status noise_infer(tt_infer *q)
{
    double d = ((const tti_noise_attr *)q->attr)->deviation;
    if (!(d >= 0 && d <= 1e30))
        return TT_FAIL(q->ctx, TT_EINVAL,
                       "gaussian_noise: the deviation is %g; it must be at least 0", d);
    return tti_infer_same_float(q);
}

static tt_status noise_split(const tt_split_query *q)
{
    q->out[0] = (tt_split){q->axis[0] < 0 ? TT_SPLIT_WHOLE : TT_SPLIT_AXIS, q->axis[0]};
    return TT_OK;
}

static void noise_grad(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    (void)g, (void)n;
    dx[0] = dy[0];
}

static tt_status noise_prep(tt_prep *p)
{
    TT_TRY(tti_dropout_prep(p));
    p->ns *= 4;
    return TT_OK;
}

static const tt_option noise_attrs[] = {
    {"deviation", TT_OPT_FLOAT, NULL, "standard deviation of what is added",
     offsetof(tti_noise_attr, deviation), 0, 0, NULL},
    TT_OPTION_END,
};

const tt_op tti_op_gaussian_noise = {
    .name = "gaussian_noise",
    .help = "adds normal random numbers",
    .inputs = 1,
    .flags = TT_OP_RANDOM | TT_OP_ROW_FREE,
    .in_place = 1,
    .attrs = noise_attrs,
    .attr_size = sizeof(tti_noise_attr),
    .infer = noise_infer,
    .split = noise_split,
    .grad = noise_grad,
    .kernel = {[TT_CPU] = TTI_CPU(gaussian_noise, noise_prep)},
};

tt_tensor *tt_gaussian_noise(tt_graph *g, tt_tensor *x, double deviation)
{
    tti_noise_attr a = {deviation};
    return deviation == 0 ? x : tt_node_out(g, &tti_op_gaussian_noise, 1, &x, &a);
}
