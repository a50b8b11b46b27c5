/*
 * lifetimes.c - lifetimes in the global order; arena_offsets.c then gives every value its place.
 *
 * A root lives from the node that makes it to the last that reads it or a view of it. An output
 * takes over the memory of an input that dies there when the op allows it.
 */
#include "op/op.h"
#include "plan/plan.h"
#include <string.h>

// Small values that another device reads keep their memory to the end: whoever took it next would
// have to wait for that device, again and again where there are many.
#define SENT_BYTES 4096
#define KEY_BLOCK  256 // positions

// ---- lifetimes -------------------------------------------------------------------------------

// The scratch of a node in a run is its own from the run's first node to its last.
static tt_status scratch_lifetimes(tti_plan *p, const int *scratch, const int *run)
{
    // By device: the run that is being walked.
    int *lead = tti_alloc(p->ctx, sizeof(int) * 2 * (size_t)p->top->n_devices);
    if (lead == NULL)
        return TT_ENOMEM;
    int *end = lead + p->top->n_devices;
    for (int d = 0; d < p->top->n_devices; d++)
        lead[d] = -1;
    for (int pos = p->n_order - 1; pos >= 0; pos--) {
        int i = p->order[pos], d = p->nodes[i].device;
        if (run[i] >= 0 && run[i] != lead[d]) {
            lead[d] = run[i];
            end[d] = pos;
        }
        if (scratch[i] < 0)
            continue;
        tti_value *s = &p->values[scratch[i]];
        s->first = run[i] >= 0 ? p->nodes[run[i]].position : pos;
        s->last = run[i] >= 0 ? end[d] : pos;
    }
    tti_free(p->ctx, lead);
    return TT_OK;
}

static void lifetimes(tti_plan *p)
{
    for (int64_t i = 0; i < p->n_values; i++)
        p->values[i].first = p->values[i].last = -1;
    for (int pos = 0; pos < p->n_order; pos++) {
        const tti_pnode *pn = &p->nodes[p->order[pos]];
        for (int k = 0; k < pn->n_in; k++)
            if (tti_reads(pn, k))
                p->values[tti_root(p, pn->in[k])].last = pos;
        for (int k = 0; k < pn->n_out; k++) {
            tti_value *root = &p->values[tti_root(p, pn->out + k)];
            root->first = root->first < 0 ? pos : root->first;
            root->last = TTI_MAX(root->last, pos);
        }
    }
    for (int64_t u = 0; u < p->n_collectives; u++) { // nobody waits for what nobody reads
        for (int k = 0; k < p->collectives[u].n; k++) {
            const tti_pnode *pn = &p->nodes[p->collectives[u].first + k];
            tti_value *root = &p->values[tti_root(p, pn->out)];
            if (!pn->is_dropped && root->last == pn->position)
                root->last = p->n_order;
        }
    }
    for (int i = 0; i < p->n_feeds; i++) { // copied before all else where there are streams
        tti_value *root = &p->values[tti_root(p, p->feeds[i])];
        if (root->first >= 0 && tti_has_streams(p->top->devices[root->device]))
            root->first = 0;
    }
    for (int64_t i = 0; i < p->n_values; i++) {
        tti_value *v = &p->values[i];
        bool lasts = v->keep || (v->is_sent && v->bytes <= SENT_BYTES);
        if (lasts && v->first >= 0)
            v->last = p->n_order;
    }
}

/*
 * In a pipeline what one stage sends is read when the other gets round to it, which may be late.
 * Its memory is left alone for two rounds of slots, so that the sender need not wait to go on.
 */
static tt_status extend_lifetimes(tti_plan *p)
{
    if (p->mesh.n_stages == 0)
        return TT_OK;
    // The latest key of every so many positions: whole blocks of earlier ones are passed at once.
    tti_order_key *latest =
        tti_calloc(p->ctx, (size_t)(p->n_order / KEY_BLOCK) + 1, sizeof(*latest));
    if (latest == NULL)
        return TT_ENOMEM;
    for (int pos = 0; pos < p->n_order; pos++) {
        tti_order_key key = p->nodes[p->order[pos]].key, *most = &latest[pos / KEY_BLOCK];
        *most = pos % KEY_BLOCK == 0 ? key : tti_key_later(*most, key);
    }
    for (int64_t i = 0; i < p->n_values; i++) {
        tti_value *v = &p->values[i];
        if (!v->is_sent || v->first < 0 || v->last >= p->n_order)
            continue;
        tti_order_key until = tti_key_slots(p->nodes[p->order[v->last]].key,
                                            2 * tti_mesh_size(&p->mesh, TTI_AXIS_PIPE));
        int next = v->last + 1;
        while (next < p->n_order && tti_key_before(p->nodes[p->order[next]].key, until)) {
            next++;
            while (next % KEY_BLOCK == 0 && next + KEY_BLOCK <= p->n_order &&
                   tti_key_before(latest[next / KEY_BLOCK], until))
                next += KEY_BLOCK;
        }
        v->last = next - 1;
    }
    tti_free(p->ctx, latest);
    return TT_OK;
}

// Is output o of a chain the first of a member?
static bool is_main(const tti_chain *c, int o)
{
    bool is = false;
    for (int m = 0; m < c->n; m++)
        is |= c->members[m].out == o;
    return is;
}

// Does a member of a chain that reads input k let its output take it over?
static bool is_given(const tti_chain *c, int k)
{
    bool is = false;
    for (int m = 0; m < c->n; m++)
        for (int i = 0; i < c->members[m].n_in; i++)
            is |= c->members[m].in[i] == k && (c->members[m].node->op->in_place >> i & 1u) != 0;
    return is;
}

// May output o of this node take the memory of input k?
static bool can_reuse(const tti_plan *p, const tti_pnode *pn, int o, int k, int pos)
{
    const tti_value *out = &p->values[pn->out + o], *as = &p->values[pn->in[k]];
    int root = tti_root(p, pn->in[k]);
    const tti_value *in = &p->values[root];
    if (in->memory != TTI_ARENA || in->last != pos || in->keep || in->is_sent ||
        in->bytes != out->bytes || in->device != out->device || out->bytes == 0)
        return false;
    if (pn->kind == TTI_FUSED)
        return tt_dtype_bytes(as->dtype) == tt_dtype_bytes(out->dtype) && as->count == out->count;
    bool one_look = true; // of all inputs only this one is in that memory
    for (int i = 0; i < pn->n_in; i++)
        one_look &= i == k || tti_root(p, pn->in[i]) != root;
    if (pn->kind == TTI_CHAINED)
        return one_look && is_main(pn->chain, o) && is_given(pn->chain, k) &&
               as->dtype == out->dtype && tti_shape_equal(&as->shape, &out->shape);
    if (pn->kind != TTI_OP || o > 0 || (pn->node->op->in_place >> k & 1u) == 0 ||
        (tti_needs_widening(pn->node) && !tti_has_streams(p->top->devices[pn->device])))
        return false;
    return one_look || (pn->node->op->flags & TT_OP_POINTWISE) != 0;
}

static void take_over(tti_plan *p, const tti_pnode *pn, int o, int pos)
{
    if (tti_root(p, pn->out + o) != pn->out + o || p->values[pn->out + o].memory != TTI_ARENA)
        return;
    for (int k = 0; k < TTI_MIN(pn->n_in, 32); k++) {
        if (!can_reuse(p, pn, o, k, pos))
            continue;
        tti_value *out = &p->values[pn->out + o], *root = &p->values[tti_root(p, pn->in[k])];
        // An output that nobody reads ends here too; another must not take the same memory.
        root->last = TTI_MAX(out->last, pos + (pn->kind == TTI_CHAINED));
        root->keep |= out->keep;
        root->is_sent |= out->is_sent;
        out->root = tti_root(p, pn->in[k]);
        out->first = -1;
        return;
    }
}

static void reuse_in_place(tti_plan *p)
{
    for (int pos = 0; pos < p->n_order; pos++) {
        const tti_pnode *pn = &p->nodes[p->order[pos]];
        for (int o = 0; o < (pn->kind == TTI_CHAINED ? pn->n_out : TTI_MIN(pn->n_out, 1)); o++)
            take_over(p, pn, o, pos);
    }
}

// ---- arenas ----------------------------------------------------------------------------------

// What processes that share memory read of each other's lies apart from all else.
static void mark_near(tti_plan *p)
{
    for (int i = 0; i < p->n_order && p->top->n_tasks > 1; i++) {
        const tti_pnode *pn = &p->nodes[p->order[i]];
        for (int k = 0; k < pn->n_in; k++) {
            tti_value *root = &p->values[tti_root(p, pn->in[k])];
            root->is_mapped |=
                root->memory == TTI_ARENA && tti_reads(pn, k) &&
                p->top->devices[root->device]->task != p->top->devices[pn->device]->task;
        }
    }
}

// Lists the values of every arena.
static tt_status index_arenas(tti_plan *p)
{
    int n_arenas = 2 * p->top->n_devices;
    int *values = tti_plan_alloc(p, sizeof(int) * (size_t)(p->n_values + 1));
    int *start = tti_plan_alloc(p, sizeof(int) * (size_t)(n_arenas + 2));
    if (values == NULL || start == NULL)
        return TT_ENOMEM;
    for (int pass = 0; pass < 2; pass++) { // counted, then put down
        for (int64_t i = 0; i < p->n_values; i++) {
            const tti_value *v = &p->values[i];
            if (v->first < 0 || v->memory != TTI_ARENA)
                continue;
            int arena = 2 * v->device + v->is_mapped;
            if (pass == 0)
                start[arena + 2]++;
            else
                values[start[arena + 1]++] = (int)i;
        }
        for (int a = 0; a < n_arenas && pass == 0; a++)
            start[a + 2] += start[a + 1];
    }
    p->arena_values = values;
    p->arena_start = start;
    return TT_OK;
}

tt_status tti_plan_memory(tti_plan *p, const int *scratch, const int *run)
{
    lifetimes(p);
    TT_TRY(scratch_lifetimes(p, scratch, run));
    TT_TRY(extend_lifetimes(p));
    reuse_in_place(p);
    mark_near(p);
    TT_TRY(index_arenas(p));
    TT_TRY(tti_plan_offsets(p));
    return tti_plan_usage(p, scratch);
}
