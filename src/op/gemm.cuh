/*
 * gemm.cuh - kernels around products of matrices on a GPU: the product itself where no library does
 * it, bias and activation after it, sums of lanes.
 *
 * The product is tiled, 64 by 64 for a block of 256 threads, each with 4 by 4 elements in
 * registers. Each element is one chain of fma over k ascending from zero, so neither the tiles nor
 * the other rows show in its bits.
 */
#ifndef TUTTI_OP_GEMM_CUH
#define TUTTI_OP_GEMM_CUH

#include "cuda/kernel.cuh"
#include "op/act.cuh"

#define GEMM_TILE    64
#define GEMM_K       16
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

// A tile of x(r, k), 64 by 16, to shared memory as [k][r]; neighbours in memory by neighbours.
template <class T>
__device__ static inline void gemm_load(float *to, const T *x, int64_t row, int64_t rows,
                                        int64_t by_row, int64_t k0, int64_t k, int64_t by_k)
{
    for (int e = (int)threadIdx.x; e < GEMM_TILE * GEMM_K; e += GEMM_THREADS) {
        int r = by_k == 1 ? e / GEMM_K : e % GEMM_TILE, q = by_k == 1 ? e % GEMM_K : e / GEMM_TILE;
        bool in = row + r < rows && k0 + q < k;
        to[q * (GEMM_TILE + 4) + r] = in ? tti_get(x[(row + r) * by_row + (k0 + q) * by_k]) : 0.0f;
    }
}

template <class T> __global__ void gemm_kernel(gemm_args g)
{
    __shared__ float as[GEMM_K * (GEMM_TILE + 4)], bs[GEMM_K * (GEMM_TILE + 4)];
    int64_t tiles_n = (g.n + GEMM_TILE - 1) / GEMM_TILE;
    int64_t row = (int64_t)blockIdx.x / tiles_n * GEMM_TILE;
    int64_t col = (int64_t)blockIdx.x % tiles_n * GEMM_TILE;
    int ti = (int)threadIdx.x / 16 * 4, tj = (int)threadIdx.x % 16 * 4;
    for (int64_t at = blockIdx.y; at < g.batch; at += gridDim.y) {
        const T *a = (const T *)g.a + at * g.step_a, *b = (const T *)g.b + at * g.step_b;
        float sum[4][4] = {};
        for (int64_t k0 = 0; k0 < g.k; k0 += GEMM_K) {
            gemm_load(as, a, row, g.m, g.a_row, k0, g.k, g.a_k);
            gemm_load(bs, b, col, g.n, g.b_col, k0, g.k, g.b_k);
            __syncthreads();
            int kn = g.k - k0 < GEMM_K ? (int)(g.k - k0) : GEMM_K;
            for (int q = 0; q < kn; q++)
                for (int i = 0; i < 4; i++)
                    for (int j = 0; j < 4; j++)
                        sum[i][j] = fmaf(as[q * (GEMM_TILE + 4) + ti + i],
                                         bs[q * (GEMM_TILE + 4) + tj + j], sum[i][j]);
            __syncthreads();
        }
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 4; j++) {
                if (row + ti + i >= g.m || col + tj + j >= g.n)
                    continue;
                int64_t to = at * g.step_c + (row + ti + i) * g.ldc + col + tj + j;
                float z = sum[i][j];
                if (g.bias != NULL)
                    z = z + tti_get(((const T *)g.bias)[col + tj + j]);
                if (g.z != NULL)
                    gemm_store(g.out, g.z, to, z);
                gemm_store(g.out, g.y, to, tti_act(g.act, z));
            }
    }
}

static inline void gemm_launch(const tt_launch *l, tt_dtype in, const gemm_args *g)
{
    int64_t tiles = (g->m + GEMM_TILE - 1) / GEMM_TILE * ((g->n + GEMM_TILE - 1) / GEMM_TILE);
    dim3 grid((unsigned)tiles, (unsigned)(g->batch < 65535 ? g->batch : 65535));
    TTI_FLOATS(in, T, { TTI_LAUNCH(l, grid, GEMM_THREADS, 0, gemm_kernel<T>, *g); });
}

// ---- bias and activation after a product -----------------------------------------------------

// y = act(x + bias), z = x + bias of rows by n numbers; x is f32 and may be y or z.
struct finish_args {
    const float *x;
    const void *bias;
    void *y, *z;
    int64_t rows, n;
    int in, out, act; // types of bias; of y and z
};

__device__ static inline float finish_bias(const finish_args &f, int64_t j)
{
    if (f.bias == NULL)
        return 0.0f;
    if (f.in == TT_BF16)
        return tti_get(((const tti_bf16 *)f.bias)[j]);
    if (f.in == TT_F16)
        return tti_get(((const tti_f16 *)f.bias)[j]);
    return ((const float *)f.bias)[j];
}

// A thread stays in its column.
static __global__ void finish_kernel(finish_args f)
{
    for (int64_t j = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; j < f.n;
         j += (int64_t)gridDim.x * blockDim.x) {
        float bias = finish_bias(f, j);
        for (int64_t i = blockIdx.y; i < f.rows; i += gridDim.y) {
            float z = f.x[i * f.n + j];
            if (f.bias != NULL)
                z = z + bias;
            if (f.z != NULL)
                gemm_store(f.out, f.z, i * f.n + j, z);
            gemm_store(f.out, f.y, i * f.n + j, tti_act(f.act, z));
        }
    }
}

static inline void finish_launch(const tt_launch *l, const finish_args *f)
{
    unsigned across = (unsigned)((f->n + 255) / 256 < 65535 ? (f->n + 255) / 256 : 65535);
    int64_t down = (int64_t)tti_device_of(l)->sms * 16 / across + 1;
    dim3 grid(across, (unsigned)(f->rows < down ? f->rows : down));
    TTI_LAUNCH(l, grid, 256, 0, finish_kernel, *f);
}

// ---- sums of lanes ---------------------------------------------------------------------------

// Part p of the result is at y + p * part; lane i's numbers at x + i * step.
struct tree_args {
    const float *x;
    void *y;
    int64_t step, part, count;
    int out;
};

template <int N> __global__ void tree_kernel(tree_args t, tti_lanes_of<N> ln)
{
    for (int64_t j = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; j < t.count;
         j += (int64_t)gridDim.x * blockDim.x)
        tti_lane_tree<N>(
            ln, [&](int i) { return t.x[i * t.step + j]; },
            [&](int p, float v) { gemm_store(t.out, t.y, p * t.part + j, v); });
}

// All lanes in one balanced tree of L leaves, four numbers at a time.
template <int L> __global__ void balanced_kernel(tree_args t)
{
    for (int64_t j = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; j < t.count / 4;
         j += (int64_t)gridDim.x * blockDim.x) {
        tti_pack<float> v[L];
        for (int i = 0; i < L; i++)
            v[i] = ((const tti_pack<float> *)(t.x + i * t.step))[j];
        for (int half = L / 2; half > 0; half /= 2)
            for (int i = 0; i < half; i++)
                for (int e = 0; e < 4; e++)
                    v[i].v[e] = v[2 * i].v[e] + v[2 * i + 1].v[e];
        for (int e = 0; e < 4; e++)
            gemm_store(t.out, t.y, 4 * j + e, v[0].v[e] + 0.0f);
    }
}

// Whether the lanes' program is the balanced tree over all of them.
static inline bool tree_is_balanced(const tt_lanes *ln)
{
    if (ln->n_parts != 1 || (ln->n != 2 && ln->n != 4 && ln->n != 8 && ln->n != 16))
        return false;
    for (int i = 0; i < ln->n; i++)
        if (ln->merges[i] != __builtin_ctz((unsigned)(i + 1)))
            return false;
    return true;
}

static inline void tree_launch(const tt_launch *l, const tree_args *t)
{
    const tt_lanes *ln = l->lanes;
    if (tree_is_balanced(ln) && t->count % 4 == 0 && t->step % 4 == 0 && tti_is_aligned(t->x)) {
        unsigned grid = tti_blocks(l, t->count / 4, 256);
        switch (ln->n) {
        case 2:
            TTI_LAUNCH(l, grid, 256, 0, balanced_kernel<2>, *t);
            return;
        case 4:
            TTI_LAUNCH(l, grid, 256, 0, balanced_kernel<4>, *t);
            return;
        case 8:
            TTI_LAUNCH(l, grid, 256, 0, balanced_kernel<8>, *t);
            return;
        default:
            TTI_LAUNCH(l, grid, 256, 0, balanced_kernel<16>, *t);
            return;
        }
    }
    unsigned grid = tti_blocks(l, t->count, 256);
    TTI_LANES(ln, N,
              { TTI_LAUNCH(l, grid, 256, 0, tree_kernel<N>, *t, tti_lanes_by_value<N>(ln)); });
}

#endif
