/*
 * gemm_after.cuh - kernels after products of matrices on a GPU: bias and activation, sums of lanes
 * and of strands of a long k.
 */
#ifndef TUTTI_OP_GEMM_AFTER_CUH
#define TUTTI_OP_GEMM_AFTER_CUH

#include "op/gpu/gemm.cuh"

// ---- bias and activation after a product -----------------------------------------------------

// y = act(x + bias), z = x + bias of rows by n numbers; x may be y or z.
struct finish_args {
    const void *x, *bias;
    void *y, *z;
    int64_t rows, n;
    int x_type, in, out, act; // types of x; of bias; of y and z
};

// A thread stays in its column.
static __global__ void finish_kernel(finish_args f)
{
    for (int64_t j = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; j < f.n;
         j += (int64_t)gridDim.x * blockDim.x) {
        float bias = f.bias != NULL ? tti_at(f.bias, f.in, j) : 0.0f;
        for (int64_t i = blockIdx.y; i < f.rows; i += gridDim.y) {
            float z = tti_at(f.x, f.x_type, i * f.n + j);
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

// ---- sums of strands ----------------------------------------------------------------------------

// y = act(z), z = x[0] + x[1] + ... + bias: strands of rows by n numbers each, step apart.
struct strands_args {
    const float *x, *bias;
    float *y, *z;
    int64_t step, rows, n;
    int strands, act;
};

static __global__ void strands_kernel(strands_args f)
{
    int64_t count = f.rows * f.n;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x) {
        float z = f.x[i];
        for (int s = 1; s < f.strands; s++)
            z = z + f.x[s * f.step + i];
        if (f.bias != NULL)
            z = z + f.bias[i % f.n];
        if (f.z != NULL)
            tti_put(f.z[i], z);
        tti_put(f.y[i], tti_act(f.act, z));
    }
}

static inline void strands_launch(const tt_launch *l, const strands_args *f)
{
    unsigned grid = tti_blocks(l, f->rows * f->n, 256);
    TTI_LAUNCH(l, grid, 256, 0, strands_kernel, *f);
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

static inline void tree_launch(const tt_launch *l, const tt_lanes *ln, const tree_args *t)
{
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
