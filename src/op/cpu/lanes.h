/*
 * lanes.h - combining one partial sum per lane by the tree over lane numbers (tt_lanes).
 */
#ifndef TUTTI_OP_LANES_H
#define TUTTI_OP_LANES_H

#include "op/cpu/simd.h"
#include <tutti/extend.h>

#define TTI_LANE_DEPTH 20 // sums pending at once: two for each level of TT_MAX_LANES

/*
 * Elements [begin, end) of the lane sums: partial holds lane i at partial + i * stride; part p of
 * the result goes to out + p * out_stride. Lanes without rows must hold zeros.
 */
static inline void tti_lane_tree(const tt_lanes *ln, const real *partial, int64_t stride, real *out,
                                 int64_t out_stride, int64_t begin, int64_t end)
{
    for (int64_t j = begin; j < end; j += 16) {
        int n = end - j < 16 ? (int)(end - j) : 16;
        v16 stack[TTI_LANE_DEPTH];
        int depth = 0;
        for (int i = 0; i < ln->n; i++) {
            stack[depth++] = v16_load_n(partial + i * stride + j, n);
            for (int m = 0; m < ln->merges[i]; m++, depth--)
                stack[depth - 2] = v16_add(stack[depth - 2], stack[depth - 1]);
        }
        for (int p = 0; p < depth; p++)
            v16_store_n(out + p * out_stride + j, v16_end(stack[p]), n);
    }
}

#endif
