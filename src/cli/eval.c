/*
 * eval.c - tutti eval: loss and metrics of a trained model on the job's test data.
 */
#include "cli/job.h"
#include "cli/report.h"
#include <stdio.h>

static tt_status evaluate(cli_job *j, const cli_args *args)
{
    char path[TTI_PATH_MAX];
    tt_evaluation e;
    tt_hash hash;
    char hex[33];
    const char *what = j->parts.test != NULL ? "test" : "validation";
    tt_data *data = j->parts.test != NULL ? j->parts.test : j->parts.validate;
    if (j->parts.model == NULL || data == NULL)
        return TT_FAIL(j->ctx, TT_EINVAL, "%s has neither data.test nor data.validate", j->file);
    TT_TRY(cli_job_load(j, args, path));
    const tt_fit_opts *fit = &j->parts.fit; // as at the end of training, unless --rows says
    TT_TRY(tt_evaluate(j->parts.model, data, &e, .batch = args->rows > 0 ? args->rows : fit->batch,
                       .accumulate = args->rows > 0 ? 1 : fit->accumulate, .rows = args->count));
    TT_TRY(tt_model_hash(j->parts.model, &hash));
    cli_hash_text(&hash, hex);
    tti_text t = {.ctx = j->ctx};
    if (args->json) {
        tti_text_add(&t, "{\"data\": \"%s\", ", what);
        cli_evaluation_json(&t, &e);
        tti_text_add(&t, ", \"weights_hash\": \"%s\", \"checkpoint\": ", hex);
        tti_text_json(&t, path);
        tti_text_add(&t, "}\n");
    } else {
        tti_text_add(&t, "%-12s", what);
        cli_evaluation_text(&t, &e);
        tti_text_add(&t, "  %lld records\n%-12s%s\n%-12s%s\n", (long long)e.rows, "weights", hex,
                     "checkpoint", path);
    }
    cli_print_text(&t);
    return tt_status_of(j->ctx);
}

static int run(const cli_args *args)
{
    cli_job j;
    int rc = cli_job_read(args, args->words[0], CLI_CHECKPOINT, &j);
    if (rc == CLI_OK)
        rc = cli_job_build(&j, args, NULL, NULL);
    if (rc == CLI_OK && !j.is_beside)
        rc = cli_code(evaluate(&j, args));
    return cli_job_close(&j, rc);
}

const cli_verb cli_eval = {
    .name = "eval",
    .words = "JOB|RUN",
    .summary = "compute the loss and metrics of a trained model on the test data",
    .help =
        "Evaluates the newest checkpoint of the run; for a job file, of its newest run.\n"
        "--checkpoint chooses another checkpoint or a safetensors file. If the job has no\n"
        "data.test, data.validate is used. The result has the same bits for any devices, batch\n"
        "size and number of threads.\n",
    .flags = "json set devices strategy lanes threads isa runs checkpoint rows count",
    .min_words = 1,
    .max_words = 1,
    .joins = true,
    .run = run,
};
