/*
 * loss.h - losses as graph nodes, and metrics as sums that can be merged.
 */
#ifndef TUTTI_TRAIN_LOSS_H
#define TUTTI_TRAIN_LOSS_H

#include "model/model.h"

// Shape and type of the target that a loss wants for an output [batch, ...]; dense: probabilities.
tt_status tti_loss_target(tt_ctx *ctx, const tt_loss *l, const tt_tensor *output, bool dense,
                          tt_shape *shape, tt_dtype *dtype) TTI_CHECKED;

// The terms of a loss.
typedef struct tti_loss_terms {
    tt_tensor *sum;    // of all terms: a lane sum, scalar
    tt_tensor *count;  // of the terms that count, scalar, a lane sum; NULL: all of them, always
    int64_t per_row;   // terms per row of the batch
    tt_tensor *logits; // what the loss was taken of: before a softmax or sigmoid written last
    bool is_weighted;  // sum and count are of weights
} tti_loss_terms;
/*
 * Builds the loss of an output and its target. A softmax (cross entropy) or sigmoid (binary cross
 * entropy) that made the output is passed by, so both ways of writing give the same bits. The
 * loss's weight is left to the caller.
 */
tt_status tti_loss_build(tt_graph *g, const tt_loss *l, tt_tensor *output, tt_tensor *target,
                         tti_loss_terms *out) TTI_CHECKED;
// The same with one weight per record, [batch]; NULL: none.
tt_status tti_loss_build_weighted(tt_graph *g, const tt_loss *l, tt_tensor *output,
                                  tt_tensor *target, tt_tensor *sample_weight,
                                  tti_loss_terms *out) TTI_CHECKED;
// 1 where a label counts, 0 where it is the ignored one; f32, as the target is. l->has_ignore.
tt_tensor *tti_loss_mask(tt_graph *g, const tt_loss *l, tt_tensor *target);

// loss_terms.c: terms by element, by row or record, and of labels; z and t have the loss's type.
tt_tensor *tti_element_terms(tt_graph *g, const tt_loss *l, tt_tensor *z, tt_tensor *t);
tt_tensor *tti_row_terms(tt_graph *g, const tt_loss *l, tt_tensor *z, tt_tensor *t);
tt_tensor *tti_label_terms(tt_graph *g, const tt_loss *l, tt_tensor *z, tt_tensor *t);
tt_tensor *tti_cosine_of(tt_graph *g, tt_tensor *x, tt_tensor *t); // per row
// loss_weight.c: the weights of n classes; refuses what is not one of them.
tt_status tti_class_weights(tt_ctx *ctx, const tt_loss *l, const char *output, int64_t n,
                            float *out) TTI_CHECKED;
// Multiplies the terms by their weights; *count becomes the sum of these.
tt_status tti_loss_weigh(tt_graph *g, const tt_loss *l, const tt_tensor *z, tt_tensor *target,
                         tt_tensor *sample_weight, tt_tensor **terms,
                         tt_tensor **count) TTI_CHECKED;

// ---- metrics ---------------------------------------------------------------------------------

#define TTI_MAX_STATES TT_MAX_STATES
// What a metric may use.
typedef struct tti_metric_inputs {
    tt_tensor *output, *logits, *target;
    const tt_loss *loss;
    tti_loss_terms terms;
    int top_k, thresholds;
    double threshold;
} tti_metric_inputs;
/*
 * A metric: states are lane sums (scalars, or one number per class), added over steps and devices;
 * finish() makes the value of the sums. sums[i] has the elements of state i.
 */
typedef struct tti_metric_def {
    const char *name, *help;
    tt_metric_kind bit;
    tt_status (*build)(tt_graph *g, const tti_metric_inputs *in, tt_tensor **states, int *n_states);
    double (*finish)(const double *const *sums, const int64_t *sizes, int n_states);
    // The table behind it, n numbers of it at most; returns how many it has. NULL: none.
    int64_t (*table)(const double *const *sums, const int64_t *sizes, double *out, int64_t n);
    bool is_lower_better;
    bool is_large; // its sums may be more than a checkpoint keeps
} tti_metric_def;
const tti_metric_def *tti_metric_at(int i); // NULL past the end
const tti_metric_def *tti_metric_find(const char *name);

// A metric of a compiled model: built in, or the program's own (own_metric.c).
typedef struct tti_metric {
    const char *name;
    const tti_metric_def *def; // NULL: own
    const tt_metric *own;      // NULL: built in
    int loss;                  // whose output and target it is of
    int n_states;
} tti_metric;
// Refuses own metrics that lack something, or whose names
// something else has.
tt_status tti_own_metrics_check(tt_ctx *ctx, const tt_metric *own, int n) TTI_CHECKED;
// Builds the states; m->n_states becomes their number, and must be that of the graph before.
tt_status tti_metric_build(tt_graph *g, tti_metric *m, const tti_metric_inputs *in,
                           tt_tensor *states[TTI_MAX_STATES]) TTI_CHECKED;
// Fails where the sums with those of this metric, n numbers, are more than a checkpoint keeps.
tt_status tti_metric_check_size(tt_ctx *ctx, const tti_metric *m, int64_t n) TTI_CHECKED;
double tti_metric_value(const tti_metric *m, const double *const *sums, const int64_t *sizes);
// Is a higher value of the metric with this name better?
bool tti_metric_rises(const tti_metric *metrics, int n, const char *name);

bool tti_loss_has_labels(tt_loss_kind kind);  // is the target a class number?
bool tti_loss_has_classes(tt_loss_kind kind); // is the last axis of the output one of classes?
int tti_loss_at(int i);                       // the i-th kind that a job can name; -1 past the end
// Words of job files: "cross_entropy", ...; -1 if unknown.
int tti_loss_find(const char *name);
const char *tti_loss_name(tt_loss_kind kind);
const char *tti_loss_help(tt_loss_kind kind); // one line; NULL: no job names it
extern const tt_option tti_loss_options[];    // rows over tt_loss: weight, smoothing, ignore, ...
bool tti_loss_takes(const char *kind, const char *row); // is the row one of this kind?
// Sets a row from text, as tti_option_set(); ignore sets has_ignore too.
tt_status tti_loss_set(tt_ctx *ctx, tt_loss *l, const char *where, const char *name,
                       const char *value) TTI_CHECKED;

#endif
