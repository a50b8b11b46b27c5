/*
 * data_csv.c - CSV: columns, quotes, classes, numbers, and what is refused.
 */
#include "data/csv.h"
#include "data_test.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static tt_csv_opts options; // of open_csv()

static tt_data *open_csv(tt_ctx *ctx)
{
    tt_csv_opts o = options;
    o.opts_size = sizeof(o);
    o.file = data_path("t.csv");
    o.no_shuffle = true;
    return tt_csv_with(ctx, &o);
}

static void expect(const float *got, int n, const float *want)
{
    for (int i = 0; i < n; i++)
        ck_assert_msg(got[i] == want[i], "number %d is %g, not %g", i, (double)got[i],
                      (double)want[i]);
}

TEST(csv_columns)
{
    tt_ctx *ctx = test_ctx();
    tt_field f[TT_MAX_FIELDS];
    data_text("t.csv", "\xef\xbb\xbf"
                       "a, b ,\"c, d\",price\r\n"
                       "1,2,3,4\r\n"
                       "\r\n"
                       " -1.5 ,\t2e3,\"7\",+.5\n"
                       "0,1.,0x,\"-3e-2\""); // c of the last is no number: only where it is used
    options = (tt_csv_opts){.x = "b, a"};
    tt_data *d = open_csv(ctx);
    tt_batch_data b = data_all(d);
    CHECK_INT(tt_data_fields(d, f), 2);
    CHECK(f[0].shape.rank == 1 && f[0].shape.dim[0] == 2);
    CHECK(f[1].shape.rank == 1 && f[1].shape.dim[0] == 1 && f[1].dtype == TT_F32);
    expect(b.fields[0], 6, (float[]){2, 1, 2000, -1.5f, 1, 0});
    expect(b.fields[1], 3, (float[]){4, 0.5f, -0.03f});
    options = (tt_csv_opts){0};
    CHECK(open_csv(ctx) == NULL);
    CHECK_MESSAGE(ctx, "t.csv: record 2, line 5, column 'c, d': '0x' is not a number");
    tt_clear_error(ctx);
    options = (tt_csv_opts){.x = "a", .y = "-", .first = 1, .count = 1};
    d = open_csv(ctx);
    CHECK_INT(tt_data_count(d), 1);
    CHECK_INT(tt_data_fields(d, f), 1);
    b = data_all(d);
    expect(b.fields[0], 1, (float[]){-1.5f});
    options = (tt_csv_opts){.x = "a", .y = "price, b", .first = 2};
    b = data_all(open_csv(ctx));
    expect(b.fields[1], 2, (float[]){-0.03f, 1});
    CHECK_OK(tt_close(ctx));
}

TEST(csv_separators_and_no_header)
{
    tt_ctx *ctx = test_ctx();
    data_text("t.csv", "1\t2\t 3\n4\t5\t6\t\n");
    options = (tt_csv_opts){.comma = "tab", .no_header = true};
    CHECK(open_csv(ctx) == NULL);
    CHECK_MESSAGE(ctx, "t.csv: record 1, line 2: 4 columns instead of 3");
    tt_clear_error(ctx);
    data_text("t.csv", "1;2;3\n4;5;6\n");
    options = (tt_csv_opts){.comma = ";", .no_header = true, .y = "c0"};
    tt_batch_data b = data_all(open_csv(ctx));
    expect(b.fields[0], 4, (float[]){2, 3, 5, 6});
    expect(b.fields[1], 2, (float[]){1, 4});
    options.comma = "ab";
    CHECK(open_csv(ctx) == NULL);
    CHECK_MESSAGE(ctx, "comma is 'ab'");
    CHECK(tt_close(ctx) == TT_EINVAL);
}

TEST(csv_classes)
{
    tt_ctx *ctx = test_ctx();
    tt_field f[TT_MAX_FIELDS];
    data_text("t.csv", "x,kind\n1,cat\n2,\"big \"\"dog\"\"\nhere\"\n3,cat\n4,ant\n");
    options = (tt_csv_opts){.classes = true};
    tt_data *d = open_csv(ctx);
    tt_batch_data b = data_all(d);
    tt_data_fields(d, f);
    CHECK(f[1].dtype == TT_I32 && f[1].shape.rank == 0 && f[1].classes == 3);
    CHECK(memcmp(b.fields[1], (int32_t[]){0, 1, 0, 2}, 16) == 0);
    options.first = 2; // the whole file numbers them
    b = data_all(open_csv(ctx));
    CHECK(memcmp(b.fields[1], (int32_t[]){0, 2}, 8) == 0);
    options = (tt_csv_opts){.words = "ant, cat"};
    CHECK(open_csv(ctx) == NULL);
    CHECK_MESSAGE(ctx, "record 1, line 3, column 'kind': 'big \"dog\"");
    CHECK_MESSAGE(ctx, "is not one of words");
    tt_clear_error(ctx);
    data_text("t.csv", "x,kind\n1,cat\n3,cat\n4,ant\n");
    b = data_all(open_csv(ctx));
    CHECK(memcmp(b.fields[1], (int32_t[]){1, 1, 0}, 12) == 0);
    // Numbers are the classes themselves, whatever comes first.
    data_text("t.csv", "x,kind\n1,7\n3,0\n4,7\n");
    options = (tt_csv_opts){.classes = true};
    d = open_csv(ctx);
    tt_data_fields(d, f);
    b = data_all(d);
    CHECK_INT(f[1].classes, 8);
    CHECK(memcmp(b.fields[1], (int32_t[]){7, 0, 7}, 12) == 0);
    CHECK_OK(tt_close(ctx));
}

// A thousand classes make the table grow.
TEST(csv_many_classes)
{
    tt_ctx *ctx = test_ctx();
    FILE *file = fopen(data_path("t.csv"), "w");
    fprintf(file, "x,y\n");
    for (int i = 0; i < 3000; i++)
        fprintf(file, "%d,w%d\n", i, i * 7 % 1000);
    fclose(file);
    options = (tt_csv_opts){.classes = true};
    tt_batch_data b = data_all(open_csv(ctx));
    for (int i = 0; i < 3000; i++) {
        CHECK(((const float *)b.fields[0])[i] == (float)i);
        CHECK_INT(((const int32_t *)b.fields[1])[i], i % 1000);
    }
    CHECK_OK(tt_close(ctx));
}

TEST(csv_refusals)
{
    static const struct {
        const char *text;
        tt_csv_opts o;
        const char *words;
    } bad[] = {
        {"", {0}, "t.csv: the file is empty"},
        {"\n\n", {0}, "t.csv: the file is empty"},
        {"a,b\n", {0}, "t.csv: has no records"},
        {"a,b\n1,2\n", {.first = 1}, "t.csv: has no records there"},
        {"a\n1\n", {0}, "no column is left for x"},
        {"a,b\n1,2,3\n", {0}, "record 0, line 2: 3 columns instead of 2"},
        {"a,b\n1\n", {0}, "record 0, line 2: 1 columns instead of 2"},
        {"a,b\n1,2\n1,\n", {0}, "record 1, line 3, column 'b': '' is empty"},
        {"a,b\n1,nan\n", {0}, "'nan' is not a number"},
        {"a,b\n1,1e39\n", {0}, "'1e39' is not a number that f32 can hold"},
        {"a,b\n1,\"2\n", {0}, "t.csv: line 2: a quote is not closed"},
        {"a,b\n1,\"2\"x\n", {0}, "t.csv: line 2: there is text after a closing quote"},
        {"a,b\n1,2\n", {.y = "c"}, "has no column 'c'; its columns are 'a', 'b'"},
        {"a,a,b\n1,2,3\n", {.x = "a"}, "two columns have the name 'a'"},
        {"a,c,b\n1,2,3\n", {.x = "a, a"}, "column 'a' is named twice"},
        {"a,c,b\n1,2,3\n", {.y = "a, c", .classes = true}, "classes need one target column, not 2"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        data_text("t.csv", bad[i].text);
        options = bad[i].o;
        data_refuses(open_csv, bad[i].words);
    }
    char wide[600];
    snprintf(wide, sizeof(wide), "a,b,c\n1,%0300d,2\n", 1);
    data_text("t.csv", wide);
    options = (tt_csv_opts){0};
    data_refuses(open_csv, "is too long");
    tt_ctx *ctx = test_ctx(); // a long cell that is not used is fine
    options.x = "a";
    CHECK(open_csv(ctx) != NULL);
    CHECK(tt_csv(ctx) == NULL);
    CHECK_MESSAGE(ctx, "file must be given");
    CHECK(tt_close(ctx) == TT_EINVAL);
}

// Lines longer than the window that is read through, packed and plain, workers and none.
TEST(csv_long_lines)
{
    tt_ctx *ctx = test_ctx();
    static char text[200000];
    size_t n = 0;
    for (int i = -1; i < 10; i++)
        for (int k = 0; k < 2000; k++)
            n += (size_t)snprintf(text + n, sizeof(text) - n, i < 0 ? "c%d%c" : "%d%c",
                                  i < 0 ? k : i * 2000 + k, k == 1999 ? '\n' : ',');
    for (int packed = 0; packed < 2; packed++) {
        if (packed)
            data_gzip("t.csv", text, n);
        else
            data_write("t.csv", text, n);
        options = (tt_csv_opts){.workers = packed ? -1 : 3};
        tt_batch_data b = data_all(open_csv(ctx));
        for (int i = 0; i < 10; i++) {
            for (int k = 0; k < 1999; k++)
                CHECK(((const float *)b.fields[0])[i * 1999 + k] == (float)(i * 2000 + k));
            CHECK(((const float *)b.fields[1])[i] == (float)(i * 2000 + 1999));
        }
    }
    CHECK_OK(tt_close(ctx));
}

// The fast way gives what strtof gives: the nearest float, rounded once.
TEST(csv_numbers)
{
    char text[64];
    float got;
    static const char *const not [] = {"",      "-",      ".",      "e5",  "1e",  "1e+",
                                       "1 2",   "0x10",   "inf",    "nan", "1,5", "--1",
                                       "1.2.3", "3.5e39", "-1e400", "1f"};
    for (size_t i = 0; i < sizeof(not ) / sizeof(not [0]); i++)
        ck_assert_msg(!tti_csv_number(not [i], &got), "'%s' is a number", not [i]);
    static const char *const odd[] = {"0",         "-0",
                                      "007",       "1.",
                                      ".5",        "+3",
                                      "1E5",       "1e-46",
                                      "3.4e38",    "123456789012345678901234567890",
                                      "0.1e-310",  "9007199254740993",
                                      "1e23",      "16777217",
                                      "8388609.5", "1e0000000000000000000001"};
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        CHECK(tti_csv_number(odd[i], &got));
        ck_assert_msg(got == strtof(odd[i], NULL), "'%s' is %g", odd[i], (double)got);
    }
    CHECK(tti_csv_number("-0", &got) && signbit(got));
    uint64_t z = 1;
    for (int i = 0; i < 50000; i++) {
        z = z * 6364136223846793005u + 1442695040888963407u;
        int digits = (int)(z >> 60) + 1, power = (int)(z >> 40 & 63) - 32;
        snprintf(text, sizeof(text), "%s%.*fe%d", z & 4 ? "-" : "", digits,
                 (double)(z >> 20 & 0xffffffffff) / 1048576.0, power);
        bool ok = tti_csv_number(text, &got);
        float want = strtof(text, NULL);
        ck_assert_msg(ok == (bool)isfinite(want) && (!ok || got == want), "'%s' is %g", text,
                      (double)got);
    }
}

// Near the middle of two floats: a double in between would be the middle itself and go to even.
TEST(csv_numbers_are_rounded_once)
{
    static const char *const near[] = {"1.0000000596046448",                 // above 1 + 2^-24
                                       "1.00000005960464477539062500000001", // more than 19 digits
                                       "1.000000178813934326171874999",      // below 1 + 3 2^-24
                                       "16777217.00000000000001",
                                       "3.4028235677973366e38",
                                       "7.006492321624086e-46",
                                       "1.0579803405652370e-37"};
    char text[64];
    float got;
    int wrong = 0, met = 0;
    for (size_t i = 0; i < sizeof(near) / sizeof(near[0]); i++) {
        float want = strtof(near[i], NULL);
        bool ok = tti_csv_number(near[i], &got);
        ck_assert_msg(ok == (bool)isfinite(want) && (!ok || got == want), "'%s' is %.9g, not %.9g",
                      near[i], (double)got, (double)want);
    }
    uint64_t z = 1;
    for (int i = 0; i < 100000; i++) {
        z = z * 6364136223846793005u + 1442695040888963407u;
        uint32_t bits = (uint32_t)(z >> 33) & 0x7fffffff, next = bits + 1;
        float low, high;
        memcpy(&low, &bits, 4);
        memcpy(&high, &next, 4);
        if (!isfinite(low) || !isfinite(high))
            continue;
        double middle = ((double)low + (double)high) / 2;
        snprintf(text, sizeof(text), "%.*g", 15 + i % 4, middle);
        float want = strtof(text, NULL);
        met += (float)strtod(text, NULL) != want;
        wrong += !tti_csv_number(text, &got) || got != want;
    }
    CHECK(met > 1000); // of these double rounding is wrong
    CHECK_INT(wrong, 0);
}

TEST(csv_without_memory)
{
    data_text("t.csv", "a,b,c\n1,2,x\n3,4,y\n");
    options = (tt_csv_opts){.classes = true};
    data_no_memory(open_csv);
    options = (tt_csv_opts){.words = "x, y"};
    data_no_memory(open_csv);
}

TEST(csv_that_changes)
{
    tt_ctx *ctx = test_ctx();
    tt_batch_data b;
    data_text("t.csv", "a,b\n1,2\n3,4\n");
    options = (tt_csv_opts){.batch = 1};
    tt_data *d = open_csv(ctx);
    data_text("t.csv", "a,b\n1,2\n3 ,x\n");
    CHECK_OK(tt_data_start(d, 0, 0));
    CHECK_OK(tt_data_next(d, &b));
    CHECK(tt_data_next(d, &b) == TT_EIO);
    CHECK_MESSAGE(ctx, "t.csv: record 1, column 'b': ");
    CHECK(tt_close(ctx) == TT_EIO);
}
