/*
 * predict.c - tutti predict: what a trained model says about records: a class and its probability
 * for classifiers, the output's values for other models.
 */
#include "cli/generate.h"
#include "cli/input.h"
#include "cli/job.h"
#include "cli/report.h"
#include "model/model.h"
#include "train/scalar.h"
#include <stdio.h>
#include <string.h>

#define BATCH 256

// How records become lines.
typedef struct prediction {
    cli_job *j;
    const cli_args *args;
    tt_data *data;
    int input, label; // fields; label -1: there is none
    tt_field fields[TT_MAX_FIELDS];
    int64_t width; // values of one record's output
    bool is_class; // they are scores of classes
    bool is_probability;
    float *values; // of a batch
} prediction;

static int find_field(const tt_field *fields, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(fields[i].name, name) == 0)
            return i;
    return 0; // by position: inputs first
}

static bool is_integer(tt_dtype t)
{
    return t == TT_I32 || t == TT_I64 || t == TT_U8;
}

// Values of one record of a tensor [batch, ...].
static int64_t record_width(const tt_tensor *t)
{
    tt_shape shape = tt_tensor_shape(t);
    return -tt_shape_count(&shape);
}

static bool same_shape(const tt_shape *a, const tt_shape *b)
{
    bool same = a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++)
        same = a->dim[i] == b->dim[i];
    return same;
}

// What may have happened to records of another shape.
static const char *shape_advice(const tt_shape *has, const tt_shape *wants)
{
    bool pictures = has->rank == 3 && wants->rank == 3;
    if (pictures && has->dim[0] == wants->dim[2] && has->dim[1] == wants->dim[0] &&
        has->dim[2] == wants->dim[1])
        return ": the channels come first there, and the model takes channels last (NHWC): write "
               "the array so, x.transpose(0, 2, 3, 1) in NumPy";
    if (tt_shape_count(has) == tt_shape_count(wants))
        return ": as many values in another shape; reshape the array to the model's, if its values "
               "are in that order";
    return "";
}

// The records must be what the model reads: as many values in another order are other records.
static tt_status check_input(prediction *p)
{
    const tt_field *f = &p->fields[p->input];
    const tti_layer *input = p->j->parts.model->inputs[0];
    const char *file = p->args->input != NULL ? p->args->input : "the data";
    char a[TT_SHAPE_TEXT], b[TT_SHAPE_TEXT];
    tt_shape all = tt_tensor_shape(input->out), one = {.rank = all.rank - 1};
    memcpy(one.dim, all.dim + 1, sizeof(one.dim[0]) * (size_t)one.rank);
    if (!same_shape(&f->shape, &one))
        return TT_FAIL(p->j->ctx, TT_ESHAPE,
                       "%s: records have shape %s, but the model's input '%s' has %s%s", file,
                       tt_shape_text(&f->shape, a), input->name, tt_shape_text(&one, b),
                       shape_advice(&f->shape, &one));
    if (f->dtype != tt_tensor_dtype(input->out))
        return TT_FAIL(p->j->ctx, TT_EDTYPE,
                       "%s: records are %s, but the model's input '%s' is %s; save the array with "
                       "that type",
                       file, tt_dtype_name(f->dtype), input->name,
                       tt_dtype_name(tt_tensor_dtype(input->out)));
    return TT_OK;
}

// A target that is a whole number is a class, if the output has a score for each.
static bool has_classes(const prediction *p, const tt_tensor *out)
{
    tt_field f[TT_MAX_FIELDS];
    const cli_job *j = p->j;
    int n = j->parts.train != NULL ? tt_data_fields(j->parts.train, f) : 0;
    if (n < 2)
        return false;
    int target = find_field(f, n, j->parts.model->inputs[0]->name) == 0 ? 1 : 0;
    return is_integer(f[target].dtype) && tt_shape_count(&f[target].shape) == 1 &&
           tt_tensor_shape(out).rank == 2 && p->width > 1;
}

static tt_status prepare(prediction *p)
{
    cli_job *j = p->j;
    tt_model *m = j->parts.model;
    tti_output outputs[TTI_MAX_INPUTS];
    p->data = j->parts.test != NULL ? j->parts.test : j->parts.validate;
    if (m == NULL || p->data == NULL)
        return TT_FAIL(j->ctx, TT_EINVAL, "%s has no data.test; --input FILE names records",
                       j->file);
    if (m->n_inputs != 1 || tti_model_outputs(m, outputs) < 1)
        return TT_FAIL(j->ctx, TT_EUNSUPPORTED, "the model has %d inputs; predict takes one",
                       m->n_inputs);
    const tt_tensor *out = outputs[0].tensor;
    int n = tt_data_fields(p->data, p->fields);
    p->input = find_field(p->fields, n, m->inputs[0]->name);
    p->label = n < 2 ? -1 : p->input == 0 ? 1 : 0;
    p->width = record_width(out);
    p->is_class = has_classes(p, out);
    p->is_probability = strcmp(tt_tensor_get_node(out)->op->name, "softmax") == 0;
    TT_TRY(check_input(p));
    if (tt_tensor_dtype(out) != TT_F32 || p->width < 1)
        return TT_FAIL(j->ctx, TT_EUNSUPPORTED, "the model's output is %s; predict shows f32",
                       tt_dtype_name(tt_tensor_dtype(out)));
    p->values = tti_calloc(j->ctx, (size_t)p->width * BATCH, sizeof(float));
    return p->values != NULL ? TT_OK : TT_ENOMEM;
}

// The best class, and its probability.
static int best_class(const prediction *p, const float *y, double *probability)
{
    int best = 0;
    double sum = 0;
    for (int i = 1; i < p->width; i++)
        if (y[i] > y[best])
            best = i;
    for (int i = 0; i < p->width; i++)
        sum += tti_scalar_exp((double)y[i] - y[best]);
    *probability = p->is_probability ? (double)y[best] : 1 / sum;
    return best;
}

static int64_t label_of(const prediction *p, const void *field, int64_t row)
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

static void print_class(const prediction *p, int64_t record, const float *y, const int64_t *label)
{
    double probability;
    int best = best_class(p, y, &probability);
    if (p->args->json) {
        printf("{\"record\": %lld, \"class\": %d, \"probability\": %.6f", (long long)record, best,
               probability);
        if (label != NULL)
            printf(", \"label\": %lld", (long long)*label);
        printf("}\n");
        return;
    }
    printf("%-8lld %-6d %-11.4f", (long long)record, best, probability);
    if (label != NULL)
        printf(" %lld%s", (long long)*label, *label == best ? "" : "  wrong");
    printf("\n");
}

static void print_values(const prediction *p, int64_t record, const float *y)
{
    tti_text t = {0};
    tti_text_add(&t, p->args->json ? "{\"record\": %lld, \"output\": [" : "%-8lld",
                 (long long)record);
    for (int64_t i = 0; i < p->width; i++) {
        tti_text_add(&t, "%s", i == 0 ? "" : p->args->json ? ", " : " ");
        if (p->args->json)
            cli_json_number(&t, y[i]);
        else
            tti_text_add(&t, "%.6g", y[i]);
    }
    tti_text_add(&t, p->args->json ? "]}\n" : "\n");
    cli_print_text(&t);
}

static tt_status print_batch(prediction *p, const tt_batch_data *b, int64_t rows)
{
    bool has_label = p->is_class && p->label >= 0 && is_integer(p->fields[p->label].dtype) &&
                     tt_shape_count(&p->fields[p->label].shape) == 1;
    TT_TRY(tt_predict(p->j->parts.model, b->fields[p->input], rows, p->values, .batch = BATCH));
    for (int64_t i = 0; i < rows; i++) {
        const float *y = p->values + i * p->width;
        int64_t record = tt_data_order(p->data, b->epoch, b->first + i), label = 0;
        if (has_label)
            label = label_of(p, b->fields[p->label], i);
        if (p->is_class)
            print_class(p, record, y, has_label ? &label : NULL);
        else
            print_values(p, record, y);
    }
    return TT_OK;
}

static tt_status predict(prediction *p)
{
    char path[TTI_PATH_MAX];
    TT_TRY(prepare(p));
    TT_TRY(cli_job_load(p->j, p->args, path));
    int64_t left = tt_data_count(p->data);
    if (p->args->count > 0)
        left = TTI_MIN(left, p->args->count);
    if (!p->args->json && p->is_class)
        printf("%-8s %-6s %-11s %s\n", "record", "class", "probability",
               p->label >= 0 ? "label" : "");
    TT_TRY(tt_data_start(p->data, BATCH, 0));
    for (tt_batch_data b; left > 0; left -= b.rows) {
        TT_TRY(tt_data_next(p->data, &b));
        TT_TRY(print_batch(p, &b, TTI_MIN(left, b.rows)));
    }
    tt_data_stop(p->data);
    return TT_OK;
}

// Reads the job again with the records of --input as its data.test.
static int read_with_input(cli_job *j, cli_args *args, char **set)
{
    char word[sizeof(j->file)];
    tt_status st = cli_input_setting(j, args->input, set);
    snprintf(word, sizeof(word), "%s", j->run[0] != '\0' ? j->run : j->file); // fits: both did
    int rc = cli_job_close(j, st == TT_OK ? CLI_OK : CLI_BAD_JOB);
    *j = (cli_job){0};
    if (rc != CLI_OK)
        return rc;
    args->sets.v[args->sets.n++] = *set;
    return cli_job_read(args, word, CLI_CHECKPOINT, j);
}

static int run(const cli_args *args)
{
    cli_args with = *args;
    cli_job j;
    char *set = NULL;
    if (args->input != NULL && args->sets.n == CLI_MAX_TEXTS)
        return cli_usage("--input: --set is given too often");
    prediction p = {.j = &j, .args = args};
    int rc = cli_job_read(args, args->words[0], CLI_CHECKPOINT, &j);
    if (rc == CLI_OK && args->input != NULL)
        rc = read_with_input(&j, &with, &set);
    if (rc == CLI_OK)
        rc = cli_job_build(&j, &with, NULL, NULL);
    if (rc == CLI_OK && !j.is_beside) {
        bool writes = args->prompt != NULL || (cli_is_text(&j) && args->input == NULL);
        tt_status st = writes ? cli_generate(&j, args) : predict(&p);
        rc = cli_code(st);
        tti_free(j.ctx, p.values);
    } else if (rc != CLI_OK && args->input != NULL) {
        cli_input_blame(&j);
    }
    rc = cli_job_close(&j, rc);
    tti_free(NULL, set);
    return rc;
}

const cli_verb cli_predict = {
    .name = "predict",
    .words = "JOB|RUN",
    .summary = "run a trained model on new data",
    .help =
        "One line a record: its number, the class and its probability, and the label where\n"
        "the data has one; for models that are no classifiers the output's values. Records are\n"
        "those of data.test, or of --input, whose records get the job's transforms; columns of\n"
        "a CSV file are found by the names the job's have, and it needs no target. Takes the\n"
        "newest checkpoint of the run, of a job file the newest run's.\n"
        "\n"
        "A model that was trained on text writes: --prompt gives the beginning. The same seed\n"
        "gives the same text on every machine.\n",
    .flags = "json set devices strategy threads isa runs checkpoint input count "
             "prompt length temperature seed",
    .min_words = 1,
    .max_words = 1,
    .joins = true,
    .run = run,
};
