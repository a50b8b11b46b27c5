/*
 * random.c - first values of variables: checks, and the choice of code. Kernel: random_cpu.c.
 */
#include "op/random.h"
#include "op/op.h"

static tti_init_fn *const fill[TT_N_ISA] = {
    [TT_ISA_PLAIN] = tti_init_fill_plain,
#if defined(__x86_64__)
    [TT_ISA_FMA] = tti_init_fill_fma,       [TT_ISA_AVX2] = tti_init_fill_avx2,
    [TT_ISA_AVX512] = tti_init_fill_avx512,
#endif
    [TT_ISA_F64] = tti_init_fill_plain,
};

tt_status tti_init_check(tt_ctx *ctx, const tt_init *init, tt_dtype dtype)
{
    bool drawn = init->kind != TT_INIT_ZEROS && init->kind != TT_INIT_CONSTANT;
    if (init->kind < TT_INIT_ZEROS || init->kind > TT_INIT_LECUN_NORMAL)
        return TT_FAIL(ctx, TT_EINVAL, "variable: initializer %d is unknown", (int)init->kind);
    if (drawn && !tti_is_float(dtype))
        return TT_FAIL(ctx, TT_EDTYPE, "variable: random initial values need a float type, not %s",
                       tt_dtype_name(dtype));
    return TT_OK;
}

tti_init_fn *tti_init_kernel(int isa)
{
    return isa < 0 || isa >= TT_N_ISA || fill[isa] == NULL ? tti_init_fill_plain : fill[isa];
}

tt_status tti_init_values(tt_ctx *ctx, int isa, const tt_init *init, const tt_shape *shape,
                          tt_dtype dtype, uint64_t seed, uint64_t key, int64_t begin, int64_t end,
                          void *out)
{
    TT_TRY(tti_init_check(ctx, init, dtype));
    unsigned saved = tti_fp_enter();
    tti_init_kernel(isa)(init, shape, dtype, seed, key, begin, end, out);
    tti_fp_leave(saved);
    return TT_OK;
}
