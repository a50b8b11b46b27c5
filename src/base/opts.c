/*
 * opts.c - structs whose size the caller knows: options of keyword calls, and what calls fill. The
 * only place that reads opts_size.
 */
#include "base/base.h"
#include <stdio.h>
#include <string.h>

#define MOST ((size_t)1 << 20) // bytes of any struct of options; more is not a size

// Does the caller set anything that this library does not know?
static bool is_beyond(const char *opts, size_t given, size_t size)
{
    for (size_t i = size; i < given; i++)
        if (opts[i] != 0)
            return true;
    return false;
}

static tt_status read(tt_ctx *ctx, const char *who, const void *opts, void *own, size_t size)
{
    size_t given = 0;
    memcpy(&given, opts, sizeof(given));
    if (given < sizeof(given) || given > MOST)
        return TT_FAIL(ctx, TT_EINVAL,
                       "%s: opts_size is %zu; it must be the size of the struct, which the macros "
                       "and TT_OPTS() set",
                       who, given);
    if (is_beyond(opts, given, size))
        return TT_FAIL(ctx, TT_EINVAL,
                       "%s: the program sets options that Tutti %s does not have; it was compiled "
                       "with a newer version",
                       who, TT_VERSION);
    memcpy(own, opts, TTI_MIN(given, size));
    if (given < size)
        memset((char *)own + given, 0, size - given);
    memcpy(own, &size, sizeof(size));
    return TT_OK;
}

tt_status tti_opts_copy(tt_ctx *ctx, const char *who, const void *opts, void *own, size_t size)
{
    if (ctx == NULL)
        return TT_EINVAL;
    if (opts == NULL)
        return TT_FAIL(ctx, TT_EINVAL, "%s: the options are NULL", who);
    return read(ctx, who, opts, own, size);
}

tt_status tti_opts_part(tt_ctx *ctx, const char *who, const void *part, void *own, size_t size)
{
    if (part != NULL)
        return read(ctx, who, part, own, size);
    memset(own, 0, size);
    memcpy(own, &size, sizeof(size));
    return TT_OK;
}

// All pointers to structs look the same, but have other types.
tt_status tti_opts_list(tt_ctx *ctx, const char *who, void *list, int max, void *own, size_t size,
                        int *n)
{
    const char *given = NULL;
    *n = 0;
    for (int i = 0; i < max; i++) {
        char *slot = (char *)list + (size_t)i * sizeof(given), *at = (char *)own + (size_t)i * size;
        char where[64];
        if (i == *n)
            memcpy(&given, slot, sizeof(given));
        if (given == NULL || i > *n) { // beyond the end
            memset(slot, 0, sizeof(given));
            continue;
        }
        snprintf(where, sizeof(where), "%s %d", who, i);
        TT_TRY(read(ctx, where, given, at, size));
        memcpy(slot, &at, sizeof(at));
        (*n)++;
    }
    return TT_OK;
}

const void *tti_opts_own(tt_ctx *ctx, const char *who, const void *opts, void *own, size_t size)
{
    return tti_opts_copy(ctx, who, opts, own, size) == TT_OK ? own : NULL;
}

bool tti_opts_has(const void *opts, size_t end)
{
    size_t given = 0;
    if (opts != NULL)
        memcpy(&given, opts, sizeof(given));
    return given >= end && given <= MOST;
}

void tti_out_copy(void *out, size_t size, const void *from, size_t known)
{
    memcpy(out, from, TTI_MIN(size, known));
    if (size > known)
        memset((char *)out + known, 0, size - known);
}
