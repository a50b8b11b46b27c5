/*
 * bucket_hook.c - gradients that a function of the user's sums over replicas, a bucket at a time
 * (reduce: fast; tutti/comm.h).
 *
 * A bucket has one node per process, which reads the sums of that process's replicas where they are
 * and writes the result there. These nodes follow each other in the order: they are one collective
 * op. A gradient's readers come after it by a node without work, of its own device.
 */
#include "plan/spread/bucket_hook.h"
#include "device/device.h"
#include "plan/emit/draft.h"
#include "plan/spread/spread.h"
#include <string.h>

// ---- which values ----------------------------------------------------------------------------

// Does a node make of an input of count elements something of the same elements?
static bool keeps_elements(const tti_spreader *s, const tti_pnode *pn, int k)
{
    unsigned flags = pn->node->op->flags;
    return pn->kind == TTI_OP && pn->n_out == 1 &&
           (flags & (TT_OP_POINTWISE | TT_OP_FLAT | TT_OP_VIEW)) != 0 &&
           s->values[pn->in[k]].count == s->values[pn->out].count;
}

// By old value: the weight whose gradient it is on its way to the update; NULL: none's.
static void find_weights(tti_spreader *s)
{
    for (int64_t i = s->n_nodes - 1; i >= 0; i--) {
        const tti_pnode *pn = &s->nodes[i];
        if (pn->kind != TTI_OP || pn->is_dropped)
            continue;
        bool updates = (pn->node->op->flags & TT_OP_UPDATE) != 0;
        const tti_value *var = pn->n_in > 0 ? &s->values[pn->in[0]] : NULL;
        for (int k = updates ? 1 : 0; k < pn->n_in; k++) {
            if (updates && s->values[pn->in[k]].count == var->count && var->count > 1)
                s->weight[pn->in[k]] = s->nodes[var->node].node;
            else if (!updates && pn->n_out == 1 && s->weight[pn->out] != NULL &&
                     keeps_elements(s, pn, k))
                s->weight[pn->in[k]] = s->weight[pn->out];
        }
    }
}

tt_status tti_spread_hook_begin(tti_spreader *s, const tti_plan_request *req)
{
    tti_plan *p = s->p;
    if (req->hook == NULL || s->n_replicas < 2)
        return TT_OK;
    for (int r = 0; r < s->n_replicas; r++)
        for (int l = 1; l < s->n_pipe; l++)
            if (p->top->devices[tti_mesh_device(s->mesh, r, l)]->task !=
                p->top->devices[tti_mesh_device(s->mesh, r, 0)]->task)
                return TT_FAIL(p->ctx, TT_EUNSUPPORTED,
                               "bucket_hook: the devices of replica %d are in several processes; "
                               "a hook needs whole replicas in a process",
                               r);
    s->weight = tti_calloc(p->ctx, (size_t)s->n_values + 1, sizeof(*s->weight));
    if (s->weight == NULL)
        return TT_ENOMEM;
    p->hook = req->hook;
    find_weights(s);
    return TT_OK;
}

bool tti_spread_hooks_sum(const tti_spreader *s, int old, tt_dtype partial)
{
    bool fits = s->weight != NULL && s->weight[old] != NULL && partial == TT_F32 &&
                s->values[old].dtype == TT_F32 && !s->is_sparse[old] && !s->urgent[old] &&
                s->p->lanes.n == s->p->lanes.total;
    for (int r = 0; fits && r < s->n_replicas; r++)
        fits = s->micros[r] > 0;
    return fits;
}

// ---- the nodes -------------------------------------------------------------------------------

tt_status tti_spread_hook_sum(tti_spreader *s, int old, const int *values, int n)
{
    tti_plan *p = s->p;
    int at = 0;
    if (!tti_grow(p->ctx, &s->hooked, &s->cap_hooked, s->n_hooked + 1, sizeof(*s->hooked)))
        return TT_ENOMEM;
    int *nodes = tti_plan_alloc(p, sizeof(int) * (size_t)s->n_replicas);
    if (nodes == NULL)
        return TT_ENOMEM;
    for (int r = 0; r < s->n_replicas; r++) {
        int sum = tti_sum_of_replica(s, old, r, values, n, &at);
        int v = sum < 0 ? -1 : tti_add_combining(s, old, r, &sum, 1, TTI_HOOKED);
        if (v < 0)
            return tt_status_of(p->ctx);
        int root = tti_root(p, sum);
        p->values[v].root = root;
        p->values[v].memory = p->values[root].memory;
        p->values[v].fixed = p->values[root].fixed;
        nodes[r] = p->values[v].node;
        p->nodes[nodes[r]].key = tti_key_slots(s->tree_key[old], s->late);
        s->whole[(int64_t)old * s->n_replicas + r] = v;
    }
    s->hooked[s->n_hooked++] = (tti_hooked){old, nodes};
    return TT_OK;
}

// The first device of a replica's process.
static int first_device(const tti_spreader *s, int r)
{
    const tti_topology *top = s->p->top;
    int task = top->devices[tti_mesh_device(s->mesh, r, 0)]->task, d = 0;
    while (top->devices[d]->task != task)
        d++;
    return d;
}

// The node of the process with replicas [from, to), for gradients [begin, end) of those hooked.
static tt_status add_call(tti_spreader *s, int from, int to, int64_t begin, int64_t end, int bucket)
{
    tti_plan *p = s->p;
    int n_gradients = (int)(end - begin), n_in = n_gradients * (to - from);
    int *in = tti_plan_alloc(p, sizeof(int) * (size_t)(n_in + 1));
    tti_bucket_call *call = tti_plan_alloc(p, sizeof(*call));
    tt_gradient *list = tti_plan_alloc(p, sizeof(*list) * (size_t)(n_in + 1));
    if (in == NULL || call == NULL || list == NULL)
        return TT_ENOMEM;
    for (int r = from; r < to; r++)
        for (int64_t i = begin; i < end; i++) {
            const tti_hooked *h = &s->hooked[i];
            int k = (r - from) * n_gradients + (int)(i - begin);
            const tti_value *v = &p->values[in[k] = p->nodes[h->nodes[r]].in[0]];
            list[k] =
                (tt_gradient){s->weight[h->old]->name, s->values[h->old].shape, v->count, NULL};
        }
    const tti_hooked *last = &s->hooked[end - 1];
    const tti_collective *what = p->collectives[p->n_collectives - 1].what;
    *call = (tti_bucket_call){.state = p->hook,
                              .index = bucket,
                              .n_replicas = to - from,
                              .n_gradients = n_gradients,
                              .gradients = list};
    tti_pnode pn = {.kind = TTI_HOOK,
                    .node = s->values[last->old].tensor->node,
                    .n_in = n_in,
                    .in = in,
                    .out = in[0],
                    .device = first_device(s, from),
                    .reason = "bucket hook",
                    .what = what,
                    .lanes = &p->lanes,
                    .is_copy = from > 0,
                    .piece = -1,
                    .bucket = call,
                    .collective = (int)p->n_collectives - 1,
                    .key = tti_key_slots(s->made_key[last->old], s->late)};
    int id = tti_plan_node(p, pn);
    int *after = tti_plan_alloc(p, sizeof(int));
    if (id < 0 || after == NULL)
        return TT_ENOMEM;
    after[0] = id;
    for (int r = from; r < to; r++)
        for (int64_t i = begin; i < end; i++) {
            tti_pnode *reader = &p->nodes[s->hooked[i].nodes[r]];
            reader->after = after;
            reader->n_after = 1;
        }
    return TT_OK;
}

static tt_status add_bucket(tti_spreader *s, int64_t begin, int64_t end, int bucket)
{
    tti_plan *p = s->p;
    if (!tti_grow(p->ctx, &p->collectives, &p->cap_collectives, p->n_collectives + 1,
                  sizeof(*p->collectives)))
        return TT_ENOMEM;
    int64_t count = 0;
    for (int64_t i = begin; i < end; i++)
        count += s->values[s->hooked[i].old].count;
    const tti_collective *what = tti_spread_collective(s, TTI_ALL_REDUCE, 0, TT_F32, count);
    if (what == NULL)
        return TT_ENOMEM;
    p->collectives[p->n_collectives++] =
        (tti_collective_op){.communicator = -1, .first = (int)p->n_nodes, .what = what};
    for (int r = 0, to; r < s->n_replicas; r = to) {
        for (to = r + 1; to < s->n_replicas && first_device(s, to) == first_device(s, r);)
            to++;
        TT_TRY(add_call(s, r, to, begin, end, bucket));
        p->collectives[p->n_collectives - 1].n++;
    }
    return TT_OK;
}

tt_status tti_spread_hook_end(tti_spreader *s)
{
    tti_plan *p = s->p;
    for (int64_t i = 0, end; i < s->n_hooked; i = end) {
        for (end = i + 1; end < s->n_hooked; end++)
            if (tti_key_compare(s->made_key[s->hooked[end].old], s->made_key[s->hooked[i].old]) !=
                0)
                break;
        TT_TRY(add_bucket(s, i, end, p->n_buckets++));
    }
    return TT_OK;
}

// ---- the calls -------------------------------------------------------------------------------

static tt_status hook_kernel(const tt_launch *l)
{
    const tti_bucket_call *c = l->tune;
    const tti_hook *h = c->state;
    for (int i = 0; i < l->n_in; i++)
        c->gradients[i].data = l->in[i].data;
    tt_bucket b = {.size = sizeof(b),
                   .comm = h->comm,
                   .index = c->index,
                   .n_buckets = c->n_buckets,
                   .step = l->step->step,
                   .n_replicas = c->n_replicas,
                   .n_gradients = c->n_gradients,
                   .gradients = c->gradients};
    tt_status st = h->fn(h->user, &b);
    if (st == TT_OK)
        return tt_status_of(l->ctx);
    return TT_FAIL(l->ctx, st, "bucket_hook: returned %s for bucket %d of %d (%s and %d more)",
                   tt_status_name(st), c->index, c->n_buckets, c->gradients[0].weight,
                   c->n_gradients - 1);
}

static tt_status no_kernel(const tt_launch *l)
{
    (void)l;
    return TT_OK;
}

tt_status tti_draft_hook(tti_emitter *e, int pnode)
{
    tti_plan *p = e->p;
    const tti_pnode *pn = &p->nodes[pnode];
    bool calls = pn->kind == TTI_HOOK;
    int n_out = calls ? 0 : 1;
    tti_call *c = tti_start_draft(e, pnode, 1)
                      ? tti_new_call(e, pnode, calls ? hook_kernel : no_kernel, pn->n_in, n_out)
                      : NULL;
    if (c == NULL)
        return TT_ENOMEM;
    for (int i = 0; i < pn->n_in + n_out; i++)
        tti_arg_fill((tt_arg *)&c->launch.in[i],
                     &p->values[i < pn->n_in ? pn->in[i] : pn->out + i - pn->n_in]);
    if (calls) {
        pn->bucket->n_buckets = p->n_buckets;
        c->launch.tune = pn->bucket;
    }
    c->units[0] = 1;
    tti_set_threads(c, 1, 0);
    return TT_OK;
}
