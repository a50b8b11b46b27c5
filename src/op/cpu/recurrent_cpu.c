/*
 * recurrent_cpu.c - recurrent and its gradient. Compiled once per instruction set; see recurrent.c.
 *
 * Up to MR rows of the batch go through all steps together: the product of their states with w, one
 * chain of fused multiply-adds over k for each element, then the gates. w is packed before into
 * panels of 32 columns, so that it is read in order at every step.
 */
#include "op/cpu/act.h"
#include "op/cpu/conv_tile.h"
#include "op/recurrent.h"
#include <string.h>

#define PANEL 32

// ---- products --------------------------------------------------------------------------------

// y[p][0..16 nv) = sum over k of x[p][k] w[k][..]; m and nv are constants where this is inlined.
ALWAYS_INLINE void tile(const int m, const int nv, const real *x, int64_t x_pitch, const real *w,
                        int64_t depth, real *y, int64_t y_pitch, int n)
{
    v16 acc[MR][NV];
#pragma GCC unroll 14
    for (int p = 0; p < m; p++)
#pragma GCC unroll 2
        for (int j = 0; j < nv; j++)
            acc[p][j] = v16_zero();
    for (int64_t k = 0; k < depth; k++, w += PANEL) {
        v16 wv[NV];
#pragma GCC unroll 2
        for (int j = 0; j < nv; j++)
            wv[j] = v16_load(w + 16 * j);
#pragma GCC unroll 14
        for (int p = 0; p < m; p++) {
            v16 b = v16_set1(x[p * x_pitch + k]);
#pragma GCC unroll 2
            for (int j = 0; j < nv; j++)
                acc[p][j] = v16_fma(b, wv[j], acc[p][j]);
        }
    }
#pragma GCC unroll 2
    for (int j = 0; j < nv; j++) {
        int some = n - 16 * j < 16 ? n - 16 * j : 16;
        for (int p = 0; p < m && some > 0; p++)
            v16_store_n(y + p * y_pitch + 16 * j, v16_end(acc[p][j]), some);
    }
}

typedef void (*tile_fn)(const real *x, int64_t x_pitch, const real *w, int64_t depth, real *y,
                        int64_t y_pitch, int n);
#define TILE(m, nv)                                                                              \
    static __attribute__((noinline)) void tile_##m##_##nv(const real *x, int64_t x_pitch,        \
                                                          const real *w, int64_t depth, real *y, \
                                                          int64_t y_pitch, int n)                \
    {                                                                                            \
        tile(m, nv, x, x_pitch, w, depth, y, y_pitch, n);                                        \
    }
EACH_TILE(TILE)
#define NAME(m, nv) tile_##m##_##nv,
static const tile_fn tiles[NV][MR] = TILE_TABLE(NAME);

// y [m, columns] = x [m, depth] times the packed matrix.
static void product(int m, const real *x, int64_t x_pitch, const real *packed, int64_t depth,
                    int64_t columns, real *y, int64_t y_pitch)
{
    for (int64_t c = 0; c < columns; c += 16 * NV) {
        const real *w = packed + c / PANEL * PANEL * depth + c % PANEL;
        int n = (int)(columns - c < 16 * NV ? columns - c : 16 * NV);
        tiles[NV - 1][m - 1](x, x_pitch, w, depth, y + c, y_pitch, n);
    }
}

// Panel u of w [rows, columns], or of its transpose: [depth][PANEL], zeros beyond.
static void pack(const real *w, int64_t rows, int64_t columns, bool turned, int64_t u, real *out)
{
    int64_t depth = turned ? columns : rows, n = turned ? rows : columns;
    out += u * PANEL * depth;
    for (int64_t k = 0; k < depth; k++)
        for (int64_t j = 0; j < PANEL; j++) {
            int64_t c = u * PANEL + j;
            out[k * PANEL + j] = c >= n ? 0 : turned ? w[c * columns + k] : w[k * columns + c];
        }
}

// ---- forward ---------------------------------------------------------------------------------

#define EACH_UNIT(i, n)                         \
    for (int64_t i = 0, n = 16; i < h; i += 16) \
        if ((n = h - i < 16 ? h - i : 16) > 0)
#define GET(p)    v16_load_n((p) + i, (int)n)
#define PUT(p, v) v16_store_n((p) + i, (v), (int)n)

// One row of one step: z and q its gates, before the state (NULL: zeros), kept of this step.
static void step(int kind, int64_t h, const real *z, const real *q, const real *before,
                 const real *kept_before, real *y, real *kept)
{
    EACH_UNIT(i, n)
    {
        if (kind == TT_RNN) {
            PUT(y, v16_tanh(v16_add(GET(z), GET(q))));
        } else if (kind == TT_GRU) {
            v16 r = v16_sigmoid(v16_add(GET(z), GET(q)));
            v16 u = v16_sigmoid(v16_add(GET(z + h), GET(q + h)));
            v16 hn = GET(q + 2 * h), c = v16_tanh(v16_fma(r, hn, GET(z + 2 * h)));
            v16 old = before == NULL ? v16_zero() : GET(before);
            PUT(y, v16_fma(u, v16_sub(old, c), c));
            PUT(kept, r);
            PUT(kept + h, u);
            PUT(kept + 2 * h, c);
            PUT(kept + 3 * h, hn);
        } else {
            v16 in = v16_sigmoid(v16_add(GET(z), GET(q)));
            v16 f = v16_sigmoid(v16_add(GET(z + h), GET(q + h)));
            v16 g = v16_tanh(v16_add(GET(z + 2 * h), GET(q + 2 * h)));
            v16 o = v16_sigmoid(v16_add(GET(z + 3 * h), GET(q + 3 * h)));
            v16 old = kept_before == NULL ? v16_zero() : GET(kept_before + 4 * h);
            v16 c = v16_fma(f, old, v16_mul(in, g));
            PUT(y, v16_mul(o, v16_tanh(c)));
            PUT(kept, in);
            PUT(kept + h, f);
            PUT(kept + 2 * h, g);
            PUT(kept + 3 * h, o);
            PUT(kept + 4 * h, c);
        }
    }
}

static void forward(const tt_launch *l, const tti_recurrent_attr *a, const tti_recurrent_dims *d,
                    int64_t row, int m)
{
    const int64_t h = d->h, wide = d->gates * h, t = d->t;
    const real *z = (const real *)l->in[0].data + row * t * wide;
    const real *bias = l->n_in > 2 ? l->in[2].data : NULL;
    real *y = (real *)l->out[0].data + row * t * h, *q = (real *)l->local;
    real *kept = l->n_out > 1 ? (real *)l->out[1].data + row * t * d->kept * h : NULL;
    for (int64_t s = 0; s < t; s++) {
        int64_t at = a->reverse ? t - 1 - s : s, was = a->reverse ? at + 1 : at - 1;
        if (s == 0)
            memset(q, 0, (size_t)(m * wide) * sizeof(real));
        else
            product(m, y + was * h, t * h, (const real *)l->scratch, h, wide, q, wide);
        for (int p = 0; p < m; p++) {
            for (int64_t i = 0; bias != NULL && i < wide; i += 16) {
                int n = (int)(wide - i < 16 ? wide - i : 16);
                v16_store_n(q + p * wide + i,
                            v16_add(v16_load_n(q + p * wide + i, n), v16_load_n(bias + i, n)), n);
            }
            real *row_kept = kept == NULL ? NULL : kept + p * t * d->kept * h;
            step(a->kind, h, z + (p * t + at) * wide, q + p * wide,
                 s == 0 ? NULL : y + (p * t + was) * h,
                 s == 0 || kept == NULL ? NULL : row_kept + was * d->kept * h, y + (p * t + at) * h,
                 kept == NULL ? NULL : row_kept + at * d->kept * h);
        }
    }
}

tt_status TTI_ISA(tti_recurrent)(const tt_launch *l)
{
    const tti_recurrent_attr *a = l->attr;
    tti_recurrent_dims d = tti_recurrent_dims_of(a->kind, &l->out[0].shape);
    if (l->phase == 0) {
        for (int64_t u = l->begin; u < l->end; u++)
            pack(l->in[1].data, d.h, d.gates * d.h, false, u, (real *)l->scratch);
        return TT_OK;
    }
    for (int64_t row = l->begin; row < l->end; row += MR)
        forward(l, a, &d, row, (int)(l->end - row < MR ? l->end - row : MR));
    return TT_OK;
}

// ---- backward --------------------------------------------------------------------------------

typedef struct back {
    const real *y, *before, *kept, *kept_before; // before: NULL at the first step
    real *dh, *dc;                               // what comes from the step after; dc is changed
    real *dz, *dq;
} back;

static inline v16 slope_s(v16 y) // of a sigmoid
{
    return v16_mul(y, v16_sub(v16_set1(1), y));
}
static inline v16 slope_t(v16 y) // of a tanh
{
    return v16_fma(v16_neg(y), y, v16_set1(1));
}

// dh: all that y of this step gets. Leaves in dh what the state before gets by other ways than q.
static void step_back(int kind, int64_t h, const back *b)
{
    EACH_UNIT(i, n)
    {
        v16 d = GET(b->dh);
        if (kind == TT_RNN) {
            PUT(b->dz, v16_mul(d, slope_t(GET(b->y))));
            PUT(b->dh, v16_zero());
        } else if (kind == TT_GRU) {
            v16 r = GET(b->kept), u = GET(b->kept + h), c = GET(b->kept + 2 * h);
            v16 hn = GET(b->kept + 3 * h), old = b->before == NULL ? v16_zero() : GET(b->before);
            v16 dn = v16_mul(v16_mul(d, v16_sub(v16_set1(1), u)), slope_t(c));
            v16 dr = v16_mul(v16_mul(dn, hn), slope_s(r));
            v16 du = v16_mul(v16_mul(d, v16_sub(old, c)), slope_s(u));
            PUT(b->dz, dr);
            PUT(b->dz + h, du);
            PUT(b->dz + 2 * h, dn);
            PUT(b->dq, dr);
            PUT(b->dq + h, du);
            PUT(b->dq + 2 * h, v16_mul(dn, r));
            PUT(b->dh, v16_mul(d, u));
        } else {
            v16 in = GET(b->kept), f = GET(b->kept + h), g = GET(b->kept + 2 * h);
            v16 o = GET(b->kept + 3 * h), c = v16_tanh(GET(b->kept + 4 * h));
            v16 old = b->kept_before == NULL ? v16_zero() : GET(b->kept_before + 4 * h);
            v16 dc = v16_fma(v16_mul(d, o), slope_t(c), GET(b->dc));
            PUT(b->dz, v16_mul(v16_mul(dc, g), slope_s(in)));
            PUT(b->dz + h, v16_mul(v16_mul(dc, old), slope_s(f)));
            PUT(b->dz + 2 * h, v16_mul(v16_mul(dc, in), slope_t(g)));
            PUT(b->dz + 3 * h, v16_mul(v16_mul(d, c), slope_s(o)));
            PUT(b->dc, v16_mul(dc, f));
            PUT(b->dh, v16_zero());
        }
    }
}

static void add_to(real *y, const real *x, int64_t h)
{
    EACH_UNIT(i, n)
    {
        PUT(y, v16_add(GET(y), GET(x)));
    }
}

static void backward(const tt_launch *l, const tti_recurrent_attr *a, const tti_recurrent_dims *d,
                     int64_t row, int m)
{
    const int64_t h = d->h, wide = d->gates * h, t = d->t;
    const real *dy = (const real *)l->in[0].data + row * t * h;
    const real *y = (const real *)l->in[1].data + row * t * h;
    const real *kept = l->n_in > 3 ? (const real *)l->in[3].data + row * t * d->kept * h : NULL;
    real *dz = (real *)l->out[0].data + row * t * wide;
    real *dq = (real *)l->out[l->n_out - 1].data + row * t * wide;
    real *dh = (real *)l->local, *dc = dh + m * h, *more = dc + m * h;
    memset(dh, 0, (size_t)(2 * m * h) * sizeof(real));
    for (int64_t s = t - 1; s >= 0; s--) { // the order in which the forward went, backwards
        int64_t at = a->reverse ? t - 1 - s : s, was = a->reverse ? at + 1 : at - 1;
        for (int p = 0; p < m; p++) {
            int64_t here = p * t + at, past = p * t + was;
            add_to(dh + p * h, dy + here * h, h);
            back b = {.y = y + here * h,
                      .before = s == 0 ? NULL : y + past * h,
                      .kept = kept == NULL ? NULL : kept + here * d->kept * h,
                      .kept_before = kept == NULL || s == 0 ? NULL : kept + past * d->kept * h,
                      .dh = dh + p * h,
                      .dc = dc + p * h,
                      .dz = dz + here * wide,
                      .dq = dq + here * wide};
            step_back(a->kind, h, &b);
        }
        if (s == 0)
            break;
        product(m, dq + at * wide, t * wide, (const real *)l->scratch, wide, h, more, h);
        for (int p = 0; p < m; p++)
            add_to(dh + p * h, more + p * h, h);
    }
}

tt_status TTI_ISA(tti_recurrent_grad)(const tt_launch *l)
{
    const tti_recurrent_attr *a = l->attr;
    tti_recurrent_dims d = tti_recurrent_dims_of(a->kind, &l->in[1].shape);
    if (l->phase == 0) {
        for (int64_t u = l->begin; u < l->end; u++)
            pack(l->in[2].data, d.h, d.gates * d.h, true, u, (real *)l->scratch);
        return TT_OK;
    }
    for (int64_t row = l->begin; row < l->end; row += MR)
        backward(l, a, &d, row, (int)(l->end - row < MR ? l->end - row : MR));
    return TT_OK;
}
