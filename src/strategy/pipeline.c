/*
 * pipeline.c - the model cut into stages, one device each (or, interleaved, several stages a
 * device); micro-batches, which are lanes, pass through. With several replicas each is a pipeline.
 */
#include "strategy/strategy.h"
#include <stdio.h>

/*
 * How many devices a replica has, and why so many. Pins name stages; with several stages a device
 * (interleaved) local:k is on device k modulo that number.
 */
static tt_status count_stages(const tt_graph *g, int n_chunks, int *out, char why[64])
{
    tt_ctx *ctx = g->ctx;
    const tt_spread *s = &ctx->spread;
    int highest = tti_local_pins(g, NULL), replicas = TTI_MAX(s->replicas, 1);
    int pins = highest / n_chunks;
    if (highest % n_chunks != 0)
        return TT_FAIL(ctx, TT_EINVAL,
                       "strategy pipeline: pins go up to local:%d, but with %d stages a device "
                       "(chunks) there are no %d; pins up to local:%d or local:%d would do",
                       highest - 1, n_chunks, highest, TTI_MAX(pins, 1) * n_chunks - 1,
                       (TTI_MAX(pins, 1) + 1) * n_chunks - 1);
    if (s->stages > 0 && pins > s->stages)
        return TT_FAIL(ctx, TT_EINVAL,
                       "strategy pipeline: stages is %d, but pins go up to local:%d; stages: %d "
                       "would do",
                       s->stages, highest - 1, pins);
    if (pins > 0 && s->stages > pins)
        return TT_FAIL(ctx, TT_EINVAL,
                       "strategy pipeline: stages is %d, but pins end at local:%d, and a stage "
                       "without nodes cannot be; stages: %d would do, or no pins",
                       s->stages, highest - 1, pins);
    if (s->stages == 0 && pins == 0 && ctx->n_devices % replicas != 0)
        return TT_FAIL(ctx, TT_EINVAL,
                       "strategy pipeline: %d devices are no whole number for each of %d replicas; "
                       "%d or %d would do",
                       ctx->n_devices, replicas, TTI_MAX(ctx->n_devices / replicas, 1) * replicas,
                       (TTI_MAX(ctx->n_devices / replicas, 1) + 1) * replicas);
    *out = s->stages > 0 ? s->stages : pins > 0 ? pins : ctx->n_devices / replicas;
    if (s->stages > 0 || pins == 0)
        snprintf(why, 64, "stages: %d", *out);
    else
        snprintf(why, 64, "pins up to local:%d", highest - 1);
    return TT_OK;
}

/*
 * The most micro-batches of a replica. The interleaved schedule takes as many at a time as it has
 * devices, so there the replica with the fewest lanes must have a multiple of that.
 */
static tt_status count_micro(tt_ctx *ctx, tti_mesh *m)
{
    const tt_spread *s = &ctx->spread;
    double sum = 0, least = m->share[0], most = m->share[0];
    for (int r = 0; r < m->n_replicas; r++) {
        sum += m->share[r];
        least = TTI_MIN(least, m->share[r]);
        most = TTI_MAX(most, m->share[r]);
    }
    int few = (int)(ctx->lanes * (least / sum)), p = m->n_local;
    int many = TTI_MIN((int)(ctx->lanes * (most / sum)) + 1, ctx->lanes);
    if (ctx->lanes % m->n_replicas == 0 && least == most)
        few = many = ctx->lanes / m->n_replicas;
    if (s->micro > many)
        return TT_FAIL(ctx, TT_EINVAL,
                       "strategy pipeline: micro is %d, but a replica has at most %d of the %d "
                       "lanes, and a micro-batch is at least one; micro: %d would do",
                       s->micro, many, ctx->lanes, many);
    m->n_micro = s->micro;
    if (m->n_chunks == 1)
        return TT_OK;
    if (few < p)
        return TT_FAIL(ctx, TT_EINVAL,
                       "strategy pipeline: schedule interleaved takes %d micro-batches at a time, "
                       "one a device, but a replica has %d of the %d lanes; lanes: %d would do "
                       "(other lanes give other bits), or schedule: 1f1b",
                       p, few, ctx->lanes, p * m->n_replicas);
    if (s->micro % p != 0 || s->micro > few)
        return TT_FAIL(ctx, TT_EINVAL,
                       "strategy pipeline: micro is %d, but schedule interleaved takes %d at a "
                       "time, one a device; micro: %d would do, or schedule: 1f1b",
                       s->micro, p, TTI_MIN(TTI_MAX(s->micro / p, 1), few / p) * p);
    if (s->micro == 0)
        m->n_micro = few / p * p;
    return TT_OK;
}

static tt_status pipeline_mesh(const tt_graph *g, tti_mesh *out)
{
    tt_ctx *ctx = g->ctx;
    const tt_spread *s = &ctx->spread;
    int stages = 0;
    char why[64];
    int n_chunks = s->schedule != TT_PIPE_INTERLEAVED ? 1 : s->chunks > 0 ? s->chunks : 2;
    TT_TRY(count_stages(g, n_chunks, &stages, why));
    TT_TRY(tti_deal(g, s->replicas, stages, why, out));
    out->is_staged = true;
    out->n_chunks = n_chunks;
    return count_micro(ctx, out);
}

static const char *const pipeline_uses[] = {"replicas", "stages", "schedule", "chunks",
                                            "micro",    "share",  "reduce",   "wire",
                                            "bucket",   "update", NULL};

const tti_strategy tti_strategy_pipeline = {
    .name = "pipeline",
    .help = "the model cut into stages, one a device, micro-batches passing through",
    .uses = pipeline_uses,
    .mesh = pipeline_mesh,
};
