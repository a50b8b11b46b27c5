/*
 * strands.cuh - lanes cut finer, for kernels whose unit of parallel work is a lane.
 *
 * Products, gradients of convolutions and batch norm's statistics take a sum for each lane; a job
 * of one lane, or a GPU that has one long lane of many, would leave most of a card idle. So a lane
 * is cut into 1, 2, 4 or 8 strands, which those kernels take for lanes: the strands of a lane are
 * added by a binary tree, and the lanes by theirs. Into how many depends on the lane's own rows, on
 * the lanes of the job and on the size of the result, never on the device or on what else is in a
 * call: the bits of a lane do not change with those.
 *
 * Eight lanes of a usual size are not cut, and fewer are cut into eight strands in all: they run
 * as fast, for they are the same work.
 */
#ifndef TUTTI_CUDA_STRANDS_CUH
#define TUTTI_CUDA_STRANDS_CUH

#include "cuda/kernel.cuh"

// Constants of the arithmetic: another number means other bits.
#define TTI_STRANDS        8
#define TTI_STRAND_TERMS   1024               // a strand has at least so many terms of each sum
#define TTI_STRAND_NUMBERS ((int64_t)1 << 24) // a result of so many fills a card by itself

// How lanes are cut: between units, which are rows of the batch, images or terms.
struct tti_strand_rule {
    int64_t terms; // of a unit
    int64_t most;  // units of a strand, as far as eight strands allow
    int64_t count; // numbers of a result
};

struct tti_strands {
    tt_lanes ln; // strands for lanes, bounds in units; total is still the job's lanes
    int64_t bound[TT_MAX_LANES + 1];
    uint8_t merges[TT_MAX_LANES];
};

// Of a lane of so many units, in a job of total lanes.
static inline int tti_strands_of(const tti_strand_rule &r, int total, int64_t units)
{
    int n = 1;
    while (n < TTI_STRANDS && 2 * n * total <= TT_MAX_LANES && 2 * n <= units &&
           units * r.terms / (2 * n) >= TTI_STRAND_TERMS && n * r.count < TTI_STRAND_NUMBERS &&
           (n * total < TTI_STRANDS || units > n * r.most))
        n *= 2;
    return n;
}

// All strands of a lane are equally long but the last, so that a batch of products does most.
// per: units of a row of the batch. Not to be copied: ln points into it.
static inline void tti_strands_cut(tti_strands *s, const tt_lanes *ln, int64_t per,
                                   const tti_strand_rule &r)
{
    int n = 0;
    s->bound[0] = ln->n > 0 ? ln->bound[0] * per : 0;
    for (int i = 0; i < ln->n; i++) {
        int64_t first = ln->bound[i] * per, units = ln->bound[i + 1] * per - first;
        int strands = tti_strands_of(r, ln->total, units);
        int64_t each = (units + strands - 1) / strands;
        for (int k = 1; k <= strands; k++) {
            s->merges[n] = (uint8_t)__builtin_ctz((unsigned)k);
            s->bound[++n] = first + tti_min64(k * each, units);
        }
        s->merges[n - 1] = (uint8_t)(s->merges[n - 1] + ln->merges[i]);
    }
    s->ln = *ln;
    s->ln.n = n;
    s->ln.bound = s->bound;
    s->ln.merges = s->merges;
}

#endif
