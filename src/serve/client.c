/*
 * client.c - requests of one connection, carried out on the server. Bodies come from outside: each
 * is read to its end with bounds before anything is done with it.
 */
#include "base/ctx.h"
#include "graph/text.h"
#include "serve/serve.h"
#include <stdio.h>
#include <string.h>

tti_client *tti_client_new(tti_host *h, const char *name)
{
    tti_client *c = tti_calloc(NULL, 1, sizeof(*c));
    if (c == NULL)
        return NULL;
    c->host = h;
    snprintf(c->name, sizeof(c->name), "%s", name);
    pthread_mutex_init(&c->mu, NULL);
    return c;
}

static void end_session(tti_client *c)
{
    if (c->placed != NULL)
        atomic_fetch_sub(&c->host->n_sessions, 1);
    tti_placed_free(c->placed);
    c->placed = NULL;
    pthread_mutex_lock(&c->mu);
    tt_ctx *ctx = c->ctx;
    c->ctx = NULL;
    pthread_mutex_unlock(&c->mu);
    if (ctx != NULL) {
        tt_clear_error(ctx);
        (void)tt_close(ctx);
    }
    if (c->is_ephemeral)
        tti_container_end(c->host, c->container);
    else
        tti_container_release(c->container);
    c->container = NULL;
}

void tti_client_free(tti_client *c)
{
    if (c == NULL)
        return;
    const char *who = atomic_load(&c->is_gone) ? c->name : NULL;
    for (int64_t i = 0; i < c->n_queues; i++) {
        tti_client_queue *q = &c->queues[i];
        if (q->core != NULL && q->produces)
            tti_queue_core_end(q->core, true, who);
        if (q->core != NULL && q->consumes)
            tti_queue_core_end(q->core, false, who);
        tti_queue_core_release(q->core);
    }
    tti_free(NULL, c->queues);
    end_session(c);
    pthread_mutex_destroy(&c->mu);
    tti_free(NULL, c);
}

void tti_client_cancel(tti_client *c)
{
    atomic_store(&c->is_gone, 1);
    pthread_mutex_lock(&c->mu);
    tt_request_stop(c->ctx);
    pthread_mutex_unlock(&c->mu);
}

void tti_client_check_time(tti_client *c, int64_t now)
{
    int64_t until = atomic_load(&c->until);
    if (until == 0 || now < until)
        return;
    pthread_mutex_lock(&c->mu);
    tt_request_stop(c->ctx);
    pthread_mutex_unlock(&c->mu);
}

static void ignore_event(void *user, const tt_event *ev)
{
    (void)user, (void)ev;
}

// A context for messages and variables; sessions have their own.
static bool has_ctx(tti_client *c)
{
    if (c->ctx != NULL)
        return true;
    tt_ctx *ctx = tt_open(.devices = "cpu:0", .threads = 1, .on_event = ignore_event);
    if (ctx != NULL && tt_status_of(ctx) != TT_OK) {
        (void)tt_close(ctx);
        ctx = NULL;
    }
    pthread_mutex_lock(&c->mu);
    c->ctx = ctx;
    pthread_mutex_unlock(&c->mu);
    return ctx != NULL;
}

tt_status tti_bad_message(tti_client *c, const char *what)
{
    return TT_FAIL(c->ctx, TT_EPARSE, "the server cannot read the %s message", what);
}

// ---- small requests, which need no context ---------------------------------------------------

static tt_status hello(tti_client *c, tti_reader *r, tti_text *out)
{
    char version[64], name[sizeof(c->name)];
    uint32_t protocol = tti_get_u32(r), arithmetic = 0;
    version[0] = name[0] = '\0';
    if (protocol == TTI_SERVE_PROTOCOL) {
        arithmetic = tti_get_u32(r);
        tti_get_text(r, version, sizeof(version));
        tti_get_text(r, name, sizeof(name));
    }
    bool same = strcmp(version, TT_VERSION) == 0 && arithmetic == TT_ARITHMETIC;
    if (protocol != TTI_SERVE_PROTOCOL || (tti_get_end(r) && !same)) {
        tti_text_add(out,
                     "the server at %s runs Tutti %s (protocol %d, arithmetic %d), the client %s "
                     "(protocol %u, arithmetic %u); both need the same version",
                     c->host->task, TT_VERSION, TTI_SERVE_PROTOCOL, TT_ARITHMETIC,
                     version[0] != '\0' ? version : "another", protocol, arithmetic);
        return TT_EUNSUPPORTED;
    }
    if (!tti_get_end(r)) {
        tti_text_add(out, "the server cannot read the hello message");
        return TT_EPARSE;
    }
    (void)tti_escape(c->name, sizeof(c->name), name, strlen(name), false);
    tti_put_text(out, c->host->task);
    tti_put_i64(out, c->host->bounds.run_ms);
    return TT_OK;
}

// ---- sessions --------------------------------------------------------------------------------

static tt_status fail_of(tt_ctx *ctx, tti_text *out)
{
    tt_status st = ctx == NULL ? TT_ENOMEM : tt_status_of(ctx);
    tti_text_add(out, "%s",
                 ctx == NULL ? "the server is out of memory" : tt_last_error(ctx).message);
    return st == TT_OK ? TT_ENOMEM : st;
}

static tt_status open_graph(tti_client *c, tti_reader *r, tti_text *out)
{
    char container[TTI_CONTAINER_MAX];
    tti_host *h = c->host;
    tti_get_text(r, container, sizeof(container));
    uint32_t isolate = tti_get_u32(r);
    uint64_t seed = tti_get_u64(r);
    uint32_t lanes = tti_get_u32(r);
    uint64_t bytes = tti_get_u64(r);
    const char *text = bytes <= h->bounds.graph ? tti_get_bytes(r, bytes) : NULL;
    if (!r->failed && bytes > h->bounds.graph) {
        tti_text_add(out, "the graph has %llu bytes of text; %s takes up to %zu",
                     (unsigned long long)bytes, h->task, h->bounds.graph);
        return TT_ELIMIT;
    }
    if (!tti_get_end(r) || lanes > TT_MAX_LANES || isolate > 2) {
        tti_text_add(out, "the server cannot read the graph message");
        return TT_EPARSE;
    }
    end_session(c);
    c->is_isolated = isolate == 1;
    c->is_ephemeral = isolate == 2;
    c->container =
        c->is_isolated ? tti_container_new(container) : tti_container_get(h, container, true);
    tt_ctx *ctx = c->container == NULL
                      ? NULL
                      : tt_open(.devices = h->devices, .lanes = (int)lanes, .seed = seed,
                                .threads = h->threads, .store = c->container->store,
                                .on_event = ignore_event, .soft = TT_SOFT_OFF);
    pthread_mutex_lock(&c->mu);
    c->ctx = ctx;
    if (atomic_load(&c->is_gone))
        tt_request_stop(ctx);
    pthread_mutex_unlock(&c->mu);
    if (ctx == NULL || tt_status_of(ctx) != TT_OK)
        return fail_of(ctx, out);
    tt_graph *g = tti_graph_parse(ctx, text, bytes, h->bounds.graph);
    if (g == NULL || tti_placed_new(c, g, &c->placed) != TT_OK)
        return fail_of(ctx, out);
    atomic_fetch_add(&h->n_sessions, 1);
    return TT_OK;
}

static tt_status with_graph(tti_client *c, uint32_t kind, tti_reader *r, tti_text *out)
{
    if (c->placed == NULL)
        return TT_FAIL(c->ctx, TT_EINVAL, "the session has no graph yet");
    if (atomic_load(&c->container->is_removed))
        return TT_FAIL(c->ctx, TT_EINVAL,
                       "container '%s' of %s was cleared; open a new session to begin anew",
                       c->container->name, c->host->task);
    if (kind != TTI_ASK_RUN)
        return tti_placed_variable(c->placed, kind, r, out);
    atomic_store(&c->until, tti_now_ns() + c->host->bounds.run_ms * 1000000);
    tt_status st = tti_placed_run(c->placed, r, out);
    int64_t until = atomic_exchange(&c->until, 0);
    if (st == TT_ESTOP && !atomic_load(&c->is_gone) && tti_now_ns() >= until) {
        atomic_store(&c->ctx->stop, 0);
        tt_clear_error(c->ctx);
        st = TT_FAIL(c->ctx, TT_ELIMIT, "the run took longer than %lld ms, the limit of %s",
                     (long long)c->host->bounds.run_ms, c->host->task);
    }
    atomic_fetch_add(&c->host->n_runs, 1);
    return st;
}

static tt_status dispatch(tti_client *c, uint32_t kind, tti_reader *r, tti_text *out)
{
    switch (kind) {
    case TTI_ASK_RUN:
    case TTI_ASK_GET:
    case TTI_ASK_SET:
        return with_graph(c, kind, r, out);
    case TTI_ASK_LIST:
    case TTI_ASK_READ:
    case TTI_ASK_WRITE:
    case TTI_ASK_CLEAR:
        return tti_state_request(c, kind, r, out);
    case TTI_QUEUE_OPEN:
    case TTI_ENQUEUE:
    case TTI_DEQUEUE:
    case TTI_QUEUE_SIZE:
    case TTI_QUEUE_CLOSE:
    case TTI_QUEUE_FREE:
        return tti_queue_request(c, kind, r, out);
    default:
        return TT_FAIL(c->ctx, TT_EPARSE, "the server knows no request %u", kind);
    }
}

tt_status tti_client_handle(tti_client *c, uint32_t kind, const void *body, size_t bytes,
                            tti_text *out)
{
    tti_reader r = tti_reader_of(body, bytes);
    tt_status st;
    if (kind == TTI_ASK_HELLO)
        st = hello(c, &r, out);
    else if (kind == TTI_ASK_INFO)
        st = tti_info_request(c, out);
    else if (kind == TTI_ASK_GRAPH)
        st = open_graph(c, &r, out);
    else if (!has_ctx(c))
        st = fail_of(NULL, out);
    else
        st = dispatch(c, kind, &r, out);
    bool own =
        kind != TTI_ASK_HELLO && kind != TTI_ASK_INFO && kind != TTI_ASK_GRAPH && c->ctx != NULL;
    if (st != TT_OK && own) {
        out->n = 0; // what there is of an answer
        tti_text_add(out, "%s", tt_last_error(c->ctx).message);
    }
    if (st != TT_OK)
        atomic_fetch_add(&c->host->n_refused, 1);
    if (c->ctx != NULL)
        tt_clear_error(c->ctx);
    if (out->failed) {
        out->failed = false;
        st = TT_ENOMEM;
    }
    return st;
}
