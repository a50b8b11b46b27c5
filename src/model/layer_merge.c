/*
 * layer_merge.c - layers of several inputs, element by element: multiply, subtract, average,
 * maximum, minimum; and dot. None has weights.
 */
#include "model/layer.h"

typedef tt_tensor *(*pair_fn)(tt_graph *g, tt_tensor *a, tt_tensor *b);

static tt_tensor *merge(tt_build *b, pair_fn fn, tt_tensor *const *in, int n_in)
{
    tt_tensor *y = in[0];
    for (int i = 1; i < n_in && y != NULL; i++)
        y = fn(b->graph, y, in[i]);
    return y;
}

static tt_tensor *multiply_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)opts;
    return merge(b, tt_mul, in, n_in);
}

static tt_tensor *subtract_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)opts;
    return merge(b, tt_sub, in, n_in);
}

static tt_tensor *average_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)opts;
    tt_tensor *sum = merge(b, tt_add, in, n_in);
    return sum == NULL ? NULL : tt_scale(b->graph, sum, 1.0 / n_in, 0);
}

static tt_tensor *maximum_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)opts;
    return merge(b, tt_maximum, in, n_in);
}

static tt_tensor *minimum_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)opts;
    return merge(b, tt_minimum, in, n_in);
}

#define MERGE_KIND(name_, most_, help_)                                        \
    const tti_layer_def tti_kind_##name_ = {                                   \
        .name = #name_,                                                        \
        .help = help_,                                                         \
        .size = sizeof(tt_plain_opts),                                         \
        .common = offsetof(tt_plain_opts, name),                               \
        .min_in = 2,                                                           \
        .max_in = most_,                                                       \
        .build = name_##_build,                                                \
    };                                                                         \
    tt_tensor *tt_layer_##name_##_with(tt_model *m, const tt_plain_opts *opts) \
    {                                                                          \
        return tti_layer_call(m, &tti_kind_##name_, opts);                     \
    }
MERGE_KIND(multiply, TT_MAX_FROM, "multiply the inputs element by element")
MERGE_KIND(subtract, 2, "the first input minus the second")
MERGE_KIND(average, TT_MAX_FROM, "the mean of the inputs, element by element")
MERGE_KIND(maximum, TT_MAX_FROM, "the largest of the inputs, element by element")
MERGE_KIND(minimum, TT_MAX_FROM, "the smallest of the inputs, element by element")

// ---- dot -------------------------------------------------------------------------------------

static const tt_option dot_options[] = {
    {"normalise", TT_OPT_BOOL, "false", "scale the vectors to length 1 first: cosine similarity",
     offsetof(tt_layer_dot_opts, normalise), 0, 0, NULL},
    TT_OPTION_END,
};

// Vectors of length 1; those of length 0 stay.
static tt_tensor *unit(tt_graph *g, tt_tensor *x)
{
    tt_tensor *square = tt_sum(g, tt_square(g, x), .axis = -1, .keep_dims = true);
    tt_tensor *least = square == NULL ? NULL : tt_fill(g, square->dtype, TT_SCALAR, 1e-12);
    return tt_mul(g, x, tt_rsqrt(g, tt_maximum(g, square, least)));
}

static tt_tensor *dot_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    const tt_layer_dot_opts *o = opts;
    const tt_shape *s = &in[0]->shape, *t = &in[1]->shape;
    char a[TT_SHAPE_TEXT], c[TT_SHAPE_TEXT];
    if (!tti_x_check(b, in[0], 2, "[batch, n] or [batch, t, n]") ||
        !tti_x_check(b, in[1], 2, "[batch, n] or [batch, t, n]"))
        return NULL;
    if (s->rank != t->rank || s->rank > 3 || s->dim[s->rank - 1] != t->dim[t->rank - 1]) {
        (void)TT_FAIL(b->model->ctx, TT_ESHAPE,
                      "its inputs are %s and %s; they must be [batch, n] both or [batch, t, n] and "
                      "[batch, s, n]",
                      tt_shape_text(s, a), tt_shape_text(t, c));
        return NULL;
    }
    tt_tensor *x = o->normalise ? unit(b->graph, in[0]) : in[0];
    tt_tensor *y = o->normalise ? unit(b->graph, in[1]) : in[1];
    if (x == NULL || y == NULL)
        return NULL;
    if (s->rank == 2)
        return tt_sum(b->graph, tt_mul(b->graph, x, y), .axis = -1, .keep_dims = true);
    return tt_matmul(b->graph, x, y, .transpose_b = true);
}

const tti_layer_def tti_kind_dot = {
    .name = "dot",
    .help = "dot products of two inputs along the last axis",
    .options = dot_options,
    .size = sizeof(tt_layer_dot_opts),
    .common = offsetof(tt_layer_dot_opts, name),
    .min_in = 2,
    .max_in = 2,
    .build = dot_build,
};

tt_tensor *tt_layer_dot_with(tt_model *m, const tt_layer_dot_opts *opts)
{
    return tti_layer_call(m, &tti_kind_dot, opts);
}
