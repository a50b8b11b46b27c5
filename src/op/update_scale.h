/*
 * update_scale.h - what update_scale.c and its kernel share.
 */
#ifndef TUTTI_OP_UPDATE_SCALE_H
#define TUTTI_OP_UPDATE_SCALE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tti_update_scale_attr {
    double clip;
    int64_t guard;
    int64_t n_largest; // the last inputs
    double square, step;
} tti_update_scale_attr;

/*
 * Would an update with the largest gradient give a number that is not finite? As updates compute:
 * each product is rounded to f32, so none of a smaller gradient is larger.
 */
#ifdef __cplusplus
__host__ __device__
#endif
    static inline bool
    tti_update_overflows(const tti_update_scale_attr *a, float largest, float grad_scale,
                         float scale, float lr)
{
    float g = largest * grad_scale, y = 0;
    g = g * scale;
    if (a->square > 0) {
        y = (float)a->square * g;
        y = y * g;
    }
    if (a->step > 0)
        y = (float)((double)lr * a->step) * g;
    return !(g - g == 0 && y - y == 0);
}

#endif
