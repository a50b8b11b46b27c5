/*
 * concat_cpu.c - copies of pieces along one axis. Compiled once per instruction set; see concat.c.
 *
 * Units are elements of the output (of split: of the input). A call walks its range piece by piece,
 * wherever it begins.
 */
#include "op/cpu/simd.h"
#include "op/shape.h"

#define SMALLER(a, b) ((a) < (b) ? (a) : (b))

// Elements of one outer index: the axis and all that follows it.
static int64_t width(const tt_arg *a, int64_t axis)
{
    int64_t n = 1;
    for (int i = (int)axis; i < a->shape.rank; i++)
        n *= a->shape.dim[i];
    return n;
}
static int64_t inner(const tt_arg *a, int64_t axis)
{
    return width(a, axis + 1);
}
// Positions given in whole batches count the rows of this one.
static int64_t unit_of(const tt_arg *a, int64_t rows)
{
    return rows && a->open >= 0 && a->per > 0 ? a->shape.dim[a->open] / a->per : 1;
}

tt_status TTI_ISA(concat)(const tt_launch *l)
{
    int64_t axis = ((const tti_axis_attr *)l->attr)->axis, row = width(&l->out[0], axis);
    size_t bytes = tt_dtype_bytes(l->out[0].dtype);
    char *y = l->out[0].data;
    for (int64_t e = l->begin; e < l->end;) {
        int64_t o = e / row, at = e % row; // where in which outer index
        for (int i = 0; i < l->n_in && e < l->end; i++) {
            int64_t w = width(&l->in[i], axis);
            if (at >= w) {
                at -= w;
                continue;
            }
            int64_t n = SMALLER(w - at, l->end - e);
            tti_move(y + (size_t)e * bytes,
                     (const char *)l->in[i].data + (size_t)(o * w + at) * bytes, (size_t)n * bytes);
            e += n;
            at = 0;
        }
    }
    return TT_OK;
}

tt_status TTI_ISA(split)(const tt_launch *l)
{
    int64_t axis = ((const tti_axis_attr *)l->attr)->axis, w = width(&l->out[0], axis);
    size_t bytes = tt_dtype_bytes(l->in[0].dtype);
    const char *x = l->in[0].data;
    for (int64_t e = l->begin; e < l->end;) {
        int64_t piece = e / w, at = e % w, n = SMALLER(w - at, l->end - e);
        int64_t o = piece / l->n_out;
        tti_move((char *)l->out[piece % l->n_out].data + (size_t)(o * w + at) * bytes,
                 x + (size_t)e * bytes, (size_t)n * bytes);
        e += n;
    }
    return TT_OK;
}

tt_status TTI_ISA(slice)(const tt_launch *l)
{
    const tti_slice_attr *a = l->attr;
    const tt_arg *x = &l->in[0];
    int64_t unit = unit_of(x, a->rows), skip = a->begin * unit * inner(x, a->axis);
    int64_t wx = width(x, a->axis), wy = width(&l->out[0], a->axis);
    size_t bytes = tt_dtype_bytes(x->dtype);
    if (a->end * unit > x->shape.dim[a->axis])
        return TT_FAIL(l->ctx, TT_ESHAPE,
                       "slice '%s': [%lld, %lld) is not within the %lld entries of axis %lld",
                       l->node->name, (long long)(a->begin * unit), (long long)(a->end * unit),
                       (long long)x->shape.dim[a->axis], (long long)a->axis);
    for (int64_t e = l->begin; e < l->end;) {
        int64_t o = e / wy, at = e % wy, n = SMALLER(wy - at, l->end - e);
        tti_move((char *)l->out[0].data + (size_t)e * bytes,
                 (const char *)x->data + (size_t)(o * wx + skip + at) * bytes, (size_t)n * bytes);
        e += n;
    }
    return TT_OK;
}

// Also the gradient of a slice by entries: then input 1 only gives the shape.
tt_status TTI_ISA(pad)(const tt_launch *l)
{
    const tti_pad_attr *a = l->attr;
    const tt_arg *x = &l->in[0];
    int64_t first = a->before * unit_of(x, a->rows) * inner(x, a->axis);
    int64_t wx = width(x, a->axis), wy = width(&l->out[0], a->axis);
    size_t bytes = tt_dtype_bytes(x->dtype);
    char *y = l->out[0].data;
    if (first + wx > wy)
        return TT_FAIL(l->ctx, TT_ESHAPE, "%s '%s': x does not fit into y", l->node->op->name,
                       l->node->name);
    for (int64_t e = l->begin; e < l->end;) {
        int64_t o = e / wy, at = e % wy, n;
        if (at >= first && at < first + wx) {
            n = SMALLER(first + wx - at, l->end - e);
            tti_move(y + (size_t)e * bytes,
                     (const char *)x->data + (size_t)(o * wx + at - first) * bytes,
                     (size_t)n * bytes);
        } else {
            n = SMALLER((at < first ? first : wy) - at, l->end - e);
            memset(y + (size_t)e * bytes, 0, (size_t)n * bytes);
        }
        e += n;
    }
    return TT_OK;
}

// One element over and over.
static void repeat(char *y, const char *x, size_t bytes, int64_t n)
{
    for (int64_t i = 0; bytes == 4 && i < n; i++)
        memcpy(y + i * 4, x, 4);
    for (int64_t i = 0; bytes != 4 && i < n; i++)
        memcpy(y + (size_t)i * bytes, x, bytes);
}

tt_status TTI_ISA(tile)(const tt_launch *l)
{
    const tti_axis_attr *a = l->attr;
    int64_t w = width(&l->in[0], a->axis), row = w * a->n;
    size_t bytes = tt_dtype_bytes(l->in[0].dtype);
    char *y = l->out[0].data;
    for (int64_t e = l->begin; e < l->end;) {
        int64_t o = e / row, at = e % w, n;
        const char *x = (const char *)l->in[0].data + (size_t)(o * w + at) * bytes;
        if (w == 1) {
            n = SMALLER((o + 1) * row - e, l->end - e);
            repeat(y + (size_t)e * bytes, x, bytes, n);
        } else {
            n = SMALLER(w - at, l->end - e);
            tti_move(y + (size_t)e * bytes, x, (size_t)n * bytes);
        }
        e += n;
    }
    return TT_OK;
}
