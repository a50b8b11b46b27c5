/*
 * elements.c - elements that were taken from a queue, as one block per part (queue.h).
 */
#include "serve/queue.h"
#include <string.h>

tt_shape tti_elements_shape(const tti_queue_core *q, const tti_element *e, int64_t n, int part)
{
    tt_shape s = q->shape.parts[part].shape;
    for (int k = 0; k < s.rank; k++)
        s.dim[k] = TTI_MAX(s.dim[k], 0);
    for (int64_t i = 0; i < n && q->shape.kind == TT_QUEUE_PADDING; i++)
        for (int k = 0; k < s.rank; k++)
            s.dim[k] = TTI_MAX(s.dim[k], e[i].shapes[part].dim[k]);
    return s;
}

static int64_t count_of(const tt_shape *s, int from)
{
    int64_t n = 1;
    for (int i = from; i < s->rank; i++)
        n *= s->dim[i];
    return n;
}

// Rows of the last dimension, each to its place among zeros.
static void pad(const tt_shape *from, const tt_shape *to, size_t bytes, const char *src, char *dst)
{
    int last = from->rank - 1;
    size_t row = (size_t)from->dim[last] * bytes;
    int64_t rows = count_of(from, 0) / TTI_MAX(from->dim[last], 1);
    if (row == 0)
        return;
    for (int64_t r = 0; r < rows; r++) {
        int64_t rest = r, at = 0, stride = to->dim[last];
        for (int d = last - 1; d >= 0; d--) {
            at += rest % from->dim[d] * stride;
            rest /= from->dim[d];
            stride *= to->dim[d];
        }
        memcpy(dst + (size_t)at * bytes, src + (size_t)r * row, row);
    }
}

void tti_elements_write(const tti_queue_core *q, const tti_element *e, int64_t n, int part,
                        const tt_shape *shape, char *to)
{
    size_t size = tt_dtype_bytes(q->shape.parts[part].dtype);
    size_t each = (size_t)count_of(shape, 0) * size;
    for (int64_t i = 0; i < n; i++, to += each) {
        const char *from = e[i].data;
        const tt_shape *own = e[i].shapes;
        for (int p = 0; p < part; p++)
            from += tti_queue_part_bytes(q, p, own != NULL ? &own[p] : NULL);
        size_t bytes = (size_t)tti_queue_part_bytes(q, part, own != NULL ? &own[part] : NULL);
        if (bytes == each) {
            if (bytes > 0)
                memcpy(to, from, bytes);
            continue;
        }
        memset(to, 0, each);
        pad(&own[part], shape, size, from, to);
    }
}
