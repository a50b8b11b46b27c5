/*
 * loss_scale_cpu.c - kernel of loss_scale.c: three numbers.
 */
#include "op/cpu/simd.h"
#include "op/loss_scale.h"

tt_status TTI_ISA(update_loss_scale)(const tt_launch *l)
{
    const tti_loss_scale_attr *a = l->attr;
    float *scale = l->out[0].data, *good = l->in[1].data; // the variables' own memory
    float go = *(const float *)l->in[2].data;
    *(float *)l->out[1].data = *scale;
    if (go - go != 0) {
        *scale = *scale * 0.5f >= 1 ? *scale * 0.5f : 1.0f;
        *good = 0;
        return TT_OK;
    }
    *good += 1;
    if (*good >= (float)a->every) {
        *scale = *scale * 2 <= (float)a->most ? *scale * 2 : (float)a->most;
        *good = 0;
    }
    return TT_OK;
}
