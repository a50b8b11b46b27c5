/*
 * prepare.c - which kernel a node has on a device, and how it will run there: the instruction set,
 * the arguments, the work in units.
 */
#include "plan/emit/draft.h"
#include <string.h>

int tti_isa_for(const tti_topology *top, const tt_node *n)
{
    for (int i = 0; i < n->n_out; i++)
        if (n->outs[i]->dtype == TT_F64)
            return TT_ISA_F64;
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i]->dtype == TT_F64)
            return TT_ISA_F64;
    return top->isa;
}

bool tti_needs_widening(const tt_node *n)
{
    if ((n->op->flags & (TT_OP_BITS | TT_OP_ANY_TYPE | TT_OP_VIEW | TT_OP_SOURCE)) != 0)
        return false;
    for (int i = 0; i < n->n_in; i++)
        if (tti_is_half(n->in[i]->dtype))
            return true;
    for (int i = 0; i < n->n_out; i++)
        if (tti_is_half(n->outs[i]->dtype))
            return true;
    return false;
}

void tti_arg_fill(tt_arg *a, const tti_value *v)
{
    const tt_shape *bound = &v->shape, *open = &v->tensor->shape;
    *a = (tt_arg){.dtype = v->dtype, .shape = *bound, .count = v->count, .rows = 1};
    a->open = tt_open_axis(open);
    a->cols = bound->rank == 0 ? 1 : bound->dim[bound->rank - 1];
    for (int i = 0; i + 1 < bound->rank; i++)
        a->rows *= bound->dim[i];
    if (a->open >= 0)
        a->per = -open->dim[a->open];
}

tt_status tti_prepare_kernel(tti_plan *p, const tt_node *n, const tt_kernel *k, const tti_device *d,
                             const tt_lanes *lanes, const tt_arg *in, const tt_arg *out,
                             tt_prep *prep)
{
    *prep = (tt_prep){.ctx = p->ctx,
                      .node = n,
                      .attr = n->attr,
                      .in = in,
                      .out_args = out,
                      .n_in = n->n_in,
                      .n_out = n->n_out,
                      .lanes = lanes,
                      .n_threads = d == NULL ? 1 : d->n_threads,
                      .isa = tti_isa_for(p->top, n),
                      .device = d == NULL ? NULL : d->state,
                      .n_phases = 1};
    if (k->prepare != NULL)
        return k->prepare(prep);
    bool pointwise = (n->op->flags & TT_OP_POINTWISE) != 0;
    prep->units[0] = pointwise ? out->count : out->rows;
    prep->grain[0] = pointwise ? 4096 : 1;
    prep->ns = (double)out->count;
    return TT_OK;
}

tt_status tti_prepare(tti_plan *p, const tt_node *n, int device, const tt_lanes *lanes,
                      const tt_arg *in, const tt_arg *out, tt_prep *prep)
{
    const tti_device *d = device < 0 ? NULL : p->top->devices[device];
    const tt_kernel *k = d == NULL ? &n->op->kernel[TT_CPU] : tti_device_kernel(d, n->op);
    return tti_prepare_kernel(p, n, k, d, lanes, in, out, prep);
}

tt_status tti_prepare_chain(const tti_plan *p, const tti_pnode *pn, const tti_chain *c,
                            const tt_kernel *k, const tt_arg *in, int n_in, const tt_arg *out,
                            int n_out, tt_prep *prep)
{
    *prep = (tt_prep){.ctx = p->ctx,
                      .node = pn->node,
                      .attr = pn->node->attr,
                      .in = in,
                      .out_args = out,
                      .n_in = n_in,
                      .n_out = n_out,
                      .lanes = pn->lanes,
                      .n_threads = 1,
                      .device = p->top->devices[pn->device]->state,
                      .n_phases = 1};
    memcpy(prep->tune, &c, sizeof(c));
    return k->prepare(prep);
}

bool tti_has_kernel(const tti_topology *top, const tt_node *n, const tti_device *d)
{
    const tt_kernel *k = tti_device_kernel(d, n->op);
    int isa = tti_isa_for(top, n);
    if (!tti_has_streams(d))
        return k->fn[isa] != NULL;
    if (k == NULL || k->fn[0] == NULL)
        return false;
    unsigned types = tti_stream_types(n->op, k);
    bool fits = n->n_out == 0 || (types >> n->outs[0]->dtype & 1u) != 0;
    return fits && (isa != TT_ISA_F64 || (types >> TT_F64 & 1u) != 0);
}
