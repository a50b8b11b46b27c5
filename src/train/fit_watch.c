/*
 * fit_watch.c - rules that watch a value: early stopping, learning-rate reduction on a plateau, the
 * best checkpoint. Their state is part of every checkpoint.
 */
#include "base/ctx.h"
#include "run/run.h"
#include "train/fit.h"
#include <math.h>
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
    if (!f->o.early_stop.restore || !is_on(&f->o.early_stop) || !f->early.has_best ||
        f->early.bad == 0)
        return TT_OK;
    if (f->best_weights != NULL)
        TT_TRY(keep_or_restore(f, true));
    else if (f->o.checkpoints != NULL)
        TT_TRY(restore_checkpoint(f));
    f->saved_step = -1; // the newest checkpoint shall have them too
    return TT_OK;
}

tt_status tti_fit_watch(tti_fit *f, bool *is_best)
{
    const tt_fit_opts *o = &f->o;
    tt_ctx *ctx = f->model->ctx;
    *is_best = look(f, &o->best, &f->best);
    if (is_on(&o->early_stop)) {
        if (look(f, &o->early_stop, &f->early)) {
            if (o->early_stop.restore)
                TT_TRY(keep_or_restore(f, false));
        } else if (f->early.bad >= o->early_stop.patience) {
            TT_LOG(ctx, TT_INFO, "early stopping: %s has not improved in %lld checks",
                   watched(f, &o->early_stop), (long long)f->early.bad);
            f->stop = true;
        }
    }
    if (is_on(&o->plateau) && !look(f, &o->plateau, &f->plateau) &&
        f->plateau.bad >= o->plateau.patience) {
        double factor = o->plateau.factor == 0 ? 0.1 : o->plateau.factor;
        double lowest = o->plateau.min_lr / f->step->opts.optimizer.lr;
        f->step->lr_factor = fmax(f->step->lr_factor * factor, lowest);
        f->plateau.bad = 0;
        TT_LOG(ctx, TT_INFO, "plateau: the learning rate is now %g of its initial value",
               f->step->lr_factor);
    }
    return TT_OK;
}
