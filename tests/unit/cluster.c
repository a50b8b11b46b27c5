/*
 * cluster.c - who is in the job: a table of environments with what is read from them, and one of
 * broken ones with their messages. The command in such environments: cli_env.c.
 */
#include "cluster/cluster.h"
#include "../command.h"
#include "device/device.h"
#include "net/world.h"
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_VARIABLES 12

// An environment of "NAME=value" texts.
static const char *get(const void *user, const char *name)
{
    const char *const *set = user;
    size_t n = strlen(name);
    for (int i = 0; i < MAX_VARIABLES && set[i] != NULL; i++)
        if (strncmp(set[i], name, n) == 0 && set[i][n] == '=')
            return set[i] + n + 1;
    return NULL;
}

static tt_status find(tt_ctx *ctx, const char *const *set, tt_cluster **out)
{
    return tti_cluster_read(ctx, &(tti_cluster_env){get, set, "box.example.org", NULL}, out);
}

#define TF(cluster, task)  "TF_CONFIG={\"cluster\": {" cluster "}, \"task\": {" task "}}"
#define TASK(type, index)  "\"type\": \"" type "\", \"index\": " #index
#define WORKERS            "\"worker\": [\"a:2222\", \"b:2222\"]"
#define CHIEF              "\"chief\": [\"c:2222\"], "
#define ONE(address)       TF("\"worker\": [\"" address "\"]", TASK("worker", 0))
#define TORCH(rank, size)  "RANK=" #rank, "WORLD_SIZE=" #size, "MASTER_ADDR=a", "MASTER_PORT=29500"
#define LEADER(addr, port) "RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=" addr, "MASTER_PORT=" port
#define LOCAL(rank, size)  "LOCAL_RANK=" #rank, "LOCAL_WORLD_SIZE=" #size
#define LIST(tasks, rank)  "TUTTI_TASKS=" tasks, "TUTTI_RANK=" #rank
#define HOSTS              "TUTTI_HOSTS=hosts" // written by write_hosts()

static void write_hosts(void)
{
    command_write("hosts", "# machines\r\nbox:2222\r\n\n  node-2.example.org\t# one\n"
                           "10.0.0.7 slots=2");
    CHECK(chdir(test_folder()) == 0);
}

// What is expected: source, own task and address, rank of processes, local rank, tasks, leader.
static const struct {
    const char *says, *set[MAX_VARIABLES];
} good[] = {
    {"0: worker 0 at '', rank 0 of 1, local 0 of 1, 1 tasks, first at ''", {NULL}},
    {"0: worker 0 at '', rank 0 of 1, local 0 of 1, 1 tasks, first at ''", {"TF_CONFIG=", "RANK="}},
    {"0: worker 0 at '', rank 0 of 1, local 0 of 1, 1 tasks, first at ''",
     {"TUTTI_CLUSTER=ignore", "TF_CONFIG={", "RANK=x", "TUTTI_RANK=1"}},
    // TF_CONFIG: the chief, or worker 0, leads.
    {"2: worker 0 at 'a:2222', rank 0 of 2, local 0 of 1, 2 tasks, first at 'a:2222'",
     {TF(WORKERS, TASK("worker", 0))}},
    {"2: chief 0 at 'c:2222', rank 0 of 3, local 0 of 1, 3 tasks, first at 'c:2222'",
     {TF(WORKERS ", " CHIEF "\"ps\": []", TASK("chief", 0))}},
    {"2: worker 1 at 'b:2222', rank 2 of 3, local 0 of 1, 3 tasks, first at 'c:2222'",
     {TF(CHIEF WORKERS, TASK("worker", 1))}},
    {"2: worker 1 at 'b:2222', rank 2 of 3, local 0 of 1, 3 tasks, first at 'c:2222'",
     {TF(CHIEF WORKERS, TASK("worker", "1"))}},
    {"2: evaluator 0 at '', rank -1 of 2, local 0 of 1, 3 tasks, first at 'a:2222'",
     {TF(WORKERS, TASK("evaluator", 0))}},
    {"2: evaluator 0 at 'e:1', rank -1 of 2, local 0 of 1, 3 tasks, first at 'a:2222'",
     {TF("\"evaluator\": [\"e:1\"], " WORKERS, TASK("evaluator", 0))}},
    {"2: ps 1 at 'q:1', rank -1 of 2, local 0 of 1, 4 tasks, first at 'a:2222'",
     {TF(WORKERS ", \"ps\": [\"p:1\", \"q:1\"]", TASK("ps", 1))}},
    {"2: worker 2 at 'a:2', rank 2 of 3, local 1 of 2, 3 tasks, first at 'a:1'",
     {TF("\"worker\": [\"a:1\", \"b:1\", \"a:2\"]", TASK("worker", 2))}},
    {"2: worker 1 at '[::1]:65535', rank 1 of 2, local 1 of 2, 2 tasks, first at '[::1]:1'",
     {TF("\"worker\": [\"[::1]:1\", \"[::1]:65535\"]", TASK("worker", 1))}},
    {"2: worker 0 at '', rank 0 of 1, local 0 of 1, 1 tasks, first at ''", {"TF_CONFIG={}"}},
    {"2: chief 0 at '', rank 0 of 1, local 0 of 1, 1 tasks, first at ''",
     {TF("", TASK("chief", 0))}},
    {"2: worker 0 at 'a:1', rank 0 of 1, local 0 of 1, 1 tasks, first at 'a:1'",
     {"TF_CONFIG={\"cluster\": {\"worker\": [\"a:1\"]}}"}},
    // torchrun
    {"3: worker 3 at '', rank 3 of 4, local 1 of 2, 4 tasks, first at 'a:29500'",
     {TORCH(3, 4), LOCAL(1, 2), "GROUP_RANK=1"}},
    {"3: worker 1 at '', rank 1 of 2, local 0 of 1, 2 tasks, first at 'a:29500'", {TORCH(1, 2)}},
    {"3: worker 1 at '', rank 1 of 2, local 1 of 0, 2 tasks, first at 'a:29500'",
     {TORCH(1, 2), "LOCAL_RANK=1"}},
    {"3: worker 0 at '', rank 0 of 1, local 0 of 1, 1 tasks, first at ''", {"WORLD_SIZE=1"}},
    {"3: worker 1023 at '', rank 1023 of 1024, local 0 of 1, 1024 tasks, first at 'a:29500'",
     {TORCH(1023, 1024)}},
    {"3: worker 0 at '[::1]:1', rank 0 of 2, local 0 of 1, 2 tasks, first at '[::1]:1'",
     {LEADER("::1", "1")}},
    // Several that agree: the first of the order counts.
    {"2: worker 1 at 'b:2222', rank 1 of 2, local 0 of 1, 2 tasks, first at 'a:2222'",
     {TF(WORKERS, TASK("worker", 1)), TORCH(1, 2)}},
    {"1: worker 2 at '10.0.0.7', rank 3 of 4, local 1 of 2, 3 tasks, first at 'box:2222'",
     {TORCH(3, 4), HOSTS, "TUTTI_RANK=3"}},
    // A list, before all others; '?' are processes that tell the first where they are.
    {"4: worker 1 at 'b:2', rank 1 of 2, local 0 of 1, 2 tasks, first at 'a:1'",
     {LIST("a:1,b:2", 1)}},
    {"4: worker 2 at '', rank 2 of 3, local 1 of 2, 3 tasks, first at '[::1]:9'",
     {LIST("[::1]:9,?,?", 2), "TUTTI_LOCAL=1/2"}},
    {"4: worker 0 at 'a:1', rank 0 of 1, local 0 of 1, 1 tasks, first at 'a:1'",
     {LIST("a:1", 0), "WORLD_SIZE=1"}},
    // By this machine's name.
    {"1: worker 0 at 'box:2222', rank 0 of 4, local 0 of 1, 3 tasks, first at 'box:2222'", {HOSTS}},
};

TEST(cluster_is_read)
{
    tt_ctx *ctx = test_ctx();
    write_hosts();
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        tt_cluster *c = NULL;
        char says[256];
        tt_status st = find(ctx, good[i].set, &c);
        ck_assert_msg(st == TT_OK, "%s: %s", good[i].says, tt_last_error(ctx).message);
        const tt_task *own = &c->tasks[c->task];
        snprintf(says, sizeof(says),
                 "%d: %s %d at '%s', rank %d of %d, local %d of %d, %d tasks, first at '%s'",
                 (int)c->source, own->job, own->index, own->address, c->rank, c->n_processes,
                 c->local_rank, c->n_local, c->n_tasks, c->tasks[0].address);
        CHECK_STR(says, good[i].says);
        CHECK(c->is_ignored == (get(good[i].set, "TUTTI_CLUSTER") != NULL));
        tt_cluster_free(ctx, c);
    }
    CHECK_OK(tt_close(ctx));
}

#define WOULD_DO \
    "; set all of torchrun's variables RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or none"
static const struct {
    const char *message, *set[MAX_VARIABLES];
} bad[] = {
    {"TUTTI_CLUSTER=no: set it to 'ignore' (one process, whatever else is set), or unset it",
     {"TUTTI_CLUSTER=no"}},
    {"TUTTI_RANK=1, but TUTTI_HOSTS is not set; set it to the hosts file, or TUTTI_SIZE to the "
     "number of processes and TUTTI_LEADER to host:port of rank 0",
     {"TUTTI_RANK=1"}},
    // TF_CONFIG
    {"TF_CONFIG is not valid JSON: line 1, column 10: ':' expected near end of file; it is "
     "'{\"cluster\"'",
     {"TF_CONFIG={\"cluster\""}},
    {"TF_CONFIG is not a JSON object: {\"cluster\": ..., \"task\": {\"type\": \"worker\", "
     "\"index\": 0}}",
     {"TF_CONFIG=7"}},
    {"TF_CONFIG: cluster is not an object {\"worker\": [\"host:port\", ...]}",
     {"TF_CONFIG={\"cluster\": [\"a:1\"]}"}},
    {"TF_CONFIG: sparseCluster does not list all tasks; use cluster",
     {"TF_CONFIG={\"sparseCluster\": {}}"}},
    {"TF_CONFIG: cluster: 'master' is not one of chief, worker, ps, evaluator",
     {TF("\"master\": [\"a:1\"]", TASK("master", 0))}},
    {"TF_CONFIG: cluster: worker is not a list of \"host:port\"",
     {TF("\"worker\": \"a:1\"", TASK("worker", 0))}},
    {"TF_CONFIG: worker 1: the address is not a string \"host:port\"",
     {TF("\"worker\": [\"a:1\", 2]", TASK("worker", 0))}},
    {"TF_CONFIG: cluster: there are 2 chiefs; a job can have only one, make the others workers",
     {TF("\"chief\": [\"a:1\", \"b:1\"]", TASK("chief", 0))}},
    {"TF_CONFIG: cluster: there is no chief and no worker",
     {TF("\"ps\": [\"a:1\"]", TASK("ps", 0))}},
    {"TF_CONFIG: cluster has 2 tasks, but task is missing: {\"type\": \"worker\", \"index\": 0} "
     "would identify this process",
     {"TF_CONFIG={\"cluster\": {" WORKERS "}}"}},
    {"TF_CONFIG: task is not an object {\"type\": \"worker\", \"index\": 0}",
     {"TF_CONFIG={\"cluster\": {" WORKERS "}, \"task\": 1}"}},
    {"TF_CONFIG: task has no type: {\"type\": \"worker\", \"index\": 0}",
     {TF(WORKERS, "\"index\": 1")}},
    {"TF_CONFIG: task: index is not a number from 0 to 1023: {\"type\": \"worker\", \"index\": 0}",
     {TF(WORKERS, "\"type\": \"worker\"")}},
    {"TF_CONFIG: task: index is not a number from 0 to 1023: {\"type\": \"worker\", \"index\": 0}",
     {TF(WORKERS, TASK("worker", -1))}},
    {"TF_CONFIG: task: type 'boss' is not one of chief, worker, ps, evaluator",
     {TF(WORKERS, TASK("boss", 0))}},
    {"TF_CONFIG: task is worker 2, but cluster has 2 of that type; use an index from 0 to 1, or a "
     "longer list",
     {TF(WORKERS, TASK("worker", 2))}},
    {"TF_CONFIG: task is chief 0, but cluster has no chief", {TF(WORKERS, TASK("chief", 0))}},
    {"TF_CONFIG: worker 1: address 'A:1' is already used by worker 0; each needs a different one",
     {TF("\"worker\": [\"a:1\", \"A:1\"]", TASK("worker", 0))}},
    {"TF_CONFIG: worker 0: address 'a': the port is missing: host:port", {ONE("a")}},
    {"TF_CONFIG: worker 0: address '': the host is missing", {ONE("")}},
    {"TF_CONFIG: worker 0: address 'a:65536': the port must be from 1 to 65535", {ONE("a:65536")}},
    {"TF_CONFIG: worker 0: address 'a:0': the port must be from 1 to 65535", {ONE("a:0")}},
    {"TF_CONFIG: worker 0: address '::1:5': there are several colons; write an IPv6 address in "
     "brackets: [::1]:2222",
     {ONE("::1:5")}},
    {"TF_CONFIG: worker 0: address '[::g]:5': this is not an IPv6 address", {ONE("[::g]:5")}},
    {"TF_CONFIG: worker 0: address '[a]:5': brackets are for IPv6 only: [::1]:2222",
     {ONE("[a]:5")}},
    {"TF_CONFIG: worker 0: address 'a;b?:5': a host name may contain only letters, digits, '.', "
     "'-' and '_'",
     {ONE("a;b\\u001b:5")}},
    {"TF_CONFIG: worker 0: address '-oProxy:5': every part of a host name must begin with a letter "
     "or digit",
     {ONE("-oProxy:5")}},
    // torchrun
    {"WORLD_SIZE is not set, but RANK=1 is" WOULD_DO, {"RANK=1"}},
    {"RANK is not set, but WORLD_SIZE=2 MASTER_ADDR=a is" WOULD_DO,
     {"WORLD_SIZE=2", "MASTER_ADDR=a"}},
    {"MASTER_PORT is not set, but RANK=0 WORLD_SIZE=2 MASTER_ADDR=a is" WOULD_DO,
     {"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=a"}},
    {"RANK=4, but WORLD_SIZE=4: it must be a number from 0 to 3", {TORCH(4, 4)}},
    {"WORLD_SIZE=0 is not a number from 1 to 1024", {TORCH(0, 0)}},
    {"WORLD_SIZE=1025 is not a number from 1 to 1024", {TORCH(0, 1025)}},
    {"RANK=-1 is not a number from 0 to 1023", {TORCH(-1, 2)}},
    {"RANK=01 is not a number from 0 to 1023", {TORCH(01, 2)}},
    {"RANK=99999999999999999999 is not a number from 0 to 1023", {TORCH(99999999999999999999, 2)}},
    {"LOCAL_RANK=2, but LOCAL_WORLD_SIZE=2: it must be a number from 0 to 1",
     {TORCH(1, 4), LOCAL(2, 2)}},
    {"LOCAL_WORLD_SIZE=8, but WORLD_SIZE=4: a machine cannot have more processes than the job",
     {TORCH(1, 4), LOCAL(1, 8)}},
    {"LOCAL_RANK=2, but RANK=1: the local rank cannot be above the rank",
     {TORCH(1, 4), "LOCAL_RANK=2"}},
    {"GROUP_RANK=1, but with RANK=1 LOCAL_RANK=1 only 0 processes are on the machines before this "
     "one",
     {TORCH(1, 4), "LOCAL_RANK=1", "GROUP_RANK=1"}},
    {"MASTER_ADDR=a b: a host name may contain only letters, digits, '.', '-' and '_'",
     {LEADER("a b", "1")}},
    {"MASTER_PORT=http: the port must be from 1 to 65535", {LEADER("a", "http")}},
    // Sources that disagree, and a second one that is broken.
    {"the number of training processes is 2 and this one of rank 1 according to TF_CONFIG, but 4 "
     "and this one of rank 1 according to RANK, WORLD_SIZE; unset one of them",
     {TF(WORKERS, TASK("worker", 1)), TORCH(1, 4)}},
    {"the number of training processes is 2 and this process, which does not train according to "
     "TF_CONFIG, but 2 "
     "and this one of rank 1 according to RANK, WORLD_SIZE; unset one of them",
     {TF(WORKERS, TASK("evaluator", 0)), TORCH(1, 2)}},
    {"the number of training processes is 4 and this one of rank 0 according to TUTTI_HOSTS=hosts, "
     "but 4 and this one of rank 1 according to RANK, WORLD_SIZE; unset one of them",
     {HOSTS, "TUTTI_RANK=0", TORCH(1, 4)}},
    {"RANK=x is not a number from 0 to 1023", {TF(WORKERS, TASK("worker", 1)), "RANK=x"}},
    // TUTTI_TASKS
    {"TUTTI_TASKS names 2 processes, but TUTTI_RANK is not set; set it to the rank of this "
     "process, 0 to 1",
     {"TUTTI_TASKS=a:1,b:1"}},
    {"TUTTI_RANK=2: TUTTI_TASKS names 2 processes, so it must be a number from 0 to 1",
     {LIST("a:1,b:1", 2)}},
    {"TUTTI_TASKS=?: the first process needs an address, host:port, where the others connect",
     {LIST("?,b:1", 0)}},
    {"TUTTI_TASKS: worker 1: address 'b': the port is missing: host:port", {LIST("a:1,b", 0)}},
    {"TUTTI_TASKS: worker 1: address '': the host is missing", {LIST("a:1,", 0)}},
    {"TUTTI_TASKS: worker 1: address 'a:1' is already used by worker 0; each needs a different one",
     {LIST("a:1,a:1", 0)}},
    {"TUTTI_LOCAL=2/2: write 0/2 for the first of two processes on a machine; there are 2 in all",
     {LIST("a:1,?", 0), "TUTTI_LOCAL=2/2"}},
    {"TUTTI_LOCAL=0/3: write 0/2 for the first of two processes on a machine; there are 2 in all",
     {LIST("a:1,?", 0), "TUTTI_LOCAL=0/3"}},
    {"TUTTI_LOCAL=1: write 0/2 for the first of two processes on a machine; there are 2 in all",
     {LIST("a:1,?", 0), "TUTTI_LOCAL=1"}},
    {"the number of training processes is 2 and this one of rank 0 according to TUTTI_TASKS, but 4 "
     "and this one of rank 1 according to RANK, WORLD_SIZE; unset one of them",
     {LIST("a:1,?", 0), TORCH(1, 4)}},
    // hosts
    {"TUTTI_RANK=4: hosts names 4 processes, so it must be a number from 0 to 3",
     {HOSTS, "TUTTI_RANK=4"}},
    {"cannot open 'none': No such file or directory", {"TUTTI_HOSTS=none"}},
};

TEST(cluster_refuses_what_is_wrong)
{
    tt_ctx *ctx = test_ctx();
    write_hosts();
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        tt_cluster *c = NULL;
        int64_t blocks = tt_alloc_stats_get(ctx).blocks;
        tt_status st = find(ctx, bad[i].set, &c);
        CHECK_STR(tt_last_error(ctx).message, bad[i].message);
        CHECK(st != TT_OK && c == NULL && tt_alloc_stats_get(ctx).blocks == blocks);
        tt_clear_error(ctx);
    }
    CHECK_OK(tt_close(ctx));
}

static const struct {
    const char *text, *message;
} bad_hosts[] = {
    {"", "hosts does not name a host: a line is host[:port] [slots=N]"},
    {"# box\n\n", "hosts does not name a host: a line is host[:port] [slots=N]"},
    {"a\nb x", "hosts: line 2: 'x': a line is host[:port] [slots=N]"},
    {"a slots=1 slots=1", "hosts: line 1: 'slots=1': a line is host[:port] [slots=N]"},
    {"a slots=0", "hosts: line 1: 'slots=0': slots must be from 1 to 1024"},
    {"a slots=1025", "hosts: line 1: 'slots=1025': slots must be from 1 to 1024"},
    {"a slots=", "hosts: line 1: 'slots=': slots must be from 1 to 1024"},
    {"a:port", "hosts: line 1: worker 0: address 'a:port': the port must be from 1 to 65535"},
    {"a\n\nA", "hosts: line 3: worker 1: address 'A' is already used by worker 0; each needs a "
               "different one"},
    {"a slots=1000\nb slots=25",
     "hosts: line 2: worker 1: there are more than 1024 tasks or processes"},
    {"a\nb", "hosts names 2 processes, 0 of them on this machine ('box.example.org'); set "
             "TUTTI_RANK to the rank of this process, 0 to 1"},
    {"box slots=2\nb", "hosts names 3 processes, 2 of them on this machine ('box.example.org'); "
                       "set TUTTI_RANK to the rank of this process, 0 to 2"},
    {"box.other.org\nb", "hosts names 2 processes, 0 of them on this machine ('box.example.org'); "
                         "set TUTTI_RANK to the rank of this process, 0 to 1"},
};

TEST(hosts_files_are_checked)
{
    tt_ctx *ctx = test_ctx();
    tt_cluster *c = NULL;
    const char *const set[MAX_VARIABLES] = {HOSTS};
    CHECK(chdir(test_folder()) == 0);
    for (size_t i = 0; i < sizeof(bad_hosts) / sizeof(bad_hosts[0]); i++) {
        command_write("hosts", bad_hosts[i].text);
        CHECK(find(ctx, set, &c) != TT_OK && c == NULL);
        CHECK_STR(tt_last_error(ctx).message, bad_hosts[i].message);
        tt_clear_error(ctx);
    }
    CHECK(tti_cluster_hosts(ctx, "z", "a\0b", 3, NULL, "box", &(tt_cluster){0}) == TT_EPARSE);
    CHECK_MESSAGE(ctx, "z has a zero byte");
    CHECK_INT(tt_close(ctx), TT_EPARSE);
}

static const struct {
    const char *text, *says; // processes and ranks of each host, or a message
} words[] = {
    {"a", "a 0+1"},
    {"host1:2,host2:2", "host1 0+2, host2 2+2"},
    {"[::1]:3,b", "[::1] 0+3, b 3+1"},
    {"10.0.0.1,10.0.0.2:1024", "-H: worker 1: there are more than 1024 tasks or processes"},
    {"", "-H: worker 0: address '-': every part of a host name must begin with a letter or digit"},
    {"a,",
     "-H: worker 1: address '-': every part of a host name must begin with a letter or digit"},
    {"a:",
     "-H a:: '' is not a number of processes from 1 to 1024; host1:2 means 2 processes on host1"},
    {"a:1025", "-H a:1025: '1025' is not a number of processes from 1 to 1024; host1:2 means 2 "
               "processes on host1"},
    {"a,b,a:2",
     "-H: worker 2: address 'a' is already used by worker 0; each needs a different one"},
    {"-x",
     "-H: worker 0: address '-x': every part of a host name must begin with a letter or digit"},
    {"::1", "-H: worker 0: address '::1': there are several colons; write an IPv6 address in "
            "brackets: [::1]:2222"},
};

TEST(hosts_with_numbers_of_processes_are_read)
{
    tt_ctx *ctx = test_ctx();
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        tt_cluster *c = tti_calloc(ctx, 1, sizeof(*c));
        char says[256] = "";
        size_t n = 0;
        if (tti_cluster_words(ctx, words[i].text, c) != TT_OK)
            snprintf(says, sizeof(says), "%s", tt_last_error(ctx).message);
        for (int k = 0; tt_status_of(ctx) == TT_OK && k < c->n_tasks; k++)
            n += (size_t)snprintf(says + n, sizeof(says) - n, "%s%s %d+%d", k > 0 ? ", " : "",
                                  c->tasks[k].address, c->tasks[k].first_rank,
                                  c->tasks[k].n_processes);
        CHECK_STR(says, words[i].says);
        tt_clear_error(ctx);
        tt_cluster_free(ctx, c);
    }
    CHECK_OK(tt_close(ctx));
}

#define TAIL   "112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define DIGITS "00" TAIL

// Without a secret only these are joined.
TEST(loopback_is_told_from_what_looks_like_it)
{
    static const char *const here[] = {"127.0.0.1",   "127.0.0.1:5", "127.9.9.9:1", "localhost",
                                       "LOCALHOST:7", "[::1]:5",     "::1"};
    static const char *const elsewhere[] = {"127.0.0.1.example.org",
                                            "127.0.0.1.example.org:5",
                                            "localhost.example.org:5",
                                            "localhosts",
                                            "10.0.0.1:5",
                                            "[::2]:5",
                                            "128.0.0.1",
                                            "",
                                            "a:127"};
    for (size_t i = 0; i < sizeof(here) / sizeof(here[0]); i++)
        ck_assert_msg(tti_is_loopback(here[i]), "%s", here[i]);
    for (size_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++)
        ck_assert_msg(!tti_is_loopback(elsewhere[i]), "%s", elsewhere[i]);
}

TEST(secrets_are_read)
{
    static const struct {
        const char *set[MAX_VARIABLES], *message; // NULL: it is the one above
    } cases[] = {
        {{"TUTTI_SECRET=" DIGITS}, NULL},
        {{"TUTTI_SECRET_FILE=secret"}, NULL},
        {{"TUTTI_SECRET_FILE=secret", "TUTTI_SECRET=" DIGITS}, NULL},
        {{"TUTTI_SECRET=abc"},
         "TUTTI_SECRET is not a secret: it has 3 characters, a secret has 64 digits 0-9a-f; 'tutti "
         "key new FILE' makes one"},
        {{"TUTTI_SECRET_FILE=hosts"},
         "TUTTI_SECRET_FILE=hosts does not hold a secret (64 digits 0-9a-f); 'tutti key new FILE' "
         "makes one"},
        {{"TUTTI_SECRET_FILE=none"},
         "TUTTI_SECRET_FILE=none: No such file or directory; 'tutti key new FILE' makes one"},
        {{"TUTTI_SECRET_FILE=open"},
         "TUTTI_SECRET_FILE=open can be read by others (mode 0640); make it private with chmod "
         "600"},
        {{"TUTTI_SECRET_FILE=open", "KUBERNETES_SERVICE_HOST=10.0.0.1"}, NULL}, // a Secret of a pod
        {{"TUTTI_SECRET_FILE=all", "KUBERNETES_SERVICE_HOST=10.0.0.1"},
         "TUTTI_SECRET_FILE=all can be read by others (mode 0644); make it private with chmod 600"},
        {{"TUTTI_SECRET_FILE=other", "TUTTI_SECRET=" DIGITS},
         "TUTTI_SECRET and TUTTI_SECRET_FILE hold different secrets; unset one of them"},
    };
    tt_ctx *ctx = test_ctx();
    unsigned char want[TT_SECRET_BYTES], got[TT_SECRET_BYTES];
    char text[TTI_SECRET_TEXT];
    bool has;
    write_hosts();
    command_write("secret", DIGITS " \r\n");
    command_write("open", DIGITS "\n");
    command_write("all", DIGITS "\n");
    CHECK(chmod("all", 0644) == 0);
    CHECK(chmod("secret", 0600) == 0 && chmod("open", 0640) == 0 && chmod("hosts", 0600) == 0);
    command_write("other", "ff" TAIL);
    CHECK(chmod("other", 0600) == 0);
    CHECK(tti_secret_parse(DIGITS, 64, want));
    tti_secret_print(want, text);
    CHECK_STR(text, DIGITS);
    CHECK(!tti_secret_parse(DIGITS, 63, got) && !tti_secret_parse("", 0, got));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tt_status st =
            tti_secret_find(ctx, &(tti_cluster_env){get, cases[i].set, "", NULL}, got, &has);
        CHECK_STR(tt_last_error(ctx).message, cases[i].message != NULL ? cases[i].message : "");
        CHECK(has && (st == TT_OK) == (cases[i].message == NULL));
        CHECK(st != TT_OK || memcmp(got, want, sizeof(want)) == 0);
        tt_clear_error(ctx);
    }
    const char *const nothing[MAX_VARIABLES] = {NULL};
    CHECK_OK(tti_secret_find(ctx, &(tti_cluster_env){get, nothing, "", NULL}, got, &has));
    CHECK(!has);
    CHECK_OK(tt_close(ctx));
}

// Sizes at their bounds, and one past them.
TEST(cluster_sizes_are_bounded)
{
    tt_ctx *ctx = test_ctx();
    static char text[TT_CLUSTER_MAX_TEXT + 64];
    const char *const set[MAX_VARIABLES] = {text};
    for (int n = TT_CLUSTER_MAX_TASKS; n <= TT_CLUSTER_MAX_TASKS + 1; n++) {
        tt_cluster *c = NULL;
        int at = snprintf(text, sizeof(text), "TF_CONFIG={\"task\": {%s}, \"cluster\": {",
                          TASK("worker", 1023));
        for (int i = 0; i < n; i++)
            at += snprintf(text + at, sizeof(text) - (size_t)at, "%s\"h%d:1\"",
                           i > 0 ? "," : "\"worker\": [", i);
        snprintf(text + at, sizeof(text) - (size_t)at, "]}}");
        tt_status st = find(ctx, set, &c);
        CHECK((st == TT_OK) == (n == TT_CLUSTER_MAX_TASKS));
        CHECK(st != TT_OK || (c->rank == 1023 && c->n_processes == 1024));
        tt_cluster_free(ctx, c);
    }
    CHECK_MESSAGE(ctx, "TF_CONFIG: worker 1024: there are more than 1024 tasks or processes");
    tt_clear_error(ctx);
    for (int over = 0; over < 2; over++) {
        tt_cluster *c = NULL;
        memset(text, ' ', sizeof(text));
        memcpy(text, "TF_CONFIG={}", 12);
        text[10 + TT_CLUSTER_MAX_TEXT + over] = '\0';
        CHECK((find(ctx, set, &c) == TT_OK) == (over == 0));
        tt_cluster_free(ctx, c);
    }
    CHECK_MESSAGE(ctx, "TF_CONFIG has 65537 bytes; at most 65536 are read");
    CHECK_INT(tt_close(ctx), TT_EINVAL);
}

TEST(cluster_survives_no_memory)
{
    tt_ctx *ctx = test_ctx();
    write_hosts();
    const char *const sets[][MAX_VARIABLES] = {{HOSTS, TORCH(0, 4)},
                                               {LIST("a:1,?", 1)},
                                               {TF(WORKERS, TASK("evaluator", 0))},
                                               {"RANK=1"},
                                               {NULL}};
    for (size_t s = 0; s < sizeof(sets) / sizeof(sets[0]); s++) {
        tt_status st = TT_ENOMEM;
        for (int64_t n = 1; st == TT_ENOMEM; n++) {
            tt_cluster *c = NULL;
            int64_t blocks = tt_alloc_stats_get(ctx).blocks;
            CHECK(n < 100);
            tti_fail_alloc_at(ctx, n);
            st = find(ctx, sets[s], &c);
            tti_fail_alloc_at(ctx, 0);
            CHECK((st == TT_OK) == (c != NULL));
            tt_cluster_free(ctx, c);
            CHECK(tt_alloc_stats_get(ctx).blocks == blocks);
            tt_clear_error(ctx);
        }
        CHECK(st == (s == 3 ? TT_EINVAL : TT_OK));
    }
    CHECK_OK(tt_close(ctx));
}

TEST(patience_follows_processes_for_each_core)
{
    int cores = tti_cores();
    CHECK_INT(tti_timeout_ms(1000, 1, false), 1000);
    CHECK_INT(tti_timeout_ms(1000, 4 * cores, false), 1000);
    CHECK_INT(tti_timeout_ms(1000, 8 * cores, false), 2000);
    CHECK_INT(tti_timeout_ms(1000, 32 * cores, false), 8000);
    int64_t start = tti_timeout_ms(1000, 8 * cores, true); // whatever else runs here, up to so much
    CHECK(start >= 2000 && start <= 4000);
}
