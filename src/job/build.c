/*
 * build.c - a job's parts in a context: data, model, what tt_compile() and tt_fit() get.
 */
#include "base/ctx.h"
#include "data/data.h"
#include "job/job.h"
#include "record/record.h"
#include "save/checkpoint.h"
#include "save/share.h"
#include "train/compile.h"
#include "train/loss.h"
#include "train/optimizer.h"
#include <stdio.h>
#include <string.h>

void tti_fail_item(tt_ctx *ctx, const tti_item *item, const char *path, char buf[TTI_PLACE_MAX])
{
    char place[TTI_PLACE_MAX];
    snprintf(buf, TTI_PLACE_MAX, "%.200s: %.100s: ", tti_place_text(item->at, place), path);
    tti_fail_where(ctx, buf);
}

void tti_texts_or_null(const tt_option *rows, void *out)
{
    for (const tt_option *row = rows; row != NULL && row->type != TT_OPT_END; row++) {
        const char *text;
        if (row->type != TT_OPT_TEXT)
            continue;
        memcpy(&text, (char *)out + row->offset, sizeof(text));
        if (text != NULL && text[0] == '\0')
            text = NULL;
        memcpy((char *)out + row->offset, &text, sizeof(text));
    }
}

tt_status tti_bind_own(tt_ctx *ctx, const tt_option *rows, const tti_item *record, void *out)
{
    TT_TRY(tti_bind(ctx, rows, record, out));
    tti_texts_or_null(rows, out);
    return TT_OK;
}

// ---- optimizer, losses -----------------------------------------------------------------------

static tt_status bind_optimizer(tt_ctx *ctx, const tti_item *choice, tti_rule *out)
{
    const tti_item *record = tti_chosen(choice);
    const tti_optimizer_def *def = tti_optimizer_find(record->key);
    const tti_item *schedule = tti_chosen(tti_item_get(record, "schedule"));
    const tti_schedule_def *schedule_def = tti_schedule_find(schedule->key);
    const tti_item *groups = tti_item_get(record, "groups");
    *out = (tti_rule){.o = *tt_optimizer(.kind = def->kind, .exact = true),
                      .schedule = *tt_schedule(.kind = schedule_def->kind)};
    TT_TRY(tti_bind(ctx, def->options, record, &out->o));
    TT_TRY(tti_bind(ctx, schedule_def->options, schedule, &out->schedule));
    out->o.schedule = &out->schedule;
    if (groups->n > TT_MAX_GROUPS)
        return tti_fail_at(ctx, TT_EINVAL, groups->at, "train.optimizer.groups",
                           "%d groups; at most %d are allowed", groups->n, TT_MAX_GROUPS);
    for (const tti_item *g = groups->first; g != NULL; g = g->next) {
        tt_group *own = &out->groups[out->n_groups];
        *own = *tt_group();
        TT_TRY(tti_bind_own(ctx, tti_job_group_rows, g, own));
        out->o.groups[out->n_groups++] = own;
    }
    return TT_OK;
}

static tt_status bind_loss(tt_ctx *ctx, const tti_item *choice, tti_job_train *t)
{
    const tti_item *record = tti_chosen(choice);
    tt_loss *out = &t->losses[t->n_losses];
    *out = *tt_loss();
    TT_TRY(tti_bind_own(ctx, tti_loss_options, record, out));
    out->kind = (tt_loss_kind)tti_loss_find(record->key);
    out->has_ignore = out->has_ignore || out->ignore != 0;
    t->compile.losses[t->n_losses++] = out;
    return TT_OK;
}

static tt_status bind_losses(tt_ctx *ctx, const tti_item *train, tti_job_train *out)
{
    const tti_item *one = tti_item_get(train, "loss"), *list = tti_item_get(train, "losses");
    if (one != NULL)
        return bind_loss(ctx, one, out);
    if (list->n > TT_MAX_LOSSES)
        return tti_fail_at(ctx, TT_EINVAL, list->at, "train.losses",
                           "%d losses; at most %d are allowed", list->n, TT_MAX_LOSSES);
    for (const tti_item *c = list->first; c != NULL; c = c->next)
        TT_TRY(bind_loss(ctx, c, out));
    return TT_OK;
}

// Targets that are numbers, not classes, are probabilities to a cross entropy.
static void match_target(const tt_field *fields, int n_fields, int n_inputs, tt_compile_opts *o)
{
    const char *name = o->losses[0]->target;
    int at = n_inputs;
    for (int i = 0; name != NULL && i < n_fields; i++)
        if (strcmp(fields[i].name, name) == 0)
            at = i;
    tt_loss_kind kind = o->losses[0]->kind;
    if (at >= n_fields || !tti_loss_has_labels(kind))
        return;
    tt_dtype dtype = fields[at].dtype;
    o->dense_targets = kind == TT_CROSS_ENTROPY &&
                       (dtype == TT_F32 || dtype == TT_F64 || dtype == TT_BF16 || dtype == TT_F16);
    if (dtype != TT_F32)
        o->target_dtype = dtype;
}

// ---- parts -----------------------------------------------------------------------------------

static tt_status bind_train(tt_job *j, tt_ctx *ctx, const tti_item *train, tti_job_train *out)
{
    const tti_item *checkpoint = tti_item_get(j->root, "checkpoint");
    tti_job_checkpoint c;
    *out = (tti_job_train){.early_stop = *tt_watch(), .plateau = *tt_watch(), .best = *tt_watch()};
    TT_TRY(tti_bind_own(ctx, tti_job_train_rows, train, out));
    TT_TRY(tti_bind_own(ctx, tti_job_early_stop_rows, tti_item_get(train, "early_stop"),
                        &out->early_stop));
    TT_TRY(tti_bind_own(ctx, tti_job_plateau_rows, tti_item_get(train, "plateau"), &out->plateau));
    TT_TRY(bind_losses(ctx, train, out));
    TT_TRY(bind_optimizer(ctx, tti_item_get(train, "optimizer"), &out->rule));
    const tti_item *metrics = tti_item_get(train, "metrics");
    for (const tti_item *m = metrics->first; m != NULL; m = m->next)
        out->compile.metrics |= (int)tti_metric_find(tti_chosen(m)->key)->bit;
    TT_TRY(tti_bind_own(ctx, tti_job_checkpoint_rows, checkpoint, &c));
    out->fit.save_every = c.every;
    out->fit.keep = c.keep;
    out->best.value = c.best;
    out->fit.early_stop = &out->early_stop;
    out->fit.plateau = &out->plateau;
    out->fit.best = &out->best;
    out->fit.job = j->core;
    out->fit.opts_size = sizeof(out->fit);
    out->compile.optimizer = &out->rule.o;
    out->compile.opts_size = sizeof(out->compile);
    return TT_OK;
}

// Does a run's folder have a checkpoint? Nothing is recorded.
static bool has_checkpoint(const char *run)
{
    char path[TTI_PATH_MAX];
    return tti_checkpoint_resolve(NULL, run, path) == TT_OK;
}

/*
 * What init names: a file or folder; else a run in runs by its own name, "digits-001"; else the
 * newest run of a job of that name that has a checkpoint.
 */
static tt_status find_weights(tt_job *j, tt_ctx *ctx, const char *runs, const char *name,
                              char out[TTI_PATH_MAX])
{
    const char *dir = tt_job_get(j, "output.dir");
    char run[TTI_RUN_PATH];
    int number = 0;
    if (runs == NULL)
        runs = dir != NULL && *dir != '\0' ? dir : "runs";
    if (tti_file_exists(name) || tti_folder_exists(name) || strchr(name, '/') != NULL ||
        !tti_is_first(ctx)) { // the first process reads it
        if (snprintf(out, TTI_PATH_MAX, "%s", name) >= TTI_PATH_MAX)
            return TT_FAIL(ctx, TT_EINVAL, "the path is longer than %d bytes", TTI_PATH_MAX - 1);
        return TT_OK;
    }
    TT_TRY(tti_file_join(ctx, out, runs, name));
    if (tti_folder_exists(out))
        return TT_OK;
    do
        TT_TRY(tti_run_folder_below(ctx, runs, name, &number, run));
    while (run[0] != '\0' && !has_checkpoint(run));
    if (run[0] == '\0')
        return TT_FAIL(ctx, TT_EIO, "there is no file '%s', and no run of that name in '%s'", name,
                       runs);
    memcpy(out, run, strlen(run) + 1);
    return TT_OK;
}

tt_status tti_job_init_weights(tt_job *j, tt_ctx *ctx, const char *runs, tt_model *m)
{
    const tti_item *item = tti_item_get(j->root, "init");
    char buf[TTI_PLACE_MAX], path[TTI_PATH_MAX];
    tti_job_init init = {.load = {.opts_size = sizeof(init.load)}};
    TT_TRY(tti_bind_own(ctx, tti_job_init_rows, item, &init));
    if (init.file == NULL)
        return TT_OK;
    tti_fail_item(ctx, item, "init", buf);
    tt_status st = find_weights(j, ctx, runs, init.file, path);
    if (st == TT_OK)
        st = tt_load_with(m, path, &init.load);
    tti_fail_where(ctx, NULL);
    return st;
}

// Compiles the model as the section says; an error is reported with its line.
static tt_status compile_train(tt_job *j, tt_ctx *ctx, tt_job_parts *p)
{
    char buf[TTI_PLACE_MAX];
    tti_fail_item(ctx, tti_item_get(j->root, "train"), "train", buf);
    tt_status st = tt_compile_with(p->model, &j->train.compile);
    tti_fail_where(ctx, NULL);
    return st;
}

// A data set that does not fit is told now and not when its turn comes, after the training.
static tt_status match_data(const tt_job_parts *p)
{
    tt_data *const sets[] = {p->train, p->validate, p->test};
    int field[TTI_MAX_FEEDS];
    for (int i = 0; i < TTI_COUNT(sets); i++)
        if (sets[i] != NULL)
            TT_TRY(tti_match_fields(p->model, &p->model->step->eval, sets[i], field));
    return TT_OK;
}

static tt_status build_train(tt_job *j, tt_ctx *ctx, const tt_field *fields, int n_fields,
                             tt_job_parts *p)
{
    TT_TRY(bind_train(j, ctx, tti_item_get(j->root, "train"), &j->train));
    match_target(fields, n_fields, p->model->n_inputs, &j->train.compile);
    TT_TRY(compile_train(j, ctx, p));
    p->fit->validate = p->validate;
    return match_data(p);
}

tt_status tti_job_compile(tt_job *j, tt_ctx *ctx, const tt_compile_opts *known, tt_job_parts *p)
{
    p->fit = &j->train.fit;
    TT_TRY(bind_train(j, ctx, tti_item_get(j->root, "train"), &j->train));
    j->train.compile.dense_targets = known->dense_targets;
    j->train.compile.target_dtype = known->target_dtype;
    return compile_train(j, ctx, p);
}

static tt_status build(tt_job *j, tt_ctx *ctx, const tti_job_build_opts *o, tt_job_parts *p)
{
    tt_field fields[TT_MAX_FIELDS];
    TT_TRY(tti_job_open_data(j, ctx, p));
    TT_TRY(tti_data_compare(p->train, "data.train"));
    TT_TRY(tti_data_compare(p->validate, "data.validate"));
    TT_TRY(tti_data_compare(p->test, "data.test"));
    const tt_data *first = p->train != NULL      ? p->train
                           : p->validate != NULL ? p->validate
                                                 : p->test;
    int n_fields = first != NULL ? tt_data_fields(first, fields) : 0;
    TT_TRY(tti_job_build_model(j, ctx, fields, n_fields, &p->model));
    if (tti_item_get(j->root, "train") != NULL)
        TT_TRY(build_train(j, ctx, fields, n_fields, p));
    return o->no_init ? TT_OK : tti_job_init_weights(j, ctx, o->runs, p->model);
}

tt_status tt_job_build_sized(tt_job *j, tt_ctx *ctx, tt_job_parts *out, size_t size)
{
    tt_ctx *known = ctx != NULL ? ctx : j != NULL ? j->ctx : NULL;
    if (j == NULL || out == NULL || ctx == NULL)
        return known == NULL ? TT_EINVAL
                             : TT_FAIL(known, TT_EINVAL, "job: %s is NULL",
                                       j == NULL     ? "the job"
                                       : out == NULL ? "out"
                                                     : "the context");
    tt_job_parts parts;
    TT_TRY(tti_job_build(j, ctx, &(tti_job_build_opts){0}, &parts));
    tti_out_copy(out, size, &parts, sizeof(parts));
    return TT_OK;
}

tt_status tti_job_build(tt_job *j, tt_ctx *ctx, const tti_job_build_opts *o, tt_job_parts *out)
{
    if (tti_is_stuck(ctx))
        return tt_status_of(ctx);
    j->train = (tti_job_train){.fit = {.opts_size = sizeof(tt_fit_opts)}};
    tt_job_parts parts = {.fit = &j->train.fit};
    tt_status st = build(j, ctx, o, &parts);
    if (st != TT_OK) {
        tt_model_free(parts.model);
        tt_data_free(parts.train);
        tt_data_free(parts.validate);
        tt_data_free(parts.test);
        return st;
    }
    *out = parts;
    return TT_OK;
}
