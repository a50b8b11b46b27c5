/*
 * cli_use.c - what was trained is used: what the commands refuse rather than guess.
 */
#include "../command.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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
    command_npy("right.npy", "2, 28, 28, 1", 2 * 784);
    command_npy("nchw.npy", "2, 1, 28, 28", 2 * 784);
    command_npy("flat.npy", "2, 784", 2 * 784);
    command_ok("predict small --input right.npy");
    CHECK_INT(command_run("predict small --input nchw.npy"), 3);
    CHECK_HAS(command_err, "nchw.npy");
    CHECK_HAS(command_err, "[1, 28, 28]");
    CHECK_HAS(command_err, "[28, 28, 1]");
    CHECK_HAS(command_err, "--layout nchw");
    CHECK_INT(command_run("predict small --input flat.npy"), 3);
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
    "checkpoint: {every: 400}\n"
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

// ---- a model is whole ------------------------------------------------------------------------

static const char fruit_job[] =
    "name: fruit\n"
    "data:\n"
    "  train: {csv: {file: fruit.csv, y: kind, classes: true, x: 'weight, size'}}\n"
    "  transform: [{normalise: {means: [150, 7], scales: [60, 2]}}]\n"
    "model: [{dense: {units: 8, act: tanh}}, {dense: 3}]\n"
    "init: start.safetensors\n"
    "checkpoint: {every: 1000}\n"
    "train: {epochs: 60, batch: 8, loss: cross_entropy, optimizer: {adam: {lr: 0.05}},\n"
    "        metrics: [accuracy]}\n";

static const struct {
    const char *kind;
    int weight, size;
} fruits[] = {{"melon, big", 300, 14}, {"apple", 150, 7}, {"plum", 40, 4}};

// first: which kind comes first, so that numbers by appearance would differ.
static void write_fruit(const char *name, int n, int first, bool with_kind)
{
    char text[8192] = "size,id,weight,kind\n", line[64];
    if (!with_kind)
        strcpy(text, "weight,size\n");
    for (int i = 0; i < n; i++) {
        int k = (i + first) % 3, w = fruits[k].weight + 5 * (i % 4), s = fruits[k].size + i % 2;
        if (with_kind)
            snprintf(line, sizeof(line), "%d,%d,%d,\"%s\"\n", s, i, w, fruits[k].kind);
        else
            snprintf(line, sizeof(line), "%d,%d\n", w, s);
        strcat(text, line);
    }
    command_write(name, text);
}

static char said[4][1 << 16];

static void ask(const char *model, const char *more, char to[4][1 << 16])
{
    char line[300];
    snprintf(line, sizeof(line), "predict %s --input new.csv --all --json%s", model, more);
    command_ok(line);
    strcpy(to[0], command_out);
    snprintf(line, sizeof(line), "eval %s --data test.csv --json%s", model, more);
    command_ok(line);
    *strstr(command_out, "\"checkpoint\"") = '\0';
    strcpy(to[1], command_out);
    snprintf(line, sizeof(line), "summary %s", model);
    command_ok(line);
    strcpy(to[2], command_out);
    snprintf(line, sizeof(line), "inspect %s", model);
    command_ok(line);
}

static void same_answers(const char *model)
{
    static char again[4][1 << 16];
    ask(model, "", again);
    for (int i = 0; i < 3; i++)
        CHECK_STR(again[i], said[i]);
}

// The same in C: probabilities of the records of new.csv.
static void same_in_c(const char *path)
{
    char where[600];
    float x[6 * 2], y[6 * 3];
    tt_ctx *ctx = test_ctx();
    snprintf(where, sizeof(where), "%s/%s", test_folder(), path);
    tt_model *m = tt_model_load(ctx, where);
    ck_assert_msg(m != NULL, "%s", tt_last_error(ctx).message);
    CHECK_STR(tt_model_class(m, 0, 0), "melon, big");
    CHECK_STR(tt_model_class(m, 0, 2), "plum");
    for (int i = 0; i < 6; i++) {
        x[2 * i] = (float)(fruits[(i + 1) % 3].weight + 5 * (i % 4));
        x[2 * i + 1] = (float)(fruits[(i + 1) % 3].size + i % 2);
    }
    CHECK_OK(tt_predict(m, x, 6, y, .raw = true));
    const char *at = said[0];
    for (int i = 0; i < 6; i++) {
        at = strstr(at, "\"all\"");
        CHECK(at != NULL);
        for (int k = 0; k < 3; k++) {
            at = strstr(at, "\"probability\": ") + 15;
            CHECK_NEAR(strtod(at, NULL), y[3 * i + k], 6e-7);
        }
    }
    CHECK_OK(tt_close(ctx));
}

TEST(a_run_is_moved_and_used_alone)
{
    char to[600], from[600];
    command_write("start.yaml", fruit_job);
    char *init = strstr(fruit_job, "init: ");
    char job[2000];
    snprintf(job, sizeof(job), "%.*s%s", (int)(init - fruit_job), fruit_job,
             strstr(init, "checkpoint"));
    command_write("fruit.yaml", job);
    write_fruit("fruit.csv", 60, 0, true);
    write_fruit("test.csv", 20, 2, true); // plums come first there
    write_fruit("new.csv", 6, 1, false);
    command_ok("train fruit.yaml --quiet");
    command_ok("convert fruit start.safetensors");
    command_ok("train start.yaml --quiet --set name=fruit");
    ask("fruit", "", said);
    CHECK_HAS(said[0], "\"class\": \"apple\", \"probability\": 0.");
    CHECK_HAS(said[1], "\"accuracy\": 1");
    command_ok("convert fruit one.tutti");
    command_ok("convert fruit weights.safetensors");

    snprintf(from, sizeof(from), "%s/runs/fruit-002", test_folder());
    snprintf(to, sizeof(to), "%s/else", test_folder());
    CHECK(rename(from, to) == 0);
    gone("fruit.csv");
    gone("fruit.yaml");
    gone("start.yaml");
    gone("start.safetensors");
    same_answers("else");
    same_answers("one.tutti");
    same_answers("weights.safetensors");
    same_in_c("else");
    same_in_c("one.tutti");
    command_ok("convert else two.tutti --json");
    char hash[64] = "", *two = strstr(command_out, "xxh3_128");
    snprintf(hash, sizeof(hash), "%.50s", two);
    command_ok("convert one.tutti three.tutti --json"); // of a file: the same file
    CHECK_HAS(command_out, hash);
    same_answers("three.tutti");
    command_ok("inspect one.tutti");
    CHECK_HAS(command_out, "input   x  f32 [2]");
    CHECK_HAS(command_out, "output  dense_2  f32 [3], classes: melon, big; apple; plum");
    CHECK_INT(command_run("convert else four.tutti --only dense_1.*"), 1);
    CHECK_HAS(command_err, "'four.tutti': a model needs all its tensors under their names");
    CHECK(!command_left("four.tutti"));
}
