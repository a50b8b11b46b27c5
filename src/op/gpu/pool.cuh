/*
 * pool.cuh - pooling of any windows on a GPU. A thread has one output pixel by a pack of channels.
 * Gradients gather: each entry of dx adds what the windows that hold it give, in the order of
 * windows, so nothing is added twice at once. The gradient of a maximum first notes where in its
 * window each maximum lies.
 */
#ifndef TUTTI_OP_POOL_CUH
#define TUTTI_OP_POOL_CUH

#include "op/gpu/pack.cuh"
#include "op/pool.h"

#define TTI_POOL_THREADS 256

// Sizes of images and windows, in 32 bits: kernels divide by them.
struct pool_dims {
    int h, w, c, oh, ow, kh, kw, sh, sw, pt, pl;
};
struct pool_in {
    pool_dims t;
    const void *x, *dy;
    void *y;
    void *place; // [batch, oh, ow, c] of 1 or 4 bytes
    bool wide;   // 4
};

// The part of a window that lies inside x: rows [r0, r1), columns [c0, c1).
struct window {
    int r0, r1, c0, c1;
};
__device__ static inline window window_at(const pool_dims &t, int i, int j)
{
    int r = i * t.sh - t.pt, c = j * t.sw - t.pl;
    window w = {r > 0 ? r : 0, r + t.kh < t.h ? r + t.kh : t.h, c > 0 ? c : 0,
                c + t.kw < t.w ? c + t.kw : t.w};
    return w;
}
__device__ static inline float entries(const window &w)
{
    return (float)((int64_t)(w.r1 - w.r0) * (w.c1 - w.c0));
}
__device__ static inline int64_t at_pixel(const pool_dims &t, int row, int col)
{
    return ((int64_t)row * t.w + col) * t.c;
}
// The windows [lo, hi) along an axis that hold position at.
__device__ static inline void windows_of(int at, int pad, int k, int stride, int n, int *lo,
                                         int *hi)
{
    unsigned p = (unsigned)(at + pad), s = (unsigned)stride, last = p / s + 1;
    *lo = (int)p < k ? 0 : (int)((p - (unsigned)k) / s) + 1;
    *hi = last < (unsigned)n ? (int)last : n;
}

// One of batch x rows x cols pixels, by a pack of channels.
struct place {
    int64_t image;
    int i, j, ch;
};
// *n becomes n / by; the rest. Few numbers need 64 bits.
__device__ static inline int split(int64_t *n, int by)
{
    int64_t q = *n >> 32 == 0 ? (int64_t)((uint32_t)*n / (uint32_t)by) : *n / by;
    int rest = (int)(*n - q * by);
    *n = q;
    return rest;
}
template <int V> __device__ static inline place place_of(int64_t at, int rows, int cols, int c)
{
    place p;
    p.ch = split(&at, c / V) * V;
    p.j = split(&at, cols);
    p.i = split(&at, rows);
    p.image = at;
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

// Whether a later entry replaces the maximum: it is larger, or the first NaN.
__device__ static inline bool is_above(float x, float max)
{
    return max == max && !(x <= max);
}

// Largest entry or mean.
template <class T, int V, bool MAX>
static __global__ void __launch_bounds__(TTI_POOL_THREADS) pool(pool_in q, int64_t n)
{
    typedef tti_regs<T, V> regs;
    const pool_dims t = q.t;
    int64_t step = (int64_t)gridDim.x * TTI_POOL_THREADS;
    for (int64_t at = (int64_t)blockIdx.x * TTI_POOL_THREADS + threadIdx.x; at < n; at += step) {
        place p = place_of<V>(at, t.oh, t.ow, t.c);
        window w = window_at(t, p.i, p.j);
        const T *x = (const T *)q.x + p.image * t.h * t.w * t.c + p.ch;
        float acc[V];
        regs v = *(const regs *)(x + at_pixel(t, w.r0, w.c0));
        for (int i = 0; i < V; i++)
            acc[i] = MAX ? v.get(i) : 0.0f;
        for (int r = w.r0; r < w.r1; r++)
            for (int c = w.c0; c < w.c1; c++) {
                v = *(const regs *)(x + at_pixel(t, r, c));
                for (int i = 0; i < V; i++)
                    acc[i] = !MAX                         ? acc[i] + v.get(i)
                             : is_above(v.get(i), acc[i]) ? v.get(i)
                                                          : acc[i];
            }
        float count = entries(w);
        for (int i = 0; i < V; i++)
            v.put(i, MAX ? acc[i] + 0.0f : (acc[i] + 0.0f) / count);
        v.store((T *)q.y + at * V);
    }
}

// Where in its window the first NaN or largest entry lies: row by row, from the window's corner.
template <class T, int V>
static __global__ void __launch_bounds__(TTI_POOL_THREADS) find_max(pool_in q, int64_t n)
{
    typedef tti_regs<T, V> regs;
    const pool_dims t = q.t;
    int64_t step = (int64_t)gridDim.x * TTI_POOL_THREADS;
    for (int64_t at = (int64_t)blockIdx.x * TTI_POOL_THREADS + threadIdx.x; at < n; at += step) {
        place p = place_of<V>(at, t.oh, t.ow, t.c);
        window w = window_at(t, p.i, p.j);
        const T *x = (const T *)q.x + p.image * t.h * t.w * t.c + p.ch;
        int top = p.i * t.sh - t.pt, left = p.j * t.sw - t.pl;
        float max[V];
        uint32_t where[V];
        bool first = true;
        for (int r = w.r0; r < w.r1; r++)
            for (int c = w.c0; c < w.c1; c++, first = false) {
                regs v = *(const regs *)(x + at_pixel(t, r, c));
                uint32_t here = (uint32_t)((r - top) * t.kw + c - left);
                for (int i = 0; i < V; i++)
                    if (first || is_above(v.get(i), max[i])) {
                        max[i] = v.get(i);
                        where[i] = here;
                    }
            }
        uint64_t places = 0;
        for (int i = 0; i < V; i++) {
            if (q.wide)
                ((uint32_t *)q.place)[at * V + i] = where[i];
            else
                places |= (uint64_t)where[i] << 8 * i;
        }
        if (!q.wide)
            put_places<V>((uint8_t *)q.place + at * V, places);
    }
}

// dx of both poolings: MAX adds dy where the window's maximum is here, else dy / entries.
template <class T, int V, bool MAX>
static __global__ void __launch_bounds__(TTI_POOL_THREADS) pool_grad(pool_in q, int64_t n)
{
    typedef tti_regs<T, V> regs;
    const pool_dims t = q.t;
    int64_t step = (int64_t)gridDim.x * TTI_POOL_THREADS;
    for (int64_t at = (int64_t)blockIdx.x * TTI_POOL_THREADS + threadIdx.x; at < n; at += step) {
        place p = place_of<V>(at, t.h, t.w, t.c);
        int i0, i1, j0, j1;
        windows_of(p.i, t.pt, t.kh, t.sh, t.oh, &i0, &i1);
        windows_of(p.j, t.pl, t.kw, t.sw, t.ow, &j0, &j1);
        float acc[V];
        for (int k = 0; k < V; k++)
            acc[k] = 0.0f;
        for (int i = i0; i < i1; i++)
            for (int j = j0; j < j1; j++) {
                int64_t from = ((p.image * t.oh + i) * t.ow + j) * t.c + p.ch;
                regs dy = *(const regs *)((const T *)q.dy + from);
                float count = MAX ? 1.0f : entries(window_at(t, i, j));
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
        out.store((T *)q.y + at * V);
    }
}

#endif
