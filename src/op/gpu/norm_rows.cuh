/*
 * norm_rows.cuh - norms of any rows: of up to TTI_ROW_WARP columns by a warp, which keeps them in
 * registers where packs are aligned; longer ones by a block, which reads them again from a cache.
 * The gradient's kernel has a chunk of a lane's rows: it writes dx and adds up dgamma and dbeta on
 * the way, each thread for columns of its own (of short rows in registers, warps being added at
 * the end; of long ones in shared memory).
 */
#ifndef TUTTI_OP_NORM_ROWS_CUH
#define TUTTI_OP_NORM_ROWS_CUH

#include "op/gpu/norm_warp.cuh"

#define TTI_NORM_IN_BLOCK 6144 // columns whose two sums fit in a block's shared memory

// m elements of a vector, of type f32 or T, from j on, which is a multiple of a pack's.
template <class T>
__device__ static inline void get_vector(const vector &p, int64_t j, int m, float other, float *x)
{
    const int V = tti_pack<T>::n;
    if (p.at == NULL) {
        for (int i = 0; i < V; i++)
            x[i] = other;
    } else if (p.dtype != TT_F32) {
        tti_row_pack((const T *)p.at + j, m, other, x);
    } else {
        for (int i = 0; i < V; i += 4)
            tti_row_pack((const float *)p.at + j + i, m - i, other, x + i);
    }
}

/*
 * A row as its threads see it: pack k of a thread begins at column j = (k G + t) V. In registers
 * (K packs of each thread); in memory where K is 0 or packs are not aligned.
 */
template <class T, int G, int K> struct row {
    static const int V = tti_pack<T>::n;
    const T *at;
    int64_t n;
    bool kept;
    tti_pack<T> p[K > 0 ? K : 1];

    __device__ void load(const T *from, int64_t cols)
    {
        at = from;
        n = cols;
        kept = K > 0 && ((uintptr_t)from & 15) == 0 && n % V == 0;
        if (!kept)
            return;
        int t = (int)threadIdx.x % G;
#pragma unroll
        for (int k = 0; k < K; k++)
            if ((k * G + t) * V < n)
                p[k] = ((const tti_pack<T> *)from)[k * G + t];
    }
    // Elements of pack k, zero past the row's end.
    __device__ void get(int k, int64_t j, float *x) const
    {
        if (kept)
            tti_unpack(p[K > 0 ? k : 0], x);
        else
            tti_row_pack(at + j, n - j, 0, x);
    }
};

// Calls body with k, j (the column) and m (elements that are there) for each pack of a thread.
#define EACH_PACK(G, K, V, n, ...)                                               \
    do {                                                                         \
        int64_t packs_ = ((n) + (V)-1) / (V);                                    \
        int t_ = (int)threadIdx.x % (G);                                         \
        _Pragma("unroll") for (int k = 0; k < ((K) > 0 ? (K) : 1);               \
                               k++) for (int64_t b_ = (int64_t)k * (G) + t_;     \
                                         b_<packs_; b_ += (K)> 0 ? packs_ : (G)) \
        {                                                                        \
            int64_t j = b_ * (V);                                                \
            int m = (int)tti_min64((n)-j, (V));                                  \
            __VA_ARGS__                                                          \
        }                                                                        \
    } while (0)

// ---- forward ---------------------------------------------------------------------------------

// Row r of x + add, as it lies in sum, or in y where that is not kept: each thread reads what it
// alone has written.
template <class T, int G, int K>
__device__ static inline const T *add_row(const norm_args &p, int64_t r)
{
    const int V = tti_pack<T>::n;
    T *to = (T *)(p.sum != NULL ? p.sum : p.y) + r * p.n;
    EACH_PACK(G, K, V, p.n, {
        float v[V], w[V];
        tti_row_pack((const T *)p.x + r * p.n + j, m, 0, v);
        tti_row_pack((const T *)p.add + r * p.n + j, m, 0, w);
        for (int i = 0; i < V; i++)
            v[i] = v[i] + w[i];
        tti_row_put(to + j, m, v);
        (void)k;
    });
    return to;
}

template <class T, int G, int K>
__device__ static inline void norm_row(const norm_args &p, const T *from, int64_t r)
{
    const int V = tti_pack<T>::n;
    row<T, G, K> x;
    float mean = 0, sum = 0;
    x.load(from, p.n);
    if (p.mean != NULL) {
        EACH_PACK(G, K, V, p.n, {
            float v[V];
            x.get(k, j, v);
            for (int i = 0; i < V; i++)
                sum = sum + v[i];
            (void)m;
        });
        mean = tti_group_sum<G>(sum) / (float)p.n;
    }
    sum = 0;
    EACH_PACK(G, K, V, p.n, {
        float v[V];
        x.get(k, j, v);
        for (int i = 0; i < V; i++) {
            float d = i < m ? v[i] - mean : 0;
            sum = fmaf(d, d, sum);
        }
    });
    sum = tti_group_sum<G>(sum);
    if (!(sum < INFINITY)) {
        norm_row_far<T, G>(p, from, NULL, r);
        return;
    }
    float rstd = 1 / sqrtf(sum / (float)p.n + p.eps);
    EACH_PACK(G, K, V, p.n, {
        float v[V], g[V], b[V];
        x.get(k, j, v);
        get_vector<T>(p.gamma, j, m, 1, g);
        get_vector<T>(p.beta, j, m, 0, b);
        for (int i = 0; i < V; i++)
            v[i] = fmaf((v[i] - mean) * rstd, g[i], b[i]);
        tti_row_put((T *)p.y + r * p.n + j, m, v);
    });
    if ((int)threadIdx.x % G == 0) {
        p.rstd[r] = rstd;
        if (p.mean != NULL)
            p.mean[r] = mean;
    }
}

// Of a short row a thread keeps 32 columns.
template <class T, int G> struct kept {
    static const int packs = G == 32 ? TTI_ROW_WARP / 32 / tti_pack<T>::n : 0;
};

template <class T, int G>
__global__ static void __launch_bounds__(TTI_ROW_THREADS) norm_rows(const norm_args p)
{
    const int K = kept<T, G>::packs;
    for (int64_t r = tti_row_first<G>(); r < p.rows; r += tti_row_step<G>()) {
        const T *x = (const T *)p.x + r * p.n;
        norm_row<T, G, K>(p, p.add != NULL ? add_row<T, G, K>(p, r) : x, r);
    }
}

// ---- backward --------------------------------------------------------------------------------

// m elements of dx from number `at` on, v, go where they are wanted.
template <class T>
__device__ static inline void put_dx(const grad_args &p, int64_t at, int m, float *v)
{
    const int V = tti_pack<T>::n;
    if (p.dx != NULL)
        tti_row_put((T *)p.dx + at, m, v);
    if (p.add == NULL)
        return;
    float w[V];
    tti_pack<T> dx;
    tti_repack(dx, v);
    tti_unpack(dx, v);
    tti_row_pack((const T *)p.add + at, m, 0, w);
    for (int i = 0; i < V; i++)
        v[i] = v[i] + w[i];
    tti_row_put((T *)p.sum + at, m, v);
}

/*
 * dx of row r by its group. one(k, j, m, d, h) gets the row's packs of dy and xh, for the sums. dx
 * may be x or dy, and so may sum, or what is added: a thread writes what it alone has read.
 */
template <class T, int G, int K, class F>
__device__ static inline void grad_row(const grad_args &p, int64_t r, F one)
{
    const int V = tti_pack<T>::n;
    row<T, G, K> x, dy;
    x.load((const T *)p.x + r * p.n, p.n);
    dy.load((const T *)p.dy + r * p.n, p.n);
    float mean = p.mean != NULL ? p.mean[r] : 0, rstd = p.rstd[r], a = 0, b = 0;
    EACH_PACK(G, K, V, p.n, {
        float h[V], d[V], g[V];
        x.get(k, j, h);
        dy.get(k, j, d);
        get_vector<T>(p.gamma, j, m, 1, g);
        for (int i = 0; i < V; i++)
            h[i] = i < m ? (h[i] - mean) * rstd : 0;
        one(k, j, m, d, h);
        for (int i = 0; i < V; i++) { // past the end both are zero
            g[i] = d[i] * g[i];
            a = a + g[i];
            b = fmaf(g[i], h[i], b);
        }
    });
    a = p.mean != NULL ? tti_group_sum<G>(a) / (float)p.n : 0;
    b = tti_group_sum<G>(b) / (float)p.n;
    EACH_PACK(G, K, V, p.n, {
        float h[V], d[V], g[V];
        x.get(k, j, h);
        dy.get(k, j, d);
        get_vector<T>(p.gamma, j, m, 1, g);
        for (int i = 0; i < V; i++)
            h[i] = fmaf(-((h[i] - mean) * rstd), b, d[i] * g[i] - a) * rstd;
        put_dx<T>(p, r * p.n + j, m, h);
    });
}

// Short rows: warp w has rows w, w + 4, ... of the chunk, then warps are added in order.
template <class T>
__device__ static void grad_chunk_short(const grad_args &p, int lane, int64_t first, int64_t len,
                                        int64_t begin, int64_t end)
{
    const int V = tti_pack<T>::n, K = kept<T, 32>::packs;
    __shared__ float sum[2][TTI_ROW_WARP];
    float dgamma[K][V] = {}, dbeta[K][V] = {};
    int warp = (int)threadIdx.x / 32;
    for (int64_t i = begin + warp; i < end; i += TTI_NORM_WARPS)
        grad_row<T, 32, K>(p, lane_row(p, first, len, i),
                           [&](int k, int64_t, int, const float *d, const float *h) {
                               for (int e = 0; e < V; e++) {
                                   dgamma[k][e] = fmaf(d[e], h[e], dgamma[k][e]);
                                   dbeta[k][e] = dbeta[k][e] + d[e];
                               }
                           });
    if (!p.has_dgamma && !p.has_dbeta)
        return;
    for (int w = 0; w < TTI_NORM_WARPS; w++) {
        if (w == warp)
            EACH_PACK(32, K, V, p.n, {
                for (int e = 0; e < V; e++)
                    if (e < m) {
                        sum[0][j + e] = (w == 0 ? 0 : sum[0][j + e]) + dgamma[k][e];
                        sum[1][j + e] = (w == 0 ? 0 : sum[1][j + e]) + dbeta[k][e];
                    }
            });
        __syncthreads();
    }
    float *to = chunk_sums(p, lane);
    for (int64_t j = threadIdx.x; j < p.n; j += TTI_NORM_THREADS) {
        if (p.has_dgamma)
            to[j] = sum[0][j];
        if (p.has_dbeta)
            to[j + (p.has_dgamma ? p.n : 0)] = sum[1][j];
    }
}

// Long rows: one after the other by the whole block; sums in shared memory, or where they go.
template <class T>
__device__ static void grad_chunk_long(const grad_args &p, int lane, int64_t first, int64_t len,
                                       int64_t begin, int64_t end)
{
    TTI_SHARED(float, shared);
    float *to = chunk_sums(p, lane), *sum = p.n <= TTI_NORM_IN_BLOCK ? shared : to;
    int n_sums = p.has_dgamma + p.has_dbeta;
    float *dgamma = sum, *dbeta = sum + (p.has_dgamma ? p.n : 0);
    for (int64_t j = threadIdx.x; j < n_sums * p.n; j += TTI_ROW_THREADS)
        sum[j] = 0;
    __syncthreads();
    for (int64_t i = begin; i < end; i++)
        grad_row<T, TTI_ROW_THREADS, 0>(p, lane_row(p, first, len, i),
                                        [&](int, int64_t j, int m, const float *d, const float *h) {
                                            for (int e = 0; e < m; e++) {
                                                if (p.has_dgamma)
                                                    dgamma[j + e] = fmaf(d[e], h[e], dgamma[j + e]);
                                                if (p.has_dbeta)
                                                    dbeta[j + e] = dbeta[j + e] + d[e];
                                            }
                                        });
    __syncthreads();
    for (int64_t j = threadIdx.x; sum != to && j < n_sums * p.n; j += TTI_ROW_THREADS)
        to[j] = sum[j];
}

// A chunk of a lane of the group.
template <class T, int G>
__global__ static void __launch_bounds__(G == 32 ? TTI_NORM_THREADS : G, G == 32 ? 3 : 4)
    grad_chunks(const grad_args p, const tti_lane_group ln, int64_t runs)
{
    int lane = lane_of_block();
    int64_t first = ln.bound[lane] * p.per, len = (ln.bound[lane + 1] - ln.bound[lane]) * p.per;
    int64_t begin = chunk_of_block() * TTI_NORM_CHUNK,
            end = tti_min64(begin + TTI_NORM_CHUNK, len * runs);
    if (begin >= end && begin > 0) // the first chunk is there even without rows
        return;
    if (G == 32)
        grad_chunk_short<T>(p, ln.first + lane, first, len, begin, end);
    else
        grad_chunk_long<T>(p, ln.first + lane, first, len, begin, end);
}

#endif
