/*
 * effect.cu - print and assert tell the host of values, so they have no kernels here: plans put
 * them on the CPU.
 */
#include "cuda/kernel.cuh"

extern "C" const tti_cuda_row tti_cuda_effect[] = {
    TTI_ROWS_END,
};
