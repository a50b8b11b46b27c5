/*
 * reproduce.c - five runs of different kinds, repeated and audited on other device counts, in
 * several processes and with other instruction sets.
 */
#include "../command.h"
#include "base/base.h"
#include <stdio.h>

static const struct {
    const char *name, *job;
} kinds[] = {
    {"mlp", "data: {train: {digits: {count: 96}}, validate: {digits: {count: 16, first: 900}}}\n"
            "model: [flatten, {dense: {units: 12, act: relu}}, {dropout: 0.2}, {dense: 10}]\n"
            "train: {epochs: 2, batch: 16, loss: cross_entropy, optimizer: {adam: {lr: 0.01}}, "
            "metrics: [accuracy]}\n"},
    {"cnn", "data: {train: {digits: {count: 64}}, transform: [{random_shift: 2}]}\n"
            "model: [{conv2d: {filters: 4, kernel: 3, act: relu}}, batch_norm, {max_pool2d: 4}, "
            "flatten, {dense: 10}]\n"
            "train: {epochs: 2, batch: 16, loss: cross_entropy, optimizer: {sgd: {lr: 0.1, "
            "momentum: 0.9}}}\n"},
    {"gpt", "data: {train: {text: {file: story.txt, level: byte, context: 8}}}\n"
            "model: {gpt: {layers: 1, heads: 2, width: 8}}\n"
            "train: {steps: 12, batch: 8, loss: cross_entropy, optimizer: {adamw: {lr: 0.01}}}\n"},
    {"sum", "data: {train: {digits: {count: 128}}}\n"
            "model: [flatten, {dense: {units: 8, act: tanh}}, {dense: 10}]\n"
            "train: {epochs: 2, batch: 8, accumulate: 2, loss: cross_entropy, optimizer: {adam: "
            "{lr: 0.01, schedule: {cosine: {}}}}}\n"},
    {"bf16", "data: {train: {digits: {count: 96}}}\n"
             "model: [flatten, {dense: {units: 16, act: relu}}, {dense: 10}]\n"
             "train: {epochs: 2, batch: 16, precision: bf16, loss: cross_entropy, optimizer: "
             "{adam: {lr: 0.01}}}\nseed: 7\n"},
};

static void repeat(const char *words, const char *run, const char *flags)
{
    char line[256];
    snprintf(line, sizeof(line), "%s ./%s --json %s", words, run, flags);
    command_ok(line);
    CHECK_HAS(command_out, words[0] == 'r' ? "\"equal\": true" : "\"right\": true");
}

TEST(five_kinds_of_runs_are_repeated)
{
    char line[256], job[64], text[1024];
    for (size_t i = 0; i < sizeof(text) - 1; i++)
        text[i] = "the quick brown fox jumps\n"[i * i % 26];
    text[sizeof(text) - 1] = '\0';
    command_write("story.txt", text);
    for (int i = 0; i < TTI_COUNT(kinds); i++) {
        snprintf(job, sizeof(job), "%s.yaml", kinds[i].name);
        command_write(job, kinds[i].job);
        snprintf(line, sizeof(line), "train %s --quiet --run %s --chain 3 --threads 1", job,
                 kinds[i].name);
        command_ok(line);
        repeat("reproduce", kinds[i].name, "--devices cpu:0*3");
        repeat("reproduce", kinds[i].name, "-n 2 --devices cpu:0");
        repeat("reproduce", kinds[i].name, "--isa plain --threads 2");
        repeat("audit", kinds[i].name, "--steps 4..8 --devices cpu:0*2");
    }
}
