/*
 * verify.h - is a plan right? Each stage has rules that hold after it; a plan that breaks one is a
 * mistake of the planner, never of the user.
 *
 * The rules look only at the plan: not at how a stage came to it. In builds with TUTTI_DEBUG every
 * plan is checked after every stage; elsewhere when asked (tutti plan --verify).
 */
#ifndef TUTTI_PLAN_VERIFY_H
#define TUTTI_PLAN_VERIFY_H

#include "plan/stages.h"

/*
 * Checks what must hold after a stage. TT_EASSERT: a rule is broken; the message begins with the
 * rule's name:
 *
 *   "reads"    a node reads what no node makes, or what was dropped
 *   "makes"    a value is made by two nodes, or by none
 *   "size"     bytes, elements and type of a value do not agree
 *   "device"   a node is nowhere, or reads another device's memory without a receive
 *   "messages" a send without its receive, or the other way round; other bytes or another process
 *   "lanes"    some lanes are missing or counted twice
 *   "layout"   a part of a value is taken for the whole, or for another part
 *   "order"    a node is not in the order, or is there twice, or stands before what it needs
 *   "update"   a variable is read too late or too early, between two updates
 *   "list"     a device's list is not a part of the order
 *   "wait"     a wait is for nothing, or for what never signals
 *   "deadlock" lists wait for each other in a circle
 *   "race"     a node may run before what it needs is done
 *   "memory"   two values are in the same memory at the same time, or one is outside the arena
 *   "address"  a kernel's argument is not where its value is
 *   "collective" members have collectives in different orders, or pieces that are not theirs
 */
tt_status tti_plan_verify(const tti_plan *p, tti_stage stage) TTI_CHECKED;

// verify_layout.c: the rule on layouts.
tt_status tti_verify_layouts(const tti_plan *p) TTI_CHECKED;
// verify_lists.c: the rules on lists: waits, memory, addresses.
tt_status tti_verify_lists(const tti_plan *p) TTI_CHECKED;

// verify_collectives.c: members and their pieces.
tt_status tti_verify_collectives(const tti_plan *p) TTI_CHECKED;

// Records a broken rule; "after order: reads: ...".
tt_status tti_broken(const tti_plan *p, const char *rule, int pnode, const char *format, ...)
    TT_PRINTF(4, 5);

// node_order.c: the update that made a value; -1: none.
int tti_version_of(const tti_plan *p, int value);

#endif
