/*
 * optimizer_norm.c - updates that look at a whole weight: steps scaled to its norm (lamb, lars), a
 * penalty on magnitudes, and constraints that hold after each step.
 *
 * With g the gradient after scaling and clipping, w the weight:
 *   lars  r = g + weight_decay w, ratio = trust |w| / (|g| + weight_decay |w|), then sgd with
 *         momentum on ratio r
 *   lamb  r as lamb_direction gives it, ratio = |w| / |r|, w -= lr ratio r
 * The ratio is 1 where a norm is 0. Norms are those that clipping uses: f64 sums in a fixed order,
 * of which each replica may make a part.
 */
#include "op/op.h"
#include "op/update.h"
#include "train/optimizer.h"

// |x|, f32
static tt_tensor *norm_of(tt_graph *g, tt_tensor *x)
{
    tt_tensor *square = tt_square_sum(g, x), *one = tt_scalar(g, 1), *norm = NULL;
    if (square == NULL || one == NULL ||
        tt_update_scale(g, one, one, one, .squares = &square, .n_squares = 1, .norm = &norm) ==
            NULL)
        return NULL;
    return norm;
}

// The gradient as the formulas take it.
static tt_tensor *scaled(tt_graph *g, tt_tensor *grad, tt_tensor *scale)
{
    return tt_mul(g, grad, tt_cast(g, scale, grad->dtype));
}

// factor a / b, or 1 where a or b is 0; NaN where the step is not applied.
static tt_tensor *ratio_of(tt_graph *g, tt_tensor *a, tt_tensor *b, double factor,
                           tt_tensor *applied)
{
    tt_tensor *zero = tt_scalar(g, 0), *one = tt_scalar(g, 1);
    tt_tensor *both = tt_logical_and(g, tt_greater(g, a, zero), tt_greater(g, b, zero));
    tt_tensor *y = tt_where(g, both, tt_scale(g, tt_div(g, a, b), factor, 0), one);
    return tt_mul(g, y, applied);
}

tt_tensor *tti_update_by_norm(tt_graph *g, const tt_optimizer *o, tt_tensor *var, tt_tensor *grad,
                              const tt_update_opts *given, tt_tensor *applied)
{
    tt_update_opts opts = *given;
    tt_tensor *w = norm_of(g, var), *r;
    if (o->kind == TT_LAMB) {
        r = tti_lamb_direction(g, var, grad, given);
        opts.scale = r == NULL ? NULL : ratio_of(g, w, norm_of(g, r), 1, applied);
    } else {
        tt_tensor *d = scaled(g, grad, given->scale);
        r = d == NULL ? NULL : tt_add(g, d, tt_scale(g, var, given->weight_decay, 0));
        tt_tensor *below = d == NULL ? NULL : norm_of(g, d);
        if (given->weight_decay > 0)
            below = tt_add(g, below, tt_scale(g, w, given->weight_decay, 0));
        opts.scale = ratio_of(g, w, below, o->trust, applied);
    }
    opts.weight_decay = 0;
    return r == NULL || opts.scale == NULL ? NULL : tt_update_sgd_with(g, var, r, &opts);
}

tt_tensor *tti_penalised(tt_graph *g, tt_tensor *var, tt_tensor *grad, double l1,
                         tt_tensor *applied, tt_tensor **scale)
{
    tt_tensor *d = scaled(g, grad, *scale);
    *scale = applied;
    return tt_add(g, d, tt_scale(g, tt_sign(g, var), l1, 0));
}

// The weights of a unit, over all axes but the last, scaled down to a norm of at most `most`.
static tt_tensor *within_norm(tt_graph *g, tt_tensor *x, double most)
{
    tt_reduce_opts all_but_last = {.opts_size = sizeof(all_but_last), .keep_dims = true};
    for (int i = 0; i + 1 < x->shape.rank; i++)
        all_but_last.axes.axis[all_but_last.axes.n++] = i;
    tt_tensor *square = tt_square(g, x);
    if (x->shape.rank > 1)
        square = tt_sum_with(g, square, &all_but_last);
    tt_tensor *norm = tt_sqrt(g, square);
    if (norm == NULL)
        return NULL;
    tt_tensor *limit = tt_fill(g, x->dtype, TT_SCALAR, most);
    // max / max(norm, max) is 1 where the norm is smaller
    return tt_mul(g, x, tt_div(g, limit, tt_maximum(g, norm, limit)));
}

tt_tensor *tti_constrained(tt_graph *g, tt_tensor *var, tt_tensor *value, const tt_group *group)
{
    if (group->non_negative)
        value = tt_relu(g, value);
    if (value != NULL && group->max_norm > 0)
        value = within_norm(g, value, group->max_norm);
    return value == NULL ? NULL : tt_assign(g, var, value);
}
