/*
 * cli_use.c - what was trained is used: what the commands refuse rather than guess.
 */
#include "../command.h"
#include <stdio.h>

// ---- inputs ----------------------------------------------------------------------------------

static void refuses_inputs(const char *inputs, const char *words)
{
    char job[1000];
    snprintf(job, sizeof(job),
             "name: two\n"
             "data: {train: {csv: {file: t.csv, y: c}}}\n"
             "model:\n"
             "  inputs: %s\n"
             "  layers: [{add: {from: [%s, b]}}, {dense: 1}]\n"
             "train: {epochs: 1, batch: 2, loss: mse, optimizer: sgd}\n",
             inputs, inputs[1] == 'x' ? "x" : "a");
    command_write("two.yaml", job);
    ck_assert_msg(command_run("train two.yaml --quiet") == 3, "%s%s", command_out, command_err);
    CHECK_HAS(command_err, words);
}

TEST(inputs_that_match_no_field_are_refused)
{
    command_write("t.csv", "p,c\n1,2\n3,4\n5,6\n7,8\n");
    // x is [1] and y is [1]: by position the label would be input b, and its own target.
    refuses_inputs("{a: {}, b: {}}", "the data has no field 'a'; its fields are 'x' and 'y'");
    refuses_inputs("{x: {}, b: {}}", "the data has no field 'b'; its fields are 'x' and 'y'");
    refuses_inputs("{a: {shape: [1]}, b: {shape: [1]}}",
                   "the data has no field 'a'; its fields are 'x' and 'y'");
}
