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
    CHECK_INT(command_run("predict small --input wrong.npy"), 1);
    CHECK_HAS(command_err, "field 'x' has records of 729 f32, the model's input 'x' of 784 f32");
    CHECK_INT(command_run("predict small --input nowhere.npy"), 3);
    CHECK_HAS(command_err, "nowhere.npy");
    CHECK_INT(command_run("predict small --prompt hello"), 1);
    CHECK_HAS(command_err, "--prompt needs a job whose data.train is text");
    command_ok("predict small --count 300");
    CHECK_INT(command_count(command_out, "\n"), 97); // all of the test data, and a line of names
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
    CHECK_INT(command_run("predict text --prompt xyz"), 1);
    CHECK_HAS(command_err, "U+0078");
}
