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

tti_hasher *tti_hash_begin(tt_ctx *ctx)
{
    (void)ctx;
    XXH3_state_t *h = XXH3_createState();
    if (h != NULL)
        XXH3_128bits_reset(h);
    return (tti_hasher *)h;
}

void tti_hash_add(tti_hasher *h, const void *data, size_t bytes)
{
    XXH3_128bits_update((XXH3_state_t *)h, data, bytes);
}

tt_hash tti_hash_now(const tti_hasher *h)
{
    XXH128_hash_t v = XXH3_128bits_digest((const XXH3_state_t *)h);
    return (tt_hash){v.low64, v.high64};
}

tt_hash tti_hash_end(tt_ctx *ctx, tti_hasher *h)
{
    (void)ctx;
    XXH128_hash_t v = XXH3_128bits_digest((XXH3_state_t *)h);
    XXH3_freeState((XXH3_state_t *)h);
    return (tt_hash){v.low64, v.high64};
}
