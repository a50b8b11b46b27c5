/*
 * wire_accept.c - where the wire listens and who is let in (wire.h).
 *
 * The handler of ZeroMQ's authentication protocol (ZAP), on the wire's own thread, admits a key
 * only if it is that of a rank of the job and names the connection by the rank. What is not
 * admitted is bounded in size, in time (the handshake's deadline) and in number: with too many
 * strangers, those that came first are cut off, so that a rank that comes now has its
 * turn. Listening rests only while they come faster than that.
 */
#include "net/wire.h"

#ifdef TUTTI_HAVE_ZMQ
#include "net/wire_own.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG       64
#define STRANGERS     64 // connections by which nothing of a rank has come yet: then some go
#define FROM_ONE_HOST 16 // the same, of one host that no rank is known to be at

/*
 * Listens by a socket of our own, so that listening can stop without closing it: ZeroMQ would
 * drop everyone who came through it.
 */
tt_status tti_listener_open(tti_wire *w, void *socket_, const char *at, tti_listener *d, int *port)
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
                       err == EADDRINUSE
                           ? "; this task may have been started twice, or another program uses the "
                             "port (a port in a hosts file is Tutti's, not that of ssh): use "
                             "another port, or none"
                       : err == EACCES ? "; ports below 1024 are the system's: use another port"
                                       : "");
    }
    d->fd = s;
    d->port = *port;
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

// ---- who is there ----------------------------------------------------------------------------

static void forget(tti_listener *d, int i)
{
    if (d->connections[i].own >= 0)
        close(d->connections[i].own);
    d->n_connections--;
    memmove(&d->connections[i], &d->connections[i + 1],
            (size_t)(d->n_connections - i) * sizeof(d->connections[0]));
}

static int find(const tti_listener *d, int fd)
{
    for (int i = d->n_connections - 1; i >= 0; i--) // a number is used again: the last one has it
        if (d->connections[i].fd == fd)
            return i;
    return -1;
}

// The number of a host without its port; an IPv4 one is the same by either family.
static void host_of(const struct sockaddr_storage *a, socklen_t bytes, char out[TTI_HOST_TEXT])
{
    char text[64] = "";
    (void)getnameinfo((const struct sockaddr *)a, bytes, text, sizeof(text), NULL, 0,
                      NI_NUMERICHOST);
    snprintf(out, TTI_HOST_TEXT, "%.47s", strncmp(text, "::ffff:", 7) == 0 ? text + 7 : text);
}

// ZeroMQ may have closed it again: what has its number now counts if it is of this listener, too.
static void welcome(tti_listener *d, int fd)
{
    struct sockaddr_storage here = {.ss_family = AF_UNSPEC}, there = here;
    socklen_t n = sizeof(here), m = sizeof(there);
    int old = find(d, fd), own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (old >= 0)
        forget(d, old);
    if (own < 0)
        return;
    int port = 0;
    if (getsockname(own, (struct sockaddr *)&here, &n) == 0 &&
        getpeername(own, (struct sockaddr *)&there, &m) == 0)
        port = ntohs(here.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&here)->sin6_port
                                                : ((struct sockaddr_in *)&here)->sin_port);
    if (port != d->port || d->n_connections == d->most) {
        if (port == d->port)
            (void)shutdown(own, SHUT_RDWR);
        close(own);
        return;
    }
    tti_connection *c = &d->connections[d->n_connections++];
    *c = (tti_connection){.fd = fd, .own = own};
    host_of(&there, m, c->host);
}

void tti_listener_know(tti_listener *d, int fd)
{
    int i = find(d, fd);
    if (i < 0 || d->connections[i].is_known)
        return;
    d->connections[i].is_known = true;
    close(d->connections[i].own);
    d->connections[i].own = -1;
}

static void turn_away(tti_connection *c)
{
    c->is_turned = true;
    (void)shutdown(c->own, SHUT_RDWR); // ZeroMQ sees its end and drops it
}

void tti_listener_cut(tti_listener *d, int fd)
{
    int i = find(d, fd);
    if (i < 0 || d->connections[i].is_turned)
        return;
    if (d->connections[i].own < 0) // it was a rank's until now
        d->connections[i].own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (d->connections[i].own >= 0)
        turn_away(&d->connections[i]);
}

void tti_listener_close(tti_listener *d)
{
    while (d->n_connections > 0)
        forget(d, d->n_connections - 1);
}

// ---- who has to go ---------------------------------------------------------------------------

static bool is_stranger(const tti_connection *c)
{
    return !c->is_known && !c->is_turned;
}

static bool is_of_a_rank(const tti_wire *w, const char *host)
{
    for (int i = 0; i < w->n; i++)
        if (strcmp(w->links[i].host, host) == 0)
            return true;
    return false;
}

// Places are kept for hosts of the job: others go first, from the host that has most of them, and
// there the one that came first. True: one had to go.
static bool turn_one_away(tti_wire *w, tti_listener *d)
{
    int worst = -1, most = 0, all = 0;
    for (int i = 0; i < d->n_connections; i++) {
        const tti_connection *c = &d->connections[i];
        int same = 0;
        if (!is_stranger(c))
            continue;
        all++;
        for (int k = 0; k < d->n_connections; k++)
            same += is_stranger(&d->connections[k]) && strcmp(d->connections[k].host, c->host) == 0;
        int weight = is_of_a_rank(w, c->host) ? same - STRANGERS : STRANGERS + same - FROM_ONE_HOST;
        if (worst < 0 || weight > most) {
            worst = i;
            most = weight;
        }
    }
    if (all <= STRANGERS && most <= STRANGERS)
        return false;
    turn_away(&d->connections[worst]);
    return true;
}

void tti_listener_watch(tti_wire *w, tti_listener *d)
{
    int e, fd, n_strangers = 0;
    while (d->monitor != NULL && (e = tti_wire_event(d->monitor, &fd)) >= 0) {
        int i = e == ZMQ_EVENT_DISCONNECTED ? find(d, fd) : -1;
        if (i >= 0)
            forget(d, i);
        if (e == ZMQ_EVENT_ACCEPTED)
            welcome(d, fd);
    }
    for (int i = 0; i < d->n_connections; i++)
        n_strangers += !d->connections[i].is_known;
    if (n_strangers > FROM_ONE_HOST)
        while (turn_one_away(w, d))
            ;
    bool too_many = n_strangers > (d->is_resting ? 2 : 3) * STRANGERS;
    if (too_many != d->is_resting)
        shut(d->fd, too_many);
    d->is_resting = too_many;
}

bool tti_listener_admit(tti_wire *w)
{
    zmq_msg_t f[TTI_ZAP_MOST];
    int n = tti_wire_take(w->zap, f, TTI_COUNT(f));
    if (n == 0)
        return false;
    if (n > TTI_ZAP_ID && n <= TTI_ZAP_MOST) {
        tti_frame frames[TTI_ZAP_MOST];
        for (int i = 0; i < n; i++)
            frames[i] = (tti_frame){zmq_msg_data(&f[i]), zmq_msg_size(&f[i])};
        int rank = tti_auth_rank(frames, n, w->secrets->shown, w->n, w->no_encryption);
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
