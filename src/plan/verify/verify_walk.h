/*
 * verify_walk.h - the devices' lists as they were walked on paper: between verify_lists.c, which
 * walks them, and the rules on memory.
 */
#ifndef TUTTI_PLAN_VERIFY_WALK_H
#define TUTTI_PLAN_VERIFY_WALK_H

#include "plan/verify/verify.h"

typedef struct tti_list_walk {
    const tti_plan *p;
    int n;       // devices
    int *entry;  // by plan node: its entry; -1
    int *base;   // by device: its first entry among all
    int *clock;  // by entry: 2 n numbers, when it begins: entries done, library collectives done
    int *at;     // by device: entries that have begun
    int *sender; // by message: plan node
    int *collective_begun; // by collective: devices that have begun it
} tti_list_walk;

static inline const tti_entry *tti_walked_entry(const tti_list_walk *w, int pnode)
{
    const tti_pnode *pn = &w->p->nodes[pnode];
    return &w->p->exe.lists[pn->device].entries[w->entry[pnode]];
}

static inline int *tti_walked_clock(const tti_list_walk *w, int device, int entry)
{
    return &w->clock[(int64_t)(w->base[device] + entry) * 2 * w->n];
}

// Is the entry done for whoever has this clock?
bool tti_walked_is_done(const tti_list_walk *w, const int *clock, int device, int entry);

// verify_memory.c
tt_status tti_verify_memory(const tti_list_walk *w) TTI_CHECKED;
tt_status tti_verify_addresses(const tti_list_walk *w) TTI_CHECKED;

#endif
