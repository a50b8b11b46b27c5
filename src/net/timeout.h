/*
 * timeout.h - how long a wait may last. Not how long a step takes counts, but how long nothing
 * gets on: entries of plans, records that are read, in this process and in the job's others, which
 * tell of it with every heartbeat. Where a processor is at work without any of that, as within one
 * long kernel, time counts a tenth: what never ends is found, too.
 */
#ifndef TUTTI_NET_TIMEOUT_H
#define TUTTI_NET_TIMEOUT_H

#include "base/ctx.h"
#include "base/thread.h"

#define TTI_POLL_MS 20 // of a wait that looks around meanwhile
#define TTI_SLOWER  10 // times the deadline that a kernel without an end has

typedef struct tti_timeout {
    tt_ctx *ctx;
    int64_t window_ns; // without progress
    int64_t begin_ns, looked_ns, idle_ns;
    uint64_t progress;
    // Processor time and when it was looked at, of this process and of the others.
    int64_t cpu_ns, cpu_at, away_ns, away_at;
    bool is_busy, is_away_busy;
} tti_timeout;

void tti_timeout_begin(tti_timeout *p, tt_ctx *ctx, int64_t window_ms);
// To be asked a few times a second at least: has nothing got on for the window?
bool tti_timeout_expired(tti_timeout *p);
// What is waited for has moved in another way: the window begins anew.
void tti_timeout_renew(tti_timeout *p);
double tti_timeout_waited(const tti_timeout *p); // seconds

// How far this process has come; any thread, once its devices are open.
uint64_t tti_progress_of(const tt_ctx *ctx);
int64_t tti_cpu_ns(void); // of this process

/*
 * Waits for a flag with that timeout: spins, then looks around every so often. TT_ETIMEOUT,
 * unrecorded, when it is over; *waited_s is how long it took.
 */
tt_status tti_flag_await(tt_ctx *ctx, tti_flag *f, uint32_t v, int spins, int64_t window_ms,
                         double *waited_s) TTI_CHECKED;

#endif
