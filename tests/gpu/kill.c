/*
 * kill.c - runs on a GPU that end at any moment go on, there or spread over parts of it, as if
 * nothing had been.
 */
#include "command.h"
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static void weights_of(char hash[33])
{
    const char *at = strstr(command_out, "\nweights     ");
    ck_assert_msg(at != NULL, "%s%s", command_out, command_err);
    snprintf(hash, 33, "%.32s", at + 13);
}

// Trains until it is killed after a checkpoint of at least this step, unless it ends before.
static void kill_after(const char *line, int step)
{
    char path[600];
    pid_t pid = command_start(line);
    for (int found = 0, tries = 0; !found; tries++) {
        ck_assert_msg(tries < 6000, "no checkpoint of step %d", step);
        for (int s = step; s <= 30 && !found; s++) { // others have gone meanwhile
            snprintf(path, sizeof(path), "%s/r/checkpoints/step-%d", test_folder(), s);
            found = access(path, F_OK) == 0;
        }
        usleep(5000);
    }
    CHECK_INT(kill(pid, SIGKILL), 0);
    int code = command_wait(pid);
    CHECK(code == -SIGKILL || (code == 0 && !test_gpu_is_emulated()));
}

TEST(gpu_run_that_is_killed_goes_on_with_its_bits)
{
    char want[33], got[33];
    test_need_gpu();
    command_write("small.yaml", command_small_job);
    command_ok("train small.yaml --devices gpu:0 --run whole");
    weights_of(want);
    kill_after("train small.yaml --devices gpu:0 --run r --set checkpoint.every=2", 4);
    kill_after("train small.yaml --devices gpu:0*2 --strategy mirrored --run r --resume "
               "--set checkpoint.every=2",
               12);
    command_ok("train small.yaml --devices gpu:0*3 --strategy central --run r --resume");
    weights_of(got);
    CHECK_STR(got, want);
    CHECK(strstr(command_err, "other bits") == NULL);
}
