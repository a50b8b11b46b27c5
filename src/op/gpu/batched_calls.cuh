/*
 * batched_calls.cuh - calls of one kernel as one grid (batched_calls.h): each has some blocks of
 * threads, which follow each other. An item says what its call reads and writes; item.first is its
 * first block.
 */
#ifndef TUTTI_OP_BATCHED_CALLS_CUH
#define TUTTI_OP_BATCHED_CALLS_CUH

#include "cuda/kernel.cuh"
#include "op/batched_calls.h"

// The items of a launch, whose arguments have at most 4 KiB.
template <class T, int N> struct tti_items {
    int n;
    T item[N];
};

// Of n items, the number of the one that a block of threads belongs to.
template <class T> __device__ static inline int tti_item_of_block(const T *item, int n)
{
    int low = 0, high = n; // it is in [low, high)
    while (high - low > 1) {
        int mid = (low + high) / 2;
        if (item[mid].first <= blockIdx.x)
            low = mid;
        else
            high = mid;
    }
    return low;
}

// Makes items of all calls and launches them, N at a time. launch() empties the list.
template <class T, int N>
static inline void tti_items_launch(const tt_launch *l, T (*item_of)(const tt_launch *l),
                                    void (*launch)(const tt_launch *l, tti_items<T, N> *list))
{
    const tti_batched_calls *calls = (const tti_batched_calls *)l->tune;
    tti_items<T, N> list;
    list.n = 0;
    for (int i = 0; i < calls->n; i++) {
        list.item[list.n++] = item_of(calls->list[i]);
        if (list.n == N || i + 1 == calls->n)
            launch(l, &list);
    }
}

#endif
