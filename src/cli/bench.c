/*
 * bench.c - tutti bench: how long a job's step takes, on the data's first batch again and again.
 */
#include "cli/job.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "train/compile.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WARM 3 // steps before the clock runs: plans are made, memory is touched

typedef struct result {
    char devices[512]; // as given; a longer list is cut off
    int64_t rows;
    double first_ms, median_ms, low_ms, high_ms; // low and high: tenths of the steps are beyond
    double peak_bytes;                           // of the device that has most
} result;

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static tt_status time_steps(cli_job *j, int64_t steps, double *ms, result *out)
{
    tt_batch_data batch;
    tt_progress progress;
    tti_step *s = j->parts.model->step;
    if (s != NULL && s->rule.schedule.steps == 0) // rates do not matter, but they must end
        s->rule.schedule.steps = WARM + steps;
    TT_TRY(tt_data_start(j->parts.train, j->parts.fit->batch, 0));
    TT_TRY(tt_data_next(j->parts.train, &batch));
    for (int64_t i = -WARM; i < steps; i++) {
        int64_t begin = tti_now_ns();
        TT_TRY(tt_train_step(j->parts.model, &batch, &progress));
        double took = (double)(tti_now_ns() - begin) * 1e-6;
        if (i >= 0)
            ms[i] = took;
        else if (i == -WARM)
            out->first_ms = took;
    }
    tt_data_stop(j->parts.train);
    qsort(ms, (size_t)steps, sizeof(*ms), by_value);
    out->rows = batch.rows;
    out->median_ms = ms[steps / 2];
    out->low_ms = ms[steps / 10];
    out->high_ms = ms[steps - 1 - steps / 10];
    for (int i = 0; i < tt_device_count(j->ctx); i++) {
        tt_device_info d;
        TT_TRY(tt_device_get(j->ctx, i, &d));
        out->peak_bytes = TTI_MAX(out->peak_bytes, (double)(d.variables + d.arena));
    }
    return TT_OK;
}

static int measure(const cli_args *args, const char *devices, result *out)
{
    cli_args on = *args;
    cli_job j;
    *out = (result){.rows = 0};
    if (devices != NULL)
        on.devices = devices;
    int rc = cli_job_read(&on, args->words[0], CLI_NOTHING, &j);
    if (rc == CLI_OK)
        rc = cli_job_build(&j, &on, NULL, NULL);
    if (rc == CLI_OK && j.parts.train == NULL) {
        TT_FAIL(j.ctx, TT_EINVAL, "%s has no data.train", j.file);
        rc = CLI_BAD_JOB;
    }
    if (rc == CLI_OK) {
        snprintf(out->devices, sizeof(out->devices), "%s", tt_job_open_opts(j.job)->devices);
        double *ms = tti_calloc(j.ctx, (size_t)args->steps, sizeof(*ms));
        if (ms == NULL || time_steps(&j, args->steps, ms, out) != TT_OK)
            rc = cli_code(tt_status_of(j.ctx));
        tti_free(j.ctx, ms);
    }
    return cli_job_close(&j, rc);
}

static void print_text(const result *r, bool first, double base_ms)
{
    char rate[32], size[32];
    if (first)
        printf("%-16s %6s %10s %19s %12s %8s %10s %10s\n", "devices", "batch", "median ms",
               "80 % within", "samples/s", "against", "first ms", "memory");
    cli_rate_text(1e3 * (double)r->rows / r->median_ms, rate);
    tti_size_text(r->peak_bytes, size);
    printf("%-16s %6lld %10.3f %9.3f-%9.3f %12s %7.2fx %10.1f %10s\n", r->devices,
           (long long)r->rows, r->median_ms, r->low_ms, r->high_ms, rate, base_ms / r->median_ms,
           r->first_ms, size);
}

static void print_json(const result *r)
{
    tti_text t = {0};
    tti_text_add(&t, "{\"devices\": ");
    tti_text_json(&t, r->devices);
    tti_text_add(&t,
                 ", \"batch\": %lld, \"step_ms_median\": %.6g, \"step_ms_p10\": %.6g, "
                 "\"step_ms_p90\": %.6g, \"samples_per_second\": %.6g, \"first_step_ms\": %.6g, "
                 "\"peak_bytes\": %.0f}\n",
                 (long long)r->rows, r->median_ms, r->low_ms, r->high_ms,
                 1e3 * (double)r->rows / r->median_ms, r->first_ms, r->peak_bytes);
    cli_print_text(&t);
}

static int run(const cli_args *args)
{
    double base_ms = 0;
    if (strcmp(args->words[0], "same-bits") == 0)
        return cli_same_bits(args);
    if (strcmp(args->words[0], "scale") == 0)
        return cli_scale(args);
    for (int i = 0; i < TTI_MAX(args->n_words - 1, 1); i++) {
        result r;
        int rc = measure(args, args->n_words > 1 ? args->words[i + 1] : NULL, &r);
        if (rc != CLI_OK)
            return rc;
        base_ms = i == 0 ? r.median_ms : base_ms;
        if (args->json)
            print_json(&r);
        else
            print_text(&r, i == 0, base_ms);
        fflush(stdout);
    }
    return CLI_OK;
}

const cli_verb cli_bench = {
    .name = "bench",
    .words = "JOB [DEVICES...]",
    .summary = "measure the training step of a job on one or more lists of devices",
    .help =
        "Repeats the training step on the first batch, so that data loading is not measured.\n"
        "Prints one row per list of devices, or one row for the job's own devices:\n"
        "  tutti bench digits.yaml cpu:0 'cpu:0*2' 'cpu:0*4'\n"
        "\n"
        "tutti bench scale JOB measures the strategy (default: mirrored) on 1, 2, ... devices "
        "with\n"
        "one core each, up to --most (default: twice the number of cores, at most the number of\n"
        "lanes), and compares them with one device on one core and one device on all cores.\n"
        "--steps is the total over all rounds.\n"
        "\n"
        "tutti bench same-bits [MODEL...] [ROW...] trains small built-in models (mlp, cnn, gpt,\n"
        "norm, lane, bf16, f16; or mlp.sgd, mlp.adam, ...) with every strategy on 1 to 8 devices\n"
        "and compares weights and loss. ROW limits the test to that row of the table. The exit\n"
        "code is 1 if any result differs. --devices gpu:0 divides that GPU into the devices.\n"
        "--hashes writes the hashes of the last run:\n"
        "  tutti bench same-bits gpt.adam 7 --hashes 7.hashes\n"
        "--processes 4 also tests each row with 2 to 4 processes, over shared memory and TCP.\n",
    .flags = "json set devices strategy lanes threads isa steps most hashes processes alone",
    .min_words = 1,
    .max_words = CLI_MAX_WORDS,
    .alone = true,
    .run = run,
};
