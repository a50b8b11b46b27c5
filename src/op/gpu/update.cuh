/*
 * update.cuh - the rules of update.cu, one element at a time. The formulas are those of
 * update_cpu.c.
 */
#ifndef TUTTI_OP_UPDATE_CUH
#define TUTTI_OP_UPDATE_CUH

#include "cuda/kernel.cuh"
#include "op/update.h"

// ---- the step's scalars ----------------------------------------------------------------------

struct scalars {
    float lr, grad_scale, scale, decay, momentum, beta1, beta2, rest1, rest2, fix2, eps, shrink;
    int nesterov, has_decay, go;
};

// base^n by squaring: the multiplications of the CPU.
__device__ static double power(double base, int64_t n)
{
    double y = 1;
    for (; n > 0; n /= 2, base *= base)
        if (n & 1)
            y *= base;
    return y;
}

// Updates up to this one that were applied.
__device__ static int64_t count_of(const tt_step *step)
{
    return step->step + 1 - step->unapplied;
}

__device__ static float scale_of(const float *scale)
{
    return scale != NULL ? *scale : 1.0f;
}

// All but fix2.
__device__ static void scalars_of(scalars *c, const tti_update_attr &a, const tt_step *step,
                                  const float *scale, bool is_adam)
{
    double lr = (double)step->lr * a.lr_scale, fix1 = 1;
    if (is_adam)
        fix1 = 1 / (1 - power(a.beta1, count_of(step)));
    c->lr = (float)(-lr * fix1);
    c->grad_scale = step->grad_scale;
    c->scale = scale_of(scale);
    c->decay = (float)a.weight_decay;
    c->momentum = (float)a.momentum;
    c->beta1 = (float)a.beta1;
    c->beta2 = (float)a.beta2;
    c->rest1 = (float)(1 - a.beta1);
    c->rest2 = (float)(1 - a.beta2);
    c->eps = (float)a.eps;
    c->shrink = (float)(1 - lr * a.weight_decay);
    c->nesterov = a.nesterov != 0;
    c->has_decay = a.weight_decay != 0;
    c->go = c->scale - c->scale == 0;
}

// ---- rules: new w from w and g; s and b are the state, changed in place ----------------------

__device__ static inline float scaled(const scalars &c, float g)
{
    return (g * c.grad_scale) * c.scale;
}
__device__ static inline float gradient(const scalars &c, float w, float g)
{
    g = scaled(c, g);
    return c.has_decay ? fmaf(c.decay, w, g) : g;
}
__device__ static inline float adam_step(const scalars &c, float w, float g, float &s, float &b)
{
    s = fmaf(c.beta1, s, c.rest1 * g);
    b = fmaf(c.beta2, b, (c.rest2 * g) * g);
    return fmaf(c.lr, s / (sqrtf(b * c.fix2) + c.eps), w);
}
__device__ static inline float rms_direction(const scalars &c, float w, float g, float &s)
{
    g = gradient(c, w, g);
    s = fmaf(c.beta1, s, (c.rest1 * g) * g);
    return g / (sqrtf(s) + c.eps);
}

struct sgd {
    static const int n_state = 0, is_adam = 0;
    __device__ static float step(const scalars &c, float w, float g, float &, float &)
    {
        return fmaf(c.lr, gradient(c, w, g), w);
    }
};
struct sgd_momentum {
    static const int n_state = 1, is_adam = 0;
    __device__ static float step(const scalars &c, float w, float g, float &s, float &)
    {
        g = gradient(c, w, g);
        s = fmaf(c.momentum, s, g);
        return fmaf(c.lr, c.nesterov ? fmaf(c.momentum, s, g) : s, w);
    }
};
struct adam {
    static const int n_state = 2, is_adam = 1;
    __device__ static float step(const scalars &c, float w, float g, float &s, float &b)
    {
        return adam_step(c, w, gradient(c, w, g), s, b);
    }
};
struct adamw {
    static const int n_state = 2, is_adam = 1;
    __device__ static float step(const scalars &c, float w, float g, float &s, float &b)
    {
        return adam_step(c, w * c.shrink, scaled(c, g), s, b);
    }
};
struct rmsprop {
    static const int n_state = 1, is_adam = 0;
    __device__ static float step(const scalars &c, float w, float g, float &s, float &)
    {
        return fmaf(c.lr, rms_direction(c, w, g, s), w);
    }
};
struct rmsprop_momentum {
    static const int n_state = 2, is_adam = 0;
    __device__ static float step(const scalars &c, float w, float g, float &s, float &b)
    {
        b = fmaf(c.momentum, b, rms_direction(c, w, g, s));
        return fmaf(c.lr, b, w);
    }
};
struct adagrad {
    static const int n_state = 1, is_adam = 0;
    __device__ static float step(const scalars &c, float w, float g, float &s, float &)
    {
        g = gradient(c, w, g);
        s = fmaf(g, g, s);
        return fmaf(c.lr, g / (sqrtf(s) + c.eps), w);
    }
};
// The sign of zero is zero; a NaN stays one.
struct lion {
    static const int n_state = 1, is_adam = 0;
    __device__ static float step(const scalars &c, float w, float g, float &s, float &)
    {
        g = scaled(c, g);
        float d = fmaf(c.beta1, s, c.rest1 * g);
        float by = d > 0 ? c.lr : d < 0 ? -c.lr : d;
        s = fmaf(c.beta2, s, c.rest2 * g);
        return w * c.shrink + by;
    }
};

#endif
