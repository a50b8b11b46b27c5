/*
 * metric_number.c - metrics of numbers, with x the output (of a binary loss its sigmoid) and t the
 * target:
 *   mse, mae, rmse  mean of (x - t)^2, |x - t|; the root of mse
 *   mape            mean of 100 |x - t| / max(|t|, 1e-7)
 *   r2              1 - sum (x - t)^2 / sum (t - mean t)^2 for each number of the last axis; their
 *                   mean. Where all t are the same it is 1 if x is t, else 0
 *   cosine          mean over rows of the cosine of the angle of x and t
 */
#include "train/metric.h"
#include <math.h>

typedef tti_metric_inputs inputs;

// The output and the target as f32 of one shape.
static tt_status numbers_of(tt_graph *g, const inputs *in, const char *metric, tt_tensor **x,
                            tt_tensor **t)
{
    tt_loss_kind kind = in->loss->kind;
    *x = in->logits;
    *t = in->target;
    if (tti_loss_has_classes(kind) || (*x)->shape.rank < (*t)->shape.rank)
        return tti_metric_refuse(g, in, metric);
    if (tti_metric_is_binary(in) && kind != TT_HINGE && kind != TT_SQUARED_HINGE)
        *x = tt_sigmoid(g, *x);
    if (*x != NULL && (*t)->shape.rank + 1 == (*x)->shape.rank)
        *t = tt_expand_dims(g, *t, -1);
    *x = tti_metric_f32(g, *x);
    *t = tti_metric_f32(g, *t);
    return tt_status_of(tt_graph_get_ctx(g));
}

tt_status tti_mse_build(tt_graph *g, const inputs *in, tt_tensor **states, int *n_states)
{
    tt_tensor *x, *t;
    TT_TRY(numbers_of(g, in, "mse", &x, &t));
    return tti_metric_two_sums(g, in, tt_square(g, tt_sub(g, x, t)), states, n_states);
}

tt_status tti_mae_build(tt_graph *g, const inputs *in, tt_tensor **states, int *n_states)
{
    tt_tensor *x, *t;
    TT_TRY(numbers_of(g, in, "mae", &x, &t));
    return tti_metric_two_sums(g, in, tt_abs(g, tt_sub(g, x, t)), states, n_states);
}

double tti_rmse_finish(const double *const *sums, const int64_t *sizes, int n_states)
{
    return sqrt(tti_metric_ratio(sums, sizes, n_states));
}

tt_status tti_mape_build(tt_graph *g, const inputs *in, tt_tensor **states, int *n_states)
{
    tt_tensor *x, *t;
    TT_TRY(numbers_of(g, in, "mape", &x, &t));
    tt_tensor *under = tt_maximum(g, tt_abs(g, t), tt_scalar(g, 1e-7));
    tt_tensor *part = tt_div(g, tt_abs(g, tt_sub(g, x, t)), under);
    return tti_metric_two_sums(g, in, tt_scale(g, part, 100, 0), states, n_states);
}

// States, by number of the last axis: the count, sums of t, t^2 and (x - t)^2.
tt_status tti_r2_build(tt_graph *g, const inputs *in, tt_tensor **states, int *n_states)
{
    tt_tensor *x, *t;
    TT_TRY(numbers_of(g, in, "r2", &x, &t));
    if (x->shape.rank == 1) {
        x = tt_expand_dims(g, x, -1);
        t = tt_expand_dims(g, t, -1);
    }
    if (x == NULL || t == NULL)
        return tt_status_of(tt_graph_get_ctx(g));
    tt_tensor *of[4] = {tti_metric_ones(g, in, t), t, tt_square(g, t),
                        tt_square(g, tt_sub(g, x, t))};
    tt_reduce_opts all_but_last = {.opts_size = sizeof(all_but_last)};
    for (int i = 0; i + 1 < x->shape.rank; i++)
        all_but_last.axes.axis[all_but_last.axes.n++] = i;
    for (int i = 0; i < 4; i++)
        states[i] = tt_sum_with(g, of[i], &all_but_last);
    *n_states = 4;
    return tt_status_of(tt_graph_get_ctx(g));
}

double tti_r2_finish(const double *const *sums, const int64_t *sizes, int n_states)
{
    double mean = 0;
    (void)n_states;
    for (int64_t i = 0; i < sizes[0]; i++) {
        double n = sums[0][i], all = n > 0 ? sums[2][i] - sums[1][i] * sums[1][i] / n : 0;
        double left = sums[3][i];
        mean += all > 0 ? 1 - left / all : left == 0;
    }
    return sizes[0] == 0 ? 0 : mean / (double)sizes[0];
}

tt_status tti_cosine_build(tt_graph *g, const inputs *in, tt_tensor **states, int *n_states)
{
    tt_tensor *x, *t;
    TT_TRY(numbers_of(g, in, "cosine", &x, &t));
    if (x->shape.rank < 2)
        return tti_metric_refuse(g, in, "cosine");
    return tti_metric_two_sums(g, in, tti_cosine_of(g, x, t), states, n_states);
}
