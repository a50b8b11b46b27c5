/*
 * pool_square.cuh - largest entries of windows of K x K, K known when compiled, and their gradient
 * at strides of S: what most networks have. All entries of a window are on their way at once.
 *
 * Entries past an edge of the image are read as the nearest ones inside, which are of the window
 * too: none comes before its turn, and none is larger than itself. Entries are compared as they lie
 * in words of 32 bits, two bf16 or f16 at once. A block has a row of windows, or of patches of dx:
 * S x S entries that the same windows hold.
 */
#ifndef TUTTI_OP_POOL_SQUARE_CUH
#define TUTTI_OP_POOL_SQUARE_CUH

#include "op/gpu/pool.cuh"

#define TTI_POOL_ROW 512 // threads of a row, at most

// ---- words -----------------------------------------------------------------------------------

/*
 * larger: the larger elements of two words; NaN where either is. equal: all bits of elements that
 * are. One element after the other is for cards, and emulations, that lack it.
 */
template <class T> struct tti_pool_words {
    static const int each = 4 / (int)sizeof(T); // elements
    static const uint32_t ones = each == 1 ? 1 : 0x00010001u;

    __device__ static float get(uint32_t w, int i)
    {
        T t = {(uint16_t)(w >> 16 * i)};
        return tti_get(t);
    }
    __device__ static uint32_t larger(uint32_t a, uint32_t b)
    {
        uint32_t r = 0;
        for (int i = 0; i < each; i++) {
            float x = get(a, i), y = get(b, i);
            r |= (x > y || x != x ? a : b) & 0xffffu << 16 * i;
        }
        return r;
    }
    __device__ static uint32_t equal(uint32_t a, uint32_t b)
    {
        uint32_t r = 0;
        for (int i = 0; i < each; i++)
            r |= get(a, i) == get(b, i) ? 0xffffu << 16 * i : 0;
        return r;
    }
};
template <> __device__ inline uint32_t tti_pool_words<float>::larger(uint32_t a, uint32_t b)
{
#ifdef __CUDA_ARCH__
    float r;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(tti_float(a)), "f"(tti_float(b)));
    return tti_bits(r);
#else
    float x = tti_float(a), y = tti_float(b);
    return x > y || x != x ? a : b;
#endif
}
template <> __device__ inline uint32_t tti_pool_words<float>::equal(uint32_t a, uint32_t b)
{
    return tti_float(a) == tti_float(b) ? UINT32_MAX : 0;
}
#ifdef __CUDA_ARCH__
#define TTI_POOL_WORDS(type, name, op)                                                        \
    template <> __device__ inline uint32_t tti_pool_words<type>::name(uint32_t a, uint32_t b) \
    {                                                                                         \
        uint32_t r;                                                                           \
        asm(op " %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));                                    \
        return r;                                                                             \
    }
TTI_POOL_WORDS(tti_bf16, larger, "max.NaN.bf16x2")
TTI_POOL_WORDS(tti_f16, larger, "max.NaN.f16x2")
TTI_POOL_WORDS(tti_f16, equal, "set.eq.u32.f16x2")
#if __CUDA_ARCH__ >= 900
TTI_POOL_WORDS(tti_bf16, equal, "set.eq.u32.bf16x2")
#endif
#endif

// ---- maxima ----------------------------------------------------------------------------------

// The K x K entries of window (i, j), a pack of channels of each.
template <class T, int K> struct tti_pool_window {
    typedef tti_regs<T, tti_pack<T>::n> regs;
    typedef tti_pool_words<T> words;
    regs v[K * K];
    uint32_t row[K],
        column[K]; // places of entries, in each element of a word: a row's and a column's

    __device__ static int within(int at, int n)
    {
        return at < 0 ? 0 : at < n ? at : n - 1;
    }
    __device__ void load(const pool_dims &t, const T *x, int i, int j)
    {
        const int top = i * t.sh - t.pt, left = j * t.sw - t.pl;
        int64_t to[K];
#pragma unroll
        for (int b = 0; b < K; b++) {
            int at = within(left + b, t.w);
            to[b] = (int64_t)at * t.c;
            column[b] = (uint32_t)(at - left) * words::ones;
        }
#pragma unroll
        for (int a = 0; a < K; a++) {
            int at = within(top + a, t.h);
            row[a] = (uint32_t)((at - top) * K) * words::ones;
#pragma unroll
            for (int b = 0; b < K; b++)
                v[a * K + b] = *(const regs *)(x + (int64_t)at * t.w * t.c + to[b]);
        }
    }
    // Word k of the largest.
    __device__ uint32_t max(int k) const
    {
        uint32_t m = v[0].w[k];
#pragma unroll
        for (int e = 1; e < K * K; e++)
            m = words::larger(m, v[e].w[k]);
        return m;
    }
    // Where the elements of word k have their first maximum, which is m, or their first NaN.
    __device__ uint32_t place(int k, uint32_t m) const
    {
        uint32_t p = 0, is = words::equal(m, m);
#pragma unroll
        for (int e = K * K - 1; e >= 0; e--) {
            uint32_t here = words::equal(v[e].w[k], m);
            p = (here & (row[e / K] + column[e % K])) | (~here & p);
        }
        if (is == UINT32_MAX)
            return p;
#pragma unroll
        for (int e = K * K - 1; e >= 0; e--) { // those that are NaN
            uint32_t here = ~(is | words::equal(v[e].w[k], v[e].w[k]));
            p = (here & (row[e / K] + column[e % K])) | (~here & p);
        }
        return p;
    }
};

// y of the windows of a row, or with FIND the places of maxima.
template <class T, int K, bool FIND>
static __global__ void __launch_bounds__(TTI_POOL_ROW) tti_pool_square(pool_in q, int n)
{
    const int V = tti_pack<T>::n;
    const pool_dims t = q.t;
    const unsigned packs = (unsigned)(t.c / V);
    const unsigned row =
        gridDim.x - 1 - blockIdx.x; // the last first: x is still in the cache there
    const int64_t image = row / (unsigned)t.oh;
    const int i = (int)(row % (unsigned)t.oh);
    for (int at = (int)threadIdx.x; at < n; at += (int)blockDim.x) {
        const int j = (int)((unsigned)at / packs), ch = (at - j * (int)packs) * V;
        const int64_t to = ((int64_t)row * n + at) * V;
        tti_pool_window<T, K> w;
        w.load(t, (const T *)q.x + image * t.h * t.w * t.c + ch, i, j);
        if constexpr (FIND) {
            const int each = tti_pool_words<T>::each;
            uint64_t places = 0;
#pragma unroll
            for (int k = 0; k < 4; k++) {
                uint32_t p = w.place(k, w.max(k));
#pragma unroll
                for (int e = 0; e < each; e++)
                    places |= (uint64_t)(p >> 16 * e & 255) << 8 * (k * each + e);
            }
            put_places<V>((uint8_t *)q.place + to, places);
        } else {
            tti_regs<T, V> max;
            float y[V];
#pragma unroll
            for (int k = 0; k < 4; k++)
                max.w[k] = w.max(k);
#pragma unroll
            for (int k = 0; k < V; k++)
                y[k] = max.get(k) + 0.0f;
            max.put_all(y);
            max.store((T *)q.y + to);
        }
    }
}

// ---- gradient --------------------------------------------------------------------------------

// Places of a pack's maxima, in words so that they are taken apart by words.
template <int V> struct alignas(V) tti_pool_places {
    uint32_t w[V / 4];
    __device__ bool is(int k, uint32_t place) const
    {
        return ((w[k / 4] ^ place * 0x01010101u) & 255u << 8 * (k % 4)) == 0;
    }
    __device__ static tti_pool_places none(void)
    {
        tti_pool_places p;
        for (int i = 0; i < V / 4; i++)
            p.w[i] = UINT32_MAX;
        return p;
    }
};

// dx of a row of patches, of which an image has `rows`: that of a patch is S times its number.
template <class T, int K, int S>
static __global__ void __launch_bounds__(TTI_POOL_ROW)
    tti_pool_square_grad(pool_in q, int rows, int n)
{
    const int V = tti_pack<T>::n, W = (K - 1) / S + 1; // windows that hold a patch, each way
    const pool_dims t = q.t;
    const unsigned packs = (unsigned)(t.c / V);
    const int64_t image = blockIdx.x / (unsigned)rows;
    const int i = (int)(blockIdx.x % (unsigned)rows), row = i * S - t.pt;
    const int64_t window_row = (int64_t)t.ow * t.c, pixel_row = (int64_t)t.w * t.c;
    const int64_t first_window = (image * t.oh + i) * window_row;
    const int64_t first_pixel = (image * t.h + row) * pixel_row;
    for (int at = (int)threadIdx.x; at < n; at += (int)blockDim.x) {
        const int j = (int)((unsigned)at / packs), ch = (at - j * (int)packs) * V;
        const int col = j * S - t.pl;
        const int64_t window = first_window + (int64_t)at * V; // (i, j), at its channels
        T *dx_at = (T *)q.y + first_pixel + (int64_t)col * t.c + ch;
        tti_regs<T, V> dy[W][W];
        tti_pool_places<V> places[W][W];
#pragma unroll
        for (int a = 0; a < W; a++)
#pragma unroll
            for (int b = 0; b < W; b++) { // window (i - a, j - b)
                bool there = i - a >= 0 && i - a < t.oh && j - b >= 0 && j - b < t.ow;
                int64_t from = window - a * window_row - b * t.c;
                dy[a][b] = {};
                places[a][b] = tti_pool_places<V>::none();
                if (there) {
                    dy[a][b] = *(const tti_regs<T, V> *)((const T *)q.dy + from);
                    places[a][b] = *(const tti_pool_places<V> *)((const uint8_t *)q.place + from);
                }
            }
#pragma unroll
        for (int r = 0; r < S; r++)
#pragma unroll
            for (int c = 0; c < S; c++) {
                float dx[V] = {};
#pragma unroll
                for (int a = W - 1; a >= 0; a--)
#pragma unroll
                    for (int b = W - 1; b >= 0; b--) {
                        if (r + a * S >= K || c + b * S >= K)
                            continue;
                        const uint32_t here = (uint32_t)((r + a * S) * K + c + b * S);
#pragma unroll
                        for (int k = 0; k < V; k++)
                            if (places[a][b].is(k, here))
                                dx[k] = dx[k] + dy[a][b].get(k);
                    }
                tti_regs<T, V> out;
                out.put_all(dx);
                if (row + r >= 0 && row + r < t.h && col + c >= 0 && col + c < t.w)
                    out.store(dx_at + r * pixel_row + c * t.c);
            }
    }
}

// ---- launches --------------------------------------------------------------------------------

// Threads for the n packs of a row: few are left over in the last round.
static inline unsigned tti_pool_row_threads(int64_t n)
{
    int64_t rounds = (n + TTI_POOL_ROW - 1) / TTI_POOL_ROW, each = (n + rounds - 1) / rounds;
    return (unsigned)((each + 31) / 32 * 32);
}
static inline bool tti_pool_is_square(const pool_dims &t, int64_t images)
{
    return t.kh == t.kw && (t.kh == 2 || t.kh == 3) && images * (t.h + t.pt + 1) < INT32_MAX &&
           (int64_t)(t.w + t.pl + 1) * t.c < INT32_MAX;
}

// Largest entries of all images, or with FIND their places. False: the windows are others.
template <bool FIND>
static inline bool tti_pool_squares(const tt_launch *l, tt_dtype dtype, int64_t images,
                                    const pool_in &q)
{
    if (!tti_pool_is_square(q.t, images))
        return false;
    TTI_FLOATS(dtype, T, {
        int64_t n = (int64_t)q.t.ow * (q.t.c / tti_pack<T>::n);
        unsigned blocks = (unsigned)(images * q.t.oh);
        if (q.t.kh == 3)
            TTI_LAUNCH(l, blocks, tti_pool_row_threads(n), 0, (tti_pool_square<T, 3, FIND>), q,
                       (int)n);
        else
            TTI_LAUNCH(l, blocks, tti_pool_row_threads(n), 0, (tti_pool_square<T, 2, FIND>), q,
                       (int)n);
    })
    return true;
}

// dx of all images from places of maxima. False: the windows are others.
static inline bool tti_pool_squares_grad(const tt_launch *l, tt_dtype dtype, int64_t images,
                                         const pool_in &q)
{
    const pool_dims &t = q.t;
    if (!tti_pool_is_square(t, images) || t.sh != 2 || t.sw != 2)
        return false;
    int rows = (t.h + t.pt + 1) / 2, cols = (t.w + t.pl + 1) / 2;
    TTI_FLOATS(dtype, T, {
        int64_t n = (int64_t)cols * (t.c / tti_pack<T>::n);
        unsigned blocks = (unsigned)(images * rows);
        if (t.kh == 3)
            TTI_LAUNCH(l, blocks, tti_pool_row_threads(n), 0, (tti_pool_square_grad<T, 3, 2>), q,
                       rows, (int)n);
        else
            TTI_LAUNCH(l, blocks, tti_pool_row_threads(n), 0, (tti_pool_square_grad<T, 2, 2>), q,
                       rows, (int)n);
    })
    return true;
}

#endif
