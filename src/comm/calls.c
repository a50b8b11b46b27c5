/*
 * calls.c - collective calls. A call is checked in full before a byte is written: options, that all
 * members mean the same call, lanes, counts, and every member's memory (call_check.c). What is left
 * cannot fail but for devices and peers. Calls of one operation are all checked before the first.
 */
#include "comm/comm.h"
#include "net/world.h"
#include <string.h>

// ---- what members must agree on --------------------------------------------------------------

void tti_fingerprint_make(const tt_comm *c, const tti_comm_call *call, int member, int left,
                          tti_fingerprint *out)
{
    bool is_unequal = call->is->flow == TTI_FLOW_ALL && tti_count_rows(call) > 0;
    bool is_free = call->is->is_free || is_unequal || call->n_mine == 0;
    *out = (tti_fingerprint){.sequence = c->sequence,
                             .count = is_free ? -1 : call->own[member].count,
                             .factor = call->opts.factor,
                             .lanes = call->opts.lanes,
                             .root = call->what.root,
                             .left = left,
                             .kind = (uint8_t)call->what.kind,
                             .dtype = (uint8_t)call->what.dtype,
                             .combine = (uint8_t)call->what.combine,
                             .round = (uint8_t)call->opts.round,
                             .is_fast = call->what.is_fast,
                             .is_unequal = is_unequal};
}

tt_status tti_fingerprints_check(const tt_comm *c, const tti_comm_call *call, int left)
{
    tti_fingerprint first, other;
    if (call->n_mine <= 1)
        return TT_OK;
    tti_fingerprint_make(c, call, 0, left, &first);
    for (int i = 1; i < call->n_mine; i++) {
        tti_fingerprint_make(c, call, i, left, &other);
        TT_TRY(tti_fingerprint_check(c->ctx, call->name, c->first, &first, c->first + i, &other));
    }
    return TT_OK;
}

static tt_status check_sums(tt_ctx *ctx, const char *name, int first, const tti_fingerprint *a,
                            int member, const tti_fingerprint *b)
{
    if (a->combine != b->combine || a->lanes != b->lanes || a->root != b->root)
        return TT_FAIL(ctx, TT_EINVAL,
                       "%s: member %d has combine %d, lanes %d, root %d, but member %d has combine "
                       "%d, lanes %d, root %d",
                       name, member, b->combine, b->lanes, b->root, first, a->combine, a->lanes,
                       a->root);
    if (a->factor != b->factor || a->round != b->round || a->is_fast != b->is_fast)
        return TT_FAIL(ctx, TT_EINVAL,
                       "%s: member %d has factor %g, round %s, fast %d, but member %d has factor "
                       "%g, round %s, fast %d",
                       name, member, b->factor, tt_dtype_name((tt_dtype)b->round), b->is_fast,
                       first, a->factor, tt_dtype_name((tt_dtype)a->round), a->is_fast);
    return TT_OK;
}

tt_status tti_fingerprint_check(tt_ctx *ctx, const char *name, int first, const tti_fingerprint *a,
                                int member, const tti_fingerprint *b)
{
    if (memcmp(a, b, sizeof(*a)) == 0)
        return TT_OK;
    if (a->kind != b->kind || a->sequence != b->sequence)
        return TT_FAIL(ctx, TT_EINVAL,
                       "%s: member %d is in %s, call %llu, but member %d is in %s, call %llu", name,
                       member, tti_call_name(b->kind), (unsigned long long)b->sequence, first,
                       tti_call_name(a->kind), (unsigned long long)a->sequence);
    if (a->left != b->left)
        return TT_FAIL(ctx, TT_EINVAL,
                       "%s: member %d has %d calls left in its group, but member %d has %d", name,
                       member, b->left, first, a->left);
    if (a->is_unequal != b->is_unequal)
        return TT_FAIL(ctx, TT_EINVAL, "%s: member %d gives %s counts, but member %d %s", name,
                       member, b->is_unequal != 0 ? "unequal" : "no", first,
                       a->is_unequal != 0 ? "does" : "does not");
    if (a->count != b->count || a->dtype != b->dtype)
        return TT_FAIL(ctx, TT_EINVAL,
                       "%s: member %d has %lld elements of %s, but member %d has %lld of %s", name,
                       member, (long long)b->count, tt_dtype_name((tt_dtype)b->dtype), first,
                       (long long)a->count, tt_dtype_name((tt_dtype)a->dtype));
    return check_sums(ctx, name, first, a, member, b);
}

// ---- counts ----------------------------------------------------------------------------------

void tti_counts_put(tt_comm *c, const tti_comm_call *call, int first, const int64_t *rows, int n)
{
    size_t total = (size_t)c->total;
    if (n <= 0)
        return;
    if (call->is->flow == TTI_FLOW_ALL) {
        if (c->counts.count != NULL)
            memcpy(c->counts.count + (size_t)first * total, rows,
                   (size_t)n * total * sizeof(*rows));
        return;
    }
    memcpy(c->row, rows, total * sizeof(*rows));
    c->has_row = true;
}

// Room for the counts of everybody; kept.
static tt_status make_counts(tt_comm *c, const tti_comm_call *call)
{
    if (tti_count_rows(call) == 0 || call->is->flow != TTI_FLOW_ALL || c->counts.count != NULL)
        return TT_OK;
    size_t n = (size_t)c->total * (size_t)c->total;
    int64_t *all = tti_calloc(c->ctx, 3 * n, sizeof(*all));
    if (all == NULL)
        return TT_ENOMEM;
    c->counts = (tti_counts){all, all + n, all + 2 * n};
    return TT_OK;
}

static tt_status place_blocks(tt_comm *c, tti_comm_call *call)
{
    const tti_counts *k = &c->counts;
    int n = call->n;
    for (int i = 0; i < n; i++) {
        int64_t in = 0, out = 0;
        for (int j = 0; j < n; j++) {
            k->in_at[i * n + j] = in;
            k->out_at[j * n + i] = out;
            in += k->count[i * n + j];
            out += k->count[j * n + i];
        }
        if (out > call->members[i].count)
            return TT_FAIL(c->ctx, TT_EINVAL,
                           "%s: member %d receives %lld elements, but its out has room for %lld "
                           "(count)",
                           call->name, i, (long long)out, (long long)call->members[i].count);
    }
    call->counts = k;
    return TT_OK;
}

static tt_status compare_blocks(tt_comm *c, const tti_comm_call *call)
{
    int root = call->what.root;
    for (int i = 0; i < call->n; i++) {
        int64_t has = c->has_row ? c->row[i] : call->members[root].count;
        if (call->members[i].count != has)
            return TT_FAIL(c->ctx, TT_EINVAL,
                           "%s: member %d takes %lld elements, but the root, member %d, has %lld "
                           "for it",
                           call->name, i, (long long)call->members[i].count, root, (long long)has);
    }
    return TT_OK;
}

static void write_received(const tt_comm *c, const tti_comm_call *call)
{
    int64_t *to = call->opts.received;
    int end = call->first + call->n_mine, root = call->what.root;
    bool is_here = call->is->flow == TTI_FLOW_ALL || (root >= call->first && root < end);
    if (to == NULL || !is_here)
        return;
    if (call->what.kind == TTI_ALL_GATHER || call->what.kind == TTI_GATHER_TO)
        for (int i = 0; i < call->n; i++)
            to[i] = call->members[i].count;
    if (call->what.kind == TTI_ALL_TO_ALL)
        for (int i = call->first; i < end; i++)
            for (int j = 0; j < call->n; j++)
                *to++ = call->is->piece(call, j, i).count;
    (void)c;
}

// ---- making them -----------------------------------------------------------------------------

// Call i of those agreed on: everybody's members, then all checks.
static tt_status check(tt_comm *c, tti_comm_call *call, int i, tti_reduction *r)
{
    c->has_row = false;
    TT_TRY(c->transport->select(c, call, i));
    if (call->what.kind == TTI_BARRIER)
        return TT_OK;
    for (int m = 0; m < call->n; m++)
        c->offsets[m + 1] = c->offsets[m] + call->members[m].count;
    call->offset = c->offsets;
    if (call->is->has_counts && call->is->flow != TTI_FLOW_ALL)
        TT_TRY(compare_blocks(c, call));
    else if (tti_count_rows(call) > 0)
        TT_TRY(place_blocks(c, call));
    if (call->is->reduces)
        TT_TRY(tti_reduction_make(c->ctx, call, r));
    return tti_call_check_memory(c->ctx, call);
}

// The result of a call that makes its own: with a zero byte behind each value.
static tt_status make_out(tt_comm *c, tti_comm_call *call, char **out)
{
    bool is_one = call->is->flow != TTI_FLOW_ALL;
    int64_t bytes =
        is_one ? call->members[call->what.root].count + 1 : call->offset[call->n] + call->n;
    *out = tti_calloc(c->ctx, (size_t)bytes, 1);
    if (*out == NULL)
        return TT_ENOMEM;
    tt_member *mine = (tt_member *)call->own; // made by the call (call_bytes.c)
    mine[0].out = *out;
    if (call->members != call->own)
        c->all[call->first].out = *out;
    return TT_OK;
}

static void hand_out(const tti_comm_call *call, const char *out)
{
    if (call->is->flow != TTI_FLOW_ALL) {
        call->made[0] = (tt_bytes){out, (size_t)call->members[call->what.root].count};
        return;
    }
    for (int i = 0; i < call->n; i++)
        call->made[i] = (tt_bytes){out + call->offset[i] + i, (size_t)call->members[i].count};
}

static tt_status move(tt_comm *c, tti_comm_call *call)
{
    char *out = NULL;
    if (call->is->makes_out)
        TT_TRY(make_out(c, call, &out));
    tt_status st = c->transport->move(c, call);
    if (st == TT_OK && out != NULL)
        hand_out(call, out);
    else
        tti_free(c->ctx, out);
    return st;
}

static tt_status run(tt_comm *c, tti_comm_call *call, tti_reduction *r)
{
    if (call->what.kind == TTI_BARRIER)
        return TT_OK;
    TT_TRY(call->is->reduces ? c->transport->reduce(c, call, r) : move(c, call));
    write_received(c, call);
    return TT_OK;
}

tt_status tti_calls_run(tt_comm *c, tti_comm_call *calls, int64_t n)
{
    tti_reduction r;
    for (int64_t k = 0; k < n; k++)
        TT_TRY(make_counts(c, &calls[k]));
    for (int taken = 0; n > 0; calls += taken, n -= taken) {
        TT_TRY(c->transport->agree(c, calls, (int)n, &taken));
        c->sequence += (uint64_t)taken;
        for (int i = 0; i < taken; i++)
            TT_TRY(check(c, &calls[i], i, &r));
        for (int i = 0; i < taken; i++) {
            if (taken > 1) // who is in it and where was overwritten by the others
                TT_TRY(check(c, &calls[i], i, &r));
            TT_TRY(run(c, &calls[i], &r));
        }
    }
    return TT_OK;
}

tt_status tti_comm_end(tt_comm *c, tt_status st)
{
    if (st != TT_OK && c->transport != &tti_transport_local)
        tti_world_fail_with(c->ctx, st);
    return st;
}

tt_status tti_comm_ready(tt_comm *c)
{
    if (c == NULL)
        return TT_EINVAL;
    return tti_is_stuck(c->ctx) ? tt_status_of(c->ctx) : TT_OK;
}

// ---- the calls -------------------------------------------------------------------------------

static tt_status collective(tt_comm *c, tti_collective_kind kind, const tt_member *members,
                            const tt_comm_opts *opts)
{
    tti_comm_call call;
    tti_handle_clear(opts);
    TT_TRY(tti_comm_ready(c));
    tt_status st =
        tti_call_begin(c->ctx, kind, members, c->n_members, c->first, c->total, opts, &call);
    return tti_comm_end(c, st == TT_OK ? tti_call_submit(c, &call) : st);
}

#define CALL(name, KIND)                                                                       \
    tt_status tt_##name##_with(tt_comm *c, const tt_member *members, const tt_comm_opts *opts) \
    {                                                                                          \
        return collective(c, KIND, members, opts);                                             \
    }
CALL(all_reduce, TTI_ALL_REDUCE)
CALL(reduce_to, TTI_REDUCE_TO)
CALL(reduce_scatter, TTI_REDUCE_SCATTER)
CALL(all_gather, TTI_ALL_GATHER)
CALL(gather_to, TTI_GATHER_TO)
CALL(scatter_from, TTI_SCATTER_FROM)
CALL(broadcast_from, TTI_BROADCAST)
CALL(all_to_all, TTI_ALL_TO_ALL)

tt_status tt_barrier(tt_comm *c)
{
    TT_TRY(tti_comm_ready(c));
    tti_comm_call call = {.what = {.kind = TTI_BARRIER, .n = c->total},
                          .is = tti_collective_def_of(TTI_BARRIER),
                          .name = tti_call_name(TTI_BARRIER),
                          .total = c->total};
    tt_status st = c->is_nested ? TT_OK : tti_comm_await_devices(c);
    return tti_comm_end(c, st == TT_OK ? tti_call_submit(c, &call) : st);
}
