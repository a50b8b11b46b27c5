/*
 * unary.c - y[i] = f(x[i]): one row per op. Kernels: unary_cpu.c; the functions: vmath.h, act.h.
 *
 *   abs, sign   of -0 is 0
 *   relu        max(x, 0)                       silu   x sigmoid(x)
 *   gelu_erf    x/2 (1 + erf(x / sqrt 2))       gelu   the same with tanh, see act.h
 *   softplus    max(x, 0) + log1p(e^-|x|)       elu    x > 0 ? x : alpha expm1(x)
 *   leaky_relu  x > 0 ? x : slope x             clip   min(high, max(low, x))
 *   scale       fma(x, factor, offset)          rsqrt  1 / sqrt(x)
 *   selu        S (x > 0 ? x : A expm1(x))      relu6  min(6, max(0, x))
 *   mish        x tanh(softplus(x))             hard_sigmoid  min(1, max(0, x / 6 + 1/2))
 *   softsign    x / (1 + |x|)                   hard_swish    x hard_sigmoid(x)
 *
 * Gradients are exact formulas as nodes; activations have a backward op of one pass, from y where
 * that is enough, so that x need not be kept.
 */
#include "op/unary.h"
#include "op/op.h"
#include "op/shape.h"

static tt_tensor *one(tt_graph *g, const tt_op *op, tt_tensor *x, const tti_unary_attr *attr)
{
    return tt_node_out(g, op, 1, (tt_tensor *const[]){x}, attr);
}
static tt_tensor *two(tt_graph *g, const tt_op *op, tt_tensor *x, tt_tensor *dy, const void *attr)
{
    return tt_node_out(g, op, 2, (tt_tensor *const[]){x, dy}, attr);
}

// What a vector of 16 costs beside reading and writing it: 6 ns at most.
static tt_status prepare(tt_prep *p)
{
    TT_TRY(tti_prep_elements(p));
    p->ns += 0.4 * (double)p->units[0];
    return TT_OK;
}

// ---- backward ops: dx from x or y, and dy ----------------------------------------------------

static tt_status infer_backward(tt_infer *q)
{
    char a[TT_SHAPE_TEXT], b[TT_SHAPE_TEXT];
    if (!tti_shape_equal(&q->in[0]->shape, &q->in[1]->shape))
        return TT_FAIL(q->ctx, TT_ESHAPE, "%s: x is %s but dy is %s", q->name,
                       tt_shape_text(&q->in[0]->shape, a), tt_shape_text(&q->in[1]->shape, b));
    if (q->in[0]->dtype != q->in[1]->dtype)
        return TT_FAIL(q->ctx, TT_EDTYPE, "%s: x is %s but dy is %s", q->name,
                       tt_dtype_name(q->in[0]->dtype), tt_dtype_name(q->in[1]->dtype));
    return tti_infer_same_float(q);
}

#define ATTR(name_, value_, help_, field_)                                               \
    {                                                                                    \
        name_, TT_OPT_FLOAT, value_, help_, offsetof(tti_unary_attr, field_), 0, 0, NULL \
    }
static const tt_option slope_attrs[] = {ATTR("slope", "0.01", "factor for negative x", a),
                                        TT_OPTION_END};
static const tt_option alpha_attrs[] = {ATTR("alpha", "1", "minus the limit for x towards -inf", a),
                                        TT_OPTION_END};
static const tt_option clip_attrs[] = {ATTR("low", NULL, "lower bound", a),
                                       ATTR("high", NULL, "upper bound", b), TT_OPTION_END};
static const tt_option scale_attrs[] = {ATTR("factor", "1", "factor on x", a),
                                        ATTR("offset", "0", "added", b), TT_OPTION_END};

#define BACKWARD(name_, help_, attrs_)                              \
    const tt_op tti_op_##name_ = {                                  \
        .name = #name_,                                             \
        .help = help_,                                              \
        .inputs = 2,                                                \
        .flags = TT_OP_POINTWISE | TT_OP_ROW_FREE,                  \
        .in_place = 3,                                              \
        .attrs = attrs_,                                            \
        .attr_size = attrs_ == NULL ? 0 : sizeof(tti_unary_attr),   \
        .infer = infer_backward,                                    \
        .split = tti_split_pointwise,                               \
        .kernel = {[TT_CPU] = TTI_CPU(tti_unary_##name_, prepare)}, \
    }
BACKWARD(relu_grad, "dx of relu from y and dy", NULL);
BACKWARD(gelu_grad, "dx of gelu from x and dy", NULL);
BACKWARD(gelu_erf_grad, "dx of gelu_erf from x and dy", NULL);
BACKWARD(silu_grad, "dx of silu from x and dy", NULL);
BACKWARD(sigmoid_grad, "dx of sigmoid from y and dy", NULL);
BACKWARD(tanh_grad, "dx of tanh from y and dy", NULL);
BACKWARD(softplus_grad, "dx of softplus from x and dy", NULL);
BACKWARD(elu_grad, "dx of elu from y and dy", alpha_attrs);
BACKWARD(leaky_relu_grad, "dx of leaky_relu from x or y, and dy", slope_attrs);
BACKWARD(clip_grad, "dx of clip from x and dy", clip_attrs);
BACKWARD(selu_grad, "dx of selu from y and dy", NULL);
BACKWARD(relu6_grad, "dx of relu6 from y and dy", NULL);
BACKWARD(mish_grad, "dx of mish from x and dy", NULL);
BACKWARD(hard_sigmoid_grad, "dx of hard_sigmoid from x and dy", NULL);
BACKWARD(hard_swish_grad, "dx of hard_swish from x and dy", NULL);
BACKWARD(softsign_grad, "dx of softsign from x and dy", NULL);

// ---- gradients: x, y and d = dy give dx ------------------------------------------------------

#define GRAD(name_, expr_)                                                                      \
    static void name_##_dx(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx) \
    {                                                                                           \
        tt_tensor *x = n->in[0], *y = n->out, *d = dy[0];                                       \
        (void)x, (void)y;                                                                       \
        dx[0] = (expr_);                                                                        \
    }
GRAD(neg, tt_neg(g, d))
GRAD(abs, tt_mul(g, d, tt_sign(g, x)))
GRAD(square, tt_mul(g, d, tt_scale(g, x, 2, 0)))
GRAD(sqrt, tt_div(g, tt_scale(g, d, 0.5, 0), y))
GRAD(rsqrt, tt_mul(g, tt_scale(g, d, -0.5, 0), tt_div(g, y, x)))
GRAD(exp, tt_mul(g, d, y))
GRAD(log, tt_div(g, d, x))
GRAD(sin, tt_mul(g, d, tt_cos(g, x)))
GRAD(cos, tt_neg(g, tt_mul(g, d, tt_sin(g, x))))
GRAD(erf, tt_mul(g, tt_scale(g, d, 1.1283791670955126, 0), tt_exp(g, tt_neg(g, tt_square(g, x)))))
GRAD(relu, two(g, &tti_op_relu_grad, y, d, NULL))
GRAD(gelu, two(g, &tti_op_gelu_grad, x, d, NULL))
GRAD(gelu_erf, two(g, &tti_op_gelu_erf_grad, x, d, NULL))
GRAD(silu, two(g, &tti_op_silu_grad, x, d, NULL))
GRAD(sigmoid, two(g, &tti_op_sigmoid_grad, y, d, NULL))
GRAD(tanh, two(g, &tti_op_tanh_grad, y, d, NULL))
GRAD(softplus, two(g, &tti_op_softplus_grad, x, d, NULL))
GRAD(selu, two(g, &tti_op_selu_grad, y, d, NULL))
GRAD(relu6, two(g, &tti_op_relu6_grad, y, d, NULL))
GRAD(mish, two(g, &tti_op_mish_grad, x, d, NULL))
GRAD(hard_sigmoid, two(g, &tti_op_hard_sigmoid_grad, x, d, NULL))
GRAD(hard_swish, two(g, &tti_op_hard_swish_grad, x, d, NULL))
GRAD(softsign, two(g, &tti_op_softsign_grad, x, d, NULL))
GRAD(elu, two(g, &tti_op_elu_grad, y, d, n->attr))
GRAD(leaky_relu, two(g, &tti_op_leaky_relu_grad, y, d, n->attr))
GRAD(clip, two(g, &tti_op_clip_grad, x, d, n->attr))
GRAD(scale, tt_scale(g, d, ((const tti_unary_attr *)n->attr)->a, 0))

// ---- the ops ---------------------------------------------------------------------------------

static tt_status infer_number(tt_infer *q)
{
    if (q->in[0]->dtype == TT_BOOL)
        return TT_FAIL(q->ctx, TT_EDTYPE, "%s: x is bool, not a number", q->name);
    return tti_infer_same(q);
}

static tt_status infer_bool(tt_infer *q)
{
    if (q->in[0]->dtype != TT_BOOL)
        return TT_FAIL(q->ctx, TT_EDTYPE, "%s: x is %s, not bool", q->name,
                       tt_dtype_name(q->in[0]->dtype));
    return tti_infer_same(q);
}

#define RECORD(name_, help_, flags_, types_, attrs_, infer_, grad_) \
    const tt_op tti_op_##name_ = {                                  \
        .name = #name_,                                             \
        .help = help_,                                              \
        .inputs = 1,                                                \
        .flags = TT_OP_POINTWISE | TT_OP_ROW_FREE | (flags_),       \
        .types = types_,                                            \
        .in_place = 1,                                              \
        .attrs = attrs_,                                            \
        .attr_size = attrs_ == NULL ? 0 : sizeof(tti_unary_attr),   \
        .infer = infer_,                                            \
        .split = tti_split_pointwise,                               \
        .grad = grad_,                                              \
        .kernel = {[TT_CPU] = TTI_CPU(tti_unary_##name_, prepare)}, \
    }
#define BUILDER(name_)                               \
    tt_tensor *tt_##name_(tt_graph *g, tt_tensor *x) \
    {                                                \
        return one(g, &tti_op_##name_, x, NULL);     \
    }
#define UNARY(name_, help_)                                                          \
    RECORD(name_, help_, 0, TT_TYPES_FLOAT, NULL, tti_infer_same_float, name_##_dx); \
    BUILDER(name_)
#define TYPES_NUMBER (TT_TYPES_ALL & ~(1u << TT_BOOL))
#define UNARY_ANY(name_, help_, flags_, grad_)                                                \
    RECORD(name_, help_, TT_OP_ANY_TYPE | (flags_), TYPES_NUMBER, NULL, infer_number, grad_); \
    BUILDER(name_)

UNARY_ANY(neg, "-x", 0, neg_dx)
UNARY_ANY(abs, "|x|", 0, abs_dx)
UNARY_ANY(square, "x x", 0, square_dx)
UNARY_ANY(sign, "-1, 0 or 1", TT_OP_NO_GRAD, NULL)
UNARY(sqrt, "square root")
UNARY(rsqrt, "1 / sqrt(x)")
UNARY(exp, "e^x")
UNARY(log, "natural logarithm")
UNARY(sin, "sine, x in radians")
UNARY(cos, "cosine, x in radians")
UNARY(tanh, "hyperbolic tangent")
UNARY(erf, "error function")
UNARY(sigmoid, "1 / (1 + e^-x)")
UNARY(relu, "max(x, 0)")
UNARY(gelu, "gelu, tanh form")
UNARY(gelu_erf, "gelu, exact form")
UNARY(silu, "x sigmoid(x)")
UNARY(softplus, "log(1 + e^x)")
UNARY(selu, "1.0507 x for x > 0, else 1.7581 (e^x - 1)")
UNARY(relu6, "min(6, max(0, x))")
UNARY(mish, "x tanh(softplus(x))")
UNARY(hard_sigmoid, "min(1, max(0, x / 6 + 1/2))")
UNARY(hard_swish, "x hard_sigmoid(x)")
UNARY(softsign, "x / (1 + |x|)")
RECORD(logical_not, "not x", TT_OP_ANY_TYPE | TT_OP_NO_GRAD, 1u << TT_BOOL, NULL, infer_bool, NULL);
BUILDER(logical_not)

static tt_status infer_elu(tt_infer *q)
{
    double alpha = ((const tti_unary_attr *)q->attr)->a;
    if (!(alpha >= 0))
        return TT_FAIL(q->ctx, TT_EINVAL, "elu: alpha is %g, below zero", alpha);
    return tti_infer_same_float(q);
}

static tt_status infer_leaky_relu(tt_infer *q)
{
    double slope = ((const tti_unary_attr *)q->attr)->a;
    if (!(slope >= 0))
        return TT_FAIL(q->ctx, TT_EINVAL, "leaky_relu: the slope is %g, below zero", slope);
    return tti_infer_same_float(q);
}

static tt_status infer_clip(tt_infer *q)
{
    const tti_unary_attr *t = q->attr;
    if (!(t->a <= t->b))
        return TT_FAIL(q->ctx, TT_EINVAL, "clip: low is %g but high is %g", t->a, t->b);
    return tti_infer_same_float(q);
}

RECORD(leaky_relu, "x > 0 ? x : slope x", 0, TT_TYPES_FLOAT, slope_attrs, infer_leaky_relu,
       leaky_relu_dx);
RECORD(elu, "x > 0 ? x : alpha (e^x - 1)", 0, TT_TYPES_FLOAT, alpha_attrs, infer_elu, elu_dx);
RECORD(clip, "min(high, max(low, x))", 0, TT_TYPES_FLOAT, clip_attrs, infer_clip, clip_dx);
RECORD(scale, "fma(x, factor, offset)", 0, TT_TYPES_FLOAT, scale_attrs, tti_infer_same_float,
       scale_dx);

tt_tensor *tt_leaky_relu(tt_graph *g, tt_tensor *x, double slope)
{
    return one(g, &tti_op_leaky_relu, x, &(tti_unary_attr){slope, 0});
}
tt_tensor *tt_elu(tt_graph *g, tt_tensor *x, double alpha)
{
    return one(g, &tti_op_elu, x, &(tti_unary_attr){alpha, 0});
}
tt_tensor *tt_clip(tt_graph *g, tt_tensor *x, double low, double high)
{
    return one(g, &tti_op_clip, x, &(tti_unary_attr){low, high});
}
tt_tensor *tt_scale(tt_graph *g, tt_tensor *x, double factor, double offset)
{
    return one(g, &tti_op_scale, x, &(tti_unary_attr){factor, offset});
}

// ---- activations by number: what dense and convolution nodes carry ---------------------------

static const struct act_row {
    const tt_op *op, *grad;
    bool from_input; // the gradient needs z, not y
    tti_unary_attr attr;
} act_rows[] = {
    [TT_LINEAR] = {NULL, NULL, false, {0, 0}},
    [TT_RELU] = {&tti_op_relu, &tti_op_relu_grad, false, {0, 0}},
    [TT_GELU] = {&tti_op_gelu, &tti_op_gelu_grad, true, {0, 0}},
    [TT_GELU_ERF] = {&tti_op_gelu_erf, &tti_op_gelu_erf_grad, true, {0, 0}},
    [TT_SIGMOID] = {&tti_op_sigmoid, &tti_op_sigmoid_grad, false, {0, 0}},
    [TT_TANH] = {&tti_op_tanh, &tti_op_tanh_grad, false, {0, 0}},
    [TT_SILU] = {&tti_op_silu, &tti_op_silu_grad, true, {0, 0}},
    [TT_ELU] = {&tti_op_elu, &tti_op_elu_grad, false, {1, 0}},
    [TT_LEAKY_RELU] = {&tti_op_leaky_relu, &tti_op_leaky_relu_grad, false, {0.01, 0}},
    [TT_SOFTPLUS] = {&tti_op_softplus, &tti_op_softplus_grad, true, {0, 0}},
    [TT_SELU] = {&tti_op_selu, NULL, false, {0, 0}}, // from here on never part of another node
    [TT_RELU6] = {&tti_op_relu6, NULL, false, {0, 0}},
    [TT_MISH] = {&tti_op_mish, NULL, false, {0, 0}},
    [TT_HARD_SIGMOID] = {&tti_op_hard_sigmoid, NULL, false, {0, 0}},
    [TT_HARD_SWISH] = {&tti_op_hard_swish, NULL, false, {0, 0}},
    [TT_SOFTSIGN] = {&tti_op_softsign, NULL, false, {0, 0}},
};

tt_act tti_act_fused(tt_act act)
{
    return act > TT_SOFTMAX && (unsigned)act < TTI_COUNT(act_rows) ? TT_LINEAR : act;
}

tt_tensor *tti_act_apart(tt_graph *g, tt_tensor *y, tt_act act)
{
    return tti_act_fused(act) == act ? y : tt_activation(g, y, act);
}

bool tti_act_needs_input(tt_act act)
{
    return (unsigned)act < TTI_COUNT(act_rows) && act_rows[act].from_input;
}

tt_tensor *tti_act_grad(tt_graph *g, tt_act act, tt_tensor *dy, tt_tensor *y_or_z)
{
    if (act == TT_LINEAR || (unsigned)act >= TTI_COUNT(act_rows))
        return dy;
    const struct act_row *r = &act_rows[act];
    return two(g, r->grad, y_or_z, dy, r->grad->attrs == NULL ? NULL : &r->attr);
}

tt_tensor *tt_activation(tt_graph *g, tt_tensor *x, tt_act act)
{
    if (!tti_given(g, "activation", x))
        return NULL;
    if ((unsigned)act >= TTI_COUNT(act_rows) || (act != TT_LINEAR && act_rows[act].op == NULL)) {
        (void)TT_FAIL(tt_graph_get_ctx(g), TT_EINVAL, "activation: there is no activation %d",
                      (int)act);
        return NULL;
    }
    const struct act_row *r = &act_rows[act];
    return act == TT_LINEAR ? x : one(g, r->op, x, r->op->attrs == NULL ? NULL : &r->attr);
}

tt_tensor *tt_glu(tt_graph *g, tt_tensor *x, tt_act act)
{
    tt_tensor *half[2];
    char text[TT_SHAPE_TEXT];
    if (!tti_given(g, "glu", x))
        return NULL;
    int rank = x->shape.rank;
    if (rank < 1 || x->shape.dim[rank - 1] < 2 || x->shape.dim[rank - 1] % 2 != 0) {
        (void)TT_FAIL(tt_graph_get_ctx(g), TT_ESHAPE,
                      "glu: x is %s; its last axis must have an even number of entries",
                      tt_shape_text(&x->shape, text));
        return NULL;
    }
    if (tt_split_at(g, x, -1, 2, half) != TT_OK)
        return NULL;
    return tt_mul(g, half[0], tt_activation(g, half[1], act));
}

tt_tensor *tt_prelu(tt_graph *g, tt_tensor *x, tt_tensor *slope)
{
    if (!tti_given(g, "prelu", x) || !tti_given(g, "prelu", slope))
        return NULL;
    tt_tensor *zero = tt_fill(g, x->dtype, TT_SCALAR, 0);
    return tt_where(g, tt_greater(g, x, zero), x, tt_mul(g, x, slope));
}
