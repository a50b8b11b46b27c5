/*
 * cli_predict.c - the command predicts: classes of records, and text.
 */
#include "../command.h"
#include <stdio.h>

// An array of n zeros of f32, [records, 28, 28, 1].
static void write_npy(const char *name, int records, int side)
{
    char path[600], header[118] = "", text[120];
    snprintf(text, sizeof(text),
             "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d, %d, 1), }", records, side,
             side);
    memset(header, ' ', sizeof(header));
    memcpy(header, text, strlen(text));
    header[117] = '\n';
    snprintf(path, sizeof(path), "%s/%s", test_folder(), name);
    FILE *f = fopen(path, "wb");
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, f);
    fwrite(header, 1, sizeof(header), f);
    for (int i = 0; i < records * side * side; i++)
        fwrite(&(float){0}, sizeof(float), 1, f);
    fclose(f);
}

TEST(records_are_predicted)
{
    int lines;
    command_write("small.yaml", command_small_job);
    command_ok("train small.yaml --quiet");
    write_npy("it's.npy", 3, 28);
    command_ok("predict small --input it's.npy --json");
    json_t *o = command_last_object(command_out, &lines);
    CHECK_INT(lines, 3);
    CHECK_INT(json_integer_value(json_object_get(o, "record")), 2);
    CHECK(json_is_integer(json_object_get(o, "class")) && json_object_get(o, "label") == NULL);
    json_decref(o);
    write_npy("wrong.npy", 3, 27);
    CHECK_INT(command_run("predict small --input wrong.npy"), 3);
    CHECK_HAS(
        command_err,
        "wrong.npy: records have shape [27, 27, 1], but the model's input 'x' has [28, 28, 1]");
    CHECK_INT(command_run("predict small --input nowhere.npy"), 3);
    CHECK_HAS(command_err, "tutti: error: cannot open 'nowhere.npy'");
    CHECK_INT(command_run("predict small --prompt hello"), 2);
    CHECK_HAS(command_err, "--prompt needs a model trained on text");
    command_ok("predict small --count 300");
    CHECK_INT(command_count(command_out, "\n"), 97); // all of the test data, and a line of names
}

// Inputs in another order than in the file: a model that is given them by place is found out.
static const char columns_job[] = "name: columns\n"
                                  "data: {train: {csv: {file: all.csv, y: y, x: 'b, c, a'}}}\n"
                                  "model: [{dense: 1}]\n"
                                  "train: {epochs: 2, batch: 2, loss: mse, optimizer: sgd}\n";

static void check_predicts(const char *line, const char *want)
{
    command_ok(line);
    ck_assert_msg(strcmp(command_out, want) == 0, "tutti %s: %s instead of %s", line, command_out,
                  want);
}

TEST(columns_are_found_by_name)
{
    char want[400];
    command_write("columns.yaml", columns_job);
    command_write("all.csv", "a,b,c,y\n1,2,3,4\n5,-6,7,8\n");
    command_write("plain.csv", "b,c,a\n2,3,1\n-6,7,5\n");
    command_write("mixed.csv", "c,note,y,a,b\n3,hello,?,1,2\n7,you,?,5,-6\n");
    command_ok("train columns.yaml --quiet");
    command_ok("predict columns --input all.csv");
    CHECK(strlen(command_out) < sizeof(want) && command_count(command_out, "\n") == 2);
    strcpy(want, command_out);
    check_predicts("predict columns --input plain.csv", want);
    check_predicts("predict columns --input mixed.csv", want);
    command_write("few.csv", "a,c\n1,3\n");
    CHECK_INT(command_run("predict columns --input few.csv"), 3);
    CHECK_HAS(command_err, "tutti: error: few.csv: has no column 'b'");
    command_write("bad.csv", "a,b,c\n1,2,x\n");
    CHECK_INT(command_run("predict columns.yaml --input bad.csv"), 3);
    CHECK_HAS(command_err,
              "tutti: error: bad.csv: record 0, line 2, column 'c': 'x' is not a number");
    CHECK_INT(command_run("predict columns --input nowhere.csv"), 3);
    CHECK_HAS(command_err, "tutti: error: cannot open 'nowhere.csv'");
}

TEST(columns_are_found_by_place)
{
    char want[400];
    command_write(
        "columns.yaml",
        "name: columns\n"
        "data:\n"
        "  dir: sub\n"
        "  train: {csv: {file: ./all.txt, y: c1, no_header: true, comma: ;, classes: true,"
        " words: 'no, yes'}}\n"
        "model: [{dense: 2}]\n"
        "train: {epochs: 2, batch: 2, loss: cross_entropy, optimizer: sgd}\n");
    command_write("all.txt", "1;yes;3\n4;no;6\n");
    command_write("less.txt", "1;3\n4;6\n");
    command_write("more.txt", "1;2;3;4\n");
    command_ok("train columns.yaml --quiet");
    command_ok("predict columns --input all.txt --json");
    CHECK(strlen(command_out) < sizeof(want) && command_count(command_out, "\n") == 2);
    strcpy(want, command_out);
    check_predicts("predict columns --input less.txt --json", want);
    CHECK_INT(command_run("predict columns --input more.txt"), 3);
    CHECK_HAS(command_err, "tutti: error: more.txt: has 4 columns; the training data had 3, 1 of");
}

TEST(text_is_written)
{
    char all[400] = "", first[400];
    for (int i = 0; i < 30; i++)
        strcat(all, "abc\n");
    command_write("all.txt", all);
    command_write("text.yaml", "name: text\n"
                               "data: {train: {text: {file: all.txt, context: 8, stride: 1}}}\n"
                               "model: {gpt: {layers: 1, heads: 2, width: 16}}\n"
                               "train: {epochs: 20, batch: 16, loss: cross_entropy,\n"
                               "        optimizer: {adam: {lr: 1e-2}}}\n");
    command_ok("train text.yaml --quiet");
    command_ok("predict text --prompt abc --length 20 --temperature 0");
    CHECK_STR(command_out, "abc\nabc\nabc\nabc\nabc\nabc\n"); // learned by heart
    command_ok("predict text --prompt b --length 40 --temperature 5 --seed 7");
    CHECK(strlen(command_out) < sizeof(first));
    strcpy(first, command_out);
    command_ok("predict text --prompt b --length 40 --temperature 5 --seed 7 --devices cpu:0*2");
    CHECK_STR(command_out, first);
    command_ok("predict text --prompt b --length 40 --temperature 5 --seed 8");
    CHECK(strcmp(command_out, first) != 0);
    command_ok("predict text --length 3 --json"); // no prompt: a line begins
    json_t *o = command_last_object(command_out, NULL);
    CHECK_INT(strlen(json_string_value(json_object_get(o, "text"))), 3);
    json_decref(o);
    CHECK_INT(command_run("predict text --prompt xyz"), 3);
    CHECK_HAS(command_err, "U+0078");
    command_ok("eval text --data all.txt --json"); // by the vocabulary of the model
    o = command_last_object(command_out, NULL);
    CHECK(json_number_value(json_object_get(o, "loss")) < 0.2);
    json_decref(o);
    command_write("part.txt", "abc\nabc\nabc\nabc\n"); // in a text of its own the same numbers
    command_ok("eval text --data part.txt");
    command_write("other.txt", "abcxabcxabcx");
    CHECK_INT(command_run("eval text --data other.txt"), 3);
    CHECK_HAS(command_err, "U+0078");
    CHECK_INT(command_run("predict text --input all.txt"), 3);
    CHECK_HAS(command_err, "give --prompt TEXT to continue a text");
}
