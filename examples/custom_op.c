/*
 * custom_op.c - an op of one's own: the Huber loss of each element, with an attribute and gradient.
 * y = x^2 / 2 up to |x| = delta, and goes on as a line: delta (|x| - delta / 2).
 */
#include <stdio.h>
#include <tutti/extend.h>
#include <tutti/tutti.h>

typedef struct huber_attr {
    double delta;
} huber_attr;

static const tt_option huber_attrs[] = {
    {"delta", TT_OPT_FLOAT, "1", "where the line begins", offsetof(huber_attr, delta), 0, 0, NULL},
    TT_OPTION_END,
};

static tt_status huber_infer(tt_infer *q)
{
    double delta = ((const huber_attr *)q->attr)->delta;
    if (q->in[0]->dtype != TT_F32 || !(delta > 0))
        return TT_FAIL(q->ctx, TT_EINVAL, "%s: x is %s and delta %g; f32 and above 0 are possible",
                       q->name, tt_dtype_name(q->in[0]->dtype), delta);
    q->shape[0] = q->in[0]->shape;
    q->dtype[0] = TT_F32;
    return TT_OK;
}

static tt_status huber_split(const tt_split_query *q)
{
    q->out[0] = (tt_split){TT_SPLIT_AXIS, q->axis[0]}; // as x is
    return TT_OK;
}

static void huber_grad(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    double delta = ((const huber_attr *)n->attr)->delta;
    dx[0] = tt_mul(g, dy[0], tt_clip(g, n->in[0], -delta, delta));
}

static tt_status huber_cpu(const tt_launch *l)
{
    const float *x = l->in[0].data, delta = (float)((const huber_attr *)l->attr)->delta;
    float *y = l->out[0].data;
    for (int64_t i = l->begin; i < l->end; i++) {
        float a = x[i] < 0 ? -x[i] : x[i];
        y[i] = a <= delta ? 0.5f * a * a : delta * (a - 0.5f * delta);
    }
    return TT_OK;
}

static const tt_op huber = {
    .name = "huber",
    .help = "x^2 / 2, linear beyond delta",
    .inputs = 1,
    .flags = TT_OP_POINTWISE | TT_OP_ROW_FREE,
    .types = 1u << TT_F32,
    .in_place = 1,
    .attrs = huber_attrs,
    .attr_size = sizeof(huber_attr),
    .infer = huber_infer,
    .split = huber_split,
    .grad = huber_grad,
    .kernel = {[TT_CPU] = {NULL, {huber_cpu, huber_cpu, huber_cpu, huber_cpu, NULL}}},
};

int main(void)
{
    tt_ctx *ctx = tt_open();
    tt_graph *g = tt_graph_new(ctx);
    float v[4] = {-3, -0.5f, 0.5f, 2}, y[4] = {0}, d[4] = {0};
    tt_tensor *x = tt_const(g, TT_F32, TT_SHAPE(4), v), *dx = NULL;
    tt_tensor *loss = tt_node_out(g, &huber, 1, &x, &(huber_attr){.delta = 1});
    tt_grad(g, tt_sum(g, loss), NULL, 1, &x, &dx);
    tt_eval(g, loss, y, 4);
    tt_eval(g, dx, d, 4);
    for (int i = 0; i < 4; i++)
        printf("huber(%g) = %g, slope %g\n", (double)v[i], (double)y[i], (double)d[i]);
    return tt_close(ctx) == TT_OK && y[0] == 2.5f && y[1] == 0.125f && d[0] == -1 ? 0 : 1;
}
