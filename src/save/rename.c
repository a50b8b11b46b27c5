/*
 * rename.c - maps of names.
 */
#include "save/rename.h"
#include <string.h>

typedef struct piece {
    const char *s;
    size_t n;
} piece;

typedef struct rule {
    piece from, to;
} rule;

static piece trim(const char *s, size_t n)
{
    while (n > 0 && (s[0] == ' ' || s[0] == '\t'))
        s++, n--;
    while (n > 0 && (s[n - 1] == ' ' || s[n - 1] == '\t'))
        n--;
    return (piece){s, n};
}

// The next rule of a map; false at its end. A rule without "=" has an empty right side at NULL.
static bool next_rule(const char **map, rule *out)
{
    const char *s = *map;
    if (s == NULL || *s == '\0')
        return false;
    size_t n = strcspn(s, ",");
    const char *equals = memchr(s, '=', n);
    *map = s + n + (s[n] == ',');
    out->from = trim(s, equals == NULL ? n : (size_t)(equals - s));
    out->to = equals == NULL ? (piece){NULL, 0} : trim(equals + 1, n - (size_t)(equals + 1 - s));
    return true;
}

static int stars(piece p)
{
    int n = 0;
    for (size_t i = 0; i < p.n; i++)
        n += p.s[i] == '*';
    return n;
}

tt_status tti_rename_check(tt_ctx *ctx, const char *map)
{
    rule r;
    for (const char *at = map; next_rule(&at, &r);) {
        if (r.to.s == NULL || r.from.n == 0 || r.to.n == 0 || memchr(r.to.s, '=', r.to.n) != NULL)
            return TT_FAIL(ctx, TT_EINVAL, "map '%.300s': '%.*s' is not of the form old=new", map,
                           (int)TTI_MIN(r.from.n, 200), r.from.s);
        if (stars(r.from) > 1 || stars(r.from) != stars(r.to))
            return TT_FAIL(ctx, TT_EINVAL,
                           "map '%.300s': '%.*s=%.*s' needs one * on both sides, "
                           "or none",
                           map, (int)TTI_MIN(r.from.n, 200), r.from.s, (int)TTI_MIN(r.to.n, 200),
                           r.to.s);
    }
    return TT_OK;
}

// Does name match? *rest is what the star stands for.
static bool matches(piece p, const char *name, piece *rest)
{
    size_t n = strlen(name);
    const char *star = memchr(p.s, '*', p.n);
    size_t head = star == NULL ? p.n : (size_t)(star - p.s),
           tail = star == NULL ? 0 : p.n - head - 1;
    *rest = (piece){name + head, n - head - tail};
    return (star == NULL ? n == p.n : n >= head + tail) && memcmp(name, p.s, head) == 0 &&
           memcmp(name + n - tail, p.s + p.n - tail, tail) == 0;
}

static tt_status rename_by(tt_ctx *ctx, const char *map, bool back, const char *name,
                           char out[TTI_RENAME_MAX])
{
    rule r;
    piece parts[3] = {{name, strlen(name)}, {"", 0}, {"", 0}}, rest;
    for (const char *at = map; next_rule(&at, &r);) {
        if (back)
            r = (rule){r.to, r.from};
        if (!matches(r.from, name, &rest))
            continue;
        const char *star = memchr(r.to.s, '*', r.to.n);
        size_t head = star == NULL ? r.to.n : (size_t)(star - r.to.s);
        parts[0] = (piece){r.to.s, head};
        if (star != NULL) {
            parts[1] = rest;
            parts[2] = (piece){star + 1, r.to.n - head - 1};
        }
        break;
    }
    size_t n = 0;
    for (int i = 0; i < 3; n += parts[i++].n)
        if (parts[i].n >= TTI_RENAME_MAX - n)
            return TT_FAIL(ctx, TT_EINVAL, "tensor '%.200s...': the name is longer than %d bytes",
                           name, TTI_RENAME_MAX - 1);
        else
            memcpy(out + n, parts[i].s, parts[i].n);
    out[n] = '\0';
    return TT_OK;
}

tt_status tti_rename(tt_ctx *ctx, const char *map, const char *name, char out[TTI_RENAME_MAX])
{
    return rename_by(ctx, map, false, name, out);
}

tt_status tti_rename_back(tt_ctx *ctx, const char *map, const char *name, char out[TTI_RENAME_MAX])
{
    return rename_by(ctx, map, true, name, out);
}
