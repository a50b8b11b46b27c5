/*
 * registry.c - all kinds of sources by name: the library's list (sources.def), then those a user
 * registered; and the call that makes a data set of each, tt_digits_with() and so on.
 */
#include "data/data.h"

static const void *const kinds[] = {
#define X(kind) &tti_source_##kind,
#include "data/sources.def"
#undef X
};
static const tti_records sources = {"source", "a name and open()", kinds, TTI_COUNT(kinds)};

const tt_source_def *tt_source_at(const tt_ctx *ctx, int i)
{
    return tti_registry_at(&sources, ctx != NULL ? &ctx->user_sources : NULL, i);
}

const tt_source_def *tt_source_find(const tt_ctx *ctx, const char *name)
{
    return tti_registry_find(&sources, ctx != NULL ? &ctx->user_sources : NULL, name);
}

tt_status tt_source_register(tt_ctx *ctx, const tt_source_def *def)
{
    return tti_registry_add(ctx, &sources, ctx != NULL ? &ctx->user_sources : NULL, def,
                            def != NULL && def->open != NULL);
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
