/*
 * strokes.h - how digits are written: for each class several styles, each a few strokes.
 *
 * A stroke is a list of points that a smooth curve runs through, x to the right and y down, in
 * hundredths of the box; a corner is where one stroke ends and the next begins.
 */
#ifndef TUTTI_DATA_STROKES_H
#define TUTTI_DATA_STROKES_H

#include <stdint.h>

#define TTI_CLASSES    10
#define TTI_STYLES     3
#define TTI_STROKES    4  // most of a style
#define TTI_STROKE_MAX 14 // most points of a stroke

typedef struct tti_stroke {
    uint8_t n;
    uint8_t at[TTI_STROKE_MAX][2];
} tti_stroke;

typedef struct tti_glyph {
    uint8_t n;
    tti_stroke strokes[TTI_STROKES];
} tti_glyph;

extern const tti_glyph tti_glyphs[TTI_CLASSES][TTI_STYLES];

#endif
