/*
 * replay.c - does a run, or some of its steps, again (replay.h).
 */
#include "cli/replay.h"
#include "base/ctx.h"
#include "cli/child.h"
#include "cli/proof.h"
#include "job/job.h"
#include "save/checkpoint.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_WORDS (CLI_MAX_TEXTS + 32)

// ---- the run ---------------------------------------------------------------------------------

// Where the run's job file says it runs; one that cannot be read says nothing.
static void read_place(cli_past *p)
{
    char path[TTI_PATH_MAX];
    tti_attempt a;
    if (tti_file_join(p->ctx, path, p->run, "job.yaml") != TT_OK)
        return;
    tti_attempt_begin(p->ctx, &a);
    tt_job *job = tt_job_read(p->ctx, path);
    const char *devices = tt_job_get(job, "distribute.devices");
    const char *strategy = tt_job_get(job, "distribute.strategy");
    snprintf(p->devices, sizeof(p->devices), "%s", devices != NULL ? devices : "");
    snprintf(p->strategy, sizeof(p->strategy), "%s", strategy != NULL ? strategy : "");
    (void)tti_attempt_end(p->ctx, &a);
}

tt_status cli_past_open(cli_past *p, tt_ctx *ctx, const cli_args *args, const uint8_t *key)
{
    *p = (cli_past){.ctx = ctx, .args = args};
    TT_TRY(cli_run_find(ctx, args, args->words[0], CLI_NOTHING, p->run));
    char path[TTI_PATH_MAX];
    TT_TRY(tti_file_join(ctx, path, p->run, TTI_CHAIN));
    if (!tti_file_is_regular(path))
        return TT_FAIL(ctx, TT_EIO,
                       "'%s' has no chain of hashes: it was trained by an older version or with "
                       "--chain off",
                       p->run);
    TT_TRY(tti_links_read(ctx, p->run, key, &p->links));
    for (int64_t i = 0; i < p->links.n; i++) {
        const tti_link *l = &p->links.v[i];
        if (l->kind != TTI_LINK_START)
            continue;
        p->start = l;
        if (l->step == 0)
            p->first = i;
    }
    if (p->start == NULL) {
        tti_links_free(&p->links);
        return TT_FAIL(ctx, TT_EINVAL, "'%s': the first line is not the start of a chain", path);
    }
    p->is_program = json_object_get(p->start->o, "job") == NULL;
    read_place(p);
    return TT_OK;
}

void cli_past_close(cli_past *p)
{
    if (p->ctx != NULL)
        tti_links_free(&p->links);
}

const char *cli_past_weights(const cli_past *p, int64_t step)
{
    for (int64_t i = p->links.n - 1; i >= p->first; i--)
        if (p->links.v[i].step == step && p->links.v[i].weights[0] != '\0')
            return p->links.v[i].weights;
    return NULL;
}

int64_t cli_past_last(const cli_past *p)
{
    int64_t last = 0;
    for (int64_t i = p->first; i < p->links.n; i++)
        if (p->links.v[i].kind != TTI_LINK_START)
            last = TTI_MAX(last, p->links.v[i].step);
    return last;
}

// ---- checkpoints -----------------------------------------------------------------------------

static tt_status checkpoint_path(const cli_past *p, const char *run, int64_t step,
                                 char out[TTI_PATH_MAX])
{
    char name[64];
    snprintf(name, sizeof(name), "checkpoints/step-%lld", (long long)step);
    return tti_file_join(p->ctx, out, run, name);
}

// An error of reading one is what is wrong with it, not of the caller.
static bool read_checkpoint(tt_ctx *ctx, const char *path, tti_snapshot *out, char why[256])
{
    tti_attempt a;
    tti_attempt_begin(ctx, &a);
    tt_status st = tti_checkpoint_read(ctx, path, out);
    tt_error e = tt_last_error(ctx);
    snprintf(why, 256, "%.255s", st != TT_OK ? e.message : "");
    (void)tti_attempt_end(ctx, &a);
    return st == TT_OK;
}

tt_status cli_checkpoint_check(const cli_past *p, const tti_link *link, char why[256])
{
    char path[TTI_PATH_MAX];
    tti_snapshot s;
    tti_snapshot_hashes h;
    TT_TRY(checkpoint_path(p, p->run, link->step, path));
    if (!read_checkpoint(p->ctx, path, &s, why))
        return TT_OK;
    tt_status st = tti_snapshot_hash(p->ctx, &s, &h);
    if (st == TT_OK && s.state.step != link->step)
        snprintf(why, 256, "it is the checkpoint of step %lld", (long long)s.state.step);
    else if (st == TT_OK)
        snprintf(why, 256, "%s",
                 strcmp(h.weights, link->weights) != 0       ? "its weights were changed"
                 : strcmp(h.optimizer, link->optimizer) != 0 ? "the optimizer's state was changed"
                 : strcmp(h.state, link->state) != 0
                     ? "its manifest was changed (step, cursor, counters or job)"
                     : "");
    tti_snapshot_free(p->ctx, &s);
    return st;
}

tt_status cli_checkpoint_before(const cli_past *p, int64_t at, int64_t *step)
{
    *step = 0;
    for (int64_t i = p->first; i < p->links.n; i++) {
        const tti_link *l = &p->links.v[i];
        char path[TTI_PATH_MAX], why[256];
        if (l->kind != TTI_LINK_CHECKPOINT || l->step > at || l->step <= *step)
            continue;
        TT_TRY(checkpoint_path(p, p->run, l->step, path));
        if (!tti_folder_exists(path))
            continue;
        TT_TRY(cli_checkpoint_check(p, l, why));
        if (why[0] == '\0')
            *step = l->step;
    }
    return TT_OK;
}

static tt_status copy_file(tt_ctx *ctx, const char *from, const char *to)
{
    char *room = NULL;
    uint64_t bytes = 0, at = 0;
    size_t part = (size_t)1 << 20;
    int fd = -1;
    tti_writer w;
    tt_hash hash;
    TT_TRY(tti_file_open(ctx, from, &fd, &bytes));
    tt_status st = tti_writer_open(ctx, to, true, &w);
    if (st == TT_OK) {
        room = tti_alloc(ctx, part);
        st = room == NULL ? TT_ENOMEM : TT_OK;
        for (; st == TT_OK && at < bytes; at += TTI_MIN(part, bytes - at)) {
            st = tti_file_pread(ctx, from, fd, room, TTI_MIN(part, bytes - at), at);
            if (st == TT_OK)
                st = tti_writer_add(&w, room, TTI_MIN(part, bytes - at));
        }
        if (st == TT_OK)
            st = tti_writer_close(&w, &hash);
        else
            tti_writer_drop(&w);
        tti_free(ctx, room);
    }
    close(fd);
    return st;
}

static tt_status copy_checkpoint(const cli_past *p, const char *folder, int64_t step)
{
    char from[TTI_PATH_MAX], to[TTI_PATH_MAX], a[TTI_PATH_MAX], b[TTI_PATH_MAX], **names = NULL;
    int64_t n = 0;
    TT_TRY(checkpoint_path(p, p->run, step, from));
    TT_TRY(checkpoint_path(p, folder, step, to));
    TT_TRY(tti_folder_make(p->ctx, to));
    TT_TRY(tti_folder_list(p->ctx, from, &names, &n));
    tt_status st = TT_OK;
    for (int64_t i = 0; i < n && st == TT_OK; i++) {
        st = tti_file_join(p->ctx, a, from, names[i]);
        if (st == TT_OK)
            st = tti_file_join(p->ctx, b, to, names[i]);
        if (st == TT_OK)
            st = copy_file(p->ctx, a, b);
    }
    tti_names_free(p->ctx, names, n);
    return st;
}

// ---- stretches -------------------------------------------------------------------------------

// Steps of a run that were done with one job.
typedef struct stretch {
    const tti_link *start;
    int64_t until; // its last step
} stretch;

// The start by which the step after that one was done, as the run ended up; where the next begins.
static const tti_link *start_after(const cli_past *p, int64_t step, int64_t *end)
{
    *end = INT64_MAX;
    for (int64_t i = p->links.n - 1; i >= p->first; i--) {
        const tti_link *l = &p->links.v[i];
        if (l->kind == TTI_LINK_START && l->step <= step)
            return l;
        if (l->kind == TTI_LINK_START)
            *end = TTI_MIN(*end, l->step);
    }
    return &p->links.v[p->first];
}

static bool is_same_job(const tti_link *a, const tti_link *b)
{
    bool same = json_equal(json_object_get(a->o, "job"), json_object_get(b->o, "job")) != 0;
    for (int i = 0; i < CLI_N_BIT_KEYS; i++)
        same = same && json_equal(json_object_get(a->o, cli_bit_keys[i]),
                                  json_object_get(b->o, cli_bit_keys[i]));
    return same;
}

static stretch stretch_from(const cli_past *p, int64_t from, int64_t until)
{
    int64_t end;
    stretch s = {.start = start_after(p, from, &end)};
    while (end < until) {
        int64_t next;
        const tti_link *other = start_after(p, end, &next);
        if (!is_same_job(s.start, other))
            break;
        end = next;
    }
    s.until = TTI_MIN(end, until);
    return s;
}

// ---- the other process -----------------------------------------------------------------------

typedef struct words {
    const char *v[MOST_WORDS + 1];
    char *made[MOST_WORDS];
    int n, n_made;
    bool failed;
} words;

static void add(words *w, const char *word)
{
    if (w->n < MOST_WORDS)
        w->v[w->n++] = word;
    w->v[w->n] = NULL;
}

static void addf(words *w, const char *fmt, ...) TT_PRINTF(2, 3);
static void addf(words *w, const char *fmt, ...)
{
    va_list ap;
    char *s = NULL;
    va_start(ap, fmt);
    w->failed |= vasprintf(&s, fmt, ap) < 0 || w->n_made == MOST_WORDS;
    va_end(ap);
    if (w->failed)
        return;
    w->made[w->n_made++] = s;
    add(w, s);
}

// Where it runs: what the flags say, or else what the run's job does.
static void add_place(words *w, const cli_past *p, const cli_replay *r)
{
    const cli_args *a = p->args;
    bool given = !r->as_recorded && (a->devices != NULL || a->strategy != NULL || a->processes > 0);
    const char *devices = given ? a->devices : p->devices;
    const char *strategy = given ? a->strategy : p->strategy;
    if (given && a->devices == NULL && a->processes == 0)
        devices = p->devices;
    if (given && strategy == NULL && (a->processes > 1 || strpbrk(a->devices, ",*") != NULL))
        strategy = "mirrored";
    if (devices != NULL && devices[0] != '\0')
        addf(w, "--devices=%s", devices);
    if (strategy != NULL && strategy[0] != '\0')
        addf(w, "--strategy=%s", strategy);
    if (r->as_recorded)
        return;
    if (a->threads > 0)
        addf(w, "--threads=%lld", (long long)a->threads);
    if (a->isa != NULL)
        addf(w, "--isa=%s", a->isa);
    for (int i = 0; i < a->sets.n; i++)
        addf(w, "--set=%s", a->sets.v[i]);
}

static void add_words(words *w, const cli_past *p, const cli_replay *r, const stretch *s)
{
    const cli_args *a = p->args;
    if (a->processes > 1 && !r->as_recorded) {
        add(w, "run");
        addf(w, "--processes=%lld", (long long)a->processes);
    } else {
        add(w, "train");
    }
    addf(w, "%s/job.yaml", r->folder);
    addf(w, "--run=%s", r->folder);
    add(w, "--resume");
    add(w, "--quiet");
    add(w, "--no-trial");
    addf(w, "--chain=%s", r->chain);
    for (int i = 0; i < CLI_N_BIT_KEYS; i++) {
        const char *v = json_string_value(json_object_get(s->start->o, cli_bit_keys[i]));
        bool is_default = v == NULL || strcmp(v, "exact") == 0 || strcmp(v, "f32") == 0;
        if (!is_default) // not every strategy takes them
            addf(w, "--set=%s=%s", cli_bit_keys[i], v);
    }
    addf(w, "--until=%lld", (long long)s->until);
    if (r->hashes != NULL)
        addf(w, "--hashes=%s", r->hashes);
    add_place(w, p, r);
}

// The last error in what the other process wrote.
static tt_status child_failed(const cli_past *p, const char *log, int rc)
{
    char *text = NULL, *last = NULL;
    size_t n = 0;
    tti_attempt a;
    static const char word[] = "tutti: error: ";
    tti_attempt_begin(p->ctx, &a);
    tt_status read = tti_file_read(p->ctx, log, (size_t)1 << 24, &text, &n);
    (void)tti_attempt_end(p->ctx, &a);
    for (char *s = text; read == TT_OK && (s = strstr(s, word)) != NULL; s += sizeof(word) - 1)
        last = s + sizeof(word) - 1;
    tt_status st = TT_FAIL(p->ctx, TT_EINVAL, "it cannot be repeated here: %.*s (exit code %d; %s)",
                           last != NULL ? (int)strcspn(last, "\n") : 22,
                           last != NULL ? last : "training did not start", rc, log);
    tti_free(p->ctx, text);
    return st;
}

static tt_status run_stretch(const cli_past *p, const cli_replay *r, const stretch *s)
{
    char self[TTI_PATH_MAX], path[TTI_PATH_MAX];
    const char *job = json_string_value(json_object_get(s->start->o, "job"));
    words w = {.n = 0};
    TT_TRY(tti_file_join(p->ctx, path, r->folder, "job.yaml"));
    if (job == NULL)
        return TT_FAIL(p->ctx, TT_EPARSE, "the chain of '%s' names no job", p->run);
    TT_TRY(tti_file_replace(p->ctx, path, job, strlen(job)));
    TT_TRY(tti_file_join(p->ctx, path, r->folder, "replay.log"));
    add(&w, cli_self(self));
    add_words(&w, p, r, s);
    int rc = w.failed ? -1 : cli_child_run(&(cli_child){.words = w.v, .log = path});
    for (int i = 0; i < w.n_made; i++)
        free(w.made[i]); // vasprintf()'s
    return rc == CLI_OK ? TT_OK : child_failed(p, path, rc);
}

tt_status cli_replay_run(const cli_past *p, const cli_replay *r)
{
    TT_TRY(tti_folder_make(p->ctx, r->folder));
    if (r->from > 0)
        TT_TRY(copy_checkpoint(p, r->folder, r->from));
    for (int64_t from = r->from; from < r->until;) {
        stretch s = stretch_from(p, from, r->until);
        TT_TRY(run_stretch(p, r, &s));
        from = s.until;
    }
    return TT_OK;
}

// ---- comparing -------------------------------------------------------------------------------

tt_status cli_chain_compare(const cli_past *p, const char *folder, int64_t from, int64_t until,
                            cli_chain_diff *out)
{
    tti_links l;
    TT_TRY(tti_links_read(p->ctx, folder, NULL, &l));
    *out = (cli_chain_diff){.last_equal = -1, .first = -1};
    for (int64_t i = 0; i < l.n; i++) {
        int64_t step = l.v[i].step;
        const char *mine = l.v[i].weights, *theirs = NULL;
        if (mine[0] != '\0' && step > from && step <= until)
            theirs = cli_past_weights(p, step);
        if (theirs == NULL)
            continue;
        out->n++;
        if (strcmp(mine, theirs) == 0 && out->first < 0)
            out->last_equal = TTI_MAX(out->last_equal, step);
        if (strcmp(mine, theirs) == 0 || (out->first >= 0 && out->first <= step))
            continue;
        out->first = step;
        snprintf(out->recorded, sizeof(out->recorded), "%s", theirs);
        snprintf(out->repeated, sizeof(out->repeated), "%s", mine);
    }
    tti_links_free(&l);
    if (out->n == 0)
        return TT_FAIL(p->ctx, TT_EINVAL,
                       "'%s' and '%s' have no hash of the same step from %lld to %lld", p->run,
                       folder, (long long)from + 1, (long long)until);
    return TT_OK;
}
