/*
 * nan_rows.h - the table of nan.c: every op with inputs to put a NaN into.
 */
#ifndef TUTTI_TEST_NAN_ROWS_H
#define TUTTI_TEST_NAN_ROWS_H

#include "test.h"

/*
 * in: "name:kind[shape]" or "name:kind[shape]<limit", kinds T (the type under test), f32, f64, i32,
 * bool, var (an f32 variable). call: the node, in the text form of graphs.
 */
typedef struct nan_row {
    const char *op, *in, *call;
    unsigned chooses;       // bit i: input i only chooses; a NaN counts as number as[i]
    double as[6], as_first; // as_first: of the input's first element, if it is another
    unsigned loose;         // bit i: output i is not looked at
    unsigned padded;        // bit i: input i is multiplied with zeros of a padding, too
    bool few;               // fewer than 8 channels: in half precision on GPUs x meets zeros, too
    bool taps, f32_only, no_gpu; // taps: numbers tell what depends on an element, infinities do not
    const char *exempt;          // why there is nothing to try
} nan_row;

#define HIGH 8.0  // above every number there is
#define LOW  -3.0 // below
#define MOST 1e30

#define NAN_ROWS_MOST 400
extern const nan_row nan_rows[];
extern const int n_nan_rows;

#endif
