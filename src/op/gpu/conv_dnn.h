/*
 * conv_dnn.h - convolutions by cuDNN, behind conv.cu: one engine for an op, whatever the rows.
 */
#ifndef TUTTI_OP_CONV_DNN_H
#define TUTTI_OP_CONV_DNN_H

#include "cuda/kernel.cuh"
#include "op/conv.h"

enum {
    TTI_CONV_Y,
    TTI_CONV_DX,
    TTI_CONV_DW
}; // kinds

typedef struct tti_conv_dnn tti_conv_dnn;

/*
 * The engine of a node, in *out; NULL where Tutti's own kernels are to be used: no library, no
 * engine that is deterministic and takes any rows, images that do not all begin at 16 bytes; dw
 * that is no plain product. images: for TTI_CONV_DW, the lanes by which it is summed, of images.
 * workspace is a multiple of 256.
 */
tt_status tti_conv_dnn_prepare(tt_prep *p, const tti_conv_dims *d, int kind, const tt_lanes *images,
                               tti_conv_dnn **out, size_t *workspace);
// x, w, y: those of the convolution; for TTI_CONV_DX x is where dx goes and y is dy.
tt_status tti_conv_dnn_run(tti_conv_dnn *c, const tt_launch *l, void *x, void *w, void *y,
                           void *workspace);
// Sums of n lanes, of the images bound[i] to bound[i + 1], to part [n, kh, kw, c_in, c_out].
tt_status tti_conv_dnn_dw(tti_conv_dnn *c, const tt_launch *l, const tti_conv_dims *d, int n,
                          const int64_t *bound, float *part);

// What prepare leaves for the kernels of conv.cu and conv_dw.cu.
struct tti_conv_tune {
    tti_conv_dims d;
    tti_conv_dnn *dnn; // NULL: our own
    size_t workspace;  // at the start of scratch
    bool by_few;       // our own for few channels (conv_few.h)
    bool by_tf32;      // our own for f32 (conv_tf32.h)
};
static_assert(sizeof(tti_conv_tune) <= TT_TUNE_BYTES, "tune is too large");

// Libraries want addresses of 16 bytes, which is where a plan puts whole tensors.
static inline bool tti_conv_by_library(const tti_conv_tune *t, const tt_launch *l)
{
    return t->dnn != NULL && tti_is_aligned(l->in[0].data) && tti_is_aligned(l->in[1].data) &&
           tti_is_aligned(l->out[0].data);
}

#endif
