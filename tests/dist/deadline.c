/*
 * deadline.c - waits end when nothing gets on, not when a step is long: deadlines of devices and of
 * processes, and who is named when one passes.
 */
#include "../command.h"
#include "../model.h"
#include "../own_op.h"
#include "../world_test.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const char *const transports[] = {"shm", "wire"};

// ---- ops that take their time ----------------------------------------------------------------

static _Atomic int takes_ms;

static tt_status copy(const tt_launch *l)
{
    memcpy(l->out[0].data, l->in[0].data, (size_t)l->in[0].count * sizeof(float));
    return TT_OK;
}

static tt_status sleeps(const tt_launch *l)
{
    usleep((useconds_t)takes_ms * 1000);
    return copy(l);
}

static double seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static tt_status computes(const tt_launch *l)
{
    double end = seconds_of(CLOCK_MONOTONIC) + 1e-3 * takes_ms;
    while (seconds_of(CLOCK_MONOTONIC) < end)
        ;
    return copy(l);
}

#define USER_OP(name_, kernel_)                                                                  \
    static const tt_op name_ = {                                                                 \
        .name = #name_,                                                                          \
        .inputs = 1,                                                                             \
        .flags = TT_OP_ROW_FREE | TT_OP_EFFECT,                                                  \
        .infer = own_op_as_input,                                                                \
        .split = own_op_split_as_input,                                                          \
        .kernel = {[TT_CPU] = {own_op_one_unit, {kernel_, kernel_, kernel_, kernel_, kernel_}}}, \
    }
USER_OP(test_sleeps, sleeps);
USER_OP(test_computes, computes);

typedef struct chain {
    tt_ctx *ctx;
    tt_session *s;
    tt_tensor *x, *y;
} chain;

// n ops one after another on cpu:1, then one on cpu:0 that waits for them.
static chain chain_of(const tt_op *op, int n, int64_t deadline_ms)
{
    chain c = {.ctx = tt_open(.devices = "cpu:0*2", .on_event = test_ignore_event, .threads = 2,
                              .deadline_ms = deadline_ms)};
    tt_graph *g = tt_graph_new(c.ctx);
    tt_tensor *b = c.x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 4));
    tt_device_push(g, "cpu:1");
    for (int i = 0; i < n; i++)
        b = tt_node_out(g, op, 1, &b, NULL);
    tt_device_pop(g);
    c.y = tt_add(g, c.x, b);
    tt_pin(c.y, "cpu:0");
    c.s = tt_session_new(g);
    return c;
}

static tt_status chain_run(chain *c)
{
    float in[4] = {1, 2, 3, 4}, out[4] = {0};
    tt_feed_value feed = {c->x, in, TT_SHAPE(1, 4), TT_F32};
    tt_fetch fetch = {c->y, out, sizeof(out)};
    tt_status st = tt_run(c->s, .feeds = &feed, .n_feeds = 1, .fetches = &fetch, .n_fetches = 1);
    CHECK(st != TT_OK || out[3] == 8);
    return st;
}

// ---- devices ---------------------------------------------------------------------------------

TEST(a_step_longer_than_the_deadline_goes_on_while_devices_do)
{
    takes_ms = 100;
    chain c = chain_of(&test_sleeps, 8, 300);
    for (int i = 0; i < 2; i++)
        ck_assert_msg(chain_run(&c) == TT_OK, "%s", tt_last_error(c.ctx).message);
    CHECK_OK(tt_close(c.ctx));
}

TEST(a_kernel_that_computes_may_take_longer_than_the_deadline)
{
    takes_ms = 2000;
    chain c = chain_of(&test_computes, 1, 800);
    ck_assert_msg(chain_run(&c) == TT_OK, "%s", tt_last_error(c.ctx).message);
    CHECK_OK(tt_close(c.ctx));
}

// The steps before say how long one may take.
TEST(deadlines_follow_the_steps_before)
{
    takes_ms = 200;
    chain c = chain_of(&test_sleeps, 1, 300);
    ck_assert_msg(chain_run(&c) == TT_OK, "%s", tt_last_error(c.ctx).message);
    takes_ms = 500;
    ck_assert_msg(chain_run(&c) == TT_OK, "%s", tt_last_error(c.ctx).message);
    takes_ms = 3500;
    CHECK(chain_run(&c) == TT_ETIMEOUT);
    CHECK_MESSAGE(c.ctx, "cpu:1, which is in 'test_sleeps' (test_sleeps)");
    CHECK(tt_close(c.ctx) == TT_ETIMEOUT);
}

TEST(a_kernel_that_never_ends_is_found_at_ten_deadlines)
{
    takes_ms = 3000;
    chain c = chain_of(&test_computes, 1, 100);
    CHECK(chain_run(&c) == TT_ETIMEOUT);
    CHECK_MESSAGE(c.ctx, "cpu:1, which is in 'test_computes' (test_computes)");
    CHECK_MESSAGE(c.ctx, "deadline_ms");
    CHECK(tt_close(c.ctx) == TT_ETIMEOUT);
}

// ---- the option ------------------------------------------------------------------------------

TEST(the_deadline_is_a_key_of_jobs_and_in_the_environment)
{
    static const char line[] = "train small.yaml --devices cpu:0*2 --strategy mirrored --quiet "
                               "--set train.epochs=1";
    char with[256];
    command_write("small.yaml", command_small_job);
    setenv("TUTTI_FAULT_HOW", "hang", 1);
    setenv("TUTTI_FAULT_DEVICE", "cpu:1", 1);
    setenv("TUTTI_FAULT_RUN", "3", 1);
    setenv("TUTTI_FAULT_OP", "matmul", 1);
    setenv("TUTTI_FAULT_MS", "700", 1);
    snprintf(with, sizeof(with), "%s --set distribute.deadline_ms=150", line);
    CHECK_INT(command_run(with), 76);
    CHECK_HAS(command_err, "cpu:1, which is in 'dense");
    setenv("TUTTI_DEADLINE_MS", "150", 1);
    CHECK_INT(command_run(line), 76);
    CHECK_HAS(command_err, "cpu:1, which is in 'dense");
    snprintf(with, sizeof(with), "%s --set distribute.deadline_ms=10000", line);
    command_ok(with);
    setenv("TUTTI_DEADLINE_MS", "soon", 1);
    CHECK_INT(command_run(line), 3);
    CHECK_HAS(command_err, "TUTTI_DEADLINE_MS is 'soon'");
}

// ---- processes -------------------------------------------------------------------------------

static void run_steps(world_job *j, int rank, tt_ctx *ctx)
{
    test_model m;
    if (!test_model_build(&m, ctx, NULL, NULL, NULL))
        return;
    tt_session *s = tt_session_new(m.g);
    for (int step = 0; step < 3 && tt_status_of(ctx) == TT_OK; step++) {
        (void)test_model_step(&m, s, step, 64);
        j->ranks[rank].stage = step + 1;
    }
}

// Every entry of rank 1 takes a while: its steps are longer than the deadline.
static void slow_down(world_job *j, int rank, tt_tasks *t)
{
    (void)j;
    (void)t;
    setenv("TUTTI_DEADLINE_MS", "900", 1);
    if (rank != 1)
        return;
    setenv("TUTTI_FAULT_HOW", "hang", 1);
    setenv("TUTTI_FAULT_MS", "50", 1);
}

TEST(processes_wait_for_a_slow_one_while_it_gets_on)
{
    for (int t = 0; t < 2; t++) {
        world_job j = {.n = 3,
                       .tasks = {.transport = transports[t], .heartbeat_ms = 50},
                       .strategy = "mirrored",
                       .change = slow_down,
                       .run = run_steps};
        world_run(&j);
        for (int i = 0; i < 3; i++) {
            ck_assert_msg(j.ranks[i].status == TT_OK, "%s, rank %d: %s", transports[t], i,
                          j.ranks[i].message);
            CHECK_INT(j.ranks[i].stage, 3);
        }
        CHECK(j.ranks[1].seconds > 2);
    }
}

// A wait lasts four times the longest step before; under the thread sanitizer steps are long.
#ifdef __SANITIZE_THREAD__
#define HANG_MS "8000"
#else
#define HANG_MS "2000"
#endif

// Rank 2 hangs in every product of its second run, but is not waited for after the first of them.
static void hang(world_job *j, int rank, tt_tasks *t)
{
    (void)j;
    (void)t;
    setenv("TUTTI_DEADLINE_MS", "400", 1);
    if (rank != 2)
        return;
    setenv("TUTTI_FAULT_HOW", "hang", 1);
    setenv("TUTTI_FAULT_OP", "matmul", 1);
    setenv("TUTTI_FAULT_RUN", "2", 1);
    setenv("TUTTI_FAULT_MS", HANG_MS, 1);
}

static void check_stuck(const world_job *j, int stuck, const char *how)
{
    char name[64], host[64] = "host ", pid[32];
    snprintf(name, sizeof(name), "rank %d (/job:worker/task:%d", stuck, stuck);
    CHECK(gethostname(host + 5, sizeof(host) - 6) == 0);
    snprintf(pid, sizeof(pid), "pid %d)", (int)j->ranks[stuck].pid);
    for (int i = 0; i < j->n; i++) {
        const char *m = j->ranks[i].message;
        ck_assert_msg(j->ranks[i].status == TT_ETIMEOUT, "%s, rank %d: %s", how, i, m);
        ck_assert_msg(strncmp(m, name, strlen(name)) == 0 && strstr(m, host) != NULL &&
                          strstr(m, pid) != NULL && strstr(m, "no progress for ") != NULL,
                      "%s, rank %d: %s", how, i, m);
        CHECK_STR(m, j->ranks[0].message); // one cause for all
    }
}

TEST(a_process_whose_device_hangs_is_named_by_all)
{
    for (int t = 0; t < 2; t++)
        for (int round = 0; round < 2; round++) {
            world_job j = {.n = 4,
                           .tasks = {.transport = transports[t], .heartbeat_ms = 50},
                           .strategy = "mirrored",
                           .change = hang,
                           .run = run_steps};
            world_run(&j);
            check_stuck(&j, 2, transports[t]);
            CHECK(j.ranks[2].seconds < 1e-3 * 2 * atoi(HANG_MS) + 2); // it ends with the others
        }
}

// A rank whose program does something else than the others wait for: alive, but it does not come.
static void stay_away(world_job *j, int rank, tt_ctx *ctx)
{
    run_steps(j, rank, ctx);
    if (rank == 1)
        usleep(2500000);
    if (tt_status_of(ctx) == TT_OK)
        IGNORED(tti_world_exchange(ctx->world, "the end of the test", NULL, 0, NULL, 0));
}

static void only_deadline(world_job *j, int rank, tt_tasks *t)
{
    (void)j;
    (void)rank;
    (void)t;
    setenv("TUTTI_DEADLINE_MS", "400", 1);
}

// ---- learned deadlines -----------------------------------------------------------------------

// Of 40 short steps rank 1 is late for one, by so many milliseconds, in a place that others see.
static void late_once(world_job *j, int rank, tt_ctx *ctx)
{
    const int *late_ms = j->arg;
    test_model m;
    ctx->learn_ms = 300; // the shortest: ten seconds are too long for a test
    if (!test_model_build(&m, ctx, NULL, NULL, NULL))
        return;
    tt_session *s = tt_session_new(m.g);
    for (int step = 0; step < 40 && tt_status_of(ctx) == TT_OK; step++) {
        if (rank == 1 && step == 30) {
            tti_world_doing(ctx->world, "a callback", NULL);
            usleep((useconds_t)*late_ms * 1000);
            tti_world_doing(ctx->world, NULL, NULL);
        }
        (void)test_model_step(&m, s, step, 64);
        j->ranks[rank].stage = step + 1;
    }
}

TEST(a_stuck_process_is_found_by_what_steps_took_before)
{
    int late_ms = 4000; // far below the default of a minute
    world_job j = {.n = 3,
                   .tasks = {.transport = "wire", .heartbeat_ms = 50},
                   .strategy = "mirrored",
                   .arg = &late_ms,
                   .run = late_once};
    world_run(&j);
    check_stuck(&j, 1, "learned");
    CHECK_HAS(j.ranks[0].message, "it was in a callback for ");
    CHECK(j.ranks[0].stage >= 30 && j.ranks[0].stage < 40);
    CHECK(j.ranks[0].seconds < 4); // while the other one still sleeps
}

TEST(a_slow_step_is_not_a_stuck_one)
{
    int late_ms = 200; // many times a step, and less than the shortest deadline
    world_job j = {.n = 3,
                   .tasks = {.transport = "shm", .heartbeat_ms = 50},
                   .strategy = "mirrored",
                   .arg = &late_ms,
                   .run = late_once};
    world_run(&j);
    for (int i = 0; i < 3; i++) {
        ck_assert_msg(j.ranks[i].status == TT_OK, "rank %d: %s", i, j.ranks[i].message);
        CHECK_INT(j.ranks[i].stage, 40);
    }
}

TEST(a_process_that_is_stuck_elsewhere_is_named_by_all)
{
    for (int t = 0; t < 2; t++) {
        world_job j = {.n = 3,
                       .tasks = {.transport = transports[t], .heartbeat_ms = 50},
                       .strategy = "mirrored",
                       .change = only_deadline,
                       .run = stay_away};
        world_run(&j);
        check_stuck(&j, 1, transports[t]);
    }
}
