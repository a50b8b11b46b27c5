/*
 * verify_changes.c - changes to the nodes, messages, order, lists and memory of a plan, each of
 * which breaks a rule (verify_changes.h).
 */
#include "verify_changes.h"
#include "../test.h"
#include "device/device.h"
#include "plan/spread/spread.h"
#include <string.h>

tti_pnode *plan_nth_node(tti_plan *p, int n, int kind, int n_in)
{
    for (int pos = 0; pos < p->n_order; pos++) {
        tti_pnode *pn = &p->nodes[p->order[pos]];
        if ((kind < 0 || (int)pn->kind == kind) && pn->n_in >= n_in && n-- == 0)
            return pn;
    }
    return NULL;
}

static bool read_nothing(tti_plan *p, int n)
{
    tti_pnode *pn = plan_nth_node(p, n, -1, 1);
    if (pn != NULL)
        pn->in[0] = (int)p->n_values + n;
    return pn != NULL;
}

// A node reads its own result.
static bool read_itself(tti_plan *p, int n)
{
    for (int pos = 0; pos < p->n_order; pos++) {
        tti_pnode *pn = &p->nodes[p->order[pos]];
        bool works = pn->kind == TTI_FUSED ||
                     (pn->kind == TTI_OP && (pn->node->op->flags & TT_OP_POINTWISE) != 0);
        if (!works || n-- > 0)
            continue;
        // Of all that comes later on this device: what the last node there makes.
        for (int k = p->n_order - 1; k > pos; k--) {
            const tti_pnode *later = &p->nodes[p->order[k]];
            if (later->device == pn->device && later->n_out > 0 && later->kind == TTI_OP &&
                (later->node->op->flags & TT_OP_VIEW) == 0) {
                pn->in[0] = later->out;
                return true;
            }
        }
    }
    return false;
}

static bool make_twice(tti_plan *p, int n)
{
    tti_pnode *a = plan_nth_node(p, n, TTI_OP, 1), *b = plan_nth_node(p, n + 1, TTI_OP, 1);
    if (b == NULL)
        return false;
    a->out = b->out;
    return true;
}

static bool wrong_bytes(tti_plan *p, int n)
{
    tti_pnode *pn = plan_nth_node(p, n, TTI_OP, 1);
    if (pn == NULL || pn->n_out == 0)
        return false;
    p->values[pn->out].bytes += 4;
    return p->values[pn->out].count > 0;
}

static bool drop_node(tti_plan *p, int n)
{
    tti_pnode *pn = plan_nth_node(p, n, -1, 0);
    if (pn == NULL)
        return false;
    pn->is_dropped = true;
    return true;
}

static bool no_device(tti_plan *p, int n)
{
    tti_pnode *pn = plan_nth_node(p, n, -1, 0);
    if (pn == NULL)
        return false;
    pn->device = p->top->n_devices;
    return true;
}

// What a receive brought is read where it came from.
static bool skip_receive(tti_plan *p, int n)
{
    for (int pos = 0; pos < p->n_order; pos++) {
        tti_pnode *pn = &p->nodes[p->order[pos]];
        for (int k = 0; k < pn->n_in; k++) {
            const tti_pnode *maker = &p->nodes[p->values[pn->in[k]].node];
            if (maker->kind != TTI_RECV || maker->transfer != NULL || pn->kind == TTI_TREE ||
                !tti_reads(pn, k) || n-- > 0)
                continue;
            pn->in[k] = maker->in[0];
            return true;
        }
    }
    return false;
}

static tti_pnode *nth_message(tti_plan *p, int n)
{
    for (int pos = 0; pos < p->n_order; pos++)
        if (p->nodes[p->order[pos]].transfer != NULL && n-- == 0)
            return &p->nodes[p->order[pos]];
    return NULL;
}

static bool other_message(tti_plan *p, int n)
{
    tti_pnode *pn = nth_message(p, n);
    if (pn != NULL)
        pn->transfer->edge = (pn->transfer->edge + 1) % p->n_messages;
    return pn != NULL && p->n_messages > 1;
}

static bool other_message_bytes(tti_plan *p, int n)
{
    tti_pnode *pn = nth_message(p, n);
    if (pn != NULL)
        pn->transfer->bytes += 8;
    return pn != NULL;
}

static bool other_peer(tti_plan *p, int n)
{
    tti_pnode *pn = nth_message(p, n);
    if (pn != NULL)
        pn->transfer->peer = p->top->devices[pn->device]->task;
    return pn != NULL;
}

static bool lose_lanes(tti_plan *p, int n)
{
    tti_pnode *pn = NULL;
    for (int pos = 0; pos < p->n_order && pn == NULL; pos++) {
        tti_pnode *at = &p->nodes[p->order[pos]];
        if (at->kind == TTI_TREE && !at->is_chain && at->n_in > 1 && n-- == 0)
            pn = at;
    }
    if (pn == NULL)
        return false;
    pn->n_in--;
    return true;
}

static bool count_lanes_twice(tti_plan *p, int n)
{
    tti_pnode *pn = NULL;
    for (int pos = 0; pos < p->n_order && pn == NULL; pos++) {
        tti_pnode *at = &p->nodes[p->order[pos]];
        if (at->kind == TTI_TREE && !at->is_chain && at->n_in > 1 && n-- == 0)
            pn = at;
    }
    if (pn == NULL)
        return false;
    pn->in[1] = pn->in[0];
    return true;
}

// Two neighbours in the order, of which one needs the other, change places.
static bool swap_order(tti_plan *p, int n)
{
    for (int pos = 0; pos + 1 < p->n_order; pos++) {
        int a = p->order[pos], b = p->order[pos + 1];
        bool needs = false;
        for (int k = 0; k < p->nodes[b].n_in; k++)
            needs |= p->values[p->nodes[b].in[k]].node == a && tti_reads(&p->nodes[b], k);
        if (!needs || n-- > 0)
            continue;
        p->order[pos] = b;
        p->order[pos + 1] = a;
        p->nodes[a].position = pos + 1;
        p->nodes[b].position = pos;
        return true;
    }
    return false;
}

static bool order_twice(tti_plan *p, int n)
{
    if (n + 1 >= p->n_order)
        return false;
    p->order[n + 1] = p->order[n];
    return true;
}

// An update takes the place of a reader that wants the value from before.
static bool update_early(tti_plan *p, int n)
{
    for (int pos = 0; pos < p->n_order; pos++) {
        int i = p->order[pos];
        tti_pnode *pn = &p->nodes[i];
        bool update = pn->kind == TTI_OP && (pn->node->op->flags & TT_OP_UPDATE) != 0;
        if (!update || n-- > 0)
            continue;
        int root = tti_root(p, pn->in[0]), to = -1;
        for (int k = 0; k < pos && to < 0; k++)
            for (int o = 0; o < p->nodes[p->order[k]].n_in; o++)
                if (tti_root(p, p->nodes[p->order[k]].in[o]) == root &&
                    tti_reads(&p->nodes[p->order[k]], o) &&
                    p->nodes[p->order[k]].device == pn->device &&
                    (p->nodes[p->order[k]].kind == TTI_FUSED ||
                     (p->nodes[p->order[k]].node->op->flags & TT_OP_VIEW) == 0))
                    to = k;
        if (to < 0)
            return false;
        for (int k = pos; k > to; k--) {
            p->order[k] = p->order[k - 1];
            p->nodes[p->order[k]].position = k;
        }
        p->order[to] = i;
        pn->position = to;
        return true;
    }
    return false;
}

static bool list_out_of_order(tti_plan *p, int n)
{
    for (int d = 0; d < p->top->n_devices; d++) {
        tti_entry_list *list = &p->exe.lists[d];
        if (n + 1 >= list->n_entries) {
            n -= TTI_MAX(list->n_entries - 1, 0);
            continue;
        }
        tti_entry kept = list->entries[n];
        list->entries[n] = list->entries[n + 1];
        list->entries[n + 1] = kept;
        return true;
    }
    return false;
}

static bool leave_out(tti_plan *p, int n)
{
    for (int d = 0; d < p->top->n_devices; d++) {
        tti_entry_list *list = &p->exe.lists[d];
        if (n < list->n_entries) {
            memmove(&list->entries[n], &list->entries[n + 1],
                    sizeof(*list->entries) * (size_t)(list->n_entries - n - 1));
            list->n_entries--;
            return true;
        }
        n -= list->n_entries;
    }
    return false;
}

static tti_entry *nth_waiting(tti_plan *p, int n, int *device)
{
    for (int d = 0; d < p->top->n_devices; d++)
        for (int e = 0; e < p->exe.lists[d].n_entries; e++)
            if (p->exe.lists[d].entries[e].n_waits > 0 && n-- == 0) {
                *device = d;
                return &p->exe.lists[d].entries[e];
            }
    return NULL;
}

// The whole device waits for nothing: some entry on it must need another's work.
static bool wait_for_nothing(tti_plan *p, int n)
{
    n /= 3; // devices are few
    for (int d = 0; d < p->top->n_devices; d++) {
        bool reads = false;
        for (int e = 0; e < p->exe.lists[d].n_entries; e++) {
            const tti_pnode *pn = &p->nodes[p->exe.lists[d].entries[e].pnode];
            for (int k = 0; k < pn->n_in; k++)
                reads |= p->values[pn->in[k]].device != d && tti_reads(pn, k) &&
                         p->values[tti_root(p, pn->in[k])].memory == TTI_ARENA;
        }
        if (!reads || n-- > 0)
            continue;
        for (int e = 0; e < p->exe.lists[d].n_entries; e++)
            p->exe.lists[d].entries[e].n_waits = 0;
        return true;
    }
    return false;
}

static bool wait_for_another(tti_plan *p, int n)
{
    int device;
    tti_entry *en = nth_waiting(p, n, &device);
    if (en == NULL)
        return false;
    en->waits[0].entry = p->exe.lists[en->waits[0].entry_device].n_entries;
    return true;
}

static bool never_signal(tti_plan *p, int n)
{
    int device;
    tti_entry *en = nth_waiting(p, n, &device);
    if (en == NULL)
        return false;
    p->exe.lists[en->waits[0].entry_device].entries[en->waits[0].entry].done = NULL;
    return true;
}

// Who is waited for waits for the waiter.
static bool wait_in_a_circle(tti_plan *p, int n)
{
    int device;
    static tti_wait wait;
    static tti_flag flag;
    tti_entry *en = nth_waiting(p, n, &device);
    if (en == NULL)
        return false;
    tti_entry *other = &p->exe.lists[en->waits[0].entry_device].entries[en->waits[0].entry];
    if (en->done == NULL)
        en->done = &flag;
    wait = (tti_wait){.flag = en->done,
                      .entry_device = device,
                      .entry = (int)(en - p->exe.lists[device].entries)};
    other->waits = &wait;
    other->n_waits = 1;
    return true;
}

// A value is put where the one it is computed from still is.
static bool share_memory(tti_plan *p, int n)
{
    for (int pos = 0; pos < p->n_order; pos++) {
        const tti_pnode *pn = &p->nodes[p->order[pos]];
        for (int k = 0; k < pn->n_in && pn->n_out > 0; k++) {
            int a = tti_root(p, pn->in[k]), b = tti_root(p, pn->out);
            tti_value *in = &p->values[a], *out = &p->values[b];
            if (a == b || in->memory != TTI_ARENA || out->memory != TTI_ARENA || in->bytes == 0 ||
                out->bytes == 0 || in->device != out->device || in->is_mapped != out->is_mapped ||
                !tti_reads(pn, k) || n-- > 0)
                continue;
            out->offset = in->offset;
            return true;
        }
    }
    return false;
}

static bool leave_the_arena(tti_plan *p, int n)
{
    for (int64_t i = 0; i < p->n_values; i++) {
        tti_value *v = &p->values[i];
        if (v->root != (int)i || v->memory != TTI_ARENA || v->first < 0 || v->bytes == 0 ||
            p->nodes[v->node].is_dropped || n-- > 0)
            continue;
        v->offset += p->devices[v->device].arena_bytes;
        return true;
    }
    return false;
}

static bool other_address(tti_plan *p, int n)
{
    // Of arguments, not of scratch: the first input or output of the n-th entry with one call.
    for (int d = 0; d < p->top->n_devices; d++)
        for (int e = 0; e < p->exe.lists[d].n_entries; e++) {
            const tti_entry *en = &p->exe.lists[d].entries[e];
            if (en->n_calls != 1 || en->calls[0].launch.n_out == 0)
                continue;
            for (int64_t k = 0; k < p->exe.n_patches; k++)
                if (p->exe.patches[k].at == (void *)&en->calls[0].launch.out[0].data && n-- == 0) {
                    p->exe.patches[k].offset += 64;
                    return true;
                }
        }
    return false;
}

static bool copy_other_bytes(tti_plan *p, int n)
{
    tti_pnode *pn = NULL;
    for (int pos = 0; pos < p->n_order && pn == NULL; pos++) {
        tti_pnode *at = &p->nodes[p->order[pos]];
        if (at->kind == TTI_RECV && at->transfer == NULL && at->n_in > 0 && n-- == 0)
            pn = at;
    }
    if (pn == NULL)
        return false;
    p->values[pn->out].bytes /= 2;
    return true;
}

// The n-th node with a piece of a collective.
static tti_pnode *nth_piece(tti_plan *p, int n)
{
    for (int pos = 0; pos < p->n_order; pos++) {
        tti_pnode *pn = &p->nodes[p->order[pos]];
        if (pn->what != NULL && pn->piece >= 0 && pn->n_covered == 0 && n-- == 0)
            return pn;
    }
    return NULL;
}

static bool other_piece(tti_plan *p, int n)
{
    tti_pnode *pn = nth_piece(p, n / 3); // there are few
    if (pn != NULL)
        pn->piece = (pn->piece + 1) % pn->what->n;
    return pn != NULL;
}

static bool no_piece(tti_plan *p, int n)
{
    tti_pnode *pn = nth_piece(p, n / 3); // there are few
    if (pn != NULL)
        pn->piece = pn->what->n;
    return pn != NULL;
}

const plan_change plan_changes[] = {
    {"read a value that is not there", read_nothing, "reads"},
    {"read a later value", read_itself, "order reads update"},
    {"make a value twice", make_twice, "makes reads"},
    {"bytes that do not fit the elements", wrong_bytes, "size"},
    {"drop a node that is needed", drop_node, "reads order messages"},
    {"a device that is not there", no_device, "device"},
    {"read another device's memory", skip_receive, "device"},
    {"another message", other_message, "messages"},
    {"messages of other bytes", other_message_bytes, "messages"},
    {"messages to oneself", other_peer, "messages"},
    {"lanes left out", lose_lanes, "lanes"},
    {"lanes counted twice", count_lanes_twice, "lanes"},
    {"a reader before its maker", swap_order, "order update"},
    {"twice in the order", order_twice, "order"},
    {"an update before its readers", update_early, "order update"},
    {"a list out of order", list_out_of_order, "list wait"},
    {"an entry left out", leave_out, "list wait"},
    {"a device that waits for nobody", wait_for_nothing, "race memory"},
    {"a wait for an entry that is not there", wait_for_another, "wait"},
    {"a flag that is never set", never_signal, "wait"},
    {"two that wait for each other", wait_in_a_circle, "deadlock race"},
    {"two values in one place", share_memory, "memory"},
    {"a value outside the arena", leave_the_arena, "memory"},
    {"an argument elsewhere", other_address, "address"},
    {"a copy of some of the bytes", copy_other_bytes, "size"},
    {"another member's piece", other_piece, "collective"},
    {"a piece that there is not", no_piece, "collective"},
    {NULL, NULL, NULL},
};
