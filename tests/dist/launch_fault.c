/*
 * launch_fault.c - what befalls a job of several processes: signals, kill -9 at any step, a full
 * disk, numbers that are not finite. All end with one cause and its code, nothing is left behind,
 * and --resume goes on to the undisturbed weights, on another number of processes too.
 */
#include "../ranks.h"
#include "base/base.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

// Long enough to be disturbed; about 0.1 s alone and undisturbed.
static const char job[] = "name: long\n"
                          "seed: 5\n"
                          "data:\n"
                          "  train: {digits: {count: 320}}\n"
                          "model:\n"
                          "  - flatten\n"
                          "  - dense: {units: 16, act: relu}\n"
                          "  - dropout: 0.1\n"
                          "  - dense: 10\n"
                          "train:\n"
                          "  steps: 1200\n"
                          "  batch: 32\n"
                          "  loss: cross_entropy\n"
                          "  optimizer: {adam: {lr: 1e-3}}\n"
                          "checkpoint: {every: 100}\n";
#define ENDLESS " --set train.steps=1000000"

static void prepare(void)
{
    ranks_need();
    command_write("long.yaml", job);
}

static void undisturbed(char hash[64])
{
    command_ok("train long.yaml --json --run one");
    command_hash(command_out, hash);
}

// The run that was disturbed goes on to its end on n processes.
static void resumed(const char *run, int n, const char *hash)
{
    char line[256], got[64];
    snprintf(line, sizeof(line), n > 1 ? "run -n %d --strategy mirrored" : "train", n);
    size_t at = strlen(line);
    snprintf(line + at, sizeof(line) - at,
             " long.yaml --run %s --resume --json --set train.steps=1200", run);
    command_ok(line);
    ranks_nothing_left();
    command_hash(command_out, got);
    CHECK_STR(got, hash);
}

// ---- signals ---------------------------------------------------------------------------------

// who: a rank, or -1 for the launcher. Gives 1 if it was not over before.
static int ends_politely(const char *run, int who, int number, int n, int then, const char *hash)
{
    char line[256];
    pid_t child[4], pid;
    snprintf(line, sizeof(line), "run -n %d long.yaml --strategy mirrored --run %s --quiet", n,
             run);
    pid = ranks_launch(line, run, 1, child, n);
    CHECK(kill(who < 0 ? pid : child[who], number) == 0);
    int code = command_wait(pid);
    ranks_nothing_left();
    if (code != 0) // it may have come to its end before
        ck_assert_msg(code == 85, "%s: exit code %d: %s", run, code, command_err);
    resumed(run, then, hash);
    return code == 85;
}

TEST(a_signal_to_any_process_ends_all_after_one_step)
{
    char hash[64];
    prepare();
    undisturbed(hash);
    int n = ends_politely("a", 0, SIGTERM, 2, 3, hash);
    n += ends_politely("b", 2, SIGTERM, 3, 1, hash);
    n += ends_politely("c", 1, SIGHUP, 2, 2, hash);
    CHECK(n > 0);
    n = ends_politely("d", -1, SIGTERM, 3, 2, hash);
    n += ends_politely("e", -1, SIGINT, 2, 1, hash);
    CHECK(n > 0);
}

// It goes on as it was started, not in one process.
TEST(what_is_said_about_going_on_names_the_launcher)
{
    pid_t child[2], pid;
    prepare();
    pid = ranks_launch("run -n 2 long.yaml --run a" ENDLESS, "a", 1, child, 2);
    CHECK(kill(pid, SIGTERM) == 0);
    CHECK_INT(command_wait(pid), 85);
    CHECK_HAS(command_err, "tutti: stopped and saved; to continue: tutti run -n 2 a --resume\n");
    command_ok("run -n 2 a --resume --quiet --set train.steps=1");
    ranks_nothing_left();
}

TEST(a_second_interrupt_ends_all_at_once)
{
    pid_t child[2], pid;
    prepare();
    pid = ranks_launch("run -n 2 long.yaml --run a --quiet" ENDLESS, "a", 1, child, 2);
    CHECK(kill(child[1], SIGSTOP) == 0); // so that it does not end by itself
    CHECK(kill(pid, SIGINT) == 0);
    usleep(100000);
    CHECK(kill(pid, SIGINT) == 0);
    CHECK(command_wait(pid) != 0);
    ranks_nothing_left();
}

TEST(processes_without_their_launcher_save_and_end)
{
    char hash[64];
    pid_t child[3], pid;
    prepare();
    undisturbed(hash);
    pid = ranks_launch("run -n 3 long.yaml --strategy mirrored --run a --quiet", "a", 1, child, 3);
    CHECK(kill(pid, SIGKILL) == 0);
    CHECK_INT(command_wait(pid), -SIGKILL);
    ranks_nothing_left();
    resumed("a", 1, hash);
}

// ---- loss ------------------------------------------------------------------------------------

TEST(a_process_that_is_killed_is_named_and_all_end)
{
    char name[64];
    prepare();
    for (int rank = 0; rank < 3; rank++) {
        pid_t child[3], pid;
        char run[8], line[256];
        snprintf(run, sizeof(run), "k%d", rank);
        snprintf(line, sizeof(line), "run -n 3 long.yaml --run %s --strategy mirrored" ENDLESS,
                 run);
        pid = ranks_launch(line, run, 20, child, 3);
        CHECK(kill(child[rank], SIGKILL) == 0);
        CHECK_INT(command_wait(pid), 76);
        ranks_nothing_left();
        snprintf(name, sizeof(name), "rank %d (/job:worker/task:%d, host ", rank, rank);
        CHECK_HAS(command_err, name);
        snprintf(name, sizeof(name), "rank %d was killed by signal 9", rank);
        CHECK_HAS(command_err, name);
        CHECK_INT(command_count(command_err, " has died"), 1);
        snprintf(name, sizeof(name), "%s/logs/rank-%d.log", run, (rank + 1) % 3);
        command_read(name, command_out, sizeof(command_out));
        CHECK_HAS(command_out, " error rank ");
    }
}

TEST(a_process_that_hangs_is_named_and_all_end)
{
    pid_t child[2], pid;
    prepare();
    setenv("TUTTI_LOSS_MS", "1000", 1);
    pid = ranks_launch("run -n 2 long.yaml --run a --strategy mirrored" ENDLESS, "a", 1, child, 2);
    unsetenv("TUTTI_LOSS_MS");
    CHECK(kill(child[1], SIGSTOP) == 0);
    CHECK_INT(command_wait(pid), 76);
    ranks_nothing_left();
    CHECK_HAS(command_err, "rank 1 (/job:worker/task:1, host ");
    CHECK_HAS(command_err, ": no heartbeat for ");
}

// Kills a random process at a random step, again and again, each time on another number of them.
TEST(killed_at_any_step_it_goes_on_to_the_same_weights)
{
    char hash[64], line[256];
    bool is_over = false;
    prepare();
    undisturbed(hash);
    int64_t step = 0;
    for (int round = 0; round < 6 && !is_over; round++) {
        tti_philox r = tti_philox4(20, (uint64_t)round, 0);
        int n = 2 + (int)(r.v[0] % 3);
        pid_t child[4] = {0}, pid;
        step += r.v[1] % 180;
        snprintf(line, sizeof(line), "run -n %d long.yaml --strategy mirrored --run a --quiet%s", n,
                 round > 0 ? " --resume" : "");
        pid = ranks_launch(line, "a", step, child, n);
        usleep(r.v[2] % 20000);
        pid_t victim = child[r.v[3] % (uint32_t)n];
        if (victim > 0)
            (void)kill(victim, SIGKILL); // it may have ended
        int code = command_wait(pid);
        ck_assert_msg(code == 76 || code == 0, "round %d: exit code %d: %s", round, code,
                      command_err);
        ranks_nothing_left();
        is_over = code == 0;
    }
    resumed("a", 1, hash);
}

// ---- errors ----------------------------------------------------------------------------------

TEST(numbers_that_are_not_finite_end_all_with_one_cause)
{
    static ranks r;
    prepare();
    command_write("small.yaml", command_small_job);
    int port[2] = {ranks_port(), ranks_port()};
    char tasks[128], rank[2][32];
    snprintf(tasks, sizeof(tasks), "TUTTI_TASKS=127.0.0.1:%d,127.0.0.1:%d", port[0], port[1]);
    for (int i = 0; i < 2; i++) {
        snprintf(rank[i], sizeof(rank[i]), "TUTTI_RANK=%d", i);
        const char *const env[] = {tasks, rank[i], NULL};
        ranks_start(&r,
                    "train long.yaml --strategy mirrored --run a --set "
                    "train.optimizer.adam.lr=1e30",
                    env);
    }
    ranks_join(&r, 20);
    for (int i = 0; i < 2; i++) {
        ck_assert_msg(r.code[i] == 4, "rank %d: exit code %d: %s", i, r.code[i], r.err[i]);
        CHECK_HAS(r.err[i], "the loss is NaN or infinite");
    }
}

TEST(a_disk_that_is_full_ends_all_with_one_cause)
{
    char line[600], text[1 << 12];
    prepare();
    if (getuid() != 0)
        test_skip("a small disk needs root");
    // A mount of one's own, gone with the processes in it.
    snprintf(line, sizeof(line),
             "unshare -m sh -c 'cd %s && mkdir -p small && mount -t tmpfs -o size=200k none small "
             "&& exec %s run -n 2 long.yaml --strategy mirrored --run small/a --set "
             "checkpoint.keep=50' >out.9 2>err.9",
             test_folder(), command_path());
    CHECK(chdir(test_folder()) == 0);
    int status = system(line);
    CHECK(chdir("/") == 0);
    command_read("err.9", text, sizeof(text));
    if (strstr(text, "unshare") != NULL || strstr(text, "mount") != NULL)
        test_skip("mounting is not possible here");
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 1, "%d: %s", status, text);
    CHECK_HAS(text, "No space left on device");
    CHECK_INT(command_count(text, "tutti: error: "), 1);
    ranks_nothing_left();
}
