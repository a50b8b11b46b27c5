/*
 * cuda_index.c - the sums over ids of src/op/gpu/index.cu, called alone: lane by lane and position
 * by position, to the bit; ids out of range are told of.
 */
#include "base/base.h"
#include "cuda_module.h"
#include "op/index.h"
#include <stdio.h>
#include <stdlib.h>

#define MAX_LANES 40
#define MAX_IDS   4096
#define MAX_OUT   (80000 * 4)

typedef struct trial {
    int64_t rows, before, tail; // ids are [before, rows, tail], split along rows
    int64_t outer, places, inner;
    int lanes;
    int64_t named; // so many places are named
    tt_dtype ids, type;
    bool whole; // all lanes are here: one result
} trial;

static const trial trials[] = {
    {13, 1, 1, 1, 11, 5, 8, 11, TT_I32, TT_F32, true},
    {64, 1, 33, 1, 300, 8, 8, 7, TT_I64, TT_F32, true}, // places with hundreds of positions
    {64, 1, 33, 1, 300, 132, 8, 1, TT_I32, TT_BF16, true},
    {1, 1, 1, 1, 1, 1, 3, 1, TT_I32, TT_F32, true},
    {45, 3, 2, 2, 40, 12, 40, 9, TT_I32, TT_F16, true}, // rows are not outermost
    {50, 2, 7, 1, 70000, 1, 7, 70000, TT_I64, TT_F32, false},
    {5, 1, 9, 3, 257, 3, 8, 257, TT_I32, TT_BF16, false}, // lanes without rows
    {2048, 1, 2, 1, 2, 4, 16, 2, TT_I32, TT_F32, false},
    {97, 1, 21, 2, 3, 37, 1, 2, TT_I32, TT_F32, true}, // chains of one lane
};

static int64_t ids[MAX_IDS];
static float x[1 << 19], want[MAX_OUT], got[MAX_OUT];
static uint16_t halves[1 << 19];

static uint32_t next(uint32_t *r)
{
    return *r = *r * 1664525u + 1013904223u, *r >> 8;
}

// The tree over lanes: merges[i] after lane i; without the last ones unless all lanes are here.
static int make_lanes(const trial *t, int64_t *bound, uint8_t *merges)
{
    int depth = 0;
    for (int i = 0; i < t->lanes; i++) {
        bound[i] = i * t->rows / t->lanes;
        merges[i] = 0;
        for (int k = i + 1; k % 2 == 0; k /= 2)
            merges[i]++;
        depth += 1 - merges[i];
    }
    bound[t->lanes] = t->rows;
    if (!t->whole)
        return depth;
    merges[t->lanes - 1] = (uint8_t)(merges[t->lanes - 1] + depth - 1);
    return 1;
}

#define CHAIN 64 // as in src/op/gpu/index.cu

// One place and column of want: its positions of each lane in chains, those in order, then lanes.
static void expect(const trial *t, const tt_lanes *ln, int64_t o, int64_t id, int64_t c)
{
    int64_t count = t->before * t->rows * t->tail;
    float stack[MAX_LANES];
    int depth = 0;
    for (int i = 0; i < ln->n; i++) {
        float sum = 0, chain = 0;
        int n = 0;
        for (int64_t b = 0; b < t->before; b++)
            for (int64_t k = ln->bound[i] * t->tail; k < ln->bound[i + 1] * t->tail; k++) {
                int64_t at = b * t->rows * t->tail + k;
                if (ids[at] != id)
                    continue;
                if (n++ % CHAIN == 0) {
                    sum += chain;
                    chain = 0;
                }
                chain += x[(o * count + at) * t->inner + c];
            }
        stack[depth++] = sum + chain;
        for (int m = ln->merges[i]; m > 0; m--, depth--)
            stack[depth - 2] += stack[depth - 1];
    }
    for (int p = 0; p < depth; p++)
        want[((p * t->outer + o) * t->places + id) * t->inner + c] = stack[p] + 0.0f;
}

static void fill(const trial *t, int64_t count, int64_t n)
{
    uint32_t r = 7;
    for (int64_t i = 0; i < count; i++)
        ids[i] = i % 5 == 4 ? 0 : next(&r) % t->named;
    test_fill(x, n, 3, -2, 2);
    for (int64_t i = 0; i < n; i++) {
        halves[i] = t->type == TT_F16 ? tti_to_f16(x[i]) : tti_to_bf16(x[i]);
        if (t->type != TT_F32)
            x[i] = t->type == TT_F16 ? tti_from_f16(halves[i]) : tti_from_bf16(halves[i]);
    }
}

static tt_arg ids_arg(const trial *t, int64_t count)
{
    static int32_t narrow[MAX_IDS];
    for (int64_t i = 0; i < count; i++)
        narrow[i] = (int32_t)ids[i];
    tt_arg a = test_device_arg(t->ids, count, t->ids == TT_I32 ? (void *)narrow : (void *)ids, 0);
    a.shape = (tt_shape){3, {t->before, t->rows, t->tail}};
    a.open = 1;
    a.per = 1;
    return a;
}

static void try(const trial *t, size_t skip)
{
    int64_t bound[MAX_LANES + 1], count = t->before * t->rows * t->tail;
    uint8_t merges[MAX_LANES];
    int parts = make_lanes(t, bound, merges);
    tt_lanes ln = {
        .total = t->lanes, .n = t->lanes, .n_parts = parts, .bound = bound, .merges = merges};
    int64_t n = t->outer * count * t->inner, n_out = parts * t->outer * t->places * t->inner;
    CHECK(count <= MAX_IDS && n <= 1 << 19 && n_out <= MAX_OUT);
    fill(t, count, n);
    tti_scatter_attr attr = {1, t->places};
    tt_arg in[2] = {
        test_device_arg(t->type, n, t->type == TT_F32 ? (void *)x : (void *)halves, skip),
        ids_arg(t, count)};
    in[0].shape = (tt_shape){5, {t->outer, t->before, t->rows, t->tail, t->inner}};
    tt_arg out = test_device_arg(TT_F32, n_out, NULL, skip);
    out.shape = (tt_shape){4, {parts, t->outer, t->places, t->inner}};
    tt_launch l = {.attr = &attr, .in = in, .n_in = 2, .out = &out, .n_out = 1, .lanes = &ln};
    ck_assert_msg(test_device_run("scatter_add", l) == TT_OK, "%s", test_device_reason());
    memset(want, 0, sizeof(want)); // what no id names
    for (int64_t o = 0; o < t->outer; o++)
        for (int64_t i = 0; i < count; i++)
            for (int64_t c = 0; c < t->inner && (i < 40 || ids[i] > 0); c++)
                expect(t, &ln, o, ids[i], c);
    test_device_get(got, &out);
    CHECK(memcmp(got, want, (size_t)n_out * sizeof(float)) == 0);
    test_device_clear();
}

TEST(cuda_sums_over_ids_keep_their_order)
{
    test_device_open();
    for (size_t i = 0; i < sizeof(trials) / sizeof(trials[0]); i++)
        for (size_t skip = 0; skip < 2; skip++)
            try(&trials[i], skip);
    test_device_close();
}

// Each kernel that looks at ids names the one that is wrong, and the next run is well again.
TEST(cuda_ids_out_of_range_fail_the_run)
{
    static const char *const names[] = {"scatter_add", "gather"};
    static const int64_t bad[] = {-1, 11, (int64_t)1 << 40};
    trial t = trials[0];
    t.ids = TT_I64;
    int64_t bound[] = {0, 13};
    uint8_t merges[] = {0};
    tt_lanes ln = {.total = 1, .n = 1, .n_parts = 1, .bound = bound, .merges = merges};
    tti_scatter_attr attr = {0, 11}; // a gather's begins with the axis, too
    test_device_open();
    for (int i = 0; i < 6; i++) {
        fill(&t, 13, 13 * 5);
        ids[9] = bad[i / 2];
        tt_arg rows = test_device_arg(TT_F32, 13 * 5, x, 0);
        tt_arg table = test_device_arg(TT_F32, 11 * 5, x, 0);
        rows.shape = (tt_shape){4, {1, 13, 1, 5}};
        table.shape = (tt_shape){2, {11, 5}};
        bool is_gather = i % 2 == 1;
        tt_arg in[2] = {is_gather ? table : rows, ids_arg(&t, 13)};
        tt_arg out = is_gather ? rows : table;
        tt_launch l = {.attr = &attr, .in = in, .n_in = 2, .out = &out, .n_out = 1, .lanes = &ln};
        char text[128];
        snprintf(text, sizeof(text), "id %lld at position 9 is %s", (long long)bad[i / 2],
                 i < 2 ? "below 0" : "not below 11");
        CHECK(test_device_run(names[i % 2], l) == TT_EINVAL);
        ck_assert_msg(strstr(test_device_reason(), names[i % 2]) != NULL &&
                          strstr(test_device_reason(), text) != NULL,
                      "%s", test_device_reason());
        ids[9] = 10;
        in[1] = ids_arg(&t, 13);
        CHECK_OK(test_device_run(names[i % 2], l));
        test_device_clear();
    }
    test_device_close();
}
