/*
 * nodelist.c - Slurm's short forms: "n[1-3,07],gpu-[01-02]x[1-2]" for hosts and "2(x3),1" for
 * numbers per host. Everything in them comes from outside.
 */
#include "cluster/cluster.h"
#include <stdio.h>
#include <string.h>

#define MOST_DIGITS 9

// One item of the list up to a comma outside brackets; its length.
static size_t item_length(const char *s)
{
    size_t n = 0;
    for (bool inside = false; s[n] != '\0' && (inside || s[n] != ','); n++)
        inside = s[n] == '[' || (inside && s[n] != ']');
    return n;
}

typedef struct expansion {
    void (*call)(void *user, const char *host);
    void *user;
    int n, most;       // hosts so far, and where to stop
    const char *fault; // what is wrong
    char host[256];    // being made
} expansion;

static bool expand(expansion *e, size_t at, const char *s, size_t n);

// A decimal number of at most nine digits; how many there are.
static size_t digits(const char *s, const char *end, int64_t *out)
{
    size_t n = 0;
    *out = 0;
    for (; s + n < end && n <= MOST_DIGITS && s[n] >= '0' && s[n] <= '9'; n++)
        *out = *out * 10 + (s[n] - '0');
    return n;
}

// All hosts of "1-3,07" between brackets, each followed by the rest of the item.
static bool expand_ranges(expansion *e, size_t at, const char *s, const char *end, const char *rest,
                          size_t n_rest)
{
    for (;;) {
        int64_t from, to;
        size_t width = digits(s, end, &from), width_to = width;
        const char *next = s + width;
        to = from;
        if (width > 0 && next < end && *next == '-') {
            width_to = digits(next + 1, end, &to);
            next += 1 + width_to;
        }
        if (width == 0 || width_to == 0 || width > MOST_DIGITS || width_to > MOST_DIGITS ||
            to < from || (next < end && *next != ',')) {
            e->fault = "between brackets there must be numbers and ranges: [1-3,7]";
            return false;
        }
        for (int64_t i = from; i <= to; i++) {
            int w =
                snprintf(e->host + at, sizeof(e->host) - at, "%0*lld", (int)width, (long long)i);
            if (w < 0 || at + (size_t)w >= sizeof(e->host)) {
                e->fault = "a host name is too long";
                return false;
            }
            if (!expand(e, at + (size_t)w, rest, n_rest))
                return false;
            if (e->n == e->most)
                return true;
        }
        if (next == end)
            return true;
        s = next + 1;
    }
}

static bool expand(expansion *e, size_t at, const char *s, size_t n)
{
    size_t plain = 0;
    while (plain < n && s[plain] != '[')
        plain++;
    if (at + plain >= sizeof(e->host) - 1) {
        e->fault = "a host name is too long";
        return false;
    }
    memcpy(e->host + at, s, plain);
    at += plain;
    if (plain < n) {
        const char *open = s + plain + 1, *close = memchr(open, ']', n - plain - 1);
        if (close == NULL) {
            e->fault = "a bracket is not closed";
            return false;
        }
        return expand_ranges(e, at, open, close, close + 1, n - (size_t)(close + 1 - s));
    }
    e->host[at] = '\0';
    e->fault = tti_host_fault(e->host, at);
    if (e->fault != NULL)
        return false;
    e->call(e->user, e->host);
    e->n++;
    return true;
}

const char *tti_nodelist_expand(const char *text, int most,
                                void (*call)(void *user, const char *host), void *user, int *n)
{
    expansion e = {.call = call, .user = user, .most = most};
    for (const char *s = text; e.n < most; s++) {
        size_t length = item_length(s);
        if (!expand(&e, 0, s, length))
            return e.fault;
        s += length;
        if (*s == '\0')
            break;
    }
    *n = e.n;
    return NULL;
}

bool tti_per_node(const char *text, int node, int *out)
{
    for (const char *s = text; node >= 0;) {
        int64_t count, times = 1;
        const char *end = s + strlen(s);
        size_t w = digits(s, end, &count);
        if (w == 0 || w > MOST_DIGITS || count > TT_CLUSTER_MAX_TASKS)
            return false;
        s += w;
        if (strncmp(s, "(x", 2) == 0) {
            w = digits(s + 2, end, &times);
            if (w == 0 || w > MOST_DIGITS || times < 1 || s[2 + w] != ')')
                return false;
            s += 3 + w;
        }
        if (node < times) {
            *out = (int)count;
            return count > 0;
        }
        node -= (int)times;
        if (*s != ',')
            return false;
        s++;
    }
    return false;
}
