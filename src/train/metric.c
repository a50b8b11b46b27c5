/*
 * metric.c - metrics: sums over rows that are added over lanes, steps and devices, and one number
 * made of them at the end. Targets that the loss ignores are in no sum.
 *
 *   accuracy       a label is the first of its row (ties: the lowest index); of binary targets the
 *                  logit and 1/2 are on the same side: z > 0 where t > 1/2
 *   top_k          fewer than k classes come before the label
 *   precision, recall, f1   from right, predicted and actual counts: one class, with one logit, or
 *                  each; the mean over classes that were predicted or actual
 *   iou            right / (predicted + actual - right), as f1
 *   perplexity     e^(loss sum / count); bits_per_byte: loss sum / count / log 2
 * Others are in metric_number.c and metric_curve.c.
 */
#include "train/metric.h"
#include "op/op.h"
#include "train/scalar.h"
#include <math.h>
#include <string.h>

typedef tti_metric_inputs inputs;

tt_status tti_metric_refuse(tt_graph *g, const inputs *in, const char *metric)
{
    return TT_FAIL(tt_graph_get_ctx(g), TT_EINVAL, "the metric %s cannot be used with the loss %s",
                   metric, tti_loss_name(in->loss->kind));
}

tt_tensor *tti_metric_f32(tt_graph *g, tt_tensor *x)
{
    return x == NULL ? NULL : tt_cast(g, x, TT_F32);
}

// 1 for each element that counts: ones, or the loss's mask. like: an element each.
tt_tensor *tti_metric_ones(tt_graph *g, const inputs *in, tt_tensor *like)
{
    if (in->loss->has_ignore)
        return tti_loss_mask(g, in->loss, in->target);
    return like == NULL ? NULL : tt_broadcast(g, tt_scalar(g, 1), like);
}

// Sums of what holds, and of what counts.
tt_status tti_metric_two_sums(tt_graph *g, const inputs *in, tt_tensor *what, tt_tensor **states,
                              int *n_states)
{
    what = tti_metric_f32(g, what);
    tt_tensor *mask = tti_metric_ones(g, in, what);
    states[0] = tt_sum(g, in->loss->has_ignore ? tt_mul(g, what, mask) : what);
    states[1] = tt_sum(g, mask);
    *n_states = 2;
    return tt_status_of(tt_graph_get_ctx(g));
}

double tti_metric_ratio(const double *const *sums, const int64_t *sizes, int n_states)
{
    (void)sizes;
    (void)n_states;
    return sums[1][0] == 0 ? 0 : sums[0][0] / sums[1][0];
}

// ---- classes ---------------------------------------------------------------------------------

// Labels as integers: of probabilities the likeliest.
tt_tensor *tti_metric_labels(tt_graph *g, const inputs *in)
{
    tt_tensor *t = in->target;
    return tti_is_float(t->dtype) ? tt_argmax(g, t, -1) : t;
}

// Is the target a class of the output's last axis? Of a custom loss its type and shape say so.
bool tti_metric_has_classes(const inputs *in)
{
    bool is_label =
        !tti_is_float(in->target->dtype) && in->target->shape.rank + 1 == in->logits->shape.rank;
    return tti_loss_has_classes(in->loss->kind) || (in->loss->kind == TT_CUSTOM_LOSS && is_label);
}

// In [..., 1] against a target [...], both seen as [..., 1].
tt_tensor *tti_metric_binary_target(tt_graph *g, const inputs *in)
{
    tt_tensor *t = in->target;
    if (t->shape.rank + 1 == in->logits->shape.rank)
        t = tt_expand_dims(g, t, -1);
    return tt_greater(g, tti_metric_f32(g, t), tt_scalar(g, 0.5));
}

tt_tensor *tti_metric_binary_guess(tt_graph *g, const inputs *in)
{
    double p = in->threshold, z = 0; // the logit of the threshold
    if (p > 0 && p != 0.5 && in->loss->kind != TT_HINGE && in->loss->kind != TT_SQUARED_HINGE)
        z = tti_scalar_log(p / (1 - p));
    return tt_greater(g, in->logits, tt_fill(g, in->logits->dtype, TT_SCALAR, z));
}

static tt_tensor *rank_below(tt_graph *g, const inputs *in, int k)
{
    tt_tensor *rank = tt_label_rank(g, in->logits, tti_metric_labels(g, in));
    return tt_less(g, rank, tt_fill(g, TT_I32, TT_SCALAR, k));
}

// Are the elements of the target 0 and 1 (or -1 and 1), and those of the output logits?
bool tti_metric_is_binary(const inputs *in)
{
    tt_loss_kind kind = in->loss->kind;
    return kind == TT_BINARY_CROSS_ENTROPY || kind == TT_BINARY_FOCAL || kind == TT_HINGE ||
           kind == TT_SQUARED_HINGE || (kind == TT_DICE && in->logits->node->op != &tti_op_softmax);
}

static tt_status accuracy_build(tt_graph *g, const inputs *in, tt_tensor **states, int *n_states)
{
    if (tti_metric_has_classes(in))
        return tti_metric_two_sums(g, in, rank_below(g, in, 1), states, n_states);
    if (!tti_metric_is_binary(in))
        return tti_metric_refuse(g, in, "accuracy");
    return tti_metric_two_sums(
        g, in, tt_equal(g, tti_metric_binary_guess(g, in), tti_metric_binary_target(g, in)), states,
        n_states);
}

static tt_status top_k_build(tt_graph *g, const inputs *in, tt_tensor **states, int *n_states)
{
    if (!tti_metric_has_classes(in))
        return tti_metric_refuse(g, in, "top_k");
    if (in->top_k < 1)
        return TT_FAIL(tt_graph_get_ctx(g), TT_EINVAL, "top_k: k is %d; it must be at least 1",
                       in->top_k);
    return tti_metric_two_sums(g, in, rank_below(g, in, in->top_k), states, n_states);
}

/*
 * States: per class how often it was right, predicted, actual. Binary targets: the last axis are
 * classes of their own.
 */
static tt_status binary_counts(tt_graph *g, const inputs *in, tt_tensor **states)
{
    tt_tensor *guess = tti_metric_f32(g, tti_metric_binary_guess(g, in)),
              *actual = tti_metric_f32(g, tti_metric_binary_target(g, in));
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
    tt_tensor *labels = tt_cast(g, tti_metric_labels(g, in), TT_I32),
              *guess = tt_argmax(g, in->logits, -1);
    tt_tensor *mask = tti_metric_ones(g, in, guess);
    if (mask == NULL)
        return tt_status_of(tt_graph_get_ctx(g));
    if (in->loss->has_ignore) // an ignored label may be no class
        labels = tt_where(g, tt_cast(g, mask, TT_BOOL), labels, tt_fill(g, TT_I32, TT_SCALAR, 0));
    tt_tensor *right = tt_mul(g, tti_metric_f32(g, tt_equal(g, labels, guess)), mask);
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
    return tti_metric_is_binary(in) ? binary_counts(g, in, states)
                                    : tti_metric_refuse(g, in, "precision, recall, f1 or iou");
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
static double iou_of(double right, double predicted, double actual)
{
    return right / (predicted + actual - right);
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

// The value of each class; NaN of one that does not occur.
static int64_t by_class(const double *const *sums, int64_t n_classes, class_fn *fn, double *out,
                        int64_t n)
{
    for (int64_t i = 0; i < n_classes && i < n; i++)
        out[i] = sums[1][i] + sums[2][i] == 0 ? NAN : fn(sums[0][i], sums[1][i], sums[2][i]);
    return n_classes;
}

#define CLASS_FINISH(name_)                                                                     \
    static double name_##_finish(const double *const *sums, const int64_t *sizes, int n_states) \
    {                                                                                           \
        (void)n_states;                                                                         \
        return mean_of(sums, sizes[0], name_##_of);                                             \
    }                                                                                           \
    static int64_t name_##_table(const double *const *sums, const int64_t *sizes, double *out,  \
                                 int64_t n)                                                     \
    {                                                                                           \
        return by_class(sums, sizes[0], name_##_of, out, n);                                    \
    }
CLASS_FINISH(precision)
CLASS_FINISH(recall)
CLASS_FINISH(f1)
CLASS_FINISH(iou)

// ---- numbers ---------------------------------------------------------------------------------

static tt_status perplexity_build(tt_graph *g, const inputs *in, tt_tensor **states, int *n_states)
{
    if (in->loss->kind != TT_CROSS_ENTROPY)
        return tti_metric_refuse(g, in, "perplexity");
    tt_tensor *labels = tti_metric_labels(g, in);
    states[0] = in->terms.sum;
    states[1] =
        in->terms.count != NULL ? in->terms.count : tt_sum(g, tti_metric_ones(g, in, labels));
    *n_states = 2;
    return tt_status_of(tt_graph_get_ctx(g));
}

static double perplexity_finish(const double *const *sums, const int64_t *sizes, int n_states)
{
    return tti_scalar_exp(tti_metric_ratio(sums, sizes, n_states));
}

// ---- the list --------------------------------------------------------------------------------

static double bits_finish(const double *const *sums, const int64_t *sizes, int n_states)
{
    return tti_metric_ratio(sums, sizes, n_states) / 0.69314718055994530942;
}

#define LOWER .is_lower_better = true
static const tti_metric_def metrics[] = {
    {"accuracy", "fraction of targets predicted first", TT_ACCURACY, accuracy_build,
     tti_metric_ratio, .table = NULL},
    {"top_k", "fraction of targets among the k most probable predictions", TT_TOP_K, top_k_build,
     tti_metric_ratio, .table = NULL},
    {"precision", "fraction of positive predictions that are correct", TT_PRECISION, counts_build,
     precision_finish, .table = precision_table},
    {"recall", "fraction of positive targets that are found", TT_RECALL, counts_build,
     recall_finish, .table = recall_table},
    {"f1", "harmonic mean of precision and recall", TT_F1, counts_build, f1_finish,
     .table = f1_table},
    {"mse", "mean squared error", TT_METRIC_MSE, tti_mse_build, tti_metric_ratio, LOWER},
    {"mae", "mean absolute error", TT_METRIC_MAE, tti_mae_build, tti_metric_ratio, LOWER},
    {"perplexity", "exp of the mean cross entropy", TT_PERPLEXITY, perplexity_build,
     perplexity_finish, LOWER},
    {"auc", "area under the ROC curve, from counts at thresholds (train.thresholds)", TT_AUC,
     tti_auc_build, tti_auc_finish, .table = tti_auc_table, .is_large = true},
    {"auc_pr", "area under the precision-recall curve: the average precision", TT_AUC_PR,
     tti_auc_build, tti_auc_pr_finish, .table = tti_auc_pr_table, .is_large = true},
    {"iou", "intersection over union of predicted and actual, mean over classes", TT_IOU,
     counts_build, iou_finish, .table = iou_table},
    {"rmse", "root of the mean squared error", TT_RMSE, tti_mse_build, tti_rmse_finish, LOWER},
    {"r2", "fraction of the target's variance that is explained", TT_R2, tti_r2_build,
     tti_r2_finish, .table = NULL},
    {"mape", "mean absolute error in percent of the target", TT_METRIC_MAPE, tti_mape_build,
     tti_metric_ratio, LOWER},
    {"cosine", "mean cosine of the angle between output and target", TT_METRIC_COSINE,
     tti_cosine_build, tti_metric_ratio, .table = NULL},
    {"bits_per_byte", "cross entropy in bits per target, a byte or other symbol", TT_BITS_PER_BYTE,
     perplexity_build, bits_finish, LOWER},
    {"calibration_error", "difference of probability and accuracy, mean over 15 bins",
     TT_CALIBRATION_ERROR, tti_calibration_build, tti_calibration_finish, LOWER},
    {"confusion", "fraction of targets predicted as another class; its table is the matrix",
     TT_CONFUSION, tti_confusion_build, tti_confusion_finish, .table = tti_confusion_table,
     .is_large = true, LOWER},
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
