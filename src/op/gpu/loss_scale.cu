/*
 * loss_scale.cu - kernel of loss_scale.c on a GPU: three numbers.
 */
#include "cuda/kernel.cuh"
#include "op/loss_scale.h"

__global__ static void change_scale(float *scale, float *good, const float *go, float *used,
                                    float every, float most)
{
    float was = *scale, next = was, n = *good + 1;
    if (*go - *go != 0) {
        next = was * 0.5f >= 1 ? was * 0.5f : 1.0f;
        n = 0;
    } else if (n >= every) {
        next = was * 2 <= most ? was * 2 : most;
        n = 0;
    }
    *used = was;
    *scale = next;
    *good = n;
}

static tt_status prepare(tt_prep *p)
{
    p->units[0] = 1;
    return TT_OK;
}

static tt_status update_loss_scale(const tt_launch *l)
{
    const tti_loss_scale_attr *a = (const tti_loss_scale_attr *)l->attr;
    TTI_LAUNCH(l, 1, 1, 0, change_scale, (float *)l->out[0].data, (float *)l->in[1].data,
               (const float *)l->in[2].data, (float *)l->out[1].data, (float)a->every,
               (float)a->most);
    return tti_cuda_launched(l);
}

extern "C" const tti_cuda_row tti_cuda_loss_scale[] = {
    TTI_ROW("update_loss_scale", prepare, update_loss_scale),
    TTI_ROWS_END,
};
