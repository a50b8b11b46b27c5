/*
 * cut.c - edges between devices become receives: one copy per tensor and destination, however many
 * nodes there read it. Constants are not copied: every device of the host reads them in place.
 */
#include "plan/plan.h"

// A receive of value on device d, made once: made[] has one per device for this value's slot.
static int receive(tti_plan *p, int value, int device)
{
    int *in = tti_plan_alloc(p, sizeof(int));
    if (in == NULL)
        return -1;
    in[0] = value;
    tti_value v = p->values[value];
    tti_pnode pn = {.kind = TTI_RECV,
                    .node = v.tensor->node,
                    .n_in = 1,
                    .n_out = 1,
                    .in = in,
                    .out = (int)p->n_values,
                    .device = device,
                    .reason = "received",
                    .lanes = p->nodes[v.node].lanes,
                    .micro = p->nodes[v.node].micro,
                    .stage = p->nodes[v.node].stage,
                    .key = p->nodes[v.node].key + 0.25};
    int id = tti_plan_node(p, pn);
    if (id < 0)
        return -1;
    p->values[tti_root(p, value)].is_sent = true;
    v.node = id;
    v.root = -1;
    v.skip = 0;
    v.is_piece = false;
    v.device = device;
    v.memory = TTI_ARENA;
    v.fixed = NULL;
    v.keep = v.is_sent = false;
    return tti_plan_value(p, v);
}

// Bytes of a value in another device's memory that a node reads: of a sum in pieces its own piece,
// once for each sub-tree of lanes that the value has; of touched rows all, if all are in the piece.
static size_t bytes_read(const tti_plan *p, const tti_pnode *pn, int v)
{
    const tti_value *value = &p->values[v];
    if (pn->kind != TTI_TREE || pn->piece < 0)
        return value->bytes;
    int64_t parts = value->shape.rank > value->tensor->shape.rank ? value->shape.dim[0] : 1;
    if (value->touched > 0)
        parts = p->nodes[value->node].lanes->n_parts;
    size_t whole = (size_t)(p->values[pn->out].count * parts) * tt_dtype_bytes(value->dtype);
    return value->touched > 0 ? TTI_MIN(value->bytes, whole) : whole;
}

// Nodes that put values of several devices together read them where they are, if they can.
static bool reads_directly(const tti_plan *p, const tti_pnode *pn, int value)
{
    bool joins = pn->kind == TTI_TREE || pn->kind == TTI_GATHER || pn->kind == TTI_MOMENTS ||
                 pn->kind == TTI_COLLECT;
    return joins && tti_device_can_read(p->ctx->devices[pn->device],
                                        p->ctx->devices[p->values[value].device]);
}

// A view of what was received is a view of the copy.
static void follow_input(tti_plan *p, const tti_pnode *pn)
{
    if (pn->kind != TTI_OP || pn->is_dropped || (pn->node->op->flags & TT_OP_VIEW) == 0)
        return;
    tti_value *v = &p->values[pn->out];
    v->root = pn->in[0];
    v->skip = p->values[pn->in[0]].skip;
    v->memory = p->values[pn->in[0]].memory;
    v->fixed = p->values[pn->in[0]].fixed;
}

// Values already received, per device: a small open hash of (value, device).
typedef struct pair {
    int value, device, copy;
} pair;

tt_status tti_plan_cut(tti_plan *p)
{
    if (p->ctx->n_devices == 1)
        return TT_OK;
    int64_t n_nodes = p->n_nodes, edges = 0, cap = 64;
    for (int64_t i = 0; i < n_nodes; i++)
        edges += p->nodes[i].n_in;
    while (cap < 2 * edges)
        cap *= 2;
    pair *made = tti_calloc(p->ctx, (size_t)cap, sizeof(*made));
    if (made == NULL)
        return TT_ENOMEM;
    tt_status st = TT_OK;
    for (int64_t i = 0; st == TT_OK && i < n_nodes; i++) {
        for (int k = 0; k < p->nodes[i].n_in && !p->nodes[i].is_dropped; k++) {
            int v = p->nodes[i].in[k], device = p->nodes[i].device;
            if (p->values[v].device == device || p->values[v].memory == TTI_CONSTANT ||
                !tti_reads(&p->nodes[i], k))
                continue;
            if (reads_directly(p, &p->nodes[i], v)) {
                p->values[tti_root(p, v)].is_sent = true;
                p->devices[device].received_bytes += bytes_read(p, &p->nodes[i], v);
                continue;
            }
            uint64_t at = ((uint64_t)v * 64 + (uint64_t)device) * 0x9e3779b97f4a7c15u;
            at = (at >> 20) & (uint64_t)(cap - 1);
            while (made[at].copy != 0 && (made[at].value != v || made[at].device != device))
                at = (at + 1) & (uint64_t)(cap - 1);
            if (made[at].copy == 0) {
                int copy = receive(p, v, device);
                if (copy < 0) {
                    st = TT_ENOMEM;
                    break;
                }
                made[at] = (pair){v, device, copy};
                p->devices[device].received_bytes += p->values[copy].bytes;
            }
            p->nodes[i].in[k] = made[at].copy;
        }
        follow_input(p, &p->nodes[i]);
    }
    tti_free(p->ctx, made);
    for (int i = 0; i < p->n_fetched; i++)
        p->values[tti_root(p, p->targets[i])].keep = true;
    return st;
}
