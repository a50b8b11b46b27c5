/*
 * gemm.cuh - products of matrices on a GPU by kernels of our own.
 *
 * An element's sum is defined by k alone, whatever kernel, tile or other rows there are: k is cut
 * into chunks of 128, a chunk is one chain of fma ascending from zero, and chunks are added from
 * the first to the last. Two kernels do that: tiles of 64 by 64 for a block, for many rows; and
 * tiles of 16 by 16 for a warp, where the warps of a block share a tile's chunks, so that a small
 * product ends soon.
 */
#ifndef TUTTI_OP_GEMM_CUH
#define TUTTI_OP_GEMM_CUH

#include "cuda/kernel.cuh"
#include "op/gpu/act.cuh"

#define GEMM_CHUNK   128 // a constant of the arithmetic
#define GEMM_TILE    64
#define GEMM_K       16
#define GEMM_STEP    (GEMM_TILE + 4)
#define GEMM_THREADS 256

// y = act(z), z = a b + bias; a(i, k) is a[i a_row + k a_k], b(k, j) is b[k b_k + j b_col].
struct gemm_args {
    const void *a, *b, *bias; // bias, z: NULL if there is none
    void *y, *z;
    int64_t m, n, k;
    int64_t a_row, a_k, b_k, b_col, ldc;
    int64_t batch, step_a, step_b, step_c;
    int out; // type of y and z; a, b and bias have the kernel's
    int act;
};

__device__ static inline void gemm_store(int type, void *p, int64_t i, float v)
{
    if (type == TT_BF16)
        tti_put(((tti_bf16 *)p)[i], v);
    else if (type == TT_F16)
        tti_put(((tti_f16 *)p)[i], v);
    else
        tti_put(((float *)p)[i], v);
}

// Ends an element: bias, activation, both results.
template <class T>
__device__ static inline void gemm_end(const gemm_args &g, int64_t at, int64_t row, int64_t col,
                                       float z)
{
    int64_t to = at * g.step_c + row * g.ldc + col;
    if (g.bias != NULL)
        z = z + tti_get(((const T *)g.bias)[col]);
    if (g.z != NULL)
        gemm_store(g.out, g.z, to, z);
    gemm_store(g.out, g.y, to, tti_act(g.act, z));
}

// ---- a tile for a block ----------------------------------------------------------------------

// A tile of x(r, k), 64 by 16, to shared memory as [k][r]; neighbours in memory by neighbours.
template <class T>
__device__ static inline void gemm_load(float *to, const T *x, int64_t row, int64_t rows,
                                        int64_t by_row, int64_t k0, int64_t k, int64_t by_k)
{
    for (int e = (int)threadIdx.x; e < GEMM_TILE * GEMM_K; e += GEMM_THREADS) {
        int r = by_k == 1 ? e / GEMM_K : e % GEMM_TILE, q = by_k == 1 ? e % GEMM_K : e / GEMM_TILE;
        bool in = row + r < rows && k0 + q < k;
        to[q * GEMM_STEP + r] = in ? tti_get(x[(row + r) * by_row + (k0 + q) * by_k]) : 0.0f;
    }
}

template <class T> __global__ void gemm_kernel(gemm_args g)
{
    __shared__ __align__(16) float as[GEMM_K * GEMM_STEP], bs[GEMM_K * GEMM_STEP];
    int64_t tiles_n = (g.n + GEMM_TILE - 1) / GEMM_TILE;
    int64_t row = (int64_t)blockIdx.x / tiles_n * GEMM_TILE;
    int64_t col = (int64_t)blockIdx.x % tiles_n * GEMM_TILE;
    int ti = (int)threadIdx.x / 16 * 4, tj = (int)threadIdx.x % 16 * 4;
    for (int64_t at = blockIdx.y; at < g.batch; at += gridDim.y) {
        const T *a = (const T *)g.a + at * g.step_a, *b = (const T *)g.b + at * g.step_b;
        float sum[4][4] = {}, all[4][4] = {};
        for (int64_t k0 = 0; k0 < g.k; k0 += GEMM_K) {
            gemm_load(as, a, row, g.m, g.a_row, k0, g.k, g.a_k);
            gemm_load(bs, b, col, g.n, g.b_col, k0, g.k, g.b_k);
            __syncthreads();
            int kn = g.k - k0 < GEMM_K ? (int)(g.k - k0) : GEMM_K;
            for (int q = 0; q < kn; q++) {
                tti_pack<float> pa = *(const tti_pack<float> *)(as + q * GEMM_STEP + ti);
                tti_pack<float> pb = *(const tti_pack<float> *)(bs + q * GEMM_STEP + tj);
#pragma unroll
                for (int i = 0; i < 16; i++)
                    sum[i / 4][i % 4] = fmaf(pa.v[i / 4], pb.v[i % 4], sum[i / 4][i % 4]);
            }
            __syncthreads();
            if ((k0 + GEMM_K) % GEMM_CHUNK != 0 && k0 + GEMM_K < g.k)
                continue;
#pragma unroll
            for (int i = 0; i < 16; i++) { // a chunk ends
                all[i / 4][i % 4] = all[i / 4][i % 4] + sum[i / 4][i % 4];
                sum[i / 4][i % 4] = 0.0f;
            }
        }
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 4; j++)
                if (row + ti + i < g.m && col + tj + j < g.n)
                    gemm_end<T>(g, at, row + ti + i, col + tj + j, all[i][j]);
    }
}

// ---- a tile for a warp -----------------------------------------------------------------------

#define WARP_TILE  16
#define WARP_K     32 // k that a warp has in shared memory at once
#define WARP_STEP  20 // floats from one k to the next there
#define WARP_ROOM  (2 * WARP_K * WARP_STEP)
#define WARP_WARPS (GEMM_THREADS / 32)
#define WARP_MAX   16 // lanes that one kernel sums

/*
 * A thread moves 16 numbers of a tile x(r, k) of 16 by 32: where k is contiguous, its k of all
 * rows, else its row's every other k; so neighbours in memory are moved by neighbours.
 */
template <class T>
__device__ static inline void warp_fetch(float *v, const T *x, int64_t rows, int64_t by_row,
                                         int64_t ks, int64_t by_k)
{
    int lane = (int)threadIdx.x % 32, r = lane % WARP_TILE, q = lane / WARP_TILE;
    int64_t step = by_k == 1 ? by_row : 2 * by_k, n = by_k == 1 ? rows : (ks - q + 1) / 2;
    if (by_k == 1 ? lane >= ks : r >= rows)
        n = 0;
    x += by_k == 1 ? lane : r * by_row + q * by_k;
#pragma unroll
    for (int i = 0; i < 16; i++, x += step)
        v[i] = i < n ? tti_get(*x) : 0.0f;
}

// To shared memory as [k][r].
__device__ static inline void warp_keep(float *to, const float *v, int64_t by_k)
{
    int lane = (int)threadIdx.x % 32, step = by_k == 1 ? 1 : 2 * WARP_STEP;
    to += by_k == 1 ? lane * WARP_STEP : lane / WARP_TILE * WARP_STEP + lane % WARP_TILE;
#pragma unroll
    for (int i = 0; i < 16; i++)
        to[i * step] = v[i];
}

/*
 * One chunk, k0 to k1, of the tile at row, col: a thread's eight sums, two rows by four columns.
 * The next k are on their way while these are multiplied. room is the warp's.
 */
template <class T>
__device__ static inline void warp_chunk(const gemm_args &g, const T *a, const T *b, int64_t row,
                                         int64_t col, int64_t k0, int64_t k1, float *room,
                                         float *sum)
{
    float *as = room, *bs = room + WARP_K * WARP_STEP, va[16], vb[16];
    int lane = (int)threadIdx.x % 32, ti = lane / 4 * 2, tj = lane % 4 * 4;
    for (int i = 0; i < 8; i++)
        sum[i] = 0.0f;
    a += row * g.a_row + k0 * g.a_k;
    b += col * g.b_col + k0 * g.b_k;
    warp_fetch(va, a, g.m - row, g.a_row, k1 - k0, g.a_k);
    warp_fetch(vb, b, g.n - col, g.b_col, k1 - k0, g.b_k);
    for (; k0 < k1; k0 += WARP_K) {
        __syncwarp();
        warp_keep(as, va, g.a_k);
        warp_keep(bs, vb, g.b_k);
        __syncwarp();
        if (k0 + WARP_K < k1) {
            a += WARP_K * g.a_k;
            b += WARP_K * g.b_k;
            warp_fetch(va, a, g.m - row, g.a_row, k1 - k0 - WARP_K, g.a_k);
            warp_fetch(vb, b, g.n - col, g.b_col, k1 - k0 - WARP_K, g.b_k);
        }
        int kn = k1 - k0 < WARP_K ? (int)(k1 - k0) : WARP_K;
#pragma unroll 4
        for (int q = 0; q < kn; q++) {
            const float *pa = as + q * WARP_STEP + ti;
            tti_pack<float> pb = *(const tti_pack<float> *)(bs + q * WARP_STEP + tj);
            float a0 = pa[0], a1 = pa[1];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                sum[i] = fmaf(a0, pb.v[i], sum[i]);
                sum[4 + i] = fmaf(a1, pb.v[i], sum[4 + i]);
            }
        }
    }
    __syncwarp();
}

// A thread's eight sums to the tile of 256 at to.
__device__ static inline void warp_spread(float *to, const float *sum)
{
    int lane = (int)threadIdx.x % 32, ti = lane / 4 * 2, tj = lane % 4 * 4;
#pragma unroll
    for (int i = 0; i < 8; i++)
        to[(ti + i / 4) * WARP_TILE + tj + i % 4] = sum[i];
}

// slots warps, 1 to 8, share the chunks of a tile.
template <class T> __global__ void gemm_warp_kernel(gemm_args g, int slots)
{
    __shared__ __align__(16) float room[WARP_WARPS * WARP_ROOM];
    int warp = (int)threadIdx.x / 32, slot = warp % slots, first = warp - slot;
    int64_t tiles_n = (g.n + WARP_TILE - 1) / WARP_TILE,
            chunks = (g.k + GEMM_CHUNK - 1) / GEMM_CHUNK;
    int64_t tile = (int64_t)blockIdx.x * (WARP_WARPS / slots) + warp / slots;
    int64_t row = tile / tiles_n * WARP_TILE, col = tile % tiles_n * WARP_TILE;
    int me = slot * 32 + (int)threadIdx.x % 32;
    for (int64_t at = blockIdx.y; at < g.batch; at += gridDim.y) {
        const T *a = (const T *)g.a + at * g.step_a, *b = (const T *)g.b + at * g.step_b;
        float all[8] = {}, sum[8];
        for (int64_t c = 0; c < chunks; c += slots) {
            int64_t k0 = (c + slot) * GEMM_CHUNK, k1 = tti_min64(k0 + GEMM_CHUNK, g.k);
            if (row < g.m && k0 < g.k) {
                warp_chunk(g, a, b, row, col, k0, k1, room + warp * WARP_ROOM, sum);
                warp_spread(room + warp * WARP_ROOM, sum);
            }
            __syncthreads();
            int n = (int)tti_min64(chunks - c, slots);
            for (int s = 0; s < n; s++)
#pragma unroll
                for (int e = 0; e < 8; e++)
                    if (e * slots < 8)
                        all[e] = all[e] + room[(first + s) * WARP_ROOM + e * slots * 32 + me];
            __syncthreads();
        }
#pragma unroll
        for (int e = 0; e < 8; e++) {
            int64_t i = row + (e * slots * 32 + me) / WARP_TILE;
            int64_t j = col + (e * slots * 32 + me) % WARP_TILE;
            if (e * slots < 8 && i < g.m && j < g.n)
                gemm_end<T>(g, at, i, j, all[e]);
        }
    }
}

/*
 * A sum over lanes at once: lane i has k from bound[i] per to bound[i + 1] per. A warp has up to
 * two lanes of a tile, then each thread the tree of an element. Part p is at y + p part.
 */
template <class T>
__global__ void gemm_lanes_kernel(gemm_args g, tti_lanes_of<WARP_MAX> ln, int64_t per, int64_t part)
{
    __shared__ __align__(16) float room[WARP_WARPS * WARP_ROOM];
    int warp = (int)threadIdx.x / 32, me = (int)threadIdx.x;
    int64_t tiles_n = (g.n + WARP_TILE - 1) / WARP_TILE;
    int64_t row = (int64_t)blockIdx.x / tiles_n * WARP_TILE;
    int64_t col = (int64_t)blockIdx.x % tiles_n * WARP_TILE;
    float all[2][8] = {}, sum[8];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        int lane = warp + i * WARP_WARPS;
        int64_t k0 = lane < ln.n ? ln.bound[lane] * per : 0;
        int64_t k1 = lane < ln.n ? ln.bound[lane + 1] * per : 0;
        for (; k0 < k1; k0 += GEMM_CHUNK) {
            warp_chunk(g, (const T *)g.a, (const T *)g.b, row, col, k0,
                       tti_min64(k0 + GEMM_CHUNK, k1), room + warp * WARP_ROOM, sum);
            for (int e = 0; e < 8; e++)
                all[i][e] = all[i][e] + sum[e];
        }
    }
    warp_spread(room + warp * WARP_ROOM, all[0]);
    warp_spread(room + warp * WARP_ROOM + 256, all[1]);
    __syncthreads();
    int64_t i = row + me / WARP_TILE, j = col + me % WARP_TILE;
    if (i < g.m && j < g.n)
        tti_lane_tree<WARP_MAX>(
            ln,
            [&](int lane) {
                return room[lane % WARP_WARPS * WARP_ROOM + lane / WARP_WARPS * 256 + me];
            },
            [&](int p, float v) { gemm_store(g.out, g.y, p * part + i * g.ldc + j, v); });
}

// ---- launches --------------------------------------------------------------------------------

static inline int64_t gemm_tiles(const gemm_args *g, int64_t side)
{
    return (g->m + side - 1) / side * ((g->n + side - 1) / side);
}

// Which kernel does it changes no bit.
static inline void gemm_launch(const tt_launch *l, tt_dtype in, const gemm_args *g)
{
    unsigned batch = (unsigned)(g->batch < 65535 ? g->batch : 65535);
    int64_t large = gemm_tiles(g, GEMM_TILE);
    if (large * batch >= 2 * tti_device_of(l)->sms && g->m >= 32 && g->n >= 32) {
        dim3 grid((unsigned)large, batch);
        TTI_FLOATS(in, T, { TTI_LAUNCH(l, grid, GEMM_THREADS, 0, gemm_kernel<T>, *g); });
        return;
    }
    int slots = 1;
    while (slots < WARP_WARPS && slots * GEMM_CHUNK < g->k)
        slots *= 2;
    int64_t per = WARP_WARPS / slots;
    dim3 grid((unsigned)((gemm_tiles(g, WARP_TILE) + per - 1) / per), batch);
    TTI_FLOATS(in, T, { TTI_LAUNCH(l, grid, GEMM_THREADS, 0, gemm_warp_kernel<T>, *g, slots); });
}

static inline void gemm_lanes_launch(const tt_launch *l, tt_dtype in, const gemm_args *g,
                                     int64_t per)
{
    tti_lanes_of<WARP_MAX> ln = tti_lanes_by_value<WARP_MAX>(l->lanes);
    unsigned grid = (unsigned)gemm_tiles(g, WARP_TILE);
    TTI_FLOATS(in, T, {
        TTI_LAUNCH(l, grid, GEMM_THREADS, 0, gemm_lanes_kernel<T>, *g, ln, per, g->m * g->n);
    });
}

#endif
