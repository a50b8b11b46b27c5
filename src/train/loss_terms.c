/*
 * loss_terms.c - the terms of losses beside cross entropy. With x the output, t the target, d = x -
 * t, z logits and s the sign of a target (1 where t > 0, else -1):
 *   mse d^2   mae |d|     huber  c (d - c / 2), c = clip(d, -delta, delta): d^2 / 2, beyond delta
 *                         a line
 *   binary_cross_entropy  t softplus(-z) + (1 - t) softplus(z), which is max(z, 0) - z t +
 *                         log(1 + e^-|z|), but keeps small terms and has its gradient at 0
 *   binary_focal          t a q^gamma softplus(-z) + (1 - t) (1 - a) p^gamma softplus(z), p =
 *                         sigmoid(z) = e^-softplus(-z), q = 1 - p; without alpha both a are 1
 *   hinge                 max(0, 1 - s x); squared_hinge: its square
 *   poisson               e^x - t x; with no_log x - t log(max(x, 1e-7))
 *   log_cosh              |d| + softplus(-2 |d|) - log 2
 *   mape                  100 |d| / max(|t|, 1e-7)
 *   msle                  (log(1 + max(x, 0)) - log(1 + max(t, 0)))^2
 * One term per row:
 *   kl_divergence         sum(t log t) - sum(t log softmax(z)), 0 log 0 = 0
 *   cosine_similarity     1 - sum(x t) / sqrt(max(sum(x^2), e) max(sum(t^2), e)), e = 1e-12
 *   categorical_hinge     max(0, 1 + max_k(x_k, k not t; 0) - x_t)
 *   focal                 (1 - p)^gamma c, c = -log p the cross entropy of the label
 * One term per record:
 *   dice                  1 - 2 sum(p t) / (sum(p) + sum(t) + 1e-7), p = sigmoid(z), or what a
 *                         softmax gave
 */
#include "op/op.h"
#include "train/loss.h"

#define SMALL 1e-7

static tt_tensor *at_least(tt_graph *g, tt_tensor *x, double low)
{
    return x == NULL ? NULL : tt_maximum(g, x, tt_fill(g, x->dtype, TT_SCALAR, low));
}

static tt_tensor *over_last(tt_graph *g, tt_tensor *x)
{
    return tt_sum(g, x, .axis = -1);
}

static tt_tensor *over_record(tt_graph *g, tt_tensor *x)
{
    tt_reduce_opts all_but_first = {.opts_size = sizeof(all_but_first)};
    for (int i = 1; x != NULL && i < x->shape.rank; i++)
        all_but_first.axes.axis[all_but_first.axes.n++] = i;
    return x == NULL || x->shape.rank == 1 ? x : tt_sum_with(g, x, &all_but_first);
}

// ---- element by element ----------------------------------------------------------------------

static tt_tensor *binary_terms(tt_graph *g, tt_tensor *z, tt_tensor *t)
{
    tt_tensor *one = tt_mul(g, t, tt_softplus(g, tt_neg(g, z)));
    return tt_add(g, one, tt_mul(g, tt_scale(g, t, -1, 1), tt_softplus(g, z)));
}

// of * (-log of a probability) * (1 - that probability)^gamma, for the logit z of the probability.
static tt_tensor *focal_half(tt_graph *g, tt_tensor *of, tt_tensor *z, double gamma)
{
    tt_tensor *other = tt_exp(g, tt_scale(g, tt_softplus(g, z), -gamma, 0));
    return tt_mul(g, of, tt_mul(g, other, tt_softplus(g, tt_neg(g, z))));
}

static tt_tensor *binary_focal_terms(tt_graph *g, const tt_loss *l, tt_tensor *z, tt_tensor *t)
{
    double gamma = tti_or_default(l->gamma, 2), a = l->alpha;
    tt_tensor *one = focal_half(g, a > 0 ? tt_scale(g, t, a, 0) : t, z, gamma);
    tt_tensor *rest = a > 0 ? tt_scale(g, t, a - 1, 1 - a) : tt_scale(g, t, -1, 1);
    return tt_add(g, one, focal_half(g, rest, tt_neg(g, z), gamma));
}

static tt_tensor *huber_terms(tt_graph *g, tt_tensor *d, double delta)
{
    tt_tensor *c = tt_clip(g, d, -delta, delta);
    return tt_mul(g, c, tt_sub(g, d, tt_scale(g, c, 0.5, 0)));
}

static tt_tensor *hinge_terms(tt_graph *g, tt_tensor *x, tt_tensor *t)
{
    tt_tensor *is_one = tt_greater(g, t, tt_fill(g, t->dtype, TT_SCALAR, 0));
    tt_tensor *s = tt_scale(g, tt_cast(g, is_one, t->dtype), 2, -1);
    return tt_relu(g, tt_scale(g, tt_mul(g, s, x), -1, 1));
}

static tt_tensor *poisson_terms(tt_graph *g, const tt_loss *l, tt_tensor *x, tt_tensor *t)
{
    if (l->no_log)
        return tt_sub(g, x, tt_mul(g, t, tt_log(g, at_least(g, x, SMALL))));
    return tt_sub(g, tt_exp(g, x), tt_mul(g, t, x));
}

static tt_tensor *log_cosh_terms(tt_graph *g, tt_tensor *d)
{
    tt_tensor *a = tt_abs(g, d);
    return tt_add(g, a,
                  tt_scale(g, tt_softplus(g, tt_scale(g, a, -2, 0)), 1, -0.69314718055994531));
}

static tt_tensor *log_of_more(tt_graph *g, tt_tensor *x)
{
    return tt_log(g, tt_scale(g, tt_relu(g, x), 1, 1));
}

tt_tensor *tti_element_terms(tt_graph *g, const tt_loss *l, tt_tensor *z, tt_tensor *t)
{
    switch (l->kind) {
    case TT_BINARY_CROSS_ENTROPY:
        return binary_terms(g, z, t);
    case TT_BINARY_FOCAL:
        return binary_focal_terms(g, l, z, t);
    case TT_MSE:
        return tt_square(g, tt_sub(g, z, t));
    case TT_MAE:
        return tt_abs(g, tt_sub(g, z, t));
    case TT_HINGE:
        return hinge_terms(g, z, t);
    case TT_SQUARED_HINGE:
        return tt_square(g, hinge_terms(g, z, t));
    case TT_POISSON:
        return poisson_terms(g, l, z, t);
    case TT_LOG_COSH:
        return log_cosh_terms(g, tt_sub(g, z, t));
    case TT_MAPE:
        return tt_scale(g, tt_div(g, tt_abs(g, tt_sub(g, z, t)), at_least(g, tt_abs(g, t), SMALL)),
                        100, 0);
    case TT_MSLE:
        return tt_square(g, tt_sub(g, log_of_more(g, z), log_of_more(g, t)));
    default:
        return huber_terms(g, tt_sub(g, z, t), l->delta != 0 ? l->delta : 1);
    }
}

// ---- rows and records ------------------------------------------------------------------------

static tt_tensor *kl_terms(tt_graph *g, tt_tensor *z, tt_tensor *t)
{
    tt_tensor *log_t = tt_log(g, at_least(g, t, 1e-37));
    return tt_add(g, tt_cross_entropy(g, z, t), over_last(g, tt_mul(g, t, log_t)));
}

static tt_tensor *cosine_terms(tt_graph *g, tt_tensor *x, tt_tensor *t)
{
    return tt_scale(g, tti_cosine_of(g, x, t), -1, 1);
}

tt_tensor *tti_cosine_of(tt_graph *g, tt_tensor *x, tt_tensor *t)
{
    tt_tensor *xx = at_least(g, over_last(g, tt_square(g, x)), 1e-12);
    tt_tensor *tt = at_least(g, over_last(g, tt_square(g, t)), 1e-12);
    return tt_mul(g, over_last(g, tt_mul(g, x, t)), tt_mul(g, tt_rsqrt(g, xx), tt_rsqrt(g, tt)));
}

static tt_tensor *dice_terms(tt_graph *g, tt_tensor *z, tt_tensor *t)
{
    tt_tensor *p = z->node->op == &tti_op_softmax ? z : tt_sigmoid(g, z);
    tt_tensor *both = over_record(g, tt_mul(g, p, t));
    tt_tensor *all = tt_scale(g, over_record(g, tt_add(g, p, t)), 1, SMALL);
    return tt_scale(g, tt_div(g, both, all), -2, 1);
}

tt_tensor *tti_row_terms(tt_graph *g, const tt_loss *l, tt_tensor *z, tt_tensor *t)
{
    return l->kind == TT_KL_DIVERGENCE ? kl_terms(g, z, t)
           : l->kind == TT_DICE        ? dice_terms(g, z, t)
                                       : cosine_terms(g, z, t);
}

static tt_tensor *categorical_hinge_terms(tt_graph *g, tt_tensor *x, tt_tensor *t)
{
    tt_tensor *hot = tt_one_hot(g, t, x->shape.dim[x->shape.rank - 1], x->dtype);
    tt_tensor *right = over_last(g, tt_mul(g, hot, x));
    tt_tensor *best = tt_max(g, tt_mul(g, tt_scale(g, hot, -1, 1), x), .axis = -1);
    return tt_relu(g, tt_scale(g, tt_sub(g, best, right), 1, 1));
}

static tt_tensor *focal_terms(tt_graph *g, const tt_loss *l, tt_tensor *z, tt_tensor *t)
{
    tt_tensor *c = tt_cross_entropy(g, z, t, .has_ignore = l->has_ignore, .ignore = l->ignore);
    tt_tensor *rest = at_least(g, tt_scale(g, tt_exp(g, tt_neg(g, c)), -1, 1), SMALL);
    double gamma = tti_or_default(l->gamma, 2);
    return tt_mul(g, tt_pow(g, rest, tt_fill(g, rest->dtype, TT_SCALAR, gamma)), c);
}

tt_tensor *tti_label_terms(tt_graph *g, const tt_loss *l, tt_tensor *z, tt_tensor *t)
{
    z = z->dtype == TT_F64 ? z : tt_cast(g, z, TT_F32);
    if (z == NULL)
        return NULL;
    return l->kind == TT_FOCAL ? focal_terms(g, l, z, t) : categorical_hinge_terms(g, z, t);
}
