/*
 * attention.cuh - attention on a GPU without a library: any width of head, masks, all float types.
 *
 * A block of 256 threads has 64 queries and goes over blocks of 64 keys, ascending (for dk and dv:
 * 64 keys, over the heads that read them and blocks of 64 queries). A thread holds 4 by 4 of each
 * 64 by 64 tile: rows 4 r to 4 r + 3, columns c, c + 16, c + 32, c + 48. Of the result it holds C
 * tiles; wider heads take more blocks, each working out the scores anew. All sums are chains in one
 * order, so no result depends on the other rows of the call, nor on the grid. The arithmetic is
 * that of attention.c but for the order within sums over keys and the functions exp and log.
 */
#ifndef TUTTI_OP_ATTENTION_CUH
#define TUTTI_OP_ATTENTION_CUH

#include "cuda/kernel.cuh"
#include "op/attention.h"
#include <float.h>

#define ATT_B       64          // queries and keys of a block
#define ATT_D       16          // columns of q, k, v, dy at a time; rows, when they are summed over
#define ATT_PAD     (ATT_B + 1) // so that neighbours in a column are in different banks
#define ATT_THREADS 256
#ifdef TTI_EMU
#define ATT_UNROLL
#else
#define ATT_UNROLL _Pragma("unroll") // what a thread holds is in registers
#endif
static_assert(ATT_B == TTI_ATT_KEYS && ATT_B == TTI_ATT_QUERIES, "blocks of the CPU's size");

struct att_args {
    const void *q, *k, *v; // first element of head 0
    const uint8_t *mask;   // NULL: none
    int64_t mask_batch;    // from one row of the batch to the next; 0: the same for all
    void *y;               // forward
    float *lse;            // written by the forward, read by the gradient
    const void *dy;        // gradient
    const float *delta;    //
    void *dq, *dk, *dv;    //
    int64_t batch, heads, kv_heads, tq, tk, d;
    int64_t q_row, kv_row; // elements from one time step to the next; those of y: heads d
    int64_t q_blocks, k_blocks, chunks; // chunks of columns of a result
    float scale;
    int type;
    int causal, alibi;
    int64_t near; // a query sees keys less far from it
};

__device__ static inline float att_get(int type, const void *p, int64_t i)
{
    if (type == TT_BF16)
        return tti_get(((const tti_bf16 *)p)[i]);
    if (type == TT_F16)
        return tti_get(((const tti_f16 *)p)[i]);
    return ((const float *)p)[i];
}

__device__ static inline void att_put(int type, void *p, int64_t i, float v)
{
    if (type == TT_BF16)
        tti_put(((tti_bf16 *)p)[i], v);
    else if (type == TT_F16)
        tti_put(((tti_f16 *)p)[i], v);
    else
        ((float *)p)[i] = v;
}

// Where things of one batch row and head start, in elements.
struct att_at {
    int64_t b, h, q, kv, y, lse; // q and kv of time step 0; y and dy alike
};

__device__ static inline att_at att_find(const att_args &a, int64_t b, int64_t h)
{
    att_at at;
    at.b = b;
    at.h = h;
    at.q = b * a.tq * a.q_row + h * a.d;
    at.kv = b * a.tk * a.kv_row + h / (a.heads / a.kv_heads) * a.d;
    at.y = (b * a.tq * a.heads + h) * a.d;
    at.lse = (b * a.heads + h) * a.tq;
    return at;
}

// Rows [row, row + 64) and columns [d0, d0 + 16) of x, times factor, to shared memory as [row][16].
__device__ static inline void att_load(const att_args &a, float *to, const void *x, int64_t at,
                                       int64_t stride, int64_t row, int64_t rows, int64_t d0,
                                       float factor)
{
    for (int e = (int)threadIdx.x; e < ATT_B * ATT_D; e += ATT_THREADS) {
        int r = e / ATT_D, c = e % ATT_D;
        bool in = row + r < rows && d0 + c < a.d;
        to[r * (ATT_D + 1) + c] =
            in ? att_get(a.type, x, at + (row + r) * stride + d0 + c) * factor : 0.0f;
    }
}

// s[i][j] = chain over D of x(i0 + row) w(j0 + column): a tile of scores, or of dy v.
__device__ static inline void att_tile(const att_args &a, float *xs, float *ws, const void *x,
                                       int64_t x_at, int64_t x_row, int64_t i0, float factor,
                                       const void *w, int64_t w_at, int64_t j0, float s[4][4])
{
    int r = (int)threadIdx.x / 16 * 4, c = (int)threadIdx.x % 16;
    ATT_UNROLL for (int i = 0; i < 4; i++) ATT_UNROLL for (int j = 0; j < 4; j++) s[i][j] = 0.0f;
    for (int64_t d0 = 0; d0 < a.d; d0 += ATT_D) {
        __syncthreads(); // what was in shared memory has been read
        att_load(a, xs, x, x_at, x_row, i0, a.tq, d0, factor);
        att_load(a, ws, w, w_at, a.kv_row, j0, a.tk, d0, 1.0f);
        __syncthreads();
        for (int q = 0; q < ATT_D; q++)
            ATT_UNROLL for (int i = 0; i < 4; i++) ATT_UNROLL for (int j = 0; j < 4; j++) s[i][j] =
                fmaf(xs[(r + i) * (ATT_D + 1) + q], ws[(c + 16 * j) * (ATT_D + 1) + q], s[i][j]);
    }
}

// The scores of a tile, less the slope of the head times the distance.
__device__ static inline void att_bias(const att_args &a, int64_t h, int64_t i0, int64_t j0,
                                       float s[4][4])
{
    if (!a.alibi)
        return;
    int r = (int)threadIdx.x / 16 * 4, c = (int)threadIdx.x % 16;
    float slope = (float)tti_attention_slope(a.heads, h);
    ATT_UNROLL for (int i = 0; i < 4; i++) ATT_UNROLL for (int j = 0; j < 4; j++)
    {
        int64_t far = i0 + r + i - (j0 + c + 16 * j);
        s[i][j] = s[i][j] - slope * (float)(far < 0 ? -far : far);
    }
}

// Blocks of keys that queries [i0, i0 + 64) see any of, and of queries that see keys of [j0, ..).
__device__ static inline int64_t att_first(const att_args &a, int64_t at)
{
    int64_t first = at - a.near + 1;
    return first <= 0 ? 0 : first / ATT_B * ATT_B;
}

__device__ static inline int64_t att_end(const att_args &a, int64_t at, int64_t n)
{
    int64_t end = at + ATT_B - 1 + a.near;
    return end < n ? end : n;
}

__device__ static inline bool att_sees(const att_args &a, int64_t b, int64_t i, int64_t j)
{
    return i < a.tq && j < a.tk && (!a.causal || j <= i) && i - j < a.near && j - i < a.near &&
           (a.mask == NULL || a.mask[b * a.mask_batch + i * a.tk + j] != 0);
}

/*
 * out[u][i][j] goes on with the chain over the 64 rows n of w(n, r + i) x(n, column j of tile u):
 * w is a tile in shared memory, read along its rows or its columns; x is read 16 rows at a time.
 */
template <int C>
__device__ static inline void att_sum(const att_args &a, const float *w, int w_out, int w_in,
                                      float *xs, const void *x, int64_t at, int64_t stride,
                                      int64_t row, int64_t rows, int64_t col, float factor,
                                      float out[C][4][4])
{
    int r = (int)threadIdx.x / 16 * 4, c = (int)threadIdx.x % 16;
    ATT_UNROLL for (int u = 0; u < C; u++) for (int n0 = 0; n0 < ATT_B; n0 += ATT_D)
    {
        __syncthreads();
        for (int e = (int)threadIdx.x; e < ATT_D * ATT_B; e += ATT_THREADS) {
            int n = e / ATT_B, d = e % ATT_B;
            int64_t dd = col + u * ATT_B + d;
            bool in = row + n0 + n < rows && dd < a.d;
            xs[n * ATT_PAD + d] =
                in ? att_get(a.type, x, at + (row + n0 + n) * stride + dd) * factor : 0.0f;
        }
        __syncthreads();
        for (int n = 0; n < ATT_D; n++)
            ATT_UNROLL for (int i = 0; i < 4; i++) ATT_UNROLL for (int j = 0; j < 4; j++)
                out[u][i][j] = fmaf(w[(r + i) * w_out + (n0 + n) * w_in],
                                    xs[n * ATT_PAD + c + 16 * j], out[u][i][j]);
    }
}

// Writes out, times factor, to rows [row, rows) of x.
template <int C>
__device__ static inline void att_write(const att_args &a, void *x, int64_t at, int64_t stride,
                                        int64_t row, int64_t rows, int64_t col, float factor,
                                        float out[C][4][4])
{
    int r = (int)threadIdx.x / 16 * 4, c = (int)threadIdx.x % 16;
    ATT_UNROLL for (int u = 0; u < C; u++) ATT_UNROLL for (int i = 0; i < 4; i++)
        ATT_UNROLL for (int j = 0; j < 4; j++)
    {
        int64_t d = col + u * ATT_B + c + 16 * j;
        if (row + r + i < rows && d < a.d)
            att_put(a.type, x, at + (row + r + i) * stride + d, out[u][i][j] * factor + 0.0f);
    }
}

// ---- forward ---------------------------------------------------------------------------------

/*
 * The scores of a tile become weights; m, l and w are of the queries: largest score, sum, and the
 * factor of what was summed before. Four neighbouring threads have a query, sixteen keys each.
 */
__device__ static inline void att_soften(const att_args &a, int64_t b, int64_t i0, int64_t j0,
                                         float *p, float *m, float *l, float *w)
{
    int i = (int)threadIdx.x / 4, part = (int)threadIdx.x % 4 * 16;
    float old = m[i], max = old, sum = 0.0f;
    for (int j = part; j < part + 16; j++)
        if (att_sees(a, b, i0 + i, j0 + j))
            max = p[i * ATT_PAD + j] > max ? p[i * ATT_PAD + j] : max;
    for (int k = 1; k < 4; k *= 2) {
        float other = __shfl_xor_sync(0xffffffffu, max, k);
        max = other > max ? other : max;
    }
    for (int j = part; j < part + 16; j++) {
        float e = 0.0f;
        if (att_sees(a, b, i0 + i, j0 + j))
            e = expf(p[i * ATT_PAD + j] - max);
        p[i * ATT_PAD + j] = e;
        sum = sum + e;
    }
    for (int k = 1; k < 4; k *= 2)
        sum = sum + __shfl_xor_sync(0xffffffffu, sum, k);
    __syncwarp();
    if (part == 0) {
        w[i] = expf(old - max);
        l[i] = fmaf(l[i], w[i], sum);
        m[i] = max;
    }
}

template <int C> __global__ void attention_kernel(att_args a)
{
    __shared__ float xs[ATT_B * (ATT_D + 1)], ws[ATT_B * (ATT_D + 1)], p[ATT_B * ATT_PAD];
    __shared__ float m[ATT_B], l[ATT_B], w[ATT_B];
    int64_t u = blockIdx.x, chunk = u % a.chunks, bh = u / a.chunks / a.q_blocks;
    int64_t i0 = u / a.chunks % a.q_blocks * ATT_B, col = chunk * C * ATT_B;
    att_at at = att_find(a, bh / a.heads, bh % a.heads);
    int r = (int)threadIdx.x / 16 * 4, c = (int)threadIdx.x % 16;
    float o[C][4][4] = {}, s[4][4];
    if (threadIdx.x < ATT_B) {
        m[threadIdx.x] = -FLT_MAX;
        l[threadIdx.x] = 0.0f;
    }
    int64_t end = att_end(a, i0, a.tk);
    for (int64_t j0 = att_first(a, i0); j0 < end && (!a.causal || j0 <= i0 + ATT_B - 1);
         j0 += ATT_B) {
        att_tile(a, xs, ws, a.q, at.q, a.q_row, i0, a.scale, a.k, at.kv, j0, s);
        att_bias(a, at.h, i0, j0, s);
        ATT_UNROLL for (int i = 0; i < 4; i++) ATT_UNROLL for (int j = 0; j < 4; j++)
            p[(r + i) * ATT_PAD + c + 16 * j] = s[i][j];
        __syncthreads();
        att_soften(a, at.b, i0, j0, p, m, l, w);
        __syncthreads();
        ATT_UNROLL for (int v = 0; v < C; v++) ATT_UNROLL for (int i = 0; i < 4; i++)
            ATT_UNROLL for (int j = 0; j < 4; j++) o[v][i][j] = o[v][i][j] * w[r + i];
        att_sum<C>(a, p, ATT_PAD, 1, xs, a.v, at.kv, a.kv_row, j0, a.tk, col, 1.0f, o);
    }
    __syncthreads();
    ATT_UNROLL for (int v = 0; v < C; v++) ATT_UNROLL for (int i = 0; i < 4; i++)
        ATT_UNROLL for (int j = 0; j < 4; j++) o[v][i][j] =
            l[r + i] == 0.0f ? 0.0f : o[v][i][j] / l[r + i];
    att_write<C>(a, a.y, at.y, a.heads * a.d, i0, a.tq, col, 1.0f, o);
    if (chunk == 0 && threadIdx.x < ATT_B && i0 + threadIdx.x < a.tq) {
        float sum = l[threadIdx.x];
        a.lse[at.lse + i0 + threadIdx.x] = sum == 0.0f ? 0.0f : m[threadIdx.x] + logf(sum) + 0.0f;
    }
}

// ---- gradient --------------------------------------------------------------------------------

/*
 * delta = chain over a query's columns of dy y, as dp is of dy v: where y is the v of a query's
 * only key, dp - delta is 0. A block has 64 queries; 16 columns of them at a time are in shared
 * memory.
 */
static __global__ void att_delta_kernel(att_args a, const void *y, float *delta)
{
    __shared__ float xs[ATT_B * (ATT_D + 1)], ws[ATT_B * (ATT_D + 1)];
    int64_t bh = blockIdx.x / a.q_blocks, i0 = blockIdx.x % a.q_blocks * ATT_B;
    att_at at = att_find(a, bh / a.heads, bh % a.heads);
    int i = (int)threadIdx.x;
    float sum = 0.0f;
    for (int64_t d0 = 0; d0 < a.d; d0 += ATT_D) {
        __syncthreads();
        att_load(a, xs, a.dy, at.y, a.heads * a.d, i0, a.tq, d0, 1.0f);
        att_load(a, ws, y, at.y, a.heads * a.d, i0, a.tq, d0, 1.0f);
        __syncthreads();
        for (int q = 0; q < ATT_D && i < ATT_B; q++)
            sum = fmaf(xs[i * (ATT_D + 1) + q], ws[i * (ATT_D + 1) + q], sum);
    }
    if (i < ATT_B && i0 + i < a.tq)
        delta[at.lse + i0 + i] = sum;
}

// p and ds of a tile, this thread's elements; ds to shared memory as [query][key], p if wanted.
__device__ static inline void att_scores_grad(const att_args &a, const att_at &at, float *xs,
                                              float *ws, int64_t i0, int64_t j0, float *ps,
                                              float *ds)
{
    int r = (int)threadIdx.x / 16 * 4, c = (int)threadIdx.x % 16;
    float s[4][4], g[4][4];
    att_tile(a, xs, ws, a.q, at.q, a.q_row, i0, a.scale, a.k, at.kv, j0, s);
    att_bias(a, at.h, i0, j0, s);
    att_tile(a, xs, ws, a.dy, at.y, a.heads * a.d, i0, 1.0f, a.v, at.kv, j0, g);
    ATT_UNROLL for (int i = 0; i < 4; i++) ATT_UNROLL for (int j = 0; j < 4; j++)
    {
        int64_t row = i0 + r + i, key = j0 + c + 16 * j;
        float p = 0.0f, d = 0.0f;
        if (att_sees(a, at.b, row, key)) {
            p = expf(s[i][j] - a.lse[at.lse + row]);
            d = p * (g[i][j] - a.delta[at.lse + row]);
        }
        if (ps != NULL)
            ps[(r + i) * ATT_PAD + c + 16 * j] = p;
        ds[(r + i) * ATT_PAD + c + 16 * j] = d;
    }
}

template <int C> __global__ void att_dq_kernel(att_args a)
{
    __shared__ float xs[ATT_B * (ATT_D + 1)], ws[ATT_B * (ATT_D + 1)], ds[ATT_B * ATT_PAD];
    int64_t u = blockIdx.x, col = u % a.chunks * C * ATT_B, bh = u / a.chunks / a.q_blocks;
    int64_t i0 = u / a.chunks % a.q_blocks * ATT_B;
    att_at at = att_find(a, bh / a.heads, bh % a.heads);
    float o[C][4][4] = {};
    int64_t end = att_end(a, i0, a.tk);
    for (int64_t j0 = att_first(a, i0); j0 < end && (!a.causal || j0 <= i0 + ATT_B - 1);
         j0 += ATT_B) {
        att_scores_grad(a, at, xs, ws, i0, j0, NULL, ds);
        att_sum<C>(a, ds, ATT_PAD, 1, xs, a.k, at.kv, a.kv_row, j0, a.tk, col, 1.0f, o);
    }
    att_write<C>(a, a.dq, at.q, a.q_row, i0, a.tq, col, a.scale, o);
}

template <int C> __global__ void att_dkv_kernel(att_args a)
{
    __shared__ float xs[ATT_B * (ATT_D + 1)], ws[ATT_B * (ATT_D + 1)];
    __shared__ float ps[ATT_B * ATT_PAD], ds[ATT_B * ATT_PAD];
    int64_t u = blockIdx.x, col = u % a.chunks * C * ATT_B, bg = u / a.chunks / a.k_blocks;
    int64_t j0 = u / a.chunks % a.k_blocks * ATT_B, group = a.heads / a.kv_heads;
    int64_t b = bg / a.kv_heads, first = bg % a.kv_heads * group;
    att_at at = att_find(a, b, first);
    float k[C][4][4] = {}, v[C][4][4] = {};
    for (int64_t h = first; h < first + group; h++) {
        at = att_find(a, b, h);
        int64_t end = att_end(a, j0, a.tq);
        for (int64_t i0 = a.causal ? j0 : att_first(a, j0); i0 < end; i0 += ATT_B) {
            att_scores_grad(a, at, xs, ws, i0, j0, ps, ds);
            att_sum<C>(a, ds, 1, ATT_PAD, xs, a.q, at.q, a.q_row, i0, a.tq, col, a.scale, k);
            att_sum<C>(a, ps, 1, ATT_PAD, xs, a.dy, at.y, a.heads * a.d, i0, a.tq, col, 1.0f, v);
        }
    }
    att_write<C>(a, a.dk, at.kv, a.kv_row, j0, a.tk, col, 1.0f, k);
    att_write<C>(a, a.dv, at.kv, a.kv_row, j0, a.tk, col, 1.0f, v);
}

// ---- launches --------------------------------------------------------------------------------

static inline void att_forward(const tt_launch *l, att_args a)
{
    int64_t units = a.batch * a.heads * a.q_blocks;
    a.chunks = a.d <= ATT_B ? 1 : (a.d + 2 * ATT_B - 1) / (2 * ATT_B);
    if (units == 0)
        return;
    if (a.d <= ATT_B)
        TTI_LAUNCH(l, (unsigned)units, ATT_THREADS, 0, attention_kernel<1>, a);
    else
        TTI_LAUNCH(l, (unsigned)(units * a.chunks), ATT_THREADS, 0, attention_kernel<2>, a);
}

// delta has room for a number for each query and head.
static inline void att_backward(const tt_launch *l, att_args a, const void *y, float *delta)
{
    int64_t q_units = a.batch * a.heads * a.q_blocks, k_units = a.batch * a.kv_heads * a.k_blocks;
    a.chunks = a.d <= ATT_B ? 1 : (a.d + 2 * ATT_B - 1) / (2 * ATT_B);
    a.delta = delta;
    if (q_units > 0)
        TTI_LAUNCH(l, (unsigned)q_units, ATT_THREADS, 0, att_delta_kernel, a, y, delta);
    q_units *= a.chunks;
    k_units *= a.chunks;
    if (a.d <= ATT_B) {
        if (q_units > 0)
            TTI_LAUNCH(l, (unsigned)q_units, ATT_THREADS, 0, att_dq_kernel<1>, a);
        if (k_units > 0)
            TTI_LAUNCH(l, (unsigned)k_units, ATT_THREADS, 0, att_dkv_kernel<1>, a);
    } else {
        if (q_units > 0)
            TTI_LAUNCH(l, (unsigned)q_units, ATT_THREADS, 0, att_dq_kernel<2>, a);
        if (k_units > 0)
            TTI_LAUNCH(l, (unsigned)k_units, ATT_THREADS, 0, att_dkv_kernel<2>, a);
    }
}

#endif
