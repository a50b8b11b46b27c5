/*
 * recompute_copies.c - copies of forward nodes that compute chosen activations again.
 *
 * A copy stands right before its first backward reader and takes its original's place there; what
 * it reads is kept, or copied in turn. It has the node's name, kernel, lanes and rows, so it makes
 * the same bits, dropout's mask too.
 */
#include "plan/recompute/recompute.h"
#include <stdlib.h>
#include <string.h>

typedef tti_chooser chooser;

// Nodes that the backward part, or a copy that it needs, reads and that were chosen.
static void mark_again(chooser *c)
{
    const tti_plan *p = c->p;
    for (int64_t i = c->n_nodes - 1; i >= 0; i--) {
        const tti_pnode *pn = &p->nodes[i];
        if (!c->backward[i] && !c->is_recomputed[i])
            continue;
        for (int k = 0; k < pn->n_in && !pn->is_dropped; k++) {
            int maker = p->values[pn->in[k]].node;
            bool chosen = c->number[maker] >= 0 && c->list[c->number[maker]].is_recomputed;
            bool view = tti_is_view(&p->nodes[maker]) && tti_is_repeatable(c, maker);
            const tti_candidate *under = view ? tti_candidate_of(c, pn->in[k]) : NULL;
            if (tti_reads(pn, k) && (chosen || (under != NULL && under->is_recomputed)))
                c->is_recomputed[maker] = 1;
        }
    }
}

static int copied(const chooser *c, int value)
{
    int maker = c->p->values[value].node;
    if (maker >= c->n_nodes || c->copy[maker] < 0)
        return value;
    return c->p->nodes[c->copy[maker]].out + value - c->p->nodes[maker].out;
}

static tt_status add_copy(chooser *c, int i)
{
    tti_plan *p = c->p;
    tti_pnode pn = p->nodes[i];
    int *in = tti_plan_alloc(p, sizeof(int) * (size_t)(pn.n_in + 1));
    if (in == NULL)
        return TT_ENOMEM;
    for (int k = 0; k < pn.n_in; k++)
        in[k] = tti_reads(&pn, k) ? copied(c, pn.in[k]) : pn.in[k];
    int first = pn.out;
    pn.in = in;
    pn.out = (int)p->n_values;
    pn.is_recomputed = true;
    pn.reason = "recomputed";
    pn.key = TTI_KEY_UNKNOWN; // until its readers are
    c->copy[i] = tti_plan_node(p, pn);
    for (int k = 0; c->copy[i] >= 0 && k < pn.n_out; k++) {
        tti_value v = p->values[first + k];
        v.node = c->copy[i];
        v.root = k == 0 && tti_is_view(&pn) ? in[0] : -1;
        if (tti_plan_value(p, v) < 0)
            return TT_ENOMEM;
    }
    if (c->number[i] >= 0) {
        p->recompute_ns += c->list[c->number[i]].ns;
        p->n_recomputed++;
    }
    return c->copy[i] < 0 ? TT_ENOMEM : TT_OK;
}

static void before_readers(tti_plan *p, int64_t i)
{
    for (int k = 0; k < p->nodes[i].n_in; k++) {
        tti_pnode *maker = &p->nodes[p->values[p->nodes[i].in[k]].node];
        if (maker->is_recomputed)
            maker->key =
                tti_key_earlier(maker->key, tti_key_shift(p->nodes[i].key, -TTI_SHIFT_RECOMPUTED));
    }
}

static int by_key(const void *a, const void *b)
{
    const tti_pnode *x = a, *y = b;
    int keys = tti_key_compare(x->key, y->key);
    return keys != 0 ? keys : x->out - y->out;
}

// Makers stand before readers in the list of nodes: the copies go where their keys say.
static tt_status insert_copies(chooser *c)
{
    tti_plan *p = c->p;
    int64_t n = p->n_nodes, at = 0, next = c->n_nodes;
    tti_pnode *old = tti_alloc(p->ctx, sizeof(*old) * (size_t)n);
    if (old == NULL)
        return TT_ENOMEM;
    memcpy(old, p->nodes, sizeof(*old) * (size_t)n);
    qsort(old + next, (size_t)(n - next), sizeof(*old), by_key);
    for (int64_t i = 0; i < c->n_nodes; i++) {
        for (; next < n && c->backward[i] && tti_key_before(old[next].key, old[i].key); next++)
            p->nodes[at++] = old[next];
        c->copy[i] = (int)at; // from here on: where the node has gone
        p->nodes[at++] = old[i];
    }
    tti_free(p->ctx, old);
    for (int64_t i = 0; i < n; i++) {
        tti_pnode *pn = &p->nodes[i];
        for (int k = 0; k < pn->n_out; k++)
            p->values[pn->out + k].node = (int)i;
        for (int k = 0; k < pn->n_after; k++)
            pn->after[k] = c->copy[pn->after[k]];
    }
    return TT_OK;
}

tt_status tti_recompute_copy(chooser *c)
{
    tti_plan *p = c->p;
    mark_again(c);
    for (int64_t i = 0; i < c->n_nodes; i++)
        if (c->is_recomputed[i] && !c->backward[i])
            TT_TRY(add_copy(c, (int)i));
    for (int64_t i = 0; i < c->n_nodes; i++) {
        const tti_pnode *pn = &p->nodes[i];
        for (int k = 0; k < pn->n_in && c->backward[i]; k++)
            if (tti_reads(pn, k))
                pn->in[k] = copied(c, pn->in[k]);
        if (c->backward[i] && tti_is_view(pn))
            p->values[pn->out].root = pn->in[0];
        before_readers(p, i);
    }
    for (int64_t i = p->n_nodes - 1; i >= c->n_nodes; i--) // a copy's readers come after it
        before_readers(p, i);
    return insert_copies(c);
}
