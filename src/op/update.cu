/*
 * update.cu - updates of variables on a GPU; see update.c. The formulas are those of update_cpu.c.
 *
 * Bound by memory: one pass, four elements a thread at a time, the next four being read meanwhile.
 * The step's scalars are computed in f64 by two threads of each block while the others wait for
 * their first elements; so there are no more blocks than fit on the card.
 */
#include "cuda/kernel.cuh"
#include "op/update.h"

#define THREADS 256
#define PER_SM  4 // blocks

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
        fix1 = 1 / (1 - power(a.beta1, step->step + 1));
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

// ---- kernels ---------------------------------------------------------------------------------

struct update_args {
    float *w, *s, *b;
    const float *g, *scale;
    const tt_step *step;
    int64_t n;
    int64_t packs; // of four, where all addresses are aligned; else 0
};

typedef tti_pack<float> pack;

// Elements that are no part of a pack: all, or at most three.
template <class R> __device__ static void update_rest(const update_args &p, const scalars &c)
{
    int64_t i = p.packs * 4 + (int64_t)blockIdx.x * THREADS + threadIdx.x;
    for (; i < p.n; i += (int64_t)gridDim.x * THREADS) {
        float s = R::n_state > 0 ? p.s[i] : 0, b = R::n_state > 1 ? p.b[i] : 0;
        p.w[i] = R::step(c, p.w[i], p.g[i], s, b);
        if (R::n_state > 0)
            p.s[i] = s;
        if (R::n_state > 1)
            p.b[i] = b;
    }
}

// Four elements of the variable, the gradient and the state.
template <class R> struct four {
    pack w, g, s, b;

    __device__ void load(const update_args &p, int64_t i)
    {
        w = ((const pack *)p.w)[i];
        g = ((const pack *)p.g)[i];
        if (R::n_state > 0)
            s = ((const pack *)p.s)[i];
        if (R::n_state > 1)
            b = ((const pack *)p.b)[i];
    }
    __device__ void step(const update_args &p, const scalars &c, int64_t i)
    {
        for (int k = 0; k < 4; k++)
            w.v[k] = R::step(c, w.v[k], g.v[k], s.v[k], b.v[k]);
        ((pack *)p.w)[i] = w;
        if (R::n_state > 0)
            ((pack *)p.s)[i] = s;
        if (R::n_state > 1)
            ((pack *)p.b)[i] = b;
    }
};

template <class R>
__global__ static void __launch_bounds__(THREADS, PER_SM)
    update_each(const update_args p, const tti_update_attr a)
{
    __shared__ scalars shared;
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x, by = (int64_t)gridDim.x * THREADS;
    four<R> now = {}, next = {};
    if (i < p.packs) // on their way while the scalars are made
        now.load(p, i);
    if (threadIdx.x == 0)
        scalars_of(&shared, a, p.step, p.scale, R::is_adam != 0);
    if (threadIdx.x == 32)
        shared.fix2 = R::is_adam != 0 ? (float)(1 / (1 - power(a.beta2, p.step->step + 1))) : 1.0f;
    __syncthreads();
    const scalars c = shared;
    if (!c.go)
        return;
    for (; i < p.packs; i += by) {
        if (i + by < p.packs)
            next.load(p, i + by);
        now.step(p, c, i);
        now = next;
    }
    update_rest<R>(p, c);
}

// a = decay a + (1 - decay) value; at step 0 a = value.
__global__ static void __launch_bounds__(THREADS)
    ema_each(const update_args p, float decay, float rest)
{
    float go = scale_of(p.scale);
    if (go - go != 0)
        return;
    bool first = p.step->step == 0;
    int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x, by = (int64_t)gridDim.x * THREADS;
    for (int64_t i = at; i < p.packs; i += by) {
        pack a = ((const pack *)p.w)[i], x = ((const pack *)p.g)[i];
        for (int k = 0; k < 4; k++)
            a.v[k] = first ? x.v[k] : fmaf(decay, a.v[k], rest * x.v[k]);
        ((pack *)p.w)[i] = a;
    }
    for (int64_t i = p.packs * 4 + at; i < p.n; i += by)
        p.w[i] = first ? p.g[i] : fmaf(decay, p.w[i], rest * p.g[i]);
}

// ---- calls -----------------------------------------------------------------------------------

static update_args args_of(const tt_launch *l, int n_state, bool has_scale)
{
    update_args p = {};
    p.w = (float *)l->out[0].data; // input 0's own memory
    p.g = (const float *)l->in[1].data;
    p.s = n_state > 0 ? (float *)l->in[2].data : NULL;
    p.b = n_state > 1 ? (float *)l->in[3].data : NULL;
    p.scale = has_scale ? (const float *)l->in[l->n_in - 1].data : NULL;
    p.step = l->step;
    p.n = l->out[0].count;
    if (tti_is_aligned(p.w) && tti_is_aligned(p.g) && tti_is_aligned(p.s) && tti_is_aligned(p.b))
        p.packs = p.n / 4;
    return p;
}

// As many blocks as fit at once, at most; every thread has as many packs (or elements) as any
// other, but for the last.
static unsigned update_blocks(const tt_launch *l, const update_args *p)
{
    int64_t n = p->packs > 0 ? p->packs : p->n;
    int64_t most = (int64_t)tti_device_of(l)->sms * PER_SM * THREADS, each = (n + most - 1) / most;
    return (unsigned)((n + each * THREADS - 1) / (each * THREADS));
}

template <class R> static tt_status update(const tt_launch *l)
{
    const tti_update_attr *a = (const tti_update_attr *)l->attr;
    update_args p = args_of(l, R::n_state, a->has_scale != 0);
    if (p.n == 0)
        return TT_OK;
    TTI_LAUNCH(l, update_blocks(l, &p), THREADS, 0, (update_each<R>), p, *a);
    return tti_cuda_launched(l);
}

// Inputs but for the scale.
static int n_inputs(const tt_launch *l)
{
    return l->n_in - (((const tti_update_attr *)l->attr)->has_scale != 0);
}

static tt_status update_sgd(const tt_launch *l)
{
    return n_inputs(l) == 2 ? update<sgd>(l) : update<sgd_momentum>(l);
}

static tt_status update_rmsprop(const tt_launch *l)
{
    return n_inputs(l) == 3 ? update<rmsprop>(l) : update<rmsprop_momentum>(l);
}

static tt_status update_ema(const tt_launch *l)
{
    const tti_ema_attr *a = (const tti_ema_attr *)l->attr;
    update_args p = args_of(l, 0, a->has_scale != 0);
    if (p.n == 0)
        return TT_OK;
    TTI_LAUNCH(l, update_blocks(l, &p), THREADS, 0, ema_each, p, (float)a->decay,
               (float)(1 - a->decay));
    return tti_cuda_launched(l);
}

static size_t bytes_of(tt_dtype t)
{
    return t == TT_F64 || t == TT_I64    ? 8
           : t == TT_F32 || t == TT_I32  ? 4
           : t == TT_BF16 || t == TT_F16 ? 2
                                         : 1;
}

static tt_status assign(const tt_launch *l)
{
    const tt_arg *y = &l->out[0];
    size_t bytes = (size_t)y->count * bytes_of(y->dtype);
    if (bytes > 0 && y->data != l->in[1].data)
        TTI_CUDA(tti_device_of(l), l->node,
                 cudaMemcpyAsync(y->data, l->in[1].data, bytes, cudaMemcpyDeviceToDevice,
                                 (cudaStream_t)l->stream));
    return TT_OK;
}

// Nothing is decided before the call.
static tt_status prepare(tt_prep *p)
{
    p->n_phases = 1;
    p->units[0] = p->in[0].count;
    return TT_OK;
}

extern "C" const tti_cuda_row tti_cuda_update[] = {
    TTI_ROW_TYPES("assign", prepare, assign, TT_TYPES_ALL),
    TTI_ROW("update_sgd", prepare, update_sgd),
    TTI_ROW("update_adam", prepare, update<adam>),
    TTI_ROW("update_adamw", prepare, update<adamw>),
    TTI_ROW("update_rmsprop", prepare, update_rmsprop),
    TTI_ROW("update_adagrad", prepare, update<adagrad>),
    TTI_ROW("update_lion", prepare, update<lion>),
    TTI_ROW("update_ema", prepare, update_ema),
    TTI_ROWS_END,
};
