/*
 * cli_audit.c - runs that are repeated, and runs that were tampered with: what was changed is
 * found, and named.
 */
#include "../command.h"
#include "base/base.h"
#include <stdio.h>

// Trained on a file, so that there is data to change. Two features, three classes.
static void make_run(const char *flags)
{
    char line[512];
    tti_text t = {0};
    tti_text_add(&t, "a,b,label\n");
    for (int i = 0; i < 64; i++)
        tti_text_add(&t, "%d.5,%d.25,%d\n", i % 7, i % 5, i % 3);
    char *text = tti_text_take(&t);
    command_write("data.csv", text);
    command_write("kept.csv", text);
    tti_free(NULL, text);
    command_write("job.yaml", "name: t\n"
                              "data: {train: {csv: {file: data.csv, y: label, classes: true}}}\n"
                              "model: [{dense: {units: 8, act: relu}}, {dropout: 0.1}, "
                              "{dense: 3}]\n"
                              "train: {epochs: 3, batch: 16, loss: cross_entropy, optimizer: "
                              "{adam: {lr: 0.01}}}\n");
    snprintf(line, sizeof(line), "train job.yaml --quiet --run first --chain 2 %s", flags);
    command_ok(line);
}

static int on_copy(const char *line)
{
    char all[1024];
    snprintf(all, sizeof(all), "rm -rf r o && cp -r first r && cp kept.csv data.csv && %s", line);
    CHECK_INT(command_shell(all), 0);
    return command_run("audit ./r --steps 7..10");
}

TEST(runs_are_repeated_anywhere)
{
    static const char *const lines[] = {
        "reproduce first --json", "reproduce first --json --devices cpu:0*3 --threads 2",
        "reproduce first --json -n 2 --devices cpu:0", "reproduce first --json --isa plain"};
    make_run("");
    for (int i = 0; i < TTI_COUNT(lines); i++) {
        command_ok(lines[i]);
        CHECK_HAS(command_out, "\"equal\": true");
        CHECK_HAS(command_out, "\"compared\": 10, \"last_equal\": 12");
    }
    command_ok("runs show ./first-repeat-001");
    CHECK_INT(command_run("reproduce first --set train.optimizer.adam.lr=0.02"), 1);
    CHECK_HAS(command_out, "differs   first at step 2: ");
    CHECK_HAS(command_out, "first difference: step 0, node update_adam");
    CHECK_HAS(command_out, "job is not what it was");
    CHECK_INT(command_run("reproduce first --devices gpu:9"), 1);
    CHECK_HAS(command_err, "it cannot be repeated here: ");
    CHECK_INT(command_run("reproduce nothing"), 1);
}

TEST(a_run_that_was_resumed_is_repeated)
{
    make_run("--until 5");
    command_ok("train first --resume --quiet --chain 3");
    command_ok("audit ./first");
    command_ok("reproduce first");
    CHECK_HAS(command_out, "equal     all ");
    command_ok("train first --resume --quiet --epochs 4");
    command_ok("audit ./first --steps 14..");
    CHECK_HAS(command_out, "steps 13 to 16 repeated");
}

// The learning rate depends on how long the training is to be: the first steps had another.
TEST(a_run_that_was_made_longer_is_repeated)
{
    make_run("--set train.optimizer.adam.schedule=cosine");
    command_ok("train first --resume --quiet --chain 2 --epochs 5");
    command_ok("audit ./first --json");
    CHECK_HAS(command_out, "\"replayed\": [1, 20]");
    command_ok("reproduce first --devices cpu:0*2");
    CHECK_HAS(command_out, "hashes up to step 20; weights ");
    command_ok("train job.yaml --quiet --run whole --epochs 5 --set "
               "train.optimizer.adam.schedule=cosine --chain as:first");
    CHECK_INT(command_shell("grep -q $(grep -o '\"step\": 2, \"weights\": \"[0-9a-f]*' "
                            "first/chain.jsonl | cut -c25-) whole/chain.jsonl"),
              1); // or this would prove nothing
}

TEST(audit_of_an_honest_run)
{
    make_run("");
    command_ok("audit ./first");
    CHECK_HAS(command_out, "./first: as it says\n");
    CHECK_HAS(command_out, "log, job, data and 3 checkpoints agree\n");
    CHECK_HAS(command_out, "steps 1 to 12 repeated: 10 hashes equal\n");
    command_ok("audit ./first --steps 6..7 --devices cpu:0*2 --json");
    CHECK_HAS(command_out, "\"right\": true");
    CHECK_HAS(command_out, "\"replayed\": [5, 8]");
    CHECK(!command_left("first/.audit"));
    CHECK_INT(command_run("audit ./first --steps 9..4"), 1);
    CHECK_HAS(command_err, "--steps '9..4' is not an interval of steps, for example 100..200");
    CHECK_INT(command_run("audit ./first --steps 13..14"), 1);
    CHECK_HAS(command_err, "the last hash of './first' is of step 12");
    command_ok("train job.yaml --quiet --run plain --chain off");
    CHECK_INT(command_run("audit ./plain"), 1);
    CHECK_HAS(command_err, "'./plain' has no chain of hashes");
}

TEST(tampering_is_found_and_named)
{
    static const struct {
        const char *line, *named;
    } cases[] = {
        // checkpoints
        {"printf x | dd of=r/checkpoints/step-8/weights.safetensors conv=notrunc bs=1 seek=600 "
         "2> null",
         "  checkpoints/step-8: "},
        {"rm -r r/checkpoints/step-8 && $TUTTI train job.yaml --quiet --run o --epochs 2 --lr 0.5 "
         "&& cp -r o/checkpoints/step-8 r/checkpoints",
         "  checkpoints/step-8: its weights were changed"},
        {"rm -r r/checkpoints/step-8 && cp -r r/checkpoints/step-12 r/checkpoints/step-8",
         "  checkpoints/step-8: "},
        {"sed -i 's/\"cursor\": 128/\"cursor\": 120/' r/checkpoints/step-8/manifest.json",
         "  checkpoints/step-8: "},
        // data
        {"sed -i '9s/.25/.75/' data.csv", "  data.csv: data.train: its contents were changed"},
        {"echo 1,2,0 >> data.csv", "  data.csv: data.train: it has "},
        {"rm data.csv", "  data: "},
        // the job
        {"sed -i 's/lr: 0.01/lr: 0.02/' r/job.yaml",
         "  job.yaml: train.optimizer.adam.lr is 0.02, but the run was started with 0.01"},
        {"sed -i 's/lanes: 8/lanes: 4/' r/job.yaml",
         "  job.yaml: distribute.lanes is 4, but the run was started with 8"},
        {"echo 'nonsense: 1' >> r/job.yaml", "  job.yaml: "},
        // the log
        {"sed -i '0,/\"loss\": 1/s//\"loss\": 0/' r/events.jsonl",
         "  events.jsonl: changed between byte "},
        {"sed -i 3d r/events.jsonl", "  events.jsonl: changed between byte "},
        {"rm r/events.jsonl", "  events.jsonl: changed between byte 0 "},
        // the chain
        {"sed -i '3s/weights\": \"./weights\": \"f/' r/chain.jsonl",
         "  chain.jsonl: line 3 does not follow"},
        {"sed -i 4d r/chain.jsonl", "  chain.jsonl: line 4 does not follow"},
        {"sed -i '$d' r/chain.jsonl", "  chain.jsonl: ends at step 12, but the log says that the "
                                      "run finished at step 12: lines were removed"},
    };
    make_run("");
    for (int i = 0; i < TTI_COUNT(cases); i++) {
        CHECK_INT(on_copy(cases[i].line), 1);
        ck_assert_msg(strstr(command_out, cases[i].named) != NULL, "case %d: no '%s' in '%s' '%s'",
                      i, cases[i].named, command_out, command_err);
    }
    CHECK_INT(on_copy("true"), 0);
}

// Whoever makes the whole chain anew: without the key by its signature, with none by the steps.
TEST(a_chain_made_anew_is_found)
{
    command_ok("key new my.key");
    command_ok("key new other.key");
    make_run("--key my.key");
    command_ok("audit ./first --key my.key");
    CHECK_HAS(command_out, "lines and signatures, log");
    CHECK_INT(command_run("audit ./first --key other.key"), 1);
    CHECK_HAS(command_out, "  chain.jsonl: line 1 is not signed with this key");
    command_ok("audit ./first");
    CHECK_HAS(command_err, "the chain is signed; --key FILE checks the signatures");
    // Another job's chain and log under this run's name: the links are right.
    command_ok("train job.yaml --quiet --run o --chain 2 --lr 0.5");
    CHECK_INT(command_shell("cp o/chain.jsonl o/events.jsonl first"), 0);
    CHECK_INT(command_run("audit ./first --key my.key"), 1);
    CHECK_HAS(command_out, "line 1 is not signed with this key");
    CHECK_HAS(command_out, "job.yaml: train.optimizer.adam.lr is 0.01, but the run was started");
    CHECK_HAS(command_out, "checkpoints/step-12: its weights were changed");
    CHECK_INT(command_shell("chmod 644 my.key"), 0);
    CHECK_INT(command_run("audit ./first --key my.key"), 1);
    CHECK_HAS(command_err, "can be read by others");
}

// Files of a glob are named one by one.
TEST(changed_text_is_named)
{
    CHECK_INT(command_shell("mkdir t && for i in 1 2 3; do seq $i 400 > t/$i.txt; done"), 0);
    command_write("text.yaml",
                  "name: t\n"
                  "data: {train: {text: {file: 't/*.txt', level: byte, context: 8}}}\n"
                  "model: {gpt: {layers: 1, heads: 2, width: 8}}\n"
                  "train: {steps: 4, batch: 8, loss: cross_entropy, optimizer: adam}\n");
    command_ok("train text.yaml --quiet --run r --chain 2");
    command_ok("audit ./r");
    CHECK_INT(command_shell("sed -i '300s/./9/' t/2.txt && cp t/2.txt t/4.txt"), 0);
    CHECK_INT(command_run("audit ./r"), 1);
    CHECK_HAS(command_out, "  t/2.txt: data.train: its contents were changed");
    CHECK_HAS(command_out, "  t/4.txt: data.train: it was not there when the run was started");
    CHECK(strstr(command_out, "t/1.txt") == NULL);
}
