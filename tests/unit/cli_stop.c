/*
 * cli_stop.c - training that is ended by signals, killed, and resumed: it saves what it can, and
 * has the weights of a run that was left alone.
 */
#include "../command.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

// Goes on until it is ended.
#define ENDLESS "--set train.epochs=0 --set train.steps=1000000000 --set checkpoint.every=5"

static int count_lines(const char *name)
{
    char path[400], buffer[4096];
    int n = 0;
    snprintf(path, sizeof(path), "%s/%s", test_folder(), name);
    int fd = open(path, O_RDONLY);
    for (ssize_t r; fd >= 0 && (r = read(fd, buffer, sizeof(buffer))) > 0;)
        for (ssize_t i = 0; i < r; i++)
            n += buffer[i] == '\n';
    if (fd >= 0)
        close(fd);
    return n;
}

// Starts a run and sends it a signal when cut/events.jsonl has so many lines more.
static pid_t start_and_send(const char *line, int lines, int number, unsigned delay)
{
    int before = count_lines("cut/events.jsonl");
    pid_t pid = command_start(line);
    while (count_lines("cut/events.jsonl") < before + lines)
        usleep(500);
    usleep(delay);
    CHECK(kill(pid, number) == 0);
    return pid;
}

// The newest checkpoint of the run "cut".
static int64_t newest_step(void)
{
    char path[400];
    int64_t newest = -1;
    snprintf(path, sizeof(path), "%s/cut/checkpoints", test_folder());
    DIR *d = opendir(path);
    CHECK(d != NULL);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (strncmp(e->d_name, "step-", 5) == 0 && atoll(e->d_name + 5) > newest)
            newest = atoll(e->d_name + 5);
    closedir(d);
    return newest;
}

// Resumes "cut" for some steps more, and makes as many in one go: the weights must be the same.
static void check_same_weights(void)
{
    char line[300], cut[64], whole[64];
    long long steps = (long long)newest_step() + 13;
    snprintf(line, sizeof(line), "train cut --resume --json --set train.steps=%lld", steps);
    command_ok(line);
    command_hash(command_out, cut);
    snprintf(line, sizeof(line),
             "train small.yaml --json --run whole --set train.epochs=0 --set train.steps=%lld",
             steps);
    command_ok(line);
    command_hash(command_out, whole);
    ck_assert_msg(strcmp(cut, whole) == 0, "%lld steps: %s, in one go %s", steps, cut, whole);
    snprintf(line, sizeof(line), "train cut --resume --json --set train.steps=%lld", steps);
    command_ok(line); // nothing is left to do
    command_hash(command_out, cut);
    CHECK_STR(cut, whole);
}

TEST(sigterm_saves_and_asks_to_come_again)
{
    command_write("small.yaml", command_small_job);
    CHECK_INT(
        command_wait(start_and_send("train small.yaml --json --run cut " ENDLESS, 5, SIGTERM, 700)),
        85);
    json_t *o = command_last_object(command_out, NULL);
    CHECK_INT(json_integer_value(json_object_get(o, "steps")), newest_step()); // saved
    json_decref(o);
    CHECK_HAS(command_err, "tutti train cut --resume");
    check_same_weights();
}

TEST(interrupts_save_then_stop)
{
    command_write("small.yaml", command_small_job);
    CHECK_INT(
        command_wait(start_and_send("train small.yaml --json --run cut " ENDLESS, 4, SIGINT, 300)),
        130);
    CHECK_HAS(command_err, "saving after this step; press Ctrl-C again to stop immediately");
    json_t *o = command_last_object(command_out, NULL);
    CHECK_INT(json_integer_value(json_object_get(o, "steps")), newest_step());
    json_decref(o);
    pid_t pid = start_and_send("train cut --resume --json", 4, SIGINT, 0);
    kill(pid, SIGINT); // the second one: saved or not, it ends
    CHECK_INT(command_wait(pid), 130);
    check_same_weights();
}

// The second one comes inside a step: an epoch has many, and each is long.
TEST(a_second_interrupt_stops_at_once)
{
    command_write("small.yaml", command_small_job);
    for (int i = 0; i == 0 || (i < 5 && strstr(command_err, "stopped and saved") != NULL); i++) {
        pid_t pid = start_and_send("train small.yaml --json --run cut --set train.batch=320 "
                                   "--set model.1.dense.units=20000 --set train.epochs=1000 "
                                   "--set data.train.digits.count=32000 --resume",
                                   3, SIGINT, 50000); // after the first step
        do {
            usleep(500);
            command_read("err", command_err, sizeof(command_err));
        } while (strstr(command_err, "saving after this step") == NULL);
        CHECK(kill(pid, SIGINT) == 0);
        CHECK_INT(command_wait(pid), 130);
    }
    CHECK_HAS(command_err, "tutti: stopped without saving; to continue from the last checkpoint: "
                           "tutti train cut --resume\n");
    CHECK(strstr(command_err, "tutti: error:") == NULL);
}

// Killed at twenty random instants, in steps and in checkpoints: the same weights come out.
TEST(kills_lose_nothing)
{
    unsigned seed = (unsigned)time(NULL) ^ (unsigned)getpid();
    command_write("small.yaml", command_small_job);
    for (int i = 0; i < 20; i++) {
        int lines = 1 + rand_r(&seed) % 4;
        int late =
            i == 0 || newest_step() > 0 ? 0 : 2000 * i; // a busy machine is slow to save the first
        pid_t pid = start_and_send("train small.yaml --resume --quiet --run cut " ENDLESS, lines,
                                   SIGKILL, (unsigned)(late + rand_r(&seed) % 4000));
        CHECK_INT(command_wait(pid), -SIGKILL);
    }
    CHECK(newest_step() > 0);
    check_same_weights();
    command_read("cut/events.jsonl", command_out, sizeof(command_out));
    json_decref(command_last_object(command_out, NULL)); // every line is whole
    command_ok("audit ./cut");                           // and the chain went on over all starts
}

TEST(one_process_a_run)
{
    command_write("small.yaml", command_small_job);
    pid_t pid = start_and_send("train small.yaml --quiet --run cut " ENDLESS, 3, SIGSTOP, 0);
    CHECK_INT(command_run("train cut --resume"), 1);
    CHECK_HAS(command_err, "another process is training in 'cut'");
    kill(pid, SIGKILL);
    CHECK_INT(command_wait(pid), -SIGKILL);
    check_same_weights();
}
