/*
 * by_name.c - layers and sources by the name of their kind, with options as JSON: what bindings
 * call. The rows of the kind read them, as they read those of a job file.
 */
#include "base/ctx.h"
#include "base/option_json.h"
#include "data/data.h"
#include "model/layer.h"
#include <string.h>
#include <tutti/catalog.h>

#define MOST_KINDS 256

// Reads an object of strings; NULL text: *out is NULL, which stands for an empty one.
static tt_status read_options(tt_ctx *ctx, const char *kind, const char *text, json_t **out)
{
    json_error_t e;
    *out = text != NULL ? json_loads(text, JSON_REJECT_DUPLICATES, &e) : NULL;
    if (text != NULL && !json_is_object(*out)) {
        json_decref(*out);
        return TT_FAIL(ctx, TT_EPARSE, "%s: the options are not a JSON object: '%.64s'", kind,
                       text);
    }
    return TT_OK;
}

static tt_status unknown(tt_ctx *ctx, const char *what, const char *kind, const char *const *names)
{
    const char *near = tti_nearest(kind, names);
    return TT_FAIL(ctx, TT_EINVAL,
                   near != NULL ? "there is no %s '%.64s'; did you mean '%s'?"
                                : "there is no %s '%.64s'",
                   what, kind, near);
}

// ---- layers ----------------------------------------------------------------------------------

static const tti_layer_def *find_layer(tt_ctx *ctx, const char *kind)
{
    const char *names[MOST_KINDS + 1];
    const tti_layer_def *def = tti_layer_find(kind);
    int n = 0;
    if (def != NULL)
        return def;
    for (; n < MOST_KINDS && tti_layer_at(n) != NULL; n++)
        names[n] = tti_layer_at(n)->name;
    names[n] = NULL;
    (void)unknown(ctx, "layer", kind, names);
    return NULL;
}

static tt_tensor *append(tt_model *m, const tti_layer_def *def, const tt_catalog_layer_opts *o,
                         const json_t *options)
{
    char *opts = tti_calloc(m->ctx, 1, def->size);
    tt_tensor *out = NULL;
    if (opts == NULL)
        return NULL;
    memcpy(opts, &def->size, sizeof(def->size)); // opts_size is the first member
    if (tti_options_of_json(m->ctx, "options", def->name, def->options, options, opts) == TT_OK) {
        tti_layer_common *c = (tti_layer_common *)(void *)(opts + def->common);
        c->name = o->name;
        c->share = o->share;
        memcpy(c->from, o->from, sizeof(c->from));
        out = tti_layer_add(m, def, opts);
    }
    tti_free(m->ctx, opts);
    return out;
}

tt_tensor *tt_catalog_layer_with(tt_model *m, const char *kind, const tt_catalog_layer_opts *opts)
{
    tt_catalog_layer_opts o;
    json_t *options = NULL;
    if (m == NULL || tti_is_stuck(m->ctx))
        return NULL;
    if (kind == NULL) {
        (void)TT_FAIL(m->ctx, TT_EINVAL, "layer: the kind is NULL");
        return NULL;
    }
    const tti_layer_def *def = find_layer(m->ctx, kind);
    if (def == NULL || TTI_OPTS_COPY(m->ctx, kind, opts, &o) != TT_OK ||
        read_options(m->ctx, kind, o.options, &options) != TT_OK)
        return NULL;
    tt_tensor *out = append(m, def, &o, options);
    json_decref(options);
    return out;
}

// ---- sources ---------------------------------------------------------------------------------

static const tt_source_def *find_source(tt_ctx *ctx, const char *kind)
{
    const char *names[MOST_KINDS + 1];
    const tt_source_def *def = tt_source_find(ctx, kind);
    int n = 0;
    if (def != NULL)
        return def;
    for (; n < MOST_KINDS && tt_source_at(ctx, n) != NULL; n++)
        names[n] = tt_source_at(ctx, n)->name;
    names[n] = NULL;
    (void)unknown(ctx, "source", kind, names);
    return NULL;
}

tt_data *tt_catalog_source_with(tt_ctx *ctx, const char *kind, const tt_catalog_source_opts *opts)
{
    tt_catalog_source_opts o;
    json_t *options = NULL;
    tt_data *out = NULL;
    if (ctx == NULL || tti_is_stuck(ctx))
        return NULL;
    if (kind == NULL) {
        (void)TT_FAIL(ctx, TT_EINVAL, "source: the kind is NULL");
        return NULL;
    }
    const tt_source_def *def = find_source(ctx, kind);
    if (def == NULL || TTI_OPTS_COPY(ctx, kind, opts, &o) != TT_OK ||
        read_options(ctx, kind, o.options, &options) != TT_OK)
        return NULL;
    char *own = tti_calloc(ctx, 1, def->options_size);
    if (own != NULL &&
        tti_options_of_json(ctx, "options", kind, def->options, options, own) == TT_OK) {
        tti_options_zeros(def->options, own, false); // a source fills in nothing
        out = tt_data_open(ctx, def, own, &TTI_DATA_OPTS(o));
    }
    tti_free(ctx, own);
    json_decref(options);
    return out;
}
