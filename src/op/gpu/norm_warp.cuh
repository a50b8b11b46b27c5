/*
 * norm_warp.cuh - norms of rows of up to TTI_ROW_WARP columns whose packs are aligned: a warp has a
 * row in registers, K packs in each thread. Sums are in the order of norm.cu's other kernels.
 */
#ifndef TUTTI_OP_NORM_WARP_CUH
#define TUTTI_OP_NORM_WARP_CUH

#include "op/gpu/norm_far.cuh"
#include "op/gpu/pack.cuh"
#include "op/gpu/rows.cuh"

#define TTI_NORM_THREADS 128 // of a block with short rows
#define TTI_NORM_WARPS   (TTI_NORM_THREADS / 32)

// A pack of an aligned vector.
template <class T>
__device__ static inline void get_aligned(const vector &p, int j, float other, float *x)
{
    const int V = tti_pack<T>::n;
    if (p.at == NULL) {
#pragma unroll
        for (int i = 0; i < V; i++)
            x[i] = other;
    } else if (p.dtype != TT_F32) {
        tti_regs<T, V> v = *(const tti_regs<T, V> *)((const T *)p.at + j);
#pragma unroll
        for (int i = 0; i < V; i++)
            x[i] = v.get(i);
    } else {
#pragma unroll
        for (int i = 0; i < V; i += 4) {
            tti_regs<float, 4> v = *(const tti_regs<float, 4> *)((const float *)p.at + j + i);
#pragma unroll
            for (int k = 0; k < 4; k++)
                x[i + k] = v.get(k);
        }
    }
}

/*
 * A thread's packs of a row as they lie in memory; zeros past its end. again() is where they are
 * unpacked once more: else the compiler would keep them unpacked, in twice the registers.
 */
template <class T, int K> struct packs {
    static const int V = tti_pack<T>::n;
    tti_regs<T, tti_pack<T>::n> p[K];

    __device__ static int column(int k)
    {
        return (k * 32 + (int)threadIdx.x % 32) * V;
    }
    __device__ void load(const void *x, int64_t r, int n)
    {
#pragma unroll
        for (int k = 0; k < K; k++) {
            p[k] = {};
            if (column(k) < n)
                p[k] = *(const tti_regs<T, tti_pack<T>::n> *)((const T *)x + r * n + column(k));
        }
    }
    __device__ void get(int k, float *x) const
    {
#pragma unroll
        for (int i = 0; i < V; i++)
            x[i] = p[k].get(i);
    }
    __device__ void again(void)
    {
#ifdef __CUDA_ARCH__
#pragma unroll
        for (int k = 0; k < K; k++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                asm volatile("" : "+r"(p[k].w[i]));
#endif
    }
};

// ---- forward: R rows of a warp are on their way at once --------------------------------------

// x of R rows becomes x + add, rounded, and goes to sum.
template <class T, int K, int R>
__device__ static inline void add_rows_of_warp(const norm_args &p, int64_t first,
                                               packs<T, K> (&x)[R])
{
    const int V = tti_pack<T>::n;
    int n = (int)p.n;
    packs<T, K> more[R];
#pragma unroll
    for (int r = 0; r < R; r++)
        more[r].load(p.add, tti_min64(first + r, p.rows - 1), n);
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int k = 0; k < K; k++) {
            float v[V], w[V];
            x[r].get(k, v);
            more[r].get(k, w);
#pragma unroll
            for (int i = 0; i < V; i++)
                v[i] = v[i] + w[i];
            x[r].p[k].put_all(v);
            if (p.sum != NULL && x[r].column(k) < n && first + r < p.rows)
                x[r].p[k].store((T *)p.sum + (first + r) * n + x[r].column(k));
        }
}

template <class T, int K, int R, bool ADD>
__global__ static void __launch_bounds__(TTI_NORM_THREADS, ADD &&K > 6 ? 5 : 6)
    norm_warps(const norm_args p)
{
    const int V = tti_pack<T>::n;
    int n = (int)p.n;
    // The last rows first: the maker of x has left them in the cache.
    int64_t block = gridDim.x - 1 - blockIdx.x,
            first = (block * TTI_NORM_WARPS + threadIdx.x / 32) * R;
    packs<T, K> x[R];
    float mean[R] = {}, sum[R] = {}, v[V];
    if (first >= p.rows)
        return;
#pragma unroll
    for (int r = 0; r < R; r++) // a row there is not is the last one once more
        x[r].load(p.x, tti_min64(first + r, p.rows - 1), n);
    if (ADD)
        add_rows_of_warp<T, K, R>(p, first, x);
    if (p.mean != NULL) {
#pragma unroll
        for (int r = 0; r < R; r++)
#pragma unroll
            for (int k = 0; k < K; k++) {
                x[r].get(k, v);
#pragma unroll
                for (int i = 0; i < V; i++)
                    sum[r] = sum[r] + v[i];
            }
#pragma unroll
        for (int r = 0; r < R; r++) {
            mean[r] = tti_warp_sum(sum[r]) / (float)n;
            sum[r] = 0;
            x[r].again();
        }
    }
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int k = 0; k < K; k++) {
            x[r].get(k, v);
#pragma unroll
            for (int i = 0; i < V; i++) {
                float d = x[r].column(k) < n ? v[i] - mean[r] : 0;
                sum[r] = fmaf(d, d, sum[r]);
            }
        }
#pragma unroll
    for (int r = 0; r < R; r++) {
        float squares = tti_warp_sum(sum[r]);
        sum[r] = 1 / sqrtf(squares / (float)n + p.eps);
        if (!(squares < INFINITY)) { // a NaN then says that the row is done
            int64_t at = tti_min64(first + r, p.rows - 1);
            const void *from = ADD && p.sum != NULL ? p.sum : p.x;
            const T *add = ADD && p.sum == NULL ? (const T *)p.add + at * n : NULL;
            if (first + r < p.rows)
                norm_row_far<T, 32>(p, (const T *)from + at * n, add, at);
            sum[r] = NAN;
        }
        x[r].again();
    }
#pragma unroll
    for (int k = 0; k < K; k++) {
        float g[V], b[V];
        int j = x[0].column(k);
        if (j >= n)
            break;
        get_aligned<T>(p.gamma, j, 1, g);
        get_aligned<T>(p.beta, j, 0, b);
#pragma unroll
        for (int r = 0; r < R; r++) {
            x[r].get(k, v);
#pragma unroll
            for (int i = 0; i < V; i++)
                v[i] = fmaf((v[i] - mean[r]) * sum[r], g[i], b[i]);
            tti_pack<T> y;
            tti_repack(y, v);
            if (first + r < p.rows && sum[r] == sum[r])
                *(tti_pack<T> *)((T *)p.y + (first + r) * n + j) = y;
        }
    }
    if (threadIdx.x % 32 == 0)
#pragma unroll
        for (int r = 0; r < R; r++)
            if (first + r < p.rows && sum[r] == sum[r]) {
                p.rstd[first + r] = sum[r];
                if (p.mean != NULL)
                    p.mean[first + r] = mean[r];
            }
}

// ---- backward --------------------------------------------------------------------------------

// A row of x and dy with its statistics.
template <class T, int K> struct grad_in {
    packs<T, K> x, dy;
    float mean, rstd;

    __device__ void load(const grad_args &p, int64_t r)
    {
        x.load(p.x, r, (int)p.n);
        dy.load(p.dy, r, (int)p.n);
        mean = p.mean != NULL ? p.mean[r] : 0;
        rstd = p.rstd[r];
    }
};

// Gamma of a block's columns in shared memory: four numbers of each thread of a warp side by side.
template <class T, int K> struct grad_gamma {
    static const int V = tti_pack<T>::n;
    tti_regs<float, 4> (*at)[32];

    __device__ void load(const grad_args &p)
    {
        float v[V];
        int t = (int)threadIdx.x % 32;
        for (int k = (int)threadIdx.x / 32; k < K; k += TTI_NORM_WARPS) {
            int j = (k * 32 + t) * V;
            if (j >= (int)p.n)
                break;
            get_aligned<T>(p.gamma, j, 1, v);
#pragma unroll
            for (int i = 0; i < V; i++)
                at[k * (V / 4) + i / 4][t].put(i % 4, v[i]);
        }
        __syncthreads();
    }
    __device__ void get(int k, float *g) const
    {
#pragma unroll
        for (int i = 0; i < V; i += 4) {
            tti_regs<float, 4> v = at[k * (V / 4) + i / 4][threadIdx.x % 32];
#pragma unroll
            for (int e = 0; e < 4; e++)
                g[i + e] = v.get(e);
        }
    }
};

// dx of row r, which may be x or dy, or sum, which may be what is added; adds to the thread's sums.
template <class T, int K, bool ADD>
__device__ static inline void grad_warp_row(const grad_args &p, grad_in<T, K> &in, int64_t r,
                                            const grad_gamma<T, K> &gamma,
                                            float (&sum)[2][K][tti_pack<T>::n])
{
    const int V = tti_pack<T>::n;
    float a = 0, b = 0, h[V], d[V], g[V];
    int n = (int)p.n;
    packs<T, ADD ? K : 1> more;
    if (ADD)
        more.load(p.add, r, n);
#pragma unroll
    for (int k = 0; k < K; k++) {
        int j = in.x.column(k);
        if (j >= n)
            break;
        in.x.get(k, h);
        in.dy.get(k, d);
        gamma.get(k, g);
#pragma unroll
        for (int i = 0; i < V; i++) {
            h[i] = (h[i] - in.mean) * in.rstd;
            sum[0][k][i] = fmaf(d[i], h[i], sum[0][k][i]);
            sum[1][k][i] = sum[1][k][i] + d[i];
            g[i] = d[i] * g[i];
            a = a + g[i];
            b = fmaf(g[i], h[i], b);
        }
    }
#pragma unroll
    for (int k = 16; k > 0; k >>= 1) { // side by side: a shuffle is long on its way
        a = a + __shfl_xor_sync(0xffffffffu, a, k);
        b = b + __shfl_xor_sync(0xffffffffu, b, k);
    }
    a = p.mean != NULL ? a / (float)n : 0;
    b = b / (float)n;
    in.x.again();
    in.dy.again();
#pragma unroll
    for (int k = 0; k < K; k++) {
        int j = in.x.column(k);
        if (j >= n)
            break;
        in.x.get(k, h);
        in.dy.get(k, d);
        gamma.get(k, g);
        tti_regs<T, V> dx;
#pragma unroll
        for (int i = 0; i < V; i++)
            h[i] = fmaf(-((h[i] - in.mean) * in.rstd), b, d[i] * g[i] - a) * in.rstd;
        dx.put_all(h);
        if (!ADD || p.dx != NULL)
            dx.store((T *)p.dx + r * n + j);
        if (!ADD)
            continue;
        more.get(ADD ? k : 0, d);
#pragma unroll
        for (int i = 0; i < V; i++)
            h[i] = dx.get(i) + d[i];
        dx.put_all(h);
        dx.store((T *)p.sum + r * n + j);
    }
}

// The block's sums: its warps' in their order.
template <class T, int K>
__device__ static inline void put_sums(const grad_args &p, int lane,
                                       const float (&sum)[2][K][tti_pack<T>::n])
{
    const int V = tti_pack<T>::n;
    __shared__ float part[TTI_NORM_WARPS][2][K * V][33];
    int warp = (int)threadIdx.x / 32, t = (int)threadIdx.x % 32;
#pragma unroll
    for (int s = 0; s < 2; s++)
#pragma unroll
        for (int k = 0; k < K; k++)
#pragma unroll
            for (int i = 0; i < V; i++)
                part[warp][s][k * V + i][t] = sum[s][k][i];
    __syncthreads();
    float *to = chunk_sums(p, lane);
    for (int s = p.has_dgamma ? 0 : 1; s < (p.has_dbeta ? 2 : 1); s++, to += p.n)
        for (int j = (int)threadIdx.x; j < (int)p.n; j += TTI_NORM_THREADS) {
            int at = j / (32 * V) * V + j % V, x = j / V % 32;
            float y = part[0][s][at][x];
            for (int w = 1; w < TTI_NORM_WARPS; w++)
                y = y + part[w][s][at][x];
            to[j] = y;
        }
}

// A chunk of a lane: warp w has its rows w, w + 4, ..., and where there is room (AHEAD) reads the
// next while it computes.
template <class T, int K, bool AHEAD, int BLOCKS, bool ADD>
__global__ static void __launch_bounds__(TTI_NORM_THREADS, BLOCKS)
    grad_warps(const grad_args p, const tti_lane_group ln, int64_t runs)
{
    int lane = lane_of_block();
    int64_t first = ln.bound[lane] * p.per, len = (ln.bound[lane + 1] - ln.bound[lane]) * p.per;
    int64_t begin = chunk_of_block() * TTI_NORM_CHUNK;
    int64_t end = tti_min64(begin + TTI_NORM_CHUNK, len * runs);
    if (begin >= end && begin > 0) // the first chunk is there even without rows
        return;
    __shared__ tti_regs<float, 4> columns[K * tti_pack<T>::n / 4][32];
    float sum[2][K][tti_pack<T>::n] = {};
    grad_in<T, K> in, next;
    grad_gamma<T, K> gamma = {columns};
    int64_t i = begin + threadIdx.x / 32;
    if (AHEAD && i < end)
        next.load(p, lane_row(p, first, len, i));
    gamma.load(p);
    for (; i < end; i += TTI_NORM_WARPS) {
        int64_t r = lane_row(p, first, len, i);
        if (!AHEAD)
            in.load(p, r);
        else
            in = next;
        if (AHEAD && i + TTI_NORM_WARPS < end)
            next.load(p, lane_row(p, first, len, i + TTI_NORM_WARPS));
        grad_warp_row<T, K, ADD>(p, in, r, gamma, sum);
    }
    if (p.has_dgamma || p.has_dbeta)
        put_sums<T, K>(p, ln.first + lane, sum);
}

// ---- which of them ---------------------------------------------------------------------------

// Calls body with T and K for rows of n columns, if they are short, of whole packs.
#define TTI_NORM_SHORT(dtype, cols, T, K, ...)                \
    do {                                                      \
        int64_t cols_ = (cols);                               \
        if ((dtype) == TT_BF16 && cols_ <= 512) {             \
            TTI_NORM_SHORT_OF(tti_bf16, 2, T, K, __VA_ARGS__) \
        } else if ((dtype) == TT_BF16 && cols_ <= 768) {      \
            TTI_NORM_SHORT_OF(tti_bf16, 3, T, K, __VA_ARGS__) \
        } else if ((dtype) == TT_BF16) {                      \
            TTI_NORM_SHORT_OF(tti_bf16, 4, T, K, __VA_ARGS__) \
        } else if ((dtype) == TT_F16) {                       \
            TTI_NORM_SHORT_OF(tti_f16, 4, T, K, __VA_ARGS__)  \
        } else if (cols_ <= 512) {                            \
            TTI_NORM_SHORT_OF(float, 4, T, K, __VA_ARGS__)    \
        } else if (cols_ <= 768) {                            \
            TTI_NORM_SHORT_OF(float, 6, T, K, __VA_ARGS__)    \
        } else {                                              \
            TTI_NORM_SHORT_OF(float, 8, T, K, __VA_ARGS__)    \
        }                                                     \
    } while (0)
#define TTI_NORM_SHORT_OF(type, packs, T, K, ...) \
    typedef type T;                               \
    const int K = packs;                          \
    __VA_ARGS__

static inline bool tti_norm_is_short(tt_dtype dtype, int64_t cols)
{
    return cols <= TTI_ROW_WARP && cols % (dtype == TT_F32 ? 4 : 8) == 0;
}

#endif
