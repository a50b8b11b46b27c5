/*
 * hash.c - XXH3, the one hash of the library: of names, values and files.
 */
#include "base/base.h"

#ifndef TUTTI_HAVE_XXHASH
#error "xxHash is required: install libxxhash-dev (make deps)"
#endif
#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t tti_hash64(const void *data, size_t bytes, uint64_t seed)
{
    return XXH3_64bits_withSeed(data, bytes, seed);
}

tt_hash tti_hash128(const void *data, size_t bytes)
{
    XXH128_hash_t h = XXH3_128bits(data, bytes);
    return (tt_hash){h.low64, h.high64};
}
