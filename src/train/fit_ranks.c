/*
 * fit_ranks.c - a fit in several processes. All compute the same numbers and so take the same
 * decisions; what only one of them knows (a signal, a callback's word) is agreed upon here.
 *
 * Agreeing takes an exchange, so it is not done after every step: each time the first rank says
 * after how many steps the next one is due, by how long steps take.
 */
#include "base/ctx.h"
#include "data/data.h"
#include "device/device.h"
#include "net/world.h"
#include "save/share.h"
#include "strategy/strategy.h"
#include "train/elastic.h"
#include "train/fit.h"
#include <stdio.h>

#define EVERY_NS (INT64_C(50) * 1000000)
#define MOST     1000 // steps

typedef struct word {
    int32_t ends, stops; // tt_request_end() was called; a callback said TT_ESTOP
    int32_t changes;     // processes come or go
    int32_t copies;      // of the first: a copy of the state is made
    int64_t step, next;  // done; until the next exchange
} word;

static int64_t steps_until_next(tti_fit *f)
{
    int64_t now = tti_now_ns(), steps = f->step->step - f->agreed_step;
    int64_t took = f->agreed_ns != 0 && steps > 0 ? (now - f->agreed_ns) / steps : EVERY_NS;
    f->agreed_ns = now;
    return TTI_MAX(1, TTI_MIN(MOST, EVERY_NS / TTI_MAX(took, 1)));
}

// Lanes of the replicas that have a device in this process; those are one after another.
tt_status tti_own_lanes(const tt_graph *g, tt_data *data)
{
    tt_ctx *ctx = g->ctx;
    tti_mesh m;
    int first = ctx->top.lanes, last = 0;
    tti_data_own(data, 0, 0, 0);
    if (ctx->top.n_tasks < 2)
        return TT_OK;
    TT_TRY(ctx->top.strategy->mesh(&ctx->top, g, &m));
    int replicas = tti_mesh_size(&m, TTI_AXIS_DATA), n_pipe = tti_mesh_size(&m, TTI_AXIS_PIPE);
    if (m.n_axes == 0 || replicas - m.n_without_lanes > ctx->top.lanes)
        return TT_OK;
    int *end = tti_calloc(ctx, (size_t)replicas, sizeof(*end));
    if (end == NULL)
        return TT_ENOMEM;
    tti_assign_lanes(&m, ctx->top.lanes, end);
    for (int r = 0; r < replicas; r++)
        for (int l = 0; l < n_pipe; l++) {
            if (ctx->top.devices[tti_mesh_device(&m, r, l)]->task != ctx->top.task)
                continue;
            first = TTI_MIN(first, r > 0 ? end[r - 1] : 0);
            last = TTI_MAX(last, end[r]);
        }
    tti_free(ctx, end);
    tti_data_own(data, TTI_MIN(first, last), last, ctx->top.lanes);
    return TT_OK;
}

static bool wants_change(const tti_fit *f)
{
    struct tti_elastic *e = f->model->ctx->elastic;
    return e != NULL && atomic_load(&e->wants_change) != 0;
}

tt_status tti_fit_agree(tti_fit *f)
{
    tt_ctx *ctx = f->model->ctx;
    tti_step *s = f->step;
    int n = tti_ranks(ctx);
    if (n == 1) {
        f->is_ended = atomic_load(&ctx->end) != 0;
        f->stop = f->stop || f->wants_stop;
        bool is_over = s->step - s->base >= s->total || f->is_ended || f->stop;
        f->is_changed = wants_change(f) && !is_over;
        return TT_OK;
    }
    bool is_last = s->step - s->base >= s->total || f->stop;
    if (s->step < f->agree_at && !is_last)
        return TT_OK;
    word all[TT_MAX_TASKS],
        mine = {atomic_load(&ctx->end) != 0, f->wants_stop, wants_change(f),
                tti_elastic_is_copy_due(f),  s->step,       steps_until_next(f)};
    char what[64];
    snprintf(what, sizeof(what), "the end of step %lld", (long long)s->step);
    TT_TRY(tti_world_exchange(ctx->world, what, &mine, sizeof(mine), all, 0));
    for (int i = 0; i < n; i++) {
        f->is_ended = f->is_ended || all[i].ends;
        f->stop = f->stop || all[i].stops;
        f->is_changed = f->is_changed || all[i].changes;
    }
    f->agreed_step = s->step;
    f->agree_at = s->step + all[0].next;
    f->is_changed = f->is_changed && !is_last && !f->is_ended && !f->stop;
    return all[0].copies && !f->is_changed ? tti_elastic_copy(f) : TT_OK;
}
