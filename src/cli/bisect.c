/*
 * bisect.c - tutti bisect: which key of a job, or which commit, changed the result. The changes
 * between the two ends are halved by trial runs; a trial that cannot be run is passed over, as git
 * bisect does it.
 */
#include "cli/bisect.h"
#include "cli/child.h"
#include "cli/run_facts.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_WORDS (CLI_MAX_TEXTS + 16)

// ---- a trial ---------------------------------------------------------------------------------

// Flags of this command that trials get, too.
static int trial_words(const cli_args *a, const char **out, char **made)
{
    int n = 0;
    const struct {
        const char *name, *value;
    } texts[] = {
        {"devices", a->devices}, {"strategy", a->strategy}, {"isa", a->isa}, {"lr", a->lr}};
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {{"threads", a->threads}, {"epochs", a->epochs}, {"batch", a->batch}};
    for (int i = 0; i < TTI_COUNT(texts); i++)
        if (texts[i].value != NULL &&
            asprintf(&made[n], "--%s=%s", texts[i].name, texts[i].value) > 0)
            n++;
    for (int i = 0; i < TTI_COUNT(numbers); i++)
        if (numbers[i].value > 0 &&
            asprintf(&made[n], "--%s=%lld", numbers[i].name, (long long)numbers[i].value) > 0)
            n++;
    for (int i = 0; i < a->sets.n; i++)
        if (asprintf(&made[n], "--set=%s", a->sets.v[i]) > 0)
            n++;
    for (int i = 0; i < n; i++)
        out[i] = made[i];
    return n;
}

// The first error in what the other process wrote.
static void read_why(tt_ctx *ctx, const char *log, int rc, cli_outcome *out)
{
    char *text = NULL;
    size_t n = 0;
    static const char word[] = "tutti: error: ";
    snprintf(out->why, sizeof(out->why), "exit code %d (%.200s)", rc, log);
    if (tti_file_read(ctx, log, (size_t)1 << 24, &text, &n) != TT_OK) {
        tt_clear_error(ctx);
        return;
    }
    const char *s = strstr(text, word);
    if (s != NULL)
        snprintf(out->why, sizeof(out->why), "%.*s",
                 (int)TTI_MIN(strcspn(s + sizeof(word) - 1, "\n"), sizeof(out->why) - 1),
                 s + sizeof(word) - 1);
    tti_free(ctx, text);
}

static tt_status read_outcome(cli_bisect_work *w, const char *run, cli_outcome *out)
{
    cli_facts f;
    TT_TRY(cli_facts_read(w->ctx, run, &f));
    snprintf(out->hash, sizeof(out->hash), "%s", f.info.hash);
    const cli_fact *m = w->args->metric != NULL ? cli_fact_find(&f, w->args->metric) : NULL;
    out->metric = m != NULL ? m->number : NAN;
    out->ran = out->hash[0] != '\0';
    cli_facts_free(&f);
    if (w->args->metric != NULL && m == NULL)
        return TT_FAIL(w->ctx, TT_EINVAL,
                       "--metric %s: the trials have no such metric; validation_loss, for example, "
                       "needs data.validate",
                       w->args->metric);
    return TT_OK;
}

tt_status cli_bisect_train(cli_bisect_work *w, const char *program, const char *job,
                           const char *name, cli_outcome *out)
{
    char run[TTI_PATH_MAX], log[TTI_PATH_MAX], run_flag[TTI_PATH_MAX + 8];
    const char *words[MOST_WORDS + 8] = {program, "train", job, run_flag, "--quiet", "--no-trial"};
    char *made[MOST_WORDS] = {NULL};
    *out = (cli_outcome){.metric = NAN};
    TT_TRY(tti_file_join(w->ctx, run, w->folder, name));
    snprintf(run_flag, sizeof(run_flag), "--run=%s", run);
    if (snprintf(log, sizeof(log), "%s.log", run) >= (int)sizeof(log))
        return TT_FAIL(w->ctx, TT_EINVAL, "'%s': the path is too long", run);
    int n = trial_words(w->args, words + 6, made);
    words[6 + n] = NULL;
    int rc = cli_child_run(&(cli_child){.words = words, .log = log});
    for (int i = 0; i < n; i++)
        free(made[i]); // asprintf()'s
    w->n_trials++;
    if (rc == CLI_OK)
        return read_outcome(w, run, out);
    read_why(w->ctx, log, rc, out);
    return TT_OK;
}

// ---- the search ------------------------------------------------------------------------------

void cli_outcome_text(const cli_bisect_work *w, const cli_outcome *o, char out[96])
{
    if (w->args->metric != NULL)
        snprintf(out, 96, "%.40s %.6g", w->args->metric, o->metric);
    else
        snprintf(out, 96, "weights %.16s", o->hash);
}

static bool is_good(const cli_bisect_work *w, const cli_outcome *o)
{
    if (w->args->metric == NULL)
        return strcmp(o->hash, w->good.hash) == 0;
    return fabs(o->metric - w->good.metric) <= w->args->bound;
}

static tt_status one_end(cli_bisect_work *w, int64_t k, const char *which, cli_outcome *out)
{
    if (!w->trial(w, k, out))
        return tt_status_of(w->ctx);
    if (!out->ran)
        return TT_FAIL(w->ctx, TT_EINVAL, "the %s end cannot be run: %s", which, out->why);
    return TT_OK;
}

// A trial between two ends, as near to the middle as one can be run; 0: none can.
static tt_status near_middle(cli_bisect_work *w, int64_t low, int64_t high, int64_t *at,
                             cli_outcome *out)
{
    int64_t middle = low + (high - low) / 2;
    *at = 0;
    for (int64_t d = 0; d < high - low; d++)
        for (int sign = d == 0 ? 1 : -1; sign <= 1; sign += 2) {
            int64_t k = middle + sign * d;
            if (k <= low || k >= high)
                continue;
            if (!w->trial(w, k, out))
                return tt_status_of(w->ctx);
            if (out->ran) {
                *at = k;
                return TT_OK;
            }
        }
    return TT_OK;
}

tt_status cli_bisect_search(cli_bisect_work *w)
{
    int64_t low = 0, high = w->n, at;
    cli_outcome o;
    char text[96];
    TT_TRY(one_end(w, 0, "good", &w->good));
    TT_TRY(one_end(w, w->n, "bad", &w->bad));
    cli_outcome_text(w, &w->good, text);
    if (is_good(w, &w->bad))
        return TT_FAIL(w->ctx, TT_EINVAL, "both ends give the same: %s%s", text,
                       w->args->metric != NULL ? " within --bound" : "");
    while (high - low > 1) {
        TT_TRY(near_middle(w, low, high, &at, &o));
        if (at == 0)
            break; // none of those between can be run
        if (is_good(w, &o)) {
            low = at;
        } else {
            high = at;
            w->bad = o;
        }
    }
    w->first = low + 1;
    w->last = high;
    return TT_OK;
}

// ---- the verb --------------------------------------------------------------------------------

static int check(const cli_args *args)
{
    bool by_commit = args->commits != NULL || args->build != NULL;
    if (by_commit && (args->commits == NULL || args->build == NULL))
        return cli_usage("tutti bisect: --commits A..B and --build LINE belong together");
    if (args->n_words != (by_commit ? 1 : 2))
        return cli_usage(by_commit ? "tutti bisect --commits needs one job"
                                   : "tutti bisect needs two jobs or runs: GOOD BAD");
    if (args->bound > 0 && args->metric == NULL)
        return cli_usage("tutti bisect: --bound belongs to --metric");
    return CLI_OK;
}

static tt_status search(cli_bisect_work *w)
{
    const char *root = w->args->runs != NULL ? w->args->runs : "runs";
    if (snprintf(w->folder, sizeof(w->folder), "%s/.bisect-%d", root, (int)getpid()) >=
        (int)sizeof(w->folder))
        return TT_FAIL(w->ctx, TT_EINVAL, "--runs '%.200s...': the path is too long", root);
    TT_TRY(tti_folder_make(w->ctx, w->folder));
    return w->args->commits != NULL ? cli_bisect_commits(w) : cli_bisect_jobs(w);
}

static int run(const cli_args *args)
{
    if (check(args) != CLI_OK)
        return CLI_USAGE;
    cli_args plain = {.level = args->level};
    const char *root = args->runs != NULL ? args->runs : "runs";
    bool is_root_new = !cli_is_folder(root);
    cli_bisect_work w = {.ctx = cli_open(&plain, "cpu:0"), .args = args};
    if (w.ctx == NULL)
        return CLI_FAILED;
    tt_status st = search(&w);
    if (w.folder[0] != '\0')
        tti_folder_discard(NULL, w.folder);
    if (is_root_new)
        (void)rmdir(root); // unless something else is in it
    int rc = cli_close(w.ctx, NULL);
    return st != TT_OK ? CLI_FAILED : rc;
}

const cli_verb cli_bisect = {
    .name = "bisect",
    .words = "GOOD BAD, or JOB with --commits A..B --build LINE",
    .summary = "find the key of a job, or the commit, that changed the result",
    .help =
        "GOOD and BAD are job files or runs. The keys in which they differ are taken over from\n"
        "GOOD to BAD one after another, in the order of the job; trial runs find the first after\n"
        "which the weights are others than those of GOOD, bit for bit, or with --metric and\n"
        "--bound, after which that metric differs by more than the bound.\n"
        "\n"
        "  tutti bisect digits-001 digits-002\n"
        "  tutti bisect good.yaml bad.yaml --metric validation_loss --bound 0.05 --epochs 1\n"
        "\n"
        "With --commits, JOB is trained with programs built from the commits between A and B, in\n"
        "a worktree of the repository of the current folder. --build says how; --command where\n"
        "the program is then (default: build/release/tutti). Commits that cannot be built are\n"
        "passed over.\n"
        "\n"
        "  tutti bisect job.yaml --commits v1..main --build \"make CUDA=0 all\"\n",
    .flags = "metric bound commits build command epochs batch lr set devices strategy threads isa "
             "runs json quiet",
    .min_words = 1,
    .max_words = 2,
    .alone = true,
    .run = run,
};
