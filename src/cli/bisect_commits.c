/*
 * bisect_commits.c - the commits between two, each built in a worktree of its own and used to train
 * the job.
 */
#include "cli/bisect.h"
#include "cli/child.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_COMMITS 100000

typedef struct commits {
    char *text; // what git printed; lines are ended by zeros
    char **v;   // v[0] is the good end
    int64_t n;  // commits behind it
    char tree[TTI_PATH_MAX], program[TTI_PATH_MAX], job[TTI_PATH_MAX];
} commits;

static tt_status git(cli_bisect_work *w, const char *const *words, tti_text *out)
{
    char log[TTI_PATH_MAX];
    TT_TRY(tti_file_join(w->ctx, log, w->folder, "git.log"));
    int rc =
        cli_child_run(&(cli_child){.words = words, .out = out, .log = out == NULL ? log : NULL});
    if (rc == 0)
        return TT_OK;
    return TT_FAIL(w->ctx, TT_EINVAL, "git %s %s failed with exit code %d", words[1],
                   words[2] != NULL ? words[2] : "", rc);
}

// "A" of "A..B", and all commits from there to B, the oldest first.
static tt_status list_commits(cli_bisect_work *w, commits *c)
{
    char first[256];
    const char *dots = strstr(w->args->commits, "..");
    if (dots == NULL || dots == w->args->commits || dots[2] == '\0' || dots[2] == '.' ||
        w->args->commits[0] == '-' || dots - w->args->commits >= (ptrdiff_t)sizeof(first) - 16)
        return TT_FAIL(w->ctx, TT_EINVAL, "--commits '%s' is not of the form A..B",
                       w->args->commits);
    snprintf(first, sizeof(first), "%.*s^{commit}", (int)(dots - w->args->commits),
             w->args->commits);
    tti_text t = {.ctx = w->ctx};
    TT_TRY(git(w, (const char *const[]){"git", "rev-parse", "--verify", first, NULL}, &t));
    TT_TRY(git(w,
               (const char *const[]){"git", "rev-list", "--reverse", "--first-parent",
                                     w->args->commits, NULL},
               &t));
    c->text = tti_text_take(&t);
    c->v = tti_calloc(w->ctx, MOST_COMMITS + 1, sizeof(*c->v));
    if (c->text == NULL || c->v == NULL)
        return TT_ENOMEM;
    int64_t n = 0;
    for (char *s = strtok(c->text, "\n"); s != NULL && n < MOST_COMMITS; s = strtok(NULL, "\n"))
        c->v[n++] = s;
    c->n = n - 1;
    if (c->n < 1)
        return TT_FAIL(w->ctx, TT_EINVAL, "--commits %s: there is no commit between the two",
                       w->args->commits);
    return TT_OK;
}

static bool trial(cli_bisect_work *w, int64_t k, cli_outcome *out)
{
    commits *c = w->user;
    char name[64], log[TTI_PATH_MAX];
    snprintf(name, sizeof(name), "commit-%.12s", c->v[k]);
    *out = (cli_outcome){.ran = false};
    if (snprintf(log, sizeof(log), "%.3000s/%s.build.log", w->folder, name) >= (int)sizeof(log))
        return false;
    if (git(w,
            (const char *const[]){"git", "-C", c->tree, "checkout", "--quiet", "--detach",
                                  "--force", c->v[k], NULL},
            NULL) != TT_OK)
        return false;
    if (!w->args->quiet && !w->args->json)
        cli_tell("building %.12s\n", c->v[k]);
    const char *const words[] = {"sh", "-c", w->args->build, NULL};
    int rc = cli_child_run(&(cli_child){.words = words, .folder = c->tree, .log = log});
    if (rc != 0) {
        snprintf(out->why, sizeof(out->why), "%.12s cannot be built: exit code %d", c->v[k], rc);
        return true;
    }
    return cli_bisect_train(w, c->program, c->job, name, out) == TT_OK;
}

static void tell(cli_bisect_work *w, const commits *c)
{
    char good[96], bad[96];
    cli_outcome_text(w, &w->good, good);
    cli_outcome_text(w, &w->bad, bad);
    if (w->args->json) {
        tti_text t = {.ctx = w->ctx};
        tti_text_add(&t,
                     "{\"commits\": %lld, \"trials\": %d, \"good\": \"%s\", \"bad\": \"%s\", "
                     "\"first\": [",
                     (long long)c->n, w->n_trials, w->good.hash, w->bad.hash);
        for (int64_t i = w->first; i <= w->last; i++)
            tti_text_add(&t, "%s\"%s\"", i > w->first ? ", " : "", c->v[i]);
        tti_text_add(&t, "]}\n");
        cli_print_text(&t);
        return;
    }
    if (w->args->quiet)
        return;
    cli_printf("good  %.12s: %s\n%lld commit%s, %d trials\n", c->v[0], good, (long long)c->n,
               c->n == 1 ? "" : "s", w->n_trials);
    cli_printf(w->first == w->last ? "the first that changes the result:\n"
                                   : "it is one of these; those before the last cannot be run:\n");
    for (int64_t i = w->first; i <= w->last; i++) {
        tti_text t = {.ctx = w->ctx};
        if (git(w, (const char *const[]){"git", "log", "-1", "--format=%h %s", c->v[i], NULL},
                &t) == TT_OK) {
            cli_printf("  ");
            cli_print_text(&t);
        }
    }
    cli_printf("bad   with it: %s\n", bad);
}

tt_status cli_bisect_commits(cli_bisect_work *w)
{
    commits c = {.text = NULL};
    char *full = realpath(w->folder, NULL), *job = realpath(w->args->words[0], NULL);
    const char *program = w->args->command != NULL ? w->args->command : "build/release/tutti";
    tt_status st = TT_OK;
    if (full == NULL || job == NULL)
        st = TT_FAIL(w->ctx, TT_EIO, "there is no file '%s'", w->args->words[0]);
    if (st == TT_OK)
        st = tti_file_join(w->ctx, c.tree, full, "tree");
    if (st == TT_OK)
        st = tti_file_join(w->ctx, c.program, c.tree, program);
    if (st == TT_OK)
        st = tti_file_join(w->ctx, c.job, "", job);
    if (st == TT_OK)
        st = list_commits(w, &c);
    bool has_tree = false;
    if (st == TT_OK) {
        st = git(w,
                 (const char *const[]){"git", "worktree", "add", "--quiet", "--detach", c.tree,
                                       c.v[0], NULL},
                 NULL);
        has_tree = st == TT_OK;
    }
    if (st == TT_OK) {
        w->n = c.n;
        w->trial = trial;
        w->user = &c;
        st = cli_bisect_search(w);
    }
    if (st == TT_OK)
        tell(w, &c);
    if (has_tree)
        (void)cli_child_run(&(cli_child){
            .words = (const char *const[]){"git", "worktree", "remove", "--force", c.tree, NULL}});
    free(full); // realpath()'s
    free(job);
    tti_free(w->ctx, c.v);
    tti_free(w->ctx, c.text);
    return st;
}
