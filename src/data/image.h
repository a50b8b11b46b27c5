/*
 * image.h - what transforms of images share: [height, width] or [height, width, channels].
 */
#ifndef TUTTI_DATA_IMAGE_H
#define TUTTI_DATA_IMAGE_H

#include "data/chance.h"
#include "data/data.h"
#include "data/decode.h"

#define TTI_MOST_SIDE 65536

tt_status tti_picture_check(tt_ctx *ctx, const tti_transform *t) TTI_CHECKED;
// The same, of u8 or f32: for those that calculate.
tt_status tti_picture_check_numbers(tt_ctx *ctx, tti_transform *t) TTI_CHECKED;
int64_t tti_image_channels(const tt_field *f);
// Is the transform applied to this record? probability is its option.
static inline bool tti_image_happens(tti_chance *c, double probability)
{
    return tti_chance_unit(c) < probability;
}

// A number as a value of the field: bytes are rounded and clipped, floats are as they are.
static inline void tti_image_put(tt_dtype type, void *y, int64_t i, float v)
{
    if (type == TT_F32) {
        ((float *)y)[i] = v;
        return;
    }
    v = v < 0 ? 0 : v > 255 ? 255 : v;
    ((uint8_t *)y)[i] = (uint8_t)(v + 0.5f);
}

static inline float tti_image_get(tt_dtype type, const void *x, int64_t i)
{
    return type == TT_F32 ? ((const float *)x)[i] : (float)((const uint8_t *)x)[i];
}

#define TTI_PROBABILITY_ROW(value)                                                  \
    {                                                                               \
        "probability", TT_OPT_FLOAT, value, "how often it is applied, from 0 to 1", \
            offsetof(tt_transform_opts, probability), 0, 1, NULL                    \
    }

#endif
