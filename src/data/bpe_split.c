/*
 * bpe_split.c - words of a text by the rule of GPT-2:
 *
 *   's 't 're 've 'm 'll 'd | ?letters | ?numbers | ?others | spaces before a space | spaces
 *
 * where "?" is one space that may be there, and others are neither spaces, letters nor numbers.
 * Bytes that are no UTF-8 count as others.
 */
#include "data/bpe.h"
#include "data/text.h"
#include <string.h>

#include "data/unicode_classes.inc"

typedef enum kind {
    OTHER,
    LETTER,
    NUMBER,
    SPACE,
} kind;

static bool is_in(const uint32_t (*ranges)[2], int n, uint32_t c)
{
    int low = 0, high = n - 1;
    while (low < high) {
        int mid = (low + high) / 2;
        if (ranges[mid][1] < c)
            low = mid + 1;
        else
            high = mid;
    }
    return ranges[low][0] <= c && c <= ranges[low][1];
}

static kind kind_of(uint32_t c)
{
    if (c < 128)
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ? LETTER
               : c >= '0' && c <= '9'                           ? NUMBER
               : c == ' ' || (c >= 9 && c <= 13)                ? SPACE
                                                                : OTHER;
    if (c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
        c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000)
        return SPACE;
    if (is_in(letters, TTI_COUNT(letters), c))
        return LETTER;
    return is_in(numbers, TTI_COUNT(numbers), c) ? NUMBER : OTHER;
}

// The character at s and its kind; gives its length.
static size_t next(const char *s, size_t bytes, kind *k)
{
    uint32_t point = 0;
    int n = tti_utf8_get((const unsigned char *)s, bytes, &point);
    *k = n > 0 ? kind_of(point) : OTHER;
    return n > 0 ? (size_t)n : 1;
}

static size_t contraction(const char *s, size_t bytes)
{
    static const char *const ends[] = {"s", "t", "re", "ve", "m", "ll", "d"};
    for (int i = 0; s[0] == '\'' && i < TTI_COUNT(ends); i++) {
        size_t n = strlen(ends[i]);
        if (bytes > n && memcmp(s + 1, ends[i], n) == 0)
            return n + 1;
    }
    return 0;
}

size_t tti_bpe_word(const char *s, size_t bytes)
{
    kind k, first;
    if (bytes == 0)
        return 0;
    size_t n = contraction(s, bytes);
    if (n > 0)
        return n;
    size_t at = s[0] == ' ' && bytes > 1 ? 1 : 0, length = next(s + at, bytes - at, &first);
    if (first != SPACE) {
        for (at += length; at < bytes; at += length) {
            length = next(s + at, bytes - at, &k);
            if (k != first)
                break;
        }
        return at;
    }
    // Spaces: the last one belongs to the word behind them, unless it is the only one.
    size_t last = 0;
    for (at = 0; at < bytes; at += length) {
        length = next(s + at, bytes - at, &k);
        if (k != SPACE)
            break;
        last = at;
    }
    return at == bytes || last == 0 ? at : last;
}

// ---- bytes as characters ---------------------------------------------------------------------

static bool is_itself(int byte)
{
    return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

uint32_t tti_bpe_char(int byte)
{
    uint32_t n = 256;
    if (is_itself(byte))
        return (uint32_t)byte;
    for (int i = 0; i < byte; i++)
        n += !is_itself(i);
    return n;
}

int tti_bpe_byte(uint32_t point)
{
    if (point < 256)
        return is_itself((int)point) ? (int)point : -1;
    for (int i = 0; i < 256; i++)
        if (!is_itself(i) && tti_bpe_char(i) == point)
            return i;
    return -1;
}
