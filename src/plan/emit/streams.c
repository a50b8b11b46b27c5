/*
 * streams.c - what a plan holds of devices with streams: events between them, and what was
 * captured.
 */
#include "plan/plan.h"
#include <string.h>

static tti_device *first_with_streams(const tti_plan *p)
{
    return p->exe.n_submissions == 0 ? NULL : p->top->devices[p->exe.submissions[0].device];
}

void tti_plan_staging(tti_plan *p)
{
    for (int64_t i = 0; i < p->n_nodes; i++)
        if (!p->nodes[i].is_dropped && tti_has_streams(p->top->devices[p->nodes[i].device]))
            p->exe.staging[p->nodes[i].device].bytes = (sizeof(tt_step) + 63) & ~(size_t)63;
    for (int i = 0; i < p->n_feeds; i++) {
        tti_value *v = &p->values[p->feeds[i]];
        tti_feed_staging *staging = &p->exe.staging[v->device];
        if (!tti_has_streams(p->top->devices[v->device]) || v->bytes > TTI_STAGED_FEED)
            continue;
        v->memory = TTI_STAGED;
        v->offset = staging->bytes;
        staging->bytes += (v->bytes + 63) & ~(size_t)63;
    }
}

// Constants that a device's nodes read, each once.
static size_t constants_of(const tti_plan *p, int device, uint8_t *seen)
{
    size_t bytes = 0;
    memset(seen, 0, (size_t)p->n_values);
    for (int pos = 0; pos < p->n_order; pos++) {
        const tti_pnode *pn = &p->nodes[p->order[pos]];
        for (int k = 0; k < pn->n_in && pn->device == device; k++) {
            int root = tti_root(p, pn->in[k]);
            if (p->values[root].memory != TTI_CONSTANT || seen[root])
                continue;
            seen[root] = 1;
            bytes += TTI_MAX(p->values[root].bytes, (size_t)1);
        }
    }
    return bytes;
}

tt_status tti_plan_fixed(tti_plan *p)
{
    uint8_t *seen = tti_alloc(p->ctx, (size_t)p->n_values + 1);
    for (int d = 0; seen != NULL && d < p->top->n_devices; d++) {
        tti_device_plan *dp = &p->devices[d];
        if (!tti_has_streams(p->top->devices[d]))
            continue;
        dp->fixed_bytes = p->exe.staging[d].bytes + constants_of(p, d, seen);
        dp->usage.workspace += dp->fixed_bytes;
    }
    tti_free(p->ctx, seen);
    return seen == NULL ? TT_ENOMEM : TT_OK;
}

size_t tti_plan_bytes(const tti_device_plan *d)
{
    return d->variable_bytes + d->arena_bytes + d->fixed_bytes;
}

tt_status tti_plan_staging_alloc(tti_plan *p)
{
    for (int i = 0; i < p->top->n_devices; i++) {
        tti_feed_staging *staging = &p->exe.staging[i];
        tti_device *d = p->top->devices[i];
        void *data;
        if (staging->bytes == 0 || d->is_away)
            continue;
        TT_TRY(tti_device_alloc_fixed(d, staging->bytes, &data));
        staging->data = data;
        staging->mirror = d->backend->streams->pinned(d, staging->bytes);
        if (staging->mirror == NULL)
            return TT_FAIL(p->ctx, TT_ENOMEM, "%s: cannot allocate %zu bytes of pinned memory",
                           d->name, staging->bytes);
    }
    return TT_OK;
}

// Sends use the same memory one after another; receives have their own until the run has ended.
tt_status tti_plan_message_alloc(tti_plan *p)
{
    size_t sent = 0, received = 0;
    for (int pass = 0; pass < 2; pass++) {
        size_t at = sent;
        for (int i = 0; i < p->exe.n_submissions; i++) {
            const struct tti_submission *s = &p->exe.submissions[i];
            const tti_entry *en = &p->exe.lists[s->device].entries[s->entry];
            tti_call *c = en->n_calls > 0 ? en->calls : NULL;
            if (c == NULL || c->transfer == NULL)
                continue;
            size_t bytes = ((size_t)c->transfer->n * c->transfer->bytes + 63) & ~(size_t)63;
            bool sends = p->nodes[en->pnode].kind == TTI_SEND;
            if (pass == 0 && sends)
                sent = TTI_MAX(sent, bytes);
            c->staged_at = sends ? 0 : at;
            at += sends ? 0 : bytes;
        }
        received = at - sent;
    }
    tti_device *d = first_with_streams(p);
    if (d == NULL || sent + received == 0)
        return TT_OK;
    p->exe.messages = d->backend->streams->pinned(d, sent + received);
    if (p->exe.messages == NULL)
        return TT_FAIL(p->ctx, TT_ENOMEM, "%s: cannot allocate %zu bytes of pinned memory", d->name,
                       sent + received);
    return TT_OK;
}

static void drop_messages(tti_plan *p)
{
    tti_device *d = first_with_streams(p);
    if (p->exe.messages != NULL)
        d->backend->streams->unpin(d, p->exe.messages);
    p->exe.messages = NULL;
}

static void drop_staging(tti_plan *p)
{
    for (int i = 0; p->top != NULL && i < p->top->n_devices; i++) {
        tti_feed_staging *staging = &p->exe.staging[i];
        tti_device *d = p->top->devices[i];
        if (staging->data != NULL)
            tti_device_free_fixed(d, staging->data, staging->bytes);
        if (staging->mirror != NULL)
            d->backend->streams->unpin(d, staging->mirror);
        staging->data = staging->mirror = NULL;
    }
}

void tti_plan_drop_exec(tti_plan *p)
{
    tti_device *d = first_with_streams(p);
    if (d != NULL && p->exe.captured != NULL)
        d->backend->streams->drop_exec(d, p->exe.captured);
    p->exe.captured = NULL;
    p->exe.n_walks = 0;
}

void tti_plan_drop_streams(tti_plan *p)
{
    tti_plan_drop_exec(p);
    drop_staging(p);
    drop_messages(p);
    if (p->exe.ahead != NULL)
        p->exe.drop_ahead(p);
    for (int i = 0; i < p->exe.n_submissions; i++) {
        tti_device *d = p->top->devices[p->exe.submissions[i].device];
        tti_entry *en =
            &p->exe.lists[p->exe.submissions[i].device].entries[p->exe.submissions[i].entry];
        void *events[] = {en->event, en->times[0], en->times[1]};
        for (int k = 0; k < TTI_COUNT(events); k++)
            if (events[k] != NULL)
                d->backend->streams->drop_event(d, events[k]);
        en->event = en->times[0] = en->times[1] = NULL;
    }
}
