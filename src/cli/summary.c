/*
 * summary.c - tutti summary: the layers of a job's model; and what train --dry-run shows.
 */
#include "cli/job.h"
#include "cli/progress.h"
#include "train/compile.h"
#include <stdio.h>
#include <string.h>

static tt_status print_summary(cli_job *j, bool json)
{
    char *s = tt_summary(j->parts.model, json);
    cli_print(s);
    if (s != NULL && json && s[strlen(s) - 1] != '\n')
        cli_print("\n");
    tt_string_free(j->ctx, s);
    return tt_status_of(j->ctx);
}

static void print_data(const char *name, const tt_data *d)
{
    char count[32];
    if (d == NULL)
        return;
    cli_rate_text((double)tt_data_count(d), count);
    printf("%-12s%s records\n", name, count);
}

static void print_steps(const tt_job_parts *p)
{
    int64_t rows = p->fit.batch * TTI_MAX(p->fit.accumulate, 1), count = tt_data_count(p->train);
    if (rows < 1)
        return;
    int64_t per_epoch = (count + rows - 1) / rows;
    int64_t epochs = p->fit.epochs > 0 ? p->fit.epochs : 1;
    if (p->fit.steps > 0)
        printf("%-12s%lld, %lld an epoch, batch %lld\n", "steps", (long long)p->fit.steps,
               (long long)per_epoch, (long long)rows);
    else
        printf("%-12s%lld: %lld epochs of %lld, batch %lld\n", "steps",
               (long long)(epochs * per_epoch), (long long)epochs, (long long)per_epoch,
               (long long)rows);
}

static tt_status print_memory(cli_job *j, tt_session *s)
{
    for (int i = 0; i < tt_device_count(j->ctx); i++) {
        tt_device_info d;
        tt_plan_memory m;
        char variables[32], activations[32];
        TT_TRY(tt_device_get(j->ctx, i, &d));
        TT_TRY(tt_plan_memory_get(s, i, &m));
        cli_size_text((double)m.variables, variables);
        cli_size_text((double)m.activations, activations);
        printf("%-12s%s: %s of variables, %s of activations\n", i == 0 ? "memory" : "", d.name,
               variables, activations);
    }
    return TT_OK;
}

// Makes the plan of a step, which fails where memory is not enough, and shows it.
static tt_status print_plan(cli_job *j)
{
    tt_session *s = tt_model_get_session(j->parts.model);
    char *plan = tti_step_plan(j->parts.model, TTI_MAX(j->parts.fit.batch, 1), TT_PLAN_TEXT);
    if (plan == NULL)
        return tt_status_of(j->ctx);
    tt_status st = print_memory(j, s);
    printf("\n");
    cli_print(plan);
    tt_string_free(j->ctx, plan);
    return st;
}

tt_status cli_dry_run(cli_job *j, const cli_args *args)
{
    if (args->json)
        return print_summary(j, true);
    char *resolved = tt_job_print(j->job);
    cli_print(resolved);
    tt_string_free(j->reader, resolved);
    printf("\n");
    TT_TRY(print_summary(j, false));
    printf("\n");
    print_data("training", j->parts.train);
    print_data("validation", j->parts.validate);
    print_data("test", j->parts.test);
    if (j->parts.train != NULL)
        print_steps(&j->parts);
    return tt_model_get_session(j->parts.model) != NULL ? print_plan(j) : TT_OK;
}

static int run(const cli_args *args)
{
    cli_job j;
    int rc = cli_job_read(args, args->words[0], &j);
    if (rc == CLI_OK)
        rc = cli_job_build(&j, args, NULL, NULL);
    if (rc == CLI_OK && print_summary(&j, args->json) != TT_OK)
        rc = CLI_FAILED;
    return cli_job_close(&j, rc);
}

const cli_verb cli_summary = {
    .name = "summary",
    .words = "JOB",
    .summary = "the layers of a job's model: shapes, parameters, bytes",
    .help = "JOB is a job file, or a run's folder or name.\n",
    .flags = "json set devices runs",
    .min_words = 1,
    .max_words = 1,
    .run = run,
};
