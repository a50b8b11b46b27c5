/*
 * verify.c - the checker of plans: plans of every layout hold its rules, and a plan that is changed
 * in any of many ways breaks the rule that the change is against.
 */
#include "plan/verify/verify.h"
#include "../test.h"
#include "device/device.h"
#include "fit_models.h"
#include "plan/spread/spread.h"
#include "strategy/strategy.h"
#include "train/compile.h"
#include <stdio.h>
#include <string.h>

typedef struct layout {
    const char *strategy;
    int hosts, devices;
    const tt_spread *spread;
} layout;

static const layout layouts[] = {
    {"single", 1, 1, NULL},
    {"mirrored", 1, 4, tt_spread(.update = TT_UPDATE_SHARD)},
    {"mirrored", 1, 3, tt_spread(.update = TT_UPDATE_EACH)},
    {"mirrored", 2, 2, tt_spread(.update = TT_UPDATE_SHARD)},
    {"mirrored", 2, 4, tt_spread(.update = TT_UPDATE_SHARD)},
    {"mirrored", 4, 1, NULL},
    {"central", 1, 3, NULL},
    {"central", 3, 1, NULL},
    {"pipeline", 1, 3, NULL},
    {"pipeline", 2, 2, tt_spread(.replicas = 2)},
};

typedef struct fixture {
    tt_ctx *ctx;
    tt_model *model;
    tti_topology top;
    tti_plan *plan;
} fixture;

// A plan of a model's training step, to be looked at.
static void open_fixture(fixture *f, const layout *l, fit_kind kind)
{
    *f = (fixture){.ctx = tt_open(.strategy = l->strategy, .spread = l->spread,
                                  .on_event = test_ignore_event)};
    tti_mesh mesh;
    f->model = fit_model(f->ctx, kind);
    CHECK_OK(tti_topology_make(f->ctx, &f->ctx->top, l->hosts, l->devices, &f->top));
    CHECK_OK(f->top.strategy->mesh(&f->top, f->model->step->graph, &mesh));
    const tti_step *s = f->model->step;
    tt_tensor **list = tti_step_targets(f->model);
    tti_plan_request r = {.targets = list,
                          .n_targets = s->n_fetches + s->n_targets,
                          .n_fetched = s->n_fetches,
                          .rows = 48,
                          .top = &f->top,
                          .mesh = &mesh,
                          .dry_run = true};
    CHECK_OK(tti_plan_new(s->graph, &r, &f->plan));
    tti_free(f->ctx, list);
}

static void close_fixture(fixture *f)
{
    tti_plan_free(f->plan);
    tti_topology_free(f->ctx, &f->top);
    CHECK_OK(tt_close(f->ctx));
}

TEST(plans_of_every_layout_hold_the_rules)
{
    for (int i = 0; i < TTI_COUNT(layouts) * FIT_N_KINDS; i++) {
        fixture f;
        open_fixture(&f, &layouts[i / FIT_N_KINDS], (fit_kind)(i % FIT_N_KINDS));
        CHECK_OK(tti_plan_verify(f.plan, TTI_STAGE_EMIT));
        close_fixture(&f);
    }
}

// ---- changes ---------------------------------------------------------------------------------

/*
 * A class of changes: makes the n-th such change to a plan, returns false if it has no n-th, and
 * says which rules may notice.
 */
typedef struct change {
    const char *name;
    bool (*make)(tti_plan *p, int n);
    const char *rules; // "reads", or several with spaces between
} change;

// The n-th live node that is of this kind (-1: any) and has so many inputs at least.
static tti_pnode *nth_node(tti_plan *p, int n, int kind, int n_in)
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
    tti_pnode *pn = nth_node(p, n, -1, 1);
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
    tti_pnode *a = nth_node(p, n, TTI_OP, 1), *b = nth_node(p, n + 1, TTI_OP, 1);
    if (b == NULL)
        return false;
    a->out = b->out;
    return true;
}

static bool wrong_bytes(tti_plan *p, int n)
{
    tti_pnode *pn = nth_node(p, n, TTI_OP, 1);
    if (pn == NULL || pn->n_out == 0)
        return false;
    p->values[pn->out].bytes += 4;
    return p->values[pn->out].count > 0;
}

static bool drop_node(tti_plan *p, int n)
{
    tti_pnode *pn = nth_node(p, n, -1, 0);
    if (pn == NULL)
        return false;
    pn->is_dropped = true;
    return true;
}

static bool no_device(tti_plan *p, int n)
{
    tti_pnode *pn = nth_node(p, n, -1, 0);
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

// ---- layouts ---------------------------------------------------------------------------------

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
    return nth_node(p, n / 6, TTI_COLLECT, 2); // they are few
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

static const change changes[] = {
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
};

// Is the rule that a message names one of these?
static bool is_named(const char *rules, const char *message)
{
    static const char begin[] = "wrong plan: ";
    const char *at = strstr(message, begin);
    char word[32] = "nothing";
    if (at != NULL)
        snprintf(word, sizeof(word), "%.*s", (int)strcspn(at + strlen(begin), ":"),
                 at + strlen(begin));
    return strstr(rules, word) != NULL;
}

#define PER_LAYOUT 6

// Makes changes of a class to plans of every layout.
static void run_change(const test_entry *e)
{
    const change *c = e->arg;
    int made = 0;
    for (int i = 0; i < TTI_COUNT(layouts) * PER_LAYOUT; i++) {
        fixture f;
        int n = i % PER_LAYOUT;
        open_fixture(&f, &layouts[i / PER_LAYOUT], n % 2 == 0 ? FIT_MLP : FIT_CNN);
        if (c->make(f.plan, n * 3)) {
            tt_status st = tti_plan_verify(f.plan, TTI_STAGE_EMIT);
            const char *text = tt_last_error(f.ctx).message;
            ck_assert_msg(st == TT_EASSERT && is_named(c->rules, text),
                          "%s, layout %d, number %d: status %d, '%s'", c->name, i / PER_LAYOUT, n,
                          st, text);
            tt_clear_error(f.ctx);
            made++;
        }
        close_fixture(&f);
    }
    ck_assert_msg(made >= 12, "only %d such changes could be made", made);
}

static test_entry entries[TTI_COUNT(changes)];
static char names[TTI_COUNT(changes)][96];

__attribute__((constructor)) static void register_changes(void)
{
    for (int i = 0; i < TTI_COUNT(changes); i++) {
        int n = snprintf(names[i], sizeof(names[i]), "plan_change_%s", changes[i].name);
        for (int k = 0; k < n; k++)
            if (names[i][k] == ' ' || names[i][k] == '\'')
                names[i][k] = '_';
        entries[i] =
            (test_entry){.file = __FILE__, .name = names[i], .run = run_change, .arg = &changes[i]};
        test_register(&entries[i]);
    }
}
