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

static void ask(tti_plan *p, tti_gang_plan *g)
{
    tti_device *d[TTI_MAX_DEVICES];
    char words[200];
    for (int i = 0; i < g->n; i++) {
        d[i] = p->top->devices[g->device[i]];
        if (tti_has_streams(d[i]))
            continue;
        g->words = say(p, "%s is not a GPU", d[i]->name);
        return;
    }
    g->joins = d[0]->backend->streams->joins(d, g->n, words, sizeof(words));
    g->words = say(p, "%s", words);
}

// The gang of an old node's devices; -1: they are none.
static int gang_of(tti_spreader *s, int node)
{
    tti_plan *p = s->p;
    tti_gang_plan g = {.n = s->n_replicas};
    for (int r = 0; r < g.n; r++) {
        g.device[r] = tti_spread_device(s, node, r);
        if (g.device[r] < 0)
            return -1;
    }
    for (int i = 0; i < p->n_gangs; i++)
        if (memcmp(p->gangs[i].device, g.device, sizeof(int) * (size_t)g.n) == 0)
            return i;
    if (p->gangs == NULL)
        p->gangs = tti_plan_alloc(p, sizeof(*p->gangs) * TTI_MAX_DEVICES);
    if (p->gangs == NULL || p->n_gangs == TTI_MAX_DEVICES)
        return -1;
    ask(p, &g);
    p->gangs[p->n_gangs] = g;
    return p->n_gangs++;
}

bool tti_spread_joins(tti_spreader *s, int node)
{
    const tti_plan *p = s->p;
    if (p->top->spread.reduce != TT_REDUCE_FAST || s->n_replicas < 2 || s->mesh->is_central ||
        p->top->n_tasks > 1 || p->lanes.n != p->lanes.total)
        return false;
    int gang = gang_of(s, node);
    return gang >= 0 && p->gangs[gang].joins;
}

// Sums that rows wait for are small, and sooner there without a third party.
bool tti_spread_joins_sum(tti_spreader *s, int old, tt_dtype partial)
{
    bool known = partial == TT_F32 || partial == TT_I32 || partial == TT_I64;
    for (int r = 0; r < s->n_replicas; r++)
        known &= s->micros[r] > 0;
    return known && partial == s->values[old].dtype && s->residual[old] < 0 && !s->touched[old] &&
           !s->urgent[old] && tti_spread_joins(s, s->values[old].node);
}

// ---- units -----------------------------------------------------------------------------------

// The unit of the plan nodes that come next, on count elements; -1.
static int new_unit(tti_spreader *s, int node, tti_joint_kind kind, tt_dtype dtype, int64_t count)
{
    tti_plan *p = s->p;
    int n = s->n_replicas;
    int64_t *begin = tti_plan_alloc(p, sizeof(*begin) * (size_t)(n + 1));
    void **data = tti_plan_alloc(p, sizeof(*data) * (size_t)n);
    if (begin == NULL || data == NULL ||
        !tti_grow(p->ctx, &p->units, &p->cap_units, p->n_units + 1, sizeof(*p->units)))
        return -1;
    for (int r = 0; r < n; r++)
        tti_piece_range(count, r, n, &begin[r], &begin[r + 1]);
    p->units[p->n_units] = (tti_unit){
        .gang = gang_of(s, node),
        .first = (int)p->n_nodes,
        .joint = {.kind = kind,
                  .dtype = dtype,
                  .begin = begin,
                  .data = data,
                  .node = s->nodes[node].node},
    };
    return (int)p->n_units++;
}

// The part of replica r, whose value in has the memory; the new value is all of it, or its piece.
static int add_part(tti_spreader *s, int old, int r, int unit, int in)
{
    tti_plan *p = s->p;
    int v = tti_add_joining(s, old, r, &in, 1, TTI_JOINT);
    if (v < 0)
        return -1;
    const tti_unit *u = &p->units[unit];
    tti_pnode *pn = &p->nodes[p->values[v].node];
    pn->unit = unit;
    pn->joint = u->joint.kind;
    pn->reason = say(p, "by %s", p->gangs[u->gang].words);
    int root = tti_root(p, in);
    p->values[v].root = root;
    p->values[v].memory = p->values[root].memory;
    p->values[v].fixed = p->values[root].fixed;
    size_t bytes = p->values[v].bytes / (size_t)s->n_replicas * (size_t)(s->n_replicas - 1);
    p->devices[pn->device].received_bytes += u->joint.kind == TTI_JOINT_SUM ? 2 * bytes : bytes;
    return v;
}

// What replica r has, values [from, *end), as one sum.
static int sum_of_replica(tti_spreader *s, int old, int r, const int *values, int n, int *at)
{
    tti_plan *p = s->p;
    int first = *at, device = tti_spread_device(s, s->values[old].node, r);
    while (*at < n && p->nodes[p->values[values[*at]].node].device == device)
        (*at)++;
    if (*at - first == 1 && p->values[values[first]].count == s->values[old].count)
        return values[first];
    int v = tti_add_joining(s, old, r, &values[first], *at - first, TTI_TREE);
    if (v < 0)
        return -1;
    tti_pnode *pn = &p->nodes[p->values[v].node];
    pn->is_chain = true;
    pn->reason = "sums of this replica";
    pn->lanes = p->nodes[p->values[values[*at - 1]].node].lanes; // some: it is no final sum
    pn->key = tti_key_shift(p->nodes[p->values[values[*at - 1]].node].key, TTI_SHIFT_PARTIAL);
    return v;
}

tt_status tti_spread_joint_sum(tti_spreader *s, int old, const int *values, int n)
{
    tti_plan *p = s->p;
    int sums[TTI_MAX_DEVICES], at = 0, maker = s->values[old].node;
    bool pieces = s->in_pieces[old] != 0;
    for (int r = 0; r < s->n_replicas; r++) {
        sums[r] = sum_of_replica(s, old, r, values, n, &at);
        if (sums[r] < 0)
            return tt_status_of(p->ctx);
    }
    int unit = new_unit(s, maker, pieces ? TTI_JOINT_SCATTER : TTI_JOINT_SUM, s->values[old].dtype,
                        s->values[old].count);
    for (int r = 0; r < s->n_replicas; r++) {
        int v = unit < 0 ? -1 : add_part(s, old, r, unit, sums[r]);
        if (v < 0)
            return tt_status_of(p->ctx);
        tti_pnode *pn = &p->nodes[p->values[v].node];
        const int64_t *begin = p->units[unit].joint.begin;
        pn->key = tti_key_slots(s->made_key[old], s->late);
        pn->ready = tti_key_slots(s->tree_key[old], s->late);
        if (pieces) {
            pn->piece = r;
            p->values[v].skip = (size_t)begin[r] * tt_dtype_bytes(p->values[v].dtype);
            tti_make_piece(p, v, begin[r], begin[r + 1]);
        }
        (pieces ? s->piece : s->whole)[(int64_t)old * s->n_replicas + r] = v;
    }
    return TT_OK;
}

tt_status tti_spread_joint_collect(tti_spreader *s, int old)
{
    tti_plan *p = s->p;
    int n = s->n_replicas;
    int unit = new_unit(s, s->values[old].node, TTI_JOINT_GATHER, s->values[old].dtype,
                        s->values[old].count);
    for (int r = 0; r < n; r++) {
        int v = unit < 0 ? -1 : add_part(s, old, r, unit, s->piece[(int64_t)old * n + r]);
        if (v < 0)
            return tt_status_of(p->ctx);
        p->nodes[p->values[v].node].piece = r;
        s->whole[(int64_t)old * n + r] = v;
    }
    return TT_OK;
}
