/*
 * collective_groups.c - collectives of a library in the order: those that follow each other are
 * enqueued at once, and a device waits once for all of them.
 */
#include "plan/plan.h"

bool tti_is_on_collective(const tti_plan *p, int node)
{
    const tti_pnode *pn = &p->nodes[node];
    while (pn->kind == TTI_OP && (pn->node->op->flags & TT_OP_VIEW) != 0 && pn->n_in > 0)
        pn = &p->nodes[p->values[pn->in[0]].node];
    return pn->kind == TTI_LIBRARY_COLLECTIVE;
}

tt_status tti_plan_communicators(tti_plan *p)
{
    for (int64_t u = 0; u < p->n_collectives; u++) {
        if (p->collectives[u].communicator < 0)
            continue;
        tti_communicator_plan *g = &p->communicators[p->collectives[u].communicator];
        if (g->state != NULL || p->nodes[p->collectives[u].first].is_dropped)
            continue;
        tti_device **d = tti_communicator_devices(p, g);
        if (d == NULL)
            return TT_ENOMEM;
        TT_TRY(d[0]->backend->streams->communicator(d, g->n, &g->state));
    }
    return TT_OK;
}

tt_status tti_plan_groups(tti_plan *p, const int *entry)
{
    int n = 0;
    p->exe.collectives =
        tti_plan_alloc(p, sizeof(*p->exe.collectives) * (size_t)(p->n_collectives + 1));
    p->exe.groups = tti_plan_alloc(p, sizeof(*p->exe.groups) * (size_t)(p->n_collectives + 1));
    if (p->exe.collectives == NULL || p->exe.groups == NULL)
        return TT_ENOMEM;
    tti_collective_group *g = NULL; // that is being made
    for (int pos = 0; pos < p->n_order && p->n_collectives > 0; pos++) {
        const tti_pnode *pn = &p->nodes[p->order[pos]];
        if (entry[p->order[pos]] < 0)
            continue;
        tti_collective_op *u =
            pn->kind == TTI_LIBRARY_COLLECTIVE ? &p->collectives[pn->collective] : NULL;
        if (u == NULL || (g != NULL && g->communicator != u->communicator))
            g = NULL;
        if (u == NULL || u->first != p->order[pos])
            continue;
        if (g == NULL) {
            g = &p->exe.groups[p->exe.n_groups++];
            *g = (tti_collective_group){.communicator = u->communicator, .first = n};
        }
        g->n++;
        u->group = (int)(g - p->exe.groups);
        u->at = n;
        p->exe.collectives[n++] = u->call;
    }
    return TT_OK;
}

static const tti_collective_op *collective_of(const tti_plan *p, const tti_entry *en)
{
    const tti_pnode *pn = &p->nodes[en->pnode];
    return pn->kind == TTI_LIBRARY_COLLECTIVE ? &p->collectives[pn->collective] : NULL;
}

void tti_plan_collective_waits(tti_plan *p)
{
    for (int d = 0; d < p->top->n_devices && p->n_collectives > 0; d++) {
        tti_entry_list *list = &p->exe.lists[d];
        int joined = -1; // the entry that the list's work has waited for
        for (int i = 0; i < list->n_entries; i++) {
            tti_entry *en = &list->entries[i];
            int last = joined, n = 0;
            for (int k = 0; k < en->n_waits; k++) {
                if (en->waits[k].entry_device != d)
                    en->waits[n++] = en->waits[k];
                else
                    last = TTI_MAX(last, en->waits[k].entry);
            }
            if (last > joined) { // room: of these there was at least one
                while (last + 1 < i && collective_of(p, &list->entries[last + 1]) != NULL &&
                       collective_of(p, &list->entries[last + 1])->group ==
                           collective_of(p, &list->entries[last])->group)
                    last++;
                list->entries[last].has_event = true;
                en->waits[n++] = (tti_wait){.entry_device = d,
                                            .entry = last,
                                            .waits_for = p->nodes[list->entries[last].pnode].node};
                joined = last;
            }
            en->n_waits = n;
        }
    }
}
