/*
 * stream.h - stores past the cache, for kernels that write more than caches hold: a line is then
 * not read before it is written, nor does it push out what is still needed.
 */
#ifndef TUTTI_OP_STREAM_H
#define TUTTI_OP_STREAM_H

#include "op/cpu/simd.h"
#include <stdbool.h>
#include <tutti/extend.h>

#define TTI_STREAM_BYTES ((int64_t)32 << 20)

// Whether y is worth it: large, whole vectors, on line borders, and not the memory of x.
static inline bool tti_is_stream(const tt_arg *y, const tt_arg *x)
{
    return y->count * (int64_t)sizeof(real) >= TTI_STREAM_BYTES && y->cols % 16 == 0 &&
           (uintptr_t)y->data % 64 == 0 && y->data != x->data;
}

// p on a line border.
static inline void v16_stream(real *p, v16 a)
{
#if defined(TTI_SET_AVX512)
    _mm512_stream_ps(p, a.v);
#elif defined(TTI_SET_AVX2)
    _mm256_stream_ps(p, a.lo);
    _mm256_stream_ps(p + 8, a.hi);
#else
    v16_store(p, a);
#endif
}

// Before other threads may read what was streamed.
static inline void tti_stream_end(void)
{
#if defined(TTI_SET_AVX512) || defined(TTI_SET_AVX2)
    _mm_sfence();
#endif
}

// Reads ahead into the second-level cache; any address will do.
#define tti_ahead(p) __builtin_prefetch((p), 0, 2)

#endif
