/*
 * loss.c - losses as graph nodes.
 *
 * A loss gives terms, one per target that counts, and from them two lane sums: of the terms and of
 * their number. The loss is one divided by the other, over the whole batch and all devices; nothing
 * here divides. With x the output, t the target and d = x - t:
 *   cross_entropy         -log softmax(z)[t]; dense: -sum(t log softmax(z)), one term per row
 *   binary_cross_entropy  t softplus(-z) + (1 - t) softplus(z), which is max(z, 0) - z t +
 *                         log(1 + e^-|z|), but keeps small terms and has its gradient at 0
 *   mse d^2   mae |d|     huber  c (d - c / 2), c = clip(d, -delta, delta): d^2 / 2, beyond delta
 *                         a line
 * z are the logits: the output, or what a softmax or sigmoid that made the output was taken of. An
 * activation inside a product's node is passed by by building the product again without it: the
 * same bits as if the model had been written without.
 */
#include "train/loss.h"
#include "op/op.h"
#include <string.h>

static const char *const kind_names[] = {
    "none", "cross_entropy", "binary_cross_entropy", "mse", "mae", "huber", "custom", NULL};

int tti_loss_find(const char *name)
{
    for (int i = 1; name != NULL && i < TT_CUSTOM_LOSS; i++)
        if (strcmp(kind_names[i], name) == 0)
            return i;
    return -1;
}

const char *tti_loss_help(tt_loss_kind kind)
{
    static const char *const lines[] = {
        [TT_CROSS_ENTROPY] = "for classes: -log of the probability of the target class, from "
                             "logits; a final softmax is skipped",
        [TT_BINARY_CROSS_ENTROPY] = "for yes or no: -log of the probability of the target, from "
                                    "logits; a final sigmoid is skipped",
        [TT_MSE] = "mean squared error",
        [TT_MAE] = "mean absolute error",
        [TT_HUBER] = "squared error up to delta, linear beyond it",
    };
    return (unsigned)kind < TTI_COUNT(lines) ? lines[kind] : NULL;
}

const char *tti_loss_name(tt_loss_kind kind)
{
    return (unsigned)kind < TTI_COUNT(kind_names) - 1 ? kind_names[kind] : "?";
}

#define ROW(name_, type_, value_, help_, low_, high_)                             \
    {                                                                             \
#name_, type_, value_, help_, offsetof(tt_loss, name_), low_, high_, NULL \
    }
const tt_option tti_loss_options[] = {
    ROW(weight, TT_OPT_FLOAT, "1", "weight of this loss in the sum of all losses", 0, 1e30),
    ROW(smoothing, TT_OPT_FLOAT, "0",
        "label smoothing: fraction of the target spread evenly over all classes", 0, 1),
    ROW(has_ignore, TT_OPT_BOOL, "false",
        "ignore targets with the label ignore; true if ignore is given", 0, 0),
    ROW(ignore, TT_OPT_INT, "0", "label whose targets are ignored", 0, 0),
    ROW(delta, TT_OPT_FLOAT, "1", "error at which the loss changes from quadratic to linear", 1e-30,
        1e30),
    ROW(output, TT_OPT_TEXT, "", "name of the model's output; default: the only one", 0, 0),
    ROW(target, TT_OPT_TEXT, "",
        "name of the data field with the target; default: the next field after the inputs", 0, 0),
    TT_OPTION_END,
};

bool tti_loss_takes(const char *kind, const char *row)
{
    static const char *const only[][2] = {{"smoothing", "cross_entropy"},
                                          {"has_ignore", "cross_entropy"},
                                          {"ignore", "cross_entropy"},
                                          {"delta", "huber"}};
    for (int i = 0; i < TTI_COUNT(only); i++)
        if (strcmp(only[i][0], row) == 0)
            return strcmp(only[i][1], kind) == 0;
    return true;
}

tt_status tti_loss_set(tt_ctx *ctx, tt_loss *l, const char *where, const char *name,
                       const char *value)
{
    TT_TRY(tti_option_set(ctx, tti_loss_options, l, where, name, value));
    if (strcmp(name, "ignore") == 0)
        l->has_ignore = true;
    return TT_OK;
}

// ---- what may be asked -----------------------------------------------------------------------

static tt_status check_loss(tt_ctx *ctx, const tt_loss *l, const tt_tensor *output)
{
    const char *kind = tti_loss_name(l->kind);
    char text[TT_SHAPE_TEXT];
    if (l->kind <= TT_LOSS_NONE || l->kind > TT_CUSTOM_LOSS)
        return TT_FAIL(ctx, TT_EINVAL, "loss: there is no kind %d", (int)l->kind);
    if (output == NULL)
        return TT_FAIL(ctx, TT_EINVAL, "%s: the output is missing", kind);
    if (!tti_is_float(output->dtype) || tt_open_axis(&output->shape) < 0)
        return TT_FAIL(ctx, TT_ESHAPE,
                       "%s: output '%s' is %s %s; it must be floats with a batch axis", kind,
                       tt_tensor_name(output), tt_dtype_name(output->dtype),
                       tt_shape_text(&output->shape, text));
    int last = output->shape.rank - 1;
    if (l->kind == TT_CROSS_ENTROPY && (last < 1 || tt_open_axis(&output->shape) == last))
        return TT_FAIL(ctx, TT_ESHAPE, "%s: output '%s' is %s; it needs an axis of classes", kind,
                       tt_tensor_name(output), tt_shape_text(&output->shape, text));
    if (l->kind != TT_CROSS_ENTROPY && (l->smoothing != 0 || l->has_ignore))
        return TT_FAIL(ctx, TT_EINVAL, "%s: smoothing and ignore are options of cross_entropy",
                       kind);
    if (l->kind == TT_HUBER && l->delta != 0 && !(l->delta > 0))
        return TT_FAIL(ctx, TT_EINVAL, "huber: delta is %g; it must be above 0", l->delta);
    if (l->kind == TT_CUSTOM_LOSS && l->fn == NULL)
        return TT_FAIL(ctx, TT_EINVAL, "custom loss: fn is missing");
    return TT_OK;
}

tt_status tti_loss_target(tt_ctx *ctx, const tt_loss *l, const tt_tensor *output, bool dense,
                          tt_shape *shape, tt_dtype *dtype)
{
    TT_TRY(check_loss(ctx, l, output));
    *shape = output->shape;
    *dtype = output->dtype == TT_F64 ? TT_F64 : TT_F32;
    if (l->kind == TT_CROSS_ENTROPY && !dense) {
        shape->dim[--shape->rank] = 0;
        *dtype = TT_I32;
    }
    if (l->kind != TT_CUSTOM_LOSS || !l->has_target)
        return TT_OK;
    const tt_shape *one = &l->target_shape;
    if (one->rank < 0 || one->rank >= TT_MAX_RANK)
        return TT_FAIL(ctx, TT_EINVAL, "custom loss: target_shape has rank %d; it must be 0 to %d",
                       one->rank, TT_MAX_RANK - 1);
    *dtype = l->target_dtype;
    *shape = (tt_shape){.rank = one->rank + 1, .dim = {TT_BATCH}};
    memcpy(shape->dim + 1, one->dim, (size_t)one->rank * sizeof(one->dim[0]));
    return TT_OK;
}

// ---- logits ----------------------------------------------------------------------------------

// The attribute "act" of a node that carries one, if it is a sigmoid.
static const tt_option *sigmoid_inside(const tt_node *n)
{
    for (const tt_option *row = n->op->attrs; row != NULL && row->type != TT_OPT_END; row++) {
        int act;
        if (strcmp(row->name, "act") != 0 || row->type != TT_OPT_ENUM)
            continue;
        memcpy(&act, (const char *)n->attr + row->offset, sizeof(act));
        return act == TT_SIGMOID ? row : NULL;
    }
    return NULL;
}

// The same node without its activation.
static tt_tensor *without_act(tt_graph *g, const tt_node *n, const tt_option *row)
{
    tt_ctx *ctx = tt_graph_get_ctx(g);
    char *attr = tti_alloc(ctx, n->op->attr_size);
    int act = TT_LINEAR;
    if (attr == NULL)
        return NULL;
    memcpy(attr, n->attr, n->op->attr_size);
    memcpy(attr + row->offset, &act, sizeof(act));
    tt_tensor *z = tt_node_out(g, n->op, n->n_in, n->in, attr);
    tti_free(ctx, attr);
    return z;
}

static tt_tensor *logits_of(tt_graph *g, const tt_loss *l, tt_tensor *x)
{
    const tt_node *n = x->node;
    bool first = x->index == 0;
    if (l->kind == TT_CROSS_ENTROPY && first && n->op == &tti_op_softmax)
        return n->in[0];
    if (l->kind == TT_BINARY_CROSS_ENTROPY && first && n->op == &tti_op_sigmoid)
        return n->in[0];
    const tt_option *row = l->kind == TT_BINARY_CROSS_ENTROPY && first ? sigmoid_inside(n) : NULL;
    return row == NULL ? x : without_act(g, n, row);
}

// ---- terms -----------------------------------------------------------------------------------

static tt_tensor *wide(tt_graph *g, tt_tensor *x)
{
    return x == NULL || x->dtype == TT_F64 ? x : tt_cast(g, x, TT_F32);
}

// The target in the type of x; [batch] fits an output [batch, 1].
static tt_tensor *fitted(tt_graph *g, tt_tensor *t, const tt_tensor *x)
{
    if (t->shape.rank + 1 == x->shape.rank && x->shape.dim[x->shape.rank - 1] == 1)
        t = tt_expand_dims(g, t, -1);
    return t == NULL ? NULL : tt_cast(g, t, x->dtype);
}

static tt_tensor *binary_terms(tt_graph *g, tt_tensor *z, tt_tensor *t)
{
    tt_tensor *one = tt_mul(g, t, tt_softplus(g, tt_neg(g, z)));
    return tt_add(g, one, tt_mul(g, tt_scale(g, t, -1, 1), tt_softplus(g, z)));
}

static tt_tensor *huber_terms(tt_graph *g, tt_tensor *d, double delta)
{
    tt_tensor *c = tt_clip(g, d, -delta, delta);
    return tt_mul(g, c, tt_sub(g, d, tt_scale(g, c, 0.5, 0)));
}

// Of a loss that compares element by element; z and t have one shape and type.
static tt_tensor *element_terms(tt_graph *g, const tt_loss *l, tt_tensor *z, tt_tensor *t)
{
    switch (l->kind) {
    case TT_BINARY_CROSS_ENTROPY:
        return binary_terms(g, z, t);
    case TT_MSE:
        return tt_square(g, tt_sub(g, z, t));
    case TT_MAE:
        return tt_abs(g, tt_sub(g, z, t));
    default:
        return huber_terms(g, tt_sub(g, z, t), l->delta != 0 ? l->delta : 1);
    }
}

static tt_status check_target(tt_graph *g, const tt_loss *l, const tt_tensor *z, const tt_tensor *t)
{
    char a[TT_SHAPE_TEXT], b[TT_SHAPE_TEXT];
    if (t == NULL)
        return tt_status_of(tt_graph_get_ctx(g));
    if (!tti_shape_equal(&z->shape, &t->shape))
        return TT_FAIL(tt_graph_get_ctx(g), TT_ESHAPE, "%s: the output is %s but the target is %s",
                       tti_loss_name(l->kind), tt_shape_text(&z->shape, a),
                       tt_shape_text(&t->shape, b));
    return TT_OK;
}

// How many labels are not the ignored one: a lane sum.
static tt_tensor *count_labels(tt_graph *g, const tt_loss *l, tt_tensor *t)
{
    int64_t least = t->dtype == TT_U8 ? 0 : t->dtype == TT_I32 ? INT32_MIN : INT64_MIN;
    int64_t most = t->dtype == TT_U8 ? 255 : t->dtype == TT_I32 ? INT32_MAX : INT64_MAX;
    if (l->ignore < least || l->ignore > most) {
        (void)TT_FAIL(tt_graph_get_ctx(g), TT_EINVAL,
                      "cross_entropy: ignore %lld does not fit targets of %s", (long long)l->ignore,
                      tt_dtype_name(t->dtype));
        return NULL;
    }
    return tt_sum(g, tti_loss_mask(g, l, t));
}

tt_tensor *tti_loss_mask(tt_graph *g, const tt_loss *l, tt_tensor *t)
{
    if (t == NULL)
        return NULL;
    char value[8];                            // of any integer type
    memcpy(value, &l->ignore, sizeof(value)); // little-endian: the low bytes come first
    tt_tensor *ignore = tt_const(g, t->dtype, TT_SCALAR, value);
    return tt_cast(g, tt_not_equal(g, t, ignore), TT_F32);
}

static tt_tensor *label_terms(tt_graph *g, const tt_loss *l, tt_tensor *z, tt_tensor *t)
{
    if (tti_is_float(t->dtype)) { // probabilities are not rounded to the type of half logits
        z = wide(g, z);
        t = z == NULL ? NULL : tt_cast(g, t, z->dtype);
    }
    return tt_cross_entropy(g, z, t, .smoothing = l->smoothing, .has_ignore = l->has_ignore,
                            .ignore = l->ignore);
}

static tt_status build_terms(tt_graph *g, const tt_loss *l, tt_tensor *x, tt_tensor *target,
                             tt_tensor **logits, tt_tensor **terms)
{
    tt_ctx *ctx = tt_graph_get_ctx(g);
    *logits = logits_of(g, l, x);
    if (*logits == NULL)
        return tt_status_of(ctx);
    if (l->kind == TT_CUSTOM_LOSS) {
        x = wide(g, x);
        *terms = x == NULL ? NULL : l->fn(l->user, g, x, target);
    } else if (l->kind == TT_CROSS_ENTROPY) {
        *terms = label_terms(g, l, *logits, target);
    } else {
        tt_tensor *z = wide(g, *logits), *t = z == NULL ? NULL : fitted(g, target, z);
        TT_TRY(check_target(g, l, z, t));
        *terms = element_terms(g, l, z, t);
    }
    if (*terms == NULL && tt_status_of(ctx) == TT_OK)
        return TT_FAIL(ctx, TT_EINVAL, "custom loss: fn returned no terms");
    TT_TRY(tt_status_of(ctx));
    char text[TT_SHAPE_TEXT];
    if (!tti_is_float((*terms)->dtype) || tt_open_axis(&(*terms)->shape) < 0)
        return TT_FAIL(ctx, TT_ESHAPE,
                       "%s: terms '%s' are %s %s; they must be floats with a batch axis",
                       tti_loss_name(l->kind), tt_tensor_name(*terms),
                       tt_dtype_name((*terms)->dtype), tt_shape_text(&(*terms)->shape, text));
    return TT_OK;
}

tt_status tti_loss_build(tt_graph *g, const tt_loss *l, tt_tensor *output, tt_tensor *target,
                         tti_loss_terms *out)
{
    tt_ctx *ctx = tt_graph_get_ctx(g);
    if (tti_is_stuck(ctx))
        return ctx == NULL ? TT_EINVAL : tt_status_of(ctx);
    TT_TRY(check_loss(ctx, l, output));
    if (target == NULL)
        return TT_FAIL(ctx, TT_EINVAL, "%s: the target is missing", tti_loss_name(l->kind));
    tti_loss_terms made = {0};
    tt_tensor *terms = NULL;
    int64_t n_nodes = g->n_nodes;
    tt_status st = build_terms(g, l, output, target, &made.logits, &terms);
    if (st == TT_OK) {
        made.per_row = -tt_shape_count(&terms->shape);
        made.sum = tt_sum(g, wide(g, terms));
        made.count = l->has_ignore ? count_labels(g, l, target) : NULL;
        st = tt_status_of(ctx);
    }
    if (st != TT_OK)
        tti_graph_truncate(g, n_nodes);
    else
        *out = made;
    return st;
}
