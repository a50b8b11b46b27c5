/*
 * cast.cu - table of the ops of cast.c. Kernel: pointwise.cu.
 */
#include "cuda/kernel.cuh"
#include "op/gpu/pointwise.h"

// identity and stop_gradient, where a plan keeps them.
static tt_status copy(const tt_launch *l)
{
    const tt_arg *x = &l->in[0];
    size_t bytes = (size_t)x->count * tti_pw_bytes(x->dtype);
    if (bytes > 0 && x->data != l->out[0].data)
        TTI_CUDA(tti_device_of(l), l->node,
                 cudaMemcpyAsync(l->out[0].data, x->data, bytes, cudaMemcpyDeviceToDevice,
                                 (cudaStream_t)l->stream));
    return TT_OK;
}

extern "C" const tti_cuda_row tti_cuda_cast[] = {
    TTI_ROW("cast", tti_pw_prepare, tti_pw_alone),
    TTI_ROW("identity", tti_pw_prepare, copy),
    TTI_ROW("stop_gradient", tti_pw_prepare, copy),
    TTI_ROWS_END,
};
