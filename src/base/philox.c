/*
 * philox.c - random numbers without state: Philox-4x32-10 of Salmon et al. (2011) turns a counter
 * and a key into four random words, and a keyed permutation gives the order of samples.
 */
#include "base/base.h"

tti_philox tti_philox4(uint64_t key, uint64_t counter_low, uint64_t counter_high)
{
    uint32_t c0 = (uint32_t)counter_low, c1 = (uint32_t)(counter_low >> 32);
    uint32_t c2 = (uint32_t)counter_high, c3 = (uint32_t)(counter_high >> 32);
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);

    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += 0x9E3779B9u; // the key moves between rounds
        k1 += 0xBB67AE85u;
    }
    return (tti_philox){{c0, c1, c2, c3}};
}

// Scrambles 64 bits (the finalizer of MurmurHash3).
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 33) * 0xFF51AFD7ED558CCDull;
    x = (x ^ x >> 33) * 0xC4CEB9FE1A85EC53ull;
    return x ^ x >> 33;
}

/*
 * A Feistel network permutes the numbers of 2 h bits, at most 4 n of them. Walking the cycle from i
 * until the value is below n is then a permutation of 0..n-1 and takes under four steps on average.
 */
uint64_t tti_permute(uint64_t i, uint64_t n, uint64_t key)
{
    if (n < 2 || i >= n)
        return i;
    int bits = 64 - __builtin_clzll(n - 1);
    int h = (bits + 1) / 2;
    uint64_t mask = ((uint64_t)1 << h) - 1, stream = mix(key + 0x9E3779B97F4A7C15ull);

    do {
        uint64_t left = i >> h, right = i & mask;
        for (uint64_t round = 1; round <= 8; round++) {
            uint64_t f = mix((right + round * 0x9E3779B97F4A7C15ull) ^ stream) >> 32;
            uint64_t next = left ^ (f & mask);
            left = right;
            right = next;
        }
        i = left << h | right;
    } while (i >= n);
    return i;
}
