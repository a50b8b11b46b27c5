/*
 * resize.c - tutti resize: another number of processes for an elastic job that runs (resize.h).
 */
#include "cli/resize.h"
#include "base/file.h"
#include "cli/cli.h"
#include "record/record.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REQUEST   "workers.request"
#define ANSWER    "workers.answer"
#define MOST_MS   5000
#define LOOK_MS   20
#define MOST_TEXT 256

static void path_of(const char *run, const char *name, char out[TTI_RUN_PATH + 32])
{
    snprintf(out, TTI_RUN_PATH + 32, "%s/%s", run, name);
}

static bool read_line(const char *path, char text[MOST_TEXT])
{
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return false;
    bool ok = fgets(text, MOST_TEXT, f) != NULL;
    fclose(f);
    text[ok ? strcspn(text, "\n") : 0] = '\0';
    return ok;
}

bool cli_resize_take(const char *run, int *wanted)
{
    char path[TTI_RUN_PATH + 32], text[MOST_TEXT];
    path_of(run, REQUEST, path);
    if (access(path, F_OK) != 0)
        return false;
    bool ok = read_line(path, text);
    (void)unlink(path);
    if (!ok)
        return false;
    int n = atoi(text);
    *wanted = text[0] == '+' ? *wanted + n : n;
    return true;
}

void cli_resize_answer(const char *run, const char *refused)
{
    char path[TTI_RUN_PATH + 32], text[MOST_TEXT + 1];
    path_of(run, ANSWER, path);
    snprintf(text, sizeof(text), "%.250s\n", refused);
    if (tti_file_replace(NULL, path, text, strlen(text)) != TT_OK)
        return; // the disk is full: who asked is told that nobody answers
}

// ---- the verb --------------------------------------------------------------------------------

static int await_answer(const char *run)
{
    char request[TTI_RUN_PATH + 32], path[TTI_RUN_PATH + 32], text[MOST_TEXT];
    path_of(run, ANSWER, path);
    path_of(run, REQUEST, request);
    for (int ms = 0; ms < MOST_MS; ms += LOOK_MS) {
        if (read_line(path, text)) {
            (void)unlink(path);
            return text[0] == '\0' ? CLI_OK : cli_error("%s", text);
        }
        usleep(LOOK_MS * 1000);
    }
    (void)unlink(request);
    return cli_error("no elastic job trains in '%s': only tutti run --workers A..B starts one, and "
                     "its launcher did not answer within %d s",
                     run, MOST_MS / 1000);
}

static int run(const cli_args *args)
{
    char path[TTI_RUN_PATH + 32], folder[TTI_RUN_PATH], text[32], *end;
    const char *word = args->words[1];
    errno = 0;
    long n = strtol(word, &end, 10);
    if (end == word || *end != '\0' || errno != 0 || n < -1024 || n > 1024 ||
        (n < 1 && word[0] != '+' && word[0] != '-'))
        return cli_usage("tutti resize: '%s' is not a number of processes, such as 4, or +1", word);
    cli_args plain = {.level = args->level};
    tt_ctx *ctx = cli_open(&plain, "cpu:0");
    if (ctx == NULL)
        return CLI_FAILED;
    tt_status st = cli_run_find(ctx, args, args->words[0], CLI_NOTHING, folder);
    if (st == TT_OK) {
        path_of(folder, ANSWER, path);
        (void)unlink(path);
        path_of(folder, REQUEST, path);
        snprintf(text, sizeof(text), "%s%ld\n", word[0] == '+' ? "+" : "", n);
        st = tti_file_replace(ctx, path, text, strlen(text));
    }
    int rc = cli_close(ctx, NULL);
    return st == TT_OK ? await_answer(folder) : rc;
}

const cli_verb cli_resize = {
    .name = "resize",
    .words = "RUN N",
    .summary = "change the number of processes of an elastic job that runs",
    .help = "RUN is the folder or name of a run that tutti run --workers A..B trains; N is the new "
            "number\n"
            "of processes, within A..B, or +K for K more. New ones are started where the job was, "
            "join\n"
            "at the next step and take the state from a process that trains; those that are no "
            "longer\n"
            "needed end after a step. Weights do not change by it.\n"
            "\n"
            "  tutti run -n 2 --workers 1..4 job.yaml --run a\n"
            "  tutti resize a 4\n",
    .flags = "runs",
    .min_words = 2,
    .max_words = 2,
    .run = run,
};
