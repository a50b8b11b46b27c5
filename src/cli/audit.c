/*
 * audit.c - tutti audit: is a run what it says it is? First without training: the chain's links and
 * signatures, the log, the job, the data and the checkpoints against it. Then some steps are done
 * again from the nearest checkpoint and their hashes are compared.
 */
#include "base/ctx.h"
#include "cli/job.h"
#include "cli/proof.h"
#include "cli/replay.h"
#include "cli/run_facts.h"
#include "job/job.h"
#include "job/tree.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct audit {
    cli_past past;
    bool has_key;
    uint8_t key[TTI_CHAIN_KEY];
    int n_faults;
    tti_text faults; // a line each; of --json: elements of a list
    int64_t n_checkpoints, from, until;
    cli_chain_diff diff;
} audit;

// One thing that is wrong: the file it is in, and what.
static void fault(audit *a, const char *file, const char *fmt, ...) TT_PRINTF(3, 4);
static void fault(audit *a, const char *file, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (!a->past.args->json) {
        tti_text_add(&a->faults, "  %s: %s\n", file, text);
    } else {
        tti_text_add(&a->faults, "%s{\"file\": ", a->n_faults > 0 ? ", " : "");
        tti_text_json(&a->faults, file);
        tti_text_add(&a->faults, ", \"what\": ");
        tti_text_json(&a->faults, text);
        tti_text_add(&a->faults, "}");
    }
    a->n_faults++;
}

// ---- the chain and the log -------------------------------------------------------------------

static void check_chain(audit *a)
{
    const tti_links *l = &a->past.links;
    bool is_signed = false;
    for (int64_t i = 0; i < l->n; i++)
        is_signed |= l->v[i].is_signed;
    if (l->broken > 0)
        fault(a, TTI_CHAIN,
              "line %d does not follow from the line before it: it, or the one "
              "before it, was changed, removed or put in",
              l->broken);
    if (l->unsigned_line > 0)
        fault(a, TTI_CHAIN, "line %d is not signed with this key", l->unsigned_line);
    if (is_signed && !a->has_key && !a->past.args->quiet && !a->past.args->json)
        cli_tell("the chain is signed; --key FILE checks the signatures\n");
    // Two hashes of one step: after a resume the same steps were done again.
    for (int64_t i = a->past.first; i < l->n; i++) {
        const char *last = cli_past_weights(&a->past, l->v[i].step);
        if (l->v[i].weights[0] != '\0' && strcmp(last, l->v[i].weights) != 0)
            fault(a, TTI_CHAIN, "line %d: step %lld has two hashes, %.16s and %.16s", l->v[i].line,
                  (long long)l->v[i].step, l->v[i].weights, last);
    }
}

static void check_log(audit *a)
{
    int64_t begin = 0;
    const tti_link *l = tti_links_check_log(&a->past.links, a->past.run, &begin);
    if (l != NULL)
        fault(a, "events.jsonl", "changed between byte %lld and byte %lld, before step %lld",
              (long long)begin, (long long)l->log_bytes, (long long)l->step);
}

// A chain that was cut off at its end lacks what the log says.
static tt_status check_end(audit *a)
{
    tti_run_info info;
    TT_TRY(tti_run_info_read(a->past.ctx, a->past.run, &info));
    const tti_links *l = &a->past.links;
    bool has_ended = l->n > 0 && l->v[l->n - 1].kind == TTI_LINK_END;
    bool is_over = info.state == TTI_RUN_FINISHED || info.state == TTI_RUN_STOPPED ||
                   info.state == TTI_RUN_INTERRUPTED;
    if (is_over && !has_ended && l->broken == 0)
        fault(a, TTI_CHAIN,
              "ends at step %lld, but the log says that the run %s at step %lld: "
              "lines were removed",
              (long long)cli_past_last(&a->past),
              info.state == TTI_RUN_FINISHED ? "finished" : "stopped", (long long)info.step);
    else if (is_over && has_ended && strcmp(info.hash, l->v[l->n - 1].weights) != 0)
        fault(a, "events.jsonl", "says that the weights are %.16s, the chain %.16s", info.hash,
              l->v[l->n - 1].weights);
    return TT_OK;
}

// ---- the job ---------------------------------------------------------------------------------

typedef struct two_jobs {
    audit *a;
    int n;
} two_jobs;

static void compare_items(two_jobs *t, const tti_item *a, const tti_item *b, const char *path)
{
    if (a != NULL && b != NULL && a->kind == TTI_SCALAR && b->kind == TTI_SCALAR) {
        if (strcmp(a->text, b->text) != 0 && t->n++ < 8)
            fault(t->a, "job.yaml", "%s is %s, but the run was started with %s", path, b->text,
                  a->text);
        return;
    }
    if (a == NULL || b == NULL || a->kind != b->kind || a->n != b->n) {
        if (t->n++ < 8)
            fault(t->a, "job.yaml", "%s is not what the run was started with", path);
        return;
    }
    const tti_item *y = b->first;
    int i = 0;
    for (const tti_item *x = a->first; x != NULL; x = x->next, y = y->next, i++) {
        char below[512], number[16];
        snprintf(number, sizeof(number), "%d", i);
        snprintf(below, sizeof(below), "%s%s%s", path, path[0] != '\0' ? "." : "",
                 x->key != NULL ? x->key : number);
        compare_items(t, x, x->key != NULL ? tti_item_get(b, x->key) : y, below);
    }
}

// The job file against the text in the chain; keys that say only where it runs do not count.
static tt_status check_job(audit *a, tt_job *job)
{
    tt_ctx *ctx = a->past.ctx;
    tti_tree tree = {.ctx = ctx};
    tti_item *then = NULL, *now = NULL;
    two_jobs t = {.a = a};
    const json_t *start = a->past.start->o;
    const char *core = json_string_value(json_object_get(start, "job"));
    tt_status st = tti_yaml_read(&tree, "chain", core, strlen(core), &then);
    if (st == TT_OK)
        st = tti_yaml_read(&tree, "job.yaml", job->core, strlen(job->core), &now);
    if (st == TT_OK)
        compare_items(&t, then, now, "");
    tti_tree_free(&tree);
    for (int i = 0; st == TT_OK && i < CLI_N_BIT_KEYS; i++) {
        const char *was = json_string_value(json_object_get(start, cli_bit_keys[i]));
        const char *is = tt_job_get(job, cli_bit_keys[i]);
        if (was != NULL && is != NULL && strcmp(was, is) != 0)
            fault(a, "job.yaml", "%s is %s, but the run was started with %s", cli_bit_keys[i], is,
                  was);
    }
    return st;
}

// ---- the data --------------------------------------------------------------------------------

static const json_t *find_file(const json_t *data, const char *path)
{
    const json_t *files = json_object_get(data, "files");
    for (size_t i = 0; path != NULL && i < json_array_size(files); i++) {
        const char *s = json_string_value(json_object_get(json_array_get(files, i), "path"));
        if (s != NULL && strcmp(s, path) == 0)
            return json_array_get(files, i);
    }
    return NULL;
}

// Files that a glob matches now and did not then.
static void find_new(audit *a, const char *name, const json_t *then, const json_t *now)
{
    const json_t *files = json_object_get(now, "files");
    for (size_t i = 0; i < json_array_size(files); i++) {
        const char *s = json_string_value(json_object_get(json_array_get(files, i), "path"));
        if (s != NULL && find_file(then, s) == NULL)
            fault(a, s, "data.%s: it was not there when the run was started", name);
    }
}

static void compare_data(audit *a, const char *name, const json_t *then, const json_t *now)
{
    size_t n = json_array_size(json_object_get(then, "files"));
    int before = a->n_faults;
    for (size_t i = 0; i < n; i++) {
        const json_t *x = json_array_get(json_object_get(then, "files"), i);
        const char *path = json_string_value(json_object_get(x, "path"));
        const json_t *y = find_file(now, path);
        json_int_t was = json_integer_value(json_object_get(x, "bytes"));
        json_int_t is = json_integer_value(json_object_get(y, "bytes"));
        if (y == NULL)
            fault(a, path, "data.%s: it is not there", name);
        else if (was != is)
            fault(a, path, "data.%s: it has %lld bytes, and had %lld when the run was started",
                  name, (long long)is, (long long)was);
        else if (!json_equal(json_object_get(x, "hash"), json_object_get(y, "hash")))
            fault(a, path, "data.%s: its contents were changed since the run was started", name);
    }
    find_new(a, name, then, now);
    if (a->n_faults == before && !json_equal((json_t *)then, (json_t *)now))
        fault(a, "data", "data.%s gives other records than when the run was started", name);
}

static void check_data(audit *a, const char *about)
{
    tti_text t = {.ctx = a->past.ctx};
    tti_text_add(&t, "{%s}", about);
    char *text = tti_text_take(&t);
    json_t *now = text != NULL ? json_loads(text, 0, NULL) : NULL, *then = a->past.start->o, *value;
    const char *name;
    json_object_foreach(json_object_get(then, "data"), name, value)
        compare_data(a, name, value, json_object_get(json_object_get(now, "data"), name));
    const json_t *init = json_object_get(then, "init");
    const char *path = json_string_value(json_object_get(init, "path"));
    if (init != NULL && path != NULL && !json_equal((json_t *)init, json_object_get(now, "init")))
        fault(a, path, "init: the first weights were changed since the run was started");
    json_decref(now);
    tti_free(a->past.ctx, text);
}

// Builds the job of the folder to see what its data is now.
static tt_status check_job_and_data(audit *a)
{
    cli_args args = {.verb = a->past.args->verb, .level = "error", .threads = 1};
    cli_args one = args;
    cli_job j;
    char path[TTI_PATH_MAX];
    one.devices = "cpu:0";
    one.strategy = "single";
    TT_TRY(tti_file_join(a->past.ctx, path, a->past.run, "job.yaml"));
    int rc = cli_job_read(&one, path, CLI_NOTHING, &j);
    tt_status st = TT_OK;
    if (rc != CLI_OK) {
        fault(a, "job.yaml", "%s", tt_last_error(j.reader).message);
        tt_clear_error(j.reader);
    } else {
        st = check_job(a, j.job);
        j.no_init = true;
        rc = cli_job_build(&j, &one, NULL, NULL);
        char *about = rc == CLI_OK ? cli_about(&j) : NULL;
        if (about != NULL)
            check_data(a, about);
        else if (j.ctx != NULL)
            fault(a, "data", "%s", tt_last_error(j.ctx).message);
        if (j.ctx != NULL)
            tti_free(j.ctx, about);
        if (j.ctx != NULL)
            tt_clear_error(j.ctx);
        tt_clear_error(j.reader);
    }
    (void)cli_job_close(&j, CLI_OK);
    return st;
}

// Of a program's run: the text that it gave.
static tt_status check_file(audit *a)
{
    char path[TTI_PATH_MAX], *text = NULL;
    size_t n = 0;
    const char *then = json_string_value(json_object_get(a->past.start->o, "file"));
    TT_TRY(tti_file_join(a->past.ctx, path, a->past.run, "job.yaml"));
    if (!tti_file_is_regular(path)) {
        fault(a, "job.yaml", "it is not there");
        return TT_OK;
    }
    TT_TRY(tti_file_read(a->past.ctx, path, 0, &text, &n));
    if (then != NULL && strcmp(then, text) != 0)
        fault(a, "job.yaml", "its contents were changed since the run was started");
    tti_free(a->past.ctx, text);
    return TT_OK;
}

// ---- checkpoints and steps -------------------------------------------------------------------

static tt_status check_checkpoints(audit *a)
{
    const tti_links *l = &a->past.links;
    for (int64_t i = a->past.first; i < l->n; i++) {
        char name[64], path[TTI_PATH_MAX], why[256];
        bool is_last = true;
        for (int64_t k = i + 1; k < l->n; k++)
            is_last &= l->v[k].kind != TTI_LINK_CHECKPOINT || l->v[k].step != l->v[i].step;
        if (l->v[i].kind != TTI_LINK_CHECKPOINT || !is_last)
            continue;
        snprintf(name, sizeof(name), "checkpoints/step-%lld", (long long)l->v[i].step);
        TT_TRY(tti_file_join(a->past.ctx, path, a->past.run, name));
        if (!tti_folder_exists(path))
            continue; // only the newest are kept
        a->n_checkpoints++;
        TT_TRY(cli_checkpoint_check(&a->past, &l->v[i], why));
        if (why[0] != '\0')
            fault(a, name, "%s", why);
    }
    return TT_OK;
}

// "10..20", "10..", "..20" or "20".
static tt_status read_interval(audit *a, int64_t *first, int64_t *last)
{
    const char *s = a->past.args->interval;
    *first = 1;
    *last = cli_past_last(&a->past);
    if (s == NULL)
        return TT_OK;
    char *end = (char *)s;
    long long x = *s != '.' ? strtoll(s, &end, 10) : 1, y = x;
    bool has_dots = strncmp(end, "..", 2) == 0;
    const char *rest = end + (has_dots ? 2 : 0);
    if (has_dots)
        y = *rest != '\0' ? strtoll(rest, &end, 10) : (long long)*last;
    if (*rest == '\0')
        end = (char *)rest;
    if (*end != '\0' || *s == '\0' || x < 1 || y < x)
        return TT_FAIL(a->past.ctx, TT_EINVAL,
                       "--steps '%s' is not an interval of steps, for example 100..200", s);
    if (x > *last && a->past.links.broken > 0) { // of what is not to be read, nothing is repeated
        *last = 0;
        return TT_OK;
    }
    if (x > *last)
        return TT_FAIL(a->past.ctx, TT_EINVAL, "--steps %s: the last hash of '%s' is of step %lld",
                       s, a->past.run, (long long)*last);
    *first = x;
    *last = TTI_MIN(y, *last);
    return TT_OK;
}

// The first step from at on that has a hash, so that an interval between two hashes has one.
static int64_t next_hashed(const cli_past *p, int64_t at)
{
    int64_t last = cli_past_last(p);
    while (at < last && cli_past_weights(p, at) == NULL)
        at++;
    return at;
}

static tt_status replay(audit *a)
{
    cli_past *p = &a->past;
    int64_t first = 1;
    char folder[TTI_RUN_PATH], chain[TTI_PATH_MAX + 8];
    TT_TRY(read_interval(a, &first, &a->until));
    if (a->until == 0)
        return TT_OK;
    a->until = next_hashed(p, a->until);
    TT_TRY(cli_checkpoint_before(p, first - 1, &a->from));
    if (snprintf(folder, sizeof(folder), "%.*s/.audit-%d", (int)sizeof(folder) - 32, p->run,
                 (int)getpid()) >= (int)sizeof(folder))
        return TT_FAIL(p->ctx, TT_EINVAL, "'%s': the path is too long", p->run);
    snprintf(chain, sizeof(chain), "as:%s", p->run);
    tt_status st = cli_replay_run(
        p, &(cli_replay){.folder = folder, .from = a->from, .until = a->until, .chain = chain});
    if (st == TT_OK)
        st = cli_chain_compare(p, folder, a->from, a->until, &a->diff);
    if (st != TT_OK && a->n_faults > 0) { // what is wrong with the run may be the reason
        fault(a, "replay", "%s", tt_last_error(p->ctx).message);
        tt_clear_error(p->ctx);
        st = TT_OK;
    }
    tti_folder_discard(NULL, folder);
    if (st == TT_OK && a->diff.first > 0)
        fault(a, TTI_CHAIN,
              "steps %lld to %lld give other weights than the chain says: at step "
              "%lld %.16s, not %.16s",
              (long long)TTI_MAX(a->diff.last_equal, a->from) + 1, (long long)a->diff.first,
              (long long)a->diff.first, a->diff.repeated, a->diff.recorded);
    return st;
}

// ---- the verb --------------------------------------------------------------------------------

static void tell(audit *a)
{
    char *faults = tti_text_take(&a->faults);
    tti_text t = {.ctx = a->past.ctx};
    if (a->past.args->json) {
        tti_text_add(&t, "{\"right\": %s, \"run\": ", a->n_faults == 0 ? "true" : "false");
        tti_text_json(&t, a->past.run);
        tti_text_add(&t,
                     ", \"links\": %lld, \"checkpoints\": %lld, \"replayed\": [%lld, %lld], "
                     "\"compared\": %lld, \"faults\": [%s]}\n",
                     (long long)a->past.links.n, (long long)a->n_checkpoints,
                     (long long)a->from + 1, (long long)a->until, (long long)a->diff.n,
                     faults != NULL ? faults : "");
    } else if (a->n_faults == 0) {
        tti_text_add(&t,
                     "%s: as it says\n  chain %lld lines%s, log, job, %s%lld checkpoint%s agree\n",
                     a->past.run, (long long)a->past.links.n, a->has_key ? " and signatures" : "",
                     a->past.is_program ? "" : "data and ", (long long)a->n_checkpoints,
                     a->n_checkpoints == 1 ? "" : "s");
        if (a->past.is_program)
            tti_text_add(&t, "  no steps were repeated: only the program can\n");
        else
            tti_text_add(&t, "  steps %lld to %lld repeated: %lld hash%s equal\n",
                         (long long)a->from + 1, (long long)a->until, (long long)a->diff.n,
                         a->diff.n == 1 ? "" : "es");
    } else {
        tti_text_add(&t, "%s: %d thing%s wrong\n%s", a->past.run, a->n_faults,
                     a->n_faults == 1 ? " is" : "s are", faults != NULL ? faults : "");
    }
    if (!a->past.args->quiet)
        cli_print_text(&t);
    else
        tti_text_free(&t);
    tti_free(a->past.ctx, faults);
}

static tt_status check_all(audit *a, tt_ctx *ctx, const cli_args *args)
{
    a->faults.ctx = ctx;
    TT_TRY(cli_key_read(ctx, args, a->key, &a->has_key));
    TT_TRY(cli_past_open(&a->past, ctx, args, a->has_key ? a->key : NULL));
    if (tti_run_is_locked(a->past.run))
        return TT_FAIL(ctx, TT_EIO, "a process is training in '%s'", a->past.run);
    check_chain(a);
    check_log(a);
    TT_TRY(check_end(a));
    TT_TRY(a->past.is_program ? check_file(a) : check_job_and_data(a));
    TT_TRY(check_checkpoints(a));
    if (cli_past_last(&a->past) > 0 && !a->past.is_program)
        TT_TRY(replay(a));
    tell(a);
    return TT_OK;
}

static int run(const cli_args *args)
{
    audit a = {.n_faults = 0};
    cli_args plain = {.level = args->level};
    tt_ctx *ctx = cli_open(&plain, "cpu:0");
    if (ctx == NULL)
        return CLI_FAILED;
    tt_status st = check_all(&a, ctx, args);
    explicit_bzero(a.key, sizeof(a.key));
    tti_text_free(&a.faults);
    cli_past_close(&a.past);
    int rc = cli_close(ctx, NULL);
    return st != TT_OK || rc != CLI_OK || a.n_faults > 0 ? CLI_FAILED : CLI_OK;
}

const cli_verb cli_audit = {
    .name = "audit",
    .words = "RUN",
    .summary = "check that a run is what it says it is, and repeat some of its steps",
    .help =
        "Compares the run's files with the chain of hashes that it wrote, chain.jsonl: the chain\n"
        "itself, events.jsonl, job.yaml, the data and the checkpoints. Then trains the steps A to\n"
        "B again (--steps A..B; default: all), from the nearest checkpoint before A, and compares\n"
        "the weights. What was changed is named. It may run on other devices than the run did:\n"
        "\n"
        "  tutti audit digits-001\n"
        "  tutti audit digits-001 --steps 100..200 --devices cpu:0*2\n"
        "  tutti audit digits-001 --key my.key    also checks the signatures (tutti train --key)\n"
        "\n"
        "The exit code is 0 if nothing is wrong, and 1 if something is or an error occurred.\n",
    .flags = "steps key devices strategy threads isa processes runs json quiet",
    .min_words = 1,
    .max_words = 1,
    .alone = true,
    .run = run,
};
