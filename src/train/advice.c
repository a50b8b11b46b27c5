/*
 * advice.c - a training step that does not fit is refused with what would make it fit:
 * recomputation, smaller parts, a smaller batch, more devices, bf16.
 *
 * Every number comes from a trial plan of the step as it would then be, with that of validation
 * beside it, so that what is said holds. Nothing is trained.
 */
#include "base/ctx.h"
#include "device/device.h"
#include "strategy/strategy.h"
#include "train/memory_check.h"
#include <stdio.h>
#include <string.h>

typedef struct advisor {
    tt_model *model;
    const tti_load *load;
    const tti_topology *top; // as it is
    bool is_full; // the limit is all of a card or machine: more devices on it do not help
    tti_text text;
    int n; // pieces of advice so far
} advisor;

// Would it fit? *most: bytes on the device that is fullest. What cannot be planned does not fit.
static bool fits(advisor *a, const tti_variant *v, size_t *most)
{
    tti_needs needs;
    tt_ctx *ctx = a->model->ctx;
    tti_attempt attempt;
    tti_attempt_begin(ctx, &attempt);
    tt_status st = tti_variant_try(a->model, v, a->load, &needs);
    if (tti_attempt_end(ctx, &attempt) != TT_OK || st != TT_OK)
        return false;
    bool good = true;
    size_t host = 0;
    *most = 0;
    for (int d = 0; d < v->top->n_devices; d++) {
        size_t need = tti_need_of(&needs.step[d], &needs.validation[d]);
        *most = TTI_MAX(*most, need);
        good &= needs.step[d].limit == 0 || need <= needs.step[d].limit;
        host += d < ctx->top.n_devices && tti_is_host(ctx, d) ? need : 0;
    }
    tti_needs_free(ctx, &needs);
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

static tti_variant as_it_is(const advisor *a)
{
    return tti_variant_now(a->model, a->load, a->top);
}

// The same rows an update in more parts. With recompute, which the text then says too.
static void advise_accumulate(advisor *a, const char *recompute)
{
    tti_variant v = as_it_is(a);
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
    tti_variant v = as_it_is(a);
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
    tti_variant v = as_it_is(a);
    tti_topology other;
    tt_ctx *ctx = a->model->ctx;
    bool same = n == a->top->n_devices;
    if (n < a->top->n_devices || (same && strategy == a->top->strategy))
        return false;
    if ((same ? tti_topology_copy(ctx, a->top, &other)
              : tti_topology_make(ctx, a->top, 1, n, &other)) != TT_OK)
        return false;
    other.strategy = strategy;
    v.top = &other;
    bool good = fits(a, &v, most);
    tti_topology_free(ctx, &other);
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
    tti_topology other = *a->top; // borrows its arrays
    tti_variant v = as_it_is(a);
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
    tti_variant v = as_it_is(a);
    size_t most;
    if (fits(a, &v, &most))
        say(a, "precision: bf16 (different bits)", most);
}

static void advise_bf16(advisor *a)
{
    tti_attempt attempt;
    if (a->model->step->opts.precision != TT_PRECISION_F32)
        return;
    tti_attempt_begin(a->model->ctx, &attempt);
    tt_status st = tti_compile_try(a->model, TT_PRECISION_BF16, say_bf16, a);
    (void)tti_attempt_end(a->model->ctx, &attempt);
    (void)st; // what cannot be compiled so is not said
}

static void advise(advisor *a)
{
    tti_variant all = as_it_is(a);
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

tt_status tti_refuse(tt_model *m, const tti_load *l, const tti_topology *top, bool is_full,
                     const char *message)
{
    tt_ctx *ctx = m->ctx;
    advisor a = {.model = m, .load = l, .top = top, .is_full = is_full, .text = {.ctx = ctx}};
    tti_text_add(&a.text, "%s", message);
    advise(&a);
    char *text = tti_text_take(&a.text);
    tt_status st = TT_FAIL(ctx, TT_ELIMIT, "%s", text != NULL ? text : "a limit is too small");
    tti_free(ctx, text);
    return st;
}
