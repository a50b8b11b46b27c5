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

__extension__ typedef unsigned __int128 uint128;

#define ROUNDS 24 // what is left of the order 0..n-1 halves with each round

/*
 * The swap-or-not shuffle of Hoang, Morris and Rogaway (2012). A round pairs i with turn - i modulo
 * n, and a random bit of the pair swaps the two or leaves them. So it works for every n without
 * trying again, reaches odd permutations as often as even ones, and each round that swaps just one
 * of two elements makes them independent.
 */
void tti_permute_some(uint64_t *i, int64_t count, uint64_t n, uint64_t key)
{
    uint64_t stream = mix(key + 0x9E3779B97F4A7C15ull);
    for (uint64_t round = 1; n > 1 && round <= ROUNDS; round++) {
        uint64_t k = mix(stream + round * 0x9E3779B97F4A7C15ull);
        uint64_t turn = (uint64_t)((uint128)k * n >> 64); // below n
        for (int64_t j = 0; j < count; j++) {
            uint64_t other = turn - i[j] + (turn < i[j] ? n : 0);
            uint64_t pair = i[j] > other ? i[j] : other; // the same for both
            i[j] ^= (i[j] ^ other) & -(mix(pair + k) >> 63);
        }
    }
}

uint64_t tti_permute(uint64_t i, uint64_t n, uint64_t key)
{
    if (i < n)
        tti_permute_some(&i, 1, n, key);
    return i;
}
