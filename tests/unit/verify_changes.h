/*
 * verify_changes.h - ways to make a valid plan wrong, and the rules that notice.
 */
#ifndef TUTTI_VERIFY_CHANGES_H
#define TUTTI_VERIFY_CHANGES_H

#include "plan/plan.h"

/*
 * A class of changes: makes the n-th such change to a plan, returns false if it has no n-th, and
 * says which rules may notice.
 */
typedef struct plan_change {
    const char *name;
    bool (*make)(tti_plan *p, int n);
    const char *rules; // "reads", or several with spaces between
} plan_change;

// Each ends with a name that is NULL.
extern const plan_change plan_changes[];        // to nodes, messages, order, lists, memory
extern const plan_change plan_layout_changes[]; // to layouts

// The n-th live node that is of this kind (-1: any) and has so many inputs at least.
tti_pnode *plan_nth_node(tti_plan *p, int n, int kind, int n_in);

#endif
