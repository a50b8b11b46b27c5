/*
 * philox.cuh - the random words of philox.h on a GPU, one counter at a time.
 */
#ifndef TUTTI_OP_PHILOX_CUH
#define TUTTI_OP_PHILOX_CUH

#include "cuda/kernel.cuh"

// As tti_random_key() of philox.h.
__device__ static inline uint64_t tti_random_key(uint64_t seed, uint64_t name)
{
    uint64_t x = seed + 0x9E3779B97F4A7C15ull;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ x >> 27) * 0x94D049BB133111EBull;
    return (x ^ x >> 31) ^ name;
}

// w[k] belongs to element group * 64 + 16 k + place of the stream; place is below 16.
struct tti_random_words {
    uint32_t w[4];
};
__device__ static inline tti_random_words tti_random_place(uint64_t key, int64_t group, int place,
                                                           uint32_t row, uint32_t step)
{
    uint64_t number = (uint64_t)group * 16 + (uint64_t)place;
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t c0 = (uint32_t)number, c1 = row, c2 = step, c3 = (uint32_t)(number >> 32);
#pragma unroll
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return tti_random_words{{c0, c1, c2, c3}};
}

// An input as runs of elements with one stream of random numbers each: a row of the batch in each
// of the outer dimensions, or all of it. A group of 64 elements is work of 16 threads at the most.
struct tti_random_runs {
    int64_t units;
    int64_t rows, run, groups;
    int64_t first_row;
    int is_open; // rows of the batch are told apart
};

static inline void tti_random_runs_of(const tt_launch *l, tti_random_runs *p)
{
    const tt_arg *x = &l->in[0];
    int64_t outer = 1;
    p->rows = 1;
    p->run = x->count;
    p->is_open = x->open >= 0;
    if (x->open >= 0 && x->per > 0) {
        for (int i = 0; i < x->open; i++)
            outer *= x->shape.dim[i];
        p->rows = x->shape.dim[x->open] / x->per;
        p->run = x->count / outer / p->rows;
    }
    p->groups = (p->run + 63) / 64 + (outer > 1); // a run after the first can begin anywhere
    p->units = outer * p->rows * p->groups;
    p->first_row = l->lanes != NULL ? l->lanes->first_row : 0;
}

#endif
