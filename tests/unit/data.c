/*
 * data.c - data sets: order, batches, cursors, workers, a program's own source, failures.
 */
#include "test.h"
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

// ---- order and batches -----------------------------------------------------------------------

// A set whose record i is the number i, so that a batch shows its records.
static tt_data *numbers(tt_ctx *ctx, int64_t count, int batch, int workers)
{
    static int32_t x[10000];
    for (int i = 0; i < 10000; i++)
        x[i] = i;
    return tt_memory(ctx, .x = x, .x_dtype = TT_I32, .count = count, .batch = batch, .seed = 5,
                     .workers = workers, .prefetch = 3);
}

static const int32_t *next(tt_data *d, tt_batch_data *b)
{
    CHECK_OK(tt_data_next(d, b));
    return b->fields[0];
}

TEST(data_every_record_once_per_epoch)
{
    tt_ctx *ctx = test_ctx();
    for (int64_t count = 1; count <= 40; count++) {
        for (int batch = 1; batch <= 41; batch += 5) {
            tt_data *d = numbers(ctx, count, batch, count % 3 == 0 ? 2 : -1);
            CHECK_OK(tt_data_start(d, 0, 0));
            for (int epoch = 0; epoch < 3; epoch++) {
                int seen[40] = {0};
                for (int64_t at = 0; at < count;) {
                    tt_batch_data b;
                    const int32_t *x = next(d, &b);
                    CHECK_INT(b.epoch, epoch);
                    CHECK_INT(b.first, at);
                    CHECK_INT(b.rows, batch < count - at ? batch : count - at);
                    for (int64_t i = 0; i < b.rows; i++) {
                        seen[x[i]]++;
                        CHECK_INT(x[i], tt_data_order(d, epoch, at + i));
                    }
                    at += b.rows;
                }
                for (int64_t i = 0; i < count; i++)
                    CHECK_INT(seen[i], 1);
            }
            tt_data_free(d);
        }
    }
    CHECK_OK(tt_close(ctx));
}

TEST(data_order_is_new_each_epoch_and_seed)
{
    tt_ctx *ctx = test_ctx();
    int32_t x[1000] = {0};
    tt_data *a = tt_memory(ctx, .x = x, .x_dtype = TT_I32, .count = 1000, .seed = 1);
    tt_data *b = tt_memory(ctx, .x = x, .x_dtype = TT_I32, .count = 1000, .seed = 2);
    tt_data *c = tt_memory(ctx, .x = x, .x_dtype = TT_I32, .count = 1000, .no_shuffle = true);
    int same_epoch = 0, same_seed = 0, in_place = 0;
    for (int i = 0; i < 1000; i++) {
        same_epoch += tt_data_order(a, 0, i) == tt_data_order(a, 1, i);
        same_seed += tt_data_order(a, 0, i) == tt_data_order(b, 0, i);
        in_place += tt_data_order(a, 0, i) == i;
        CHECK_INT(tt_data_order(c, 3, i), i);
    }
    CHECK(same_epoch < 10 && same_seed < 10 && in_place < 10); // one is expected by chance
    CHECK_INT(tt_data_order(a, 0, 1000), -1);
    CHECK_INT(tt_data_order(a, 0, -1), -1);
    CHECK_INT(tt_data_order(NULL, 0, 0), -1);
    CHECK_OK(tt_close(ctx));
}

TEST(data_resumes_at_every_cursor)
{
    tt_ctx *ctx = test_ctx();
    tt_data *d = numbers(ctx, 23, 5, 1);
    for (int64_t cursor = 0; cursor < 3 * 23; cursor++) {
        CHECK_OK(tt_data_start(d, 0, cursor));
        for (int64_t at = cursor; at < cursor + 50;) {
            tt_batch_data b;
            const int32_t *x = next(d, &b);
            CHECK_INT(b.epoch * 23 + b.first, at);
            for (int64_t i = 0; i < b.rows; i++)
                CHECK_INT(x[i], tt_data_order(d, b.epoch, b.first + i));
            at += b.rows;
        }
    }
    CHECK_OK(tt_close(ctx));
}

TEST(data_workers_do_not_change_the_batches)
{
    static const int workers[] = {-1, 1, 3};
    tt_hash want[40];
    for (int w = 0; w < 3; w++) {
        tt_ctx *ctx = test_ctx();
        tt_data *d = tt_digits(ctx, .count = 300, .batch = 32, .seed = 9, .workers = workers[w]);
        CHECK_OK(tt_data_start(d, 0, 64));
        for (int k = 0; k < 40; k++) {
            tt_batch_data b;
            CHECK_OK(tt_data_next(d, &b));
            uint64_t h = 1469598103934665603u;
            for (int64_t i = 0; i < b.rows * 784 * 4; i++)
                h = (h ^ ((const uint8_t *)b.fields[0])[i]) * 1099511628211u;
            for (int64_t i = 0; i < b.rows; i++)
                h = (h ^ (uint64_t)((const int32_t *)b.fields[1])[i]) * 1099511628211u;
            if (w == 0)
                want[k].low = h;
            CHECK(want[k].low == h);
        }
        CHECK_OK(tt_close(ctx)); // with threads still reading
    }
}

TEST(data_allocates_nothing_after_start)
{
    tt_ctx *ctx = test_ctx();
    tt_data *d = tt_digits(ctx, .count = 100, .batch = 8, .workers = 2);
    tt_batch_data b;
    CHECK_OK(tt_data_start(d, 0, 0));
    int64_t calls = tt_alloc_stats_get(ctx).calls;
    for (int k = 0; k < 100; k++)
        CHECK_OK(tt_data_next(d, &b));
    CHECK_INT(tt_alloc_stats_get(ctx).calls, calls);
    CHECK_OK(tt_data_start(d, 0, 50)); // the same sizes: the same buffers
    CHECK_OK(tt_data_next(d, &b));
    CHECK_INT(tt_alloc_stats_get(ctx).calls, calls);
    CHECK_OK(tt_data_start(d, 16, 50));
    CHECK_OK(tt_data_next(d, &b));
    CHECK_INT(b.rows, 16);
    CHECK_OK(tt_close(ctx));
}

TEST(data_refuses_what_it_cannot_do)
{
    tt_ctx *ctx = test_ctx();
    tt_batch_data b;
    CHECK(tt_data_start(NULL, 0, 0) == TT_EINVAL);
    CHECK(tt_data_next(NULL, &b) == TT_EINVAL);
    tt_data_stop(NULL);
    tt_data_free(NULL);
    CHECK_INT(tt_data_count(NULL), 0);
    tt_data *d = numbers(ctx, 10, 3, 1);
    CHECK(tt_data_next(d, &b) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "tt_data_start");
    tt_clear_error(ctx);
    CHECK(tt_data_start(d, -1, 0) == TT_EINVAL);
    tt_clear_error(ctx);
    CHECK(tt_data_start(d, 1, -1) == TT_EINVAL);
    tt_clear_error(ctx);
    CHECK(tt_memory(ctx, .count = 3) == NULL);
    CHECK_MESSAGE(ctx, "x must be given");
    tt_clear_error(ctx);
    int32_t x = 0;
    CHECK(tt_memory(ctx, .x = &x) == NULL);
    CHECK_MESSAGE(ctx, "count must be given");
    tt_clear_error(ctx);
    CHECK(tt_memory(ctx, .x = &x, .count = 1, .batch = -1) == NULL);
    CHECK_MESSAGE(ctx, "batch -1 is below 1");
    tt_clear_error(ctx);
    CHECK(tt_digits(ctx, .noise = 7) == NULL);
    CHECK_MESSAGE(ctx, "digits: noise 7 is above 1");
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
}

// ---- a program's own source ------------------------------------------------------------------

typedef struct own {
    int64_t bad;  // this record cannot be read
    bool silent;  // without a word
    int lanes_by; // record i is in lane i / lanes_by % lanes; 0: no lanes
    _Atomic int closed;
} own;

static tt_status own_read(tt_ctx *ctx, void *self, int64_t i, void *const *out)
{
    own *o = self;
    if (i == o->bad)
        return o->silent ? TT_EIO : TT_FAIL(ctx, TT_EIO, "own.bin: record %d is bad", (int)i);
    ((float *)out[0])[0] = (float)i;
    ((float *)out[0])[1] = 1e-40f; // a subnormal
    *(int64_t *)out[1] = -i;
    return TT_OK;
}

static void own_close(tt_ctx *ctx, void *self)
{
    (void)ctx;
    ((own *)self)->closed++;
}

static int own_lane(void *self, int64_t i, int lanes)
{
    return (int)(i / ((own *)self)->lanes_by % lanes);
}

static tt_source own_source(own *o, int64_t count)
{
    return (tt_source){
        .count = count,
        .n_fields = 2,
        .fields = {{.name = "a", .shape = TT_SHAPE(2)}, {.name = "b", .dtype = TT_I64}},
        .self = o,
        .read = own_read,
        .close = own_close,
        .lane = o->lanes_by > 0 ? own_lane : NULL};
}

TEST(data_own_source)
{
    tt_ctx *ctx = test_ctx();
    own o = {.bad = -1};
    tt_source s = own_source(&o, 7);
    tt_data *d = tt_data_new(ctx, &s, .batch = 4);
    tt_field f[TT_MAX_FIELDS];
    CHECK_INT(tt_data_fields(d, f), 2);
    CHECK_STR(f[1].name, "b");
    CHECK_INT(tt_data_count(d), 7);
    CHECK_OK(tt_data_start(d, 0, 0));
    tt_batch_data b;
    CHECK_OK(tt_data_next(d, &b));
    for (int64_t i = 0; i < b.rows; i++) {
        int64_t r = tt_data_order(d, 0, i);
        CHECK(((const float *)b.fields[0])[2 * i] == (float)r);
        CHECK(((const float *)b.fields[0])[2 * i + 1] == 0.0f);
        CHECK(((const int64_t *)b.fields[1])[i] == -r);
    }
    tt_data_free(d);
    CHECK_INT(o.closed, 1);
    s.n_fields = 0;
    CHECK(tt_data_new(ctx, &s, .batch = 4) == NULL);
    CHECK_INT(o.closed, 2); // also where it fails
    CHECK(tt_close(ctx) == TT_EINVAL);
}

// The batches before a bad record are given; the error comes with its own batch, whoever read it.
TEST(data_errors_come_with_their_batch)
{
    for (int workers = -1; workers <= 3; workers += 2) {
        for (int silent = 0; silent < 2; silent++) {
            tt_ctx *ctx = test_ctx();
            own o = {.bad = 17, .silent = silent};
            tt_source s = own_source(&o, 30);
            tt_data *d = tt_data_new(ctx, &s, .batch = 4, .no_shuffle = true, .workers = workers,
                                     .prefetch = 8);
            tt_batch_data b;
            CHECK_OK(tt_data_start(d, 0, 0));
            for (int k = 0; k < 4; k++)
                CHECK_OK(tt_data_next(d, &b));
            CHECK(tt_data_next(d, &b) == TT_EIO);
            CHECK_MESSAGE(ctx,
                          silent ? "record 17 could not be read" : "own.bin: record 17 is bad");
            tt_clear_error(ctx);
            CHECK(tt_data_next(d, &b) == TT_EIO);
            tt_clear_error(ctx);
            CHECK_OK(tt_data_start(d, 0, 20));
            CHECK_OK(tt_data_next(d, &b));
            CHECK_OK(tt_close(ctx));
        }
    }
}

static const tt_option made_options[] = {
    {"count", TT_OPT_INT, "3", "records", 0, 1, 100, NULL},
    TT_OPTION_END,
};

static tt_status made_open(tt_ctx *ctx, const void *options, tt_source *out)
{
    static own o = {.bad = -1};
    (void)ctx;
    *out = own_source(&o, *(const int64_t *)options);
    return TT_OK;
}

TEST(data_kinds_by_name)
{
    static const tt_source_def made = {.name = "made",
                                       .options = made_options,
                                       .options_size = sizeof(int64_t),
                                       .open = made_open};
    tt_ctx *ctx = test_ctx();
    CHECK(tt_source_find(ctx, "made") == NULL);
    CHECK_OK(tt_source_register(ctx, &made));
    CHECK(tt_source_find(ctx, "made") == &made);
    CHECK(tt_source_find(ctx, "digits") != NULL);
    int n = 0;
    while (tt_source_at(ctx, n) != NULL)
        n++;
    CHECK(tt_source_at(ctx, n - 1) == &made);
    int64_t count = 11;
    tt_data *d = tt_data_open(ctx, &made, &count, NULL);
    CHECK_INT(tt_data_count(d), 11);
    CHECK(tt_source_register(ctx, &made) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "'made' is already registered");
    tt_clear_error(ctx);
    CHECK(tt_data_open(ctx, NULL, &count, NULL) == NULL);
    CHECK(tt_close(ctx) == TT_EINVAL);
}

// ---- lanes -----------------------------------------------------------------------------------

// Rows of lane l are records of lane l, in every batch, the short one too.
TEST(data_lanes_get_their_records)
{
    tt_ctx *ctx = test_ctx(); // 8 lanes
    own o = {.bad = -1, .lanes_by = 1};
    tt_source s = own_source(&o, 8 * 7);
    tt_data *d = tt_data_new(ctx, &s, .batch = 16);
    CHECK_OK(tt_data_start(d, 0, 0));
    for (int epoch = 0; epoch < 2; epoch++) {
        int seen[56] = {0};
        for (int64_t at = 0; at < 56;) {
            tt_batch_data b;
            CHECK_OK(tt_data_next(d, &b));
            for (int lane = 0; lane < 8; lane++)
                for (int64_t r = lane * b.rows / 8; r < (lane + 1) * b.rows / 8; r++) {
                    int record = (int)((const float *)b.fields[0])[2 * r];
                    CHECK_INT(record % 8, lane);
                    CHECK_INT(record, tt_data_order(d, epoch, at + r));
                    seen[record]++;
                }
            at += b.rows;
        }
        for (int i = 0; i < 56; i++)
            CHECK_INT(seen[i], 1);
    }
    CHECK(tt_data_start(d, 0, 3) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "multiple of the batch");
    tt_clear_error(ctx);
    CHECK(tt_data_start(d, 12, 0) == TT_EINVAL); // lanes of 1 and 2 rows in turn
    CHECK_MESSAGE(ctx, "lane 0 has 7 records and needs 5");
    CHECK_MESSAGE(ctx, "lane by lane, 5, 9, 5, 9, 5, 9, 5, 9");
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
}

static int lane_eight(void *self, int64_t i, int lanes)
{
    (void)self;
    return i == 3 ? lanes : 0;
}

TEST(data_lanes_that_are_none)
{
    tt_ctx *ctx = test_ctx();
    own o = {.bad = -1};
    tt_source s = own_source(&o, 16);
    s.lane = lane_eight;
    CHECK(tt_data_new(ctx, &s, .batch = 16) == NULL);
    CHECK_MESSAGE(ctx, "record 3 is in lane 8, but the lanes are 0 to 7");
    CHECK_INT(o.closed, 1);
    CHECK(tt_close(ctx) == TT_EINVAL);
}

// ---- out of memory ---------------------------------------------------------------------------

TEST(data_without_memory)
{
    int k = 1;
    for (; k < 1000; k++) {
        tt_ctx *ctx = test_ctx();
        own o = {.bad = -1, .lanes_by = 1};
        tt_source s = own_source(&o, 64);
        tt_batch_data b;
        tti_fail_alloc_at(ctx, k);
        tt_data *d = tt_data_new(ctx, &s, .batch = 16, .workers = 2);
        bool ok = d != NULL && tt_data_start(d, 0, 0) == TT_OK && tt_data_next(d, &b) == TT_OK;
        tti_fail_alloc_at(ctx, 0);
        CHECK(ok || tt_status_of(ctx) == TT_ENOMEM);
        tt_clear_error(ctx);
        if (d != NULL) { // what could not start can start later
            CHECK_OK(tt_data_start(d, 0, 0));
            CHECK_OK(tt_data_next(d, &b));
        }
        CHECK_OK(tt_close(ctx));
        CHECK_INT(o.closed, 1);
        if (ok)
            break;
    }
    CHECK(k > 5 && k < 1000);
}
