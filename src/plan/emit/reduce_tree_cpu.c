/*
 * reduce_tree_cpu.c - the kernel of reduce_tree.c that computes; compiled once per instruction set.
 */
#include "comm/lane_tree.h"
#include "op/cpu/moments.h"
#include "plan/emit/reduce_tree.h"

// Statistics of the replicas: an input has the means of its parts, the next one their M2. Units are
// channels.
tt_status TTI_ISA(tti_merge_moments)(const tt_launch *l)
{
    const tti_tree_program *prog = l->tune;
    int64_t c = l->out[0].count;
    for (int64_t j = l->begin; j < l->end; j += 16) {
        int w = (int)TTI_MIN(l->end - j, (int64_t)16), depth = 0;
        tti_moments stack[TTI_MAX_PARTS + 2];
        for (int i = 0; i < prog->n; i++) {
            const tti_push *push = &prog->push[i];
            const tt_arg *in = &l->in[push->input];
            int64_t at = push->part * c + j;
            stack[depth++] = (tti_moments){push->rows * prog->per_row,
                                           v16_load_n((const real *)in[0].data + at, w),
                                           v16_load_n((const real *)in[1].data + at, w)};
            for (int m = push->merges; m > 0; m--, depth--)
                stack[depth - 2] = tti_moments_merge(stack[depth - 2], stack[depth - 1]);
        }
        tti_moments_end(l, j, w, stack[0]);
    }
    return TT_OK;
}
