/*
 * effect_cpu.c - print and assert: the effect, then x is passed on.
 */
#include "op/cpu/simd.h"
#include "op/effect.h"

TT_CPU_DECLARE(tti_print);
TT_CPU_DECLARE(tti_assert);

static void pass(const tt_launch *l)
{
    memcpy(l->out[0].data, l->in[0].data, (size_t)l->in[0].count * tt_dtype_bytes(l->in[0].dtype));
}

tt_status TTI_ISA(tti_print)(const tt_launch *l)
{
    TT_TRY(tti_effect_print(l));
    pass(l);
    return TT_OK;
}

tt_status TTI_ISA(tti_assert)(const tt_launch *l)
{
    TT_TRY(tti_effect_assert(l));
    pass(l);
    return TT_OK;
}
