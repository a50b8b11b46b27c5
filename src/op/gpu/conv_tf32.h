/*
 * conv_tf32.h - convolutions of f32 and their gradients on the matrix units, with the accuracy of
 * f32 (conv_tf32.cu, tf32_chunk.cuh).
 */
#ifndef TUTTI_OP_CONV_TF32_H
#define TUTTI_OP_CONV_TF32_H

#include "op/gpu/conv_gather.cuh"
#include "op/gpu/conv_mma.cuh"

// Whether dims and type are for these kernels: a matter of the job and the kind of card alone.
bool tti_conv_tf32_takes(const tti_cuda_device *dev, const tti_conv_dims *d, tt_dtype type);
// conv2d, or its gradient at x.
tt_status tti_conv_tf32_run(const tt_launch *l, tti_conv_gather q);
// The gradient at w: how lanes are cut into slices, and the slices of the lanes of g.
tti_dw_rule tti_conv_tf32_rule(const tti_conv_dims *d);
tt_status tti_conv_tf32_dw(const tt_launch *l, const tti_conv_dims *d, const tti_dw_images &g,
                           const tti_mma_in &q);

#endif
