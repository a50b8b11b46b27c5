/*
 * thread.c - threads, flags, queues. A flag is a futex: setting it costs a store and a load unless
 * someone is parked. No wakeup is lost, because the waiter counts itself before it looks again and
 * the setter stores before it counts: one of the two sees the other.
 */
#include "base/thread.h"
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int64_t tti_deadline(int64_t ms)
{
    int64_t ns, at;
    if (__builtin_mul_overflow(ms, 1000000, &ns) || __builtin_add_overflow(tti_now_ns(), ns, &at))
        return TTI_FOREVER;
    return at;
}

static struct timespec as_timespec(int64_t ns)
{
    ns = TTI_MAX(ns, 0);
    return (struct timespec){.tv_sec = (time_t)(ns / 1000000000),
                             .tv_nsec = (long)(ns % 1000000000)};
}

// ---- threads ---------------------------------------------------------------------------------

static void *thread_main(void *arg)
{
    tti_thread *t = arg;
    pthread_setname_np(pthread_self(), t->name);
    t->fn(t->arg);
    return NULL;
}

tt_status tti_thread_start(tt_ctx *ctx, tti_thread *t, const char *name, void (*fn)(void *),
                           void *arg)
{
    *t = (tti_thread){.fn = fn, .arg = arg};
    snprintf(t->name, sizeof(t->name), "%s", name);

    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); // the new thread inherits it
    int err = pthread_create(&t->id, NULL, thread_main, t);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (err != 0)
        return TT_FAIL(ctx, TT_ENOMEM, "cannot start thread '%s': %s", name, strerror(err));
    t->is_started = true;
    t->pid = getpid();
    return TT_OK;
}

void tti_thread_join(tti_thread *t)
{
    if (!t->is_started)
        return;
    if (t->pid == getpid())
        pthread_join(t->id, NULL);
    t->is_started = false;
}

// ---- flags -----------------------------------------------------------------------------------

// The system finds waiters of one process faster than those of several.
static int private_flag(uint32_t waiters)
{
    return (waiters & TTI_FLAG_SHARED) != 0 ? 0 : FUTEX_PRIVATE_FLAG;
}

static void wake(tti_flag *f)
{
    uint32_t waiters = atomic_load(&f->waiters);
    if ((waiters & ~TTI_FLAG_SHARED) != 0)
        syscall(SYS_futex, &f->value, FUTEX_WAKE | private_flag(waiters), INT32_MAX, NULL, NULL, 0);
}

void tti_flag_set(tti_flag *f, uint32_t v)
{
    atomic_store(&f->value, v); // sequentially consistent, as the load in wake()
    wake(f);
}

uint32_t tti_flag_add(tti_flag *f, uint32_t n)
{
    uint32_t v = atomic_fetch_add(&f->value, n) + n;
    wake(f);
    return v;
}

// Sleeps while the value is seen, up to the deadline; false once that has passed.
static bool park(tti_flag *f, uint32_t seen, int64_t deadline_ns)
{
    struct timespec ts = as_timespec(deadline_ns);
    int how = FUTEX_WAIT_BITSET | private_flag(atomic_load(&f->waiters));
    long rc = syscall(SYS_futex, &f->value, how, seen, deadline_ns == TTI_FOREVER ? NULL : &ts,
                      NULL, FUTEX_BITSET_MATCH_ANY);
    return rc == 0 || errno != ETIMEDOUT;
}

tt_status tti_flag_wait(tti_flag *f, uint32_t v, int spins, int64_t deadline_ns)
{
    for (int i = 0; i < spins; i++) {
        if (tti_flag_is_set(f, v))
            return TT_OK;
        tti_pause();
    }
    if (tti_flag_is_set(f, v))
        return TT_OK;

    bool in_time = true;
    atomic_fetch_add(&f->waiters, 1);
    for (;;) {
        uint32_t now = atomic_load(&f->value);
        if ((int32_t)(now - v) >= 0)
            break;
        if (!in_time)
            break;
        in_time = park(f, now, deadline_ns);
    }
    atomic_fetch_sub(&f->waiters, 1);
    return tti_flag_is_set(f, v) ? TT_OK : TT_ETIMEOUT;
}

// ---- queues ----------------------------------------------------------------------------------

tt_status tti_queue_init(tt_ctx *ctx, tti_queue *q, int64_t capacity)
{
    if (capacity < 1)
        return TT_FAIL(ctx, TT_EINVAL, "a queue cannot have a capacity of %lld",
                       (long long)capacity);
    *q = (tti_queue){.capacity = capacity};
    q->items = tti_calloc(ctx, (size_t)capacity, sizeof(*q->items));
    if (q->items == NULL)
        return TT_ENOMEM;
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&q->not_full, &attr);
    pthread_cond_init(&q->not_empty, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&q->mu, NULL);
    return TT_OK;
}

void tti_queue_deinit(tt_ctx *ctx, tti_queue *q)
{
    if (q->items == NULL)
        return;
    pthread_mutex_destroy(&q->mu);
    pthread_cond_destroy(&q->not_full);
    pthread_cond_destroy(&q->not_empty);
    tti_free(ctx, q->items);
    q->items = NULL;
}

// Waits on cond, with mu held; false once the deadline has passed.
static bool wait_on(tti_queue *q, pthread_cond_t *cond, int64_t deadline_ns)
{
    if (deadline_ns == TTI_FOREVER)
        return pthread_cond_wait(cond, &q->mu) == 0;
    struct timespec ts = as_timespec(deadline_ns);
    return pthread_cond_timedwait(cond, &q->mu, &ts) == 0;
}

tt_status tti_queue_push(tti_queue *q, void *item, int64_t deadline_ns)
{
    tt_status st = TT_OK;
    bool in_time = true;
    pthread_mutex_lock(&q->mu);
    while (!q->is_closed && q->n == q->capacity && in_time)
        in_time = wait_on(q, &q->not_full, deadline_ns);
    if (q->is_closed) {
        st = TT_ESTOP;
    } else if (q->n == q->capacity) {
        st = TT_ETIMEOUT;
    } else {
        q->items[(q->head + q->n++) % q->capacity] = item;
        pthread_cond_signal(&q->not_empty);
    }
    pthread_mutex_unlock(&q->mu);
    return st;
}

tt_status tti_queue_pop(tti_queue *q, void **item, int64_t deadline_ns)
{
    tt_status st = TT_OK;
    bool in_time = true;
    pthread_mutex_lock(&q->mu);
    while (!q->is_closed && q->n == 0 && in_time)
        in_time = wait_on(q, &q->not_empty, deadline_ns);
    if (q->n == 0) {
        st = q->is_closed ? TT_ESTOP : TT_ETIMEOUT;
    } else {
        *item = q->items[q->head];
        q->head = (q->head + 1) % q->capacity;
        q->n--;
        pthread_cond_signal(&q->not_full);
    }
    pthread_mutex_unlock(&q->mu);
    return st;
}

void tti_queue_close(tti_queue *q)
{
    pthread_mutex_lock(&q->mu);
    q->is_closed = true;
    pthread_cond_broadcast(&q->not_full);
    pthread_cond_broadcast(&q->not_empty);
    pthread_mutex_unlock(&q->mu);
}
