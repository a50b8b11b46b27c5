/*
 * wire.c - connections by ZeroMQ (wire.h).
 *
 * Every socket that listens is a CURVE server and every one that connects a CURVE client, with the
 * key pairs of keys.c; the handler of ZeroMQ's authentication protocol (ZAP), on the wire's own
 * thread, admits a key only if it is that of a rank of the job and names the connection by the
 * rank. What is not admitted is bounded in size, in time (the handshake's deadline) and in number:
 * with too many strangers at the door, listening rests until they have gone.
 *
 * A connection that breaks is made again by ZeroMQ, but what was on its way may be lost. So data
 * messages are kept until the other side has told that it took them, and those that it has not told
 * of are sent once more over a new connection; it knows them by their numbers.
 */
#include "comm/wire.h"
#include "comm/keys.h"
#include "comm/zap.h"
#include <errno.h>
#include <linux/filter.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#ifdef TUTTI_HAVE_ZMQ
#include <zmq.h>

#define BACKLOG   64
#define STRANGERS 64 // connections beyond the ranks' own that make listening rest
#define WINDOW    64 // data messages that may be on their way to a rank

typedef struct key_pair {
    char public_key[41], secret_key[41]; // as text: Z85
} key_pair;

typedef struct peer_link {
    void *control, *data, *monitor, *data_monitor;
    _Atomic int state;
    pthread_mutex_t mu, data_mu; // guard control and data
    // Guarded by data_mu:
    pthread_cond_t room;
    zmq_msg_t kept[WINDOW];          // messages [n_taken, n_put), by number
    uint32_t n_put, n_sent, n_taken; // given to us, given to ZeroMQ, taken by the rank
    bool is_broken;
    _Atomic bool is_behind; // some could not be given to ZeroMQ
} peer_link;

typedef struct door { // where a socket listens
    void *monitor;
    int fd, n_inside; // connections that it has
    bool is_resting;  // it does not listen: there are too many
} door;

struct tti_wire {
    tt_ctx *ctx;
    int n, self;
    bool no_encryption, is_meeting;
    void *zmq, *zap, *control, *data;
    door control_door, data_door;
    int wake_fd, data_port;
    _Atomic int n_refused;
    zmq_msg_t *asking; // whose message is being taken: its route
    peer_link links[TT_MAX_TASKS];
    key_pair keys[TT_MAX_TASKS];
    tti_zap_key shown[TT_MAX_TASKS]; // what each rank shows
};

// ---- sockets ---------------------------------------------------------------------------------

static void set_int(void *socket, int option, int value)
{
    (void)zmq_setsockopt(socket, option, &value, sizeof(value));
}

static void set_text(void *socket, int option, const char *value)
{
    (void)zmq_setsockopt(socket, option, value, strlen(value));
}

static tt_status make_keys(tti_wire *w, const uint8_t *secret)
{
    for (int i = 0; i < w->n; i++) {
        key_pair *k = &w->keys[i];
        tti_digest d = tti_derive(secret, "curve", i), p = tti_derive(secret, "data", i);
        zmq_z85_encode(k->secret_key, d.byte, sizeof(d.byte));
        if (zmq_curve_public(k->public_key, k->secret_key) != 0)
            return TT_FAIL(w->ctx, TT_EUNSUPPORTED, "this ZeroMQ has no encryption: %s",
                           zmq_strerror(errno));
        zmq_z85_decode(w->shown[i].public_bytes, k->public_key);
        for (int b = 0; b < 32; b++)
            snprintf(w->shown[i].password + (size_t)2 * b, 3, "%02x", p.byte[b]);
    }
    return TT_OK;
}

// A socket with its bounds and keys; server < 0: it listens, else connects to that rank.
static void *new_socket(tti_wire *w, int type, bool is_data, int server)
{
    void *s = zmq_socket(w->zmq, type);
    if (s == NULL) {
        (void)TT_FAIL(w->ctx, TT_EIO, "wire: no socket: %s", zmq_strerror(errno));
        return NULL;
    }
    int64_t most = (int64_t)(is_data ? TTI_WIRE_CHUNK : TTI_WIRE_CONTROL) + 256; // and encryption
    (void)zmq_setsockopt(s, ZMQ_MAXMSGSIZE, &most, sizeof(most));
    set_int(s, ZMQ_SNDHWM, is_data ? WINDOW : 1000);
    set_int(s, ZMQ_RCVHWM, is_data ? 32 : 1000);
    set_int(s, ZMQ_LINGER, 0);
    set_int(s, ZMQ_HANDSHAKE_IVL, 3000);
    set_int(s, ZMQ_CONNECT_TIMEOUT, 3000);
    set_int(s, ZMQ_RECONNECT_IVL, 20);
    set_int(s, ZMQ_RECONNECT_IVL_MAX, 200);
    set_int(s, ZMQ_IPV6, 1);
    set_text(s, ZMQ_ZAP_DOMAIN, "tutti");
    const key_pair *own = &w->keys[w->self];
    if (is_data && w->no_encryption && server < 0) {
        set_int(s, ZMQ_PLAIN_SERVER, 1);
    } else if (is_data && w->no_encryption) {
        char name[16];
        snprintf(name, sizeof(name), "%d", w->self);
        set_text(s, ZMQ_PLAIN_USERNAME, name);
        set_text(s, ZMQ_PLAIN_PASSWORD, w->shown[w->self].password);
    } else {
        if (server < 0)
            set_int(s, ZMQ_CURVE_SERVER, 1);
        else
            set_text(s, ZMQ_CURVE_SERVERKEY, w->keys[server].public_key);
        set_text(s, ZMQ_CURVE_PUBLICKEY, own->public_key);
        set_text(s, ZMQ_CURVE_SECRETKEY, own->secret_key);
    }
    return s;
}

static void *monitor(tti_wire *w, void *socket, const char *name)
{
    int events = ZMQ_EVENT_CONNECTED | ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED |
                 ZMQ_EVENT_HANDSHAKE_SUCCEEDED;
    char at[64];
    snprintf(at, sizeof(at), "inproc://watch-%s", name);
    if (zmq_socket_monitor(socket, at, events) != 0)
        return NULL;
    void *s = zmq_socket(w->zmq, ZMQ_PAIR);
    if (s != NULL && zmq_connect(s, at) != 0) {
        zmq_close(s);
        s = NULL;
    }
    return s;
}

/*
 * Listens by a socket of our own, so that the door can be shut without closing it: ZeroMQ would
 * drop everyone who came through it.
 */
static tt_status listen_at(tti_wire *w, void *socket_, const char *at, int *fd, int *port)
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
        set_int(socket_, ZMQ_USE_FD, s);
    if (!ok || zmq_bind(socket_, url) != 0) {
        int err = errno;
        if (s >= 0)
            close(s);
        return TT_FAIL(w->ctx, TT_EIO, "cannot listen at %s: %s%s", at, strerror(err),
                       err == EADDRINUSE ? "; this task may have been started twice" : "");
    }
    *fd = s;
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

static tt_status open_sockets(tti_wire *w, const tti_wire_opts *o)
{
    w->zmq = zmq_ctx_new();
    w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w->zmq == NULL || w->wake_fd < 0)
        return TT_FAIL(w->ctx, TT_EIO, "wire: %s", strerror(errno));
    (void)zmq_ctx_set(w->zmq, ZMQ_IO_THREADS, 2);
    TT_TRY(make_keys(w, o->secret));
    w->zap = zmq_socket(w->zmq, ZMQ_ROUTER);
    if (w->zap == NULL || zmq_bind(w->zap, "inproc://zeromq.zap.01") != 0)
        return TT_FAIL(w->ctx, TT_EIO, "wire: no authentication: %s", zmq_strerror(errno));
    set_int(w->zap, ZMQ_LINGER, 0);
    w->control = new_socket(w, ZMQ_ROUTER, false, -1);
    w->data = new_socket(w, ZMQ_PULL, true, -1);
    if (w->control == NULL || w->data == NULL)
        return TT_EIO;
    w->control_door.monitor = monitor(w, w->control, "door");
    w->data_door.monitor = monitor(w, w->data, "data-door");
    int port;
    TT_TRY(listen_at(w, w->control, o->bind, &w->control_door.fd, &port));
    char any[128]; // a port that is free, on the same interface
    const char *colon = strrchr(o->bind, ':');
    snprintf(any, sizeof(any), "%.*s:0", (int)TTI_MIN(colon - o->bind, 120), o->bind);
    return listen_at(w, w->data, any, &w->data_door.fd, &w->data_port);
}

tt_status tti_wire_open(tt_ctx *ctx, const tti_wire_opts *o, tti_wire **out)
{
    tti_wire *w = tti_calloc(ctx, 1, sizeof(*w));
    if (w == NULL)
        return TT_ENOMEM;
    *w = (tti_wire){.ctx = ctx, .n = o->n, .self = o->self, .no_encryption = o->no_encryption};
    w->is_meeting = true;
    w->wake_fd = -1;
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    for (int i = 0; i < w->n; i++) {
        pthread_mutex_init(&w->links[i].mu, NULL);
        pthread_mutex_init(&w->links[i].data_mu, NULL);
        pthread_cond_init(&w->links[i].room, &attr);
    }
    pthread_condattr_destroy(&attr);
    tt_status st = open_sockets(w, o);
    if (st != TT_OK) {
        tti_wire_close(w, 0);
        return st;
    }
    *out = w;
    return TT_OK;
}

static void close_socket(void **s, int linger_ms)
{
    if (*s == NULL)
        return;
    set_int(*s, ZMQ_LINGER, linger_ms);
    zmq_close(*s);
    *s = NULL;
}

static void end_monitor(void *socket, void **monitor)
{
    if (socket != NULL)
        (void)zmq_socket_monitor(socket, NULL, 0);
    close_socket(monitor, 0);
}

void tti_wire_close(tti_wire *w, int linger_ms)
{
    for (int i = 0; i < w->n; i++) {
        peer_link *l = &w->links[i];
        end_monitor(l->control, &l->monitor);
        end_monitor(l->data, &l->data_monitor);
        close_socket(&l->control, linger_ms);
        close_socket(&l->data, linger_ms);
        for (; l->n_taken != l->n_put; l->n_taken++)
            zmq_msg_close(&l->kept[l->n_taken % WINDOW]);
        pthread_mutex_destroy(&l->mu);
        pthread_mutex_destroy(&l->data_mu);
        pthread_cond_destroy(&l->room);
    }
    end_monitor(w->control, &w->control_door.monitor);
    end_monitor(w->data, &w->data_door.monitor);
    close_socket(&w->control, linger_ms);
    close_socket(&w->data, 0);
    close_socket(&w->zap, 0);
    while (w->zmq != NULL && zmq_ctx_term(w->zmq) != 0 && errno == EINTR)
        ;
    if (w->wake_fd >= 0)
        close(w->wake_fd);
    explicit_bzero(w->keys, sizeof(w->keys));
    explicit_bzero(w->shown, sizeof(w->shown));
    tti_free(w->ctx, w);
}

int tti_wire_data_port(const tti_wire *w)
{
    return w->data_port;
}

static tt_status connect_to(tti_wire *w, void *socket, const char *address)
{
    char url[160];
    snprintf(url, sizeof(url), "tcp://%.140s", address);
    if (zmq_connect(socket, url) != 0)
        return TT_FAIL(w->ctx, TT_EIO, "cannot connect to %s: %s", address, zmq_strerror(errno));
    return TT_OK;
}

tt_status tti_wire_connect(tti_wire *w, int rank, const char *address)
{
    peer_link *l = &w->links[rank];
    char name[16];
    snprintf(name, sizeof(name), "%d", rank);
    l->control = new_socket(w, ZMQ_DEALER, false, rank);
    if (l->control == NULL)
        return TT_EIO;
    l->monitor = monitor(w, l->control, name);
    return connect_to(w, l->control, address);
}

tt_status tti_wire_connect_data(tti_wire *w, int rank, const char *address)
{
    peer_link *l = &w->links[rank];
    char name[24];
    snprintf(name, sizeof(name), "data-%d", rank);
    void *s = new_socket(w, ZMQ_PUSH, true, rank);
    if (s == NULL)
        return TT_EIO;
    void *watched = monitor(w, s, name);
    pthread_mutex_lock(&l->data_mu);
    l->data = s;
    l->data_monitor = watched; // the wire's thread looks at it from its next turn on
    pthread_mutex_unlock(&l->data_mu);
    return connect_to(w, s, address);
}

tti_wire_state tti_wire_state_of(const tti_wire *w, int rank)
{
    return (tti_wire_state)atomic_load(&w->links[rank].state);
}

int tti_wire_refused(const tti_wire *w)
{
    return atomic_load(&w->n_refused);
}

// ---- sending ---------------------------------------------------------------------------------

void tti_wire_tell(tti_wire *w, int to, const void *message, size_t bytes)
{
    peer_link *l = &w->links[to];
    pthread_mutex_lock(&l->mu);
    if (l->control != NULL) // with a thousand untold ones it is lost, which its silence will tell
        (void)zmq_send(l->control, message, bytes, ZMQ_DONTWAIT);
    pthread_mutex_unlock(&l->mu);
}

// Gives ZeroMQ what it has not got yet; with data_mu held.
static void pump(peer_link *l)
{
    bool is_behind = false;
    while (l->n_sent != l->n_put && !is_behind) {
        zmq_msg_t m;
        zmq_msg_init(&m);
        is_behind = zmq_msg_copy(&m, &l->kept[l->n_sent % WINDOW]) != 0 ||
                    zmq_msg_send(&m, l->data, ZMQ_DONTWAIT) < 0;
        if (is_behind)
            zmq_msg_close(&m);
        else
            l->n_sent++;
    }
    atomic_store(&l->is_behind, is_behind);
}

static void await_room(peer_link *l, int wait_ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)wait_ms * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (l->n_put - l->n_taken == WINDOW)
        if (pthread_cond_timedwait(&l->room, &l->data_mu, &until) != 0)
            return;
}

tt_status tti_wire_put(tti_wire *w, int to, const void *head, size_t head_bytes, const void *data,
                       size_t bytes, int wait_ms)
{
    peer_link *l = &w->links[to];
    tt_status st = TT_OK;
    pthread_mutex_lock(&l->data_mu);
    await_room(l, wait_ms);
    zmq_msg_t *m = &l->kept[l->n_put % WINDOW];
    if (l->n_put - l->n_taken == WINDOW) {
        st = TT_ETIMEOUT;
    } else if (zmq_msg_init_size(m, head_bytes + bytes) != 0) {
        st = TT_FAIL(w->ctx, TT_ENOMEM, "wire: no memory for a message");
    } else {
        memcpy(zmq_msg_data(m), head, head_bytes);
        if (bytes > 0)
            memcpy((char *)zmq_msg_data(m) + head_bytes, data, bytes);
        l->n_put++;
        pump(l);
    }
    pthread_mutex_unlock(&l->data_mu);
    return st;
}

void tti_wire_taken(tti_wire *w, int by, uint32_t n)
{
    peer_link *l = &w->links[by];
    pthread_mutex_lock(&l->data_mu);
    if (l->data != NULL && n - l->n_taken <= l->n_put - l->n_taken) {
        bool was_sent = l->n_sent - l->n_taken >= n - l->n_taken;
        for (; l->n_taken != n; l->n_taken++)
            zmq_msg_close(&l->kept[l->n_taken % WINDOW]);
        l->n_sent = was_sent ? l->n_sent : n;
        pump(l);
        pthread_cond_broadcast(&l->room);
    }
    pthread_mutex_unlock(&l->data_mu);
}

bool tti_wire_has_taken(tti_wire *w, int rank)
{
    peer_link *l = &w->links[rank];
    pthread_mutex_lock(&l->data_mu);
    bool has = l->n_taken == l->n_put;
    pthread_mutex_unlock(&l->data_mu);
    return has;
}

void tti_wire_answer(tti_wire *w, const void *message, size_t bytes)
{
    if (w->asking == NULL)
        return;
    size_t n = zmq_msg_size(w->asking);
    if (zmq_send(w->control, zmq_msg_data(w->asking), n, ZMQ_SNDMORE | ZMQ_DONTWAIT) >= 0)
        (void)zmq_send(w->control, message, bytes, ZMQ_DONTWAIT);
}

void tti_wire_met(tti_wire *w)
{
    w->is_meeting = false;
    for (int i = 0; i < w->n; i++)
        end_monitor(w->links[i].control, &w->links[i].monitor);
}

void tti_wire_wake(tti_wire *w)
{
    uint64_t one = 1;
    ssize_t n = write(w->wake_fd, &one, sizeof(one));
    (void)n; // full is awake
}

// ---- who is admitted -------------------------------------------------------------------------

// Takes all frames of a message, at most max; the number there were.
static int take(void *socket, zmq_msg_t *f, int max)
{
    int n = 0;
    for (bool more = true; more;) {
        zmq_msg_t extra, *m = n < max ? &f[n] : &extra;
        zmq_msg_init(m);
        if (zmq_msg_recv(m, socket, ZMQ_DONTWAIT) < 0) {
            zmq_msg_close(m);
            break;
        }
        more = zmq_msg_more(m) != 0;
        if (n >= max)
            zmq_msg_close(m);
        n++;
    }
    return n;
}

static void drop(zmq_msg_t *f, int n, int max)
{
    for (int i = 0; i < n && i < max; i++)
        zmq_msg_close(&f[i]);
}

static bool admit_one(tti_wire *w)
{
    zmq_msg_t f[TTI_ZAP_MOST];
    int n = take(w->zap, f, TTI_COUNT(f));
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
    drop(f, n, TTI_COUNT(f));
    return true;
}

// ---- receiving -------------------------------------------------------------------------------

static int sender(tti_wire *w, zmq_msg_t *m)
{
    const char *id = zmq_msg_gets(m, "User-Id");
    int rank = 0;
    if (id == NULL || *id == '\0')
        return -1;
    for (; *id >= '0' && *id <= '9'; id++)
        rank = 10 * rank + (*id - '0');
    return rank < w->n && rank != w->self ? rank : -1;
}

static bool take_control(tti_wire *w, const tti_wire_calls *c)
{
    zmq_msg_t f[2];
    int n = take(w->control, f, 2);
    if (n == 2) {
        int from = sender(w, &f[1]);
        w->asking = &f[0];
        if (from >= 0)
            c->control(c->user, from, zmq_msg_data(&f[1]), zmq_msg_size(&f[1]));
        w->asking = NULL;
    }
    drop(f, n, 2);
    return n > 0;
}

static bool take_data(tti_wire *w, const tti_wire_calls *c)
{
    zmq_msg_t f[1];
    int n = take(w->data, f, 1);
    int from = n == 1 ? sender(w, &f[0]) : -1;
    if (from >= 0)
        c->data(c->user, from, zmq_msg_data(&f[0]), zmq_msg_size(&f[0]));
    drop(f, n, 1);
    return n > 0;
}

// An answer to what was told: somebody refuses us.
static bool take_answer(tti_wire *w, int rank, const tti_wire_calls *c)
{
    zmq_msg_t f[1];
    int n = take(w->links[rank].control, f, 1);
    if (n == 1)
        c->control(c->user, rank, zmq_msg_data(&f[0]), zmq_msg_size(&f[0]));
    drop(f, n, 1);
    return n > 0;
}

static int take_event(void *socket)
{
    zmq_msg_t f[2];
    uint16_t event = 0;
    int n = take(socket, f, 2);
    if (n >= 1 && zmq_msg_size(&f[0]) >= sizeof(event))
        memcpy(&event, zmq_msg_data(&f[0]), sizeof(event));
    drop(f, n, 2);
    return n > 0 ? event : -1;
}

static void watch_link(peer_link *l)
{
    for (int e; l->monitor != NULL && (e = take_event(l->monitor)) >= 0;)
        atomic_store(&l->state, e == ZMQ_EVENT_HANDSHAKE_SUCCEEDED         ? TTI_WIRE_READY
                                : atomic_load(&l->state) == TTI_WIRE_READY ? TTI_WIRE_READY
                                                                           : TTI_WIRE_ANSWERS);
}

// A new connection for data: what the rank has not told of goes over it once more.
static void watch_data(tti_wire *w, int rank)
{
    peer_link *l = &w->links[rank];
    int e;
    while (l->data_monitor != NULL && (e = take_event(l->data_monitor)) >= 0) {
        pthread_mutex_lock(&l->data_mu);
        bool again = l->is_broken && e == ZMQ_EVENT_HANDSHAKE_SUCCEEDED;
        uint32_t n = l->n_put - l->n_taken;
        l->is_broken = (l->is_broken || e == ZMQ_EVENT_DISCONNECTED) && !again;
        if (again) {
            l->n_sent = l->n_taken;
            pump(l);
        }
        pthread_mutex_unlock(&l->data_mu);
        if (again)
            TT_LOG(w->ctx, TT_INFO,
                   "the link to rank %d broke and is made again; %u messages sent "
                   "once more",
                   rank, n);
    }
    if (atomic_load(&l->is_behind)) {
        pthread_mutex_lock(&l->data_mu);
        pump(l);
        pthread_mutex_unlock(&l->data_mu);
    }
}

// Counts who is inside, and lets listening rest when these are too many.
static void watch_door(tti_wire *w, door *d)
{
    int e;
    while (d->monitor != NULL && (e = take_event(d->monitor)) >= 0)
        d->n_inside += e == ZMQ_EVENT_ACCEPTED ? 1 : e == ZMQ_EVENT_DISCONNECTED ? -1 : 0;
    bool too_many = d->n_inside > w->n + STRANGERS;
    if (too_many != d->is_resting)
        shut(d->fd, too_many);
    d->is_resting = too_many;
}

static void add(zmq_pollitem_t *items, int *n, void *socket)
{
    if (socket != NULL)
        items[(*n)++] = (zmq_pollitem_t){.socket = socket, .events = ZMQ_POLLIN};
}

void tti_wire_serve(tti_wire *w, int timeout_ms, const tti_wire_calls *c)
{
    zmq_pollitem_t items[6 + 3 * TT_MAX_TASKS] = {{.fd = w->wake_fd, .events = ZMQ_POLLIN}};
    int n = 1;
    add(items, &n, w->zap);
    add(items, &n, w->control);
    add(items, &n, w->data);
    add(items, &n, w->control_door.monitor);
    add(items, &n, w->data_door.monitor);
    for (int i = 0; i < w->n; i++) {
        if (w->is_meeting) {
            add(items, &n, w->links[i].control);
            add(items, &n, w->links[i].monitor);
        }
        pthread_mutex_lock(&w->links[i].data_mu);
        add(items, &n, w->links[i].data_monitor);
        pthread_mutex_unlock(&w->links[i].data_mu);
    }
    (void)zmq_poll(items, n, timeout_ms);
    uint64_t woken;
    ssize_t got = read(w->wake_fd, &woken, sizeof(woken));
    (void)got;
    watch_door(w, &w->control_door);
    watch_door(w, &w->data_door);
    for (int i = 0; i < 64 && admit_one(w); i++)
        ;
    for (int i = 0; i < 64 && take_control(w, c); i++)
        ;
    for (int i = 0; i < 64 && take_data(w, c); i++)
        ;
    for (int i = 0; i < w->n; i++) {
        while (w->is_meeting && w->links[i].control != NULL && take_answer(w, i, c))
            ;
        if (w->is_meeting)
            watch_link(&w->links[i]);
        watch_data(w, i);
    }
}

#endif
