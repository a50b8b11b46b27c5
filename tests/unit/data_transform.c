/*
 * data_transform.c - transforms: values, shapes and types, random ones keyed by seed, epoch and
 * record, refusals.
 */
#include "test.h"
#include <stdlib.h>

static tt_field field_of(const tt_data *d, int i)
{
    tt_field f[TT_MAX_FIELDS];
    CHECK(tt_data_fields(d, f) > i);
    return f[i];
}

static tt_batch_data first_batch(tt_data *d, int64_t cursor)
{
    tt_batch_data b;
    CHECK_OK(tt_data_start(d, 0, cursor));
    CHECK_OK(tt_data_next(d, &b));
    return b;
}

TEST(transform_normalise)
{
    tt_ctx *ctx = test_ctx();
    static const uint8_t u[6] = {0, 10, 255, 1, 2, 3};
    static const float f[6] = {0, 1, 2, 3, 4, 5};
    tt_data *d = tt_memory(ctx, .x = u, .x_dtype = TT_U8, .x_shape = TT_SHAPE(3), .y = f,
                           .y_shape = TT_SHAPE(3), .count = 2, .no_shuffle = true);
    CHECK_OK(tt_transform(d, "normalise", .mean = 1, .scale = 2));
    CHECK_OK(tt_transform(d, "normalise", .field = "y", .means = "1, 2,3", .scales = "1,0.5, -2"));
    CHECK_OK(tt_transform(d, "normalise", .field = "y", .mean = 1));
    CHECK_INT(field_of(d, 0).dtype, TT_F32);
    tt_batch_data b = first_batch(d, 0);
    static const float want_x[] = {-0.5f, 4.5f, 127, 0, 0.5f, 1};
    static const float want_y[] = {-2, -3, -0.5f, 1, 3, -2};
    for (int i = 0; i < 6; i++) {
        CHECK(((const float *)b.fields[0])[i] == want_x[i]);
        CHECK(((const float *)b.fields[1])[i] == want_y[i]);
    }
    CHECK(tt_transform(d, "normalise", .mean = 1) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "before tt_data_start()");
    tt_clear_error(ctx);
    tt_data_stop(d);
    CHECK_OK(tt_transform(d, "normalise", .mean = 1));
    b = first_batch(d, 0);
    CHECK(((const float *)b.fields[0])[1] == 3.5f);
    CHECK_OK(tt_close(ctx));
}

TEST(transform_one_hot)
{
    tt_ctx *ctx = test_ctx();
    static const int32_t x[3] = {2, 0, 1};
    tt_data *d = tt_memory(ctx, .x = x, .x_dtype = TT_I32, .count = 3, .no_shuffle = true);
    CHECK_INT(field_of(d, 0).classes, 3);
    CHECK_OK(tt_transform(d, "one_hot", .smoothing = 0.3));
    tt_field f = field_of(d, 0);
    CHECK(f.shape.rank == 1 && f.shape.dim[0] == 3 && f.dtype == TT_F32 && f.classes == 0);
    tt_batch_data b = first_batch(d, 0);
    for (int i = 0; i < 9; i++)
        CHECK_NEAR(((const float *)b.fields[0])[i], i % 3 == x[i / 3] ? 0.8 : 0.1, 1e-7);
    tt_data *e = tt_memory(ctx, .x = x, .x_dtype = TT_I32, .count = 3, .no_shuffle = true);
    CHECK_OK(tt_transform(e, "one_hot", .depth = 2));
    CHECK_OK(tt_data_start(e, 1, 0));
    CHECK(tt_data_next(e, &b) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "record 0: the value 2 of field 'x' must be below depth, 2");
    CHECK(tt_close(ctx) == TT_EINVAL);
}

// A window of an image whose pixels are all different says by itself where it was taken.
TEST(transform_crop_shift_and_flip_take_windows)
{
    tt_ctx *ctx = test_ctx();
    static uint8_t x[64 * 20 * 2];
    for (int i = 0; i < 64 * 40; i++) // 64 images [4, 5, 2] of the same 40 numbers, none zero
        x[i] = (uint8_t)(i % 40 + 1);
    int places[9][9] = {{0}}, flips = 0;
    tt_data *d = tt_memory(ctx, .x = x, .x_dtype = TT_U8, .x_shape = TT_SHAPE(4, 5, 2), .count = 64,
                           .batch = 64);
    CHECK_OK(tt_transform(d, "random_crop", .size = {3, 2}, .pad = 1));
    tt_field f = field_of(d, 0);
    CHECK(f.shape.dim[0] == 3 && f.shape.dim[1] == 2 && f.shape.dim[2] == 2 && f.dtype == TT_U8);
    tt_batch_data b = first_batch(d, 0);
    for (int i = 0; i < 64; i++) {
        const uint8_t *y = (const uint8_t *)b.fields[0] + 12 * i;
        int middle =
            y[2 * 2] != 0 ? y[2 * 2] - 1 : y[3 * 2] - 1; // of the row that is always inside
        int left = middle / 2 % 5 - (y[2 * 2] == 0), top = middle / 10 - 1;
        places[top + 1][left + 1]++;
        for (int r = 0; r < 3; r++)
            for (int c = 0; c < 4; c++) {
                int row = top + r, col = left + c / 2;
                bool inside = row >= 0 && row < 4 && col >= 0 && col < 5;
                CHECK_INT(y[r * 4 + c], inside ? row * 10 + col * 2 + c % 2 + 1 : 0);
            }
    }
    int used = 0;
    for (int i = 0; i < 81; i++)
        used += places[i / 9][i % 9] > 0;
    CHECK(used > 15); // of 4 by 6

    tt_data *e = tt_memory(ctx, .x = x, .x_dtype = TT_U8, .x_shape = TT_SHAPE(4, 10), .count = 64,
                           .batch = 64);
    CHECK_OK(tt_transform(e, "random_flip"));
    b = first_batch(e, 0);
    for (int i = 0; i < 64; i++) {
        const uint8_t *y = (const uint8_t *)b.fields[0] + 40 * i;
        bool flipped = y[0] != 1;
        flips += flipped;
        for (int k = 0; k < 40; k++)
            CHECK_INT(y[k], flipped ? k / 10 * 10 + 10 - k % 10 : k + 1);
    }
    CHECK(flips > 16 && flips < 48);

    tt_data *s = tt_memory(ctx, .x = x, .x_dtype = TT_U8, .x_shape = TT_SHAPE(4, 10), .count = 64,
                           .batch = 64);
    CHECK_OK(tt_transform(s, "random_shift", .shift = 12)); // also wholly outside
    b = first_batch(s, 0);
    int empty = 0;
    for (int i = 0; i < 64; i++) {
        const uint8_t *y = (const uint8_t *)b.fields[0] + 40 * i;
        int at = 0;
        while (at < 40 && y[at] == 0)
            at++;
        empty += at == 40;
        for (int k = at; k < 40; k++)
            if (y[k] != 0)
                CHECK_INT(y[k] - y[at], k - at);
    }
    CHECK(empty > 0 && empty < 64);
    CHECK_OK(tt_close(ctx));
}

// The same record of the same epoch is cut the same way wherever it stands; another epoch differs.
TEST(transform_random_by_seed_epoch_record)
{
    tt_ctx *ctx = test_ctx();
    float images[2][50][784];
    tt_batch_data b;
    for (int way = 0; way < 2; way++) {
        tt_data *d = tt_digits(ctx, .count = 50, .seed = 3, .no_shuffle = way == 1, .workers = 2);
        CHECK_OK(tt_transform(d, "random_shift", .shift = 3));
        CHECK_OK(tt_transform(d, "random_flip"));
        CHECK_OK(tt_data_start(d, way == 0 ? 7 : 50, 50));
        for (int64_t at = 0; at < 50; at += b.rows) {
            CHECK_OK(tt_data_next(d, &b));
            for (int64_t i = 0; i < b.rows; i++)
                memcpy(images[way][tt_data_order(d, 1, at + i)],
                       (const float *)b.fields[0] + 784 * i, sizeof(images[0][0]));
        }
        if (way == 1) {
            CHECK(memcmp(images[0], images[1], sizeof(images[0])) == 0);
            CHECK_OK(tt_data_next(d, &b)); // epoch 2
            CHECK(memcmp(images[0][0], b.fields[0], sizeof(images[0][0])) != 0 ||
                  memcmp(images[0][1], (const float *)b.fields[0] + 784, 3136) != 0);
        }
    }
    CHECK_OK(tt_close(ctx));
}

// An image and its mask go through the same transforms with the same numbers.
TEST(transform_fields_stay_together)
{
    tt_ctx *ctx = test_ctx();
    static float x[20][36];
    static uint8_t y[20][36];
    for (int i = 0; i < 20 * 36; i++) {
        x[i / 36][i % 36] = (float)(i % 36);
        y[i / 36][i % 36] = (uint8_t)(i % 36);
    }
    tt_data *d = tt_memory(ctx, .x = x, .x_shape = TT_SHAPE(6, 6), .y = y, .y_dtype = TT_U8,
                           .y_shape = TT_SHAPE(6, 6), .count = 20, .batch = 20);
    for (int f = 0; f < 2; f++) {
        CHECK_OK(tt_transform(d, "random_crop", .field = f == 0 ? "x" : "y", .size = {4, 4}));
        CHECK_OK(tt_transform(d, "random_flip", .field = f == 0 ? "x" : "y"));
    }
    tt_batch_data b = first_batch(d, 0);
    for (int i = 0; i < 20 * 16; i++)
        CHECK(((const float *)b.fields[0])[i] == ((const uint8_t *)b.fields[1])[i]);
    CHECK_OK(tt_close(ctx));
}

TEST(transform_refusals)
{
    tt_ctx *ctx = test_ctx();
    tt_data *d = tt_digits(ctx, .count = 5);
    static const struct {
        const char *kind;
        tt_transform_opts o;
        const char *words;
    } bad[] = {
        {"normalize", {0}, "did you mean 'normalise'?"},
        {"normalise", {.field = "z"}, "normalise: digits has no field 'z'"},
        {"normalise", {.field = "y"}, "field 'y' is i32"},
        {"normalise", {.means = "1, 2"}, "2 means for 1 channels"},
        {"normalise", {.means = "one"}, "'one' is not a number"},
        {"normalise", {.scales = "0"}, "scale is 0"},
        {"one_hot", {0}, "field 'x' is f32"},
        {"random_crop", {.size = {29, 28}}, "size [29, 28] is larger than the image [28, 28]"},
        {"random_crop", {.size = {3, 3}, .field = "y"}, "field 'y' has shape []"},
        {"random_shift", {0}, "shift must be given"},
        {"random_shift", {.shift = -1}, "shift -1 is below 1"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        tt_transform_opts o = bad[i].o;
        o.opts_size = sizeof(o);
        CHECK(tt_transform_with(d, bad[i].kind, &o) != TT_OK);
        CHECK_MESSAGE(ctx, bad[i].words);
        tt_clear_error(ctx);
    }
    CHECK(tt_transform_with(NULL, "one_hot", NULL) == TT_EINVAL);
    for (int i = 0; i < 16; i++)
        CHECK_OK(tt_transform(d, "random_flip"));
    CHECK(tt_transform(d, "random_flip") == TT_EINVAL);
    CHECK(tt_close(ctx) == TT_EINVAL);
}

TEST(transform_without_memory)
{
    int k = 1;
    for (; k < 100; k++) {
        tt_ctx *ctx = test_ctx();
        tt_data *d = tt_digits(ctx, .count = 5);
        tti_fail_alloc_at(ctx, k);
        bool ok = tt_transform(d, "normalise", .means = "3") == TT_OK &&
                  tt_transform(d, "random_crop", .pad = 2) == TT_OK &&
                  tt_data_start(d, 0, 0) == TT_OK;
        tti_fail_alloc_at(ctx, 0);
        CHECK(ok || tt_status_of(ctx) == TT_ENOMEM);
        tt_clear_error(ctx);
        CHECK_OK(tt_close(ctx));
        if (ok)
            break;
    }
    CHECK(k > 3 && k < 100);
}
