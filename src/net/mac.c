/*
 * mac.c - message authentication (mac.h), as RFC 8439 has it: 2.3 ChaCha20, 2.5 Poly1305, 2.6 the
 * one-time key, which here has the message's number as its nonce. Nothing in it depends on secret
 * values but the numbers themselves: no branch, no address. Long messages go eight blocks at a time
 * where the processor has AVX2, which gives the same tags.
 */
#include "net/mac.h"
#include <string.h>

__extension__ typedef unsigned __int128 wide;

static uint32_t load32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t load64(const uint8_t *p)
{
    return (uint64_t)load32(p) | (uint64_t)load32(p + 4) << 32;
}

static void store64(uint8_t *p, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

// ---- ChaCha20 --------------------------------------------------------------------------------

static inline void quarter(uint32_t *x, int a, int b, int c, int d)
{
#define TURN(v, n) ((v) << (n) | (v) >> (32 - (n)))
    x[a] += x[b], x[d] = TURN(x[d] ^ x[a], 16);
    x[c] += x[d], x[b] = TURN(x[b] ^ x[c], 12);
    x[a] += x[b], x[d] = TURN(x[d] ^ x[a], 8);
    x[c] += x[d], x[b] = TURN(x[b] ^ x[c], 7);
#undef TURN
}

void tti_chacha20(const uint8_t key[TTI_MAC_KEY], uint32_t block, const uint8_t nonce[12],
                  uint8_t out[64])
{
    uint32_t s[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574}, x[16];
    for (int i = 0; i < 8; i++)
        s[4 + i] = load32(key + 4 * (size_t)i);
    s[12] = block;
    for (int i = 0; i < 3; i++)
        s[13 + i] = load32(nonce + 4 * (size_t)i);
    memcpy(x, s, sizeof(x));
    for (int i = 0; i < 10; i++) {
#pragma GCC unroll 4
        for (int k = 0; k < 4; k++)
            quarter(x, k, k + 4, k + 8, k + 12);
#pragma GCC unroll 4
        for (int k = 0; k < 4; k++)
            quarter(x, k, 4 + (k + 1) % 4, 8 + (k + 2) % 4, 12 + (k + 3) % 4);
    }
    for (int i = 0; i < 16; i++) {
        x[i] += s[i];
        for (int b = 0; b < 4; b++)
            out[4 * i + b] = (uint8_t)(x[i] >> 8 * b);
    }
    explicit_bzero(x, sizeof(x));
    explicit_bzero(s, sizeof(s));
}

// ---- Poly1305 --------------------------------------------------------------------------------

#define LOW44 ((UINT64_C(1) << 44) - 1)
#define LOW42 ((UINT64_C(1) << 42) - 1)
#define WAYS  4

// A number modulo 2^130 - 5 in parts of 44, 44 and 42 bits, the last ones not always reduced.
typedef struct residue {
    uint64_t v[3];
} residue;

static residue load(const uint8_t *p, uint64_t top)
{
    uint64_t a = load64(p), b = load64(p + 8);
    return (residue){{a & LOW44, (a >> 44 | b << 20) & LOW44, b >> 24 | top << 40}};
}

// d += a * r. 2^130 is 5; parts beyond it are 2 bits short of their place, so they come back as 20.
static inline void multiply(wide d[3], const residue *a, const residue *r)
{
    uint64_t s1 = 20 * r->v[1], s2 = 20 * r->v[2];
    d[0] += (wide)a->v[0] * r->v[0] + (wide)a->v[1] * s2 + (wide)a->v[2] * s1;
    d[1] += (wide)a->v[0] * r->v[1] + (wide)a->v[1] * r->v[0] + (wide)a->v[2] * s2;
    d[2] += (wide)a->v[0] * r->v[2] + (wide)a->v[1] * r->v[1] + (wide)a->v[2] * r->v[0];
}

static inline residue carry(wide d[3])
{
    residue h;
    d[1] += (uint64_t)(d[0] >> 44);
    d[2] += (uint64_t)(d[1] >> 44);
    h.v[0] = ((uint64_t)d[0] & LOW44) + (uint64_t)(d[2] >> 42) * 5;
    h.v[1] = ((uint64_t)d[1] & LOW44) + (h.v[0] >> 44);
    h.v[2] = (uint64_t)d[2] & LOW42;
    h.v[0] &= LOW44;
    return h;
}

static inline residue add(residue a, residue b)
{
    return (residue){{a.v[0] + b.v[0], a.v[1] + b.v[1], a.v[2] + b.v[2]}};
}

static residue times(residue a, const residue *r)
{
    wide d[3] = {0, 0, 0};
    multiply(d, &a, r);
    return carry(d);
}

// h = (h + block) * r for each block of 16 bytes; four of them at a time, with r^4, r^3, r^2 and r,
// so that one need not wait for the other.
static residue absorb(residue h, const residue r[WAYS], const uint8_t *at, size_t blocks)
{
    for (; blocks >= WAYS; blocks -= WAYS, at += 16 * WAYS) {
        wide d[3] = {0, 0, 0};
        residue a = add(h, load(at, 1)), b = load(at + 16, 1), c = load(at + 32, 1);
        residue e = load(at + 48, 1);
        multiply(d, &b, &r[2]);
        multiply(d, &c, &r[1]);
        multiply(d, &e, &r[0]);
        multiply(d, &a, &r[3]);
        h = carry(d);
    }
    for (; blocks > 0; blocks--, at += 16)
        h = times(add(h, load(at, 1)), &r[0]);
    return h;
}

#if defined(__x86_64__)
#include <immintrin.h>

#define LANES 8 // blocks at a time: two vectors of four
#define LONG  1024
#define AVX2  static inline __attribute__((target("avx2")))

// Four numbers at once, each in parts of 26 bits.
typedef struct quad {
    __m256i v[5];
} quad;

// Four blocks; their order is 0, 2, 1, 3.
AVX2 quad load_quad(const uint8_t *at)
{
    const __m256i low = _mm256_set1_epi64x(0x3ffffff), top = _mm256_set1_epi64x(1 << 24);
    __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)at);
    __m256i y = _mm256_loadu_si256((const __m256i *)(const void *)(at + 32));
    __m256i a = _mm256_unpacklo_epi64(x, y), b = _mm256_unpackhi_epi64(x, y);
    quad q;
    q.v[0] = _mm256_and_si256(a, low);
    q.v[1] = _mm256_and_si256(_mm256_srli_epi64(a, 26), low);
    q.v[2] =
        _mm256_and_si256(_mm256_or_si256(_mm256_srli_epi64(a, 52), _mm256_slli_epi64(b, 12)), low);
    q.v[3] = _mm256_and_si256(_mm256_srli_epi64(b, 14), low);
    q.v[4] = _mm256_or_si256(_mm256_srli_epi64(b, 40), top);
    return q;
}

// a * r; s is 5 r, for what goes beyond 2^130.
AVX2 quad times_quad(const quad *a, const quad *r, const quad *s)
{
    const __m256i low = _mm256_set1_epi64x(0x3ffffff);
    quad d;
#pragma GCC unroll 5
    for (int i = 0; i < 5; i++) {
        d.v[i] = _mm256_mul_epu32(a->v[0], r->v[i]);
#pragma GCC unroll 5
        for (int k = 1; k < 5; k++)
            d.v[i] = _mm256_add_epi64(
                d.v[i], _mm256_mul_epu32(a->v[k], k <= i ? r->v[i - k] : s->v[i + 5 - k]));
    }
    __m256i c;
#pragma GCC unroll 5
    for (int i = 0; i < 4; i++) {
        c = _mm256_srli_epi64(d.v[i], 26);
        d.v[i] = _mm256_and_si256(d.v[i], low);
        d.v[i + 1] = _mm256_add_epi64(d.v[i + 1], c);
    }
    c = _mm256_srli_epi64(d.v[4], 26);
    d.v[4] = _mm256_and_si256(d.v[4], low);
    c = _mm256_add_epi64(c, _mm256_slli_epi64(c, 2));
    d.v[0] = _mm256_add_epi64(d.v[0], c);
    c = _mm256_srli_epi64(d.v[0], 26);
    d.v[0] = _mm256_and_si256(d.v[0], low);
    d.v[1] = _mm256_add_epi64(d.v[1], c);
    return d;
}

AVX2 quad add_quad(quad a, const quad *b)
{
#pragma GCC unroll 5
    for (int i = 0; i < 5; i++)
        a.v[i] = _mm256_add_epi64(a.v[i], b->v[i]);
    return a;
}

// The same number in all four.
AVX2 quad spread_quad(const residue *r, uint64_t factor)
{
    const uint64_t part[5] = {r->v[0] & 0x3ffffff, (r->v[0] >> 26 | r->v[1] << 18) & 0x3ffffff,
                              r->v[1] >> 8 & 0x3ffffff, (r->v[1] >> 34 | r->v[2] << 10) & 0x3ffffff,
                              r->v[2] >> 16};
    quad q;
    for (int i = 0; i < 5; i++)
        q.v[i] = _mm256_set1_epi64x((long long)(part[i] * factor));
    return q;
}

AVX2 residue lane_of(const quad *q, int lane)
{
    uint64_t h[5], all[4];
    for (int i = 0; i < 5; i++) {
        _mm256_storeu_si256((__m256i *)(void *)all, q->v[i]);
        h[i] = all[lane];
    }
    return (residue){{h[0] + ((h[1] & 0x3ffff) << 26),
                      (h[1] >> 18) + (h[2] << 8) + ((h[3] & 0x3ff) << 34),
                      (h[3] >> 10) + (h[4] << 16)}};
}

// As absorb(), with a number for every eighth block; blocks is a multiple of eight, and h begins as
// 0. Last each is multiplied by the power of r that its place is short of.
static __attribute__((target("avx2"))) residue absorb_long(const residue r[LANES],
                                                           const uint8_t *at, size_t blocks)
{
    static const int place[4] = {0, 2, 1, 3};
    residue all = r[LANES - 1]; // its parts in their bits
    all.v[2] += all.v[1] >> 44;
    all.v[1] &= LOW44;
    quad power = spread_quad(&all, 1), five = spread_quad(&all, 5);
    quad a = load_quad(at), b = load_quad(at + 64);
    for (at += 128, blocks -= LANES; blocks > 0; blocks -= LANES, at += 128) {
        quad x = load_quad(at), y = load_quad(at + 64);
        a = times_quad(&a, &power, &five);
        b = times_quad(&b, &power, &five);
        a = add_quad(a, &x);
        b = add_quad(b, &y);
    }
    wide d[3] = {0, 0, 0};
    for (int i = 0; i < 4; i++) {
        residue x = lane_of(&a, i), y = lane_of(&b, i);
        multiply(d, &x, &r[LANES - 1 - place[i]]);
        multiply(d, &y, &r[LANES - 5 - place[i]]);
    }
    return carry(d);
}

static bool is_long(size_t bytes)
{
    return bytes >= LONG && __builtin_cpu_supports("avx2");
}
#else
#define LANES WAYS
static bool is_long(size_t bytes)
{
    (void)bytes;
    return false;
}

static residue absorb_long(const residue *r, const uint8_t *at, size_t blocks)
{
    return absorb((residue){{0, 0, 0}}, r, at, blocks);
}
#endif

// h modulo 2^130 - 5, plus the second half of the key modulo 2^128.
static tti_tag finish(residue h, const uint8_t pad[16])
{
    for (int i = 0; i < 2; i++) { // all parts in their bits
        h.v[2] += h.v[1] >> 44;
        h.v[1] &= LOW44;
        h.v[0] += (h.v[2] >> 42) * 5;
        h.v[2] &= LOW42;
        h.v[1] += h.v[0] >> 44;
        h.v[0] &= LOW44;
    }
    uint64_t g0 = h.v[0] + 5, g1 = h.v[1] + (g0 >> 44), g2 = h.v[2] + (g1 >> 44);
    uint64_t mask = 0 - (g2 >> 42); // all ones where h is 2^130 - 5 or more
    h.v[0] = (h.v[0] & ~mask) | (g0 & LOW44 & mask);
    h.v[1] = (h.v[1] & ~mask) | (g1 & LOW44 & mask);
    h.v[2] = (h.v[2] & ~mask) | (g2 & LOW42 & mask);
    wide t = (wide)(h.v[0] | h.v[1] << 44) + load64(pad);
    tti_tag tag;
    store64(tag.byte, (uint64_t)t);
    store64(tag.byte + 8, (h.v[1] >> 20 | h.v[2] << 24) + load64(pad + 8) + (uint64_t)(t >> 64));
    return tag;
}

tti_tag tti_poly1305(const uint8_t key[TTI_MAC_KEY], const void *data, size_t bytes)
{
    static const uint8_t bits[16] = {0xff, 0xff, 0xff, 0x0f, 0xfc, 0xff, 0xff, 0x0f,
                                     0xfc, 0xff, 0xff, 0x0f, 0xfc, 0xff, 0xff, 0x0f};
    uint8_t clamped[16], last[16] = {0};
    residue r[LANES], h = {{0, 0, 0}};
    const uint8_t *at = data;
    size_t blocks = bytes / 16, first = is_long(bytes) ? blocks / LANES * LANES : 0;
    for (int i = 0; i < 16; i++)
        clamped[i] = key[i] & bits[i];
    r[0] = load(clamped, 0);
    for (int i = 1; i < (first > 0 ? LANES : WAYS); i++)
        r[i] = times(r[i - 1], &r[0]);
    if (first > 0)
        h = absorb_long(r, at, first);
    h = absorb(h, r, at + 16 * first, blocks - first);
    if (bytes % 16 != 0) {
        memcpy(last, (const uint8_t *)data + bytes / 16 * 16, bytes % 16);
        last[bytes % 16] = 1;
        h = times(add(h, load(last, 0)), &r[0]);
    }
    return finish(h, key + 16);
}

tti_tag tti_mac(const uint8_t key[TTI_MAC_KEY], uint64_t number, const void *data, size_t bytes)
{
    uint8_t nonce[12] = {0}, block[64];
    store64(nonce + 4, number);
    tti_chacha20(key, 0, nonce, block);
    tti_tag tag = tti_poly1305(block, data, bytes);
    explicit_bzero(block, sizeof(block));
    return tag;
}
