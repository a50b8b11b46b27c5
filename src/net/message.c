/*
 * message.c - messages. One goes out in chunks; the world's thread puts them
 * together in the inbox, or in the reader's own memory when it waits already.
 */
#include "net/timeout.h"
#include "net/world_own.h"
#include <stdio.h>
#include <string.h>

#define PAYLOAD    (TTI_WIRE_CHUNK - sizeof(tti_chunk))
#define MOST_PARTS 64                // of a chunk
#define TOLD_EVERY 16                // chunks; far fewer than may be on their way
#define INBOX_MOST ((size_t)8 << 30) // bytes that wait for their readers

// ---- sending ---------------------------------------------------------------------------------

static tt_status put(tti_world *w, int to, const struct iovec *parts, int n, int64_t wait_ms)
{
    tti_timeout p;
    for (bool waits = false;; waits = true) {
        tt_status st = tti_wire_put(w->wire, to, parts, n, 20);
        if (st != TT_ETIMEOUT)
            return st;
        if (atomic_load(&w->has_failed))
            return TT_EPEER;
        if (!waits)
            tti_timeout_begin(&p, w->ctx, wait_ms);
        else if (tti_timeout_expired(&p))
            return TT_ETIMEOUT;
    }
}

// Where in the parts of a message its next byte is.
typedef struct cursor {
    const struct iovec *part, *end;
    size_t at; // in part
} cursor;

// The next bytes of a message behind the head of a chunk, up to its payload; how many.
static size_t fill_chunk(cursor *c, struct iovec *out, int *n)
{
    size_t bytes = 0;
    for (*n = 1; c->part < c->end && *n < MOST_PARTS && bytes < PAYLOAD;) {
        size_t some = TTI_MIN(c->part->iov_len - c->at, PAYLOAD - bytes);
        out[(*n)++] = (struct iovec){(char *)c->part->iov_base + c->at, some};
        bytes += some;
        c->at += some;
        if (c->at == c->part->iov_len) {
            c->part++;
            c->at = 0;
        }
    }
    return bytes;
}

tt_status tti_world_send_parts(tti_world *w, int to, const tti_message *l,
                               const struct iovec *parts, int n, int64_t wait_ms)
{
    TTI_ASSERT(to >= 0 && to < w->n && to != w->self);
    tti_peer *p = &w->peers[to];
    tt_status st = TT_OK;
    tti_chunk c = {.magic = TTI_WIRE_MAGIC, .incarnation = w->incarnation, .message = *l};
    cursor at = {parts, parts + n, 0};
    pthread_mutex_lock(&p->out_mu); // chunks of messages do not mix
    do {
        struct iovec chunk[MOST_PARTS] = {{&c, sizeof(c)}};
        int n_parts;
        size_t bytes = fill_chunk(&at, chunk, &n_parts);
        c.n = p->n_out;
        st = atomic_load(&w->has_failed) ? TT_EPEER : put(w, to, chunk, n_parts, wait_ms);
        p->n_out += st == TT_OK;
        c.at += bytes;
    } while (st == TT_OK && c.at < l->bytes);
    if (st == TT_OK) {
        p->sent_messages++;
        p->sent_bytes += l->bytes;
    }
    pthread_mutex_unlock(&p->out_mu);
    return st;
}

tt_status tti_world_send(tti_world *w, int to, const tti_message *l, const void *data,
                         int64_t wait_ms)
{
    struct iovec all = {(void *)(uintptr_t)data, l->bytes};
    return tti_world_send_parts(w, to, l, &all, 1, wait_ms);
}

void tti_world_sent(tti_world *w, int to, int64_t *messages, int64_t *bytes)
{
    tti_peer *p = &w->peers[to];
    pthread_mutex_lock(&p->out_mu);
    *messages = (int64_t)p->sent_messages;
    *bytes = (int64_t)p->sent_bytes;
    pthread_mutex_unlock(&p->out_mu);
}

// ---- the inbox -------------------------------------------------------------------------------

static bool is_same(const tti_message *a, const tti_message *b)
{
    return a->plan == b->plan && a->run == b->run && a->edge == b->edge;
}

// The link that points to the message, or to the end; with mu held.
static tti_inbox **find(tti_world *w, int from, const tti_message *l)
{
    tti_inbox **at = &w->inbox;
    while (*at != NULL && ((*at)->from != from || !is_same(&(*at)->message, l)))
        at = &(*at)->next;
    return at;
}

// An entry with room for bytes of its own; spare ones are used again. With mu held.
static tti_inbox *new_entry(tti_world *w, size_t bytes)
{
    tti_inbox **best = NULL, *e;
    for (tti_inbox **at = &w->spare; *at != NULL; at = &(*at)->next)
        if ((*at)->capacity >= bytes && (bytes > 0 || (*at)->capacity == 0) &&
            (best == NULL || (*at)->capacity < (*best)->capacity))
            best = at;
    if (best != NULL) {
        e = *best;
        *best = e->next;
        return e;
    }
    e = tti_calloc(w->ctx, 1, sizeof(*e));
    if (e == NULL)
        return NULL;
    e->data = bytes > 0 ? tti_alloc(w->ctx, bytes) : NULL;
    e->capacity = bytes;
    if (bytes > 0 && e->data == NULL) {
        tti_free(w->ctx, e);
        return NULL;
    }
    return e;
}

static void add(tti_world *w, tti_inbox *e, int from, const tti_message *l)
{
    e->message = *l;
    e->from = from;
    e->arrived = 0;
    e->is_filling = false;
    e->next = NULL;
    tti_inbox **at = &w->inbox;
    while (*at != NULL)
        at = &(*at)->next;
    *at = e;
}

static void fail_link(tti_world *w, int from, const char *why)
{
    const tti_rank *r = &w->peers[from].rank;
    char text[256];
    snprintf(text, sizeof(text), "rank %d (%s, host %s, pid %d): %s", from, r->name, r->host,
             r->pid, why);
    tti_world_fail(w, TT_EPEER, text);
}

// The entry that a chunk goes to, marked as being filled; NULL: the link has failed.
static tti_inbox *entry_for(tti_world *w, int from, const tti_chunk *c, size_t bytes)
{
    const char *wrong = NULL;
    pthread_mutex_lock(&w->mu);
    tti_inbox *e = *find(w, from, &c->message);
    if (e == NULL && c->message.bytes > INBOX_MOST - w->inbox_bytes)
        wrong = "unread messages fill the memory reserved for them";
    if (e == NULL && wrong == NULL) {
        e = new_entry(w, c->message.bytes);
        if (e != NULL) {
            add(w, e, from, &c->message);
            w->inbox_bytes += c->message.bytes;
        } else {
            wrong = "out of memory for its message";
        }
    }
    if (e != NULL && (e->message.bytes != c->message.bytes || e->arrived != c->at ||
                      bytes > e->message.bytes - e->arrived))
        wrong = "a message has another number of bytes than expected";
    if (wrong == NULL)
        e->is_filling = true;
    pthread_mutex_unlock(&w->mu);
    if (wrong == NULL)
        return e;
    fail_link(w, from, wrong);
    return NULL;
}

void tti_messages_take(void *world, int from, const void *message, size_t bytes)
{
    tti_world *w = world;
    tti_peer *p = &w->peers[from];
    tti_chunk c;
    if (bytes < sizeof(c) || atomic_load(&w->has_failed))
        return;
    memcpy(&c, message, sizeof(c));
    if (c.magic != TTI_WIRE_MAGIC || c.incarnation != p->hello.incarnation)
        return; // of a process that was refused
    if (c.n != p->n_in)
        return; // its connection broke: this one was here, or those before it come first
    p->n_in++;
    if (p->is_asking || p->n_in - p->n_told >= TOLD_EVERY)
        tti_world_tell(w, from, &(tti_control_message){.kind = TTI_TAKEN});
    bytes -= sizeof(c);
    tti_inbox *e = entry_for(w, from, &c, bytes);
    if (e == NULL)
        return;
    if (bytes > 0)
        memcpy(e->data + c.at, (const char *)message + sizeof(c), bytes);
    pthread_mutex_lock(&w->mu);
    p->heard_ns = tti_now_ns();
    p->n_taken++;
    e->is_filling = false;
    e->arrived += bytes;
    if (e->arrived == e->message.bytes || atomic_load(&w->has_failed)) {
        e->arrived = e->message.bytes == 0 ? 1 : e->arrived; // an empty message has come, too
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->mu);
}

// Takes an entry out of the inbox and keeps its memory for the next one; with mu held.
static void drop(tti_world *w, tti_inbox *e)
{
    tti_inbox **at = &w->inbox;
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    if (e->capacity > 0)
        w->inbox_bytes -= e->message.bytes;
    else
        e->data = NULL;
    e->next = w->spare;
    w->spare = e;
}

static bool is_complete(const tti_inbox *e)
{
    return e->arrived >= TTI_MAX(e->message.bytes, (uint64_t)1);
}

// Waits for a message; with mu held. *out may be set when it fails, too.
static tt_status await(tti_world *w, int from, const tti_message *l, void *data, int64_t wait_ms,
                       tti_inbox **out)
{
    tti_timeout p = {.ctx = NULL};
    uint64_t arrived = 0;
    tti_inbox *e = *find(w, from, l);
    if (e == NULL) { // it will come into the reader's memory
        e = new_entry(w, 0);
        if (e == NULL)
            return TT_ENOMEM;
        e->data = data;
        add(w, e, from, l);
    }
    *out = e;
    if (e->message.bytes != l->bytes)
        return TT_FAIL(w->ctx, TT_EINVAL,
                       "a message of rank %d (%s) has %llu bytes, but %llu are expected", from,
                       w->peers[from].rank.name, (unsigned long long)e->message.bytes,
                       (unsigned long long)l->bytes);
    while (!is_complete(e)) {
        if (atomic_load(&w->has_failed))
            return TT_EPEER;
        if (w->peers[from].has_left && w->peers[from].n_taken == w->peers[from].n_left)
            return TT_FAIL(w->ctx, TT_EPEER,
                           "rank %d (%s, host %s) has left the job, but this rank waits for it",
                           from, w->peers[from].rank.name, w->peers[from].rank.host);
        if (wait_ms == 0)
            return TT_ETIMEOUT;
        if (p.ctx == NULL)
            tti_timeout_begin(&p, w->ctx, wait_ms);
        if (e->arrived != arrived) // a slow link is none that has stopped
            tti_timeout_renew(&p);
        arrived = e->arrived;
        (void)tti_world_wait(w, tti_deadline(TTI_POLL_MS));
        if (!is_complete(e) && tti_timeout_expired(&p))
            return TT_ETIMEOUT;
        w->doing.waits_for = from + 1;
    }
    w->doing.waits_for = 0;
    return TT_OK;
}

tt_status tti_world_receive(tti_world *w, int from, const tti_message *l, void *data,
                            int64_t wait_ms)
{
    TTI_ASSERT(from >= 0 && from < w->n && from != w->self);
    tti_inbox *e = NULL;
    pthread_mutex_lock(&w->mu);
    tt_status st = await(w, from, l, data, wait_ms, &e);
    while (e != NULL && e->is_filling) // it writes to data
        (void)tti_world_wait(w, tti_now_ns() + 1000000);
    bool own = st == TT_OK && e->capacity > 0 && l->bytes > 0;
    if (own) { // nobody else knows of it once it has come
        pthread_mutex_unlock(&w->mu);
        memcpy(data, e->data, l->bytes);
        pthread_mutex_lock(&w->mu);
    }
    if (e != NULL)
        drop(w, e);
    pthread_mutex_unlock(&w->mu);
    return st;
}

bool tti_world_has(tti_world *w, int from, const tti_message *l)
{
    pthread_mutex_lock(&w->mu);
    const tti_inbox *e = *find(w, from, l);
    bool has = (e != NULL && is_complete(e)) || atomic_load(&w->has_failed);
    pthread_mutex_unlock(&w->mu);
    return has;
}

static void free_list(tti_world *w, tti_inbox *e)
{
    while (e != NULL) {
        tti_inbox *next = e->next;
        if (e->capacity > 0)
            tti_free(w->ctx, e->data);
        tti_free(w->ctx, e);
        e = next;
    }
}

void tti_messages_free(tti_world *w)
{
    free_list(w, w->inbox);
    free_list(w, w->spare);
    w->inbox = w->spare = NULL;
}
