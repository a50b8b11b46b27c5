/*
 * conv_dw_cpu.c - conv2d_dw: the gradient by the weights, one sum per lane, then the lane tree.
 *
 * dw is a matrix of k = kh kw c_in rows by c_out columns; each element is a chain over the lane's
 * (row, oh, ow). A tile is up to MR rows of it by NR columns in registers. It runs over a block of
 * output rows whose dy has been packed (L1), and is kept in the lane's partial between blocks.
 * The rows of a tile are channels of one tap, side by side in x, and pixels whose tap falls into
 * padding are skipped. With few input channels a tile mixes taps instead, and x is copied with its
 * padding, which then is cheap.
 */
#include "op/conv_plan.h"
#include "op/cpu/conv_tile.h"
#include "op/cpu/lanes.h"

// Pixels that a tile runs over: images of n_rows rows of n_cols pixels.
typedef struct dw_run {
    const real *x; // of the first pixel
    int64_t x_stride, x_row, x_image;
    const real *dy; // packed, NR a pixel
    int64_t dy_row, dy_image;
    int64_t n_images, n_rows, n_cols;
    const int64_t *offset; // of each row of the tile in x; NULL: side by side
    bool begins;           // at zero, not at what acc holds
    const char *ahead;     // memory to fetch ahead of use, step bytes a pixel
    int64_t step;
} dw_run;

// m rows by nv vectors; m, nv and mixes are constants where this is inlined.
ALWAYS_INLINE void tile(const int m, const int nv, const bool mixes, const dw_run *r, real *sum)
{
    v16 acc[MR][NV];
#pragma GCC unroll 14
    for (int p = 0; p < m; p++)
#pragma GCC unroll 2
        for (int j = 0; j < nv; j++)
            acc[p][j] = r->begins ? v16_zero() : v16_load(sum + p * NR + 16 * j);

    const char *ahead = r->ahead;
    const real *x_image = r->x, *dy_image = r->dy;
    for (int64_t i = 0, row = 0; i < r->n_images * r->n_rows; i++, row++) {
        if (row == r->n_rows) {
            row = 0;
            x_image += r->x_image;
            dy_image += r->dy_image;
        }
        const real *x = x_image + row * r->x_row, *dy = dy_image + row * r->dy_row;
        for (int64_t n = r->n_cols; n > 0; n--) {
            v16 d[NV];
#pragma GCC unroll 2
            for (int j = 0; j < nv; j++)
                d[j] = v16_load(dy + 16 * j);
#pragma GCC unroll 14
            for (int p = 0; p < m; p++) {
                v16 b = v16_set1(mixes ? x[r->offset[p]] : x[p]);
#pragma GCC unroll 2
                for (int j = 0; j < nv; j++)
                    acc[p][j] = v16_fma(b, d[j], acc[p][j]);
            }
            __builtin_prefetch(ahead);
            ahead += r->step;
            x += r->x_stride;
            dy += NR;
        }
    }

#pragma GCC unroll 14
    for (int p = 0; p < m; p++)
#pragma GCC unroll 2
        for (int j = 0; j < nv; j++)
            v16_store(sum + p * NR + 16 * j, acc[p][j]);
}

typedef void (*tile_fn)(const dw_run *r, real *sum);
#define TILE_OF(m, nv, mixes)                                                                   \
    static __attribute__((noinline)) void tile_##m##_##nv##_##mixes(const dw_run *r, real *sum) \
    {                                                                                           \
        tile(m, nv, mixes, r, sum);                                                             \
    }
#define TILE(m, nv) TILE_OF(m, nv, 0) TILE_OF(m, nv, 1)
EACH_TILE(TILE)
#define STRAIGHT(m, nv) tile_##m##_##nv##_0,
#define MIXING(m, nv)   tile_##m##_##nv##_1,
static const tile_fn tiles[2][NV][MR] = {TILE_TABLE(STRAIGHT), TILE_TABLE(MIXING)};

// Output positions [*lo, *hi) whose tap falls inside 0..n.
static void inside(int64_t tap, int64_t pad, int64_t stride, int64_t n, int64_t *lo, int64_t *hi)
{
    int64_t first = pad - tap, last = n - 1 + pad - tap; // in source positions
    int64_t from = first > 0 ? (first + stride - 1) / stride : 0;
    int64_t to = last >= 0 ? last / stride + 1 : 0;
    *lo = TTI_MAX(*lo, from);
    *hi = TTI_MIN(*hi, to);
}

// Output rows [i0, i1) of one image, or several whole images: what all tiles run over.
typedef struct dw_block {
    const real *x, *dy; // of the first image
    const real *packed; // dy of the panel at hand
    int64_t n_images, i0, i1;
    const real *padded; // x with its padding, where tiles mix taps
    int64_t padded_row;
    bool begins;             // the lane
    const char *ahead, *end; // what the next block reads of x: fetched while this one computes
} dw_block;

// The tile of channels [c, c + m) of one tap.
static void run_tap(const tti_conv_dims *d, dw_block *b, int64_t tap, int64_t c, int m, int nv,
                    real *sum)
{
    int64_t kh = tap / d->kw, kw = tap % d->kw, lo = b->i0, hi = b->i1, left = 0, right = d->ow;
    inside(kh, d->pt, d->sh, d->h, &lo, &hi);
    inside(kw, d->pl, d->sw, d->w, &left, &right);
    dw_run r = {
        .x_stride = d->sw * d->c_in,
        .x_row = d->sh * d->w * d->c_in,
        .x_image = d->h * d->w * d->c_in,
        .dy_row = d->ow * NR,
        .dy_image = d->oh * d->ow * NR,
        .begins = b->begins,
        .ahead = b->ahead,
        .step = b->ahead < b->end ? 64 : 0,
    };
    if (lo < hi && left < right) {
        r.x = b->x + ((lo * d->sh + kh - d->pt) * d->w + left * d->sw + kw - d->pl) * d->c_in + c;
        r.dy = b->packed + ((lo - b->i0) * d->ow + left) * NR;
        r.n_images = b->n_images;
        r.n_rows = hi - lo;
        r.n_cols = right - left;
    }
    tiles[0][nv - 1][m - 1](&r, sum);
    b->ahead += r.step * r.n_images * r.n_rows * r.n_cols;
}

// A tile that mixes taps: rows [k, k + m) of dw.
static void run_mixed(const tti_conv_dims *d, const dw_block *b, int64_t k, int m, int nv,
                      real *sum)
{
    int64_t offset[MR];
    for (int p = 0; p < m; p++) {
        int64_t tap = (k + p) / d->c_in, c = (k + p) % d->c_in;
        offset[p] = tap / d->kw * b->padded_row + tap % d->kw * d->c_in + c;
    }
    dw_run r = {
        .x = b->padded,
        .x_stride = d->sw * d->c_in,
        .x_row = d->sh * b->padded_row,
        .dy = b->packed,
        .dy_row = d->ow * NR,
        .n_images = 1,
        .n_rows = b->i1 - b->i0,
        .n_cols = d->ow,
        .offset = offset,
        .begins = b->begins,
        .ahead = (const char *)b->padded,
    };
    tiles[1][nv - 1][m - 1](&r, sum);
}

// Columns [n0, n0 + NR) of the block's dy.
static void pack_dy(const tti_conv_dims *d, const dw_block *b, int64_t n0, real *out)
{
    int64_t n = TTI_MIN(d->c_out - n0, NR);
    const real *dy = b->dy + b->i0 * d->ow * d->c_out + n0;
    for (int64_t p = b->n_images * (b->i1 - b->i0) * d->ow; p > 0; p--, dy += d->c_out, out += NR)
        for (int j = 0; j < NR; j += 16)
            v16_store(out + j, v16_load_n(dy + j, (int)TTI_MAX(0, TTI_MIN(n - j, 16))));
}

// The rows of x that the block uses, with zeros around them where a window reaches beyond.
static void pad_x(const tti_conv_dims *d, dw_block *b, real *out)
{
    int64_t width = (d->ow - 1) * d->sw + d->kw, row = width * d->c_in;
    int64_t first = b->i0 * d->sh - d->pt, end = (b->i1 - 1) * d->sh + d->kh - d->pt;
    if (d->pl == 0 && width <= d->w && first >= 0 && end <= d->h) {
        b->padded = b->x + first * d->w * d->c_in;
        b->padded_row = d->w * d->c_in;
        return;
    }
    b->padded = out;
    b->padded_row = row;
    int64_t from = TTI_MIN(d->pl, width), to = TTI_MIN(d->pl + d->w, width);
    for (int64_t r = first; r < end; r++, out += row) {
        if (r < 0 || r >= d->h) {
            memset(out, 0, (size_t)row * sizeof(real));
            continue;
        }
        memset(out, 0, (size_t)(from * d->c_in) * sizeof(real));
        memcpy(out + from * d->c_in, b->x + r * d->w * d->c_in,
               (size_t)((to - from) * d->c_in) * sizeof(real));
        memset(out + to * d->c_in, 0, (size_t)((width - to) * d->c_in) * sizeof(real));
    }
}

// Adds a block to the partial, for tiles [first, end) of all panels' tiles.
static void add_block(const tt_launch *l, const tti_conv_dw_tune *t, dw_block *b, int64_t first,
                      int64_t end, real *partial)
{
    const tti_conv_dims *d = &t->d;
    real *room = (real *)l->local;
    if (t->mixes)
        pad_x(d, b, (real *)(l->local + t->dy_bytes));
    // per tap (or of all rows, when mixed): so many tiles, of nearly equal size
    int64_t span = t->mixes ? t->k : d->c_in, per = (span + MR - 1) / MR;
    int64_t packed = -1;
    for (int64_t id = first; id < end; id++) {
        int64_t panel = id / t->tiles, q = id % t->tiles;
        if (panel != packed) {
            b->packed = d->c_out == NR ? b->dy + b->i0 * d->ow * NR : room;
            if (d->c_out != NR) // else it lies as a panel already
                pack_dy(d, b, panel * NR, room);
            packed = panel;
        }
        int nv = d->c_out - panel * NR > 16 ? NV : 1;
        int64_t tap = q / per, c = span * (q % per) / per;
        int m = (int)(span * (q % per + 1) / per - c);
        real *sum = partial + (panel * t->k + tap * span + c) * NR;
        if (t->mixes)
            run_mixed(d, b, c, m, nv, sum);
        else
            run_tap(d, b, tap, c, m, nv, sum);
    }
}

// The rows of the partial that tiles [first, end) cover are one range; in numbers.
static int64_t tile_begin(const tti_conv_dw_tune *t, int64_t id)
{
    int64_t span = t->mixes ? t->k : t->d.c_in, per = (span + MR - 1) / MR;
    int64_t panel = id / t->tiles, q = id % t->tiles;
    return (panel * t->k + q / per * span + span * (q % per) / per) * NR;
}

// The partial of images [from, to), for a range of tiles. No images: zeros.
static void lane(const tt_launch *l, const tti_conv_dw_tune *t, int64_t from, int64_t to,
                 int64_t first, int64_t end, real *partial)
{
    if (from >= to) {
        int64_t a = tile_begin(t, first), b = tile_begin(t, end);
        memset(partial + a, 0, (size_t)(b - a) * sizeof(real));
    }
    const tti_conv_dims *d = &t->d;
    const int64_t x_row = d->w * d->c_in * (int64_t)sizeof(real);
    for (int64_t n = from; n < to; n += t->block_images)
        for (int64_t i = 0; i < d->oh; i += t->block_rows) {
            dw_block b = {
                .x = (const real *)l->in[0].data + n * d->h * d->w * d->c_in,
                .dy = (const real *)l->in[1].data + n * d->oh * d->ow * d->c_out,
                .n_images = TTI_MIN(t->block_images, to - n),
                .i0 = i,
                .i1 = TTI_MIN(i + t->block_rows, d->oh),
                .begins = n == from && i == 0,
            };
            // images lie side by side; what is fetched past the last one does no harm
            int64_t rows = b.n_images > 1 ? b.n_images * d->h : b.i1 * d->sh;
            b.ahead = (const char *)b.x + rows * x_row;
            b.end = b.ahead + (b.n_images > 1 ? rows : (b.i1 - i) * d->sh) * x_row;
            add_block(l, t, &b, first, end, partial);
        }
}

static void lane_bounds(const tt_launch *l, int64_t i, int64_t *from, int64_t *to)
{
    if (l->in[0].open < 0) {
        *from = 0;
        *to = l->in[0].shape.dim[0];
    } else {
        *from = l->lanes->bound[i] * l->in[0].per;
        *to = l->lanes->bound[i + 1] * l->in[0].per;
    }
}

// All lanes of a range of tiles one after the other, merged on a stack of partials in scratch.
static void stack_lanes(const tt_launch *l, const tti_conv_dw_tune *t, int64_t first, int64_t end)
{
    int64_t a = tile_begin(t, first), b = tile_begin(t, end);
    real *stack = (real *)l->scratch;
    int64_t depth = 0;
    for (int i = 0; i < l->lanes->n; i++) {
        int64_t from, to;
        lane_bounds(l, i, &from, &to);
        lane(l, t, from, to, first, end, stack + depth++ * t->partial_count);
        for (int m = 0; m < l->lanes->merges[i]; m++, depth--) {
            real *low = stack + (depth - 2) * t->partial_count, *high = low + t->partial_count;
            for (int64_t j = a; j < b; j += 16)
                v16_store(low + j, v16_add(v16_load(low + j), v16_load(high + j)));
        }
    }
}

tt_status TTI_ISA(tti_conv2d_dw)(const tt_launch *l)
{
    const tti_conv_dw_tune *t = l->tune;
    const int64_t tiles_all = t->panels * t->tiles;
    if (l->phase == 0) {
        for (int64_t u = l->begin; u < l->end; u++) {
            int64_t g = u % t->groups, i = u / t->groups;
            int64_t first = tiles_all * g / t->groups, end = tiles_all * (g + 1) / t->groups;
            int64_t from, to;
            if (!t->by_lane) {
                stack_lanes(l, t, first, end);
                continue;
            }
            lane_bounds(l, i, &from, &to);
            lane(l, t, from, to, first, end, (real *)l->scratch + i * t->partial_count);
        }
        return TT_OK;
    }

    static const uint8_t no_merges[TT_MAX_LANES];
    tt_lanes whole = {.n = 1, .n_parts = 1, .merges = no_merges};
    const tt_lanes *tree = l->in[0].open < 0 ? &whole : l->lanes;
    if (!t->by_lane) { // merged already
        whole.n = whole.n_parts = l->lanes->n_parts;
        tree = &whole;
    }
    const int64_t count = t->k * t->d.c_out;
    for (int64_t u = l->begin; u < l->end; u++) {
        int64_t panel = u / t->k, k = u % t->k;
        int64_t n = TTI_MIN(t->d.c_out - panel * NR, NR);
        tti_lane_tree(tree, (const real *)l->scratch + (panel * t->k + k) * NR, t->partial_count,
                      (real *)l->out[0].data + k * t->d.c_out + panel * NR, count, 0, n);
    }
    return TT_OK;
}
