/*
 * layer_shape.c - shapes and joins: flatten, reshape, permute, add, concat. None has weights.
 */
#include "model/layer.h"

// ---- flatten ---------------------------------------------------------------------------------

static tt_tensor *flatten_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)opts, (void)n_in;
    return tt_flatten(b->graph, in[0]);
}

const tti_layer_def tti_kind_flatten = {
    .name = "flatten",
    .help = "flatten each record to one dimension",
    .size = sizeof(tt_plain_opts),
    .common = offsetof(tt_plain_opts, name),
    .build = flatten_build,
};

tt_tensor *tt_layer_flatten_with(tt_model *m, const tt_plain_opts *opts)
{
    return tti_layer_call(m, &tti_kind_flatten, opts);
}

// ---- reshape ---------------------------------------------------------------------------------

static const tt_option reshape_options[] = {
    {"shape", TT_OPT_SHAPE, NULL,
     "new shape of one record; one dimension may be -1 (computed from the others)",
     offsetof(tt_layer_reshape_opts, shape), 0, 0, NULL},
    TT_OPTION_END,
};

static tt_tensor *reshape_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    const tt_shape *record = &((const tt_layer_reshape_opts *)opts)->shape;
    tt_shape full = {.rank = record->rank + 1, .dim = {TT_BATCH}};
    char text[TT_SHAPE_TEXT];
    int64_t left = -tt_shape_count(&in[0]->shape), known = 1; // elements of a record
    int open = -1;
    if (record->rank < 1 || record->rank >= TT_MAX_RANK) {
        (void)TT_FAIL(b->model->ctx, TT_ESHAPE, "a record cannot have rank %d; 1 to %d are allowed",
                      record->rank, TT_MAX_RANK - 1);
        return NULL;
    }
    bool ok = true;
    for (int i = 0; i < record->rank; i++) {
        int64_t d = full.dim[i + 1] = record->dim[i];
        ok &= d > 0 || (d == -1 && open < 0);
        open = d == -1 ? i + 1 : open;
        ok = ok && (d < 0 || tti_mul_i64(known, d, &known));
    }
    if (ok && open > 0 && left % known == 0)
        full.dim[open] = left / known;
    else if (!ok || open > 0 || left != known) {
        char wanted[TT_SHAPE_TEXT];
        (void)TT_FAIL(b->model->ctx, TT_ESHAPE, "x is %s; its records cannot have the shape %s",
                      tt_shape_text(&in[0]->shape, text), tt_shape_text(record, wanted));
        return NULL;
    }
    return tt_reshape(b->graph, in[0], full);
}

const tti_layer_def tti_kind_reshape = {
    .name = "reshape",
    .help = "change the shape of each record",
    .options = reshape_options,
    .size = sizeof(tt_layer_reshape_opts),
    .common = offsetof(tt_layer_reshape_opts, name),
    .main = "shape",
    .build = reshape_build,
};

tt_tensor *tt_layer_reshape_with(tt_model *m, const tt_layer_reshape_opts *opts)
{
    return tti_layer_call(m, &tti_kind_reshape, opts);
}

// ---- permute ---------------------------------------------------------------------------------

static const tt_option permute_options[] = {
    {"order", TT_OPT_INTS, NULL,
     "new order of the axes of one record, counted from 0 without the batch: [2, 0, 1]",
     offsetof(tt_layer_permute_opts, order), 0, TT_MAX_RANK, NULL},
    TT_OPTION_END,
};

static tt_tensor *permute_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    const tt_ints *order = &((const tt_layer_permute_opts *)opts)->order;
    char text[TT_SHAPE_TEXT];
    int rank = in[0]->shape.rank - 1; // of a record
    unsigned seen = 0;
    tt_axes axes = {.n = rank + 1};
    for (int i = 0; i < rank && order->n == rank; i++) {
        int64_t a = order->v[i];
        seen |= a >= 0 && a < rank ? 1u << a : 0;
        axes.axis[i + 1] = (int)a + 1;
    }
    if (rank < 1 || seen != (1u << rank) - 1) {
        (void)TT_FAIL(b->model->ctx, TT_EINVAL,
                      "x is %s; order must name each axis of a record, 0 "
                      "to %d, once",
                      tt_shape_text(&in[0]->shape, text), rank - 1);
        return NULL;
    }
    return tt_transpose(b->graph, in[0], axes);
}

const tti_layer_def tti_kind_permute = {
    .name = "permute",
    .help = "permute the axes of each record",
    .options = permute_options,
    .size = sizeof(tt_layer_permute_opts),
    .common = offsetof(tt_layer_permute_opts, name),
    .main = "order",
    .build = permute_build,
};

tt_tensor *tt_layer_permute_with(tt_model *m, const tt_layer_permute_opts *opts)
{
    return tti_layer_call(m, &tti_kind_permute, opts);
}

// ---- joins -----------------------------------------------------------------------------------

static tt_tensor *add_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)opts;
    tt_tensor *sum = in[0];
    for (int i = 1; i < n_in; i++)
        sum = tt_add(b->graph, sum, in[i]);
    return sum;
}

const tti_layer_def tti_kind_add = {
    .name = "add",
    .help = "add the inputs; with one input, add it to the layer before",
    .size = sizeof(tt_plain_opts),
    .common = offsetof(tt_plain_opts, name),
    .min_in = 2,
    .max_in = TT_MAX_FROM,
    .build = add_build,
};

tt_tensor *tt_layer_add_with(tt_model *m, const tt_plain_opts *opts)
{
    return tti_layer_call(m, &tti_kind_add, opts);
}

static const tt_option concat_options[] = {
    {"axis", TT_OPT_INT32, "-1",
     "axis to join along; 0 is the batch, negative axes count from the end",
     offsetof(tt_layer_concat_opts, axis), 0, 0, NULL},
    TT_OPTION_END,
};

static tt_tensor *concat_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    const tt_layer_concat_opts *o = opts;
    char text[TT_SHAPE_TEXT];
    int rank = in[0]->shape.rank, axis = o->axis < 0 ? o->axis + rank : o->axis;
    if (axis < 1 || axis >= rank) {
        (void)TT_FAIL(b->model->ctx, TT_EINVAL, "axis %d does not exist in a record of %s", o->axis,
                      tt_shape_text(&in[0]->shape, text));
        return NULL;
    }
    return tt_concat(b->graph, in, n_in, axis);
}

const tti_layer_def tti_kind_concat = {
    .name = "concat",
    .help = "concatenate the inputs; with one input, append it to the layer before",
    .options = concat_options,
    .size = sizeof(tt_layer_concat_opts),
    .common = offsetof(tt_layer_concat_opts, name),
    .main = "axis",
    .min_in = 2,
    .max_in = TT_MAX_FROM,
    .build = concat_build,
};

tt_tensor *tt_layer_concat_with(tt_model *m, const tt_layer_concat_opts *opts)
{
    return tti_layer_call(m, &tti_kind_concat, opts);
}
