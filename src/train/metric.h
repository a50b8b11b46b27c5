/*
 * metric.h - what the files of built-in metrics share: metric.c has most, metric_curve.c those from
 * counts at thresholds, metric_number.c those of numbers.
 */
#ifndef TUTTI_TRAIN_METRIC_H
#define TUTTI_TRAIN_METRIC_H

#include "train/loss.h"

typedef tt_status tti_metric_build_fn(tt_graph *g, const tti_metric_inputs *in, tt_tensor **states,
                                      int *n_states);
typedef double tti_metric_finish_fn(const double *const *sums, const int64_t *sizes, int n_states);
typedef int64_t tti_metric_table_fn(const double *const *sums, const int64_t *sizes, double *out,
                                    int64_t n);

tt_status tti_metric_refuse(tt_graph *g, const tti_metric_inputs *in, const char *metric);
tt_tensor *tti_metric_f32(tt_graph *g, tt_tensor *x);
// 1 for each element that counts: ones, or the loss's mask. like: an element each.
tt_tensor *tti_metric_ones(tt_graph *g, const tti_metric_inputs *in, tt_tensor *like);
// Sums of what holds, and of what counts; and one divided by the other, 0 of nothing.
tt_status tti_metric_two_sums(tt_graph *g, const tti_metric_inputs *in, tt_tensor *what,
                              tt_tensor **states, int *n_states);
tti_metric_finish_fn tti_metric_ratio;
// Labels as integers: of probabilities the likeliest.
tt_tensor *tti_metric_labels(tt_graph *g, const tti_metric_inputs *in);
bool tti_metric_has_classes(const tti_metric_inputs *in); // is the target a class?
bool tti_metric_is_binary(const tti_metric_inputs *in);   // or are its elements 0 and 1?
tt_tensor *tti_metric_binary_target(tt_graph *g, const tti_metric_inputs *in); // bool
tt_tensor *tti_metric_binary_guess(tt_graph *g, const tti_metric_inputs *in);

// metric_curve.c
tti_metric_build_fn tti_auc_build, tti_calibration_build, tti_confusion_build;
tti_metric_finish_fn tti_auc_finish, tti_auc_pr_finish, tti_calibration_finish,
    tti_confusion_finish;
tti_metric_table_fn tti_auc_table, tti_auc_pr_table, tti_confusion_table;
// metric_number.c
tti_metric_build_fn tti_mse_build, tti_mae_build, tti_mape_build, tti_r2_build, tti_cosine_build;
tti_metric_finish_fn tti_rmse_finish, tti_r2_finish;

#endif
