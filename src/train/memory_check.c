/*
 * memory_check.c - whether a training step, with validation beside it, fits the memory of its
 * devices; known before the first step from trial plans. What does not fit is refused with advice
 * (advice.c).
 */
#include "train/memory_check.h"
#include "base/ctx.h"
#include "device/device.h"
#include <stdio.h>
#include <string.h>

// ---- trials ----------------------------------------------------------------------------------

static tt_status try_step(tt_model *m, const tti_variant *v, int64_t rows, tti_need *out,
                          tti_homes *homes)
{
    tti_step *s = m->step;
    int n = s->n_fetches + s->n_targets;
    tt_tensor **list = tti_step_targets(m);
    if (list == NULL)
        return TT_ENOMEM;
    tti_trial t = {.targets = list,
                   .n_targets = n,
                   .n_fetched = s->n_fetches,
                   .rows = rows,
                   .micro = (int)v->accumulate,
                   .recompute = v->recompute,
                   .top = v->top,
                   .homes = homes};
    tt_status st = tti_session_try(s->session, &t, out);
    tti_free(m->ctx, list);
    return st;
}

static tt_status try_validation(tt_model *m, const tti_variant *v, int64_t rows, tti_need *out,
                                const tti_homes *homes)
{
    const tti_scores *sc = &m->step->eval;
    if (tti_model_session(m) == NULL)
        return tt_status_of(m->ctx);
    tt_tensor **list = tti_calloc(m->ctx, (size_t)sc->n_sums + 1, sizeof(*list));
    if (list == NULL)
        return TT_ENOMEM;
    for (int i = 0; i < sc->n_sums; i++)
        list[i] = sc->sums[i].tensor;
    tti_trial t = {.targets = list,
                   .n_targets = sc->n_sums,
                   .n_fetched = sc->n_sums,
                   .rows = rows,
                   .micro = (int)v->accumulate,
                   .top = v->top,
                   .follow = homes};
    tt_status st = tti_session_try(m->session, &t, out);
    tti_free(m->ctx, list);
    return st;
}

// Rows of a last batch that is smaller. Its plan has memory beside the arena on GPUs only: 0.
static int64_t rest_of(const tt_ctx *ctx, int64_t records, int64_t rows)
{
    bool streams = false;
    for (int d = 0; d < ctx->top.n_devices; d++)
        streams |= tti_has_streams(ctx->top.devices[d]);
    return streams && records > rows ? records % rows : 0;
}

static void add_rest(tti_need *out, const tti_need *rest, int n)
{
    for (int d = 0; d < n; d++)
        out[d].arena += rest[d].fixed;
}

void tti_needs_free(tt_ctx *ctx, tti_needs *n)
{
    tti_free(ctx, n->step);
    *n = (tti_needs){NULL, NULL};
}

tt_status tti_variant_try(tt_model *m, const tti_variant *v, const tti_load *l, tti_needs *out)
{
    int64_t rows = v->batch * v->accumulate, rest = rest_of(m->ctx, l->records, rows);
    int n = v->top->n_devices;
    tti_need *needs = tti_calloc(m->ctx, 3 * (size_t)n, sizeof(*needs)), *more = needs + 2 * n;
    tti_homes homes = {0};
    if (needs == NULL)
        return TT_ENOMEM;
    *out = (tti_needs){needs, needs + n};
    tt_status st = try_step(m, v, TTI_MIN(rows, l->records), out->step, &homes);
    if (st == TT_OK && rest > 0) {
        st = try_step(m, v, rest, more, NULL);
        add_rest(out->step, more, n);
    }
    if (st == TT_OK && l->validate_records > 0)
        st = try_validation(m, v, TTI_MIN(rows, l->validate_records), out->validation, &homes);
    rest = rest_of(m->ctx, l->validate_records, rows);
    if (st == TT_OK && rest > 0) {
        st = try_validation(m, v, rest, more, &homes);
        add_rest(out->validation, more, n);
    }
    tti_free(m->ctx, homes.v);
    if (st != TT_OK)
        tti_needs_free(m->ctx, out);
    return st;
}

// What validation takes of a device while the step's memory stays.
static size_t beside(const tti_need *validation)
{
    return validation->arena + validation->added;
}

size_t tti_need_of(const tti_need *step, const tti_need *validation)
{
    return step->variables + step->arena + step->others + beside(validation);
}

bool tti_is_host(const tt_ctx *ctx, int d)
{
    const tti_device *dev = ctx->top.devices[d];
    return dev->limit == 0 && dev->backend->host_memory && !dev->is_away;
}

tti_variant tti_variant_now(const tt_model *m, const tti_load *l, const tti_topology *top)
{
    return (tti_variant){.batch = l->batch,
                         .accumulate = l->accumulate,
                         .recompute = m->step->opts.recompute,
                         .top = top};
}

// ---- checks ----------------------------------------------------------------------------------

tt_status tti_memory_validation(tt_model *m, const tti_load *l, size_t *bytes)
{
    tti_needs need;
    tti_variant v = tti_variant_now(m, l, &m->ctx->top);
    TT_TRY(tti_variant_try(m, &v, l, &need));
    for (int d = 0; d < m->ctx->top.n_devices; d++)
        bytes[d] = beside(&need.validation[d]);
    tti_needs_free(m->ctx, &need);
    return TT_OK;
}

// The same of CPUs without a limit, together.
static tt_status check_host(tt_model *m, const tti_load *l, const tti_topology *top,
                            const tti_need *step, const tti_need *more)
{
    tt_ctx *ctx = m->ctx;
    size_t host = 0, validation = 0;
    char text[256], size[32], memory[32];
    for (int d = 0; d < ctx->top.n_devices; d++) {
        host += tti_is_host(ctx, d) ? tti_need_of(&step[d], &more[d]) : 0;
        validation += tti_is_host(ctx, d) ? beside(&more[d]) : 0;
    }
    if (ctx->top.host_memory == 0 || host <= ctx->top.host_memory)
        return TT_OK;
    tti_size_text((double)host, size);
    tti_size_text((double)ctx->top.host_memory, memory);
    snprintf(text, sizeof(text),
             "training needs %s (%zu bytes, %zu of them for validation), more than the %s (%zu "
             "bytes) of memory that %s",
             size, host, validation, memory, ctx->top.host_memory,
             ctx->top.is_host_group ? "this process's control group allows" : "this machine has");
    return tti_refuse(m, l, top, true, text);
}

static tt_status check_each(tt_model *m, const tti_load *l, const tti_topology *top,
                            const tti_need *step, const tti_need *more)
{
    char text[256];
    for (int d = 0; d < m->ctx->top.n_devices; d++) {
        size_t need = tti_need_of(&step[d], &more[d]);
        if (step[d].limit == 0 || need <= step[d].limit)
            continue;
        char validation[64] = "";
        if (beside(&more[d]) > 0)
            snprintf(validation, sizeof(validation), ", and validation %zu more", beside(&more[d]));
        snprintf(text, sizeof(text), "%s: training needs %zu bytes%s, more than its limit of %zu",
                 m->ctx->top.devices[d]->name, need - beside(&more[d]), validation, step[d].limit);
        return tti_refuse(m, l, top, false, text);
    }
    return check_host(m, l, top, step, more);
}

// The step fits; a last batch of fewer rows, or validation, whose arena stands beside the step's,
// may not.
static tt_status check_validation(tt_model *m, const tti_load *l, const tti_topology *top)
{
    tti_needs need;
    tti_variant v = tti_variant_now(m, l, top);
    if (l->validate_records == 0 && rest_of(m->ctx, l->records, l->batch * l->accumulate) == 0)
        return TT_OK;
    TT_TRY(tti_variant_try(m, &v, l, &need));
    tt_status st = check_each(m, l, top, need.step, need.validation);
    tti_needs_free(m->ctx, &need);
    return st;
}

/*
 * GPUs without a limit have what is free of them, devices of one GPU in equal parts. NULL: there
 * are none; else the name of one.
 */
static const char *limit_gpus(const tt_ctx *ctx, tti_topology *top)
{
    const char *who = NULL;
    for (int d = 0; d < ctx->top.n_devices && ctx->top.n_tasks < 2; d++) {
        const tti_device *dev = ctx->top.devices[d];
        size_t all = 0, n = 0;
        tti_facts facts;
        if (!tti_has_streams(dev) || dev->limit > 0)
            continue;
        dev->backend->facts(dev->card, &facts);
        for (int k = 0; k < ctx->top.n_devices; k++) {
            const tti_device *other = ctx->top.devices[k];
            bool shares = other->backend == dev->backend && other->card == dev->card;
            all += shares ? atomic_load(&other->used) : 0;
            n += shares;
        }
        top->limit[d] = facts.memory_free > 0 ? (facts.memory_free + all) / n : 0;
        who = top->limit[d] > 0 ? dev->name : who;
    }
    return who;
}

// A refusal is told once, with advice: it is the attempt's.
static tt_status plan_step(tt_model *m, const tti_load *l, const tti_topology *top,
                           tti_attempt *attempt)
{
    tt_ctx *ctx = m->ctx;
    tt_tensor **list = tti_step_targets(m);
    if (list == NULL)
        return TT_ENOMEM;
    const tti_step *s = m->step;
    tti_attempt_begin(ctx, attempt);
    tt_status st = tti_session_plan(s->session, top, list, s->n_fetches + s->n_targets,
                                    s->n_fetches, TTI_MIN(l->batch * l->accumulate, l->records),
                                    (int)l->accumulate, l->is_dry);
    tt_status error = tti_attempt_end(ctx, attempt);
    st = error != TT_OK ? error : st;
    tti_free(ctx, list);
    return st != TT_OK && st != TT_ELIMIT ? tti_attempt_raise(ctx, attempt) : st;
}

/*
 * Might CPUs without a limit need more than the machine has? A bound from above that takes no plan:
 * every tensor of the training graph at once, those without rows (weights, sums of gradients) once
 * for every lane and device, and as much again for scratch.
 */
static bool may_exceed(tt_model *m, const tti_load *l)
{
    const tt_ctx *ctx = m->ctx;
    const tt_graph *g = m->step->graph;
    double bytes = 0, rows = (double)l->batch * (double)l->accumulate;
    bool has_host = false;
    for (int d = 0; d < ctx->top.n_devices; d++)
        has_host |= tti_is_host(ctx, d);
    for (int64_t i = 0; has_host && i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i]->n_out; k++) {
            const tt_tensor *t = g->nodes[i]->outs[k];
            double n = (double)tt_dtype_bytes(t->dtype);
            bool is_open = false;
            for (int a = 0; a < t->shape.rank; a++) {
                double dim = (double)t->shape.dim[a];
                is_open |= dim < 0;
                n *= dim < 0 ? -dim * rows : dim;
            }
            bytes += is_open ? n : n * (ctx->top.lanes + ctx->top.n_devices);
        }
    return has_host && ctx->top.host_memory > 0 && 2 * bytes > (double)ctx->top.host_memory;
}

// top: the context's, but for what GPUs without a limit may have, of which who is one.
static tt_status check_on(tt_model *m, const tti_load *l, const tti_topology *top, const char *who)
{
    tt_ctx *ctx = m->ctx;
    bool limited = false, is_tight = may_exceed(m, l);
    for (int d = 0; d < ctx->top.n_devices; d++)
        limited |= ctx->top.devices[d]->limit > 0;
    if (!limited && who == NULL && !is_tight)
        return TT_OK;
    tti_attempt attempt;
    tt_status st = plan_step(m, l, top, &attempt);
    if (st == TT_OK) // what validation takes may count
        is_tight = is_tight && m->step->session->plans->host_need > top->host_memory / 2;
    if (st == TT_OK && (limited || is_tight)) {
        st = check_validation(m, l, top);
    } else if (st == TT_ELIMIT) {
        tti_text t = {.ctx = ctx};
        tti_text_add(&t, "%s", attempt.message);
        if (who != NULL)
            tti_text_add(&t, "\n(without a limit of its own, a GPU is limited to its free memory)");
        char *message = tti_text_take(&t);
        st = tti_refuse(m, l, top, who != NULL || (is_tight && !limited),
                        message != NULL ? message : "");
        tti_free(ctx, message);
    }
    return st;
}

tt_status tti_memory_check(tt_model *m, const tti_load *l)
{
    tti_topology top;
    TT_TRY(tti_topology_copy(m->ctx, m->step->session->top, &top));
    const char *who = limit_gpus(m->ctx, &top);
    tt_status st = check_on(m, l, &top, who);
    tti_topology_free(m->ctx, &top);
    return st;
}
