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
    TOP(name, TT_OPT_TEXT, "", "of the run; default: the file's name", 0, 0),
    TOP(seed, TT_OPT_INT, "0", "of initial weights, order and dropout", 0, MANY),
    TT_OPTION_END,
};

#define DATA(name_, type_, ...) ROW(name_, type_, tti_job_data, __VA_ARGS__)
const tt_option tti_job_data_rows[] = {
    DATA(dir, TT_OPT_TEXT, "",
         "folder of MNIST's or CIFAR-10's files (or of mnist/, cifar10/), and of files that do not "
         "begin with / or .",
         0, 0),
    DATA(shuffle, TT_OPT_BOOL, "true", "a new order of training data each epoch", 0, 0),
    DATA(workers, TT_OPT_INT32, "1", "threads that read ahead; 0: none", 0, 64),
    DATA(prefetch, TT_OPT_INT32, "0", "batches read ahead; 0: by their size", 0, 4096),
    TT_OPTION_END,
};

#define FIT(name_, type_, ...)     AT(#name_, type_, tti_job_train, fit.name_, __VA_ARGS__)
#define COMPILE(name_, type_, ...) AT(#name_, type_, tti_job_train, compile.name_, __VA_ARGS__)
static const char *const precision_words[] = {"f32", "bf16", "f16", NULL};
static const char *const recompute_words[] = {"budget", NULL}; // a map of one: {budget: 4GiB}
static const char *const nan_words[] = {"stop", "skip", "continue", NULL};
const tt_option tti_job_train_rows[] = {
    FIT(epochs, TT_OPT_INT, "0", "times all data is seen; 0: once, or as steps says", 0, MANY),
    FIT(steps, TT_OPT_INT, "0", "updates, whatever epochs they take; 0: by epochs", 0, MANY),
    FIT(batch, TT_OPT_INT, "32", "rows of a step over all devices", 1, 1 << 30),
    FIT(accumulate, TT_OPT_INT, "1", "steps of one update; divides the lanes", 1, 1 << 20),
    FIT(check_every, TT_OPT_INT, "0", "steps between comparisons of replicas; 0: at checkpoints", 0,
        MANY),
    FIT(validate_every, TT_OPT_INT, "0", "steps between validations; 0: each epoch", 0, MANY),
    FIT(validate_rows, TT_OPT_INT, "0", "records of a validation; 0: all", 0, MANY),
    {"nan", TT_OPT_ENUM, "stop", "when a loss is not finite", offsetof(tti_job_train, fit.nan), 0,
     0, nan_words},
    COMPILE(top_k, TT_OPT_INT32, "5", "k of the metric top_k", 1, 1 << 30),
    COMPILE(freeze, TT_OPT_TEXT, "", "patterns of weights that stay: [conv2d_*]", 0, 0),
    {"precision", TT_OPT_ENUM, "f32", "of products in training; weights stay f32",
     offsetof(tti_job_train, compile.precision), 0, 0, precision_words},
    {"recompute", TT_OPT_TEXT, "none",
     "activations computed again, not kept: none, all, layers [block.*], {budget: 4GiB}",
     offsetof(tti_job_train, compile.recompute), 0, 0, recompute_words},
    TT_OPTION_END,
};

#define WATCH(name_, type_, ...) ROW(name_, type_, tt_watch, __VA_ARGS__)
static const char value_help[] = "loss, accuracy, validation_loss, ...; default: validation_loss "
                                 "if there is validation, else loss";
const tt_option tti_job_early_stop_rows[] = {
    WATCH(value, TT_OPT_TEXT, "", value_help, 0, 0),
    WATCH(max, TT_OPT_BOOL, "false", "higher is better; known of accuracy and its like", 0, 0),
    WATCH(patience, TT_OPT_INT32, "0", "looks without a better value; 0: off", 0, 1 << 30),
    WATCH(min_delta, TT_OPT_FLOAT, "0", "better by at least so much", 0, 1e300),
    WATCH(restore, TT_OPT_BOOL, "false", "end with the best weights", 0, 0),
    TT_OPTION_END,
};
const tt_option tti_job_plateau_rows[] = {
    WATCH(value, TT_OPT_TEXT, "", value_help, 0, 0),
    WATCH(max, TT_OPT_BOOL, "false", "higher is better; known of accuracy and its like", 0, 0),
    WATCH(patience, TT_OPT_INT32, "0", "looks without a better value; 0: off", 0, 1 << 30),
    WATCH(min_delta, TT_OPT_FLOAT, "0", "better by at least so much", 0, 1e300),
    WATCH(factor, TT_OPT_FLOAT, "0.1", "times the learning rate", 1e-6, 1),
    WATCH(min_lr, TT_OPT_FLOAT, "0", "not below this", 0, 1e300),
    TT_OPTION_END,
};

#define GROUP(name_, type_, ...) ROW(name_, type_, tt_group, __VA_ARGS__)
const tt_option tti_job_group_rows[] = {
    GROUP(match, TT_OPT_TEXT, NULL, "patterns of weights: [\"*.bias\", norm*]", 0, 0),
    GROUP(lr_scale, TT_OPT_FLOAT, "1", "times the learning rate", 0, 1e6),
    GROUP(no_decay, TT_OPT_BOOL, "false", "no weight decay", 0, 0),
    GROUP(weight_decay, TT_OPT_FLOAT, "0", "0: as the optimizer's", 0, 1e6),
    TT_OPTION_END,
};

static const char *const layout_words[] = {"auto", "tutti", "torch", NULL};
#define LOAD(name_, type_, ...) AT(#name_, type_, tti_job_init, load.name_, __VA_ARGS__)
const tt_option tti_job_init_rows[] = {
    ROW(file, TT_OPT_TEXT, tti_job_init, "",
        "run (its folder or name), job, checkpoint or safetensors file", 0, 0),
    LOAD(map, TT_OPT_TEXT, "",
         "names in the file to the model's: [old.*=new.*], or huggingface_gpt2", 0, 0),
    LOAD(only, TT_OPT_TEXT, "", "patterns of weights that are taken; default: all", 0, 0),
    LOAD(partial, TT_OPT_BOOL, "false", "weights that one side lacks are left alone", 0, 0),
    {"layout", TT_OPT_ENUM, "auto",
     "of the file's matrices and kernels: tutti, torch (transposed), auto: as the file says",
     offsetof(tti_job_init, load.layout), 0, 0, layout_words},
    TT_OPTION_END,
};

#define KEEP(name_, type_, ...) ROW(name_, type_, tti_job_checkpoint, __VA_ARGS__)
const tt_option tti_job_checkpoint_rows[] = {
    KEEP(every, TT_OPT_INT, "0", "steps between checkpoints; 0: each epoch", 0, MANY),
    KEEP(keep, TT_OPT_INT32, "3", "the newest so many stay", 1, 1 << 20),
    KEEP(best, TT_OPT_TEXT, "",
         "the best by this value stays too; default: validation_loss, or loss", 0, 0),
    TT_OPTION_END,
};

#define OPEN(name_, type_, ...) ROW(name_, type_, tti_job_distribute, __VA_ARGS__)
#define TTI_STRATEGY(name)      #name,
const char *const tti_job_strategies[] = {
#include "strategy/strategies.def"
    NULL};
#undef TTI_STRATEGY
const tt_option tti_job_distribute_rows[] = {
    {"strategy", TT_OPT_ENUM, "single", "what several devices do",
     offsetof(tti_job_distribute, strategy), 0, 0, tti_job_strategies},
    OPEN(devices, TT_OPT_TEXT, "cpu:0", "cpu:0, cpu:0*2@512MiB, gpu:0, gpu:0*2@40%, all", 0, 0),
    OPEN(lanes, TT_OPT_INT32, "8", "slices of the batch that sums follow", 1, TT_MAX_LANES),
    OPEN(threads, TT_OPT_INT32, "0", "cores shared by all devices; 0: all", 0, 4096),
    TT_OPTION_END,
};

const tt_option tti_job_pin_rows[] = {
    {"device", TT_OPT_TEXT, NULL, "cpu:1, or local:1 of each replica", 0, 0, 0, NULL},
    TT_OPTION_END,
};

#define OUTPUT(name_, type_, ...) ROW(name_, type_, tti_job_output, __VA_ARGS__)
const tt_option tti_job_output_rows[] = {
    OUTPUT(dir, TT_OPT_TEXT, "runs", "where run folders are made", 0, 0),
    OUTPUT(tensorboard, TT_OPT_BOOL, "true", "write TensorBoard event files", 0, 0),
    OUTPUT(trial, TT_OPT_BOOL, "true", "say so if one device would be faster than several", 0, 0),
    TT_OPTION_END,
};

// ---- of models -------------------------------------------------------------------------------

#define LAYER(name_, type_, ...) ROW(name_, type_, tti_job_layer, __VA_ARGS__)
const tt_option tti_job_layer_rows[] = {
    LAYER(name, TT_OPT_TEXT, "", "of the layer; default: its kind and a number", 0, 0),
    LAYER(from, TT_OPT_TEXT, "", "layers or inputs it takes; default: the one before", 0, 0),
    LAYER(share, TT_OPT_TEXT, "", "the layer whose weights it uses", 0, 0),
    LAYER(device, TT_OPT_TEXT, "", "cpu:1, or local:1 of each replica; default: by strategy", 0, 0),
    TT_OPTION_END,
};

#define RESIDUAL(name_, type_, ...) ROW(name_, type_, tti_job_residual, __VA_ARGS__)
const tt_option tti_job_residual_rows[] = {
    TTI_ACT_ROW(tti_job_residual, "linear"),
    RESIDUAL(name, TT_OPT_TEXT, "", "of the result", 0, 0),
    RESIDUAL(from, TT_OPT_TEXT, "", "x; default: the layer before", 0, 0),
    RESIDUAL(device, TT_OPT_TEXT, "", "of all its layers; default: by strategy", 0, 0),
    TT_OPTION_END,
};

#define INPUT(name_, type_, ...) ROW(name_, type_, tt_field, __VA_ARGS__)
const tt_option tti_job_input_rows[] = {
    INPUT(shape, TT_OPT_SHAPE, "[]", "of one record; default: of the data's field", 0, 0),
    INPUT(dtype, TT_OPT_DTYPE, "f32", "element type, where shape is given", 0, 0),
    TT_OPTION_END,
};

const tt_option tti_job_outputs_rows[] = {
    {"outputs", TT_OPT_TEXT, "", "names of layers; default: the last one", 0, 0, 0, NULL},
    TT_OPTION_END,
};
