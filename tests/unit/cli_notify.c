/*
 * cli_notify.c - a run tells when it has ended, failed, diverged or stands still.
 */
#include "../command.h"
#include <stdio.h>

#define TOLD \
    "--set output.notify='echo \"$TUTTI_EVENT $TUTTI_STEP $TUTTI_RUN: $TUTTI_MESSAGE\" >> told'"

static void told(const char *words)
{
    char text[4096];
    command_read("told", text, sizeof(text));
    CHECK_HAS(text, words);
}

TEST(a_run_tells_how_it_ended)
{
    command_write("small.yaml", command_small_job);
    CHECK_INT(command_shell("$TUTTI train small.yaml --quiet --run a " TOLD), 0);
    told("ended 30 a: \n");
    CHECK_INT(command_shell("$TUTTI train small.yaml --quiet --run b --lr 1e30 " TOLD), 4);
    told("diverged ");
    CHECK_INT(command_shell("$TUTTI train small.yaml --quiet --run c --set "
                            "init.file=none.safetensors " TOLD),
              3);
    told("failed 0 : ");
    CHECK_INT(command_shell("$TUTTI run -n 2 small.yaml --quiet --run d --devices cpu:0 --strategy "
                            "mirrored " TOLD),
              0);
    char text[4096];
    command_read("told", text, sizeof(text));
    CHECK_INT(command_count(text, "ended 30 d: "), 1);
    // A command that fails is a warning; the message is no part of any shell line.
    CHECK_INT(command_shell("$TUTTI train small.yaml --quiet --run e --set output.notify=false"),
              0);
    CHECK_HAS(command_err, "output.notify: the command failed for 'ended'");
    CHECK_INT(command_shell("$TUTTI reproduce ./a --quiet"), 0);
    command_read("told", text, sizeof(text));
    CHECK_INT(command_count(text, "ended"), 2); // what is repeated tells nobody
}

// The first step takes longer than the bound; the command of this one is not there.
TEST(a_run_tells_that_it_stalls)
{
    command_write("small.yaml", command_small_job);
    pid_t pid = command_start("train small.yaml --quiet --run a --set output.stall=0.02 --set "
                              "output.notify=./none --set train.batch=1024 --set "
                              "model.1.dense.units=6000 --set data.train.digits.count=1024 --set "
                              "train.epochs=2 --chain off");
    CHECK_INT(command_wait(pid), 0);
    CHECK_HAS(command_err, "output.notify: the command failed for 'stalled'");
    CHECK_HAS(command_err, "output.notify: the command failed for 'ended'");
}
