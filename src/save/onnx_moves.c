/*
 * onnx_moves.c - ops that move elements, and lookups, as ONNX nodes.
 */
#include "base/ctx.h"
#include "op/index.h"
#include "op/shape.h"
#include "save/onnx.h"

// Along the open axis a position counts from each end of the batch: ONNX has no word for that.
static tt_status along_batch(tti_onnx *o, const tt_node *n)
{
    return TT_FAIL(o->ctx, TT_EUNSUPPORTED,
                   "onnx: the op %s (%s) works along the batch, whose size an ONNX file does not "
                   "know",
                   n->op->name, n->name);
}

static bool is_open(const tt_tensor *t, int64_t axis)
{
    return t->shape.dim[axis] < 0;
}

static tt_status write_reshape(tti_onnx *o, const tt_node *n)
{
    tti_onnx_set(o, n->out, tti_onnx_reshape(o, tti_onnx_value(o, n->in[0]), &n->out->shape));
    return TT_OK;
}

static tt_status write_transpose(tti_onnx *o, const tt_node *n)
{
    const tti_transpose_attr *a = n->attr;
    tti_onnx_set(o, n->out, tti_onnx_permuted(o, n->in[0], a->order.v, NULL));
    return TT_OK;
}

static tt_status write_concat(tti_onnx *o, const tt_node *n)
{
    const char **in = tti_calloc(o->ctx, (size_t)n->n_in, sizeof(*in));
    if (in == NULL)
        return TT_ENOMEM;
    for (int i = 0; i < n->n_in; i++)
        in[i] = tti_onnx_value(o, n->in[i]);
    tti_onnx_begin(o, "Concat");
    for (int i = 0; i < n->n_in; i++)
        tti_onnx_in(o, in[i]);
    tti_onnx_attr_int(o, "axis", ((const tti_axis_attr *)n->attr)->axis);
    tti_onnx_set(o, n->out, tti_onnx_end(o));
    tti_free(o->ctx, in);
    return TT_OK;
}

static tt_status write_split(tti_onnx *o, const tt_node *n)
{
    const tti_axis_attr *a = n->attr;
    int64_t size[64];
    const char *out[64], *x = tti_onnx_value(o, n->in[0]);
    if (is_open(n->in[0], a->axis))
        return along_batch(o, n);
    for (int i = 0; i < n->n_out; i++)
        size[i] = n->outs[i]->shape.dim[a->axis];
    const char *sizes = tti_onnx_ints(o, size, n->n_out);
    tti_onnx_begin(o, "Split");
    tti_onnx_in(o, x);
    tti_onnx_in(o, sizes);
    tti_onnx_attr_int(o, "axis", a->axis);
    tti_onnx_end_many(o, out, n->n_out);
    for (int i = 0; i < n->n_out; i++)
        tti_onnx_set(o, n->outs[i], out[i]);
    return TT_OK;
}

static tt_status write_slice(tti_onnx *o, const tt_node *n)
{
    const tti_slice_attr *a = n->attr;
    if (is_open(n->in[0], a->axis))
        return along_batch(o, n);
    const char *x = tti_onnx_value(o, n->in[0]), *begin = tti_onnx_ints(o, &a->begin, 1),
               *end = tti_onnx_ints(o, &a->end, 1), *axis = tti_onnx_ints(o, &a->axis, 1);
    tti_onnx_begin(o, "Slice");
    tti_onnx_in(o, x);
    tti_onnx_in(o, begin);
    tti_onnx_in(o, end);
    tti_onnx_in(o, axis);
    tti_onnx_set(o, n->out, tti_onnx_end(o));
    return TT_OK;
}

static tt_status write_pad(tti_onnx *o, const tt_node *n)
{
    const tti_pad_attr *a = n->attr;
    int64_t pads[2 * TT_MAX_RANK] = {0};
    int rank = n->in[0]->shape.rank;
    if (is_open(n->in[0], a->axis))
        return along_batch(o, n);
    pads[a->axis] = a->before;
    pads[rank + a->axis] = a->after;
    const char *x = tti_onnx_value(o, n->in[0]), *all = tti_onnx_ints(o, pads, 2 * rank);
    const char *zero = tti_onnx_scalar(o, n->out->dtype, 0);
    tti_onnx_set(o, n->out, tti_onnx_3(o, "Pad", x, all, zero));
    return TT_OK;
}

static tt_status write_tile(tti_onnx *o, const tt_node *n)
{
    const tti_axis_attr *a = n->attr;
    int64_t times[TT_MAX_RANK];
    int rank = n->in[0]->shape.rank;
    for (int i = 0; i < rank; i++)
        times[i] = i == a->axis ? a->n : 1;
    const char *x = tti_onnx_value(o, n->in[0]);
    tti_onnx_set(o, n->out, tti_onnx_2(o, "Tile", x, tti_onnx_ints(o, times, rank)));
    return TT_OK;
}

static tt_status write_gather(tti_onnx *o, const tt_node *n)
{
    const char *x = tti_onnx_value(o, n->in[0]), *ids = tti_onnx_value(o, n->in[1]);
    tti_onnx_begin(o, "Gather");
    tti_onnx_in(o, x);
    tti_onnx_in(o, ids);
    tti_onnx_attr_int(o, "axis", ((const tti_gather_attr *)n->attr)->axis);
    tti_onnx_set(o, n->out, tti_onnx_end(o));
    return TT_OK;
}

static tt_status write_one_hot(tti_onnx *o, const tt_node *n)
{
    const tti_one_hot_attr *a = n->attr;
    const float both[2] = {0, 1};
    const char *ids = tti_onnx_value(o, n->in[0]), *depth = tti_onnx_ints(o, &a->depth, 1),
               *values = tti_onnx_const(o, TT_F32, TT_SHAPE(2), both);
    tti_onnx_begin(o, "OneHot");
    tti_onnx_in(o, ids);
    tti_onnx_in(o, depth);
    tti_onnx_in(o, values);
    tti_onnx_attr_int(o, "axis", -1);
    const char *y = tti_onnx_end(o);
    tti_onnx_set(o, n->out, a->dtype == TT_F32 ? y : tti_onnx_cast(o, y, a->dtype));
    return TT_OK;
}

const tti_onnx_op tti_onnx_moves[] = {
    {"reshape", write_reshape},
    {"transpose", write_transpose},
    {"concat", write_concat},
    {"split", write_split},
    {"slice", write_slice},
    {"pad", write_pad},
    {"tile", write_tile},
    {"embedding", write_gather},
    {"gather", write_gather},
    {"one_hot", write_one_hot},
    {NULL, NULL},
};
