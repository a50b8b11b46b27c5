/*
 * pointwise.cuh - the device functions of pointwise.h: values in registers, and the steps on them.
 *
 * A thread holds E neighbouring elements of a value as E words of type W: a float of any width as
 * the bits of an f32, an integer extended by its sign, a bool as 0 or 1. Indices into such arrays
 * are constants, so that they are registers; what a program chooses is chosen by branches that all
 * threads take alike.
 */
#ifndef TUTTI_OP_POINTWISE_CUH
#define TUTTI_OP_POINTWISE_CUH

#include "op/gpu/pointwise.h"
#include "op/gpu/vmath.cuh"

template <class W> struct tti_pw_word;
template <> struct tti_pw_word<uint32_t> {
    typedef int32_t whole;
};
template <> struct tti_pw_word<uint64_t> {
    typedef int64_t whole;
};

// ---- elements in memory ----------------------------------------------------------------------

// E elements side by side, of up to 4 bytes, or one of 8.
template <int E> struct tti_pw_raw {
    uint32_t w[E == 1 ? 2 : E];
};

__device__ static inline float tti_pw_from_f16(uint32_t bits)
{
#ifdef __CUDA_ARCH__
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"((uint16_t)bits));
    return y;
#else
    return tti_get(tti_f16{(uint16_t)bits});
#endif
}
/*
 * Two floats as two of a half type, the first in the low bits. Subnormals of bf16 stay: arithmetic
 * that made a value has flushed them.
 */
__device__ static inline uint32_t tti_pw_halves(int type, uint32_t low, uint32_t high)
{
    uint32_t y;
#ifdef __CUDA_ARCH__
    if (type == TT_BF16)
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(tti_float(high)), "f"(tti_float(low)));
    else
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(tti_float(high)), "f"(tti_float(low)));
#else
    if (type == TT_BF16) {
        tti_bf16 a, b;
        tti_put(a, tti_float(low));
        tti_put(b, tti_float(high));
        y = (uint32_t)a.bits | (uint32_t)b.bits << 16;
    } else {
        tti_f16 a, b;
        tti_put(a, tti_float(low));
        tti_put(b, tti_float(high));
        y = (uint32_t)a.bits | (uint32_t)b.bits << 16;
    }
#endif
    return y;
}

#define TTI_PW_EACH(...)                          \
    _Pragma("unroll") for (int e = 0; e < E; e++) \
    {                                             \
        __VA_ARGS__;                              \
    }

template <class W, int E>
__device__ static inline void tti_pw_unpack(int type, const tti_pw_raw<E> &r, W (&x)[E])
{
    typedef typename tti_pw_word<W>::whole S;
    switch (type) {
    case TT_BF16:
        TTI_PW_EACH(x[e] = e % 2 == 0 ? r.w[e / 2] << 16 : r.w[e / 2] & 0xffff0000u)
        return;
    case TT_F16:
        TTI_PW_EACH(x[e] = tti_bits(tti_pw_from_f16(r.w[e / 2] >> e % 2 * 16 & 0xffffu)))
        return;
    case TTI_PW_BITS16:
        TTI_PW_EACH(x[e] = r.w[e / 2] >> e % 2 * 16 & 0xffffu)
        return;
    case TT_U8:
    case TT_BOOL:
        TTI_PW_EACH(x[e] = r.w[e / 4] >> e % 4 * 8 & 0xffu)
        return;
    case TT_I32:
        TTI_PW_EACH(x[e] = (W)(S)(int32_t)r.w[e])
        return;
    case TT_I64:
        x[0] = (W)(r.w[0] | (uint64_t)r.w[1] << 32);
        return;
    default:
        TTI_PW_EACH(x[e] = r.w[e])
    }
}

template <class W, int E>
__device__ static inline void tti_pw_pack(int type, const W (&x)[E], tti_pw_raw<E> &r)
{
    const int next = E > 1, third = E > 2 ? 2 : 0, fourth = E > 3 ? 3 : 0;
    switch (type) {
    case TT_BF16:
    case TT_F16:
#pragma unroll
        for (int e = 0; e < E; e += 2)
            r.w[e / 2] = tti_pw_halves(type, (uint32_t)x[e], (uint32_t)x[e + next]);
        return;
    case TTI_PW_BITS16:
#pragma unroll
        for (int e = 0; e < E; e += 2)
            r.w[e / 2] = (uint32_t)x[e] | (uint32_t)x[e + next] << 16;
        return;
    case TT_U8:
    case TT_BOOL:
#pragma unroll
        for (int e = 0; e < E; e += 4)
            r.w[e / 4] = ((uint32_t)x[e] & 0xffu) | ((uint32_t)x[e + next] & 0xffu) << 8 |
                         ((uint32_t)x[e + third] & 0xffu) << 16 | (uint32_t)x[e + fourth] << 24;
        return;
    case TT_I64:
        r.w[0] = (uint32_t)x[0];
        r.w[1] = (uint32_t)((uint64_t)x[0] >> 32);
        return;
    default:
        TTI_PW_EACH(r.w[e] = (uint32_t)x[e])
    }
}

// To the nearest of the type, and back into a register.
template <class W, int E> __device__ static inline void tti_pw_round(int type, W (&x)[E])
{
    typedef typename tti_pw_word<W>::whole S;
    if (type == TT_BF16 || type == TT_F16) {
        tti_pw_raw<E> r;
        tti_pw_pack<W, E>(type, x, r);
        tti_pw_unpack<W, E>(type, r, x);
    } else if (type == TT_U8) {
        TTI_PW_EACH(x[e] &= 0xffu)
    } else if (type == TT_I32 && sizeof(W) == 8) {
        TTI_PW_EACH(x[e] = (W)(S)(int32_t)x[e])
    }
}

// ---- steps: x becomes the result -------------------------------------------------------------

#define TTI_PW_CASE(name, ...)   \
    case name:                   \
        TTI_PW_EACH(__VA_ARGS__) \
        return;
#define TTI_PW_X float x = tti_float((uint32_t)xs[e])
#define TTI_PW_Y float y = tti_float((uint32_t)ys[e])

template <class W, int E>
__device__ static inline void tti_pw_float_1(int op, W (&xs)[E], float a, float b)
{
    switch (op) {
#define CASE(name, value) TTI_PW_CASE(TTI_PW_F_##name, TTI_PW_X; xs[e] = tti_bits((float)(value)))
        TTI_PW_FLOAT_1(CASE)
#undef CASE
    default:
        return;
    }
}

template <class W, int E>
__device__ static inline void tti_pw_float_2(int op, W (&xs)[E], const W (&ys)[E], float a, float b)
{
    switch (op) {
#define CASE(name, value) \
    TTI_PW_CASE(TTI_PW_F_##name, TTI_PW_X; TTI_PW_Y; xs[e] = tti_bits((float)(value)))
        TTI_PW_FLOAT_2(CASE)
#undef CASE
#define CASE(name, order) TTI_PW_CASE(TTI_PW_F_##name, TTI_PW_X; TTI_PW_Y; xs[e] = x order y)
        TTI_PW_COMPARE(CASE)
#undef CASE
    default:
        return;
    }
}

template <class W, int E>
__device__ static inline void tti_pw_int_2(int op, W (&xs)[E], const W (&ys)[E])
{
    typedef typename tti_pw_word<W>::whole S;
    switch (op) {
#define CASE(name, value)                                                                      \
    TTI_PW_CASE(TTI_PW_I_##name, W x = xs[e]; W y = ys[e]; S sx = (S)x; S sy = (S)y; (void)sx; \
                (void)sy; xs[e] = (W)(value))
        TTI_PW_INT_2(CASE)
#undef CASE
#define CASE(name, order) TTI_PW_CASE(TTI_PW_I_##name, xs[e] = (S)xs[e] order(S) ys[e])
        TTI_PW_COMPARE(CASE)
#undef CASE
    default:
        return;
    }
}

// The fraction cut off, within the type; NaN is 0.
template <class W> __device__ static inline W tti_pw_cut(int type, float x)
{
    if (x != x)
        return 0;
    if (type == TT_U8)
        return x <= 0.0f ? 0 : x >= 255.0f ? 255 : (W)x;
    if (sizeof(W) == 4 || type == TT_I32)
        return (W)(x <= -0x1p31f ? INT32_MIN : x >= 0x1p31f ? INT32_MAX : (int32_t)x);
    return (W)(x <= -0x1p63f ? INT64_MIN : x >= 0x1p63f ? INT64_MAX : (int64_t)x);
}

// The nearest 32-bit integer.
template <class W> __device__ static inline W tti_pw_fit(int64_t x)
{
    return (W)(x < INT32_MIN ? INT32_MIN : x > INT32_MAX ? INT32_MAX : (int32_t)x);
}

// Integers, and from one kind of type to another, which is `type`.
template <class W, int E> __device__ static inline void tti_pw_int_1(int op, int type, W (&xs)[E])
{
    typedef typename tti_pw_word<W>::whole S;
    switch (op) {
#define CASE(name, value) \
    TTI_PW_CASE(TTI_PW_I_##name, W x = xs[e]; S sx = (S)x; (void)sx; xs[e] = (W)(value))
        TTI_PW_INT_1(CASE)
#undef CASE
        TTI_PW_CASE(TTI_PW_F_to_I, xs[e] = tti_pw_cut<W>(type, tti_float((uint32_t)xs[e])))
        TTI_PW_CASE(TTI_PW_I_to_F, xs[e] = tti_bits((float)(S)xs[e]))
        TTI_PW_CASE(TTI_PW_F_to_bool, xs[e] = tti_float((uint32_t)xs[e]) != 0.0f)
        TTI_PW_CASE(TTI_PW_I_to_bool, xs[e] = xs[e] != 0)
        TTI_PW_CASE(TTI_PW_I_to_u8, S x = (S)xs[e]; xs[e] = (W)(x < 0 ? 0 : x > 255 ? 255 : x))
        TTI_PW_CASE(TTI_PW_I_to_i32, S x = (S)xs[e]; xs[e] = tti_pw_fit<W>(x))
    default:
        return;
    }
}

#endif
