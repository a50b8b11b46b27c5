/*
 * conv_dw.cu - the gradient of conv2d at its weights on a GPU, lane by lane (conv.cuh).
 *
 * bf16 and f16 run on the matrix units (conv_few.cu, conv_wgmma.cu, else conv_mma.cuh), and so does
 * f32 (conv_tf32.cu); 1x1 with stride 1 by cuBLASLt where it is there; images beyond 2^30 entries,
 * and f32 on older cards, by the kernel here, which is one chain of fused multiply-adds for each
 * slice.
 */
#include "op/gpu/conv_dnn.h"
#include "op/gpu/conv_few.h"
#include "op/gpu/conv_mma.cuh"
#include "op/gpu/conv_tf32.h"
#include "op/gpu/conv_wgmma.h"

#define TILE    TTI_CONV_TILE
#define DEPTH   TTI_CONV_DEPTH
#define THREADS TTI_CONV_THREADS
#define EACH    TTI_CONV_EACH

struct dw_tune {
    tti_conv_tune conv;
    void *maps; // NULL: not by conv_wgmma.cu
};
static_assert(sizeof(dw_tune) <= TT_TUNE_BYTES, "tune is too large");

struct dw_in {
    tti_conv_dims d;
    const void *x, *dy;
    float *part; // [lanes, slices, count]
    int64_t slices;
    tti_dw_rule rule;
};

// Blocks are tiles of (tap, c_in) by tiles of c_out, by slices, by lanes.
template <class T>
static __global__ void __launch_bounds__(THREADS) dw_slices(tti_dw_images g, dw_in q)
{
    __shared__ tti_conv_tiles s;
    __shared__ int64_t image[DEPTH], row[DEPTH], col[DEPTH];
    const int t = (int)threadIdx.x;
    const int64_t rows = q.d.kh * q.d.kw * q.d.c_in, tiles = (q.d.c_out + TILE - 1) / TILE;
    const int64_t m0 = blockIdx.x / tiles * TILE, n0 = blockIdx.x % tiles * TILE;
    const int64_t per = q.d.oh * q.d.ow, first = g.bound[blockIdx.z] * per;
    const int64_t pixels = g.bound[blockIdx.z + 1] * per - first;
    const int64_t slice = tti_dw_slice(pixels, q.rule), begin = first + blockIdx.y * slice;
    const int64_t last = first + pixels, end = begin + slice < last ? begin + slice : last;
    if (begin >= last) // of the whole block
        return;
    const int64_t m = m0 + t % TILE, u = m / q.d.c_in / q.d.kw, v = m / q.d.c_in % q.d.kw;
    const T *x = (const T *)q.x + m % q.d.c_in, *dy = (const T *)q.dy;
    float acc[EACH][EACH] = {};
    for (int64_t k0 = begin; k0 < end; k0 += DEPTH) {
        if (t < DEPTH) {
            image[t] = (k0 + t) / per;
            row[t] = (k0 + t) % per / q.d.ow * q.d.sh - q.d.pt;
            col[t] = (k0 + t) % q.d.ow * q.d.sw - q.d.pl;
        }
        __syncthreads();
        for (int e = 0; e < EACH; e++) {
            int k = t / TILE + THREADS / TILE * e;
            int64_t r = row[k] + u, c = col[k] + v;
            bool in = m < rows && k0 + k < end && r >= 0 && r < q.d.h && c >= 0 && c < q.d.w;
            s.a[k][t % TILE] =
                in ? tti_get(x[((image[k] * q.d.h + r) * q.d.w + c) * q.d.c_in]) : 0.0f;
            k = t / (TILE / EACH);
            int n = t % (TILE / EACH) * EACH + e;
            in = k0 + k < end && n0 + n < q.d.c_out;
            s.b[k][n] = in ? tti_get(dy[(k0 + k) * q.d.c_out + n0 + n]) : 0.0f;
        }
        __syncthreads();
        tti_conv_multiply(s, end - k0 < DEPTH ? (int)(end - k0) : DEPTH, acc);
        __syncthreads();
    }
    float *out =
        q.part + ((int64_t)(g.first + blockIdx.z) * q.slices + blockIdx.y) * rows * q.d.c_out;
    for (int i = 0; i < EACH * EACH; i++) {
        int64_t o = m0 + t / (TILE / EACH) * EACH + i / EACH;
        int64_t n = n0 + t % (TILE / EACH) * EACH + i % EACH;
        if (o < rows && n < q.d.c_out)
            out[o * q.d.c_out + n] = acc[i / EACH][i % EACH];
    }
}

static bool by_mma(const tti_conv_dims *d, tt_dtype type)
{
    return type != TT_F32 && tti_mma_fits(d);
}

static void cut(const tti_conv_dims *d, const tt_arg *x, const tt_lanes *ln, tti_dw_sum *q)
{
    tti_dw_cut(x, ln, d->oh * d->ow, d->kh * d->kw * d->c_in * d->c_out, q);
}

// Slices are a matter of shapes and types alone: they decide bits.
static void slice_up(const dw_tune *t, tt_dtype type, tti_dw_sum *q)
{
    const tti_conv_dims *d = &t->conv.d;
    int64_t blocks = tti_mma_tiles(d, TILE, TILE);
    tti_few f;
    if (t->conv.by_few && tti_few_of(d, type, true, &f)) {
        tti_dw_slice_up(q, tti_few_rule(d, &f));
        return;
    }
    if (t->conv.by_tf32) {
        tti_dw_slice_up(q, tti_conv_tf32_rule(d));
        return;
    }
    if (t->conv.dnn != NULL) // cuBLASLt gives a lane's sum at once
        blocks = 512;
    else if (t->maps != NULL) // one of these takes a whole multiprocessor: 16 for a lane
        blocks = 32 * (d->c_in / TTI_WGMMA_TILE) * (d->c_out / TTI_WGMMA_TILE);
    else if (by_mma(d, type)) // a card has few of these at once: 128 for a lane suffice
        blocks = 4 * (!tti_mma_in_packs(d) ? tti_mma_tiles(d, 64, 64)
                      : tti_mma_is_tall(d) ? tti_mma_tiles(d, 192, 64)
                                           : tti_mma_tiles(d, 128, 128));
    tti_dw_slice_up(q, tti_dw_pixels(d->oh * d->ow, blocks));
}

static tti_mma_in mma_in(const tt_launch *l, const tti_conv_dims *d, const tti_dw_sum *sum,
                         float *part)
{
    tti_mma_in q = {};
    q.h = (int)d->h;
    q.w = (int)d->w;
    q.c_in = (int)d->c_in;
    q.oh = (int)d->oh;
    q.ow = (int)d->ow;
    q.c_out = (int)d->c_out;
    q.kw = (int)d->kw;
    q.sh = (int)d->sh;
    q.sw = (int)d->sw;
    q.pt = (int)d->pt;
    q.pl = (int)d->pl;
    q.rows = (int)(d->kh * d->kw * d->c_in);
    q.x = l->in[0].data;
    q.dy = l->in[1].data;
    q.part = part;
    q.slices = sum->slices;
    q.rule = sum->rule;
    return q;
}

static tt_status run_mma(const tt_launch *l, const tti_conv_dims *d, const tti_dw_images &g,
                         const tti_mma_in &q)
{
    return l->in[0].dtype == TT_BF16 ? tti_mma_run<tti_bf16>(l, d, g, q)
                                     : tti_mma_run<tti_f16>(l, d, g, q);
}

static tt_status run_chains(const tt_launch *l, const tti_conv_dims *d, const tti_dw_sum *sum,
                            const tti_dw_images &g, float *part)
{
    dw_in q = {*d, l->in[0].data, l->in[1].data, part, sum->slices, sum->rule};
    dim3 grid((unsigned)tti_mma_tiles(d, TILE, TILE), (unsigned)sum->slices, (unsigned)g.n);
    TTI_FLOATS(l->in[0].dtype, T, { TTI_LAUNCH(l, grid, THREADS, 0, (dw_slices<T>), g, q); })
    return tti_cuda_launched(l);
}

static tt_status conv2d_dw(const tt_launch *l)
{
    const dw_tune *t = (const dw_tune *)l->tune;
    const tti_conv_dims *d = &t->conv.d;
    const bool aligned = tti_is_aligned(l->in[0].data) && tti_is_aligned(l->in[1].data);
    tti_dw_sum sum;
    cut(d, &l->in[0], l->lanes, &sum);
    slice_up(t, l->in[0].dtype, &sum);
    tt_launch own = *l;
    own.scratch = l->scratch + t->conv.workspace;
    return tti_dw_run(&own, &sum, [&](const tti_dw_images &g, float *part) {
        if (tti_conv_by_library(&t->conv, l))
            return tti_conv_dnn_dw(t->conv.dnn, l, d, g.n, g.bound, part + g.first * sum.count);
        if (t->conv.by_few)
            return tti_few_dw(l, d, &sum, g, part);
        if (t->maps != NULL && aligned)
            return tti_wgmma_run(t->maps, l, d, &sum, g, part);
        if (t->conv.by_tf32)
            return tti_conv_tf32_dw(l, d, g, mma_in(l, d, &sum, part));
        if (by_mma(d, l->in[0].dtype))
            return run_mma(l, d, g, mma_in(l, d, &sum, part));
        return run_chains(l, d, &sum, g, part);
    });
}

static tt_status prepare(tt_prep *p)
{
    const tti_conv_attr *a = (const tti_conv_attr *)p->attr;
    const tt_dtype type = p->in[0].dtype;
    dw_tune t = {};
    tti_conv_tune *c = &t.conv;
    tti_dw_sum sum;
    tti_few f;
    c->d = tti_conv_dims_on(a, &p->in[0].shape, a->size.v[0], a->size.v[1], &p->in[1].shape);
    cut(&c->d, &p->in[0], p->lanes, &sum);
    c->by_few = tti_few_of(&c->d, type, true, &f);
    c->by_tf32 = tti_conv_tf32_takes((const tti_cuda_device *)p->device, &c->d, type);
    if (!c->by_few && !c->by_tf32)
        TT_TRY(
            tti_conv_dnn_prepare(p, &c->d, TTI_CONV_DW, &sum.strands.ln, &c->dnn, &c->workspace));
    if (!c->by_few && by_mma(&c->d, type))
        t.maps = tti_wgmma_maps_of((const tti_cuda_device *)p->device, &c->d, type);
    slice_up(&t, type, &sum);
    p->scratch_bytes = c->workspace + tti_dw_scratch(&sum);
    memcpy(p->tune, &t, sizeof(t));
    return TT_OK;
}

extern "C" const tti_cuda_row tti_cuda_conv_dw[] = {
    TTI_ROW_BY("conv2d_dw", prepare, conv2d_dw, TTI_BY_BLAS),
    TTI_ROWS_END,
};
