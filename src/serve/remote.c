/*
 * remote.c - a session on a server, as the client has it (run/remote.h). The graph goes over once,
 * as text; what a run feeds, fetches and computes goes over with the first such run, and has a
 * number from then on.
 */
#include "run/remote.h"
#include "base/ctx.h"
#include "graph/graph.h"
#include "serve/serve.h"
#include <string.h>

#define MAX_DEFS 256 // as the server remembers

typedef struct def {
    tt_tensor **tensors; // feeds, fetches, targets
    int n_feeds, n_fetches, n_targets;
} def;

struct tti_remote {
    tt_ctx *ctx;
    tt_graph *g;
    tti_channel *channel;
    def defs[MAX_DEFS];
    int n_defs, next; // next: which one is forgotten for a new one
    // Room of a run.
    tti_text head;
    tti_piece *pieces;
    int64_t cap_pieces;
};

static tt_status send_graph(tti_remote *r, const tt_session_opts *o, int isolate)
{
    tti_text t = {.ctx = r->ctx};
    tti_reader answer;
    char *text = tt_graph_print(r->g);
    if (text == NULL)
        return tt_status_of(r->ctx);
    if (o->container != NULL && strlen(o->container) >= TTI_CONTAINER_MAX) {
        tti_free(r->ctx, text);
        return TT_FAIL(r->ctx, TT_EINVAL,
                       "session: the name of container '%.40s...' is longer than "
                       "%d characters",
                       o->container, TTI_CONTAINER_MAX - 1);
    }
    tti_put_text(&t, o->container);
    tti_put_u32(&t, (uint32_t)isolate);
    tti_put_u64(&t, r->ctx->seed);
    tti_put_u32(&t, (uint32_t)r->ctx->top.lanes);
    tti_put_u64(&t, strlen(text));
    size_t n = (size_t)t.n;
    char *head = tti_text_take(&t);
    tti_piece p[] = {{head, n}, {text, strlen(text)}};
    tt_status st = head == NULL ? TT_ENOMEM : tti_channel_send(r->channel, TTI_ASK_GRAPH, p, 2);
    tti_free(r->ctx, head);
    tti_free(r->ctx, text);
    return st != TT_OK ? st : tti_channel_receive(r->channel, 0, &answer);
}

tti_remote *tti_remote_open(tt_graph *g, const tt_session_opts *o, const tti_remote_way *way)
{
    tt_ctx *ctx = g->ctx;
    tti_remote *r = tti_calloc(ctx, 1, sizeof(*r));
    if (r == NULL)
        return NULL;
    r->ctx = ctx;
    r->g = g;
    r->head.ctx = ctx;
    tti_channel_opts c = {
        .target = o->target, .key = o->key, .secret = way != NULL ? way->secret : NULL};
    tt_status st = tti_channel_open(ctx, &c, &r->channel);
    if (st == TT_OK)
        st = send_graph(r, o, way != NULL ? way->isolate : o->isolate ? 1 : 0);
    if (st != TT_OK) {
        tti_remote_close(r);
        return NULL;
    }
    return r;
}

void tti_remote_close(tti_remote *r)
{
    if (r == NULL)
        return;
    tti_channel_close(r->channel);
    for (int i = 0; i < MAX_DEFS; i++)
        tti_free(r->ctx, r->defs[i].tensors);
    tti_text_free(&r->head);
    tti_free(r->ctx, r->pieces);
    tti_free(r->ctx, r);
}

// ---- runs ------------------------------------------------------------------------------------

static bool is_same(const def *d, const tt_run_opts *o)
{
    bool same = d->tensors != NULL && d->n_feeds == o->n_feeds && d->n_fetches == o->n_fetches &&
                d->n_targets == o->n_targets;
    for (int i = 0; same && i < o->n_feeds; i++)
        same = d->tensors[i] == o->feeds[i].tensor;
    for (int i = 0; same && i < o->n_fetches; i++)
        same = d->tensors[o->n_feeds + i] == o->fetches[i].tensor;
    for (int i = 0; same && i < o->n_targets; i++)
        same = d->tensors[o->n_feeds + o->n_fetches + i] == o->targets[i];
    return same;
}

static tt_status check_tensor(tti_remote *r, const tt_tensor *t)
{
    if (t == NULL || t->graph != r->g)
        return TT_FAIL(r->ctx, TT_EINVAL, "run: '%s' is not a tensor of this session's graph",
                       tt_tensor_name(t));
    return TT_OK;
}

// A run that the server does not know yet.
static tt_status define(tti_remote *r, const tt_run_opts *o, int *number)
{
    size_t n = (size_t)o->n_feeds + (size_t)o->n_fetches + (size_t)o->n_targets;
    tt_tensor **t = tti_calloc(r->ctx, n + 1, sizeof(tt_tensor *));
    if (t == NULL)
        return TT_ENOMEM;
    size_t at = 0;
    tt_status st = TT_OK;
    for (int i = 0; i < o->n_feeds; i++)
        t[at++] = o->feeds[i].tensor;
    for (int i = 0; i < o->n_fetches; i++)
        t[at++] = o->fetches[i].tensor;
    for (int i = 0; i < o->n_targets; i++)
        t[at++] = o->targets[i];
    for (size_t i = 0; i < n && st == TT_OK; i++)
        st = check_tensor(r, t[i]);
    if (st != TT_OK) {
        tti_free(r->ctx, t);
        return st;
    }
    *number = r->n_defs < MAX_DEFS ? r->n_defs++ : r->next++ % MAX_DEFS;
    tti_free(r->ctx, r->defs[*number].tensors);
    r->defs[*number] = (def){t, o->n_feeds, o->n_fetches, o->n_targets};
    tti_put_u32(&r->head, (uint32_t)*number);
    tti_put_u32(&r->head, 1);
    tti_put_u32(&r->head, (uint32_t)o->n_feeds);
    tti_put_u32(&r->head, (uint32_t)o->n_fetches);
    tti_put_u32(&r->head, (uint32_t)o->n_targets);
    for (size_t i = 0; i < n; i++)
        tti_put_text(&r->head, tt_tensor_name(t[i]));
    return TT_OK;
}

static void put_settings(tti_text *t, const tt_run_opts *o)
{
    tti_put_i64(t, o->step);
    tti_put_i64(t, o->unapplied);
    tti_put_f32(t, o->lr);
    tti_put_f32(t, o->grad_scale);
    tti_put_u32(t, (uint32_t)o->micro);
    tti_put_i64(t, o->batch.first_row);
    tti_put_i64(t, o->batch.global_rows);
    tti_put_u32(t, (uint32_t)o->batch.lanes);
    for (int i = 0; i < o->n_fetches; i++)
        tti_put_u64(t, o->fetches[i].data == NULL ? 0 : o->fetches[i].bytes);
}

/*
 * Feeds stay where they are: between their heads, which are in r->head, pieces point to them. Bytes
 * so far are counted with them, for alignment.
 */
static tt_status put_feeds(tti_remote *r, const tt_run_opts *o, int *n_pieces)
{
    tti_text *t = &r->head;
    size_t fed = 0, begin = 0;
    *n_pieces = 0;
    if (!tti_grow(r->ctx, &r->pieces, &r->cap_pieces, 2 * (int64_t)o->n_feeds + 1,
                  sizeof(*r->pieces)))
        return TT_ENOMEM;
    for (int i = 0; i < o->n_feeds; i++) {
        const tt_feed_value *f = &o->feeds[i];
        static const char zeros[TTI_PACK_ALIGN] = {0};
        tti_put_u32(t, (uint32_t)f->dtype);
        tti_put_shape(t, &f->shape);
        size_t over = ((size_t)t->n + fed) % TTI_PACK_ALIGN;
        if (over != 0)
            tti_text_put(t, zeros, TTI_PACK_ALIGN - over);
        size_t bytes = (size_t)tt_shape_count(&f->shape) * tt_dtype_bytes(f->dtype);
        r->pieces[(*n_pieces)++] = (tti_piece){NULL, (size_t)t->n - begin}; // of the head
        r->pieces[(*n_pieces)++] = (tti_piece){f->data, bytes};
        begin = (size_t)t->n;
        fed += bytes;
    }
    r->pieces[(*n_pieces)++] = (tti_piece){NULL, (size_t)t->n - begin};
    if (t->failed)
        return TT_ENOMEM;
    size_t at = 0;
    for (int i = 0; i < *n_pieces; i += 2) { // now it stays where it is
        r->pieces[i].data = t->s + at;
        at += r->pieces[i].bytes;
    }
    return TT_OK;
}

tt_status tti_remote_start(tti_remote *r, const tt_run_opts *o)
{
    int number = 0, n;
    r->head.n = 0;
    while (number < r->n_defs && !is_same(&r->defs[number], o))
        number++;
    bool is_known = number < r->n_defs;
    if (is_known) {
        tti_put_u32(&r->head, (uint32_t)number);
        tti_put_u32(&r->head, 0);
    } else {
        TT_TRY(define(r, o, &number));
    }
    put_settings(&r->head, o);
    TT_TRY(put_feeds(r, o, &n));
    tt_status st = tti_channel_send(r->channel, TTI_ASK_RUN, r->pieces, n);
    if (st != TT_OK && !is_known) {
        tti_free(r->ctx, r->defs[number].tensors);
        r->defs[number] = (def){.tensors = NULL};
    }
    return st;
}

// Answers of the server that a definition did not survive.
static void forget(tti_remote *r, const tt_run_opts *o)
{
    for (int i = 0; i < r->n_defs; i++) {
        if (!is_same(&r->defs[i], o))
            continue;
        tti_free(r->ctx, r->defs[i].tensors);
        r->defs[i] = (def){.tensors = NULL};
    }
}

tt_status tti_remote_finish(tti_remote *r, const tt_run_opts *o)
{
    tti_reader a;
    int64_t wait = tti_channel_run_ms(r->channel) + r->ctx->deadline_ms;
    tt_status st = tti_channel_receive(r->channel, wait, &a);
    if (st != TT_OK) {
        forget(r, o);
        return st;
    }
    for (int i = 0; i < o->n_fetches; i++) {
        uint64_t bytes = tti_get_u64(&a);
        tti_get_align(&a);
        const void *from = tti_get_bytes(&a, bytes);
        if (from == NULL || bytes > o->fetches[i].bytes)
            return TT_FAIL(r->ctx, TT_EPEER, "%s: the server's answer does not hold '%s'",
                           tti_channel_target(r->channel), tt_tensor_name(o->fetches[i].tensor));
        if (bytes > 0)
            memcpy(o->fetches[i].data, from, bytes);
    }
    return TT_OK;
}

// ---- variables -------------------------------------------------------------------------------

tt_status tti_remote_get(tti_remote *r, const tt_node *var, void *out, size_t bytes)
{
    tti_text t = {.ctx = r->ctx};
    tti_reader a;
    tti_put_text(&t, var->name);
    tti_put_align(&t);
    TT_TRY(tti_channel_ask(r->channel, TTI_ASK_GET, &t, 0, &a));
    const void *from = tti_get_bytes(&a, bytes);
    if (from == NULL || !tti_get_end(&a))
        return TT_FAIL(r->ctx, TT_EPEER, "%s: the server's answer does not hold '%s'",
                       tti_channel_target(r->channel), var->name);
    if (bytes > 0)
        memcpy(out, from, bytes);
    return TT_OK;
}

tt_status tti_remote_set(tti_remote *r, const tt_node *var, const void *data, size_t bytes)
{
    tti_text t = {.ctx = r->ctx};
    tti_reader a;
    tti_put_text(&t, var->name);
    tti_put_align(&t);
    size_t n = (size_t)t.n;
    char *head = tti_text_take(&t);
    if (head == NULL)
        return TT_ENOMEM;
    tti_piece p[] = {{head, n}, {data, bytes}};
    tt_status st = tti_channel_send(r->channel, TTI_ASK_SET, p, 2);
    tti_free(r->ctx, head);
    return st != TT_OK ? st : tti_channel_receive(r->channel, 0, &a);
}
