/*
 * text.c - a string that grows. Failures stick, so that a printer needs one check, at the end.
 */
#include "base/base.h"
#include <stdio.h>
#include <string.h>

#define LINE 96 // columns of a list of names

// Room for n more characters and the final zero.
static bool room(tti_text *t, size_t n)
{
    if (t->failed)
        return false;
    if (n > (size_t)INT64_MAX / 2 || !tti_grow(t->ctx, &t->s, &t->cap, t->n + (int64_t)n + 1, 1))
        t->failed = true;
    return !t->failed;
}

void tti_text_put(tti_text *t, const char *s, size_t n)
{
    if (!room(t, n))
        return;
    memcpy(t->s + t->n, s, n);
    t->n += (int64_t)n;
    t->s[t->n] = '\0';
}

void tti_text_add(tti_text *t, const char *fmt, ...)
{
    char small[256];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(small, sizeof(small), fmt, ap);
    va_end(ap);
    if (n < 0) {
        t->failed = true;
    } else if ((size_t)n < sizeof(small)) {
        tti_text_put(t, small, (size_t)n);
    } else if (room(t, (size_t)n)) {
        va_start(ap, fmt);
        vsnprintf(t->s + t->n, (size_t)n + 1, fmt, ap);
        va_end(ap);
        t->n += n;
    }
}

int tti_utf8_length(const char *text, size_t room)
{
    const unsigned char *s = (const unsigned char *)text;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (room == 0)
        return 0;
    int n = s[0] < 0x80 ? 1 : s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3 : s[0] >> 3 == 30 ? 4 : 0;
    if (n < 2)
        return n;
    if ((size_t)n > room)
        return 0;
    uint32_t c = s[0] & (0x7Fu >> n);
    for (int i = 1; i < n; i++) {
        if (s[i] >> 6 != 2)
            return 0; // also stops at the final zero
        c = c << 6 | (s[i] & 0x3Fu);
    }
    bool surrogate = c >= 0xD800 && c < 0xE000;
    return c >= least[n] && c <= 0x10FFFF && !surrogate ? n : 0;
}

// Ends colours or begins them: "\033[33m".
static size_t colour_length(const char *s, size_t n)
{
    size_t k = 2;
    if (n < 3 || s[0] != '\033' || s[1] != '[')
        return 0;
    while (k < n && k < 12 && ((s[k] >= '0' && s[k] <= '9') || s[k] == ';'))
        k++;
    return k < n && s[k] == 'm' ? k + 1 : 0;
}

// Bytes that can be shown as they are; 0: the first one cannot.
static size_t shown_length(const char *text, size_t n)
{
    const unsigned char *s = (const unsigned char *)text;
    int length = tti_utf8_length(text, n);
    if (length == 1)
        return s[0] == '\n' || s[0] == '\t' || (s[0] >= 0x20 && s[0] < 0x7F);
    if (length == 2 && s[0] == 0xC2 && s[1] < 0xA0)
        return 0; // control characters of another kind
    if (length == 3 && s[0] == 0xE2 &&
        ((s[1] == 0x80 && s[2] >= 0xAA && s[2] <= 0xAE) ||
         (s[1] == 0x81 && s[2] >= 0xA6 && s[2] <= 0xA9)))
        return 0; // writing direction: the text would read as another one
    return (size_t)length;
}

size_t tti_escape(char *out, size_t room, const char *s, size_t n, bool colours)
{
    size_t k = 0;
    for (size_t at = 0; at < n;) {
        size_t length = shown_length(s + at, n - at);
        if (length == 0 && colours)
            length = colour_length(s + at, n - at);
        if (k + (length > 0 ? length : 4) >= room)
            break;
        if (length == 0) {
            k += (size_t)snprintf(out + k, room - k, "\\x%02x", (unsigned char)s[at]);
            at++;
        } else {
            memcpy(out + k, s + at, length);
            k += length;
            at += length;
        }
    }
    if (room > 0)
        out[k] = '\0';
    return k;
}

void tti_text_json(tti_text *t, const char *s)
{
    tti_text_put(t, "\"", 1);
    while (*s != '\0') {
        unsigned char c = (unsigned char)*s;
        int n = tti_utf8_length(s, 4);
        if (n == 0)
            tti_text_put(t, "\\ufffd", 6);
        else if (c == '"' || c == '\\')
            tti_text_add(t, "\\%c", c);
        else if (c == '\n')
            tti_text_put(t, "\\n", 2);
        else if (c < 0x20 || c == 0x7F)
            tti_text_add(t, "\\u%04x", c);
        else
            tti_text_put(t, s, (size_t)n);
        s += TTI_MAX(n, 1);
    }
    tti_text_put(t, "\"", 1);
}

void tti_size_text(double bytes, char out[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int u = 0;
    for (; bytes >= 1024 && u < TTI_COUNT(units) - 1; u++)
        bytes /= 1024;
    snprintf(out, 32, u == 0 ? "%.0f %s" : "%.1f %s", bytes, units[u]);
}

void tti_text_names(tti_text *t, const char *const *names, int n, int column)
{
    for (int i = 0; i < n; i++) {
        int length = (int)strlen(names[i]) + (i < n - 1);
        bool wraps = i > 0 && column + length > LINE;
        tti_text_add(t, "%s%s%s",
                     wraps   ? "\n  "
                     : i > 0 ? " "
                             : "",
                     names[i], i < n - 1 ? "," : "");
        column = (wraps ? 2 : column + (i > 0)) + length;
    }
}

char *tti_text_take(tti_text *t)
{
    if (room(t, 0))
        t->s[t->n] = '\0';
    if (t->failed)
        tti_text_free(t);
    char *s = t->s;
    t->s = NULL;
    t->n = t->cap = 0;
    return s;
}

void tti_text_free(tti_text *t)
{
    tti_free(t->ctx, t->s);
    t->s = NULL;
    t->n = t->cap = 0;
}
