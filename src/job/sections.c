/*
 * sections.c - the forms of a job: which sections there are, and which kinds stand where.
 */
#include "data/data.h"
#include "job/job.h"
#include "train/loss.h"
#include "train/optimizer.h"
#include <string.h>

#define KEYS_END         \
    {                    \
        NULL, NULL, NULL \
    }

// ---- data ------------------------------------------------------------------------------------

// All kinds but the arrays of a program, which no text can name.
static bool source_at(tt_ctx *ctx, int i, tti_schema *out)
{
    const tt_source_def *d;
    for (int k = 0; (d = tt_source_at(ctx, k)) != NULL; k++) {
        if (strcmp(d->name, "memory") == 0)
            continue;
        if (i-- > 0)
            continue;
        *out = (tti_schema){.form = TTI_RECORD,
                            .name = d->name,
                            .help = d->help,
                            .rows = d->options,
                            .main = d->main};
        return true;
    }
    return false;
}

static const tti_schema split = {.form = TTI_RECORD,
                                 .name = TTI_JOB_SPLIT,
                                 .help =
                                     "a part of the training data, which is then not trained on",
                                 .rows = tti_split_options,
                                 .main = "fraction"};

// Test data is not the training data by oversight.
static bool test_source_at(tt_ctx *ctx, int i, tti_schema *out)
{
    if (i == 0) {
        *out = split;
        return true;
    }
    if (!source_at(ctx, i - 1, out))
        return false;
    out->other[0] = "split";
    out->other[1] = "test";
    return true;
}

static bool transform_at(tt_ctx *ctx, int i, tti_schema *out)
{
    (void)ctx;
    const tti_transform_def *d = tti_transform_at(i);
    if (d == NULL)
        return false;
    *out = (tti_schema){
        .form = TTI_RECORD, .name = d->name, .help = d->help, .rows = d->options, .main = d->main};
    return true;
}

static const tti_schema source = {
    .form = TTI_CHOICE, .name = "source", .help = "source of the training data", .at = source_at};
static const tti_schema test_source = {
    .form = TTI_CHOICE,
    .name = "source",
    .help = "source of the validation or test data, or split: a part of the training data",
    .at = test_source_at};
static const tti_schema transform = {.form = TTI_CHOICE, .name = "transform", .at = transform_at};
static const tti_schema transforms = {
    .form = TTI_LIST_OF,
    .help = "transforms of each record, in order; random ones apply to training data only",
    .item = &transform};
static const tti_key data_keys[] = {{"train", &source, NULL},
                                    {"validate", &test_source, NULL},
                                    {"test", &test_source, NULL},
                                    {"transform", &transforms, ""},
                                    KEYS_END};
static const tti_schema data = {.form = TTI_RECORD,
                                .name = "data",
                                .help = "training, validation and test data, and how to read them",
                                .rows = tti_job_data_rows,
                                .keys = data_keys};

// ---- model -----------------------------------------------------------------------------------

static bool layer_at(tt_ctx *ctx, int i, tti_schema *out);
static const char *const layer_beside[] = {"name", "from", "share", "device", NULL};
static const tti_schema layer = {
    .form = TTI_CHOICE, .name = "layer", .at = layer_at, .beside = layer_beside};
static const tti_schema layers = {.form = TTI_LIST_OF, .help = "layers, in order", .item = &layer};
static const tti_key residual_keys[] = {{"layers", &layers, ""}, KEYS_END};
static const tti_schema residual = {
    .form = TTI_RECORD,
    .name = "residual",
    .help = "residual connection: x + f(x), where f is a list of layers",
    .rows = tti_job_residual_rows,
    .keys = residual_keys,
    .main = "layers"};

static bool layer_at(tt_ctx *ctx, int i, tti_schema *out)
{
    (void)ctx;
    if (i == 0) {
        *out = residual;
        return true;
    }
    const tti_layer_def *d = tti_layer_at(i - 1);
    if (d == NULL)
        return false;
    *out = (tti_schema){.form = TTI_RECORD,
                        .name = d->name,
                        .help = d->help,
                        .rows = d->options,
                        .more = tti_job_layer_rows,
                        .main = d->main,
                        .later = "vocab"};
    return true;
}

static const tti_schema input = {.form = TTI_RECORD, .rows = tti_job_input_rows};
static const tti_schema inputs = {
    .form = TTI_NAMED,
    .help = "the model's inputs, named after fields of the data; a single input may have any name",
    .item = &input};
static const tti_key functional_keys[] = {
    {"inputs", &inputs, ""}, {"layers", &layers, ""}, KEYS_END};
static const tti_schema functional = {
    .form = TTI_RECORD, .rows = tti_job_outputs_rows, .keys = functional_keys};
static const tti_schema model = {.form = TTI_LIST_OF,
                                 .name = "model",
                                 .help = "the model: a list of layers, or one predefined model",
                                 .item = &layer,
                                 .alt = &functional};

// ---- train -----------------------------------------------------------------------------------

static bool loss_at(tt_ctx *ctx, int i, tti_schema *out)
{
    (void)ctx;
    int kind = tti_loss_at(i);
    if (kind < 0)
        return false;
    *out = (tti_schema){.form = TTI_RECORD,
                        .name = tti_loss_name((tt_loss_kind)kind),
                        .help = tti_loss_help((tt_loss_kind)kind),
                        .rows = tti_loss_options,
                        .takes = tti_loss_takes};
    return true;
}

static bool metric_at(tt_ctx *ctx, int i, tti_schema *out)
{
    (void)ctx;
    const tti_metric_def *d = tti_metric_at(i);
    if (d == NULL)
        return false;
    *out = (tti_schema){.form = TTI_RECORD, .name = d->name, .help = d->help};
    return true;
}

static bool schedule_at(tt_ctx *ctx, int i, tti_schema *out)
{
    (void)ctx;
    const tti_schedule_def *d = tti_schedule_at(i);
    if (d == NULL)
        return false;
    *out = (tti_schema){.form = TTI_RECORD, .name = d->name, .help = d->help, .rows = d->options};
    return true;
}

static const tti_schema schedule = {
    .form = TTI_CHOICE, .name = "schedule", .help = "learning rate schedule", .at = schedule_at};
static const tti_schema group = {.form = TTI_RECORD, .rows = tti_job_group_rows};
static const tti_schema groups = {
    .form = TTI_LIST_OF,
    .help = "settings for groups of weights; the first group that matches a weight applies",
    .item = &group};
static const tti_key optimizer_keys[] = {
    {"schedule", &schedule, "constant"}, {"groups", &groups, ""}, KEYS_END};

static bool optimizer_at(tt_ctx *ctx, int i, tti_schema *out)
{
    (void)ctx;
    const tti_optimizer_def *d = tti_optimizer_at(i);
    if (d == NULL)
        return false;
    *out = (tti_schema){.form = TTI_RECORD,
                        .name = d->name,
                        .help = d->help,
                        .rows = d->options,
                        .keys = optimizer_keys};
    return true;
}

static const char *const loss_beside[] = {"output", "target", "weight", NULL};
static const tti_schema loss = {.form = TTI_CHOICE,
                                .name = "loss",
                                .help = "the loss to minimise",
                                .at = loss_at,
                                .beside = loss_beside};
static const tti_schema losses = {
    .form = TTI_LIST_OF, .help = "several losses; their weighted sum is minimised", .item = &loss};
static const tti_schema optimizer = {
    .form = TTI_CHOICE, .name = "optimizer", .help = "the optimizer", .at = optimizer_at};
static const tti_schema metric = {.form = TTI_CHOICE, .name = "metric", .at = metric_at};
static const tti_schema metrics = {
    .form = TTI_LIST_OF, .help = "metrics to report beside the loss", .item = &metric};
static const tti_schema early_stop = {.form = TTI_RECORD,
                                      .help = "stop when a metric stops improving",
                                      .rows = tti_job_early_stop_rows};
static const tti_schema plateau = {.form = TTI_RECORD,
                                   .help = "lower the learning rate when a metric stops improving",
                                   .rows = tti_job_plateau_rows};
static const tti_key train_keys[] = {{"loss", &loss, NULL},
                                     {"losses", &losses, NULL},
                                     {"optimizer", &optimizer, "sgd"},
                                     {"metrics", &metrics, ""},
                                     {"early_stop", &early_stop, ""},
                                     {"plateau", &plateau, ""},
                                     KEYS_END};
static const tti_schema train = {.form = TTI_RECORD,
                                 .name = "train",
                                 .help = "loss, optimizer, batch size and length of training",
                                 .rows = tti_job_train_rows,
                                 .keys = train_keys};

// ---- the rest --------------------------------------------------------------------------------

static const tti_schema init = {
    .form = TTI_RECORD, .help = "weights to start from", .rows = tti_job_init_rows, .main = "file"};
static const tti_schema checkpoint = {.form = TTI_RECORD,
                                      .help = "how often to save checkpoints, and how many to keep",
                                      .rows = tti_job_checkpoint_rows};
static const tti_schema pin = {.form = TTI_RECORD, .rows = tti_job_pin_rows, .main = "device"};
static const tti_schema pins = {.form = TTI_NAMED,
                                .help = "devices by layer name pattern: {block_0*: local:0}; the "
                                        "first pattern that matches applies",
                                .item = &pin};
static const tti_key distribute_keys[] = {{"pins", &pins, ""}, KEYS_END};
static const tti_schema distribute = {.form = TTI_RECORD,
                                      .help = "devices and parallelism; only lanes, reduce, wire "
                                              "and the choice of CPU or GPU change the result",
                                      .rows = tti_job_distribute_rows,
                                      .more = tti_spread_rows,
                                      .keys = distribute_keys};
static const tti_schema output = {
    .form = TTI_RECORD, .help = "where results are written", .rows = tti_job_output_rows};
static const tti_key job_keys[] = {{"data", &data, ""},
                                   {"model", &model, NULL},
                                   {"train", &train, NULL},
                                   {"init", &init, ""},
                                   {"checkpoint", &checkpoint, ""},
                                   {"distribute", &distribute, ""},
                                   {"output", &output, ""},
                                   KEYS_END};
const tti_schema tti_job_schema = {
    .form = TTI_RECORD,
    .name = "job",
    .help = "A job file is YAML; it describes the data, the model and the training. Its keys:",
    .rows = tti_job_top_rows,
    .keys = job_keys};
