/*
 * save.c - tt_save(), tt_load(), tt_export(): a model's weights out of it and into it.
 */
#include "base/ctx.h"
#include "save/card.h"
#include "save/fitting.h"
#include "save/share.h"
#include "save/source.h"
#include "train/compile.h"
#include <stdio.h>
#include <string.h>

static tt_status ready(tt_model *m, const char *path, const char *what)
{
    if (m == NULL)
        return TT_EINVAL;
    if (tti_is_stuck(m->ctx))
        return tt_status_of(m->ctx);
    if (path == NULL || path[0] == '\0')
        return TT_FAIL(m->ctx, TT_EINVAL, "%s: no path is given", what);
    return TT_OK;
}

tt_status tt_save(tt_model *m, const char *path)
{
    TT_TRY(ready(m, path, "save"));
    tti_snapshot *s = tti_calloc(m->ctx, 1, sizeof(*s));
    if (s == NULL)
        return TT_ENOMEM;
    tt_status st = tti_model_snapshot(m, s);
    if (st == TT_OK && m->step != NULL) {
        s->state.step = m->step->step;
        s->state.unapplied = m->step->unapplied;
        s->state.lr_factor = m->step->lr_factor;
    }
    if (st == TT_OK && tti_is_first(m->ctx))
        st = tti_checkpoint_write(m->ctx, path, s);
    tti_snapshot_free(m->ctx, s);
    tti_free(m->ctx, s);
    return tti_ranks_wait(m->ctx, st, "saving");
}

tt_status tt_export(tt_model *m, const char *path)
{
    tt_hash hash;
    TT_TRY(ready(m, path, "export"));
    tti_snapshot *s = tti_calloc(m->ctx, 1, sizeof(*s));
    if (s == NULL)
        return TT_ENOMEM;
    tt_status st = tti_model_snapshot(m, s);
    const char *const metadata[] = {"format", "tutti", TTI_CARD, s->card, NULL};
    if (st == TT_OK && tti_is_first(m->ctx))
        st = tti_safetensors_write(m->ctx, path, s->tensors, s->n_weights, metadata, &hash);
    tti_snapshot_free(m->ctx, s);
    tti_free(m->ctx, s);
    return tti_ranks_wait(m->ctx, st, "exporting");
}

// ---- loading ---------------------------------------------------------------------------------

static bool is_plain(const tt_load_opts *o)
{
    return !o->partial && o->map == NULL && o->only == NULL;
}

// A checkpoint's optimizer state goes along with its weights where it fits.
static tt_status load_optimizer(tt_model *m, const tti_source *src, const tti_slot *slots,
                                int64_t n)
{
    const tti_snapshot *s = &src->snapshot;
    if (n == 0 || s->n == s->n_weights)
        return TT_OK;
    int64_t *found = tti_calloc(m->ctx, (size_t)n, sizeof(*found));
    if (found == NULL)
        return TT_ENOMEM;
    tti_fitting f = {.file = src->file,
                     .slots = slots,
                     .n_slots = n,
                     .tensors = s->tensors + s->n_weights,
                     .n_tensors = s->n - s->n_weights,
                     .found = found};
    tt_status st = TT_OK;
    if (tti_fitting_find(NULL, &f) != TT_OK) { // nothing is recorded: this is no error
        TT_LOG(m->ctx, TT_WARN,
               "%s: its optimizer state belongs to another optimizer and is not loaded", s->path);
    } else {
        st = tti_fitting_apply(m->ctx, &f);
        if (st == TT_OK) {
            m->step->step = s->state.step;
            m->step->unapplied = s->state.unapplied;
            m->step->lr_factor = s->state.lr_factor;
        }
    }
    tti_free(m->ctx, found);
    return st;
}

static tt_status load(tt_model *m, const tti_source *src, const tt_load_opts *o)
{
    tti_slot *slots;
    int64_t n_weights, n;
    TT_TRY(tti_model_slots(m, &slots, &n_weights, &n));
    int64_t *found = tti_calloc(m->ctx, (size_t)n_weights + 1, sizeof(*found));
    tti_fitting f = {.file = src->file,
                     .slots = slots,
                     .n_slots = n_weights,
                     .tensors = src->tensors,
                     .n_tensors = src->n,
                     .types = src->table.types,
                     .partial = o->partial,
                     .map = o->map,
                     .only = o->only,
                     .layout = o->layout,
                     .origin = src->origin,
                     .found = found};
    tti_form *forms = NULL;
    tt_status st = found == NULL ? TT_ENOMEM : tti_model_forms(m, &forms);
    f.forms = forms;
    if (st == TT_OK)
        st = tti_fitting_find(m->ctx, &f);
    if (st == TT_OK)
        st = tti_fitting_apply(m->ctx, &f);
    if (st == TT_OK && m->step != NULL && is_plain(o))
        st = load_optimizer(m, src, slots + n_weights, n - n_weights);
    tti_free(m->ctx, forms);
    tti_free(m->ctx, found);
    tti_free(m->ctx, slots);
    return st;
}

// The first process reads it; the others get its tensors.
static tt_status open_shared(tt_ctx *ctx, const char *path, tti_source *src)
{
    bool is_first = tti_is_first(ctx), has = is_first;
    if (tti_ranks(ctx) == 1)
        return tti_source_open(ctx, path, src);
    if (is_first)
        TT_TRY(tti_source_open(ctx, path, src));
    tti_snapshot *all = tti_calloc(ctx, 1, sizeof(*all));
    tt_status st = all == NULL ? TT_ENOMEM : TT_OK;
    if (st == TT_OK && is_first) {
        *all = src->snapshot;
        all->path = (char *)path;
        if (src->snapshot.tensors == NULL) {          // a file of tensors
            all->tensors = (tti_named *)src->tensors; // only read
            all->n = all->n_weights = src->n;
            all->origin = src->origin;
        }
    }
    if (st == TT_OK)
        st = tti_snapshot_share(ctx, st, all, &has);
    if (st == TT_OK && !is_first) {
        src->snapshot = *all; // and is freed with it
        src->is_checkpoint = true;
        src->origin = all->origin;
        snprintf(src->file, sizeof(src->file), "%s", src->snapshot.path);
        src->tensors = src->snapshot.tensors;
        src->n = src->snapshot.n_weights;
    }
    tti_free(ctx, all);
    if (st != TT_OK && is_first)
        tti_source_close(ctx, src);
    return st;
}

tt_status tt_load_with(tt_model *m, const char *path, const tt_load_opts *opts)
{
    TT_TRY(ready(m, path, "load"));
    tt_load_opts o;
    TT_TRY(TTI_OPTS_COPY(m->ctx, "load", opts, &o));
    if ((unsigned)o.layout > TT_WEIGHTS_TORCH)
        return TT_FAIL(m->ctx, TT_EINVAL, "load: there is no layout %d", (int)o.layout);
    tti_source *src = tti_calloc(m->ctx, 1, sizeof(*src));
    if (src == NULL)
        return TT_ENOMEM;
    tt_status st = open_shared(m->ctx, path, src);
    if (st == TT_OK) {
        st = load(m, src, &o);
        tti_source_close(m->ctx, src);
    }
    tti_free(m->ctx, src);
    return st;
}
