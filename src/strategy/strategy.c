/*
 * strategy.c - the strategies there are, and what is common to them.
 */
#include "strategy/strategy.h"
#include <string.h>

int tti_local_pins(const tt_graph *g)
{
    int n = 0;
    for (int64_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i]->has_pin && strcmp(g->nodes[i]->pin.type, "local") == 0)
            n = TTI_MAX(n, g->nodes[i]->pin.index + 1);
    return n;
}

// ---- single ----------------------------------------------------------------------------------

static tt_status single_mesh(const tt_graph *g, tti_mesh *out)
{
    tt_ctx *ctx = g->ctx;
    *out = (tti_mesh){.n_replicas = 1, .n_local = ctx->n_devices, .is_free = true, .n_micro = 1};
    for (int d = 0; d < ctx->n_devices; d++)
        out->device[d] = d;
    return TT_OK;
}

// ---- mirrored and central --------------------------------------------------------------------

// Devices in order, n_local of them to a replica.
static tt_status deal_devices(const tt_graph *g, int n_local, tti_mesh *out)
{
    tt_ctx *ctx = g->ctx;
    if (n_local > ctx->n_devices || ctx->n_devices % n_local != 0)
        return TT_FAIL(ctx, TT_EINVAL,
                       "strategy %s: %d devices are no whole number of replicas with %d each",
                       ctx->strategy->name, ctx->n_devices, n_local);
    if (ctx->n_devices / n_local > ctx->lanes)
        return TT_FAIL(ctx, TT_EINVAL,
                       "strategy %s: %d replicas, but %d lanes, and a replica takes at least one; "
                       "lanes: %d would do (other lanes give other bits), or %d devices",
                       ctx->strategy->name, ctx->n_devices / n_local, ctx->lanes,
                       ctx->n_devices / n_local, ctx->lanes * n_local);
    *out = (tti_mesh){.n_replicas = ctx->n_devices / n_local, .n_local = n_local, .n_micro = 1};
    for (int d = 0; d < ctx->n_devices; d++) {
        out->device[d] = d;
        out->share[d] = 1;
    }
    return TT_OK;
}

static tt_status mirrored_mesh(const tt_graph *g, tti_mesh *out)
{
    return deal_devices(g, TTI_MAX(tti_local_pins(g), 1), out);
}

static tt_status central_mesh(const tt_graph *g, tti_mesh *out)
{
    TT_TRY(mirrored_mesh(g, out));
    out->is_central = true;
    return TT_OK;
}

// ---- pipeline --------------------------------------------------------------------------------

static tt_status pipeline_mesh(const tt_graph *g, tti_mesh *out)
{
    tt_ctx *ctx = g->ctx;
    const tt_spread *s = &ctx->spread;
    int replicas = TTI_MAX(s->replicas, 1);
    int stages = s->stages > 0 ? s->stages : TTI_MAX(ctx->n_devices / replicas, 1);
    TT_TRY(deal_devices(g, stages, out));
    out->is_staged = true;
    out->n_chunks = s->schedule != TT_PIPE_INTERLEAVED ? 1 : s->chunks > 0 ? s->chunks : 2;
    out->n_micro = s->micro;
    return TT_OK;
}

// ---- the records -----------------------------------------------------------------------------

static const tti_strategy strategies[] = {
    {"single", "one device, or several by pins", single_mesh},
    {"mirrored", "a copy of the model on every device, each with some of the lanes", mirrored_mesh},
    {"central", "variables on the first device, the work on all", central_mesh},
    {"pipeline", "the model cut into stages, one a device, micro-batches passing through",
     pipeline_mesh},
};

const tti_strategy *tti_strategy_at(int i)
{
    return i >= 0 && i < TTI_COUNT(strategies) ? &strategies[i] : NULL;
}

const tti_strategy *tti_strategy_find(const char *name)
{
    for (int i = 0; i < TTI_COUNT(strategies); i++)
        if (strcmp(strategies[i].name, name) == 0)
            return &strategies[i];
    return NULL;
}

tt_status tti_strategy_open(tt_ctx *ctx, const char *name, const tt_spread *spread)
{
    ctx->strategy = tti_strategy_find(name == NULL ? "single" : name);
    if (ctx->strategy == NULL) {
        ctx->strategy = &strategies[0];
        return TT_FAIL(ctx, TT_EUNSUPPORTED,
                       "strategy '%s' is not in this version; single, mirrored, central and "
                       "pipeline are",
                       name);
    }
    ctx->spread = *spread;
    if (spread->share != NULL) {
        strncpy(ctx->share, spread->share, sizeof(ctx->share) - 1);
        ctx->spread.share = ctx->share;
    }
    return TT_OK;
}
