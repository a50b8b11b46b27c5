/*
 * host_sums.c - sums over replicas on several hosts: what the replicas of one host have is added
 * there before it goes to another host, and goes there once.
 *
 * The replicas of a host that follow each other hold lanes that do, so what is left of adding
 * theirs up is one sum for each maximal sub-tree of those lanes: the additions are the same as
 * without hosts, and so are the bits. A sum in pieces sends to a host the pieces of all its
 * replicas. Whose process adds and sends for its host goes round with the buckets.
 */
#include "plan/spread/host_sums.h"
#include "device/device.h"
#include <string.h>

static int device_of(const tti_host_sums *h, int r)
{
    return tti_spread_device(h->s, h->s->values[h->old].node, r);
}

// Replicas in a row that read each other's memory.
static int group_end(const tti_host_sums *h, int first)
{
    int end = first + 1;
    while (end < h->s->n_replicas &&
           !tti_is_cross_host(h->s->p, device_of(h, first), device_of(h, end)))
        end++;
    return end;
}

static void find_groups(tti_host_sums *h, const int *values, int n)
{
    const tti_plan *p = h->s->p;
    int at = 0;
    for (int r = 0; r < h->s->n_replicas;) {
        tti_host_group *g = &h->groups[h->n_groups++];
        g->first = r;
        r = g->end = group_end(h, r);
        g->values = at;
        for (int q = g->first; q < g->end; q++)
            while (at < n && p->nodes[p->values[values[at]].node].device == device_of(h, q))
                at++;
        g->n_values = at - g->values;
    }
}

tt_status tti_host_sums_begin(tti_host_sums *h, tti_spreader *s, int old,
                              const tti_collective *what, const int *values, int n)
{
    *h = (tti_host_sums){.s = s, .old = old, .what = what, .all = values, .n_all = n};
    bool is_one = s->p->top->n_tasks < 2 || s->mesh->state == TT_LAYOUT_ONE || s->is_sparse[old] ||
                  s->residual[old] >= 0 || n < 2;
    if (is_one)
        return TT_OK;
    size_t most = (size_t)s->n_replicas;
    h->groups = tti_calloc(s->p->ctx, most, sizeof(*h->groups));
    if (h->groups == NULL)
        return TT_ENOMEM;
    find_groups(h, values, n);
    size_t pairs = (size_t)h->n_groups * (size_t)h->n_groups;
    h->in = tti_alloc(s->p->ctx, sizeof(int) * (size_t)(n + h->n_groups));
    h->sums = tti_alloc(s->p->ctx, sizeof(int) * (pairs + 1));
    if (h->in == NULL || h->sums == NULL)
        return TT_ENOMEM;
    memset(h->sums, -1, sizeof(int) * pairs);
    // Where each host has one replica there is nothing to add up first.
    h->is_used = h->n_groups > 1 && h->n_groups < s->n_replicas;
    return TT_OK;
}

void tti_host_sums_end(tti_host_sums *h)
{
    tti_free(h->s->p->ctx, h->groups);
    tti_free(h->s->p->ctx, h->in);
    tti_free(h->s->p->ctx, h->sums);
}

static tt_status set_lanes(tti_plan *p, const int *values, int n, tt_lanes **out, int64_t *rows)
{
    const tt_lanes *first = p->nodes[p->values[values[0]].node].lanes;
    tt_lanes *all = tti_plan_alloc(p, sizeof(*all));
    if (all == NULL)
        return TT_ENOMEM;
    *rows = 0;
    for (int i = 0; i < n; i++) {
        const tt_lanes *one = p->nodes[p->values[values[i]].node].lanes;
        *rows += one->bound[one->n];
    }
    tti_plan_request req = {.rows = *rows,
                            .batch = {first->first_row, first->global_rows, first->total}};
    *out = all;
    return tti_lanes_make(p, &req, all);
}

// What group a has for group b: its sums, of the pieces that b's replicas make; -1.
static int add_sum(tti_host_sums *h, int a, int b)
{
    tti_spreader *s = h->s;
    tti_plan *p = s->p;
    const tti_host_group *from = &h->groups[a], *to = &h->groups[b];
    const int *values = &h->all[from->values];
    bool in_pieces = s->in_pieces[h->old] != 0;
    tt_lanes *lanes;
    int64_t rows;
    int turn = (int)(s->made_key[h->old].rank % (from->end - from->first));
    int v = tti_add_combining(s, h->old, from->first + turn, values, from->n_values, TTI_TREE);
    if (v < 0 || set_lanes(p, values, from->n_values, &lanes, &rows) != TT_OK)
        return -1;
    tti_pnode *pn = &p->nodes[p->values[v].node];
    pn->lanes = lanes;
    pn->reason = "sums of this host";
    tti_set_data(p, v, TT_LAYOUT_PARTIAL, TTI_DIM_FLAT, from->first + turn);
    pn->what = h->what;
    if (!s->urgent[h->old])
        pn->key = tti_key_slots(s->made_key[h->old], s->late);
    if (tti_bind_shape(p, p->values[v].tensor, rows, lanes, &p->values[v]) != TT_OK)
        return -1;
    if (!in_pieces)
        return v;
    pn->piece = to->first;
    pn->n_covered = to->end - to->first;
    int64_t begin, end;
    tti_piece_of(pn, &begin, &end);
    tti_make_range(p, v, lanes->n == lanes->total ? 1 : lanes->n_parts, begin, end);
    return v;
}

int tti_host_sums_inputs(tti_host_sums *h, int r, const int **in)
{
    *in = h->all;
    if (!h->is_used)
        return h->n_all;
    int n = 0, b = 0;
    bool in_pieces = h->s->in_pieces[h->old] != 0;
    while (h->groups[b].end <= r)
        b++;
    for (int a = 0; a < h->n_groups; a++) {
        const tti_host_group *g = &h->groups[a];
        int device = device_of(h, g->first);
        if (a == b || g->n_values == 0 || !tti_is_cross_host(h->s->p, device, device_of(h, r))) {
            memcpy(&h->in[n], &h->all[g->values], sizeof(int) * (size_t)g->n_values);
            n += g->n_values;
            continue;
        }
        int *sum = &h->sums[a * h->n_groups + (in_pieces ? b : 0)];
        if (*sum < 0)
            *sum = add_sum(h, a, b);
        if (*sum < 0)
            return -1;
        h->in[n++] = *sum;
    }
    *in = h->in;
    return n;
}
