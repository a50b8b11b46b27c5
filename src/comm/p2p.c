/*
 * p2p.c - messages between two members. Those between two processes are numbered: a head that
 * says sender, receiver, tag, type and count, then the data. The receiver takes heads in the order
 * of their numbers and keeps those it was not asked for; data stays where it arrived (message.c)
 * until somebody wants it. A message within a process is a copy.
 */
#include "comm/comm.h"
#include "net/world.h"
#include <stdio.h>
#include <string.h>

static size_t bytes_of(const tti_p2p_head *h)
{
    return (size_t)h->count * tt_dtype_bytes((tt_dtype)h->dtype);
}

static bool is_here(const tt_comm *c, int process)
{
    return process == c->transport->process_of(c, c->first);
}

static void put_arrival(tt_comm *c, tti_arrival *arrival)
{
    tti_arrival **at = &c->arrivals;
    while (*at != NULL)
        at = &(*at)->next;
    arrival->next = NULL;
    *at = arrival;
}

void tti_arrivals_free(tt_comm *c)
{
    while (c->arrivals != NULL) {
        tti_arrival *m = c->arrivals;
        c->arrivals = m->next;
        tti_free(c->ctx, m);
    }
}

// ---- sending ---------------------------------------------------------------------------------

tt_status tti_p2p_send(tt_comm *c, const tti_p2p *m)
{
    size_t bytes = bytes_of(&m->head);
    if (is_here(c, m->process)) {
        tti_arrival *arrival = tti_alloc(c->ctx, sizeof(*arrival) + bytes);
        if (arrival == NULL)
            return TT_ENOMEM;
        *arrival = (tti_arrival){.head = m->head, .process = m->process};
        if (bytes > 0)
            memcpy(arrival->data, m->out, bytes);
        put_arrival(c, arrival);
        return TT_OK;
    }
    tti_world_doing(c->ctx->world, "send_to", NULL);
    TT_TRY(
        c->transport->send(c, "send_to", m->process, m->number, false, &m->head, sizeof(m->head)));
    return bytes == 0
               ? TT_OK
               : c->transport->send(c, "send_to", m->process, m->number, true, m->out, bytes);
}

tt_status tti_p2p_send_now(tt_comm *c, const tti_p2p *m)
{
    if (!is_here(c, m->process))
        tti_comm_drain(c, &c->sends); // they have earlier numbers
    TT_TRY(tti_comm_ready(c));
    return tti_p2p_send(c, m);
}

// ---- receiving -------------------------------------------------------------------------------

static tti_arrival **find(tt_comm *c, const tti_p2p_head *h)
{
    tti_arrival **at = &c->arrivals;
    while (*at != NULL &&
           ((*at)->head.from != h->from || (*at)->head.to != h->to || (*at)->head.tag != h->tag))
        at = &(*at)->next;
    return at;
}

static const char *what_of(const tti_p2p *m, char out[64])
{
    snprintf(out, 64, "the message with tag %d for member %d", m->head.tag, m->head.to);
    return out;
}

// Takes the next head of a process.
static tt_status take_head(tt_comm *c, const tti_p2p *m)
{
    char what[64];
    tti_arrival *arrival = tti_calloc(c->ctx, 1, sizeof(*arrival));
    if (arrival == NULL)
        return TT_ENOMEM;
    arrival->process = m->process;
    arrival->number = c->got[m->process];
    tt_status st = c->transport->receive(c, what_of(m, what), m->process, arrival->number, false,
                                         &arrival->head, sizeof(arrival->head));
    const tti_p2p_head *h = &arrival->head;
    if (st == TT_OK &&
        (h->from < 0 || h->from >= c->total || h->to < c->first ||
         h->to >= c->first + c->n_members || h->count < 0 || (unsigned)h->dtype >= TT_N_DTYPES ||
         c->transport->process_of(c, h->from) != m->process))
        st = TT_FAIL(c->ctx, TT_EPEER, "receive_from: a message of process %d has a damaged head",
                     m->process);
    if (st != TT_OK) {
        tti_free(c->ctx, arrival);
        return st;
    }
    c->got[m->process]++;
    put_arrival(c, arrival);
    return TT_OK;
}

// The message that is wanted, or NULL: it has not come.
static tt_status find_arrival(tt_comm *c, const tti_p2p *m, bool waits, tti_arrival ***out)
{
    while (*(*out = find(c, &m->head)) == NULL) {
        if (is_here(c, m->process)) {
            if (!waits)
                return TT_OK;
            return TT_FAIL(c->ctx, TT_EINVAL,
                           "receive_from: member %d waits for a message of member %d with tag %d, "
                           "but both are of this process, which has not sent it",
                           m->head.to, m->head.from, m->head.tag);
        }
        if (!waits && !c->transport->arrived(c, m->process, c->got[m->process], false))
            return TT_OK;
        TT_TRY(take_head(c, m));
    }
    return TT_OK;
}

tt_status tti_p2p_receive(tt_comm *c, const tti_p2p *m, bool waits, bool *done)
{
    tti_arrival **at;
    char what[64];
    *done = false;
    if (!is_here(c, m->process))
        tti_world_doing(c->ctx->world, "receive_from", NULL);
    TT_TRY(find_arrival(c, m, waits, &at));
    tti_arrival *arrival = *at;
    if (arrival == NULL)
        return TT_OK;
    const tti_p2p_head *h = &arrival->head;
    if (h->count != m->head.count || h->dtype != m->head.dtype)
        return TT_FAIL(c->ctx, TT_EINVAL,
                       "receive_from: member %d sends %lld elements of %s with tag %d, but member "
                       "%d expects %lld of %s",
                       h->from, (long long)h->count, tt_dtype_name((tt_dtype)h->dtype), h->tag,
                       h->to, (long long)m->head.count, tt_dtype_name((tt_dtype)m->head.dtype));
    size_t bytes = bytes_of(h);
    if (bytes > 0 && is_here(c, m->process))
        memcpy(m->in, arrival->data, bytes);
    else if (bytes > 0 && !waits && !c->transport->arrived(c, m->process, arrival->number, true))
        return TT_OK;
    else if (bytes > 0)
        TT_TRY(c->transport->receive(c, what_of(m, what), m->process, arrival->number, true, m->in,
                                     bytes));
    *at = arrival->next;
    tti_free(c->ctx, arrival);
    *done = true;
    return TT_OK;
}

tt_status tti_p2p_late(tt_comm *c, const tti_p2p *m)
{
    char what[64];
    bool done;
    if (is_here(c, m->process))
        return tti_comm_end(c, tti_p2p_receive(c, m, true, &done));
    return tti_comm_end(c, c->transport->late(c, what_of(m, what), m->process));
}

// ---- the calls -------------------------------------------------------------------------------

// What both calls begin with: checks, then the message as the other side will see it.
static tt_status begin(tt_comm *c, const char *name, tti_handle_kind kind, const void *data,
                       int64_t count, int peer, const tt_comm_opts *opts, tti_p2p *m,
                       tt_handle ***out)
{
    tt_comm_opts o;
    TT_TRY(TTI_OPTS_COPY(c->ctx, name, opts, &o));
    if ((unsigned)o.dtype >= TT_N_DTYPES)
        return TT_FAIL(c->ctx, TT_EDTYPE, "%s: there is no element type %d", name, (int)o.dtype);
    if (count < 0 || count > (int64_t)1 << 48)
        return TT_FAIL(c->ctx, TT_EINVAL, "%s: %lld elements; 0 to %lld are allowed", name,
                       (long long)count, (long long)1 << 48);
    if (count > 0 && data == NULL)
        return TT_FAIL(c->ctx, TT_EINVAL, "%s: data is NULL, for %lld elements", name,
                       (long long)count);
    if (peer < 0 || peer >= c->total)
        return TT_FAIL(c->ctx, TT_EINVAL, "%s: there is no member %d; the group has %d", name, peer,
                       c->total);
    if (o.member < 0 || o.member >= c->n_members)
        return TT_FAIL(c->ctx, TT_EINVAL, "%s: member is %d, but this process has %d members", name,
                       o.member, c->n_members);
    bool sends = kind == TTI_HANDLE_SEND;
    int own = c->first + o.member;
    *m = (tti_p2p){.head = {sends ? own : peer, sends ? peer : own, o.tag, (int32_t)o.dtype, count},
                   .process = c->transport->process_of(c, peer)};
    if (sends && !is_here(c, m->process))
        m->number = c->sent[m->process]++;
    *out = o.handle;
    return TT_OK;
}

// Now, in the background, or as part of a group of calls.
static tt_status submit(tt_comm *c, const char *name, tti_handle_kind kind, const tti_p2p *m,
                        tt_handle **out)
{
    bool done;
    if (c->group != NULL && out != NULL)
        return TT_FAIL(c->ctx, TT_EINVAL,
                       "%s: a call within a group of calls has no handle of its own; give it to "
                       "tt_call_group_end()",
                       name);
    if (c->group == NULL && out == NULL)
        return kind == TTI_HANDLE_SEND ? tti_p2p_send_now(c, m)
                                       : tti_p2p_receive(c, m, true, &done);
    tt_handle *h = tti_handle_new(c, kind);
    if (h == NULL)
        return TT_ENOMEM;
    h->message = *m;
    if (c->group != NULL) {
        tt_handle **at = &c->group->parts;
        while (*at != NULL)
            at = &(*at)->sibling;
        *at = h;
        return TT_OK;
    }
    tt_status st = tti_handle_start(h);
    if (st == TT_OK)
        *out = h;
    else
        tti_handle_free(h);
    return st;
}

// A send reads out, a receive writes in.
static tt_status call(tt_comm *c, const char *name, tti_handle_kind kind, const void *out, void *in,
                      int64_t count, int peer, const tt_comm_opts *opts)
{
    tti_p2p m;
    tt_handle **handle = NULL;
    tti_handle_clear(opts);
    TT_TRY(tti_comm_ready(c));
    const void *data = kind == TTI_HANDLE_SEND ? out : in;
    tt_status st = begin(c, name, kind, data, count, peer, opts, &m, &handle);
    m.out = out;
    m.in = in;
    return tti_comm_end(c, st != TT_OK ? st : submit(c, name, kind, &m, handle));
}

tt_status tt_send_to_with(tt_comm *c, const void *data, int64_t count, int to,
                          const tt_comm_opts *opts)
{
    return call(c, "send_to", TTI_HANDLE_SEND, data, NULL, count, to, opts);
}

tt_status tt_receive_from_with(tt_comm *c, void *data, int64_t count, int from,
                               const tt_comm_opts *opts)
{
    return call(c, "receive_from", TTI_HANDLE_RECEIVE, NULL, data, count, from, opts);
}
