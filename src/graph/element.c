/*
 * element.c - constants as text: single elements exactly, many as base64.
 */
#include "graph/text.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_integer(tt_dtype t)
{
    return (TT_TYPES_INT & 1u << t) != 0;
}

static int64_t get_int(tt_dtype t, const void *data, int64_t i)
{
    return t == TT_I64 ? ((const int64_t *)data)[i] : (int64_t)tti_get_number(t, data, i);
}

bool tti_element_print(tt_dtype type, const void *data, int64_t i, char buf[TTI_NUMBER_TEXT])
{
    size_t bytes = tt_dtype_bytes(type);
    uint64_t back = 0;
    if (is_integer(type)) {
        snprintf(buf, TTI_NUMBER_TEXT, "%lld", (long long)get_int(type, data, i));
        return tti_element_parse(type, &back, 0, buf); // a bool may hold 2
    }
    double x = tti_get_number(type, data, i);
    for (int digits = 6; digits <= 17; digits++) {
        tti_double_digits(x, digits, buf);
        if (tti_element_parse(type, &back, 0, buf) &&
            memcmp(&back, (const char *)data + (size_t)i * bytes, bytes) == 0)
            return true;
    }
    return false;
}

bool tti_element_parse(tt_dtype type, void *data, int64_t i, const char *text)
{
    static const struct {
        int64_t low, high;
    } range[TT_N_DTYPES] = {
        [TT_I32] = {INT32_MIN, INT32_MAX},
        [TT_I64] = {INT64_MIN, INT64_MAX},
        [TT_U8] = {0, 255},
        [TT_BOOL] = {0, 1},
    };
    double x;
    if (!is_integer(type)) { // f64 rounds here, narrower types when the number is put
        if (!(type == TT_F64 ? tti_double_parse : tti_double_parse_odd)(text, &x))
            return false;
        tti_put_number(type, data, i, x);
        return true;
    }
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || v < range[type].low || v > range[type].high)
        return false;
    if (type == TT_I64)
        ((int64_t *)data)[i] = v;
    else
        tti_put_number(type, data, i, (double)v);
    return true;
}

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void tti_base64_print(tti_text *t, const void *data, size_t bytes)
{
    const unsigned char *s = data;
    char out[1024];
    size_t n = 0;
    for (size_t i = 0; i < bytes; i += 3) {
        size_t left = bytes - i;
        uint32_t v = (uint32_t)s[i] << 16;
        v |= left > 1 ? (uint32_t)s[i + 1] << 8 : 0;
        v |= left > 2 ? (uint32_t)s[i + 2] : 0;
        for (int k = 0; k < 4; k++)
            out[n++] = (size_t)k <= left ? alphabet[v >> (18 - 6 * k) & 63] : '=';
        if (n == sizeof(out)) {
            tti_text_put(t, out, n);
            n = 0;
        }
    }
    tti_text_put(t, out, n);
}

// The six bits of a character; -1 if it has none.
static int six_bits(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int64_t tti_base64_parse(const char *s, size_t n, void *data, size_t bytes)
{
    unsigned char *out = data;
    size_t length = (bytes + 2) / 3 * 4, done = 0;
    if (length > n)
        return -1;
    for (size_t i = 0; i < length; i += 4) {
        size_t here = TTI_MIN(bytes - done, (size_t)3); // bytes in these four characters
        uint32_t v = 0;
        for (size_t k = 0; k < 4; k++) {
            int bits = k <= here ? six_bits(s[i + k]) : s[i + k] == '=' ? 0 : -1;
            if (bits < 0)
                return -1;
            v = v << 6 | (uint32_t)bits;
        }
        for (size_t k = 0; k < here; k++)
            out[done++] = (unsigned char)(v >> (16 - 8 * k));
    }
    return (int64_t)length;
}
