/*
 * handle.c - calls in the background. A group has two threads, each started by the first call that
 * needs it: one makes collectives in the order of their calls, one sends messages. So a message is
 * never behind a collective that waits for it. Receives need no thread: what comes is kept by the
 * job's own (world.h), and a wait or a test takes it from there.
 *
 * Collectives use the group's state: the context's thread makes one itself only after the thread
 * has made all before it (tti_comm_drain()).
 */
#include "comm/comm.h"
#include "net/timeout.h"
#include <string.h>
#include <unistd.h>

// ---- the threads -----------------------------------------------------------------------------

static tt_status make(tt_handle *h)
{
    tt_comm *c = h->c;
    TT_TRY(tti_comm_ready(c));
    if (h->kind == TTI_HANDLE_SEND)
        return tti_comm_end(c, tti_p2p_send(c, &h->message));
    c->is_alone = true;
    tt_status st = tti_calls_run(c, h->calls, h->n_calls);
    c->is_alone = false;
    return tti_comm_end(c, st);
}

static void work(void *arg)
{
    tti_runner *r = arg;
    tt_comm *c = r->c;
    pthread_mutex_lock(&c->mu);
    for (;;) {
        while (r->first == NULL && !r->is_stopping)
            pthread_cond_wait(&c->changed, &c->mu);
        tt_handle *h = r->first;
        if (h == NULL)
            break;
        pthread_mutex_unlock(&c->mu);
        tt_status st = make(h);
        pthread_mutex_lock(&c->mu);
        r->first = h->next;
        r->last = r->first == NULL ? NULL : r->last;
        h->next = NULL;
        h->status = st;
        h->is_done = true; // from here on it may be freed
        pthread_cond_broadcast(&c->changed);
    }
    pthread_mutex_unlock(&c->mu);
}

static tt_status queue(tti_runner *r, tt_handle *h, const char *name)
{
    if (!r->thread.is_started) {
        r->c = h->c;
        TT_TRY(tti_thread_start(h->c->ctx, &r->thread, name, work, r));
    }
    pthread_mutex_lock(&h->c->mu);
    if (r->last != NULL)
        r->last->next = h;
    else
        r->first = h;
    r->last = h;
    pthread_cond_broadcast(&h->c->changed);
    pthread_mutex_unlock(&h->c->mu);
    return TT_OK;
}

void tti_comm_drain(tt_comm *c, tti_runner *r)
{
    if (!r->thread.is_started || tti_is_forked(c->ctx))
        return;
    pthread_mutex_lock(&c->mu);
    while (r->first != NULL)
        pthread_cond_wait(&c->changed, &c->mu);
    pthread_mutex_unlock(&c->mu);
}

static void stop(tt_comm *c, tti_runner *r)
{
    if (!r->thread.is_started)
        return;
    if (!tti_is_forked(c->ctx)) {
        pthread_mutex_lock(&c->mu);
        r->is_stopping = true;
        pthread_cond_broadcast(&c->changed);
        pthread_mutex_unlock(&c->mu);
    }
    tti_thread_join(&r->thread);
}

// ---- handles ---------------------------------------------------------------------------------

tt_status tti_handles_open(tt_comm *c)
{
    c->n_processes = c->transport->process_of(c, c->total - 1) + 1;
    c->sent = tti_calloc(c->ctx, 2 * (size_t)c->n_processes, sizeof(*c->sent));
    c->got = c->sent != NULL ? c->sent + c->n_processes : NULL;
    return c->sent == NULL ? TT_ENOMEM : TT_OK;
}

void tti_handles_close(tt_comm *c)
{
    stop(c, &c->calls);
    stop(c, &c->sends);
    while (c->handles != NULL)
        tti_handle_free(c->handles);
    tti_arrivals_free(c);
    tti_free(c->ctx, c->sent);
}

tt_handle *tti_handle_new(tt_comm *c, tti_handle_kind kind)
{
    tt_handle *h = tti_calloc(c->ctx, 1, sizeof(*h));
    if (h == NULL)
        return NULL;
    h->c = c;
    h->kind = kind;
    h->other = c->handles;
    h->back = &c->handles;
    if (h->other != NULL)
        h->other->back = &h->other;
    c->handles = h;
    return h;
}

void tti_handle_free(tt_handle *h)
{
    tt_ctx *ctx = h->c->ctx;
    *h->back = h->other;
    if (h->other != NULL)
        h->other->back = h->back;
    for (int64_t i = 0; i < h->n_calls; i++)
        tti_free(ctx, h->calls[i].copy);
    tti_free(ctx, h->calls);
    tti_free(ctx, h);
}

void tti_handle_free_all(tt_handle *h)
{
    for (tt_handle *p = h->parts; p != NULL;) {
        tt_handle *next = p->sibling;
        tti_handle_free(p);
        p = next;
    }
    tti_handle_free(h);
}

tt_handle **tti_handle_of(const tt_comm_opts *opts)
{
    return TTI_OPTS_HAS(tt_comm_opts, opts, handle) ? opts->handle : NULL;
}

void tti_handle_clear(const tt_comm_opts *opts)
{
    if (tti_handle_of(opts) != NULL)
        *opts->handle = NULL;
}

tt_status tti_handle_add(tt_handle *h, const tti_comm_call *call)
{
    tt_ctx *ctx = h->c->ctx;
    size_t members = (size_t)call->n_mine * sizeof(tt_member);
    size_t counts = (size_t)tti_count_rows(call) * (size_t)call->total * sizeof(int64_t);
    if (!tti_grow(ctx, &h->calls, &h->calls_room, h->n_calls + 1, sizeof(*h->calls)))
        return TT_ENOMEM;
    char *copy = tti_alloc(ctx, members + counts + 1);
    if (copy == NULL)
        return TT_ENOMEM;
    tti_comm_call *to = &h->calls[h->n_calls++];
    *to = *call;
    to->copy = copy;
    if (members > 0)
        memcpy(copy, call->own, members);
    to->own = to->members = (const tt_member *)copy;
    if (counts > 0)
        memcpy(copy + members, call->opts.counts, counts);
    to->opts.counts = counts > 0 ? (const int64_t *)(copy + members) : NULL;
    return TT_OK;
}

tt_status tti_handle_start(tt_handle *h)
{
    for (tt_handle *p = h->parts; p != NULL;) {
        tt_handle *next = p->sibling;
        TT_TRY(tti_handle_start(p));
        p = next;
    }
    if (h->kind == TTI_HANDLE_SEND &&
        h->message.process != h->c->transport->process_of(h->c, h->c->first))
        return queue(&h->c->sends, h, "tutti-send");
    if (h->kind == TTI_HANDLE_CALLS && h->n_calls > 0)
        return queue(&h->c->calls, h, "tutti-comm");
    h->is_done = h->kind != TTI_HANDLE_RECEIVE;
    return h->kind == TTI_HANDLE_SEND ? tti_p2p_send(h->c, &h->message) : TT_OK;
}

tt_status tti_call_submit(tt_comm *c, tti_comm_call *call)
{
    if (c->group != NULL) {
        if (call->opts.handle != NULL)
            return TT_FAIL(c->ctx, TT_EINVAL,
                           "%s: a call within a group of calls has no handle of its own; give it "
                           "to tt_call_group_end()",
                           call->name);
        return tti_handle_add(c->group, call);
    }
    if (call->opts.handle == NULL) {
        if (c->calls.thread.is_started) {
            tti_comm_drain(c, &c->calls);
            TT_TRY(tti_comm_ready(c));
        }
        return tti_calls_run(c, call, 1);
    }
    tt_handle *h = tti_handle_new(c, TTI_HANDLE_CALLS);
    if (h == NULL)
        return TT_ENOMEM;
    tt_status st = tti_handle_add(h, call);
    if (st == TT_OK)
        st = tti_handle_start(h);
    if (st == TT_OK)
        *call->opts.handle = h;
    else
        tti_handle_free(h);
    return st;
}

// ---- waiting ---------------------------------------------------------------------------------

// Is it done? A receive is tried here, or waited for.
static tt_status look(tt_handle *h, bool waits, bool *done)
{
    tt_comm *c = h->c;
    tt_status st = TT_OK;
    *done = true;
    for (tt_handle *p = h->parts; p != NULL; p = p->sibling) {
        bool part;
        tt_status failed = look(p, waits, &part);
        st = st == TT_OK ? failed : st;
        *done = *done && part;
    }
    if (h->kind == TTI_HANDLE_RECEIVE && !h->is_done) {
        bool mine = true;
        h->status = tti_comm_ready(c);
        if (h->status == TT_OK)
            h->status = tti_comm_end(c, tti_p2p_receive(c, &h->message, waits, &mine));
        h->is_done = mine || h->status != TT_OK;
    }
    pthread_mutex_lock(&c->mu);
    while (waits && !h->is_done && !tti_is_forked(c->ctx))
        pthread_cond_wait(&c->changed, &c->mu);
    *done = *done && h->is_done;
    st = st == TT_OK && h->is_done ? h->status : st;
    pthread_mutex_unlock(&c->mu);
    return st;
}

tt_status tti_handle_finish(tt_handle *h)
{
    bool done;
    tt_ctx *ctx = h->c->ctx;
    tt_status st = look(h, true, &done);
    if (done) // not so in a child of fork()
        tti_handle_free_all(h);
    return done ? st : tt_status_of(ctx);
}

tt_status tt_handle_wait(tt_handle **h)
{
    if (h == NULL)
        return TT_EINVAL;
    tt_handle *it = *h;
    *h = NULL;
    return it == NULL ? TT_OK : tti_handle_finish(it);
}

tt_status tt_handle_test(tt_handle **h, bool *done)
{
    if (h == NULL || done == NULL)
        return h == NULL || *h == NULL
                   ? TT_EINVAL
                   : TT_FAIL((*h)->c->ctx, TT_EINVAL, "handle test: done is NULL");
    *done = true;
    if (*h == NULL)
        return TT_OK;
    tt_status st = look(*h, false, done);
    if (*done) {
        tti_handle_free_all(*h);
        *h = NULL;
    }
    return st;
}

tt_status tt_handle_wait_all(tt_handle **handles, int n)
{
    tt_status st = TT_OK;
    if (handles == NULL || n < 0)
        return TT_EINVAL;
    for (int i = 0; i < n; i++) { // all of them, after an error too: memory is in use until then
        tt_status one = tt_handle_wait(&handles[i]);
        st = st == TT_OK ? one : st;
    }
    return st;
}

// Nothing has ended for long: who is waited for is named.
static tt_status give_up(tt_handle *h)
{
    const tt_handle *late = h;
    for (const tt_handle *p = h->parts; p != NULL; p = p->sibling)
        late = p->kind == TTI_HANDLE_RECEIVE && !p->is_done ? p : late;
    return late->kind == TTI_HANDLE_RECEIVE ? tti_p2p_late(h->c, &late->message) : TT_OK;
}

tt_status tt_handle_wait_any(tt_handle **handles, int n, int *which)
{
    if (handles == NULL || which == NULL || n < 0)
        return TT_EINVAL;
    tti_timeout timeout = {.ctx = NULL};
    for (useconds_t us = 5;; us = TTI_MIN(2 * us, 500)) {
        tt_handle *left = NULL;
        *which = -1;
        for (int i = 0; i < n; i++) {
            bool done = false;
            if (handles[i] == NULL)
                continue;
            *which = i;
            tt_status st = tt_handle_test(&handles[i], &done);
            if (done)
                return st;
            left = left == NULL ? handles[i] : left;
        }
        if (left == NULL)
            return TT_OK;
        if (timeout.ctx == NULL)
            tti_timeout_begin(&timeout, left->c->ctx, left->c->deadline_ms);
        else if (tti_timeout_expired(&timeout))
            TT_TRY(give_up(left));
        usleep(us);
    }
}
