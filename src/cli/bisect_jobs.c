/*
 * bisect_jobs.c - the keys in which two jobs differ, and jobs between the two: GOOD with the first
 * k of those keys as BAD has them. Where two parts have other keys (another optimizer, more layers)
 * the part as a whole is one difference.
 */
#include "cli/bisect.h"
#include "cli/child.h"
#include "cli/job.h"
#include "cli/report.h"
#include "job/job.h"
#include "job/tree.h"
#include <stdio.h>
#include <string.h>

#define PATH 512

typedef struct difference {
    char path[PATH];
    const tti_item *good, *bad;
} difference;

typedef struct two_jobs {
    cli_job good, bad;
    difference *v;
    int64_t n, cap;
    tt_ctx *ctx;
    tti_tree tree; // of the job that is being made
    int64_t at, most;
} two_jobs;

// ---- what differs ----------------------------------------------------------------------------

static bool has_same_keys(const tti_item *a, const tti_item *b)
{
    if (a->kind != b->kind || a->kind == TTI_SCALAR || a->n != b->n)
        return false;
    for (const tti_item *c = a->first; a->kind == TTI_MAP && c != NULL; c = c->next)
        if (tti_item_get(b, c->key) == NULL)
            return false;
    return true;
}

static bool is_same(const tti_item *a, const tti_item *b)
{
    if (a->kind == TTI_SCALAR && b->kind == TTI_SCALAR)
        return strcmp(a->text, b->text) == 0;
    if (!has_same_keys(a, b))
        return false;
    const tti_item *y = b->first;
    for (const tti_item *x = a->first; x != NULL; x = x->next, y = y->next)
        if (!is_same(x, x->key != NULL ? tti_item_get(b, x->key) : y))
            return false;
    return true;
}

// Keys that say only what a run is called and where it is written.
static bool is_passed_over(const char *path)
{
    return strcmp(path, "name") == 0 || strcmp(path, "output") == 0;
}

// Visits both as one tree; the copy has the first most differences as in b.
static tti_item *merge(two_jobs *t, const tti_item *a, const tti_item *b, const char *path)
{
    if (is_same(a, b) || is_passed_over(path))
        return tti_item_copy(&t->tree, a);
    if (!has_same_keys(a, b)) {
        int64_t i = t->at++;
        if (t->most < 0 && tti_grow(t->ctx, &t->v, &t->cap, i + 1, sizeof(*t->v))) {
            t->v[i] = (difference){.good = a, .bad = b};
            snprintf(t->v[i].path, PATH, "%s", path);
            t->n = i + 1;
        }
        return tti_item_copy(&t->tree, i < t->most ? b : a);
    }
    tti_item *out = tti_item_new(&t->tree, a->kind, a->at);
    const tti_item *y = b->first;
    int i = 0;
    for (const tti_item *x = a->first; x != NULL && out != NULL; x = x->next, y = y->next, i++) {
        char below[PATH], number[16];
        snprintf(number, sizeof(number), "%d", i);
        snprintf(below, sizeof(below), "%.400s%s%.64s", path, path[0] != '\0' ? "." : "",
                 x->key != NULL ? x->key : number);
        tti_item *child = merge(t, x, x->key != NULL ? tti_item_get(b, x->key) : y, below);
        if (child == NULL)
            return NULL;
        tti_item_add(out, x->key, x->key_at, child);
    }
    return out;
}

// ---- a trial ---------------------------------------------------------------------------------

static bool trial(cli_bisect_work *w, int64_t k, cli_outcome *out)
{
    two_jobs *t = w->user;
    char path[TTI_PATH_MAX], name[32], self[TTI_PATH_MAX];
    tti_text text = {.ctx = w->ctx};
    t->tree = (tti_tree){.ctx = w->ctx};
    t->at = 0;
    t->most = k;
    snprintf(name, sizeof(name), "job-%lld.yaml", (long long)k);
    tti_item *root = merge(t, t->good.job->root, t->bad.job->root, "");
    tt_status st = root != NULL ? tti_file_join(w->ctx, path, w->folder, name) : TT_ENOMEM;
    if (st == TT_OK) {
        tti_tree_print(&text, root, (const char *const[]){"output", NULL});
        char *s = tti_text_take(&text);
        st = s != NULL ? tti_file_replace(w->ctx, path, s, strlen(s)) : TT_ENOMEM;
        tti_free(w->ctx, s);
    }
    tti_tree_free(&t->tree);
    snprintf(name, sizeof(name), "trial-%lld", (long long)k);
    if (st == TT_OK)
        st = cli_bisect_train(w, cli_self(self), path, name, out);
    return st == TT_OK;
}

// ---- telling ---------------------------------------------------------------------------------

static void value_text(const tti_item *item, char out[64])
{
    if (item->kind == TTI_SCALAR)
        snprintf(out, 64, "%.63s", item->text[0] != '\0' ? item->text : "\"\"");
    else if (item->kind == TTI_LIST)
        snprintf(out, 64, "a list of %d", item->n);
    else
        snprintf(out, 64, "%.63s", item->n == 1 ? item->first->key : "other keys");
}

static void tell_text(const cli_bisect_work *w, const two_jobs *t)
{
    char good[96], bad[96], a[64], b[64];
    cli_outcome_text(w, &w->good, good);
    cli_outcome_text(w, &w->bad, bad);
    cli_printf("good  %s: %s\n", w->args->words[0], good);
    cli_printf("%lld key%s, %d trials\n", (long long)t->n, t->n == 1 ? " differs" : "s differ",
               w->n_trials);
    if (w->first == w->last)
        cli_printf("the first that changes the result:\n");
    else
        cli_printf("it is one of these, which cannot be run one by one:\n");
    for (int64_t i = w->first; i <= w->last; i++) {
        const difference *d = &t->v[i - 1];
        value_text(d->good, a);
        value_text(d->bad, b);
        cli_printf("  %s: %s -> %s\n", d->path, a, b);
    }
    cli_printf("bad   with it: %s\n", bad);
}

static void tell_json(const cli_bisect_work *w, const two_jobs *t)
{
    tti_text s = {.ctx = w->ctx};
    tti_text_add(&s,
                 "{\"differences\": %lld, \"trials\": %d, \"good\": \"%s\", \"bad\": \"%s\", "
                 "\"keys\": [",
                 (long long)t->n, w->n_trials, w->good.hash, w->bad.hash);
    for (int64_t i = w->first; i <= w->last; i++) {
        tti_text_add(&s, "%s", i > w->first ? ", " : "");
        tti_text_json(&s, t->v[i - 1].path);
    }
    tti_text_add(&s, "]}\n");
    cli_print_text(&s);
}

static tt_status search(cli_bisect_work *w, two_jobs *t)
{
    t->tree = (tti_tree){.ctx = w->ctx};
    t->most = -1;
    bool made = merge(t, t->good.job->root, t->bad.job->root, "") != NULL;
    tti_tree_free(&t->tree);
    if (!made)
        return TT_ENOMEM;
    if (t->n == 0)
        return TT_FAIL(w->ctx, TT_EINVAL, "'%s' and '%s' are the same job", w->args->words[0],
                       w->args->words[1]);
    w->n = t->n;
    w->trial = trial;
    w->user = t;
    TT_TRY(cli_bisect_search(w));
    if (w->args->json)
        tell_json(w, t);
    else if (!w->args->quiet)
        tell_text(w, t);
    return TT_OK;
}

tt_status cli_bisect_jobs(cli_bisect_work *w)
{
    two_jobs t = {.ctx = w->ctx};
    cli_args plain = {.runs = w->args->runs, .level = w->args->level, .verb = w->args->verb};
    tt_status st = TT_OK;
    int a = cli_job_read(&plain, w->args->words[0], CLI_NOTHING, &t.good);
    int b = a == CLI_OK ? cli_job_read(&plain, w->args->words[1], CLI_NOTHING, &t.bad) : CLI_OK;
    if (a == CLI_OK && b == CLI_OK)
        st = search(w, &t);
    else
        st = TT_EINVAL; // told when the readers are closed
    tti_free(w->ctx, t.v);
    (void)cli_job_close(&t.good, a);
    if (t.bad.reader != NULL)
        (void)cli_job_close(&t.bad, b);
    return st;
}
