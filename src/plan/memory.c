/*
 * memory.c - lifetimes in the global order, then offsets in each device's arena.
 *
 * A root lives from the node that makes it to the last that reads it or a view of it. An output
 * takes over the memory of an input that dies there when the op allows it. Offsets: largest first,
 * each at the smallest gap among those it shares time with that holds it; once sorted by size, once
 * by size times lifetime, and the smaller arena is kept.
 */
#include "op/op.h"
#include "plan/plan.h"
#include <stdlib.h>
#include <string.h>

#define ALIGN      64
#define ALIGN_CARD 256 // on devices with streams: libraries want their workspace so
// Small values that another device reads keep their memory to the end: whoever took it next would
// have to wait for that device, again and again where there are many.
#define SENT_BYTES 4096

typedef struct block {
    int value;
    int first, last;
    size_t bytes, offset;
} block;

static size_t aligned(size_t bytes, size_t align)
{
    return (bytes + align - 1) & ~(align - 1);
}

// ---- lifetimes -------------------------------------------------------------------------------

// The scratch of a node in a run is its own from the run's first node to its last.
static void scratch_lifetimes(tti_plan *p, const int *scratch, const int *run)
{
    int lead[TTI_MAX_DEVICES], end[TTI_MAX_DEVICES]; // the run of a device that is being walked
    for (int d = 0; d < p->top->n_devices; d++)
        lead[d] = -1;
    for (int pos = p->n_order - 1; pos >= 0; pos--) {
        int i = p->order[pos], d = p->nodes[i].device;
        if (run[i] >= 0 && run[i] != lead[d]) {
            lead[d] = run[i];
            end[d] = pos;
        }
        if (scratch[i] < 0)
            continue;
        tti_value *s = &p->values[scratch[i]];
        s->first = run[i] >= 0 ? p->nodes[run[i]].position : pos;
        s->last = run[i] >= 0 ? end[d] : pos;
    }
}

static void lifetimes(tti_plan *p)
{
    for (int64_t i = 0; i < p->n_values; i++)
        p->values[i].first = p->values[i].last = -1;
    for (int pos = 0; pos < p->n_order; pos++) {
        const tti_pnode *pn = &p->nodes[p->order[pos]];
        for (int k = 0; k < pn->n_in; k++)
            if (tti_reads(pn, k))
                p->values[tti_root(p, pn->in[k])].last = pos;
        for (int k = 0; k < pn->n_out; k++) {
            tti_value *root = &p->values[tti_root(p, pn->out + k)];
            root->first = root->first < 0 ? pos : root->first;
            root->last = TTI_MAX(root->last, pos);
        }
    }
    for (int64_t u = 0; u < p->n_units; u++) { // nobody waits for what nobody reads
        for (int k = 0; k < p->gangs[p->units[u].gang].n; k++) {
            const tti_pnode *pn = &p->nodes[p->units[u].first + k];
            tti_value *root = &p->values[tti_root(p, pn->out)];
            if (!pn->is_dropped && root->last == pn->position)
                root->last = p->n_order;
        }
    }
    for (int i = 0; i < p->n_feeds; i++) { // copied before all else where there are streams
        tti_value *root = &p->values[tti_root(p, p->feeds[i])];
        if (root->first >= 0 && tti_has_streams(p->top->devices[root->device]))
            root->first = 0;
    }
    for (int64_t i = 0; i < p->n_values; i++) {
        tti_value *v = &p->values[i];
        bool lasts = v->keep || (v->is_sent && v->bytes <= SENT_BYTES);
        if (lasts && v->first >= 0)
            v->last = p->n_order;
    }
}

/*
 * In a pipeline what one stage sends is read when the other gets round to it, which may be late.
 * Its memory is left alone for two rounds of slots, so that the sender need not wait to go on.
 */
static void linger(tti_plan *p)
{
    for (int64_t i = 0; i < p->n_values && p->mesh.is_staged; i++) {
        tti_value *v = &p->values[i];
        if (!v->is_sent || v->first < 0 || v->last >= p->n_order)
            continue;
        tti_order_key until = tti_key_slots(p->nodes[p->order[v->last]].key, 2 * p->mesh.n_local);
        while (v->last + 1 < p->n_order &&
               tti_key_before(p->nodes[p->order[v->last + 1]].key, until))
            v->last++;
    }
}

// Is output o of a chain the first of a member?
static bool is_main(const tti_chain *c, int o)
{
    bool is = false;
    for (int m = 0; m < c->n; m++)
        is |= c->members[m].out == o;
    return is;
}

// Does a member of a chain that reads input k let its output take it over?
static bool is_given(const tti_chain *c, int k)
{
    bool is = false;
    for (int m = 0; m < c->n; m++)
        for (int i = 0; i < c->members[m].n_in; i++)
            is |= c->members[m].in[i] == k && (c->members[m].node->op->in_place >> i & 1u) != 0;
    return is;
}

// May output o of this node take the memory of input k?
static bool can_reuse(const tti_plan *p, const tti_pnode *pn, int o, int k, int pos)
{
    const tti_value *out = &p->values[pn->out + o], *as = &p->values[pn->in[k]];
    int root = tti_root(p, pn->in[k]);
    const tti_value *in = &p->values[root];
    if (in->memory != TTI_ARENA || in->last != pos || in->keep || in->is_sent ||
        in->bytes != out->bytes || in->device != out->device || out->bytes == 0)
        return false;
    if (pn->kind == TTI_FUSED)
        return tt_dtype_bytes(as->dtype) == tt_dtype_bytes(out->dtype) && as->count == out->count;
    bool one_look = true; // of all inputs only this one is in that memory
    for (int i = 0; i < pn->n_in; i++)
        one_look &= i == k || tti_root(p, pn->in[i]) != root;
    if (pn->kind == TTI_CHAINED)
        return one_look && is_main(pn->chain, o) && is_given(pn->chain, k) &&
               as->dtype == out->dtype && tti_shape_equal(&as->shape, &out->shape);
    if (pn->kind != TTI_OP || o > 0 || (pn->node->op->in_place >> k & 1u) == 0 ||
        (tti_needs_widening(pn->node) && !tti_has_streams(p->top->devices[pn->device])))
        return false;
    return one_look || (pn->node->op->flags & TT_OP_POINTWISE) != 0;
}

static void take_over(tti_plan *p, const tti_pnode *pn, int o, int pos)
{
    if (tti_root(p, pn->out + o) != pn->out + o || p->values[pn->out + o].memory != TTI_ARENA)
        return;
    for (int k = 0; k < TTI_MIN(pn->n_in, 32); k++) {
        if (!can_reuse(p, pn, o, k, pos))
            continue;
        tti_value *out = &p->values[pn->out + o], *root = &p->values[tti_root(p, pn->in[k])];
        // An output that nobody reads ends here too; another must not take the same memory.
        root->last = TTI_MAX(out->last, pos + (pn->kind == TTI_CHAINED));
        root->keep |= out->keep;
        root->is_sent |= out->is_sent;
        out->root = tti_root(p, pn->in[k]);
        out->first = -1;
        return;
    }
}

static void reuse_in_place(tti_plan *p)
{
    for (int pos = 0; pos < p->n_order; pos++) {
        const tti_pnode *pn = &p->nodes[p->order[pos]];
        for (int o = 0; o < (pn->kind == TTI_CHAINED ? pn->n_out : TTI_MIN(pn->n_out, 1)); o++)
            take_over(p, pn, o, pos);
    }
}

// ---- offsets ---------------------------------------------------------------------------------

static int by_size(const void *a, const void *b)
{
    const block *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->value - y->value;
}

static int by_area(const void *a, const void *b)
{
    const block *x = a, *y = b;
    double ax = (double)x->bytes * (x->last - x->first + 1);
    double ay = (double)y->bytes * (y->last - y->first + 1);
    if (ax != ay)
        return ax > ay ? -1 : 1;
    return x->value - y->value;
}

static int by_offset(const void *a, const void *b)
{
    const block *x = *(block *const *)a, *y = *(block *const *)b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x->value - y->value;
}

/*
 * Blocks that have their offset, by time: positions in the order are cut into equal parts, and each
 * has a list of the blocks that are alive in it.
 */
typedef struct calendar {
    int n_parts, width;  // positions of a part
    int *head;           // by part: its last link; -1
    int *block, *before; // links: a block, and the link before it
    int64_t n, cap_block, cap_before;
    int *seen; // by block: the block that it was last looked at for, plus 1
    block **near;
} calendar;

static tt_status calendar_open(tt_ctx *ctx, int n, int n_order, calendar *c)
{
    *c = (calendar){.n_parts = TTI_MIN(TTI_MAX(n / 16, 1), 512)};
    c->width = n_order / c->n_parts + 1;
    c->head = tti_alloc(ctx, sizeof(int) * (size_t)c->n_parts);
    c->seen = tti_alloc(ctx, sizeof(int) * (size_t)n);
    c->near = tti_alloc(ctx, sizeof(block *) * (size_t)n);
    return c->head == NULL || c->seen == NULL || c->near == NULL ? TT_ENOMEM : TT_OK;
}

static void calendar_clear(calendar *c, int n)
{
    for (int i = 0; i < c->n_parts; i++)
        c->head[i] = -1;
    memset(c->seen, 0, sizeof(int) * (size_t)n);
    c->n = 0;
}

static void calendar_close(tt_ctx *ctx, calendar *c)
{
    tti_free(ctx, c->head);
    tti_free(ctx, c->block);
    tti_free(ctx, c->before);
    tti_free(ctx, c->seen);
    tti_free(ctx, c->near);
}

static tt_status calendar_add(tt_ctx *ctx, calendar *c, const block *b, int i)
{
    for (int part = b->first / c->width; part <= b->last / c->width; part++) {
        if (!tti_grow(ctx, &c->block, &c->cap_block, c->n + 1, sizeof(int)) ||
            !tti_grow(ctx, &c->before, &c->cap_before, c->n + 1, sizeof(int)))
            return TT_ENOMEM;
        c->block[c->n] = i;
        c->before[c->n] = c->head[part];
        c->head[part] = (int)c->n++;
    }
    return TT_OK;
}

// Those that share time with block i, by offset, in c->near; how many.
static int calendar_find(calendar *c, block *blocks, int i)
{
    const block *b = &blocks[i];
    int n = 0;
    for (int part = b->first / c->width; part <= b->last / c->width; part++) {
        for (int at = c->head[part]; at >= 0; at = c->before[at]) {
            block *o = &blocks[c->block[at]];
            if (c->seen[c->block[at]] == i + 1 || o->last < b->first || o->first > b->last)
                continue;
            c->seen[c->block[at]] = i + 1;
            c->near[n++] = o;
        }
    }
    qsort(c->near, (size_t)n, sizeof(*c->near), by_offset);
    return n;
}

// Gives every block an offset in the order they stand; *total becomes the arena's size.
static tt_status assign(tt_ctx *ctx, calendar *c, block *blocks, int n, size_t align, size_t *total)
{
    *total = 0;
    calendar_clear(c, n);
    for (int i = 0; i < n; i++) {
        block *b = &blocks[i];
        size_t at = 0, best = SIZE_MAX, best_gap = SIZE_MAX;
        int busy = calendar_find(c, blocks, i);
        for (int k = 0; k < busy; k++) {
            const block *o = c->near[k];
            if (o->offset >= at + b->bytes && o->offset - at < best_gap) {
                best = at;
                best_gap = o->offset - at;
            }
            at = TTI_MAX(at, aligned(o->offset + o->bytes, align));
        }
        b->offset = best != SIZE_MAX ? best : at;
        *total = TTI_MAX(*total, b->offset + b->bytes);
        TT_TRY(calendar_add(ctx, c, b, i));
    }
    return TT_OK;
}

static size_t most_alive(const block *blocks, int n, int n_order, int64_t *change)
{
    memset(change, 0, sizeof(*change) * (size_t)(n_order + 2));
    for (int i = 0; i < n; i++) {
        change[blocks[i].first] += (int64_t)blocks[i].bytes;
        change[blocks[i].last + 1] -= (int64_t)blocks[i].bytes;
    }
    int64_t alive = 0, most = 0;
    for (int i = 0; i <= n_order; i++) {
        alive += change[i];
        most = TTI_MAX(most, alive);
    }
    return (size_t)most;
}

// What processes that share memory read of each other's lies apart from all else.
static void mark_near(tti_plan *p)
{
    for (int i = 0; i < p->n_order && p->top->n_tasks > 1; i++) {
        const tti_pnode *pn = &p->nodes[p->order[i]];
        for (int k = 0; k < pn->n_in; k++) {
            tti_value *root = &p->values[tti_root(p, pn->in[k])];
            root->is_near |=
                root->memory == TTI_ARENA && tti_reads(pn, k) &&
                p->top->devices[root->device]->task != p->top->devices[pn->device]->task;
        }
    }
}

// Lists the values of every arena.
static tt_status index_arenas(tti_plan *p)
{
    int n_arenas = 2 * p->top->n_devices;
    int *values = tti_plan_alloc(p, sizeof(int) * (size_t)(p->n_values + 1));
    int *start = tti_plan_alloc(p, sizeof(int) * (size_t)(n_arenas + 2));
    if (values == NULL || start == NULL)
        return TT_ENOMEM;
    for (int pass = 0; pass < 2; pass++) { // counted, then put down
        for (int64_t i = 0; i < p->n_values; i++) {
            const tti_value *v = &p->values[i];
            if (v->first < 0 || v->memory != TTI_ARENA)
                continue;
            int arena = 2 * v->device + v->is_near;
            if (pass == 0)
                start[arena + 2]++;
            else
                values[start[arena + 1]++] = (int)i;
        }
        for (int a = 0; a < n_arenas && pass == 0; a++)
            start[a + 2] += start[a + 1];
    }
    p->arena_values = values;
    p->arena_start = start;
    return TT_OK;
}

static tt_status plan_arena(tti_plan *p, int arena)
{
    const int *list = p->arena_values + p->arena_start[arena];
    int n = 0, max = p->arena_start[arena + 1] - p->arena_start[arena], device = arena / 2;
    if (max == 0)
        return TT_OK;
    size_t align = tti_has_streams(p->top->devices[device]) ? ALIGN_CARD : ALIGN;
    size_t size_a = 0, size_b = 0;
    calendar c = {.n_parts = 0};
    block *a = tti_alloc(p->ctx, sizeof(*a) * 2 * (size_t)max), *b = a + max;
    int64_t *change = tti_alloc(p->ctx, sizeof(*change) * (size_t)(p->n_order + 2));
    tt_status st =
        a == NULL || change == NULL ? TT_ENOMEM : calendar_open(p->ctx, max, p->n_order, &c);
    for (int i = 0; st == TT_OK && i < max; i++) {
        const tti_value *v = &p->values[list[i]];
        if (v->bytes > 0)
            a[n++] = (block){list[i], v->first, v->last, v->bytes, 0};
    }
    if (st == TT_OK) {
        memcpy(b, a, sizeof(*a) * (size_t)n);
        qsort(a, (size_t)n, sizeof(*a), by_size);
        qsort(b, (size_t)n, sizeof(*b), by_area);
        st = assign(p->ctx, &c, a, n, align, &size_a);
    }
    if (st == TT_OK)
        st = assign(p->ctx, &c, b, n, align, &size_b);
    if (st == TT_OK) {
        const block *best = size_b < size_a ? b : a;
        for (int i = 0; i < n; i++)
            p->values[best[i].value].offset = best[i].offset;
        p->devices[device].near_bytes += arena % 2 != 0 ? TTI_MIN(size_a, size_b) : 0;
        p->devices[device].arena_bytes += TTI_MIN(size_a, size_b);
        p->devices[device].lower_bound += most_alive(a, n, p->n_order, change);
    }
    calendar_close(p->ctx, &c);
    tti_free(p->ctx, a);
    tti_free(p->ctx, change);
    return st;
}

tt_status tti_plan_memory(tti_plan *p, const int *scratch, const int *run)
{
    lifetimes(p);
    scratch_lifetimes(p, scratch, run);
    linger(p);
    reuse_in_place(p);
    mark_near(p);
    TT_TRY(index_arenas(p));
    for (int a = 0; a < 2 * p->top->n_devices; a++)
        TT_TRY(plan_arena(p, a));
    return tti_plan_usage(p, scratch);
}

// ---- limits ----------------------------------------------------------------------------------

// Memory that a node's kernel works in, not one of its outputs.
static bool is_scratch(const tti_plan *p, int value)
{
    const tti_pnode *maker = &p->nodes[p->values[value].node];
    return value < maker->out || value >= maker->out + maker->n_out;
}

// Processes that share this one's memory, bit by rank.
static uint64_t own_near(const tti_topology *top)
{
    for (int d = 0; d < top->n_devices; d++)
        if (!top->devices[d]->is_away)
            return top->devices[d]->near;
    return 0;
}

// Does the device take from what all without a limit share?
static bool is_host(const tti_plan *p, int device)
{
    const tti_device *d = p->top->devices[device];
    bool here = !d->is_away || (p->top->n_tasks > 1 && (own_near(p->top) >> d->task & 1u) != 0);
    return p->top->limit[device] == 0 && d->backend->host_memory && here;
}

static bool is_of(const tti_plan *p, const tti_value *v, int device)
{
    return device >= 0 ? v->device == device : is_host(p, v->device);
}

// The few largest values of a device (-1: of all that share the host's memory), each once.
static void add_largest(tti_text *t, const tti_plan *p, int device)
{
    size_t below = SIZE_MAX;
    for (int row = 0; row < 8;) {
        size_t top = 0;
        for (int64_t i = 0; i < p->n_values; i++) {
            const tti_value *v = &p->values[i];
            if (is_of(p, v, device) && v->memory != TTI_CONSTANT && v->bytes < below &&
                v->bytes > top && (v->first >= 0 || v->memory == TTI_VARIABLE))
                top = v->bytes;
        }
        if (top == 0)
            break;
        for (int64_t i = 0; i < p->n_values && row < 8; i++) {
            const tti_value *v = &p->values[i];
            if (!is_of(p, v, device) || v->bytes != top || v->root != (int)i ||
                v->memory == TTI_CONSTANT || (v->first < 0 && v->memory == TTI_ARENA))
                continue;
            row++;
            if (is_scratch(p, (int)i)) {
                tti_text_add(t, "\n  %12zu  %s scratch", v->bytes, v->tensor->node->name);
                continue;
            }
            char shape[TT_SHAPE_TEXT];
            tti_text_add(t, "\n  %12zu  %s %s %s%s", v->bytes, v->tensor->node->name,
                         tt_dtype_name(v->dtype), tt_shape_text(&v->shape, shape),
                         v->memory == TTI_VARIABLE ? " variable" : "");
        }
        below = top;
    }
}

static tt_status refuse_with(tti_plan *p, tti_text *t)
{
    char *text = tti_text_take(t);
    tt_status st = TT_FAIL(p->ctx, TT_ELIMIT, "%s", text == NULL ? "a limit is too small" : text);
    tti_free(p->ctx, text);
    return st;
}

static tt_status refuse(tti_plan *p, int device, size_t need, size_t variables)
{
    const tti_device *d = p->top->devices[device];
    tti_text t = {.ctx = p->ctx};
    char size[32], limit[32];
    tti_size_text((double)need, size);
    tti_size_text((double)p->top->limit[device], limit);
    tti_text_add(&t,
                 "%s: this plan needs %s (%zu bytes: variables %zu, activations %zu), more than "
                 "its limit of %s (%zu bytes); the largest, in bytes:",
                 d->name, size, need, variables, need - variables, limit, p->top->limit[device]);
    add_largest(&t, p, device);
    return refuse_with(p, &t);
}

static tt_status refuse_host(tti_plan *p, size_t need, size_t variables)
{
    tti_text t = {.ctx = p->ctx};
    char size[32], memory[32], list[TTI_DEVICE_LIST];
    tti_size_text((double)need, size);
    tti_size_text((double)p->top->host_memory, memory);
    tti_text_add(&t,
                 "%s: this plan needs %s (%zu bytes: variables %zu, activations %zu), more than "
                 "the %s (%zu bytes) %s; a limit per device, such as cpu:0@%zuGiB, replaces that; "
                 "the largest, in bytes:",
                 tti_device_list(p->top, list), size, need, variables, need - variables, memory,
                 p->top->host_memory,
                 p->top->is_host_group ? "that this process's control group allows"
                                       : "of memory that this machine has",
                 (need >> 30) + 1);
    add_largest(&t, p, -1);
    return refuse_with(p, &t);
}

tt_status tti_plan_check_limits(tti_plan *p, const size_t *new_variables)
{
    size_t host = 0, host_variables = 0;
    for (int i = 0; i < p->top->n_devices; i++) {
        const tti_device *d = p->top->devices[i];
        size_t variables = atomic_load(&d->variables) + new_variables[i];
        // What other plans have beside their arenas, and this one, which may have its parcel.
        size_t fixed = atomic_load(&d->fixed) + p->devices[i].fixed_bytes;
        fixed -= p->parcels[i].data != NULL ? p->parcels[i].bytes : 0;
        size_t need = variables + p->devices[i].arena_bytes + fixed;
        if (p->top->limit[i] > 0 && need > p->top->limit[i])
            return refuse(p, i, need, variables);
        host += is_host(p, i) ? need : 0;
        host_variables += is_host(p, i) ? variables : 0;
    }
    p->host_need = host;
    if (p->top->host_memory > 0 && host > p->top->host_memory)
        return refuse_host(p, host, host_variables);
    return TT_OK;
}
