/*
 * host_sums.c - sums over replicas on several hosts: what the replicas of one host have is added
 * there before it goes to another host, and goes there once.
 *
 * The replicas of a host that follow each other hold lanes that do, so what is left of adding
 * theirs up is one sum for each maximal sub-tree of those lanes: the additions are the same as
 * without hosts, and so are the bits. A sum in pieces sends to a host the pieces of all its
 * replicas. Whose process adds and sends for its host goes round with the buckets. All of this is
 * the schedule of calls (comm/collective_schedule.h): the folds of a host are made nodes here.
 */
#include "plan/spread/host_sums.h"
#include "device/device.h"
#include <string.h>

static int device_of(const tti_host_sums *h, int r)
{
    return tti_spread_device(h->s, h->s->values[h->old].node, r);
}

tt_status tti_replica_hosts(const tti_plan *p, int part, tti_host_map *out)
{
    int n = tti_mesh_size(&p->mesh, TTI_AXIS_DATA);
    int *first_of = tti_alloc(p->ctx, sizeof(int) * (size_t)n);
    if (first_of == NULL)
        return TT_ENOMEM;
    first_of[0] = 0;
    for (int r = 1; r < n; r++) {
        int first = first_of[r - 1];
        bool is_cross = tti_is_cross_host(p, tti_mesh_device(&p->mesh, first, part),
                                          tti_mesh_device(&p->mesh, r, part));
        first_of[r] = is_cross ? r : first;
    }
    tt_status st = tti_host_map_make(p->ctx, n, first_of, out);
    tti_free(p->ctx, first_of);
    return st;
}

// Which of the values, which are in the order of lanes, are those of each host.
static void find_values(tti_host_sums *h)
{
    const tti_plan *p = h->s->p;
    int at = 0;
    for (int host = 0; host < h->hosts.n_hosts; host++) {
        h->values[host] = at;
        for (int k = h->hosts.first[host]; k < h->hosts.first[host + 1]; k++)
            while (at < h->n_all &&
                   p->nodes[p->values[h->all[at]].node].device == device_of(h, h->hosts.members[k]))
                at++;
    }
    h->values[h->hosts.n_hosts] = at;
}

/*
 * The folds of the schedule that one host makes for another. Their values are made once a tree
 * needs them; sends and receives follow from that (cut.c).
 */
static tt_status find_sums(tti_host_sums *h)
{
    const tti_host_map *m = &h->hosts;
    tt_ctx *ctx = h->s->p->ctx;
    bool in_pieces = h->s->in_pieces[h->old] != 0;
    tti_collective_request q = {.kind = h->what->kind,
                                .root = h->what->root,
                                .hosts = m,
                                .grain = in_pieces ? TTI_BY_HOST : TTI_WHOLE,
                                .turn = h->s->made_key[h->old].rank};
    tti_collective_schedule steps = {
        .steps = tti_alloc(ctx, sizeof(*steps.steps) * (size_t)tti_collective_schedule_room(m))};
    if (steps.steps == NULL)
        return TT_ENOMEM;
    for (int host = 0; host < m->n_hosts; host++) {
        int by = tti_host_agent(m, host, q.turn);
        tti_collective_schedule_make(&q, by, &steps);
        for (int i = 0; i < steps.n_sum; i++) {
            const tti_collective_step *step = &steps.steps[i];
            int to = in_pieces ? m->host[step->first] : 0;
            if (step->kind == TTI_STEP_FOLD && step->host == host)
                h->sums[host * m->n_hosts + to] = (tti_host_sum){by, step->first, step->end, -1};
        }
    }
    tti_free(ctx, steps.steps);
    return TT_OK;
}

tt_status tti_host_sums_begin(tti_host_sums *h, tti_spreader *s, int old,
                              const tti_collective *what, const int *values, int n)
{
    *h = (tti_host_sums){.s = s, .old = old, .what = what, .all = values, .n_all = n};
    bool is_one = s->p->top->n_tasks < 2 || s->mesh->state == TT_LAYOUT_ONE || s->is_sparse[old] ||
                  s->residual[old] >= 0 || s->stage[s->values[old].node] < 0 || n < 2;
    if (is_one)
        return TT_OK;
    TT_TRY(tti_replica_hosts(s->p, s->stage[s->values[old].node] % s->n_pipe, &h->hosts));
    size_t hosts = (size_t)h->hosts.n_hosts;
    // Where each host has one replica there is nothing to add up first.
    h->is_used = hosts > 1 && h->hosts.n_hosts < s->n_replicas;
    if (!h->is_used)
        return TT_OK;
    h->in = tti_alloc(s->p->ctx, sizeof(int) * ((size_t)n + hosts));
    h->values = tti_alloc(s->p->ctx, sizeof(int) * (hosts + 1));
    h->sums = tti_calloc(s->p->ctx, hosts * hosts, sizeof(*h->sums));
    if (h->in == NULL || h->values == NULL || h->sums == NULL)
        return TT_ENOMEM;
    find_values(h);
    return find_sums(h);
}

void tti_host_sums_end(tti_host_sums *h)
{
    tti_host_map_free(h->s->p->ctx, &h->hosts);
    tti_free(h->s->p->ctx, h->in);
    tti_free(h->s->p->ctx, h->values);
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

// Makes a host's sum, of its values; false: recorded.
static bool add_sum(tti_host_sums *h, const int *values, int n, tti_host_sum *sum)
{
    tti_spreader *s = h->s;
    tti_plan *p = s->p;
    tt_lanes *lanes;
    int64_t rows;
    int v = tti_add_combining(s, h->old, sum->by, values, n, TTI_TREE);
    if (v < 0 || set_lanes(p, values, n, &lanes, &rows) != TT_OK)
        return false;
    tti_pnode *pn = &p->nodes[p->values[v].node];
    pn->lanes = lanes;
    pn->reason = "sums of this host";
    tti_set_data(p, v, TT_LAYOUT_PARTIAL, TTI_DIM_FLAT, sum->by);
    pn->what = h->what;
    if (!s->urgent[h->old])
        pn->key = tti_key_slots(s->made_key[h->old], s->late);
    if (tti_bind_shape(p, p->values[v].tensor, rows, lanes, &p->values[v]) != TT_OK)
        return false;
    sum->value = v;
    if (s->in_pieces[h->old] == 0)
        return true;
    pn->piece = sum->first;
    pn->n_covered = sum->end - sum->first;
    int64_t begin, end;
    tti_piece_of(pn, &begin, &end);
    tti_make_range(p, v, lanes->n == lanes->total ? 1 : lanes->n_parts, begin, end);
    return true;
}

int tti_host_sums_inputs(tti_host_sums *h, int r, const int **in)
{
    *in = h->all;
    if (!h->is_used)
        return h->n_all;
    const tti_host_map *m = &h->hosts;
    bool in_pieces = h->s->in_pieces[h->old] != 0;
    int n = 0, own = m->host[r];
    for (int host = 0; host < m->n_hosts; host++) {
        const int *values = &h->all[h->values[host]];
        int n_values = h->values[host + 1] - h->values[host];
        int device = device_of(h, m->members[m->first[host]]);
        if (host == own || n_values == 0 || !tti_is_cross_host(h->s->p, device, device_of(h, r))) {
            memcpy(&h->in[n], values, sizeof(int) * (size_t)n_values);
            n += n_values;
            continue;
        }
        tti_host_sum *sum = &h->sums[host * m->n_hosts + (in_pieces ? own : 0)];
        TTI_ASSERT(sum->first < sum->end); // every host that makes a result is sent to
        if (sum->value < 0 && !add_sum(h, values, n_values, sum))
            return -1;
        h->in[n++] = sum->value;
    }
    *in = h->in;
    return n;
}
