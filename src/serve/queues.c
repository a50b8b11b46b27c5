/*
 * queues.c - requests about queues, on the server. A client has queues by a number of its own.
 */
#include "base/ctx.h"
#include "serve/serve.h"
#include <string.h>

// The queue of this name in a container; made if there is none.
static tt_status find_or_make(tti_client *c, tti_container *k, const char *name,
                              tti_queue_shape *shape, tti_queue_core **out)
{
    tt_status st = TT_OK;
    tti_queue_core *q;
    pthread_mutex_lock(&k->mu);
    for (q = k->queues; q != NULL && strcmp(q->name, name) != 0; q = q->next)
        ;
    if (q != NULL) {
        st = tti_queue_core_agrees(c->ctx, q, shape);
    } else if (shape->capacity == 0) {
        st =
            TT_FAIL(c->ctx, TT_EINVAL, "%s has no queue '%s'; a new one needs a capacity and parts",
                    c->host->task, name);
    } else if (k->n_queues >= c->host->bounds.queues) {
        st = TT_FAIL(c->ctx, TT_ELIMIT, "queue '%s': %s has %d queues, its limit", name,
                     c->host->task, k->n_queues);
    } else {
        st = tti_queue_shape_check(c->ctx, name, shape);
        q = st != TT_OK ? NULL : tti_queue_core_new(c->ctx, name, shape, c->host->bounds.memory);
        st = q == NULL ? tt_status_of(c->ctx) : st;
        if (q != NULL) { // this reference is the list's
            q->next = k->queues;
            k->queues = q;
            k->n_queues++;
        }
    }
    if (st == TT_OK)
        tti_queue_core_retain(q);
    pthread_mutex_unlock(&k->mu);
    *out = q;
    return st;
}

static tt_status open_queue(tti_client *c, tti_reader *r, tti_text *out)
{
    char container[TTI_CONTAINER_MAX], name[TTI_QUEUE_NAME];
    tti_queue_shape s = {0};
    tti_get_text(r, container, sizeof(container));
    tti_get_text(r, name, sizeof(name));
    uint32_t kind = tti_get_u32(r);
    s.kind = kind <= TT_QUEUE_PRIORITY ? (tt_queue_kind)kind : TT_QUEUE_FIFO;
    s.capacity = tti_get_i64(r);
    s.min_after = tti_get_i64(r);
    s.seed = tti_get_u64(r);
    uint32_t n = tti_get_u32(r);
    for (uint32_t i = 0; i < n && i < TT_QUEUE_MAX_PARTS; i++) {
        s.parts[i].dtype = tti_get_dtype(r);
        s.parts[i].shape = tti_get_shape(r);
    }
    if (!tti_get_end(r) || n > TT_QUEUE_MAX_PARTS || kind > TT_QUEUE_PRIORITY)
        return tti_bad_message(c, "queue");
    s.n_parts = (int)n;
    if (c->n_queues >= 4096)
        return TT_FAIL(c->ctx, TT_ELIMIT, "a connection has at most 4096 queues");
    if (!tti_grow(NULL, &c->queues, &c->cap_queues, c->n_queues + 1, sizeof(*c->queues)))
        return TT_FAIL(c->ctx, TT_ENOMEM, "the server is out of memory");
    tti_container *k = tti_container_get(c->host, container, true);
    if (k == NULL)
        return TT_FAIL(c->ctx, TT_ENOMEM, "the server is out of memory");
    tti_queue_core *q;
    tt_status st = find_or_make(c, k, name, &s, &q);
    tti_container_release(k);
    TT_TRY(st);
    tti_put_u32(out, (uint32_t)c->n_queues);
    tti_put_u32(out, (uint32_t)q->shape.kind);
    tti_put_i64(out, q->shape.capacity);
    tti_put_i64(out, q->shape.min_after);
    tti_put_u32(out, (uint32_t)q->shape.n_parts);
    for (int i = 0; i < q->shape.n_parts; i++) {
        tti_put_u32(out, (uint32_t)q->shape.parts[i].dtype);
        tti_put_shape(out, &q->shape.parts[i].shape);
    }
    c->queues[c->n_queues++] = (tti_client_queue){.core = q};
    return TT_OK;
}

static void use(tti_client_queue *q, bool produces)
{
    bool *has = produces ? &q->produces : &q->consumes;
    if (!*has)
        tti_queue_core_begin(q->core, produces);
    *has = true;
}

static tt_status enqueue(tti_client *c, tti_client_queue *cq, tti_reader *r)
{
    tti_queue_core *q = cq->core;
    const void *values[TT_QUEUE_MAX_PARTS] = {NULL};
    tt_shape shapes[TT_QUEUE_MAX_PARTS];
    int64_t n = tti_get_i64(r), wait_ms = tti_get_i64(r);
    bool has_priorities = tti_get_u32(r) != 0;
    if (r->failed || n < 1 || n > q->shape.capacity)
        return TT_FAIL(c->ctx, TT_EINVAL,
                       "queue '%s': cannot enqueue %lld elements at once; its capacity is %lld",
                       q->name, (long long)n, (long long)q->shape.capacity);
    tti_get_align(r);
    const int64_t *priorities =
        has_priorities ? tti_get_bytes(r, (size_t)n * sizeof(*priorities)) : NULL;
    for (int p = 0; p < q->shape.n_parts; p++) {
        shapes[p] = tti_get_shape(r);
        tti_get_align(r);
        int64_t each = r->failed ? -1 : tti_queue_part_bytes(q, p, &shapes[p]), all = 0;
        char a[TT_SHAPE_TEXT], b[TT_SHAPE_TEXT];
        if (!r->failed && (each < 0 || !tti_mul_i64(each, n, &all)))
            return TT_FAIL(c->ctx, TT_ESHAPE, "queue '%s': part %d is %s, but was given %s",
                           q->name, p, tt_shape_text(&q->shape.parts[p].shape, a),
                           tt_shape_text(&shapes[p], b));
        values[p] = r->failed ? NULL : tti_get_bytes(r, (size_t)all);
    }
    if (!tti_get_end(r))
        return tti_bad_message(c, "enqueue");
    use(cq, true);
    tti_queue_call call = {c->ctx, wait_ms, &c->is_gone};
    return tti_queue_core_put(q, &call, values, shapes, n, priorities);
}

// Is the answer within the server's limit, and the client's room?
typedef struct fit {
    tti_client *c;
    tti_queue_core *q;
    uint64_t rooms[TT_QUEUE_MAX_PARTS];
} fit;

static tt_status fits(void *user, const tti_element *e, int64_t n)
{
    const fit *f = user;
    size_t bytes = 0;
    for (int p = 0; p < f->q->shape.n_parts; p++) {
        tt_shape s = tti_elements_shape(f->q, e, n, p);
        int64_t each = n * (int64_t)tt_dtype_bytes(f->q->shape.parts[p].dtype);
        for (int i = 0; i < s.rank; i++)
            if (!tti_mul_i64(each, s.dim[i], &each))
                each = INT64_MAX / 16;
        char a[TT_SHAPE_TEXT];
        if ((uint64_t)each > f->rooms[p])
            return TT_FAIL(
                f->c->ctx, TT_ESHAPE,
                "dequeue from '%s': part %d of %lld elements of %s needs %lld bytes, but "
                "there is room for %llu",
                f->q->name, p, (long long)n, tt_shape_text(&s, a), (long long)each,
                (unsigned long long)f->rooms[p]);
        bytes += (size_t)each;
    }
    if (bytes <= f->c->host->bounds.memory)
        return TT_OK;
    return TT_FAIL(f->c->ctx, TT_ELIMIT,
                   "queue '%s': %lld elements are %zu bytes with their padding, above the limit of "
                   "%zu",
                   f->q->name, (long long)n, bytes, f->c->host->bounds.memory);
}

static tt_status dequeue(tti_client *c, tti_client_queue *cq, tti_reader *r, tti_text *out)
{
    tti_queue_core *q = cq->core;
    int64_t n = tti_get_i64(r), wait_ms = tti_get_i64(r), taken;
    bool up_to = tti_get_u32(r) != 0;
    fit f = {.c = c, .q = q};
    for (int p = 0; p < q->shape.n_parts; p++)
        f.rooms[p] = tti_get_u64(r);
    if (!tti_get_end(r))
        return tti_bad_message(c, "dequeue");
    use(cq, false);
    tti_queue_call call = {c->ctx, wait_ms, &c->is_gone};
    tti_element *e;
    TT_TRY(tti_queue_core_take(q, &call, n, up_to, fits, &f, &e, &taken));
    tti_put_i64(out, taken);
    for (int p = 0; p < q->shape.n_parts; p++) {
        tt_shape s = tti_elements_shape(q, e, taken, p);
        size_t bytes = (size_t)taken * tt_dtype_bytes(q->shape.parts[p].dtype);
        for (int i = 0; i < s.rank; i++)
            bytes *= (size_t)s.dim[i];
        tti_put_shape(out, &s);
        tti_put_u64(out, bytes);
        tti_put_align(out);
        char *room = bytes > 0 ? tti_alloc(c->ctx, bytes) : NULL;
        if (bytes > 0 && room == NULL) {
            tti_elements_free(e, n);
            return TT_ENOMEM;
        }
        if (bytes > 0) {
            tti_elements_write(q, e, taken, p, &s, room);
            tti_text_put(out, room, bytes);
        }
        tti_free(c->ctx, room);
    }
    tti_elements_free(e, n);
    return TT_OK;
}

tt_status tti_queue_request(tti_client *c, uint32_t kind, tti_reader *r, tti_text *out)
{
    if (kind == TTI_QUEUE_OPEN)
        return open_queue(c, r, out);
    uint32_t number = tti_get_u32(r);
    if (r->failed || number >= c->n_queues || c->queues[number].core == NULL)
        return TT_FAIL(c->ctx, TT_EINVAL, "the connection has no queue %u", number);
    tti_client_queue *cq = &c->queues[number];
    if (kind == TTI_ENQUEUE)
        return enqueue(c, cq, r);
    if (kind == TTI_DEQUEUE)
        return dequeue(c, cq, r, out);
    bool cancel = kind == TTI_QUEUE_CLOSE && tti_get_u32(r) != 0;
    if (!tti_get_end(r))
        return tti_bad_message(c, "queue");
    if (kind == TTI_QUEUE_SIZE) {
        tti_put_i64(out, tti_queue_core_size(cq->core));
    } else if (kind == TTI_QUEUE_CLOSE) {
        tti_queue_core_close(cq->core, cancel);
    } else {
        if (cq->produces)
            tti_queue_core_end(cq->core, true, NULL);
        if (cq->consumes)
            tti_queue_core_end(cq->core, false, NULL);
        tti_queue_core_release(cq->core);
        *cq = (tti_client_queue){.core = NULL};
    }
    return TT_OK;
}
