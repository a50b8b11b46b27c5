/*
 * optimizer.h - updates of weights from a tt_optimizer value; schedules.
 *
 * Gradients come as sums over rows whose seed was 1 / P, P a power of two. update_scale gives the
 * factor that is applied once, after the tree: P / count, times the clip factor; NaN where the step
 * must not be applied, and then an update leaves everything as it is.
 */
#ifndef TUTTI_TRAIN_OPTIMIZER_H
#define TUTTI_TRAIN_OPTIMIZER_H

#include "model/model.h"

typedef tt_tensor *tti_update_fn(tt_graph *g, tt_tensor *var, tt_tensor *grad,
                                 const tt_update_opts *opts);
typedef struct tti_optimizer_def {
    const char *name, *help;
    tt_optimizer_kind kind;
    const tt_option *options; // rows over tt_optimizer, defaults of this kind
    tti_update_fn *build;     // NULL: by optimizer_norm.c
} tti_optimizer_def;
const tti_optimizer_def *tti_optimizer_at(int i); // NULL past the end
const tti_optimizer_def *tti_optimizer_find(const char *name);
const tti_optimizer_def *tti_optimizer_of(tt_optimizer_kind kind); // NULL: there is none
typedef struct tti_schedule_def {
    const char *name, *help;
    tt_schedule_kind kind;
    const tt_option *options; // rows over tt_schedule
} tti_schedule_def;
const tti_schedule_def *tti_schedule_at(int i);
const tti_schedule_def *tti_schedule_find(const char *name);
// Refuses the text of a piecewise schedule that cannot be read.
tt_status tti_schedule_check_pieces(tt_ctx *ctx, const tt_schedule *s) TTI_CHECKED;

// Zero fields of a program's value become the kind's defaults; bounds are checked.
/*
 * An optimizer with all that it points to. read copies one that a program gave, NULL being sgd;
 * fill sets defaults and checks.
 */
typedef struct tti_rule {
    tt_optimizer o; // its schedule and groups are those below
    tt_schedule schedule;
    tt_group groups[TT_MAX_GROUPS];
    int n_groups;
} tti_rule;
tt_status tti_rule_read(tt_ctx *ctx, const tt_optimizer *given, tti_rule *out) TTI_CHECKED;
tt_status tti_rule_fill(tt_ctx *ctx, tti_rule *r) TTI_CHECKED;

// The state of a loss scale: powers of two from 1, at first 2^15; steps in a row that were applied.
typedef struct tti_loss_scale {
    tt_tensor *scale, *good;
} tti_loss_scale;
tt_status tti_loss_scale_make(tt_graph *g, tti_loss_scale *out) TTI_CHECKED;

typedef struct tti_updates_request {
    const tt_optimizer *optimizer; // filled
    int n;
    const char *const *names; // of the weights
    const double *scales;     // of each: factor on the learning rate; NULL: 1
    tt_tensor *const *vars;
    tt_tensor *const *grads; // sums over the batch, seed 1 / P; NULL: the weight is not used
    tt_tensor *loss_sum, *count, *p; // scalars: sum of terms, terms that count, P
    bool guard;                      // a loss or norm that is not finite: the step is not applied
    // With guard: nor is one with a gradient that is not finite, or so large that the update would
    // not be.
    bool guard_gradients;
    tt_tensor *const *others; // with guard_gradients: what else the step writes to variables
    int n_others;
    /*
     * f16: the variables of a loss scale, by which the seed was multiplied too; NULL: none. A step
     * with a loss or gradients that are not finite is never applied then.
     */
    const tti_loss_scale *loss_scale;
    // out:
    tt_tensor **updates; // room for 2 n + 1: one per weight with a gradient, and one per average
    int n_updates;
    tt_tensor *norm;       // global norm of the gradients; NULL without clip_global
    tt_tensor *applied;    // scalar: 1, or NaN where the step was not applied
    tt_tensor *used_scale; // the loss scale of this step; NULL without one
    // By weight, then by others, unless NULL: numbers that are not finite where a gradient is not,
    // f32 magnitudes or one f64 sum of squares; NULL: it is not looked at.
    tt_tensor **checks;
} tti_updates_request;
// Builds clipping, updates and moving averages ("<weight>/ema").
tt_status tti_updates_build(tt_graph *g, tti_updates_request *r) TTI_CHECKED;

// optimizer_norm.c: the update of lamb and lars; opts are those of every update.
tt_tensor *tti_update_by_norm(tt_graph *g, const tt_optimizer *o, tt_tensor *var, tt_tensor *grad,
                              const tt_update_opts *opts, tt_tensor *applied);
// The gradient with that of l1 |w| added; *scale is applied to it, and becomes `applied`.
tt_tensor *tti_penalised(tt_graph *g, tt_tensor *var, tt_tensor *grad, double l1,
                         tt_tensor *applied, tt_tensor **scale);
// Writes what the group's constraints make of a new value of the variable.
tt_tensor *tti_constrained(tt_graph *g, tt_tensor *var, tt_tensor *value, const tt_group *group);

// The learning rate at a step, rounded once: lr * schedule * factor.
float tti_learning_rate(const tt_optimizer *o, int64_t step, int64_t total, double factor);

#endif
