/*
 * fit.c - the training loop: batches from the data, one update each; after each epoch validation,
 * watches, a checkpoint, callbacks.
 *
 * What a fit computes depends on the step number and the data's cursor alone, both in every
 * checkpoint, so a resumed fit goes on as if nothing had happened.
 */
#include "train/fit.h"
#include "base/ctx.h"
#include "data/data.h"
#include "net/world.h"
#include "run/run.h"
#include "save/share.h"
#include "train/elastic.h"
#include "train/use.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- options ---------------------------------------------------------------------------------

static tt_status check_accumulate(tti_fit *f)
{
    tt_ctx *ctx = f->model->ctx;
    if (f->o.accumulate >= 1 && ctx->top.lanes % f->o.accumulate == 0)
        return TT_OK;
    char list[128];
    size_t n = 0;
    for (int k = 1; k <= ctx->top.lanes && n < sizeof(list) - 8; k++)
        if (ctx->top.lanes % k == 0)
            n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%d", n > 0 ? ", " : "", k);
    return TT_FAIL(ctx, TT_EINVAL,
                   "fit: accumulate is %lld, which does not divide the %d lanes; use one of %s",
                   (long long)f->o.accumulate, ctx->top.lanes, list);
}

static tt_status check_callbacks(tt_ctx *ctx, const tti_fit *f)
{
    for (int i = 0; i < f->n_callbacks; i++) {
        const tt_callback *c = &f->callbacks[i];
        if (c->fn == NULL)
            return TT_FAIL(ctx, TT_EINVAL, "fit: callback %d of %d has no function", i,
                           f->n_callbacks);
        if (c->at < TT_AT_STEP || c->at > TT_AT_BEGIN || c->every < 0)
            return TT_FAIL(ctx, TT_EINVAL,
                           "fit: callback %d: at is %d and every %lld; at is one of TT_AT_..., and "
                           "every is not negative",
                           i, (int)c->at, (long long)c->every);
    }
    return TT_OK;
}

// All that the options point to.
static tt_status read_parts(tti_fit *f)
{
    tt_ctx *ctx = f->model->ctx;
    tt_fit_opts *o = &f->o;
    TT_TRY(TTI_OPTS_LIST(ctx, "fit: callback", o->callbacks, f->callbacks, &f->n_callbacks));
    TT_TRY(TTI_OPTS_PART(ctx, "fit: early_stop", o->early_stop, &f->early_stop));
    TT_TRY(TTI_OPTS_PART(ctx, "fit: plateau", o->plateau, &f->plateau_watch));
    TT_TRY(TTI_OPTS_PART(ctx, "fit: best", o->best, &f->best_watch));
    if (f->early_stop.restore && f->best_watch.value == NULL)
        f->best_watch = f->early_stop; // so that a fit that goes on finds what to restore
    o->early_stop = &f->early_stop;
    o->plateau = &f->plateau_watch;
    o->best = &f->best_watch;
    return TT_OK;
}

static tt_status read_options(tti_fit *f, const tt_fit_opts *opts)
{
    tt_ctx *ctx = f->model->ctx;
    f->o = *opts;
    tt_fit_opts *o = &f->o;
    TT_TRY(read_parts(f));
    if (o->epochs < 0 || o->steps < 0 || o->batch < 0 || o->validate_every < 0 || o->keep < 0 ||
        o->save_every < 0 || o->check_every < 0 || o->validate_rows < 0 || o->profile < 0)
        return TT_FAIL(ctx, TT_EINVAL, "fit: a number is negative");
    if (o->epochs > 0 && o->steps > 0)
        return TT_FAIL(ctx, TT_EINVAL, "fit: give either epochs or steps, not both");
    TT_TRY(check_callbacks(ctx, f));
    o->accumulate = o->accumulate == 0 ? 1 : o->accumulate;
    o->keep = o->keep == 0 ? 3 : o->keep;
    TT_TRY(check_accumulate(f));
    if (o->batch == 0)
        o->batch = f->data->opts.batch;
    f->count = tt_data_count(f->data);
    if (f->count < 1)
        return TT_FAIL(ctx, TT_EINVAL, "fit: the data has no records");
    if (!tti_mul_i64(o->batch, o->accumulate, &f->rows_per_update))
        return TT_FAIL(ctx, TT_EINVAL, "fit: batch times accumulate is too large");
    f->rows_per_update = TTI_MIN(f->rows_per_update, f->count);
    f->updates_per_epoch = (f->count - 1) / f->rows_per_update + 1;
    if (o->epochs == 0 && o->steps == 0)
        o->epochs = 1;
    int64_t total = o->steps;
    if (o->epochs > 0 && !tti_mul_i64(o->epochs, f->updates_per_epoch, &total))
        return TT_FAIL(ctx, TT_EINVAL, "fit: too many epochs");
    f->step->total = total;
    TT_TRY(tti_fit_check_watch(f, "early_stop", o->early_stop));
    TT_TRY(tti_fit_check_watch(f, "plateau", o->plateau));
    return tti_fit_check_watch(f, "best", o->best);
}

static int64_t validate_records(const tti_fit *f)
{
    int64_t n = f->o.validate == NULL ? 0 : tt_data_count(f->o.validate);
    return f->o.validate_rows > 0 ? TTI_MIN(n, f->o.validate_rows) : n;
}

static tt_status prepare(tti_fit *f, const tt_fit_opts *opts)
{
    tt_model *m = f->model;
    if (f->data->role == NULL)
        f->data->role = "training";
    if (opts->validate != NULL && opts->validate->role == NULL)
        opts->validate->role = "validation";
    TT_TRY(tti_data_compare(f->data, "data.train"));
    TT_TRY(tti_data_compare(opts->validate, "data.validate"));
    bool guard = opts->nan != TT_NAN_CONTINUE;
    bool traced = opts->profile > 0 || opts->trace;
    if (guard != m->step->guard || traced != m->step->traced || opts->hashes)
        TT_TRY(tti_compile_again(m, guard, traced, opts->hashes));
    f->step = m->step;
    f->times = &f->step->times;
    memset(f->times, 0, sizeof(*f->times));
    f->times->begin = tti_now_ns();
    tti_clocks_clear(f->step->session);
    f->step->base = f->first_step = f->step->step;
    f->step->lr_factor = 1;
    memset(f->step->epoch, 0, sizeof(double) * (size_t)(f->step->train.n_numbers + 1));
    TT_TRY(read_options(f, opts));
    if (!tti_mul_i64(f->step->epochs, f->count, &f->cursor))
        return TT_FAIL(m->ctx, TT_EINVAL, "fit: %lld epochs of %lld records are too many",
                       (long long)f->step->epochs, (long long)f->count);
    f->first_cursor = f->base_cursor = f->cursor;
    TT_TRY(tti_match_fields(m, &f->step->train, f->data, f->field));
    if (f->o.validate != NULL)
        TT_TRY(tti_match_fields(m, &f->step->eval, f->o.validate, f->validate_field));
    TT_TRY(tti_note_data(m, f->data));
    TT_TRY(tti_note_train(m, f->o.batch, f->o.accumulate));
    f->is_new_epoch = true;
    TT_TRY(tti_fit_open_saver(f));
    TT_TRY(tti_fit_hash_begin(f));
    tti_load load = {.batch = f->o.batch,
                     .accumulate = f->o.accumulate,
                     .records = f->count,
                     .validate_records = validate_records(f)};
    return tti_memory_check(m, &load);
}

// ---- validation and callbacks ----------------------------------------------------------------

static tt_status validate(tti_fit *f)
{
    if (f->o.validate == NULL)
        return TT_OK;
    int64_t begin = tti_now_ns();
    tt_evaluation e;
    TT_TRY(tt_evaluate(f->model, f->o.validate, &e, .batch = f->o.batch, .rows = f->o.validate_rows,
                       .accumulate = f->o.accumulate));
    f->progress.has_validation = true;
    f->progress.validation_loss = e.loss;
    memcpy(f->progress.validation, e.metrics, sizeof(e.metrics));
    f->times->validate += tti_now_ns() - begin;
    return TT_OK;
}

// number: of the step, epoch or validation that has ended; of one that begins, those before it.
static tt_status call_back(tti_fit *f, tt_moment at, int64_t number)
{
    for (int i = 0; i < f->n_callbacks; i++) {
        const tt_callback *c = &f->callbacks[i];
        if (c->at != at || number % TTI_MAX(c->every, 1) != 0)
            continue;
        tti_fit_metrics(f);
        tti_world_doing(f->model->ctx->world, "a callback", NULL);
        tt_status st = c->fn(c->user, f->model, &f->progress);
        tti_world_doing(f->model->ctx->world, NULL, NULL);
        f->agree_at = 0; // what it says is for all processes, and now
        if (st == TT_ESTOP)
            f->wants_stop = true;
        else if (st != TT_OK)
            return tt_status_of(f->model->ctx) != TT_OK
                       ? tt_status_of(f->model->ctx)
                       : TT_FAIL(f->model->ctx, st, "fit: a callback failed at step %lld",
                                 (long long)f->step->step);
    }
    return TT_OK;
}

static bool has_callback(const tti_fit *f, tt_moment at)
{
    for (int i = 0; i < f->n_callbacks; i++)
        if (f->callbacks[i].at == at)
            return true;
    return false;
}

// Before a step: progress of the steps before it, with the learning rate that it will have.
static tt_status call_back_before(tti_fit *f)
{
    tti_step *s = f->step;
    int64_t done = s->step - s->base, rows = f->cursor % f->count;
    bool is_first = s->step == f->first_step, is_epoch = rows == 0;
    bool is_wanted = (is_first && has_callback(f, TT_AT_BEGIN)) ||
                     (is_epoch && has_callback(f, TT_AT_EPOCH_BEGIN)) ||
                     has_callback(f, TT_AT_STEP_BEGIN);
    if (!is_wanted)
        return TT_OK;
    tti_fit_progress_before(f);
    if (is_first)
        TT_TRY(call_back(f, TT_AT_BEGIN, 0));
    if (is_epoch)
        TT_TRY(call_back(f, TT_AT_EPOCH_BEGIN, f->progress.epoch - 1));
    return call_back(f, TT_AT_STEP_BEGIN, done);
}

// After a validation, an epoch or the last step: what depends on the new values.
static tt_status look(tti_fit *f, const char *kind, bool is_epoch)
{
    TT_TRY(validate(f));
    TT_TRY(tti_fit_watch(f));
    bool is_best = f->is_best;
    tti_fit_epoch_event(f, kind);
    f->is_best = false; // told
    TT_TRY(tti_fit_check_loss(f));
    tti_fit_watch_tell(f);
    if (is_epoch || f->o.steps > 0)
        f->is_new_epoch = true; // where steps are counted, sums are of the steps between looks
    if (f->o.validate != NULL)
        TT_TRY(call_back(f, TT_AT_VALIDATION, ++f->validations));
    if (is_epoch)
        TT_TRY(call_back(f, TT_AT_EPOCH, f->progress.epoch));
    bool save = is_best || (is_epoch && f->o.save_every == 0);
    return save ? tti_fit_save(f, is_best) : TT_OK;
}

// ---- the loop --------------------------------------------------------------------------------

// The epoch's sums end with the number of rows in them; a step that was not applied adds none.
static void add_sums(tti_fit *f, int64_t rows, bool applied)
{
    tti_step *s = f->step;
    if (f->is_new_epoch) {
        memset(s->epoch, 0, sizeof(double) * (size_t)(s->train.n_numbers + 1));
        f->is_new_epoch = false;
        f->epoch_ns = tti_now_ns();
        f->epoch_first_rows = f->cursor % f->count;
    }
    if (!applied)
        return;
    for (int64_t i = 0; i < s->train.n_numbers; i++)
        s->epoch[i] += s->numbers[i];
    s->epoch[s->train.n_numbers] += (double)rows;
}

// The batch after this one, if it is read already: devices fetch it while this one computes. If
// not, they keep memory for the next that is, so that no later step has to ask for it.
static void look_ahead(tti_fit *f, int64_t rows)
{
    tti_step *s = f->step;
    tt_batch_data next = {.rows = rows};
    const void *fields[TTI_MAX_FEEDS];
    bool is_there = tti_data_peek(f->data, &next);
    for (int i = 0; i < s->train.n_feeds; i++)
        fields[i] = is_there ? next.fields[f->field[i]] : NULL;
    s->n_next = tti_scores_feed(&s->train, fields, next.rows, s->next_values);
}

static tt_status one_step(tti_fit *f)
{
    tti_step *s = f->step;
    tti_times *t = f->times;
    tt_batch_data batch;
    const void *fields[TTI_MAX_FEEDS];
    tti_world *w = f->model->ctx->world; // others may wait for this process: it says what it does
    TT_TRY(call_back_before(f));
    int64_t begin = tti_now_ns();
    tti_world_doing(w, "reading the next batch", NULL);
    TT_TRY(tt_data_next(f->data, &batch));
    tti_world_doing(w, NULL, NULL);
    int64_t ready = tti_now_ns();
    t->data += ready - begin;
    for (int i = 0; i < s->train.n_feeds; i++)
        fields[i] = batch.fields[f->field[i]];
    bool applied = true;
    double norm = 0;
    look_ahead(f, batch.rows);
    TT_TRY(tti_step_run(f->model, fields, batch.rows, f->o.accumulate, tti_step_lr(s), &applied,
                        &norm));
    int64_t end = tti_now_ns();
    t->compute += end - ready;
    t->steps[t->n_steps++ % TTI_STEP_TIMES] = end - begin;
    if (t->first_step == 0)
        t->first_step = end - t->begin;
    f->progress.is_skipped = !applied;
    add_sums(f, batch.rows, applied);
    if (!applied && s->used_scale != NULL)
        TT_TRY(tti_fit_overflow(f, &batch, fields));
    else if (!applied)
        TT_TRY(tti_fit_not_finite(f, &batch, fields));
    f->cursor += batch.rows;
    tti_fit_progress(f, batch.rows, norm);
    f->has_steps = true;
    if (applied && isnan(f->first_loss))
        f->first_loss = f->progress.step_loss;
    tti_fit_step_event(f, s->step == f->first_step + 1);
    return call_back(f, TT_AT_STEP, s->step - s->base);
}

static tt_status after_step(tti_fit *f)
{
    tti_step *s = f->step;
    bool epoch_end = f->cursor % f->count == 0;
    int64_t step = s->step - s->base;
    bool last = step >= s->total;
    bool by_steps = f->o.validate_every > 0;
    if (f->o.check_every > 0 && step % f->o.check_every == 0)
        TT_TRY(tti_replicas_check(s->session, s->step));
    if (by_steps && (step % f->o.validate_every == 0 || last))
        TT_TRY(look(f, "validation", false));
    if (epoch_end || last) {
        if (by_steps) {
            tti_fit_epoch_event(f, "epoch");
            TT_TRY(call_back(f, TT_AT_EPOCH, f->progress.epoch));
        } else {
            TT_TRY(look(f, "epoch", true));
        }
        f->is_new_epoch = true;
    }
    bool due = f->o.save_every > 0 && step % f->o.save_every == 0;
    return due || (by_steps && epoch_end && f->o.save_every == 0) ? tti_fit_save(f, false) : TT_OK;
}

static tt_status loop(tti_fit *f)
{
    tti_step *s = f->step;
    bool is_over = s->step - s->base >= s->total || f->stop; // resumed, nothing is left to do
    tti_elastic_commit(f, f->is_pending);
    if (!is_over)
        TT_TRY(tti_own_lanes(s->graph, f->data));
    if (!is_over)
        TT_TRY(tt_data_start(f->data, f->rows_per_update, f->cursor));
    while ((s->step - s->base < s->total && !f->stop && !f->is_ended && !f->is_changed) ||
           f->is_pending) {
        if (!f->is_pending) {
            TT_TRY(one_step(f));
            tti_elastic_commit(f, true);
            TT_TRY(tti_fit_hash(f));
        }
        f->is_pending = false;
        TT_TRY(after_step(f));
        TT_TRY(tti_fit_share(f));
        if (f->o.profile > 0 && !f->o.trace && s->step - f->first_step == 3)
            atomic_store(&s->session->n_spans, 0); // the first steps are not measured
        if (f->o.profile > 0 && s->step - f->first_step - 3 == f->o.profile)
            TT_TRY(tti_profile_make(f->model));
        TT_TRY(tti_fit_agree(f));
        tti_elastic_commit(f, false);
        tti_elastic_copy_cheaply(f);
        tti_elastic_tell(f);
    }
    if (f->is_changed)
        return TT_OK;
    s->epochs = (f->cursor + f->count - 1) / f->count;
    if (!f->is_ended)
        TT_TRY(tti_fit_restore_best(f));
    return f->saved_step != s->step ? tti_fit_save(f, false) : TT_OK;
}

tt_status tt_fit_with(tt_model *m, tt_data *train, const tt_fit_opts *opts)
{
    tt_ctx *ctx = m != NULL ? m->ctx : train != NULL ? train->ctx : NULL;
    if (m == NULL || train == NULL || opts == NULL)
        return ctx == NULL ? TT_EINVAL
                           : TT_FAIL(ctx, TT_EINVAL, "fit: %s NULL",
                                     m == NULL       ? "the model is"
                                     : train == NULL ? "the data is"
                                                     : "the options are");
    if (tti_is_stuck(m->ctx))
        return tt_status_of(m->ctx);
    if (m->step == NULL)
        return TT_FAIL(m->ctx, TT_EINVAL,
                       "fit: the model is not compiled; call tt_compile() first");
    TTI_OPTS_OWN(m->ctx, "fit", tt_fit_opts, opts);
    if (opts == NULL)
        return TT_EINVAL;
    tti_fit *f = tti_calloc(m->ctx, 1, sizeof(*f));
    if (f == NULL)
        return TT_ENOMEM;
    f->model = m;
    f->data = train;
    f->first_loss = NAN;
    atomic_store(&m->ctx->end, 0);
    tt_status st = prepare(f, opts);
    if (st == TT_OK) {
        tti_fit_show(f);
        tti_fit_begin_event(f);
        st = loop(f);
        f->step->n_next = 0;
        tti_ahead_settle(f->step->session);
        tti_data_own(train, 0, 0, 0);
        if (st == TT_OK && !f->is_changed)
            st = call_back(f, TT_AT_END, 0);
        tti_elastic_keep(f);
    }
    tti_fit_close_saver(f);
    st = tti_ranks_wait(m->ctx, st, "the end of the fit"); // what failed last is everybody's too
    if (st == TT_OK && f->is_changed)
        m->ctx->elastic->is_changed = true;
    else if (st == TT_OK)
        st = tti_fit_report(f);
    if (st == TT_OK && f->is_ended)
        st = TT_FAIL(m->ctx, TT_ESTOP, "fit: ended on request after step %lld",
                     (long long)f->step->step);
    tti_fit_show_end(f);
    tti_free(m->ctx, f->best_weights);
    tti_free(m->ctx, f->slots);
    tti_free(m->ctx, f->share_marks);
    tti_free(m->ctx, f);
    return st != TT_OK ? st : tt_status_of(m->ctx);
}

void tt_request_end(tt_ctx *ctx)
{
    if (ctx != NULL)
        atomic_store(&ctx->end, 1);
}
