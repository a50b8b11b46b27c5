/*
 * concat.cu - CUDA: copies of pieces along one axis; see concat.c. Every op here is a list of
 * pieces of rows for move.cuh.
 */
#include "cuda/move.cuh"
#include "op/shape.h"

// Bytes of one outer index: the axis and all that follows it.
static int64_t width(const tt_arg *a, int64_t axis)
{
    int64_t n = tti_item(a->dtype);
    for (int i = (int)axis; i < a->shape.rank; i++)
        n *= a->shape.dim[i];
    return n;
}
static int64_t outer(const tt_arg *a, int64_t axis)
{
    int64_t n = 1;
    for (int i = 0; i < axis; i++)
        n *= a->shape.dim[i];
    return n;
}
// Positions given in whole batches count the rows of this one.
static int64_t unit_of(const tt_arg *a, int64_t rows)
{
    return rows && a->open >= 0 && a->per > 0 ? a->shape.dim[a->open] / a->per : 1;
}

static tt_status concat_cuda(const tt_launch *l)
{
    int64_t axis = ((const tti_axis_attr *)l->attr)->axis, row = width(&l->out[0], axis);
    char *y = (char *)l->out[0].data;
    tti_mover v = {};
    v.l = l;
    for (int i = 0; i < l->n_in; i++) {
        int64_t w = width(&l->in[i], axis);
        tti_mover_add(&v, {y, (const char *)l->in[i].data, row, w, w, outer(&l->in[i], axis), 1});
        y += w;
    }
    tti_mover_flush(&v);
    return tti_cuda_launched(l);
}

static tt_status split_cuda(const tt_launch *l)
{
    int64_t axis = ((const tti_axis_attr *)l->attr)->axis, row = width(&l->in[0], axis);
    const char *x = (const char *)l->in[0].data;
    tti_mover v = {};
    v.l = l;
    for (int i = 0; i < l->n_out; i++) {
        int64_t w = width(&l->out[i], axis);
        tti_mover_add(&v, {(char *)l->out[i].data, x, w, row, w, outer(&l->in[0], axis), 1});
        x += w;
    }
    tti_mover_flush(&v);
    return tti_cuda_launched(l);
}

static tt_status slice_cuda(const tt_launch *l)
{
    const tti_slice_attr *a = (const tti_slice_attr *)l->attr;
    const tt_arg *x = &l->in[0];
    int64_t unit = unit_of(x, a->rows), skip = a->begin * unit * width(x, a->axis + 1);
    int64_t wx = width(x, a->axis), wy = width(&l->out[0], a->axis);
    if (a->end * unit > x->shape.dim[a->axis])
        return TT_FAIL(l->ctx, TT_ESHAPE,
                       "slice '%s': [%lld, %lld) is not within the %lld entries of axis %lld",
                       l->node->name, (long long)(a->begin * unit), (long long)(a->end * unit),
                       (long long)x->shape.dim[a->axis], (long long)a->axis);
    tti_mover v = {};
    v.l = l;
    tti_mover_add(&v, {(char *)l->out[0].data, (const char *)x->data + skip, wy, wx, wy,
                       outer(x, a->axis), 1});
    tti_mover_flush(&v);
    return tti_cuda_launched(l);
}

// Also the gradient of a slice by entries: then input 1 only gives the shape.
static tt_status pad_cuda(const tt_launch *l)
{
    const tti_pad_attr *a = (const tti_pad_attr *)l->attr;
    const tt_arg *x = &l->in[0];
    int64_t first = a->before * unit_of(x, a->rows) * width(x, a->axis + 1);
    int64_t wx = width(x, a->axis), wy = width(&l->out[0], a->axis), rows = outer(x, a->axis);
    char *y = (char *)l->out[0].data;
    if (first + wx > wy)
        return TT_FAIL(l->ctx, TT_ESHAPE, "%s '%s': x does not fit into y", l->node->op->name,
                       l->node->name);
    tti_mover v = {};
    v.l = l;
    tti_mover_add(&v, {y, NULL, wy, 0, first, rows, 1});
    tti_mover_add(&v, {y + first, (const char *)x->data, wy, wx, wx, rows, 1});
    tti_mover_add(&v, {y + first + wx, NULL, wy, 0, wy - first - wx, rows, 1});
    tti_mover_flush(&v);
    return tti_cuda_launched(l);
}

static tt_status tile_cuda(const tt_launch *l)
{
    const tti_axis_attr *a = (const tti_axis_attr *)l->attr;
    int64_t w = width(&l->in[0], a->axis);
    tti_mover v = {};
    v.l = l;
    tti_mover_add(&v, {(char *)l->out[0].data, (const char *)l->in[0].data, w, w, w,
                       outer(&l->in[0], a->axis) * a->n, a->n});
    tti_mover_flush(&v);
    return tti_cuda_launched(l);
}

extern "C" const tti_cuda_row tti_cuda_concat[] = {
    TTI_ROW("concat", NULL, concat_cuda),
    TTI_ROW("split", NULL, split_cuda),
    TTI_ROW("slice", NULL, slice_cuda),
    TTI_ROW("slice_grad", NULL, pad_cuda),
    TTI_ROW("pad", NULL, pad_cuda),
    TTI_ROW("tile", NULL, tile_cuda),
    TTI_ROWS_END,
};
