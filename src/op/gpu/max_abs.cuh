/*
 * max_abs.cuh - the largest magnitude of elements by one block of threads, as max_abs_cpu.c has it.
 */
#ifndef TUTTI_OP_MAX_ABS_CUH
#define TUTTI_OP_MAX_ABS_CUH

#include "cuda/kernel.cuh"

#define TTI_MAX_ABS_THREADS 256

__device__ static inline int tti_most(int a, float x)
{
    int b = (int)(tti_bits(x) & 0x7fffffffu);
    return b > a ? b : a;
}

// Of x[0..n) and `most`; packs are read at once where the address allows. Thread 0 gets it.
__device__ static inline int tti_max_abs_of(const float *x, int64_t n, bool packed, int most)
{
    int64_t packs = packed ? n / 4 : 0, at = (int64_t)threadIdx.x;
    for (int64_t i = at; i < packs; i += TTI_MAX_ABS_THREADS) {
        tti_pack<float> v = ((const tti_pack<float> *)x)[i];
        for (int k = 0; k < 4; k++)
            most = tti_most(most, v.v[k]);
    }
    for (int64_t i = packs * 4 + at; i < n; i += TTI_MAX_ABS_THREADS)
        most = tti_most(most, x[i]);
    return most;
}

__device__ static inline int tti_max_abs_join(int most)
{
    __shared__ int part[TTI_MAX_ABS_THREADS / 32];
    most = __reduce_max_sync(0xffffffffu, most);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = most;
    __syncthreads();
    for (int i = 0; threadIdx.x == 0 && i < TTI_MAX_ABS_THREADS / 32; i++)
        most = part[i] > most ? part[i] : most;
    return most;
}

__device__ static inline float tti_max_abs_float(int most)
{
    return tti_float(most > 0x7f800000 ? 0x7fc00000u : (uint32_t)most);
}

// Several tensors, one number: as many as a launch's arguments have room for.
#define TTI_MAX_ABS_LIST 192
struct tti_max_abs_list {
    int n;
    bool goes_on; // *y is of those before
    float *y;
    const float *x[TTI_MAX_ABS_LIST];
    int64_t count[TTI_MAX_ABS_LIST];
};

__global__ static void __launch_bounds__(TTI_MAX_ABS_THREADS)
    tti_max_abs_all(const tti_max_abs_list l)
{
    int most = l.goes_on ? (int)(tti_bits(*l.y) & 0x7fffffffu) : 0;
    for (int i = 0; i < l.n; i++)
        most = tti_max_abs_of(l.x[i], l.count[i], false, most);
    most = tti_max_abs_join(most);
    if (threadIdx.x == 0)
        *l.y = tti_max_abs_float(most);
}

static inline void tti_max_abs_launch(const tt_launch *l, const tt_arg *in, int n, float *y)
{
    tti_max_abs_list list;
    memset(&list, 0, sizeof(list));
    list.y = y;
    for (int i = 0; i < n; i++) {
        list.x[list.n] = (const float *)in[i].data;
        list.count[list.n++] = in[i].count;
        if (list.n < TTI_MAX_ABS_LIST && i + 1 < n)
            continue;
        TTI_LAUNCH(l, 1, TTI_MAX_ABS_THREADS, 0, tti_max_abs_all, list);
        list.goes_on = true;
        list.n = 0;
    }
}

#endif
