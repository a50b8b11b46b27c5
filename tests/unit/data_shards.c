/*
 * data_shards.c - JSON lines, TFRecord and WebDataset, class balance. tests/golden/shards has files
 * that TensorFlow and Python's tarfile wrote.
 */
#include "base/file.h"
#include "data/images.h"
#include "data/shards.h"
#include "data_test.h"
#include <stdio.h>

#define FOLDER "tests/golden/shards"

static void expect(const float *got, const float *want, int n)
{
    for (int i = 0; i < n; i++)
        ck_assert_msg(got[i] == want[i], "value %d is %.9g, not %.9g", i, (double)got[i],
                      (double)want[i]);
}

TEST(jsonl_values_and_classes)
{
    tt_ctx *ctx = test_ctx();
    data_text("a.jsonl",
              "{\"v\": [1, 2.5], \"m\": {\"w\": true}, \"k\": \"cat\"}\n\n"
              "{\"k\": \"dog\", \"m\": {\"w\": false}, \"v\": [-3e-1, 4], \"z\": null}\n");
    data_text("b.jsonl", "{\"v\": [0, 0], \"m\": {\"w\": 7}, \"k\": \"cat\"}");
    tt_data *d = tt_jsonl(ctx, .file = data_path("?.jsonl"), .x = "m.w, v", .y = "k",
                          .classes = true, .no_shuffle = true);
    tt_batch_data b = data_all(d);
    expect(b.fields[0], (float[]){1, 1, 2.5f, 0, -0.3f, 4, 7, 0, 0}, 9);
    const int32_t *y = b.fields[1];
    CHECK(b.rows == 3 && y[0] == 0 && y[1] == 1 && y[2] == 0);
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"{\"x\": 1, \"y\": 2}\n{\"x\": 1}\n", "t.jsonl: record 1 has no key 'y'"},
        {"{\"x\": 1, \"y\": 2}\n{\"x\": \"a\", \"y\": 2}\n", "record 1: 'x' is \"a\"; it must be"},
        {"{\"x\": [1], \"y\": 2}\n{\"x\": [1, 2], \"y\": 2}\n", "must be a list of 1 numbers"},
        {"{\"x\": 1, \"y\": 2}\n{\"x\": 1, \n", "t.jsonl: record 1: "},
        {"[1]\n", "is not an object"},
        {"{\"x\": 1e999, \"y\": 2}\n", "t.jsonl: record 0"},
        {"\n", "has no records"},
    };
    for (int i = 0; i < TTI_COUNT(bad); i++) {
        data_text("t.jsonl", bad[i].text);
        CHECK(tt_jsonl(ctx, .file = data_path("t.jsonl"), .y = "y") == NULL);
        CHECK_MESSAGE(ctx, bad[i].message);
        tt_clear_error(ctx);
    }
    CHECK_OK(tt_close(ctx));
}

TEST(tfrecord_has_the_values_of_tensorflow)
{
    tt_ctx *ctx = test_ctx();
    tt_field f[TT_MAX_FIELDS];
    const char *file = FOLDER "/plain.tfrecord";
    tt_data *d = tt_tfrecord(ctx, .file = file, .x = "v", .y = "label", .shape = TT_SHAPE(2, 2),
                             .no_shuffle = true);
    tt_batch_data b = data_all(d);
    CHECK_INT(b.rows, 5);
    for (int i = 0; i < 5; i++) {
        expect((const float *)b.fields[0] + 4 * i,
               (float[]){(float)i, 0.5f * (float)i, -1.25f, (float)(1e-3 * i)}, 4);
        CHECK_INT(((const int32_t *)b.fields[1])[i], i % 3);
    }
    CHECK(tt_data_fields(d, f) == 2 && f[1].classes == 3 && f[0].shape.rank == 2);
    d = tt_tfrecord(ctx, .file = file, .x = "ids", .y = "target", .no_shuffle = true);
    b = data_all(d);
    const int32_t *ids = b.fields[0];
    CHECK(ids[6] == 2 && ids[7] == -2 && ids[8] == 3);
    CHECK(((const float *)b.fields[1])[4] == 10);
    CHECK(tt_tfrecord(ctx, .file = file, .x = "w") == NULL);
    CHECK_MESSAGE(ctx, "has no feature 'w'; it has '");
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
}

static tt_data *open_plain(tt_ctx *ctx)
{
    return tt_tfrecord(ctx, .file = data_path("t.tfrecord"), .x = "v", .y = "label",
                       .no_shuffle = true);
}

TEST(tfrecord_damaged)
{
    tt_ctx *ctx = test_ctx();
    char *bytes;
    size_t n;
    CHECK_OK(tti_file_read(ctx, FOLDER "/plain.tfrecord", 0, &bytes, &n));
    size_t each = n / 5;                   // a little more or less
    for (size_t at = 0; at < n; at += 7) { // any changed byte is noticed, at the latest when read
        bytes[at] ^= 4;
        data_write("t.tfrecord", bytes, n);
        bytes[at] ^= 4;
        CHECK(open_plain(ctx) == NULL);
        CHECK_MESSAGE(ctx, "t.tfrecord: record ");
        tt_clear_error(ctx);
    }
    data_write("t.tfrecord", bytes, each + 3);
    CHECK(open_plain(ctx) == NULL);
    CHECK_MESSAGE(ctx, "cut short");
    tt_clear_error(ctx);
    tti_free(ctx, bytes);
    CHECK_OK(tt_close(ctx));
}

static void need_decoders(void)
{
    if (tti_decoder_version("jpeg") == NULL || tti_decoder_version("png") == NULL)
        test_skip("this build lacks libjpeg or libpng");
}

// The images of a source against the files themselves.
static void same_images(tt_ctx *ctx, const tt_batch_data *b, char *const *names, int n)
{
    tti_images_about a = {.high = 6, .wide = 7, .channels = 3, .max_pixels = 1000000};
    tt_data *d = tti_images_of_files(ctx, &a, names, n);
    CHECK(memcmp(data_all(d).fields[0], b->fields[0], (size_t)(n * 6 * 7 * 3)) == 0);
}

TEST(images_in_shards_are_those_of_files)
{
    tt_ctx *ctx = test_ctx();
    char a[] = "tests/golden/images/420.jpg", c[] = "tests/golden/images/alpha.png",
         g[] = "tests/golden/images/grey.jpg";
    char *const two[] = {a, c}, *const one[] = {g};
    need_decoders();
    tt_data *d = tt_tfrecord(ctx, .file = FOLDER "/images.tfrecord", .x = "image/encoded",
                             .y = "label", .size = {6, 7}, .no_shuffle = true);
    tt_batch_data b = data_all(d);
    same_images(ctx, &b, two, 2);
    d = tt_webdataset(ctx, .file = FOLDER "/shard.tar", .size = {6, 7}, .no_shuffle = true);
    b = data_all(d);
    same_images(ctx, &b, two, 2);
    int64_t n;
    const int32_t *y = b.fields[1];
    CHECK_STR(tti_webdataset_words(d, &n)[0], "dog");
    CHECK(n == 2 && y[0] == 0 && y[1] == 1);
    d = tt_webdataset(ctx, .file = FOLDER "/pax.tar", .size = {6, 7}, .no_shuffle = true);
    b = data_all(d);
    same_images(ctx, &b, one, 1);
    CHECK_INT(*(const int32_t *)b.fields[1], 7);
    CHECK(tt_webdataset(ctx, .file = FOLDER "/traversal.tar", .size = {6, 7}) == NULL);
    CHECK_MESSAGE(ctx, "'a/../../b.jpg' leads out of the archive's folder");
    tt_clear_error(ctx);
    CHECK(tt_webdataset(ctx, .file = FOLDER "/pax.tar", .size = {6, 7}, .x = "bmp") == NULL);
    CHECK_MESSAGE(ctx, "has no image file (bmp)");
    tt_clear_error(ctx);
    CHECK(tt_webdataset(ctx, .file = FOLDER "/plain.tfrecord", .size = {6, 7}) == NULL);
    CHECK_MESSAGE(ctx, "is not a tar header");
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
}

static tt_data *open_jsonl(tt_ctx *ctx)
{
    return tt_jsonl(ctx, .file = data_path("m.jsonl"), .y = "k", .classes = true);
}

static tt_data *open_shard(tt_ctx *ctx)
{
    return tt_webdataset(ctx, .file = FOLDER "/shard.tar", .size = {2, 2});
}

static tt_data *open_words(tt_ctx *ctx)
{
    return tt_csv(ctx, .file = data_path("m?.csv"), .y = "k", .classes = true, .categories = "c",
                  .dates = "d");
}

TEST(shards_without_memory)
{
    need_decoders();
    data_text("m.jsonl", "{\"v\": [1, 2], \"k\": \"a\"}\n{\"v\": [1, 2], \"k\": \"b\"}\n");
    data_no_memory(open_jsonl);
    data_no_memory(open_shard);
    data_text("m1.csv", "c,d,k\nx,2024-01-01,1\ny,2024-01-02,0\n");
    data_text("m2.csv", "c,d,k\nz,2024-01-03,1\n");
    data_no_memory(open_words);
}

TEST(balance_repeats_small_classes)
{
    static float x[7];
    tt_ctx *ctx = test_ctx();
    for (int i = 0; i < 7; i++)
        x[i] = (float)i;
    data_text("b.csv", "v,c\n0,0\n1,1\n2,0\n3,0\n4,2\n5,2\n6,0\n");
    tt_data *d = tt_csv(ctx, .file = data_path("b.csv"), .y = "c", .classes = true, .batch = 5);
    CHECK_OK(tt_data_balance(d, NULL));
    CHECK_INT(tt_data_count(d), 12);
    int count[7] = {0}, classes[3] = {0};
    tt_batch_data b;
    CHECK_OK(tt_data_start(d, 5, 0));
    for (int64_t rows = 0; rows < 12; rows += b.rows) {
        CHECK_OK(tt_data_next(d, &b));
        for (int64_t i = 0; i < b.rows; i++) {
            count[(int)((const float *)b.fields[0])[i]]++;
            classes[((const int32_t *)b.fields[1])[i]]++;
        }
    }
    CHECK(classes[0] == 4 && classes[1] == 4 && classes[2] == 4);
    CHECK(count[0] == 1 && count[1] == 4 && count[4] == 2 && count[5] == 2);
    d = tt_memory(ctx, .x = x, .y = x, .count = 7);
    CHECK(tt_data_balance(d, NULL) == TT_EDTYPE);
    CHECK_MESSAGE(ctx, "balance: field 'y' is not one class per record");
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
}
