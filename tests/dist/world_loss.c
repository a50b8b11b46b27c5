/*
 * world_loss.c - a process of a job that dies, freezes, fails or leaves: all others end soon, with
 * one cause that names it, and nothing is left.
 */
#include "world_test.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Waits for a message that rank 1 never sends.
static void wait_for_one(world_job *j, int rank, tt_ctx *ctx)
{
    char data[8];
    tti_message l = {77, 5, 1, 8};
    tti_world_doing(ctx->world, rank == 1 ? "matmul" : "all_reduce", rank == 1 ? "y" : "dw");
    j->ranks[rank].stage = 1;
    if (rank == 1)
        while (tti_world_status(ctx->world) == TT_OK)
            usleep(5000);
    else
        IGNORED(tti_world_receive(ctx->world, 1, &l, data, 30000));
}

// The others have ended in time with one message, which has the words.
static void check_cause(world_job *j, int lost, const char *const *words, double start,
                        double seconds)
{
    int other = lost == 0 ? 1 : 0;
    for (int i = 0; i < j->n; i++) {
        if (i == lost)
            continue;
        CHECK(j->ranks[i].status != TT_OK);
        CHECK_STR(j->ranks[i].message, j->ranks[other].message);
    }
    for (; *words != NULL; words++)
        ck_assert_msg(strstr(j->ranks[other].message, *words) != NULL, "'%s' is not in: %s", *words,
                      j->ranks[other].message);
    ck_assert_msg(now() - start < seconds, "it took %.1f s", now() - start);
}

TEST(world_death_is_named_by_all)
{
    static const char *const words[] = {"rank 1 (/job:worker/task:1, host ",
                                        "has died",
                                        "in matmul of y",
                                        "rank 0 was in all_reduce of dw",
                                        "rank 2 was in all_reduce of dw",
                                        NULL};
    const char *transports[] = {"shm", "wire"};
    for (int t = 0; t < 2; t++) {
        world_job j = {.n = 3, .tasks = {.transport = transports[t]}, .run = wait_for_one};
        world_start(&j);
        for (int i = 0; i < 3; i++)
            world_await_stage(&j, i, 1);
        usleep(400000); // a heartbeat has told what each is doing
        double start = now();
        kill(j.ranks[1].pid, SIGKILL);
        world_join(&j, 10);
        check_cause(&j, 1, words, start, 2.5);
    }
}

TEST(world_death_of_the_first_rank_is_named)
{
    static const char *const words[] = {"rank 0 (/job:worker/task:0, host ", "has died", NULL};
    world_job j = {.n = 3, .run = wait_for_one};
    world_start(&j);
    for (int i = 0; i < 3; i++)
        world_await_stage(&j, i, 1);
    double start = now();
    kill(j.ranks[0].pid, SIGKILL);
    world_join(&j, 10);
    check_cause(&j, 0, words, start, 2.5);
}

TEST(world_freeze_is_named_and_does_no_harm_when_it_ends)
{
    static const char *const words[] = {"rank 1 (/job:worker/task:1, host ", "no heartbeat for",
                                        "in matmul of y", "rank 0 was in all_reduce of dw", NULL};
    world_job j = {.n = 3, .run = wait_for_one};
    world_start(&j);
    for (int i = 0; i < 3; i++)
        world_await_stage(&j, i, 1);
    usleep(400000);
    double start = now();
    kill(j.ranks[1].pid, SIGSTOP);
    while ((j.ranks[0].status == TT_OK || j.ranks[2].status == TT_OK) && now() - start < 8)
        usleep(5000);
    check_cause(&j, 1, (const char *const[]){NULL}, start, 2.6);
    kill(j.ranks[1].pid, SIGCONT);
    world_join(&j, 10);
    check_cause(&j, 1, words, start, 10);
    CHECK(j.ranks[1].status != TT_OK); // it has learnt, or found, that it is out
}

static void fail_one(world_job *j, int rank, tt_ctx *ctx)
{
    if (rank == 2)
        (void)TT_FAIL(ctx, TT_ENAN, "the loss of step 7 is nan");
    else
        wait_for_one(j, rank, ctx);
}

TEST(world_failure_of_one_is_the_cause_of_all)
{
    world_job j = {.n = 3, .run = fail_one};
    double start = now();
    world_start(&j);
    world_join(&j, 10);
    CHECK(now() - start < 5);
    for (int i = 0; i < 3; i++) {
        CHECK(j.ranks[i].status == TT_ENAN);
        ck_assert_msg(strstr(j.ranks[i].message, "the loss of step 7 is nan") != NULL, "%s",
                      j.ranks[i].message);
    }
    CHECK(strstr(j.ranks[0].message, "rank 2 (/job:worker/task:2, host ") != NULL);
}

// A thread that writes fails, and the call beside it ends with what came of that.
static void fail_beside(world_job *j, int rank, tt_ctx *ctx)
{
    if (rank == 2) {
        (void)TT_FAIL(ctx, TT_EIO, "the disk of rank 2 is full");
        tti_world_fail_with(ctx, TT_EPEER);
    }
    wait_for_one(j, rank == 2 ? 0 : rank, ctx);
}

TEST(world_status_told_is_that_of_the_message)
{
    world_job j = {.n = 3, .run = fail_beside};
    world_start(&j);
    world_join(&j, 10);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(j.ranks[i].status, TT_EIO);
        CHECK(strstr(j.ranks[i].message, "the disk of rank 2 is full") != NULL);
    }
}

// A rank that is not as it should be says it in bytes that a terminal obeys.
static void fail_badly(world_job *j, int rank, tt_ctx *ctx)
{
    if (rank == 2)
        tti_world_fail(ctx->world, TT_EIO, "\033]0;owned\007\033[2Jthe disk\r");
    wait_for_one(j, rank == 2 ? 0 : rank, ctx);
}

TEST(world_words_of_a_rank_have_no_control_characters)
{
    world_job j = {.n = 3, .run = fail_badly};
    world_start(&j);
    world_join(&j, 10);
    for (int i = 0; i < 3; i++) {
        CHECK(j.ranks[i].status == TT_EIO);
        ck_assert_msg(strstr(j.ranks[i].message, "\\x1b]0;owned\\x07\\x1b[2Jthe disk\\x0d") !=
                              NULL &&
                          strpbrk(j.ranks[i].message, "\033\007\r") == NULL,
                      "rank %d: %s", i, j.ranks[i].message);
    }
}

static void raise_flag(void *user)
{
    tti_flag_add(user, 1);
}

// A wait on a flag of its own ends when the world fails, also when that was before it asked.
static void wait_on_a_flag(world_job *j, int rank, tt_ctx *ctx)
{
    tti_flag flag = {0};
    if (rank == 1) {
        for (int i = 0; i < 8000 && j->ranks[0].stage == 0; i++) // it has met, too
            usleep(1000);
        (void)TT_FAIL(ctx, TT_EIO, "the disk of rank 1 is full");
        return;
    }
    j->ranks[0].stage = 1;
    tti_world_on_fail(ctx->world, raise_flag, &flag);
    if (tti_flag_wait(&flag, 1, 0, tti_deadline(8000)) == TT_OK)
        tti_world_on_fail(ctx->world, raise_flag, &flag);
    tti_world_on_fail(ctx->world, NULL, NULL);
    j->ranks[rank].hash = flag.value;
}

TEST(world_failure_wakes_who_waits_on_flags)
{
    world_job j = {.n = 2, .run = wait_on_a_flag};
    world_run(&j);
    CHECK_INT(j.ranks[0].hash, 2);
    CHECK(j.ranks[0].status == TT_EIO);
}

static void leave_one(world_job *j, int rank, tt_ctx *ctx)
{
    if (rank != 1)
        wait_for_one(j, rank, ctx);
}

TEST(world_who_is_waited_for_may_not_leave)
{
    world_job j = {.n = 2, .run = leave_one};
    world_start(&j);
    world_join(&j, 10);
    CHECK(j.ranks[1].status == TT_OK);
    CHECK(j.ranks[0].status == TT_EPEER);
    ck_assert_msg(strstr(j.ranks[0].message, "rank 1 (/job:worker/task:1") != NULL &&
                      strstr(j.ranks[0].message, "has left the job") != NULL,
                  "%s", j.ranks[0].message);
}

static void send_and_leave(world_job *j, int rank, tt_ctx *ctx)
{
    static char data[3000000];
    tti_message l = {77, 5, 1, sizeof(data)};
    if (rank == 1) {
        memset(data, 3, sizeof(data));
        IGNORED(tti_world_send(ctx->world, 0, &l, data, 5000));
        return;
    }
    usleep(300000); // by then it has left
    if (tti_world_receive(ctx->world, 1, &l, data, 5000) == TT_OK)
        j->ranks[0].hash = (uint64_t)data[sizeof(data) - 1];
}

TEST(world_letters_outlive_who_sent_them_and_left)
{
    world_job j = {.n = 2, .run = send_and_leave};
    world_run(&j);
    ck_assert_msg(j.ranks[0].status == TT_OK && j.ranks[1].status == TT_OK, "%s",
                  j.ranks[0].message);
    CHECK_INT(j.ranks[0].hash, 3);
}

// ---- hellos that differ ----------------------------------------------------------------------

static void another_job(world_job *j, int rank, tt_tasks *t)
{
    (void)j;
    t->job = rank == 2 ? "train: {epochs: 3, batch: 64}" : "train: {epochs: 3, batch: 128}";
}

static void another_transport(world_job *j, int rank, tt_tasks *t)
{
    (void)j;
    t->transport = rank == 2 ? "wire" : "shm";
}

static void another_number(world_job *j, int rank, tt_tasks *t)
{
    static const char *addresses[4];
    if (rank != 2)
        return;
    memcpy(addresses, j->addresses, 3 * sizeof(addresses[0]));
    addresses[3] = "127.0.0.1:1";
    t->n = 4;
    t->addresses = addresses;
    t->rendezvous_ms = 1000; // it waits for one that nobody knows
}

static void expect_all(void (*change)(world_job *, int, tt_tasks *), const char *word)
{
    world_job j = {.n = 3, .tasks = {.rendezvous_ms = 3000}, .change = change};
    world_run(&j);
    for (int i = 0; i < 3; i++) {
        CHECK(j.ranks[i].status != TT_OK);
        ck_assert_msg(strstr(j.ranks[i].message, word) != NULL, "rank %d: %s", i,
                      j.ranks[i].message);
    }
}

TEST(world_differences_are_named_on_every_rank)
{
    expect_all(another_job, "rank 2 (/job:worker/task:2, host ");
    expect_all(another_transport, "transport wire, but rank 0");
    world_job j = {.n = 3, .tasks = {.rendezvous_ms = 3000}, .change = another_number};
    world_run(&j);
    for (int i = 0; i < 2; i++)
        ck_assert_msg(strstr(j.ranks[i].message, "a number of tasks of 4") != NULL, "%s",
                      j.ranks[i].message);
}

static void leave_out(world_job *j, int rank, tt_tasks *t)
{
    (void)j;
    if (rank == 1)
        t->secret = NULL;
}

TEST(world_who_is_missing_is_named_within_the_deadline)
{
    world_job j = {.n = 2, .tasks = {.rendezvous_ms = 800}, .change = leave_out};
    world_run(&j);
    ck_assert_msg(strstr(j.ranks[1].message, "no secret") != NULL, "%s", j.ranks[1].message);
    ck_assert_msg(strstr(j.ranks[0].message, "rank 1 (/job:worker/task:1) does not answer at "
                                             "127.0.0.1:") != NULL,
                  "%s", j.ranks[0].message);
    CHECK(j.ranks[0].seconds < 3);
}

TEST(world_bad_tasks_are_refused)
{
    const char *two[] = {"127.0.0.1:7", "127.0.0.1:7"}, *bad[] = {"127.0.0.1:7", "nowhere"};
    const char *host[] = {"127.0.0.1:7", "no-such-host.invalid:8"};
    unsigned char secret[TT_SECRET_BYTES] = {1};
    const struct {
        tt_tasks t;
        const char *words;
    } cases[] = {
        {{.n = 0}, "rank 0 of 0"},
        {{.n = 1025}, "1 to 1024"},
        {{.n = 2, .self = 2}, "rank 2 of 2"},
        {{.n = 2, .addresses = two}, "no secret"},
        {{.n = 2, .addresses = two, .secret = secret}, "ranks 0 and 1 have the address"},
        {{.n = 2, .addresses = bad, .secret = secret}, "the address of rank 1 is 'nowhere'"},
        {{.n = 2, .secret = secret}, "the address of rank 0 is ''"},
        {{.n = 2, .addresses = host, .secret = secret, .rendezvous_ms = 300},
         "host 'no-such-host.invalid' does not resolve"},
        {{.n = 1, .transport = "smoke"}, "no transport 'smoke'"},
        {{.n = 1, .loss_ms = 100}, "loss_ms 100"},
        {{.n = 1, .heartbeat_ms = -1}, "heartbeat_ms -1"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tt_tasks t = cases[i].t;
        t.opts_size = sizeof(t);
        tt_ctx *ctx = tt_open(.on_event = test_ignore_event, .tasks = &t);
        CHECK_MESSAGE(ctx, cases[i].words);
        CHECK(tt_close(ctx) != TT_OK);
    }
}
