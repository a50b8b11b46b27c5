/*
 * library_collective.c - sums that a library carries between devices, where the order of additions
 * is free (reduce: fast), and pieces of variables that it puts together after their updates.
 *
 * A device does its part in place, beside its other work: nodes of all devices are enqueued at once
 * when the bucket of gradients that they belong to has been made, and are looked for when the next
 * one has been.
 */
#include "plan/spread/spread.h"
#include <stdio.h>
#include <string.h>

static const char *say(tti_plan *p, const char *fmt, const char *words)
{
    char text[256];
    int n = TTI_MIN(snprintf(text, sizeof(text), fmt, words), (int)sizeof(text) - 1);
    char *s = tti_plan_alloc(p, (size_t)n + 1);
    if (s != NULL)
        memcpy(s, text, (size_t)n + 1);
    return s == NULL ? "" : s;
}

// ---- who -------------------------------------------------------------------------------------

tti_device **tti_communicator_devices(tti_plan *p, const tti_communicator_plan *g)
{
    tti_device **d = tti_plan_alloc(p, sizeof(*d) * (size_t)g->n);
    for (int i = 0; d != NULL && i < g->n; i++)
        d[i] = p->top->devices[g->device[i]];
    return d;
}

static void ask(tti_plan *p, tti_communicator_plan *g)
{
    char words[200];
    for (int i = 0; i < g->n; i++) {
        const tti_device *d = p->top->devices[g->device[i]];
        if (tti_has_streams(d) && !d->is_away)
            continue;
        g->words = say(
            p, tti_has_streams(d) ? "%s is not a GPU of this process" : "%s is not a GPU", d->name);
        return;
    }
    tti_device **d = tti_communicator_devices(p, g);
    if (d == NULL)
        return;
    g->is_usable = d[0]->backend->streams->has_communicator(d, g->n, words, sizeof(words));
    g->words = say(p, "%s", words);
}

// The communicator of an old node's devices; -1: they are none.
static int communicator_of(tti_spreader *s, int node)
{
    tti_plan *p = s->p;
    tti_communicator_plan g = {.n = s->n_replicas};
    if (tti_spread_device(s, node, 0) < 0)
        return -1;
    for (int i = 0; i < p->n_communicators; i++) {
        bool same = true; // most that are not are told by the first
        for (int r = 0; same && r < g.n; r++)
            same = p->communicators[i].device[r] == tti_spread_device(s, node, r);
        if (same)
            return i;
    }
    g.device = tti_plan_alloc(p, sizeof(int) * (size_t)g.n);
    if (g.device == NULL || !tti_grow(p->ctx, &p->communicators, &p->cap_communicators,
                                      p->n_communicators + 1, sizeof(g)))
        return -1;
    for (int r = 0; r < g.n; r++)
        g.device[r] = tti_spread_device(s, node, r);
    ask(p, &g);
    p->communicators[p->n_communicators] = g;
    return (int)p->n_communicators++;
}

bool tti_is_by_library(tti_spreader *s, int node)
{
    const tti_plan *p = s->p;
    if (p->top->spread.reduce != TT_REDUCE_FAST || s->n_replicas < 2 ||
        s->mesh->state == TT_LAYOUT_ONE || p->top->n_tasks > 1 || p->lanes.n != p->lanes.total)
        return false;
    int communicator = communicator_of(s, node);
    return communicator >= 0 && p->communicators[communicator].is_usable;
}

// Sums that rows wait for are small, and sooner there without a third party.
bool tti_is_library_sum(tti_spreader *s, int old, tt_dtype partial)
{
    bool known = partial == TT_F32 || partial == TT_I32 || partial == TT_I64;
    for (int r = 0; r < s->n_replicas; r++)
        known &= s->micros[r] > 0;
    return known && partial == s->values[old].dtype && s->residual[old] < 0 && !s->is_sparse[old] &&
           !s->urgent[old] && tti_is_by_library(s, s->values[old].node);
}

// ---- collectives -----------------------------------------------------------------------------

// The collective of the plan nodes that come next, on count elements; -1.
static int new_collective(tti_spreader *s, int node, tti_collective_kind kind, tt_dtype dtype,
                          int64_t count)
{
    tti_plan *p = s->p;
    const tti_collective *what = tti_spread_collective(s, kind, 0, dtype, count);
    void **data = tti_plan_alloc(p, sizeof(*data) * (size_t)s->n_replicas);
    if (what == NULL || data == NULL ||
        !tti_grow(p->ctx, &p->collectives, &p->cap_collectives, p->n_collectives + 1,
                  sizeof(*p->collectives)))
        return -1;
    p->collectives[p->n_collectives] = (tti_collective_op){
        .communicator = communicator_of(s, node),
        .first = (int)p->n_nodes,
        .n = s->n_replicas,
        .what = what,
        .call = {.what = *what, .data = data, .node = s->nodes[node].node},
    };
    return (int)p->n_collectives++;
}

// The part of replica r, whose value in has the memory; the new value is all of it, or its piece.
static int add_part(tti_spreader *s, int old, int r, int collective, int in)
{
    tti_plan *p = s->p;
    int v = tti_add_combining(s, old, r, &in, 1, TTI_LIBRARY_COLLECTIVE);
    if (v < 0)
        return -1;
    const tti_collective_op *u = &p->collectives[collective];
    tti_pnode *pn = &p->nodes[p->values[v].node];
    pn->collective = collective;
    pn->what = u->what;
    pn->reason = say(p, "by %s", p->communicators[u->communicator].words);
    int root = tti_root(p, in);
    p->values[v].root = root;
    p->values[v].memory = p->values[root].memory;
    p->values[v].fixed = p->values[root].fixed;
    size_t bytes = p->values[v].bytes / (size_t)s->n_replicas * (size_t)(s->n_replicas - 1);
    p->devices[pn->device].received_bytes += u->what->kind == TTI_ALL_REDUCE ? 2 * bytes : bytes;
    return v;
}

int tti_sum_of_replica(tti_spreader *s, int old, int r, const int *values, int n, int *at)
{
    tti_plan *p = s->p;
    int first = *at, device = tti_spread_device(s, s->values[old].node, r);
    while (*at < n && p->nodes[p->values[values[*at]].node].device == device)
        (*at)++;
    if (*at - first == 1 && p->values[values[first]].count == s->values[old].count)
        return values[first];
    int v = tti_add_combining(s, old, r, &values[first], *at - first, TTI_TREE);
    if (v < 0)
        return -1;
    tti_pnode *pn = &p->nodes[p->values[v].node];
    pn->is_chain = true;
    pn->reason = "sums of this replica";
    tti_set_data(p, v, TT_LAYOUT_PARTIAL, TTI_DIM_FLAT, r);
    pn->lanes = p->nodes[p->values[values[*at - 1]].node].lanes; // some: it is no final sum
    pn->key = tti_key_shift(p->nodes[p->values[values[*at - 1]].node].key, TTI_SHIFT_PARTIAL);
    return v;
}

tt_status tti_spread_library_sum(tti_spreader *s, int old, const int *values, int n)
{
    tti_plan *p = s->p;
    int *sums = tti_plan_alloc(p, sizeof(int) * (size_t)s->n_replicas);
    int at = 0, maker = s->values[old].node;
    if (sums == NULL)
        return TT_ENOMEM;
    bool pieces = s->in_pieces[old] != 0;
    for (int r = 0; r < s->n_replicas; r++) {
        sums[r] = tti_sum_of_replica(s, old, r, values, n, &at);
        if (sums[r] < 0)
            return tt_status_of(p->ctx);
    }
    int collective = new_collective(s, maker, pieces ? TTI_REDUCE_SCATTER : TTI_ALL_REDUCE,
                                    s->values[old].dtype, s->values[old].count);
    for (int r = 0; r < s->n_replicas; r++) {
        int v = collective < 0 ? -1 : add_part(s, old, r, collective, sums[r]);
        if (v < 0)
            return tt_status_of(p->ctx);
        tti_pnode *pn = &p->nodes[p->values[v].node];
        const int64_t *begin = p->collectives[collective].what->begin;
        pn->key = tti_key_slots(s->made_key[old], s->late);
        pn->ready = tti_key_slots(s->tree_key[old], s->late);
        if (pieces) {
            pn->piece = r;
            p->values[v].skip = (size_t)begin[r] * tt_dtype_bytes(p->values[v].dtype);
            tti_make_piece(p, v, begin[r], begin[r + 1]);
            tti_set_data(p, v, TT_LAYOUT_SPLIT, TTI_DIM_FLAT, r);
        }
        (pieces ? s->piece : s->whole)[(int64_t)old * s->n_replicas + r] = v;
    }
    return TT_OK;
}

tt_status tti_spread_library_collect(tti_spreader *s, int old)
{
    tti_plan *p = s->p;
    int n = s->n_replicas;
    int collective = new_collective(s, s->values[old].node, TTI_ALL_GATHER, s->values[old].dtype,
                                    s->values[old].count);
    for (int r = 0; r < n; r++) {
        int v =
            collective < 0 ? -1 : add_part(s, old, r, collective, s->piece[(int64_t)old * n + r]);
        if (v < 0)
            return tt_status_of(p->ctx);
        p->nodes[p->values[v].node].piece = r;
        s->whole[(int64_t)old * n + r] = v;
    }
    return TT_OK;
}
