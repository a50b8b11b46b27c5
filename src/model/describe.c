/*
 * describe.c - models as JSON (describe.h).
 */
#include "model/describe.h"
#include "base/ctx.h"
#include "model/build.h"
#include "model/layer.h"
#include <string.h>

#define MAX_LAYERS 100000

// ---- out -------------------------------------------------------------------------------------

static const char *name_of(const tt_model *m, const tt_tensor *t)
{
    for (int64_t i = 0; i < m->n_layers; i++)
        if (m->layers[i]->out == t)
            return m->layers[i]->name;
    return "";
}

static void describe_input(const tti_layer *l, tti_text *t)
{
    tt_shape s = l->out->shape, one = {.rank = s.rank - 1};
    memcpy(one.dim, s.dim + 1, sizeof(one.dim[0]) * (size_t)one.rank);
    tti_text_add(t, "{\"name\": \"%s\", \"type\": \"%s\", \"shape\": ", l->name,
                 tt_dtype_name(l->out->dtype));
    tti_shape_json(t, &one);
    tti_text_add(t, "}");
}

static void describe_layer(const tt_model *m, const tti_layer *l, tti_text *t)
{
    tti_text_add(t, "{\"kind\": \"%s\", \"name\": \"%s\", \"from\": [", l->def->name, l->name);
    for (int i = 0; i < l->n_in; i++)
        tti_text_add(t, "%s\"%s\"", i > 0 ? ", " : "", name_of(m, l->in[i]));
    tti_text_add(t, "]");
    if (l->share != l)
        tti_text_add(t, ", \"share\": \"%s\"", l->share->name);
    tti_text_add(t, ", \"options\": ");
    tti_options_json(t, l->def->options, l->opts);
    tti_text_add(t, "}");
}

void tti_model_describe(tt_model *m, tti_text *t)
{
    tti_output outputs[TTI_MAX_INPUTS];
    const char *comma = "";
    tti_text_add(t, "\"inputs\": [");
    for (int i = 0; i < m->n_inputs; i++) {
        tti_text_add(t, "%s", i > 0 ? ", " : "");
        describe_input(m->inputs[i], t);
    }
    tti_text_add(t, "], \"layers\": [");
    for (int64_t i = 0; i < m->n_layers; i++) {
        if (m->layers[i]->def == NULL)
            continue;
        tti_text_add(t, "%s", comma);
        describe_layer(m, m->layers[i], t);
        comma = ", ";
    }
    tti_text_add(t, "], \"outputs\": [");
    int n = m->n_layers > 0 ? tti_model_outputs(m, outputs) : 0;
    for (int i = 0; i < n; i++)
        tti_text_add(t, "%s{\"name\": \"%s\", \"layer\": \"%s\"}", i > 0 ? ", " : "",
                     outputs[i].name, name_of(m, outputs[i].tensor));
    tti_text_add(t, "]");
}

// ---- in --------------------------------------------------------------------------------------

typedef struct reader {
    tt_ctx *ctx;
    const char *file;
    tt_model *model;
} reader;

static tt_status bad(const reader *r, const char *what)
{
    return TT_FAIL(r->ctx, TT_EPARSE, "%s: the description of the model has no valid %s", r->file,
                   what);
}

static const char *text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s != NULL ? s : "";
}

static tt_tensor *output_of(const reader *r, const char *name)
{
    const tti_layer *l = tti_layer_named(r->model, name);
    return l != NULL ? l->out : NULL;
}

static tt_status read_input(const reader *r, const json_t *o)
{
    tt_shape s;
    tt_input_opts in = {.opts_size = sizeof(in), .name = text_of(o, "name")};
    if (in.name[0] == '\0' || !tti_shape_of_json(json_object_get(o, "shape"), &s))
        return bad(r, "inputs");
    TT_TRY(tti_parse_dtype(r->ctx, text_of(o, "type"), &in.dtype));
    memcpy(in.shape, s.dim, sizeof(in.shape[0]) * (size_t)s.rank);
    return tt_input_with(r->model, &in) != NULL ? TT_OK : tt_status_of(r->ctx);
}

static tt_status read_common(const reader *r, const json_t *o, tti_layer_common *c)
{
    const json_t *from = json_object_get(o, "from");
    const char *share = text_of(o, "share");
    c->name = text_of(o, "name");
    if (c->name[0] == '\0' || json_array_size(from) < 1 || json_array_size(from) > TT_MAX_FROM)
        return bad(r, "layers");
    for (size_t i = 0; i < json_array_size(from); i++) {
        const char *name = json_string_value(json_array_get(from, i));
        c->from[i] = name != NULL ? output_of(r, name) : NULL;
        if (c->from[i] == NULL)
            return bad(r, "inputs of layers");
    }
    c->share = share[0] != '\0' ? output_of(r, share) : NULL;
    return share[0] != '\0' && c->share == NULL ? bad(r, "shared layers") : TT_OK;
}

static tt_status read_layer(const reader *r, const json_t *o)
{
    const char *kind = text_of(o, "kind"), *name = text_of(o, "name");
    const tti_layer_def *def = tti_layer_find_built(kind);
    if (def == NULL)
        return TT_FAIL(r->ctx, TT_EUNSUPPORTED,
                       "%s: layer '%.64s' has type '%.64s', which this version cannot build; build "
                       "a program's own layers there and load the weights with tt_load()",
                       r->file, name, kind);
    char *opts = tti_calloc(r->ctx, 1, def->size);
    if (opts == NULL)
        return TT_ENOMEM;
    memcpy(opts, &def->size, sizeof(def->size)); // opts_size is the first member
    tt_status st = tti_options_of_json(r->ctx, r->file, name, def->options,
                                       json_object_get(o, "options"), opts);
    if (st == TT_OK)
        st = read_common(r, o, (tti_layer_common *)(void *)(opts + def->common));
    if (st == TT_OK && tti_layer_add(r->model, def, opts) == NULL)
        st = tt_status_of(r->ctx);
    tti_free(r->ctx, opts);
    return st;
}

static tt_status read_output(const reader *r, const json_t *o)
{
    tt_tensor *t = output_of(r, text_of(o, "layer"));
    return t == NULL ? bad(r, "outputs") : tt_output(r->model, t, text_of(o, "name"));
}

static tt_status read_list(const reader *r, const json_t *o, const char *key, size_t max,
                           tt_status (*fn)(const reader *r, const json_t *o))
{
    const json_t *list = json_object_get(o, key);
    if (json_array_size(list) < 1 || json_array_size(list) > max)
        return bad(r, key);
    for (size_t i = 0; i < json_array_size(list); i++)
        TT_TRY(fn(r, json_array_get(list, i)));
    return TT_OK;
}

tt_status tti_model_of_json(tt_ctx *ctx, const char *file, const json_t *o, tt_model **out)
{
    reader r = {.ctx = ctx, .file = file, .model = tt_model_new(ctx)};
    if (r.model == NULL)
        return tt_status_of(ctx);
    tt_status st = read_list(&r, o, "inputs", TTI_MAX_INPUTS, read_input);
    if (st == TT_OK)
        st = read_list(&r, o, "layers", MAX_LAYERS, read_layer);
    if (st == TT_OK)
        st = read_list(&r, o, "outputs", TTI_MAX_INPUTS, read_output);
    if (st != TT_OK) {
        tt_model_free(r.model);
        return st;
    }
    *out = r.model;
    return TT_OK;
}
