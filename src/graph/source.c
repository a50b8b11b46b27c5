/*
 * source.c - nodes without inputs: constants, feeds, variables.
 */
#include "base/ctx.h"
#include "graph/graph.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const init_names[] = {"zeros",         "constant",         "uniform",
                                         "normal",        "truncated_normal", "glorot_uniform",
                                         "glorot_normal", "he_uniform",       "he_normal",
                                         "lecun_uniform", "lecun_normal",     NULL};

static const tt_option feed_attrs[] = {
    {"dtype", TT_OPT_DTYPE, "f32", "element type", offsetof(tti_feed_attr, dtype), 0, 0, NULL},
    {"shape", TT_OPT_SHAPE, "[]", "shape; b is the batch size, known when the graph runs",
     offsetof(tti_feed_attr, shape), 0, 0, NULL},
    TT_OPTION_END,
};

static const tt_option variable_attrs[] = {
    {"dtype", TT_OPT_DTYPE, "f32", "element type", offsetof(tti_variable_attr, dtype), 0, 0, NULL},
    {"shape", TT_OPT_SHAPE, "[]", "", offsetof(tti_variable_attr, shape), 0, 0, NULL},
    {"init", TT_OPT_ENUM, "zeros", "initializer", offsetof(tti_variable_attr, init), 0, 0,
     init_names},
    {"a", TT_OPT_FLOAT, "0", "initializer's parameter: the constant, lower bound or mean",
     offsetof(tti_variable_attr, a), 0, 0, NULL},
    {"b", TT_OPT_FLOAT, "0", "initializer's parameter: the upper bound or standard deviation",
     offsetof(tti_variable_attr, b), 0, 0, NULL},
    {"no_train", TT_OPT_BOOL, "false", "not trained: no gradient is computed",
     offsetof(tti_variable_attr, no_train), 0, 0, NULL},
    TT_OPTION_END,
};

// All three begin with dtype and shape.
static tt_status source_infer(tt_infer *q)
{
    const tti_feed_attr *a = q->attr;
    if ((unsigned)a->dtype >= TT_N_DTYPES)
        return TT_FAIL(q->ctx, TT_EDTYPE, "%s: element type %d is unknown", q->name, (int)a->dtype);
    q->shape[0] = a->shape;
    q->dtype[0] = a->dtype;
    return TT_OK;
}

static tt_status closed_infer(tt_infer *q)
{
    TT_TRY(source_infer(q));
    return tti_shape_check(q->ctx, q->name, &q->shape[0], false);
}

// First values that cannot be meant: numbers that are not used, an empty range.
static tt_status variable_infer(tt_infer *q)
{
    const tti_variable_attr *v = q->attr;
    TT_TRY(closed_infer(q));
    if (v->init < 0 || v->init > TT_INIT_LECUN_NORMAL)
        return TT_FAIL(q->ctx, TT_EINVAL, "%s: initializer %d is unknown", q->name, (int)v->init);
    const char *kind = init_names[v->init];
    bool normal = v->init == TT_INIT_NORMAL || v->init == TT_INIT_TRUNCATED_NORMAL;
    bool uniform = v->init == TT_INIT_UNIFORM, constant = v->init == TT_INIT_CONSTANT;
    if (uniform && !(v->a < v->b) && !(v->a == 0 && v->b == 0))
        return TT_FAIL(
            q->ctx, TT_EINVAL,
            "%s: init uniform from %g to %g is empty; the second must be above the first", q->name,
            v->a, v->b);
    if (normal && !(v->b >= 0))
        return TT_FAIL(q->ctx, TT_EINVAL,
                       "%s: init %s has standard deviation %g; it must be above 0", q->name, kind,
                       v->b);
    if (!isfinite(v->b - v->a) && !constant)
        return TT_FAIL(q->ctx, TT_EINVAL, "%s: init %s with %g and %g; both must be finite",
                       q->name, kind, v->a, v->b);
    if ((v->b != 0 && !normal && !uniform) || (v->a != 0 && !normal && !uniform && !constant))
        return TT_FAIL(q->ctx, TT_EINVAL, "%s: init %s takes %s, and got %g and %g", q->name, kind,
                       constant ? "one number" : "no numbers", v->a, v->b);
    return TT_OK;
}

const tt_op tti_op_const = {
    .name = "const",
    .help = "a constant",
    .flags = TT_OP_SOURCE,
    .types = TT_TYPES_ALL,
    .attrs = feed_attrs,
    .attr_size = sizeof(tti_feed_attr),
    .infer = closed_infer,
};

const tt_op tti_op_feed = {
    .name = "feed",
    .help = "an input value, given at each run",
    .flags = TT_OP_SOURCE,
    .types = TT_TYPES_ALL,
    .attrs = feed_attrs,
    .attr_size = sizeof(tti_feed_attr),
    .infer = source_infer,
};

const tt_op tti_op_variable = {
    .name = "variable",
    .help = "a variable; keeps its value between runs",
    .flags = TT_OP_SOURCE,
    .types = TT_TYPES_ALL,
    .attrs = variable_attrs,
    .attr_size = sizeof(tti_variable_attr),
    .infer = variable_infer,
};

bool tti_is_variable(const tt_tensor *t)
{
    return t != NULL && t->node->op == &tti_op_variable;
}

bool tti_writes(const tt_node *n, int k)
{
    return (n->op->flags & TT_OP_UPDATE) != 0 && ((n->op->writes | 1u) >> k & 1u) != 0 &&
           tti_is_variable(n->in[k]);
}

// Equal attributes are equal bytes: dimensions past the rank are zero.
static tt_shape tidy(tt_shape s)
{
    for (int i = TTI_MAX(s.rank, 0); i < TT_MAX_RANK; i++)
        s.dim[i] = 0;
    return s;
}

tt_tensor *tt_feed_with(tt_graph *g, const tt_feed_opts *opts)
{
    if (g == NULL || tti_is_stuck(g->ctx))
        return NULL;
    TTI_OPTS_OWN(tt_graph_get_ctx(g), "feed", tt_feed_opts, opts);
    if (opts == NULL)
        return NULL;
    tti_feed_attr a = {opts->dtype, tidy(opts->shape)};
    tt_node *n = tt_node_new(g, &tti_op_feed, 0, NULL, &a, opts->name);
    if (n == NULL)
        return NULL;
    int open = tt_open_axis(&n->out->shape);
    if (open >= 0)
        n->out->layout = (tt_layout){TT_LAYOUT_SPLIT, open};
    return n->out;
}

tt_node *tti_const_node(tt_graph *g, tt_dtype dtype, tt_shape shape, const void *data,
                        const char *name)
{
    if (g == NULL || tti_is_stuck(g->ctx))
        return NULL;
    tti_feed_attr a = {dtype, tidy(shape)};
    if (tti_shape_check(g->ctx, "const", &shape, false) != TT_OK)
        return NULL;
    size_t bytes = (size_t)tt_shape_count(&shape) * tt_dtype_bytes(dtype);
    if (bytes > 0 && data == NULL) {
        (void)TT_FAIL(g->ctx, TT_EINVAL, "const: data is NULL");
        return NULL;
    }
    char *copy = tti_graph_alloc(g, bytes + 1);
    if (copy == NULL)
        return NULL;
    if (bytes > 0)
        memcpy(copy, data, bytes);
    tti_flush(dtype, copy, tt_shape_count(&shape));
    tt_node *n = tt_node_new(g, &tti_op_const, 0, NULL, &a, name);
    if (n != NULL) {
        n->data = copy;
        n->data_bytes = bytes;
    }
    return n;
}

tt_tensor *tt_const(tt_graph *g, tt_dtype dtype, tt_shape shape, const void *data)
{
    tt_node *n = tti_const_node(g, dtype, shape, data, NULL);
    return n == NULL ? NULL : n->out;
}

tt_tensor *tt_scalar(tt_graph *g, double value)
{
    float f = (float)value;
    return tt_const(g, TT_F32, TT_SCALAR, &f);
}

tt_tensor *tt_fill(tt_graph *g, tt_dtype dtype, tt_shape shape, double value)
{
    if (g == NULL || tti_is_stuck(g->ctx))
        return NULL;
    if (tti_shape_check(g->ctx, "fill", &shape, false) != TT_OK)
        return NULL;
    int64_t n = tt_shape_count(&shape);
    char *data = tti_calloc(g->ctx, (size_t)n + 1, tt_dtype_bytes(dtype));
    if (data == NULL)
        return NULL;
    for (int64_t i = 0; i < n; i++)
        tti_put_number(dtype, data, i, value);
    tt_tensor *t = tt_const(g, dtype, shape, data);
    tti_free(g->ctx, data);
    return t;
}

tt_tensor *tt_variable_with(tt_graph *g, const tt_variable_opts *opts)
{
    if (g == NULL || tti_is_stuck(g->ctx))
        return NULL;
    TTI_OPTS_OWN(tt_graph_get_ctx(g), "variable", tt_variable_opts, opts);
    if (opts == NULL)
        return NULL;
    if ((unsigned)opts->init.kind >= TTI_COUNT(init_names) - 1) {
        (void)TT_FAIL(g->ctx, TT_EINVAL, "variable '%s': initializer %d is unknown",
                      opts->name == NULL ? "" : opts->name, (int)opts->init.kind);
        return NULL;
    }
    // The attributes are compared and printed as rows, so padding must be zero too.
    tti_variable_attr a;
    memset(&a, 0, sizeof(a));
    a.dtype = opts->dtype;
    a.shape = tidy(opts->shape);
    a.init = (int)opts->init.kind;
    a.a = opts->init.a;
    a.b = opts->init.b;
    a.no_train = opts->no_train;
    tt_node *n = tt_node_new(g, &tti_op_variable, 0, NULL, &a, opts->name);
    return n == NULL ? NULL : n->out;
}

int tt_trainable(const tt_graph *g, tt_tensor **out, int max)
{
    int n = 0;
    for (int64_t i = 0; g != NULL && i < g->n_nodes; i++) {
        const tt_node *v = g->nodes[i];
        if (v->op != &tti_op_variable || ((const tti_variable_attr *)v->attr)->no_train)
            continue;
        if (n < max && out != NULL)
            out[n] = v->out;
        n++;
    }
    return n;
}
