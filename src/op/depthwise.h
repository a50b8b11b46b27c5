/*
 * depthwise.h - what the depthwise convolutions' records and kernels share.
 */
#ifndef TUTTI_OP_DEPTHWISE_H
#define TUTTI_OP_DEPTHWISE_H

#include "op/conv.h"

TT_CPU_DECLARE(tti_depthwise);
TT_CPU_DECLARE(tti_depthwise_dx);
TT_CPU_DECLARE(tti_depthwise_dw);

#define TTI_DEPTHWISE_BLOCK 64 // output channels that a unit of dw takes

typedef struct tti_depthwise_tune {
    tti_conv_dims d; // c_out = c_in mult
    int64_t mult;
    int64_t lanes, blocks; // dw
} tti_depthwise_tune;

#endif
