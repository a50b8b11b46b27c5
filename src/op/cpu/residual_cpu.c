/*
 * residual_cpu.c - the plan does the work; alone the node does nothing.
 */
#include "op/cpu/simd.h"
#include "op/residual.h"

TT_CPU_DECLARE(residual);

tt_status TTI_ISA(residual)(const tt_launch *l)
{
    (void)l;
    return TT_OK;
}
