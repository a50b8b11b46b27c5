/*
 * conv_gather.cuh - conv2d and its gradient at x as one computation, as on the CPU (conv_plan.h):
 * an output pixel gathers source pixels tap by tap. The pixels of dx fall into phases by their
 * position modulo the stride; those of a phase have the same taps.
 */
#ifndef TUTTI_OP_CONV_GATHER_CUH
#define TUTTI_OP_CONV_GATHER_CUH

#include "op/gpu/act.cuh"
#include "op/gpu/conv.cuh"

#define TTI_CONV_PHASES 32768 // of a launch

struct tti_conv_gather {
    tti_conv_dims d;
    bool is_dx;
    int64_t c, n;             // channels of the source, of the output
    int64_t src_h, src_w;     // of the source
    int64_t out_h, out_w;     // of the output
    int64_t phase_h, phase_w; // phases: 1, or the strides as far as there are pixels
    int64_t phase;            // the launch's first
    const void *src, *w, *bias;
    void *y, *z; // z: NULL: none
    int act;
    bool is_plain; // conv_tf32.cu: f32, relu at most, four channels at a time
};

// One axis of a phase: its pixels and the taps that hit them.
struct tti_conv_axis {
    int64_t n, step;       // pixels of the output, so far apart
    int64_t tap, taps;     // the first that hits, how many (step apart)
    int64_t src, src_step; // source position of pixel 0, tap 0; from pixel to pixel
};
__device__ static inline tti_conv_axis tti_conv_axis_of(bool is_dx, int64_t phase, int64_t out,
                                                        int64_t k, int64_t stride, int64_t pad)
{
    tti_conv_axis p = {out, 1, 0, k, -pad, stride};
    if (!is_dx)
        return p;
    p.n = (out - phase + stride - 1) / stride;
    p.step = stride;
    p.tap = (phase + pad) % stride;
    p.taps = k > p.tap ? (k - p.tap + stride - 1) / stride : 0;
    p.src = (phase + pad) / stride;
    p.src_step = 1;
    return p;
}

// What a phase's largest part of an image is; blocks are made for it.
static inline int64_t tti_conv_phase_pixels(const tti_conv_gather *q)
{
    return (q->out_h + q->phase_h - 1) / q->phase_h * ((q->out_w + q->phase_w - 1) / q->phase_w);
}

#endif
