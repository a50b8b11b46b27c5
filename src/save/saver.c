/*
 * saver.c - writes checkpoints in the background.
 *
 * One thread, one buffer. save() waits for the save before, copies everything into the buffer and
 * wakes the thread, so training goes on while the disk works. The buffer is made by the first save
 * and kept. Removing comes last: first the new checkpoint, read back, then the note which one is
 * the best, then the old ones go, so that at no instant one that is needed is missing.
 */
#include "base/thread.h"
#include "save/checkpoint.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGN   64
#define LONGEST "/.tmp-step-9223372036854775807/optimizer.safetensors" // behind a folder's path

typedef struct judged {
    int64_t step;
    bool is_good; // every byte was read and compared
} judged;

struct tti_saver {
    tt_ctx *ctx;
    struct tti_hooks owned;
    char folder[TTI_PATH_MAX];
    int keep;
    int64_t first; // newest step that was there when the saver was opened; -1: none
    tti_thread thread;

    pthread_mutex_t mu;
    pthread_cond_t changed;
    bool has_work, is_closing; // guarded by mu, as all down to newest
    tt_status status;          // of the last save, until somebody was told
    char newest[TTI_PATH_MAX];

    // The copy: the caller's while has_work is false, then the thread's.
    tti_snapshot copy;
    bool is_best;
    int64_t cap_tensors, cap_bytes;
    char *bytes;    // names, elements, the job
    judged *judged; // the thread's: checkpoints that were read
    int64_t n_judged, cap_judged;
    bool has_left_one;       // the thread's: told of one that cannot be judged
    char told[TTI_PATH_MAX]; // what tti_saver_newest() gave out
};

// ---- the thread ------------------------------------------------------------------------------

static int newest_first(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

static judged *find_judged(tti_saver *s, int64_t step)
{
    for (int64_t i = 0; i < s->n_judged; i++)
        if (s->judged[i].step == step)
            return &s->judged[i];
    return NULL;
}

static tt_status note(tti_saver *s, int64_t step, bool is_good)
{
    judged *j = find_judged(s, step);
    if (j == NULL) {
        if (!tti_grow(s->ctx, &s->judged, &s->cap_judged, s->n_judged + 1, sizeof(*s->judged)))
            return TT_ENOMEM;
        j = &s->judged[s->n_judged++];
    }
    *j = (judged){step, is_good};
    return TT_OK;
}

// Can the checkpoint of a step be read whole? Looked at once.
static tt_status judge(tti_saver *s, int64_t step, const char *path, bool *is_good)
{
    char damage[TTI_DAMAGE];
    const judged *j = find_judged(s, step);
    if (j != NULL) {
        *is_good = j->is_good;
        return TT_OK;
    }
    // What is wrong with an old one is no error of this save.
    *is_good = tti_checkpoint_look(NULL, path, true, damage) == TT_OK && damage[0] == '\0';
    return note(s, step, *is_good);
}

// Removes an old one, unless nobody can say what it is.
static void remove_old(tti_saver *s, int64_t step, const char *path)
{
    char damage[TTI_DAMAGE];
    if (tti_checkpoint_look(NULL, path, false, damage) == TT_OK) {
        tti_fresh_retire(s->ctx, path);
        judged *j = find_judged(s, step);
        if (j != NULL)
            *j = s->judged[--s->n_judged];
        return;
    }
    if (!s->has_left_one)
        TT_LOG(s->ctx, TT_WARN,
               "%s is not removed: it belongs to another version of Tutti, or cannot be read",
               path);
    s->has_left_one = true;
}

// Removes all checkpoints that are older than the newest keep good ones, but for the best.
static tt_status prune_steps(tti_saver *s, const int64_t *steps, int64_t n, int64_t best)
{
    char path[TTI_PATH_MAX], name[32];
    int n_kept = 0;
    for (int64_t i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "step-%lld", (long long)steps[i]);
        TT_TRY(tti_file_join(s->ctx, path, s->folder, name));
        bool good = false;
        if (n_kept < s->keep)
            TT_TRY(judge(s, steps[i], path, &good));
        else if (steps[i] != best)
            remove_old(s, steps[i], path);
        n_kept += good;
    }
    return TT_OK;
}

static tt_status prune(tti_saver *s)
{
    char **names, best[TTI_PATH_MAX];
    int64_t n, n_steps = 0;
    TT_TRY(tti_checkpoint_best(s->ctx, s->folder, best));
    const char *slash = strrchr(best, '/');
    int64_t best_step = slash == NULL ? -1 : tti_checkpoint_step(slash + 1);
    TT_TRY(tti_folder_list(s->ctx, s->folder, &names, &n));
    int64_t *steps = tti_calloc(s->ctx, (size_t)n + 1, sizeof(*steps));
    tt_status st = steps == NULL ? TT_ENOMEM : TT_OK;
    for (int64_t i = 0; i < n && st == TT_OK; i++)
        if (tti_checkpoint_step(names[i]) >= 0)
            steps[n_steps++] = tti_checkpoint_step(names[i]);
    if (n_steps > 1)
        qsort(steps, (size_t)n_steps, sizeof(*steps), newest_first);
    if (st == TT_OK)
        st = prune_steps(s, steps, n_steps, best_step);
    tti_free(s->ctx, steps);
    tti_names_free(s->ctx, names, n);
    return st;
}

static tt_status save_one(tti_saver *s)
{
    char path[TTI_PATH_MAX], best[TTI_PATH_MAX], name[32];
    snprintf(name, sizeof(name), "step-%lld\n", (long long)s->copy.state.step);
    if (s->is_best)
        TT_TRY(tti_file_join(s->ctx, best, s->folder, "best"));
    size_t length = strlen(name);
    name[length - 1] = '\0';
    TT_TRY(tti_file_join(s->ctx, path, s->folder, name));
    TT_TRY(tti_checkpoint_write(s->ctx, path, &s->copy)); // and reads it back
    TT_TRY(note(s, s->copy.state.step, true));
    pthread_mutex_lock(&s->mu);
    memcpy(s->newest, path, strlen(path) + 1); // open_folder() saw to its length
    pthread_mutex_unlock(&s->mu);
    name[length - 1] = '\n';
    if (s->is_best)
        TT_TRY(tti_fence_check(s->ctx, best));
    if (s->is_best)
        TT_TRY(tti_file_replace(s->ctx, best, name, length));
    return prune(s);
}

static void saver_main(void *arg)
{
    tti_saver *s = arg;
    pthread_mutex_lock(&s->mu);
    for (;;) {
        while (!s->has_work && !s->is_closing)
            pthread_cond_wait(&s->changed, &s->mu);
        if (!s->has_work)
            break;
        pthread_mutex_unlock(&s->mu);
        tt_status st = save_one(s);
        pthread_mutex_lock(&s->mu);
        s->status = st;
        s->has_work = false;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->mu);
}

// ---- the caller's side -----------------------------------------------------------------------

tt_status tti_saver_wait(tti_saver *s)
{
    pthread_mutex_lock(&s->mu);
    while (s->has_work)
        pthread_cond_wait(&s->changed, &s->mu);
    tt_status st = s->status;
    s->status = TT_OK;
    pthread_mutex_unlock(&s->mu);
    return st;
}

tt_status tti_saver_resumed(tti_saver *s, int64_t step)
{
    TT_TRY(tti_saver_wait(s)); // the thread has nothing to do
    s->first = step;
    return note(s, step, true);
}

const char *tti_saver_newest(tti_saver *s)
{
    pthread_mutex_lock(&s->mu);
    memcpy(s->told, s->newest, sizeof(s->told));
    pthread_mutex_unlock(&s->mu);
    return s->told;
}

// Bytes that the copy of a snapshot takes.
static bool size_of(const tti_snapshot *from, size_t *out)
{
    size_t n = from->state.job == NULL ? 0 : strlen(from->state.job) + 1;
    n += from->card == NULL ? 0 : strlen(from->card) + 1;
    for (int64_t i = 0; i < from->n; i++) {
        if (__builtin_add_overflow(n, from->tensors[i].bytes + 2 * ALIGN, &n) ||
            __builtin_add_overflow(n, strlen(from->tensors[i].name) + 1, &n))
            return false;
    }
    *out = n + ALIGN;
    return n < INT64_MAX / 2;
}

static char *aligned(char *p)
{
    return p + (ALIGN - (uintptr_t)p % ALIGN) % ALIGN;
}

static tt_status copy_snapshot(tti_saver *s, const tti_snapshot *from)
{
    size_t need;
    if (!size_of(from, &need))
        return TT_FAIL(s->ctx, TT_ENOMEM, "checkpoint: too large");
    if ((int64_t)need > s->cap_bytes) {
        tti_free(s->ctx, s->bytes);
        s->cap_bytes = 0;
        s->bytes = tti_alloc(s->ctx, need);
        if (s->bytes == NULL)
            return TT_ENOMEM;
        s->cap_bytes = (int64_t)need;
    }
    if (!tti_grow(s->ctx, &s->copy.tensors, &s->cap_tensors, from->n, sizeof(tti_named)))
        return TT_ENOMEM;
    s->copy.state = from->state;
    s->copy.n = from->n;
    s->copy.n_weights = from->n_weights;
    char *at = s->bytes;
    for (int64_t i = 0; i < from->n; i++) {
        tti_named *t = &s->copy.tensors[i];
        *t = from->tensors[i];
        at = aligned(at);
        if (t->bytes > 0)
            t->data = memcpy(at, t->data, t->bytes);
        at += t->bytes;
        size_t length = strlen(t->name) + 1;
        t->name = memcpy(at, t->name, length);
        at += length;
    }
    if (from->state.job != NULL) {
        s->copy.state.job = memcpy(at, from->state.job, strlen(from->state.job) + 1);
        at += strlen(from->state.job) + 1;
    }
    s->copy.card = from->card == NULL ? NULL : memcpy(at, from->card, strlen(from->card) + 1);
    return TT_OK;
}

tt_status tti_saver_save(tti_saver *s, const tti_snapshot *snapshot, bool is_best)
{
    TT_TRY(tti_saver_wait(s));
    if (snapshot->state.step < s->first)
        return TT_FAIL(s->ctx, TT_EINVAL,
                       "%s has a checkpoint of step %lld, so step %lld belongs to another run: "
                       "resume from that checkpoint, or use another folder",
                       s->folder, (long long)s->first, (long long)snapshot->state.step);
    TT_TRY(copy_snapshot(s, snapshot));
    s->is_best = is_best;
    pthread_mutex_lock(&s->mu);
    s->has_work = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->mu);
    return TT_OK;
}

static void saver_free(void *owner)
{
    tti_saver *s = owner;
    pthread_mutex_lock(&s->mu);
    s->is_closing = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->mu);
    tti_thread_join(&s->thread);
    pthread_mutex_destroy(&s->mu);
    pthread_cond_destroy(&s->changed);
    tti_free(s->ctx, s->copy.tensors);
    tti_free(s->ctx, s->bytes);
    tti_free(s->ctx, s->judged);
    tti_free(s->ctx, s);
}

void tti_saver_close(tti_saver *s)
{
    if (s == NULL)
        return;
    tti_disown(s->ctx, &s->owned);
    saver_free(s);
}

static tt_status open_folder(tti_saver *s, const char *folder)
{
    TT_TRY(tti_file_join(s->ctx, s->folder, folder, ""));
    size_t n = strlen(s->folder);
    while (n > 1 && s->folder[n - 1] == '/')
        s->folder[--n] = '\0';
    if (n + sizeof(LONGEST) > sizeof(s->newest))
        return TT_FAIL(
            s->ctx, TT_EINVAL,
            "%.200s...: the path of a checkpoint folder has %zu bytes; at most %zu are allowed",
            s->folder, n, sizeof(s->newest) - sizeof(LONGEST));
    TT_TRY(tti_folder_make(s->ctx, s->folder));
    TT_TRY(tti_checkpoint_newest(s->ctx, s->folder, s->newest));
    const char *slash = strrchr(s->newest, '/');
    s->first = slash == NULL ? -1 : tti_checkpoint_step(slash + 1);
    return tti_thread_start(s->ctx, &s->thread, "tutti-saver", saver_main, s);
}

tt_status tti_saver_open(tt_ctx *ctx, const char *folder, int keep, tti_saver **out)
{
    if (keep < 1)
        return TT_FAIL(ctx, TT_EINVAL, "checkpoints: keep is %d; it must be at least 1", keep);
    tti_saver *s = tti_calloc(ctx, 1, sizeof(*s));
    if (s == NULL)
        return TT_ENOMEM;
    s->ctx = ctx;
    s->keep = keep;
    pthread_mutex_init(&s->mu, NULL);
    pthread_cond_init(&s->changed, NULL);
    tt_status st = open_folder(s, folder);
    if (st != TT_OK) {
        saver_free(s);
        return st;
    }
    tti_own(ctx, &s->owned, s, saver_free);
    *out = s;
    return TT_OK;
}
