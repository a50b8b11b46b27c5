/*
 * data_digits.c - procedural digits: the bits of some records, which every machine must reach, and
 * what a set promises.
 */
#include "test.h"
#include <stdlib.h>

static uint64_t fnv(uint64_t h, const void *data, size_t n)
{
    const uint8_t *p = data;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 1099511628211u;
    return h;
}

static uint64_t hash_of(int64_t set, int64_t first, int64_t count, double noise)
{
    tt_ctx *ctx = test_ctx();
    tt_data *d = tt_digits(ctx, .count = count, .first = first, .set = set, .noise = noise,
                           .no_shuffle = true, .batch = (int)count);
    tt_batch_data b;
    CHECK_OK(tt_data_start(d, 0, 0));
    CHECK_OK(tt_data_next(d, &b));
    uint64_t h = fnv(1469598103934665603u, b.fields[0], (size_t)count * 784 * 4);
    h = fnv(h, b.fields[1], (size_t)count * 4);
    CHECK_OK(tt_close(ctx));
    return h;
}

TEST(digits_have_these_bits)
{
    static const struct {
        int64_t set, first, count;
        double noise;
        uint64_t hash;
    } want[] = {
        {1, 0, 1, 0, 0x3768f6f8fb208a51u},
        {1, 0, 500, 0, 0x63129cfc0f41d3ebu},
        {1, 123456789012345, 3, 0, 0xc3468ca7abb54e1eu},
        {2, 0, 500, 0, 0x0275cbe5089b64a3u},
        {-7, 0, 50, 0.5, 0x6a9591f8c9c7c2c2u},
        {1, 0, 500, -1, 0x2a6d42d2361caaeeu},
    };
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        uint64_t h = hash_of(want[i].set, want[i].first, want[i].count, want[i].noise);
        ck_assert_msg(h == want[i].hash, "case %zu: 0x%016llx", i, (unsigned long long)h);
    }
}

TEST(digits_are_what_they_say)
{
    tt_ctx *ctx = test_ctx();
    tt_data *d = tt_digits(ctx, .count = 2000, .no_shuffle = true, .batch = 2000);
    tt_field f[TT_MAX_FIELDS];
    tt_batch_data b;
    CHECK_INT(tt_data_count(d), 2000);
    CHECK_INT(tt_data_fields(d, f), 2);
    CHECK(f[0].shape.rank == 3 && f[0].shape.dim[0] == 28 && f[0].shape.dim[2] == 1);
    CHECK(f[1].shape.rank == 0 && f[1].dtype == TT_I32 && f[1].classes == 10);
    CHECK_OK(tt_data_start(d, 0, 0));
    CHECK_OK(tt_data_next(d, &b));
    int n[10] = {0};
    const float *x = b.fields[0];
    for (int i = 0; i < 2000; i++)
        n[((const int32_t *)b.fields[1])[i]]++;
    for (int i = 0; i < 10; i++)
        CHECK(n[i] > 140 && n[i] < 260);
    int outside = 0;
    for (int i = 0; i < 2000 * 784; i++)
        outside += !(x[i] >= 0.0f && x[i] <= 1.0f);
    CHECK_INT(outside, 0);
    // first moves on in the same set
    tt_data *e = tt_digits(ctx, .count = 10, .first = 1990, .no_shuffle = true, .batch = 10);
    tt_batch_data c;
    CHECK_OK(tt_data_start(e, 0, 0));
    CHECK_OK(tt_data_next(e, &c));
    CHECK(memcmp(x + 1990 * 784, c.fields[0], 10 * 784 * 4) == 0);
    CHECK_OK(tt_close(ctx));
}
