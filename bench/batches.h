/*
 * batches.h - what made-up batches are made of: random integers and numbers, the same in every run.
 */
#ifndef TUTTI_BENCH_BATCHES_H
#define TUTTI_BENCH_BATCHES_H

#include <stdint.h>
#include <stdlib.h>
#include <tutti/tutti.h>

static inline uint32_t batch_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static inline int32_t *batch_integers(int64_t n, int below, uint64_t *state)
{
    int32_t *y = malloc(sizeof(*y) * (size_t)n);
    for (int64_t i = 0; i < n; i++)
        y[i] = (int32_t)(batch_random(state) % (uint32_t)below);
    return y;
}

// Between -1 and 1.
static inline float *batch_numbers(int64_t n, uint64_t *state)
{
    float *x = malloc(sizeof(*x) * (size_t)n);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)batch_random(state) * 0x1p-30f - 1;
    return x;
}

static inline void batches_free(tt_batch_data *batches, int n)
{
    for (int i = 0; i < n; i++)
        for (int f = 0; f < 2; f++)
            free((void *)batches[i].fields[f]);
}

#endif
