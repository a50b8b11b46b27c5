/*
 * times_ranks.c - how the devices of all processes spent a fit: every rank knows the times of all,
 * and which one is the slowest.
 */
#include "../world_test.h"
#include <stdio.h>
#include <stdlib.h>

static void slow_down(world_job *j, int rank, tt_tasks *t)
{
    (void)j;
    (void)rank;
    (void)t;
    setenv("TUTTI_FAULT_HOW", "slow", 1);
    setenv("TUTTI_FAULT_DEVICE", "task:1/cpu:0", 1);
    setenv("TUTTI_FAULT_TIMES", "10", 1);
}

static void fit(world_job *j, int rank, tt_ctx *ctx)
{
    tt_model *m = tt_sequential(ctx, .input = {28, 28, 1});
    tt_layer_flatten(m);
    tt_layer_dense(m, .units = 64, .act = TT_RELU);
    tt_layer_dense(m, .units = 10);
    tt_compile(m, .loss = TT_CROSS_ENTROPY);
    tt_fit_report r;
    tt_device_times t[3];
    if (tt_fit(m, tt_digits(ctx, .count = 640, .batch = 64)) != TT_OK ||
        tt_fit_report_get(m, &r) != TT_OK)
        return;
    for (int i = 0; i < 3; i++)
        if (tt_fit_device_times(m, i, &t[i]) != TT_OK)
            return;
    snprintf(j->ranks[rank].note, sizeof(j->ranks[rank].note), "%d %d%d%d %d%d%d %s", r.slowest,
             t[0].compute > 0, t[1].compute > 0, t[2].compute > 0, t[0].idle < t[0].seconds / 2,
             t[1].idle < t[1].seconds / 2, t[2].idle < t[2].seconds / 2, t[1].name);
}

TEST(times_of_all_processes_are_known_to_all)
{
    world_job j = {
        .n = 3, .strategy = "mirrored", .devices = "cpu:0", .change = slow_down, .run = fit};
    world_run(&j);
    for (int i = 0; i < 3; i++) {
        ck_assert_msg(j.ranks[i].status == TT_OK, "rank %d: %s", i, j.ranks[i].message);
        CHECK_STR(j.ranks[i].note, "1 111 111 task:1/cpu:0");
    }
}
