/*
 * draft.c - the calls of every entry, before memory is planned: each kernel is prepared, which
 * tells how it runs and how much scratch it needs. A node that is only a view, a variable or a
 * constant has no calls. Kernels without a bf16 or f16 form get their arguments widened to f32 into
 * scratch before and rounded after, by the cast op's own kernel.
 */
#include "plan/emit/draft.h"
#include "op/batched_calls.h"
#include "op/sparse_rows.h"
#include <string.h>

#define SMALL_NS  12000.0 // below this one thread is faster than waking the team
#define COPY_UNIT 65536

typedef tti_draft draft;
typedef tti_emitter emitter;

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

void tti_set_threads(tti_call *c, int n_threads, double ns)
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

tti_call *tti_new_call(emitter *e, int pnode, tt_kernel_fn fn, int n_in, int n_out)
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
                            .lanes = p->nodes[pnode].lanes,
                            .n_threads = 1};
    return c;
}

bool tti_start_draft(emitter *e, int pnode, int calls)
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
    if (!tti_start_draft(e, pnode, 1))
        return TT_ENOMEM;
    tti_call *c = tti_new_call(e, pnode, fn, 1, 1);
    if (c == NULL)
        return TT_ENOMEM;
    const tti_value *v = &p->values[pn->out];
    for (int i = 0; i < 2; i++)
        tti_arg_fill((tt_arg *)&c->launch.in[i], v);
    c->units[0] = units;
    tti_set_threads(c, p->top->devices[pn->device]->n_threads, ns);
    return TT_OK;
}

// A copy to or from a device with streams: no kernel's work.
static tt_status draft_move(emitter *e, int pnode, tti_device *from)
{
    tti_plan *p = e->p;
    const tti_pnode *pn = &p->nodes[pnode];
    TT_TRY(draft_simple(e, pnode, NULL, 1, 0));
    tti_call *c = e->drafts[pnode].calls;
    c->is_move = true;
    c->from = from;
    c->to = p->top->devices[pn->device];
    return TT_OK;
}

// The kernel that takes several calls of an op at once, if there is one.
static tt_kernel_fn batched_of(const tti_device *d, const tt_op *op)
{
    const tt_kernel *k =
        d->backend->kernel(d, (tti_kernel_key){TTI_KERNEL_BATCHED, {op->name, NULL, NULL}});
    return k == NULL ? NULL : k->fn[0];
}

/*
 * On a device with streams the call's function is the backend's, runs once and reads the step block
 * of the device.
 */
static tt_status to_streams(emitter *e, int pnode, tti_kernel_key key)
{
    tti_plan *p = e->p;
    const tti_pnode *pn = &p->nodes[pnode];
    tti_device *d = p->top->devices[pn->device];
    tti_call *c = &e->drafts[pnode].calls[e->drafts[pnode].n_calls - 1];
    bool is_op = key.form == TTI_KERNEL_OP; // which may have a kernel of its own
    const tt_kernel *k = is_op ? tti_device_kernel(d, pn->node->op) : d->backend->kernel(d, key);
    if (k == NULL || k->fn[0] == NULL)
        return TT_FAIL(p->ctx, TT_EUNSUPPORTED, "%s '%s': %s has no kernel for it",
                       tti_pnode_kind_name(pn), pn->node->name, d->name);
    c->fn = k->fn[0];
    c->batched = is_op ? batched_of(d, pn->node->op) : NULL;
    c->n_phases = c->n_threads = 1;
    c->launch.step = (const tt_step *)(const void *)p->exe.staging[d->index].data;
    c->launch.device = d->state;
    c->launch.stream = d->backend->streams->stream(d);
    return TT_OK;
}

tt_status tti_draft_fused(emitter *e, int pnode)
{
    tti_plan *p = e->p;
    const tti_pnode *pn = &p->nodes[pnode];
    if (!tti_start_draft(e, pnode, 1))
        return TT_ENOMEM;
    draft *d = &e->drafts[pnode];
    tti_call *c = tti_new_call(e, pnode, tti_fused_kernel, pn->n_in, 1);
    if (c == NULL)
        return TT_ENOMEM;
    for (int i = 0; i <= pn->n_in; i++) {
        const tti_value *v = &p->values[i < pn->n_in ? pn->in[i] : pn->out];
        tti_arg_fill((tt_arg *)&c->launch.in[i], v);
    }
    c->launch.tune = pn->fused;
    c->units[0] = p->values[pn->out].count;
    c->chunk[0] = TTI_FUSE_TILE;
    d->scratch_at[0] = SIZE_MAX;
    d->local_at[0] = SIZE_MAX;
    if (tti_has_streams(p->top->devices[pn->device])) {
        tti_set_threads(c, 1, 0);
        return to_streams(e, pnode, tti_kernel_of_form(tti_kind_of(pn)->kernel));
    }
    tti_set_threads(c, p->top->devices[pn->device]->n_threads,
                    (double)c->units[0] * 0.5 * pn->n_members);
    c->local_bytes = aligned(tti_fused_local(pn->fused));
    d->local_at[0] = reserve(d, c->local_bytes * (size_t)c->n_threads);
    return TT_OK;
}

tt_status tti_draft_chain(emitter *e, int pnode)
{
    tti_plan *p = e->p;
    const tti_pnode *pn = &p->nodes[pnode];
    const tti_device *dev = p->top->devices[pn->device];
    char *tune = tti_plan_alloc(p, TT_TUNE_BYTES);
    tti_call *c =
        tti_start_draft(e, pnode, 1) ? tti_new_call(e, pnode, NULL, pn->n_in, pn->n_out) : NULL;
    if (c == NULL || tune == NULL)
        return TT_ENOMEM;
    tt_arg *args = (tt_arg *)c->launch.in;
    for (int i = 0; i < pn->n_in + pn->n_out; i++)
        tti_arg_fill(&args[i], &p->values[i < pn->n_in ? pn->in[i] : pn->out + i - pn->n_in]);
    tt_prep prep;
    tti_kernel_key key = tti_chain_key(pn->chain);
    TT_TRY(tti_prepare_chain(p, pn, pn->chain, dev->backend->kernel(dev, key), args, pn->n_in,
                             args + pn->n_in, pn->n_out, &prep));
    memcpy(tune, prep.tune, TT_TUNE_BYTES);
    draft *d = &e->drafts[pnode];
    c->launch.tune = tune;
    c->units[0] = prep.units[0];
    c->scratch_bytes = prep.scratch_bytes;
    tti_set_threads(c, 1, 0);
    d->scratch_at[0] = prep.scratch_bytes > 0 ? reserve(d, prep.scratch_bytes) : SIZE_MAX;
    d->local_at[0] = SIZE_MAX;
    return to_streams(e, pnode, key);
}

// A cast of one argument to or from its f32 form in scratch.
static tt_status draft_cast(emitter *e, int pnode, const tt_arg *arg, bool widen, tti_call **out)
{
    tti_plan *p = e->p;
    const tt_op *cast = tt_op_find(p->ctx, "cast");
    tti_call *c = tti_new_call(e, pnode, cast->kernel[TT_CPU].fn[p->top->isa], 1, 1);
    if (c == NULL)
        return TT_ENOMEM;
    tt_arg *args = (tt_arg *)c->launch.in;
    args[0] = args[1] = *arg;
    args[widen ? 1 : 0].dtype = TT_F32;
    c->units[0] = arg->count;
    c->chunk[0] = 4096;
    tti_set_threads(c, p->top->devices[p->nodes[pnode].device]->n_threads,
                    (double)arg->count * 0.3);
    *out = c;
    return TT_OK;
}

static tt_status draft_kernel(emitter *e, int pnode)
{
    tti_plan *p = e->p;
    const tti_pnode *pn = &p->nodes[pnode];
    const tt_node *n = pn->node;
    tti_device *dev = p->top->devices[pn->device];
    const tt_kernel *kernel = pn->n_out > 0 && p->values[pn->out].sparse_rows > 0
                                  ? tti_sparse_rows_kernel(n, dev->backend->id)
                                  : tti_device_kernel(dev, n->op);
    tt_kernel_fn fn = kernel->fn[tti_has_streams(dev) ? 0 : tti_isa_for(p->top, n)];
    bool wide = tti_needs_widening(n) && !tti_has_streams(dev);
    int n_args = n->n_in + n->n_out;
    if (!tti_start_draft(e, pnode, wide ? n_args + 1 : 1))
        return TT_ENOMEM;
    draft *d = &e->drafts[pnode];
    tt_arg *bound = tti_plan_alloc(p, sizeof(*bound) * (size_t)(n_args + 1));
    size_t *wide_at = tti_plan_alloc(p, sizeof(*wide_at) * (size_t)(n_args + 1));
    tt_prep *prep = tti_calloc(p->ctx, 1, sizeof(*prep));
    tt_status st = bound == NULL || wide_at == NULL || prep == NULL ? TT_ENOMEM : TT_OK;
    for (int i = 0; st == TT_OK && i < n_args; i++) {
        const tti_value *v = &p->values[i < n->n_in ? pn->in[i] : pn->out + i - n->n_in];
        tti_arg_fill(&bound[i], v);
        wide_at[i] = SIZE_MAX;
        if (!wide || !tti_is_half(bound[i].dtype))
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
    tti_call *c = st == TT_OK ? tti_new_call(e, pnode, fn, n->n_in, n->n_out) : NULL;
    if (st == TT_OK && c == NULL)
        st = TT_ENOMEM;
    if (st == TT_OK) {
        tt_arg *args = (tt_arg *)c->launch.in;
        memcpy(args, bound, sizeof(*args) * (size_t)n_args);
        for (int i = 0; i < n_args; i++)
            if (wide_at[i] != SIZE_MAX)
                args[i].dtype = TT_F32;
        st = tti_prepare_kernel(p, n, kernel, dev, pn->lanes, args, args + n->n_in, prep);
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
        tti_set_threads(c, dev->n_threads, prep->ns);
        c->scratch_bytes = prep->scratch_bytes;
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
    return st == TT_OK && tti_has_streams(dev) ? to_streams(e, pnode, tti_kernel_of_op(n->op->name))
                                               : st;
}

// Messages to another process, or from one.
static tt_status draft_mail(emitter *e, int pnode)
{
    tti_plan *p = e->p;
    const tti_pnode *pn = &p->nodes[pnode];
    tti_call *c =
        tti_start_draft(e, pnode, 1) ? tti_new_call(e, pnode, NULL, pn->n_in, pn->n_out) : NULL;
    if (c == NULL)
        return TT_ENOMEM;
    for (int i = 0; i < pn->n_in + pn->n_out; i++)
        tti_arg_fill((tt_arg *)&c->launch.in[i], &p->values[pn->n_in > 0 ? pn->in[i] : pn->out]);
    c->transfer = pn->transfer;
    c->units[0] = 1;
    return TT_OK;
}

// A device's part of library collectives: who carries it is told when all are enqueued.
tt_status tti_draft_collective(emitter *e, int pnode)
{
    tti_plan *p = e->p;
    const tti_pnode *pn = &p->nodes[pnode];
    tti_call *c = tti_start_draft(e, pnode, 1) ? tti_new_call(e, pnode, NULL, 1, 1) : NULL;
    if (c == NULL)
        return TT_ENOMEM;
    for (int i = 0; i < 2; i++)
        tti_arg_fill((tt_arg *)&c->launch.in[i], &p->values[i == 0 ? pn->in[0] : pn->out]);
    c->units[0] = 1;
    return TT_OK;
}

// A receive, a copy on one device, or a feed.
static tt_status draft_copy(emitter *e, int pnode)
{
    tti_plan *p = e->p;
    const tti_pnode *pn = &p->nodes[pnode];
    const tti_value *v = &p->values[pn->out];
    tti_device *to = p->top->devices[pn->device];
    bool feed = pn->kind == TTI_OP;
    tti_device *from = feed ? NULL : p->top->devices[p->values[pn->in[0]].device];
    if (tti_has_streams(to) || (from != NULL && tti_has_streams(from)))
        return draft_move(e, pnode, from);
    int64_t units = feed ? v->count : (int64_t)((v->bytes + COPY_UNIT - 1) / COPY_UNIT);
    return draft_simple(e, pnode, feed ? feed_kernel : copy_kernel, units, (double)v->bytes / 8.0);
}

tt_status tti_draft_op(emitter *e, int pnode)
{
    const tt_op *op = e->p->nodes[pnode].node->op;
    if (op == &tti_op_feed)
        return draft_copy(e, pnode);
    return (op->flags & (TT_OP_SOURCE | TT_OP_VIEW)) != 0 ? TT_OK : draft_kernel(e, pnode);
}

tt_status tti_draft_transfer(emitter *e, int pnode)
{
    return e->p->nodes[pnode].transfer != NULL ? draft_mail(e, pnode) : draft_copy(e, pnode);
}

tt_status tti_draft_combining(emitter *e, int pnode)
{
    const tti_plan *p = e->p;
    const tti_pnode *pn = &p->nodes[pnode];
    TT_TRY(tti_draft_sums(e, pnode));
    if (!tti_has_streams(p->top->devices[pn->device]))
        return TT_OK;
    bool widens = pn->kind == TTI_TREE && tti_maker(p, pn->in[0])->kind == TTI_NARROW;
    tti_kernel_form form = widens ? TTI_KERNEL_WIDEN : tti_kind_of(pn)->kernel;
    return to_streams(e, pnode, tti_kernel_of_form(form));
}

tt_status tti_draft_node(emitter *e, int pnode)
{
    e->drafts[pnode].has_entry = false;
    return tti_kind_of(&e->p->nodes[pnode])->draft(e, pnode);
}
