/*
 * wire_send.c - data messages of the wire (wire.h).
 *
 * A connection that breaks is made again by ZeroMQ, but what was on its way may be lost. So data
 * messages are kept until the other side has told that it took them, and those that it has not told
 * of are sent once more over a new connection; it knows them by their numbers.
 */
#include "net/wire.h"

#ifdef TUTTI_HAVE_ZMQ
#include "net/wire_own.h"
#include <string.h>

#define WINDOW TTI_WIRE_WINDOW

void tti_send_queue_open(tti_send_queue *b)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&b->mu, NULL);
    pthread_cond_init(&b->room, &attr);
    pthread_condattr_destroy(&attr);
}

void tti_send_queue_close(tti_send_queue *b)
{
    for (; b->n_taken != b->n_put; b->n_taken++)
        zmq_msg_close(&b->kept[b->n_taken % WINDOW]);
    pthread_mutex_destroy(&b->mu);
    pthread_cond_destroy(&b->room);
}

// Gives ZeroMQ what it has not got yet; with mu held.
static void pump(tti_send_queue *b)
{
    bool is_behind = false;
    while (b->n_sent != b->n_put && !is_behind) {
        zmq_msg_t m;
        zmq_msg_init(&m);
        is_behind = zmq_msg_copy(&m, &b->kept[b->n_sent % WINDOW]) != 0 ||
                    zmq_msg_send(&m, b->socket, ZMQ_DONTWAIT) < 0;
        if (is_behind)
            zmq_msg_close(&m);
        else
            b->n_sent++;
    }
    atomic_store(&b->is_behind, is_behind);
}

static void await_room(tti_send_queue *b, int wait_ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)wait_ms * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (b->n_put - b->n_taken == WINDOW)
        if (pthread_cond_timedwait(&b->room, &b->mu, &until) != 0)
            return;
}

tt_status tti_wire_put(tti_wire *w, int to, const struct iovec *parts, int n, int wait_ms)
{
    tti_send_queue *b = &w->links[to].data;
    size_t seal_bytes = w->no_encryption ? sizeof(tti_seal) : 0, bytes = 0;
    tt_status st = TT_OK;
    for (int i = 0; i < n; i++)
        bytes += parts[i].iov_len;
    pthread_mutex_lock(&b->mu);
    await_room(b, wait_ms);
    zmq_msg_t *m = &b->kept[b->n_put % WINDOW];
    if (b->n_put - b->n_taken == WINDOW) {
        st = TT_ETIMEOUT;
    } else if (zmq_msg_init_size(m, bytes + seal_bytes) != 0) {
        st = TT_FAIL(w->ctx, TT_ENOMEM, "wire: no memory for a message");
    } else {
        char *at = zmq_msg_data(m);
        for (int i = 0; i < n; at += parts[i++].iov_len)
            if (parts[i].iov_len > 0)
                memcpy(at, parts[i].iov_base, parts[i].iov_len);
        if (seal_bytes > 0)
            tti_wire_seal(w, to, zmq_msg_data(m), bytes);
        b->n_put++;
        pump(b);
    }
    pthread_mutex_unlock(&b->mu);
    return st;
}

void tti_wire_taken(tti_wire *w, int by, uint32_t n)
{
    tti_send_queue *b = &w->links[by].data;
    pthread_mutex_lock(&b->mu);
    if (b->socket != NULL && n - b->n_taken <= b->n_put - b->n_taken) {
        bool was_sent = b->n_sent - b->n_taken >= n - b->n_taken;
        for (; b->n_taken != n; b->n_taken++)
            zmq_msg_close(&b->kept[b->n_taken % WINDOW]);
        b->n_sent = was_sent ? b->n_sent : n;
        pump(b);
        pthread_cond_broadcast(&b->room);
    }
    pthread_mutex_unlock(&b->mu);
}

bool tti_wire_has_taken(tti_wire *w, int rank)
{
    tti_send_queue *b = &w->links[rank].data;
    pthread_mutex_lock(&b->mu);
    bool has = b->n_taken == b->n_put;
    pthread_mutex_unlock(&b->mu);
    return has;
}

void tti_send_queue_watch(tti_wire *w, int rank, bool looks)
{
    tti_send_queue *b = &w->links[rank].data;
    int e, value;
    void *monitor = NULL;
    if (looks) {
        pthread_mutex_lock(&b->mu);
        monitor = b->monitor; // the caller's thread sets it, once
        pthread_mutex_unlock(&b->mu);
    }
    while (monitor != NULL && (e = tti_wire_event(monitor, &value)) >= 0) {
        pthread_mutex_lock(&b->mu);
        if (e == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) // so that the other side knows whose it is
            (void)zmq_send(b->socket, "", 0, ZMQ_DONTWAIT);
        bool again = b->is_broken && e == ZMQ_EVENT_HANDSHAKE_SUCCEEDED;
        uint32_t n = b->n_put - b->n_taken;
        b->is_broken = (b->is_broken || e == ZMQ_EVENT_DISCONNECTED) && !again;
        if (again) {
            b->n_sent = b->n_taken;
            pump(b);
        }
        pthread_mutex_unlock(&b->mu);
        if (again)
            TT_LOG(w->ctx, TT_INFO,
                   "the link to rank %d broke and is made again; %u messages sent "
                   "once more",
                   rank, n);
    }
    if (atomic_load(&b->is_behind)) {
        pthread_mutex_lock(&b->mu);
        pump(b);
        pthread_mutex_unlock(&b->mu);
    }
}

#endif
