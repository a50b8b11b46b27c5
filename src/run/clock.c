/*
 * clock.c - where the time of a session's runs went, device by device. exec.c takes the times: only
 * where a device really waits, around communication, and once a run, so they are always taken.
 */
#include "run/run.h"
#include <string.h>

void tti_clocks_clear(tt_session *s)
{
    for (int d = 0; d < s->ctx->top.n_devices; d++) {
        tti_clock *c = &s->clocks[d];
        c->walking = c->communication = 0;
        memset(c->waiting, 0, sizeof(c->waiting));
    }
}

tti_spent tti_clock_read(const tt_session *s, int device, int64_t total_ns)
{
    const tti_clock *c = &s->clocks[device];
    tti_spent out = {.compute = c->walking - c->communication, .communication = c->communication};
    for (int d = 0; d < s->ctx->top.n_devices; d++) {
        out.waiting[d] = c->waiting[d];
        out.compute -= c->waiting[d];
    }
    out.compute = TTI_MAX(out.compute, 0);
    out.idle = TTI_MAX(total_ns - c->walking, 0);
    return out;
}
