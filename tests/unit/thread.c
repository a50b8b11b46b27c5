/*
 * thread.c - threads, flags and queues: values pass, deadlines hold, closing wakes.
 */
#include "base/thread.h"
#include "../test.h"
#include <string.h>
#include <unistd.h>

static void read_name(void *arg)
{
    pthread_getname_np(pthread_self(), arg, 16);
}

TEST(threads_have_names)
{
    tt_ctx *ctx = test_ctx();
    char name[16] = "";
    tti_thread t = {0};
    tti_thread_join(&t); // never started
    CHECK_OK(tti_thread_start(ctx, &t, "tutti/cpu:0/1", read_name, name));
    tti_thread_join(&t);
    tti_thread_join(&t); // again is fine
    CHECK_STR(name, "tutti/cpu:0/1");
    CHECK_OK(tti_thread_start(ctx, &t, "a name that is much too long", read_name, name));
    tti_thread_join(&t);
    CHECK_STR(name, "a name that is ");
    CHECK_OK(tt_close(ctx));
}

TEST(flags_compare_around_the_end)
{
    tti_flag f = {0};
    CHECK(tti_flag_is_set(&f, 0) && !tti_flag_is_set(&f, 1));
    tti_flag_set(&f, 0xFFFFFFF0u);
    CHECK(tti_flag_is_set(&f, 0xFFFFFFF0u) && !tti_flag_is_set(&f, 5));
    CHECK_INT(tti_flag_add(&f, 0x20), 0x10);
    CHECK(tti_flag_is_set(&f, 0xFFFFFFF0u) && tti_flag_is_set(&f, 5));
}

TEST(a_wait_ends_at_its_deadline)
{
    tti_flag f = {0};
    for (int spins = 0; spins <= 100; spins += 100) {
        int64_t begin = tti_now_ns();
        CHECK_INT(tti_flag_wait(&f, 1, spins, tti_deadline(20)), TT_ETIMEOUT);
        int64_t took = tti_now_ns() - begin;
        CHECK(took >= 20000000 && took < 5000000000);
        CHECK_INT(tti_flag_wait(&f, 1, spins, 0), TT_ETIMEOUT); // only looks
        CHECK_OK(tti_flag_wait(&f, 0, spins, 0));
    }
    CHECK_INT(f.waiters, 0);
    CHECK(tti_deadline(INT64_MAX) == TTI_FOREVER);
}

typedef struct game {
    tti_flag ping, pong;
    int spins;
    int64_t value; // handed over by the flags alone
} game;

enum {
    ROUNDS = 20000
};

static void player(void *arg)
{
    game *g = arg;
    for (uint32_t i = 1; i <= ROUNDS; i++) {
        ck_assert(tti_flag_wait(&g->ping, i, g->spins, tti_deadline(20000)) == TT_OK);
        g->value++;
        tti_flag_set(&g->pong, i);
    }
}

TEST(flags_hand_values_over)
{
    tt_ctx *ctx = test_ctx();
    for (int spins = 0; spins <= 50; spins += 50) { // parking, and spinning first
        game g = {.spins = spins};
        tti_thread t;
        CHECK_OK(tti_thread_start(ctx, &t, "player", player, &g));
        for (uint32_t i = 1; i <= ROUNDS; i++) {
            g.value++;
            tti_flag_set(&g.ping, i);
            CHECK_OK(tti_flag_wait(&g.pong, i, spins, tti_deadline(20000)));
        }
        tti_thread_join(&t);
        CHECK_INT(g.value, 2 * ROUNDS);
    }
    CHECK_OK(tt_close(ctx));
}

typedef struct crowd {
    tti_flag go, done;
} crowd;

static void one_of_many(void *arg)
{
    crowd *c = arg;
    ck_assert(tti_flag_wait(&c->go, 1, 0, TTI_FOREVER) == TT_OK);
    tti_flag_add(&c->done, 1);
}

TEST(setting_wakes_everyone)
{
    tt_ctx *ctx = test_ctx();
    crowd c = {0};
    tti_thread t[8];
    for (int i = 0; i < 8; i++)
        CHECK_OK(tti_thread_start(ctx, &t[i], "crowd", one_of_many, &c));
    usleep(10000);
    tti_flag_set(&c.go, 1);
    CHECK_OK(tti_flag_wait(&c.done, 8, 100, tti_deadline(10000)));
    for (int i = 0; i < 8; i++)
        tti_thread_join(&t[i]);
    CHECK_OK(tt_close(ctx));
}

// ---- queues ----------------------------------------------------------------------------------

TEST(a_queue_is_bounded_and_in_order)
{
    tt_ctx *ctx = test_ctx();
    tti_queue q;
    void *item = NULL;
    int x[4] = {0, 1, 2, 3};
    CHECK_OK(tti_queue_init(ctx, &q, 3));
    CHECK_INT(tti_queue_pop(&q, &item, 0), TT_ETIMEOUT);
    CHECK_INT(tti_queue_pop(&q, &item, tti_deadline(10)), TT_ETIMEOUT);
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 3; i++)
            CHECK_OK(tti_queue_push(&q, &x[i], 0));
        CHECK_INT(tti_queue_push(&q, &x[3], tti_deadline(5)), TT_ETIMEOUT);
        CHECK_OK(tti_queue_pop(&q, &item, 0));
        CHECK(item == &x[0]);
        CHECK_OK(tti_queue_push(&q, &x[3], 0));
        for (int i = 1; i < 4; i++) {
            CHECK_OK(tti_queue_pop(&q, &item, 0));
            CHECK(item == &x[i]);
        }
    }
    CHECK_OK(tti_queue_push(&q, &x[2], 0));
    tti_queue_close(&q);
    CHECK_INT(tti_queue_push(&q, &x[1], 0), TT_ESTOP);
    CHECK_OK(tti_queue_pop(&q, &item, 0)); // what was left
    CHECK(item == &x[2]);
    CHECK_INT(tti_queue_pop(&q, &item, TTI_FOREVER), TT_ESTOP);
    tti_queue_deinit(ctx, &q);
    tti_queue_deinit(ctx, &q);
    CHECK_INT(tti_queue_init(ctx, &q, 0), TT_EINVAL);
    CHECK_INT(tt_close(ctx), TT_EINVAL);
}

typedef struct pipe_end {
    tti_queue *q;
    int64_t from, count, sum;
} pipe_end;

static void producer(void *arg)
{
    pipe_end *e = arg;
    for (int64_t i = 0; i < e->count; i++)
        ck_assert(tti_queue_push(e->q, (void *)(intptr_t)(e->from + i), TTI_FOREVER) == TT_OK);
}

static void consumer(void *arg)
{
    pipe_end *e = arg;
    void *item;
    while (tti_queue_pop(e->q, &item, TTI_FOREVER) == TT_OK)
        e->sum += (intptr_t)item;
}

TEST(many_threads_share_a_queue)
{
    tt_ctx *ctx = test_ctx();
    tti_queue q;
    CHECK_OK(tti_queue_init(ctx, &q, 4));
    tti_thread in[3], out[3];
    pipe_end a[3], b[3];
    for (int i = 0; i < 3; i++) {
        a[i] = (pipe_end){&q, i * 5000, 5000, 0};
        b[i] = (pipe_end){&q, 0, 0, 0};
        CHECK_OK(tti_thread_start(ctx, &out[i], "consumer", consumer, &b[i]));
        CHECK_OK(tti_thread_start(ctx, &in[i], "producer", producer, &a[i]));
    }
    for (int i = 0; i < 3; i++)
        tti_thread_join(&in[i]);
    tti_queue_close(&q); // wakes the consumers once it is empty
    int64_t sum = 0;
    for (int i = 0; i < 3; i++) {
        tti_thread_join(&out[i]);
        sum += b[i].sum;
    }
    CHECK_INT(sum, (int64_t)15000 * 14999 / 2);
    tti_queue_deinit(ctx, &q);
    CHECK_OK(tt_close(ctx));
}
