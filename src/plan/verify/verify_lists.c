/*
 * verify_lists.c - the rules on the devices' lists: is everything done before it is needed?
 *
 * The lists are walked as devices would, each as far as its waits allow. For every entry a clock
 * says, for each device, up to which entry all is done when it begins: what an entry needs must be
 * within its clock. An entry that waits for nobody has the clock of the one before it. Library
 * collectives run beside their device's list, so they have clocks of their own, and one is done
 * when every device of its group has begun it.
 */
#include "device/device.h"
#include "plan/verify/verify_walk.h"
#include <string.h>

static bool is_library(const tti_plan *p, const tti_entry *en)
{
    return p->nodes[en->pnode].kind == TTI_LIBRARY_COLLECTIVE;
}

static int *clock_at(const tti_list_walk *w, int number)
{
    return &w->clock[(int64_t)number * w->width];
}

static int *clock_of(const tti_list_walk *w, int device, int entry)
{
    return clock_at(w, w->clock_of[w->base[device] + entry]);
}

// Takes over what is known when an entry begins.
static void learn(const tti_list_walk *w, int *clock, int device, int entry)
{
    const int *from = clock_of(w, device, entry);
    for (int i = 0; i < w->width; i++)
        clock[i] = TTI_MAX(clock[i], from[i]);
    clock[device] = TTI_MAX(clock[device], entry); // all before, library collectives apart
}

bool tti_walked_is_done(const tti_list_walk *w, int from, int to)
{
    const tti_plan *p = w->p;
    int device = p->nodes[from].device, entry = w->entry[from];
    bool aside = is_library(p, &p->exe.lists[device].entries[entry]);
    if (!aside && device == p->nodes[to].device)
        return entry < w->entry[to];
    const int *clock = clock_of(w, p->nodes[to].device, w->entry[to]);
    return clock[(aside ? w->n : 0) + device] > entry;
}

// ---- walking ---------------------------------------------------------------------------------

// The plan node of the entry that an entry's messages come from; -1: it receives none.
static int letter_from(const tti_list_walk *w, const tti_entry *en)
{
    const tti_pnode *pn = &w->p->nodes[en->pnode];
    return pn->kind == TTI_RECV && pn->transfer != NULL ? w->sender[pn->transfer->edge] : -1;
}

// Has it begun, and has library collectives begun everywhere?
static bool has_ended(const tti_list_walk *w, int device, int entry)
{
    const tti_pnode *pn = &w->p->nodes[w->p->exe.lists[device].entries[entry].pnode];
    if (w->at[device] <= entry)
        return false;
    return pn->kind != TTI_LIBRARY_COLLECTIVE ||
           w->collective_begun[pn->collective] ==
               w->p->communicators[w->p->collectives[pn->collective].communicator].n;
}

// What is known once an entry has ended.
static void learn_end(const tti_list_walk *w, int *clock, int device, int entry)
{
    const tti_plan *p = w->p;
    const tti_pnode *pn = &p->nodes[p->exe.lists[device].entries[entry].pnode];
    learn(w, clock, device, entry);
    if (pn->kind != TTI_LIBRARY_COLLECTIVE) {
        clock[device] = TTI_MAX(clock[device], entry + 1);
        return;
    }
    const tti_collective_op *u = &p->collectives[pn->collective];
    for (int k = 0; k < p->communicators[u->communicator].n; k++) {
        int other = p->communicators[u->communicator].device[k], e = w->entry[u->first + k];
        learn(w, clock, other, e);
        clock[w->n + other] = TTI_MAX(clock[w->n + other], e + 1);
    }
}

// Begins a device's next entry if its waits allow.
static bool begin_next(tti_list_walk *w, int device)
{
    const tti_plan *p = w->p;
    int e = w->at[device], from;
    const tti_entry *en = &p->exe.lists[device].entries[e];
    for (int k = 0; k < en->n_waits; k++)
        if (!has_ended(w, en->waits[k].entry_device, en->waits[k].entry))
            return false;
    from = letter_from(w, en);
    if (from >= 0 && !has_ended(w, p->nodes[from].device, w->entry[from]))
        return false;
    int *number = &w->clock_of[w->base[device] + e];
    *number = e > 0 ? number[-1] : 0;
    if (en->n_waits > 0 || from >= 0) {
        int *clock = clock_at(w, w->n_clocks);
        if (e > 0)
            learn(w, clock, device, e - 1);
        for (int k = 0; k < en->n_waits; k++)
            learn_end(w, clock, en->waits[k].entry_device, en->waits[k].entry);
        if (from >= 0)
            learn_end(w, clock, p->nodes[from].device, w->entry[from]);
        *number = w->n_clocks++;
    }
    if (is_library(p, en))
        w->collective_begun[p->nodes[en->pnode].collective]++;
    w->at[device]++;
    return true;
}

static tt_status report_stuck(const tti_list_walk *w, int device)
{
    const tti_plan *p = w->p;
    const tti_entry *en = &p->exe.lists[device].entries[w->at[device]];
    for (int k = 0; k < en->n_waits; k++) {
        const tti_wait *wait = &en->waits[k];
        if (!has_ended(w, wait->entry_device, wait->entry))
            return tti_broken(p, "deadlock", en->pnode,
                              "waits for entry %d of %s, which waits for "
                              "it in turn",
                              wait->entry, p->top->devices[wait->entry_device]->name);
    }
    return tti_broken(p, "deadlock", en->pnode, "waits for a message that waits for it in turn");
}

static tt_status walk_lists(tti_list_walk *w)
{
    const tti_plan *p = w->p;
    bool moved = true;
    while (moved) {
        moved = false;
        for (int d = 0; d < w->n; d++)
            while (w->at[d] < p->exe.lists[d].n_entries && begin_next(w, d))
                moved = true;
    }
    for (int d = 0; d < w->n; d++)
        if (w->at[d] < p->exe.lists[d].n_entries)
            return report_stuck(w, d);
    return TT_OK;
}

// ---- lists and waits -------------------------------------------------------------------------

static tt_status check_wait(const tti_plan *p, const tti_entry *en, int device,
                            const tti_wait *wait)
{
    if (wait->entry_device < 0 || wait->entry_device >= p->top->n_devices || wait->entry < 0 ||
        wait->entry >= p->exe.lists[wait->entry_device].n_entries)
        return tti_broken(p, "wait", en->pnode,
                          "waits for entry %d of device %d, which is not there", wait->entry,
                          wait->entry_device);
    const tti_entry *maker = &p->exe.lists[wait->entry_device].entries[wait->entry];
    bool own = wait->entry_device == device;
    if (own ? !is_library(p, maker) : wait->flag == NULL || wait->flag != maker->done)
        return tti_broken(p, "wait", en->pnode, "waits for entry %d of %s, which does not tell it",
                          wait->entry, p->top->devices[wait->entry_device]->name);
    return TT_OK;
}

static tt_status check_lists(tti_list_walk *w)
{
    const tti_plan *p = w->p;
    for (int d = 0; d < w->n; d++) {
        int before = -1;
        for (int e = 0; e < p->exe.lists[d].n_entries; e++) {
            const tti_entry *en = &p->exe.lists[d].entries[e];
            if (en->pnode < 0 || en->pnode >= p->n_nodes || p->nodes[en->pnode].is_dropped ||
                p->nodes[en->pnode].device != d || p->nodes[en->pnode].position <= before)
                return tti_broken(p, "list", en->pnode, "is entry %d of %s, out of order", e,
                                  p->top->devices[d]->name);
            before = p->nodes[en->pnode].position;
            w->entry[en->pnode] = e;
            for (int k = 0; k < en->n_waits; k++)
                TT_TRY(check_wait(p, en, d, &en->waits[k]));
        }
    }
    for (int i = 0; i < p->n_nodes; i++) {
        const tti_pnode *pn = &p->nodes[i];
        bool works = pn->kind != TTI_OP || pn->node->op == &tti_op_feed ||
                     (pn->node->op->flags & (TT_OP_SOURCE | TT_OP_VIEW)) == 0;
        if (!pn->is_dropped && works && w->entry[i] < 0)
            return tti_broken(p, "list", i, "is in no list");
    }
    return TT_OK;
}

// Devices of a group do what they do together in one order.
static tt_status check_joint(const tti_list_walk *w)
{
    const tti_plan *p = w->p;
    for (int g = 0; g < p->n_communicators; g++) {
        for (int k = 0; k < p->communicators[g].n; k++) {
            int last = -1, before = -1; // of the first device, and of this one
            for (int pos = 0; pos < p->n_order; pos++) {
                const tti_pnode *pn = &p->nodes[p->order[pos]];
                if (pn->kind != TTI_LIBRARY_COLLECTIVE ||
                    p->collectives[pn->collective].communicator != g ||
                    p->order[pos] != p->collectives[pn->collective].first + k)
                    continue;
                int lead = w->entry[p->collectives[pn->collective].first],
                    own = w->entry[p->order[pos]];
                if (lead <= last || own <= before)
                    return tti_broken(p, "collective", p->order[pos],
                                      "has another turn than on the first device of its group");
                last = lead;
                before = own;
            }
        }
    }
    return TT_OK;
}

// ---- what an entry needs ---------------------------------------------------------------------

// Node from is done when node to begins; views and sources are what they stand on.
static tt_status check_done(const tti_list_walk *w, int from, int to)
{
    const tti_plan *p = w->p;
    while (w->entry[from] < 0) {
        const tti_pnode *f = &p->nodes[from];
        for (int k = 0; k < f->n_after; k++)
            TT_TRY(check_done(w, f->after[k], to));
        if (f->n_in == 0)
            return TT_OK; // there from the start
        from = p->values[f->in[0]].node;
        if (p->nodes[from].is_dropped)
            return TT_OK;
    }
    if (from == to || tti_walked_is_done(w, from, to))
        return TT_OK;
    return tti_broken(p, "race", to, "may begin before node %d on %s has ended", from,
                      p->top->devices[p->nodes[from].device]->name);
}

static tt_status check_needs(const tti_list_walk *w)
{
    const tti_plan *p = w->p;
    for (int i = 0; i < p->n_nodes; i++) {
        const tti_pnode *pn = &p->nodes[i];
        if (pn->is_dropped || w->entry[i] < 0)
            continue;
        for (int k = 0; k < pn->n_in; k++)
            if (tti_reads(pn, k) && !p->nodes[p->values[pn->in[k]].node].is_dropped)
                TT_TRY(check_done(w, p->values[pn->in[k]].node, i));
        for (int k = 0; k < pn->n_after; k++)
            if (!p->nodes[pn->after[k]].is_dropped)
                TT_TRY(check_done(w, pn->after[k], i));
    }
    return TT_OK;
}

// ---- all of them -----------------------------------------------------------------------------

static tt_status prepare(tti_list_walk *w)
{
    const tti_plan *p = w->p;
    int total = 0, clocks = 1; // the first: nothing is known
    w->n = p->top->n_devices;
    w->entry = tti_alloc(p->ctx, sizeof(int) * (size_t)(p->n_nodes + 1));
    w->base = tti_calloc(p->ctx, (size_t)w->n + 1, sizeof(int));
    w->at = tti_calloc(p->ctx, (size_t)w->n + 1, sizeof(int));
    w->sender = tti_alloc(p->ctx, sizeof(int) * (size_t)(p->n_messages + 1));
    w->collective_begun = tti_calloc(p->ctx, (size_t)p->n_collectives + 1, sizeof(int));
    if (w->entry == NULL || w->base == NULL || w->at == NULL || w->sender == NULL ||
        w->collective_begun == NULL)
        return TT_ENOMEM;
    for (int d = 0; d < w->n; d++) {
        w->base[d] = total;
        total += p->exe.lists[d].n_entries;
        for (int e = 0; e < p->exe.lists[d].n_entries; e++) {
            const tti_entry *en = &p->exe.lists[d].entries[e];
            bool is_node = en->pnode >= 0 && en->pnode < p->n_nodes; // else it is told later
            clocks += en->n_waits > 0 || (is_node && p->nodes[en->pnode].transfer != NULL);
        }
    }
    w->n_clocks = 1;
    w->width = p->n_communicators > 0 ? 2 * w->n : w->n;
    w->clock_of = tti_calloc(p->ctx, (size_t)total + 1, sizeof(int));
    w->clock = tti_calloc(p->ctx, (size_t)clocks * (size_t)w->width, sizeof(int));
    for (int64_t i = 0; i < p->n_nodes; i++) {
        const tti_pnode *pn = &p->nodes[i];
        w->entry[i] = -1;
        if (!pn->is_dropped && pn->kind == TTI_SEND)
            for (int k = 0; k < pn->transfer->n; k++)
                w->sender[pn->transfer->edge + k] = (int)i;
    }
    return w->clock == NULL || w->clock_of == NULL ? TT_ENOMEM : TT_OK;
}

tt_status tti_verify_lists(const tti_plan *p)
{
    tti_list_walk w = {.p = p};
    tt_status st = prepare(&w);
    if (st == TT_OK)
        st = check_lists(&w);
    if (st == TT_OK)
        st = check_joint(&w);
    if (st == TT_OK)
        st = walk_lists(&w);
    if (st == TT_OK)
        st = check_needs(&w);
    if (st == TT_OK)
        st = tti_verify_memory(&w);
    if (st == TT_OK)
        st = tti_verify_addresses(&w);
    tti_free(p->ctx, w.entry);
    tti_free(p->ctx, w.base);
    tti_free(p->ctx, w.at);
    tti_free(p->ctx, w.sender);
    tti_free(p->ctx, w.collective_begun);
    tti_free(p->ctx, w.clock);
    tti_free(p->ctx, w.clock_of);
    return st;
}
