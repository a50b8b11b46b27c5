/*
 * data_files.c - IDX, MNIST and CIFAR-10: values, packed and plain, damaged, cut short.
 */
#include "data_test.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

// An IDX file of u8: 5 records [2, 3], element k of record i is 10 i + k.
static size_t idx_images(uint8_t *out)
{
    static const uint8_t head[] = {0, 0, 8, 3, 0, 0, 0, 5, 0, 0, 0, 2, 0, 0, 0, 3};
    memcpy(out, head, sizeof(head));
    for (int i = 0; i < 30; i++)
        out[16 + i] = (uint8_t)(i / 6 * 10 + i % 6);
    return 46;
}

static size_t idx_labels(uint8_t *out)
{
    static const uint8_t file[] = {0, 0, 8, 1, 0, 0, 0, 5, 3, 1, 4, 1, 0};
    memcpy(out, file, sizeof(file));
    return sizeof(file);
}

static tt_data *open_idx(tt_ctx *ctx)
{
    return tt_idx(ctx, .x = data_path("x.idx"), .y = data_path("y.idx"), .no_shuffle = true);
}

static void write_idx(void)
{
    uint8_t x[64], y[64];
    data_write("x.idx", x, idx_images(x));
    data_write("y.idx", y, idx_labels(y));
}

TEST(idx_values)
{
    tt_ctx *ctx = test_ctx();
    uint8_t file[64];
    for (int packed = 0; packed < 2; packed++) {
        if (packed) {
            data_gzip("x.idx", file, idx_images(file));
            data_gzip("y.idx", file, idx_labels(file));
        } else {
            write_idx();
        }
        tt_data *d = open_idx(ctx);
        tt_field f[TT_MAX_FIELDS];
        tt_batch_data b = data_all(d);
        CHECK_INT(tt_data_fields(d, f), 2);
        CHECK(f[0].shape.rank == 2 && f[0].shape.dim[0] == 2 && f[0].shape.dim[1] == 3);
        CHECK(f[1].shape.rank == 0 && f[1].dtype == TT_I32 && f[1].classes == 5);
        static const int32_t labels[] = {3, 1, 4, 1, 0};
        for (int i = 0; i < 30; i++)
            CHECK(((const float *)b.fields[0])[i] == (float)(i / 6 * 10 + i % 6) / 255.0f);
        CHECK(memcmp(b.fields[1], labels, sizeof(labels)) == 0);
        tt_data *alone = tt_idx(ctx, .x = data_path("x.idx"));
        CHECK_INT(tt_data_fields(alone, f), 1);
    }
    CHECK_OK(tt_close(ctx));
}

// All element types, big-endian.
TEST(idx_types)
{
    static const struct {
        uint8_t type, bytes, raw[16];
        double want[2];
    } cases[] = {
        {0x09, 1, {0xff, 0x7f}, {-1, 127}},
        {0x0b, 2, {0xff, 0xfe, 0x01, 0x02}, {-2, 258}},
        {0x0c, 4, {0xff, 0xff, 0xff, 0xfd, 0, 1, 0, 0}, {-3, 65536}},
        {0x0d, 4, {0xc0, 0x20, 0, 0, 0x3f, 0x80, 0, 0}, {-2.5, 1}},
        {0x0e, 8, {0x3f, 0xe0, 0, 0, 0, 0, 0, 0, 0xc0, 0x59, 0, 0, 0, 0, 0, 0}, {0.5, -100}},
    };
    tt_ctx *ctx = test_ctx();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint8_t file[32] = {0, 0, cases[i].type, 1, 0, 0, 0, 2};
        size_t n = 8 + 2 * (size_t)cases[i].bytes;
        memcpy(file + 8, cases[i].raw, 16);
        data_write("t.idx", file, n);
        tt_data *d =
            tt_idx(ctx, .x = data_path("t.idx"), .y = data_path("t.idx"), .no_shuffle = true);
        tt_field f[TT_MAX_FIELDS];
        tt_batch_data b = data_all(d);
        tt_data_fields(d, f);
        bool is_label = cases[i].type < 0x0d;
        CHECK(f[1].dtype == (is_label ? TT_I32 : TT_F32));
        CHECK(f[1].classes == 0); // negative ones are no classes
        for (int k = 0; k < 2; k++) {
            CHECK(((const float *)b.fields[0])[k] == (float)cases[i].want[k]);
            if (is_label)
                CHECK(((const int32_t *)b.fields[1])[k] == (int32_t)cases[i].want[k]);
        }
    }
    CHECK_OK(tt_close(ctx));
}

TEST(idx_cut_short)
{
    uint8_t x[64], y[64];
    write_idx();
    data_cuts("x.idx", x, idx_images(x), open_idx);
    data_cuts("y.idx", y, idx_labels(y), open_idx);
}

TEST(idx_damaged)
{
    uint8_t x[64], y[64];
    size_t n = idx_images(x);
    write_idx();
    static const struct {
        int at, value;
        const char *words;
    } bad[] = {
        {0, 1, "it begins with 01 00 08 03"},
        {2, 0x0a, "is not an IDX file"},
        {3, 0, "has 0 axes"},
        {3, 9, "has 9 axes"},
        {4, 255, "x.idx: is cut short at byte 46, within record 5 of 4278190085"},
        {7, 4, "has 6 bytes after its last record"},
        {11, 0, "axis 1 has a size of 0"},
        {8, 255, "axis 1 has a size of 4278190082"}, // more than 2^31
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        uint8_t copy[64];
        memcpy(copy, x, n);
        copy[bad[i].at] = (uint8_t)bad[i].value;
        data_write("x.idx", copy, n);
        data_refuses(open_idx, bad[i].words);
    }
    write_idx();
    n = idx_labels(y);
    y[7] = 4;
    data_write("y.idx", y, n - 1);
    data_refuses(open_idx, "y.idx: has 4 records, but '");
    CHECK(unlink(data_path("y.idx")) == 0);
    data_refuses(open_idx, "y.idx': No such file");
}

TEST(gzip_cut_short_and_damaged)
{
    uint8_t file[64], packed[256];
    write_idx();
    data_gzip("g.gz", file, idx_images(file));
    FILE *f = fopen(data_path("g.gz"), "rb");
    size_t n = fread(packed, 1, sizeof(packed), f);
    fclose(f);
    data_cuts("x.idx", packed, n, open_idx);
    packed[n - 6] ^= 1; // the checksum
    data_write("x.idx", packed, n);
    data_refuses(open_idx, "x.idx: compressed data is damaged");
    packed[n - 6] ^= 1;
    packed[n] = 7;
    data_write("x.idx", packed, n + 1);
    data_refuses(open_idx, "x.idx: compressed data");
}

// Two members, one after another, are one file, as gzip has it.
TEST(gzip_members)
{
    tt_ctx *ctx = test_ctx();
    uint8_t file[64], packed[512];
    size_t n = idx_images(file), at = 0;
    write_idx();
    for (int half = 0; half < 2; half++) {
        data_gzip("g.gz", half ? file + 20 : file, half ? n - 20 : 20);
        FILE *f = fopen(data_path("g.gz"), "rb");
        at += fread(packed + at, 1, sizeof(packed) - at, f);
        fclose(f);
    }
    data_write("x.idx", packed, at);
    tt_batch_data b = data_all(open_idx(ctx));
    CHECK(((const float *)b.fields[0])[29] == 45.0f / 255.0f);
    CHECK_OK(tt_close(ctx));
}

TEST(idx_without_memory)
{
    uint8_t x[64], y[64];
    data_gzip("x.idx", x, idx_images(x));
    data_write("y.idx", y, idx_labels(y));
    data_no_memory(open_idx);
}

// A file that shrinks while it is open is an error of the record that is gone, not a crash.
TEST(file_that_shrinks)
{
    tt_ctx *ctx = test_ctx();
    tt_batch_data b;
    write_idx();
    tt_data *d = open_idx(ctx);
    CHECK(truncate(data_path("x.idx"), 16 + 12) == 0);
    CHECK_OK(tt_data_start(d, 2, 0));
    CHECK_OK(tt_data_next(d, &b));
    CHECK(tt_data_next(d, &b) == TT_EIO);
    CHECK_MESSAGE(ctx, "x.idx: ends at byte 28; it had 46");
    CHECK(tt_close(ctx) == TT_EIO);
}

// ---- MNIST -----------------------------------------------------------------------------------

static void write_mnist(const char *images, const char *labels, bool gz, int label)
{
    static uint8_t x[16 + 3 * 784] = {0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 28, 0, 0, 0, 28};
    uint8_t y[] = {0, 0, 8, 1, 0, 0, 0, 3, 9, (uint8_t)label, 0};
    for (int i = 0; i < 3 * 784; i++)
        x[16 + i] = (uint8_t)(i * 7);
    (gz ? data_gzip : data_write)(images, x, sizeof(x));
    (gz ? data_gzip : data_write)(labels, y, sizeof(y));
}

static tt_data *open_mnist(tt_ctx *ctx)
{
    return tt_mnist(ctx, .dir = test_folder(), .split = "test", .no_shuffle = true);
}

TEST(mnist_names_and_labels)
{
    static const char *const names[][2] = {
        {"t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"},
        {"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"},
        {"t10k-images.idx3-ubyte.gz", "t10k-labels.idx1-ubyte.gz"},
        {"t10k-images.idx3-ubyte", "t10k-labels.idx1-ubyte"},
    };
    tt_ctx *ctx = test_ctx();
    for (int i = 0; i < 4; i++) {
        data_refuses(open_mnist, "has no t10k-images-idx3-ubyte.gz");
        write_mnist(names[i][0], names[i][1], i % 2 == 0, 5);
        tt_data *d = open_mnist(ctx);
        tt_field f[TT_MAX_FIELDS];
        tt_batch_data b = data_all(d);
        tt_data_fields(d, f);
        CHECK(f[0].shape.rank == 3 && f[0].shape.dim[2] == 1 && f[1].classes == 10);
        CHECK(((const float *)b.fields[0])[784 + 3] == (float)(uint8_t)(787 * 7) / 255.0f);
        CHECK(((const int32_t *)b.fields[1])[1] == 5);
        tt_data_free(d);
        unlink(data_path(names[i][0]));
        unlink(data_path(names[i][1]));
    }
    write_mnist(names[1][0], names[1][1], false, 12);
    data_refuses(open_mnist,
                 "t10k-labels-idx1-ubyte: record 1: the label is 12, but must be below 10");
    uint8_t x[64];
    data_write(names[1][0], x, idx_images(x));
    data_refuses(open_mnist, "records, but");
    CHECK(tt_mnist(ctx, .split = "all") == NULL);
    CHECK_MESSAGE(ctx, "split is 'all'");
    CHECK(tt_close(ctx) == TT_EINVAL);
}

// The real files, where TUTTI_DATA_DIR has them: what is known of their pixels and labels.
TEST(mnist_real)
{
    const char *root = getenv("TUTTI_DATA_DIR");
    char dir[300];
    snprintf(dir, sizeof(dir), "%s/mnist", root != NULL ? root : "data");
    if (access(dir, F_OK) != 0)
        test_skip("no MNIST files in TUTTI_DATA_DIR/mnist");
    tt_ctx *ctx = test_ctx();
    tt_data *d = tt_mnist(ctx, .dir = dir, .split = "test", .no_shuffle = true);
    CHECK_INT(tt_data_count(d), 10000);
    tt_batch_data b = data_all(d);
    static const int32_t first[] = {7, 2, 1, 0, 4, 1, 4, 9, 5, 9};
    CHECK(memcmp(b.fields[1], first, sizeof(first)) == 0);
    double sum = 0;
    for (int64_t i = 0; i < 10000 * 784; i++)
        sum += (double)((const float *)b.fields[0])[i];
    CHECK_NEAR(sum / (10000 * 784), 0.13251, 1e-5); // the known mean of its pixels
    tt_data *train = tt_mnist(ctx, .dir = dir);
    CHECK_INT(tt_data_count(train), 60000);
    CHECK_OK(tt_close(ctx));
}

// ---- CIFAR-10 --------------------------------------------------------------------------------

#define CIFAR 3073

static void write_cifar(int bad_label)
{
    static uint8_t file[2 * CIFAR];
    for (int k = 1; k <= 5; k++) {
        char name[32];
        for (int i = 0; i < 2 * CIFAR; i++)
            file[i] = (uint8_t)(i * 11 + k);
        file[0] = (uint8_t)(k % 10);
        file[CIFAR] = k == 3 && bad_label ? 10 : 9;
        snprintf(name, sizeof(name), "data_batch_%d.bin", k);
        data_write(name, file, sizeof(file));
    }
}

static tt_data *open_cifar(tt_ctx *ctx)
{
    return tt_cifar10(ctx, .dir = test_folder(), .no_shuffle = true, .batch = 2);
}

TEST(cifar10_values)
{
    tt_ctx *ctx = test_ctx();
    write_cifar(0);
    tt_data *d = open_cifar(ctx);
    tt_batch_data b = data_all(d);
    CHECK_INT(tt_data_count(d), 10);
    for (int record = 0; record < 10; record++) {
        int k = record / 2 + 1, base = record % 2 * CIFAR;
        CHECK(((const int32_t *)b.fields[1])[record] == (record % 2 ? 9 : k));
        for (int p = 0; p < 1024; p += 101)
            for (int c = 0; c < 3; c++)
                CHECK(((const float *)b.fields[0])[record * 3072 + 3 * p + c] ==
                      (float)(uint8_t)((base + 1 + c * 1024 + p) * 11 + k) / 255.0f);
    }
    CHECK(tt_cifar10(ctx, .dir = test_folder(), .split = "test") == NULL);
    CHECK_MESSAGE(ctx, "test_batch.bin");
    CHECK(tt_close(ctx) == TT_EIO);
}

TEST(cifar10_damaged)
{
    tt_ctx *ctx = test_ctx();
    tt_batch_data b;
    write_cifar(1);
    tt_data *d = open_cifar(ctx);
    CHECK_OK(tt_data_start(d, 0, 0));
    for (int i = 0; i < 2; i++)
        CHECK_OK(tt_data_next(d, &b));
    CHECK(tt_data_next(d, &b) == TT_EPARSE);
    CHECK_MESSAGE(ctx, "data_batch_3.bin: record 1: the label is 10, but must be below 10");
    CHECK(tt_close(ctx) == TT_EPARSE);
    data_write("data_batch_2.bin", "", 0);
    data_refuses(open_cifar, "data_batch_2.bin: is cut short at byte 0");
    data_write("data_batch_2.bin", "12345", 5);
    data_refuses(open_cifar, "data_batch_2.bin: is cut short at byte 5, within record 0");
    write_cifar(0);
    data_no_memory(open_cifar);
}
