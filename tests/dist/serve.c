/*
 * serve.c - servers and sessions on them: the same bits as in one process, on one task and over
 * several; shared and isolated variables; clients at once; what mistakes get.
 */
#include "test.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static tt_server *local(tt_ctx *ctx, int n, const char *jobs)
{
#ifndef TUTTI_HAVE_ZMQ
    test_skip("built without ZeroMQ");
#endif
    tt_server *s = tt_cluster_local(ctx, n, .jobs = jobs, .threads = 1);
    ck_assert_msg(s != NULL, "%s", tt_last_error(ctx).message);
    return s;
}

// A small model by hand; where is a pin of its first half, or NULL.
typedef struct net {
    tt_graph *g;
    tt_tensor *x, *labels, *w1, *w2, *loss, *up1, *up2;
} net;

static net make_net(tt_ctx *ctx, const char *first, const char *second)
{
    net n = {.g = tt_graph_new(ctx)};
    tt_graph *g = n.g;
    n.x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 12), .name = "x");
    n.labels = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 4), .name = "labels");
    if (first != NULL)
        tt_device_push(g, first);
    n.w1 = tt_variable(g, .name = "w1", .shape = TT_SHAPE(12, 16),
                       .init = {TT_INIT_GLOROT_UNIFORM, 0, 0});
    tt_tensor *h = tt_relu(g, tt_matmul(g, n.x, n.w1));
    tt_tensor *d = tt_dropout(g, h, 0.25);
    if (first != NULL)
        tt_device_pop(g);
    if (second != NULL)
        tt_device_push(g, second);
    n.w2 = tt_variable(g, .name = "w2", .shape = TT_SHAPE(16, 4),
                       .init = {TT_INIT_GLOROT_UNIFORM, 0, 0});
    tt_tensor *y = tt_matmul(g, d, n.w2);
    tt_tensor *e = tt_sub(g, y, n.labels);
    n.loss = tt_mean(g, tt_mul(g, e, e));
    if (second != NULL)
        tt_device_pop(g);
    tt_tensor *vars[] = {n.w1, n.w2}, *grads[2];
    CHECK_OK(tt_grad(g, n.loss, NULL, 2, vars, grads));
    n.up1 = tt_assign(g, n.w1, tt_sub(g, n.w1, tt_scale(g, grads[0], 0.1f, 0)));
    n.up2 = tt_assign(g, n.w2, tt_sub(g, n.w2, tt_scale(g, grads[1], 0.1f, 0)));
    return n;
}

#define ROWS 11

// Trains a few steps; gives the hash of the weights.
static tt_hash train(tt_ctx *ctx, const net *n, tt_session *s, int steps)
{
    float x[ROWS * 12], y[ROWS * 4], loss = -1;
    tt_hash h = {0, 0};
    for (int i = 0; i < steps; i++) {
        test_fill(x, ROWS * 12, 10 + (uint64_t)i, -1, 1);
        test_fill(y, ROWS * 4, 90 + (uint64_t)i, -1, 1);
        tt_feed_value feeds[] = {{n->x, x, TT_SHAPE(ROWS, 12), TT_F32},
                                 {n->labels, y, TT_SHAPE(ROWS, 4), TT_F32}};
        tt_fetch f = {n->loss, &loss, sizeof(loss)};
        tt_tensor *ups[] = {n->up1, n->up2};
        tt_status st = tt_run(s, .feeds = feeds, .n_feeds = 2, .fetches = &f, .n_fetches = 1,
                              .targets = ups, .n_targets = 2, .step = i);
        ck_assert_msg(st == TT_OK, "%s", tt_last_error(ctx).message);
        CHECK(loss > 0);
    }
    ck_assert_msg(tt_weight_hash(s, &h) == TT_OK, "%s", tt_last_error(ctx).message);
    return h;
}

static tt_ctx *client(uint64_t seed)
{
    return tt_open(.devices = "cpu:0", .threads = 1, .seed = seed, .on_event = test_ignore_event);
}

static tt_hash hash_here(int steps)
{
    tt_ctx *ctx = client(7);
    net n = make_net(ctx, NULL, NULL);
    tt_hash h = train(ctx, &n, tt_session_new(n.g), steps);
    CHECK_OK(tt_close(ctx));
    return h;
}

static bool same(tt_hash a, tt_hash b)
{
    return a.low == b.low && a.high == b.high;
}

TEST(serve_session_has_the_bits_of_one_process)
{
    tt_ctx *ctx = test_ctx();
    tt_server *s = local(ctx, 1, NULL);
    tt_ctx *c = client(7);
    net n = make_net(c, NULL, NULL);
    tt_session *session = tt_session_new(n.g, .target = tt_server_target(s, 0));
    ck_assert_msg(session != NULL, "%s", tt_last_error(c).message);
    CHECK(same(train(c, &n, session, 5), hash_here(5)));
    CHECK_OK(tt_close(c));
    CHECK_OK(tt_server_stop(s, 1000));
    CHECK_OK(tt_close(ctx));
}

// Forward and backward go to and fro between three tasks.
TEST(serve_several_tasks_have_the_bits_of_one_process)
{
    tt_ctx *ctx = test_ctx();
    tt_server *s = local(ctx, 4, "ps:2, worker:2");
    static const char *const pins[][2] = {{"/job:ps/task:0/cpu:0", "/job:ps/task:1"},
                                          {"/job:worker/task:1", NULL},
                                          {NULL, "/job:ps"},
                                          {"/job:ps/task:1/cpu:0", "/job:worker/task:1/cpu:0"}};
    for (int i = 0; i < 4; i++) {
        tt_ctx *c = client(7);
        net n = make_net(c, pins[i][0], pins[i][1]);
        tt_session *session =
            tt_session_new(n.g, .target = tt_server_target(s, 2), .isolate = true);
        ck_assert_msg(session != NULL, "%s", tt_last_error(c).message);
        CHECK(same(train(c, &n, session, 4), hash_here(4)));
        CHECK_OK(tt_close(c));
    }
    CHECK_OK(tt_server_stop(s, 1000));
    CHECK_OK(tt_close(ctx));
}
