/*
 * batch_part.c - a batch in parts that are taken in turn or by several: which rows and lanes each
 * has, and the sum of what they give.
 */
#include "comm/comm.h"

tt_status tt_batch_part(tt_ctx *ctx, int64_t rows, int i, int n, tt_part *out)
{
    if (ctx == NULL)
        return TT_EINVAL;
    if (out == NULL)
        return TT_FAIL(ctx, TT_EINVAL, "batch part: the room for it is NULL");
    if (tti_is_stuck(ctx))
        return tt_status_of(ctx);
    if (n < 1 || n > ctx->top.lanes)
        return TT_FAIL(ctx, TT_EINVAL,
                       "batch part: %d parts, but a batch of %d lanes can have 1 to %d", n,
                       ctx->top.lanes, ctx->top.lanes);
    if (i < 0 || i >= n)
        return TT_FAIL(ctx, TT_EINVAL, "batch part: there is no part %d of %d", i, n);
    if (rows < 1 || rows > INT64_MAX / TT_MAX_LANES)
        return TT_FAIL(ctx, TT_EINVAL, "batch part: a batch cannot have %lld rows",
                       (long long)rows);
    int lanes = ctx->top.lanes, last;
    int64_t begin = tti_lane_row((int64_t)i * lanes / n, rows, lanes);
    int64_t end = tti_lane_row((int64_t)(i + 1) * lanes / n, rows, lanes);
    tt_part part = {.batch = {begin, rows, lanes}, .rows = end - begin};
    if (part.rows > 0) {
        tti_part parts[TTI_MAX_PARTS];
        tti_lanes_of_rows(&part.batch, part.rows, lanes, &part.first_lane, &last);
        part.n_lanes = last - part.first_lane;
        part.n_sums = tti_lane_range_parts(part.first_lane, last, lanes, parts);
    }
    *out = part;
    return TT_OK;
}

static void reduce_units(const void *arg, int64_t begin, int64_t end)
{
    tti_reduction_run(arg, begin, end);
}

static bool overlaps(const tt_member *part, int n_sums, size_t item, const void *out, size_t bytes)
{
    uintptr_t a = (uintptr_t)part->in, b = (uintptr_t)out;
    size_t n = (size_t)part->count * (size_t)n_sums * item;
    return n > 0 && bytes > 0 && a < b + bytes && b < a + n;
}

tt_status tt_sum_lanes_with(tt_ctx *ctx, const tt_member *parts, int n, void *out,
                            const tt_comm_opts *opts)
{
    if (ctx == NULL)
        return TT_EINVAL;
    if (tti_is_stuck(ctx))
        return tt_status_of(ctx);
    if (n < 1 || n > TT_MAX_MEMBERS)
        return TT_FAIL(ctx, TT_EINVAL, "sum_lanes: %d parts; 1 to %d are allowed", n,
                       TT_MAX_MEMBERS);
    tti_comm_call call;
    tti_reduction r;
    TT_TRY(tti_call_begin(ctx, TTI_SUM_LANES, parts, n, 0, n, opts, &call));
    for (int i = 1; i < n; i++)
        if (parts[i].count != parts[0].count)
            return TT_FAIL(ctx, TT_EINVAL,
                           "sum_lanes: member %d has %lld elements, but member 0 has %lld", i,
                           (long long)parts[i].count, (long long)parts[0].count);
    TT_TRY(tti_reduction_make(ctx, &call, &r));
    TT_TRY(tti_call_check_memory(ctx, &call));
    if (out == NULL && r.count > 0)
        return TT_FAIL(ctx, TT_EINVAL, "sum_lanes: out is NULL, for %lld elements",
                       (long long)r.count);
    size_t item = tt_dtype_bytes(r.from), bytes = (size_t)r.count * tt_dtype_bytes(r.to);
    for (int i = 0; i < n; i++)
        if (overlaps(&parts[i], tti_member_parts(&call, i), item, out, bytes) &&
            (parts[i].in != out || r.from != r.to))
            return TT_FAIL(ctx, TT_EINVAL, "sum_lanes: member %d: in and out overlap", i);
    tt_member result = {.out = out};
    r.members = &result;
    r.n_members = 1;
    return tti_comm_spread(ctx, &(tti_work){.name = call.name,
                                            .fn = reduce_units,
                                            .arg = &r,
                                            .units = r.count,
                                            .chunk = 4096,
                                            .bytes = r.count * (int64_t)item * (r.n + 1),
                                            .deadline_ms = ctx->deadline_ms});
}
