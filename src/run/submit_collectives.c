/*
 * submit_collectives.c - library collectives of devices with streams: entries of a group, one of
 * each device for each of its units, follow each other among the submissions and are enqueued by
 * one call.
 *
 * A device's other work goes on beside it. What reads its results waits for the event of an entry;
 * a run ends, and something that is looked at goes on, when all of it has been waited for.
 */
#include "run/run.h"

static tti_entry *submitted(const tti_plan *p, int i)
{
    return &p->exe.lists[p->exe.submissions[i].device].entries[p->exe.submissions[i].entry];
}

static const tti_collective_op *collective_of(const tti_plan *p, int i)
{
    const tti_pnode *pn = &p->nodes[submitted(p, i)->pnode];
    return pn->kind == TTI_LIBRARY_COLLECTIVE ? &p->collectives[pn->collective] : NULL;
}

int tti_collectives_at(const tti_plan *p, int i)
{
    const tti_collective_op *u = collective_of(p, i);
    return u == NULL ? 0 : p->exe.groups[u->group].n * p->communicators[u->communicator].n;
}

// Before they are enqueued: what they wait for, where their data are.
static tt_status prepare(tt_session *s, tti_plan *p, int i)
{
    int device = p->exe.submissions[i].device;
    tti_device *d = s->ctx->top.devices[device];
    tti_entry *en = submitted(p, i);
    const tti_collective_op *u = collective_of(p, i);
    const tt_launch *l = &en->calls->launch;
    bool gathers = u->what->kind == TTI_ALL_GATHER;
    atomic_store_explicit(&s->clocks[device].at, p->exe.submissions[i].entry, memory_order_relaxed);
    if (atomic_load_explicit(&s->failed, memory_order_relaxed) != TT_OK)
        return TT_ESTOP;
    TT_TRY(tti_wait_for_others(s, p, device, en));
    if (s->trace)
        TT_TRY(d->backend->streams->mark(d, &en->times[0]));
    if (s->ctx->fault != NULL)
        TT_TRY(tti_fault_before(s, p, device, en));
    p->exe.collectives[u->at].data[en->pnode - u->first] = gathers ? l->out[0].data : l->in[0].data;
    return TT_OK;
}

static tt_status tell(tt_session *s, tti_plan *p, int i)
{
    tti_device *d = s->ctx->top.devices[p->exe.submissions[i].device];
    const tti_streams *st = d->backend->streams;
    tti_entry *en = submitted(p, i);
    if (s->trace)
        TT_TRY(st->mark(d, &en->times[1]));
    if (en->has_event || en->has_flag)
        TT_TRY(st->mark(d, &en->event));
    if (en->has_flag) {
        TT_TRY(st->wait(d, en->event));
        TT_TRY(st->notify(d, en->done, s->sequence));
    }
    return TT_OK;
}

tt_status tti_join_devices(tt_session *s, const tti_plan *p)
{
    for (int g = 0; g < p->n_communicators; g++) {
        for (int i = 0; p->communicators[g].state != NULL && i < p->communicators[g].n; i++) {
            tti_device *d = s->ctx->top.devices[p->communicators[g].device[i]];
            TT_TRY(d->backend->streams->mark(d, &d->joined));
            TT_TRY(d->backend->streams->wait(d, d->joined));
        }
    }
    return TT_OK;
}

tt_status tti_submit_collectives(tt_session *s, tti_plan *p, int i, int n)
{
    const tti_collective_group *g = &p->exe.groups[collective_of(p, i)->group];
    const tti_communicator_plan *c = &p->communicators[g->communicator];
    const tti_streams *st = s->ctx->top.devices[c->device[0]]->backend->streams;
    for (int k = 0; k < n; k++)
        TT_TRY(prepare(s, p, i + k));
    TT_TRY(st->run_collectives(c->state, &p->exe.collectives[g->first], g->n));
    for (int k = 0; k < n; k++)
        TT_TRY(tell(s, p, i + k));
    if (!tti_is_watched(s))
        return TT_OK;
    TT_TRY(tti_join_devices(s, p));
    for (int k = 0; k < n && s->hashes; k++) {
        tti_device *d = s->ctx->top.devices[p->exe.submissions[i + k].device];
        TT_TRY(st->sync(d, tti_deadline(s->sync_ms)));
        TT_TRY(tti_hashes_add(s, p, submitted(p, i + k)));
    }
    return TT_OK;
}
