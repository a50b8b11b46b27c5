/*
 * thread.h - threads with names, flags that are waited for, bounded queues.
 *
 * A deadline is a moment of tti_now_ns(); TTI_FOREVER has none, and one that has passed only looks.
 */
#ifndef TUTTI_BASE_THREAD_H
#define TUTTI_BASE_THREAD_H

#include "base/base.h"
#include <pthread.h>

#define TTI_FOREVER INT64_MAX

// The deadline that many milliseconds from now.
int64_t tti_deadline(int64_t ms);

// ---- threads ---------------------------------------------------------------------------------

typedef struct tti_thread {
    pthread_t id;
    bool is_started;
    int pid;       // a child of fork() has no such thread
    char name[16]; // as ps and perf show it
    void (*fn)(void *arg);
    void *arg;
} tti_thread;

/*
 * Starts fn(arg) with all signals blocked: the library takes none. t must stay in place until
 * joined. TT_ENOMEM when the system gives no more threads.
 */
tt_status tti_thread_start(tt_ctx *ctx, tti_thread *t, const char *name, void (*fn)(void *),
                           void *arg) TTI_CHECKED;
void tti_thread_join(tti_thread *t); // nothing if it was not started

// Tells the processor that this thread is spinning.
static inline void tti_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

// ---- flags -----------------------------------------------------------------------------------

/*
 * A counter that is waited for. All zero is a flag at 0. It counts up and may wrap around: a wait
 * for v is over once the value has reached v, values less than 2^31 ahead counting as reached.
 */
typedef struct tti_flag {
    _Atomic uint32_t value;
    _Atomic uint32_t waiters; // parked threads: setting wakes only if there are any
} tti_flag;

// In waiters: the flag is in memory that processes share. Set before anyone knows the flag.
#define TTI_FLAG_SHARED 0x80000000u
static inline void tti_flag_init_shared(tti_flag *f)
{
    atomic_store(&f->value, 0);
    atomic_store(&f->waiters, TTI_FLAG_SHARED);
}

// Sets the flag to v and wakes whoever is parked; what was written before is seen by waiters.
void tti_flag_set(tti_flag *f, uint32_t v);
// Adds n, gives the new value, and wakes.
uint32_t tti_flag_add(tti_flag *f, uint32_t n);

static inline bool tti_flag_is_set(tti_flag *f, uint32_t v)
{
    uint32_t now = atomic_load_explicit(&f->value, memory_order_acquire);
    return (int32_t)(now - v) >= 0;
}

// Looks spins times, then parks. TT_OK once v is reached, at the deadline TT_ETIMEOUT, unrecorded.
tt_status tti_flag_wait(tti_flag *f, uint32_t v, int spins, int64_t deadline_ns) TTI_CHECKED;

// ---- queues ----------------------------------------------------------------------------------

// A bounded queue of pointers for any number of threads.
typedef struct tti_queue {
    pthread_mutex_t mu;
    pthread_cond_t not_full, not_empty;
    void **items; // ring; guarded by mu, as all below
    int64_t capacity, head, n;
    bool is_closed;
} tti_queue;

tt_status tti_queue_init(tt_ctx *ctx, tti_queue *q, int64_t capacity) TTI_CHECKED;
void tti_queue_deinit(tt_ctx *ctx, tti_queue *q); // nobody may be waiting; items are the caller's

// TT_ETIMEOUT at the deadline, TT_ESTOP once closed; neither is recorded.
tt_status tti_queue_push(tti_queue *q, void *item, int64_t deadline_ns) TTI_CHECKED;
// What is left can still be popped after closing; TT_ESTOP when that is nothing.
tt_status tti_queue_pop(tti_queue *q, void **item, int64_t deadline_ns) TTI_CHECKED;
void tti_queue_close(tti_queue *q); // wakes everyone

#endif
