/*
 * lex.c - words and numbers of the graph text. See lex.h.
 */
#include "graph/lex.h"
#include "base/ctx.h"
#include "graph/text.h"
#include <stdio.h>
#include <string.h>

bool tti_lex_fail(const tti_lex *p, const char *at, const char *fmt, ...)
{
    char text[TTI_MESSAGE_MAX / 2];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    (void)TT_FAIL(p->ctx, TT_EPARSE, "graph text line %d column %lld: %s", p->line,
                  (long long)(at - p->start) + 1, text);
    return false;
}

char tti_lex_peek(const tti_lex *p)
{
    return p->at < p->end ? *p->at : '\0';
}

void tti_lex_skip(tti_lex *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t'))
        p->at++;
}

// At the end of the line; a carriage return before it counts as space.
bool tti_lex_end(tti_lex *p)
{
    tti_lex_skip(p);
    if (p->at < p->end && *p->at == '\r' && (p->end - p->at == 1 || p->at[1] == '\n'))
        p->at++;
    return p->at == p->end || *p->at == '\n';
}

bool tti_lex_is(tti_lex *p, char c)
{
    tti_lex_skip(p);
    if (p->at == p->end || *p->at != c)
        return false;
    p->at++;
    return true;
}

bool tti_lex_expect(tti_lex *p, char c, const char *after)
{
    if (tti_lex_is(p, c))
        return true;
    if (tti_lex_end(p))
        return tti_lex_fail(p, p->at, "'%c' is missing after %s", c, after);
    return tti_lex_fail(p, p->at, "'%c' expected after %s", c, after);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool tti_lex_quoted(tti_lex *p, char *out, size_t size, const char *what)
{
    const char *open = p->at++;
    size_t n = 0;
    while (p->at < p->end && *p->at != '"' && *p->at != '\n') {
        char c = *p->at++;
        if (c == '\\' && p->end - p->at >= 1) {
            c = *p->at++;
            if (c == 'x') {
                int high = p->end - p->at >= 2 ? hex_digit(p->at[0]) : -1;
                int low = high >= 0 ? hex_digit(p->at[1]) : -1;
                if (low < 0)
                    return tti_lex_fail(p, p->at - 2, "\\x takes two hexadecimal digits");
                c = (char)(high * 16 + low);
                p->at += 2;
            } else if (c != '"' && c != '\\') {
                return tti_lex_fail(p, p->at - 2, "only \\\\, \\\" and \\xHH may be escaped");
            }
        }
        if (c == '\0')
            return tti_lex_fail(p, p->at - 1, "a zero byte in %s", what);
        if (n + 1 >= size)
            return tti_lex_fail(p, open, "%s is longer than %zu characters", what, size - 1);
        out[n++] = c;
    }
    out[n] = '\0';
    if (tti_lex_peek(p) != '"' || p->at == p->end)
        return tti_lex_fail(p, open, "the quotes of %s are not closed", what);
    p->at++;
    return true;
}

// A bare word of name characters and those in more, or anything in quotes. Not empty.
bool tti_lex_word(tti_lex *p, const char *more, char *out, size_t size, const char *what)
{
    tti_lex_skip(p);
    const char *s = p->at;
    if (tti_lex_peek(p) == '"') {
        if (!tti_lex_quoted(p, out, size, what))
            return false;
        return out[0] != '\0' || tti_lex_fail(p, s, "%s is empty", what);
    }
    size_t n = 0;
    while (s + n < p->end && s[n] != '\0' && (tti_is_name_char(s[n]) || strchr(more, s[n])))
        n++;
    if (n == 0)
        return tti_lex_end(p) ? tti_lex_fail(p, s, "%s is missing", what)
                              : tti_lex_fail(p, s, "%s expected", what);
    if (n >= size)
        return tti_lex_fail(p, s, "%s is longer than %zu characters", what, size - 1);
    memcpy(out, s, n);
    out[n] = '\0';
    p->at = s + n;
    return true;
}

// A whole number from 0 to max.
bool tti_lex_number(tti_lex *p, int max, int *out, const char *what)
{
    tti_lex_skip(p);
    const char *s = p->at;
    int64_t v = 0;
    while (p->at < p->end && *p->at >= '0' && *p->at <= '9' && v <= max)
        v = v * 10 + (*p->at++ - '0');
    if (p->at == s)
        return tti_lex_fail(p, s, "%s expected", what);
    if (v > max)
        return tti_lex_fail(p, s, "%s is above %d", what, max);
    *out = (int)v;
    return true;
}
