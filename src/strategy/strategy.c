/*
 * strategy.c - the strategies there are, and which of them a context has.
 */
#include "strategy/strategy.h"
#include "base/hints.h"
#include <stdio.h>
#include <string.h>

static const tti_strategy *const strategies[] = {
#define TTI_STRATEGY(name) &tti_strategy_##name,
#include "strategy/strategies.def"
#undef TTI_STRATEGY
};

const tti_strategy *tti_strategy_at(int i)
{
    return i >= 0 && i < TTI_COUNT(strategies) ? strategies[i] : NULL;
}

const tti_strategy *tti_strategy_find(const char *name)
{
    for (int i = 0; i < TTI_COUNT(strategies); i++)
        if (strcmp(strategies[i]->name, name) == 0)
            return strategies[i];
    return NULL;
}

int tti_local_pins(const tt_graph *g, const tt_node **who)
{
    int n = 0;
    for (int64_t i = 0; i < g->n_nodes; i++) {
        const tt_node *node = g->nodes[i];
        if (!node->has_pin || strcmp(node->pin.type, "local") != 0 || node->pin.index < n)
            continue;
        n = node->pin.index + 1;
        if (who != NULL)
            *who = node;
    }
    return n;
}

static tt_status unknown(tt_ctx *ctx, const char *name)
{
    const char *names[TTI_COUNT(strategies) + 1] = {NULL};
    char list[256];
    int n = 0;
    for (int i = 0; i < TTI_COUNT(strategies); i++) {
        names[i] = strategies[i]->name;
        n += snprintf(list + n, sizeof(list) - (size_t)n, "%s%s", i > 0 ? ", " : "", names[i]);
    }
    const tti_hint *h = tti_hint_find("strategy", NULL, name);
    const char *near = h != NULL ? h->ours : tti_meant(name, names);
    if (near != NULL)
        return TT_FAIL(ctx, TT_EINVAL, "strategy '%.64s' is unknown; did you mean '%s'? (%s)", name,
                       near, list);
    return TT_FAIL(ctx, TT_EINVAL, "strategy '%.64s' is not one of %s", name, list);
}

tt_status tti_strategy_choose(tt_ctx *ctx, const char *name, const tt_spread *spread,
                              tti_topology *out)
{
    const tti_strategy *s = tti_strategy_find(name == NULL ? "single" : name);
    out->strategy = s != NULL ? s : strategies[0];
    if (s == NULL)
        return unknown(ctx, name);
    TT_TRY(tti_spread_check(ctx, s, spread));
    out->spread = *spread;
    if (spread->wire != TT_F32)
        out->spread.reduce = TT_REDUCE_FAST; // rounded on the way: no longer exact
    return TT_OK;
}
