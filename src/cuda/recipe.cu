/*
 * recipe.cu - what was found out about calls of libraries, by key, as long as the device is open.
 */
#include "cuda/parts.h"
#include <stdint.h>
#include <string.h>

struct tti_recipe {
    struct tti_recipe *next;
    uint64_t hash;
    size_t key_bytes;
    size_t at; // of the recipe, from the start of this block; the key follows this struct
    void (*drop)(void *recipe);
};

// FNV-1a.
static uint64_t hash_of(const void *key, size_t bytes)
{
    const unsigned char *k = (const unsigned char *)key;
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ k[i]) * 0x100000001b3u;
    return h;
}

void *tti_recipe_get(tti_cuda_device *d, const void *key, size_t key_bytes, size_t size,
                     void (*drop)(void *recipe), bool *is_new)
{
    uint64_t hash = hash_of(key, key_bytes);
    *is_new = false;
    for (tti_recipe *r = d->recipes; r != NULL; r = r->next)
        if (r->hash == hash && r->key_bytes == key_bytes && memcmp(r + 1, key, key_bytes) == 0)
            return (char *)r + r->at;

    size_t at = (sizeof(tti_recipe) + key_bytes + 15) & ~(size_t)15;
    tti_recipe *r = (tti_recipe *)tti_cuda_host_api->alloc(d->ctx, at + size);
    if (r == NULL)
        return NULL;
    r->hash = hash;
    r->key_bytes = key_bytes;
    r->at = at;
    r->drop = drop;
    memcpy(r + 1, key, key_bytes);
    r->next = d->recipes;
    d->recipes = r;
    *is_new = true;
    return (char *)r + at;
}

void tti_recipes_drop(tti_cuda_device *d)
{
    while (d->recipes != NULL) {
        tti_recipe *r = d->recipes;
        d->recipes = r->next;
        if (r->drop != NULL)
            r->drop((char *)r + r->at);
        tti_cuda_host_api->free(d->ctx, r);
    }
}
