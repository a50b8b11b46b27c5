/*
 * label_rank_cpu.c - kernel of label_rank.c; compiled once per instruction set. A unit is a row.
 */
#include "op/cpu/simd.h"
#include <tutti/extend.h>

TT_CPU_DECLARE(label_rank);

// How many of x[0..n) are not below v, or, with equal, neither below nor equal.
static inline int64_t count_before(const real *x, int64_t n, real v, bool equal)
{
    v16 limit = v16_set1(v);
    int64_t count = 0;
    for (int64_t j = 0; j < n; j += 16) {
        int w = n - j < 16 ? (int)(n - j) : 16;
        v16 a = v16_load_n(x + j, w);
        m16 after = equal ? v16_le(a, limit) : v16_lt(a, limit);
        unsigned before = m16_bits(m16_and(m16_not(after), m16_first(w)));
        count += __builtin_popcount(before);
    }
    return count;
}

static inline int64_t label_at(const tt_arg *t, int64_t r)
{
    if (t->dtype == TT_I64)
        return ((const int64_t *)t->data)[r];
    return t->dtype == TT_I32 ? ((const int32_t *)t->data)[r] : ((const uint8_t *)t->data)[r];
}

tt_status TTI_ISA(label_rank)(const tt_launch *l)
{
    int64_t n = l->in[0].cols;
    for (int64_t r = l->begin; r < l->end; r++) {
        const real *x = (const real *)l->in[0].data + r * n;
        int64_t k = label_at(&l->in[1], r), rank = n;
        if (k >= 0 && k < n)
            rank = count_before(x, k, x[k], false) + count_before(x + k + 1, n - k - 1, x[k], true);
        ((int32_t *)l->out[0].data)[r] = rank > INT32_MAX ? INT32_MAX : (int32_t)rank;
    }
    return TT_OK;
}
