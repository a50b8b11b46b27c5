/*
 * fit_elastic.c - a fit that goes on with other processes (elastic.h): what is kept of it, and how
 * the next one begins.
 */
#include "base/ctx.h"
#include "net/world.h"
#include "run/run.h"
#include "save/fitting.h"
#include "save/share.h"
#include "train/elastic.h"
#include "train/fit.h"
#include <stdio.h>
#include <string.h>

#define COPY_NS     INT64_C(250000000) // between two copies, at least
#define COPY_SHARE  50                 // one part in so many of the time is spent on them
#define CHEAP_SHARE 30                 // and on those after every step, where these are as cheap

static tti_elastic *of(const tti_fit *f)
{
    return f->model->ctx->elastic;
}

// ---- snapshots in memory of no context -------------------------------------------------------

static void kept_free(tti_kept *k)
{
    k->snapshot.state.job = NULL;
    tti_snapshot_free(NULL, &k->snapshot);
    k->has = false;
}

void tti_elastic_free(tti_elastic *e)
{
    kept_free(&e->last);
    kept_free(&e->copy);
}

int64_t tti_elastic_age(const tti_elastic *e)
{
    const tti_kept *k = &e->last;
    return k->has ? 2 * k->snapshot.state.step + !k->is_pending : -1;
}

static bool has_room(const tti_snapshot *to, const tti_snapshot *from)
{
    bool same = to->tensors != NULL && to->n == from->n;
    for (int64_t i = 0; same && i < from->n; i++)
        same = to->tensors[i].bytes == from->tensors[i].bytes &&
               strcmp(to->tensors[i].name, from->tensors[i].name) == 0;
    return same;
}

static bool make_room(tti_kept *k, const tti_snapshot *from)
{
    size_t bytes = 1, names = 1;
    tti_snapshot *to = &k->snapshot;
    if (has_room(to, from))
        return true;
    kept_free(k);
    for (int64_t i = 0; i < from->n; i++) {
        bytes += (from->tensors[i].bytes + 63) & ~(size_t)63;
        names += strlen(from->tensors[i].name) + 1;
    }
    to->tensors = tti_calloc(NULL, (size_t)from->n + 1, sizeof(*to->tensors));
    to->memory[0] = tti_alloc(NULL, bytes);
    to->names[0] = tti_alloc(NULL, names);
    if (to->tensors == NULL || to->memory[0] == NULL || to->names[0] == NULL) {
        kept_free(k);
        return false;
    }
    char *at = to->memory[0], *name = to->names[0];
    for (int64_t i = 0; i < from->n; i++) {
        to->tensors[i] = from->tensors[i];
        to->tensors[i].data = at;
        to->tensors[i].name = strcpy(name, from->tensors[i].name);
        at += (from->tensors[i].bytes + 63) & ~(size_t)63;
        name += strlen(name) + 1;
    }
    return true;
}

// false: there is no memory for it.
static bool keep_snapshot(tti_kept *k, const tti_snapshot *from, const tti_train_state *state)
{
    tti_snapshot *to = &k->snapshot;
    k->has = false;
    if (!make_room(k, from))
        return false;
    for (int64_t i = 0; i < from->n; i++)
        memcpy((char *)to->memory[0] + ((const char *)to->tensors[i].data - to->memory[0]),
               from->tensors[i].data, from->tensors[i].bytes);
    to->n = from->n;
    to->n_weights = from->n_weights;
    to->origin = from->origin;
    to->state = *state;
    to->state.job = NULL; // the next fit has it
    k->has = true;
    return true;
}

// ---- while it runs ---------------------------------------------------------------------------

void tti_elastic_commit(tti_fit *f, bool is_pending)
{
    tti_elastic *e = of(f);
    if (e == NULL)
        return;
    tti_fit_state(f, &e->state);
    e->progress = f->progress;
    e->validations = f->validations;
    e->is_pending = is_pending;
    f->has_state = true;
}

bool tti_elastic_is_copy_due(const tti_fit *f)
{
    const tti_elastic *e = of(f);
    int64_t now = tti_now_ns();
    return e != NULL && now - e->copied_ns > TTI_MAX(COPY_NS, COPY_SHARE * e->copy_ns);
}

static void note_copy(tti_fit *f, tti_elastic *e, int64_t begin)
{
    e->copy.progress = e->progress;
    e->copy.validations = e->validations;
    e->copy.is_pending = false;
    e->copied_ns = tti_now_ns();
    e->copy_ns = e->copied_ns - begin;
    f->copied_step = f->step->step;
}

tt_status tti_elastic_copy(tti_fit *f)
{
    tti_elastic *e = of(f);
    tti_snapshot s = {0};
    if (e == NULL)
        return TT_OK;
    int64_t begin = tti_now_ns();
    TT_TRY(tti_model_snapshot(f->model, &s)); // all processes: they may hold parts of it
    tti_elastic_commit(f, false);
    (void)keep_snapshot(&e->copy, &s, &e->state);
    tti_snapshot_free(f->model->ctx, &s);
    note_copy(f, e, begin);
    // Of variables that are whole in every process the next ones are made without the others.
    tti_free(f->model->ctx, f->slots);
    f->slots = NULL;
    int64_t n_weights;
    TT_TRY(tti_model_slots(f->model, &f->slots, &n_weights, &f->n_slots));
    return TT_OK;
}

void tti_elastic_copy_cheaply(tti_fit *f)
{
    tti_elastic *e = of(f);
    int64_t step_ns = f->times->steps[(f->times->n_steps + TTI_STEP_TIMES - 1) % TTI_STEP_TIMES];
    if (e == NULL || f->slots == NULL || !e->copy.has || f->copied_step == f->step->step ||
        e->copy.snapshot.n != f->n_slots || e->copy_ns * CHEAP_SHARE > step_ns)
        return;
    int64_t begin = tti_now_ns();
    e->copy.has = false;
    for (int64_t i = 0; i < f->n_slots; i++) {
        tti_variable *v;
        const tti_named *t = &e->copy.snapshot.tensors[i];
        if (tti_session_variable(f->slots[i].session, f->slots[i].var->node, &v) != TT_OK)
            return;
        const void *data = tti_variable_here(v);
        if (data == NULL || v->bytes != t->bytes)
            return; // in pieces
        memcpy(e->copy.snapshot.memory[0] + ((const char *)t->data - e->copy.snapshot.memory[0]),
               data, v->bytes);
    }
    tti_train_state *to = &e->copy.snapshot.state;
    memcpy(to, &e->state, offsetof(tti_train_state, sums));
    memcpy(to->sums, e->state.sums, sizeof(double) * (size_t)e->state.n_sums);
    e->copy.has = true;
    note_copy(f, e, begin);
}

// ---- its end ---------------------------------------------------------------------------------

// Are the variables of this process whole, and those of the step that is noted?
static bool is_whole(tti_fit *f, const tti_elastic *e)
{
    const tt_session *s = f->step->session;
    tti_slot *slots;
    int64_t n_weights, n;
    if (f->step->step != e->state.step || atomic_load(&s->writing) != atomic_load(&s->written) ||
        tti_model_slots(f->model, &slots, &n_weights, &n) != TT_OK)
        return false;
    bool whole = true;
    for (int64_t i = 0; i < n && whole; i++) {
        tti_variable *v;
        whole = tti_session_variable(slots[i].session, slots[i].var->node, &v) == TT_OK &&
                tti_variable_here(v) != NULL;
    }
    tti_free(f->model->ctx, slots);
    return whole;
}

static bool keep_live(tti_fit *f, tti_elastic *e)
{
    tti_snapshot s = {0};
    if (!f->has_state || !is_whole(f, e) || tti_model_snapshot(f->model, &s) != TT_OK)
        return false;
    bool ok = keep_snapshot(&e->last, &s, &e->state);
    tti_snapshot_free(f->model->ctx, &s);
    e->last.progress = e->progress;
    e->last.validations = e->validations;
    e->last.is_pending = e->is_pending;
    return ok;
}

void tti_elastic_keep(tti_fit *f)
{
    tti_elastic *e = of(f);
    tt_ctx *ctx = f->model->ctx;
    if (e == NULL || f->step == NULL)
        return;
    // The error stays the context's; meanwhile it must not keep variables from being looked at.
    tt_error error = tt_last_error(ctx);
    char *message = error.status != TT_OK ? tti_strdup(NULL, error.message) : NULL;
    tt_clear_error(ctx);
    e->reached = TTI_MAX(e->reached, f->step->step);
    // Else the copy; before one was made, what the fit began with.
    if (!keep_live(f, e) && e->copy.has &&
        (!e->last.has || e->copy.snapshot.state.step > e->last.snapshot.state.step)) {
        tti_kept swap = e->last;
        e->last = e->copy;
        e->copy = swap;
    }
    tt_clear_error(ctx);
    if (error.status != TT_OK)
        (void)TT_FAIL(ctx, error.status, "%s", message != NULL ? message : "");
    tti_free(NULL, message);
}

// ---- the beginning of the next ---------------------------------------------------------------

bool tti_elastic_is_resumed(const tti_fit *f)
{
    const tti_elastic *e = of(f);
    return e != NULL && e->source >= 0;
}

typedef struct word {
    int64_t age, validations;
    int32_t is_pending;
    tt_progress progress;
} word;

static tt_status share(tti_fit *f, tti_elastic *e, word *from, tti_snapshot *got, bool *is_own)
{
    tt_ctx *ctx = f->model->ctx;
    tti_kept *k = &e->last;
    int n = tti_ranks(ctx);
    word *all = tti_calloc(ctx, (size_t)n + 1, sizeof(*all)), *mine = all + n;
    if (all == NULL)
        return TT_ENOMEM;
    mine->age = tti_elastic_age(e);
    mine->validations = k->validations;
    mine->is_pending = k->is_pending;
    mine->progress = k->progress;
    tt_status st = TT_OK;
    if (n == 1)
        all[0] = *mine;
    else
        st = tti_world_exchange(ctx->world, "the newest state", mine, sizeof(*mine), all, 0);
    int source = TTI_MIN(e->source, n - 1);
    *from = all[source];
    *is_own = st == TT_OK && mine->age == from->age && mine->age >= 0;
    tti_free(ctx, all);
    bool has = k->has;
    if (st == TT_OK && n > 1)
        st = tti_snapshot_share_from(ctx, source, *is_own, *is_own ? &k->snapshot : got, &has);
    if (st == TT_OK && (!has || from->age < 0))
        st = TT_FAIL(ctx, TT_EPEER, "rank %d has no state to go on from", source);
    return st;
}

tt_status tti_elastic_restore(tti_fit *f)
{
    tt_ctx *ctx = f->model->ctx;
    tti_elastic *e = of(f);
    tti_snapshot got = {0};
    word from;
    bool is_own = false;
    tt_status st = share(f, e, &from, &got, &is_own);
    if (st == TT_OK)
        st = tti_fit_go_on(f, is_own ? &e->last.snapshot : &got, "the state in memory");
    if (st == TT_OK) {
        f->is_pending = from.is_pending != 0;
        f->validations = from.validations;
        f->progress = from.progress;
        f->progress.n_metrics = f->step->n_metrics;
        for (int i = 0; i < f->step->n_metrics; i++)
            f->progress.names[i] = f->step->metrics[i].name; // those are the other context's
        f->has_steps = f->is_pending;
        e->lost_steps = TTI_MAX(e->reached - f->step->step, 0);
    }
    if (!is_own)
        tti_snapshot_free(ctx, &got);
    return st;
}

void tti_elastic_tell(tti_fit *f)
{
    tti_elastic *e = of(f);
    char text[640];
    if (e == NULL || e->message[0] == '\0' || !tti_is_first(f->model->ctx))
        return;
    int n = tti_ranks(f->model->ctx);
    double took = 1e-9 * (double)(tti_now_ns() - e->since_ns);
    char again[64] = "";
    if (e->lost_steps > 0)
        snprintf(again, sizeof(again), ", %lld step%s computed again", (long long)e->lost_steps,
                 e->lost_steps == 1 ? "" : "s");
    snprintf(text, sizeof(text), "%s; going on with %d worker%s at step %lld (%.1f s%s)",
             e->message, n, n == 1 ? "" : "s", (long long)f->step->step, took, again);
    e->message[0] = '\0';
    tt_pair pairs[] = {{"step", (double)(f->step->step - f->step->base), NULL},
                       {"workers", n, NULL},
                       {"membership", (double)e->epoch, NULL},
                       {"seconds", took, NULL},
                       {"steps_again", (double)e->lost_steps, NULL},
                       {"message", 0, text}};
    tti_emit_pairs(f->model->ctx, "membership", pairs, TTI_COUNT(pairs));
}
