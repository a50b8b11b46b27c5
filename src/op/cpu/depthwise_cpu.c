/*
 * depthwise_cpu.c - depthwise convolution. Vectors run along channels; a row of output pixels is
 * computed at a time, several pixels (or vectors) at once so that the chains overlap. Where a
 * channel has several filters, x (or dy and w) is first laid out so that vectors are again side by
 * side.
 */
#include "op/cpu/act.h"
#include "op/cpu/lanes.h"
#include "op/cpu/upto.h"
#include "op/depthwise.h"

#define PIXELS 4 // chains in flight

// Taps [*lo, *hi) of k that fall inside 0..n when the window begins at first.
static void clip_taps(int64_t first, int64_t k, int64_t n, int64_t *lo, int64_t *hi)
{
    *lo = TTI_MAX(0, -first);
    *hi = TTI_MAX(*lo, TTI_MIN(k, n - first));
}

// m pixels, one vector of n channels; src is where kernel row u0's tap v0 of the first pixel lies.
static inline __attribute__((always_inline)) void
pixels(const int m, const tti_conv_dims *d, const real *src, int64_t row, const real *w, int64_t u0,
       int64_t u1, int64_t v0, int64_t v1, const real *bias, real *y, int n)
{
    const int64_t c = d->c_out;
    v16 acc[PIXELS];
#pragma GCC unroll 4
    for (int p = 0; p < m; p++)
        acc[p] = v16_zero();
    for (int64_t u = u0; u < u1; u++)
        for (int64_t v = v0; v < v1; v++) {
            v16 wv = v16_load_upto(w + (u * d->kw + v) * c, n);
            const real *x = src + (u - u0) * row + (v - v0) * c;
#pragma GCC unroll 4
            for (int p = 0; p < m; p++)
                acc[p] = v16_fma(v16_load_upto(x + p * d->sw * c, n), wv, acc[p]);
        }
    v16 b = bias != NULL ? v16_load_upto(bias, n) : v16_zero();
#pragma GCC unroll 4
    for (int p = 0; p < m; p++)
        v16_store_upto(y + p * c, v16_add(v16_end(acc[p]), b), n);
}

// Row i of the output of an image; x has c_out channels and begins at row u0 of the window.
static void forward_row(const tti_conv_dims *d, const real *x, const real *w, const real *bias,
                        int64_t u0, int64_t u1, real *y)
{
    const int64_t c = d->c_out, row = d->w * c;
    int64_t from = TTI_MIN(d->ow, (d->pl + d->sw - 1) / d->sw); // pixels with all taps inside
    int64_t room = d->w + d->pl - d->kw;
    int64_t to = room < 0 ? 0 : TTI_MIN(d->ow, room / d->sw + 1);
    for (int64_t j = 0; j < d->ow;) {
        int64_t v0, v1, first = j * d->sw - d->pl;
        clip_taps(first, d->kw, d->w, &v0, &v1);
        bool many = j >= from && j + PIXELS <= to;
        const real *src = x + (first + v0) * c;
        for (int64_t k = 0; k < c; k += 16) {
            int n = (int)TTI_MIN(c - k, 16);
            const real *b = bias != NULL ? bias + k : NULL;
            if (many)
                pixels(PIXELS, d, src + k, row, w + k, u0, u1, v0, v1, b, y + j * c + k, n);
            else
                pixels(1, d, src + k, row, w + k, u0, u1, v0, v1, b, y + j * c + k, n);
        }
        j += many ? PIXELS : 1;
    }
}

// Each number m times.
static void spread(const real *x, int64_t n, int64_t m, real *out)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++)
            *out++ = x[i];
}

tt_status TTI_ISA(tti_depthwise)(const tt_launch *l)
{
    const tti_depthwise_tune *t = l->tune;
    const tti_conv_dims *d = &t->d;
    const int act = ((const tti_conv_attr *)l->attr)->act;
    const real *bias = l->n_in > 2 ? l->in[2].data : NULL;
    for (int64_t unit = l->begin; unit < l->end; unit++) {
        int64_t image = unit / d->oh, i = unit % d->oh, first = i * d->sh - d->pt, u0, u1;
        clip_taps(first, d->kh, d->h, &u0, &u1);
        const real *x = l->in[0].data;
        x += (image * d->h + first + u0) * d->w * d->c_in;
        if (t->mult > 1) {
            spread(x, (u1 - u0) * d->w * d->c_in, t->mult, (real *)l->local);
            x = (const real *)l->local;
        }
        int64_t count = d->ow * d->c_out;
        real *y = (real *)l->out[0].data + unit * count;
        forward_row(d, x, l->in[1].data, bias, u0, u1, y);
        if (l->n_out > 1)
            memcpy((real *)l->out[1].data + unit * count, y, (size_t)count * sizeof(real));
        v16_act_all(act, y, y, count);
    }
    return TT_OK;
}

// ---- dx --------------------------------------------------------------------------------------

// [n, c, m] to [n, m, c]
static void turn(const real *x, int64_t n, int64_t c, int64_t m, real *out)
{
    for (int64_t i = 0; i < n; i++, x += c * m)
        for (int64_t j = 0; j < m; j++)
            for (int64_t k = 0; k < c; k++)
                *out++ = x[k * m + j];
}

/*
 * One pixel, one vector of n channels. dy begins at its row for tap u0 and goes down a row for
 * each following one that hits; both dy and w have m filters in front of the channels.
 */
static void gather(const tti_conv_dims *d, int64_t m, const real *dy, const real *w, int64_t u0,
                   int64_t n_u, int64_t q, real *dx, int n)
{
    const int64_t c = d->c_in;
    v16 acc = v16_zero();
    for (int64_t a = 0; a < n_u; a++)
        for (int64_t v = q % d->sw; v < d->kw && v <= q; v += d->sw) {
            int64_t j = (q - v) / d->sw;
            if (j >= d->ow)
                continue;
            const real *g = dy + (j - a * d->ow) * m * c;
            const real *f = w + ((u0 + a * d->sh) * d->kw + v) * m * c;
            for (int64_t k = 0; k < m; k++)
                acc = v16_fma(v16_load_upto(g + k * c, n), v16_load_upto(f + k * c, n), acc);
        }
    v16_store_upto(dx, v16_end(acc), n);
}

tt_status TTI_ISA(tti_depthwise_dx)(const tt_launch *l)
{
    const tti_depthwise_tune *t = l->tune;
    const tti_conv_dims *d = &t->d;
    const int64_t c = d->c_in, m = t->mult, row = d->ow * d->c_out;
    const real *w = l->in[1].data;
    if (m > 1 && l->phase == 0) {
        turn(w + l->begin * d->c_out, l->end - l->begin, c, m,
             (real *)l->scratch + l->begin * d->c_out);
        return TT_OK;
    }
    if (m > 1)
        w = (const real *)l->scratch;
    for (int64_t unit = l->begin; unit < l->end; unit++) {
        int64_t image = unit / d->h, p = unit % d->h + d->pt; // p - u must be a row of dy times sh
        int64_t u0 = p % d->sh;
        if (p - u0 > (d->oh - 1) * d->sh) // first tap whose row exists
            u0 = p - (d->oh - 1) * d->sh;
        int64_t top = (p - u0) / d->sh, last = TTI_MIN(d->kh - 1, p);
        int64_t n_u = u0 <= last ? TTI_MIN((last - u0) / d->sh, top) + 1 : 0;
        const real *dy = (const real *)l->in[0].data + image * d->oh * row;
        if (m > 1 && n_u > 0) { // rows top - n_u + 1 .. top
            turn(dy + (top - n_u + 1) * row, n_u * d->ow, c, m, (real *)l->local);
            dy = (const real *)l->local + (n_u - 1) * row;
        } else if (n_u > 0) {
            dy += top * row;
        }
        real *dx = (real *)l->out[0].data + unit * d->w * c;
        for (int64_t q = 0; q < d->w; q++)
            for (int64_t k = 0; k < c; k += 16)
                gather(d, m, dy + k, w + k, u0, n_u, q + d->pl, dx + q * c + k,
                       (int)TTI_MIN(c - k, 16));
    }
    return TT_OK;
}

// ---- dw --------------------------------------------------------------------------------------

// nv vectors along a row of n pixels; the last vector has only tail channels.
static inline __attribute__((always_inline)) void row_sum(const int nv, const real *x,
                                                          int64_t x_step, const real *dy,
                                                          int64_t dy_step, int64_t n, int tail,
                                                          real *sum)
{
    v16 acc[4];
#pragma GCC unroll 4
    for (int j = 0; j < nv; j++)
        acc[j] = v16_load_upto(sum + 16 * j, j == nv - 1 ? tail : 16);
    for (; n > 0; n--, x += x_step, dy += dy_step)
#pragma GCC unroll 4
        for (int j = 0; j < nv; j++) {
            int k = j == nv - 1 ? tail : 16;
            acc[j] = v16_fma(v16_load_upto(x + 16 * j, k), v16_load_upto(dy + 16 * j, k), acc[j]);
        }
#pragma GCC unroll 4
    for (int j = 0; j < nv; j++)
        v16_store_upto(sum + 16 * j, acc[j], j == nv - 1 ? tail : 16);
}

// Adds output row i of an image to the sums [taps, c_out] of channels [c0, c0 + n).
static void add_row(const tt_launch *l, const tti_depthwise_tune *t, int64_t image, int64_t i,
                    int64_t c0, int64_t n, real *sums)
{
    const tti_conv_dims *d = &t->d;
    const real *dy = (const real *)l->in[1].data + (image * d->oh + i) * d->ow * d->c_out + c0;
    int nv = (int)((n + 15) / 16), tail = (int)(n - 16 * (nv - 1));
    int64_t u0, u1, first = i * d->sh - d->pt;
    clip_taps(first, d->kh, d->h, &u0, &u1);
    for (int64_t u = u0; u < u1; u++) {
        const real *x = (const real *)l->in[0].data + (image * d->h + first + u) * d->w * d->c_in;
        int64_t step = d->c_in;
        if (t->mult > 1) {
            real *wide = (real *)l->local;
            for (int64_t q = 0; q < d->w; q++)
                for (int64_t k = 0; k < n; k++)
                    wide[q * n + k] = x[q * d->c_in + (c0 + k) / t->mult];
            x = wide;
            step = n;
        } else {
            x += c0;
        }
        for (int64_t v = 0; v < d->kw; v++) {
            int64_t lo = d->pl > v ? (d->pl - v + d->sw - 1) / d->sw : 0;
            int64_t last = d->w - 1 + d->pl - v;
            int64_t hi = last < 0 ? 0 : TTI_MIN(d->ow, last / d->sw + 1);
            if (lo >= hi)
                continue;
            const real *xs = x + (lo * d->sw - d->pl + v) * step, *g = dy + lo * d->c_out;
            real *sum = sums + (u * d->kw + v) * d->c_out + c0;
            int64_t xn = d->sw * step;
            if (nv == 4)
                row_sum(4, xs, xn, g, d->c_out, hi - lo, tail, sum);
            else if (nv == 3)
                row_sum(3, xs, xn, g, d->c_out, hi - lo, tail, sum);
            else if (nv == 2)
                row_sum(2, xs, xn, g, d->c_out, hi - lo, tail, sum);
            else
                row_sum(1, xs, xn, g, d->c_out, hi - lo, tail, sum);
        }
    }
}

tt_status TTI_ISA(tti_depthwise_dw)(const tt_launch *l)
{
    const tti_depthwise_tune *t = l->tune;
    const tti_conv_dims *d = &t->d;
    const int64_t count = d->kh * d->kw * d->c_out;
    const bool is_open = l->in[0].open >= 0;
    if (l->phase == 1) {
        static const uint8_t no_merges[1];
        const tt_lanes whole = {.n = 1, .n_parts = 1, .merges = no_merges};
        tti_lane_tree(is_open ? l->lanes : &whole, (const real *)l->scratch, count, l->out[0].data,
                      count, 16 * l->begin, TTI_MIN(16 * l->end, count));
        return TT_OK;
    }
    for (int64_t unit = l->begin; unit < l->end; unit++) {
        int64_t lane = unit / t->blocks, c0 = unit % t->blocks * TTI_DEPTHWISE_BLOCK;
        int64_t n = TTI_MIN(d->c_out - c0, TTI_DEPTHWISE_BLOCK);
        int64_t from = 0, to = d->batch;
        if (is_open) {
            from = l->lanes->bound[lane] * l->in[0].per;
            to = l->lanes->bound[lane + 1] * l->in[0].per;
        }
        real *sums = (real *)l->scratch + lane * count;
        for (int64_t k = 0; k < d->kh * d->kw; k++)
            memset(sums + k * d->c_out + c0, 0, (size_t)n * sizeof(real));
        for (int64_t image = from; image < to; image++)
            for (int64_t i = 0; i < d->oh; i++)
                add_row(l, t, image, i, c0, n, sums);
    }
    return TT_OK;
}
