/*
 * train.h - losses, metrics, optimizers, schedules; compile, fit, evaluate, predict; save, load.
 */
#ifndef TUTTI_TRAIN_H
#define TUTTI_TRAIN_H

#include <stdio.h>
#include <tutti/data.h>
#include <tutti/model.h>
#include <tutti/run.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- losses ----------------------------------------------------------------------------------

typedef enum tt_loss_kind {
    TT_LOSS_NONE = 0,
    TT_CROSS_ENTROPY = 1,        // takes logits; a final softmax is skipped, with the same bits
    TT_BINARY_CROSS_ENTROPY = 2, // takes logits; a final sigmoid is skipped
    TT_MSE = 3,
    TT_MAE = 4,
    TT_HUBER = 5,
    TT_CUSTOM_LOSS = 6,
    // The formula of each is in docs/training-parts.md.
    TT_KL_DIVERGENCE = 7,     // of probabilities as the target; takes logits, as cross entropy does
    TT_COSINE_SIMILARITY = 8, // 1 - cosine of the angle of output and target, one term per row
    TT_HINGE = 9,             // targets -1 and 1, or 0 and 1
    TT_SQUARED_HINGE = 10,    //
    TT_CATEGORICAL_HINGE = 11, // targets are class numbers
    TT_POISSON = 12,           // takes the logarithm of the rate, or with no_log the rate
    TT_LOG_COSH = 13,
    TT_FOCAL = 14,        // targets are class numbers; takes logits
    TT_BINARY_FOCAL = 15, // takes logits; a final sigmoid is skipped
    TT_DICE = 16,         // takes logits, or probabilities of a final sigmoid; one term per record
    TT_MAPE = 17,
    TT_MSLE = 18,
} tt_loss_kind;

// Builds loss terms, [batch, ...], from an output and its target; see tt_compile().
typedef tt_tensor *(*tt_loss_fn)(void *user, tt_graph *g, tt_tensor *output, tt_tensor *target);

/*
 * The loss is the sum of its terms divided by the number of terms that are not ignored. Every
 * element of the target is a term; for cross entropy with probabilities, every row is. With
 * sample_weight or class_weight each term is multiplied by its weight, and the sum is divided by
 * the sum of the weights.
 */
typedef struct tt_loss {
    size_t opts_size; // set by the macro
    tt_loss_kind kind;
    double weight;      // default 1; TT_ZERO: 0
    double smoothing;   // cross entropy: label smoothing
    bool has_ignore;    // cross entropy: targets equal to ignore are ignored
    int64_t ignore;     //
    double delta;       // huber: default 1
    const char *output; // name of the model's output; default: the next one
    const char *target; // name of the data field; default: the next after the inputs
    tt_loss_fn fn;      // TT_CUSTOM_LOSS
    void *user;
    bool has_target; // TT_CUSTOM_LOSS: its target is as below; default: like the output
    tt_dtype target_dtype;
    tt_shape target_shape; // of one record
    double gamma;          // focal: default 2; TT_ZERO: 0
    double alpha;          // binary focal: weight of target 1, of target 0 it is 1 - alpha; 0: none
    bool no_log;           // poisson: the output is the rate itself
    const char *sample_weight; // name of the data field with the weight of each record, f32, at
                               // least 0
    const char *class_weight;  // "0=1, 3=2.5": weights of classes, those not named have 1; for
                               // cross_entropy, focal, categorical_hinge; binary: classes 0 and 1
} tt_loss;
#define tt_loss(...) TT_OPTS(tt_loss, __VA_ARGS__)

// The built-in metrics, as a set of bits. Each is computed from sums and counts over all records,
// never as a mean of means. Their values differ from those of losses.
typedef enum tt_metric_kind {
    TT_ACCURACY = 1 << 8,
    TT_TOP_K = 1 << 9,      // k is an option of tt_compile()
    TT_PRECISION = 1 << 10, // one output: precision of class 1; more: the mean over classes
    TT_RECALL = 1 << 11,
    TT_F1 = 1 << 12,
    TT_METRIC_MSE = 1 << 13,
    TT_METRIC_MAE = 1 << 14,
    TT_PERPLEXITY = 1 << 15,
    TT_AUC = 1 << 16,    // area under the ROC curve, from counts at thresholds
    TT_AUC_PR = 1 << 17, // area under the precision-recall curve: the average precision
    TT_IOU = 1 << 18,    // intersection over union, the mean over classes
    TT_RMSE = 1 << 19,
    TT_R2 = 1 << 20,
    TT_METRIC_MAPE = 1 << 21,
    TT_METRIC_COSINE = 1 << 22,     // mean cosine of the angle of output and target
    TT_BITS_PER_BYTE = 1 << 23,     // cross entropy in bits per target, which is a byte or a symbol
    TT_CALIBRATION_ERROR = 1 << 24, // expected calibration error, 15 bins
    TT_CONFUSION = 1 << 25,         // fraction off the diagonal; tt_evaluate_table() has the matrix
} tt_metric_kind;
#define TT_N_METRICS       18 // built in
#define TT_MAX_OWN_METRICS 8
#define TT_MAX_METRICS     16                          // of a model
TT_API const char *tt_metric_name(tt_metric_kind one); // "accuracy"

// What a metric of your own is computed from.
typedef struct tt_metric_inputs {
    tt_tensor *output; // of the model, [batch, ...]
    tt_tensor *logits; // the output before a final softmax or sigmoid that the loss skips
    tt_tensor *target; // [batch, ...]
    tt_tensor *mask;   // like target, f32: 0 where the loss ignores it, else 1; NULL: all count
} tt_metric_inputs;

/*
 * A metric of your own: states, which are sums over the rows of a batch, and one number made of
 * them. The states are added over lanes, devices, processes and batches in a fixed order, so the
 * metric has the same bits on any devices. examples/own_metric.c is one.
 */
#define TT_MAX_STATES 8
/*
 * Writes the states to states[0], states[1], ...: f32 tensors, each made by a sum over the batch
 * (tt_sum(), tt_scatter_add()), of any size. Called once for each graph: for training, for
 * evaluation, and again by a fit with other settings.
 */
typedef tt_status (*tt_metric_build_fn)(void *user, tt_graph *g, const tt_metric_inputs *in,
                                        tt_tensor *states[TT_MAX_STATES]);
// The metric of the sums over all records; sums[i] has the sizes[i] elements of state i.
typedef double (*tt_metric_value_fn)(void *user, const double *const *sums, const int64_t *sizes);
typedef struct tt_metric {
    size_t opts_size; // set by the macro
    const char *name; // shown in progress, history and reports; up to 31 of a-z, A-Z, 0-9, _
    tt_metric_build_fn build;
    tt_metric_value_fn value;
    void *user;           // passed to both, while the model is compiled with this metric
    bool lower_is_better; // for early stopping, plateaus and the best checkpoint
    const char *output;   // name of the model's output; it must have a loss. Default: the first's
} tt_metric;
#define tt_metric(...) TT_OPTS(tt_metric, __VA_ARGS__)

// ---- schedules and optimizers ------------------------------------------------------------------

typedef enum tt_schedule_kind {
    TT_LR_CONSTANT = 0,
    TT_LR_STEP = 1,             // multiply by factor every `every` steps
    TT_LR_EXPONENTIAL = 2,      // decay by factor per `every` steps, continuously
    TT_LR_COSINE = 3,           // cosine decay to final (a fraction) at `steps`
    TT_LR_LINEAR = 4,           // linear decay to final
    TT_LR_ONE_CYCLE = 5,        // from 1/25 up to 1 at peak * steps, then down to final, by cosine
    TT_LR_CUSTOM = 6,           // fn
    TT_LR_PIECEWISE = 7,        // the factors of pieces
    TT_LR_POLYNOMIAL = 8,       // (1 - x)^power to final, x the part of the steps that is over
    TT_LR_INVERSE_TIME = 9,     // 1 / (1 + factor t / every)
    TT_LR_COSINE_RESTARTS = 10, // cosine decay to final, begun again after `every` steps
    TT_LR_WSD = 11,             // warmup, stable, decay: 1, then down to final over the last steps
} tt_schedule_kind;
// How TT_LR_WSD decays; y is the part of the decay that is over.
typedef enum tt_decay_shape {
    TT_DECAY_LINEAR = 0, // 1 - y
    TT_DECAY_COSINE = 1, // (1 + cos(pi y)) / 2
    TT_DECAY_SQRT = 2,   // 1 - sqrt(y)
} tt_decay_shape;
/*
 * A schedule of your own: the factor on the learning rate at a step, counted from 0 after the
 * warmup, of steps in total (0: unknown). It must be finite and not negative, and depend on its
 * arguments only, so that a resumed fit and other processes compute the same.
 */
typedef double (*tt_schedule_fn)(void *user, int64_t step, int64_t steps);
typedef struct tt_schedule {
    size_t opts_size; // set by the macros
    tt_schedule_kind kind;
    int64_t warmup; // steps of linear warmup before the schedule begins
    int64_t steps;  // last step of the schedule, warmup included; default: that of the fit;
                    // required with tt_train_step()
    double final;   // cosine, linear, polynomial, cosine_restarts, wsd: default 0; one_cycle: 1e-4;
                    // TT_ZERO: 0
    double factor;  // step: default 0.1; exponential: 0.95; inverse_time, cosine_restarts (factor
                    // on the rate at each restart): 1
    int64_t every;  // step, exponential, inverse_time, cosine_restarts (first period): default 1000
    double peak;    // one_cycle: default 0.3

    tt_schedule_fn fn; // TT_LR_CUSTOM
    void *user;        // passed to fn, while the model is compiled with it

    const char *pieces; // piecewise: "1000=0.5, 2000=0.1": from step 1000 on the factor is 0.5
    double power;       // polynomial: default 1
    double grow;        // cosine_restarts: each period is this many times the one before; default 1
    double decay;       // wsd: fraction of the steps at the end that decay; default 0.2
    tt_decay_shape shape; // wsd
} tt_schedule;
#define tt_schedule(...)        TT_OPTS(tt_schedule, __VA_ARGS__)
#define tt_cosine(...)          tt_schedule(.kind = TT_LR_COSINE, __VA_ARGS__)
#define tt_linear(...)          tt_schedule(.kind = TT_LR_LINEAR, __VA_ARGS__)
#define tt_one_cycle(...)       tt_schedule(.kind = TT_LR_ONE_CYCLE, __VA_ARGS__)
#define tt_step_decay(...)      tt_schedule(.kind = TT_LR_STEP, __VA_ARGS__)
#define tt_exponential(...)     tt_schedule(.kind = TT_LR_EXPONENTIAL, __VA_ARGS__)
#define tt_piecewise(...)       tt_schedule(.kind = TT_LR_PIECEWISE, __VA_ARGS__)
#define tt_polynomial(...)      tt_schedule(.kind = TT_LR_POLYNOMIAL, __VA_ARGS__)
#define tt_inverse_time(...)    tt_schedule(.kind = TT_LR_INVERSE_TIME, __VA_ARGS__)
#define tt_cosine_restarts(...) tt_schedule(.kind = TT_LR_COSINE_RESTARTS, __VA_ARGS__)
#define tt_wsd(...)             tt_schedule(.kind = TT_LR_WSD, __VA_ARGS__)
// The factor on the learning rate at a step of total; the same bits on every machine. NaN if s is
// not a schedule.
TT_API double tt_schedule_at(const tt_schedule *s, int64_t step, int64_t total);

typedef enum tt_optimizer_kind {
    TT_SGD = 0,
    TT_ADAM = 1,
    TT_ADAMW = 2,
    TT_RMSPROP = 3,
    TT_ADAGRAD = 4,
    TT_LION = 5,
    TT_ADADELTA = 6,
    TT_ADAMAX = 7,
    TT_NADAM = 8,
    TT_AMSGRAD = 9, // Adam with the largest second moment so far
    TT_FTRL = 10,
    TT_LAMB = 11,
    TT_LARS = 12,
} tt_optimizer_kind;

// Settings for the weights whose names match; the first group that matches applies.
typedef struct tt_group {
    size_t opts_size;  // set by the macro
    const char *match; // patterns with * and ?, "*.bias, norm*"
    double lr_scale;   // default 1; TT_ZERO: 0
    bool no_decay;
    double weight_decay; // default: the optimizer's
    double l1;           // added to the gradient: l1 sign(w), that of a penalty of l1 |w|
    double max_norm;     // after each step the weights of each unit (all axes but the last) are
                         // scaled down to this norm; 0: off
    bool non_negative;   // after each step negative weights become 0
} tt_group;
#define tt_group(...) TT_OPTS(tt_group, __VA_ARGS__)
#define TT_MAX_GROUPS 16

typedef struct tt_optimizer {
    size_t opts_size; // set by the macros
    tt_optimizer_kind kind;
    double lr;           // default 1e-3 (sgd, adagrad: 1e-2; lion: 1e-4; adadelta: 1; adamax,
                         // nadam: 2e-3; lars: 0.1); TT_ZERO: 0, as below
    double momentum;     // sgd, rmsprop; lars: default 0.9
    bool nesterov;       //
    double beta1, beta2; // as in tt_update_opts; lion: 0.9, 0.99
    double eps;
    double initial;              // adagrad, ftrl
    double weight_decay;         // adamw, lamb: default 0.01; the others: 0
    const char *no_decay;        // weights without weight decay, as name patterns
    double clip_value;           // clip each gradient element; 0: off. Set only one of the three
    double clip_norm;            // clip the norm of each weight's gradient
    double clip_global;          // clip the norm of all gradients together
    double ema;                  // decay of a moving average of the weights; 0: off
    const tt_schedule *schedule; // default: constant
    const tt_group *groups[TT_MAX_GROUPS]; // {tt_group(.match = "*.bias", .no_decay = true), ...}
    bool exact;                            // zero fields mean zero instead of the default
    double l1, l2;                         // ftrl: strength of its penalties; default 0
    double trust;                          // lars: trust coefficient; default 0.001
    double layer_decay; // factor on the learning rate of a layer for each one after it; 0: off
} tt_optimizer;
#define tt_optimizer(...) TT_OPTS(tt_optimizer, __VA_ARGS__)
#define tt_sgd(...)       tt_optimizer(.kind = TT_SGD, __VA_ARGS__)
#define tt_adam(...)      tt_optimizer(.kind = TT_ADAM, __VA_ARGS__)
#define tt_adamw(...)     tt_optimizer(.kind = TT_ADAMW, __VA_ARGS__)
#define tt_rmsprop(...)   tt_optimizer(.kind = TT_RMSPROP, __VA_ARGS__)
#define tt_adagrad(...)   tt_optimizer(.kind = TT_ADAGRAD, __VA_ARGS__)
#define tt_lion(...)      tt_optimizer(.kind = TT_LION, __VA_ARGS__)
#define tt_adadelta(...)  tt_optimizer(.kind = TT_ADADELTA, __VA_ARGS__)
#define tt_adamax(...)    tt_optimizer(.kind = TT_ADAMAX, __VA_ARGS__)
#define tt_nadam(...)     tt_optimizer(.kind = TT_NADAM, __VA_ARGS__)
#define tt_amsgrad(...)   tt_optimizer(.kind = TT_AMSGRAD, __VA_ARGS__)
#define tt_ftrl(...)      tt_optimizer(.kind = TT_FTRL, __VA_ARGS__)
#define tt_lamb(...)      tt_optimizer(.kind = TT_LAMB, __VA_ARGS__)
#define tt_lars(...)      tt_optimizer(.kind = TT_LARS, __VA_ARGS__)

// ---- compile ---------------------------------------------------------------------------------

typedef enum tt_precision {
    TT_PRECISION_F32 = 0,
    TT_PRECISION_BF16 = 1,
    TT_PRECISION_F16 = 2, // with loss scaling: a step whose gradients overflow is skipped
} tt_precision;

#define TT_MAX_LOSSES 8
typedef struct tt_compile_opts {
    size_t opts_size;
    tt_loss_kind loss;                    // one loss; or
    const tt_loss *losses[TT_MAX_LOSSES]; // several, or one with options:
                                          // {tt_loss(.kind = TT_MSE, .weight = 2), ...}
    const tt_optimizer *optimizer;        // tt_adam(.lr = 1e-3); default sgd
    int metrics;            // TT_ACCURACY | TT_TOP_K: metrics of the first loss's output; and
                            // own_metrics, at the end
    int top_k;              // default 5
    const char *freeze;     // weights to keep frozen, as name patterns
    tt_dtype target_dtype;  // type of the first target; default: i32 for cross entropy, else f32
    bool dense_targets;     // cross entropy: targets are probabilities with the output's shape
    tt_precision precision; // type of products and activations in training; weights stay f32
    /*
     * Activations to recompute in the backward pass instead of keeping them: "none" (default),
     * "all", layer name patterns "block.*, conv2d_1", or "budget 4GiB": the cheapest set with which
     * the activations of each device fit into 4 GiB. Does not change any bit.
     */
    const char *recompute;
    const tt_metric *own_metrics[TT_MAX_OWN_METRICS]; // {tt_metric(.name = "r2", ...), ...}
    /*
     * Sums gradients over the replicas in place of the library, a bucket at a time (comm.h), for
     * example to send less: DDP's comm hook. Needs reduce: fast and devices with host memory.
     */
    tt_bucket_fn bucket_hook;
    void *bucket_user; // its first argument
    int thresholds;    // auc, auc_pr: number of thresholds; default 200
    double threshold;  // of binary targets: probability from which accuracy, precision, recall, f1
                       // and iou count the guess as 1; default 0.5
} tt_compile_opts;
/*
 * Builds the training graph: loss, gradients, updates, metrics. A target has the shape of the
 * output (cross entropy: without the last axis).
 */
TT_API tt_status tt_compile_with(tt_model *m, const tt_compile_opts *opts);
#define tt_compile(...) TT_CALL1(tt_compile, __VA_ARGS__, )

// ---- fit -------------------------------------------------------------------------------------

// The state of training; passed to callbacks and printed by the command.
typedef struct tt_progress {
    int64_t step, steps;   // steps done, and in total
    int64_t epoch, epochs; // current epoch from 1, and in total; 0: training counts steps
    int64_t rows;          // records used in this epoch so far
    int64_t epoch_rows;    // records per epoch
    double loss; // mean over the epoch so far, this step included; NaN: no step was applied
    int n_metrics;
    const char *names[TT_MAX_METRICS]; // built-in metrics, then own ones
    double metrics[TT_MAX_METRICS];    // of the epoch so far, as loss
    double lr;                         // learning rate of this step
    double samples_per_second;
    double seconds;      // since the fit began
    bool has_validation; // the values below are of the last validation
    double validation_loss;
    double validation[TT_MAX_METRICS];   // named as metrics
    double step_loss;                    // loss of this step
    double gradient_norm;                // with clip_global, else 0
    double loss_scale;                   // with precision f16, else 0
    bool is_skipped;                     // this step was not applied
    double step_metrics[TT_MAX_METRICS]; // metrics of this step, named as metrics
} tt_progress;

/*
 * When a callback is called; n is its every. A step is one update from one global batch. Before a
 * step, progress is that of the steps before it, and lr the learning rate of the step to come.
 */
typedef enum tt_moment {
    TT_AT_STEP = 0,        // after every n-th step: the end of a batch
    TT_AT_EPOCH = 1,       // after every n-th epoch
    TT_AT_VALIDATION = 2,  // after every n-th validation
    TT_AT_END = 3,         // after the last step
    TT_AT_STEP_BEGIN = 4,  // before every n-th step, from the first on: the begin of a batch
    TT_AT_EPOCH_BEGIN = 5, // before every n-th epoch, from the first on
    TT_AT_BEGIN = 6,       // before the first step of the fit
} tt_moment;
// Returns TT_OK to continue, TT_ESTOP to end the fit after the current step (the fit then
// succeeds), or an error.
typedef tt_status (*tt_callback_fn)(void *user, tt_model *m, const tt_progress *p);
typedef struct tt_callback {
    size_t opts_size; // set by the macro
    tt_moment at;
    int64_t every; // steps, epochs or validations; default 1
    tt_callback_fn fn;
    void *user;
} tt_callback;
#define tt_callback(...) TT_OPTS(tt_callback, __VA_ARGS__)
#define TT_MAX_CALLBACKS 16

typedef enum tt_nan {
    TT_NAN_STOP =
        0, // the fit fails and names the step, the layer or weight; the step is not applied
    TT_NAN_SKIP = 1,     // the step is skipped; one warning per hundred skipped steps
    TT_NAN_CONTINUE = 2, // the step is applied
} tt_nan;

// Watches a metric: "loss", "accuracy", "validation_loss", "validation_accuracy".
typedef struct tt_watch {
    size_t opts_size;  // set by the macro
    const char *value; // default: validation_loss; without validation data: loss
    bool max;          // higher is better; default: known from the name
    int patience;      // epochs (or validations) without improvement; 0: off
    double min_delta;  // smallest change that counts as an improvement
    double factor;     // plateau: factor on the learning rate; default 0.1
    double min_lr;     // plateau: lower limit of the learning rate
    bool restore;      // early stopping: restore the best weights at the end
} tt_watch;
#define tt_watch(...) TT_OPTS(tt_watch, __VA_ARGS__)

typedef struct tt_fit_opts {
    size_t opts_size;
    int64_t epochs;         // number of passes over the data; default 1; or
    int64_t steps;          // number of updates
    int64_t batch;          // global batch size over all devices; default: the data set's
    int64_t accumulate;     // batches per update; must divide the lanes; default 1
    tt_data *validate;      // validation data, used after each epoch, or
    int64_t validate_every; // after this many steps
    int64_t validate_rows;  // largest number of records to validate on; default: all
    const tt_callback *callbacks[TT_MAX_CALLBACKS]; // {tt_callback(TT_AT_EPOCH, 1, fn, user), ...}
    const tt_watch *early_stop;                     // tt_watch(.patience = 3)
    const tt_watch *plateau;
    tt_nan nan;
    const char *checkpoints; // folder; NULL: none are written
    int64_t save_every;      // steps between checkpoints; default: one per epoch
    int keep;                // number of newest checkpoints to keep; default 3
    const tt_watch *best;    // metric of the best checkpoint, also kept; patience is not used
    bool resume;             // from the newest in the folder; from step 0 if there is none at all
    const char *job;         // text stored in the checkpoint's manifest
    int64_t profile;         // number of steps to measure after the third (tt_fit_profile())
    bool hashes;             // keep hashes per node and lane (tt_model_get_session)
    bool trace;              // record when each op ran (tt_trace_write on that session)
    int64_t check_every;     // steps between comparisons of the replicas; default: at saves
    bool restart; // from step 0; checkpoints in the folder are moved to "<checkpoints>.old-<n>"
    /*
     * Writes progress to this stream as the command shows it: on a terminal a line that is redrawn,
     * elsewhere a line per epoch or validation. stdout and stderr are usual; default: nothing is
     * written. In a job of several processes the first one writes.
     */
    FILE *progress;
    /*
     * The fit fails with TT_ENAN where training has diverged: at the end of an epoch or of the
     * fit, or at a validation, both the mean loss and the loss of the last step are more than this
     * many times the first step's loss, or than 1 where that is smaller. Default 1000; TT_ZERO: no
     * such check; nor is there one with TT_NAN_CONTINUE.
     */
    double divergence;
} tt_fit_opts;
TT_API tt_status tt_fit_with(tt_model *m, tt_data *train, const tt_fit_opts *opts);
#define tt_fit(...) TT_CALL2(tt_fit, __VA_ARGS__, )

typedef enum tt_fit_end {
    TT_FIT_FINISHED = 0,   // all epochs or steps are done
    TT_FIT_EARLY_STOP = 1, // early_stop
    TT_FIT_CALLBACK = 2,   // a callback returned TT_ESTOP
    TT_FIT_REQUESTED = 3,  // tt_request_end()
    TT_FIT_ALREADY = 4,    // resumed from a checkpoint after which nothing was left to do
} tt_fit_end;

// The results of a fit. last is borrowed: until the next fit or compile, or the context closes.
typedef struct tt_fit_report {
    const tt_progress *last;        // of the last step
    int64_t steps, epochs, skipped; // skipped: steps that were not applied
    double first_step_seconds;      // from the call until the end of the first step
    double step_ms_median;
    double seconds, compute_seconds, data_seconds, checkpoint_seconds, validate_seconds;
    double samples_per_second;
    tt_hash weights;
    bool is_stopped;     // ended by a callback or early stopping
    const char *saved;   // newest checkpoint, "" if none; borrowed until the next fit or compile
    int slowest;         // the busiest device, for which others wait; -1: there is only one device
    tt_fit_end ended;    // why it ended
    int64_t total_steps; // that it was to do
    const char *best_name; // what the best checkpoint is chosen by, "validation_loss"; borrowed
    double best;           // its best value; NaN: there is none
} tt_fit_report;
// Of the last fit.
TT_API tt_status tt_fit_report_get_sized(tt_model *m, tt_fit_report *out, size_t size);
#define tt_fit_report_get(m, out) tt_fit_report_get_sized((m), (out), sizeof(tt_fit_report))

/*
 * How one device spent the steps of the last fit, in seconds; the parts add up to seconds. The time
 * of a core that several devices share counts for each of them. Every process of a job
 * has the times of all devices.
 */
typedef struct tt_device_times {
    char name[32];
    double seconds;            // duration of the steps, with waiting for data
    double compute;            //
    double communication;      // receiving, adding and gathering results of other devices
    double waiting;            // waiting for other devices
    const double *waiting_for; // the same, per device of the context; borrowed until the model is
                               // fitted or compiled again, or freed
    double data;               // waiting for data
    double idle;               // no work
} tt_device_times;
TT_API tt_status tt_fit_device_times_sized(tt_model *m, int device, tt_device_times *out,
                                           size_t size);
#define tt_fit_device_times(m, device, out) \
    tt_fit_device_times_sized((m), (device), (out), sizeof(tt_device_times))
// Time per op, layer and device, and the bottleneck; free with tt_string_free().
TT_API char *tt_fit_profile(tt_model *m, bool json);

/*
 * Makes a fit end: after the current step it saves and returns TT_ESTOP. The context can be used
 * again after tt_clear_error(). Safe in a signal handler.
 */
TT_API void tt_request_end(tt_ctx *ctx);

typedef struct tt_evaluate_opts {
    size_t opts_size;
    int64_t batch;      // default: the data set's
    int64_t rows;       // largest number of records to use; default: all
    bool ema;           // use the moving average of the weights
    int64_t accumulate; // number of batches per sum, as in a fit; default 1
    size_t out_size;    // bytes of *out; the macro sets it; default: all of tt_evaluation
} tt_evaluate_opts;
typedef struct tt_evaluation {
    double loss;
    int64_t rows;
    int n_metrics;
    const char *names[TT_MAX_METRICS]; // borrowed until the next compile or fit
    double metrics[TT_MAX_METRICS];
} tt_evaluation;
TT_API tt_status tt_evaluate_with(tt_model *m, tt_data *data, tt_evaluation *out,
                                  const tt_evaluate_opts *opts);
#define TT_EVALUATE(m, data, out, ...)   \
    tt_evaluate_with((m), (data), (out), \
                     TT_OPTS(tt_evaluate_opts, .out_size = sizeof(tt_evaluation), __VA_ARGS__))
#define tt_evaluate(...) TT_EVALUATE(__VA_ARGS__, )
/*
 * The table behind a metric of the last evaluation: confusion [class, guess] counts; precision,
 * recall, f1 and iou one value per class, NaN where the class did not occur; auc the curve, for
 * each class and threshold k / thresholds the rates of false and of true positives, [class,
 * thresholds, 2]; auc_pr recall and precision in the same way. Writes at most n numbers to out and
 * returns how many there are; 0: the model has no such metric, it has no table, or nothing was
 * evaluated.
 */
TT_API int64_t tt_evaluate_table(tt_model *m, const char *metric, double *out, int64_t n);

/*
 * Runs the model on n records; out has room for n rows of the first output. batch changes no bits.
 * A model with several inputs or outputs takes them from the options, in its order: x and out are
 * then NULL, or the first ones.
 */
typedef struct tt_predict_opts {
    size_t opts_size;
    int64_t batch;                   // records at a time; default 256
    const void *inputs[TT_MAX_FROM]; // n records each
    void *outputs[TT_MAX_FROM];      // room for n rows each; NULL: that one is not wanted
    bool raw; // of a model that knows its data (tutti/use.h): inputs before their preprocessing,
              // outputs as probabilities or in the target's own units
} tt_predict_opts;
TT_API tt_status tt_predict_with(tt_model *m, const void *x, int64_t n, void *out,
                                 const tt_predict_opts *opts);
#define tt_predict(...) TT_CALL4(tt_predict, __VA_ARGS__, )

// ---- loops by hand ---------------------------------------------------------------------------

/*
 * One update from one global batch, with one array per input and target. Needs tt_compile(). Loss,
 * metrics and lr of *out are those of this step; out may be NULL. A schedule that ends (cosine,
 * linear, one_cycle) needs its steps.
 */
typedef struct tt_train_step_opts {
    size_t opts_size;
    double lr; // learning rate of this step; default: the optimizer's, by its schedule; TT_ZERO: 0
    size_t out_size; // bytes of *out; the macro sets it; default: all of tt_progress
} tt_train_step_opts;
TT_API tt_status tt_train_step_with(tt_model *m, const tt_batch_data *batch, tt_progress *out,
                                    const tt_train_step_opts *opts);
#define TT_TRAIN_STEP(m, batch, out, ...)   \
    tt_train_step_with((m), (batch), (out), \
                       TT_OPTS(tt_train_step_opts, .out_size = sizeof(tt_progress), __VA_ARGS__))
#define tt_train_step(...) TT_TRAIN_STEP(__VA_ARGS__, )

/*
 * How to compute the gradient of a mean of count terms without a division per lane. The gradient of
 * the sum of the terms is taken with the seed 1 / P (tt_grad()), where P is the smallest power of
 * two not below count; this is exact. The complete gradients are then multiplied by scale = P /
 * count (tt_run(.grad_scale) or tt_all_reduce(.factor)). Such a loop has the same bits as tt_fit().
 */
typedef struct tt_mean_factors {
    float seed, scale;
} tt_mean_factors;
TT_API tt_mean_factors tt_mean_factors_of(int64_t count);

TT_API tt_session *tt_model_get_session(tt_model *m);   // of the training graph; NULL before a fit
TT_API tt_graph *tt_model_get_train_graph(tt_model *m); // NULL before tt_compile()
TT_API tt_status tt_model_hash(tt_model *m,
                               tt_hash *out); // of all weights, without optimizer state

// ---- saving and loading weights --------------------------------------------------------------

// Writes a folder with weights, optimizer state and a manifest, atomically. See
// docs/checkpoints.md.
TT_API tt_status tt_save(tt_model *m, const char *path);
// How a file of weights lays out matrices and kernels.
typedef enum tt_weight_layout {
    TT_WEIGHTS_AUTO = 0,  // what the file says, or its shapes; what neither says is refused
    TT_WEIGHTS_TUTTI = 1, // [in, out]; kernels [height, width, in, out]
    TT_WEIGHTS_TORCH = 2, // PyTorch's: [out, in]; kernels [out, in, height, width]
} tt_weight_layout;
typedef struct tt_load_opts {
    size_t opts_size;
    bool partial;     // ignore weights that only the file or only the model has
    const char *map;  // "old.*=new.*, ...": names in the file to the model's; or "huggingface_gpt2"
    const char *only; // the model's weights to load, as name patterns; default: all
    tt_weight_layout layout; // of a file that is not a checkpoint
} tt_load_opts;
/*
 * From what tt_save() or a fit wrote, or from one safetensors file (weights only). Weights from
 * PyTorch are transposed where it lays them out otherwise.
 */
TT_API tt_status tt_load_with(tt_model *m, const char *path, const tt_load_opts *opts);
#define tt_load(...) TT_CALL2(tt_load, __VA_ARGS__, )
// Writes the weights to one safetensors file, for other programs.
TT_API tt_status tt_export(tt_model *m, const char *path);

#ifdef __cplusplus
}
#endif
#endif
