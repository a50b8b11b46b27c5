/*
 * fit_hash.c - hashes of the weights while a fit trains, as events "hash": the links of a run's
 * chain (record/chain.h).
 *
 * All processes compute one, for each may hold parts of the weights; the value does not depend on
 * who does. Unless the steps are given, there are as many as cost one part in a hundred of the
 * time: the steps between two are a power of two, chosen by how long the last one and the steps
 * before it took.
 */
#include "base/ctx.h"
#include "net/world.h"
#include "save/manifest.h"
#include "save/share.h"
#include "train/fit.h"

#define PARTS ((int64_t)100)     // of the time; one of them is for hashes
#define FIRST 8                  // steps after which the time of a step is known
#define MOST  ((int64_t)1 << 20) // steps between two

typedef struct wish {
    int64_t is_on, every;
} wish;

// What the first process has been asked for is done by all.
tt_status tti_fit_hash_begin(tti_fit *f)
{
    tt_ctx *ctx = f->model->ctx;
    wish all[TT_MAX_TASKS], mine = {ctx->hashing.is_on, ctx->hashing.every};
    all[0] = mine;
    if (tti_ranks(ctx) > 1)
        TT_TRY(
            tti_world_exchange(ctx->world, "hashes of the weights", &mine, sizeof(mine), all, 0));
    int64_t step = f->step->step;
    f->hashing = (tti_fit_hashing){
        .is_on = all[0].is_on != 0, .every = all[0].every, .next = step + 1, .mark_step = step + 1};
    return TT_OK;
}

static bool is_due(tti_fit *f)
{
    const tti_hashing *asked = &f->model->ctx->hashing;
    tti_fit_hashing *h = &f->hashing;
    int64_t step = f->step->step;
    if (asked->at == NULL)
        return h->every > 0 ? step % h->every == 0 : step >= h->next;
    while (h->at < asked->n_at && asked->at[h->at] < step)
        h->at++;
    return h->at < asked->n_at && asked->at[h->at] == step;
}

// What steps have taken so far, without validation and checkpoints.
static int64_t steps_ns(const tti_fit *f)
{
    return f->times->compute + f->times->data;
}

// The next step with a hash, after one that was begun then.
static tt_status choose_next(tti_fit *f, int64_t begin)
{
    tti_fit_hashing *h = &f->hashing;
    tt_ctx *ctx = f->model->ctx;
    int64_t step = f->step->step, n = FIRST, all[TT_MAX_TASKS];
    if (step > h->mark_step) {
        int64_t took = TTI_MAX((steps_ns(f) - h->mark_ns) / (step - h->mark_step), 1);
        int64_t cost = tti_now_ns() - begin;
        for (n = 1; n < MOST && n * took < PARTS * cost;)
            n *= 2;
    }
    all[0] = n;
    if (tti_ranks(ctx) > 1)
        TT_TRY(tti_world_exchange(ctx->world, "the next hash", &n, sizeof(n), all, 0));
    n = TTI_MAX(TTI_MIN(all[0], MOST), 1);
    h->next = step - step % n + n;
    return TT_OK;
}

tt_status tti_fit_hash(tti_fit *f)
{
    tti_fit_hashing *h = &f->hashing;
    if (!h->is_on || !is_due(f))
        return TT_OK;
    int64_t begin = tti_now_ns();
    tt_hash hash;
    char text[TTI_HASH_TEXT];
    TT_TRY(tt_model_hash(f->model, &hash));
    const tt_pair pairs[] = {{"step", (double)f->step->step, NULL},
                             {"weights", 0, tti_hash_text(hash, text)}};
    tti_emit_pairs(f->model->ctx, "hash", pairs, TTI_COUNT(pairs));
    if (h->every == 0 && f->model->ctx->hashing.at == NULL)
        TT_TRY(choose_next(f, begin));
    f->times->hash += tti_now_ns() - begin;
    h->mark_ns = steps_ns(f);
    h->mark_step = f->step->step;
    return TT_OK;
}
