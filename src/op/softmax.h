/*
 * softmax.h - what softmax.c and its kernels share.
 */
#ifndef TUTTI_OP_SOFTMAX_H
#define TUTTI_OP_SOFTMAX_H

#include <tutti/extend.h>

typedef struct tti_cross_entropy_attr {
    double smoothing;
    bool has_ignore;
    int64_t ignore;
} tti_cross_entropy_attr;

TT_CPU_DECLARE(softmax);
TT_CPU_DECLARE(softmax_grad);
TT_CPU_DECLARE(log_softmax);
TT_CPU_DECLARE(log_softmax_grad);
TT_CPU_DECLARE(cross_entropy);
TT_CPU_DECLARE(cross_entropy_grad);

#endif
