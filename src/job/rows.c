/*
 * rows.c - the plain keys of a job. The rows are the documentation: tutti help shows them.
 */
#include "job/job.h"
#include "model/layer.h"

#define MANY 1e18 // of a count
#define AT(name_, type_, struct_, field_, value_, help_, min_, max_)              \
    {                                                                             \
        name_, type_, value_, help_, offsetof(struct_, field_), min_, max_, NULL, \
    }
#define ROW(name_, type_, struct_, ...) AT(#name_, type_, struct_, name_, __VA_ARGS__)

#define TOP(name_, type_, ...) ROW(name_, type_, tti_job_top, __VA_ARGS__)
const tt_option tti_job_top_rows[] = {
    TOP(name, TT_OPT_TEXT, "", "name of the run; default: the job file's name", 0, 0),
    TOP(seed, TT_OPT_INT, "0", "random seed for initial weights, shuffling and dropout", 0, MANY),
    TT_OPTION_END,
};

#define DATA(name_, type_, ...) ROW(name_, type_, tti_job_data, __VA_ARGS__)
const tt_option tti_job_data_rows[] = {
    DATA(dir, TT_OPT_TEXT, "",
         "data folder: holds the MNIST or CIFAR-10 files, or folders mnist/ and cifar10/; file "
         "names that do not begin with / or . are relative to it",
         0, 0),
    DATA(shuffle, TT_OPT_BOOL, "true", "shuffle the training data every epoch", 0, 0),
    DATA(workers, TT_OPT_INT32, "1", "number of threads that load data in the background; 0: none",
         0, 64),
    DATA(prefetch, TT_OPT_INT32, "0", "number of batches to load ahead; 0: chosen from their size",
         0, 4096),
    DATA(compare_all, TT_OPT_BOOL, "false",
         "compare every record between processes at the start; by default a sample is compared", 0,
         0),
    DATA(balance, TT_OPT_BOOL, "false",
         "repeat training records so that every class of y has as many as the largest", 0, 0),
    TT_OPTION_END,
};

#define FIT(name_, type_, ...)     AT(#name_, type_, tti_job_train, fit.name_, __VA_ARGS__)
#define COMPILE(name_, type_, ...) AT(#name_, type_, tti_job_train, compile.name_, __VA_ARGS__)
static const char *const precision_words[] = {"f32", "bf16", "f16", NULL};
static const char *const recompute_words[] = {"budget", NULL}; // a map of one: {budget: 4GiB}
static const char *const nan_words[] = {"stop", "skip", "continue", NULL};
const tt_option tti_job_train_rows[] = {
    FIT(epochs, TT_OPT_INT, "0",
        "number of passes over the training data; 0: one pass, or as many as steps needs", 0, MANY),
    FIT(steps, TT_OPT_INT, "0", "number of weight updates, instead of epochs; 0: use epochs", 0,
        MANY),
    FIT(batch, TT_OPT_INT, "32", "global batch size: records per step, summed over all devices", 1,
        1 << 30),
    FIT(accumulate, TT_OPT_INT, "1",
        "gradient accumulation: number of batches per weight update; must divide the number of "
        "lanes",
        1, 1 << 20),
    FIT(check_every, TT_OPT_INT, "0",
        "compare the replicas' weights every N steps; 0: at each checkpoint", 0, MANY),
    FIT(validate_every, TT_OPT_INT, "0", "validate every N steps; 0: after each epoch", 0, MANY),
    FIT(validate_rows, TT_OPT_INT, "0", "number of records to validate on; 0: all", 0, MANY),
    {"nan", TT_OPT_ENUM, "stop", "what to do when the loss or a gradient is NaN or infinite",
     offsetof(tti_job_train, fit.nan), 0, 0, nan_words},
    FIT(divergence, TT_OPT_FLOAT, "1000",
        "stop when the loss stays above this many times its first value (at least 1); 0: never", 0,
        1e300),
    COMPILE(top_k, TT_OPT_INT32, "5", "the k of the metric top_k", 1, 1 << 30),
    COMPILE(thresholds, TT_OPT_INT32, "200", "number of thresholds of the metrics auc and auc_pr",
            2, 4096),
    COMPILE(threshold, TT_OPT_FLOAT, "0.5",
            "probability from which binary metrics count a prediction as yes", 1e-6, 0.999999),
    COMPILE(freeze, TT_OPT_TEXT, "", "weights to keep frozen, as name patterns: [conv2d_*]", 0, 0),
    {"precision", TT_OPT_ENUM, "f32",
     "element type of matrix products and activations in training; weights stay f32",
     offsetof(tti_job_train, compile.precision), 0, 0, precision_words},
    {"recompute", TT_OPT_TEXT, "none",
     "recompute activations in the backward pass to save memory: none, all, the layers [block.*], "
     "or as needed for {budget: 4GiB}",
     offsetof(tti_job_train, compile.recompute), 0, 0, recompute_words},
    TT_OPTION_END,
};

#define WATCH(name_, type_, ...) ROW(name_, type_, tt_watch, __VA_ARGS__)
static const char value_help[] = "metric to watch: loss, accuracy, validation_loss, ...; default: "
                                 "validation_loss with validation data, else loss";
const tt_option tti_job_early_stop_rows[] = {
    WATCH(value, TT_OPT_TEXT, "", value_help, 0, 0),
    WATCH(max, TT_OPT_BOOL, "false",
          "higher is better; set automatically for accuracy and similar metrics", 0, 0),
    WATCH(patience, TT_OPT_INT32, "0", "number of checks without improvement before acting; 0: off",
          0, 1 << 30),
    WATCH(min_delta, TT_OPT_FLOAT, "0", "smallest change that counts as an improvement", 0, 1e300),
    WATCH(restore, TT_OPT_BOOL, "false", "restore the best weights at the end", 0, 0),
    TT_OPTION_END,
};
const tt_option tti_job_plateau_rows[] = {
    WATCH(value, TT_OPT_TEXT, "", value_help, 0, 0),
    WATCH(max, TT_OPT_BOOL, "false",
          "higher is better; set automatically for accuracy and similar metrics", 0, 0),
    WATCH(patience, TT_OPT_INT32, "0", "number of checks without improvement before acting; 0: off",
          0, 1 << 30),
    WATCH(min_delta, TT_OPT_FLOAT, "0", "smallest change that counts as an improvement", 0, 1e300),
    WATCH(factor, TT_OPT_FLOAT, "0.1", "factor on the learning rate", 1e-6, 1),
    WATCH(min_lr, TT_OPT_FLOAT, "0", "lower limit of the learning rate", 0, 1e300),
    TT_OPTION_END,
};

#define GROUP(name_, type_, ...) ROW(name_, type_, tt_group, __VA_ARGS__)
const tt_option tti_job_group_rows[] = {
    GROUP(match, TT_OPT_TEXT, NULL, "weights in this group, as name patterns: [\"*.bias\", norm*]",
          0, 0),
    GROUP(lr_scale, TT_OPT_FLOAT, "1", "factor on the learning rate", 0, 1e6),
    GROUP(no_decay, TT_OPT_BOOL, "false", "do not apply weight decay", 0, 0),
    GROUP(weight_decay, TT_OPT_FLOAT, "0", "weight decay of this group; 0: the optimizer's", 0,
          1e6),
    GROUP(l1, TT_OPT_FLOAT, "0", "strength of an L1 penalty: l1 sign(w) is added to the gradient",
          0, 1e6),
    GROUP(max_norm, TT_OPT_FLOAT, "0",
          "largest norm of the weights of each unit (all axes but the last), kept after each step; "
          "0: off",
          0, 1e30),
    GROUP(non_negative, TT_OPT_BOOL, "false", "negative weights become 0 after each step", 0, 0),
    TT_OPTION_END,
};

static const char *const layout_words[] = {"auto", "tutti", "torch", NULL};
#define LOAD(name_, type_, ...) AT(#name_, type_, tti_job_init, load.name_, __VA_ARGS__)
const tt_option tti_job_init_rows[] = {
    ROW(file, TT_OPT_TEXT, tti_job_init, "",
        "weights to load: a run (its folder or name), a job, a checkpoint, a safetensors or .pt "
        "file",
        0, 0),
    LOAD(map, TT_OPT_TEXT, "",
         "rename rules from names in the file to names in the model: [old.*=new.*], or "
         "huggingface_gpt2",
         0, 0),
    LOAD(only, TT_OPT_TEXT, "", "weights to load, as name patterns; default: all", 0, 0),
    LOAD(partial, TT_OPT_BOOL, "false", "ignore weights that only the file or only the model has",
         0, 0),
    {"layout", TT_OPT_ENUM, "auto",
     "layout of matrices and kernels in the file; torch is transposed, auto is recognised from the "
     "file",
     offsetof(tti_job_init, load.layout), 0, 0, layout_words},
    TT_OPTION_END,
};

#define KEEP(name_, type_, ...) ROW(name_, type_, tti_job_checkpoint, __VA_ARGS__)
const tt_option tti_job_checkpoint_rows[] = {
    KEEP(every, TT_OPT_INT, "0", "save a checkpoint every N steps; 0: after each epoch", 0, MANY),
    KEEP(keep, TT_OPT_INT32, "3", "number of newest checkpoints to keep", 1, 1 << 20),
    KEEP(best, TT_OPT_TEXT, "",
         "also keep the best checkpoint by this metric; default: validation_loss with validation "
         "data, else loss",
         0, 0),
    TT_OPTION_END,
};

#define OPEN(name_, type_, ...) ROW(name_, type_, tti_job_distribute, __VA_ARGS__)
#define TTI_STRATEGY(name)      #name,
const char *const tti_job_strategies[] = {
#include "strategy/strategies.def"
    NULL};
#undef TTI_STRATEGY
const tt_option tti_job_distribute_rows[] = {
    {"strategy", TT_OPT_ENUM, "single", "how training uses several devices",
     offsetof(tti_job_distribute, strategy), 0, 0, tti_job_strategies},
    OPEN(devices, TT_OPT_TEXT, "cpu:0",
         "devices to use: cpu:0, cpu:0*2@512MiB, gpu:0, gpu:0*2@40%, all", 0, 0),
    OPEN(lanes, TT_OPT_INT32, "8",
         "number of fixed slices of the global batch; it fixes the order of sums, so it changes "
         "bits",
         1, TT_MAX_LANES),
    OPEN(threads, TT_OPT_INT32, "0", "CPU threads, shared by all CPU devices; 0: one per core", 0,
         4096),
    OPEN(workers, TT_OPT_TEXT, "",
         "elastic: how many processes the job may have, as 2..8; tutti run goes on while that many "
         "are left",
         0, 0),
    OPEN(deadline_ms, TT_OPT_INT, "0",
         "longest wait without any progress, in ms, before a device or rank counts as stuck; "
         "0: 60000",
         0, 366.0 * 86400 * 1000),
    TT_OPTION_END,
};

const tt_option tti_job_pin_rows[] = {
    {"device", TT_OPT_TEXT, NULL,
     "device of these layers: cpu:1, or local:1 (device 1 of each replica)", 0, 0, 0, NULL},
    TT_OPTION_END,
};

#define OUTPUT(name_, type_, ...) ROW(name_, type_, tti_job_output, __VA_ARGS__)
const tt_option tti_job_output_rows[] = {
    OUTPUT(dir, TT_OPT_TEXT, "runs", "folder in which run folders are created", 0, 0),
    OUTPUT(tensorboard, TT_OPT_BOOL, "true", "write TensorBoard event files", 0, 0),
    OUTPUT(histograms, TT_OPT_BOOL, "false",
           "also write histograms of all weights for TensorBoard after each epoch", 0, 0),
    OUTPUT(images, TT_OPT_INT32, "0",
           "also write this many of the first training images for TensorBoard", 0, 1000),
    OUTPUT(trial, TT_OPT_BOOL, "true",
           "measure at the start and warn if one device would be faster than several", 0, 0),
    OUTPUT(notify, TT_OPT_TEXT, "",
           "shell command to run when the run has ended, failed, diverged or stalled; its "
           "environment has TUTTI_EVENT, TUTTI_RUN, TUTTI_STEP and TUTTI_MESSAGE",
           0, 0),
    OUTPUT(webhook, TT_OPT_TEXT, "",
           "address that gets a JSON message by HTTP POST when the run has ended, failed, diverged "
           "or stalled; $NAME: the value of that environment variable",
           0, 0),
    OUTPUT(stall, TT_OPT_FLOAT, "600",
           "seconds without any progress after which a run counts as stalled; 0: never", 0, 1e9),
    OUTPUT(mlflow, TT_OPT_TEXT, "",
           "MLflow tracking server to which the run is sent: http://HOST:5000; $NAME: the value of "
           "that environment variable",
           0, 0),
    OUTPUT(http, TT_OPT_TEXT, "",
           "address that gets the events of the run as JSON by HTTP POST, about once a second; "
           "$NAME: the value of that environment variable",
           0, 0),
    TT_OPTION_END,
};

// ---- of models -------------------------------------------------------------------------------

#define LAYER(name_, type_, ...) ROW(name_, type_, tti_job_layer, __VA_ARGS__)
const tt_option tti_job_layer_rows[] = {
    LAYER(name, TT_OPT_TEXT, "", "name of the layer; default: its type and a number", 0, 0),
    LAYER(from, TT_OPT_TEXT, "", "layers or inputs to read from; default: the layer before", 0, 0),
    LAYER(share, TT_OPT_TEXT, "", "use the weights of this layer", 0, 0),
    LAYER(device, TT_OPT_TEXT, "",
          "device: cpu:1, or local:1 (device 1 of each replica); default: chosen by the strategy",
          0, 0),
    TT_OPTION_END,
};

#define RESIDUAL(name_, type_, ...) ROW(name_, type_, tti_job_residual, __VA_ARGS__)
const tt_option tti_job_residual_rows[] = {
    TTI_ACT_ROW(tti_job_residual, "linear"),
    RESIDUAL(name, TT_OPT_TEXT, "", "name of the result", 0, 0),
    RESIDUAL(from, TT_OPT_TEXT, "", "layer that gives x; default: the layer before", 0, 0),
    RESIDUAL(device, TT_OPT_TEXT, "", "device of all its layers; default: chosen by the strategy",
             0, 0),
    TT_OPTION_END,
};

#define INPUT(name_, type_, ...) ROW(name_, type_, tt_field, __VA_ARGS__)
const tt_option tti_job_input_rows[] = {
    INPUT(shape, TT_OPT_SHAPE, "[]",
          "shape of one record; default: that of the data field with this name", 0, 0),
    INPUT(dtype, TT_OPT_DTYPE, "f32", "element type, if shape is given", 0, 0),
    TT_OPTION_END,
};

const tt_option tti_job_outputs_rows[] = {
    {"outputs", TT_OPT_TEXT, "", "names of the layers that are outputs; default: the last layer", 0,
     0, 0, NULL},
    TT_OPTION_END,
};
