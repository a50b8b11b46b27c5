/*
 * wire.c - connections by ZeroMQ (wire.h): sockets, control messages and receiving. Who is let in
 * is wire_accept.c's, data until it has arrived is wire_send.c's.
 *
 * Every socket that listens is a CURVE server and every one that connects a CURVE client, with the
 * key pairs of keys.c. Data may go without encryption: then each message ends with a seal, its
 * number and a tag that only the two ranks can make (mac.c), with keys that the receiver made at
 * random and told by its control connections.
 */
#include "net/wire.h"

#ifdef TUTTI_HAVE_ZMQ
#include "base/secure.h"
#include "net/wire_own.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define LOOK_NS INT64_C(10000000)

// ---- sockets ---------------------------------------------------------------------------------

void tti_wire_set(void *socket, int option, int value)
{
    (void)zmq_setsockopt(socket, option, &value, sizeof(value));
}

static void set_text(void *socket, int option, const char *value)
{
    (void)zmq_setsockopt(socket, option, value, strlen(value));
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
    tti_wire_set(s, ZMQ_SNDHWM, is_data ? TTI_WIRE_WINDOW : 1000);
    tti_wire_set(s, ZMQ_RCVHWM, is_data ? 32 : 1000);
    tti_wire_set(s, ZMQ_LINGER, 0);
    tti_wire_set(s, ZMQ_HANDSHAKE_IVL, 3000);
    tti_wire_set(s, ZMQ_CONNECT_TIMEOUT, 3000);
    tti_wire_set(s, ZMQ_RECONNECT_IVL, 20);
    tti_wire_set(s, ZMQ_RECONNECT_IVL_MAX, 200);
    tti_wire_set(s, ZMQ_IPV6, 1);
    set_text(s, ZMQ_ZAP_DOMAIN, "tutti");
    if (is_data && w->no_encryption) {
        if (server < 0)
            tti_wire_set(s, ZMQ_PLAIN_SERVER, 1);
        return s; // who connects has a password
    }
    if (server < 0)
        tti_wire_set(s, ZMQ_CURVE_SERVER, 1);
    else
        set_text(s, ZMQ_CURVE_SERVERKEY, w->public_keys[server]);
    set_text(s, ZMQ_CURVE_PUBLICKEY, w->public_keys[w->self]);
    set_text(s, ZMQ_CURVE_SECRETKEY, w->secrets->own_key);
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
 * malloc gives the pages of a large message back to the system when it can, and the system clears
 * new ones for the next. It keeps them once a block as large as all of these has come back.
 */
static void keep_pages(void)
{
    zmq_msg_t m;
    if (zmq_msg_init_size(&m, TTI_WIRE_WINDOW * TTI_WIRE_CHUNK / 2) == 0)
        zmq_msg_close(&m);
}

static tt_status open_sockets(tti_wire *w, const tti_wire_opts *o)
{
    if (zmq_ctx_new == NULL)
        return TT_FAIL(w->ctx, TT_EUNSUPPORTED,
                       "%d tasks, but this program is linked statically without ZeroMQ: one "
                       "process; link it with the shared libtutti or libzmq",
                       w->n);
    TT_TRY(tti_wire_check_files(w->ctx, w->n));
    w->zmq = zmq_ctx_new();
    w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w->zmq == NULL || w->wake_fd < 0)
        return TT_FAIL(w->ctx, TT_EIO, "wire: %s", strerror(errno));
    (void)zmq_ctx_set(w->zmq, ZMQ_IO_THREADS, 2);
    keep_pages();
    TT_TRY(tti_wire_make_keys(w, o->secret));
    w->zap = zmq_socket(w->zmq, ZMQ_ROUTER);
    if (w->zap == NULL || zmq_bind(w->zap, "inproc://zeromq.zap.01") != 0)
        return TT_FAIL(w->ctx, TT_EIO, "wire: no authentication: %s", zmq_strerror(errno));
    tti_wire_set(w->zap, ZMQ_LINGER, 0);
    w->control = new_socket(w, ZMQ_ROUTER, false, -1);
    w->data = new_socket(w, ZMQ_PULL, true, -1);
    if (w->control == NULL || w->data == NULL)
        return TT_EIO;
    w->control_listener.monitor = monitor(w, w->control, "listener");
    w->data_listener.monitor = monitor(w, w->data, "data-listener");
    int port;
    TT_TRY(tti_listener_open(w, w->control, o->bind, &w->control_listener, &port));
    char any[128]; // a port that is free, on the same interface
    const char *colon = strrchr(o->bind, ':');
    snprintf(any, sizeof(any), "%.*s:0", (int)TTI_MIN(colon - o->bind, 120), o->bind);
    return tti_listener_open(w, w->data, any, &w->data_listener, &w->data_port);
}

// What there is by rank.
static tt_status make_room(tti_wire *w)
{
    int most = 2 * w->n + TTI_WIRE_STRANGERS;
    w->control_listener.most = w->data_listener.most = most;
    w->control_listener.connections = tti_calloc(w->ctx, (size_t)most, sizeof(tti_connection));
    w->data_listener.connections = tti_calloc(w->ctx, (size_t)most, sizeof(tti_connection));
    w->public_keys = tti_calloc(w->ctx, (size_t)w->n, sizeof(*w->public_keys));
    tti_wire_link *links = tti_calloc(w->ctx, (size_t)w->n, sizeof(*links));
    bool has_all = w->control_listener.connections != NULL && w->public_keys != NULL &&
                   w->data_listener.connections != NULL && links != NULL;
    if (!has_all)
        tti_free(w->ctx, links); // closing goes through those that are there
    else
        w->links = links;
    return has_all ? TT_OK : TT_ENOMEM;
}

tt_status tti_wire_open(tt_ctx *ctx, const tti_wire_opts *o, tti_wire **out)
{
    tti_wire *w = tti_calloc(ctx, 1, sizeof(*w));
    if (w == NULL)
        return TT_ENOMEM;
    *w = (tti_wire){.ctx = ctx, .n = o->n, .self = o->self, .no_encryption = o->no_encryption};
    w->is_meeting = true;
    w->wake_fd = -1;
    tt_status st = make_room(w);
    for (int i = 0; st == TT_OK && i < w->n; i++) {
        pthread_mutex_init(&w->links[i].mu, NULL);
        tti_send_queue_open(&w->links[i].data);
    }
    if (st == TT_OK)
        st = open_sockets(w, o);
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
    tti_wire_set(*s, ZMQ_LINGER, linger_ms);
    zmq_close(*s);
    *s = NULL;
}

static void end_monitor(void *socket, void **monitor)
{
    if (socket != NULL)
        (void)zmq_socket_monitor(socket, NULL, 0);
    close_socket(monitor, 0);
}

void tti_wire_forget(tti_wire *w, int rank)
{
    w->links[rank].is_lost = true;
}

void tti_wire_close(tti_wire *w, int linger_ms)
{
    for (int i = 0; w->links != NULL && i < w->n; i++) {
        tti_wire_link *l = &w->links[i];
        end_monitor(l->control, &l->monitor);
        end_monitor(l->data.socket, &l->data.monitor);
        close_socket(&l->control, l->is_lost ? 0 : linger_ms);
        close_socket(&l->data.socket, l->is_lost ? 0 : linger_ms);
        tti_send_queue_close(&l->data);
        pthread_mutex_destroy(&l->mu);
    }
    end_monitor(w->control, &w->control_listener.monitor);
    end_monitor(w->data, &w->data_listener.monitor);
    close_socket(&w->control, linger_ms);
    close_socket(&w->data, 0);
    close_socket(&w->zap, 0);
    while (w->zmq != NULL && zmq_ctx_term(w->zmq) != 0 && errno == EINTR)
        ;
    tti_listener_close(&w->control_listener);
    tti_listener_close(&w->data_listener);
    if (w->wake_fd >= 0)
        close(w->wake_fd);
    tti_secure_free(w->secrets, w->secrets_bytes);
    tti_free(w->ctx, w->control_listener.connections);
    tti_free(w->ctx, w->data_listener.connections);
    tti_free(w->ctx, w->public_keys);
    tti_free(w->ctx, w->links);
    tti_free(w->ctx, w);
}

int tti_wire_data_port(const tti_wire *w)
{
    return w->data_port;
}

const uint8_t *tti_wire_data_key(const tti_wire *w)
{
    return w->no_encryption ? w->secrets->data_key : NULL;
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
    tti_wire_link *l = &w->links[rank];
    char name[16];
    snprintf(name, sizeof(name), "%d", rank);
    const char *colon = strrchr(address, ':');
    bool bracket = address[0] == '[';
    if (colon != NULL)
        snprintf(l->host, sizeof(l->host), "%.*s", (int)(colon - address) - 2 * bracket,
                 address + bracket);
    l->control = new_socket(w, ZMQ_DEALER, false, rank);
    if (l->control == NULL)
        return TT_EIO;
    l->monitor = monitor(w, l->control, name);
    return connect_to(w, l->control, address);
}

tt_status tti_wire_connect_data(tti_wire *w, int rank, const char *address, const uint8_t *data_key)
{
    tti_send_queue *b = &w->links[rank].data;
    char name[24];
    snprintf(name, sizeof(name), "data-%d", rank);
    void *s = new_socket(w, ZMQ_PUSH, true, rank);
    if (s == NULL)
        return TT_EIO;
    if (w->no_encryption)
        tti_wire_use_key(w, rank, s, data_key);
    void *watched = monitor(w, s, name);
    pthread_mutex_lock(&b->mu);
    b->socket = s;
    b->monitor = watched; // the wire's thread looks at it from its next turn on
    pthread_mutex_unlock(&b->mu);
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

int tti_wire_forged(const tti_wire *w)
{
    return atomic_load(&w->n_forged);
}

// ---- sending ---------------------------------------------------------------------------------

void tti_wire_tell(tti_wire *w, int to, const void *message, size_t bytes)
{
    tti_wire_link *l = &w->links[to];
    pthread_mutex_lock(&l->mu);
    if (l->control != NULL) // with a thousand untold ones it is lost, which its silence will tell
        (void)zmq_send(l->control, message, bytes, ZMQ_DONTWAIT);
    pthread_mutex_unlock(&l->mu);
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

// ---- receiving -------------------------------------------------------------------------------

int tti_wire_take(void *socket, zmq_msg_t *f, int max)
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

void tti_wire_drop(zmq_msg_t *f, int n, int max)
{
    for (int i = 0; i < n && i < max; i++)
        zmq_msg_close(&f[i]);
}

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
    int n = tti_wire_take(w->control, f, 2);
    if (n == 2) {
        int from = sender(w, &f[1]);
        w->asking = &f[0];
        if (from >= 0)
            tti_listener_know(&w->control_listener, zmq_msg_get(&f[1], ZMQ_SRCFD));
        if (from >= 0)
            c->control(c->user, from, zmq_msg_data(&f[1]), zmq_msg_size(&f[1]));
        w->asking = NULL;
    }
    tti_wire_drop(f, n, 2);
    return n > 0;
}

static bool take_data(tti_wire *w, const tti_wire_calls *c)
{
    zmq_msg_t f[1];
    int n = tti_wire_take(w->data, f, 1);
    int from = n == 1 ? sender(w, &f[0]) : -1;
    size_t bytes = n == 1 ? zmq_msg_size(&f[0]) : 0;
    bool is_good = from >= 0;
    if (is_good && w->no_encryption)
        is_good = tti_wire_unseal(w, from, &f[0], &bytes);
    else if (is_good)
        tti_listener_know(&w->data_listener, zmq_msg_get(&f[0], ZMQ_SRCFD));
    if (is_good)
        c->data(c->user, from, zmq_msg_data(&f[0]), bytes);
    tti_wire_drop(f, n, 1);
    return n > 0;
}

// An answer to what was told: somebody refuses us.
static bool take_answer(tti_wire *w, int rank, const tti_wire_calls *c)
{
    zmq_msg_t f[1];
    int n = tti_wire_take(w->links[rank].control, f, 1);
    if (n == 1)
        c->control(c->user, rank, zmq_msg_data(&f[0]), zmq_msg_size(&f[0]));
    tti_wire_drop(f, n, 1);
    return n > 0;
}

int tti_wire_event(void *socket, int *value)
{
    zmq_msg_t f[2];
    uint16_t event = 0;
    int n = tti_wire_take(socket, f, 2);
    if (n >= 1 && zmq_msg_size(&f[0]) >= sizeof(event) + sizeof(*value)) {
        memcpy(&event, zmq_msg_data(&f[0]), sizeof(event));
        memcpy(value, (char *)zmq_msg_data(&f[0]) + sizeof(event), sizeof(*value));
    }
    tti_wire_drop(f, n, 2);
    return n > 0 ? event : -1;
}

#define CLOSED_NS 1000000000 // sooner than that it is not this side that gave up

static void watch_link(tti_wire_link *l)
{
    int value;
    for (int e; l->monitor != NULL && (e = tti_wire_event(l->monitor, &value)) >= 0;) {
        bool was_ready = atomic_load(&l->state) == TTI_WIRE_READY;
        if (e == ZMQ_EVENT_CONNECTED)
            l->connected_ns = tti_now_ns();
        else if (e == ZMQ_EVENT_DISCONNECTED && tti_now_ns() - l->connected_ns < CLOSED_NS)
            l->n_closed++;
        atomic_store(&l->state, e == ZMQ_EVENT_HANDSHAKE_SUCCEEDED || was_ready ? TTI_WIRE_READY
                                : l->n_closed > 1                               ? TTI_WIRE_REFUSES
                                                                                : TTI_WIRE_ANSWERS);
    }
}

static void add(zmq_pollitem_t *items, int *n, void *socket)
{
    if (socket != NULL)
        items[(*n)++] = (zmq_pollitem_t){.socket = socket, .events = ZMQ_POLLIN};
}

void tti_wire_serve(tti_wire *w, int timeout_ms, const tti_wire_calls *c)
{
    zmq_pollitem_t items[6] = {{.fd = w->wake_fd, .events = ZMQ_POLLIN}};
    int n = 1;
    add(items, &n, w->zap);
    add(items, &n, w->control);
    add(items, &n, w->data);
    add(items, &n, w->control_listener.monitor);
    add(items, &n, w->data_listener.monitor);
    (void)zmq_poll(items, n, timeout_ms);
    uint64_t woken;
    ssize_t got = read(w->wake_fd, &woken, sizeof(woken));
    (void)got;
    tti_listener_watch(w, &w->control_listener);
    tti_listener_watch(w, &w->data_listener);
    for (int i = 0; i < 64 && tti_listener_admit(w); i++)
        ;
    for (int i = 0; i < 64 && take_control(w, c); i++)
        ;
    for (int i = 0; i < 64 && take_data(w, c); i++)
        ;
    // Of links to others little is new: each call would ask for all of them.
    int64_t now = tti_now_ns();
    bool looks = now - w->looked_ns >= LOOK_NS;
    w->looked_ns = looks ? now : w->looked_ns;
    for (int i = 0; i < w->n; i++) {
        while (looks && w->is_meeting && w->links[i].control != NULL && take_answer(w, i, c))
            ;
        if (looks && w->is_meeting)
            watch_link(&w->links[i]);
        tti_send_queue_watch(w, i, looks);
    }
}

#endif
