/*
 * data_normalise.c - normalise with numbers from the data: against numbers worked out by hand, from
 * the training part only, kept by the model and undone for its outputs.
 */
#include "../command.h"
#include "data_test.h"
#include "jobs.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void expect(const float *got, int n, const double *want)
{
    for (int i = 0; i < n; i++)
        ck_assert_msg(fabs((double)got[i] - want[i]) < 1e-6, "number %d is %g, not %g", i,
                      (double)got[i], want[i]);
}

TEST(numbers_are_mean_and_standard_deviation_of_each_column)
{
    tt_ctx *ctx = test_ctx();
    // Columns: mean 3, deviation 2; constant; mean 1e6, deviation 1.
    static const float x[4][3] = {{1, 7, 1000001}, {5, 7, 999999}, {1, 7, 1000001}, {5, 7, 999999}};
    tt_data *d = tt_memory(ctx, .x = x, .x_shape = TT_SHAPE(3), .count = 4, .no_shuffle = true);
    CHECK_OK(tt_transform(d, "normalise", .fit = TT_NORMALISE_FIT));
    expect(data_all(d).fields[0], 12, (double[]){-1, 0, 1, 1, 0, -1, -1, 0, 1, 1, 0, -1});
    CHECK_OK(tt_close(ctx));
}

TEST(images_have_numbers_for_each_channel_or_all)
{
    tt_ctx *ctx = test_ctx();
    static const uint8_t x[2][2][2] = {{{0, 10}, {4, 10}}, {{0, 20}, {4, 20}}};
    for (int all = 0; all < 2; all++) {
        tt_data *d = tt_memory(ctx, .x = x, .x_dtype = TT_U8, .x_shape = TT_SHAPE(2, 2), .count = 2,
                               .no_shuffle = true);
        CHECK_OK(
            tt_transform(d, "normalise", .fit = all ? TT_NORMALISE_FIT_ALL : TT_NORMALISE_FIT));
        double m = 8.5,
               s = sqrt((72.25 + 2.25 + 20.25 + 2.25 + 72.25 + 132.25 + 20.25 + 132.25) / 8);
        if (all)
            expect(data_all(d).fields[0], 8,
                   (double[]){-m / s, 1.5 / s, -4.5 / s, 1.5 / s, -m / s, 11.5 / s, -4.5 / s,
                              11.5 / s});
        else
            expect(data_all(d).fields[0], 8, (double[]){-1, -1, 1, -1, -1, 1, 1, 1});
    }
    CHECK_OK(tt_close(ctx));
}

// One value far from the others does not spoil the digits of the rest.
TEST(an_outlier_keeps_the_deviation_exact)
{
    tt_ctx *ctx = test_ctx();
    static float x[1001];
    for (int i = 1; i < 1001; i++)
        x[i] = i % 2 ? 1 : -1;
    x[0] = 1e6f;
    double mean = 1e6 / 1001, square = 0;
    for (int i = 0; i < 1001; i++)
        square += ((double)x[i] - mean) * ((double)x[i] - mean);
    double s = sqrt(square / 1001);
    tt_data *d = tt_memory(ctx, .x = x, .count = 1001, .no_shuffle = true);
    CHECK_OK(tt_transform(d, "normalise", .fit = TT_NORMALISE_FIT));
    const float *y = data_all(d).fields[0];
    CHECK_NEAR(y[0], (1e6 - mean) / s, 1e-4);
    CHECK_NEAR((double)y[1] - (double)y[2], 2 / s, 1e-8);
    CHECK_OK(tt_close(ctx));
}

TEST(numbers_come_from_the_training_part_and_go_to_the_others)
{
    tt_ctx *ctx = test_ctx();
    static float x[10];
    for (int i = 0; i < 10; i++)
        x[i] = i < 8 ? (float)(i % 2 ? 3 : 1) : 100; // the last two are not trained on
    tt_data *d = tt_memory(ctx, .x = x, .count = 10, .no_shuffle = true);
    tt_data *test = tt_data_split(d, .rows = 2, .take = TT_SPLIT_LAST);
    CHECK_OK(tt_transform(d, "normalise", .fit = TT_NORMALISE_FIT));
    CHECK_OK(tt_transform(test, "normalise", .fit = TT_NORMALISE_FIT, .like = d));
    expect(data_all(d).fields[0], 8, (double[]){-1, 1, -1, 1, -1, 1, -1, 1});
    expect(data_all(test).fields[0], 2, (double[]){98, 98});
    CHECK_OK(tt_close(ctx));
}

TEST(transforms_before_it_count)
{
    tt_ctx *ctx = test_ctx();
    static const uint8_t x[2][2][1][2] = {{{{1, 3}}, {{10, 10}}}, {{{1, 3}}, {{30, 30}}}};
    tt_data *d = tt_memory(ctx, .x = x, .x_dtype = TT_U8, .x_shape = TT_SHAPE(2, 1, 2), .count = 2,
                           .no_shuffle = true);
    CHECK_OK(tt_transform(d, "channels_last"));
    CHECK_OK(tt_transform(d, "normalise", .fit = TT_NORMALISE_FIT));
    expect(data_all(d).fields[0], 8, (double[]){-1, -1, 1, -1, -1, 1, 1, 1});
    CHECK_OK(tt_close(ctx));
}

TEST(fit_is_refused_where_it_has_no_meaning)
{
    tt_ctx *ctx = test_ctx();
    static float x[6][4] = {{0}};
    static int32_t y[6];
    tt_data *d =
        tt_memory(ctx, .x = x, .x_shape = TT_SHAPE(2, 2, 1), .y = y, .y_dtype = TT_I32, .count = 6);
    CHECK(tt_transform(d, "normalise", .field = "y", .fit = TT_NORMALISE_FIT) == TT_EDTYPE);
    tt_clear_error(ctx);
    CHECK(tt_transform(d, "normalise", .fit = TT_NORMALISE_FIT, .mean = 3) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "give either fit or mean and scale, not both");
    tt_clear_error(ctx);
    CHECK(tt_transform(d, "normalise", .fit = TT_NORMALISE_FIT, .like = d) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "the data set in like has no normalise");
    tt_clear_error(ctx);
    x[4][3] = NAN;
    CHECK(tt_transform(d, "normalise", .fit = TT_NORMALISE_FIT) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "normalise: fit: memory: record 4, field 'x', element [1, 1, 0] is not a "
                       "finite number");
    tt_clear_error(ctx);
    x[4][3] = 0;
    CHECK_OK(tt_transform(d, "random_flip"));
    CHECK(tt_transform(d, "normalise", .fit = TT_NORMALISE_FIT) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "with fit it must come before random_flip");
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
    job_build_fails("data: {test: {digits: {count: 9}}, transform: [normalise: fit]}\n"
                    "model: [flatten, dense: 10]\n",
                    "j.yaml:1:59: data.transform.0: fit takes its numbers from the training data, "
                    "but there is no data.train");
}

static tt_data *open_fit(tt_ctx *ctx)
{
    static const float x[4][2] = {{1, 2}, {3, 4}, {5, 6}, {7, 8}};
    tt_data *d = tt_memory(ctx, .x = x, .x_shape = TT_SHAPE(2), .count = 4);
    return d != NULL && tt_transform(d, "normalise", .fit = TT_NORMALISE_FIT) == TT_OK ? d : NULL;
}

TEST(fit_without_memory)
{
    data_no_memory(open_fit);
}

// ---- jobs and models -------------------------------------------------------------------------

// price = 100000 + 300 area - 2000 age: what it is in its own units cannot be taken for anything
// else.
static void write_houses(const char *name, int n)
{
    static char text[1 << 15];
    int at = snprintf(text, sizeof(text), "area,age,price\n");
    for (int i = 0; i < n; i++) {
        int area = 40 + i * 37 % 160, age = i * 11 % 50;
        at += snprintf(text + at, sizeof(text) - (size_t)at, "%d,%d,%d\n", area, age,
                       100000 + 300 * area - 2000 * age);
    }
    data_text(name, text);
}

#define JOB(transforms)                                           \
    "name: p\nseed: 2\n"                                          \
    "data:\n"                                                     \
    "  train: {csv: {file: p.csv, y: price}}\n"                   \
    "  validate: {split: 0.2}\n" transforms "model: [dense: 1]\n" \
    "train: {epochs: 60, batch: 20, loss: mse, optimizer: {adam: {lr: 0.05}}}\n"
static const char fit_job[] =
    JOB("  transform: [normalise: fit, normalise: {field: y, fit: true}]\n");

TEST(fitted_numbers_train_as_given_ones_do)
{
    char fitted[64], given[64], again[64], job[2048], numbers[4][64];
    write_houses("p.csv", 200);
    command_write("fit.yaml", fit_job);
    command_ok("train fit.yaml --json --run fitted");
    command_hash(command_out, fitted);
    command_ok("train fit.yaml --json --run spread --strategy mirrored --devices cpu:0*2 "
               "--set data.workers=0");
    command_hash(command_out, again);
    CHECK_STR(again, fitted);
    command_ok("train fit.yaml --json --run part --set train.epochs=30");
    command_ok("train part --resume --json --set train.epochs=60");
    command_hash(command_out, again);
    CHECK_STR(again, fitted);
    // By hand, over the records that are trained on.
    CHECK(chdir(test_folder()) == 0);
    tt_ctx *ctx = tt_open(.devices = "cpu:0", .seed = 2, .on_event = test_ignore_event);
    tt_data *d = tt_csv(ctx, .file = "p.csv", .y = "price", .no_shuffle = true);
    tt_data *v = tt_data_split(d, .fraction = 0.2);
    CHECK_INT(tt_data_count(v), 40);
    tt_batch_data b = data_all(d);
    double sum[3] = {0}, square[3] = {0};
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < b.rows; i++)
            for (int k = 0; k < 3; k++) {
                double x = k < 2 ? ((const float *)b.fields[0])[2 * i + k]
                                 : ((const float *)b.fields[1])[i];
                double mean = sum[k] / (double)b.rows;
                sum[k] += pass == 0 ? x : 0;
                square[k] += pass == 0 ? 0 : (x - mean) * (x - mean);
            }
    for (int k = 0; k < 2; k++) {
        snprintf(numbers[k], 64, k == 0 ? "%.9g, %.9g" : "%.9g, %.9g",
                 (double)(float)(k == 0 ? sum[0] / 160 : sqrt(square[0] / 160)),
                 (double)(float)(k == 0 ? sum[1] / 160 : sqrt(square[1] / 160)));
        snprintf(numbers[2 + k], 64, "%.9g",
                 (double)(float)(k == 0 ? sum[2] / 160 : sqrt(square[2] / 160)));
    }
    CHECK_OK(tt_close(ctx));
    snprintf(
        job, sizeof(job),
        JOB("  transform: [normalise: {means: [%s], scales: [%s]}, normalise: {field: y, means: "
            "[%s], scales: [%s]}]\n"),
        numbers[0], numbers[1], numbers[2], numbers[3]);
    command_write("given.yaml", job);
    command_ok("train given.yaml --json --run given");
    command_hash(command_out, given);
    CHECK_STR(given, fitted);
}

TEST(a_moved_model_predicts_in_the_units_of_its_target)
{
    char before[64];
    write_houses("p.csv", 200);
    command_write("fit.yaml", fit_job);
    command_write("new.csv", "age,area\n10,100\n40,60\n");
    command_ok("train fit.yaml --quiet --run made");
    command_ok("eval made --data p.csv");
    snprintf(before, sizeof(before), "%.12s", strstr(command_out, "loss"));
    CHECK(command_shell("mkdir away && mv made away/m && rm fit.yaml && cp p.csv other.csv && "
                        "rm p.csv") == 0);
    command_ok("predict away/m --input new.csv --json");
    double want[2] = {110000, 38000}, got;
    const char *s = command_out;
    for (int i = 0; i < 2; i++) {
        s = strstr(s, "\"output\": [");
        CHECK(s != NULL);
        got = strtod(s += 11, NULL);
        ck_assert_msg(fabs(got - want[i]) < 0.01 * want[i], "record %d: %g, not %g", i, got,
                      want[i]);
    }
    command_ok("eval away/m --data other.csv"); // the file's target is normalised as in training
    CHECK_HAS(command_out, before);
    command_ok("convert away/m m.tutti");
    command_ok("predict m.tutti --input new.csv");
    CHECK(fabs(strtod(command_out + 2, NULL) - want[0]) < 1100);
    // In C.
    CHECK(chdir(test_folder()) == 0);
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_model_load(ctx, "away/m");
    float y[1], x[2] = {100, 10};
    CHECK_OK(tt_predict(m, x, 1, y, .raw = true));
    CHECK_NEAR(y[0], 110000, 1100);
    CHECK_OK(tt_close(ctx));
}

TEST(a_run_with_its_own_test_file_is_evaluated_without_training_data)
{
    char first[64];
    write_houses("p.csv", 200);
    write_houses("t.csv", 30);
    command_write("fit.yaml", "name: p\ndata:\n  train: {csv: {file: p.csv, y: price}}\n"
                              "  test: {csv: {file: t.csv, y: price}}\n"
                              "  transform: [normalise: fit, normalise: {field: y, fit: true}]\n"
                              "model: [dense: 1]\ntrain: {epochs: 3, batch: 20, loss: mse}\n");
    command_ok("train fit.yaml --run r");
    snprintf(first, sizeof(first), "%.23s", strstr(command_out, "test        loss"));
    CHECK(command_shell("rm p.csv") == 0);
    command_ok("eval r");
    CHECK_HAS(command_out, first);
}
