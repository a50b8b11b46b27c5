/*
 * clock.c - where the time of a session's runs went, device by device. exec.c takes the times: only
 * where a device really waits, around communication, and once a run, so they are always taken.
 */
#include "run/run.h"
#include <string.h>

void tti_clocks_new(tt_session *s)
{
    size_t n = (size_t)s->ctx->top.n_devices, own = 0;
    for (size_t d = 0; d < n; d++)
        own += !s->ctx->top.devices[d]->is_away;
    s->clocks = tti_calloc(s->ctx, n, sizeof(*s->clocks));
    s->waits = tti_calloc(s->ctx, own * n, sizeof(*s->waits));
    if (s->clocks == NULL || s->waits == NULL)
        return;
    for (size_t d = 0, k = 0; d < n; d++)
        if (!s->ctx->top.devices[d]->is_away)
            s->clocks[d].waiting = s->waits + k++ * n;
}

void tti_clocks_clear(tt_session *s)
{
    for (int d = 0; d < s->ctx->top.n_devices; d++) {
        tti_clock *c = &s->clocks[d];
        c->walking = c->communication = 0;
        if (c->waiting != NULL)
            memset(c->waiting, 0, (size_t)s->ctx->top.n_devices * sizeof(*c->waiting));
    }
}

tti_spent tti_clock_read(const tt_session *s, int device, int64_t total_ns)
{
    const tti_clock *c = &s->clocks[device];
    tti_spent out = {.compute = c->walking - c->communication,
                     .communication = c->communication,
                     .waiting = c->waiting};
    for (int d = 0; c->waiting != NULL && d < s->ctx->top.n_devices; d++)
        out.compute -= c->waiting[d];
    out.compute = TTI_MAX(out.compute, 0);
    out.idle = TTI_MAX(total_ns - c->walking, 0);
    return out;
}
