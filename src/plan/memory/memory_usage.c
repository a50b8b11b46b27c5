/*
 * memory_usage.c - what a device's memory is for: weights, gradients, optimizer, activations,
 * workspace.
 *
 * Variables are weights unless only updates read them, as they do an optimizer's state. The arena
 * is looked at where most of it is alive: gradients of weights (no row's), copies of variables,
 * scratch, and the rest, which are activations and their gradients. What the arena has beyond the
 * bytes alive there (gaps) is workspace, so the figures add up to the total.
 */
#include "plan/memory/arena_gaps.h"
#include "plan/plan.h"

// An update of a variable by others alone, and single numbers: a moving average, which is state.
static bool follows_variables(const tti_plan *p, const tti_pnode *pn)
{
    int others = 0;
    for (int k = 1; k < pn->n_in; k++) {
        const tti_value *v = &p->values[tti_root(p, pn->in[k])];
        others += v->memory == TTI_VARIABLE;
        if (v->memory != TTI_VARIABLE && v->count != 1)
            return false;
    }
    return others > 0;
}

// By root: variables that something else than an update reads, or that come first in an update.
static void mark_weights(const tti_plan *p, uint8_t *is_weight)
{
    for (int64_t i = 0; i < p->n_nodes; i++) {
        const tti_pnode *pn = &p->nodes[i];
        bool update = pn->kind == TTI_OP && (pn->node->op->flags & TT_OP_UPDATE) != 0;
        for (int k = 0; k < pn->n_in && !pn->is_dropped; k++)
            if (!update || (k == 0 && !follows_variables(p, pn)))
                is_weight[tti_root(p, pn->in[k])] = 1;
    }
}

static void add_variables(tti_plan *p, const uint8_t *is_weight)
{
    for (int64_t i = 0; i < p->n_nodes; i++) {
        const tti_pnode *pn = &p->nodes[i];
        if (pn->is_dropped || pn->kind != TTI_OP || pn->node->op != &tti_op_variable)
            continue;
        tti_device_plan *d = &p->devices[pn->device];
        size_t bytes = p->values[pn->out].bytes;
        d->variable_bytes += bytes;
        *(is_weight[pn->out] ? &d->usage.weights : &d->usage.optimizer) += bytes;
    }
}

static size_t *part_of(tti_plan *p, tti_usage *u, int value, bool scratch)
{
    const tt_tensor *t = p->values[value].tensor;
    if (scratch)
        return &u->workspace;
    if (t->node->op == &tti_op_variable)
        return &u->weights; // a copy on this device
    bool rows = t->layout.kind == TT_LAYOUT_SPLIT;
    return t->node->origin != NULL && !rows ? &u->gradients : &u->activations;
}

static void add_arena(tti_plan *p, const int *scratch, int peak, int device)
{
    tti_device_plan *d = &p->devices[device];
    size_t held = 0;
    for (int k = p->arena_start[2 * device]; k < p->arena_start[2 * device + 2]; k++) {
        int i = p->arena_values[k];
        const tti_value *v = &p->values[i];
        if (v->first > peak || v->last < peak)
            continue;
        *part_of(p, &d->usage, i, scratch[v->node] == i) += v->bytes;
        held += v->bytes;
    }
    d->usage.workspace += d->arena_bytes - held;
}

// The position at which most bytes of a device's arenas are alive.
static int find_peak(const tti_plan *p, int device, tti_arena_block *blocks)
{
    int n = 0, peak;
    for (int k = p->arena_start[2 * device]; k < p->arena_start[2 * device + 2]; k++) {
        const tti_value *v = &p->values[p->arena_values[k]];
        if (v->bytes > 0)
            blocks[n++] = (tti_arena_block){.first = v->first, .last = v->last, .bytes = v->bytes};
    }
    (void)tti_most_alive(blocks, blocks + n, n, &peak);
    return peak;
}

tt_status tti_plan_usage(tti_plan *p, const int *scratch)
{
    uint8_t *is_weight = tti_calloc(p->ctx, (size_t)p->n_values + 1, 1);
    int most = 1;
    for (int d = 0; d < p->top->n_devices; d++)
        most = TTI_MAX(most, p->arena_start[2 * d + 2] - p->arena_start[2 * d]);
    tti_arena_block *blocks = tti_alloc(p->ctx, sizeof(*blocks) * 2 * (size_t)most);
    tt_status st = is_weight == NULL || blocks == NULL ? TT_ENOMEM : TT_OK;
    if (st == TT_OK) {
        mark_weights(p, is_weight);
        add_variables(p, is_weight);
    }
    for (int d = 0; st == TT_OK && d < p->top->n_devices; d++)
        if (p->devices[d].arena_bytes > 0)
            add_arena(p, scratch, find_peak(p, d, blocks), d);
    tti_free(p->ctx, is_weight);
    tti_free(p->ctx, blocks);
    return st;
}
