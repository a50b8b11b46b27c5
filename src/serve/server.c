/*
 * server.c - the sockets of a server. One thread has the router socket: it puts requests together
 * from their parts, hands them to the threads of their connections (server_peers.c) and sends
 * answers part by part as the clients take them. It never waits for a client.
 */
#include "serve/serve.h"

#ifdef TUTTI_HAVE_ZMQ
#include "base/ctx.h"
#include "net/zmq_weak.h"
#include "serve/server_own.h"
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define TICK_MS 50
#define AT_ONCE 64 // messages that are taken before others have their turn
#define BACKLOG 128
#define KEEP    ((int64_t)64 << 20) // room of an answer that is kept

// ---- opening ---------------------------------------------------------------------------------

static void set(void *s, int option, int value)
{
    (void)zmq_setsockopt(s, option, &value, sizeof(value));
}

tt_status tti_listening_open(tt_ctx *ctx, const char *bind_to, tti_listening **out, int *port)
{
    char host[TTI_ADDRESS];
    snprintf(host, sizeof(host), "%s", bind_to);
    char *colon = strrchr(host, ':');
    if (zmq_ctx_new == NULL)
        return TT_FAIL(ctx, TT_EUNSUPPORTED,
                       "a server needs ZeroMQ, and this program is linked without it");
    if (colon == NULL)
        return TT_FAIL(ctx, TT_EINVAL, "cannot listen at '%s': it is not host:port", bind_to);
    *colon = '\0';
    bool bracket = host[0] == '[' && colon[-1] == ']';
    if (bracket)
        colon[-1] = '\0';
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *to = NULL;
    int rc = getaddrinfo(host + bracket, colon + 1, &hints, &to);
    if (rc != 0)
        return TT_FAIL(ctx, TT_EIO, "cannot listen at %s: %s", bind_to, gai_strerror(rc));
    tti_listening *l = tti_calloc(ctx, 1, sizeof(*l));
    if (l == NULL) {
        freeaddrinfo(to);
        return TT_ENOMEM;
    }
    *l = (tti_listening){.ctx = ctx, .wake_fd = -1};
    pthread_mutex_init(&l->mu, NULL);
    int one = 1;
    l->fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_storage name = {.ss_family = AF_UNSPEC};
    socklen_t n = sizeof(name);
    if (l->fd >= 0)
        (void)setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    bool ok = l->fd >= 0 && bind(l->fd, to->ai_addr, to->ai_addrlen) == 0 &&
              listen(l->fd, BACKLOG) == 0 && getsockname(l->fd, (struct sockaddr *)&name, &n) == 0;
    int err = errno;
    freeaddrinfo(to);
    if (!ok) {
        tti_listening_close(l);
        return TT_FAIL(ctx, TT_EIO, "cannot listen at %s: %s%s", bind_to, strerror(err),
                       err == EADDRINUSE ? "; another server or program uses the port" : "");
    }
    *port = ntohs(name.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&name)->sin6_port
                                             : ((struct sockaddr_in *)&name)->sin_port);
    snprintf(l->bind, sizeof(l->bind), "%s", bind_to);
    snprintf(l->url, sizeof(l->url), "tcp://%s%s%s:%d", bracket ? "[" : "", host + bracket,
             bracket ? "]" : "", *port);
    *out = l;
    return TT_OK;
}

static tt_status open_sockets(tti_listening *l)
{
    char own[41], own_secret[41], theirs[41], unused[41];
    const unsigned char *secret = l->host->key.secret;
    l->zmq = zmq_ctx_new();
    l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    l->zap = l->zmq != NULL ? zmq_socket(l->zmq, ZMQ_ROUTER) : NULL;
    l->router = l->zmq != NULL ? zmq_socket(l->zmq, ZMQ_ROUTER) : NULL;
    l->monitor = l->zmq != NULL ? zmq_socket(l->zmq, ZMQ_PAIR) : NULL;
    if (l->zap == NULL || l->router == NULL || l->monitor == NULL || l->wake_fd < 0)
        return TT_FAIL(l->ctx, TT_EIO, "server: no socket: %s", strerror(errno));
    bool ok = tti_serve_pair(secret, true, own, own_secret) &&
              tti_serve_pair(secret, false, theirs, unused);
    explicit_bzero(unused, sizeof(unused));
    if (!ok)
        return TT_FAIL(l->ctx, TT_EUNSUPPORTED, "this ZeroMQ has no encryption");
    zmq_z85_decode(l->admitted.public_bytes, theirs);
    int64_t most = (int64_t)(TTI_SERVE_CHUNK + sizeof(tti_frame_head)) + 256;
    (void)zmq_setsockopt(l->router, ZMQ_MAXMSGSIZE, &most, sizeof(most));
    set(l->router, ZMQ_SNDHWM, 4 * TTI_SERVE_WINDOW);
    set(l->router, ZMQ_RCVHWM, 16);
    set(l->router, ZMQ_LINGER, 500);
    set(l->router, ZMQ_ROUTER_MANDATORY, 1);
    set(l->router, ZMQ_HANDSHAKE_IVL, 3000);
    set(l->router, ZMQ_HEARTBEAT_IVL, 1000);
    set(l->router, ZMQ_HEARTBEAT_TIMEOUT, 5000);
    set(l->router, ZMQ_IPV6, 1);
    set(l->router, ZMQ_CURVE_SERVER, 1);
    (void)zmq_setsockopt(l->router, ZMQ_ZAP_DOMAIN, "tutti", 5);
    (void)zmq_setsockopt(l->router, ZMQ_CURVE_PUBLICKEY, own, 40);
    (void)zmq_setsockopt(l->router, ZMQ_CURVE_SECRETKEY, own_secret, 40);
    explicit_bzero(own_secret, sizeof(own_secret));
    set(l->router, ZMQ_USE_FD, l->fd);
    set(l->zap, ZMQ_LINGER, 0);
    ok = zmq_bind(l->zap, "inproc://zeromq.zap.01") == 0 &&
         zmq_socket_monitor(l->router, "inproc://watch", ZMQ_EVENT_DISCONNECTED) == 0 &&
         zmq_connect(l->monitor, "inproc://watch") == 0 && zmq_bind(l->router, l->url) == 0;
    if (!ok)
        return TT_FAIL(l->ctx, TT_EIO, "cannot listen at %s: %s", l->bind, zmq_strerror(errno));
    l->fd = -1; // ZeroMQ's now
    return TT_OK;
}

void tti_listening_wake(tti_listening *l)
{
    uint64_t one = 1;
    ssize_t n = write(l->wake_fd, &one, sizeof(one));
    (void)n; // full is awake
}

// ---- messages in -----------------------------------------------------------------------------

static void take_losses(tti_listening *l)
{
    for (;;) {
        zmq_msg_t m;
        int32_t fd = -1;
        zmq_msg_init(&m);
        if (zmq_msg_recv(&m, l->monitor, ZMQ_DONTWAIT) < 0) {
            zmq_msg_close(&m);
            return;
        }
        if (zmq_msg_size(&m) >= 6)
            memcpy(&fd, (char *)zmq_msg_data(&m) + 2, sizeof(fd));
        bool more = zmq_msg_more(&m) != 0;
        zmq_msg_close(&m);
        while (more) {
            zmq_msg_init(&m);
            more = zmq_msg_recv(&m, l->monitor, ZMQ_DONTWAIT) >= 0 && zmq_msg_more(&m) != 0;
            zmq_msg_close(&m);
        }
        for (tti_peer *p = l->peers; p != NULL; p = p->next)
            if (fd >= 0 && p->fd == fd && !p->is_gone)
                tti_peer_lose(p);
    }
}

static bool take_message(tti_listening *l)
{
    zmq_msg_t f[2];
    int n = 0;
    for (bool more = true; more; n++) {
        zmq_msg_t extra, *m = n < 2 ? &f[n] : &extra;
        zmq_msg_init(m);
        if (zmq_msg_recv(m, l->router, ZMQ_DONTWAIT) < 0) {
            zmq_msg_close(m);
            break;
        }
        more = zmq_msg_more(m) != 0;
        if (n >= 2)
            zmq_msg_close(m);
    }
    if (n == 2) {
        const void *id = zmq_msg_data(&f[0]);
        size_t bytes = zmq_msg_size(&f[0]);
        tti_peer *p = tti_peer_find(l, id, bytes);
        if (p == NULL) {
            take_losses(l); // of who had its descriptor before
            p = tti_peer_admit(l, id, bytes, zmq_msg_get(&f[1], ZMQ_SRCFD));
        }
        if (p != NULL)
            tti_peer_take(p, zmq_msg_data(&f[1]), zmq_msg_size(&f[1]));
    }
    for (int i = 0; i < n && i < 2; i++)
        zmq_msg_close(&f[i]);
    return n > 0;
}

// A request of ZeroMQ's authentication protocol: the clients' key is let in, nothing else.
static bool take_knock(tti_listening *l)
{
    zmq_msg_t f[TTI_ZAP_MOST];
    tti_frame frames[TTI_ZAP_MOST];
    int n = 0;
    for (bool more = true; more; n++) {
        zmq_msg_t extra, *m = n < TTI_ZAP_MOST ? &f[n] : &extra;
        zmq_msg_init(m);
        if (zmq_msg_recv(m, l->zap, ZMQ_DONTWAIT) < 0) {
            zmq_msg_close(m);
            break;
        }
        more = zmq_msg_more(m) != 0;
        if (n >= TTI_ZAP_MOST)
            zmq_msg_close(m);
        else
            frames[n] = (tti_frame){zmq_msg_data(m), zmq_msg_size(m)};
    }
    if (n > TTI_ZAP_ID) {
        bool ok = n <= TTI_ZAP_MOST && tti_auth_rank(frames, n, &l->admitted, 1, false) == 0;
        const char *code = ok ? "200" : "400";
        (void)zmq_send(l->zap, frames[0].data, frames[0].bytes, ZMQ_SNDMORE);
        (void)zmq_send(l->zap, "", 0, ZMQ_SNDMORE);
        (void)zmq_send(l->zap, "1.0", 3, ZMQ_SNDMORE);
        (void)zmq_send(l->zap, frames[TTI_ZAP_ID].data, frames[TTI_ZAP_ID].bytes, ZMQ_SNDMORE);
        (void)zmq_send(l->zap, code, 3, ZMQ_SNDMORE);
        (void)zmq_send(l->zap, "", 0, ZMQ_SNDMORE);
        (void)zmq_send(l->zap, "", 0, ZMQ_SNDMORE);
        (void)zmq_send(l->zap, "", 0, 0);
    }
    for (int i = 0; i < n && i < TTI_ZAP_MOST; i++)
        zmq_msg_close(&f[i]);
    return n > 0;
}

// ---- answers out -----------------------------------------------------------------------------

// One part; false: not now.
static bool send_part(tti_listening *l, tti_peer *p)
{
    zmq_msg_t m;
    uint64_t total = (uint64_t)p->answer.n, n = TTI_MIN(total - p->sent, TTI_SERVE_CHUNK);
    tti_frame_head h = {.magic = TTI_FRAME_MAGIC,
                        .type = TTI_FRAME_ANSWER,
                        .number = p->in.number,
                        .total = total,
                        .offset = p->sent,
                        .kind = (uint32_t)p->status};
    if (zmq_send(l->router, p->id, p->id_bytes, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0) {
        if (errno != EAGAIN && errno != EINTR)
            tti_peer_lose(p); // nobody is there
        return false;
    }
    if (zmq_msg_init_size(&m, sizeof(h) + n) != 0) {
        (void)zmq_send(l->router, "", 0, ZMQ_DONTWAIT); // ends the message; the client sees that
        tti_peer_lose(p);
        return false;
    }
    memcpy(zmq_msg_data(&m), &h, sizeof(h));
    if (n > 0)
        memcpy((char *)zmq_msg_data(&m) + sizeof(h), p->answer.s + p->sent, n);
    if (zmq_msg_send(&m, l->router, ZMQ_DONTWAIT) < 0)
        zmq_msg_close(&m);
    p->sent += n;
    p->has_begun = true;
    p->credit--;
    return true;
}

static void answer(tti_listening *l, tti_peer *p)
{
    while (p->credit > 0 && (!p->has_begun || p->sent < (uint64_t)p->answer.n))
        if (!send_part(l, p))
            return;
    if (!p->has_begun || p->sent < (uint64_t)p->answer.n)
        return;
    if (p->answer.cap > KEEP)
        tti_text_free(&p->answer);
    tti_assembly_next(&p->in);
    pthread_mutex_lock(&l->mu);
    p->state = TTI_IDLE;
    pthread_mutex_unlock(&l->mu);
}

static void answer_all(tti_listening *l)
{
    int64_t now = tti_now_ns();
    for (tti_peer *p = l->peers; p != NULL; p = p->next) {
        pthread_mutex_lock(&l->mu);
        bool answers = p->state == TTI_ANSWERING && !p->is_gone;
        if (p->state == TTI_WORKING && !p->is_gone && p->client != NULL)
            tti_client_check_time(p->client, now);
        pthread_mutex_unlock(&l->mu);
        if (answers)
            answer(l, p);
    }
}

static void serve(void *arg)
{
    tti_listening *l = arg;
    while (atomic_load(&l->stop) == 0) {
        zmq_pollitem_t items[] = {{.fd = l->wake_fd, .events = ZMQ_POLLIN},
                                  {.socket = l->router, .events = ZMQ_POLLIN},
                                  {.socket = l->zap, .events = ZMQ_POLLIN},
                                  {.socket = l->monitor, .events = ZMQ_POLLIN}};
        (void)zmq_poll(items, TTI_COUNT(items), TICK_MS);
        uint64_t woken;
        ssize_t got = read(l->wake_fd, &woken, sizeof(woken));
        (void)got;
        for (int i = 0; i < AT_ONCE && take_knock(l); i++)
            ;
        for (int i = 0; i < AT_ONCE && take_message(l); i++)
            ;
        take_losses(l);
        answer_all(l);
        tti_peers_reap(l);
    }
    for (tti_peer *p = l->peers; p != NULL; p = p->next)
        tti_peer_lose(p);
    while (l->peers != NULL) { // their calls end by what they look at
        struct timespec t = {.tv_nsec = 1000000};
        tti_peers_reap(l);
        if (l->peers != NULL)
            nanosleep(&t, NULL);
    }
}

tt_status tti_listening_start(tti_listening *l, tti_host *h)
{
    l->host = h;
    TT_TRY(open_sockets(l));
    return tti_thread_start(l->ctx, &l->thread, "tutti-serve", serve, l);
}

// ---- the end ---------------------------------------------------------------------------------

bool tti_listening_drain(tti_listening *l, int64_t ms)
{
    int64_t deadline = tti_deadline(ms);
    atomic_store(&l->host->is_draining, 1);
    bool busy = l->thread.is_started;
    while (busy) {
        busy = false;
        pthread_mutex_lock(&l->mu);
        for (tti_peer *p = l->peers; p != NULL; p = p->next)
            busy |= p->state != TTI_IDLE && !p->is_gone;
        pthread_mutex_unlock(&l->mu);
        if (!busy || tti_now_ns() >= deadline)
            break;
        struct timespec t = {.tv_nsec = 5000000};
        nanosleep(&t, NULL);
    }
    return !busy;
}

static void close_socket(void *s)
{
    if (s != NULL)
        zmq_close(s);
}

void tti_listening_close(tti_listening *l)
{
    if (l == NULL)
        return;
    atomic_store(&l->stop, 1);
    if (l->thread.is_started)
        tti_listening_wake(l);
    tti_thread_join(&l->thread);
    if (l->router != NULL)
        (void)zmq_socket_monitor(l->router, NULL, 0);
    close_socket(l->monitor);
    close_socket(l->router);
    close_socket(l->zap);
    while (l->zmq != NULL && zmq_ctx_term(l->zmq) != 0 && errno == EINTR)
        ;
    if (l->fd >= 0)
        close(l->fd);
    if (l->wake_fd >= 0)
        close(l->wake_fd);
    pthread_mutex_destroy(&l->mu);
    tti_free(l->ctx, l);
}

#endif
