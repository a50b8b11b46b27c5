/*
 * tf32_fits.h - what the kernels of f32 on the matrix units (tf32_chunk.cuh) count in 32 bits.
 */
#ifndef TUTTI_OP_TF32_FITS_H
#define TUTTI_OP_TF32_FITS_H

#include "op/conv.h"

// Rows of a factor are less than this apart: a tile has up to 128 of them.
#define TTI_TF32_LD ((int64_t)1 << 24)

// Sizes of a convolution beside those of conv_mma.cuh: rows of w and dy are c_out apart.
static inline bool tti_conv_tf32_fits(const tti_conv_dims *d)
{
    return d->c_out < TTI_TF32_LD && d->kh * d->kw * d->c_out < (int64_t)1 << 30;
}

#endif
