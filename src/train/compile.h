/*
 * compile.h - what tt_compile() makes of a model: the training graph with loss, gradients and
 * updates, the loss and metrics in the inference graph, and everything a step needs, laid out once
 * so that a step allocates nothing.
 */
#ifndef TUTTI_TRAIN_COMPILE_H
#define TUTTI_TRAIN_COMPILE_H

#include "base/file.h"
#include "train/loss.h"
#include "train/optimizer.h"

#define TTI_MAX_FEEDS (2 * TTI_MAX_INPUTS)
_Static_assert(TTI_MAX_FEEDS <= TT_MAX_FIELDS, "a batch has a field for every feed");

// One sum that a run gives: a loss's terms, their count, or a state of a metric.
typedef struct tti_sum {
    tt_tensor *tensor;
    int64_t size; // elements
    int64_t at;   // first of them among all sums
} tti_sum;

/*
 * Loss and metrics as built in one graph. Sums are ordered: for each loss its terms and, where the
 * count is not known beforehand, the count; then the states of each metric.
 */
typedef struct tti_scores {
    tt_graph *graph;
    tt_tensor *feeds[TTI_MAX_FEEDS]; // inputs, then targets, then weights of records
    int weighs[TTI_MAX_FEEDS];       // of such a weight: the first loss that takes it
    int n_feeds;
    tti_loss_terms terms[TT_MAX_LOSSES];
    tti_sum *sums;
    int n_sums;
    int64_t n_numbers; // elements of all sums
} tti_scores;

// How long the parts of a fit took, in nanoseconds; steps is a ring of the newest.
#define TTI_STEP_TIMES 4096
typedef struct tti_times {
    int64_t begin, first_step, compute, data, checkpoint, validate, hash;
    int64_t n_steps;
    int64_t steps[TTI_STEP_TIMES];
} tti_times;

struct tti_step {
    tt_model *model;
    tt_compile_opts opts; // a copy of all that was given; its pointers lead to what follows
    char *texts;
    tti_rule rule; // the optimizer, filled
    tt_loss given_losses[TT_MAX_LOSSES];
    tt_metric own_metrics[TT_MAX_OWN_METRICS];
    int n_own_metrics;
    bool guard;
    tt_graph *graph;
    tt_session *session;
    bool traced;
    tti_scores train, eval;
    int n_losses, n_metrics;
    tt_loss losses[TT_MAX_LOSSES];
    tti_metric metrics[TT_MAX_METRICS];

    int n_weights; // that train
    tt_tensor **vars, **grads;
    const char **names;
    double *scales;      // of the learning rate, with layer_decay; else NULL
    tt_tensor **targets; // updates, running statistics
    int n_targets, cap_targets;
    tt_tensor *inv_p, *p, *count;        // feeds: 1 / P, P, and the count where it is known
    tt_tensor *loss_seed[TT_MAX_LOSSES]; // feeds: weight / count, with several losses
    tt_tensor *norm, *applied;           // NULL where there is none
    tt_tensor **checks;                  // with guard: by weight, then by state (optimizer.h)
    tt_tensor **states;                  // running statistics: their variables
    int n_states;
    tti_loss_scale loss_scale; // f16: its variables; else NULL
    tt_tensor *used_scale;     // of a step; NULL where there is none
    tt_feed_value feed_values[TTI_MAX_FEEDS + 3 + TT_MAX_LOSSES];
    tt_feed_value next_values[TTI_MAX_FEEDS]; // of the step after this one, where known
    int n_next;
    tt_fetch *fetches;
    int n_fetches;
    float *room;       // where fetches go: all sums, then norm, applied and the loss scale
    double *numbers;   // sums of the last step or evaluation
    double *epoch;     // sums of the epoch so far
    double *evaluated; // sums of the last evaluation
    bool is_evaluated;

    tt_watch early, plateau, best;
    tt_fit_report report;
    tt_progress last;              // what report.last points to
    char saved[TTI_PATH_MAX];      // what report.saved points to
    tt_device_times *device_times; // of the last fit, by device, and what they point to; or NULL
    tti_times times;
    int64_t step;      // updates done in the model's life
    int64_t unapplied; // of them those that were not applied
    int64_t base;      // of them before this fit: its schedule counts from here
    int64_t total;     // of this fit
    int64_t epochs;    // seen in the model's life: another fit goes on with the order of the next
    double lr_factor;
    double lr;                    // of the last step
    double scale;                 // loss scale of the last step; 0 without one
    int64_t few_rows;             // batches of so many rows are warned of; 0: none, or it was done
    char *profile, *profile_json; // of the last fit
};

// The step graph anew, with other settings; weights and optimizer state stay.
tt_status tti_compile_again(tt_model *m, bool guard, bool traced, bool hashes) TTI_CHECKED;
// Calls fn with the model compiled in another precision; then everything is as it was.
tt_status tti_compile_try(tt_model *m, tt_precision precision, void (*fn)(void *),
                          void *arg) TTI_CHECKED;
// evaluate.c: averages that a model gets after it has been trained begin with its weights.
tt_status tti_begin_averages(tt_model *m) TTI_CHECKED;
void tti_step_free(tt_model *m);

// own_metric.c: the metrics that the options ask for; and the loss whose output one of them names.
tt_status tti_metrics_read(tti_step *s) TTI_CHECKED;
tt_status tti_metric_find_loss(const tti_step *s, tti_metric *m, const tti_output *outs,
                               int n) TTI_CHECKED;

// The learning rate of the next step, by the optimizer and its schedule.
float tti_step_lr(const tti_step *s);
/*
 * One update from a global batch; fields are in the order of the feeds. Sums go to step->numbers;
 * *applied tells whether the weights changed.
 */
tt_status tti_step_run(tt_model *m, const void *const *fields, int64_t rows, int64_t accumulate,
                       float lr, bool *applied, double *norm) TTI_CHECKED;

// scores.c: feeds of targets, losses and metrics in one graph, that of training or of inference.
tt_status tti_scores_build(tti_step *s, tti_scores *sc, tt_graph *g, bool training) TTI_CHECKED;
// Loss and metrics of sums over rows rows.
double tti_scores_loss(const tti_step *s, const tti_scores *sc, const double *numbers,
                       int64_t rows);
void tti_scores_metrics(const tti_step *s, const tti_scores *sc, const double *numbers,
                        double out[TT_MAX_METRICS]);
// The table of a metric, as tt_evaluate_table().
int64_t tti_scores_table(const tti_step *s, const tti_scores *sc, const double *numbers,
                         const char *name, double *out, int64_t n);
// Feed values of a batch; returns how many.
int tti_scores_feed(const tti_scores *sc, const void *const *fields, int64_t rows,
                    tt_feed_value *out);
// fields.c: which field of the data each feed takes, by name or place; checks types and shapes, and
// has labels checked as they are read.
tt_status tti_match_fields(tt_model *m, const tti_scores *sc, tt_data *d,
                           int field[TTI_MAX_FEEDS]) TTI_CHECKED;
// Adds where the first value of a batch is that is not finite, among the rows that this process
// read, and what it is; false: there is none.
bool tti_find_bad_record(const tti_scores *sc, const tt_data *d, const int *field,
                         const tt_batch_data *b, tti_text *out);
// The same of all processes, which call it together; free with tti_free(). NULL: there is none.
char *tti_shared_bad_record(tt_model *m, const tti_scores *sc, const tt_data *d, const int *field,
                            const tt_batch_data *b);

// Rows up to which a layer of the model has too few; and the warning, once, of such a batch.
int64_t tti_few_rows(const tt_model *m);
void tti_few_rows_warn(tt_model *m, int64_t rows);

// What a step fetches, then its other targets; free with tti_free(); NULL: recorded.
tt_tensor **tti_step_targets(tt_model *m);
// The plan of a step with rows rows in so many parts, as tt_plan_print() has it; NULL: recorded.
char *tti_step_plan(tt_model *m, int64_t rows, int64_t accumulate, tt_plan_form form);
// A plan of a step to look at, as tti_session_look(): for this context's devices if they have the
// memory, or for another topology.
struct tti_topology;
struct tti_stage_watch;
struct tti_plan;
tt_status tti_step_look(tt_model *m, int64_t rows, int64_t accumulate,
                        const struct tti_topology *top, struct tti_stage_watch *watch,
                        struct tti_plan **out) TTI_CHECKED;

// What a fit asks of the devices' memory. validate_records 0: no validation.
typedef struct tti_load {
    int64_t batch, accumulate, records, validate_records;
    bool is_dry; // nothing will be trained: plans get no memory
} tti_load;
// Fails with TT_ELIMIT where a step does not fit the limits of its devices, or of all CPUs without
// one the machine or control group, saying what would.
tt_status tti_memory_check(tt_model *m, const tti_load *l) TTI_CHECKED;
// Bytes of validation on each device, which stand beside the step's memory.
tt_status tti_memory_validation(tt_model *m, const tti_load *l, size_t *bytes) TTI_CHECKED;
// The smallest power of two that is not below n.
double tti_power_of_two(double n);
// The first of n elements that is a NaN or infinite; -1: none, as of integers.
int64_t tti_first_not_finite(tt_dtype type, const void *x, int64_t n);
// The first layer whose output is not finite in this batch; NULL: none is, or with *known false
// that could not be found out.
const char *tti_find_nan(tt_model *m, const void *const *fields, int64_t rows, bool *known);
/*
 * The first weight, from the output on, whose gradient is not finite in this batch, or the variable
 * of a running statistic that would not be, and what is wrong with it; else the weight with the
 * largest gradient, and *value that. False: nothing is known.
 */
bool tti_find_gradient(tt_model *m, const void *const *fields, int64_t rows, const char **name,
                       double *value);
// Time per op, layer and device from the spans of the training session; kept in the step.
tt_status tti_profile_make(tt_model *m) TTI_CHECKED;

// fit_ranks.c: has data read the rows that this process's devices take in runs of the graph.
tt_status tti_own_lanes(const tt_graph *g, tt_data *data) TTI_CHECKED;

#endif
