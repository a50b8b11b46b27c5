/*
 * serve.c - servers and sessions on them: the same bits as in one process, on one task and over
 * several; shared and isolated variables; clients at once; what mistakes get.
 */
#include "test.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
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

// ---- clients ---------------------------------------------------------------------------------

// A counter on a server; what counts up by one.
typedef struct counter {
    tt_ctx *ctx;
    tt_session *s;
    tt_tensor *n, *up;
} counter;

static counter count_at(const char *target, const char *container, bool isolate, int64_t width)
{
    counter c = {.ctx = client(0)};
    tt_graph *g = tt_graph_new(c.ctx);
    c.n = tt_variable(g, .name = "n", .shape = TT_SHAPE(width));
    c.up = tt_assign(g, c.n, tt_scale(g, c.n, 1, 1));
    c.s = tt_session_new(g, .target = target, .container = container, .isolate = isolate);
    return c;
}

static float next(counter *c)
{
    float v = -1;
    tt_fetch f = {c->up, &v, sizeof(v)};
    if (c->s == NULL || tt_run(c->s, .fetches = &f, .n_fetches = 1) != TT_OK)
        return -1;
    return v;
}

TEST(serve_variables_outlive_clients_and_are_shared_by_name)
{
    tt_ctx *ctx = test_ctx();
    tt_server *s = local(ctx, 1, NULL);
    const char *target = tt_server_target(s, 0);
    counter a = count_at(target, NULL, false, 1), b = count_at(target, NULL, false, 1);
    CHECK(next(&a) == 1 && next(&b) == 2 && next(&a) == 3);
    CHECK_OK(tt_close(a.ctx));
    CHECK(next(&b) == 4);
    counter other = count_at(target, "other", false, 1), own = count_at(target, NULL, true, 1);
    CHECK(next(&other) == 1 && next(&own) == 1 && next(&other) == 2);
    CHECK_OK(tt_close(own.ctx));
    float five = 5;
    CHECK_OK(tt_set_variable(b.s, b.n, &five, sizeof(five)));
    CHECK(next(&b) == 6);

    tt_state_entry *e;
    int n;
    CHECK_OK(tt_state_list(ctx, target, &e, &n, .all = true));
    CHECK_INT(n, 2); // of the isolated session nothing is left
    CHECK_STR(e[0].container, "");
    CHECK_STR(e[1].container, "other");
    CHECK_STR(e[1].name, "n");
    tt_state_free(ctx, e);

    char path[512];
    snprintf(path, sizeof(path), "%s/state.safetensors", test_folder());
    CHECK_OK(tt_state_save(ctx, target, path, &n, .container = "other"));
    CHECK_INT(n, 1);
    CHECK_OK(tt_state_clear(ctx, target, &n, .container = "other"));
    CHECK(next(&other) == -1); // its container is gone
    CHECK_MESSAGE(other.ctx, "container 'other' of /job:worker/task:0 was cleared");
    CHECK(tt_close(other.ctx) == TT_EINVAL);
    CHECK_OK(tt_state_load(ctx, target, path, &n, .container = "other"));
    other = count_at(target, "other", false, 1);
    CHECK(next(&other) == 3 && next(&b) == 7);
    CHECK_OK(tt_close(other.ctx));

    counter wide = count_at(target, NULL, false, 2); // a name with two shapes
    CHECK(next(&wide) == -1);
    CHECK_MESSAGE(wide.ctx, "variable 'n' is f32 [2] but the store has it as f32 [1]");
    CHECK(tt_close(wide.ctx) == TT_ESHAPE);
    CHECK(next(&b) == 8);
    CHECK_OK(tt_close(b.ctx));
    CHECK_OK(tt_close(ctx));
}

#define CLIENTS 4
#define COUNTS  15

static void *count_up(void *target)
{
    counter c = count_at(target, NULL, false, 1);
    float last = 0;
    for (int i = 0; i < COUNTS; i++) {
        float v = next(&c);
        if (v <= last)
            return "a count was lost";
        last = v;
    }
    return tt_close(c.ctx) == TT_OK ? NULL : "closing";
}

TEST(serve_several_clients_at_once)
{
    tt_ctx *ctx = test_ctx();
    tt_server *s = local(ctx, 1, NULL);
    pthread_t t[CLIENTS];
    for (int i = 0; i < CLIENTS; i++)
        CHECK_INT(pthread_create(&t[i], NULL, count_up, (void *)tt_server_target(s, 0)), 0);
    for (int i = 0; i < CLIENTS; i++) {
        void *why;
        pthread_join(t[i], &why);
        ck_assert_msg(why == NULL, "%s", (const char *)why);
    }
    counter c = count_at(tt_server_target(s, 0), NULL, false, 1);
    CHECK(next(&c) == CLIENTS * COUNTS + 1);
    CHECK_OK(tt_close(c.ctx));
    tt_server_info info;
    CHECK_OK(tt_ping(ctx, tt_server_target(s, 0), &info));
    CHECK_INT(info.runs, CLIENTS * COUNTS + 1);
    CHECK_INT(info.variables, 1);
    CHECK_STR(info.task, "/job:worker/task:0");
    CHECK_OK(tt_close(ctx));
}

// Feeds and fetches of many parts, in both directions.
TEST(serve_large_values_come_whole)
{
    tt_ctx *ctx = test_ctx();
    tt_server *s = local(ctx, 2, NULL);
    tt_ctx *c = client(0);
    tt_graph *g = tt_graph_new(c);
    int64_t rows = 3000, cols = 1001; // 12 MB, no multiple of a part
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, cols), .name = "x");
    tt_tensor *y = tt_scale(g, x, 2, 0);
    CHECK_OK(tt_pin(y, "/job:worker/task:1"));
    tt_tensor *z = tt_scale(g, y, 0.5, 0);
    tt_session *session = tt_session_new(g, .target = tt_server_target(s, 0));
    CHECK(session != NULL);
    size_t bytes = (size_t)(rows * cols) * sizeof(float);
    float *in = malloc(bytes), *out = malloc(bytes);
    test_fill(in, rows * cols, 5, -1, 1);
    tt_feed_value f = {x, in, TT_SHAPE(rows, cols), TT_F32};
    tt_fetch to = {z, out, bytes};
    for (int i = 0; i < 2; i++) {
        memset(out, 0, bytes);
        CHECK_OK(tt_run(session, .feeds = &f, .n_feeds = 1, .fetches = &to, .n_fetches = 1));
        CHECK(memcmp(in, out, bytes) == 0);
    }
    to.bytes = bytes - 1;
    CHECK(tt_run(session, .feeds = &f, .n_feeds = 1, .fetches = &to, .n_fetches = 1) == TT_ESHAPE);
    CHECK(tt_close(c) == TT_ESHAPE);
    free(in);
    free(out);
    CHECK_OK(tt_close(ctx));
}

// ---- mistakes --------------------------------------------------------------------------------

static void expect(const char *target, const char *pin, tt_status st, const char *words)
{
    tt_ctx *c = client(0);
    tt_graph *g = tt_graph_new(c);
    tt_tensor *v = tt_variable(g, .name = "v", .shape = TT_SHAPE(2));
    CHECK_OK(tt_pin(v, pin));
    tt_session *s = tt_session_new(g, .target = target);
    float out[2];
    if (s != NULL)
        (void)tt_get_variable(s, v, out, sizeof(out));
    CHECK_MESSAGE(c, words);
    CHECK_INT(tt_close(c), st);
}

TEST(serve_mistakes_are_named)
{
    tt_ctx *ctx = test_ctx();
    tt_server *s =
        tt_cluster_local(ctx, 2, .jobs = "ps, worker", .threads = 1,
                         .limits = tt_limits(.graph = 2000, .clients = 3, .variables = 100000));
    CHECK(s != NULL);
    const char *target = tt_server_target(s, 1);
    expect(target, "/job:chief/cpu:0", TT_EINVAL,
           "'v' is pinned to /job:chief/device:CPU:0, but "
           "the cluster has ps:0, worker:0");
    expect(target, "/job:worker/task:3", TT_EINVAL, "the cluster has ps:0, worker:0");
    expect(target, "/gpu:0", TT_EINVAL, "but /job:worker/task:0 has cpu:0");
    expect(target, "/job:ps/gpu:1", TT_EINVAL, "but /job:ps/task:0 has cpu:0");
    expect("tutti://127.0.0.1:9", "cpu:0", TT_EPEER,
           "no server of this user listens at 127.0.0.1:9");
    expect("grpc://127.0.0.1:9", "cpu:0", TT_EINVAL, "is not tutti://host:port");

    tt_ctx *c = client(0);
    tt_graph *g = tt_graph_new(c);
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(4), .name = "x");
    for (int i = 0; i < 100; i++)
        x = tt_neg(g, x);
    CHECK(tt_session_new(g, .target = target) == NULL);
    CHECK_MESSAGE(c, "/job:worker/task:0 takes up to 2000");
    CHECK(tt_close(c) == TT_ELIMIT);

    counter wide = count_at(target, NULL, false, 1 << 20);
    CHECK_MESSAGE(wide.ctx, "its limit is 100000");
    CHECK(tt_close(wide.ctx) == TT_ELIMIT);
    counter clients[4];
    for (int i = 0; i < 4; i++)
        clients[i] = count_at(target, NULL, false, 1);
    CHECK(clients[2].s != NULL && clients[3].s == NULL);
    CHECK_MESSAGE(clients[3].ctx, "/job:worker/task:0 has 3 clients, its limit");
    for (int i = 0; i < 4; i++)
        CHECK(tt_close(clients[i].ctx) == (i < 3 ? TT_OK : TT_ELIMIT));
    CHECK(tt_server_stop(s, 100) == TT_OK);
    CHECK_OK(tt_close(ctx));
}

// A key of its own: whoever has another one is refused.
TEST(serve_refuses_other_keys)
{
    local(test_ctx(), 1, NULL);
    tt_ctx *ctx = test_ctx();
    char key[512], other[512], text[700];
    snprintf(key, sizeof(key), "%s/a.key", test_folder());
    snprintf(other, sizeof(other), "%s/b.key", test_folder());
    for (int i = 0; i < 2; i++) {
        FILE *f = fopen(i == 0 ? key : other, "w");
        CHECK(f != NULL && fchmod(fileno(f), 0600) == 0);
        for (int k = 0; k < 64; k++)
            fputc("0123456789abcdef"[(k * 7 + i) % 16], f);
        fclose(f);
    }
    snprintf(text, sizeof(text), "{\"cluster\": {\"worker\": [\"127.0.0.1:1\"]}}");
    tt_server *s = tt_serve(ctx, .cluster = text, .bind = "127.0.0.1:0", .key = key, .threads = 1);
    ck_assert_msg(s != NULL, "%s", tt_last_error(ctx).message);
    tt_server_info info;
    CHECK_OK(tt_ping(ctx, tt_server_target(s, 0), &info, .key = key));
    CHECK(tt_ping(ctx, tt_server_target(s, 0), &info, .key = other) == TT_EPEER);
    CHECK_MESSAGE(ctx, "refuses this key");
    tt_clear_error(ctx);
    CHECK(tt_ping(ctx, tt_server_target(s, 0), &info) == TT_EPEER); // nor is loopback's its own
    tt_clear_error(ctx);
    CHECK_OK(tt_ping(ctx, tt_server_target(s, 0), &info, .key = key));
    CHECK(tt_serve(ctx, .cluster = "{\"cluster\": {\"worker\": [\"0.0.0.0:1\"]}}",
                   .bind = "0.0.0.0:0") == NULL);
    CHECK_MESSAGE(ctx, "needs a key");
    CHECK(tt_close(ctx) == TT_EINVAL);
}

// ---- losses ----------------------------------------------------------------------------------

// A client that is killed while it feeds (0), after it gave to a queue (1), while it takes (2).
typedef struct victim {
    pid_t pid;
    int pipe; // tells it the target
} victim;

static const tt_queue_part pair = {TT_F32, {1, {2}}};

static tt_queue *open_q(tt_ctx *c, const char *target)
{
    return tt_queue_open(c, "q", .target = target, .capacity = 3, .parts = &pair, .n_parts = 1);
}

static void be_victim(int how, const char *target)
{
    if (how == 0) {
        counter n = count_at(target, NULL, true, 1 << 20);
        float *big = calloc(1 << 20, sizeof(float));
        for (;;)
            (void)tt_set_variable(n.s, n.n, big, sizeof(float) << 20);
    }
    tt_queue *q = open_q(client(0), target);
    float x[2] = {1, 2};
    const void *in[] = {x};
    void *out[] = {x};
    if (how == 1)
        (void)tt_enqueue(q, .values = in);
    while (how == 2)
        (void)tt_dequeue(q, .out = out);
    pause();
}

// Forked before this process has any thread.
static victim make_victim(int how)
{
    int fds[2];
    char target[128] = "";
    CHECK_INT(pipe(fds), 0);
    victim v = {.pid = fork(), .pipe = fds[1]};
    if (v.pid == 0) {
        close(fds[1]);
        if (read(fds[0], target, sizeof(target) - 1) > 0)
            be_victim(how, target);
        _exit(0);
    }
    close(fds[0]);
    return v;
}

static void lose_one(int how, const victim *v, const char *target)
{
    tt_ctx *c = client(0);
    float x[2] = {0};
    void *out[] = {x};
    const void *in[] = {x};
    CHECK(write(v->pipe, target, strlen(target)) > 0);
    nanosleep(&(struct timespec){.tv_nsec = 150000000}, NULL);
    tt_queue *q = how == 0 ? NULL : open_q(c, target);
    if (how == 1)
        CHECK_OK(tt_dequeue(q, .out = out));
    kill(v->pid, SIGKILL);
    waitpid(v->pid, NULL, 0);
    close(v->pipe);
    if (how == 1) {
        CHECK(tt_dequeue(q, .out = out, .deadline_ms = 5000) == TT_EPEER);
        CHECK_MESSAGE(c, "its last producer, ");
    }
    tt_status st = TT_OK;
    for (int i = 0; how == 2 && i < 8 && st == TT_OK; i++) // nobody takes anything out
        st = tt_enqueue(q, .values = in, .deadline_ms = 5000);
    if (how == 2) {
        CHECK_INT(st, TT_EPEER);
        CHECK_MESSAGE(c, "its last consumer, ");
    }
    tt_clear_error(c);
    CHECK_OK(tt_close(c));
}

TEST(serve_lost_clients_leave_nothing)
{
    victim v[3];
    for (int how = 0; how < 3; how++)
        v[how] = make_victim(how);
    tt_ctx *ctx = test_ctx();
    tt_server *s = local(ctx, 1, NULL);
    for (int how = 0; how < 3; how++) {
        lose_one(how, &v[how], tt_server_target(s, 0));
        tt_server_info info = {.clients = -1};
        for (int i = 0; i < 100 && info.clients != 1; i++) {
            CHECK_OK(tt_ping(ctx, tt_server_target(s, 0), &info));
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        }
        CHECK_INT(info.clients, 1);
        CHECK_INT(info.sessions, 0);
        CHECK_INT(info.variables, 0);
    }
    CHECK_OK(tt_close(ctx));
}

TEST(serve_stopping_is_told_to_clients)
{
    tt_ctx *ctx = test_ctx();
    tt_server *s = local(ctx, 1, NULL);
    counter c = count_at(tt_server_target(s, 0), NULL, false, 1);
    CHECK(next(&c) == 1);
    CHECK_OK(tt_server_stop(s, 1000));
    CHECK(next(&c) == -1);
    CHECK_MESSAGE(c.ctx, tt_server_target(s, 0));
    CHECK(tt_close(c.ctx) == TT_EPEER);
    CHECK_OK(tt_close(ctx));
}
