/*
 * launch_env.c - processes that others have started: TF_CONFIG, torchrun's variables, a hosts file;
 * and what each of them says when something is wrong: named, on every rank, within seconds.
 */
#include "../ranks.h"
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_ENV 12
#define JOB      "train small.yaml --strategy mirrored --json"
static const char secret_a[] =
    "TUTTI_SECRET=00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
static const char secret_b[] =
    "TUTTI_SECRET=ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

// "NAME=value" texts of one process.
typedef struct env {
    char text[MOST_ENV][512];
    const char *list[MOST_ENV + 1];
    int n;
} env;

static void add(env *e, const char *fmt, ...) TT_PRINTF(2, 3);
static void add(env *e, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    CHECK(e->n < MOST_ENV);
    vsnprintf(e->text[e->n], sizeof(e->text[0]), fmt, ap);
    va_end(ap);
    e->n++;
}

// As ranks_start() takes it; only now, as an env is handed on by value.
static const char *const *list(env *e)
{
    for (int i = 0; i < e->n; i++)
        e->list[i] = e->text[i];
    e->list[e->n] = NULL;
    return e->list;
}

static env torchrun(int rank, int n, int port)
{
    env e = {.n = 0};
    add(&e, "RANK=%d", rank);
    add(&e, "WORLD_SIZE=%d", n);
    add(&e, "LOCAL_RANK=%d", rank);
    add(&e, "LOCAL_WORLD_SIZE=%d", n);
    add(&e, "MASTER_ADDR=127.0.0.1");
    add(&e, "MASTER_PORT=%d", port);
    return e;
}

static env tf_config(const char *type, int index, const int *port)
{
    env e = {.n = 0};
    add(&e,
        "TF_CONFIG={\"cluster\": {\"chief\": [\"127.0.0.1:%d\"], \"worker\": [\"localhost:%d\", "
        "\"127.0.0.1:%d\"]}, \"task\": {\"type\": \"%s\", \"index\": %d}}",
        port[0], port[1], port[2], type, index);
    return e;
}

// Two processes by TUTTI_TASKS.
static env tasks(int rank, const int *port, const char *secret)
{
    env e = {.n = 0};
    add(&e, "TUTTI_TASKS=127.0.0.1:%d,127.0.0.1:%d", port[0], port[1]);
    add(&e, "TUTTI_RANK=%d", rank);
    if (secret != NULL)
        add(&e, "%s", secret);
    add(&e, "TUTTI_RENDEZVOUS_MS=1500");
    return e;
}

static void one_process(char hash[64])
{
    ranks_need();
    command_write("small.yaml", command_small_job);
    command_ok("train small.yaml --json --run one");
    command_hash(command_out, hash);
}

// All well; the first has told, the others nothing.
static void all_agree(const ranks *r, const char *hash)
{
    char same[64];
    for (int i = 0; i < r->n; i++) {
        ck_assert_msg(r->code[i] == 0, "rank %d: exit code %d: %s", i, r->code[i], r->err[i]);
        if (i > 0)
            CHECK_STR(r->out[i], "");
    }
    command_hash(r->out[0], same);
    CHECK_STR(same, hash);
}

TEST(processes_of_tf_config_train_as_one)
{
    static ranks r;
    char hash[64];
    int port[3] = {ranks_port(), ranks_port(), ranks_port()};
    one_process(hash);
    static const char *const type[] = {"chief", "worker", "worker"};
    for (int i = 0; i < 3; i++) {
        env e = tf_config(type[i], i == 2, port);
        ranks_start(&r, JOB, list(&e));
    }
    ranks_join(&r, 20);
    all_agree(&r, hash);
    CHECK_HAS(r.out[0], "\"task\": \"/job:chief/task:0\"");
    CHECK_HAS(r.out[0], "\"task\": \"/job:worker/task:1\"");
}

// It is there first, finds a run that was over long ago, and waits for the one that is to come.
TEST(an_evaluator_evaluates_what_the_others_train)
{
    static ranks r;
    char hash[64], last[64];
    int port[3] = {ranks_port(), ranks_port(), ranks_port()};
    one_process(hash);
    command_ok("train small.yaml --quiet");
    command_write("runs/small-001/events.jsonl", "{\"time\": 1000.5, \"event\": \"begin\"}\n"
                                                 "{\"time\": 1001.5, \"event\": \"end\"}\n");
    static const char *const type[] = {"evaluator", "chief", "worker", "worker"};
    for (int i = 0; i < 4; i++) {
        env e = tf_config(type[i], i == 3, port);
        ranks_start(&r, JOB, list(&e));
    }
    ranks_join(&r, 20);
    for (int i = 0; i < 4; i++)
        ck_assert_msg(r.code[i] == 0, "%s: exit code %d: %s", type[i], r.code[i], r.err[i]);
    CHECK_HAS(r.err[0],
              "this is evaluator 0 (TF_CONFIG), which evaluates new checkpoints of the run");
    CHECK(strstr(r.out[0], "runs/small-001") == NULL);
    CHECK_HAS(r.out[0], "\"step\": 30, \"data\": \"test\", \"rows\": 96, \"loss\": ");
    command_hash(r.out[0], last);
    CHECK_STR(last, hash);
    command_read("runs/small-002/evaluations.jsonl", command_out, sizeof(command_out));
    CHECK_STR(command_out, r.out[0]);
}

TEST(processes_of_torchrun_meet_at_the_first)
{
    char hash[64];
    one_process(hash);
    for (int n = 2; n <= 4; n += 2) {
        static ranks r;
        r = (ranks){.n = 0};
        int port = ranks_port();
        for (int i = 0; i < n; i++) {
            env e = torchrun(i, n, port);
            ranks_start(&r, JOB, list(&e));
        }
        ranks_join(&r, 20);
        all_agree(&r, hash);
    }
}

// Of mpirun on one machine, and of srun on two nodes that share a folder: nobody told a secret or
// where rank 0 is.
TEST(processes_of_launchers_find_each_other_by_a_file)
{
    static ranks r;
    char hash[64];
    one_process(hash);
    for (int way = 0; way < 3; way++) { // the last: with a secret, by MASTER_ADDR
        int port = ranks_port();
        r = (ranks){.n = 0};
        for (int i = 0; i < 2; i++) {
            env e = {.n = 0};
            add(&e, way == 0 ? "OMPI_COMM_WORLD_RANK=%d" : "SLURM_PROCID=%d", i);
            add(&e, way == 0 ? "OMPI_COMM_WORLD_SIZE=2" : "SLURM_STEP_NUM_TASKS=2");
            add(&e, way == 0 ? "OMPI_COMM_WORLD_LOCAL_RANK=%d" : "SLURM_NODEID=%d", i);
            add(&e, way == 0 ? "OMPI_COMM_WORLD_LOCAL_SIZE=2" : "SLURM_STEP_NODELIST=n[1-2]");
            add(&e, way == 0 ? "PMIX_NAMESPACE=test-%d" : "SLURM_STEP_TASKS_PER_NODE=1(x2)", port);
            add(&e, "SLURM_JOB_ID=%d", port);
            if (way > 0)
                add(&e, "SLURM_STEP_ID=0");
            if (way == 1)
                add(&e, "TUTTI_KEY_DIR=.");
            if (way == 2) {
                add(&e, "%s", secret_a);
                add(&e, "MASTER_ADDR=127.0.0.1");
                add(&e, "MASTER_PORT=%d", port);
            }
            ranks_start(&r, JOB, list(&e));
        }
        ranks_join(&r, 20);
        all_agree(&r, hash);
        CHECK_INT(command_shell("ls key-* 2>/dev/null"), 2); // the file has gone
    }
}

// Other interfaces than loopback need a secret; loopback by its name does not.
TEST(processes_without_a_secret_listen_on_loopback_only)
{
    static ranks r;
    char hash[64];
    one_process(hash);
    static const char *const binds[] = {"lo", "127.0.0.1", "0.0.0.0", "::", "eth9"};
    for (int b = 0; b < 5; b++) {
        int port[2] = {ranks_port(), ranks_port()};
        r = (ranks){.n = 0};
        for (int i = 0; i < 2; i++) {
            env e = tasks(i, port, NULL);
            add(&e, "TUTTI_BIND=%s", binds[b]);
            ranks_start(&r, JOB, list(&e));
        }
        ranks_join(&r, 20);
        if (b < 2) {
            all_agree(&r, hash);
            continue;
        }
        for (int i = 0; i < 2; i++) {
            char says[64];
            snprintf(says, sizeof(says), "TUTTI_BIND=%s would listen beyond this machine",
                     binds[b]);
            CHECK_INT(r.code[i], 3);
            CHECK_HAS(r.err[i], says);
            CHECK_HAS(r.err[i], "'tutti key new FILE' makes one");
        }
    }
}

TEST(processes_of_torchrun_leave_its_store_its_port)
{
    static ranks r;
    char hash[64];
    one_process(hash);
    int port = ranks_port(), store = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(bind(store, (struct sockaddr *)&a, sizeof(a)) == 0 && listen(store, 8) == 0);
    for (int i = 0; i < 2; i++) {
        env e = torchrun(i, 2, port);
        add(&e, "TORCHELASTIC_USE_AGENT_STORE=True");
        ranks_start(&r, JOB, list(&e));
    }
    ranks_join(&r, 20);
    close(store);
    all_agree(&r, hash);
}

TEST(processes_of_a_hosts_file_train_and_evaluate)
{
    static ranks r;
    char hash[64], hosts[64], path[400];
    int port = ranks_port();
    one_process(hash);
    snprintf(hosts, sizeof(hosts), "127.0.0.1:%d slots=2\n", port);
    command_write("hosts", hosts);
    command_ok("key new secret");
    for (int k = 0; k < 2; k++) {
        r = (ranks){.n = 0};
        for (int i = 0; i < 2; i++) {
            env e = {.n = 0};
            add(&e, "TUTTI_HOSTS=hosts");
            add(&e, "TUTTI_RANK=%d", i);
            add(&e, "TUTTI_SECRET_FILE=secret");
            ranks_start(&r, k == 0 ? JOB : "eval small.yaml --json", list(&e));
        }
        ranks_join(&r, 20);
        all_agree(&r, hash);
    }
    snprintf(path, sizeof(path), "%s/secret", test_folder());
    CHECK(chmod(path, 0644) == 0);
    env e = {.n = 0};
    add(&e, "TUTTI_HOSTS=hosts");
    add(&e, "TUTTI_RANK=0");
    add(&e, "TUTTI_SECRET_FILE=secret");
    r = (ranks){.n = 0};
    ranks_start(&r, JOB, list(&e));
    ranks_join(&r, 20);
    CHECK_INT(r.code[0], 3);
    CHECK_HAS(r.err[0],
              "TUTTI_SECRET_FILE=secret can be read by others (mode 0644); make it private");
}

// ---- what is wrong ---------------------------------------------------------------------------

// Each ends soon with that code and those words.
static void all_say(const ranks *r, int code, const char *const *says)
{
    CHECK(r->seconds < 10);
    for (int i = 0; i < r->n; i++) {
        ck_assert_msg(r->code[i] == code, "rank %d: exit code %d, not %d: %s", i, r->code[i], code,
                      r->err[i]);
        CHECK_HAS(r->err[i], says[i]);
    }
}

TEST(a_rank_with_another_job_is_named)
{
    static ranks r;
    ranks_need();
    command_write("small.yaml", command_small_job);
    int port[2] = {ranks_port(), ranks_port()};
    env a = tasks(0, port, NULL), b = tasks(1, port, NULL);
    ranks_start(&r, JOB, list(&a));
    ranks_start(&r, JOB " --set train.batch=64", list(&b));
    ranks_join(&r, 20);
    static const char *const says[] = {"rank 1 (/job:worker/task:1, host ",
                                       "has a different job: its line is '"};
    all_say(&r, 3, says);
    CHECK_HAS(r.err[0], "batch: 64', on rank 0 it is '");
    CHECK_HAS(r.err[1], "batch: 64', on rank 0 it is '");
}

TEST(a_rank_with_another_secret_is_named)
{
    static ranks r;
    ranks_need();
    command_write("small.yaml", command_small_job);
    int port[2] = {ranks_port(), ranks_port()};
    env a = tasks(0, port, secret_a), b = tasks(1, port, secret_b);
    ranks_start(&r, JOB, list(&a));
    ranks_start(&r, JOB, list(&b));
    ranks_join(&r, 20);
    static const char *const says[] = {"is not rank 1 (/job:worker/task:1) of this job: it has "
                                       "another secret",
                                       "is not rank 0 (/job:worker/task:0) of this job: it has "
                                       "another secret"};
    all_say(&r, 76, says);
}

TEST(a_rank_that_does_not_come_is_named)
{
    static ranks r;
    ranks_need();
    command_write("small.yaml", command_small_job);
    int port = ranks_port();
    for (int i = 0; i < 2; i++) {
        env e = torchrun(i, 3, port);
        add(&e, "TUTTI_RENDEZVOUS_MS=1500");
        ranks_start(&r, JOB, list(&e));
    }
    ranks_join(&r, 20);
    static const char *const says[] = {"of 3 processes, rank 2 did not connect to rank 0",
                                       "of 3 processes, rank 2 did not connect to rank 0"};
    all_say(&r, 76, says);
}

// Whoever waits for others ends soon, and with it those that it has met.
TEST(a_signal_ends_ranks_that_wait_for_others)
{
    static ranks r;
    ranks_need();
    signal(SIGHUP, SIG_DFL); // under nohup they would leave it ignored
    command_write("small.yaml", command_small_job);
    static const int numbers[] = {SIGTERM, SIGHUP, SIGINT};
    for (int way = 0; way < 5; way++) { // rank 0, rank 1, both of three, torchrun's 0 and 1 of 3
        int port[3] = {ranks_port(), ranks_port(), ranks_port()}, first = way == 1;
        int n = way < 2 ? 1 : 2, number = numbers[way % 3];
        r = (ranks){.n = 0};
        for (int i = first; i < first + n; i++) {
            env e = way < 3 ? (env){.n = 0} : torchrun(i, 3, port[0]);
            if (way < 3) {
                add(&e, "TUTTI_TASKS=127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d", port[0], port[1],
                    port[2]);
                add(&e, "TUTTI_RANK=%d", i);
            }
            add(&e, "TUTTI_RENDEZVOUS_MS=60000");
            ranks_start(&r, JOB, list(&e));
        }
        usleep(700000);
        CHECK(kill(r.pid[n - 1], number) == 0);
        if (way > 2) // nobody is met before all are there
            CHECK(kill(r.pid[0], number) == 0);
        ranks_join(&r, 20);
        for (int i = 0; i < n; i++)
            ck_assert_msg(r.code[i] == (number == SIGINT && (i == n - 1 || way > 2) ? 130 : 85),
                          "way %d, rank %d: exit code %d: %s", way, i, r.code[i], r.err[i]);
        ck_assert_msg(r.seconds < 3, "way %d took %.1f s", way, r.seconds);
    }
}

// The launcher tells it to its processes by their pipes, also while these wait.
TEST(a_signal_to_the_launcher_ends_ranks_that_wait)
{
    char path[400];
    ranks_need();
    command_write("small.yaml", command_small_job);
    command_write("reach", "#!/bin/bash\n" // the second one never comes
                           "[[ $2 == *TUTTI_RANK=1* ]] && exec sleep 60\nexec sh -c \"$2\"\n");
    snprintf(path, sizeof(path), "%s/reach", test_folder());
    CHECK(chmod(path, 0700) == 0);
    setenv("TUTTI_RENDEZVOUS_MS", "60000", 1);
    pid_t pid = command_start("run -H 127.0.0.1:2 --ssh ./reach --grace 2 small.yaml");
    usleep(900000);
    double begin = ranks_now();
    CHECK(kill(pid, SIGTERM) == 0);
    int code = command_wait(pid);
    unsetenv("TUTTI_RENDEZVOUS_MS");
    CHECK(ranks_now() - begin < 5);
    CHECK(code != 0);
    CHECK_HAS(command_err, "tutti: all processes are saving");
    CHECK_HAS(command_err, "stopped on request while waiting for other processes");
    ranks_nothing_left();
}

TEST(ranks_that_count_differently_are_named)
{
    static ranks r;
    ranks_need();
    command_write("small.yaml", command_small_job);
    int port = ranks_port();
    for (int i = 0; i < 2; i++) {
        env e = torchrun(i, 2 + i, port);
        add(&e, "TUTTI_RENDEZVOUS_MS=1500");
        ranks_start(&r, JOB, list(&e));
    }
    ranks_join(&r, 20);
    static const char *const says[] = {"with 3 processes", "with 2"};
    all_say(&r, 3, says);
}

TEST(a_port_in_use_is_named)
{
    static ranks r;
    ranks_need();
    command_write("small.yaml", command_small_job);
    int port[2] = {ranks_port(), ranks_port()}, s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port[0])};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(bind(s, (struct sockaddr *)&a, sizeof(a)) == 0 && listen(s, 8) == 0);
    for (int i = 0; i < 2; i++) {
        env e = tasks(i, port, NULL);
        ranks_start(&r, JOB, list(&e));
    }
    ranks_join(&r, 20);
    close(s);
    CHECK_INT(r.code[0], 1);
    CHECK_HAS(r.err[0], "cannot listen at 127.0.0.1:");
    CHECK_HAS(r.err[0], "Address already in use");
    CHECK_INT(r.code[1], 76);
    CHECK_HAS(r.err[1], "rank 0 (/job:worker/task:0)");
    CHECK(r.seconds < 10);
}

TEST(a_rank_that_is_started_twice_is_named)
{
    static ranks r;
    ranks_need();
    command_write("small.yaml", command_small_job);
    int port = ranks_port();
    for (int i = 0; i < 3; i++) { // rank 1 twice, before rank 0 is there
        env e = torchrun(i == 2 ? 0 : 1, 2, port);
        add(&e, "TUTTI_RENDEZVOUS_MS=3000");
        ranks_start(&r, JOB, list(&e));
    }
    ranks_join(&r, 20);
    int told = 0; // the first one and rank 0 go on
    for (int i = 0; i < 3; i++) {
        if (r.code[i] == 0)
            continue;
        CHECK_HAS(r.err[i], "started twice");
        told++;
    }
    CHECK(told >= 1 && r.seconds < 10);
}

// ZeroMQ would end the process where it gets no descriptor.
TEST(too_few_descriptors_are_an_error_with_numbers)
{
    struct rlimit old, few;
    ranks_need();
    command_write("small.yaml", command_small_job);
    CHECK(getrlimit(RLIMIT_NOFILE, &old) == 0);
    static const rlim_t limits[] = {9, 12, 14, 18, 22, 30, 60, 90};
    for (size_t k = 0; k < sizeof(limits) / sizeof(limits[0]); k++) {
        int port[2] = {ranks_port(), ranks_port()};
        env e = tasks(0, port, secret_a);
        few =
            (struct rlimit){limits[k], limits[k]}; // a hard one only sinks: in a process of its own
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            if (setrlimit(RLIMIT_NOFILE, &few) != 0)
                _exit(99);
            for (int i = 0; i < e.n; i++)
                putenv(e.text[i]);
            _exit(command_run("train small.yaml --quiet") == 1 &&
                          strstr(command_err, "2 processes need ") != NULL &&
                          strstr(command_err, " open files in each") != NULL
                      ? 0
                      : 1);
        }
        int status;
        CHECK(waitpid(pid, &status, 0) == pid);
        command_read("err", command_err, sizeof(command_err));
        ck_assert_msg(status == 0, "limit %d: %x: %s", (int)limits[k], status, command_err);
    }
    // A soft limit is no hindrance.
    static ranks r;
    int port[2] = {ranks_port(), ranks_port()};
    few = (struct rlimit){24, old.rlim_max};
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    for (int i = 0; i < 2; i++) {
        env e = tasks(i, port, secret_a);
        ranks_start(&r, JOB " --run soft", list(&e));
    }
    CHECK(setrlimit(RLIMIT_NOFILE, &old) == 0);
    ranks_join(&r, 20);
    for (int i = 0; i < 2; i++)
        ck_assert_msg(r.code[i] == 0, "rank %d: exit code %d: %s", i, r.code[i], r.err[i]);
}

TEST(a_host_that_does_not_resolve_is_named)
{
    static ranks r;
    ranks_need();
    command_write("small.yaml", command_small_job);
    for (int i = 0; i < 2; i++) {
        env e = {.n = 0};
        add(&e, "TUTTI_TASKS=no-such-host.invalid:2222,127.0.0.1:%d", ranks_port());
        add(&e, "TUTTI_RANK=%d", i);
        add(&e, "%s", secret_a);
        add(&e, "TUTTI_RENDEZVOUS_MS=1000");
        ranks_start(&r, JOB, list(&e));
    }
    ranks_join(&r, 20);
    static const char *const says[] = {"host 'no-such-host.invalid' does not resolve",
                                       "host 'no-such-host.invalid' does not resolve"};
    all_say(&r, 1, says);
}

TEST(two_sources_that_disagree_are_named)
{
    static ranks r;
    int port[3] = {1, 2, 3};
    ranks_need();
    command_write("small.yaml", command_small_job);
    for (int i = 0; i < 2; i++) {
        env e = tf_config("worker", i, port), more = torchrun(i, 2, 29500);
        for (int k = 0; k < more.n; k++)
            add(&e, "%s", more.text[k]);
        ranks_start(&r, JOB, list(&e));
    }
    ranks_join(&r, 20);
    static const char *const says[] = {
        "the number of training processes is 3 and this one of rank 1 according to TF_CONFIG, but "
        "2 and this one of rank 0 according to RANK, WORLD_SIZE",
        "the number of training processes is 3 and this one of rank 2 according to TF_CONFIG, but "
        "2 and this one of rank 1 according to RANK, WORLD_SIZE"};
    all_say(&r, 3, says);
}
