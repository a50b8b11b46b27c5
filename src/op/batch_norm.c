/*
 * batch_norm.c - batch norm over all axes but the last, of the whole batch. Kernels:
 * batch_norm_cpu.c. Statistics of each lane by itself are batch_norm_lane.c.
 *
 *   stats    x -> mean, var = M2 / n, unbiased = M2 / (n - 1), each [c]
 *   apply    y = act(fma(x - mean, scale, beta) + residual), scale = gamma rstd,
 *            rstd = 1 / sqrt(var + eps)
 *   sums     dz, x -> dgamma = sum of dz xh, dbeta = sum of dz, xh = (x - mean) rstd: lane sums
 *   dx       t = fma(-(x - mean), dgamma / n rstd, dz - dbeta / n);  dx = t scale
 *            With act: relu both take dy and make dz = z <= 0 ? 0 : dy, z = fma(x - mean, scale,
 *            beta), so that neither dz nor y is read or written.
 *   running  new = fma(momentum, old, (1 - momentum) batch)
 *
 * Per channel, a lane gives n, mean and M2 = sum((x - mean)^2) from two walks over its rows in
 * ascending order, squares by fused multiply-adds. Lanes a and b merge along the tree by Chan's
 * formula: d = mean_b - mean_a;  w = n_b / (n_a + n_b);  mean = fma(d, w, mean_a);
 * M2 = fma(d d, n_a w, M2_a + M2_b); a lane without rows changes nothing. The steps are ops of
 * their own so that a strategy can exchange lane statistics between stats and apply, and sums
 * between sums and dx. The running variance takes the unbiased estimate (n > 1), as PyTorch does.
 *
 * Where the activation's gradient needs z, apply is repeated without the activation.
 */
#include "op/batch_norm.h"
#include "op/op.h"
#include "op/rows.h"
#include <string.h>

extern const tt_op tti_op_batch_norm_stats, tti_op_batch_norm_apply, tti_op_batch_norm_sums,
    tti_op_batch_norm_dx, tti_op_batch_norm_running;

static const char *const act_names[] = {"linear",     "relu",     "gelu", "gelu_erf",
                                        "sigmoid",    "tanh",     "silu", "elu",
                                        "leaky_relu", "softplus", NULL};

static const char *const dz_names[] = {"linear", "relu", NULL};

#define EPS_ROW                                                              \
    {                                                                        \
        "eps", TT_OPT_FLOAT, "1e-5", "small constant added to the variance", \
            offsetof(tti_batch_norm_attr, eps), 0, 0, NULL                   \
    }
#define DZ_ROW                                                                      \
    {                                                                               \
        "act", TT_OPT_ENUM, "linear", "activation whose gradient is applied first", \
            offsetof(tti_batch_norm_attr, act), 0, 0, dz_names                      \
    }
static const tt_option sums_attrs[] = {EPS_ROW, DZ_ROW, TT_OPTION_END};
const tt_option tti_batch_norm_attrs[] = {
    EPS_ROW,
    {"act", TT_OPT_ENUM, "linear", "activation", offsetof(tti_batch_norm_attr, act), 0, 0,
     act_names},
    {"residual", TT_OPT_BOOL, "false", "the last input is added before the activation",
     offsetof(tti_batch_norm_attr, has_residual), 0, 0, NULL},
    TT_OPTION_END,
};
static const tt_option dx_attrs[] = {
    EPS_ROW,
    DZ_ROW,
    {"fixed", TT_OPT_BOOL, "false", "mean and variance do not depend on x",
     offsetof(tti_batch_norm_attr, fixed), 0, 0, NULL},
    TT_OPTION_END,
};
static const tt_option running_attrs[] = {
    {"momentum", TT_OPT_FLOAT, "0.9", "fraction of the old value that is kept",
     offsetof(tti_batch_norm_attr, momentum), 0, 1, NULL},
    TT_OPTION_END,
};

// ---- shape and split rules -------------------------------------------------------------------

tt_status tti_batch_norm_check(tt_infer *q)
{
    const tt_tensor *x = q->in[0];
    char text[TT_SHAPE_TEXT];
    if (!tti_is_float(x->dtype))
        return TT_FAIL(q->ctx, TT_EDTYPE, "%s: x is %s, not a float", q->name,
                       tt_dtype_name(x->dtype));
    if (x->shape.rank < 2 || x->shape.dim[x->shape.rank - 1] < 1)
        return TT_FAIL(q->ctx, TT_ESHAPE, "%s: x is %s; it must be [batch, ..., channels]", q->name,
                       tt_shape_text(&x->shape, text));
    return TT_OK;
}

tt_status tti_batch_norm_check_vectors(tt_infer *q, int first, int n, const char *const *names)
{
    const tt_tensor *x = q->in[0];
    char a[TT_SHAPE_TEXT], b[TT_SHAPE_TEXT];
    int64_t c = x->shape.dim[x->shape.rank - 1];
    for (int i = 0; i < n; i++) {
        const tt_tensor *v = q->in[first + i];
        if (v->dtype != x->dtype && v->dtype != tti_stat_dtype(x->dtype))
            return TT_FAIL(q->ctx, TT_EDTYPE, "%s: x is %s but %s is %s", q->name,
                           tt_dtype_name(x->dtype), names[i], tt_dtype_name(v->dtype));
        if (v->shape.rank != 1 || v->shape.dim[0] != c)
            return TT_FAIL(q->ctx, TT_ESHAPE, "%s: x is %s but %s is %s, not [%lld]", q->name,
                           tt_shape_text(&x->shape, a), names[i], tt_shape_text(&v->shape, b),
                           (long long)c);
    }
    return TT_OK;
}

tt_status tti_batch_norm_check_like_x(tt_infer *q, const char *what, const tt_tensor *t)
{
    char a[TT_SHAPE_TEXT], b[TT_SHAPE_TEXT];
    if (!tti_shape_equal(&q->in[0]->shape, &t->shape) || t->dtype != q->in[0]->dtype)
        return TT_FAIL(q->ctx, TT_ESHAPE, "%s: x is %s %s but %s is %s %s", q->name,
                       tt_dtype_name(q->in[0]->dtype), tt_shape_text(&q->in[0]->shape, a), what,
                       tt_dtype_name(t->dtype), tt_shape_text(&t->shape, b));
    return TT_OK;
}

static const char *const vector_names[] = {"mean", "var", "gamma", "beta"};
static const char *const dx_names[] = {"mean", "var", "gamma", "dgamma", "dbeta", "beta"};
static const char *const fixed_names[] = {"mean", "var", "gamma", "beta"};

static void out_vectors(tt_infer *q, tt_dtype dtype)
{
    const tt_shape *x = &q->in[0]->shape;
    for (int i = 0; i < q->n_out; i++) {
        q->shape[i] = TT_SHAPE(x->dim[x->rank - 1]);
        q->dtype[i] = dtype;
    }
}

static tt_status infer_stats(tt_infer *q)
{
    TT_TRY(tti_batch_norm_check(q));
    out_vectors(q, tti_stat_dtype(q->in[0]->dtype));
    return TT_OK;
}

static tt_status check_inputs(tt_infer *q, int n)
{
    if (q->n_in != n)
        return TT_FAIL(q->ctx, TT_EINVAL, "%s: has %d inputs, not %d", q->name, q->n_in, n);
    return TT_OK;
}

// x, mean, var, gamma, beta, residual
static tt_status infer_apply(tt_infer *q)
{
    const tti_batch_norm_attr *a = q->attr;
    TT_TRY(tti_batch_norm_check(q));
    TT_TRY(check_inputs(q, 5 + a->has_residual));
    TT_TRY(tti_batch_norm_check_vectors(q, 1, 4, vector_names));
    if (a->has_residual)
        TT_TRY(tti_batch_norm_check_like_x(q, "residual", q->in[5]));
    return tti_infer_same(q);
}

// x, dz, mean, var; with relu gamma, beta
static tt_status infer_sums(tt_infer *q)
{
    const tti_batch_norm_attr *a = q->attr;
    TT_TRY(tti_batch_norm_check(q));
    TT_TRY(check_inputs(q, a->act == TT_RELU ? 6 : 4));
    TT_TRY(tti_batch_norm_check_like_x(q, "dz", q->in[1]));
    TT_TRY(tti_batch_norm_check_vectors(q, 2, q->n_in - 2, vector_names));
    out_vectors(q, tti_stat_dtype(q->in[0]->dtype));
    return TT_OK;
}

// x, dz, mean, var, gamma; unless fixed dgamma, dbeta; with relu beta
static tt_status infer_dx(tt_infer *q)
{
    const tti_batch_norm_attr *a = q->attr;
    TT_TRY(tti_batch_norm_check(q));
    TT_TRY(check_inputs(q, (a->fixed ? 5 : 7) + (a->act == TT_RELU)));
    TT_TRY(tti_batch_norm_check_like_x(q, "dz", q->in[1]));
    TT_TRY(tti_batch_norm_check_vectors(q, 2, q->n_in - 2, a->fixed ? fixed_names : dx_names));
    return tti_infer_same(q);
}

static tt_status infer_running(tt_infer *q)
{
    const tt_tensor *old = q->in[0], *now = q->in[1];
    char a[TT_SHAPE_TEXT], b[TT_SHAPE_TEXT];
    if (!tti_shape_equal(&old->shape, &now->shape) || !tti_is_float(old->dtype) ||
        !tti_is_float(now->dtype))
        return TT_FAIL(q->ctx, TT_ESHAPE,
                       "%s: the running statistic is %s %s but the batch's %s %s", q->name,
                       tt_dtype_name(old->dtype), tt_shape_text(&old->shape, a),
                       tt_dtype_name(now->dtype), tt_shape_text(&now->shape, b));
    if (q->n_in == 3 && (q->in[2]->dtype != TT_F32 || tt_shape_count(&q->in[2]->shape) != 1))
        return TT_FAIL(q->ctx, TT_ESHAPE,
                       "%s: the input that says whether to update must be an f32 scalar", q->name);
    return tti_infer_same(q);
}

// Statistics are merged by Chan's formula, not added.
static tt_status split_stats(const tt_split_query *q)
{
    for (int i = 0; i < q->node->n_out; i++)
        q->out[i] =
            (tt_split){tti_split_is_of_lanes(q) ? TT_SPLIT_LANE_MOMENTS : TT_SPLIT_MIXES, -1};
    return TT_OK;
}

static tt_status split_rows(const tt_split_query *q)
{
    bool mixes = q->axis[0] < 0 || !tti_split_is_of_lanes(q); // an open vector; channels
    q->out[0] = (tt_split){mixes ? TT_SPLIT_MIXES : TT_SPLIT_AXIS, q->axis[0]};
    return TT_OK;
}

static tt_status split_sums(const tt_split_query *q)
{
    for (int i = 0; i < q->node->n_out; i++)
        q->out[i] = (tt_split){tti_split_is_of_lanes(q) ? TT_SPLIT_LANE_SUM : TT_SPLIT_MIXES, -1};
    return TT_OK;
}

// ---- work ------------------------------------------------------------------------------------

static size_t real_bytes(const tt_arg *x)
{
    return x->dtype == TT_F64 ? sizeof(double) : sizeof(float);
}

// Lane partials of two numbers per channel, then the tree.
static tt_status prep_lanes(tt_prep *p)
{
    const tt_arg *x = &p->in[0];
    int lanes = tti_lanes_of(x, p->lanes);
    int64_t blocks = (x->cols + TTI_BATCH_NORM_COLS - 1) / TTI_BATCH_NORM_COLS;
    tti_batch_norm_tune tune = {.blocks = lanes >= p->n_threads ? 1 : blocks};
    memcpy(p->tune, &tune, sizeof(tune));
    p->n_phases = 2;
    p->units[0] = lanes * tune.blocks;
    p->grain[0] = 1;
    p->units[1] = blocks;
    p->grain[1] = 16;
    p->scratch_bytes = 2 * real_bytes(x) * (size_t)lanes * (size_t)x->cols;
    p->local_bytes = 2 * real_bytes(x) * (size_t)(x->cols + 16);
    p->ns = 0.4 * (double)x->count;
    return TT_OK;
}

// Coefficients per channel are worked out by each call: three vectors.
static tt_status prep_apply(tt_prep *p)
{
    TT_TRY(tti_prep_row_units(p, p->in[0].rows, p->in[0].cols, 0.4));
    p->grain[0] = TTI_MAX(p->grain[0], 32);
    p->local_bytes = 3 * real_bytes(&p->in[0]) * (size_t)(p->in[0].cols + 16);
    return TT_OK;
}

// ---- gradients -------------------------------------------------------------------------------

// The fixed statistics' own gradients; dmean = -scale dbeta, dvar = -gamma dgamma / 2 (var + eps).
static void stats_gradient(tt_graph *g, const tt_node *n, tt_tensor *dgamma, tt_tensor *dbeta,
                           tt_tensor **dx)
{
    const tti_batch_norm_attr *a = n->attr;
    tt_dtype stat = dgamma->dtype;
    tt_tensor *gamma = tt_cast(g, n->in[3], stat), *var = tt_cast(g, n->in[2], stat);
    tt_tensor *v = tt_scale(g, var, 1, a->eps);
    tt_tensor *dmean = tt_neg(g, tt_mul(g, tt_mul(g, gamma, tt_rsqrt(g, v)), dbeta));
    tt_tensor *dvar = tt_scale(g, tt_div(g, tt_mul(g, gamma, dgamma), v), -0.5, 0);
    dx[1] = tt_cast(g, dmean, n->in[1]->dtype);
    dx[2] = tt_cast(g, dvar, n->in[2]->dtype);
}

static void apply_backward(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    const tti_batch_norm_attr *a = n->attr;
    tt_tensor *dz = dy[0], *z = n->out;
    bool masks = a->act == TT_RELU && !a->has_residual; // else the residual needs dz too
    if (a->act != TT_LINEAR && tti_act_needs_input((tt_act)a->act)) {
        tti_batch_norm_attr linear = *a;
        linear.act = TT_LINEAR;
        z = tt_node_out(g, &tti_op_batch_norm_apply, n->n_in, n->in, &linear);
    }
    if (a->act != TT_LINEAR && !masks)
        dz = tti_act_grad(g, (tt_act)a->act, dz, z);

    const tt_node *stats = n->in[1]->node;
    bool fixed = stats->op != &tti_op_batch_norm_stats || stats != n->in[2]->node ||
                 stats->in[0] != n->in[0];
    tti_batch_norm_attr b = {.eps = a->eps, .fixed = fixed, .act = masks ? TT_RELU : TT_LINEAR};
    tt_tensor *in[8] = {n->in[0], dz, n->in[1], n->in[2], n->in[3], n->in[4]};
    tt_node *sums =
        dz == NULL ? NULL : tt_node_new(g, &tti_op_batch_norm_sums, masks ? 6 : 4, in, &b, NULL);
    if (sums == NULL)
        return;
    int n_in = 5;
    for (int i = 0; !fixed && i < 2; i++)
        in[n_in++] = sums->outs[i];
    if (masks)
        in[n_in++] = n->in[4];
    dx[0] = tt_node_out(g, &tti_op_batch_norm_dx, n_in, in, &b);
    dx[3] = tt_cast(g, sums->outs[0], n->in[3]->dtype);
    dx[4] = tt_cast(g, sums->outs[1], n->in[4]->dtype);
    if (a->has_residual)
        dx[5] = dz;
    if (fixed)
        stats_gradient(g, n, sums->outs[0], sums->outs[1], dx);
}

// ---- records ---------------------------------------------------------------------------------

const tt_op tti_op_batch_norm_stats = {
    .name = "batch_norm_stats",
    .help = "mean, variance and unbiased variance per channel over the whole batch",
    .inputs = 1,
    .outputs = 3,
    .flags = TT_OP_NO_GRAD, // batch_norm_apply's gradient goes through to x
    .infer = infer_stats,
    .split = split_stats,
    .kernel = {[TT_CPU] = TTI_CPU(batch_norm_stats, prep_lanes)},
};

const tt_op tti_op_batch_norm_apply = {
    .name = "batch_norm_apply",
    .help = "act((x - mean) gamma / sqrt(var + eps) + beta + residual)",
    .inputs = 5,
    .max_inputs = 6,
    .flags = TT_OP_ROW_FREE,
    .in_place = 1 | 1 << 5,
    TTI_ATTRS(tti_batch_norm_attrs, tti_batch_norm_attr),
    .infer = infer_apply,
    .split = split_rows,
    .grad = apply_backward,
    .kernel = {[TT_CPU] = TTI_CPU(batch_norm_apply, prep_apply)},
};

const tt_op tti_op_batch_norm_sums = {
    .name = "batch_norm_sums",
    .help = "gradients with respect to gamma and beta, from x, dz, mean, var; with act also from "
            "dy, gamma, beta",
    .inputs = 4,
    .max_inputs = 6,
    .outputs = 2,
    TTI_ATTRS(sums_attrs, tti_batch_norm_attr),
    .infer = infer_sums,
    .split = split_sums,
    .kernel = {[TT_CPU] = TTI_CPU(batch_norm_sums, prep_lanes)},
};

const tt_op tti_op_batch_norm_dx = {
    .name = "batch_norm_dx",
    .help = "gradient with respect to x, from x, dz, mean, var, gamma, dgamma, dbeta; with act "
            "also from dy, beta",
    .inputs = 5,
    .max_inputs = 8,
    .flags = TT_OP_ROW_FREE,
    .in_place = 3,
    TTI_ATTRS(dx_attrs, tti_batch_norm_attr),
    .infer = infer_dx,
    .split = split_rows,
    .kernel = {[TT_CPU] = TTI_CPU(batch_norm_dx, prep_apply)},
};

const tt_op tti_op_batch_norm_running = {
    .name = "batch_norm_running",
    .help = "updates a running statistic to momentum old + (1 - momentum) batch, unless the third "
            "input is NaN",
    .inputs = 2,
    .max_inputs = 3,
    .flags = TT_OP_UPDATE,
    TTI_ATTRS(running_attrs, tti_batch_norm_attr),
    .infer = infer_running,
    .split = tti_split_whole,
    .kernel = {[TT_CPU] = TTI_CPU(batch_norm_running, tti_prep_elements)},
};
