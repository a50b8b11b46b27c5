/*
 * fit_tell.c - what a fit tells: progress for callbacks, events for everyone else, the report.
 */
#include "base/ctx.h"
#include "device/device.h"
#include "save/share.h"
#include "strategy/strategy.h"
#include "train/fit.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TELL_NS 50000000 // step events at most this often, and at each hundredth step

static double seconds(int64_t ns)
{
    return (double)ns * 1e-9;
}

/*
 * Devices that a fit has but will not use are a mistake more often than not. Where both kinds work
 * what each of them does shows in the bits.
 */
static void warn_of_devices(tti_fit *f)
{
    tt_ctx *ctx = f->model->ctx;
    const tt_graph *g = f->step->graph;
    bool pins = g->place != NULL;
    for (int64_t i = 0; i < g->n_nodes; i++)
        pins |= g->nodes[i]->has_pin;
    bool one_works = strcmp(ctx->top.strategy->name, "single") == 0 && !pins;
    if (!one_works && tti_arithmetic_of(ctx) >= 2000)
        TT_LOG(ctx, TT_WARN,
               "CPU and GPUs are used together: the result depends on how the work is divided "
               "between them");
    if (ctx->top.n_devices > 1 && one_works)
        TT_LOG(ctx, TT_WARN,
               "%d devices, but strategy is single and there are no pins: only %s is used; use "
               "strategy mirrored to use all",
               ctx->top.n_devices, ctx->top.devices[0]->name);
}

/*
 * A stage without a matrix product has next to nothing to do. Pins say that it is meant.
 */
static void warn_of_stages(tti_fit *f)
{
    tt_ctx *ctx = f->model->ctx;
    const tt_graph *g = f->step->graph;
    tti_mesh m = {0};
    int matrices = 0;
    bool pins = g->place != NULL;
    for (int64_t i = 0; i < g->n_nodes; i++)
        pins |= g->nodes[i]->has_pin;
    if (strcmp(ctx->top.strategy->name, "pipeline") != 0 || pins ||
        ctx->top.strategy->mesh(&ctx->top, g, &m) != TT_OK)
        return;
    for (int64_t i = 0; i < f->model->n_weights; i++)
        matrices += tt_tensor_shape(f->model->weights[i].var).rank >= 2;
    int stages = m.n_stages;
    if (matrices >= stages)
        return;
    TT_LOG(ctx, TT_WARN,
           "strategy pipeline: %d stages, but the model has only %d layer%s with a weight matrix, "
           "so %d stage%s will be almost idle; use at most %d device%s per replica, or strategy "
           "mirrored",
           stages, matrices, matrices == 1 ? "" : "s", stages - matrices,
           stages - matrices == 1 ? "" : "s", TTI_MAX(matrices, 1), matrices > 1 ? "s" : "");
}

void tti_fit_begin_event(tti_fit *f)
{
    tt_ctx *ctx = f->model->ctx;
    warn_of_devices(f);
    warn_of_stages(f);
    char devices[4096] = ""; // an event has room for this much beside the rest
    size_t n = 0, last = 64; // the last for how many there are
    for (int i = 0; i < ctx->top.n_devices && n + last < sizeof(devices); i++) {
        n += (size_t)snprintf(devices + n, sizeof(devices) - n, "%s%s", i > 0 ? ", " : "",
                              ctx->top.devices[i]->name);
        if (n + last >= sizeof(devices) && i + 1 < ctx->top.n_devices)
            snprintf(devices + n, sizeof(devices) - n, ", ... (%d devices)", ctx->top.n_devices);
    }
    tt_pair pairs[] = {
        {"steps", (double)f->step->total, NULL},
        {"epochs", (double)f->o.epochs, NULL},
        {"step", (double)(f->step->step - f->step->base), NULL},
        {"epoch_rows", (double)f->count, NULL},
        {"batch", (double)f->o.batch, NULL},
        {"accumulate", (double)f->o.accumulate, NULL},
        {"lanes", (double)ctx->top.lanes, NULL},
        {"parameters", (double)tt_model_parameters(f->model), NULL},
        {"devices", 0, devices},
    };
    tti_emit_pairs(ctx, "begin", pairs, TTI_COUNT(pairs));
}

// Names of the metrics, and the learning rate: they are known before a step.
static void name_values(tti_fit *f, double lr)
{
    tti_step *s = f->step;
    tt_progress *p = &f->progress;
    p->steps = s->total;
    p->epochs = f->o.epochs;
    p->epoch_rows = f->count;
    p->n_metrics = s->n_metrics;
    for (int i = 0; i < s->n_metrics; i++)
        p->names[i] = s->metrics[i].name;
    p->lr = lr;
}

void tti_fit_progress_before(tti_fit *f)
{
    tti_step *s = f->step;
    tt_progress *p = &f->progress;
    name_values(f, tti_step_lr(s));
    p->step = s->step - s->base;
    p->rows = f->cursor % f->count;
    p->epoch = (f->cursor - f->base_cursor - p->rows) / f->count + 1;
    p->seconds = seconds(tti_now_ns() - f->times->begin);
    if (f->is_new_epoch) { // its sums begin here
        memset(s->epoch, 0, sizeof(double) * (size_t)(s->train.n_numbers + 1));
        p->loss = NAN;
    }
}

void tti_fit_progress(tti_fit *f, int64_t rows, double norm)
{
    tti_step *s = f->step;
    tt_progress *p = &f->progress;
    int64_t place = f->cursor % f->count;
    place = place == 0 ? f->count : place;
    p->step = s->step - s->base;
    p->epoch = (f->cursor - f->base_cursor - place) / f->count + 1;
    p->rows = place;
    p->step_loss = tti_scores_loss(s, &s->train, s->numbers, rows);
    int64_t seen = (int64_t)s->epoch[s->train.n_numbers];
    p->loss = seen > 0 ? tti_scores_loss(s, &s->train, s->epoch, seen) : NAN;
    name_values(f, s->lr);
    p->gradient_norm = norm;
    p->loss_scale = s->scale;
    int64_t now = tti_now_ns();
    p->seconds = seconds(now - f->times->begin);
    double epoch_seconds = seconds(now - f->epoch_ns);
    if (f->epoch_ns > 0 && epoch_seconds > 0 && place > f->epoch_first_rows + rows)
        p->samples_per_second = (double)(place - f->epoch_first_rows - rows) / epoch_seconds;
}

void tti_fit_metrics(tti_fit *f)
{
    tti_step *s = f->step;
    tti_scores_metrics(s, &s->train, s->epoch, f->progress.metrics);
    tti_scores_metrics(s, &s->train, s->numbers, f->progress.step_metrics);
}

// Pairs of the progress; returns how many.
static int progress_pairs(tti_fit *f, tt_pair *out, char names[][64], bool with_validation)
{
    const tt_progress *p = &f->progress;
    tti_fit_metrics(f);
    tt_pair fixed[] = {
        {"step", (double)p->step, NULL},
        {"steps", (double)p->steps, NULL},
        {"epoch", (double)p->epoch, NULL},
        {"epochs", (double)p->epochs, NULL},
        {"rows", (double)p->rows, NULL},
        {"epoch_rows", (double)p->epoch_rows, NULL},
        {"loss", p->loss, NULL},
        {"step_loss", p->step_loss, NULL},
        {"lr", p->lr, NULL},
        {"samples_per_second", p->samples_per_second, NULL},
        {"seconds", p->seconds, NULL},
        {"gradient_norm", p->gradient_norm, NULL},
    };
    int n = TTI_COUNT(fixed);
    memcpy(out, fixed, sizeof(fixed));
    if (f->step->norm == NULL)
        n--;
    if (f->step->used_scale != NULL)
        out[n++] = (tt_pair){"loss_scale", p->loss_scale, NULL};
    for (int i = 0; i < p->n_metrics; i++)
        out[n++] = (tt_pair){p->names[i], p->metrics[i], NULL};
    if (f->is_best)
        out[n++] = (tt_pair){"best", 0, tti_fit_best_name(f)};
    if (!with_validation || !p->has_validation)
        return n;
    out[n++] = (tt_pair){"validation_loss", p->validation_loss, NULL};
    for (int i = 0; i < p->n_metrics; i++) {
        snprintf(names[i], 64, "validation_%s", p->names[i]);
        out[n++] = (tt_pair){names[i], p->validation[i], NULL};
    }
    return n;
}

void tti_fit_step_event(tti_fit *f, bool force)
{
    int64_t now = tti_now_ns();
    bool hundredth = f->step->step % 100 == 0;
    if (!force && !hundredth && now - f->told_ns < TELL_NS)
        return;
    f->told_ns = now;
    tt_pair pairs[16 + 2 * TT_MAX_METRICS];
    int n = progress_pairs(f, pairs, NULL, false);
    tti_emit_pairs(f->model->ctx, "step", pairs, n);
}

void tti_fit_epoch_event(tti_fit *f, const char *kind)
{
    tt_pair pairs[16 + 2 * TT_MAX_METRICS];
    char names[TT_MAX_METRICS][64];
    int n = progress_pairs(f, pairs, names, true);
    tti_emit_pairs(f->model->ctx, kind, pairs, n);
}

// ---- lines of progress -----------------------------------------------------------------------

static void on_progress(void *user, const tt_event *ev)
{
    tti_progress_event(user, ev);
}

static void set_progress(tt_ctx *ctx, bool has)
{
    pthread_mutex_lock(&ctx->mu);
    ctx->has_progress = has;
    pthread_mutex_unlock(&ctx->mu);
}

void tti_fit_show(tti_fit *f)
{
    tt_ctx *ctx = f->model->ctx;
    if (f->o.progress == NULL || !tti_is_first(ctx))
        return;
    tti_progress_init(&f->lines, f->o.progress);
    f->observer = (tti_observer){.fn = on_progress, .user = &f->lines};
    set_progress(ctx, true);
    tti_observe(ctx, &f->observer);
}

void tti_fit_show_end(tti_fit *f)
{
    if (f->observer.fn == NULL)
        return;
    tti_unobserve(f->model->ctx, &f->observer);
    set_progress(f->model->ctx, false);
    tti_progress_clear(&f->lines);
}

// ---- the report ------------------------------------------------------------------------------

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static double median_ms(tti_times *t)
{
    int64_t n = TTI_MIN(t->n_steps, TTI_STEP_TIMES);
    if (n == 0)
        return 0;
    qsort(t->steps, (size_t)n, sizeof(t->steps[0]), by_value);
    return (double)t->steps[n / 2] * 1e-6;
}

static tt_fit_end end_of(const tti_fit *f)
{
    return f->is_ended     ? TT_FIT_REQUESTED
           : !f->has_steps ? TT_FIT_ALREADY
           : f->is_early   ? TT_FIT_EARLY_STOP
           : f->stop       ? TT_FIT_CALLBACK
                           : TT_FIT_FINISHED;
}

const char *tti_fit_end_name(tt_fit_end end)
{
    static const char *const names[] = {"finished", "early_stop", "callback", "request", "already"};
    return (unsigned)end < TTI_COUNT(names) ? names[end] : "";
}

tt_status tti_fit_report(tti_fit *f)
{
    tti_step *s = f->step;
    tti_times *t = f->times;
    tt_ctx *ctx = f->model->ctx;
    tt_fit_report *r = &s->report;
    s->last = f->progress;
    *r = (tt_fit_report){.last = &s->last,
                         .steps = s->step - s->base,
                         .epochs = (f->cursor - f->base_cursor) / f->count,
                         .skipped = f->skipped,
                         .first_step_seconds = seconds(t->first_step),
                         .step_ms_median = median_ms(t),
                         .seconds = seconds(tti_now_ns() - t->begin),
                         .compute_seconds = seconds(t->compute),
                         .data_seconds = seconds(t->data),
                         .checkpoint_seconds = seconds(t->checkpoint),
                         .validate_seconds = seconds(t->validate),
                         .is_stopped = f->stop,
                         .ended = end_of(f),
                         .total_steps = s->total,
                         .best_name = tti_fit_best_name(f),
                         .best = f->best.has_best ? f->best.best : NAN};
    double busy = r->compute_seconds + r->data_seconds;
    r->samples_per_second = busy > 0 ? (double)(f->cursor - f->first_cursor) / busy : 0;
    r->saved = s->saved;
    s->saved[0] = '\0';
    if (f->saved_step >= 0 && f->o.checkpoints != NULL) {
        char name[32];
        snprintf(name, sizeof(name), "step-%lld", (long long)f->saved_step);
        TT_TRY(tti_file_join(f->model->ctx, s->saved, f->o.checkpoints, name));
    }
    TT_TRY(tti_fit_tell_devices(f));
    TT_TRY(tt_model_hash(f->model, &r->weights));
    char hash[40];
    snprintf(hash, sizeof(hash), "%016llx%016llx", (unsigned long long)r->weights.high,
             (unsigned long long)r->weights.low);
    tt_pair pairs[16 + 2 * TT_MAX_METRICS + 16];
    char names[TT_MAX_METRICS][64];
    int n = progress_pairs(f, pairs, names, true);
    tt_pair more[] = {
        {"weights_hash", 0, hash},
        {"step_ms_median", r->step_ms_median, NULL},
        {"first_step_seconds", r->first_step_seconds, NULL},
        {"compute_seconds", r->compute_seconds, NULL},
        {"data_seconds", r->data_seconds, NULL},
        {"checkpoint_seconds", r->checkpoint_seconds, NULL},
        {"validate_seconds", r->validate_seconds, NULL},
        {"hash_seconds", seconds(t->hash), NULL},
        {"total_seconds", r->seconds, NULL},
        {"skipped", (double)r->skipped, NULL},
        {"stopped", r->is_stopped, NULL},
        {"ended", 0, tti_fit_end_name(r->ended)},
    };
    memcpy(pairs + n, more, sizeof(more));
    tti_emit_pairs(ctx, "end", pairs, n + TTI_COUNT(more));
    return TT_OK;
}

tt_status tt_fit_report_get_sized(tt_model *m, tt_fit_report *out, size_t size)
{
    if (m == NULL)
        return TT_EINVAL;
    if (out == NULL)
        return TT_FAIL(m->ctx, TT_EINVAL, "fit report: the room for it is NULL");
    if (m->step == NULL)
        return TT_FAIL(m->ctx, TT_EINVAL, "fit report: the model is not compiled");
    tt_fit_report report = m->step->report;
    report.last = &m->step->last;
    if (report.saved == NULL)
        report.saved = ""; // no fit yet
    tti_out_copy(out, size, &report, sizeof(report));
    return TT_OK;
}
