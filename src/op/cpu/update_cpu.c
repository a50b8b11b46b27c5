/*
 * update_cpu.c - updates of variables. Compiled once per instruction set; see update.c.
 *
 * All are bound by memory: one pass, sixteen elements at a time, each read and written once.
 * Products that are added are fused (v16_fma). A scale that is not finite ends the call at once.
 */
#include "op/cpu/simd.h"
#include "op/update.h"

tt_status TTI_ISA(assign)(const tt_launch *l)
{
    size_t bytes = tt_dtype_bytes(l->out[0].dtype), at = (size_t)l->begin * bytes;
    if (l->begin < l->end)
        memmove((char *)l->out[0].data + at, (const char *)l->in[1].data + at,
                (size_t)(l->end - l->begin) * bytes);
    return TT_OK;
}

// base^n by squaring: the same multiplications everywhere.
static double power(double base, int64_t n)
{
    double y = 1;
    for (; n > 0; n /= 2, base *= base)
        if (n & 1)
            y *= base;
    return y;
}

// The factor that the last input is, 1 without one; false: the step is not applied.
static bool read_scale(const tt_launch *l, bool has_scale, float *scale)
{
    *scale = has_scale ? *(const float *)l->in[l->n_in - 1].data : 1.0f;
    return *scale - *scale == 0;
}

// The step's scalars, as vectors; lr is negative, and divided by 1 - beta1^t for adam.
typedef struct scalars {
    v16 lr, grad_scale, scale, decay, momentum, beta1, beta2, rest1, rest2, fix2, eps, shrink;
    int nesterov, has_decay;
} scalars;

static scalars scalars_of(const tt_launch *l, bool is_adam, float scale)
{
    const tti_update_attr *a = l->attr;
    double lr = (double)l->step->lr * a->lr_scale, fix1 = 1, fix2 = 1;
    if (is_adam) {
        int64_t t = l->step->step + 1 - l->step->unapplied;
        fix1 = 1 / (1 - power(a->beta1, t));
        fix2 = 1 / (1 - power(a->beta2, t));
    }
    return (scalars){
        .lr = v16_set1((real)(-lr * fix1)),
        .grad_scale = v16_set1((real)l->step->grad_scale),
        .scale = v16_set1((real)scale),
        .decay = v16_set1((real)a->weight_decay),
        .momentum = v16_set1((real)a->momentum),
        .beta1 = v16_set1((real)a->beta1),
        .beta2 = v16_set1((real)a->beta2),
        .rest1 = v16_set1((real)(1 - a->beta1)),
        .rest2 = v16_set1((real)(1 - a->beta2)),
        .fix2 = v16_set1((real)fix2),
        .eps = v16_set1((real)a->eps),
        .shrink = v16_set1((real)(1 - lr * a->weight_decay)),
        .nesterov = a->nesterov != 0,
        .has_decay = a->weight_decay != 0,
    };
}

static inline v16 scaled(const scalars *c, v16 g)
{
    return v16_mul(v16_mul(g, c->grad_scale), c->scale);
}

// The gradient as the formulas take it.
static inline v16 gradient(const scalars *c, v16 w, v16 g)
{
    g = scaled(c, g);
    return c->has_decay ? v16_fma(c->decay, w, g) : g;
}

// Each rule: new w from w and g; s and b are the state, changed in place.
static inline v16 sgd(const scalars *c, v16 w, v16 g, v16 *s, v16 *b)
{
    (void)s;
    (void)b;
    return v16_fma(c->lr, gradient(c, w, g), w);
}
static inline v16 sgd_momentum(const scalars *c, v16 w, v16 g, v16 *s, v16 *b)
{
    (void)b;
    g = gradient(c, w, g);
    *s = v16_fma(c->momentum, *s, g);
    return v16_fma(c->lr, c->nesterov ? v16_fma(c->momentum, *s, g) : *s, w);
}
static inline v16 adam_step(const scalars *c, v16 w, v16 g, v16 *s, v16 *b)
{
    *s = v16_fma(c->beta1, *s, v16_mul(c->rest1, g));
    *b = v16_fma(c->beta2, *b, v16_mul(v16_mul(c->rest2, g), g));
    v16 root = v16_add(v16_sqrt(v16_mul(*b, c->fix2)), c->eps);
    return v16_fma(c->lr, v16_div(*s, root), w);
}
static inline v16 adam(const scalars *c, v16 w, v16 g, v16 *s, v16 *b)
{
    return adam_step(c, w, gradient(c, w, g), s, b);
}
static inline v16 adamw(const scalars *c, v16 w, v16 g, v16 *s, v16 *b)
{
    return adam_step(c, v16_mul(w, c->shrink), scaled(c, g), s, b);
}
static inline v16 rms_direction(const scalars *c, v16 w, v16 g, v16 *s)
{
    g = gradient(c, w, g);
    *s = v16_fma(c->beta1, *s, v16_mul(v16_mul(c->rest1, g), g));
    return v16_div(g, v16_add(v16_sqrt(*s), c->eps));
}
static inline v16 rmsprop(const scalars *c, v16 w, v16 g, v16 *s, v16 *b)
{
    (void)b;
    return v16_fma(c->lr, rms_direction(c, w, g, s), w);
}
static inline v16 rmsprop_momentum(const scalars *c, v16 w, v16 g, v16 *s, v16 *b)
{
    *b = v16_fma(c->momentum, *b, rms_direction(c, w, g, s));
    return v16_fma(c->lr, *b, w);
}
static inline v16 adagrad(const scalars *c, v16 w, v16 g, v16 *s, v16 *b)
{
    (void)b;
    g = gradient(c, w, g);
    *s = v16_fma(g, g, *s);
    return v16_fma(c->lr, v16_div(g, v16_add(v16_sqrt(*s), c->eps)), w);
}

// The sign of zero is zero; a NaN stays one.
static inline v16 lion(const scalars *c, v16 w, v16 g, v16 *s, v16 *b)
{
    (void)b;
    g = scaled(c, g);
    v16 d = v16_fma(c->beta1, *s, v16_mul(c->rest1, g));
    v16 step = v16_if(v16_lt(d, v16_zero()), v16_neg(c->lr), d);
    step = v16_if(v16_gt(d, v16_zero()), c->lr, step);
    *s = v16_fma(c->beta2, *s, v16_mul(c->rest2, g));
    return v16_add(v16_mul(w, c->shrink), step);
}

typedef v16 rule_fn(const scalars *c, v16 w, v16 g, v16 *s, v16 *b);
#define INLINE static inline __attribute__((always_inline))

INLINE v16 get(const real *p, int n)
{
    return n == 16 ? v16_load(p) : v16_load_n(p, n);
}
INLINE void put(real *p, v16 a, int n)
{
    if (n == 16)
        v16_store(p, a);
    else
        v16_store_n(p, a, n);
}

// The range of the call by a rule; the compiler makes one loop of it per rule.
INLINE tt_status each(const tt_launch *l, rule_fn *rule, int n_state, bool is_adam)
{
    float scale;
    if (!read_scale(l, ((const tti_update_attr *)l->attr)->has_scale != 0, &scale))
        return TT_OK;
    scalars c = scalars_of(l, is_adam, scale);
    const real *w = l->in[0].data, *g = l->in[1].data;
    real *out = l->out[0].data; // w's own memory
    real *s = n_state > 0 ? l->in[2].data : NULL, *b = n_state > 1 ? l->in[3].data : NULL;
    for (int64_t i = l->begin; i < l->end; i += 16) {
        int n = l->end - i < 16 ? (int)(l->end - i) : 16;
        v16 vs = n_state > 0 ? get(s + i, n) : v16_zero();
        v16 vb = n_state > 1 ? get(b + i, n) : v16_zero();
        put(out + i, rule(&c, get(w + i, n), get(g + i, n), &vs, &vb), n);
        if (n_state > 0)
            put(s + i, vs, n);
        if (n_state > 1)
            put(b + i, vb, n);
    }
    return TT_OK;
}

// Inputs but for the scale.
static int n_inputs(const tt_launch *l)
{
    return l->n_in - (((const tti_update_attr *)l->attr)->has_scale != 0);
}

tt_status TTI_ISA(update_sgd)(const tt_launch *l)
{
    return n_inputs(l) == 2 ? each(l, sgd, 0, false) : each(l, sgd_momentum, 1, false);
}
tt_status TTI_ISA(update_adam)(const tt_launch *l)
{
    return each(l, adam, 2, true);
}
tt_status TTI_ISA(update_adamw)(const tt_launch *l)
{
    return each(l, adamw, 2, true);
}
tt_status TTI_ISA(update_rmsprop)(const tt_launch *l)
{
    return n_inputs(l) == 3 ? each(l, rmsprop, 1, false) : each(l, rmsprop_momentum, 2, false);
}
tt_status TTI_ISA(update_adagrad)(const tt_launch *l)
{
    return each(l, adagrad, 1, false);
}
tt_status TTI_ISA(update_lion)(const tt_launch *l)
{
    return each(l, lion, 1, false);
}

tt_status TTI_ISA(update_ema)(const tt_launch *l)
{
    const tti_ema_attr *attr = l->attr;
    float scale;
    if (!read_scale(l, attr->has_scale != 0, &scale))
        return TT_OK;
    const real *value = l->in[1].data;
    real *a = l->out[0].data;                  // input 0's own memory
    if (l->step->step == l->step->unapplied) { // the first one that is applied
        if (l->begin < l->end)
            memcpy(a + l->begin, value + l->begin, (size_t)(l->end - l->begin) * sizeof(real));
        return TT_OK;
    }
    v16 decay = v16_set1((real)attr->decay), rest = v16_set1((real)(1 - attr->decay));
    for (int64_t i = l->begin; i < l->end; i += 16) {
        int n = l->end - i < 16 ? (int)(l->end - i) : 16;
        put(a + i, v16_fma(decay, get(a + i, n), v16_mul(rest, get(value + i, n))), n);
    }
    return TT_OK;
}
