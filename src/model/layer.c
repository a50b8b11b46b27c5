/*
 * layer.c - appending a layer to a model: its name, its inputs, its nodes.
 *
 * A layer that fails leaves the model as it was: nodes, weights and records made since the mark are
 * dropped. While a layer is built its name stands in front of every message.
 */
#include "model/layer.h"
#include "base/ctx.h"
#include "model/build.h"
#include <stdio.h>
#include <string.h>

// ---- messages, marks -------------------------------------------------------------------------

void tti_where_push(tti_where *w, tt_ctx *ctx, const char *name)
{
    w->outer = ctx->where;
    snprintf(w->text, sizeof(w->text), "%.*s%s: ", TTI_NAME_MAX, w->outer == NULL ? "" : w->outer,
             name);
    tti_fail_where(ctx, w->text);
}

void tti_where_pop(const tti_where *w, tt_ctx *ctx)
{
    tti_fail_where(ctx, w->outer);
}

tti_mark tti_model_mark(const tt_model *m)
{
    return (tti_mark){m->graph->n_nodes, m->n_layers, m->n_weights, m->n_inputs};
}

void tti_model_drop(tt_model *m, tti_mark mark)
{
    while (m->n_layers > mark.n_layers) {
        tti_layer *l = m->layers[--m->n_layers];
        tti_free(m->ctx, l->name);
        tti_free(m->ctx, l->opts);
        tti_free(m->ctx, l);
    }
    while (m->n_weights > mark.n_weights)
        tti_free(m->ctx, m->weights[--m->n_weights].name);
    m->n_inputs = mark.n_inputs;
    if (m->graph->n_nodes > mark.n_nodes)
        tti_graph_truncate(m->graph, mark.n_nodes);
}

tt_status tti_model_open(const tt_model *m, const char *what)
{
    if (m->step == NULL)
        return TT_OK;
    return TT_FAIL(m->ctx, TT_EINVAL, "%s: the model is compiled; add layers before tt_compile()",
                   what);
}

// ---- names -----------------------------------------------------------------------------------

tti_layer *tti_layer_named(const tt_model *m, const char *name)
{
    for (int64_t i = 0; i < m->n_layers; i++)
        if (strcmp(m->layers[i]->name, name) == 0)
            return m->layers[i];
    return NULL;
}

tt_status tti_name_check(tt_ctx *ctx, const char *what, const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_.-";
    if (name[0] == 0 || name[strspn(name, allowed)] != 0)
        return TT_FAIL(ctx, TT_EINVAL,
                       "%s: '%.64s' is not a valid name; use letters, digits, '_', '-' and '.'",
                       what, name);
    if (strlen(name) > TTI_LAYER_NAME)
        return TT_FAIL(ctx, TT_EINVAL, "%s: name '%.64s...' is longer than %d characters", what,
                       name, TTI_LAYER_NAME);
    return TT_OK;
}

tt_status tti_layer_name(tt_model *m, const char *kind, const char *name, char out[TTI_NAME_MAX])
{
    bool given = name != NULL && name[0] != 0;
    const char *what = kind == NULL ? "input" : kind;
    if (given) {
        TT_TRY(tti_name_check(m->ctx, what, name));
        snprintf(out, TTI_NAME_MAX, "%s%s", m->prefix, name);
        if (tti_layer_named(m, out) != NULL)
            return TT_FAIL(m->ctx, TT_EINVAL, "%s: the model already has a layer '%s'", what, out);
    }
    for (int i = 1; !given; i++) {
        int n = snprintf(out, TTI_NAME_MAX, "%s%s_%d", m->prefix, what, i);
        given = n >= TTI_NAME_MAX || tti_layer_named(m, out) == NULL; // too long: refused below
    }
    return tti_name_check(m->ctx, what, out);
}

// ---- building --------------------------------------------------------------------------------

tti_layer *tti_layer_append(tt_model *m, const tti_layer_def *def, const char *name,
                            const void *opts)
{
    if (!tti_grow(m->ctx, &m->layers, &m->cap_layers, m->n_layers + 1, sizeof(*m->layers)))
        return NULL;
    tti_layer *l = tti_calloc(m->ctx, 1, sizeof(*l));
    if (l == NULL)
        return NULL;
    m->layers[m->n_layers++] = l; // from here on the mark frees it
    l->def = def;
    l->share = l;
    l->first_weight = (int)m->n_weights;
    l->name = tti_strdup(m->ctx, name);
    if (l->name == NULL)
        return NULL;
    if (def == NULL)
        return l;
    l->opts = tti_alloc(m->ctx, def->size);
    if (l->opts == NULL)
        return NULL;
    memcpy(l->opts, opts, def->size);
    tti_layer_common *c = (tti_layer_common *)((char *)l->opts + def->common);
    memset(c->from, 0, sizeof(c->from)); // what they became is in the record
    c->share = NULL;
    c->name = l->name;
    return l;
}

tt_tensor *tti_layer_build(tt_build *b, tt_tensor *const *in)
{
    tti_layer *l = b->layer;
    tt_graph *g = b->graph;
    int n_scopes = g->n_scopes, n_pins = g->n_pins;
    size_t from = tti_scope_root(g);
    tt_tensor *out = NULL;
    if (tt_name_push(g, l->name) == TT_OK) {
        if (l->has_pin && n_pins == 0) { // the training graph has no scopes of the user's
            g->pins[0] = l->pin;
            g->has_pin[0] = true;
            g->n_pins = 1;
        }
        tt_tensor *x[TT_MAX_FROM] = {NULL};
        for (int i = 0; i < l->n_in; i++)
            x[i] = tti_compute(b, in[i]);
        if (!tti_is_stuck(g->ctx))
            out = l->def->build(b, l->opts, x, l->n_in);
        if (tti_is_stuck(g->ctx)) // a caller's own function may not have looked
            out = NULL;
        if (out != NULL && out->graph != g) {
            (void)TT_FAIL(g->ctx, TT_EINVAL, "its output '%s' belongs to another graph",
                          out->node->name);
            out = NULL;
        }
        // In the inference graph every layer has an output of its own, so that it can be found.
        if (out != NULL && !b->training && tti_is_output(b->model, out))
            out = tt_identity(g, out);
    }
    if (out == NULL && !tti_is_stuck(g->ctx))
        (void)TT_FAIL(g->ctx, TT_EINVAL, "it returned no output");
    while (g->n_scopes > n_scopes)
        (void)tt_name_pop(g);
    g->n_pins = n_pins;
    tti_scope_back(g, from);
    return out;
}

tt_tensor *tti_compute(tt_build *b, tt_tensor *x)
{
    return b->type == TT_F32 || x->dtype != TT_F32 ? x : tt_cast(b->graph, x, b->type);
}

tt_status tti_build_update(tt_build *b, tt_tensor *update)
{
    tt_model *m = b->model;
    if (update == NULL)
        return tt_status_of(m->ctx);
    if (!tti_grow(m->ctx, &m->updates, &m->cap_updates, m->n_updates + 1, sizeof(*m->updates)))
        return TT_ENOMEM;
    m->updates[m->n_updates++] = update;
    return TT_OK;
}

tt_graph *tt_build_graph(const tt_build *b)
{
    return b == NULL ? NULL : b->graph;
}

bool tt_build_is_training(const tt_build *b)
{
    return b != NULL && b->training;
}
