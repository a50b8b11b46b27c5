/*
 * device.h - what a kernel's source sees: qualifiers, built-in variables and functions, launches.
 */
#ifndef TUTTI_EMU_DEVICE_H
#define TUTTI_EMU_DEVICE_H

#include <functional>
#include <tuple>
#include <type_traits>

#define __host__
#define __device__
#define __global__
#define __constant__    static
#define __shared__      static // blocks run one after another
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(n)    __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __grid_constant__

// ---- vectors ---------------------------------------------------------------------------------

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c)
    {
    }
};
#define EMU_VECTORS(T, name)                                 \
    struct __attribute__((aligned(2 * sizeof(T)))) name##2   \
    {                                                        \
        T x, y;                                              \
    };                                                       \
    struct name##3                                           \
    {                                                        \
        T x, y, z;                                           \
    };                                                       \
    struct __attribute__((aligned(16))) name##4              \
    {                                                        \
        T x, y, z, w;                                        \
    };                                                       \
    static inline name##2 make_##name##2(T x, T y)           \
    {                                                        \
        return {x, y};                                       \
    }                                                        \
    static inline name##4 make_##name##4(T x, T y, T z, T w) \
    {                                                        \
        return {x, y, z, w};                                 \
    }
EMU_VECTORS(float, float)
EMU_VECTORS(int, int)
struct __attribute__((aligned(8))) uint2 {
    unsigned x, y;
};
struct __attribute__((aligned(16))) uint4 {
    unsigned x, y, z, w;
};
struct __attribute__((aligned(4))) ushort2 {
    unsigned short x, y;
};
struct __attribute__((aligned(8))) ushort4 {
    unsigned short x, y, z, w;
};
static inline uint2 make_uint2(unsigned x, unsigned y)
{
    return {x, y};
}
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
    return {x, y, z, w};
}

// ---- the thread that runs --------------------------------------------------------------------

extern uint3 emu_thread, emu_block;
extern dim3 emu_block_dim, emu_grid_dim;
extern char *emu_dynamic; // shared memory of the block
#define threadIdx emu_thread
#define blockIdx  emu_block
#define blockDim  emu_block_dim
#define gridDim   emu_grid_dim
#define warpSize  32

// Kinds of meeting points; threads that meet at one are of one kind and mask.
enum emu_kind {
    EMU_BLOCK,
    EMU_WARP,
    EMU_SHUFFLE,
    EMU_BALLOT,
    EMU_MATCH
};
void emu_block_wait(int *any, int *all, int *count, int predicate);
// Gives every lane's value once all of mask have come; which of them exist is in present.
void emu_warp_wait(emu_kind kind, unsigned mask, uint64_t value, uint64_t all[32],
                   unsigned *present);
int emu_lane(void);

static inline void __syncthreads()
{
    emu_block_wait(nullptr, nullptr, nullptr, 0);
}
static inline int __syncthreads_or(int p)
{
    int any;
    emu_block_wait(&any, nullptr, nullptr, p);
    return any;
}
static inline int __syncthreads_and(int p)
{
    int all;
    emu_block_wait(nullptr, &all, nullptr, p);
    return all;
}
static inline int __syncthreads_count(int p)
{
    int n;
    emu_block_wait(nullptr, nullptr, &n, p);
    return n;
}
static inline void __syncwarp(unsigned mask = 0xffffffffu)
{
    uint64_t all[32];
    unsigned present;
    emu_warp_wait(EMU_WARP, mask, 0, all, &present);
}

// from(lane) is the lane to read, one's own if that is not in the segment or not there.
template <class T, class F> T emu_shuffle(unsigned mask, T x, F from)
{
    static_assert(sizeof(T) <= 8, "shuffles move up to eight bytes");
    uint64_t bits = 0, all[32];
    unsigned present;
    memcpy(&bits, &x, sizeof(T));
    emu_warp_wait(EMU_SHUFFLE, mask, bits, all, &present);
    int lane = emu_lane(), at = from(lane);
    if (at < 0 || at > 31 || !(present >> at & 1))
        at = lane;
    memcpy(&x, &all[at], sizeof(T));
    return x;
}
template <class T> T __shfl_sync(unsigned mask, T x, int src, int width = 32)
{
    return emu_shuffle(mask, x,
                       [=](int lane) { return (lane & ~(width - 1)) + (src & (width - 1)); });
}
template <class T> T __shfl_xor_sync(unsigned mask, T x, int k, int width = 32)
{
    return emu_shuffle(mask, x, [=](int lane) {
        int at = lane ^ k;
        return at < (lane & ~(width - 1)) + width ? at : lane;
    });
}
template <class T> T __shfl_up_sync(unsigned mask, T x, unsigned k, int width = 32)
{
    return emu_shuffle(mask, x, [=](int lane) {
        int at = lane - (int)k;
        return at >= (lane & ~(width - 1)) ? at : lane;
    });
}
template <class T> T __shfl_down_sync(unsigned mask, T x, unsigned k, int width = 32)
{
    return emu_shuffle(mask, x, [=](int lane) {
        int at = lane + (int)k;
        return at < (lane & ~(width - 1)) + width ? at : lane;
    });
}
static inline unsigned __ballot_sync(unsigned mask, int p)
{
    uint64_t all[32];
    unsigned present, out = 0;
    emu_warp_wait(EMU_BALLOT, mask, p != 0, all, &present);
    for (int i = 0; i < 32; i++)
        if (present >> i & 1 && all[i])
            out |= 1u << i;
    return out;
}
static inline int __any_sync(unsigned mask, int p)
{
    return __ballot_sync(mask, p) != 0;
}
static inline int __all_sync(unsigned mask, int p)
{
    return __ballot_sync(mask, !p) == 0;
}
template <class T> unsigned __match_any_sync(unsigned mask, T x)
{
    uint64_t bits = 0, all[32];
    unsigned present, out = 0;
    memcpy(&bits, &x, sizeof(T));
    emu_warp_wait(EMU_MATCH, mask, bits, all, &present);
    for (int i = 0; i < 32; i++)
        if (present >> i & 1 && all[i] == bits)
            out |= 1u << i;
    return out;
}
template <class T, class F> T emu_reduce(unsigned mask, T x, F f)
{
    uint64_t bits = 0, all[32];
    unsigned present;
    bool first = true;
    memcpy(&bits, &x, sizeof(T));
    emu_warp_wait(EMU_SHUFFLE, mask, bits, all, &present);
    for (int i = 0; i < 32; i++) {
        T y;
        memcpy(&y, &all[i], sizeof(T));
        if (present >> i & 1) {
            x = first ? y : f(x, y);
            first = false;
        }
    }
    return x;
}
template <class T> T __reduce_add_sync(unsigned mask, T x)
{
    return emu_reduce(mask, x, [](T a, T b) { return (T)(a + b); });
}
template <class T> T __reduce_max_sync(unsigned mask, T x)
{
    return emu_reduce(mask, x, [](T a, T b) { return a > b ? a : b; });
}
template <class T> T __reduce_min_sync(unsigned mask, T x)
{
    return emu_reduce(mask, x, [](T a, T b) { return a < b ? a : b; });
}
template <class T> T __reduce_or_sync(unsigned mask, T x)
{
    return emu_reduce(mask, x, [](T a, T b) { return (T)(a | b); });
}

// ---- atomics: of integers alone --------------------------------------------------------------

#define EMU_ATOMIC(name, expression)                                       \
    template <class T, class U> T name(T *at, U by)                        \
    {                                                                      \
        static_assert(std::is_integral<T>::value,                          \
                      "no atomics on floats: the order of sums is fixed"); \
        T old = *at, x = (T)by;                                            \
        *at = (expression);                                                \
        return old;                                                        \
    }
EMU_ATOMIC(atomicAdd, (T)(old + x))
EMU_ATOMIC(atomicSub, (T)(old - x))
EMU_ATOMIC(atomicExch, x)
EMU_ATOMIC(atomicMax, old > x ? old : x)
EMU_ATOMIC(atomicMin, old < x ? old : x)
EMU_ATOMIC(atomicOr, (T)(old | x))
EMU_ATOMIC(atomicAnd, (T)(old &x))
EMU_ATOMIC(atomicXor, (T)(old ^ x))
EMU_ATOMIC(atomicInc, (T)(old >= x ? 0 : old + 1))
template <class T, class U, class V> T atomicCAS(T *at, U expected, V value)
{
    T old = *at;
    if (old == (T)expected)
        *at = (T)value;
    return old;
}
static inline void __threadfence()
{
}
static inline void __threadfence_block()
{
}
static inline void __threadfence_system()
{
}

// ---- functions -------------------------------------------------------------------------------

template <class T> T __ldg(const T *p)
{
    return *p;
}
#define EMU_LOAD(name)                    \
    template <class T> T name(const T *p) \
    {                                     \
        return *p;                        \
    }
EMU_LOAD(__ldcs)
EMU_LOAD(__ldcg)
EMU_LOAD(__ldca)
#define EMU_STORE(name)                         \
    template <class T> void name(T *p, T value) \
    {                                           \
        *p = value;                             \
    }
EMU_STORE(__stcs)
EMU_STORE(__stcg)
EMU_STORE(__stwt)

template <class A, class B> typename std::common_type<A, B>::type min(A a, B b)
{
    typedef typename std::common_type<A, B>::type T;
    return (T)b < (T)a ? (T)b : (T)a;
}
template <class A, class B> typename std::common_type<A, B>::type max(A a, B b)
{
    typedef typename std::common_type<A, B>::type T;
    return (T)a < (T)b ? (T)b : (T)a;
}

template <class To, class From> To emu_cast(From x)
{
    static_assert(sizeof(To) == sizeof(From), "the same bits");
    To y;
    memcpy(&y, &x, sizeof(y));
    return y;
}
static inline int __float_as_int(float x)
{
    return emu_cast<int>(x);
}
static inline unsigned __float_as_uint(float x)
{
    return emu_cast<unsigned>(x);
}
static inline float __int_as_float(int x)
{
    return emu_cast<float>(x);
}
static inline float __uint_as_float(unsigned x)
{
    return emu_cast<float>(x);
}

// The C library has these names for itself.
#define __expf(x)    expf(x)
#define __logf(x)    logf(x)
#define __log2f(x)   log2f(x)
#define __sinf(x)    sinf(x)
#define __cosf(x)    cosf(x)
#define __tanhf(x)   tanhf(x)
#define __powf(x, y) powf(x, y)
#define EMU_MATH1(name, expression)   \
    static inline float name(float x) \
    {                                 \
        return (expression);          \
    }
EMU_MATH1(rsqrtf, 1.0f / sqrtf(x))
EMU_MATH1(__frsqrt_rn, 1.0f / sqrtf(x))
EMU_MATH1(__fsqrt_rn, sqrtf(x))
EMU_MATH1(__frcp_rn, 1.0f / x)
EMU_MATH1(normcdff, 0.5f * erfcf(-x * 0.70710678f))
EMU_MATH1(__saturatef, x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f)
#define EMU_MATH2(name, expression)            \
    static inline float name(float x, float y) \
    {                                          \
        return (expression);                   \
    }
EMU_MATH2(__fadd_rn, x + y)
EMU_MATH2(__fsub_rn, x - y)
EMU_MATH2(__fmul_rn, x *y)
EMU_MATH2(__fdiv_rn, x / y)
EMU_MATH2(__fdividef, x / y)
static inline float __fmaf_rn(float x, float y, float z)
{
    return fmaf(x, y, z);
}
static inline int __float2int_rn(float x)
{
    return (int)nearbyintf(x);
}
static inline int __float2int_rz(float x)
{
    return (int)x;
}
static inline float __int2float_rn(int x)
{
    return (float)x;
}
static inline float __uint2float_rn(unsigned x)
{
    return (float)x;
}
static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
static inline int __popcll(unsigned long long x)
{
    return __builtin_popcountll(x);
}
static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}
static inline int __clz(int x)
{
    return x == 0 ? 32 : __builtin_clz((unsigned)x);
}
static inline int __clzll(long long x)
{
    return x == 0 ? 64 : __builtin_clzll((unsigned long long)x);
}
static inline unsigned __brev(unsigned x)
{
    unsigned y = 0;
    for (int i = 0; i < 32; i++)
        y |= (x >> i & 1) << (31 - i);
    return y;
}
static inline unsigned __umulhi(unsigned x, unsigned y)
{
    return (unsigned)((uint64_t)x * y >> 32);
}
static inline int __mulhi(int x, int y)
{
    return (int)((int64_t)x * y >> 32);
}
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y)
{
    return (unsigned long long)((unsigned __int128)x * y >> 64);
}
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned s)
{
    uint64_t both = (uint64_t)y << 32 | x;
    unsigned out = 0;
    for (int i = 0; i < 4; i++)
        out |= (unsigned)(both >> (s >> 4 * i & 7) * 8 & 255) << 8 * i;
    return out;
}

// ---- launches --------------------------------------------------------------------------------

void emu_launch_body(dim3 grid, dim3 block, size_t shared, cudaStream_t s,
                     std::function<void()> body);

// Arguments are copied when the launch is made: it may run later, and many times.
template <class F, class... A>
void emu_launch(dim3 grid, dim3 block, size_t shared, cudaStream_t s, F call, A... a)
{
    std::tuple<A...> args{a...};
    emu_launch_body(grid, block, shared, s, [call, args]() { std::apply(call, args); });
}
// The kernel may be a template whose arguments follow from the call.
#define TTI_LAUNCH(l, grid, block, shared, kernel, ...)              \
    emu_launch((grid), (block), (shared), (cudaStream_t)(l)->stream, \
               [=](auto... emu_args) { kernel(emu_args...); }, ##__VA_ARGS__)
#define TTI_SHARED(type, name) type *name = (type *)emu_dynamic

cudaError_t emu_allow_shared(cudaFuncAttribute what, int value);
template <class... P>
cudaError_t cudaFuncSetAttribute(void (*kernel)(P...), cudaFuncAttribute what, int value)
{
    (void)kernel;
    return emu_allow_shared(what, value);
}
template <class... P>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *out, void (*kernel)(P...), int block,
                                                          size_t shared)
{
    (void)kernel;
    (void)block;
    (void)shared;
    *out = 2;
    return cudaSuccess;
}
template <class T> cudaError_t cudaMalloc(T **out, size_t bytes)
{
    void *p = nullptr;
    cudaError_t e = (cudaMalloc)(&p, bytes);
    *out = (T *)p;
    return e;
}
template <class T> cudaError_t cudaHostAlloc(T **out, size_t bytes, unsigned flags)
{
    void *p = nullptr;
    cudaError_t e = (cudaHostAlloc)(&p, bytes, flags);
    *out = (T *)p;
    return e;
}

#endif
