/*
 * server_peers.c - the connections of a server: requests from their parts, a thread for each that
 * asks for work, and what becomes of it when the connection is lost.
 *
 * ZeroMQ tells of lost connections only by the number of their file descriptor, which the next
 * connection may have again. It tells of the loss before anything comes of the next one, so losses
 * are taken before a connection is admitted (server.c).
 */
#include "serve/server_own.h"
#include <stdio.h>
#include <string.h>

// ---- threads of connections ------------------------------------------------------------------

static void work(void *arg)
{
    tti_peer *p = arg;
    pthread_mutex_lock(&p->l->mu);
    for (;;) {
        while (p->state != TTI_WORKING && !p->is_gone)
            pthread_cond_wait(&p->wake, &p->l->mu);
        if (p->state != TTI_WORKING)
            break;
        pthread_mutex_unlock(&p->l->mu);
        p->answer.n = 0;
        tt_status st = tti_client_handle(p->client, p->in.kind, p->in.body, p->in.got, &p->answer);
        pthread_mutex_lock(&p->l->mu);
        p->status = st;
        p->state = TTI_ANSWERING;
        tti_listening_wake(p->l);
    }
    tti_client *client = p->client;
    p->client = NULL;
    pthread_mutex_unlock(&p->l->mu);
    tti_client_free(client);
    pthread_mutex_lock(&p->l->mu);
    p->is_ended = true;
    tti_listening_wake(p->l);
    pthread_mutex_unlock(&p->l->mu);
}

// lost: it has not said goodbye, so what it had in queues is missed.
static void end(tti_peer *p, bool lost)
{
    pthread_mutex_lock(&p->l->mu);
    bool cancels = !p->is_gone && (lost || p->state == TTI_WORKING);
    p->is_gone = true;
    if (cancels && p->client != NULL)
        tti_client_cancel(p->client);
    pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->l->mu);
    if (!p->thread.is_started && !p->is_ended) {
        tti_client_free(p->client);
        p->client = NULL;
        p->is_ended = true;
    }
}

void tti_peer_lose(tti_peer *p)
{
    end(p, true);
}

void tti_peers_reap(tti_listening *l)
{
    for (tti_peer **at = &l->peers; *at != NULL;) {
        tti_peer *p = *at;
        pthread_mutex_lock(&l->mu);
        bool ended = p->is_gone && p->is_ended;
        if (ended)
            *at = p->next;
        pthread_mutex_unlock(&l->mu);
        if (!ended) {
            at = &p->next;
            continue;
        }
        tti_thread_join(&p->thread);
        if (p->is_known)
            atomic_fetch_sub(&l->host->n_clients, 1);
        tti_assembly_free(&p->in);
        tti_text_free(&p->answer);
        pthread_cond_destroy(&p->wake);
        tti_free(NULL, p);
    }
}

// ---- messages in -----------------------------------------------------------------------------

tti_peer *tti_peer_find(tti_listening *l, const void *id, size_t bytes)
{
    for (tti_peer *p = l->peers; p != NULL; p = p->next)
        if (p->id_bytes == bytes && memcmp(p->id, id, bytes) == 0)
            return p;
    return NULL;
}

tti_peer *tti_peer_admit(tti_listening *l, const void *id, size_t bytes, int fd)
{
    char name[64];
    tti_peer *p = bytes <= TTI_PEER_ID ? tti_calloc(NULL, 1, sizeof(*p)) : NULL;
    if (p == NULL)
        return NULL;
    for (tti_peer *old = l->peers; old != NULL; old = old->next)
        if (old->fd == fd && !old->is_gone)
            tti_peer_lose(old);
    p->l = l;
    p->fd = fd;
    memcpy(p->id, id, bytes);
    p->id_bytes = bytes;
    pthread_cond_init(&p->wake, NULL);
    snprintf(name, sizeof(name), "client %llu", (unsigned long long)++l->n_clients);
    p->client = tti_client_new(l->host, name);
    pthread_mutex_lock(&l->mu);
    p->next = l->peers;
    l->peers = p;
    pthread_mutex_unlock(&l->mu);
    return p;
}

static void reset(tti_peer *p)
{
    p->sent = 0;
    p->has_begun = false;
    p->credit = TTI_SERVE_WINDOW;
}

// An answer of this thread's own.
static void refuse(tti_peer *p, tt_status st, const char *text)
{
    reset(p);
    pthread_mutex_lock(&p->l->mu);
    p->answer.n = 0;
    tti_text_add(&p->answer, "%s", text);
    p->status = st;
    p->state = TTI_ANSWERING;
    pthread_mutex_unlock(&p->l->mu);
}

static void begin(tti_peer *p)
{
    tti_host *h = p->l->host;
    char text[256];
    reset(p);
    bool is_hello = p->in.kind == TTI_ASK_HELLO;
    if (p->client == NULL) {
        refuse(p, TT_ENOMEM, "the server is out of memory");
        return;
    }
    if (is_hello && !p->is_known) {
        if (atomic_load(&h->n_clients) >= h->bounds.clients) {
            snprintf(text, sizeof(text), "%s has %d clients, its limit; try again later", h->task,
                     h->bounds.clients);
            refuse(p, TT_ELIMIT, text);
            return;
        }
        atomic_fetch_add(&h->n_clients, 1);
        p->is_known = true;
    }
    if (is_hello || (p->in.kind == TTI_ASK_INFO && p->is_known)) {
        p->answer.n = 0;
        p->status = tti_client_handle(p->client, p->in.kind, p->in.body, p->in.got, &p->answer);
        pthread_mutex_lock(&p->l->mu);
        p->state = TTI_ANSWERING;
        pthread_mutex_unlock(&p->l->mu);
        return;
    }
    if (!p->is_known || atomic_load(&h->is_draining)) {
        snprintf(text, sizeof(text), "%s %s", h->task,
                 p->is_known ? "is stopping" : "was not greeted");
        refuse(p, TT_EPEER, text);
        return;
    }
    if (!p->thread.is_started &&
        tti_thread_start(NULL, &p->thread, "tutti-client", work, p) != TT_OK) {
        refuse(p, TT_ENOMEM, "the server has no thread for this client");
        return;
    }
    pthread_mutex_lock(&p->l->mu);
    p->state = TTI_WORKING;
    pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->l->mu);
}

void tti_peer_take(tti_peer *p, const void *data, size_t bytes)
{
    tti_frame_head h;
    if (bytes < sizeof(h) || p->is_gone)
        return;
    memcpy(&h, data, sizeof(h));
    if (h.magic == TTI_FRAME_MAGIC && h.type == TTI_FRAME_BYE) {
        end(p, false);
        return;
    }
    if (h.magic == TTI_FRAME_MAGIC && h.type == TTI_FRAME_CREDIT) {
        if (h.number == p->in.number && h.total <= TTI_SERVE_WINDOW)
            p->credit += (int64_t)h.total;
        return;
    }
    pthread_mutex_lock(&p->l->mu);
    bool idle = p->state == TTI_IDLE;
    pthread_mutex_unlock(&p->l->mu);
    if (!idle)
        return; // one request at a time; or the rest of one that was refused
    char text[160];
    switch (tti_assembly_add(&p->in, TTI_FRAME_REQUEST, data, bytes, p->l->host->bounds.memory)) {
    case TTI_WHOLE:
        begin(p);
        break;
    case TTI_TOO_LARGE:
        snprintf(text, sizeof(text), "the request has %llu bytes; %s takes up to %zu",
                 (unsigned long long)p->in.total, p->l->host->task, p->l->host->bounds.memory);
        refuse(p, TT_ELIMIT, text);
        break;
    case TTI_NO_MEMORY:
        refuse(p, TT_ENOMEM, "the server has no memory for the request");
        break;
    case TTI_BROKEN:
        tti_peer_lose(p);
        break;
    case TTI_PART:
    case TTI_IGNORED:
        break;
    }
}
