/*
 * mistakes_data.c - typical mistakes in data, as a table: the answer names the set, the file and
 * the record, and what to do.
 */
#include "../mistakes.h"
#include "base/base.h"

#define JOB(source, model, loss)                                                        \
    "printf 'data: {train: " source "}\\nmodel: " model "\\ntrain: {epochs: 1, batch: " \
    "2, loss: " loss "}\\n' > d.yaml; "
#define CSV(options) "{csv: {file: t.csv, y: y" options "}}"
#define TRAIN        "$TUTTI train d.yaml --quiet"

static const mistake rows[] = {
    {"NaN in an array", TRAIN, 4, "x.npy", "record 1",
     JOB("{npy: {x: x.npy, y: y.npy}}", "[dense: 1]", "mse") // the second number of record 1
     "printf '\\000\\000\\300\\177' | dd of=x.npy bs=1 seek=144 conv=notrunc"},
    {"NaN in a CSV file", TRAIN, 3, "t.csv: record 1, line 3, column 'a'", "'nan' is not a number",
     JOB(CSV(""), "[dense: 1]", "mse") "printf 'a,y\\n1,2\\nnan,3\\n4,5\\n' > t.csv"},
    {"a label out of range", TRAIN, 3, "t.csv", "record 2",
     JOB(CSV(", classes: true"), "[dense: 2]",
         "cross_entropy") "printf 'a,y\\n1,0\\n2,1\\n3,7\\n' > t.csv"},
    {"float labels with cross entropy", TRAIN, 3, "t.csv", "classes: true",
     JOB(CSV(""), "[dense: 2]", "cross_entropy") "printf 'a,y\\n1,0\\n2,1\\n3,1\\n' > t.csv"},
    {"a forgotten flatten", "$TUTTI train job.yaml --quiet", 3, "'y'", "flatten",
     "sed -i '/flatten/d' job.yaml"},
    {"a validation set of another width", TRAIN, 3, "v.csv", "validation",
     "printf 'data:\\n  train: {csv: {file: t.csv, y: y}}\\n  validate: {csv: {file: v.csv, y: "
     "y}}\\nmodel: [dense: 1]\\ntrain: {loss: mse}\\n' > d.yaml; printf 'a,y\\n1,2\\n3,4\\n' > "
     "t.csv; printf 'a,b,y\\n1,2,3\\n4,5,6\\n' > v.csv"},
    {"a word in a column", TRAIN, 3, "'rome'", "x",
     JOB(CSV(""), "[dense: 1]", "mse") "printf 'a,b,y\\n1,rome,2\\n3,paris,4\\n' > t.csv"},
    {"a semicolon between columns", TRAIN, 3, "t.csv", "comma: \";\"",
     JOB(CSV(""), "[dense: 1]", "mse") "printf 'a;y\\n1;2\\n3;4\\n' > t.csv"},
    {"no header", TRAIN, 3, "t.csv", "no_header: true",
     JOB(CSV(""), "[dense: 1]", "mse") "printf '1,2\\n3,4\\n5,6\\n' > t.csv"},
    {"a line with a column less", TRAIN, 3, "t.csv: record 1, line 3: 1 columns instead of 2", NULL,
     JOB(CSV(""), "[dense: 1]", "mse") "printf 'a,y\\n1,2\\n3\\n' > t.csv"},
    {"an empty file", TRAIN, 3, "t.csv: the file is empty", NULL,
     JOB(CSV(""), "[dense: 1]", "mse") ": > t.csv"},
    {"a file that is not there", TRAIN, 3, "cannot open 't.csv'", "No such file",
     JOB(CSV(""), "[dense: 1]", "mse") ":"},
};

TEST(mistakes_in_data)
{
    test_need_yaml();
    command_npy("x.npy", "8, 3", 24);
    command_npy("y.npy", "8,", 8);
    mistakes_make(rows, TTI_COUNT(rows));
}

// A target of shape (N,) is what one unit gives, with every loss.
TEST(a_target_without_an_axis_is_no_mistake)
{
    test_need_yaml();
    command_npy("x.npy", "8, 3", 24);
    command_npy("y.npy", "8,", 8);
    command_write("y.yaml", "data: {train: {npy: {x: x.npy, y: y.npy}}}\n"
                            "model: [dense: 1]\n"
                            "train: {epochs: 1, batch: 4, loss: mse}\n");
    command_ok("train y.yaml --quiet");
    command_ok("train y.yaml --quiet --set train.loss=binary_cross_entropy");
}
