/*
 * side.c - one side of a comparison.
 */
#include "cli/side.h"
#include "job/job.h"
#include <stdlib.h>

static void ignore(void *user, const tt_event *ev)
{
    (void)user;
    (void)ev;
}

tt_open_opts cli_one_device(const tt_job *job)
{
    tt_open_opts o = *tt_job_open_opts(job);
    o.devices = "cpu:0";
    o.strategy = "single";
    static const tt_spread fast = {.opts_size = sizeof(fast), .reduce = TT_REDUCE_FAST};
    o.spread = o.spread->reduce == TT_REDUCE_FAST ? &fast : NULL;
    return o;
}

static tt_status open_data(cli_side *s)
{
    int field[TTI_MAX_FEEDS];
    tt_job_parts *p = &s->parts;
    if (p->train == NULL || p->model == NULL || p->model->step == NULL)
        return TT_FAIL(s->ctx, TT_EINVAL, "the job has no data.train or no train section");
    int64_t rows = TTI_MAX(p->fit->batch, 1) * TTI_MAX(p->fit->accumulate, 1);
    TT_TRY(tti_match_fields(p->model, &p->model->step->train, p->train, field));
    TT_TRY(tt_data_start(p->train, TTI_MIN(rows, tt_data_count(p->train)), 0));
    TT_TRY(tt_data_next(p->train, &s->batch));
    for (int i = 0; i < p->model->step->train.n_feeds; i++)
        s->fields[i] = s->batch.fields[field[i]];
    return TT_OK;
}

tt_status cli_side_open(tt_job *job, const tt_open_opts *opts, cli_side *out)
{
    tt_open_opts o = *opts;
    o.on_event = ignore;
    *out = (cli_side){.ctx = tt_open_with(&o)};
    if (out->ctx == NULL)
        return TT_ENOMEM;
    if (tt_status_of(out->ctx) != TT_OK)
        return tt_status_of(out->ctx);
    job->no_pins = tt_device_count(out->ctx) == 1; // all that they name is then this one
    tt_status st = tt_job_build(job, out->ctx, &out->parts);
    job->no_pins = false;
    return st == TT_OK ? open_data(out) : st;
}

tt_status cli_side_step(cli_side *s)
{
    bool applied;
    double norm;
    return tti_step_run(s->parts.model, s->fields, s->batch.rows,
                        TTI_MAX(s->parts.fit->accumulate, 1), tti_step_lr(s->parts.model->step),
                        &applied, &norm);
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

tt_status cli_side_time(cli_side *s, int64_t n, double *ms)
{
    int64_t took[CLI_SIDE_STEPS];
    n = TTI_MIN(n, CLI_SIDE_STEPS);
    for (int64_t i = 0; i < n; i++) {
        int64_t begin = tti_now_ns();
        TT_TRY(cli_side_step(s));
        took[i] = tti_now_ns() - begin;
    }
    qsort(took, (size_t)n, sizeof(took[0]), by_value);
    *ms = (double)took[n / 2] * 1e-6;
    return TT_OK;
}

void cli_side_close(cli_side *s)
{
    if (s->ctx == NULL)
        return;
    tt_data_stop(s->parts.train);
    (void)tt_close(s->ctx);
    s->ctx = NULL;
}
