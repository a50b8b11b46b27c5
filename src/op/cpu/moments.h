/*
 * moments.h - mean and M2 (the sum of squares about the mean) of entries, sixteen channels at once,
 * and those of two sets of entries together, by Chan's formula. The roundings are the same wherever
 * the sets come from: lanes (batch_norm_cpu.c) or replicas (plan/emit/reduce_tree_cpu.c).
 */
#ifndef TUTTI_OP_MOMENTS_H
#define TUTTI_OP_MOMENTS_H

#include "op/cpu/simd.h"
#include <tutti/extend.h>

typedef struct tti_moments {
    int64_t n; // entries
    v16 mean, m2;
} tti_moments;

static inline tti_moments tti_moments_merge(tti_moments a, tti_moments b)
{
    if (b.n == 0)
        return a;
    if (a.n == 0)
        return b;
    real w = (real)b.n / (real)(a.n + b.n);
    v16 d = v16_sub(b.mean, a.mean);
    return (tti_moments){a.n + b.n, v16_fma(d, v16_set1(w), a.mean),
                         v16_fma(v16_mul(d, d), v16_set1((real)a.n * w), v16_add(a.m2, b.m2))};
}

// Of all entries, for w channels from j on: mean, variance and unbiased variance.
static inline void tti_moments_end(const tt_launch *l, int64_t j, int w, tti_moments all)
{
    real n = (real)(all.n > 0 ? all.n : 1), less = (real)(all.n > 1 ? all.n - 1 : 1);
    v16_store_n((real *)l->out[0].data + j, v16_end(all.mean), w);
    v16_store_n((real *)l->out[1].data + j, v16_end(v16_div(all.m2, v16_set1(n))), w);
    v16_store_n((real *)l->out[2].data + j, v16_end(v16_div(all.m2, v16_set1(less))), w);
}

#endif
