/*
 * streams.c - what a plan holds of devices with streams: events between them, and what was captured.
 */
#include "plan/plan.h"

static tti_device *first_with_streams(const tti_plan *p)
{
    return p->n_submissions == 0 ? NULL : p->ctx->devices[p->submissions[0].device];
}

void tti_plan_drop_exec(tti_plan *p)
{
    tti_device *d = first_with_streams(p);
    if (d != NULL && p->exec != NULL)
        d->backend->streams->drop_exec(d, p->exec);
    p->exec = NULL;
    p->n_walks = 0;
}

void tti_plan_drop_streams(tti_plan *p)
{
    tti_plan_drop_exec(p);
    if (p->ahead != NULL)
        p->drop_ahead(p);
    for (int i = 0; i < p->n_submissions; i++) {
        tti_device *d = p->ctx->devices[p->submissions[i].device];
        tti_entry *en = &p->devices[p->submissions[i].device].entries[p->submissions[i].entry];
        void *events[] = {en->event, en->times[0], en->times[1]};
        for (int k = 0; k < TTI_COUNT(events); k++)
            if (events[k] != NULL)
                d->backend->streams->drop_event(d, events[k]);
        en->event = en->times[0] = en->times[1] = NULL;
    }
}
