/*
 * verify_run.c - the rules on the devices' lists: is everything done before it is needed, and is no
 * memory used for two things at once?
 *
 * The lists are walked as devices would, each as far as its waits allow. For every entry a clock
 * says, for each device, up to which entry all is done when it begins: what an entry needs must be
 * within its clock. Joint work runs beside its device's list, so it has a clock of its own, and it
 * is done when every device of its group has begun it.
 */
#include "device/device.h"
#include "plan/verify.h"
#include <stdlib.h>
#include <string.h>

typedef struct walk {
    const tti_plan *p;
    int n;           // devices
    int *entry;      // by plan node: its entry; -1
    int *base;       // by device: its first entry among all
    int *clock;      // by entry: 2 n numbers, when it begins: entries done, joint ones done
    int *at;         // by device: entries that have begun
    int *sender;     // by letter: plan node
    int *unit_begun; // by unit: devices that have begun it
} walk;

static const tti_entry *entry_of(const walk *w, int pnode)
{
    const tti_pnode *pn = &w->p->nodes[pnode];
    return &w->p->devices[pn->device].entries[w->entry[pnode]];
}

static int *clock_of(const walk *w, int device, int entry)
{
    return &w->clock[(int64_t)(w->base[device] + entry) * 2 * w->n];
}

static bool is_joint(const tti_plan *p, const tti_entry *en)
{
    return p->nodes[en->pnode].kind == TTI_JOINT;
}

// Takes over what another clock knows.
static void learn(const walk *w, int *clock, const int *from)
{
    for (int i = 0; i < 2 * w->n; i++)
        clock[i] = TTI_MAX(clock[i], from[i]);
}

// Is the entry done for whoever has this clock?
static bool is_done(const walk *w, const int *clock, int device, int entry)
{
    bool joint = is_joint(w->p, &w->p->devices[device].entries[entry]);
    return clock[(joint ? w->n : 0) + device] > entry;
}

// ---- walking ---------------------------------------------------------------------------------

// The plan node of the entry that an entry's letters come from; -1: it receives none.
static int letter_from(const walk *w, const tti_entry *en)
{
    const tti_pnode *pn = &w->p->nodes[en->pnode];
    return pn->kind == TTI_RECV && pn->mail != NULL ? w->sender[pn->mail->edge] : -1;
}

// Has it begun, and has joint work begun everywhere?
static bool has_ended(const walk *w, int device, int entry)
{
    const tti_pnode *pn = &w->p->nodes[w->p->devices[device].entries[entry].pnode];
    if (w->at[device] <= entry)
        return false;
    return pn->kind != TTI_JOINT ||
           w->unit_begun[pn->unit] == w->p->gangs[w->p->units[pn->unit].gang].n;
}

// What is known once an entry has ended.
static void learn_end(const walk *w, int *clock, int device, int entry)
{
    const tti_plan *p = w->p;
    const tti_pnode *pn = &p->nodes[p->devices[device].entries[entry].pnode];
    learn(w, clock, clock_of(w, device, entry));
    if (pn->kind != TTI_JOINT) {
        clock[device] = TTI_MAX(clock[device], entry + 1);
        return;
    }
    const tti_unit *u = &p->units[pn->unit];
    for (int k = 0; k < p->gangs[u->gang].n; k++) {
        int other = p->gangs[u->gang].device[k], e = w->entry[u->first + k];
        learn(w, clock, clock_of(w, other, e));
        clock[w->n + other] = TTI_MAX(clock[w->n + other], e + 1);
    }
}

// Begins a device's next entry if its waits allow.
static bool begin_next(walk *w, int device)
{
    const tti_plan *p = w->p;
    int e = w->at[device], from;
    const tti_entry *en = &p->devices[device].entries[e];
    int *clock = clock_of(w, device, e);
    for (int k = 0; k < en->n_waits; k++)
        if (!has_ended(w, en->waits[k].entry_device, en->waits[k].entry))
            return false;
    from = letter_from(w, en);
    if (from >= 0 && !has_ended(w, p->nodes[from].device, w->entry[from]))
        return false;
    if (e > 0 && !is_joint(p, en - 1))
        learn_end(w, clock, device, e - 1);
    else if (e > 0)
        learn(w, clock, clock_of(w, device, e - 1));
    clock[device] = e; // all before, joint work apart
    for (int k = 0; k < en->n_waits; k++)
        learn_end(w, clock, en->waits[k].entry_device, en->waits[k].entry);
    if (from >= 0)
        learn_end(w, clock, p->nodes[from].device, w->entry[from]);
    if (is_joint(p, en))
        w->unit_begun[p->nodes[en->pnode].unit]++;
    w->at[device]++;
    return true;
}

static tt_status report_stuck(const walk *w, int device)
{
    const tti_plan *p = w->p;
    const tti_entry *en = &p->devices[device].entries[w->at[device]];
    for (int k = 0; k < en->n_waits; k++) {
        const tti_wait *wait = &en->waits[k];
        if (!has_ended(w, wait->entry_device, wait->entry))
            return tti_broken(p, "deadlock", en->pnode,
                              "waits for entry %d of %s, which waits for "
                              "it in turn",
                              wait->entry, p->top->devices[wait->entry_device]->name);
    }
    return tti_broken(p, "deadlock", en->pnode, "waits for a letter that waits for it in turn");
}

static tt_status walk_lists(walk *w)
{
    const tti_plan *p = w->p;
    bool moved = true;
    while (moved) {
        moved = false;
        for (int d = 0; d < w->n; d++)
            while (w->at[d] < p->devices[d].n_entries && begin_next(w, d))
                moved = true;
    }
    for (int d = 0; d < w->n; d++)
        if (w->at[d] < p->devices[d].n_entries)
            return report_stuck(w, d);
    return TT_OK;
}

// ---- lists and waits -------------------------------------------------------------------------

static tt_status check_wait(const tti_plan *p, const tti_entry *en, int device,
                            const tti_wait *wait)
{
    if (wait->entry_device < 0 || wait->entry_device >= p->top->n_devices || wait->entry < 0 ||
        wait->entry >= p->devices[wait->entry_device].n_entries)
        return tti_broken(p, "wait", en->pnode,
                          "waits for entry %d of device %d, which is not there", wait->entry,
                          wait->entry_device);
    const tti_entry *maker = &p->devices[wait->entry_device].entries[wait->entry];
    bool own = wait->entry_device == device;
    if (own ? !is_joint(p, maker) : wait->flag == NULL || wait->flag != maker->done)
        return tti_broken(p, "wait", en->pnode, "waits for entry %d of %s, which does not tell it",
                          wait->entry, p->top->devices[wait->entry_device]->name);
    return TT_OK;
}

static tt_status check_lists(walk *w)
{
    const tti_plan *p = w->p;
    for (int d = 0; d < w->n; d++) {
        int before = -1;
        for (int e = 0; e < p->devices[d].n_entries; e++) {
            const tti_entry *en = &p->devices[d].entries[e];
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
static tt_status check_joint(const walk *w)
{
    const tti_plan *p = w->p;
    for (int g = 0; g < p->n_gangs; g++) {
        for (int k = 0; k < p->gangs[g].n; k++) {
            int last = -1, before = -1; // of the first device, and of this one
            for (int pos = 0; pos < p->n_order; pos++) {
                const tti_pnode *pn = &p->nodes[p->order[pos]];
                if (pn->kind != TTI_JOINT || p->units[pn->unit].gang != g ||
                    p->order[pos] != p->units[pn->unit].first + k)
                    continue;
                int lead = w->entry[p->units[pn->unit].first], own = w->entry[p->order[pos]];
                if (lead <= last || own <= before)
                    return tti_broken(p, "joint", p->order[pos],
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
static tt_status check_done(const walk *w, int from, int to)
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
    const int *clock = clock_of(w, p->nodes[to].device, w->entry[to]);
    if (from == to || is_done(w, clock, p->nodes[from].device, w->entry[from]))
        return TT_OK;
    return tti_broken(p, "race", to, "may begin before node %d on %s has ended", from,
                      p->top->devices[p->nodes[from].device]->name);
}

static tt_status check_needs(const walk *w)
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

// ---- memory ----------------------------------------------------------------------------------

typedef struct use {
    int root, node;
} use;

typedef struct region {
    int root;
    size_t begin, end;
    int first; // position of who writes it first; -1: before all
    int uses, n_uses;
} region;

static int by_root(const void *a, const void *b)
{
    const use *x = a, *y = b;
    return x->root != y->root ? x->root - y->root : x->node - y->node;
}

static int by_begin(const void *a, const void *b)
{
    const region *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->root - y->root;
}

// Every use of a region comes before the other's first.
static tt_status check_apart(const walk *w, const use *uses, const region *a, const region *b)
{
    const tti_plan *p = w->p;
    const region *early = a->first <= b->first ? a : b, *late = early == a ? b : a;
    int writer = uses[late->uses].node;
    for (int k = 1; k < late->n_uses; k++)
        if (p->nodes[uses[late->uses + k].node].position < p->nodes[writer].position)
            writer = uses[late->uses + k].node;
    const int *clock = clock_of(w, p->nodes[writer].device, w->entry[writer]);
    if (p->values[early->root].keep)
        return tti_broken(p, "memory", writer, "writes over value %d, which is fetched",
                          early->root);
    for (int k = 0; k < early->n_uses; k++) {
        int user = uses[early->uses + k].node;
        if (user == writer || !is_done(w, clock, p->nodes[user].device, w->entry[user]))
            return tti_broken(p, "memory", writer,
                              "writes value %d over value %d, which node %d may still use",
                              late->root, early->root, user);
    }
    return TT_OK;
}

static tt_status check_arena(const walk *w, const use *uses, region *r, int n, size_t bytes)
{
    const tti_plan *p = w->p;
    qsort(r, (size_t)n, sizeof(*r), by_begin);
    for (int i = 0; i < n; i++) {
        if (r[i].end > bytes)
            return tti_broken(p, "memory", p->values[r[i].root].node,
                              "has value %d up to byte %zu of %zu", r[i].root, r[i].end, bytes);
        for (int k = i + 1; k < n && r[k].begin < r[i].end; k++)
            TT_TRY(check_apart(w, uses, &r[i], &r[k]));
    }
    return TT_OK;
}

static int64_t add_use(const walk *w, use *uses, int64_t n, int value, int node)
{
    int root = tti_root(w->p, value);
    const tti_value *v = &w->p->values[root];
    if (v->memory == TTI_ARENA && v->bytes > 0)
        uses[n++] = (use){root, node};
    return n;
}

// All uses of arena memory by entries, by root; scratch is of one entry.
static int64_t list_uses(const walk *w, use *uses)
{
    const tti_plan *p = w->p;
    int64_t n = 0;
    for (int i = 0; i < p->n_nodes; i++) {
        const tti_pnode *pn = &p->nodes[i];
        if (pn->is_dropped || w->entry[i] < 0)
            continue;
        for (int k = 0; k < pn->n_in; k++)
            if (tti_reads(pn, k))
                n = add_use(w, uses, n, pn->in[k], i);
        for (int k = 0; k < pn->n_out; k++)
            n = add_use(w, uses, n, pn->out + k, i);
    }
    for (int64_t v = 0; v < p->n_values; v++) {
        const tti_pnode *pn = &p->nodes[p->values[v].node];
        bool scratch = p->values[v].root == v && (v < pn->out || v >= pn->out + pn->n_out);
        if (scratch && p->values[v].first >= 0 && w->entry[p->values[v].node] >= 0)
            n = add_use(w, uses, n, (int)v, p->values[v].node);
    }
    qsort(uses, (size_t)n, sizeof(*uses), by_root);
    return n;
}

// On devices with streams small and large feeds are there before anything else begins.
static bool is_early(const tti_plan *p, int root)
{
    const tti_value *v = &p->values[root];
    const tti_pnode *pn = &p->nodes[v->node];
    return pn->kind == TTI_OP && pn->node->op == &tti_op_feed &&
           tti_has_streams(p->top->devices[v->device]);
}

static tt_status check_memory(const walk *w)
{
    const tti_plan *p = w->p;
    int64_t max = p->n_values + 1, n_uses;
    for (int64_t i = 0; i < p->n_nodes; i++)
        max += p->nodes[i].n_in + p->nodes[i].n_out;
    use *uses = tti_alloc(p->ctx, sizeof(*uses) * (size_t)max);
    region *regions = tti_alloc(p->ctx, sizeof(*regions) * (size_t)(p->n_values + 1));
    tt_status st = uses == NULL || regions == NULL ? TT_ENOMEM : TT_OK;
    n_uses = st == TT_OK ? list_uses(w, uses) : 0;
    for (int a = 0; st == TT_OK && a < 2 * w->n; a++) {
        int n = 0;
        const tti_device_plan *dp = &p->devices[a / 2];
        for (int64_t i = 0, next; i < n_uses; i = next) {
            const tti_value *v = &p->values[uses[i].root];
            for (next = i; next < n_uses && uses[next].root == uses[i].root;)
                next++;
            if (v->device != a / 2 || v->is_near != (a % 2 != 0))
                continue;
            region *r = &regions[n++];
            *r = (region){.root = uses[i].root,
                          .begin = v->offset,
                          .end = v->offset + v->bytes,
                          .first = INT32_MAX,
                          .uses = (int)i,
                          .n_uses = (int)(next - i)};
            for (int64_t k = i; k < next; k++)
                r->first = TTI_MIN(r->first, p->nodes[uses[k].node].position);
            r->first = is_early(p, r->root) ? -1 : r->first;
        }
        size_t bytes = a % 2 != 0 ? dp->near_bytes : dp->arena_bytes - dp->near_bytes;
        st = check_arena(w, uses, regions, n, bytes);
    }
    tti_free(p->ctx, uses);
    tti_free(p->ctx, regions);
    return st;
}

// ---- addresses -------------------------------------------------------------------------------

static int by_at(const void *a, const void *b)
{
    const tti_patch *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

static tt_status check_argument(const tti_plan *p, const tti_patch *patches, int pnode, int value,
                                const tt_arg *arg)
{
    const tti_value *root = &p->values[tti_root(p, value)];
    tti_patch key = {.at = (void *)&arg->data};
    const tti_patch *found = bsearch(&key, patches, (size_t)p->n_patches, sizeof(*patches), by_at);
    if (root->memory != TTI_ARENA)
        return found == NULL ? TT_OK
                             : tti_broken(p, "address", pnode, "has value %d in an arena", value);
    int arena = root->device + (root->is_near ? TTI_MAX_DEVICES : 0);
    size_t offset = root->offset + p->values[value].skip;
    if (found == NULL || found->arena != arena || found->offset != offset)
        return tti_broken(p, "address", pnode,
                          "looks for value %d at %zu of arena %d; it is at %zu "
                          "of %d",
                          value, found == NULL ? 0 : found->offset,
                          found == NULL ? -1 : found->arena, offset, arena);
    return TT_OK;
}

// Entries of one call, whose arguments are the node's.
static tt_status check_addresses(const walk *w)
{
    const tti_plan *p = w->p;
    size_t bytes = sizeof(tti_patch) * (size_t)(p->n_patches + 1);
    tti_patch *patches = tti_alloc(p->ctx, bytes);
    tt_status st = patches == NULL ? TT_ENOMEM : TT_OK;
    if (st == TT_OK && p->n_patches > 0) {
        memcpy(patches, p->patches, sizeof(*patches) * (size_t)p->n_patches);
        qsort(patches, (size_t)p->n_patches, sizeof(*patches), by_at);
    }
    for (int i = 0; st == TT_OK && i < p->n_nodes; i++) {
        const tti_pnode *pn = &p->nodes[i];
        if (pn->is_dropped || w->entry[i] < 0 || entry_of(w, i)->n_calls != 1)
            continue;
        const tt_launch *l = &entry_of(w, i)->calls[0].launch;
        bool feed = pn->kind == TTI_OP && pn->node->op == &tti_op_feed;
        for (int k = 0; st == TT_OK && k < l->n_in && !feed; k++)
            if (tti_reads(pn, k))
                st = check_argument(p, patches, i, pn->in[k], &l->in[k]);
        for (int k = 0; st == TT_OK && k < l->n_out; k++)
            st = check_argument(p, patches, i, pn->out + k, &l->out[k]);
    }
    tti_free(p->ctx, patches);
    return st;
}

// ---- all of them -----------------------------------------------------------------------------

static tt_status prepare(walk *w)
{
    const tti_plan *p = w->p;
    int total = 0;
    w->n = p->top->n_devices;
    w->entry = tti_alloc(p->ctx, sizeof(int) * (size_t)(p->n_nodes + 1));
    w->base = tti_calloc(p->ctx, (size_t)w->n + 1, sizeof(int));
    w->at = tti_calloc(p->ctx, (size_t)w->n + 1, sizeof(int));
    w->sender = tti_alloc(p->ctx, sizeof(int) * (size_t)(p->n_letters + 1));
    w->unit_begun = tti_calloc(p->ctx, (size_t)p->n_units + 1, sizeof(int));
    if (w->entry == NULL || w->base == NULL || w->at == NULL || w->sender == NULL ||
        w->unit_begun == NULL)
        return TT_ENOMEM;
    for (int d = 0; d < w->n; d++) {
        w->base[d] = total;
        total += p->devices[d].n_entries;
    }
    w->clock = tti_calloc(p->ctx, (size_t)total * 2 * (size_t)w->n + 1, sizeof(int));
    for (int64_t i = 0; i < p->n_nodes; i++) {
        const tti_pnode *pn = &p->nodes[i];
        w->entry[i] = -1;
        if (!pn->is_dropped && pn->kind == TTI_SEND)
            for (int k = 0; k < pn->mail->n; k++)
                w->sender[pn->mail->edge + k] = (int)i;
    }
    return w->clock == NULL ? TT_ENOMEM : TT_OK;
}

tt_status tti_verify_lists(const tti_plan *p)
{
    walk w = {.p = p};
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
        st = check_memory(&w);
    if (st == TT_OK)
        st = check_addresses(&w);
    tti_free(p->ctx, w.entry);
    tti_free(p->ctx, w.base);
    tti_free(p->ctx, w.at);
    tti_free(p->ctx, w.sender);
    tti_free(p->ctx, w.unit_begun);
    tti_free(p->ctx, w.clock);
    return st;
}
