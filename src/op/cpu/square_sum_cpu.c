/*
 * square_sum_cpu.c - kernel of square_sum.c. Its output is f64, so plans take it from the set of
 * that name; blocks of f32 are added by the context's own set, whose vectors are wider. Sixteen
 * partials that do not touch each other have the same bits in any width.
 */
#include "base/ctx.h"
#include "op/cpu/simd.h"
#include "op/square_sum.h"

typedef double block_fn(const float *x, int64_t n);
block_fn tti_square_block_plain;
#if defined(__x86_64__)
block_fn tti_square_block_fma, tti_square_block_avx2, tti_square_block_avx512;
static block_fn *const block_fns[] = {tti_square_block_plain, tti_square_block_fma,
                                      tti_square_block_avx2, tti_square_block_avx512};
#else
static block_fn *const block_fns[] = {tti_square_block_plain};
#endif

static inline double fold(double sum[16])
{
    for (int d = 8; d > 0; d /= 2)
        for (int i = 0; i < d; i++)
            sum[i] = sum[i] + sum[i + d];
    return sum[0];
}

#if !defined(TTI_SET_F64)
double TTI_ISA(tti_square_block)(const float *x, int64_t n)
{
    double sum[16] = {0};
    for (; n >= 16; n -= 16, x += 16)
        for (int i = 0; i < 16; i++)
            sum[i] += (double)x[i] * (double)x[i];
    for (int i = 0; i < n; i++)
        sum[i] += (double)x[i] * (double)x[i];
    return fold(sum);
}
#endif

static inline double block_f64(const double *x, int64_t n)
{
    double sum[16] = {0};
    for (int64_t j = 0; j < n; j++)
        sum[j % 16] += x[j] * x[j];
    return fold(sum);
}

tt_status TTI_ISA(square_sum)(const tt_launch *l)
{
    double *groups = (double *)l->scratch, block[TTI_SQUARE_GROUP];
    const tt_arg *x = &l->in[0];
    block_fn *block_f32 = block_fns[l->ctx->top.isa];
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
