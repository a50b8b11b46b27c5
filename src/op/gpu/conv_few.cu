/*
 * conv_few.cu - convolutions over images of few channels on the matrix units, and their gradient
 * at w.
 *
 * Libraries' engines want channels by eights. Here a block copies the pixels of x under a tile of
 * outputs to shared memory, each widened by zeros to 4 or 8 channels, so that the stride is a
 * multiple of 16 bytes. What lies under one row of taps is then a run of numbers that begins where
 * ldmatrix can read it, and the runs of neighbouring outputs overlap in place: no entry of x is
 * held twice. A run is rounded up to a multiple of 16 numbers, which meet zeros of the filter;
 * so a pixel that is not finite makes NaN of outputs up to a few columns to its left.
 *
 * An output is one chain of mma.m16n8k16 over rows of taps, whatever the tile: rows are free. An
 * element of dw is one chain over the tiles of a slice, which are made of whole tiles.
 */
#include "op/gpu/act.cuh"
#include "op/gpu/conv_few.h"
#include "op/gpu/conv_mma.cuh"

#define N 64 // channels of y of a block

struct few_in {
    tti_few f;
    int h, w, c_in, oh, ow, c_out, kh, kw, sh, sw, pt, pl;
    const void *x, *k, *bias, *dy;
    void *y, *z; // z: NULL: none
    int act;
    bool in_packs; // rows of y, z or dy begin at multiples of 16 bytes
    int64_t tiles; // of all images
    float *part;   // dw: [lanes, slices, kh kw c_in, c_out]
    int64_t slices;
    tti_dw_rule rule;
};

// ---- loads -----------------------------------------------------------------------------------

// The pixels of x under a tile whose first tap lies at (row0, col0), which may be in padding.
template <class T, int C>
__device__ static inline void load_patch(const few_in &q, const T *image, int row0, int col0,
                                         uint16_t *to)
{
    const int lane = (int)threadIdx.x % 32;
    for (int r = (int)threadIdx.x / 32; r < q.f.patch_h; r += (int)blockDim.x / 32) {
        const bool is_row = (unsigned)(row0 + r) < (unsigned)q.h;
        const T *from = image + (is_row ? (row0 + r) * q.w * q.c_in : 0);
#pragma unroll 4
        for (int c = lane; c < q.f.patch_w; c += 32) {
            const bool in = is_row && (unsigned)(col0 + c) < (unsigned)q.w;
            const T *pixel = from + (in ? (col0 + c) * q.c_in : 0);
            uint32_t v[C / 2] = {};
#pragma unroll
            for (int i = 0; i < C; i++)
                if (in && i < q.c_in)
                    v[i / 2] |= (uint32_t)pixel[i].bits << 16 * (i % 2);
            uint32_t *at = (uint32_t *)(to + (r * q.f.patch_w + c) * C);
            if (C == 4)
                *(uint2 *)at = make_uint2(v[0], v[1]);
            else
                *(uint4 *)at = make_uint4(v[0], v[1], v[C / 2 - 2], v[C / 2 - 1]);
        }
    }
}

// The filter as [row of taps, taps][N], with zeros where there is none.
template <class T> __device__ static inline void load_filter(const few_in &q, int n0, uint16_t *to)
{
    for (int i = (int)threadIdx.x; i < q.kh * q.f.taps * N; i += (int)blockDim.x) {
        const int k = i / N, n = i % N, u = k / q.f.taps, v = k % q.f.taps / q.f.channels;
        const int c = k % q.f.channels;
        const bool in = v < q.kw && c < q.c_in && n0 + n < q.c_out;
        const T *from = (const T *)q.k + ((int64_t)(u * q.kw + v) * q.c_in + c) * q.c_out + n0 + n;
        to[tti_mma_at(k, n, N)] = in ? from->bits : 0;
    }
}

// dy of a tile at (row, col) as [pixel][N], zeros past the image.
template <class T>
__device__ static inline void load_dy(const few_in &q, const T *image, int row, int col, int n0,
                                      uint16_t *to)
{
    const int pixels = q.f.tile_h * q.f.tile_w, each = q.in_packs ? 8 : 1;
    for (int i = (int)threadIdx.x; i < pixels * N / each; i += (int)blockDim.x) {
        const int p = i / (N / each), n = i % (N / each) * each;
        const int r = row + p / q.f.tile_w, c = col + p % q.f.tile_w;
        const bool in = r < q.oh && c < q.ow && n0 + n < q.c_out;
        const T *from = in ? image + (r * q.ow + c) * q.c_out + n0 + n : image;
        if (q.in_packs)
            tti_mma_copy(&to[tti_mma_at(p, n, N)], from, in);
        else
            to[tti_mma_at(p, n, N)] = in ? from->bits : 0;
    }
    tti_async_group();
}

struct tile_at {
    int64_t image;
    int row, col; // the first output
};
__device__ static inline tile_at find_tile(const few_in &q, int64_t t)
{
    const int per = q.f.down * q.f.across, in = (int)(t % per);
    return {t / per, in / q.f.across * q.f.tile_h, in % q.f.across * q.f.tile_w};
}

#ifdef __CUDA_ARCH__
// acc += a b over 16 numbers: two fragments of a, and this lane's row of b.
template <class T>
__device__ static inline void multiply_16(const uint32_t fa[2][4], const uint16_t *b,
                                          float acc[2][8][4])
{
    const int lane = (int)threadIdx.x % 32;
    uint32_t fb[4][4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        tti_mma_load(fb[i], b + ((i * 2 + lane / 16) ^ (lane & 7)) * 8);
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 8; j++)
            tti_mma(acc[i][j], fa[i], fb[j / 2] + j % 2 * 2, T());
}
#endif

// ---- y ---------------------------------------------------------------------------------------

// The sums of two rows of 16 outputs; a: the run under the first, b: the filter.
template <class T, int C>
__device__ static inline void multiply(const few_in &q, const uint16_t *a, const uint16_t *b,
                                       float acc[2][8][4])
{
    const int lane = (int)threadIdx.x % 32, pitch = q.f.patch_w * C;
#ifdef __CUDA_ARCH__
    a += (lane % 16) * q.sw * C + lane / 16 * 8;
    b += lane % 16 * N;
    for (int u = 0; u < q.kh; u++, a += pitch) {
#pragma unroll 2
        for (int k = 0; k < q.f.taps; k += 16, b += 16 * N) {
            uint32_t fa[2][4];
#pragma unroll
            for (int i = 0; i < 2; i++)
                tti_mma_load_rows(fa[i], a + i * q.sh * pitch + k);
            multiply_16<T>(fa, b, acc);
        }
    }
#else
    for (int e = 0; e < 64; e++) {
        const int i = e / 32, j = e / 4 % 8, c = e % 4;
        const int col = lane / 4 + c / 2 * 8, n = j * 8 + lane % 4 * 2 + c % 2;
        for (int k = 0; k < q.kh * q.f.taps; k++) {
            const int u = k / q.f.taps, v = k % q.f.taps;
            T x = {a[(i * q.sh + u) * pitch + col * q.sw * C + v]}, w = {b[tti_mma_at(k, n, N)]};
            acc[i][j][c] = fmaf(tti_get(x), tti_get(w), acc[i][j][c]);
        }
    }
#endif
}

// Lane i of four has word i of each of them.
__device__ static inline void turn_four(uint32_t *w)
{
    const int lane = (int)threadIdx.x;
#pragma unroll
    for (int k = 1; k <= 2; k++) { // exchanges words that differ in a bit with the lane that does
        const int other = k == 1 ? 2 : 1;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            uint32_t &low = w[i * other], &high = w[i * other + k];
            uint32_t v = __shfl_xor_sync(0xffffffffu, lane & k ? low : high, k);
            low = lane & k ? v : low;
            high = lane & k ? high : v;
        }
    }
}

// Eight channels by eight of the outputs of a lane: v[j] are two of tile j of 8 channels.
template <class T>
__device__ static inline void put(const few_in &q, T *to, int n0, bool in, const float v[8][2])
{
    const int lane = (int)threadIdx.x % 32;
    if (!q.in_packs) {
#pragma unroll
        for (int e = 0; e < 16; e++) {
            const int n = n0 + e / 2 * 8 + lane % 4 * 2 + e % 2;
            if (in && n < q.c_out)
                tti_put(to[n], v[e / 2][e % 2]);
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; i += 4) {
        tti_pack<T> p;
        uint32_t w[4];
        tti_repack(p, v[i]);
        memcpy(w, p.v, sizeof(w));
        turn_four(w);
        const int n = n0 + (i + lane % 4) * 8;
        if (in && n < q.c_out)
            *(uint4 *)(to + n) = make_uint4(w[0], w[1], w[2], w[3]);
    }
}

// Out of line: a thread calls it for 64 outputs.
static __device__ __attribute__((noinline)) float activate(int act, float z)
{
    return tti_act(act, z);
}

// 16 outputs of a row from (row, col) on.
template <class T>
__device__ static inline void finish(const few_in &q, int64_t image, int row, int col, int n0,
                                     const float acc[8][4])
{
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int c = col + lane / 4 + half * 8;
        const bool in = row < q.oh && c < q.ow;
        const int64_t pixel = in ? (image * q.oh + row) * q.ow + c : 0;
        float v[8][2];
#pragma unroll
        for (int e = 0; e < 16; e++)
            v[e / 2][e % 2] = acc[e / 2][half * 2 + e % 2] + 0.0f;
        if (q.bias != NULL)
#pragma unroll
            for (int e = 0; e < 16; e++) {
                const int n = n0 + e / 2 * 8 + lane % 4 * 2 + e % 2;
                if (n < q.c_out)
                    v[e / 2][e % 2] = v[e / 2][e % 2] + tti_get(((const T *)q.bias)[n]);
            }
        if (q.z != NULL)
            put(q, (T *)q.z + pixel * q.c_out, n0, in, v);
        if (q.act != TT_LINEAR)
#pragma unroll
            for (int e = 0; e < 16; e++)
                v[e / 2][e % 2] = activate(q.act, v[e / 2][e % 2]);
        put(q, (T *)q.y + pixel * q.c_out, n0, in, v);
    }
}

// Blocks walk over tiles, with one part of the channels of y each. A warp has two rows of 16
// outputs at a time.
template <class T, int C> static __global__ void __launch_bounds__(256, 2) few_y(few_in q)
{
    TTI_SHARED(uint16_t, filter);
    uint16_t *patch = filter + q.kh * q.f.taps * N;
    const int n0 = (int)blockIdx.y * N, warp = (int)threadIdx.x / 32;
    const int wide = q.f.tile_w / 16, high = q.f.warps / wide * 2;
    const int col = warp % wide * 16, first = warp / wide * 2;
    load_filter<T>(q, n0, filter);
    for (int64_t t = blockIdx.x; t < q.tiles; t += gridDim.x) {
        const tile_at at = find_tile(q, t);
        __syncthreads(); // the patch before is read
        load_patch<T, C>(q, (const T *)q.x + at.image * (q.h * q.w * q.c_in), at.row * q.sh - q.pt,
                         at.col * q.sw - q.pl, patch);
        __syncthreads();
        for (int r = first; r < q.f.tile_h && at.row + r < q.oh; r += high) {
            float acc[2][8][4] = {};
            multiply<T, C>(q, patch + (r * q.sh * q.f.patch_w + col * q.sw) * C, filter, acc);
#pragma unroll
            for (int i = 0; i < 2; i++)
                finish<T>(q, at.image, at.row + r + i, at.col + col, n0, acc[i]);
        }
    }
}

// ---- dw --------------------------------------------------------------------------------------

// Adds a row of outputs, 16 at a time. a: the runs under it, at [i] the numbers of a warp's part
// i of dw begin; b: dy.
template <class T, int C>
__device__ static inline void add_row(const few_in &q, const uint16_t *a, const int at[2],
                                      const uint16_t *b, float acc[2][8][4])
{
    const int lane = (int)threadIdx.x % 32, step = q.sw * C;
#ifdef __CUDA_ARCH__
    a += (lane % 8 + lane / 16 * 8) * step + lane / 8 % 2 * 8;
    b += lane % 16 * N;
#pragma unroll 2
    for (int p = 0; p < q.f.tile_w; p += 16, a += 16 * step, b += 16 * N) {
        uint32_t fa[2][4];
#pragma unroll
        for (int i = 0; i < 2; i++)
            tti_mma_load(fa[i], a + at[i]);
        multiply_16<T>(fa, b, acc);
    }
#else
    for (int e = 0; e < 64; e++) {
        const int i = e / 32, j = e / 4 % 8, c = e % 4;
        const int m = lane / 4 + c / 2 * 8, n = j * 8 + lane % 4 * 2 + c % 2;
        for (int p = 0; p < q.f.tile_w; p++) {
            T x = {a[p * step + at[i] + m]}, y = {b[tti_mma_at(p, n, N)]};
            acc[i][j][c] = fmaf(tti_get(x), tti_get(y), acc[i][j][c]);
        }
    }
#endif
}

// Sixteen numbers of dw from m on, counted as they are held, by N.
__device__ static inline void put_dw(const few_in &q, float *out, int m, int n0,
                                     const float acc[8][4])
{
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int k = m + lane / 4 + half * 8, u = k / q.f.taps;
        const int v = k % q.f.taps / q.f.channels, c = k % q.f.channels;
        if (u >= q.kh || v >= q.kw || c >= q.c_in)
            continue;
        float *row = out + ((int64_t)(u * q.kw + v) * q.c_in + c) * q.c_out;
#pragma unroll
        for (int e = 0; e < 16; e++) {
            const int n = n0 + e / 2 * 8 + lane % 4 * 2 + e % 2;
            if (n < q.c_out)
                row[n] = acc[e / 2][half * 2 + e % 2];
        }
    }
}

// Blocks are parts of dw, of 32 numbers for a warp by N, by slices, by lanes.
template <class T, int C>
static __global__ void __launch_bounds__(256, 2) few_dw(tti_dw_images g, few_in q)
{
    TTI_SHARED(uint16_t, dy);
    uint16_t *patch = dy + q.f.tile_h * q.f.tile_w * N;
    const int parts = (q.c_out + N - 1) / N, n0 = (int)blockIdx.x % parts * N;
    const int m = ((int)blockIdx.x / parts * q.f.warps + (int)threadIdx.x / 32) * 32;
    const int64_t per = (int64_t)q.f.down * q.f.across, first = g.bound[blockIdx.z] * per;
    const int64_t last = g.bound[blockIdx.z + 1] * per, slice = tti_dw_slice(last - first, q.rule);
    const int64_t begin = first + blockIdx.y * slice;
    const int64_t end = begin + slice < last ? begin + slice : last;
    if (begin >= last) // of the whole block
        return;
    int at[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int k = m + i * 16 < q.kh * q.f.taps ? m + i * 16 : 0;
        at[i] = k / q.f.taps * q.f.patch_w * C + k % q.f.taps;
    }
    float acc[2][8][4] = {};
    for (int64_t t = begin; t < end; t++) {
        const tile_at tile = find_tile(q, t);
        __syncthreads(); // the tile before is read
        load_dy<T>(q, (const T *)q.dy + tile.image * (q.oh * q.ow * q.c_out), tile.row, tile.col,
                   n0, dy);
        load_patch<T, C>(q, (const T *)q.x + tile.image * (q.h * q.w * q.c_in),
                         tile.row * q.sh - q.pt, tile.col * q.sw - q.pl, patch);
        tti_async_wait_all();
        __syncthreads();
        for (int r = 0; r < q.f.tile_h && tile.row + r < q.oh; r++)
            add_row<T, C>(q, patch + r * q.sh * q.f.patch_w * C, at, dy + r * q.f.tile_w * N, acc);
    }
    float *out = q.part + ((int64_t)(g.first + blockIdx.z) * q.slices + blockIdx.y) *
                              ((int64_t)q.kh * q.kw * q.c_in * q.c_out);
#pragma unroll
    for (int i = 0; i < 2; i++)
        put_dw(q, out, m + i * 16, n0, acc[i]);
}

// ---- how they run ----------------------------------------------------------------------------

#define MOST_SHARED ((int64_t)96 << 10) // bytes of a block that every card has
#define WARPS       8

static int round_up(int64_t n, int to)
{
    return (int)((n + to - 1) / to * to);
}

bool tti_few_of(const tti_conv_dims *d, tt_dtype type, bool dw, tti_few *out)
{
    tti_few f = {};
    f.channels = d->c_in <= 4 && d->sw % 2 == 0 ? 4 : 8;
    // beyond 64 bytes from output to output many of a warp's reads are in one bank
    if (type == TT_F32 || d->c_in >= 8 || !tti_mma_fits(d) || d->kh > 64 || d->kw > 64 ||
        d->sh > 64 || d->sw * f.channels > 32)
        return false;
    f.taps = round_up(d->kw * f.channels, 16);
    int wide = round_up(d->ow, 16) / 16, n = (wide + WARPS - 2) / (WARPS - 1);
    wide = (wide + n - 1) / n;
    f.tile_w = wide * 16;
    f.warps = WARPS / wide * wide;
    int64_t most = dw ? 256 / f.tile_w : WARPS / wide * 4; // rows
    f.tile_h = (int)(d->oh < most ? d->oh : most);
    f.down = (int)((d->oh + f.tile_h - 1) / f.tile_h);
    f.across = n;
    f.patch_h = (int)((round_up(f.tile_h, dw ? 1 : 2) - 1) * d->sh + d->kh);
    f.patch_w = round_up((f.tile_w - 1) * d->sw + f.taps / f.channels, 2);
    int64_t other = dw ? f.tile_h * f.tile_w : d->kh * f.taps; // of N numbers
    int64_t bytes = 2 * (other * N + (int64_t)f.patch_h * f.patch_w * f.channels);
    if (dw)
        f.warps = (int)(d->kh * f.taps >= WARPS * 32 ? WARPS : (d->kh * f.taps + 31) / 32);
    f.shared = (size_t)bytes;
    *out = f;
    return bytes <= MOST_SHARED;
}

static few_in few_in_of(const tti_conv_dims *d, const tti_few *f)
{
    few_in q = {};
    q.f = *f;
    q.h = (int)d->h;
    q.w = (int)d->w;
    q.c_in = (int)d->c_in;
    q.oh = (int)d->oh;
    q.ow = (int)d->ow;
    q.c_out = (int)d->c_out;
    q.kh = (int)d->kh;
    q.kw = (int)d->kw;
    q.sh = (int)d->sh;
    q.sw = (int)d->sw;
    q.pt = (int)d->pt;
    q.pl = (int)d->pl;
    q.tiles = d->batch * f->down * f->across;
    return q;
}

template <class T, int C> static tt_status run_y(const tt_launch *l, const few_in &q)
{
    const int64_t most = (int64_t)tti_device_of(l)->sms * 2;
    dim3 grid((unsigned)(q.tiles < most ? q.tiles : most), (unsigned)((q.c_out + N - 1) / N));
    TTI_CUDA(tti_device_of(l), l->node,
             cudaFuncSetAttribute(few_y<T, C>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  (int)q.f.shared));
    TTI_LAUNCH(l, grid, (unsigned)q.f.warps * 32, q.f.shared, (few_y<T, C>), q);
    return tti_cuda_launched(l);
}

tt_status tti_few_run(const tt_launch *l, const tti_conv_dims *d)
{
    tti_few f;
    tti_few_of(d, l->in[0].dtype, false, &f);
    few_in q = few_in_of(d, &f);
    q.x = l->in[0].data;
    q.k = l->in[1].data;
    q.bias = l->n_in > 2 ? l->in[2].data : NULL;
    q.y = l->out[0].data;
    q.z = l->n_out > 1 ? l->out[1].data : NULL;
    q.act = ((const tti_conv_attr *)l->attr)->act;
    q.in_packs = d->c_out % 8 == 0 && tti_is_aligned(q.y) && tti_is_aligned(q.z);
    if (q.tiles == 0)
        return TT_OK;
    if (l->in[0].dtype == TT_BF16)
        return f.channels == 4 ? run_y<tti_bf16, 4>(l, q) : run_y<tti_bf16, 8>(l, q);
    return f.channels == 4 ? run_y<tti_f16, 4>(l, q) : run_y<tti_f16, 8>(l, q);
}

// Parts of dw that one slice of a lane takes as many blocks for.
static int64_t parts_of(const tti_conv_dims *d, const tti_few *f)
{
    const int64_t numbers = (int64_t)f->warps * 32;
    return (d->kh * f->taps + numbers - 1) / numbers * ((d->c_out + N - 1) / N);
}

tti_dw_rule tti_few_rule(const tti_conv_dims *d, const tti_few *f)
{
    tti_dw_rule r = tti_dw_pixels((int64_t)f->down * f->across, parts_of(d, f));
    r.least = r.least / (f->tile_h * f->tile_w);
    r.whole = 1;
    return r;
}

template <class T, int C>
static tt_status run_dw(const tt_launch *l, const tti_dw_images &g, dim3 grid, const few_in &q)
{
    TTI_CUDA(tti_device_of(l), l->node,
             cudaFuncSetAttribute(few_dw<T, C>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  (int)q.f.shared));
    TTI_LAUNCH(l, grid, (unsigned)q.f.warps * 32, q.f.shared, (few_dw<T, C>), g, q);
    return tti_cuda_launched(l);
}

tt_status tti_few_dw(const tt_launch *l, const tti_conv_dims *d, const tti_dw_sum *sum,
                     const tti_dw_images &g, float *part)
{
    tti_few f;
    tti_few_of(d, l->in[0].dtype, true, &f);
    few_in q = few_in_of(d, &f);
    q.x = l->in[0].data;
    q.dy = l->in[1].data;
    q.in_packs = d->c_out % 8 == 0 && tti_is_aligned(q.dy);
    q.part = part;
    q.slices = sum->slices;
    q.rule = sum->rule;
    dim3 grid((unsigned)parts_of(d, &f), (unsigned)sum->slices, (unsigned)g.n);
    if (l->in[0].dtype == TT_BF16)
        return f.channels == 4 ? run_dw<tti_bf16, 4>(l, g, grid, q)
                               : run_dw<tti_bf16, 8>(l, g, grid, q);
    return f.channels == 4 ? run_dw<tti_f16, 4>(l, g, grid, q) : run_dw<tti_f16, 8>(l, g, grid, q);
}
