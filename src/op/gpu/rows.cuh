/*
 * rows.cuh - a row of a tensor by a group of threads: a warp, or a whole block of TTI_ROW_THREADS.
 *
 * Sums along a row: pack k of the row, counted from its first element, belongs to thread k mod the
 * group, wherever the row lies; so its order depends on the row's length and type alone. What is
 * written element by element may be cut as addresses like it.
 */
#ifndef TUTTI_OP_ROWS_CUH
#define TUTTI_OP_ROWS_CUH

#include "cuda/kernel.cuh"

#define TTI_ROW_THREADS 256
#define TTI_ROW_WARP    1024 // elements of a row that one warp takes

// Launches kernel<T, G> over rows: G is 32 or TTI_ROW_THREADS.
static inline unsigned tti_row_blocks(int64_t rows, int group)
{
    int64_t per = TTI_ROW_THREADS / group, want = (rows + per - 1) / per;
    return (unsigned)tti_min64(want, 1 << 24); // kernels walk on by the grid's stride
}
#define TTI_ROW_LAUNCH(l, kernel, dtype, rows, cols, ...)                               \
    do {                                                                                \
        TTI_FLOATS(dtype, T, TTI_ROW_LAUNCH_OF(l, kernel, T, rows, cols, __VA_ARGS__);) \
    } while (0)
#define TTI_ROW_LAUNCH_OF(l, kernel, T, rows, cols, ...)                                   \
    do {                                                                                   \
        if ((cols) <= TTI_ROW_WARP)                                                        \
            TTI_LAUNCH(l, tti_row_blocks((rows), 32), TTI_ROW_THREADS, 0, (kernel<T, 32>), \
                       __VA_ARGS__);                                                       \
        else                                                                               \
            TTI_LAUNCH(l, tti_row_blocks((rows), TTI_ROW_THREADS), TTI_ROW_THREADS, 0,     \
                       (kernel<T, TTI_ROW_THREADS>), __VA_ARGS__);                         \
    } while (0)

// The first row of this group, and the step to its next.
template <int G> __device__ static inline int64_t tti_row_first(void)
{
    return (int64_t)blockIdx.x * (TTI_ROW_THREADS / G) + (int)threadIdx.x / G;
}
template <int G> __device__ static inline int64_t tti_row_step(void)
{
    return (int64_t)gridDim.x * (TTI_ROW_THREADS / G);
}

template <int G> __device__ static inline float tti_group_sum(float x)
{
    return G == 32 ? tti_warp_sum(x) : tti_block_sum(x);
}
template <int G> __device__ static inline float tti_group_max(float x)
{
    __shared__ float part[32];
    x = tti_warp_max(x);
    if (G == 32)
        return x;
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    __syncthreads(); // part may still be read by the maximum before
    if (lane == 0)
        part[warp] = x;
    __syncthreads();
    return tti_warp_max(part[lane < G / 32 ? lane : 0]);
}

// The pack at p, of which n elements are there; the others become `other`.
template <class T>
__device__ static inline void tti_row_pack(const T *p, int64_t n, float other, float *x)
{
    const int V = tti_pack<T>::n;
    if (n >= V && ((uintptr_t)p & 15) == 0) {
        tti_unpack(*(const tti_pack<T> *)p, x);
        return;
    }
#pragma unroll
    for (int i = 0; i < V; i++)
        x[i] = i < n ? tti_get(p[i]) : other;
}

// Writes m elements of a pack.
template <class T> __device__ static inline void tti_row_put(T *to, int m, const float *x)
{
    const int V = tti_pack<T>::n;
    tti_pack<T> p;
    tti_repack(p, x);
    if (m == V && ((uintptr_t)to & 15) == 0) {
        *(tti_pack<T> *)to = p;
        return;
    }
#pragma unroll
    for (int i = 0; i < V; i++)
        if (i < m)
            to[i] = p.v[i];
}

/*
 * Calls one(x, j, v) with every pack of a row in the order of sums: x has tti_pack<T>::n elements
 * from j on, of which v are the row's; the others are `other`. Four packs are on their way at once.
 */
template <class T, int G, class F>
__device__ static inline void tti_row_walk(const T *row, int64_t n, float other, F one)
{
    const int V = tti_pack<T>::n;
    int64_t j = (int64_t)((int)threadIdx.x % G) * V;
    if (((uintptr_t)row & 15) == 0)
        for (; j + 3 * G * V + V <= n; j += 4 * G * V) {
            tti_pack<T> p[4];
#pragma unroll
            for (int k = 0; k < 4; k++)
                p[k] = *(const tti_pack<T> *)(row + j + k * G * V);
#pragma unroll
            for (int k = 0; k < 4; k++) {
                float x[V];
                tti_unpack(p[k], x);
                one(x, j + k * G * V, V);
            }
        }
    for (; j < n; j += G * V) {
        float x[V];
        tti_row_pack(row + j, n - j, other, x);
        one(x, j, (int)tti_min64(n - j, V));
    }
}

/*
 * Changes a row element by element: one(v, j, m) turns the m elements v, from place j on, into
 * those of y; x and y may be the same. Cut so that packs of y are aligned where x's are too.
 */
template <class T, int G, class F>
__device__ static inline void tti_row_map(const T *x, T *y, int64_t n, F one)
{
    const int V = tti_pack<T>::n;
    int t = (int)threadIdx.x % G;
    int64_t head = n, packs = 0;
    if ((((uintptr_t)x ^ (uintptr_t)y) & 15) == 0) {
        head = tti_min64((int64_t)((16 - ((uintptr_t)y & 15)) & 15) / (int64_t)sizeof(T), n);
        packs = (n - head) / V;
    }
    const tti_pack<T> *from = (const tti_pack<T> *)(x + head);
    tti_pack<T> *to = (tti_pack<T> *)(y + head);
    for (int64_t k = t; k < packs; k += 4 * G) {
        tti_pack<T> p[4] = {};
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (k + i * G < packs)
                p[i] = from[k + i * G];
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (k + i * G < packs) {
                float v[V];
                tti_unpack(p[i], v);
                one(v, head + (k + i * G) * V, V);
                tti_repack(p[i], v);
                to[k + i * G] = p[i];
            }
    }
    int64_t rest = n - packs * V; // the head, and what is left after the packs
    for (int64_t k = t; k < rest; k += G) {
        int64_t j = k < head ? k : packs * V + k;
        float v = tti_get(x[j]);
        one(&v, j, 1);
        tti_put(y[j], v);
    }
}

#endif
