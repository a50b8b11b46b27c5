/*
 * model.c - a model's life: inputs, outputs, its session, and the second build for training.
 *
 * The model alone owns its graph: it is taken off the context's list, so whichever of the two is
 * freed first, the graph goes with the model.
 */
#include "base/ctx.h"
#include "model/build.h"
#include <stdio.h>
#include <string.h>
#include <tutti/run.h>

static void model_free(void *p)
{
    tt_model *m = p;
    tt_ctx *ctx = m->ctx;
    if (m->step != NULL)
        m->free_step(m);
    if (m->use != NULL)
        m->free_use(m);
    tti_free(ctx, m->about_data);
    tti_free(ctx, m->about_train);
    tti_model_drop(m, (tti_mark){.n_nodes = m->graph->n_nodes});
    for (int i = 0; i < m->n_outputs; i++)
        tti_free(ctx, m->outputs[i].name);
    tti_free(ctx, m->layers);
    tti_free(ctx, m->weights);
    tti_free(ctx, m->updates);
    for (int64_t i = 0; i < m->n_pin_rules; i++)
        tti_free(ctx, m->pin_rules[i].patterns);
    tti_free(ctx, m->pin_rules);
    tt_graph_free(m->graph); // its sessions too
    tt_store_release(m->store);
    tti_free(ctx, m);
}

tt_model *tt_model_new(tt_ctx *ctx)
{
    if (tti_is_stuck(ctx))
        return NULL;
    tt_model *m = tti_calloc(ctx, 1, sizeof(*m));
    if (m == NULL)
        return NULL;
    m->ctx = ctx;
    m->store = tt_store_new();
    if (m->store == NULL)
        (void)TT_FAIL(ctx, TT_ENOMEM, "model: out of memory");
    m->graph = tt_graph_new(ctx);
    if (m->graph == NULL) {
        tt_store_release(m->store);
        tti_free(ctx, m);
        return NULL;
    }
    m->graph->store = m->store;
    tti_disown(ctx, &m->graph->owned);
    tti_own(ctx, &m->owned, m, model_free);
    return m;
}

void tt_model_free(tt_model *m)
{
    if (m == NULL)
        return;
    tti_disown(m->ctx, &m->owned);
    model_free(m);
}

tt_status tti_model_pin(tt_model *m, const char *patterns, const char *device)
{
    tti_pin_rule rule = {.is_used = false};
    TT_TRY(tt_device_parse(m->ctx, device, &rule.device));
    if (!tti_grow(m->ctx, &m->pin_rules, &m->cap_pin_rules, m->n_pin_rules + 1, sizeof(rule)))
        return TT_ENOMEM;
    rule.patterns = tti_strdup(m->ctx, patterns);
    if (rule.patterns == NULL)
        return TT_ENOMEM;
    m->pin_rules[m->n_pin_rules++] = rule;
    return TT_OK;
}

// ---- inputs ----------------------------------------------------------------------------------

// [batch, record...]; the record's dimensions end at the first zero.
static tt_status input_shape(tt_model *m, const int64_t record[TT_MAX_RANK], tt_shape *out)
{
    int rank = 0;
    while (rank < TT_MAX_RANK && record[rank] != 0)
        rank++;
    for (int i = 0; i < TT_MAX_RANK; i++)
        if (record[i] < 0 || (i > rank && record[i] != 0))
            return TT_FAIL(m->ctx, TT_ESHAPE,
                           "dimension %d of a record is %lld, but it follows %lld", i,
                           (long long)record[i], i > 0 ? (long long)record[i - 1] : 0);
    if (rank == TT_MAX_RANK)
        return TT_FAIL(m->ctx, TT_ESHAPE, "a record has at most %d dimensions", TT_MAX_RANK - 1);
    *out = (tt_shape){.rank = rank + 1, .dim = {TT_BATCH}};
    memcpy(out->dim + 1, record, sizeof(record[0]) * (size_t)rank);
    return TT_OK;
}

static tt_tensor *input_feed(tt_graph *g, const char *name, tt_shape shape, tt_dtype dtype)
{
    size_t from = tti_scope_root(g);
    tt_tensor *t = tt_feed(g, .shape = shape, .dtype = dtype, .name = name);
    tti_scope_back(g, from);
    if (t != NULL && strcmp(t->node->name, name) != 0) {
        (void)TT_FAIL(g->ctx, TT_EINVAL, "the graph already has a node '%s'", name);
        return NULL;
    }
    return t;
}

// "x", "x_1", ...: the first that is free.
static tt_status input_name(tt_model *m, const char *given, char out[TTI_NAME_MAX])
{
    if (given != NULL && given[0] != 0)
        return tti_layer_name(m, NULL, given, out);
    snprintf(out, TTI_NAME_MAX, "x");
    for (int i = 1; tti_layer_named(m, out) != NULL; i++)
        snprintf(out, TTI_NAME_MAX, "x_%d", i);
    return TT_OK;
}

static tt_tensor *input_add(tt_model *m, const tt_input_opts *o)
{
    char name[TTI_NAME_MAX];
    tt_shape shape;
    tti_where where;
    if (tti_model_open(m, "input") != TT_OK || input_name(m, o->name, name) != TT_OK)
        return NULL;
    if (m->n_inputs == TTI_MAX_INPUTS) {
        (void)TT_FAIL(m->ctx, TT_EINVAL, "input '%s': a model has at most %d inputs", name,
                      TTI_MAX_INPUTS);
        return NULL;
    }
    tti_mark mark = tti_model_mark(m);
    tti_where_push(&where, m->ctx, name);
    tt_status st = input_shape(m, o->shape, &shape);
    tti_layer *l = st == TT_OK ? tti_layer_append(m, NULL, name, NULL) : NULL;
    if (l != NULL)
        l->out = input_feed(m->graph, name, shape, o->dtype);
    tti_where_pop(&where, m->ctx);
    if (l == NULL || l->out == NULL) {
        tti_model_drop(m, mark);
        return NULL;
    }
    m->inputs[m->n_inputs++] = l;
    return l->out;
}

tt_tensor *tt_input_with(tt_model *m, const tt_input_opts *opts)
{
    if (m == NULL || tti_is_stuck(m->ctx))
        return NULL;
    TTI_OPTS_OWN(m->ctx, "input", tt_input_opts, opts);
    if (opts == NULL)
        return NULL;
    return input_add(m, opts);
}

tt_model *tt_sequential_with(tt_ctx *ctx, const tt_sequential_opts *opts)
{
    if (tti_is_stuck(ctx))
        return NULL;
    tt_sequential_opts o;
    if (TTI_OPTS_COPY(ctx, "sequential", opts, &o) != TT_OK)
        return NULL;
    tt_model *m = tt_model_new(ctx);
    if (m == NULL || o.input[0] == 0)
        return m;
    tt_input_opts in = {.dtype = o.dtype, .name = o.name};
    memcpy(in.shape, o.input, sizeof(in.shape));
    if (input_add(m, &in) != NULL)
        return m;
    tt_model_free(m);
    return NULL;
}

// ---- outputs ---------------------------------------------------------------------------------

tt_status tt_output(tt_model *m, tt_tensor *x, const char *name)
{
    if (m == NULL)
        return TT_FAIL(tti_tensor_ctx(x), TT_EINVAL, "output: the model is NULL");
    if (tti_is_stuck(m->ctx))
        return tt_status_of(m->ctx);
    TT_TRY(tti_model_open(m, "output"));
    tti_layer *l = tti_layer_of(m, x);
    if (l == NULL)
        return tt_status_of(m->ctx);
    if (name == NULL || name[0] == 0)
        name = l->name;
    if (m->n_outputs == TTI_MAX_INPUTS)
        return TT_FAIL(m->ctx, TT_EINVAL, "output '%.64s': a model has at most %d outputs", name,
                       TTI_MAX_INPUTS);
    TT_TRY(tti_name_check(m->ctx, "output", name));
    for (int i = 0; i < m->n_outputs; i++)
        if (strcmp(m->outputs[i].name, name) == 0)
            return TT_FAIL(m->ctx, TT_EINVAL, "there already is an output '%s'", name);
    char *copy = tti_strdup(m->ctx, name);
    if (copy == NULL)
        return TT_ENOMEM;
    m->outputs[m->n_outputs++] = (tti_output){copy, x};
    return TT_OK;
}

int tti_model_outputs(tt_model *m, tti_output out[TTI_MAX_INPUTS])
{
    if (m == NULL || m->n_layers == 0)
        return 0;
    if (m->n_outputs > 0) {
        memcpy(out, m->outputs, sizeof(out[0]) * (size_t)m->n_outputs);
        return m->n_outputs;
    }
    tti_layer *last = m->layers[m->n_layers - 1];
    out[0] = (tti_output){last->name, last->out};
    return 1;
}

// ---- the training graph, the session ---------------------------------------------------------

static tt_status build_again(tt_model *m, tt_graph *g, tti_layer *l)
{
    tti_where where;
    if (l->def == NULL) {
        l->train_out = input_feed(g, l->name, l->out->shape, l->out->dtype);
    } else {
        tt_tensor *in[TT_MAX_FROM];
        for (int i = 0; i < l->n_in; i++) {
            tti_layer *from = tti_layer_of(m, l->in[i]);
            if (from == NULL)
                return tt_status_of(m->ctx);
            in[i] = from->train_out;
        }
        tt_build b = {.model = m, .graph = g, .layer = l, .training = true, .type = m->compute};
        tti_where_push(&where, m->ctx, l->name);
        l->train_out = tti_layer_build(&b, in);
        tti_where_pop(&where, m->ctx);
    }
    return l->train_out == NULL ? tt_status_of(m->ctx) : TT_OK;
}

tt_status tti_model_build_training(tt_model *m, tt_graph *g, tt_tensor ***updates, int *n_updates)
{
    tt_status st = tt_status_of(m->ctx);
    tti_disown(m->ctx, &g->owned);
    g->store = m->store;
    m->n_updates = 0;
    for (int64_t i = 0; i < m->n_weights; i++)
        m->weights[i].train_var = NULL;
    for (int64_t i = 0; i < m->n_layers; i++)
        m->layers[i]->train_out = NULL;
    for (int64_t i = 0; st == TT_OK && i < m->n_layers; i++)
        st = build_again(m, g, m->layers[i]);
    *updates = m->updates;
    *n_updates = (int)m->n_updates;
    return st;
}

tt_session *tti_model_session(tt_model *m)
{
    if (m->session == NULL)
        m->session = tt_session_new(m->graph, .store = m->store);
    return m->session;
}

tt_graph *tt_model_get_graph(tt_model *m)
{
    return m == NULL ? NULL : m->graph;
}
