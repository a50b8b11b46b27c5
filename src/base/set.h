/*
 * set.h - a set of small numbers: devices by their index, processes by their rank.
 *
 * Its words are sized by how many there can be; whoever makes a set gives the memory, zeroed. What
 * lies beyond is not in it.
 */
#ifndef TUTTI_BASE_SET_H
#define TUTTI_BASE_SET_H

#include <stdbool.h>
#include <stdint.h>

#define TTI_SET_WORDS(n) (((n) + 63) / 64) // for numbers below n

typedef struct tti_set {
    uint64_t *words;
    int n; // numbers are below it
} tti_set;

static inline bool tti_set_has(const tti_set *s, int i)
{
    return i >= 0 && i < s->n && (s->words[i / 64] >> (i % 64) & 1u) != 0;
}

static inline void tti_set_add(tti_set *s, int i)
{
    s->words[i / 64] |= (uint64_t)1 << (i % 64);
}

static inline int tti_set_count(const tti_set *s)
{
    int n = 0;
    for (int i = 0; i < TTI_SET_WORDS(s->n); i++)
        n += __builtin_popcountll(s->words[i]);
    return n;
}

#endif
