/*
 * match.c - names by patterns: "*.bias, norm?", where * is any characters and ? is one.
 */
#include "base/base.h"
#include <string.h>

// On a mismatch the last star takes one character more.
bool tti_match_one(const char *p, size_t n, const char *name)
{
    const char *end = p + n, *star = NULL, *from = NULL;
    while (*name != 0) {
        if (p < end && *p == '*') {
            star = ++p;
            from = name;
        } else if (p < end && (*p == '?' || *p == *name)) {
            p++;
            name++;
        } else if (star != NULL) {
            p = star;
            name = ++from;
        } else {
            return false;
        }
    }
    while (p < end && *p == '*')
        p++;
    return p == end;
}

bool tti_match(const char *patterns, const char *name)
{
    for (const char *p = patterns; p != NULL && *p != 0;) {
        p += strspn(p, ", \t");
        size_t n = strcspn(p, ", \t");
        if (n > 0 && tti_match_one(p, n, name))
            return true;
        p += n;
    }
    return false;
}
