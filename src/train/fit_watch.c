/*
 * fit_watch.c - rules that watch a value: early stopping, learning-rate reduction on a plateau, the
 * best checkpoint. Their state is part of every checkpoint.
 */
#include "base/ctx.h"
#include "run/run.h"
#include "train/fit.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is_on(const tt_watch *w)
{
    return w->patience > 0;
}

// The default value is the validation's loss, without validation the loss.
static const char *watched(const tti_fit *f, const tt_watch *w)
{
    if (w->value != NULL)
        return w->value;
    return f->o.validate != NULL ? "validation_loss" : "loss";
}

static bool find_value(const tti_fit *f, const char *name, double *out)
{
    const tt_progress *p = &f->progress;
    const char *tail = strncmp(name, "validation_", 11) == 0 ? name + 11 : NULL;
    const char *metric = tail != NULL ? tail : name;
    if (strcmp(metric, "loss") == 0) {
        *out = tail != NULL ? p->validation_loss : p->loss;
        return tail == NULL || f->o.validate != NULL;
    }
    for (int i = 0; i < f->step->n_metrics; i++) {
        if (strcmp(metric, f->step->metrics[i].name) != 0)
            continue;
        *out = tail != NULL ? p->validation[i] : p->metrics[i];
        return tail == NULL || f->o.validate != NULL;
    }
    return false;
}

tt_status tti_fit_check_watch(tti_fit *f, const char *what, const tt_watch *w)
{
    double value;
    const char *name = watched(f, w);
    tt_ctx *ctx = f->model->ctx;
    if (w->patience < 0 || w->min_delta < 0 || w->factor < 0 || w->factor >= 1)
        return TT_FAIL(ctx, TT_EINVAL, "fit: %s: patience, min_delta or factor is out of range",
                       what);
    if (w->value == NULL && !is_on(w))
        return TT_OK;
    if (!find_value(f, name, &value))
        return TT_FAIL(ctx, TT_EINVAL,
                       "fit: %s watches '%s', which is neither the loss nor a metric of this "
                       "training (validation_... needs validation data)",
                       what, name);
    return TT_OK;
}

static bool higher_is_better(const tti_fit *f, const tt_watch *w, const char *name)
{
    if (w->max)
        return true;
    const char *metric = strncmp(name, "validation_", 11) == 0 ? name + 11 : name;
    return tti_metric_rises(f->step->metrics, f->step->n_metrics, metric);
}

// Takes a new value in; true if it is the best so far.
static bool look(const tti_fit *f, const tt_watch *w, tti_watch_state *state)
{
    const char *name = watched(f, w);
    double value;
    if (!find_value(f, name, &value) || isnan(value)) {
        state->bad++;
        return false;
    }
    double gain = higher_is_better(f, w, name) ? value - state->best : state->best - value;
    if (!state->has_best || gain > w->min_delta) {
        state->has_best = true;
        state->best = value;
        state->bad = 0;
        return true;
    }
    state->bad++;
    return false;
}

// ---- the best weights, for early stopping that restores them ---------------------------------

static tt_status keep_or_restore(tti_fit *f, bool restore)
{
    tt_model *m = f->model;
    tt_session *session = tti_model_session(m);
    int64_t total = 0;
    if (session == NULL)
        return tt_status_of(m->ctx);
    for (int64_t i = 0; i < m->n_weights; i++) {
        tt_shape shape = tt_tensor_shape(m->weights[i].var);
        total += tt_shape_count(&shape);
    }
    if (f->best_weights == NULL) {
        f->best_weights = tti_calloc(m->ctx, (size_t)total + 1, sizeof(float));
        if (f->best_weights == NULL)
            return TT_ENOMEM;
    }
    float *at = f->best_weights;
    for (int64_t i = 0; i < m->n_weights; i++) {
        tt_shape shape = tt_tensor_shape(m->weights[i].var);
        size_t bytes = (size_t)tt_shape_count(&shape) * sizeof(float);
        if (restore)
            TT_TRY(tt_set_variable(session, m->weights[i].var, at, bytes));
        else
            TT_TRY(tt_get_variable(session, m->weights[i].var, at, bytes));
        at += bytes / sizeof(float);
    }
    return TT_OK;
}

// The best came before this process: it is the best checkpoint.
static tt_status restore_checkpoint(tti_fit *f)
{
    tt_ctx *ctx = f->model->ctx;
    tti_snapshot snapshot;
    bool has = false;
    if (f->saver != NULL)
        TT_TRY(tti_saver_wait(f->saver));
    TT_TRY(tti_fit_read(f, true, &snapshot, &has));
    if (!has)
        return TT_OK;
    tt_status st = tti_model_restore(f->model, &snapshot, true);
    tti_snapshot_free(ctx, &snapshot);
    return st;
}

tt_status tti_fit_restore_best(tti_fit *f)
{
    if (!f->o.early_stop->restore || !is_on(f->o.early_stop) || !f->early.has_best ||
        f->early.bad == 0)
        return TT_OK;
    if (f->best_weights != NULL)
        TT_TRY(keep_or_restore(f, true));
    else if (f->o.checkpoints != NULL)
        TT_TRY(restore_checkpoint(f));
    f->saved_step = -1; // the newest checkpoint shall have them too
    return TT_OK;
}

const char *tti_fit_best_name(const tti_fit *f)
{
    return watched(f, f->o.best);
}

static void stop_early(tti_fit *f)
{
    const tt_watch *w = f->o.early_stop;
    f->stop = f->is_early = true;
    snprintf(f->early_text, sizeof(f->early_text),
             "early stopping after step %lld: %.64s has not improved in %lld check%s (best %.6g)%s",
             (long long)(f->step->step - f->step->base), watched(f, w), (long long)f->early.bad,
             f->early.bad == 1 ? "" : "s", f->early.best,
             w->restore ? "; the best weights are restored" : "");
}

static void lower_rate(tti_fit *f)
{
    const tt_watch *w = f->o.plateau;
    tti_step *s = f->step;
    double lr = s->rule.o.lr, before = s->lr_factor;
    double factor = w->factor == 0 ? 0.1 : w->factor;
    s->lr_factor = fmax(s->lr_factor * factor, w->min_lr / lr);
    if (s->lr_factor != before) // else it is as low as it may be
        snprintf(f->plateau_text, sizeof(f->plateau_text),
                 "plateau after step %lld: %.64s has not improved in %lld check%s; the learning "
                 "rate goes from %.6g to %.6g",
                 (long long)(s->step - s->base), watched(f, w), (long long)f->plateau.bad,
                 f->plateau.bad == 1 ? "" : "s", before * lr, s->lr_factor * lr);
    f->plateau.bad = 0;
}

tt_status tti_fit_watch(tti_fit *f)
{
    const tt_fit_opts *o = &f->o;
    f->is_best = look(f, o->best, &f->best);
    if (is_on(o->early_stop)) {
        if (look(f, o->early_stop, &f->early)) {
            if (o->early_stop->restore)
                TT_TRY(keep_or_restore(f, false));
        } else if (f->early.bad >= o->early_stop->patience) {
            stop_early(f);
        }
    }
    if (is_on(o->plateau) && !look(f, o->plateau, &f->plateau) &&
        f->plateau.bad >= o->plateau->patience)
        lower_rate(f);
    return TT_OK;
}

static void tell(tti_fit *f, const char *kind, char text[256])
{
    tt_pair pairs[] = {{"step", (double)(f->step->step - f->step->base), NULL},
                       {"lr", f->step->lr_factor * f->step->rule.o.lr, NULL},
                       {"message", 0, text}};
    if (text[0] != '\0')
        tti_emit_pairs(f->model->ctx, kind, pairs, TTI_COUNT(pairs));
    text[0] = '\0';
}

void tti_fit_watch_tell(tti_fit *f)
{
    tell(f, "plateau", f->plateau_text);
    tell(f, "early_stop", f->early_text);
}

// ---- divergence ------------------------------------------------------------------------------

#define DIVERGENCE 1000 // times the first loss

/*
 * One large loss is a spike that training may recover from. Here the mean since the last look is
 * large, and so is the last step's: it has not recovered. Losses below 1 are held against 1, so
 * that a first loss of almost nothing (all targets near zero) raises no alarm.
 */
tt_status tti_fit_check_loss(tti_fit *f)
{
    const tt_progress *p = &f->progress;
    bool is_default = f->o.divergence == 0 && !signbit(f->o.divergence); // TT_ZERO is -0
    double factor = is_default ? DIVERGENCE : f->o.divergence;
    double limit = factor * fmax(fabs(f->first_loss), 1);
    if (f->o.nan == TT_NAN_CONTINUE || !(factor >= 1) || !(p->loss > limit) ||
        !(p->step_loss > limit))
        return TT_OK;
    return TT_FAIL(f->model->ctx, TT_ENAN,
                   "step %lld: training has diverged: the loss is %.6g, and was %.6g at the first "
                   "step; the learning rate is %.6g: lower it, clip the gradients (clip_global: "
                   "1.0), or normalise the data; train.divergence: 0 turns this check off",
                   (long long)p->step, p->step_loss, f->first_loss, p->lr);
}
