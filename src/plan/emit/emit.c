/*
 * emit.c - the last stage: entries with fixed addresses, waits and signals.
 *
 * First every node's calls are drafted, which tells their scratch; then memory is planned; then
 * addresses, lists and waits are written.
 */
#include "plan/emit/draft.h"
#include "plan/spread/spread.h"
#include "plan/stages.h"
#include <string.h>

typedef tti_draft draft;
typedef tti_emitter emitter;

// ---- addresses -------------------------------------------------------------------------------

static tt_status patch(tti_plan *p, void *at, int arena, size_t offset)
{
    if (!tti_grow(p->ctx, &p->exe.patches, &p->exe.cap_patches, p->exe.n_patches + 1,
                  sizeof(*p->exe.patches)))
        return TT_ENOMEM;
    p->exe.patches[p->exe.n_patches++] = (tti_patch){at, arena, offset};
    return TT_OK;
}

// A constant as a device with streams sees it: in its own memory, put there once.
static tt_status constant_on(tti_plan *p, int value, int device, void **out)
{
    for (int64_t i = 0; i < p->exe.n_constants; i++) {
        *out = p->exe.constants[i].data;
        if (p->exe.constants[i].value == value && p->exe.constants[i].device == device)
            return TT_OK;
    }
    tti_device *d = p->top->devices[device];
    const tti_value *v = &p->values[value];
    size_t bytes = TTI_MAX(v->bytes, (size_t)1);
    if (!tti_grow(p->ctx, &p->exe.constants, &p->exe.cap_constants, p->exe.n_constants + 1,
                  sizeof(*p->exe.constants)))
        return TT_ENOMEM;
    TT_TRY(tti_device_alloc_fixed(d, bytes, out));
    p->exe.constants[p->exe.n_constants++] = (tti_constant){value, device, bytes, *out};
    return tti_device_copy(d, *out, NULL, v->fixed, v->bytes);
}

// The address of a value as the device that has the argument sees it.
static tt_status address(tti_plan *p, int device, const tt_arg *arg, int value)
{
    tt_arg *a = (tt_arg *)arg;
    int at = tti_root(p, value);
    const tti_value *root = &p->values[at];
    size_t skip = p->values[value].skip;
    if (root->memory == TTI_ARENA)
        return patch(p, &a->data, tti_arena_of(p, root), root->offset + skip);
    const tti_device *dev = p->top->devices[device];
    char *staged = p->exe.staging[root->device].data;
    void *fixed = root->fixed;
    if (root->memory == TTI_STAGED)
        fixed = staged == NULL ? NULL : staged + root->offset;
    if (root->memory == TTI_CONSTANT && tti_has_streams(dev) && !dev->is_away && !p->is_dry_run)
        TT_TRY(constant_on(p, at, device, &fixed));
    a->data = fixed == NULL ? NULL : (char *)fixed + skip; // of a process far away it has none
    return TT_OK;
}

static tt_status address_wide(emitter *e, int pnode, size_t base)
{
    tti_plan *p = e->p;
    const tti_pnode *pn = &p->nodes[pnode];
    draft *d = &e->drafts[pnode];
    int n_in = pn->node->n_in, widen = 0, main = 0;
    for (int i = 0; i < n_in; i++)
        main += d->wide_at[i] != SIZE_MAX;
    int round = main + 1; // calls: widen the inputs, the kernel, round the outputs
    for (int i = 0; i < n_in + pn->node->n_out; i++) {
        int value = i < n_in ? pn->in[i] : pn->out + i - n_in;
        const tt_arg *arg = &d->calls[main].launch.in[i];
        if (d->wide_at[i] == SIZE_MAX) {
            TT_TRY(address(p, pn->device, arg, value));
            continue;
        }
        size_t at = base + d->wide_at[i];
        const tt_launch *cast = &d->calls[i < n_in ? widen++ : round++].launch;
        const tt_arg *narrow = i < n_in ? cast->in : cast->out;
        const tt_arg *wide = i < n_in ? cast->out : cast->in;
        TT_TRY(patch(p, &((tt_arg *)arg)->data, pn->device, at));
        TT_TRY(patch(p, &((tt_arg *)wide)->data, pn->device, at));
        TT_TRY(address(p, pn->device, narrow, value));
    }
    return TT_OK;
}

static tt_status address_entry(emitter *e, int pnode)
{
    tti_plan *p = e->p;
    const tti_pnode *pn = &p->nodes[pnode];
    draft *d = &e->drafts[pnode];
    size_t base = e->scratch[pnode] >= 0 ? p->values[e->scratch[pnode]].offset : 0;
    if (d->wide_at != NULL && d->n_calls > 1) {
        TT_TRY(address_wide(e, pnode, base));
    } else {
        const tt_launch *l = &d->calls[0].launch;
        bool feed = pn->kind == TTI_OP && pn->node->op == &tti_op_feed;
        for (int i = 0; i < l->n_in && !feed; i++)
            if (tti_reads(pn, i))
                TT_TRY(address(p, pn->device, &l->in[i], pn->in[i]));
        for (int i = 0; i < l->n_out; i++)
            TT_TRY(address(p, pn->device, &l->out[i], pn->out + i));
    }
    for (int i = 0; i < d->n_calls; i++) {
        tt_launch *l = &d->calls[i].launch;
        if (pn->kind != TTI_OP && pn->kind != TTI_FUSED && pn->kind != TTI_CHAINED)
            continue;
        if (e->scratch[pnode] >= 0 && d->scratch_at[i] != SIZE_MAX)
            TT_TRY(patch(p, &l->scratch, pn->device, base + d->scratch_at[i]));
        if (e->scratch[pnode] >= 0 && d->local_at[i] != SIZE_MAX && d->calls[i].local_bytes > 0)
            TT_TRY(patch(p, &l->local, pn->device, base + d->local_at[i]));
    }
    return TT_OK;
}

// ---- lists -----------------------------------------------------------------------------------

// The flag that plan node i sets when done; made when first asked for.
static tti_flag *flag_of(emitter *e, int i)
{
    if (e->flag[i] == NULL)
        e->flag[i] = tti_plan_alloc(e->p, sizeof(tti_flag)); // a cache line of its own
    return e->flag[i];
}

// Room for every device's entries.
static tt_status open_lists(emitter *e)
{
    tti_plan *p = e->p;
    for (int pos = 0; pos < p->n_order; pos++)
        p->exe.lists[p->nodes[p->order[pos]].device].n_entries +=
            e->drafts[p->order[pos]].has_entry;
    for (int d = 0; d < p->top->n_devices; d++) {
        tti_entry_list *list = &p->exe.lists[d];
        list->entries = tti_plan_alloc(p, sizeof(tti_entry) * (size_t)(list->n_entries + 1));
        if (list->entries == NULL)
            return TT_ENOMEM;
        list->n_entries = 0;
    }
    return TT_OK;
}

static bool writes_variable(const tti_plan *p, const tti_pnode *pn)
{
    for (int k = 0; k < pn->n_in; k++)
        if (tti_writes_input(p, pn, k) && p->values[tti_root(p, pn->in[k])].memory == TTI_VARIABLE)
            return true;
    return false;
}

static tti_entry *entry_of(const emitter *e, int pnode)
{
    return &e->p->exe.lists[e->p->nodes[pnode].device].entries[e->entry[pnode]];
}

// Entries in the order, with their addresses.
static tt_status fill_lists(emitter *e)
{
    tti_plan *p = e->p;
    for (int pos = 0; pos < p->n_order; pos++) {
        int i = p->order[pos];
        draft *d = &e->drafts[i];
        if (!d->has_entry)
            continue;
        e->entry[i] = p->exe.lists[p->nodes[i].device].n_entries++;
        *entry_of(e, i) = (tti_entry){.pnode = i,
                                      .n_calls = d->n_calls,
                                      .is_communication = tti_is_communication(&p->nodes[i]),
                                      .writes_variable = writes_variable(p, &p->nodes[i]),
                                      .is_feed = p->nodes[i].kind == TTI_OP &&
                                                 p->nodes[i].node->op == &tti_op_feed,
                                      .calls = d->calls};
        if (d->n_calls > 0)
            TT_TRY(address_entry(e, i));
    }
    return TT_OK;
}

// An entry's waits, each once: from[k] are plan nodes. seen: by plan node, the last that waited for
// it, + 1.
static tt_status add_waits(emitter *e, int to, const int *from, int n, int *seen)
{
    tti_plan *p = e->p;
    tti_entry *en = entry_of(e, to);
    bool streams = tti_has_streams(p->top->devices[p->nodes[to].device]);
    en->waits = tti_plan_alloc(p, sizeof(tti_wait) * (size_t)(n + 1));
    if (en->waits == NULL)
        return TT_ENOMEM;
    for (int k = 0; k < n; k++) {
        const tti_pnode *maker = &p->nodes[from[k]];
        tti_entry *made = entry_of(e, from[k]);
        made->has_event |= streams && maker->device != p->nodes[to].device;
        made->has_flag |= !streams;
        if (seen[from[k]] == to + 1)
            continue;
        seen[from[k]] = to + 1;
        tti_flag *flag = flag_of(e, from[k]);
        if (flag == NULL)
            return TT_ENOMEM;
        en->waits[en->n_waits++] =
            (tti_wait){flag, maker->device, e->entry[from[k]], maker->node, e->wanted[from[k]]};
    }
    return TT_OK;
}

// The waits of all entries, in the order in which they were collected.
static tt_status fill_waits(emitter *e, const tti_wait_list *w)
{
    tti_plan *p = e->p;
    size_t n = (size_t)p->n_nodes;
    int *start = tti_calloc(p->ctx, n + 2, sizeof(int)), *seen = tti_calloc(p->ctx, n, sizeof(int));
    int *from = tti_alloc(p->ctx, sizeof(int) * (size_t)(w->n + 1));
    tt_status st = start == NULL || seen == NULL || from == NULL ? TT_ENOMEM : TT_OK;
    for (int64_t i = 0; st == TT_OK && i < w->n; i++)
        start[w->to[i] + 2]++;
    for (size_t i = 0; st == TT_OK && i < n; i++)
        start[i + 2] += start[i + 1];
    for (int64_t i = 0; st == TT_OK && i < w->n; i++)
        from[start[w->to[i] + 1]++] = w->from[i];
    for (int pos = 0; st == TT_OK && pos < p->n_order; pos++) {
        int i = p->order[pos];
        if (e->drafts[i].has_entry)
            st = add_waits(e, i, from + start[i], start[i + 1] - start[i], seen);
    }
    tti_free(p->ctx, start);
    tti_free(p->ctx, seen);
    tti_free(p->ctx, from);
    return st;
}

static tt_status make_lists(emitter *e, const tti_wait_list *w)
{
    tti_plan *p = e->p;
    TT_TRY(open_lists(e));
    TT_TRY(fill_lists(e));
    TT_TRY(fill_waits(e, w));
    for (int64_t i = 0; i < p->n_nodes; i++)
        if (e->flag[i] != NULL)
            entry_of(e, (int)i)->done = e->flag[i];
    p->exe.feed_calls = tti_plan_alloc(p, sizeof(*p->exe.feed_calls) * (size_t)(p->n_feeds + 1));
    if (p->exe.feed_calls == NULL)
        return TT_ENOMEM;
    for (int i = 0; i < p->n_feeds; i++)
        p->exe.feed_calls[i] = e->drafts[p->values[p->feeds[i]].node].calls;
    return TT_OK;
}

// Marks what other processes wait for, and agrees with them.
static tt_status agree(emitter *e, const tti_wait_list *w)
{
    tti_plan *p = e->p;
    if (p->top->n_tasks < 2 || e->req->dry_run)
        return TT_OK;
    for (int64_t i = 0; i < w->n; i++) {
        int from = p->nodes[w->from[i]].device, to = p->nodes[w->to[i]].device;
        e->wanted[w->from[i]] |= p->top->devices[from]->task != p->top->devices[to]->task;
    }
    return tti_plan_agree(p, e->wanted, e->flag);
}

// All flags of this process in one array, so that a failing run can raise every one.
static tt_status list_flags(emitter *e)
{
    tti_plan *p = e->p;
    p->exe.flags = tti_plan_alloc(p, sizeof(*p->exe.flags) * (size_t)(p->n_nodes + 1));
    if (p->exe.flags == NULL)
        return TT_ENOMEM;
    for (int64_t i = 0; i < p->n_nodes; i++)
        if (e->flag[i] != NULL && !e->wanted[i])
            p->exe.flags[p->exe.n_flags++] = e->flag[i];
    return TT_OK;
}

static tt_status list_submissions(emitter *e)
{
    tti_plan *p = e->p;
    p->exe.submissions = tti_plan_alloc(p, sizeof(*p->exe.submissions) * (size_t)(p->n_order + 1));
    if (p->exe.submissions == NULL)
        return TT_ENOMEM;
    for (int pos = 0; pos < p->n_order; pos++) {
        int i = p->order[pos], device = p->nodes[i].device;
        const tti_device *d = p->top->devices[device];
        if (e->entry[i] >= 0 && tti_has_streams(d) && !d->is_away)
            p->exe.submissions[p->exe.n_submissions++] =
                (struct tti_submission){device, e->entry[i]};
    }
    return TT_OK;
}

tti_want tti_plan_want(const tti_plan *p, const tti_pnode *pn)
{
    const tti_value *v = &p->values[pn->out];
    tti_want w = {.var = pn->node,
                  .dev = p->top->devices[pn->device],
                  .is_piece = pn->n_pieces > 0,
                  .bytes = v->bytes};
    int64_t begin = 0, end;
    if (w.is_piece)
        tti_piece_range(tt_shape_count(&v->tensor->shape), pn->piece, pn->n_pieces, &begin, &end);
    w.begin = (size_t)begin * tt_dtype_bytes(v->dtype);
    return w;
}

static bool is_variable(const tti_pnode *pn)
{
    return !pn->is_dropped && pn->kind == TTI_OP && pn->node->op == &tti_op_variable;
}

// All variables at once, in a job with the other processes.
static tt_status find_together(emitter *e)
{
    tti_plan *p = e->p;
    int n = 0, at = 0;
    for (int64_t i = 0; i < p->n_nodes; i++)
        n += is_variable(&p->nodes[i]);
    tti_want *wants = tti_calloc(p->ctx, (size_t)n + 1, sizeof(*wants));
    void **addresses = tti_calloc(p->ctx, (size_t)n + 1, sizeof(*addresses));
    tt_status st = wants == NULL || addresses == NULL ? TT_ENOMEM : TT_OK;
    for (int64_t i = 0; st == TT_OK && i < p->n_nodes; i++)
        if (is_variable(&p->nodes[i]))
            wants[at++] = tti_plan_want(p, &p->nodes[i]);
    if (st == TT_OK)
        st = e->req->variables(e->req->user, wants, n, addresses);
    at = 0;
    for (int64_t i = 0; st == TT_OK && i < p->n_nodes; i++)
        if (is_variable(&p->nodes[i]))
            p->values[p->nodes[i].out].fixed = addresses[at++];
    tti_free(p->ctx, wants);
    tti_free(p->ctx, addresses);
    return st;
}

static tt_status find_variables(emitter *e)
{
    tti_plan *p = e->p;
    size_t *fresh = tti_plan_alloc(p, sizeof(*fresh) * (size_t)p->top->n_devices);
    if (fresh == NULL)
        return TT_ENOMEM;
    for (int64_t i = 0; i < p->n_nodes; i++) {
        const tti_pnode *pn = &p->nodes[i];
        if (pn->is_dropped || pn->kind != TTI_OP || pn->node->op != &tti_op_variable)
            continue;
        tti_want w = tti_plan_want(p, pn);
        fresh[pn->device] +=
            e->req->variable_needs == NULL ? w.bytes : e->req->variable_needs(e->req->user, &w);
    }
    TT_TRY(tti_plan_check_limits(p, fresh));
    return e->req->variables != NULL && !e->req->dry_run ? find_together(e) : TT_OK;
}

/*
 * Entries that follow each other on a device with streams and whose calls may be made at once
 * (run/submit.c): they do not share scratch.
 */
static tt_status find_runs(emitter *e)
{
    tti_plan *p = e->p;
    int *last = tti_alloc(p->ctx, sizeof(int) * (size_t)p->top->n_devices);
    if (last == NULL) // by device: the entry before
        return TT_ENOMEM;
    for (int d = 0; d < p->top->n_devices; d++)
        last[d] = -1;
    for (int64_t i = 0; i < p->n_nodes; i++)
        e->run[i] = -1;
    for (int pos = 0; pos < p->n_order; pos++) {
        int i = p->order[pos], before = last[p->nodes[i].device];
        const tti_call *c = e->drafts[i].calls;
        if (!e->drafts[i].has_entry)
            continue;
        last[p->nodes[i].device] = i;
        if (e->drafts[i].n_calls != 1 || c->batched == NULL)
            continue;
        bool alike = before >= 0 && e->run[before] >= 0 && e->drafts[before].calls->fn == c->fn;
        e->run[i] = alike ? e->run[before] : i;
    }
    tti_free(p->ctx, last);
    return TT_OK;
}

static tt_status emit(emitter *e, tti_wait_list *w)
{
    tti_plan *p = e->p;
    tti_plan_staging(p);
    if (!e->req->is_trial && !e->req->dry_run)
        TT_TRY(tti_plan_staging_alloc(p));
    for (int64_t i = 0; i < p->n_nodes; i++) {
        e->scratch[i] = e->entry[i] = -1;
        if (!p->nodes[i].is_dropped)
            TT_TRY(tti_draft_node(e, (int)i));
        if (e->drafts[i].scratch_bytes > 0) {
            tti_value v = {.tensor = p->values[p->nodes[i].out].tensor,
                           .shape = {1, {(int64_t)e->drafts[i].scratch_bytes}},
                           .count = (int64_t)e->drafts[i].scratch_bytes,
                           .bytes = e->drafts[i].scratch_bytes,
                           .node = (int)i,
                           .root = -1,
                           .device = p->nodes[i].device};
            e->scratch[i] = tti_plan_value(p, v);
            if (e->scratch[i] < 0)
                return TT_ENOMEM;
        }
    }
    TT_TRY(find_runs(e));
    TT_TRY(tti_plan_memory(p, e->scratch, e->run));
    TT_TRY(tti_plan_fixed(p));
    TT_TRY(tti_stage_done(p, e->req, TTI_STAGE_MEMORY));
    if (e->req->is_trial)
        return TT_OK;
    TT_TRY(find_variables(e));
    if (!e->req->dry_run)
        TT_TRY(tti_plan_communicators(p));
    TT_TRY(tti_collect_waits(w));
    TT_TRY(agree(e, w));
    TT_TRY(make_lists(e, w));
    TT_TRY(tti_plan_groups(p, e->entry));
    tti_plan_collective_waits(p);
    TT_TRY(list_submissions(e));
    if (!e->req->dry_run)
        TT_TRY(tti_plan_message_alloc(p));
    return list_flags(e);
}

tt_status tti_plan_emit(tti_plan *p, const tti_plan_request *req)
{
    emitter e = {.p = p, .req = req};
    tti_wait_list w = {.e = &e};
    size_t n = (size_t)p->n_nodes + 1;
    e.drafts = tti_calloc(p->ctx, n, sizeof(*e.drafts));
    e.scratch = tti_calloc(p->ctx, n, sizeof(int));
    e.run = tti_calloc(p->ctx, n, sizeof(int));
    e.entry = tti_calloc(p->ctx, n, sizeof(int));
    e.flag = tti_calloc(p->ctx, n, sizeof(*e.flag));
    e.wanted = tti_calloc(p->ctx, n, 1);
    tt_status st = TT_ENOMEM;
    if (e.drafts != NULL && e.scratch != NULL && e.run != NULL && e.entry != NULL &&
        e.flag != NULL && e.wanted != NULL)
        st = emit(&e, &w);
    tti_free(p->ctx, e.drafts);
    tti_free(p->ctx, e.scratch);
    tti_free(p->ctx, e.run);
    tti_free(p->ctx, e.entry);
    tti_free(p->ctx, e.flag);
    tti_free(p->ctx, e.wanted);
    tti_free(p->ctx, w.from);
    tti_free(p->ctx, w.to);
    return st;
}
