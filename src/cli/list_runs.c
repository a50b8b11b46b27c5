/*
 * list_runs.c - tutti runs: the runs of a folder, what became of them, and removing some.
 */
#include "base/file.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "record/run_info.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct entry {
    char path[TTI_RUN_PATH];
    const char *name; // in path
    tti_run_info info;
} entry;

typedef struct listing {
    tt_ctx *ctx;
    const cli_args *args;
    entry *entries;
    int64_t n, cap;
} listing;

static const char *root_of(const cli_args *args)
{
    return args->runs != NULL ? args->runs : "runs";
}

// ---- finding ---------------------------------------------------------------------------------

// What --failed means: an error ended it, or it has trained nothing.
static bool has_failed(const entry *e)
{
    return e->info.state == TTI_RUN_FAILED || e->info.state == TTI_RUN_EMPTY;
}

static tt_status add(listing *l, const char *path)
{
    if (!tti_grow(l->ctx, &l->entries, &l->cap, l->n + 1, sizeof(*l->entries)))
        return TT_ENOMEM;
    entry *e = &l->entries[l->n];
    if (snprintf(e->path, sizeof(e->path), "%s", path) >= (int)sizeof(e->path))
        return TT_FAIL(l->ctx, TT_EINVAL, "'%.200s...': the path is too long for a run", path);
    TT_TRY(tti_run_info_read(l->ctx, path, &e->info));
    l->n++;
    return TT_OK;
}

// The newest first.
static int by_time(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->info.time != y->info.time)
        return x->info.time < y->info.time ? 1 : -1;
    return strcmp(y->path, x->path);
}

static tt_status add_all(listing *l)
{
    char **names = NULL, path[TTI_PATH_MAX];
    int64_t n = 0;
    tt_status st = TT_OK;
    if (!cli_is_folder(root_of(l->args)))
        return TT_OK;
    TT_TRY(tti_folder_list(l->ctx, root_of(l->args), &names, &n));
    for (int64_t i = 0; i < n && st == TT_OK; i++) {
        st = tti_file_join(l->ctx, path, root_of(l->args), names[i]);
        if (st != TT_OK || names[i][0] == '.' || !cli_is_run(path))
            continue;
        st = add(l, path);
        if (st == TT_OK && l->args->failed && !has_failed(&l->entries[l->n - 1]))
            l->n--;
    }
    tti_names_free(l->ctx, names, n);
    if (l->n > 0)
        qsort(l->entries, (size_t)l->n, sizeof(*l->entries), by_time);
    return st;
}

// By its exact name or path: what a job's name means today may be another run tomorrow.
static tt_status add_named(listing *l, const char *word)
{
    char path[TTI_PATH_MAX], near[TTI_RUN_PATH];
    bool is_path = strchr(word, '/') != NULL;
    TT_TRY(tti_file_join(l->ctx, path, is_path ? "" : root_of(l->args), word));
    if (strlen(path) >= TTI_RUN_PATH)
        return TT_FAIL(l->ctx, TT_EINVAL, "'%.200s...': the path is too long for a run", path);
    for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
        path[n - 1] = '\0';
    if (cli_is_run(path))
        return add(l, path);
    if (cli_run_near(path, near) && cli_is_run(near))
        return TT_FAIL(l->ctx, TT_EIO, "there is no run '%s'; did you mean '%s'?", path, near);
    return TT_FAIL(l->ctx, TT_EIO, "there is no run '%s'; tutti runs lists those there are", path);
}

static void set_names(listing *l)
{
    for (int64_t i = 0; i < l->n; i++) {
        const char *slash = strrchr(l->entries[i].path, '/');
        l->entries[i].name = slash != NULL ? slash + 1 : l->entries[i].path;
    }
}

// ---- printing --------------------------------------------------------------------------------

static void time_text(double t, const char *form, char out[32])
{
    time_t whole = (time_t)t;
    struct tm parts;
    if (localtime_r(&whole, &parts) == NULL || strftime(out, 32, form, &parts) == 0)
        snprintf(out, 32, "-");
}

static void best_text(const tti_run_info *r, char out[128])
{
    char value[32];
    out[0] = '-';
    out[1] = '\0';
    if (r->best_name[0] == '\0')
        return;
    cli_value_text(r->best, value);
    snprintf(out, 128, "%s %s", r->best_name, value);
}

static void steps_text(const tti_run_info *r, char out[64])
{
    if (r->n_starts == 0)
        snprintf(out, 64, "-");
    else
        snprintf(out, 64, "%lld/%lld", (long long)r->step, (long long)r->steps);
}

static bool print_text(const listing *l)
{
    tti_text t = {.ctx = l->ctx};
    int name = 3, steps = 5, best = 4;
    char when[32], value[128], count[64];
    for (int64_t i = 0; i < l->n; i++) {
        best_text(&l->entries[i].info, value);
        steps_text(&l->entries[i].info, count);
        name = TTI_MAX(name, (int)strlen(l->entries[i].name));
        best = TTI_MAX(best, (int)strlen(value));
        steps = TTI_MAX(steps, (int)strlen(count));
    }
    tti_text_add(&t, "%-*s  %-11s  %-16s  %*s  %-*s  hash\n", name, "run", "state", "when", steps,
                 "steps", best, "best");
    for (int64_t i = 0; i < l->n; i++) {
        const entry *e = &l->entries[i];
        time_text(e->info.time, "%Y-%m-%d %H:%M", when);
        best_text(&e->info, value);
        steps_text(&e->info, count);
        tti_text_add(&t, "%-*s  %-11s  %-16s  %*s  %-*s  %.16s\n", name, e->name,
                     tti_run_state_name(e->info.state), when, steps, count, best, value,
                     e->info.hash[0] != '\0' ? e->info.hash : "-");
        if (e->info.state == TTI_RUN_FAILED && e->info.why[0] != '\0')
            tti_text_add(&t, "  %.*s\n", (int)strcspn(e->info.why, "\n"), e->info.why);
    }
    return cli_print_text(&t);
}

static bool print_json(const listing *l)
{
    tti_text t = {.ctx = l->ctx};
    char when[32];
    tti_text_add(&t, "[");
    for (int64_t i = 0; i < l->n; i++) {
        const entry *e = &l->entries[i];
        time_text(e->info.time, "%Y-%m-%dT%H:%M:%S%z", when);
        tti_text_add(&t, "%s{\"run\": ", i > 0 ? ",\n " : "");
        tti_text_json(&t, e->name);
        tti_text_add(&t, ", \"path\": ");
        tti_text_json(&t, e->path);
        tti_text_add(&t,
                     ", \"state\": \"%s\", \"when\": \"%s\", \"starts\": %d, \"step\": %lld, "
                     "\"steps\": %lld, \"best\": ",
                     tti_run_state_name(e->info.state), when, e->info.n_starts,
                     (long long)e->info.step, (long long)e->info.steps);
        if (e->info.best_name[0] != '\0') {
            tti_text_add(&t, "{\"name\": ");
            tti_text_json(&t, e->info.best_name);
            tti_text_add(&t, ", \"value\": ");
            cli_json_number(&t, e->info.best);
            tti_text_add(&t, "}");
        } else {
            tti_text_add(&t, "null");
        }
        tti_text_add(&t, ", \"weights_hash\": ");
        tti_text_json(&t, e->info.hash);
        tti_text_add(&t, ", \"why\": ");
        tti_text_json(&t, e->info.why);
        tti_text_add(&t, "}");
    }
    tti_text_add(&t, "]\n");
    return cli_print_text(&t);
}

// ---- the verb --------------------------------------------------------------------------------

static tt_status list(listing *l)
{
    TT_TRY(add_all(l));
    set_names(l);
    if (l->args->json)
        return print_json(l) ? TT_OK : TT_ENOMEM;
    if (l->args->quiet)
        return TT_OK;
    if (l->n == 0) {
        cli_printf("there are no %sruns in '%s'\n", l->args->failed ? "failed " : "",
                   root_of(l->args));
        return TT_OK;
    }
    return print_text(l) ? TT_OK : TT_ENOMEM;
}

// All of them or, where one cannot be removed, none.
static tt_status remove_runs(listing *l)
{
    for (int i = 1; i < l->args->n_words; i++)
        TT_TRY(add_named(l, l->args->words[i]));
    if (l->args->failed)
        TT_TRY(add_all(l));
    set_names(l);
    for (int64_t i = 0; i < l->n; i++)
        if (tti_run_is_locked(l->entries[i].path))
            return TT_FAIL(l->ctx, TT_EIO, "a process is training in '%s': nothing was removed",
                           l->entries[i].path);
    for (int64_t i = 0; i < l->n; i++) {
        TT_TRY(tti_folder_remove(l->ctx, l->entries[i].path));
        if (!l->args->quiet)
            cli_printf("removed %s (%s)\n", l->entries[i].path,
                       tti_run_state_name(l->entries[i].info.state));
    }
    if (l->n == 0 && !l->args->quiet)
        cli_printf("there are no failed runs in '%s'\n", root_of(l->args));
    return TT_OK;
}

static int run(const cli_args *args)
{
    bool removes = args->n_words > 0;
    if (removes && strcmp(args->words[0], "rm") != 0)
        return cli_usage("tutti runs: unknown word '%s'; to remove runs: tutti runs rm NAME...",
                         args->words[0]);
    if (removes && (args->n_words == 1) == !args->failed)
        return cli_usage(args->failed ? "tutti runs rm: give names or --failed, not both"
                                      : "tutti runs rm needs names of runs, or --failed");
    if (removes && args->json)
        return cli_usage("tutti runs rm prints no JSON");
    listing l = {.ctx = cli_open(args, "cpu:0"), .args = args};
    if (l.ctx == NULL)
        return CLI_FAILED;
    (void)(removes ? remove_runs(&l) : list(&l));
    tti_free(l.ctx, l.entries);
    return cli_close(l.ctx, NULL);
}

const cli_verb cli_runs = {
    .name = "runs",
    .words = "[rm NAME...]",
    .summary = "list runs with their state, best value and hash, or remove some",
    .help =
        "Lists the runs in the folder runs (--runs: another one), the newest first: name, state, "
        "time of\n"
        "the last event, steps, best value, and the hash of the weights. States:\n"
        "\n"
        "  training     a process is training in the folder\n"
        "  finished     all epochs or steps are done\n"
        "  stopped      by early stopping or a callback\n"
        "  interrupted  by Ctrl-C or SIGTERM, after saving: continue with --resume\n"
        "  failed       with an error, which is shown\n"
        "  killed       without a word: continue with --resume\n"
        "  empty        nothing was trained\n"
        "\n"
        "tutti runs rm NAME... removes runs by their exact names or paths; tutti runs rm --failed\n"
        "removes all that failed or are empty. A run that is training is never removed.\n",
    .flags = "failed json quiet runs",
    .max_words = CLI_MAX_WORDS,
    .run = run,
};
