/*
 * workers.c - how many processes an elastic job may have: --workers, or the job's own key.
 */
#include "base/file.h"
#include "cli/launch.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/job.h>

// "2..4".
static bool read_range(const char *text, int *min, int *max)
{
    char end;
    return sscanf(text, "%4d..%4d%c", min, max, &end) == 2 && *min >= 1 && *max >= *min &&
           *max <= TT_MAX_TASKS;
}

static void be_silent(void *user, const tt_event *ev)
{
    (void)user;
    (void)ev;
}

// The key of the job, where there is no flag; a job that cannot be read is told of by a process.
static void workers_of_job(const cli_args *a, char **out)
{
    const char *sets[CLI_MAX_TEXTS];
    char path[PATH_MAX];
    *out = NULL;
    tt_ctx *reader = tt_open(.devices = "cpu:0", .threads = 1, .on_event = be_silent);
    memcpy(sets, a->sets.v, sizeof(*sets) * (size_t)a->sets.n);
    snprintf(path, sizeof(path), "%s%s", a->words[0],
             cli_is_folder(a->words[0]) ? "/job.yaml" : "");
    tt_job *job = reader == NULL || !tti_file_exists(path)
                      ? NULL
                      : tt_job_read(reader, path, .sets = sets, .n_sets = a->sets.n);
    const char *value = job != NULL ? tt_job_get(job, "distribute.workers") : NULL;
    if (value != NULL && value[0] != '\0')
        *out = strdup(value);
    (void)tt_close(reader);
}

tt_status cli_workers_find(tt_ctx *ctx, const cli_args *a, int n, bool is_program,
                           cli_elastic_opts *out)
{
    char *of_job = NULL;
    *out = (cli_elastic_opts){0};
    if (a->workers == NULL && !is_program && !a->dry_run)
        workers_of_job(a, &of_job);
    const char *text = a->workers != NULL ? a->workers : of_job;
    const char *what = a->workers != NULL ? "--workers" : "distribute.workers";
    int min = 0, max = 0;
    tt_status st = TT_OK;
    if (text != NULL && !read_range(text, &min, &max))
        st = TT_FAIL(ctx, TT_EINVAL,
                     "%s: '%s' is not a range of processes such as 2..4, from 1 to %d", what, text,
                     TT_MAX_TASKS);
    else if (text != NULL && (n < min || n > max))
        st = TT_FAIL(ctx, TT_EINVAL, "%d process%s to be started, but %s allows %d to %d of them",
                     n, n == 1 ? " is" : "es are", what, min, max);
    else if (text == NULL && (a->replace > 0 || a->loss > 0 || a->wait > 0))
        st = TT_FAIL(ctx, TT_EINVAL, "--replace, --loss and --wait need --workers A..B");
    else if (text != NULL && a->restarts > 0)
        st = TT_FAIL(ctx, TT_EINVAL,
                     "--restarts is for jobs of fixed size; with --workers use --replace");
    else if (text != NULL && is_program)
        st = TT_FAIL(ctx, TT_EINVAL, "--workers applies to job files, not to a program");
    else if (text != NULL)
        *out = (cli_elastic_opts){.min = min,
                                  .max = max,
                                  .replace = a->replace,
                                  .loss_ms = a->loss > 0 ? a->loss : 2000,
                                  .wait_s = a->wait};
    free(of_job);
    return st;
}
