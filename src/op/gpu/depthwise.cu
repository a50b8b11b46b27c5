/*
 * depthwise.cu - depthwise convolution on a GPU: the ops of depthwise.c. Forward and dx: a thread
 * has one output pixel by a pack of channels (one channel where a channel has several filters) and
 * walks the taps in order. dw: a block has one tap, some channels and a slice of a lane's pixels
 * (conv.cuh); its threads walk every ry-th pixel and are added by halves.
 */
#include "op/depthwise.h"
#include "op/gpu/act.cuh"
#include "op/gpu/conv.cuh"
#include "op/gpu/pack.cuh"

#define THREADS 256

struct depthwise_in {
    tti_conv_dims d;
    int64_t mult;
    const void *x, *w, *bias; // dx: x is dy
    void *y, *z;              // z: NULL: none
    int act;
};

template <class T, int V>
static __global__ void __launch_bounds__(THREADS) forward(depthwise_in q, int64_t n)
{
    typedef tti_regs<T, V> regs;
    const tti_conv_dims d = q.d;
    const int64_t packs = d.c_out / V, step = (int64_t)gridDim.x * THREADS;
    for (int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x; at < n; at += step) {
        int64_t ch = at % packs * V, pixel = at / packs, line = pixel / d.ow;
        int64_t r = line % d.oh * d.sh - d.pt, c = pixel % d.ow * d.sw - d.pl;
        const T *x = (const T *)q.x + line / d.oh * d.h * d.w * d.c_in + ch / q.mult;
        float acc[V];
        for (int i = 0; i < V; i++)
            acc[i] = 0.0f;
        for (int64_t u = r < 0 ? -r : 0; u < d.kh && r + u < d.h; u++)
            for (int64_t v = c < 0 ? -c : 0; v < d.kw && c + v < d.w; v++) {
                regs a = *(const regs *)(x + ((r + u) * d.w + c + v) * d.c_in);
                regs w = *(const regs *)((const T *)q.w + (u * d.kw + v) * d.c_out + ch);
                for (int i = 0; i < V; i++)
                    acc[i] = fmaf(a.get(i), w.get(i), acc[i]);
            }
        regs y, z;
        for (int i = 0; i < V; i++) {
            float sum = acc[i] + 0.0f;
            if (q.bias != NULL)
                sum = sum + tti_get(((const T *)q.bias)[ch + i]);
            z.put(i, sum);
            y.put(i, tti_act(q.act, sum));
        }
        *(regs *)((T *)q.y + at * V) = y;
        if (q.z != NULL)
            *(regs *)((T *)q.z + at * V) = z;
    }
}

template <class T, int V>
static __global__ void __launch_bounds__(THREADS) backward(depthwise_in q, int64_t n)
{
    typedef tti_regs<T, V> regs;
    const tti_conv_dims d = q.d;
    const int64_t packs = d.c_in / V, step = (int64_t)gridDim.x * THREADS;
    for (int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x; at < n; at += step) {
        int64_t ch = at % packs * V, pixel = at / packs, line = pixel / d.w;
        int64_t r = line % d.h + d.pt, c = pixel % d.w + d.pl;
        const T *dy = (const T *)q.x + line / d.h * d.oh * d.ow * d.c_out + ch * q.mult;
        float acc[V];
        for (int i = 0; i < V; i++)
            acc[i] = 0.0f;
        for (int64_t u = r % d.sh; u < d.kh && u <= r; u += d.sh)
            for (int64_t v = c % d.sw; v < d.kw && v <= c; v += d.sw) {
                int64_t i = (r - u) / d.sh, j = (c - v) / d.sw;
                if (i >= d.oh || j >= d.ow)
                    continue;
                const T *g = dy + (i * d.ow + j) * d.c_out;
                const T *f = (const T *)q.w + (u * d.kw + v) * d.c_out + ch * q.mult;
                for (int64_t m = 0; m < q.mult; m++) { // packs have one filter
                    regs a = *(const regs *)(g + m), w = *(const regs *)(f + m);
                    for (int k = 0; k < V; k++)
                        acc[k] = fmaf(a.get(k), w.get(k), acc[k]);
                }
            }
        regs out;
        for (int i = 0; i < V; i++)
            out.put(i, acc[i] + 0.0f);
        *(regs *)((T *)q.y + at * V) = out;
    }
}

// ---- dw --------------------------------------------------------------------------------------

struct depthwise_dw_in {
    tti_conv_dims d;
    int64_t mult;
    const void *x, *dy;
    float *part; // [lanes, slices, taps, c_out]
    int64_t slices;
    tti_dw_rule rule;
    int wx, shift; // packs side by side: 1 << shift
};

// Blocks are taps by groups of channels, by slices, by lanes.
template <class T, int V>
static __global__ void __launch_bounds__(THREADS) dw_slices(tti_dw_images g, depthwise_dw_in q)
{
    typedef tti_regs<T, V> regs;
    __shared__ float half_sum[V * THREADS / 2];
    const tti_conv_dims d = q.d;
    const int tx = (int)threadIdx.x & (q.wx - 1), ty = (int)threadIdx.x >> q.shift;
    const int ry = THREADS >> q.shift;
    const int64_t groups = (d.c_out + q.wx * V - 1) / (q.wx * V), tap = blockIdx.x / groups;
    const int64_t ch = (blockIdx.x % groups * q.wx + tx) * V, u = tap / d.kw, v = tap % d.kw;
    const int64_t per = d.oh * d.ow, first = g.bound[blockIdx.z] * per;
    const int64_t pixels = g.bound[blockIdx.z + 1] * per - first;
    const int64_t slice = tti_dw_slice(pixels, q.rule), begin = first + blockIdx.y * slice;
    const int64_t last = first + pixels, end = begin + slice < last ? begin + slice : last;
    if (begin >= last) // of the whole block
        return;
    float acc[V];
    for (int i = 0; i < V; i++)
        acc[i] = 0.0f;
    for (int64_t p = begin + ty; ch < d.c_out && p < end; p += ry) {
        int64_t line = p / d.ow, r = line % d.oh * d.sh - d.pt + u, c = p % d.ow * d.sw - d.pl + v;
        if (r < 0 || r >= d.h || c < 0 || c >= d.w)
            continue;
        int64_t from = ((line / d.oh * d.h + r) * d.w + c) * d.c_in + ch / q.mult;
        regs a = *(const regs *)((const T *)q.x + from);
        regs b = *(const regs *)((const T *)q.dy + p * d.c_out + ch);
        for (int i = 0; i < V; i++)
            acc[i] = fmaf(a.get(i), b.get(i), acc[i]);
    }
    for (int half = ry / 2; half > 0; half >>= 1) {
        int at = (int)threadIdx.x - (half << q.shift); // of the one that takes
        __syncthreads();
        for (int i = 0; ty >= half && ty < 2 * half && i < V; i++)
            half_sum[i * THREADS / 2 + at] = acc[i];
        __syncthreads();
        for (int i = 0; ty < half && i < V; i++)
            acc[i] = acc[i] + half_sum[i * THREADS / 2 + (int)threadIdx.x];
    }
    float *out =
        q.part + ((int64_t)(g.first + blockIdx.z) * q.slices + blockIdx.y) * d.kh * d.kw * d.c_out;
    for (int i = 0; ty == 0 && ch < d.c_out && i < V; i++)
        out[tap * d.c_out + ch + i] = acc[i];
}

// ---- launches --------------------------------------------------------------------------------

static bool in_packs(const tti_conv_dims *d, tt_dtype t) // by the shape
{
    return d->c_in == d->c_out && d->c_in % (t == TT_F32 ? 4 : 8) == 0;
}

// kernel<T, V> over n numbers of output 0.
#define MAP_LAUNCH(l, total, packs, q, kernel)                                                     \
    TTI_FLOATS((l)->out[0].dtype, T, {                                                             \
        const int wide = tti_pack<T>::n;                                                           \
        int64_t items = (packs) ? (total) / wide : (total);                                        \
        if (packs)                                                                                 \
            TTI_LAUNCH(l, tti_blocks(l, items, THREADS), THREADS, 0, (kernel<T, wide>), q, items); \
        else                                                                                       \
            TTI_LAUNCH(l, tti_blocks(l, items, THREADS), THREADS, 0, (kernel<T, 1>), q, items);    \
    })

static tt_status depthwise(const tt_launch *l)
{
    const tti_conv_attr *a = (const tti_conv_attr *)l->attr;
    const tt_shape *w = &l->in[1].shape;
    depthwise_in q = {};
    q.d = tti_conv_dims_on(a, &l->in[0].shape, w->dim[0], w->dim[1], &l->out[0].shape);
    q.mult = q.d.c_out / q.d.c_in;
    q.x = l->in[0].data;
    q.w = l->in[1].data;
    q.bias = l->n_in > 2 ? l->in[2].data : NULL;
    q.y = l->out[0].data;
    q.z = l->n_out > 1 ? l->out[1].data : NULL;
    q.act = a->act;
    if (l->out[0].count == 0)
        return TT_OK;
    bool packs = in_packs(&q.d, l->out[0].dtype) && tti_is_aligned(q.x) && tti_is_aligned(q.w) &&
                 tti_is_aligned(q.y) && tti_is_aligned(q.z);
    MAP_LAUNCH(l, l->out[0].count, packs, q, forward)
    return tti_cuda_launched(l);
}

static tt_status depthwise_dx(const tt_launch *l)
{
    const tt_shape *w = &l->in[1].shape;
    depthwise_in q = {};
    q.d = tti_conv_dims_on((const tti_conv_attr *)l->attr, &l->out[0].shape, w->dim[0], w->dim[1],
                           &l->in[0].shape);
    q.mult = q.d.c_out / q.d.c_in;
    q.x = l->in[0].data;
    q.w = l->in[1].data;
    q.y = l->out[0].data;
    if (l->out[0].count == 0)
        return TT_OK;
    bool packs = in_packs(&q.d, l->out[0].dtype) && tti_is_aligned(q.x) && tti_is_aligned(q.w) &&
                 tti_is_aligned(q.y);
    MAP_LAUNCH(l, l->out[0].count, packs, q, backward)
    return tti_cuda_launched(l);
}

static tti_conv_dims dw_dims(const void *attr, const tt_arg *x, const tt_arg *dy)
{
    const tti_conv_attr *a = (const tti_conv_attr *)attr;
    return tti_conv_dims_on(a, &x->shape, a->size.v[0], a->size.v[1], &dy->shape);
}

// Numbers side by side in a pack, packs side by side in a block: by the shape, as they decide bits.
static void dw_layout(const tti_conv_dims *d, tt_dtype t, int *v, int *wx, int *shift)
{
    bool packs = in_packs(d, t);
    *v = !packs ? 1 : t == TT_F32 ? 4 : 8;
    *wx = 1;
    *shift = 0;
    for (; *wx < (packs ? 8 : 32) && (int64_t)*wx * *v < d->c_out; *wx *= 2)
        ++*shift;
}

static void dw_sum_of(const tti_conv_dims *d, const tt_arg *x, const tt_lanes *ln, tti_dw_sum *q)
{
    int v, wx, shift;
    dw_layout(d, x->dtype, &v, &wx, &shift);
    int64_t taps = d->kh * d->kw, blocks = taps * ((d->c_out + v * wx - 1) / (v * wx));
    tti_dw_cut(x, ln, d->oh * d->ow, taps * d->c_out, q);
    tti_dw_slice_up(q, tti_dw_pixels(d->oh * d->ow, blocks));
}

static tt_status depthwise_dw(const tt_launch *l)
{
    const tti_conv_dims d = dw_dims(l->attr, &l->in[0], &l->in[1]);
    tti_dw_sum sum;
    dw_sum_of(&d, &l->in[0], l->lanes, &sum);
    return tti_dw_run(l, &sum, [&](const tti_dw_images &g, float *part) {
        depthwise_dw_in q = {};
        int v;
        q.d = d;
        q.mult = d.c_out / d.c_in;
        q.x = l->in[0].data;
        q.dy = l->in[1].data;
        q.part = part;
        q.slices = sum.slices;
        q.rule = sum.rule;
        dw_layout(&d, l->in[0].dtype, &v, &q.wx, &q.shift);
        // one channel a thread keeps the order: as many threads walk the pixels
        bool packs = v > 1 && tti_is_aligned(q.x) && tti_is_aligned(q.dy);
        v = packs ? v : 1;
        int64_t blocks = d.kh * d.kw * ((d.c_out + v * q.wx - 1) / (v * q.wx));
        dim3 grid((unsigned)blocks, (unsigned)sum.slices, (unsigned)g.n);
        TTI_FLOATS(l->in[0].dtype, T, {
            const int wide = tti_pack<T>::n;
            if (packs)
                TTI_LAUNCH(l, grid, THREADS, 0, (dw_slices<T, wide>), g, q);
            else
                TTI_LAUNCH(l, grid, THREADS, 0, (dw_slices<T, 1>), g, q);
        })
        return tti_cuda_launched(l);
    });
}

static tt_status prep_none(tt_prep *p)
{
    p->scratch_bytes = 0;
    return TT_OK;
}

static tt_status prep_dw(tt_prep *p)
{
    const tti_conv_dims d = dw_dims(p->attr, &p->in[0], &p->in[1]);
    tti_dw_sum sum;
    dw_sum_of(&d, &p->in[0], p->lanes, &sum);
    p->scratch_bytes = tti_dw_scratch(&sum);
    return TT_OK;
}

extern "C" const tti_cuda_row tti_cuda_depthwise[] = {
    TTI_ROW("depthwise_conv2d", prep_none, depthwise),
    TTI_ROW("depthwise_conv2d_dx", prep_none, depthwise_dx),
    TTI_ROW("depthwise_conv2d_dw", prep_dw, depthwise_dw),
    TTI_ROWS_END,
};
