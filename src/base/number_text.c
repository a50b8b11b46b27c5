/*
 * number_text.c - numbers and sizes as text. What is printed reads back to the same bits; numbers
 * are read and written as in the C locale, whatever the program has set.
 */
#include "base/value.h"
#include <errno.h>
#include <fenv.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPACES " \t"

const char *tti_double_digits(double x, int digits, char buf[TTI_DOUBLE_TEXT])
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0), old = uselocale(c);
    snprintf(buf, TTI_DOUBLE_TEXT, "%.*g", digits, x);
    uselocale(old);
    freelocale(c);
    return buf;
}

const char *tti_double_text(double x, char buf[TTI_DOUBLE_TEXT])
{
    for (int digits = 15; digits <= 17; digits++) {
        double back;
        tti_double_digits(x, digits, buf);
        if (tti_double_parse(buf, &back) && memcmp(&back, &x, sizeof(x)) == 0)
            break;
    }
    return buf;
}

bool tti_double_parse(const char *text, double *out)
{
    char *end;
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    double x = strtod_l(text, &end, c);
    freelocale(c);
    if (end == text || end[strspn(end, SPACES)] != '\0')
        return false;
    *out = x;
    return true;
}

bool tti_float_parse(const char *text, float *out)
{
    char *end;
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    float x = strtof_l(text, &end, c);
    freelocale(c);
    if (end == text || end[strspn(end, SPACES)] != '\0')
        return false;
    *out = x;
    return true;
}

bool tti_double_parse_odd(const char *text, double *out)
{
    double low, high;
    uint64_t bits;
    int mode = fegetround();
    fesetround(FE_DOWNWARD);
    bool ok = tti_double_parse(text, &low);
    fesetround(FE_UPWARD);
    ok = ok && tti_double_parse(text, &high);
    fesetround(mode);
    if (!ok)
        return false;
    memcpy(&bits, &low, sizeof(bits));
    *out = low == high || low != low || (bits & 1) != 0 ? low : high;
    return true;
}

bool tti_int_parse(const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    long long x = strtoll(text, &end, 10);
    if (end == text || errno != 0 || end[strspn(end, SPACES)] != '\0')
        return false;
    *out = x;
    return true;
}

static const struct {
    const char *name;
    uint64_t bytes;
} units[] = {
    // in the order tried by print: the largest that divides
    {"TiB", 1ull << 40},
    {"GiB", 1ull << 30},
    {"MiB", 1ull << 20},
    {"KiB", 1ull << 10},
    {"TB", 1000000000000},
    {"GB", 1000000000},
    {"MB", 1000000},
    {"KB", 1000},
    {"B", 1},
    {"", 1},
};

bool tti_size_parse(const char *text, size_t *out)
{
    const char *s = text + strspn(text, SPACES);
    uint64_t whole = 0, part = 0, scale = 1;
    if (*s < '0' || *s > '9')
        return false;
    for (; *s >= '0' && *s <= '9'; s++)
        if (__builtin_mul_overflow(whole, 10, &whole) ||
            __builtin_add_overflow(whole, (uint64_t)(*s - '0'), &whole))
            return false;
    if (*s == '.')
        for (s++; *s >= '0' && *s <= '9'; s++)
            if (scale < 1000000) {
                part = part * 10 + (uint64_t)(*s - '0');
                scale *= 10;
            }
    s += strspn(s, SPACES);
    size_t n = strcspn(s, SPACES);
    if (s[n + strspn(s + n, SPACES)] != '\0')
        return false;
    for (int u = 0; u < TTI_COUNT(units); u++) {
        if (strlen(units[u].name) != n || strncmp(units[u].name, s, n) != 0)
            continue;
        uint64_t more = part * units[u].bytes / scale, total; // below 1e6 times 2^40
        if (__builtin_mul_overflow(whole, units[u].bytes, &total) ||
            __builtin_add_overflow(total, more, &total) || total > SIZE_MAX)
            return false;
        *out = (size_t)total;
        return true;
    }
    return false;
}

void tti_size_print(tti_text *t, size_t size)
{
    int u = 0;
    while (u < 3 && (size == 0 || size % units[u].bytes != 0))
        u++;
    if (size == 0 || size % units[u].bytes != 0)
        tti_text_add(t, "%zu", size);
    else
        tti_text_add(t, "%zu%s", (size_t)(size / units[u].bytes), units[u].name);
}

tt_status tti_parse_size(tt_ctx *ctx, const char *text, size_t *out)
{
    if (!tti_size_parse(text, out))
        return TT_FAIL(ctx, TT_EPARSE,
                       "'%.64s' is not a size; write a number of bytes, or '512MiB', '1.5GiB'",
                       text);
    return TT_OK;
}
