/*
 * philox.c - Philox against the known answers of its authors (Random123, kat_vectors), and the
 * keyed permutation.
 */
#include "../test.h"
#include "base/base.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

TEST(philox_known_answers)
{
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } cases[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const uint32_t *c = cases[i].counter, *k = cases[i].key;
        tti_philox p = tti_philox4(k[0] | (uint64_t)k[1] << 32, c[0] | (uint64_t)c[1] << 32,
                                   c[2] | (uint64_t)c[3] << 32);
        CHECK(memcmp(p.v, cases[i].out, sizeof(p.v)) == 0);
    }
}

TEST(philox_bits_are_even)
{
    int64_t ones[128] = {0};
    for (uint64_t i = 0; i < 20000; i++) {
        tti_philox p = tti_philox4(1, i, 0);
        for (int b = 0; b < 128; b++)
            ones[b] += p.v[b / 32] >> (b % 32) & 1;
    }
    for (int b = 0; b < 128; b++) // 5 deviations of 70
        CHECK(llabs(ones[b] - 10000) < 354);
}

static void check_permutation(uint64_t n, uint64_t key)
{
    uint8_t *seen = calloc(n, 1);
    uint64_t good = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t to = tti_permute(i, n, key);
        good += to < n && seen[to]++ == 0;
    }
    ck_assert_uint_eq(good, n);
    free(seen);
}

TEST(permute_is_a_permutation)
{
    static const uint64_t sizes[] = {1000, 65536, 65537, 100003, 1 << 20, 3000017};
    for (uint64_t n = 1; n <= 300; n++)
        for (uint64_t key = 0; key < 3; key++)
            check_permutation(n, key);
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
        check_permutation(sizes[s], s);
}

TEST(permute_takes_large_ranges)
{
    uint64_t n = (uint64_t)1 << 62;
    uint64_t a = tti_permute(0, n, 9), b = tti_permute(n - 1, n, 9);
    CHECK(a < n && b < n && a != b);
    CHECK(tti_permute(0, n, 10) != a);
    CHECK(tti_permute(5, 0, 1) == 5 && tti_permute(0, 1, 1) == 0);
}

// How far counts are from equal: near 0 on average, deviation 1; above 5 is no accident.
static double unevenness(const int *counts, int n, double total)
{
    double chi = 0, expected = total / n;
    for (int i = 0; i < n; i++)
        chi += (counts[i] - expected) * (counts[i] - expected) / expected;
    return (chi - (n - 1)) / sqrt(2.0 * (n - 1));
}

// The number of a permutation among the n! (its Lehmer code).
static int number_of(const uint64_t *to, int n)
{
    int number = 0;
    for (int i = 0; i < n; i++) {
        int below = 0;
        for (int j = i + 1; j < n; j++)
            below += to[j] < to[i];
        number = number * (n - i) + below;
    }
    return number;
}

// All orders of 2 to 6 things come up equally often.
TEST(permute_reaches_every_order_equally)
{
    static const int orders[] = {1, 1, 2, 6, 24, 120, 720};
    for (int n = 2; n <= 6; n++) {
        int counts[720] = {0}, draws = 2000 * orders[n];
        for (int key = 0; key < draws; key++) {
            uint64_t to[6];
            for (int i = 0; i < n; i++)
                to[i] = tti_permute((uint64_t)i, (uint64_t)n, (uint64_t)key);
            counts[number_of(to, n)]++;
        }
        double u = unevenness(counts, orders[n], draws);
        ck_assert_msg(u < 5, "%d things: chi-square %.1f deviations too high", n, u);
    }
}

// Every element goes to every place equally often, and neighbours come to lie at any distance.
TEST(permute_is_even)
{
    static const int sizes[] = {16, 64, 1000};
    for (int s = 0; s < 3; s++) {
        int n = sizes[s], keys = n < 1000 ? 100 * n : 5 * n;
        int *places = calloc((size_t)n * (size_t)n, sizeof(int)), *apart = calloc((size_t)n, 4);
        for (int key = 0; key < keys; key++) {
            uint64_t before = tti_permute((uint64_t)n - 1, (uint64_t)n, (uint64_t)key);
            for (int i = 0; i < n; i++) {
                uint64_t to = tti_permute((uint64_t)i, (uint64_t)n, (uint64_t)key);
                places[i * n + (int)to]++;
                apart[(int)(to + (uint64_t)n - before) % n]++;
                before = to;
            }
        }
        double u = unevenness(places, n * n, (double)keys * n);
        ck_assert_msg(u < 5, "%d places: chi-square %.1f deviations too high", n, u);
        CHECK_INT(apart[0], 0);
        u = unevenness(apart + 1, n - 1, (double)keys * n);
        ck_assert_msg(u < 5, "%d distances: chi-square %.1f deviations too high", n, u);
        free(places);
        free(apart);
    }
}

TEST(permute_is_odd_half_of_the_time)
{
    static const uint64_t sizes[] = {16, 64, 4, 5, 17, 100};
    for (int s = 0; s < 6; s++) {
        uint64_t n = sizes[s];
        int odd = 0;
        for (uint64_t key = 0; key < 10000; key++) {
            uint64_t seen[2] = {0};
            int cycles = 0;
            for (uint64_t i = 0; i < n; i++)
                for (uint64_t j = i; (seen[j / 64] >> j % 64 & 1) == 0;
                     j = tti_permute(j, n, key)) {
                    cycles += i == j;
                    seen[j / 64] |= (uint64_t)1 << j % 64;
                }
            odd += (int)(n - (uint64_t)cycles) & 1;
        }
        ck_assert_msg(abs(odd - 5000) < 250, "%d of 10000 orders of %d are odd", odd, (int)n);
    }
}

// The order is part of the bits: it must never change.
TEST(permute_is_pinned)
{
    uint64_t h = 0;
    for (uint64_t i = 0; i < 1000; i++)
        h = h * 31 + tti_permute(i, 1000, 42);
    ck_assert_uint_eq(h, 0x50b2abc04ff50782u);
}
