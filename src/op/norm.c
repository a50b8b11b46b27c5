/*
 * norm.c - layer norm and RMS norm over the last axis of c entries. Kernels: norm_cpu.c.
 *
 *   layer norm  mean = sum(x) / c;  v = sum((x - mean)^2) / c;  xh = (x - mean) rstd
 *   RMS norm    v = sum(x^2) / c;                               xh = x rstd
 *   rstd = 1 / sqrt(v + eps);  y = fma(xh, gamma, beta)
 *
 *   g = dy gamma;  a = sum(g) / c (0 in RMS norm);  b = sum(g xh) / c
 *   dx = fma(-xh, b, g - a) rstd;  dgamma = sum of dy xh, dbeta = sum of dy over rows
 *
 * Sums along a row go by sixteen partials, squares and products by fused multiply-adds into them.
 * A row's y and dx depend on that row only; dgamma and dbeta are lane sums. mean and rstd are kept
 * for the backward, in f32 where x is half-precision.
 */
#include "op/norm.h"
#include "op/op.h"
#include "op/rows.h"
#include <string.h>

extern const tt_op tti_op_layer_norm, tti_op_layer_norm_grad, tti_op_rms_norm, tti_op_rms_norm_grad;

static const tt_option norm_attrs[] = {
    {"eps", TT_OPT_FLOAT, "1e-5", "small constant added to the variance",
     offsetof(tti_norm_attr, eps), 0, 0, NULL},
    {"gamma", TT_OPT_BOOL, "false", "there is a scale (gamma)", offsetof(tti_norm_attr, has_gamma),
     0, 0, NULL},
    {"beta", TT_OPT_BOOL, "false", "there is an offset (beta)", offsetof(tti_norm_attr, has_beta),
     0, 0, NULL},
    TT_OPTION_END,
};

static tt_status check_x(tt_infer *q, const tt_tensor *x)
{
    const tti_norm_attr *a = q->attr;
    char text[TT_SHAPE_TEXT];
    if (!tti_is_float(x->dtype))
        return TT_FAIL(q->ctx, TT_EDTYPE, "%s: x is %s, not a float", q->name,
                       tt_dtype_name(x->dtype));
    if (x->shape.rank < 1 || x->shape.dim[x->shape.rank - 1] < 1)
        return TT_FAIL(q->ctx, TT_ESHAPE, "%s: x is %s; its last axis must be closed and not empty",
                       q->name, tt_shape_text(&x->shape, text));
    if (!(a->eps >= 0))
        return TT_FAIL(q->ctx, TT_EINVAL, "%s: eps is %g, below zero", q->name, a->eps);
    return TT_OK;
}

// gamma or beta: [c], of the type of x or f32.
static tt_status check_vector(tt_infer *q, const char *what, const tt_tensor *x, const tt_tensor *v)
{
    char a[TT_SHAPE_TEXT], b[TT_SHAPE_TEXT];
    int64_t c = x->shape.dim[x->shape.rank - 1];
    if (v->dtype != x->dtype && v->dtype != tti_stat_dtype(x->dtype))
        return TT_FAIL(q->ctx, TT_EDTYPE, "%s: x is %s but %s is %s", q->name,
                       tt_dtype_name(x->dtype), what, tt_dtype_name(v->dtype));
    if (v->shape.rank != 1 || v->shape.dim[0] != c)
        return TT_FAIL(q->ctx, TT_ESHAPE, "%s: x is %s but %s is %s, not [%lld]", q->name,
                       tt_shape_text(&x->shape, a), what, tt_shape_text(&v->shape, b),
                       (long long)c);
    return TT_OK;
}

static tt_status infer_norm(tt_infer *q)
{
    const tti_norm_attr *a = q->attr;
    const tt_tensor *x = q->in[0];
    TT_TRY(check_x(q, x));
    if (q->n_in != 1 + a->has_gamma + a->has_beta)
        return TT_FAIL(q->ctx, TT_EINVAL, "%s: has %d inputs but gamma and beta make it %d",
                       q->name, q->n_in, 1 + a->has_gamma + a->has_beta);
    if (a->has_gamma)
        TT_TRY(check_vector(q, "gamma", x, q->in[1]));
    if (a->has_beta)
        TT_TRY(check_vector(q, "beta", x, q->in[1 + a->has_gamma]));
    q->shape[0] = x->shape;
    q->dtype[0] = x->dtype;
    for (int i = 1; i < q->n_out; i++) {
        q->shape[i] = x->shape;
        q->shape[i].dim[--q->shape[i].rank] = 0;
        q->dtype[i] = tti_stat_dtype(x->dtype);
    }
    return TT_OK;
}

// Inputs: x, dy, the statistics, gamma. Outputs: dx, dgamma, dbeta.
static tt_status infer_norm_grad(tt_infer *q, int n_stats)
{
    const tti_norm_attr *a = q->attr;
    const tt_tensor *x = q->in[0], *dy = q->in[1];
    char s[TT_SHAPE_TEXT], t[TT_SHAPE_TEXT];
    TT_TRY(check_x(q, x));
    if (q->n_in != 2 + n_stats + a->has_gamma)
        return TT_FAIL(q->ctx, TT_EINVAL, "%s: has %d inputs, not %d", q->name, q->n_in,
                       2 + n_stats + a->has_gamma);
    if (!tti_shape_equal(&x->shape, &dy->shape) || dy->dtype != x->dtype)
        return TT_FAIL(q->ctx, TT_ESHAPE, "%s: x is %s but dy is %s", q->name,
                       tt_shape_text(&x->shape, s), tt_shape_text(&dy->shape, t));
    tt_shape rows = x->shape;
    rows.dim[--rows.rank] = 0;
    for (int i = 2; i < 2 + n_stats; i++)
        if (!tti_shape_equal(&rows, &q->in[i]->shape) || !tti_is_float(q->in[i]->dtype))
            return TT_FAIL(q->ctx, TT_ESHAPE, "%s: x is %s but its statistics are %s", q->name,
                           tt_shape_text(&x->shape, s), tt_shape_text(&q->in[i]->shape, t));
    if (a->has_gamma)
        TT_TRY(check_vector(q, "gamma", x, q->in[2 + n_stats]));
    q->n_out = 1 + a->has_gamma + a->has_beta;
    q->shape[0] = x->shape;
    q->dtype[0] = x->dtype;
    for (int i = 1; i < q->n_out; i++) {
        q->shape[i] = TT_SHAPE(x->shape.dim[x->shape.rank - 1]);
        q->dtype[i] = a->has_gamma ? q->in[2 + n_stats]->dtype : x->dtype;
    }
    return TT_OK;
}

static tt_status infer_layer_norm_grad(tt_infer *q)
{
    return infer_norm_grad(q, 2);
}

static tt_status infer_rms_norm_grad(tt_infer *q)
{
    return infer_norm_grad(q, 1);
}

// Rows of x are free, but not what a row has: that is normalised as one.
static bool is_of_rows(const tt_split_query *q)
{
    return q->axis[0] >= 0 && q->axis[0] < q->node->in[0]->shape.rank - 1;
}

// y and the statistics are split as x.
static tt_status split_norm(const tt_split_query *q)
{
    for (int i = 0; i < q->node->n_out; i++)
        q->out[i] = (tt_split){is_of_rows(q) ? TT_SPLIT_AXIS : TT_SPLIT_MIXES, q->axis[0]};
    return TT_OK;
}

static tt_status split_norm_grad(const tt_split_query *q)
{
    (void)split_norm(q);
    for (int i = 1; is_of_rows(q) && i < q->node->n_out; i++)
        q->out[i] = (tt_split){TT_SPLIT_LANE_SUM, 0};
    return TT_OK;
}

static tt_status prep_norm(tt_prep *p)
{
    return tti_prep_row_units(p, p->in[0].rows, p->in[0].cols, 0.35);
}

static tt_status prep_norm_grad(tt_prep *p)
{
    const tt_arg *x = &p->in[0];
    int lanes = tti_lanes_of(x, p->lanes), n_sums = p->n_out - 1;
    TT_TRY(tti_prep_row_units(p, x->rows, x->cols, 0.6));
    tti_norm_tune tune = {.by_lane = n_sums > 0 && lanes >= p->n_threads};
    memcpy(p->tune, &tune, sizeof(tune));
    if (n_sums == 0)
        return TT_OK;
    int64_t blocks = (x->cols + TTI_NORM_COLS - 1) / TTI_NORM_COLS, rows_grain = p->grain[0];
    size_t real = x->dtype == TT_F64 ? sizeof(double) : sizeof(float);
    p->scratch_bytes = real * (size_t)lanes * (size_t)n_sums * (size_t)x->cols;
    if (tune.by_lane) {
        p->n_phases = 2;
        p->units[0] = lanes;
        p->units[1] = blocks;
        p->grain[0] = 1;
        p->grain[1] = 16;
        return TT_OK;
    }
    p->n_phases = 3;
    p->units[0] = lanes * blocks;
    p->units[1] = blocks;
    p->units[2] = x->rows;
    p->grain[0] = 1;
    p->grain[1] = 16;
    p->grain[2] = rows_grain;
    return TT_OK;
}

// Shared by both: emits the gradient node and hands its outputs to x, gamma and beta.
static void backward(tt_graph *g, const tt_node *n, tt_tensor *dy, tt_tensor **dx, const tt_op *op)
{
    const tti_norm_attr *a = n->attr;
    tt_tensor *in[5] = {n->in[0], dy};
    int n_in = 2;
    for (int i = 1; i < n->n_out; i++)
        in[n_in++] = n->outs[i];
    if (a->has_gamma)
        in[n_in++] = n->in[1];
    tt_node *made = dy == NULL ? NULL : tt_node_new(g, op, n_in, in, a, NULL);
    if (made == NULL)
        return;
    for (int i = 0; i < n->n_in; i++)
        dx[i] = n->in[i]->dtype == made->outs[i]->dtype
                    ? made->outs[i]
                    : tt_cast(g, made->outs[i], n->in[i]->dtype);
}

static void layer_norm_backward(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    backward(g, n, dy[0], dx, &tti_op_layer_norm_grad);
}

static void rms_norm_backward(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    backward(g, n, dy[0], dx, &tti_op_rms_norm_grad);
}

#define NORM(op, max_in, outs, help_)                  \
    const tt_op tti_op_##op = {                        \
        .name = #op,                                   \
        .help = help_,                                 \
        .inputs = 1,                                   \
        .max_inputs = max_in,                          \
        .outputs = outs,                               \
        .flags = TT_OP_ROW_FREE,                       \
        .in_place = 1,                                 \
        TTI_ATTRS(norm_attrs, tti_norm_attr),          \
        .infer = infer_norm,                           \
        .split = split_norm,                           \
        .grad = op##_backward,                         \
        .kernel = {[TT_CPU] = TTI_CPU(op, prep_norm)}, \
    }
NORM(layer_norm, 3, 3,
     "normalises the last axis to mean 0 and standard deviation 1; also outputs the mean and 1 / "
     "deviation");
NORM(rms_norm, 2, 2, "divides the last axis by its root mean square; also outputs the factor");

// gamma, the last input, may be absent.
#define NORM_GRAD(op, max_in, from)                                \
    const tt_op tti_op_##op##_grad = {                             \
        .name = #op "_grad",                                       \
        .help = "gradient of " #op ": from " from,                 \
        .inputs = max_in - 1,                                      \
        .max_inputs = max_in,                                      \
        .in_place = 3,                                             \
        TTI_ATTRS(norm_attrs, tti_norm_attr),                      \
        .infer = infer_##op##_grad,                                \
        .split = split_norm_grad,                                  \
        .kernel = {[TT_CPU] = TTI_CPU(op##_grad, prep_norm_grad)}, \
    }
NORM_GRAD(layer_norm, 5, "x, dy, mean, 1 / deviation, gamma");
NORM_GRAD(rms_norm, 4, "x, dy, the factor, gamma");

tt_tensor *tt_layer_norm_with(tt_graph *g, tt_tensor *x, tt_tensor *gamma, tt_tensor *beta,
                              const tt_norm_opts *opts)
{
    if (!tti_has_graph(g, x, "layer_norm"))
        return NULL;
    TTI_OPTS_OWN(tt_graph_get_ctx(g), "layer_norm", tt_norm_opts, opts);
    if (opts == NULL)
        return NULL;
    tti_norm_attr a = {.eps = tti_or_default(opts->eps, 1e-5),
                       .has_gamma = gamma != NULL,
                       .has_beta = beta != NULL};
    tt_tensor *in[3] = {x};
    int n = 1;
    if (gamma != NULL)
        in[n++] = gamma;
    if (beta != NULL)
        in[n++] = beta;
    return tt_node_out(g, &tti_op_layer_norm, n, in, &a);
}

tt_tensor *tt_rms_norm_with(tt_graph *g, tt_tensor *x, tt_tensor *gamma, const tt_norm_opts *opts)
{
    if (!tti_has_graph(g, x, "rms_norm"))
        return NULL;
    TTI_OPTS_OWN(tt_graph_get_ctx(g), "rms_norm", tt_norm_opts, opts);
    if (opts == NULL)
        return NULL;
    tti_norm_attr a = {.eps = tti_or_default(opts->eps, 1e-5), .has_gamma = gamma != NULL};
    tt_tensor *in[2] = {x, gamma};
    return tt_node_out(g, &tti_op_rms_norm, gamma == NULL ? 1 : 2, in, &a);
}
