/*
 * list_runs.c - tutti runs: the runs of a folder, what became of them; tags, notes, removing some.
 * With SQLite they come from an index (run_index.h), without it from the folders themselves.
 */
#include "base/file.h"
#include "cli/compare_runs.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/run_index.h"
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
    char shown[128], tags[128]; // the value that is sorted by; its tags
} entry;

typedef struct listing {
    tt_ctx *ctx;
    const cli_args *args;
    const char *sort; // NULL: the newest first
    int64_t limit;    // 0: all
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
    *e = (entry){.path = ""};
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

static tt_status add_indexed(listing *l)
{
    cli_query q = {.root = root_of(l->args),
                   .where = &l->args->where,
                   .sort = l->sort,
                   .most = l->args->failed ? 0 : l->limit};
    cli_row *rows = NULL;
    int64_t n = 0;
    tt_status st = cli_index_ask(l->ctx, &q, &rows, &n);
    if (st == TT_OK && n > 0 && !tti_grow(l->ctx, &l->entries, &l->cap, n, sizeof(*l->entries)))
        st = TT_ENOMEM;
    for (int64_t i = 0; st == TT_OK && i < n; i++) {
        entry *e = &l->entries[l->n];
        *e = (entry){.info = rows[i].info};
        memcpy(e->path, rows[i].path, sizeof(e->path));
        memcpy(e->shown, rows[i].shown, sizeof(e->shown));
        memcpy(e->tags, rows[i].tags, sizeof(e->tags));
        l->n += !l->args->failed || has_failed(e);
    }
    if (l->limit > 0)
        l->n = TTI_MIN(l->n, l->limit);
    tti_free(l->ctx, rows);
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
    int name = 3, steps = 5, best = 4, shown = 0, tags = 0;
    const char *key = l->sort == NULL ? "" : l->sort + (l->sort[0] == '-');
    char when[32], value[128], count[64];
    for (int64_t i = 0; i < l->n; i++) {
        best_text(&l->entries[i].info, value);
        steps_text(&l->entries[i].info, count);
        name = TTI_MAX(name, (int)strlen(l->entries[i].name));
        best = TTI_MAX(best, (int)strlen(value));
        steps = TTI_MAX(steps, (int)strlen(count));
        shown = TTI_MAX(shown, (int)strlen(l->entries[i].shown));
        tags = TTI_MAX(tags, (int)strlen(l->entries[i].tags));
    }
    shown = shown > 0 ? TTI_MAX(shown, (int)strlen(key)) + 2 : 0;
    tti_text_add(&t, "%-*s  %-11s  %-16s  %*s  %-*s  %-*shash%s\n", name, "run", "state", "when",
                 steps, "steps", best, "best", shown, shown > 0 ? key : "",
                 tags > 0 ? "              tags" : "");
    for (int64_t i = 0; i < l->n; i++) {
        const entry *e = &l->entries[i];
        time_text(e->info.time, "%Y-%m-%d %H:%M", when);
        best_text(&e->info, value);
        steps_text(&e->info, count);
        tti_text_add(&t, "%-*s  %-11s  %-16s  %*s  %-*s  %-*s", name, e->name,
                     tti_run_state_name(e->info.state), when, steps, count, best, value, shown,
                     shown > 0 && e->shown[0] == '\0' ? "-" : e->shown);
        tti_text_add(&t, e->tags[0] != '\0' ? "%-16.16s  %s\n" : "%.16s%s\n",
                     e->info.hash[0] != '\0' ? e->info.hash : "-", e->tags);
        if (e->info.state == TTI_RUN_FAILED && e->info.why[0] != '\0')
            tti_text_add(&t, "  %.*s\n", (int)strcspn(e->info.why, "\n"), e->info.why);
    }
    return cli_print_text(&t);
}

// "a, b" as a list.
static void add_tags(tti_text *t, const char *tags)
{
    tti_text_add(t, ", \"tags\": [");
    for (const char *s = tags; *s != '\0';) {
        char one[128];
        size_t n = strcspn(s, ",");
        snprintf(one, sizeof(one), "%.*s", (int)n, s);
        tti_text_add(t, "%s", s > tags ? ", " : "");
        tti_text_json(t, one);
        s += n + strspn(s + n, ", ");
    }
    tti_text_add(t, "]");
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
        if (l->sort != NULL) {
            tti_text_add(&t, ", \"sorted_by\": ");
            tti_text_json(&t, e->shown);
        }
        add_tags(&t, e->tags);
        tti_text_add(&t, "}");
    }
    tti_text_add(&t, "]\n");
    return cli_print_text(&t);
}

// ---- the verb --------------------------------------------------------------------------------

static tt_status list(listing *l)
{
    bool is_asked = l->sort != NULL || l->limit > 0 || l->args->where.n > 0;
    TT_TRY(cli_index_is_built() || is_asked ? add_indexed(l) : add_all(l));
    set_names(l);
    if (l->args->json)
        return print_json(l) ? TT_OK : TT_ENOMEM;
    if (l->args->quiet)
        return TT_OK;
    if (l->n == 0) {
        cli_printf("there are no %sruns in '%s'%s\n", l->args->failed ? "failed " : "",
                   root_of(l->args), l->args->where.n > 0 ? " for which this holds" : "");
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

// ---- one or two runs -------------------------------------------------------------------------

static tt_status show(listing *l)
{
    char path[TTI_RUN_PATH];
    TT_TRY(cli_run_find(l->ctx, l->args, l->args->words[1], CLI_NOTHING, path));
    return cli_runs_show(l->ctx, l->args, path);
}

static tt_status compare(listing *l)
{
    char a[TTI_RUN_PATH], b[TTI_RUN_PATH];
    TT_TRY(cli_run_find(l->ctx, l->args, l->args->words[1], CLI_NOTHING, a));
    TT_TRY(cli_run_find(l->ctx, l->args, l->args->words[2], CLI_NOTHING, b));
    return cli_runs_compare(l->ctx, l->args, a, b);
}

// Is a lower value the better one? Of a metric of one's own that is not known: no.
static bool is_lower_better(const char *name)
{
    static const char *const words[] = {"loss", "mse", "mae", "perplexity", "error"};
    for (int i = 0; i < TTI_COUNT(words); i++)
        if (strstr(name, words[i]) != NULL)
            return true;
    return false;
}

static tt_status best(listing *l)
{
    char key[256];
    const char *name = l->args->words[1];
    snprintf(key, sizeof(key), "%s%s", is_lower_better(name) ? "" : "-", name);
    l->sort = key;
    l->limit = l->limit > 0 ? l->limit : 10;
    tt_status st = list(l);
    l->sort = NULL;
    return st;
}

static tt_status change_tags(listing *l, bool is_added)
{
    TT_TRY(add_named(l, l->args->words[1]));
    for (int i = 2; i < l->args->n_words; i++)
        TT_TRY(cli_tag_change(l->ctx, l->entries[0].path, l->args->words[i], is_added));
    return TT_OK;
}

static tt_status tag(listing *l)
{
    return change_tags(l, true);
}

static tt_status untag(listing *l)
{
    return change_tags(l, false);
}

static tt_status note(listing *l)
{
    TT_TRY(add_named(l, l->args->words[1]));
    return cli_note_set(l->ctx, l->entries[0].path, l->args->words[2]);
}

// ---- the verb --------------------------------------------------------------------------------

static const struct action {
    const char *name, *words; // what it needs, for the message
    int min, max;             // words behind it
    tt_status (*fn)(listing *l);
} actions[] = {
    {"ls", "nothing", 0, 0, list},
    {"show", "a run", 1, 1, show},
    {"compare", "two runs", 2, 2, compare},
    {"best", "a metric", 1, 1, best},
    {"tag", "a run and tags", 2, CLI_MAX_WORDS, tag},
    {"untag", "a run and tags", 2, CLI_MAX_WORDS, untag},
    {"note", "a run and a text", 2, 2, note},
    {"rm", "names of runs, or --failed", 0, CLI_MAX_WORDS, remove_runs},
};

static const struct action *find_action(const char *word)
{
    for (int i = 0; i < TTI_COUNT(actions); i++)
        if (strcmp(actions[i].name, word) == 0)
            return &actions[i];
    return NULL;
}

static int check(const cli_args *args, const struct action *a)
{
    bool removes = a != NULL && strcmp(a->name, "rm") == 0;
    int n = args->n_words - 1;
    if (a == NULL)
        return cli_usage("tutti runs: unknown word '%s'; possible: ls, show, compare, best, tag, "
                         "untag, note, rm",
                         args->words[0]);
    if (removes && (n == 0) == !args->failed)
        return cli_usage(args->failed ? "tutti runs rm: give names or --failed, not both"
                                      : "tutti runs rm needs names of runs, or --failed");
    if (n < a->min || n > a->max)
        return cli_usage("tutti runs %s needs %s", a->name, a->words);
    if (removes && args->json)
        return cli_usage("tutti runs rm prints no JSON");
    return CLI_OK;
}

static int run(const cli_args *args)
{
    const struct action *a = args->n_words > 0 ? find_action(args->words[0]) : &actions[0];
    if (args->n_words > 0 && check(args, a) != CLI_OK)
        return CLI_USAGE;
    listing l = {
        .ctx = cli_open(args, "cpu:0"), .args = args, .sort = args->sort, .limit = args->limit};
    if (l.ctx == NULL)
        return CLI_FAILED;
    (void)a->fn(&l);
    tti_free(l.ctx, l.entries);
    return cli_close(l.ctx, NULL);
}

const cli_verb cli_runs = {
    .name = "runs",
    .words =
        "[ls | show RUN | compare A B | best METRIC | tag RUN TAG... | note RUN TEXT | rm NAME...]",
    .summary = "list, compare, tag and remove runs",
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
        "  tutti runs --where train.batch=64 --where state=finished --sort -accuracy\n"
        "  tutti runs best validation_accuracy    the best ten\n"
        "  tutti runs show RUN                    all that is known of one: keys, metrics, tags\n"
        "  tutti runs compare A B                 what differs: job, devices, metrics, weights\n"
        "  tutti runs tag RUN TAG...              untag removes tags; note RUN TEXT sets a note\n"
        "\n"
        "A key may be given by its end: lr for train.optimizer.adam.lr. Listing keeps an index,\n"
        ".index.sqlite, in the folder of the runs; it is made anew from them if it is removed.\n"
        "\n"
        "tutti runs rm NAME... removes runs by their exact names or paths; tutti runs rm --failed\n"
        "removes all that failed or are empty. A run that is training is never removed.\n",
    .flags = "failed json quiet runs where sort limit",
    .max_words = CLI_MAX_WORDS,
    .run = run,
};
