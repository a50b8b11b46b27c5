/*
 * unary.cu - table of the ops of unary.c. Kernel: pointwise.cu.
 */
#include "cuda/kernel.cuh"
#include "op/gpu/pointwise.h"
#include "op/unary.h"

#define ROW(name) TTI_ROW(#name, tti_pw_prepare, tti_pw_alone),
extern "C" const tti_cuda_row tti_cuda_unary[] = {
    TTI_UNARY_KERNELS(ROW) TTI_BACKWARD_KERNELS(ROW) ROW(logical_not) TTI_ROWS_END,
};
