/*
 * update.h - what update.c and update_cpu.c share.
 */
#ifndef TUTTI_OP_UPDATE_H
#define TUTTI_OP_UPDATE_H

#include <tutti/extend.h>

typedef struct tti_update_attr {
    double lr_scale, weight_decay, momentum, beta1, beta2, eps;
    int64_t nesterov, has_scale;
} tti_update_attr;
typedef struct tti_ema_attr {
    double decay;
    int64_t has_scale;
} tti_ema_attr;

TT_CPU_DECLARE(assign);
TT_CPU_DECLARE(update_sgd);
TT_CPU_DECLARE(update_adam);
TT_CPU_DECLARE(update_adamw);
TT_CPU_DECLARE(update_rmsprop);
TT_CPU_DECLARE(update_adagrad);
TT_CPU_DECLARE(update_lion);
TT_CPU_DECLARE(update_ema);

#endif
