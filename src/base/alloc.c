/*
 * alloc.c - host memory. Every block starts with a header that knows its size, so the context can
 * say how many blocks and bytes it holds, and a test can make the k-th allocation fail. A NULL
 * context allocates uncounted.
 */
#include "base/ctx.h"
#include "base/testing.h"
#include <stdlib.h>
#include <string.h>

// In front of every block; 16 bytes, so that the payload is aligned as malloc aligns.
typedef struct block {
    _Alignas(16) size_t bytes;
} block;

bool tti_mul_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

bool tti_mul_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

// True when this allocation is the one that a test wants to fail.
static bool must_fail(tt_ctx *ctx)
{
    int64_t left = atomic_load_explicit(&ctx->fail_in, memory_order_relaxed);
    while (left > 0)
        if (atomic_compare_exchange_weak(&ctx->fail_in, &left, left - 1))
            return left == 1;
    return false;
}

static void count(tt_ctx *ctx, int64_t blocks, size_t more, size_t less)
{
    atomic_fetch_add_explicit(&ctx->alloc_blocks, blocks, memory_order_relaxed);
    atomic_fetch_add_explicit(&ctx->alloc_bytes, (int64_t)more - (int64_t)less,
                              memory_order_relaxed);
}

// Gives old the new size; old may be NULL.
static void *resize(tt_ctx *ctx, block *old, size_t bytes, bool zero)
{
    block *b = NULL;
    size_t total, before = old != NULL ? old->bytes : 0;
    if (ctx != NULL)
        atomic_fetch_add_explicit(&ctx->alloc_calls, 1, memory_order_relaxed);
    if ((ctx == NULL || !must_fail(ctx)) && !__builtin_add_overflow(bytes, sizeof(block), &total) &&
        total <= PTRDIFF_MAX)
        b = zero ? calloc(1, total) : realloc(old, total);
    if (b == NULL) {
        TT_FAIL(ctx, TT_ENOMEM, "out of memory: cannot allocate %zu bytes", bytes);
        return NULL;
    }
    if (ctx != NULL)
        count(ctx, old == NULL, bytes, before);
    b->bytes = bytes;
    return b + 1;
}

void *tti_alloc(tt_ctx *ctx, size_t bytes)
{
    return resize(ctx, NULL, bytes, false);
}

void *tti_calloc(tt_ctx *ctx, size_t n, size_t bytes)
{
    size_t total;
    if (!tti_mul_size(n, bytes, &total)) {
        TT_FAIL(ctx, TT_ENOMEM, "out of memory: cannot allocate %zu times %zu bytes", n, bytes);
        return NULL;
    }
    return resize(ctx, NULL, total, true);
}

void *tti_realloc(tt_ctx *ctx, void *p, size_t bytes)
{
    return resize(ctx, p != NULL ? (block *)p - 1 : NULL, bytes, false);
}

bool tti_grow(tt_ctx *ctx, void *array, int64_t *cap, int64_t n, size_t bytes)
{
    if (n <= *cap)
        return true;
    int64_t want = *cap > INT64_MAX / 2 ? n : TTI_MAX(TTI_MAX(n, *cap * 2), 8);
    size_t total;
    void *p;
    if (!tti_mul_size((size_t)want, bytes, &total)) {
        TT_FAIL(ctx, TT_ENOMEM, "out of memory: cannot allocate %lld elements of %zu bytes",
                (long long)want, bytes);
        return false;
    }
    memcpy(&p, array, sizeof(p)); // array is the address of a pointer of any type
    p = tti_realloc(ctx, p, total);
    if (p == NULL)
        return false;
    memcpy(array, &p, sizeof(p));
    *cap = want;
    return true;
}

char *tti_strdup(tt_ctx *ctx, const char *s)
{
    size_t n = strlen(s) + 1;
    char *copy = tti_alloc(ctx, n);
    if (copy != NULL)
        memcpy(copy, s, n);
    return copy;
}

void tti_free(tt_ctx *ctx, void *p)
{
    if (p == NULL)
        return;
    block *b = (block *)p - 1;
    if (ctx != NULL)
        count(ctx, -1, 0, b->bytes);
    free(b);
}

tt_alloc_stats tt_alloc_stats_get(const tt_ctx *ctx)
{
    if (ctx == NULL)
        return (tt_alloc_stats){0};
    return (tt_alloc_stats){.calls = atomic_load(&ctx->alloc_calls),
                            .blocks = atomic_load(&ctx->alloc_blocks),
                            .bytes = (size_t)atomic_load(&ctx->alloc_bytes)};
}

void tti_fail_alloc_at(tt_ctx *ctx, int64_t n)
{
    if (ctx != NULL)
        atomic_store(&ctx->fail_in, n > 0 ? n : 0);
}
