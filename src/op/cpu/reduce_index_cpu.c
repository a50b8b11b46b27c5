/*
 * reduce_index_cpu.c - which element it was: the gradient of a maximum or minimum, argmax; and how
 * many there are. Compiled once per instruction set; see reduce.c.
 */
#include "op/cpu/reduce_walk.h"
#include "op/cpu/simd.h"

// Where v is the element that max or min chose: it equals y, or both are NaN.
static inline m16 is_chosen(v16 v, v16 y)
{
    return m16_or(v16_eq(v, y), m16_and(v16_unordered(v, v), v16_unordered(y, y)));
}

// dx = dy at the first element that was chosen, else 0; units as those of max.
tt_status TTI_ISA(tti_reduce_max_grad)(const tt_launch *l)
{
    const real *x = l->in[0].data, *y = l->in[1].data, *dy = l->in[2].data;
    real *dx = l->out[0].data;
    tti_reduction r = tti_reduction_of(l->attr, &l->in[0]);
    int64_t groups = r.has_tail ? 1 : (r.cols + 15) / 16;
    for (int64_t u = l->begin; u < l->end; u++) {
        int64_t outer = u / groups, j = u % groups * 16;
        int wide = r.has_tail ? 1 : r.cols - j < 16 ? (int)(r.cols - j) : 16; // outputs of the unit
        int64_t at = kept_offset(&r.keep, outer) + j, k = outer * r.cols + j;
        v16 want = r.has_tail ? v16_set1(y[k]) : v16_load_n(y + k, wide);
        v16 d = r.has_tail ? v16_zero() : v16_load_n(dy + k, wide);
        m16 open = m16_first(16);
        odometer o;
        for (odometer_start(&o, &r.sum, -1, 0, 0); !o.done; odometer_next(&o)) {
            const real *p = x + at + o.at;
            real *q = dx + at + o.at;
            if (!r.has_tail) { // columns side by side
                m16 here = m16_and(open, is_chosen(v16_load_n(p, wide), want));
                open = m16_and(open, m16_not(here));
                v16_store_n(q, v16_if(here, d, v16_zero()), wide);
                continue;
            }
            memset(q, 0, sizeof(real) * (size_t)r.tail);
            for (int64_t i = 0; i < r.tail && m16_any(open); i += 16) {
                int n = r.tail - i < 16 ? (int)(r.tail - i) : 16;
                m16 here = m16_and(m16_first(n), is_chosen(v16_load_n(p + i, n), want));
                if (!m16_any(here))
                    continue;
                q[i + __builtin_ctz(m16_bits(here))] = dy[k];
                open = m16_first(0);
            }
        }
    }
    return TT_OK;
}

// The first NaN of n elements, step apart; -1: there is none.
static int64_t first_nan(const real *x, int64_t n, int64_t step)
{
    for (int64_t i = 0; i < n; i++)
        if (x[i * step] != x[i * step])
            return i;
    return -1;
}

// The index of the greatest, the lowest of equals, or of the first NaN; one reduced axis. 16
// candidates side by side.
static int64_t argmax_row(const real *x, int64_t n)
{
    v16 best = v16_set1((real)-__builtin_inf());
    rbits first[16], step[16];
    for (int i = 0; i < 16; i++) {
        first[i] = i;
        step[i] = 16;
    }
    i16 index = i16_load(first), at = index, by = i16_load(step);
    m16 nan = m16_first(0);
    for (int64_t j = 0; j < n; j += 16, at = i16_add(at, by)) {
        int m = n - j < 16 ? (int)(n - j) : 16;
        v16 v = m == 16 ? v16_load(x + j) : v16_load_n(x + j, m);
        m16 more = v16_gt(v, best);
        nan = m16_or(nan, v16_unordered(v, v));
        if (m < 16)
            more = m16_and(more, m16_first(m));
        best = v16_if(more, v, best);
        index = v16_bits(v16_if(more, v16_from_bits(at), v16_from_bits(index)));
    }
    if (m16_any(nan))
        return first_nan(x, n, 1);
    real b[16];
    rbits k[16];
    v16_store(b, best);
    i16_store(k, index);
    int64_t y = -1;
    real top = 0;
    for (int i = 0; i < 16 && i < n; i++)
        if (y < 0 || b[i] > top || (b[i] == top && k[i] < y)) {
            top = b[i];
            y = k[i];
        }
    return y < 0 ? 0 : y;
}

tt_status TTI_ISA(tti_reduce_argmax)(const tt_launch *l)
{
    const real *x = l->in[0].data;
    int32_t *y = l->out[0].data;
    tti_reduction r = tti_reduction_of(l->attr, &l->in[0]);
    if (r.has_tail) {
        for (int64_t u = l->begin; u < l->end; u++)
            y[u] = (int32_t)argmax_row(x + kept_offset(&r.keep, u), r.tail);
        return TT_OK;
    }
    int64_t groups = (r.cols + 15) / 16;
    for (int64_t u = l->begin; u < l->end; u++) {
        int64_t outer = u / groups, j = u % groups * 16;
        int n = r.cols - j < 16 ? (int)(r.cols - j) : 16;
        const real *p = x + kept_offset(&r.keep, outer) + j;
        v16 best = v16_set1((real)-__builtin_inf());
        i16 index = i16_set1(0), at = index;
        m16 nan = m16_first(0);
        odometer o;
        for (odometer_start(&o, &r.sum, -1, 0, 0); !o.done; odometer_next(&o)) {
            v16 v = v16_load_n(p + o.at, n);
            m16 more = v16_gt(v, best);
            nan = m16_or(nan, v16_unordered(v, v));
            best = v16_if(more, v, best);
            index = v16_bits(v16_if(more, v16_from_bits(at), v16_from_bits(index)));
            at = i16_add(at, i16_set1(1));
        }
        rbits k[16];
        i16_store(k, index);
        for (int i = 0; i < n; i++) {
            bool has_nan = (m16_bits(nan) >> i & 1) != 0; // one axis is reduced
            y[outer * r.cols + j + i] =
                (int32_t)(has_nan ? first_nan(p + i, r.sum.dim[0], r.sum.stride[0]) : k[i]);
        }
    }
    return TT_OK;
}

tt_status TTI_ISA(tti_reduce_count)(const tt_launch *l)
{
    const tti_count_attr *a = l->attr;
    const tt_arg *x = &l->in[0];
    double n = 1;
    for (int i = 0; i < x->shape.rank; i++)
        if (tti_is_reduced(&a->reduce, i))
            n *= (double)(i == x->open ? l->lanes->global_rows * x->per : x->shape.dim[i]);
    if (l->out[0].dtype == TT_F64)
        *(double *)l->out[0].data = n;
    else
        *(float *)l->out[0].data = (float)n;
    return TT_OK;
}
