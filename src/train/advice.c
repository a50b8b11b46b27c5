/*
 * advice.c - a training step that does not fit a device's memory is refused before the first one,
 * with what would make it fit: recomputation, smaller parts, a smaller batch, more devices, bf16.
 *
 * Every number comes from a trial plan of the step as it would then be, with that of validation
 * beside it, so that what is said holds. Nothing is trained.
 */
#include "base/ctx.h"
#include "device/device.h"
#include "run/run.h"
#include "strategy/strategy.h"
#include "train/compile.h"
#include <stdio.h>
#include <string.h>

// A step as it might be.
typedef struct variant {
    int64_t batch, accumulate;
    const char *recompute;
    const tti_topology *top;
} variant;

typedef struct advisor {
    tt_model *model;
    const tti_load *load;
    const tti_topology *top; // as it is
    bool is_full; // the limit is all of a card or machine: more devices on it do not help
    tti_text text;
    int n; // pieces of advice so far
} advisor;

// ---- trials ----------------------------------------------------------------------------------

static tt_status try_step(tt_model *m, const variant *v, int64_t rows, tti_need *out,
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

static tt_status try_validation(tt_model *m, const variant *v, int64_t rows, tti_need *out,
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

static void add_rest(tti_need out[TTI_MAX_DEVICES], const tti_need rest[TTI_MAX_DEVICES])
{
    for (int d = 0; d < TTI_MAX_DEVICES; d++)
        out[d].arena += rest[d].fixed;
}

// Both; validation finds the weights where the step has them. Without validation it needs nothing.
static tt_status try_both(tt_model *m, const variant *v, const tti_load *l,
                          tti_need step[TTI_MAX_DEVICES], tti_need validation[TTI_MAX_DEVICES])
{
    int64_t rows = v->batch * v->accumulate, rest = rest_of(m->ctx, l->records, rows);
    tti_need more[TTI_MAX_DEVICES];
    tti_homes homes = {0};
    memset(validation, 0, sizeof(*validation) * TTI_MAX_DEVICES);
    tt_status st = try_step(m, v, TTI_MIN(rows, l->records), step, &homes);
    if (st == TT_OK && rest > 0) {
        st = try_step(m, v, rest, more, NULL);
        add_rest(step, more);
    }
    if (st == TT_OK && l->validate_records > 0)
        st = try_validation(m, v, TTI_MIN(rows, l->validate_records), validation, &homes);
    rest = rest_of(m->ctx, l->validate_records, rows);
    if (st == TT_OK && rest > 0) {
        st = try_validation(m, v, rest, more, &homes);
        add_rest(validation, more);
    }
    tti_free(m->ctx, homes.v);
    return st;
}

// What validation takes of a device while the step's memory stays.
static size_t beside(const tti_need *validation)
{
    return validation->arena + validation->added;
}

// All of a device while validation runs.
static size_t need_of(const tti_need *step, const tti_need *validation)
{
    return step->variables + step->arena + step->others + beside(validation);
}

// A CPU of this process without a limit: all of them share what the machine has.
static bool is_host(const tt_ctx *ctx, int d)
{
    const tti_device *dev = ctx->top.devices[d];
    return dev->limit == 0 && dev->backend->host_memory && !dev->is_away;
}

// Would it fit? *most: bytes on the device that is fullest. What cannot be planned does not fit.
static bool fits(advisor *a, const variant *v, size_t *most)
{
    tti_need step[TTI_MAX_DEVICES], validation[TTI_MAX_DEVICES];
    tt_ctx *ctx = a->model->ctx;
    if (try_both(a->model, v, a->load, step, validation) != TT_OK) {
        tt_clear_error(ctx);
        return false;
    }
    bool good = true;
    size_t host = 0;
    *most = 0;
    for (int d = 0; d < v->top->n_devices; d++) {
        size_t need = need_of(&step[d], &validation[d]);
        *most = TTI_MAX(*most, need);
        good &= step[d].limit == 0 || need <= step[d].limit;
        host += d < ctx->top.n_devices && is_host(ctx, d) ? need : 0;
    }
    return good && (ctx->top.host_memory == 0 || host <= ctx->top.host_memory);
}

// ---- advice ----------------------------------------------------------------------------------

static void say(advisor *a, const char *what, size_t bytes)
{
    tti_text_add(&a->text, "%s\n  %12zu  %s",
                 a->n++ == 0
                     ? "\nsettings that would fit, with the bytes needed on the fullest device:"
                     : "",
                 bytes, what);
}

static variant as_it_is(const advisor *a)
{
    return (variant){.batch = a->load->batch,
                     .accumulate = a->load->accumulate,
                     .recompute = a->model->step->opts.recompute,
                     .top = a->top};
}

// The same rows an update in more parts. With recompute, which the text then says too.
static void advise_accumulate(advisor *a, const char *recompute)
{
    variant v = as_it_is(a);
    int64_t rows = v.batch * v.accumulate, lanes = a->model->ctx->top.lanes;
    char what[96];
    size_t most;
    v.recompute = recompute != NULL ? recompute : v.recompute;
    for (int64_t k = a->load->accumulate + 1; k <= lanes; k++) {
        v.accumulate = k;
        v.batch = rows / k;
        if (lanes % k != 0 || rows % k != 0 || !fits(a, &v, &most))
            continue;
        snprintf(what, sizeof(what),
                 "%saccumulate: %lld, batch: %lld (same records per update, same bits)",
                 recompute != NULL ? "recompute: all, " : "", (long long)k, (long long)v.batch);
        say(a, what, most);
        return;
    }
}

// The largest batch, by halving.
static void advise_batch(advisor *a, const char *recompute)
{
    variant v = as_it_is(a);
    int64_t low = 0, high = v.batch; // low fits, high does not
    size_t most = 0, best = 0;
    char what[64];
    v.recompute = recompute != NULL ? recompute : v.recompute;
    while (high - low > 1) {
        v.batch = low == 0 && high == a->load->batch ? 1 : low + (high - low) / 2;
        if (!fits(a, &v, &most)) {
            high = v.batch;
            continue;
        }
        low = v.batch;
        best = most;
    }
    snprintf(what, sizeof(what), "%sbatch: %lld", recompute != NULL ? "recompute: all, " : "",
             (long long)low);
    if (low > 0)
        say(a, what, best);
}

static void size_text(size_t bytes, char out[32])
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB"};
    int u = 0;
    for (; u < 3 && bytes % 1024 == 0; u++)
        bytes /= 1024;
    snprintf(out, 32, "%zu%s", bytes, units[u]);
}

// Would it fit on n devices, no fewer than there are, all like the first?
static bool fits_on(advisor *a, int n, const tti_strategy *strategy, size_t *most)
{
    variant v = as_it_is(a);
    tti_topology other;
    bool same = n == a->top->n_devices;
    if (n < a->top->n_devices || (same && strategy == a->top->strategy))
        return false;
    if (same) {
        other = *a->top;
        other.made = NULL;
    } else if (tti_topology_make(a->model->ctx, a->top, 1, n, &other) != TT_OK) {
        return false;
    }
    other.strategy = strategy;
    v.top = &other;
    bool good = fits(a, &v, most);
    tti_topology_free(a->model->ctx, &other);
    return good;
}

// The fewest devices like the first with which a strategy's plan fits.
static void advise_devices(advisor *a, const char *strategy)
{
    static const int counts[] = {2, 3, 4, 6, 8, 12, 16};
    tt_ctx *ctx = a->model->ctx;
    char what[160], limit[32];
    size_t most;
    if (a->is_full)
        return;
    for (int d = 0; d < ctx->top.n_devices; d++)
        if (ctx->top.devices[d]->limit != ctx->top.devices[0]->limit ||
            strcmp(ctx->top.devices[d]->physical, ctx->top.devices[0]->physical) != 0)
            return; // "like the first" means nothing
    for (int i = 0; i < TTI_COUNT(counts); i++) {
        if (!fits_on(a, counts[i], tti_strategy_find(strategy), &most))
            continue;
        size_text(ctx->top.devices[0]->limit, limit);
        snprintf(what, sizeof(what), "devices: \"%s*%d@%s\", strategy: %s",
                 ctx->top.devices[0]->physical, counts[i], limit, strategy);
        say(a, what, most);
        return;
    }
}

// Fewer micro-batches of a pipeline: fewer partial sums of gradients wait for each other.
static void advise_micro(advisor *a)
{
    tti_topology other = *a->top;
    variant v = as_it_is(a);
    char what[48];
    size_t most;
    int given = a->top->spread.micro;
    if (strcmp(a->top->strategy->name, "pipeline") != 0)
        return;
    v.top = &other;
    for (int k = (given > 0 ? given : a->top->lanes) - 1; k > 0; k--) {
        other.spread.micro = k;
        if (!fits(a, &v, &most))
            continue;
        snprintf(what, sizeof(what), "micro: %d (same bits)", k);
        say(a, what, most);
        return;
    }
}

static void say_bf16(void *arg)
{
    advisor *a = arg;
    variant v = as_it_is(a);
    size_t most;
    if (fits(a, &v, &most))
        say(a, "precision: bf16 (different bits)", most);
}

static void advise_bf16(advisor *a)
{
    if (a->model->step->opts.precision == TT_PRECISION_F32 &&
        tti_compile_try(a->model, TT_PRECISION_BF16, say_bf16, a) != TT_OK)
        tt_clear_error(a->model->ctx);
}

static void advise(advisor *a)
{
    variant all = as_it_is(a);
    size_t most = 0;
    all.recompute = "all";
    bool recompute = fits(a, &all, &most);
    if (recompute)
        say(a, "recompute: all (same bits)", most);
    advise_micro(a);
    advise_accumulate(a, NULL);
    advise_batch(a, NULL);
    advise_devices(a, "mirrored");
    advise_devices(a, "pipeline");
    advise_bf16(a);
    if (recompute || a->n > 0)
        return;
    advise_accumulate(a, "all");
    advise_batch(a, "all");
    if (a->n == 0)
        tti_text_add(&a->text,
                     "\nno tried batch, recomputation or number of devices would fit; with "
                     "recompute: all, %zu bytes are needed",
                     most);
}

// Refuses again what was refused, with advice.
static tt_status refuse(tt_model *m, const tti_load *l, const tti_topology *top, bool is_full,
                        const char *message)
{
    tt_ctx *ctx = m->ctx;
    advisor a = {.model = m, .load = l, .top = top, .is_full = is_full, .text = {.ctx = ctx}};
    tti_text_add(&a.text, "%s", message);
    tt_clear_error(ctx);
    ctx->is_hushed = true;
    advise(&a);
    ctx->is_hushed = false;
    char *text = tti_text_take(&a.text);
    tt_status st = TT_FAIL(ctx, TT_ELIMIT, "%s", text != NULL ? text : "a limit is too small");
    tti_free(ctx, text);
    return st;
}

tt_status tti_memory_validation(tt_model *m, const tti_load *l, size_t *bytes)
{
    tti_need step[TTI_MAX_DEVICES], need[TTI_MAX_DEVICES];
    variant v = as_it_is(&(advisor){.model = m, .load = l, .top = &m->ctx->top});
    TT_TRY(try_both(m, &v, l, step, need));
    for (int d = 0; d < m->ctx->top.n_devices; d++)
        bytes[d] = beside(&need[d]);
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
        host += is_host(ctx, d) ? need_of(&step[d], &more[d]) : 0;
        validation += is_host(ctx, d) ? beside(&more[d]) : 0;
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
    return refuse(m, l, top, true, text);
}

// The step fits; a last batch of fewer rows, or validation, whose arena stands beside the step's,
// may not.
static tt_status check_validation(tt_model *m, const tti_load *l, const tti_topology *top)
{
    tti_need step[TTI_MAX_DEVICES], more[TTI_MAX_DEVICES];
    variant v = as_it_is(&(advisor){.model = m, .load = l, .top = top});
    char text[256];
    if (l->validate_records == 0 && rest_of(m->ctx, l->records, l->batch * l->accumulate) == 0)
        return TT_OK;
    TT_TRY(try_both(m, &v, l, step, more));
    for (int d = 0; d < m->ctx->top.n_devices; d++) {
        size_t need = need_of(&step[d], &more[d]);
        if (step[d].limit == 0 || need <= step[d].limit)
            continue;
        char validation[64] = "";
        if (beside(&more[d]) > 0)
            snprintf(validation, sizeof(validation), ", and validation %zu more", beside(&more[d]));
        snprintf(text, sizeof(text), "%s: training needs %zu bytes%s, more than its limit of %zu",
                 m->ctx->top.devices[d]->name, need - beside(&more[d]), validation, step[d].limit);
        return refuse(m, l, top, false, text);
    }
    return check_host(m, l, top, step, more);
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

static tt_status plan_step(tt_model *m, const tti_load *l, const tti_topology *top)
{
    tt_ctx *ctx = m->ctx;
    tt_tensor **list = tti_step_targets(m);
    if (list == NULL)
        return TT_ENOMEM;
    const tti_step *s = m->step;
    ctx->is_hushed = true; // a refusal is told once, with advice
    tt_status st = tti_session_plan(s->session, top, list, s->n_fetches + s->n_targets,
                                    s->n_fetches, TTI_MIN(l->batch * l->accumulate, l->records),
                                    (int)l->accumulate, l->is_dry);
    ctx->is_hushed = false;
    tti_free(ctx, list);
    return st;
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
        has_host |= is_host(ctx, d);
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

tt_status tti_memory_check(tt_model *m, const tti_load *l)
{
    tt_ctx *ctx = m->ctx;
    tti_topology top = ctx->top;
    bool limited = false, is_tight = may_exceed(m, l);
    for (int d = 0; d < ctx->top.n_devices; d++)
        limited |= ctx->top.devices[d]->limit > 0;
    const char *who = limit_gpus(ctx, &top);
    if (!limited && who == NULL && !is_tight)
        return TT_OK;
    tt_status st = plan_step(m, l, &top);
    if (st == TT_OK) // what validation takes may count
        is_tight = is_tight && m->step->session->plans->host_need > top.host_memory / 2;
    if (st == TT_OK && (limited || is_tight)) {
        st = check_validation(m, l, &top);
    } else if (st == TT_ELIMIT) {
        tti_text t = {.ctx = ctx};
        tti_text_add(&t, "%s", tt_last_error(ctx).message);
        if (who != NULL)
            tti_text_add(&t, "\n(without a limit of its own, a GPU is limited to its free memory)");
        char *message = tti_text_take(&t);
        st = refuse(m, l, &top, who != NULL || (is_tight && !limited),
                    message != NULL ? message : "");
        tti_free(ctx, message);
    } else if (st != TT_OK) {
        TT_LOG(ctx, TT_ERROR, "%s", tt_last_error(ctx).message);
    }
    return st;
}
