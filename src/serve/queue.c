/*
 * queue.c - queues of elements (queue.h).
 *
 * All kinds keep an array: a ring from head on, or for a priority queue a heap from 0 on. A
 * shuffling queue draws among all of the ring and moves its first into the gap: what is drawn
 * depends on the seed and the order of calls alone.
 */
#include "serve/queue.h"
#include "base/ctx.h"
#include "base/thread.h"
#include <string.h>
#include <time.h>

#define MAX_CAPACITY ((int64_t)1 << 24)
#define SLICE_MS     20 // what ends a wait early is looked at so often

// ---- what it is made with --------------------------------------------------------------------

static int64_t part_bytes(tt_dtype dtype, const tt_shape *s)
{
    int64_t n = (int64_t)tt_dtype_bytes(dtype);
    for (int i = 0; i < s->rank; i++)
        if (s->dim[i] < 0 || !tti_mul_i64(n, s->dim[i], &n))
            return -1;
    return n;
}

static tt_status check_part(tt_ctx *ctx, const char *name, const tti_queue_shape *s, int i)
{
    const tt_queue_part *p = &s->parts[i];
    char text[TT_SHAPE_TEXT];
    if (p->dtype < 0 || p->dtype >= TT_N_DTYPES || p->shape.rank < 0 || p->shape.rank > TT_MAX_RANK)
        return TT_FAIL(ctx, TT_EINVAL, "queue '%s': part %d has an unknown type or shape", name, i);
    tt_shape least = p->shape;
    for (int k = 0; k < least.rank; k++) {
        bool open = least.dim[k] == -1 && s->kind == TT_QUEUE_PADDING;
        if (least.dim[k] < 0 && !open)
            return TT_FAIL(ctx, TT_ESHAPE,
                           "queue '%s': part %d is %s; only a padding queue has dimensions of -1",
                           name, i, tt_shape_text(&p->shape, text));
        least.dim[k] = open ? 0 : least.dim[k];
    }
    if (part_bytes(p->dtype, &least) < 0)
        return TT_FAIL(ctx, TT_ESHAPE, "queue '%s': part %d %s is too large", name, i,
                       tt_shape_text(&p->shape, text));
    return TT_OK;
}

tt_status tti_queue_shape_check(tt_ctx *ctx, const char *name, tti_queue_shape *s)
{
    if (name[0] == '\0' || strlen(name) >= TTI_QUEUE_NAME)
        return TT_FAIL(ctx, TT_EINVAL, "a queue needs a name of 1 to %d characters",
                       TTI_QUEUE_NAME - 1);
    if (s->kind < TT_QUEUE_FIFO || s->kind > TT_QUEUE_PRIORITY)
        return TT_FAIL(ctx, TT_EINVAL, "queue '%s': kind %d is unknown", name, (int)s->kind);
    if (s->capacity < 1 || s->capacity > MAX_CAPACITY)
        return TT_FAIL(ctx, TT_EINVAL, "queue '%s': the capacity is %lld; use 1 to %lld", name,
                       (long long)s->capacity, (long long)MAX_CAPACITY);
    if (s->n_parts < 1 || s->n_parts > TT_QUEUE_MAX_PARTS)
        return TT_FAIL(ctx, TT_EINVAL, "queue '%s': %d parts; an element has 1 to %d", name,
                       s->n_parts, TT_QUEUE_MAX_PARTS);
    if (s->min_after < 0 || s->min_after >= s->capacity ||
        (s->min_after > 0 && s->kind != TT_QUEUE_SHUFFLE))
        return TT_FAIL(ctx, TT_EINVAL,
                       "queue '%s': min_after_dequeue is %lld; it is for shuffling queues, and "
                       "below their capacity (%lld)",
                       name, (long long)s->min_after, (long long)s->capacity);
    for (int i = 0; i < s->n_parts; i++)
        TT_TRY(check_part(ctx, name, s, i));
    return TT_OK;
}

tti_queue_core *tti_queue_core_new(tt_ctx *ctx, const char *name, const tti_queue_shape *s,
                                   size_t max_bytes)
{
    tti_queue_core *q = tti_calloc(NULL, 1, sizeof(*q));
    tti_element *v = q == NULL ? NULL : tti_calloc(NULL, (size_t)s->capacity, sizeof(*v));
    if (v == NULL) {
        tti_free(NULL, q);
        (void)TT_FAIL(ctx, TT_ENOMEM, "queue '%s': no memory for %lld elements", name,
                      (long long)s->capacity);
        return NULL;
    }
    q->shape = *s;
    q->max_bytes = max_bytes;
    q->v = v;
    strncpy(q->name, name, sizeof(q->name) - 1);
    atomic_store(&q->refs, 1);
    pthread_mutex_init(&q->mu, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&q->changed, &attr);
    pthread_condattr_destroy(&attr);
    return q;
}

static void element_free(tti_element *e)
{
    tti_free(NULL, e->data);
    *e = (tti_element){.data = NULL};
}

static tti_element *at(tti_queue_core *q, int64_t i)
{
    return &q->v[(q->head + i) % q->shape.capacity];
}

static void drop_all(tti_queue_core *q)
{
    for (int64_t i = 0; i < q->n; i++)
        element_free(at(q, i));
    q->n = q->head = 0;
    q->bytes = 0;
}

void tti_queue_core_retain(tti_queue_core *q)
{
    atomic_fetch_add(&q->refs, 1);
}

void tti_queue_core_release(tti_queue_core *q)
{
    if (q == NULL || atomic_fetch_sub(&q->refs, 1) > 1)
        return;
    drop_all(q);
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->mu);
    tti_free(NULL, q->v);
    tti_free(NULL, q);
}

tt_status tti_queue_core_agrees(tt_ctx *ctx, const tti_queue_core *q, const tti_queue_shape *s)
{
    static const char *const kinds[] = {"FIFO", "shuffling", "padding", "priority"};
    const tti_queue_shape *has = &q->shape;
    char a[TT_SHAPE_TEXT], b[TT_SHAPE_TEXT];
    if (s->capacity == 0 && s->n_parts == 0)
        return TT_OK;
    if (s->kind != has->kind)
        return TT_FAIL(ctx, TT_EINVAL, "queue '%s' is a %s queue there, not a %s queue", q->name,
                       kinds[has->kind], kinds[s->kind]);
    if (s->capacity != 0 && s->capacity != has->capacity)
        return TT_FAIL(ctx, TT_EINVAL, "queue '%s' has a capacity of %lld there, not %lld", q->name,
                       (long long)has->capacity, (long long)s->capacity);
    if (s->n_parts != 0 && s->n_parts != has->n_parts)
        return TT_FAIL(ctx, TT_ESHAPE, "queue '%s' has elements of %d parts there, not %d", q->name,
                       has->n_parts, s->n_parts);
    if (s->min_after != has->min_after || s->seed != has->seed)
        return TT_FAIL(ctx, TT_EINVAL,
                       "queue '%s' has min_after_dequeue %lld and seed %llu there, not %lld and "
                       "%llu",
                       q->name, (long long)has->min_after, (unsigned long long)has->seed,
                       (long long)s->min_after, (unsigned long long)s->seed);
    for (int i = 0; i < s->n_parts; i++) {
        const tt_queue_part *p = &has->parts[i], *w = &s->parts[i];
        bool same = p->dtype == w->dtype && p->shape.rank == w->shape.rank;
        for (int k = 0; same && k < p->shape.rank; k++)
            same = p->shape.dim[k] == w->shape.dim[k];
        if (!same)
            return TT_FAIL(ctx, TT_ESHAPE, "queue '%s': part %d is %s %s there, not %s %s", q->name,
                           i, tt_dtype_name(p->dtype), tt_shape_text(&p->shape, a),
                           tt_dtype_name(w->dtype), tt_shape_text(&w->shape, b));
    }
    return TT_OK;
}

int64_t tti_queue_part_bytes(const tti_queue_core *q, int part, const tt_shape *shape)
{
    const tt_queue_part *p = &q->shape.parts[part];
    if (q->shape.kind != TT_QUEUE_PADDING)
        return part_bytes(p->dtype, &p->shape);
    bool fits = shape != NULL && shape->rank == p->shape.rank;
    for (int i = 0; fits && i < p->shape.rank; i++)
        fits = shape->dim[i] >= 0 && (p->shape.dim[i] == -1 || p->shape.dim[i] == shape->dim[i]);
    return fits ? part_bytes(p->dtype, shape) : -1;
}

// ---- waiting ---------------------------------------------------------------------------------

// Under q->mu. TT_OK: something may have changed; else what ended the wait is recorded.
static tt_status wait_slice(tti_queue_core *q, const tti_queue_call *call, int64_t deadline,
                            const char *what, int64_t n)
{
    if (call->stop != NULL && atomic_load(call->stop) != 0)
        return TT_FAIL(call->ctx, TT_ESTOP, "queue '%s': stopped on request while waiting",
                       q->name);
    int64_t now = tti_now_ns();
    if (now >= deadline)
        return TT_FAIL(call->ctx, TT_ETIMEOUT,
                       "queue '%s': waited %lld ms to %s %lld; it has %lld of %lld elements",
                       q->name, (long long)call->wait_ms, what, (long long)n, (long long)q->n,
                       (long long)q->shape.capacity);
    int64_t until = TTI_MIN(deadline, now + SLICE_MS * INT64_C(1000000));
    struct timespec t = {.tv_sec = until / 1000000000, .tv_nsec = until % 1000000000};
    pthread_cond_timedwait(&q->changed, &q->mu, &t);
    return TT_OK;
}

static tt_status lost(tti_queue_core *q, tt_ctx *ctx, bool producer)
{
    return TT_FAIL(ctx, TT_EPEER, "queue '%s' %s and its last %s, %s, was lost", q->name,
                   producer ? "has too few elements" : "is full",
                   producer ? "producer" : "consumer",
                   producer ? q->lost_producer : q->lost_consumer);
}

static tt_status is_over(tti_queue_core *q, tt_ctx *ctx, const char *what)
{
    return TT_FAIL(ctx, TT_ESTOP, "queue '%s' is closed%s: cannot %s", q->name,
                   q->is_cancelled ? ", and what waited was cancelled" : "", what);
}

// ---- in --------------------------------------------------------------------------------------

static bool comes_first(const tti_element *a, const tti_element *b)
{
    return a->priority != b->priority ? a->priority < b->priority : a->order < b->order;
}

static void push(tti_queue_core *q, tti_element e)
{
    e.order = q->n_in++;
    q->bytes += e.bytes;
    if (q->shape.kind != TT_QUEUE_PRIORITY) {
        *at(q, q->n++) = e;
        return;
    }
    int64_t i = q->n++;
    for (; i > 0 && comes_first(&e, &q->v[(i - 1) / 2]); i = (i - 1) / 2)
        q->v[i] = q->v[(i - 1) / 2];
    q->v[i] = e;
}

static void element_fill(const tti_queue_core *q, tti_element *e, const void *const *values,
                         const tt_shape *shapes, int64_t i)
{
    char *to = e->data;
    for (int p = 0; p < q->shape.n_parts; p++) {
        size_t bytes = (size_t)tti_queue_part_bytes(q, p, shapes != NULL ? &shapes[p] : NULL);
        if (bytes > 0)
            memcpy(to, (const char *)values[p] + (size_t)i * bytes, bytes);
        to += bytes;
    }
    if (e->shapes != NULL)
        memcpy(e->shapes, shapes, (size_t)q->shape.n_parts * sizeof(*shapes));
}

// Copies of all elements, made before the queue is touched.
static tt_status copy_in(tti_queue_core *q, const tti_queue_call *call, const void *const *values,
                         const tt_shape *shapes, int64_t n, const int64_t *priorities,
                         tti_element **out)
{
    bool pads = q->shape.kind == TT_QUEUE_PADDING;
    size_t bytes = 0, extra = pads ? (size_t)q->shape.n_parts * sizeof(tt_shape) : 0;
    char a[TT_SHAPE_TEXT], b[TT_SHAPE_TEXT];
    for (int p = 0; p < q->shape.n_parts; p++) {
        int64_t part = tti_queue_part_bytes(q, p, shapes != NULL ? &shapes[p] : NULL);
        if (part < 0)
            return TT_FAIL(call->ctx, TT_ESHAPE, "queue '%s': part %d is %s, but was given %s",
                           q->name, p, tt_shape_text(&q->shape.parts[p].shape, a),
                           shapes != NULL ? tt_shape_text(&shapes[p], b) : "no shape");
        if (part > 0 && (values == NULL || values[p] == NULL))
            return TT_FAIL(call->ctx, TT_EINVAL, "queue '%s': part %d is NULL", q->name, p);
        bytes += (size_t)part;
    }
    if (bytes > q->max_bytes || (size_t)n * bytes > q->max_bytes)
        return TT_FAIL(call->ctx, TT_ELIMIT,
                       "queue '%s': %lld elements of %zu bytes are above the limit of %zu bytes "
                       "for a queue",
                       q->name, (long long)n, bytes, q->max_bytes);
    tti_element *e = tti_calloc(NULL, (size_t)n, sizeof(*e));
    size_t room = (bytes + 15) / 16 * 16;
    bool ok = e != NULL;
    for (int64_t i = 0; ok && i < n; i++) {
        e[i] = (tti_element){.priority = priorities != NULL ? priorities[i] : 0, .bytes = bytes};
        e[i].data = tti_alloc(NULL, room + extra + 1);
        ok = e[i].data != NULL;
        e[i].shapes = ok && pads ? (tt_shape *)(void *)(e[i].data + room) : NULL;
        if (ok)
            element_fill(q, &e[i], values, pads ? shapes : NULL, i);
    }
    if (!ok) {
        tti_elements_free(e, e != NULL ? n : 0);
        return TT_FAIL(call->ctx, TT_ENOMEM, "queue '%s': no memory for %lld elements of %zu bytes",
                       q->name, (long long)n, bytes);
    }
    *out = e;
    return TT_OK;
}

tt_status tti_queue_core_put(tti_queue_core *q, const tti_queue_call *call,
                             const void *const *values, const tt_shape *shapes, int64_t n,
                             const int64_t *priorities)
{
    tti_element *e;
    if (n < 1 || n > q->shape.capacity)
        return TT_FAIL(call->ctx, TT_EINVAL,
                       "queue '%s': cannot enqueue %lld elements at once; its capacity is %lld",
                       q->name, (long long)n, (long long)q->shape.capacity);
    TT_TRY(copy_in(q, call, values, shapes, n, priorities, &e));
    int64_t deadline = tti_deadline(call->wait_ms);
    tt_status st = TT_OK;
    pthread_mutex_lock(&q->mu);
    for (;;) {
        size_t more = (size_t)n * e[0].bytes;
        if (q->is_closed)
            st = is_over(q, call->ctx, "enqueue");
        else if (q->n + n <= q->shape.capacity && q->bytes + more <= q->max_bytes)
            break;
        else if (q->consumers == 0 && q->lost_consumer[0] != '\0')
            st = lost(q, call->ctx, false);
        else
            st = wait_slice(q, call, deadline, "enqueue", n);
        if (st != TT_OK)
            break;
    }
    for (int64_t i = 0; st == TT_OK && i < n; i++) {
        push(q, e[i]);
        e[i] = (tti_element){.data = NULL}; // the queue has it
    }
    if (st == TT_OK)
        pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->mu);
    tti_elements_free(e, n);
    return st;
}

// ---- out -------------------------------------------------------------------------------------

static tti_element pop_heap(tti_queue_core *q)
{
    tti_element first = q->v[0], last = q->v[--q->n];
    int64_t i = 0;
    for (int64_t child; (child = 2 * i + 1) < q->n; i = child) {
        child += child + 1 < q->n && comes_first(&q->v[child + 1], &q->v[child]);
        if (!comes_first(&q->v[child], &last))
            break;
        q->v[i] = q->v[child];
    }
    q->v[i] = last;
    return first;
}

static tti_element pop(tti_queue_core *q)
{
    tti_element e;
    if (q->shape.kind == TT_QUEUE_PRIORITY) {
        e = pop_heap(q);
    } else {
        int64_t i = 0;
        if (q->shape.kind == TT_QUEUE_SHUFFLE) {
            tti_philox r = tti_philox4(q->shape.seed, q->n_drawn++, 0);
            uint64_t word = (uint64_t)r.v[0] << 32 | r.v[1];
            i = (int64_t)(word % (uint64_t)q->n);
        }
        e = *at(q, i);
        *at(q, i) = *at(q, 0);
        *at(q, 0) = (tti_element){.data = NULL};
        q->head = (q->head + 1) % q->shape.capacity;
        q->n--;
    }
    q->bytes -= e.bytes;
    return e;
}

// How many may go now: n, fewer from a closed queue, 0: none yet.
static int64_t available(const tti_queue_core *q, int64_t n, bool up_to)
{
    if (q->is_closed)
        return q->n >= n ? n : up_to ? q->n : 0;
    return q->n - q->shape.min_after >= n ? n : 0;
}

// Puts back what was taken but does not fit: it was all the same moment, so nobody has noticed.
static void put_back(tti_queue_core *q, tti_element *e, int64_t n)
{
    for (int64_t i = n - 1; i >= 0; i--) {
        q->bytes += e[i].bytes;
        if (q->shape.kind == TT_QUEUE_PRIORITY) {
            uint64_t order = e[i].order, next = q->n_in;
            q->bytes -= e[i].bytes;
            q->n_in = order;
            push(q, e[i]);
            q->n_in = next;
        } else {
            q->head = (q->head + q->shape.capacity - 1) % q->shape.capacity;
            q->n++;
            *at(q, 0) = e[i];
        }
        e[i] = (tti_element){.data = NULL};
    }
}

static tt_status take(tti_queue_core *q, const tti_queue_call *call, int64_t n, bool up_to,
                      tti_element *e, int64_t *taken)
{
    int64_t deadline = tti_deadline(call->wait_ms), k;
    while ((k = available(q, n, up_to)) == 0) {
        if (q->is_closed && up_to)
            break;
        if (q->is_closed)
            return is_over(q, call->ctx,
                           q->n == 0 ? "dequeue, nothing is left" : "dequeue, too few are left");
        if (q->producers == 0 && q->lost_producer[0] != '\0')
            return lost(q, call->ctx, true);
        TT_TRY(wait_slice(q, call, deadline, "dequeue", n));
    }
    for (int64_t i = 0; i < k; i++)
        e[i] = pop(q);
    *taken = k;
    return TT_OK;
}

tt_status tti_queue_core_take(tti_queue_core *q, const tti_queue_call *call, int64_t n, bool up_to,
                              tti_queue_fits fits, void *user, tti_element **out, int64_t *taken)
{
    if (n < 1 || n > q->shape.capacity - q->shape.min_after)
        return TT_FAIL(call->ctx, TT_EINVAL,
                       "queue '%s': cannot dequeue %lld elements at once; its capacity is %lld and "
                       "min_after_dequeue %lld",
                       q->name, (long long)n, (long long)q->shape.capacity,
                       (long long)q->shape.min_after);
    tti_element *e = tti_calloc(NULL, (size_t)n, sizeof(*e));
    if (e == NULL)
        return TT_FAIL(call->ctx, TT_ENOMEM, "queue '%s': no memory for %lld elements", q->name,
                       (long long)n);
    pthread_mutex_lock(&q->mu);
    int64_t k = 0;
    uint64_t drawn = q->n_drawn;
    tt_status st = take(q, call, n, up_to, e, &k);
    if (st == TT_OK && fits != NULL && k > 0) {
        st = fits(user, e, k);
        if (st != TT_OK) {
            put_back(q, e, k);
            q->n_drawn = drawn;
        }
    }
    if (st == TT_OK)
        pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->mu);
    if (st != TT_OK) {
        tti_elements_free(e, n);
        return st;
    }
    *out = e;
    *taken = k;
    return TT_OK;
}

void tti_elements_free(tti_element *e, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        tti_free(NULL, e[i].data);
    tti_free(NULL, e);
}

// ---- the rest --------------------------------------------------------------------------------

void tti_queue_core_close(tti_queue_core *q, bool cancel)
{
    pthread_mutex_lock(&q->mu);
    q->is_closed = true;
    q->is_cancelled |= cancel;
    if (cancel)
        drop_all(q);
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->mu);
}

int64_t tti_queue_core_size(tti_queue_core *q)
{
    pthread_mutex_lock(&q->mu);
    int64_t n = q->n;
    pthread_mutex_unlock(&q->mu);
    return n;
}

void tti_queue_core_begin(tti_queue_core *q, bool produces)
{
    pthread_mutex_lock(&q->mu);
    *(produces ? &q->producers : &q->consumers) += 1;
    *(produces ? q->lost_producer : q->lost_consumer) = '\0';
    pthread_mutex_unlock(&q->mu);
}

void tti_queue_core_end(tti_queue_core *q, bool produces, const char *who)
{
    pthread_mutex_lock(&q->mu);
    int *n = produces ? &q->producers : &q->consumers;
    char *name = produces ? q->lost_producer : q->lost_consumer;
    *n -= 1;
    if (*n == 0 && who != NULL) {
        strncpy(name, who, sizeof(q->lost_producer) - 1);
        name[sizeof(q->lost_producer) - 1] = '\0';
    }
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->mu);
}
