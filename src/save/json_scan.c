/*
 * json_scan.c - words of JSON, one after another; see json_scan.h.
 */
#include "save/json_scan.h"
#include <string.h>

tt_status tti_json_fail(const tti_json_scan *r, const char *what)
{
    return TT_FAIL(r->ctx, TT_EPARSE, "%s: header byte %lld: %s", r->path,
                   (long long)(r->at - r->start), what);
}

char tti_json_peek(tti_json_scan *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\r' || *r->at == '\t'))
        r->at++;
    return r->at < r->end ? *r->at : '\0';
}

tt_status tti_json_expect(tti_json_scan *r, char c)
{
    char what[] = "expected ' '";
    what[10] = c;
    if (tti_json_peek(r) != c)
        return tti_json_fail(r, what);
    r->at++;
    return TT_OK;
}

tt_status tti_json_more(tti_json_scan *r, char close, bool *again)
{
    char c = tti_json_peek(r);
    if (c != ',' && c != close)
        return tti_json_fail(r, close == '}' ? "expected ',' or '}'" : "expected ',' or ']'");
    r->at++;
    *again = c == ',';
    return TT_OK;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

// Four digits behind "\u"; -1 if they are not there.
static int32_t unit(tti_json_scan *r)
{
    int32_t v = 0;
    if (r->end - r->at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int d = hex_digit(r->at[i]);
        if (d < 0)
            return -1;
        v = v << 4 | d;
    }
    r->at += 4;
    return v;
}

static void put_utf8(tti_text *t, uint32_t c)
{
    char s[4];
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = n; i-- > 1; c >>= 6)
        s[i] = (char)(0x80 | (c & 0x3F));
    s[0] = (char)(lead[n] | c);
    tti_text_put(t, s, n);
}

static tt_status escape(tti_json_scan *r)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = r->at < r->end ? *r->at : '\0';
    const char *known = c == '\0' ? NULL : strchr(from, c);
    if (known != NULL) {
        r->at++;
        tti_text_put(&r->texts, &to[known - from], 1);
        return TT_OK;
    }
    if (c != 'u')
        return tti_json_fail(r, "unknown escape");
    r->at++;
    int32_t v = unit(r);
    if (v >= 0xD800 && v < 0xDC00 && r->end - r->at > 2 && r->at[0] == '\\' && r->at[1] == 'u') {
        r->at += 2;
        int32_t low = unit(r);
        v = low >= 0xDC00 && low < 0xE000 ? 0x10000 + ((v - 0xD800) << 10) + (low - 0xDC00) : -1;
    }
    if (v <= 0 || (v >= 0xD800 && v < 0xE000))
        return tti_json_fail(r, v == 0 ? "a string contains a zero character" : "bad \\u escape");
    put_utf8(&r->texts, (uint32_t)v);
    return TT_OK;
}

tt_status tti_json_text(tti_json_scan *r, int64_t *out)
{
    TT_TRY(tti_json_expect(r, '"'));
    *out = r->texts.n;
    for (;;) {
        const char *from = r->at;
        while (r->at < r->end && (unsigned char)*r->at >= 0x20 && (unsigned char)*r->at < 0x80 &&
               *r->at != '"' && *r->at != '\\')
            r->at++;
        tti_text_put(&r->texts, from, (size_t)(r->at - from));
        if (r->at == r->end)
            return tti_json_fail(r, "the header ends within a string");
        if (*r->at == '"')
            break;
        if (*r->at == '\\') {
            r->at++;
            TT_TRY(escape(r));
            continue;
        }
        int n = (unsigned char)*r->at < 0x20 ? 0 : tti_utf8_length(r->at, (size_t)(r->end - r->at));
        if (n == 0)
            return tti_json_fail(r, "a string is not valid UTF-8 or has a control character");
        tti_text_put(&r->texts, r->at, (size_t)n);
        r->at += n;
    }
    r->at++;
    tti_text_put(&r->texts, "", 1);
    return r->texts.failed ? TT_ENOMEM : TT_OK;
}

tt_status tti_json_number(tti_json_scan *r, int64_t *out)
{
    static const char what[] = "expected an integer from 0 to 2^63 - 1";
    tti_json_peek(r);
    int64_t v = 0;
    const char *from = r->at;
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++)
        if (!tti_mul_i64(v, 10, &v) || __builtin_add_overflow(v, *r->at - '0', &v))
            return tti_json_fail(r, what);
    char next = r->at < r->end ? *r->at : '\0';
    if (r->at == from || (*from == '0' && r->at - from > 1) || strchr(".eE+-", next) != NULL)
        return tti_json_fail(r, what);
    *out = v;
    return TT_OK;
}
