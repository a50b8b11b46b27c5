/*
 * loss_scale.h - what loss_scale.c and its kernel share.
 */
#ifndef TUTTI_OP_LOSS_SCALE_H
#define TUTTI_OP_LOSS_SCALE_H

#include <tutti/extend.h>

typedef struct tti_loss_scale_attr {
    int64_t every;
    double most;
} tti_loss_scale_attr;

TT_CPU_DECLARE(update_loss_scale);

#endif
