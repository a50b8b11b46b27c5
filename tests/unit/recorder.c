/*
 * recorder.c - run folders that a program records (tutti/record.h).
 */
#include "../command.h"
#include "record/run_info.h"
#include <stdio.h>
#include <tutti/record.h>
#include <unistd.h>

static tt_model *line(tt_ctx *ctx)
{
    tt_model *m = tt_sequential(ctx, .input = {1});
    tt_layer_dense(m, .units = 1);
    CHECK_OK(tt_compile(m, .loss = TT_MSE, .optimizer = tt_sgd(.lr = 0.01)));
    return m;
}

static tt_data *numbers(tt_ctx *ctx)
{
    static float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    return tt_memory(ctx, .x = x, .y = x, .x_shape = TT_SHAPE(1), .y_shape = TT_SHAPE(1),
                     .count = 8, .batch = 2);
}

TEST(a_program_records_its_runs)
{
    tti_run_info info;
    char job[256];
    CHECK_INT(chdir(test_folder()), 0);
    tt_ctx *ctx = test_ctx();
    tt_model *m = line(ctx);
    tt_data *d = numbers(ctx);
    for (int i = 1; i <= 2; i++) {
        char want[64];
        snprintf(want, sizeof(want), "mine/fit-00%d", i);
        tt_recorder *r = tt_record(ctx, .root = "mine", .name = "fit", .job = "{\"lr\": 0.01}\n");
        CHECK(r != NULL);
        CHECK_STR(tt_recorder_folder(r), want);
        CHECK_OK(tt_fit(m, d, .epochs = 3));
        CHECK_OK(tti_run_info_read(ctx, want, &info));
        CHECK(info.state == TTI_RUN_FINISHED && tti_run_is_locked(want));
        tt_recorder_end(r);
        CHECK(!tti_run_is_locked(want));
    }
    CHECK_INT(info.step, 12);
    CHECK(info.hash[0] != '\0');
    FILE *f = fopen("mine/fit-002/job.yaml", "r");
    CHECK(f != NULL && fgets(job, sizeof(job), f) != NULL);
    fclose(f);
    CHECK_STR(job, "{\"lr\": 0.01}\n");
    CHECK_OK(tt_close(ctx));
}

// A recorder that was not ended goes with its context; a second one in the folder is refused.
TEST(a_folder_is_recorded_by_one)
{
    CHECK_INT(chdir(test_folder()), 0);
    tt_ctx *ctx = test_ctx(), *other = test_ctx();
    CHECK(tt_record(ctx, .dir = "here", .no_tensorboard = true) != NULL);
    CHECK(tt_record(other, .dir = "here") == NULL);
    CHECK_STR(tt_last_error(other).message, "record: another process is training in 'here'");
    CHECK(tt_close(other) == TT_EIO);
    CHECK_OK(tt_close(ctx));
    CHECK(!tti_run_is_locked("here") && access("here/job.yaml", F_OK) == 0);
    CHECK(access("here/tensorboard", F_OK) != 0);
    CHECK_STR(tt_recorder_folder(NULL), "");
    tt_recorder_end(NULL);
}

TEST(the_command_lists_what_a_program_recorded)
{
    CHECK_INT(chdir(test_folder()), 0);
    tt_ctx *ctx = test_ctx();
    tt_recorder *r = tt_record(ctx, .name = "own", .job = "train: {lr: 0.25}\n");
    CHECK_OK(tt_fit(line(ctx), numbers(ctx), .epochs = 2));
    tt_recorder_end(r);
    CHECK_OK(tt_close(ctx));
    command_ok("runs");
    CHECK_HAS(command_out, "own-001  finished");
    command_ok("runs show own-001");
    CHECK_HAS(command_out, "train.lr  0.25");
}

// Its steps cannot be repeated, but its files are checked against its chain.
TEST(the_run_of_a_program_is_audited)
{
    CHECK_INT(chdir(test_folder()), 0);
    tt_ctx *ctx = test_ctx();
    tt_recorder *r = tt_record(ctx, .dir = "mine", .job = "{\"lr\": 0.01}\n");
    CHECK_OK(tt_fit(line(ctx), numbers(ctx), .epochs = 3, .checkpoints = "mine/checkpoints"));
    tt_recorder_end(r);
    CHECK_OK(tt_close(ctx));
    command_ok("audit ./mine");
    CHECK_HAS(command_out, "log, job, 3 checkpoints agree\n  no steps were repeated");
    // The program is this test: it is not started again by itself.
    CHECK_INT(command_shell("TUTTI_REPEAT=there $TUTTI reproduce ./mine"), 1);
    CHECK_HAS(command_err, "is not repeated by a program that is being repeated itself");
    CHECK_INT(command_run("reproduce ./mine --devices cpu:0"), 1);
    CHECK_HAS(command_err, "only --isa and -n can be given");
    command_write("mine/job.yaml", "{\"lr\": 0.02}\n");
    CHECK_INT(command_run("audit ./mine"), 1);
    CHECK_HAS(command_out, "  job.yaml: its contents were changed since the run was started");
}
