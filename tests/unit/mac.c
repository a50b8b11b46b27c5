/*
 * mac.c - message authentication follows the examples of RFC 8439, and a plain way to compute it.
 */
#include "net/mac.h"
#include "../test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t from_hex(const char *hex, uint8_t *out)
{
    size_t n = strlen(hex) / 2;
    for (size_t i = 0; i < n; i++) {
        unsigned v;
        CHECK(sscanf(hex + 2 * i, "%2x", &v) == 1);
        out[i] = (uint8_t)v;
    }
    return n;
}

static void to_hex(const uint8_t *p, size_t n, char *out)
{
    for (size_t i = 0; i < n; i++)
        snprintf(out + 2 * i, 3, "%02x", p[i]);
}

TEST(mac_key_stream_follows_the_published_example)
{
    uint8_t key[32], nonce[12], out[64];
    char text[129];
    for (int i = 0; i < 32; i++)
        key[i] = (uint8_t)i;
    from_hex("000000090000004a00000000", nonce);
    tti_chacha20(key, 1, nonce, out); // 2.3.2
    to_hex(out, 64, text);
    CHECK_STR(text, "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4ed2826446079faa"
                    "0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e");
    memset(key, 0, sizeof(key)); // A.1, first
    memset(nonce, 0, sizeof(nonce));
    tti_chacha20(key, 0, nonce, out);
    to_hex(out, 32, text);
    CHECK_STR(text, "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7");
}

TEST(mac_tags_follow_the_published_examples)
{
    static const struct {
        const char *key, *data, *tag;
    } cases[] = {
        {"85d6be7857556d337f4452fe42d506a80103808afb0db2fd4abff6af4149f51b",
         "43727970746f6772617068696320466f72756d2052657365617263682047726f7570",
         "a8061dc1305136c6c22b8baf0c0127a9"}, // 2.5.2
        {"0200000000000000000000000000000000000000000000000000000000000000",
         "ffffffffffffffffffffffffffffffff", "03000000000000000000000000000000"}, // A.3, 7
        {"02000000000000000000000000000000ffffffffffffffffffffffffffffffff",
         "02000000000000000000000000000000", "03000000000000000000000000000000"}, // 8
        {"0100000000000000000000000000000000000000000000000000000000000000",
         "fffffffffffffffffffffffffffffffff0ffffffffffffffffffffffffffffff1100000000000000000000000"
         "0000000",
         "05000000000000000000000000000000"}, // 9
        {"0100000000000000000000000000000000000000000000000000000000000000",
         "fffffffffffffffffffffffffffffffffbfefefefefefefefefefefefefefefe0101010101010101010101010"
         "10"
         "10101",
         "00000000000000000000000000000000"}, // 10
        {"0200000000000000000000000000000000000000000000000000000000000000",
         "fdffffffffffffffffffffffffffffff", "faffffffffffffffffffffffffffffff"}, // 11
        {"0100000000000000040000000000000000000000000000000000000000000000",
         "e33594d7505e43b900000000000000003394d7505e4379cd01000000000000000000000000000000000000000"
         "00"
         "0000001000000000000000000000000000000",
         "14000000000000005500000000000000"}, // 12
        {"0100000000000000040000000000000000000000000000000000000000000000",
         "e33594d7505e43b900000000000000003394d7505e4379cd01000000000000000000000000000000000000000"
         "000"
         "0000",
         "13000000000000000000000000000000"}, // 13
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint8_t key[32], data[128];
        char text[33];
        from_hex(cases[i].key, key);
        size_t n = from_hex(cases[i].data, data);
        tti_tag t = tti_poly1305(key, data, n);
        to_hex(t.byte, 16, text);
        CHECK_STR(text, cases[i].tag);
    }
}

// The definition, number by number: h = (h + block) * r modulo 2^130 - 5, in parts of 8 bits.
static tti_tag by_definition(const uint8_t key[32], const uint8_t *data, size_t bytes)
{
    static const uint8_t bits[16] = {255, 255, 255, 15, 252, 255, 255, 15,
                                     252, 255, 255, 15, 252, 255, 255, 15};
    uint32_t r[17] = {0}, h[17] = {0};
    for (int i = 0; i < 16; i++)
        r[i] = key[i] & bits[i];
    for (size_t at = 0; at < bytes; at += 16) {
        uint32_t block[17] = {0}, x[17], carry = 0;
        size_t n = bytes - at < 16 ? bytes - at : 16;
        for (size_t i = 0; i < n; i++)
            block[i] = data[at + i];
        block[n] = 1;
        for (int i = 0; i < 17; i++) {
            carry += h[i] + block[i];
            h[i] = carry & 255;
            carry >>= 8;
        }
        for (int i = 0; i < 17; i++) {
            x[i] = 0;
            for (int k = 0; k < 17; k++) // 2^136 is 320
                x[i] += h[k] * (k <= i ? r[i - k] : 320 * r[i + 17 - k]);
        }
        for (int round = 0; round < 2; round++) {
            carry = 0;
            for (int i = 0; i < 16; i++) {
                carry += x[i];
                x[i] = carry & 255;
                carry >>= 8;
            }
            carry += x[16];
            x[16] = carry & 3;
            x[0] += 5 * (carry >> 2);
        }
        carry = 0;
        for (int i = 0; i < 17; i++) {
            carry += x[i];
            h[i] = carry & 255;
            carry >>= 8;
        }
    }
    uint32_t g[17], carry = 5; // h - (2^130 - 5)
    for (int i = 0; i < 17; i++) {
        carry += h[i] + (i == 16 ? 252u : 0);
        g[i] = carry & 255;
        carry >>= 8;
    }
    bool is_below = carry == 0;
    tti_tag t;
    carry = 0;
    for (int i = 0; i < 16; i++) {
        carry += (is_below ? h[i] : g[i]) + key[16 + i];
        t.byte[i] = (uint8_t)carry;
        carry >>= 8;
    }
    return t;
}

TEST(mac_tags_of_all_lengths_follow_the_definition)
{
    static uint8_t data[3000];
    srand(7);
    for (int i = 0; i < 4000; i++) {
        uint8_t key[32];
        size_t n = (size_t)(i < 1500 ? i : rand() % 3000);
        for (int k = 0; k < 32; k++)
            key[k] = i % 5 == 0 ? 255 : (uint8_t)rand();
        for (size_t k = 0; k < n; k++)
            data[k] = i % 3 == 0 ? 255 : i % 3 == 1 ? 0 : (uint8_t)rand();
        tti_tag a = tti_poly1305(key, data, n), b = by_definition(key, data, n);
        ck_assert_msg(memcmp(&a, &b, sizeof(a)) == 0, "case %d of %zu bytes", i, n);
    }
}

TEST(mac_depends_on_key_number_and_every_byte)
{
    uint8_t key[32] = {1}, data[200] = {0};
    tti_tag first = tti_mac(key, 5, data, sizeof(data)), t;
    for (size_t i = 0; i < sizeof(data); i++) {
        data[i] ^= 0x80;
        t = tti_mac(key, 5, data, sizeof(data));
        CHECK(memcmp(&t, &first, sizeof(t)) != 0);
        data[i] ^= 0x80;
    }
    static const uint64_t others[] = {4, 6, 5 | UINT64_C(1) << 32, 5 | UINT64_C(1) << 63};
    for (int i = 0; i < 4; i++) {
        t = tti_mac(key, others[i], data, sizeof(data));
        CHECK(memcmp(&t, &first, sizeof(t)) != 0);
    }
    t = tti_mac(key, 5, data, sizeof(data) - 1);
    CHECK(memcmp(&t, &first, sizeof(t)) != 0);
    key[31] = 1;
    t = tti_mac(key, 5, data, sizeof(data));
    CHECK(memcmp(&t, &first, sizeof(t)) != 0);
}
