/*
 * square_sum.h - the order in which squares and their sums are added, for square_sum.c and
 * update_scale.c and their kernels.
 */
#ifndef TUTTI_OP_SQUARE_SUM_H
#define TUTTI_OP_SQUARE_SUM_H

#include <tutti/extend.h>

#define TTI_SQUARE_BLOCK 1024 // elements
#define TTI_SQUARE_GROUP 64   // blocks of a unit of work: a whole sub-tree

TT_CPU_DECLARE(square_sum);
TT_CPU_DECLARE(update_scale);

/*
 * Adds x[0..n) by the binary tree over their numbers: (0 + 1), (2 + 3), ..., then those. Where n is
 * no power of two what is missing counts as zero. x is used up.
 */
static inline double tti_tree_sum(double *x, int64_t n)
{
    for (; n > 1; n = (n + 1) / 2) {
        for (int64_t i = 0; i < n / 2; i++)
            x[i] = x[2 * i] + x[2 * i + 1];
        if (n % 2 != 0)
            x[n / 2] = x[n - 1];
    }
    return n == 0 ? 0 : x[0];
}

#endif
