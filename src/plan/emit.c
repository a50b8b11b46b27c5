/*
 * emit.c - the last stage: entries with fixed addresses, waits and signals.
 *
 * First every node's kernel is prepared, which tells its scratch; then memory is planned; then
 * addresses, lists and waits are written. A node that is only a view, a variable or a constant has
 * no entry. Kernels without a bf16 or f16 form get their arguments widened to f32 into scratch before
 * and rounded after, by the cast op's own kernel.
 */
#include "plan/plan.h"
#include <stdio.h>
#include <string.h>

#define SMALL_NS  12000.0 // below this one thread is faster than waking the team
#define COPY_UNIT 65536
#define FEED_UNIT 16384

// An entry in the making.
typedef struct draft {
    tti_call *calls;
    int n_calls;
    size_t scratch_bytes;
    size_t *scratch_at; // per call: its scratch, its local
    size_t *local_at;
    size_t *wide_at; // per argument: its f32 form; SIZE_MAX: not widened
    bool has_entry;
} draft;

typedef struct emitter {
    tti_plan *p;
    const tti_plan_request *req;
    draft *drafts;   // by plan node
    int *scratch;    // by plan node: value
    int *entry;      // by plan node: index in its device's list; -1
    tti_flag **flag; // by plan node
} emitter;

int tti_isa_for(const tt_ctx *ctx, const tt_node *n)
{
    for (int i = 0; i < n->n_out; i++)
        if (n->outs[i]->dtype == TT_F64)
            return TT_ISA_F64;
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i]->dtype == TT_F64)
            return TT_ISA_F64;
    return ctx->isa;
}

static bool is_half(tt_dtype t)
{
    return t == TT_BF16 || t == TT_F16;
}

bool tti_needs_widening(const tt_node *n)
{
    if ((n->op->flags & (TT_OP_BITS | TT_OP_ANY_TYPE | TT_OP_VIEW | TT_OP_SOURCE)) != 0)
        return false;
    for (int i = 0; i < n->n_in; i++)
        if (is_half(n->in[i]->dtype))
            return true;
    for (int i = 0; i < n->n_out; i++)
        if (is_half(n->outs[i]->dtype))
            return true;
    return false;
}

void tti_arg_fill(tt_arg *a, const tti_plan *p, const tt_tensor *t, const tt_shape *bound)
{
    (void)p;
    *a = (tt_arg){.dtype = t->dtype, .shape = *bound, .open = tt_open_axis(&t->shape), .per = 0};
    a->count = tt_shape_count(bound);
    a->cols = bound->rank == 0 ? 1 : bound->dim[bound->rank - 1];
    a->rows = 1;
    for (int i = 0; i + 1 < bound->rank; i++)
        a->rows *= bound->dim[i];
    if (a->open >= 0)
        a->per = -t->shape.dim[a->open];
}

tt_status tti_prepare(tti_plan *p, const tt_node *n, int device, const tt_arg *in,
                      const tt_arg *out, tt_prep *prep)
{
    tti_device *d = device < 0 ? NULL : p->ctx->devices[device];
    const tt_kernel *k = &n->op->kernel[d == NULL ? TT_CPU : d->backend->id];
    *prep = (tt_prep){.ctx = p->ctx,
                      .node = n,
                      .attr = n->attr,
                      .in = in,
                      .out_args = out,
                      .n_in = n->n_in,
                      .n_out = n->n_out,
                      .lanes = &p->lanes,
                      .n_threads = d == NULL ? 1 : d->n_threads,
                      .isa = tti_isa_for(p->ctx, n),
                      .n_phases = 1};
    if (k->prepare != NULL)
        return k->prepare(prep);
    prep->units[0] = out->rows;
    prep->ns = (double)out->count;
    return TT_OK;
}

// ---- kernels of the executor itself ----------------------------------------------------------

// Feeds enter here: copied, subnormals flushed.
static tt_status feed_kernel(const tt_launch *l)
{
    size_t bytes = tt_dtype_bytes(l->out[0].dtype);
    char *to = (char *)l->out[0].data + (size_t)l->begin * bytes;
    memcpy(to, (const char *)l->in[0].data + (size_t)l->begin * bytes,
           (size_t)(l->end - l->begin) * bytes);
    tti_flush(l->out[0].dtype, to, l->end - l->begin);
    return TT_OK;
}

// Copies between devices of the host, and on one device. Units of COPY_UNIT bytes.
static tt_status copy_kernel(const tt_launch *l)
{
    size_t total = (size_t)l->out[0].count * tt_dtype_bytes(l->out[0].dtype);
    size_t begin = (size_t)l->begin * COPY_UNIT, end = TTI_MIN((size_t)l->end * COPY_UNIT, total);
    memcpy((char *)l->out[0].data + begin, (const char *)l->in[0].data + begin, end - begin);
    return TT_OK;
}

// ---- drafts ----------------------------------------------------------------------------------

static void set_threads(tti_call *c, int n_threads, double ns)
{
    int64_t most = 1;
    for (int i = 0; i < c->n_phases; i++)
        most = TTI_MAX(most, c->units[i]);
    c->n_threads = ns >= SMALL_NS && most > 1 ? n_threads : 1;
    for (int i = 0; i < c->n_phases; i++) {
        int64_t grain = TTI_MAX(c->chunk[i], 1);
        int64_t parts = 4 * (int64_t)c->n_threads;
        int64_t chunk = (c->units[i] + parts - 1) / parts;
        c->chunk[i] = c->n_threads == 1 ? TTI_MAX(c->units[i], 1)
                                        : TTI_MAX((chunk + grain - 1) / grain * grain, 1);
    }
    c->launch.end = c->units[0]; // complete for a call of one phase on one thread
}

static tti_call *new_call(emitter *e, int pnode, tt_kernel_fn fn, int n_in, int n_out)
{
    tti_plan *p = e->p;
    draft *d = &e->drafts[pnode];
    tti_call *c = &d->calls[d->n_calls++];
    tt_arg *args = tti_plan_alloc(p, sizeof(*args) * (size_t)(n_in + n_out + 1));
    if (args == NULL)
        return NULL;
    *c = (tti_call){.fn = fn, .n_phases = 1, .n_threads = 1};
    c->launch = (tt_launch){.ctx = p->ctx,
                            .node = p->nodes[pnode].node,
                            .attr = p->nodes[pnode].node->attr,
                            .in = args,
                            .out = args + n_in,
                            .n_in = n_in,
                            .n_out = n_out,
                            .step = p->step,
                            .lanes = &p->lanes,
                            .n_threads = 1};
    return c;
}

static bool start_draft(emitter *e, int pnode, int calls)
{
    draft *d = &e->drafts[pnode];
    d->has_entry = true;
    d->calls = tti_plan_alloc(e->p, sizeof(*d->calls) * (size_t)calls);
    d->scratch_at = tti_plan_alloc(e->p, sizeof(size_t) * 2 * (size_t)calls);
    d->local_at = d->scratch_at + calls;
    return d->calls != NULL && d->scratch_at != NULL;
}

static size_t aligned(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

// Reserves scratch of the entry; calls of one entry that run one after another share it.
static size_t reserve(draft *d, size_t bytes)
{
    size_t at = d->scratch_bytes;
    d->scratch_bytes += aligned(bytes);
    return at;
}

static tt_status draft_simple(emitter *e, int pnode, tt_kernel_fn fn, int64_t units, double ns)
{
    tti_plan *p = e->p;
    const tti_pnode *pn = &p->nodes[pnode];
    if (!start_draft(e, pnode, 1))
        return TT_ENOMEM;
    tti_call *c = new_call(e, pnode, fn, 1, 1);
    if (c == NULL)
        return TT_ENOMEM;
    const tti_value *v = &p->values[pn->out];
    for (int i = 0; i < 2; i++)
        tti_arg_fill((tt_arg *)&c->launch.in[i], p, v->tensor, &v->shape);
    for (int i = 0; i < 2; i++) // a value of parts is bound with its extra axis
        ((tt_arg *)&c->launch.in[i])->count = v->count;
    c->units[0] = units;
    set_threads(c, p->ctx->devices[pn->device]->n_threads, ns);
    return TT_OK;
}

static tt_status draft_fused(emitter *e, int pnode)
{
    tti_plan *p = e->p;
    const tti_pnode *pn = &p->nodes[pnode];
    if (!start_draft(e, pnode, 1))
        return TT_ENOMEM;
    draft *d = &e->drafts[pnode];
    tti_call *c = new_call(e, pnode, tti_fused_kernel, pn->n_in, 1);
    if (c == NULL)
        return TT_ENOMEM;
    for (int i = 0; i <= pn->n_in; i++) {
        const tti_value *v = &p->values[i < pn->n_in ? pn->in[i] : pn->out];
        tti_arg_fill((tt_arg *)&c->launch.in[i], p, v->tensor, &v->shape);
    }
    c->launch.tune = pn->fused;
    c->units[0] = p->values[pn->out].count;
    c->chunk[0] = TTI_FUSE_TILE;
    set_threads(c, p->ctx->devices[pn->device]->n_threads,
                (double)c->units[0] * 0.5 * pn->n_members);
    c->local_bytes = aligned((size_t)pn->n_members * TTI_FUSE_TILE * 8);
    d->local_at[0] = reserve(d, c->local_bytes * (size_t)c->n_threads);
    d->scratch_at[0] = SIZE_MAX;
    return TT_OK;
}

// A cast of one argument to or from its f32 form in scratch.
static tt_status draft_cast(emitter *e, int pnode, const tt_arg *arg, bool widen, tti_call **out)
{
    tti_plan *p = e->p;
    const tt_op *cast = tt_op_find(p->ctx, "cast");
    tti_call *c = new_call(e, pnode, cast->kernel[TT_CPU].fn[p->ctx->isa], 1, 1);
    if (c == NULL)
        return TT_ENOMEM;
    tt_arg *args = (tt_arg *)c->launch.in;
    args[0] = args[1] = *arg;
    args[widen ? 1 : 0].dtype = TT_F32;
    c->units[0] = arg->count;
    c->chunk[0] = 4096;
    set_threads(c, p->ctx->devices[p->nodes[pnode].device]->n_threads, (double)arg->count * 0.3);
    *out = c;
    return TT_OK;
}

static tt_status draft_op(emitter *e, int pnode)
{
    tti_plan *p = e->p;
    const tti_pnode *pn = &p->nodes[pnode];
    const tt_node *n = pn->node;
    tti_device *dev = p->ctx->devices[pn->device];
    tt_kernel_fn fn = n->op->kernel[dev->backend->id].fn[tti_isa_for(p->ctx, n)];
    bool wide = tti_needs_widening(n);
    int n_args = n->n_in + n->n_out;
    if (!start_draft(e, pnode, wide ? n_args + 1 : 1))
        return TT_ENOMEM;
    draft *d = &e->drafts[pnode];
    tt_arg *bound = tti_plan_alloc(p, sizeof(*bound) * (size_t)(n_args + 1));
    size_t *wide_at = tti_plan_alloc(p, sizeof(*wide_at) * (size_t)(n_args + 1));
    tt_prep *prep = tti_calloc(p->ctx, 1, sizeof(*prep));
    tt_status st = bound == NULL || wide_at == NULL || prep == NULL ? TT_ENOMEM : TT_OK;
    for (int i = 0; st == TT_OK && i < n_args; i++) {
        const tti_value *v = &p->values[i < n->n_in ? pn->in[i] : pn->out + i - n->n_in];
        tti_arg_fill(&bound[i], p, v->tensor, &v->shape);
        wide_at[i] = SIZE_MAX;
        if (!wide || !is_half(bound[i].dtype))
            continue;
        wide_at[i] = reserve(d, (size_t)bound[i].count * 4);
        tti_call *c;
        if (i < n->n_in) {
            st = draft_cast(e, pnode, &bound[i], true, &c);
            if (st == TT_OK) {
                ((tt_arg *)c->launch.out)->data = NULL;
                d->scratch_at[d->n_calls - 1] = d->local_at[d->n_calls - 1] = SIZE_MAX;
            }
        }
    }
    tti_call *c = st == TT_OK ? new_call(e, pnode, fn, n->n_in, n->n_out) : NULL;
    if (st == TT_OK && c == NULL)
        st = TT_ENOMEM;
    if (st == TT_OK) {
        tt_arg *args = (tt_arg *)c->launch.in;
        memcpy(args, bound, sizeof(*args) * (size_t)n_args);
        for (int i = 0; i < n_args; i++)
            if (wide_at[i] != SIZE_MAX)
                args[i].dtype = TT_F32;
        st = tti_prepare(p, n, pn->device, args, args + n->n_in, prep);
    }
    char *tune = st == TT_OK ? tti_plan_alloc(p, TT_TUNE_BYTES) : NULL;
    if (st == TT_OK && tune == NULL)
        st = TT_ENOMEM;
    if (st == TT_OK) {
        memcpy(tune, prep->tune, TT_TUNE_BYTES);
        c->launch.tune = tune;
        c->n_phases = prep->n_phases;
        memcpy(c->units, prep->units, sizeof(c->units));
        memcpy(c->chunk, prep->grain, sizeof(c->chunk));
        set_threads(c, dev->n_threads, prep->ns);
        c->local_bytes = aligned(prep->local_bytes);
        int k = d->n_calls - 1;
        d->scratch_at[k] = prep->scratch_bytes > 0 ? reserve(d, prep->scratch_bytes) : SIZE_MAX;
        d->local_at[k] =
            c->local_bytes > 0 ? reserve(d, c->local_bytes * (size_t)c->n_threads) : SIZE_MAX;
    }
    for (int i = n->n_in; st == TT_OK && i < n_args; i++) {
        if (wide_at[i] == SIZE_MAX)
            continue;
        tti_call *round;
        st = draft_cast(e, pnode, &bound[i], false, &round);
        if (st == TT_OK)
            d->scratch_at[d->n_calls - 1] = d->local_at[d->n_calls - 1] = SIZE_MAX;
    }
    d->wide_at = wide_at;
    tti_free(p->ctx, prep);
    return st;
}

static tt_status draft_node(emitter *e, int pnode)
{
    tti_plan *p = e->p;
    const tti_pnode *pn = &p->nodes[pnode];
    const tti_value *v = &p->values[pn->out];
    e->drafts[pnode].has_entry = false;
    if (pn->kind == TTI_FUSED)
        return draft_fused(e, pnode);
    if (pn->kind != TTI_OP)
        return draft_simple(e, pnode, copy_kernel,
                            (int64_t)((v->bytes + COPY_UNIT - 1) / COPY_UNIT),
                            (double)v->bytes / 8.0);
    if (pn->node->op == &tti_op_feed) {
        TT_TRY(draft_simple(e, pnode, feed_kernel, v->count, (double)v->bytes / 8.0));
        return TT_OK;
    }
    if ((pn->node->op->flags & (TT_OP_SOURCE | TT_OP_VIEW)) != 0)
        return TT_OK;
    return draft_op(e, pnode);
}

// ---- addresses -------------------------------------------------------------------------------

static tt_status patch(tti_plan *p, void *at, int device, size_t offset)
{
    if (!tti_grow(p->ctx, &p->patches, &p->cap_patches, p->n_patches + 1, sizeof(*p->patches)))
        return TT_ENOMEM;
    p->patches[p->n_patches++] = (tti_patch){at, device, offset};
    return TT_OK;
}

static tt_status address(tti_plan *p, const tt_arg *arg, int value)
{
    tt_arg *a = (tt_arg *)arg;
    const tti_value *root = &p->values[tti_root(p, value)];
    if (root->memory == TTI_ARENA)
        return patch(p, &a->data, root->device, root->offset);
    a->data = root->fixed;
    return TT_OK;
}

static tt_status address_wide(emitter *e, int pnode, size_t base)
{
    tti_plan *p = e->p;
    const tti_pnode *pn = &p->nodes[pnode];
    draft *d = &e->drafts[pnode];
    int n_in = pn->node->n_in, widen = 0, main = 0;
    for (int i = 0; i < n_in; i++)
        main += d->wide_at[i] != SIZE_MAX;
    int round = main + 1; // calls: widen the inputs, the kernel, round the outputs
    for (int i = 0; i < n_in + pn->node->n_out; i++) {
        int value = i < n_in ? pn->in[i] : pn->out + i - n_in;
        const tt_arg *arg = &d->calls[main].launch.in[i];
        if (d->wide_at[i] == SIZE_MAX) {
            TT_TRY(address(p, arg, value));
            continue;
        }
        size_t at = base + d->wide_at[i];
        const tt_launch *cast = &d->calls[i < n_in ? widen++ : round++].launch;
        const tt_arg *narrow = i < n_in ? cast->in : cast->out;
        const tt_arg *wide = i < n_in ? cast->out : cast->in;
        TT_TRY(patch(p, &((tt_arg *)arg)->data, pn->device, at));
        TT_TRY(patch(p, &((tt_arg *)wide)->data, pn->device, at));
        TT_TRY(address(p, narrow, value));
    }
    return TT_OK;
}

static tt_status address_entry(emitter *e, int pnode)
{
    tti_plan *p = e->p;
    const tti_pnode *pn = &p->nodes[pnode];
    draft *d = &e->drafts[pnode];
    size_t base = e->scratch[pnode] >= 0 ? p->values[e->scratch[pnode]].offset : 0;
    if (d->wide_at != NULL && d->n_calls > 1) {
        TT_TRY(address_wide(e, pnode, base));
    } else {
        const tt_launch *l = &d->calls[0].launch;
        bool feed = pn->kind == TTI_OP && pn->node->op == &tti_op_feed;
        for (int i = 0; i < l->n_in && !feed; i++)
            TT_TRY(address(p, &l->in[i], pn->in[i]));
        for (int i = 0; i < l->n_out; i++)
            TT_TRY(address(p, &l->out[i], pn->out + i));
    }
    for (int i = 0; i < d->n_calls; i++) {
        tt_launch *l = &d->calls[i].launch;
        if (pn->kind != TTI_OP && pn->kind != TTI_FUSED)
            continue;
        if (e->scratch[pnode] >= 0 && d->scratch_at[i] != SIZE_MAX)
            TT_TRY(patch(p, &l->scratch, pn->device, base + d->scratch_at[i]));
        if (e->scratch[pnode] >= 0 && d->local_at[i] != SIZE_MAX && d->calls[i].local_bytes > 0)
            TT_TRY(patch(p, &l->local, pn->device, base + d->local_at[i]));
    }
    return TT_OK;
}

// ---- waits -----------------------------------------------------------------------------------

// The flag that plan node i sets when done; made when first asked for.
static tti_flag *flag_of(emitter *e, int i)
{
    if (e->flag[i] == NULL)
        e->flag[i] = tti_plan_alloc(e->p, sizeof(tti_flag)); // a cache line of its own
    return e->flag[i];
}

typedef struct wait_list {
    emitter *e;
    int *from, *to; // plan nodes with entries
    int64_t n, cap_from, cap_to;
} wait_list;

static tt_status add_wait(wait_list *w, int from, int to)
{
    if (!tti_grow(w->e->p->ctx, &w->from, &w->cap_from, w->n + 1, sizeof(int)) ||
        !tti_grow(w->e->p->ctx, &w->to, &w->cap_to, w->n + 1, sizeof(int)))
        return TT_ENOMEM;
    w->from[w->n] = from;
    w->to[w->n++] = to;
    return TT_OK;
}

// Waits for node from, or, when it has no entry, for what it stands on.
static tt_status wait_for(wait_list *w, int from, int to)
{
    tti_plan *p = w->e->p;
    const tti_pnode *f = &p->nodes[from];
    if (w->e->drafts[from].has_entry)
        return f->device == p->nodes[to].device ? TT_OK : add_wait(w, from, to);
    for (int k = 0; k < f->n_in; k++)
        if (!p->nodes[p->values[f->in[k]].node].is_dropped)
            TT_TRY(wait_for(w, p->values[f->in[k]].node, to));
    for (int k = 0; k < f->n_after; k++)
        TT_TRY(wait_for(w, f->after[k], to));
    return TT_OK;
}

// Memory that was sent may be written again only after the receiver has copied it.
static tt_status wait_for_reuse(wait_list *w)
{
    tti_plan *p = w->e->p;
    for (int pos = 0; pos < p->n_order; pos++) {
        int r = p->order[pos];
        if (p->nodes[r].kind != TTI_RECV)
            continue;
        const tti_value *sent = &p->values[tti_root(p, p->nodes[r].in[0])];
        if (sent->memory != TTI_ARENA)
            continue;
        for (int64_t i = 0; i < p->n_values; i++) {
            const tti_value *v = &p->values[i];
            bool again = v->device == sent->device && v->memory == TTI_ARENA && v->first > pos &&
                         v->offset < sent->offset + sent->bytes &&
                         sent->offset < v->offset + v->bytes;
            if (again && w->e->drafts[p->order[v->first]].has_entry)
                TT_TRY(add_wait(w, r, p->order[v->first]));
        }
    }
    return TT_OK;
}

static tt_status collect_waits(wait_list *w)
{
    tti_plan *p = w->e->p;
    for (int i = 0; i < p->n_cross; i++) {
        int to = p->cross[i].to;
        if (!w->e->drafts[to].has_entry) { // a view with a control edge: an entry that only waits
            w->e->drafts[to].has_entry = true;
        }
        TT_TRY(wait_for(w, p->cross[i].from, to));
    }
    return TT_OK;
}

// ---- lists -----------------------------------------------------------------------------------

static tt_status make_lists(emitter *e, wait_list *w)
{
    tti_plan *p = e->p;
    for (int pos = 0; pos < p->n_order; pos++)
        p->devices[p->nodes[p->order[pos]].device].n_entries += e->drafts[p->order[pos]].has_entry;
    for (int d = 0; d < p->ctx->n_devices; d++) {
        tti_device_plan *dp = &p->devices[d];
        dp->entries = tti_plan_alloc(p, sizeof(tti_entry) * (size_t)(dp->n_entries + 1));
        if (dp->entries == NULL)
            return TT_ENOMEM;
        dp->n_entries = 0;
    }
    int *n_waits = tti_calloc(p->ctx, (size_t)p->n_nodes + 1, sizeof(int));
    if (n_waits == NULL)
        return TT_ENOMEM;
    for (int64_t i = 0; i < w->n; i++)
        n_waits[w->to[i]]++;
    tt_status st = TT_OK;
    for (int pos = 0; st == TT_OK && pos < p->n_order; pos++) {
        int i = p->order[pos];
        draft *d = &e->drafts[i];
        if (!d->has_entry)
            continue;
        tti_device_plan *dp = &p->devices[p->nodes[i].device];
        e->entry[i] = dp->n_entries;
        tti_entry *en = &dp->entries[dp->n_entries++];
        *en = (tti_entry){.pnode = i, .n_calls = d->n_calls, .calls = d->calls};
        en->waits = tti_plan_alloc(p, sizeof(tti_wait) * (size_t)(n_waits[i] + 1));
        if (en->waits == NULL)
            st = TT_ENOMEM;
        else if (d->n_calls > 0)
            st = address_entry(e, i);
    }
    for (int64_t i = 0; st == TT_OK && i < w->n; i++) {
        const tti_pnode *from = &p->nodes[w->from[i]];
        tti_entry *en = &p->devices[p->nodes[w->to[i]].device].entries[e->entry[w->to[i]]];
        tti_flag *flag = flag_of(e, w->from[i]);
        bool known = false;
        for (int k = 0; k < en->n_waits; k++)
            known |= en->waits[k].flag == flag;
        if (flag == NULL)
            st = TT_ENOMEM;
        else if (!known)
            en->waits[en->n_waits++] = (tti_wait){flag, from->device, from->node};
    }
    for (int64_t i = 0; st == TT_OK && i < p->n_nodes; i++)
        if (e->flag[i] != NULL)
            p->devices[p->nodes[i].device].entries[e->entry[i]].done = e->flag[i];
    p->feed_calls = tti_plan_alloc(p, sizeof(*p->feed_calls) * (size_t)(p->n_feeds + 1));
    if (p->feed_calls == NULL)
        st = TT_ENOMEM;
    for (int i = 0; st == TT_OK && i < p->n_feeds; i++)
        p->feed_calls[i] = e->drafts[p->values[p->feeds[i]].node].calls;
    tti_free(p->ctx, n_waits);
    return st;
}

// All flags in one array, so that a failing run can raise every one.
static tt_status list_flags(emitter *e)
{
    tti_plan *p = e->p;
    p->flags = tti_plan_alloc(p, sizeof(*p->flags) * (size_t)(p->n_nodes + 1));
    if (p->flags == NULL)
        return TT_ENOMEM;
    for (int64_t i = 0; i < p->n_nodes; i++)
        if (e->flag[i] != NULL)
            p->flags[p->n_flags++] = e->flag[i];
    return TT_OK;
}

static tt_status find_variables(emitter *e)
{
    tti_plan *p = e->p;
    size_t fresh[TTI_MAX_DEVICES] = {0};
    for (int64_t i = 0; i < p->n_nodes; i++) {
        const tti_pnode *pn = &p->nodes[i];
        if (pn->is_dropped || pn->kind != TTI_OP || pn->node->op != &tti_op_variable)
            continue;
        if (e->req->variable_home == NULL || e->req->variable_home(e->req->user, pn->node) == NULL)
            fresh[pn->device] += p->values[pn->out].bytes;
    }
    TT_TRY(tti_plan_check_limits(p, fresh));
    for (int64_t i = 0; i < p->n_nodes; i++) {
        const tti_pnode *pn = &p->nodes[i];
        if (pn->is_dropped || pn->kind != TTI_OP || pn->node->op != &tti_op_variable)
            continue;
        if (e->req->variable != NULL)
            TT_TRY(e->req->variable(e->req->user, pn->node, p->ctx->devices[pn->device],
                                    &p->values[pn->out].fixed));
    }
    return TT_OK;
}

static tt_status emit(emitter *e, wait_list *w)
{
    tti_plan *p = e->p;
    for (int64_t i = 0; i < p->n_nodes; i++) {
        e->scratch[i] = e->entry[i] = -1;
        if (!p->nodes[i].is_dropped)
            TT_TRY(draft_node(e, (int)i));
        if (e->drafts[i].scratch_bytes > 0) {
            tti_value v = {.tensor = p->values[p->nodes[i].out].tensor,
                           .shape = {1, {(int64_t)e->drafts[i].scratch_bytes}},
                           .count = (int64_t)e->drafts[i].scratch_bytes,
                           .bytes = e->drafts[i].scratch_bytes,
                           .node = (int)i,
                           .root = -1,
                           .device = p->nodes[i].device};
            e->scratch[i] = tti_plan_value(p, v);
            if (e->scratch[i] < 0)
                return TT_ENOMEM;
        }
    }
    TT_TRY(tti_plan_memory(p, e->scratch));
    TT_TRY(find_variables(e));
    TT_TRY(collect_waits(w));
    TT_TRY(wait_for_reuse(w));
    TT_TRY(make_lists(e, w));
    return list_flags(e);
}

tt_status tti_plan_emit(tti_plan *p, const tti_plan_request *req)
{
    emitter e = {.p = p, .req = req};
    wait_list w = {.e = &e};
    size_t n = (size_t)p->n_nodes + 1;
    e.drafts = tti_calloc(p->ctx, n, sizeof(*e.drafts));
    e.scratch = tti_calloc(p->ctx, n, sizeof(int));
    e.entry = tti_calloc(p->ctx, n, sizeof(int));
    e.flag = tti_calloc(p->ctx, n, sizeof(*e.flag));
    tt_status st = TT_ENOMEM;
    if (e.drafts != NULL && e.scratch != NULL && e.entry != NULL && e.flag != NULL)
        st = emit(&e, &w);
    tti_free(p->ctx, e.drafts);
    tti_free(p->ctx, e.scratch);
    tti_free(p->ctx, e.entry);
    tti_free(p->ctx, e.flag);
    tti_free(p->ctx, w.from);
    tti_free(p->ctx, w.to);
    return st;
}
