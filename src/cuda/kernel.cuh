/*
 * kernel.cuh - what the kernels of src/op/ share: launches, types, packs of 16 bytes, lanes by
 * value, sums in a fixed order.
 *
 * These sources are also compiled by a plain C++ compiler against an emulation of the device
 * (tests/emu/), where a thread is a fiber: so launches go through TTI_LAUNCH, shared memory through
 * TTI_SHARED, and every thread of a block reaches every barrier. Nothing adds floats by atomics.
 */
#ifndef TUTTI_CUDA_KERNEL_CUH
#define TUTTI_CUDA_KERNEL_CUH

#include "cuda/cuda.h"
#include <math.h>
#include <stdint.h>
#include <string.h>

// ---- launches --------------------------------------------------------------------------------

/*
 * TTI_LAUNCH(l, grid, block, shared, kernel, args...): kernel may be (name<float, 4>) in
 * parentheses. TTI_SHARED(type, name) is the dynamic shared memory of the block, 16-byte aligned.
 */
#ifndef TTI_LAUNCH
#define TTI_LAUNCH(l, grid, block, shared, kernel, ...) \
    kernel<<<(grid), (block), (shared), (cudaStream_t)(l)->stream>>>(__VA_ARGS__)
#define TTI_SHARED(type, name)                         \
    extern __shared__ __align__(16) char tti_shared[]; \
    type *name = (type *)tti_shared
#endif

static inline tti_cuda_device *tti_device_of(const tt_launch *l)
{
    return (tti_cuda_device *)l->device;
}

// Blocks for n items of which a block takes per, at most so many that the card is full: kernels
// walk on by the grid's stride.
static inline unsigned tti_blocks(const tt_launch *l, int64_t n, int64_t per)
{
    int64_t want = (n + per - 1) / per, most = (int64_t)tti_device_of(l)->sms * 16;
    return (unsigned)(want < 1 ? 1 : want < most ? want : most);
}

// ---- types -----------------------------------------------------------------------------------

// Storage of bf16 and f16; arithmetic is in float. Conversions are those of op/half.h.
struct tti_bf16 {
    uint16_t bits;
};
struct tti_f16 {
    uint16_t bits;
};

__host__ __device__ static inline uint32_t tti_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof(u));
    return u;
}
__host__ __device__ static inline float tti_float(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof(x));
    return x;
}

__device__ static inline float tti_get(float x)
{
    return x;
}
__device__ static inline float tti_get(tti_bf16 x)
{
    uint32_t u = (uint32_t)x.bits << 16;
    return tti_float(u & 0x7f800000u ? u : u & 0x80000000u);
}
__device__ static inline float tti_get(tti_f16 x)
{
#ifdef __CUDA_ARCH__
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
    return y;
#else
    uint32_t sign = (uint32_t)(x.bits & 0x8000u) << 16, e = x.bits >> 10 & 31, m = x.bits & 0x3ffu;
    if (e == 31)
        return tti_float(sign | 0x7f800000u | m << 13 | (m ? 0x400000u : 0));
    if (e != 0)
        return tti_float(sign | (e + 112) << 23 | m << 13);
    float y = (float)(int)m * 0x1p-24f;
    return sign ? -y : y;
#endif
}
__device__ static inline int32_t tti_get(int32_t x)
{
    return x;
}
__device__ static inline int64_t tti_get(int64_t x)
{
    return x;
}
__device__ static inline uint8_t tti_get(uint8_t x)
{
    return x;
}

__device__ static inline void tti_put(float &to, float x)
{
    to = x;
}
__device__ static inline void tti_put(tti_bf16 &to, float x)
{
#ifdef __CUDA_ARCH__ // flushed before: a bf16 has the exponents of a float
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(to.bits) : "f"(x));
#else
    uint32_t u = tti_bits(x);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        to.bits = (uint16_t)(u >> 16 | 0x40);
    else if ((u & 0x7f800000u) == 0)
        to.bits = (uint16_t)(u >> 16 & 0x8000u);
    else
        to.bits = (uint16_t)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
#endif
}
__device__ static inline void tti_put(tti_f16 &to, float x)
{
#ifdef __CUDA_ARCH__
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to.bits) : "f"(x));
#else
    uint32_t u = tti_bits(x), sign = u >> 16 & 0x8000u;
    u &= 0x7fffffffu;
    if (u > 0x7f800000u)
        to.bits = (uint16_t)(sign | 0x7e00u | (u >> 13 & 0x3ffu));
    else if (u >= 0x477ff000u)
        to.bits = (uint16_t)(sign | 0x7c00u);
    else if (u < 0x38800000u)
        to.bits = (uint16_t)(sign | (tti_bits(tti_float(u) + 0.5f) - 0x3f000000u));
    else
        to.bits = (uint16_t)(sign | (u + 0xfffu + (u >> 13 & 1) - 0x38000000u) >> 13);
#endif
}

/*
 * Calls body with T being the C type of a dtype: TTI_FLOATS(dtype, T, { launch<T>(...); }) for f32,
 * bf16, f16. Any other type is an error of the library and does nothing.
 */
#define TTI_FLOATS(dtype, T, ...) \
    switch (dtype) {              \
    case TT_F32: {                \
        typedef float T;          \
        __VA_ARGS__               \
    } break;                      \
    case TT_BF16: {               \
        typedef tti_bf16 T;       \
        __VA_ARGS__               \
    } break;                      \
    case TT_F16: {                \
        typedef tti_f16 T;        \
        __VA_ARGS__               \
    } break;                      \
    default:                      \
        break;                    \
    }

// Sixteen bytes of elements, moved at once where addresses allow.
template <class T> struct alignas(16) tti_pack {
    static const int n = 16 / (int)sizeof(T);
    T v[16 / sizeof(T)];
};
static inline bool tti_is_aligned(const void *p)
{
    return ((uintptr_t)p & 15) == 0;
}
__host__ __device__ static inline int64_t tti_min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

// A pack as floats and back, by the card's own conversions. Subnormals of bf16 come as they are:
// the arithmetic that follows takes them for zero.
__device__ static inline void tti_unpack(const tti_pack<float> &p, float *x)
{
    for (int i = 0; i < 4; i++)
        x[i] = p.v[i];
}
__device__ static inline void tti_unpack(const tti_pack<tti_bf16> &p, float *x)
{
    for (int i = 0; i < 8; i++)
        x[i] = tti_float((uint32_t)p.v[i].bits << 16);
}
__device__ static inline void tti_unpack(const tti_pack<tti_f16> &p, float *x)
{
#pragma unroll
    for (int i = 0; i < 8; i++)
#ifdef __CUDA_ARCH__
        asm("cvt.f32.f16 %0, %1;" : "=f"(x[i]) : "h"(p.v[i].bits));
#else
        x[i] = tti_get(p.v[i]);
#endif
}
__device__ static inline void tti_repack(tti_pack<float> &p, const float *x)
{
    for (int i = 0; i < 4; i++)
        p.v[i] = x[i];
}
#ifdef __CUDA_ARCH__
#define TTI_REPACK(type, name)                                                                   \
    __device__ static inline void tti_repack(tti_pack<type> &p, const float *x)                  \
    {                                                                                            \
        uint32_t *to = (uint32_t *)p.v;                                                          \
        _Pragma("unroll") for (int i = 0; i < 4; i++) asm(                                       \
            "cvt.rn." name ".f32 %0, %1, %2;" : "=r"(to[i]) : "f"(x[2 * i + 1]), "f"(x[2 * i])); \
    }
#else
#define TTI_REPACK(type, name)                                                  \
    __device__ static inline void tti_repack(tti_pack<type> &p, const float *x) \
    {                                                                           \
        for (int i = 0; i < 8; i++)                                             \
            tti_put(p.v[i], x[i]);                                              \
    }
#endif
TTI_REPACK(tti_bf16, "bf16x2")
TTI_REPACK(tti_f16, "f16x2")

// Element i of an array whose type is known at run time only: few, or kept in a cache.
__device__ static inline float tti_at(const void *p, int dtype, int64_t i)
{
    return dtype == TT_F32    ? ((const float *)p)[i]
           : dtype == TT_BF16 ? tti_get(((const tti_bf16 *)p)[i])
                              : tti_get(((const tti_f16 *)p)[i]);
}
__device__ static inline void tti_set(void *p, int dtype, int64_t i, float x)
{
    if (dtype == TT_F32)
        ((float *)p)[i] = x;
    else if (dtype == TT_BF16)
        tti_put(((tti_bf16 *)p)[i], x);
    else
        tti_put(((tti_f16 *)p)[i], x);
}

// ---- lanes -----------------------------------------------------------------------------------

// tt_lanes by value, for kernels that sum over rows: N lanes at most.
template <int N> struct tti_lanes_of {
    int n, n_parts;
    int64_t bound[N + 1]; // rows of the batch within the call
    uint8_t merges[N];
};
template <int N> static inline tti_lanes_of<N> tti_lanes_by_value(const tt_lanes *ln)
{
    tti_lanes_of<N> v = {};
    v.n = ln->n;
    v.n_parts = ln->n_parts;
    memcpy(v.bound, ln->bound, sizeof(int64_t) * (size_t)(ln->n + 1));
    memcpy(v.merges, ln->merges, (size_t)ln->n);
    return v;
}
// One lane with all rows, for what has no open axis; bound is its storage.
static inline tt_lanes tti_one_lane(int64_t rows, int64_t bound[2])
{
    static const uint8_t no_merge = 0;
    tt_lanes one = {};
    bound[0] = 0;
    bound[1] = rows;
    one.n = one.total = one.n_parts = one.depth = 1;
    one.global_rows = rows;
    one.bound = bound;
    one.merges = &no_merge;
    return one;
}

// Calls body with N being 64 or TT_MAX_LANES, whichever suffices for so many lanes.
#define TTI_LANES_UP_TO(count, N, ...)  \
    do {                                \
        if ((count) <= 64) {            \
            const int N = 64;           \
            __VA_ARGS__                 \
        } else {                        \
            const int N = TT_MAX_LANES; \
            __VA_ARGS__                 \
        }                               \
    } while (0)
#define TTI_LANES(ln, N, ...) TTI_LANES_UP_TO((ln)->n, N, __VA_ARGS__)

#define TTI_CUDA_DEPTH 20 // sums pending at once in the tree over TT_MAX_LANES lanes

/*
 * The tree over lanes of one element: partial(i) is lane i's sum; put(p, x) takes the result of
 * part p. As tti_lane_tree() of op/lanes.h.
 */
template <int N, class F, class P>
__device__ static inline void tti_lane_tree(const tti_lanes_of<N> &ln, F partial, P put)
{
    float stack[TTI_CUDA_DEPTH];
    int depth = 0;
    for (int i = 0; i < ln.n; i++) {
        stack[depth++] = partial(i);
        for (int m = 0; m < ln.merges[i]; m++, depth--)
            stack[depth - 2] = stack[depth - 2] + stack[depth - 1];
    }
    for (int p = 0; p < depth; p++)
        put(p, stack[p] + 0.0f);
}

// ---- sums in a fixed order -------------------------------------------------------------------

__device__ static inline float tti_warp_sum(float x)
{
    for (int k = 16; k > 0; k >>= 1)
        x = x + __shfl_xor_sync(0xffffffffu, x, k);
    return x;
}
__device__ static inline float tti_warp_max(float x)
{
    for (int k = 16; k > 0; k >>= 1) {
        float y = __shfl_xor_sync(0xffffffffu, x, k);
        x = y > x || y != y ? y : x; // NaN stays
    }
    return x;
}

// Of a block of up to 1024 threads, a multiple of 32; every thread gets the sum. Two barriers.
__device__ static inline float tti_block_sum(float x)
{
    __shared__ float part[32];
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    x = tti_warp_sum(x);
    __syncthreads(); // part may still be read by the sum before
    if (lane == 0)
        part[warp] = x;
    __syncthreads();
    x = lane < (int)(blockDim.x + 31) / 32 ? part[lane] : 0.0f;
    return tti_warp_sum(x);
}

// ---- tables ----------------------------------------------------------------------------------

/*
 * TTI_ROW(op, prepare, fn); with the types of output 0 it has: TTI_ROW_TYPES; with the libraries
 * that may do its work: TTI_ROW_BY. Of several calls of an op, of two ops that follow each other,
 * of a kind of plan node: TTI_ROW_BATCHED, TTI_ROW_CHAIN, TTI_ROW_FORM.
 */
#define TTI_ROW_ALL(form, a, b, prepare, fn, types, libraries)          \
    {                                                                   \
        {form, {a, b, NULL}}, {(prepare), {(fn)}, (types)}, (libraries) \
    }
#define TTI_ROW(op, prepare, fn) TTI_ROW_ALL(TTI_KERNEL_OP, op, NULL, prepare, fn, 0, 0)
#define TTI_ROW_TYPES(op, prepare, fn, types) \
    TTI_ROW_ALL(TTI_KERNEL_OP, op, NULL, prepare, fn, types, 0)
#define TTI_ROW_BY(op, prepare, fn, libraries) \
    TTI_ROW_ALL(TTI_KERNEL_OP, op, NULL, prepare, fn, 0, libraries)
#define TTI_ROW_BATCHED(op, fn) TTI_ROW_ALL(TTI_KERNEL_BATCHED, op, NULL, NULL, fn, 0, 0)
#define TTI_ROW_CHAIN(first, second, prepare, fn) \
    TTI_ROW_ALL(TTI_KERNEL_CHAIN, first, second, prepare, fn, 0, 0)
#define TTI_ROW_FORM(form, fn)              TTI_ROW_FORM_TYPES(form, fn, 0)
#define TTI_ROW_FORM_TYPES(form, fn, types) TTI_ROW_ALL(form, NULL, NULL, NULL, fn, types, 0)
#define TTI_ROWS_END                        TTI_ROW(NULL, NULL, NULL)

#endif
