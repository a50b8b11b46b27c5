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
static tt_status count_stages(const tti_topology *top, const tt_graph *g, int n_chunks, int *out,
                              char why[64])
{
    tt_ctx *ctx = g->ctx;
    const tt_spread *s = &top->spread;
    int highest = tti_local_pins(g, NULL), replicas = TTI_MAX(s->replicas, 1);
    int pins = highest / n_chunks;
    if (highest % n_chunks != 0)
        return TT_FAIL(ctx, TT_EINVAL,
                       "strategy pipeline: pins go up to local:%d, but with %d stages per device "
                       "(chunks) there cannot be %d stages; use pins up to local:%d or local:%d",
                       highest - 1, n_chunks, highest, TTI_MAX(pins, 1) * n_chunks - 1,
                       (TTI_MAX(pins, 1) + 1) * n_chunks - 1);
    if (s->stages > 0 && pins > s->stages)
        return TT_FAIL(
            ctx, TT_EINVAL,
            "strategy pipeline: stages is %d, but pins go up to local:%d; use stages: %d",
            s->stages, highest - 1, pins);
    if (pins > 0 && s->stages > pins)
        return TT_FAIL(ctx, TT_EINVAL,
                       "strategy pipeline: stages is %d, but pins end at local:%d, and a stage "
                       "needs at least one node; use stages: %d, or no pins",
                       s->stages, highest - 1, pins);
    if (s->stages == 0 && pins == 0 && top->n_devices % replicas != 0)
        return TT_FAIL(ctx, TT_EINVAL,
                       "strategy pipeline: %d devices cannot be divided evenly among %d replicas; "
                       "use %d or %d devices",
                       top->n_devices, replicas, TTI_MAX(top->n_devices / replicas, 1) * replicas,
                       (TTI_MAX(top->n_devices / replicas, 1) + 1) * replicas);
    *out = s->stages > 0 ? s->stages : pins > 0 ? pins : top->n_devices / replicas;
    if (s->stages > 0 || pins == 0)
        snprintf(why, 64, "stages: %d", *out);
    else
        snprintf(why, 64, "pins up to local:%d", highest - 1);
    return TT_OK;
}

// The most micro-batches of a replica: it has no more than lanes.
static tt_status count_micro(const tti_topology *top, tt_ctx *ctx, tti_mesh *m)
{
    const tt_spread *s = &top->spread;
    double sum = 0, most = 0;
    int replicas = tti_mesh_size(m, TTI_AXIS_DATA);
    for (int r = 0; r < replicas; r++) {
        sum += tti_mesh_share(m, r);
        most = TTI_MAX(most, tti_mesh_share(m, r));
    }
    int many = TTI_MIN((int)(top->lanes * (most / sum)) + 1, top->lanes);
    if (replicas * most == sum) // equal shares
        many = (top->lanes + replicas - 1) / replicas;
    if (s->micro > many)
        return TT_FAIL(ctx, TT_EINVAL,
                       "strategy pipeline: micro is %d, but a replica has at most %d of the %d "
                       "lanes, and a micro-batch needs at least one; use micro: %d",
                       s->micro, many, top->lanes, many);
    m->n_micro = s->micro;
    return TT_OK;
}

static tt_status pipeline_mesh(const tti_topology *top, const tt_graph *g, tti_mesh *out)
{
    tt_ctx *ctx = g->ctx;
    const tt_spread *s = &top->spread;
    int stages = 0;
    char why[64];
    int n_chunks = s->schedule != TT_PIPE_INTERLEAVED ? 1 : s->chunks > 0 ? s->chunks : 2;
    TT_TRY(count_stages(top, g, n_chunks, &stages, why));
    tti_assignment ask = {.replicas = s->replicas, .n_pipe = stages, .why = why};
    TT_TRY(tti_assign_devices(top, g, &ask, out));
    out->n_stages = stages * n_chunks;
    return count_micro(top, ctx, out);
}

static const char *const pipeline_uses[] = {"replicas", "stages", "schedule", "chunks",
                                            "micro",    "share",  "reduce",   "wire",
                                            "bucket",   "update", NULL};

const tti_strategy tti_strategy_pipeline = {
    .name = "pipeline",
    .help = "pipeline parallelism: the model is split into stages on several devices",
    .uses = pipeline_uses,
    .mesh = pipeline_mesh,
};
