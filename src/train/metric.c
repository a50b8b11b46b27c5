/*
 * metric.c - metrics: sums over rows that are added over lanes, steps and devices, and one number
 * made of them at the end. Targets that the loss ignores are in no sum.
 *
 *   accuracy       a label is the first of its row (ties: the lowest index); of binary targets the
 *                  logit and 1/2 are on the same side: z > 0 where t > 1/2
 *   top_k          fewer than k classes come before the label
 *   precision, recall, f1   from right, predicted and actual counts: one class, with one logit, or
 *                  each; the mean over classes that were predicted or actual
 *   mse, mae       of the output (of a binary cross entropy: its sigmoid)
 *   perplexity     e^(loss sum / count)
 */
#include "op/op.h"
#include "train/loss.h"
#include "train/scalar.h"
#include <string.h>

typedef tti_metric_inputs inputs;

static tt_status refuse(tt_graph *g, const inputs *in, const char *metric)
{
    return TT_FAIL(tt_graph_get_ctx(g), TT_EINVAL, "the metric %s cannot be used with the loss %s",
                   metric, tti_loss_name(in->loss->kind));
}

static tt_tensor *as_f32(tt_graph *g, tt_tensor *x)
{
    return x == NULL ? NULL : tt_cast(g, x, TT_F32);
}

// 1 for each element that counts: ones, or the loss's mask. like: an element each.
static tt_tensor *ones(tt_graph *g, const inputs *in, tt_tensor *like)
{
    if (in->loss->has_ignore)
        return tti_loss_mask(g, in->loss, in->target);
    return like == NULL ? NULL : tt_broadcast(g, tt_scalar(g, 1), like);
}

// Sums of what holds, and of what counts.
static tt_status two_sums(tt_graph *g, const inputs *in, tt_tensor *what, tt_tensor **states,
                          int *n_states)
{
    what = as_f32(g, what);
    tt_tensor *mask = ones(g, in, what);
    states[0] = tt_sum(g, in->loss->has_ignore ? tt_mul(g, what, mask) : what);
    states[1] = tt_sum(g, mask);
    *n_states = 2;
    return tt_status_of(tt_graph_get_ctx(g));
}

static double ratio(const double *const *sums, const int64_t *sizes, int n_states)
{
    (void)sizes;
    (void)n_states;
    return sums[1][0] == 0 ? 0 : sums[0][0] / sums[1][0];
}

// ---- classes ---------------------------------------------------------------------------------

// Labels as integers: of probabilities the likeliest.
static tt_tensor *labels_of(tt_graph *g, const inputs *in)
{
    tt_tensor *t = in->target;
    return tti_is_float(t->dtype) ? tt_argmax(g, t, -1) : t;
}

// Is the target a class of the output's last axis? Of a custom loss its type and shape say so.
static bool has_classes(const inputs *in)
{
    bool is_label =
        !tti_is_float(in->target->dtype) && in->target->shape.rank + 1 == in->logits->shape.rank;
    return tti_loss_has_classes(in->loss->kind) || (in->loss->kind == TT_CUSTOM_LOSS && is_label);
}

// In [..., 1] against a target [...], both seen as [..., 1].
static tt_tensor *binary_target(tt_graph *g, const inputs *in)
{
    tt_tensor *t = in->target;
    if (t->shape.rank + 1 == in->logits->shape.rank)
        t = tt_expand_dims(g, t, -1);
    return tt_greater(g, as_f32(g, t), tt_scalar(g, 0.5));
}

static tt_tensor *binary_guess(tt_graph *g, const inputs *in)
{
    return tt_greater(g, in->logits, tt_fill(g, in->logits->dtype, TT_SCALAR, 0));
}

static tt_tensor *rank_below(tt_graph *g, const inputs *in, int k)
{
    tt_tensor *rank = tt_label_rank(g, in->logits, labels_of(g, in));
    return tt_less(g, rank, tt_fill(g, TT_I32, TT_SCALAR, k));
}

// Are the elements of the target 0 and 1 (or -1 and 1), and those of the output logits?
static bool is_binary(const inputs *in)
{
    tt_loss_kind kind = in->loss->kind;
    return kind == TT_BINARY_CROSS_ENTROPY || kind == TT_BINARY_FOCAL || kind == TT_HINGE ||
           kind == TT_SQUARED_HINGE || (kind == TT_DICE && in->logits->node->op != &tti_op_softmax);
}

static tt_status accuracy_build(tt_graph *g, const inputs *in, tt_tensor **states, int *n_states)
{
    if (has_classes(in))
        return two_sums(g, in, rank_below(g, in, 1), states, n_states);
    if (!is_binary(in))
        return refuse(g, in, "accuracy");
    return two_sums(g, in, tt_equal(g, binary_guess(g, in), binary_target(g, in)), states,
                    n_states);
}

static tt_status top_k_build(tt_graph *g, const inputs *in, tt_tensor **states, int *n_states)
{
    if (!has_classes(in))
        return refuse(g, in, "top_k");
    if (in->top_k < 1)
        return TT_FAIL(tt_graph_get_ctx(g), TT_EINVAL, "top_k: k is %d; it must be at least 1",
                       in->top_k);
    return two_sums(g, in, rank_below(g, in, in->top_k), states, n_states);
}

/*
 * States: per class how often it was right, predicted, actual. Binary targets: the last axis are
 * classes of their own.
 */
static tt_status binary_counts(tt_graph *g, const inputs *in, tt_tensor **states)
{
    tt_tensor *guess = as_f32(g, binary_guess(g, in)), *actual = as_f32(g, binary_target(g, in));
    tt_tensor *of[3] = {tt_mul(g, guess, actual), guess, actual};
    tt_reduce_opts all_but_last = {.opts_size = sizeof(all_but_last)};
    for (int i = 0; i + 1 < in->logits->shape.rank; i++)
        all_but_last.axes.axis[all_but_last.axes.n++] = i;
    for (int i = 0; i < 3; i++)
        states[i] = tt_sum_with(g, of[i], &all_but_last);
    return tt_status_of(tt_graph_get_ctx(g));
}

static tt_status class_counts(tt_graph *g, const inputs *in, tt_tensor **states)
{
    const tt_shape *s = &in->logits->shape;
    tt_tensor *labels = tt_cast(g, labels_of(g, in), TT_I32), *guess = tt_argmax(g, in->logits, -1);
    tt_tensor *mask = ones(g, in, guess);
    if (mask == NULL)
        return tt_status_of(tt_graph_get_ctx(g));
    if (in->loss->has_ignore) // an ignored label may be no class
        labels = tt_where(g, tt_cast(g, mask, TT_BOOL), labels, tt_fill(g, TT_I32, TT_SCALAR, 0));
    tt_tensor *right = tt_mul(g, as_f32(g, tt_equal(g, labels, guess)), mask);
    int64_t n = s->dim[s->rank - 1];
    states[0] = tt_scatter_add(g, right, labels, n);
    states[1] = tt_scatter_add(g, mask, guess, n);
    states[2] = tt_scatter_add(g, mask, labels, n);
    return tt_status_of(tt_graph_get_ctx(g));
}

static tt_status counts_build(tt_graph *g, const inputs *in, tt_tensor **states, int *n_states)
{
    *n_states = 3;
    if (tti_loss_has_classes(in->loss->kind))
        return class_counts(g, in, states);
    return is_binary(in) ? binary_counts(g, in, states) : refuse(g, in, "precision, recall or f1");
}

typedef double class_fn(double right, double predicted, double actual);
static double precision_of(double right, double predicted, double actual)
{
    (void)actual;
    return predicted == 0 ? 0 : right / predicted;
}
static double recall_of(double right, double predicted, double actual)
{
    (void)predicted;
    return actual == 0 ? 0 : right / actual;
}
static double f1_of(double right, double predicted, double actual)
{
    return 2 * right / (predicted + actual);
}

// The mean over classes that occur.
static double mean_of(const double *const *sums, int64_t n, class_fn *fn)
{
    double sum = 0, count = 0;
    for (int64_t i = 0; i < n; i++) {
        if (sums[1][i] + sums[2][i] == 0)
            continue;
        sum += fn(sums[0][i], sums[1][i], sums[2][i]);
        count++;
    }
    return count == 0 ? 0 : sum / count;
}

#define CLASS_FINISH(name_)                                                                     \
    static double name_##_finish(const double *const *sums, const int64_t *sizes, int n_states) \
    {                                                                                           \
        (void)n_states;                                                                         \
        return mean_of(sums, sizes[0], name_##_of);                                             \
    }
CLASS_FINISH(precision)
CLASS_FINISH(recall)
CLASS_FINISH(f1)

// ---- numbers ---------------------------------------------------------------------------------

static tt_status distance_build(tt_graph *g, const inputs *in, bool squared, tt_tensor **states,
                                int *n_states)
{
    tt_tensor *x = in->logits, *t = in->target;
    tt_loss_kind kind = in->loss->kind;
    if (tti_loss_has_classes(kind) || x->shape.rank < t->shape.rank)
        return refuse(g, in, squared ? "mse" : "mae");
    if (is_binary(in) && kind != TT_HINGE && kind != TT_SQUARED_HINGE)
        x = tt_sigmoid(g, x);
    if (t->shape.rank + 1 == x->shape.rank)
        t = tt_expand_dims(g, t, -1);
    tt_tensor *d = tt_sub(g, as_f32(g, x), as_f32(g, t));
    return two_sums(g, in, squared ? tt_square(g, d) : tt_abs(g, d), states, n_states);
}

static tt_status mse_build(tt_graph *g, const inputs *in, tt_tensor **states, int *n_states)
{
    return distance_build(g, in, true, states, n_states);
}

static tt_status mae_build(tt_graph *g, const inputs *in, tt_tensor **states, int *n_states)
{
    return distance_build(g, in, false, states, n_states);
}

static tt_status perplexity_build(tt_graph *g, const inputs *in, tt_tensor **states, int *n_states)
{
    if (in->loss->kind != TT_CROSS_ENTROPY)
        return refuse(g, in, "perplexity");
    tt_tensor *labels = labels_of(g, in);
    states[0] = in->terms.sum;
    states[1] = in->terms.count != NULL ? in->terms.count : tt_sum(g, ones(g, in, labels));
    *n_states = 2;
    return tt_status_of(tt_graph_get_ctx(g));
}

static double perplexity_finish(const double *const *sums, const int64_t *sizes, int n_states)
{
    return tti_scalar_exp(ratio(sums, sizes, n_states));
}

// ---- the list --------------------------------------------------------------------------------

static const tti_metric_def metrics[] = {
    {"accuracy", "fraction of targets predicted first", TT_ACCURACY, accuracy_build, ratio},
    {"top_k", "fraction of targets among the k most probable predictions", TT_TOP_K, top_k_build,
     ratio},
    {"precision", "fraction of positive predictions that are correct", TT_PRECISION, counts_build,
     precision_finish},
    {"recall", "fraction of positive targets that are found", TT_RECALL, counts_build,
     recall_finish},
    {"f1", "harmonic mean of precision and recall", TT_F1, counts_build, f1_finish},
    {"mse", "mean squared error", TT_METRIC_MSE, mse_build, ratio},
    {"mae", "mean absolute error", TT_METRIC_MAE, mae_build, ratio},
    {"perplexity", "exp of the mean cross entropy", TT_PERPLEXITY, perplexity_build,
     perplexity_finish},
};

const tti_metric_def *tti_metric_at(int i)
{
    return i >= 0 && i < TTI_COUNT(metrics) ? &metrics[i] : NULL;
}

const tti_metric_def *tti_metric_find(const char *name)
{
    for (int i = 0; name != NULL && i < TTI_COUNT(metrics); i++)
        if (strcmp(metrics[i].name, name) == 0)
            return &metrics[i];
    return NULL;
}

const char *tt_metric_name(tt_metric_kind one)
{
    for (int i = 0; i < TTI_COUNT(metrics); i++)
        if (metrics[i].bit == one)
            return metrics[i].name;
    return "?";
}
