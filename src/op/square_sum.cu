/*
 * square_sum.cu - kernel of square_sum.c on a GPU, in its very order: bits are those of the CPU.
 *
 * Four threads have a block of TTI_SQUARE_BLOCK elements, each of them four of its sixteen
 * partials. Threads, warps and blocks of the grid have whole sub-trees of the tree over blocks.
 */
#include "op/square_sum.cuh"
#include "op/square_sum.h"

#define THREADS  64
#define PARTIALS 16
#define GROUP    8                                // packs of a thread that are copied together
#define AHEAD    4                                // groups on their way
#define ELEMENTS (THREADS / 4 * TTI_SQUARE_BLOCK) // of a block of threads

__device__ static inline void add_square(double &sum, float x)
{
    sum = sum + (double)x * (double)x;
}

// Starts to copy a pack into shared memory: zeros if it is not there.
__device__ static inline void start_copy(tti_pack<float> *to, const float *from, bool is_there)
{
#ifdef __CUDA_ARCH__
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"((uint32_t)__cvta_generic_to_shared(to)), "l"(from), "r"(is_there ? 16 : 0)
                 : "memory");
#else
    *to = is_there ? *(const tti_pack<float> *)from : tti_pack<float>{};
#endif
}
// What was started since the last call is a group; waits until all but the last n are done.
__device__ static inline void end_group(void)
{
#ifdef __CUDA_ARCH__
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int N> __device__ static inline void wait_groups(void)
{
#ifdef __CUDA_ARCH__
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
}

/*
 * Adds to partials 4 q to 4 q + 3 of the n elements at x, n <= 0 for none, their whole packs; zeros
 * in place of others change no sum. Packs come by way of shared memory, each thread's into places
 * of its own: registers would not hold as many as must be on their way. `any` can be read.
 */
__device__ static inline void add_packs(const float *x, int64_t n, int q, const float *any,
                                        double sum[4])
{
    const int groups = TTI_SQUARE_BLOCK / PARTIALS / GROUP;
    __shared__ tti_pack<float> place[AHEAD * GROUP][THREADS];
    for (int g = 0; g < groups + AHEAD; g++) {
        if (g >= AHEAD) {
            wait_groups<AHEAD - 1>();
#pragma unroll
            for (int j = 0; j < GROUP; j++) {
                tti_pack<float> v = place[g % AHEAD * GROUP + j][threadIdx.x];
                for (int k = 0; k < 4; k++)
                    add_square(sum[k], v.v[k]);
            }
        }
#pragma unroll
        for (int j = 0; j < GROUP; j++) {
            if (g >= groups)
                break;
            int here = (g * GROUP + j) * PARTIALS + 4 * q;
            bool is_there = here + 4 <= n;
            start_copy(&place[g % AHEAD * GROUP + j][threadIdx.x], is_there ? x + here : any,
                       is_there);
        }
        end_group();
    }
}

// The same for elements from number `from` on, a multiple of PARTIALS.
__device__ static inline void add_rest(const float *x, int64_t n, int q, int64_t from,
                                       double sum[4])
{
#pragma unroll 4
    for (int64_t at = from + 4 * q; at < n; at += PARTIALS)
        for (int k = 0; k < 4; k++)
            if (at + k < n)
                add_square(sum[k], x[at + k]);
}

__global__ static void __launch_bounds__(THREADS)
    square_blocks(const float *x, int64_t n, bool packed, double *to)
{
    __shared__ double part[THREADS / 32];
    int t = (int)threadIdx.x, q = t % 4;
    int64_t at = (int64_t)blockIdx.x * ELEMENTS + t / 4 * TTI_SQUARE_BLOCK;
    double sum[4] = {0, 0, 0, 0};
    int64_t here = tti_min64(n - at, TTI_SQUARE_BLOCK), rest = 0;
    if (packed) {
        add_packs(x + at, here, q, x, sum);
        rest = here / PARTIALS * PARTIALS; // of the last sixteen some have a whole pack
        if (rest + 4 * q + 4 <= here)
            rest = here;
    }
    add_rest(x + at, here, q, rest, sum);
    for (int k = 0; k < 4; k++) // partials 8, then 4 apart
        sum[k] = tti_tree_shuffle(tti_tree_shuffle(sum[k], 2), 1);
    double y = (sum[0] + sum[2]) + (sum[1] + sum[3]);
    for (int d = 4; d < 32; d *= 2) // blocks; what is missing is zero
        y = tti_tree_shuffle(y, d);
    if (t % 32 == 0)
        part[t / 32] = y;
    __syncthreads();
    if (t == 0)
        to[blockIdx.x] = tti_tree_serial(part, 0, THREADS / 32);
}

__global__ static void __launch_bounds__(TTI_TREE_THREADS)
    square_tree(const double *x, int64_t n, double *y)
{
    double sum = tti_tree_block(x, n);
    if (threadIdx.x == 0)
        *y = sum;
}

static tt_status prepare(tt_prep *p)
{
    if (p->in[0].dtype != TT_F32)
        return TT_FAIL(p->ctx, TT_EUNSUPPORTED, "%s: square_sum of f64 is not available on a GPU",
                       p->node->name);
    p->units[0] = p->in[0].count;
    p->scratch_bytes = (size_t)(p->in[0].count / ELEMENTS + 1) * sizeof(double);
    return TT_OK;
}

static tt_status square_sum(const tt_launch *l)
{
    const tt_arg *x = &l->in[0];
    int64_t blocks = (x->count + ELEMENTS - 1) / ELEMENTS;
    double *y = (double *)l->out[0].data, *sums = (double *)l->scratch;
    if (blocks == 0)
        return tti_cuda_zero(l, y, sizeof(*y));
    TTI_LAUNCH(l, (unsigned)blocks, THREADS, 0, square_blocks, (const float *)x->data, x->count,
               tti_is_aligned(x->data) && x->count >= 4, blocks == 1 ? y : sums);
    if (blocks > 1)
        TTI_LAUNCH(l, 1, TTI_TREE_THREADS, 0, square_tree, sums, blocks, y);
    return tti_cuda_launched(l);
}

extern "C" const tti_cuda_row tti_cuda_square_sum[] = {
    TTI_ROW_TYPES("square_sum", prepare, square_sum, 1u << TT_F64),
    TTI_ROWS_END,
};
