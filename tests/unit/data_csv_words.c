/*
 * data_csv_words.c - CSV as people have it: several files, categories, dates, missing values,
 * dialects, windows. The expected values are those of pandas (read_csv, get_dummies, to_datetime).
 */
#include "data/csv_own.h"
#include "data_test.h"
#include <math.h>
#include <stdio.h>

static void put_files(void)
{
    data_text("a1.csv", "area,city,sold,rooms,price\n100,Rome,2024-01-31,3,200\n"
                        ",Paris,2023-12-01 12:00,4,310\n80,Rome,2022-02-28,NA,150\n");
    data_text("a2.csv",
              "area,city,sold,rooms,price\n120,\"New York, NY\",2021-06-15T06:30:00,5,500\n"
              "90,,2020/02/29,2,120\n70,Paris,2024-03-01,2,180\n");
}

static const float want[6][10] = {
    {100, 0, 0, 1, 19753, 1, 31, 2, 0, 3},  {NAN, 0, 1, 0, 19692.5, 12, 1, 4, 12, 4},
    {80, 0, 0, 1, 19051, 2, 28, 0, 0, NAN}, {120, 1, 0, 0, 18793.2715f, 6, 15, 1, 6, 5},
    {90, 0, 0, 0, 18321, 2, 29, 5, 0, 2},   {70, 0, 1, 0, 19783, 3, 1, 4, 0, 2},
};

static void expect(const float *got, const float *values, int n)
{
    for (int i = 0; i < n; i++)
        ck_assert_msg(got[i] == values[i] || (isnan(got[i]) && isnan(values[i])),
                      "value %d is %.9g, not %.9g", i, (double)got[i], (double)values[i]);
}

TEST(csv_words_dates_and_gaps_of_several_files)
{
    tt_ctx *ctx = test_ctx();
    put_files();
    tt_data *d = tt_csv(ctx, .file = data_path("a?.csv"), .y = "price", .categories = "city",
                        .dates = "sold", .missing = TT_MISSING_NAN, .no_shuffle = true, .batch = 6);
    tt_batch_data b = data_all(d);
    CHECK_INT(b.rows, 6);
    expect(b.fields[0], want[0], 60);
    expect(b.fields[1], (float[]){200, 310, 150, 500, 120, 180}, 6);
    tt_data_stop(d);
    // Means of what is there, from the training data; kept for another data set.
    CHECK_OK(tt_transform(d, "fill_missing", .fit = TT_NORMALISE_FIT));
    b = data_all(d);
    const float *x = b.fields[0];
    CHECK(x[10] == 92 && x[29] == 3.2f && x[0] == 100);
    tt_data *other = tt_csv(ctx, .file = data_path("a1.csv"), .y = "price", .categories = "city",
                            .dates = "sold", .missing = TT_MISSING_NAN, .no_shuffle = true,
                            .tables = "3, \"New York, NY\", Paris, Rome");
    CHECK_OK(tt_transform(other, "fill_missing", .fit = TT_NORMALISE_FIT, .like = d));
    x = data_all(other).fields[0];
    CHECK(x[10] == 92 && x[29] == 3.2f && x[3] == 1);
    CHECK_OK(tt_close(ctx));
}

TEST(csv_unseen_words_and_hashes)
{
    tt_ctx *ctx = test_ctx();
    data_text("w.csv", "c,y\nred,1\nblue,2\nred,3\n");
    CHECK(tt_csv(ctx, .file = data_path("w.csv"), .categories = "c", .tables = "1, red") == NULL);
    CHECK_MESSAGE(ctx, "w.csv: record 1, line 3, column 'c': 'blue' is a category that the");
    tt_clear_error(ctx);
    tt_data *d = tt_csv(ctx, .file = data_path("w.csv"), .categories = "c", .tables = "1, red",
                        .unseen = TT_UNSEEN_ZEROS, .no_shuffle = true);
    expect(data_all(d).fields[0], (float[]){1, 0, 1}, 3);
    d = tt_csv(ctx, .file = data_path("w.csv"), .categories = "c", .hash = 8, .no_shuffle = true);
    const float *x = data_all(d).fields[0];
    float sum = 0;
    for (int i = 0; i < 24; i++)
        sum += x[i];
    CHECK(sum == 3 && memcmp(x, x + 16, 8 * sizeof(float)) == 0);
    CHECK(tt_csv(ctx, .file = data_path("w.csv"), .categories = "z") == NULL);
    CHECK_MESSAGE(ctx, "has no column 'z'");
    tt_clear_error(ctx);
    CHECK(tt_csv(ctx, .file = data_path("w.csv"), .categories = "y") == NULL);
    CHECK_MESSAGE(ctx, "column 'y' is listed in categories, but is not an input");
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
}

TEST(csv_dialects)
{
    tt_ctx *ctx = test_ctx();
    data_text("d.csv", "a;'b;c';y\n1,5;-2,25;'3'\n'4';5e1;,5\n");
    tt_data *d = tt_csv(ctx, .file = data_path("d.csv"), .comma = ";", .quote = "'", .decimal = ",",
                        .no_shuffle = true);
    tt_batch_data b = data_all(d);
    expect(b.fields[0], (float[]){1.5f, -2.25f, 4, 50}, 4);
    expect(b.fields[1], (float[]){3, 0.5f}, 2);
    data_text("q.csv", "a,y\n\"1,2\n");
    CHECK(tt_csv(ctx, .file = data_path("q.csv"), .quote = "none") == NULL);
    CHECK_MESSAGE(ctx, "'\"1' is not a number");
    tt_clear_error(ctx);
    data_text("e.csv", "y,a\n1,2\n");
    data_text("f.csv", "a,y\n1,2\n");
    char both[900];
    snprintf(both, sizeof(both), "%s, %s", data_path("e.csv"), data_path("f.csv"));
    CHECK(tt_csv(ctx, .file = both) == NULL);
    CHECK_MESSAGE(ctx, "f.csv: column 0 is 'a', but in");
    tt_clear_error(ctx);
    // A column that changes its type late, in the second file.
    data_text("e.csv", "a,y\n1,2\n");
    data_text("f.csv", "a,y\n1,2\nword,3\n");
    CHECK(tt_csv(ctx, .file = both) == NULL);
    CHECK_MESSAGE(ctx, "f.csv: record 2, line 3, column 'a': 'word' is not a number");
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
}

TEST(csv_windows)
{
    tt_ctx *ctx = test_ctx();
    data_text("t.csv", "v,w\n0,10\n1,11\n2,12\n3,13\n4,14\n5,15\n");
    tt_data *d = tt_csv(ctx, .file = data_path("t.csv"), .y = "w", .window = 3, .horizon = 2,
                        .no_shuffle = true);
    tt_batch_data b = data_all(d);
    CHECK_INT(b.rows, 2);
    expect(b.fields[0], (float[]){0, 1, 2, 1, 2, 3}, 6);
    expect(b.fields[1], (float[]){14, 15}, 2);
    d = tt_csv(ctx, .file = data_path("t.csv"), .y = "-", .window = 2, .stride = 2,
               .no_shuffle = true);
    b = data_all(d);
    CHECK_INT(b.rows, 3);
    expect(b.fields[0], (float[]){0, 10, 1, 11, 2, 12, 3, 13, 4, 14, 5, 15}, 12);
    CHECK(tt_csv(ctx, .file = data_path("t.csv"), .window = 6) == NULL);
    CHECK_MESSAGE(ctx, "has 6 rows; window: 6 with its horizon needs at least 7");
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
}

TEST(csv_dates_are_real_days)
{
    double p[TTI_DATE_PARTS];
    CHECK(tti_date_parse("1970-01-01", p) && p[0] == 0 && p[3] == 3);
    CHECK(tti_date_parse("1969-12-31T18:00:00Z", p) && p[0] == -0.25 && p[3] == 2 && p[4] == 18);
    CHECK(tti_date_parse("2000-02-29", p) && !tti_date_parse("1900-02-29", p));
    static const char *const bad[] = {"",           "2024-1-31",   "2024-13-01",
                                      "2024-04-31", "2024-01-01x", "2024-01-01 25:00",
                                      "31.01.2024", "2024-01/02",  NULL};
    for (int i = 0; bad[i] != NULL; i++)
        ck_assert_msg(!tti_date_parse(bad[i], p), "%s", bad[i]);
}
