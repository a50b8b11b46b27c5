/*
 * verify_walk.h - the devices' lists as they were walked on paper: between verify_lists.c, which
 * walks them, and the rules on memory.
 */
#ifndef TUTTI_PLAN_VERIFY_WALK_H
#define TUTTI_PLAN_VERIFY_WALK_H

#include "plan/verify/verify.h"

typedef struct tti_list_walk {
    const tti_plan *p;
    int n;      // devices
    int *entry; // by plan node: its entry; -1
    int *base;  // by device: its first entry among all
    int *clock; // of n_clocks, width numbers each: entries done, library collectives done
    int n_clocks, width;
    int *clock_of; // by entry: its clock, when it begins; of its own device it is not told there
    int *at;       // by device: entries that have begun
    int *sender;   // by message: plan node
    int *collective_begun; // by collective: devices that have begun it
} tti_list_walk;

static inline const tti_entry *tti_walked_entry(const tti_list_walk *w, int pnode)
{
    const tti_pnode *pn = &w->p->nodes[pnode];
    return &w->p->exe.lists[pn->device].entries[w->entry[pnode]];
}

// Is plan node from, which has an entry, done when the entry of node to begins?
bool tti_walked_is_done(const tti_list_walk *w, int from, int to);

// verify_memory.c
tt_status tti_verify_memory(const tti_list_walk *w) TTI_CHECKED;
tt_status tti_verify_addresses(const tti_list_walk *w) TTI_CHECKED;

#endif
