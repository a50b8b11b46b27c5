/*
 * fit_nan.c - a step that was not applied because something is not finite: what it was, where it
 * began, and whether the fit goes on.
 */
#include "base/ctx.h"
#include "train/fit.h"
#include <math.h>
#include <stdio.h>

// What a step was not applied for, and where it began.
typedef struct reason {
    char what[TTI_NAME_MAX + 1280];
    const char *layer, *variable; // NULL: not known
    bool is_data;                 // what says where in the data
} reason;

static void find_reason(tti_fit *f, const void *const *fields, int64_t rows, reason *r)
{
    double value = 0, loss = tti_scores_loss(f->step, &f->step->train, f->step->numbers, rows);
    bool all;
    *r = (reason){.layer = tti_find_nan(f->model, fields, rows, &all)};
    const char *what = isfinite(loss) ? "a gradient or statistic" : "the loss";
    const char *layers = all ? "the output of every layer is finite; " : "";
    if (r->layer != NULL)
        snprintf(r->what, sizeof(r->what),
                 "%s is NaN or infinite; the first layer with such an output is '%s'", what,
                 r->layer);
    else if (!tti_find_gradient(f->model, fields, rows, &r->variable, &value) ||
             (isfinite(value) && !isfinite(loss)))
        snprintf(r->what, sizeof(r->what), "%s is NaN or infinite%s", what,
                 all ? "; the output of every layer is finite: it comes from the loss or its "
                       "targets"
                     : "");
    else if (!isfinite(value))
        snprintf(r->what, sizeof(r->what),
                 "%s is NaN or infinite; %sthe first such gradient, from the output on, is that of "
                 "'%s'",
                 what, layers, r->variable);
    else
        snprintf(r->what, sizeof(r->what),
                 "the gradient of '%s' has an element of %g; the update would overflow",
                 r->variable, value);
}

// The data itself is not finite.
static bool blame_data(tti_fit *f, const tt_batch_data *b, reason *r)
{
    char *where = tti_shared_bad_record(f->model, &f->step->train, f->data, f->field, b);
    *r = (reason){.is_data = where != NULL};
    if (where == NULL)
        return false;
    snprintf(r->what, sizeof(r->what),
             "the data has a value that is not a finite number: %s; replace such values, or leave "
             "the record out",
             where);
    tti_free(f->model->ctx, where);
    return true;
}

tt_status tti_fit_not_finite(tti_fit *f, const tt_batch_data *b, const void *const *fields)
{
    int64_t rows = b->rows;
    tt_ctx *ctx = f->model->ctx;
    int64_t step = f->step->step;
    reason r;
    f->skipped++;
    if (f->o.nan == TT_NAN_SKIP && f->told_nan > 0 && f->skipped % 100 != 0)
        return TT_OK;
    if (!blame_data(f, b, &r))
        find_reason(f, fields, rows, &r);
    tt_pair pairs[] = {{"step", (double)step, NULL},
                       {"layer", 0, r.layer != NULL ? r.layer : ""},
                       {"skipped", (double)f->skipped, NULL},
                       {"variable", 0, r.variable != NULL ? r.variable : ""},
                       {"data", 0, r.is_data ? r.what : ""}};
    tti_emit_pairs(ctx, "nan", pairs, TTI_COUNT(pairs));
    f->told_nan++;
    if (f->o.nan == TT_NAN_SKIP) {
        TT_LOG(ctx, TT_WARN, "step %lld: %s; the step is skipped (%lld so far)", (long long)step,
               r.what, (long long)f->skipped);
        return TT_OK;
    }
    return TT_FAIL(ctx, TT_ENAN, "step %lld: %s; the step was not applied", (long long)step,
                   r.what);
}

tt_status tti_fit_overflow(tti_fit *f, const tt_batch_data *b, const void *const *fields)
{
    tt_ctx *ctx = f->model->ctx;
    long long step = f->step->step;
    double scale = f->step->scale;
    f->skipped++;
    if (scale <= 1 && f->o.nan != TT_NAN_SKIP) {
        bool known;
        reason r;
        if (blame_data(f, b, &r))
            return TT_FAIL(ctx, TT_ENAN, "step %lld: %s", step, r.what);
        const char *layer = tti_find_nan(f->model, fields, b->rows, &known);
        return TT_FAIL(ctx, TT_ENAN,
                       "step %lld: the loss or the gradients overflow f16 even with a loss scale "
                       "of 1; %s%s%s; use precision: bf16, which has the range of f32",
                       step,
                       layer == NULL ? "the output of every layer is finite"
                                     : "the first layer whose output overflows is '",
                       layer == NULL ? "" : layer, layer == NULL ? "" : "'");
    }
    if (f->told_nan > 0 && f->skipped % 100 != 0)
        return TT_OK;
    tt_pair pairs[] = {{"step", (double)step, NULL},
                       {"loss_scale", scale, NULL},
                       {"skipped", (double)f->skipped, NULL}};
    tti_emit_pairs(ctx, "overflow", pairs, TTI_COUNT(pairs));
    f->told_nan++;
    TT_LOG(ctx, TT_WARN,
           "step %lld: gradients overflow f16 with a loss scale of %g; the step is skipped (%lld "
           "so far) and the scale is halved",
           step, scale, (long long)f->skipped);
    return TT_OK;
}
