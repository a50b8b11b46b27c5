/*
 * update_more.c - further optimizers' updates, as those of update.c. Kernels: update_more_cpu.c.
 *
 * With the names of update.c:
 *   adadelta  s = beta1 s + (1 - beta1) g^2, d = sqrt(b + eps) / sqrt(s + eps) g, w -= lr d,
 *             b = beta1 b + (1 - beta1) d^2
 *   adamax    m = beta1 m + (1 - beta1) g, u = max(beta2 u, |g| + eps),
 *             w -= lr / (1 - beta1^t) m / u
 *   nadam     m and v as adam, r = sqrt(v / (1 - beta2^t)) + eps, c_i = beta1 (1 - 0.96^(0.004 i) /
 *             2), p = c_1 ... c_t, w -= lr (1 - c_t) / (1 - p) g / r, w -= lr c_(t+1) /
 *             (1 - p c_(t+1)) m / r
 *   amsgrad   adam, with the largest v so far in place of v
 *   ftrl      n' = n + g^2, z += g - (sqrt(n') - sqrt(n)) / lr w, w = (clip(z, -l1, l1) - z) /
 *             ((eps + sqrt(n')) / lr + 2 l2); with lr 0 nothing changes
 *   lamb      m = beta1 m + (1 - beta1) g and v alike of g^2 (update_moment), then
 *             r = m' / (sqrt(v') + eps) + weight_decay w with m' and v' bias-corrected
 *             (lamb_direction); w -= lr |w| / |r| r by update_sgd
 */
#include "op/update_more.h"
#include "graph/graph.h"
#include "op/op.h"
#include "op/update.h"

#define ROW(name_, value, help_)                                                              \
    {                                                                                         \
#name_, TT_OPT_FLOAT, value, help_, offsetof(tti_update_more_attr, name_), 0, 0, NULL \
    }
static const tt_option more_attrs[] = {
    ROW(lr_scale, "1", "factor on the run's learning rate"),
    ROW(weight_decay, "0", "weight decay, added to the gradient"),
    ROW(beta1, "0", "adadelta: decay rate of both averages; the others: decay rate of m"),
    ROW(beta2, "0", "decay rate of v, or of the largest gradient"),
    ROW(eps, "0", "small constant added to the denominator"),
    ROW(l1, "0", "ftrl: strength of its penalty by magnitude"),
    ROW(l2, "0", "ftrl: strength of its penalty by square"),
    {"has_scale", TT_OPT_INT, "0", "the last input is a factor on the gradient",
     offsetof(tti_update_more_attr, has_scale), 0, 1, NULL},
    TT_OPTION_END,
};
static const tt_option moment_attrs[] = {
    {"beta", TT_OPT_FLOAT, "0.9", "decay rate of the average", offsetof(tti_moment_attr, beta), 0,
     0, NULL},
    {"is_square", TT_OPT_INT, "0", "the average is of squares",
     offsetof(tti_moment_attr, is_square), 0, 1, NULL},
    {"has_scale", TT_OPT_INT, "0", "the last input is a factor on the gradient",
     offsetof(tti_moment_attr, has_scale), 0, 1, NULL},
    TT_OPTION_END,
};
static const tt_option lamb_attrs[] = {
    {"beta1", TT_OPT_FLOAT, "0.9", "decay rate of m", offsetof(tti_lamb_attr, beta1), 0, 0, NULL},
    {"beta2", TT_OPT_FLOAT, "0.999", "decay rate of v", offsetof(tti_lamb_attr, beta2), 0, 0, NULL},
    {"eps", TT_OPT_FLOAT, "1e-6", "small constant added to the denominator",
     offsetof(tti_lamb_attr, eps), 0, 0, NULL},
    {"weight_decay", TT_OPT_FLOAT, "0", "weight decay", offsetof(tti_lamb_attr, weight_decay), 0, 0,
     NULL},
    TT_OPTION_END,
};

#define OPTIMIZER(name_, n_, writes_)                                                              \
    TTI_UPDATE_OP(name_, "one step of " #name_ " on a variable", tti_update_more_attr, more_attrs, \
                  n_, n_, writes_)
OPTIMIZER(adadelta, 4, 0xd);
OPTIMIZER(adamax, 4, 0xd);
OPTIMIZER(nadam, 4, 0xd);
OPTIMIZER(amsgrad, 5, 0x1d);
OPTIMIZER(ftrl, 4, 0xd);
TTI_UPDATE_OP(moment,
              "updates a moving average of a gradient or of its squares, which begins with 0",
              tti_moment_attr, moment_attrs, 2, 2, 0x1);

static tt_status lamb_infer(tt_infer *q)
{
    char a[TT_SHAPE_TEXT], b[TT_SHAPE_TEXT];
    const tt_tensor *m = q->in[0];
    for (int i = 1; i < 3; i++)
        if (q->in[i]->dtype != m->dtype || !tti_shape_equal(&q->in[i]->shape, &m->shape))
            return TT_FAIL(q->ctx, TT_ESHAPE, "lamb_direction: '%s' is %s %s but '%s' is %s %s",
                           m->node->name, tt_dtype_name(m->dtype), tt_shape_text(&m->shape, a),
                           q->in[i]->node->name, tt_dtype_name(q->in[i]->dtype),
                           tt_shape_text(&q->in[i]->shape, b));
    q->shape[0] = m->shape;
    q->dtype[0] = m->dtype;
    return TT_OK;
}

const tt_op tti_op_lamb_direction = {
    .name = "lamb_direction",
    .help = "the direction of lamb, from m, v and the variable",
    .inputs = 3,
    .flags = TT_OP_NO_GRAD | TT_OP_FLAT,
    .types = 1u << TT_F32 | 1u << TT_F64,
    .attrs = lamb_attrs,
    .attr_size = sizeof(tti_lamb_attr),
    .infer = lamb_infer,
    .split = tti_split_whole,
    .kernel = {[TT_CPU] = TTI_CPU(lamb_direction, tti_update_prep)},
};

// ---- builders --------------------------------------------------------------------------------

static double given(const tt_update_opts *o, double value, double otherwise)
{
    return o->exact ? value : tti_or_default(value, otherwise);
}

static tt_status check_opts(tt_ctx *ctx, const char *op, const tti_update_more_attr *a)
{
    if (!(a->beta1 >= 0 && a->beta1 < 1 && a->beta2 >= 0 && a->beta2 < 1))
        return TT_FAIL(ctx, TT_EINVAL,
                       "%s: beta1 is %g and beta2 %g; they must be at least 0 and below 1", op,
                       a->beta1, a->beta2);
    if (!(a->eps >= 0 && a->weight_decay >= 0 && a->l1 >= 0 && a->l2 >= 0))
        return TT_FAIL(ctx, TT_EINVAL,
                       "%s: eps %g, weight_decay %g, l1 %g and l2 %g must not be below 0", op,
                       a->eps, a->weight_decay, a->l1, a->l2);
    return TT_OK;
}

typedef struct recipe {
    const tt_op *op;
    double beta1, beta2, eps;
    const char *state[3];
    double first; // value of the first state at the beginning
} recipe;

static tt_tensor *update(tt_graph *g, const recipe *r, tt_tensor *var, tt_tensor *grad,
                         const tt_update_opts *o)
{
    tt_ctx *ctx = tt_graph_get_ctx(g);
    const char *op = r->op->name;
    if (var == NULL || grad == NULL) {
        (void)TT_FAIL(ctx, TT_EINVAL, "%s: %s is NULL", op, var == NULL ? "var" : "grad");
        return NULL;
    }
    tti_update_more_attr a = {.lr_scale = given(o, o->lr_scale, 1),
                              .weight_decay = o->weight_decay,
                              .beta1 = given(o, o->beta1, r->beta1),
                              .beta2 = given(o, o->beta2, r->beta2),
                              .eps = given(o, o->eps, r->eps),
                              .l1 = o->l1,
                              .l2 = o->l2,
                              .has_scale = o->scale != NULL};
    if (check_opts(ctx, op, &a) != TT_OK)
        return NULL;
    if (!tti_is_variable(var)) {
        (void)TT_FAIL(ctx, TT_EINVAL, "%s: '%s' is not a variable", op, tt_tensor_name(var));
        return NULL;
    }
    tt_tensor *in[6] = {var, grad};
    int n = 2;
    for (int i = 0; i < 3 && r->state[i] != NULL; i++)
        in[n++] = tti_update_state(g, var, r->state[i], i == 0 ? r->first : 0);
    if (o->scale != NULL)
        in[n++] = o->scale;
    return tt_node_out(g, r->op, n, in, &a);
}

#define BUILDER(name_, ...)                                                           \
    tt_tensor *tt_update_##name_##_with(tt_graph *g, tt_tensor *var, tt_tensor *grad, \
                                        const tt_update_opts *opts)                   \
    {                                                                                 \
        if (!tti_has_graph(g, var, "update_" #name_))                                 \
            return NULL;                                                              \
        TTI_OPTS_OWN(tt_graph_get_ctx(g), "update_" #name_, tt_update_opts, opts);    \
        if (opts == NULL)                                                             \
            return NULL;                                                              \
        recipe r = {&tti_op_update_##name_, __VA_ARGS__};                             \
        return update(g, &r, var, grad, opts);                                        \
    }
BUILDER(adadelta, 0.9, 0, 1e-6, {"adadelta_square", "adadelta_step"}, 0)
BUILDER(adamax, 0.9, 0.999, 1e-8, {"adamax_m", "adamax_u"}, 0)
BUILDER(nadam, 0.9, 0.999, 1e-8, {"nadam_m", "nadam_v"}, 0)
BUILDER(amsgrad, 0.9, 0.999, 1e-8, {"amsgrad_m", "amsgrad_v", "amsgrad_max"}, 0)
BUILDER(ftrl, 0, 0, 0, {"ftrl_n", "ftrl_z"}, given(opts, opts->initial, 0.1))

static tt_tensor *moment(tt_graph *g, tt_tensor *var, tt_tensor *grad, const tt_update_opts *o,
                         bool is_square)
{
    tti_moment_attr a = {is_square ? given(o, o->beta2, 0.999) : given(o, o->beta1, 0.9), is_square,
                         o->scale != NULL};
    tt_tensor *state = tti_update_state(g, var, is_square ? "lamb_v" : "lamb_m", 0);
    return tt_node_out(g, &tti_op_update_moment, o->scale != NULL ? 3 : 2,
                       (tt_tensor *[]){state, grad, o->scale}, &a);
}

tt_tensor *tti_lamb_direction(tt_graph *g, tt_tensor *var, tt_tensor *grad, const tt_update_opts *o)
{
    if (var == NULL || grad == NULL)
        return NULL;
    tt_tensor *m = moment(g, var, grad, o, false), *v = moment(g, var, grad, o, true);
    tti_lamb_attr a = {given(o, o->beta1, 0.9), given(o, o->beta2, 0.999), given(o, o->eps, 1e-6),
                       o->weight_decay};
    return tt_node_out(g, &tti_op_lamb_direction, 3, (tt_tensor *[]){m, v, var}, &a);
}
