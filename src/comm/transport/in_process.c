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

typedef struct slice {
    tti_device *device;
    const tti_work *work;
    int64_t base, units;
} slice;

static tt_status slice_kernel(const tt_launch *l)
{
    const slice *s = l->tune;
    s->work->fn(s->work->arg, s->base + l->begin, s->base + l->end);
    return TT_OK;
}

static void slice_run(void *arg)
{
    const slice *s = arg;
    tt_launch launch = {.ctx = s->device->ctx, .tune = s};
    if (s->units > 0)
        (void)tti_team_run(s->device->team, slice_kernel, &launch, 0, s->units, s->work->chunk, 0);
}

static void wait_for(const tti_work *w, tti_device *d)
{
    int spins = d->is_crowded ? 0 : 20000;
    double waited;
    bool told = false;
    // Its slice is in use until it returns.
    while (tti_flag_await(d->ctx, &d->n_done, d->n_submitted, spins, w->deadline_ms, &waited) !=
           TT_OK) {
        if (!told)
            (void)TT_FAIL(d->ctx, TT_ETIMEOUT, "%s: %s has not finished its part within %.1f s",
                          w->name, d->name, waited);
        told = true;
    }
}

// Each own device's slice, by its number of threads; how many there are.
static int deal(tt_ctx *ctx, const tti_work *w, slice *out)
{
    int64_t threads = 0, before = 0, chunks = (w->units + w->chunk - 1) / w->chunk;
    int n = 0;
    for (int i = 0; i < ctx->top.n_devices; i++)
        threads += ctx->top.devices[i]->is_away ? 0 : ctx->top.devices[i]->n_threads;
    for (int i = 0; i < ctx->top.n_devices; i++) {
        if (ctx->top.devices[i]->is_away)
            continue;
        int64_t first = chunks * before / threads * w->chunk;
        before += ctx->top.devices[i]->n_threads;
        int64_t end = TTI_MIN(chunks * before / threads * w->chunk, w->units);
        out[n++] = (slice){ctx->top.devices[i], w, first, end - first};
    }
    return n;
}

tt_status tti_comm_spread(tt_ctx *ctx, const tti_work *w)
{
    slice slices[TTI_MAX_DEVICES];
    tt_status st = TT_OK;
    int n = 1; // slices handed out, the caller's own among them
    bool alone = w->is_alone || w->bytes <= ALONE;
    int most = alone ? 0 : deal(ctx, w, slices);
    for (; st == TT_OK && n < most; n += st == TT_OK)
        st = slices[n].device->backend->submit(slices[n].device, (tti_task){slice_run, &slices[n]});
    unsigned saved = tti_fp_enter();
    if (alone)
        w->fn(w->arg, 0, w->units);
    else if (st == TT_OK)
        slice_run(&slices[0]);
    tti_fp_leave(saved);
    for (int i = 1; i < n; i++)
        wait_for(w, slices[i].device);
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
