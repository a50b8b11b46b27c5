/*
 * accumulate.c - one update from several runs, each of some of the lanes.
 *
 * A micro-step gives, for every sum over rows, one partial per maximal sub-tree of its lanes. They
 * go on a stack, and the two topmost are added while they are siblings in the tree over lane
 * numbers: what is left in the end is the same sum, to the bit, that a run of all lanes makes. The
 * update then runs in a graph of its own into which the sums are fed. What a gradient does with
 * sums after the tree (a weight used twice adds those of both uses) is built there again.
 */
#include "base/ctx.h"
#include "plan/plan.h"
#include "train/compile.h"
#include <math.h>
#include <string.h>

struct tti_accumulator {
    int64_t accumulate;
    tt_graph *graph; // the update
    tt_session *session;
    tt_tensor **targets;
    int n_targets;
    // Sums that gradients are made of: in the step graph, and where they are fed.
    tt_tensor **leaves, **feeds;
    int64_t n_leaves, cap_leaves, cap_feeds;
    tt_tensor *loss_sum, *count, *p, *norm, *applied;
    tt_feed_value *feed_values;

    // All sums of a micro-step side by side: scores, then gradients. fetches of the step graph.
    int n; // sums
    tt_tensor **tensors;
    int64_t *sizes; // elements of each
    int64_t total;  // elements of all
    tt_fetch *fetches;
    float *room;       // room_parts times total: where a run's partials go
    float *stack_room; // entry i of the stack is its i-th piece
    int room_parts, stack_parts;
    tti_part stack[64];
    int depth;
};

void tti_accumulator_free(tt_ctx *ctx, tti_accumulator *a)
{
    if (a == NULL)
        return;
    tt_graph_free(a->graph);
    void *blocks[] = {a->leaves, a->feeds,   a->targets, a->feed_values, a->tensors,
                      a->sizes,  a->fetches, a->room,    a->stack_room};
    for (int i = 0; i < TTI_COUNT(blocks); i++)
        tti_free(ctx, blocks[i]);
    tti_free(ctx, a);
}

// ---- the update's own graph ------------------------------------------------------------------

static tt_tensor *same_variable(tt_graph *g, const tt_tensor *var)
{
    const tti_variable_attr *v = var->node->attr;
    return tt_variable(g, .dtype = v->dtype, .shape = v->shape,
                       .init = {(tt_init_kind)v->init, v->a, v->b}, .name = var->node->name);
}

// A sum over rows is fed.
static tt_tensor *feed_leaf(tti_accumulator *a, tt_tensor *t)
{
    tt_ctx *ctx = tt_graph_get_ctx(a->graph);
    for (int64_t i = 0; i < a->n_leaves; i++)
        if (a->leaves[i] == t)
            return a->feeds[i];
    if (!tti_grow(ctx, &a->leaves, &a->cap_leaves, a->n_leaves + 1, sizeof(*a->leaves)) ||
        !tti_grow(ctx, &a->feeds, &a->cap_feeds, a->n_leaves + 1, sizeof(*a->feeds)))
        return NULL;
    a->leaves[a->n_leaves] = t;
    return a->feeds[a->n_leaves++] = tt_feed(a->graph, .shape = t->shape, .dtype = t->dtype);
}

// The tensor of the step graph in the update's graph; what comes after sums is built again.
static tt_tensor *rebuild(tti_accumulator *a, tt_tensor *t)
{
    const tt_node *n = t->node;
    tt_graph *g = a->graph;
    tt_tensor *in[16];
    if (t->layout.kind == TT_LAYOUT_PARTIAL)
        return feed_leaf(a, t);
    if (tti_is_variable(t))
        return same_variable(g, t);
    if (n->op == &tti_op_const)
        return tt_const(g, t->dtype, t->shape, n->data);
    if (n->op == &tti_op_feed || n->n_in > TTI_COUNT(in)) {
        (void)TT_FAIL(tt_graph_get_ctx(g), TT_EUNSUPPORTED,
                      "accumulate: a gradient needs '%s' after its sum over rows", n->name);
        return NULL;
    }
    for (int i = 0; i < n->n_in; i++) {
        in[i] = rebuild(a, n->in[i]);
        if (in[i] == NULL)
            return NULL;
    }
    tt_node *made = tt_node_new(g, n->op, n->n_in, in, n->attr, NULL);
    return made == NULL ? NULL : made->outs[t->index];
}

static tt_status build_update(tti_accumulator *a, tti_step *s)
{
    tt_ctx *ctx = s->model->ctx;
    tt_graph *g = a->graph = tt_graph_new(ctx);
    size_t n = (size_t)s->n_weights + 4;
    tt_tensor **vars = tti_calloc(ctx, 2 * n, sizeof(*vars)), **grads = vars + n;
    a->targets = tti_calloc(ctx, 2 * n, sizeof(*a->targets));
    tt_status st = TT_ENOMEM;
    if (g == NULL || vars == NULL || a->targets == NULL)
        goto done;
    tti_disown(ctx, &g->owned); // it goes with the model
    for (int i = 0; i < s->n_weights; i++) {
        vars[i] = same_variable(g, s->vars[i]);
        grads[i] = s->grads[i] != NULL ? rebuild(a, s->grads[i]) : NULL;
        if (tt_status_of(ctx) != TT_OK)
            goto failed;
    }
    a->feed_values = tti_calloc(ctx, (size_t)a->n_leaves + 4, sizeof(*a->feed_values));
    if (a->feed_values == NULL)
        goto failed;
    a->loss_sum = tt_feed(g, .shape = TT_SCALAR, .name = "loss_sum");
    a->count = tt_feed(g, .shape = TT_SCALAR, .name = "count");
    a->p = tt_feed(g, .shape = TT_SCALAR, .name = "p");
    tti_updates_request r = {.optimizer = &s->opts.optimizer,
                             .n = s->n_weights,
                             .names = s->names,
                             .vars = vars,
                             .grads = grads,
                             .loss_sum = a->loss_sum,
                             .count = a->count,
                             .p = a->p,
                             .guard = s->guard,
                             .updates = a->targets};
    st = tti_updates_build(g, &r);
    a->n_targets = r.n_updates;
    a->norm = r.norm;
    a->applied = r.applied;
    if (st == TT_OK)
        a->session = tt_session_new(g, .store = s->model->store);
    if (st == TT_OK && a->session == NULL)
        st = tt_status_of(ctx);
failed:
    st = tt_status_of(ctx);
done:
    tti_free(ctx, vars);
    return st;
}

// ---- sums of a micro-step --------------------------------------------------------------------

static tt_status lay_out(tti_accumulator *a, tti_step *s)
{
    tt_ctx *ctx = s->model->ctx;
    size_t n = (size_t)(s->train.n_sums + a->n_leaves + 1);
    a->tensors = tti_calloc(ctx, n, sizeof(*a->tensors));
    a->sizes = tti_calloc(ctx, n, sizeof(*a->sizes));
    a->fetches = tti_calloc(ctx, n, sizeof(*a->fetches));
    if (a->tensors == NULL || a->sizes == NULL || a->fetches == NULL)
        return TT_ENOMEM;
    for (int i = 0; i < s->train.n_sums; i++) {
        a->tensors[a->n] = s->train.sums[i].tensor;
        a->sizes[a->n++] = s->train.sums[i].size;
    }
    for (int64_t i = 0; i < a->n_leaves; i++) {
        a->tensors[a->n] = a->leaves[i];
        a->sizes[a->n++] = tt_shape_count(&a->leaves[i]->shape);
    }
    for (int i = 0; i < a->n; i++)
        a->total += a->sizes[i];
    return TT_OK;
}

// Room for n times all sums, kept once it is there.
static tt_status reserve(tti_accumulator *a, tt_ctx *ctx, float **room, int *have, int n)
{
    size_t bytes;
    if (n <= *have)
        return TT_OK;
    if (!tti_mul_size((size_t)a->total * sizeof(float), (size_t)n, &bytes))
        return TT_FAIL(ctx, TT_ENOMEM, "accumulate: the gradients are too large");
    float *grown = tti_realloc(ctx, *room, bytes);
    if (grown == NULL)
        return TT_ENOMEM;
    *room = grown;
    *have = n;
    return TT_OK;
}

static tt_status get_accumulator(tti_step *s, tti_accumulator **out)
{
    tt_ctx *ctx = s->model->ctx;
    if (s->accumulator == NULL) {
        tti_accumulator *a = tti_calloc(ctx, 1, sizeof(*a));
        tt_status st = a == NULL ? TT_ENOMEM : build_update(a, s);
        if (st == TT_OK)
            st = lay_out(a, s);
        if (st != TT_OK) {
            tti_accumulator_free(ctx, a);
            return st;
        }
        s->accumulator = a;
    }
    *out = s->accumulator;
    return TT_OK;
}

// ---- the tree --------------------------------------------------------------------------------

static void add_top(tti_accumulator *a)
{
    tti_part *part = &a->stack[--a->depth];
    float *low = a->stack_room + (a->depth - 1) * a->total, *high = low + a->total;
    for (int64_t i = 0; i < a->total; i++)
        low[i] = low[i] + high[i] + 0.0f;
    part[-1].size = 2 * TTI_MAX(part[-1].size, part->size);
}

// Part k of the run in room, which has n_parts of each sum, goes on the stack.
static void push(tti_accumulator *a, int k, int n_parts, tti_part part)
{
    float *to = a->stack_room + a->depth * a->total;
    const float *from = a->room;
    a->stack[a->depth++] = part;
    for (int i = 0; i < a->n; i++) {
        memcpy(to, from + k * a->sizes[i], (size_t)a->sizes[i] * sizeof(float));
        from += n_parts * a->sizes[i];
        to += a->sizes[i];
    }
    while (a->depth > 1 && a->stack[a->depth - 2].size == a->stack[a->depth - 1].size &&
           a->stack[a->depth - 2].first % (2 * a->stack[a->depth - 1].size) == 0)
        add_top(a);
}

static tt_status micro_step(tti_accumulator *a, tti_step *s, const void *const *fields,
                            tt_batch part, int64_t rows, const float *inv_p)
{
    tt_ctx *ctx = s->model->ctx;
    const void *at[TTI_MAX_FEEDS];
    for (int i = 0; i < s->train.n_feeds; i++) {
        tt_shape shape = tt_tensor_shape(s->train.feeds[i]);
        size_t row =
            (size_t)-tt_shape_count(&shape) * tt_dtype_bytes(tt_tensor_dtype(s->train.feeds[i]));
        at[i] = (const char *)fields[i] + (size_t)part.first_row * row;
    }
    tti_part parts[TTI_MAX_PARTS];
    int n_parts = tti_lane_parts(&part, rows, ctx->lanes, parts);
    TT_TRY(reserve(a, ctx, &a->room, &a->room_parts, n_parts));
    TT_TRY(reserve(a, ctx, &a->stack_room, &a->stack_parts, a->depth + n_parts));
    int64_t room = 0;
    for (int i = 0; i < a->n; i++) {
        size_t bytes = (size_t)(n_parts * a->sizes[i]) * sizeof(float);
        a->fetches[i] = (tt_fetch){a->tensors[i], a->room + room, bytes};
        room += n_parts * a->sizes[i];
    }
    int n = tti_scores_feed(&s->train, at, rows, s->feed_values);
    s->feed_values[n++] = (tt_feed_value){s->inv_p, inv_p, TT_SCALAR, TT_F32};
    float seeds[TT_MAX_LOSSES];
    for (int i = 0; i < s->n_losses; i++) {
        if (s->loss_seed[i] == NULL)
            continue;
        seeds[i] =
            (float)(s->losses[i].weight / (double)(part.global_rows * s->train.terms[i].per_row));
        s->feed_values[n++] = (tt_feed_value){s->loss_seed[i], &seeds[i], TT_SCALAR, TT_F32};
    }
    TT_TRY(tt_run(s->session, .feeds = s->feed_values, .n_feeds = n, .fetches = a->fetches,
                  .n_fetches = a->n, .batch = part, .step = s->step));
    unsigned saved = tti_fp_enter();
    for (int k = 0; k < n_parts; k++)
        push(a, k, n_parts, parts[k]);
    tti_fp_leave(saved);
    return TT_OK;
}

// ---- one update ------------------------------------------------------------------------------

static tt_status apply(tti_accumulator *a, tti_step *s, int64_t rows, float p, float lr,
                       bool *applied, double *norm)
{
    const float *sums = a->stack_room, *at = sums;
    for (int64_t i = 0; i < s->train.n_numbers; i++)
        s->numbers[i] = sums[i];
    at += s->train.n_numbers;
    int n = 0;
    for (int64_t i = 0; i < a->n_leaves; i++) {
        const tt_shape *shape = &a->feeds[i]->shape;
        a->feed_values[n++] = (tt_feed_value){a->feeds[i], at, *shape, TT_F32};
        at += tt_shape_count(shape);
    }
    const tti_loss_terms *terms = &s->train.terms[0];
    float loss = (float)tti_scores_loss(s, &s->train, s->numbers, rows), count = 1;
    if (s->n_losses == 1)
        count = terms->count != NULL ? sums[s->train.sums[1].at] : (float)(rows * terms->per_row);
    a->feed_values[n++] = (tt_feed_value){a->loss_sum, &loss, TT_SCALAR, TT_F32};
    a->feed_values[n++] = (tt_feed_value){a->count, &count, TT_SCALAR, TT_F32};
    a->feed_values[n++] = (tt_feed_value){a->p, &p, TT_SCALAR, TT_F32};
    float more[2] = {0, 1};
    tt_fetch fetches[2];
    int n_fetches = 0;
    if (a->norm != NULL)
        fetches[n_fetches++] = (tt_fetch){a->norm, &more[0], sizeof(float)};
    if (a->applied != NULL)
        fetches[n_fetches++] = (tt_fetch){a->applied, &more[1], sizeof(float)};
    TT_TRY(tt_run(a->session, .feeds = a->feed_values, .n_feeds = n, .fetches = fetches,
                  .n_fetches = n_fetches, .targets = a->targets, .n_targets = a->n_targets,
                  .step = s->step, .lr = lr));
    *norm = more[0];
    *applied = !isnan(more[1]);
    return TT_OK;
}

tt_status tti_accumulate_run(tt_model *m, const void *const *fields, int64_t rows,
                             int64_t accumulate, float lr, bool *applied, double *norm)
{
    tti_step *s = m->step;
    int64_t lanes = m->ctx->lanes;
    tti_accumulator *a;
    TT_TRY(get_accumulator(s, &a));
    a->depth = 0;
    double power =
        s->n_losses > 1 ? 1 : tti_power_of_two((double)(rows * s->train.terms[0].per_row));
    float p = (float)power;
    float inv_p = (float)((s->n_losses > 1 ? 1 : s->losses[0].weight) / power);
    for (int64_t j = 0; j < accumulate; j++) {
        int64_t first = j * lanes / accumulate * rows / lanes;
        int64_t end = (j + 1) * lanes / accumulate * rows / lanes;
        if (end > first)
            TT_TRY(
                micro_step(a, s, fields, (tt_batch){first, rows, (int)lanes}, end - first, &inv_p));
    }
    unsigned saved = tti_fp_enter();
    while (a->depth > 1) // the missing lanes are empty
        add_top(a);
    tti_fp_leave(saved);
    return apply(a, s, rows, p, lr, applied, norm);
}
