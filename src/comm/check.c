/*
 * check.c - what is asked of a call before it is made. Errors name the member and its values.
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
    bool reduces = call->kind == TTI_ALL_REDUCE || call->kind == TTI_REDUCE_SCATTER ||
                   call->kind == TTI_SUM_LANES;
    if ((unsigned)o->dtype >= TT_N_DTYPES)
        return TT_FAIL(ctx, TT_EDTYPE, "%s: there is no element type %d", call->name,
                       (int)o->dtype);
    if (call->kind == TTI_BROADCAST && (o->root < 0 || o->root >= call->total))
        return TT_FAIL(ctx, TT_EINVAL, "%s: root is %d, but there are %d members", call->name,
                       o->root, call->total);
    if (!reduces)
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
    int64_t same;        // in and out may be one memory, in from here in out on (or out in in); -1
    size_t item_in, item_out;
} memory;

static memory memory_of(const tti_comm_call *call, int i)
{
    int64_t count = call->members[i].count;
    size_t item = tt_dtype_bytes(call->opts.dtype);
    memory m = {.n_in = count, .n_out = count, .item_in = item, .item_out = item, .same = 0};
    switch (call->kind) {
    case TTI_REDUCE_SCATTER:
        m.same = tti_share_begin(count, i, call->n);
        m.n_out = tti_share_begin(count, i + 1, call->n) - m.same;
        m.n_in = count * tti_member_parts(call, i);
        break;
    case TTI_ALL_GATHER:
        m.n_out = call->offset[call->n];
        m.same = call->offset[i];
        break;
    case TTI_BROADCAST:
        m.n_in = i == call->opts.root ? count : 0;
        break;
    case TTI_ALL_TO_ALL:
        m.n_in = m.n_out = count * call->n;
        m.same = -1;
        break;
    default: // a sum's out is count elements
        m.n_in = count * tti_member_parts(call, i);
        break;
    }
    if (call->opts.round != TT_F32) {
        m.item_out = tt_dtype_bytes(call->opts.round);
        m.same = -1;
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
    if (call->kind == TTI_SUM_LANES)
        return TT_OK;
    if (m.n_out > 0 && mb->out == NULL)
        return TT_FAIL(ctx, TT_EINVAL, "%s: member %d: out is NULL, for %lld elements", call->name,
                       i, (long long)m.n_out);
    uintptr_t in = (uintptr_t)mb->in, out = (uintptr_t)mb->out;
    bool apart = m.n_in == 0 || m.n_out == 0 || in + (size_t)m.n_in * m.item_in <= out ||
                 out + (size_t)m.n_out * m.item_out <= in;
    size_t shift = m.same > 0 ? (size_t)m.same * m.item_in : 0;
    bool same =
        m.same >= 0 && (call->kind == TTI_ALL_GATHER ? in == out + shift : out == in + shift);
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
    return TT_OK;
}

tt_status tti_call_begin(tt_ctx *ctx, tti_call_kind kind, const tt_member *members, int n,
                         int total, const tt_comm_opts *opts, tti_comm_call *call)
{
    *call = (tti_comm_call){.kind = kind, .name = tti_call_name(kind), .members = members, .n = n};
    call->n_mine = n;
    call->total = total;
    if (members == NULL || opts == NULL)
        return TT_FAIL(ctx, TT_EINVAL, "%s: %s is NULL", call->name,
                       members == NULL ? "members" : "opts");
    memcpy(&call->opts, opts, TTI_MIN(opts->opts_size, sizeof(call->opts)));
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
