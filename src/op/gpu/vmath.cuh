/*
 * vmath.cuh - functions of one number on a GPU.
 *
 * log, log1p, sin, cos and pow are those of op/vmath.h, written with the same roundings: the first
 * values of variables need them to the bit, and the ops have them too. The others use what the
 * hardware is good at (2^x and 1/x, each right to one or two units of the last place); their bits
 * agree between kernels, not with the CPU. Subnormal numbers count as zero.
 */
#ifndef TUTTI_OP_VMATH_CUH
#define TUTTI_OP_VMATH_CUH

#include "cuda/kernel.cuh"
#include "op/angle.h"
#include <float.h>

#define TTI_LN2_HI 0.693359375f // 10 bits: times an exponent exact
#define TTI_LN2_LO (-2.12194440e-4f)

// log 0 = -inf, of a negative number NaN.
__device__ static inline float tti_log(float x)
{
    int32_t k = (int32_t)(tti_bits(x) - 0x3f3504f3u) >> 23; // x = 2^k m, m from sqrt(1/2) up
    float e = (float)k, f = tti_float(tti_bits(x) - ((uint32_t)k << 23)) - 1.0f;
    float q = 7.0376836292e-2f;
    q = fmaf(q, f, -1.1514610310e-1f);
    q = fmaf(q, f, 1.1676998740e-1f);
    q = fmaf(q, f, -1.2420140846e-1f);
    q = fmaf(q, f, 1.4249322787e-1f);
    q = fmaf(q, f, -1.6668057665e-1f);
    q = fmaf(q, f, 2.0000714765e-1f);
    q = fmaf(q, f, -2.4999993993e-1f);
    q = fmaf(q, f, 3.3333331174e-1f);
    float f2 = f * f;
    float t = fmaf(f * f2, q, e * TTI_LN2_LO);
    t = fmaf(-0.5f, f2, t);
    float y = fmaf(e, TTI_LN2_HI, f + t);
    y = x < FLT_MIN ? -INFINITY : y;
    y = x <= -FLT_MIN || x != x ? NAN : y;
    return x == INFINITY ? x : y;
}

// log(1 + x): the part of x that 1 + x loses is put back to first order.
__device__ static inline float tti_log1p(float x)
{
    float w = 1.0f + x, lost = x - (w - 1.0f), y = tti_log(w);
    float inside = y + lost / w;
    y = w > 0.0f && w < INFINITY ? inside : y;
    return w == 1.0f ? x : y;
}

// sin(x + shift pi / 2), x not negative: x = j pi/2 + r with pi/2 in three parts, or by angle.h. Of
// inf r is inf - inf.
__device__ static inline float tti_sin_quadrant(float x, uint32_t shift)
{
    float j = rintf(x * 0.636619772f);
    float r = fmaf(j, -0x1.921fb6p+0f, x);
    r = fmaf(j, 0x1.777a5cp-25f, r);
    r = fmaf(j, 0x1.ee59dap-50f, r);
    uint32_t q = j < 0x1p31f ? (uint32_t)(int32_t)j : 0x80000000u;
    if (x >= TTI_ANGLE_FAR && x < INFINITY)
        r = tti_angle_far(tti_bits(x), &q);
    q += shift;
    float r2 = r * r;
    float s = fmaf(fmaf(-1.9515295891e-4f, r2, 8.3321608736e-3f), r2, -1.6666654611e-1f);
    s = fmaf(r2 * r, s, r);
    float c =
        fmaf(fmaf(2.443315711809948e-5f, r2, -1.388731625493765e-3f), r2, 4.166664568298827e-2f);
    c = fmaf(r2 * r2, c, fmaf(r2, -0.5f, 1.0f));
    return tti_float(tti_bits((q & 1) == 0 ? s : c) ^ (q & 2) << 30);
}
__device__ static inline float tti_sin(float x)
{
    return tti_float(tti_bits(tti_sin_quadrant(fabsf(x), 0)) ^ (tti_bits(x) & 0x80000000u));
}
__device__ static inline float tti_cos(float x)
{
    return tti_sin_quadrant(fabsf(x), 1);
}

// log a = h + *l, a being normal; e^(t + low): v16_log_two and v16_exp_two.
__device__ static inline float tti_log_two(float a, float *l)
{
    int32_t k = (int32_t)(tti_bits(a) - 0x3f3504f3u) >> 23;
    float e = (float)k, m = tti_float(tti_bits(a) - ((uint32_t)k << 23)), c3 = 0x1.555556p-1f;
    float f = m - 1.0f, g = m + 1.0f, g_lo = m - (g - 1.0f), by = 1.0f / g;
    float s = f * by, s_lo = fmaf(-s, g_lo, fmaf(-s, g, f)) * by;
    float s2 = s * s, s2_lo = fmaf(s + s, s_lo, fmaf(s, s, -s2));
    float s3 = s2 * s, s3_lo = fmaf(s2, s_lo, fmaf(s2_lo, s, fmaf(s2, s, -s3)));
    float cube = c3 * s3, cube_lo = fmaf(c3, s3, -cube);
    cube_lo = fmaf(c3, s3_lo, fmaf(-0x1.555556p-26f, s3, cube_lo));
    float q = 2.0f / 13;
    q = fmaf(q, s2, 2.0f / 11);
    q = fmaf(q, s2, 2.0f / 9);
    q = fmaf(q, s2, 2.0f / 7);
    q = fmaf(q, s2, 2.0f / 5);
    float low = fmaf(s2 * s3, q, cube_lo + (s_lo + s_lo));
    low = fmaf(e, TTI_LN2_LO, low);
    float top = e * TTI_LN2_HI, two_s = s + s, near = two_s + cube;
    low = (cube - (near - two_s)) + low;
    float h = top + near;
    low = (near - (h - top)) + low;
    float y = h + low;
    *l = low - (y - h);
    return y;
}
__device__ static inline float tti_exp_two(float t, float low)
{
    low = fabsf(t) < 120.0f ? low : 0.0f;
    t = t < 120.0f ? t : 120.0f;
    t = t > -120.0f ? t : -120.0f;
    float n = rintf(t * 1.44269504f);
    float high = fmaf(n, -TTI_LN2_HI, t), r = fmaf(n, -TTI_LN2_LO, high);
    low = low + fmaf(n, -TTI_LN2_LO, high - r);
    float x = r + low;
    low = low - (x - r);
    float q = 1.9875691500e-4f;
    q = fmaf(q, x, 1.3981999507e-3f);
    q = fmaf(q, x, 8.3334519073e-3f);
    q = fmaf(q, x, 4.1665795894e-2f);
    q = fmaf(q, x, 1.6666665459e-1f);
    q = fmaf(q, x, 0.5f);
    float top = 1.0f + x;
    low = fmaf(low, top, x - (top - 1.0f));
    float y = top + fmaf(x * x, q, low);
    int32_t k = (int32_t)n, half = k >> 1;
    y = y * tti_float((uint32_t)(half + 127) << 23);
    y = y * tti_float((uint32_t)(k - half + 127) << 23);
    return y < FLT_MIN ? 0.0f : y;
}

// As C's, subnormal numbers being zeros.
__device__ static inline float tti_pow(float a, float b)
{
    if (b == 0.0f || a == 1.0f)
        return 1.0f;
    if (a != a || b != b)
        return a + b;
    float m = fabsf(a), half = b * 0.5f;
    bool none = m < FLT_MIN, all = m == INFINITY, whole = rintf(b) == b, minus = a < 0.0f;
    float y = 1.0f;
    if (none || all) {
        y = none == (b > 0.0f) ? 0.0f : INFINITY;
    } else if (m != 1.0f) {
        float l, h = tti_log_two(m, &l), t = b * h;
        y = tti_exp_two(t, fmaf(b, l, fmaf(b, h, -t)));
    }
    if (minus && !(whole || none || all))
        return NAN;
    return whole && rintf(half) != half && tti_bits(a) >> 31 != 0 ? -y : y;
}

// 1 / x to one unit; of inf 0.
__device__ static inline float tti_reciprocal(float x)
{
#ifdef __CUDA_ARCH__
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return 1.0f / x;
#endif
}

// 1 / (1 + e^-x)
__device__ static inline float tti_logistic(float x)
{
    return tti_reciprocal(1.0f + expf(-x));
}
// max(x, 0) + log1p(e^-|x|)
__device__ static inline float tti_softplus(float x)
{
    return (x > 0.0f ? x : 0.0f) + tti_log1p(expf(-fabsf(x)));
}

/*
 * The tanh form of gelu is x s with s = (1 + tanh u) / 2 = 1 / (1 + 2^(-2 u log2 e)) and
 * u = sqrt(2 / pi) (x + 0.044715 x^3).
 */
#define TTI_GELU_U 0.7978845608028654f
#define TTI_GELU_3 0.044715f
__device__ static inline float tti_gelu_part(float x)
{
    float u = fmaf(x * x * TTI_GELU_3, x, x);
    return tti_reciprocal(1.0f + exp2f(u * (-2.0f * TTI_GELU_U * 1.4426950408889634f)));
}
__device__ static inline float tti_gelu(float x)
{
    return x * tti_gelu_part(x);
}
// s + 2 x s (1 - s) u'
__device__ static inline float tti_gelu_slope(float x)
{
    x = x < -100.0f ? -100.0f : x > 100.0f ? 100.0f : x; // 0 or 1 there, and u' is finite
    float s = tti_gelu_part(x);
    float du = fmaf(x * x, 3.0f * TTI_GELU_U * TTI_GELU_3, TTI_GELU_U);
    return fmaf(2.0f * x * (s * (1.0f - s)), du, s);
}
__device__ static inline float tti_gelu_erf(float x)
{
    float half = 0.5f * x;
    return fmaf(half, erff(x * 0.7071067811865476f), half);
}
// (1 + erf(x / sqrt 2)) / 2 + x e^(-x^2 / 2) / sqrt(2 pi)
__device__ static inline float tti_gelu_erf_slope(float x)
{
    float bell = expf(x * x * -0.5f), s = fmaf(0.5f, erff(x * 0.7071067811865476f), 0.5f);
    return fmaf(x * 0.3989422804014327f, bell, s);
}
__device__ static inline float tti_silu_slope(float x)
{
    float s = tti_logistic(x);
    return s * fmaf(x, 1.0f - s, 1.0f);
}
__device__ static inline float tti_elu(float x, float alpha)
{
    return x > 0.0f ? x : alpha * expm1f(x);
}

// A NaN stays one.
__device__ static inline float tti_sign(float x)
{
    return x != x ? x : (float)((x > 0.0f) - (x < 0.0f));
}

// min(high, max(low, x)); a NaN stays one
__device__ static inline float tti_clip(float x, float low, float high)
{
    float m = low > x ? low : x;
    return (high < m ? high : m) + 0.0f;
}

#define TTI_SELU_SCALE 1.0507009873554805f
#define TTI_SELU_LOW   1.7580993408473766f
__device__ static inline float tti_selu(float x)
{
    return x > 0.0f ? x * TTI_SELU_SCALE : TTI_SELU_LOW * expm1f(x);
}
__device__ static inline float tti_hard_sigmoid(float x)
{
    return tti_clip(fmaf(x, 0.16666667f, 0.5f), 0.0f, 1.0f);
}
__device__ static inline float tti_hard_swish_slope(float x)
{
    return x <= -3.0f ? 0.0f : x >= 3.0f ? 1.0f : fmaf(x, 0.33333334f, 0.5f);
}
__device__ static inline float tti_softsign_slope(float x)
{
    float r = 1.0f / (1.0f + fabsf(x));
    return r * r;
}
// x n / (n + 2), n = e^x (e^x + 2): tanh(softplus(x)) is that quotient, and 1 from 20 on.
__device__ static inline float tti_mish(float x)
{
    float e = expf(x > 20.0f ? 20.0f : x), n = e * (e + 2.0f);
    return x * (n / (n + 2.0f));
}
__device__ static inline float tti_mish_slope(float x)
{
    if (x > 20.0f)
        return 1.0f;
    float e = expf(x), n = e * (e + 2.0f), m = n + 2.0f;
    return fmaf(x, 4.0f * e * (1.0f + e) / (m * m), n / m);
}

#endif
