/*
 * norm.h - what norm.c and its kernels share.
 */
#ifndef TUTTI_OP_NORM_H
#define TUTTI_OP_NORM_H

#include <tutti/extend.h>

// Of layer_norm, rms_norm and their gradients. Inputs that are not there are left out.
typedef struct tti_norm_attr {
    double eps;
    bool has_gamma, has_beta;
} tti_norm_attr;

/*
 * How a gradient's work is divided. By lane, one walk over the memory gives dx and the sums; it
 * keeps as many threads busy as there are lanes. By column, the sums are taken first, in blocks of
 * TTI_NORM_COLS columns, and dx after them, with as many threads as one likes.
 */
typedef struct tti_norm_tune {
    bool by_lane;
} tti_norm_tune;
#define TTI_NORM_COLS 64

TT_CPU_DECLARE(layer_norm);
TT_CPU_DECLARE(layer_norm_grad);
TT_CPU_DECLARE(rms_norm);
TT_CPU_DECLARE(rms_norm_grad);

#endif
