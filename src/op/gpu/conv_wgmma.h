/*
 * conv_wgmma.h - dw of 3x3 convolutions in bf16 and f16 by the matrix units of compute capability
 * 9.0, behind conv_dw.cu.
 */
#ifndef TUTTI_OP_CONV_WGMMA_H
#define TUTTI_OP_CONV_WGMMA_H

#include "op/gpu/conv.cuh"

#define TTI_WGMMA_TILE 64 // channels of x, and of dy, of a block

/*
 * What describes images to the card; NULL: conv_mma.cuh is to be used. By shape, type and kind of
 * card; images are no larger than tti_mma_fits() has it.
 */
void *tti_wgmma_maps_of(const tti_cuda_device *dev, const tti_conv_dims *d, tt_dtype type);
/*
 * The slices of the lanes of g, by the maps of the node; x and dy are aligned. part is [lanes,
 * slices, 9 c_in, c_out]; a lane has as many slices as the rule says, each an equal share of its
 * images.
 */
tt_status tti_wgmma_run(void *maps, const tt_launch *l, const tti_conv_dims *d,
                        const tti_dw_sum *sum, const tti_dw_images &g, float *part);

#endif
