/*
 * ahead.c - feeds of the next run on their way to devices with streams while this one computes.
 *
 * Each large feed of a plan has a room of its own on its device. What a caller says will be fed
 * next is copied there on a stream for copies; the run that is then fed the same memory takes it
 * from the room. A room that the device has no memory for is left out, and one whose memory is
 * needed is given back: the feed is copied when its time comes.
 */
#include "run/run.h"
#include <string.h>

#define WORTH ((size_t)64 << 10)

struct tti_ahead {
    tti_spare spare; // first: a room is one
    tti_device *device;
    void *room;
    size_t bytes;
    const void *source; // what is in it, or on its way; NULL: nothing
    void *arrived, *taken;
};

static tti_device *device_of(const tti_plan *p, int feed)
{
    return p->ctx->top.devices[p->values[tti_root(p, p->feeds[feed])].device];
}

// Of the device's rows from the first of the batch.
static size_t offset(const tti_plan *p, int feed)
{
    const tti_value *v = &p->values[p->feeds[feed]];
    const tti_pnode *pn = &p->nodes[v->node];
    int64_t rows = pn->lanes->bound[pn->lanes->n];
    size_t row = rows > 0 ? v->bytes / (size_t)rows : 0;
    return (size_t)pn->first_row * row;
}

static const void *address(const tti_plan *p, int feed, const tt_feed_value *given)
{
    return (const char *)given->data + offset(p, feed);
}

tt_status tti_ahead_take(tti_plan *p, int feed, const void *source, void *to, bool *is_taken)
{
    struct tti_ahead *a = p->exe.ahead == NULL ? NULL : &p->exe.ahead[feed];
    *is_taken = a != NULL && a->source != NULL && a->source == source;
    if (!*is_taken)
        return TT_OK;
    tti_device *d = device_of(p, feed);
    const tti_streams *st = d->backend->streams;
    a->source = NULL;
    TT_TRY(st->wait(d, a->arrived));
    TT_TRY(st->copy(d, to, d, a->room, a->bytes));
    return st->record(d, &a->taken);
}

// The device has no more use for the list that it is in.
static void drop_room(tti_spare *s)
{
    struct tti_ahead *a = (struct tti_ahead *)(void *)s;
    a->device->backend->streams->settle(a->device);
    tti_device_free(a->device, a->room, a->bytes);
    atomic_fetch_sub(&a->device->arena, a->bytes);
    a->room = NULL;
    a->source = NULL;
}

static void leave_spares(struct tti_ahead *a)
{
    tti_spare **at = &a->device->spares;
    while (*at != NULL && *at != &a->spare)
        at = &(*at)->next;
    if (*at != NULL)
        *at = a->spare.next;
}

// Memory that may not be there is not asked for: a limit, or a full card, is no error here.
static bool make_room(tti_device *d, struct tti_ahead *a, size_t bytes)
{
    if (a->room != NULL)
        return true;
    if (d->limit > 0 && atomic_load(&d->used) + bytes > d->limit)
        return false;
    if (d->backend->streams->try_alloc(d, bytes, &a->room) == false)
        return false;
    atomic_fetch_add(&d->used, bytes);
    atomic_fetch_add(&d->arena, bytes);
    a->bytes = bytes;
    a->device = d;
    a->spare = (tti_spare){.next = d->spares, .drop = drop_room};
    d->spares = &a->spare;
    return true;
}

static void drop(tti_plan *p)
{
    for (int i = 0; p->exe.ahead != NULL && i < p->n_feeds; i++) {
        struct tti_ahead *a = &p->exe.ahead[i];
        tti_device *d = device_of(p, i);
        if (a->room != NULL) {
            leave_spares(a);
            drop_room(&a->spare);
        }
        if (a->arrived != NULL)
            d->backend->streams->drop_event(d, a->arrived);
        if (a->taken != NULL)
            d->backend->streams->drop_event(d, a->taken);
    }
    p->exe.ahead = NULL;
}

tt_status tti_ahead_start(tti_plan *p, const tt_feed_value *next, int n)
{
    if (n == 0 || p->exe.n_submissions == 0)
        return TT_OK;
    if (p->exe.ahead == NULL)
        p->exe.ahead = tti_plan_alloc(p, sizeof(*p->exe.ahead) * (size_t)(p->n_feeds + 1));
    if (p->exe.ahead == NULL)
        return TT_ENOMEM;
    p->exe.drop_ahead = drop;
    for (int i = 0; i < p->n_feeds; i++) {
        const tti_value *v = &p->values[p->feeds[i]];
        tti_device *d = device_of(p, i);
        const tt_feed_value *given = NULL;
        for (int k = 0; k < n && given == NULL; k++)
            given = next[k].tensor == v->tensor ? &next[k] : NULL;
        if (given == NULL || v->bytes < WORTH || v->memory == TTI_STAGED || !tti_has_streams(d) ||
            d->is_away || d->backend->streams->ahead == NULL || given->dtype != v->dtype ||
            (size_t)tt_shape_count(&given->shape) * tt_dtype_bytes(v->dtype) <
                v->bytes + offset(p, i))
            continue;
        struct tti_ahead *a = &p->exe.ahead[i];
        if (!make_room(d, a, v->bytes))
            continue;
        a->source = NULL;
        if (a->taken == NULL) // both events now: no later run is to make them
            TT_TRY(d->backend->streams->record(d, &a->taken));
        if (a->arrived == NULL)
            TT_TRY(d->backend->streams->record(d, &a->arrived));
        if (given->data == NULL) // it is not there yet, but will be in later runs
            continue;
        TT_TRY(d->backend->streams->ahead(d, a->room, address(p, i, given), v->bytes, a->taken,
                                          &a->arrived));
        a->source = address(p, i, given);
    }
    return TT_OK;
}

void tti_ahead_settle(tt_session *s)
{
    for (int i = 0; i < s->ctx->top.n_devices; i++) {
        tti_device *d = s->ctx->top.devices[i];
        if (tti_has_streams(d) && !d->is_away && d->backend->streams->settle != NULL)
            d->backend->streams->settle(d);
    }
    for (tti_plan *p = s->plans; p != NULL; p = p->next)
        for (int i = 0; p->exe.ahead != NULL && i < p->n_feeds; i++)
            p->exe.ahead[i].source = NULL;
}
