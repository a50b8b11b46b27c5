/*
 * conv_plan.c - how the convolution kernels run: panels, bands of rows, units for threads. Nothing
 * here changes a bit: every choice only cuts the same chains at other places.
 */
#include "op/conv_plan.h"
#include <string.h>

_Static_assert(sizeof(tti_conv_tune) <= TT_TUNE_BYTES, "tune is too large");
_Static_assert(sizeof(tti_conv_dw_tune) <= TT_TUNE_BYTES, "tune is too large");

#define BAND_BYTES    (192 << 10) // of source rows that stay in the second-level cache
#define DY_BYTES      (16 << 10)  // of packed dy that stays in the first-level cache
#define STREAM_BYTES  (64 << 20)  // an output this large is written past the caches
#define PARTIAL_BYTES (256 << 20) // of all lanes' partials; beyond it lanes run one by one

static int64_t round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

double tti_conv_flops_per_ns(int isa)
{
    static const double rate[TT_N_ISA] = {0.2, 4, 50, 90, 0.2};
    return rate[isa];
}

static double product_ns(const tti_conv_dims *d, int isa)
{
    double n = (double)d->batch * (double)(d->oh * d->ow) * (double)(d->kh * d->kw);
    return 500 + 2 * n * (double)d->c_in * (double)d->c_out / tti_conv_flops_per_ns(isa);
}

static void plan_gather(tt_prep *p, tti_conv_tune *t)
{
    tti_conv_dims *d = &t->d;
    const int64_t real = (int64_t)tti_real_bytes(p->isa);
    const int64_t panel = tti_conv_panel(p->isa);
    p->ns = product_ns(d, p->isa);
    int64_t taps = d->kh * d->kw, n = t->is_dx ? d->c_in : d->c_out;
    int64_t c = t->is_dx ? d->c_out : d->c_in;
    t->panels = (n + panel - 1) / panel;
    t->direct = !t->is_dx && n == panel;
    t->streams = n * real % 64 == 0 && p->out_args[0].count * real >= STREAM_BYTES &&
                 (t->is_dx || ((const tti_conv_attr *)p->attr)->act <= TT_RELU);

    if (taps == 1 && d->sh == 1 && d->sw == 1 && d->oh == d->h && d->ow == d->w) {
        // 1x1: all pixels of the batch are rows of a product; cut them into rows of four tiles
        t->total = d->batch * d->h * d->w;
        int64_t cols = 4 * tti_conv_tile(p->isa);
        d->h = d->oh = (t->total + cols - 1) / cols;
        d->w = d->ow = cols;
        d->batch = t->total > 0;
    }

    // pixels of a tile 2 KiB or more apart share too few cache sets: copy them a line further apart
    int64_t apart = c * real * (t->is_dx ? 1 : d->sw);
    t->pitch = apart % 2048 == 0 ? c + 64 / real : c;

    int64_t phases = t->is_dx ? d->sh * d->sw : 1, rows = 0, width = 0;
    for (int64_t i = 0; i < phases; i++) {
        tti_conv_phase ph = tti_conv_phase_of(d, t->is_dx, i);
        rows = TTI_MAX(rows, ph.rows);
        width = TTI_MAX(width, ph.width);
    }
    int64_t step = t->is_dx ? 1 : d->sh, span = t->is_dx ? (d->kh - 1) / d->sh : d->kh - 1;
    int64_t line = width * t->pitch * real;
    t->band_rows = TTI_MAX(1, (BAND_BYTES / TTI_MAX(line, 1) - span) / step);
    t->band_rows = TTI_MAX(1, TTI_MIN(t->band_rows, rows));
    int64_t want = 8 * p->n_threads, images = d->batch * phases;
    if (p->n_threads > 1 && images > 0) // enough bands for all threads, but not thinner than 4 rows
        while (t->band_rows > 4 && images * ((rows + t->band_rows - 1) / t->band_rows) < want)
            t->band_rows = (t->band_rows + 1) / 2;
    t->bands = (rows + t->band_rows - 1) / t->band_rows;
    t->groups = 1;
    if (p->n_threads > 1 && images * t->bands > 0)
        t->groups = TTI_MIN(t->panels, (want + images * t->bands - 1) / (images * t->bands));

    int64_t source = ((t->band_rows - 1) * step + span + 1) * line;
    t->table_bytes = round_up(3 * taps * (int64_t)sizeof(int64_t), 64);
    p->local_bytes = (size_t)(t->table_bytes + source + 64);
    int64_t compute = d->batch * phases * t->bands * t->groups;
    if (t->direct) {
        p->n_phases = 1;
        p->units[0] = compute;
    } else {
        p->n_phases = 2;
        p->units[0] = compute > 0 ? t->panels * taps : 0;
        p->units[1] = compute;
        p->scratch_bytes = (size_t)(t->panels * taps * c * panel * real);
    }
}

tt_status tti_conv_prepare(tt_prep *p)
{
    tti_conv_tune t = {0};
    t.d = tti_conv_dims_of(p->attr, &p->in[0].shape, &p->in[1].shape, &p->out_args[0].shape);
    plan_gather(p, &t);
    memcpy(p->tune, &t, sizeof(t));
    return TT_OK;
}

tt_status tti_conv_dx_prepare(tt_prep *p)
{
    tti_conv_tune t = {.is_dx = true};
    t.d = tti_conv_dims_of(p->attr, &p->out_args[0].shape, &p->in[1].shape, &p->in[0].shape);
    plan_gather(p, &t);
    memcpy(p->tune, &t, sizeof(t));
    return TT_OK;
}

tt_status tti_conv_dw_prepare(tt_prep *p)
{
    tti_conv_dw_tune t = {0};
    const tti_conv_attr *a = p->attr;
    const tt_shape w = TT_SHAPE(a->size.v[0], a->size.v[1], 0, 0);
    t.d = tti_conv_dims_of(a, &p->in[0].shape, &w, &p->in[1].shape);
    const tti_conv_dims *d = &t.d;
    const int64_t real = (int64_t)tti_real_bytes(p->isa);
    const int64_t panel = tti_conv_panel(p->isa), tile = tti_conv_tile(p->isa);
    p->ns = product_ns(d, p->isa);

    t.k = d->kh * d->kw * d->c_in;
    t.mixes = d->c_in < tile / 2 + 1 && d->kh * d->kw > 1;
    t.panels = (d->c_out + panel - 1) / panel;
    t.tiles = t.mixes ? (t.k + tile - 1) / tile : d->kh * d->kw * ((d->c_in + tile - 1) / tile);
    t.partial_count = t.panels * t.k * panel;

    bool is_open = p->in[0].open >= 0;
    t.lanes = is_open ? p->lanes->n : 1;
    t.by_lane = !is_open || t.lanes * t.partial_count * real <= PARTIAL_BYTES || t.lanes == 1;
    int64_t units = t.by_lane ? t.lanes : 1, want = p->n_threads > 1 ? 4 * p->n_threads : 1;
    t.groups = TTI_MIN(t.panels * t.tiles, (want + units - 1) / units);

    // blocks of rows, nearly equal, or of whole small images; where few tiles read dy, longer ones
    int64_t dy_row = panel * real * d->ow;
    int64_t room = t.tiles <= 2 ? 8 * DY_BYTES : DY_BYTES;
    t.block_rows = TTI_MAX(1, TTI_MIN(d->oh, room / dy_row));
    int64_t blocks = (d->oh + t.block_rows - 1) / t.block_rows;
    t.block_rows = (d->oh + blocks - 1) / blocks;
    t.block_images = t.mixes || blocks > 1 ? 1 : TTI_MAX(1, 2 * DY_BYTES / (dy_row * d->oh));
    t.dy_bytes = (size_t)round_up(t.block_images * t.block_rows * dy_row, 64);
    p->local_bytes = t.dy_bytes;
    if (t.mixes)
        p->local_bytes += (size_t)(((t.block_rows - 1) * d->sh + d->kh) *
                                   ((d->ow - 1) * d->sw + d->kw) * d->c_in * real);

    int64_t buffers = t.by_lane ? t.lanes : p->lanes->depth + 1;
    p->scratch_bytes = (size_t)(buffers * t.partial_count * real);
    p->n_phases = 2;
    p->units[0] = units * t.groups;
    p->units[1] = t.panels * t.k;
    p->grain[1] = 64;
    memcpy(p->tune, &t, sizeof(t));
    return TT_OK;
}
