/*
 * order.c - which records make up a batch.
 *
 * The order of an epoch is a permutation keyed by seed and epoch, worked out place by place, so the
 * cursor is the whole state. Where the source assigns records to lanes, each lane has a list of its
 * own, permuted by itself, and a batch takes from each what that lane's rows of the batch need.
 */
#include "data/data.h"

#define ORDER_STREAM 0x6f726465ull // sets these numbers apart from others of the same seed

static uint64_t order_key(const tt_data *d, int64_t epoch, int64_t lane)
{
    tti_philox p =
        tti_philox4((uint64_t)d->opts.seed, (uint64_t)epoch, ORDER_STREAM | (uint64_t)lane << 32);
    return (uint64_t)p.v[0] << 32 | p.v[1];
}

// First row of a lane in a batch of n rows; both are bounded, so nothing overflows.
static int64_t lane_row(const tt_data *d, int64_t lane, int64_t n)
{
    return lane * n / d->ctx->top.lanes;
}

static int64_t order_in_lane(const tt_data *d, int64_t epoch, int64_t batch, int64_t i)
{
    int64_t k = i / batch, row = i % batch, lanes = d->ctx->top.lanes;
    int64_t n = TTI_MIN(batch, d->count - k * batch);
    int64_t lane = ((row + 1) * lanes - 1) / n;
    int64_t full = lane_row(d, lane + 1, batch) - lane_row(d, lane, batch);
    int64_t at = k * full + row - lane_row(d, lane, n);
    int64_t have = d->lane_first[lane + 1] - d->lane_first[lane];
    if (at >= have) // tti_lanes_check() refuses such batches
        return -1;
    if (!d->opts.no_shuffle)
        at = (int64_t)tti_permute((uint64_t)at, (uint64_t)have, order_key(d, epoch, lane + 1));
    return d->lane_records[d->lane_first[lane] + at];
}

void tti_order_at(const tt_data *d, int64_t epoch, int64_t batch, int64_t i, int64_t n,
                  int64_t *out)
{
    for (int64_t k = 0; k < n; k++)
        out[k] = d->lane_first != NULL ? order_in_lane(d, epoch, batch, i + k) : i + k;
    if (d->lane_first == NULL && !d->opts.no_shuffle)
        tti_permute_some((uint64_t *)out, n, (uint64_t)d->count, order_key(d, epoch, 0));
    for (int64_t k = 0; d->lane_first == NULL && d->subset != NULL && k < n; k++)
        out[k] = d->subset[out[k]];
}

int64_t tt_data_order(const tt_data *d, int64_t epoch, int64_t i)
{
    int64_t record;
    if (d == NULL || epoch < 0 || i < 0 || i >= d->count)
        return -1;
    tti_order_at(d, epoch, d->batch != 0 ? d->batch : d->opts.batch, i, 1, &record);
    return record;
}

tt_batch_data tti_batch_at(const tt_data *d, int64_t k)
{
    int64_t count = d->count, batch = d->batch;
    int64_t begun = (count - d->first - 1) / batch + 1; // batches of the epoch that was begun in
    int64_t whole = (count - 1) / batch + 1;            // of every later one
    tt_batch_data b = {.epoch = d->epoch, .first = d->first + k * batch};
    if (k >= begun) {
        b.epoch = d->epoch + 1 + (k - begun) / whole;
        b.first = (k - begun) % whole * batch;
    }
    b.rows = TTI_MIN(batch, count - b.first);
    return b;
}

// ---- lanes -----------------------------------------------------------------------------------

static tt_status bad_lane(tt_data *d, int64_t i, int lane)
{
    return TT_FAIL(d->ctx, TT_EINVAL, "%s: record %lld is in lane %d, but the lanes are 0 to %d",
                   tti_data_name(d), (long long)i, lane, d->ctx->top.lanes - 1);
}

tt_status tti_lanes_build(tt_data *d)
{
    int lanes = d->ctx->top.lanes;
    if (d->source.lane == NULL)
        return TT_OK;
    d->lane_first = tti_calloc(d->ctx, (size_t)lanes + 1, sizeof(*d->lane_first));
    d->lane_records = tti_calloc(d->ctx, (size_t)d->count, sizeof(*d->lane_records));
    if (d->lane_first == NULL || d->lane_records == NULL)
        return TT_ENOMEM;
    // Count, add up, then put each record in its lane's next place: lists stay in record order.
    for (int64_t i = 0; i < d->count; i++) {
        int lane = d->source.lane(d->source.self, tti_data_record(d, i), lanes);
        if (lane < 0 || lane >= lanes)
            return bad_lane(d, tti_data_record(d, i), lane);
        d->lane_first[lane + 1]++;
    }
    for (int l = 0; l < lanes; l++)
        d->lane_first[l + 1] += d->lane_first[l];
    for (int64_t i = 0; i < d->count; i++) {
        int64_t record = tti_data_record(d, i);
        int lane = d->source.lane(d->source.self, record, lanes);
        if (lane < 0 || lane >= lanes)
            return bad_lane(d, record, lane);
        d->lane_records[d->lane_first[lane]++] = record;
    }
    for (int l = lanes; l > 0; l--)
        d->lane_first[l] = d->lane_first[l - 1];
    d->lane_first[0] = 0;
    return TT_OK;
}

static int64_t lane_needs(const tt_data *d, int64_t lane, int64_t batch)
{
    int64_t count = d->count, rest = count % batch;
    return count / batch * (lane_row(d, lane + 1, batch) - lane_row(d, lane, batch)) +
           lane_row(d, lane + 1, rest) - lane_row(d, lane, rest);
}

tt_status tti_lanes_check(tt_data *d, int64_t batch)
{
    int lanes = d->ctx->top.lanes;
    if (d->lane_first == NULL)
        return TT_OK;
    for (int l = 0; l < lanes; l++) {
        int64_t have = d->lane_first[l + 1] - d->lane_first[l], need = lane_needs(d, l, batch);
        if (have == need)
            continue;
        tti_text all = {.ctx = d->ctx};
        for (int i = 0; i < lanes && i < 32; i++)
            tti_text_add(&all, "%s%lld", i == 0 ? "" : ", ", (long long)lane_needs(d, i, batch));
        char *text = tti_text_take(&all);
        tt_status st =
            TT_FAIL(d->ctx, TT_EINVAL,
                    "%s: lane %d has %lld records and needs %lld; batches of %lld from "
                    "%lld records need, lane by lane, %s%s",
                    tti_data_name(d), l, (long long)have, (long long)need, (long long)batch,
                    (long long)d->count, text != NULL ? text : "", lanes > 32 ? ", ..." : "");
        tti_free(d->ctx, text);
        return st;
    }
    return TT_OK;
}
