/*
 * keys.c - keys derived from the job's secret by HMAC-SHA-256.
 *
 * The job has one secret of 32 random bytes. What a rank needs is HMAC(secret, "tutti 1 PURPOSE"
 * and the rank): the "expand" step of HKDF (RFC 5869) with one block, which needs no "extract"
 * because the secret is uniformly random already. HMAC is a pseudo-random function, so keys of
 * different ranks and purposes tell nothing of each other or of the secret. As the secret half of a
 * Curve25519 pair any 32 bytes do: the curve's multiplication clamps them. Everybody who has the
 * secret can derive every rank's public key, so keys are never sent and there is nothing to be
 * trusted on first use; ranks of a job trust each other.
 *
 * SHA-256 is FIPS 180-4, HMAC is RFC 2104; both are tested with their published examples.
 */
#include "net/keys.h"
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

static const uint32_t k256[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

typedef struct sha {
    uint32_t h[8];
    uint8_t block[64];
    size_t fill;
    uint64_t total;
} sha;

static uint32_t turn(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static void sha_block(uint32_t h[8], const uint8_t *p)
{
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
               (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + w[i - 7] +
               (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
    }
    memcpy(v, h, sizeof(v));
    for (int i = 0; i < 64; i++) {
        uint32_t a = v[0], e = v[4];
        uint32_t t = v[7] + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & v[5]) ^ (~e & v[6])) +
                     k256[i] + w[i];
        uint32_t s =
            (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof(v[0]));
        v[4] += t;
        v[0] = t + s;
    }
    for (int i = 0; i < 8; i++)
        h[i] += v[i];
    explicit_bzero(w, sizeof(w)); // of a key
    explicit_bzero(v, sizeof(v));
}

static void sha_begin(sha *s)
{
    static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    *s = (sha){.fill = 0};
    memcpy(s->h, first, sizeof(first));
}

static void sha_add(sha *s, const void *data, size_t bytes)
{
    const uint8_t *p = data;
    s->total += bytes;
    for (size_t i = 0; i < bytes; i++) {
        s->block[s->fill++] = p[i];
        if (s->fill == 64) {
            sha_block(s->h, s->block);
            s->fill = 0;
        }
    }
}

static tti_digest sha_end(sha *s)
{
    uint64_t bits = s->total * 8;
    uint8_t length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    sha_add(s, "\x80", 1);
    while (s->fill != 56)
        sha_add(s, "", 1);
    sha_add(s, length, 8);
    tti_digest d;
    for (int i = 0; i < 32; i++)
        d.byte[i] = (uint8_t)(s->h[i / 4] >> (24 - 8 * (i % 4)));
    return d;
}

tti_digest tti_sha256(const void *data, size_t bytes)
{
    sha s;
    sha_begin(&s);
    sha_add(&s, data, bytes);
    return sha_end(&s);
}

tti_digest tti_hmac(const void *key, size_t key_bytes, const void *data, size_t bytes)
{
    uint8_t pad[64] = {0};
    tti_digest inner;
    if (key_bytes > sizeof(pad)) {
        inner = tti_sha256(key, key_bytes);
        memcpy(pad, inner.byte, sizeof(inner.byte));
    } else if (key_bytes > 0) {
        memcpy(pad, key, key_bytes);
    }
    sha s;
    for (int i = 0; i < 64; i++)
        pad[i] ^= 0x36;
    sha_begin(&s);
    sha_add(&s, pad, sizeof(pad));
    sha_add(&s, data, bytes);
    inner = sha_end(&s);
    for (int i = 0; i < 64; i++)
        pad[i] ^= 0x36 ^ 0x5c;
    sha_begin(&s);
    sha_add(&s, pad, sizeof(pad));
    sha_add(&s, inner.byte, sizeof(inner.byte));
    tti_digest out = sha_end(&s);
    explicit_bzero(pad, sizeof(pad)); // nothing of the key stays behind
    explicit_bzero(&s, sizeof(s));
    explicit_bzero(&inner, sizeof(inner));
    return out;
}

tti_digest tti_derive(const uint8_t secret[TT_SECRET_BYTES], const char *purpose, int rank)
{
    char text[96];
    int n = snprintf(text, sizeof(text), "tutti 1 %.64s %d", purpose, rank);
    return tti_hmac(secret, TT_SECRET_BYTES, text, (size_t)n + 1); // the zero ends what is hashed
}

bool tti_equal(const void *a, const void *b, size_t bytes)
{
    const volatile uint8_t *x = a, *y = b;
    uint8_t differs = 0;
    for (size_t i = 0; i < bytes; i++)
        differs |= x[i] ^ y[i];
    return differs == 0;
}

tt_status tt_secret_new(tt_ctx *ctx, unsigned char out[TT_SECRET_BYTES])
{
    if (ctx == NULL)
        return TT_EINVAL;
    if (out == NULL)
        return TT_FAIL(ctx, TT_EINVAL, "secret: the room for it is NULL");
    if (getrandom(out, TT_SECRET_BYTES, 0) != TT_SECRET_BYTES)
        return TT_FAIL(ctx, TT_EIO, "the system gives no random numbers for a job's secret");
    return TT_OK;
}
