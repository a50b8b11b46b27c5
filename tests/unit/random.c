/*
 * random.c - first values of variables: the scalar generator's words, the right distributions, any
 * piece alone, the same bits in every instruction set, by any number of threads.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#pragma GCC optimize("no-inline") // as the Makefile has it: minutes to compile otherwise
#endif
#include "test.h"

#include "base/base.h"
#include "base/ctx.h"
#include "op/cpu/half.h"
#include "op/cpu/philox.h"
#include "op/cpu/vmath.h"
#include "op/init.h"
#include "op/random.h"
#include <math.h>
#include <stdlib.h>

enum {
    N = 40000
};
static float x[N], y[N];

static const tt_init kinds[] = {
    {TT_INIT_ZEROS, 0, 0},         {TT_INIT_CONSTANT, 0.3, 0},       {TT_INIT_UNIFORM, -1, 3},
    {TT_INIT_NORMAL, 1, 2},        {TT_INIT_TRUNCATED_NORMAL, 1, 2}, {TT_INIT_GLOROT_UNIFORM, 0, 0},
    {TT_INIT_GLOROT_NORMAL, 0, 0}, {TT_INIT_HE_UNIFORM, 0, 0},       {TT_INIT_HE_NORMAL, 0, 0},
    {TT_INIT_LECUN_UNIFORM, 0, 0}, {TT_INIT_LECUN_NORMAL, 0, 0},
};

static void fill(tt_ctx *ctx, int isa, tt_init init, tt_shape shape, int64_t begin, int64_t end,
                 float *out)
{
    CHECK_OK(tti_init_values(ctx, isa, &init, &shape, TT_F32, 7, 1234567, begin, end, out));
}

TEST(init_uniform_takes_the_generators_words)
{
    tt_ctx *ctx = test_ctx();
    fill(ctx, TT_ISA_PLAIN, (tt_init){TT_INIT_UNIFORM, 0, 1}, TT_SHAPE(1000), 0, 1000, x);
    for (int64_t e = 0; e < 1000; e++) {
        uint64_t number = (uint64_t)(e / 64 * 16 + e % 16);
        tti_philox w = tti_philox4(tti_random_key(7, 1234567), number, 0);
        CHECK(x[e] == (float)(w.v[e % 64 / 16] >> 8) * 0x1p-24f);
    }
    CHECK_OK(tt_close(ctx));
}

static int isa_number(const char *name)
{
    return strcmp(name, "avx512") == 0 ? TT_ISA_AVX512
           : strcmp(name, "avx2") == 0 ? TT_ISA_AVX2
           : strcmp(name, "fma") == 0  ? TT_ISA_FMA
                                       : TT_ISA_PLAIN;
}

TEST(init_is_the_same_in_every_set_and_piece)
{
    tt_ctx *ctx = test_ctx();
    tt_shape shape = TT_SHAPE(100, 400);
    for (int k = 0; k < TTI_COUNT(kinds); k++) {
        fill(ctx, TT_ISA_PLAIN, kinds[k], shape, 0, N, x);
        for (int set = 0; test_isa(set) != NULL; set++) {
            int isa = isa_number(test_isa(set));
            fill(ctx, isa, kinds[k], shape, 0, N, y);
            CHECK(memcmp(x, y, sizeof(x)) == 0);
            int64_t at[] = {0, 1, 63, 64, 200, 12345, N};
            for (int i = 0; i + 1 < TTI_COUNT(at); i++)
                fill(ctx, isa, kinds[k], shape, at[i], at[i + 1], y + at[i]);
            CHECK(memcmp(x, y, sizeof(x)) == 0);
        }
    }
    CHECK_OK(tt_close(ctx));
}

// ---- the definition, one element at a time ---------------------------------------------------

// Element e of draw number n, of mean 0 and deviation 1.
static float scalar_normal(uint64_t key, int64_t e, uint64_t n)
{
    uint64_t number = (uint64_t)(e / 64 * 16 + e % 16);
    int word = (int)(e % 64 / 16);
    tti_philox w = tti_philox4(key, number & UINT32_MAX, n | number >> 32 << 32);
    float u = ((float)(w.v[word & 2] >> 8) + 1) * 0x1p-24f;
    float angle = (float)(w.v[word | 1] >> 8) * (6.2831853f * 0x1p-24f);
    float radius = r_sqrt(-2 * r_log(u));
    return radius * ((word & 1) == 0 ? r_cos(angle) : r_sin(angle));
}

static float scalar_value(const tt_init *init, const tt_shape *shape, int64_t e)
{
    tti_draw d = tti_draw_of(init, shape);
    uint64_t key = tti_random_key(7, 1234567), number = (uint64_t)(e / 64 * 16 + e % 16);
    if (d.kind == TT_INIT_CONSTANT)
        return d.a;
    if (d.kind == TT_INIT_UNIFORM) {
        tti_philox w = tti_philox4(key, number & UINT32_MAX, number >> 32 << 32);
        return fmaf((float)(w.v[e % 64 / 16] >> 8) * 0x1p-24f, d.b - d.a, d.a);
    }
    float z = scalar_normal(key, e, 0);
    for (uint64_t n = 1; d.kind == TT_INIT_TRUNCATED_NORMAL && fabsf(z) > 2; n++)
        z = scalar_normal(key, e, n);
    return fmaf(z, d.b, d.a);
}

// Elements [begin, begin + n) of a type, with what surrounds them left alone.
static void check_range(tt_ctx *ctx, int isa, const tt_init *init, tt_dtype dtype, int64_t begin,
                        int64_t n)
{
    enum {
        ROOM = 8
    };
    static unsigned char memory[(400 + 2 * ROOM) * sizeof(double)];
    tt_shape shape = TT_SHAPE(96, 1 << 30);
    size_t size = tt_dtype_bytes(dtype), bytes = (size_t)n * size;
    unsigned char *out = memory + ROOM * size;
    memset(memory, 0xA5, sizeof(memory));
    CHECK_OK(tti_init_values(ctx, isa, init, &shape, dtype, 7, 1234567, begin, begin + n, out));
    for (int64_t i = 0; i < n; i++) {
        float want = scalar_value(init, &shape, begin + i);
        double wide = init->kind == TT_INIT_CONSTANT ? init->a : (double)want;
        uint16_t half = dtype == TT_BF16 ? r_to_bf16(want) : r_to_f16(want);
        const void *expected = dtype == TT_F32   ? (const void *)&want
                               : dtype == TT_F64 ? (const void *)&wide
                                                 : (const void *)&half;
        CHECK(memcmp(out + (size_t)i * size, expected, size) == 0);
    }
    for (size_t i = 0; i < sizeof(memory); i++)
        CHECK((i >= ROOM * size && i < ROOM * size + bytes) || memory[i] == 0xA5);
}

TEST(init_has_the_values_of_the_scalar_definition)
{
    tt_ctx *ctx = test_ctx();
    const tt_dtype types[] = {TT_F32, TT_F64, TT_BF16, TT_F16};
    // Counters have 64 bits: the last offset is where their low half is full.
    const int64_t begins[] = {0, 1, 15, 16, 17, 63, 64, 65, 1000003, (INT64_C(1) << 34) - 33};
    const int64_t counts[] = {0, 1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 129, 333};
    unsigned saved = tti_fp_enter();
    for (int set = 0; test_isa(set) != NULL; set++)
        for (int k = 0; k < TTI_COUNT(kinds); k++)
            for (int t = 0; t < TTI_COUNT(types); t++)
                for (int b = 0; b < TTI_COUNT(begins); b++)
                    for (int c = 0; c < TTI_COUNT(counts); c++)
                        if ((b + 3 * c + k) % (t == 0 ? 3 : 11) == 0) // all with some kind
                            check_range(ctx, isa_number(test_isa(set)), &kinds[k], types[t],
                                        begins[b], counts[c]);
    tti_fp_leave(saved);
    CHECK_OK(tt_close(ctx));
}

// ---- threads ---------------------------------------------------------------------------------

// The variable as a session makes it, and by one call.
static void check_made(const char *devices, int threads, tt_init init, tt_shape shape)
{
    tt_ctx *ctx = test_ctx_on(devices, NULL, threads);
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *v = tt_variable(g, .shape = shape, .init = init, .name = "w");
    int64_t n = tt_shape_count(&shape);
    float *got = malloc(sizeof(*got) * (size_t)n), *want = malloc(sizeof(*want) * (size_t)n);
    CHECK_OK(tt_get_variable(tt_session_new(g), v, got, sizeof(*got) * (size_t)n));
    CHECK_OK(tti_init_values(ctx, TT_ISA_PLAIN, &init, &shape, TT_F32, ctx->seed,
                             tt_tensor_get_node(v)->key, 0, n, want));
    CHECK(memcmp(got, want, sizeof(*got) * (size_t)n) == 0);
    free(got);
    free(want);
    CHECK_OK(tt_close(ctx));
}

TEST(init_is_the_same_by_any_threads_and_devices)
{
    const struct {
        const char *devices;
        int threads;
    } cases[] = {{"cpu:0", 1}, {"cpu:0", 3}, {"cpu:0*2", 2}, {"cpu:0*3", 5}};
    for (int i = 0; i < TTI_COUNT(cases); i++)
        for (int k = 0; k < TTI_COUNT(kinds); k++) // several chunks, the last one not whole
            check_made(cases[i].devices, cases[i].threads, kinds[k], TT_SHAPE(1021, 317));
}

static void moments(double *mean, double *deviation, double *most)
{
    double s = 0, q = 0;
    *most = 0;
    for (int i = 0; i < N; i++) {
        s += x[i];
        *most = fmax(*most, fabs(x[i]));
    }
    *mean = s / N;
    for (int i = 0; i < N; i++)
        q += (x[i] - *mean) * (x[i] - *mean);
    *deviation = sqrt(q / N);
}

TEST(init_has_the_right_moments)
{
    tt_ctx *ctx = test_ctx();
    double mean, dev, most;

    fill(ctx, 0, (tt_init){TT_INIT_NORMAL, 1, 2}, TT_SHAPE(N), 0, N, x);
    moments(&mean, &dev, &most);
    CHECK_NEAR(mean, 1, 0.05);
    CHECK_NEAR(dev, 2, 0.04);
    CHECK(most > 6); // three deviations are reached

    fill(ctx, 0, (tt_init){TT_INIT_TRUNCATED_NORMAL, 0, 1}, TT_SHAPE(N), 0, N, x);
    moments(&mean, &dev, &most);
    CHECK_NEAR(mean, 0, 0.025);
    CHECK_NEAR(dev, 0.87963, 0.02);
    CHECK(most <= 2 && most > 1.99);

    fill(ctx, 0, (tt_init){TT_INIT_UNIFORM, -1, 3}, TT_SHAPE(N), 0, N, x);
    moments(&mean, &dev, &most);
    CHECK_NEAR(mean, 1, 0.03);
    CHECK_NEAR(dev, 4 / sqrt(12), 0.02);
    CHECK_OK(tt_close(ctx));
}

TEST(init_counts_fans)
{
    tt_ctx *ctx = test_ctx();
    double mean, dev, most;
    const struct {
        tt_init_kind kind;
        tt_shape shape;
        double want; // limit of a uniform, deviation of a normal
    } cases[] = {
        {TT_INIT_GLOROT_UNIFORM, TT_SHAPE(100, 400), sqrt(6.0 / 500)},
        {TT_INIT_HE_UNIFORM, TT_SHAPE(100, 400), sqrt(6.0 / 100)},
        {TT_INIT_GLOROT_UNIFORM, TT_SHAPE(5, 5, 16, 100), sqrt(6.0 / (25 * 116))},
        {TT_INIT_HE_NORMAL, TT_SHAPE(5, 5, 16, 100), sqrt(2.0 / 400)},
        {TT_INIT_GLOROT_NORMAL, TT_SHAPE(N), sqrt(2.0 / (2.0 * N))},
        {TT_INIT_LECUN_UNIFORM, TT_SHAPE(100, 400), sqrt(3.0 / 100)},
        {TT_INIT_LECUN_NORMAL, TT_SHAPE(5, 5, 16, 100), sqrt(1.0 / 400)},
    };
    for (int i = 0; i < TTI_COUNT(cases); i++) {
        bool uniform = cases[i].kind == TT_INIT_GLOROT_UNIFORM ||
                       cases[i].kind == TT_INIT_HE_UNIFORM ||
                       cases[i].kind == TT_INIT_LECUN_UNIFORM;
        fill(ctx, 0, (tt_init){cases[i].kind, 0, 0}, cases[i].shape, 0, N, x);
        moments(&mean, &dev, &most);
        CHECK_NEAR(uniform ? most : dev, cases[i].want, 0.02 * cases[i].want);
        CHECK(!uniform || most <= cases[i].want * 1.000001);
    }
    CHECK_OK(tt_close(ctx));
}

TEST(init_of_other_types_rounds_the_same_numbers)
{
    tt_ctx *ctx = test_ctx();
    tt_shape shape = TT_SHAPE(1000);
    tt_init normal = {TT_INIT_NORMAL, 0, 1};
    static double wide[1000];
    static uint16_t half[1000];
    int32_t whole[3];

    fill(ctx, 0, normal, shape, 0, 1000, x);
    CHECK_OK(tti_init_values(ctx, 0, &normal, &shape, TT_F64, 7, 1234567, 0, 1000, wide));
    for (int i = 0; i < 1000; i++)
        CHECK(wide[i] == (double)x[i]);
    CHECK_OK(tti_init_values(ctx, 0, &normal, &shape, TT_BF16, 7, 1234567, 0, 1000, half));
    for (int i = 0; i < 1000; i++)
        CHECK(half[i] == r_to_bf16(x[i]));
    CHECK_OK(tti_init_values(ctx, 0, &(tt_init){TT_INIT_CONSTANT, 3, 0}, &shape, TT_I32, 7, 1, 0, 3,
                             whole));
    CHECK(whole[0] == 3 && whole[2] == 3);
    CHECK(tti_init_values(ctx, 0, &normal, &shape, TT_I32, 7, 1, 0, 3, whole) == TT_EDTYPE);
    CHECK_MESSAGE(ctx, "need a float type, not i32");
    CHECK(tt_close(ctx) == TT_EDTYPE);
}
