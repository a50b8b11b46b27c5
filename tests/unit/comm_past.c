/*
 * comm_past.c - memory written past the cache, or through it and past it by turns: sums and copies
 * have the same bytes at any place and length, and nothing beside them is touched.
 */
#include "comm/transport/process.h"
#include "test.h"
#include <stdlib.h>
#include <string.h>

enum {
    COUNT = 3000,
    MARGIN = 64,
    MEMBERS = 3
};

typedef struct sums {
    float in[MEMBERS][COUNT + MARGIN];
    float out[MEMBERS][COUNT + 2 * MARGIN], copy[COUNT + 2 * MARGIN];
} sums;

static bool is_untouched(const float *x, int n)
{
    for (int i = 0; i < n; i++)
        if (x[i] != -7)
            return false;
    return true;
}

// Sums of members whose memory begins so many elements after a line; in place if in is out.
static void sum_at(tt_ctx *ctx, sums *s, int shift, int64_t begin, int64_t end, int ways)
{
    float want[COUNT];
    tt_member m[MEMBERS];
    tti_reduction r;
    tti_comm_call call;
    bool in_place = (ways & 4) != 0;
    for (int i = 0; i < MEMBERS; i++) {
        for (int k = 0; k < COUNT + 2 * MARGIN; k++)
            s->out[i][k] = s->copy[k] = -7;
        test_fill(s->in[i] + shift, COUNT, (uint64_t)i, -1, 1);
        float *out = s->out[i] + MARGIN + shift;
        if (in_place)
            memcpy(out, s->in[i] + shift, sizeof(want));
        m[i] = (tt_member){in_place ? out : s->in[i] + shift, out, COUNT, 0, 0};
    }
    for (int k = 0; k < COUNT; k++)
        want[k] = (s->in[0][shift + k] + s->in[1][shift + k]) + s->in[2][shift + k];
    CHECK_OK(tti_call_begin(ctx, TTI_ALL_REDUCE, m, MEMBERS, 0, MEMBERS,
                            TT_OPTS(tt_comm_opts, .lanes = 4), &call));
    CHECK_OK(tti_reduction_make(ctx, &call, &r));
    r.passes = (ways & 1) != 0;
    r.copy_passes = (ways & 2) != 0;
    r.copy = (char *)(s->copy + MARGIN);
    tti_reduction_run(&r, begin, end);
    for (int i = 0; i <= MEMBERS; i++) {
        float *out = i < MEMBERS ? s->out[i] + MARGIN + shift : s->copy + MARGIN;
        ck_assert(memcmp(out + begin, want + begin, (size_t)(end - begin) * sizeof(float)) == 0);
        ck_assert(is_untouched(out - MARGIN / 2, MARGIN / 2));
        ck_assert(is_untouched(out + COUNT, MARGIN / 2));
        if (i == MEMBERS || !in_place)
            ck_assert(is_untouched(out, (int)begin) && is_untouched(out + end, (int)(COUNT - end)));
    }
}

TEST(sums_past_the_cache_have_the_same_bits)
{
    tt_ctx *ctx = test_ctx();
    sums *s = aligned_alloc(64, (sizeof(*s) + 63) / 64 * 64);
    ck_assert_ptr_nonnull(s);
    static const int64_t ranges[][2] = {{0, COUNT}, {1, COUNT - 1}, {15, 16}, {700, 2047}, {9, 9}};
    for (int ways = 0; ways < 8; ways++)
        for (int shift = 0; shift < 17; shift += ways % 2 + 1)
            for (int k = 0; k < TTI_COUNT(ranges); k++)
                sum_at(ctx, s, shift, ranges[k][0], ranges[k][1], ways);
    free(s);
    CHECK_OK(tt_close(ctx));
}

// Long enough that both ways and the trials between them are taken.
TEST(what_is_put_for_others_arrives_whole)
{
    enum {
        MOST = 9000
    };
    tti_process p = {.passes = true};
    static char from[MOST + 64], to[MOST + 3 * 64];
    for (int i = 0; i < (int)sizeof(from); i++)
        from[i] = (char)(i * 31 + i / 251);
    for (int n = 0; n < 400; n++) {
        size_t at = 64 + (size_t)(n * 7 % 64), begin = (size_t)(n * 13 % 64);
        size_t bytes = n % 3 == 0 ? (size_t)(2040 + n % 17) : (size_t)(n * 71 % MOST);
        memset(to, 99, sizeof(to));
        tti_process_put(&p, to + at, from + begin, bytes);
        ck_assert(memcmp(to + at, from + begin, bytes) == 0);
        for (int i = 1; i <= 64; i++)
            ck_assert(to[at - (size_t)i] == 99 && to[at + bytes + (size_t)i - 1] == 99);
    }
    ck_assert_uint_gt(p.n_puts, 128);
}
