/*
 * runs.c - finding runs and weights by what people call them.
 */
#include "base/file.h"
#include "cli/job.h"
#include "record/record.h"
#include "save/checkpoint.h"
#include "save/manifest.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool cli_is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool has_file(const char *folder, const char *name)
{
    char path[TTI_PATH_MAX];
    return snprintf(path, sizeof(path), "%s/%s", folder, name) < (int)sizeof(path) &&
           tti_file_exists(path);
}

// A run has its job, or checkpoints at least. Any other folder may have the name of a job, too: its
// data, its source.
bool cli_is_run(const char *folder)
{
    char path[TTI_PATH_MAX];
    return has_file(folder, "job.yaml") ||
           (snprintf(path, sizeof(path), "%s/checkpoints", folder) < (int)sizeof(path) &&
            cli_is_folder(path));
}

// The step of the newest checkpoint; -1 if there is none. Looks only: the run may be saving at this
// moment.
static long long newest_step(const char *run)
{
    char folder[TTI_RUN_PATH + 16];
    long long newest = -1;
    snprintf(folder, sizeof(folder), "%s/checkpoints", run);
    DIR *d = opendir(folder);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        char *end = e->d_name + 5;
        long long step =
            strncmp(e->d_name, "step-", 5) == 0 ? strtoll(e->d_name + 5, &end, 10) : -1;
        if (*end == '\0' && end > e->d_name + 5 && step > newest)
            newest = step;
    }
    if (d != NULL)
        closedir(d);
    return newest;
}

static tt_status has_steps(tt_ctx *ctx, const char *run, bool *out)
{
    char path[TTI_RUN_PATH + 32];
    tti_curves curves;
    *out = false;
    snprintf(path, sizeof(path), "%s/events.jsonl", run);
    if (!tti_file_exists(path))
        return TT_OK;
    TT_TRY(tti_curves_read(ctx, path, &curves));
    for (int i = 0; i < curves.n; i++)
        *out = *out || curves.curve[i].n + curves.curve[i].n_validation > 0;
    tti_curves_free(&curves);
    return TT_OK;
}

static tt_status has(tt_ctx *ctx, const char *run, cli_need need, bool *out)
{
    if (need == CLI_STEPS)
        return has_steps(ctx, run, out);
    *out = need == CLI_NOTHING || cli_has_checkpoint(run);
    return TT_OK;
}

tt_status cli_run_newest(tt_ctx *ctx, const char *root, const char *name, cli_need need,
                         char path[TTI_RUN_PATH])
{
    char newest[TTI_RUN_PATH];
    bool fits = false;
    int number = 0;
    TT_TRY(tti_run_folder_below(ctx, root, name, &number, path));
    memcpy(newest, path, sizeof(newest));
    while (*path != '\0') {
        TT_TRY(has(ctx, path, need, &fits));
        if (fits)
            break;
        TT_TRY(tti_run_folder_below(ctx, root, name, &number, path));
    }
    if (!fits)
        memcpy(path, newest, sizeof(newest)); // errors are of that one
    else if (strcmp(path, newest) != 0)
        TT_LOG(ctx, TT_WARN, "'%s' has no %s; '%s' is used", newest,
               need == CLI_STEPS ? "steps" : "checkpoint", path);
    return TT_OK;
}

// Are the two the same once their digits are gone?
static bool differ_in_digits(const char *a, const char *b)
{
    for (;; a++, b++) {
        a += strspn(a, "0123456789");
        b += strspn(b, "0123456789");
        if (*a != *b || *a == '\0')
            return *a == *b;
    }
}

// "digits" of "digits-003"; false: the name has no number.
static bool job_of(const char *name, char out[TTI_RUN_PATH])
{
    size_t n = strlen(name);
    while (n > 0 && name[n - 1] >= '0' && name[n - 1] <= '9')
        n--;
    if (n < 2 || name[n - 1] != '-' || name[n] == '\0')
        return false;
    snprintf(out, TTI_RUN_PATH, "%.*s", (int)(n - 1), name);
    return true;
}

static void keep_nearer(const char *word, const char *name, int *least, char near[TTI_RUN_PATH])
{
    const char *const one[] = {name, NULL};
    int d = tti_distance(word, name);
    if (tti_nearest(word, one) == NULL || differ_in_digits(word, name) || d >= *least)
        return;
    *least = d;
    snprintf(near, TTI_RUN_PATH, "%s", name);
}

bool cli_run_near(const char *path, char near[TTI_RUN_PATH])
{
    char folder[TTI_PATH_MAX], run[TTI_PATH_MAX], job[TTI_RUN_PATH], best[TTI_RUN_PATH] = "";
    const char *slash = strrchr(path, '/'), *word = slash != NULL ? slash + 1 : path;
    int least = 1 << 20;
    // "/" is a folder, too
    if (snprintf(folder, sizeof(folder), "%.*s", slash > path ? (int)(slash - path) : 1,
                 slash != NULL ? path : ".") >= (int)sizeof(folder))
        return false;
    DIR *d = opendir(folder);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        if (tti_file_join(NULL, run, folder, e->d_name) != TT_OK || !cli_is_run(run))
            continue;
        keep_nearer(word, e->d_name, &least, best);
        if (job_of(e->d_name, job))
            keep_nearer(word, job, &least, best);
    }
    if (d != NULL)
        closedir(d);
    if (best[0] != '\0')
        snprintf(near, TTI_RUN_PATH, "%.*s%.1024s", slash != NULL ? (int)(word - path) : 0, path,
                 best);
    return best[0] != '\0';
}

// A run's folder; else one of that name in the runs' root; else the newest run of the job of that
// name.
tt_status cli_run_find(tt_ctx *ctx, const cli_args *args, const char *word, cli_need need,
                       char path[TTI_RUN_PATH])
{
    size_t n = strlen(word);
    while (n > 1 && word[n - 1] == '/')
        n--;
    if (n >= TTI_RUN_PATH)
        return TT_FAIL(ctx, TT_EINVAL,
                       "'%.200s...': the path of a run has %zu bytes; at most %d are allowed", word,
                       n, TTI_RUN_PATH - 1);
    snprintf(path, TTI_RUN_PATH, "%.*s", (int)n, word);
    bool is_folder = cli_is_folder(path);
    if (cli_is_run(path))
        return TT_OK;
    const char *root = args->runs != NULL ? args->runs : "runs";
    if (strchr(word, '/') == NULL) {
        int length = snprintf(path, TTI_RUN_PATH, "%s/%s", root, word);
        if (length < TTI_RUN_PATH && cli_is_run(path))
            return TT_OK;
        TT_TRY(cli_run_newest(ctx, root, word, need, path));
        if (*path != '\0')
            return TT_OK;
    }
    if (is_folder)
        return TT_FAIL(ctx, TT_EIO,
                       "'%s' is a folder without job.yaml and checkpoints, so it is not a run, and "
                       "there is no run of that name in '%s'",
                       word, root);
    char near[TTI_RUN_PATH];
    int length = snprintf(path, TTI_RUN_PATH, "%s/%s", root, word);
    bool is_path = strchr(word, '/') != NULL;
    if (length < TTI_RUN_PATH && cli_run_near(is_path ? word : path, near))
        return TT_FAIL(ctx, TT_EIO, "there is no run '%s' here or in '%s'; did you mean '%s'?",
                       word, root, is_path ? near : near + strlen(root) + 1);
    return TT_FAIL(ctx, TT_EIO,
                   "there is no run '%s' here or in '%s'; tutti runs lists those there are", word,
                   root);
}

bool cli_has_checkpoint(const char *run)
{
    return newest_step(run) >= 0;
}

tt_status cli_newest_checkpoint(tt_ctx *ctx, const char *run, char path[TTI_RUN_PATH + 64])
{
    long long newest = newest_step(run);
    if (newest < 0)
        return TT_FAIL(ctx, TT_EIO, "'%s/checkpoints' has no checkpoint yet", run);
    snprintf(path, TTI_RUN_PATH + 64, "%s/checkpoints/step-%lld", run, newest);
    return TT_OK;
}

static tt_status job_run(tt_ctx *ctx, const cli_args *args, const char *file,
                         char path[TTI_RUN_PATH])
{
    tt_job *job = tt_job_read(ctx, file);
    if (job == NULL)
        return tt_status_of(ctx);
    const char *dir = tt_job_get(job, "output.dir");
    const char *root = args->runs != NULL ? args->runs : dir != NULL && *dir != '\0' ? dir : "runs";
    TT_TRY(cli_run_newest(ctx, root, tt_job_name(job), CLI_CHECKPOINT, path));
    if (*path == '\0')
        return TT_FAIL(ctx, TT_EIO, "there is no run of '%s' in '%s'; train it first",
                       tt_job_name(job), root);
    return TT_OK;
}

// A run, a checkpoint, or a folder of checkpoints?
static bool holds_weights(const char *folder)
{
    bool found =
        has_file(folder, "job.yaml") || has_file(folder, TTI_MANIFEST) || newest_step(folder) >= 0;
    DIR *d = found ? NULL : opendir(folder);
    for (struct dirent *e; d != NULL && !found && (e = readdir(d)) != NULL;)
        found = tti_checkpoint_step(e->d_name) >= 0;
    if (d != NULL)
        closedir(d);
    return found;
}

// Is there a run in the root that the word means?
static bool is_named_run(tt_ctx *ctx, const cli_args *args, const char *word)
{
    char path[TTI_RUN_PATH];
    const char *root = args->runs != NULL ? args->runs : "runs";
    if (snprintf(path, sizeof(path), "%s/%s", root, word) < (int)sizeof(path) && cli_is_run(path))
        return true;
    return tti_run_folder_newest(ctx, root, word, path) == TT_OK && path[0] != '\0';
}

tt_status cli_weights_find(tt_ctx *ctx, const cli_args *args, const char *word,
                           char path[TTI_PATH_MAX])
{
    const char *dot = strrchr(word, '.');
    bool is_there = tti_file_exists(word);
    bool is_file = strchr(word, '/') != NULL || (dot != NULL && strcmp(dot, ".safetensors") == 0) ||
                   cli_is_job_file(word);
    if (is_there && cli_is_job_file(word))
        return job_run(ctx, args, word, path);
    if (!is_there && strchr(word, '/') == NULL && cli_is_folder(word) && !holds_weights(word) &&
        is_named_run(ctx, args, word))
        return cli_run_find(ctx, args, word, CLI_CHECKPOINT, path);
    if (!is_there && !cli_is_folder(word)) {
        if (is_file)
            return TT_FAIL(ctx, TT_EIO, "there is no file or folder '%s'", word);
        return cli_run_find(ctx, args, word, CLI_CHECKPOINT, path);
    }
    if (snprintf(path, TTI_PATH_MAX, "%s", word) >= TTI_PATH_MAX)
        return TT_FAIL(ctx, TT_EINVAL, "%.200s...: a path of more than %d bytes", word,
                       TTI_PATH_MAX - 1);
    return TT_OK;
}
