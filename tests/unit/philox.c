/*
 * philox.c - Philox against the known answers of its authors (Random123, kat_vectors), and the
 * keyed permutation.
 */
#include "../test.h"
#include "base/base.h"
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

TEST(permute_is_a_permutation)
{
    static const uint64_t sizes[] = {1, 2, 3, 4, 5, 7, 16, 17, 100, 1000, 65536, 65537, 100003};
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        for (uint64_t key = 0; key < 3; key++) {
            uint64_t n = sizes[s];
            uint8_t *seen = calloc(n, 1);
            for (uint64_t i = 0; i < n; i++) {
                uint64_t to = tti_permute(i, n, key);
                CHECK(to < n && seen[to] == 0);
                seen[to] = 1;
            }
            free(seen);
        }
    }
}

TEST(permute_takes_large_ranges)
{
    uint64_t n = (uint64_t)1 << 62;
    uint64_t a = tti_permute(0, n, 9), b = tti_permute(n - 1, n, 9);
    CHECK(a < n && b < n && a != b);
    CHECK(tti_permute(0, n, 10) != a);
    CHECK(tti_permute(5, 0, 1) == 5 && tti_permute(0, 1, 1) == 0);
}

// Each of the six orders of three things comes up about equally often; so do first elements.
TEST(permute_is_even)
{
    int orders[27] = {0}, firsts[100] = {0};
    for (uint64_t key = 0; key < 60000; key++) {
        uint64_t a = tti_permute(0, 3, key), b = tti_permute(1, 3, key);
        orders[a * 9 + b * 3 + tti_permute(2, 3, key)]++;
        firsts[tti_permute(0, 100, key)]++;
    }
    int kinds = 0;
    for (int i = 0; i < 27; i++) {
        kinds += orders[i] > 0;
        CHECK(orders[i] == 0 || abs(orders[i] - 10000) < 600);
    }
    CHECK_INT(kinds, 6);
    for (int i = 0; i < 100; i++) // 600 expected, deviation 24
        CHECK(abs(firsts[i] - 600) < 150);
}

// The order is part of the bits: it must never change.
TEST(permute_is_pinned)
{
    uint64_t h = 0;
    for (uint64_t i = 0; i < 1000; i++)
        h = h * 31 + tti_permute(i, 1000, 42);
    ck_assert_uint_eq(h, 0xddd0b764d70a0704u);
}
