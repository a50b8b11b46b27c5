/*
 * call_group.c - several calls as one operation: collected from begin to end, then made as one
 * handle is: messages to others first, then the collectives, then messages from others.
 */
#include "comm/comm.h"

tt_status tt_call_group_begin(tt_comm *c)
{
    TT_TRY(tti_comm_ready(c));
    if (c->group != NULL)
        return tti_comm_end(
            c, TT_FAIL(c->ctx, TT_EINVAL, "call group: another one has begun and not ended"));
    c->group = tti_handle_new(c, TTI_HANDLE_CALLS);
    return tti_comm_end(c, c->group == NULL ? TT_ENOMEM : TT_OK);
}

// By the calling thread.
static tt_status make(tt_comm *c, tt_handle *h)
{
    for (tt_handle *p = h->parts; p != NULL; p = p->sibling)
        if (p->kind == TTI_HANDLE_SEND)
            TT_TRY(tti_p2p_send_now(c, &p->message));
    if (h->n_calls > 0) {
        tti_comm_drain(c, &c->calls);
        TT_TRY(tti_comm_ready(c));
        TT_TRY(tti_calls_run(c, h->calls, h->n_calls));
    }
    bool done;
    for (tt_handle *p = h->parts; p != NULL; p = p->sibling)
        if (p->kind == TTI_HANDLE_RECEIVE)
            TT_TRY(tti_p2p_receive(c, &p->message, true, &done));
    return TT_OK;
}

tt_status tt_call_group_end_with(tt_comm *c, const tt_comm_opts *opts)
{
    tti_handle_clear(opts);
    tt_handle *h = c != NULL ? c->group : NULL;
    if (h != NULL)
        c->group = NULL;
    if (tti_comm_ready(c) != TT_OK) {
        if (h != NULL)
            tti_handle_free_all(h);
        return c != NULL ? tt_status_of(c->ctx) : TT_EINVAL;
    }
    if (h == NULL || opts == NULL)
        return tti_comm_end(c, TT_FAIL(c->ctx, TT_EINVAL, "call group: %s",
                                       h == NULL ? "it ends, but none has begun" : "opts is NULL"));
    tt_handle **out = tti_handle_of(opts);
    tt_status st = out != NULL ? tti_handle_start(h) : make(c, h);
    if (st == TT_OK && out != NULL)
        *out = h;
    else if (out == NULL)
        tti_handle_free_all(h);
    return tti_comm_end(c, st); // what a handle has started ends with the group
}
