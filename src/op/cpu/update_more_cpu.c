/*
 * update_more_cpu.c - further updates. Compiled once per instruction set; see update_more.c.
 *
 * As update_cpu.c: one pass, sixteen elements at a time, products that are added are fused.
 */
#include "op/cpu/simd.h"
#include "op/update_more.h"

// base^n by squaring: the same multiplications everywhere.
static double power(double base, int64_t n)
{
    double y = 1;
    for (; n > 0; n /= 2, base *= base)
        if (n & 1)
            y *= base;
    return y;
}

// The momentum of nadam's update i.
static double nadam_momentum(double beta, double ratio_power)
{
    return beta * (1 - 0.5 * ratio_power);
}

// The product of the momenta up to t; what is below 1e-20 is nothing beside 1.
static double nadam_product(double beta, int64_t t)
{
    double product = 1, r = 1;
    for (int64_t i = 1; i <= t && product > 1e-20; i++) {
        r *= TTI_NADAM_RATIO;
        product *= nadam_momentum(beta, r);
    }
    return product;
}

static int64_t count_of(const tt_launch *l)
{
    return l->step->step + 1 - l->step->unapplied;
}

static float scale_of(const tt_launch *l, bool has_scale)
{
    return has_scale ? *(const float *)l->in[l->n_in - 1].data : 1.0f;
}

// lr is negative; of adamax and amsgrad divided by 1 - beta1^t. more: nadam's factor of m.
typedef struct scalars {
    v16 lr, more, grad_scale, scale, decay, beta1, beta2, rest1, rest2, fix2, eps;
    v16 inverse, l1, twice_l2; // ftrl; inverse: 1 / lr
    int has_decay;
} scalars;

// How the learning rate is corrected for averages that begin with 0.
enum correction {
    NONE,
    BY_BETA1,
    AS_NADAM
};

static scalars scalars_of(const tt_launch *l, float scale, enum correction by)
{
    const tti_update_more_attr *a = l->attr;
    int64_t t = count_of(l);
    double lr = (double)l->step->lr * a->lr_scale, first = lr, more = 0;
    if (by == BY_BETA1)
        first = lr / (1 - power(a->beta1, t));
    if (by == AS_NADAM) {
        double now = power(TTI_NADAM_RATIO, t), next = now * TTI_NADAM_RATIO;
        double product = nadam_product(a->beta1, t), c = nadam_momentum(a->beta1, next);
        first = lr * (1 - nadam_momentum(a->beta1, now)) / (1 - product);
        more = lr * c / (1 - product * c);
    }
    return (scalars){
        .lr = v16_set1((real)-first),
        .more = v16_set1((real)-more),
        .grad_scale = v16_set1((real)l->step->grad_scale),
        .scale = v16_set1((real)scale),
        .decay = v16_set1((real)a->weight_decay),
        .beta1 = v16_set1((real)a->beta1),
        .beta2 = v16_set1((real)a->beta2),
        .rest1 = v16_set1((real)(1 - a->beta1)),
        .rest2 = v16_set1((real)(1 - a->beta2)),
        .fix2 = v16_set1((real)(1 / (1 - power(a->beta2, t)))),
        .eps = v16_set1((real)a->eps),
        .inverse = v16_set1((real)(1 / lr)),
        .l1 = v16_set1((real)a->l1),
        .twice_l2 = v16_set1((real)(2 * a->l2)),
        .has_decay = a->weight_decay != 0,
    };
}

static inline v16 gradient(const scalars *c, v16 w, v16 g)
{
    g = v16_mul(v16_mul(g, c->grad_scale), c->scale);
    return c->has_decay ? v16_fma(c->decay, w, g) : g;
}

// Each rule: new w from w and the gradient; s has the states, changed in place.
static inline v16 adadelta(const scalars *c, v16 w, v16 g, v16 s[3])
{
    s[0] = v16_fma(c->beta1, s[0], v16_mul(v16_mul(c->rest1, g), g));
    v16 d = v16_div(v16_sqrt(v16_add(s[1], c->eps)), v16_sqrt(v16_add(s[0], c->eps)));
    d = v16_mul(d, g);
    s[1] = v16_fma(c->beta1, s[1], v16_mul(v16_mul(c->rest1, d), d));
    return v16_fma(c->lr, d, w);
}
static inline v16 adamax(const scalars *c, v16 w, v16 g, v16 s[3])
{
    s[0] = v16_fma(c->beta1, s[0], v16_mul(c->rest1, g));
    s[1] = v16_max_nan(v16_mul(c->beta2, s[1]), v16_add(v16_abs(g), c->eps));
    return v16_fma(c->lr, v16_div(s[0], s[1]), w);
}
static inline void moments(const scalars *c, v16 g, v16 s[3])
{
    s[0] = v16_fma(c->beta1, s[0], v16_mul(c->rest1, g));
    s[1] = v16_fma(c->beta2, s[1], v16_mul(v16_mul(c->rest2, g), g));
}
static inline v16 nadam(const scalars *c, v16 w, v16 g, v16 s[3])
{
    moments(c, g, s);
    v16 root = v16_add(v16_sqrt(v16_mul(s[1], c->fix2)), c->eps);
    return v16_fma(c->more, v16_div(s[0], root), v16_fma(c->lr, v16_div(g, root), w));
}
static inline v16 amsgrad(const scalars *c, v16 w, v16 g, v16 s[3])
{
    moments(c, g, s);
    s[2] = v16_max_nan(s[2], s[1]);
    v16 root = v16_add(v16_sqrt(v16_mul(s[2], c->fix2)), c->eps);
    return v16_fma(c->lr, v16_div(s[0], root), w);
}
static inline v16 ftrl(const scalars *c, v16 w, v16 g, v16 s[3])
{
    v16 before = v16_sqrt(s[0]);
    s[0] = v16_fma(g, g, s[0]);
    v16 root = v16_sqrt(s[0]);
    v16 sigma = v16_mul(v16_sub(root, before), c->inverse);
    s[1] = v16_fma(v16_neg(sigma), w, v16_add(s[1], g));
    v16 clipped = v16_min_nan(v16_max_nan(s[1], v16_neg(c->l1)), c->l1);
    v16 under = v16_fma(v16_add(root, c->eps), c->inverse, c->twice_l2);
    return v16_div(v16_sub(clipped, s[1]), under);
}

typedef v16 rule_fn(const scalars *c, v16 w, v16 g, v16 s[3]);
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

INLINE tt_status each(const tt_launch *l, rule_fn *rule, int n_state, enum correction by)
{
    float scale = scale_of(l, ((const tti_update_more_attr *)l->attr)->has_scale != 0);
    if (!(scale - scale == 0))
        return TT_OK;
    scalars c = scalars_of(l, scale, by);
    const real *w = l->in[0].data, *g = l->in[1].data;
    real *out = l->out[0].data; // w's own memory
    for (int64_t i = l->begin; i < l->end; i += 16) {
        int n = l->end - i < 16 ? (int)(l->end - i) : 16;
        v16 s[3] = {v16_zero(), v16_zero(), v16_zero()}, x = get(w + i, n);
        for (int k = 0; k < n_state; k++)
            s[k] = get((const real *)l->in[2 + k].data + i, n);
        put(out + i, rule(&c, x, gradient(&c, x, get(g + i, n)), s), n);
        for (int k = 0; k < n_state; k++)
            put((real *)l->in[2 + k].data + i, s[k], n);
    }
    return TT_OK;
}

tt_status TTI_ISA(update_adadelta)(const tt_launch *l)
{
    return each(l, adadelta, 2, NONE);
}
tt_status TTI_ISA(update_adamax)(const tt_launch *l)
{
    return each(l, adamax, 2, BY_BETA1);
}
tt_status TTI_ISA(update_nadam)(const tt_launch *l)
{
    return each(l, nadam, 2, AS_NADAM);
}
tt_status TTI_ISA(update_amsgrad)(const tt_launch *l)
{
    return each(l, amsgrad, 3, BY_BETA1);
}
tt_status TTI_ISA(update_ftrl)(const tt_launch *l)
{
    const tti_update_more_attr *a = l->attr;
    return (double)l->step->lr * a->lr_scale == 0 ? TT_OK : each(l, ftrl, 2, NONE);
}

// ---- lamb ------------------------------------------------------------------------------------

tt_status TTI_ISA(update_moment)(const tt_launch *l)
{
    const tti_moment_attr *a = l->attr;
    float scale = scale_of(l, a->has_scale != 0);
    if (!(scale - scale == 0))
        return TT_OK;
    v16 beta = v16_set1((real)a->beta), rest = v16_set1((real)(1 - a->beta));
    v16 by = v16_set1((real)scale), before = v16_set1((real)l->step->grad_scale);
    const real *g = l->in[1].data;
    real *m = l->out[0].data; // input 0's own memory
    for (int64_t i = l->begin; i < l->end; i += 16) {
        int n = l->end - i < 16 ? (int)(l->end - i) : 16;
        v16 x = v16_mul(v16_mul(get(g + i, n), before), by), y = v16_mul(rest, x);
        put(m + i, v16_fma(beta, get(m + i, n), a->is_square != 0 ? v16_mul(y, x) : y), n);
    }
    return TT_OK;
}

tt_status TTI_ISA(lamb_direction)(const tt_launch *l)
{
    const tti_lamb_attr *a = l->attr;
    int64_t t = count_of(l);
    v16 fix1 = v16_set1((real)(1 / (1 - power(a->beta1, t))));
    v16 fix2 = v16_set1((real)(1 / (1 - power(a->beta2, t))));
    v16 eps = v16_set1((real)a->eps), decay = v16_set1((real)a->weight_decay);
    const real *m = l->in[0].data, *v = l->in[1].data, *w = l->in[2].data;
    real *r = l->out[0].data;
    for (int64_t i = l->begin; i < l->end; i += 16) {
        int n = l->end - i < 16 ? (int)(l->end - i) : 16;
        v16 root = v16_add(v16_sqrt(v16_mul(get(v + i, n), fix2)), eps);
        v16 d = v16_div(v16_mul(get(m + i, n), fix1), root);
        put(r + i, v16_fma(decay, get(w + i, n), d), n);
    }
    return TT_OK;
}
