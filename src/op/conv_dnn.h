/*
 * conv_dnn.h - convolutions by cuDNN, behind conv.cu: one engine for an op, whatever the rows.
 */
#ifndef TUTTI_OP_CONV_DNN_H
#define TUTTI_OP_CONV_DNN_H

#include "op/conv.h"

enum {
    TTI_CONV_Y,
    TTI_CONV_DX,
    TTI_CONV_DW
}; // kinds

typedef struct tti_conv_dnn tti_conv_dnn;

/*
 * The engine of a node, in *out; NULL where the kernels of conv.cu are to be used: no cuDNN, no
 * engine that is deterministic and takes any rows. workspace is a multiple of 256.
 */
tt_status tti_conv_dnn_prepare(tt_prep *p, const tti_conv_dims *d, int kind, tti_conv_dnn **out,
                               size_t *workspace);
// x, w, y: those of the convolution; for TTI_CONV_DX x is where dx goes and y is dy.
tt_status tti_conv_dnn_run(tti_conv_dnn *c, const tt_launch *l, void *x, void *w, void *y,
                           void *workspace);
// Sums of n lanes, of the images bound[i] to bound[i + 1], to part [n, kh, kw, c_in, c_out].
tt_status tti_conv_dnn_dw(tti_conv_dnn *c, const tt_launch *l, const tti_conv_dims *d, int n,
                          const int64_t *bound, float *part);

#endif
