/*
 * modes.c - decides who computes each node of a mesh: every micro-batch, every replica, one
 * replica, or each replica a piece of the elements.
 *
 * Large sums over rows, and elementwise results of them, are computed in pieces. For small ones it
 * is cheaper if every replica computes the whole. The tree sums of a bucket of gradients are
 * scheduled after the next bucket has been computed, so that replicas seldom wait for a slower one.
 */
#include "op/square_sum.h"
#include "plan/spread/spread.h"

#define WORTH_BYTES 16384 // size of a sum below which pieces cost more than they save

static bool has_split(const tti_spreader *s, const tti_pnode *pn)
{
    for (int i = 0; i < pn->n_in; i++)
        if (tti_is_split(&s->values[pn->in[i]]))
            return true;
    for (int i = 0; i < pn->n_out; i++)
        if (tti_is_split(&s->values[pn->out + i]))
            return true;
    return false;
}

// Whether a replica can compute a range of this node's elements without the others.
static bool is_flat(const tti_spreader *s, const tti_pnode *pn)
{
    unsigned flags = pn->node->op->flags;
    if (pn->kind != TTI_OP || pn->is_dropped || pn->n_out != 1 || pn->n_in == 0 ||
        (flags & (TT_OP_POINTWISE | TT_OP_FLAT | TT_OP_VIEW)) == 0 ||
        (flags & (TT_OP_EFFECT | TT_OP_RANDOM)) != 0 || tti_needs_widening(pn->node))
        return false;
    int64_t count = s->values[pn->out].count;
    for (int k = 0; k < pn->n_in; k++)
        if (s->values[pn->in[k]].count != count && s->values[pn->in[k]].count != 1)
            return false;
    return true;
}

static bool is_worth(const tti_spreader *s, const tti_value *v)
{
    if (s->n_replicas < 2 || s->no_pieces || tti_is_made_once(s) ||
        s->p->top->spread.update == TT_UPDATE_EACH ||
        v->count < (int64_t)TTI_SQUARE_BLOCK * s->n_replicas)
        return false;
    return v->bytes >= WORTH_BYTES || s->p->top->spread.update == TT_UPDATE_SHARD;
}

// Ops that examine gradients (square_sum, max_abs) examine each piece of a sharded gradient where
// it is; every replica then combines the results.
static void set_parts(tti_spreader *s)
{
    for (int64_t i = 0; i < s->n_nodes; i++) {
        const tti_pnode *pn = &s->nodes[i];
        bool any = false;
        if (pn->kind != TTI_OP || pn->is_dropped || s->mode[i] != TTI_MODE_REPLICATED ||
            (pn->node->op->flags & TT_OP_PARTS) == 0)
            continue;
        for (int k = 0; k < pn->n_in; k++)
            any |= s->in_pieces[pn->in[k]] != 0;
        if (!any)
            continue;
        s->mode[i] = TTI_MODE_STATISTICS;
        s->in_pieces[pn->out] = 2;
    }
}

// A single number computed from a large tensor (the sum of a gradient's squares) is computed by one
// replica, each replica in turn.
static void set_owners(tti_spreader *s)
{
    int next = 0;
    for (int64_t i = 0; i < s->n_nodes; i++) {
        const tti_pnode *pn = &s->nodes[i];
        bool expensive = false;
        for (int k = 0; s->mode[i] == TTI_MODE_REPLICATED && k < pn->n_in; k++)
            expensive |= s->in_pieces[pn->in[k]] == 1;
        for (int k = 0; k < pn->n_out; k++)
            expensive &= s->values[pn->out + k].count == 1;
        if (!expensive)
            continue;
        s->mode[i] = TTI_MODE_ONE;
        s->owner[i] = next++ % s->n_replicas;
    }
}

/*
 * Gradients fill buckets in the order in which they are computed. The tree sums of a bucket are
 * scheduled where the next bucket ends. Sums that later rows need (statistics of norms) are
 * scheduled at once.
 */
static void set_tree_keys(tti_spreader *s)
{
    uint8_t *urgent = s->urgent;
    size_t total = 0, bucket = s->p->top->spread.bucket, bytes = 0;
    for (int64_t i = s->n_nodes - 1; i >= 0; i--) {
        bool waited = s->mode[i] == TTI_MODE_ROWS;
        for (int k = 0; k < s->nodes[i].n_out; k++)
            waited |= urgent[s->nodes[i].out + k] != 0;
        for (int k = 0; waited && k < s->nodes[i].n_in; k++)
            urgent[s->nodes[i].in[k]] = 1;
    }
    for (int64_t v = 0; v < s->n_values; v++) {
        s->tree_key[v] = tti_key_shift(s->nodes[s->values[v].node].key, TTI_SHIFT_TREE);
        total += tti_is_sum(&s->values[v]) ? s->values[v].bytes : 0;
    }
    if (bucket == 0)
        bucket = TTI_MIN(TTI_MAX(total / 8, (size_t)256 << 10), (size_t)25 << 20);
    // Where the bucket after this one ends.
    tti_order_key next = s->nodes[s->n_nodes - 1].key, end = next;
    for (int64_t i = s->n_nodes - 1; i >= 0; i--) {
        const tti_pnode *pn = &s->nodes[i];
        for (int k = 0; s->mode[i] == TTI_MODE_ROWS && k < pn->n_out; k++) {
            int v = pn->out + k;
            if (!tti_is_sum(&s->values[v]) || urgent[v])
                continue;
            if (bytes >= bucket) {
                next = end;
                bytes = 0;
            }
            if (bytes == 0)
                end = pn->key;
            bytes += s->values[v].bytes;
            s->tree_key[v] = tti_key_shift(next, TTI_SHIFT_TREE);
            s->made_key[v] = tti_key_shift(end, TTI_SHIFT_TREE);
        }
    }
}

// Sums that are sent to other replicas in a narrower type.
static void set_residuals(tti_spreader *s)
{
    bool all_lanes = s->p->lanes.n == s->p->lanes.total;
    for (int64_t i = 0; i < s->n_nodes; i++) {
        const tti_pnode *pn = &s->nodes[i];
        if (pn->kind != TTI_OP || (pn->node->op->flags & TT_OP_RESIDUAL) == 0 || pn->is_dropped)
            continue;
        const tti_value *var = &s->values[pn->in[0]], *sum = &s->values[pn->in[1]];
        bool fits = var->shape.rank == 2 && var->shape.dim[0] == s->n_replicas &&
                    var->shape.dim[1] >= sum->count;
        if (s->n_replicas < 2 || s->mesh->state == TT_LAYOUT_ONE || !all_lanes || !fits ||
            s->mode[sum->node] != TTI_MODE_ROWS || !tti_is_sum(sum))
            continue;
        s->mode[i] = TTI_MODE_ALIAS;
        s->residual[pn->in[1]] = pn->in[0];
    }
}

void tti_spread_modes(tti_spreader *s)
{
    const tti_plan *p = s->p;
    bool all_lanes = p->lanes.n == p->lanes.total;
    for (int64_t i = 0; i < s->n_nodes; i++) {
        const tti_pnode *pn = &s->nodes[i];
        bool live = !pn->is_dropped;
        s->mode[i] =
            live && pn->kind == TTI_OP && has_split(s, pn) ? TTI_MODE_ROWS
            : s->mesh->state == TT_LAYOUT_ONE || (live && (pn->node->op->flags & TT_OP_EFFECT) != 0)
                ? TTI_MODE_ONE
                : TTI_MODE_REPLICATED;
        for (int k = 0; k < pn->n_in; k++) {
            int v = pn->in[k];
            s->is_late[i] |=
                s->is_late[s->values[v].node] ||
                (s->mode[s->values[v].node] == TTI_MODE_ROWS && tti_is_sum(&s->values[v]));
        }
        if (s->mode[i] != TTI_MODE_REPLICATED || !all_lanes || !is_flat(s, pn) ||
            !is_worth(s, &s->values[pn->out]))
            continue;
        bool any = false; // an input is in pieces: a large sum, or computed from one
        for (int k = 0; k < pn->n_in; k++) {
            int v = pn->in[k], maker = s->values[v].node;
            if (s->mode[maker] == TTI_MODE_ROWS && tti_is_sum(&s->values[v]) &&
                s->values[v].count == s->values[pn->out].count)
                s->in_pieces[v] = 1;
            any |= s->in_pieces[v] != 0;
        }
        if (any) {
            s->mode[i] = TTI_MODE_PIECES;
            s->in_pieces[pn->out] = 1;
        }
    }
    set_parts(s);
    set_owners(s);
    set_tree_keys(s);
    set_residuals(s);
    for (int64_t i = 0; i < s->n_nodes; i++) // unless a reader needs another mode
        s->is_sharded[i] = s->nodes[i].kind == TTI_OP && s->nodes[i].node->op == &tti_op_variable &&
                           s->n_replicas > 1;
    for (int64_t i = 0; i < s->n_nodes; i++)
        for (int k = 0; k < s->nodes[i].n_in; k++)
            if (s->mode[i] != TTI_MODE_PIECES && s->mode[i] != TTI_MODE_ALIAS &&
                s->mode[i] != TTI_MODE_STATISTICS)
                s->is_sharded[s->values[s->nodes[i].in[k]].node] = 0;
    for (int i = 0; i < p->n_fetched; i++)
        s->is_sharded[s->values[p->targets[i]].node] = 0;
}
