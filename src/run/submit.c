/*
 * submit.c - runs of devices with streams: the calling thread enqueues the entries of all of them
 * in the plan's order.
 *
 * An entry waits for one of another device by an event, which is there already since that entry
 * came earlier in the order; for one of a device without streams the thread itself waits. Feeds and
 * the step block are copied before all else. From the second run on what follows them is captured
 * once and then launched whole, if nothing has to be looked at between entries; and calls of one
 * kernel that follow each other on a device, as those of updates do, are then made at once where
 * there is a kernel for it.
 */
#include "op/batched_calls.h"
#include "run/run.h"
#include <string.h>

static const tti_streams *streams_of(const tti_device *d)
{
    return d->backend->streams;
}

// ---- one entry -------------------------------------------------------------------------------

tt_status tti_wait_for_others(tt_session *s, tti_plan *p, int device, const tti_entry *en)
{
    tti_device *d = s->ctx->top.devices[device];
    for (int i = 0; i < en->n_waits; i++) {
        const tti_wait *w = &en->waits[i];
        if (tti_has_streams(s->ctx->top.devices[w->entry_device])) {
            const tti_entry *maker = &p->exe.lists[w->entry_device].entries[w->entry];
            if (!maker->is_feed) // those have all been waited for
                TT_TRY(streams_of(d)->wait(d, maker->event));
            continue;
        }
        TT_TRY(tti_wait_for_entry(s, p, device, en, w));
        if (atomic_load_explicit(&s->failed, memory_order_relaxed) != TT_OK)
            return TT_ESTOP;
    }
    return TT_OK;
}

static tt_status submit_calls(tt_session *s, tti_plan *p, tti_device *d, const tti_entry *en)
{
    const tti_pnode *pn = &p->nodes[en->pnode];
    bool is_there = en->is_feed && p->values[pn->out].memory == TTI_STAGED;
    for (int i = 0; i < p->n_feeds && en->is_feed && p->exe.ahead != NULL && !is_there; i++)
        if (p->exe.feed_calls[i] == en->calls)
            TT_TRY(tti_ahead_take(p, i, en->calls->launch.in[0].data, en->calls->launch.out[0].data,
                                  &is_there));
    if (is_there)
        return TT_OK;
    (void)streams_of(d)->stream(d); // its card is the one that kernels are launched on
    for (int i = 0; i < en->n_calls; i++) {
        const tti_call *c = &en->calls[i];
        if (c->transfer != NULL)
            TT_TRY(tti_submit_messages(s, p, d, en, c));
        else if (c->is_move)
            TT_TRY(streams_of(d)->copy(d, c->launch.out[0].data, c->from, c->launch.in[0].data,
                                       (size_t)c->launch.out[0].count *
                                           tt_dtype_bytes(c->launch.out[0].dtype)));
        else
            TT_TRY(c->fn(&c->launch));
    }
    return TT_OK;
}

static tt_status tell_others(tt_session *s, tti_device *d, tti_entry *en)
{
    const tti_streams *st = streams_of(d);
    if (en->has_event && !en->is_feed)
        TT_TRY(st->record(d, &en->event));
    if (en->has_flag)
        TT_TRY(st->notify(d, en->done, s->sequence));
    return TT_OK;
}

static tt_status submit_entry(tt_session *s, tti_plan *p, int device, int index)
{
    tti_entry *en = &p->exe.lists[device].entries[index];
    tti_device *d = s->ctx->top.devices[device];
    const tti_streams *st = streams_of(d);
    TT_TRY(tti_wait_for_others(s, p, device, en));
    if (s->trace)
        TT_TRY(st->record(d, &en->times[0]));
    if (s->ctx->fault != NULL)
        TT_TRY(tti_fault_before(s, p, device, en));
    TT_TRY(submit_calls(s, p, d, en));
    if (s->trace)
        TT_TRY(st->record(d, &en->times[1]));
    TT_TRY(tell_others(s, d, en));
    if (s->hashes) {
        TT_TRY(st->sync(d, tti_deadline(s->sync_ms)));
        TT_TRY(tti_hashes_add(s, p, en));
    }
    return TT_OK;
}

// ---- several at once -------------------------------------------------------------------------

#define MANY 256

typedef struct range {
    const char *at;
    size_t bytes;
} range;

static range range_of(const tt_arg *a)
{
    return (range){a->data, (size_t)a->count * tt_dtype_bytes(a->dtype)};
}

static bool overlap(range a, range b)
{
    return a.at < b.at + b.bytes && b.at < a.at + a.bytes;
}

// The k-th memory that a call uses: inputs, outputs, scratch.
static range memory_of(const tti_call *c, int k)
{
    const tt_launch *l = &c->launch;
    if (k < l->n_in)
        return range_of(&l->in[k]);
    return k < l->n_in + l->n_out ? range_of(&l->out[k - l->n_in])
                                  : (range){l->scratch, c->scratch_bytes};
}

static int n_memory(const tti_call *c)
{
    return c->launch.n_in + c->launch.n_out + (c->scratch_bytes > 0);
}

// Does a write what b reads or writes?
static bool writes_what(const tti_call *a, const tti_call *b)
{
    for (int i = 0; i < n_memory(a); i++)
        for (int k = 0; k < n_memory(b); k++)
            if ((i >= a->launch.n_in || tti_writes(a->launch.node, i)) &&
                overlap(memory_of(a, i), memory_of(b, k)))
                return true;
    return false;
}

/*
 * How many entries of a device's list from one on can be made at once, at least one. Those after
 * the first wait for nobody, so nothing has to come between them.
 */
static int count_alike(const tti_entry_list *all, int index, const tt_launch **list)
{
    const tti_entry *first = &all->entries[index];
    int n = 1;
    if (first->n_calls != 1 || first->calls->batched == NULL)
        return 1;
    list[0] = &first->calls->launch;
    for (; index + n < all->n_entries && n < MANY; n++) {
        const tti_entry *en = first + n;
        if (en->n_waits > 0 || en->n_calls != 1 || en->calls->fn != first->calls->fn ||
            en->calls->launch.n_in != first->calls->launch.n_in)
            break;
        list[n] = &en->calls->launch;
        for (int k = 0; k < n; k++)
            if (writes_what(first[k].calls, en->calls) || writes_what(en->calls, first[k].calls))
                return n;
    }
    return n;
}

static tt_status submit_many(tt_session *s, tti_plan *p, int device, int index, int n,
                             const tt_launch **list)
{
    tti_device *d = s->ctx->top.devices[device];
    tti_entry *first = &p->exe.lists[device].entries[index];
    tti_batched_calls calls = {n, list};
    tt_launch l = first->calls->launch;
    l.tune = &calls;
    TT_TRY(tti_wait_for_others(s, p, device, first));
    (void)streams_of(d)->stream(d);
    TT_TRY(first->calls->batched(&l));
    for (int k = 0; k < n; k++)
        TT_TRY(tell_others(s, d, first + k));
    return TT_OK;
}

// ---- all of a run ----------------------------------------------------------------------------

// An entry of a device, and the n - 1 after it.
static tt_status submit_one(tt_session *s, tti_plan *p, int device, int index, int n,
                            const tt_launch **list)
{
    atomic_store_explicit(&s->clocks[device].at, index, memory_order_relaxed);
    if (atomic_load_explicit(&s->failed, memory_order_relaxed) != TT_OK)
        return TT_ESTOP;
    tt_status st =
        n > 1 ? submit_many(s, p, device, index, n, list) : submit_entry(s, p, device, index);
    if (st == TT_OK && atomic_load_explicit(&s->ctx->stop, memory_order_relaxed) != 0)
        st = TT_FAIL(s->ctx, TT_ESTOP, "run: stopped on request");
    if (st != TT_OK && st != TT_ESTOP && tt_status_of(s->ctx) == TT_OK) {
        const tti_pnode *pn = &p->nodes[p->exe.lists[device].entries[index].pnode];
        st = TT_FAIL(s->ctx, st, "%s '%s' failed on %s in step %lld", tti_pnode_kind_name(pn),
                     pn->node->name, s->ctx->top.devices[device]->name,
                     (long long)p->step->step + 1);
    }
    return st;
}

bool tti_is_watched(const tt_session *s)
{
    return s->hashes || s->trace || s->ctx->fault != NULL;
}

// Entries that are feeds, or all others.
static tt_status submit_all(tt_session *s, tti_plan *p, bool feeds)
{
    const tt_launch *list[MANY];
    int *next = s->submitted;
    memset(next, 0, (size_t)s->ctx->top.n_devices * sizeof(*next));
    for (int i = 0; i < p->exe.n_submissions; i++) {
        int device = p->exe.submissions[i].device, index = p->exe.submissions[i].entry;
        const tti_entry_list *all = &p->exe.lists[device];
        if (index < next[device] || all->entries[index].is_feed != feeds)
            continue;
        int n_enqueued = tti_collectives_at(p, i);
        if (n_enqueued > 0) {
            TT_TRY(tti_submit_collectives(s, p, i, n_enqueued));
            i += n_enqueued - 1;
            continue;
        }
        int n = feeds || tti_is_watched(s) ? 1 : count_alike(all, index, list);
        TT_TRY(submit_one(s, p, device, index, n, list));
        next[device] = index + n;
    }
    return feeds ? TT_OK : tti_join_devices(s, p);
}

typedef struct group {
    tti_device **d; // the session's room
    int n;
    bool is_mixed; // devices without streams have entries too
} group;

static group devices_of(const tt_session *s, const tti_plan *p)
{
    group g = {.d = s->streaming};
    for (int i = 0; i < s->ctx->top.n_devices; i++) {
        if (p->exe.lists[i].n_entries == 0)
            continue;
        if (s->ctx->top.devices[i]->is_away)
            continue;
        if (tti_has_streams(s->ctx->top.devices[i]))
            g.d[g.n++] = s->ctx->top.devices[i];
        else
            g.is_mixed = true;
    }
    return g;
}

// Streams of all devices wait for what is enqueued on the first, or that for all others.
static tt_status join(const group *g, bool first_waits)
{
    const tti_streams *st = streams_of(g->d[0]);
    if (g->n < 2)
        return TT_OK;
    if (!first_waits)
        TT_TRY(st->record(g->d[0], &g->d[0]->border));
    for (int i = 1; i < g->n; i++) {
        if (first_waits)
            TT_TRY(st->record(g->d[i], &g->d[i]->border));
        TT_TRY(st->wait(g->d[first_waits ? 0 : i], g->d[first_waits ? i : 0]->border));
    }
    return TT_OK;
}

static tt_status capture(tt_session *s, tti_plan *p, const group *g)
{
    const tti_streams *st = streams_of(g->d[0]);
    TT_TRY(st->capture_begin(g->d, g->n));
    tt_status done = submit_all(s, p, false);
    tt_status ended = st->capture_end(g->d, g->n, done == TT_OK, &p->exe.captured);
    return done != TT_OK ? done : ended;
}

// The step block and small feeds.
static tt_status send_parcels(tti_plan *p, const group *g)
{
    for (int i = 0; i < p->n_feeds; i++) {
        const tti_value *v = &p->values[p->feeds[i]];
        if (v->memory == TTI_STAGED && p->exe.staging[v->device].mirror != NULL)
            memcpy(p->exe.staging[v->device].mirror + v->offset,
                   p->exe.feed_calls[i]->launch.in[0].data, v->bytes);
    }
    for (int i = 0; i < g->n; i++) {
        const tti_feed_staging *staging = &p->exe.staging[g->d[i]->index];
        memcpy(staging->mirror, p->step, sizeof(*p->step));
        TT_TRY(streams_of(g->d[i])->copy(g->d[i], staging->data, NULL, staging->mirror,
                                         staging->bytes));
    }
    return TT_OK;
}

static tt_status run_streams(tt_session *s, tti_plan *p, const group *g)
{
    bool watched = tti_is_watched(s) || g->is_mixed || p->exe.messages != NULL;
    TT_TRY(send_parcels(p, g));
    TT_TRY(submit_all(s, p, true));
    if (watched || p->exe.n_walks == 0 || s->ctx->no_capture) {
        p->exe.n_walks++;
        TT_TRY(join(g, true)); // a feed of one device is there for all
        TT_TRY(join(g, false));
        return submit_all(s, p, false);
    }
    if (p->exe.captured == NULL)
        TT_TRY(capture(s, p, g));
    return streams_of(g->d[0])->launch(g->d[0],
                                       p->exe.captured); // in the order of all their streams
}

// ---- small fetches ---------------------------------------------------------------------------

#define SMALL ((size_t)64 << 10)

static bool lands(const tt_session *s, const tti_plan *p, int fetch)
{
    const tti_value *root = &p->values[tti_root(p, p->targets[fetch])];
    const tti_device *d = s->ctx->top.devices[root->device];
    return root->memory != TTI_CONSTANT && tti_has_streams(d) && !d->is_away &&
           p->values[p->targets[fetch]].bytes <= SMALL;
}

size_t tti_landing_at(const tt_session *s, const tti_plan *p, int fetch)
{
    size_t at = 0;
    for (int i = 0; i < fetch; i++)
        at += lands(s, p, i) ? (p->values[p->targets[i]].bytes + 63) & ~(size_t)63 : 0;
    return lands(s, p, fetch) ? at : SIZE_MAX;
}

static tt_status grow_landing(tt_session *s, tti_device *d, size_t bytes)
{
    if (bytes <= s->landing_bytes)
        return TT_OK;
    if (s->landing != NULL)
        streams_of(s->landing_of)->unpin(s->landing_of, s->landing);
    s->landing = streams_of(d)->pinned(d, bytes);
    s->landing_bytes = s->landing == NULL ? 0 : bytes;
    s->landing_of = d;
    return s->landing == NULL
               ? TT_FAIL(s->ctx, TT_ENOMEM, "%s: cannot allocate %zu bytes of pinned memory",
                         d->name, bytes)
               : TT_OK;
}

static tt_status land(tt_session *s, tti_plan *p, const group *g)
{
    size_t bytes = 0;
    for (int i = 0; i < p->n_fetched; i++)
        if (lands(s, p, i))
            bytes = tti_landing_at(s, p, i) + p->values[p->targets[i]].bytes;
    TT_TRY(grow_landing(s, g->d[0], bytes));
    for (int i = 0; i < p->n_fetched; i++) {
        if (!lands(s, p, i) || p->values[p->targets[i]].bytes == 0)
            continue;
        tti_device *d = s->ctx->top.devices[p->values[tti_root(p, p->targets[i])].device];
        TT_TRY(streams_of(d)->copy(d, s->landing + tti_landing_at(s, p, i), d,
                                   tti_value_data(s, p, p->targets[i]),
                                   p->values[p->targets[i]].bytes));
    }
    return TT_OK;
}

/*
 * Where entries began and ended, on the clock of the host: start is of the events before them all,
 * one of each device, since times of two cards cannot be compared.
 */
static void note_spans(tt_session *s, tti_plan *p, int64_t start)
{
    for (int i = 0; i < p->exe.n_submissions && s->trace; i++) {
        int device = p->exe.submissions[i].device, entry = p->exe.submissions[i].entry;
        const tti_entry *en = &p->exe.lists[device].entries[entry];
        tti_device *d = s->ctx->top.devices[device];
        const tti_streams *st = streams_of(d);
        if (en->times[0] == NULL || en->times[1] == NULL)
            continue;
        double begin = st->elapsed(d, d->origin, en->times[0]);
        double end = st->elapsed(d, d->origin, en->times[1]);
        tti_record_span(s, p, device, entry, start + (int64_t)(begin * 1e9),
                        start + (int64_t)(end * 1e9));
    }
}

tt_status tti_submit(tt_session *s, tti_plan *p)
{
    group g = devices_of(s, p);
    int64_t begin = tti_now_ns();
    tt_status st = TT_OK;
    for (int i = 0; i < g.n && s->trace && st == TT_OK; i++)
        st = streams_of(g.d[i])->record(g.d[i], &g.d[i]->origin);
    if (st == TT_OK)
        st = run_streams(s, p, &g);
    if (st == TT_OK)
        st = land(s, p, &g);
    if (st == TT_OK)
        st = tti_ahead_start(p, s->to_come, s->n_to_come);
    // Also after a failure: nothing may be under way when memory is used again.
    for (int i = 0; i < g.n; i++) {
        tt_status ended = streams_of(g.d[i])->sync(g.d[i], tti_deadline(s->sync_ms));
        st = st == TT_OK ? ended : st;
    }
    if (st == TT_OK)
        note_spans(s, p, begin);
    int64_t end = tti_now_ns();
    for (int i = 0; i < g.n; i++) {
        tti_clock *c = &s->clocks[g.d[i]->index];
        c->walking += end - begin;
        c->ended = end;
        tti_device_moved(g.d[i]);
        atomic_store_explicit(&c->at, p->exe.lists[g.d[i]->index].n_entries, memory_order_relaxed);
    }
    return st;
}
