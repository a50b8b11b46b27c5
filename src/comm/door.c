/*
 * door.c - where the wire listens and who is let in (wire.h).
 *
 * The handler of ZeroMQ's authentication protocol (ZAP), on the wire's own thread, admits a key
 * only if it is that of a rank of the job and names the connection by the rank. What is not
 * admitted is bounded in size, in time (the handshake's deadline) and in number: with too many
 * strangers at the door, listening rests until they have gone.
 */
#include "comm/wire.h"

#ifdef TUTTI_HAVE_ZMQ
#include "comm/wire_own.h"
#include <errno.h>
#include <linux/filter.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG   64
#define STRANGERS 64 // connections beyond the ranks' own that make listening rest

/*
 * Listens by a socket of our own, so that the door can be shut without closing it: ZeroMQ would
 * drop everyone who came through it.
 */
tt_status tti_door_open(tti_wire *w, void *socket_, const char *at, tti_door *d, int *port)
{
    char host[128], url[160];
    snprintf(host, sizeof(host), "%s", at);
    char *colon = strrchr(host, ':');
    if (colon == NULL)
        return TT_FAIL(w->ctx, TT_EINVAL, "cannot listen at '%s': host:port is missing", at);
    *colon = '\0';
    bool bracket = host[0] == '[' && colon[-1] == ']';
    if (bracket)
        colon[-1] = '\0';
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *to = NULL;
    int rc = getaddrinfo(host + bracket, colon + 1, &hints, &to);
    if (rc != 0)
        return TT_FAIL(w->ctx, TT_EIO, "cannot listen at %s: %s", at, gai_strerror(rc));
    int one = 1, s = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_storage name = {.ss_family = AF_UNSPEC};
    socklen_t n = sizeof(name);
    if (s >= 0)
        (void)setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    bool ok = s >= 0 && bind(s, to->ai_addr, to->ai_addrlen) == 0 && listen(s, BACKLOG) == 0 &&
              getsockname(s, (struct sockaddr *)&name, &n) == 0;
    freeaddrinfo(to);
    *port = ntohs(name.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&name)->sin6_port
                                             : ((struct sockaddr_in *)&name)->sin_port);
    snprintf(url, sizeof(url), "tcp://%.*s:%d", (int)(strrchr(at, ':') - at), at, *port);
    if (ok)
        tti_wire_set(socket_, ZMQ_USE_FD, s);
    if (!ok || zmq_bind(socket_, url) != 0) {
        int err = errno;
        if (s >= 0)
            close(s);
        return TT_FAIL(w->ctx, TT_EIO, "cannot listen at %s: %s%s", at, strerror(err),
                       err == EADDRINUSE ? "; this task may have been started twice" : "");
    }
    d->fd = s;
    return TT_OK;
}

// Whoever knocks from now on is not answered, or is again.
static void shut(int fd, bool is_shut)
{
    struct sock_filter nothing = {BPF_RET | BPF_K, 0, 0, 0};
    struct sock_fprog filter = {1, &nothing};
    int zero = 0;
    if (is_shut)
        (void)setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter));
    else
        (void)setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &zero, sizeof(zero));
}

void tti_door_watch(tti_wire *w, tti_door *d)
{
    int e;
    while (d->monitor != NULL && (e = tti_wire_event(d->monitor)) >= 0)
        d->n_inside += e == ZMQ_EVENT_ACCEPTED ? 1 : e == ZMQ_EVENT_DISCONNECTED ? -1 : 0;
    bool too_many = d->n_inside > w->n + STRANGERS;
    if (too_many != d->is_resting)
        shut(d->fd, too_many);
    d->is_resting = too_many;
}

bool tti_door_admit(tti_wire *w)
{
    zmq_msg_t f[TTI_ZAP_MOST];
    int n = tti_wire_take(w->zap, f, TTI_COUNT(f));
    if (n == 0)
        return false;
    if (n > TTI_ZAP_ID && n <= TTI_ZAP_MOST) {
        tti_frame frames[TTI_ZAP_MOST];
        for (int i = 0; i < n; i++)
            frames[i] = (tti_frame){zmq_msg_data(&f[i]), zmq_msg_size(&f[i])};
        int rank = tti_zap_who(frames, n, w->shown, w->n, w->no_encryption);
        char id[16] = "";
        if (rank >= 0)
            snprintf(id, sizeof(id), "%d", rank);
        else
            atomic_fetch_add(&w->n_refused, 1);
        const char *code = rank >= 0 ? "200" : "400", *text = rank >= 0 ? "OK" : "not of this job";
        (void)zmq_send(w->zap, zmq_msg_data(&f[0]), zmq_msg_size(&f[0]), ZMQ_SNDMORE);
        (void)zmq_send(w->zap, "", 0, ZMQ_SNDMORE);
        (void)zmq_send(w->zap, "1.0", 3, ZMQ_SNDMORE);
        (void)zmq_send(w->zap, zmq_msg_data(&f[TTI_ZAP_ID]), zmq_msg_size(&f[TTI_ZAP_ID]),
                       ZMQ_SNDMORE);
        (void)zmq_send(w->zap, code, 3, ZMQ_SNDMORE);
        (void)zmq_send(w->zap, text, strlen(text), ZMQ_SNDMORE);
        (void)zmq_send(w->zap, id, strlen(id), ZMQ_SNDMORE);
        (void)zmq_send(w->zap, "", 0, 0);
    }
    tti_wire_drop(f, n, TTI_COUNT(f));
    return true;
}

#endif
