/*
 * fit_save.c - checkpoints of a fit: what goes in, and going on from one.
 */
#include "base/ctx.h"
#include "run/run.h"
#include "save/share.h"
#include "train/elastic.h"
#include "train/fit.h"
#include <string.h>

#define MANY ((int64_t)1 << 61) // steps and records: sums of two of them are numbers too

void tti_fit_state(tti_fit *f, tti_train_state *s)
{
    tti_step *step = f->step;
    tt_ctx *ctx = f->model->ctx;
    *s = (tti_train_state){.step = step->step,
                           .cursor = f->cursor,
                           .count = f->count,
                           .lanes = ctx->top.lanes,
                           .batch = f->o.batch,
                           .accumulate = f->o.accumulate,
                           .seed = ctx->seed,
                           .arithmetic = tti_arithmetic_of(ctx),
                           .lr_factor = step->lr_factor,
                           .early = f->early,
                           .plateau = f->plateau,
                           .best = f->best,
                           .skipped = f->skipped,
                           .unapplied = step->unapplied,
                           .job = (char *)f->o.job};
    tti_bits_of(ctx, s->gpu);
    if (f->is_new_epoch)
        return; // between epochs there are no sums
    s->n_sums = (int)TTI_MIN(step->train.n_numbers + 1, TTI_MAX_SUMS);
    memcpy(s->sums, step->epoch, sizeof(double) * (size_t)s->n_sums);
}

// A guarded fit keeps nothing that is not finite: the last good checkpoint stays the newest.
static tt_status check_finite(const tti_fit *f, const tti_snapshot *s)
{
    for (int64_t i = 0; i < s->n; i++) {
        const tti_named *t = &s->tensors[i];
        int64_t at = tti_first_not_finite(t->dtype, t->data, tt_shape_count(&t->shape));
        if (at >= 0)
            return TT_FAIL(f->model->ctx, TT_ENAN,
                           "step %lld: element %lld of '%s' is %g, so no checkpoint is written; a "
                           "smaller learning rate or clip_global keeps weights small, and nan: "
                           "continue saves them as they are",
                           (long long)f->step->step, (long long)at, t->name,
                           tti_get_number(t->dtype, t->data, at));
    }
    return TT_OK;
}

tt_status tti_fit_save(tti_fit *f, bool is_best)
{
    if (f->o.checkpoints == NULL)
        return TT_OK;
    int64_t begin = tti_now_ns();
    TT_TRY(tti_replicas_check(f->step->session, f->step->step)); // nothing wrong is kept
    tti_snapshot snapshot = {0};
    tti_snapshot_hashes hashes = {0};
    tt_status st = tti_model_snapshot(f->model, &snapshot); // all processes: they hold parts of it
    if (st == TT_OK && f->saver != NULL && f->step->guard)
        st = check_finite(f, &snapshot);
    if (st == TT_OK && f->saver != NULL) {
        tti_fit_state(f, &snapshot.state);
        if (f->hashing.is_on)
            st = tti_snapshot_hash(f->model->ctx, &snapshot, &hashes);
    }
    if (st == TT_OK && f->saver != NULL) {
        st = tti_saver_save(f->saver, &snapshot, is_best);
        snapshot.state.job = NULL; // borrowed
    }
    tti_snapshot_free(f->model->ctx, &snapshot);
    st = tti_ranks_wait(f->model->ctx, st, "the checkpoint");
    f->saved_step = f->step->step;
    int64_t took = tti_now_ns() - begin;
    f->times->checkpoint += took;
    TT_TRY(st);
    tt_pair pairs[] = {{"step", (double)f->step->step, NULL},
                       {"seconds", (double)took * 1e-9, NULL},
                       {"best", is_best, NULL},
                       {"path", 0, f->o.checkpoints},
                       {"weights", 0, hashes.weights},
                       {"optimizer", 0, hashes.optimizer},
                       {"state", 0, hashes.state}};
    bool is_hashed = hashes.weights[0] != '\0';
    tti_emit_pairs(f->model->ctx, "checkpoint", pairs, TTI_COUNT(pairs) - (is_hashed ? 0 : 3));
    return TT_OK;
}

// Records were shuffled in another way under arithmetic 1.
static const char *order_note(const tti_train_state *s)
{
    bool within_epoch = s->count > 0 && s->cursor % s->count != 0;
    return s->arithmetic % 1000 == 1 && within_epoch
               ? "; the order of the records differs too: in this epoch some are used twice and "
                 "some not at all"
               : "";
}

// What must be equal for the bits to go on as they were.
static tt_status check_state(tti_fit *f, const char *path, const tti_train_state *s)
{
    tt_ctx *ctx = f->model->ctx;
    if (s->lanes != ctx->top.lanes)
        return TT_FAIL(ctx, TT_EINVAL,
                       "%s was made with %d lanes, this fit has %d; lanes are kept "
                       "for a job's life",
                       path, s->lanes, ctx->top.lanes);
    int64_t theirs = 0, ours = 0; // as one of them may be too large, so may the other be
    if (!tti_mul_i64(s->batch, s->accumulate, &theirs) ||
        !tti_mul_i64(f->o.batch, f->o.accumulate, &ours) || theirs != ours)
        return TT_FAIL(
            ctx, TT_EINVAL,
            "%s was made with updates of %lld x %lld rows, this fit has %lld x %lld (batch x "
            "accumulate); resume with the same product, or start a new run",
            path, (long long)s->batch, (long long)s->accumulate, (long long)f->o.batch,
            (long long)f->o.accumulate);
    if (s->count != f->count && s->cursor > 0)
        return TT_FAIL(
            ctx, TT_EINVAL,
            "%s was made with %lld records an epoch, but the training data has %lld: its "
            "files, its count or its split have changed",
            path, (long long)s->count, (long long)f->count);
    if (s->seed != ctx->seed)
        return TT_FAIL(ctx, TT_EINVAL, "%s was made with seed %llu, this fit has %llu", path,
                       (unsigned long long)s->seed, (unsigned long long)ctx->seed);
    char gpu[TTI_BITS_TEXT];
    tti_bits_of(ctx, gpu);
    if (s->arithmetic != tti_arithmetic_of(ctx))
        TT_LOG(ctx, TT_WARN,
               "%s was made with arithmetic version %d%s, this is version %d%s: the bits will "
               "differ%s",
               path, s->arithmetic, tti_arithmetic_note(s->arithmetic), tti_arithmetic_of(ctx),
               tti_arithmetic_note(tti_arithmetic_of(ctx)), order_note(s));
    else if (s->gpu[0] != '\0' && strcmp(s->gpu, gpu) != 0)
        TT_LOG(ctx, TT_WARN, "%s was made on %s; this is %s: other bits may follow", path, s->gpu,
               gpu);
    if (s->step < 0 || s->step > MANY || s->cursor < 0 || s->cursor > MANY)
        return TT_FAIL(ctx, TT_EPARSE, "%s: step %lld or cursor %lld is not from 0 to 2^61", path,
                       (long long)s->step, (long long)s->cursor);
    return TT_OK;
}

tt_status tti_fit_read(tti_fit *f, bool best, tti_snapshot *out, bool *has)
{
    tt_ctx *ctx = f->model->ctx;
    char path[TTI_PATH_MAX] = "";
    tt_status st = TT_OK;
    if (tti_is_first(ctx))
        st = best ? tti_checkpoint_best(ctx, f->o.checkpoints, path)
                  : tti_checkpoint_resume(ctx, f->o.checkpoints, path);
    *has = st == TT_OK && path[0] != '\0';
    if (*has)
        st = tti_checkpoint_read(ctx, path, out);
    return tti_snapshot_share(ctx, st, out, has);
}

tt_status tti_fit_go_on(tti_fit *f, const tti_snapshot *snapshot, const char *from)
{
    const tti_train_state *s = &snapshot->state;
    TT_TRY(check_state(f, from, s));
    TT_TRY(tti_model_restore(f->model, snapshot, false));
    if (f->saver != NULL)
        TT_TRY(tti_saver_resumed(f->saver, s->step));
    f->step->step = f->first_step = f->saved_step = s->step;
    f->cursor = f->first_cursor = s->cursor;
    f->step->lr_factor = s->lr_factor;
    f->early = s->early;
    f->plateau = s->plateau;
    f->best = s->best;
    f->skipped = s->skipped;
    f->step->unapplied = s->unapplied;
    f->stop = f->o.early_stop->patience > 0 && f->early.bad >= f->o.early_stop->patience;
    f->is_new_epoch = s->n_sums == 0;
    if (!f->is_new_epoch && s->n_sums == f->step->train.n_numbers + 1)
        memcpy(f->step->epoch, s->sums, sizeof(double) * (size_t)s->n_sums);
    TT_LOG(f->model->ctx, TT_INFO, "resuming from %s, after step %lld", from, (long long)s->step);
    return TT_OK;
}

static tt_status go_on(tti_fit *f)
{
    tti_snapshot snapshot;
    bool has = false;
    TT_TRY(tti_fit_read(f, false, &snapshot, &has));
    if (!has)
        return TT_OK;
    tt_status st = tti_fit_go_on(f, &snapshot, snapshot.path);
    tti_snapshot_free(f->model->ctx, &snapshot);
    return st;
}

// Step 0 in a folder that holds checkpoints: they are moved out of the way.
static tt_status restart(tti_fit *f)
{
    tt_ctx *ctx = f->model->ctx;
    char moved[TTI_PATH_MAX] = "";
    if (tti_is_first(ctx))
        TT_TRY(tti_checkpoint_set_aside(ctx, f->o.checkpoints, moved));
    if (moved[0] != '\0')
        TT_LOG(ctx, TT_WARN, "restarting at step 0; the old checkpoints are in '%s'", moved);
    return TT_OK;
}

// Nothing but a folder without checkpoints is begun in.
static tt_status check_empty(tti_fit *f)
{
    int64_t n;
    const char *old = tti_saver_newest(f->saver);
    if (old[0] != '\0')
        return TT_FAIL(f->model->ctx, TT_EINVAL,
                       "fit: %s is of another run: resume from it, or use another folder", old);
    TT_TRY(tti_checkpoint_count(f->model->ctx, f->o.checkpoints, &n));
    if (n > 0)
        return TT_FAIL(f->model->ctx, TT_EINVAL,
                       "fit: '%s' holds %lld checkpoints, all damaged: restart, which moves them "
                       "away, or use another folder",
                       f->o.checkpoints, (long long)n);
    return TT_OK;
}

// Not from a folder, but from what processes of the job have in memory.
static tt_status go_on_from_memory(tti_fit *f)
{
    if (f->o.checkpoints != NULL && tti_is_first(f->model->ctx))
        TT_TRY(tti_saver_open(f->model->ctx, f->o.checkpoints, f->o.keep, &f->saver));
    TT_TRY(tti_elastic_restore(f));
    f->saved_step = -1; // what is in the folder may be older
    return TT_OK;
}

tt_status tti_fit_open_saver(tti_fit *f)
{
    f->saved_step = -1;
    if (tti_elastic_is_resumed(f))
        return go_on_from_memory(f);
    if (f->o.checkpoints == NULL)
        return f->o.resume || f->o.restart ? TT_FAIL(f->model->ctx, TT_EINVAL,
                                                     "fit: %s needs the folder of the checkpoints",
                                                     f->o.resume ? "resume" : "restart")
                                           : TT_OK;
    if (f->o.restart)
        TT_TRY(restart(f));
    if (tti_is_first(f->model->ctx))
        TT_TRY(tti_saver_open(f->model->ctx, f->o.checkpoints, f->o.keep, &f->saver));
    if (f->o.resume && !f->o.restart)
        return go_on(f);
    if (f->saver == NULL)
        return TT_OK;
    return check_empty(f);
}

void tti_fit_close_saver(tti_fit *f)
{
    int64_t begin = tti_now_ns();
    tti_saver_close(f->saver);
    f->saver = NULL;
    if (f->times != NULL)
        f->times->checkpoint += tti_now_ns() - begin;
}
