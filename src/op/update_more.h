/*
 * update_more.h - what update_more.c and its kernels share.
 */
#ifndef TUTTI_OP_UPDATE_MORE_H
#define TUTTI_OP_UPDATE_MORE_H

#include <tutti/extend.h>

typedef struct tti_update_more_attr {
    double lr_scale, weight_decay, beta1, beta2, eps, l1, l2;
    int64_t has_scale;
} tti_update_more_attr;
typedef struct tti_moment_attr {
    double beta;
    int64_t is_square, has_scale;
} tti_moment_attr;
typedef struct tti_lamb_attr {
    double beta1, beta2, eps, weight_decay;
} tti_lamb_attr;

// Nadam's momentum of update i is beta1 (1 - 1/2 0.96^(0.004 i)); this is 0.96^0.004.
#define TTI_NADAM_RATIO 0.9998367253526753

TT_CPU_DECLARE(update_adadelta);
TT_CPU_DECLARE(update_adamax);
TT_CPU_DECLARE(update_nadam);
TT_CPU_DECLARE(update_amsgrad);
TT_CPU_DECLARE(update_ftrl);
TT_CPU_DECLARE(update_moment);
TT_CPU_DECLARE(lamb_direction);

#endif
