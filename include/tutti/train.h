/*
 * train.h - losses, metrics, optimizers, schedules; compile, fit, evaluate, predict; save, load.
 */
#ifndef TUTTI_TRAIN_H
#define TUTTI_TRAIN_H

#include <tutti/data.h>
#include <tutti/model.h>
#include <tutti/run.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- losses ----------------------------------------------------------------------------------

typedef enum tt_loss_kind {
    TT_LOSS_NONE = 0,
    TT_CROSS_ENTROPY = 1, // of logits, or of a softmax written as the last layer: the same bits
    TT_BINARY_CROSS_ENTROPY = 2, // of logits, or of a sigmoid written as the last layer
    TT_MSE = 3,
    TT_MAE = 4,
    TT_HUBER = 5,
    TT_CUSTOM_LOSS = 6,
} tt_loss_kind;

// Builds loss terms, [batch, ...], from an output and its target; see tt_compile().
typedef tt_tensor *(*tt_loss_fn)(void *user, tt_graph *g, tt_tensor *output, tt_tensor *target);

/*
 * The loss is the sum of its terms divided by their true count: terms that are not ignored. Every
 * element of the target is a term; for cross entropy with probabilities every row.
 */
typedef struct tt_loss {
    tt_loss_kind kind;
    double weight;      // default 1
    double smoothing;   // cross entropy: label smoothing
    bool has_ignore;    // cross entropy: targets equal to ignore count for nothing
    int64_t ignore;     //
    double delta;       // huber: default 1
    const char *output; // of the model, by name; default: the next one
    const char *target; // field of the data, by name; default: the next after the inputs
    tt_loss_fn fn;      // TT_CUSTOM_LOSS
    void *user;
} tt_loss;

// Metrics: sums and counts that can be merged, never averages of averages. A set of bits; no loss's
// number is one of them.
typedef enum tt_metric {
    TT_ACCURACY = 1 << 8,
    TT_TOP_K = 1 << 9,      // k is an option of tt_compile()
    TT_PRECISION = 1 << 10, // two classes (one output): of class 1; more: the mean over the classes
    TT_RECALL = 1 << 11,
    TT_F1 = 1 << 12,
    TT_METRIC_MSE = 1 << 13,
    TT_METRIC_MAE = 1 << 14,
    TT_PERPLEXITY = 1 << 15,
} tt_metric;
#define TT_N_METRICS 8
TT_API const char *tt_metric_name(tt_metric one); // "accuracy"

// ---- schedules and optimizers: plain values --------------------------------------------------

typedef enum tt_schedule_kind {
    TT_LR_CONSTANT = 0,
    TT_LR_STEP = 1,        // times factor every `every` steps
    TT_LR_EXPONENTIAL = 2, // times factor each `every` steps, smoothly
    TT_LR_COSINE = 3,      // down to final (a fraction) at `steps`
    TT_LR_LINEAR = 4,      // the same on a line
    TT_LR_ONE_CYCLE = 5,   // from 1/25 up to 1 at peak * steps, then down to final by cosines
} tt_schedule_kind;
typedef struct tt_schedule {
    tt_schedule_kind kind;
    int64_t warmup; // steps of linear rise before the schedule begins
    int64_t steps;  // where it ends, warm-up included; default: with the fit
    double final;   // cosine, linear: default 0; one_cycle: 1e-4
    double factor;  // step: default 0.1; exponential: 0.95
    int64_t every;  // step, exponential: default 1000
    double peak;    // one_cycle: default 0.3
} tt_schedule;
#define tt_cosine(...)      ((tt_schedule){.kind = TT_LR_COSINE, __VA_ARGS__})
#define tt_linear(...)      ((tt_schedule){.kind = TT_LR_LINEAR, __VA_ARGS__})
#define tt_one_cycle(...)   ((tt_schedule){.kind = TT_LR_ONE_CYCLE, __VA_ARGS__})
#define tt_step_decay(...)  ((tt_schedule){.kind = TT_LR_STEP, __VA_ARGS__})
#define tt_exponential(...) ((tt_schedule){.kind = TT_LR_EXPONENTIAL, __VA_ARGS__})
// The factor of the learning rate at a step of total; by our own functions, the same everywhere.
TT_API double tt_schedule_at(const tt_schedule *s, int64_t step, int64_t total);

typedef enum tt_optimizer_kind {
    TT_SGD = 0,
    TT_ADAM = 1,
    TT_ADAMW = 2,
    TT_RMSPROP = 3,
    TT_ADAGRAD = 4,
    TT_LION = 5,
} tt_optimizer_kind;

// Settings of the weights whose names match; the first group that matches counts.
typedef struct tt_group {
    const char *match; // patterns with * and ?, "*.bias, norm*"
    double lr_scale;   // default 1
    bool no_decay;
    double weight_decay; // default: the optimizer's
} tt_group;
#define TT_MAX_GROUPS 16

typedef struct tt_optimizer {
    tt_optimizer_kind kind;
    double lr;           // default 1e-3 (sgd, adagrad: 1e-2; lion: 1e-4)
    double momentum;     // sgd, rmsprop
    bool nesterov;       //
    double beta1, beta2; // as tt_update_opts; lion: 0.9, 0.99
    double eps;
    double initial;       // adagrad
    double weight_decay;  // adamw: default 0.01; the others: 0
    const char *no_decay; // patterns of weights that do not decay
    double clip_value;    // each element of the gradients, after reduction; 0: no. One of three:
    double clip_norm;     // norm of each weight's gradient
    double clip_global;   // norm of all gradients together
    double ema;           // decay of the moving average of the weights; 0: none
    tt_schedule schedule;
    tt_group groups[TT_MAX_GROUPS];
    int n_groups;
    bool exact; // every field is said: zero means zero, not default
} tt_optimizer;
#define tt_sgd(...)     ((tt_optimizer){.kind = TT_SGD, __VA_ARGS__})
#define tt_adam(...)    ((tt_optimizer){.kind = TT_ADAM, __VA_ARGS__})
#define tt_adamw(...)   ((tt_optimizer){.kind = TT_ADAMW, __VA_ARGS__})
#define tt_rmsprop(...) ((tt_optimizer){.kind = TT_RMSPROP, __VA_ARGS__})
#define tt_adagrad(...) ((tt_optimizer){.kind = TT_ADAGRAD, __VA_ARGS__})
#define tt_lion(...)    ((tt_optimizer){.kind = TT_LION, __VA_ARGS__})

// ---- compile ---------------------------------------------------------------------------------

typedef enum tt_precision {
    TT_PRECISION_F32 = 0,
    TT_PRECISION_BF16 = 1,
    TT_PRECISION_F16 = 2, // with a loss scale: a step whose gradients overflow is not applied
} tt_precision;

#define TT_MAX_LOSSES 8
typedef struct tt_compile_opts {
    size_t opts_size;
    tt_loss_kind loss;             // one loss; or
    tt_loss losses[TT_MAX_LOSSES]; // several, or one with options
    int n_losses;
    tt_optimizer optimizer; // default sgd
    int metrics;            // TT_ACCURACY | TT_TOP_K: of the first loss's output
    int top_k;              // default 5
    const char *freeze;     // patterns of weights that stay as they are
    tt_dtype target_dtype;  // of the first target; default: i32 for cross entropy, else f32
    bool dense_targets;     // cross entropy: targets are probabilities, as the output is
    tt_precision precision; // of the training step's products; weights stay f32
    /*
     * Activations that are not kept but computed again in the backward part: "none" (default),
     * "all", patterns of layers "block.*, conv2d_1", or "budget 4GiB": the cheapest set with which
     * the activations of each device fit. Changes no bit.
     */
    const char *recompute;
} tt_compile_opts;
/*
 * Builds the training graph: loss, gradients, updates, metrics. Targets have the shape of the
 * output (cross entropy: without its last axis).
 */
TT_API tt_status tt_compile_with(tt_model *m, const tt_compile_opts *opts);
#define tt_compile(...) TT_CALL1(tt_compile, __VA_ARGS__, )

// ---- fit -------------------------------------------------------------------------------------

// What the loop knows; handed to callbacks and printed by the command.
#define TT_MAX_VALUES 24
typedef struct tt_progress {
    int64_t step, steps;   // done, of so many
    int64_t epoch, epochs; // this one from 1, of so many; 0: counted in steps
    int64_t rows;          // of data seen in this epoch so far
    int64_t epoch_rows;    // of so many
    double loss;           // of the epoch so far; validation: of the data set
    int n_metrics;
    const char *names[TT_N_METRICS];
    double metrics[TT_N_METRICS];
    double lr;
    double samples_per_second;
    double seconds;      // since the fit began
    bool has_validation; // the last one made
    double validation_loss;
    double validation[TT_N_METRICS]; // named as metrics
    double step_loss;                // of this step alone
    double gradient_norm;            // with clip_global, else 0
    double loss_scale;               // of this step, with precision f16, else 0
    bool is_skipped;                 // this step was not applied
} tt_progress;

typedef enum tt_moment {
    TT_AT_STEP = 0, // after every n steps
    TT_AT_EPOCH = 1,
    TT_AT_VALIDATION = 2,
    TT_AT_END = 3,
} tt_moment;
// Returns TT_OK to go on, TT_ESTOP to end the fit (which then succeeds), or an error.
typedef tt_status (*tt_callback_fn)(void *user, tt_model *m, const tt_progress *p);
typedef struct tt_callback {
    tt_moment at;
    int64_t every; // steps or epochs; default 1
    tt_callback_fn fn;
    void *user;
} tt_callback;

typedef enum tt_nan {
    TT_NAN_STOP = 0,     // the fit fails, naming step and first layer; the step is not applied
    TT_NAN_SKIP = 1,     // the step is not applied; told once a hundred
    TT_NAN_CONTINUE = 2, // as if nothing had happened
} tt_nan;

// Watches a value: "loss", "accuracy", "validation_loss", "validation_accuracy".
typedef struct tt_watch {
    const char *value; // default validation_loss, without validation loss
    bool max;          // better is higher; default: by name
    int patience;      // epochs (or validations) without a better value; 0: off
    double min_delta;  // better by at least so much
    double factor;     // plateau: times the learning rate; default 0.1
    double min_lr;     // plateau: not below this
    bool restore;      // early stopping: load the best weights at the end
} tt_watch;

typedef struct tt_fit_opts {
    size_t opts_size;
    int64_t epochs;         // default 1; or
    int64_t steps;          // so many steps, whatever epochs they take
    int64_t batch;          // rows of a micro-step over all devices; default: the data set's
    int64_t accumulate;     // micro-steps of one update; must divide the lanes; default 1
    tt_data *validate;      // after each epoch, or
    int64_t validate_every; // so many steps
    int64_t validate_rows;  // at most so many records; default: all
    tt_callback callbacks[16];
    int n_callbacks;
    tt_watch early_stop;
    tt_watch plateau;
    tt_nan nan;
    const char *checkpoints; // folder; NULL: none are written
    int64_t save_every;      // steps; default: each epoch
    int keep;                // the newest so many; default 3
    tt_watch best;           // value of the best one, kept besides; patience is not looked at
    bool resume;             // from the newest in the folder; from step 0 if there is none at all
    const char *job;         // text kept in the checkpoint's manifest
    int64_t profile;         // measure so many steps after the third; tt_fit_profile() prints them
    bool hashes;             // keep hashes per node and lane (tt_model_get_session)
    bool trace;              // record when each entry ran (tt_trace_write on that session)
    int64_t check_every;     // steps after which copies of variables are compared; default: saves
    bool restart; // from step 0; checkpoints in the folder are moved to "<checkpoints>.old-<n>"
} tt_fit_opts;
TT_API tt_status tt_fit_with(tt_model *m, tt_data *train, const tt_fit_opts *opts);
#define tt_fit(...) TT_CALL2(tt_fit, __VA_ARGS__, )

// How a fit went.
typedef struct tt_fit_report {
    tt_progress last;
    int64_t steps, epochs, skipped; // skipped: steps that were not applied
    double first_step_seconds;      // from the call to the end of the first step
    double step_ms_median;
    double seconds, compute_seconds, data_seconds, checkpoint_seconds, validate_seconds;
    double samples_per_second;
    tt_hash weights;
    bool is_stopped;   // by a callback or early stopping
    const char *saved; // newest checkpoint, "" if none; borrowed until the next fit or compile
    int slowest;       // the device with most work of its own, which others wait for; -1: only one
} tt_fit_report;
TT_API tt_status tt_fit_report_get(tt_model *m, tt_fit_report *out); // of the last fit

/*
 * How one device spent the steps of the last fit, in seconds: the parts add up to the whole. A core
 * that several devices share is in each one's time.
 */
typedef struct tt_device_times {
    char name[32];
    double seconds;         // of the steps and of waiting for their data
    double compute;         //
    double communication;   // receiving, adding up and gathering what other devices made
    double waiting;         // for other devices
    double waiting_for[64]; // the same by device
    double data;            // the fit waited for data
    double idle;            // nothing to do
} tt_device_times;
TT_API tt_status tt_fit_device_times(tt_model *m, int device, tt_device_times *out);
// Time per op, layer and device, and one sentence; free with tt_string_free().
TT_API char *tt_fit_profile(tt_model *m, bool json);

/*
 * Asks a fit to end: after the step in flight it saves and returns TT_ESTOP, the context staying
 * usable after tt_clear_error(). Safe in a signal handler.
 */
TT_API void tt_request_end(tt_ctx *ctx);

typedef struct tt_evaluate_opts {
    size_t opts_size;
    int64_t batch;      // default: the data set's
    int64_t rows;       // at most; default: all
    bool ema;           // with the moving average of the weights
    int64_t accumulate; // so many batches make one sum, as in a fit; default 1
} tt_evaluate_opts;
typedef struct tt_evaluation {
    double loss;
    int64_t rows;
    int n_metrics;
    const char *names[TT_N_METRICS];
    double metrics[TT_N_METRICS];
} tt_evaluation;
TT_API tt_status tt_evaluate_with(tt_model *m, tt_data *data, tt_evaluation *out,
                                  const tt_evaluate_opts *opts);
#define tt_evaluate(...) TT_CALL3(tt_evaluate, __VA_ARGS__, )

/*
 * Runs the model on n records; out has room for n rows of the first output. Any batch, same bits. A
 * model with several inputs or outputs takes them from the options, in its order: x and out are
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

// After tt_compile(): one update from one global batch, given as one array per input and target.
TT_API tt_status tt_train_step(tt_model *m, const tt_batch_data *batch, tt_progress *out);

/*
 * How the gradient of a mean of count terms is made without a division per lane: the sum of the
 * terms is derived with a seed of 1 / P (tt_grad()), P the power of two not below count, which
 * loses no bit, and its gradients, once they are whole, are multiplied by scale, P / count
 * (tt_run(.grad_scale) or tt_all_reduce(.factor)). A loop that does so has the bits of tt_fit().
 */
typedef struct tt_mean_factors {
    float seed, scale;
} tt_mean_factors;
TT_API tt_mean_factors tt_mean_factors_of(int64_t count);

TT_API tt_session *tt_model_get_session(tt_model *m);      // of the training graph; NULL before
TT_API tt_graph *tt_model_get_train_graph(tt_model *m);    // NULL before tt_compile()
TT_API tt_status tt_model_hash(tt_model *m, tt_hash *out); // all weights, no optimizer state

// ---- weights in and out ----------------------------------------------------------------------

// A folder with weights, optimizer state and a manifest; replaced as a whole. See docs/checkpoints.
TT_API tt_status tt_save(tt_model *m, const char *path);
// How a file of weights lays out matrices and kernels.
typedef enum tt_weight_layout {
    TT_WEIGHTS_AUTO = 0,  // what the file says, or its shapes; what neither says is refused
    TT_WEIGHTS_TUTTI = 1, // [in, out]; kernels [height, width, in, out]
    TT_WEIGHTS_TORCH = 2, // PyTorch's: [out, in]; kernels [out, in, height, width]
} tt_weight_layout;
typedef struct tt_load_opts {
    size_t opts_size;
    bool partial;     // weights missing in the file, or unknown to the model, are left alone
    const char *map;  // "old.*=new.*, ...": names in the file to the model's; or "huggingface_gpt2"
    const char *only; // patterns of the model's weights that are loaded
    tt_weight_layout layout; // of a file that is no checkpoint
} tt_load_opts;
/*
 * From what tt_save() or a fit wrote, or from one safetensors file (weights only). Weights from
 * PyTorch are transposed where it lays them out otherwise.
 */
TT_API tt_status tt_load_with(tt_model *m, const char *path, const tt_load_opts *opts);
#define tt_load(...) TT_CALL2(tt_load, __VA_ARGS__, )
// One plain safetensors file, for other programs.
TT_API tt_status tt_export(tt_model *m, const char *path);

#ifdef __cplusplus
}
#endif
#endif
