/*
 * timeout.c - waits that follow progress (timeout.h).
 */
#include "net/timeout.h"
#include "device/device.h"
#include "net/world.h"
#include <time.h>

#define MS        INT64_C(1000000)
#define MOST_LOOK (500 * MS) // what this process slept through says nothing of the others
#define BUSY      32         // a processor is at work if it is so for one part in that many

int64_t tti_cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

uint64_t tti_progress_of(const tt_ctx *ctx)
{
    uint64_t sum = atomic_load_explicit(&ctx->pulse, memory_order_relaxed);
    for (int i = 0; i < ctx->top.n_devices; i++)
        sum += atomic_load_explicit(&ctx->top.devices[i]->n_ended, memory_order_relaxed);
    return sum;
}

static uint64_t all_progress(const tt_ctx *ctx, int64_t *away_ns)
{
    uint64_t away = 0;
    int64_t ms = 0;
    if (ctx->world != NULL)
        away = tti_world_progress(ctx->world, &ms);
    *away_ns = ms * MS;
    return tti_progress_of(ctx) + away;
}

void tti_timeout_begin(tti_timeout *p, tt_ctx *ctx, int64_t window_ms)
{
    int64_t now = tti_now_ns();
    if (ctx->world != NULL) // sooner than that nobody can know
        window_ms = TTI_MAX(window_ms, 3 * tti_world_heartbeat(ctx->world));
    *p = (tti_timeout){.ctx = ctx,
                       .window_ns = TTI_MIN(window_ms, INT64_MAX / 2 / MS) * MS,
                       .begin_ns = now,
                       .looked_ns = now,
                       .cpu_ns = tti_cpu_ns(),
                       .cpu_at = now,
                       .away_at = now,
                       .is_busy = true}; // up to the first look
    p->progress = all_progress(ctx, &p->away_ns);
}

void tti_timeout_renew(tti_timeout *p)
{
    p->idle_ns = 0;
}

// Over a time in which a thread gets a processor even where many want one, and, of the others, in
// which heartbeats come.
static void look_at_processors(tti_timeout *p, int64_t now, int64_t away_ns)
{
    int64_t span = TTI_MAX(TTI_MIN(p->window_ns / 2, 2000 * MS), 20 * MS);
    if (now - p->cpu_at >= span) {
        int64_t cpu = tti_cpu_ns();
        p->is_busy = cpu - p->cpu_ns > (now - p->cpu_at) / BUSY;
        p->cpu_ns = cpu;
        p->cpu_at = now;
    }
    if (p->ctx->world == NULL || now - p->away_at < 3 * tti_world_heartbeat(p->ctx->world) * MS)
        return;
    p->is_away_busy = away_ns - p->away_ns > (now - p->away_at) / BUSY;
    p->away_ns = away_ns;
    p->away_at = now;
}

bool tti_timeout_expired(tti_timeout *p)
{
    int64_t now = tti_now_ns(), took = now - p->looked_ns, away_ns;
    if (took < 5 * MS)
        return false;
    uint64_t progress = all_progress(p->ctx, &away_ns);
    look_at_processors(p, now, away_ns);
    if (progress != p->progress)
        p->idle_ns = 0;
    else
        p->idle_ns += TTI_MIN(took, MOST_LOOK) / (p->is_busy || p->is_away_busy ? TTI_SLOWER : 1);
    p->progress = progress;
    p->looked_ns = now;
    return p->idle_ns >= p->window_ns;
}

double tti_timeout_waited(const tti_timeout *p)
{
    return 1e-9 * (double)(tti_now_ns() - p->begin_ns);
}

tt_status tti_flag_await(tt_ctx *ctx, tti_flag *f, uint32_t v, int spins, int64_t window_ms,
                         double *waited_s)
{
    tti_timeout p;
    int64_t begin = tti_now_ns();
    tt_status st = tti_flag_wait(f, v, spins, begin + TTI_MIN(TTI_POLL_MS, window_ms) * MS);
    if (st == TT_OK)
        return TT_OK;
    tti_timeout_begin(&p, ctx, window_ms);
    p.begin_ns = begin;
    while ((st = tti_flag_wait(f, v, 0, tti_deadline(TTI_POLL_MS))) != TT_OK)
        if (tti_timeout_expired(&p))
            break;
    *waited_s = tti_timeout_waited(&p);
    return st;
}
