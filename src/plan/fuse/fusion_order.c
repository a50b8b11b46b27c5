/*
 * advance.c - may a node be joined to one before it? Only if nothing it needs depends on that one,
 * or there would be a circle.
 *
 * An order of all nodes is kept. What the node needs, directly or not, and stands between the two
 * is looked through; if nothing of it needs the first, all of it can move before the first, and the
 * order holds for the joined nodes too.
 */
#include "plan/fuse/fusion_order.h"
#include <string.h>

// list[first[i]] up to list[first[i + 1]] become the ends of i's edges.
static void group_edges(const tti_plan *p, int64_t n, const int *by, const int *end, int *first,
                        int *list)
{
    for (int64_t i = 0; i < n; i++)
        first[by[i] + 1]++;
    for (int64_t i = 0; i < p->n_nodes; i++)
        first[i + 1] += first[i];
    for (int64_t i = 0; i < n; i++)
        list[first[by[i]]++] = end[i];
    for (int64_t i = p->n_nodes; i > 0; i--)
        first[i] = first[i - 1];
    first[0] = 0;
}

// What devices do together is one: each part of it needs what any part needs.
static void join_units(const tti_plan *p, tti_fusion_order *a)
{
    for (int64_t u = 0; u < p->n_collectives; u++) {
        int first = p->collectives[u].first;
        for (int i = first + 1; i < first + p->collectives[u].n; i++) {
            if (p->nodes[i].is_dropped)
                continue;
            a->seq[a->at[i]] = -1;
            a->lead[i] = first;
            a->next[i - 1] = i;
        }
    }
}

tt_status tti_fusion_order_init(tti_plan *p, const tti_edges *e, tti_fusion_order *out)
{
    size_t n = (size_t)p->n_nodes + 2, edges = (size_t)e->n + 1;
    tti_fusion_order a = {.search = 0};
    a.first_in = tti_calloc(p->ctx, 9 * n, sizeof(int));
    a.in = tti_alloc(p->ctx, sizeof(int) * 2 * edges);
    if (a.first_in == NULL || a.in == NULL) {
        tti_free(p->ctx, a.first_in);
        tti_free(p->ctx, a.in);
        return TT_ENOMEM;
    }
    int **parts[] = {&a.first_out, &a.lead, &a.next, &a.seq, &a.at, &a.stack, &a.window, &a.seen};
    for (int i = 0; i < TTI_COUNT(parts); i++)
        *parts[i] = a.first_in + (size_t)(i + 1) * n;
    a.out = a.in + edges;
    group_edges(p, e->n, e->to, e->from, a.first_in, a.in);
    group_edges(p, e->n, e->from, e->to, a.first_out, a.out);
    for (int i = 0; i < (int)p->n_nodes; i++) {
        a.lead[i] = i;
        a.next[i] = -1;
        a.at[i] = p->nodes[i].position;
    }
    memcpy(a.seq, p->order, sizeof(int) * (size_t)p->n_order);
    join_units(p, &a);
    *out = a;
    return TT_OK;
}

void tti_fusion_order_deinit(tti_plan *p, tti_fusion_order *a)
{
    tti_free(p->ctx, a->first_in);
    tti_free(p->ctx, a->in);
}

/*
 * Puts on the stack what node i, and those joined to it, need and what stands after lead. False: it
 * needs lead, and is not the one that is to be joined to it.
 */
static bool push_needed(tti_fusion_order *a, int i, int lead, bool is_joined, int *depth)
{
    for (; i >= 0; i = a->next[i])
        for (int k = a->first_in[i]; k < a->first_in[i + 1]; k++) {
            int need = a->lead[a->in[k]];
            if (need == lead && !is_joined)
                return false;
            if (a->at[need] <= a->at[lead] || a->seen[need] == a->search)
                continue;
            a->seen[need] = a->search;
            a->stack[(*depth)++] = need;
        }
    return true;
}

bool tti_can_move(tti_fusion_order *a, int i, int lead)
{
    int depth = 0;
    a->search++;
    bool can = push_needed(a, i, lead, true, &depth);
    while (can && depth > 0) {
        int need = a->stack[--depth];
        can = push_needed(a, need, lead, false, &depth);
    }
    return can;
}

void tti_move_to(tti_fusion_order *a, int i, int lead, int last)
{
    int from = a->at[lead], to = a->at[i], n = 0;
    for (int k = from; k <= to; k++) // what the search has seen
        if (a->seq[k] >= 0 && a->seq[k] != lead && a->seen[a->seq[k]] == a->search)
            a->window[n++] = a->seq[k];
    a->window[n++] = lead;
    for (int k = from; k <= to; k++)
        if (a->seq[k] >= 0 && a->seq[k] != lead && a->seq[k] != i &&
            a->seen[a->seq[k]] != a->search)
            a->window[n++] = a->seq[k];
    for (int k = from; k <= to; k++) {
        a->seq[k] = k - from < n ? a->window[k - from] : -1;
        if (a->seq[k] >= 0)
            a->at[a->seq[k]] = k;
    }
    a->lead[i] = lead;
    a->next[last] = i;
}
