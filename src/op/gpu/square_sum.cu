/*
 * square_sum.cu - kernel of square_sum.c on a GPU, in its very order: bits are those of the CPU.
 *
 * Four threads have a block of TTI_SQUARE_BLOCK elements, each of them four of its sixteen
 * partials. Threads, warps and blocks of the grid have whole sub-trees of the tree over blocks.
 * Sums of several tensors, as a global norm has them, are made by the blocks of one grid.
 */
#include "cuda/async.cuh"
#include "op/gpu/batched_calls.cuh"
#include "op/gpu/square_sum.cuh"
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
            tti_async_wait<AHEAD - 1>();
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
            tti_async_copy(&place[g % AHEAD * GROUP + j][threadIdx.x], is_there ? x + here : any,
                           is_there);
        }
        tti_async_group();
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

struct square_item {
    const float *x;
    double *y, *sums; // blocks of threads leave their sums there if there are several
    int64_t n;
    unsigned first; // block of threads
    bool packed;
};
#define LIST 96
template <int N> using square_list = tti_items<square_item, N>;

__host__ __device__ static inline int64_t blocks_of(const square_item &it)
{
    return (it.n + ELEMENTS - 1) / ELEMENTS;
}

// Block number `block` of an item's.
__device__ static inline void square_block(const square_item &it, int64_t block)
{
    __shared__ double part[THREADS / 32];
    int t = (int)threadIdx.x, q = t % 4;
    int64_t at = block * ELEMENTS + t / 4 * TTI_SQUARE_BLOCK;
    double sum[4] = {0, 0, 0, 0};
    int64_t here = tti_min64(it.n - at, TTI_SQUARE_BLOCK), rest = 0;
    if (it.packed) {
        add_packs(it.x + at, here, q, it.x, sum);
        rest = here / PARTIALS * PARTIALS; // of the last sixteen some have a whole pack
        if (rest + 4 * q + 4 <= here)
            rest = here;
    }
    add_rest(it.x + at, here, q, rest, sum);
    for (int k = 0; k < 4; k++) // partials 8, then 4 apart
        sum[k] = tti_tree_shuffle(tti_tree_shuffle(sum[k], 2), 1);
    double y = (sum[0] + sum[2]) + (sum[1] + sum[3]);
    for (int d = 4; d < 32; d *= 2) // blocks; what is missing is zero
        y = tti_tree_shuffle(y, d);
    if (t % 32 == 0)
        part[t / 32] = y;
    __syncthreads();
    if (t == 0)
        *(blocks_of(it) == 1 ? it.y : it.sums + block) = tti_tree_serial(part, 0, THREADS / 32);
}

template <int N>
__global__ static void __launch_bounds__(THREADS) square_blocks(const square_list<N> l)
{
    const square_item &it = l.item[tti_item_of_block(l.item, N == 1 ? 1 : l.n)];
    square_block(it, (int64_t)blockIdx.x - it.first);
}

// A block of threads has an item.
template <int N>
__global__ static void __launch_bounds__(TTI_TREE_THREADS) square_trees(const square_list<N> l)
{
    const square_item &it = l.item[blockIdx.x];
    int64_t n = blocks_of(it);
    if (n == 1)
        return;
    double sum = tti_tree_block(it.sums, n); // 0 of none
    if (threadIdx.x == 0)
        *it.y = sum;
}

// ---- calls -----------------------------------------------------------------------------------

static tt_status prepare(tt_prep *p)
{
    if (p->in[0].dtype != TT_F32)
        return TT_FAIL(p->ctx, TT_EUNSUPPORTED, "%s: square_sum of f64 is not available on a GPU",
                       p->node->name);
    p->units[0] = p->in[0].count;
    p->scratch_bytes = (size_t)(p->in[0].count / ELEMENTS + 1) * sizeof(double);
    return TT_OK;
}

template <int N> static void launch_list(const tt_launch *l, square_list<N> *list)
{
    int64_t blocks = 0;
    bool has_trees = false;
    for (int i = 0; i < list->n; i++) {
        list->item[i].first = (unsigned)blocks; // that of an empty one is the next one's
        blocks += blocks_of(list->item[i]);
        has_trees = has_trees || blocks_of(list->item[i]) != 1;
    }
    if (blocks > 0)
        TTI_LAUNCH(l, (unsigned)blocks, THREADS, 0, square_blocks<N>, *list);
    if (has_trees)
        TTI_LAUNCH(l, (unsigned)list->n, TTI_TREE_THREADS, 0, square_trees<N>, *list);
    list->n = 0;
}

static square_item item_of(const tt_launch *l)
{
    const tt_arg *x = &l->in[0];
    return {(const float *)x->data,
            (double *)l->out[0].data,
            (double *)l->scratch,
            x->count,
            0,
            tti_is_aligned(x->data) && x->count >= 4};
}

static tt_status square_sum(const tt_launch *l)
{
    square_list<1> list = {1, {item_of(l)}};
    launch_list(l, &list);
    return tti_cuda_launched(l);
}

static tt_status square_sum_many(const tt_launch *l)
{
    tti_items_launch<square_item, LIST>(l, item_of, launch_list);
    return tti_cuda_launched(l);
}

extern "C" const tti_cuda_row tti_cuda_square_sum[] = {
    TTI_ROW_TYPES("square_sum", prepare, square_sum, 1u << TT_F64),
    TTI_ROW_BATCHED("square_sum", square_sum_many),
    TTI_ROWS_END,
};
