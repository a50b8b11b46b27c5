/*
 * data_images.c - image files: pixels as Pillow has them, folders, lists, damage, and transforms.
 */
#include "base/file.h"
#include "data/chance.h"
#include "data/images.h"
#include "data_test.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define FOLDER "tests/golden/images"

static const char *const files[] = {"420.jpg",     "alpha.png",      "cmyk.jpg",   "grey.jpg",
                                    "grey16.png",  "lossless.webp",  "lossy.webp", "one_bit.png",
                                    "palette.png", "progressive.jpg"};

static void need_decoders(void)
{
    if (tti_decoder_version("jpeg") == NULL || tti_decoder_version("png") == NULL ||
        tti_decoder_version("webp") == NULL)
        test_skip("this build lacks libjpeg, libpng or libwebp");
}

// One file of FOLDER as a class folder holds it.
static void put(const char *from, const char *folder, const char *name)
{
    char path[300], *bytes;
    size_t n;
    snprintf(path, sizeof(path), FOLDER "/%s", from);
    CHECK_OK(tti_file_read(NULL, path, 0, &bytes, &n));
    mkdir(data_path("img"), 0777);
    snprintf(path, sizeof(path), "img/%s", folder);
    mkdir(data_path(path), 0777);
    snprintf(path, sizeof(path), "img/%s/%s", folder, name);
    data_write(path, bytes, n);
    tti_free(NULL, bytes);
}

static void same(const char *file, const char *what, const unsigned char *got,
                 const unsigned char **want, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(got[i] == (*want)[i], "%s, %s: byte %zu is %d, not %d", file, what, i, got[i],
                      (*want)[i]);
    *want += n;
}

static void decode_as(tt_ctx *ctx, const char *file, tti_images_about a, unsigned char *out)
{
    char path[300];
    snprintf(path, sizeof(path), FOLDER "/%s", file);
    a.max_pixels = 1000000;
    char *const names[] = {path};
    tt_data *d = tti_images_of_files(ctx, &a, names, 1);
    tt_batch_data b = data_all(d);
    memcpy(out, b.fields[0], (size_t)(a.high * a.wide * a.channels));
    tt_data_free(d);
}

TEST(images_have_the_pixels_of_pillow)
{
    tt_ctx *ctx = test_ctx();
    char *bytes;
    size_t n;
    unsigned char got[20 * 40 * 3];
    need_decoders();
    CHECK_OK(tti_file_read(ctx, FOLDER "/expected.bin", 0, &bytes, &n));
    const unsigned char *want = (const unsigned char *)bytes;
    for (int i = 0; i < TTI_COUNT(files); i++) {
        decode_as(ctx, files[i], (tti_images_about){.high = 10, .wide = 12, .channels = 3}, got);
        same(files[i], "crop", got, &want, 10 * 12 * 3);
        decode_as(
            ctx, files[i],
            (tti_images_about){.high = 40, .wide = 16, .channels = 3, .fit = TT_IMAGES_STRETCH},
            got);
        same(files[i], "stretch", got, &want, 40 * 16 * 3);
        decode_as(ctx, files[i],
                  (tti_images_about){.high = 20, .wide = 20, .channels = 3, .fit = TT_IMAGES_PAD},
                  got);
        same(files[i], "pad", got, &want, 20 * 20 * 3);
        decode_as(ctx, files[i], (tti_images_about){.high = 10, .wide = 12, .channels = 1}, got);
        same(files[i], "grey", got, &want, 10 * 12);
    }
    decode_as(ctx, "420.jpg",
              (tti_images_about){.high = 10, .wide = 12, .channels = 3, .scaled = true}, got);
    same("420.jpg", "scaled", got, &want, 10 * 12 * 3);
    CHECK((size_t)(want - (const unsigned char *)bytes) == n);
    tti_free(ctx, bytes);
    CHECK_OK(tt_close(ctx));
}

TEST(images_of_folders_have_classes)
{
    tt_ctx *ctx = test_ctx();
    tt_field f[TT_MAX_FIELDS];
    need_decoders();
    put("420.jpg", "cat", "b.JPG");
    put("alpha.png", "cat", "a.png");
    put("lossy.webp", "ant", "c.webp");
    data_text("img/readme.txt", "no image");
    tt_data *d = tt_images(ctx, .dir = data_path("img"), .size = {8, 9}, .no_shuffle = true);
    tt_batch_data b = data_all(d);
    CHECK_INT(tt_data_fields(d, f), 2);
    CHECK(f[0].dtype == TT_U8 && f[0].shape.rank == 3 && f[0].shape.dim[1] == 9);
    CHECK(f[1].dtype == TT_I32 && f[1].classes == 2);
    const int32_t *y = b.fields[1];
    CHECK(y[0] == 0 && y[1] == 1 && y[2] == 1); // ant, cat, cat
    int64_t n;
    CHECK_STR(tti_images_words(d, &n)[1], "cat");
    CHECK(strstr(tti_images_path(d, 1), "cat/a.png") != NULL);
    CHECK(tt_images(ctx, .dir = data_path("img"), .size = {8, 9}, .words = "cat") == NULL);
    CHECK_MESSAGE(ctx, "ant' is not one of the classes");
    tt_clear_error(ctx);
    mkdir(data_path("img/empty"), 0777);
    CHECK(tt_images(ctx, .dir = data_path("img"), .size = {8, 9}) == NULL);
    CHECK_MESSAGE(ctx, "empty' has no .jpg");
    tt_clear_error(ctx);
    CHECK(tt_images(ctx, .dir = data_path("img")) == NULL);
    CHECK_MESSAGE(ctx, "size must be given");
    tt_clear_error(ctx);
    CHECK(tt_images(ctx, .size = {1, 1}) == NULL);
    CHECK_MESSAGE(ctx, "dir must be given");
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
}

TEST(images_of_a_list)
{
    tt_ctx *ctx = test_ctx();
    need_decoders();
    put("420.jpg", "x", "1.jpg");
    put("alpha.png", "x", "2.png");
    data_text("list.csv", "path,label\nimg/x/2.png,dog\n\nimg/x/1.jpg,\"big, cat\"\n");
    tt_data *d = tt_images(ctx, .file = data_path("list.csv"), .size = {4, 4}, .no_shuffle = true);
    const int32_t *y = data_all(d).fields[1];
    CHECK(y[0] == 1 && y[1] == 0); // sorted: "big, cat", dog
    data_text("list.csv", "img/x/2.png\nimg/x/1.jpg\n");
    d = tt_images(ctx, .file = data_path("list.csv"), .size = {4, 4});
    CHECK_INT(tt_data_fields(d, NULL), 1);
    data_text("list.csv", "img/x/2.png,dog\nimg/x/1.jpg\n");
    CHECK(tt_images(ctx, .file = data_path("list.csv"), .size = {4, 4}) == NULL);
    CHECK_MESSAGE(ctx, "line 2: 1 columns instead of 2");
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
}

// Damaged in each format: cut short, with changed bytes; and not an image at all.
static void put_damaged(void)
{
    static const char *const from[] = {"420.jpg", "alpha.png", "lossy.webp"};
    char *bytes, path[300];
    size_t n;
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), FOLDER "/%s", from[i]);
        CHECK_OK(tti_file_read(NULL, path, 0, &bytes, &n));
        snprintf(path, sizeof(path), "img/cat/%d-cut.%s", i, strchr(from[i], '.') + 1);
        data_write(path, bytes, n * 2 / 3);
        tti_free(NULL, bytes);
    }
    data_text("img/cat/text.png", "hello");
    data_text("img/cat/void.jpg", "");
}

TEST(images_damaged_are_named_or_left_out)
{
    tt_ctx *ctx = test_ctx();
    need_decoders();
    put("420.jpg", "cat", "good.jpg");
    put("alpha.png", "dog", "good.png");
    put_damaged();
    tt_data *d = tt_images(ctx, .dir = data_path("img"), .size = {8, 8}, .no_shuffle = true);
    CHECK_INT(tt_data_count(d), 7);
    tt_batch_data b;
    CHECK_OK(tt_data_start(d, 1, 0));
    CHECK(tt_data_next(d, &b) == TT_EIO);
    CHECK_MESSAGE(ctx, "cat/0-cut.jpg: the JPEG data is damaged or cut short");
    tt_clear_error(ctx);
    d = tt_images(ctx, .dir = data_path("img"), .size = {8, 8}, .corrupt = TT_CORRUPT_SKIP,
                  .no_shuffle = true, .cache = true);
    b = data_all(d);
    CHECK_INT(b.rows, 2);
    CHECK(((const int32_t *)b.fields[1])[0] == 0 && ((const int32_t *)b.fields[1])[1] == 1);
    unsigned char first[2 * 8 * 8 * 3];
    memcpy(first, b.fields[0], sizeof(first));
    b = data_all(d); // from the cache
    CHECK(memcmp(first, b.fields[0], sizeof(first)) == 0);
    d = tt_images(ctx, .dir = data_path("img/dog"), .size = {8, 8}, .max_megapixels = 1);
    CHECK(d != NULL && tt_data_fields(d, NULL) == 1); // no class folders below
    CHECK_OK(tt_close(ctx));
}

// A PNG that claims 65000 x 65000 pixels in a hundred bytes.
TEST(images_too_large_are_refused_before_memory_is_taken)
{
    tt_ctx *ctx = test_ctx();
    char *bytes;
    size_t n;
    need_decoders();
    mkdir(data_path("img"), 0777);
    CHECK_OK(tti_file_read(ctx, FOLDER "/420.jpg", 0, &bytes, &n));
    for (size_t i = 0; i + 9 < n; i++)
        if ((unsigned char)bytes[i] == 0xff && (unsigned char)bytes[i + 1] == 0xc0) {
            memset(bytes + i + 5, 0xfd, 4); // height and width
            break;
        }
    data_write("img/bomb.jpg", bytes, n);
    tti_free(ctx, bytes);
    tt_data *d = tt_images(ctx, .dir = data_path("img"), .size = {8, 8});
    tt_batch_data b;
    CHECK_OK(tt_data_start(d, 1, 0));
    CHECK(tt_data_next(d, &b) == TT_EIO);
    CHECK_MESSAGE(ctx, "bomb.jpg: has 65021 x 65021 pixels; at most 100 million");
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
}

// ---- transforms ------------------------------------------------------------------------------

TEST(chance_functions_are_right)
{
    for (double x = -30; x < 30; x += 0.37) {
        double s, c, e = tti_exp_exact(x);
        CHECK(fabs(e / exp(x) - 1) < 1e-14);
        CHECK(fabs(tti_log_exact(e) - x) < 1e-13);
        tti_sincos_exact(x / 10, &s, &c);
        CHECK(fabs(s - sin(x / 10)) < 1e-13 && fabs(c - cos(x / 10)) < 1e-13);
    }
    double sum = 0, squares = 0;
    for (int i = 0; i < 4000; i++) {
        tti_philox p = tti_philox4(1, (uint64_t)i, 2);
        tti_chance c = tti_chance_begin(&p);
        double v = tti_chance_beta(&c, 0.4);
        sum += v;
        squares += (v - 0.5) * (v - 0.5);
    }
    CHECK(fabs(sum / 4000 - 0.5) < 0.03);
    CHECK(fabs(squares / 4000 - 0.25 / 1.8) < 0.01); // 1 / (4 (2 alpha + 1))
}

// x of all records of a data set with one image transform, with so many workers.
static const unsigned char *transformed(tt_ctx *ctx, const void *images, const char *kind,
                                        tt_transform_opts o, int workers, int64_t epoch)
{
    tt_data *d = tt_memory(ctx, .x = images, .x_dtype = TT_U8, .x_shape = TT_SHAPE(20, 24, 3),
                           .count = 6, .batch = 3, .no_shuffle = true, .workers = workers);
    o.opts_size = sizeof(o);
    CHECK_OK(tt_transform_with(d, kind, &o));
    tt_batch_data b;
    CHECK_OK(tt_data_start(d, 6, epoch * 6));
    CHECK_OK(tt_data_next(d, &b));
    return b.fields[0];
}

TEST(image_transforms_depend_on_record_and_epoch_alone)
{
    static unsigned char images[6 * 20 * 24 * 3];
    static const struct {
        const char *kind;
        tt_transform_opts o;
        size_t bytes;
    } kinds[] = {
        {"random_resized_crop", {.size = {10, 11}}, 10 * 11 * 3},
        {"random_rotate", {.degrees = 30}, 20 * 24 * 3},
        {"random_zoom", {.zoom = 0.3}, 20 * 24 * 3},
        {"random_colour",
         {.brightness = 0.4, .contrast = 0.4, .saturation = 0.4, .hue = 0.1},
         20 * 24 * 3},
        {"random_blur", {.sigma = 2}, 20 * 24 * 3},
        {"random_flip", {.vertical = true}, 20 * 24 * 3},
    };
    tt_ctx *ctx = test_ctx();
    for (int i = 0; i < 6 * 20 * 24 * 3; i++)
        images[i] = (unsigned char)(i * 7 + i / 72 * 13);
    for (int k = 0; k < TTI_COUNT(kinds); k++) {
        const unsigned char *a = transformed(ctx, images, kinds[k].kind, kinds[k].o, -1, 0);
        const unsigned char *b = transformed(ctx, images, kinds[k].kind, kinds[k].o, 3, 0);
        const unsigned char *c = transformed(ctx, images, kinds[k].kind, kinds[k].o, 1, 1);
        ck_assert_msg(memcmp(a, b, kinds[k].bytes * 6) == 0, "%s: workers", kinds[k].kind);
        ck_assert_msg(memcmp(a, c, kinds[k].bytes * 6) != 0, "%s: epochs", kinds[k].kind);
        ck_assert_msg(memcmp(a, images, kinds[k].bytes * 6) != 0, "%s: nothing", kinds[k].kind);
    }
    CHECK_OK(tt_close(ctx));
}

TEST(image_transforms_that_change_nothing)
{
    static unsigned char images[6 * 20 * 24 * 3];
    tt_ctx *ctx = test_ctx();
    for (int i = 0; i < 6 * 20 * 24 * 3; i++)
        images[i] = (unsigned char)(i * 7 + i / 72 * 13);
    static const char *const kinds[] = {"random_rotate", "random_zoom", "random_colour",
                                        "random_blur"};
    for (int k = 0; k < TTI_COUNT(kinds); k++) { // no angle, no zoom, ...
        tt_transform_opts o = {.degrees = 1e-9, .zoom = 1e-12, .sigma = 1e-6, .hue = 1e-12};
        CHECK(memcmp(transformed(ctx, images, kinds[k], o, 1, 0), images, sizeof(images)) == 0);
    }
    // A resize to the same size, and a crop in the middle.
    CHECK(memcmp(transformed(ctx, images, "resize", (tt_transform_opts){.size = {20, 24}}, 1, 0),
                 images, sizeof(images)) == 0);
    const unsigned char *y =
        transformed(ctx, images, "centre_crop", (tt_transform_opts){.size = {10, 4}}, 1, 0);
    CHECK(memcmp(y, &images[(5 * 24 + 10) * 3], 12) == 0);
    CHECK_OK(tt_close(ctx));
}

TEST(mixup_and_cutmix_mix_targets)
{
    static float x[8][4 * 4], y[8][2];
    tt_ctx *ctx = test_ctx();
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < 16; k++)
            x[i][k] = y[i][i % 2] = (float)(i % 2); // odd ones are 1 all over
    for (int i = 0; i < 8; i++)
        y[i][0] = 1 - y[i][1];
    for (int kind = 0; kind < 2; kind++) {
        int mixed = 0;
        tt_data *d = tt_memory(ctx, .x = x, .x_shape = TT_SHAPE(4, 4), .y = y,
                               .y_shape = TT_SHAPE(2), .count = 8, .no_shuffle = true);
        CHECK_OK(tt_transform(d, kind == 0 ? "random_mixup" : "random_cutmix", .alpha = 1));
        for (int epoch = 0; epoch < 3; epoch++) {
            tt_batch_data b;
            CHECK_OK(tt_data_start(d, 8, 8 * epoch));
            CHECK_OK(tt_data_next(d, &b));
            const float *bx = b.fields[0], *by = b.fields[1];
            for (int i = 0; i < 8; i++) {
                double mean = 0;
                for (int k = 0; k < 16; k++)
                    mean += (double)bx[i * 16 + k] / 16;
                CHECK(fabs(mean - (double)by[2 * i + 1]) < 1e-6);
                CHECK(fabs((double)by[2 * i] + (double)by[2 * i + 1] - 1) < 1e-6);
                mixed += by[2 * i] != 0 && by[2 * i] != 1;
            }
        }
        CHECK(mixed > 2);
    }
    tt_data *d = tt_digits(ctx, .count = 10);
    CHECK(tt_transform(d, "random_mixup") == TT_EDTYPE);
    CHECK_MESSAGE(ctx, "put `one_hot: {field: y}` before it");
    tt_clear_error(ctx);
    CHECK_OK(tt_transform(d, "one_hot", .field = "y"));
    CHECK_OK(tt_transform(d, "random_mixup", .alpha = 0.2));
    CHECK_OK(tt_close(ctx));
}
