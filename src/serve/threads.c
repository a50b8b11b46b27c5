/*
 * threads.c - threads that stop together (tutti/serve.h): the first error is the group's, and
 * cancels its queues, so that nobody waits for who has ended.
 */
#include "base/ctx.h"
#include "serve/serve.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

typedef struct member {
    tt_threads *group;
    tti_thread thread;
    char name[32];
    tt_thread_fn fn;
    void *user;
    bool is_ended; // guarded by the group's mu
    struct member *next;
} member;

struct tt_threads {
    tt_ctx *ctx;
    struct tti_hooks owned;
    _Atomic int is_stopped;
    pthread_mutex_t mu; // guards what follows
    pthread_cond_t ended;
    member *members;
    tti_queue_core **queues;
    int64_t n_queues, cap_queues;
    tt_status status;
    char message[TTI_MESSAGE_MAX];
    bool is_told;
};

static void stop(tt_threads *t, tt_status st, const char *message)
{
    pthread_mutex_lock(&t->mu);
    if (st != TT_OK && t->status == TT_OK && atomic_load(&t->is_stopped) == 0) {
        t->status = st;
        snprintf(t->message, sizeof(t->message), "%s", message);
    }
    atomic_store(&t->is_stopped, 1);
    for (int64_t i = 0; i < t->n_queues; i++)
        tti_queue_core_close(t->queues[i], true);
    pthread_mutex_unlock(&t->mu);
}

static void threads_release(void *owner)
{
    tt_threads *t = owner;
    stop(t, TT_OK, "");
    for (member *m = t->members, *next; m != NULL; m = next) {
        next = m->next;
        tti_thread_join(&m->thread);
        tti_free(t->ctx, m);
    }
    for (int64_t i = 0; i < t->n_queues; i++)
        tti_queue_core_release(t->queues[i]);
    tti_free(t->ctx, t->queues);
    pthread_cond_destroy(&t->ended);
    pthread_mutex_destroy(&t->mu);
    tti_free(t->ctx, t);
}

tt_threads *tt_threads_new(tt_ctx *ctx)
{
    if (ctx == NULL || tti_is_stuck(ctx))
        return NULL;
    tt_threads *t = tti_calloc(ctx, 1, sizeof(*t));
    if (t == NULL)
        return NULL;
    t->ctx = ctx;
    pthread_mutex_init(&t->mu, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&t->ended, &attr);
    pthread_condattr_destroy(&attr);
    tti_own(ctx, &t->owned, t, threads_release);
    return t;
}

void tt_threads_free(tt_threads *t)
{
    if (t == NULL || t->ctx == NULL)
        return;
    tti_disown(t->ctx, &t->owned);
    threads_release(t);
}

static void run(void *arg)
{
    member *m = arg;
    tt_threads *t = m->group;
    tt_status st = m->fn(t, m->user);
    char message[128];
    snprintf(message, sizeof(message), "thread '%s' failed: %s", m->name, tt_status_text(st));
    if (st != TT_OK && st != TT_ESTOP)
        stop(t, st, message);
    pthread_mutex_lock(&t->mu);
    m->is_ended = true;
    pthread_cond_broadcast(&t->ended);
    pthread_mutex_unlock(&t->mu);
}

tt_status tt_threads_start(tt_threads *t, const char *name, tt_thread_fn fn, void *user)
{
    if (t == NULL || t->ctx == NULL)
        return TT_EINVAL;
    if (tti_is_stuck(t->ctx))
        return tt_status_of(t->ctx);
    if (fn == NULL || name == NULL)
        return TT_FAIL(t->ctx, TT_EINVAL, "threads: the %s of a thread is NULL",
                       fn == NULL ? "function" : "name");
    if (atomic_load(&t->is_stopped) != 0)
        return TT_FAIL(t->ctx, TT_ESTOP, "threads: '%.31s' is not started, the group was stopped",
                       name);
    member *m = tti_calloc(t->ctx, 1, sizeof(*m));
    if (m == NULL)
        return TT_ENOMEM;
    *m = (member){.group = t, .fn = fn, .user = user};
    snprintf(m->name, sizeof(m->name), "%s", name);
    pthread_mutex_lock(&t->mu);
    m->next = t->members;
    t->members = m;
    tt_status st = tti_thread_start(t->ctx, &m->thread, m->name, run, m);
    m->is_ended = st != TT_OK;
    pthread_mutex_unlock(&t->mu);
    return st;
}

tt_status tt_threads_watch(tt_threads *t, tt_queue *q)
{
    if (t == NULL || t->ctx == NULL)
        return TT_FAIL(tti_queue_ctx(q), TT_EINVAL, "threads: the group is NULL");
    if (tti_is_stuck(t->ctx))
        return tt_status_of(t->ctx);
    tti_queue_core *core = q == NULL ? NULL : tti_queue_core_of(q);
    if (core == NULL)
        return TT_FAIL(t->ctx, TT_EINVAL, "threads: %s; a group cancels queues of its process only",
                       q == NULL ? "the queue is NULL" : "the queue is a server's");
    pthread_mutex_lock(&t->mu);
    bool ok = tti_grow(t->ctx, &t->queues, &t->cap_queues, t->n_queues + 1, sizeof(*t->queues));
    if (ok) {
        tti_queue_core_retain(core);
        t->queues[t->n_queues++] = core;
    }
    pthread_mutex_unlock(&t->mu);
    if (ok && atomic_load(&t->is_stopped) != 0)
        tti_queue_core_close(core, true);
    return ok ? TT_OK : TT_ENOMEM;
}

bool tt_threads_should_stop(const tt_threads *t)
{
    return t == NULL || atomic_load(&t->is_stopped) != 0;
}

void tt_threads_stop(tt_threads *t, const tt_ctx *error)
{
    if (t == NULL || t->ctx == NULL)
        return;
    tt_status st = error == NULL ? TT_OK : tt_status_of(error);
    if (st == TT_ESTOP)
        st = TT_OK;
    stop(t, st, st == TT_OK ? "" : tt_last_error(error).message);
}

static tt_status wait_all(tt_threads *t, int64_t deadline_ms)
{
    int64_t deadline = tti_deadline(deadline_ms);
    struct timespec until = {.tv_sec = deadline / 1000000000, .tv_nsec = deadline % 1000000000};
    for (member *m = t->members; m != NULL;) {
        if (m->is_ended) {
            m = m->next;
            continue;
        }
        if (tti_now_ns() >= deadline)
            return TT_FAIL(t->ctx, TT_ETIMEOUT, "threads: '%s' has not ended in %lld ms%s", m->name,
                           (long long)deadline_ms,
                           atomic_load(&t->is_stopped) != 0 ? ", after the group was stopped" : "");
        (void)pthread_cond_timedwait(&t->ended, &t->mu, &until);
    }
    return TT_OK;
}

tt_status tt_threads_join(tt_threads *t, int64_t deadline_ms)
{
    if (t == NULL || t->ctx == NULL)
        return TT_EINVAL;
    if (tti_is_stuck(t->ctx))
        return tt_status_of(t->ctx);
    pthread_mutex_lock(&t->mu);
    tt_status st = wait_all(t, deadline_ms > 0 ? deadline_ms : t->ctx->deadline_ms);
    tt_status own = t->is_told ? TT_OK : t->status;
    t->is_told = true;
    pthread_mutex_unlock(&t->mu);
    if (st == TT_OK && own != TT_OK)
        return TT_FAIL(t->ctx, own, "%s", t->message);
    return st;
}
