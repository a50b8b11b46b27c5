/*
 * special.h - what the tests of special values share: special.c (numbers), special_rows.c (rows).
 */
#ifndef TUTTI_TEST_SPECIAL_H
#define TUTTI_TEST_SPECIAL_H

#include "op_test.h"
#include <math.h>

#define INF INFINITY

// Equal, a NaN being equal to a NaN, and zeros of one sign.
static inline bool is_same(float a, float b)
{
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

// Calls try() with a context of every instruction set, or the GPU's.
void special_everywhere(void (*try)(tt_ctx *ctx, const char *where));

#endif
