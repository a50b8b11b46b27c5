/*
 * reduce_tree.c - the kernels that put replicas together: the tree over their partial sums, the
 * gather of their rows, and the merge of their statistics (reduce_tree_cpu.c).
 *
 * Each input of a tree has one partial per maximal sub-tree of its replica's lanes. Taken in lane
 * order they go on a stack, and the two topmost are added while they are siblings: the order of
 * additions is that of one device with all lanes.
 */
#include "plan/emit/reduce_tree.h"
#include "comm/reduction.h"
#include "plan/emit/draft.h"
#include "plan/spread/spread.h"
#include <math.h>
#include <string.h>

static const tt_kernel_fn moments_kernels[] = TT_CPU_FNS(tti_merge_moments);

void tti_tree_store(const tt_arg *out, int64_t at, tt_dtype from, const void *sum, int64_t n)
{
    size_t item = tt_dtype_bytes(out->dtype);
    if (from == out->dtype) {
        memcpy((char *)out->data + (size_t)at * item, sum, (size_t)n * item);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        ((uint16_t *)out->data)[at + i] = out->dtype == TT_BF16
                                              ? tti_to_bf16(((const float *)sum)[i])
                                              : tti_to_f16(((const float *)sum)[i]);
}

// Element at of the i-th partial that is pushed.
static const void *part_at(const tt_launch *l, const tti_tree_program *prog, int i, int64_t at)
{
    const tt_arg *in = &l->in[prog->push[i].input];
    return (const char *)in->data + (size_t)(prog->push[i].skip + at) * tt_dtype_bytes(in->dtype);
}

// Units are elements of one partial. What is left of a part of the tree are several sums.
static tt_status tree_kernel(const tt_launch *l)
{
    const tti_tree_program *prog = l->tune;
    tt_member out = {.out = l->out->data};
    tti_reduction r; // of its addends as many as there are
    r.set = tti_fold_set_of(l->ctx->top.isa);
    r.from = r.wide = l->in[0].dtype;
    r.to = l->out->dtype;
    r.combine = TT_COMBINE_SUM;
    r.factor = 1;
    r.count = prog->count;
    r.members = &out;
    r.n_members = 1;
    r.is_scattered = r.passes = r.copy_passes = r.is_partial = false;
    r.copy = NULL;
    r.n = prog->n;
    for (int i = 0; i < prog->n; i++)
        r.addend[i] = (tti_addend){part_at(l, prog, i, 0), prog->push[i].merges, 0, 0, true};
    if (prog->n_out == 1 && prog->n > 1)
        tti_reduction_run(&r, l->begin, l->end);
    else
        tti_reduction_run_parts(&r, l->begin, l->end, prog->n_out, l->out->data,
                                l->out->count / prog->n_out);
    return TT_OK;
}

// Inputs side by side along the axis that is split; one unit.
static tt_status gather_kernel(const tt_launch *l)
{
    const tt_arg *out = l->out;
    size_t item = tt_dtype_bytes(out->dtype), inner = item, done = 0;
    int64_t outer = 1;
    for (int i = 0; i < out->open; i++)
        outer *= out->shape.dim[i];
    for (int i = out->open + 1; i < out->shape.rank; i++)
        inner *= (size_t)out->shape.dim[i];
    size_t stride = (size_t)out->shape.dim[out->open] * inner;
    for (int k = 0; k < l->n_in; k++) {
        size_t bytes = (size_t)l->in[k].shape.dim[out->open] * inner;
        for (int64_t o = 0; o < outer; o++)
            memcpy((char *)out->data + (size_t)o * stride + done,
                   (const char *)l->in[k].data + (size_t)o * bytes, bytes);
        done += bytes;
    }
    return TT_OK;
}

static tti_tree_program *new_program(tti_plan *p, int pushes)
{
    tti_tree_program *prog = tti_plan_alloc(p, sizeof(*prog));
    if (prog != NULL)
        prog->push = tti_plan_alloc(p, sizeof(*prog->push) * (size_t)(pushes + 1));
    return prog == NULL || prog->push == NULL ? NULL : prog;
}

// All parts that one replica has, one after another.
static tti_tree_program *chain_make(tti_plan *p, const tti_pnode *pn)
{
    int pushes = 0;
    for (int k = 0; k < pn->n_in; k++)
        pushes += p->nodes[p->values[pn->in[k]].node].lanes->n_parts;
    tti_tree_program *prog = new_program(p, pushes);
    for (int k = 0; prog != NULL && k < pn->n_in; k++) {
        for (int i = 0; i < p->nodes[p->values[pn->in[k]].node].lanes->n_parts; i++) {
            prog->push[prog->n].input = (int16_t)k;
            prog->push[prog->n].part = (int16_t)i;
            prog->push[prog->n].merges = prog->n > 0;
            prog->n++;
        }
    }
    if (prog != NULL)
        prog->n_out = 1;
    return prog;
}

tti_tree_program *tti_tree_make(tti_plan *p, const tti_pnode *pn, int stride)
{
    if (pn->is_chain)
        return chain_make(p, pn);
    tti_part parts[TTI_MAX_PARTS];
    tti_lane_stack stack = {.depth = 0};
    int pushes = 0;
    for (int k = 0; k < pn->n_in; k += stride) {
        const tt_lanes *ln = p->nodes[p->values[pn->in[k]].node].lanes;
        pushes += tti_lane_range_parts(ln->first, ln->first + ln->n, ln->total, parts);
    }
    tti_tree_program *prog = new_program(p, pushes);
    for (int k = 0; prog != NULL && k < pn->n_in; k += stride) {
        const tt_lanes *ln = p->nodes[p->values[pn->in[k]].node].lanes;
        int n = tti_lane_range_parts(ln->first, ln->first + ln->n, ln->total, parts);
        for (int i = 0; i < n; i++) {
            prog->push[prog->n].input = (int16_t)k;
            prog->push[prog->n].part = (int16_t)i;
            prog->push[prog->n].rows = tti_part_rows(ln, parts[i]);
            prog->push[prog->n++].merges = (int16_t)tti_lane_push(&stack, parts[i]);
        }
    }
    if (prog == NULL)
        return NULL;
    if (pn->lanes->n == pn->lanes->total)
        prog->push[prog->n - 1].merges =
            (int16_t)(prog->push[prog->n - 1].merges + tti_lane_finish(&stack));
    prog->n_out = stack.depth;
    return prog;
}

// ---- sums sent in a narrower type ------------------------------------------------------------

static uint16_t narrow(tt_dtype t, float x)
{
    if (t == TT_F16 && isfinite(x)) // what is too large stays in the residual
        x = fminf(fmaxf(x, -65504.0f), 65504.0f);
    return t == TT_F16 ? tti_to_f16(x) : tti_to_bf16(x);
}

static float widen(tt_dtype t, uint16_t x)
{
    return t == TT_F16 ? tti_from_f16(x) : tti_from_bf16(x);
}

// Units are elements: the replica's parts added, rounded; the rest stays in the last input.
static tt_status narrow_kernel(const tt_launch *l)
{
    const tt_arg *out = l->out;
    int n_in = l->n_in - 1;
    const tti_tree_program *prog = l->tune;
    float *rest = l->in[n_in].data;
    for (int64_t i = l->begin; i < l->end; i++) {
        float sum = rest[i];
        for (int k = 0; k < prog->n; k++)
            sum += *(const float *)part_at(l, prog, k, i);
        uint16_t sent = narrow(out->dtype, sum);
        ((uint16_t *)out->data)[i] = sent;
        float left = sum - widen(out->dtype, sent);
        rest[i] = isfinite(left) ? left : 0.0f;
    }
    return TT_OK;
}

// Units are elements of the piece, or of the whole: what all replicas sent, added.
static tt_status widen_kernel(const tt_launch *l)
{
    const tti_tree_program *prog = l->tune;
    tt_dtype from = l->in[0].dtype;
    for (int64_t i = l->begin; i < l->end; i++) {
        float sum = 0;
        for (int k = 0; k < l->n_in; k++)
            sum += widen(from, ((const uint16_t *)l->in[k].data)[prog->push[k].skip + i]);
        ((float *)l->out[0].data)[i] = sum + 0.0f;
    }
    return TT_OK;
}

// The parts of one replica, or what each replica sent.
static tt_status draft_narrow(tti_emitter *e, int pnode)
{
    tti_plan *p = e->p;
    const tti_pnode *pn = &p->nodes[pnode];
    bool sends = pn->kind == TTI_NARROW;
    const tti_value *out = &p->values[pn->out], *in = &p->values[pn->in[0]];
    int pushes = 0, n_sums = sends ? pn->n_in - 1 : pn->n_in;
    for (int k = 0; k < n_sums; k++)
        pushes += p->nodes[p->values[pn->in[k]].node].lanes->n_parts;
    tti_tree_program *prog = new_program(p, pushes);
    tti_call *c = prog == NULL || !tti_start_draft(e, pnode, 1)
                      ? NULL
                      : tti_new_call(e, pnode, sends ? narrow_kernel : widen_kernel, pn->n_in, 1);
    if (c == NULL)
        return TT_ENOMEM;
    for (int i = 0; i <= pn->n_in; i++)
        tti_arg_fill((tt_arg *)&c->launch.in[i], &p->values[i < pn->n_in ? pn->in[i] : pn->out]);
    for (int k = 0; sends && k < n_sums; k++) {
        for (int i = 0; i < p->nodes[p->values[pn->in[k]].node].lanes->n_parts; i++) {
            prog->push[prog->n].input = (int16_t)k;
            prog->push[prog->n].skip = i * out->count;
            prog->push[prog->n++].part = (int16_t)i;
        }
    }
    int64_t end;
    prog->count = sends ? out->count : tt_shape_count(&in->tensor->shape);
    if (!sends && pn->piece >= 0)
        tti_piece_of(pn, &prog->begin, &end);
    for (int k = 0; !sends && k < n_sums; k++)
        prog->push[k].skip = p->values[pn->in[k]].is_range ? 0 : prog->begin;
    c->launch.tune = prog;
    c->units[0] = out->count;
    c->chunk[0] = 4096;
    tti_set_threads(c, p->top->devices[pn->device]->n_threads, (double)out->count * n_sums);
    return TT_OK;
}

// Units are blocks of COLLECT_UNIT elements of the whole.
#define COLLECT_UNIT 8192
static tt_status collect_kernel(const tt_launch *l)
{
    const tti_collect_program *prog = l->tune;
    size_t item = tt_dtype_bytes(l->out[0].dtype);
    int64_t from = l->begin * COLLECT_UNIT, to = l->end * COLLECT_UNIT;
    for (int k = prog->first; k < l->n_in; k++) {
        int64_t begin = TTI_MAX(from, prog->begin[k]);
        int64_t end = TTI_MIN(to, prog->begin[k] + l->in[k].count);
        if (end > begin)
            memcpy((char *)l->out[0].data + (size_t)begin * item,
                   (const char *)l->in[k].data + (size_t)(begin - prog->begin[k]) * item,
                   (size_t)(end - begin) * item);
    }
    return TT_OK;
}

static tt_status draft_collect(tti_emitter *e, int pnode)
{
    tti_plan *p = e->p;
    const tti_pnode *pn = &p->nodes[pnode];
    const tti_value *out = &p->values[pn->out];
    tti_collect_program *prog = tti_plan_alloc(p, sizeof(*prog));
    int64_t *begin = tti_plan_alloc(p, sizeof(*begin) * (size_t)(pn->n_in + 1));
    tti_call *c = !tti_start_draft(e, pnode, 1) || prog == NULL || begin == NULL
                      ? NULL
                      : tti_new_call(e, pnode, collect_kernel, pn->n_in, 1);
    if (c == NULL)
        return TT_ENOMEM;
    for (int i = 0; i <= pn->n_in; i++)
        tti_arg_fill((tt_arg *)&c->launch.in[i], &p->values[i < pn->n_in ? pn->in[i] : pn->out]);
    prog->begin = begin;
    prog->first = pn->piece >= 0;
    int64_t done = 0;
    for (int k = 0; k < pn->n_in; k++) { // of a variable: its own piece, then the others in order
        int piece = k == 0 ? pn->piece : k <= pn->piece ? k - 1 : k;
        prog->begin[k] = pn->piece >= 0 ? pn->what->begin[piece] : done;
        done += p->values[pn->in[k]].count;
    }
    c->launch.tune = prog;
    c->units[0] = (out->count + COLLECT_UNIT - 1) / COLLECT_UNIT;
    tti_set_threads(c, p->top->devices[pn->device]->n_threads, (double)out->bytes / 8.0);
    return TT_OK;
}

tt_status tti_draft_sums(tti_emitter *e, int pnode)
{
    const tti_pnode *node = &e->p->nodes[pnode];
    if (node->kind == TTI_COLLECT)
        return draft_collect(e, pnode);
    const tti_pnode *maker = tti_maker(e->p, node->in[0]);
    if (node->kind == TTI_NARROW || maker->kind == TTI_NARROW)
        return draft_narrow(e, pnode);
    if (e->p->values[node->in[0]].sparse_rows > 0)
        return tti_draft_sparse_tree(e, pnode);
    tti_plan *p = e->p;
    const tti_pnode *pn = &p->nodes[pnode];
    bool tree = pn->kind == TTI_TREE, moments = pn->kind == TTI_MOMENTS;
    if (!tti_start_draft(e, pnode, 1))
        return TT_ENOMEM;
    tti_call *c = tti_new_call(e, pnode,
                               tree      ? tree_kernel
                               : moments ? moments_kernels[tti_isa_for(p->top, pn->node)]
                                         : gather_kernel,
                               pn->n_in, pn->n_out);
    if (c == NULL)
        return TT_ENOMEM;
    for (int i = 0; i < pn->n_in + pn->n_out; i++)
        tti_arg_fill((tt_arg *)&c->launch.in[i],
                     &p->values[i < pn->n_in ? pn->in[i] : pn->out + i - pn->n_in]);
    const tti_value *out = &p->values[pn->out];
    c->units[0] = 1;
    double ns = (double)out->bytes / 8.0;
    if (tree || moments) {
        tti_tree_program *prog = tti_tree_make(p, pn, moments ? 2 : 1);
        if (prog == NULL)
            return TT_ENOMEM;
        c->launch.tune = prog;
        int64_t end = 0;
        const tti_value *in = &p->values[pn->in[0]];
        prog->count = in->is_range ? tt_shape_count(&in->tensor->shape)
                                   : in->count / p->nodes[in->node].lanes->n_parts;
        if (tree && pn->piece >= 0)
            tti_piece_of(pn, &prog->begin, &end);
        for (int i = 0; i < prog->n; i++) {
            tti_push *push = &prog->push[i];
            const tti_value *v = &p->values[pn->in[push->input]];
            push->skip = push->part * prog->count + prog->begin;
            if (v->is_range)
                push->skip = push->part * (v->count / p->nodes[v->node].lanes->n_parts) +
                             prog->begin - v->range_begin;
        }
        c->units[0] = out->count / prog->n_out;
        c->chunk[0] = moments ? 64 : 4096;
        ns = (double)out->bytes * (moments ? 4.0 : 0.1) * pn->n_in;
        const tt_shape *x = &pn->node->in[0]->shape;
        prog->per_row = moments ? -tt_shape_count(x) / TTI_MAX(out->count, 1) : 0;
    }
    tti_set_threads(c, p->top->devices[pn->device]->n_threads, ns);
    return TT_OK;
}
