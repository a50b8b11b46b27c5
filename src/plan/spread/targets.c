/*
 * targets.c - what holds a spread plan together at its ends: control edges, targets, feeds; and
 * copies that nobody needs are dropped.
 */
#include "plan/spread/spread.h"

static tt_status map_control(tti_spreader *s)
{
    tti_plan *p = s->p;
    for (int64_t i = 0; i < s->n_nodes; i++) {
        const tti_pnode *old = &s->nodes[i];
        if (old->n_after == 0)
            continue;
        int n = 0;
        for (int k = 0; k < old->n_after; k++)
            n += s->n_copies[old->after[k]];
        int *after = tti_plan_alloc(p, sizeof(int) * (size_t)(n + 1));
        if (after == NULL)
            return TT_ENOMEM;
        n = 0;
        for (int k = 0; k < old->n_after; k++)
            for (int r = 0; r < s->n_copies[old->after[k]]; r++)
                after[n++] = s->first[old->after[k]] + r;
        for (int r = 0; r < s->n_copies[i]; r++) {
            p->nodes[s->first[i] + r].after = after;
            p->nodes[s->first[i] + r].n_after = n;
        }
    }
    return TT_OK;
}

static tt_status map_targets(tti_spreader *s)
{
    tti_plan *p = s->p;
    for (int i = 0; i < p->n_targets; i++) {
        int old = p->targets[i];
        bool fetched = i < p->n_fetched;
        if (!tti_is_split(&s->values[old]))
            p->targets[i] = !fetched && s->piece[(int64_t)old * s->n_replicas] >= 0
                                ? s->piece[(int64_t)old * s->n_replicas]
                                : tti_spread_whole(s, old, 0);
        else
            p->targets[i] =
                fetched ? tti_spread_gather(s, old) : s->copies[(int64_t)old * s->n_batches];
        if (p->targets[i] < 0)
            return tt_status_of(p->ctx);
        if (fetched)
            p->values[tti_root(p, p->targets[i])].keep = true;
    }
    return TT_OK;
}

// Drops copies that nobody needs: of what is fetched from one replica, for example.
static tt_status drop_dead(tti_spreader *s)
{
    tti_plan *p = s->p;
    size_t n = (size_t)p->n_nodes + 1;
    uint8_t *live = tti_calloc(p->ctx, n, 1);
    int *stack = tti_alloc(p->ctx, sizeof(int) * n), depth = 0;
    if (live == NULL || stack == NULL) {
        tti_free(p->ctx, live);
        tti_free(p->ctx, stack);
        return TT_ENOMEM;
    }
#define REACH(node_)                  \
    do {                              \
        if (!live[node_]) {           \
            live[node_] = 1;          \
            stack[depth++] = (node_); \
        }                             \
    } while (0)
    for (int i = 0; i < p->n_targets; i++)
        REACH(p->values[p->targets[i]].node);
    for (int64_t i = 0; i < p->n_nodes; i++) {
        const tti_pnode *pn = &p->nodes[i];
        bool effect =
            pn->kind == TTI_OP && (pn->node->op->flags & (TT_OP_UPDATE | TT_OP_EFFECT)) != 0;
        bool collects = pn->kind == TTI_COLLECT || pn->kind == TTI_LIBRARY_COLLECTIVE;
        bool writes =
            (collects && p->values[pn->out].memory == TTI_VARIABLE) || pn->kind == TTI_NARROW;
        if ((effect || writes) && !pn->is_dropped)
            REACH(i);
    }
    while (depth > 0) {
        const tti_pnode *pn = &p->nodes[stack[--depth]];
        for (int k = 0; k < pn->n_in; k++)
            REACH(p->values[pn->in[k]].node);
        for (int k = 0; k < pn->n_after; k++)
            REACH(pn->after[k]);
        for (int k = 0; tti_is_of_collective(pn) && k < p->collectives[pn->collective].n; k++)
            REACH(p->collectives[pn->collective].first + k); // none can do it without the others
    }
#undef REACH
    for (int64_t i = 0; i < p->n_nodes; i++)
        p->nodes[i].is_dropped |= !live[i];
    tti_free(p->ctx, live);
    tti_free(p->ctx, stack);
    return TT_OK;
}

static tt_status list_feeds(tti_plan *p)
{
    p->feeds = tti_plan_alloc(p, sizeof(int) * (size_t)(p->n_nodes + 1));
    if (p->feeds == NULL)
        return TT_ENOMEM;
    p->n_feeds = 0;
    for (int64_t i = 0; i < p->n_nodes; i++)
        if (p->nodes[i].kind == TTI_OP && p->nodes[i].node->op == &tti_op_feed &&
            !p->nodes[i].is_dropped)
            p->feeds[p->n_feeds++] = p->nodes[i].out;
    return TT_OK;
}

tt_status tti_spread_ends(tti_spreader *s)
{
    TT_TRY(map_control(s));
    TT_TRY(map_targets(s));
    TT_TRY(drop_dead(s));
    return list_feeds(s->p);
}
