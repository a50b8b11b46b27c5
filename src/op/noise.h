/*
 * noise.h - attributes of noise.c and its kernel.
 */
#ifndef TUTTI_OP_NOISE_H
#define TUTTI_OP_NOISE_H

#include "op/dropout.h"

typedef struct tti_noise_attr {
    double deviation;
} tti_noise_attr;

TT_CPU_DECLARE(gaussian_noise);

#endif
