/*
 * elastic.c - jobs whose processes change: some are killed, freeze and wake, leave and join, the
 * first one too. What is left goes on to the weights of the undisturbed run, and nothing is left
 * behind.
 *
 * TUTTI_CHAOS=N runs N random ones instead of two and prints how long recoveries took;
 * TUTTI_CHAOS_SEED=S begins with another one.
 */
#include "../ranks.h"
#include "base/base.h"
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const char job[] = "name: elastic\n"
                          "seed: 5\n"
                          "data:\n"
                          "  train: {digits: {count: 1600}}\n"
                          "model:\n"
                          "  - flatten\n"
                          "  - dense: {units: 16, act: relu}\n"
                          "  - dropout: 0.1\n"
                          "  - dense: 10\n"
                          "train:\n"
                          "  steps: 700\n"
                          "  batch: 32\n"
                          "  loss: cross_entropy\n"
                          "  optimizer: {adam: {lr: 1e-3}}\n"
                          "checkpoint: {every: 200}\n"
                          "distribute: {strategy: mirrored}\n";

#define MOST 16

#define LONGER " --set train.steps=3000"

static void prepare_with(const char *flags, char hash[64])
{
    char line[128];
    ranks_need();
    command_write("elastic.yaml", job);
    snprintf(line, sizeof(line), "train elastic.yaml --json --run one%s", flags);
    command_ok(line);
    command_hash(command_out, hash);
}

static void prepare(char hash[64])
{
    prepare_with("", hash);
}

static void read_events(const char *run, char *to, size_t room)
{
    char name[300];
    snprintf(name, sizeof(name), "%s/events.jsonl", run);
    command_read(name, to, room);
}

static char events[1 << 20];

static void same_weights(const char *run, const char *hash)
{
    char got[64], line[128];
    read_events(run, events, sizeof(events));
    const char *last = NULL, key[] = "\"weights_hash\": \"";
    for (const char *at = events; (at = strstr(at, key)) != NULL; at++)
        last = at;
    snprintf(got, sizeof(got), "%.32s", last != NULL ? last + sizeof(key) - 1 : "");
    ck_assert_msg(strcmp(got, hash) == 0, "%s: weights %s, undisturbed %s: %s", run, got, hash,
                  command_err);
    ranks_nothing_left();
    snprintf(line, sizeof(line), "%s/workers.request", run);
    CHECK(!command_left(line));
}

TEST(a_killed_process_is_survived_the_first_one_too)
{
    char hash[64];
    prepare(hash);
    for (int rank = 0; rank < 2; rank++) {
        char line[256], run[8], text[64];
        pid_t child[3], pid;
        snprintf(run, sizeof(run), "k%d", rank);
        snprintf(line, sizeof(line), "run -n 3 --workers 2..3 elastic.yaml --run %s", run);
        pid = ranks_launch(line, run, 50, child, 3);
        CHECK(kill(child[rank], SIGKILL) == 0);
        CHECK_INT(command_wait(pid), 0);
        same_weights(run, hash);
        read_events(run, events, sizeof(events));
        snprintf(text, sizeof(text), "\"message\": \"rank %d on ", rank);
        CHECK_HAS(events, text);
        CHECK_HAS(events, " lost: killed by signal 9 (Killed); going on with 2 workers at step ");
        CHECK_HAS(command_out, "; going on with 2 workers at step ");
        CHECK_INT(command_count(events, "\"event\": \"membership\""), 1);
    }
}

// Until a checkpoint is being written, or it is missed.
static void wait_for_writing(const char *pattern)
{
    char path[600];
    double deadline = ranks_now() + 0.5;
    snprintf(path, sizeof(path), "%s/%s", test_folder(), pattern);
    for (bool found = false; !found && ranks_now() < deadline;) {
        glob_t g = {0};
        found = glob(path, 0, NULL, &g) == 0;
        globfree(&g);
    }
}

TEST(a_frozen_process_is_out_and_does_no_harm_when_it_wakes)
{
    pid_t child[2], pid;
    ranks_need();
    command_write("elastic.yaml", job);
    pid = ranks_launch("run -n 2 --workers 1..2 --loss 500 elastic.yaml --run a --json "
                       "--set train.steps=8000 --until 4000",
                       "a", 50, child, 2);
    wait_for_writing("a/checkpoints/.tmp-1-step-*");
    CHECK(kill(child[0], SIGSTOP) == 0);
    usleep(800000);
    CHECK(kill(child[0], SIGCONT) == 0);
    CHECK_INT(command_wait(pid), 0);
    ranks_nothing_left();
    read_events("a", events, sizeof(events));
    CHECK_HAS(events, "rank 0 on ");
    CHECK_HAS(events, " lost: no heartbeat for 0.");
    CHECK_HAS(events, "going on with 1 worker at step ");
    command_read("a/membership", events, sizeof(events));
    CHECK_STR(events, "2\n");
    CHECK_INT(command_shell("ls -a a/checkpoints | grep -c tmp"), 1); // none
}

TEST(processes_join_and_leave_at_a_step)
{
    char hash[64];
    pid_t child[2], pid;
    prepare_with(LONGER, hash);
    pid = ranks_launch("run -n 2 --workers 1..3 elastic.yaml --run a --json" LONGER, "a", 50, child,
                       2);
    command_ok("resize a 3"); // its output replaces that of the job
    usleep(300000);
    int code = command_run("resize a 4");
    CHECK_INT(code, 1);
    CHECK_HAS(command_err, "the job has --workers 1..3; 4 is not within that");
    command_ok("resize a 1");
    CHECK_INT(command_wait(pid), 0);
    same_weights("a", hash);
    read_events("a", events, sizeof(events));
    CHECK_HAS(events, "1 worker has joined; going on with 3 workers at step ");
    CHECK_HAS(events, "2 workers have left; going on with 1 worker at step ");
}

TEST(too_few_processes_wait_then_save_and_end)
{
    char hash[64];
    pid_t child[2], pid;
    prepare(hash);
    pid = ranks_launch("run -n 2 --workers 2..3 --wait 1 elastic.yaml --run a", "a", 50, child, 2);
    CHECK(kill(child[0], SIGKILL) == 0);
    CHECK_INT(command_wait(pid), 85);
    ranks_nothing_left();
    CHECK_HAS(command_err, "1 worker is left, and the job needs 2: waiting 1 s for more");
    CHECK_HAS(command_err, "to continue: tutti run -n 2 --workers 2..3 a --resume");
    command_ok("run -n 2 --workers 1..3 a --resume --json");
    same_weights("a", hash);
}

TEST(lost_processes_are_replaced_and_jobs_of_fixed_size_restarted)
{
    char hash[64];
    pid_t child[2], pid;
    prepare(hash);
    pid = ranks_launch("run -n 2 --workers 2..2 --replace 1 elastic.yaml --run a --json", "a", 100,
                       child, 2);
    CHECK(kill(child[1], SIGKILL) == 0);
    CHECK_INT(command_wait(pid), 0);
    same_weights("a", hash);
    read_events("a", events, sizeof(events));
    CHECK_HAS(events, "1 worker has joined; going on with 2 workers");
    pid = ranks_launch("run -n 2 --restarts 1 elastic.yaml --run b --json", "b", 300, child, 2);
    CHECK(kill(child[0], SIGKILL) == 0);
    CHECK_INT(command_wait(pid), 0);
    same_weights("b", hash);
    CHECK_HAS(command_err, "started again from the last checkpoint (1 of 1 restarts)");
}

TEST(flags_of_elastic_jobs_are_checked)
{
    static const struct {
        const char *line, *words;
    } bad[] = {
        {"run -n 2 --workers 4 elastic.yaml", "--workers: '4' is not a range of processes"},
        {"run -n 2 --workers 3..2 elastic.yaml", "--workers: '3..2' is not a range"},
        {"run -n 1 --workers 2..4 elastic.yaml",
         "1 process is to be started, but --workers allows"},
        {"run -n 2 --replace 3 elastic.yaml", "need --workers A..B"},
        {"run -n 2 --workers 1..2 --restarts 3 elastic.yaml", "use --replace"},
        {"run -n 2 --workers 1..2 true", "--workers applies to job files"},
        {"run -n 3 elastic.yaml --set distribute.workers=1..2", "but distribute.workers allows"},
        {"run --engine mpi -n 2 --workers 1..2 elastic.yaml", "--workers does not apply"},
        {"resize nothing 2", "nothing"},
        {"resize elastic.yaml two", "'two' is not a number of processes"},
    };
    ranks_need();
    command_write("elastic.yaml", job);
    for (int i = 0; i < TTI_COUNT(bad); i++) {
        CHECK(command_run(bad[i].line) != 0);
        CHECK_HAS(command_err, bad[i].words);
    }
}

// ---- chaos -----------------------------------------------------------------------------------

typedef struct chaos {
    double took[4096];
    int n;
} chaos;

static int children(pid_t pid, pid_t *out)
{
    char path[64], text[1024] = "";
    int n = 0;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *f = fopen(path, "r");
    if (f != NULL && fgets(text, sizeof(text), f) == NULL)
        text[0] = '\0';
    if (f != NULL)
        fclose(f);
    for (char *w = strtok(text, " "); w != NULL && n < MOST; w = strtok(NULL, " "))
        out[n++] = (pid_t)atoi(w);
    return n;
}

static void note_times(chaos *c)
{
    for (const char *at = events; (at = strstr(at, "\"event\": \"membership\"")) != NULL; at++) {
        const char *s = strstr(at, "\"seconds\": ");
        if (s != NULL && c->n < TTI_COUNT(c->took))
            c->took[c->n++] = atof(s + 11);
    }
}

static void one_chaos(uint64_t seed, const char *hash, chaos *c)
{
    static const char *const ways[] = {"", " --set distribute.update=shard",
                                       " --set distribute.strategy=pipeline"};
    tti_philox r = tti_philox4(31, seed, 0);
    int n = 2 + (int)(r.v[0] % 4), way = r.v[1] % 8 < 2 ? (int)(r.v[1] % 8) + 1 : 0;
    char line[256], run[32], done[160] = "";
    pid_t child[MOST] = {0}, pid, frozen = 0;
    snprintf(run, sizeof(run), "c%llu", (unsigned long long)seed);
    if (way == 2)
        n = 2; // stages
    snprintf(line, sizeof(line),
             "run -n %d --workers 1..5 --loss 600 --replace 3 elastic.yaml --run %s --json%s", n,
             run, ways[way]);
    pid = ranks_launch(line, run, 1 + r.v[2] % 300, child, n);
    for (uint64_t k = 1; k <= 3; k++) {
        tti_philox e = tti_philox4(31, seed, k);
        int alive = children(pid, child);
        pid_t victim = alive > 0 ? child[e.v[0] % (uint32_t)alive] : 0;
        size_t at = strlen(done);
        if (e.v[1] % 3 == 0 && alive > 1 && victim > 0) {
            (void)kill(victim, SIGKILL);
            snprintf(done + at, sizeof(done) - at, " kill %d", (int)victim);
        } else if (e.v[1] % 3 == 1 && alive > 1 && frozen == 0 && victim > 0) {
            (void)kill(frozen = victim, SIGSTOP);
            snprintf(done + at, sizeof(done) - at, " stop %d", (int)victim);
        } else {
            char request[64], text[8];
            snprintf(request, sizeof(request), "%s/workers.request", run);
            snprintf(text, sizeof(text), "%d\n", 1 + (int)(e.v[2] % 5));
            command_write(request, text);
            snprintf(done + at, sizeof(done) - at, " resize %.1s", text);
        }
        usleep(e.v[3] % 500000);
        if (frozen != 0 && k == 3 && e.v[2] % 2 == 0)
            (void)kill(frozen, SIGCONT);
    }
    int code = command_wait(pid);
    ck_assert_msg(code == 0, "seed %llu (%s;%s): exit code %d: %s", (unsigned long long)seed, line,
                  done, code, command_err);
    char request[64];
    snprintf(request, sizeof(request), "%s/%s/workers.request", test_folder(), run);
    (void)unlink(request); // it may have come too late
    same_weights(run, hash);
    read_events(run, events, sizeof(events));
    note_times(c);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

TEST(chaos_ends_with_the_undisturbed_weights)
{
    static chaos c;
    char hash[64];
    const char *runs = getenv("TUTTI_CHAOS"), *seed = getenv("TUTTI_CHAOS_SEED");
    int n = runs != NULL ? atoi(runs) : 2;
    uint64_t first = seed != NULL ? (uint64_t)atoll(seed) : 1;
    prepare(hash);
    for (int i = 0; i < n; i++)
        one_chaos(first + (uint64_t)i, hash, &c);
    if (runs == NULL || c.n == 0)
        return;
    qsort(c.took, (size_t)c.n, sizeof(c.took[0]), by_value);
    fprintf(stderr, "%d runs, %d changes of membership: median %.2f s, worst %.2f s\n", n, c.n,
            c.took[c.n / 2], c.took[c.n - 1]);
}
