/*
 * world_group.c - groups of some of the job's processes: their sums are those of one process with
 * the group's members, calls of several groups take turns, and the others need not know of them.
 */
#include "world_test.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define COUNT 70001

static float value(int rank, int i, int turn)
{
    return 0.1f * (float)((i * 7 + rank * 13 + turn) % 1001) - 3.3f * (float)(rank + 1);
}

// One all-reduce of a group's ranks, compared with the same of one process.
static void sum(tt_ctx *ctx, tt_comm *c, const int *ranks, int n, int rank, int count, int turn)
{
    static float x[COUNT], y[COUNT], ins[WORLD_MOST][COUNT], outs[WORLD_MOST][COUNT];
    tt_comm *alone = tt_comm_open(ctx, .members = n, .transport = "local");
    tt_member all[WORLD_MOST], mine = {x, y, count, 0, 1};
    for (int k = 0; k < n; k++) {
        for (int i = 0; i < count; i++)
            ins[k][i] = value(ranks[k], i, turn);
        all[k] = (tt_member){ins[k], outs[k], count, k, 1};
        if (ranks[k] == rank) {
            memcpy(x, ins[k], (size_t)count * sizeof(float));
            mine.first_lane = k;
        }
    }
    IGNORED(tt_all_reduce(alone, all, .lanes = n));
    IGNORED(tt_all_reduce(c, &mine, .lanes = n));
    if (tt_status_of(ctx) == TT_OK && memcmp(y, outs[0], (size_t)count * sizeof(float)) != 0)
        (void)TT_FAIL(ctx, TT_EINVAL, "rank %d: group of %d, turn %d, %d elements differ", rank, n,
                      turn, count);
    tt_comm_free(alone);
}

static bool has(const int *ranks, int n, int rank)
{
    for (int i = 0; i < n; i++)
        if (ranks[i] == rank)
            return true;
    return false;
}

static const int pair[] = {0, 2}, odd[] = {1, 3}, three[] = {1, 2, 3}, one[] = {3};
static const struct {
    const int *ranks;
    int n;
} groups[] = {{pair, 2}, {odd, 2}, {three, 3}, {pair, 2}, {one, 1}};

// Every rank opens the groups that it is in, and their calls take turns with those of all.
static void take_turns(world_job *j, int rank, tt_ctx *ctx)
{
    static const int everybody[] = {0, 1, 2, 3};
    tt_comm *group[TTI_COUNT(groups)] = {NULL}, *all;
    for (int g = 0; g < TTI_COUNT(groups); g++)
        if (has(groups[g].ranks, groups[g].n, rank))
            group[g] = tt_comm_open(ctx, .members = 1, .transport = j->arg,
                                    .ranks = groups[g].ranks, .n_ranks = groups[g].n);
    all = tt_comm_open(ctx, .members = 1, .transport = j->arg);
    float *shared = group[2] != NULL ? tt_comm_memory(group[2], 4000) : NULL;
    for (int turn = 0; turn < 6 && tt_status_of(ctx) == TT_OK; turn++) {
        int count = turn % 2 == 0 ? COUNT - turn : 100 + turn;
        for (int g = 0; g < TTI_COUNT(groups); g++)
            if (group[g] != NULL)
                sum(ctx, group[g], groups[g].ranks, groups[g].n, rank, count, turn);
        if (shared != NULL) {
            shared[0] = (float)rank;
            tt_member m = {shared, shared + 500, 500, 0, 0};
            IGNORED(tt_all_reduce(group[2], &m));
            if (tt_status_of(ctx) == TT_OK && shared[500] != 6)
                (void)TT_FAIL(ctx, TT_EINVAL, "shared: %g", (double)shared[500]);
            IGNORED(tt_barrier(group[2]));
        }
        sum(ctx, all, everybody, 4, rank, count, turn);
        if (turn == 3 && group[0] != NULL) { // another of the same ranks, after one has gone
            tt_comm_free(group[0]);
            group[0] = tt_comm_open(ctx, .members = 1, .ranks = pair, .n_ranks = 2);
        }
    }
}

static void on_hosts(world_job *j, int rank, tt_tasks *t)
{
    if (strcmp(j->arg, "auto") == 0)
        t->host = rank < 2 ? "a" : "b";
}

TEST(world_groups_of_some_processes_take_turns)
{
    static const char *const transports[] = {"shm", "wire", "auto"};
    for (int t = 0; t < 3; t++) {
        world_job j = {.n = 4, .run = take_turns, .change = on_hosts, .arg = (void *)transports[t]};
        world_run(&j);
        for (int i = 0; i < 4; i++)
            ck_assert_msg(j.ranks[i].status == TT_OK, "rank %d by %s: %s", i, transports[t],
                          j.ranks[i].message);
    }
}

// ---- what is refused -------------------------------------------------------------------------

static void open_wrong(world_job *j, int rank, tt_ctx *ctx)
{
    static const int twice[] = {0, 0}, high[] = {0, 2}, not_mine[] = {0};
    const int *ranks[] = {twice, high, rank == 0 ? (const int *)NULL : not_mine};
    int which = *(int *)j->arg;
    (void)tt_comm_open(ctx, .members = 1, .ranks = ranks[which], .n_ranks = which == 2 ? rank : 2);
}

TEST(world_groups_that_cannot_be_are_named)
{
    static const char *const words[] = {
        "the ranks of a group must ascend, but rank 0 follows rank 0",
        "a group has rank 2, but there are only 2 ranks",
        "rank 1 opens a group that it does not belong to",
    };
    for (int which = 0; which < 3; which++) {
        world_job j = {.n = 2, .run = open_wrong, .arg = &which};
        world_run(&j);
        for (int i = 0; i < 2; i++)
            ck_assert_msg(j.ranks[i].status == TT_EINVAL &&
                              strstr(j.ranks[i].message, words[which]) != NULL,
                          "rank %d: %s", i, j.ranks[i].message);
    }
    tt_ctx *ctx = test_ctx();
    CHECK(tt_comm_open(ctx, .ranks = one, .n_ranks = 1, .transport = "local") == NULL);
    CHECK_MESSAGE(ctx, "a group of 1 ranks spans processes");
    CHECK(tt_close(ctx) == TT_EINVAL);
}

static void other_call(world_job *j, int rank, tt_ctx *ctx)
{
    static const int ranks[] = {1, 2};
    float x[8] = {0};
    tt_member m = {x, x, rank == 2 ? 7 : 8, 0, 0};
    tt_comm *c = rank == 0 ? NULL
                           : tt_comm_open(ctx, .members = 1, .transport = j->arg, .ranks = ranks,
                                          .n_ranks = 2);
    tt_comm *all = tt_comm_open(ctx, .members = 1);
    if (c != NULL)
        IGNORED(tt_all_reduce(c, &m));
    m.count = 8;
    IGNORED(tt_all_reduce(all, &m)); // who is not in the group ends with its error, too
}

TEST(world_calls_that_differ_in_a_group_end_the_job)
{
    world_job j = {.n = 3, .run = other_call};
    world_run(&j);
    for (int i = 0; i < 3; i++)
        ck_assert_msg(strstr(j.ranks[i].message, "member 1 has 7 elements of f32, but member 0") !=
                          NULL,
                      "rank %d: %s", i, j.ranks[i].message);
}
