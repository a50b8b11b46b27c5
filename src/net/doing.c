/*
 * doing.c - what every rank is doing, as it travels with the heartbeat, and as reports print it.
 */
#include "net/timeout.h"
#include "net/world_own.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

#define MS INT64_C(1000000)

// Every call does this: snprintf() would be a good part of a short one.
static void set_text(char *to, size_t room, const char *text)
{
    size_t n = text != NULL ? strnlen(text, room - 1) : 0;
    if (n > 0)
        memcpy(to, text, n);
    to[n] = '\0';
}

// A few milliseconds late at most, in a quarter of the time.
static int64_t now_about(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void tti_world_doing(tti_world *w, const char *operation, const char *tensor)
{
    if (w == NULL)
        return;
    pthread_mutex_lock(&w->mu);
    set_text(w->doing.operation, sizeof(w->doing.operation), operation);
    set_text(w->doing.tensor, sizeof(w->doing.tensor), tensor);
    w->doing_since = now_about();
    pthread_mutex_unlock(&w->mu);
}

void tti_world_waits_for(tti_world *w, int rank)
{
    pthread_mutex_lock(&w->mu);
    w->doing.waits_for = rank + 1;
    pthread_mutex_unlock(&w->mu);
}

tti_doing tti_doing_own(tti_world *w)
{
    pthread_mutex_lock(&w->mu);
    tti_doing d = w->doing;
    d.for_ms = (tti_now_ns() - w->doing_since) / MS;
    pthread_mutex_unlock(&w->mu);
    d.progress = atomic_load(&w->has_devices) ? tti_progress_of(w->ctx) : 0;
    d.cpu_ms = tti_cpu_ns() / MS;
    return d;
}

tti_doing tti_doing_of(tti_world *w, int rank)
{
    if (rank == w->self)
        return tti_doing_own(w);
    pthread_mutex_lock(&w->mu);
    tti_doing d = w->peers[rank].doing;
    pthread_mutex_unlock(&w->mu);
    return d;
}

static bool has_left(tti_world *w, int rank)
{
    pthread_mutex_lock(&w->mu);
    bool left = w->peers[rank].has_left;
    pthread_mutex_unlock(&w->mu);
    return left;
}

uint64_t tti_world_progress(const tti_world *w, int64_t *cpu_ms)
{
    uint64_t sum = 0;
    *cpu_ms = 0;
    for (int i = 0; i < w->n; i++) {
        sum += atomic_load_explicit(&w->peers[i].progress, memory_order_relaxed);
        *cpu_ms += atomic_load_explicit(&w->peers[i].cpu_ms, memory_order_relaxed);
    }
    return sum;
}

int64_t tti_world_heartbeat(const tti_world *w)
{
    return w->heartbeat_ms;
}

void tti_world_has_devices(tti_world *w)
{
    atomic_store(&w->has_devices, true);
}

size_t tti_print_doing(char *out, size_t room, const tti_doing *d)
{
    int n;
    if (d->operation[0] == '\0')
        n = snprintf(out, room, "not in a call");
    else
        n = snprintf(out, room, "in %.47s%s%.79s for %.1f s", d->operation,
                     d->tensor[0] != '\0' ? " of " : "", d->tensor, 1e-3 * (double)d->for_ms);
    return TTI_MIN((size_t)TTI_MAX(n, 0), room - 1);
}

size_t tti_print_rank(tti_world *w, char *out, size_t room, int rank)
{
    const tti_rank *r = &w->peers[rank].rank;
    int n = snprintf(out, room, "rank %d (%s, host %s, pid %d)", rank, r->name, r->host, r->pid);
    return TTI_MIN((size_t)TTI_MAX(n, 0), room - 1);
}

// "; rank 0 was in all_reduce of w for 0.3 s; ..." of all but one.
void tti_print_others(tti_world *w, char *out, size_t room, int but)
{
    size_t n = 0;
    for (int i = 0; i < w->n && n + 220 < room; i++) {
        if (i == but || has_left(w, i))
            continue;
        tti_doing d = tti_doing_of(w, i);
        n += (size_t)snprintf(out + n, room - n, "; rank %d was ", i);
        n += tti_print_doing(out + n, room - n, &d);
    }
}
