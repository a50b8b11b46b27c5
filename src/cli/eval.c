/*
 * eval.c - tutti eval: loss and metrics of a trained model on given data, or the job's test data.
 */
#include "cli/input.h"
#include "cli/report.h"
#include <stdio.h>

static tt_status open_data(cli_model *m, const cli_args *args, const char **what, tt_data **out)
{
    *what = args->data;
    if (args->data != NULL)
        return cli_input_open(m, args->data, true, args->layout, out);
    TT_TRY(cli_model_test_data(m, what, out));
    if (*out != NULL)
        return TT_OK;
    return TT_FAIL(m->j.ctx, TT_EINVAL,
                   "%s has neither data.test nor data.validate; give data with --data FILE",
                   m->j.file);
}

static tt_status evaluate(cli_model *m, const cli_args *args, tt_data *data, const char *what)
{
    tt_evaluation e;
    tt_hash hash;
    char hex[33];
    const tt_fit_opts *fit = m->j.parts.fit; // as at the end of training, unless --rows says
    TT_TRY(tt_evaluate(m->model, data, &e, .batch = args->rows > 0 ? args->rows : fit->batch,
                       .accumulate = args->rows > 0 ? 1 : fit->accumulate, .rows = args->count));
    TT_TRY(tt_model_hash(m->model, &hash));
    cli_hash_text(&hash, hex);
    tti_text t = {.ctx = m->j.ctx};
    if (args->json) {
        tti_text_add(&t, "{\"data\": ");
        tti_text_json(&t, what);
        tti_text_add(&t, ", ");
        cli_evaluation_json(&t, &e);
        tti_text_add(&t, ", \"weights_hash\": \"%s\", \"checkpoint\": ", hex);
        tti_text_json(&t, m->weights);
        tti_text_add(&t, "}\n");
    } else {
        tti_text_add(&t, "%-12s", args->data != NULL ? "data" : what);
        cli_evaluation_text(&t, &e);
        tti_text_add(&t, "  %lld records\n%-12s%s\n%-12s%s\n", (long long)e.rows, "weights", hex,
                     "checkpoint", m->weights);
    }
    cli_print_text(&t);
    return tt_status_of(m->j.ctx);
}

static int run(const cli_args *args)
{
    cli_model m;
    tt_data *data = NULL;
    const char *what = "";
    int rc = cli_model_open(args, args->words[0], true, &m);
    if (rc == CLI_OK && m.model != NULL) {
        tt_status st = open_data(&m, args, &what, &data);
        if (st != TT_OK)
            rc = st == TT_EIO ? CLI_BAD_JOB : cli_code(st);
        else
            rc = cli_code(evaluate(&m, args, data, what));
    }
    return cli_model_close(&m, rc);
}

const cli_verb cli_eval = {
    .name = "eval",
    .words = "MODEL",
    .summary = "compute the loss and metrics of a trained model on test data",
    .help =
        "MODEL is a run (its folder or name), a job file (its newest run is used), a checkpoint,\n"
        "or a file written by tutti convert. --checkpoint chooses another checkpoint of the run,\n"
        "or a safetensors file. --data names a file with targets; the default is data.test of\n"
        "the job, or else data.validate. The training data is not needed. The result has the\n"
        "same bits for any devices, batch size and number of threads.\n",
    .flags = "json set devices strategy lanes threads isa runs checkpoint data layout rows count",
    .min_words = 1,
    .max_words = 1,
    .joins = true,
    .run = run,
};
