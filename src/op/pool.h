/*
 * pool.h - what the pooling records and kernels share.
 */
#ifndef TUTTI_OP_POOL_H
#define TUTTI_OP_POOL_H

#include "op/conv.h"

TT_CPU_DECLARE(tti_max_pool);
TT_CPU_DECLARE(tti_max_pool_grad);
TT_CPU_DECLARE(tti_avg_pool);
TT_CPU_DECLARE(tti_avg_pool_grad);

typedef struct tti_pool_attr {
    tt_ints size;   // of the window: height, width
    tt_ints stride; //
    tt_ints pad;    // top, bottom, left, right
    tt_ints image;  // avg_pool2d_grad: height and width of x; else none
} tti_pool_attr;

typedef struct tti_pool_tune {
    int64_t batch, h, w, c, oh, ow, kh, kw;
    int64_t sh, sw, pt, pl;
    bool by_image; // windows of neighbouring rows overlap: gradients go image by image
} tti_pool_tune;

#endif
