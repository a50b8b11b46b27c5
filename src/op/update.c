/*
 * update.c - ops that write variables: assign, one fused update per optimizer, and the moving
 * average. Kernels: update_cpu.c. The variable (input 0) and its state (inputs 2 and 3) are written
 * in place.
 *
 * With w the variable, lr = step lr * lr_scale, t the number of updates applied, this one included,
 * and g = gradient * grad_scale * scale, to which all but adamw and lion add weight_decay * w; as
 * PyTorch has them:
 *   sgd      w -= lr g; with momentum b = momentum b + g and w -= lr b, nesterov: w -= lr (g +
 *            momentum b)
 *   adam     m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2,
 *            w -= lr / (1 - beta1^t) m / (sqrt(v / (1 - beta2^t)) + eps)
 *   adamw    w *= 1 - lr weight_decay, then as adam
 *   rmsprop  s = beta1 s + (1 - beta1) g^2, d = g / (sqrt(s) + eps), w -= lr d; with momentum
 *            b = momentum b + d and w -= lr b
 *   adagrad  s += g^2, w -= lr g / (sqrt(s) + eps)
 *   lion     w *= 1 - lr weight_decay, w -= lr sign(beta1 m + (1 - beta1) g), then
 *            m = beta2 m + (1 - beta2) g
 *   ema      a = decay a + (1 - decay) value; at the first update that is applied a = value
 * scale is an optional scalar, the last input; where it is not finite, nothing is changed. Scalars
 * are computed in f64 and rounded once. State variables are "<variable>/adam_m" and the like,
 * whatever scope is open.
 */
#include "op/update.h"
#include "graph/graph.h"
#include "op/op.h"
#include <string.h>

static tt_status check_scale(tt_infer *q, const tt_tensor *s)
{
    char text[TT_SHAPE_TEXT];
    if (s->dtype != TT_F32 || s->shape.rank != 0)
        return TT_FAIL(q->ctx, TT_ESHAPE, "%s: scale '%s' is %s %s, not an f32 scalar", q->name,
                       s->node->name, tt_dtype_name(s->dtype), tt_shape_text(&s->shape, text));
    if (tti_is_variable(s)) // it would count as state
        return TT_FAIL(q->ctx, TT_EINVAL, "%s: scale '%s' is a variable; pass tt_identity() of it",
                       q->name, s->node->name);
    return TT_OK;
}

// From input 0 all but input 1 are variables, of one type and shape; with has_scale it comes last.
static tt_status update_shapes(tt_infer *q, bool has_scale)
{
    const tt_tensor *var = q->in[0];
    char a[TT_SHAPE_TEXT], b[TT_SHAPE_TEXT];
    int n = q->n_in - (has_scale ? 1 : 0);
    for (int i = 0; i < n; i++) {
        const tt_tensor *x = q->in[i];
        if (i != 1 && !tti_is_variable(x))
            return TT_FAIL(q->ctx, TT_EINVAL, "%s: '%s' is not a variable", q->name, x->node->name);
        if (x->dtype != var->dtype)
            return TT_FAIL(q->ctx, TT_EDTYPE, "%s: variable '%s' is %s but '%s' is %s", q->name,
                           var->node->name, tt_dtype_name(var->dtype), x->node->name,
                           tt_dtype_name(x->dtype));
        if (!tti_shape_equal(&x->shape, &var->shape))
            return TT_FAIL(q->ctx, TT_ESHAPE, "%s: variable '%s' is %s but '%s' is %s", q->name,
                           var->node->name, tt_shape_text(&var->shape, a), x->node->name,
                           tt_shape_text(&x->shape, b));
    }
    q->shape[0] = var->shape;
    q->dtype[0] = var->dtype;
    return has_scale ? check_scale(q, q->in[n]) : TT_OK;
}

static tt_status assign_infer(tt_infer *q)
{
    return update_shapes(q, false);
}

// least and most: inputs but for the scale.
tt_status tti_update_infer(tt_infer *q, int least, int most, bool has_scale)
{
    tt_dtype t = q->in[0]->dtype;
    int n = q->n_in - (has_scale ? 1 : 0);
    if (t != TT_F32 && t != TT_F64)
        return TT_FAIL(q->ctx, TT_EDTYPE, "%s: variable '%s' is %s, not f32 or f64", q->name,
                       q->in[0]->node->name, tt_dtype_name(t));
    if (n < least || n > most)
        return TT_FAIL(q->ctx, TT_EINVAL, "%s: has %d inputs %s a scale, not %d to %d", q->name, n,
                       has_scale ? "and" : "without", least, most);
    return update_shapes(q, has_scale);
}

tt_status tti_update_prep(tt_prep *p)
{
    const tt_arg *w = &p->in[0];
    p->units[0] = w->count;
    p->grain[0] = 16384;
    p->ns = (double)w->count * (double)tt_dtype_bytes(w->dtype) * 0.1 * p->n_in; // by memory
    return TT_OK;
}

const tt_op tti_op_assign = {
    .name = "assign",
    .help = "assigns a new value to a variable",
    .inputs = 2,
    .flags = TT_OP_UPDATE | TT_OP_BITS | TT_OP_NO_GRAD,
    .types = TT_TYPES_ALL,
    .infer = assign_infer,
    .split = tti_split_whole,
    .kernel = {[TT_CPU] = TTI_CPU(assign, tti_update_prep)},
    .writes = 1,
};

#define ROW(name_, value, help_)                                                         \
    {                                                                                    \
#name_, TT_OPT_FLOAT, value, help_, offsetof(tti_update_attr, name_), 0, 0, NULL \
    }
static const tt_option update_attrs[] = {
    ROW(lr_scale, "1", "factor on the run's learning rate"),
    ROW(weight_decay, "0",
        "weight decay; adamw, lion: decoupled, the others: added to the gradient"),
    ROW(momentum, "0", "momentum of sgd and rmsprop"),
    ROW(beta1, "0",
        "adam: decay rate of m; rmsprop: decay rate of the squares; lion: decay rate for the "
        "direction"),
    ROW(beta2, "0", "adam: decay rate of v; lion: decay rate of m"),
    ROW(eps, "0", "small constant added to the denominator"),
    {"nesterov", TT_OPT_INT, "0", "sgd: use Nesterov momentum", offsetof(tti_update_attr, nesterov),
     0, 1, NULL},
    {"has_scale", TT_OPT_INT, "0", "the last input is a factor on the gradient",
     offsetof(tti_update_attr, has_scale), 0, 1, NULL},
    TT_OPTION_END,
};
static const tt_option ema_attrs[] = {
    {"decay", TT_OPT_FLOAT, "0.999", "fraction of the average that is kept",
     offsetof(tti_ema_attr, decay), 0, 0, NULL},
    {"has_scale", TT_OPT_INT, "0", "the last input says whether to update at all",
     offsetof(tti_ema_attr, has_scale), 0, 1, NULL},
    TT_OPTION_END,
};

#define OPTIMIZER(name_, least_, most_)                                                         \
    TTI_UPDATE_OP(name_, "one step of " #name_ " on a variable", tti_update_attr, update_attrs, \
                  least_, most_, 0xd)
OPTIMIZER(sgd, 2, 3);
OPTIMIZER(adam, 4, 4);
OPTIMIZER(adamw, 4, 4);
OPTIMIZER(rmsprop, 3, 4);
OPTIMIZER(adagrad, 3, 3);
OPTIMIZER(lion, 3, 3);
TTI_UPDATE_OP(ema, "updates an exponential moving average", tti_ema_attr, ema_attrs, 2, 2, 0xd);

// ---- builders --------------------------------------------------------------------------------

tt_tensor *tt_assign(tt_graph *g, tt_tensor *var, tt_tensor *value)
{
    return tt_node_out(g, &tti_op_assign, 2, (tt_tensor *[]){var, value}, NULL);
}

// A variable beside var, "<var>/<what>", that keeps an optimizer's state: value at first.
tt_tensor *tti_update_state(tt_graph *g, const tt_tensor *var, const char *what, double value)
{
    tt_ctx *ctx = tt_graph_get_ctx(g);
    tti_text name = {.ctx = ctx};
    tti_text_add(&name, "%s/%s", tt_tensor_name(var), what);
    char *text = tti_text_take(&name);
    if (text == NULL)
        return NULL;
    size_t scope = tti_scope_root(g);
    tt_tensor *s = tt_variable(g, .dtype = var->dtype, .shape = var->shape, .no_train = true,
                               .init = {TT_INIT_CONSTANT, value, 0}, .name = text);
    tti_scope_back(g, scope);
    tti_free(ctx, text);
    return s;
}

static double given(const tt_update_opts *o, double value, double otherwise)
{
    return o->exact ? value : tti_or_default(value, otherwise);
}

static tt_status check_opts(tt_ctx *ctx, const char *op, const tti_update_attr *a)
{
    const struct {
        const char *name;
        double value;
    } below_one[] = {{"momentum", a->momentum}, {"beta1", a->beta1}, {"beta2", a->beta2}};
    for (int i = 0; i < TTI_COUNT(below_one); i++)
        if (!(below_one[i].value >= 0 && below_one[i].value < 1))
            return TT_FAIL(ctx, TT_EINVAL, "%s: %s is %g; it must be at least 0 and below 1", op,
                           below_one[i].name, below_one[i].value);
    if (!(a->eps >= 0) || !(a->weight_decay >= 0))
        return TT_FAIL(ctx, TT_EINVAL, "%s: eps %g and weight_decay %g must not be below 0", op,
                       a->eps, a->weight_decay);
    if (a->nesterov && a->momentum == 0)
        return TT_FAIL(ctx, TT_EINVAL, "%s: nesterov needs a momentum", op);
    return TT_OK;
}

// What the optimizers differ in: defaults, and their state (names; the second only with momentum).
typedef struct recipe {
    const tt_op *op;
    double beta1, beta2, eps;
    const char *state[2];
    bool second_is_momentum;
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
    tti_update_attr a = {.lr_scale = given(o, o->lr_scale, 1),
                         .weight_decay = o->weight_decay,
                         .momentum = o->momentum,
                         .beta1 = given(o, o->beta1, r->beta1),
                         .beta2 = given(o, o->beta2, r->beta2),
                         .eps = given(o, o->eps, r->eps),
                         .nesterov = o->nesterov,
                         .has_scale = o->scale != NULL};
    if (check_opts(ctx, op, &a) != TT_OK)
        return NULL;
    if (!tti_is_variable(var)) {
        (void)TT_FAIL(ctx, TT_EINVAL, "%s: '%s' is not a variable", op, tt_tensor_name(var));
        return NULL;
    }
    tt_tensor *in[5] = {var, grad};
    int n = 2;
    double first = r->op == &tti_op_update_adagrad ? given(o, o->initial, 0.1) : 0;
    for (int i = 0; i < 2; i++)
        if (r->state[i] != NULL && (a.momentum != 0 || i == 0 || !r->second_is_momentum))
            in[n++] = tti_update_state(g, var, r->state[i], first);
    if (o->scale != NULL)
        in[n++] = o->scale;
    return tt_node_out(g, r->op, n, in, &a);
}

static tt_tensor *update_by(tt_graph *g, const recipe *r, tt_tensor *var, tt_tensor *grad,
                            const tt_update_opts *opts)
{
    if (!tti_has_graph(g, var, r->op->name))
        return NULL;
    TTI_OPTS_OWN(tt_graph_get_ctx(g), r->op->name, tt_update_opts, opts);
    return opts == NULL ? NULL : update(g, r, var, grad, opts);
}

tt_tensor *tt_update_sgd_with(tt_graph *g, tt_tensor *var, tt_tensor *grad,
                              const tt_update_opts *opts)
{
    if (!tti_has_graph(g, var, "update_sgd"))
        return NULL;
    TTI_OPTS_OWN(tt_graph_get_ctx(g), "update_sgd", tt_update_opts, opts);
    if (opts == NULL)
        return NULL;
    recipe r = {.op = &tti_op_update_sgd};
    if (opts->momentum != 0)
        r.state[0] = "sgd_momentum";
    return update(g, &r, var, grad, opts);
}

// The others are a recipe each: beta1, beta2, eps unless given, names of the states.
#define BUILDER(name, ...)                                                           \
    tt_tensor *tt_update_##name##_with(tt_graph *g, tt_tensor *var, tt_tensor *grad, \
                                       const tt_update_opts *opts)                   \
    {                                                                                \
        static const recipe r = {&tti_op_update_##name, __VA_ARGS__};                \
        return update_by(g, &r, var, grad, opts);                                    \
    }
BUILDER(adam, 0.9, 0.999, 1e-8, {"adam_m", "adam_v"}, false)
BUILDER(adamw, 0.9, 0.999, 1e-8, {"adam_m", "adam_v"}, false)
BUILDER(rmsprop, 0.9, 0, 1e-7, {"rmsprop_square", "rmsprop_momentum"}, true)
BUILDER(adagrad, 0, 0, 1e-7, {"adagrad_sum", NULL}, false)
BUILDER(lion, 0.9, 0.99, 0, {"lion_m", NULL}, false)

tt_tensor *tt_update_ema_with(tt_graph *g, tt_tensor *var, tt_tensor *value,
                              const tt_update_ema_opts *opts)
{
    if (!tti_has_graph(g, var, "update_ema"))
        return NULL;
    TTI_OPTS_OWN(tt_graph_get_ctx(g), "update_ema", tt_update_ema_opts, opts);
    if (opts == NULL)
        return NULL;
    tti_ema_attr a = {opts->decay != 0 ? opts->decay : 0.999, opts->scale != NULL};
    if (!(a.decay > 0 && a.decay < 1)) {
        (void)TT_FAIL(tt_graph_get_ctx(g), TT_EINVAL, "update_ema: decay %g is not between 0 and 1",
                      a.decay);
        return NULL;
    }
    tt_tensor *in[] = {var, value, opts->scale};
    return tt_node_out(g, &tti_op_update_ema, opts->scale != NULL ? 3 : 2, in, &a);
}
