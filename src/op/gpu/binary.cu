/*
 * binary.cu - table of the ops of binary.c. Kernel: pointwise.cu.
 */
#include "cuda/kernel.cuh"
#include "op/gpu/pointwise.h"
#include <tutti/ops.h>

#define ROW(name) TTI_ROW(#name, tti_pw_prepare, tti_pw_alone),
extern "C" const tti_cuda_row tti_cuda_binary[] = {
    TT_BINARY_LIST(ROW) ROW(where) ROW(broadcast) TTI_ROWS_END,
};
