/*
 * job.c - jobs for the verbs that read one. A plain context reads the file; the job itself runs in
 * a second one, opened with what the file and the flags say about devices.
 */
#include "cli/job.h"
#include "base/file.h"
#include "cli/elastic.h"
#include "cli/ranks.h"
#include "cli/signals.h"
#include "job/job.h"
#include "save/checkpoint.h"
#include "train/compile.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void on_log(void *user, const tt_event *ev)
{
    (void)user;
    if (strcmp(ev->kind, "log") == 0 && ev->level != TT_ERROR)
        cli_log_line(ev);
}

bool cli_is_job_file(const char *word)
{
    const char *dot = strrchr(word, '.');
    return dot != NULL && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0);
}

#define N_FLAGS 8

/*
 * Flags that are keys of a job too become settings of it, so that the resolved job, which a run
 * keeps, says them. The texts are in made, to be freed. How many; -1: out of memory.
 */
static int settings(const cli_args *args, const char **out, char *made[N_FLAGS])
{
    int n = args->sets.n, rc = 0;
    memcpy(out, args->sets.v, sizeof(*out) * (size_t)n);
    if (args->devices != NULL)
        rc |= asprintf(&made[0], "distribute.devices=%s", args->devices);
    if (args->lanes > 0)
        rc |= asprintf(&made[1], "distribute.lanes=%lld", (long long)args->lanes);
    if (args->threads > 0)
        rc |= asprintf(&made[2], "distribute.threads=%lld", (long long)args->threads);
    if (args->strategy != NULL)
        rc |= asprintf(&made[3], "distribute.strategy=%s", args->strategy);
    if (args->epochs > 0)
        rc |= asprintf(&made[4], "train.epochs=%lld", (long long)args->epochs);
    if (args->epochs > 0) // instead of what the job counts in
        rc |= asprintf(&made[5], "train.steps=0");
    if (args->batch > 0)
        rc |= asprintf(&made[6], "train.batch=%lld", (long long)args->batch);
    if (args->lr != NULL)
        rc |= asprintf(&made[7], "train.optimizer.lr=%s", args->lr);
    for (int i = 0; i < N_FLAGS && rc >= 0; i++)
        if (made[i] != NULL)
            out[n++] = made[i];
    return rc < 0 ? -1 : n;
}

static int read_with_flags(const cli_args *args, cli_job *out)
{
    const char *sets[CLI_MAX_TEXTS + N_FLAGS];
    char *made[N_FLAGS] = {NULL};
    int n = settings(args, sets, made);
    if (n >= 0)
        out->job = tt_job_read(out->reader, out->file, .sets = sets, .n_sets = n);
    for (int i = 0; i < N_FLAGS && n >= 0; i++)
        free(made[i]);
    if (n < 0)
        return cli_error("out of memory");
    if (out->job == NULL) // a mistake in the job, unless there was no memory
        return tt_status_of(out->reader) == TT_ENOMEM ? CLI_FAILED : CLI_BAD_JOB;
    return CLI_OK;
}

// A checkpoint that is named by its path, not one of the run's.
static bool is_path(const char *checkpoint)
{
    return tti_file_exists(checkpoint) || strchr(checkpoint, '/') != NULL;
}

int cli_job_read(const cli_args *args, const char *word, cli_need need, cli_job *out)
{
    *out = (cli_job){0};
    out->reader =
        tt_open(.devices = "cpu:0", .threads = 1, .level = cli_level(args), .on_event = on_log);
    if (out->reader == NULL)
        return cli_error("out of memory");
    if (tt_status_of(out->reader) != TT_OK)
        return cli_code(tt_status_of(out->reader));
    if (args->checkpoint != NULL && is_path(args->checkpoint))
        need = CLI_NOTHING;
    if (cli_is_job_file(word) || (tti_file_exists(word) && !cli_is_folder(word))) {
        if (snprintf(out->file, sizeof(out->file), "%s", word) >= (int)sizeof(out->file)) {
            TT_FAIL(out->reader, TT_EINVAL,
                    "%.200s...: the path has %zu bytes; at most %d are allowed", word, strlen(word),
                    TTI_PATH_MAX - 1);
            return CLI_BAD_JOB;
        }
    } else {
        if (cli_run_find(out->reader, args, word, need, out->run) != TT_OK)
            return CLI_FAILED;
        snprintf(out->file, sizeof(out->file), "%s/job.yaml", out->run);
        if (tti_file_exists(out->file) && !tti_file_is_regular(out->file)) {
            TT_FAIL(out->reader, TT_EIO, "cannot read '%s': it is not a regular file", out->file);
            return CLI_FAILED;
        }
    }
    int rc = read_with_flags(args, out);
    if (rc != CLI_OK)
        return rc;
    const char *dir = tt_job_get(out->job, "output.dir");
    const char *tensorboard = tt_job_get(out->job, "output.tensorboard");
    out->runs = args->runs != NULL ? args->runs : dir != NULL && *dir != '\0' ? dir : "runs";
    const char *trial = tt_job_get(out->job, "output.trial");
    out->trial = trial == NULL || strcmp(trial, "true") == 0;
    out->tensorboard = tensorboard == NULL || strcmp(tensorboard, "true") == 0;
    return CLI_OK;
}

int cli_job_open(cli_job *j, const cli_args *args, tt_event_fn on_event, void *user)
{
    tt_open_opts opts = *tt_job_open_opts(j->job);
    cli_cluster c = {NULL, NULL};
    int rc = CLI_OK;
    opts.on_event = on_event != NULL ? on_event : on_log;
    opts.user = user;
    opts.level = cli_level(args);
    if (args->isa != NULL)
        opts.isa = args->isa;
    bool elastic = args->verb == &cli_train && cli_elastic_is_on();
    tt_spread spread;
    if (elastic)
        rc = cli_elastic_join(j->reader, &j->is_beside);
    if (args->verb != NULL && args->verb->joins && rc == CLI_OK && !j->is_beside)
        rc = cli_join(j, args, &c, &j->is_beside);
    if (rc != CLI_OK || (j->is_beside && !j->evaluates)) {
        cli_join_free(j, &c);
        return rc;
    }
    if (c.tasks != NULL)
        c.tasks->stop = elastic ? cli_elastic_stop() : cli_signals_join(j->reader);
    if (elastic)
        cli_elastic_options(&opts, &spread);
    opts.tasks = c.tasks;
    j->ctx = tt_open_with(&opts);
    (void)cli_signals_join(NULL);
    cli_join_free(j, &c);
    if (j->ctx == NULL)
        return cli_error("out of memory");
    if (tt_status_of(j->ctx) != TT_OK)
        return opts.tasks != NULL ? cli_code(tt_status_of(j->ctx)) : cli_open_code(args, j->ctx);
    if (cli_compare_jobs(j, args) != TT_OK)
        return cli_code(tt_status_of(j->ctx));
    if (elastic)
        cli_elastic_opened(j->ctx); // it has standard output where that belongs
    else if (!cli_is_first(j->ctx) &&
             freopen("/dev/null", "w", stdout) == NULL) // the first one prints
        return cli_error("cannot open /dev/null");
    return CLI_OK;
}

int cli_job_build(cli_job *j, const cli_args *args, tt_event_fn on_event, void *user)
{
    int rc = cli_job_open(j, args, on_event, user);
    if (rc != CLI_OK || j->ctx == NULL)
        return rc;
    if (j->ctx->epoch > 1)
        j->no_init = true; // an elastic job that has begun already
    tti_job_build_opts build = {.runs = j->runs, .no_init = j->no_init};
    tt_status st = tti_job_build(j->job, j->ctx, &build, &j->parts);
    if (st != TT_OK) // data that cannot be opened is the job's mistake too
        return st == TT_EIO ? CLI_BAD_JOB : cli_code(st);
    return CLI_OK;
}

int cli_job_close(cli_job *j, int rc)
{
    int closed = CLI_OK;
    if (j->ctx != NULL)
        closed = cli_close(j->ctx, NULL);
    if (j->reader != NULL && cli_close(j->reader, NULL) != CLI_OK)
        closed = CLI_FAILED;
    return rc != CLI_OK ? rc : closed;
}

tt_status cli_job_find_run(cli_job *j)
{
    if (j->run[0] != '\0')
        return TT_OK;
    TT_TRY(cli_run_newest(j->ctx, j->runs, tt_job_name(j->job), CLI_CHECKPOINT, j->run));
    if (j->run[0] == '\0')
        return TT_FAIL(j->ctx, TT_EIO,
                       "there is no run of '%s' in '%s'; train it first, or give a --checkpoint",
                       tt_job_name(j->job), j->runs);
    return TT_OK;
}

// --checkpoint: a path; else of the run's own "best", or one by its name, "step-100".
static tt_status named_checkpoint(cli_job *j, const char *name, char path[TTI_PATH_MAX])
{
    char folder[TTI_PATH_MAX];
    if (is_path(name)) { // one that is not there is an error of the load
        if (snprintf(path, TTI_PATH_MAX, "%s", name) >= TTI_PATH_MAX)
            return TT_FAIL(j->ctx, TT_EINVAL,
                           "--checkpoint %.200s...: the path has %zu bytes, which is too long",
                           name, strlen(name));
        return TT_OK;
    }
    TT_TRY(cli_job_find_run(j));
    TT_TRY(tti_file_join(j->ctx, folder, j->run, "checkpoints"));
    if (strcmp(name, "best") != 0)
        return tti_file_join(j->ctx, path, folder, name);
    TT_TRY(tti_checkpoint_best(j->ctx, folder, path));
    if (path[0] == '\0')
        return TT_FAIL(j->ctx, TT_EIO, "'%s' has no best checkpoint", folder);
    return TT_OK;
}

tt_status cli_job_weights(cli_job *j, const cli_args *args, char path[TTI_PATH_MAX])
{
    if (args->checkpoint != NULL)
        return named_checkpoint(j, args->checkpoint, path);
    TT_TRY(cli_job_find_run(j));
    return cli_newest_checkpoint(j->ctx, j->run, path);
}

// ---- memory ----------------------------------------------------------------------------------

// A test's arena counts as validation's. False: there is nothing to train.
static bool load_of(const cli_job *j, tti_load *out)
{
    const tt_job_parts *p = &j->parts;
    if (p->train == NULL || p->model == NULL || p->model->step == NULL)
        return false;
    *out = (tti_load){.batch = TTI_MAX(p->fit->batch, 1),
                      .accumulate = TTI_MAX(p->fit->accumulate, 1),
                      .records = tt_data_count(p->train)};
    if (p->validate != NULL)
        out->validate_records = tt_data_count(p->validate);
    if (p->validate != NULL && p->fit->validate_rows > 0)
        out->validate_records = TTI_MIN(out->validate_records, p->fit->validate_rows);
    if (p->test != NULL)
        out->validate_records = TTI_MAX(out->validate_records, tt_data_count(p->test));
    return out->records > 0;
}

tt_status cli_job_check_memory(cli_job *j, bool is_dry)
{
    tti_load load;
    if (!load_of(j, &load))
        return TT_OK;
    load.is_dry = is_dry;
    return tti_memory_check(j->parts.model, &load);
}

tt_status cli_job_validation(cli_job *j, size_t *bytes)
{
    tti_load load;
    memset(bytes, 0, sizeof(*bytes) * (size_t)tt_device_count(j->ctx));
    return load_of(j, &load) ? tti_memory_validation(j->parts.model, &load, bytes) : TT_OK;
}
