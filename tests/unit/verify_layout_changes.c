/*
 * verify_layout_changes.c - changes to how the values of a plan lie on its mesh, each of which
 * breaks a rule (verify_changes.h).
 */
#include "../test.h"
#include "device/device.h"
#include "plan/spread/spread.h"
#include "verify_changes.h"
#include <string.h>

static tti_layout_entry *on_data(tti_plan *p, int value)
{
    return &p->values[value].layout.on[TTI_AXIS_DATA];
}

// The n-th node that makes a value of this layout along data.
static tti_pnode *nth_of_layout(tti_plan *p, int n, tt_layout_kind kind, bool is_flat)
{
    for (int pos = 0; pos < p->n_order; pos++) {
        tti_pnode *pn = &p->nodes[p->order[pos]];
        bool source = pn->kind == TTI_OP && (pn->node->op->flags & TT_OP_SOURCE) != 0;
        if (pn->n_out == 0 || source || tti_kind_of(pn)->layout == TTI_LAYOUT_MOVES)
            continue;
        tti_layout_entry e = *on_data(p, pn->out);
        if (e.kind == kind && (e.dim == TTI_DIM_FLAT) == is_flat && n-- == 0)
            return pn;
    }
    return NULL;
}

// A sum of some lanes passes for the sum.
static bool partial_as_whole(tti_plan *p, int n)
{
    tti_pnode *pn = nth_of_layout(p, n, TT_LAYOUT_PARTIAL, true);
    if (pn != NULL)
        on_data(p, pn->out)->kind = TT_LAYOUT_REPLICATED;
    return pn != NULL;
}

// What a tree adds is read as if it were the sum.
static bool read_before_the_sum(tti_plan *p, int n)
{
    for (int pos = 0; pos < p->n_order; pos++) {
        tti_pnode *pn = &p->nodes[p->order[pos]];
        bool reads = tti_kind_of(pn)->layout == TTI_LAYOUT_FOLLOWS;
        for (int k = 0; reads && k < pn->n_in; k++) {
            const tti_pnode *tree = &p->nodes[p->values[pn->in[k]].node];
            if (tree->kind != TTI_TREE || !tti_reads(pn, k))
                continue;
            for (int i = 0; i < tree->n_in; i++) // one that is here, so that only this is wrong
                if (p->values[tree->in[i]].device == pn->device && n-- == 0) {
                    pn->in[k] = tree->in[i];
                    return true;
                }
        }
    }
    return false;
}

static bool split_elsewhere(tti_plan *p, int n)
{
    tti_pnode *pn = nth_of_layout(p, n, TT_LAYOUT_SPLIT, false);
    if (pn != NULL)
        on_data(p, pn->out)->dim++;
    return pn != NULL;
}

static bool rows_as_whole(tti_plan *p, int n)
{
    tti_pnode *pn = nth_of_layout(p, n, TT_LAYOUT_SPLIT, false);
    if (pn != NULL)
        on_data(p, pn->out)->kind = TT_LAYOUT_REPLICATED;
    return pn != NULL;
}

// Rows, or a piece, of another replica.
static bool another_part(tti_plan *p, int n)
{
    int replicas = tti_mesh_size(&p->mesh, TTI_AXIS_DATA);
    tti_pnode *pn = nth_of_layout(p, n, TT_LAYOUT_SPLIT, n % 2 != 0);
    if (pn == NULL || replicas < 2)
        return false;
    on_data(p, pn->out)->part = (int16_t)((on_data(p, pn->out)->part + 1) % replicas);
    return true;
}

static bool no_such_part(tti_plan *p, int n)
{
    tti_pnode *pn = nth_of_layout(p, n, TT_LAYOUT_SPLIT, n % 2 != 0);
    if (pn != NULL)
        on_data(p, pn->out)->part = (int16_t)tti_mesh_size(&p->mesh, TTI_AXIS_DATA);
    return pn != NULL;
}

// The rows of a micro-batch are read with those of another, which is on the same device.
static bool other_rows(tti_plan *p, int n)
{
    for (int pos = 0; pos < p->n_order; pos++) {
        tti_pnode *pn = &p->nodes[p->order[pos]];
        for (int k = 0; tti_kind_of(pn)->layout == TTI_LAYOUT_FOLLOWS && k < pn->n_in; k++) {
            const tti_value *v = &p->values[pn->in[k]];
            if (on_data(p, pn->in[k])->kind != TT_LAYOUT_SPLIT || !tti_reads(pn, k))
                continue;
            for (int before = 0; before < pos; before++) {
                const tti_pnode *other = &p->nodes[p->order[before]];
                if (other->n_out != 1 || other->device != pn->device ||
                    other->node != v->tensor->node || other->lanes->first == pn->lanes->first ||
                    v->bytes != p->values[other->out].bytes ||
                    on_data(p, other->out)->kind != TT_LAYOUT_SPLIT || n-- > 0)
                    continue;
                pn->in[k] = other->out;
                return true;
            }
        }
    }
    return false;
}

static tti_pnode *nth_collect(tti_plan *p, int n)
{
    return plan_nth_node(p, n / 6, TTI_COLLECT, 2); // they are few
}

static bool lose_a_piece(tti_plan *p, int n)
{
    tti_pnode *pn = nth_collect(p, n);
    if (pn != NULL)
        pn->n_in--;
    return pn != NULL;
}

static bool collect_a_piece_twice(tti_plan *p, int n)
{
    tti_pnode *pn = nth_collect(p, n);
    if (pn != NULL)
        pn->in[pn->n_in - 1] = pn->in[0];
    return pn != NULL;
}

static bool fetch_a_part(tti_plan *p, int n)
{
    if (n >= p->n_fetched)
        return false;
    tti_layout_entry *e = on_data(p, p->targets[n]);
    *e = (tti_layout_entry){TT_LAYOUT_PARTIAL, TTI_DIM_FLAT, 0};
    return true;
}

const plan_change plan_layout_changes[] = {
    {"a partial sum as the sum", partial_as_whole, "layout"},
    {"a partial sum read before it is reduced", read_before_the_sum, "layout lanes size reads"},
    {"a split along another dimension", split_elsewhere, "layout"},
    {"rows of some lanes as all rows", rows_as_whole, "layout"},
    {"a part of another replica", another_part, "layout"},
    {"a part that is not there", no_such_part, "layout"},
    {"rows of another micro-batch", other_rows, "layout lanes"},
    {"a piece left out", lose_a_piece, "layout"},
    {"a piece twice", collect_a_piece_twice, "layout"},
    {"a part of a value fetched", fetch_a_part, "layout"},
    {NULL, NULL, NULL},
};
