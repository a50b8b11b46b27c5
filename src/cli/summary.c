/*
 * summary.c - tutti summary: the layers of a job's model; and what train --dry-run shows.
 */
#include "cli/model.h"
#include "cli/progress.h"
#include "train/compile.h"
#include <stdio.h>
#include <string.h>

static tt_status print_summary(const cli_job *j, bool json)
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

typedef struct counts {
    int64_t rows, per_epoch, epochs, steps;
} counts;

// Of a job that has training data.
static counts count_steps(const tt_job_parts *p)
{
    counts c = {.rows = TTI_MAX(p->fit->batch, 1) * TTI_MAX(p->fit->accumulate, 1)};
    c.per_epoch = (tt_data_count(p->train) + c.rows - 1) / c.rows;
    c.epochs = TTI_MAX(p->fit->epochs, 1);
    c.steps = p->fit->steps > 0 ? p->fit->steps : c.epochs * c.per_epoch;
    return c;
}

static void print_steps(const tt_job_parts *p)
{
    counts c = count_steps(p);
    if (p->fit->steps > 0)
        printf("%-12s%lld, %lld per epoch, batch %lld\n", "steps", (long long)c.steps,
               (long long)c.per_epoch, (long long)c.rows);
    else
        printf("%-12s%lld: %lld epochs of %lld, batch %lld\n", "steps", (long long)c.steps,
               (long long)c.epochs, (long long)c.per_epoch, (long long)c.rows);
}

// ---- train --dry-run -------------------------------------------------------------------------

// What one device needs for a step; more: for validation, beside it.
static void memory_of(tti_text *t, const char *device, const tt_plan_memory *m, size_t more,
                      bool json, bool first)
{
    static const char *const names[] = {"weights",   "gradients", "optimizer", "activations",
                                        "workspace", "total",     "limit"};
    const size_t parts[] = {m->weights,   m->gradients, m->optimizer, m->kept,
                            m->workspace, m->total,     m->limit};
    char size[32];
    if (json) {
        tti_text_add(t, "%s{\"device\": ", first ? "" : ", ");
        tti_text_json(t, device);
        tti_text_add(t, ", \"variables\": %zu, \"arena\": %zu", m->variables, m->activations);
        for (int i = 0; i < TTI_COUNT(names); i++)
            tti_text_add(t, ", \"%s\": %zu", names[i], parts[i]);
        tti_text_add(t, ", \"validation\": %zu}", more);
        return;
    }
    tti_text_add(t, "%-12s%s:", first ? "memory" : "", device);
    for (int i = 0; i < TTI_COUNT(names) - (m->limit == 0); i++) {
        tti_size_text((double)parts[i], size);
        tti_text_add(t, "%s %s %s", i == 0 ? "" : ",", names[i], size);
    }
    tti_size_text((double)more, size);
    tti_text_add(t, more > 0 ? "; validation %s more\n" : "\n", size);
}

// Makes the plan of a step, which fails where memory is not enough.
static tt_status add_plan(tti_text *t, cli_job *j, bool json)
{
    tt_session *s = tt_model_get_session(j->parts.model);
    int64_t accumulate = TTI_MAX(j->parts.fit->accumulate, 1);
    int64_t rows = TTI_MAX(j->parts.fit->batch, 1) * accumulate;
    char *plan = s != NULL ? tti_step_plan(j->parts.model, rows, accumulate, TT_PLAN_TEXT) : NULL;
    if (plan == NULL) // no session: the job has no section train
        return tt_status_of(j->ctx);
    size_t *more = tti_calloc(j->ctx, (size_t)tt_device_count(j->ctx), sizeof(*more));
    tt_status st = more == NULL ? TT_ENOMEM : cli_job_validation(j, more);
    for (int i = 0; st == TT_OK && i < tt_device_count(j->ctx); i++) {
        tt_device_info d;
        tt_plan_memory m;
        if (tt_device_get(j->ctx, i, &d) == TT_OK && tt_plan_memory_get(s, i, &m) == TT_OK)
            memory_of(t, d.name, &m, more[i], json, i == 0);
    }
    if (!json)
        tti_text_add(t, "\n%s", plan);
    tti_free(j->ctx, more);
    tt_string_free(j->ctx, plan);
    return tt_status_of(j->ctx);
}

static void dry_json(cli_job *j, const char *job, const char *memory)
{
    tti_text t = {.ctx = j->ctx};
    char *model = tt_summary(j->parts.model, true);
    tti_text_add(&t, "{\"job\": ");
    tti_text_json(&t, job != NULL ? job : "");
    tti_text_add(&t, ", \"model\": %s", model != NULL ? model : "null");
    if (j->parts.train != NULL)
        tti_text_add(&t, ", \"steps\": %lld", (long long)count_steps(&j->parts).steps);
    tti_text_add(&t, ", \"memory\": [%s]}\n", memory != NULL ? memory : "");
    tt_string_free(j->ctx, model);
    cli_print_text(&t);
}

static void dry_text(cli_job *j, const char *job, const char *plan)
{
    cli_print(job);
    printf("\n");
    if (print_summary(j, false) != TT_OK)
        return;
    printf("\n");
    print_data("training", j->parts.train);
    print_data("validation", j->parts.validate);
    print_data("test", j->parts.test);
    if (j->parts.train != NULL)
        print_steps(&j->parts);
    cli_print(plan);
}

tt_status cli_dry_run(cli_job *j, const cli_args *args)
{
    tti_text t = {.ctx = j->ctx};
    tt_status st = cli_job_check_memory(j, true);
    if (st == TT_OK)
        st = add_plan(&t, j, args->json);
    char *plan = tti_text_take(&t);
    char *job = tt_job_print(j->job);
    if (st == TT_OK && args->json)
        dry_json(j, job, plan);
    else if (st == TT_OK && !args->quiet)
        dry_text(j, job, plan);
    tt_string_free(j->reader, job);
    tti_free(j->ctx, plan);
    return tt_status_of(j->ctx);
}

// ---- summary ---------------------------------------------------------------------------------

// A trained model has its layers with it.
static int run_trained(const cli_args *args)
{
    cli_model m;
    int rc = cli_model_open(args, args->words[0], false, &m);
    if (rc == CLI_OK && m.model != NULL && print_summary(&m.j, args->json) != TT_OK)
        rc = CLI_FAILED;
    return cli_model_close(&m, rc);
}

static int run(const cli_args *args)
{
    cli_job j;
    if (cli_model_is_trained(args, args->words[0]))
        return run_trained(args);
    int rc = cli_job_read(args, args->words[0], CLI_NOTHING, &j);
    if (rc == CLI_OK)
        rc = cli_job_build(&j, args, NULL, NULL);
    if (rc == CLI_OK && print_summary(&j, args->json) != TT_OK)
        rc = cli_code(tt_status_of(j.ctx));
    return cli_job_close(&j, rc);
}

const cli_verb cli_summary = {
    .name = "summary",
    .words = "JOB|MODEL",
    .summary = "show the layers of a model: shapes, parameters, bytes",
    .help = "Shows the model of a job file; or of a run (its folder or name), a checkpoint or a\n"
            "file written by tutti convert, which need neither data nor a job.\n",
    .flags = "json set devices runs",
    .min_words = 1,
    .max_words = 1,
    .run = run,
};
