/*
 * loss.c - losses as graph nodes.
 *
 * A loss gives terms, one per target that counts, and from them two lane sums: of the terms and of
 * their number. The loss is one divided by the other, over the whole batch and all devices; nothing
 * here divides. With t the target:
 *   cross_entropy         -log softmax(z)[t]; dense: -sum(t log softmax(z)), one term per row
 * and for the others what loss_terms.c says. With weights (loss_weight.c) both sums are weighted.
 * z are the logits: the output, or what a softmax or sigmoid that made the output was taken of. An
 * activation inside a product's node is passed by by building the product again without it: the
 * same bits as if the model had been written without.
 */
#include "train/loss.h"
#include "op/op.h"
#include <string.h>

// What kinds differ in. A loss of classes has a last axis of them.
enum {
    CLASSES = 1, // of the output
    LABELS = 2,  // the target is a class number
    ROWS = 4,    // one term per row
};
static const struct kind {
    const char *name, *help;
    unsigned flags;
} kinds[] = {
    [TT_LOSS_NONE] = {"none", NULL, 0},
    [TT_CROSS_ENTROPY] = {"cross_entropy",
                          "for classes: -log of the probability of the target class, from "
                          "logits; a final softmax is skipped",
                          CLASSES | LABELS},
    [TT_BINARY_CROSS_ENTROPY] = {"binary_cross_entropy",
                                 "for yes or no: -log of the probability of the target, from "
                                 "logits; a final sigmoid is skipped",
                                 0},
    [TT_MSE] = {"mse", "mean squared error", 0},
    [TT_MAE] = {"mae", "mean absolute error", 0},
    [TT_HUBER] = {"huber", "squared error up to delta, linear beyond it", 0},
    [TT_CUSTOM_LOSS] = {"custom", NULL, 0},
    [TT_KL_DIVERGENCE] = {"kl_divergence",
                          "Kullback-Leibler divergence from the target's probabilities, from "
                          "logits; a final softmax is skipped",
                          CLASSES | ROWS},
    [TT_COSINE_SIMILARITY] = {"cosine_similarity",
                              "1 - cosine of the angle between output and target", ROWS},
    [TT_HINGE] = {"hinge", "for yes or no: max(0, 1 - s x), s the sign of the target", 0},
    [TT_SQUARED_HINGE] = {"squared_hinge", "the square of hinge", 0},
    [TT_CATEGORICAL_HINGE] = {"categorical_hinge",
                              "for classes: the margin between the target class and the best other",
                              CLASSES | LABELS},
    [TT_POISSON] = {"poisson", "for counts: e^x - t x, x the logarithm of the rate", 0},
    [TT_LOG_COSH] = {"log_cosh", "log of the hyperbolic cosine of the error", 0},
    [TT_FOCAL] = {"focal",
                  "cross entropy times (1 - p)^gamma: for classes of which some are rare; from "
                  "logits, a final softmax is skipped",
                  CLASSES | LABELS},
    [TT_BINARY_FOCAL] = {"binary_focal",
                         "binary cross entropy times (1 - p)^gamma; from logits, a final sigmoid "
                         "is skipped",
                         0},
    [TT_DICE] = {"dice",
                 "for masks: 1 - 2 overlap / (sum of output and target), per record; from logits, "
                 "a final sigmoid is skipped",
                 ROWS},
    [TT_MAPE] = {"mape", "mean absolute error in percent of the target", 0},
    [TT_MSLE] = {"msle", "mean squared error of log(1 + x)", 0},
};

static bool has_flag(tt_loss_kind kind, unsigned flag)
{
    return (unsigned)kind < TTI_COUNT(kinds) && (kinds[kind].flags & flag) != 0;
}

bool tti_loss_has_labels(tt_loss_kind kind)
{
    return has_flag(kind, LABELS);
}

bool tti_loss_has_classes(tt_loss_kind kind)
{
    return has_flag(kind, CLASSES);
}

int tti_loss_find(const char *name)
{
    for (int i = 1; name != NULL && i < TTI_COUNT(kinds); i++)
        if (kinds[i].help != NULL && strcmp(kinds[i].name, name) == 0)
            return i;
    return -1;
}

int tti_loss_at(int i)
{
    for (int k = 1; i >= 0 && k < TTI_COUNT(kinds); k++)
        if (kinds[k].help != NULL && i-- == 0)
            return k;
    return -1;
}

const char *tti_loss_help(tt_loss_kind kind)
{
    return (unsigned)kind < TTI_COUNT(kinds) ? kinds[kind].help : NULL;
}

const char *tti_loss_name(tt_loss_kind kind)
{
    return (unsigned)kind < TTI_COUNT(kinds) ? kinds[kind].name : "?";
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
    ROW(gamma, TT_OPT_FLOAT, "2", "power of 1 - p: how much less a target counts that is found", 0,
        1e3),
    ROW(alpha, TT_OPT_FLOAT, "0", "weight of targets 1, 1 - alpha that of targets 0; 0: none", 0,
        1),
    ROW(no_log, TT_OPT_BOOL, "false", "the output is the rate itself, not its logarithm", 0, 0),
    ROW(sample_weight, TT_OPT_TEXT, "",
        "name of the data field with the weight of each record; default: all weigh the same", 0, 0),
    ROW(class_weight, TT_OPT_TEXT, "",
        "weights of classes: [0=1, 3=2.5]; classes that are not named weigh 1", 0, 0),
    TT_OPTION_END,
};

bool tti_loss_takes(const char *kind, const char *row)
{
    static const char *const only[][2] = {
        {"smoothing", "cross_entropy"},
        {"has_ignore", "cross_entropy, focal"},
        {"ignore", "cross_entropy, focal"},
        {"delta", "huber"},
        {"gamma", "focal, binary_focal"},
        {"alpha", "binary_focal"},
        {"no_log", "poisson"},
        {"class_weight", "cross_entropy, focal, categorical_hinge, binary_cross_entropy, "
                         "binary_focal, hinge, squared_hinge"}};
    for (int i = 0; i < TTI_COUNT(only); i++)
        if (strcmp(only[i][0], row) == 0)
            return tti_match(only[i][1], kind);
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
    if (l->kind <= TT_LOSS_NONE || (unsigned)l->kind >= TTI_COUNT(kinds))
        return TT_FAIL(ctx, TT_EINVAL, "loss: there is no kind %d", (int)l->kind);
    if (output == NULL)
        return TT_FAIL(ctx, TT_EINVAL, "%s: the output is missing", kind);
    if (!tti_is_float(output->dtype) || tt_open_axis(&output->shape) < 0)
        return TT_FAIL(ctx, TT_ESHAPE,
                       "%s: output '%s' is %s %s; it must be floats with a batch axis", kind,
                       tt_tensor_name(output), tt_dtype_name(output->dtype),
                       tt_shape_text(&output->shape, text));
    int last = output->shape.rank - 1;
    if (has_flag(l->kind, CLASSES) && (last < 1 || tt_open_axis(&output->shape) == last))
        return TT_FAIL(ctx, TT_ESHAPE, "%s: output '%s' is %s; it needs an axis of classes", kind,
                       tt_tensor_name(output), tt_shape_text(&output->shape, text));
    if (l->kind != TT_CROSS_ENTROPY &&
        (l->smoothing != 0 || (l->has_ignore && l->kind != TT_FOCAL)))
        return TT_FAIL(ctx, TT_EINVAL, "%s: smoothing and ignore are options of cross_entropy",
                       kind);
    if (l->kind == TT_COSINE_SIMILARITY && last < 1)
        return TT_FAIL(ctx, TT_ESHAPE, "%s: output '%s' is %s; it needs an axis of numbers", kind,
                       tt_tensor_name(output), tt_shape_text(&output->shape, text));
    if ((l->gamma != TT_ZERO && !(l->gamma >= 0 && l->gamma <= 1e3)) ||
        !(l->alpha >= 0 && l->alpha <= 1))
        return TT_FAIL(ctx, TT_EINVAL,
                       "%s: gamma is %g and alpha %g; they must be 0 to 1000 and 0 to 1", kind,
                       l->gamma, l->alpha);
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
    if (has_flag(l->kind, LABELS) && !(dense && l->kind == TT_CROSS_ENTROPY)) {
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
    bool of_softmax =
        l->kind == TT_CROSS_ENTROPY || l->kind == TT_FOCAL || l->kind == TT_KL_DIVERGENCE;
    bool of_sigmoid =
        l->kind == TT_BINARY_CROSS_ENTROPY || l->kind == TT_BINARY_FOCAL || l->kind == TT_DICE;
    if (of_softmax && first && n->op == &tti_op_softmax)
        return n->in[0];
    if (of_sigmoid && first && n->op == &tti_op_sigmoid)
        return n->in[0];
    const tt_option *row = of_sigmoid && first ? sigmoid_inside(n) : NULL;
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
    } else if (has_flag(l->kind, LABELS)) {
        *terms = tti_label_terms(g, l, *logits, target);
    } else {
        tt_tensor *z = wide(g, *logits), *t = z == NULL ? NULL : fitted(g, target, z);
        TT_TRY(check_target(g, l, z, t));
        *terms =
            has_flag(l->kind, ROWS) ? tti_row_terms(g, l, z, t) : tti_element_terms(g, l, z, t);
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
    return tti_loss_build_weighted(g, l, output, target, NULL, out);
}

tt_status tti_loss_build_weighted(tt_graph *g, const tt_loss *l, tt_tensor *output,
                                  tt_tensor *target, tt_tensor *sample_weight, tti_loss_terms *out)
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
    made.is_weighted = sample_weight != NULL || l->class_weight != NULL;
    if (st == TT_OK && made.is_weighted)
        st = tti_loss_weigh(g, l, made.logits, target, sample_weight, &terms, &made.count);
    if (st == TT_OK) {
        made.per_row = -tt_shape_count(&terms->shape);
        made.sum = tt_sum(g, wide(g, terms));
        if (l->has_ignore && !made.is_weighted)
            made.count = count_labels(g, l, target);
        st = tt_status_of(ctx);
    }
    if (st != TT_OK)
        tti_graph_truncate(g, n_nodes);
    else
        *out = made;
    return st;
}
