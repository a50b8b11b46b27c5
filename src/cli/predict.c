/*
 * predict.c - tutti predict: runs a trained model on records: classes by name with probabilities,
 * or values in the target's own units.
 */
#include "cli/generate.h"
#include "cli/input.h"
#include "cli/predictions.h"
#include "cli/progress.h"
#include "cli/ranks.h"
#include "data/images.h"
#include <string.h>
#include <unistd.h>

#define BATCH 256

typedef struct prediction {
    cli_model *m;
    const cli_args *args;
    cli_predictions out;
    int input[TTI_MAX_INPUTS]; // fields of the data that is open
    int label;                 // -1: there is none
    tt_field fields[TT_MAX_FIELDS];
    float *values[TTI_MAX_INPUTS]; // of a batch, by output
    int64_t left;                  // records still to be shown; below 0: all
    int64_t all, told_ns;          // for the progress line
} prediction;

static bool is_integer(tt_dtype t)
{
    return t == TT_I32 || t == TT_I64 || t == TT_U8;
}

// The field of labels, where the first output is classes and the data has them.
static int find_label(const prediction *p, const tt_data *d, tt_field fields[TT_MAX_FIELDS])
{
    const tti_use *u = tti_use_get(p->m->model);
    tt_port port;
    int n = tt_data_fields(d, fields);
    if (u == NULL || tt_model_output(p->m->model, 0, &port) != TT_OK ||
        port.meaning != TT_MEANS_CLASSES || u->outputs[0].target < 0)
        return -1;
    for (int i = 0; i < n; i++)
        if (strcmp(fields[i].name, u->fields[u->outputs[0].target].field.name) == 0 &&
            is_integer(fields[i].dtype) && tt_shape_count(&fields[i].shape) == 1)
            return i;
    return -1;
}

static int64_t label_at(const prediction *p, const void *field, int64_t row)
{
    switch (p->fields[p->label].dtype) {
    case TT_I32:
        return ((const int32_t *)field)[row];
    case TT_I64:
        return ((const int64_t *)field)[row];
    default:
        return ((const uint8_t *)field)[row];
    }
}

// One living line on a terminal, while the predictions go elsewhere.
static void tell_progress(prediction *p, int64_t done, bool over)
{
    int64_t now = tti_now_ns();
    if (p->args->output == NULL || p->args->quiet || !cli_is_first(p->m->j.ctx) ||
        isatty(STDERR_FILENO) == 0 || (!over && now - p->told_ns < 100000000))
        return;
    p->told_ns = now;
    fprintf(stderr, over ? "\r\033[K" : "\r%lld of %lld records\033[K", (long long)done,
            (long long)p->all);
}

static tt_status predict_batch(prediction *p, const char *file, const tt_data *d,
                               const tt_batch_data *b, int64_t rows)
{
    tt_predict_opts o = {.opts_size = sizeof(o), .batch = BATCH};
    const float *row[TTI_MAX_INPUTS];
    tt_model *m = p->m->model;
    for (int i = 0; i < m->n_inputs; i++)
        o.inputs[i] = b->fields[p->input[i]];
    for (int i = 0; i < p->out.n_outputs; i++)
        o.outputs[i] = p->values[i];
    TT_TRY(tt_predict_with(m, NULL, rows, NULL, &o));
    for (int i = 0; i < p->out.n_outputs; i++)
        TT_TRY(tt_model_finish(m, i, p->values[i], rows));
    for (int64_t r = 0; r < rows; r++) {
        int64_t label = p->label >= 0 ? label_at(p, b->fields[p->label], r) : 0;
        for (int i = 0; i < p->out.n_outputs; i++)
            row[i] = p->values[i] + r * p->out.width[i];
        int64_t record = tt_data_order(d, b->epoch, b->first + r);
        const char *path = tti_images_path(d, record);
        cli_predictions_add(&p->out, path != NULL ? path : file, record, row,
                            p->label >= 0 ? &label : NULL);
    }
    return TT_OK;
}

static tt_status predict_data(prediction *p, const char *file, tt_data *d)
{
    int64_t left = tt_data_count(d);
    if (p->left >= 0)
        left = TTI_MIN(left, p->left);
    p->all += left;
    TT_TRY(tt_data_start(d, BATCH, 0));
    for (tt_batch_data b; left > 0; left -= b.rows) {
        TT_TRY(tt_data_next(d, &b));
        b.rows = TTI_MIN(left, b.rows);
        TT_TRY(predict_batch(p, file, d, &b, b.rows));
        if (p->left >= 0)
            p->left -= b.rows;
        tell_progress(p, p->out.n, false);
    }
    tt_data_stop(d);
    return TT_OK;
}

static tt_status begin(prediction *p, const char *file, const tt_data *d, bool several)
{
    TT_TRY(cli_input_match(p->m, file, d, p->input));
    p->label = find_label(p, d, p->fields);
    if (p->out.out != NULL)
        return TT_OK; // it has begun with an earlier file
    TT_TRY(cli_predictions_begin(&p->out, several, p->label >= 0));
    for (int i = 0; i < p->out.n_outputs; i++) {
        p->values[i] = tti_calloc(p->m->j.ctx, (size_t)p->out.width[i] * BATCH, sizeof(float));
        if (p->values[i] == NULL)
            return TT_ENOMEM;
    }
    return TT_OK;
}

// All files as one data set; each is a record, and named.
static tt_status predict_images(prediction *p, const cli_files *files, int *rc)
{
    tt_data *d = NULL;
    tt_status st = cli_input_images(p->m, files->names, files->n, &d);
    if (st == TT_OK)
        st = begin(p, files->names[0], d, true);
    if (st != TT_OK)
        *rc = CLI_BAD_JOB;
    if (st == TT_OK)
        st = predict_data(p, files->names[0], d);
    tt_data_free(d);
    return st;
}

// All files of --input and of the command line, one after another. *rc: the exit code of a file
// that cannot be opened.
static tt_status predict_files(prediction *p, int *rc)
{
    tt_ctx *ctx = p->m->j.ctx;
    cli_files files = {0};
    bool images = cli_input_is_images(p->m);
    tt_status st = TT_OK;
    if (p->args->input != NULL)
        st = cli_files_find(ctx, p->args->input, images, &files);
    for (int i = 1; st == TT_OK && i < p->args->n_words; i++)
        st = cli_files_find(ctx, p->args->words[i], images, &files);
    if (st == TT_OK && images)
        st = predict_images(p, &files, rc);
    for (int64_t i = 0; st == TT_OK && !images && i < files.n && p->left != 0; i++) {
        tt_data *d = NULL;
        st = cli_input_open(p->m, files.names[i], false, p->args->layout, &d);
        if (st != TT_OK)
            *rc = CLI_BAD_JOB;
        if (files.spool[0] != '\0')
            (void)unlink(files.spool); // it is open
        if (st == TT_OK)
            st = begin(p, files.names[i], d, files.n > 1);
        if (st == TT_OK)
            st = predict_data(p, files.names[i], d);
        tt_data_free(d);
    }
    cli_files_free(ctx, &files);
    return st;
}

static tt_status predict(prediction *p, int *rc)
{
    cli_job *j = &p->m->j;
    const char *what;
    tt_data *d = NULL;
    if (p->args->input != NULL || p->args->n_words > 1)
        return predict_files(p, rc);
    tt_status st = cli_model_test_data(p->m, &what, &d);
    if (st == TT_OK && d == NULL)
        st = TT_FAIL(j->ctx, TT_EINVAL, "%s has no data.test; --input FILE names records", j->file);
    if (st != TT_OK)
        *rc = CLI_BAD_JOB;
    if (st == TT_OK)
        st = begin(p, "the job's test data", d, false);
    return st == TT_OK ? predict_data(p, what, d) : st;
}

static int run_model(cli_model *m, const cli_args *args, cli_shown form)
{
    int rc = CLI_FAILED;
    if (args->prompt != NULL && !cli_is_text(m))
        return cli_usage("--prompt needs a model trained on text");
    if (args->prompt != NULL || (cli_is_text(m) && args->input == NULL && args->n_words == 1))
        return cli_code(cli_generate(m, args));
    prediction *p = tti_calloc(m->j.ctx, 1, sizeof(*p));
    if (p == NULL)
        return CLI_FAILED;
    *p = (prediction){.m = m, .args = args, .left = args->count > 0 ? args->count : -1};
    p->out = (cli_predictions){.ctx = m->j.ctx, .model = m->model, .args = args, .form = form};
    tt_status st = cli_predictions_end(&p->out, predict(p, &rc));
    tell_progress(p, p->out.n, true);
    if (st == TT_OK && args->output != NULL)
        cli_wrote(args, args->output, "predictions", m->weights);
    for (int i = 0; i < TTI_MAX_INPUTS; i++)
        tti_free(m->j.ctx, p->values[i]);
    tti_free(m->j.ctx, p);
    return st == TT_OK ? CLI_OK : rc;
}

static int run(const cli_args *args)
{
    cli_model m;
    cli_shown form;
    if (args->layout != NULL && strcmp(args->layout, "nchw") != 0 &&
        strcmp(args->layout, "nhwc") != 0)
        return cli_usage("--layout: '%s' is not one of nchw, nhwc", args->layout);
    if (cli_predictions_form(args, &form) != CLI_OK)
        return CLI_USAGE;
    int rc = cli_model_open(args, args->words[0], false, &m);
    if (rc == CLI_OK && m.model != NULL)
        rc = run_model(&m, args, form);
    return cli_model_close(&m, rc);
}

const cli_verb cli_predict = {
    .name = "predict",
    .words = "MODEL [FILE...]",
    .summary = "run a trained model on new data",
    .help =
        "MODEL is a run (its folder or name), a job file (its newest run is used), a checkpoint,\n"
        "or a file written by tutti convert. The training data is not needed: the model includes\n"
        "its preprocessing.\n"
        "\n"
        "Prints one line per record: its number, the class and its probability, and the label if\n"
        "the data has one. Models that predict numbers print the values, in the units of the\n"
        "training target. The records are those of the files (or --input), or else the job's\n"
        "data.test. A model trained on image files takes images and folders of them. Columns\n"
        "of a CSV file are found by their names; no target is needed. Arrays must have the shape\n"
        "and type that the model was trained on. A model with several inputs takes an .npz file\n"
        "with one array per input, by name.\n"
        "\n"
        "A model that was trained on text generates text: --prompt gives the beginning. The same\n"
        "seed gives the same text on every machine.\n",
    .flags = "json quiet set devices strategy threads isa runs checkpoint input output layout top "
             "all count prompt length temperature seed",
    .min_words = 1,
    .max_words = CLI_MAX_WORDS,
    .joins = true,
    .run = run,
};
