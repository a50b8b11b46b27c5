/*
 * call_check.c - what is asked of a call before it is made. Errors name the member and its values.
 */
#include "comm/comm.h"
#include <string.h>

static bool is_float(tt_dtype t)
{
    return ((1u << t) & TT_TYPES_FLOAT) != 0;
}

static tt_status check_options(tt_ctx *ctx, const tti_comm_call *call)
{
    const tt_comm_opts *o = &call->opts;
    if ((unsigned)o->dtype >= TT_N_DTYPES)
        return TT_FAIL(ctx, TT_EDTYPE, "%s: there is no element type %d", call->name,
                       (int)o->dtype);
    if (call->is->flow != TTI_FLOW_ALL && (o->root < 0 || o->root >= call->total))
        return TT_FAIL(ctx, TT_EINVAL, "%s: root is %d, but there are %d members", call->name,
                       o->root, call->total);
    if (!call->is->reduces)
        return TT_OK;
    if (o->dtype == TT_U8 || o->dtype == TT_BOOL)
        return TT_FAIL(
            ctx, TT_EDTYPE,
            "%s: elements of type %s cannot be added; use f32, f64, bf16, f16, i32 or i64",
            call->name, tt_dtype_name(o->dtype));
    if ((unsigned)o->combine > TT_COMBINE_MIN)
        return TT_FAIL(ctx, TT_EINVAL, "%s: unknown combine %d", call->name, (int)o->combine);
    if (o->factor != 1 && !is_float(o->dtype))
        return TT_FAIL(ctx, TT_EDTYPE,
                       "%s: factor is %g, but it applies to floats only, and elements are %s",
                       call->name, o->factor, tt_dtype_name(o->dtype));
    if (o->round != TT_F32 && (o->dtype != TT_F32 || (o->round != TT_BF16 && o->round != TT_F16)))
        return TT_FAIL(ctx, TT_EDTYPE, "%s: %s cannot be rounded to %s; only f32 to bf16 or f16",
                       call->name, tt_dtype_name(o->dtype), tt_dtype_name(o->round));
    if (o->lanes < 1 || o->lanes > TT_MAX_LANES)
        return TT_FAIL(ctx, TT_EINVAL, "%s: %d lanes; 1 to %d are allowed", call->name, o->lanes,
                       TT_MAX_LANES);
    return TT_OK;
}

// What one member reads and writes.
typedef struct memory {
    int64_t n_in, n_out; // elements
    size_t item_in, item_out;
    tti_call_piece own; // from the member to itself
} memory;

static memory memory_of(const tti_comm_call *call, int i)
{
    const tti_collective_def *is = call->is;
    size_t item = tt_dtype_bytes(call->what.dtype);
    memory m = {.item_in = item, .item_out = item, .own = is->piece(call, i, i)};
    if (is->reduces) {
        m.n_in = call->members[i].count * tti_member_parts(call, i);
        m.n_out = m.own.count;
        m.item_out = call->opts.round != TT_F32 ? tt_dtype_bytes(call->opts.round) : item;
        return m;
    }
    int root = call->what.root, low = 0, high = call->n;
    if (is->flow != TTI_FLOW_ALL && i != root) { // only the root has pieces of all
        low = root;
        high = root + 1;
    }
    for (int k = low; k < high; k++) {
        tti_call_piece out = is->piece(call, i, k), in = is->piece(call, k, i);
        m.n_in = TTI_MAX(m.n_in, out.count > 0 ? out.from + out.count : 0);
        m.n_out = TTI_MAX(m.n_out, in.count > 0 ? in.to + in.count : 0);
    }
    return m;
}

static tt_status check_memory(tt_ctx *ctx, const tti_comm_call *call, int i)
{
    const tt_member *mb = &call->members[i];
    memory m = memory_of(call, i);
    if (m.n_in > 0 && mb->in == NULL)
        return TT_FAIL(ctx, TT_EINVAL, "%s: member %d: in is NULL, for %lld elements", call->name,
                       i, (long long)m.n_in);
    if (call->is->makes_out)
        return TT_OK;
    if (m.n_out > 0 && mb->out == NULL)
        return TT_FAIL(ctx, TT_EINVAL, "%s: member %d: out is NULL, for %lld elements", call->name,
                       i, (long long)m.n_out);
    uintptr_t in = (uintptr_t)mb->in, out = (uintptr_t)mb->out;
    bool apart = m.n_in == 0 || m.n_out == 0 || in + (size_t)m.n_in * m.item_in <= out ||
                 out + (size_t)m.n_out * m.item_out <= in;
    bool same = call->is->in_place && m.item_in == m.item_out &&
                in + (size_t)m.own.from * m.item_in == out + (size_t)m.own.to * m.item_out;
    if (!apart && !same)
        return TT_FAIL(ctx, TT_EINVAL, "%s: member %d: in and out overlap", call->name, i);
    return TT_OK;
}

// Sizes first, so that what is computed from them cannot overflow.
static tt_status check_counts(tt_ctx *ctx, const tti_comm_call *call)
{
    int64_t most = (int64_t)1 << 48; // times members or lanes, times 8 bytes: below 2^62
    for (int i = 0; i < call->n; i++)
        if (call->members[i].count < 0 || call->members[i].count > most)
            return TT_FAIL(ctx, TT_EINVAL, "%s: member %d has %lld elements; 0 to %lld are allowed",
                           call->name, i, (long long)call->members[i].count, (long long)most);
    if (call->opts.counts == NULL || !call->is->has_counts)
        return TT_OK;
    for (int64_t i = 0; i < (int64_t)tti_count_rows(call) * call->total; i++)
        if (call->opts.counts[i] < 0 || call->opts.counts[i] > most)
            return TT_FAIL(ctx, TT_EINVAL,
                           "%s: counts[%lld] is %lld elements; 0 to %lld are allowed", call->name,
                           (long long)i, (long long)call->opts.counts[i], (long long)most);
    return TT_OK;
}

int tti_count_rows(const tti_comm_call *call)
{
    if (call->opts.counts == NULL || !call->is->has_counts)
        return 0;
    if (call->is->flow == TTI_FLOW_ALL)
        return call->n_mine;
    return call->what.root >= call->first && call->what.root < call->first + call->n_mine;
}

tt_status tti_call_begin(tt_ctx *ctx, tti_collective_kind kind, const tt_member *members, int n,
                         int first, int total, const tt_comm_opts *opts, tti_comm_call *call)
{
    const tti_collective_def *is = tti_collective_def_of((int)kind);
    *call = (tti_comm_call){.what = {.kind = kind, .n = total},
                            .is = is,
                            .name = is->name,
                            .own = members,
                            .members = members,
                            .n = n,
                            .n_mine = n,
                            .first = first,
                            .total = total};
    if (members == NULL || opts == NULL)
        return TT_FAIL(ctx, TT_EINVAL, "%s: %s is NULL", call->name,
                       members == NULL ? "members" : "opts");
    TT_TRY(TTI_OPTS_COPY(ctx, call->name, opts, &call->opts));
    call->what.dtype = call->opts.dtype;
    call->what.combine = call->opts.combine;
    call->what.is_fast = call->opts.fast;
    call->what.root = call->opts.root;
    if (call->opts.factor == 0)
        call->opts.factor = 1;
    if (call->opts.lanes == 0)
        call->opts.lanes = ctx->top.lanes;
    for (int i = 0; i < n; i++)
        call->has_lanes |= members[i].n_lanes != 0 || members[i].first_lane != 0;
    TT_TRY(check_options(ctx, call));
    return check_counts(ctx, call);
}

tt_status tti_call_check_memory(tt_ctx *ctx, const tti_comm_call *call)
{
    for (int i = call->first; i < call->first + call->n_mine; i++)
        TT_TRY(check_memory(ctx, call, i));
    return TT_OK;
}
