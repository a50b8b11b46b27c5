/*
 * queue_calls.c - handles on queues: of this process, or of a server.
 */
#include "base/ctx.h"
#include "serve/serve.h"
#include <string.h>

struct tt_queue {
    tt_ctx *ctx;
    struct tti_hooks owned;
    tti_queue_core *core; // here; NULL: on a server
    bool produces, consumes;
    tti_channel *channel;
    uint32_t number;
    char name[TTI_QUEUE_NAME];
    tti_queue_shape shape;
};

static void queue_release(void *owner)
{
    tt_queue *q = owner;
    if (q->core != NULL && q->produces)
        tti_queue_core_end(q->core, true, NULL);
    if (q->core != NULL && q->consumes)
        tti_queue_core_end(q->core, false, NULL);
    tti_queue_core_release(q->core);
    tti_channel_close(q->channel); // which says goodbye
    tti_free(q->ctx, q);
}

void tt_queue_free(tt_queue *q)
{
    if (q == NULL || q->ctx == NULL)
        return;
    tti_disown(q->ctx, &q->owned);
    queue_release(q);
}

static tt_status open_remote(tt_queue *q, const tt_queue_open_opts *o)
{
    tti_channel_opts way = {.target = o->target, .key = o->key};
    tti_text t = {.ctx = q->ctx};
    tti_reader r;
    TT_TRY(tti_channel_open(q->ctx, &way, &q->channel));
    tti_put_text(&t, o->container);
    tti_put_text(&t, q->name);
    tti_put_u32(&t, (uint32_t)q->shape.kind);
    tti_put_i64(&t, q->shape.capacity);
    tti_put_i64(&t, q->shape.min_after);
    tti_put_u64(&t, q->shape.seed);
    tti_put_u32(&t, (uint32_t)q->shape.n_parts);
    for (int i = 0; i < q->shape.n_parts; i++) {
        tti_put_u32(&t, (uint32_t)q->shape.parts[i].dtype);
        tti_put_shape(&t, &q->shape.parts[i].shape);
    }
    TT_TRY(tti_channel_ask(q->channel, TTI_QUEUE_OPEN, &t, 0, &r));
    q->number = tti_get_u32(&r);
    q->shape.kind = (tt_queue_kind)tti_get_u32(&r);
    q->shape.capacity = tti_get_i64(&r);
    q->shape.min_after = tti_get_i64(&r);
    uint32_t n = tti_get_u32(&r);
    for (uint32_t i = 0; i < n && i < TT_QUEUE_MAX_PARTS; i++) {
        q->shape.parts[i].dtype = tti_get_dtype(&r);
        q->shape.parts[i].shape = tti_get_shape(&r);
    }
    q->shape.n_parts = (int)n;
    if (!tti_get_end(&r) || n > TT_QUEUE_MAX_PARTS)
        return TT_FAIL(q->ctx, TT_EPEER, "%s: the server's answer cannot be read", o->target);
    return TT_OK;
}

static tt_status open_local(tt_queue *q, const tt_queue_open_opts *o)
{
    if (o->of != NULL) {
        if (o->of->core == NULL)
            return TT_FAIL(q->ctx, TT_EINVAL,
                           "queue '%s': .of is a handle on a server's queue; open it by its target",
                           q->name);
        TT_TRY(tti_queue_core_agrees(q->ctx, o->of->core, &q->shape));
        q->core = o->of->core;
        tti_queue_core_retain(q->core);
    } else {
        TT_TRY(tti_queue_shape_check(q->ctx, q->name, &q->shape));
        q->core = tti_queue_core_new(q->ctx, q->name, &q->shape, SIZE_MAX / 4);
        if (q->core == NULL)
            return tt_status_of(q->ctx);
    }
    q->shape = q->core->shape;
    return TT_OK;
}

tt_queue *tt_queue_open_with(tt_ctx *ctx, const char *name, const tt_queue_open_opts *opts)
{
    if (ctx == NULL || tti_is_stuck(ctx))
        return NULL;
    TTI_OPTS_OWN(ctx, "queue", tt_queue_open_opts, opts);
    if (opts == NULL)
        return NULL;
    if (name == NULL || name[0] == '\0' || strlen(name) >= TTI_QUEUE_NAME) {
        (void)TT_FAIL(ctx, TT_EINVAL, "a queue needs a name of 1 to %d characters",
                      TTI_QUEUE_NAME - 1);
        return NULL;
    }
    bool bad = opts->n_parts < 0 || opts->n_parts > TT_QUEUE_MAX_PARTS ||
               (opts->n_parts > 0 && opts->parts == NULL) ||
               (opts->of != NULL && opts->target != NULL);
    if (bad) {
        (void)TT_FAIL(ctx, TT_EINVAL,
                      "queue '%s': parts are missing or more than %d, or both of and target are "
                      "given",
                      name, TT_QUEUE_MAX_PARTS);
        return NULL;
    }
    tt_queue *q = tti_calloc(ctx, 1, sizeof(*q));
    if (q == NULL)
        return NULL;
    q->ctx = ctx;
    strncpy(q->name, name, sizeof(q->name) - 1);
    q->shape = (tti_queue_shape){.kind = opts->kind,
                                 .capacity = opts->capacity,
                                 .min_after = opts->min_after_dequeue,
                                 .seed = opts->seed,
                                 .n_parts = opts->n_parts};
    for (int i = 0; i < opts->n_parts; i++)
        q->shape.parts[i] = opts->parts[i];
    tt_status st = opts->target != NULL ? open_remote(q, opts) : open_local(q, opts);
    if (st != TT_OK) {
        queue_release(q);
        return NULL;
    }
    tti_own(ctx, &q->owned, q, queue_release);
    return q;
}

// ---- in --------------------------------------------------------------------------------------

static tt_status check(tt_queue *q)
{
    if (q == NULL || q->ctx == NULL)
        return TT_EINVAL;
    return tti_is_stuck(q->ctx) ? tt_status_of(q->ctx) : TT_OK;
}

static tt_status put_remote(tt_queue *q, const tt_enqueue_opts *o, int64_t n, int64_t wait_ms)
{
    static const char zeros[TTI_PACK_ALIGN] = {0};
    tti_queue_core like = {.shape = q->shape}; // for sizes alone
    tti_piece pieces[2 * TT_QUEUE_MAX_PARTS];
    size_t ends[TT_QUEUE_MAX_PARTS], fed = 0, begin = 0;
    char a[TT_SHAPE_TEXT], b[TT_SHAPE_TEXT];
    tti_text t = {.ctx = q->ctx};
    tti_put_u32(&t, q->number);
    tti_put_i64(&t, n);
    tti_put_i64(&t, wait_ms);
    tti_put_u32(&t, o->priorities != NULL);
    tti_put_align(&t);
    if (o->priorities != NULL)
        tti_text_put(&t, (const char *)o->priorities, (size_t)n * sizeof(int64_t));
    for (int p = 0; p < q->shape.n_parts; p++) {
        const tt_shape *s = o->shapes != NULL ? &o->shapes[p] : &q->shape.parts[p].shape;
        int64_t each = tti_queue_part_bytes(&like, p, s), all;
        bool fits = each >= 0 && tti_mul_i64(each, n, &all);
        if (!fits || (all > 0 && o->values[p] == NULL)) {
            tti_text_free(&t);
            return TT_FAIL(q->ctx, TT_ESHAPE, "queue '%s': part %d is %s, but was given %s",
                           q->name, p, tt_shape_text(&q->shape.parts[p].shape, a),
                           fits ? "NULL" : tt_shape_text(s, b));
        }
        tti_put_shape(&t, q->shape.kind == TT_QUEUE_PADDING ? s : &q->shape.parts[p].shape);
        size_t over = ((size_t)t.n + fed) % TTI_PACK_ALIGN;
        if (over != 0)
            tti_text_put(&t, zeros, TTI_PACK_ALIGN - over);
        ends[p] = (size_t)t.n;
        pieces[2 * p + 1] = (tti_piece){o->values[p], (size_t)all};
        fed += (size_t)all;
    }
    char *head = tti_text_take(&t);
    if (head == NULL)
        return TT_ENOMEM;
    for (int p = 0; p < q->shape.n_parts; p++) {
        pieces[2 * p] = (tti_piece){head + begin, ends[p] - begin};
        begin = ends[p];
    }
    tti_reader r;
    tt_status st = tti_channel_send(q->channel, TTI_ENQUEUE, pieces, 2 * q->shape.n_parts);
    if (st == TT_OK)
        st = tti_channel_receive(q->channel, wait_ms + q->ctx->deadline_ms, &r);
    tti_free(q->ctx, head);
    return st;
}

tt_status tt_enqueue_with(tt_queue *q, const tt_enqueue_opts *opts)
{
    TT_TRY(check(q));
    tt_enqueue_opts o;
    TT_TRY(TTI_OPTS_COPY(q->ctx, "enqueue", opts, &o));
    int64_t n = o.n == 0 ? 1 : o.n,
            wait_ms = o.deadline_ms > 0 ? o.deadline_ms : q->ctx->deadline_ms;
    if (o.values == NULL || n < 1)
        return TT_FAIL(q->ctx, TT_EINVAL, "enqueue to '%s': %s", q->name,
                       n < 1 ? "n is below 1" : "values are NULL");
    if (n > q->shape.capacity)
        return TT_FAIL(q->ctx, TT_EINVAL,
                       "queue '%s': cannot enqueue %lld elements at once; its capacity is %lld",
                       q->name, (long long)n, (long long)q->shape.capacity);
    if (q->shape.kind == TT_QUEUE_PADDING && o.shapes == NULL)
        return TT_FAIL(q->ctx, TT_ESHAPE, "queue '%s' is a padding queue: shapes are needed",
                       q->name);
    if (q->core == NULL)
        return put_remote(q, &o, n, wait_ms);
    if (!q->produces)
        tti_queue_core_begin(q->core, true);
    q->produces = true;
    tti_queue_call call = {q->ctx, wait_ms, &q->ctx->stop};
    return tti_queue_core_put(q->core, &call, o.values, o.shapes, n, o.priorities);
}

// ---- out -------------------------------------------------------------------------------------

typedef struct room {
    tt_queue *q;
    const tt_dequeue_opts *o;
} room;

static tt_status check_room(const room *r, int part, size_t bytes, const tt_shape *s, int64_t n)
{
    char a[TT_SHAPE_TEXT];
    if (bytes == 0 || (r->o->out != NULL && r->o->out[part] != NULL &&
                       (r->o->bytes == NULL || r->o->bytes[part] >= bytes)))
        return TT_OK;
    return TT_FAIL(
        r->q->ctx, TT_ESHAPE,
        "dequeue from '%s': part %d of %lld elements of %s needs %zu bytes, but there is "
        "room for %zu",
        r->q->name, part, (long long)n, tt_shape_text(s, a), bytes,
        r->o->out == NULL || r->o->out[part] == NULL || r->o->bytes == NULL ? (size_t)0
                                                                            : r->o->bytes[part]);
}

static size_t all_bytes(const tt_queue *q, int part, const tt_shape *s, int64_t n)
{
    size_t bytes = (size_t)n * tt_dtype_bytes(q->shape.parts[part].dtype);
    for (int i = 0; i < s->rank; i++)
        bytes *= (size_t)s->dim[i];
    return bytes;
}

static tt_status fits(void *user, const tti_element *e, int64_t n)
{
    const room *r = user;
    for (int p = 0; p < r->q->shape.n_parts; p++) {
        tt_shape s = tti_elements_shape(r->q->core, e, n, p);
        TT_TRY(check_room(r, p, all_bytes(r->q, p, &s, n), &s, n));
    }
    return TT_OK;
}

static tt_status take_local(tt_queue *q, const tt_dequeue_opts *o, int64_t n, int64_t wait_ms,
                            int64_t *taken)
{
    tti_queue_call call = {q->ctx, wait_ms, &q->ctx->stop};
    tti_element *e;
    room r = {q, o};
    if (!q->consumes)
        tti_queue_core_begin(q->core, false);
    q->consumes = true;
    TT_TRY(tti_queue_core_take(q->core, &call, n, o->up_to, fits, &r, &e, taken));
    for (int p = 0; p<q->shape.n_parts && * taken> 0; p++) {
        tt_shape s = tti_elements_shape(q->core, e, *taken, p);
        if (all_bytes(q, p, &s, *taken) > 0)
            tti_elements_write(q->core, e, *taken, p, &s, o->out[p]);
        if (o->shapes != NULL)
            o->shapes[p] = s;
    }
    tti_elements_free(e, n);
    return TT_OK;
}

static tt_status take_remote(tt_queue *q, const tt_dequeue_opts *o, int64_t n, int64_t wait_ms,
                             int64_t *taken)
{
    tti_text t = {.ctx = q->ctx};
    tti_reader r;
    room room_of = {q, o};
    if (q->shape.kind != TT_QUEUE_PADDING) // before anything is taken
        for (int p = 0; p < q->shape.n_parts; p++) {
            const tt_shape *s = &q->shape.parts[p].shape;
            TT_TRY(check_room(&room_of, p, all_bytes(q, p, s, n), s, n));
        }
    tti_put_u32(&t, q->number);
    tti_put_i64(&t, n);
    tti_put_i64(&t, wait_ms);
    tti_put_u32(&t, o->up_to);
    for (int p = 0; p < q->shape.n_parts; p++)
        tti_put_u64(&t, o->out == NULL || o->out[p] == NULL ? 0
                        : o->bytes == NULL                  ? UINT64_MAX
                                                            : (uint64_t)o->bytes[p]);
    TT_TRY(tti_channel_ask(q->channel, TTI_DEQUEUE, &t, wait_ms + q->ctx->deadline_ms, &r));
    *taken = tti_get_i64(&r);
    for (int p = 0; p < q->shape.n_parts && !r.failed; p++) {
        tt_shape s = tti_get_shape(&r);
        uint64_t bytes = tti_get_u64(&r);
        tti_get_align(&r);
        const void *from = tti_get_bytes(&r, bytes);
        if (from == NULL)
            break;
        TT_TRY(check_room(&room_of, p, bytes, &s, *taken));
        if (bytes > 0)
            memcpy(o->out[p], from, bytes);
        if (o->shapes != NULL)
            o->shapes[p] = s;
    }
    if (!tti_get_end(&r))
        return TT_FAIL(q->ctx, TT_EPEER, "queue '%s': the server's answer cannot be read", q->name);
    return TT_OK;
}

tt_status tt_dequeue_with(tt_queue *q, const tt_dequeue_opts *opts)
{
    TT_TRY(check(q));
    tt_dequeue_opts o;
    TT_TRY(TTI_OPTS_COPY(q->ctx, "dequeue", opts, &o));
    int64_t n = o.n == 0 ? 1 : o.n, taken = 0;
    int64_t wait_ms = o.deadline_ms > 0 ? o.deadline_ms : q->ctx->deadline_ms;
    if (n < 1 || (o.up_to && o.taken == NULL))
        return TT_FAIL(q->ctx, TT_EINVAL, "dequeue from '%s': %s", q->name,
                       n < 1 ? "n is below 1" : "up_to needs taken, the number of elements");
    if (n > q->shape.capacity)
        return TT_FAIL(q->ctx, TT_EINVAL,
                       "queue '%s': cannot dequeue %lld elements at once; its capacity is %lld",
                       q->name, (long long)n, (long long)q->shape.capacity);
    TT_TRY(q->core != NULL ? take_local(q, &o, n, wait_ms, &taken)
                           : take_remote(q, &o, n, wait_ms, &taken));
    if (o.taken != NULL)
        *o.taken = taken;
    return TT_OK;
}

// ---- the rest --------------------------------------------------------------------------------

tt_status tt_queue_size(tt_queue *q, int64_t *out)
{
    TT_TRY(check(q));
    if (out == NULL)
        return TT_FAIL(q->ctx, TT_EINVAL, "queue '%s': the room for its size is NULL", q->name);
    if (q->core != NULL) {
        *out = tti_queue_core_size(q->core);
        return TT_OK;
    }
    tti_text t = {.ctx = q->ctx};
    tti_reader r;
    tti_put_u32(&t, q->number);
    TT_TRY(tti_channel_ask(q->channel, TTI_QUEUE_SIZE, &t, 0, &r));
    *out = tti_get_i64(&r);
    return TT_OK;
}

tt_status tt_queue_close_with(tt_queue *q, const tt_queue_close_opts *opts)
{
    TT_TRY(check(q));
    tt_queue_close_opts o;
    TT_TRY(TTI_OPTS_COPY(q->ctx, "queue close", opts, &o));
    if (q->core != NULL) {
        tti_queue_core_close(q->core, o.cancel);
        return TT_OK;
    }
    tti_text t = {.ctx = q->ctx};
    tti_reader r;
    tti_put_u32(&t, q->number);
    tti_put_u32(&t, o.cancel);
    return tti_channel_ask(q->channel, TTI_QUEUE_CLOSE, &t, 0, &r);
}

tti_queue_core *tti_queue_core_of(tt_queue *q)
{
    return q->core;
}

tt_ctx *tti_queue_ctx(const tt_queue *q)
{
    return q == NULL ? NULL : q->ctx;
}
