/*
 * waits.c - which entry waits for which of another device: for what it reads, and for those that
 * still read the memory it writes.
 */
#include "plan/emit/draft.h"
#include <stdlib.h>

typedef tti_emitter emitter;

static tt_status add_wait(tti_wait_list *w, int from, int to)
{
    if (!tti_grow(w->e->p->ctx, &w->from, &w->cap_from, w->n + 1, sizeof(int)) ||
        !tti_grow(w->e->p->ctx, &w->to, &w->cap_to, w->n + 1, sizeof(int)))
        return TT_ENOMEM;
    w->from[w->n] = from;
    w->to[w->n++] = to;
    return TT_OK;
}

// Waits for node from, or, when that has no entry (a view), for what it stands on.
static tt_status wait_for(tti_wait_list *w, int from, int to)
{
    tti_plan *p = w->e->p;
    while (!w->e->drafts[from].has_entry) {
        const tti_pnode *f = &p->nodes[from];
        for (int k = 0; k < f->n_after; k++)
            TT_TRY(wait_for(w, f->after[k], to));
        if (f->n_in == 0)
            return TT_OK; // a variable or a constant is there from the start
        from = p->values[f->in[0]].node;
        if (p->nodes[from].is_dropped)
            return TT_OK;
    }
    int a = p->nodes[from].device, b = p->nodes[to].device;
    if ((a == b && p->nodes[from].kind != TTI_LIBRARY_COLLECTIVE) || tti_is_cross_host(p, a, b))
        return TT_OK; // in the same list; far: a message comes
    return add_wait(w, from, to);
}

// A value of an arena, and who writes it.
typedef struct written {
    int first, value;
} written;

static int by_first(const void *a, const void *b)
{
    const written *x = a, *y = b;
    return x->first != y->first ? x->first - y->first : x->value - y->value;
}

/*
 * The entry that writes the memory of a value first once the value is dead; -1: none does. Whatever
 * writes it later is in the same list, behind that one. list: the values of the arena, by first.
 */
static int next_writer(const emitter *e, const tti_value *sent, const written *list, int n)
{
    const tti_plan *p = e->p;
    int low = 0, high = n; // the first that is written after the value is dead
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (list[middle].first > sent->last)
            high = middle;
        else
            low = middle + 1;
    }
    for (int i = low; i < n; i++) {
        const tti_value *v = &p->values[list[i].value];
        if (v->bytes > 0 && v->offset < sent->offset + sent->bytes &&
            sent->offset < v->offset + v->bytes && e->drafts[p->order[v->first]].has_entry)
            return p->order[v->first];
    }
    return -1;
}

// Memory that another device reads may be written again only after it has.
static tt_status guard_reads(tti_wait_list *w, const written *list, int *writer)
{
    tti_plan *p = w->e->p;
    for (int pos = 0; pos < p->n_order; pos++) {
        int r = p->order[pos];
        for (int k = 0; k < p->nodes[r].n_in; k++) {
            int root = tti_root(p, p->nodes[r].in[k]);
            const tti_value *sent = &p->values[root];
            if (sent->memory != TTI_ARENA || sent->device == p->nodes[r].device ||
                !tti_reads(&p->nodes[r], k))
                continue;
            const int *start = &p->arena_start[2 * sent->device + sent->is_mapped];
            if (writer[root] == 0) // not looked for yet
                writer[root] = 2 + next_writer(w->e, sent, list + start[0], start[1] - start[0]);
            if (writer[root] > 1)
                TT_TRY(add_wait(w, r, writer[root] - 2));
        }
    }
    return TT_OK;
}

static tt_status guard_reuse(tti_wait_list *w)
{
    tti_plan *p = w->e->p;
    if (p->top->n_devices < 2)
        return TT_OK;
    int n = p->arena_start[2 * p->top->n_devices];
    written *list = tti_alloc(p->ctx, sizeof(*list) * (size_t)(n + 1));
    int *writer = tti_calloc(p->ctx, (size_t)p->n_values + 1, sizeof(int));
    tt_status st = list == NULL || writer == NULL ? TT_ENOMEM : TT_OK;
    for (int i = 0; st == TT_OK && i < n; i++)
        list[i] = (written){p->values[p->arena_values[i]].first, p->arena_values[i]};
    for (int a = 0; st == TT_OK && a < 2 * p->top->n_devices; a++)
        qsort(list + p->arena_start[a], (size_t)(p->arena_start[a + 1] - p->arena_start[a]),
              sizeof(*list), by_first);
    if (st == TT_OK)
        st = guard_reads(w, list, writer);
    tti_free(p->ctx, list);
    tti_free(p->ctx, writer);
    return st;
}

static tt_status wait_for_edges(tti_wait_list *w)
{
    tti_plan *p = w->e->p;
    for (int i = 0; i < p->n_cross; i++) {
        int to = p->cross[i].to;
        if (p->nodes[p->cross[i].from].device != p->nodes[to].device)
            w->e->drafts[to].has_entry = true; // a view with a control edge: it only waits
        else if (!w->e->drafts[to].has_entry)
            continue; // a view of library collectives: its readers wait
        TT_TRY(wait_for(w, p->cross[i].from, to));
    }
    return TT_OK;
}

tt_status tti_collect_waits(tti_wait_list *w)
{
    TT_TRY(wait_for_edges(w));
    return guard_reuse(w);
}
