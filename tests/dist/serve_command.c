/*
 * serve_command.c - tutti serve, ping, state and graph run as a user types them: processes of one
 * cluster, on loopback and with a key; readiness, draining, a task that is killed.
 */
#include "command.h"
#include "ranks.h"
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const char graph[] = "tutti graph 1\n"
                            "%x = feed {shape=[b, 3]}\n"
                            "%w = variable {shape=[3, 2], init=glorot_uniform} @/job:ps\n"
                            "%y = matmul(%x, %w) @/job:worker/task:0/cpu:0\n"
                            "%n = variable {shape=[]} @/job:ps\n"
                            "%m = scale(%n) {factor=1, offset=1}\n"
                            "%up = assign(%n, %m)\n"
                            "%s = sum(%y) {axes=[0, 1]}\n";

// The hash of a fetched tensor, as it was printed.
static void hash_of(const char *name, char out[64])
{
    const char *line = command_out;
    while (strncmp(line, name, strlen(name)) != 0 && (line = strchr(line, '\n')) != NULL)
        line++;
    CHECK(line != NULL && sscanf(line, "%*s %*s %*s %63s", out) == 1);
}

TEST(serve_command_processes_of_a_cluster)
{
    ranks_need();
    char text[512], line[256], here[64], there[64];
    int ps = ranks_port(), worker = ranks_port();
    snprintf(text, sizeof(text),
             "jobs:\n  ps: [127.0.0.1:%d]\n  worker: ['127.0.0.1:%d']\nkey: c.key\n", ps, worker);
    command_write("c.yaml", text);
    command_write("g.txt", graph);
    command_ok("key new c.key");
    pid_t a = command_start("serve c.yaml --task ps:0 --threads 1");
    pid_t b = command_start("serve c.yaml --task worker --threads 1");
    snprintf(line, sizeof(line), "ping tutti://127.0.0.1:%d --wait 10 --key c.key --json", ps);
    command_ok(line);
    CHECK_HAS(command_out, "\"task\": \"/job:ps/task:0\"");
    snprintf(line, sizeof(line), "ping tutti://127.0.0.1:%d --wait 10 --key c.key", worker);
    command_ok(line);
    command_ok("graph run g.txt --feed x=0.5 --rows 5 --level error");
    hash_of("s", here);
    for (int i = 1; i < 3; i++) {
        snprintf(line, sizeof(line),
                 "graph run g.txt --feed x=0.5 --rows 5 --key c.key --target tutti://127.0.0.1:%d",
                 worker);
        command_ok(line);
        hash_of("s", there);
        CHECK_STR(here, there);
        CHECK_HAS(command_out, i == 1 ? "  1\n" : "  2\n"); // what is counted stays on the server
    }
    snprintf(line, sizeof(line), "state ls tutti://127.0.0.1:%d --key c.key", ps);
    command_ok(line);
    CHECK_HAS(command_out, "f32 [3, 2]");
    snprintf(line, sizeof(line), "ping tutti://127.0.0.1:%d", worker);
    CHECK_INT(command_run(line), 76); // without the key
    kill(a, SIGKILL);
    CHECK_INT(command_wait(a), -SIGKILL);
    snprintf(line, sizeof(line),
             "graph run g.txt --feed x=0.5 --key c.key --target tutti://127.0.0.1:%d", worker);
    CHECK_INT(command_run(line), 76);
    snprintf(text, sizeof(text), "no server listens at tutti://127.0.0.1:%d", ps);
    CHECK_HAS(command_err, text);
    kill(b, SIGTERM);
    CHECK_INT(command_wait(b), 0);
}

TEST(serve_command_local_cluster_is_ready_on_a_descriptor)
{
    ranks_need();
    CHECK_INT(command_shell("$TUTTI serve --local 2 --jobs ps,worker --ready-fd 3 --threads 1 "
                            "> out 3> ready & P=$!; while ! [ -s ready ]; do sleep 0.02; done; "
                            "$TUTTI ping $(sed -n 's/.*worker.* //p' out) && kill -TERM $P && "
                            "wait $P"),
              0);
    CHECK_HAS(command_out, "/job:worker/task:0 of 2");
}

TEST(serve_command_mistakes)
{
    ranks_need();
    command_write("c.yaml", "jobs: {worker: [127.0.0.1:1, 127.0.0.1:2]}\n");
    CHECK_INT(command_run("serve c.yaml"), 3);
    CHECK_HAS(command_err, "the cluster has 2 tasks; say which one this server is");
    CHECK_INT(command_run("serve c.yaml --task worker:2"), 3);
    CHECK_HAS(command_err, "has no task 'worker:2'; it has worker:0 to worker:1");
    command_write("c.yaml", "jobs: {worker: [0.0.0.0:0]}\n");
    CHECK_INT(command_run("serve c.yaml"), 3);
    command_write("c.yaml", "job: {worker: [127.0.0.1:1]}\n");
    CHECK_INT(command_run("serve c.yaml"), 3);
    CHECK_HAS(command_err, "did you mean 'jobs'?");
    command_write("c.yaml", "jobs: {a: 127.0.0.1:1, b: 127.0.0.1:1}\n");
    CHECK_INT(command_run("serve c.yaml --task a"), 3);
    CHECK_HAS(command_err, "is the address of a:0 and of b:0");
    CHECK_INT(command_run("serve --local 2 --jobs ps:3"), 3);
    CHECK_HAS(command_err, "2 tasks, but jobs 'ps:3' have 3");
    CHECK_INT(command_run("serve --local 1 --devices gpu:99"), 3);
    CHECK_INT(command_run("state mv tutti://127.0.0.1:1"), 2);
    CHECK_INT(command_run("graph run g.txt --container a"), 2);
}
