/*
 * vocab.c - UTF-8, and symbols of a vocabulary (text.h).
 */
#include "data/text.h"

int tti_utf8_get(const unsigned char *p, size_t n, uint32_t *point)
{
    if (n == 0)
        return 0;
    uint32_t c = p[0];
    int len = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : 4;
    if (len == 4 && (c < 0xf0 || c > 0xf4))
        return -1;
    if (len > 1)
        c &= 0x7fu >> len;
    for (int i = 1; i < len; i++) {
        if ((size_t)i >= n)
            return 0;
        if ((p[i] & 0xc0) != 0x80)
            return -1;
        c = c << 6 | (p[i] & 0x3f);
    }
    // Too long a form, half of a pair, past the last character.
    if ((len == 3 && (c < 0x800 || (c >= 0xd800 && c < 0xe000))) ||
        (len == 4 && (c < 0x10000 || c > 0x10ffff)))
        return -1;
    *point = c;
    return len;
}

int tti_utf8_put(uint32_t point, char out[4])
{
    if (point < 0x80) {
        out[0] = (char)point;
        return 1;
    }
    int len = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (int i = len - 1; i > 0; i--, point >>= 6)
        out[i] = (char)(0x80 | (point & 0x3f));
    out[0] = (char)((0xf00u >> len & 0xff) | point);
    return len;
}

int32_t tti_vocab_find(const tti_vocab *v, uint32_t point)
{
    if (v->is_bytes)
        return point < 256 ? (int32_t)point : -1;
    int64_t low = 0, high = v->n - 1;
    while (low < high) {
        int64_t mid = (low + high) / 2;
        if (v->points[mid] < point)
            low = mid + 1;
        else
            high = mid;
    }
    return low <= high && v->points[low] == point ? (int32_t)low : -1;
}

void tti_vocab_put(const tti_vocab *v, const int32_t *symbols, int64_t n, tti_text *out)
{
    for (int64_t i = 0; i < n; i++) {
        bool is_one = symbols[i] >= 0 && symbols[i] < v->n;
        char c[4] = {(char)symbols[i]};
        int len = 1;
        if (!is_one || !v->is_bytes)
            len = tti_utf8_put(is_one ? v->points[symbols[i]] : 0xfffd, c);
        tti_text_put(out, c, (size_t)len);
    }
}

tt_status tti_vocab_symbols(tt_ctx *ctx, const tti_vocab *v, const char *text, size_t bytes,
                            int32_t **out, int64_t *n)
{
    const unsigned char *p = (const unsigned char *)text;
    int32_t *symbols = tti_calloc(ctx, bytes + 1, sizeof(*symbols));
    int64_t count = 0;
    if (symbols == NULL)
        return TT_ENOMEM;
    for (size_t at = 0; at < bytes;) {
        uint32_t point = p[at];
        int len = v->is_bytes ? 1 : tti_utf8_get(p + at, bytes - at, &point);
        int32_t s = len > 0 ? tti_vocab_find(v, point) : -1;
        if (s < 0) {
            tt_status st = len > 0
                               ? TT_FAIL(ctx, TT_EINVAL,
                                         "text: character U+%04X, at byte %zu, is not in "
                                         "the vocabulary",
                                         point, at)
                               : TT_FAIL(ctx, TT_EINVAL, "text: byte %zu is not valid UTF-8", at);
            tti_free(ctx, symbols);
            return st;
        }
        symbols[count++] = s;
        at += (size_t)len;
    }
    *out = symbols;
    *n = count;
    return TT_OK;
}
