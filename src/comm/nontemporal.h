/*
 * nontemporal.h - copying past the cache, where that is possible: results that are more than it
 * holds, and what another core reads next and has had in its own cache (process_copy.c).
 */
#ifndef TUTTI_COMM_NONTEMPORAL_H
#define TUTTI_COMM_NONTEMPORAL_H

#include "base/base.h"
#include <string.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#define TTI_NONTEMPORAL_LEAST ((size_t)8 << 20) // bytes of results that no cache keeps

// Any number of bytes; to be followed by tti_nontemporal_end() before others are told of them.
static inline void tti_nontemporal_copy(void *to, const void *from, size_t bytes)
{
#if defined(__x86_64__)
    char *d = to;
    const char *s = from;
    size_t head = TTI_MIN((64 - ((uintptr_t)d & 63)) & 63, bytes);
    memcpy(d, s, head);
    d += head, s += head, bytes -= head;
    for (; bytes >= 64; d += 64, s += 64, bytes -= 64) {
        __m128i a = _mm_loadu_si128((const void *)s), b = _mm_loadu_si128((const void *)(s + 16));
        __m128i x = _mm_loadu_si128((const void *)(s + 32));
        __m128i y = _mm_loadu_si128((const void *)(s + 48));
        _mm_stream_si128((void *)d, a);
        _mm_stream_si128((void *)(d + 16), b);
        _mm_stream_si128((void *)(d + 32), x);
        _mm_stream_si128((void *)(d + 48), y);
    }
    memcpy(d, s, bytes);
#else
    memcpy(to, from, bytes);
#endif
}

static inline void tti_nontemporal_end(void)
{
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

static inline void tti_copy(void *to, const void *from, size_t bytes, bool passes)
{
    if (!passes) {
        memcpy(to, from, bytes);
        return;
    }
    tti_nontemporal_copy(to, from, bytes);
    tti_nontemporal_end();
}

#endif
