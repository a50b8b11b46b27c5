/*
 * in_process.c - the transport between members of one process: they share its memory, so a
 * reduction reads every addend where it is and writes every result, and a move is a copy. The
 * threads of the devices share the work.
 */
#include "comm/comm.h"
#include "device/device.h"
#include "net/timeout.h"
#include <string.h>

#define ALONE ((int64_t)512 << 10) // bytes that are not worth waking anyone
#define PIECE ((size_t)256 << 10)  // bytes of a move that are copied at once

// ---- work on the context's devices -----------------------------------------------------------

static tt_status units_kernel(const tt_launch *l)
{
    const tti_device *d = l->tune;
    d->work->fn(d->work->arg, d->first_unit + l->begin, d->first_unit + l->end);
    return TT_OK;
}

static void run_units(void *arg)
{
    tti_device *d = arg;
    tt_launch launch = {.ctx = d->ctx, .tune = d};
    if (d->n_units > 0)
        (void)tti_team_run(d->team, units_kernel, &launch, 0, d->n_units, d->work->chunk, 0);
}

static void wait_for(const tti_work *w, tti_device *d)
{
    int spins = d->is_crowded ? 0 : 20000;
    double waited;
    bool told = false;
    // What it works on is in use until it returns.
    while (tti_flag_await(d->ctx, &d->n_done, d->n_submitted, spins, w->deadline_ms, &waited) !=
           TT_OK) {
        if (!told)
            (void)TT_FAIL(d->ctx, TT_ETIMEOUT, "%s: %s has not finished its part within %.1f s",
                          w->name, d->name, waited);
        told = true;
    }
}

// Each own device's units, by its number of threads.
static void divide(tt_ctx *ctx, const tti_work *w)
{
    int64_t threads = 0, before = 0, chunks = (w->units + w->chunk - 1) / w->chunk;
    for (int i = 0; i < ctx->top.n_devices; i++)
        threads += ctx->top.devices[i]->is_away ? 0 : ctx->top.devices[i]->n_threads;
    for (int i = 0; i < ctx->top.n_devices; i++) {
        tti_device *d = ctx->top.devices[i];
        if (d->is_away)
            continue;
        int64_t first = chunks * before / threads * w->chunk;
        before += d->n_threads;
        d->work = w;
        d->first_unit = first;
        d->n_units = TTI_MIN(chunks * before / threads * w->chunk, w->units) - first;
    }
}

// The next own device from i on; n_devices: there is none.
static int next_own(const tt_ctx *ctx, int i)
{
    while (i < ctx->top.n_devices && ctx->top.devices[i]->is_away)
        i++;
    return i;
}

// The caller works for the first, the workers of the others for themselves.
static tt_status run_on_devices(tt_ctx *ctx, const tti_work *w)
{
    tti_device **devices = ctx->top.devices;
    tt_status st = TT_OK;
    int own = next_own(ctx, 0), end = next_own(ctx, own + 1); // before end: it has been handed out
    divide(ctx, w);
    while (end < ctx->top.n_devices && st == TT_OK) {
        st = devices[end]->backend->submit(devices[end], (tti_task){run_units, devices[end]});
        end = st == TT_OK ? next_own(ctx, end + 1) : end;
    }
    unsigned saved = tti_fp_enter();
    if (st == TT_OK)
        run_units(devices[own]);
    tti_fp_leave(saved);
    for (int i = next_own(ctx, own + 1); i < end; i = next_own(ctx, i + 1))
        wait_for(w, devices[i]);
    return st;
}

tt_status tti_comm_spread(tt_ctx *ctx, const tti_work *w)
{
    tt_status st = TT_OK;
    if (w->is_alone || w->bytes <= ALONE) {
        unsigned saved = tti_fp_enter();
        w->fn(w->arg, 0, w->units);
        tti_fp_leave(saved);
    } else {
        st = run_on_devices(ctx, w);
    }
    return st != TT_OK ? st : tt_status_of(ctx);
}

// ---- the record ------------------------------------------------------------------------------

static tt_status local_open(tt_comm *c, const int *ranks, int n)
{
    if (ranks != NULL)
        return TT_FAIL(c->ctx, TT_EINVAL,
                       "comm: a group of %d ranks spans processes, but transport local does not",
                       n);
    for (int i = 0; i < c->ctx->top.n_devices; i++)
        if (!c->ctx->top.devices[i]->backend->host_memory)
            return TT_FAIL(c->ctx, TT_EUNSUPPORTED,
                           "comm: %s has its own memory, which transport local cannot access",
                           c->ctx->top.devices[i]->name);
    return TT_OK;
}

static tt_status local_agree(tt_comm *c, const tti_comm_call *calls, int n, int *taken)
{
    for (int k = 0; k < n; k++)
        TT_TRY(tti_fingerprints_check(c, &calls[k], n - k));
    *taken = n;
    return TT_OK;
}

static tt_status local_select(tt_comm *c, tti_comm_call *call, int i)
{
    (void)i;
    tti_counts_put(c, call, c->first, call->opts.counts, tti_count_rows(call));
    return TT_OK;
}

static int local_process_of(const tt_comm *c, int member)
{
    (void)c;
    (void)member;
    return 0;
}

static void reduce_units(const void *arg, int64_t begin, int64_t end)
{
    tti_reduction_run(arg, begin, end);
}

static tt_status local_reduce(tt_comm *c, const tti_comm_call *call, tti_reduction *r)
{
    int64_t bytes = r->count * (int64_t)tt_dtype_bytes(r->from) * (r->n + call->n);
    return tti_comm_spread(c->ctx, &(tti_work){.name = call->name,
                                               .fn = reduce_units,
                                               .arg = r,
                                               .units = r->count,
                                               .chunk = 4096,
                                               .bytes = bytes,
                                               .deadline_ms = c->deadline_ms,
                                               .is_alone = c->is_alone || c->is_nested});
}

typedef struct copies {
    const tti_comm_call *call;
    int64_t pieces; // of the longest move; a unit is a piece of a move
} copies;

static void copy_units(const void *arg, int64_t begin, int64_t end)
{
    const copies *c = arg;
    for (int64_t u = begin; u < end; u++) {
        tti_move m = tti_move_at(c->call, u / c->pieces);
        size_t at = (size_t)(u % c->pieces) * PIECE;
        if (at < m.bytes && m.src != m.dst)
            memcpy(m.dst + at, m.src + at, TTI_MIN(PIECE, m.bytes - at));
    }
}

static tt_status local_move(tt_comm *c, const tti_comm_call *call)
{
    int64_t moves = tti_move_count(call), bytes = 0;
    size_t longest = 1;
    for (int64_t k = 0; k < moves; k++) {
        size_t b = tti_move_at(call, k).bytes;
        longest = TTI_MAX(longest, b);
        bytes += (int64_t)b;
    }
    copies work = {call, (int64_t)((longest + PIECE - 1) / PIECE)};
    return tti_comm_spread(c->ctx, &(tti_work){.name = call->name,
                                               .fn = copy_units,
                                               .arg = &work,
                                               .units = moves * work.pieces,
                                               .chunk = 1,
                                               .bytes = bytes,
                                               .deadline_ms = c->deadline_ms,
                                               .is_alone = c->is_alone || c->is_nested});
}

static void no_units(const void *arg, int64_t begin, int64_t end)
{
    (void)arg;
    (void)begin;
    (void)end;
}

tt_status tti_comm_await_devices(tt_comm *c)
{
    return tti_comm_spread(c->ctx, &(tti_work){.name = tti_call_name(TTI_BARRIER),
                                               .fn = no_units,
                                               .chunk = 1,
                                               .bytes = INT64_MAX,
                                               .deadline_ms = c->deadline_ms});
}

const tti_transport tti_transport_local = {
    .name = "local",
    .help = "members of one process, through its memory",
    .open = local_open,
    .agree = local_agree,
    .select = local_select,
    .reduce = local_reduce,
    .move = local_move,
    .process_of = local_process_of,
};
