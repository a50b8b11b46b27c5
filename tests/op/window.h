/*
 * window.h - the numbers of a case of a window over images: convolutions and pooling.
 */
#ifndef TUTTI_TEST_WINDOW_H
#define TUTTI_TEST_WINDOW_H

#include "op_test.h"
#include <math.h>

// Places in op_case.p. PAD is four digits: top, bottom, left, right.
enum {
    H,
    W,
    C,
    KH,
    KW,
    N, // output channels; depthwise: filters a channel
    SH,
    SW,
    RULE,
    PAD,
    BIAS,
    ACT,
};

// A case with its defaults filled in.
typedef struct window {
    int64_t batch, h, w, c, kh, kw, n, sh, sw, pad[4], oh, ow;
} window;

static inline void window_digits(int64_t digits, int pad[4])
{
    for (int i = 3; i >= 0; i--, digits /= 10)
        pad[i] = (int)(digits % 10);
}

// Batch of x: open, or 2 entries when the case has no rows.
static inline int64_t window_batch(const op_case *c)
{
    return c->rows > 0 ? TT_BATCH : 2;
}

static inline window window_of(const op_test *t)
{
    const op_case *c = op_case_of(t);
    const int64_t *p = c->p;
    window v = {
        .batch = c->rows > 0 ? c->rows : 2,
        .h = p[H],
        .w = p[W],
        .c = p[C],
        .kh = p[KH],
        .kw = p[KW],
        .n = p[N],
        .sh = p[SH] > 0 ? p[SH] : 1,
        .sw = p[SW] > 0 ? p[SW] : 1,
    };
    int pad[4];
    window_digits(p[PAD], pad);
    for (int i = 0; i < 2; i++) {
        int64_t n = i == 0 ? v.h : v.w, k = i == 0 ? v.kh : v.kw, s = i == 0 ? v.sh : v.sw, out;
        if (p[RULE] == TT_SAME) {
            out = (n + s - 1) / s;
            int64_t all = (out - 1) * s + k - n;
            v.pad[2 * i] = all > 0 ? all / 2 : 0;
        } else {
            v.pad[2 * i] = pad[2 * i];
            out = (n + pad[2 * i] + pad[2 * i + 1] - k) / s + 1;
        }
        if (i == 0)
            v.oh = out;
        else
            v.ow = out;
    }
    return v;
}

// Entry (r, q) of the image under tap (u, v) of output (i, j); false: padding.
static inline bool window_tap(const window *z, int64_t i, int64_t j, int64_t u, int64_t v,
                              int64_t *r, int64_t *q)
{
    *r = i * z->sh - z->pad[0] + u;
    *q = j * z->sw - z->pad[2] + v;
    return *r >= 0 && *r < z->h && *q >= 0 && *q < z->w;
}

#endif
