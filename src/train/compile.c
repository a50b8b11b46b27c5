/*
 * compile.c - tt_compile(): layers again for training, loss, gradients, updates.
 *
 * Gradients are sums over rows of terms seeded with 1 / P, P the power of two not below the number
 * of terms, so no bit is lost and nothing is divided per lane; the update multiplies by P / count.
 * With several losses each has its own count, so its seed is weight / count and P is 1.
 */
#include "train/compile.h"
#include "base/ctx.h"
#include "op/op.h"
#include "op/residual.h"
#include "strategy/strategy.h"
#include "train/use.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

double tti_power_of_two(double n)
{
    double p = 1;
    while (p < n)
        p *= 2;
    return p;
}

// ---- options ---------------------------------------------------------------------------------

// Texts of the options are copied behind each other.
static tt_status keep_texts(tti_step *s)
{
    tt_ctx *ctx = s->model->ctx;
    const char **at[4 + 4 * TT_MAX_LOSSES + TT_MAX_GROUPS + 2 * TT_MAX_OWN_METRICS];
    int n = 0;
    at[n++] = &s->opts.freeze;
    at[n++] = &s->opts.recompute;
    at[n++] = &s->rule.o.no_decay;
    at[n++] = &s->rule.schedule.pieces;
    for (int i = 0; i < s->n_losses; i++) {
        at[n++] = &s->given_losses[i].output;
        at[n++] = &s->given_losses[i].target;
        at[n++] = &s->given_losses[i].sample_weight;
        at[n++] = &s->given_losses[i].class_weight;
    }
    for (int i = 0; i < s->rule.n_groups; i++)
        at[n++] = &s->rule.groups[i].match;
    for (int i = 0; i < s->n_own_metrics; i++) {
        at[n++] = &s->own_metrics[i].name;
        at[n++] = &s->own_metrics[i].output;
    }
    size_t bytes = 1;
    for (int i = 0; i < n; i++)
        bytes += *at[i] != NULL ? strlen(*at[i]) + 1 : 0;
    char *to = s->texts = tti_alloc(ctx, bytes);
    if (to == NULL)
        return TT_ENOMEM;
    for (int i = 0; i < n; i++) {
        if (*at[i] == NULL)
            continue;
        size_t length = strlen(*at[i]) + 1;
        memcpy(to, *at[i], length);
        *at[i] = to;
        to += length;
    }
    return TT_OK;
}

// One loss is a list of one.
static tt_status read_losses(tti_step *s)
{
    tt_ctx *ctx = s->model->ctx;
    tt_compile_opts *o = &s->opts;
    TT_TRY(TTI_OPTS_LIST(ctx, "compile: loss", o->losses, s->given_losses, &s->n_losses));
    if (s->n_losses > 0 && o->loss != TT_LOSS_NONE)
        return TT_FAIL(ctx, TT_EINVAL, "compile: give either loss or losses, not both");
    if (s->n_losses == 0 && o->loss == TT_LOSS_NONE)
        return TT_FAIL(ctx, TT_EINVAL, "compile: a loss must be given");
    if (s->n_losses == 0) {
        s->given_losses[0] = *tt_loss(.kind = o->loss);
        o->losses[0] = &s->given_losses[0];
        s->n_losses = 1;
        o->loss = TT_LOSS_NONE;
    }
    return TT_OK;
}

static tt_status read_options(tti_step *s, const tt_compile_opts *opts)
{
    tt_ctx *ctx = s->model->ctx;
    s->opts = *opts;
    tt_compile_opts *o = &s->opts;
    TT_TRY(read_losses(s));
    TT_TRY(tti_rule_read(ctx, o->optimizer, &s->rule));
    o->optimizer = &s->rule.o;
    TT_TRY(TTI_OPTS_LIST(ctx, "compile: own metric", o->own_metrics, s->own_metrics,
                         &s->n_own_metrics));
    if (o->top_k == 0)
        o->top_k = 5;
    if (o->top_k < 1)
        return TT_FAIL(ctx, TT_EINVAL, "compile: top_k is %d; it must be at least 1", o->top_k);
    if (o->thresholds == 0)
        o->thresholds = 200;
    if (o->thresholds < 2 || o->thresholds > 4096)
        return TT_FAIL(ctx, TT_EINVAL, "compile: thresholds is %d; it must be 2 to 4096",
                       o->thresholds);
    if (o->threshold == 0)
        o->threshold = 0.5;
    if (!(o->threshold > 0 && o->threshold < 1))
        return TT_FAIL(ctx, TT_EINVAL, "compile: threshold is %g; it must be above 0 and below 1",
                       o->threshold);
    if (o->precision < TT_PRECISION_F32 || o->precision > TT_PRECISION_F16)
        return TT_FAIL(ctx, TT_EINVAL, "compile: there is no precision %d", (int)o->precision);
    TT_TRY(tti_own_metrics_check(ctx, s->own_metrics, s->n_own_metrics));
    TT_TRY(keep_texts(s));
    memcpy(s->losses, s->given_losses, sizeof(s->losses));
    for (int i = 0; i < s->n_losses; i++)
        s->losses[i].weight = tti_or_default(s->losses[i].weight, 1);
    TT_TRY(tti_rule_fill(ctx, &s->rule));
    return tti_metrics_read(s);
}

// ---- gradients and updates -------------------------------------------------------------------

static tt_tensor *scalar_feed(tt_graph *g, const char *name)
{
    return tt_feed(g, .shape = TT_SCALAR, .name = name);
}

// What is derived: the loss's sum, or with several losses the sum of each times its seed.
static tt_tensor *build_total(tti_step *s)
{
    tt_graph *g = s->graph;
    if (s->n_losses == 1)
        return s->train.terms[0].sum;
    tt_tensor *total = NULL;
    for (int i = 0; i < s->n_losses; i++) {
        const tti_loss_terms *t = &s->train.terms[i];
        tt_tensor *seed;
        if (t->count != NULL) {
            double least = t->is_weighted ? 1e-30 : 1; // of a batch in which nothing counts
            seed = tt_div(g, tt_scalar(g, s->losses[i].weight),
                          tt_maximum(g, t->count, tt_scalar(g, least)));
        } else {
            char name[32];
            memcpy(name, "train/seed_0", 13);
            name[11] = (char)('0' + i);
            seed = s->loss_seed[i] = scalar_feed(g, name);
        }
        tt_tensor *part = tt_mul(g, t->sum, seed);
        total = total == NULL ? part : tt_add(g, total, part);
    }
    return total;
}

static tt_status find_weights(tti_step *s)
{
    tt_model *m = s->model;
    size_t n = (size_t)m->n_weights + 1;
    s->vars = tti_calloc(m->ctx, n, sizeof(*s->vars));
    s->grads = tti_calloc(m->ctx, n, sizeof(*s->grads));
    s->names = tti_calloc(m->ctx, n, sizeof(*s->names));
    if (s->vars == NULL || s->grads == NULL || s->names == NULL)
        return TT_ENOMEM;
    for (int64_t i = 0; i < m->n_weights; i++) {
        const tti_weight *w = &m->weights[i];
        if (!w->trains || tti_match(s->opts.freeze, w->name))
            continue;
        s->names[s->n_weights] = w->name;
        s->vars[s->n_weights++] = w->train_var;
    }
    if (s->n_weights == 0)
        return TT_FAIL(m->ctx, TT_EINVAL, "compile: there is no weight to train");
    return TT_OK;
}

// With layer_decay, the factor of each weight: by layers that have weights to train, from the last.
static tt_status find_scales(tti_step *s)
{
    tt_model *m = s->model;
    double decay = s->rule.o.layer_decay, scale = 1;
    if (decay == 0)
        return TT_OK;
    s->scales = tti_calloc(m->ctx, (size_t)s->n_weights, sizeof(*s->scales));
    if (s->scales == NULL)
        return TT_ENOMEM;
    const tti_layer *above = NULL;
    int at = s->n_weights - 1;
    for (int64_t i = m->n_weights - 1; i >= 0 && at >= 0; i--) {
        const tti_weight *w = &m->weights[i];
        if (w->name != s->names[at])
            continue;
        if (above != NULL && w->layer != above)
            scale *= decay;
        above = w->layer;
        s->scales[at--] = scale;
    }
    return TT_OK;
}

// Gradients that replicas send each other in a narrower type leave residuals.
static tt_status build_residuals(tti_step *s)
{
    tt_ctx *ctx = s->model->ctx;
    tti_mesh mesh;
    if (ctx->top.spread.wire == TT_F32)
        return TT_OK;
    TT_TRY(ctx->top.strategy->mesh(&ctx->top, s->graph, &mesh));
    int replicas = tti_mesh_size(&mesh, TTI_AXIS_DATA);
    for (int i = 0; replicas > 1 && i < s->n_weights; i++) {
        const tt_tensor *grad = s->grads[i];
        if (grad == NULL || grad->layout.kind != TT_LAYOUT_PARTIAL || grad->dtype != TT_F32 ||
            tt_shape_count(&grad->shape) < TTI_RESIDUAL_BLOCK)
            continue; // of little, or added after its sums: sent as it is
        char name[TTI_NAME_MAX + 16];
        snprintf(name, sizeof(name), "%s/residual", s->names[i]);
        s->targets[s->n_targets] = tti_residual(s->graph, s->grads[i], replicas, name);
        if (s->targets[s->n_targets++] == NULL)
            return tt_status_of(ctx);
    }
    return TT_OK;
}

static tt_status build_updates(tti_step *s, tt_tensor **states, int n_states)
{
    tt_model *m = s->model;
    tt_graph *g = s->graph;
    TT_TRY(find_weights(s));
    TT_TRY(find_scales(s));
    tt_tensor *total = build_total(s);
    s->inv_p = scalar_feed(g, "train/inverse_p");
    s->p = scalar_feed(g, "train/p");
    bool known = s->n_losses > 1 || s->train.terms[0].count == NULL;
    s->count = known ? scalar_feed(g, "train/count") : NULL;
    tt_tensor *seed = s->inv_p;
    bool scaled = s->opts.precision == TT_PRECISION_F16;
    if (scaled) {
        TT_TRY(tti_loss_scale_make(g, &s->loss_scale));
        seed = tt_mul(g, seed, s->loss_scale.scale);
    }
    TT_TRY(tt_grad(g, total, seed, s->n_weights, s->vars, s->grads));
    s->cap_targets = 3 * s->n_weights + 1 + n_states;
    s->targets = tti_calloc(m->ctx, (size_t)s->cap_targets + 1, sizeof(*s->targets));
    s->checks = tti_calloc(m->ctx, (size_t)(s->n_weights + n_states) + 1, sizeof(*s->checks));
    s->states = tti_calloc(m->ctx, 2 * (size_t)n_states + 1, sizeof(*s->states));
    if (s->targets == NULL || s->checks == NULL || s->states == NULL)
        return TT_ENOMEM;
    tt_tensor **values = s->states + n_states; // what the running statistics follow
    for (int i = 0; i < n_states; i++) {
        const tt_node *n = states[i] == NULL ? NULL : states[i]->node;
        if (n == NULL || n->n_in < 2 || !tti_is_variable(n->in[0]) ||
            (n->in[1]->dtype != TT_F32 && n->in[1]->dtype != TT_F64))
            continue;
        values[s->n_states] = n->in[1];
        s->states[s->n_states++] = n->in[0];
    }
    tti_updates_request r = {.optimizer = &s->rule.o,
                             .n = s->n_weights,
                             .names = s->names,
                             .scales = s->scales,
                             .vars = s->vars,
                             .grads = s->grads,
                             .loss_sum = total,
                             .count = known ? s->count : s->train.terms[0].count,
                             .p = s->p,
                             .guard = s->guard,
                             .guard_gradients = s->guard,
                             .others = values,
                             .n_others = s->n_states,
                             .checks = s->checks,
                             .loss_scale = scaled ? &s->loss_scale : NULL,
                             .updates = s->targets};
    TT_TRY(tti_updates_build(g, &r));
    s->n_targets = r.n_updates;
    s->norm = r.norm;
    s->applied = r.applied;
    s->used_scale = r.used_scale;
    for (int i = 0; i < n_states; i++)
        s->targets[s->n_targets++] = tti_batch_norm_guard(g, states[i], s->applied);
    TT_TRY(build_residuals(s));
    return tt_status_of(m->ctx);
}

// Where a step's results go.
static tt_status lay_out(tti_step *s)
{
    tt_ctx *ctx = s->model->ctx;
    int64_t n = TTI_MAX(s->train.n_numbers, s->eval.n_numbers);
    s->room = tti_calloc(ctx, (size_t)n + 3, sizeof(*s->room));
    s->numbers = tti_calloc(ctx, (size_t)n + 1, sizeof(*s->numbers));
    s->epoch = tti_calloc(ctx, (size_t)n + 1, sizeof(*s->epoch));
    s->evaluated = tti_calloc(ctx, (size_t)n + 1, sizeof(*s->evaluated));
    s->fetches = tti_calloc(ctx, (size_t)s->train.n_sums + 3, sizeof(*s->fetches));
    if (s->room == NULL || s->numbers == NULL || s->epoch == NULL || s->fetches == NULL ||
        s->evaluated == NULL)
        return TT_ENOMEM;
    for (int i = 0; i < s->train.n_sums; i++) {
        const tti_sum *sum = &s->train.sums[i];
        s->fetches[s->n_fetches++] =
            (tt_fetch){sum->tensor, s->room + sum->at, (size_t)sum->size * sizeof(float)};
    }
    tt_tensor *more[] = {s->norm, s->applied, s->used_scale};
    for (int i = 0; i < TTI_COUNT(more); i++)
        if (more[i] != NULL)
            s->fetches[s->n_fetches++] =
                (tt_fetch){more[i], s->room + s->train.n_numbers + i, sizeof(float)};
    return TT_OK;
}

// ---- life ------------------------------------------------------------------------------------

void tti_step_free(tt_model *m)
{
    tti_step *s = m->step;
    if (s == NULL)
        return;
    tt_ctx *ctx = m->ctx;
    m->step = NULL;
    tt_graph_free(s->graph);
    void *blocks[] = {s->checks,       s->states,       s->texts,    s->train.sums, s->eval.sums,
                      s->vars,         s->grads,        s->names,    s->targets,    s->room,
                      s->scales,       s->numbers,      s->epoch,    s->fetches,    s->profile,
                      s->profile_json, s->device_times, s->evaluated};
    for (int i = 0; i < TTI_COUNT(blocks); i++)
        tti_free(ctx, blocks[i]);
    tti_free(ctx, s);
}

// The type in which the training graph computes; weights, losses and metrics stay in f32.
static tt_status set_precision(tti_step *s)
{
    static const tt_dtype types[] = {TT_F32, TT_BF16, TT_F16};
    tt_model *m = s->model;
    m->compute = types[s->opts.precision];
    for (int i = 0; i < m->n_inputs && m->compute != TT_F32; i++)
        if (m->inputs[i]->out->dtype == TT_F64)
            return TT_FAIL(m->ctx, TT_EDTYPE, "compile: precision %s, but input '%s' is f64",
                           tt_dtype_name(m->compute), m->inputs[i]->name);
    return TT_OK;
}

static tt_status build(tti_step *s, bool hashes)
{
    tt_model *m = s->model;
    tt_tensor **states = NULL;
    int n_states = 0;
    s->graph = tt_graph_new(m->ctx);
    if (s->graph == NULL)
        return tt_status_of(m->ctx);
    tti_disown(m->ctx, &s->graph->owned); // it goes with the model
    TT_TRY(set_precision(s));
    tt_status st = tti_model_build_training(m, s->graph, &states, &n_states);
    if (st == TT_OK)
        st = tti_scores_build(s, &s->train, s->graph, true);
    if (st == TT_OK)
        st = build_updates(s, states, n_states);
    TT_TRY(st);
    TT_TRY(tti_scores_build(s, &s->eval, m->graph, false));
    TT_TRY(lay_out(s));
    s->session = tt_session_new(s->graph, .trace = s->traced, .hashes = hashes, .store = m->store,
                                .recompute = s->opts.recompute, .bucket_hook = s->opts.bucket_hook,
                                .bucket_user = s->opts.bucket_user);
    return tt_status_of(m->ctx);
}

static tt_status compile(tt_model *m, const tt_compile_opts *opts, bool guard, bool traced,
                         bool hashes)
{
    tti_step *s = tti_calloc(m->ctx, 1, sizeof(*s));
    if (s == NULL)
        return TT_ENOMEM;
    s->model = m;
    s->guard = guard;
    s->traced = traced;
    s->lr_factor = 1;
    s->few_rows = tti_few_rows(m);
    tt_status st = read_options(s, opts);
    tti_step *old = m->step;
    m->step = s;
    m->free_step = tti_step_free;
    if (st == TT_OK)
        st = build(s, hashes);
    if (st != TT_OK) {
        tti_step_free(m);
        m->step = old;
        return st;
    }
    if (old != NULL) {
        s->step = old->step;
        s->unapplied = old->unapplied;
        s->epochs = old->epochs;
        m->step = old;
        tti_step_free(m);
        m->step = s;
        return tti_begin_averages(m);
    }
    return TT_OK;
}

tt_status tti_compile_again(tt_model *m, bool guard, bool traced, bool hashes)
{
    tt_compile_opts opts = m->step->opts;
    return compile(m, &opts, guard, traced, hashes);
}

tt_status tti_compile_try(tt_model *m, tt_precision precision, void (*fn)(void *), void *arg)
{
    tti_step *step = m->step;
    tt_dtype type = m->compute;
    tt_compile_opts opts = step->opts;
    size_t n = (size_t)(m->n_layers + m->n_weights);
    tt_tensor **was = tti_calloc(m->ctx, n + 1, sizeof(*was));
    if (was == NULL)
        return TT_ENOMEM;
    for (int64_t i = 0; i < m->n_layers; i++)
        was[i] = m->layers[i]->train_out;
    for (int64_t i = 0; i < m->n_weights; i++)
        was[m->n_layers + i] = m->weights[i].train_var;
    opts.precision = precision;
    m->step = NULL; // so that it outlives this
    tt_status st = compile(m, &opts, step->guard, false, false);
    if (st == TT_OK)
        fn(arg);
    tti_step_free(m);
    m->step = step;
    m->compute = type;
    m->n_updates = 0;
    for (int64_t i = 0; i < m->n_layers; i++)
        m->layers[i]->train_out = was[i];
    for (int64_t i = 0; i < m->n_weights; i++)
        m->weights[i].train_var = was[m->n_layers + i];
    tti_free(m->ctx, was);
    return st;
}

tt_status tt_compile_with(tt_model *m, const tt_compile_opts *opts)
{
    if (m == NULL)
        return TT_EINVAL;
    if (opts != NULL && tti_is_stuck(m->ctx))
        return tt_status_of(m->ctx);
    TTI_OPTS_OWN(m->ctx, "compile", tt_compile_opts, opts);
    if (opts == NULL)
        return TT_EINVAL;
    TT_TRY(compile(m, opts, true, false, false));
    return tti_note_train(m, 0, 0);
}

tt_session *tt_model_get_session(tt_model *m)
{
    return m == NULL || m->step == NULL ? NULL : m->step->session;
}

tt_graph *tt_model_get_train_graph(tt_model *m)
{
    return m == NULL || m->step == NULL ? NULL : m->step->graph;
}

tt_status tt_model_hash(tt_model *m, tt_hash *out)
{
    if (m == NULL)
        return TT_EINVAL;
    if (out == NULL)
        return TT_FAIL(m->ctx, TT_EINVAL, "model hash: the room for it is NULL");
    tt_session *s = tti_model_session(m);
    return s == NULL ? tt_status_of(m->ctx) : tt_weight_hash(s, out);
}
