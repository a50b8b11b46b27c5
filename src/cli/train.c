/*
 * train.c - tutti train: trains a job in a folder of its own, shows it, and says how it went.
 */
#include "base/file.h"
#include "cli/board.h"
#include "cli/elastic.h"
#include "cli/engine.h"
#include "cli/evaluator.h"
#include "cli/notify.h"
#include "cli/progress.h"
#include "cli/proof.h"
#include "cli/ranks.h"
#include "cli/report.h"
#include "cli/signals.h"
#include "cli/trial.h"
#include "job/job.h"
#include "save/checkpoint.h"
#include "train/compile.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

typedef struct training {
    const cli_args *args;
    cli_args again; // for the next membership of an elastic job
    cli_job j;
    char run[TTI_RUN_PATH];
    char checkpoints[TTI_RUN_PATH + 16];
    int lock;                 // the folder, open and locked; -1: none
    bool is_new, is_root_new; // the folder, and the one it is in, were made by this process
    bool is_traced;
    bool is_ended; // on request, of this process or another of the job
    tti_rank_log *log;
    cli_progress progress;
    cli_form form; // of the progress where this process shows it
    cli_notify notify;
    cli_trial trial;
} training;

// ---- the folder ------------------------------------------------------------------------------

static bool holds_run(const char *folder)
{
    char path[TTI_RUN_PATH + 16];
    snprintf(path, sizeof(path), "%s/job.yaml", folder);
    return tti_file_exists(path);
}

// In the folder of a run that there is.
static bool goes_on(const cli_args *args)
{
    return args->resume || args->restart;
}

// A name that looks like a slip of another run's: refused rather than begun. One that differs in
// digits only is a sister of it.
static tt_status check_resumed(training *t)
{
    char near[TTI_RUN_PATH];
    const char *by = tti_env("TUTTI_STARTED_BY"); // a file of ours resumes whatever is there
    bool is_ours = by != NULL && strncmp(by, CLI_ENGINE_BY, strlen(CLI_ENGINE_BY)) == 0;
    if (!is_ours && cli_run_near(t->run, near))
        return TT_FAIL(t->j.reader, TT_EINVAL,
                       "there is no run '%s' to resume; did you mean '%s'? Without --resume a new "
                       "run is started there",
                       t->run, near);
    if (!t->args->quiet)
        cli_tell("there is no run in '%s' to resume; a new one is started\n", t->run);
    return TT_OK;
}

// The folder that --run or the command line names.
static tt_status given_folder(training *t, const char *given)
{
    tt_ctx *ctx = t->j.reader;
    if (snprintf(t->run, sizeof(t->run), "%s", given) >= (int)sizeof(t->run))
        return TT_FAIL(ctx, TT_EINVAL,
                       "--run '%.200s...': the path has %zu bytes; at most %d are allowed", given,
                       strlen(given), TTI_RUN_PATH - 1);
    if (!goes_on(t->args) && holds_run(t->run))
        return TT_FAIL(ctx, TT_EINVAL, "'%s' already holds a run; add --resume to continue it",
                       t->run);
    if (t->args->restart && !holds_run(t->run))
        return TT_FAIL(ctx, TT_EINVAL, "'%s' holds no run to restart", t->run);
    t->is_new = !cli_is_folder(t->run);
    if (t->args->resume && t->is_new)
        TT_TRY(check_resumed(t));
    return tti_folder_make(ctx, t->run);
}

static tt_status choose_folder(training *t)
{
    tt_ctx *ctx = t->j.reader;
    const char *given = t->args->run != NULL ? t->args->run : t->j.run;
    if (given[0] != '\0')
        return given_folder(t, given);
    if (goes_on(t->args)) {
        // A run that was killed at once has a folder, too, and nothing in it to go on with.
        TT_TRY(cli_run_newest(ctx, t->j.runs, tt_job_name(t->j.job), CLI_STEPS, t->run));
        if (t->run[0] != '\0')
            return TT_OK;
        if (t->args->restart)
            return TT_FAIL(ctx, TT_EINVAL, "'%s' has no run in '%s' to restart",
                           tt_job_name(t->j.job), t->j.runs);
        if (!t->args->quiet)
            cli_tell("'%s' has no run in '%s' to resume; a new one is started\n",
                     tt_job_name(t->j.job), t->j.runs);
    }
    t->is_root_new = !cli_is_folder(t->j.runs);
    tt_status st = tti_run_folder_new(ctx, t->j.runs, tt_job_name(t->j.job), t->run);
    t->is_new = st == TT_OK;
    return st;
}

// A start that failed before its first step leaves nothing behind.
static void remove_folder(training *t)
{
    if (!t->is_new || t->progress.has_steps)
        return;
    tti_folder_discard(NULL, t->run);
    if (t->is_root_new)
        (void)rmdir(t->j.runs); // unless another run is in it
}

// Two processes that train in one folder would spoil each other's checkpoints.
static tt_status lock_folder(training *t)
{
    t->lock = open(t->run, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (t->lock < 0)
        return TT_FAIL(t->j.reader, TT_EIO, "cannot open '%s': %s", t->run, strerror(errno));
    int tries = 0; // tutti runs looks whether it is locked, which takes no time
    while (flock(t->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK && ++tries < 10)
        usleep(10000);
    if (tries == 10)
        return TT_FAIL(t->j.reader, TT_EIO, "another process is training in '%s'", t->run);
    return TT_OK;
}

// The resolved job, so that the run can be understood and resumed without the file it came from.
static tt_status write_job(training *t)
{
    char path[TTI_RUN_PATH + 16];
    char *text = tt_job_print(t->j.job);
    if (text == NULL)
        return TT_ENOMEM;
    snprintf(path, sizeof(path), "%s/job.yaml", t->run);
    tt_status st = tti_file_replace(t->j.reader, path, text, strlen(text));
    tt_string_free(t->j.reader, text);
    return st;
}

static tt_status make_folder(training *t)
{
    TT_TRY(choose_folder(t));
    TT_TRY(lock_folder(t));
    TT_TRY(tti_fresh_clean(t->j.reader, t->run)); // of a process that was killed
    return holds_run(t->run) ? TT_OK : write_job(t);
}

// The folder that an elastic job has already. A first rank that is frozen may hold its lock: what
// keeps it from doing harm is that it publishes nothing any more (base/file.h).
static tt_status take_over(training *t)
{
    if (snprintf(t->run, sizeof(t->run), "%s", cli_elastic_run()) >= (int)sizeof(t->run) ||
        !holds_run(t->run))
        return TT_FAIL(t->j.reader, TT_EIO,
                       "the run's folder '%s' is not on this host: the hosts of an elastic job "
                       "need a folder that all of them share (--runs)",
                       cli_elastic_run());
    if (t->lock < 0)
        t->lock = open(t->run, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void)!flock(t->lock, LOCK_EX | LOCK_NB);
    return TT_OK;
}

// The first rank makes it and tells the others.
static tt_status share_folder(training *t)
{
    tt_status st = TT_OK;
    if (cli_is_first(t->j.ctx))
        st = cli_elastic_run()[0] != '\0' ? take_over(t) : make_folder(t);
    st = cli_share_path(t->j.ctx, st, tt_last_error(t->j.reader).message, t->run);
    if (st != TT_OK && cli_ranks(t->j.ctx) > 1)
        tt_clear_error(t->j.reader); // the context has it
    snprintf(t->checkpoints, sizeof(t->checkpoints), "%s/checkpoints", t->run);
    if (st == TT_OK)
        st = cli_elastic_folder(t->j.ctx, t->run, t->checkpoints);
    if (st == TT_OK && cli_ranks(t->j.ctx) > 1)
        st = tti_rank_log_open(t->j.ctx, t->run, cli_rank(t->j.ctx), &t->log);
    return st;
}

// A run that goes on has its weights in a checkpoint: the file of init is not asked for. The exit
// code.
static int first_weights(training *t)
{
    char newest[TTI_PATH_MAX] = "", found[TTI_RUN_PATH] = ""; // found: the run, if it has one
    tt_ctx *ctx = t->j.ctx;
    tt_status st = TT_OK;
    if (!t->j.no_init)
        return CLI_OK;
    if (cli_is_first(ctx))
        st = tti_checkpoint_newest(ctx, t->checkpoints, newest);
    if (newest[0] != '\0')
        memcpy(found, t->run, sizeof(found));
    st = cli_share_path(ctx, st, tt_last_error(ctx).message, found);
    if (st != TT_OK || found[0] != '\0')
        return cli_code(st);
    st = tti_job_init_weights(t->j.job, ctx, t->j.runs, t->j.parts.model);
    return st == TT_EIO ? CLI_BAD_JOB : cli_code(st); // what the job names is not there
}

// ---- training --------------------------------------------------------------------------------

static training *current; // for the event that a fit begins

static void on_begin(void)
{
    cli_signals_fit(current->j.ctx);
    if (cli_elastic_ends())
        tt_request_end(current->j.ctx);
    // Only now does a resumed run get its new job: one that the fit refuses leaves it alone.
    if (goes_on(current->args) && cli_is_first(current->j.ctx) && write_job(current) != TT_OK)
        tt_request_end(current->j.ctx); // told when the reader is closed
}

// After the steps that --trace asks for; the trace goes on, but is written once.
static tt_status on_traced(void *user, tt_model *m, const tt_progress *p)
{
    training *t = user;
    char path[TTI_RUN_PATH + 16];
    (void)p;
    if (t->is_traced)
        return TT_OK;
    t->is_traced = true;
    snprintf(path, sizeof(path), "%s/trace.json", t->run);
    return tt_trace_write(tt_model_get_session(m), path);
}

// --until: the schedule stays that of the whole training.
static tt_status on_until(void *user, tt_model *m, const tt_progress *p)
{
    const training *t = user;
    (void)m;
    return p->step >= t->args->until && p->step < p->steps ? TT_ESTOP : TT_OK;
}

static tt_status fit(training *t)
{
    const cli_args *args = t->args;
    tt_fit_opts o = *t->j.parts.fit;
    tti_recorder *recorder = NULL;
    cli_proof proof = {0};
    cli_board board;
    int n = 0;
    o.checkpoints = t->checkpoints;
    o.resume = args->resume;
    o.restart = args->restart;
    o.profile = args->profile;
    o.hashes = args->hashes != NULL;
    const tt_callback traced[] = {*tt_callback(TT_AT_STEP, args->trace, on_traced, t),
                                  *tt_callback(TT_AT_END, 1, on_traced, t)};
    if (args->trace > 0) {
        o.trace = true;
        o.callbacks[n++] = &traced[0];
        o.callbacks[n++] = &traced[1];
    }
    const tt_callback *until = tt_callback(TT_AT_STEP, 1, on_until, t);
    const tt_callback *trial = tt_callback(TT_AT_STEP, CLI_TRIAL_EVERY, cli_trial_look, &t->trial);
    bool timed = args->profile == 0 && args->trace == 0 && !o.hashes; // measuring costs time itself
    if (tt_device_count(t->j.ctx) > 1 && cli_ranks(t->j.ctx) == 1 && timed && !args->no_trial &&
        t->j.trial)
        o.callbacks[n++] = trial;
    if (args->until > 0)
        o.callbacks[n++] = until;
    if (cli_is_first(t->j.ctx))
        TT_TRY(tti_recorder_open(t->j.ctx, t->run, t->j.tensorboard, &recorder));
    if (cli_is_first(t->j.ctx))
        cli_notify_watch(&t->notify, t->j.ctx, t->run);
    tt_status st = cli_proof_begin(&proof, &t->j, args, recorder, t->run);
    if (st == TT_OK) // what the first process cannot do fails its fit, and the others learn of it
        st = cli_board_begin(&board, &t->j, recorder, &o, &n);
    if (st == TT_OK)
        st = tt_fit_with(t->j.parts.model, t->j.parts.train, &o);
    cli_signals_over();
    tti_recorder_close(recorder);
    cli_notify_unwatch(&t->notify);
    cli_proof_end(&proof, t->j.ctx);
    cli_progress_clear(&t->progress);
    t->is_ended = cli_signals_code() != CLI_OK;
    if (t->progress.has_ended && st == TT_ESTOP) { // on request, and saved
        tt_clear_error(t->j.ctx);
        t->is_ended = true;
    }
    return st;
}

// ---- afterwards ------------------------------------------------------------------------------

static void print_profile(training *t)
{
    char *s = tt_fit_profile(t->j.parts.model, t->args->json);
    if (t->args->json && s != NULL && s[0] == '{')
        printf("{\"event\": \"profile\", %s", s + 1);
    else
        printf("\n%s", s != NULL ? s : "");
    tt_string_free(t->j.ctx, s);
}

// "tutti train", or as tutti run was called, which tells it to its processes.
static const char *called(void)
{
    const char *run = tti_env("TUTTI_STARTED_BY");
    return run != NULL && run[0] != '\0' ? run : "tutti train";
}

static tt_status report(training *t)
{
    tt_model *m = t->j.parts.model;
    cli_report r = {.model = m, .run = t->run, .spread_ms = t->trial.spread_ms};
    r.one_ms = t->trial.one_ms;
    bool stopped = t->is_ended, is_first = cli_is_first(t->j.ctx);
    TT_TRY(tt_fit_report_get(m, &r.fit));
    if (t->args->hashes != NULL) // the first one writes those of all
        TT_TRY(tt_hashes_write(tt_model_get_session(m), t->args->hashes));
    if (t->j.parts.test != NULL && !stopped) {
        TT_TRY(tt_evaluate(m, t->j.parts.test, &r.test, .batch = t->j.parts.fit->batch,
                           .accumulate = t->j.parts.fit->accumulate));
        r.has_test = true;
    }
    if (!is_first)
        return TT_OK;
    if (t->args->profile > 0 && !t->args->quiet)
        print_profile(t);
    if (t->args->json)
        cli_report_json(t->j.ctx, &r);
    else if (!t->args->quiet)
        cli_report_text(t->j.ctx, &r);
    if (stopped && !t->args->quiet)
        cli_tell("stopped and saved; to continue: %s %s --resume\n", called(), t->run);
    return TT_OK;
}

static int train(training *t)
{
    int64_t begin = tti_now_ns();
    t->j.no_init = t->args->resume && !t->args->restart;
    int rc = cli_job_build(&t->j, t->args, cli_progress_event, &t->progress);
    t->trial = (cli_trial){.job = t->j.job, .opened_ns = tti_now_ns() - begin};
    if (tt_status_of(t->j.ctx != NULL ? t->j.ctx : t->j.reader) == TT_ESTOP)
        return cli_signals_code() != CLI_OK ? cli_signals_code() : CLI_AGAIN; // asked to end
    if (rc != CLI_OK)
        return rc;
    if (t->j.is_beside)
        return t->j.evaluates ? cli_evaluator(&t->j, t->args) : CLI_OK;
    if (t->j.ctx->epoch > 1 && t->args != &t->again) { // a newcomer
        t->again = *t->args;
        t->again.resume = true;
        t->again.restart = false;
        t->args = &t->again;
    }
    t->progress.form = cli_is_first(t->j.ctx) ? t->form : CLI_QUIET;
    if (t->j.ctx->epoch < 2 && cli_tell_ranks(t->j.ctx, t->args) != TT_OK)
        return cli_code(tt_status_of(t->j.ctx));
    if (t->j.parts.model != NULL && t->j.parts.model->step == NULL && !t->args->dry_run) {
        TT_FAIL(t->j.ctx, TT_EINVAL,
                "%s has no section train, which says how to train: for example train: {loss: "
                "cross_entropy, optimizer: adam, epochs: 3} (tutti help job train)",
                t->j.file);
        return CLI_BAD_JOB;
    }
    if (t->args->dry_run)
        return cli_code(cli_dry_run(&t->j, t->args));
    if (t->j.parts.train == NULL || t->j.parts.model == NULL) {
        TT_FAIL(t->j.ctx, TT_EINVAL, "%s has no %s", t->j.file,
                t->j.parts.train == NULL ? "data.train" : "model");
        return CLI_BAD_JOB;
    }
    if (t->args->run == NULL && t->j.run[0] == '\0' &&
        tti_run_name_check(t->j.ctx, tt_job_name(t->j.job)) != TT_OK)
        return CLI_BAD_JOB;
    // A job that does not fit is refused before it has a folder.
    if (cli_job_check_memory(&t->j, false) != TT_OK)
        return cli_code(tt_status_of(t->j.ctx));
    if (share_folder(t) != TT_OK)
        return cli_code(tt_status_of(t->j.ctx)) == CLI_LOST ? CLI_LOST : CLI_FAILED;
    rc = first_weights(t);
    if (rc != CLI_OK)
        return rc;
    tt_status st = fit(t);
    if (t->j.ctx->elastic != NULL && t->j.ctx->elastic->is_changed)
        return CLI_OK; // at a step, for other processes to come or to go
    int asked = cli_signals_code();
    if (asked == CLI_OK && t->is_ended) // by another rank
        asked = CLI_AGAIN;
    if (st == TT_OK || t->progress.has_ended) {
        st = report(t);
    } else if (st == TT_ESTOP && asked != CLI_OK) { // inside a step
        tt_clear_error(t->j.ctx);
        if (t->is_new && !t->progress.has_steps)
            cli_tell("stopped before the first step; there was nothing to save\n");
        else
            cli_tell(
                "stopped without saving; to continue from the last checkpoint: %s %s --resume\n",
                called(), t->run);
        st = TT_OK;
    }
    if (st != TT_OK && tt_status_of(t->j.ctx) != TT_OK)
        st = tt_status_of(t->j.ctx); // the cause, which is printed, not what it led to
    return st == TT_OK ? asked : cli_code(st);
}

// One of the job's processes tells, also where they have not met.
static bool is_first_rank(const tt_ctx *ctx)
{
    const char *rank = tti_env("TUTTI_RANK");
    return ctx != NULL ? cli_is_first(ctx) : rank == NULL || strcmp(rank, "0") == 0;
}

// The members of an elastic job change: this process goes on with the others, from what it keeps.
static bool goes_on_with_others(training *t, int rc)
{
    if (!cli_elastic_again(&t->j, rc))
        return false;
    cli_signals_again();
    tti_rank_log_close(t->log);
    t->log = NULL;
    if (t->j.ctx != NULL)
        (void)tt_close(t->j.ctx);
    t->j.ctx = NULL;
    t->j.parts = (tt_job_parts){0};
    tt_clear_error(t->j.reader);
    t->progress.has_ended = t->is_ended = t->is_traced = false;
    return true;
}

static int run(const cli_args *args)
{
    training t = {.args = args, .lock = -1};
    bool tells = false;
    current = &t;
    cli_signals_take();
    cli_progress_init(&t.progress, args, on_begin);
    int rc = cli_job_read(args, args->words[0], CLI_NOTHING, &t.j);
    if (rc == CLI_OK && t.j.run[0] != '\0' && !goes_on(args) && !args->dry_run)
        rc = cli_usage("'%s' is a run; add --resume to continue it", t.j.run);
    bool may_tell = is_first_rank(NULL) || cli_elastic_is_on(); // any process can become the first
    if (rc == CLI_OK && may_tell && !args->dry_run && cli_notify_init(&t.notify, &t.j) != TT_OK)
        rc = CLI_BAD_JOB;
    if (rc == CLI_OK) {
        t.form = t.progress.form;
        do
            rc = train(&t);
        while (goes_on_with_others(&t, rc));
        tells = !args->dry_run && !t.j.is_beside && is_first_rank(t.j.ctx);
    }
    char message[512];
    const tt_ctx *failed = t.j.ctx != NULL && tt_status_of(t.j.ctx) != TT_OK ? t.j.ctx : t.j.reader;
    snprintf(message, sizeof(message), "%.500s", tt_last_error(failed).message);
    rc = cli_job_close(&t.j, rc);
    if (tells)
        cli_notify_end(&t.notify, rc, message);
    tti_rank_log_close(t.log);
    if (rc != CLI_OK)
        remove_folder(&t);
    if (t.lock >= 0)
        close(t.lock);
    cli_elastic_close();
    return rc;
}

const cli_verb cli_train = {
    .name = "train",
    .words = "JOB",
    .summary = "train a model from a job file",
    .help =
        "JOB is a job file (tutti help job); with --resume it may also be a run's folder or name.\n"
        "\n"
        "The run is written to the folder runs/NAME-NNN: job.yaml (the job with every key),\n"
        "events.jsonl, chain.jsonl, tensorboard/ and checkpoints/. Ctrl-C saves and stops; a\n"
        "second Ctrl-C stops immediately. SIGTERM saves and exits with code 85. --resume\n"
        "continues and gives the same weights as an uninterrupted run; damaged checkpoints are\n"
        "skipped. --restart starts again at step 0. tutti help exit lists the exit codes.\n",
    .flags = "epochs batch lr set devices strategy lanes threads isa resume restart alone run runs "
             "dry-run json "
             "quiet profile "
             "trace hashes no-trial until chain key",
    .min_words = 1,
    .max_words = 1,
    .joins = true,
    .run = run,
};
