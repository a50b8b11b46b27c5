/*
 * act.cuh - the activations of dense, convolution and batch norm nodes on a GPU; op/act.h is the
 * CPU's form. Device functions of math.h: bits need only agree between GPUs.
 */
#ifndef TUTTI_OP_ACT_CUH
#define TUTTI_OP_ACT_CUH

#include "cuda/kernel.cuh"
#include <tutti/ops.h>

// A NaN stays one; -0 becomes 0.
__device__ static inline float tti_relu(float z)
{
#ifdef __CUDA_ARCH__
    float y;
    asm("max.NaN.f32 %0, %1, 0f00000000;" : "=f"(y) : "f"(z));
    return y;
#else
    return z < 0.0f ? 0.0f : z + 0.0f;
#endif
}

__device__ static inline float tti_sigmoid(float z)
{
    float e = expf(-fabsf(z)); // never overflows
    return (z < 0.0f ? e : 1.0f) / (1.0f + e);
}

__device__ static inline float tti_act(int act, float z)
{
    switch (act) {
    case TT_RELU:
        return tti_relu(z);
    case TT_GELU: {
        float u = 0.7978845608028654f * fmaf(z * z * 0.044715f, z, z), half = 0.5f * z;
        return fmaf(half, tanhf(u), half);
    }
    case TT_GELU_ERF: {
        float half = 0.5f * z;
        return fmaf(half, erff(z * 0.7071067811865476f), half);
    }
    case TT_SIGMOID:
        return tti_sigmoid(z);
    case TT_TANH:
        return tanhf(z);
    case TT_SILU:
        return z * tti_sigmoid(z);
    case TT_ELU:
        return z > 0.0f ? z : expm1f(z);
    case TT_LEAKY_RELU:
        return z > 0.0f ? z : z * 0.01f;
    case TT_SOFTPLUS:
        return (z > 0.0f ? z : 0.0f) + log1pf(expf(-fabsf(z)));
    default:
        return z;
    }
}

#endif
