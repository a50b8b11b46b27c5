/*
 * evaluator.c - evaluates the checkpoints of a run that other processes train, as they come.
 *
 * All it shares with them is the run's folder. events.jsonl tells whether the run goes on: its last
 * "begin" has an "end" after it or not. The run that is meant is the newest of the job (or that of
 * --run), unless it was over before this job can have begun: its processes start within the time
 * that they wait for each other. A checkpoint that comes while another is evaluated may be passed
 * over, the last one never is.
 */
#include "cli/evaluator.h"
#include "base/file.h"
#include "cli/report.h"
#include "cli/signals.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOK_MS 200

typedef struct watch {
    cli_job *j;
    const cli_args *args;
    tt_data *data;
    const char *what;       // the data's name
    double since;           // a run that ended is meant only if it began no earlier
    char run[TTI_RUN_PATH]; // the one that is watched; "": none yet
    FILE *events;           // of that run; read up to a whole line
    double began;           // its last begin
    bool is_over;
    char done[TTI_PATH_MAX]; // the checkpoint that was evaluated last
} watch;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double rendezvous_seconds(void)
{
    const char *text = tti_env("TUTTI_RENDEZVOUS_MS");
    double ms = text != NULL ? strtod(text, NULL) : 0;
    return ms > 0 ? ms / 1000 : 10;
}

// ---- the run ---------------------------------------------------------------------------------

static void read_events(watch *w)
{
    char *line = NULL, path[TTI_RUN_PATH + 16];
    size_t room = 0;
    snprintf(path, sizeof(path), "%s/events.jsonl", w->run);
    if (w->events == NULL && tti_file_is_regular(path))
        w->events = fopen(path, "re");
    if (w->events == NULL)
        return;
    clearerr(w->events);
    for (long at; at = ftell(w->events), getline(&line, &room, w->events) > 0;) {
        if (strchr(line, '\n') == NULL) { // it is being written
            (void)fseek(w->events, at, SEEK_SET);
            break;
        }
        if (strstr(line, "\"event\": \"end\"") != NULL)
            w->is_over = true;
        if (strstr(line, "\"event\": \"begin\"") == NULL)
            continue;
        w->is_over = false;
        w->began = 0;
        (void)sscanf(line, "{\"time\": %lf", &w->began);
    }
    free(line);
}

static void leave_run(watch *w)
{
    if (w->events != NULL)
        fclose(w->events);
    w->events = NULL;
    w->run[0] = '\0';
    w->is_over = false;
    w->began = 0;
}

// Finds the run and how far it is; false: it has not begun yet.
static bool find_run(watch *w)
{
    char run[TTI_RUN_PATH] = "";
    const char *given = w->args->run != NULL ? w->args->run : w->j->run;
    if (given[0] != '\0' && snprintf(run, sizeof(run), "%s", given) >= (int)sizeof(run))
        return false; // those who train refuse it
    if (given[0] == '\0' &&
        tti_run_folder_newest(w->j->ctx, w->j->runs, tt_job_name(w->j->job), run) != TT_OK)
        return false;
    if (strcmp(run, w->run) != 0) {
        leave_run(w);
        memcpy(w->run, run, sizeof(run));
    }
    if (run[0] != '\0')
        read_events(w);
    return w->began > 0 && (!w->is_over || w->began >= w->since);
}

// ---- evaluating ------------------------------------------------------------------------------

static void put_line(tti_text *t, const watch *w, long long step, const tt_evaluation *e)
{
    tt_hash hash;
    char hex[33];
    if (tt_model_hash(w->j->parts.model, &hash) != TT_OK)
        return;
    cli_hash_text(&hash, hex);
    tti_text_add(t, "{\"event\": \"evaluation\", \"step\": %lld, \"data\": \"%s\", ", step,
                 w->what);
    cli_evaluation_json(t, e);
    tti_text_add(t, ", \"weights_hash\": \"%s\", \"checkpoint\": ", hex);
    tti_text_json(t, w->done);
    tti_text_add(t, "}\n");
}

// To the run's evaluations.jsonl, and in the form that was asked for.
static tt_status tell(const watch *w, const tt_evaluation *e)
{
    char path[TTI_RUN_PATH + 32];
    long long step = atoll(strrchr(w->done, '-') + 1);
    tti_text line = {.ctx = w->j->ctx}, t = {.ctx = w->j->ctx};
    put_line(&line, w, step, e);
    char *s = tti_text_take(&line);
    if (s == NULL)
        return TT_ENOMEM;
    snprintf(path, sizeof(path), "%s/evaluations.jsonl", w->run);
    FILE *f = fopen(path, "ae");
    if (f == NULL || fputs(s, f) < 0)
        TT_LOG(w->j->ctx, TT_WARN, "cannot write '%s'", path);
    if (f != NULL)
        fclose(f);
    tti_text_add(&t, "step %-8lld %-12s", step, w->what);
    cli_evaluation_text(&t, e);
    tti_text_add(&t, "  %lld records\n", (long long)e->rows);
    if (w->args->json)
        cli_print(s);
    else if (!w->args->quiet)
        cli_print_text(&t);
    fflush(stdout);
    tti_text_free(&t);
    tti_free(w->j->ctx, s);
    return tt_status_of(w->j->ctx);
}

// Of the newest checkpoint, unless it was evaluated already.
static tt_status evaluate(watch *w, bool *is_new)
{
    tt_ctx *ctx = w->j->ctx;
    tt_model *m = w->j->parts.model;
    const tt_fit_opts *fit = w->j->parts.fit;
    char path[TTI_PATH_MAX];
    tt_evaluation e;
    *is_new = false;
    if (!cli_has_checkpoint(w->run))
        return TT_OK;
    TT_TRY(cli_newest_checkpoint(ctx, w->run, path));
    if (strcmp(path, w->done) == 0)
        return TT_OK;
    *is_new = true;
    if (tt_load(m, path) != TT_OK) {
        if (cli_is_folder(path))
            return tt_status_of(ctx);
        tt_clear_error(ctx); // a newer one has taken its place
        return TT_OK;
    }
    memcpy(w->done, path, sizeof(path));
    TT_TRY(tt_evaluate(m, w->data, &e, .batch = fit->batch, .accumulate = fit->accumulate));
    return tell(w, &e);
}

int cli_evaluator(cli_job *j, const cli_args *args)
{
    watch w = {.j = j, .args = args, .what = "test", .since = now() - rendezvous_seconds()};
    w.data = j->parts.test;
    if (w.data == NULL) {
        w.data = j->parts.validate;
        w.what = "validation";
    }
    if (j->parts.model == NULL || w.data == NULL) {
        (void)TT_FAIL(j->ctx, TT_EINVAL,
                      "an evaluator needs data: %s has neither data.test nor data.validate",
                      j->file);
        return CLI_BAD_JOB;
    }
    cli_signals_over(); // there is nothing to save
    tt_status st = TT_OK;
    for (bool is_new = false; st == TT_OK;) {
        bool found = find_run(&w), over = found && w.is_over;
        if (found)
            st = evaluate(&w, &is_new);
        else
            st = tt_status_of(j->ctx);
        if (over && !is_new)
            break;
        if (!is_new)
            nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000}, NULL);
        is_new = false;
    }
    leave_run(&w);
    return cli_code(st);
}
