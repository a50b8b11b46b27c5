/*
 * conv_cpu.c - conv2d and conv2d_dx: one kernel that gathers source pixels by taps (conv.h).
 *
 * A tile is up to MR output pixels of one row by NR output channels, held in registers; each
 * element is one chain of fused multiply-adds over taps and source channels ascending. Weights are
 * packed as panels [tap][source channel][NR]. Source pixels are read in place through their row;
 * where padding is needed, the rows of a band are first copied with zeros around them, which is
 * cheap beside the products and makes every tile the same. Taps of one kernel row lie side by side
 * in the source (forward), so they run as one longer chain.
 */
#include "op/conv_plan.h"
#include "op/cpu/act.h"
#include "op/cpu/conv_tile.h"

// What the tiles of one panel have in common.
typedef struct conv_run {
    const real *w;       // the panel
    const int64_t *taps; // triples: where the tap's source and its weights begin; EDGE_ bits
    int64_t n_taps;
    int64_t edges;  // of the row of output pixels that the tile has
    int64_t run;    // products per tap
    int64_t stride; // from pixel to pixel in the source
    int64_t out_stride;
    const real *bias; // of this panel; NULL: none
    int n;            // channels of the panel that exist
    bool relu;
    bool fetches;  // the output's lines first: the chain is long enough
    bool streams;  // full and aligned vectors of an output too large for any cache
    int64_t ahead; // bytes to fetch ahead of use after each product; 0: none
} conv_run;

// The first or last pixel of a row is in padding at this tap, and left out.
enum {
    EDGE_FIRST = 1,
    EDGE_LAST = 2,
};

// Past the caches, where the set has an instruction for it.
static inline void stream(real *p, v16 v)
{
#if defined(TTI_SET_AVX512)
    _mm512_stream_ps(p, v.v);
#else
    v16_store(p, v);
#endif
}

// How a tile ends: whole vectors without more ado, with relu, or whatever the run says.
enum {
    END_PLAIN,
    END_RELU,
    END_ANY,
};

// The sums, bias and relu, written out. how is a constant where this is inlined.
ALWAYS_INLINE void end(const int m, const int nv, const int how, const conv_run *r, v16 acc[MR][NV],
                       real *y)
{
#pragma GCC unroll 2
    for (int j = 0; j < nv; j++) {
        int n = r->n - 16 * j < 16 ? r->n - 16 * j : 16;
        v16 b = r->bias != NULL ? v16_load_n(r->bias + 16 * j, n) : v16_zero();
#pragma GCC unroll 14
        for (int p = 0; p < m; p++) {
            v16 v = v16_add(v16_end(acc[p][j]), b);
            if (how == END_RELU || (how == END_ANY && r->relu))
                v = v16_relu(v);
            real *to = y + p * r->out_stride + 16 * j;
            if (how != END_ANY)
                v16_store(to, v);
            else if (r->streams)
                stream(to, v);
            else
                v16_store_n(to, v, n);
        }
    }
}

/*
 * The products of one tap for pixels [p0, p1) by nv vectors, all constants where this is inlined.
 * Pixels are addressed from three pointers with the stride scaled, as fourteen pointers do not fit
 * the registers.
 */
ALWAYS_INLINE void products(const int p0, const int p1, const int nv, const conv_run *r,
                            const real *x, const real *w, const char **ahead, v16 acc[MR][NV])
{
    const int64_t s = r->stride * (int64_t)sizeof(real);
    const char *a0 = (const char *)x, *a1 = a0 + 5 * s, *a2 = a0 + 10 * s;
    for (int64_t k = r->run; k > 0; k--) {
        v16 wv[NV];
#pragma GCC unroll 2
        for (int j = 0; j < nv; j++)
            wv[j] = v16_load(w + 16 * j);
#pragma GCC unroll 14
        for (int p = p0; p < p1; p++) {
            const char *a = p < 5 ? a0 : p < 10 ? a1 : a2;
            v16 b = v16_set1(*(const real *)(a + p % 5 * s));
#pragma GCC unroll 2
            for (int j = 0; j < nv; j++)
                acc[p][j] = v16_fma(b, wv[j], acc[p][j]);
        }
        __builtin_prefetch(*ahead);
        *ahead += r->ahead;
        a0 += sizeof(real);
        a1 += sizeof(real);
        a2 += sizeof(real);
        w += NR;
    }
}

// m pixels by nv vectors; m and nv are constants where this is inlined.
ALWAYS_INLINE void tile(const int m, const int nv, const conv_run *r, const real *x, real *y)
{
    const char *ahead = (const char *)(x + m * r->stride);
    if (r->fetches)
        for (int p = 0; p < m; p++)
            for (int j = 0; j < nv; j++)
                __builtin_prefetch(y + p * r->out_stride + 16 * j, 1);

    v16 acc[MR][NV];
#pragma GCC unroll 14
    for (int p = 0; p < m; p++)
#pragma GCC unroll 2
        for (int j = 0; j < nv; j++)
            acc[p][j] = v16_zero();

    for (int64_t t = 0; t < r->n_taps; t++) {
        const int64_t *tap = r->taps + 3 * t, edges = tap[2] & r->edges;
        if ((edges & EDGE_FIRST) != 0)
            products(1, m, nv, r, x + tap[0], r->w + tap[1], &ahead, acc);
        else if ((edges & EDGE_LAST) != 0)
            products(0, m - 1, nv, r, x + tap[0], r->w + tap[1], &ahead, acc);
        else
            products(0, m, nv, r, x + tap[0], r->w + tap[1], &ahead, acc);
    }

    if (r->streams || r->n < 16 * nv)
        end(m, nv, END_ANY, r, acc, y);
    else if (r->relu)
        end(m, nv, END_RELU, r, acc, y);
    else
        end(m, nv, END_PLAIN, r, acc, y);
}

typedef void (*tile_fn)(const conv_run *r, const real *x, real *y);
#define TILE(m, nv)                                                                               \
    static                                                                                        \
        __attribute__((noinline)) void tile_##m##_##nv(const conv_run *r, const real *x, real *y) \
    {                                                                                             \
        tile(m, nv, r, x, y);                                                                     \
    }
EACH_TILE(TILE)
#define NAME(m, nv) tile_##m##_##nv,
static const tile_fn tiles[NV][MR] = TILE_TABLE(NAME);

// Packs one tap of one panel; the columns that do not exist are zeros.
static void pack(const tti_conv_tune *t, const real *w, real *out, int64_t unit)
{
    const tti_conv_dims *d = &t->d;
    int64_t taps = d->kh * d->kw, panel = unit / taps, tap = unit % taps;
    int64_t run = t->is_dx ? d->c_out : d->c_in, n = t->is_dx ? d->c_in : d->c_out;
    int64_t n0 = panel * NR;
    int cols = (int)TTI_MIN(n - n0, NR);
    w += tap * d->c_in * d->c_out;
    out += (panel * taps + tap) * run * NR;
    if (!t->is_dx) {
        for (int64_t k = 0; k < run; k++)
            for (int j = 0; j < NR; j += 16) {
                int m = TTI_MAX(0, TTI_MIN(cols - j, 16));
                v16_store(out + k * NR + j, v16_load_n(w + k * n + n0 + j, m));
            }
        return;
    }
    for (int64_t k0 = 0; k0 < run; k0 += 16) { // turned by blocks of 16 lines
        int64_t k1 = TTI_MIN(k0 + 16, run);
        for (int j = 0; j < NR; j++)
            for (int64_t k = k0; k < k1; k++)
                out[k * NR + j] = j < cols ? w[(n0 + j) * run + k] : 0;
    }
}

// Copies rows [first, first + count) of an image, columns from left, with zeros outside.
static void copy_band(const tti_conv_phase *p, const real *image, int64_t first, int64_t count,
                      const int64_t size[3], int64_t pixels, int64_t pitch, real *out)
{
    const int64_t h = size[0], w = size[1], c = size[2];
    const int64_t from = TTI_MAX(p->left, 0), right = TTI_MIN(p->left + p->width, w);
    for (int64_t r = first; r < first + count; r++, out += p->width * pitch) {
        int64_t to = TTI_MIN(right, pixels - r * w); // the last row of a 1x1 may be short
        if (r < 0 || r >= h || from >= to) {
            memset(out, 0, (size_t)(p->width * pitch) * sizeof(real));
            continue;
        }
        const real *in = image + (r * w + from) * c;
        int64_t before = from - p->left;
        memset(out, 0, (size_t)(before * pitch) * sizeof(real));
        if (pitch == c) {
            memcpy(out + before * c, in, (size_t)((to - from) * c) * sizeof(real));
        } else {
            for (int64_t j = 0; j < to - from; j++)
                memcpy(out + (before + j) * pitch, in + j * c, (size_t)c * sizeof(real));
        }
        memset(out + (to - p->left) * pitch, 0,
               (size_t)((p->left + p->width - to) * pitch) * sizeof(real));
    }
}

/*
 * Fills the table of taps and says how many there are and how long each runs. Rows of one or two
 * tiles leave out the padded pixels at their ends, tap by tap; in longer rows that saves less.
 */
static void make_taps(const tti_conv_tune *t, const tti_conv_phase *p, int64_t row_pitch,
                      int64_t *taps, conv_run *r)
{
    const int64_t c = t->is_dx ? t->d.c_out : t->d.c_in, w = t->is_dx ? t->d.ow : t->d.w;
    bool clips = (p->left < 0 || p->left + p->width > w) && p->cols <= 2 * MR && c >= 16;
    bool folds = p->dir > 0 && t->pitch == c && !clips;
    int64_t n_w = folds ? 1 : p->n_w;
    for (int64_t u = 0; u < p->n_h; u++)
        for (int64_t v = 0; v < n_w; v++, taps += 3) {
            int64_t a = p->dir > 0 ? u : p->n_h - 1 - u, b = p->dir > 0 ? v : p->n_w - 1 - v;
            int64_t tap = (p->tap_h + u * p->step_h) * t->d.kw + p->tap_w + v * p->step_w;
            int64_t first = p->src_col + p->dir * v, last = first + (p->cols - 1) * p->src_sw;
            taps[0] = a * row_pitch + b * t->pitch;
            taps[1] = tap * c * NR;
            taps[2] = !clips ? 0
                             : (first < 0 || first >= w ? EDGE_FIRST : 0) |
                                   (last < 0 || last >= w ? EDGE_LAST : 0);
        }
    r->n_taps = p->n_w > 0 ? p->n_h * n_w : 0;
    r->run = folds ? p->n_w * c : c;
}

// Leaves out the kernel rows that fall outside the source's h rows at output row i.
static conv_run clip(const conv_run *r, const tti_conv_phase *p, int64_t i, int64_t h)
{
    conv_run c = *r;
    if (p->n_h == 0)
        return c;
    int64_t row = i * p->src_sh + p->src_row, per = r->n_taps / p->n_h; // taps in a kernel row
    int64_t lo = p->dir > 0 ? -row : row - h + 1, hi = p->dir > 0 ? h - row : row + 1;
    lo = TTI_MIN(TTI_MAX(lo, 0), p->n_h);
    hi = TTI_MIN(TTI_MAX(hi, lo), p->n_h);
    c.taps += 3 * lo * per;
    c.n_taps = (hi - lo) * per;
    return c;
}

// An activation that is not done in registers, over the tile just written.
static void finish(const tt_launch *l, int act, int m, const conv_run *r, real *y)
{
    real *z = l->n_out > 1 ? (real *)l->out[1].data + (y - (real *)l->out[0].data) : NULL;
    for (int p = 0; p < m; p++) {
        real *row = y + p * r->out_stride;
        if (z != NULL)
            memcpy(z + p * r->out_stride, row, (size_t)r->n * sizeof(real));
        v16_act_all(act, row, row, r->n);
    }
}

// Output rows [i0, i1) of a phase, for one panel. src is where tap 0 of output row i0 begins.
static void panel_rows(const tt_launch *l, const tti_conv_tune *t, const tti_conv_phase *p,
                       const conv_run *r, const real *src, int64_t row_pitch, int64_t i0,
                       int64_t i1, real *y, int act)
{
    const int64_t n_all = t->is_dx ? t->d.c_in : t->d.c_out;
    const int64_t width = t->is_dx ? t->d.w : t->d.ow, h = t->is_dx ? t->d.oh : t->d.h;
    const tile_fn *fns = tiles[r->n > 16 ? NV - 1 : 0];
    for (int64_t i = i0; i < i1; i++) {
        const real *x = src + (i - i0) * p->src_sh * row_pitch;
        conv_run run = clip(r, p, i, h);
        real *out = y + ((p->row0 + i * p->out_sh) * width + p->col0) * n_all;
        int64_t cols = t->total > 0 ? TTI_MIN(p->cols, t->total - i * p->cols) : p->cols;
        int64_t n_tiles = (cols + MR - 1) / MR;
        for (int64_t q = 0; q < n_tiles; q++) {
            int64_t j = cols * q / n_tiles, m = cols * (q + 1) / n_tiles - j;
            run.edges = (q == 0 ? EDGE_FIRST : 0) | (q == n_tiles - 1 ? EDGE_LAST : 0);
            fns[m - 1](&run, x + j * r->stride, out + j * r->out_stride);
            if (act != TT_LINEAR)
                finish(l, act, (int)m, r, out + j * r->out_stride);
        }
    }
}

// A unit is a band of rows of one phase of one image, for a group of panels.
static void compute(const tt_launch *l, const tti_conv_tune *t, const real *weights, int64_t unit)
{
    const tti_conv_dims *d = &t->d;
    const int64_t phases = t->is_dx ? d->sh * d->sw : 1;
    int64_t group = unit % t->groups, rest = unit / t->groups;
    int64_t band = rest % t->bands, phase = rest / t->bands % phases;
    int64_t image = rest / t->bands / phases;
    const int64_t in_size[3] = {t->is_dx ? d->oh : d->h, t->is_dx ? d->ow : d->w,
                                t->is_dx ? d->c_out : d->c_in};
    const int64_t n = t->is_dx ? d->c_in : d->c_out;
    tti_conv_phase p = tti_conv_phase_of(d, t->is_dx, phase);
    int64_t i0 = band * t->band_rows, i1 = TTI_MIN(i0 + t->band_rows, p.rows);
    if (i0 >= i1 || p.cols == 0)
        return;

    const real *src = (const real *)l->in[0].data + image * in_size[0] * in_size[1] * in_size[2];
    real *y = (real *)l->out[0].data + image * (t->is_dx ? d->h * d->w : d->oh * d->ow) * n;
    int64_t first, count = tti_conv_band(&p, i0, i1 - i0, &first);
    int64_t row_pitch = in_size[1] * in_size[2];
    if (t->pitch != in_size[2] || p.left < 0 || p.left + p.width > in_size[1] || first < 0 ||
        first + count > in_size[0]) {
        real *copy = (real *)(l->local + t->table_bytes);
        copy_band(&p, src, first, count, in_size, t->total > 0 ? t->total : in_size[0] * in_size[1],
                  t->pitch, copy);
        src = copy;
        row_pitch = p.width * t->pitch;
    } else {
        src += first * row_pitch + p.left * in_size[2];
    }

    int act = t->is_dx ? TT_LINEAR : ((const tti_conv_attr *)l->attr)->act;
    conv_run r = {
        .stride = p.src_sw * t->pitch,
        .out_stride = p.out_sw * n,
        .relu = act == TT_RELU,
        .taps = (const int64_t *)l->local,
    };
    make_taps(t, &p, row_pitch, (int64_t *)l->local, &r);
    const real *bias = !t->is_dx && l->n_in > 2 ? l->in[2].data : NULL;
    const int64_t first_panel = t->panels * group / t->groups;
    for (int64_t q = first_panel; q < t->panels * (group + 1) / t->groups; q++) {
        r.w = weights + q * d->kh * d->kw * in_size[2] * NR;
        r.bias = bias != NULL ? bias + q * NR : NULL;
        r.n = (int)TTI_MIN(n - q * NR, NR);
        r.streams = t->streams && r.n == NR && ((uintptr_t)l->out[0].data & 63) == 0;
        r.fetches = !r.streams && r.n_taps * r.run >= 64;
        r.ahead = t->total > 0 && q == first_panel && t->pitch == in_size[2] ? 64 : 0;
        panel_rows(l, t, &p, &r, src, row_pitch, i0, i1, y + q * NR,
                   act == TT_RELU ? TT_LINEAR : act);
    }
}

tt_status TTI_ISA(tti_conv2d)(const tt_launch *l)
{
    const tti_conv_tune *t = l->tune;
    const real *w = l->in[1].data;
    if (l->phase == 0 && !t->direct) {
        for (int64_t u = l->begin; u < l->end; u++)
            pack(t, w, (real *)l->scratch, u);
        return TT_OK;
    }
    for (int64_t u = l->begin; u < l->end; u++)
        compute(l, t, t->direct ? w : (const real *)l->scratch, u);
#if defined(TTI_SET_AVX512)
    if (t->streams)
        _mm_sfence(); // streamed vectors are to be seen with what follows
#endif
    return TT_OK;
}
