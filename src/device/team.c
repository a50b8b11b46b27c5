/*
 * team.c - a team of threads that share the work of one kernel.
 *
 * Thread 0 is the device's worker. A round is one phase of one kernel: the worker fills the round,
 * opens it, raises the epoch, and everyone takes chunks of units until none is left: first of its
 * own range, the same one every time a kernel runs, so that data stays in the cache of the core
 * that used it before; then of the others'. Helpers spin for a while between rounds, then park; a
 * helper joins a round only while it is open, and the worker, when it finds no more chunks, closes
 * the round and waits only for those who joined. So a sleeping helper costs nothing but its help.
 * Who computes what never shows in the result: kernels give the same bits for any division.
 */
#include "device/device.h"
#include <stdio.h>
#include <string.h>

typedef struct tti_helper {
    tti_team *team;
    int number; // of the thread in the team
    tti_thread thread;
} tti_helper;

// Where the next chunk of a thread's range begins.
typedef struct tti_range {
    _Alignas(64) _Atomic int64_t next;
    int64_t end;
} tti_range;

struct tti_team {
    tt_ctx *ctx;
    int n; // threads, the worker included
    int spins;
    tti_helper *helpers; // n - 1
    tti_range *ranges;   // n
    _Atomic bool quit;

    // The round, written by the worker before it raises epoch.
    tt_kernel_fn fn;
    const tt_launch *launch;
    int phase;
    int64_t units, chunk;
    size_t local_bytes;

    _Alignas(64) tti_flag epoch;
    _Alignas(64) _Atomic uint32_t door; // CLOSED, and how many helpers are inside
    _Alignas(64) tti_flag left;         // times the last helper left a closed round
    uint32_t n_left;                    // the worker's count of the same
    _Atomic int status;
};

#define CLOSED 0x80000000u

static void take_chunks(tti_team *t, int thread)
{
    tt_launch l = *t->launch;
    l.phase = t->phase;
    l.thread = thread;
    l.n_threads = t->n;
    l.local = l.local == NULL ? NULL : l.local + (size_t)thread * t->local_bytes;
    for (int i = 0; i < t->n; i++) {
        tti_range *r = &t->ranges[(thread + i) % t->n];
        for (;;) {
            int64_t at = atomic_fetch_add_explicit(&r->next, t->chunk, memory_order_relaxed);
            if (at >= r->end || atomic_load_explicit(&t->status, memory_order_relaxed) != TT_OK)
                break;
            l.begin = at;
            l.end = TTI_MIN(at + t->chunk, r->end);
            tt_status st = t->fn(&l);
            int ok = TT_OK;
            if (st != TT_OK)
                atomic_compare_exchange_strong(&t->status, &ok, (int)st);
        }
    }
}

static void helper_main(void *arg)
{
    const tti_helper *h = arg;
    tti_team *t = h->team;
    tti_fp_enter();
    for (uint32_t round = 1;;) {
        while (tti_flag_wait(&t->epoch, round, t->spins, TTI_FOREVER) != TT_OK)
            ;
        round = atomic_load(&t->epoch.value) + 1; // what was missed is missed
        if (atomic_load(&t->quit))
            return;
        uint32_t door = atomic_load(&t->door);
        while ((door & CLOSED) == 0 && !atomic_compare_exchange_weak(&t->door, &door, door + 1))
            ;
        if ((door & CLOSED) != 0)
            continue;
        take_chunks(t, h->number);
        if (atomic_fetch_sub(&t->door, 1) == (CLOSED | 1))
            (void)tti_flag_add(&t->left, 1);
    }
}

tt_status tti_team_open(tt_ctx *ctx, const char *name, int n, int spins, tti_team **out)
{
    tti_team *t = tti_host_alloc(ctx, sizeof(*t));
    if (t == NULL)
        return TT_ENOMEM;
    memset(t, 0, sizeof(*t));
    t->ctx = ctx;
    t->n = 1;
    atomic_store(&t->door, CLOSED);
    t->spins = spins;
    t->helpers = tti_calloc(ctx, (size_t)n, sizeof(*t->helpers));
    t->ranges = tti_host_alloc(ctx, (size_t)n * sizeof(*t->ranges));
    if (t->helpers == NULL || t->ranges == NULL) {
        tti_free(ctx, t->helpers);
        tti_host_free(ctx, t->ranges);
        tti_host_free(ctx, t);
        return TT_ENOMEM;
    }
    for (int i = 1; i < n; i++) {
        tti_helper *h = &t->helpers[i - 1];
        h->team = t;
        h->number = i;
        char label[32];
        snprintf(label, sizeof(label), "%.10s/%d", name, i);
        tt_status st = tti_thread_start(ctx, &h->thread, label, helper_main, h);
        if (st != TT_OK) {
            tti_team_close(t);
            return st;
        }
        t->n++;
    }
    *out = t;
    return TT_OK;
}

void tti_team_close(tti_team *t)
{
    if (t == NULL)
        return;
    atomic_store(&t->quit, true);
    (void)tti_flag_add(&t->epoch, 1);
    for (int i = 1; i < t->n; i++)
        tti_thread_join(&t->helpers[i - 1].thread);
    tti_free(t->ctx, t->helpers);
    tti_host_free(t->ctx, t->ranges);
    tti_host_free(t->ctx, t);
}

tt_status tti_team_run(tti_team *t, tt_kernel_fn fn, const tt_launch *launch, int phase,
                       int64_t units, int64_t chunk, size_t local_bytes)
{
    t->fn = fn;
    t->launch = launch;
    t->phase = phase;
    t->units = units;
    t->chunk = chunk;
    t->local_bytes = local_bytes;
    int64_t chunks = (units + chunk - 1) / chunk, at = 0;
    for (int i = 0; i < t->n; i++) {
        atomic_store_explicit(&t->ranges[i].next, at, memory_order_relaxed);
        at = TTI_MIN(chunks * (i + 1) / t->n * chunk, units);
        t->ranges[i].end = at;
    }
    atomic_store_explicit(&t->status, TT_OK, memory_order_relaxed);
    atomic_store(&t->door, 0);
    (void)tti_flag_add(&t->epoch, 1);
    take_chunks(t, 0);
    if (atomic_fetch_or(&t->door, CLOSED) != 0) {
        t->n_left++;
        while (tti_flag_wait(&t->left, t->n_left, t->spins, TTI_FOREVER) != TT_OK)
            ;
    }
    return (tt_status)atomic_load(&t->status);
}
