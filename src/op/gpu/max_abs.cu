/*
 * max_abs.cu - kernel of max_abs.c on a GPU. Bound by memory; a block of threads makes a number.
 * The magnitudes of all gradients, which follow each other, are made by one grid.
 */
#include "op/gpu/batched_calls.cuh"
#include "op/gpu/max_abs.cuh"
#include "op/max_abs.h"

struct item {
    const float *x;
    float *y;
    int64_t n;
    unsigned first; // block of threads
};
#define LIST 120
template <int N> using items = tti_items<item, N>;

template <int N>
__global__ static void __launch_bounds__(TTI_MAX_ABS_THREADS) max_abs_blocks(const items<N> l)
{
    const item &it = l.item[tti_item_of_block(l.item, N == 1 ? 1 : l.n)];
    int64_t block = (int64_t)blockIdx.x - it.first, at = block * TTI_MAX_ABS_BLOCK;
    const float *x = it.x + at;
    int most =
        tti_max_abs_of(x, tti_min64(it.n - at, TTI_MAX_ABS_BLOCK), ((uintptr_t)it.x & 15) == 0, 0);
    most = tti_max_abs_join(most);
    if (threadIdx.x == 0)
        it.y[block] = tti_max_abs_float(most);
}

static tt_status prepare(tt_prep *p)
{
    for (int i = 0; i < p->n_in; i++)
        if (p->in[i].dtype != TT_F32)
            return TT_FAIL(p->ctx, TT_EUNSUPPORTED, "%s: max_abs of f64 is not available on a GPU",
                           p->node->name);
    p->units[0] = p->in[0].count;
    return TT_OK;
}

template <int N> static void launch(const tt_launch *l, items<N> *list)
{
    unsigned blocks = 0;
    for (int i = 0; i < list->n; i++) {
        list->item[i].first = blocks;
        blocks += (unsigned)tti_max_abs_count(list->item[i].n);
    }
    if (list->n > 0)
        TTI_LAUNCH(l, blocks, TTI_MAX_ABS_THREADS, 0, max_abs_blocks<N>, *list);
    list->n = 0;
}

static item item_of(const tt_launch *l)
{
    return {(const float *)l->in[0].data, (float *)l->out[0].data, l->in[0].count, 0};
}

static tt_status max_abs(const tt_launch *l)
{
    if (l->n_in > 1) {
        tti_max_abs_launch(l, l->in, l->n_in, (float *)l->out[0].data);
    } else {
        items<1> list = {1, {item_of(l)}};
        launch(l, &list);
    }
    return tti_cuda_launched(l);
}

static tt_status max_abs_many(const tt_launch *l)
{
    const tti_batched_calls *calls = (const tti_batched_calls *)l->tune;
    if (l->n_in > 1) { // nothing is won
        for (int i = 0; i < calls->n; i++)
            tti_max_abs_launch(l, calls->list[i]->in, l->n_in,
                               (float *)calls->list[i]->out[0].data);
        return tti_cuda_launched(l);
    }
    tti_items_launch<item, LIST>(l, item_of, launch);
    return tti_cuda_launched(l);
}

extern "C" const tti_cuda_row tti_cuda_max_abs[] = {
    TTI_ROW("max_abs", prepare, max_abs),
    TTI_ROW_BATCHED("max_abs", max_abs_many),
    TTI_ROWS_END,
};
