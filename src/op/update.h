/*
 * update.h - what update.c and update_cpu.c share.
 */
#ifndef TUTTI_OP_UPDATE_H
#define TUTTI_OP_UPDATE_H

#include <tutti/extend.h>

typedef struct tti_update_attr {
    double lr_scale, weight_decay, momentum, beta1, beta2, eps;
    int64_t nesterov;
} tti_update_attr;

TT_CPU_DECLARE(assign);
TT_CPU_DECLARE(update_sgd);
TT_CPU_DECLARE(update_adam);
TT_CPU_DECLARE(update_adamw);
TT_CPU_DECLARE(update_rmsprop);
TT_CPU_DECLARE(update_adagrad);

#endif
