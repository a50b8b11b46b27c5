/*
 * metric_curve.c - metrics from whole numbers: how many outputs fall between two thresholds, or on
 * which class.
 *
 *   auc       of each class against the others: the part of all pairs of a target that is of the
 *             class and one that is not, in which the first has the higher probability. Those
 *             whose probabilities fall between the same two of the thresholds k / T count half: so
 *             the value is that of probabilities rounded down to k / T, and differs from the exact
 *             one by at most half the part of such pairs
 *   auc_pr    the average precision of the same counts: the sum over thresholds, from the highest,
 *             of precision times what recall has grown by
 *   calibration_error   15 bins of the probability of the guess (binary: of a 1); the mean over all
 *             of |part that is right - mean probability| of a bin
 *   confusion the part of all targets that is guessed as another class
 * Two classes are one against the other; the value of more is the mean over those that have both
 * kinds of targets. Counts are exact up to 2^24 in a batch, and without bound over batches.
 */
#include "train/metric.h"
#include <math.h>

#define BINS 15

typedef tti_metric_inputs inputs;

// Numbers 0 to n - 1 from the fractions 0 to 1, as i32.
static tt_tensor *bins_of(tt_graph *g, tt_tensor *p, int n)
{
    return tt_cast(g, tt_clip(g, tt_scale(g, p, n, 0), 0, n - 0.5), TT_I32);
}

/*
 * What is rated: the probabilities [..., n] of n classes, and which of them are true, f32. Of two
 * classes only the second.
 */
static tt_status rated(tt_graph *g, const inputs *in, const char *metric, tt_tensor **p,
                       tt_tensor **is_true)
{
    tt_tensor *z = tti_metric_f32(g, in->logits);
    if (tti_metric_has_classes(in)) {
        int last = z == NULL ? 0 : z->shape.rank - 1;
        int64_t n = z == NULL ? 0 : z->shape.dim[last];
        tt_tensor *labels = tti_metric_labels(g, in);
        *p = tt_softmax(g, z);
        if (labels != NULL && in->loss->has_ignore) // an ignored label may be no class
            labels = tt_where(g, tt_cast(g, tti_loss_mask(g, in->loss, labels), TT_BOOL), labels,
                              tt_fill(g, labels->dtype, TT_SCALAR, 0));
        *is_true = tt_one_hot(g, labels, n, TT_F32);
        if (n == 2) {
            *p = tt_slice(g, *p, last, 1, 2);
            *is_true = tt_slice(g, *is_true, last, 1, 2);
        }
        return tt_status_of(tt_graph_get_ctx(g));
    }
    if (!tti_metric_is_binary(in))
        return tti_metric_refuse(g, in, metric);
    *p = tt_sigmoid(g, z);
    *is_true = tti_metric_f32(g, tti_metric_binary_target(g, in));
    if (*p != NULL && (*p)->shape.rank == 1) {
        *p = tt_expand_dims(g, *p, -1);
        *is_true = tt_expand_dims(g, *is_true, -1);
    }
    return tt_status_of(tt_graph_get_ctx(g));
}

// The loss's mask as [..., 1]; NULL: all count.
static tt_tensor *mask_of(tt_graph *g, const inputs *in)
{
    return in->loss->has_ignore ? tt_expand_dims(g, tti_loss_mask(g, in->loss, in->target), -1)
                                : NULL;
}

// The sum over all axes but the last.
static tt_tensor *by_class(tt_graph *g, tt_tensor *x)
{
    tt_reduce_opts all_but_last = {.opts_size = sizeof(all_but_last)};
    for (int i = 0; x != NULL && i + 1 < x->shape.rank; i++)
        all_but_last.axes.axis[all_but_last.axes.n++] = i;
    return x == NULL ? NULL : tt_sum_with(g, x, &all_but_last);
}

// ---- areas -----------------------------------------------------------------------------------

// States: by class and threshold how many that are true, and that are not; by class how many are.
tt_status tti_auc_build(tt_graph *g, const inputs *in, tt_tensor **states, int *n_states)
{
    tt_ctx *ctx = tt_graph_get_ctx(g);
    tt_tensor *p = NULL, *yes = NULL;
    int steps = in->thresholds;
    TT_TRY(rated(g, in, "auc", &p, &yes));
    int64_t n = p->shape.dim[p->shape.rank - 1];
    float *first = tti_calloc(ctx, (size_t)n, sizeof(*first));
    if (first == NULL)
        return TT_ENOMEM;
    for (int64_t i = 0; i < n; i++)
        first[i] = (float)(i * steps);
    tt_tensor *offset = tt_const(g, TT_F32, TT_SHAPE(n), first);
    tti_free(ctx, first);
    tt_tensor *at = tti_metric_f32(g, bins_of(g, p, steps));
    at = tt_cast(g, tt_add(g, at, offset), TT_I32);
    tt_tensor *no = tt_scale(g, yes, -1, 1), *mask = mask_of(g, in);
    if (mask != NULL) {
        yes = tt_mul(g, yes, mask);
        no = tt_mul(g, no, mask);
    }
    states[0] = tt_scatter_add(g, yes, at, n * steps);
    states[1] = tt_scatter_add(g, no, at, n * steps);
    states[2] = by_class(g, yes);
    *n_states = 3;
    return tt_status_of(ctx);
}

typedef struct curve {
    const double *yes, *no; // by threshold
    int64_t steps;
    double n_yes, n_no;
} curve;

static curve curve_of(const double *const *sums, const int64_t *sizes, int64_t i)
{
    curve c = {.steps = sizes[0] / sizes[2]};
    c.yes = sums[0] + i * c.steps;
    c.no = sums[1] + i * c.steps;
    for (int64_t k = 0; k < c.steps; k++) {
        c.n_yes += c.yes[k];
        c.n_no += c.no[k];
    }
    return c;
}

static double area(const curve *c)
{
    double pairs = 0, below = 0;
    for (int64_t k = 0; k < c->steps; k++) {
        pairs += c->yes[k] * (below + c->no[k] / 2);
        below += c->no[k];
    }
    return pairs / (c->n_yes * c->n_no);
}

static double average_precision(const curve *c)
{
    double y = 0, right = 0, all = 0;
    for (int64_t k = c->steps - 1; k >= 0; k--) {
        right += c->yes[k];
        all += c->yes[k] + c->no[k];
        if (c->yes[k] > 0)
            y += c->yes[k] / c->n_yes * (right / all);
    }
    return y;
}

static double mean_of(const double *const *sums, const int64_t *sizes, double (*fn)(const curve *))
{
    double sum = 0, n = 0;
    for (int64_t i = 0; i < sizes[2]; i++) {
        curve c = curve_of(sums, sizes, i);
        if (c.n_yes == 0 || c.n_no == 0)
            continue;
        sum += fn(&c);
        n++;
    }
    return n == 0 ? 0 : sum / n;
}

double tti_auc_finish(const double *const *sums, const int64_t *sizes, int n_states)
{
    (void)n_states;
    return mean_of(sums, sizes, area);
}

double tti_auc_pr_finish(const double *const *sums, const int64_t *sizes, int n_states)
{
    (void)n_states;
    return mean_of(sums, sizes, average_precision);
}

// Both numbers of a point of the curve: what is guessed to be true from threshold k on.
static void point(const curve *c, int64_t k, bool is_pr, double out[2])
{
    double yes = 0, no = 0;
    for (; k < c->steps; k++) {
        yes += c->yes[k];
        no += c->no[k];
    }
    double recall = c->n_yes > 0 ? yes / c->n_yes : 0;
    out[0] = is_pr ? recall : c->n_no > 0 ? no / c->n_no : 0;
    out[1] = !is_pr ? recall : yes + no > 0 ? yes / (yes + no) : 1;
}

static int64_t curve_table(const double *const *sums, const int64_t *sizes, bool is_pr, double *out,
                           int64_t n)
{
    int64_t steps = sizes[0] / sizes[2];
    for (int64_t i = 0; i < sizes[2]; i++) {
        curve c = curve_of(sums, sizes, i);
        for (int64_t k = 0; k < steps; k++) {
            double both[2];
            int64_t at = 2 * (i * steps + k);
            point(&c, k, is_pr, both);
            for (int q = 0; q < 2 && at + q < n; q++)
                out[at + q] = both[q];
        }
    }
    return 2 * sizes[0];
}

int64_t tti_auc_table(const double *const *sums, const int64_t *sizes, double *out, int64_t n)
{
    return curve_table(sums, sizes, false, out, n);
}

int64_t tti_auc_pr_table(const double *const *sums, const int64_t *sizes, double *out, int64_t n)
{
    return curve_table(sums, sizes, true, out, n);
}

// ---- calibration -----------------------------------------------------------------------------

// States, by bin: sums of probabilities, how many are right, how many there are.
tt_status tti_calibration_build(tt_graph *g, const inputs *in, tt_tensor **states, int *n_states)
{
    tt_tensor *p, *right;
    if (tti_metric_has_classes(in)) {
        tt_tensor *rank = tt_label_rank(g, in->logits, tti_metric_labels(g, in));
        right = tti_metric_f32(g, tt_less(g, rank, tt_fill(g, TT_I32, TT_SCALAR, 1)));
        p = tt_max(g, tt_softmax(g, tti_metric_f32(g, in->logits)), .axis = -1);
    } else if (tti_metric_is_binary(in)) {
        p = tt_sigmoid(g, tti_metric_f32(g, in->logits));
        right = tti_metric_f32(g, tti_metric_binary_target(g, in));
    } else {
        return tti_metric_refuse(g, in, "calibration_error");
    }
    tt_tensor *at = bins_of(g, p, BINS), *ones = tti_metric_ones(g, in, p);
    states[0] = tt_scatter_add(g, tt_mul(g, p, ones), at, BINS);
    states[1] = tt_scatter_add(g, tt_mul(g, right, ones), at, BINS);
    states[2] = tt_scatter_add(g, ones, at, BINS);
    *n_states = 3;
    return tt_status_of(tt_graph_get_ctx(g));
}

double tti_calibration_finish(const double *const *sums, const int64_t *sizes, int n_states)
{
    double error = 0, count = 0;
    (void)n_states;
    for (int64_t i = 0; i < sizes[0]; i++) {
        error += fabs(sums[1][i] - sums[0][i]);
        count += sums[2][i];
    }
    return count == 0 ? 0 : error / count;
}

// ---- confusion -------------------------------------------------------------------------------

// The state: by class and guess how many targets there are. Binary: two classes.
tt_status tti_confusion_build(tt_graph *g, const inputs *in, tt_tensor **states, int *n_states)
{
    tt_tensor *label, *guess;
    int64_t n = 2;
    if (tti_metric_has_classes(in)) {
        n = in->logits->shape.dim[in->logits->shape.rank - 1];
        label = tti_metric_f32(g, tti_metric_labels(g, in));
        guess = tti_metric_f32(g, tt_argmax(g, in->logits, -1));
    } else if (tti_metric_is_binary(in)) {
        label = tti_metric_f32(g, tti_metric_binary_target(g, in));
        guess = tti_metric_f32(g, tti_metric_binary_guess(g, in));
    } else {
        return tti_metric_refuse(g, in, "confusion");
    }
    tt_tensor *ones = tti_metric_ones(g, in, guess);
    if (in->loss->has_ignore && label != NULL) // an ignored label may be no class
        label = tt_mul(g, label, ones);
    tt_tensor *at = tt_add(g, tt_scale(g, label, (double)n, 0), guess);
    states[0] = tt_scatter_add(g, ones, tt_cast(g, at, TT_I32), n * n);
    *n_states = 1;
    return tt_status_of(tt_graph_get_ctx(g));
}

double tti_confusion_finish(const double *const *sums, const int64_t *sizes, int n_states)
{
    int64_t n = (int64_t)(sqrt((double)sizes[0]) + 0.5);
    double all = 0, right = 0;
    (void)n_states;
    for (int64_t i = 0; i < sizes[0]; i++)
        all += sums[0][i];
    for (int64_t i = 0; i < n; i++)
        right += sums[0][i * n + i];
    return all == 0 ? 0 : (all - right) / all;
}

int64_t tti_confusion_table(const double *const *sums, const int64_t *sizes, double *out, int64_t n)
{
    for (int64_t i = 0; i < sizes[0] && i < n; i++)
        out[i] = sums[0][i];
    return sizes[0];
}
