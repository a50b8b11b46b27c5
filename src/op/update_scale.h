/*
 * update_scale.h - what update_scale.c and its kernel share.
 */
#ifndef TUTTI_OP_UPDATE_SCALE_H
#define TUTTI_OP_UPDATE_SCALE_H

#include <stdint.h>

typedef struct tti_update_scale_attr {
    double clip;
    int64_t guard;
} tti_update_scale_attr;

#endif
