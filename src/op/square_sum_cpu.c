/*
 * square_sum_cpu.c - kernel of square_sum.c. Its output is f64, so plans take it from the set of
 * that name; it has nothing of libm and the same bits in every set.
 */
#include "op/simd.h"
#include "op/square_sum.h"

#define FOLD(sum)                   \
    for (int d = 8; d > 0; d /= 2)  \
        for (int i = 0; i < d; i++) \
    (sum)[i] = (sum)[i] + (sum)[i + d]

static inline double block_f32(const float *x, int64_t n)
{
    double sum[16] = {0};
    int64_t j = 0;
    for (; j + 16 <= n; j += 16)
        for (int i = 0; i < 16; i++)
            sum[i] += (double)x[j + i] * (double)x[j + i];
    for (int i = 0; j + i < n; i++)
        sum[i] += (double)x[j + i] * (double)x[j + i];
    FOLD(sum);
    return sum[0];
}

static inline double block_f64(const double *x, int64_t n)
{
    double sum[16] = {0};
    int64_t j = 0;
    for (; j + 16 <= n; j += 16)
        for (int i = 0; i < 16; i++)
            sum[i] += x[j + i] * x[j + i];
    for (int i = 0; j + i < n; i++)
        sum[i] += x[j + i] * x[j + i];
    FOLD(sum);
    return sum[0];
}

tt_status TTI_ISA(square_sum)(const tt_launch *l)
{
    double *groups = (double *)l->scratch, block[TTI_SQUARE_GROUP];
    const tt_arg *x = &l->in[0];
    if (l->phase == 1) {
        int64_t per = (int64_t)TTI_SQUARE_BLOCK * TTI_SQUARE_GROUP;
        *(double *)l->out[0].data = tti_tree_sum(groups, (x->count + per - 1) / per);
        return TT_OK;
    }
    for (int64_t u = l->begin; u < l->end; u++) {
        int n_blocks = 0;
        int64_t at = u * TTI_SQUARE_GROUP * TTI_SQUARE_BLOCK;
        for (; n_blocks < TTI_SQUARE_GROUP && at < x->count; at += TTI_SQUARE_BLOCK) {
            int64_t n = x->count - at < TTI_SQUARE_BLOCK ? x->count - at : TTI_SQUARE_BLOCK;
            block[n_blocks++] = x->dtype == TT_F64 ? block_f64((const double *)x->data + at, n)
                                                   : block_f32((const float *)x->data + at, n);
        }
        groups[u] = tti_tree_sum(block, n_blocks);
    }
    return TT_OK;
}
