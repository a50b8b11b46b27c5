/*
 * advance.h - an order of a plan's nodes that is kept while nodes are joined to others (chain.c).
 */
#ifndef TUTTI_PLAN_FUSION_ORDER_H
#define TUTTI_PLAN_FUSION_ORDER_H

#include "plan/plan.h"

typedef struct tti_fusion_order {
    int *first_in, *in;   // by node: those it needs
    int *first_out, *out; // by node: those that need it
    int *lead;            // by node: the first of those it is joined with, or itself
    int *next;            // by node: the one that was joined after it; -1
    int *seq, *at;        // the order, -1 where a joined node was; the place of every lead
    int *stack, *window;
    int *seen; // by node: the last search that came there
    int search;
} tti_fusion_order;

// The plan's order, which tti_plan_sort() has made, and its edges.
tt_status tti_fusion_order_init(tti_plan *p, const tti_edges *e, tti_fusion_order *out) TTI_CHECKED;
void tti_fusion_order_deinit(tti_plan *p, tti_fusion_order *a);
// Can node i, joined to none, come to lead? Not if it needs what itself needs those at lead.
bool tti_can_move(tti_fusion_order *a, int i, int lead);
// After a yes: joins it, last being the last node there. What else it needs goes before.
void tti_move_to(tti_fusion_order *a, int i, int lead, int last);

#endif
