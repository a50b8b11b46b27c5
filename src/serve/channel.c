/*
 * channel.c - a client's connection to a server. One request is under way at a time. ZeroMQ does
 * not connect again by itself: a connection that is lost is an error of the call that meets it.
 */
#include "serve/serve.h"

#ifdef TUTTI_HAVE_ZMQ
#include "base/ctx.h"
#include "net/timeout.h"
#include "net/zmq_weak.h"
#include "serve/frame.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SLICE_MS   20 // a stop on request is looked at so often
#define CONNECT_MS 3000
#define AGAIN_MS   20

struct tti_channel {
    tt_ctx *ctx;
    char target[TTI_ADDRESS + 16];
    void *zmq, *socket, *monitor;
    uint64_t number;
    tti_assembly in;
    int64_t run_ms;             // how long the server lets a run take
    bool is_broken, is_waiting; // of no use; an answer is to come
};

typedef enum outcome {
    CONNECTED,
    NOBODY,  // nothing listens there
    REFUSED, // the key does not fit
    SILENT,
    FAILED, // recorded
} outcome;

static void set(void *s, int option, int value)
{
    (void)zmq_setsockopt(s, option, &value, sizeof(value));
}

static void close_sockets(tti_channel *c)
{
    if (c->socket != NULL) {
        (void)zmq_socket_monitor(c->socket, NULL, 0);
        zmq_close(c->socket);
    }
    if (c->monitor != NULL)
        zmq_close(c->monitor);
    while (c->zmq != NULL && zmq_ctx_term(c->zmq) != 0 && errno == EINTR)
        ;
    c->socket = c->monitor = c->zmq = NULL;
}

// The next event of the connection; 0: none.
static int next_event(tti_channel *c)
{
    uint16_t event = 0;
    for (bool more = true, first = true; more; first = false) {
        zmq_msg_t m;
        zmq_msg_init(&m);
        if (zmq_msg_recv(&m, c->monitor, ZMQ_DONTWAIT) < 0) {
            zmq_msg_close(&m);
            break;
        }
        if (first && zmq_msg_size(&m) >= sizeof(event))
            memcpy(&event, zmq_msg_data(&m), sizeof(event));
        more = zmq_msg_more(&m) != 0;
        zmq_msg_close(&m);
    }
    return event;
}

static outcome fail(tti_channel *c, const char *what)
{
    (void)TT_FAIL(c->ctx, TT_EIO, "%s: %s: %s", c->target, what, zmq_strerror(errno));
    return FAILED;
}

static outcome await_connection(tti_channel *c, int64_t deadline)
{
    bool is_open = false;
    while (tti_now_ns() < deadline) {
        zmq_pollitem_t item = {.socket = c->monitor, .events = ZMQ_POLLIN};
        (void)zmq_poll(&item, 1, SLICE_MS);
        if (atomic_load(&c->ctx->stop) != 0) {
            (void)TT_FAIL(c->ctx, TT_ESTOP, "%s: stopped on request while connecting", c->target);
            return FAILED;
        }
        for (int e; (e = next_event(c)) != 0;) {
            if (e == ZMQ_EVENT_HANDSHAKE_SUCCEEDED)
                return CONNECTED;
            if (e == ZMQ_EVENT_CONNECTED)
                is_open = true;
            else if (e == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH ||
                     e == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL || e == ZMQ_EVENT_DISCONNECTED ||
                     e == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL)
                return REFUSED;
            else if (e == ZMQ_EVENT_CLOSED || e == ZMQ_EVENT_CONNECT_RETRIED)
                return is_open ? REFUSED : NOBODY;
        }
    }
    return is_open ? SILENT : NOBODY;
}

static outcome connect_once(tti_channel *c, const char *address,
                            const unsigned char secret[TT_SECRET_BYTES])
{
    char own[41], own_secret[41], theirs[41], unused[41], url[TTI_ADDRESS + 16];
    c->zmq = zmq_ctx_new();
    c->socket = c->zmq != NULL ? zmq_socket(c->zmq, ZMQ_DEALER) : NULL;
    c->monitor = c->zmq != NULL ? zmq_socket(c->zmq, ZMQ_PAIR) : NULL;
    if (c->socket == NULL || c->monitor == NULL)
        return fail(c, "no socket");
    bool ok = tti_serve_pair(secret, false, own, own_secret) &&
              tti_serve_pair(secret, true, theirs, unused);
    explicit_bzero(unused, sizeof(unused));
    int64_t most = (int64_t)(TTI_SERVE_CHUNK + sizeof(tti_frame_head)) + 256;
    (void)zmq_setsockopt(c->socket, ZMQ_MAXMSGSIZE, &most, sizeof(most));
    set(c->socket, ZMQ_SNDHWM, 8);
    set(c->socket, ZMQ_RCVHWM, 4 * TTI_SERVE_WINDOW);
    set(c->socket, ZMQ_LINGER, 200);
    set(c->socket, ZMQ_HANDSHAKE_IVL, CONNECT_MS);
    set(c->socket, ZMQ_CONNECT_TIMEOUT, CONNECT_MS);
    set(c->socket, ZMQ_RECONNECT_IVL, -1);
    set(c->socket, ZMQ_HEARTBEAT_IVL, 1000);
    set(c->socket, ZMQ_HEARTBEAT_TIMEOUT, 5000);
    set(c->socket, ZMQ_IPV6, 1);
    (void)zmq_setsockopt(c->socket, ZMQ_CURVE_SERVERKEY, theirs, 40);
    (void)zmq_setsockopt(c->socket, ZMQ_CURVE_PUBLICKEY, own, 40);
    (void)zmq_setsockopt(c->socket, ZMQ_CURVE_SECRETKEY, own_secret, 40);
    explicit_bzero(own_secret, sizeof(own_secret));
    if (!ok)
        return fail(c, "this ZeroMQ has no encryption");
    snprintf(url, sizeof(url), "tcp://%s", address);
    if (zmq_socket_monitor(c->socket, "inproc://watch", ZMQ_EVENT_ALL) != 0 ||
        zmq_connect(c->monitor, "inproc://watch") != 0)
        return fail(c, "no monitor");
    if (zmq_connect(c->socket, url) != 0)
        return fail(c, "cannot connect");
    return await_connection(c, tti_deadline(CONNECT_MS));
}

// Until a server answers, or the time is over.
static tt_status connect_within(tti_channel *c, const char *address, const tti_channel_opts *o)
{
    int64_t deadline = tti_deadline(o->wait_ms);
    unsigned char secret[TT_SECRET_BYTES];
    for (;;) {
        outcome got = NOBODY;
        tti_attempt a;
        tti_attempt_begin(c->ctx, &a);
        tt_status st = TT_OK;
        if (o->secret != NULL)
            memcpy(secret, o->secret, sizeof(secret));
        else
            st = tti_key_of_target(c->ctx, o->key, address, secret);
        if (st == TT_OK)
            got = connect_once(c, address, secret);
        explicit_bzero(secret, sizeof(secret));
        if (st == TT_OK && got == CONNECTED)
            return tti_attempt_end(c->ctx, &a);
        close_sockets(c);
        bool is_final = (st != TT_OK && st != TT_EPEER) || got == FAILED;
        if (st == TT_OK && got == REFUSED)
            (void)TT_FAIL(c->ctx, TT_EPEER,
                          "the server at %s refuses this key: it has another one, or what listens "
                          "there is not a Tutti server",
                          c->target);
        else if (st == TT_OK && got == SILENT)
            (void)TT_FAIL(c->ctx, TT_EPEER, "what listens at %s does not answer", c->target);
        else if (st == TT_OK && got == NOBODY)
            (void)TT_FAIL(c->ctx, TT_EPEER,
                          "no server listens at %s; start one with 'tutti serve', or wait for it "
                          "with 'tutti ping'",
                          c->target);
        (void)tti_attempt_end(c->ctx, &a);
        if (is_final || tti_now_ns() >= deadline || atomic_load(&c->ctx->stop) != 0)
            return tti_attempt_raise(c->ctx, &a);
        struct timespec t = {.tv_nsec = AGAIN_MS * 1000000};
        nanosleep(&t, NULL);
    }
}

// Versions, and who is calling.
static tt_status greet(tti_channel *c)
{
    tti_text t = {.ctx = c->ctx};
    tti_reader r;
    char name[128], host[64] = "";
    (void)gethostname(host, sizeof(host) - 1);
    snprintf(name, sizeof(name), "%.60s[%d]@%.40s",
             program_invocation_short_name != NULL ? program_invocation_short_name : "client",
             (int)getpid(), host);
    tti_put_u32(&t, TTI_SERVE_PROTOCOL);
    tti_put_u32(&t, TT_ARITHMETIC);
    tti_put_text(&t, TT_VERSION);
    tti_put_text(&t, name);
    TT_TRY(tti_channel_ask(c, TTI_ASK_HELLO, &t, CONNECT_MS, &r));
    char task[64];
    tti_get_text(&r, task, sizeof(task));
    c->run_ms = tti_get_i64(&r);
    return TT_OK;
}

int64_t tti_channel_run_ms(const tti_channel *c)
{
    return c->run_ms;
}

tt_status tti_channel_open(tt_ctx *ctx, const tti_channel_opts *o, tti_channel **out)
{
    char address[TTI_ADDRESS];
    if (zmq_ctx_new == NULL)
        return TT_FAIL(ctx, TT_EUNSUPPORTED,
                       "a target needs ZeroMQ, and this program is linked without it");
    TT_TRY(tti_target_address(ctx, o->target, address));
    tti_channel *c = tti_calloc(ctx, 1, sizeof(*c));
    if (c == NULL)
        return TT_ENOMEM;
    c->ctx = ctx;
    snprintf(c->target, sizeof(c->target), "tutti://%s", address);
    tt_status st = connect_within(c, address, o);
    if (st == TT_OK)
        st = greet(c);
    if (st != TT_OK)
        tti_channel_close(c);
    else
        *out = c;
    return st;
}

const char *tti_channel_target(const tti_channel *c)
{
    return c->target;
}

static void send_word(tti_channel *c, tti_frame_type type, uint64_t total)
{
    tti_frame_head h = {
        .magic = TTI_FRAME_MAGIC, .type = type, .number = c->number, .total = total};
    (void)zmq_send(c->socket, &h, sizeof(h), ZMQ_DONTWAIT);
}

void tti_channel_close(tti_channel *c)
{
    if (c == NULL)
        return;
    if (c->socket != NULL && !c->is_broken)
        send_word(c, TTI_FRAME_BYE, 0);
    close_sockets(c);
    tti_assembly_free(&c->in);
    tti_free(c->ctx, c);
}

static tt_status broken(tti_channel *c, tt_status st, const char *what)
{
    c->is_broken = true;
    return TT_FAIL(c->ctx, st, "%s: %s", c->target, what);
}

/*
 * Waits for what events say, or for something to receive. TT_OK: look again. progress: when
 * anything last moved.
 */
static tt_status wait_for(tti_channel *c, short events, int64_t progress, int64_t wait_ms)
{
    zmq_pollitem_t items[] = {{.socket = c->socket, .events = events},
                              {.socket = c->monitor, .events = ZMQ_POLLIN}};
    (void)zmq_poll(items, 2, SLICE_MS);
    if (atomic_load(&c->ctx->stop) != 0)
        return broken(c, TT_ESTOP, "stopped on request while waiting for the server");
    if ((items[0].revents & ZMQ_POLLIN) != 0) // an answer that came before the loss counts
        return TT_OK;
    for (int e; (e = next_event(c)) != 0;)
        if (e == ZMQ_EVENT_DISCONNECTED || e == ZMQ_EVENT_CLOSED)
            return broken(c, TT_EPEER, "the server closed the connection or was lost");
    if (tti_now_ns() - progress > wait_ms * 1000000) {
        c->is_broken = true;
        return TT_FAIL(c->ctx, TT_ETIMEOUT, "%s: no answer within %lld ms", c->target,
                       (long long)wait_ms);
    }
    return TT_OK;
}

// ---- requests --------------------------------------------------------------------------------

// Is something to be received? An answer before the request is all out refuses it.
static bool has_answer(tti_channel *c)
{
    zmq_pollitem_t item = {.socket = c->socket, .events = ZMQ_POLLIN};
    return zmq_poll(&item, 1, 0) > 0;
}

static tt_status send_part(tti_channel *c, zmq_msg_t *m, bool *stops)
{
    int64_t begun = tti_now_ns();
    while (zmq_msg_send(m, c->socket, ZMQ_DONTWAIT) < 0) {
        if (errno != EAGAIN && errno != EINTR)
            return broken(c, TT_EPEER, zmq_strerror(errno));
        if (has_answer(c)) {
            *stops = true;
            return TT_OK;
        }
        TT_TRY(wait_for(c, ZMQ_POLLIN | ZMQ_POLLOUT, begun, c->ctx->deadline_ms));
    }
    return TT_OK;
}

tt_status tti_channel_send(tti_channel *c, tti_request kind, const tti_piece *pieces, int n)
{
    uint64_t total = 0, done = 0;
    size_t skip = 0; // of the piece that comes next
    if (c->is_broken)
        return TT_FAIL(c->ctx, TT_EPEER, "%s: the connection was lost; open a new session",
                       c->target);
    for (int i = 0; i < n; i++)
        total += pieces[i].bytes;
    c->number++;
    c->is_waiting = true;
    for (bool stops = false, first = true; !stops && (first || done < total); first = false) {
        zmq_msg_t m;
        size_t part = (size_t)TTI_MIN(total - done, TTI_SERVE_CHUNK);
        tti_frame_head h = {.magic = TTI_FRAME_MAGIC,
                            .type = TTI_FRAME_REQUEST,
                            .number = c->number,
                            .total = total,
                            .offset = done,
                            .kind = kind};
        if (zmq_msg_init_size(&m, sizeof(h) + part) != 0)
            return broken(c, TT_ENOMEM, "no memory for a request");
        char *to = zmq_msg_data(&m);
        memcpy(to, &h, sizeof(h));
        to += sizeof(h);
        for (size_t left = part; left > 0;) {
            size_t k = TTI_MIN(pieces->bytes - skip, left);
            if (k > 0)
                memcpy(to, (const char *)pieces->data + skip, k);
            to += k;
            left -= k;
            skip += k;
            if (skip == pieces->bytes) {
                pieces++;
                skip = 0;
            }
        }
        tt_status st = send_part(c, &m, &stops);
        zmq_msg_close(&m);
        TT_TRY(st);
        done += part;
    }
    return TT_OK;
}

static tt_status take_part(tti_channel *c, zmq_msg_t *m, int *n_parts, bool *whole)
{
    tti_frame_head h;
    if (zmq_msg_size(m) < sizeof(h))
        return broken(c, TT_EPEER, "the server sends what is not an answer");
    memcpy(&h, zmq_msg_data(m), sizeof(h));
    if (h.number != c->number)
        return TT_OK; // of a call that was given up
    switch (tti_assembly_add(&c->in, TTI_FRAME_ANSWER, zmq_msg_data(m), zmq_msg_size(m),
                             SIZE_MAX / 4)) {
    case TTI_WHOLE:
        *whole = true;
        return TT_OK;
    case TTI_PART:
        if (++*n_parts % (TTI_SERVE_WINDOW / 2) == 0)
            send_word(c, TTI_FRAME_CREDIT, TTI_SERVE_WINDOW / 2);
        return TT_OK;
    case TTI_NO_MEMORY:
        return broken(c, TT_ENOMEM, "no memory for the answer");
    default:
        return broken(c, TT_EPEER, "the server sends what is not an answer");
    }
}

tt_status tti_channel_receive(tti_channel *c, int64_t wait_ms, tti_reader *out)
{
    int64_t progress = tti_now_ns();
    int n_parts = 0;
    wait_ms = wait_ms > 0 ? wait_ms : c->ctx->deadline_ms;
    if (!c->is_waiting || c->is_broken)
        return TT_FAIL(c->ctx, TT_EPEER, "%s: the connection was lost", c->target);
    for (bool whole = false; !whole;) {
        zmq_msg_t m;
        zmq_msg_init(&m);
        tt_status st = TT_OK;
        if (zmq_msg_recv(&m, c->socket, ZMQ_DONTWAIT) >= 0) {
            st = take_part(c, &m, &n_parts, &whole);
            progress = tti_now_ns();
        } else {
            st = wait_for(c, ZMQ_POLLIN, progress, wait_ms);
        }
        zmq_msg_close(&m);
        TT_TRY(st);
    }
    c->is_waiting = false;
    if (c->in.kind != TT_OK) {
        bool known = c->in.kind <= TT_ENAN;
        const char *text = c->in.got > 0 ? c->in.body : "the server gives no reason";
        return TT_FAIL(c->ctx, known ? (tt_status)c->in.kind : TT_EPEER, "%s: %.4000s", c->target,
                       text);
    }
    *out = tti_reader_of(c->in.body, c->in.got);
    return TT_OK;
}

tt_status tti_channel_ask(tti_channel *c, tti_request kind, tti_text *t, int64_t wait_ms,
                          tti_reader *out)
{
    size_t n = (size_t)t->n;
    char *s = tti_text_take(t);
    if (s == NULL)
        return TT_ENOMEM;
    tti_piece p = {s, n};
    tt_status st = tti_channel_send(c, kind, &p, 1);
    tti_free(c->ctx, s);
    return st != TT_OK ? st : tti_channel_receive(c, wait_ms, out);
}

#endif
