/*
 * conv_mma.cuh - dw of bf16 and f16 on the matrix units: a product with images as they lie.
 *
 * dw [taps c_in, c_out] = A' B: the rows of both are output pixels; B is dy, a row of A the
 * entries of x under the taps. Both are read as they lie in memory, transposed on the way from
 * shared memory to registers (ldmatrix.trans). A block has a tile of dw and a slice of a lane's
 * pixels, which it takes in steps of STEP; what lies in padding or past the slice is zero. An
 * element of dw is one chain of mma.m16n8k16 over its slice, in f32: tiles and ways of loading do
 * not change its bits.
 *
 * Tiles lie in shared memory as [pixel][column]; the 16-byte chunks of a row are permuted by the
 * row's number, so that the eight rows an ldmatrix reads are in different banks.
 */
#ifndef TUTTI_OP_CONV_MMA_CUH
#define TUTTI_OP_CONV_MMA_CUH

#include "cuda/async.cuh"
#include "op/gpu/conv.cuh"

#define TTI_MMA_STEP   32 // pixels
#define TTI_MMA_STAGES 3

// What the kernels read; sizes below 2^31, as tti_mma_fits() has it.
struct tti_mma_in {
    int h, w, c_in, oh, ow, c_out, kw, sh, sw, pt, pl;
    int rows;        // of dw: taps x c_in
    int dy_in_packs; // gather
    const void *x, *dy;
    float *part; // [lanes, slices, rows, c_out]
    int64_t slices;
    tti_dw_rule rule;
};

static inline bool tti_mma_fits(const tti_conv_dims *d)
{
    const int64_t most = (int64_t)1 << 30, rows = d->h + d->pt + d->kh;
    return rows * (d->w + d->pl + d->kw) * d->c_in < most && d->oh * d->ow * d->c_out < most &&
           d->kh * d->kw * d->c_in < most;
}
static inline bool tti_mma_in_packs(const tti_conv_dims *d)
{
    return d->c_in % 8 == 0 && d->c_out % 8 == 0;
}

static inline int64_t tti_mma_tiles(const tti_conv_dims *d, int m, int n)
{
    return (d->kh * d->kw * d->c_in + m - 1) / m * ((d->c_out + n - 1) / n);
}
// Tiles of 192 x 64 rather than 128 x 128; those read a third more for a product.
static inline bool tti_mma_is_tall(const tti_conv_dims *d)
{
    return tti_mma_tiles(d, 192, 64) * 192 * 64 * 4 <= tti_mma_tiles(d, 128, 128) * 128 * 128 * 3;
}

// ---- tiles -----------------------------------------------------------------------------------

// Element (k, col) of a tile whose rows have width elements.
__device__ static inline int tti_mma_at(int k, int col, int width)
{
    return k * width + ((col / 8 ^ (k & 7)) * 8) + col % 8;
}

#ifdef __CUDA_ARCH__
__device__ static inline uint32_t tti_mma_shared(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}
// Four 8 x 8 matrices: lane i has the address of row i % 8 of matrix i / 8.
__device__ static inline void tti_mma_load_rows(uint32_t *to, const uint16_t *p)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(tti_mma_shared(p))
                 : "memory");
}
// The same transposed.
__device__ static inline void tti_mma_load(uint32_t *to, const uint16_t *p)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(tti_mma_shared(p))
                 : "memory");
}
#define TTI_MMA(type, name)                                                                     \
    __device__ static inline void tti_mma(float *c, const uint32_t *a, const uint32_t *b, type) \
    {                                                                                           \
        asm("mma.sync.aligned.m16n8k16.row.col.f32." name "." name ".f32 "                      \
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                   \
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                    \
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                \
    }
TTI_MMA(tti_bf16, "bf16")
TTI_MMA(tti_f16, "f16")
#endif

// Copies 16 bytes, or zeros them. Done once the copies of its group are waited for.
__device__ static inline void tti_mma_copy(uint16_t *to, const void *from, bool is_there)
{
    tti_async_bytes<16, false>(to, from, is_there ? 16 : 0);
}

// A warp's outputs at (m, n), MT x NT tiles of 16 x 8, by the tiles a and b of widths M and N.
template <class T, int MT, int NT, int M, int N>
__device__ static inline void tti_mma_step(const uint16_t *a, const uint16_t *b, int m, int n,
                                           float acc[MT][NT][4])
{
    const int lane = (int)threadIdx.x % 32;
#ifdef __CUDA_ARCH__
#pragma unroll
    for (int k = 0; k < TTI_MMA_STEP; k += 16) {
        uint32_t fa[MT][4], fb[NT / 2][4];
#pragma unroll
        for (int i = 0; i < MT; i++)
            tti_mma_load(fa[i], a + tti_mma_at(k + lane % 8 + lane / 16 * 8,
                                               m + i * 16 + lane / 8 % 2 * 8, M));
#pragma unroll
        for (int i = 0; i < NT / 2; i++)
            tti_mma_load(fb[i], b + tti_mma_at(k + lane % 16, n + i * 16 + lane / 16 * 8, N));
#pragma unroll
        for (int i = 0; i < MT; i++)
#pragma unroll
            for (int j = 0; j < NT; j++)
                tti_mma(acc[i][j], fa[i], fb[j / 2] + j % 2 * 2, T());
    }
#else
    for (int e = 0; e < MT * NT * 4; e++) {
        int i = e / 4 / NT, j = e / 4 % NT, c = e % 4;
        int row = m + i * 16 + lane / 4 + c / 2 * 8, col = n + j * 8 + lane % 4 * 2 + c % 2;
        for (int k = 0; k < TTI_MMA_STEP; k++) {
            T x = {a[tti_mma_at(k, row, M)]}, y = {b[tti_mma_at(k, col, N)]};
            acc[i][j][c] = fmaf(tti_get(x), tti_get(y), acc[i][j][c]);
        }
    }
#endif
}

// ---- blocks ----------------------------------------------------------------------------------

// A block's share: rows m0 and columns n0 on of dw, len pixels from begin on.
struct tti_mma_share {
    int m0, n0, len, steps;
    int64_t begin;
    float *out;
};
// Blocks are tiles of dw by slices by lanes. False: the lane has no such slice.
template <int M, int N>
__device__ static inline bool tti_mma_share_of(const tti_dw_images &g, const tti_mma_in &q,
                                               tti_mma_share *s)
{
    const int tiles = (q.c_out + N - 1) / N;
    const int64_t per = (int64_t)q.oh * q.ow, first = g.bound[blockIdx.z] * per;
    const int64_t pixels = g.bound[blockIdx.z + 1] * per - first;
    const int64_t slice = tti_dw_slice(pixels, q.rule), from = (int64_t)blockIdx.y * slice;
    if (from >= pixels)
        return false;
    s->m0 = (int)blockIdx.x / tiles * M;
    s->n0 = (int)blockIdx.x % tiles * N;
    s->begin = first + from;
    s->len = (int)(from + slice < pixels ? slice : pixels - from);
    s->steps = (s->len + TTI_MMA_STEP - 1) / TTI_MMA_STEP;
    s->out = q.part +
             ((int64_t)(g.first + blockIdx.z) * q.slices + blockIdx.y) * q.rows * (int64_t)q.c_out;
    return true;
}

template <int MT, int NT, bool PACKS>
__device__ static inline void tti_mma_put(const tti_mma_in &q, const tti_mma_share &s, int m, int n,
                                          const float acc[MT][NT][4])
{
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int e = 0; e < MT * NT * 2; e++) {
        int i = e / 2 / NT, j = e / 2 % NT, half = e % 2;
        int row = s.m0 + m + i * 16 + lane / 4 + half * 8, col = s.n0 + n + j * 8 + lane % 4 * 2;
        float *to = s.out + (int64_t)row * q.c_out + col;
        const float *v = acc[i][j] + half * 2;
        if (row >= q.rows || col >= q.c_out)
            continue;
        if (PACKS) {
            *(float2 *)to = make_float2(v[0], v[1]);
        } else {
            to[0] = v[0];
            if (col + 1 < q.c_out)
                to[1] = v[1];
        }
    }
}

// A walk over output pixels: where tap 0 of the pixel lies in x, which may be in padding.
struct tti_mma_walk {
    int64_t image; // number of its first entry
    int row, col;
    int leap_image, leap_row, leap_col; // what a leap adds

    // At pixel k of the batch; a leap goes over so many pixels.
    __device__ void begin(const tti_mma_in &q, int64_t k, int over)
    {
        const int per = q.oh * q.ow, at = (int)(k % per);
        image = k / per * (q.h * q.w * q.c_in);
        row = at / q.ow * q.sh - q.pt;
        col = at % q.ow * q.sw - q.pl;
        leap_image = over / per;
        leap_row = over % per / q.ow * q.sh;
        leap_col = over % q.ow * q.sw;
    }
    __device__ void carry(const tti_mma_in &q)
    {
        if (col + q.pl >= q.ow * q.sw) {
            col -= q.ow * q.sw;
            row += q.sh;
        }
        if (row + q.pt >= q.oh * q.sh) {
            row -= q.oh * q.sh;
            image += q.h * q.w * q.c_in;
        }
    }
    __device__ void next(const tti_mma_in &q)
    {
        col += q.sw;
        carry(q);
    }
    __device__ void leap(const tti_mma_in &q)
    {
        image += (int64_t)leap_image * (q.h * q.w * q.c_in);
        row += leap_row;
        col += leap_col;
        carry(q);
    }
};

// A column of A: its tap and how far it lies from tap 0. One past the last has no pixel in x.
struct tti_mma_tap {
    int u, v, at;
    __device__ void set(const tti_mma_in &q, int column)
    {
        const bool in = column < q.rows;
        const int tap = in ? column / q.c_in : 0;
        u = in ? tap / q.kw : INT32_MAX / 2;
        v = tap % q.kw;
        at = (tap / q.kw * q.w + v) * q.c_in + column % q.c_in;
    }
    __device__ bool is_inside(const tti_mma_in &q, int row, int col) const
    {
        return (unsigned)(row + u) < (unsigned)q.h && (unsigned)(col + v) < (unsigned)q.w;
    }
};

// ---- channels in packs -----------------------------------------------------------------------

/*
 * WM x WN warps of 16 MT x 64. A thread copies the same chunk of every 64 columns of A, for some
 * pixels in a row.
 */
template <class T, int MT, int WM, int WN>
static __global__ void __launch_bounds__(32 * WM * WN, MT == 3 ? 3 : 2)
    tti_mma_packs(tti_dw_images g, tti_mma_in q)
{
    const int M = 16 * MT * WM, N = 64 * WN, THREADS = 32 * WM * WN;
    const int EACH = TTI_MMA_STEP * 8 / THREADS;
    __shared__ __align__(128) uint16_t a[TTI_MMA_STAGES][TTI_MMA_STEP * M];
    __shared__ __align__(128) uint16_t b[TTI_MMA_STAGES][TTI_MMA_STEP * N];
    const int t = (int)threadIdx.x, warp = t / 32, m = warp % WM * 16 * MT, n = warp / WM * 64;
    const int chunk = t % 8 * 8, first = t / 8 * EACH; // column and pixel of a step
    tti_mma_share s;
    if (!tti_mma_share_of<M, N>(g, q, &s)) // of the whole block
        return;
    tti_mma_walk walk;
    walk.begin(q, s.begin + first, TTI_MMA_STEP - EACH);
    tti_mma_tap tap[M / 64];
#pragma unroll
    for (int i = 0; i < M / 64; i++)
        tap[i].set(q, s.m0 + i * 64 + chunk);
    const T *x = (const T *)q.x, *dy = (const T *)q.dy + (s.begin + first) * q.c_out + s.n0 + chunk;

    auto fetch = [&](int step) {
        const int stage = step % TTI_MMA_STAGES;
#pragma unroll
        for (int e = 0; e < EACH; e++, walk.next(q)) {
            const int k = first + e;
            const bool is_pixel = step * TTI_MMA_STEP + k < s.len;
            const T *from = x + walk.image + (walk.row * q.w + walk.col) * q.c_in;
#pragma unroll
            for (int i = 0; i < M / 64; i++) {
                bool in = is_pixel && tap[i].is_inside(q, walk.row, walk.col);
                tti_mma_copy(&a[stage][tti_mma_at(k, i * 64 + chunk, M)], in ? from + tap[i].at : x,
                             in);
            }
#pragma unroll
            for (int i = 0; i < N / 64; i++) {
                bool in = is_pixel && s.n0 + i * 64 + chunk < q.c_out;
                tti_mma_copy(&b[stage][tti_mma_at(k, i * 64 + chunk, N)],
                             in ? dy + e * q.c_out + i * 64 : (const T *)q.dy, in);
            }
        }
        walk.leap(q);
        dy += TTI_MMA_STEP * q.c_out;
    };

    float acc[MT][8][4] = {};
#pragma unroll
    for (int i = 0; i < TTI_MMA_STAGES - 1; i++) {
        if (i < s.steps)
            fetch(i);
        tti_async_group();
    }
    for (int i = 0; i < s.steps; i++) {
        tti_async_wait<TTI_MMA_STAGES - 2>();
        __syncthreads(); // every thread's copies are there, and the stage to fill is read
        if (i + TTI_MMA_STAGES - 1 < s.steps)
            fetch(i + TTI_MMA_STAGES - 1);
        tti_async_group();
        tti_mma_step<T, MT, 8, M, N>(a[i % TTI_MMA_STAGES], b[i % TTI_MMA_STAGES], m, n, acc);
    }
    tti_mma_put<MT, 8, true>(q, s, m, n, acc);
}

// ---- any channels ----------------------------------------------------------------------------

// Where the pixels of a step lie: the number of their entry under tap 0, and its place in x.
struct tti_mma_pixels {
    struct alignas(16) {
        int64_t at;
        int row, col;
    } k[TTI_MMA_STEP];
};
// Notes the pixels of a step, one by each of the first threads, and walks on.
__device__ static inline void tti_mma_note(const tti_mma_in &q, const tti_mma_share &s, int step,
                                           tti_mma_walk *walk, tti_mma_pixels *to)
{
    const int k = (int)threadIdx.x;
    if (k >= TTI_MMA_STEP)
        return;
    to->k[k].at = walk->image + (walk->row * q.w + walk->col) * q.c_in;
    to->k[k].row = step * TTI_MMA_STEP + k < s.len ? walk->row : INT32_MIN / 2;
    to->k[k].col = walk->col;
    walk->leap(q);
}

// A thread's part of the tiles of 64 x 64 for one step, on the way to shared memory.
struct tti_mma_staged {
    uint32_t a[8], b[8];
};
template <class T>
__device__ static inline void tti_mma_fetch(const tti_mma_in &q, const tti_mma_share &s, int step,
                                            const tti_mma_pixels &pixels, const tti_mma_tap &tap,
                                            tti_mma_staged *to)
{
    const int t = (int)threadIdx.x, col = t % 64, first = t / 64 * 16, k0 = step * TTI_MMA_STEP;
    const T *x = (const T *)q.x + tap.at, *dy = (const T *)q.dy + (s.begin + k0) * q.c_out + s.n0;
#pragma unroll
    for (int i = 0; i < 16; i++) {
        auto p = pixels.k[first + i];
        uint32_t v = tap.is_inside(q, p.row, p.col) ? x[p.at].bits : 0;
        to->a[i / 2] = i % 2 == 0 ? v : to->a[i / 2] | v << 16;
    }
    if (q.dy_in_packs) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int k = t / 8 + i * 16, c = t % 8 * 8;
            uint4 v = {0, 0, 0, 0};
            if (k0 + k < s.len && s.n0 + c < q.c_out)
                v = *(const uint4 *)(dy + (int64_t)k * q.c_out + c);
            to->b[i * 4] = v.x;
            to->b[i * 4 + 1] = v.y;
            to->b[i * 4 + 2] = v.z;
            to->b[i * 4 + 3] = v.w;
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < 16; i++) {
        bool in = k0 + first + i < s.len && s.n0 + col < q.c_out;
        uint32_t v = in ? dy[(int64_t)(first + i) * q.c_out + col].bits : 0;
        to->b[i / 2] = i % 2 == 0 ? v : to->b[i / 2] | v << 16;
    }
}
__device__ static inline void tti_mma_store(const tti_mma_in &q, const tti_mma_staged &from,
                                            uint16_t *a, uint16_t *b)
{
    const int t = (int)threadIdx.x, col = t % 64, first = t / 64 * 16;
#pragma unroll
    for (int i = 0; i < 16; i++)
        a[tti_mma_at(first + i, col, 64)] = (uint16_t)(from.a[i / 2] >> 16 * (i % 2));
    if (q.dy_in_packs) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const uint32_t *v = from.b + i * 4;
            *(uint4 *)&b[tti_mma_at(t / 8 + i * 16, t % 8 * 8, 64)] =
                make_uint4(v[0], v[1], v[2], v[3]);
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < 16; i++)
        b[tti_mma_at(first + i, col, 64)] = (uint16_t)(from.b[i / 2] >> 16 * (i % 2));
}

// 2 x 2 warps of 32 x 32. A thread has one column of half of a step's pixels.
template <class T>
static __global__ void __launch_bounds__(128, 4) tti_mma_gather(tti_dw_images g, tti_mma_in q)
{
    __shared__ __align__(128) uint16_t a[2][TTI_MMA_STEP * 64], b[2][TTI_MMA_STEP * 64];
    __shared__ tti_mma_pixels pixels[2];
    const int t = (int)threadIdx.x, warp = t / 32, m = warp % 2 * 32, n = warp / 2 * 32;
    tti_mma_share s;
    if (!tti_mma_share_of<64, 64>(g, q, &s)) // of the whole block
        return;
    tti_mma_walk walk;
    tti_mma_tap tap;
    tti_mma_staged staged;
    walk.begin(q, s.begin + t % TTI_MMA_STEP, TTI_MMA_STEP);
    tap.set(q, s.m0 + t % 64);
    float acc[2][4][4] = {};
    tti_mma_note(q, s, 0, &walk, &pixels[0]);
    __syncthreads();
    tti_mma_fetch<T>(q, s, 0, pixels[0], tap, &staged);
    for (int i = 0; i < s.steps; i++) {
        tti_mma_store(q, staged, a[i % 2], b[i % 2]);
        tti_mma_note(q, s, i + 1, &walk, &pixels[(i + 1) % 2]);
        __syncthreads(); // also: all have read what step i - 1 left where i + 1 goes
        if (i + 1 < s.steps)
            tti_mma_fetch<T>(q, s, i + 1, pixels[(i + 1) % 2], tap, &staged);
        tti_mma_step<T, 2, 4, 64, 64>(a[i % 2], b[i % 2], m, n, acc);
    }
    tti_mma_put<2, 4, false>(q, s, m, n, acc);
}

// The slices of the lanes of g, with addresses of any kind.
template <class T>
static inline tt_status tti_mma_run(const tt_launch *l, const tti_conv_dims *d,
                                    const tti_dw_images &g, tti_mma_in q)
{
    const bool dy_in_packs = d->c_out % 8 == 0 && tti_is_aligned(q.dy);
    dim3 grid((unsigned)tti_mma_tiles(d, 64, 64), (unsigned)q.slices, (unsigned)g.n);
    if (!tti_mma_in_packs(d) || !dy_in_packs || !tti_is_aligned(q.x)) {
        q.dy_in_packs = dy_in_packs;
        TTI_LAUNCH(l, grid, 128, 0, (tti_mma_gather<T>), g, q);
    } else if (tti_mma_is_tall(d)) {
        grid.x = (unsigned)tti_mma_tiles(d, 192, 64);
        TTI_LAUNCH(l, grid, 128, 0, (tti_mma_packs<T, 3, 4, 1>), g, q);
    } else {
        grid.x = (unsigned)tti_mma_tiles(d, 128, 128);
        TTI_LAUNCH(l, grid, 128, 0, (tti_mma_packs<T, 4, 2, 2>), g, q);
    }
    return tti_cuda_launched(l);
}

#endif
