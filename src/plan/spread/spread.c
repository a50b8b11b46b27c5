/*
 * spread.c - lays a plan on a mesh: nodes that work on rows of the batch are copied to every
 * replica, and for every micro-batch of it, each copy with some of the lanes; nodes that do not are
 * done by every replica for itself, or in pieces (combine.c).
 *
 * A sum over rows then has partials with several micro-batches; tree nodes add them in the order of
 * the lane tree, so the sum is the one that a single device makes. Where lanes run changes nothing.
 */
#include "plan/spread/spread.h"
#include "op/max_abs.h"
#include <string.h>

// ---- keys ------------------------------------------------------------------------------------

// Where a copy for this micro-batch would like to stand.
static tti_order_key batch_key(const tti_spreader *s, int node, const tti_micro_batch *sh)
{
    const tti_pnode *pn = &s->nodes[node];
    if (s->schedules == NULL)
        return tti_key_slots(pn->key, sh->micro);
    const tti_schedule *t = &s->schedules[sh->replica];
    bool backward = pn->node->origin != NULL || pn->is_recomputed;
    int at = t->at[(s->stage[node] * s->micros[sh->replica] + sh->micro) * 2 + backward];
    return tti_key_slots(pn->key, TTI_MAX(at, 0));
}

static tti_order_key whole_key(const tti_spreader *s, int node)
{
    return tti_key_slots(s->nodes[node].key, s->is_late[node] ? s->late : 0);
}

// ---- nodes -----------------------------------------------------------------------------------

// The root of a new output: itself, or for views and updates the first input's.
static bool shares_memory(const tti_pnode *pn, int k)
{
    return k == 0 && pn->kind == TTI_OP && (pn->node->op->flags & (TT_OP_VIEW | TT_OP_UPDATE)) != 0;
}

static int add_output(tti_spreader *s, const tti_pnode *old, int k, int node, const int *in,
                      const tti_micro_batch *sh)
{
    tti_plan *p = s->p;
    tti_value v = s->values[old->out + k];
    int v_node = v.node; // old
    v.node = node;
    v.root = -1;
    v.skip = 0;
    v.keep = false;
    v.device = p->nodes[node].device;
    v.layout.on[TTI_AXIS_PIPE] = tti_spread_pipe(s, v_node);
    if (sh != NULL && v.memory != TTI_CONSTANT)
        v.layout.on[TTI_AXIS_DATA] =
            (tti_layout_entry){(uint8_t)v.tensor->layout.kind, (int8_t)v.tensor->layout.dim,
                               (int16_t)(v.tensor->layout.kind == 0 ? 0 : sh->replica)};
    if (sh != NULL && tti_bind_shape(p, v.tensor, sh->rows, sh->lanes, &v) != TT_OK)
        return -1;
    if (shares_memory(old, k)) {
        v.root = in[0];
        v.memory = p->values[in[0]].memory;
        v.fixed = p->values[in[0]].fixed;
        v.skip = p->values[in[0]].skip;
    }
    return tti_plan_value(p, v);
}

static int add_copy(tti_spreader *s, int node, int replica, const int *in,
                    const tti_micro_batch *sh)
{
    const tti_pnode *old = &s->nodes[node];
    tti_pnode pn = *old;
    pn.in = (int *)in;
    pn.out = (int)s->p->n_values;
    pn.n_after = 0;
    pn.is_copy = replica > 0;
    pn.device = old->is_dropped ? old->device : tti_spread_device(s, node, replica);
    pn.key = sh != NULL ? batch_key(s, node, sh) : whole_key(s, node);
    if (sh != NULL) {
        pn.reason = sh->reason;
        pn.lanes = sh->lanes;
        pn.first_row = sh->lanes->first_row - s->p->lanes.first_row;
        pn.micro = sh->micro;
        pn.stage = s->mesh->n_stages > 0 ? TTI_MAX(s->stage[node] + 1, 0) : 0;
    } else if (pn.device >= 0) {
        pn.reason = s->n_replicas > 1 ? "replica" : "stage";
    }
    return tti_plan_node(s->p, pn);
}

static tt_status rows_node(tti_spreader *s, int i)
{
    tti_plan *p = s->p;
    const tti_pnode *old = &s->nodes[i];
    if (old->node->mixes_rows)
        return TT_FAIL(p->ctx, TT_EUNSUPPORTED,
                       "%s '%s' mixes rows of the batch, so it cannot be divided over devices or "
                       "micro-batches; use strategy single without accumulate",
                       old->node->op->name, old->node->name);
    s->first[i] = (int)p->n_nodes;
    s->n_copies[i] = s->n_batches;
    for (int k = 0; k < old->n_in; k++) // what must be collected first comes before the copies
        for (int r = 0; !tti_is_split(&s->values[old->in[k]]) && r < s->n_replicas; r++)
            if (s->micros[r] > 0 && tti_spread_whole(s, old->in[k], r) < 0)
                return tt_status_of(p->ctx);
    s->first[i] = (int)p->n_nodes;
    for (int h = 0; h < s->n_batches; h++) {
        const tti_micro_batch *sh = &s->batches[h];
        int *in = tti_plan_alloc(p, sizeof(int) * (size_t)(old->n_in + 1));
        if (in == NULL)
            return TT_ENOMEM;
        for (int k = 0; k < old->n_in; k++)
            in[k] = tti_is_split(&s->values[old->in[k]])
                        ? s->copies[(int64_t)old->in[k] * s->n_batches + h]
                        : tti_spread_whole(s, old->in[k], sh->replica);
        int id = add_copy(s, i, sh->replica, in, sh);
        for (int k = 0; id >= 0 && k < old->n_out; k++) {
            int v = add_output(s, old, k, id, in, sh);
            if (v < 0)
                return tt_status_of(p->ctx);
            s->copies[(int64_t)(old->out + k) * s->n_batches + h] = v;
            if (s->is_sparse[old->out + k])
                TT_TRY(tti_make_sparse_rows(s, v, sh));
        }
        if (id < 0)
            return TT_ENOMEM;
    }
    return tti_spread_combine(s, i);
}

// A copy per replica, or one with its owner.
static tt_status every_node(tti_spreader *s, int i)
{
    tti_plan *p = s->p;
    const tti_pnode *old = &s->nodes[i];
    bool every = s->mode[i] == TTI_MODE_REPLICATED;
    int from = every ? 0 : s->owner[i], end = every ? s->n_replicas : from + 1;
    for (int k = 0; k < old->n_in; k++)
        for (int r = from; r < end; r++)
            if (tti_spread_whole(s, old->in[k], r) < 0)
                return tt_status_of(p->ctx);
    s->first[i] = (int)p->n_nodes;
    s->n_copies[i] = end - from;
    for (int r = from; r < end; r++) {
        int *in = tti_plan_alloc(p, sizeof(int) * (size_t)(old->n_in + 1));
        if (in == NULL)
            return TT_ENOMEM;
        for (int k = 0; k < old->n_in; k++)
            in[k] = tti_spread_whole(s, old->in[k], r);
        int id = add_copy(s, i, r, in, NULL);
        if (id < 0)
            return TT_ENOMEM;
        p->nodes[id].is_copy = every && r > 0;
        for (int k = 0; k < old->n_out; k++) {
            int v = add_output(s, old, k, id, in, NULL);
            if (v < 0)
                return tt_status_of(p->ctx);
            if (!every)
                tti_set_data(
                    p, v, TT_LAYOUT_ONE, TTI_DIM_FLAT,
                    s->mesh->n_axes == 0 || p->nodes[id].device < 0
                        ? 0
                        : tti_mesh_coordinate(s->mesh, p->nodes[id].device, TTI_AXIS_DATA));
            for (int to = every ? r : 0; to < (every ? r + 1 : s->n_replicas); to++)
                s->whole[(int64_t)(old->out + k) * s->n_replicas + to] = v;
        }
    }
    return TT_OK;
}

// Each replica does its range of the elements; single numbers are whole.
static tt_status piece_node(tti_spreader *s, int i)
{
    tti_plan *p = s->p;
    const tti_pnode *old = &s->nodes[i];
    int64_t count = s->values[old->out].count;
    for (int k = 0; k < old->n_in; k++)
        for (int r = 0; r < s->n_replicas; r++)
            if ((s->values[old->in[k]].count == count ? tti_spread_piece(s, old->in[k], r)
                                                      : tti_spread_whole(s, old->in[k], r)) < 0)
                return tt_status_of(p->ctx);
    s->first[i] = (int)p->n_nodes;
    s->n_copies[i] = s->n_replicas;
    for (int r = 0; r < s->n_replicas; r++) {
        int64_t begin, end;
        tti_piece_range(count, r, s->n_replicas, &begin, &end);
        int *in = tti_plan_alloc(p, sizeof(int) * (size_t)(old->n_in + 1));
        if (in == NULL)
            return TT_ENOMEM;
        for (int k = 0; k < old->n_in; k++)
            in[k] = s->values[old->in[k]].count == count ? tti_spread_piece(s, old->in[k], r)
                                                         : tti_spread_whole(s, old->in[k], r);
        int id = add_copy(s, i, r, in, NULL);
        int v = id < 0 ? -1 : add_output(s, old, 0, id, in, NULL);
        if (v < 0)
            return tt_status_of(p->ctx);
        p->nodes[id].reason = "a part of the elements";
        tti_make_piece(p, v, begin, end);
        tti_set_data(p, v, TT_LAYOUT_SPLIT, TTI_DIM_FLAT, r);
        s->piece[(int64_t)old->out * s->n_replicas + r] = v;
    }
    bool update = (old->node->op->flags & TT_OP_UPDATE) != 0;
    int root = old->in[0];
    while (s->values[root].root != root)
        root = s->values[root].root;
    return update && !s->is_sharded[s->values[root].node] ? tti_spread_collect(s, old->out) : TT_OK;
}

// What replica r takes of an input of a node done in parts.
static int part_input(tti_spreader *s, int old, int r)
{
    return s->in_pieces[old] ? tti_spread_piece(s, old, r) : tti_spread_whole(s, old, r);
}

// Each replica looks at its range of every input that comes in pieces.
static tt_status part_node(tti_spreader *s, int i)
{
    tti_plan *p = s->p;
    const tti_pnode *old = &s->nodes[i];
    for (int k = 0; k < old->n_in; k++)
        for (int r = 0; r < s->n_replicas; r++)
            if (part_input(s, old->in[k], r) < 0)
                return tt_status_of(p->ctx);
    s->first[i] = (int)p->n_nodes;
    s->n_copies[i] = s->n_replicas;
    for (int r = 0; r < s->n_replicas; r++) {
        int *in = tti_plan_alloc(p, sizeof(int) * (size_t)(old->n_in + 1));
        if (in == NULL)
            return TT_ENOMEM;
        for (int k = 0; k < old->n_in; k++)
            in[k] = part_input(s, old->in[k], r);
        int id = add_copy(s, i, r, in, NULL);
        int v = id < 0 ? -1 : add_output(s, old, 0, id, in, NULL);
        if (v < 0)
            return tt_status_of(p->ctx);
        p->nodes[id].reason = "a part of the elements";
        int64_t count = old->n_in > 1 ? 1 : tti_max_abs_count(p->values[in[0]].count);
        tti_make_piece(p, v, 0, count);
        tti_set_data(p, v, TT_LAYOUT_SPLIT, TTI_DIM_FLAT, r);
        s->piece[(int64_t)old->out * s->n_replicas + r] = v;
    }
    return TT_OK;
}

// A variable that is only used in pieces exists once, a piece with every replica.
static tt_status sharded_variable(tti_spreader *s, int i)
{
    tti_plan *p = s->p;
    const tti_pnode *old = &s->nodes[i];
    s->first[i] = (int)p->n_nodes;
    s->n_copies[i] = s->n_replicas;
    for (int r = 0; r < s->n_replicas; r++) {
        int64_t begin, end;
        tti_piece_range(s->values[old->out].count, r, s->n_replicas, &begin, &end);
        int id = add_copy(s, i, r, old->in, NULL);
        int v = id < 0 ? -1 : add_output(s, old, 0, id, old->in, NULL);
        if (v < 0)
            return tt_status_of(p->ctx);
        p->nodes[id].n_pieces = s->n_replicas;
        p->nodes[id].piece = r;
        p->nodes[id].reason = "a part on each replica";
        tti_make_piece(p, v, begin, end);
        tti_set_data(p, v, TT_LAYOUT_SPLIT, TTI_DIM_FLAT, r);
        s->piece[(int64_t)old->out * s->n_replicas + r] = v;
    }
    return TT_OK;
}

// A target that computes nothing stands for its first input, which exists in pieces.
static tt_status nothing_node(tti_spreader *s, int i)
{
    const tti_pnode *old = &s->nodes[i];
    s->first[i] = (int)s->p->n_nodes;
    for (int r = 0; r < s->n_replicas; r++)
        s->piece[(int64_t)old->out * s->n_replicas + r] =
            s->piece[(int64_t)old->in[0] * s->n_replicas + r];
    return TT_OK;
}

static tt_status spread_node(tti_spreader *s, int i)
{
    switch (s->mode[i]) {
    case TTI_MODE_ROWS:
        return rows_node(s, i);
    case TTI_MODE_PIECES:
        return piece_node(s, i);
    case TTI_MODE_STATISTICS:
        return part_node(s, i);
    case TTI_MODE_ALIAS:
        return nothing_node(s, i);
    default:
        return s->is_sharded[i] ? sharded_variable(s, i) : every_node(s, i);
    }
}

// ---- the whole -------------------------------------------------------------------------------

static tt_status make_schedules(tti_spreader *s)
{
    tti_plan *p = s->p;
    const tti_mesh *m = s->mesh;
    int most = 0;
    for (int r = 0; r < s->n_replicas; r++)
        most = TTI_MAX(most, s->micros[r]);
    s->late = TTI_MAX(most - 1, 0);
    if (m->n_stages == 0)
        return TT_OK;
    s->schedules = tti_calloc(p->ctx, (size_t)s->n_replicas, sizeof(*s->schedules));
    if (s->schedules == NULL)
        return TT_ENOMEM;
    bool backward = false;
    for (int64_t i = 0; i < s->n_nodes; i++)
        backward |= s->mode[i] == TTI_MODE_ROWS && s->nodes[i].node->origin != NULL;
    size_t n_stages = (size_t)m->n_stages;
    double *forward = tti_plan_alloc(p, sizeof(*forward) * 2 * n_stages);
    if (forward == NULL)
        return TT_ENOMEM;
    double *back = forward + n_stages;
    tti_spread_costs(s, forward, back);
    for (int r = 0; r < s->n_replicas; r++) {
        tti_schedule_query q = {.kind = p->top->spread.schedule,
                                .n_devices = s->n_pipe,
                                .n_stages = m->n_stages,
                                .n_micro = s->micros[r],
                                .forward_only = !backward,
                                .forward = forward,
                                .backward = back};
        if (q.n_micro == 0)
            continue;
        TT_TRY(tti_schedule_make(p->ctx, &q, &s->schedules[r]));
        tti_schedule even;
        q.forward = q.backward = NULL;
        TT_TRY(tti_schedule_make(p->ctx, &q, &even));
        p->even_bubble = TTI_MAX(p->even_bubble, even.bubble);
        tti_schedule_free(p->ctx, &even);
        s->late = TTI_MAX(s->late, s->schedules[r].n);
        p->bubble = TTI_MAX(p->bubble, s->schedules[r].bubble);
    }
    return TT_OK;
}

static tt_status allocate(tti_spreader *s)
{
    tt_ctx *ctx = s->p->ctx;
    size_t n = (size_t)s->n_values + 1, nodes = (size_t)s->n_nodes + 1;
    s->mode = tti_calloc(ctx, nodes, 1);
    s->is_late = tti_calloc(ctx, nodes, 1);
    s->is_sharded = tti_calloc(ctx, nodes, 1);
    s->owner = tti_calloc(ctx, nodes, sizeof(int));
    s->tree_key = tti_calloc(ctx, n, sizeof(*s->tree_key));
    s->made_key = tti_calloc(ctx, n, sizeof(*s->made_key));
    s->urgent = tti_calloc(ctx, n, 1);
    s->in_pieces = tti_calloc(ctx, n, 1);
    s->is_sparse = tti_calloc(ctx, n, 1);
    s->stage = tti_calloc(ctx, nodes, sizeof(int));
    s->residual = tti_alloc(ctx, sizeof(int) * n);
    s->first = tti_calloc(ctx, nodes, sizeof(int));
    s->n_copies = tti_calloc(ctx, nodes, sizeof(int));
    s->copies = tti_alloc(ctx, sizeof(int) * n * (size_t)s->n_batches);
    s->whole = tti_alloc(ctx, sizeof(int) * n * (size_t)s->n_replicas);
    s->piece = tti_alloc(ctx, sizeof(int) * n * (size_t)s->n_replicas);
    if (s->mode == NULL || s->is_late == NULL || s->is_sharded == NULL || s->in_pieces == NULL ||
        s->owner == NULL || s->tree_key == NULL || s->residual == NULL || s->stage == NULL ||
        s->first == NULL || s->n_copies == NULL || s->copies == NULL || s->whole == NULL ||
        s->piece == NULL || s->is_sparse == NULL || s->made_key == NULL || s->urgent == NULL)
        return TT_ENOMEM;
    memset(s->residual, -1, sizeof(int) * n);
    memset(s->copies, -1, sizeof(int) * n * (size_t)s->n_batches);
    memset(s->whole, -1, sizeof(int) * n * (size_t)s->n_replicas);
    memset(s->piece, -1, sizeof(int) * n * (size_t)s->n_replicas);
    return TT_OK;
}

static tt_status spread_all(tti_spreader *s, const tti_plan_request *req)
{
    TT_TRY(allocate(s));
    tti_spread_modes(s);
    tti_spread_sparse_rows(s);
    TT_TRY(tti_spread_stages(s, req));
    TT_TRY(make_schedules(s));
    TT_TRY(tti_spread_hook_begin(s, req));
    s->p->values = NULL;
    s->p->nodes = NULL;
    s->p->n_values = s->p->n_nodes = s->p->cap_values = s->p->cap_nodes = 0;
    for (int64_t v = 0; v < s->n_values; v++) // needed where the sums are, before their turn
        if (s->residual[v] >= 0)
            TT_TRY(spread_node(s, s->values[s->residual[v]].node));
    for (int64_t i = 0; i < s->n_nodes; i++)
        if (s->n_copies[i] == 0)
            TT_TRY(spread_node(s, (int)i));
    TT_TRY(tti_spread_hook_end(s));
    return tti_spread_ends(s);
}

static void release(tti_spreader *s)
{
    for (int r = 0; s->schedules != NULL && r < s->n_replicas; r++)
        tti_schedule_free(s->p->ctx, &s->schedules[r]);
    void *blocks[] = {s->mode,     s->in_pieces, s->is_sharded, s->is_late,   s->stage,
                      s->copies,   s->whole,     s->piece,      s->first,     s->n_copies,
                      s->owner,    s->tree_key,  s->residual,   s->schedules, s->is_sparse,
                      s->made_key, s->urgent,    s->weight,     s->hooked};
    for (int i = 0; i < TTI_COUNT(blocks); i++)
        tti_free(s->p->ctx, blocks[i]);
}

tt_status tti_plan_stages(tti_plan *p, const tti_plan_request *req, int *stage)
{
    tti_spreader s = {.p = p,
                      .mesh = &p->mesh,
                      .n_replicas = tti_mesh_size(&p->mesh, TTI_AXIS_DATA),
                      .n_pipe = tti_mesh_size(&p->mesh, TTI_AXIS_PIPE),
                      .n_batches = 1};
    s.values = p->values;
    s.nodes = p->nodes;
    s.n_values = p->n_values;
    s.n_nodes = p->n_nodes;
    tt_status st = allocate(&s);
    if (st == TT_OK) {
        tti_spread_modes(&s);
        st = tti_spread_stages(&s, req);
    }
    if (st == TT_OK)
        memcpy(stage, s.stage, sizeof(int) * (size_t)p->n_nodes);
    release(&s);
    return st;
}

tt_status tti_plan_spread(tti_plan *p, const tti_plan_request *req)
{
    const tti_mesh *m = &p->mesh;
    int micro = m->n_stages > 0 ? m->n_micro : 1, replicas = tti_mesh_size(m, TTI_AXIS_DATA);
    if (micro != 0)
        micro = TTI_MAX(micro, req->micro);
    if (replicas < 2 && micro == 1 && m->n_stages == 0)
        return TT_OK; // nothing to spread: nodes are placed one by one
    tti_spreader s = {.p = p,
                      .mesh = m,
                      .n_replicas = replicas,
                      .n_pipe = tti_mesh_size(m, TTI_AXIS_PIPE),
                      .no_pieces = req->no_pieces};
    TT_TRY(tti_spread_batches(&s, micro));
    if (s.n_batches == 0)
        return TT_OK; // nothing is split
    s.values = p->values;
    s.nodes = p->nodes;
    s.n_values = p->n_values;
    s.n_nodes = p->n_nodes;
    tt_status st = spread_all(&s, req);
    if (p->nodes != s.nodes) {
        tti_free(p->ctx, s.values);
        tti_free(p->ctx, s.nodes);
    }
    p->is_on_mesh = m->n_axes > 0;
    release(&s);
    return st;
}
