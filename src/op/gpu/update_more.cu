/*
 * update_more.cu - further updates on a GPU; see update_more.c. The formulas are those of
 * update_more_cpu.c, one element a thread at a time; the scalars are made by one thread of a block.
 */
#include "cuda/kernel.cuh"
#include "op/update_more.h"

#define THREADS 256
#define PER_SM  4 // blocks

struct more_args {
    float *w, *s[3];
    const float *g, *scale;
    const tt_step *step;
    int64_t n;
};

struct more_scalars {
    float lr, more, grad_scale, scale, decay, beta1, beta2, rest1, rest2, fix2, eps;
    float inverse, l1, twice_l2;
    int has_decay, go;
};

// How the learning rate is corrected for averages that begin with 0.
enum correction {
    NONE,
    BY_BETA1,
    AS_NADAM
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

__device__ static double nadam_momentum(double beta, double ratio_power)
{
    return beta * (1 - 0.5 * ratio_power);
}

__device__ static double nadam_product(double beta, int64_t t)
{
    double product = 1, r = 1;
    for (int64_t i = 1; i <= t && product > 1e-20; i++) {
        r *= TTI_NADAM_RATIO;
        product *= nadam_momentum(beta, r);
    }
    return product;
}

__device__ static int64_t count_of(const tt_step *step)
{
    return step->step + 1 - step->unapplied;
}

__device__ static void scalars_of(more_scalars *c, const tti_update_more_attr &a,
                                  const tt_step *step, const float *scale, int by)
{
    int64_t t = count_of(step);
    double lr = (double)step->lr * a.lr_scale, first = lr, more = 0;
    if (by == BY_BETA1)
        first = lr / (1 - power(a.beta1, t));
    if (by == AS_NADAM) {
        double now = power(TTI_NADAM_RATIO, t), next = now * TTI_NADAM_RATIO;
        double product = nadam_product(a.beta1, t), m = nadam_momentum(a.beta1, next);
        first = lr * (1 - nadam_momentum(a.beta1, now)) / (1 - product);
        more = lr * m / (1 - product * m);
    }
    c->lr = (float)-first;
    c->more = (float)-more;
    c->grad_scale = step->grad_scale;
    c->scale = scale != NULL ? *scale : 1.0f;
    c->decay = (float)a.weight_decay;
    c->beta1 = (float)a.beta1;
    c->beta2 = (float)a.beta2;
    c->rest1 = (float)(1 - a.beta1);
    c->rest2 = (float)(1 - a.beta2);
    c->fix2 = (float)(1 / (1 - power(a.beta2, t)));
    c->eps = (float)a.eps;
    c->inverse = (float)(1 / lr);
    c->l1 = (float)a.l1;
    c->twice_l2 = (float)(2 * a.l2);
    c->has_decay = a.weight_decay != 0;
    c->go = c->scale - c->scale == 0;
}

// a > b ? a : b; a NaN stays one.
__device__ static inline float max_nan(float a, float b)
{
    return a != a ? a : b != b ? b : a > b ? a : b;
}
__device__ static inline float min_nan(float a, float b)
{
    return a != a ? a : b != b ? b : a < b ? a : b;
}
__device__ static inline void moments(const more_scalars &c, float g, float *s)
{
    s[0] = fmaf(c.beta1, s[0], c.rest1 * g);
    s[1] = fmaf(c.beta2, s[1], (c.rest2 * g) * g);
}

// ---- rules: new w from w and the gradient; s has the states, changed in place ----------------

struct adadelta {
    static const int n_state = 2, by = NONE, needs_lr = 0;
    __device__ static float step(const more_scalars &c, float w, float g, float *s)
    {
        s[0] = fmaf(c.beta1, s[0], (c.rest1 * g) * g);
        float d = sqrtf(s[1] + c.eps) / sqrtf(s[0] + c.eps) * g;
        s[1] = fmaf(c.beta1, s[1], (c.rest1 * d) * d);
        return fmaf(c.lr, d, w);
    }
};
struct adamax {
    static const int n_state = 2, by = BY_BETA1, needs_lr = 0;
    __device__ static float step(const more_scalars &c, float w, float g, float *s)
    {
        s[0] = fmaf(c.beta1, s[0], c.rest1 * g);
        s[1] = max_nan(c.beta2 * s[1], fabsf(g) + c.eps);
        return fmaf(c.lr, s[0] / s[1], w);
    }
};
struct nadam {
    static const int n_state = 2, by = AS_NADAM, needs_lr = 0;
    __device__ static float step(const more_scalars &c, float w, float g, float *s)
    {
        moments(c, g, s);
        float root = sqrtf(s[1] * c.fix2) + c.eps;
        return fmaf(c.more, s[0] / root, fmaf(c.lr, g / root, w));
    }
};
struct amsgrad {
    static const int n_state = 3, by = BY_BETA1, needs_lr = 0;
    __device__ static float step(const more_scalars &c, float w, float g, float *s)
    {
        moments(c, g, s);
        s[2] = max_nan(s[2], s[1]);
        return fmaf(c.lr, s[0] / (sqrtf(s[2] * c.fix2) + c.eps), w);
    }
};
struct ftrl {
    static const int n_state = 2, by = NONE, needs_lr = 1;
    __device__ static float step(const more_scalars &c, float w, float g, float *s)
    {
        float before = sqrtf(s[0]);
        s[0] = fmaf(g, g, s[0]);
        float root = sqrtf(s[0]), sigma = (root - before) * c.inverse;
        s[1] = fmaf(-sigma, w, s[1] + g);
        float clipped = min_nan(max_nan(s[1], -c.l1), c.l1);
        return (clipped - s[1]) / fmaf(root + c.eps, c.inverse, c.twice_l2);
    }
};

template <class R>
__global__ static void __launch_bounds__(THREADS)
    more_each(const more_args p, const tti_update_more_attr a)
{
    __shared__ more_scalars shared;
    if (threadIdx.x == 0)
        scalars_of(&shared, a, p.step, p.scale, R::by);
    __syncthreads();
    const more_scalars c = shared;
    if (!c.go || (R::needs_lr && (double)p.step->lr * a.lr_scale == 0))
        return;
    int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x, by = (int64_t)gridDim.x * THREADS;
    for (int64_t i = at; i < p.n; i += by) {
        float s[3] = {0, 0, 0}, w = p.w[i], g = (p.g[i] * c.grad_scale) * c.scale;
        for (int k = 0; k < R::n_state; k++)
            s[k] = p.s[k][i];
        p.w[i] = R::step(c, w, c.has_decay ? fmaf(c.decay, w, g) : g, s);
        for (int k = 0; k < R::n_state; k++)
            p.s[k][i] = s[k];
    }
}

__global__ static void __launch_bounds__(THREADS)
    moment_each(const more_args p, float beta, float rest, bool is_square)
{
    float scale = p.scale != NULL ? *p.scale : 1.0f, before = p.step->grad_scale;
    if (scale - scale != 0)
        return;
    int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x, by = (int64_t)gridDim.x * THREADS;
    for (int64_t i = at; i < p.n; i += by) {
        float x = (p.g[i] * before) * scale, y = rest * x;
        p.w[i] = fmaf(beta, p.w[i], is_square ? y * x : y);
    }
}

__global__ static void __launch_bounds__(THREADS)
    lamb_each(float *r, const float *m, const float *v, const float *w, int64_t n,
              const tti_lamb_attr a, const tt_step *step)
{
    __shared__ float fix[2];
    if (threadIdx.x < 2)
        fix[threadIdx.x] =
            (float)(1 / (1 - power(threadIdx.x == 0 ? a.beta1 : a.beta2, count_of(step))));
    __syncthreads();
    int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x, by = (int64_t)gridDim.x * THREADS;
    for (int64_t i = at; i < n; i += by) {
        float root = sqrtf(v[i] * fix[1]) + (float)a.eps;
        r[i] = fmaf((float)a.weight_decay, w[i], (m[i] * fix[0]) / root);
    }
}

// ---- calls -----------------------------------------------------------------------------------

// Blocks for n elements: no more than fit on the card, as each makes the scalars.
static unsigned blocks_of(const tt_launch *l, int64_t n)
{
    int64_t most = (int64_t)tti_device_of(l)->sms * PER_SM, want = (n + THREADS - 1) / THREADS;
    return (unsigned)(want < most ? want : most);
}

static more_args args_of(const tt_launch *l, int n_state, bool has_scale)
{
    more_args p = {};
    p.w = (float *)l->out[0].data; // input 0's own memory
    p.g = (const float *)l->in[1].data;
    for (int k = 0; k < n_state; k++)
        p.s[k] = (float *)l->in[2 + k].data;
    p.scale = has_scale ? (const float *)l->in[l->n_in - 1].data : NULL;
    p.step = l->step;
    p.n = l->out[0].count;
    return p;
}

template <class R> static tt_status update(const tt_launch *l)
{
    const tti_update_more_attr *a = (const tti_update_more_attr *)l->attr;
    more_args p = args_of(l, R::n_state, a->has_scale != 0);
    if (p.n > 0)
        TTI_LAUNCH(l, blocks_of(l, p.n), THREADS, 0, (more_each<R>), p, *a);
    return tti_cuda_launched(l);
}

static tt_status update_moment(const tt_launch *l)
{
    const tti_moment_attr *a = (const tti_moment_attr *)l->attr;
    more_args p = args_of(l, 0, a->has_scale != 0);
    if (p.n > 0)
        TTI_LAUNCH(l, blocks_of(l, p.n), THREADS, 0, moment_each, p, (float)a->beta,
                   (float)(1 - a->beta), a->is_square != 0);
    return tti_cuda_launched(l);
}

static tt_status lamb_direction(const tt_launch *l)
{
    int64_t n = l->out[0].count;
    if (n > 0)
        TTI_LAUNCH(l, blocks_of(l, n), THREADS, 0, lamb_each, (float *)l->out[0].data,
                   (const float *)l->in[0].data, (const float *)l->in[1].data,
                   (const float *)l->in[2].data, n, *(const tti_lamb_attr *)l->attr, l->step);
    return tti_cuda_launched(l);
}

// Nothing is decided before the call.
static tt_status prepare(tt_prep *p)
{
    p->n_phases = 1;
    p->units[0] = p->in[0].count;
    return TT_OK;
}

extern "C" const tti_cuda_row tti_cuda_update_more[] = {
    TTI_ROW("update_adadelta", prepare, update<adadelta>),
    TTI_ROW("update_adamax", prepare, update<adamax>),
    TTI_ROW("update_nadam", prepare, update<nadam>),
    TTI_ROW("update_amsgrad", prepare, update<amsgrad>),
    TTI_ROW("update_ftrl", prepare, update<ftrl>),
    TTI_ROW("update_moment", prepare, update_moment),
    TTI_ROW("lamb_direction", prepare, lamb_direction),
    TTI_ROWS_END,
};
