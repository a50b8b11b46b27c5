/*
 * optimizer.c - updates of weights as graph nodes. The kinds of optimizers are in
 * optimizer_kinds.c.
 *
 * Order: gradients are reduced by the lane tree; then scaled by P / count, then clipped, then the
 * update. Scaling and clipping by a norm cost no pass of their own: they are one factor that the
 * update reads. Only clip_value makes a clipped gradient first. Weights are taken in order of their
 * names for the global norm.
 *
 * A guarded step is applied as a whole or not at all, so its factor needs something of every
 * gradient: their squares where a norm is clipped, else their largest magnitudes, which cost less.
 */
#include "train/optimizer.h"
#include "base/ctx.h"
#include <stdlib.h>
#include <string.h>

// ---- defaults and bounds ---------------------------------------------------------------------

// Afterwards a zero that was asked for is TT_ZERO.
static tt_status fill_rows(tt_ctx *ctx, bool exact, const tt_option *rows, void *opts,
                           const char *name)
{
    if (!exact)
        return tti_options_fill(ctx, rows, opts, name);
    tti_options_zeros(rows, opts, true);
    return tti_options_check(ctx, rows, opts, name);
}

static tt_status fill_schedule(tt_ctx *ctx, tt_schedule *s, bool exact)
{
    if (s->kind == TT_LR_CUSTOM && s->fn == NULL)
        return TT_FAIL(ctx, TT_EINVAL, "schedule: kind TT_LR_CUSTOM needs a function: fn is NULL");
    if (s->kind == TT_LR_CUSTOM)
        return TT_OK;
    if (s->kind == TT_LR_PIECEWISE)
        TT_TRY(tti_schedule_check_pieces(ctx, s));
    for (int i = 0; tti_schedule_at(i) != NULL; i++)
        if (tti_schedule_at(i)->kind == s->kind)
            return fill_rows(ctx, exact, tti_schedule_at(i)->options, s, tti_schedule_at(i)->name);
    return TT_FAIL(ctx, TT_EINVAL, "schedule: there is no kind %d", (int)s->kind);
}

static tt_status fill_groups(tt_ctx *ctx, tti_rule *r, const char *name)
{
    for (int i = 0; i < r->n_groups; i++) {
        tt_group *p = &r->groups[i];
        if (p->match == NULL || p->match[0] == 0)
            return TT_FAIL(ctx, TT_EINVAL, "%s: group %d has no match", name, i);
        if (!(p->lr_scale >= 0 && p->weight_decay >= 0))
            return TT_FAIL(
                ctx, TT_EINVAL,
                "%s: group '%s': lr_scale is %g and weight_decay is %g; neither may be negative",
                name, p->match, p->lr_scale, p->weight_decay);
        if (!(p->l1 >= 0 && p->max_norm >= 0))
            return TT_FAIL(ctx, TT_EINVAL,
                           "%s: group '%s': l1 is %g and max_norm is %g; neither may be negative",
                           name, p->match, p->l1, p->max_norm);
        if (!r->o.exact)
            p->lr_scale = tti_or_default(p->lr_scale, 1);
    }
    return TT_OK;
}

tt_status tti_rule_read(tt_ctx *ctx, const tt_optimizer *given, tti_rule *out)
{
    *out = (tti_rule){0};
    TT_TRY(TTI_OPTS_PART(ctx, "optimizer", given, &out->o));
    TT_TRY(TTI_OPTS_PART(ctx, "optimizer: schedule", out->o.schedule, &out->schedule));
    out->o.schedule = &out->schedule;
    return TTI_OPTS_LIST(ctx, "optimizer: group", out->o.groups, out->groups, &out->n_groups);
}

tt_status tti_rule_fill(tt_ctx *ctx, tti_rule *r)
{
    tt_optimizer *o = &r->o;
    const tti_optimizer_def *k = tti_optimizer_of(o->kind);
    if (k == NULL)
        return TT_FAIL(ctx, TT_EINVAL, "optimizer: there is no kind %d", (int)o->kind);
    const char *name = k->name;
    TT_TRY(fill_rows(ctx, o->exact, k->options, o, name));
    if ((o->clip_value > 0) + (o->clip_norm > 0) + (o->clip_global > 0) > 1)
        return TT_FAIL(ctx, TT_EINVAL,
                       "%s: clip_value %g, clip_norm %g, clip_global %g: only one may be given",
                       name, o->clip_value, o->clip_norm, o->clip_global);
    if (o->nesterov && o->momentum == 0)
        return TT_FAIL(ctx, TT_EINVAL, "%s: nesterov needs a momentum", name);
    TT_TRY(fill_schedule(ctx, &r->schedule, o->exact));
    TT_TRY(fill_groups(ctx, r, name));
    tti_options_zeros(k->options, o, false);
    o->exact = true; // filled again, it stays as it is
    return TT_OK;
}

// ---- updates ---------------------------------------------------------------------------------

typedef struct builder {
    tt_graph *g;
    tti_updates_request *r;
    tt_tensor **squares; // by weight: of its gradient; NULL without one
    tt_tensor **largest; // of gradients and others: magnitudes
    int n_largest;
    tt_tensor *scale; // of all gradients
    tt_tensor *p;     // P, without the loss scale
    bool guard, guard_gradients;
} builder;

typedef struct named {
    const char *name;
    int at;
} named;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const named *)a)->name, ((const named *)b)->name);
}

// The squares of all gradients in order of the weights' names, and how many there are.
static tt_status squares_by_name(const builder *b, tt_tensor ***out, int *n)
{
    tt_ctx *ctx = tt_graph_get_ctx(b->g);
    named *order = tti_calloc(ctx, (size_t)b->r->n + 1, sizeof(*order));
    tt_tensor **sorted = tti_calloc(ctx, (size_t)b->r->n + 1, sizeof(tt_tensor *));
    *n = 0;
    *out = sorted;
    if (order == NULL || sorted == NULL) {
        tti_free(ctx, order);
        return TT_ENOMEM; // sorted is the caller's
    }
    for (int i = 0; i < b->r->n; i++)
        if (b->squares[i] != NULL)
            order[(*n)++] = (named){b->r->names[i], i};
    qsort(order, (size_t)*n, sizeof(*order), by_name);
    for (int i = 0; i < *n; i++)
        sorted[i] = b->squares[order[i].at];
    tti_free(ctx, order);
    return TT_OK;
}

// The factor of squares that the optimizer keeps; 0: none.
static double kept_square(const tt_optimizer *o)
{
    switch (o->kind) {
    case TT_ADAM:
    case TT_ADAMW:
    case TT_NADAM:
    case TT_AMSGRAD:
    case TT_LAMB:
        return 1 - o->beta2;
    case TT_RMSPROP:
    case TT_ADADELTA:
        return 1 - o->beta1;
    case TT_ADAGRAD:
    case TT_FTRL:
        return 1;
    default:
        return 0;
    }
}

/*
 * What the update makes of the largest gradient, for update_scale: the factor of squares that are
 * kept, and of the step. Gradients that are clipped one by one are not the updates'.
 */
static void find_limits(const builder *b, double *square, double *step)
{
    const tt_optimizer *o = b->r->optimizer;
    bool is_f32 = true;
    *square = *step = 0;
    for (int i = 0; i < b->r->n; i++)
        is_f32 &= b->r->vars[i]->dtype == TT_F32;
    if (!is_f32 || o->clip_value > 0 || o->clip_norm > 0 || o->clip_global > 0)
        return;
    double scale = 1;
    for (int i = 0; i < TT_MAX_GROUPS && o->groups[i] != NULL; i++)
        scale = TTI_MIN(scale, o->groups[i]->lr_scale);
    double least = 1;
    for (int i = 0; b->r->scales != NULL && i < b->r->n; i++)
        least = TTI_MIN(least, b->r->scales[i]);
    scale *= least;
    *square = kept_square(o);
    *step = o->kind == TT_SGD ? scale : 0;
}

// Numbers that are not finite where a gradient is not, or something else that is written.
static tt_status make_checks(builder *b, bool has_squares)
{
    tti_updates_request *r = b->r;
    for (int i = 0; i < r->n + r->n_others; i++) {
        tt_tensor *x = i < r->n ? r->grads[i] : r->others[i - r->n];
        tt_tensor *y = i < r->n ? b->squares[i] : NULL;
        if (x != NULL && y == NULL && (y = tt_max_abs(b->g, &x, 1)) == NULL)
            return tt_status_of(tt_graph_get_ctx(b->g));
        if (y != NULL && i < r->n && !has_squares)
            b->largest[b->n_largest++] = y;
        if (r->checks != NULL)
            r->checks[i] = y;
    }
    return TT_OK;
}

/*
 * Magnitudes of all gradients, and zeros, or NaN, of what else is written. Several devices send one
 * number each.
 */
static tt_status make_largest(builder *b)
{
    tti_updates_request *r = b->r;
    tt_ctx *ctx = tt_graph_get_ctx(b->g);
    if (ctx->top.n_devices > 1 && b->n_largest > 1) {
        b->largest[0] = tt_max_abs(b->g, b->largest, b->n_largest);
        b->n_largest = 1;
    }
    if (r->n_others > 0)
        b->largest[b->n_largest++] =
            tt_mul(b->g, tt_max_abs(b->g, r->others, r->n_others), tt_scalar(b->g, 0));
    return tt_status_of(ctx);
}

// The factor of all gradients; also whether the step is applied, and with clip_global the norm.
static tt_status make_scale(builder *b)
{
    tti_updates_request *r = b->r;
    const tt_optimizer *o = r->optimizer;
    tt_ctx *ctx = tt_graph_get_ctx(b->g);
    tt_tensor **sorted = NULL, *norm = NULL;
    int n = 0;
    bool all = o->clip_global > 0 || (b->guard && o->clip_norm > 0);
    tt_status st = all ? squares_by_name(b, &sorted, &n) : TT_OK;
    double square, step;
    find_limits(b, &square, &step);
    if (st == TT_OK) {
        b->scale = tt_update_scale(b->g, r->loss_sum, r->count, b->p, .squares = sorted,
                                   .n_squares = n, .clip = o->clip_global, .guard = b->guard,
                                   .norm = &norm, .go = &r->applied, .largest = b->largest,
                                   .n_largest = b->n_largest, .square = square, .step = step);
        st = b->scale == NULL ? tt_status_of(ctx) : TT_OK;
    }
    tti_free(ctx, sorted);
    r->norm = o->clip_global > 0 ? norm : NULL;
    return st;
}

static const tt_group *group_of(const tt_optimizer *o, const char *name)
{
    for (int i = 0; i < TT_MAX_GROUPS && o->groups[i] != NULL; i++)
        if (tti_match(o->groups[i]->match, name))
            return o->groups[i];
    return NULL;
}

static double decay_of(const tt_optimizer *o, const tt_group *group, const char *name)
{
    if ((group != NULL && group->no_decay) || tti_match(o->no_decay, name))
        return 0;
    return group != NULL && group->weight_decay > 0 ? group->weight_decay : o->weight_decay;
}

// The gradient and the factor that the update of weight i takes.
static tt_tensor *clipped(const builder *b, int i, tt_tensor **scale)
{
    tti_updates_request *r = b->r;
    const tt_optimizer *o = r->optimizer;
    tt_tensor *grad = r->grads[i];
    *scale = b->scale;
    if (o->clip_norm > 0) { // times 1, or NaN where the whole step is not applied
        tt_tensor *own =
            tt_update_scale(b->g, r->loss_sum, r->count, b->p, .squares = &b->squares[i],
                            .n_squares = 1, .clip = o->clip_norm);
        *scale = tt_mul(b->g, own, r->applied);
    }
    if (o->clip_value > 0) {
        tt_tensor *s = tt_cast(b->g, b->scale, grad->dtype);
        grad = tt_clip(b->g, tt_mul(b->g, grad, s), -o->clip_value, o->clip_value);
        *scale = r->applied;
    }
    return grad;
}

// "<weight>/ema" follows what the update leaves.
static tt_tensor *average(const builder *b, int i, tt_tensor *update)
{
    tt_ctx *ctx = tt_graph_get_ctx(b->g);
    const tt_tensor *var = b->r->vars[i];
    tti_text name = {.ctx = ctx};
    tti_text_add(&name, "%s/ema", tt_tensor_name(var));
    char *text = tti_text_take(&name);
    if (text == NULL)
        return NULL;
    size_t scope = tti_scope_root(b->g);
    tt_tensor *ema =
        tt_variable(b->g, .dtype = var->dtype, .shape = var->shape, .no_train = true, .name = text);
    tti_scope_back(b->g, scope);
    tti_free(ctx, text);
    if (ema == NULL || tt_colocate(ema, b->r->vars[i]) != TT_OK)
        return NULL;
    return tt_update_ema(b->g, ema, update, .decay = b->r->optimizer->ema, .scale = b->r->applied);
}

static tt_status update_weight(const builder *b, int i)
{
    tti_updates_request *r = b->r;
    const tt_optimizer *o = r->optimizer;
    const tt_group *group = group_of(o, r->names[i]);
    tt_update_opts opts = {.opts_size = sizeof(opts),
                           .lr_scale = (group == NULL ? 1 : group->lr_scale) *
                                       (r->scales == NULL ? 1 : r->scales[i]),
                           .weight_decay = decay_of(o, group, r->names[i]),
                           .momentum = o->momentum,
                           .nesterov = o->nesterov,
                           .beta1 = o->beta1,
                           .beta2 = o->beta2,
                           .eps = o->eps,
                           .initial = o->initial,
                           .l1 = o->l1,
                           .l2 = o->l2,
                           .exact = true}; // filled: what is zero is meant so
    tt_tensor *grad = clipped(b, i, &opts.scale);
    if (grad != NULL && opts.scale != NULL && group != NULL && group->l1 > 0)
        grad = tti_penalised(b->g, r->vars[i], grad, group->l1, r->applied, &opts.scale);
    tti_update_fn *build = tti_optimizer_of(o->kind)->build;
    tt_tensor *y = grad == NULL || opts.scale == NULL ? NULL
                   : build != NULL
                       ? build(b->g, r->vars[i], grad, &opts)
                       : tti_update_by_norm(b->g, o, r->vars[i], grad, &opts, r->applied);
    if (y != NULL && group != NULL && (group->max_norm > 0 || group->non_negative))
        y = tti_constrained(b->g, r->vars[i], y, group);
    tt_tensor *mean = y == NULL || o->ema == 0 ? NULL : average(b, i, y);
    if (y == NULL || (o->ema != 0 && mean == NULL))
        return tt_status_of(tt_graph_get_ctx(b->g));
    r->updates[r->n_updates++] = y;
    if (mean != NULL)
        r->updates[r->n_updates++] = mean;
    return TT_OK;
}

tt_status tti_loss_scale_make(tt_graph *g, tti_loss_scale *out)
{
    size_t scope = tti_scope_root(g);
    out->scale = tt_variable(g, .shape = TT_SCALAR, .no_train = true,
                             .init = {TT_INIT_CONSTANT, 0x1p15, 0}, .name = "train/loss_scale");
    out->good = tt_variable(g, .shape = TT_SCALAR, .no_train = true, .name = "train/good_steps");
    tti_scope_back(g, scope);
    return tt_status_of(tt_graph_get_ctx(g));
}

static tt_status update_loss_scale(const builder *b)
{
    tti_updates_request *r = b->r;
    tt_tensor *y = tt_update_loss_scale(b->g, r->loss_scale->scale, r->loss_scale->good, r->applied,
                                        .used = &r->used_scale);
    if (y == NULL)
        return tt_status_of(tt_graph_get_ctx(b->g));
    r->updates[r->n_updates++] = y;
    return TT_OK;
}

static tt_status build_all(builder *b)
{
    tti_updates_request *r = b->r;
    const tt_optimizer *o = r->optimizer;
    bool squares = o->clip_norm > 0 || o->clip_global > 0;
    for (int i = 0; squares && i < r->n; i++)
        if (r->grads[i] != NULL && (b->squares[i] = tt_square_sum(b->g, r->grads[i])) == NULL)
            return tt_status_of(tt_graph_get_ctx(b->g));
    if (b->guard && b->guard_gradients) {
        TT_TRY(make_checks(b, squares));
        TT_TRY(make_largest(b));
    }
    TT_TRY(make_scale(b));
    for (int i = 0; i < r->n; i++)
        if (r->grads[i] != NULL)
            TT_TRY(update_weight(b, i));
    return r->loss_scale == NULL ? TT_OK : update_loss_scale(b);
}

tt_status tti_updates_build(tt_graph *g, tti_updates_request *r)
{
    tt_ctx *ctx = tt_graph_get_ctx(g);
    if (tti_is_stuck(ctx))
        return ctx == NULL ? TT_EINVAL : tt_status_of(ctx);
    r->n_updates = 0;
    r->norm = r->applied = r->used_scale = NULL;
    if (tti_optimizer_of(r->optimizer->kind) == NULL)
        return TT_FAIL(ctx, TT_EINVAL, "optimizer: there is no kind %d", (int)r->optimizer->kind);
    int64_t n_nodes = g->n_nodes;
    const tti_loss_scale *ls = r->loss_scale;
    builder b = {.g = g,
                 .r = r,
                 .p = ls == NULL ? r->p : tt_div(g, r->p, ls->scale),
                 .guard = r->guard || ls != NULL,
                 .guard_gradients = r->guard_gradients || ls != NULL};
    b.squares = tti_calloc(ctx, (size_t)r->n + 1, sizeof(tt_tensor *));
    b.largest = tti_calloc(ctx, (size_t)(r->n + r->n_others) + 1, sizeof(tt_tensor *));
    tt_status st = b.squares == NULL || b.largest == NULL ? TT_ENOMEM : build_all(&b);
    tti_free(ctx, b.squares);
    tti_free(ctx, b.largest);
    if (st != TT_OK)
        tti_graph_truncate(g, n_nodes);
    return st;
}
