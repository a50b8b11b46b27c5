/*
 * registry.c - all kinds of sources by name: the library's list (sources.def), then those a user
 * registered; and the call that makes a data set of each, tt_digits_with() and so on.
 */
#include "data/data.h"
#include <string.h>

static const tt_source_def *const kinds[] = {
#define X(kind) &tti_source_##kind,
#include "data/sources.def"
#undef X
};

const tt_source_def *tt_source_at(const tt_ctx *ctx, int i)
{
    if (i >= 0 && i < TTI_COUNT(kinds))
        return kinds[i];
    i -= TTI_COUNT(kinds);
    return ctx != NULL && i >= 0 && i < ctx->n_user_sources ? ctx->user_sources[i] : NULL;
}

const tt_source_def *tt_source_find(const tt_ctx *ctx, const char *name)
{
    const tt_source_def *def;
    for (int i = 0; name != NULL && (def = tt_source_at(ctx, i)) != NULL; i++)
        if (strcmp(def->name, name) == 0)
            return def;
    return NULL;
}

tt_status tt_source_register(tt_ctx *ctx, const tt_source_def *def)
{
    if (ctx == NULL)
        return TT_EINVAL;
    if (def == NULL || def->name == NULL || def->open == NULL)
        return TT_FAIL(ctx, TT_EINVAL, "source: the definition needs a name and open()");
    if (tt_source_find(ctx, def->name) != NULL)
        return TT_FAIL(ctx, TT_EINVAL, "source '%s' is already registered", def->name);
    if (!tti_grow(ctx, &ctx->user_sources, &ctx->cap_user_sources, ctx->n_user_sources + 1,
                  sizeof(*ctx->user_sources)))
        return TT_ENOMEM;
    ctx->user_sources[ctx->n_user_sources++] = def;
    return TT_OK;
}

/*
 * tt_KIND_with(): what an older caller's options do not have is default; zero fields are filled in,
 * then the source is opened.
 */
#define X(kind)                                                                   \
    tt_data *tt_##kind##_with(tt_ctx *ctx, const tt_##kind##_opts *opts)          \
    {                                                                             \
        tt_##kind##_opts o;                                                       \
        if (tti_is_stuck(ctx) || TTI_OPTS_COPY(ctx, #kind, opts, &o) != TT_OK)    \
            return NULL;                                                          \
        if (tti_options_fill(ctx, tti_source_##kind.options, &o, #kind) != TT_OK) \
            return NULL;                                                          \
        return tt_data_open(ctx, &tti_source_##kind, &o, &TTI_DATA_OPTS(o));      \
    }
#include "data/sources.def"
#undef X
