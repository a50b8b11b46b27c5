/*
 * cli_bisect.c - the key of a job, or the commit, that changed the result.
 */
#include "../command.h"
#include <stdio.h>

#define JOB(count, units, rest)                                               \
    "name: b\ndata: {train: {digits: {count: " count "}}, validate: "         \
    "{digits: {count: 16, first: 900}}}\n"                                    \
    "model: [flatten, {dense: {units: " units ", act: relu}}, {dense: 10}]\n" \
    "train: {epochs: 1, batch: 16, loss: cross_entropy, " rest "}\n"

TEST(bisect_finds_the_key)
{
    // What comes first in the job and changes nothing is not it: workers, the number of threads.
    command_write("good.yaml", JOB("64", "8", "optimizer: {adam: {lr: 0.001}}"));
    command_write(
        "bad.yaml",
        JOB("64", "8", "optimizer: {adam: {lr: 0.002, beta1: 0.8}}") "distribute: {threads: 1}\n");
    command_ok("bisect good.yaml bad.yaml --set data.workers=1");
    CHECK_HAS(command_out, "3 keys differ, ");
    CHECK_HAS(command_out, "the first that changes the result:\n  train.optimizer.adam.lr: 0.001 "
                           "-> 0.002\n");
    CHECK(!command_left("runs"));
    command_write("threads.yaml",
                  JOB("64", "8", "optimizer: {adam: {lr: 0.001}}") "distribute: {threads: 1}\n");
    CHECK_INT(command_run("bisect good.yaml threads.yaml"), 1);
    CHECK_HAS(command_err, "both ends give the same: weights ");
    CHECK_INT(command_run("bisect good.yaml good.yaml"), 1);
    CHECK_HAS(command_err, "are the same job");
    command_write("sgd.yaml", JOB("64", "12", "optimizer: {sgd: {lr: 5}}"));
    command_ok("bisect good.yaml sgd.yaml --json");
    CHECK_HAS(command_out, "\"keys\": [\"model.1.dense.units\"]");
    // Runs; a metric: more units change less than the bound.
    command_ok("train good.yaml --quiet --run a");
    command_ok("train sgd.yaml --quiet --run b");
    command_ok("bisect ./a ./b --metric validation_loss --bound 0.25");
    CHECK_HAS(command_out, "  train.optimizer: adam -> sgd\n");
    CHECK_INT(command_run("bisect ./a ./b --metric nothing"), 1);
    CHECK_HAS(command_err, "--metric nothing: the trials have no such metric");
}

// A program that is a script of the repository; one of its commits has another seed.
TEST(bisect_finds_the_commit)
{
    static const char make_repo[] =
        "git init -q repo && cd repo && git config user.name a && git config user.email a@b && "
        "for i in 1 2 3 4 5 6; do seed=1; [ $i -lt 4 ] || seed=2; "
        "printf '#!/bin/sh\\n# %d\\nexec %s \"$@\" --set seed=%d\\n' $i $TUTTI $seed > prog.in; "
        "[ $i != 3 ] || rm prog.in; git add -A; git commit -qm change-$i; git tag c$i; done";
    command_write("good.yaml", JOB("32", "8", "optimizer: {adam: {lr: 0.001}}"));
    CHECK_INT(command_shell(make_repo), 0);
    CHECK_INT(command_shell("cd repo && $TUTTI bisect ../good.yaml --commits c1..c6 --build 'cp "
                            "prog.in prog && chmod +x prog' --command prog"),
              0);
    CHECK_HAS(command_out, "5 commits, ");
    CHECK_HAS(command_out, "it is one of these; those before the last cannot be run:\n");
    CHECK_HAS(command_out, " change-4\n");
    CHECK(strstr(command_out, "change-5") == NULL && strstr(command_out, "change-2") == NULL);
    CHECK_INT(command_shell("cd repo && $TUTTI bisect ../good.yaml --commits c4..c6 --build 'cp "
                            "prog.in prog && chmod +x prog' --command prog"),
              1);
    CHECK_HAS(command_err, "both ends give the same");
    CHECK_INT(command_shell("cd repo && test $(git worktree list | wc -l) = 1 && test ! -e runs"),
              0);
    CHECK_INT(command_run("bisect good.yaml --commits c1..c6"), 2);
    CHECK_HAS(command_err, "--commits A..B and --build LINE belong together");
}
