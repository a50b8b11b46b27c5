/*
 * cli_data.c - the command with people's files: tutti data show, and words of tables from training
 * to prediction.
 */
#include "command.h"
#include "test.h"

static const char job[] =
    "data:\n"
    "  train: {csv: {file: 't*.csv', y: price, categories: city, missing: nan}}\n"
    "  test: {csv: {file: e.csv, y: price, categories: city, missing: nan}}\n"
    "  transform: [fill_missing: mean]\n"
    "model: [dense: 1]\n"
    "train: {epochs: 1, batch: 2, loss: mse, optimizer: {sgd: {lr: 1e-3}}}\n";

static void put_files(const char *test)
{
    test_need_yaml();
    command_write("t1.csv", "area,city,price\n1,Rome,2\n,Paris,3\n");
    command_write("t2.csv", "area,city,price\n3,Rome,1\n");
    command_write("e.csv", test);
    command_write("table.yaml", job);
}

TEST(data_show_prints_what_there_is)
{
    put_files("city,area,price\n");
    command_write("e.csv", "area,city,price\n3,Rome,9\n2,Paris,5\n");
    command_ok("data show table.yaml");
    CHECK_HAS(command_out, "data.train: csv, 3 records");
    CHECK_HAS(command_out, "2 words: Paris, Rome");
    CHECK_HAS(command_out, "1 missing");
    CHECK_HAS(command_out, "duplicates: 1 of 2 records of data.test");
    CHECK_HAS(command_out, "records/s");
    CHECK_INT(command_run("data show table.yaml --output p.png"), 3);
    CHECK_HAS(command_err, "field 'x' is not images");
    CHECK_INT(command_run("data list table.yaml"), 2);
    CHECK_HAS(command_err, "use tutti data show JOB");
    command_write("small.yaml", command_small_job);
    command_ok("data show small.yaml --output p.png");
    CHECK_HAS(command_out, "pictures: p.png");
    char head[9];
    command_read("p.png", head, sizeof(head));
    CHECK(memcmp(head, "\x89PNG\r\n", 6) == 0);
}

TEST(words_of_tables_are_kept_for_predictions)
{
    put_files("area,city,price\n1,Paris,2\n"); // fewer words than the training data
    command_ok("train table.yaml --run r");
    command_write("n.csv", "city,area\nParis,\nRome,1\n");
    command_ok("predict r n.csv");
    command_write("n.csv", "city,area\nOslo,1\n");
    CHECK_INT(command_run("predict r n.csv"), 3);
    CHECK_HAS(command_err, "n.csv: record 0, line 2, column 'city': 'Oslo' is a category that the");
    command_write("e.csv", "area,city,price\n1,Oslo,2\n");
    CHECK_INT(command_run("train table.yaml --run q"), 3);
    CHECK_HAS(command_err, "'Oslo' is a category");
}
