/*
 * append.c - tti_layer_call() and tti_layer_add(): from an options struct to a layer of a model.
 *
 * Inputs are the outputs of layers. A kind that takes at least n inputs and is given n - 1 gets the
 * last layer's output in front: so a sequential model needs no names, and an add with one input is
 * a residual connection.
 */
#include "base/ctx.h"
#include "model/build.h"
#include <string.h>

static const tti_layer_common *common_of(const tti_layer_def *def, const void *opts)
{
    return (const tti_layer_common *)((const char *)opts + def->common);
}

static tti_layer *find_layer(const tt_model *m, const tt_tensor *t)
{
    for (int64_t i = m->n_layers - 1; i >= 0; i--)
        if (m->layers[i]->out == t)
            return m->layers[i];
    return NULL;
}

bool tti_is_output(const tt_model *m, const tt_tensor *t)
{
    return find_layer(m, t) != NULL;
}

tti_layer *tti_layer_of(tt_model *m, const tt_tensor *t)
{
    tti_layer *l = t == NULL ? NULL : find_layer(m, t);
    if (l == NULL && t == NULL)
        (void)TT_FAIL(m->ctx, TT_EINVAL, "the output of a layer is NULL");
    else if (l == NULL)
        (void)TT_FAIL(
            m->ctx, TT_EINVAL,
            "tensor '%s' is not the output of a layer of this model; use tt_layer_custom() to "
            "make a layer of any nodes",
            t->node->name);
    return l;
}

// ---- inputs ----------------------------------------------------------------------------------

static tt_status take_inputs(tt_model *m, tti_layer *l, const tti_layer_common *c)
{
    const tti_layer_def *def = l->def;
    int min = TTI_MAX(def->min_in, 1), max = TTI_MAX(def->max_in, min), n = 0;
    tti_layer *last = m->n_layers > 1 ? m->layers[m->n_layers - 2] : NULL; // l is at the end
    while (n < TT_MAX_FROM && c->from[n] != NULL)
        n++;
    for (int i = n; i < TT_MAX_FROM; i++)
        if (c->from[i] != NULL)
            return TT_FAIL(m->ctx, TT_EINVAL, "from[%d] is NULL but from[%d] is not", n, i);
    if (n == min - 1 && last == NULL)
        return TT_FAIL(m->ctx, TT_EINVAL,
                       "the model has no input; make one with tt_sequential(.input) or tt_input()");
    if (n == min - 1)
        l->in[l->n_in++] = last->out;
    for (int i = 0; i < n; i++) {
        if (tti_layer_of(m, c->from[i]) == NULL)
            return tt_status_of(m->ctx);
        l->in[l->n_in++] = c->from[i];
    }
    if (l->n_in < min || l->n_in > max)
        return TT_FAIL(m->ctx, TT_EINVAL, "takes %s%d input%s, got %d",
                       min == max      ? ""
                       : l->n_in < min ? "at least "
                                       : "at most ",
                       l->n_in < min ? min : max, (l->n_in < min ? min : max) == 1 ? "" : "s",
                       l->n_in);
    return TT_OK;
}

static tt_status take_share(tt_model *m, tti_layer *l, const tti_layer_common *c)
{
    if (c->share == NULL)
        return TT_OK;
    tti_layer *from = tti_layer_of(m, c->share);
    if (from == NULL)
        return tt_status_of(m->ctx);
    if (from->def == NULL)
        return TT_FAIL(m->ctx, TT_EINVAL,
                       "cannot share the weights of input '%s': it has no weights", from->name);
    l->share = from->share;
    return TT_OK;
}

// ---- options ---------------------------------------------------------------------------------

// A job file may leave out what must be given; numbers then are zero.
static tt_status check_given(tt_model *m, const tti_layer_def *def, const void *opts)
{
    static const char zero[sizeof(tt_ints)];
    for (const tt_option *row = def->options; row != NULL && row->type != TT_OPT_END; row++) {
        size_t n = row->type == TT_OPT_INT32   ? sizeof(int)
                   : row->type == TT_OPT_INT   ? sizeof(int64_t)
                   : row->type == TT_OPT_INTS  ? sizeof(int)
                   : row->type == TT_OPT_SHAPE ? sizeof(int)
                                               : 0;
        if (row->value == NULL && n > 0 && memcmp((const char *)opts + row->offset, zero, n) == 0)
            return TT_FAIL(m->ctx, TT_EINVAL, "%s must be given", row->name);
    }
    return TT_OK;
}

// {3} is {3, 3}.
static void fill_pairs(const tti_layer_def *def, void *opts)
{
    for (const tt_option *row = def->options; row != NULL && row->type != TT_OPT_END; row++) {
        int *pair = (int *)(void *)((char *)opts + row->offset);
        if (row->type == TT_OPT_PAIR && pair[1] == 0)
            pair[1] = pair[0];
    }
}

tt_tensor *tti_layer_call(tt_model *m, const tti_layer_def *def, const void *opts)
{
    if (m == NULL || tti_is_stuck(m->ctx))
        return NULL;
    void *own = tti_calloc(m->ctx, 1, def->size);
    if (own == NULL)
        return NULL;
    char name[TTI_NAME_MAX];
    tt_tensor *out = NULL;
    bool is_read = tti_opts_copy(m->ctx, def->name, opts, own, def->size) == TT_OK;
    fill_pairs(def, own);
    if (is_read && tti_layer_name(m, def->name, common_of(def, own)->name, name) == TT_OK &&
        tti_options_fill(m->ctx, def->options, own, name) == TT_OK)
        out = tti_layer_add(m, def, own);
    tti_free(m->ctx, own);
    return out;
}

// ---- appending -------------------------------------------------------------------------------

// A layer is pinned by the device scope it stands in, or else by the first rule for its name.
static void take_pin(tt_model *m, tti_layer *l)
{
    const tt_graph *g = m->graph;
    l->has_pin = g->n_pins > 0 && g->has_pin[g->n_pins - 1];
    if (l->has_pin)
        l->pin = g->pins[g->n_pins - 1];
    for (int64_t i = 0; i < m->n_pin_rules; i++) {
        tti_pin_rule *rule = &m->pin_rules[i];
        if (!tti_match(rule->patterns, l->name))
            continue;
        rule->is_used = true;
        if (!l->has_pin)
            l->pin = rule->device;
        l->has_pin = true;
    }
}

static tt_tensor *append(tt_model *m, const tti_layer_def *def, const void *opts, const char *name)
{
    const tti_layer_common *c = common_of(def, opts);
    tti_layer *l = tti_layer_append(m, def, name, opts);
    if (l == NULL || take_inputs(m, l, c) != TT_OK || take_share(m, l, c) != TT_OK)
        return NULL;
    take_pin(m, l);
    tt_build b = {.model = m, .graph = m->graph, .layer = l};
    l->out = tti_layer_build(&b, l->in);
    l->n_weights = (int)m->n_weights - l->first_weight;
    return l->out;
}

// A composite's layers are named "name.layer" if it has a name of its own, else as they are.
static tt_tensor *expand(tt_model *m, const tti_layer_def *def, const void *opts)
{
    const tti_layer_common *c = common_of(def, opts);
    size_t at = strlen(m->prefix);
    if (c->share != NULL) {
        (void)TT_FAIL(m->ctx, TT_EINVAL, "%s: consists of several layers; share those instead",
                      def->name);
        return NULL;
    }
    if (c->name != NULL && c->name[0] != 0) {
        char name[TTI_NAME_MAX];
        if (tti_layer_name(m, def->name, c->name, name) != TT_OK)
            return NULL;
        memcpy(m->prefix, name, strlen(name) + 1);
        strcat(m->prefix, ".");
    }
    tt_tensor *out = def->expand(m, opts, c->name);
    m->prefix[at] = 0;
    return out;
}

tt_tensor *tti_layer_add(tt_model *m, const tti_layer_def *def, const void *opts)
{
    if (m == NULL || tti_is_stuck(m->ctx))
        return NULL;
    char name[TTI_NAME_MAX];
    if (tti_model_open(m, def->name) != TT_OK ||
        tti_layer_name(m, def->name, common_of(def, opts)->name, name) != TT_OK)
        return NULL;
    tti_mark mark = tti_model_mark(m);
    tti_where where;
    tti_where_push(&where, m->ctx, name);
    tt_tensor *out = NULL;
    tt_status st = check_given(m, def, opts);
    if (st == TT_OK && def->expand == NULL)
        out = append(m, def, opts, name);
    tti_where_pop(&where, m->ctx);
    if (st == TT_OK && def->expand != NULL)
        out = expand(m, def, opts);
    if (out == NULL)
        tti_model_drop(m, mark);
    return out;
}
