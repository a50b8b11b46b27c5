/*
 * pool.cu - pooling on a GPU: the ops of pool.c. A thread has one output pixel by a pack of
 * channels. Gradients gather: each entry of dx adds what the windows that hold it give, in the
 * order of windows, so nothing is added twice at once. The gradient of a maximum first notes where
 * in its window each maximum lies.
 */
#include "op/pack.cuh"
#include "op/pool.h"

#define THREADS 256
#define NONE    255u // no place: the maximum is NaN
#define NARROW  255  // windows with more entries than this note places in 4 bytes

struct pool_in {
    tti_pool_tune t;
    const void *x, *dy;
    void *y;
    void *place; // [batch, oh, ow, c] of 1 or 4 bytes
    bool wide;   // 4
};

// The part of a window that lies inside x: rows [r0, r1), columns [c0, c1).
struct window {
    int64_t r0, r1, c0, c1;
};
__device__ static inline window window_at(const tti_pool_tune &t, int64_t i, int64_t j)
{
    int64_t r = i * t.sh - t.pt, c = j * t.sw - t.pl;
    window w = {r > 0 ? r : 0, r + t.kh < t.h ? r + t.kh : t.h, c > 0 ? c : 0,
                c + t.kw < t.w ? c + t.kw : t.w};
    return w;
}
// The windows [lo, hi) along an axis that hold position at.
__device__ static inline void windows_of(int64_t at, int64_t pad, int64_t k, int64_t stride,
                                         int64_t n, int64_t *lo, int64_t *hi)
{
    int64_t p = at + pad;
    *lo = p < k ? 0 : (p - k) / stride + 1;
    *hi = p / stride + 1 < n ? p / stride + 1 : n;
}

// One of batch x rows x cols pixels, by a pack of channels.
struct place {
    int64_t image, i, j, ch;
};
template <int V>
__device__ static inline place place_of(int64_t at, int64_t rows, int64_t cols, int64_t c)
{
    int64_t packs = c / V, pixel = at / packs, line = pixel / cols;
    place p = {line / rows, line % rows, pixel % cols, at % packs * V};
    return p;
}

// Places of V channels, of one byte each: the first in the lowest. All of a pack move at once.
template <int V> __device__ static inline uint64_t get_places(const uint8_t *p)
{
    return V == 8 ? *(const uint64_t *)p : V == 4 ? *(const uint32_t *)p : *p;
}
template <int V> __device__ static inline void put_places(uint8_t *p, uint64_t places)
{
    if (V == 8)
        *(uint64_t *)p = places;
    else if (V == 4)
        *(uint32_t *)p = (uint32_t)places;
    else
        *p = (uint8_t)places;
}

// Largest entry or mean. A later entry replaces the maximum only when it is larger.
template <class T, int V, bool MAX>
static __global__ void __launch_bounds__(THREADS) pool(pool_in q, int64_t n)
{
    typedef tti_regs<T, V> regs;
    const tti_pool_tune t = q.t;
    int64_t step = (int64_t)gridDim.x * THREADS;
    for (int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x; at < n; at += step) {
        place p = place_of<V>(at, t.oh, t.ow, t.c);
        window w = window_at(t, p.i, p.j);
        const T *x = (const T *)q.x + p.image * t.h * t.w * t.c + p.ch;
        float acc[V];
        regs v = *(const regs *)(x + (w.r0 * t.w + w.c0) * t.c);
        for (int i = 0; i < V; i++)
            acc[i] = MAX ? v.get(i) : 0.0f;
        for (int64_t r = w.r0; r < w.r1; r++)
            for (int64_t c = w.c0; c < w.c1; c++) {
                v = *(const regs *)(x + (r * t.w + c) * t.c);
                for (int i = 0; i < V; i++)
                    acc[i] = MAX ? (v.get(i) > acc[i] ? v.get(i) : acc[i]) : acc[i] + v.get(i);
            }
        float count = (float)((w.r1 - w.r0) * (w.c1 - w.c0));
        for (int i = 0; i < V; i++)
            v.put(i, MAX ? acc[i] + 0.0f : (acc[i] + 0.0f) / count);
        *(regs *)((T *)q.y + at * V) = v;
    }
}

// Where in its window the first largest entry lies: row by row, counted from the window's corner.
template <class T, int V>
static __global__ void __launch_bounds__(THREADS) find_max(pool_in q, int64_t n)
{
    typedef tti_regs<T, V> regs;
    const tti_pool_tune t = q.t;
    int64_t step = (int64_t)gridDim.x * THREADS;
    for (int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x; at < n; at += step) {
        place p = place_of<V>(at, t.oh, t.ow, t.c);
        window w = window_at(t, p.i, p.j);
        const T *x = (const T *)q.x + p.image * t.h * t.w * t.c + p.ch;
        int64_t top = p.i * t.sh - t.pt, left = p.j * t.sw - t.pl;
        float max[V];
        uint32_t where[V];
        bool first = true;
        for (int64_t r = w.r0; r < w.r1; r++)
            for (int64_t c = w.c0; c < w.c1; c++, first = false) {
                regs v = *(const regs *)(x + (r * t.w + c) * t.c);
                uint32_t here = (uint32_t)((r - top) * t.kw + c - left);
                for (int i = 0; i < V; i++)
                    if (first || v.get(i) > max[i]) {
                        max[i] = v.get(i);
                        where[i] = here;
                    }
            }
        uint64_t places = 0;
        for (int i = 0; i < V; i++) {
            uint32_t to = max[i] != max[i] ? (q.wide ? UINT32_MAX : NONE) : where[i];
            if (q.wide)
                ((uint32_t *)q.place)[at * V + i] = to;
            else
                places |= (uint64_t)to << 8 * i;
        }
        if (!q.wide)
            put_places<V>((uint8_t *)q.place + at * V, places);
    }
}

// dx of both poolings: MAX adds dy where the window's maximum is here, else dy / entries.
template <class T, int V, bool MAX>
static __global__ void __launch_bounds__(THREADS) pool_grad(pool_in q, int64_t n)
{
    typedef tti_regs<T, V> regs;
    const tti_pool_tune t = q.t;
    int64_t step = (int64_t)gridDim.x * THREADS;
    for (int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x; at < n; at += step) {
        place p = place_of<V>(at, t.h, t.w, t.c);
        int64_t i0, i1, j0, j1;
        windows_of(p.i, t.pt, t.kh, t.sh, t.oh, &i0, &i1);
        windows_of(p.j, t.pl, t.kw, t.sw, t.ow, &j0, &j1);
        float acc[V];
        for (int k = 0; k < V; k++)
            acc[k] = 0.0f;
        for (int64_t i = i0; i < i1; i++)
            for (int64_t j = j0; j < j1; j++) {
                int64_t from = ((p.image * t.oh + i) * t.ow + j) * t.c + p.ch;
                regs dy = *(const regs *)((const T *)q.dy + from);
                window w = window_at(t, i, j);
                float count = (float)((w.r1 - w.r0) * (w.c1 - w.c0));
                uint32_t here = (uint32_t)((p.i + t.pt - i * t.sh) * t.kw + p.j + t.pl - j * t.sw);
                uint64_t places = 0;
                if (MAX && !q.wide)
                    places = get_places<V>((const uint8_t *)q.place + from);
                for (int k = 0; k < V; k++) {
                    uint32_t place = (uint32_t)(places >> 8 * k) & 255;
                    if (MAX && q.wide)
                        place = ((const uint32_t *)q.place)[from + k];
                    if (!MAX)
                        acc[k] = acc[k] + dy.get(k) / count;
                    else if (here == place)
                        acc[k] = acc[k] + dy.get(k);
                }
            }
        regs out;
        for (int k = 0; k < V; k++)
            out.put(k, acc[k] + 0.0f);
        *(regs *)((T *)q.y + at * V) = out;
    }
}

// ---- launches --------------------------------------------------------------------------------

static tti_pool_tune tune_of(const tti_pool_attr *a, const tt_shape *x, const tt_shape *y)
{
    tti_pool_tune t = {};
    t.batch = x->dim[0];
    t.h = x->dim[1];
    t.w = x->dim[2];
    t.c = x->dim[3];
    t.oh = y->dim[1];
    t.ow = y->dim[2];
    t.kh = a->size.v[0];
    t.kw = a->size.v[1];
    t.sh = a->stride.v[0];
    t.sw = a->stride.v[1];
    t.pt = a->pad.v[0];
    t.pl = a->pad.v[2];
    return t;
}

// kernel<T, V> over n numbers of channels c, in packs where addresses allow.
#define POOL_LAUNCH(l, dtype, total, c, packs, q, kernel, ...)                                   \
    TTI_FLOATS(dtype, T, {                                                                       \
        const int wide = tti_pack<T>::n;                                                         \
        int64_t items = (packs) && (c) % wide == 0 ? (total) / wide : (total);                   \
        if ((packs) && (c) % wide == 0)                                                          \
            TTI_LAUNCH(l, tti_blocks(l, items, THREADS), THREADS, 0,                             \
                       (kernel<T, wide __VA_ARGS__>), q, items);                                 \
        else                                                                                     \
            TTI_LAUNCH(l, tti_blocks(l, items, THREADS), THREADS, 0, (kernel<T, 1 __VA_ARGS__>), \
                       q, items);                                                                \
    })

template <bool MAX> static tt_status run_pool(const tt_launch *l)
{
    const tt_arg *x = &l->in[0], *y = &l->out[0];
    pool_in q = {};
    q.t = tune_of((const tti_pool_attr *)l->attr, &x->shape, &y->shape);
    q.x = x->data;
    q.y = y->data;
    if (y->count == 0)
        return TT_OK;
    bool packs = tti_is_aligned(q.x) && tti_is_aligned(q.y);
    POOL_LAUNCH(l, y->dtype, y->count, q.t.c, packs, q, pool, , MAX)
    return tti_cuda_launched(l);
}

static tt_status max_grad(const tt_launch *l)
{
    const tt_arg *x = &l->in[0], *dy = &l->in[1], *dx = &l->out[0];
    pool_in q = {};
    q.t = tune_of((const tti_pool_attr *)l->attr, &x->shape, &dy->shape);
    q.x = x->data;
    q.dy = dy->data;
    q.y = dx->data;
    q.place = l->scratch;
    q.wide = q.t.kh * q.t.kw > NARROW;
    if (dx->count == 0)
        return TT_OK;
    bool packs = tti_is_aligned(q.x) && tti_is_aligned(q.dy) && tti_is_aligned(q.y);
    POOL_LAUNCH(l, dx->dtype, dy->count, q.t.c, packs, q, find_max)
    POOL_LAUNCH(l, dx->dtype, dx->count, q.t.c, packs, q, pool_grad, , true)
    return tti_cuda_launched(l);
}

static tt_status avg_grad(const tt_launch *l)
{
    const tt_arg *dy = &l->in[0], *dx = &l->out[0];
    pool_in q = {};
    q.t = tune_of((const tti_pool_attr *)l->attr, &dx->shape, &dy->shape);
    q.dy = dy->data;
    q.y = dx->data;
    if (dx->count == 0)
        return TT_OK;
    bool packs = tti_is_aligned(q.dy) && tti_is_aligned(q.y);
    POOL_LAUNCH(l, dx->dtype, dx->count, q.t.c, packs, q, pool_grad, , false)
    return tti_cuda_launched(l);
}

static tt_status prep_none(tt_prep *p)
{
    p->scratch_bytes = 0;
    return TT_OK;
}

static tt_status prep_max_grad(tt_prep *p)
{
    const tti_pool_attr *a = (const tti_pool_attr *)p->attr;
    size_t bytes = a->size.v[0] * a->size.v[1] > NARROW ? sizeof(uint32_t) : sizeof(uint8_t);
    p->scratch_bytes = bytes * (size_t)p->in[1].count;
    return TT_OK;
}

extern "C" const tti_cuda_row tti_cuda_pool[] = {
    TTI_ROW("max_pool2d", prep_none, run_pool<true>),
    TTI_ROW("max_pool2d_grad", prep_max_grad, max_grad),
    TTI_ROW("avg_pool2d", prep_none, run_pool<false>),
    TTI_ROW("avg_pool2d_grad", prep_none, avg_grad),
    TTI_ROWS_END,
};
