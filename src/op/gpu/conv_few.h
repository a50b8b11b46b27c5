/*
 * conv_few.h - convolutions over images of fewer than 8 channels in bf16 and f16, and their
 * gradient at w: on the matrix units, by kernels of our own (conv_few.cu).
 */
#ifndef TUTTI_OP_CONV_FEW_H
#define TUTTI_OP_CONV_FEW_H

#include "op/gpu/conv.cuh"

/*
 * How a convolution of few channels goes, by its shape alone. Outputs fall into tiles of rows by
 * columns; the pixels of x under one are held with so many channels each that a step of the stride
 * is a multiple of 16 bytes.
 */
struct tti_few {
    int channels;         // of a pixel as it is held: 4 or 8
    int taps;             // numbers of a row of taps, kw channels rounded up to a multiple of 16
    int tile_h, tile_w;   // outputs of a tile; tile_w is a multiple of 16
    int down, across;     // tiles of an image
    int patch_h, patch_w; // pixels of x under a tile
    int warps;            // of a block
    size_t shared;        // bytes of a block
};

// Whether dims and type are for these kernels; dw: the gradient at w.
bool tti_few_of(const tti_conv_dims *d, tt_dtype type, bool dw, tti_few *out);
// As conv2d: l has x, w, perhaps a bias; y, perhaps the sum before the activation.
tt_status tti_few_run(const tt_launch *l, const tti_conv_dims *d);

// Slices of a lane's sum are made of whole tiles.
tti_dw_rule tti_few_rule(const tti_conv_dims *d, const tti_few *f);
// The slices of the lanes of g to part.
tt_status tti_few_dw(const tt_launch *l, const tti_conv_dims *d, const tti_dw_sum *sum,
                     const tti_dw_images &g, float *part);

#endif
