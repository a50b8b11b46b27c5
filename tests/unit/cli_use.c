/*
 * cli_use.c - what was trained is used: what the commands refuse rather than guess.
 */
#include "../command.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// An array of f32 counting up, in NumPy's format; shape as "3, 28, 28, 1".
static void write_npy(const char *name, const char *shape, int64_t n)
{
    char path[600], header[118], text[120];
    snprintf(text, sizeof(text), "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }",
             shape);
    memset(header, ' ', sizeof(header));
    memcpy(header, text, strlen(text));
    header[117] = '\n';
    snprintf(path, sizeof(path), "%s/%s", test_folder(), name);
    FILE *f = fopen(path, "wb");
    CHECK(f != NULL);
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, f);
    fwrite(header, 1, sizeof(header), f);
    for (int64_t i = 0; i < n; i++)
        fwrite(&(float){(float)i / (float)n}, sizeof(float), 1, f);
    fclose(f);
}

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

// ---- shapes ----------------------------------------------------------------------------------

TEST(records_of_another_shape_are_refused)
{
    command_write("small.yaml", command_small_job);
    command_ok("train small.yaml --quiet");
    write_npy("right.npy", "2, 28, 28, 1", 2 * 784);
    write_npy("nchw.npy", "2, 1, 28, 28", 2 * 784);
    write_npy("flat.npy", "2, 784", 2 * 784);
    command_ok("predict small --input right.npy");
    CHECK_INT(command_run("predict small --input nchw.npy"), 1);
    CHECK_HAS(command_err, "nchw.npy");
    CHECK_HAS(command_err, "[1, 28, 28]");
    CHECK_HAS(command_err, "[28, 28, 1]");
    CHECK_HAS(command_err, "--layout nchw");
    CHECK_INT(command_run("predict small --input flat.npy"), 1);
    CHECK_HAS(command_err, "[784]");
    CHECK_HAS(command_err, "[28, 28, 1]");
}

// ---- init ------------------------------------------------------------------------------------

static const char second_job[] = "name: second\n"
                                 "data: {train: {digits: {count: 64}}}\n"
                                 "model: [{flatten: {}}, {dense: 10}]\n"
                                 "init: %s\n"
                                 "train: {epochs: 1, batch: 16, loss: cross_entropy, optimizer: "
                                 "{sgd: {lr: 0}}}\n";

static void init_from(const char *name, char hash[64])
{
    char job[1000];
    snprintf(job, sizeof(job), second_job, name);
    command_write("second.yaml", job);
    command_ok("train second.yaml --json");
    command_hash(command_out, hash);
}

TEST(init_takes_names_of_runs)
{
    char want[64], got[64];
    command_write("first.yaml",
                  "name: first\n"
                  "data: {train: {digits: {count: 64}}}\n"
                  "model: [{flatten: {}}, {dense: 10}]\n"
                  "train: {epochs: 1, batch: 16, loss: cross_entropy, optimizer: sgd}\n");
    command_ok("train first.yaml --json");
    command_hash(command_out, want);
    init_from("runs/first-001", got);
    CHECK_STR(got, want);
    init_from("first-001", got);
    CHECK_STR(got, want);
    init_from("first", got);
    CHECK_STR(got, want);
    char job[1000];
    snprintf(job, sizeof(job), second_job, "firts");
    command_write("second.yaml", job);
    CHECK_INT(command_run("train second.yaml"), 3);
    CHECK_HAS(command_err, "init: there is no file 'firts', and no run of that name in 'runs'");
}

// ---- without data, job and init --------------------------------------------------------------

static void gone(const char *name)
{
    char path[600];
    snprintf(path, sizeof(path), "%s/%s", test_folder(), name);
    CHECK(unlink(path) == 0);
}

// As examples/csv_regression.yaml: the target is normalised, too.
static const char prices_job[] =
    "name: prices\n"
    "data:\n"
    "  train: {csv: {file: all.csv, y: price}}\n"
    "  transform:\n"
    "    - normalise: {means: [130, 4.5], scales: [50, 2]}\n"
    "    - normalise: {field: y, mean: 300, scale: 100}\n"
    "model: [{dense: 1}]\n"
    "train: {epochs: 200, batch: 16, loss: mse, optimizer: {adam: {lr: 0.05}}}\n";

// price = 2 area + 10 rooms
static void write_prices(const char *name, bool with_price, int n)
{
    char text[4096] = "", line[64];
    strcat(text, with_price ? "area,rooms,price\n" : "area,rooms\n");
    for (int i = 0; i < n; i++) {
        int area = 60 + 29 * i % 140, rooms = 1 + 7 * i % 8;
        snprintf(line, sizeof(line), with_price ? "%d,%d,%d\n" : "%d,%d\n", area, rooms,
                 2 * area + 10 * rooms);
        strcat(text, line);
    }
    command_write(name, text);
}

TEST(regressions_are_predicted_without_a_target)
{
    command_write("prices.yaml", prices_job);
    write_prices("all.csv", true, 64);
    write_prices("new.csv", false, 8);
    command_ok("train prices.yaml --quiet");
    command_ok("predict prices --input new.csv --json");
    const char *at = command_out;
    for (int i = 0; i < 8; i++) { // in the price's own units
        int area = 60 + 29 * i % 140, rooms = 1 + 7 * i % 8;
        at = strstr(at, "[");
        CHECK(at != NULL);
        CHECK_NEAR(strtod(++at, NULL), 2 * area + 10 * rooms, 5);
    }
}

TEST(runs_are_used_without_data_and_init)
{
    static char predicted[1 << 16], evaluated[1 << 16];
    command_write("prices.yaml", prices_job);
    write_prices("all.csv", true, 64);
    write_prices("new.csv", false, 8);
    write_prices("test.csv", true, 20);
    command_ok("train prices.yaml --quiet");
    command_ok("convert prices init.safetensors");
    char job[2000];
    snprintf(job, sizeof(job), "%sinit: init.safetensors\n", prices_job);
    command_write("prices.yaml", job);
    command_ok("train prices.yaml --quiet");
    command_ok("predict prices --input new.csv");
    strcpy(predicted, command_out);
    command_ok("eval prices --data test.csv --json");
    strcpy(evaluated, command_out);
    gone("init.safetensors");
    command_ok("train prices --resume --quiet --set train.epochs=201"); // data, but no init
    gone("all.csv");
    gone("prices.yaml");
    command_ok("predict prices --input new.csv --checkpoint step-800");
    CHECK_STR(command_out, predicted);
    command_ok("eval prices --data test.csv --json --checkpoint step-800");
    CHECK_STR(command_out, evaluated);
    CHECK(command_run("train prices --resume") != 0);
    CHECK_HAS(command_err, "all.csv");
}
