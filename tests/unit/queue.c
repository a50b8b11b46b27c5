/*
 * queue.c - queues: the order of each kind, all or nothing, deadlines, closing; the same calls on a
 * queue of this process and on a server's. Groups of threads.
 */
#include "test.h"
#include <pthread.h>
#include <stdio.h>
#include <time.h>

// Runs a test's function on both.
static void on_both(void (*fn)(tt_ctx *ctx, const char *target))
{
    tt_ctx *ctx = test_ctx();
    fn(ctx, NULL);
    CHECK_OK(tt_close(ctx));
#ifdef TUTTI_HAVE_ZMQ
    tt_ctx *host = test_ctx();
    tt_server *s = tt_cluster_local(host, 1, .threads = 1);
    ctx = test_ctx();
    fn(ctx, tt_server_target(s, 0));
    CHECK_OK(tt_close(ctx));
    CHECK_OK(tt_close(host));
#endif
}

static tt_status put(tt_queue *q, int32_t v, int64_t priority)
{
    const void *values[] = {&v};
    return tt_enqueue(q, .values = values, .priorities = &priority, .deadline_ms = 40);
}

static tt_status take(tt_queue *q, int32_t *v)
{
    void *out[] = {v};
    return tt_dequeue(q, .out = out, .deadline_ms = 40);
}

static const tt_queue_part number = {TT_I32, {0, {0}}};

static void fifo(tt_ctx *ctx, const char *target)
{
    tt_queue *q =
        tt_queue_open(ctx, "fifo", .capacity = 3, .parts = &number, .n_parts = 1, .target = target);
    int32_t v, many[4] = {7, 8, 9, 10};
    int64_t n;
    CHECK(q != NULL);
    for (int32_t round = 0; round < 3; round++) { // around the ring
        CHECK_OK(put(q, 10 + round, 0));
        CHECK_OK(put(q, 20 + round, 0));
        CHECK_OK(take(q, &v));
        CHECK_INT(v, 10 + round);
        CHECK_OK(take(q, &v));
        CHECK_INT(v, 20 + round);
    }
    const void *in[] = {many};
    void *out[] = {many};
    CHECK_OK(tt_enqueue(q, .values = in, .n = 3));
    CHECK(put(q, 1, 0) == TT_ETIMEOUT);
    CHECK_MESSAGE(ctx, "it has 3 of 3 elements");
    tt_clear_error(ctx);
    CHECK(tt_enqueue(q, .values = in, .n = 4) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "its capacity is 3");
    tt_clear_error(ctx);
    memset(many, 0, sizeof(many));
    CHECK_OK(tt_dequeue(q, .out = out, .n = 2));
    CHECK(many[0] == 7 && many[1] == 8);
    CHECK(tt_dequeue(q, .out = out, .n = 2, .deadline_ms = 40) == TT_ETIMEOUT);
    tt_clear_error(ctx);
    CHECK_OK(tt_queue_size(q, &n)); // what there was is still there
    CHECK_INT(n, 1);
    CHECK_OK(tt_queue_close(q));
    CHECK(put(q, 1, 0) == TT_ESTOP);
    CHECK_MESSAGE(ctx, "queue 'fifo' is closed");
    tt_clear_error(ctx);
    CHECK(tt_dequeue(q, .out = out, .n = 2) == TT_ESTOP);
    tt_clear_error(ctx);
    CHECK_OK(tt_dequeue(q, .out = out, .n = 2, .up_to = true, .taken = &n));
    CHECK(n == 1 && many[0] == 9);
    CHECK_OK(tt_dequeue(q, .out = out, .n = 2, .up_to = true, .taken = &n));
    CHECK_INT(n, 0);
}

static void priority(tt_ctx *ctx, const char *target)
{
    static const int64_t order[] = {5, -1, 3, 3, 9, -1, 0};
    tt_queue *q = tt_queue_open(ctx, "p", .kind = TT_QUEUE_PRIORITY, .capacity = 10,
                                .parts = &number, .n_parts = 1, .target = target);
    for (int32_t i = 0; i < 7; i++)
        CHECK_OK(put(q, i, order[i]));
    static const int32_t want[] = {1, 5, 6, 2, 3, 0, 4};
    for (int i = 0; i < 7; i++) {
        int32_t v;
        CHECK_OK(take(q, &v));
        CHECK_INT(v, want[i]);
    }
}

// All of them come, mixed, in the same order for the same seed; some stay until it is closed.
static void shuffle(tt_ctx *ctx, const char *target)
{
    int32_t seen[3][20];
    int64_t n;
    for (int round = 0; round < 3; round++) {
        char name[16];
        snprintf(name, sizeof(name), "s%d", round);
        tt_queue *q = tt_queue_open(ctx, name, .kind = TT_QUEUE_SHUFFLE, .capacity = 20,
                                    .min_after_dequeue = 5, .seed = round == 2 ? 4 : 3,
                                    .parts = &number, .n_parts = 1, .target = target);
        uint32_t all = 0;
        for (int32_t i = 0; i < 20; i++)
            CHECK_OK(put(q, i, 0));
        for (int i = 0; i < 15; i++)
            CHECK_OK(take(q, &seen[round][i]));
        int32_t v;
        CHECK(take(q, &v) == TT_ETIMEOUT);
        tt_clear_error(ctx);
        CHECK_OK(tt_queue_close(q));
        void *out[] = {&seen[round][15]};
        CHECK_OK(tt_dequeue(q, .out = out, .n = 10, .up_to = true, .taken = &n));
        CHECK_INT(n, 5);
        for (int i = 0; i < 20; i++)
            all |= 1u << seen[round][i];
        CHECK_INT(all, (1u << 20) - 1);
    }
    CHECK(memcmp(seen[0], seen[1], sizeof(seen[0])) == 0);
    CHECK(memcmp(seen[0], seen[2], sizeof(seen[0])) != 0);
    bool mixed = false;
    for (int i = 0; i < 20; i++)
        mixed |= seen[0][i] != i;
    CHECK(mixed);
}

static void padding(tt_ctx *ctx, const char *target)
{
    tt_queue_part parts[] = {{TT_I32, TT_SHAPE(-1, 2)}, {TT_U8, TT_SCALAR}};
    tt_queue *q = tt_queue_open(ctx, "pad", .kind = TT_QUEUE_PADDING, .capacity = 4, .parts = parts,
                                .n_parts = 2, .target = target);
    static const int32_t a[] = {1, 2}, b[] = {3, 4, 5, 6};
    uint8_t la = 1, lb = 2, labels[2];
    const void *va[] = {a, &la}, *vb[] = {b, &lb};
    tt_shape sa[] = {TT_SHAPE(1, 2), TT_SCALAR}, sb[] = {TT_SHAPE(2, 2), TT_SCALAR}, got[2];
    CHECK_OK(tt_enqueue(q, .values = va, .shapes = sa));
    CHECK_OK(tt_enqueue(q, .values = vb, .shapes = sb));
    tt_shape bad[] = {TT_SHAPE(2, 3), TT_SCALAR};
    CHECK(tt_enqueue(q, .values = vb, .shapes = bad) == TT_ESHAPE);
    tt_clear_error(ctx);
    int32_t x[8];
    void *out[] = {x, labels};
    size_t small[] = {16, 2}, room[] = {sizeof(x), 2};
    CHECK(tt_dequeue(q, .out = out, .bytes = small, .n = 2) == TT_ESHAPE);
    CHECK_MESSAGE(ctx, "needs 32 bytes, but there is room for 16");
    tt_clear_error(ctx);
    CHECK_OK(tt_dequeue(q, .out = out, .bytes = room, .shapes = got, .n = 2)); // nothing was lost
    static const int32_t want[] = {1, 2, 0, 0, 3, 4, 5, 6};
    CHECK(memcmp(x, want, sizeof(want)) == 0 && labels[0] == 1 && labels[1] == 2);
    CHECK(got[0].rank == 2 && got[0].dim[0] == 2 && got[0].dim[1] == 2 && got[1].rank == 0);
}

static void mistakes(tt_ctx *ctx, const char *target)
{
    CHECK(tt_queue_open(ctx, "m", .target = target) == NULL);
    tt_clear_error(ctx);
    CHECK(tt_queue_open(ctx, "m", .capacity = 3, .target = target) == NULL);
    tt_clear_error(ctx);
    tt_queue_part open = {TT_F32, TT_SHAPE(-1)};
    CHECK(tt_queue_open(ctx, "m", .capacity = 3, .parts = &open, .n_parts = 1, .target = target) ==
          NULL);
    CHECK_MESSAGE(ctx, "only a padding queue has dimensions of -1");
    tt_clear_error(ctx);
    tt_queue *q =
        tt_queue_open(ctx, "m", .capacity = 3, .parts = &number, .n_parts = 1, .target = target);
    CHECK(q != NULL);
    CHECK(tt_queue_open(ctx, "m", .capacity = 4, .parts = &number, .n_parts = 1, .target = target,
                        .of = target == NULL ? q : NULL) == NULL);
    CHECK_MESSAGE(ctx, "queue 'm' has a capacity of 3 there, not 4");
    tt_clear_error(ctx);
    tt_queue *again = tt_queue_open(ctx, "m", .target = target, .of = target == NULL ? q : NULL);
    int32_t v = 0;
    CHECK_OK(put(q, 6, 0));
    CHECK_OK(take(again, &v));
    CHECK_INT(v, 6);
}

TEST(queue_fifo)
{
    on_both(fifo);
}

TEST(queue_priority)
{
    on_both(priority);
}

TEST(queue_shuffle)
{
    on_both(shuffle);
}

TEST(queue_padding)
{
    on_both(padding);
}

TEST(queue_mistakes)
{
    on_both(mistakes);
}

// ---- threads ---------------------------------------------------------------------------------

typedef struct filling {
    tt_queue *q;
    const char *target;
    int32_t from, n;
    bool fails;
    int64_t sum;
} filling;

static tt_ctx *own(void)
{
    return tt_open(.devices = "cpu:0", .threads = 1, .on_event = test_ignore_event);
}

static tt_queue *handle(tt_ctx *ctx, const filling *f)
{
    return tt_queue_open(ctx, "shared", .of = f->target == NULL ? f->q : NULL, .target = f->target);
}

static tt_status fill(tt_threads *t, void *user)
{
    filling *f = user;
    tt_ctx *ctx = own();
    tt_queue *q = handle(ctx, f);
    for (int32_t i = 0; i < f->n && !tt_threads_should_stop(t); i++) {
        int32_t v = f->from + i;
        const void *in[] = {&v};
        if (!f->fails)
            (void)tt_enqueue(q, .values = in);
        else if (i == 3)
            (void)tt_fail(ctx, TT_EIO, __FILE__, __LINE__, "the disk of thread %d is gone",
                          f->from);
        if (tt_status_of(ctx) != TT_OK)
            tt_threads_stop(t, ctx);
    }
    return tt_close(ctx);
}

static tt_status drain(tt_threads *t, void *user)
{
    filling *f = user;
    tt_ctx *ctx = own();
    tt_queue *q = handle(ctx, f);
    for (int64_t n = 1; n > 0 && tt_status_of(ctx) == TT_OK;) {
        int32_t v[3];
        void *out[] = {v};
        if (tt_dequeue(q, .out = out, .n = 3, .up_to = true, .taken = &n) != TT_OK)
            break;
        for (int64_t i = 0; i < n; i++)
            f->sum += v[i];
    }
    (void)t;
    return tt_close(ctx);
}

static void pass_on(tt_ctx *ctx, const char *target)
{
    tt_queue *q = tt_queue_open(ctx, "shared", .capacity = 5, .parts = &number, .n_parts = 1,
                                .target = target);
    filling f[5] = {{q, target, 0, 50, false, 0},
                    {q, target, 1000, 50, false, 0},
                    {q, target, 0, 0, false, 0},
                    {q, target, 0, 0, false, 0}};
    tt_threads *in = tt_threads_new(ctx), *out = tt_threads_new(ctx);
    for (int i = 0; i < 4; i++)
        CHECK_OK(tt_threads_start(i < 2 ? in : out, i < 2 ? "fill" : "drain", i < 2 ? fill : drain,
                                  &f[i]));
    CHECK_OK(tt_threads_join(in, 0));
    CHECK_OK(tt_queue_close(q));
    CHECK_OK(tt_threads_join(out, 0));
    CHECK_INT(f[2].sum + f[3].sum, 2 * 49 * 50 / 2 + 50 * 1000); // each once
}

TEST(queue_threads_pass_all_elements_on)
{
    on_both(pass_on);
}

TEST(threads_first_error_stops_all)
{
    tt_ctx *ctx = test_ctx();
    tt_queue *q = tt_queue_open(ctx, "shared", .capacity = 100, .parts = &number, .n_parts = 1);
    tt_threads *t = tt_threads_new(ctx);
    filling f[3] = {
        {q, NULL, 7, 50, true, 0}, {q, NULL, 0, 1 << 30, false, 0}, {q, NULL, 0, 0, false, 0}};
    CHECK_OK(tt_threads_watch(t, q));
    CHECK_OK(tt_threads_start(t, "broken", fill, &f[0]));
    CHECK_OK(tt_threads_start(t, "endless", fill, &f[1])); // waits for room, until it is cancelled
    CHECK(tt_threads_join(t, 5000) == TT_EIO);
    CHECK_MESSAGE(ctx, "the disk of thread 7 is gone");
    CHECK(tt_threads_should_stop(t));
    tt_clear_error(ctx);
    CHECK(tt_threads_start(t, "late", fill, &f[1]) == TT_ESTOP);
    CHECK(tt_close(ctx) == TT_ESTOP);
}

static void *close_soon(void *q)
{
    struct timespec t = {.tv_nsec = 50000000};
    nanosleep(&t, NULL);
    tt_ctx *ctx = own();
    const char *target = q;
    tt_queue *mine = tt_queue_open(ctx, "w", .target = target);
    (void)tt_queue_close(mine, .cancel = true);
    return tt_close(ctx) == TT_OK ? NULL : q;
}

TEST(queue_closed_under_a_waiter)
{
#ifdef TUTTI_HAVE_ZMQ
    tt_ctx *host = test_ctx(), *ctx = test_ctx();
    tt_server *s = tt_cluster_local(host, 1, .threads = 1);
    const char *target = tt_server_target(s, 0);
    tt_queue *q =
        tt_queue_open(ctx, "w", .capacity = 3, .parts = &number, .n_parts = 1, .target = target);
    pthread_t other;
    CHECK_INT(pthread_create(&other, NULL, close_soon, (void *)target), 0);
    int32_t v;
    void *out[] = {&v};
    CHECK(tt_dequeue(q, .out = out, .deadline_ms = 5000) == TT_ESTOP);
    CHECK_MESSAGE(ctx, "queue 'w' is closed, and what waited was cancelled");
    void *why;
    pthread_join(other, &why);
    CHECK(why == NULL);
    CHECK(tt_close(ctx) == TT_ESTOP);
    CHECK_OK(tt_close(host));
#endif
}
