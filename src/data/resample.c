/*
 * resample.c - resizing of images (decode.h). Each output pixel is a weighted mean of the pixels
 * below a triangle that is as wide as the reduction needs; first along rows, then along columns,
 * rounded to bytes after each. The weights of an axis are the same for all its lines.
 */
#include "data/decode.h"
#include <string.h>

#define BITS 22 // of a weight after the point: 255 times a sum of weights of 1 fits 32 bits

// The weights of one axis: output i takes count[i] inputs from first[i] on.
typedef struct axis {
    int64_t n, most; // outputs; weights of one
    int32_t *first, *count, *weights;
} axis;

static double triangle(double x)
{
    x = x < 0 ? -x : x;
    return x < 1 ? 1 - x : 0;
}

static int64_t ceiling(double x)
{
    int64_t n = (int64_t)x;
    return (double)n < x ? n + 1 : n;
}

static int64_t most_weights(float from, float to, int64_t n)
{
    double scale = (double)(to - from) / (double)n;
    return ceiling(scale < 1 ? 1 : scale) * 2 + 1;
}

static size_t axis_bytes(int64_t n, int64_t most)
{
    return (size_t)n * (size_t)(most + 2) * sizeof(int32_t) + (size_t)most * sizeof(double);
}

// Weights for n outputs of [from, to) of size inputs.
static void axis_make(axis *a, int64_t size, float from, float to, double *w)
{
    double scale = (double)(to - from) / (double)a->n, wide = scale < 1 ? 1 : scale;
    for (int64_t i = 0; i < a->n; i++) {
        double centre = (double)from + ((double)i + 0.5) * scale, sum = 0;
        int64_t begin = (int64_t)(centre - wide + 0.5), end = (int64_t)(centre + wide + 0.5);
        begin = TTI_MAX(begin, 0);
        end = TTI_MIN(end, size);
        int64_t count = TTI_MIN(TTI_MAX(end - begin, 0), a->most);
        double step = 1.0 / wide;
        for (int64_t k = 0; k < count; k++) {
            w[k] = triangle(((double)(k + begin) - centre + 0.5) * step);
            sum += w[k];
        }
        for (int64_t k = 0; k < count; k++) {
            double v = sum != 0 ? w[k] / sum : w[k];
            a->weights[i * a->most + k] = (int32_t)(0.5 + v * (double)(1 << BITS));
        }
        a->first[i] = (int32_t)begin;
        a->count[i] = (int32_t)count;
    }
}

static unsigned char clip(int32_t v)
{
    v >>= BITS;
    return (unsigned char)(v < 0 ? 0 : v > 255 ? 255 : v);
}

// One row of three channels.
static void row_rgb(const axis *a, const unsigned char *x, unsigned char *y)
{
    for (int64_t i = 0; i < a->n; i++) {
        const unsigned char *from = x + (int64_t)a->first[i] * 3;
        const int32_t *w = a->weights + i * a->most;
        int32_t s0 = 1 << (BITS - 1), s1 = s0, s2 = s0;
        for (int32_t k = 0; k < a->count[i]; k++) {
            s0 += from[3 * k] * w[k];
            s1 += from[3 * k + 1] * w[k];
            s2 += from[3 * k + 2] * w[k];
        }
        y[3 * i] = clip(s0);
        y[3 * i + 1] = clip(s1);
        y[3 * i + 2] = clip(s2);
    }
}

static void row_any(const axis *a, const unsigned char *x, int channels, unsigned char *y)
{
    for (int64_t i = 0; i < a->n; i++)
        for (int c = 0; c < channels; c++) {
            int32_t s = 1 << (BITS - 1);
            for (int32_t k = 0; k < a->count[i]; k++)
                s += x[(a->first[i] + k) * channels + c] * a->weights[i * a->most + k];
            y[i * channels + c] = clip(s);
        }
}

// Row i of the output, of n bytes, from rows of x.
static void column(const axis *a, int64_t i, const unsigned char *x, size_t n, int32_t *sum,
                   unsigned char *y)
{
    for (size_t k = 0; k < n; k++)
        sum[k] = 1 << (BITS - 1);
    for (int32_t r = 0; r < a->count[i]; r++) {
        const unsigned char *row = x + (size_t)r * n;
        int32_t w = a->weights[i * a->most + r];
        for (size_t k = 0; k < n; k++)
            sum[k] += row[k] * w;
    }
    for (size_t k = 0; k < n; k++)
        y[k] = clip(sum[k]);
}

static int32_t *axis_place(axis *a, int32_t *at)
{
    a->first = at;
    a->count = at + a->n;
    a->weights = at + 2 * a->n;
    return at + a->n * (a->most + 2);
}

tt_status tti_resize(tt_ctx *ctx, const tti_pixels *x, const tti_box *box, tti_decode_room *r,
                     tti_pixels *y)
{
    axis across = {.n = y->wide, .most = most_weights(box->left, box->right, y->wide)};
    axis down = {.n = y->high, .most = most_weights(box->top, box->bottom, y->high)};
    size_t stride = (size_t)y->wide * (size_t)y->channels;
    size_t bytes = axis_bytes(across.n, across.most) + axis_bytes(down.n, down.most);
    double *w = (double *)(void *)tti_room_get(ctx, r, 2, bytes + stride * sizeof(int32_t));
    if (w == NULL)
        return TT_ENOMEM;
    int32_t *at = (int32_t *)(w + TTI_MAX(across.most, down.most));
    int32_t *sum = axis_place(&down, axis_place(&across, at));
    axis_make(&across, x->wide, box->left, box->right, w);
    axis_make(&down, x->high, box->top, box->bottom, w);

    // Only the rows that are used: from first on.
    int64_t first = down.first[0], end = down.first[down.n - 1] + down.count[down.n - 1];
    unsigned char *rows = tti_room_get(ctx, r, 3, (size_t)TTI_MAX(end - first, 1) * stride);
    if (rows == NULL)
        return TT_ENOMEM;
    for (int64_t i = first; i < end; i++) {
        const unsigned char *row = x->p + (size_t)(i * x->wide) * (size_t)x->channels;
        unsigned char *to = rows + (size_t)(i - first) * stride;
        if (x->channels == 3)
            row_rgb(&across, row, to);
        else
            row_any(&across, row, x->channels, to);
    }
    for (int64_t i = 0; i < down.n; i++)
        column(&down, i, rows + (size_t)(down.first[i] - first) * stride, stride, sum,
               y->p + (size_t)i * stride);
    return TT_OK;
}

tti_box tti_box_fit(const tti_pixels *x, int64_t high, int64_t wide)
{
    double have = (double)x->wide / (double)x->high, want = (double)wide / (double)high;
    double w = (double)x->wide, h = (double)x->high;
    if (have > want)
        w = want * h;
    else if (have < want)
        h = w / want;
    double left = ((double)x->wide - w) * 0.5, top = ((double)x->high - h) * 0.5;
    return (tti_box){(float)left, (float)top, (float)(left + w), (float)(top + h)};
}

void tti_recolour(const tti_pixels *x, int channels, unsigned char *y)
{
    int64_t n = x->high * x->wide;
    if (x->channels == channels) {
        if (y != x->p)
            memcpy(y, x->p, (size_t)(n * channels));
    } else if (channels == 1) {
        for (int64_t i = 0; i < n; i++)
            y[i] = (unsigned char)((x->p[3 * i] * 19595u + x->p[3 * i + 1] * 38470u +
                                    x->p[3 * i + 2] * 7471u + 0x8000u) >>
                                   16);
    } else {
        for (int64_t i = n - 1; i >= 0; i--) // from the end: y may be x
            y[3 * i] = y[3 * i + 1] = y[3 * i + 2] = x->p[i];
    }
}
