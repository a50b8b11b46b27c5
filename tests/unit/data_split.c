/*
 * data_split.c - splits: the parts are disjoint and complete for every source, the choice depends
 * on records and seed alone, classes keep their proportions, groups stay together.
 */
#include "../command.h"
#include "data_test.h"
#include "jobs.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MOST 2000

// Adds how often each record of the source is in d.
static void count_records(tt_data *d, int seen[MOST])
{
    for (int64_t i = 0; i < tt_data_count(d); i++) {
        int64_t r = tt_data_order(d, 1, i);
        CHECK(r >= 0 && r < MOST);
        seen[r]++;
    }
}

static void check_whole(tt_data *const *parts, int n, int count)
{
    int seen[MOST] = {0};
    for (int i = 0; i < n; i++)
        count_records(parts[i], seen);
    for (int i = 0; i < MOST; i++)
        ck_assert_msg(seen[i] == (i < count), "record %d is in %d parts", i, seen[i]);
}

static bool has(tt_data *d, int64_t record)
{
    for (int64_t i = 0; i < tt_data_count(d); i++)
        if (tt_data_order(d, 0, i) == record)
            return true;
    return false;
}

// ---- every source ----------------------------------------------------------------------------

static void write_table(const char *name, int n)
{
    static char text[1 << 16];
    int at = snprintf(text, sizeof(text), "who,a,b,kind\n");
    for (int i = 0; i < n; i++) // groups of 7, classes of unequal size
        at += snprintf(text + at, sizeof(text) - (size_t)at, "p%d,%d,%d,%s\n", i * 5 % 23, i, i * i,
                       i % 10 == 0  ? "rare"
                       : i % 3 == 0 ? "some"
                                    : "many");
    data_text(name, text);
}

static tt_status read_number(tt_ctx *ctx, void *self, int64_t i, void *const *out)
{
    (void)ctx, (void)self;
    *(float *)out[0] = (float)i;
    return TT_OK;
}

static int lane_of(void *self, int64_t i, int lanes)
{
    (void)self;
    return (int)(i % lanes);
}

static tt_data *numbers(tt_ctx *ctx, int64_t count, bool lanes)
{
    tt_source s = {.count = count, .n_fields = 1, .read = read_number};
    s.fields[0] = (tt_field){.name = "x"};
    s.lane = lanes ? lane_of : NULL;
    return tt_data_new(ctx, &s, .batch = 8);
}

static tt_data *open_kind(tt_ctx *ctx, int kind, int *count)
{
    static float x[300];
    static unsigned char bytes[1204];
    *count = 300;
    switch (kind) {
    case 0:
        return tt_digits(ctx, .count = 300);
    case 1:
        write_table("t.csv", 300);
        return tt_csv(ctx, .file = data_path("t.csv"), .skip = "who", .classes = true);
    case 2:
        data_write("t.txt", bytes, 1204);
        return tt_text(ctx, .file = data_path("t.txt"), .level = "byte", .context = 4);
    case 3:
        data_write("t.bin", bytes, 1204);
        return tt_tokens(ctx, .file = data_path("t.bin"), .context = 2, .vocab = 300);
    case 4:
        return tt_memory(ctx, .x = x, .count = 300);
    default:
        return numbers(ctx, 300, false);
    }
}

TEST(parts_are_disjoint_and_complete_for_every_source)
{
    for (int kind = 0; kind < 6; kind++) {
        tt_ctx *ctx = test_ctx();
        int count = 0;
        tt_data *train = open_kind(ctx, kind, &count);
        tt_data *test = tt_data_split(train, .fraction = 0.2);
        tt_data *validate = tt_data_split(train, .rows = 25);
        CHECK(test != NULL && validate != NULL);
        CHECK_INT(tt_data_count(test), 60);
        CHECK_INT(tt_data_count(validate), 25);
        CHECK_INT(tt_data_count(train), 215);
        check_whole((tt_data *[]){train, test, validate}, 3, count);
        CHECK_OK(tt_close(ctx));
    }
}

TEST(records_of_parts_are_those_of_the_source)
{
    tt_ctx *ctx = test_ctx();
    tt_data *train = numbers(ctx, 40, false), *test = tt_data_split(train, .fraction = 0.25);
    for (int k = 0; k < 2; k++) {
        tt_data *d = k == 0 ? train : test;
        tt_batch_data b = data_all(d);
        for (int64_t i = 0; i < b.rows; i++)
            CHECK(((const float *)b.fields[0])[i] == (float)tt_data_order(d, 0, i));
    }
    CHECK_OK(tt_close(ctx));
}

TEST(a_source_with_lanes_splits_its_lists)
{
    tt_ctx *ctx = tt_open(.devices = "cpu:0", .lanes = 2, .on_event = test_ignore_event);
    tt_data *train = numbers(ctx, 40, true);
    tt_data *test = tt_data_split(train, .rows = 8, .take = TT_SPLIT_LAST);
    check_whole((tt_data *[]){train, test}, 2, 40);
    for (int i = 32; i < 40; i++)
        CHECK(has(test, i));
    (void)data_all(test);
    CHECK_OK(tt_close(ctx));
}

// Sources are closed with the last of their data sets, in whatever order they go.
TEST(either_part_may_be_freed_first)
{
    tt_ctx *ctx = test_ctx();
    for (int k = 0; k < 2; k++) {
        write_table("t.csv", 50);
        tt_data *a = tt_csv(ctx, .file = data_path("t.csv"), .skip = "who", .classes = true);
        tt_data *b = tt_data_split(a, .fraction = 0.5), *c = tt_data_split(b, .rows = 5);
        tt_data_free(k == 0 ? a : b);
        (void)data_all(k == 0 ? b : a);
        (void)data_all(c);
        tt_data_free(k == 0 ? b : a);
        (void)data_all(c);
    }
    CHECK_OK(tt_close(ctx));
}

// ---- which records ---------------------------------------------------------------------------

static void list(tt_data *d, int64_t out[MOST])
{
    for (int64_t i = 0; i < tt_data_count(d); i++)
        out[i] = tt_data_order(d, 0, i);
}

TEST(the_choice_depends_on_seed_and_options_alone)
{
    int64_t a[MOST] = {0}, b[MOST] = {0};
    tt_ctx *ctx = test_ctx();
    list(tt_data_split(numbers(ctx, 1000, false), .fraction = 0.1), a);
    tt_source s = {.count = 1000, .n_fields = 1, .read = read_number};
    s.fields[0] = (tt_field){.name = "x"};
    tt_data *d = tt_data_new(ctx, &s, .workers = 3, .batch = 64, .no_shuffle = true);
    list(tt_data_split(d, .rows = 100), b);
    CHECK(memcmp(a, b, sizeof(a)) == 0);
    list(tt_data_split(numbers(ctx, 1000, false), .rows = 100, .seed = 7), b);
    CHECK(memcmp(a, b, sizeof(a)) != 0);
    int above = 0; // it is spread over the file
    for (int i = 0; i < 100; i++)
        above += a[i] >= 500;
    CHECK(above > 30 && above < 70);
    CHECK_OK(tt_close(ctx));
    ctx = tt_open(.devices = "cpu:0*2", .strategy = "mirrored", .on_event = test_ignore_event);
    list(tt_data_split(numbers(ctx, 1000, false), .rows = 100), b);
    CHECK(memcmp(a, b, sizeof(a)) == 0);
    CHECK_OK(tt_close(ctx));
    ctx = tt_open(.devices = "cpu:0", .seed = 9, .on_event = test_ignore_event);
    list(tt_data_split(numbers(ctx, 1000, false), .rows = 100), b);
    CHECK(memcmp(a, b, sizeof(a)) != 0);
    CHECK_OK(tt_close(ctx));
}

TEST(first_and_last_follow_the_file)
{
    tt_ctx *ctx = test_ctx();
    tt_data *d = numbers(ctx, 50, false);
    tt_data *last = tt_data_split(d, .fraction = 0.1, .take = TT_SPLIT_LAST);
    tt_data *first = tt_data_split(d, .rows = 3, .take = TT_SPLIT_FIRST);
    for (int64_t i = 0; i < 5; i++)
        CHECK_INT(tt_data_order(last, 0, i), 45 + i);
    for (int64_t i = 0; i < 3; i++)
        CHECK_INT(tt_data_order(first, 0, i), i);
    CHECK_INT(tt_data_count(d), 42);
    CHECK_OK(tt_close(ctx));
}

// ---- classes and groups ----------------------------------------------------------------------

static void count_classes(tt_data *d, int n[4])
{
    tt_batch_data b = data_all(d);
    memset(n, 0, 4 * sizeof(*n));
    for (int64_t i = 0; i < b.rows; i++)
        n[((const int32_t *)b.fields[1])[i]]++;
}

TEST(stratified_parts_keep_proportions)
{
    tt_ctx *ctx = test_ctx();
    static float x[164];
    static int32_t y[164];
    int n[4];
    for (int i = 0; i < 164; i++)
        y[i] = i < 100 ? 0 : i < 150 ? 1 : i < 163 ? 2 : 3;
    tt_data *d = tt_memory(ctx, .x = x, .y = y, .y_dtype = TT_I32, .count = 164);
    tt_data *test = tt_data_split(d, .fraction = 0.1, .stratify = "y");
    count_classes(test, n);
    CHECK(n[0] == 10 && n[1] == 5 && n[2] == 1 && n[3] == 0); // of 16.4; one alone stays
    tt_data *half = tt_data_split(d, .rows = 74, .stratify = "y");
    count_classes(half, n);
    CHECK(n[0] == 45 && n[1] == 23 && n[2] == 6 && n[3] == 0);
    check_whole((tt_data *[]){d, test, half}, 3, 164);
    count_classes(d, n);
    CHECK(n[0] == 45 && n[1] == 22 && n[2] == 6 && n[3] == 1);
    CHECK_OK(tt_close(ctx));
}

TEST(a_csv_is_stratified_by_any_column)
{
    tt_ctx *ctx = test_ctx();
    write_table("t.csv", 300);
    tt_data *d = tt_csv(ctx, .file = data_path("t.csv"), .x = "a", .y = "b");
    tt_data *test = tt_data_split(d, .fraction = 0.1, .stratify = "kind");
    int n[3] = {0};
    for (int64_t k = 0; k < tt_data_count(test); k++) {
        int64_t i = tt_data_order(test, 0, k);
        n[i % 10 == 0 ? 0 : i % 3 == 0 ? 1 : 2]++;
    }
    CHECK(n[0] == 3 && n[1] == 9 && n[2] == 18);
    CHECK_OK(tt_close(ctx));
}

TEST(groups_stay_together)
{
    for (int64_t seed = 1; seed < 30; seed++) {
        tt_ctx *ctx = test_ctx();
        write_table("t.csv", 300);
        tt_data *d = tt_csv(ctx, .file = data_path("t.csv"), .skip = "who", .classes = true);
        tt_data *test = tt_data_split(d, .fraction = 0.2, .group = "who", .seed = seed);
        tt_data *val = tt_data_split(d, .fraction = 0.1, .group = "who", .seed = seed);
        int part[23];
        memset(part, -1, sizeof(part));
        check_whole((tt_data *[]){d, test, val}, 3, 300);
        for (int p = 0; p < 3; p++) {
            tt_data *one = p == 0 ? d : p == 1 ? test : val;
            for (int64_t k = 0; k < tt_data_count(one); k++) {
                int who = (int)(tt_data_order(one, 0, k) * 5 % 23);
                CHECK(part[who] == -1 || part[who] == p);
                part[who] = p;
            }
        }
        // Groups have 13 or 14 records, so the nearest number is less than half of that away.
        CHECK(llabs(tt_data_count(test) - 60) <= 7 && llabs(tt_data_count(val) - 30) <= 7);
        CHECK_OK(tt_close(ctx));
    }
}

TEST(a_group_larger_than_asked_for_is_taken_if_there_is_none_smaller)
{
    tt_ctx *ctx = test_ctx();
    static float x[30];
    static int32_t y[30];
    for (int i = 0; i < 30; i++)
        y[i] = i < 10 ? 1 : 2;
    tt_data *d = tt_memory(ctx, .x = x, .y = y, .y_dtype = TT_I32, .count = 30);
    tt_data *test = tt_data_split(d, .rows = 2, .group = "y");
    CHECK_INT(tt_data_count(test), 10);
    CHECK_INT(tt_data_count(d), 20);
    CHECK_OK(tt_close(ctx));
}

// ---- refusals --------------------------------------------------------------------------------

TEST(bad_splits_say_why_and_leave_the_data_as_it_was)
{
    static const struct {
        tt_data_split_opts o;
        const char *message;
    } cases[] = {
        {{0}, "give fraction, such as 0.1, or a number of rows"},
        {{.fraction = 0.1, .rows = 3}, "either fraction or rows, not both"},
        {{.fraction = 500},
         "fraction is 500; it must be above 0 and below 1 (for a number of "
         "records: rows)"},
        {{.fraction = -0.5}, "fraction is -0.5"},
        {{.rows = -1}, "rows is -1"},
        {{.rows = 60}, "60 of 60 records are to be taken, and none would be left"},
        {{.rows = 600}, "600 of 60 records"},
        {{.rows = 6, .stratify = "kind", .group = "who"}, "either stratify or group, not both"},
        {{.rows = 6, .group = "whom"}, "has no column 'whom'; did you mean 'who'?"},
        {{.rows = 6, .stratify = "a"}, "'a' has 60 different values in 60 records; stratify needs"},
        {{.rows = 6, .group = "one"}, "'one' has the same value in all 60 records"},
        {{.rows = 6, .take = (tt_split_take)7}, "there is no way 7"},
    };
    static char text[1 << 12] = "who,one,a,kind\n";
    for (int i = 0; i < 60; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%d,1,%d,%d\n", i / 9, i, i % 2);
    data_text("r.csv", text);
    tt_ctx *ctx = test_ctx();
    tt_data *d = tt_csv(ctx, .file = data_path("r.csv"), .classes = true);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tt_data_split_opts o = cases[i].o;
        o.opts_size = sizeof(o);
        CHECK(tt_data_split_with(d, &o) == NULL);
        CHECK(tt_status_of(ctx) == TT_EINVAL);
        CHECK_MESSAGE(ctx, cases[i].message);
        tt_clear_error(ctx);
        CHECK_INT(tt_data_count(d), 60);
    }
    tt_data *n = numbers(ctx, 10, false);
    CHECK(tt_data_split(n, .rows = 2, .group = "z") == NULL);
    CHECK_MESSAGE(ctx, "data has no field 'z'; its fields are 'x'");
    tt_clear_error(ctx);
    CHECK_OK(tt_transform(d, "normalise", .mean = 1));
    CHECK(tt_data_split(d, .rows = 2) == NULL);
    CHECK_MESSAGE(ctx, "must be split before transforms are added");
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
}

static tt_data *open_split(tt_ctx *ctx)
{
    tt_data *d = tt_csv(ctx, .file = data_path("t.csv"), .skip = "who", .classes = true);
    tt_data *test = d != NULL ? tt_data_split(d, .rows = 9, .group = "who") : NULL;
    return test != NULL ? tt_data_split(d, .rows = 9, .stratify = "kind") : NULL;
}

TEST(splits_without_memory)
{
    write_table("t.csv", 60);
    data_no_memory(open_split);
}

// ---- jobs ------------------------------------------------------------------------------------

static const char split_job[] = "name: s\n"
                                "seed: 5\n"
                                "data:\n"
                                "  train: {csv: {file: t.csv, skip: who, classes: true}}\n"
                                "  validate: {split: {fraction: 0.1, stratify: kind}}\n"
                                "  test: {split: {rows: 40, group: who}}\n"
                                "  transform: [normalise: fit]\n"
                                "model: [dense: {units: 8, act: relu}, dense: 3]\n"
                                "train: {epochs: 4, batch: 16, loss: cross_entropy, metrics: "
                                "[accuracy], optimizer: {adam: {lr: 0.01}}}\n";

TEST(jobs_take_validation_and_test_data_from_the_training_data)
{
    write_table("t.csv", 300);
    CHECK(chdir(test_folder()) == 0);
    job_built b = job_build_ok(split_job);
    check_whole((tt_data *[]){b.parts.train, b.parts.validate, b.parts.test}, 3, 300);
    CHECK_INT(tt_data_count(b.parts.validate), 30);
    CHECK(llabs(tt_data_count(b.parts.test) - 40) <= 7);
    CHECK(b.parts.fit->validate == b.parts.validate);
    job_close(&b);
}

// The test part is that of the job without validation.
TEST(the_test_part_does_not_depend_on_the_validation_part)
{
    static const char base[] = "data: {train: {digits: {count: 100}}, test: {split: 0.2}%s}\n"
                               "model: [flatten, dense: 10]\n"
                               "train: {epochs: 1, loss: cross_entropy}\n";
    int64_t a[MOST] = {0}, b[MOST] = {0};
    char job[512];
    for (int k = 0; k < 2; k++) {
        snprintf(job, sizeof(job), base, k == 0 ? "" : ", validate: {split: 0.3}");
        job_built j = job_build_ok(job);
        list(j.parts.test, k == 0 ? a : b);
        CHECK_INT(tt_data_count(j.parts.train), k == 0 ? 80 : 50);
        job_close(&j);
    }
    CHECK(memcmp(a, b, sizeof(a)) == 0);
}

TEST(jobs_refuse_splits_at_their_place)
{
    job_build_fails(
        "data: {validate: {split: 0.1}, test: {digits: {count: 9}}}\n"
        "model: [flatten, dense: 10]\n",
        "j.yaml:1:26: data.validate.split: takes a part of the training data, but there "
        "is no data.train");
    job_build_fails("data: {train: {digits: {count: 9}}, validate: {split: 500}}\n"
                    "model: [flatten, dense: 10]\n",
                    "j.yaml:1:55: data.validate.split: split: fraction is 500; it must be above 0 "
                    "and below 1 (for a number of records: rows)");
}

// The last line's hash of a command with --json.
static void hash_of(const char *line, char hash[64])
{
    command_ok(line);
    command_hash(command_out, hash);
}

TEST(runs_resume_with_the_same_split_on_any_devices)
{
    char whole[64], part[64], spread[64], line[512];
    write_table("t.csv", 300);
    command_write("s.yaml", split_job);
    hash_of("train s.yaml --json --run whole", whole);
    hash_of("train s.yaml --json --run spread --set data.workers=3 --strategy mirrored "
            "--devices cpu:0*2",
            spread);
    CHECK_STR(spread, whole);
    hash_of("run -n 2 s.yaml --json --run two --strategy mirrored --devices cpu:0", spread);
    CHECK_STR(spread, whole);
    command_ok("train s.yaml --json --run part --set train.epochs=2");
    snprintf(line, sizeof(line), "train part --resume --json --set train.epochs=4");
    hash_of(line, part);
    CHECK_STR(part, whole);
    CHECK(command_run("train part --resume --json --set train.epochs=5 "
                      "--set data.validate.split.fraction=0.2") != 0);
    CHECK_HAS(command_err, "records");
}

TEST(a_run_is_evaluated_on_its_own_part)
{
    write_table("t.csv", 300);
    command_write("s.yaml", split_job);
    command_ok("train s.yaml --run r");
    char *test = strstr(command_out, "test        loss");
    CHECK(test != NULL);
    char first[64];
    snprintf(first, sizeof(first), "%.30s", test);
    command_ok("eval r");
    CHECK_HAS(command_out, first);
    command_ok("predict r --count 3");
}
