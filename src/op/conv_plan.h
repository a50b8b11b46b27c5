/*
 * conv_plan.h - how the CPU kernels of convolutions run: conv_plan.c, conv_cpu.c, conv_dw_cpu.c.
 *
 * Forward and dx are one computation: an output pixel gathers source pixels by taps. Forward: the
 * source is x and pixel (i, j) starts at (i sh - pt, j sw - pl), taps go up. dx: the source is dy;
 * the pixels of dx fall into sh x sw phases by (position + pad) mod stride; within a phase the
 * taps that hit are every sh-th and sw-th one, and taps go down by one source pixel each.
 */
#ifndef TUTTI_OP_CONV_PLAN_H
#define TUTTI_OP_CONV_PLAN_H

#include "op/conv.h"

// Channels per panel of packed weights, and pixels (dw: rows) per tile, of an instruction set.
static inline int tti_conv_panel(int isa)
{
    return isa == TT_ISA_AVX512 ? 32 : 16;
}
static inline int tti_conv_tile(int isa)
{
    return isa == TT_ISA_AVX512 ? 14 : isa == TT_ISA_AVX2 ? 6 : 4;
}

// What prepare leaves for the kernels of conv2d and conv2d_dx.
typedef struct tti_conv_tune {
    tti_conv_dims d;
    bool is_dx;
    bool direct;         // the weights lie as panels already: no packing
    bool streams;        // the output is written past the caches
    int64_t panels;      // of output channels
    int64_t groups;      // the panels are dealt to this many units
    int64_t bands;       // of output rows per image and phase
    int64_t band_rows;   // output rows in a band
    int64_t pitch;       // numbers from pixel to pixel of the source: its channels, or more when
                         // copied, so that a tile's pixels do not fall into one cache set
    int64_t total;       // above 0: a 1x1 convolution as rows of pixels, so many in all
    int64_t table_bytes; // taps, at the start of local; the copied band follows
} tti_conv_tune;

// One phase: its output pixels, its taps, the source position of tap 0 of its pixel (0, 0).
typedef struct tti_conv_phase {
    int64_t rows, cols;       // output pixels
    int64_t row0, col0;       // first output pixel
    int64_t out_sh, out_sw;   // output pixels apart
    int64_t tap_h, tap_w;     // first tap that hits
    int64_t step_h, step_w;   // taps apart
    int64_t n_h, n_w;         // taps
    int64_t src_sh, src_sw;   // source pixels from output pixel to output pixel
    int64_t src_row, src_col; // source position of pixel 0, tap 0
    int64_t dir;              // source pixels from tap to tap
    int64_t left, width;      // source columns used: from left (may be below 0), so many
} tti_conv_phase;

static inline tti_conv_phase tti_conv_phase_of(const tti_conv_dims *d, bool is_dx, int64_t index)
{
    tti_conv_phase p = {
        .rows = d->oh,
        .cols = d->ow,
        .out_sh = 1,
        .out_sw = 1,
        .step_h = 1,
        .step_w = 1,
        .n_h = d->kh,
        .n_w = d->kw,
        .src_sh = d->sh,
        .src_sw = d->sw,
        .src_row = -d->pt,
        .src_col = -d->pl,
        .dir = 1,
    };
    if (is_dx) {
        int64_t a = index / d->sw, b = index % d->sw;
        p.row0 = a, p.col0 = b;
        p.rows = d->h > a ? (d->h - a + d->sh - 1) / d->sh : 0;
        p.cols = d->w > b ? (d->w - b + d->sw - 1) / d->sw : 0;
        p.out_sh = p.step_h = d->sh, p.out_sw = p.step_w = d->sw;
        p.tap_h = (a + d->pt) % d->sh, p.tap_w = (b + d->pl) % d->sw;
        p.n_h = d->kh > p.tap_h ? (d->kh - p.tap_h + d->sh - 1) / d->sh : 0;
        p.n_w = d->kw > p.tap_w ? (d->kw - p.tap_w + d->sw - 1) / d->sw : 0;
        p.src_sh = p.src_sw = 1, p.dir = -1;
        p.src_row = (a + d->pt) / d->sh, p.src_col = (b + d->pl) / d->sw;
    }
    int64_t span = p.n_w > 0 ? p.n_w - 1 : 0;
    p.left = p.dir > 0 ? p.src_col : p.src_col - span;
    p.width = p.cols > 0 ? (p.cols - 1) * p.src_sw + span + 1 : 0;
    return p;
}

// Source rows that output rows [i, i + n) of a phase use: from *first (may be below 0), so many.
static inline int64_t tti_conv_band(const tti_conv_phase *p, int64_t i, int64_t n, int64_t *first)
{
    int64_t span = p->n_h > 0 ? p->n_h - 1 : 0;
    *first = i * p->src_sh + p->src_row - (p->dir > 0 ? 0 : span);
    return (n - 1) * p->src_sh + span + 1;
}

// What prepare leaves for the kernels of conv2d_dw.
typedef struct tti_conv_dw_tune {
    tti_conv_dims d;
    bool mixes;            // few channels: a tile mixes taps, and x is copied with its padding
    bool by_lane;          // a partial per lane in memory; else a stack per unit
    int64_t lanes;         // partials
    int64_t panels;        // of output channels
    int64_t k;             // rows of dw as a matrix: kh kw c_in
    int64_t tiles;         // of k, per panel
    int64_t groups;        // the tiles of all panels are dealt to this many units per lane
    int64_t block_rows;    // output rows whose dy is packed at once,
    int64_t block_images;  // or that many whole images
    int64_t partial_count; // numbers in one partial
    size_t dy_bytes;       // of the packed dy, at the start of local; copied x follows
} tti_conv_dw_tune;

#endif
