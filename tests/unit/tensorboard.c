/*
 * tensorboard.c - event files: sums by published vectors, records read back by a parser of the
 * format's definition, and by TensorBoard itself where it is installed.
 */
#include "../test.h"
#include "record/record.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

TEST(crc32c_has_the_published_values)
{
    uint8_t b[32];
    CHECK(tti_crc32c("", 0) == 0);
    CHECK(tti_crc32c("123456789", 9) == 0xE3069283u);
    memset(b, 0, 32); // RFC 3720, B.4
    CHECK(tti_crc32c(b, 32) == 0x8A9136AAu);
    memset(b, 0xFF, 32);
    CHECK(tti_crc32c(b, 32) == 0x62A8AB43u);
    for (int i = 0; i < 32; i++)
        b[i] = (uint8_t)i;
    CHECK(tti_crc32c(b, 32) == 0x46DD794Eu);
    for (int i = 0; i < 32; i++)
        b[i] = (uint8_t)(31 - i);
    CHECK(tti_crc32c(b, 32) == 0x113FDB5Cu);
}

static uint64_t fixed(const uint8_t *p, int bytes)
{
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint64_t)p[i] << 8 * i;
    return v;
}

static uint32_t unmask(uint32_t v)
{
    v -= 0xA282EAD8u;
    return v >> 17 | v << 15;
}

// Checks the frame of the record at p; its payload is p + 12.
static size_t payload_of(const uint8_t *p, size_t bytes)
{
    CHECK(bytes >= 16);
    uint64_t n = fixed(p, 8);
    CHECK(n + 16 == bytes);
    CHECK(unmask((uint32_t)fixed(p + 8, 4)) == tti_crc32c(p, 8));
    CHECK(unmask((uint32_t)fixed(p + 12 + n, 4)) == tti_crc32c(p + 12, n));
    return n;
}

typedef struct item {
    int field, type;
    uint64_t number;
    const uint8_t *bytes;
    size_t n;
} item;

static uint64_t varint(const uint8_t **p, const uint8_t *end)
{
    uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        CHECK(*p < end);
        uint8_t b = *(*p)++;
        v |= (uint64_t)(b & 0x7F) << shift;
        if (b < 0x80)
            return v;
    }
    ck_abort_msg("a varint has no end");
    return 0;
}

static bool next(const uint8_t **p, const uint8_t *end, item *out)
{
    if (*p == end)
        return false;
    uint64_t key = varint(p, end);
    *out = (item){.field = (int)(key >> 3), .type = (int)(key & 7)};
    size_t fixed_bytes = out->type == 1 ? 8 : out->type == 5 ? 4 : 0;
    if (out->type == 0) {
        out->number = varint(p, end);
    } else if (out->type == 2) {
        out->n = varint(p, end);
        CHECK(out->n <= (size_t)(end - *p));
        out->bytes = *p;
        *p += out->n;
    } else {
        CHECK(fixed_bytes > 0 && fixed_bytes <= (size_t)(end - *p));
        out->number = fixed(*p, (int)fixed_bytes);
        *p += fixed_bytes;
    }
    return true;
}

static void check_time(const item *i, double time)
{
    double t;
    memcpy(&t, &i->number, sizeof(t));
    CHECK(i->field == 1 && i->type == 1 && t == time);
}

TEST(the_first_record_is_the_version)
{
    uint8_t r[TTI_BOARD_MAX];
    size_t n = payload_of(r, tti_board_version(1.5e9, r));
    const uint8_t *p = r + 12, *end = p + n;
    item i;
    CHECK(next(&p, end, &i));
    check_time(&i, 1.5e9);
    CHECK(next(&p, end, &i) && i.field == 3 && i.type == 2);
    CHECK(i.n == 13 && memcmp(i.bytes, "brain.Event:2", 13) == 0);
    CHECK(!next(&p, end, &i));
}

TEST(a_start_names_its_step)
{
    uint8_t r[TTI_BOARD_MAX];
    size_t n = payload_of(r, tti_board_start(2.0, 300, r));
    const uint8_t *p = r + 12, *end = p + n;
    item i;
    CHECK(next(&p, end, &i));
    check_time(&i, 2.0);
    CHECK(next(&p, end, &i) && i.field == 2 && i.type == 0 && i.number == 300);
    CHECK(next(&p, end, &i) && i.field == 7 && i.n == 2);
    CHECK(i.bytes[0] == 8 && i.bytes[1] == 1);
    CHECK(!next(&p, end, &i));
}

static void check_value(const item *i, const char *tag, float value)
{
    const uint8_t *p = i->bytes, *end = p + i->n;
    item v;
    float f;
    CHECK(i->field == 1 && i->type == 2);
    CHECK(next(&p, end, &v) && v.field == 1 && v.n == strlen(tag));
    CHECK(memcmp(v.bytes, tag, v.n) == 0);
    CHECK(next(&p, end, &v) && v.field == 2 && v.type == 5);
    uint32_t bits = (uint32_t)v.number;
    memcpy(&f, &bits, sizeof(f));
    CHECK(f == value || (isnan(f) && isnan(value)));
    CHECK(!next(&p, end, &v));
}

TEST(scalars_are_read_back)
{
    uint8_t r[TTI_BOARD_MAX];
    const tt_pair pairs[] = {{"loss", 0.25, NULL}, {"accuracy", NAN, NULL}, {"lr", -1e-3, NULL}};
    const int64_t steps[] = {0, 1, 127, 128, (int64_t)1 << 40};
    for (int s = 0; s < 5; s++) {
        size_t n = payload_of(r, tti_board_scalars(3.25, steps[s], pairs, 3, r));
        const uint8_t *p = r + 12, *end = p + n;
        item i;
        CHECK(next(&p, end, &i));
        check_time(&i, 3.25);
        CHECK(next(&p, end, &i) && i.field == 2 && (int64_t)i.number == steps[s]);
        CHECK(next(&p, end, &i) && i.field == 5 && i.type == 2);
        CHECK(p == end);
        p = i.bytes;
        end = p + i.n;
        for (int k = 0; k < 3; k++) {
            CHECK(next(&p, end, &i));
            check_value(&i, pairs[k].name, (float)pairs[k].number);
        }
        CHECK(p == end);
    }
}

TEST(what_has_no_room_is_left_out)
{
    uint8_t r[TTI_BOARD_MAX];
    static char names[64][300];
    tt_pair pairs[64];
    for (int i = 0; i < 64; i++) {
        memset(names[i], 'a' + i % 26, i == 3 ? 299 : 200);
        pairs[i] = (tt_pair){names[i], i, NULL};
    }
    size_t n = tti_board_scalars(1, 1, pairs, 64, r);
    CHECK(n <= TTI_BOARD_MAX);
    payload_of(r, n);
    CHECK(n > 3000); // most of the room is used
}

// The first field of that number.
static item field_of(const uint8_t *p, size_t n, int field)
{
    const uint8_t *end = p + n;
    item i;
    while (next(&p, end, &i))
        if (i.field == field)
            return i;
    ck_abort_msg("there is no field %d", field);
    return i;
}

TEST(hyper_parameters_are_read_back)
{
    static uint8_t r[TTI_BOARD_KEYS];
    static char names[300][101];
    tt_pair pairs[300] = {{"lr", 0.125, NULL}, {"optimizer", NAN, "adam"}};
    size_t n = payload_of(r, tti_board_keys(3.25, pairs, 2, r));
    item i = field_of(r + 12, n, 5); // Summary
    i = field_of(i.bytes, i.n, 1);   // Value
    item tag = field_of(i.bytes, i.n, 1);
    CHECK(tag.n == 28 && memcmp(tag.bytes, "_hparams_/session_start_info", 28) == 0);
    i = field_of(i.bytes, i.n, 9); // metadata
    i = field_of(i.bytes, i.n, 1); // of a plugin
    tag = field_of(i.bytes, i.n, 1);
    CHECK(tag.n == 7 && memcmp(tag.bytes, "hparams", 7) == 0);
    i = field_of(i.bytes, i.n, 2); // its content
    i = field_of(i.bytes, i.n, 3); // the session's start
    const uint8_t *p = i.bytes, *end = p + i.n;
    item one, value;
    CHECK(next(&p, end, &one));
    value = field_of(one.bytes, one.n, 2);
    value = field_of(value.bytes, value.n, 2);
    double lr;
    memcpy(&lr, &value.number, sizeof(lr));
    CHECK(lr == 0.125);
    CHECK(next(&p, end, &one));
    value = field_of(one.bytes, one.n, 2);
    value = field_of(value.bytes, value.n, 3);
    CHECK(value.n == 4 && memcmp(value.bytes, "adam", 4) == 0);
    for (int k = 0; k < 300; k++) { // more than there is room for
        memset(names[k], 'a' + k % 26, 100);
        pairs[k] = (tt_pair){names[k], NAN, names[k]};
    }
    n = tti_board_keys(1, pairs, 300, r);
    CHECK(n > 12000 && n <= TTI_BOARD_KEYS);
    payload_of(r, n);
}

static double double_of(const item *i)
{
    double v;
    CHECK(i->type == 1);
    memcpy(&v, &i->number, sizeof(v));
    return v;
}

TEST(histograms_are_read_back)
{
    uint8_t r[TTI_BOARD_MAX];
    float values[102];
    for (int k = 0; k < 100; k++)
        values[k] = (float)k - 20;
    values[100] = NAN;
    values[101] = INFINITY;
    size_t n = payload_of(r, tti_board_histogram(1, 7, "w", values, 102, r));
    item i = field_of(r + 12, n, 5), one, limits, counts;
    CHECK(field_of(r + 12, n, 2).number == 7);
    i = field_of(i.bytes, i.n, 1);
    one = field_of(i.bytes, i.n, 1);
    CHECK(one.n == 1 && one.bytes[0] == 'w');
    i = field_of(i.bytes, i.n, 5);
    static const double wanted[] = {-20, 79, 100, 2950, 170350};
    for (int k = 0; k < 5; k++) {
        one = field_of(i.bytes, i.n, k + 1);
        CHECK(double_of(&one) == wanted[k]);
    }
    limits = field_of(i.bytes, i.n, 6);
    counts = field_of(i.bytes, i.n, 7);
    CHECK(limits.n == counts.n && limits.n % 8 == 0);
    double all = 0, last = -INFINITY;
    for (size_t k = 0; k < counts.n; k += 8) {
        double limit, count;
        memcpy(&limit, limits.bytes + k, 8);
        memcpy(&count, counts.bytes + k, 8);
        CHECK(limit > last && count >= 1 && count <= 3); // 100 values in 40 buckets
        last = limit;
        all += count;
    }
    CHECK(all == 100 && last >= 79);
    for (int k = 0; k < 4; k++)
        values[k] = 3;
    CHECK(tti_board_histogram(1, 7, "w", values, 4, r) > 0); // all in one place
    CHECK(tti_board_histogram(1, 7, "w", values + 100, 2, r) == 0);
}

static uint32_t big(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

// The pixels of a PNG without filters, with every sum checked.
static void unpack(const uint8_t *png, size_t bytes, const tti_picture *p, uint8_t *out)
{
    const uint8_t *at = png + 8, *end = png + bytes;
    size_t row = (size_t)p->width * (size_t)p->channels;
    uLongf n = (uLongf)((row + 1) * (size_t)p->height);
    uint8_t *rows = malloc(n);
    bool has_end = false;
    CHECK(rows != NULL && memcmp(png, "\x89PNG\r\n\x1a\n", 8) == 0);
    while (at + 12 <= end) {
        uint32_t length = big(at);
        CHECK(at + 12 + length <= end);
        CHECK(big(at + 8 + length) == crc32(0, at + 4, length + 4));
        if (memcmp(at + 4, "IHDR", 4) == 0) {
            CHECK((int)big(at + 8) == p->width && (int)big(at + 12) == p->height);
            CHECK(at[16] == 8 && at[17] == (p->channels == 1 ? 0 : p->channels == 3 ? 2 : 6));
        }
        if (memcmp(at + 4, "IDAT", 4) == 0)
            CHECK(uncompress(rows, &n, at + 8, length) == Z_OK);
        has_end |= memcmp(at + 4, "IEND", 4) == 0;
        at += 12 + length;
    }
    CHECK(has_end && at == end && n == (row + 1) * (size_t)p->height);
    for (int y = 0; y < p->height; y++) {
        CHECK(rows[(size_t)y * (row + 1)] == 0);
        memcpy(out + (size_t)y * row, rows + (size_t)y * (row + 1) + 1, row);
    }
    free(rows);
}

TEST(pictures_keep_their_pixels)
{
    static const int sizes[][3] = {{1, 1, 1}, {5, 7, 1}, {9, 4, 3}, {64, 65, 4}};
    tt_ctx *ctx = test_ctx();
    for (int k = 0; k < TTI_COUNT(sizes); k++) {
        tti_picture p = {.height = sizes[k][0], .width = sizes[k][1], .channels = sizes[k][2]};
        static uint8_t pixels[64 * 65 * 4], got[64 * 65 * 4];
        size_t n = (size_t)p.height * (size_t)p.width * (size_t)p.channels, bytes = 0;
        for (size_t i = 0; i < n; i++)
            pixels[i] = (uint8_t)(i * 37 + i / 7);
        p.pixels = pixels;
        uint8_t *png = tti_picture_png(ctx, &p, &bytes);
        CHECK(png != NULL);
        unpack(png, bytes, &p, got);
        CHECK(memcmp(got, pixels, n) == 0);
        tti_free(ctx, png);
    }
    CHECK_OK(tt_close(ctx));
}

// Of a pixel near the corner of a cell, where no number is.
static int shade(const tti_picture *p, int row, int column)
{
    int cell = p->width / 4, x = (column + 1) * cell + 3, y = (row + 1) * cell + 3;
    return p->pixels[3 * (y * p->width + x)];
}

TEST(confusion_matrices_are_darker_where_there_is_more)
{
    static const double counts[] = {8, 2, 0, 0, 1, 0, 5, 0, 5};
    tt_ctx *ctx = test_ctx();
    tti_picture p = tti_picture_confusion(ctx, counts, 3);
    CHECK(p.pixels != NULL && p.width == 4 * 32 && p.height == p.width && p.channels == 3);
    CHECK(shade(&p, 1, 1) < shade(&p, 0, 0) && shade(&p, 0, 0) < shade(&p, 0, 1));
    CHECK(shade(&p, 0, 1) < shade(&p, 0, 2) && shade(&p, 2, 0) == shade(&p, 2, 2));
    tti_free(ctx, p.pixels);
    double *many = calloc((size_t)TTI_CLASSES * TTI_CLASSES, sizeof(*many));
    CHECK(many != NULL);
    p = tti_picture_confusion(ctx, many, TTI_CLASSES);
    CHECK(p.pixels != NULL && p.width == TTI_CLASSES);
    tti_free(ctx, p.pixels);
    free(many);
    CHECK_OK(tt_close(ctx));
}

// The Python that has TensorBoard, if there is one.
static const char *python(void)
{
    const char *given = getenv("TUTTI_PYTHON");
    if (given != NULL)
        return given;
    return access("build/python/bin/python", X_OK) == 0 ? "build/python/bin/python" : NULL;
}

TEST(tensorboard_reads_what_a_recorder_writes)
{
    char line[900];
    if (python() == NULL || access("tests/python/tensorboard_test", R_OK) != 0)
        test_skip("no Python with tensorboard (TUTTI_PYTHON)");
    snprintf(line, sizeof(line), "%s -c 'import tensorboard' 2>/dev/null", python());
    if (system(line) != 0)
        test_skip("this Python has no tensorboard");

    tt_ctx *ctx = test_ctx();
    tti_recorder *rec;
    for (int session = 0; session < 2; session++) { // the second goes back to step 3
        CHECK_OK(tti_recorder_open(ctx, test_folder(), true, &rec));
        tti_recorder_keys(rec, &(tt_pair){"lr", 0.5, NULL}, 1);
        tti_emit_pairs(ctx, "begin", &(tt_pair){"name", 0, "digits"}, 1);
        for (int step = session == 0 ? 1 : 3; step <= 4; step++) {
            tt_pair p[] = {{"step", step, NULL},
                           {"epoch", 1, NULL},
                           {"loss", 1.0 / step + session, NULL},
                           {"accuracy", 0.125 * step, NULL},
                           {"lr", 0.5, NULL},
                           {"samples_per_second", 100 * step, NULL}};
            tti_emit_pairs(ctx, "step", p, 6);
        }
        // A validation repeats values of training, the epoch's end those of the validation.
        tt_pair p[] = {{"step", 4, NULL}, {"loss", 9, NULL}, {"validation_loss", 0.75, NULL}};
        tti_emit_pairs(ctx, "validation", p, 3);
        tti_emit_pairs(ctx, "epoch", p, 3);
        tti_recorder_histogram(rec, "weights", 4, (const float[]){1, 2, 4}, 3);
        tti_recorder_image(rec, "picture", 4, &(tti_picture){(uint8_t[]){0, 255}, 1, 2, 1});
        tti_recorder_close(rec);
    }
    CHECK_OK(tt_close(ctx));
    snprintf(line, sizeof(line), "%s tests/python/tensorboard_test %s/tensorboard", python(),
             test_folder());
    int status = system(line);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "'%s' failed", line);
}
